#include "frame.h"
#include <assert.h>

/* ---- captured values */
static Capture *capture(Frame *f, int kind, uint32_t number, Dim symbol, MlirType memory, uint32_t align) {
    struct {
        uint64_t kind, number;
        Dim symbol;
    } key = {(uint64_t)kind, number, symbol};
    _Static_assert(sizeof key == 3 * sizeof(uint64_t), "bytes of a key have no padding");
    bool fresh;
    uint32_t id = intern(&f->keys, &key, sizeof key, &fresh);
    if (!fresh) return &f->captures.at[id];
    MlirBlock was = f->e->block;
    f->e->block = f->entry;
    Capture c = {.kind = kind, .number = number, .symbol = symbol};
    assert(id == f->captures.n);
    V slot = em_gep(f->e, f->context, em_i64(f->e, id), f->e->i64);
    c.inside = em_load(f->e, memory, slot, align);
    f->e->block = was;
    push(f->e->arena, &f->captures, c);
    return &f->captures.at[id];
}

/* Scratch of one row, on the stack of the function that uses it. */
static V row_scratch(Frame *f, Buf *b) {
    uint64_t key[3] = {CAPTURE_ROW, b->number, 0};
    bool fresh;
    uint32_t id = intern(&f->keys, key, sizeof key, &fresh);
    assert(id <= f->captures.n);
    if (!fresh) return f->captures.at[id].inside;
    MlirBlock was = f->e->block;
    f->e->block = f->entry;
    Capture c = {.kind = CAPTURE_ROW, .number = b->number, .inside = em_alloca(f->e, b->bytes, 64)};
    f->e->block = was;
    push(f->e->arena, &f->captures, c);
    return c.inside;
}

/* ---- values of the host */

/* Moves the operations of a separate block after the one that computes `v`. */
static void move_behind(V v, MlirBlock from) {
    MlirOperation at = {NULL}, op, next;
    MlirBlock to = {NULL};
    if (mlirValueIsAOpResult(v))
        at = mlirOpResultGetOwner(v);
    else
        to = mlirBlockArgumentGetOwner(v);
    for (op = mlirBlockGetFirstOperation(from); op.ptr; op = next) {
        next = mlirOperationGetNextInBlock(op);
        if (at.ptr)
            mlirOperationMoveAfter(op, at);
        else {
            mlirOperationRemoveFromParent(op);
            mlirBlockInsertOwnedOperation(to, 0, op);
        }
        at = op;
    }
    mlirBlockDestroy(from);
}
static V home_of(Frame *f, uint32_t function, uint32_t home) {
    V workspace = f->schedule->workspaces.at[function];
    return em_gep(f->e, workspace, em_i64(f->e, -(int64_t)home), f->e->i64);
}
static void store_at(Frame *f, V p, Dtype d, V v) {
    em_store(f->e, d ? em_to_memory(f->e, d, v) : v, p, d ? dtype_bytes(d) : 8);
}
/* `d`: the type of a scalar; DT_none: a pointer. The function that computed it stores it to memory once another
   function needs it. */
static V held(Frame *f, Held *h, Dtype d) {
    Emit *e = f->e;
    MlirType t = d ? em_memory_type(e, d) : e->ptr;
    uint32_t bytes = d ? dtype_bytes(d) : 8;
    if (h->function == f->function) return h->v;
    if (!h->home) {
        MlirBlock was = e->block;
        e->block = mlirBlockCreate(0, NULL, NULL);
        h->home = ++f->schedule->homes;
        store_at(f, home_of(f, h->function, h->home), d, h->v);
        move_behind(h->v, e->block);
        e->block = was;
    }
    V m = em_load(e, t, home_of(f, f->function, h->home), bytes);
    return d ? em_to_register(e, d, m) : m;
}
enum { NO_FUNCTION = UINT32_MAX };
uint32_t frame_words(Frame *f, uint32_t n) { return f->schedule->homes += n; }
uint32_t frame_call_words(Frame *f, uint32_t n) {
    Schedule *all = f->schedule;
    if (n > all->room) {
        all->room = 2 * n;
        all->call = frame_words(f, all->room);
    }
    return all->call;
}
V frame_word(Frame *f, uint32_t number) { return home_of(f, f->function, number); }
void frame_store(Frame *f, uint32_t word, Dtype d, V v) { store_at(f, frame_word(f, word), d, v); }
void frame_slot_at(Frame *f, const Buf *b, uint32_t word) {
    f->schedule->slots[b->number] = (Held){.function = NO_FUNCTION, .home = word};
}
void frame_scalar_at(Frame *f, Val v, uint32_t word) {
    f->schedule->scalars[v] = (Held){.function = NO_FUNCTION, .home = word};
}
static void hold(Frame *f, Held *h, V v) {
    assert(h);
    *h = (Held){.v = v, .function = f->function};
}

