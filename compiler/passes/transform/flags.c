/* The transformations of the command line. */
#include "flags.h"
#include "../../cname.h"

Flag flag_of(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag f = {.tx.cx = cx, .b = {.cx = cx, .span = j->span}, .read = j, .of = t};
    f.tx.map.cx = f.tx.tangent.cx = cx;
    f.tx.continues = (ValMap){.cx = cx, .sparse = true};
    f.tx.batch.lengths = f.tx.batch.longest = f.tx.continues;
    f.tx.batch.differentiated = t->differentiated;
    f.names.arena = cx->arena;
    return f;
}
Val *flag_values(const Flag *f, uint32_t n) { return arena_new(f->b.cx->arena, Val, n + 1); }
bool flag_differentiable(const Flag *f, Val v) { return has_tangent(f->b.cx, val_type(f->b.cx, v)); }
Span flag_input_place(const Flag *f, uint32_t i) { return val_info(f->b.cx, f->read->in.at[i])->span; }
Span flag_result_place(const Flag *f, uint32_t i) {
    Span bound = val_info(f->b.cx, f->read->out.at[i])->span;
    return f->read->out_at ? f->read->out_at[i] : bound.n ? bound : f->read->span;
}

/* ---- inputs and results */

static void take_names(Flag *f, Vals vals) {
    each(const Val, v, vals) {
        Str name = val_info(f->b.cx, *v)->name;
        if (name.n) intern(&f->names, name.at, name.n, NULL);
    }
}
/* The name, with `_` appended if it is a keyword of C, and until no value or dimension has it. */
static Str own_name(Flag *f, Str name) {
    Arena *arena = f->b.cx->arena;
    if (cname_keyword(name)) name = str_format(arena, "%.*s_", SF(name));
    for (bool fresh = false;;) {
        if (!dim_symbol_exists(f->b.cx->types, name)) intern(&f->names, name.at, name.n, &fresh);
        if (fresh) return name;
        name = str_format(arena, "%.*s_", SF(name));
    }
}
/* An input of the type of a value read, in which extents are inputs before it. */
Val flag_input(Flag *f, Val like, Str name) {
    Val v = tx_placeholder(&f->tx, like);
    val_info(f->b.cx, v)->name = name;
    push(f->b.cx->arena, &f->in, v);
    return v;
}
/* Inputs named as those of the program read. */
Val *flag_primals(Flag *f) {
    const Jaxpr *j = f->read;
    Val *in = flag_values(f, j->in.n);
    take_names(f, j->consts);
    take_names(f, j->in);
    each(const Eqn, e, j->eqns) take_names(f, e->out);
    for (uint32_t i = 0; i < j->in.n; i++) {
        in[i] = flag_input(f, j->in.at[i], val_info(f->b.cx, j->in.at[i])->name);
        valmap_put(&f->tx.map, j->in.at[i], in[i]);
    }
    return in;
}
/* The tangent of input i; `_` says nothing. */
static Val add_tangent(Flag *f, uint32_t i) {
    Ctx *cx = f->b.cx;
    Val primal = f->read->in.at[i];
    Str name = val_info(cx, primal)->name;
    name =
        name.n && !str_is(name, "_") ? str_format(cx->arena, "%.*s_t", SF(name)) : str_format(cx->arena, "in%u_t", i);
    return flag_input(f, primal, own_name(f, name));
}
void flag_output(Flag *f, Val v, Span place, Str is) { push(f->b.cx->arena, &f->out, ((Result){v, place, is})); }
/* Result i of the program read. */
void flag_result(Flag *f, Val v, uint32_t i) {
    flag_output(f, v, flag_result_place(f, i), f->read->out_is ? f->read->out_is[i] : S(""));
}
Jaxpr *flag_end(Flag *f) {
    Arena *arena = f->b.cx->arena;
    Jaxpr *j = arena_new(arena, Jaxpr, 1);
    uint32_t n = f->out.n;
    Val *out = flag_values(f, n);
    Span *places = arena_new(arena, Span, n + 1);
    Str *is = arena_new(arena, Str, n + 1);
    for (uint32_t i = 0; i < n; i++) out[i] = f->out.at[i].v, places[i] = f->out.at[i].place, is[i] = f->out.at[i].is;
    *j = *f->read;
    j->in = (Vals){f->in.at, f->in.n};
    j->out = (Vals){out, n};
    j->out_at = places, j->out_is = is;
    j->eqns = f->b.eqns;
    j->consts = (Vals){f->b.consts.at, f->b.consts.n};
    j->checked = false;
    return f->tx.failed || f->b.failed ? NULL : j;
}

