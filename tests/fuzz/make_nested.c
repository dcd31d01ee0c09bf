/* Makers of equations that hold programs. A nested program takes the operands' types and gives what is asked. */
#include "make.h"
#include "compiler/typecheck/rule.h"

enum { MOST_OPERANDS = 4 };
static uint32_t arrays(Gen *g, Val *in, Type *types, uint32_t least) {
    uint32_t n = least + draw(g, MOST_OPERANDS - least);
    for (uint32_t i = 0; i < n; i++) in[i] = pick(g, ANY, 0), types[i] = val_type(g->cx, in[i]);
    return n;
}
/* Arrays and, now and then, a token. */
static uint32_t operands(Gen *g, Val *in, Type *types, uint32_t least) {
    uint32_t n = arrays(g, in, types, least);
    for (uint32_t i = 0; i < n && !g->runs; i++)
        if (draw(g, 16) == 1) in[i] = scalar(g, DT_tok), types[i] = val_type(g->cx, in[i]);
    return n;
}

void make_call(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[8];
    Type types[8];
    uint32_t n = operands(g, in, types, g->derived), results = 1 + draw(g, 3);
    Jaxpr *j = nested(g, types, n, NULL, results);
    put(g, &s, K_name, (Value){.kind = V_WORD, .s = S("f")});
    bool custom = p == P_custom_jvp_call || p == P_custom_vjp_call, linear = p == P_linear_call;
    put_jaxpr(g, &s, linear ? K_callee : custom ? K_call_jaxpr : K_jaxpr, j);
    if (custom) put_int(g, &s, K_num_consts, 0);
    if (linear) put_int(g, &s, K_num_callee_consts, 0), put_int(g, &s, K_num_res, draw(g, n + 1));
    emit(g, p, in, n, s, j->out.n);
}
/* Operands of these types, and literals, which may be counters, as they are; false if one can not be made. */
static bool operands_like(Gen *g, const Vals *like, Val *in) {
    for (uint32_t i = 0; i < like->n; i++) {
        Type t = val_type(g->cx, like->at[i]);
        bool made = ANY & kind_of(g, like->at[i]) || array(g, like->at[i])->dtype == DT_tok;
        if (!made || type_plain(g->cx->types, t) != t) return false;
        in[i] = val_info(g->cx, like->at[i])->lit ? like->at[i] : need(g, t);
    }
    return true;
}
/* An earlier equation with other operands, or a call of one of its programs: both share what they hold. */
void make_again(Gen *g, Prim p, unsigned kinds) {
    Ctx *cx = g->cx;
    Eqn e = g->holders.at[draw(g, g->holders.n)];
    Jaxprs programs = eqn_jaxprs(cx->arena, &e);
    Jaxpr *j = programs.at[draw(g, programs.n)];
    bool called = draw(g, 3) == 1;
    const Vals *like = called ? &j->in : &e.in;
    Val *in = arena_new(cx->arena, Val, like->n + 1);
    Set s = {0};
    if (!operands_like(g, like, in)) return;
    if (called) {
        put(g, &s, K_name, (Value){.kind = V_WORD, .s = S("f")});
        put_jaxpr(g, &s, K_jaxpr, j);
        emit(g, p, in, like->n, s, j->out.n);
        return;
    }
    Type *out = arena_new(cx->arena, Type, e.out.n + 1);
    for (uint32_t i = 0; i < e.out.n; i++) out[i] = val_type(cx, e.out.at[i]);
    each(Param, q, e.params) push(cx->arena, &s, *q);
    emit_declared(g, e.prim, in, like->n, s, out, e.out.n);
}
void make_cond(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[9];
    Type types[8], out[8];
    Dtype d = coin(g) ? DT_i32 : DT_bool;
    uint32_t branches = d == DT_bool ? 2 : 1 + draw(g, 3), results = draw(g, 4);
    in[0] = scalar(g, d);
    uint32_t n = operands(g, in + 1, types, 0);
    Value v = {.kind = V_JAXPRS, .open = '('};
    v.jaxprs.at = arena_new(g->cx->arena, Jaxpr *, branches);
    v.jaxprs.n = branches;
    v.jaxprs.at[0] = nested(g, types, n, NULL, results);
    for (uint32_t i = 0; i < results; i++) out[i] = val_type(g->cx, v.jaxprs.at[0]->out.at[i]);
    for (uint32_t i = 1; i < branches; i++)
        v.jaxprs.at[i] = draw(g, 4) == 1 ? v.jaxprs.at[0] : nested(g, types, n, out, results);
    put(g, &s, K_branches, v);
    emit(g, p, in, n + 1, s, results);
}
/* The first carried value counts to a small number. */
void make_while(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[24];
    Type types[24], cond_in[16], counter = type_of(g->cx->types, DT_i32, 0, NULL);
    uint32_t nc = operands(g, in, types, 0), nb = operands(g, in + nc, types + nc, 0);
    Val *carry = in + nc + nb;
    Type *carried = types + nc + nb;
    uint32_t n = operands(g, carry, carried, 1);
    carry[0] = literal(g, DT_i32), carried[0] = counter;
    memcpy(cond_in, types, nc * sizeof *types);
    memcpy(cond_in + nc, carried, n * sizeof *types);
    Type is_true = type_of(g->cx->types, DT_bool, 0, NULL);
    Jaxpr *test = nested(g, cond_in, nc + n, &is_true, 1);
    Jaxpr *body = nested(g, types + nc, nb + n, carried, n);
    Scope into = {.eqns = test->eqns}, *outer = g->s;
    Lit most = {.kind = LIT_INT, .i = 1 + draw(g, 4)}, one = {.kind = LIT_INT, .i = 1};
    g->s = &into;
    Val lt[2] = {test->in.at[nc], val_literal(g->cx, counter, most, (Span){0})};
    Val goes_on = emit(g, P_lt, lt, 2, (Set){0}, 1);
    test->out.at[0] = emit(g, P_and, (Val[]){goes_on, test->out.at[0]}, 2, (Set){0}, 1);
    if (!g->runs || coin(g)) test->out.at[0] = goes_on;
    test->eqns = into.eqns;
    into = (Scope){.eqns = body->eqns};
    Val next[2] = {body->in.at[nb], val_literal(g->cx, counter, one, (Span){0})};
    body->out.at[0] = emit(g, P_add, next, 2, (Set){0}, 1);
    body->eqns = into.eqns;
    g->s = outer;
    put_jaxpr(g, &s, K_cond_jaxpr, test);
    put_jaxpr(g, &s, K_body_jaxpr, body);
    put_int(g, &s, K_cond_nconsts, nc);
    put_int(g, &s, K_body_nconsts, nb);
    emit(g, p, in, nc + nb + n, s, n);
}
void make_scan(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[24];
    Type types[24], out[8];
    uint32_t consts = operands(g, in, types, 0), n = consts, ncarry, nys = draw(g, 3);
    n += ncarry = operands(g, in + n, types + n, 0);
    uint32_t nxs = draw(g, 3);
    Dim length = nxs ? array(g, in[n] = pick(g, ANY, 1))->dims[0] : (Dim)draw(g, 5);
    for (uint32_t i = 0; i < nxs; i++, n++) {
        const ArrayType *a = array(g, i ? pick(g, ANY, 1) : in[n]);
        Dim dims[16] = {length};
        if (a->rank > 1) memcpy(dims + 1, a->dims + 1, (a->rank - 1) * sizeof *dims);
        Type t = type_of(g->cx->types, a->dtype, a->rank, dims);
        if (!is_small(g, t)) t = type_of(g->cx->types, a->dtype, 1, dims);
        if (i) in[n] = need(g, t);
        a = array(g, in[n]);
        types[n] = type_of(g->cx->types, a->dtype, a->rank - 1, a->dims + 1);
    }
    for (uint32_t i = 0; i < ncarry + nys; i++) out[i] = i < ncarry ? types[consts + i] : draw_type(g, ANY);
    Jaxpr *j = nested(g, types, n, out, ncarry + nys);
    put_jaxpr(g, &s, K_jaxpr, j);
    put_int(g, &s, K_length, length);
    put_int(g, &s, K_num_carry, ncarry);
    put_int(g, &s, K_num_consts, consts);
    put_int(g, &s, K_reverse, draw(g, 2));
    put_int(g, &s, K_unroll, 1);
    emit(g, p, in, n, s, ncarry + nys);
}

