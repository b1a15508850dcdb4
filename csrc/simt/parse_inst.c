/* One instruction: its words are matched with the forms of ops.def, then its operands with the form's. */
#include "forms.h"
#include <string.h>

typedef struct gm_written {
    gm_token op, words[WORDS];
    gm_atom *name;
    uint16_t numbers[WORDS]; /* of the words, 0: in no table */
    uint32_t nwords, nraws;
    gm_raw raws[RAW_OPERANDS];
} gm_written;

/* How many of the words the form takes, from the left; nwords + 1 says that it is content. */
static uint32_t match(const gm_form *form, const gm_written *w, gm_ptx_inst *inst)
{
    uint64_t used = 0;
    uint32_t ntypes = 0;

    memset(inst->mod, 0, sizeof inst->mod);
    memset(inst->type, 0, sizeof inst->type);
    for (uint32_t i = 0; i < w->nwords; i++) {
        uint32_t number = w->numbers[i], at = 0;
        int is_type = number >= GM_MOD_COUNT && number < GM_MOD_COUNT + GM_PTX_TYPE_COUNT - 1;
        for (; at < form->nelements; at++) {
            const gm_element *e = &form->elements[at];
            if (used >> at & 1 || e->is_type != is_type)
                continue;
            if (e->words[number / 64] >> number % 64 & 1)
                break;
            if (is_type) /* types are taken in order */
                return i;
        }
        if (!number || at == form->nelements)
            return i;
        used |= UINT64_C(1) << at;
        if (is_type && ntypes < GM_PTX_MAX_TYPES)
            inst->type[ntypes++] = (uint8_t)(number - GM_MOD_COUNT + 1);
        if (form->elements[at].field != GM_FIELD_NONE)
            inst->mod[form->elements[at].field] = (uint8_t)number;
    }
    for (uint32_t at = 0; at < form->nelements; at++) {
        const gm_element *e = &form->elements[at];
        int here = used >> at & 1;
        if (!here && !e->optional)
            return w->nwords;
        if (e->optional && at && form->elements[at - 1].optional == e->optional && here != (int)(used >> (at - 1) & 1))
            return w->nwords;
    }
    return w->nwords + 1;
}

static int fits_kind(const gm_spec *spec, const gm_raw *raw)
{
    int is_address = spec->role == 'm' || spec->role == 'n' || spec->role == 'k' || spec->role == 't';
    int is_list = spec->role == 'R' || spec->role == 'A';
    int is_name = spec->role == 'l' || spec->role == 'b' || spec->role == 'f';
    return (raw->kind == RAW_ADDRESS) == is_address && (raw->kind == RAW_ARGUMENTS) == is_list &&
           (!is_name || raw->kind == RAW_NAME);
}

/* Gives raws[j...] to specs[i...], leaving out what is absent. */
static int fits(const gm_reader *r, const gm_form *form, const gm_written *w, const gm_ptx_inst *inst, uint32_t i,
                uint32_t j, const gm_raw **to)
{
    if (i == form->nspecs)
        return j == w->nraws;
    const gm_spec *spec = &form->specs[i];
    uint32_t next = i + 1u + spec->pair;
    int must = spec->role == 'h'   ? inst->mod[GM_FIELD_HINT] != 0
               : spec->role == 'c' ? inst->mod[GM_FIELD_MULTICAST] != 0
                                   : !spec->optional;
    int may = must || spec->optional;

    for (uint32_t k = i; k < next; k++)
        to[k] = NULL;
    if (may && j < w->nraws && fits_kind(spec, &w->raws[j])) {
        const gm_raw *raw = &w->raws[j];
        int paired = spec->pair ? raw->second || form->specs[i + 1].optional : !raw->second;
        if (paired && fits(r, form, w, inst, next, j + 1, to)) {
            to[i] = raw;
            if (raw->second)
                to[i + 1] = (const gm_raw *)r->scratch.items + raw->second - 1;
            return 1;
        }
    }
    return !must && fits(r, form, w, inst, next, j, to);
}

static gm_space space_of(uint8_t mod)
{
    switch (mod) {
    case GM_MOD_GLOBAL:
        return GM_SPACE_GLOBAL;
    case GM_MOD_SHARED:
    case GM_MOD_SHARED_CTA:
        return GM_SPACE_SHARED;
    case GM_MOD_SHARED_CLUSTER:
        return GM_SPACE_SHARED_CLUSTER;
    case GM_MOD_LOCAL:
        return GM_SPACE_LOCAL;
    case GM_MOD_PARAM:
    case GM_MOD_PARAM_ENTRY:
    case GM_MOD_PARAM_FUNC:
        return GM_SPACE_PARAM;
    case GM_MOD_CONST:
        return GM_SPACE_CONST;
    default:
        return GM_SPACE_GENERIC;
    }
}

static int too_old(gm_reader *r, const gm_form *form, const gm_token *at)
{
    if (form->isa > r->module.version)
        return !gm_read_fail(r, GM_PTX_MALFORMED, at,
                             "this form of %s needs .version %d.%d or newer, the text has %u.%u",
                             gm_ptx_op_text((gm_ptx_op)form->op), form->isa / 10, form->isa % 10,
                             r->module.version / 10, r->module.version % 10);
    if (form->sm > r->module.target)
        return !gm_read_fail(r, GM_PTX_MALFORMED, at,
                             "this form of %s needs .target sm_%d or newer, the text has sm_%u",
                             gm_ptx_op_text((gm_ptx_op)form->op), form->sm, r->module.target);
    return 0;
}

