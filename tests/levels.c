/* levels.sh: calls `model` of the archive it is linked with, of whose runtime it takes features of the CPU away. */
#include "model.h"
#include <stdint.h>
#include <stdio.h>

extern uint64_t jaxcc_rt_cpu;
int jaxcc_rt_has(const char *feature);

static void without(const char *feature) {
    for (int i = 0; i < 64 && jaxcc_rt_has(feature); i++) {
        uint64_t had = jaxcc_rt_cpu;
        jaxcc_rt_cpu &= ~((uint64_t)1 << i);
        if (jaxcc_rt_has(feature)) jaxcc_rt_cpu = had;
    }
}
/* levels FEATURE...: without these; the results, exactly, or the error. */
int main(int argc, char **argv) {
    enum { ROWS = 37, TERMS = 300, COLUMNS = 21 };
    static float x[ROWS][TERMS], w[TERMS][COLUMNS], out[ROWS * COLUMNS + ROWS];
    for (int i = 1; i < argc; i++) without(argv[i]);
    for (int k = 0; k < TERMS; k++) {
        for (int i = 0; i < ROWS; i++) x[i][k] = (float)(k * 7 % 31 - 15) / (float)(i + 3);
        for (int j = 0; j < COLUMNS; j++) w[k][j] = (float)(k * 5 % 23 - 11) / (float)(j + 7);
    }
    if (model(ROWS, &x[0][0], &w[0][0], out, out + ROWS * COLUMNS)) return puts(model_error()) < 0;
    for (int i = 0; i < ROWS * COLUMNS + ROWS; i++) printf("%a\n", (double)out[i]);
    return 0;
}
