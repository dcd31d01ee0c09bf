#include "cumulative.h"
#include "../cost.h"
#include "point.h"
#include "wide.h"
#include <assert.h>

/* cumsum, cumprod, cummax, cummin, cumlogsumexp along one axis. If that is the innermost one, vectors run along it: the
   prefixes of a vector take log2(w) shifts, then the carry of the previous vectors is added; otherwise vectors run
   along the innermost axis, with one carry per lane along the other. `reverse` goes from the end: suffixes, and the
   carry is the first lane. The carry of a sum of floats is a wide form (sums.h): the error of a prefix is that of its
   last two additions. The carry of cumlogsumexp is a number and its rounding error.

   One long row is divided into parts, which are units. A first kernel computes their totals, from which a range of units
   of the second one gets the carry before it. Within a part a second carry begins with it, so that the carry after it
   is always that before it joined with the same total: the bits do not depend on who does which parts (except which of
   several NaNs a sum gives). A call that does all units needs no totals: the first kernel computes none then. */

V cum_combine(const Cum *c, V a, V b) {
    Emit *e = c->k->e;
    if (c->e->prim == P_cumlogsumexp)
        return em_round(e, c->d, kernel_stdlib(c->k, "logaddexp", c->d, (V[]){a, b}, 2, em_width(a)));
    return point_combine(e, c->e->prim, c->d, a, b);
}
uint32_t cum_widens(const Cum *c) { return c->e->prim == P_cumsum ? wide_values(c->d) : 0; }
static bool is_log(const Cum *c) { return c->e->prim == P_cumlogsumexp && wide_values(c->d); }
uint32_t cum_values(const Cum *c) { return is_log(c) ? 2 : cum_widens(c) ? cum_widens(c) : 1; }
void cum_start(const Cum *c, uint32_t w, V *carry) {
    if (cum_widens(c)) {
        wide_zero(c->k->e, c->d, w, carry);
        return;
    }
    carry[0] = point_identity(c->k->e, c->e->prim, c->d, w);
    if (is_log(c)) carry[1] = em_float(c->k->e, mlirValueGetType(carry[0]), 0);
}
V cum_value(const Cum *c, const V *carry) { return cum_widens(c) ? wide_value(c->k->e, c->d, carry) : carry[0]; }
/* log(e^y + e^x), y = carry[0] + carry[1]: the greater one plus log1p(e^-|x − y|) and the previous rounding error; the
   new error is the addend less the part of it that is in the sum (Dekker's FastTwoSum). */
static void add_log(const Cum *c, V *carry, V x) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t w = em_width(x);
    V zero = em_float(e, mlirValueGetType(x), 0), y = carry[0], lost = carry[1];
    V d = em_bin(e, "llvm.fadd", em_bin(e, "llvm.fsub", y, x), lost);
    V power = em_un(e, "llvm.fneg", em_un(e, "llvm.intr.fabs", d));
    V more = kernel_stdlib(k, "exp", c->d, &power, 1, w), first = em_cmpf(e, "oge", d, zero);
    more = kernel_stdlib(k, "log1p", c->d, &more, 1, w);
    V greater = em_select(e, first, y, x);
    V less = em_select(e, first, em_bin(e, "llvm.fadd", lost, more), more);
    V sum = em_bin(e, "llvm.fadd", greater, less);
    V rest = em_bin(e, "llvm.fsub", less, em_bin(e, "llvm.fsub", sum, greater));
    V infinite = em_bin(e, "llvm.fadd", y, x); /* both, and the same */
    carry[0] = em_select(e, em_cmpf(e, "uno", d, d), infinite, sum);
    carry[1] = em_select(e, em_cmpf(e, "ord", rest, rest), rest, zero);
}
V cum_add(const Cum *c, V *carry, V x) {
    if (is_log(c))
        add_log(c, carry, x);
    else
        carry[0] = cum_combine(c, carry[0], x);
    return carry[0];
}
void cum_take(const Cum *c, V *carry, V x) {
    if (cum_widens(c))
        wide_add(c->k->e, c->d, x, carry);
    else
        cum_add(c, carry, x);
}
uint32_t cum_part_values(const Cum *c) { return cum_widens(c) ? cum_widens(c) : 1; }
void cum_add_part(const Cum *c, V *carry, const V *part) {
    if (cum_widens(c))
        wide_join(c->k->e, c->d, part, carry);
    else
        cum_take(c, carry, part[0]);
}
V cum_operand(const Cum *c) {
    Kernel *k = c->k;
    Ix index[MAX_RANK];
    step_at(k->x.plan, k->x.step, c->y, index);
    V x = kernel_vector(k, eval_value(&k->x, c->e->in.at[0], index));
    if (!k->tail.ptr) return x;
    return em_select(k->e, k->tail, x, point_identity(k->e, c->e->prim, c->d, k->w));
}
void cum_remember(const Cum *c, V y) {
    Kernel *k = c->k;
    Ix index[MAX_RANK];
    step_at(k->x.plan, k->x.step, c->y, index);
    eval_remember(&k->x, c->y, index, reg(em_round(k->e, c->d, y), k->w == 1, k->x.depth));
}
void cum_store(const Cum *c, V y) {
    cum_remember(c, y);
    kernel_stores(c->k);
}
/* Prefixes (suffixes) of the lanes: combined with the lanes …, 4, 2, 1 before (after) them. Beyond the ends sums use
   −0, which is neutral too: LLVM expands shuffles with 0 slowly. */
