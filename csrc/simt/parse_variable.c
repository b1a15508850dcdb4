/* Declarations of registers, variables and parameters, and what variables hold at first. */
#include "read.h"
#include <string.h>

static gm_ptx_variable *variable_at(gm_reader *r, uint32_t index)
{
    return (gm_ptx_variable *)r->variables.items + index;
}

int gm_read_type(gm_reader *r, uint8_t *type)
{
    if (r->token.kind == TOKEN_WORD)
        for (int i = 1; i < GM_PTX_TYPE_COUNT; i++)
            if (gm_token_equal(&r->token, gm_ptx_types[i].text)) {
                *type = (uint8_t)i;
                return gm_read_next(r);
            }
    return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a type is missing here");
}

static int vector_of(gm_reader *r, uint8_t *vector)
{
    *vector = gm_read_word_is(r, "v2") ? 2 : gm_read_word_is(r, "v4") ? 4 : gm_read_word_is(r, "v8") ? 8 : 1;
    return *vector == 1 || gm_read_next(r);
}

static int name_of(gm_reader *r, gm_atom **name)
{
    if (r->token.kind != TOKEN_NAME)
        return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a name is missing here");
    *name = gm_read_atom(r, r->token.start, r->token.size);
    return *name && gm_read_next(r);
}

static int add_register(gm_reader *r, const char *name, int32_t number, uint8_t type, uint8_t vector)
{
    for (int i = 0; i < vector; i++) {
        gm_ptx_reg *reg;
        if (r->regs.n == REGISTER_LIMIT)
            return gm_read_fail(r, GM_PTX_TOO_LARGE, &r->token, "more than %d registers in one function",
                                REGISTER_LIMIT);
        if (!(reg = gm_read_push(r, &r->regs, sizeof *reg)))
            return 0;
        *reg = (gm_ptx_reg){name, number, type, i ? 1 : vector};
    }
    return 1;
}

/* Behind .reg: a type and names, %r<100> standing for a hundred. */
int gm_read_registers(gm_reader *r)
{
    uint8_t type, vector;
    int more = 1;
    if (!vector_of(r, &vector) || !gm_read_type(r, &type))
        return 0;
    while (more) {
        gm_atom *name;
        int many;
        uint64_t count = 1;
        const gm_token at = r->token;
        uint32_t first = r->regs.n;
        if (!name_of(r, &name) || !gm_read_accept(r, '<', &many))
            return 0;
        if (many && (!gm_read_integer_token(r, 0, REGISTER_LIMIT, &count, "the number of registers") ||
                     !gm_read_expect(r, '>')))
            return 0;
        if (!gm_read_bind(r, name, many ? BOUND_REGS : BOUND_REG, first, (uint32_t)count, &at))
            return 0;
        if (many && vector > 1)
            return gm_read_fail(r, GM_PTX_UNKNOWN, &at, "a range of vector registers");
        for (uint64_t i = 0; i < count; i++)
            if (!add_register(r, name->text, many ? (int32_t)i : -1, type, vector))
                return 0;
        if (!gm_read_accept(r, ',', &more))
            return 0;
    }
    return gm_read_expect(r, ';');
}

/* [4][2] or []: the product of all, 0 with *unsized for none. */
static int dimensions(gm_reader *r, uint64_t *elements, uint8_t *unsized)
{
    *elements = 1;
    for (int n = 0; gm_read_is(r, '['); n++) {
        uint64_t length = 0;
        const gm_token at = r->token;
        if (n == MAX_DIMENSIONS)
            return gm_read_fail(r, GM_PTX_TOO_LARGE, &at, "more than %d dimensions", MAX_DIMENSIONS);
        if (!gm_read_next(r))
            return 0;
        if (n == 0 && gm_read_is(r, ']'))
            *unsized = 1;
        else if (!gm_read_integer(r, 0, SIZE_LIMIT, &length, "a length"))
            return 0;
        else if (length && *elements > SIZE_LIMIT / length)
            return gm_read_fail(r, GM_PTX_TOO_LARGE, &at, "an array of more than 2^48 elements");
        else
            *elements *= length;
        if (!gm_read_expect(r, ']'))
            return 0;
    }
    return 1;
}

