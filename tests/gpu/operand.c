/* Operands: each becomes a slot of the function's frame. */
#include "parse.h"

enum { PREDICATE = 1, SINK_WIDTH = 8 };

static uint32_t bytes_of(uint32_t width) { return width == PREDICATE ? 4 : width * LANES; }
uint32_t new_slot(Parser *p, uint32_t width, uint32_t count) {
    PtxFunc *f = p->f;
    uint32_t align = width == PREDICATE ? 4 : SLOT_ALIGN, at = (f->frame_bytes + align - 1) & ~(align - 1);
    if (count > (UINT32_MAX / 4 - at) / bytes_of(width)) wrong(p, "too many registers");
    f->frame_bytes = at + count * bytes_of(width);
    return at;
}
uint32_t constant_slot(Parser *p, uint32_t width, uint64_t value, const Symbol *s) {
    PtxFunc *f = p->f;
    if (width < 8 && width != PREDICATE) value &= ((uint64_t)1 << 8 * width) - 1;
    if (width == PREDICATE) value = value != 0;
    Constant c = {0};
    c.width = width, c.value = value, c.symbol = s;
    bool fresh;
    uint32_t id = intern(&p->constant_ids, &c, sizeof c, &fresh);
    if (fresh) {
        c.slot = new_slot(p, width, 1);
        push(p->m->arena, &f->constants, c);
    }
    return f->constants.at[id].slot;
}
uint32_t sink_slot(Parser *p, uint32_t width) {
    uint32_t *sink = width == PREDICATE ? &p->predicate_sink : &p->sink;
    if (*sink == NO_SLOT) *sink = new_slot(p, width == PREDICATE ? PREDICATE : SINK_WIDTH, 1);
    return *sink;
}
Symbol *symbol_named(Parser *p, Str name) {
    for (uint32_t k = p->nscope; k-- > 0;)
        if (str_eq(p->scope[k]->name, name)) return p->scope[k];
    for (uint32_t k = 0; k < p->m->symbols.n; k++)
        if (str_eq(p->m->symbols.at[k]->name, name)) return p->m->symbols.at[k];
    return NULL;
}

static const struct {
    const char *name;
    SpecialRegister which;
} special[] = {
    {"%tid.x", SR_TID},
    {"%tid.y", SR_TID + 1},
    {"%tid.z", SR_TID + 2},
    {"%ntid.x", SR_NTID},
    {"%ntid.y", SR_NTID + 1},
    {"%ntid.z", SR_NTID + 2},
    {"%ctaid.x", SR_CTAID},
    {"%ctaid.y", SR_CTAID + 1},
    {"%ctaid.z", SR_CTAID + 2},
    {"%nctaid.x", SR_NCTAID},
    {"%nctaid.y", SR_NCTAID + 1},
    {"%nctaid.z", SR_NCTAID + 2},
    {"%laneid", SR_LANEID},
    {"%warpid", SR_WARPID},
    {"%nwarpid", SR_NWARPID},
    {"%lanemask_eq", SR_LANEMASK_EQ},
    {"%lanemask_le", SR_LANEMASK_LE},
    {"%lanemask_lt", SR_LANEMASK_LT},
    {"%lanemask_ge", SR_LANEMASK_GE},
    {"%lanemask_gt", SR_LANEMASK_GT},
    {"%dynamic_smem_size", SR_DYNAMIC_SMEM},
    {"%clock", SR_ZERO},
    {"%smid", SR_ZERO},
    {"%nsmid", SR_ONE},
    {"%clusterid.x", SR_CLUSTER},
    {"%clusterid.y", SR_CTAID + 1},
    {"%clusterid.z", SR_CTAID + 2},
    {"%nclusterid.x", SR_NCLUSTER},
    {"%nclusterid.y", SR_NCTAID + 1},
    {"%nclusterid.z", SR_NCTAID + 2},
    {"%cluster_ctaid.x", SR_RANK},
    {"%cluster_ctaid.y", SR_ZERO},
    {"%cluster_ctaid.z", SR_ZERO},
    {"%cluster_nctaid.x", SR_RANKS},
    {"%cluster_nctaid.y", SR_ONE},
    {"%cluster_nctaid.z", SR_ONE},
    {"%cluster_ctarank", SR_RANK},
    {"%cluster_nctarank", SR_RANKS},
};
static bool is_clock(Str s) { return str_is(s, "%clock64") || str_is(s, "%globaltimer") || str_is(s, "%gridid"); }
static uint32_t register_slot(Parser *p, Str name, uint32_t *width) {
    uint32_t digits = 0, number = 0;
    while (digits < name.n && name.at[name.n - 1 - digits] >= '0' && name.at[name.n - 1 - digits] <= '9') digits++;
    for (uint32_t k = name.n - digits; k < name.n; k++) number = 10 * number + (uint32_t)(name.at[k] - '0');
    Str prefix = {name.at, name.n - digits};
    for (uint32_t k = p->nclasses; k-- > 0;) {
        const RegisterClass *c = &p->classes[k];
        *width = c->width;
        if (c->count == 0 && str_eq(c->name, name)) return c->base;
        if (digits && c->count && str_eq(c->name, prefix)) {
            if (number >= c->count) wrong(p, "register %.*s is not declared", SF(name));
            return c->base + number * bytes_of(c->width);
        }
    }
    return NO_SLOT;
}
static uint32_t special_slot(Parser *p, Str name, uint32_t *width) {
    if (is_clock(name)) return *width = 8, constant_slot(p, 8, 0, NULL);
    for (size_t k = 0; k < sizeof special / sizeof *special; k++)
        if (str_is(name, special[k].name)) return *width = 4, p->f->special + special[k].which * SPECIAL_BYTES;
    return NO_SLOT;
}
/* Of shared memory of the module a function says that it needs it. */
static void use_symbol(Parser *p, const Symbol *s) {
    if (s->space == SPACE_SHARED && s->function != p->function) push(p->m->arena, &p->f->uses, s);
}
static uint32_t symbol_slot(Parser *p, Str name, uint32_t width) {
    const Symbol *s = symbol_named(p, name);
    if (!s) wrong(p, "'%.*s' is not declared", SF(name));
    use_symbol(p, s);
    return constant_slot(p, width, 0, s);
}
uint32_t any_operand(Parser *p, uint32_t *width) {
    if (is_number(p)) return constant_slot(p, *width, number(p), NULL);
    Str name = dotted_word(p);
    uint32_t found = *width, slot;
    if (name.n == 0) wrong(p, "an operand is expected before '%.20s'", p->at);
    if (str_is(name, "_")) return sink_slot(p, *width);
    if (str_is(name, "WARP_SZ")) return constant_slot(p, *width, LANES, NULL);
    slot = register_slot(p, name, &found);
    if (slot == NO_SLOT && name.at[0] == '%') slot = special_slot(p, name, &found);
    if (slot == NO_SLOT) return symbol_slot(p, name, *width);
    *width = found;
    return slot;
}
uint32_t operand(Parser *p, uint32_t width) {
    uint32_t found = width;
    const char *from = p->at;
    uint32_t slot = any_operand(p, &found);
    if (found != width) {
        p->at = from, peek(p);
        Str name = dotted_word(p);
        if (width == PREDICATE || found == PREDICATE) wrong(p, "%.*s: is it a predicate?", SF(name));
        wrong(p, "%.*s has %u bits, not %u", SF(name), 8 * found, 8 * width);
    }
    return slot;
}

