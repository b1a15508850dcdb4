/* From what the reader leaves (ptx.h) to what the machine executes (machine.h).
 *   flow.c          basic blocks, where divergent ways meet, which registers live where
 *   lower_kernel.c  a kernel with the functions and variables that it reaches
 *   lower.c         a function: code, sites, lists
 *   lower_slots.c   its registers and constants
 *   lower_ops.c     one instruction: which of lower_arithmetic, _compare, _convert, _memory, _warp, _async makes it */
#pragma once
#include "machine.h"
#include "ptx.h"

/* --- flow.c ---------------------------------------------------------------------------------------------------- */

typedef struct gm_flow_block {
    uint32_t first, end;   /* instructions */
    uint32_t target, next; /* blocks that follow, or GM_NOWHERE; a table's are in the function */
    int32_t table;         /* of a brx, or -1 */
    uint32_t meet;         /* the block where the ways from its end meet, or GM_NOWHERE */
    uint8_t is_meet;       /* some block's ways meet here */
    uint32_t code;         /* where its code begins, once it is written */
} gm_flow_block;

typedef struct gm_flow {
    gm_flow_block *blocks;
    uint32_t count;
    uint32_t *block_of; /* instruction -> block; one more for the end */
    /* Of each register: the first and last instruction that it lives at; `first` > `last`: never used. */
    uint32_t *from, *to;
    uint8_t *early; /* may be read before it is written */
} gm_flow;

gm_status gm_flow_make(gm_flow *flow, const gm_ptx *module, const gm_ptx_function *function);
void gm_flow_free(gm_flow *flow);
/* Calls `see` with every register that the instruction reads (0) or writes (1). */
void gm_flow_registers(const gm_ptx_inst *inst, void (*see)(void *context, uint32_t reg, int writes), void *context);
int gm_flow_ends(const gm_ptx_inst *inst); /* ends a basic block */

/* --- lower.c --------------------------------------------------------------------------------------------------- */

enum { GM_TEMPS = 10, GM_CARRY_SLOT = 4 };

/* One function on its way. */
typedef struct gm_lower {
    const gm_ptx *module;
    const gm_ptx_function *function;
    gm_program *program;
    gm_failure *failure;
    gm_status status;
    uint32_t number; /* of the function in the program */
    gm_flow flow;
    uint32_t *slot;    /* of each register */
    uint32_t frame;    /* bytes so far */
    uint32_t temps[4]; /* where those of 2, 4, 8, 16 bytes begin; predicates: pred_temps */
    uint32_t pred_temps, pred_bytes, zero_from, zero_bytes, local_slot;
    uint8_t *aliased;  /* registers that stand for a constant: nothing is written for what defines them */
    int private_slots; /* no two registers share one */
    const char *opcode;
    uint32_t call; /* the loc whose `calls` these are */
    const char *calls;
    uint32_t used_temps, used_pred_temps;
    /* constants */
    gm_constant *constants;
    size_t constant_count, constant_room;
    uint32_t *constant_hash;
    uint32_t hash_size;
    struct gm_lower_all *all;
    const gm_ptx_inst *inst;
    uint32_t block; /* that is being written */
} gm_lower;

/* What a kernel's functions share. */
typedef struct gm_lower_all {
    const gm_ptx *module;
    gm_program *program;
    gm_failure *failure;
    uint64_t *address;     /* of each variable in its space; of .param variables of calls their slot */
    uint32_t *function_of; /* function of the module -> of the program, or GM_NOWHERE */
    uint32_t *functions;   /* the other way round */
    uint32_t function_count;
    uint64_t *local_bytes; /* of each function */
    size_t code_room, place_room, list_room, argument_room, site_room, stretch_room, opcode_room;
    uint16_t *names; /* hash of handlers' names */
} gm_lower_all;

enum { GM_MOST_FRAME = 1 << 26 };

int gm_lower_names(gm_lower_all *all); /* the hash of handlers' names; 0: no memory */
gm_status gm_lower_function(gm_lower_all *all, uint32_t number);
/* Room for `count` items of `size` bytes in the array whose pointer is at `array`; 0: no memory. */
int gm_lower_room(void *array, size_t *capacity, size_t count, size_t size);
void gm_lower_no_memory(gm_lower *l);

/* lower_slots.c */
uint32_t gm_lower_new_slot(gm_lower *l, uint32_t bytes);
void gm_lower_place_predicates(gm_lower *l);
void gm_lower_alias_registers(gm_lower *l);
void gm_lower_place_registers(gm_lower *l);

/* lower_kernel.c */
gm_status gm_lower_kernel(gm_program *program, const gm_ptx *module, const gm_ptx_function *entry, gm_failure *failure);
void gm_program_free(gm_program *program);

/* Says what is not executed, once; later calls change nothing. */
void gm_lower_refuse(gm_lower *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
gm_insn *gm_lower_emit(gm_lower *l, gm_do what); /* guard and place set; never NULL */
gm_insn *gm_lower_named(gm_lower *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t gm_lower_constant(gm_lower *l, gm_filler filler, uint32_t bytes, uint64_t value, uint64_t high);
uint32_t gm_lower_list(gm_lower *l, const uint32_t *slots, uint32_t count);
uint32_t gm_lower_argument(gm_lower *l, gm_argument argument);
uint32_t gm_lower_temp(gm_lower *l, uint32_t bytes); /* 2, 4, 8, 16; 1 is a predicate */
uint32_t gm_lower_site(gm_lower *l, gm_site_kind kind, gm_space space, gm_access access, unsigned how, uint32_t bytes);
uint32_t gm_register_bytes(const gm_ptx_reg *reg); /* of its slot: 1 is a predicate */

/* lower_async.c */
void gm_lower_async(gm_lower *l);

/* lower_ops.c */
void gm_lower_inst(gm_lower *l);
/* If the instruction gives its destinations what a constant slot holds: that slot for destination `k`, else 0. */
uint32_t gm_lower_alias(gm_lower *l, const gm_ptx_inst *inst, uint32_t k);
uint32_t gm_lower_source(gm_lower *l, const gm_ptx_operand *operand, uint32_t bytes);
uint32_t gm_lower_destination(gm_lower *l, const gm_ptx_operand *operand, uint32_t bytes);
uint32_t gm_lower_address(gm_lower *l, const gm_ptx_operand *operand, gm_space space); /* 64 bits, its offset added */
uint32_t gm_lower_atom(const gm_ptx_inst *inst);
uint32_t gm_lower_atom_type(uint8_t type);