static V prefixes(const Cum *c, V x) {
    Emit *e = c->k->e;
    uint32_t w = em_width(x);
    V none = cum_widens(c) ? em_float(e, mlirValueGetType(x), -0.0) : point_identity(e, c->e->prim, c->d, w);
    for (uint32_t by = w / 2; by; by /= 2) {
        int64_t lanes[MAX_LANES];
        for (uint32_t i = 0; i < w; i++)
            if (c->reverse)
                lanes[i] = i + by < w ? i + by : w;
            else
                lanes[i] = i >= by ? i - by : w;
        x = cum_combine(c, em_shuffle(e, x, none, w, lanes), x);
    }
    return x;
}
/* The last prefix (first suffix), by the same operations, also on vectors. */
static V last_prefix(const Cum *c, V x) {
    Emit *e = c->k->e;
    int64_t lanes[MAX_LANES + 1];
    for (uint32_t i = 0; i <= MAX_LANES; i++) lanes[i] = i;
    for (uint32_t half = em_width(x) / 2; half; half /= 2) {
        uint32_t w = half > 1 ? half : 2;
        V low = em_shuffle(e, x, x, w, lanes), high = em_shuffle(e, x, x, w, lanes + half);
        x = c->reverse ? cum_combine(c, high, low) : cum_combine(c, low, high);
    }
    return em_extract(e, x, 0);
}
/* Is the carry the result at the last element? Else it is computed apart, which takes less time. */
static bool is_result(const Cum *c) {
    return dtype_info[c->d].kind == DK_FLOAT && c->e->prim != P_cumsum && c->e->prim != P_cumprod;
}
/* The prefixes of the elements from `base` on, and the carry after them. It may have a second lane, which begins with
   a part of the row: it is not in the prefixes. */
