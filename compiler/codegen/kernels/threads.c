#include "threads.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* Values move between threads as words of 32 bits. */
enum { WORD = 32, MOST_WORDS = 4, SHARED_SPACE = 3, SHARED_ALIGN = 16 };

static V intrinsic(Emit *e, const char *name, MlirType t, uint32_t n, const V *operands) {
    int32_t segments[2] = {(int32_t)n, 0};
    Attr a[3] = {{"intrin", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString(name))},
                 {"operandSegmentSizes", mlirDenseI32ArrayGet(e->mlir, 2, segments)},
                 {"op_bundle_sizes", mlirDenseI32ArrayGet(e->mlir, 0, NULL)}};
    bool result = t.ptr != NULL;
    MlirOperation op = em_op(e, "llvm.call_intrinsic", &(Op){result, &t, n, operands, 3, a, 0, NULL});
    return result ? mlirOperationGetResult(op, 0) : (V){NULL};
}
/* A special register, read once where the kernel begins. */
static V special(Kernel *k, V *known, const char *name) {
    if (known->ptr) return *known;
    MlirBlock was = kernel_at(k, 0);
    *known = em_cast(k->e, "llvm.zext", k->e->i64, intrinsic(k->e, name, k->e->i32, 0, NULL));
    k->e->block = was;
    return *known;
}
V thread_number(Kernel *k) { return special(k, &k->block.thread, "llvm.nvvm.read.ptx.sreg.tid.x"); }
V block_number(Kernel *k) { return special(k, &k->block.number, "llvm.nvvm.read.ptx.sreg.ctaid.x"); }
V block_count(Kernel *k) { return special(k, &k->block.count, "llvm.nvvm.read.ptx.sreg.nctaid.x"); }
void threads_meet(Kernel *k) {
    V barrier = em_int(k->e, k->e->i32, 0);
    intrinsic(k->e, "llvm.nvvm.barrier.cta.sync.aligned.all", no_type, 1, &barrier);
}

