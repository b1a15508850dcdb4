/* Entries and functions: parameters, directives, and the body with its scopes. */
#include "read.h"
#include <string.h>

static gm_ptx_function *function_of(gm_reader *r)
{
    return (gm_ptx_function *)r->functions.items + r->function;
}

/* (.param .b32 x, .reg .b32 y): variables side by side, each bound to its name unless that is _. */
static int parameters(gm_reader *r, uint32_t *first, uint32_t *n, const int32_t **regs)
{
    gm_list numbers = {0};
    int more;
    *first = r->variables.n;
    if (!gm_read_expect(r, '('))
        return 0;
    more = !gm_read_is(r, ')');
    while (more) {
        gm_ptx_variable v, *place;
        gm_atom *name;
        int is_register;
        const gm_token at = r->token;
        if (!gm_read_parameter(r, &v, &name, &is_register))
            return 0;
        uint32_t index = r->variables.n;
        int32_t *number = gm_read_push(r, &numbers, sizeof *number);
        if (!number || !(place = gm_read_push(r, &r->variables, sizeof *place)))
            return 0;
        *place = v;
        *number = GM_PTX_NO_REG;
        if (is_register) {
            gm_ptx_reg *reg = gm_read_push(r, &r->regs, sizeof *reg);
            if (!reg)
                return 0;
            *number = (int32_t)r->regs.n - 1;
            *reg = (gm_ptx_reg){name->text, -1, v.type, 1};
            index = (uint32_t)*number;
        }
        if (strcmp(name->text, "_") && !gm_read_bind(r, name, is_register ? BOUND_REG : BOUND_VARIABLE, index, 1, &at))
            return 0;
        if (!gm_read_accept(r, ',', &more))
            return 0;
    }
    *n = r->variables.n - *first;
    *regs = numbers.items;
    return gm_read_expect(r, ')');
}

static void lay_out(gm_reader *r, gm_ptx_function *f)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < f->nparameters; i++) {
        gm_ptx_variable *v = (gm_ptx_variable *)r->variables.items + f->first_parameter + i;
        end = (end + v->align - 1) & ~(uint64_t)(v->align - 1);
        v->offset = end;
        end += v->size;
    }
    f->parameter_bytes = end;
}

/* .maxntid 256, 1, 1: up to n numbers; those that are not given are 1. */
static int numbers(gm_reader *r, uint32_t *to, int n)
{
    int more = 1;
    for (int i = 0; i < n; i++)
        to[i] = 1;
    for (int i = 0; more; i++) {
        uint64_t value;
        if (i == n)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "more than %d numbers", n);
        if (!gm_read_integer(r, 0, INT32_MAX, &value, "this") || !gm_read_accept(r, ',', &more))
            return 0;
        to[i] = (uint32_t)value;
    }
    return 1;
}

int gm_read_skip_pragma(gm_reader *r)
{
    int more = 1;
    while (more) {
        if (!gm_read_next(r))
            return 0;
        if (r->token.kind != TOKEN_STRING)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a pragma is a string");
        if (!gm_read_next(r))
            return 0;
        more = gm_read_is(r, ',');
    }
    return gm_read_expect(r, ';');
}

/* What stands between the parameters and the body. */
static int directives(gm_reader *r, gm_ptx_function *f)
{
    uint32_t ignored;
    const struct {
        const char *word;
        uint32_t *to;
        int n;
    } counted[] = {
        {"maxntid", f->maxntid, 3},
        {"reqntid", f->reqntid, 3},
        {"minnctapersm", &f->minnctapersm, 1},
        {"maxnctapersm", &ignored, 1},
        {"maxnreg", &f->maxnreg, 1},
        {"reqnctapercluster", f->reqnctapercluster, 3},
        {"maxclusterrank", &f->maxclusterrank, 1},
        {"abi_preserve", &ignored, 1},
        {"abi_preserve_control", &ignored, 1},
    };
    const struct {
        const char *word;
        uint8_t *to;
    } flags[] = {{"noreturn", &f->noreturn},
                 {"explicitcluster", &f->explicitcluster},
                 {"blocksareclusters", &f->blocksareclusters}};

    while (r->token.kind == TOKEN_WORD) {
        int known = 0;
        for (size_t i = 0; i < sizeof flags / sizeof *flags && !known; i++)
            if ((known = gm_read_word_is(r, flags[i].word))) {
                *flags[i].to = 1;
                if (!gm_read_next(r))
                    return 0;
            }
        for (size_t i = 0; i < sizeof counted / sizeof *counted && !known; i++)
            if ((known = gm_read_word_is(r, counted[i].word)) &&
                (!gm_read_next(r) || !numbers(r, counted[i].to, counted[i].n)))
                return 0;
        if (!known && (known = gm_read_word_is(r, "pragma")) && !gm_read_skip_pragma(r))
            return 0;
        if (!known)
            return gm_read_fail(r, GM_PTX_UNKNOWN, &r->token, "a directive that no function has");
    }
    return 1;
}

