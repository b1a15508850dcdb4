/* The end of what isa_begin.h began. */
#if defined(__clang__)
#    pragma clang attribute pop
#else
#    pragma GCC pop_options
#endif
