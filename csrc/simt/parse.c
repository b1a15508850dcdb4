/* A module from its first line to its last. */
#include "forms.h"
#include "../base/memory.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NEWEST = 90 };

static const struct {
    const char *text;
    uint8_t type;
} specials[GM_SPECIAL_COUNT] = {
#define GM_PTX_SPECIAL(id, text, type) {text, GM_PTX_##type},
#include "ptx_specials.def"
#undef GM_PTX_SPECIAL
};

const char *gm_ptx_special_text(gm_ptx_special special)
{
    return specials[special].text;
}

gm_ptx_type gm_ptx_special_type(gm_ptx_special special)
{
    return (gm_ptx_type)specials[special].type;
}

const char *gm_space_text(gm_space space)
{
    static const char *const texts[GM_SPACE_COUNT] = {"generic", "global", "shared",         "local",
                                                      "param",   "const",  "shared::cluster"};
    return texts[space];
}

static int name_specials(gm_reader *r)
{
    char numbered[16];
    for (uint32_t i = 0; i < GM_SPECIAL_COUNT + 32; i++) {
        uint32_t special = i < GM_SPECIAL_COUNT ? i : GM_SPECIAL_ENVREG;
        const char *text = specials[special].text;
        if (special == GM_SPECIAL_ENVREG) {
            if (i < GM_SPECIAL_COUNT)
                continue;
            snprintf(numbered, sizeof numbered, "%s%u", text, i - GM_SPECIAL_COUNT);
            text = numbered;
        }
        gm_atom *atom = gm_read_atom(r, text, strlen(text));
        if (!atom)
            return 0;
        atom->special = (uint16_t)(1 + special);
    }
    return 1;
}

/* ---- .version, .target, .address_size ---- */

static int version(gm_reader *r)
{
    const gm_token at = r->token;
    unsigned major, minor;
    char copy[16] = "";
    if (at.kind != TOKEN_NUMBER || at.size >= sizeof copy)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "a version is missing here");
    memcpy(copy, at.start, at.size);
    if (sscanf(copy, "%3u.%3u", &major, &minor) != 2 || minor > 9)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "a version is two numbers with a point between them");
    r->module.version = 10 * major + minor;
    if (r->module.version > NEWEST)
        return gm_read_fail(r, GM_PTX_UNKNOWN, &at, "version %u.%u is too new: up to %d.%d is read", major, minor,
                            NEWEST / 10, NEWEST % 10);
    if (major == 0)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "there is no such version");
    return gm_read_next(r);
}

static int target(gm_reader *r)
{
    int more = 1;
    while (more) {
        const gm_token t = r->token;
        unsigned number = 0;
        char copy[32] = "", suffix = 0;
        if (t.kind != TOKEN_NAME || t.size >= sizeof copy)
            return gm_read_fail(r, GM_PTX_MALFORMED, &t, "a target is missing here");
        memcpy(copy, t.start, t.size);
        if (sscanf(copy, "sm_%4u%c", &number, &suffix) >= 1) {
            r->module.target = number;
            r->module.target_suffix = suffix;
            if (number < 10 || number > 199 || (suffix && suffix != 'a' && suffix != 'f'))
                return gm_read_fail(r, GM_PTX_UNKNOWN, &t, "a target that is not known");
        } else if (!strcmp(copy, "debug")) {
            r->module.debug = 1;
        } else if (strncmp(copy, "texmode_", 8) && strcmp(copy, "map_f64_to_f32")) {
            return gm_read_fail(r, GM_PTX_UNKNOWN, &t, "a target that is not known");
        }
        if (!gm_read_next(r) || !gm_read_accept(r, ',', &more))
            return 0;
    }
    return 1;
}

static int address_size(gm_reader *r)
{
    const gm_token at = r->token;
    uint64_t bits;
    if (!gm_read_integer_token(r, 0, 64, &bits, "the address size"))
        return 0;
    if (bits != 64)
        return gm_read_fail(r, GM_PTX_UNKNOWN, &at, "addresses of %u bits: only those of 64 are read", (unsigned)bits);
    r->module.address_bits = 64;
    return 1;
}

/* ---- debug information ---- */

/* .file 1 "name"[, time, size] */
int gm_read_file(gm_reader *r)
{
    uint64_t number, ignored;
    int more;
    if (!gm_read_integer_token(r, 0, UINT32_MAX, &number, "a file's number"))
        return 0;
    if (r->token.kind != TOKEN_STRING)
        return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "the file's name is missing here");
    const gm_atom *name = gm_read_atom(r, r->token.start, r->token.size);
    const char **text = gm_read_push(r, &r->files, sizeof *text);
    uint32_t *place = gm_read_push(r, &r->file_numbers, sizeof *place);
    if (!name || !text || !place)
        return 0;
    *text = name->text;
    *place = (uint32_t)number;
    if (!gm_read_next(r) || !gm_read_accept(r, ',', &more))
        return 0;
    while (more)
        if (!gm_read_integer_token(r, 0, UINT64_MAX, &ignored, "this") || !gm_read_accept(r, ',', &more))
            return 0;
    return 1;
}

