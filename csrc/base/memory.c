#include "memory.h"
#include <stdlib.h>
#include <sys/mman.h>

/* Larger blocks ask for huge pages: a tile walk touches a page for each row, far more than a TLB holds. */
enum { HUGE_PAGE = 2 << 20 };

static _Thread_local long fail_after = -1;

void gm_alloc_fail_after(long count)
{
    fail_after = count;
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
    if (memory && align == (size_t)HUGE_PAGE)
        madvise(memory, rounded, MADV_HUGEPAGE); /* advice only: a refusal changes nothing but speed */
    return memory;
}

void gm_free(void *memory)
{
    free(memory);
}
