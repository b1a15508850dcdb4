/* The lens: executes one kernel of a PTX text, warp by warp, on the CPU; counts what its memory instructions cost;
 * finds what would break on a GPU. Pure C: text and host memory in, counters and findings out.
 *
 *     gm_lens_load     PTX text, kernel name  ->  gm_lens           checked, decoded, never changed afterwards
 *     gm_lens_run      gm_lens, gm_lens_launch ->  gm_lens_result   any number of times, from any number of threads
 *
 * A text with anything that cannot be executed is refused by gm_lens_load, with its line: nothing fails half way for
 * want of an opcode. Once a run has begun, nothing that the kernel does can crash it, take memory without bound or keep
 * it for ever: wrong accesses become findings (loads give zeros, stores are dropped), and limits end it. */
#pragma once
#include "../base/failure.h"
#include "count.h"
#include "space.h"
#include <stddef.h>
#include <stdint.h>

typedef struct gm_lens gm_lens;

/* --- what a kernel is ------------------------------------------------------------------------------------------ */

/* gm_space: a generic access is counted under the space that its lanes meant. */

typedef enum gm_site_kind {
    GM_SITE_LOAD,
    GM_SITE_STORE,
    GM_SITE_ATOM, /* gives the old value back */
    GM_SITE_RED,  /* does not */
    GM_SITE_COPY, /* cp.async: reads global, writes shared */
    GM_SITE_BULK, /* cp.async.bulk and tensor copies: no requests of the load-store unit */
    GM_SITE_LDMATRIX,
    GM_SITE_STMATRIX,
    GM_SITE_KINDS
} gm_site_kind;

/* A site: one memory instruction of the kernel, in the order of the text (functions that it calls included). ld.param
 * of an entry's parameters and mbarrier operations are none: they make no traffic that is counted. */
typedef struct gm_lens_site {
    const char *opcode;  /* "ld.global.nc.v4.f32"; lives as long as the gm_lens */
    const char *file;    /* of .loc, or NULL */
    uint32_t line;       /* in the PTX text, from 1 */
    uint32_t file_line;  /* of .loc, or 0 */
    const char *calls;   /* as gm_place has them */
    uint8_t kind;        /* gm_site_kind */
    uint8_t space;       /* gm_space, as the opcode names it */
    uint16_t lane_bytes; /* a lane's access: item size times vector length */
} gm_lens_site;

/* A parameter of the entry. */
typedef struct gm_lens_parameter {
    const char *name;
    uint32_t offset, size, align; /* in the parameter block */
    uint8_t bits;                 /* of its type: 8 16 32 64, or 8 for an array of bytes */
    char kind;                    /* 'b' untyped, 'u', 's' or 'f' */
    uint8_t is_array;
    uint8_t is_pointer; /* marked .ptr: nvcc marks none, Triton all */
} gm_lens_parameter;

/* Instructions that are executed one after another, whoever executes the first: a basic block. */
typedef struct gm_lens_stretch {
    const char *const *opcodes; /* with their modifiers */
    uint32_t count;
} gm_lens_stretch;

typedef struct gm_lens_kernel {
    const char *name;
    const gm_lens_parameter *parameters;
    size_t parameter_count;
    uint32_t parameter_bytes;
    uint32_t static_shared;                      /* bytes, all .shared variables that the kernel may reach */
    uint32_t local_bytes;                        /* a thread's, as the PTX declares them */
    uint32_t reqntid[3], maxntid[3], cluster[3]; /* zeros: not given */
    const gm_lens_site *sites;
    size_t site_count;
    const gm_lens_stretch *stretches; /* all instructions of the kernel and of what it calls */
    size_t stretch_count;
    /* Blocks may talk to each other: atomics whose result is read, floating-point reductions, or relaxed or acquire
     * loads of global memory. Such a kernel runs on one thread, so that its results and counters are the same every
     * time, and its blocks can't be spread over processes. NULL, or the opcode in question: */
    const char *communicates;
    uint32_t communicates_line;
    /* Volatile loads of global memory: blocks talk so only through a buffer that is also written, which shows when they
     * run (gm_lens_result.met). Such a kernel runs on all threads until it does; then again, on one. NULL, or the first
     * of them: */
    const char *listens;
    uint32_t listens_line;
} gm_lens_kernel;

/* Parses `text`, checks all of it and decodes the entry `kernel` (NULL: the only one there is). `file` is how messages
 * call the text. On failure *lens is NULL and `failure` says why, with the line and a caret where it is the text's. */
