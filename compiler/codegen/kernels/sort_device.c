#include "sort_device.h"
#include "../../../runtime/sort.h"
#include "../cost.h"
#include "grid.h"
#include "search.h"
#include "threads.h"
#include <mlir-c/BuiltinAttributes.h>

/* Keys and the places that they come from are in shared memory, a tile of both; or keys alone. Sorted runs are merged
   by rank: an element goes to the place that is the number of elements before it in both runs. An element of the first
   run is before equal ones of the second, so that the order is stable. */

/* One element of a thread while runs are merged. */
typedef struct {
    Keyed x;
    V at;
    V from, n;      /* the run that it is merged with */
    V second;       /* i1: that run is the first one */
    V before, base; /* how many of that run are before it; its place without them */
} Element;

V sort_key_at(const Sorting *o, V keys, V i) {
    return em_load(o->e, o->key, em_gep(o->e, keys, i, o->key), dtype_bytes(o->so->key));
}
V sort_word_at(const Sorting *o, V words, V i) {
    return em_load(o->e, o->e->i32, em_gep(o->e, words, i, o->e->i32), dtype_bytes(DT_u32));
}
void sort_put(const Sorting *o, V keys, V places, V i, Keyed x) {
    if (keys.ptr) em_store(o->e, x.key, em_gep(o->e, keys, i, o->key), dtype_bytes(o->so->key));
    if (places.ptr) em_store(o->e, x.place, em_gep(o->e, places, i, o->e->i32), dtype_bytes(DT_u32));
}
void sort_put_if(const Sorting *o, V condition, V keys, V places, V i, Keyed x) {
    If f = em_if(o->e, condition);
    sort_put(o, keys, places, i, x);
    em_else(o->e, &f, 0, NULL);
    em_if_end(o->e, &f, NULL, NULL);
}
Keyed sort_at(const Sorting *o, V keys, V places, V i) {
    return (Keyed){sort_key_at(o, keys, i), places.ptr ? sort_word_at(o, places, i) : (V){NULL}};
}
V sort_buffer(const Sorting *o, Buf *b) { return b ? kernel_buffer(o->k, b) : (V){NULL}; }
/* ---- bits of elements and unsigned numbers in their order. Floats: NaNs with a sign would be the first of these, so
   all are moved down by their number, which wraps those around to the end. */
