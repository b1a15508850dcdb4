#include "arena.h"
#include "../base/memory.h"
#include <string.h>

enum { BLOCK = 1 << 16, ALIGN = 16 };

struct gm_arena_block {
    struct gm_arena_block *older;
    char pad[ALIGN - sizeof(void *)];
    char bytes[];
};

void *gm_arena_take(gm_arena *arena, size_t size)
{
    if (size > arena->limit)
        return NULL;
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (size > arena->left) {
        size_t room = size > BLOCK / 4 ? size : (size_t)BLOCK - sizeof(struct gm_arena_block);
        if (arena->taken + room > arena->limit)
            return NULL;
        struct gm_arena_block *block = gm_alloc(sizeof *block + room);
        if (!block)
            return NULL;
        arena->taken += room;
        if (room == size && arena->newest) { /* a large piece of its own: the newest block is still the one to fill */
            block->older = arena->newest->older;
            arena->newest->older = block;
            return memset(block->bytes, 0, size);
        }
        block->older = arena->newest;
        arena->newest = block;
        arena->next = block->bytes;
        arena->left = room;
    }
    void *piece = memset(arena->next, 0, size);
    arena->next += size;
    arena->left -= size;
    return piece;
}

void gm_arena_free(gm_arena *arena)
{
    struct gm_arena_block *block = arena->newest;
    while (block) {
        struct gm_arena_block *older = block->older;
        gm_free(block);
        block = older;
    }
    *arena = (gm_arena){0};
}
