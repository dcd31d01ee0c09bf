#include "emit.h"
#include "../cost.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>
#include <stdio.h>

/* All operations are of the llvm dialect, except structured control flow (scf), which lower.c lowers: nothing else
   needs a conversion. */

static MlirStringRef ref(const char *s) { return mlirStringRefCreateFromCString(s); }
static MlirStringRef ref_str(Str s) { return mlirStringRefCreate(s.at, s.n); }

/* A record of a function's operations, with values and blocks by number: equal functions have equal tapes. */
typedef struct Tape {
    Intern numbers;
    struct {
        uint64_t *at;
        uint32_t n, cap;
    } words;
} Tape;
static void record(Emit *e, const void *word) { push(e->arena, &e->tape->words, (uint64_t)(uintptr_t)word); }
static void record_number(Emit *e, const void *what) {
    uint32_t n = intern(&e->tape->numbers, &what, sizeof what, NULL);
    push(e->arena, &e->tape->words, n);
}
static void record_op(Emit *e, MlirOperation op, const Op *o) {
    record(e, mlirOperationGetName(op).ptr);
    record_number(e, e->block.ptr);
    for (uint32_t i = 0; i < o->n; i++) record_number(e, o->operands[i].ptr);
    for (uint32_t i = 0; i < o->nattrs; i++) record(e, o->attrs[i].value.ptr);
    for (uint32_t i = 0; i < o->nresults; i++) {
        V r = mlirOperationGetResult(op, i);
        record_number(e, r.ptr);
        record(e, mlirValueGetType(r).ptr);
    }
}

MlirOperation em_op(Emit *e, const char *name, const Op *o) {
    MlirOperationState s = mlirOperationStateGet(ref(name), e->loc);
    enum { MOST_ATTRIBUTES = 8, MOST_REGIONS = 2 };
    MlirNamedAttribute named[MOST_ATTRIBUTES];
    assert(o->nattrs <= MOST_ATTRIBUTES && o->nregions <= MOST_REGIONS);
    mlirOperationStateAddResults(&s, o->nresults, o->results);
    mlirOperationStateAddOperands(&s, o->n, o->operands);
    for (uint32_t i = 0; i < o->nattrs; i++)
        named[i] = mlirNamedAttributeGet(mlirIdentifierGet(e->mlir, ref(o->attrs[i].name)), o->attrs[i].value);
    mlirOperationStateAddAttributes(&s, o->nattrs, named);
    const void *blocks[MOST_REGIONS] = {NULL, NULL};
    for (uint32_t i = 0; i < o->nregions; i++) blocks[i] = mlirRegionGetFirstBlock(o->regions[i]).ptr;
    mlirOperationStateAddOwnedRegions(&s, o->nregions, o->regions);
    MlirOperation op = mlirOperationCreate(&s);
    mlirBlockAppendOwnedOperation(e->block, op);
    e->written++;
    bool inside = e->tape && e->block.ptr != mlirModuleGetBody(e->module).ptr;
    for (uint32_t i = 0; inside && i < o->nregions; i++) record_number(e, blocks[i]);
    if (inside) record_op(e, op, o);
    return op;
}

V em_1(Emit *e, const char *name, MlirType t, uint32_t n, const V *operands, uint32_t nattrs, const Attr *attrs) {
    return mlirOperationGetResult(em_op(e, name, &(Op){1, &t, n, operands, nattrs, attrs, 0, NULL}), 0);
}
V em_un(Emit *e, const char *name, V x) { return em_1(e, name, mlirValueGetType(x), 1, &x, 0, NULL); }
static bool may_be_fast(const char *name) {
    return !strcmp(name, "llvm.fadd") || !strcmp(name, "llvm.fsub") || !strcmp(name, "llvm.fmul") ||
           !strcmp(name, "llvm.fdiv");
}
V em_bin(Emit *e, const char *name, V x, V y) {
    V o[2] = {x, y}, folded;
    if (em_folded(e, name, x, y, &folded)) return folded;
    if (!e->fast || !may_be_fast(name)) return em_1(e, name, mlirValueGetType(x), 2, o, 0, NULL);
    Attr a = {"fastmathFlags", mlirAttributeParseGet(e->mlir, ref("#llvm.fastmath<fast>"))};
    return em_1(e, name, mlirValueGetType(x), 2, o, 1, &a);
}
V em_cast(Emit *e, const char *name, MlirType t, V x) { return em_1(e, name, t, 1, &x, 0, NULL); }
V em_fma(Emit *e, V a, V b, V c) {
    V o[3] = {a, b, c};
    return em_1(e, "llvm.intr.fma", mlirValueGetType(a), 3, o, 0, NULL);
}
V em_select(Emit *e, V condition, V yes, V no) {
    V o[3] = {condition, yes, no};
    return em_1(e, "llvm.select", mlirValueGetType(yes), 3, o, 0, NULL);
}

