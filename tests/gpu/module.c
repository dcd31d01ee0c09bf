/* Variables: where they are; and what a module answers. */
#include "parse.h"
#include "machine.h"

static uint64_t aligned(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

/* Values in braces; names are addresses, which are known at the end. */
static void initial_value(Parser *p, Symbol *s, uint32_t bytes, uint64_t at) {
    uint64_t v = 0;
    if (is_number(p))
        v = number(p);
    else {
        Str name = word(p);
        bool generic = str_is(name, "generic") && accept(p, "(");
        if (generic) name = word(p);
        const Symbol *to = symbol_named(p, name);
        if (!to || to->space != SPACE_GLOBAL) wrong(p, "initial value '%.*s'", SF(name));
        v = to->address;
        if (generic) expect(p, ")");
        if (accept(p, "+")) v += number(p);
    }
    uint8_t *d = ptx_host(s->address, s->bytes);
    if (at + bytes > s->bytes) wrong(p, "more initial values than '%.*s' has", SF(s->name));
    memcpy(d + at, &v, bytes);
}
static void initialise(Parser *p, Symbol *s, uint32_t bytes) {
    memset(ptx_host(s->address, s->bytes), 0, s->bytes);
    ptx_mark_written(s->address, s->bytes);
    if (!accept(p, "=")) return;
    if (!accept(p, "{")) {
        initial_value(p, s, bytes, 0);
        return;
    }
    for (uint64_t at = 0; !accept(p, "}"); at += bytes) {
        initial_value(p, s, bytes, at);
        accept(p, ",");
    }
}
/* .align N .type NAME[N] */
static Symbol *variable_head(Parser *p, Space space, bool external, uint32_t *bytes) {
    Symbol *s = arena_new(p->m->arena, Symbol, 1);
    *s = (Symbol){.space = space, .external = external, .align = 1, .function = p->f ? p->function : NO_SLOT};
    *bytes = 1;
    while (accept(p, ".")) {
        Str w = word(p);
        const TypeInfo *t = type_info(w);
        if (str_is(w, "align"))
            s->align = small_number(p);
        else if (str_is(w, "attribute"))
            wrong(p, "variables with attributes");
        else if (t)
            *bytes = t->bytes;
    }
    if (s->align < *bytes) s->align = *bytes;
    s->name = str(str_c(p->m->arena, word(p)));
    uint64_t count = 1;
    for (; accept(p, "["); expect(p, "]")) count *= peek(p) == ']' ? 0 : number(p);
    s->bytes = *bytes * count;
    return s;
}
static void place_in_function(Parser *p, Symbol *s) {
    PtxFunc *f = p->f;
    uint32_t *at = s->space == SPACE_LOCAL ? &f->local_bytes : &p->call_at;
    s->address = aligned(*at, s->align);
    *at = (uint32_t)(s->address + s->bytes);
    if (f->call_bytes < p->call_at) f->call_bytes = p->call_at;
}
void parse_variable(Parser *p, Space space, bool external) {
    uint32_t bytes;
    Symbol *s = variable_head(p, space, external, &bytes);
    if (space == SPACE_GLOBAL) {
        if (!external) s->address = ptx_alloc(s->bytes);
        if (!external && !s->address) wrong(p, "no memory for '%.*s'", SF(s->name));
        if (!external) initialise(p, s, bytes);
    } else if (space != SPACE_SHARED)
        place_in_function(p, s);
    expect(p, ";");
    if (space == SPACE_GLOBAL || space == SPACE_SHARED) push(p->m->arena, &p->m->symbols, s);
    if (p->f && p->nscope < MAX_SCOPE_SYMBOLS) p->scope[p->nscope++] = s;
}

/* Shared memory: what the module and its functions that are called declare has one place for all; then come the
   variables of an entry, and what is given at the launch. */
static void need(PtxFunc *f, const Symbol *s) {
    if (s->external && s->align > f->dynamic_align) f->dynamic_align = s->align;
    if (!s->external && s->address + s->bytes > f->shared_bytes) f->shared_bytes = s->address + s->bytes;
}
static bool own(const PtxModule *m, const Symbol *s) {
    return s->function != NO_SLOT && m->functions.at[s->function]->entry;
}
enum { RECURSION_STACK = 1 << 16, STACK_ALIGN = SLOT_ALIGN };
/* What `f` needs with all that it calls. */
static void gather_needs(PtxModule *m, PtxFunc *f) {
    uint32_t deepest = 0;
    f->visited = true;
    each(const Symbol *, s, f->uses) need(f, *s);
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        const Symbol *s = m->symbols.at[k];
        if (s->space == SPACE_SHARED && s->function != NO_SLOT && m->functions.at[s->function] == f && !f->entry)
            need(f, s);
    }
    each(const uint32_t, c, f->calls) {
        PtxFunc *g = m->functions.at[*c];
        if (!g->visited) gather_needs(m, g);
        f->clocks |= g->clocks;
        if (g->shared_bytes > f->shared_bytes) f->shared_bytes = g->shared_bytes;
        if (g->dynamic_align > f->dynamic_align) f->dynamic_align = g->dynamic_align;
        uint32_t stack = g->gathered ? g->stack_bytes : RECURSION_STACK; /* not yet: it is being gathered */
        if (stack > deepest) deepest = stack;
    }
    f->stack_bytes = (uint32_t)aligned(f->local_bytes, STACK_ALIGN) + deepest;
    f->gathered = true;
}
void finish_module(Parser *p) {
    PtxModule *m = p->m;
    uint64_t at = 0;
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        Symbol *s = m->symbols.at[k];
        if (s->space != SPACE_SHARED || s->external || own(m, s)) continue;
        s->address = aligned(at, s->align);
        at = s->address + s->bytes;
    }
    for (uint32_t k = 0; k < m->functions.n; k++)
        if (!m->functions.at[k]->visited) gather_needs(m, m->functions.at[k]);
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        Symbol *s = m->symbols.at[k];
        if (s->space != SPACE_SHARED || !own(m, s)) continue;
        PtxFunc *f = m->functions.at[s->function];
        s->address = aligned(f->shared_bytes, s->align);
        f->shared_bytes = s->address + s->bytes;
    }
}
uint64_t dynamic_base(const PtxFunc *f) { return aligned(f->shared_bytes, f->dynamic_align ? f->dynamic_align : 1); }
uint32_t shared_total(const PtxFunc *f, uint32_t dynamic) {
    return (uint32_t)(dynamic ? dynamic_base(f) + dynamic : f->shared_bytes);
}

