/* The kernels inside the extension: images.c is made by the build from csrc/kernels (tools/build/cuda_toolkit.py);
 * a build without nvcc has absent.c instead of all of it. */
#pragma once

typedef struct gm_image {
    const char *lesson;        /* the kernel file's name */
    const unsigned char *code; /* a fat binary: machine code for gm_image_chips, and PTX for later chips */
    const char *ptx;           /* what the lens executes; ends with a zero byte */
} gm_image;

typedef struct gm_entry {
    const char *name; /* of a kernel, as in the PTX */
    int image;
} gm_entry;

extern const gm_image gm_images[];
extern const int gm_image_count;
extern const gm_entry gm_entries[]; /* by name */
extern const int gm_entry_count;
extern const char gm_image_chips[]; /* "sm_80 sm_90" */

/* The index of a kernel in gm_entries, or -1. */
int gm_entry_find(const char *name);

/* Of kernels that are one for each width of access, or number of fields: name_1 ... name_16. */
int gm_entry_sized(const char *name, int size);
