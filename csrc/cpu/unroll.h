/* Kernels are written once for all sizes of items and become straight code for each: the sizes are constants wherever
 * these functions are called, and the loops have as many rounds. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
/* Every access is checked as it is written; unrolled, that would only cost the compiler minutes. */
#    define GM_INLINE static inline
#    define GM_UNROLL
#else
#    define GM_INLINE static inline __attribute__((always_inline))
#    if defined(__clang__)
#        define GM_UNROLL _Pragma("unroll")
#    else
#        define GM_UNROLL _Pragma("GCC unroll 64")
#    endif
#endif
