/* Sparse arrays by rows (jax.experimental.sparse.csr, bcsr), matrices by coordinates (coo), what takes any of them
   (todense), and solves with them (linalg.spsolve). */
#include "sparse.h"

/* ---- demands */

/* Operand `i` is [n]. */
static bool want_vector(Ctx *cx, const Eqn *e, const Type *in, unsigned i, Dim n) {
    const ArrayType *t = type_at(cx->types, in[i]);
    return (t->rank == 1 && dims_agree(cx, t->dims[0], n, operand_at(cx, e, i))) ||
           diag(cx->diags, operand_at(cx, e, i), "%s: operand %u is %s, but must have one axis of %s elements",
                name_of(cx, e), i, type_c(cx, in[i]), dim_c(cx, n));
}
/* Operand `i` has an entry for each stored element of operand 0. */
static bool want_places(Ctx *cx, const Eqn *e, const Type *in, unsigned i) {
    const ArrayType *data = type_at(cx->types, in[0]);
    if (!want_kind(cx, e, in, i, OF_INT)) return false;
    if (data->rank != 1)
        return diag(cx->diags, operand_at(cx, e, 0), "%s: operand 0 is %s, but must have one axis", name_of(cx, e),
                    type_c(cx, in[0]));
    return shapes_agree(cx, in[i], in[0], operand_at(cx, e, i)) || operands_disagree(cx, e, in, i, 0);
}
static bool want_matrix(Ctx *cx, const Eqn *e, ParamKey k, Dims shape) {
    return shape.n == 2 || diag(cx->diags, param_at(e, k), "%s: %s has %u ax%s, but a matrix has 2", name_of(cx, e),
                                param_name[k], shape.n, shape.n == 1 ? "is" : "es");
}
static Dim one_more(Ctx *cx, Dim n) { return dim_add(cx->types, n, 1); }

/* Operands 0, 1 and 2 are data, indices and starts of rows. */
static bool want_csr(Ctx *cx, const Eqn *e, const Type *in, Dims shape) {
    return want_places(cx, e, in, 1) && want_kind(cx, e, in, 2, OF_INT) && want_dtype_of(cx, e, in, 2, 1) &&
           want_vector(cx, e, in, 2, one_more(cx, shape.at[0]));
}
/* Operands 0, 1 and 2 are data, rows and columns. */
static bool want_coo(Ctx *cx, const Eqn *e, const Type *in) {
    return want_places(cx, e, in, 1) && want_places(cx, e, in, 2);
}
static bool want_shape(Ctx *cx, const Eqn *e, Dims *shape) {
    if (!want_param(cx, e, K_shape)) return false;
    *shape = param_dims(e, K_shape);
    return want_matrix(cx, e, K_shape, *shape);
}
static bool want_spinfo(Ctx *cx, const Eqn *e, Dims *shape) {
    return want_sparse_shape(cx, e, K_spinfo, shape) && want_matrix(cx, e, K_spinfo, *shape);
}

