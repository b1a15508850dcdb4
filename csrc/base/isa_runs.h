/* What this processor runs. The compiler's built-in also asks whether the system saves the registers. */
#pragma once

#if defined(__x86_64__)
/* Haswell, Zen and everything since. F16C, LZCNT and POPCNT came earlier or with them. */
static inline int gm_runs_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt");
}

/* F, BW, DQ and VL: Skylake's servers, Zen 4 and everything since that has AVX-512. */
static inline int gm_runs_avx512(void)
{
    return gm_runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif
