/* neon: 16-byte vectors on aarch64. */
#include "isa_includes.h"

#if defined(__aarch64__)
#    define GM_VECTOR 16
#    define GM_AVX2   0
#    define GM_AVX512 0
#    include "isa_kernels.inc.h"

static int runs_here(void)
{
    return 1;
}

const gm_isa gm_isa_neon = {"neon", "Advanced SIMD: 16-byte vectors", runs_here, GM_ISA_FAMILIES};
#endif