/* ---- does the flag fit the program? */

bool flag_lists(const Transform *t, uint32_t input) {
    bool found = false;
    each(const int64_t, arg, t->args) found |= *arg == input;
    return found;
}
static const char *option(const Transform *t) {
    static const char *const names[] = {[TRANSFORM_GRAD] = "--grad",
                                        [TRANSFORM_VALUE_AND_GRAD] = "--value-and-grad",
                                        [TRANSFORM_JACFWD] = "--jacfwd",
                                        [TRANSFORM_JACREV] = "--jacrev",
                                        [TRANSFORM_HESSIAN] = "--hessian"};
    return names[t->kind];
}
static bool fits_result(Flag *f) {
    const Jaxpr *j = f->read;
    const char *name = option(f->of), *before = f->of->before;
    if (j->out.n != 1)
        return tx_error(&f->tx, j->out.n ? flag_result_place(f, 0) : j->span,
                        "%s wants one scalar float result, but there are %u%s%s", name, j->out.n,
                        before ? " after " : "", before ? before : "");
    const ArrayType *t = val_array(f->b.cx, j->out.at[0]);
    Str text = ctx_type_text(f->b.cx, val_type(f->b.cx, j->out.at[0]));
    if (t->rank != 0)
        return tx_error(&f->tx, flag_result_place(f, 0), "%s wants one scalar float result, but it is %.*s", name,
                        SF(text));
    return dtype_info[t->dtype].kind == DK_FLOAT ||
           tx_error(&f->tx, flag_result_place(f, 0), "%s wants a real result, but it is %.*s", name, SF(text));
}
bool flag_fits_arg(Flag *f, int64_t arg) {
    const Jaxpr *j = f->read;
    Ctx *cx = f->b.cx;
    const char *name = option(f->of);
    if (arg >= j->in.n)
        return tx_error(&f->tx, (Span){INPUT_FILE, 0, 0}, "%s=%lld: there %s %u input%s", name, (long long)arg,
                        is_are(j->in.n), j->in.n, plural(j->in.n));
    Val v = j->in.at[arg];
    return flag_differentiable(f, v) ||
           tx_error(&f->tx, flag_input_place(f, (uint32_t)arg),
                    "%s=%lld: input '%.*s' is %.*s, which has no derivative", name, (long long)arg, SF(val_name(cx, v)),
                    SF(ctx_type_text(cx, val_type(cx, v))));
}
static bool fits_grad(Flag *f) {
    bool fits = fits_result(f);
    each(const int64_t, arg, f->of->args) fits &= flag_fits_arg(f, *arg);
    return fits;
}
/* ---- jvp */

static void differentiate(Flag *f, const Transform *along) {
    const Jaxpr *j = f->read;
    Val *in = flag_primals(f), *t = flag_values(f, j->in.n), *out = flag_values(f, j->out.n),
        *dt = flag_values(f, j->out.n);
    for (uint32_t i = 0; i < j->in.n; i++)
        if (flag_differentiable(f, j->in.at[i]) && (!along || flag_lists(along, i))) t[i] = add_tangent(f, i);
    jvp_into(&f->tx, &f->b, j, in, t, out, dt);
    for (uint32_t i = 0; i < j->out.n; i++) flag_result(f, out[i], i);
    for (uint32_t i = 0; i < j->out.n && !f->tx.failed; i++)
        if (flag_differentiable(f, j->out.at[i]))
            flag_output(f, dt[i] ? dt[i] : b_zeros_like(&f->b, out[i]), flag_result_place(f, i),
                        str_format(f->b.cx->arena, "the tangent of output %u", i));
}
const Jaxpr *flag_tangents(Flag *f, const Transform *along) {
    differentiate(f, along);
    return flag_end(f);
}
static Jaxpr *transform_jvp(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag f = flag_of(cx, j, t);
    return (Jaxpr *)flag_tangents(&f, NULL);
}

/* ---- what vjp and linearize begin with: jvp, split at the tangents */

