/* Complex numbers become pairs of real ones, random keys pairs of integers. Every such value becomes two values, its
   parts, and an equation on them becomes equations on the parts, by the table below. Nested programs take and return
   pairs. What remains for the code generator: `real` and `imag` of values that are in memory as complex numbers
   (inputs, constants, results of C code of the runtime), and `complex` (`random_join`) of values to be stored so
   (results, operands of C code).

   A constant is the same value in every program that uses it, but its parts are values of one program: each program
   computes its own. */
#include "complex.h"
#include "../typecheck/index.h"
#include "../typecheck/rule.h"
#include <math.h>

typedef enum {
    REFUSED,
    EACH,   /* the same equation on the real parts and on the imaginary parts */
    POINTS, /* elementwise, by `pair` */
    WHOLE,  /* by `pair`, with operands of any shapes */
    NESTED, /* control flow: parts side by side among operands, inputs and results */
    MEMORY, /* operands and results are complex numbers in memory */
    UPDATED /* a scatter: EACH if its updates replace or are added, else MEMORY */
} How;
typedef struct {
    How how;
    PairRule *pair;
} Rule;

static PairRule iota, empty, unwrap, wrap, gather, dot_general, reduce, cumulative;

static const Rule rules[NPRIMS] = {
    [P_add] = {.how = EACH},
    [P_sub] = {.how = EACH},
    [P_add_any] = {.how = EACH},
    [P_neg] = {.how = EACH},
    [P_select_n] = {.how = EACH},
    [P_broadcast_in_dim] = {.how = EACH},
    [P_reshape] = {.how = EACH},
    [P_squeeze] = {.how = EACH},
    [P_expand_dims] = {.how = EACH},
    [P_transpose] = {.how = EACH},
    [P_rev] = {.how = EACH},
    [P_slice] = {.how = EACH},
    [P_pad] = {.how = EACH},
    [P_concatenate] = {.how = EACH},
    [P_dynamic_slice] = {.how = EACH},
    [P_dynamic_update_slice] = {.how = EACH},
    [P_tile] = {.how = EACH},
    [P_again] = {.how = EACH},
    [P_split] = {.how = EACH},
    [P_stack] = {.how = EACH},
    [P_unstack] = {.how = EACH},
    [P_windows] = {.how = EACH},
    [P_stored] = {.how = EACH},
    [P_reduce_sum] = {.how = EACH},
    [P_cumsum] = {.how = EACH},

    [P_bitcast_convert_type] = {POINTS, pair_same},
    [P_copy] = {POINTS, pair_same},
    [P_copy_p] = {POINTS, pair_same},
    [P_mul] = {POINTS, pair_mul},
    [P_div] = {POINTS, pair_div},
    [P_square] = {POINTS, pair_square},
    [P_integer_pow] = {POINTS, pair_integer_pow},
    [P_pow] = {POINTS, pair_pow},
    [P_max] = {POINTS, pair_max},
    [P_min] = {POINTS, pair_min},
    [P_clamp] = {POINTS, pair_clamp},
    [P_eq] = {POINTS, pair_eq},
    [P_ne] = {POINTS, pair_ne},
    [P_real] = {POINTS, pair_real},
    [P_imag] = {POINTS, pair_imag},
    [P_conj] = {POINTS, pair_conj},
    [P_complex] = {POINTS, pair_complex},
    [P_convert_element_type] = {POINTS, pair_convert},
    [P_abs] = {POINTS, pair_abs},
    [P_sign] = {POINTS, pair_sign},
    [P_sqrt] = {POINTS, pair_sqrt},
    [P_rsqrt] = {POINTS, pair_rsqrt},
    [P_exp] = {POINTS, pair_exp},
    [P_exp2] = {POINTS, pair_exp2},
    [P_expm1] = {POINTS, pair_expm1},
    [P_log] = {POINTS, pair_log},
    [P_log1p] = {POINTS, pair_log1p},
    [P_logistic] = {POINTS, pair_logistic},
    [P_sin] = {POINTS, pair_sin},
    [P_cos] = {POINTS, pair_cos},
    [P_tan] = {POINTS, pair_tan},
    [P_asin] = {POINTS, pair_asin},
    [P_acos] = {POINTS, pair_acos},
    [P_atan] = {POINTS, pair_atan},
    [P_sinh] = {POINTS, pair_sinh},
    [P_cosh] = {POINTS, pair_cosh},
    [P_tanh] = {POINTS, pair_tanh},
    [P_asinh] = {POINTS, pair_asinh},
    [P_acosh] = {POINTS, pair_acosh},
    [P_atanh] = {POINTS, pair_atanh},
    [P_atan2] = {POINTS, pair_atan2},

    [P_iota] = {WHOLE, iota},
    [P_empty] = {WHOLE, empty},
    [P_empty2] = {WHOLE, empty},
    [P_random_unwrap] = {WHOLE, unwrap},
    [P_random_wrap] = {WHOLE, wrap},
    [P_gather] = {WHOLE, gather},
    [P_dot_general] = {WHOLE, dot_general},
    [P_reduce_prod] = {WHOLE, reduce},
    [P_reduce_max] = {WHOLE, reduce},
    [P_reduce_min] = {WHOLE, reduce},
    [P_cumprod] = {WHOLE, cumulative},
    [P_cummax] = {WHOLE, cumulative},
    [P_cummin] = {WHOLE, cumulative},
    [P_cumlogsumexp] = {WHOLE, cumulative},

    [P_cond] = {.how = NESTED},
    [P_while] = {.how = NESTED},
    [P_scan] = {.how = NESTED},
    [P_spmd] = {.how = NESTED},
    [P_jit] = {.how = NESTED},

    [P_runtime_call] = {.how = MEMORY},

    [P_scatter] = {.how = UPDATED},
    [P_scatter_add] = {.how = UPDATED},
    [P_scatter_sub] = {.how = UPDATED},
    [P_scatter_mul] = {.how = UPDATED},
    [P_scatter_min] = {.how = UPDATED},
    [P_scatter_max] = {.how = UPDATED},
};

