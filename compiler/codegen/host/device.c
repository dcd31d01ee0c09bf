#include "device.h"
#include "machine.h"
#include "../../../runtime/cuda.h"
#include "../../options.h"
#include "../cost.h"
#include "../plan/dot.h"
#include "../plan/guard.h"
#include "../kernels/grid.h"
#include "../kernels/threads.h"
#include "../plan/known.h"
#include "../plan/sort.h"
#include "constants.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

static MlirStringRef ref(const char *s) { return mlirStringRefCreateFromCString(s); }
static const char library_name[] = "device.library";
static V stack_words(Frame *f, uint32_t n) {
    MlirBlock was = f->e->block;
    f->e->block = f->entry;
    V words = em_alloca(f->e, 8 * (int64_t)(n + 1), 8);
    f->e->block = was;
    return words;
}
static void store_word(Emit *e, V base, uint32_t i, V v) { em_store(e, v, em_gep(e, base, em_i64(e, i), e->i64), 8); }

/* ---- kernels */
static MlirAttribute named(Emit *e, uint32_t n, const Attr *attrs) {
    MlirNamedAttribute at[4];
    for (uint32_t i = 0; i < n; i++)
        at[i] = mlirNamedAttributeGet(mlirIdentifierGet(e->mlir, ref(attrs[i].name)), attrs[i].value);
    return mlirDictionaryAttrGet(e->mlir, n, at);
}
static MlirAttribute text_attr(Emit *e, Str s) { return mlirStringAttrGet(e->mlir, mlirStringRefCreate(s.at, s.n)); }
/* Words of tensor maps, which come before captured words. */
enum { OPERANDS = 2, MAP_WORDS = 16, MAP_ALIGN = 64, AXIS_WORDS = sizeof(jaxcc_rt_cuda_axis) / 8 };
static uint32_t map_words(const Host *h, const Step *s, KernelRule *rule) {
    bool product = s->kind == STEP_DOT && rule == h->e->target->machine->kernels[STEP_DOT];
    return product && s->dot->device->boxed ? OPERANDS * MAP_WORDS : 0;
}
/* The function becomes a kernel, which gets so many words by value, the first of which may be tensor maps. */
static void make_kernel(Emit *e, MlirOperation fn, uint32_t words, bool maps, const Grid *g) {
    MlirType context = mlirLLVMArrayTypeGet(e->i64, words ? words : 1);
    Attr by_value[2] = {{"llvm.byval", mlirTypeAttrGet(context)},
                        {"llvm.align", mlirIntegerAttrGet(e->i64, maps ? MAP_ALIGN : 8)}};
    MlirAttribute args = named(e, 2, by_value);
    MlirAttribute threads[2] = {text_attr(e, S("nvvm.reqntid")), text_attr(e, str_format(e->arena, "%u", g->threads))};
    MlirAttribute blocks[2] = {text_attr(e, S("nvvm.minctasm")), text_attr(e, str_format(e->arena, "%u", g->blocks))};
    MlirAttribute cluster[2] = {text_attr(e, S("nvvm.cluster_dim")),
                                text_attr(e, str_format(e->arena, "%u", g->cluster))};
    MlirAttribute bounds[3] = {mlirArrayAttrGet(e->mlir, 2, threads)};
    uint32_t n = 1;
    if (g->blocks) bounds[n++] = mlirArrayAttrGet(e->mlir, 2, blocks);
    if (g->cluster) bounds[n++] = mlirArrayAttrGet(e->mlir, 2, cluster);
    MlirAttribute passed = mlirArrayAttrGet(e->mlir, n, bounds);
    mlirOperationSetAttributeByName(fn, ref("CConv"), mlirLLVMCConvAttrGet(e->mlir, MlirLLVMCConvPTX_Kernel));
    mlirOperationSetAttributeByName(fn, ref("linkage"), mlirLLVMLinkageAttrGet(e->mlir, MlirLLVMLinkageExternal));
    mlirOperationSetAttributeByName(fn, ref("arg_attrs"), mlirArrayAttrGet(e->mlir, 1, &args));
    mlirOperationSetAttributeByName(fn, ref("passthrough"), passed);
}
/* What the kernel computes, for messages: the equation whose result it stores first. */
static Str what(Emit *e, const Step *s) {
    const Eqn *q = s->e ? s->e : NULL;
    if (!q) return S("");
    LineCol at = diag_where(e->cx->diags, q->span);
    return str_format(e->arena, "%s at %s:%u:%u", prim_name[q->prim], diag_path(e->cx->diags, q->span.file), at.line,
                      at.col);
}
/* Does what decides choose this branch? The only one is always chosen. */
static V chosen(Emit *e, Frame *f, const Guard *g) {
    if (g->last == 0) return em_int(e, e->i1, 1);
    V m = em_load(e, em_memory_type(e, g->dtype), frame_buffer(f, g->buf), dtype_bytes(g->dtype));
    V index = em_to_register(e, g->dtype, m), branch = em_int(e, mlirValueGetType(index), g->branch);
    bool boolean = g->dtype == DT_bool;
    return em_cmpi(e, boolean ? "eq" : g->branch == 0 ? "sle" : g->branch == g->last ? "sge" : "eq", index, branch);
}
static uint32_t depth(const Guard *g) { return g ? 1 + depth(g->outer) : 0; }
/* What is inside is done if all guards allow it; the outer ones are tested first, as the inner ones may not be
   computed. */