const Jaxpr *flag_needed_tangents(Flag *f, const Transform *along) {
    const Jaxpr *both = flag_tangents(f, along);
    return both ? pass_dce(f->b.cx, both) : NULL;
}
/* Writes the values to `f`, from these inputs, and to `out`, which has room for all results of `both`; `lin` gets the
   tangents. */
bool flag_split(Flag *f, const Jaxpr *both, const Val *primals, Val *out, Inner *lin) {
    const Jaxpr *j = f->read;
    Val *in = flag_values(f, both->in.n);
    bool *force = arena_new(f->b.cx->arena, bool, both->out.n + 1);
    if (j->in.n) memcpy(in, primals, j->in.n * sizeof *in);
    memset(force + j->out.n, true, both->out.n - j->out.n);
    return split_into(&f->tx, &f->b, both, in, force, out, lin);
}

/* ---- vjp, grad: of that the transpose */

typedef struct {
    Val extent;
    Dim symbol;
} Given;
/* The extents of cotangents. */
typedef struct {
    Flag *f;
    struct {
        Given *at;
        uint32_t n, cap;
    } given; /* symbols in the place of what the program computes */
} Extents;
static bool is_among(Vals vals, Val v) {
    bool found = false;
    each(const Val, w, vals) found |= *w == v;
    return found;
}
static Dim given_extent(void *user, Dim atom) {
    Extents *x = user;
    Ctx *cx = x->f->b.cx;
    const Jaxpr *j = x->f->read;
    const DimExpr *d = dim_at(cx->types, atom);
    if (d->kind != DIM_BOUND || is_among(j->in, d->val) || is_among(j->consts, d->val)) return atom;
    each(const Given, g, x->given)
        if (g->extent == d->val) return g->symbol;
    Str name = own_name(x->f, str_format(cx->arena, "%.*s_ct", SF(val_name(cx, d->val))));
    push(cx->arena, &x->given, ((Given){d->val, dim_symbol(cx->types, name)}));
    return x->given.at[x->given.n - 1].symbol;
}
/* The cotangents of the results: inputs, or 1 for the only one. */
static Val *seeds(Flag *f) {
    const Jaxpr *j = f->read;
    Ctx *cx = f->b.cx;
    Extents extents = {.f = f};
    Val *ct = flag_values(f, j->out.n);
    for (uint32_t i = 0; i < j->out.n; i++) {
        Val v = j->out.at[i];
        if (!flag_differentiable(f, v)) continue;
        if (f->of->kind != TRANSFORM_VJP) {
            ct[i] = b_number(&f->b, val_array(cx, v)->dtype, 1);
            continue;
        }
        Type t = type_substitute(cx->types, val_type(cx, v), given_extent, &extents);
        ct[i] = val_new(cx, type_rewrite(&f->tx.map, t), flag_result_place(f, i));
        val_info(cx, ct[i])->name = own_name(f, str_format(cx->arena, "ct%u", i));
        push(cx->arena, &f->in, ct[i]);
    }
    return ct;
}
/* A cotangent with the extents of the result, which the program finds out: those given must be the same. `result` is 0
   if it is computed together with its tangent, which has no transpose. */
static Val fitted(Flag *f, Val ct, Val result) {
    Builder *b = &f->b;
    if (b->failed) return VAL_FAILED;
    if (!result) return ct;
    const ArrayType *is = b_type(b, ct), *wanted = b_type(b, result);
    Dim config[3 * MAX_RANK] = {0};
    Param message = {.key = K_error_message, .value = {.kind = V_TEXT}};
    Span outer = b->span;
    b->span = val_info(b->cx, ct)->span;
    for (uint32_t d = 0; d < is->rank; d++) {
        Dim given = is->dims[d], n = wanted->dims[d];
        if (given == n) continue;
        config[3 * d + 1] = dim_sub(b_types(b), n, given);
        Val in[3] = {0, b_dim(b, DT_i64, given), b_dim(b, DT_i64, n)};
        in[0] = b_eq(b, in[1], in[2]);
        message.value.s =
            str_format(b->cx->arena, "axis %u of '%.*s' is {0}, that of the result is {1}", d, SF(val_name(b->cx, ct)));
        build_many(b, P_shape_assertion, 3, in, 1, &message, 0, NULL);
    }
    ct = b_pad(b, ct, b_number(b, is->dtype, 0), config);
    b->span = outer;
    return ct;
}
/* The cotangents of the inputs with a tangent in `both`, which returns values and tangents: by input, 0: zero. `out`:
   as for flag_split. */
