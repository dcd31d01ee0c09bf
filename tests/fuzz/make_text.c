/* Makers that are rows of text: operands, parameters as a jaxpr prints them, numbers of results. */
#include "make.h"

/* Operands: a letter and for some the least rank.
     a n r f x c i  any, numbers, reals, floats, inexact, complex, integers     u  u32    k  keys
     =  the type of operand 0      ~  its shape       s  a scalar of its elements    j  i32[]
     q  square matrices            v  vectors as long as the rows of operand 0      w  the same of i32
     o  square matrices as high as operand 0          t  operand 0 with an axis more
     y  u32 whose last axis is 2 or 4                 h  u32[4]                     p  bool[]
     g  a scalar of integers   T  a token             +  up to two more like the one before, or of the letter behind it
   Parameters: $b a bool; $a $A an axis of operand 0, of an array of one more; $n 0 to 3; $k 0 to the last extent; $i $d
   an element type, of integers or any; $s $S a shape, and that of operand 0 behind it; $l the last extents of operand
   0; $w $o $e lists with a number for each axis: 1 to 3, 1 or 2, its extent; (A|B) one of these words. Results: from
   `least` to `most`, -1: as many as operands. `declared`: of any types. */
static const struct {
    const char *rule, *operands, *params;
    int least, most;
    bool declared, runs;
} specs[] = {
    {"tie", "a0 a0", "", 1, 1, false, false},
    {"platform_index", "", "platforms=(None,)", 1, 1, false, false},
    {"windows", "a2", "axes=($a,) window_dimensions=($n,) window_strides=((1|2),) window_dilation=((1|2),)", 1, 1,
     false, false},
    {"broadcast_to", "a0", "shape=$S", 1, 1, false, false},
    {"effect", "a0 +", "callback=f", 0, 0, false, false},
    {"declared", "a0 +", "callback=f", 1, 2, true, false},
    {"placed", "a0 +", "", -1, -1, false, false},
    {"create_token", "+a0", "", 1, 1, false, false},
    {"after_all", "+T", "", 1, 1, false, false},
    {"add_dependency", "a0 T", "", 1, 1, false, false},
    {"dimension_size", "a1", "dimension=$a", 1, 1, false, true},
    {"shape_assertion", "p +g", "error_message=(at most 8|{0} > 2, (b, c)[0]: {1}; see a#b|{2} {0}|{{ lambda ]x {9})",
     0, 0, false, false},
    {"conj", "x0", "input_dtype=float32", 1, 1, false, false},
    {"sort", "r1 ~ ~", "dimension=$a is_stable=True num_keys=(1|2|3)", 3, 3, false, true},
    {"top_k", "r1", "axis=$a k=$n operand=None", 2, 2, false, true},
    {"approx_top_k", "f1",
     "k=$n reduction_dimension=$a recall_target=0.95 is_max_k=$b reduction_input_size_override=-1 aggregate_to_topk=$b",
     2, 2, false, false},
    {"cholesky", "q", "symmetrize_input=$b", 1, 1, false, false},
    {"cholesky_update", "q v", "", 1, 1, false, false},
    {"lu", "x2", "", 2, 3, false, false},
    {"lu_pivots_to_permutation", "w1", "permutation_size=(3|8|40)", 1, 1, false, false},
    {"triangular_solve", "q =", "conjugate_a=$b left_side=$b lower=$b transpose_a=$b unit_diagonal=$b", 1, 1, false,
     false},
    {"tridiagonal_solve", "x1 = = t", "perturb_singular=$b", 1, 1, false, false},
    {"symmetric_product", "f2 o", "alpha=1.0 beta=0.5", 1, 1, false, false},
    {"qr", "x2", "full_matrices=$b pivoting=$b use_magma=None", 2, 3, false, false},
    {"geqrf", "x2", "", 2, 2, false, false},
    {"geqp3", "x2 w", "use_magma=None", 3, 3, false, false},
    {"householder_product", "x2 v", "", 1, 1, false, false},
    {"ormqr", "x2 v =", "left=$b transpose=$b", 1, 1, false, false},
    {"hessenberg", "q", "", 2, 2, false, false},
    {"tridiagonal", "q", "lower=$b", 4, 4, false, false},
    {"eigh", "q", "algorithm=None lower=$b sort_eigenvalues=$b subset_by_index=(None|(0, 1))", 2, 2, false, false},
    {"eig", "q", "compute_left_eigenvectors=$b compute_right_eigenvectors=$b", 1, 3, false, false},
    {"schur", "q", "compute_schur_vectors=$b select_callable=None sort_eig_vals=False", 1, 2, false, false},
    {"svd", "x2", "algorithm=None compute_uv=$b full_matrices=$b subset_by_index=None", 1, 3, false, false},
    {"fft", "x1", "fft_lengths=$l fft_type=jax.lax.FftType.(FFT|IFFT|RFFT)", 1, 1, false, false},
    {"random_seed", "i0", "impl=(fry|rbg|urbg)", 1, 1, false, false},
    {"random_wrap", "y", "impl=(fry|rbg|urbg)", 1, 1, false, false},
    {"random_unwrap", "k", "", 1, 1, false, false},
    {"random_split", "k", "shape=$s", 1, 1, false, false},
    {"random_clone", "k", "", 1, 1, false, false},
    {"random_fold_in", "k j", "", 1, 1, false, false},
    {"random_bits", "k", "bit_width=(8|16|32|64) shape=$s", 1, 1, false, false},
    {"random_gamma", "k f0", "log_space=$b", 1, 1, false, false},
    {"threefry2x32", "u0 = = =", "", 2, 2, false, true},
    {"threefry4x32", "u0 = = = = = = =", "", 4, 4, false, false},
    {"philox2x32", "u0 = =", "", 2, 2, false, true},
    {"philox4x32", "u0 = = = = =", "", 4, 4, false, true},
    {"iota_2x32_shape", "", "shape=$s", 2, 2, false, true},
    {"rng_bit_generator", "h", "algorithm=(0|1|2) dtype=$i shape=$s", 2, 2, false, false},
    {"rng_uniform", "r0 s", "shape=$s", 1, 1, false, false},
    /* inside of shard_map and pmap, which bind x */
    {"psum", "n0 +", "axes=('x',) axis_index_groups=None", -1, -1, false, false},
    {"pmax", "r0 +", "axes=('x',) axis_index_groups=None", -1, -1, false, false},
    {"exchanged", "a0", "axis_name=x perm=((0, 1), (1, 0)) source=1", 1, 1, false, false},
    {"axis_index", "", "axis_name=x", 1, 1, false, false},
    {"all_gather", "a0", "all_gather_dimension=$A axis_index_groups=None axis_name=('x',) axis_size=2 tiled=$b", 1, 1,
     false, false},
    {"all_to_all", "a1", "axis_index_groups=None axis_name=('x',) concat_axis=$a split_axis=$a tiled=$b", 1, 1, false,
     false},
    {"reduce_scatter", "n1", "axis_index_groups=None axis_name=('x',) axis_size=2 scatter_dimension=$a tiled=$b", 1, 1,
     false, false},
};
enum { NSPECS = sizeof specs / sizeof *specs };