void frame_enter(Frame *f) {
    assert(f->schedule);
    f->function = f->schedule->workspaces.n;
    push(f->e->arena, &f->schedule->workspaces, f->workspace);
}
void frame_set_slot(Frame *f, const Buf *b, V v) { hold(f, &f->schedule->slots[b->number], v); }
void frame_set_out(Frame *f, uint32_t k, V v) { hold(f, &f->schedule->outs[k], v); }
void frame_set_scalar(Frame *f, Val v, V r) { hold(f, &f->schedule->scalars[v], r); }
V frame_slot(Frame *f, const Buf *b) {
    assert(f->schedule);
    return held(f, &f->schedule->slots[b->number], DT_none);
}
void frame_keep(Frame *f, Val v, V r) {
    frame_set_scalar(f, v, r);
    push(f->e->arena, &f->schedule->read, v);
}
V frame_kept(Frame *f, Val v) {
    Held *h = &f->schedule->scalars[v];
    return h->v.ptr ? held(f, h, val_array(f->plan->cx, v)->dtype) : h->v;
}
uint32_t frame_nkept(const Frame *f) { return f->schedule->read.n; }
void frame_forget(Frame *f, uint32_t n) {
    while (f->schedule->read.n > n) f->schedule->scalars[f->schedule->read.at[--f->schedule->read.n]] = (Held){0};
}
uint32_t frame_homes(const Frame *f) { return (8 * f->schedule->homes + 63) / 64 * 64; }

bool frame_waits(const Frame *f) { return f->plan->target->device && !f->parent && f->schedule; }
V frame_load(Frame *f, Dtype d, V pointer) {
    Emit *e = f->e;
    if (frame_waits(f)) {
        MlirBlock was = e->block;
        e->block = f->entry;
        V to = em_alloca(e, 16, 16);
        e->block = was;
        V args[4] = {f->heap, to, pointer, em_i64(e, dtype_bytes(d))};
        em_call(e, "jaxcc_rt_cuda_read", no_type, 4, args);
        pointer = to;
    }
    return em_to_register(e, d, em_load(e, em_memory_type(e, d), pointer, dtype_bytes(d)));
}
/* A constant in the device's memory. */
static V device_constant(Frame *f, Val v) {
    Emit *e = f->e;
    V args[2] = {f->heap, em_i64(e, em_constant_number(e, v))};
    return em_call(e, "jaxcc_rt_cuda_constant", e->ptr, 2, args);
}
V frame_buffer(Frame *f, Buf *b) {
    bool device = f->plan->target->device;
    if (b->kind == BUF_CONST && !device) return em_constant(f->e, b->v);
    if (b->kind == BUF_ROW) return row_scratch(f, b);
    if (f->parent) {
        Capture *c = capture(f, CAPTURE_BUF, b->number, 0, f->e->ptr, 8);
        return c->inside;
    }
    switch (b->kind) {
    case BUF_CONST: return device_constant(f, b->v);
    case BUF_IN: return argument_in(f->e, &f->arguments, b->k);
    case BUF_OUT: {
        assert(f->schedule);
        Held *own = &f->schedule->outs[b->k];
        return own->v.ptr ? held(f, own, DT_none) : argument_out(f->e, &f->arguments, b->k);
    }
    case BUF_WORK: {
        V start = device ? em_load(f->e, f->e->ptr, f->workspace, 8) : f->workspace;
        return em_gep(f->e, start, frame_dim(f, b->offset), f->e->i8);
    }
    default: assert(b->kind == BUF_SLOT || b->kind == BUF_HEAP); return frame_slot(f, b);
    }
}
/* In NAME itself: an input that may be NULL, which a check refuses; then 0. */
static V unchecked_scalar(Frame *f, V p, Dtype d) {
    Emit *e = f->e;
    MlirBlock was = e->block;
    e->block = f->entry;
    V none = em_alloca(e, 8, 8);
    em_store(e, em_i64(e, 0), none, 8);
    e->block = was;
    V null = em_cmpi(e, "eq", p, em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL));
    return em_load(e, em_memory_type(e, d), em_select(e, null, none, p), dtype_bytes(d));
}
V frame_scalar(Frame *f, Val v) {
    Emit *e = f->e;
    Dtype d = val_array(f->plan->cx, v)->dtype;
    Held *own = !f->parent && f->schedule ? &f->schedule->scalars[v] : NULL;
    if (own && (own->v.ptr || own->home)) return held(f, own, d);
    if (!f->parent) { /* computed by a kernel, or an argument */
        Buf *b = plan_info(f->plan, v)->buf;
        bool constant = b->kind == BUF_CONST;
        V p = constant ? em_constant(e, b->v) : frame_buffer(f, b);
        if (!f->schedule) return unchecked_scalar(f, p, d);
        if (constant) return em_to_register(e, d, em_load(e, em_memory_type(e, d), p, dtype_bytes(d)));
        V r = frame_load(f, d, p);
        if (frame_waits(f)) frame_keep(f, v, r);
        return r;
    }
    Capture *c = capture(f, CAPTURE_SCALAR, v, 0, em_memory_type(e, d), dtype_bytes(d));
    MlirBlock was = e->block;
    e->block = f->entry;
    V r = em_to_register(e, d, c->inside);
    e->block = was;
    return r;
}