static Val *backwards(Flag *f, const Jaxpr *both, const Val *primals, Val *out) {
    const Jaxpr *j = f->read;
    Inner lin;
    Val *ct = seeds(f), *result = flag_values(f, j->in.n);
    if (!flag_split(f, both, primals, out, &lin)) return NULL;
    uint32_t n = lin.j->in.n, ncaptured = lin.captured.n;
    Val *lin_in = flag_values(f, n), *lin_ct = flag_values(f, lin.j->out.n), *ct_in = flag_values(f, n);
    if (ncaptured) memcpy(lin_in, lin.captured.at, ncaptured * sizeof *lin_in);
    for (uint32_t i = 0, k = 0; i < j->out.n; i++)
        if (ct[i]) lin_ct[k++] = fitted(f, ct[i], out[i]);
    if (!transpose_into(&f->tx, &f->b, lin.j, lin_in, lin_ct, ct_in)) return NULL;
    for (uint32_t i = 0, k = ncaptured; k < n; i++)
        if (flag_differentiable(f, j->in.at[i]) && (f->of->kind == TRANSFORM_VJP || flag_lists(f->of, i)))
            result[i] = ct_in[k++];
    return result;
}
static void add_cotangent(Flag *f, Val primal, Val ct, uint32_t input) {
    const char *is = f->of->kind == TRANSFORM_VJP ? "the cotangent of" : "the gradient with respect to";
    Str name = val_name(f->b.cx, f->read->in.at[input]);
    flag_output(f, ct ? ct : b_zeros_like(&f->b, primal), flag_input_place(f, input),
                str_format(f->b.cx->arena, "%s %.*s", is, SF(name)));
}
static Jaxpr *transform_vjp(Ctx *cx, const Jaxpr *j, const Transform *t) {
    Flag d = flag_of(cx, j, t), f = flag_of(cx, j, t);
    if (t->kind != TRANSFORM_VJP && !fits_grad(&f)) return NULL;
    d.tx.reverse = true;
    const Jaxpr *both = flag_needed_tangents(&d, t->kind == TRANSFORM_VJP ? NULL : t);
    if (!both) return NULL;
    Val *primals = flag_primals(&f), *out = flag_values(&f, both->out.n), *ct = backwards(&f, both, primals, out);
    if (!ct) return NULL;
    for (uint32_t i = 0; i < j->out.n && t->kind != TRANSFORM_GRAD; i++) flag_result(&f, out[i], i);
    for (uint32_t i = 0; i < j->in.n && t->kind == TRANSFORM_VJP; i++)
        if (flag_differentiable(&f, j->in.at[i])) add_cotangent(&f, primals[i], ct[i], i);
    each(const int64_t, arg, t->args) add_cotangent(&f, primals[*arg], ct[*arg], (uint32_t)*arg);
    return flag_end(&f);
}

/* ---- linearize: what the linear program takes is a result of the other one */

/* A residual, as result of one program and input of the other. */
static void add_residual(Flag *fwd, Flag *lin, Val v) {
    valmap_put(&lin->tx.map, v, flag_input(lin, v, S("")));
    flag_output(fwd, v, fwd->read->span, S(""));
}
static bool is_constant(const Flag *f, Val v) { return val_info(f->b.cx, v)->data != NULL; }
/* The linear program, whose inputs are residuals and tangents. `primals`: the inputs of the other one. */
static void add_linear(Flag *fwd, Flag *lin, const Inner *of, const Val *primals) {
    const Jaxpr *j = fwd->read;
    Ctx *cx = fwd->b.cx;
    uint32_t n = 0;
    Vals consts = {arena_new(cx->arena, Val, of->captured.n + 1), 0};
    each(const Val, v, of->captured)
        if (is_constant(fwd, *v))
            consts.at[consts.n++] = *v;
        else
            add_residual(fwd, lin, *v);
    add_consts(cx->arena, &lin->b.consts, consts);
    for (uint32_t i = 0; i < j->in.n; i++) /* extents of tangents */
        valmap_put(&lin->tx.map, j->in.at[i], valmap_get(&lin->tx.map, primals[i]));
    Val *in = flag_values(lin, of->j->in.n);
    n = 0;
    each(const Val, v, of->captured) in[n++] = valmap_get(&lin->tx.map, *v);
    for (uint32_t i = 0; i < j->in.n; i++)
        if (flag_differentiable(fwd, j->in.at[i])) in[n++] = add_tangent(lin, i);
    Vals out = b_call(&lin->b, of->j, n, in);
    n = 0;
    for (uint32_t i = 0; i < j->out.n; i++)
        if (flag_differentiable(fwd, j->out.at[i]))
            flag_output(lin, out.at[n++], flag_result_place(fwd, i),
                        str_format(cx->arena, "the tangent of output %u", i));
}
static void note_used(void *used, Val v) { intern(used, &v, sizeof v, NULL); }
/* The values that the program needs. */
static Intern used_values(Ctx *cx, const Jaxpr *j) {
    Intern used = {.arena = cx->arena};
    each(const Val, v, j->in) type_extents(cx, val_type(cx, *v), note_used, &used);
    each(const Eqn, e, j->eqns) {
        each(const Val, v, e->in) note_used(&used, *v);
        eqn_extents(cx, e, note_used, &used);
        each(const Val, v, e->out) type_extents(cx, val_type(cx, *v), note_used, &used);
    }
    each(const Val, v, j->out) note_used(&used, *v);
    return used;
}
/* Drops the residuals that the linear program does not need, its first inputs and the last results of the other one,
   and names the others. */
