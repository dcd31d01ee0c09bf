/* Finding an operation by its name. */
#include "ops.h"
#include <assert.h>
#include <stdlib.h>

static const Rows *const tables[] = {&rows_int,     &rows_bits,    &rows_float, &rows_half,
                                     &rows_compare, &rows_convert, &rows_warp};
enum { TABLES = sizeof tables / sizeof *tables, MAX_ROWS = 4096 };

static int by_name(const void *a, const void *b) {
    return strcmp((*(const Row *const *)a)->name, (*(const Row *const *)b)->name);
}
static int compare_name(const void *name, const void *row) {
    Str s = *(const Str *)name;
    const char *other = (*(const Row *const *)row)->name;
    int c = strncmp(s.at, other, s.n);
    return c ? c : -(other[s.n] != 0);
}
const Row *row_find(Str name) {
    static const Row *sorted[MAX_ROWS]; /* all rows, once */
    static size_t n;
    if (n == 0) {
        for (size_t t = 0; t < TABLES; t++)
            for (size_t r = 0; r < tables[t]->n; r++) {
                assert(n < MAX_ROWS);
                sorted[n++] = &tables[t]->at[r];
            }
        qsort(sorted, n, sizeof *sorted, by_name);
        for (size_t r = 1; r < n; r++) assert(strcmp(sorted[r - 1]->name, sorted[r]->name));
    }
    const Row *const *found = bsearch(&name, sorted, n, sizeof *sorted, compare_name);
    return found ? *found : NULL;
}
