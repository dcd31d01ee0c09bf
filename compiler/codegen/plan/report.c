#include "report.h"
#include "../cost.h"
#include "call.h"
#include "dot.h"
#include "threads.h"

/* Collects a plan as JSON (report.h). Numbers are dimensions: constants, or expressions of symbolic ones. */

typedef struct {
    Val v;
    uint32_t times; /* at so many indices */
} Read;
typedef struct {
    Report *report;
    Plan *p;
    Text *out;
    Str path; /* of the body: "3." */
    /* of the step being written: */
    const Step *step;
    struct {
        Read *at;
        uint32_t n, cap;
    } reads;
    Dim operations, bytes;
    struct Stored *stored; /* by number of a buffer */
} Writer;

/* What is written to a buffer first, and by which kernel. */
struct Stored {
    const Val *at;
    Str by;
};
static Dim add(const Writer *w, Dim a, Dim b) { return dim_add(w->p->cx->types, a, b); }
static Dim times(const Writer *w, Dim a, Dim b) { return dim_mul(w->p->cx->types, a, b); }
static Dim elements(const Writer *w, Val v) { return type_size(w->p->cx->types, val_type(w->p->cx, v)); }

/* ---- JSON */
/* The bytes that belong to the one at i, in UTF-8; 0: none, or they are no character. */
static uint32_t utf8_follow(Str s, uint32_t i) {
    unsigned char c = (unsigned char)s.at[i];
    uint32_t n = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
    if (c >= 0xf5 || n >= s.n - i) return 0;
    for (uint32_t k = 1; k <= n; k++)
        if (((unsigned char)s.at[i + k] & 0xc0) != 0x80) return 0;
    return n;
}
void report_string(Text *t, Str s) {
    text_put(t, S("\""));
    for (uint32_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.at[i];
        uint32_t more = utf8_follow(s, i);
        if (c >= 0x80 && !more)
            text_put(t, S("\\ufffd"));
        else if (more)
            text_put(t, (Str){s.at + i, 1 + more}), i += more;
        else if (c < 0x20 || c == '"' || c == '\\' || c == '<') /* `<`: a page may contain it */
            text_add(t, "\\u%04x", c);
        else
            text_put(t, (Str){s.at + i, 1});
    }
    text_put(t, S("\""));
}
/* The next member of an object or list, with its name in an object. */
static void key(Writer *w, const char *name) {
    char last = w->out->at[w->out->n - 1];
    text_add(w->out, "%s", last == '{' || last == '[' ? "" : ",");
    if (name) text_add(w->out, "\"%s\":", name);
}
static void open_list(Writer *w, const char *name, const char *bracket) {
    key(w, name), text_put(w->out, str(bracket));
}
static void close_list(Writer *w, const char *bracket) { text_put(w->out, str(bracket)); }
static void put_string(Writer *w, const char *name, Str s) { key(w, name), report_string(w->out, s); }
static void put_null(Writer *w, const char *name) { key(w, name), text_put(w->out, S("null")); }
static void put_count(Writer *w, const char *name, uint64_t n) {
    key(w, name), text_add(w->out, "%llu", (unsigned long long)n);
}
static void put_dim(Writer *w, const char *name, Dim d) {
    if (d == DIM_TOO_LARGE)
        put_null(w, name);
    else if (dim_is_const(d))
        key(w, name), text_add(w->out, "%lld", (long long)d);
    else
        put_string(w, name, ctx_dim_text(w->p->cx, d));
}
static void put_value(Writer *w, Val v, Dim bytes) {
    put_string(w, "value", val_name(w->p->cx, v));
    put_string(w, "type", ctx_type_text(w->p->cx, val_type(w->p->cx, v)));
    put_dim(w, "bytes", bytes);
}

