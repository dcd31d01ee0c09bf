#include "kernel.h"
#include "../../options.h"
#include "../../passes/eval.h"
#include "../../passes/passes.h"
#include "../host/frame.h"
#include "point.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

/* ---- values computed already, by value (or index) and condition; valid while their scope is open. The condition
   matters for values and for indices that contain elements, since it guards loads. */
struct KernelMemo {
    Intern keys;
    struct {
        struct {
            Reg reg;
            uint32_t serial;
        } *at;
        uint32_t n, cap;
    } all;
};
/* Keys that are not values; below KEY_ROWS there is one for each row of a tile. */
enum {
    KEY_INDEX = UINT32_MAX,
    KEY_ATOM = UINT32_MAX - 1,
    KEY_BUF = UINT32_MAX - 2,
    KEY_ROWS = UINT32_MAX - 3,
    KEY_DIM = UINT32_MAX - 100
};
/* The most vectors of a tile and lanes of a vector: elements have at least 4 bytes there. */
enum { MAX_TILE = 16 };
_Static_assert(KEY_ROWS - MAX_TILE > KEY_DIM, "each row of a tile has a kind of key");

static uint32_t memo_id(Kernel *k, uint32_t v, uint64_t a, const Ix *index, uint32_t n) {
    bool loaded =
        v < KEY_DIM || (v == KEY_INDEX && ix_at(k->ix, (Ix)a)->data) || (v == KEY_ATOM && atom_data(k->ix, (Atom)a));
    assert(n <= MAX_RANK);
    uint32_t key[4 + MAX_RANK] = {v, loaded ? 2 * k->guard_id + k->inside : 0, (uint32_t)a, (uint32_t)(a >> 32)};
    if (n) memcpy(key + 4, index, n * sizeof *index);
    bool fresh;
    uint32_t id = intern(&k->memo->keys, key, (4 + n) * sizeof *key, &fresh);
    if (fresh) {
        __typeof__(*k->memo->all.at) none = {0};
        push(k->plan->arena, &k->memo->all, none);
    }
    return id;
}
static bool memo_get(Kernel *k, uint32_t id, Reg *r) {
    uint32_t serial = k->memo->all.at[id].serial;
    *r = k->memo->all.at[id].reg;
    return serial && r->depth <= k->depth && k->scopes[r->depth].serial == serial;
}
static Reg memo_set(Kernel *k, uint32_t id, Reg r) {
    k->memo->all.at[id].reg = r;
    k->memo->all.at[id].serial = k->scopes[r.depth].serial;
    return r;
}

Kernel *kernel_new(Plan *p, Emit *e, Frame *f, Step *s) {
    Kernel *k = arena_new(p->arena, Kernel, 1);
    k->plan = p, k->e = e, k->frame = f, k->step = s, k->ix = p->ix, k->w = 1;
    k->memo = arena_new(p->arena, struct KernelMemo, 1);
    k->memo->keys.arena = p->arena;
    k->serial = 1;
    k->scopes[0].serial = 1;
    if (e) k->scopes[0].block = e->block;
    k->dry = !e;
    return k;
}
void kernel_forget(Kernel *k) {
    k->scopes[0].serial = ++k->serial;
    if (k->e) k->scopes[0].block = k->e->block;
}
void kernel_enter(Kernel *k) {
    k->depth++;
    assert(k->depth < MAX_DEPTH);
    k->scopes[k->depth].serial = ++k->serial;
    if (k->e) k->scopes[k->depth].block = k->e->block;
}
void kernel_leave(Kernel *k) {
    assert(k->depth > 0);
    k->depth--;
}
void kernel_bind(Kernel *k, Atom loop, V index) {
    Ix i = ix_atom(k->ix, loop);
    if (!i) return;
    memo_set(k, memo_id(k, KEY_ATOM, loop, NULL, 0), (Reg){index, true, k->depth});
}
MlirBlock kernel_at(Kernel *k, uint32_t depth) {
    MlirBlock was = k->e->block;
    if (depth < k->depth) k->e->block = k->scopes[depth].block;
    return was;
}
Reg kernel_guard(Kernel *k, Reg condition) {
    Reg before = k->guard;
    before.depth = k->guard_id; /* remembered together */
    if (!k->dry && k->guard.v.ptr) {
        V a = kernel_vector(k, k->guard), b = kernel_vector(k, condition);
        condition = (Reg){em_bin(k->e, "llvm.and", a, b), false, k->depth};
    }
    k->guard = condition;
    k->guard_id = ++k->nguards;
    return before;
}
void kernel_unguard(Kernel *k, Reg before) {
    k->guard_id = before.depth;
    k->guard = before;
    k->guard.depth = k->depth;
}
V kernel_vector(Kernel *k, Reg r) {
    if (!r.uniform || k->w == 1) return r.v;
    return em_broadcast(k->e, r.v, k->w);
}