/* ---- shared memory: one array, whose size the launch sets */
static const char shared_name[] = "jaxcc_shared";
static void declare_shared(Emit *e) {
    bool fresh;
    intern(&e->declared, shared_name, sizeof shared_name, &fresh);
    if (!fresh) return;
    MlirBlock was = e->block;
    MlirRegion none = mlirRegionCreate();
    e->block = mlirModuleGetBody(e->module);
    Attr a[5] = {{"sym_name", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString(shared_name))},
                 {"global_type", mlirTypeAttrGet(mlirLLVMArrayTypeGet(e->i8, 0))},
                 {"linkage", mlirLLVMLinkageAttrGet(e->mlir, MlirLLVMLinkageExternal)},
                 {"addr_space", mlirIntegerAttrGet(e->i32, SHARED_SPACE)},
                 {"alignment", mlirIntegerAttrGet(e->i64, SHARED_ALIGN)}};
    em_op(e, "llvm.mlir.global", &(Op){0, NULL, 0, NULL, 5, a, 1, &none});
    e->block = was;
}
V threads_share(Kernel *k, int64_t bytes) {
    Emit *e = k->e;
    declare_shared(e);
    MlirBlock was = kernel_at(k, 0);
    Attr name = {"global_name", mlirFlatSymbolRefAttrGet(e->mlir, mlirStringRefCreateFromCString(shared_name))};
    V base = em_1(e, "llvm.mlir.addressof", mlirLLVMPointerTypeGet(e->mlir, SHARED_SPACE), 0, NULL, 1, &name);
    V p = em_gep(e, em_cast(e, "llvm.addrspacecast", e->ptr, base), em_i64(e, k->block.shared), e->i8);
    e->block = was;
    k->block.shared += (bytes + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
    return p;
}

/* ---- words */
static uint32_t bits_of(Emit *e, MlirType t) {
    if (mlirTypeIsAInteger(t)) return mlirIntegerTypeGetWidth(t);
    return mlirTypeEqual(t, e->f64) ? 64 : mlirTypeEqual(t, e->f32) ? 32 : 16;
}
static uint32_t words_in(Emit *e, MlirType t) { return (bits_of(e, t) + WORD - 1) / WORD; }
static MlirType integer_of(Emit *e, uint32_t bits) { return mlirIntegerTypeGet(e->mlir, bits); }
static void to_words(Emit *e, V v, V *words) {
    MlirType t = mlirValueGetType(v);
    uint32_t bits = bits_of(e, t), n = words_in(e, t);
    assert(n <= MOST_WORDS);
    if (!mlirTypeIsAInteger(t)) v = em_cast(e, "llvm.bitcast", integer_of(e, bits), v);
    if (bits < WORD) v = em_cast(e, "llvm.zext", e->i32, v);
    for (uint32_t i = 0; i < n; i++) {
        V part = i ? em_bin(e, "llvm.lshr", v, em_int(e, integer_of(e, bits), (int64_t)WORD * i)) : v;
        words[i] = n > 1 ? em_cast(e, "llvm.trunc", e->i32, part) : part;
    }
}
static V from_words(Emit *e, MlirType t, const V *words) {
    uint32_t bits = bits_of(e, t), n = words_in(e, t);
    MlirType whole = integer_of(e, bits < WORD ? WORD : bits);
    V v = n > 1 ? em_cast(e, "llvm.zext", whole, words[0]) : words[0];
    for (uint32_t i = 1; i < n; i++) {
        V part = em_cast(e, "llvm.zext", whole, words[i]);
        v = em_bin(e, "llvm.or", v, em_bin(e, "llvm.shl", part, em_int(e, whole, (int64_t)WORD * i)));
    }
    if (bits < WORD) v = em_cast(e, "llvm.trunc", integer_of(e, bits), v);
    return mlirTypeIsAInteger(t) ? v : em_cast(e, "llvm.bitcast", t, v);
}
static V shuffled(Emit *e, V word, uint32_t distance) {
    V o[4] = {em_int(e, e->i32, -1), word, em_int(e, e->i32, distance), em_int(e, e->i32, WARP - 1)};
    return intrinsic(e, "llvm.nvvm.shfl.sync.bfly.i32", e->i32, 4, o);
}

/* ---- merging */
/* Called for each word of n values. */
typedef void Word(Kernel *, V place, V *word, uint32_t user);
static void each_word(Kernel *k, V base, uint32_t n, V *values, uint32_t user, Word *rule) {
    Emit *e = k->e;
    for (uint32_t i = 0, at = 0; i < n; i++) {
        V words[MOST_WORDS] = {{NULL}};
        MlirType t = mlirValueGetType(values[i]);
        uint32_t more = words_in(e, t);
        to_words(e, values[i], words);
        for (uint32_t w = 0; w < more; w++, at++)
            rule(k, base.ptr ? em_gep(e, base, em_i64(e, at), e->i32) : base, &words[w], user);
        values[i] = from_words(e, t, words);
    }
}
static void shuffle_word(Kernel *k, V place, V *word, uint32_t distance) { *word = shuffled(k->e, *word, distance); }
static void store_word(Kernel *k, V place, V *word, uint32_t unused) { em_store(k->e, *word, place, WORD / 8); }
static void load_word(Kernel *k, V place, V *word, uint32_t unused) {
    *word = em_load(k->e, k->e->i32, place, WORD / 8);
}
static void merge_lanes(Kernel *k, uint32_t n, V *values, Merge *merge, void *user) {
    V other[MAX_MERGED];
    for (uint32_t distance = WARP / 2; distance; distance /= 2) {
        memcpy(other, values, n * sizeof *values);
        each_word(k, (V){NULL}, n, other, distance, shuffle_word);
        merge(k->e, user, values, other);
    }
}
static int64_t all_words(Kernel *k, uint32_t n, const V *values) {
    int64_t words = 0;
    for (uint32_t i = 0; i < n; i++) words += words_in(k->e, mlirValueGetType(values[i]));
    return words;
}
/* One merge after the other uses the same memory. */
static V scratch_of(Kernel *k, int64_t bytes) {
    if (bytes <= k->block.scratch_bytes) return k->block.scratch;
    k->block.scratch_bytes = bytes;
    return k->block.scratch = threads_share(k, bytes);
}
void threads_merge(Kernel *k, uint32_t n, V *values, Merge *merge, void *user) {
    Emit *e = k->e;
    uint32_t warps = k->block.threads / WARP;
    assert(n <= MAX_MERGED && warps);
    merge_lanes(k, n, values, merge, user);
    if (warps == 1) return;
    int64_t words = all_words(k, n, values);
    V scratch = scratch_of(k, warps * words * (WORD / 8)), thread = thread_number(k), next[MAX_MERGED];
    V warp = em_bin(e, "llvm.lshr", thread, em_i64(e, 5)), lane = em_bin(e, "llvm.and", thread, em_i64(e, WARP - 1));
    If first = em_if(e, em_cmpi(e, "eq", lane, em_i64(e, 0)));
    memcpy(next, values, n * sizeof *values);
    each_word(k, em_gep(e, scratch, em_bin(e, "llvm.mul", warp, em_i64(e, words)), e->i32), n, next, 0, store_word);
    em_else(e, &first, 0, NULL);
    em_if_end(e, &first, NULL, NULL);
    threads_meet(k);
    for (uint32_t w = 0; w < warps; w++) {
        V *to = w ? next : values;
        memmove(to, values, n * sizeof *values); /* their types matter */
        each_word(k, em_gep(e, scratch, em_i64(e, w * words), e->i32), n, to, 0, load_word);
        if (w) merge(e, user, values, next);
    }
    threads_meet(k);
}
