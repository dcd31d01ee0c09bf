#include "kernel.h"
#include <mlir-c/BuiltinTypes.h>

/* Scopes, and indices as registers. */

Kernel *kernel_new(Plan *p, Emit *e, Frame *f, Step *s) {
    Kernel *k = arena_new(p->arena, Kernel, 1);
    eval_open(&k->x, &kernel_operations, p, s);
    k->e = e, k->frame = f, k->w = 1;
    k->blocks[0] = e->block;
    return k;
}
void kernel_forget(Kernel *k) {
    eval_forget(&k->x);
    k->blocks[0] = k->e->block;
}
void kernel_enter(Kernel *k) {
    eval_enter(&k->x);
    k->blocks[k->x.depth] = k->e->block;
}
void kernel_leave(Kernel *k) { eval_leave(&k->x); }
If kernel_if(Kernel *k, V condition) {
    If i = em_if(k->e, condition);
    kernel_enter(k);
    return i;
}
void kernel_if_end(Kernel *k, If *i) {
    kernel_leave(k);
    em_else(k->e, i, 0, NULL);
    em_if_end(k->e, i, NULL, NULL);
}
void kernel_bind(Kernel *k, Atom loop, V index) {
    Ix i = ix_atom(k->x.ix, loop);
    if (!i) return;
    memo_set(&k->x, memo_id(&k->x, KEY_ATOM, loop, NULL, 0), reg(index, true, k->x.depth));
}
MlirBlock kernel_at(Kernel *k, uint32_t depth) {
    MlirBlock was = k->e->block;
    if (depth < k->x.depth) k->e->block = k->blocks[depth];
    return was;
}
V kernel_vector(Kernel *k, Reg r) {
    if (!r.uniform || k->w == 1) return reg_v(r);
    return em_broadcast(k->e, reg_v(r), k->w);
}

/* ---- indices */
V kernel_dim(Kernel *k, Dim d) {
    uint32_t id = memo_id(&k->x, KEY_DIM, (uint64_t)d, NULL, 0);
    Reg r;
    if (memo_get(&k->x, id, &r)) return reg_v(r);
    MlirBlock was = kernel_at(k, 0);
    r = reg(frame_dim(k->frame, d), true, 0);
    k->e->block = was;
    return reg_v(memo_set(&k->x, id, r));
}
/* Do 32 bits hold it? */
static bool is_short(Kernel *k, Ix i) {
    int64_t lo, hi;
    return ix_bounds(k->x.ix, i, &lo, &hi) && lo > INT32_MIN && hi < INT32_MAX;
}
/* A quotient or remainder; a GPU divides 32 bits in half as many instructions. */
static V divided(Kernel *k, const AtomInfo *a, V x) {
    Emit *e = k->e;
    const char *op = a->kind == ATOM_DIV ? "llvm.udiv" : "llvm.urem";
    if (!e->target->device || !dim_is_const(a->b) || a->b >= INT32_MAX || !is_short(k, a->a))
        return em_bin(e, op, x, kernel_dim(k, a->b));
    x = em_bin(e, op, em_cast(e, "llvm.trunc", e->i32, x), em_int(e, e->i32, a->b));
    return em_cast(e, "llvm.zext", e->i64, x);
}
static Reg atom_reg(Kernel *k, Atom atom) {
    const AtomInfo *a = atom_at(k->x.ix, atom);
    uint32_t id = memo_id(&k->x, KEY_ATOM, atom, NULL, 0);
    Reg r;
    if (memo_get(&k->x, id, &r)) return r;
    assert(a->kind != ATOM_LOOP); /* loops are bound */
    if (a->kind == ATOM_VALUE) return memo_set(&k->x, id, kernel_element(k, &a->value, NULL));
    Reg x = kernel_index_reg(k, a->a);
    MlirBlock was = kernel_at(k, x.depth);
    r = x;
    r.v = divided(k, a, reg_v(x)).ptr;
    k->e->block = was;
    return memo_set(&k->x, id, r);
}
/* Terms are added from the outermost scope inwards, each partial sum in the scope of its last term. */
Reg kernel_index_reg(Kernel *k, Ix i) {
    uint32_t id = memo_id(&k->x, KEY_INDEX, i, NULL, 0);
    Reg sum = reg(kernel_dim(k, ix_at(k->x.ix, i)->c), true, 0), r;
    if (memo_get(&k->x, id, &r)) return r;
    const IxExpr x = *ix_at(k->x.ix, i);
    bool empty = x.c == 0;
    for (uint32_t depth = 0; depth <= k->x.depth; depth++)
        for (uint32_t t = 0; t < x.n; t++) {
            const AtomInfo *a = atom_at(k->x.ix, x.at[t].atom);
            if (a->kind == ATOM_LOOP && a->into) continue;
            Reg v = atom_reg(k, x.at[t].atom);
            if (v.depth != depth) continue;
            V coef = kernel_dim(k, x.at[t].coef);
            MlirBlock was = kernel_at(k, depth);
            if (x.at[t].coef != 1) v.v = em_bin(k->e, "llvm.mul", reg_v(v), coef).ptr;
            sum.v = empty ? v.v : em_bin(k->e, "llvm.add", reg_v(sum), reg_v(v)).ptr;
            k->e->block = was;
            sum.depth = depth;
            empty = false;
        }
    return memo_set(&k->x, id, sum);
}
V kernel_index(Kernel *k, Ix i) { return reg_v(kernel_index_reg(k, i)); }

