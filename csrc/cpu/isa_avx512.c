/* avx512: 64-byte vectors, masked edges, byte permutes. */
#include "isa_includes.h"

#if defined(__x86_64__)
#    if defined(__clang__)
#        pragma clang attribute push(                                                                                  \
            __attribute__((target("avx2,bmi,bmi2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"))),           \
            apply_to = function)
#    else
#        pragma GCC push_options
#        pragma GCC target("avx2,bmi,bmi2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")
#        pragma GCC target("prefer-vector-width=512,tune=icelake-server") /* generic tuning: up to a quarter slower */
#    endif

#    define GM_VECTOR 64
#    define GM_AVX2   1
#    define GM_AVX512 1
#    include "isa_kernels.inc.h"

#    if defined(__clang__)
#        pragma clang attribute pop
#    else
#        pragma GCC pop_options
#    endif

/* Ice Lake, Zen 4 and everything since. The compiler's built-in also asks whether the system saves the registers. */
static int runs_here(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}

const gm_isa gm_isa_avx512 = {"avx512", "AVX-512 F, BW, DQ, VL and VBMI: 64-byte vectors, masked edges, byte permutes",
                              runs_here, GM_ISA_FAMILIES};
#endif
