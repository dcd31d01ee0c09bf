/* Functions and their bodies. */
#include "parse.h"
#include <stdlib.h>

uint32_t function_named(const PtxModule *m, Str name) {
    for (uint32_t k = 0; k < m->functions.n; k++)
        if (str_eq(m->functions.at[k]->name, name)) return k;
    return NO_SLOT;
}
static uint32_t aligned(uint32_t n, uint32_t align) { return (n + align - 1) & ~(align - 1); }
static Str name_copy(Parser *p, Str s) { return str(str_c(p->m->arena, s)); }

/* .reg .type NAME, NAME<COUNT>, … */
static void parse_registers(Parser *p) {
    expect(p, ".");
    Str type = word(p);
    const TypeInfo *t = type_info(type);
    bool predicate = str_is(type, "pred");
    if (!predicate && (!t || t->bytes < 2)) wrong(p, "registers of type .%.*s", SF(type));
    do {
        RegisterClass c = {.width = predicate ? 1 : t->bytes, .name = word(p)};
        if (accept(p, "<")) {
            c.count = small_number(p);
            expect(p, ">");
        }
        c.base = new_slot(p, c.width, c.count ? c.count : 1);
        if (p->nclasses == MAX_CLASSES) wrong(p, "more than %d kinds of registers", MAX_CLASSES);
        p->classes[p->nclasses++] = c;
        PtxInfo *n = &p->f->info;
        *(c.width == 1   ? &n->predicates
          : c.width == 2 ? &n->registers16
          : c.width == 4 ? &n->registers32
                         : &n->registers64) += c.count ? c.count : 1;
    } while (accept(p, ","));
    expect(p, ";");
}
static bool is_label(Parser *p) {
    peek(p);
    const char *q = p->at + strspn(p->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%");
    return q > p->at && *q == ':' && q[1] != ':';
}
/* .branchtargets A, B, …; behind its label */
static void parse_targets(Parser *p, Str name) {
    Label table = {name, p->f->lists.n, 0};
    do {
        list_append(p, 0);
        push(p->m->arena, &p->references, ((Reference){word(p), true, p->f->lists.n - 1, p->line}));
        table.n++;
    } while (accept(p, ","));
    expect(p, ";");
    push(p->m->arena, &p->tables, table);
}
static void parse_label(Parser *p) {
    Str name = word(p);
    expect(p, ":");
    if (accept(p, ".branchtargets"))
        parse_targets(p, name);
    else
        push(p->m->arena, &p->labels, ((Label){name, p->f->code.n, 0}));
}
static void parse_guard(Parser *p, Ins *i) {
    i->guard = NO_SLOT;
    if (!accept(p, "@")) return;
    i->negated = accept(p, "!");
    i->guard = operand(p, 1);
}
static Opcode *opcode_of(Parser *p, Str name, uint32_t *id) {
    bool fresh;
    *id = intern(&p->m->opcode_ids, name.at, name.n, &fresh);
    if (fresh) push(p->m->arena, &p->m->opcodes, ((Opcode){name_copy(p, name), 0, row_find(name)}));
    return &p->m->opcodes.at[*id];
}
static void parse_instruction(Parser *p) {
    Ins i = {.members = NO_SLOT};
    parse_guard(p, &i);
    Str name = dotted_word(p);
    i.line = p->line;
    if (name.n == 0) wrong(p, "an instruction is expected before '%.20s'", p->at);
    Opcode *o = opcode_of(p, name, &i.opcode);
    Parts x = parts_of(p, name);
    Form *form = form_of(x.at[0]);
    o->uses++;
    if (form)
        form(p, &i, &x);
    else if (o->row)
        row_operands(p, &i, o->row);
    else
        wrong(p, "instruction '%.*s' is not known", SF(name));
    expect(p, ";");
    push(p->m->arena, &p->f->code, i);
}
static void parse_directive(Parser *p) {
    Str w = word(p);
    if (str_is(w, "reg"))
        parse_registers(p);
    else if (str_is(w, "shared"))
        parse_variable(p, SPACE_SHARED, false);
    else if (str_is(w, "local"))
        parse_variable(p, SPACE_LOCAL, false);
    else if (str_is(w, "param"))
        parse_variable(p, SPACE_CALL, false);
    else if (str_is(w, "global") || str_is(w, "const"))
        parse_variable(p, SPACE_GLOBAL, false);
    else if (str_is(w, "pragma"))
        skip_statement(p);
    else if (str_is(w, "loc"))
        skip_line(p);
    else
        wrong(p, "directive .%.*s in a function", SF(w));
}
/* Inner braces are scopes of registers, variables and .param memory. */
static void parse_scope(Parser *p) {
    uint32_t classes = p->nclasses, scope = p->nscope, call = p->call_at;
    while (!accept(p, "}")) {
        if (accept(p, "{"))
            parse_scope(p);
        else if (accept(p, "."))
            parse_directive(p);
        else if (is_label(p))
            parse_label(p);
        else if (peek(p))
            parse_instruction(p);
        else
            wrong(p, "the text ends in a function");
    }
    p->nclasses = classes, p->nscope = scope, p->call_at = call;
}
static const Label *label_named(Parser *p, Str name, uint32_t line, bool table) {
    each(Label, l, p->labels)
        if (!table && str_eq(l->name, name)) return l;
    each(Label, t, p->tables)
        if (table && str_eq(t->name, name)) return t;
    p->line = line;
    wrong(p, "label '%.*s' is not in this function", SF(name));
}
static void resolve(Parser *p) {
    PtxFunc *f = p->f;
    each(Reference, r, p->references) {
        uint32_t at = label_named(p, r->name, r->line, false)->at;
        if (r->in_list)
            f->lists.at[r->at] = at;
        else
            f->code.at[r->at].target = at;
    }
    each(Reference, r, p->table_references) {
        const Label *t = label_named(p, r->name, r->line, true);
        f->code.at[r->at].list = t->at, f->code.at[r->at].n = t->n;
    }
}
/* ptxas (CUDA 13.0) does not store the low bits of a wider register that a floating-point operation computed, as PTX
   says: it converts the number to an integer. */
static bool is_store(Parser *p, const Ins *i) {
    return str_is(parts_of(p, p->m->opcodes.at[i->opcode].name).at[0], "st");
}
static bool computes_float(Parser *p, const Ins *i) {
    Parts x = parts_of(p, p->m->opcodes.at[i->opcode].name);
    uint32_t type = str_is(x.at[0], "cvt") ? 2 : 1; /* from the end */
    const TypeInfo *t = x.n > type ? type_info(x.at[x.n - type]) : NULL;
    return t && strchr("fg2", t->kind) && !str_is(x.at[0], "ld");
}
static void check_stored(Parser *p, const Ins *store, uint32_t slot) {
    each(Ins, i, p->f->code) {
        if (i->o[0] != slot || is_store(p, i) || !computes_float(p, i)) continue;
        p->line = store->line;
        wrong(p, "ptxas would convert the floating-point number of line %u to an integer of %u bits", i->line,
              8 * store->bytes);
    }
}
static void check_stores(Parser *p) {
    each(Ins, i, p->f->code) {
        if (i->bytes >= i->width || !is_store(p, i)) continue;
        for (uint32_t k = 0; k < i->n; k++) check_stored(p, i, p->f->lists.at[i->list + k]);
    }
}
void parse_body(Parser *p) {
    PtxFunc *f = p->f;
    p->nclasses = 0, p->call_at = 0;
    p->labels.n = p->tables.n = p->references.n = p->table_references.n = 0;
    p->sink = p->predicate_sink = NO_SLOT;
    p->constant_ids = (Intern){.arena = p->m->arena};
    f->special = 0, f->frame_bytes = SPECIAL_REGISTERS * SPECIAL_BYTES;
    parse_scope(p);
    Ins end = {.flow = FLOW_RETURN, .guard = NO_SLOT, .members = NO_SLOT, .line = p->line};
    opcode_of(p, S("ret"), &end.opcode);
    push(p->m->arena, &f->code, end);
    resolve(p);
    check_stores(p);
    f->defined = true;
}

/* What stands between the name and the body. */
static PtxDim3 dimensions(Parser *p) {
    PtxDim3 d = {small_number(p), 1, 1};
    if (accept(p, ",")) d.y = small_number(p);
    if (accept(p, ",")) d.z = small_number(p);
    return d;
}
static void parse_attributes(Parser *p, PtxFunc *f) {
    while (accept(p, ".")) {
        Str w = word(p);
        PtxDim3 d = is_number(p) ? dimensions(p) : (PtxDim3){0};
        if (str_is(w, "maxntid"))
            f->info.maxntid = d;
        else if (str_is(w, "reqntid"))
            f->info.reqntid = d;
        else if (str_is(w, "minnctapersm"))
            f->info.minnctapersm = d.x;
        else if (str_is(w, "maxnreg"))
            f->info.maxnreg = d.x;
        else if (str_is(w, "reqnctapercluster"))
            f->info.cluster = d.x * d.y * d.z, f->clocks |= f->info.cluster > 1;
        else if (str_is(w, "attribute"))
            skip_statement(p);
    }
}
/* .param .type .ptr .space .align N NAME[N]: its name, bytes and alignment. */
static Symbol parse_param(Parser *p) {
    Symbol s = {.align = 1, .space = SPACE_PARAM, .function = p->function, .bytes = 1};
    bool pointer = false;
    while (accept(p, ".")) {
        Str w = word(p);
        const TypeInfo *t = type_info(w);
        if (t)
            s.bytes = t->bytes;
        else if (str_is(w, "ptr"))
            pointer = true;
        else if (str_is(w, "align")) {
            uint32_t align = small_number(p);
            if (!pointer) s.align = align;
        }
    }
    if (s.align < s.bytes) s.align = (uint32_t)s.bytes;
    s.name = name_copy(p, word(p));
    if (accept(p, "[")) {
        s.bytes *= small_number(p);
        expect(p, "]");
    }
    return s;
}
static void declare(Parser *p, Symbol s) {
    Symbol *made = arena_new(p->m->arena, Symbol, 1);
    *made = s;
    if (p->nscope == MAX_SCOPE_SYMBOLS) wrong(p, "more than %d variables in a function", MAX_SCOPE_SYMBOLS);
    p->scope[p->nscope++] = made;
}
static void parse_params(Parser *p, PtxFunc *f) {
    f->params.n = 0, f->param_bytes = 0;
    if (!accept(p, "(")) return;
    while (!accept(p, ")")) {
        Symbol s = parse_param(p);
        uint32_t at = aligned(f->param_bytes, s.align);
        s.address = f->param_base + at;
        push(p->m->arena, &f->params, ((Param){s.name, at, (uint32_t)s.bytes}));
        f->param_bytes = at + (uint32_t)s.bytes;
        declare(p, s);
        accept(p, ",");
    }
}
static void parse_result(Parser *p, Symbol *result) {
    if (!accept(p, "(")) return;
    *result = parse_param(p);
    expect(p, ")");
}
static PtxFunc *function_of(Parser *p, Str name, bool entry) {
    p->function = function_named(p->m, name);
    if (p->function != NO_SLOT) return p->m->functions.at[p->function];
    PtxFunc *f = arena_new(p->m->arena, PtxFunc, 1);
    f->name = name_copy(p, name), f->entry = entry, f->module = p->m;
    p->function = p->m->functions.n;
    push(p->m->arena, &p->m->functions, f);
    return f;
}
enum { RESULT_ALIGN = 16 };
static void parse_function(Parser *p, bool entry) {
    Symbol result = {0};
    p->nscope = 0;
    if (!entry) parse_result(p, &result);
    PtxFunc *f = function_of(p, word(p), entry);
    if (result.bytes) {
        result.function = p->function;
        declare(p, result);
    }
    f->result_bytes = (uint32_t)result.bytes;
    f->param_base = aligned(f->result_bytes, RESULT_ALIGN);
    parse_params(p, f);
    parse_attributes(p, f);
    if (accept(p, ";")) return;
    expect(p, "{");
    if (f->defined) wrong(p, "function '%.*s' is defined twice", SF(f->name));
    p->f = f;
    parse_body(p);
    p->f = NULL;
    p->nscope = 0;
}

/* The directives of a module that tell an interpreter nothing. */
static void skip_directive(Parser *p, Str w) {
    if (str_is(w, "section")) {
        while (peek(p) && peek(p) != '{') p->at++;
        skip_braces(p);
    } else
        skip_line(p);
}
static void parse_top(Parser *p) {
    bool external = false;
    expect(p, ".");
    Str w = word(p);
    for (; str_is(w, "visible") || str_is(w, "extern") || str_is(w, "weak") || str_is(w, "common"); w = word(p)) {
        external |= str_is(w, "extern");
        expect(p, ".");
    }
    p->function = NO_SLOT;
    if (str_is(w, "entry"))
        parse_function(p, true);
    else if (str_is(w, "func"))
        parse_function(p, false);
    else if (str_is(w, "shared"))
        parse_variable(p, SPACE_SHARED, external);
    else if (str_is(w, "global") || str_is(w, "const"))
        parse_variable(p, SPACE_GLOBAL, external);
    else
        skip_directive(p, w);
}
PtxModule *ptx_load(const char *text, char *error, size_t size) {
    Arena *arena = arena_open();
    PtxModule *m = arena_new(arena, PtxModule, 1);
    Parser *p = calloc(1, sizeof *p);
    m->arena = m->opcode_ids.arena = arena;
    *p = (Parser){.m = m, .at = text, .line = 1, .error = error, .error_size = size};
    bool good = !setjmp(p->out);
    if (good) {
        while (peek(p)) parse_top(p);
        finish_module(p);
    }
    free(p);
    if (good) return m;
    ptx_unload(m);
    return NULL;
}