/* Operands `i` and i + 1 are indices and starts of rows of an array; gives the type of the data. */
static bool want_rows(Ctx *cx, const Eqn *e, const Type *in, unsigned i, Type array, Type *data) {
    const ArrayType *t = type_at(cx->types, in[i]), *begin = type_at(cx->types, in[i + 1]),
                    *a = type_at(cx->types, array);
    if (!want_kind(cx, e, in, i, OF_INT) || !want_kind(cx, e, in, i + 1, OF_INT)) return false;
    if (t->rank < 1 || t->rank + 1 > a->rank)
        return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u, %s, are no columns in %s", name_of(cx, e), i,
                    type_c(cx, in[i]), type_c(cx, array));
    uint32_t batch = t->rank - 1;
    Dim rows = one_more(cx, a->dims[batch]);
    if (!want_batch(cx, e, in, i, batch, array)) return false;
    if (begin->rank != t->rank || !dims_agree(cx, begin->dims[batch], rows, operand_at(cx, e, i + 1)))
        return diag(cx->diags, operand_at(cx, e, i + 1),
                    "%s: operand %u, %s, is not where rows of %s begin and end: it must have %s "
                    "elements along axis %u, the last",
                    name_of(cx, e), i + 1, type_c(cx, in[i + 1]), type_c(cx, array), dim_c(cx, rows), batch);
    if (!want_batch(cx, e, in, i + 1, batch, array)) return false;
    Dim *dims = dims_copy(cx, a);
    dims[batch] = t->dims[batch];
    for (uint32_t k = batch + 2; k < a->rank; k++) dims[k - 1] = a->dims[k];
    *data = type_of(cx->types, a->dtype, a->rank - 1, dims);
    return true;
}
/* Operands 0, 1 and 2 are BCSR's of an array. */
static bool want_bcsr(Ctx *cx, const Eqn *e, const Type *in, Type array) {
    Type all;
    if (!want_rows(cx, e, in, 1, array, &all)) return false;
    const ArrayType *t = type_at(cx->types, in[0]), *want = type_at(cx->types, all);
    uint32_t batch = type_at(cx->types, in[1])->rank - 1;
    bool good = t->rank == want->rank;
    for (uint32_t k = batch; good && k < t->rank; k++)
        good = dims_agree(cx, t->dims[k], want->dims[k], operand_at(cx, e, 0));
    if (good) return want_batch(cx, e, in, 0, batch, array);
    diag(cx->diags, operand_at(cx, e, 0), "%s: operand 0 is %s, but data at operand 1, %s, of %s is %s", name_of(cx, e),
         type_c(cx, in[0]), type_c(cx, in[1]), type_c(cx, array), type_c(cx, all));
    note_operand(cx, e, 1, in[1]);
    return false;
}

/* ---- conversions */

bool type_csr_todense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dims shape;
    if (!want(cx, e, 3, 1) || !want_shape(cx, e, &shape) || !want_csr(cx, e, in, shape)) return false;
    out[0] = sparse_array(cx, in, 0, shape);
    return true;
}
bool type_coo_todense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dims shape;
    if (!want(cx, e, 3, 1) || !want_spinfo(cx, e, &shape) || !want_coo(cx, e, in)) return false;
    out[0] = sparse_array(cx, in, 0, shape);
    return true;
}
bool type_bcsr_todense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dims shape;
    if (!want(cx, e, 3, 1) || !want_sparse_shape(cx, e, K_spinfo, &shape)) return false;
    out[0] = sparse_array(cx, in, 0, shape);
    return want_bcsr(cx, e, in, out[0]);
}
bool type_bcsr_extract(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 3, 1) && want_rows(cx, e, in, 0, in[2], &out[0]);
}

/* The matrix, operand 0, by rows or by coordinates: data, then two arrays of indices. */
static bool from_dense(Ctx *cx, const Eqn *e, const Type *in, Type *out, bool rows) {
    Stored s;
    if (!want(cx, e, 1, 3) || !want_stored(cx, e, in, false, &s)) return false;
    const ArrayType *t = type_at(cx->types, in[0]);
    if (t->rank != 2)
        return diag(cx->diags, operand_at(cx, e, 0), "%s: operand 0 must be a matrix, but is %s", name_of(cx, e),
                    type_c(cx, in[0]));
    Dim begin = one_more(cx, t->dims[0]);
    out[0] = type_of(cx->types, t->dtype, 1, &s.nse);
    out[1] = type_of(cx->types, s.index, 1, &s.nse);
    out[2] = rows ? type_of(cx->types, s.index, 1, &begin) : out[1];
    return true;
}
bool type_csr_fromdense(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return from_dense(cx, e, in, out, true); }
bool type_coo_fromdense(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return from_dense(cx, e, in, out, false); }
bool type_bcsr_fromdense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Stored s;
    if (!want(cx, e, 1, 3) || !want_stored(cx, e, in, true, &s)) return false;
    const ArrayType *t = type_at(cx->types, in[0]);
    if (t->rank != s.batch + 2 + s.dense)
        return diag(cx->diags, param_at(e, K_n_batch),
                    "%s: n_batch=%lld and n_dense=%lld do not leave two axes of %s, rows and "
                    "columns",
                    name_of(cx, e), (long long)s.batch, (long long)s.dense, type_c(cx, in[0]));
    Dim *dims = dims_copy(cx, t);
    uint32_t n = (uint32_t)s.batch + 1;
    out[0] = stored_data(cx, in[0], &s);
    dims[s.batch] = s.nse;
    out[1] = type_of(cx->types, s.index, n, dims);
    dims[s.batch] = one_more(cx, t->dims[s.batch]);
    out[2] = type_of(cx->types, s.index, n, dims);
    return true;
}

