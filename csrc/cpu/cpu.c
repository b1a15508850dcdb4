#include "cpu.h"
#include "isa.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
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

static int first_core(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int core = 0; core < CPU_SETSIZE; core++)
            if (CPU_ISSET(core, &set))
                return core;
    return 0;
}

/* The first word of a file about a core's cache; empty where there is none. */
static void read_cache(int core, int index, const char *what, char word[32])
{
    char path[96];
    word[0] = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", core, index, what);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fscanf(file, "%31s", word) != 1)
        word[0] = 0;
    fclose(file);
}

/* Bytes of a level's data cache as the kernel shares it out. Where it does not say, glibc's guess, which in virtual
 * machines can be ten times too large; glibc answers 0 or -1 where it does not know. */
static int64_t cache_size(int core, int level, int name, int64_t otherwise)
{
    char word[32];
    for (int index = 0; index < 8; index++) {
        read_cache(core, index, "level", word);
        if (atoi(word) != level)
            continue;
        read_cache(core, index, "type", word);
        if (strcmp(word, "Instruction") == 0)
            continue;
        read_cache(core, index, "size", word);
        char *unit;
        int64_t size = strtol(word, &unit, 10);
        if (size > 0)
            return size * (*unit == 'K' ? 1 << 10 : *unit == 'M' ? 1 << 20 : 1);
    }
    long bytes = sysconf(name);
    return bytes > 0 ? bytes : otherwise;
}

/* Intel's prefetchers follow one run within a page; AMD's do as well with shorter ones (Emerald Rapids and Zen 4 were
 * measured). */
static int reads_pages(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") != 0;
#else
    return 0;
#endif
}

int gm_cpu_init(gm_cpu *cpu, const char *isa, int threads)
{
    int any = !isa || !*isa;

    cpu->isa = NULL;
    for (const gm_isa *const *p = gm_isas; *p && !cpu->isa; p++)
        if ((any || strcmp((*p)->name, isa) == 0) && (*p)->runs_here())
            cpu->isa = *p;
    atomic_store(&cpu->threads, threads > 0 ? threads : cores_allowed());
    int core = first_core();
    cpu->l1_bytes = cache_size(core, 1, _SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    cpu->l2_bytes = cache_size(core, 2, _SC_LEVEL2_CACHE_SIZE, 1 << 20);
    cpu->l3_bytes = cache_size(core, 3, _SC_LEVEL3_CACHE_SIZE, 32 << 20);
    cpu->reads_pages = reads_pages();
    return cpu->isa != NULL;
}
