#include "atomic.h"
#include "point.h"
#include <math.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* Nothing is ordered by these operations but themselves (LLVM's monotonic); all threads of the GPU see them. */

enum { MONOTONIC = 2, ADD = 1, MOST_ATTRS = 4, WORD_BYTES = 4 };
static MlirAttribute number(Emit *e, int64_t n) { return mlirIntegerAttrGet(e->i64, n); }
static MlirAttribute scope(Emit *e) { return mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString("device")); }

/* LLVM's number of the operation that combines an integer with one in memory; those of min and max depend on the
   sign. */
static const struct {
    Prim how;
    int64_t with_sign, without;
} operations[] = {{P_add, ADD, ADD}, {P_sub, 2, 2}, {P_max, 7, 9}, {P_min, 8, 10}};

/* What was in memory. */
static V operate(Emit *e, int64_t which, V place, V x) {
    MlirType t = mlirValueGetType(x);
    Attr a[MOST_ATTRS] = {{"bin_op", number(e, which)},
                          {"ordering", number(e, MONOTONIC)},
                          {"syncscope", scope(e)},
                          {"alignment", number(e, mlirIntegerTypeGetWidth(t) / 8)}};
    return em_1(e, "llvm.atomicrmw", t, 2, (V[]){place, x}, MOST_ATTRS, a);
}
static bool by_operation(Kernel *k, Prim how, Dtype d, V place, V x) {
    uint32_t n = sizeof operations / sizeof *operations, i = 0;
    bool whole = dtype_info[d].kind == DK_SINT || dtype_info[d].kind == DK_UINT;
    while (i < n && operations[i].how != how) i++;
    if (!whole || dtype_bytes(d) < WORD_BYTES || i == n) return false;
    operate(k->e, point_is_signed(d) ? operations[i].with_sign : operations[i].without, place, x);
    return true;
}
/* The word with an element: a smaller one is a part of it, from bit `shift` on. */
typedef struct {
    V place, shift; /* shift: NULL: it is all */
    MlirType t, element;
} Word;
static Word word_of(Emit *e, Dtype d, V place) {
    uint32_t bytes = dtype_bytes(d);
    MlirType element = mlirIntegerTypeGet(e->mlir, bytes * 8);
    if (bytes >= WORD_BYTES) return (Word){place, {NULL}, element, element};
    V at = em_cast(e, "llvm.ptrtoint", e->i64, place), into = em_bin(e, "llvm.and", at, em_i64(e, WORD_BYTES - 1));
    V first = em_gep(e, place, em_bin(e, "llvm.sub", em_i64(e, 0), into), e->i8);
    V shift = em_bin(e, "llvm.shl", em_cast(e, "llvm.trunc", e->i32, into), em_int(e, e->i32, 3));
    return (Word){first, shift, e->i32, element};
}
static V element_of(Emit *e, const Word *w, V word) {
    return w->shift.ptr ? em_cast(e, "llvm.trunc", w->element, em_bin(e, "llvm.lshr", word, w->shift)) : word;
}
static V with_element(Emit *e, const Word *w, V word, V element) {
    if (!w->shift.ptr) return element;
    V ones = em_cast(e, "llvm.zext", w->t, em_int(e, w->element, -1)), all = em_int(e, w->t, -1);
    V others = em_bin(e, "llvm.xor", em_bin(e, "llvm.shl", ones, w->shift), all);
    V moved = em_bin(e, "llvm.shl", em_cast(e, "llvm.zext", w->t, element), w->shift);
    return em_bin(e, "llvm.or", em_bin(e, "llvm.and", word, others), moved);
}
static MlirAttribute aligned(Emit *e, const Word *w) { return number(e, mlirIntegerTypeGetWidth(w->t) / 8); }
static V load(Emit *e, const Word *w) {
    Attr a[] = {{"ordering", number(e, MONOTONIC)}, {"syncscope", scope(e)}, {"alignment", aligned(e, w)}};
    return em_1(e, "llvm.load", w->t, 1, &w->place, 3, a);
}
static V part(Emit *e, V pair, MlirType t, int64_t i) {
    Attr at = {"position", mlirDenseI64ArrayGet(e->mlir, 1, &i)};
    return em_1(e, "llvm.extractvalue", t, 1, &pair, 1, &at);
}
/* What was in memory; *done: it was `old`, and `new` is there now. */
static V exchange(Emit *e, const Word *w, V old, V new, V *done) {
    MlirType parts[2] = {w->t, e->i1}, pair = mlirLLVMStructTypeLiteralGet(e->mlir, 2, parts, false);
    Attr a[MOST_ATTRS] = {{"success_ordering", number(e, MONOTONIC)},
                          {"failure_ordering", number(e, MONOTONIC)},
                          {"syncscope", scope(e)},
                          {"alignment", aligned(e, w)}};
    V r = em_1(e, "llvm.cmpxchg", pair, 3, (V[]){w->place, old, new}, MOST_ATTRS, a);
    *done = part(e, r, e->i1, 1);
    return part(e, r, w->t, 0);
}
/* An element and x as bits. Every NaN is one and the same: which of several is kept would depend on the order. */
static V combined(Kernel *k, Prim how, Dtype d, V bits, V x) {
    Emit *e = k->e;
    MlirType m = em_memory_type(e, d);
    V was = em_to_register(e, d, mlirTypeIsAInteger(m) ? bits : em_cast(e, "llvm.bitcast", m, bits));
    V y = kernel_binary(k, how, d, (V[]){was, x});
    if (point_is_float(d)) {
        V nan = em_float(e, mlirValueGetType(y), (double)NAN);
        y = em_select(e, em_cmpf(e, "uno", y, y), nan, y);
    }
    y = em_to_memory(e, d, y);
    return mlirTypeIsAInteger(m) ? y : em_cast(e, "llvm.bitcast", mlirValueGetType(bits), y);
}
static void by_exchanges(Kernel *k, Prim how, Dtype d, V place, V x) {
    Emit *e = k->e;
    Word w = word_of(e, d, place);
    V first = load(e, &w), done;
    Scope before = em_begin(e, 1, &w.t);
    kernel_enter(k);
    V old = em_arg(&before, 0), y = combined(k, how, d, element_of(e, &w, old), x);
    V seen = exchange(e, &w, old, with_element(e, &w, old, y), &done);
    V again = em_bin(e, "llvm.xor", done, em_int(e, e->i1, 1));
    em_op(e, "scf.condition", &(Op){0, NULL, 2, (V[]){again, seen}, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &before);
    Scope after = em_begin(e, 1, &w.t);
    V next = em_arg(&after, 0);
    em_op(e, "scf.yield", &(Op){0, NULL, 1, &next, 0, NULL, 0, NULL});
    em_end(e, &after);
    em_while(e, 1, &first, &before, &after);
}
void atomic_combine(Kernel *k, Prim how, Dtype d, V place, V x) {
    if (!by_operation(k, how, d, place, x)) by_exchanges(k, how, d, place, x);
}
V atomic_count(Emit *e, V place) { return operate(e, ADD, place, em_int(e, e->i32, 1)); }
V atomic_load_word(Emit *e, V place) {
    Word w = {.place = place, .t = e->i64};
    return load(e, &w);
}
void atomic_store_word(Emit *e, V word, V place) {
    Attr a[] = {
        {"ordering", number(e, MONOTONIC)}, {"syncscope", scope(e)}, {"alignment", number(e, 2 * (int64_t)WORD_BYTES)}};
    em_op(e, "llvm.store", &(Op){0, NULL, 2, (V[]){word, place}, 3, a, 0, NULL});
}
