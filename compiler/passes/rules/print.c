/* A debug_print becomes a call of the runtime with the values to print and a text that describes the message, as
   documented in runtime/print.c. Python's format string and the tree of arguments are parsed here. */
#include "../build.h"
#include <limits.h>

/* ---- its arguments */
typedef struct {
    Builder *b;
    const Eqn *e;
    const Value *args, *kwargs; /* of the tree; NULL: the operands are the arguments */
    const Value *statics;       /* ((number of a leaf, its value), …): what is no array */
    Text text, literal;         /* the pieces; text that belongs to none yet */
} Print;

static bool refuse(const Print *p, const char *what) {
    return diag(p->b->cx->diags, p->e->span, "debug_print: %s is not supported yet", what);
}
static bool is_leaf(const Value *v) { return v->kind == V_TEXT && str_is(v->s, "*"); }
static bool is_dict(const Value *v) { return v->kind == V_LIST && v->open == '{'; }
/* An element `key: value` of one; sets look like dicts. */
static bool has_key(const Value *x) { return x->kind == V_PAIR && x->list.n == 2; }
static const Value *item(const Value *v) { return v->kind == V_PAIR ? &v->list.at[v->list.n - 1] : v; }
static uint32_t leaves(const Value *v) {
    uint32_t n = 0;
    v = item(v);
    if (v->kind != V_LIST) return is_leaf(v);
    for (uint32_t i = 0; i < v->list.n; i++) n += leaves(&v->list.at[i]);
    return n;
}
static const Value *static_leaf(const Print *p, uint32_t leaf) {
    for (uint32_t i = 0; p->statics && i < p->statics->list.n; i++) {
        const Value *pair = &p->statics->list.at[i];
        if (pair->kind == V_LIST && pair->list.n == 2 && pair->list.at[0].i == leaf) return &pair->list.at[1];
    }
    return NULL;
}
/* The operand that a leaf is. */
static uint32_t operand_of(const Print *p, uint32_t leaf) {
    uint32_t k = leaf;
    for (uint32_t i = 0; i < leaf; i++) k -= static_leaf(p, i) != NULL;
    return k;
}

/* ---- pieces */
/* What runtime/print.c calls a SPEC. */
typedef struct {
    int fill, align, sign, alternate, width, group, precision, type;
} Spec;
static const Spec plain = {.precision = -1};

static void put_text(Print *p, Str s) { text_put(&p->literal, s); }
static void flush(Print *p) {
    if (p->literal.n) text_add(&p->text, "t%u:%.*s\n", p->literal.n, (int)p->literal.n, p->literal.at);
    p->literal.n = 0;
}
static void put_value(Print *p, char how, uint32_t operand, const Spec *s) {
    flush(p);
    text_add(&p->text, "%c%u %d %d %d %d %d %d %d %d\n", how, operand, s->fill, s->align, s->sign, s->alternate,
             s->width, s->group, s->precision, s->type);
}
static Str unquoted(Str s) { return s.n >= 2 ? (Str){s.at + 1, s.n - 2} : s; }

/* A tree as Python writes it: its leaves by repr. */
static bool put_tree(Print *p, const Value *v, uint32_t *leaf, bool top) {
    if (is_leaf(v)) {
        const Value *constant = static_leaf(p, *leaf);
        bool is_text = constant && (constant->kind == V_STR || constant->kind == V_TEXT || constant->kind == V_WORD);
        if (constant && constant->kind == V_NONE)
            put_text(p, S("None"));
        else if (constant && constant->kind == V_BOOL)
            put_text(p, constant->i ? S("True") : S("False"));
        else if (constant && constant->kind == V_INT)
            put_text(p, str_format(p->b->cx->arena, "%lld", (long long)constant->i));
        else if (is_text)
            put_text(p, top && constant->kind == V_STR ? unquoted(constant->s) : constant->s);
        else if (constant)
            return refuse(p, "this argument");
        else
            put_value(p, top ? 's' : 'r', operand_of(p, *leaf), &plain);
        ++*leaf;
        return true;
    }
    if (v->kind == V_NONE) return put_text(p, S("None")), true;
    if (v->kind != V_LIST || v->s.n) return refuse(p, "an argument of this type");
    put_text(p, v->open == '(' ? S("(") : v->open == '[' ? S("[") : S("{"));
    for (uint32_t i = 0; i < v->list.n; i++) {
        const Value *x = &v->list.at[i];
        if (i) put_text(p, S(", "));
        if (is_dict(v) && has_key(x)) put_text(p, str_format(p->b->cx->arena, "%.*s: ", SF(x->list.at[0].s)));
        if (!put_tree(p, item(x), leaf, false)) return false;
    }
    bool one = v->open == '(' && v->list.n == 1;
    put_text(p, v->open == '(' ? (one ? S(",)") : S(")")) : v->open == '[' ? S("]") : S("}"));
    return true;
}

