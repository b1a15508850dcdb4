/* What memory itself can do: the copies and the read against which everything else is measured. */
#pragma once
#include "cpu.h"

/* n bytes by memcpy, shared out over cpu->threads. */
void gm_reference_memcpy(const gm_cpu *cpu, char *dst, const char *src, int64_t n);

/* The same with stores that go past the caches, and prefetch. */
void gm_reference_stream(const gm_cpu *cpu, char *dst, const char *src, int64_t n);

/* Reads n bytes and returns the sum of their 8-byte words (those past the last whole one of a share left out). */
uint64_t gm_reference_read(const gm_cpu *cpu, const char *src, int64_t n);
