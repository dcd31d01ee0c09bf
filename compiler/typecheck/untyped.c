/* Adds what the text leaves out: types of literals before 0.6.1, and parameters that old versions did not print or that
   the binder implies. */
#include "../control.h"
#include "rule.h"

/* ---- literals */

Type literal_type(Ctx *cx, const Lit *lit) {
    Dtype d = DT_none;
    switch (lit->kind) {
    case LIT_BOOL: d = DT_bool; break;
    case LIT_INT: d = cx->wide || lit->i > INT32_MAX ? DT_i64 : DT_i32; break;
    case LIT_FLOAT: d = cx->wide ? DT_f64 : DT_f32; break;
    case LIT_COMPLEX: d = cx->wide ? DT_c128 : DT_c64; break;
    case LIT_FLOAT0: d = DT_float0; break;
    case LIT_UNIT: d = DT_unit; break;
    case LIT_ARRAY: break;
    }
    return type_of(cx->types, d, 0, NULL);
}

bool literal_fits(const Ctx *cx, const Lit *lit, Type t) {
    const DtypeInfo *d = &dtype_info[type_at(cx->types, t)->dtype];
    unsigned bits = d->bits ? d->bits : 1;
    uint64_t most = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (d->kind == DK_SINT) most = most / 2 + lit->negative;
    switch (lit->kind) {
    case LIT_BOOL: return d->kind == DK_BOOL;
    case LIT_INT:
        if (OF_INEXACT >> d->kind & 1) return true;
        if (lit->negative && lit->i && d->kind != DK_SINT) return false;
        return OF_INT >> d->kind & 1 && lit->i <= most;
    case LIT_FLOAT: return OF_INEXACT >> d->kind & 1;
    case LIT_COMPLEX: return d->kind == DK_COMPLEX;
    default: return true;
    }
}

/* Leading operands with other element types: a predicate, an array before indices. */
static const uint8_t apart[NPRIMS] = {
    [P_select_n] = 1,
    [P_cond] = 1,
    [P_dynamic_slice] = 1,
    [P_dynamic_update_slice] = 2,
};

/* The input of a nested program that an operand of a call or of control flow becomes; 0 for others. */
static Val input_for(const Ctx *cx, const Eqn *e, unsigned i) {
    if (e->prim == P_for_loop) return for_loop_input(cx, e, i);
    Jaxpr *j = eqn_program(e);
    if (!j) j = param_jaxpr(e, K_body_jaxpr);
    uint32_t skip = 0, first;
    Jaxprs branches = cond_branches(e, &first);
    if (!j && branches.n) j = branches.at[0], skip = first;
    if (e->prim == P_while) {
        skip = (uint32_t)param_int(e, K_cond_nconsts, 0);
        if (i < skip) j = param_jaxpr(e, K_cond_jaxpr), skip = 0;
    }
    return j && i >= skip && i - skip < j->in.n ? j->in.at[i - skip] : 0;
}

/* The element type of the first typed operand in [from, to). */
static Dtype dtype_among(Ctx *cx, const Eqn *e, const Type *in, unsigned from, unsigned to) {
    for (unsigned i = from; i < to && i < e->in.n; i++)
        if (in[i]) return type_at(cx->types, in[i])->dtype;
    return DT_none;
}

/* Does the result have the operands' element type? */
static bool keeps_dtype(const Eqn *e) { return !param_has(e, K_new_dtype) && !param_has(e, K_index_dtype); }

/* An untyped literal takes the type of its neighbours, of the nested program's input, of the declared result, or its
   own default, in this order. */
static void complete_literal(Ctx *cx, const Eqn *e, Type *in, unsigned i) {
    ValInfo *v = val_info(cx, e->in.at[i]);
    Val input = input_for(cx, e, i);
    unsigned split = apart[e->prim];
    Dtype d = DT_none;
    Type own = literal_type(cx, v->lit);
    if (input) {
        d = type_at(cx->types, val_type(cx, input))->dtype;
    } else if (e->prim != P_none && !eqn_jaxprs(cx->arena, e).n) {
        d = i < split ? dtype_among(cx, e, in, 0, split) : dtype_among(cx, e, in, split, e->in.n);
        if (d == DT_none && i >= split && e->out.n == 1 && keeps_dtype(e) && split < 2)
            d = type_at(cx->types, val_type(cx, e->out.at[0]))->dtype;
    }
    if (d != DT_none && own && v->lit->kind != LIT_UNIT) {
        Type t = type_of(cx->types, d, 0, NULL);
        if (literal_fits(cx, v->lit, t)) own = t;
    }
    in[i] = v->type = own;
}

/* ---- parameters */