/* ---- initialisers ---- */

typedef struct gm_initial {
    gm_reader *r;
    uint8_t *data;
    uint64_t used, room, size; /* size: of the variable, the most that may be used */
    unsigned each;             /* bytes of an element */
    uint8_t type;
    gm_list fixups;
} gm_initial;

static int append(gm_initial *to, uint64_t bits, const gm_token *at)
{
    if (to->used + to->each > to->size)
        return gm_read_fail(to->r, GM_PTX_MALFORMED, at, "more initial values than the variable has elements");
    if (to->used + to->each > to->room) {
        uint64_t room = to->room ? 2 * to->room : 64;
        uint8_t *data = gm_read_take(to->r, room);
        if (!data)
            return 0;
        if (to->used)
            memcpy(data, to->data, to->used);
        to->data = data;
        to->room = room;
    }
    for (unsigned i = 0; i < to->each; i++)
        to->data[to->used++] = (uint8_t)(bits >> 8 * i);
    return 1;
}

/* name, name+4, generic(name), generic(name)+4: an address. */
static int address(gm_initial *to, int is_masked, unsigned shift)
{
    gm_reader *r = to->r;
    gm_ptx_fixup fixup = {.at = to->used, .size = (uint8_t)to->each, .shift = (uint8_t)shift};
    const gm_token at = r->token;
    gm_binding b;
    gm_atom *name;

    fixup.generic = gm_token_equal(&at, "generic");
    if (fixup.generic && (!gm_read_next(r) || !gm_read_expect(r, '(')))
        return 0;
    if (!name_of(r, &name) || (fixup.generic && !gm_read_expect(r, ')')))
        return 0;
    if (!gm_read_lookup(r, name, &b) || (b.kind != BOUND_VARIABLE && b.kind != BOUND_FUNCTION))
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "%.200s is no variable and no function", name->text);
    while (gm_read_is(r, '+') || gm_read_is(r, '-')) {
        int minus = gm_read_is(r, '-');
        gm_number term;
        if (!gm_read_next(r) || !gm_read_number(r, &term, 1))
            return 0;
        fixup.plus = (int64_t)(minus ? (uint64_t)fixup.plus - term.bits : (uint64_t)fixup.plus + term.bits);
    }
    if (!is_masked && to->each < 4)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "an address needs 4 or 8 bytes");
    fixup.index = b.index;
    fixup.is_function = b.kind == BOUND_FUNCTION;
    gm_ptx_fixup *place = gm_read_push(r, &to->fixups, sizeof *place);
    if (!place)
        return 0;
    *place = fixup;
    return append(to, 0, &at);
}

/* 0xff00(name) is the second byte of an address. */
static int masked(gm_initial *to, uint64_t mask, const gm_token *at)
{
    unsigned shift = 0;
    while (shift < 64 && mask != (uint64_t)0xff << shift)
        shift += 8;
    if (shift == 64 || to->each != 1)
        return gm_read_fail(to->r, GM_PTX_MALFORMED, at, "a mask takes one byte of an address, and makes a byte");
    return gm_read_next(to->r) && address(to, 1, shift) && gm_read_expect(to->r, ')');
}

