#include "../options.h"
#include "header.h"
#include "host.h"
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* NAME.entry, which metadata.c exports as NAME: checks what the caller gave, gets the workspace,
   calls the schedule. All checks are one condition; only when it holds are they made one by one, to
   say which. */

enum { STACK_BYTES = 8192 };

typedef struct {
    V bad; /* i1 */
    const char *fail;
    V args[4];
    uint32_t n;
} Check;
typedef struct {
    Emit *e;
    Frame *f;
    struct {
        Check *at;
        uint32_t n, cap;
    } all;
    Intern divided; /* dimensions seen by check_divisors */
} Checks;

/* An integer input may be a dimension: its value, or 0 where the pointer is NULL, which a check
 * refuses. */
static void load_extent(Frame *f, Val v, V p) {
    Emit *e = f->e;
    const ArrayType *t = val_array(e->cx, v);
    DtypeKind kind = dtype_info[t->dtype].kind;
    if (t->rank || (kind != DK_SINT && kind != DK_UINT)) return;
    MlirType type = em_memory_type(e, t->dtype);
    V zero = em_alloca(e, 8, 8);
    em_store(e, em_i64(e, 0), zero, 8);
    V null = em_cmpi(e, "eq", p, em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL));
    f->scalars[v] = em_load(e, type, em_select(e, null, zero, p), em_bytes(t->dtype));
}
/* Is every scalar in it an input? */
static bool known_at_entry(const Frame *f, Dim d) {
    if (dim_is_const(d)) return true;
    const DimExpr *x = dim_at(f->e->cx->types, d);
    if (x->kind == DIM_BOUND) return f->scalars[x->val].ptr != NULL;
    if (x->kind == DIM_SYMBOL) return true;
    for (uint32_t i = 0; x->kind == DIM_SUM && i < x->nterms; i++)
        for (uint32_t a = 0; a < x->terms[i].natoms; a++)
            if (!known_at_entry(f, x->terms[i].atoms[a])) return false;
    return x->kind == DIM_SUM || (known_at_entry(f, x->a) && known_at_entry(f, x->b));
}
static V text(Emit *e, Str s) { return em_address(e, em_text(e, s)); }

