/* Copies of arrays. glibc copies 2 or 4 KB and more by REP MOVSB, which on AMD's Zen 3 moves 2 GB a second instead of
   40 where `to` is a little beyond `from`, apart from multiples of 4096 (glibc 2.36; its bug 30994). */
#include "rt.h"
#include <string.h>

typedef char Vector __attribute__((vector_size(16), aligned(1), may_alias));
enum {
    AT_ONCE = 8,
    SIZE = AT_ONCE * sizeof(Vector), /* bytes */
    LARGE = 1 << 20                  /* bytes: more goes past the caches, which memcpy knows the sizes of */
};

void jaxcc_rt_copy(void *to, const void *from, int64_t bytes) {
    char *y = to;
    const char *x = from;
    for (; bytes < LARGE && bytes >= SIZE; bytes -= SIZE, x += SIZE, y += SIZE) {
        Vector v[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) v[i] = ((const Vector *)x)[i];
        for (int i = 0; i < AT_ONCE; i++) ((Vector *)y)[i] = v[i];
    }
    memcpy(y, x, (size_t)bytes);
}
