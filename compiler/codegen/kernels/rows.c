#include "../plan/rows.h"
#include "../cost.h"
#include "rows.h"
#include "threads.h"
#include <assert.h>
#include <mlir-c/Dialect/LLVM.h>

/* All elements of a thread are evaluated in the scope of the stages, where they are remembered: a later stage has
   them in registers. A thread without a last run has that of the row instead, which no sum counts and which it does
   not store. What is beyond the registers is evaluated in each stage anew, from shared memory if the step says so:
   each thread copies what it reads itself, all at once before the first stage, so that no registers wait for
   memory. */

static bool last_may_lack(const Kernel *k) {
    const HeldRow *h = &k->x.step->held;
    return !h->rest && loop_extent(k->x.ix, k->x.step->lane) % ((Dim)h->group * h->run) != 0;
}
/* The number in the row of the thread's last run, if it has one. */
static V last_run(Kernel *k) {
    const HeldRow *h = &k->x.step->held;
    return em_bin(k->e, "llvm.add", member_number(k), em_i64(k->e, (int64_t)h->group * (h->turns - 1)));
}
static V runs_in_row(Kernel *k) { return em_i64(k->e, loop_extent(k->x.ix, k->x.step->lane) / k->x.step->held.run); }
static V in_space(Emit *e, V pointer, uint32_t space) {
    return em_cast(e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(e->mlir, space), pointer);
}
/* Asks for a run of an array, which begins at both places. */
static void copy_run(Kernel *k, V to, V from, uint32_t bytes, uint32_t align) {
    static const char *const copy[] = {"llvm.nvvm.cp.async.ca.shared.global.4", "llvm.nvvm.cp.async.ca.shared.global.8",
                                       "llvm.nvvm.cp.async.cg.shared.global.16"};
    uint32_t which = 2, piece = DEVICE_ALIGN;
    while (which && (piece > bytes || piece > align)) piece /= 2, which--;
    for (uint32_t at = 0; at < bytes; at += piece) {
        V offset = em_i64(k->e, at), o[2];
        o[0] = in_space(k->e, em_gep(k->e, to, offset, k->e->i8), SHARED_SPACE);
        o[1] = in_space(k->e, em_gep(k->e, from, offset, k->e->i8), GLOBAL_SPACE);
        threads_intrinsic(k->e, copy[which], no_type, 2, o);
    }
}
/* Of what the block has in shared memory the first element of the run of that number in the row. */
static V near_first(Kernel *k, V run) {
    Emit *e = k->e;
    const HeldRow *h = &k->x.step->held;
    V at = em_bin(e, "llvm.sub", run, em_i64(e, h->rest / h->run));
    if (h->cluster) {
        V turn = em_bin(e, "llvm.udiv", at, em_i64(e, h->group));
        at = em_bin(e, "llvm.add", em_bin(e, "llvm.mul", turn, em_i64(e, k->block.threads)), thread_number(k));
    }
    return em_bin(e, "llvm.mul", at, em_i64(e, h->run));
}
static Dim near_elements(const Kernel *k) {
    const HeldRow *h = &k->x.step->held;
    Dim rest = loop_extent(k->x.ix, k->x.step->lane) - h->rest;
    return rows_near_elements(rest, h->cluster ? h->cluster : 1, (Dim)k->block.threads * h->run);
}
static void copy_rest(Kernel *k) {
    Emit *e = k->e;
    Indices *x = k->x.ix;
    const HeldRow *h = &k->x.step->held;
    Dim n = loop_extent(x, k->x.step->lane);
    assert(h->cluster || h->group == k->block.threads); /* no other row is in the block's memory */
    for (uint32_t i = 0; i < h->nnear; i++)
        k->rest.near[i] = threads_share(k, near_elements(k) * dtype_bytes(h->near[i].dtype));
    V first = em_bin(e, "llvm.add", em_i64(e, h->rest / h->run), member_number(k));
    For f = em_for(e, first, em_i64(e, n / h->run), em_i64(e, h->group), 0, NULL);
    kernel_enter(k);
    kernel_bind(k, h->last, em_arg(&f.scope, 0));
    Ix at = ix_scale(x, ix_atom(x, h->last), h->run);
    V slot = near_first(k, em_arg(&f.scope, 0));
    for (uint32_t i = 0; i < h->nnear; i++) {
        const ArrayPlace *a = &h->near[i];
        MlirType t = em_memory_type(e, a->dtype);
        Ix from = row_at(x, k->x.step, a->address, at);
        copy_run(k, em_gep(e, k->rest.near[i], slot, t), em_gep(e, kernel_buffer(k, a->buf), kernel_index(k, from), t),
                 h->run * dtype_bytes(a->dtype), address_align(k->x.plan, a->buf, a->dtype, from));
    }
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
    threads_intrinsic(e, "llvm.nvvm.cp.async.commit.group", no_type, 0, NULL);
}
static void wait_for_rest(Kernel *k) {
    V none = em_int(k->e, k->e->i32, 0);
    if (k->x.step->held.nnear && !k->rest.waited)
        threads_intrinsic(k->e, "llvm.nvvm.cp.async.wait.group", no_type, 1, &none);
    k->rest.waited = true;
}
/* An element beyond what is in registers: its index; of those in shared memory that the thread does at once the
   first, and how far it is behind that. */
