#include "machine.h"
#include "../cost.h"
#include "../plan/report.h"
#include "../../options.h"
#include "part.h"
#include "device.h"
#include "../kernels/point.h"
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

/* ---- scalars */
static Kernel *scalar_kernel(Host *h) {
    if (!h->scalar) h->scalar = kernel_new(h->plan, h->e, &h->frame, NULL);
    kernel_forget(h->scalar);
    return h->scalar;
}
/* A virtual value of a device is read where it was stored: what it is computed from may be gone. */
static V read_scalar(Host *h, Val v) {
    const Info *info = plan_info(h->plan, v);
    bool stored = info->class == VAL_VIRTUAL && info->buf;
    if (!stored) return reg_v(eval_value(&scalar_kernel(h)->x, v, NULL));
    return frame_load(&h->frame, val_array(h->plan->cx, v)->dtype, frame_buffer(&h->frame, info->buf));
}
V host_scalar(Host *h, Val v) {
    if (!h->plan->target->device || plan_register(h->plan, v)) return reg_v(eval_value(&scalar_kernel(h)->x, v, NULL));
    V r = frame_kept(&h->frame, v);
    if (r.ptr) return r;
    r = read_scalar(h, v);
    frame_keep(&h->frame, v, r);
    return r;
}
void host_store(Host *h, Val v, V pointer) {
    Dtype d = val_array(h->plan->cx, v)->dtype;
    if (h->plan->target->device) {
        device_store(h, pointer, d, host_scalar(h, v));
        return;
    }
    em_store(h->e, em_to_memory(h->e, d, host_scalar(h, v)), pointer, dtype_bytes(d));
}
V host_bytes(Host *h, Val v) { return frame_dim(&h->frame, plan_bytes(h->plan, v)); }
enum { COPIED_HERE = 1024 }; /* bytes, by instructions; more by a call */
void host_copy(Host *h, V to, V from, V bytes) {
    V o[3] = {to, from, bytes};
    int64_t few;
    if (h->plan->target->device)
        device_copy(h, to, from, bytes);
    else if (em_known(bytes, &few) && few < COPIED_HERE)
        host_copy_words(h, to, from, bytes);
    else
        em_call(h->e, "jaxcc_rt_copy", no_type, 3, o);
}
void host_copy_words(Host *h, V to, V from, V bytes) {
    V o[3] = {to, from, bytes};
    Attr a = {"isVolatile", mlirIntegerAttrGet(h->e->i1, 0)};
    em_op(h->e, "llvm.intr.memcpy", &(Op){0, NULL, 3, o, 1, &a, 0, NULL});
}
void host_load(Host *h, Val v, Buf *from) {
    Dtype d = val_array(h->plan->cx, v)->dtype;
    frame_set_scalar(&h->frame, v, frame_load(&h->frame, d, frame_buffer(&h->frame, from)));
}
static void scalar_step(Host *h, Step *s) {
    for (uint32_t i = 0; i < s->e->out.n; i++) {
        Val v = s->e->out.at[i];
        frame_set_scalar(&h->frame, v, reg_v(eval_equation(&scalar_kernel(h)->x, s->e, i)));
    }
}

/* ---- C code of the runtime */
/* jaxcc_rt_<name>(call, arrays, sizes): operands, results, and `text` if the equation has one */
static void runtime_step(Host *h, Step *s) {
    Emit *e = h->e;
    const Eqn *q = s->e;
    Dims sizes = param_dims(q, K_sizes);
    uint32_t n = q->in.n + q->out.n;
    const Param *text = param_find(q, K_text);
    if (text) n++;
    V area = host_context(h, n + sizes.n + 1), second = em_gep(e, area, em_i64(e, n), e->i64);
    for (uint32_t i = 0; i < q->in.n + q->out.n; i++)
        em_store(e, frame_buffer(&h->frame, s->arrays[i]), em_gep(e, area, em_i64(e, i), e->i64), 8);
    if (text) {
        V bytes = em_address(e, em_text(e, str_unquoted(e->arena, text->value.s)));
        em_store(e, bytes, em_gep(e, area, em_i64(e, n - 1), e->i64), 8);
    }
    for (uint32_t i = 0; i < sizes.n; i++)
        em_store(e, frame_dim(&h->frame, sizes.at[i]), em_gep(e, second, em_i64(e, i), e->i64), 8);
    Str name = str_format(e->arena, "jaxcc_rt_%.*s", SF(param_word(q, K_name)));
    V args[3] = {h->frame.heap, area, second};
    if (h->plan->target->device)
        device_runtime(h, s, name, area, second);
    else
        em_call(e, name.at, no_type, 3, args);
    for (uint32_t i = 0; i < q->out.n; i++)
        if (plan_register(h->plan, q->out.at[i])) host_load(h, q->out.at[i], s->arrays[q->in.n + i]);
}