/* ---- values */
typedef struct {
    Builder b;
    ValMap map; /* real values that replace others */
    struct {
        Pair *at;
        uint32_t n;
    } pairs; /* by complex value */
    Memo memo;
} Split;

static bool is_key(const Ctx *cx, Val v) { return dtype_info[val_array(cx, v)->dtype].kind == DK_KEY; }
static bool is_complex(const Ctx *cx, Val v) {
    return dtype_info[val_array(cx, v)->dtype].kind == DK_COMPLEX || is_key(cx, v);
}
static Type part_type(Ctx *cx, Type t) { return type_like(cx, t, dtype_real(type_at(cx->types, t)->dtype)); }

static void pair_put(Split *s, Val v, Pair p) {
    Ctx *cx = s->b.cx;
    if (v >= s->pairs.n) {
        uint32_t n = cx->nvals + cx->nvals / 2;
        Pair *at = arena_new(cx->arena, Pair, n);
        if (s->pairs.n) memcpy(at, s->pairs.at, s->pairs.n * sizeof *at);
        s->pairs.at = at, s->pairs.n = n;
    }
    s->pairs.at[v] = p;
}
static Pair literal_parts(Split *s, const ValInfo *v) {
    Dtype d = dtype_real(type_at(s->b.cx->types, v->type)->dtype);
    const Lit *l = v->lit;
    double whole = l->negative ? -(double)l->i : (double)l->i;
    bool floats = l->kind == LIT_COMPLEX || l->kind == LIT_FLOAT;
    return (Pair){b_float(&s->b, d, floats ? l->re : whole), b_float(&s->b, d, l->kind == LIT_COMPLEX ? l->im : 0)};
}
/* The pair that replaces a value. */
static Pair pair_get(Split *s, Val v) {
    const ValInfo *info = val_info(s->b.cx, v);
    if (!is_complex(s->b.cx, v)) return (Pair){valmap_get(&s->map, v), 0};
    if (info->lit) return literal_parts(s, info);
    return v < s->pairs.n ? s->pairs.at[v] : (Pair){0};
}
/* The parts of a value in memory. */
static Pair loaded(Split *s, Val v) { return (Pair){b_real(&s->b, v), b_imag(&s->b, v)}; }
/* The equation that computes `v`, if it is one of those written so far in this program. */
static const Eqn *made_by(Split *s, Val v) {
    for (uint32_t i = s->b.eqns.n; i-- > 0;)
        if (s->b.eqns.at[i].out.n == 1 && s->b.eqns.at[i].out.at[0] == v) return &s->b.eqns.at[i];
    return NULL;
}
/* Does it keep the elements in their order? */
static bool only_reshapes(const Eqn *e) { return e->prim == P_reshape && param_ints(e, K_dimensions).n == 0; }
/* Complex numbers from their parts. Where the parts are concatenations, so are these, of complex numbers: whoever
   computes what is concatenated then stores it as complex numbers, without a copy. */