static MlirAttribute i64_attr(Emit *e, int64_t v) { return mlirIntegerAttrGet(e->i64, v); }
static MlirAttribute i32_attr(Emit *e, int64_t v) { return mlirIntegerAttrGet(e->i32, v); }

static V compare(Emit *e, const char *op, const char *const *names, uint32_t n, const char *name, V x, V y) {
    uint32_t k = 0;
    while (k < n && strcmp(names[k], name)) k++;
    assert(k < n);
    Attr a = {"predicate", i64_attr(e, k)};
    V o[2] = {x, y};
    return em_1(e, op, em_vec(e, e->i1, em_width(x)), 2, o, 1, &a);
}
V em_cmpi(Emit *e, const char *predicate, V x, V y) {
    static const char *const names[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
    return compare(e, "llvm.icmp", names, 10, predicate, x, y);
}
V em_cmpf(Emit *e, const char *predicate, V x, V y) {
    static const char *const names[] = {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                                        "ueq",   "ugt", "uge", "ult", "ule", "une", "uno", "true"};
    return compare(e, "llvm.fcmp", names, 16, predicate, x, y);
}

/* ---- types and lanes */
MlirType em_vec(Emit *e, MlirType t, uint32_t w) {
    int64_t shape = w;
    assert(w > 0 && w <= MAX_LANES);
    return w == 1 ? t : mlirVectorTypeGet(1, &shape, t);
}
MlirType em_elem(V x) {
    MlirType t = mlirValueGetType(x);
    return mlirTypeIsAVector(t) ? mlirShapedTypeGetElementType(t) : t;
}
uint32_t em_width(V x) {
    MlirType t = mlirValueGetType(x);
    return mlirTypeIsAVector(t) ? (uint32_t)mlirShapedTypeGetDimSize(t, 0) : 1;
}
static V poison(Emit *e, MlirType t) { return em_1(e, "llvm.mlir.poison", t, 0, NULL, 0, NULL); }

V em_shuffle(Emit *e, V a, V b, uint32_t n, const int64_t *lanes) {
    int32_t mask[MAX_LANES];
    assert(n <= MAX_LANES);
    for (uint32_t i = 0; i < n; i++) mask[i] = (int32_t)lanes[i];
    Attr at = {"mask", mlirDenseI32ArrayGet(e->mlir, n, mask)};
    V o[2] = {a, b};
    int64_t shape = n;
    MlirType t = mlirVectorTypeGet(1, &shape, em_elem(a));
    return em_1(e, "llvm.shufflevector", t, 2, o, 1, &at);
}
V em_extract(Emit *e, V vector, uint32_t lane) {
    if (!mlirTypeIsAVector(mlirValueGetType(vector))) return vector;
    V o[2] = {vector, em_i64(e, lane)};
    return em_1(e, "llvm.extractelement", em_elem(vector), 2, o, 0, NULL);
}
V em_insert(Emit *e, V scalar, V vector, uint32_t lane) {
    V o[3] = {vector, scalar, em_i64(e, lane)};
    return em_1(e, "llvm.insertelement", mlirValueGetType(vector), 3, o, 0, NULL);
}
V em_part(Emit *e, V v, uint32_t from, uint32_t n) {
    int64_t lanes[MAX_LANES];
    uint32_t w = em_width(v);
    for (uint32_t l = 0; l < n; l++) lanes[l] = from + l < w ? from + l : 0;
    return em_shuffle(e, v, v, n, lanes);
}
V em_joined(Emit *e, V a, V b) {
    int64_t lanes[MAX_LANES];
    uint32_t n = em_width(a) + em_width(b);
    for (uint32_t l = 0; l < n; l++) lanes[l] = l;
    return em_shuffle(e, a, b, n, lanes);
}
V em_broadcast(Emit *e, V scalar, uint32_t w) {
    if (w == 1) return scalar;
    int64_t zeros[MAX_LANES] = {0};
    V p = poison(e, em_vec(e, mlirValueGetType(scalar), w));
    return em_shuffle(e, em_insert(e, scalar, p, 0), p, w, zeros);
}
V em_lanes(Emit *e, MlirType integer, uint32_t w) {
    if (w == 1) return em_int(e, integer, 0);
    MlirAttribute at[MAX_LANES];
    for (uint32_t i = 0; i < w; i++) at[i] = mlirIntegerAttrGet(integer, i);
    MlirType t = em_vec(e, integer, w);
    Attr a = {"value", mlirDenseElementsAttrGet(t, w, at)};
    return em_1(e, "llvm.mlir.constant", t, 0, NULL, 1, &a);
}

/* ---- constants */
static V constant(Emit *e, MlirType t, MlirAttribute scalar) {
    Attr a = {"value", mlirTypeIsAVector(t) ? mlirDenseElementsAttrSplatGet(t, scalar) : scalar};
    return em_1(e, "llvm.mlir.constant", t, 0, NULL, 1, &a);
}
static MlirType elem_of(MlirType t) { return mlirTypeIsAVector(t) ? mlirShapedTypeGetElementType(t) : t; }
V em_int(Emit *e, MlirType t, int64_t v) {
    uint32_t bits = mlirIntegerTypeGetWidth(elem_of(t));
    if (bits < 64) v = (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
    return constant(e, t, mlirIntegerAttrGet(elem_of(t), v));
}
V em_float(Emit *e, MlirType t, double v) { return constant(e, t, mlirFloatAttrDoubleGet(e->mlir, elem_of(t), v)); }
V em_i64(Emit *e, int64_t v) { return em_int(e, e->i64, v); }

/* ---- memory */

/* A constant part of the index is added last, by an operation of its own. */
V em_gep(Emit *e, V p, V index, MlirType elem) {
    int32_t dynamic = INT32_MIN;
    int64_t c;
    V rest = em_without_constant(e, index, &c);
    if (c) p = em_gep(e, p, rest, elem), index = em_i64(e, c);
    uint32_t w = em_width(index);
    Attr a[2] = {{"rawConstantIndices", mlirDenseI32ArrayGet(e->mlir, 1, &dynamic)},
                 {"elem_type", mlirTypeAttrGet(elem)}};
    V o[2] = {p, index};
    return em_1(e, "llvm.getelementptr", em_vec(e, e->ptr, w), 2, o, 2, a);
}
/* Vectors of 128-bit elements, which no machine has, go through memory as vectors of 64-bit ones. */
static bool pairs(Emit *e, MlirType t) { return mlirTypeIsAVector(t) && mlirTypeEqual(elem_of(t), e->i128); }
static MlirType halves_type(Emit *e, MlirType t) {
    return em_vec(e, e->i64, 2 * (uint32_t)mlirShapedTypeGetDimSize(t, 0));
}
static V halves(Emit *e, V v) { return em_cast(e, "llvm.bitcast", halves_type(e, mlirValueGetType(v)), v); }
static V twice_each(Emit *e, V mask) {
    int64_t lanes[MAX_LANES];
    uint32_t n = 2 * em_width(mask);
    for (uint32_t i = 0; i < n; i++) lanes[i] = i / 2;
    return em_shuffle(e, mask, mask, n, lanes);
}
V em_load(Emit *e, MlirType t, V p, uint32_t align) {
    Attr a = {"alignment", i64_attr(e, align)};
    if (!pairs(e, t)) return em_1(e, "llvm.load", t, 1, &p, 1, &a);
    return em_cast(e, "llvm.bitcast", t, em_1(e, "llvm.load", halves_type(e, t), 1, &p, 1, &a));
}
void em_store(Emit *e, V v, V p, uint32_t align) {
    e->written += STORE_LENGTH;
    Attr a = {"alignment", i64_attr(e, align)};
    V o[2] = {pairs(e, mlirValueGetType(v)) ? halves(e, v) : v, p};
    em_op(e, "llvm.store", &(Op){0, NULL, 2, o, 1, &a, 0, NULL});
}
void em_prefetch(Emit *e, V p) {
    enum { READ = 0, KEEP = 3, DATA = 1 }; /* LLVM's llvm.prefetch */
    Attr a[3] = {{"rw", mlirIntegerAttrGet(e->i32, READ)},
                 {"hint", mlirIntegerAttrGet(e->i32, KEEP)},
                 {"cache", mlirIntegerAttrGet(e->i32, DATA)}};
    em_op(e, "llvm.intr.prefetch", &(Op){0, NULL, 1, &p, 3, a, 0, NULL});
}
V em_masked_load(Emit *e, MlirType vector, V p, V mask, V otherwise, uint32_t align) {
    Attr a = {"alignment", i32_attr(e, align)};
    V o[3] = {p, mask, otherwise};
    if (!pairs(e, vector)) return em_1(e, "llvm.intr.masked.load", vector, 3, o, 1, &a);
    o[1] = twice_each(e, mask), o[2] = halves(e, otherwise);
    V m = em_1(e, "llvm.intr.masked.load", halves_type(e, vector), 3, o, 1, &a);
    return em_cast(e, "llvm.bitcast", vector, m);
}
void em_masked_store(Emit *e, V v, V p, V mask, uint32_t align) {
    Attr a = {"alignment", i32_attr(e, align)};
    V o[3] = {v, p, mask};
    if (pairs(e, mlirValueGetType(v))) o[0] = halves(e, v), o[2] = twice_each(e, mask);
    em_op(e, "llvm.intr.masked.store", &(Op){0, NULL, 3, o, 1, &a, 0, NULL});
}
V em_gather(Emit *e, MlirType vector, V p, V indices, MlirType elem, V mask, V otherwise, uint32_t align) {
    Attr a = {"alignment", i32_attr(e, align)};
    V o[3] = {em_gep(e, p, indices, elem), mask, otherwise};
    bool two = pairs(e, vector) && em_width(indices) == 2; /* which LLVM 22 divides by zero on, where more are well */
    if (!two) return em_1(e, "llvm.intr.masked.gather", vector, 3, o, 1, &a);
    MlirType t = halves_type(e, vector);
    V second = em_bin(e, "llvm.and", em_lanes(e, e->i64, 2 * em_width(indices)), em_int(e, t, 1));
    o[0] = em_gep(e, twice_each(e, o[0]), second, e->i64), o[1] = twice_each(e, mask), o[2] = halves(e, otherwise);
    return em_cast(e, "llvm.bitcast", vector, em_1(e, "llvm.intr.masked.gather", t, 3, o, 1, &a));
}
V em_alloca(Emit *e, int64_t bytes, uint32_t align) {
    Attr a[2] = {{"elem_type", mlirTypeAttrGet(e->i8)}, {"alignment", i64_attr(e, align)}};
    V n = em_i64(e, bytes);
    return em_1(e, "llvm.alloca", e->ptr, 1, &n, 2, a);
}

/* ---- regions */
Scope em_begin(Emit *e, uint32_t nargs, const MlirType *args) {
    Scope s = {.outer = e->block, .region = mlirRegionCreate()};
    MlirLocation *locs = arena_new(e->arena, MlirLocation, nargs + 1);
    for (uint32_t i = 0; i < nargs; i++) locs[i] = e->loc;
    s.block = mlirBlockCreate(nargs, args, locs);
    mlirRegionAppendOwnedBlock(s.region, s.block);
    e->block = s.block;
    for (uint32_t i = 0; e->tape && i < nargs; i++) record_number(e, mlirBlockGetArgument(s.block, i).ptr);
    return s;
}
void em_end(Emit *e, Scope *s) { e->block = s->outer; }
V em_arg(Scope *s, uint32_t i) { return mlirBlockGetArgument(s->block, i); }

static void yield(Emit *e, uint32_t n, const V *v) { em_op(e, "scf.yield", &(Op){0, NULL, n, v, 0, NULL, 0, NULL}); }
static MlirType *types_of(Emit *e, uint32_t n, const V *v) {
    MlirType *t = arena_new(e->arena, MlirType, n + 1);
    for (uint32_t i = 0; i < n; i++) t[i] = mlirValueGetType(v[i]);
    return t;
}
static void results_of(MlirOperation op, uint32_t n, V *results) {
    for (uint32_t i = 0; i < n; i++) results[i] = mlirOperationGetResult(op, i);
}
For em_for(Emit *e, V lo, V hi, V step, uint32_t n, const V *init) {
    For f = {.lo = lo, .hi = hi, .step = step, .n = n};
    V *copy = arena_new(e->arena, V, n + 1);
    MlirType *t = arena_new(e->arena, MlirType, n + 1);
    t[0] = e->i64;
    for (uint32_t i = 0; i < n; i++) copy[i] = init[i], t[i + 1] = mlirValueGetType(init[i]);
    f.init = copy;
    f.scope = em_begin(e, n + 1, t);
    return f;
}
void em_for_end(Emit *e, For *f, const V *next, V *results) {
    yield(e, f->n, next);
    em_end(e, &f->scope);
    V *o = arena_new(e->arena, V, f->n + 3);
    o[0] = f->lo, o[1] = f->hi, o[2] = f->step;
    for (uint32_t i = 0; i < f->n; i++) o[i + 3] = f->init[i];
    Attr rolled = {"rolled", mlirUnitAttrGet(e->mlir)};
    MlirOperation op = em_op(
        e, "scf.for", &(Op){f->n, types_of(e, f->n, f->init), f->n + 3, o, f->rolled, &rolled, 1, &f->scope.region});
    results_of(op, f->n, results);
}
If em_if(Emit *e, V condition) {
    If i = {.condition = condition};
    i.then = em_begin(e, 0, NULL);
    return i;
}
void em_else(Emit *e, If *i, uint32_t n, const V *yes) {
    i->n = n;
    yield(e, n, yes);
    em_end(e, &i->then);
    i->otherwise = em_begin(e, 0, NULL);
}
void em_if_end(Emit *e, If *i, const V *no, V *results) {
    yield(e, i->n, no);
    em_end(e, &i->otherwise);
    MlirRegion r[2] = {i->then.region, i->otherwise.region};
    MlirOperation op = em_op(e, "scf.if", &(Op){i->n, types_of(e, i->n, no), 1, &i->condition, 0, NULL, 2, r});
    results_of(op, i->n, results);
}
V *em_while(Emit *e, uint32_t n, const V *init, Scope *before, Scope *after) {
    V *r = arena_new(e->arena, V, n + 1);
    MlirRegion regions[2] = {before->region, after->region};
    MlirOperation op = em_op(e, "scf.while", &(Op){n, types_of(e, n, init), n, init, 0, NULL, 2, regions});
    results_of(op, n, r);
    return r;
}

/* ---- modules */
void em_target(Emit *e, uint32_t number) {
    e->target = &e->targets->at[number];
    e->level = number ? str_format(e->arena, ".%s", e->target->cpu).at : "";
}
void em_device(Emit *e, bool kernels) {
    if (e->on_device == kernels) return;
    __typeof__(e->other) was = {e->module, e->declared, e->texts};
    e->module = e->other.module, e->declared = e->other.declared, e->texts = e->other.texts;
    e->other = was;
    e->on_device = kernels;
}

/* ---- functions */
static MlirType function_type(Emit *e, MlirType result, uint32_t n, const MlirType *args) {
    return mlirLLVMFunctionTypeGet(result.ptr ? result : mlirLLVMVoidTypeGet(e->mlir), n, args, false);
}
Function em_function(Emit *e, Str name, MlirType result, uint32_t nargs, const MlirType *args, bool shared) {
    Function f = {.name = name, .nargs = nargs, .args = args, .result = result};
    f.outer = e->tape;
    f.written = e->written;
    e->tape = shared ? arena_new(e->arena, Tape, 1) : NULL;
    if (e->tape) {
        e->tape->numbers.arena = e->arena;
        record(e, e->target);
    }
    e->written = 0;
    f.scope = em_begin(e, nargs, args);
    return f;
}
/* With -g a function's location carries its subprogram, which its operations' lines belong to. */
static MlirLocation function_loc(Emit *e, Str name) {
    if (!e->unit.ptr) return e->loc;
    MlirAttribute id = mlirDisctinctAttrCreate(mlirUnitAttrGet(e->mlir)), none = {NULL};
    MlirAttribute type = mlirLLVMDISubroutineTypeAttrGet(e->mlir, 0, 0, NULL);
    MlirAttribute text = mlirStringAttrGet(e->mlir, ref_str(name));
    enum { DEFINITION = 8, OPTIMIZED = 16 };
    MlirAttribute sub = mlirLLVMDISubprogramAttrGet(e->mlir, none, false, id, e->unit, e->file, text, text, e->file, 1,
                                                    1, DEFINITION | OPTIMIZED, type, 0, NULL, 0, NULL);
    return mlirLocationFusedGet(e->mlir, 1, &e->loc, sub);
}
MlirOperation em_function_end(Emit *e, Function *f, V value) {
    em_op(e, "llvm.return", &(Op){0, NULL, value.ptr ? 1 : 0, &value, 0, NULL, 0, NULL});
    e->block = mlirModuleGetBody(e->module);
    Attr a[4] = {{"sym_name", mlirStringAttrGet(e->mlir, ref_str(f->name))},
                 {"function_type", mlirTypeAttrGet(function_type(e, f->result, f->nargs, f->args))},
                 {"linkage", mlirLLVMLinkageAttrGet(e->mlir, MlirLLVMLinkageInternal)},
                 {"target_cpu", mlirStringAttrGet(e->mlir, ref(e->target->cpu))}};
    bool lowest = !*e->level; /* as the module is */
    f->tape = e->tape;
    e->tape = f->outer;
    MlirLocation was = e->loc;
    e->loc = function_loc(e, f->name);
    MlirOperation op = em_op(e, "llvm.func", &(Op){0, NULL, 0, NULL, lowest ? 3 : 4, a, 1, &f->scope.region});
    e->loc = was;
    e->block = f->scope.outer;
    e->written = f->written;
    return op;
}
void em_inline(Emit *e, MlirOperation function) {
    MlirAttribute always = mlirStringAttrGet(e->mlir, ref("alwaysinline"));
    mlirOperationSetAttributeByName(function, ref("passthrough"), mlirArrayAttrGet(e->mlir, 1, &always));
}
void em_for_any_cpu(Emit *e, MlirOperation function) {
    enum { KEYS = 2 };
    const char *const keys[KEYS][2] = {{"target-cpu", "x86-64"}, {"target-features", ""}};
    MlirAttribute pairs[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        MlirAttribute pair[2] = {mlirStringAttrGet(e->mlir, ref(keys[i][0])),
                                 mlirStringAttrGet(e->mlir, ref(keys[i][1]))};
        pairs[i] = mlirArrayAttrGet(e->mlir, 2, pair);
    }
    mlirOperationSetAttributeByName(function, ref("passthrough"), mlirArrayAttrGet(e->mlir, KEYS, pairs));
}
static MlirAttribute symbol(Emit *e, Str name) { return mlirFlatSymbolRefAttrGet(e->mlir, ref_str(name)); }
void em_declare(Emit *e, const char *name, MlirType result, uint32_t n, const MlirType *args) {
    bool fresh;
    intern(&e->declared, name, strlen(name), &fresh);
    if (!fresh) return;
    MlirBlock was = e->block;
    MlirRegion empty = mlirRegionCreate();
    e->block = mlirModuleGetBody(e->module);
    Attr a[2] = {{"sym_name", mlirStringAttrGet(e->mlir, ref(name))},
                 {"function_type", mlirTypeAttrGet(function_type(e, result, n, args))}};
    em_op(e, "llvm.func", &(Op){0, NULL, 0, NULL, 2, a, 1, &empty});
    e->block = was;
}
static V call(Emit *e, Str name, MlirType result, uint32_t n, const V *args, bool last) {
    int32_t segments[2] = {(int32_t)n, 0};
    Attr a[4] = {{"callee", symbol(e, name)},
                 {"operandSegmentSizes", mlirDenseI32ArrayGet(e->mlir, 2, segments)},
                 {"op_bundle_sizes", mlirDenseI32ArrayGet(e->mlir, 0, NULL)}};
    if (last) a[3] = (Attr){"TailCallKind", mlirAttributeParseGet(e->mlir, ref("#llvm.tailcallkind<tail>"))};
    MlirOperation op = em_op(e, "llvm.call", &(Op){result.ptr ? 1 : 0, &result, n, args, last ? 4 : 3, a, 0, NULL});
    return result.ptr ? mlirOperationGetResult(op, 0) : (V){NULL};
}
V em_call(Emit *e, const char *name, MlirType result, uint32_t n, const V *args) {
    em_declare(e, name, result, n, types_of(e, n, args));
    return call(e, str(name), result, n, args, false);
}
V em_call_local(Emit *e, Str name, MlirType result, uint32_t n, const V *args) {
    return call(e, name, result, n, args, false);
}
V em_call_last(Emit *e, Str name, MlirType result, uint32_t n, const V *args) {
    return call(e, name, result, n, args, true);
}
V em_address(Emit *e, Str name) {
    Attr a = {"global_name", symbol(e, name)};
    return em_1(e, "llvm.mlir.addressof", e->ptr, 0, NULL, 1, &a);
}

void em_at(Emit *e, Span span) {
    LineCol at = diag_where(e->cx->diags, span);
    e->loc = mlirLocationFileLineColGet(e->mlir, ref(diag_path(e->cx->diags, span.file)), at.line, at.col);
}

/* ---- texts, shared functions */
Str em_text(Emit *e, Str s) {
    bool fresh;
    Str key = str_format(e->arena, "text %.*s", SF(s));
    uint32_t id = intern(&e->texts, key.at, key.n, &fresh);
    Str name = str_format(e->arena, "text_%u", id);
    if (!fresh) return name;
    MlirBlock was = e->block;
    MlirRegion none = mlirRegionCreate();
    e->block = mlirModuleGetBody(e->module);
    char *bytes = str_c(e->arena, s);
    Attr a[5] = {{"sym_name", mlirStringAttrGet(e->mlir, ref_str(name))},
                 {"global_type", mlirTypeAttrGet(mlirLLVMArrayTypeGet(e->i8, s.n + 1))},
                 {"linkage", mlirLLVMLinkageAttrGet(e->mlir, MlirLLVMLinkageInternal)},
                 {"constant", mlirUnitAttrGet(e->mlir)},
                 {"value", mlirStringAttrGet(e->mlir, mlirStringRefCreate(bytes, s.n + 1))}};
    em_op(e, "llvm.mlir.global", &(Op){0, NULL, 0, NULL, 5, a, 1, &none});
    e->block = was;
    return name;
}
uint32_t em_shared_function(Emit *e, const Function *f, MlirOperation op) {
    bool fresh;
    uint32_t id = intern(&e->functions, f->tape->words.at, f->tape->words.n * sizeof *f->tape->words.at, &fresh);
    if (fresh)
        push(e->arena, &e->names, f->name);
    else
        mlirOperationDestroy(op);
    return id;
}
void em_declare_word(Emit *e, Str name) {
    bool fresh;
    intern(&e->declared, name.at, name.n, &fresh);
    if (!fresh) return;
    MlirBlock was = e->block;
    MlirRegion none = mlirRegionCreate();
    e->block = mlirModuleGetBody(e->module);
    Attr a[3] = {{"sym_name", mlirStringAttrGet(e->mlir, ref_str(name))},
                 {"global_type", mlirTypeAttrGet(e->i64)},
                 {"linkage", mlirLLVMLinkageAttrGet(e->mlir, MlirLLVMLinkageExternal)}};
    em_op(e, "llvm.mlir.global", &(Op){0, NULL, 0, NULL, 3, a, 1, &none});
    e->block = was;
}