/* ---- Python's format strings */
static bool one_of(const char *set, char c) { return c && strchr(set, c); }
/* [[fill]align][sign][#][0][width][grouping][.precision][type] */
static bool read_spec(Print *p, Str text, Spec *s) {
    const char *c = text.at, *end = c + text.n;
    *s = plain;
    if (end - c > 1 && one_of("<>=^", c[1])) s->fill = (unsigned char)*c++;
    if (c < end && one_of("<>=^", *c)) s->align = (unsigned char)*c++;
    if (c < end && one_of("+- ", *c)) s->sign = (unsigned char)*c++;
    if (c < end && *c == '#') s->alternate = *c++ != 0;
    if (c < end && *c == '0') {
        if (!s->align) s->align = '=', s->fill = '0';
        c++;
    }
    for (; c < end && *c >= '0' && *c <= '9' && s->width < 10000; c++) s->width = 10 * s->width + *c - '0';
    if (c < end && one_of(",_", *c)) s->group = (unsigned char)*c++;
    if (c < end && *c == '.')
        for (s->precision = 0, c++; c < end && *c >= '0' && *c <= '9' && s->precision < 10000; c++)
            s->precision = 10 * s->precision + *c - '0';
    if (c < end) s->type = (unsigned char)*c++;
    if (c == end && !(s->fill >= 0x80) && !(s->group && s->fill == '0')) return true;
    return refuse(p, str_format(p->b->cx->arena, "the format '%.*s'", SF(text)).at);
}
/* Can Python format a value of this type like this? */
static bool spec_fits(Print *p, const ArrayType *t, Str text, const Spec *s) {
    DtypeKind kind = dtype_info[t->dtype].kind;
    const char *types = kind == DK_FLOAT ? "eEfFgGn%" : kind == DK_COMPLEX ? "eEfFgGn" : "bcdoxXneEfFgG%";
    bool integer = kind != DK_FLOAT && kind != DK_COMPLEX, with_point = s->type && strchr("eEfFgG%", s->type);
    bool ok = !t->rank && (!s->type || strchr(types, s->type)) && !(integer && s->precision >= 0 && !with_point);
    ok = ok && !(kind == DK_COMPLEX && s->align == '=');
    return ok || refuse(p, str_format(p->b->cx->arena, "the format '%.*s' of %.*s", SF(text),
                                      SF(type_text(p->b->cx->arena, p->b->cx->types,
                                                   type_of(p->b->cx->types, t->dtype, t->rank, t->dims), NULL, NULL)))
                               .at);
}
static int64_t digits(Str s) {
    int64_t n = s.n ? 0 : -1;
    for (uint32_t i = 0; i < s.n && n >= 0; i++)
        n = s.at[i] >= '0' && s.at[i] <= '9' && n < 100000 ? 10 * n + s.at[i] - '0' : -1;
    return n;
}
/* The element of a list, a tuple, a dict; *leaf: the number of its first leaf. */
static const Value *child(const Value *v, Str key, uint32_t *leaf) {
    int64_t k = digits(key);
    if (v->kind != V_LIST) return NULL;
    for (uint32_t i = 0; i < v->list.n; i++) {
        const Value *x = &v->list.at[i];
        Str name = has_key(x) ? x->list.at[0].s : S("");
        if (is_dict(v) ? has_key(x) && str_eq(key, x->list.at[0].kind == V_STR ? unquoted(name) : name) : i == k)
            return item(x);
        *leaf += leaves(x);
    }
    return NULL;
}
/* The argument that a field names: 0, name, 1[2], x[key]. */
static const Value *argument(Print *p, Str name, uint32_t *next, uint32_t *leaf) {
    static const Value one = {.kind = V_TEXT, .s = {"*", 1}};
    uint32_t n = 0;
    while (n < name.n && name.at[n] != '[' && name.at[n] != '.') n++;
    Str first = {name.at, n};
    if (!n) first = str_format(p->b->cx->arena, "%u", (*next)++);
    *leaf = 0;
    if (!p->args) {
        *leaf = (uint32_t)digits(first);
        return digits(first) >= 0 && *leaf < p->e->in.n && n == name.n ? &one : NULL;
    }
    const Value *v = child(p->args, first, leaf);
    if (!v && digits(first) < 0) *leaf = leaves(p->args), v = child(p->kwargs, first, leaf);
    while (v && n < name.n) {
        uint32_t end = n + 1;
        while (end < name.n && name.at[end] != ']') end++;
        if (name.at[n] != '[' || end == name.n) return NULL;
        v = child(v, (Str){name.at + n + 1, end - n - 1}, leaf);
        n = end + 1;
    }
    return v;
}
/* {name!conversion:spec}, without the braces. */
static bool put_field(Print *p, Str f, uint32_t *next) {
    uint32_t n = 0, leaf;
    bool inside = false;
    for (; n < f.n && (inside || (f.at[n] != '!' && f.at[n] != ':')); n++)
        inside = f.at[n] == '[' || (inside && f.at[n] != ']');
    Str name = {f.at, n}, spec_text = {f.at + f.n, 0};
    char conversion = 0;
    if (n + 1 < f.n && f.at[n] == '!') conversion = f.at[n + 1], n += 2;
    if (n < f.n && f.at[n] == ':') spec_text = (Str){f.at + n + 1, f.n - n - 1};
    if (conversion && !strchr("rsa", conversion)) return refuse(p, "this conversion");
    const Value *v = argument(p, name, next, &leaf);
    Spec spec;
    if (!v) return diag(p->b->cx->diags, p->e->span, "debug_print: '{%.*s}' names no argument", SF(f));
    if (!read_spec(p, spec_text, &spec)) return false;
    const Value *constant = is_leaf(v) ? static_leaf(p, leaf) : NULL;
    if (!is_leaf(v) || constant) {
        if (spec_text.n) return refuse(p, "the format of what is no array");
        return put_tree(p, v, &leaf, conversion != 'r');
    }
    uint32_t operand = operand_of(p, leaf);
    if (operand >= p->e->in.n) return refuse(p, "a tree with more leaves than operands");
    const ArrayType *t = b_type(p->b, p->e->in.at[operand]);
    if (!conversion && spec_text.n && !spec_fits(p, t, spec_text, &spec)) return false;
    put_value(p, conversion ? (conversion == 's' ? 's' : 'r') : t->rank ? 's' : 'f', operand, &spec);
    return true;
}
static bool put_format(Print *p, Str f) {
    uint32_t next = 0, from = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        char c = f.at[i];
        if (c != '{' && c != '}') continue;
        put_text(p, (Str){f.at + from, i - from});
        if (i + 1 < f.n && f.at[i + 1] == c) { /* {{ is { */
            put_text(p, (Str){f.at + i, 1});
            from = ++i + 1;
            continue;
        }
        uint32_t end = i + 1;
        while (end < f.n && f.at[end] != '}' && f.at[end] != '{') end++;
        if (c == '}' || end == f.n || f.at[end] == '{') return refuse(p, "this format string");
        if (!put_field(p, (Str){f.at + i + 1, end - i - 1}, &next)) return false;
        from = end + 1;
        i = end;
    }
    put_text(p, (Str){f.at + from, f.n - from});
    return true;
}

