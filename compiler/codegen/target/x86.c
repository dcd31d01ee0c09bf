/* x86-64 by level: AVX-512 in v4, AVX2 with fused products in v3, SSE4.1 in v2. */
#include "target.h"
#include "../plan/vectors.h"

#define X86(level, bytes, n, ...)                                                                                      \
    {.platform = "cpu",                                                                                                \
     .triple = "x86_64-unknown-linux-gnu",                                                                             \
     .cpu = level,                                                                                                     \
     .features = "",                                                                                                   \
     .tune = level,                                                                                                    \
     .vector_bytes = bytes,                                                                                            \
     .registers = n,                                                                                                   \
     .decide = vectors_decide,                                                                                         \
     __VA_ARGS__}
const Target x86_levels[X86_LEVELS] = {
    X86("x86-64", 16, 16),
    X86("x86-64-v2", 16, 16, .rounds = true),
    X86("x86-64-v3", 32, 16, .rounds = true, .fma = true, .word_masks = true),
    X86("x86-64-v4", 64, 32, .rounds = true, .fma = true, .masks = true, .word_masks = true),
};
