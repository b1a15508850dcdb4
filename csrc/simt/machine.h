/* The machine: a decoded kernel, and the state of the warps, blocks and threads that execute it.
 *   lower*.c, flow.c   PTX becomes a gm_program
 *   exec*.inc.h        the handlers of handlers.def, compiled once an ISA variant by machine_<isa>.c
 *   warp.c barrier.c   lanes that go different ways, and where they meet
 *   blocks.c           blocks, and whose turn it is          reach.c   memory: bounds, findings
 *   mbarrier.c bulk.c  barriers in memory, bulk copies       values.c  values that nobody gave
 *   tally.c            what accesses cost                    patterns.c  what they looked like
 *
 * A register is a slot of 32 lanes in a frame: 64, 128, 256 or 512 bytes for 16, 32, 64 and 128 bits (two planes of 64
 * bits, the low one first). A predicate is a word, one bit a lane. Immediates, special registers and the entry's
 * parameters are slots too, written once a frame, so every operand is a byte offset into the frame and an instruction
 * is one call through a pointer:  in = in->run(in, warp, regs).
 *
 * Lanes of a warp that go different ways are splits (a mask and a place); a join is a point where the lanes that took a
 * branch wait for one another. Splits take turns, so one may wait for another. See warp.c. */
#pragma once
#include "findings.h"
#include "lens.h"
#include "watch.h"
#include <stdatomic.h>
#include <stdint.h>

enum { GM_BARRIERS = 16, GM_PHASES = 128, GM_PATTERNS = 4 };
#define GM_FULL UINT32_C(0xffffffff)

typedef struct gm_insn gm_insn;
typedef struct gm_warp gm_warp;
typedef struct gm_unit gm_unit;
typedef struct gm_worker gm_worker;
typedef struct gm_block gm_block;
typedef struct gm_machine gm_machine;

/* Executes one instruction for the lanes of warp->active and gives the next one, or NULL where the warp must stop. */
typedef const gm_insn *gm_handler(const gm_insn *in, gm_warp *w, uint8_t *regs);

/* Every handler by number; the rows come from handlers.def. */
typedef enum gm_do {
#define GM_HANDLER(name, ...) GM_DO_##name,
#include "handlers.def"
#undef GM_HANDLER
    GM_DO_COUNT
} gm_do;

struct gm_insn {
    gm_handler *run;
    uint32_t d, a, b, c;    /* operands: byte offsets into the frame */
    uint32_t guard, invert; /* lanes that take part: those of the predicate at `guard`, xor `invert` */
    int64_t imm;            /* what is added to an address; a constant of the operation */
    uint32_t x;             /* a site; the place in the code of a target; a place in the lists */
    uint16_t op;            /* gm_do */
    uint8_t k, n;           /* small constants of the operation */
    uint32_t e, f;          /* more operands */
};

typedef struct gm_range {
    uint32_t from, bytes;
} gm_range;

/* A function's code and what a call needs to know of it. The entry is function 0. */
typedef struct gm_function {
    const char *name;
    uint32_t start;       /* its first instruction in the code */
    uint32_t frame_bytes; /* all slots */
    uint32_t local_bytes; /* a thread's .local variables */
    uint32_t local_slot;  /* 64-bit slot of the function's local base, an address in the local window; 0: none */
    gm_range zero[2];     /* slots that may be read before they are written */
    const struct gm_constant *constants;
    size_t constant_count;
} gm_function;

/* A slot that holds the same in every frame of a function: how to fill it. */
typedef enum gm_filler {
    GM_FILL_BITS,      /* value in all lanes */
    GM_FILL_PREDICATE, /* a word */
    GM_FILL_PARAMETER, /* bytes of the parameter block at value */
    GM_FILL_SPECIAL,   /* a special register: value is a gm_ptx_special */
} gm_filler;

/* A .param of a call: the same bytes in the caller's frame and the callee's, 32 lanes of them. */
typedef struct gm_argument {
    uint32_t caller, callee, bytes;
} gm_argument;

typedef struct gm_constant {
    uint64_t value, high; /* high: bits 64 to 127 */
    uint32_t slot;
    uint8_t bytes; /* of a lane: 2, 4, 8, 16 */
    uint8_t filler;
} gm_constant;