static void param_add(Ctx *cx, Eqn *e, ParamKey k, Value value) {
    if (param_find(e, k)) return;
    Param *at = arena_new(cx->arena, Param, (size_t)e->params.n + 1);
    if (e->params.n) memcpy(at, e->params.at, e->params.n * sizeof *at);
    at[e->params.n] = (Param){.key = k, .span = e->span, .value = value};
    e->params = (Params){at, e->params.n + 1};
}

static Value value_int(int64_t i) { return (Value){.kind = V_INT, .i = i}; }

/* 2020: the remaining operands are the carry; some texts lack body_nconsts. */
static void complete_while(Ctx *cx, Eqn *e, Type *in) {
    Jaxpr *cond = param_jaxpr(e, K_cond_jaxpr), *body = param_jaxpr(e, K_body_jaxpr);
    if (!cond || !body) return;
    param_add(cx, e, K_body_nconsts, value_int((int64_t)body->in.n - body->out.n));
    param_add(cx, e, K_cond_nconsts, value_int((int64_t)cond->in.n - body->out.n));
}

/* The common leading extent of the operands from `first` on; false where they have none. */
static bool leading_extent(const Ctx *cx, const Eqn *e, const Type *in, uint32_t first, Dim *n) {
    bool found = false;
    for (uint32_t i = first; i < e->in.n; i++) {
        const ArrayType *x = type_at(cx->types, in[i]);
        if (x->dtype == DT_unit) continue;
        if (!in[i] || !x->rank || (found && x->dims[0] != *n)) return false;
        *n = x->dims[0];
        found = true;
    }
    return found;
}

/* February 2020: some texts lack length and num_carry: the fewest carried values such that the rest can be scanned
   together. */
static void complete_scan(Ctx *cx, Eqn *e, Type *in) {
    Jaxpr *j = param_jaxpr(e, K_jaxpr);
    Dim n = 0;
    if (!j || (param_has(e, K_length) && param_has(e, K_num_carry))) return;
    uint32_t first = (uint32_t)param_int(e, K_num_consts, 0), carry = 0;
    if (param_has(e, K_num_carry))
        carry = (uint32_t)param_int(e, K_num_carry, 0);
    else
        while (carry < j->out.n && !leading_extent(cx, e, in, first + carry, &n)) carry++;
    bool known = leading_extent(cx, e, in, first + carry, &n);
    param_add(cx, e, K_num_carry, value_int(carry));
    if (known) param_add(cx, e, K_length, (Value){.kind = V_DIM, .dim = n});
}

/* 2019: SAME, as many windows as strides fit into the axis, or VALID, no padding. */
static void complete_padding(Ctx *cx, Eqn *e, Type *in) {
    const Param *p = param_find(e, K_padding);
    if (!e->in.n || !in[e->in.n - 1]) return;
    const ArrayType *x = type_at(cx->types, in[e->in.n - 1]);
    Dims w = param_dims(e, K_window_dimensions);
    Ints strides = param_ints(e, K_window_strides);
    if (!p || (p->value.kind != V_WORD && p->value.kind != V_STR) || w.n != x->rank) return;
    bool same = p->value.s.n >= 4 && !memcmp(p->value.s.at + (p->value.kind == V_STR), "SAME", 4);
    Value v = {.kind = V_DIMS, .open = '(', .span = p->value.span};
    v.dims = (Dims){arena_new(cx->arena, Dim, 2 * w.n + 1), 2 * w.n};
    for (uint32_t i = 0; i < w.n && same; i++) {
        Types *ts = cx->types;
        int64_t by = i < strides.n && strides.at[i] > 0 ? strides.at[i] : 1;
        Dim n = dim_floordiv(ts, dim_add(ts, x->dims[i], by - 1), by);
        Dim all = dim_add(ts, dim_mul(ts, dim_sub(ts, n, 1), by), w.at[i]);
        all = dim_max(ts, dim_sub(ts, all, x->dims[i]), 0);
        v.dims.at[2 * i] = dim_floordiv(ts, all, 2);
        v.dims.at[2 * i + 1] = dim_sub(ts, all, v.dims.at[2 * i]);
    }
    for (uint32_t i = 0; i < e->params.n; i++)
        if (e->params.at[i].key == K_padding) e->params.at[i].value = v;
}

typedef void Complete(Ctx *, Eqn *, Type *in);
static Complete *const complete_params[NPRIMS] = {
    [P_while] = complete_while,
    [P_scan] = complete_scan,
    [P_reduce_window_sum] = complete_padding,
    [P_reduce_window_max] = complete_padding,
    [P_reduce_window_min] = complete_padding,
    [P_select_and_scatter_add] = complete_padding,
    [P_select_and_gather_add] = complete_padding,
};

void complete(Ctx *cx, Eqn *e, Type *in) {
    for (unsigned i = 0; i < e->in.n; i++)
        if (!in[i] && val_info(cx, e->in.at[i])->lit) complete_literal(cx, e, in, i);
    if (complete_params[e->prim]) complete_params[e->prim](cx, e, in);
}
