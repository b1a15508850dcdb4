/* Which views share memory, with others and with themselves. */
#pragma once
#include "array.h"
#include "status.h"

/* The addresses [*low, *high) that the items of a view span; equal when it has none. */
void gm_span(const gm_array *array, uintptr_t *low, uintptr_t *high);

/* 0: no byte belongs to both. 1: some may. Sees through interleaved views (a[::2] and a[1::2], two fields of one
 * record); exact otherwise only where the spans do not meet. */
int gm_may_share(const gm_array *a, const gm_array *b);

/* *overlaps: whether two indices of the view share a byte (an axis of stride 0, sliding windows). Exact, but for views
 * that spread over more than 2^32 steps in no order: those are taken to overlap. */
gm_status gm_overlaps_itself(const gm_array *array, int *overlaps);
