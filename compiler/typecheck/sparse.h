/* Sparse arrays (jax.experimental.sparse): shared by the rules of sparse.c and csr.c and by passes/rules/. */
#ifndef JAXCC_SPARSE_H
#define JAXCC_SPARSE_H
#include "rule.h"

/* How operands hold an array:
     BCOO  data […, nse, dense…], indices […, nse, axes]: by coordinates
     BCSR  data […, nse, dense…], indices […, nse], indptr […, rows + 1]: by rows, whose starts are in indptr
     COO   data [nse], row [nse], col [nse]
     CSR   data [nse], indices [nse], indptr [rows + 1]; CSC is the CSR of the transpose */
typedef enum { LAYOUT_DENSE, LAYOUT_BCOO, LAYOUT_BCSR, LAYOUT_COO, LAYOUT_CSR, LAYOUT_CSC } Layout;

/* The shape in SparseInfo(shape=(…), …), COOInfo(…). */
bool want_sparse_shape(Ctx *, const Eqn *, ParamKey, Dims *);
/* The layout and shape in the tree of `todense`; for a dense operand only the layout. */
bool want_sparse_tree(Ctx *, const Eqn *, Layout *, Dims *);

/* Operands `at` and at + 1 are the data and indices of a BCOO array. */
bool want_bcoo(Ctx *, const Eqn *, const Type *in, unsigned at, Type array);
/* Each of the first `n` axes of operand `i` has the extent of the array's batch axis, or 1. */
bool want_batch(Ctx *, const Eqn *, const Type *in, unsigned i, uint32_t n, Type array);
/* The type of an array of this shape with the element type of operand `i`. */
Type sparse_array(Ctx *, const Type *in, unsigned i, Dims shape);
/* The axes of a product with a sparse array: contracted axes have indices, batch axes of the product are batch axes of
   the array. `batch`: the number of its batch axes; `front`: of those before the dense ones. */
bool want_sparse_axes(Ctx *, const Eqn *, const Dot *, uint32_t batch, uint32_t front);
bool want_axes_of_dot(Ctx *, const Eqn *, Dot *);

/* How an array is stored: nse elements for each element of the batch, with indices of this type. */
typedef struct {
    int64_t nse, batch, dense;
    Dtype index;
} Stored;
/* The parameters nse and index_dtype; n_batch and n_dense where `batched`. */
bool want_stored(Ctx *, const Eqn *, const Type *in, bool batched, Stored *);
/* […, nse, dense…] */
Type stored_data(Ctx *, Type array, const Stored *);

#endif
