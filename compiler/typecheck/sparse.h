/* Sparse arrays (jax.experimental.sparse): what the rules of sparse.c and csr.c share, and tell the lowerings. */
#ifndef JAXCC_SPARSE_H
#define JAXCC_SPARSE_H
#include "rule.h"

/* How operands hold an array:
     BCOO  data […, nse, dense…], indices […, nse, axes]: by coordinates
     BCSR  data […, nse, dense…], indices […, nse], indptr […, rows + 1]: by rows, which begin at indptr
     COO   data [nse], row [nse], col [nse]
     CSR   data [nse], indices [nse], indptr [rows + 1]; CSC is that of the transpose */
typedef enum { LAYOUT_DENSE, LAYOUT_BCOO, LAYOUT_BCSR, LAYOUT_COO, LAYOUT_CSR, LAYOUT_CSC } Layout;

/* The shape in SparseInfo(shape=(…), …), COOInfo(…). */
bool want_sparse_shape(Ctx *, const Eqn *, ParamKey, Dims *);
/* The layout and the shape in the tree of `todense`; of a dense operand the layout alone. */
bool want_sparse_tree(Ctx *, const Eqn *, Layout *, Dims *);

/* Operands `at` and at + 1 are BCOO's data and indices of an array. */
bool want_bcoo(Ctx *, const Eqn *, const Type *in, unsigned at, Type array);
/* Operand `i`, by what it is called, has an array's axes of a batch, which are its first `n`, or 1 for all. */
bool want_batch(Ctx *, const Eqn *, const Type *in, unsigned i, uint32_t n, Type array);
/* The array that `shape` is of, with the element type of operand `i`. */
Type sparse_array(Ctx *, const Type *in, unsigned i, Dims shape);
/* The axes of a sparse array's product: what is contracted has indices, the product's batch is in its own. `batch` and
   `front`: its axes of the batch, and those before the dense ones. */
bool want_sparse_axes(Ctx *, const Eqn *, const Dot *, uint32_t batch, uint32_t front);
bool want_axes_of_dot(Ctx *, const Eqn *, Dot *);

/* What an array becomes: nse stored elements for each element of the batch, their indices of this type. */
typedef struct {
    int64_t nse, batch, dense;
    Dtype index;
} Stored;
/* The parameters nse and index_dtype; n_batch and n_dense where `batched`. */
bool want_stored(Ctx *, const Eqn *, const Type *in, bool batched, Stored *);
/* […, nse, dense…] */
Type stored_data(Ctx *, Type array, const Stored *);

#endif