static void settle_residuals(Flag *fwd, Flag *lin, Jaxpr *linear, uint32_t nresults) {
    Ctx *cx = lin->b.cx;
    Intern used = used_values(cx, linear);
    uint32_t n = fwd->out.n - nresults, to = nresults, k;
    Vals in = {arena_new(cx->arena, Val, linear->in.n + 1), 0};
    for (uint32_t i = 0; i < linear->in.n; i++) {
        Val v = linear->in.at[i];
        if (i < n && !intern_find(&used, &v, sizeof v, &k)) continue;
        in.at[in.n++] = v;
        if (i >= n) continue;
        val_info(cx, v)->name = own_name(lin, str_format(cx->arena, "res%u", to - nresults));
        fwd->out.at[to] = fwd->out.at[nresults + i];
        fwd->out.at[to].is = str_format(cx->arena, "residual %u of the linear function", to - nresults);
        to++;
    }
    linear->in = in, fwd->out.n = to;
}
static uint32_t transform_linearize(Ctx *cx, const Jaxpr *j, const Transform *t, Jaxpr **made) {
    Flag d = flag_of(cx, j, t), fwd = flag_of(cx, j, t), lin = flag_of(cx, j, t);
    Inner of;
    const Jaxpr *both = flag_needed_tangents(&d, NULL);
    if (!both) return 0;
    Val *primals = flag_primals(&fwd), *out = flag_values(&fwd, both->out.n);
    if (!flag_split(&fwd, both, primals, out, &of)) return 0;
    for (uint32_t i = 0; i < j->out.n; i++) flag_result(&fwd, out[i], i);
    add_linear(&fwd, &lin, &of, primals);
    made[1] = flag_end(&lin);
    /* What it needs of the residuals shows once it is tidied. The pipeline tidies it like any other program, which
       finds more: constants that nested programs were given the first time. */
    if (!made[1] || !(made[1] = pass_tidy(cx, made[1]))) return 0;
    settle_residuals(&fwd, &lin, made[1], j->out.n);
    made[0] = flag_end(&fwd);
    return made[0] ? 2 : 0;
}

uint32_t transform(Ctx *cx, const Jaxpr *j, const Transform *t, Jaxpr **made) {
    if (t->kind == TRANSFORM_LINEARIZE) return transform_linearize(cx, j, t, made);
    static Jaxpr *(*const by_kind[])(Ctx *, const Jaxpr *, const Transform *) = {
        [TRANSFORM_JVP] = transform_jvp,       [TRANSFORM_VJP] = transform_vjp,
        [TRANSFORM_GRAD] = transform_vjp,      [TRANSFORM_VALUE_AND_GRAD] = transform_vjp,
        [TRANSFORM_VMAP] = transform_vmap,     [TRANSFORM_JACFWD] = transform_jacfwd,
        [TRANSFORM_JACREV] = transform_jacrev, [TRANSFORM_HESSIAN] = transform_hessian};
    made[0] = by_kind[t->kind](cx, j, t);
    return made[0] != NULL;
}
