/* The executor for AVX-512: a 32-lane register is two vectors, and a comparison gives its 16 bits at once. */
#include "machine_isa.h"

#if defined(__x86_64__)
#    if defined(__clang__)
#        pragma clang attribute push(                                                                                  \
            __attribute__((target("avx2,bmi,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl"))),              \
            apply_to = function)
#    else
#        pragma GCC push_options
#        pragma GCC target("avx2,bmi,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")
#        pragma GCC target("prefer-vector-width=512,tune=icelake-server")
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
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt");
}

const gm_lens_isa gm_lens_avx512 = {"avx512", "AVX-512 F, BW, DQ and VL: 64-byte vectors, masks", runs_here,
                                    &gm_this_machine};
#endif