/* --- memory ---------------------------------------------------------------------------------------------------- */

/* Windows of the generic address space. Global memory lies above all of them. */
#define GM_SHARED_WINDOW   UINT64_C(0x0000010000000000)
#define GM_LOCAL_WINDOW    UINT64_C(0x0000020000000000)
#define GM_PARAM_WINDOW    UINT64_C(0x0000030000000000)
#define GM_GLOBAL_START    UINT64_C(0x0000700000000000)
#define GM_VARIABLES_START GM_GLOBAL_START              /* the module's own; buffers lie above */
#define GM_MEETING         UINT64_C(0x00006ffffffff000) /* 64 bytes for cooperative groups' grid barrier */
#define GM_BUFFERS_START   UINT64_C(0x0000710000000000)
#define GM_WINDOW          UINT64_C(0x0000010000000000)
#define GM_CODE_START      UINT64_C(0x0000600000000000) /* functions: 16 bytes each, in the program's order */
/* Within the shared window: the block's own memory at 0, that of the block of rank r in its cluster at (r + 1) << 24.
 */
#define GM_RANK_SHIFT 24

typedef struct gm_segment {
    uint64_t start, end; /* addresses */
    uint8_t *host;       /* of start */
    uint8_t writable;
    int32_t buffer; /* of the launch, or -1 */
    const char *name;
} gm_segment;

typedef enum gm_shape { GM_SHAPE_ANY, GM_SHAPE_ROW, GM_SHAPE_SAME } gm_shape;

/* When and where something was executed. Orders are those of one worker. */
typedef struct gm_when {
    uint64_t unit, order, block;
    uint32_t warp;
} gm_when;

/* The first execution of a pattern at one phase, and the address of its first active lane. */
typedef struct gm_met {
    gm_when when;
    uint64_t at;
} gm_met;

/* What a worker keeps of a site: patterns in the order in which they came. */
typedef struct gm_seen {
    gm_lens_pattern *list;
    uint32_t count, capacity, distinct, looked_at;
    uint64_t hash[GM_LENS_DISTINCT]; /* of the distinct ones, in their order */
} gm_seen;

/* One way in which a site's lanes lay to one another, and how often it was met at each place in a 128-byte line: what
 * an instruction costs depends on nothing else, so it is worked out once for all of them, when the run ends. */
typedef struct gm_pattern {
    uint32_t mask;
    uint8_t shape;     /* gm_shape; ROW only with all lanes */
    uint8_t space;     /* GM_SPACE_GLOBAL or _SHARED */
    uint32_t low_bits; /* all relative addresses or'ed: their common alignment */
    int64_t low;       /* the lowest byte, relative to the first active lane's address */
    uint64_t span;     /* from there to behind the last byte */
    union {
        uint64_t wide[GM_LANES];   /* global: relative addresses; of inactive lanes 0 */
        uint32_t narrow[GM_LANES]; /* shared */
    };
    uint64_t hits[GM_PHASES];
    gm_met met[GM_PHASES]; /* where there are hits */
} gm_pattern;

/* A site as one worker sees it. */
typedef struct gm_site_state {
    gm_pattern *last;   /* the one met last, if the fast paths may use it */
    gm_segment segment; /* the one touched last */
    gm_pattern *patterns[GM_PATTERNS];
    uint8_t used, oldest;
    uint8_t missed_space;
    uint32_t missed_mask;
    uint64_t missed[GM_LANES]; /* the last unknown pattern: kept when it comes twice running */
    uint64_t idle;             /* executions with no lane */
    gm_lens_counts counts;
    gm_seen seen;
} gm_site_state;

/* --- warps ----------------------------------------------------------------------------------------------------- */

/* A function's registers for one call. */
typedef struct gm_frame {
    struct gm_frame *caller;
    uint8_t *regs;
    const gm_function *function;
    uint32_t lanes; /* that have not returned */
    uint32_t depth;
    uint32_t local_base; /* bytes of local memory in use below this call */
    size_t bytes;
    struct gm_frame *all; /* of the warp, in use or not */
} gm_frame;