bool text_rule(const char *rule, bool *runs) {
    for (unsigned i = 0; i < NSPECS; i++)
        if (!strcmp(specs[i].rule, rule)) return *runs = specs[i].runs, true;
    return false;
}

/* ---- operands */

static Val key_value(Gen *g) {
    Pool *p = &g->s->pool;
    for (uint32_t i = 0; i < p->n; i++)
        if (kind_of(g, p->at[i]) & KEY && draw(g, 4)) return p->at[i];
    Set s = {0};
    put_text(g, &s, P_random_seed, coin(g) ? S("impl=fry") : S("impl=rbg"));
    Val x = pick(g, INT, 0);
    return emit(g, P_random_seed, &x, 1, s, 1);
}

/* Operand 0 with the last `gone` axes replaced. */
static Type behind(Gen *g, Val first, uint32_t gone, const Dim *dims, uint32_t n, Dtype d) {
    const ArrayType *a = array(g, first);
    Dim all[80];
    uint32_t batch = a->rank > gone ? a->rank - gone : 0;
    if (batch) memcpy(all, a->dims, batch * sizeof *all);
    memcpy(all + batch, dims, n * sizeof *dims);
    return type_of(g->cx->types, d ? d : a->dtype, batch + n, all);
}

static Val operand(Gen *g, const char *word, const Val *in, uint32_t at) {
    static const struct {
        char letter;
        unsigned kinds;
    } picks[] = {{'a', ANY}, {'n', NUM}, {'r', REAL}, {'f', FLOAT}, {'x', FLOAT | COMPLEX}, {'c', COMPLEX}, {'i', INT}};
    for (unsigned i = 0; i < sizeof picks / sizeof *picks; i++)
        if (picks[i].letter == *word) return pick(g, picks[i].kinds, (uint32_t)(word[1] - '0'));
    Types *ts = g->cx->types;
    Dim n = 1 + draw(g, 5), rank = draw(g, 2), words = coin(g) ? 2 : 4;
    const ArrayType *a = at ? array(g, in[0]) : NULL;
    Dim last = a && a->rank ? a->dims[a->rank - 1] : n, rows = a && a->rank > 1 ? a->dims[a->rank - 2] : n;
    switch (*word) {
    case '=': return need(g, val_type(g->cx, in[0]));
    case '~': return need(g, type_of(ts, draw_dtype(g, ANY), a->rank, a->dims));
    case 's': return scalar(g, a->dtype);
    case 'j': return scalar(g, DT_i32);
    case 'p': return scalar(g, DT_bool);
    case 'g': return scalar(g, draw_dtype(g, INT));
    case 'T': return scalar(g, DT_tok);
    case 'k': return key_value(g);
    case 'u': return need(g, type_of(ts, DT_u32, (uint32_t)rank, &n));
    case 'h': return need(g, type_of(ts, DT_u32, 1, (Dim[]){4}));
    case 'y': return need(g, type_of(ts, DT_u32, (uint32_t)rank + 1, rank ? (Dim[]){n, words} : &words));
    case 'q': return need(g, type_of(ts, draw_dtype(g, FLOAT | COMPLEX), (uint32_t)rank + 2, (Dim[]){n, n, n}));
    case 'v': return need(g, behind(g, in[0], 2, &last, 1, 0));
    case 'w': return at ? need(g, behind(g, in[0], 2, &last, 1, DT_i32)) : need(g, type_of(ts, DT_i32, 1, &n));
    case 'o': return need(g, behind(g, in[0], 2, (Dim[]){rows, rows}, 2, 0));
    default: /* t */ return need(g, behind(g, in[0], 0, &n, 1, 0));
    }
}

