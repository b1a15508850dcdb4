/* What a run's accesses looked like, for Python. */
#pragma once
#include "python.h"
#include "../simt/lens.h"

/* Rows (site, distinct, space, rule, bytes, active, cost, times, unit, order, block, warp, addresses, targets) in the
 * order of gm_lens_result.patterns; addresses are 32 uint64 and targets 32 uint32 as bytes. NULL with an exception. */
PyObject *gm_py_patterns(const gm_lens_pattern *patterns, size_t count);
