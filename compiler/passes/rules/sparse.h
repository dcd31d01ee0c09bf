/* Sparse arrays: shared by the rules of sparse.c, sparse_dot.c and sparse_order.c. Arrays are [rows, width] here, with
   a row for each element of the batch and each position along the axes with indices; positions outside the array have
   no row. */
#ifndef JAXCC_RULES_SPARSE_H
#define JAXCC_RULES_SPARSE_H
#include "../../typecheck/sparse.h"
#include "../build.h"

/* The positions of the stored elements: indices along the axes after the batch, […, nse] each; a batch axis has extent
   1 if its elements share their indices. */
typedef struct {
    uint32_t batch, n, rank; /* number of batch axes, of axes with indices, of all axes */
    const Dim *shape;        /* of the array */
    Dim nse;
    const Val *column; /* [n] */
} Coordinates;
/* From indices […, nse, axes] into an array of that shape. */
Coordinates bcoo_coordinates(Builder *, Val indices, uint32_t rank, const Dim *shape);
/* From indices […, nse] and the starts of rows […, rows + 1]. */
Coordinates bcsr_coordinates(Builder *, Val indices, Val begin, uint32_t rank, const Dim *shape);
/* From rows and columns [nse] of a matrix. */
Coordinates coo_coordinates(Builder *, Val row, Val column, const Dim *shape);

Dim product(Builder *, const Dim *dims, uint32_t n);
/* [batch… or 1…, n, width…] → [batch · n, width], or [batch · n] for `narrow` arrays, which have no width. `order`: of
   the batch axes; NULL: unchanged. */
Val flattened(Builder *, Val, uint32_t batch, const Dim *dims, const int64_t *order, bool narrow);
/* [before · n · after]: the index along the middle axis. */
Val numbers(Builder *, Dim before, Dim n, Dim after);

/* The row number of each of `n` positions, computed axis by axis from indices. */
typedef struct {
    Dim n, rows;
    Val at, outside; /* [n]; 0: no axis yet; nothing is outside */
} Rows;
/* An index is inside; is inside, counted from the end of the axis if negative; the same, but may be outside. */
typedef enum { INDEX_INSIDE, INDEX_WRAPS, INDEX_CHECKED } Trust;
/* The next axis. */
void rows_add(Builder *, Rows *, Val index, Dim extent, Trust);
/* [n, 1]; positions outside get the number of rows. */
Val rows_end(Builder *, Rows *);
/* The rows of x [rows, width]; 0 for positions outside. */
Val gathered(Builder *, Val x, Val row);
/* The same with the nearest row for positions outside. */
Val gathered_nearest(Builder *, Val x, Val row);
/* Updates written, added, … to the rows of x by the given scatter primitive. */
Val scattered(Builder *, Prim, Val x, Val row, Val updates);
/* y [batch…, nse, dense…], 0 for elements whose indices occur earlier (sparse_order.c). */
Val first_of_equal(Builder *, Val indices, const Coordinates *, Val y);
/* The elements of the array x at the coordinates c, as type `to` (sparse.c). */
Val extracted(Builder *, const Coordinates *c, Val x, const ArrayType *to);
/* The type of numbers below n: i32 if they fit. */
Dtype number_type(Dim n);

#endif
