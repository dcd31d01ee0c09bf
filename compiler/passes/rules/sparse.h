/* Sparse arrays: what rules of sparse.c, sparse_dot.c and sparse_order.c share. Arrays are [rows, width] here, a row
   for each element of the batch and place of the axes that have indices; what lies outside the array has no row. */
#ifndef JAXCC_RULES_SPARSE_H
#define JAXCC_RULES_SPARSE_H
#include "../../typecheck/sparse.h"
#include "../build.h"

/* Where the stored elements stand in an array: the indices along its axes behind the batch, […, nse] each, an axis of
   the batch 1 where all of it has the same. */
typedef struct {
    uint32_t batch, n, rank; /* axes of the batch, with indices, of the array */
    const Dim *shape;        /* of the array */
    Dim nse;
    const Val *column; /* [n] */
} Coordinates;
/* Of indices […, nse, axes] in an array of that shape. */
Coordinates bcoo_coordinates(Builder *, Val indices, uint32_t rank, const Dim *shape);
/* Of indices […, nse] and the beginnings of rows […, rows + 1]. */
Coordinates bcsr_coordinates(Builder *, Val indices, Val begin, uint32_t rank, const Dim *shape);
/* Of rows and columns [nse] in a matrix. */
Coordinates coo_coordinates(Builder *, Val row, Val column, const Dim *shape);

Dim product(Builder *, const Dim *dims, uint32_t n);
/* [1 for all or batch…, n, width…] → [batch · n, width], or [batch · n] of `narrow` arrays, which have no width.
   `order`: of the batch's axes; NULL: as they are. */
Val flattened(Builder *, Val, uint32_t batch, const Dim *dims, const int64_t *order, bool narrow);
/* [before · n · after]: the number along the axis in the middle. */
Val numbers(Builder *, Dim before, Dim n, Dim after);

/* A row's number for each of `n` positions, of an index for each of some axes. */
typedef struct {
    Dim n, rows;
    Val at, outside; /* [n]; 0: no axis yet, nothing is outside */
} Rows;
/* Of an index: it is inside; below 0 it counts from the end of its axis; it does, and may be outside. */
typedef enum { INDEX_INSIDE, INDEX_WRAPS, INDEX_CHECKED } Trust;
/* The next axis. */
void rows_add(Builder *, Rows *, Val index, Dim extent, Trust);
/* [n, 1]; the number of rows where it is outside. */
Val rows_end(Builder *, Rows *);
/* The rows of x [rows, width]; 0 where there is none. */
Val gathered(Builder *, Val x, Val row);
/* The same with the nearest row where there is none. */
Val gathered_nearest(Builder *, Val x, Val row);
/* Updates put, added, … into the rows of x. */
Val scattered(Builder *, Prim, Val x, Val row, Val updates);
/* y [batch…, nse, dense…], 0 where other indices before are equal (sparse_order.c). */
Val first_of_equal(Builder *, Val indices, const Coordinates *, Val y);
/* The values of c's array at indices: y of that type (sparse.c). */
Val extracted(Builder *, const Coordinates *c, Val x, const ArrayType *to);
/* i32 where the numbers are fewer. */
Dtype number_type(Dim n);

#endif