static Val complex_of(Split *s, Pair p) {
    Builder *b = &s->b;
    const Eqn *re = made_by(s, p.re), *im = made_by(s, p.im);
    const ArrayType *t = b_type(b, p.re);
    bool whole = re && im && re->prim == P_real && im->prim == P_imag;
    if (whole && re->in.at[0] == im->in.at[0]) return re->in.at[0];
    if (re && im && only_reshapes(re) && only_reshapes(im)) {
        Pair before = {re->in.at[0], im->in.at[0]};
        if (val_type(b->cx, before.re) == val_type(b->cx, before.im))
            return b_reshape(b, complex_of(s, before), t->rank, t->dims);
    }
    bool stack = re && re->prim == P_stack;
    ParamKey key = stack ? K_axis : K_dimension;
    if (!re || !im || re->prim != im->prim || (!stack && re->prim != P_concatenate) || re->in.n != im->in.n ||
        param_number(re, key) != param_number(im, key))
        return b_complex(b, p.re, p.im);
    Val *in = arena_new(b->cx->arena, Val, re->in.n);
    for (uint32_t i = 0; i < re->in.n; i++) {
        if (val_type(b->cx, re->in.at[i]) != val_type(b->cx, im->in.at[i])) return b_complex(b, p.re, p.im);
        in[i] = b_complex(b, re->in.at[i], im->in.at[i]);
    }
    Param axis = p_int(key, param_number(re, key));
    return build(b, re->prim, re->in.n, in, 1, &axis);
}
/* A complex value with the type of `like`, to be stored. */
static Val joined(Split *s, Val like, Pair p) {
    if (s->b.failed) return VAL_FAILED;
    if (!is_key(s->b.cx, like)) return complex_of(s, p);
    Param which = p_impl(val_array(s->b.cx, like)->dtype);
    return build(&s->b, P_random_join, 2, (Val[]){p.re, p.im}, 1, &which);
}
static void put_result(Split *s, Val v, Pair p) {
    if (is_complex(s->b.cx, v))
        pair_put(s, v, p);
    else
        valmap_put(&s->map, v, p.re);
}
/* Parts side by side. */
static Vals side_by_side(void *user, Vals vs) {
    Split *s = user;
    Vals all = {arena_new(s->b.cx->arena, Val, 2 * vs.n + 1), 0};
    each(const Val, v, vs) {
        Pair p = pair_get(s, *v);
        all.at[all.n++] = p.re;
        if (p.im) all.at[all.n++] = p.im;
    }
    return all;
}
/* New parts, side by side: of results, or inputs of a nested program. */
static Vals fresh_parts(void *user, Vals vs) {
    Split *s = user;
    Ctx *cx = s->b.cx;
    Vals all = {arena_new(cx->arena, Val, 2 * vs.n + 1), 0};
    each(const Val, v, vs) {
        if (!is_complex(cx, *v)) {
            all.at[all.n++] = *v;
            continue;
        }
        Type t = part_type(cx, val_type(cx, *v));
        Span span = val_info(cx, *v)->span;
        Pair p = {val_new(cx, t, span), val_new(cx, t, span)};
        pair_put(s, *v, p);
        all.at[all.n++] = p.re, all.at[all.n++] = p.im;
    }
    return all;
}

