/* sort.c with vectors of 32 bytes, for CPUs that have AVX2. */
#if defined __x86_64__ && !defined __clang__
#pragma GCC target("avx2")
#endif
#define VECTOR 32
#define NAME(f) f##_avx2
#include "sort.c" /* NOLINT(bugprone-suspicious-include): the same source for other instructions */
