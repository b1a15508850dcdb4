/* The one place where a status becomes a Python exception. */
#pragma once
#include "python.h"
#include "../base/status.h"

/* Sets the exception of that row of status.def, its directives (PyUnicode_FromFormat's) filled in by the rest of the
 * arguments. Returns -1, so that `return gm_raise(...)` reads well. */
int gm_raise(gm_status status, ...);
