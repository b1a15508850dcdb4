/* The reader's own state, for its files alone: lex.c (tokens), names.c (scopes), forms.c (ops.def), number.c (constant
 * expressions), parse*.c, operands.c and check.c. ptx.h is what others see.
 *
 * Functions that can fail return whether they went well; the failure's status and text are set where it happened, and
 * nobody sets them again. Depth is bounded everywhere (SCOPES, NESTING), so hostile text can't exhaust the stack. */
#pragma once
#include <locale.h>
#include "arena.h"
#include "ptx.h"

enum {
    TEXT_LIMIT = 128 << 20,   /* bytes of PTX */
    ARENA_BASE = 64 << 20,    /* bytes that any text may take */
    ARENA_EACH = 64,          /* and so many more for each of its own */
    REGISTER_LIMIT = 1 << 20, /* of one function */
    SCOPES = 32,              /* { inside { */
    NESTING = 32,             /* ( inside (, initialisers inside initialisers */
    WORDS = 24,               /* behind one opcode */
    RAW_OPERANDS = 12,        /* of one instruction, dual ones as one */
    MAX_DIMENSIONS = 8,       /* of an array */
    ELEMENT_LIMIT = 1 << 12,  /* of one { }: arguments of a call */
};
#define SIZE_LIMIT ((uint64_t)1 << 48) /* bytes of a variable */

typedef enum gm_token_kind { TOKEN_END, TOKEN_NAME, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK } gm_token_kind;

/* NAME: an identifier, with its % or $. WORD: what stands behind a dot, colons included (L2::cache_hint). MARK: one
 * character, but <<, >>, <=, >=, ==, !=, && and ||, in `mark`, the first of two in the high byte. */
typedef struct gm_token {
    uint8_t kind;
    uint16_t mark;
    uint32_t line, size;
    const char *start;
    const char *line_start;
} gm_token;

typedef enum gm_binding_kind {
    BOUND_REG,
    BOUND_REGS,
    BOUND_VARIABLE,
    BOUND_FUNCTION,
    BOUND_LABEL,
    BOUND_TABLE
} gm_binding_kind;

/* What a name means in a scope. */
typedef struct gm_binding {
    struct gm_binding *hidden; /* what the name meant outside */
    struct gm_binding *next;   /* of the same scope */
    struct gm_atom *atom;
    uint8_t kind;   /* gm_binding_kind */
    uint32_t depth; /* of the scope */
    uint32_t index; /* of what is named; of REGS: the first of `count` */
    uint32_t count;
} gm_binding;

/* A name that the text or the tables use, once. */
typedef struct gm_atom {
    struct gm_atom *chain; /* of the hash table */
    const char *text;      /* ends in a zero */
    uint32_t size, hash;
    gm_binding *bound;
    uint16_t word;    /* as a modifier: 1 + its number among forms.words; 0: it is none */
    uint16_t form;    /* as an opcode's first word: 1 + its first form; 0: it is none */
    uint16_t special; /* 1 + gm_ptx_special, as "%tid.x" */
    uint8_t group;    /* 1 + what it stands for in ops.def */
} gm_atom;

typedef struct gm_list {
    void *items;
    uint32_t n, room;
} gm_list;

/* A number of the text: integers are kept as 64 bits, floats as a double and, if it was written 0f..., as its 32 bits.
 */
typedef struct gm_number {
    enum { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_SINGLE, NUMBER_DOUBLE } kind;
    uint64_t bits; /* SINGLE: of the float */
    double real;   /* SINGLE and DOUBLE */
} gm_number;

/* An operand before its type is known. */
typedef enum gm_raw_kind { RAW_NAME, RAW_NUMBER, RAW_ADDRESS, RAW_VECTOR, RAW_ARGUMENTS, RAW_SINK } gm_raw_kind;
typedef struct gm_raw {
    uint8_t kind; /* gm_raw_kind */
    uint8_t negated;
    uint8_t component; /* %v.x: 1 + which */
    uint8_t has_coordinates;
    gm_token at;
    gm_atom *name;     /* NAME; ADDRESS: its base, or NULL */
    gm_number number;  /* NUMBER; NAME, ADDRESS: what is added */
    uint32_t first, n; /* VECTOR, ARGUMENTS; ADDRESS: coordinates: elements in reader.scratch */
    uint32_t second;   /* of a pair a|b: 1 + its place in scratch */
} gm_raw;

typedef struct gm_scope {
    gm_binding *bindings;
    uint32_t first_ref;
} gm_scope;

