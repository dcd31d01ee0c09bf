#include "../cost.h"
#include "../eval/evaluate.h"
#include "dot.h"

/* Values that do not lie in the order of their step's loops: results that are transposed are stored so by the step that
   computes them, not by one that reads them again; and values lie as what they are computed from. */

/* The strides of the operand's axes where its transpose is dense, and the axis along which that is contiguous; -1:
   none. */
static int64_t transposed(Plan *p, const Eqn *e, Dim *strides) {
    const ArrayType *t = val_array(p->cx, e->out.at[0]);
    Ints from = param_ints(e, K_permutation);
    Dim stride = 1;
    int64_t last = -1;
    for (uint32_t d = t->rank; d-- > 0;) {
        if (last < 0 && t->dims[d] != 1) last = from.at[d];
        strides[from.at[d]] = stride, stride = dim_mul(p->cx->types, stride, t->dims[d]);
    }
    return last;
}
void step_sees(Plan *p, Step *s, Ix address) {
    Dim apart[MAX_RANK];
    bool whole = true;
    for (uint32_t a = 0; a < s->domain.n; a++) {
        bool other;
        Dim c = apart[a] = ix_coef(p->ix, address, ix_loop(p->ix, s->axes[a]), &other);
        s->reads_beside |= (uint64_t)(c == 1) << a;
        s->reads_apart |= (uint64_t)(other || (c != 0 && c != 1)) << a;
        whole &= !other && dim_is_const(c) && c > 0;
    }
    if (!whole || s->like || !s->domain.n) return;
    s->like = arena_new(p->arena, Dim, s->domain.n);
    memcpy(s->like, apart, s->domain.n * sizeof *apart);
}
/* Does all that the step reads lie along that axis of its domain? */
static bool lies_along(const Step *s, uint32_t axis) { return s->reads_beside & ~s->reads_apart & (uint64_t)1 << axis; }
/* Does it lie along that axis of x? Then vectors along it read and store what lies so: packbits of 4096 rows of 256
   along the columns in 19 us instead of 490; what is computed between two transposes in 660 instead of 3760. */
static bool reads_along(Plan *p, const Step *s, Val x, int64_t axis) {
    Ix index[MAX_RANK];
    uint32_t at = 0;
    if (s->kind != STEP_LOOPS || axis < 0) return false;
    step_at(p, s, x, index);
    while (at < s->domain.n && s->axes[at] != index[axis]) at++;
    return at < s->domain.n && lies_along(s, at);
}
/* Stores of a device's steps go through shared memory if they lie across its loops (crossed.h): (x + y).T of 8192 x
   8192 f32 is one kernel, not two. */
static bool stores_transposed(Plan *p, const Step *s, Val x, int64_t axis) {
    if (!p->target->device) return reads_along(p, s, x, axis);
    return s->kind == STEP_LOOPS ? axis >= 0 && !s->reduces : dot_device_stores_along(p, s, axis);
}
bool plan_transposed(Plan *p, Body *b, Val v, Buf *to) {
    const Eqn *e = val_info(p->cx, v)->lit ? NULL : plan_info(p, v)->e;
    if (!p->fuse || !e || e->prim != P_transpose || plan_info(p, v)->buf) return false;
    Val x = e->in.at[0];
    bool member = !val_info(p->cx, x)->lit && plan_info(p, x)->class == VAL_MEMBER;
    Step *s = member ? step_of(b, plan_info(p, x)) : p->target->device ? NULL : step_beside(p, b, x);
    if (!s) return false;
    Dim *strides = arena_new(p->arena, Dim, val_array(p->cx, v)->rank + 1);
    int64_t last = transposed(p, e, strides);
    if (!stores_transposed(p, s, x, last)) return false;
    if (!member) step_evaluates(p, b, s, x);
    step_store(p, s, x, to, 0, strides, DT_none);
    return true;
}