gm_status gm_lens_load(gm_lens **lens, const char *text, size_t size, const char *file, const char *kernel,
                       gm_failure *failure);
void gm_lens_free(gm_lens *lens);
const gm_lens_kernel *gm_lens_describe(const gm_lens *lens);

/* --- a launch -------------------------------------------------------------------------------------------------- */

/* Host memory that the kernel can reach. It gets a place in a simulated device address space: `lead` bytes behind a
 * multiple of 256, with unmapped space on both sides. For a view, `memory` and `size` are those of its base, and the
 * parameter's pointer carries the view's offset; two views of one array are one buffer. `lead` is for a base whose
 * first bytes are out of reach. Places depend on sizes and order alone, so every run sees the same addresses. */
typedef struct gm_lens_buffer {
    void *memory;
    uint64_t size; /* bytes */
    const char *name;
    uint32_t lead;     /* 0..255 */
    uint8_t read_only; /* stores are findings */
    uint64_t address;  /* out: of memory[0] */
} gm_lens_buffer;

/* How a site is counted where the machine code of the kernel makes something else of it: ptxas merges neighbours into
 * one wide access, drops accesses, and has one lane add for its warp. It is executed as written all the same. */
typedef struct gm_lens_counted {
    uint16_t lane_bytes; /* 0: not counted, because another site's access fetches the bytes */
    uint8_t access;      /* gm_access */
    uint8_t elected;     /* one of the active lanes does it for all */
} gm_lens_counted;

/* The parameter block's 8 bytes from `at` become the address of byte `offset` of a buffer. */
typedef struct gm_lens_pointer {
    uint32_t at, buffer;
    int64_t offset;
} gm_lens_pointer;

typedef struct gm_lens_dim {
    uint32_t x, y, z;
} gm_lens_dim;

/* A tensor map as the lens understands it, in the 128 bytes of a CUtensorMap (whose own encoding is the driver's
 * secret): what a parameter of that type must hold here. `address` is a place for a gm_lens_pointer (byte 8). */
#define GM_TENSOR_MAGIC UINT32_C(0x676d746d)
typedef struct gm_tensor_map {
    uint32_t magic;
    uint8_t rank, item_bytes, swizzle, reserved; /* swizzle: 0 none, 1 2 3 of 32, 64, 128 bytes */
    uint64_t address;
    uint64_t stride[4]; /* bytes, of the second and further axes; the first one's are neighbours */
    uint32_t size[5];   /* items, the fastest axis first */
    uint32_t box[5];
    uint32_t step[5]; /* element strides; 0 is 1 */
    uint32_t padding[5];
} gm_tensor_map;

/* What to look for besides what is always found (bounds, alignment, barriers, deadlocks, limits). */
enum {
    GM_WATCH_SHARED = 1,    /* races in shared memory, and reads of what nobody wrote */
    GM_WATCH_GLOBAL = 2,    /* races between blocks in global memory: slower */
    GM_WATCH_REGISTERS = 4, /* values of never-written registers and of shuffles from absent lanes that reach memory */
};

typedef struct gm_lens_launch {
    gm_lens_dim grid, block;
    gm_lens_dim cluster; /* zeros: as the kernel says, else 1 */
    uint32_t dynamic_shared;
    const void *parameters; /* the block, laid out as gm_lens_parameter.offset says */
    size_t parameter_bytes;
    const gm_lens_pointer *pointers;
    size_t pointer_count;
    gm_lens_buffer *buffers;
    size_t buffer_count;

    /* Which blocks: of the units 0, 1, ... (clusters, x fastest; without clusters, blocks) those numbered first,
     * first + step, ..., `units` in number. units = 0: all from first. Parts of a grid add up to the whole. */
    uint64_t first, step, units;

    const gm_lens_counted *counted; /* one a site; NULL: as they are written */

    int threads;           /* host threads; 0: one. Results and counters don't depend on it. */
    unsigned watch;        /* GM_WATCH_*, or 0 */
    const char *isa;       /* NULL: the best one here; or "avx512", "avx2", "portable" */
    uint64_t instructions; /* limits; 0: none, that is, the defaults below */
    uint64_t memory;       /* bytes that the run itself may take, buffers not included */
    double seconds;
    /* Called on the calling thread every few milliseconds; a result other than 0 ends the run (GM_LENS_INTERRUPTED). */
    int (*interrupted)(void *context);
    void *context;
} gm_lens_launch;