/* ---- equations */
enum { MOST_OPERATIONS = 1 << 30 }; /* of one element */
static uint64_t operations_within(const Ctx *, const Jaxpr *);
/* Operations for one element of an equation's result, or of what it reduces; loops of an element count as one turn. */
static uint64_t operations(const Ctx *cx, const Eqn *e) {
    switch (prim_lower[e->prim]) {
    case LOWER_STDLIB: return STDLIB_COST;
    case LOWER_PROGRAM: return operations_within(cx, param_jaxpr(e, K_jaxpr));
    case LOWER_WHILE: return operations_within(cx, while_of(e).cond) + operations_within(cx, while_of(e).body);
    case LOWER_SCAN: return operations_within(cx, scan_of(e).body);
    case LOWER_CUM: return 1;
    default: return eqn_point(e) || eqn_reduces(e);
    }
}
static uint64_t operations_within(const Ctx *cx, const Jaxpr *j) {
    uint64_t n = 0;
    each(const Eqn, e, j->eqns) n += operations(cx, e);
    return n < MOST_OPERATIONS ? n : MOST_OPERATIONS;
}
/* Of one sum of a product. */
static Dim terms(const Writer *w, const Eqn *e) {
    Ints contracted = param_find(e, K_dimension_numbers)->value.list.at[0].ints;
    Dim n = 1;
    each(const int64_t, axis, contracted) n = times(w, n, val_array(w->p->cx, e->in.at[0])->dims[*axis]);
    return n;
}
static Dim operations_of(Writer *w, const Eqn *e) {
    uint32_t in_word = e->prim == P_dot_words ? 4 : e->prim == P_dot_halves ? 2 : e->prim == P_dot_general;
    if (in_word) return times(w, times(w, 2 * in_word, elements(w, e->out.at[0])), terms(w, e));
    if (!e->out.n) return 0;
    if (prim_lower[e->prim] == LOWER_SCATTER) return e->prim == P_scatter ? 0 : elements(w, e->in.at[2]);
    Val of = eqn_reduces(e) ? e->in.at[0] : e->out.at[0];
    return times(w, elements(w, of), (Dim)operations(w->p->cx, e));
}
static void put_equation(Writer *w, const Eqn *e, bool again) {
    LineCol at = diag_where(w->p->cx->diags, e->span);
    open_list(w, NULL, "{");
    put_string(w, "primitive", str(prim_name[e->prim]));
    if (e->out.n) put_string(w, "type", ctx_type_text(w->p->cx, val_type(w->p->cx, e->out.at[0])));
    if (e->span.file == INPUT_FILE) put_count(w, "line", at.line), put_count(w, "column", at.col);
    if (again) key(w, "again"), text_put(w->out, S("true"));
    close_list(w, "}");
    w->operations = add(w, w->operations, operations_of(w, e));
}
/* Is it the first time for this step? */
static bool first(Writer *w, Val v) {
    Report *r = w->report;
    while (r->seen.n <= v) push(r->plans.arena, &r->seen, (Stamp){0});
    bool yes = r->seen.at[v].step != r->step;
    r->seen.at[v].step = r->step;
    return yes;
}
/* The equations that evaluating v computes: of virtual values, and of attention's between its products. */
static void put_within(Writer *w, Val v) {
    const ValInfo *value = val_info(w->p->cx, v);
    const Info *info = plan_info(w->p, v);
    bool own = info->class == VAL_MEMBER && info->step == w->step->number && !info->home;
    if (value->lit || !info->e || !(own || info_virtual(info, w->step)) || !first(w, v)) return;
    each(const Val, x, info->e->in) put_within(w, *x);
    put_equation(w, info->e, !own && !info->attention);
}
static void put_equations(Writer *w) {
    const Step *s = w->step;
    w->report->step++;
    open_list(w, "equations", "[");
    if (s->e && !s->members.n) put_equation(w, s->e, false);
    each(const Val, v, s->members) (void)first(w, *v);
    each(const Val, v, s->members) {
        const Eqn *e = plan_info(w->p, *v)->e;
        each(const Val, x, e->in) put_within(w, *x);
        if (plan_info(w->p, *v)->out == 0) put_equation(w, e, false);
    }
    each(const Store, st, s->stores) put_within(w, st->v);
    close_list(w, "]");
}