typedef struct gm_join {
    struct gm_join *outer;
    const gm_insn *at; /* where they go on; for a call, the instruction behind it */
    gm_frame *frame;   /* in which */
    uint32_t lanes;    /* that it waits for, those that came included */
    uint32_t came;
    uint8_t is_call;
    struct gm_join *all; /* of the warp, in use or not */
} gm_join;

typedef enum gm_wait {
    GM_RUNS,
    GM_AT_SYNC,    /* at an instruction that names lanes of its warp: waits for `wanted` */
    GM_AT_BARRIER, /* came to a barrier of the block and is counted there */
    GM_AT_CLUSTER, /* came to the cluster's */
} gm_wait;

typedef struct gm_split {
    const gm_insn *pc;
    gm_join *join;
    gm_frame *frame;
    uint32_t mask, wanted;
    uint8_t wait, barrier, alone; /* alone: no longer waits for the rest of its warp */
} gm_split;

struct gm_warp {
    /* the split that runs */
    uint32_t active;
    uint32_t live;           /* lanes that have not exited */
    int64_t budget;          /* instructions until the next turn */
    uint64_t skipped;        /* of the turn's budget */
    const gm_insn *asked_at; /* the last load or atomic that asked for what others write, what it got, how often */
    uint64_t asked_answer;
    uint32_t asked_times;
    gm_site_state *sites;
    gm_lens_ran *ran;
    uint8_t *shared;
    uint64_t shared_bytes;
    gm_watch *watch; /* of the block */
    const uint32_t *lists;
    gm_split now;
    const gm_insn *code;
    gm_block *block;
    gm_worker *worker;
    uint8_t *local; /* this warp's: a lane's bytes are `local_bytes` apart; behind them all, whether each was written */
    uint64_t local_bytes;
    uint32_t index;         /* in its block */
    uint32_t split_count;   /* besides the one that runs */
    uint32_t absent;        /* lanes whose last shuffle asked a lane that was not there */
    uint8_t from[GM_LANES]; /* which lane each asked; kept where values are followed */
    uint8_t has_now, done, polled, gathered, turn_over, asked;
    uint8_t overtaken; /* the worker has begun a later unit */
    gm_handler *step;  /* NULL, or what executes in the place of the loop: where registers are watched */
    uint64_t cluster_turn[GM_LANES];
    gm_split splits[GM_LANES];
    gm_frame *frames_free, *frames_all, bottom;
    gm_join *joins_free, *joins_all;
};

typedef struct gm_barrier {
    uint32_t here;     /* somebody is */
    uint32_t came;     /* threads */
    uint32_t expected; /* threads; 0: all that live */
    uint32_t sum;      /* bar.red: threads whose predicate was true */
    uint32_t warps;    /* which have come */
} gm_barrier;

struct gm_block {
    uint32_t ctaid[3], rank;
    uint64_t number; /* in the grid, x fastest */
    uint32_t live;   /* threads */
    uint32_t warp_count;
    uint8_t *shared;
    gm_warp *warps;
    gm_unit *unit;
    gm_watch *watch; /* NULL: nothing is watched */
    gm_barrier barriers[GM_BARRIERS];
};

/* What is scheduled together: a block, or the blocks of a cluster. */
struct gm_unit {
    uint64_t number;
    uint32_t block_count, warp_count, threads; /* threads: those that live */
    gm_block *blocks;
    gm_warp *warps;
    uint8_t *memory;
    size_t bytes;
    uint32_t turns;
    uint64_t barrier_turn;
    uint32_t barrier_came;
    gm_unit *next;
};

/* Where opcodes' words are kept. */
typedef struct gm_words {
    struct gm_words *next;
    size_t used;
    char text[4096];
} gm_words;

/* A .global or .const variable of the module. */
typedef struct gm_program_variable {
    const struct gm_ptx_variable *variable;
    uint64_t address;
} gm_program_variable;

