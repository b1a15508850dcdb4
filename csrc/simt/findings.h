/* Findings: what would be wrong on a GPU. Alike ones are one row (kind, instruction, the other instruction) with the
 * number of times seen and the first examples; a run keeps a bounded number of rows.
 *
 * Every host thread of a run has its own gm_findings, and they are merged at the end. Rows and examples are kept by
 * order (instruction; block, thread), never by time of arrival, so that neither depends on the number of threads. */
#pragma once
#include "../base/status.h"
#include <stddef.h>
#include <stdint.h>

enum {
    GM_FINDING_EXAMPLES = 4, /* kept of a row: those of the lowest blocks and threads */
    GM_FINDING_ROWS = 512,   /* kept of a run */
};

typedef enum gm_finding_kind {
#define GM_FINDING(name, identifier, text) GM_FINDING_##name,
#include "findings.def"
#undef GM_FINDING
    GM_FINDING_KINDS
} gm_finding_kind;

const char *gm_finding_identifier(gm_finding_kind kind); /* "race-shared": the name that users see */
const char *gm_finding_text(gm_finding_kind kind);

/* An instruction, as far as findings know it. Strings live as long as the lens. */
typedef struct gm_place {
    const char *opcode; /* "ld.shared.f32" */
    const char *file;   /* of .loc, or NULL */
    uint32_t file_line; /* of .loc, or 0 */
    uint32_t line;      /* in the PTX, from 1; 0: no instruction */
    /* The calls that it was inlined into, the innermost first, a line "file:number" each; NULL for none. */
    const char *calls;
} gm_place;

typedef struct gm_finding_example {
    uint32_t block[3];
    uint32_t thread[3];
    uint32_t other_thread[3]; /* of a race: who accessed it before; all UINT32_MAX where there is none */
    uint32_t other_block[3];  /* in which block, if it is another one; else all UINT32_MAX */
    int32_t buffer;           /* index into the launch's buffers, the nearest one for a wild address; -1: none */
    uint64_t address;         /* as the kernel saw it; for shared and local memory the offset in it */
    int64_t offset;           /* from the buffer's start (negative: before it), or from the space's */
    uint64_t number;          /* of the block in the grid: what examples are ordered by, then by thread */
} gm_finding_example;

typedef struct gm_finding {
    gm_finding_kind kind;
    uint8_t space;  /* gm_space */
    uint8_t writes; /* the access writes */
    uint16_t bytes; /* of a lane's access; 0: no access */
    gm_place place, other;
    uint64_t lanes; /* accesses of single threads */
    uint64_t times; /* warp instructions */
    uint32_t example_count;
    gm_finding_example example[GM_FINDING_EXAMPLES];
} gm_finding;

typedef struct gm_findings {
    gm_finding *row; /* in order of kind, place.line, other.line */
    size_t count, capacity;
    uint64_t left_out; /* lanes of rows that were not kept */
} gm_findings;

/* Adds one thread's finding to the row that `what` describes (kind, space, writes, bytes, place, other: the rest is
 * not looked at). `first` says that it is the first lane of its warp instruction. Never fails: without memory the lane
 * is counted in left_out. */
void gm_findings_add(gm_findings *all, const gm_finding *what, const gm_finding_example *example, int first);

/* Adds all of `from`, which is left as it is. */
void gm_findings_merge(gm_findings *all, const gm_findings *from);

void gm_findings_free(gm_findings *all); /* the rows; the struct is zeroed and may be used again */