/* What is divided by in a dimension must not be 0, an input that is a dimension not negative. */
static void check_divisors(Checks *c, const Signature *s, Dim d) {
    Emit *e = c->e;
    bool fresh;
    if (dim_is_const(d) || !known_at_entry(c->f, d)) return;
    intern(&c->divided, &d, sizeof d, &fresh);
    if (!fresh) return;
    const DimExpr *x = dim_at(e->cx->types, d);
    if (x->kind == DIM_BOUND) { /* an input that is a dimension */
        V n = frame_dim(c->f, d);
        V name = text(e, signature_dim_text(e->cx, s, d));
        Check k = {em_cmpi(e, "slt", n, em_i64(e, 0)), "jaxcc_rt_fail_negative", {name, n}, 2};
        push(e->arena, &c->all, k);
    }
    for (uint32_t i = 0; x->kind == DIM_SUM && i < x->nterms; i++)
        for (uint32_t a = 0; a < x->terms[i].natoms; a++)
            check_divisors(c, s, x->terms[i].atoms[a]);
    if (x->kind != DIM_FLOORDIV && x->kind != DIM_MOD && x->kind != DIM_MAX && x->kind != DIM_MIN)
        return;
    check_divisors(c, s, x->a);
    check_divisors(c, s, x->b);
    if (x->kind == DIM_MAX || x->kind == DIM_MIN || dim_is_const(x->b)) return;
    V zero = em_cmpi(e, "eq", frame_dim(c->f, x->b), em_i64(e, 0));
    Check k = {zero, "jaxcc_rt_fail_divisor", {text(e, signature_dim_text(e->cx, s, d))}, 1};
    push(e->arena, &c->all, k);
}
static void check_program(Checks *c, const Signature *s, const Jaxpr *j) {
    Ctx *cx = c->e->cx;
    each(Eqn, q, j->eqns) {
        each(Val, v, q->out) {
            const ArrayType *t = val_array(cx, *v);
            for (uint32_t d = 0; d < t->rank; d++)
                check_divisors(c, s, t->dims[d]);
        }
        Jaxprs subs = eqn_jaxprs(cx->arena, q);
        each(Jaxpr *, sub, subs)
            check_program(c, s, *sub);
    }
}
static void check_dims(Checks *c, const Signature *s) {
    Emit *e = c->e;
    for (uint32_t i = 0; i < s->dims.n; i++) {
        V d = c->f->symbol_args[i];
        Check k = {em_cmpi(e, "slt", d, em_i64(e, 0)),
                   "jaxcc_rt_fail_negative",
                   {text(e, str(s->names[i].at)), d},
                   2};
        push(e->arena, &c->all, k);
    }
    for (uint32_t i = 0; i < e->cx->dim_checks.n; i++) {
        const DimCheck *d = &e->cx->dim_checks.at[i];
        if (!known_at_entry(c->f, d->a) || !known_at_entry(c->f, d->b)) continue;
        V a = frame_dim(c->f, d->a), b = frame_dim(c->f, d->b);
        V ta = text(e, signature_dim_text(e->cx, s, d->a)),
          tb = text(e, signature_dim_text(e->cx, s, d->b));
        Check k = {em_cmpi(e, d->at_most ? "sgt" : "ne", a, b),
                   d->at_most ? "jaxcc_rt_fail_above" : "jaxcc_rt_fail_unequal",
                   {ta, a, tb, b},
                   4};
        push(e->arena, &c->all, k);
    }
}
/* A symbolic size must fit: its product in floating point is below 2^63 bytes. */
static void check_size(Checks *c, Val v, Str name) {
    Emit *e = c->e;
    const ArrayType *t = val_array(e->cx, v);
    V total = em_float(e, e->f64, em_bytes(t->dtype));
    bool symbolic = false;
    for (uint32_t d = 0; d < t->rank; d++)
        if (!known_at_entry(c->f, t->dims[d])) return;
    for (uint32_t d = 0; d < t->rank; d++) {
        symbolic |= !dim_is_const(t->dims[d]);
        V n = em_cast(e, "llvm.sitofp", e->f64, frame_dim(c->f, t->dims[d]));
        V negative = em_cmpf(e, "olt", n, em_float(e, e->f64, 0));
        total =
            em_bin(e, "llvm.fmul", total, em_select(e, negative, em_float(e, e->f64, 0x1p63), n));
    }
    if (!symbolic) return;
    Check k = {em_cmpf(e, "oge", total, em_float(e, e->f64, 0x1p63)),
               "jaxcc_rt_fail_size",
               {text(e, name)},
               1};
    push(e->arena, &c->all, k);
}
static void check_pointer(Checks *c, Val v, V p, Str name) {
    Emit *e = c->e;
    const ArrayType *t = val_array(e->cx, v);
    Dim n = type_size(e->cx->types, val_type(e->cx, v));
    if (n == 0) return;
    V null = em_cmpi(e, "eq", p, em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL));
    for (uint32_t d = 0; d < t->rank; d++)
        if (!dim_is_const(t->dims[d]) && known_at_entry(c->f, t->dims[d])) {
            V some = em_cmpi(e, "ne", frame_dim(c->f, t->dims[d]), em_i64(e, 0));
            null = em_bin(e, "llvm.and", null, some);
        }
    Check k = {null, "jaxcc_rt_fail_null", {text(e, name)}, 1};
    push(e->arena, &c->all, k);
}
/* The status of the first check that fails. */
static V first_failure(Checks *c) {
    Emit *e = c->e;
    V status = em_int(e, e->i32, 0);
    each(Check, k, c->all) {
        V unknown = em_cmpi(e, "eq", status, em_int(e, e->i32, 0)), said;
        If branch = em_if(e, em_bin(e, "llvm.and", unknown, k->bad));
        V call = em_call(e, k->fail, e->i32, k->n, k->args);
        em_else(e, &branch, 1, &call);
        em_if_end(e, &branch, &status, &said);
        status = said;
    }
    return status;
}
static V cpu_check(Emit *e) {
    MlirBlock was = e->block;
    MlirRegion none = mlirRegionCreate();
    e->block = mlirModuleGetBody(e->module);
    Str name = S("jaxcc_rt_cpu");
    Attr a[3] = {{"sym_name", mlirStringAttrGet(e->mlir, mlirStringRefCreate(name.at, name.n))},
                 {"global_type", mlirTypeAttrGet(e->i64)},
                 {"linkage", mlirLLVMLinkageAttrGet(e->mlir, MlirLLVMLinkageExternal)}};
    em_op(e, "llvm.mlir.global", 0, NULL, 0, NULL, 3, a, 1, &none);
    e->block = was;
    V need = em_i64(e, (int64_t)e->target.need);
    V have = em_load(e, e->i64, em_address(e, name), 8);
    return em_cmpi(e, "ne", em_bin(e, "llvm.and", have, need), need);
}

