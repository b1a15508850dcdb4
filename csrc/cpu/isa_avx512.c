/* avx512: 64-byte vectors, masked edges, byte permutes. */
#include "isa_includes.h"
#include "../base/isa_runs.h"

#if defined(__x86_64__)
#    define GM_TARGET "avx2,bmi,bmi2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"
#    define GM_TUNE   "prefer-vector-width=512,tune=icelake-server" /* generic tuning: up to a quarter slower */
#    define GM_VECTOR 64
#    define GM_AVX2   1
#    define GM_AVX512 1
#    include "../base/isa_begin.h"
#    include "isa_kernels.inc.h"
#    include "../base/isa_end.h"

/* Ice Lake, Zen 4 and everything since. */
static int runs_here(void)
{
    return gm_runs_avx512() && __builtin_cpu_supports("avx512vbmi");
}

const gm_isa gm_isa_avx512 = {"avx512", "AVX-512 F, BW, DQ, VL and VBMI: 64-byte vectors, masked edges, byte permutes",
                              runs_here, GM_ISA_FAMILIES};
#endif
