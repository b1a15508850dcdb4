/* What a gpumem C function returns: GM_OK or one row of status.def. */
#pragma once

typedef enum gm_status {
    GM_OK,
#define GM_STATUS(name, exception, text) GM_##name,
#include "status.def"
#undef GM_STATUS
    GM_STATUS_COUNT
} gm_status;