static int64_t sign_of(const Sorting *o) { return (int64_t)((uint64_t)1 << (8 * dtype_bytes(o->so->key) - 1)); }
static int64_t nans_of(const Sorting *o) { return (int64_t)((uint64_t)sign_of(o) - 1 - (uint64_t)o->so->order); }
/* All ones where the number is negative. */
static V negative(const Sorting *o, V x) {
    V by = em_int(o->e, o->key, 8 * (int64_t)dtype_bytes(o->so->key) - 1);
    return em_bin(o->e, "llvm.ashr", x, by);
}
bool sort_is_float(const Sorting *o) { return o->so->order > ORDER_TOTAL; }
V sort_number(const Sorting *o, V bits) {
    Emit *e = o->e;
    V sign = em_int(e, o->key, sign_of(o));
    if (o->so->order == ORDER_UNSIGNED) return bits;
    if (!sort_is_float(o)) return em_bin(e, "llvm.xor", bits, sign);
    V number = em_bin(e, "llvm.xor", bits, em_bin(e, "llvm.or", negative(o, bits), sign));
    return em_sub(e, number, em_int(e, o->key, nans_of(o)));
}
V sort_bits(const Sorting *o, V number) {
    Emit *e = o->e;
    V sign = em_int(e, o->key, sign_of(o)), ones = em_int(e, o->key, -1);
    if (o->so->order == ORDER_UNSIGNED) return number;
    if (!sort_is_float(o)) return em_bin(e, "llvm.xor", number, sign);
    number = em_add(e, number, em_int(e, o->key, nans_of(o)));
    V positive = em_bin(e, "llvm.xor", negative(o, number), ones);
    return em_bin(e, "llvm.xor", number, em_bin(e, "llvm.or", positive, sign));
}
int64_t sort_nan(const Sorting *o) { return (int64_t)(2 * (uint64_t)o->so->order + 2); }
V sort_rank(const Sorting *o, V bits) {
    Emit *e = o->e;
    int64_t zero = o->so->order;
    V number = sort_number(o, bits);
    if (!sort_is_float(o)) return number;
    V other = em_cmpi(e, "eq", number, em_int(e, o->key, zero));
    number = em_select(e, other, em_int(e, o->key, zero + 1), number);
    return em_bin(e, "llvm.intr.umin", number, em_int(e, o->key, sort_nan(o)));
}
Sorting sorting_of(Kernel *k, V item) {
    Emit *e = k->e;
    const Sort *so = k->x.step->sort;
    Sorting o = {.k = k, .e = e, .so = so, .key = em_memory_type(e, so->key), .n = kernel_dim(k, so->n)};
    V tile = em_i64(e, so->tile);
    o.tiles = kernel_dim(k, sort_tiles(k->x.plan, so));
    o.each = so->tile / k->block.group;
    o.thread = sort_narrowed(&o, member_number(k));
    o.number = em_bin(e, "llvm.udiv", item, o.tiles), o.tile = em_bin(e, "llvm.urem", item, o.tiles);
    o.row = em_mul(e, o.number, o.n), o.first = em_mul(e, o.tile, tile);
    o.count = sort_narrowed(&o, em_least(e, em_sub(e, o.n, o.first), tile));
    return o;
}
void sorting_share(Sorting *o) {
    o->keys = threads_share(o->k, (int64_t)o->so->tile * dtype_bytes(o->so->key));
    if (!o->so->alone) o->places = threads_share(o->k, (int64_t)o->so->tile * dtype_bytes(DT_u32));
}
V sort_own(const Sorting *o, uint32_t i) {
    return em_add(o->e, o->thread, sort_i32(o, (int64_t)i * o->k->block.group));
}
static V key_of(const Sorting *o) {
    Kernel *k = o->k;
    if (k->x.step->kind == STEP_SCATTER) return scatter_key(k, o->so->key);
    Val v = k->x.step->e->in.at[0];
    Ix index[MAX_RANK];
    step_at(k->x.plan, k->x.step, v, index);
    return em_to_memory(o->e, o->so->key, reg_v(eval_value(&k->x, v, index)));
}
Keyed sort_given(const Sorting *o, V at) {
    Kernel *k = o->k;
    Emit *e = o->e;
    V last = em_sub(e, o->count, sort_i32(o, 1));
    V place = em_add(e, o->first, sort_widened(o, em_least(e, at, last)));
    kernel_enter(k);
    grid_bind_point(k, &o->so->elements, em_add(e, o->row, place));
    V key = key_of(o);
    kernel_leave(k);
    key = em_select(e, em_less(e, at, o->count), key, sort_bits(o, em_int(e, o->key, -1)));
    return (Keyed){key, sort_narrowed(o, place)};
}

/* ---- ranks */
/* Of the runs in shared memory, of at most 2^(turns - 1) elements: how many come before each element. */
static void count_before(const Sorting *o, V turns, Element *x) {
    Emit *e = o->e;
    V count[SORT_EACH], next[SORT_EACH];
    for (uint32_t i = 0; i < o->each; i++) count[i] = sort_i32(o, 0);
    For f = em_for(e, em_i64(e, 0), sort_widened(o, turns), em_i64(e, 1), o->each, count);
    V digit = em_sub(e, em_sub(e, turns, sort_i32(o, 1)), sort_narrowed(o, em_arg(&f.scope, 0))),
      step = em_bin(e, "llvm.shl", sort_i32(o, 1), digit);
    for (uint32_t i = 0; i < o->each; i++) {
        V so_far = em_arg(&f.scope, i + 1), more = em_add(e, so_far, step),
          last = em_sub(e, em_add(e, x[i].from, more), sort_i32(o, 1));
        V inside = em_cmpi(e, "sle", more, x[i].n),
          other = sort_key_at(o, o->keys, em_select(e, inside, last, sort_i32(o, 0)));
        V own = sort_rank(o, x[i].x.key);
        other = sort_rank(o, other);
        V equal = em_both(e, em_cmpi(e, "eq", other, own), x[i].second);
        V first = em_bin(e, "llvm.or", em_cmpi(e, "ult", other, own), equal);
        next[i] = em_select(e, em_both(e, inside, first), more, so_far);
    }
    em_for_end(e, &f, next, count);
    for (uint32_t i = 0; i < o->each; i++) x[i].before = count[i];
}
static void read_own(const Sorting *o, Element *x) {
    for (uint32_t i = 0; i < o->each; i++) {
        x[i].at = sort_own(o, i);
        x[i].x = sort_at(o, o->keys, o->places, x[i].at);
    }
}