static If *guards_open(Emit *e, Frame *f, const Guard *g) {
    uint32_t n = depth(g);
    If *at = arena_new(e->arena, If, n + 1);
    const Guard **all = arena_new(e->arena, const Guard *, n + 1);
    for (uint32_t i = n; i-- > 0; g = g->outer) all[i] = g;
    for (uint32_t i = 0; i < n; i++) at[i] = em_if(e, chosen(e, f, all[i]));
    return at;
}
static void guards_close(Emit *e, const Guard *g, If *at) {
    for (uint32_t i = depth(g); i-- > 0;) {
        em_else(e, &at[i], 0, NULL);
        em_if_end(e, &at[i], NULL, NULL);
    }
}
/* Its number in the library's table. */
static uint32_t written(Host *h, Step *s, KernelRule *rule, const Grid *g, Frame *f, int64_t *shared) {
    Emit *e = h->e;
    MlirType arg = e->ptr;
    MlirBlock was = e->block;
    em_device(e, true);
    Str name = str_format(e->arena, "kernel_%u", e->nkernels++);
    Function fn = em_function(e, name, no_type, 1, &arg, true);
    *f = (Frame){.plan = h->plan, .e = e, .parent = &h->frame, .entry = fn.scope.block};
    uint32_t maps = map_words(h, s, rule);
    f->context = maps ? em_gep(e, em_arg(&fn.scope, 0), em_i64(e, maps), e->i64) : em_arg(&fn.scope, 0);
    f->keys.arena = e->arena;
    If *guards = guards_open(e, f, h->guard);
    Kernel *k = kernel_new(h->plan, e, f, s);
    if (maps) k->block.maps = em_arg(&fn.scope, 0);
    grid_write(k, g, rule);
    *shared = k->block.shared;
    guards_close(e, h->guard, guards);
    MlirOperation op = em_function_end(e, &fn, (V){NULL});
    make_kernel(e, op, maps + f->captures.n, maps, g);
    uint32_t number = em_shared_function(e, &fn, op);
    em_device(e, false);
    e->block = was;
    if (number == e->launched.n) {
        Launched l = {name, what(e, s), 8 * (int64_t)(maps + f->captures.n), *shared};
        push(e->arena, &e->launched, l);
    }
    assert(number < e->launched.n); /* the only functions that are shared */
    s->symbol = e->launched.at[number].name;
    return number;
}
/* The map of an operand of a product; `axes`: room for them. */
static void pass_map(Host *h, const DeviceDot *d, uint32_t side, V map, V axes) {
    Emit *e = h->e;
    const DotBox *b = &d->side[side].box;
    for (uint32_t i = 0; i < b->rank; i++) {
        store_word(e, axes, AXIS_WORDS * i, frame_dim(&h->frame, b->axis[i].extent));
        store_word(e, axes, AXIS_WORDS * i + 1, frame_dim(&h->frame, b->axis[i].stride));
        store_word(e, axes, AXIS_WORDS * i + 2, em_i64(e, b->axis[i].box));
    }
    V offset = frame_dim(&h->frame, b->offset), bytes = em_i64(e, dtype_bytes(d->as));
    V array = em_gep(e, frame_buffer(&h->frame, d->side[side].at.buf), em_bin(e, "llvm.mul", offset, bytes), e->i8);
    V args[6] = {h->frame.heap, map, array, axes, em_i64(e, b->rank), bytes};
    em_call(e, "jaxcc_rt_cuda_map", no_type, 6, args);
}
static void launch(Host *h, Step *s, KernelRule *rule, const Grid *g) {
    Emit *e = h->e;
    Frame inside;
    int64_t shared;
    uint32_t number = written(h, s, rule, g, &inside, &shared);
    uint32_t maps = map_words(h, s, rule), words = maps + inside.captures.n;
    V context = host_context(h, words + (maps ? BOX_RANK * AXIS_WORDS : 1)), one = em_i64(e, 1);
    V rest = maps ? em_gep(e, context, em_i64(e, maps), e->i64) : context;
    for (uint32_t i = 0; i * MAP_WORDS < maps; i++)
        pass_map(h, s->dot->device, i, em_gep(e, context, em_i64(e, i * MAP_WORDS), e->i64),
                 em_gep(e, context, em_i64(e, words), e->i64));
    frame_pass(&inside, rest);
    V args[8] = {
        h->frame.heap, em_i64(e, number),     context,          frame_dim(&h->frame, grid_blocks(h->plan, g)), one,
        one,           em_i64(e, g->threads), em_i64(e, shared)};
    em_call(e, "jaxcc_rt_cuda_launch", no_type, 8, args);
}
static void claim(Host *h, Step *s) {
    Emit *e = h->e;
    V zero = em_i64(e, 0), bytes = em_i64(e, dtype_bytes(s->claims.as));
    V args[5] = {h->frame.heap, frame_buffer(&h->frame, s->claims.buf), zero, bytes,
                 frame_dim(&h->frame, s->claims.places)};
    em_call(e, "jaxcc_rt_cuda_fill", no_type, 5, args);
    launch(h, s, device_claim, &s->claims.grid);
}
/* Nothing has been left by parts. */
static void clear_parts(Host *h, Step *s) {
    enum { WORD = 8 };
    Emit *e = h->e;
    assert(s->parts);
    V words = frame_dim(&h->frame, dim_floordiv(h->plan->cx->types, s->parts->bytes, WORD));
    V args[5] = {h->frame.heap, frame_buffer(&h->frame, s->parts), em_i64(e, 0), em_i64(e, WORD), words};
    em_call(e, "jaxcc_rt_cuda_fill", no_type, 5, args);
}
/* Merges runs of keys, twice as long each time. */
static void merge(Host *h, Step *s, Sort *so) {
    enum { RUN, FROM, MOST = FROM + 4 };
    Emit *e = h->e;
    V n = frame_dim(&h->frame, so->n), at[MOST], next[MOST];
    MlirType types[MOST];
    const uint32_t arrays = so->alone ? 1 : 2, to = FROM + arrays, all = to + arrays;
    at[RUN] = em_i64(e, so->tile);
    for (uint32_t i = 0; i < arrays; i++) {
        at[FROM + i] = frame_buffer(&h->frame, i ? so->places[0] : so->keys[0]);
        at[to + i] = frame_buffer(&h->frame, i ? so->places[1] : so->keys[1]);
    }
    for (uint32_t i = 0; i < all; i++) types[i] = mlirValueGetType(at[i]);
    Scope before = em_begin(e, all, types), after;
    V go[MOST + 1] = {em_cmpi(e, "slt", em_arg(&before, RUN), n)};
    for (uint32_t i = 0; i < all; i++) go[i + 1] = em_arg(&before, i);
    em_op(e, "scf.condition", &(Op){0, NULL, all + 1, go, 0, NULL, 0, NULL});
    em_end(e, &before);
    after = em_begin(e, all, types);
    frame_set_scalar(&h->frame, so->run, em_arg(&after, RUN));
    for (uint32_t i = 0; i < arrays; i++) {
        frame_set_slot(&h->frame, so->from[i], next[to + i] = em_arg(&after, FROM + i));
        frame_set_slot(&h->frame, so->to[i], next[FROM + i] = em_arg(&after, to + i));
    }
    launch(h, s, device_merge, &so->grid);
    next[RUN] = em_bin(e, "llvm.add", em_arg(&after, RUN), em_arg(&after, RUN));
    em_op(e, "scf.yield", &(Op){0, NULL, all, next, 0, NULL, 0, NULL});
    em_end(e, &after);
    const V *last = em_while(e, all, at, &before, &after) + FROM;
    for (uint32_t i = 0; i < arrays; i++) { /* the buffer of a result is replaced, so it does not tell its length */
        Dim length = dim_mul(h->plan->cx->types, so->rows, so->n), bytes = dtype_bytes(i ? DT_u32 : so->key);
        V into = frame_buffer(&h->frame, i ? so->places[0] : so->keys[0]);
        if (i || so->kept)
            device_copy(h, into, last[i], frame_bytes(&h->frame, dim_mul(h->plan->cx->types, length, bytes)));
    }
}
static void set_slot(Frame *f, Buf *slot, Buf *b) {
    if (b) frame_set_slot(f, slot, frame_buffer(f, b));
}
/* A pass for each digit; the last one leaves its result in places[0]. */
static void sort_by_digits(Host *h, Step *s, const Sort *so) {
    for (uint32_t pass = 0; pass < so->passes; pass++) {
        bool first = pass == 0, last = pass + 1 == so->passes;
        uint32_t to = (so->passes - pass - 1) % 2;
        KernelRule *moves[2] = {first ? device_move_first : device_move, first ? device_move_only : device_move_last};
        frame_set_scalar(&h->frame, so->shift, em_i64(h->e, (int64_t)pass * SORT_DIGIT));
        set_slot(&h->frame, so->from[0], so->keys[!to]), set_slot(&h->frame, so->from[1], so->places[!to]);
        set_slot(&h->frame, so->to[0], so->keys[to]), set_slot(&h->frame, so->to[1], so->places[to]);
        launch(h, s, first ? device_count_first : device_count, &so->grid);
        launch(h, s, device_count_before, &so->digits);
        launch(h, s, moves[last && !so->kept], &so->grid);
    }
}
static void sort_by_merging(Host *h, Step *s, Sort *so) {
    launch(h, s, device_sort, &so->grid);
    if (so->from[0]) merge(h, s, so);
}
static void check_sort(Host *h, const Step *s) {
    Emit *e = h->e;
    if (dim_is_const(s->sort->n)) return;
    V args[3] = {h->frame.heap, em_address(e, em_text(e, what(e, s))), frame_dim(&h->frame, s->sort->n)};
    em_call(e, "jaxcc_rt_cuda_sortable", no_type, 3, args);
}
static void sort(Host *h, Step *s) {
    Emit *e = h->e;
    Sort *so = s->sort;
    check_sort(h, s);
    if (so->by_digits && dim_is_const(so->n)) {
        sort_by_digits(h, s, so);
    } else if (so->by_digits) {
        V n = frame_dim(&h->frame, so->n);
        If longer = em_if(e, em_cmpi(e, "sge", n, em_i64(e, so->by_digits)));
        sort_by_digits(h, s, so);
        em_else(e, &longer, 0, NULL);
        sort_by_merging(h, s, so);
        em_if_end(e, &longer, NULL, NULL);
    } else {
        sort_by_merging(h, s, so);
    }
}
void launch_device(Host *h, Step *s) {
    const Machine *m = h->e->target->machine;
    KernelRule *first = s->parts ? m->before[s->kind] : NULL, *last = s->parts ? m->after[s->kind] : NULL;
    Grid g = s->grid;
    g.items = dim_sub(h->plan->cx->types, g.items, s->division.items);
    if (s->claims.buf) claim(h, s);
    if (s->sort && !s->sort->given) sort(h, s);
    if (s->sort && s->sort->parts) launch(h, s, device_parts, &s->sort->part_grid);
    if (s->kind == STEP_SORT) return;
    if (s->division.waits)
        clear_parts(h, s);
    else if (first)
        launch(h, s, first, &g);
    launch(h, s, m->kernels[s->kind], &s->grid);
    g.items = s->division.items;
    if (g.nloops) g.loops++, g.nloops--;
    if (g.chunks) g.chunks = s->division.chunks;
    if (last) launch(h, s, last, &g);
}