/* ---- indices */
V kernel_dim(Kernel *k, Dim d) {
    uint32_t id = memo_id(k, KEY_DIM, (uint64_t)d, NULL, 0);
    Reg r;
    if (memo_get(k, id, &r)) return r.v;
    MlirBlock was = kernel_at(k, 0);
    r = (Reg){frame_dim(k->frame, d), true, 0};
    k->e->block = was;
    return memo_set(k, id, r).v;
}
static Reg index_reg(Kernel *k, Ix i);

static Reg atom_reg(Kernel *k, Atom atom) {
    const AtomInfo *a = atom_at(k->ix, atom);
    uint32_t id = memo_id(k, KEY_ATOM, atom, NULL, 0);
    Reg r;
    if (memo_get(k, id, &r)) return r;
    assert(a->kind != ATOM_LOOP); /* loops are bound */
    if (a->kind == ATOM_VALUE) return memo_set(k, id, kernel_element(k, &a->value, NULL));
    Reg x = index_reg(k, a->a);
    V d = kernel_dim(k, a->b);
    MlirBlock was = kernel_at(k, x.depth);
    r = x;
    r.v = em_bin(k->e, a->kind == ATOM_DIV ? "llvm.udiv" : "llvm.urem", x.v, d);
    k->e->block = was;
    return memo_set(k, id, r);
}
/* Terms are added from the outermost scope inwards, each partial sum in the scope of its last term. */
static Reg index_reg(Kernel *k, Ix i) {
    uint32_t id = memo_id(k, KEY_INDEX, i, NULL, 0);
    Reg sum = {kernel_dim(k, ix_at(k->ix, i)->c), true, 0}, r;
    if (memo_get(k, id, &r)) return r;
    const IxExpr x = *ix_at(k->ix, i);
    bool empty = x.c == 0;
    for (uint32_t depth = 0; depth <= k->depth; depth++)
        for (uint32_t t = 0; t < x.n; t++) {
            const AtomInfo *a = atom_at(k->ix, x.at[t].atom);
            if (a->kind == ATOM_LOOP && a->into) continue;
            Reg v = atom_reg(k, x.at[t].atom);
            if (v.depth != depth) continue;
            V coef = kernel_dim(k, x.at[t].coef);
            MlirBlock was = kernel_at(k, depth);
            if (x.at[t].coef != 1) v.v = em_bin(k->e, "llvm.mul", v.v, coef);
            sum.v = empty ? v.v : em_bin(k->e, "llvm.add", sum.v, v.v);
            k->e->block = was;
            sum.depth = depth;
            empty = false;
        }
    return memo_set(k, id, sum);
}
V kernel_index(Kernel *k, Ix i) { return index_reg(k, i).v; }
uint32_t kernel_depth(Kernel *k, Ix i) { return index_reg(k, i).depth; }

