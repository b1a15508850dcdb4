/* The executor for AVX2: a 32-lane register is four vectors. */
#include "machine_isa.h"

#if defined(__x86_64__)
#    if defined(__clang__)
#        pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,fma,lzcnt,popcnt"))), apply_to = function)
#    else
#        pragma GCC push_options
#        pragma GCC target("avx2,bmi,bmi2,fma,lzcnt,popcnt")
#    endif

#    include "exec.inc.h"

#    if defined(__clang__)
#        pragma clang attribute pop
#    else
#        pragma GCC pop_options
#    endif

static int runs_here(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt");
}

const gm_lens_isa gm_lens_avx2 = {"avx2", "AVX2, BMI, BMI2, FMA, POPCNT: 32-byte vectors", runs_here, &gm_this_machine};
#endif