/* ---- references */

/* A scalar that is no literal. */
static Val variable(Gen *g, Dtype d) {
    Val x = scalar(g, d);
    return val_info(g->cx, x)->lit ? emit(g, P_copy, &x, 1, (Set){0}, 1) : x;
}

/* Index items: all of an axis, a position, a position that is an operand. `dims`: of what is seen; operands from `n`
   on. */
static Value draw_index(Gen *g, const ArrayType *a, Val *in, uint32_t *n, Dim *dims, uint32_t *rank) {
    Arena *arena = g->cx->arena;
    Value all = {.kind = V_PAIR, .s = S(":"), .list = {arena_new(arena, Value, 2), 2}};
    Value bracket = {.kind = V_LIST, .open = '[', .list = {arena_new(arena, Value, a->rank + 1), a->rank}};
    *rank = 0;
    for (uint32_t i = 0; i < a->rank; i++) {
        Dim d = a->dims[i];
        uint32_t what = draw(g, 3);
        Value *v = &bracket.list.at[i];
        if (what == 1 && dim_is_const(d) && d) {
            *v = (Value){.kind = V_TEXT, .s = str_format(arena, "%u", draw(g, (uint32_t)d))};
        } else if (what == 2 && *n < 8) {
            *v = (Value){.kind = V_WORD, .s = S("*")};
            in[(*n)++] = variable(g, DT_i32);
        } else {
            *v = all, dims[(*rank)++] = d;
        }
    }
    Value v = {.kind = V_LIST, .list = {arena_new(arena, Value, 1), 1}};
    v.list.at[0] = bracket;
    return v;
}

