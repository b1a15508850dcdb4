/* Where an address points, for the reader, the executor and the counters. */
#pragma once

typedef enum gm_space {
    GM_SPACE_GENERIC,
    GM_SPACE_GLOBAL,
    GM_SPACE_SHARED, /* .shared and .shared::cta */
    GM_SPACE_LOCAL,
    GM_SPACE_PARAM, /* of the entry (.param, .param::entry), or of a call */
    GM_SPACE_CONST,
    GM_SPACE_SHARED_CLUSTER, /* .shared::cluster: the shared memory of any block of the cluster */
    GM_SPACE_COUNT
} gm_space;
