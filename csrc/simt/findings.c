#include "findings.h"
#include "../base/memory.h"
#include <string.h>

static const struct {
    const char *identifier, *text;
} kinds[] = {
#define GM_FINDING(name, identifier, text) {identifier, text},
#include "findings.def"
#undef GM_FINDING
};

const char *gm_finding_identifier(gm_finding_kind kind)
{
    return kinds[kind].identifier;
}

const char *gm_finding_text(gm_finding_kind kind)
{
    return kinds[kind].text;
}

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* What makes a row: everything else of two alike findings is the same or is added up. */
static int by_row(const gm_finding *a, const gm_finding *b)
{
    int order = by_number(a->kind, b->kind);
    order = order ? order : by_number(a->place.line, b->place.line);
    order = order ? order : by_number(a->other.line, b->other.line);
    order = order ? order : by_number(a->space, b->space);
    order = order ? order : by_number(a->writes, b->writes);
    return order ? order : by_number(a->bytes, b->bytes);
}

static int by_place(const gm_finding_example *a, const gm_finding_example *b)
{
    int order = by_number(a->number, b->number);
    for (int i = 2; i >= 0 && !order; i--)
        order = by_number(a->thread[i], b->thread[i]);
    return order ? order : by_number(a->address, b->address);
}

static void keep_example(gm_finding *row, const gm_finding_example *example)
{
    uint32_t at = row->example_count;
    while (at > 0 && by_place(example, &row->example[at - 1]) < 0)
        at--;
    if (at == GM_FINDING_EXAMPLES)
        return;
    uint32_t end = row->example_count < GM_FINDING_EXAMPLES ? row->example_count++ : GM_FINDING_EXAMPLES - 1;
    memmove(&row->example[at + 1], &row->example[at], (end - at) * sizeof *example);
    row->example[at] = *example;
}

/* Where the row stands, or would. */
static size_t position(const gm_findings *all, const gm_finding *what)
{
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_row(&all->row[middle], what) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grown(gm_findings *all)
{
    if (all->count < all->capacity)
        return 1;
    size_t capacity = all->capacity ? 2 * all->capacity : 8;
    gm_finding *row = gm_alloc(capacity * sizeof *row);
    if (!row)
        return 0;
    if (all->count)
        memcpy(row, all->row, all->count * sizeof *row);
    gm_free(all->row);
    all->row = row;
    all->capacity = capacity;
    return 1;
}

/* The row like `what`, made with nothing counted where there is none; NULL where there is no room for it. When all rows
 * are taken the last one in order goes: since it can never come back, what is kept depends on no order of arrival. */
static gm_finding *row_like(gm_findings *all, const gm_finding *what)
{
    size_t at = position(all, what);
    if (at < all->count && by_row(&all->row[at], what) == 0)
        return &all->row[at];
    if (all->count == GM_FINDING_ROWS) {
        if (at == all->count)
            return NULL;
        all->left_out += all->row[--all->count].lanes;
    }
    if (!grown(all))
        return NULL;
    memmove(&all->row[at + 1], &all->row[at], (all->count++ - at) * sizeof *all->row);
    gm_finding *row = &all->row[at];
    *row = *what;
    row->lanes = row->times = 0;
    row->example_count = 0;
    return row;
}

void gm_findings_add(gm_findings *all, const gm_finding *what, const gm_finding_example *example, int first)
{
    gm_finding *row = row_like(all, what);
    if (!row) {
        all->left_out++;
        return;
    }
    row->lanes++;
    row->times += first != 0;
    keep_example(row, example);
}

void gm_findings_merge(gm_findings *all, const gm_findings *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const gm_finding *other = &from->row[i];
        gm_finding *row = row_like(all, other);
        if (!row) {
            all->left_out += other->lanes;
            continue;
        }
        row->lanes += other->lanes;
        row->times += other->times;
        for (uint32_t e = 0; e < other->example_count; e++)
            keep_example(row, &other->example[e]);
    }
    all->left_out += from->left_out;
}

void gm_findings_free(gm_findings *all)
{
    gm_free(all->row);
    *all = (gm_findings){0};
}