/* ---- memory */
void device_copy(Host *h, V to, V from, V bytes) {
    V args[4] = {h->frame.heap, to, from, bytes};
    em_call(h->e, "jaxcc_rt_cuda_copy", no_type, 4, args);
}
void device_store(Host *h, V to, Dtype d, V scalar) {
    Emit *e = h->e;
    V m = em_to_memory(e, d, scalar), one = em_i64(e, 1);
    MlirType t = mlirValueGetType(m);
    uint32_t bits = dtype_bytes(d) * 8;
    if (!mlirTypeIsAInteger(t)) m = em_cast(e, "llvm.bitcast", mlirIntegerTypeGet(e->mlir, bits), m);
    if (bits < 64) m = em_cast(e, "llvm.zext", e->i64, m);
    V args[5] = {h->frame.heap, to, m, em_i64(e, dtype_bytes(d)), one};
    em_call(e, "jaxcc_rt_cuda_fill", no_type, 5, args);
}
V device_turns(Host *h, const Step *s, V turns) {
    Emit *e = h->e;
    V args[4] = {h->frame.heap, frame_buffer(&h->frame, s->decides), turns, em_i64(e, s->at_once)};
    return em_call(e, "jaxcc_rt_cuda_turns", e->i64, 4, args);
}
bool device_number(Host *h, const Eqn *q) {
    if (!h->plan->target->device || !known_device_number(q)) return false;
    frame_set_scalar(&h->frame, q->out.at[0], em_call(h->e, "jaxcc_rt_device_number", h->e->i32, 1, &h->frame.heap));
    return true;
}
/* Functions of comm.c, which take arrays where the devices have them. */
static bool takes_arrays_there(Str name) {
    static const char *const names[] = {"jaxcc_rt_all_gather", "jaxcc_rt_all_to_all", "jaxcc_rt_permute"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(name, str(names[i]))) return true;
    return false;
}
/* What runs the function of that name: of the host, or of the device if it has large matrices
   (runtime/cuda_solver.h). */
