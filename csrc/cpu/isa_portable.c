/* portable: what every processor of the architecture has: SSE2 on x86-64, Advanced SIMD on aarch64, else plain C. */
#include "isa_includes.h"

#define GM_VECTOR 16
#define GM_AVX2   0
#define GM_AVX512 0
#include "isa_kernels.inc.h"

static int runs_here(void)
{
    return 1;
}

const gm_isa gm_isa_portable = {"portable", "what every processor of the architecture has", runs_here, GM_ISA_FAMILIES};
