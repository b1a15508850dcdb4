/* Findings of the lens as Python sees them. */
#pragma once
#include "python.h"
#include "../simt/findings.h"

/* A list of dicts, one a row: kind, text, space, writes, bytes, lanes, times, place and other (dicts of opcode, line,
 * file, file_line; None where there is none), examples (dicts of block, thread, other_thread, other_block, address,
 * buffer, offset). New reference, or NULL with an exception. */
PyObject *gm_py_findings(const gm_findings *findings);
