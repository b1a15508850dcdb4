/* Every CPU stage under every ISA variant that runs here, against plain loops that know nothing of plans.
 * Needs no Python, so that it also runs where only the C code does: another architecture under an emulator.
 * usage: check_stages [rounds] */
#include "../../csrc/cpu/cpu.h"
#include "../../csrc/cpu/isa.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIMS = 5, GUARD = 64, MOST_BYTES = 1 << 22 };

/* One view of `ndim` axes inside a buffer that has GUARD untouchable bytes on either side of what the view spans. */
typedef struct view {
    int64_t strides[MAX_DIMS];
    int64_t start; /* of the item at index 0, 0, ... in the buffer */
    int64_t bytes; /* of the buffer */
} view;

static uint64_t state = 0x9e3779b97f4a7c15u;
static int failures;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

/* Lays the axes out in a random order, with gaps, reversed axes and any offset; densely once in two times. */
static view random_view(int ndim, const int64_t *shape, int64_t itemsize, int aligned)
{
    view v = {{0}, GUARD, 0};
    int order[MAX_DIMS], dense = draw(2) == 0;
    int64_t step = itemsize;

    for (int i = 0; i < ndim; i++) {
        int j = (int)draw((uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < ndim; i++) {
        int axis = order[i], backwards = !dense && draw(4) == 0;
        v.strides[axis] = backwards ? -step : step;
        if (backwards)
            v.start += step * (shape[axis] - 1);
        step *= shape[axis];
        if (!dense && draw(3) == 0)
            step += itemsize * (int64_t)(1 + draw(3));
    }
    if (!aligned)
        v.start += (int64_t)draw(GUARD);
    v.bytes = v.start + step + 2 * GUARD;
    return v;
}

static int64_t item_at(const view *v, int ndim, const int64_t *index)
{
    int64_t at = v->start;
    for (int i = 0; i < ndim; i++)
        at += v->strides[i] * index[i];
    return at;
}

static int next(int ndim, const int64_t *shape, int64_t *index)
{
    for (int i = ndim - 1; i >= 0; i--) {
        if (++index[i] < shape[i])
            return 1;
        index[i] = 0;
    }
    return 0;
}

static void random_shape(int *ndim, int64_t *shape, int64_t itemsize)
{
    static const int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257};
    int64_t bytes = itemsize;

    *ndim = 1 + (int)draw(MAX_DIMS);
    for (int i = 0; i < *ndim; i++) {
        do
            shape[i] = usual[draw(sizeof usual / sizeof *usual)];
        while (bytes * shape[i] > MOST_BYTES / 8);
        bytes *= shape[i];
    }
}

static unsigned char *random_bytes(int64_t n)
{
    unsigned char *bytes = malloc((size_t)n);
    if (!bytes)
        exit(2);
    for (int64_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)draw(256);
    return bytes;
}

static void complain(const char *isa, const gm_stage *stage, int ndim, const int64_t *shape, const char *what)
{
    fprintf(stderr, "%s: %s/%s: %s: shape", isa, stage->lesson, stage->name, what);
    for (int i = 0; i < ndim; i++)
        fprintf(stderr, " %lld", (long long)shape[i]);
    fputc('\n', stderr);
    failures++;
}

static void check_move(const gm_cpu *cpu, gm_stage_id id)
{
    static const int64_t itemsizes[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 40};
    int64_t shape[MAX_DIMS], index[MAX_DIMS] = {0}, itemsize = itemsizes[draw(sizeof itemsizes / sizeof *itemsizes)];
    int ndim;
    random_shape(&ndim, shape, itemsize);
    view from = random_view(ndim, shape, itemsize, 0), to = random_view(ndim, shape, itemsize, 0);
    unsigned char *src = random_bytes(from.bytes), *dst = random_bytes(to.bytes), *expected = malloc((size_t)to.bytes);
    if (!expected)
        exit(2);

    memcpy(expected, dst, (size_t)to.bytes);
    do
        memcpy(expected + item_at(&to, ndim, index), src + item_at(&from, ndim, index), (size_t)itemsize);
    while (next(ndim, shape, index));

    gm_plan plan;
    gm_plan_make(&plan, itemsize, ndim, shape, from.strides, to.strides);
    gm_status status = gm_cpu_move_stage(id)(cpu, &plan, (char *)dst + to.start, (const char *)src + from.start);
    if (status != GM_OK)
        complain(cpu->isa->name, gm_stage_get(id), ndim, shape, "refused");
    else if (memcmp(dst, expected, (size_t)to.bytes) != 0)
        complain(cpu->isa->name, gm_stage_get(id), ndim, shape, "wrong bytes");
    free(src);
    free(dst);
    free(expected);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300, checked = 0;

    for (const gm_isa *const *isa = gm_isas; *isa; isa++) {
        gm_cpu cpu;
        if (!(*isa)->runs_here()) {
            printf("%s does not run here\n", (*isa)->name);
            continue;
        }
        for (int threads = 1; threads <= 3; threads += 2) {
            if (!gm_cpu_init(&cpu, (*isa)->name, threads))
                return 2;
            for (int id = 0; id < GM_STAGE_COUNT; id++) {
                const gm_stage *stage = gm_stage_get((gm_stage_id)id);
                if (stage->device != GM_CPU || strcmp(stage->lesson, "reduce") == 0)
                    continue;
                for (int round = 0; round < rounds; round++, checked++)
                    check_move(&cpu, (gm_stage_id)id);
            }
        }
    }
    printf("%d moves checked, %d failures\n", checked, failures);
    return failures != 0 || checked == 0;
}