static uint32_t draw_operands(Gen *g, const char *words, Val *in, uint32_t most) {
    uint32_t n = 0;
    const char *before = words;
    for (const char *w = words; *w && n < most; w += strcspn(w, " ")) {
        w += *w == ' ';
        bool more = *w == '+';
        if (!more || w[1] > ' ') before = w + more;
        if (!more)
            in[n] = operand(g, before, in, n), n++;
        else
            for (uint32_t k = draw(g, 3); k-- && n < most; n++) in[n] = operand(g, before, in, 0);
    }
    return n;
}

/* ---- parameters */

static void put_dim_text(Gen *g, Text *t, Dim d) { text_put(t, dim_text(g->cx->arena, g->cx->types, d, NULL, NULL)); }

static void put_shape(Gen *g, Text *t, const ArrayType *behind_it) {
    uint32_t n = draw(g, 3);
    text_put(t, S("("));
    for (uint32_t i = 0; i < n; i++) text_add(t, "%u,", 1 + draw(g, 4));
    for (uint32_t i = 0; behind_it && i < behind_it->rank; i++)
        put_dim_text(g, t, behind_it->dims[i]), text_put(t, S(","));
    text_put(t, S(")"));
}

static void put_each(Gen *g, Text *t, const ArrayType *a, uint32_t first, char what) {
    text_put(t, S("("));
    for (uint32_t i = first; i < a->rank; i++) {
        if (what == 'e')
            put_dim_text(g, t, a->dims[i]);
        else
            text_add(t, "%u", 1 + draw(g, what == 'w' ? 3 : 2));
        text_put(t, S(","));
    }
    text_put(t, S(")"));
}

static void put_macro(Gen *g, Text *t, char c, const ArrayType *a) {
    uint32_t rank = a ? a->rank : 0, last = rank && dim_is_const(a->dims[rank - 1]) ? (uint32_t)a->dims[rank - 1] : 0;
    switch (c) {
    case 'b': text_put(t, coin(g) ? S("True") : S("False")); return;
    case 'a':
    case 'A': text_add(t, "%u", draw(g, rank + (c == 'A'))); return;
    case 'n': text_add(t, "%u", draw(g, 4)); return;
    case 'k': text_add(t, "%u", draw(g, last + 1)); return;
    case 'i':
    case 'd': text_put(t, str(dtype_info[draw_dtype(g, c == 'i' ? INT : ANY)].long_name)); return;
    case 's':
    case 'S': put_shape(g, t, c == 'S' ? a : NULL); return;
    case 'l': put_each(g, t, a, rank - 1 - draw(g, rank > 3 ? 3 : rank), 'e'); return;
    default: put_each(g, t, a, 0, c);
    }
}