/* ---- a program for several devices, each of which runs it with its own arguments (runtime/comm.c,
   runtime/cuda_spmd.c) */
typedef struct {
    V *at;
    uint32_t n;
} Words;
static void put(Words *to, V v) { to->at[to->n++] = v; }
/* What devices with memory of their own get of the operands: bytes of each part; the extents of the mesh; for each
   operand and each axis of the mesh by how many bytes the parts along it follow each other, 0: all get the same. */
static void put_parts(Host *h, Words *to, const Eqn *q, const Jaxpr *j) {
    Emit *e = h->e;
    Dims mesh = param_dims(q, K_sizes);
    for (uint32_t i = 0; i < q->in.n; i++) put(to, host_bytes(h, j->in.at[i]));
    put(to, em_i64(e, mesh.n));
    for (uint32_t k = 0; k < mesh.n; k++) put(to, em_i64(e, mesh.at[k]));
    for (uint32_t i = 0; i < q->in.n; i++) {
        const ArrayType *t = val_array(e->cx, q->in.at[i]);
        bool cut = t->rank > val_array(e->cx, j->in.at[i])->rank;
        V bytes = host_bytes(h, j->in.at[i]), *step = to->at + to->n;
        int64_t parts = 1;
        for (uint32_t k = mesh.n; k-- > 0;) {
            bool shared = cut && t->dims[k] > 1;
            step[k] = shared ? em_bin(e, "llvm.mul", bytes, em_i64(e, parts)) : em_i64(e, 0);
            if (shared) parts *= t->dims[k];
        }
        to->n += mesh.n;
    }
}
static uint32_t parts_words(const Eqn *q) {
    uint32_t axes = param_dims(q, K_sizes).n;
    return q->in.n + 1 + axes + q->in.n * axes;
}
static void spmd_step(Host *h, Step *s) {
    Emit *e = h->e;
    const Eqn *q = s->e;
    const Jaxpr *j = param_jaxpr(q, K_call_jaxpr);
    Signature sig = signature_within(e->cx, h->plan->callees->symbols, j);
    Str name = str_format(e->arena, "%s.device_%u", h->plan->callees->name, e->nkernels++);
    Written written = host_write(s->device, e, j, &sig, name);
    Str run = entry_run(e, &written, true);
    s->symbol = name;
    if (e->cx->report) report_plan(e->cx->report, s->device, name);
    bool on_device = h->plan->target->device;
    uint32_t n = q->in.n + q->out.n, nsizes = 5 + sig.dims.n + q->out.n + (on_device ? parts_words(q) : 0);
    V area = host_context(h, n + nsizes), second = em_gep(e, area, em_i64(e, n), e->i64);
    Words sizes = {arena_new(e->arena, V, nsizes), 0};
    put(&sizes, em_i64(e, param_int(q, K_axis_size, 1)));
    put(&sizes, em_i64(e, q->in.n));
    put(&sizes, em_i64(e, q->out.n));
    put(&sizes, frame_bytes(&h->frame, written.workspace));
    put(&sizes, em_i64(e, sig.dims.n));
    for (uint32_t i = 0; i < sig.dims.n; i++) put(&sizes, frame_dim(&h->frame, sig.dims.at[i]));
    for (uint32_t i = 0; i < q->out.n; i++) put(&sizes, host_bytes(h, j->out.at[i]));
    if (on_device) put_parts(h, &sizes, q, j);
    for (uint32_t i = 0; i < n; i++)
        em_store(e, frame_buffer(&h->frame, s->arrays[i]), em_gep(e, area, em_i64(e, i), e->i64), 8);
    for (uint32_t i = 0; i < nsizes; i++) em_store(e, sizes.at[i], em_gep(e, second, em_i64(e, i), e->i64), 8);
    V args[4] = {h->frame.heap, area, second, em_address(e, run)};
    em_call(e, on_device ? "jaxcc_rt_cuda_spmd" : "jaxcc_rt_spmd", no_type, 4, args);
}

/* The memory for captures of kernels: one area for all, since one kernel runs at a time; replaced if it is too
   small. */
