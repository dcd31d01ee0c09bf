#include "../../options.h"
#include "../cost.h"
#include "device.h"
#include "header.h"
#include "host.h"
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* NAME.entry, which metadata.c exports as NAME: if the CPU can run the code, checks the arguments, gets the workspace,
   calls the schedule. A few checks form one condition; only if it holds are they made one by one, by a function of its
   own, to find the one that fails. Many checks are divided among functions, and pointers to arrays of known extents are
   checked by one loop. */

typedef struct {
    V bad; /* i1 */
    const char *fail;
    V args[5];
    uint32_t n;
} Check;
typedef struct {
    Emit *e;
    Frame *f;
    const Signature *s;
    struct {
        Check *at;
        uint32_t n, cap;
    } all;
    Intern divided;  /* dimensions seen by check_divisors */
    Intern programs; /* seen by check_program */
    /* if there are many: */
    bool many;
    Function group; /* the function being written; its frame is *f */
    Str name;
    uint32_t ngroups;
    Text names; /* of the arrays from number `from` on that are checked by a loop */
    uint32_t from, n;
} Checks;

static bool is_parameter(const Frame *f, Dim symbol) {
    each(const Dim, d, f->symbols)
        if (*d == symbol) return true;
    return false; /* of unused equations */
}
/* Is every symbol in it a parameter, every scalar an input? */
static bool known_at_entry(const Frame *f, Dim d) {
    if (dim_is_const(d)) return true;
    const DimExpr *x = dim_at(f->e->cx->types, d);
    if (x->kind == DIM_BOUND) {
        const Buf *b = plan_info(f->plan, x->val)->buf;
        return b && b->kind == BUF_IN;
    }
    if (x->kind == DIM_SYMBOL) return is_parameter(f, d);
    for (uint32_t i = 0; x->kind == DIM_SUM && i < x->nterms; i++)
        for (uint32_t a = 0; a < x->terms[i].natoms; a++)
            if (!known_at_entry(f, x->terms[i].atoms[a])) return false;
    return x->kind == DIM_SUM || (known_at_entry(f, x->a) && known_at_entry(f, x->b));
}
static V text(Emit *e, Str s) { return em_address(e, em_text(e, s)); }
static void add(Checks *c, Check k);

