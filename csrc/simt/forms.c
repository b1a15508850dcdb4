/* ops.def's rows, made ready for matching: words become numbers, operands become gm_spec. */
#include "forms.h"
#include <string.h>

const gm_ptx_type_info gm_ptx_types[GM_PTX_TYPE_COUNT] = {
    {"", 0, 0, GM_KIND_NONE},
#define GM_PTX_TYPE(id, text, bits, lanes, kind) {text, bits, lanes, GM_KIND_##kind},
#include "ptx_types.def"
#undef GM_PTX_TYPE
};

static const struct {
    const char *text;
    gm_ptx_field field;
} mods[GM_MOD_COUNT] = {
    {"", GM_FIELD_NONE},
#define GM_PTX_MOD(id, text, field) {text, GM_FIELD_##field},
#include "ptx_mods.def"
};

/* Fields of groups; those of types have none. */
static const struct {
    const char *name, *texts;
    gm_ptx_field field;
} groups[] = {
#define GM_PTX_GROUP(name, field, texts) {name, texts, GM_FIELD_##field},
#define GM_PTX_TYPES(name, texts)        {name, texts, GM_FIELD_NONE},
#include "ptx_mods.def"
};
enum { NGROUPS = sizeof groups / sizeof *groups };

static const char *const op_texts[GM_OP_COUNT] = {
#define GM_OP(id, text) text,
#include "ops.def"
};

/* The table with its opcodes as rows among the forms, so that each form belongs to the opcode above it. */
const gm_ptx_row gm_ptx_forms[] = {
#define GM_OP(id, name)                       {name, NULL, GM_OP_##id, 0, 0},
#define GM_FORM(modifiers, operands, isa, sm) {modifiers, operands, GM_OP_COUNT, isa, sm},
#include "ops.def"
};
const uint32_t gm_ptx_nrows = sizeof gm_ptx_forms / sizeof *gm_ptx_forms;

const char *gm_ptx_op_text(gm_ptx_op op)
{
    return op_texts[op];
}

const char *gm_form_name(uint32_t row)
{
    while (gm_ptx_forms[row].operands)
        row--;
    return gm_ptx_forms[row].text;
}

const char *gm_ptx_mod_text(gm_ptx_mod mod)
{
    return mods[mod].text;
}

static int same(const char *a, const char *text, size_t size)
{
    return *a == *text && strlen(a) == size && !memcmp(a, text, size);
}

/* Cuts the next .word off a pattern; what it means is not looked at. 0 at the end. */
static int next_word(const char **pattern, gm_pattern_word *word)
{
    const char *p = *pattern;
    *word = (gm_pattern_word){.opens = *p == '{', .field = GM_FIELD_NONE};
    p += word->opens;
    if (*p != '.')
        return 0;
    word->text = ++p;
    word->size = strcspn(p, ".{}");
    p += word->size;
    word->closes = *p == '}';
    *pattern = p + word->closes;
    word->name_size = strcspn(word->text, "=.{}|");
    return 1;
}

/* .group or .group=some|of|it */
static int names_group(const gm_pattern_word *word)
{
    return word->name_size == word->size || word->text[word->name_size] == '=';
}

int gm_pattern_next(const char **pattern, gm_pattern_word *word)
{
    if (!next_word(pattern, word))
        return 0;
    for (size_t i = 0; i < NGROUPS && names_group(word); i++)
        if (same(groups[i].name, word->text, word->name_size)) {
            word->field = groups[i].field;
            word->is_type = groups[i].field == GM_FIELD_NONE;
            return 1;
        }
    for (int i = 1; i < GM_PTX_TYPE_COUNT; i++)
        word->is_type |= same(gm_ptx_types[i].text, word->text, word->name_size);
    for (int i = 1; i < GM_MOD_COUNT && !word->is_type; i++)
        if (same(mods[i].text, word->text, word->name_size))
            word->field = mods[i].field;
    return 1;
}

/* Every word of the tables is numbered: modifiers by gm_ptx_mod, types behind them, then words that only name. */
static gm_atom *number_word(gm_reader *r, const char *text, size_t size)
{
    gm_atom *atom = gm_read_atom(r, text, size);
    if (atom && !atom->word) {
        if (r->forms->nwords == 64 * WORD_SETS) {
            gm_read_say(r, GM_PTX_TOO_LARGE, &r->token, "ops.def has more words than a gm_element");
            return NULL;
        }
        atom->word = (uint16_t)r->forms->nwords++;
    }
    return atom;
}

static int is_type(uint32_t number)
{
    return number >= GM_MOD_COUNT && number < GM_MOD_COUNT + GM_PTX_TYPE_COUNT - 1;
}

/* Words between | or spaces. */
static int add_alternatives(gm_reader *r, gm_element *element, const char *text, size_t size)
{
    const char *end = text + size;
    while (text < end) {
        size_t one = strcspn(text, " |.{}");
        const gm_atom *atom = number_word(r, text, one);
        if (!atom)
            return 0;
        element->words[atom->word / 64] |= UINT64_C(1) << atom->word % 64;
        text += one;
        if (text < end)
            text++;
    }
    return 1;
}