/* (A|B|C), from behind the bracket: one of them; returns behind the closing bracket. */
static const char *put_choice(Gen *g, Text *t, const char *c) {
    uint32_t n = 1, depth = 0, k = 0;
    const char *end = c;
    for (; depth || *end != ')'; end++) depth += *end == '(', depth -= *end == ')', n += *end == '|';
    uint32_t chosen = draw(g, n);
    for (; c < end; c++) {
        if (*c == '|')
            k++;
        else if (k == chosen)
            text_add(t, "%c", *c);
    }
    return end + 1;
}

static bool is_choice(const char *c) {
    const char *bar = strchr(c, '|'), *space = strchr(c, '=');
    return *c == '(' && bar && (!space || bar < space) && c[1] != '$' && c[1] != '(';
}

static Str expand(Gen *g, const char *c, const ArrayType *a) {
    Text t = {.arena = g->cx->arena};
    while (*c) {
        if (is_choice(c))
            c = put_choice(g, &t, c + 1);
        else if (*c == '$')
            put_macro(g, &t, c[1], a), c += 2;
        else
            text_add(&t, "%c", *c++);
    }
    return (Str){t.at, t.n};
}

void make_text(Gen *g, Prim p, unsigned kinds) {
    enum { MOST = 8 };
    unsigned k = 0;
    while (strcmp(specs[k].rule, type_rule_of(p)) != 0) k++;
    Val in[MOST];
    Type types[MOST];
    uint32_t n = draw_operands(g, specs[k].operands, in, MOST);
    for (uint32_t i = 0; i < n; i++)
        if (!in[i]) return;
    Set s = {0};
    put_text(g, &s, p, expand(g, specs[k].params, n ? array(g, in[0]) : NULL));
    int most = specs[k].most, least = specs[k].least;
    uint32_t results = most < 0 ? n : (uint32_t)least + draw(g, (uint32_t)(most - least) + 1);
    for (uint32_t i = 0; i < results; i++) types[i] = draw_type(g, ANY);
    emit_declared(g, p, in, n, s, specs[k].declared ? types : NULL, results);
}

/* ---- windows, indices */

static void put_windows(Gen *g, Text *t, const ArrayType *a, bool dilated) {
    static const char *const lists[] = {"window_dimensions", "window_strides", "base_dilation", "window_dilation"};
    for (unsigned i = 0; i < (dilated ? 4 : 2); i++) {
        text_add(t, " %s=", lists[i]);
        put_each(g, t, a, 0, i ? 'o' : 'w');
    }
    text_put(t, S(" padding=("));
    for (uint32_t i = 0; i < a->rank; i++) text_add(t, "(%u,%u),", draw(g, 3), draw(g, 3));
    text_put(t, S(")"));
}

/* The element types' names in "{…} of two scalars". */
static void put_combiner(Gen *g, Text *t, const char *key, Dtype d) {
    static const char *const prims[] = {"add", "max", "min", "mul"};
    const char *e = dtype_info[d].name;
    if (d == DT_bool)
        text_add(t, " %s={ lambda ; a:bool[] b:bool[]. let c:bool[] = or a b in (c,) }", key);
    else
        text_add(t, " %s={ lambda ; a:%s[] b:%s[]. let c:%s[] = %s a b in (c,) }", key, e, e, e, prims[draw(g, 4)]);
}

void make_reduction(Gen *g, Prim p, unsigned kinds) {
    Text t = {.arena = g->cx->arena};
    Set s = {0};
    Val in[2] = {pick(g, p == P_reduce ? ANY : REAL | BOOL, 0)};
    const ArrayType *a = array(g, in[0]);
    int64_t axes[16];
    in[1] = scalar(g, a->dtype);
    put_combiner(g, &t, "jaxpr", a->dtype);
    if (p == P_reduce)
        put_ints(g, &s, K_dimensions, axes, some_axes(g, a->rank, NULL, axes));
    else
        put_windows(g, &t, a, true);
    put_text(g, &s, p, (Str){t.at, t.n});
    emit(g, p, in, 2, s, 1);
}