/* ---- what is read and written */
static void saw(void *user, Val v, const Ix *index, Ix address) {
    Writer *w = user;
    if (!v || val_info(w->p->cx, v)->lit) return;
    const Info *info = plan_info(w->p, v);
    if (info->class == VAL_MEMBER && info->step == w->step->number && !info->home) return;
    if (first(w, v)) {
        w->report->seen.at[v].read = w->reads.n;
        push(w->p->arena, &w->reads, ((Read){v, 0}));
    }
    w->reads.at[w->report->seen.at[v].read].times++;
}
/* A part of the array, if the step's points read fewer elements than it has. */
static Dim bytes_read(const Writer *w, const Read *r) {
    Dim all = plan_bytes(w->p, r->v), n = r->times * (Dim)dtype_bytes(val_array(w->p->cx, r->v)->dtype);
    if (w->step->kind != STEP_LOOPS || w->step->carried) return all; /* a loop of elements reads more than its points */
    for (uint32_t d = 0; d < w->step->domain.n; d++) n = times(w, n, w->step->domain.at[d]);
    return dim_is_const(all) && dim_is_const(n) && n < all ? n : all;
}
static Str step_number(const Writer *w, uint32_t n) { return str_format(w->p->arena, "%.*s%u", SF(w->path), n); }
static Str origin(const Writer *w, Val v) {
    const Info *info = plan_info(w->p, v);
    if (info->buf && info->buf->kind == BUF_IN) return S("input");
    if (info->buf && info->buf->kind == BUF_CONST) return S("constant");
    if (info->buf && w->stored[info->buf->number].at) return w->stored[info->buf->number].by;
    return info->home || !info->step ? S("outside") : step_number(w, info->step);
}
static void put_reads(Writer *w) {
    const Step *s = w->step;
    w->report->step++;
    w->reads.n = 0;
    step_reads(w->p, (Step *)s, saw, w);
    for (uint32_t i = 0; s->narrays && i < s->e->in.n; i++) saw(w, s->e->in.at[i], NULL, 0);
    open_list(w, "reads", "[");
    each(const Read, r, w->reads) {
        Dim bytes = bytes_read(w, r);
        open_list(w, NULL, "{");
        put_value(w, r->v, bytes);
        put_string(w, "from", origin(w, r->v));
        close_list(w, "}");
        w->bytes = add(w, w->bytes, bytes);
    }
    close_list(w, "]");
}
static void put_write(Writer *w, const Val *at, const Buf *to, Dtype as) {
    Val v = *at;
    if (to && !w->stored[to->number].at) w->stored[to->number] = (struct Stored){at, step_number(w, w->step->number)};
    Dim bytes = times(w, elements(w, v), dtype_bytes(as ? as : val_array(w->p->cx, v)->dtype));
    open_list(w, NULL, "{");
    put_value(w, v, bytes);
    put_string(w, "to", to && to->kind == BUF_OUT ? str_format(w->p->arena, "output %u", to->k) : S("workspace"));
    close_list(w, "}");
    w->bytes = add(w, w->bytes, bytes);
}
static void put_writes(Writer *w) {
    const Step *s = w->step;
    open_list(w, "writes", "[");
    each(const Store, st, s->stores)
        if (st->buf->kind != BUF_ROW) put_write(w, &st->v, st->buf, st->as);
    for (uint32_t i = 0; s->narrays && i < s->e->out.n; i++)
        put_write(w, &s->e->out.at[i], s->arrays[s->e->in.n + i], DT_none);
    close_list(w, "]");
}

/* ---- time on the nominal machine */
static double operation_rate(const Writer *w) {
    const Target *t = w->p->target;
    const Step *s = w->step;
    bool product = s->kind == STEP_DOT;
    if (t->device)
        return product && s->dot->device && s->dot->device->form == DOT_MMA ? DEVICE_PRODUCTS : DEVICE_OPERATIONS;
    double lanes = (double)t->vector_bytes / (s->widest ? s->widest : 4);
    return NOMINAL_MHZ * 1e-3 * lanes * (product && t->fma ? 2 : 1);
}
/* Bytes in a cache, and bytes per ns from there; the last row is memory. */
typedef struct {
    int64_t bytes, rate;
} Level;
enum { CPU_LEVELS = 3, DEVICE_LEVELS = 1 };
static const Level cpu_memory[CPU_LEVELS] = {{CACHE_BYTES, CACHE_RATE},
                                             {LAST_CACHE_BYTES, LAST_CACHE_RATE},
                                             {INT64_MAX, MEMORY_RATE}},
                   device_memory[DEVICE_LEVELS] = {{INT64_MAX, DEVICE_RATE}};