/* ---- runs of tiles */
/* Two neighbouring runs of a row, in memory; i64. */
typedef struct {
    V keys;   /* of the row */
    V a, b;   /* where they begin … */
    V na, nb; /* … and how long they are */
} Runs;
typedef struct {
    const Sorting *o;
    const Runs *r;
    V d;
} Split;
/* Is element `a` of the first run one of the first `d` of both? */
static V is_within(const void *user, V a) {
    const Split *s = user;
    const Sorting *o = s->o;
    V b = em_sub(o->e, em_sub(o->e, s->d, em_i64(o->e, 1)), a);
    V first = sort_key_at(o, s->r->keys, em_add(o->e, s->r->a, a)),
      second = sort_key_at(o, s->r->keys, em_add(o->e, s->r->b, b));
    return em_cmpi(o->e, "ule", sort_rank(o, first), sort_rank(o, second));
}
/* How many of the first `d` of both are of the first one. */
static V split(const Sorting *o, const Runs *r, V d) {
    Split s = {o, r, d};
    V least = em_most(o->e, em_sub(o->e, d, r->nb), em_i64(o->e, 0));
    return search_first(o->e, least, em_least(o->e, d, r->na), is_within, &s);
}
static Runs runs_of(const Sorting *o) {
    Emit *e = o->e;
    V run = frame_scalar(o->k->frame, o->so->run), zero = em_i64(e, 0);
    V pair = em_mul(e, run, em_i64(e, 2));
    Runs r = {.keys = em_gep(e, kernel_buffer(o->k, o->so->from[0]), o->row, o->key)};
    r.a = em_mul(e, em_bin(e, "llvm.udiv", o->first, pair), pair);
    r.na = em_least(e, run, em_sub(e, o->n, r.a)), r.b = em_add(e, r.a, r.na);
    r.nb = em_most(e, zero, em_least(e, run, em_sub(e, o->n, r.b)));
    return r;
}
/* The thread's elements of the tile: those of the first run, then those of the second. */
static void stage_runs(const Sorting *o, const Runs *r, V a, V b, V na, V count) {
    Emit *e = o->e;
    V places = o->so->alone ? (V){NULL} : em_gep(e, kernel_buffer(o->k, o->so->from[1]), o->row, e->i32);
    for (uint32_t i = 0; i < o->each; i++) {
        V at = sort_own(o, i), inside = em_least(e, at, em_sub(e, count, sort_i32(o, 1)));
        V in_b = em_add(e, em_add(e, r->b, b), sort_widened(o, em_most(e, em_sub(e, inside, na), sort_i32(o, 0))));
        V in_a = em_add(e, em_add(e, r->a, a), sort_widened(o, inside));
        V from = em_select(e, em_less(e, inside, na), in_a, in_b);
        sort_put(o, o->keys, o->places, at, sort_at(o, r->keys, places, from));
    }
}
/* Writes a tile of what two runs become. */
void device_merge(Kernel *k, V item, V end) {
    Emit *e = k->e;
    Sorting o = sorting_of(k, item);
    sorting_share(&o);
    Runs r = runs_of(&o);
    V from = em_sub(e, o.first, r.a), to = em_least(e, em_add(e, from, em_i64(e, o.so->tile)), em_add(e, r.na, r.nb));
    V a = split(&o, &r, from), end_a = split(&o, &r, to), na = sort_narrowed(&o, em_sub(e, end_a, a));
    V count = sort_narrowed(&o, em_sub(e, to, from)), zero = sort_i32(&o, 0);
    uint32_t turns = 1;
    while (1u << turns <= o.so->tile) turns++;
    Element x[SORT_EACH];
    stage_runs(&o, &r, a, em_sub(e, from, a), na, count);
    threads_meet(k);
    read_own(&o, x);
    for (uint32_t i = 0; i < o.each; i++) {
        V first = em_less(e, x[i].at, na);
        x[i].second = em_bin(e, "llvm.xor", first, em_int(e, e->i1, 1));
        x[i].from = em_select(e, first, na, zero), x[i].n = em_select(e, first, em_sub(e, count, na), na);
        x[i].base = em_select(e, first, x[i].at, em_sub(e, x[i].at, na));
    }
    count_before(&o, sort_i32(&o, turns), x);
    V keys = kernel_buffer(k, o.so->to[0]), places = sort_buffer(&o, o.so->alone ? NULL : o.so->to[1]);
    for (uint32_t i = 0; i < o.each; i++) {
        V place = sort_widened(&o, em_add(e, x[i].base, x[i].before));
        sort_put_if(&o, em_less(e, x[i].at, count), keys, places, em_add(e, em_add(e, o.row, o.first), place), x[i].x);
    }
    threads_meet(k);
}
