/* PTX as the reader leaves it: names resolved, operands typed, every instruction one row of ops.def.
 *
 *     gm_ptx *module;
 *     gm_status s = gm_ptx_parse(text, size, "kernel.ptx", &module, &failure);
 *     const gm_ptx_function *f = gm_ptx_find(module, "transpose");
 *     for (uint32_t i = 0; i < f->ninsts; i++) ... f->insts[i] ...
 *     gm_ptx_free(module);
 *
 * What gm_ptx_parse returns has passed every check that needs no launch: opcodes, modifiers and operand shapes are
 * those of a row of ops.def, types agree, labels exist, initialisers fit. Everything is const from then on and may be
 * read by many threads. All of a module lies in one arena whose size is bounded by the text's; the arena goes with
 * gm_ptx_free.
 *
 * Indices, not pointers, name things: registers within their function, variables, functions, files and locations within
 * the module, labels by the instruction that follows them. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "../base/failure.h"
#include "space.h"

/* ---- the small tables ------------------------------------------------------------------------------------------- */

/* GM_PTX_F32 and so on; 0 is no type. */
typedef enum gm_ptx_type {
    GM_PTX_NO_TYPE,
#define GM_PTX_TYPE(id, text, bits, lanes, kind) GM_PTX_##id,
#include "ptx_types.def"
#undef GM_PTX_TYPE
    GM_PTX_TYPE_COUNT
} gm_ptx_type;

/* PTX compares types by size and kind: untyped bits agree with all of their size, signed with unsigned. */
typedef enum gm_ptx_kind {
    GM_KIND_NONE,
    GM_KIND_PRED,
    GM_KIND_BITS,
    GM_KIND_UINT,
    GM_KIND_SINT,
    GM_KIND_FLOAT
} gm_ptx_kind;

typedef struct gm_ptx_type_info {
    const char *text;    /* "f32" */
    uint8_t bits, lanes; /* of the whole: f16x2 is 32 bits of two lanes; pred is 1 */
    uint8_t kind;        /* gm_ptx_kind */
} gm_ptx_type_info;
extern const gm_ptx_type_info gm_ptx_types[GM_PTX_TYPE_COUNT];

/* Every modifier has one text and one value (GM_MOD_RN); which question it answers is its field (GM_FIELD_ROUND). */
typedef enum gm_ptx_mod {
    GM_MOD_NONE,
#define GM_PTX_MOD(id, text, field) GM_MOD_##id,
#include "ptx_mods.def"
#undef GM_PTX_MOD
    GM_MOD_COUNT
} gm_ptx_mod;

typedef enum gm_ptx_field {
#define GM_PTX_FIELD(id) GM_FIELD_##id,
#include "ptx_mods.def"
#undef GM_PTX_FIELD
    GM_FIELD_COUNT
} gm_ptx_field;

/* %tid.x and its like: GM_SPECIAL_TID_X. */
typedef enum gm_ptx_special {
#define GM_PTX_SPECIAL(id, text, type) GM_SPECIAL_##id,
#include "ptx_specials.def"
#undef GM_PTX_SPECIAL
    GM_SPECIAL_COUNT
} gm_ptx_special;

/* GM_OP_ADD: an opcode with the words that belong to its name ("cp.async.bulk.tensor", "bar.warp.sync"). An opcode has
 * one or more forms, the rows of ops.def. Dispatch on op, then on type[0] and mod[]. */
typedef enum gm_ptx_op {
#define GM_OP(id, text) GM_OP_##id,
#include "ops.def"
#undef GM_OP
    GM_OP_COUNT
} gm_ptx_op;

/* ---- instructions ----------------------------------------------------------------------------------------------- */

typedef enum gm_ptx_operand_kind {
    GM_OPERAND_NONE,     /* absent: the second destination of a setp, say. Operand positions never shift */
    GM_OPERAND_REG,      /* index: register of the function */
    GM_OPERAND_IMM,      /* bits: already of the operand's type, high bits zero (f32 as its 32 bits) */
    GM_OPERAND_SPECIAL,  /* index: gm_ptx_special; bits: n of %envreg<n> */
    GM_OPERAND_VARIABLE, /* the address of variable `index` plus bits (mov %r, tile; mov %rd, table+8), in its space */
    GM_OPERAND_FUNCTION, /* index: function of the module: what a call calls, or a function's address */
    GM_OPERAND_ADDRESS,  /* [base + offset]: see base, index, offset */
    GM_OPERAND_VECTOR,   /* {a, b}: n elements, none a vector; also arguments of a call, coordinates of a tensor */
    GM_OPERAND_LABEL,    /* index: instruction of the function that a branch goes to (== ninsts: falls off the end) */
    GM_OPERAND_TABLE,    /* index: table of the function (.branchtargets, .calltargets, .callprototype) */
    GM_OPERAND_SINK      /* _ : a value that nobody wants */
} gm_ptx_operand_kind;