static const Level *memory_of(const Plan *p, uint32_t *n) {
    *n = p->target->device ? DEVICE_LEVELS : CPU_LEVELS;
    return p->target->device ? device_memory : cpu_memory;
}
static int64_t byte_rate(const Writer *w, Dim bytes) {
    uint32_t n, i = 0;
    const Level *l = memory_of(w->p, &n);
    while (i + 1 < n && bytes > l[i].bytes) i++;
    return l[i].rate;
}
static void put_machine(Writer *w) {
    uint32_t n;
    const Level *l = memory_of(w->p, &n);
    open_list(w, "machine", "{");
    put_count(w, "launch", w->p->target->device ? LAUNCH_NS : 0);
    open_list(w, "memory", "[");
    for (uint32_t i = 0; i < n; i++) {
        open_list(w, NULL, "[");
        put_count(w, NULL, (uint64_t)l[i].bytes), put_count(w, NULL, (uint64_t)l[i].rate);
        close_list(w, "]");
    }
    close_list(w, "]"), close_list(w, "}");
}
static void put_time(Writer *w) {
    bool small = w->operations != DIM_TOO_LARGE && w->bytes != DIM_TOO_LARGE;
    bool known = small && dim_is_const(w->operations) && dim_is_const(w->bytes);
    if (w->step->nbodies || w->step->narrays) return; /* other code does the work */
    key(w, "rate");
    text_add(w->out, "%.1f", operation_rate(w));
    if (!known) {
        put_null(w, "nanoseconds"), put_null(w, "bound");
        return;
    }
    double arithmetic = (double)w->operations / operation_rate(w),
           memory = (double)w->bytes / (double)byte_rate(w, w->bytes);
    double longer = arithmetic > memory ? arithmetic : memory;
    key(w, "nanoseconds");
    text_add(w->out, "%.1f", longer + (w->p->target->device ? LAUNCH_NS : 0));
    put_string(w, "bound", arithmetic > memory ? S("arithmetic") : S("memory"));
}

/* ---- steps */
static const char *const kinds[STEP_KINDS] = {
    [STEP_LOOPS] = "loops",   [STEP_DOT] = "product",     [STEP_CUM] = "prefixes", [STEP_SCATTER] = "scatter",
    [STEP_SORT] = "sort",     [STEP_RUNTIME] = "runtime", [STEP_SPMD] = "devices", [STEP_CALL] = "call",
    [STEP_SCALAR] = "scalar", [STEP_COND] = "cond",       [STEP_WHILE] = "while",  [STEP_SCAN] = "scan"};
static const char *const reasons[APARTS] = {[APART_KIND] = "kernels of that kind take no such equations",
                                            [APART_LONG] = "that one has enough members",
                                            [APART_SHAPE] = "the shapes differ",
                                            [APART_LATER] = "something else that it reads is computed later",
                                            [APART_INDEX] =
                                                "it reads other elements than those that are computed at the time",
                                            [APART_ROWS] = "rows that are so few are reduced in parts, before it",
                                            [APART_REDUCTION] = "it reduces other axes, or one more than a kernel may",
                                            [APART_EDGES] = "rows are reduced apart from what is read across edges"};