static Str runtime_by(Arena *arena, Str name) {
    static const char *const solved[] = {"cholesky_", "lu_", "geqrf_", "orgqr_", "triangular_", "eigh", "svd"};
    static const char *const types[] = {"f32", "f64", "c64", "c128", ""};
    Str rest = {name.at + strlen("jaxcc_rt_"), name.n - (uint32_t)strlen("jaxcc_rt_")};
    for (size_t i = 0; i < sizeof solved / sizeof *solved; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            if (str_is(rest, str_format(arena, "%s%s", solved[i], types[k]).at))
                return str_format(arena, "jaxcc_rt_cuda_%.*s", SF(rest));
    return S("jaxcc_rt_cuda_host");
}
void device_runtime(Host *h, Step *s, Str name, V arrays, V sizes) {
    Emit *e = h->e;
    if (takes_arrays_there(name)) {
        V given[3] = {h->frame.heap, arrays, sizes};
        em_call(e, name.at, no_type, 3, given);
        return;
    }
    const Eqn *q = s->e;
    uint32_t n = q->in.n + q->out.n;
    V bytes = stack_words(&h->frame, n);
    for (uint32_t i = 0; i < n; i++)
        store_word(e, bytes, i, host_bytes(h, i < q->in.n ? q->in.at[i] : q->out.at[i - q->in.n]));
    MlirType types[3] = {e->ptr, e->ptr, e->ptr};
    em_declare(e, name.at, no_type, 3, types);
    V args[7] = {h->frame.heap, em_address(e, name), arrays, bytes, em_i64(e, q->in.n), em_i64(e, q->out.n), sizes};
    em_call(e, runtime_by(e->arena, name).at, no_type, 7, args);
}

/* ---- the entry */
static Str names_of(Emit *e, const Signature *s) {
    Text t = {.arena = e->arena};
    for (uint32_t i = 0; i < s->in.n + s->out.n; i++) {
        if (i) text_put(&t, S(" "));
        text_put(&t, s->names[s->dims.n + i]);
    }
    return (Str){t.at, t.n};
}
static int64_t flags(const Plan *p) {
    int64_t launches = guard_launches(p);
    bool graph = launches >= GRAPH_LAUNCHES && launches <= MOST_LAUNCHES;
    if (!p->cx->options->device_pointers) return 0;
    return JAXCC_RT_CUDA_DEVICE_POINTERS | (graph ? JAXCC_RT_CUDA_GRAPH : 0) |
           (guard_loops(p->top) ? JAXCC_RT_CUDA_LOOPS : 0);
}
/* jaxcc_rt_cuda_program */
static V program(Frame *f, const Written *w) {
    Emit *e = f->e;
    const Signature *s = w->signature;
    em_declare_word(e, str(library_name));
    V p = stack_words(f, 8);
    V fields[8] = {em_address(e, str(library_name)),
                   em_address(e, entry_run(e, w, true)),
                   em_address(e, em_text(e, names_of(e, s))),
                   em_address(e, em_text(e, S(""))),
                   em_i64(e, s->dims.n),
                   em_i64(e, s->in.n),
                   em_i64(e, s->out.n),
                   em_i64(e, flags(f->plan))};
    for (uint32_t i = 0; i < 8; i++) store_word(e, p, i, fields[i]);
    return p;
}
static V bytes_of(Frame *f, Val v) { return frame_bytes(f, plan_bytes(f->plan, v)); }
V device_run(Frame *f, const Written *w) {
    Emit *e = f->e;
    const Signature *s = w->signature;
    uint32_t arrays = s->in.n + s->out.n;
    V words = stack_words(f, s->dims.n + arrays + 1), bytes = stack_words(f, arrays + 1);
    for (uint32_t i = 0; i < s->dims.n + arrays; i++) store_word(e, words, i, argument(e, &f->arguments, i));
    for (uint32_t i = 0; i < s->in.n; i++) store_word(e, bytes, i, bytes_of(f, s->in.at[i]));
    for (uint32_t i = 0; i < s->out.n; i++) {
        bool computed = f->plan->computed[i];
        store_word(e, bytes, s->in.n + i, computed ? em_i64(e, -1) : bytes_of(f, s->out.at[i]));
    }
    store_word(e, bytes, arrays, frame_bytes(f, w->workspace));
    V args[3] = {program(f, w), words, bytes};
    return em_call(e, "jaxcc_rt_cuda_run", e->i32, 3, args);
}

/* ---- the library's tables, as runtime/cuda.h has them */
typedef struct {
    Emit *e;
    LLVMModuleRef m;
    LLVMContextRef c;
    LLVMTypeRef i32, i64, ptr;
} Tables;
static LLVMValueRef data(const Tables *t, LLVMValueRef init, bool constant) {
    LLVMValueRef g = LLVMAddGlobal(t->m, LLVMTypeOf(init), "");
    LLVMSetInitializer(g, init);
    LLVMSetGlobalConstant(g, constant);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    return g;
}
static LLVMValueRef string(const Tables *t, Str s) {
    return data(t, LLVMConstStringInContext2(t->c, s.at ? s.at : "", s.n, 0), true);
}
static LLVMValueRef number(const Tables *t, int64_t n) { return LLVMConstInt(t->i64, (uint64_t)n, 1); }
static LLVMValueRef row(const Tables *t, LLVMValueRef *fields, unsigned n) {
    return LLVMConstStructInContext(t->c, fields, n, 0);
}
static LLVMValueRef table(const Tables *t, LLVMValueRef *rows, unsigned n) {
    return n ? data(t, LLVMConstArray2(LLVMTypeOf(rows[0]), rows, n), true) : LLVMConstNull(t->ptr);
}
static LLVMValueRef kernels(const Tables *t) {
    const Emit *e = t->e;
    LLVMValueRef *rows = arena_new(e->arena, LLVMValueRef, e->launched.n + 1);
    for (uint32_t i = 0; i < e->launched.n; i++) {
        const Launched *l = &e->launched.at[i];
        LLVMValueRef fields[] = {string(t, l->name), l->what.n ? string(t, l->what) : LLVMConstNull(t->ptr),
                                 number(t, l->context), number(t, l->shared)};
        rows[i] = row(t, fields, 4);
    }
    return table(t, rows, e->launched.n);
}
static LLVMValueRef constants(const Tables *t) {
    Emit *e = t->e;
    LLVMValueRef *rows = arena_new(e->arena, LLVMValueRef, e->constants.n + 1);
    for (uint32_t i = 0; i < e->constants.n; i++) {
        LLVMValueRef fields[] = {constants_address(e, t->m, &e->constants.at[i]),
                                 number(t, (int64_t)e->constants.at[i].bytes)};
        rows[i] = row(t, fields, 2);
    }
    return table(t, rows, e->constants.n);
}
static LLVMValueRef images(const Tables *t, Str ptx) {
    const Device *d = t->e->target->device;
    LLVMValueRef fields[] = {string(t, str(d->name)), string(t, ptx), LLVMConstInt(t->i32, (unsigned)d->sm, 0),
                             LLVMConstInt(t->i32, (unsigned)d->runs_on, 0)};
    LLVMValueRef rows[] = {row(t, fields, 4)};
    return table(t, rows, 1);
}
void device_define(Emit *e, LLVMModuleRef host, Str ptx) {
    LLVMContextRef c = LLVMGetModuleContext(host);
    Tables t = {e, host, c, LLVMInt32TypeInContext(c), LLVMInt64TypeInContext(c), LLVMPointerTypeInContext(c, 0)};
    LLVMValueRef declared = LLVMGetNamedGlobal(host, library_name);
    if (!declared) return; /* no program runs */
    LLVMValueRef fields[] = {
        LLVMConstNull(t.ptr),      images(&t, ptx),           kernels(&t), constants(&t), number(&t, 1),
        number(&t, e->launched.n), number(&t, e->constants.n)};
    LLVMValueRef library = data(&t, row(&t, fields, 7), false);
    LLVMReplaceAllUsesWith(declared, library);
    LLVMDeleteGlobal(declared);
}
