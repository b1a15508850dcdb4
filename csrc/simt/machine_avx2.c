/* The executor for AVX2: a 32-lane register is four vectors. */
#include "machine_isa.h"
#include "../base/isa_runs.h"

#if defined(__x86_64__)
#    define GM_TARGET "avx2,bmi,bmi2,fma,lzcnt,popcnt"
#    include "../base/isa_begin.h"
#    include "exec.inc.h"
#    include "../base/isa_end.h"

const gm_lens_isa gm_lens_avx2 = {"avx2", "AVX2, BMI, BMI2, FMA, POPCNT: 32-byte vectors", gm_runs_avx2,
                                  &gm_this_machine};
#endif