void make_window(Gen *g, Prim p, unsigned kinds) {
    Text t = {.arena = g->cx->arena};
    Set s = {0}, with = {0};
    Val x = pick(g, kinds, 1), in[2] = {x, x};
    put_windows(g, &t, array(g, x), p != P_select_and_scatter_add);
    put_text(g, &s, P_reduce_window_sum, (Str){t.at, t.n});
    bool two = p == P_select_and_scatter_add || p == P_select_and_gather_add;
    if (!two) {
        emit(g, p, &x, 1, s, 1);
        return;
    }
    if (p == P_select_and_scatter_add) in[0] = emit(g, P_reduce_window_sum, &x, 1, s, 1);
    if (p == P_select_and_gather_add) in[0] = need(g, val_type(g->cx, x));
    if (!in[0]) return;
    text_add(&t, " select_prim=%s", coin(g) ? "ge" : "le");
    put_text(g, &with, p, (Str){t.at, t.n});
    emit(g, p, in, 2, with, 1);
}

static void put_numbers(Text *t, const char *field, const int64_t *at, uint32_t n) {
    text_add(t, "%s=(", field);
    for (uint32_t i = 0; i < n; i++) text_add(t, "%lld,", (long long)at[i]);
    text_put(t, S("), "));
}

/* Two scalars that are compared, or any program of theirs. */
static void put_selection(Gen *g, Text *t, Set *s, Type of) {
    static const char *const prims[] = {"eq", "ne", "ge", "gt", "le", "lt"};
    const DtypeInfo *d = &dtype_info[type_at(g->cx->types, of)->dtype];
    Type is_true = type_of(g->cx->types, DT_bool, 0, NULL);
    if (draw(g, 4) == 1)
        put_jaxpr(g, s, K_select_jaxpr, nested(g, (Type[]){of, of}, 2, &is_true, 1));
    else
        text_add(t, " select_jaxpr={ lambda ; a:%s[] b:%s[]. let c:bool[] = %s a b in (c,) }", d->name, d->name,
                 prims[draw(g, d->kind == DK_COMPLEX ? 2 : 6)]);
}

void make_selected(Gen *g, Prim p, unsigned kinds) {
    Text t = {.arena = g->cx->arena};
    Set s = {0}, windows = {0};
    Val in[3] = {pick(g, kinds, 1)};
    const ArrayType *a = array(g, in[0]);
    Type of = type_of(g->cx->types, a->dtype, 0, NULL);
    put_windows(g, &t, a, false);
    put_text(g, &windows, P_reduce_window_max, (Str){t.at, t.n});
    Val source = emit(g, P_reduce_window_max, in, 1, windows, 1);
    if (!source) return;
    in[1] = need(g, val_type(g->cx, source)), in[2] = need(g, of);
    put_selection(g, &t, &s, of);
    if (draw(g, 4) == 1)
        put_jaxpr(g, &s, K_scatter_jaxpr, nested(g, (Type[]){of, of}, 2, &of, 1));
    else
        put_combiner(g, &t, "scatter_jaxpr", a->dtype);
    put_text(g, &s, p, (Str){t.at, t.n});
    emit(g, p, in, 3, s, 1);
}

/* Each axis of the operand is kept whole, indexed and kept, or indexed and dropped; the windows' axes come last. */
void make_index(Gen *g, Prim p, unsigned kinds) {
    static const char *const fields[2][3] = {
        {"offset_dims", "collapsed_slice_dims", "start_index_map"},
        {"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"}};
    bool gather = p == P_gather;
    Text t = {.arena = g->cx->arena}, sizes = t;
    Set s = {0};
    Val in[3] = {pick(g, kinds, 1)};
    enum { MOST = 8 };
    const ArrayType *x = array(g, in[0]);
    Dim dims[MOST + 2], indices[3];
    int64_t windows[MOST], dropped[MOST], map[MOST];
    if (x->rank > MOST) return;
    uint32_t nw = 0, nd = 0, nm = 0, batch = draw(g, 3);
    for (uint32_t i = 0; i < batch; i++) indices[i] = dims[i] = 1 + draw(g, 4);
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t role = draw(g, 3); /* 0 kept, 1 indexed, 2 dropped */
        Dim size = role && dim_is_const(x->dims[i]) && x->dims[i] ? 1 + draw(g, (uint32_t)x->dims[i]) : x->dims[i];
        if (role) map[nm++] = i;
        if (role == 2) dropped[nd++] = i, size = 1;
        if (role != 2) dims[batch + nw] = size, windows[nw] = batch + nw, nw++;
        put_dim_text(g, &sizes, size), text_put(&sizes, S(","));
    }
    indices[batch] = nm;
    in[1] = need(g, type_of(g->cx->types, coin(g) ? DT_i32 : draw_dtype(g, INT), batch + 1, indices));
    text_add(&t, "dimension_numbers=%sDimensionNumbers(", gather ? "Gather" : "Scatter");
    put_numbers(&t, fields[!gather][0], windows, nw);
    put_numbers(&t, fields[!gather][1], dropped, nd);
    put_numbers(&t, fields[!gather][2], map, nm);
    text_add(
        &t,
        "operand_batching_dims=(), %s_indices_batching_dims=()) indices_are_sorted=False mode=GatherScatterMode.%s "
        "unique_indices=False",
        gather ? "start" : "scatter", coin(g) ? "CLIP" : "FILL_OR_DROP");
    if (gather) {
        text_add(&t, " fill_value=None slice_sizes=(%.*s)", SF(((Str){sizes.at, sizes.n})));
    } else {
        in[2] = need(g, type_of(g->cx->types, x->dtype, batch + nw, dims));
        if (p == P_scatter) text_put(&t, S(" update_consts=() update_jaxpr=None"));
    }
    put_text(g, &s, p, (Str){t.at, t.n});
    emit(g, p, in, gather ? 2 : 3, s, 1);
}

