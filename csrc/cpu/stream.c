#include "stream.h"
#include "isa.h"
#include "pool.h"
#include "tile.h"
#include <stdatomic.h>
#include <string.h>

/* Small enough that threads end together, large enough to keep the prefetchers running. */
enum { CHUNK = 1 << 20 };

typedef struct job {
    const gm_tile_kernels *kernels;
    char *dst;
    const char *src;
    int64_t n;
    _Atomic int64_t next;
    _Atomic uint64_t sum;
} job;

static void share(const gm_cpu *cpu, job *j, void (*body)(void *ctx, int part))
{
    int64_t chunks = (j->n + CHUNK - 1) / CHUNK, threads = atomic_load(&cpu->threads);
    j->kernels = cpu->isa->tile;
    gm_parallel((int)(chunks < threads ? chunks : threads), body, j);
}

/* The next chunk: its start, and its length in *n; 0 when there are no more. */
static int64_t take(job *j, int64_t *n)
{
    int64_t at = atomic_fetch_add(&j->next, CHUNK);
    *n = at >= j->n ? 0 : j->n - at < CHUNK ? j->n - at : CHUNK;
    return at;
}

static void copy_part(void *ctx, int part)
{
    job *j = ctx;
    (void)part;
    for (int64_t n, at = take(j, &n); n > 0; at = take(j, &n))
        memcpy(j->dst + at, j->src + at, (size_t)n);
}

static void stream_part(void *ctx, int part)
{
    job *j = ctx;
    (void)part;
    for (int64_t n, at = take(j, &n); n > 0; at = take(j, &n))
        j->kernels->stream(j->dst + at, j->src + at, n, NULL);
    j->kernels->fence();
}

static void read_part(void *ctx, int part)
{
    job *j = ctx;
    uint64_t sum = 0;
    (void)part;
    for (int64_t n, at = take(j, &n); n > 0; at = take(j, &n))
        sum += j->kernels->read(j->src + at, n);
    atomic_fetch_add(&j->sum, sum);
}

void gm_reference_memcpy(const gm_cpu *cpu, char *dst, const char *src, int64_t n)
{
    job j = {.dst = dst, .src = src, .n = n};
    share(cpu, &j, copy_part);
}

void gm_reference_stream(const gm_cpu *cpu, char *dst, const char *src, int64_t n)
{
    job j = {.dst = dst, .src = src, .n = n};
    share(cpu, &j, stream_part);
}

uint64_t gm_reference_read(const gm_cpu *cpu, const char *src, int64_t n)
{
    job j = {.src = src, .n = n};
    share(cpu, &j, read_part);
    return j.sum;
}