/* The place of a file's number among files; 0 where it is not declared (it may be, further down: see settle_files). */
static uint32_t file_index(const gm_reader *r, uint64_t number)
{
    const uint32_t *numbers = r->file_numbers.items;
    for (uint32_t i = r->file_numbers.n; i-- > 1;)
        if (numbers[i] == number)
            return i;
    return 0;
}

/* .loc 1 12 5[, function_name label[+4], inlined_at 1 20 3] */
static int one_loc(gm_reader *r, gm_ptx_loc *loc)
{
    uint64_t file, line, column;
    if (!gm_read_integer_token(r, 0, UINT32_MAX, &file, "a file's number") ||
        !gm_read_integer_token(r, 0, UINT32_MAX, &line, "a line") ||
        !gm_read_integer_token(r, 0, UINT32_MAX, &column, "a column"))
        return 0;
    *loc = (gm_ptx_loc){.file = (uint32_t)file, .line = (uint32_t)line, .column = (uint32_t)column};
    return 1;
}

static int push_loc(gm_reader *r, const gm_ptx_loc *loc, uint32_t *index)
{
    const gm_ptx_loc *last = (const gm_ptx_loc *)r->locs.items + r->locs.n - 1;
    if (memcmp(last, loc, sizeof *loc)) {
        gm_ptx_loc *place = gm_read_push(r, &r->locs, sizeof *place);
        if (!place)
            return 0;
        *place = *loc;
    }
    *index = r->locs.n - 1;
    return 1;
}

/* The call that something was inlined into. Where that was inlined too, a .loc a little before says into what. */
static int find_call(gm_reader *r, const gm_ptx_loc *call, uint32_t *index)
{
    enum { LITTLE = 64 };
    const gm_ptx_loc *locs = r->locs.items;
    for (uint32_t i = r->locs.n, end = i > LITTLE ? i - LITTLE : 1; i-- > end;)
        if (locs[i].file == call->file && locs[i].line == call->line && locs[i].column == call->column) {
            *index = i;
            return 1;
        }
    return push_loc(r, call, index);
}

int gm_read_loc(gm_reader *r)
{
    gm_ptx_loc loc, outer;
    int more;
    if (!one_loc(r, &loc) || !gm_read_accept(r, ',', &more))
        return 0;
    while (more) {
        const gm_token word = r->token;
        if (!gm_read_next(r))
            return 0;
        if (gm_token_equal(&word, "function_name")) {
            uint64_t ignored;
            int plus;
            if (r->token.kind != TOKEN_NAME)
                return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "a label is missing here");
            if (!gm_read_next(r) || !gm_read_accept(r, '+', &plus) ||
                (plus && !gm_read_integer_token(r, 0, UINT64_MAX, &ignored, "this")))
                return 0;
        } else if (gm_token_equal(&word, "inlined_at")) {
            if (!one_loc(r, &outer) || !find_call(r, &outer, &loc.inlined))
                return 0;
        } else {
            return gm_read_fail(r, GM_PTX_MALFORMED, &word, "function_name or inlined_at is missing here");
        }
        if (!gm_read_accept(r, ',', &more))
            return 0;
    }
    return push_loc(r, &loc, &r->loc);
}

/* Locations name files by numbers that may be declared at the very end. */
static void settle_files(gm_reader *r)
{
    gm_ptx_loc *locs = r->locs.items;
    uint32_t number = 0, index = 0;
    for (uint32_t i = 1; i < r->locs.n; i++) {
        if (locs[i].file != number) {
            number = locs[i].file;
            index = file_index(r, number);
        }
        locs[i].file = index;
    }
}

/* .section .debug_info { ... }: for debuggers. */
static int skip_section(gm_reader *r)
{
    int depth = 0;
    const gm_token at = r->token;
    if (r->token.kind != TOKEN_WORD && r->token.kind != TOKEN_NAME)
        return gm_read_fail(r, GM_PTX_MALFORMED, &at, "the section's name is missing here");
    do {
        if (!gm_read_next(r))
            return 0;
        if (r->token.kind == TOKEN_END)
            return gm_read_fail(r, GM_PTX_MALFORMED, &at, "this section has no end");
        depth += gm_read_is(r, '{') - gm_read_is(r, '}');
    } while (depth > 0);
    return gm_read_next(r);
}

/* ---- the module ---- */