/* ---- equations */
static Params without(Ctx *cx, Params p, ParamKey key) {
    Params new = {arena_new(cx->arena, Param, p.n + 1), 0};
    each(const Param, q, p)
        if (q->key != key) new.at[new.n++] = *q;
    return new;
}
static void eqn_each(Split *s, const Eqn *e) {
    Ctx *cx = s->b.cx;
    Val *in = arena_new(cx->arena, Val, e->in.n + 1);
    Type *types = arena_new(cx->arena, Type, e->out.n + 1);
    Vals out[2];
    for (uint32_t i = 0; i < e->out.n; i++) types[i] = part_type(cx, val_type(cx, e->out.at[i]));
    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t i = 0; i < e->in.n; i++) {
            Pair p = pair_get(s, e->in.at[i]);
            in[i] = part && p.im ? p.im : p.re;
        }
        out[part] = build_many(&s->b, e->prim, e->in.n, in, e->params.n, e->params.at, e->out.n, types);
    }
    for (uint32_t i = 0; i < e->out.n; i++) pair_put(s, e->out.at[i], (Pair){out[0].at[i], out[1].at[i]});
}
/* Stretches a scalar or axes of extent 1; 0, the imaginary part of a real value, stays. */
static Val stretched(Builder *b, Val v, const ArrayType *to) {
    if (b->failed || !v) return v;
    const ArrayType *t = b_type(b, v);
    if (t->rank == to->rank && (!t->rank || memcmp(t->dims, to->dims, t->rank * sizeof *t->dims) == 0)) return v;
    int64_t axes[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) axes[i] = i;
    return b_broadcast(b, v, to->rank, to->dims, axes);
}
static void eqn_pair(Split *s, const Eqn *e, bool point) {
    Ctx *cx = s->b.cx;
    Pair *x = arena_new(cx->arena, Pair, e->in.n + 1);
    const ArrayType *to = val_array(cx, e->out.at[0]);
    for (uint32_t i = 0; i < e->in.n; i++) {
        x[i] = pair_get(s, e->in.at[i]);
        if (point) x[i] = (Pair){stretched(&s->b, x[i].re, to), stretched(&s->b, x[i].im, to)};
    }
    put_result(s, e->out.at[0], rules[e->prim].pair(&s->b, e, x));
}
static void eqn_memory(Split *s, const Eqn *e) {
    Ctx *cx = s->b.cx;
    Val *in = arena_new(cx->arena, Val, e->in.n + 1);
    Type *types = arena_new(cx->arena, Type, e->out.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) {
        Pair p = pair_get(s, e->in.at[i]);
        in[i] = p.im ? joined(s, e->in.at[i], p) : p.re;
    }
    for (uint32_t i = 0; i < e->out.n; i++) types[i] = val_type(cx, e->out.at[i]);
    Vals out = build_many(&s->b, e->prim, e->in.n, in, e->params.n, e->params.at, e->out.n, types);
    for (uint32_t i = 0; i < e->out.n; i++) {
        bool complex = is_complex(cx, e->out.at[i]);
        put_result(s, e->out.at[i], complex ? loaded(s, out.at[i]) : (Pair){out.at[i], 0});
    }
}

/* ---- control flow */
static int64_t complex_among(Ctx *cx, Vals vs, int64_t from, int64_t n) {
    int64_t many = 0;
    for (int64_t i = from; i < from + n && i < vs.n; i++) many += is_complex(cx, vs.at[i]);
    return many;
}
static void eqn_nested(Split *s, const Eqn *e, const Eqn *new) {
    Eqn parts = control_map(s->b.cx->arena, e, new, side_by_side, fresh_parts, s);
    push(s->b.cx->arena, &s->b.eqns, parts);
}

/* ---- programs */
static Jaxpr *split_nested(void *user, const Jaxpr *j); /* inputs and results are parts, side by side */
static Jaxpr *split_whole(void *user, const Jaxpr *j);  /* inputs and results are complex numbers in memory */

/* The combining program takes complex numbers apart and puts them together itself. */
static void eqn_updated(Split *s, const Eqn *e) {
    Eqn new = *e;
    const Jaxpr *program = param_jaxpr(e, K_update_jaxpr);
    new.params = without(s->b.cx, e->params, K_update_jaxpr);
    if (e->prim == P_scatter_add || e->prim == P_scatter_sub || (e->prim == P_scatter && !program)) {
        eqn_each(s, &new);
        return;
    }
    if (!program)
        s->b.failed = !diag(s->b.cx->diags, e->span, "%s of complex numbers needs update_jaxpr", prim_name[e->prim]);
    if (s->b.failed) return;
    new.prim = P_scatter;
    new.params.at[new.params.n++] = p_jaxpr(K_update_jaxpr, split_whole(s, program));
    eqn_memory(s, &new);
}
/* Are the only complex values of a scan, keys apart, slices so long that they lie in memory anyway? Then they stay
   complex numbers, so that stacked arrays are neither taken apart nor put together. */