/* Specs are permutations of the axes; groups divide the features. */
void make_conv(Gen *g, Prim p, unsigned kinds) {
    static const char *const fields[3] = {"lhs_spec", "rhs_spec", "out_spec"};
    Text t = {.arena = g->cx->arena};
    Set s = {0};
    uint32_t rank = 2 + draw(g, 4), groups = 1 + draw(g, 2);
    bool batches = groups > 1 && coin(g);
    int64_t spec[3][8];
    Dim dims[2][8], own[2][8] = {{1 + draw(g, 3), groups * (1 + draw(g, 3))}, {groups * (1 + draw(g, 3)), 0}};
    own[1][1] = batches ? own[0][1] : own[0][1] / groups;
    if (batches) own[0][0] *= groups;
    for (uint32_t i = 2; i < rank; i++) own[0][i] = draw(g, 9), own[1][i] = 1 + draw(g, 3);
    text_put(&t, S("dimension_numbers=ConvDimensionNumbers("));
    for (unsigned k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < rank; i++) spec[k][i] = i;
        permute(g, spec[k], rank);
        put_numbers(&t, fields[k], spec[k], rank);
        for (uint32_t i = 0; i < rank && k < 2; i++) dims[k][spec[k][i]] = own[k][i];
    }
    Dtype d = draw_dtype(g, kinds);
    Val in[2] = {need(g, type_of(g->cx->types, d, rank, dims[0])), need(g, type_of(g->cx->types, d, rank, dims[1]))};
    text_add(&t, ") feature_group_count=%u batch_group_count=%u precision=None preferred_element_type=None",
             batches ? 1 : groups, batches ? groups : 1);
    ArrayType space = {.rank = rank - 2};
    static const char *const lists[] = {"lhs_dilation", "rhs_dilation", "window_strides"};
    for (unsigned i = 0; i < 3; i++) {
        text_add(&t, " %s=", lists[i]);
        put_each(g, &t, &space, 0, 'o');
    }
    text_put(&t, S(" padding=("));
    for (uint32_t i = 2; i < rank; i++) text_add(&t, "(%u,%d),", draw(g, 3), (int)draw(g, 4) - 1);
    text_put(&t, S(")"));
    put_text(g, &s, p, (Str){t.at, t.n});
    emit(g, p, in, 2, s, 1);
}

void make_ragged(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Types *ts = g->cx->types;
    Dim m = draw_dim(g), k = draw_dim(g), n = draw_dim(g), groups = 1 + draw(g, 4);
    Dtype d = draw_dtype(g, kinds);
    Val in[3] = {need(g, type_of(ts, d, 2, (Dim[]){m, k})), need(g, type_of(ts, d, 3, (Dim[]){groups, k, n})),
                 need(g, type_of(ts, DT_i32, 1, &groups))};
    put_text(g, &s, p,
             S("group_offset=None precision=None preferred_element_type=None "
               "ragged_dot_dimension_numbers=RaggedDotDimensionNumbers(dot_dimension_numbers=(((1,), (1,)), ((), "
               "())), lhs_ragged_dimensions=[0], rhs_group_dimensions=[0])"));
    emit(g, p, in, 3, s, 1);
}