/* A decoded kernel: one for all runs. */
typedef struct gm_program {
    gm_insn *code;    /* `run` not set */
    gm_place *places; /* of the code, one each */
    size_t count;
    uint32_t *lists;
    size_t list_count;
    gm_function *functions;
    size_t function_count;
    uint32_t *function_of;  /* of every function of the module: its number here, or GM_NOWHERE */
    gm_argument *arguments; /* of calls: `n` given, then `k` returned, from a call's `e` */
    size_t argument_count;
    gm_lens_kernel kernel;
    /* of sites */
    gm_place *site_places;
    uint8_t *site_access; /* gm_access: how it counts */
    uint8_t *site_how;    /* GM_HOW_* */
    uint8_t *site_nc;     /* ld.global.nc */
    gm_words *words;
    const char **opcodes; /* of all stretches */
    size_t opcode_count;
    gm_program_variable *variables;
    size_t variable_count;
    uint64_t *addresses;                 /* of every variable of the module, in its space */
    uint32_t dynamic_offset;             /* of the launch's shared memory behind the kernel's own */
    uint32_t shared_grain, global_grain; /* the narrowest accesses, at most 4 bytes */
    int fences;                          /* it has fences, or accesses with such semantics */
} gm_program;

/* One gm_lens_run. */
typedef struct gm_run {
    const gm_lens *lens;
    const gm_program *program;
    const gm_lens_launch *launch;
    const gm_machine *machine;
    const gm_insn *code; /* for this machine */
    const uint8_t *parameters;
    const gm_segment *segments; /* in order */
    size_t segment_count;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t threads, warps; /* of a block */
    uint32_t shared_bytes;   /* of a block */
    uint32_t cluster_blocks;
    uint64_t unit_first, unit_step, unit_count;
    _Atomic uint64_t next_unit; /* index of the next one to begin */
    _Atomic uint64_t instructions, memory;
    _Atomic int stop;              /* a gm_status other than 0 ends all workers */
    int many;                      /* several host threads: atomics must be theirs too */
    _Atomic uint8_t *met;          /* gm_lens_result.met while it runs; NULL: the kernel does not listen */
    double until;                  /* of the monotonic clock, in seconds */
    gm_watch_global *watch_global; /* NULL: not watched */
    gm_failure *failure;           /* written by whoever sets `stop` */
} gm_run;

struct gm_worker {
    gm_run *run;
    gm_site_state *sites;
    gm_lens_ran *ran; /* one a stretch of the program */
    gm_findings findings;
    uint64_t instructions, blocks;
    uint64_t newest;     /* the number of the unit begun last */
    uint64_t noted;      /* accesses that patterns.c has been told of: their order */
    uint64_t reported;   /* of `instructions`, those added to run->instructions */
    gm_unit *free_units; /* set up, not in use */
    gm_unit *resident, *last;
    uint32_t resident_count;
    uint8_t sink[64]; /* where stores go that may not */
};

struct gm_machine {
    gm_handler *const *handlers; /* GM_DO_COUNT */
};

/* gm_run.stop: blocks talk through volatile loads, and run on several threads. */
enum { GM_STOP_TALK = GM_STATUS_COUNT };

enum { GM_TURN = 16384, GM_SHORT_TURN = 64, GM_ASKS = 16, GM_NOWHERE = 0xffffffff };

/* Rounding modes, and flags beside them in gm_insn.n. */
typedef enum gm_rounding { GM_ROUND_EVEN, GM_ROUND_ZERO, GM_ROUND_DOWN, GM_ROUND_UP } gm_rounding;
enum { GM_FLUSH = 4, GM_SATURATE = 8, GM_RELU = 16, GM_KEEP_NAN = 32 };
typedef enum gm_atom {
    GM_ATOM_ADD,
    GM_ATOM_MIN,
    GM_ATOM_MAX,
    GM_ATOM_INC,
    GM_ATOM_DEC,
    GM_ATOM_AND,
    GM_ATOM_OR,
    GM_ATOM_XOR,
    GM_ATOM_EXCH,
    GM_ATOM_CAS
} gm_atom;
typedef enum gm_atom_type {
    GM_ATOM_BITS,
    GM_ATOM_S32,
    GM_ATOM_S64,
    GM_ATOM_F32,
    GM_ATOM_F64,
    GM_ATOM_F16,
    GM_ATOM_BF16,
    GM_ATOM_F16X2,
    GM_ATOM_BF16X2
} gm_atom_type;
typedef enum gm_arithmetic { GM_ADD, GM_SUB, GM_MUL, GM_FMA, GM_DIV, GM_SQRT, GM_RCP, GM_MIN, GM_MAX } gm_arithmetic;