static V symbol(Frame *f, Dim d) {
    if (f->parent) return capture(f, CAPTURE_SYMBOL, 0, d, f->e->i64, 8)->inside;
    for (uint32_t i = 0; i < f->symbols.n; i++)
        if (f->symbols.at[i] == d) return argument(f->e, &f->arguments, i);
    assert(!"every symbol is in the signature");
    return (V){NULL};
}
/* a floordiv b and a mod b as in Python; b is not 0 once the entry's checks have passed, and 1 is used before. */
static V floor_op(Emit *e, V a, V b, bool mod) {
    V zero = em_i64(e, 0);
    b = em_select(e, em_cmpi(e, "eq", b, zero), em_i64(e, 1), b);
    V r = em_bin(e, "llvm.srem", a, b);
    V other = em_cmpi(e, "slt", em_bin(e, "llvm.xor", r, b), zero);
    V fix = em_bin(e, "llvm.and", em_cmpi(e, "ne", r, zero), other);
    if (mod) return em_select(e, fix, em_bin(e, "llvm.add", r, b), r);
    V q = em_bin(e, "llvm.sdiv", a, b);
    return em_select(e, fix, em_bin(e, "llvm.sub", q, em_i64(e, 1)), q);
}
static V sum(Frame *f, const DimExpr *x) {
    Emit *e = f->e;
    V total = {NULL};
    for (uint32_t i = 0; i < x->nterms; i++) {
        const DimTerm *t = &x->terms[i];
        V p = {NULL};
        for (uint32_t k = 0; k < t->natoms; k++) {
            V a = frame_dim(f, t->atoms[k]);
            p = p.ptr ? em_bin(e, "llvm.mul", p, a) : a;
        }
        if (!p.ptr)
            p = em_i64(e, t->coef);
        else if (t->coef != 1)
            p = em_bin(e, "llvm.mul", p, em_i64(e, t->coef));
        total = total.ptr ? em_bin(e, "llvm.add", total, p) : p;
    }
    return total;
}
static V bound(Frame *f, Val v) {
    const DtypeInfo *t = &dtype_info[val_array(f->plan->cx, v)->dtype];
    V s = frame_scalar(f, v);
    if (t->bits == 64) return s;
    return em_cast(f->e, t->kind == DK_SINT ? "llvm.sext" : "llvm.zext", f->e->i64, s);
}
V frame_dim(Frame *f, Dim d) {
    Emit *e = f->e;
    if (dim_is_const(d)) return em_i64(e, d);
    const DimExpr *x = dim_at(f->plan->cx->types, d);
    if (x->kind == DIM_SUM) return sum(f, x);
    if (x->kind == DIM_SYMBOL) return symbol(f, d);
    if (x->kind == DIM_BOUND) return bound(f, x->val);
    V a = frame_dim(f, x->a), b = frame_dim(f, x->b);
    switch (x->kind) {
    case DIM_FLOORDIV: return floor_op(e, a, b, false);
    case DIM_MOD: return floor_op(e, a, b, true);
    case DIM_MAX: return em_bin(e, "llvm.intr.smax", a, b);
    default: assert(x->kind == DIM_MIN); return em_bin(e, "llvm.intr.smin", a, b);
    }
}