static V resized(Emit *e, V v, MlirType integer) {
    uint32_t from = mlirIntegerTypeGetWidth(em_elem(v)), to = mlirIntegerTypeGetWidth(integer);
    if (from == to) return v;
    return em_cast(e, from < to ? "llvm.sext" : "llvm.trunc", em_vec(e, integer, em_width(v)), v);
}
static V splat(Kernel *k, V scalar, MlirType t) { return em_broadcast(k->e, resized(k->e, scalar, t), k->w); }
/* An index in all lanes, of type i64, or i32 if it is short. */
static V lanes_of(Kernel *k, Ix i, MlirType t) {
    Emit *e = k->e;
    if (!k->lane || !ix_uses(k->x.ix, i, k->lane)) return splat(k, reg_v(kernel_index_reg(k, i)), t);
    const IxExpr x = *ix_at(k->x.ix, i);
    V sum = splat(k, kernel_dim(k, x.c), t);
    for (uint32_t n = 0; n < x.n; n++) {
        Atom atom = x.at[n].atom;
        const AtomInfo *a = atom_at(k->x.ix, atom);
        if (a->kind == ATOM_LOOP && a->into) continue;
        V v;
        if (atom == k->lane) {
            v = splat(k, reg_v(atom_reg(k, atom)), t);
            if (k->w > 1) v = em_bin(e, "llvm.add", v, em_lanes(e, t, k->w));
        } else if (a->kind == ATOM_DIV || a->kind == ATOM_MOD) {
            MlirType in = is_short(k, a->a) && is_short(k, ix_dim(k->x.ix, a->b)) ? t : e->i64;
            V d = splat(k, kernel_dim(k, a->b), in);
            v = em_bin(e, a->kind == ATOM_DIV ? "llvm.udiv" : "llvm.urem", lanes_of(k, a->a, in), d);
            v = resized(e, v, t);
        } else if (a->kind == ATOM_VALUE)
            v = kernel_vector(k, kernel_element(k, &a->value, &t));
        else
            v = splat(k, reg_v(atom_reg(k, atom)), t);
        if (x.at[n].coef != 1) v = em_bin(e, "llvm.mul", v, splat(k, kernel_dim(k, x.at[n].coef), t));
        sum = em_bin(e, "llvm.add", sum, v);
    }
    return sum;
}
/* The same in the shorter of the two types that holds it. */
V kernel_lane_indices(Kernel *k, Ix i) { return lanes_of(k, i, is_short(k, i) ? k->e->i32 : k->e->i64); }

Reg kernel_index_lanes(Kernel *k, Ix i, MlirType integer) {
    Emit *e = k->e;
    Reg r;
    if (!k->lane || !ix_uses(k->x.ix, i, k->lane)) {
        r = kernel_index_reg(k, i);
        MlirBlock was = kernel_at(k, r.depth);
        r.v = resized(e, reg_v(r), integer).ptr;
        e->block = was;
        return r;
    }
    bool other;
    Dim coef = ix_coef(k->x.ix, i, k->lane, &other);
    if (!other && k->w > 1) { /* base + coef · lanes, in the type itself */
        V steps = em_lanes(e, integer, k->w);
        if (coef != 1) steps = em_bin(e, "llvm.mul", steps, splat(k, kernel_dim(k, coef), integer));
        return reg(em_bin(e, "llvm.add", splat(k, reg_v(kernel_index_reg(k, i)), integer), steps), false, k->x.depth);
    }
    V v = k->w == 1 ? reg_v(kernel_index_reg(k, i)) : kernel_lane_indices(k, i);
    return reg(resized(e, v, integer), false, k->x.depth);
}