/* PyTreeDef(*), PyTreeDef(CustomNode(CSR[{'shape': (3, 4)}], [*, *, *])) */
bool want_sparse_tree(Ctx *cx, const Eqn *e, Layout *layout, Dims *shape) {
    static const char *const names[] = {[LAYOUT_BCOO] = "BCOO[{'shape': (",
                                        [LAYOUT_BCSR] = "BCSR[{'shape': (",
                                        [LAYOUT_COO] = "COO[{'shape': (",
                                        [LAYOUT_CSR] = "CSR[{'shape': (",
                                        [LAYOUT_CSC] = "CSC[{'shape': ("};
    if (!want_param(cx, e, K_tree)) return false;
    const Value *v = &param_find(e, K_tree)->value;
    const Value *node = v->kind == V_LIST && str_is(v->s, "PyTreeDef") && v->list.n == 1 ? &v->list.at[0] : NULL;
    *layout = LAYOUT_DENSE, *shape = (Dims){0};
    if (node && str_is(node->s, "*")) return true;
    bool custom = node && node->kind == V_LIST && str_is(node->s, "CustomNode") && node->list.n;
    Str s = custom ? node->list.at[0].s : S("");
    for (uint32_t i = LAYOUT_BCOO; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        const char *end = s.n > n && memcmp(s.at, names[i], n) == 0 ? memchr(s.at + n, ')', s.n - n) : NULL;
        if (!end) continue;
        *layout = (Layout)i;
        *shape = text_numbers(cx, (Str){s.at + n, (uint32_t)(end - s.at - n)});
        return true;
    }
    return diag(cx->diags, param_at(e, K_tree),
                "%s: tree is neither PyTreeDef(*) nor that of a BCOO, BCSR, COO, CSR or CSC with its shape",
                name_of(cx, e));
}
bool type_todense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Layout layout;
    Dims shape;
    if (!want_sparse_tree(cx, e, &layout, &shape)) return false;
    if (!want(cx, e, layout == LAYOUT_DENSE ? 1 : layout == LAYOUT_BCOO ? 2 : 3, 1)) return false;
    out[0] = layout == LAYOUT_DENSE ? type_plain(cx->types, in[0]) : sparse_array(cx, in, 0, shape);
    if (layout == LAYOUT_BCOO) return want_bcoo(cx, e, in, 0, out[0]);
    if (layout == LAYOUT_BCSR) return want_bcsr(cx, e, in, out[0]);
    if (layout == LAYOUT_DENSE) return true;
    if (!want_matrix(cx, e, K_tree, shape)) return false;
    Dim turned[2] = {shape.at[1], shape.at[0]};
    if (layout == LAYOUT_COO) return want_coo(cx, e, in);
    return want_csr(cx, e, in, layout == LAYOUT_CSC ? (Dims){turned, 2} : shape);
}

/* ---- products */

