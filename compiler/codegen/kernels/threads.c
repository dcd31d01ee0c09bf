#include "threads.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* Values move between threads as words of 32 bits. */
enum { WORD = 32, MOST_WORDS = 4, SHARED_ALIGN = 16, SHARED_BASE = 1024 }; /* SHARED_BASE: warpgroups need it */

V threads_intrinsic(Emit *e, const char *name, MlirType t, uint32_t n, const V *operands) {
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
    *known = em_cast(k->e, "llvm.zext", k->e->i64, threads_intrinsic(k->e, name, k->e->i32, 0, NULL));
    k->e->block = was;
    return *known;
}
V thread_number(Kernel *k) { return special(k, &k->block.thread, "llvm.nvvm.read.ptx.sreg.tid.x"); }
V thread_number_again(Kernel *k) {
    Emit *e = k->e;
    Attr attrs[3] = {{"asm_string", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString("mov.u32 $0, %tid.x;"))},
                     {"constraints", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString("=r"))},
                     {"has_side_effects", mlirUnitAttrGet(e->mlir)}}; /* so that it stays where it is */
    V x = em_1(e, "llvm.inline_asm", e->i32, 0, NULL, 3, attrs);
    return em_cast(e, "llvm.zext", e->i64, x);
}
V block_number(Kernel *k) { return special(k, &k->block.number, "llvm.nvvm.read.ptx.sreg.ctaid.x"); }
V cluster_number(Kernel *k) { return special(k, &k->block.number, "llvm.nvvm.read.ptx.sreg.clusterid.x"); }
V block_rank(Kernel *k) { return special(k, &k->block.rank, "llvm.nvvm.read.ptx.sreg.cluster.ctarank"); }
V block_count(Kernel *k) { return special(k, &k->block.count, "llvm.nvvm.read.ptx.sreg.nctaid.x"); }
/* Written once where the kernel begins, as all that depends on the number of the thread alone. */
static V of_thread(Kernel *k, V *known, const char *op, uint32_t n) {
    if (known->ptr) return *known;
    V thread = thread_number(k);
    MlirBlock was = kernel_at(k, 0);
    *known = em_bin(k->e, op, thread, em_i64(k->e, n));
    k->e->block = was;
    return *known;
}
static V of_cluster(Kernel *k) {
    if (k->block.member.ptr) return k->block.member;
    V thread = thread_number(k), rank = block_rank(k);
    MlirBlock was = kernel_at(k, 0);
    V before = em_bin(k->e, "llvm.mul", rank, em_i64(k->e, k->block.threads));
    k->block.member = em_bin(k->e, "llvm.add", before, thread);
    k->e->block = was;
    return k->block.member;
}
V member_number(Kernel *k) {
    if (k->block.cluster) return of_cluster(k);
    if (k->block.group == k->block.threads) return thread_number(k);
    return of_thread(k, &k->block.member, "llvm.urem", k->block.group);
}
V chunk_number(Kernel *k) { return of_thread(k, &k->block.member, "llvm.udiv", k->block.threads / k->block.chunks); }
void threads_meet(Kernel *k) {
    V barrier = em_int(k->e, k->e->i32, 0);
    threads_intrinsic(k->e, "llvm.nvvm.barrier.cta.sync.aligned.all", no_type, 1, &barrier);
}
void threads_meet_in_warp(Kernel *k) {
    V all = em_int(k->e, k->e->i32, -1);
    threads_intrinsic(k->e, "llvm.nvvm.bar.warp.sync", no_type, 1, &all);
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
                 {"alignment", mlirIntegerAttrGet(e->i64, SHARED_BASE)}};
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
    assert(k->block.shared <= e->target->device->shared);
    return p;
}

