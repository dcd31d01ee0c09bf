/* Operations whose operands depend on modifiers. */
#include "parse.h"
#include "barrier.h"
#include "bulk.h"
#include "convert.h"
#include "memory.h"
#include "tensor.h"

static const char *const spaces[] = {"global", "const", "shared",       "shared::cta", "shared::cluster",
                                     "local",  "param", "param::entry", "param::func", NULL};
static const Space space_ids[] = {SPACE_GLOBAL, SPACE_GLOBAL, SPACE_SHARED, SPACE_SHARED, SPACE_SHARED,
                                  SPACE_LOCAL,  SPACE_PARAM,  SPACE_PARAM,  SPACE_PARAM};
static const char *const orders[] = {"volatile", "relaxed", "acquire", "release", "acq_rel", NULL};
static const MemoryOrder order_ids[] = {ORDER_RELAXED, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL};
/* Hints and scopes, which change nothing here. */
static const char *const hints[] = {"weak",
                                    "nc",
                                    "ca",
                                    "cg",
                                    "cs",
                                    "lu",
                                    "cv",
                                    "wb",
                                    "wt",
                                    "cta",
                                    "cluster",
                                    "gpu",
                                    "sys",
                                    "noftz",
                                    "unified",
                                    "mmio",
                                    "L1::evict_first",
                                    "L1::evict_last",
                                    "L1::evict_normal",
                                    "L1::no_allocate",
                                    "L1::evict_unchanged",
                                    "L2::64B",
                                    "L2::128B",
                                    "L2::256B",
                                    "L2::cache_hint",
                                    NULL};

static bool listed(Str s, const char *const *names) {
    for (; *names; names++)
        if (str_is(s, *names)) return true;
    return false;
}
Space space_of(const Parts *x) {
    int k = which_of(x, spaces);
    return k < 0 ? SPACE_GENERIC : space_ids[k];
}
static void memory_modifiers(Parser *p, Ins *i, const Parts *x, const char *const *more) {
    int order = which_of(x, orders);
    i->space = (uint8_t)space_of(x);
    i->order = (uint8_t)(order < 0 ? ORDER_WEAK : order_ids[order]);
    for (uint32_t k = 1; k + 1 < x->n; k++)
        if (!listed(x->at[k], spaces) && !listed(x->at[k], orders) && !listed(x->at[k], hints) &&
            !listed(x->at[k], more))
            wrong(p, "%.*s: modifier '.%.*s' is not known", SF(x->all), SF(x->at[k]));
}
static const char *const vectors[] = {"v2", "v4", "v8", NULL};
static uint32_t elements_of(const Parts *x) {
    int k = which_of(x, vectors);
    return k < 0 ? 1 : 2u << k;
}
static uint32_t log_of(uint32_t bytes) { return (uint32_t)__builtin_ctz(bytes); }
static uint32_t at_least_16(uint32_t bytes) { return bytes < 2 ? 2 : bytes; }
static void check_list(Parser *p, const Ins *i, const Parts *x) {
    if (i->n != elements_of(x)) wrong(p, "%.*s: %u registers", SF(x->all), i->n);
}
static void form_ld(Parser *p, Ins *i, const Parts *x) {
    const TypeInfo *t = last_type(p, x);
    uint32_t width = at_least_16(t->bytes);
    memory_modifiers(p, i, x, vectors);
    list_operand(p, i, &width);
    check_list(p, i, x);
    expect(p, ",");
    address_operand(p, i, &i->o[0], &i->offset);
    i->bytes = t->bytes, i->width = (uint8_t)width;
    i->run = load_runs[log_of(i->bytes)][log_of(width)][t->kind == 's'];
    if (!i->run) wrong(p, "%.*s to a register of %u bits", SF(x->all), 8 * width);
}
static void form_st(Parser *p, Ins *i, const Parts *x) {
    const TypeInfo *t = last_type(p, x);
    uint32_t width = at_least_16(t->bytes);
    memory_modifiers(p, i, x, vectors);
    address_operand(p, i, &i->o[0], &i->offset);
    expect(p, ",");
    list_operand(p, i, &width);
    check_list(p, i, x);
    i->bytes = t->bytes, i->width = (uint8_t)width;
    i->run = store_runs[log_of(i->bytes)][log_of(width)];
    if (!i->run) wrong(p, "%.*s of a register of %u bits", SF(x->all), 8 * width);
}