typedef struct {
    Ix at;
    V first;
    Dim offset;
} Near;
static V load(Kernel *k, const Buf *b, Dtype d, Ix address) {
    Emit *e = k->e;
    Indices *x = k->x.ix;
    const Near *near = k->elsewhere->user;
    const HeldRow *h = &k->x.step->held;
    for (uint32_t i = 0; i < h->nnear; i++) {
        const ArrayPlace *a = &h->near[i];
        if (!same_buf(a->buf, b) || row_at(x, k->x.step, a->address, near->at) != address) continue;
        V at = em_bin(e, "llvm.add", near->first, em_i64(e, near->offset));
        uint32_t bytes = dtype_bytes(d), whole = h->run * bytes < DEVICE_ALIGN ? h->run * bytes : DEVICE_ALIGN;
        bool begins = k->in_run && (k->in_run - 1) * bytes % DEVICE_ALIGN == 0;
        MlirType t = em_memory_type(e, d);
        return em_load(e, t, em_gep(e, k->rest.near[i], at, t), begins ? whole : dtype_align(d));
    }
    return (V){NULL};
}
void rows_bind(Kernel *k) {
    const HeldRow *h = &k->x.step->held;
    k->rest.waited = k->block.met = false;
    if (k->block.cluster) cluster_arrive(k);
    if (h->nnear) copy_rest(k);
    kernel_bind(k, h->first, member_number(k));
    if (!last_may_lack(k)) return;
    V end = em_bin(k->e, "llvm.sub", runs_in_row(k), em_i64(k->e, 1));
    kernel_bind(k, h->last, em_bin(k->e, "llvm.intr.umin", last_run(k), end));
}

/* ---- one stage */
typedef struct {
    RowTerms *terms;
    void *user;
    V *acc;
    Pending *all;      /* by store, then by element */
    uint32_t i, of, n; /* the element; stores of one */
    Near *near;        /* NULL: it is in registers */
} Stage;
static void element(Kernel *k, void *user) {
    Stage *g = user;
    k->in_run = 1 + g->i % k->x.step->held.run;
    g->n = kernel_pending(k, g->all + g->i, g->of);
    g->terms(k, g->user, g->acc);
    k->in_run = 0;
}
/* The elements of so many runs from the first one on. */
static void elements(Kernel *k, Stage *g, Atom first, uint32_t runs) {
    const HeldRow *h = &k->x.step->held;
    Indices *x = k->x.ix;
    g->of = runs * h->run;
    g->all = arena_new(k->x.plan->arena, Pending, g->of * (k->x.step->stores.n + 1));
    for (g->i = 0; g->i < g->of; g->i++) {
        Dim place = (Dim)(g->i / h->run) * h->group * h->run + g->i % h->run;
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, first), h->run), ix_dim(x, place));
        const Elsewhere elsewhere = {load, NULL, g->near};
        if (g->near) {
            *g->near = (Near){at, g->near->first, (Dim)(g->i / h->run) * k->block.threads * h->run + g->i % h->run};
            k->elsewhere = &elsewhere;
        }
        kernel_substituted(k, k->x.step->lane, at, element, g);
        k->elsewhere = NULL;
    }
}
static void store_if(Kernel *k, const Stage *g, V condition) {
    if (!g->n) return;
    if (!condition.ptr) {
        kernel_store_all(k, g->all, g->n * g->of);
        return;
    }
    If f = kernel_if(k, condition);
    kernel_store_all(k, g->all, g->n * g->of);
    kernel_if_end(k, &f);
}
/* So many runs in each turn of a loop over what is not in registers, as far as there are whole turns; the end of
   them. */
static Dim turns_of_rest(Kernel *k, Dim from, uint32_t runs, uint32_t n, V *acc, const Stage *stage) {
    Emit *e = k->e;
    const HeldRow *h = &k->x.step->held;
    Dim at_once = (Dim)h->group * h->run * runs, length = loop_extent(k->x.ix, k->x.step->lane);
    Dim end = runs > 1 ? from + (length - from) / at_once * at_once : length;
    if (end == from) return end;
    V next[MAX_HELD], first = em_bin(e, "llvm.add", em_i64(e, from / h->run), member_number(k));
    For f = em_for(e, first, em_i64(e, end / h->run), em_i64(e, (int64_t)h->group * runs), n, acc);
    kernel_enter(k);
    kernel_bind(k, h->last, em_arg(&f.scope, 0));
    Near near = {.first = near_first(k, em_arg(&f.scope, 0))};
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    Stage part = {.terms = stage->terms, .user = stage->user, .acc = next, .near = &near};
    elements(k, &part, h->last, runs);
    store_if(k, &part, k->block.exists);
    kernel_leave(k);
    em_for_end(e, &f, next, acc);
    return end;
}
static void rest_of_row(Kernel *k, uint32_t n, V *acc, const Stage *stage) {
    wait_for_rest(k);
    uint32_t runs = k->x.step->held.nnear ? HELD_TURNS : AGAIN_TURNS;
    Dim end = turns_of_rest(k, k->x.step->held.rest, runs, n, acc, stage);
    turns_of_rest(k, end, 1, n, acc, stage);
}
void rows_held(Kernel *k, uint32_t n, V *acc, RowTerms *terms, void *user) {
    const HeldRow *h = &k->x.step->held;
    bool may_lack = last_may_lack(k);
    Stage all = {.terms = terms, .user = user, .acc = acc}, last = all;
    V exists = k->block.exists, has = exists;
    k->rows = false;
    elements(k, &all, h->first, h->turns - may_lack);
    if (may_lack) {
        V tail = k->tail;
        k->tail = em_cmpi(k->e, "ult", last_run(k), runs_in_row(k));
        has = exists.ptr ? em_bin(k->e, "llvm.and", exists, k->tail) : k->tail;
        elements(k, &last, h->last, 1);
        k->tail = tail;
    }
    store_if(k, &all, exists);
    if (may_lack) store_if(k, &last, has);
    if (h->rest) rest_of_row(k, n, acc, &all);
}