static int values(gm_initial *to, int depth)
{
    gm_reader *r = to->r;
    const gm_token at = r->token;
    int more = 1;

    if (gm_read_is(r, '{')) {
        if (depth == NESTING)
            return gm_read_fail(r, GM_PTX_TOO_LARGE, &at, "braces that are nested deeper than %d", NESTING);
        if (!gm_read_next(r))
            return 0;
        if (gm_read_is(r, '}'))
            return gm_read_next(r);
        while (more)
            if (!values(to, depth + 1) || !gm_read_accept(r, ',', &more))
                return 0;
        return gm_read_expect(r, '}');
    }
    if (at.kind == TOKEN_NAME && !gm_token_equal(&at, "WARP_SZ"))
        return address(to, 0, 0);
    gm_number number;
    uint64_t bits;
    if (!gm_read_number(r, &number, 0))
        return 0;
    if (gm_read_is(r, '(') && number.kind < NUMBER_SINGLE)
        return masked(to, number.bits, &at);
    if (!gm_number_as(&number, to->type, &bits))
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "this number cannot be a .%s", gm_ptx_types[to->type].text);
    return append(to, bits, &at);
}

static int initial(gm_reader *r, gm_ptx_variable *v)
{
    gm_initial to = {.r = r, .size = v->size, .each = gm_ptx_types[v->type].bits / 8u, .type = v->type};
    if (!values(&to, 0))
        return 0;
    v->data = to.data;
    v->ndata = to.used;
    v->fixups = to.fixups.items;
    v->nfixups = to.fixups.n;
    return 1;
}

/* ---- variables ---- */

/* .align 16, .ptr .global .align 4, .attribute(.managed): before the type, or for parameters behind it. */
static int attributes(gm_reader *r, gm_ptx_variable *v)
{
    static const char *const spaces[] = {"const", "global", "local", "shared"};
    static const uint8_t space_ids[] = {GM_SPACE_CONST, GM_SPACE_GLOBAL, GM_SPACE_LOCAL, GM_SPACE_SHARED};
    for (;;) {
        uint64_t n;
        if (gm_read_word_is(r, "align")) {
            const gm_token at = r->token;
            if (!gm_read_next(r) || !gm_read_integer_token(r, 1, 1 << 20, &n, "an alignment"))
                return 0;
            if (n & (n - 1))
                return gm_read_fail(r, GM_PTX_MALFORMED, &at, "an alignment is a power of two");
            *(v->pointer ? &v->target_align : &v->align) = (uint32_t)n;
        } else if (gm_read_word_is(r, "attribute")) {
            int depth = 0; /* managed memory, unified addresses: nothing that changes what a kernel computes */
            do {
                if (!gm_read_next(r))
                    return 0;
                if (r->token.kind == TOKEN_END)
                    return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "')' is missing here");
                depth += gm_read_is(r, '(') - gm_read_is(r, ')');
            } while (depth > 0);
            if (!gm_read_next(r))
                return 0;
        } else if (gm_read_word_is(r, "ptr") && v->space == GM_SPACE_PARAM) {
            v->pointer = 1;
            if (!gm_read_next(r))
                return 0;
            for (size_t i = 0; i < sizeof space_ids; i++)
                if (gm_read_word_is(r, spaces[i])) {
                    v->target = space_ids[i];
                    if (!gm_read_next(r))
                        return 0;
                    break;
                }
        } else {
            return 1;
        }
    }
}

/* Everything up to the name: the same for variables and parameters. */
static int head(gm_reader *r, gm_ptx_variable *v)
{
    const gm_token at = r->token;
    if (!attributes(r, v) || !vector_of(r, &v->vector) || !gm_read_type(r, &v->type) || !attributes(r, v))
        return 0;
    const gm_ptx_type_info *type = &gm_ptx_types[v->type];
    v->opaque = type->kind == GM_KIND_NONE;
    if (type->bits < 8 || (v->opaque && v->space != GM_SPACE_PARAM && v->space != GM_SPACE_GLOBAL))
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "no variable has type .%s", type->text);
    return 1;
}

/* The name and the length, with the size that follows from them. */
static int body(gm_reader *r, gm_ptx_variable *v, gm_atom **name)
{
    uint64_t elements, each = gm_ptx_types[v->type].bits / 8u * v->vector;
    const gm_token at = r->token;
    if (!name_of(r, name) || !dimensions(r, &elements, &v->unsized))
        return 0;
    if (elements > SIZE_LIMIT / each)
        return gm_read_fail(r, GM_PTX_TOO_LARGE, &at, "%.200s has more than 2^48 bytes", (*name)->text);
    v->name = (*name)->text;
    v->line = at.line;
    v->size = v->unsized ? 0 : elements * each;
    if (!v->align)
        v->align = (uint32_t)each;
    return 1;
}

