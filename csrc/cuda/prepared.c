#include "prepared.h"
#include <string.h>

enum { KEPT = 4 };

static _Thread_local gm_prepared kept[KEPT];
static _Thread_local unsigned oldest;

void gm_work_begin(gm_work *work, gm_work_kind kind)
{
    work->kind = kind;
    work->n = 0;
}

void gm_work_add(gm_work *work, const void *words, int n)
{
    memcpy(work->word + work->n, words, (size_t)n * sizeof *work->word);
    work->n += n;
}

static int is_same(const gm_work *a, const gm_work *b)
{
    return a->kind == b->kind && a->n == b->n && memcmp(a->word, b->word, (size_t)a->n * sizeof *a->word) == 0;
}

gm_prepared *gm_prepared_find(const gm_gpu *gpu, const gm_work *work, const char *src)
{
    for (gm_prepared *made = kept; made < kept + KEPT; made++)
        if (made->gpu == gpu && is_same(&made->work, work)) {
            for (int k = 0; k < made->ends; k++)
                made->parameter.end[k] += (uintptr_t)src - (uintptr_t)made->src;
            made->src = src;
            return made;
        }
    return NULL;
}

gm_prepared *gm_prepared_new(const gm_gpu *gpu, const gm_work *work, const char *src)
{
    gm_prepared *made = &kept[oldest++ % KEPT];

    made->gpu = gpu;
    gm_work_begin(&made->work, work->kind);
    gm_work_add(&made->work, work->word, work->n);
    made->src = src;
    made->ends = made->in_place = made->asynchronous = 0;
    return made;
}

void gm_prepared_set(gm_prepared *made, int entry, int64_t blocks, unsigned threads, unsigned shared)
{
    made->entry = entry;
    made->blocks = blocks;
    made->threads = threads;
    made->shared = shared;
}

gm_status gm_prepared_launch(gm_gpu *gpu, CUstream stream, gm_prepared *made, char *dst, const char *src,
                             gm_failure *failure)
{
    gm_launch launch = {.entry = made->entry,
                        .blocks = made->blocks,
                        .threads = made->threads,
                        .shared = made->shared,
                        .asynchronous = made->asynchronous,
                        .stream = stream};
    void *arguments[] = {&dst, &src, &made->parameter};

    return gm_gpu_launch(gpu, &launch, arguments + made->in_place, failure);
}