V threads_row(Kernel *k, int64_t bytes) {
    Emit *e = k->e;
    uint32_t rows = k->block.threads / k->block.group;
    bytes = (bytes + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
    V all = threads_share(k, bytes * rows);
    if (rows == 1) return all;
    V row = em_bin(e, "llvm.udiv", thread_number(k), em_i64(e, k->block.group));
    return em_gep(e, all, em_bin(e, "llvm.mul", row, em_i64(e, bytes)), e->i8);
}

/* ---- words */
static uint32_t bits_of(Emit *e, MlirType t) {
    if (mlirTypeIsAInteger(t)) return mlirIntegerTypeGetWidth(t);
    return mlirTypeEqual(t, e->f64) ? 64 : mlirTypeEqual(t, e->f32) ? 32 : 16;
}
uint32_t threads_words_in(Emit *e, MlirType t) { return (bits_of(e, t) + WORD - 1) / WORD; }
static MlirType integer_of(Emit *e, uint32_t bits) { return mlirIntegerTypeGet(e->mlir, bits); }
void threads_to_words(Emit *e, V v, V *words) {
    MlirType t = mlirValueGetType(v);
    uint32_t bits = bits_of(e, t), n = threads_words_in(e, t);
    assert(n <= MOST_WORDS);
    if (!mlirTypeIsAInteger(t)) v = em_cast(e, "llvm.bitcast", integer_of(e, bits), v);
    if (bits < WORD) v = em_cast(e, "llvm.zext", e->i32, v);
    for (uint32_t i = 0; i < n; i++) {
        V part = i ? em_bin(e, "llvm.lshr", v, em_int(e, integer_of(e, bits), (int64_t)WORD * i)) : v;
        words[i] = n > 1 ? em_cast(e, "llvm.trunc", e->i32, part) : part;
    }
}
V threads_from_words(Emit *e, MlirType t, const V *words) {
    uint32_t bits = bits_of(e, t), n = threads_words_in(e, t);
    MlirType whole = integer_of(e, bits < WORD ? WORD : bits);
    V v = n > 1 ? em_cast(e, "llvm.zext", whole, words[0]) : words[0];
    for (uint32_t i = 1; i < n; i++) {
        V part = em_cast(e, "llvm.zext", whole, words[i]);
        v = em_bin(e, "llvm.or", v, em_bin(e, "llvm.shl", part, em_int(e, whole, (int64_t)WORD * i)));
    }
    if (bits < WORD) v = em_cast(e, "llvm.trunc", integer_of(e, bits), v);
    return mlirTypeIsAInteger(t) ? v : em_cast(e, "llvm.bitcast", t, v);
}
V threads_shuffle(Kernel *k, const char *mode, V value, V by) {
    Emit *e = k->e;
    V words[MOST_WORDS] = {{NULL}};
    MlirType t = mlirValueGetType(value);
    Str name = str_format(e->arena, "llvm.nvvm.shfl.sync.%s.i32", mode);
    int64_t bound = str_is(str(mode), "up") ? 0 : WARP - 1;
    threads_to_words(e, value, words);
    for (uint32_t i = 0; i < threads_words_in(e, t); i++) {
        V o[4] = {em_int(e, e->i32, -1), words[i], by, em_int(e, e->i32, bound)};
        words[i] = threads_intrinsic(e, name.at, e->i32, 4, o);
    }
    return threads_from_words(e, t, words);
}
static V shuffled_by(Kernel *k, const char *mode, V value, uint32_t by) {
    return threads_shuffle(k, mode, value, em_int(k->e, k->e->i32, by));
}

/* ---- shared memory for values that move between warps */
static int64_t all_words(Kernel *k, uint32_t n, const V *values) {
    int64_t words = 0;
    for (uint32_t i = 0; i < n; i++) words += threads_words_in(k->e, mlirValueGetType(values[i]));
    return words;
}
/* One use after the other has the same memory. */
static V scratch_of(Kernel *k, int64_t words) {
    int64_t bytes = words * (WORD / 8);
    if (bytes <= k->block.scratch_bytes) return k->block.scratch;
    k->block.scratch_bytes = bytes;
    return k->block.scratch = threads_share(k, bytes);
}
/* The words of n values from number `first` on, `apart` apart. */
static void store_values(Kernel *k, V scratch, V first, uint32_t apart, uint32_t n, const V *values) {
    Emit *e = k->e;
    V p = em_gep(e, scratch, first, e->i32), words[MOST_WORDS];
    for (uint32_t i = 0, at = 0; i < n; i++) {
        threads_to_words(e, values[i], words);
        for (uint32_t w = 0; w < threads_words_in(e, mlirValueGetType(values[i])); w++)
            em_store(e, words[w], em_gep(e, p, em_i64(e, at++ * apart), e->i32), WORD / 8);
    }
}
static void load_values(Kernel *k, V scratch, V first, uint32_t apart, uint32_t n, V *values) {
    Emit *e = k->e;
    V p = em_gep(e, scratch, first, e->i32), words[MOST_WORDS];
    for (uint32_t i = 0, at = 0; i < n; i++) {
        MlirType t = mlirValueGetType(values[i]);
        for (uint32_t w = 0; w < threads_words_in(e, t); w++)
            words[w] = em_load(e, e->i32, em_gep(e, p, em_i64(e, at++ * apart), e->i32), WORD / 8);
        values[i] = threads_from_words(e, t, words);
    }
}
V thread_warp(Kernel *k) { return em_bin(k->e, "llvm.udiv", thread_number(k), em_i64(k->e, WARP)); }
V thread_lane(Kernel *k) { return em_bin(k->e, "llvm.urem", thread_number(k), em_i64(k->e, WARP)); }
/* One thread of each warp leaves its values for the others. */
static void leave_values(Kernel *k, V scratch, uint32_t lane, uint32_t n, const V *values) {
    Emit *e = k->e;
    If f = em_if(e, em_cmpi(e, "eq", thread_lane(k), em_i64(e, lane)));
    store_values(k, scratch, em_bin(e, "llvm.mul", thread_warp(k), em_i64(e, all_words(k, n, values))), 1, n, values);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
}

/* ---- merging */
static void merge_lanes(Kernel *k, uint32_t from, uint32_t to, uint32_t n, V *values, Merge *merge, void *user) {
    V other[MAX_MERGED];
    for (uint32_t distance = from; distance >= to; distance /= 2) {
        for (uint32_t i = 0; i < n; i++) other[i] = shuffled_by(k, "bfly", values[i], distance);
        merge(k->e, user, values, other);
    }
}
void threads_merge_lanes(Kernel *k, uint32_t lanes, uint32_t n, V *values, Merge *merge, void *user) {
    if (lanes > 1) merge_lanes(k, lanes / 2, 1, n, values, merge, user);
}
void threads_merge_apart(Kernel *k, uint32_t apart, uint32_t n, V *values, Merge *merge, void *user) {
    merge_lanes(k, WARP / 2, apart, n, values, merge, user);
}
V threads_from_lane(Kernel *k, V value, uint32_t lane) { return shuffled_by(k, "idx", value, lane); }
/* In order what is in shared memory: from each of `sets`, `step` words apart, the n values from word `first` on. */
typedef struct {
    V scratch, first;
    uint32_t sets, apart;
    int64_t step;
} Sets;
/* The sets from number `first` on, of which `values` has what came before. */
static void merge_some(Kernel *k, const Sets *m, V first, uint32_t sets, uint32_t n, V *values, Merge *merge,
                       void *user) {
    Emit *e = k->e;
    V next[MAX_MERGED], from = em_bin(e, "llvm.add", m->first, em_bin(e, "llvm.mul", first, em_i64(e, m->step)));
    for (uint32_t i = 0; i < sets; i++) {
        memcpy(next, values, n * sizeof *values); /* their types matter */
        load_values(k, m->scratch, em_bin(e, "llvm.add", from, em_i64(e, i * m->step)), m->apart, n, next);
        merge(e, user, values, next);
    }
}
/* Words are read so many at a time, at most twice as many in a row: each is in a register until it is added. 32 sets of
   8 words in a vector by a matrix spilled 104 bytes, with 64 words at a time the maxima of 72 columns of i8 20. */
enum { MERGED_WORDS = 32 };
static void merge_all(Kernel *k, const Sets *m, uint32_t n, V *values, Merge *merge, void *user) {
    Emit *e = k->e;
    uint32_t together = m->sets;
    while (together % 2 == 0 && together * all_words(k, n, values) > MERGED_WORDS) together /= 2;
    assert(m->sets % together == 0);
    load_values(k, m->scratch, m->first, m->apart, n, values);
    merge_some(k, m, em_i64(e, 1), together - 1, n, values, merge, user);
    if (together == m->sets) return;
    V step = em_i64(e, together), sums[MAX_MERGED];
    For f = em_for(e, step, em_i64(e, m->sets), step, n, values);
    for (uint32_t i = 0; i < n; i++) sums[i] = em_arg(&f.scope, 1 + i);
    merge_some(k, m, em_arg(&f.scope, 0), together, n, sums, merge, user);
    em_for_end(e, &f, sums, values);
}
static void merge_sets(Kernel *k, const Sets *m, uint32_t n, V *values, Merge *merge, void *user) {
    threads_meet(k);
    merge_all(k, m, n, values, merge, user);
    threads_meet(k);
}
/* Words of neighbouring threads lie beside each other. */
static void merge_chunks(Kernel *k, uint32_t n, V *values, Merge *merge, void *user) {
    Emit *e = k->e;
    uint32_t chunks = k->block.chunks, items = k->block.threads / chunks;
    int64_t words = all_words(k, n, values), step = words * items;
    V item = em_bin(e, "llvm.urem", thread_number(k), em_i64(e, items));
    Sets m = {scratch_of(k, chunks * step), item, chunks, items, step};
    V own = em_bin(e, "llvm.add", em_bin(e, "llvm.mul", chunk_number(k), em_i64(e, step)), item);
    store_values(k, m.scratch, own, items, n, values);
    merge_sets(k, &m, n, values, merge, user);
}
void cluster_arrive(Kernel *k) {
    threads_intrinsic(k->e, "llvm.nvvm.barrier.cluster.arrive.aligned", no_type, 0, NULL);
}
static void cluster_wait(Kernel *k) {
    threads_intrinsic(k->e, "llvm.nvvm.barrier.cluster.wait.aligned", no_type, 0, NULL);
}
/* In order what the blocks of the cluster have. Each writes its values to all of them, to a place of its own for each
   merging: the kernel does one item, so that nobody writes there again, and after the last barrier to none that may
   have ended. */
static void merge_blocks(Kernel *k, uint32_t n, V *values, Merge *merge, void *user) {
    Emit *e = k->e;
    uint32_t blocks = k->block.cluster;
    int64_t words = all_words(k, n, values);
    V scratch = threads_share(k, blocks * words * (WORD / 8));
    V own = em_bin(e, "llvm.mul", block_rank(k), em_i64(e, words));
    if (!k->block.met) cluster_wait(k);
    k->block.met = true;
    If f = em_if(e, em_cmpi(e, "ult", thread_number(k), em_i64(e, blocks)));
    V shared = em_cast(e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(e->mlir, SHARED_SPACE), scratch);
    V to[2] = {shared, em_cast(e, "llvm.trunc", e->i32, thread_number(k))};
    V there =
        threads_intrinsic(e, "llvm.nvvm.mapa.shared.cluster", mlirLLVMPointerTypeGet(e->mlir, CLUSTER_SPACE), 2, to);
    store_values(k, em_cast(e, "llvm.addrspacecast", e->ptr, there), own, 1, n, values);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
    cluster_arrive(k);
    cluster_wait(k);
    Sets m = {scratch, em_i64(e, 0), blocks, 1, words};
    merge_all(k, &m, n, values, merge, user);
}
void threads_merge(Kernel *k, uint32_t n, V *values, Merge *merge, void *user) {
    Emit *e = k->e;
    uint32_t warps = (k->block.cluster ? k->block.threads : k->block.group) / WARP;
    assert(n <= MAX_MERGED);
    if (k->block.chunks) {
        merge_chunks(k, n, values, merge, user);
        return;
    }
    threads_merge_lanes(k, k->block.group < WARP ? k->block.group : WARP, n, values, merge, user);
    if (warps <= 1) return;
    assert(k->block.cluster || k->block.group == k->block.threads); /* the block does one item */
    int64_t words = all_words(k, n, values);
    Sets m = {scratch_of(k, warps * words), em_i64(e, 0), warps, 1, words};
    leave_values(k, m.scratch, 0, n, values);
    merge_sets(k, &m, n, values, merge, user);
    if (k->block.cluster) merge_blocks(k, n, values, merge, user);
}

/* ---- prefixes */
/* The values of the first `lanes` lanes (a power of two) up to this one, for each of n values. */
static void scan_lanes(Kernel *k, uint32_t n, V *values, uint32_t lanes, Merge *merge, void *user) {
    Emit *e = k->e;
    V x[MOST_PREFIXES];
    for (uint32_t by = 1; by < lanes; by *= 2) {
        V first = em_cmpi(e, "ult", thread_lane(k), em_i64(e, by));
        for (uint32_t i = 0; i < n; i++) x[i] = shuffled_by(k, "up", values[i], by);
        for (uint32_t i = 0; i < n; i++) {
            merge(e, user, &x[i], &values[i]);
            values[i] = em_select(e, first, values[i], x[i]);
        }
    }
}
/* The value of thread `by` − 1 of the warp. */
static V before(Kernel *k, V value, V by, V none) {
    Emit *e = k->e;
    V first = em_cmpi(e, "eq", by, em_i64(e, 0)), from = em_bin(e, "llvm.sub", by, em_i64(e, 1));
    return em_select(e, first, none, threads_shuffle(k, "idx", value, em_cast(e, "llvm.trunc", e->i32, from)));
}
/* What the warps before this one have, of one value for each; *all: what all have. */
static V before_warp(Kernel *k, V value, V none, Merge *merge, void *user, V *all) {
    Emit *e = k->e;
    uint32_t warps = k->block.group / WARP;
    assert(k->block.group == k->block.threads); /* the block does one item */
    V words = em_i64(e, all_words(k, 1, &value)), scratch = scratch_of(k, warps * all_words(k, 1, &value));
    leave_values(k, scratch, WARP - 1, 1, &value);
    threads_meet(k);
    V lane = em_bin(e, "llvm.intr.umin", thread_lane(k), em_i64(e, warps - 1));
    load_values(k, scratch, em_bin(e, "llvm.mul", lane, words), 1, 1, &value);
    threads_meet(k);
    scan_lanes(k, 1, &value, warps, merge, user);
    *all = shuffled_by(k, "idx", value, warps - 1);
    return before(k, value, thread_warp(k), none);
}
void threads_prefixes(Kernel *k, uint32_t n, V *values, V none, Merge *merge, void *user, V *all) {
    Emit *e = k->e;
    V total = {NULL};
    assert(n <= MOST_PREFIXES);
    scan_lanes(k, n, values, WARP, merge, user);
    for (uint32_t i = 0; i < n; i++) {
        V mine = before(k, values[i], thread_lane(k), none), x = total;
        V next = i + 1 < n || k->block.group == WARP ? shuffled_by(k, "idx", values[i], WARP - 1) : values[i];
        if (i) merge(e, user, &x, &mine), merge(e, user, &total, &next);
        values[i] = i ? x : mine;
        if (!i) total = next;
    }
    *all = total;
    if (k->block.group == WARP) return;
    V x = before_warp(k, total, none, merge, user, all);
    for (uint32_t i = 0; i < n; i++) {
        V y = x;
        merge(e, user, &y, &values[i]);
        values[i] = y;
    }
}
void threads_prefixes_apart(Kernel *k, uint32_t n, V *values, V none, Merge *merge, void *user, V *all) {
    assert(n <= MOST_PREFIXES);
    scan_lanes(k, n, values, WARP, merge, user);
    for (uint32_t i = 0; i < n; i++) {
        all[i] = shuffled_by(k, "idx", values[i], WARP - 1);
        values[i] = before(k, values[i], thread_lane(k), none);
    }
}
void threads_swap_chunks(Kernel *k, bool back, uint32_t n, V *values) {
    enum { APART = WARP + 1 }; /* so that few places are in one bank */
    Emit *e = k->e;
    uint32_t items = k->block.threads / WARP;
    int64_t words = all_words(k, n, values);
    assert(k->block.chunks == WARP);
    V scratch = scratch_of(k, items * words * APART), of_item = em_i64(e, words * APART);
    V item = em_bin(e, "llvm.urem", thread_number(k), em_i64(e, items));
    V own = em_add(e, em_mul(e, item, of_item), chunk_number(k));
    V other = em_add(e, em_mul(e, thread_warp(k), of_item), thread_lane(k));
    store_values(k, scratch, back ? other : own, APART, n, values);
    threads_meet(k);
    load_values(k, scratch, back ? own : other, APART, n, values);
}
V threads_prefix(Kernel *k, V value, V none, Merge *merge, void *user, V *all) {
    threads_prefixes(k, 1, &value, none, merge, user, all);
    return value;
}

/* ---- where all threads have the same values */
If by_one_thread(Kernel *k) {
    if (!k->block.together) return (If){0};
    V first = em_cmpi(k->e, "eq", k->block.chunks ? chunk_number(k) : member_number(k), em_i64(k->e, 0));
    if (k->block.exists.ptr) first = em_bin(k->e, "llvm.and", first, k->block.exists);
    If f = em_if(k->e, first);
    kernel_enter(k);
    return f;
}
void by_one_thread_end(Kernel *k, If *f) {
    if (!k->block.together) return;
    kernel_leave(k);
    em_else(k->e, f, 0, NULL);
    em_if_end(k->e, f, NULL, NULL);
}
