#include "arguments.h"
#include "../../options.h"
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

/* LLVM's time and memory are quadratic in the number of parameters, and each function would move all of them. In C's
   calling convention for x86-64 (System V ABI 3.2.3) the first six pointers and integers are in registers, the others
   consecutively in memory, exactly like an array of them passed by value. */

static uint32_t total(const Signature *s) { return s->dims.n + s->in.n + s->out.n; }
static V at_word(Emit *e, V p, int64_t i) { return em_gep(e, p, em_i64(e, i), e->i64); }

uint32_t arguments_count(const Signature *s, bool in_memory) { return in_memory ? ARGUMENT_BASES : total(s); }
uint32_t arguments_types(Emit *e, const Signature *s, bool in_memory, MlirType *t) {
    uint32_t n = arguments_count(s, in_memory);
    for (uint32_t i = 0; i < n; i++) t[i] = !in_memory && i < s->dims.n ? e->i64 : e->ptr;
    return n;
}
static Arguments of_signature(const Signature *s, bool in_memory) {
    return (Arguments){.ndims = s->dims.n, .nin = s->in.n, .nout = s->out.n, .in_memory = in_memory};
}
Arguments arguments_open(Emit *e, const Signature *s, bool in_memory, Scope *scope, uint32_t from) {
    Arguments a = of_signature(s, in_memory);
    uint32_t n = arguments_count(s, in_memory);
    a.at = in_memory ? a.bases : arena_new(e->arena, V, n + 1);
    for (uint32_t i = 0; i < n; i++) a.at[i] = em_arg(scope, from + i);
    return a;
}
uint32_t arguments_pass(const Arguments *a, V *to) {
    uint32_t n = a->in_memory ? ARGUMENT_BASES : a->ndims + a->nin + a->nout;
    memcpy(to, a->in_memory ? a->bases : a->at, n * sizeof *to);
    return n;
}

V argument(Emit *e, const Arguments *a, uint32_t i) {
    if (!a->in_memory) return a->at[i];
    MlirType t = i < a->ndims ? e->i64 : e->ptr;
    if (i < FIRST_ARGUMENTS) return em_load(e, t, at_word(e, a->bases[0], i), 8);
    if (i < a->ndims) return em_load(e, t, at_word(e, a->bases[1], i), 8);
    i -= a->ndims;
    if (i < a->nin) return em_load(e, t, at_word(e, a->bases[2], i), 8);
    return em_load(e, t, at_word(e, a->bases[3], i - a->nin), 8);
}
V argument_in(Emit *e, const Arguments *a, uint32_t k) { return argument(e, a, a->ndims + k); }
V argument_out(Emit *e, const Arguments *a, uint32_t k) { return argument(e, a, a->ndims + a->nin + k); }

V arguments_behind(Emit *e, const Signature *s, V p) { return at_word(e, p, total(s)); }
Arguments arguments_at(Emit *e, const Signature *s, V p) {
    Arguments a = of_signature(s, true);
    a.bases[0] = a.bases[1] = p;
    a.bases[2] = at_word(e, p, a.ndims);
    a.bases[3] = at_word(e, p, a.ndims + a.nin);
    return a;
}

/* The attributes of one parameter for all arguments that are not in registers. */
static MlirAttribute by_value(Emit *e, uint32_t n) {
    Str text = str_format(e->arena, "{llvm.align = 8 : i64, llvm.byval = !llvm.array<%u x i64>}", n);
    return mlirAttributeParseGet(e->mlir, mlirStringRefCreate(text.at, text.n));
}
Str arguments_checked_name(Ctx *cx, const Signature *s) { return str_format(cx->arena, "%s.checked", s->name); }
MlirOperation arguments_entry(Emit *e, const Signature *s) {
    uint32_t n = total(s), first = n < FIRST_ARGUMENTS ? n : FIRST_ARGUMENTS, params = first + (n > first);
    Str name = str_format(e->arena, "%s.entry", s->name);
    MlirType t[FIRST_ARGUMENTS + 1];
    MlirAttribute attrs[FIRST_ARGUMENTS + 1];
    for (uint32_t i = 0; i < params; i++) {
        t[i] = i < s->dims.n && i < first ? e->i64 : e->ptr;
        attrs[i] = i < first ? mlirDictionaryAttrGet(e->mlir, 0, NULL) : by_value(e, n - first);
    }
    Function fn = em_function(e, name, e->i32, params, t, false);
    V at = em_alloca(e, 8 * FIRST_ARGUMENTS, 8);
    for (uint32_t i = 0; i < first; i++) em_store(e, em_arg(&fn.scope, i), at_word(e, at, i), 8);
    Arguments a = of_signature(s, true);
    a.bases[0] = at;
    V rest = params > first ? em_arg(&fn.scope, first) : at;
    int64_t before = -(int64_t)first; /* where the list would begin if all of it were there */
    a.bases[1] = at_word(e, rest, before);
    a.bases[2] = at_word(e, rest, before + a.ndims);
    a.bases[3] = at_word(e, rest, before + a.ndims + a.nin);
    V status = em_call_local(e, arguments_checked_name(e->cx, s), e->i32, ARGUMENT_BASES, a.bases);
    MlirOperation op = em_function_end(e, &fn, status);
    mlirOperationSetAttributeByName(op, mlirStringRefCreateFromCString("arg_attrs"),
                                    mlirArrayAttrGet(e->mlir, params, attrs));
    return op;
}
