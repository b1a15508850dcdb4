/* The table of instructions as the reader and the printer use it. */
#pragma once
#include "read.h"

enum { MAX_SPECS = 8, COUNT_VEC = 255, WORD_SETS = 6 };

/* A row of ops.def: an opcode (operands NULL) or one of its forms. gm_ptx_inst.form is such a row. */
typedef struct gm_ptx_row {
    const char *text, *operands;
    gm_ptx_op op;
    uint8_t isa, sm;
} gm_ptx_row;
extern const gm_ptx_row gm_ptx_forms[];
extern const uint32_t gm_ptx_nrows;

/* One .word of a form's text. */
typedef struct gm_pattern_word {
    const char *text; /* the alternatives as written, between | */
    size_t size;
    size_t name_size; /* of the first alternative, or of the group's name */
    gm_ptx_field field;
    int opens, closes; /* { before it, } behind it */
    int is_type;
} gm_pattern_word;
int gm_pattern_next(const char **pattern, gm_pattern_word *word); /* 0 at the end */

typedef struct gm_element {
    uint64_t words[WORD_SETS]; /* a bit for each word that may stand here */
    uint8_t field;             /* gm_ptx_field */
    uint8_t optional;          /* 0, or the number of the { } it is in: all words of one, or none */
    uint8_t is_type;
} gm_element;

typedef struct gm_spec {
    char role;      /* d D _ s S r i a m n k t h c; l label, b table, f callee, R results, A arguments */
    uint8_t number; /* of the type written */
    uint8_t type;   /* or one that is always the same */
    uint8_t wide;   /* twice as wide */
    uint8_t count;  /* 0: no vector; COUNT_VEC, or so many elements */
    uint8_t negatable, optional, pair;
} gm_spec;

struct gm_form {
    gm_element *elements;
    gm_spec specs[MAX_SPECS];
    uint16_t op, next; /* the next row with the same first word; 0: none */
    uint16_t last;     /* of a chain's first: its last */
    uint8_t nelements, nspecs, isa, sm;
};

struct gm_forms {
    gm_form *forms;     /* by row */
    gm_element *groups; /* what .group stands for */
    uint32_t nwords;
};

/* The form's pattern, opcode first: for messages and for printing. */
const char *gm_form_name(uint32_t row);
