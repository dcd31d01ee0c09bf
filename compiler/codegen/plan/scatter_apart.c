#include "scatter.h"
#include "../../typecheck/index.h"

/* Do all positions of a scatter certainly differ? They do if for each of their axes one entry of the position tells
   where along the axis it is: a count, as of x[arange(n), i]. Equations are followed for a few steps. */

enum { MOST_STEPS = 12 };
typedef struct {
    Plan *p;
    uint32_t steps;
} Chain;
static bool tells(Chain *s, Val v, uint32_t axis);

static const Eqn *maker(Chain *s, Val v) {
    if (val_info(s->p->cx, v)->lit || s->steps++ == MOST_STEPS) return NULL;
    return plan_info(s->p, v)->e;
}
static bool is_number(Chain *s, Val v) { return val_info(s->p->cx, v)->lit && !val_array(s->p->cx, v)->rank; }
static bool is_zero(Chain *s, Val v) {
    const Lit *lit = val_info(s->p->cx, v)->lit;
    return lit && lit->kind == LIT_INT && !lit->i;
}
/* Is the axis the same in the operand, but for axes of extent 1 and others that repeat it? *from: its number there. */
static bool comes_from(Chain *s, const Eqn *e, uint32_t axis, uint32_t *from) {
    const ArrayType *x = val_array(s->p->cx, e->in.at[0]), *y = val_array(s->p->cx, e->out.at[0]);
    if (e->prim == P_broadcast_in_dim) {
        Ints axes = param_ints(e, K_broadcast_dimensions);
        for (*from = 0; *from < axes.n; ++*from)
            if (axes.at[*from] == axis) return x->dims[*from] == y->dims[axis];
        return false;
    }
    for (uint32_t d = 0, k = 0; d < y->rank; d++) {
        if (y->dims[d] == 1) continue;
        while (k < x->rank && x->dims[k] == 1) k++;
        if (k == x->rank || x->dims[k] != y->dims[d]) return false;
        if (d == axis) *from = k;
        k++;
    }
    return true;
}
static bool is_view(Prim p) {
    return p == P_broadcast_in_dim || p == P_reshape || p == P_expand_dims || p == P_squeeze;
}
/* Does the type hold all numbers along the axis? */
static bool holds(Chain *s, Val v, uint32_t axis) {
    const ArrayType *t = val_array(s->p->cx, v);
    DtypeKind kind = dtype_info[t->dtype].kind;
    if (kind != DK_SINT && kind != DK_UINT) return false;
    if (dtype_bytes(t->dtype) >= 4) return true;
    return dim_is_const(t->dims[axis]) && t->dims[axis] - 1 <= dtype_limit(t->dtype, true);
}
/* Is it certainly not negative? */
static bool counts(Chain *s, Val v) {
    const Eqn *e = maker(s, v);
    if (e && e->prim == P_iota) return holds(s, v, (uint32_t)param_number(e, K_dimension));
    return e && is_view(e->prim) && counts(s, e->in.at[0]);
}
/* JAX adds the extent to what is negative. */
static bool tells_select(Chain *s, const Eqn *e, uint32_t axis) {
    const Eqn *test = maker(s, e->in.at[0]);
    bool never = test && test->prim == P_lt && is_zero(s, test->in.at[1]) && counts(s, test->in.at[0]);
    return never && tells(s, e->in.at[1], axis);
}
/* Do elements of v at different places along the axis differ, wherever they are along others? */
static bool tells(Chain *s, Val v, uint32_t axis) {
    const Eqn *e = maker(s, v);
    uint32_t from = axis;
    if (!e || !holds(s, v, axis)) return false;
    if (e->prim == P_iota) return param_number(e, K_dimension) == axis;
    if (is_view(e->prim)) return comes_from(s, e, axis, &from) && tells(s, e->in.at[0], from);
    if (e->prim == P_convert_element_type) return tells(s, e->in.at[0], axis);
    if (e->prim == P_add) return is_number(s, e->in.at[1]) && tells(s, e->in.at[0], axis);
    return e->prim == P_select_n && e->in.n == 3 && tells_select(s, e, axis);
}
/* The pieces of a concatenation along the last axis are entries. */
static bool entry_tells(Chain *s, Val indices, uint32_t axis) {
    const Eqn *e = maker(s, indices);
    if (!e || e->prim != P_concatenate || param_number(e, K_dimension) + 1 != val_array(s->p->cx, indices)->rank)
        return tells(s, indices, axis);
    each(Val, v, e->in) {
        s->steps = 0;
        if (tells(s, *v, axis)) return true;
    }
    return false;
}
bool scatter_apart(Plan *p, const Step *s) {
    const Eqn *e = s->e;
    const ArrayType *indices = val_array(p->cx, e->in.at[1]);
    IndexNumbers n;
    if (!index_numbers(p->cx, e, &n) || index_mode(e) == MODE_CLIP) return false;
    for (uint32_t i = 0; i < s->nkept; i++)
        if (scatter_overlaps(p, s, s->kept[i])) return false;
    for (uint32_t d = 0; d + 1 < indices->rank; d++) {
        Chain chain = {.p = p};
        if (indices->dims[d] == 1 || ints_have(n.index_batch, d)) continue;
        if (!entry_tells(&chain, e->in.at[1], d)) return false;
    }
    return true;
}