static void use_ref(Gen *g, Val ref) {
    static const Prim prims[] = {P_get, P_swap, P_addupdate};
    Prim p = prims[draw(g, 3)];
    const ArrayType *a = array(g, ref);
    Val in[16] = {ref};
    Dim dims[16];
    uint32_t n = p == P_get ? 1 : 2, rank;
    Set s = {0};
    Param index = {.key = K_other, .name = S("index"), .value = draw_index(g, a, in, &n, dims, &rank)};
    push(g->cx->arena, &s, index);
    if (p != P_get) in[1] = need(g, type_of(g->cx->types, a->dtype, rank, dims));
    emit(g, p, in, n, s, p != P_addupdate);
}

static Type ref_type(Gen *g, Type t) {
    TypeExtra extra = {.ref = S("Ref")};
    return type_with_extra(g->cx->types, type_plain(g->cx->types, t), &extra);
}

void make_refs(Gen *g, Prim p, unsigned kinds) {
    Val x = pick(g, kinds, 0);
    Type t = ref_type(g, val_type(g->cx, x));
    bool empty = p == P_empty_ref && !g->runs;
    Val ref = empty ? emit_declared(g, p, NULL, 0, (Set){0}, &t, 1) : emit(g, P_new_ref, &x, 1, (Set){0}, 1);
    for (uint32_t i = draw(g, 4); ref && i; i--) use_ref(g, ref);
    bool freed = p == P_free_ref;
    if (ref && (freed || draw(g, 4))) emit(g, freed ? P_free_ref : P_freeze, &ref, 1, (Set){0}, !freed);
}

/* run_state and for: the program has a reference for each operand, and for an index before them. */
void make_state(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[8];
    Type types[9] = {type_of(g->cx->types, DT_i32, 0, NULL)};
    bool counted = strcmp(type_rule_of(p), "for") == 0;
    uint32_t n = arrays(g, in, types + counted, 1);
    for (uint32_t i = 0; i < n; i++) types[counted + i] = ref_type(g, types[counted + i]);
    Jaxpr *j = nested(g, types, counted + n, NULL, 0);
    Scope into = {.eqns = j->eqns}, *outer = g->s;
    g->s = &into;
    for (uint32_t i = draw(g, 5); i; i--) use_ref(g, j->in.at[counted + draw(g, n)]);
    j->eqns = into.eqns;
    g->s = outer;
    put_jaxpr(g, &s, K_jaxpr, j);
    put_text(g, &s, p, counted ? S("nsteps=3 reverse=False unroll=1 which_linear=()") : S("which_linear=()"));
    emit(g, p, in, n, s, n);
}

/* ---- Catalyst's loops, without implicit values: consts, lower, upper, step, first, carried; consts, consts,
   carried */
void make_catalyst(Gen *g, Prim p, unsigned kinds) {
    if (g->runs) return; /* they may not end */
    Set s = {0};
    Val in[24];
    Type types[24], index = type_of(g->cx->types, DT_i64, 0, NULL), is_true = type_of(g->cx->types, DT_bool, 0, NULL);
    bool counted = p == P_for_loop;
    uint32_t nc = arrays(g, in, types, 0), n = nc;
    for (uint32_t i = 0; counted && i < 4; i++) in[n++] = need(g, index);
    if (counted) types[nc] = index;
    Type *carried = types + nc + counted;
    uint32_t ncarried = arrays(g, in + n, carried, 1);
    put_jaxpr(g, &s, K_body_jaxpr, nested(g, types, nc + counted + ncarried, carried, ncarried));
    if (!counted) put_jaxpr(g, &s, K_cond_jaxpr, nested(g, carried, ncarried, &is_true, 1));
    put_int(g, &s, K_body_nconsts, nc);
    put_text(g, &s, p,
             counted ? S("apply_reverse_transform=False num_implicit_inputs=0 preserve_dimensions=True")
                     : S("cond_nconsts=0 num_implicit_inputs=0 preserve_dimensions=True"));
    emit(g, p, in, n + ncarried, s, ncarried);
}

