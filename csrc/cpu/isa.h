/* The ISA variants: each is an object with a name, what it needs, and the kernels compiled for it.
 * isa_kernels.inc.h lists the kernel bodies; isa_<name>.c compiles them for one instruction set. */
#pragma once

typedef struct gm_isa {
    const char *name, *description;
    int (*runs_here)(void);
    const struct gm_tile_kernels *tile; /* tile.h: transposition of two-dimensional tiles */
    const struct gm_thin_kernels *thin; /* thin.h: short periodic permutations, strided rows */
    const struct gm_sum_kernels *sum;   /* sum.h */
} gm_isa;

/* The variants, best first, ended by NULL; the last one, portable, runs everywhere. */
extern const gm_isa *const gm_isas[];

extern const gm_isa gm_isa_portable, gm_isa_avx2, gm_isa_avx512, gm_isa_neon;