/* Do 32 bits hold it? */
static bool is_short(Kernel *k, Ix i) {
    int64_t lo, hi;
    return ix_bounds(k->ix, i, &lo, &hi) && lo > INT32_MIN && hi < INT32_MAX;
}
static V resized(Emit *e, V v, MlirType integer) {
    uint32_t from = mlirIntegerTypeGetWidth(em_elem(v)), to = mlirIntegerTypeGetWidth(integer);
    if (from == to) return v;
    return em_cast(e, from < to ? "llvm.sext" : "llvm.trunc", em_vec(e, integer, em_width(v)), v);
}
static V splat(Kernel *k, V scalar, MlirType t) { return em_broadcast(k->e, resized(k->e, scalar, t), k->w); }
/* An index in all lanes, of type i64, or i32 if it is short. */
static V lanes_of(Kernel *k, Ix i, MlirType t) {
    Emit *e = k->e;
    if (!k->lane || !ix_uses(k->ix, i, k->lane)) return splat(k, index_reg(k, i).v, t);
    const IxExpr x = *ix_at(k->ix, i);
    V sum = splat(k, kernel_dim(k, x.c), t);
    for (uint32_t n = 0; n < x.n; n++) {
        Atom atom = x.at[n].atom;
        const AtomInfo *a = atom_at(k->ix, atom);
        if (a->kind == ATOM_LOOP && a->into) continue;
        V v;
        if (atom == k->lane) {
            v = splat(k, atom_reg(k, atom).v, t);
            if (k->w > 1) v = em_bin(e, "llvm.add", v, em_lanes(e, t, k->w));
        } else if (a->kind == ATOM_DIV || a->kind == ATOM_MOD) {
            MlirType in = is_short(k, a->a) && is_short(k, ix_dim(k->ix, a->b)) ? t : e->i64;
            V d = splat(k, kernel_dim(k, a->b), in);
            v = em_bin(e, a->kind == ATOM_DIV ? "llvm.udiv" : "llvm.urem", lanes_of(k, a->a, in), d);
            v = resized(e, v, t);
        } else if (a->kind == ATOM_VALUE)
            v = kernel_vector(k, kernel_element(k, &a->value, &t));
        else
            v = splat(k, atom_reg(k, atom).v, t);
        if (x.at[n].coef != 1) v = em_bin(e, "llvm.mul", v, splat(k, kernel_dim(k, x.at[n].coef), t));
        sum = em_bin(e, "llvm.add", sum, v);
    }
    return sum;
}
/* The same in the shorter of the two types that holds it. */
static V lane_indices(Kernel *k, Ix i) { return lanes_of(k, i, is_short(k, i) ? k->e->i32 : k->e->i64); }

Reg kernel_index_lanes(Kernel *k, Ix i, MlirType integer) {
    Emit *e = k->e;
    Reg r;
    if (!k->lane || !ix_uses(k->ix, i, k->lane)) {
        r = index_reg(k, i);
        MlirBlock was = kernel_at(k, r.depth);
        r.v = resized(e, r.v, integer);
        e->block = was;
        return r;
    }
    bool other;
    Dim coef = ix_coef(k->ix, i, k->lane, &other);
    if (!other && k->w > 1) { /* base + coef · lanes, in the type itself */
        V steps = em_lanes(e, integer, k->w);
        if (coef != 1) steps = em_bin(e, "llvm.mul", steps, splat(k, kernel_dim(k, coef), integer));
        return (Reg){em_bin(e, "llvm.add", splat(k, index_reg(k, i).v, integer), steps), false, k->depth};
    }
    V v = k->w == 1 ? index_reg(k, i).v : lane_indices(k, i);
    return (Reg){resized(e, v, integer), false, k->depth};
}

/* ---- memory */
V kernel_buffer(Kernel *k, Buf *b) {
    uint32_t id = memo_id(k, KEY_BUF, (uint64_t)b->number << 32 | UINT32_MAX, NULL, 0);
    Reg r;
    if (memo_get(k, id, &r)) return r.v;
    MlirBlock was = kernel_at(k, 0);
    r = (Reg){frame_buffer(k->frame, b), true, 0};
    k->e->block = was;
    return memo_set(k, id, r).v;
}
Ix kernel_address(Kernel *k, Val v, const Ix *index) {
    const ArrayType *t = val_array(k->plan->cx, v);
    const Info *info = plan_info(k->plan, v);
    Dim stride = 1;
    Ix sum = info->offset;
    for (uint32_t d = t->rank; d-- > 0;) {
        Dim s = info->strides ? info->strides[d] : stride;
        sum = ix_add(k->ix, sum, ix_scale(k->ix, index[d], s));
        stride = dim_mul(k->plan->cx->types, stride, t->dims[d]);
    }
    return sum;
}
static bool written_here(Kernel *k, const Buf *b) {
    if (!k->step) return false;
    each(Store, s, k->step->stores)
        if (same_buf(s->buf, b)) return true;
    return false;
}
static V both(Kernel *k, V a, V b) {
    if (!a.ptr) return b;
    return b.ptr ? em_bin(k->e, "llvm.and", a, b) : a;
}
static V ones(Kernel *k, uint32_t w) { return em_int(k->e, em_vec(k->e, k->e->i1, w), 1); }

