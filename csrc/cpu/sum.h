/* Sums: what the stages of lesson `reduce` share.
 *
 * How a sum is accumulated, whatever the stage:
 *   bool, intN, uintN            in 64 bits, wrapping: always the same bits. A bool byte other than 0 counts as 1.
 *   float16, bfloat16, float32   in float64
 *   float64, complex             in float64, the parts of a complex number apart
 * and rounded once, to the result's type, to nearest even.
 *
 * The simd and tuned stages add floats in an order that is fixed by the shape, the strides and the types alone: the
 * same bits for any number of threads and any ISA variant. With u = 2^-53, n items and S the sum of their magnitudes,
 * the accumulated value is within d u S of the exact one, where d <= 64 + log2(n) (naive and unrolled: n).
 * These two stages first add float16 and bfloat16 by fours in float32, which adds at most 2^-23 S; what float32 cannot
 * hold is added in float64 instead. A float64 input that overflows on the way gives inf or NaN, as in NumPy. */
#pragma once
#include "cpu.h"

/* One accumulator: integers wrap in `i`, floats live in `f`. A complex number takes two, one after another. */
typedef union gm_acc {
    uint64_t i;
    double f;
} gm_acc;

/* Accumulators for one item of `dtype`: 2 if it is complex. */
int gm_sum_parts(gm_dtype dtype);

/* What a sum of nothing holds. Floats start from -0.0, so that a sum of negative zeros is one. */
gm_acc gm_sum_zero(gm_dtype dtype);

/* GM_OK if sums of `from` may be given as `to`: any type that is no lesser a kind. */
gm_status gm_sum_check(gm_dtype from, gm_dtype to);

/* The un-widened axes of a plan: first the `kept` ones, which name the results, then the summed ones. */
typedef struct gm_sum_axes {
    int kept, summed;
    gm_axis axis[GM_MAX_NDIM + 1];
} gm_sum_axes;

void gm_sum_axes_of(gm_sum_axes *axes, const gm_plan *plan);

/* Rounds n results, accumulated from items of `from`, to `to` and writes them `step` bytes apart. */
void gm_sum_store(char *dst, int64_t step, gm_dtype to, const gm_acc *acc, int64_t n, gm_dtype from);