/* A second declaration of a variable of the module is the same one; the one that is not .extern says what it is. */
static int declare(gm_reader *r, const gm_ptx_variable *v, gm_atom *name, const gm_token *at, uint32_t *index)
{
    const gm_binding *b = name->bound;
    if (b && b->depth == r->depth && b->kind == BOUND_VARIABLE && r->depth == 0) {
        gm_ptx_variable *old = variable_at(r, b->index);
        if (old->space != v->space || old->type != v->type ||
            (old->linkage != GM_LINK_EXTERN && v->linkage != GM_LINK_EXTERN))
            return gm_read_fail(r, GM_PTX_MALFORMED, at, "%.200s is declared twice", name->text);
        if (v->linkage != GM_LINK_EXTERN)
            *old = *v;
        *index = b->index;
        return 1;
    }
    *index = r->variables.n;
    gm_ptx_variable *place = gm_read_push(r, &r->variables, sizeof *place);
    if (!place)
        return 0;
    *place = *v;
    return gm_read_bind(r, name, BOUND_VARIABLE, *index, 1, at);
}

/* Behind .global and its like, up to the semicolon. */
int gm_read_variable(gm_reader *r, gm_space space, gm_ptx_linkage linkage)
{
    gm_ptx_variable common = {.space = (uint8_t)space, .linkage = (uint8_t)linkage};
    int more = 1;
    common.function = r->in_function ? (int32_t)r->function : -1;
    if (!head(r, &common))
        return 0;
    while (more) {
        gm_ptx_variable v = common;
        gm_atom *name;
        uint32_t index;
        int has_initial;
        const gm_token at = r->token;
        if (!body(r, &v, &name) || !declare(r, &v, name, &at, &index) || !gm_read_accept(r, '=', &has_initial))
            return 0;
        if (v.unsized && !has_initial && linkage != GM_LINK_EXTERN)
            return gm_read_fail(r, GM_PTX_MALFORMED, &at, "%.200s has no length", name->text);
        if (has_initial) {
            if (space != GM_SPACE_GLOBAL && space != GM_SPACE_CONST)
                return gm_read_fail(r, GM_PTX_MALFORMED, &at, "only .global and .const have initial values");
            v.size = v.unsized ? SIZE_LIMIT : v.size;
            if (!initial(r, &v))
                return 0;
            v.size = v.unsized ? v.ndata : v.size;
            v.unsized = 0;
            *variable_at(r, index) = v;
        }
        if (!gm_read_accept(r, ',', &more))
            return 0;
    }
    return gm_read_expect(r, ';');
}

/* One of a list in parentheses: .param .b32 name, or for functions .reg .b32 name. Not bound yet. */
int gm_read_parameter(gm_reader *r, gm_ptx_variable *v, gm_atom **name, int *is_register)
{
    *is_register = gm_read_word_is(r, "reg");
    if (!*is_register && !gm_read_word_is(r, "param"))
        return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a parameter begins with .param or .reg");
    *v = (gm_ptx_variable){.space = GM_SPACE_PARAM, .function = (int32_t)r->function};
    if (!gm_read_next(r))
        return 0;
    if (!*is_register)
        return head(r, v) && body(r, v, name);
    const gm_token at = r->token;
    if (!vector_of(r, &v->vector) || !gm_read_type(r, &v->type) || !name_of(r, name))
        return 0;
    if (v->vector > 1)
        return gm_read_fail(r, GM_PTX_UNKNOWN, &at, "a parameter in a vector register");
    v->name = (*name)->text;
    v->line = at.line;
    v->size = (gm_ptx_types[v->type].bits + 7u) / 8u;
    v->align = (uint32_t)v->size;
    return 1;
}