/* Loads one element under a condition, by a masked load of a single lane. */
static V load_one(Kernel *k, V p, Dtype d, V condition) {
    Emit *e = k->e;
    int64_t one = 1;
    MlirType t = em_memory_type(e, d), vt = mlirVectorTypeGet(1, &one, t);
    if (em_width(condition) > 1 || mlirTypeIsAVector(mlirValueGetType(condition)))
        condition = em_1(e, "llvm.intr.vector.reduce.or", e->i1, 1, &condition, 0, NULL);
    MlirType mt = mlirVectorTypeGet(1, &one, e->i1);
    V none = em_1(e, "llvm.mlir.zero", vt, 0, NULL, 0, NULL);
    V mask = em_insert(e, condition, em_1(e, "llvm.mlir.zero", mt, 0, NULL, 0, NULL), 0);
    V loaded = em_masked_load(e, vt, p, mask, none, em_align(d));
    return em_extract(e, loaded, 0);
}
static Reg load_uniform(Kernel *k, Buf *b, Dtype d, Ix address) {
    Emit *e = k->e;
    V base = kernel_buffer(k, b);
    Reg i = index_reg(k, address);
    uint32_t depth = written_here(k, b) || k->guard.v.ptr ? k->depth : i.depth;
    if (depth < k->least) depth = k->least;
    MlirBlock was = kernel_at(k, depth);
    V p = em_gep(e, base, i.v, em_memory_type(e, d));
    V m = k->guard.v.ptr ? load_one(k, p, d, k->guard.v) : em_load(e, em_memory_type(e, d), p, em_align(d));
    V r = em_to_register(e, d, m);
    e->block = was;
    return (Reg){r, true, depth};
}
static V load_vector(Kernel *k, V p, Dtype d, V mask) {
    Emit *e = k->e;
    MlirType t = em_vec(e, em_memory_type(e, d), k->w);
    if (!mask.ptr) return em_load(e, t, p, em_align(d));
    V none = em_1(e, "llvm.mlir.zero", t, 0, NULL, 0, NULL);
    return em_masked_load(e, t, p, mask, none, em_align(d));
}
static V reversed(Kernel *k, V v) {
    int64_t lanes[MAX_LANES];
    for (uint32_t i = 0; i < k->w; i++) lanes[i] = k->w - 1 - i;
    return em_shuffle(k->e, v, v, k->w, lanes);
}
/* Lanes `rows` apart, in whole rows: the rows are loaded once, and each column is a shuffle of them. */
static V load_column(Kernel *k, Buf *b, Dtype d, Ix address, Dim rows) {
    Emit *e = k->e;
    int64_t lanes[MAX_LANES];
    Dim column = ix_at(k->ix, address)->c;
    Ix first = ix_sub(k->ix, address, ix_dim(k->ix, column));
    uint32_t id = memo_id(k, KEY_ROWS, (uint64_t)b->number << 32 | first, NULL, 0);
    Reg r;
    if (!memo_get(k, id, &r)) {
        MlirType t = em_memory_type(e, d);
        V p = em_gep(e, kernel_buffer(k, b), index_reg(k, first).v, t);
        r = memo_set(k, id, (Reg){em_load(e, em_vec(e, t, k->w * (uint32_t)rows), p, em_align(d)), false, k->depth});
    }
    for (uint32_t i = 0; i < k->w; i++) lanes[i] = column + i * rows;
    return em_shuffle(e, r.v, r.v, k->w, lanes);
}
static bool column_of_rows(Kernel *k, Ix address, Dim coef, Dim rows) {
    const IxExpr *x = ix_at(k->ix, address);
    if (rows < 2 || rows > 4 || coef != rows || k->tail.ptr || k->guard.v.ptr) return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (dim_mod(k->plan->cx->types, x->at[i].coef, rows) != 0) return false;
    return dim_is_const(x->c) && x->c >= 0 && x->c < rows;
}
/* Lanes 2 to 4 apart: everything from the first to the last is loaded and shuffled, the last vector ending with the
   last lane, so that nothing beyond it is read. */
