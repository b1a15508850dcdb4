/* A small thread pool that survives fork. */
#pragma once

/* Calls body(ctx, part) once for each part in 0 .. parts - 1, on up to `parts` threads, this one among them, and
 * returns when all are done. Parts may run one after another (when another thread holds the pool, or no thread can be
 * had): a body must not wait for its siblings. */
void gm_parallel(int parts, void (*body)(void *ctx, int part), void *ctx);