/* ---- workspace */
Str entry_run(Emit *e, Str body, const Signature *s) {
    Str name = str_format(e->arena, "%.*s.run", SF(body));
    MlirType t[2] = {e->ptr, e->ptr};
    Function fn = em_function(e, name, no_type, 2, t);
    uint32_t n = s->dims.n + s->in.n + s->out.n + 1; /* and the workspace */
    V *inner = arena_new(e->arena, V, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        V slot = em_gep(e, em_arg(&fn.scope, 0), em_i64(e, i), e->i64);
        inner[i] = em_load(e, i < s->dims.n ? e->i64 : e->ptr, slot, 8);
    }
    inner[n] = em_arg(&fn.scope, 1);
    em_call_local(e, body, no_type, n + 1, inner);
    em_function_end(e, &fn, (V){NULL});
    return name;
}
static V run_on(Plan *p, Emit *e, Frame *f, const Signature *s, Str body, V *args, uint32_t n, V workspace) {
    args[n++] = workspace;
    if (!p->heap) {
        args[n] = em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL);
        em_call_local(e, body, no_type, n + 1, args);
        return em_int(e, e->i32, 0);
    }
    MlirBlock was = e->block;
    e->block = f->entry;
    V memory = em_alloca(e, 8 * (int64_t)n, 8);
    e->block = was;
    for (uint32_t i = 0; i < n; i++)
        em_store(e, args[i], em_gep(e, memory, em_i64(e, i), e->i64), 8);
    V call[2] = {em_address(e, entry_run(e, body, s)), memory};
    return em_call(e, "jaxcc_rt_heap_run", e->i32, 2, call);
}
static V run_body(Plan *p, Emit *e, Frame *f, const Signature *s, Str body, V *args, uint32_t n) {
    if (p->workspace == 0)
        return run_on(p, e, f, s, body, args, n, em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL));
    if (dim_is_const(p->workspace) && p->workspace <= STACK_BYTES) {
        MlirBlock was = e->block;
        e->block = f->entry;
        V stack = em_alloca(e, p->workspace, 64);
        e->block = was;
        return run_on(p, e, f, s, body, args, n, stack);
    }
    V bytes = frame_bytes(f, p->workspace);
    V w = em_call(e, "jaxcc_rt_workspace_get", e->ptr, 1, &bytes);
    V none = em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL);
    If got = em_if(e, em_cmpi(e, "ne", w, none));
    V ok = run_on(p, e, f, s, body, args, n, w), status;
    em_call(e, "jaxcc_rt_workspace_put", no_type, 1, &w);
    em_else(e, &got, 1, &ok);
    V failed = em_call(e, "jaxcc_rt_fail_memory", e->i32, 1, &bytes);
    em_if_end(e, &got, &failed, &status);
    return status;
}
static void write_workspace(Plan *p, Emit *e, const Signature *s) {
    Str name = str_format(e->arena, "%s.workspace", e->cx->options->name);
    Function fn = em_function(e, name, e->i64, 1, &e->ptr);
    Frame f = {.plan = p, .e = e, .entry = fn.scope.block};
    f.symbols.at = s->dims.at, f.symbols.n = s->dims.n;
    f.symbol_args = arena_new(e->arena, V, s->dims.n + 1);
    for (uint32_t i = 0; i < s->dims.n; i++)
        f.symbol_args[i] =
            em_load(e, e->i64, em_gep(e, em_arg(&fn.scope, 0), em_i64(e, i), e->i64), 8);
    em_function_end(e, &fn, frame_bytes(&f, p->workspace));
}
void entry_write(Plan *p, Emit *e, const Jaxpr *j, const Signature *s, Str body) {
    uint32_t n = s->dims.n + s->in.n + s->out.n;
    MlirType *t = arena_new(e->arena, MlirType, n + 1);
    for (uint32_t i = 0; i < n; i++)
        t[i] = i < s->dims.n ? e->i64 : e->ptr;
    Str name = str_format(e->arena, "%s.entry", e->cx->options->name);
    Function fn = em_function(e, name, e->i32, n, t);
    Frame f = {.plan = p, .e = e, .entry = fn.scope.block};
    V *args = arena_new(e->arena, V, n + 2);
    for (uint32_t i = 0; i < n; i++)
        args[i] = em_arg(&fn.scope, i);
    f.symbols.at = s->dims.at, f.symbols.n = s->dims.n, f.symbol_args = args;
    f.scalars = arena_new(e->arena, V, e->cx->nvals + 1);
    for (uint32_t i = 0; i < s->in.n; i++)
        load_extent(&f, s->in.at[i], args[s->dims.n + i]);
    Checks c = {.e = e, .f = &f};
    Check cpu = {cpu_check(e), "jaxcc_rt_fail_cpu", {em_i64(e, (int64_t)e->target.need)}, 1};
    push(e->arena, &c.all, cpu);
    c.divided.arena = e->arena;
    check_dims(&c, s);
    check_program(&c, s, j);
    for (uint32_t i = 0; i < s->in.n + s->out.n; i++) {
        Val v = i < s->in.n ? s->in.at[i] : s->out.at[i - s->in.n];
        const ArrayType *ty = val_array(e->cx, v);
        for (uint32_t d = 0; d < ty->rank; d++)
            check_divisors(&c, s, ty->dims[d]);
        Str parameter = s->names[s->dims.n + i];
        check_size(&c, v, parameter);
        check_pointer(&c, v, args[s->dims.n + i], parameter);
    }
    V bad = c.all.at[0].bad;
    for (uint32_t i = 1; i < c.all.n; i++)
        bad = em_bin(e, "llvm.or", bad, c.all.at[i].bad);
    If branch = em_if(e, bad);
    V status = first_failure(&c), result;
    em_else(e, &branch, 1, &status);
    V done = run_body(p, e, &f, s, body, args, n);
    em_if_end(e, &branch, &done, &result);
    em_function_end(e, &fn, result);
    write_workspace(p, e, s);
}
