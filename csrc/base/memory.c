#include "memory.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Larger blocks ask for huge pages: a tile walk touches a page for each row, far more than a TLB holds. */
enum { HUGE_PAGE = 2 << 20 };

static _Thread_local long fail_after = -1;

void gm_alloc_fail_after(long count)
{
    fail_after = count;
}

void gm_advise_huge_pages(void *memory, size_t size)
{
    uintptr_t mask = (uintptr_t)HUGE_PAGE - 1, first = ((uintptr_t)memory + mask) & ~mask;
    uintptr_t end = ((uintptr_t)memory + size) & ~mask;

    if (size >= 2 * (size_t)HUGE_PAGE)
        madvise((void *)first, end - first, MADV_HUGEPAGE); /* a refusal changes nothing but speed */
}

void *gm_alloc(size_t size)
{
    if (fail_after >= 0 && fail_after-- == 0)
        return NULL;
    size_t align = size >= 2 * (size_t)HUGE_PAGE ? (size_t)HUGE_PAGE : (size_t)GM_ALIGNMENT;
    if (size > (size_t)-1 / 2)
        return NULL;
    size_t rounded = (size + align - 1) & ~(align - 1);
    void *memory = aligned_alloc(align, rounded ? rounded : align);
    if (memory)
        gm_advise_huge_pages(memory, rounded);
    return memory;
}

void gm_free(void *memory)
{
    free(memory);
}