static void put_work(Writer *w) {
    const Step *s = w->step;
    if (!w->p->target->device && s->dot)
        put_count(w, "lanes", s->dot->lanes ? s->dot->lanes : 1);
    else if (!w->p->target->device && s->lane)
        put_count(w, "lanes", s->widths.main ? s->widths.main : 1);
    if (s->row_bytes) put_count(w, "scratch", (uint64_t)s->row_bytes);
    if (!w->p->target->device) {
        put_dim(w, "units", s->units);
        return;
    }
    if (!s->grid.threads) return;
    put_count(w, "threads", s->grid.threads);
    put_dim(w, "blocks", grid_blocks(w->p, &s->grid));
}
static void put_apart(Writer *w) {
    const Begun *b = &w->step->begun;
    if (!reasons[b->why]) return;
    put_string(w, "apart", str(reasons[b->why]));
    put_string(w, "beside", step_number(w, b->step));
}
static void put_body(Writer *, const Body *, Str path);
static void put_bodies(Writer *w, Str number) {
    const Step *s = w->step;
    if (!s->nbodies) return;
    if (s->kind == STEP_SCAN) {
        Scan scan = scan_of(s->e);
        put_dim(w, "turns", scan_length(w->p->cx, &scan));
    } else if (s->kind == STEP_WHILE) {
        put_null(w, "turns");
    }
    open_list(w, "bodies", "[");
    for (uint32_t i = 0; i < s->nbodies; i++) {
        Str branch = s->nbodies > 1 ? str_format(w->p->arena, "%c", (char)('a' + i % 26)) : S("");
        put_body(w, s->bodies[i], str_format(w->p->arena, "%.*s%.*s.", SF(number), SF(branch)));
    }
    close_list(w, "]");
}
static void put_step(Writer *outer, const Step *s) {
    Writer w = *outer;
    Str number = step_number(&w, s->number);
    w.step = s, w.operations = w.bytes = 0;
    open_list(&w, NULL, "{");
    put_string(&w, "number", number);
    put_string(&w, "kind", str(kinds[s->kind]));
    bool calls = s->kind == STEP_CALL || s->kind == STEP_SPMD;
    if (s->kind == STEP_CALL) put_string(&w, "calls", callee_name(w.p->callees, s->call->callee));
    if (s->symbol.n) put_string(&w, calls ? "calls" : "symbol", s->symbol);
    put_count(&w, "first", s->start), put_count(&w, "last", s->end);
    put_equations(&w), put_reads(&w), put_writes(&w);
    if (!s->narrays && !s->nbodies) put_dim(&w, "operations", w.operations);
    if (!s->nbodies) put_dim(&w, "bytes", w.bytes);
    put_time(&w), put_work(&w), put_apart(&w);
    outer->reads = w.reads; /* room that grew */
    put_bodies(&w, number);
    close_list(&w, "}");
}
static void put_body(Writer *w, const Body *b, Str path) {
    Str outer = w->path;
    w->path = path;
    open_list(w, NULL, "[");
    each(Step *const, s, b->steps) put_step(w, *s);
    close_list(w, "]");
    w->path = outer;
}
static void put_buffers(Writer *w) {
    open_list(w, "buffers", "[");
    each(Buf *const, buf, w->p->bufs) {
        const Buf *b = *buf;
        if (b->kind != BUF_WORK || !b->first) continue;
        open_list(w, NULL, "{");
        const Val *first = w->stored[b->number].at;
        if (first) put_string(w, "value", val_name(w->p->cx, *first));
        put_dim(w, "offset", b->offset), put_dim(w, "bytes", b->bytes);
        put_count(w, "first", b->first), put_count(w, "last", b->last);
        close_list(w, "}");
    }
    close_list(w, "]");
}
Report *report_new(Arena *arena) {
    Report *r = arena_new(arena, Report, 1);
    r->plans.arena = arena;
    text_put(&r->plans, S("["));
    return r;
}
void report_plan(Report *r, Plan *p, Str name) {
    Writer w = {.report = r, .p = p, .out = &r->plans};
    w.stored = arena_new(p->arena, struct Stored, p->bufs.n + 1);
    open_list(&w, NULL, "{");
    put_string(&w, "name", name);
    put_string(&w, "cpu", str(p->target->device ? p->target->device->name : p->target->cpu));
    put_machine(&w);
    put_dim(&w, "workspace", p->workspace);
    key(&w, "kernels");
    text_put(w.out, S("["));
    each(Step *const, s, p->top->steps) put_step(&w, *s);
    close_list(&w, "]");
    put_buffers(&w);
    close_list(&w, "}");
}