void address_operand(Parser *p, Ins *i, uint32_t *slot, int64_t *offset) {
    expect(p, "[");
    *offset = 0;
    uint32_t width = 8;
    if (is_number(p))
        *slot = constant_slot(p, 8, 0, NULL), *offset = (int64_t)number(p);
    else {
        peek(p);
        const char *from = p->at;
        Str name = dotted_word(p);
        const Symbol *s = symbol_named(p, name);
        if (s && i->space == SPACE_PARAM) i->space = s->space;
        p->at = from;
        *slot = any_operand(p, &width);
    }
    if (width != 4 && width != 8) wrong(p, "an address of %u bits", 8 * width);
    i->short_address = width == 4;
    if (accept(p, "+")) *offset = (int64_t)number(p);
    expect(p, "]");
}
uint32_t list_append(Parser *p, uint32_t slot) {
    push(p->m->arena, &p->f->lists, slot);
    return p->f->lists.n - 1;
}
static void list_element(Parser *p, Ins *i, uint32_t *width) {
    if (accept(p, "_")) {
        list_append(p, sink_slot(p, SINK_WIDTH));
        i->n++;
        return;
    }
    uint32_t found = *width, slot = any_operand(p, &found);
    if (i->n == 0 || *width == 0) *width = found;
    if (found != *width) wrong(p, "registers of %u and of %u bits in one list", 8 * *width, 8 * found);
    list_append(p, slot);
    i->n++;
}
void list_operand(Parser *p, Ins *i, uint32_t *width) {
    i->list = p->f->lists.n, i->n = 0;
    if (!accept(p, "{")) {
        list_element(p, i, width);
        return;
    }
    do list_element(p, i, width);
    while (accept(p, ","));
    expect(p, "}");
}

static uint32_t width_of(char letter) { return letter == 'h' ? 2 : letter == 'w' ? 4 : letter == 'x' ? 8 : PREDICATE; }
void row_operands(Parser *p, Ins *i, const Row *row) {
    uint32_t k = 0;
    i->run = row->run, i->flow = (uint8_t)row->flow, i->kind = row->kind;
    for (const char *c = row->operands; *c; c++) {
        bool second = *c == '|';
        if (second) c++;
        if (second && !accept(p, "|")) {
            i->o[k++] = sink_slot(p, width_of(*c));
            continue;
        }
        if (k && !second) expect(p, ",");
        i->o[k++] = operand(p, width_of(*c));
    }
    if (row->members) i->members = i->o[row->members - 1];
}
