#include "cpu.h"
#include "isa.h"
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static int cores_allowed(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than a cpu_set_t can name */
    return online > 0 ? (int)online : 1;
}

/* glibc answers 0 or -1 where it does not know. */
static int64_t cache_size(int name, int64_t otherwise)
{
    long bytes = sysconf(name);
    return bytes > 0 ? bytes : otherwise;
}

int gm_cpu_init(gm_cpu *cpu, const char *isa, int threads)
{
    int any = !isa || !*isa;

    cpu->isa = NULL;
    for (const gm_isa *const *p = gm_isas; *p && !cpu->isa; p++)
        if ((any || strcmp((*p)->name, isa) == 0) && (*p)->runs_here())
            cpu->isa = *p;
    atomic_store(&cpu->threads, threads > 0 ? threads : cores_allowed());
    cpu->l1_bytes = cache_size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    cpu->l2_bytes = cache_size(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
    cpu->l3_bytes = cache_size(_SC_LEVEL3_CACHE_SIZE, 32 << 20);
    return cpu->isa != NULL;
}