/* --- what the handlers call ------------------------------------------------------------------------------------ */

/* warp.c */
const gm_insn *gm_warp_diverge(gm_warp *w, const gm_insn *in, uint32_t taken);
const gm_insn *gm_warp_join(gm_warp *w, const gm_insn *in);
const gm_insn *gm_warp_turn(gm_warp *w, const gm_insn *in); /* the budget is spent: go on at `in` later */
void gm_warp_asks(gm_warp *w, const gm_insn *in, uint64_t answer);
const gm_insn *gm_warp_branch_table(gm_warp *w, const gm_insn *in, const uint32_t index[GM_LANES]);
const gm_insn *gm_warp_call(gm_warp *w, const gm_insn *in, uint32_t lanes);
const gm_insn *gm_warp_call_through(gm_warp *w, const gm_insn *in, uint32_t lanes);
const gm_insn *gm_warp_return(gm_warp *w, const gm_insn *in, uint32_t lanes);
const gm_insn *gm_warp_exit(gm_warp *w, const gm_insn *in, uint32_t lanes);
/* 1: all of `wanted` that live are here (perhaps more lanes than before: look at w->active again). 0: the split waits,
 * and the handler returns NULL. */
int gm_warp_sync(gm_warp *w, const gm_insn *in, uint32_t wanted);
int gm_warp_run(gm_warp *w); /* until it waits, ends or has had its turn: 1 if it executed anything */
int gm_warp_unstick(gm_warp *w);

gm_frame *gm_frame_new(gm_warp *w, uint32_t function, gm_frame *caller, uint32_t lanes); /* NULL: the run was stopped */
void gm_frame_free(gm_warp *w, gm_frame *frame);
void gm_warp_met(gm_warp *w, uint32_t lanes); /* bar.warp.sync */

/* values.c: what executes in the place of the loop where a run follows values (GM_WATCH_REGISTERS) */
enum { GM_VALUE_WORDS = 4 }; /* of a slot, behind the frame, each as far from the one before as the frame is long */
const gm_insn *gm_values_loop(const gm_insn *in, gm_warp *w, uint8_t *regs);
void gm_values_begin(gm_frame *frame); /* nothing has been written in it */
void gm_values_shared(gm_warp *w, const gm_insn *in, const uint32_t address[GM_LANES], uint32_t lanes, uint32_t bytes,
                      uint32_t unwritten);

/* barrier.c */
const gm_insn *gm_barrier_come(gm_warp *w, const gm_insn *in, uint32_t lanes);
const gm_insn *gm_cluster_come(gm_warp *w, const gm_insn *in, uint32_t lanes);
const gm_insn *gm_cluster_wait(gm_warp *w, const gm_insn *in, uint32_t lanes);
void gm_cluster_check(gm_unit *unit, uint32_t exited);
void gm_barrier_left(gm_block *block, uint32_t threads);

/* reach.c: where each lane of `mask` reaches; lanes that may not become findings and are left out of the result. */
uint32_t gm_reach(gm_warp *w, const gm_insn *in, gm_space space, uint32_t mask, const uint64_t address[GM_LANES],
                  uint32_t bytes, int writes, uint8_t *where[GM_LANES]);
/* cp.async: where each lane reads (those of `reads`) and writes. */
uint32_t gm_reach_copy(gm_warp *w, const gm_insn *in, uint32_t lanes, uint32_t reads, const uint64_t source[GM_LANES],
                       const uint64_t target[GM_LANES], uint32_t bytes, uint8_t *from[GM_LANES], uint8_t *to[GM_LANES]);
void gm_fence(gm_warp *w, uint32_t lanes);
void gm_copy_commit(gm_warp *w, uint32_t lanes);
void gm_copy_wait(gm_warp *w, uint32_t lanes, uint32_t left, int all);
void gm_watch_accesses(gm_warp *w, const gm_insn *in, const uint32_t in_space[GM_SPACE_COUNT],
                       const uint64_t address[GM_LANES], uint32_t bytes);
