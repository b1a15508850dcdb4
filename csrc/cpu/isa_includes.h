/* What the kernel bodies use; included before an ISA variant changes the target. */
#pragma once
#include "../base/integers.h"
#include "isa.h"
#include "thin.h"
#include "tile.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#elif defined(__aarch64__)
#    include <arm_neon.h>
#endif
#include "sum_kernels.h"
#include "sum_read.h"
#include "unroll.h"