/* The matrix of operands 0, 1 and 2, or its transpose, times operand 3 of so many axes. */
static bool want_product(Ctx *cx, const Eqn *e, const Type *in, Dims shape, uint32_t rank, Type *out) {
    if (!want_param(cx, e, K_transpose)) return false;
    const Value *v = &param_find(e, K_transpose)->value;
    if (v->kind != V_BOOL)
        return diag(cx->diags, param_at(e, K_transpose), "%s: transpose is neither True nor False", name_of(cx, e));
    const ArrayType *x = type_at(cx->types, in[3]);
    Dim meets = shape.at[!v->i];
    if (!want_kind(cx, e, in, 0, OF_NUM | OF_BOOL) || !want_dtype_of(cx, e, in, 3, 0)) return false;
    if (x->rank != rank)
        return diag(cx->diags, operand_at(cx, e, 3), "%s: operand 3 must be a %s, but is %s", name_of(cx, e),
                    rank == 1 ? "vector" : "matrix", type_c(cx, in[3]));
    if (!dims_agree(cx, x->dims[0], meets, operand_at(cx, e, 3)))
        return diag(cx->diags, operand_at(cx, e, 3),
                    "%s: operand 3 is %s, but the %s of the sparse matrix have %s elements", name_of(cx, e),
                    type_c(cx, in[3]), v->i ? "columns" : "rows", dim_c(cx, meets));
    Dim dims[2] = {shape.at[v->i ? 1 : 0], rank > 1 ? x->dims[1] : 1};
    *out = type_of(cx->types, x->dtype, rank, dims);
    return true;
}
static bool csr_product(Ctx *cx, const Eqn *e, const Type *in, uint32_t rank, Type *out) {
    Dims shape;
    return want(cx, e, 4, 1) && want_shape(cx, e, &shape) && want_csr(cx, e, in, shape) &&
           want_product(cx, e, in, shape, rank, out);
}
static bool coo_product(Ctx *cx, const Eqn *e, const Type *in, uint32_t rank, Type *out) {
    Dims shape;
    if (!want(cx, e, 4, 1) || !want_spinfo(cx, e, &shape) || !want_coo(cx, e, in)) return false;
    return (rank > 1 || want_dtype_of(cx, e, in, 2, 1)) && want_product(cx, e, in, shape, rank, out);
}
bool type_csr_matvec(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return csr_product(cx, e, in, 1, out); }
bool type_csr_matmat(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return csr_product(cx, e, in, 2, out); }
bool type_coo_matvec(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return coo_product(cx, e, in, 1, out); }
bool type_coo_matmat(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return coo_product(cx, e, in, 2, out); }

/* Operands 0, 1 and 2 times operand 3. */
bool type_bcsr_dot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dims shape;
    Dot d;
    if (!want(cx, e, 4, 1) || !want_sparse_shape(cx, e, K_lhs_spinfo, &shape) || !want_axes_of_dot(cx, e, &d))
        return false;
    Type array = sparse_array(cx, in, 0, shape);
    if (!want_bcsr(cx, e, in, array) || !want_dot(cx, e, in, array, 3, &d)) return false;
    uint32_t batch = type_at(cx->types, in[1])->rank - 1;
    if (!want_sparse_axes(cx, e, &d, batch, batch + 2)) return false;
    out[0] = dot_type(cx, &d);
    return true;
}

/* ---- solves */

/* Operands 0, 1 and 2 are a square matrix by rows; operand 3 is the right-hand side. */
bool type_spsolve(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t reorder;
    if (!want(cx, e, 4, 1) || !want_kind(cx, e, in, 0, OF_NUM) || !want_dtype_of(cx, e, in, 3, 0)) return false;
    if (!want_places(cx, e, in, 1) || !want_kind(cx, e, in, 2, OF_INT)) return false;
    const ArrayType *b = type_at(cx->types, in[3]);
    if (b->rank != 1)
        return diag(cx->diags, operand_at(cx, e, 3), "%s: operand 3 must be a vector, but is %s", name_of(cx, e),
                    type_c(cx, in[3]));
    if (!want_vector(cx, e, in, 2, one_more(cx, b->dims[0])) || !want_int(cx, e, K_reorder, 0, &reorder)) return false;
    if (reorder > 3)
        return diag(cx->diags, param_at(e, K_reorder), "%s: reorder is %lld, but must be 0, 1, 2 or 3", name_of(cx, e),
                    (long long)reorder);
    double tol;
    out[0] = type_plain(cx->types, in[3]);
    return want_param(cx, e, K_tol) && want_real(cx, e, K_tol, 0, &tol);
}
