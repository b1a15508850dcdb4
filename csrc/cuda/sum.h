/* Lays a sum out for the kernels. */
#pragma once
#include "../base/dtype.h"
#include "../base/plan.h"
#include "../kernels/sum.h"

typedef struct gm_sum_launch {
    const char *kernel; /* a type's name follows */
    gm_dtype type;      /* of what the kernel adds: the parts of a complex number apart, int64 for uint64 */
    int64_t blocks;
    unsigned threads, shared;
    int64_t partials; /* 16 bytes each, in the scratch */
    gm_sum sum;
    gm_sum_axes axes; /* flat has none */
} gm_sum_launch;

/* dst, src: of the plan's first item. Summed axes have dst == 0; the results' places are aligned to their type. */
void gm_sum_make(gm_sum_launch *made, const gm_plan *plan, const char *dst, gm_dtype to, const char *src, gm_dtype from,
                 int processors);
