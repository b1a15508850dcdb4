/* Memory that is taken piece by piece and given back all at once, with a limit on the whole. */
#pragma once
#include <stddef.h>

typedef struct gm_arena {
    struct gm_arena_block *newest;
    char *next;          /* where the newest block's unused part begins */
    size_t left;         /* bytes of it */
    size_t taken, limit; /* bytes of all blocks, and the most that there may be */
} gm_arena;

/* `size` zeroed bytes, aligned for anything; NULL beyond the limit (taken + size > limit) or without memory. */
void *gm_arena_take(gm_arena *arena, size_t size);
void gm_arena_free(gm_arena *arena);