V host_context(Host *h, uint32_t n) {
    Emit *e = h->e;
    if (n <= h->room) return h->context;
    MlirBlock was = e->block;
    e->block = h->frame.entry;
    h->room = n <= CONTEXT_WORDS ? CONTEXT_WORDS : 2 * n;
    h->context = em_alloca(e, 8 * (int64_t)h->room, 8);
    e->block = was;
    return h->context;
}
static bool empty(const Step *s) {
    for (uint32_t i = 0; i < s->domain.n; i++)
        if (s->domain.at[i] == 0 && !s->reduced[i]) return true;
    return false;
}
static void host_step(Host *h, const Body *b, Step *s) {
    switch (s->kind) {
    case STEP_SCALAR: scalar_step(h, s); break;
    case STEP_RUNTIME:
        if (!device_number(h, s->e)) runtime_step(h, s);
        break;
    case STEP_SPMD: spmd_step(h, s); break;
    case STEP_CALL: host_call(h, b, s); break;
    case STEP_COND:
    case STEP_WHILE:
    case STEP_SCAN: host_control(h, s); break;
    default:
        if (!s->stores.n || empty(s)) break;
        h->e->target->machine->launch(h, s);
        if (s->kind == STEP_SCATTER && plan_register(h->plan, s->e->out.at[0]))
            host_load(h, s->e->out.at[0], s->stores.at[0].buf);
    }
}
/* ---- memory of computed sizes */
static void take_output(Host *h, const Alloc *a) {
    Emit *e = h->e;
    const ArrayType *t = val_array(h->plan->cx, a->like);
    MlirBlock was = e->block;
    e->block = h->frame.entry;
    V dims = em_alloca(e, 8 * (int64_t)(t->rank + 1), 8);
    e->block = was;
    for (uint32_t d = 0; d < t->rank; d++)
        em_store(e, frame_dim(&h->frame, t->dims[d]), em_gep(e, dims, em_i64(e, d), e->i64), 8);
    V args[5] = {h->frame.heap, argument_out(e, &h->frame.arguments, a->buf->k), em_int(e, e->i32, t->rank), dims,
                 frame_bytes(&h->frame, plan_bytes(h->plan, a->like))};
    const char *how = h->plan->target->device ? "jaxcc_rt_cuda_array" : "jaxcc_rt_heap_array";
    frame_set_out(&h->frame, a->buf->k, em_call(e, how, e->ptr, 5, args));
}
/* A loop whose length is computed comes from a while. */
static V take_rows(Host *h, const Alloc *a, V bytes) {
    Ctx *cx = h->plan->cx;
    const ArrayType *t = val_array(cx, a->rows);
    LineCol at = diag_where(cx->diags, a->loop->span);
    const char *loop = dim_has_bound(cx->types, t->dims[0]) ? "while" : prim_name[a->loop->prim];
    const char *rows = cx->options->levels > 1 ? "rows" : "turns"; /* segments have one for many turns */
    Str text = str_format(h->e->arena, "%s:%u:%u: %s: no memory for {0} %s of {1} bytes%.*s",
                          diag_path(cx->diags, a->loop->span.file), at.line, at.col, loop, rows,
                          SF(options_less_memory(h->e->arena, cx->options)));
    Dim row = dtype_bytes(t->dtype);
    for (uint32_t d = 1; d < t->rank; d++) row = dim_mul(cx->types, row, t->dims[d]);
    V args[5] = {h->frame.heap, bytes, frame_dim(&h->frame, t->dims[0]), frame_bytes(&h->frame, row),
                 em_address(h->e, em_text(h->e, text))};
    return em_call(h->e, h->plan->target->device ? "jaxcc_rt_cuda_rows" : "jaxcc_rt_heap_rows", h->e->ptr, 5, args);
}
static void take(Host *h, const Alloc *a) {
    if (a->buf->kind == BUF_OUT) {
        take_output(h, a);
        return;
    }
    V bytes = frame_bytes(&h->frame, a->buf->bytes);
    V memory = a->loop ? take_rows(h, a, bytes)
                       : em_call(h->e, h->plan->target->device ? "jaxcc_rt_cuda_get" : "jaxcc_rt_heap_get", h->e->ptr,
                                 2, (V[]){h->frame.heap, bytes});
    frame_set_slot(&h->frame, a->buf, memory);
}
void host_put(Host *h, V memory) {
    V args[2] = {h->frame.heap, memory};
    em_call(h->e, h->plan->target->device ? "jaxcc_rt_cuda_put" : "jaxcc_rt_heap_put", no_type, 2, args);
}
/* A computed size must not be negative. */
static void check_size(Host *h, Val v) {
    const ArrayType *t = val_array(h->plan->cx, v);
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!dim_has_bound(h->plan->cx->types, t->dims[d])) continue;
        Str text = ctx_type_text(h->plan->cx, val_type(h->plan->cx, v));
        V args[3] = {h->frame.heap, em_address(h->e, em_text(h->e, text)), frame_dim(&h->frame, t->dims[d])};
        em_call(h->e, "jaxcc_rt_heap_dim", no_type, 3, args);
    }
}
void host_body(Host *h, Body *b) {
    uint32_t next = 0;
    Part part = {.open = false};
    for (uint32_t i = 0; i <= b->steps.n; i++) {
        for (; next < b->allocs.n && b->allocs.at[next].step == i; next++) {
            part_next(h, b, &part);
            if (b->allocs.at[next].like) check_size(h, b->allocs.at[next].like);
            take(h, &b->allocs.at[next]);
        }
        if (i == b->steps.n) break;
        part_next(h, b, &part);
        host_step(h, b, b->steps.at[i]);
    }
    each(Alloc, a, b->allocs) {
        part_next(h, b, &part);
        if (a->buf->kind == BUF_HEAP && !a->kept) host_put(h, frame_slot(&h->frame, a->buf));
    }
    part_end(h, &part);
}