static const char *const atomics[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", NULL};
static void atomic(Parser *p, Ins *i, const Parts *x, bool result) {
    const TypeInfo *t = last_type(p, x);
    int operation = which_of(x, atomics);
    memory_modifiers(p, i, x, atomics);
    i->run = operation < 0 ? NULL : atomic_run(str(atomics[operation]), str(t->name));
    if (!i->run) wrong(p, "%.*s is not known", SF(x->all));
    i->o[0] = result ? operand(p, t->bytes) : sink_slot(p, t->bytes);
    if (result) expect(p, ",");
    address_operand(p, i, &i->o[1], &i->offset);
    expect(p, ",");
    i->o[2] = i->o[3] = operand(p, t->bytes);
    if (!strcmp(atomics[operation], "cas")) {
        expect(p, ",");
        i->o[3] = operand(p, t->bytes);
    }
}
static void form_atom(Parser *p, Ins *i, const Parts *x) { atomic(p, i, x, true); }
static void form_red(Parser *p, Ins *i, const Parts *x) { atomic(p, i, x, false); }

/* mov with braces packs and unpacks. */
static void unpack(Parser *p, Ins *i, uint32_t bytes) {
    uint32_t width = 0;
    list_operand(p, i, &width);
    expect(p, ",");
    i->o[0] = operand(p, bytes);
    i->run = run_unpack;
}
static void pack(Parser *p, Ins *i, uint32_t bytes) {
    uint32_t width = bytes / 2;
    list_operand(p, i, &width);
    i->run = run_pack;
}
static void form_mov(Parser *p, Ins *i, const Parts *x) {
    const Row *row = row_find(x->all);
    if (!row) wrong(p, "%.*s is not known", SF(x->all));
    if (row->operands[0] == 'p') {
        row_operands(p, i, row);
        return;
    }
    uint32_t bytes = last_type(p, x)->bytes;
    i->run = row->run;
    if (peek(p) == '{')
        unpack(p, i, bytes);
    else {
        i->o[0] = operand(p, bytes);
        expect(p, ",");
        if (peek(p) == '{')
            pack(p, i, bytes);
        else
            i->o[1] = operand(p, bytes);
    }
    if (i->n) {
        i->bytes = (uint8_t)bytes, i->width = (uint8_t)(bytes / i->n);
        if (bytes % i->n || i->width < 2) wrong(p, "%.*s of %u registers", SF(x->all), i->n);
    }
}

/* Generic addresses are those of a space in its window. */
static void form_cvta(Parser *p, Ins *i, const Parts *x) {
    if (!str_is(x->at[x->n - 1], "u64")) wrong(p, "%.*s is not known", SF(x->all));
    i->space = (uint8_t)space_of(x);
    i->run = has(x, "to") ? run_from_generic : run_to_generic;
    i->o[0] = operand(p, 8);
    expect(p, ",");
    i->o[1] = operand(p, 8);
}
static void form_isspacep(Parser *p, Ins *i, const Parts *x) {
    i->space = (uint8_t)space_of(x);
    i->run = run_isspacep;
    i->o[0] = operand(p, 1);
    expect(p, ",");
    i->o[1] = operand(p, 8);
}

static const char *const roundings[] = {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", NULL};
static const char *const cvt_modifiers[] = {"ftz", "sat", "satfinite", "relu", NULL};
static void form_cvt(Parser *p, Ins *i, const Parts *x) {
    const Row *row = row_find(x->all);
    if (x->n < 3) wrong(p, "%.*s: two types are expected", SF(x->all));
    const TypeInfo *from = type_info(x->at[x->n - 1]), *to = type_info(x->at[x->n - 2]);
    if (row && (!from || !to || strlen(row->operands) != 2)) {
        row_operands(p, i, row);
        return;
    }
    if (!from || !to) wrong(p, "%.*s is not known", SF(x->all));
    for (uint32_t k = 1; k + 2 < x->n; k++)
        if (!listed(x->at[k], roundings) && !listed(x->at[k], cvt_modifiers)) wrong(p, "%.*s is not known", SF(x->all));
    uint32_t to_width = at_least_16(to->bytes), from_width = at_least_16(from->bytes);
    i->o[0] = any_operand(p, &to_width);
    expect(p, ",");
    i->o[1] = any_operand(p, &from_width);
    int rounding = which_of(x, roundings);
    i->run = row && to_width == to->bytes && from_width == from->bytes
                 ? row->run
                 : convert_run(i, to, from, to_width, from_width, (ConvertRounding)(rounding + 1), has(x, "ftz"),
                               has(x, "sat") || has(x, "satfinite"));
    if (!i->run) wrong(p, "%.*s is not known", SF(x->all));
}

static void branch_to(Parser *p, Ins *i) {
    i->flow = FLOW_BRANCH;
    push(p->m->arena, &p->references, ((Reference){word(p), false, p->f->code.n, p->line}));
}
static void form_bra(Parser *p, Ins *i, const Parts *x) { branch_to(p, i); }
static void form_brx(Parser *p, Ins *i, const Parts *x) {
    i->o[0] = operand(p, 4);
    expect(p, ",");
    i->flow = FLOW_SWITCH;
    push(p->m->arena, &p->table_references, ((Reference){word(p), false, p->f->code.n, p->line}));
}
static void form_ret(Parser *p, Ins *i, const Parts *x) { i->flow = FLOW_RETURN; }
static void form_exit(Parser *p, Ins *i, const Parts *x) { i->flow = FLOW_EXIT; }

static uint32_t call_memory(Parser *p) {
    Str name = word(p);
    const Symbol *s = symbol_named(p, name);
    if (!s || s->space != SPACE_CALL) wrong(p, "'%.*s' is not .param memory of this call", SF(name));
    return (uint32_t)s->address;
}
/* call (result), name, (arguments) */
static void form_call(Parser *p, Ins *i, const Parts *x) {
    i->flow = FLOW_CALL;
    i->o[0] = NO_SLOT;
    if (accept(p, "(")) {
        i->o[0] = call_memory(p);
        expect(p, ")");
        expect(p, ",");
    }
    Str name = word(p);
    i->target = function_named(p->m, name);
    if (i->target == NO_SLOT) wrong(p, "function '%.*s' is not declared", SF(name));
    push(p->m->arena, &p->f->calls, i->target);
    i->list = p->f->lists.n;
    if (!accept(p, ",")) return;
    expect(p, "(");
    if (accept(p, ")")) return;
    do list_append(p, call_memory(p)), i->n++;
    while (accept(p, ","));
    expect(p, ")");
}

static const char *const barrier_kinds[] = {"sync", "arrive", "popc", "and", "or", NULL};
static const uint8_t barrier_ids[] = {BARRIER_SYNC, BARRIER_ARRIVE, BARRIER_RED, BARRIER_RED_AND, BARRIER_RED_OR};
/* bar.sync a[, threads]; bar.red.op d, a[, threads], p. `bar` is always aligned: all lanes of a warp come together. */
static void form_bar(Parser *p, Ins *i, const Parts *x) {
    if (has(x, "warp")) {
        const Row *row = row_find(x->all);
        if (!row) wrong(p, "%.*s is not known", SF(x->all));
        row_operands(p, i, row);
        return;
    }
    if (has(x, "cluster")) {
        bool waits = has(x, "wait");
        if (!waits && !has(x, "arrive")) wrong(p, "%.*s is not known", SF(x->all));
        i->run = waits ? run_cluster_wait : run_cluster_arrive, i->members = NO_SLOT;
        if (waits) i->flow = FLOW_BARRIER, i->sign = has(x, "aligned");
        return;
    }
    int kind = which_of(x, barrier_kinds);
    if (kind < 0) wrong(p, "%.*s is not known", SF(x->all));
    i->kind = barrier_ids[kind];
    i->flow = FLOW_BARRIER, i->run = run_barrier, i->members = NO_SLOT;
    i->sign = str_is(x->at[0], "bar") || has(x, "aligned");
    i->o[1] = NO_SLOT;
    if (i->kind >= BARRIER_RED) {
        i->o[2] = operand(p, i->kind == BARRIER_RED ? 4 : 1);
        expect(p, ",");
    }
    i->o[0] = operand(p, 4);
    uint32_t width = 4, more = accept(p, ",") ? any_operand(p, &width) : NO_SLOT;
    if (more != NO_SLOT && width == 4) {
        i->o[1] = more;
        if (i->kind >= BARRIER_RED) expect(p, ","), more = operand(p, 1);
    }
    if (i->kind >= BARRIER_RED) i->o[3] = more;
    p->f->clocks |= i->o[1] != NO_SLOT; /* it may be for some threads only */
}
/* Asks for nothing that shows: prefetch, policies of caches. */
static void form_hint(Parser *p, Ins *i, const Parts *x) {
    i->run = run_nothing;
    while (peek(p) && peek(p) != ';') p->at++;
}

static const FormRow forms[] = {
    {"mov", form_mov},
    {"ld", form_ld},
    {"ldu", form_ld},
    {"st", form_st},
    {"atom", form_atom},
    {"red", form_red},
    {"cvt", form_cvt},
    {"cvta", form_cvta},
    {"isspacep", form_isspacep},
    {"bra", form_bra},
    {"brx", form_brx},
    {"call", form_call},
    {"ret", form_ret},
    {"exit", form_exit},
    {"bar", form_bar},
    {"barrier", form_bar},
    {"prefetch", form_hint},
    {"prefetchu", form_hint},
    {"discard", form_hint},
    {"applypriority", form_hint},
    {"mma", form_mma},
    {"ldmatrix", form_ldmatrix},
    {"stmatrix", form_stmatrix},
    {"cp", form_cp},
    {"mbarrier", form_mbarrier},
    {"wgmma", form_wgmma},
    {"setmaxnreg", form_hint},
};
Form *form_of(Str first) {
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (str_is(first, forms[k].name)) return forms[k].form;
    return NULL;
}