/* ---- the body ---- */

/* name: .branchtargets a, b;  name: .calltargets f, g;  name: .callprototype (...) _ (...); */
static int targets(gm_reader *r, gm_ptx_table *t)
{
    int more = 1;

    /* The array must not move once labels are to be written into it, so it is taken whole: count the names first. */
    const char *at = r->at, *line_start = r->line_start;
    uint32_t line = r->line;
    gm_token first = r->token;
    for (;;) {
        if (r->token.kind != TOKEN_NAME)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a name is missing here");
        t->n++;
        if (!gm_read_next(r) || !gm_read_accept(r, ',', &more))
            return 0;
        if (!more)
            break;
    }
    r->at = at;
    r->line_start = line_start;
    r->line = line;
    r->token = first;
    uint32_t *places = gm_read_take(r, t->n * sizeof *places);
    if (!places)
        return 0;
    t->targets = places;
    for (uint32_t i = 0; i < t->n; i++) {
        const gm_token name_at = r->token;
        gm_atom *name = gm_read_atom(r, name_at.start, name_at.size);
        gm_binding b;
        if (!name)
            return 0;
        if (t->kind == GM_TABLE_BRANCH) {
            gm_label_ref *ref = gm_read_push(r, &r->refs, sizeof *ref);
            if (!ref)
                return 0;
            *ref = (gm_label_ref){name, &places[i], name_at};
        } else if (gm_read_lookup(r, name, &b) && b.kind == BOUND_FUNCTION) {
            places[i] = b.index;
        } else {
            return gm_read_fail(r, GM_PTX_MALFORMED, &name_at, "%.200s is no function", name->text);
        }
        if (!gm_read_next(r) || !gm_read_accept(r, ',', &more))
            return 0;
    }
    return 1;
}

static int prototype(gm_reader *r, gm_ptx_table *t)
{
    gm_list list = {0};
    for (int part = 0; part < 2; part++) {
        int any, more;
        uint32_t before = list.n;
        if (part == 1) {
            if (r->token.kind != TOKEN_NAME)
                return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a _ is missing here");
            if (!gm_read_next(r))
                return 0;
        }
        if (!gm_read_accept(r, '(', &any))
            return 0;
        more = any && !gm_read_is(r, ')');
        while (more) {
            gm_ptx_variable *place = gm_read_push(r, &list, sizeof *place), v;
            gm_atom *name;
            int is_register;
            if (!place || !gm_read_parameter(r, &v, &name, &is_register) || !gm_read_accept(r, ',', &more))
                return 0;
            *place = v;
        }
        if (any && !gm_read_expect(r, ')'))
            return 0;
        *(part ? &t->nparameters : &t->nresults) = list.n - before;
    }
    t->parameters = list.items;
    while (r->token.kind == TOKEN_WORD) { /* .noreturn, .abi_preserve n */
        if (!gm_read_next(r) || (r->token.kind == TOKEN_NUMBER && !gm_read_next(r)))
            return 0;
    }
    return 1;
}

/* Behind a name, at its colon: a label, or a table of targets. */
int gm_read_label(gm_reader *r, gm_atom *name, const gm_token *at)
{
    static const char *const kinds[] = {"branchtargets", "calltargets", "callprototype"};
    if (!gm_read_next(r))
        return 0;
    for (int kind = 0; kind < 3; kind++)
        if (gm_read_word_is(r, kinds[kind])) {
            gm_ptx_table t = {.name = name->text, .kind = (uint8_t)kind, .line = at->line}, *place;
            if (!gm_read_next(r) || !(kind == GM_TABLE_PROTOTYPE ? prototype : targets)(r, &t) ||
                !gm_read_expect(r, ';') || !(place = gm_read_push(r, &r->tables, sizeof *place)))
                return 0;
            *place = t;
            return gm_read_bind(r, name, BOUND_TABLE, r->tables.n - 1, 1, at);
        }
    return gm_read_bind(r, name, BOUND_LABEL, r->insts.n, 1, at);
}

static int directive(gm_reader *r)
{
    static const struct {
        const char *word;
        gm_space space;
    } spaces[] = {{"local", GM_SPACE_LOCAL},
                  {"shared", GM_SPACE_SHARED},
                  {"param", GM_SPACE_PARAM},
                  {"global", GM_SPACE_GLOBAL},
                  {"const", GM_SPACE_CONST}};
    gm_ptx_linkage linkage = GM_LINK_OWN;

    if (gm_read_word_is(r, "reg"))
        return gm_read_next(r) && gm_read_registers(r);
    if (gm_read_word_is(r, "loc"))
        return gm_read_next(r) && gm_read_loc(r);
    if (gm_read_word_is(r, "pragma"))
        return gm_read_skip_pragma(r);
    if (gm_read_word_is(r, "file"))
        return gm_read_next(r) && gm_read_file(r);
    if (gm_read_word_is(r, "extern")) {
        linkage = GM_LINK_EXTERN;
        if (!gm_read_next(r))
            return 0;
    }
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (gm_read_word_is(r, spaces[i].word))
            return gm_read_next(r) && gm_read_variable(r, spaces[i].space, linkage);
    return gm_read_fail(r, GM_PTX_UNKNOWN, &r->token, "a directive that no body has");
}