static bool few_apart(const Kernel *k, Dim coef) { return dim_is_const(coef) && coef >= 2 && coef <= 4 && k->w >= 4; }
static V load_apart(Kernel *k, Buf *b, Dtype d, Ix address, uint32_t by) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d), vt = em_vec(e, t, k->w);
    V base = kernel_buffer(k, b), at = index_reg(k, address).v, v = {NULL};
    uint32_t w = k->w, last = (w - 1) * by + 1 - w;
    for (uint32_t i = 0; i < by; i++) {
        int64_t lanes[MAX_LANES];
        uint32_t from = i + 1 < by ? i * w : last;
        V part = em_load(e, vt, em_gep(e, base, em_bin(e, "llvm.add", at, em_i64(e, from)), t), em_align(d));
        for (uint32_t l = 0; l < w; l++) {
            bool here = l * by >= (i ? i * w : 0) && l * by < (i + 1) * w;
            lanes[l] = here ? (i ? w : 0) + l * by - from : l;
        }
        v = i ? em_shuffle(e, v, part, w, lanes) : em_shuffle(e, part, part, w, lanes);
    }
    return v;
}
/* w vectors, transposed: halves are exchanged at distances w/2, …, 1. */
static void transpose(Emit *e, V *v, uint32_t w) {
    for (uint32_t half = w / 2; half; half /= 2)
        for (uint32_t i = 0; i < w; i++) {
            if (i & half) continue;
            int64_t lo[MAX_TILE], hi[MAX_TILE];
            for (uint32_t l = 0; l < w; l++) {
                lo[l] = l & half ? w + l - half : l;
                hi[l] = l & half ? w + l : l + half;
            }
            V a = v[i], b = v[i + half];
            v[i] = em_shuffle(e, a, b, w, lo);
            v[i + half] = em_shuffle(e, a, b, w, hi);
        }
}
/* Elements far apart along the lanes but contiguous along the tile: at its first row, all rows are loaded and
   transposed. */
static V load_tile(Kernel *k, Buf *b, Dtype d, Ix address, Dim coef) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d);
    Ix first = ix_sub(k->ix, address, ix_dim(k->ix, k->tile_at));
    uint32_t ids[MAX_TILE];
    Reg r;
    assert(k->tile <= MAX_TILE);
    for (uint32_t i = 0; i < k->tile; i++)
        ids[i] = memo_id(k, KEY_ROWS - 1 - i, (uint64_t)b->number << 32 | first, NULL, 0);
    if (memo_get(k, ids[k->tile_at], &r)) return r.v;
    assert(k->step);
    V v[MAX_TILE], base = kernel_buffer(k, b), at = index_reg(k, first).v, stride = kernel_dim(k, coef);
    for (uint32_t i = 0; i < k->tile; i++) {
        V row = em_bin(e, "llvm.add", at, em_bin(e, "llvm.mul", stride, em_i64(e, i)));
        v[i] = em_load(e, em_vec(e, t, k->tile), em_gep(e, base, row, t), em_align(d));
    }
    transpose(e, v, k->tile);
    for (uint32_t i = 0; i < k->tile; i++) memo_set(k, ids[i], (Reg){v[i], false, k->depth});
    return v[k->tile_at];
}
static bool tiled(Kernel *k, Ix address) {
    bool other;
    if (!k->tile || k->w != k->tile || k->tail.ptr || k->guard.v.ptr) return false;
    assert(k->step);
    return ix_coef(k->ix, address, k->step->tile, &other) == 1 && !other;
}

Reg kernel_load(Kernel *k, Buf *b, Dtype d, Ix address, Dim rows) {
    Emit *e = k->e;
    bool other;
    if (!k->lane || !ix_uses(k->ix, address, k->lane)) return load_uniform(k, b, d, address);
    if (k->w == 1) {
        Reg r = load_uniform(k, b, d, address);
        r.uniform = false;
        return r;
    }
    Dim coef = ix_coef(k->ix, address, k->lane, &other);
    V guard = k->guard.v.ptr ? kernel_vector(k, k->guard) : (V){NULL};
    V mask = both(k, guard, k->tail), base = kernel_buffer(k, b), m;
    MlirType t = em_memory_type(e, d);
    if (!other && coef == 1) {
        m = load_vector(k, em_gep(e, base, index_reg(k, address).v, t), d, mask);
    } else if (!other && coef == -1) {
        V first = em_bin(e, "llvm.sub", index_reg(k, address).v, em_i64(e, k->w - 1));
        m = reversed(k, load_vector(k, em_gep(e, base, first, t), d, mask.ptr ? reversed(k, mask) : mask));
    } else if (!other && column_of_rows(k, address, coef, rows)) {
        m = load_column(k, b, d, address, rows);
    } else if (!other && tiled(k, address)) {
        m = load_tile(k, b, d, address, coef);
    } else if (!other && !mask.ptr && few_apart(k, coef)) {
        m = load_apart(k, b, d, address, (uint32_t)coef);
    } else {
        MlirType vt = em_vec(e, t, k->w);
        V none = em_1(e, "llvm.mlir.zero", vt, 0, NULL, 0, NULL);
        m = em_gather(e, vt, base, lane_indices(k, address), t, mask.ptr ? mask : ones(k, k->w), none, em_align(d));
    }
    return (Reg){em_to_register(e, d, m), false, k->depth};
}
void kernel_store(Kernel *k, Buf *b, Dtype d, Ix address, Reg r) {
    Emit *e = k->e;
    bool other = false;
    bool lanes = k->lane && k->w > 1 && ix_uses(k->ix, address, k->lane);
    MlirType t = em_memory_type(e, d);
    V base = kernel_buffer(k, b), i = index_reg(k, address).v;
    if (!lanes) {
        V v = r.uniform || k->w == 1 ? r.v : em_extract(e, r.v, 0);
        em_store(e, em_to_memory(e, d, v), em_gep(e, base, i, t), em_align(d));
        return;
    }
    V m = em_to_memory(e, d, kernel_vector(k, r));
    Dim coef = ix_coef(k->ix, address, k->lane, &other);
    if (!other && coef == 1) {
        V p = em_gep(e, base, i, t);
        if (k->tail.ptr)
            em_masked_store(e, m, p, k->tail, em_align(d));
        else
            em_store(e, m, p, em_align(d));
        return;
    }
    V p = em_gep(e, base, lane_indices(k, address), t);
    V o[3] = {m, p, k->tail.ptr ? k->tail : ones(k, k->w)};
    Attr a = {"alignment", mlirIntegerAttrGet(e->i32, em_align(d))};
    em_op(e, "llvm.intr.masked.scatter", &(Op){0, NULL, 3, o, 1, &a, 0, NULL});
}

