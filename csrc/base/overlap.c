#include "integers.h"
#include "overlap.h"
#include "memory.h"
#include <stdlib.h>
#include <string.h>

/* The most bits that the exact test may spend: half a gigabyte of them. */
static const uint64_t MOST_BITS = (uint64_t)1 << 32;

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

static uint64_t stride_gcd(const gm_array *array, uint64_t g)
{
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] > 1)
            g = gm_common(g, magnitude(array->strides[i]));
    return g;
}

void gm_span(const gm_array *array, uintptr_t *low, uintptr_t *high)
{
    *low = *high = (uintptr_t)array->data;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 1)
            continue;
        uintptr_t reach = magnitude(array->strides[i]) * (uint64_t)(array->shape[i] - 1);
        if (array->strides[i] < 0)
            *low -= reach;
        else
            *high += reach;
    }
    *high += (uintptr_t)array->itemsize;
}

int gm_may_share(const gm_array *a, const gm_array *b)
{
    uintptr_t a_low, a_high, b_low, b_high;
    gm_span(a, &a_low, &a_high);
    gm_span(b, &b_low, &b_high);
    if (a_low >= b_high || b_low >= a_high || a_low == a_high || b_low == b_high)
        return 0;

    /* Every item starts a multiple of g from its array's start: modulo g, an array is one item. */
    uint64_t g = stride_gcd(b, stride_gcd(a, 0));
    if (g == 0)
        return 1;
    uint64_t ahead = (b_low % g + g - a_low % g) % g; /* of b's item before a's */
    return ahead < (uint64_t)a->itemsize || g - ahead < (uint64_t)b->itemsize;
}

/* The lengths and steps of the axes that matter, by ascending step. */
static int steps_of(const gm_array *array, int64_t *len, uint64_t *step)
{
    int n = 0;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 1)
            continue;
        uint64_t moving = magnitude(array->strides[i]);
        int j = n++;
        for (; j > 0 && step[j - 1] > moving; j--) {
            step[j] = step[j - 1];
            len[j] = len[j - 1];
        }
        step[j] = moving;
        len[j] = array->shape[i];
    }
    return n;
}

/* Marks where every item starts, in steps of g, and looks for two that are nearer than an item's size. */
static gm_status overlaps_exactly(int n, const int64_t *len, const uint64_t *step, uint64_t itemsize, uint64_t extent,
                                  uint64_t g, int *overlaps)
{
    int64_t index[GM_MAX_NDIM] = {0};
    uint64_t bits = extent / g + 1, at = 0, next_free = 0;
    size_t bytes = (size_t)(bits / 8 + 1);

    *overlaps = 1;
    if (bits > MOST_BITS)
        return GM_OK;
    unsigned char *started = gm_alloc(bytes);
    if (!started)
        return GM_NO_MEMORY;
    memset(started, 0, bytes);

    for (int i = 0; i < n;) {
        unsigned char bit = (unsigned char)(1u << (at / g % 8));
        if (started[at / g / 8] & bit)
            goto done;
        started[at / g / 8] |= bit;
        for (i = 0; i < n; i++) {
            at += step[i];
            if (++index[i] < len[i])
                break;
            at -= step[i] * (uint64_t)len[i];
            index[i] = 0;
        }
    }
    for (uint64_t bit = 0; bit < bits; bit++)
        if (started[bit / 8] >> bit % 8 & 1) {
            if (bit * g < next_free)
                goto done;
            next_free = bit * g + itemsize;
        }
    *overlaps = 0;
done:
    gm_free(started);
    return GM_OK;
}

gm_status gm_overlaps_itself(const gm_array *array, int *overlaps)
{
    int64_t len[GM_MAX_NDIM];
    uint64_t step[GM_MAX_NDIM], extent = 0;
    int ordered = 1;

    *overlaps = 0;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return GM_OK;
    int n = steps_of(array, len, step);

    /* Each axis steps over all that the axes inside it reach: the usual case, and free of overlap. */
    for (int i = 0; i < n; i++) {
        if (step[i] == 0) {
            *overlaps = array->itemsize > 0;
            return GM_OK;
        }
        ordered &= step[i] >= extent + (uint64_t)array->itemsize;
        extent += step[i] * (uint64_t)(len[i] - 1);
    }
    if (ordered)
        return GM_OK;
    return overlaps_exactly(n, len, step, (uint64_t)array->itemsize, extent, stride_gcd(array, 0), overlaps);
}