/* What the fast paths have not done yet where shared memory is watched: the pattern's lanes, from the first one's. */
void gm_watch_pattern(gm_warp *w, const gm_insn *in, const gm_pattern *p, uint32_t first, uint32_t bytes);
void gm_found(gm_warp *w, const gm_insn *in, gm_finding_kind kind, uint32_t lanes, const uint64_t *address);
void gm_stop(gm_run *run, gm_status status, const char *text);
/* `bytes` bytes from an address, aligned to `align`; NULL, and a finding, where they are not all there. */
uint8_t *gm_reach_bytes(gm_warp *w, const gm_insn *in, uint32_t lane, gm_space space, uint64_t address, uint64_t bytes,
                        uint32_t align, int writes);
void gm_lock(const void *at); /* of atomics, where several host threads run */
void gm_unlock(const void *at);

/* tally.c: counts one execution whose lanes of `mask` went to the same space. `fast`: the fast paths may rely on what
 * is learnt. */
void gm_tally(gm_warp *w, uint32_t site, gm_space space, uint32_t mask, const uint64_t address[GM_LANES],
              uint32_t bytes, int fast);
void gm_tally_local(gm_warp *w, uint32_t site, uint32_t mask, const uint64_t address[GM_LANES], uint32_t bytes);
void gm_tally_copy(gm_warp *w, uint32_t site, int bypasses, uint32_t writes, uint32_t reads,
                   const uint64_t source[GM_LANES], const uint32_t target[GM_LANES], uint32_t bytes);
void gm_site_settle(gm_run *run, uint32_t site, gm_site_state *state);

/* patterns.c */
gm_when gm_when_now(gm_warp *w);
/* Counted at this phase; called the first time, and always where a later unit has begun. */
void gm_pattern_met(gm_warp *w, gm_pattern *p, uint64_t at);
int gm_seen_all(const gm_warp *w, const gm_seen *seen); /* nothing more has to be looked at one by one */
/* `one` without addresses; those of inactive lanes are not looked at. */
void gm_see(gm_run *run, gm_seen *seen, const gm_lens_pattern *one, const uint64_t address[GM_LANES],
            const uint32_t *target);
void gm_see_distinct(gm_run *run, gm_seen *seen, const gm_lens_pattern *one, const uint64_t address[GM_LANES]);
gm_status gm_patterns_collect(gm_lens_result *result, const gm_run *run, const gm_worker *workers, int count);

/* mbarrier.c, bulk.c */
typedef enum gm_mbarrier_kind {
    GM_MBARRIER_INIT,
    GM_MBARRIER_INVAL,
    GM_MBARRIER_EXPECT,
    GM_MBARRIER_COMPLETE,
    GM_MBARRIER_ARRIVE,
    GM_MBARRIER_ARRIVE_EXPECT,
    GM_MBARRIER_DROP,
    GM_MBARRIER_TEST,
    GM_MBARRIER_TRY,
    GM_MBARRIER_PENDING
} gm_mbarrier_kind;
typedef enum gm_bulk { GM_BULK_IN, GM_BULK_OUT, GM_BULK_WITHIN } gm_bulk;
typedef void gm_bulk_reduce(const gm_insn *in, uint8_t *target, const uint8_t *source, uint64_t bytes);
const gm_insn *gm_mbarrier(gm_warp *w, const gm_insn *in, uint32_t lanes);
void gm_mbarrier_complete(uint8_t *at, uint64_t bytes); /* so many bytes have arrived */
const gm_insn *gm_bulk_copy(gm_warp *w, const gm_insn *in, uint32_t lanes, gm_bulk_reduce *reduce);
const gm_insn *gm_store_async(gm_warp *w, const gm_insn *in, uint32_t lanes, gm_bulk_reduce *reduce);
const gm_insn *gm_bulk_tensor(gm_warp *w, const gm_insn *in, uint32_t lanes);

/* Items of matrices, exec_matrix.inc.h */
typedef enum gm_matrix_type {
    GM_MATRIX_F16,
    GM_MATRIX_BF16,
    GM_MATRIX_TF32,
    GM_MATRIX_E4M3,
    GM_MATRIX_E5M2,
    GM_MATRIX_U8,
    GM_MATRIX_S8,
    GM_MATRIX_U4,
    GM_MATRIX_S4,
    GM_MATRIX_B1,
    GM_MATRIX_F64,
    GM_MATRIX_F32, /* of wmma's C and D */
    GM_MATRIX_S32
} gm_matrix_type;