/* An estimate of d in floating point, where nothing wraps; a bound for remainders. */
static V estimate(Frame *f, Dim d) {
    Emit *e = f->e;
    if (dim_is_const(d)) return em_float(e, e->f64, (double)d);
    const DimExpr *x = dim_at(f->plan->cx->types, d);
    if (x->kind == DIM_SYMBOL || x->kind == DIM_BOUND) return em_cast(e, "llvm.sitofp", e->f64, frame_dim(f, d));
    if (x->kind == DIM_SUM) {
        V total = em_float(e, e->f64, 0);
        for (uint32_t i = 0; i < x->nterms; i++) {
            V p = em_float(e, e->f64, (double)x->terms[i].coef);
            for (uint32_t k = 0; k < x->terms[i].natoms; k++)
                p = em_bin(e, "llvm.fmul", p, estimate(f, x->terms[i].atoms[k]));
            total = em_bin(e, "llvm.fadd", total, p);
        }
        return total;
    }
    V a = estimate(f, x->a), b = estimate(f, x->b), zero = em_float(e, e->f64, 0);
    switch (x->kind) {
    case DIM_FLOORDIV:
        b = em_select(e, em_cmpf(e, "oeq", b, zero), em_float(e, e->f64, 1), b);
        return em_bin(e, "llvm.fdiv", a, b);
    case DIM_MOD: return b;
    default: return em_bin(e, x->kind == DIM_MAX ? "llvm.intr.maxnum" : "llvm.intr.minnum", a, b);
    }
}
V frame_bytes(Frame *f, Dim d) {
    Emit *e = f->e;
    V n = frame_dim(f, d);
    if (dim_is_const(d)) return n;
    V large = em_cmpf(e, "oge", estimate(f, d), em_float(e, e->f64, 0x1p63));
    V wrapped = em_bin(e, "llvm.or", large, em_cmpi(e, "slt", n, em_i64(e, 0)));
    return em_select(e, wrapped, em_i64(e, INT64_MAX), n);
}

/* Bytes of the capture's word that are used. */
static uint32_t capture_bytes(const Frame *f, const Capture *c) {
    if (c->kind == CAPTURE_ROW) return 0;
    return c->kind == CAPTURE_SCALAR ? dtype_bytes(val_array(f->plan->cx, c->number)->dtype) : 8;
}
/* The runtime compares what launches on a device are given: there the rest of a word is 0. */
void frame_pass(Frame *inside, V context) {
    Emit *e = inside->e;
    Frame *f = inside->parent;
    for (uint32_t i = 0; i < inside->captures.n; i++) {
        const Capture *c = &inside->captures.at[i];
        bool whole = !f->plan->target->device || capture_bytes(f, c) >= 8;
        if (c->kind == CAPTURE_ROW && whole) continue;
        V slot = em_gep(e, context, em_i64(e, i), e->i64);
        if (!whole) em_store(e, em_i64(e, 0), slot, 8);
        if (c->kind == CAPTURE_ROW) continue;
        if (c->kind == CAPTURE_BUF)
            em_store(e, frame_buffer(f, f->plan->bufs.at[c->number]), slot, 8);
        else if (c->kind == CAPTURE_SYMBOL)
            em_store(e, frame_dim(f, c->symbol), slot, 8);
        else {
            Dtype d = val_array(f->plan->cx, c->number)->dtype;
            em_store(e, em_to_memory(e, d, frame_scalar(f, c->number)), slot, dtype_bytes(d));
        }
    }
}