static V with_carry(const Cum *c, V sums, V *carry) {
    Emit *e = c->k->e;
    uint32_t last = c->reverse ? 0 : c->k->w - 1, values = cum_values(c);
    V all[WIDE_VALUES] = {{NULL}};
    for (uint32_t i = 0; i < values; i++) all[i] = em_extract(e, carry[i], 0);
    if (!is_result(c)) {
        cum_take(c, carry, em_broadcast(e, em_extract(e, sums, last), em_width(carry[0])));
        return cum_combine(c, em_broadcast(e, cum_value(c, all), c->k->w), sums);
    }
    for (uint32_t i = 0; i < values; i++) all[i] = em_broadcast(e, all[i], c->k->w);
    V y = cum_add(c, all, sums);
    for (uint32_t i = 0; i < values; i++) carry[i] = em_extract(e, all[i], last);
    return y;
}
static void chunk(const Cum *c, V base, V *carry) {
    kernel_enter(c->k);
    kernel_bind(c->k, c->axis, base);
    cum_store(c, with_carry(c, prefixes(c, cum_operand(c)), carry));
    kernel_leave(c->k);
}
/* The same without stores; the carry has two equal lanes, or as many as vectors have. */
static void chunk_total(const Cum *c, V base, V *carry) {
    kernel_enter(c->k);
    kernel_bind(c->k, c->axis, base);
    V x = cum_operand(c);
    cum_take(c, carry, em_width(carry[0]) == 2 ? em_broadcast(c->k->e, last_prefix(c, x), 2) : x);
    kernel_leave(c->k);
}
/* Vectors of the elements [lo, hi), counted in the order of the prefixes. */
typedef struct {
    void (*write)(const Cum *, V base, V *carry);
    V lo, hi;
} Chunks;
static void chunks(const Cum *c, Chunks t, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    V w = em_i64(e, k->w), n = kernel_dim(k, loop_extent(k->x.ix, c->axis)), next[WIDE_VALUES] = {{NULL}};
    uint32_t values = cum_values(c);
    For f = em_for(e, t.lo, t.hi, w, values, carry);
    V base = em_arg(&f.scope, 0);
    if (c->reverse) base = em_sub(e, n, em_add(e, base, w));
    for (uint32_t v = 0; v < values; v++) next[v] = em_arg(&f.scope, v + 1);
    t.write(c, base, next);
    em_for_end(e, &f, next, carry);
}
/* The last elements of the axis, fewer than a vector has: of [lo, hi) one iteration or none. */
static void masked_rest(Cum *c, V lo, V hi, const V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t w = k->w;
    V last[WIDE_VALUES] = {{NULL}}, rest = em_cast(e, "llvm.trunc", e->i32, em_sub(e, hi, lo));
    memcpy(last, carry, cum_values(c) * sizeof *carry);
    For f = em_for(e, lo, hi, em_i64(e, w), 0, NULL);
    k->tail = em_cmpi(e, "ult", em_lanes(e, e->i32, w), em_broadcast(e, rest, w));
    chunk(c, c->reverse ? em_i64(e, 0) : lo, last);
    k->tail = (V){NULL};
    em_for_end(e, &f, NULL, NULL);
}
/* All full vectors, then the remainder: at the end of the axis, or in reverse at its beginning. */
static void along_lanes(Cum *c, V lo, V hi, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t w = k->w = k->x.step->widths.main;
    bool whole = dim_mod(k->x.plan->cx->types, loop_extent(k->x.ix, c->axis), w) == 0;
    V mid = whole ? hi : em_sub(e, hi, em_bin(e, "llvm.urem", em_sub(e, hi, lo), em_i64(e, w)));
    chunks(c, (Chunks){chunk, lo, mid}, carry);
    if (whole) return;
    if (k->x.step->widths.tail > 1) {
        masked_rest(c, mid, hi, carry);
        return;
    }
    k->w = 1;
    chunks(c, (Chunks){chunk, mid, hi}, carry);
}
/* Iterations [lo, hi) along an axis, with `n` values of a carry; `before` (NULL: none) is the carry before them. */
typedef struct {
    V lo, hi, before, *carry;
    uint32_t n;
} Turns;
static void turns(const Cum *c, Turns t) {
    Kernel *k = c->k;
    Emit *e = k->e;
    V n = kernel_dim(k, loop_extent(k->x.ix, c->axis)), one = em_i64(e, 1), next[WIDE_VALUES] = {{NULL}};
    For f = em_for(e, t.lo, t.hi, one, t.n, t.carry);
    V i = em_arg(&f.scope, 0);
    if (c->reverse) i = em_bin(e, "llvm.sub", em_bin(e, "llvm.sub", n, one), i);
    for (uint32_t v = 0; v < t.n; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    kernel_bind(k, c->axis, i);
    V y = cum_add(c, next, cum_operand(c));
    cum_store(c, t.before.ptr ? cum_combine(c, t.before, y) : y);
    kernel_leave(k);
    em_for_end(e, &f, next, t.carry);
}
/* The elements [lo, hi), one after the other, and the carry after them. Sums of floats: within a block, plus the wide
   form of everything before it. */
static void along(const Cum *c, V lo, V hi, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = cum_values(c);
    V block = em_i64(e, PREFIX_TURNS), none = {NULL}, sum = point_identity(e, c->e->prim, c->d, k->w);
    if (!cum_widens(c)) {
        turns(c, (Turns){lo, hi, none, carry, values});
        return;
    }
    For f = em_for(e, lo, hi, block, values, carry);
    V from = em_arg(&f.scope, 0), next[WIDE_VALUES];
    V to = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.add", from, block), hi);
    for (uint32_t v = 0; v < values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    turns(c, (Turns){from, to, wide_value(e, c->d, next), &sum, 1});
    wide_add(e, c->d, sum, next);
    kernel_leave(k);
    em_for_end(e, &f, next, carry);
}
static void row(const Cum *c) {
    Kernel *k = c->k;
    Emit *e = k->e;
    Dim extent = loop_extent(k->x.ix, c->axis);
    V n = kernel_dim(k, extent), zero = em_i64(e, 0), none = {NULL}, carry[WIDE_VALUES] = {{NULL}};
    if (!cum_widens(c) || !dim_is_const(extent) || extent > PREFIX_TURNS) {
        cum_start(c, k->w, carry);
        along(c, zero, n, carry);
        return;
    }
    carry[0] = point_identity(e, c->e->prim, c->d, k->w);
    turns(c, (Turns){zero, n, none, carry, 1});
}
static void whole_row(Cum *c) {
    Kernel *k = c->k;
    V carry[WIDE_VALUES] = {{NULL}};
    cum_start(c, 1, carry);
    along_lanes(c, em_i64(k->e, 0), kernel_dim(k, loop_extent(k->x.ix, c->axis)), carry);
}
static void others(Cum *c, uint32_t i, V lo, V hi);
static void inner(Cum *c, uint32_t i) {
    Kernel *k = c->k;
    while (i < k->x.step->nkept && k->x.step->kept[i] == c->axis) i++;
    if (i < k->x.step->nkept)
        others(c, i, em_i64(k->e, 0), kernel_dim(k, loop_extent(k->x.ix, k->x.step->kept[i])));
    else if (k->lane == c->axis)
        whole_row(c);
    else
        row(c);
}
static void counted(Cum *c, uint32_t i, V lo, V hi, uint32_t w) {
    Kernel *k = c->k;
    For f = em_for(k->e, lo, hi, em_i64(k->e, w), 0, NULL);
    kernel_enter(k);
    kernel_bind(k, k->x.step->kept[i], em_arg(&f.scope, 0));
    k->w = k->x.step->kept[i] == k->lane ? w : 1;
    inner(c, i + 1);
    kernel_leave(k);
    k->w = 1;
    em_for_end(k->e, &f, NULL, NULL);
}
static void others(Cum *c, uint32_t i, V lo, V hi) {
    Kernel *k = c->k;
    Emit *e = k->e;
    if (k->x.step->kept[i] != k->lane) {
        counted(c, i, lo, hi, 1);
        return;
    }
    uint32_t w = k->x.step->widths.main;
    V rest = em_bin(e, "llvm.urem", em_bin(e, "llvm.sub", hi, lo), em_i64(e, w));
    V mid = em_bin(e, "llvm.sub", hi, rest);
    counted(c, i, lo, mid, w);
    counted(c, i, mid, hi, 1);
}
static uint32_t first_other(Kernel *k, Atom axis) {
    uint32_t i = 0;
    while (i < k->x.step->nkept && k->x.step->kept[i] == axis) i++;
    return i;
}
Cum cum_of(Kernel *k) {
    const Eqn *e = k->x.step->e;
    Cum c = {.k = k, .e = e, .y = e->out.at[0], .d = val_array(k->x.plan->cx, e->out.at[0])->dtype};
    c.axis = cum_axis(k->x.plan, k->x.step);
    c.reverse = param_bool(e, K_reverse);
    k->lane = k->x.step->lane;
    k->x.level = 0, k->rows = false;
    return c;
}

/* ---- one long row in parts: each has PREFIX_PART bytes, for the total of the one before it; those of the first say
   whether there are totals */
static V part_word(const Cum *c, V part, uint32_t value) {
    Emit *e = c->k->e;
    V at = em_add(e, em_mul(e, part, em_i64(e, PREFIX_PART)), em_i64(e, 8 * value));
    return em_gep(e, kernel_buffer(c->k, c->k->x.step->parts), at, e->i8);
}
static V part_begin(const Cum *c, V part) {
    return em_mul(c->k->e, part, kernel_dim(c->k, c->k->x.step->division.length));
}
/* The carry before this part, from what all those before it have left. It has two lanes here, since the maximum of −0
   and +0 is the first one in vectors, but +0 elsewhere. */
static void before_part(const Cum *c, V part, V *carry) {
    Emit *e = c->k->e;
    uint32_t values = cum_values(c);
    V one = em_i64(e, 1), next[WIDE_VALUES] = {{NULL}}, x[WIDE_VALUES];
    cum_start(c, 2, carry);
    For f = em_for(e, one, em_add(e, part, one), one, values, carry);
    for (uint32_t v = 0; v < values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(c->k);
    for (uint32_t v = 0; v < cum_part_values(c); v++) {
        V word = part_word(c, em_arg(&f.scope, 0), v);
        x[v] = em_broadcast(e, em_load(e, em_elem(next[v]), word, 8), 2);
    }
    cum_add_part(c, next, x);
    kernel_leave(c->k);
    em_for_end(e, &f, next, carry);
    for (uint32_t v = 0; v < values; v++) carry[v] = em_extract(e, carry[v], 0);
}
/* Does combining the same elements in this order always give the same bits? */
static bool is_associative(const Cum *c) {
    Prim by = prim_combiner[c->e->prim];
    return by == P_max || by == P_min || dtype_info[c->d].kind != DK_FLOAT;
}
/* From the carry before this part to the one after it: with the total, as every thread computes it. */
static void along_part(Cum *c, V part, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = cum_values(c);
    V n = kernel_dim(k, loop_extent(k->x.ix, c->axis)), both[WIDE_VALUES] = {{NULL}};
    V lo = part_begin(c, part), hi = em_least(e, part_begin(c, em_add(e, part, em_i64(e, 1))), n);
    if (is_associative(c)) {
        along_lanes(c, lo, hi, carry);
        return;
    }
    cum_start(c, 2, both);
    for (uint32_t v = 0; v < values; v++) both[v] = em_insert(e, carry[v], both[v], 0);
    along_lanes(c, lo, hi, both);
    for (uint32_t v = 0; v < values; v++) both[v] = em_extract(e, both[v], 1);
    cum_add_part(c, carry, both);
}
static void along_parts(Cum *c, V lo, V hi) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = cum_values(c);
    V carry[WIDE_VALUES] = {{NULL}}, next[WIDE_VALUES] = {{NULL}};
    before_part(c, lo, carry);
    For f = em_for(e, lo, hi, em_i64(e, 1), values, carry);
    for (uint32_t v = 0; v < values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    along_part(c, em_arg(&f.scope, 0), next);
    kernel_leave(k);
    em_for_end(e, &f, next, carry);
}
/* Sums of integers have the same bits in any order. */
static void leave_total(Cum *c, V part) {
    Kernel *k = c->k;
    Emit *e = k->e;
    bool ordered = dtype_info[c->d].kind == DK_FLOAT;
    V total[WIDE_VALUES] = {{NULL}}, next = em_add(e, part, em_i64(e, 1));
    k->w = k->x.step->widths.main;
    assert(k->w > 2); /* chunk_total: two lanes are those of an ordered total */
    cum_start(c, ordered ? 2 : k->w, total);
    chunks(c, (Chunks){chunk_total, part_begin(c, part), part_begin(c, next)}, total);
    for (uint32_t v = 0; v < cum_part_values(c); v++) {
        V x = ordered ? em_extract(e, total[v], 0) : last_prefix(c, total[v]);
        em_store(e, x, part_word(c, next, v), 8);
    }
}
void kernel_cumulative_totals(Kernel *k, V lo, V hi) {
    Emit *e = k->e;
    Cum c = cum_of(k);
    V zero = em_i64(e, 0), one = em_i64(e, 1), n = kernel_dim(k, k->x.step->units);
    V shared = em_less(e, em_sub(e, hi, lo), n), last = em_least(e, hi, em_sub(e, n, one));
    For f = em_for(e, lo, em_select(e, shared, last, lo), one, 0, NULL);
    kernel_enter(k);
    leave_total(&c, em_arg(&f.scope, 0));
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
    If first = kernel_if(k, em_cmpi(e, "eq", lo, zero));
    em_store(e, em_cast(e, "llvm.zext", e->i64, shared), part_word(&c, zero, 0), 8);
    kernel_if_end(k, &first);
}
void kernel_cumulative(Kernel *k, V lo, V hi) {
    Cum c = cum_of(k);
    uint32_t i = first_other(k, c.axis);
    if (k->x.step->parts)
        along_parts(&c, lo, hi);
    else if (i < k->x.step->nkept)
        others(&c, i, lo, hi);
    else
        inner(&c, i);
}
