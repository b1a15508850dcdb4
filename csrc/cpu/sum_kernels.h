/* What sums need of an instruction set. Each kernel writes plain accumulators; sum.c decides what to add up where. */
#pragma once
#include "sum.h"

/* The most rows and columns that one call of a column kernel takes. So many rows of a narrow integer just fit a field
 * of twice its width; strips of so many columns are long enough to read, and their accumulators still lie in L2. */
enum { GM_SUM_ROWS = 256, GM_SUM_COLS = 32768 };

/* Rows that are taken at once; and 16-bit floats that are added in float32. */
enum { GM_SUM_FEW = 8, GM_SUM_FEW_HALVES = 4 };

/* The most bytes of a row that one call of a row kernel takes: sums of 16-bit integers then fit 32 bits. */
enum { GM_SUM_ROW_BYTES = 256 << 10 };

/* out[r] = the sum of the n contiguous items at src + r * step; n >= 1, in at most GM_SUM_ROW_BYTES. Complex:
 * two accumulators a row. */
typedef void gm_sum_rows_fn(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n);

/* out[c] = the sum over r of item c of the row at src + r * step; rows <= GM_SUM_ROWS, cols <= GM_SUM_COLS.
 * Complex numbers are two columns each, and so use their parts' kernel. `next` is where the next call's rows will
 * begin, with the same step, or NULL: its first rows are asked for while the last ones here are added. */
typedef void gm_sum_cols_fn(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t cols, const char *next);

/* The same of up to GM_SUM_FEW rows of integers, or GM_SUM_FEW_HALVES of float16, whole lines of them, straight to
 * results of 64 bits, or float16, at dst, past the caches; dst is aligned to a line. A fence must follow. */
typedef void gm_sum_past_fn(char *dst, const char *src, int64_t step, int64_t rows, int64_t cols, const char *next);

/* Rows of up to GM_SUM_FEW_HALVES float16 to as many of them, past the caches; dst is aligned to a line. Returns how
 * many of the rows it did, the first ones. A fence must follow. */
typedef int64_t gm_sum_few_fn(char *dst, const char *src, int64_t step, int64_t rows, int64_t n);

/* Writes n accumulators, or float64 ones rounded to float32, past the caches; dst is aligned to one of them. A fence
 * must follow. */
typedef void gm_sum_write_fn(char *dst, const gm_acc *acc, int64_t n);

typedef struct gm_sum_kernels {
    gm_sum_rows_fn *rows[GM_DTYPE_COUNT];
    gm_sum_cols_fn *cols[GM_DTYPE_COUNT];
    gm_sum_past_fn *past[GM_DTYPE_COUNT];     /* of integers narrower than their sums and of float16, or NULL */
    gm_sum_few_fn *few_float16;               /* or NULL */
    gm_sum_write_fn *stream, *stream_float32; /* NULL where there are no such stores */
    gm_sum_write_fn *narrow_float16, *narrow_bfloat16;
} gm_sum_kernels;
