/* The only allocator below the bindings: aligned, and able to fail on request. */
#pragma once
#include <stddef.h>

/* A cache line: what non-temporal stores need. */
enum { GM_ALIGNMENT = 64 };

/* `size` bytes aligned to GM_ALIGNMENT, not cleared; NULL when there are none (or a failure was asked for). */
void *gm_alloc(size_t size);
void gm_free(void *memory);

/* Advice for memory that is about to be written for the first time; blocks too small to gain are left alone. gm_alloc's
 * own need none. */
void gm_advise_huge_pages(void *memory, size_t size);

/* Lets `count` more allocations of this thread pass and fails the next one; -1 switches the injection off. */
void gm_alloc_fail_after(long count);