/* Up to the brace that closes the function; deeper scopes are opened and closed on the way. */
static int body(gm_reader *r)
{
    uint32_t outside = r->depth;
    while (!gm_read_is(r, '}') || r->depth > outside) {
        int ok;
        if (r->token.kind == TOKEN_END)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "the text ends inside of a function");
        if (gm_read_is(r, '{'))
            ok = gm_read_open(r, &r->token) && gm_read_next(r);
        else if (gm_read_is(r, '}'))
            ok = gm_read_close(r) && gm_read_next(r);
        else if (r->token.kind == TOKEN_WORD)
            ok = directive(r);
        else
            ok = gm_read_instruction(r);
        if (!ok)
            return 0;
    }
    return 1;
}

/* A name that was declared before is the same function, and must take the same. */
static int declare(gm_reader *r, gm_atom *name, const gm_token *at)
{
    const gm_binding *b = name->bound;
    if (b && (b->depth != 0 || b->kind != BOUND_FUNCTION))
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "%.200s is declared twice", name->text);
    if (b) {
        r->function = b->index;
        return 1;
    }
    r->function = r->functions.n;
    gm_ptx_function *f = gm_read_push(r, &r->functions, sizeof *f);
    return f && gm_read_bind(r, name, BOUND_FUNCTION, r->function, 1, at);
}

static int same_sizes(gm_reader *r, uint32_t a, uint32_t na, uint32_t b, uint32_t nb)
{
    const gm_ptx_variable *v = r->variables.items;
    int same = na == nb;
    for (uint32_t i = 0; same && i < na; i++)
        same = v[a + i].size == v[b + i].size;
    return same;
}

/* Behind .entry or .func. */
int gm_read_function(gm_reader *r, int is_entry, gm_ptx_linkage linkage)
{
    gm_ptx_function f = {.is_entry = (uint8_t)is_entry, .linkage = (uint8_t)linkage};

    r->regs = r->insts = r->tables = (gm_list){0};
    r->loc = 0;
    if (gm_read_word_is(r, "attribute"))
        return gm_read_fail(r, GM_PTX_UNKNOWN, &r->token, "a function with attributes");
    /* Results stand before the name, so their scope is open before the function is known. */
    r->function = r->functions.n;
    const gm_token open = r->token;
    if (!gm_read_open(r, &open))
        return 0;
    if (gm_read_is(r, '(')) {
        if (is_entry)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "an entry gives no results");
        if (!parameters(r, &f.first_result, &f.nresults, &f.result_regs))
            return 0;
    }
    const gm_token at = r->token;
    if (at.kind != TOKEN_NAME)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "the function's name is missing here");
    gm_atom *name = gm_read_atom(r, at.start, at.size);
    if (!name || !gm_read_next(r))
        return 0;
    f.name = name->text;
    f.line = at.line;
    if (gm_read_is(r, '(') && !parameters(r, &f.first_parameter, &f.nparameters, &f.parameter_regs))
        return 0;
    if (!directives(r, &f))
        return 0;
    lay_out(r, &f);

    /* The name itself belongs to the module. */
    uint32_t depth = r->depth, before = r->functions.n;
    r->depth = 0;
    int ok = declare(r, name, &at);
    r->depth = depth;
    if (!ok)
        return 0;
    const gm_ptx_function *old = function_of(r);
    int is_new = before != r->functions.n;
    for (uint32_t i = 0; i < f.nresults + f.nparameters; i++) {
        uint32_t index = i < f.nresults ? f.first_result + i : f.first_parameter + i - f.nresults;
        ((gm_ptx_variable *)r->variables.items)[index].function = (int32_t)r->function;
    }
    if (!is_new && (old->is_entry != f.is_entry ||
                    !same_sizes(r, old->first_parameter, old->nparameters, f.first_parameter, f.nparameters) ||
                    !same_sizes(r, old->first_result, old->nresults, f.first_result, f.nresults)))
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "%.200s was declared before, and takes something else", f.name);
    if (gm_read_is(r, ';')) {
        if (is_new)
            *function_of(r) = f;
        return gm_read_close(r) && gm_read_next(r);
    }
    if (old->has_body)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "%.200s has two bodies", f.name);
    f.has_body = 1;
    *function_of(r) = f; /* calls of itself see what it takes */
    r->in_function = 1;
    if (!gm_read_expect(r, '{') || !body(r) || !gm_read_close(r))
        return 0;
    r->in_function = 0;
    f.regs = r->regs.items;
    f.nregs = r->regs.n;
    f.insts = r->insts.items;
    f.ninsts = r->insts.n;
    f.tables = r->tables.items;
    f.ntables = r->tables.n;
    *function_of(r) = f;
    return gm_read_next(r);
}