/* ---- the schedule as a function */
void host_enter(Host *h, Scope *scope) {
    Frame *f = &h->frame;
    const Signature *s = h->signature;
    uint32_t n = arguments_count(s, h->cut);
    *f = (Frame){.plan = h->plan, .e = h->e, .entry = scope->block, .schedule = f->schedule};
    f->keys.arena = h->e->arena;
    f->symbols = s->dims;
    f->arguments = arguments_open(h->e, s, h->cut, scope, 0);
    f->workspace = em_arg(scope, n);
    f->heap = em_arg(scope, n + 1);
    frame_enter(f);
}
static void load_scalar(Host *h, Val v) {
    plan_info(h->plan, v)->class = VAL_SCALAR;
    if (!h->cut) frame_set_scalar(&h->frame, v, frame_scalar(&h->frame, v));
}
/* Loads scalar inputs and constants into registers, unless there are too many. */
static void load_scalars(Host *h, const Jaxpr *j) {
    each(Val, v, h->signature->in)
        if (plan_info(h->plan, *v)->class == VAL_SCALAR) load_scalar(h, *v);
    each(Val, c, j->consts)
        if (plan_register(h->plan, *c) && plan_info(h->plan, *c)->buf->kind == BUF_CONST) load_scalar(h, *c);
}
static void store_results(Host *h, const Jaxpr *j) {
    Part part = {.open = false};
    for (uint32_t i = 0; i < j->out.n; i++) {
        if (h->plan->top->out_slots[i]) continue;
        part_next(h, h->plan->top, &part);
        host_store(h, j->out.at[i], argument_out(h->e, &h->frame.arguments, i));
    }
    part_end(h, &part);
}
Written host_write(Plan *p, Emit *e, const Jaxpr *j, const Signature *s, Str name) {
    Schedule all = {.slots = arena_new(e->arena, Held, p->bufs.n + 1),
                    .outs = arena_new(e->arena, Held, s->out.n + 1),
                    .scalars = arena_new(e->arena, Held, p->cx->nvals + 1)};
    Host h = {.plan = p, .e = e, .signature = s, .name = name, .cut = part_cuts(p, s)};
    uint32_t n = arguments_count(s, h.cut);
    MlirType *t = arena_new(e->arena, MlirType, n + 2);
    arguments_types(e, s, h.cut, t);
    t[n] = t[n + 1] = e->ptr;
    Function fn = em_function(e, name, no_type, n + 2, t, false);
    h.frame.schedule = &all;
    host_enter(&h, &fn.scope);
    load_scalars(&h, j);
    for (uint32_t i = 0; i < j->out.n; i++)
        if (p->over[i]) frame_set_slot(&h.frame, p->over[i], argument_out(e, &h.frame.arguments, i));
    host_body(&h, p->top);
    store_results(&h, j);
    MlirOperation function = em_function_end(e, &fn, (V){NULL});
    uint32_t homes = frame_homes(&h.frame);
    return (Written){.name = name,
                     .function = function,
                     .signature = s,
                     .in_memory = h.cut,
                     .calls = h.calls,
                     .homes = homes,
                     .workspace = p->target->device ? p->workspace : dim_add(p->cx->types, p->workspace, homes)};
}
Written host_program(Plan *p, Emit *e, const Program *program, const Signature *s) {
    return host_write(p, e, program->j, s, str_format(e->arena, "%s.body%s", s->name, e->level));
}