/* No form takes all words: the one that takes most of them says what is wrong. */
static int no_form(gm_reader *r, const gm_written *w, uint32_t row, uint32_t taken)
{
    const char *name = gm_form_name(row), *text = gm_ptx_forms[row].text;
    if (taken < w->nwords)
        return gm_read_fail(r, GM_PTX_UNKNOWN, &w->words[taken], "no form of %s with this .%.*s (the nearest is %s%s)",
                            w->name->text, (int)(w->words[taken].size & 255), w->words[taken].start, name, text);
    return gm_read_fail(r, GM_PTX_UNKNOWN, &w->op, "no form of %s with so few words (the nearest is %s%s)",
                        w->name->text, name, text);
}

static int choose_form(gm_reader *r, const gm_written *w, gm_ptx_inst *inst)
{
    const gm_raw *raws[MAX_SPECS];
    uint32_t best = w->name->form, most = 0, misfit = 0;
    int tried = 0;

    for (uint32_t row = w->name->form; row; row = r->forms->forms[row].next) {
        const gm_form *form = &r->forms->forms[row];
        uint32_t taken = match(form, w, inst);
        if (taken > most) {
            most = taken;
            best = row;
        }
        if (taken <= w->nwords)
            continue;
        inst->op = form->op;
        inst->form = (uint16_t)row;
        inst->space = (uint8_t)space_of(inst->mod[GM_FIELD_SPACE]);
        inst->space2 = (uint8_t)space_of(inst->mod[GM_FIELD_SPACE2]);
        inst->vector = (uint8_t)(inst->mod[GM_FIELD_VEC] ? 2 << (inst->mod[GM_FIELD_VEC] - GM_MOD_V2) : 1);
        if (!fits(r, form, w, inst, 0, 0, raws)) {
            misfit = row;
            continue;
        }
        tried = 1;
        if (too_old(r, form, &w->op))
            continue;
        /* Its failure stands only if no later form takes the operands. */
        if (gm_read_resolve(r, form, raws, inst))
            return gm_read_check(r, inst, &w->op);
        if (r->status != GM_PTX_MALFORMED)
            return 0;
    }
    if (tried)
        return 0;
    if (misfit)
        return gm_read_fail(r, GM_PTX_MALFORMED, w->nraws ? &w->raws[w->nraws - 1].at : &w->op,
                            "%s does not take these operands (%s%s: %s)", w->name->text, gm_form_name(misfit),
                            gm_ptx_forms[misfit].text,
                            *gm_ptx_forms[misfit].operands ? gm_ptx_forms[misfit].operands : "none");
    return no_form(r, w, best, most);
}

static int guard(gm_reader *r, gm_ptx_inst *inst)
{
    int negated;
    gm_binding b;
    if (!gm_read_next(r) || !gm_read_accept(r, '!', &negated))
        return 0;
    const gm_token at = r->token;
    if (at.kind != TOKEN_NAME)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "a predicate is missing behind @");
    gm_atom *name = gm_read_atom(r, at.start, at.size);
    if (!name)
        return 0;
    if (!gm_read_lookup(r, name, &b) || b.kind != BOUND_REG ||
        ((const gm_ptx_reg *)r->regs.items)[b.index].type != GM_PTX_PRED)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "%.200s is no predicate", name->text);
    inst->guard = (int32_t)b.index;
    inst->guard_negated = (uint8_t)negated;
    return gm_read_next(r);
}

static int words(gm_reader *r, gm_written *w)
{
    for (w->nwords = 0; r->token.kind == TOKEN_WORD; w->nwords++) {
        if (w->nwords == WORDS)
            return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "more modifiers than any instruction has");
        const gm_atom *atom = gm_read_atom(r, r->token.start, r->token.size);
        if (!atom)
            return 0;
        w->words[w->nwords] = r->token;
        w->numbers[w->nwords] = atom->word;
        if (!gm_read_next(r))
            return 0;
    }
    return 1;
}

int gm_read_instruction(gm_reader *r)
{
    gm_written w;
    gm_ptx_inst inst = {.guard = GM_PTX_NO_REG, .loc = r->loc}, *place;

    if (gm_read_is(r, '@') && !guard(r, &inst))
        return 0;
    w.op = r->token;
    if (w.op.kind != TOKEN_NAME)
        return gm_read_fail(r, GM_PTX_MALFORMED, &w.op, "an instruction is missing here");
    w.name = gm_read_atom(r, w.op.start, w.op.size);
    if (!w.name || !gm_read_next(r))
        return 0;
    if (gm_read_is(r, ':') && inst.guard == GM_PTX_NO_REG)
        return gm_read_label(r, w.name, &w.op);
    if (!w.name->form)
        return gm_read_fail(r, GM_PTX_UNKNOWN, &w.op, "no instruction %.100s", w.name->text);
    inst.line = w.op.line;
    inst.column = (uint32_t)(w.op.start - w.op.line_start) + 1;
    if (!words(r, &w) || !gm_read_raw_operands(r, w.raws, &w.nraws, gm_token_equal(&w.op, "call")) ||
        !choose_form(r, &w, &inst))
        return 0;
    place = gm_read_push(r, &r->insts, sizeof *place);
    if (!place)
        return 0;
    *place = inst;
    return 1;
}