/* ---- conditions */
Reg kernel_and(Kernel *k, Reg a, Reg b) {
    if (k->dry) return a;
    Reg r = {.uniform = a.uniform && b.uniform, .depth = a.depth > b.depth ? a.depth : b.depth};
    MlirBlock was = kernel_at(k, r.depth);
    V x = r.uniform ? a.v : kernel_vector(k, a), y = r.uniform ? b.v : kernel_vector(k, b);
    r.v = em_bin(k->e, "llvm.and", x, y);
    k->e->block = was;
    return r;
}
Reg kernel_choose(Kernel *k, Reg c, Reg yes, Reg no) {
    if (k->dry) return (Reg){0};
    Reg r = {.uniform = c.uniform && yes.uniform && no.uniform, .depth = k->depth};
    V s[3] = {c.v, yes.v, no.v};
    if (!r.uniform) s[0] = kernel_vector(k, c), s[1] = kernel_vector(k, yes), s[2] = kernel_vector(k, no);
    r.v = em_select(k->e, s[0], s[1], s[2]);
    return r;
}

/* ---- equations on registers */
V kernel_literal(Kernel *k, Val v, uint32_t w) {
    Scalar s = {0};
    scalar_of(k->plan->cx, v, &s);
    MlirType t = em_vec(k->e, em_register_type(k->e, s.dtype), w);
    return dtype_info[s.dtype].kind == DK_FLOAT ? em_float(k->e, t, scalar_float(s)) : em_int(k->e, t, scalar_int(s));
}
V kernel_binary(Kernel *k, Prim prim, Dtype d, const V *x) {
    Point p = {.in = d, .out = d, .k = k};
    k->e->fast = k->plan->cx->options->fast_math;
    V y = point_rule[prim](k->e, &p, x);
    k->e->fast = false;
    return point_result(k->e, prim, d, y);
}
V kernel_point(Kernel *k, const Eqn *e, const V *x, uint32_t w) {
    Ctx *cx = k->plan->cx;
    Dtype in = val_array(cx, e->in.at[e->in.n > 1 && (e->prim == P_select_n || e->prim == P_clamp)])->dtype;
    Dtype out = val_array(cx, e->out.at[0])->dtype;
    if (point_rule[e->prim]) {
        Point p = {.in = in, .out = out, .e = e, .k = k};
        k->e->fast = cx->options->fast_math && !k->in_stdlib;
        V y = point_rule[e->prim](k->e, &p, x);
        k->e->fast = false;
        return point_result(k->e, e->prim, out, y);
    }
    return kernel_program(k, e, x, w);
}

