/* NVIDIA's driver, opened on first use: nothing is linked against it, and import does not touch it. */
#pragma once
#include "../base/failure.h"
#include <cuda.h>

typedef struct gm_driver {
#define GM_DRIVER(function, version) __typeof__(function) *function;
#include "driver.def"
#undef GM_DRIVER
    int version; /* the newest CUDA that the driver serves: 13000 for 13.0 */
} gm_driver;

/* The driver, or NULL with the reason. The answer is found once and stays: a machine without a driver is normal. */
const gm_driver *gm_driver_open(gm_failure *failure);

/* GM_OK, or what `result` of `call` means, in `failure`. */
gm_status gm_driver_check(const gm_driver *driver, CUresult result, const char *call, gm_failure *failure);

/* Calls a function of `driver` and checks it; an expression of type gm_status. */
#define GM_CU(driver, failure, function, ...)                                                                          \
    gm_driver_check(driver, (driver)->function(__VA_ARGS__), #function, failure)