void ptx_unload(PtxModule *m) {
    if (!m) return;
    for (uint32_t k = 0; k < m->symbols.n; k++)
        if (m->symbols.at[k]->space == SPACE_GLOBAL) ptx_free(m->symbols.at[k]->address);
    arena_close(m->arena);
}
PtxFunc *ptx_function(PtxModule *m, const char *name) {
    uint32_t k = function_named(m, str(name));
    return k != NO_SLOT && m->functions.at[k]->entry && m->functions.at[k]->defined ? m->functions.at[k] : NULL;
}
uint64_t ptx_global(PtxModule *m, const char *name, size_t *bytes) {
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        const Symbol *s = m->symbols.at[k];
        if (s->space != SPACE_GLOBAL || s->external || !str_is(s->name, name)) continue;
        if (bytes) *bytes = s->bytes;
        return s->address;
    }
    return 0;
}
uint32_t ptx_param_count(const PtxFunc *f) { return f->params.n; }
size_t ptx_param_size(const PtxFunc *f, uint32_t i) { return f->params.at[i].bytes; }
void ptx_func_info(const PtxFunc *f, PtxInfo *info) {
    *info = f->info;
    info->shared_bytes = (uint32_t)f->shared_bytes, info->local_bytes = f->stack_bytes;
}
void ptx_opcodes(const PtxModule *m, void (*seen)(void *, const char *name, uint32_t uses), void *context) {
    each(const Opcode, o, m->opcodes)
        if (o->uses) seen(context, o->name.at, o->uses);
}