void kernel_operand(Kernel *k, const Eqn *e, Val x, const Ix *index, Ix *out) {
    const ArrayType *t = val_array(k->plan->cx, x), *y = val_array(k->plan->cx, e->out.at[0]);
    for (uint32_t d = 0; d < t->rank; d++) out[d] = t->dims[d] == 1 && y->dims[d] != 1 ? 0 : index[d];
}
static bool is_product(const Eqn *e) { return e && (e->prim == P_mul || e->prim == P_square); }
uint32_t kernel_contracts(const Kernel *k, const Eqn *e, const Summand x[2]) {
    const Ctx *cx = k->plan->cx;
    Dtype d = val_array(cx, e->out.at[0])->dtype;
    bool sum = e->prim == P_add || e->prim == P_sub || e->prim == P_add_any;
    if (!sum || (d != DT_f32 && d != DT_f64) || is_product(x[0].maker) == is_product(x[1].maker)) return 2;
    if (k->in_stdlib || !k->e->target->fma || cx->options->no_contraction) return 2;
    uint32_t at = is_product(x[1].maker);
    return x[at].alone && val_array(cx, x[at].maker->out.at[0])->dtype == d ? at : 2;
}
V kernel_contracted(Kernel *k, const Eqn *e, uint32_t product, const V *x) {
    bool minus = e->prim == P_sub;
    V a = minus && product == 1 ? em_un(k->e, "llvm.fneg", x[0]) : x[0];
    return em_fma(k->e, a, x[1], minus && product == 0 ? em_un(k->e, "llvm.fneg", x[2]) : x[2]);
}
static Summand summand(const Kernel *k, Val v) {
    const Info *info = plan_info(k->plan, v);
    if (val_info(k->plan->cx, v)->lit) return (Summand){0};
    bool here = k->step && info->class == VAL_MEMBER && info->step == k->step->number && !info->buf;
    return (Summand){info->e, info->once && (here || info->class == VAL_VIRTUAL)};
}
static Reg eval_elementwise(Kernel *k, const Eqn *e, const Ix *index) {
    Reg *r = arena_new(k->plan->arena, Reg, e->in.n + 2);
    V *x = arena_new(k->plan->arena, V, e->in.n + 2);
    bool uniform = true;
    uint32_t depth = 0, n = 0, product = 2;
    if (!k->dry && e->in.n == 2)
        product = kernel_contracts(k, e, (Summand[]){summand(k, e->in.at[0]), summand(k, e->in.at[1])});
    for (uint32_t i = 0; i < e->in.n; i++) {
        uint32_t from = product == 1 ? 1 - i : i; /* the product's factors come first */
        Ix at[MAX_RANK], factor[MAX_RANK];
        kernel_operand(k, e, e->in.at[from], index, at);
        const Eqn *p = product < 2 && from == product ? plan_info(k->plan, e->in.at[from])->e : NULL;
        if (!p) r[n++] = kernel_eval(k, e->in.at[from], at);
        for (uint32_t f = 0; p && f < 2; f++) {
            Val v = p->in.at[f < p->in.n ? f : 0];
            kernel_operand(k, p, v, at, factor);
            r[n++] = kernel_eval(k, v, factor);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uniform &= r[i].uniform;
        depth = r[i].depth > depth ? r[i].depth : depth;
    }
    if (k->dry) return (Reg){0};
    uint32_t w = uniform ? 1 : k->w;
    MlirBlock was = kernel_at(k, depth);
    if (k->e->unit.ptr) em_at(k->e, e->span);
    for (uint32_t i = 0; i < n; i++) x[i] = uniform ? r[i].v : kernel_vector(k, r[i]);
    V y = product < 2 ? kernel_contracted(k, e, product, x) : kernel_point(k, e, x, w);
    k->e->block = was;
    return (Reg){y, uniform, depth};
}
/* All results are remembered. A loop may not end for what is no element: it is not written before the loops of the
   kernel. */
static Reg eval_program(Kernel *k, const Eqn *e, uint32_t out, const Ix *index) {
    V *x = arena_new(k->plan->arena, V, e->in.n + 1), *y = arena_new(k->plan->arena, V, e->out.n + 1);
    bool uniform = true;
    for (uint32_t i = 0; i < e->in.n; i++) {
        Ix at[MAX_RANK];
        kernel_operand(k, e, e->in.at[i], index, at);
        Reg r = kernel_eval(k, e->in.at[i], at);
        uniform &= r.uniform;
        x[i] = r.v;
    }
    if (k->dry) return (Reg){0};
    if (k->e->unit.ptr) em_at(k->e, e->span);
    kernel_run(k, param_jaxpr(e, K_jaxpr), x, uniform ? 1 : k->w, y);
    for (uint32_t i = 0; i < e->out.n; i++) {
        bool same = uniform || (k->w > 1 && em_width(y[i]) == 1);
        kernel_remember(k, e->out.at[i], index, (Reg){y[i], same, k->depth});
    }
    return kernel_eval(k, e->out.at[out], index);
}
static Reg eval_eqn(Kernel *k, const Eqn *e, uint32_t out, const Ix *index) {
    if (prim_lower[e->prim] == LOWER_PROGRAM) return eval_program(k, e, out, index);
    if (index_rule[e->prim]) return index_rule[e->prim](k, e, out, index);
    if (eqn_reduces(e)) return reduce_unit(k, e, index);
    if (prim_lower[e->prim] == LOWER_CUM) return kernel_eval(k, e->in.at[0], index); /* along an axis of extent 1 */
    return eval_elementwise(k, e, index);
}
Reg kernel_equation(Kernel *k, const Eqn *e, uint32_t out) { return eval_eqn(k, e, out, NULL); }
static Reg eval_literal(Kernel *k, Val v) {
    if (k->dry) return (Reg){0};
    MlirBlock was = kernel_at(k, 0);
    Reg r = {kernel_literal(k, v, 1), true, 0};
    k->e->block = was;
    return r;
}
static bool remembered(const Eqn *e) {
    return eqn_reduces(e) || prim_lower[e->prim] == LOWER_DOT || prim_lower[e->prim] == LOWER_CUM;
}

Reg kernel_eval(Kernel *k, Val v, const Ix *index) {
    Ctx *cx = k->plan->cx;
    const ValInfo *vi = val_info(cx, v);
    if (vi->lit) return eval_literal(k, v);
    const ArrayType *t = type_at(cx->types, vi->type);
    const Info *info = plan_info(k->plan, v);
    uint32_t id = memo_id(k, v, 0, index, t->rank);
    Reg r;
    if (memo_get(k, id, &r)) return r;
    bool here = k->step && info->class == VAL_MEMBER && info->step == k->step->number;
    if (here && k->guard_id && remembered(info->e)) { /* computed before, under any condition */
        uint32_t guard = k->guard_id;
        k->guard_id = 0;
        bool known = memo_get(k, memo_id(k, v, 0, index, t->rank), &r);
        k->guard_id = guard;
        if (known) return r;
    }
    bool again = here && (!info->buf || info->level >= k->level || k->dry);
    if (info->class == VAL_VIRTUAL || (again && !remembered(info->e)))
        return memo_set(k, id, eval_eqn(k, info->e, info->out, index));
    if (k->dry) {
        k->seen(k->user, v, index, info->buf ? kernel_address(k, v, index) : 0);
        return memo_set(k, id, (Reg){0});
    }
    if (info->class == VAL_SCALAR) {
        MlirBlock was = kernel_at(k, 0);
        r = (Reg){frame_scalar(k->frame, v), true, 0};
        k->e->block = was;
    } else {
        Dim rows = info->strides || info->offset || !t->rank ? 0 : t->dims[t->rank - 1];
        r = kernel_load(k, info->buf, t->dtype, kernel_address(k, v, index), rows);
    }
    return memo_set(k, id, r);
}
void kernel_remember(Kernel *k, Val v, const Ix *index, Reg r) {
    memo_set(k, memo_id(k, v, 0, index, val_array(k->plan->cx, v)->rank), r);
}

/* Evaluates all values first: one of them may overwrite memory that another is computed from. */
void kernel_stores(Kernel *k) {
    Step *step = k->step;
    Reg *r = arena_new(k->plan->arena, Reg, step->stores.n + 1);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < step->stores.n; i++) {
            const Store *s = &step->stores.at[i];
            Dtype d = val_array(k->plan->cx, s->v)->dtype;
            Ix index[MAX_RANK];
            if (s->level != k->level || s->row != k->rows) continue;
            step_at(k->plan, step, s->v, index);
            if (pass == 0)
                r[i] = kernel_convert(k, kernel_eval(k, s->v, index), d, s->as);
            else
                kernel_store(k, s->buf, s->as ? s->as : d, store_address(k->plan, s, index), r[i]);
        }
}
Reg kernel_convert(Kernel *k, Reg r, Dtype from, Dtype to) {
    if (!to || to == from) return r;
    Point p = {.in = from, .out = to, .k = k};
    r.v = em_round(k->e, to, point_rule[P_convert_element_type](k->e, &p, &r.v));
    return r;
}
void kernel_seen_index(Kernel *k, Ix i) {
    if (k->dry) k->seen(k->user, 0, NULL, i);
}
