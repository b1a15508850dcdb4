/* Makes the kernels' form of a plan whose runs are contiguous on both sides. */
#pragma once
#include "../base/plan.h"
#include "../kernels/rows.h"

void gm_rows_make(gm_rows *rows, const gm_plan *plan, const char *dst, const char *src);