/* ---- its values and numpy's options */
static const Value *option(const Eqn *e, const char *name) {
    const Param *p = param_find(e, K_np_printoptions);
    for (uint32_t i = 0; p && p->value.kind == V_LIST && i < p->value.list.n; i++) {
        const Value *pair = &p->value.list.at[i];
        if (pair->kind == V_LIST && pair->list.n == 2 && str_is(unquoted(pair->list.at[0].s), name))
            return &pair->list.at[1];
    }
    return NULL;
}
static int int_option(const Eqn *e, const char *name, int otherwise) {
    const Value *v = option(e, name);
    if (!v) return otherwise;
    if (v->kind == V_INT && v->i >= 0) return v->i < INT_MAX ? (int)v->i : INT_MAX;
    return v->kind == V_BOOL ? (int)v->i : INT_MAX; /* inf */
}
typedef struct {
    Val in[2];
    char kind;
    int bytes;
} Printed;
/* A value of a type that the runtime prints, and how it is described. */
static bool printed(Print *p, Val v, Printed *as) {
    Builder *b = p->b;
    Dtype d = b_type(b, v)->dtype;
    const DtypeInfo *info = &dtype_info[d];
    int bytes = info->bits / 8;
    *as = (Printed){.in = {v}, .bytes = bytes, .kind = 'f'};
    switch (info->kind) {
    case DK_BOOL: *as = (Printed){.in = {v}, .kind = 'b', .bytes = 1}; return true;
    case DK_SINT:
    case DK_UINT:
        as->kind = info->width < 8 ? 'm' : info->kind == DK_SINT ? 'i' : 'u';
        if (as->kind == 'm') as->in[0] = b_convert(b, v, DT_i8), as->bytes = 1;
        return true;
    case DK_FLOAT:
        if (bytes >= 4) return true;
        if (d != DT_f16) as->kind = 'n';
        as->in[0] = b_convert(b, v, DT_f32);
        return true;
    case DK_COMPLEX: *as = (Printed){.in = {b_real(b, v), b_imag(b, v)}, .kind = 'c', .bytes = bytes / 2}; return true;
    default: return refuse(p, info->name);
    }
}
bool expand_debug_print(Builder *b, const Eqn *e, Val *out) {
    Print p = {.b = b, .e = e, .text.arena = b->cx->arena, .literal.arena = b->cx->arena};
    Text text = {.arena = b->cx->arena};
    const Param *fmt = param_find(e, K_fmt), *tree = param_find(e, K_in_tree), *statics = param_find(e, K_static_args);
    const Value *top = tree && tree->value.kind == V_LIST && tree->value.list.n == 1 ? &tree->value.list.at[0] : NULL;
    if (top && top->kind == V_LIST && top->list.n == 2) p.args = &top->list.at[0], p.kwargs = &top->list.at[1];
    if (statics && statics->value.kind == V_LIST) p.statics = &statics->value;
    text_add(&text, "%d %d %d %d %d %u\n", int_option(e, "edgeitems", 3), int_option(e, "threshold", 1000),
             int_option(e, "precision", 8), int_option(e, "linewidth", 75), int_option(e, "suppress", 0), e->in.n);
    Vals in = {arena_new(b->cx->arena, Val, 2 * e->in.n + 1), 0};
    Dims sizes = {arena_new(b->cx->arena, Dim, 64 * (size_t)e->in.n + 1), 1};
    for (uint32_t i = 0; i < e->in.n; i++) {
        Printed as;
        if (!printed(&p, e->in.at[i], &as) || b->failed) return false;
        const ArrayType *t = b_type(b, as.in[0]);
        text_add(&text, "%c %d %u %s\n", as.kind, as.bytes, t->rank,
                 dtype_info[b_type(b, e->in.at[i])->dtype].long_name);
        for (uint32_t k = 0; k < 2; k++)
            if (as.in[k]) in.at[in.n++] = as.in[k];
        for (uint32_t k = 0; k < t->rank; k++) sizes.at[sizes.n++] = t->dims[k];
    }
    sizes.at[0] = in.n;
    Str format = fmt ? fmt->value.s : S("");
    bool fields = !param_has(e, K_has_placeholders) || param_bool(e, K_has_placeholders);
    if (fields && !put_format(&p, format)) return false;
    if (!fields) put_text(&p, format);
    for (uint32_t i = 0, leaf = 0; !fields && i < e->in.n; i++) {
        put_text(&p, S(" "));
        if (p.args && i < p.args->list.n ? !put_tree(&p, &p.args->list.at[i], &leaf, true)
                                         : (put_value(&p, 's', i, &plain), false))
            return false;
    }
    flush(&p);
    text_put(&text, (Str){p.text.at, p.text.n});
    Param params[3] = {p_word(K_name, "print"), p_dims(b, K_sizes, sizes.n, sizes.at),
                       p_text(b, K_text, (Str){text.at, text.n})};
    build_many(b, P_runtime_call, in.n, in.at, 3, params, 0, NULL);
    return true;
}
