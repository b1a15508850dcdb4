/* avx2: 32-byte vectors. */
#include "isa_includes.h"

#if defined(__x86_64__)
#    if defined(__clang__)
#        pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,fma,f16c"))), apply_to = function)
#    else
#        pragma GCC push_options
#        pragma GCC target("avx2,bmi,bmi2,fma,f16c")
#    endif

#    define GM_VECTOR 32
#    define GM_AVX2   1
#    define GM_AVX512 0
#    include "isa_kernels.inc.h"

#    if defined(__clang__)
#        pragma clang attribute pop
#    else
#        pragma GCC pop_options
#    endif

static int runs_here(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma");
}

const gm_isa gm_isa_avx2 = {"avx2", "AVX2, BMI, BMI2, FMA and F16C: 32-byte vectors", runs_here, GM_ISA_FAMILIES};
#endif