enum { LONG_SLICE = 1024 };
static bool long_slices(Ctx *cx, Vals slices) {
    each(const Val, v, slices) {
        Dim n = 1;
        if (!is_complex(cx, *v)) continue;
        const ArrayType *t = val_array(cx, *v);
        for (uint32_t i = 1; i < t->rank; i++) n = dim_mul(cx->types, n, t->dims[i]);
        if (is_key(cx, *v) || !dim_is_const(n) || n < LONG_SLICE) return false;
    }
    return true;
}
static bool scans_memory(Ctx *cx, const Eqn *e) {
    if (e->prim != P_scan) return false;
    Scan x = scan_of(e);
    if (complex_among(cx, x.consts, 0, x.consts.n) || complex_among(cx, x.carry, 0, x.carry.n)) return false;
    return long_slices(cx, x.xs) && long_slices(cx, x.ys);
}
static void split_eqn(Split *s, const Eqn *e) {
    Ctx *cx = s->b.cx;
    bool any = complex_among(cx, e->in, 0, e->in.n) || complex_among(cx, e->out, 0, e->out.n);
    bool memory = any && scans_memory(cx, e);
    Eqn new = eqn_rewrite(&s->map, e, memory ? split_whole : split_nested, s);
    s->b.span = e->span;
    if (s->b.failed) return;
    if (!any) {
        push(cx->arena, &s->b.eqns, new);
        return;
    }
    Eqn old = new; /* its operands are those of e, which pairs replace */
    old.in = e->in;
    switch ((How)(memory ? MEMORY : rules[e->prim].how)) {
    case EACH: eqn_each(s, &old); break;
    case POINTS: eqn_pair(s, &old, true); break;
    case WHOLE: eqn_pair(s, &old, false); break;
    case NESTED: eqn_nested(s, e, &new); break;
    case MEMORY: eqn_memory(s, &old); break;
    case UPDATED: eqn_updated(s, e); break;
    case REFUSED:
        s->b.failed = true;
        diag(cx->diags, e->span, "primitive '%s' of complex numbers is not supported yet", prim_name[e->prim]);
    }
}
/* The inputs and results of the main program are in memory. */
static Jaxpr *split(Split *s, const Jaxpr *j, bool nested) {
    Ctx *cx = s->b.cx;
    Eqns outer = s->b.eqns;
    Pair *known = arena_new(cx->arena, Pair, j->consts.n + 1);
    s->b.eqns = (Eqns){0};
    s->b.span = j->span;
    for (uint32_t i = 0; i < j->consts.n; i++) {
        Val c = j->consts.at[i];
        if (!is_complex(cx, c)) continue;
        known[i] = pair_get(s, c);
        pair_put(s, c, loaded(s, c));
    }
    Vals in = nested ? fresh_parts(s, j->in) : j->in, out = {arena_new(cx->arena, Val, 2 * j->out.n + 1), 0};
    if (!nested)
        each(const Val, v, j->in)
            if (is_complex(cx, *v)) pair_put(s, *v, loaded(s, *v));
    for (uint32_t i = 0; i < j->eqns.n && !s->b.failed; i++) split_eqn(s, &j->eqns.at[i]);
    if (nested)
        out = side_by_side(s, j->out);
    else
        each(const Val, v, j->out) {
            Pair p = pair_get(s, *v);
            out.at[out.n++] = is_complex(cx, *v) ? joined(s, *v, p) : p.re;
        }
    for (uint32_t i = 0; i < j->consts.n; i++)
        if (known[i].re) pair_put(s, j->consts.at[i], known[i]);
    Jaxpr *new = jaxpr_with(cx, j, s->b.eqns, out);
    new->in = in;
    s->b.eqns = outer;
    return new;
}
static Jaxpr *split_once(Split *s, const Jaxpr *j, bool nested) {
    uint64_t key[2] = {(uintptr_t)j, nested};
    if (*memo_at(&s->memo, key, sizeof key)) return *memo_at(&s->memo, key, sizeof key);
    Jaxpr *new = split(s, j, nested);
    return *memo_at(&s->memo, key, sizeof key) = new;
}
static Jaxpr *split_nested(void *user, const Jaxpr *j) { return split_once(user, j, true); }
static Jaxpr *split_whole(void *user, const Jaxpr *j) { return split_once(user, j, false); }
Jaxpr *pass_complex(Ctx *cx, const Jaxpr *j) {
    Split s = {.b.cx = cx, .map.cx = cx, .memo.arena = cx->arena};
    Jaxpr *new = split(&s, j, false);
    return s.b.failed ? NULL : new;
}