typedef struct gm_ptx_operand gm_ptx_operand;
struct gm_ptx_operand {
    uint8_t kind;    /* gm_ptx_operand_kind */
    uint8_t type;    /* gm_ptx_type that the instruction reads or writes it as; for an ADDRESS that of the data */
    uint8_t negated; /* !%p */
    uint8_t base;    /* ADDRESS: REG, VARIABLE or IMM (no base: an absolute address) */
    uint32_t index;  /* see kinds; of an ADDRESS, its base's */
    uint32_t n;      /* VECTOR: how many elements */
    union {
        uint64_t bits;                  /* IMM; VARIABLE: bytes added */
        int64_t offset;                 /* ADDRESS: bytes added to the base */
        const gm_ptx_operand *elements; /* VECTOR */
    };
    /* ADDRESS of a tensor copy, [map, {x, y}]: the coordinates; otherwise NULL. */
    const gm_ptx_operand *coordinates;
};

enum { GM_PTX_NO_REG = -1, GM_PTX_MAX_OPERANDS = 10, GM_PTX_MAX_TYPES = 4 };

typedef struct gm_ptx_inst {
    uint16_t op;                    /* gm_ptx_op */
    uint16_t form;                  /* row of ops.def, for messages: gm_ptx_forms[form] */
    uint8_t type[GM_PTX_MAX_TYPES]; /* as written, left to right: cvt.rn.f16.f32 is {F16, F32} */
    uint8_t space;                  /* gm_space of the address operand; of the first where there are two */
    uint8_t space2;                 /* of the second: cp.async...shared.global is {SHARED, GLOBAL} */
    uint8_t vector;                 /* .v2 .v4 .v8: 2, 4, 8; otherwise 1 */
    uint8_t guard_negated;          /* @!%p */
    int32_t guard;                  /* register of @%p, or GM_PTX_NO_REG */
    uint8_t noperands;              /* as many as the form has, absent ones included */
    uint8_t mod[GM_FIELD_COUNT];    /* gm_ptx_mod of each field, GM_MOD_NONE where absent */
    uint32_t line, column;          /* in the PTX text, from 1 */
    uint32_t loc;                   /* in module->locs; 0 says nothing */
    const gm_ptx_operand *operands; /* in the order written; a dual destination p|q is two */
} gm_ptx_inst;

/* ---- what stands around them ------------------------------------------------------------------------------------ */

/* %r<100> makes a hundred of these with one name and numbers 0-99. */
typedef struct gm_ptx_reg {
    const char *name; /* with its %, without its number */
    int32_t number;   /* -1: the name has none */
    uint8_t type;     /* gm_ptx_type */
    uint8_t vector;   /* .v2 .v4: such a register stands as 2 or 4 neighbours, of which this is the first; else 1 */
} gm_ptx_reg;

/* An initialiser that holds an address: `size` bytes at `at` become the address of a variable or function, plus. */
typedef struct gm_ptx_fixup {
    uint64_t at;
    int64_t plus;
    uint32_t index;      /* of the variable or the function */
    uint8_t is_function; /* which of the two */
    uint8_t generic;     /* generic(name): its generic address, not the one in its own space */
    uint8_t size;        /* 1-8 */
    uint8_t shift;       /* mask(name): bits of the address that are kept, as a shift; usually 0 */
} gm_ptx_fixup;

typedef enum gm_ptx_linkage {
    GM_LINK_OWN,     /* seen in this module alone */
    GM_LINK_VISIBLE, /* .visible */
    GM_LINK_EXTERN,  /* .extern: defined elsewhere; an extern .shared array of no size is the launch's dynamic one */
    GM_LINK_WEAK,
    GM_LINK_COMMON
} gm_ptx_linkage;

typedef struct gm_ptx_variable {
    const char *name;
    uint8_t space;   /* gm_space: GLOBAL, CONST, SHARED, LOCAL or PARAM */
    uint8_t type;    /* of an element */
    uint8_t linkage; /* gm_ptx_linkage */
    uint8_t unsized; /* name[]: as long as the launch makes it; size is 0 */
    uint8_t vector;  /* elements of a .v2, .v4 type; else 1 */
    uint8_t opaque;  /* .texref, .samplerref, .surfref */
    uint8_t
        pointer; /* a parameter declared .ptr: its target's gm_space is in `target`, its alignment in `target_align` */
    uint8_t target;
    uint32_t target_align;
    uint32_t align;   /* bytes, a power of two; at least the type's */
    uint64_t size;    /* bytes of all elements */
    uint64_t offset;  /* of an entry's parameter: where it lies in the parameter block */
    int32_t function; /* that it is declared in, or -1: of the module */
    uint32_t line;
    /* The initial bytes: data[0 .. ndata), then zeros. Shared, local and parameters have none. */
    const uint8_t *data;
    uint64_t ndata;
    const gm_ptx_fixup *fixups;
    uint32_t nfixups;
} gm_ptx_variable;

