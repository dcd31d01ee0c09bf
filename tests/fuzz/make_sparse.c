/* Sparse arrays: what each row takes, by letters, and its parameters. Capitals in the parameters are extents: a batch
   of B matrices of M rows and N columns with S elements, K columns of another. */
#include "make.h"

/* d data, i indices, r indices along one axis, b beginnings of rows, x a dense matrix; D I X with a batch in front;
   v w y z: [n], [m], [n, k], [m, k] */
#define INFO "=SparseInfo(shape=(M, N), indices_sorted=False, unique_indices=False)"
#define BATCH "=SparseInfo(shape=(B, M, N), indices_sorted=False, unique_indices=False)"
#define COO "spinfo=COOInfo(shape=(M, N), rows_sorted=False, cols_sorted=False)"
#define STORED "index_dtype=int32 nse=S"
#define DOT "dimension_numbers=(((1,), (0,)), ((), ()))"
typedef struct {
    Prim prim;
    const char *operands, *params;
    uint32_t results;
} Form;
static const Form forms[] = {
    {P_bcoo_todense, "di", "spinfo" INFO, 1},
    {P_bcoo_todense, "DI", "spinfo" BATCH, 1},
    {P_bcoo_extract, "ix", "assume_unique=True", 1},
    {P_bcoo_extract, "IX", "assume_unique=False", 1},
    {P_bcoo_fromdense, "x", STORED " n_batch=0 n_dense=0", 2},
    {P_bcoo_fromdense, "X", STORED " n_batch=1 n_dense=1", 2},
    {P_bcoo_transpose, "di", "permutation=(1, 0) spinfo" INFO, 2},
    {P_bcoo_transpose, "DI", "permutation=(0, 2, 1) spinfo" BATCH, 2},
    {P_bcoo_sort_indices, "di", "spinfo" INFO, 2},
    {P_bcoo_sort_indices, "DI", "spinfo" BATCH, 2},
    {P_bcoo_sum_duplicates, "di", "nse=K spinfo" INFO, 2},
    {P_bcoo_sum_duplicates, "DI", "nse=S spinfo" BATCH, 2},
    {P_bcoo_dot_general, "diy", DOT " lhs_spinfo" INFO, 1},
    {P_bcoo_dot_general, "dix", "dimension_numbers=(((0,), (0,)), ((), ())) lhs_spinfo" INFO, 1},
    {P_bcoo_dot_general_sampled, "zyi", "dimension_numbers=(((1,), (1,)), ((), ()))", 1},
    {P_bcoo_spdot_general, "didi", "dimension_numbers=(((0, 1), (0, 1)), ((), ())) lhs_spinfo" INFO " rhs_spinfo" INFO,
     2},
    {P_bcoo_spdot_general, "didi", "dimension_numbers=(((0,), (0,)), ((), ())) lhs_spinfo" INFO " rhs_spinfo" INFO, 2},
    {P_bcsr_todense, "drb", "spinfo" INFO, 1},
    {P_bcsr_fromdense, "x", STORED " n_batch=0 n_dense=0", 3},
    {P_bcsr_fromdense, "X", STORED " n_batch=1 n_dense=0", 3},
    {P_bcsr_extract, "rbx", "", 1},
    {P_bcsr_dot_general, "drby", DOT " lhs_spinfo" INFO, 1},
    {P_csr_todense, "drb", "shape=(M, N)", 1},
    {P_csr_fromdense, "x", STORED, 3},
    {P_csr_matvec, "drbv", "shape=(M, N) transpose=False", 1},
    {P_csr_matvec, "drbw", "shape=(M, N) transpose=True", 1},
    {P_csr_matmat, "drby", "shape=(M, N) transpose=False", 1},
    {P_csr_matmat, "drbz", "shape=(M, N) transpose=True", 1},
    {P_coo_todense, "drr", COO, 1},
    {P_coo_fromdense, "x", STORED, 3},
    {P_coo_matvec, "drrv", COO " transpose=False", 1},
    {P_coo_matvec, "drrw", COO " transpose=True", 1},
    {P_coo_matmat, "drry", COO " transpose=False", 1},
    {P_coo_matmat, "drrz", COO " transpose=True", 1},
    {P_todense, "x", "tree=PyTreeDef(*)", 1},
    {P_todense, "di",
     "tree=PyTreeDef(CustomNode(BCOO[{'shape': (M, N), 'indices_sorted': False, 'unique_indices': False}], [*, *]))",
     1},
    {P_todense, "drb", "tree=PyTreeDef(CustomNode(CSR[{'shape': (M, N)}], [*, *, *]))", 1},
    {P_spsolve, "drbw", "reorder=1 tol=1e-06", 1},
};

/* The letters of extents that stand alone become numbers. */
static Str with_extents(Gen *g, const char *s, const Dim *extents) {
    static const char letters[] = "BMNSK";
    Text text = {.arena = g->cx->arena};
    for (const char *at = s; *at; at++) {
        const char *name = strchr(letters, *at);
        bool alone = name && (at == s || strchr("( =", at[-1])) && (!at[1] || strchr("), ", at[1]));
        if (alone)
            text_add(&text, "%lld", (long long)extents[name - letters]);
        else
            text_add(&text, "%c", *at);
    }
    return (Str){text.at, text.n};
}
void make_sparse(Gen *g, Prim p, unsigned kinds) {
    Types *ts = g->cx->types;
    Dtype d = draw_dtype(g, kinds);
    const Form *of[sizeof forms / sizeof *forms];
    uint32_t n = 0, operands = 0;
    Dim b = 1 + draw(g, 3), m = 1 + draw(g, 5), columns = 1 + draw(g, 5), s = draw(g, 6), k = 1 + draw(g, 4);
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].prim == p) of[n++] = &forms[i];
    if (!n) return;
    const Form *f = of[draw(g, n)];
    const struct {
        char letter;
        Dtype dtype;
        uint32_t rank;
        Dim dims[3];
    } arrays[] = {
        {'d', d, 1, {s}},          {'i', DT_i32, 2, {s, 2}}, {'r', DT_i32, 1, {s}},       {'b', DT_i32, 1, {m + 1}},
        {'x', d, 2, {m, columns}}, {'D', d, 2, {b, s}},      {'I', DT_i32, 3, {b, s, 2}}, {'X', d, 3, {b, m, columns}},
        {'v', d, 1, {columns}},    {'w', d, 1, {m}},         {'y', d, 2, {columns, k}},   {'z', d, 2, {m, k}}};
    Val in[4];
    for (const char *c = f->operands; *c; c++)
        for (uint32_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
            if (arrays[i].letter == *c)
                in[operands++] = need(g, type_of(ts, arrays[i].dtype, arrays[i].rank, arrays[i].dims));
    Set set = {0};
    if (*f->params) put_text(g, &set, p, with_extents(g, f->params, (Dim[]){b, m, columns, s, k}));
    emit(g, p, in, operands, set, f->results);
}