/* A label that is named before it is known: `slot` becomes its instruction. */
typedef struct gm_label_ref {
    gm_atom *name;
    uint32_t *slot;
    gm_token at;
} gm_label_ref;

typedef struct gm_forms gm_forms;
typedef struct gm_form gm_form;

typedef struct gm_reader {
    gm_arena arena;
    gm_failure *failure;
    gm_status status; /* the failure's, once there is one */
    const char *name;
    const char *text, *end;
    locale_t c_locale; /* numbers have points, whatever the process's locale */

    const char *at; /* lex.c */
    const char *line_start;
    uint32_t line;
    gm_token token; /* the next one */

    gm_atom **atoms; /* names.c */
    uint32_t natoms, room_atoms, seed;
    gm_scope scopes[SCOPES];
    uint32_t depth; /* of the innermost scope: 0 is the module's */
    gm_list refs;   /* gm_label_ref */

    gm_forms *forms;

    gm_ptx module;
    gm_list functions, variables, locs, files, file_numbers;
    uint32_t loc; /* of the instructions that come */

    /* of the function that is being read */
    uint32_t function;
    int in_function;
    gm_list regs, insts, tables;
    gm_list scratch; /* gm_raw: parts of the operands of the instruction that is being read */
} gm_reader;

/* lex.c */
/* Sets the failure's text: where, why, the line and a caret. The macro is 0, for compilers to see. */
void gm_read_say(gm_reader *r, gm_status status, const gm_token *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define gm_read_fail(...) (gm_read_say(__VA_ARGS__), 0)
int gm_read_next(gm_reader *r);
int gm_read_is(const gm_reader *r, int mark);              /* is the next token this mark? */
int gm_read_word_is(const gm_reader *r, const char *word); /* ... this .word? */
int gm_read_expect(gm_reader *r, int mark);                /* takes it, or fails */
int gm_read_accept(gm_reader *r, int mark, int *taken);
int gm_token_equal(const gm_token *token, const char *text);

/* names.c */
void *gm_read_take(gm_reader *r, size_t size);                /* from the arena; fails */
void *gm_read_push(gm_reader *r, gm_list *list, size_t size); /* a new zeroed item; fails */
gm_atom *gm_read_atom(gm_reader *r, const char *text, size_t size);
int gm_read_bind(gm_reader *r, gm_atom *atom, gm_binding_kind kind, uint32_t index, uint32_t count, const gm_token *at);
/* What the name means here; a register of a range gets its number added to `index`. 0: nothing. */
int gm_read_lookup(gm_reader *r, const gm_atom *atom, gm_binding *found);
int gm_read_open(gm_reader *r, const gm_token *at);
int gm_read_close(gm_reader *r);

/* number.c */
/* A constant expression; `term` stops before a + or - that is not in parentheses. */
int gm_read_number(gm_reader *r, gm_number *number, int term);
int gm_read_integer(gm_reader *r, uint64_t least, uint64_t most, uint64_t *value, const char *what);
/* The same, but a single number: where an operator would begin something else. */
int gm_read_integer_token(gm_reader *r, uint64_t least, uint64_t most, uint64_t *value, const char *what);
int gm_number_as(const gm_number *number, gm_ptx_type type, uint64_t *bits); /* 0: not of this kind */

/* forms.c */
int gm_read_forms(gm_reader *r);

/* parse.c, parse_variable.c, parse_function.c, parse_inst.c, operands.c, check.c */
int gm_read_type(gm_reader *r, uint8_t *type);
int gm_read_variable(gm_reader *r, gm_space space, gm_ptx_linkage linkage);
int gm_read_registers(gm_reader *r);
int gm_read_parameter(gm_reader *r, gm_ptx_variable *parameter, gm_atom **name, int *is_register);
int gm_read_function(gm_reader *r, int is_entry, gm_ptx_linkage linkage);
int gm_read_loc(gm_reader *r);
int gm_read_file(gm_reader *r);
int gm_read_skip_pragma(gm_reader *r);
int gm_read_instruction(gm_reader *r); /* or a label */
int gm_read_label(gm_reader *r, gm_atom *name, const gm_token *at);
int gm_read_table(gm_reader *r, gm_atom *label, const gm_token *at);
int gm_read_raw_operands(gm_reader *r, gm_raw *raws, uint32_t *n,
                         int is_call); /* up to the semicolon, which is taken */
int gm_read_resolve(gm_reader *r, const gm_form *form, const gm_raw *const *raws, gm_ptx_inst *inst);
int gm_read_check(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at);