/* Divisors in a dimension must not be 0, inputs that are dimensions must not be negative. */
static void check_divisors(Checks *c, Dim d) {
    Emit *e = c->e;
    bool fresh;
    if (dim_is_const(d) || !known_at_entry(c->f, d)) return;
    intern(&c->divided, &d, sizeof d, &fresh);
    if (!fresh) return;
    const DimExpr *x = dim_at(e->cx->types, d);
    if (x->kind == DIM_BOUND) { /* an input that is a dimension */
        V n = frame_dim(c->f, d);
        V name = text(e, signature_dim_text(e->cx, c->s, d));
        Check k = {em_cmpi(e, "slt", n, em_i64(e, 0)), "jaxcc_rt_fail_negative", {name, n}, 2};
        add(c, k);
    }
    for (uint32_t i = 0; x->kind == DIM_SUM && i < x->nterms; i++)
        for (uint32_t a = 0; a < x->terms[i].natoms; a++) check_divisors(c, x->terms[i].atoms[a]);
    if (x->kind != DIM_FLOORDIV && x->kind != DIM_MOD && x->kind != DIM_MAX && x->kind != DIM_MIN) return;
    check_divisors(c, x->a);
    check_divisors(c, x->b);
    if (x->kind == DIM_MAX || x->kind == DIM_MIN || dim_is_const(x->b)) return;
    V zero = em_cmpi(e, "eq", frame_dim(c->f, x->b), em_i64(e, 0));
    Check k = {zero, "jaxcc_rt_fail_divisor", {text(e, signature_dim_text(e->cx, c->s, d))}, 1};
    add(c, k);
}
static void check_program(Checks *c, const Jaxpr *j) {
    Ctx *cx = c->e->cx;
    bool fresh;
    intern(&c->programs, &j, sizeof j, &fresh);
    if (!fresh) return;
    each(Eqn, q, j->eqns) {
        each(Val, v, q->out) {
            const ArrayType *t = val_array(cx, *v);
            for (uint32_t d = 0; d < t->rank; d++) check_divisors(c, t->dims[d]);
        }
        Jaxprs subs = q->params.n ? eqn_jaxprs(cx->arena, q) : (Jaxprs){0};
        each(Jaxpr *, sub, subs) check_program(c, *sub);
    }
}
static void check_dims(Checks *c, const DimChecks *conditions) {
    Emit *e = c->e;
    for (uint32_t i = 0; i < c->s->dims.n; i++) {
        V d = argument(e, &c->f->arguments, i);
        Check k = {
            em_cmpi(e, "slt", d, em_i64(e, 0)), "jaxcc_rt_fail_negative", {text(e, str(c->s->names[i].at)), d}, 2};
        add(c, k);
    }
    each(const DimCheck, d, *conditions) {
        if (!known_at_entry(c->f, d->a) || !known_at_entry(c->f, d->b)) continue;
        V a = frame_dim(c->f, d->a), b = frame_dim(c->f, d->b);
        V ta = text(e, signature_dim_text(e->cx, c->s, d->a)), tb = text(e, signature_dim_text(e->cx, c->s, d->b));
        Check k = {em_cmpi(e, d->at_most ? "sgt" : "ne", a, b),
                   d->at_most ? "jaxcc_rt_fail_above" : "jaxcc_rt_fail_unequal",
                   {ta, a, tb, b},
                   4};
        add(c, k);
    }
}
/* A symbolic size must fit: computed in floating point, it is below 2^63 bytes. */
static void check_size(Checks *c, Val v, Str name) {
    Emit *e = c->e;
    const ArrayType *t = val_array(e->cx, v);
    bool symbolic = false;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!known_at_entry(c->f, t->dims[d])) return;
        symbolic |= !dim_is_const(t->dims[d]);
    }
    if (!symbolic) return;
    V total = em_float(e, e->f64, dtype_bytes(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++) {
        V n = em_cast(e, "llvm.sitofp", e->f64, frame_dim(c->f, t->dims[d]));
        V negative = em_cmpf(e, "olt", n, em_float(e, e->f64, 0));
        total = em_bin(e, "llvm.fmul", total, em_select(e, negative, em_float(e, e->f64, 0x1p63), n));
    }
    Check k = {em_cmpf(e, "oge", total, em_float(e, e->f64, 0x1p63)), "jaxcc_rt_fail_size", {text(e, name)}, 1};
    add(c, k);
}
static void check_pointer(Checks *c, Val v, V p, Str name) {
    Emit *e = c->e;
    const ArrayType *t = val_array(e->cx, v);
    V null = em_cmpi(e, "eq", p, em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL));
    for (uint32_t d = 0; d < t->rank; d++)
        if (!dim_is_const(t->dims[d]) && known_at_entry(c->f, t->dims[d])) {
            V some = em_cmpi(e, "ne", frame_dim(c->f, t->dims[d]), em_i64(e, 0));
            null = em_bin(e, "llvm.and", null, some);
        }
    Check k = {null, "jaxcc_rt_fail_null", {text(e, name)}, 1};
    add(c, k);
}
/* An array that can only be wrong by its pointer. */
static void check_later(Checks *c, uint32_t i, Dim size) {
    if (c->names.n)
        text_put(&c->names, S(" "));
    else
        c->from = i, c->n = 0;
    text_put(&c->names, size == 0 ? S("-") : c->s->names[i]);
    c->n++;
}
static Check pointers(Checks *c) {
    Emit *e = c->e;
    const Arguments *a = &c->f->arguments;
    bool outputs = c->from >= a->ndims + a->nin;
    uint32_t k = c->from - a->ndims - (outputs ? a->nin : 0);
    uint32_t first = c->from < FIRST_ARGUMENTS ? FIRST_ARGUMENTS - c->from : 0;
    Check all = {.fail = "jaxcc_rt_check_pointers", .n = 5};
    all.args[0] = em_gep(e, a->bases[0], em_i64(e, c->from), e->i64);
    all.args[1] = em_i64(e, first);
    all.args[2] = em_gep(e, a->bases[outputs ? 3 : 2], em_i64(e, k), e->i64);
    all.args[3] = em_i64(e, c->n);
    all.args[4] = text(e, (Str){c->names.at, c->names.n});
    V status = em_call(e, all.fail, e->i32, all.n, all.args);
    all.bad = em_cmpi(e, "ne", status, em_int(e, e->i32, 0));
    c->names.n = 0;
    return all;
}
static void check_array(Checks *c, uint32_t i) {
    Val v = i < c->s->dims.n + c->s->in.n ? c->s->in.at[i - c->s->dims.n] : c->s->out.at[i - c->s->dims.n - c->s->in.n];
    const ArrayType *t = val_array(c->e->cx, v);
    Dim size = type_size(c->e->cx->types, val_type(c->e->cx, v));
    if (c->many && dim_is_const(size)) {
        check_later(c, i, size);
        return;
    }
    for (uint32_t d = 0; d < t->rank; d++) check_divisors(c, t->dims[d]);
    check_size(c, v, c->s->names[i]);
    if (size != 0) check_pointer(c, v, argument(c->e, &c->f->arguments, i), c->s->names[i]);
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
/* Does the CPU lack something that the target's code needs? */
static V cpu_lacks(Emit *e, const Target *t) {
    Str name = S("jaxcc_rt_cpu");
    em_declare_word(e, name);
    V need = em_i64(e, (int64_t)t->need);
    V have = em_load(e, e->i64, em_address(e, name), 8);
    return em_cmpi(e, "ne", em_bin(e, "llvm.and", have, need), need);
}
/* Calls `able` if the CPU can run it: apart and for any CPU, since LLVM computes ahead of a check what it likes. */
static void guard(Emit *e, Str name, Str able, uint32_t n, const MlirType *t) {
    Function fn = em_function(e, name, e->i32, n, t, false);
    V *args = arena_new(e->arena, V, n + 1), need = em_i64(e, (int64_t)e->target->need), status;
    for (uint32_t i = 0; i < n; i++) args[i] = em_arg(&fn.scope, i);
    If branch = em_if(e, cpu_lacks(e, e->target));
    V failed = em_call(e, "jaxcc_rt_fail_cpu", e->i32, 1, &need);
    em_else(e, &branch, 1, &failed);
    V done = em_call_last(e, able, e->i32, n, args);
    em_if_end(e, &branch, &done, &status);
    em_for_any_cpu(e, em_function_end(e, &fn, status));
}
static Str able_name(Emit *e, Str name) { return str_format(e->arena, "%.*s.able", SF(name)); }

static void check_all(Checks *c, const Jaxpr *j) {
    const Signature *s = c->s;
    check_dims(c, j->dim_checks);
    check_program(c, j);
    for (uint32_t i = s->dims.n; i < s->dims.n + s->in.n + s->out.n; i++) {
        if (i == s->dims.n + s->in.n && c->names.n) add(c, pointers(c));
        check_array(c, i);
    }
    if (c->names.n) add(c, pointers(c));
}
static V any_bad(Checks *c) {
    V bad = em_int(c->e, c->e->i1, 0);
    for (uint32_t i = 0; i < c->all.n; i++) bad = em_bin(c->e, "llvm.or", bad, c->all.at[i].bad);
    return bad;
}

/* ---- many checks */
static void group_open(Checks *c) {
    Emit *e = c->e;
    MlirType *t = arena_new(e->arena, MlirType, ARGUMENT_BASES);
    uint32_t n = arguments_types(e, c->s, true, t);
    Str name = str_format(e->arena, "%.*s.checks_%u", SF(c->name), c->ngroups++);
    c->group = em_function(e, name, e->i32, n, t, false);
    c->f->entry = c->group.scope.block;
    c->f->arguments = arguments_open(e, c->s, true, &c->group.scope, 0);
}
static void group_close(Checks *c) {
    Emit *e = c->e;
    V status = em_int(e, e->i32, 0), ok = status;
    if (c->all.n) {
        If branch = em_if(e, any_bad(c));
        V failed = first_failure(c);
        em_else(e, &branch, 1, &failed);
        em_if_end(e, &branch, &ok, &status);
    }
    em_function_end(e, &c->group, status);
    c->all.n = 0;
}
static void add(Checks *c, Check k) {
    if (c->names.n) {
        Check before = pointers(c);
        push(c->e->arena, &c->all, before);
    }
    push(c->e->arena, &c->all, k);
    if (!c->many || c->all.n < MOST_CHECKS) return;
    group_close(c);
    group_open(c);
}
/* The status of the groups, one after the other until one fails. */
static V call_groups(Checks *c, const Arguments *a) {
    Emit *e = c->e;
    V zero = em_int(e, e->i32, 0), status = zero, args[ARGUMENT_BASES];
    uint32_t n = arguments_pass(a, args);
    for (uint32_t i = 0; i < c->ngroups; i++) {
        If branch = em_if(e, em_cmpi(e, "eq", status, zero));
        Str name = str_format(e->arena, "%.*s.checks_%u", SF(c->name), i);
        V next = em_call_local(e, name, e->i32, n, args), all;
        em_else(e, &branch, 1, &next);
        em_if_end(e, &branch, &status, &all);
        status = all;
    }
    return status;
}

/* ---- workspace */
V written_homes_new(Emit *e, const Written *w, V heap, V workspace) {
    V args[2] = {heap, em_i64(e, w->homes + 8)};
    V given = em_gep(e, em_call(e, "jaxcc_rt_heap_get", e->ptr, 2, args), em_i64(e, w->homes), e->i8);
    em_store(e, workspace, given, 8);
    return given;
}
void written_homes_put(Emit *e, const Written *w, V heap, V given) {
    V args[2] = {heap, em_gep(e, given, em_i64(e, -(int64_t)w->homes), e->i8)};
    em_call(e, "jaxcc_rt_heap_put", no_type, 2, args);
}
V written_past_homes(Emit *e, const Written *w, V workspace) {
    return w->homes ? em_gep(e, workspace, em_i64(e, w->homes), e->i8) : workspace;
}
Str entry_run(Emit *e, const Written *w, bool flat) {
    const Signature *s = w->signature;
    Str name = str_format(e->arena, "%.*s.run", SF(w->name));
    MlirType t[2] = {e->ptr, e->ptr};
    Function fn = em_function(e, name, no_type, 2, t, false);
    V from = em_arg(&fn.scope, 0);
    uint32_t n = arguments_count(s, w->in_memory);
    V *args = arena_new(e->arena, V, n + 2);
    MlirType *types = arena_new(e->arena, MlirType, n + 1);
    arguments_types(e, s, w->in_memory, types);
    if (w->in_memory && flat) {
        Arguments a = arguments_at(e, s, from);
        arguments_pass(&a, args);
        from = arguments_behind(e, s, from);
    } else {
        for (uint32_t i = 0; i < n; i++) args[i] = em_load(e, types[i], em_gep(e, from, em_i64(e, i), e->i64), 8);
        from = em_gep(e, from, em_i64(e, n), e->i64);
    }
    args[n] = em_load(e, e->ptr, from, 8);
    V heap = em_arg(&fn.scope, 1), workspace = args[n];
    if (e->target->device)
        args[n] = written_homes_new(e, w, heap, workspace);
    else if (flat)
        args[n] = written_past_homes(e, w, workspace);
    args[n + 1] = heap;
    em_call_local(e, w->name, no_type, n + 2, args);
    if (e->target->device) written_homes_put(e, w, heap, args[n]);
    em_function_end(e, &fn, (V){NULL});
    return name;
}
static V run_on(Frame *f, const Written *w, V workspace) {
    Emit *e = f->e;
    V *args = arena_new(e->arena, V, arguments_count(w->signature, w->in_memory) + 2);
    uint32_t n = arguments_pass(&f->arguments, args);
    args[n++] = written_past_homes(e, w, workspace);
    if (!f->plan->heap) {
        if (!w->calls && e->targets->n == 1) em_inline(e, w->function);
        args[n] = em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL);
        em_call_local(e, w->name, no_type, n + 1, args);
        return em_int(e, e->i32, 0);
    }
    MlirBlock was = e->block;
    e->block = f->entry;
    V memory = em_alloca(e, 8 * (int64_t)n, 8);
    e->block = was;
    for (uint32_t i = 0; i < n; i++) em_store(e, args[i], em_gep(e, memory, em_i64(e, i), e->i64), 8);
    V call[2] = {em_address(e, entry_run(e, w, false)), memory};
    return em_call(e, "jaxcc_rt_heap_run", e->i32, 2, call);
}
/* Does a loop keep something of each turn, as loops of derivatives in reverse do? */
static bool stacks(Plan *p, const Body *b) {
    each(Step *const, s, b->steps) {
        if ((*s)->kind == STEP_SCAN && (*s)->e->out.n > (*s)->ncarries) return true;
        each(const Val, v, (*s)->members)
            if (plan_info(p, *v)->stack) return true; /* inside a kernel */
        for (uint32_t i = 0; i < (*s)->nbodies; i++)
            if (stacks(p, (*s)->bodies[i])) return true;
    }
    return false;
}
static V run_body(Frame *f, const Written *w) {
    Emit *e = f->e;
    if (e->target->device) return device_run(f, w);
    if (w->workspace == 0) return run_on(f, w, em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL));
    if (dim_is_const(w->workspace) && w->workspace <= STACK_BYTES) {
        MlirBlock was = e->block;
        e->block = f->entry;
        V stack = em_alloca(e, w->workspace, 64);
        e->block = was;
        return run_on(f, w, stack);
    }
    V bytes = frame_bytes(f, w->workspace);
    V at = em_call(e, "jaxcc_rt_workspace_get", e->ptr, 1, &bytes);
    V none = em_1(e, "llvm.mlir.zero", e->ptr, 0, NULL, 0, NULL);
    If got = em_if(e, em_cmpi(e, "ne", at, none));
    V ok = run_on(f, w, at), status;
    em_call(e, "jaxcc_rt_workspace_put", no_type, 1, &at);
    em_else(e, &got, 1, &ok);
    Str hint = stacks(f->plan, f->plan->top) ? options_less_memory(e->arena, e->cx->options) : S("");
    V args[2] = {bytes, em_address(e, em_text(e, hint))};
    V failed = em_call(e, "jaxcc_rt_fail_memory", e->i32, 2, args);
    em_if_end(e, &got, &failed, &status);
    return status;
}
/* The result of the rule for the highest of the first n targets whose features the CPU has. */
typedef V LevelRule(Frame *, const Written *);
static V chosen(Frame *f, const Level *levels, uint32_t n, LevelRule *rule) {
    Emit *e = f->e;
    const Level *l = &levels[n - 1];
    V best, result;
    if (n > 1) {
        If lower = em_if(e, cpu_lacks(e, &e->targets->at[n - 1]));
        V other = chosen(f, levels, n - 1, rule);
        em_else(e, &lower, 1, &other);
        f->plan = l->plan;
        best = rule(f, &l->body);
        em_if_end(e, &lower, &best, &result);
        return result;
    }
    f->plan = l->plan;
    return rule(f, &l->body);
}
static Frame frame_of(const Level *l, Emit *e, const Signature *s, const Function *fn) {
    return (Frame){.plan = l->plan, .e = e, .entry = fn->scope.block, .symbols = s->dims};
}
static V workspace_bytes(Frame *f, const Written *w) { return frame_bytes(f, w->workspace); }
static void write_workspace(const Level *levels, Emit *e, const Signature *s) {
    Str name = str_format(e->arena, "%s.workspace", s->name);
    Function fn = em_function(e, name, e->i64, 1, &e->ptr, false);
    Frame f = frame_of(levels, e, s, &fn);
    f.arguments = arguments_at(e, s, em_arg(&fn.scope, 0)); /* of which it uses dimensions */
    em_for_any_cpu(e, em_function_end(e, &fn, chosen(&f, levels, e->targets->n, workspace_bytes)));
}