/* ---- primitives that are not elementwise */
/* The equation with other operands, giving an array of `d`. */
static Val real_equation(Builder *b, const Eqn *e, uint32_t n, const Val *in, Dtype d) {
    Type t = type_like(b->cx, val_type(b->cx, e->out.at[0]), d);
    Param *p = arena_new(b->cx->arena, Param, e->params.n + 1);
    for (uint32_t i = 0; i < e->params.n; i++) {
        p[i] = e->params.at[i];
        bool type = p[i].key == K_dtype || p[i].key == K_preferred_element_type;
        if (type && p[i].value.kind != V_NONE) p[i].value = p_dtype(p[i].key, d).value;
    }
    return build_many(b, e->prim, n, in, e->params.n, p, 1, &t).at[0];
}
static Dtype part_dtype(Builder *b, const Eqn *e) { return dtype_real(val_array(b->cx, e->out.at[0])->dtype); }
static Pair iota(Builder *b, const Eqn *e, const Pair *x) {
    Val in[MAX_RANK];
    for (uint32_t i = 0; i < e->in.n; i++) in[i] = x[i].re;
    Val re = real_equation(b, e, e->in.n, in, part_dtype(b, e));
    return (Pair){re, b_full_like(b, re, 0)};
}
static Pair empty(Builder *b, const Eqn *e, const Pair *x) { return iota(b, e, x); }

/* The words of a key along a new last axis. Parts of 64 bits are two words, the low one first. */
static Pair unwrap(Builder *b, const Eqn *e, const Pair *x) {
    if (b->failed) return (Pair){VAL_FAILED, VAL_FAILED};
    const ArrayType *t = b_type(b, x[0].re), *to = val_array(b->cx, e->out.at[0]);
    Dim dims[MAX_RANK + 1];
    Val w[4] = {x[0].re, x[0].im};
    uint32_t n = 2;
    if (t->dtype == DT_u64) {
        for (uint32_t i = 2; i-- > 0;) {
            Val v = w[i];
            w[2 * i] = b_convert(b, v, DT_u32);
            w[2 * i + 1] = b_convert(b, b_shift_right_logical(b, v, b_full_like(b, v, 32)), DT_u32);
        }
        n = 4;
    }
    memcpy(dims, to->dims, to->rank * sizeof *dims);
    dims[t->rank] = 1;
    for (uint32_t i = 0; i < n; i++) w[i] = b_reshape(b, w[i], to->rank, dims);
    return (Pair){b_concatenate(b, n, w, t->rank), 0};
}
static Pair wrap(Builder *b, const Eqn *e, const Pair *x) {
    if (b->failed) return (Pair){VAL_FAILED, VAL_FAILED};
    const ArrayType *t = b_type(b, x[0].re);
    uint32_t rank = t->rank - 1,
             n = dtype_info[val_array(b->cx, e->out.at[0])->dtype].bits / 32; /* t's last extent, or what it must be */
    Val w[4];
    for (uint32_t i = 0; i < n; i++) w[i] = b_reshape(b, b_slice_axis(b, x[0].re, rank, i, i + 1), rank, t->dims);
    if (n == 4)
        for (uint32_t i = 0; i < 2; i++) {
            Val lo = b_convert(b, w[2 * i], DT_u64), hi = b_convert(b, w[2 * i + 1], DT_u64);
            w[i] = b_or(b, lo, b_shift_left(b, hi, b_full_like(b, hi, 32)));
        }
    return (Pair){w[0], w[1]};
}

/* As the parser reads it: 2.0 is a float, nan and inf are words. */
static Param fill_value(Arena *arena, double x) {
    bool whole = x == nearbyint(x) && fabs(x) < 1e15;
    Str s = isnan(x) ? S("nan") : str_format(arena, isinf(x) ? "%f" : whole ? "%.1f" : "%.17g", x);
    return (Param){.key = K_fill_value, .value = {.kind = isfinite(x) ? V_FLOAT : V_WORD, .f = x, .s = s}};
}
/* Windows that are not inside are filled with NaN if no number is given, without an imaginary part; keys with all bits
   set, like any unsigned number. */
static Pair gather(Builder *b, const Eqn *e, const Pair *x) {
    Dtype d = part_dtype(b, e);
    Eqn re = *e, im = *e;
    bool key = dtype_info[val_array(b->cx, e->out.at[0])->dtype].kind == DK_KEY;
    double fill[2];
    bool given = gather_fill(b->cx, e, fill);
    re.params = without(b->cx, e->params, K_fill_value);
    im.params = without(b->cx, e->params, K_fill_value);
    if (!key && given) re.params.at[re.params.n++] = fill_value(b->cx->arena, fill[0]);
    if (!key) im.params.at[im.params.n++] = fill_value(b->cx->arena, fill[1]);
    return (Pair){real_equation(b, &re, 2, (Val[]){x[0].re, x[1].re}, d),
                  real_equation(b, &im, 2, (Val[]){x[0].im, x[1].re}, d)};
}