static int number_words(gm_reader *r)
{
    r->forms->nwords = 1;
    for (int i = 1; i < GM_MOD_COUNT; i++)
        if (!number_word(r, mods[i].text, strlen(mods[i].text)))
            return 0;
    for (int i = 1; i < GM_PTX_TYPE_COUNT; i++)
        if (!number_word(r, gm_ptx_types[i].text, strlen(gm_ptx_types[i].text)))
            return 0;
    for (size_t i = 0; i < NGROUPS; i++) {
        gm_element *group = &r->forms->groups[i];
        gm_atom *atom = gm_read_atom(r, groups[i].name, strlen(groups[i].name));
        if (!atom || !add_alternatives(r, group, groups[i].texts, strlen(groups[i].texts)))
            return 0;
        atom->group = (uint8_t)(1 + i);
        group->field = (uint8_t)groups[i].field;
        group->is_type = groups[i].field == GM_FIELD_NONE;
    }
    return 1;
}

static size_t dots(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '.';
    return n;
}

/* The same meaning as gm_pattern_next's, found by the atoms: this happens to the whole table for every text. */
static int add_element(gm_reader *r, gm_element *element, const gm_pattern_word *word)
{
    const gm_atom *atom = number_word(r, word->text, word->name_size);
    if (!atom)
        return 0;
    if (!atom->group || !names_group(word)) {
        element->is_type = (uint8_t)is_type(atom->word);
        element->field = (uint8_t)(atom->word < GM_MOD_COUNT ? mods[atom->word].field : GM_FIELD_NONE);
        return add_alternatives(r, element, word->text, word->size);
    }
    *element = r->forms->groups[atom->group - 1];
    if (word->name_size == word->size)
        return 1;
    memset(element->words, 0, sizeof element->words);
    return add_alternatives(r, element, word->text + word->name_size + 1, word->size - word->name_size - 1);
}

static int add_elements(gm_reader *r, gm_form *form, const char *pattern)
{
    gm_pattern_word word;
    uint8_t inside = form->nelements, optional = 0; /* a number that no other { } of the form has */
    while (next_word(&pattern, &word)) {
        gm_element *element = &form->elements[form->nelements++];
        if (word.opens)
            optional = ++inside;
        if (!add_element(r, element, &word))
            return 0;
        element->optional = optional;
        if (word.closes)
            optional = 0;
    }
    return 1;
}

/* One operand of a form: see the head of ops.def. */
static const char *add_spec(gm_spec *spec, const char *p)
{
    static const char *const names[] = {"label", "table", "callee", "results", "arguments"};
    spec->role = *p;
    size_t size = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(p, names[i], strlen(names[i]))) {
            spec->role = "lbfRA"[i];
            size = strlen(names[i]);
        }
    p += size;
    if (*p >= '1' && *p <= '3')
        spec->number = (uint8_t)(*p++ - '0');
    if (*p == 'w') {
        spec->wide = 1;
        p++;
    }
    if (*p == ':') {
        const char *name = ++p;
        p += strspn(p, "abcdefghijklmnopqrstuvwyz");
        p += strspn(p, "0123456789");
        for (int i = 1; i < GM_PTX_TYPE_COUNT; i++)
            if (strlen(gm_ptx_types[i].text) == (size_t)(p - name) &&
                !memcmp(gm_ptx_types[i].text, name, (size_t)(p - name)))
                spec->type = (uint8_t)i;
    }
    if (*p == 'v') {
        spec->count = COUNT_VEC;
        p++;
    } else if (*p == 'x') {
        spec->count = (uint8_t)(p[1] - '0');
        p += 2;
    }
    spec->negatable = *p == '!';
    p += *p == '!';
    spec->optional = *p == '?';
    p += *p == '?';
    return p;
}

static void add_specs(gm_form *form, const char *p)
{
    while (*p) {
        gm_spec *spec = &form->specs[form->nspecs++];
        p = add_spec(spec, p);
        if (*p == '|') {
            spec->pair = 1;
            p = add_spec(&form->specs[form->nspecs++], p + 1);
        }
        p += *p == ' ';
    }
}

int gm_read_forms(gm_reader *r)
{
    r->forms = gm_read_take(r, sizeof *r->forms);
    if (!r->forms || !(r->forms->groups = gm_read_take(r, NGROUPS * sizeof *r->forms->groups)) || !number_words(r))
        return 0;
    gm_form *forms = gm_read_take(r, gm_ptx_nrows * sizeof *forms);
    if (!forms)
        return 0;
    r->forms->forms = forms;

    /* From the last to the first, so that each chain of one first word is in the table's order. */
    for (uint32_t row = 0, op = 0; row < gm_ptx_nrows; row++) {
        if (!gm_ptx_forms[row].operands) {
            op = row;
            continue;
        }
        gm_form *form = &forms[row];
        const char *name = gm_ptx_forms[op].text, *rest = strchr(name, '.');
        size_t first = rest ? (size_t)(rest - name) : strlen(name);
        *form =
            (gm_form){.op = (uint16_t)gm_ptx_forms[op].op, .isa = gm_ptx_forms[row].isa, .sm = gm_ptx_forms[row].sm};
        form->elements = gm_read_take(r, (dots(name) + dots(gm_ptx_forms[row].text) + 1) * sizeof *form->elements);
        if (!form->elements)
            return 0;
        if ((rest && !add_elements(r, form, rest)) || !add_elements(r, form, gm_ptx_forms[row].text))
            return 0;
        add_specs(form, gm_ptx_forms[row].operands);

        gm_atom *atom = gm_read_atom(r, name, first);
        if (!atom)
            return 0;
        if (!atom->form)
            atom->form = (uint16_t)row;
        else
            forms[forms[atom->form].last].next = (uint16_t)row;
        forms[atom->form].last = (uint16_t)row;
    }
    return 1;
}
