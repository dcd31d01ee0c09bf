/* Solving with sparse matrices. */
#ifndef JAXCC_RT_SPARSE_H
#define JAXCC_RT_SPARSE_H
#include "linalg.h"

/* The columns in each row of an n × n matrix: those of row i are column[begin[i] … begin[i + 1] - 1], each once. */
typedef struct {
    int32_t n;
    const int64_t *begin;
    const int32_t *column;
} Pattern;

/* Matches every row with a column: own[i] is the column of row i, row[c] the row of column c; -1: none yet. Given
   matches are kept or exchanged. False if there is no complete matching: then the matrix has no inverse. */
bool jaxcc_rt_match(jaxcc_rt_heap *, const Pattern *, int32_t *own, int32_t *row);
/* Stores into order[n] a good order to eliminate the rows, each with its matched column. */
void jaxcc_rt_minimum_degree(jaxcc_rt_heap *, const Pattern *, const int32_t *row, int32_t *order);

/* sizes nse, n; operands data, indices and starts of rows (64 bits each), right-hand side; the solution */
jaxcc_rt_function jaxcc_rt_spsolve_f64, jaxcc_rt_spsolve_c128;

/* n elements of `bytes` bytes, freed by jaxcc_rt_heap_put or at the end of the call. */
static inline void *sparse_new(jaxcc_rt_heap *call, int64_t n, size_t bytes) {
    int64_t all;
    if (__builtin_mul_overflow(n, (int64_t)bytes, &all)) all = INT64_MAX;
    return jaxcc_rt_heap_get(call, all);
}
static inline int32_t *sparse_ints(jaxcc_rt_heap *call, int64_t n, int32_t value) {
    int32_t *p = sparse_new(call, n, sizeof *p);
    for (int64_t i = 0; i < n; i++) p[i] = value;
    return p;
}
#endif