/* ---- others */

void make_solve(Gen *g, Prim p, unsigned kinds) {
    static const char *const fields[] = {"matvec", "vecmat", "solve", "transpose_solve"};
    Arena *arena = g->cx->arena;
    Set s = {0};
    Val b = pick(g, kinds, 1);
    Type t = val_type(g->cx, b);
    Value v = {.kind = V_LIST, .open = '(', .s = S("_LinearSolveTuple"), .list = {arena_new(arena, Value, 4), 4}};
    for (unsigned i = 0; i < 4; i++) {
        Value *inner = arena_new(arena, Value, 1);
        if (i == 2 || coin(g)) *inner = (Value){.kind = V_JAXPR, .jaxpr = nested(g, &t, 1, &t, 1)};
        v.list.at[i] = (Value){.kind = V_PAIR, .s = str(fields[i]), .list = {inner, 1}};
    }
    put(g, &s, K_jaxprs, v);
    put_text(g, &s, p, S("const_lengths=_LinearSolveTuple(matvec=0, vecmat=0, solve=0, transpose_solve=0)"));
    emit(g, p, &b, 1, s, 1);
}

/* Two devices: along x the leading axis of an array, where they can share it, or nothing. pmap takes that axis away. */
void make_devices(Gen *g, Prim p, unsigned kinds) {
    bool maps = p == P_shard_map;
    Text specs = {.arena = g->cx->arena}, outs = specs;
    Set s = {0};
    Val in[8];
    Type types[8];
    struct AxisScope *around = g->cx->axes;
    uint32_t n = arrays(g, in, types, 1), results = 1 + draw(g, 2);
    for (uint32_t i = 0; i < n; i++) {
        const ArrayType *a = array(g, in[i]);
        bool shared = a->rank && dim_is_const(a->dims[0]) && (maps ? a->dims[0] % 2 == 0 : a->dims[0] == 2) && coin(g);
        Dim dims[80] = {0};
        if (shared) memcpy(dims, a->dims, a->rank * sizeof *dims), dims[0] /= 2;
        if (shared) types[i] = type_of(g->cx->types, a->dtype, a->rank - !maps, maps ? dims : dims + 1);
        text_put(&specs, maps ? (shared ? S("P('x',),") : S("P(),")) : shared ? S("0,") : S("None,"));
    }
    uint32_t holders = g->holders.n;
    axis_bind(g->cx, S("x"), 2);
    Jaxpr *j = nested(g, types, n, NULL, results);
    g->cx->axes = around;
    g->holders.n = holders; /* those within may use the axis */
    for (uint32_t i = 0; i < results; i++)
        text_put(&outs, maps ? (array(g, j->out.at[i])->rank && coin(g) ? S("P('x',),") : S("P(),")) : S("0,"));
    put_jaxpr(g, &s, maps ? K_jaxpr : K_call_jaxpr, j);
    Str of[2] = {{specs.at, specs.n}, {outs.at, outs.n}};
    put_text(
        g, &s, p,
        maps ? str_format(
                   g->cx->arena,
                   "check_vma=False in_specs=(%.*s) manual_axes=frozenset({'x'}) mesh=Mesh('x': 2) out_specs=(%.*s)",
                   SF(of[0]), SF(of[1]))
             : str_format(g->cx->arena, "axis_name=x axis_size=2 in_axes=(%.*s) name=f out_axes=(%.*s)", SF(of[0]),
                          SF(of[1])));
    emit(g, p, in, n, s, results);
}

void make_kernel(Gen *g, Prim p, unsigned kinds) {
    if (g->runs) return; /* what a kernel does the text does not say */
    Set s = {0};
    Val in[8];
    Type types[8], out = draw_type(g, kinds);
    uint32_t n = arrays(g, in, types, 0);
    put_jaxpr(g, &s, K_jaxpr, nested(g, types, n, NULL, 0));
    emit_declared(g, p, in, n, s, &out, 1);
}
