/* large FILE.npz N...: writes f32 arrays const0, const1, ... of N elements each, zeros but for the last 8: number,
   number + 1, ... They take no memory: pages of zeros. */
#include "../runtime/npz.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    enum { MOST = 64 };
    static NpzArray arrays[MOST];
    static char names[MOST][16];
    NpzError error;
    int n = argc - 2;
    if (n < 1 || n > MOST) return 2;
    for (int i = 0; i < n; i++) {
        int64_t count = strtoll(argv[i + 2], NULL, 10);
        snprintf(names[i], sizeof names[i], "const%d", i);
        arrays[i] =
            (NpzArray){.name = names[i], .kind = 'f', .size = 4, .rank = 1, .dims = {count}, .bytes = 4 * count};
        float *x = mmap(NULL, (size_t)arrays[i].bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (x == MAP_FAILED) return perror("mmap"), 1;
        for (int k = 0; k < 8; k++) x[count - 8 + k] = (float)(i + k);
        arrays[i].data = x;
    }
    return npz_write(argv[1], false, arrays, (uint32_t)n, &error) ? 0 : (fprintf(stderr, "%s\n", error.text), 1);
}