#define GM_LENS_INSTRUCTIONS (UINT64_C(1) << 40)
#define GM_LENS_MEMORY       (UINT64_C(1) << 30)
#define GM_LENS_SECONDS      3600.0

/* --- what comes out -------------------------------------------------------------------------------------------- */

/* A site's counters, sums over everything executed. Nsight Compute's words. */
typedef struct gm_lens_counts {
    uint64_t executions;    /* warp instructions, those whose guard let no lane through included */
    uint64_t lanes;         /* active lanes of these */
    uint64_t requests;      /* global and local: executions with a lane that went there */
    uint64_t sectors;       /* of 32 bytes */
    uint64_t sectors_ideal; /* what the lanes' bytes fill when packed, each lane counted; never more than sectors */
    uint64_t lines;         /* of 128 bytes */
    uint64_t shared;        /* shared: executions with a lane that went there */
    uint64_t wavefronts;
    uint64_t wavefronts_ideal;
    uint64_t conflicts;
} gm_lens_counts;

/* How often a stretch was entered by a warp, and by how many lanes together. */
typedef struct gm_lens_ran {
    uint64_t warps, lanes;
} gm_lens_ran;

/* What some executions of a site looked like: the first one, and how many like it there were. First means in the unit
 * (block, or cluster) with the lowest number, and there in the order of execution, so that it does not depend on the
 * number of threads; `times` for the same reason. */
typedef struct gm_lens_pattern {
    uint32_t site;
    uint8_t space;    /* GM_SPACE_GLOBAL, _SHARED or _LOCAL */
    uint8_t distinct; /* 0: stands for all executions of the same cost. 1: for those of the first unit with the same
                         addresses in shared memory */
    uint16_t bytes;   /* of a lane's access, as it was counted */
    uint32_t active;  /* lanes */
    uint32_t cost;    /* sectors, or wavefronts of shared memory */
    uint64_t times;
    const char *rule;     /* how it was counted: "global load", "shared inc", "matrix x4", "copy" ... */
    uint64_t unit, order; /* of the first: by these patterns are sorted */
    uint64_t block;       /* number in the grid, x fastest */
    uint32_t warp;
    uint32_t target[GM_LANES];  /* of cp.async.cg: places in shared memory */
    uint64_t address[GM_LANES]; /* device addresses; offsets in the block's shared, or the thread's local, memory */
} gm_lens_pattern;

/* Of a site's accesses to shared memory, so many different ones are kept, among so many executions of the first unit.
 */
enum { GM_LENS_DISTINCT = 64, GM_LENS_LOOKED_AT = 4096 };

/* What a run did with a buffer, where the kernel has volatile loads. */
enum { GM_MET_STORE = 1, GM_MET_VOLATILE_LOAD = 2, GM_MET_BOTH = 3 };

typedef struct gm_lens_result {
    gm_status ended;       /* GM_OK, or what ended it early: GM_LENS_LIMIT, GM_LENS_DEADLOCK, GM_LENS_INTERRUPTED */
    uint64_t instructions; /* warp instructions executed */
    uint64_t thread_instructions; /* active lanes of these, guards not counted */
    uint64_t blocks;              /* executed */
    uint64_t blocks_total;        /* of the grid */
    gm_lens_counts *counts;       /* one a site of the kernel, in its order */
    size_t site_count;
    gm_lens_ran *ran; /* one a stretch of the kernel, in its order */
    size_t stretch_count;
    gm_lens_pattern *patterns; /* by site, distinct, space, cost (distinct ones in order of execution) */
    size_t pattern_count;
    struct gm_findings *findings; /* findings.h; NULL where there are none */
    uint8_t *met; /* GM_MET_*, of each buffer, then of the module's own variables together; NULL: it never listens */
    size_t met_count;
} gm_lens_result;

/* Runs the launch. A launch that no GPU would take (too many threads or shared bytes, a parameter block of the wrong
 * size, a grid with a zero) is refused (GM_LENS_LAUNCH) before anything is executed. A run that ends early gives its
 * status, a text and what was counted until then. */
gm_status gm_lens_run(const gm_lens *lens, gm_lens_launch *launch, gm_lens_result *result, gm_failure *failure);
void gm_lens_result_free(gm_lens_result *result);

/* The ISA variants of the executor, best first, ended by NULL, and whether each runs here. */
typedef struct gm_lens_isa {
    const char *name, *description;
    int (*runs_here)(void);
    const struct gm_machine *machine; /* machine.h: what was compiled for it */
} gm_lens_isa;
extern const gm_lens_isa *const gm_lens_isas[];
