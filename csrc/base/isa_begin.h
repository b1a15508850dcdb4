/* Compiles the functions that follow for GM_TARGET, a string of instruction sets, until isa_end.h; gcc also heeds
 * GM_TUNE. No flags for single files, and no header in between: nothing of theirs may be compiled for an instruction
 * set that the machine may lack. */
#define GM_PRAGMA_(text) _Pragma(#text)
#define GM_PRAGMA(text)  GM_PRAGMA_(text)

#if defined(__clang__)
GM_PRAGMA(clang attribute push(__attribute__((target(GM_TARGET))), apply_to = function))
#else
#    pragma GCC push_options
GM_PRAGMA(GCC target(GM_TARGET))
#    if defined(GM_TUNE)
GM_PRAGMA(GCC target(GM_TUNE))
#    endif
#endif