/* ---- NAME */
static Checks checks_of(const Level *levels, const Jaxpr *j, Frame *f) {
    Emit *e = f->e;
    Checks c = {.e = e, .f = f, .s = levels->body.signature, .divided.arena = e->arena, .programs.arena = e->arena};
    check_all(&c, j);
    return c;
}
/* NAME.refused says what is wrong with the arguments: apart, so that calls with right ones need no registers for it. */
static Str entry_refused(const Level *levels, const Jaxpr *j, Emit *e, uint32_t n, const MlirType *t) {
    const Signature *s = levels->body.signature;
    Str name = str_format(e->arena, "%s.refused", s->name);
    Function fn = em_function(e, name, e->i32, n, t, false);
    Frame f = frame_of(levels, e, s, &fn);
    f.arguments = arguments_open(e, s, false, &fn.scope, 0);
    Checks c = checks_of(levels, j, &f);
    em_function_end(e, &fn, first_failure(&c));
    return name;
}
static void entry_direct(const Level *levels, const Jaxpr *j, Emit *e) {
    const Signature *s = levels->body.signature;
    uint32_t n = arguments_count(s, false);
    MlirType *t = arena_new(e->arena, MlirType, n + 1);
    V *args = arena_new(e->arena, V, n + 1), done;
    arguments_types(e, s, false, t);
    Str refused = entry_refused(levels, j, e, n, t), name = str_format(e->arena, "%s.entry", s->name);
    Function fn = em_function(e, able_name(e, name), e->i32, n, t, false);
    Frame f = frame_of(levels, e, s, &fn);
    f.arguments = arguments_open(e, s, false, &fn.scope, 0);
    Checks c = checks_of(levels, j, &f);
    If branch = em_if(e, any_bad(&c));
    arguments_pass(&f.arguments, args);
    V failed = em_call_last(e, refused, e->i32, n, args), status;
    em_else(e, &branch, 1, &failed);
    done = chosen(&f, levels, e->targets->n, run_body);
    em_if_end(e, &branch, &done, &status);
    em_function_end(e, &fn, status);
    guard(e, name, able_name(e, name), n, t);
}
static void entry_in_memory(const Level *levels, const Jaxpr *j, Emit *e) {
    const Signature *s = levels->body.signature;
    Str name = arguments_checked_name(e->cx, s);
    Frame f = {.plan = levels->plan, .e = e, .symbols = s->dims};
    Checks c = {
        .e = e, .f = &f, .s = s, .many = true, .name = name, .divided.arena = e->arena, .programs.arena = e->arena};
    c.names.arena = e->arena;
    group_open(&c);
    check_all(&c, j);
    group_close(&c);
    MlirType t[ARGUMENT_BASES];
    uint32_t n = arguments_types(e, s, true, t);
    Function fn = em_function(e, able_name(e, name), e->i32, n, t, false);
    f = frame_of(levels, e, s, &fn);
    f.arguments = arguments_open(e, s, true, &fn.scope, 0);
    V failed = call_groups(&c, &f.arguments), status;
    If branch = em_if(e, em_cmpi(e, "ne", failed, em_int(e, e->i32, 0)));
    em_else(e, &branch, 1, &failed);
    V done = chosen(&f, levels, e->targets->n, run_body);
    em_if_end(e, &branch, &done, &status);
    em_function_end(e, &fn, status);
    guard(e, name, able_name(e, name), n, t);
    em_for_any_cpu(e, arguments_entry(e, s));
}
void entry_write(Emit *e, const Jaxpr *j, const Level *levels) {
    if (levels->body.in_memory)
        entry_in_memory(levels, j, e);
    else
        entry_direct(levels, j, e);
    write_workspace(levels, e, levels->body.signature);
}