/* ---- values that lie in an order of their own before they are cut */
typedef struct {
    Plan *p;
    Atom last; /* the loop over the last axis */
    bool divided;
    Dim read; /* elements of all that is read */
} Divided;
static void divided(void *user, Val v, const Ix *index, Ix address) {
    Divided *d = user;
    Types *ts = d->p->cx->types;
    if (!v || plan_info(d->p, v)->class == VAL_SCALAR) return;
    d->read = dim_add(ts, d->read, type_size(ts, val_type(d->p->cx, v)));
    d->divided |= ix_stays_divided(d->p->ix, eval_address(d->p, v, index), d->last);
}
static Divided reads_divided(Plan *p, Val v) {
    const ArrayType *t = val_array(p->cx, v);
    const Ix *index = plan_any_index(p, v);
    uint32_t rank = t->rank;
    while (rank && t->dims[rank - 1] == 1) rank--;
    Divided d = {.p = p, .last = rank ? ix_loop(p->ix, index[rank - 1]) : 0};
    if (rank) plan_reads(p, v, index, divided, &d);
    return d;
}
/* Elements of all results; symbolic if any extent is. */
static Dim elements(Plan *p, const Eqn *e) {
    Dim n = 0;
    each(const Val, v, e->out) n = dim_add(p->cx->types, n, type_size(p->cx->types, val_type(p->cx, *v)));
    return n;
}
void plan_note_mover(Plan *p, const Eqn *e) {
    if (prim_lower[e->prim] != LOWER_INDEX || !e->in.n || val_info(p->cx, e->in.at[0])->lit) return;
    for (uint32_t i = 1; i < e->in.n; i++)
        if (val_array(p->cx, e->in.at[i])->rank) return; /* it moves elements of others too */
    Info *info = plan_info(p, e->in.at[0]);
    Dim n = elements(p, e);
    if (dim_is_const(n) && n > info->moved) info->mover = e, info->moved = n;
}
/* Does the mover find elements by division? It is evaluated as if it had been planned. */
static bool mover_divides(Plan *p, const Eqn *e) {
    bool yes = false;
    for (uint32_t k = 0; k < e->out.n && !yes; k++) {
        Info *y = plan_info(p, e->out.at[k]), before = *y;
        *y = (Info){.class = VAL_VIRTUAL, .e = e, .out = k};
        yes = reads_divided(p, e->out.at[k]).divided;
        *y = before;
    }
    return yes;
}
/* The slice of 5 to 2397 of 50 rows of 60 x 40 transposed elements took 76 us instead of 36. Halves of elements are
   cheap: twice repeated ones are read in 15 us, copied and read in 25. */
bool plan_mover_divides(Plan *p, Val x) {
    const Info *info = plan_info(p, x);
    if (!p->fuse || p->target->device || info->class != VAL_VIRTUAL || !info->mover) return false;
    Dim whole = type_size(p->cx->types, val_type(p->cx, x));
    if (!dim_is_const(whole) || whole <= SMALL_SIZE || info->moved < whole / MOVED_SHARE) return false;
    if (!mover_divides(p, info->mover)) return false;
    Divided own = reads_divided(p, x);
    bool repeats = !dim_is_const(own.read) || own.read < whole;
    return !own.divided && (!repeats || plan_bytes(p, x) <= REPEATED_BYTES);
}

/* A step without sums stores transposed what it reads in tiles, another one in single elements: the covariance of
   2000 rows of 64 in 205 us instead of 400. */
const Dim *strides_as_read(Plan *p, const Step *s, Val v) {
    if (!p->fuse || p->target->device || s->kind != STEP_LOOPS || !s->reduces || !s->like || plan_stacks(p, s, v))
        return NULL;
    const ArrayType *t = val_array(p->cx, v);
    uint32_t order[MAX_RANK], n = 0, last = s->domain.n - 1;
    Dim *strides = arena_new(p->arena, Dim, t->rank + 1), stride = 1;
    for (uint32_t a = 0; a <= last; a++) {
        uint32_t at = n++;
        for (; at > 0 && s->like[order[at - 1]] < s->like[a]; at--) order[at] = order[at - 1];
        order[at] = a;
    }
    if (order[last] == last || !lies_along(s, order[last]) || !(s->reads_apart >> last & 1)) return NULL;
    Dim apart[MAX_RANK] = {0};
    for (uint32_t i = n; i-- > 0; stride = dim_mul(p->cx->types, stride, s->domain.at[order[i]]))
        apart[order[i]] = stride;
    for (uint32_t d = 0, a = 0; d < t->rank; d++)
        if (t->dims[d] != 1) strides[d] = apart[a++];
    return strides;
}
void plan_laid(Plan *p, Body *b, Val v) {
    Info *info = plan_info(p, v);
    Ix index[MAX_RANK];
    Step *s = step_of(b, info);
    if (!info->buf && !step_at(p, s, v, index)) info->strides = strides_as_read(p, s, v);
    plan_stored(p, b, v);
}
