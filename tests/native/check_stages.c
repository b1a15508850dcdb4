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
            shape[i] = draw(8) ? usual[draw(sizeof usual / sizeof *usual)] : 1 + (int64_t)draw(6000);
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

/* Small whole numbers, whose sums every type holds exactly. */
static void write_number(unsigned char *at, gm_dtype dtype, int number)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    int64_t integer = number;
    float single = (float)number, pair[2] = {single, (float)-number};
    double wide[2] = {number, -number};
    const gm_dtype_info *info = gm_dtype_get(dtype);

    if (dtype == GM_float16)
        memcpy(at, &halves[number], 2);
    else if (dtype == GM_bfloat16)
        memcpy(at, (const char *)&single + 2, 2);
    else if (info->kind == 'f' || info->kind == 'c')
        memcpy(at, info->bits % 64 == 0 && dtype != GM_complex64 ? (const void *)wide : (const void *)pair,
               (size_t)info->bits / 8);
    else
        memcpy(at, &integer, (size_t)info->bits / 8);
}

static gm_dtype widest_of(gm_dtype dtype)
{
    switch (gm_dtype_get(dtype)->kind) {
    case 'u':
        return GM_uint64;
    case 'f':
        return GM_float64;
    case 'c':
        return GM_complex128;
    default:
        return GM_int64;
    }
}

static void check_sum(const gm_cpu *cpu, gm_stage_id id)
{
    int64_t shape[MAX_DIMS], kept_shape[MAX_DIMS] = {0}, index[MAX_DIMS] = {0};
    gm_dtype from = (gm_dtype)draw(GM_DTYPE_COUNT), to = widest_of(from);
    int64_t itemsize = gm_dtype_get(from)->bits / 8, result = gm_dtype_get(to)->bits / 8;
    int ndim;
    random_shape(&ndim, shape, itemsize);
    for (int i = 0; i < ndim; i++)
        kept_shape[i] = draw(2) ? shape[i] : 1;
    view source = random_view(ndim, shape, itemsize, 1), dest = random_view(ndim, kept_shape, result, 1);
    for (int i = 0; i < ndim; i++)
        if (kept_shape[i] == 1)
            dest.strides[i] = 0;
    unsigned char *src = random_bytes(source.bytes), *dst = random_bytes(dest.bytes);
    unsigned char *expected = malloc((size_t)dest.bytes);
    int64_t *totals = calloc((size_t)dest.bytes, sizeof *totals); /* of the result that starts at that byte */
    if (!expected || !totals)
        exit(2);

    memcpy(expected, dst, (size_t)dest.bytes);
    do {
        int number = (int)draw(from == GM_bool ? 2 : 8);
        write_number(src + item_at(&source, ndim, index), from, number);
        totals[item_at(&dest, ndim, index)] += number;
    } while (next(ndim, shape, index));
    do {
        int64_t at = item_at(&dest, ndim, index);
        double parts[2] = {(double)totals[at], (double)-totals[at]};
        int exact = gm_dtype_get(to)->kind == 'i' || gm_dtype_get(to)->kind == 'u';
        memcpy(expected + at, exact ? (const void *)&totals[at] : (const void *)parts, (size_t)result);
    } while (next(ndim, kept_shape, index));

    gm_plan plan;
    gm_plan_make(&plan, itemsize, ndim, shape, source.strides, dest.strides);
    gm_status status =
        gm_cpu_sum_stage(id)(cpu, &plan, (char *)dst + dest.start, to, (const char *)src + source.start, from);
    if (status != GM_OK)
        complain(cpu->isa->name, gm_stage_get(id), ndim, shape, "refused");
    else if (memcmp(dst, expected, (size_t)dest.bytes) != 0)
        complain(cpu->isa->name, gm_stage_get(id), ndim, shape, gm_dtype_get(from)->name);
    free(src);
    free(dst);
    free(expected);
    free(totals);
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
                if (stage->device != GM_CPU)
                    continue;
                int sums = strcmp(stage->lesson, "reduce") == 0;
                for (int round = 0; round < rounds; round++, checked++) {
                    /* Some paths are for what no cache holds: let there be hardly any, half of the time. */
                    cpu.l3_bytes = round % 2 ? 16 << 10 : 32 << 20;
                    cpu.reads_pages = round / 2 % 2;
                    (sums ? check_sum : check_move)(&cpu, (gm_stage_id)id);
                }
            }
        }
    }
    printf("%d calls checked, %d failures\n", checked, failures);
    return failures != 0 || checked == 0;
}