typedef enum gm_ptx_table_kind { GM_TABLE_BRANCH, GM_TABLE_CALL, GM_TABLE_PROTOTYPE } gm_ptx_table_kind;

typedef struct gm_ptx_table {
    const char *name;
    uint8_t kind; /* gm_ptx_table_kind */
    uint32_t n;   /* targets: instructions (BRANCH) or functions (CALL) */
    const uint32_t *targets;
    const gm_ptx_variable *parameters; /* PROTOTYPE: results first, then arguments; names mean nothing */
    uint32_t nresults, nparameters;
    uint32_t line;
} gm_ptx_table;

typedef struct gm_ptx_function {
    const char *name;
    uint8_t is_entry, linkage, noreturn;
    uint8_t has_body; /* a declaration has none: vprintf, malloc, __assertfail, ... */
    uint32_t line;
    /* Parameters and results are variables of the module that stand side by side, in order. Kinds: space PARAM, or for
     * results and parameters of a .func that are registers, see `*_regs`: their register, else GM_PTX_NO_REG. */
    uint32_t first_result, nresults;
    uint32_t first_parameter, nparameters;
    const int32_t *result_regs, *parameter_regs;
    uint64_t parameter_bytes; /* of an entry: the size of its parameter block */
    uint32_t nregs;
    const gm_ptx_reg *regs;
    uint32_t ninsts;
    const gm_ptx_inst *insts;
    uint32_t ntables;
    const gm_ptx_table *tables;
    /* 0 where the directive is absent. */
    uint32_t reqntid[3], maxntid[3], reqnctapercluster[3];
    uint32_t minnctapersm, maxnreg, maxclusterrank;
    uint8_t explicitcluster, blocksareclusters;
} gm_ptx_function;

typedef struct gm_ptx_loc {
    uint32_t file; /* in module->files */
    uint32_t line, column;
    uint32_t inlined; /* the loc of the call that this was inlined into; 0: not inlined */
} gm_ptx_loc;

typedef struct gm_ptx {
    const char *name;     /* as given to gm_ptx_parse */
    uint32_t version;     /* 10 * major + minor: 90 is .version 9.0 */
    uint32_t target;      /* 90 is sm_90; 0: none was given */
    char target_suffix;   /* 'a' or 'f' (sm_90a), or 0 */
    uint8_t address_bits; /* 64 or 32 */
    uint8_t debug;        /* .target ..., debug */
    uint32_t nfunctions, nvariables, nlocs, nfiles;
    const gm_ptx_function *functions;
    const gm_ptx_variable *variables;
    const gm_ptx_loc *locs;   /* [0] says nothing */
    const char *const *files; /* [0] is "" */
} gm_ptx;

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* Reads `size` bytes of PTX, which need not end in a zero. `name` stands in messages (NULL: "<ptx>").
 *  GM_OK             *module is the caller's, for gm_ptx_free
 *  GM_PTX_MALFORMED  the text is no PTX
 *  GM_PTX_UNKNOWN    it may be PTX, but uses what ops.def does not have (or a later version)
 *  GM_PTX_TOO_LARGE  it asks for more than the reader's limits
 *  GM_NO_MEMORY
 * and then failure->text holds "name:line:column: reason", the line itself, and a caret under the place. */
gm_status gm_ptx_parse(const char *text, size_t size, const char *name, gm_ptx **module, gm_failure *failure);
void gm_ptx_free(gm_ptx *module);

/* The function of this name, or NULL. Names that PTX leaves mangled are compared as they stand. */
const gm_ptx_function *gm_ptx_find(const gm_ptx *module, const char *name);

/* An instruction in PTX's own words, modifiers in the manual's order, without its semicolon. Writes at most `size`
 * bytes, the closing zero included, and returns the length of the whole, as snprintf does. */
size_t gm_ptx_print_inst(const gm_ptx *module, const gm_ptx_function *function, const gm_ptx_inst *inst, char *to,
                         size_t size);
/* The opcode and its modifiers alone: "ld.global.nc.v4.f32". */
size_t gm_ptx_print_opcode(const gm_ptx_inst *inst, char *to, size_t size);

const char *gm_ptx_op_text(gm_ptx_op op);
const char *gm_ptx_mod_text(gm_ptx_mod mod);
const char *gm_ptx_special_text(gm_ptx_special special);
gm_ptx_type gm_ptx_special_type(gm_ptx_special special);
const char *gm_space_text(gm_space space);