static int declaration(gm_reader *r)
{
    static const struct {
        const char *word;
        int linkage;
    } links[] = {
        {"visible", GM_LINK_VISIBLE}, {"extern", GM_LINK_EXTERN}, {"weak", GM_LINK_WEAK}, {"common", GM_LINK_COMMON}};
    static const struct {
        const char *word;
        gm_space space;
    } spaces[] = {
        {"global", GM_SPACE_GLOBAL}, {"const", GM_SPACE_CONST}, {"shared", GM_SPACE_SHARED}, {"local", GM_SPACE_LOCAL}};
    int linkage = GM_LINK_OWN;

    if (!r->module.target)
        return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "the .target is missing before this");
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (gm_read_word_is(r, links[i].word)) {
            linkage = links[i].linkage;
            if (!gm_read_next(r))
                return 0;
        }
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (gm_read_word_is(r, spaces[i].word))
            return gm_read_next(r) && gm_read_variable(r, spaces[i].space, (gm_ptx_linkage)linkage);
    int is_entry = gm_read_word_is(r, "entry");
    if (is_entry || gm_read_word_is(r, "func"))
        return gm_read_next(r) && gm_read_function(r, is_entry, (gm_ptx_linkage)linkage);
    return gm_read_fail(r, r->token.kind == TOKEN_WORD ? GM_PTX_UNKNOWN : GM_PTX_MALFORMED, &r->token,
                        "a directive of a module is needed here");
}

static int module(gm_reader *r)
{
    static const struct {
        const char *word;
        int (*read)(gm_reader *);
    } others[] = {{"target", target},
                  {"address_size", address_size},
                  {"file", gm_read_file},
                  {"loc", gm_read_loc},
                  {"section", skip_section}};
    if (!gm_read_next(r))
        return 0;
    if (!gm_read_word_is(r, "version"))
        return gm_read_fail(r, GM_PTX_MALFORMED, &r->token, "PTX begins with .version");
    if (!gm_read_next(r) || !version(r))
        return 0;
    while (r->token.kind != TOKEN_END) {
        size_t i = 0, n = sizeof others / sizeof *others;
        while (i < n && !gm_read_word_is(r, others[i].word))
            i++;
        if (i < n) {
            if (!gm_read_next(r) || !others[i].read(r))
                return 0;
        } else if (gm_read_word_is(r, "pragma")) {
            if (!gm_read_skip_pragma(r))
                return 0;
        } else if (!declaration(r)) {
            return 0;
        }
    }
    settle_files(r);
    return 1;
}

typedef struct gm_owned {
    gm_ptx module; /* first: the caller's pointer is to it */
    gm_arena arena;
} gm_owned;

/* Entries 0 of locations and files say nothing. */
static int begin(gm_reader *r)
{
    const char **file = gm_read_push(r, &r->files, sizeof *file);
    if (!file || !gm_read_push(r, &r->file_numbers, sizeof(uint32_t)) || !gm_read_push(r, &r->locs, sizeof(gm_ptx_loc)))
        return 0;
    *file = "";
    return name_specials(r) && gm_read_forms(r);
}

gm_status gm_ptx_parse(const char *text, size_t size, const char *name, gm_ptx **to, gm_failure *failure)
{
    gm_reader *r = gm_alloc(sizeof *r);
    gm_owned *owned = NULL;
    *to = NULL;
    if (!r) {
        snprintf(failure->text, sizeof failure->text, "the reader of PTX");
        return failure->status = GM_NO_MEMORY;
    }
    memset(r, 0, sizeof *r);
    r->failure = failure;
    r->name = name ? name : "<ptx>";
    r->text = r->at = r->line_start = text;
    r->end = text + size;
    r->line = 1;
    r->token = (gm_token){.start = text, .line_start = text, .line = 1};
    r->arena.limit = ARENA_BASE + (size_t)ARENA_EACH * size;
    r->seed = (uint32_t)((uintptr_t)r >> 6) ^ (uint32_t)clock();
    r->c_locale = newlocale(LC_ALL_MASK, "C", NULL);

    if (size > TEXT_LIMIT)
        gm_read_say(r, GM_PTX_TOO_LARGE, &r->token, "the text has %zu bytes: at most %d are read", size, TEXT_LIMIT);
    else if (!r->c_locale)
        gm_read_say(r, GM_NO_MEMORY, &r->token, "the reader of PTX");
    else if (begin(r) && module(r))
        owned = gm_read_take(r, sizeof *owned);
    if (owned) {
        gm_ptx *m = &owned->module;
        *m = r->module;
        const gm_atom *kept = gm_read_atom(r, r->name, strlen(r->name));
        m->name = kept ? kept->text : "<ptx>";
        m->functions = r->functions.items;
        m->nfunctions = r->functions.n;
        m->variables = r->variables.items;
        m->nvariables = r->variables.n;
        m->locs = r->locs.items;
        m->nlocs = r->locs.n;
        m->files = (const char *const *)r->files.items;
        m->nfiles = r->files.n;
        owned->arena = r->arena;
        r->arena = (gm_arena){0};
        r->status = GM_OK;
        *to = m;
    }
    gm_status status = r->status;
    gm_arena_free(&r->arena);
    if (r->c_locale)
        freelocale(r->c_locale);
    gm_free(r);
    return status;
}

void gm_ptx_free(gm_ptx *module)
{
    if (module) {
        gm_arena arena = ((gm_owned *)module)->arena;
        gm_arena_free(&arena);
    }
}

const gm_ptx_function *gm_ptx_find(const gm_ptx *m, const char *name)
{
    for (uint32_t i = 0; i < m->nfunctions; i++)
        if (!strcmp(m->functions[i].name, name))
            return &m->functions[i];
    return NULL;
}
