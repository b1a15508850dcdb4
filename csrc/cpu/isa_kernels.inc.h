/* The body of an ISA variant: every family's kernels, as static functions. Included by isa_<name>.c after it has set
 * the instruction set and defined
 *   GM_VECTOR   bytes in a vector register: 16, 32 or 64
 *   GM_AVX2     1 where AVX2 intrinsics may be used
 *   GM_AVX512   1 where AVX-512 F, BW, VL, DQ and VBMI intrinsics may be used
 * System headers and the families' own headers come first, in isa_includes.h: nothing of theirs may be compiled for an
 * instruction set that the machine may lack. */
#include "thin_kernels.inc.h"
#include "tile_kernels.inc.h"
#include "sum_kernels.inc.h"

#define GM_ISA_FAMILIES &tile_kernels, GM_THIN_KERNELS, &sum_kernels
