/* Names: each is stored once (an atom) and bound to what it means in the scopes that are open. */
#include "read.h"
#include <string.h>

void *gm_read_take(gm_reader *r, size_t size)
{
    void *memory = gm_arena_take(&r->arena, size);
    if (!memory) {
        int full = r->arena.taken + size + (1 << 17) > r->arena.limit;
        gm_read_say(r, full ? GM_PTX_TOO_LARGE : GM_NO_MEMORY, &r->token,
                    full ? "the text asks for more than the %zu bytes that one of its size may take"
                         : "not enough memory (%zu bytes are the most that are taken)",
                    r->arena.limit);
    }
    return memory;
}

/* Old copies of a list that grows stay in the arena: all of them together are no larger than the last. */
void *gm_read_push(gm_reader *r, gm_list *list, size_t size)
{
    if (list->n == list->room) {
        uint32_t room = list->room ? 2 * list->room : 8;
        void *items = gm_read_take(r, room * size);
        if (!items)
            return NULL;
        if (list->n)
            memcpy(items, list->items, list->n * size);
        list->items = items;
        list->room = room;
    }
    return (char *)list->items + list->n++ * size;
}

/* The seed differs from run to run, so that no text can be made whose names all meet in one chain. */
static uint32_t hash_of(const gm_reader *r, const char *text, size_t size)
{
    uint64_t hash = r->seed;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
    return (uint32_t)(hash >> 32);
}

static int grow_table(gm_reader *r)
{
    uint32_t room = r->room_atoms ? 4 * r->room_atoms : 4096;
    gm_atom **atoms = gm_read_take(r, room * sizeof *atoms);
    if (!atoms)
        return 0;
    for (uint32_t i = 0; i < r->room_atoms; i++)
        for (gm_atom *atom = r->atoms[i], *next; atom; atom = next) {
            next = atom->chain;
            atom->chain = atoms[atom->hash & (room - 1)];
            atoms[atom->hash & (room - 1)] = atom;
        }
    r->atoms = atoms;
    r->room_atoms = room;
    return 1;
}

static gm_atom *find(const gm_reader *r, const char *text, size_t size, uint32_t hash)
{
    if (!r->room_atoms)
        return NULL;
    gm_atom *atom = r->atoms[hash & (r->room_atoms - 1)];
    while (atom && !(atom->hash == hash && atom->size == size && !memcmp(atom->text, text, size)))
        atom = atom->chain;
    return atom;
}

gm_atom *gm_read_atom(gm_reader *r, const char *text, size_t size)
{
    uint32_t hash = hash_of(r, text, size);
    gm_atom *atom = find(r, text, size, hash);
    if (atom)
        return atom;
    if (r->natoms >= r->room_atoms && !grow_table(r))
        return NULL;
    atom = gm_read_take(r, sizeof *atom + size + 1);
    if (!atom)
        return NULL;
    char *copy = (char *)(atom + 1);
    memcpy(copy, text, size);
    atom->text = copy;
    atom->size = (uint32_t)size;
    atom->hash = hash;
    atom->chain = r->atoms[hash & (r->room_atoms - 1)];
    r->atoms[hash & (r->room_atoms - 1)] = atom;
    r->natoms++;
    return atom;
}

int gm_read_bind(gm_reader *r, gm_atom *atom, gm_binding_kind kind, uint32_t index, uint32_t count, const gm_token *at)
{
    if (atom->bound && atom->bound->depth == r->depth)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "%s is declared twice", atom->text);
    gm_binding *b = gm_read_take(r, sizeof *b);
    if (!b)
        return 0;
    *b = (gm_binding){atom->bound, r->scopes[r->depth].bindings, atom, (uint8_t)kind, r->depth, index, count};
    atom->bound = b;
    r->scopes[r->depth].bindings = b;
    return 1;
}

int gm_read_lookup(gm_reader *r, const gm_atom *atom, gm_binding *found)
{
    const gm_binding *exact = atom->bound, *range = NULL;
    uint32_t digits = 0, number = 0, scale = 1;

    /* %r12 may be the thirteenth of %r<100>. */
    while (digits < 8 && digits < atom->size && atom->text[atom->size - 1 - digits] >= '0' &&
           atom->text[atom->size - 1 - digits] <= '9') {
        number += scale * (uint32_t)(atom->text[atom->size - 1 - digits] - '0');
        scale *= 10;
        digits++;
        char first = atom->text[atom->size - digits];
        if (first == '0' && digits > 1)
            continue; /* %r012 is not %r12 */
        uint32_t size = atom->size - digits;
        const gm_atom *base = find(r, atom->text, size, hash_of(r, atom->text, size));
        for (const gm_binding *b = base ? base->bound : NULL; b; b = b->hidden)
            if (b->kind == BOUND_REGS && number < b->count && (!range || b->depth > range->depth)) {
                range = b;
                *found = *b;
                found->index += number;
                found->kind = BOUND_REG;
                break;
            }
    }
    if (exact && exact->kind != BOUND_REGS && (!range || exact->depth >= range->depth)) {
        *found = *exact;
        return 1;
    }
    return range != NULL;
}

int gm_read_open(gm_reader *r, const gm_token *at)
{
    if (r->depth + 1 == SCOPES)
        return gm_read_fail(r, GM_PTX_TOO_LARGE, at, "more than %d scopes inside one another", SCOPES - 1);
    r->scopes[++r->depth] = (gm_scope){NULL, r->refs.n};
    return 1;
}

/* Labels of this scope are known now; those that it doesn't have are looked for in the scope around it. */
int gm_read_close(gm_reader *r)
{
    gm_label_ref *refs = r->refs.items;
    uint32_t kept = r->scopes[r->depth].first_ref;

    for (uint32_t i = kept; i < r->refs.n; i++) {
        const gm_binding *b = refs[i].name->bound;
        if (b && b->depth == r->depth && b->kind == BOUND_LABEL)
            *refs[i].slot = b->index;
        else if (r->depth == 1)
            return gm_read_fail(r, GM_PTX_MALFORMED, &refs[i].at, "no label %.200s in this function",
                                refs[i].name->text);
        else
            refs[kept++] = refs[i];
    }
    r->refs.n = kept;
    for (gm_binding *b = r->scopes[r->depth].bindings; b; b = b->next)
        b->atom->bound = b->hidden;
    r->depth--;
    return 1;
}