/* ---- dot_general */
typedef struct {
    Ints contracted, batch;
    int64_t free[MAX_RANK];
    uint32_t nfree;
    bool vector; /* its free axes have extent 1 */
} Side;
static Side side(Builder *b, const Eqn *e, uint32_t i, Val v) {
    const Value *numbers = param_find(e, K_dimension_numbers)->value.list.at;
    Side s = {numbers[i].ints, numbers[2 + i].ints, .vector = true};
    const ArrayType *t = b_type(b, v);
    bool used[MAX_RANK] = {false};
    each(int64_t, a, s.contracted) used[*a] = true;
    each(int64_t, a, s.batch) used[*a] = true;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (used[d]) continue;
        s.free[s.nfree++] = d;
        s.vector &= t->dims[d] == 1;
    }
    return s;
}
/* Broadcasts an operand to the axes of the products: batch, free ones of the left operand, of the right one,
   contracted. */
static Pair spread(Builder *b, Pair x, const Side *s, uint32_t before, uint32_t free, Dtype d) {
    const ArrayType *t = b_type(b, x.re);
    int64_t to[MAX_RANK] = {0};
    Dim dims[2 * MAX_RANK];
    uint32_t last = s->batch.n + free, rank = last + s->contracted.n;
    for (uint32_t i = 0; i < rank; i++) dims[i] = 1;
    for (uint32_t i = 0; i < s->batch.n; i++) to[s->batch.at[i]] = i;
    for (uint32_t i = 0; i < s->nfree; i++) to[s->free[i]] = s->batch.n + before + i;
    for (uint32_t i = 0; i < s->contracted.n; i++) to[s->contracted.at[i]] = last + i;
    for (uint32_t i = 0; i < t->rank; i++) dims[to[i]] = t->dims[i];
    x = pair_parts(b, x, d);
    return (Pair){b_place(b, x.re, rank, dims, to), x.im ? b_place(b, x.im, rank, dims, to) : 0};
}
/* Sums of products, in one loop that reads each operand once. */
static Pair sums_of_products(Builder *b, Pair l, Pair r, const Side *ls, const Side *rs, Dtype d) {
    uint32_t free = ls->nfree + rs->nfree, first = ls->batch.n + free;
    int64_t axes[MAX_RANK];
    Pair p = pair_product(b, spread(b, l, ls, 0, free, d), spread(b, r, rs, ls->nfree, free, d));
    for (uint32_t i = 0; i < ls->contracted.n; i++) axes[i] = first + i;
    Val re = b_reduce(b, P_reduce_sum, p.re, ls->contracted.n, axes);
    return (Pair){re, p.im ? b_reduce(b, P_reduce_sum, p.im, ls->contracted.n, axes) : 0};
}
/* Four products of the parts; two where one operand is real. */
static Pair four_dots(Builder *b, const Eqn *e, Pair l, Pair r, Dtype d) {
    Val rr = real_equation(b, e, 2, (Val[]){l.re, r.re}, d);
    Val ri = r.im ? real_equation(b, e, 2, (Val[]){l.re, r.im}, d) : 0;
    Val ir = l.im ? real_equation(b, e, 2, (Val[]){l.im, r.re}, d) : 0;
    if (!ri || !ir) return (Pair){rr, ri ? ri : ir};
    Val ii = real_equation(b, e, 2, (Val[]){l.im, r.im}, d);
    return (Pair){b_sub(b, rr, ii), b_add(b, ri, ir)};
}
/* A preferred type that is not complex takes the real part. */
static Pair dot_general(Builder *b, const Eqn *e, const Pair *x) {
    Dtype to = val_array(b->cx, e->out.at[0])->dtype;
    bool floats = dtype_info[to].kind == DK_FLOAT || dtype_info[to].kind == DK_COMPLEX;
    Pair l = x[0], r = x[1];
    if (b->failed) return x[0];
    Dtype d = floats ? dtype_real(to) : b_type(b, l.im ? l.re : r.re)->dtype;
    Side ls = side(b, e, 0, l.re), rs = side(b, e, 1, r.re);
    bool sums = ls.vector || rs.vector || !ls.contracted.n;
    Pair p = sums ? sums_of_products(b, l, r, &ls, &rs, d) : four_dots(b, e, l, r, d);
    p.re = b_convert(b, p.re, dtype_real(to));
    if (dtype_real(to) == to) return (Pair){p.re, 0};
    return p.im || b->failed ? p : (Pair){p.re, b_full_like(b, p.re, 0)};
}

static PairRule *combiner(Prim reduce) {
    return reduce == P_cumlogsumexp ? pair_logaddexp : rules[prim_combiner[reduce]].pair;
}
static Pair neutral(Builder *b, Prim prim, Dtype d, uint32_t rank, const Dim *dims) {
    static const double values[] = {[NEUTRAL_ONE] = 1, [NEUTRAL_LEAST] = -INFINITY, [NEUTRAL_MOST] = INFINITY};
    double v = values[prim_neutral[prim]];
    Val re = b_full(b, b_float(b, d, v), rank, dims);
    return (Pair){re, isinf(v) ? re : b_full(b, b_float(b, d, 0), rank, dims)};
}
/* A scan along the first axis: out[i] = out[i - 1] ∘ x[i]; or only the last one. */
static Pair scan(Builder *b, const Eqn *e, Pair x, bool all, bool reverse) {
    Ctx *cx = b->cx;
    if (b->failed) return x;
    const ArrayType *t = b_type(b, x.re);
    Type row = type_of(cx->types, t->dtype, t->rank - 1, t->dims + 1);
    Pair start = neutral(b, e->prim, t->dtype, t->rank - 1, t->dims + 1);
    Inner turn = b_inner(b, 4, (Type[]){row, row, row, row});
    Pair both[2] = {{turn.in.at[0], turn.in.at[1]}, {turn.in.at[2], turn.in.at[3]}};
    Pair y = combiner(e->prim)(b, e, both);
    b_inner_end(b, &turn, all ? 4 : 2, (Val[]){y.re, y.im, y.re, y.im});
    Loop how = {.length = t->dims[0], .carries = 2, .reverse = reverse};
    Vals out = b_scan(b, &turn, how, 4, (Val[]){start.re, start.im, x.re, x.im});
    return all ? (Pair){out.at[2], out.at[3]} : (Pair){out.at[0], out.at[1]};
}
static Pair transposed(Builder *b, Pair x, const int64_t *axes) {
    return (Pair){b_transpose(b, x.re, axes), b_transpose(b, x.im, axes)};
}
static Pair cumulative(Builder *b, const Eqn *e, const Pair *x) {
    int64_t axis = param_number(e, K_axis), to[MAX_RANK] = {0}, back[MAX_RANK];
    uint32_t rank = b_type(b, x[0].re)->rank;
    for (uint32_t i = 0, k = 1; i < rank; i++) to[(int64_t)i == axis ? 0 : k++] = i;
    for (uint32_t i = 0; i < rank; i++) back[to[i]] = i;
    return transposed(b, scan(b, e, transposed(b, x[0], to), true, param_bool(e, K_reverse)), back);
}
static Pair flat(Builder *b, Pair x, uint32_t rank, const Dim *dims) {
    return (Pair){b_reshape(b, x.re, rank, dims), b_reshape(b, x.im, rank, dims)};
}
static Pair halves(Builder *b, Pair x, Dim lo, Dim hi) {
    return (Pair){b_slice_axis(b, x.re, 0, lo, hi), b_slice_axis(b, x.im, 0, lo, hi)};
}
/* The reduced axes become a single leading axis, whose halves are combined until one element is left. */
static Pair reduce(Builder *b, const Eqn *e, const Pair *x) {
    Ctx *cx = b->cx;
    const ArrayType *t = b_type(b, x[0].re);
    Ints axes = param_ints(e, K_axes);
    int64_t to[MAX_RANK];
    Dim dims[MAX_RANK + 1] = {1};
    uint32_t nr = 0, rank = 1;
    bool gone[MAX_RANK] = {false};
    each(int64_t, a, axes) gone[*a] = true, to[nr++] = *a, dims[0] = dim_mul(cx->types, dims[0], t->dims[*a]);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!gone[i]) to[nr++] = i, dims[rank++] = t->dims[i];
    Pair y = flat(b, transposed(b, x[0], to), rank, dims);
    Dim n = dims[0];
    if (!dim_is_const(n)) return scan(b, e, y, false, false);
    if (n == 0) return neutral(b, e->prim, t->dtype, rank - 1, dims + 1);
    for (; n > 1; n = (n + 1) / 2) {
        Pair two[2] = {halves(b, y, 0, n / 2), halves(b, y, (n + 1) / 2, n)};
        Pair one = combiner(e->prim)(b, e, two), rest = halves(b, y, n / 2, (n + 1) / 2);
        y = one;
        if (n % 2)
            y = (Pair){b_concatenate(b, 2, (Val[]){one.re, rest.re}, 0),
                       b_concatenate(b, 2, (Val[]){one.im, rest.im}, 0)};
    }
    return flat(b, y, rank - 1, dims + 1);
}
