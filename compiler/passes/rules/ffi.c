/* An ffi_call becomes a call of the runtime, which calls the handler that --ffi names: runtime/ffi.c describes the
   text. */
#include "../build.h"
#include "../../options.h"
#include <stdlib.h>

typedef struct {
    Builder *b;
    const Eqn *e;
    Text text;
} Ffi;

static bool refuse(const Ffi *f, const char *what) {
    return diag(f->b->cx->diags, f->e->span, "ffi_call: %s is not supported yet", what);
}
static void put_bytes(Ffi *f, Str s) { text_add(&f->text, "%u:%.*s ", s.n, SF(s)); }

/* xla::PrimitiveType, xla_data.proto. */
static int xla_type(Dtype d) {
    static const int8_t types[] = {
        [DT_bool] = 1,
        [DT_i2] = 26,
        [DT_i4] = 21,
        [DT_i8] = 2,
        [DT_i16] = 3,
        [DT_i32] = 4,
        [DT_i64] = 5,
        [DT_u2] = 27,
        [DT_u4] = 22,
        [DT_u8] = 6,
        [DT_u16] = 7,
        [DT_u32] = 8,
        [DT_u64] = 9,
        [DT_f4_e2m1fn] = 32,
        [DT_f8_e3m4] = 29,
        [DT_f8_e4m3] = 28,
        [DT_f8_e4m3b11fnuz] = 23,
        [DT_f8_e4m3fn] = 20,
        [DT_f8_e4m3fnuz] = 25,
        [DT_f8_e5m2] = 19,
        [DT_f8_e5m2fnuz] = 24,
        [DT_f8_e8m0fnu] = 33,
        [DT_bf16] = 16,
        [DT_f16] = 10,
        [DT_f32] = 11,
        [DT_f64] = 12,
        [DT_c64] = 15,
        [DT_c128] = 18,
    };
    return d < sizeof types ? types[d] : 0;
}

/* ---- attributes: numbers as Python and numpy write them, arrays, strings, dictionaries */
static Str unquoted(Str s) { return s.n >= 2 ? (Str){s.at + 1, s.n - 2} : s; }
static void put_utf8(Text *to, uint32_t c) {
    if (c < 0x80)
        text_add(to, "%c", c);
    else if (c < 0x800)
        text_add(to, "%c%c", 0xC0 | c >> 6, 0x80 | (c & 63));
    else if (c < 0x10000)
        text_add(to, "%c%c%c", 0xE0 | c >> 12, 0x80 | (c >> 6 & 63), 0x80 | (c & 63));
    else
        text_add(to, "%c%c%c%c", 0xF0 | c >> 18, 0x80 | (c >> 12 & 63), 0x80 | (c >> 6 & 63), 0x80 | (c & 63));
}
/* The content of a string printed by Python's repr. */
static Str python_string(Arena *arena, Str s) {
    static const char names[] = "abfnrtv", means[] = "\a\b\f\n\r\t\v";
    Text t = {.arena = arena};
    s = unquoted(s);
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.at[i] != '\\' || i + 1 == s.n) {
            text_put(&t, (Str){s.at + i, 1});
            continue;
        }
        char c = s.at[++i];
        const char *known = c ? strchr(names, c) : NULL;
        uint32_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (digits && i + digits < s.n) {
            char hex[9] = {0};
            memcpy(hex, s.at + i + 1, digits);
            put_utf8(&t, (uint32_t)strtoul(hex, NULL, 16));
            i += digits;
        } else
            text_add(&t, "%c", known ? means[known - names] : c);
    }
    return (Str){t.at, t.n};
}
static void put_hex(Ffi *f, const void *at, size_t n) {
    for (size_t i = 0; i < n; i++) text_add(&f->text, "%02x", ((const unsigned char *)at)[i]);
}
/* One number, as the bytes of its type. Integers above 2^63 are read as floats, which keep their spelling. */
static bool put_number(Ffi *f, const Value *v, Dtype d) {
    const DtypeInfo *info = &dtype_info[d];
    char *spelling = str_c(f->b->cx->arena, v->s);
    bool real = info->kind == DK_FLOAT,
         large = v->kind == V_FLOAT && info->kind == DK_UINT && !strpbrk(spelling, ".eE-");
    double x = v->kind == V_FLOAT ? v->f : v->kind == V_WORD ? strtod(spelling, NULL) : (double)v->i;
    float single = (float)x;
    int64_t i = large ? (int64_t)strtoull(spelling, NULL, 10) : v->i;
    bool number = v->kind == V_INT || v->kind == V_BOOL || large || (real && (v->kind == V_FLOAT || v->kind == V_WORD));
    if (v->kind == V_TEXT && str_is(v->s, "...")) return refuse(f, "an array that is not printed whole");
    if (!number) return refuse(f, "an attribute that is no number of its type");
    if (real && d != DT_f32 && d != DT_f64) return refuse(f, "an attribute of this type");
    if (d == DT_f32)
        put_hex(f, &single, 4);
    else if (d == DT_f64)
        put_hex(f, &x, 8);
    else
        put_hex(f, &i, info->bits / 8);
    return true;
}
static bool put_elements(Ffi *f, const Value *v, Dtype d, uint32_t *n) {
    if (v->kind != V_LIST || v->s.n) return ++*n, put_number(f, v, d);
    for (uint32_t i = 0; i < v->list.n; i++)
        if (!put_elements(f, &v->list.at[i], d, n)) return false;
    return true;
}
/* The default type, which numpy omits when it prints an array. */
static Dtype natural(const Value *v) {
    if (v->kind == V_LIST && !v->s.n) {
        for (uint32_t i = 0; i < v->list.n; i++)
            if (natural(&v->list.at[i]) != DT_i64) return natural(&v->list.at[i]);
        return v->list.n ? DT_i64 : DT_f64;
    }
    return v->kind == V_FLOAT || v->kind == V_WORD ? DT_f64 : v->kind == V_BOOL ? DT_bool : DT_i64;
}
static bool put_attributes(Ffi *f, const Value *list);

/* array([1., 2.], dtype=float32) */
static bool put_array(Ffi *f, const Value *v) {
    const Value *elements = v->list.n ? &v->list.at[0] : NULL;
    if (!elements) return refuse(f, "this array");
    Dtype d = natural(elements);
    for (uint32_t i = 1; i < v->list.n; i++) {
        const Value *field = &v->list.at[i];
        if (field->kind == V_PAIR && str_is(field->s, "dtype"))
            d = dtype_named(field->list.at[0].kind == V_DTYPE ? str(dtype_info[field->list.at[0].i].name)
                                                              : field->list.at[0].s);
    }
    if (!xla_type(d)) return refuse(f, "an array of this type");
    Text outer = f->text;
    uint32_t n = 0;
    f->text = (Text){.arena = outer.arena};
    bool ok = put_elements(f, elements, d, &n);
    Str hex = {f->text.at, f->text.n};
    f->text = outer;
    if (ok) text_add(&f->text, "a %d %u %.*s ", xla_type(d), n, SF(hex));
    return ok;
}
/* np.float32(1e-05), np.True_ */
static bool numpy_scalar(const Value *v, Dtype *d, Value *number) {
    if (v->kind == V_WORD && (str_is(v->s, "np.True_") || str_is(v->s, "np.False_"))) {
        *d = DT_bool;
        *number = (Value){.kind = V_BOOL, .i = v->s.at[3] == 'T'};
        return true;
    }
    if (v->kind != V_LIST || v->list.n != 1 || v->s.n < 4 || memcmp(v->s.at, "np.", 3) != 0) return false;
    *d = dtype_named((Str){v->s.at + 3, v->s.n - 3});
    *number = v->list.at[0];
    return *d != DT_none;
}
static bool put_value(Ffi *f, const Value *v) {
    Value number = *v;
    Dtype d = v->kind == V_BOOL ? DT_bool : v->kind == V_INT ? DT_i64 : DT_f64;
    bool record = v->kind == V_LIST && v->s.n && v->list.n;
    if (v->kind == V_STR) {
        text_put(&f->text, S("t"));
        put_bytes(f, python_string(f->b->cx->arena, v->s));
        return true;
    }
    if (record && str_is(v->s, "HashableArray")) return put_value(f, &v->list.at[0]);
    if (record && str_is(v->s, "array")) return put_array(f, v);
    if (record && str_is(v->s, "FrozenDict")) return text_put(&f->text, S("d")), put_attributes(f, &v->list.at[0]);
    if (!numpy_scalar(v, &d, &number) && v->kind != V_BOOL && v->kind != V_INT && v->kind != V_FLOAT &&
        v->kind != V_WORD)
        return refuse(f, "this attribute");
    text_add(&f->text, "s %d ", xla_type(d));
    bool ok = put_number(f, &number, d);
    text_put(&f->text, S(" "));
    return ok;
}
/* (('name', value), …) or {'name': value, …} */
static const Value *part(const Value *pair, uint32_t i) { return &pair->list.at[i]; }
static int by_name(const void *a, const void *b) {
    Str s = unquoted(part(*(const Value *const *)a, 0)->s), t = unquoted(part(*(const Value *const *)b, 0)->s);
    int order = memcmp(s.at, t.at, s.n < t.n ? s.n : t.n);
    return order ? order : (s.n > t.n) - (s.n < t.n);
}
static bool put_attributes(Ffi *f, const Value *list) {
    if (list->kind != V_LIST) return refuse(f, "this list of attributes");
    const Value **at = arena_new(f->b->cx->arena, const Value *, list->list.n + 1);
    for (uint32_t i = 0; i < list->list.n; i++) {
        at[i] = &list->list.at[i];
        bool pair =
            (at[i]->kind == V_PAIR || at[i]->kind == V_LIST) && at[i]->list.n == 2 && part(at[i], 0)->kind == V_STR;
        if (!pair) return refuse(f, "this list of attributes");
    }
    qsort(at, list->list.n, sizeof *at, by_name);
    text_add(&f->text, "%u ", list->list.n);
    for (uint32_t i = 0; i < list->list.n; i++) {
        put_bytes(f, python_string(f->b->cx->arena, part(at[i], 0)->s));
        if (!put_value(f, part(at[i], 1))) return false;
    }
    return true;
}

/* ---- buffers */
/* Entry i of a parameter that is a list of lists: a layout, minor to major. */
static bool layout_of(const Eqn *e, ParamKey k, uint32_t i, Ints *layout) {
    const Param *p = param_find(e, k);
    if (!p || p->value.kind != V_LIST || i >= p->value.list.n || p->value.list.at[i].kind != V_INTS) return false;
    *layout = p->value.list.at[i].ints;
    return true;
}
/* The axes in the order of memory; NULL if that is their own order. */
static int64_t *order_of(Ffi *f, ParamKey k, uint32_t i, uint32_t rank) {
    Ints layout;
    int64_t *order = arena_new(f->b->cx->arena, int64_t, rank + 1);
    bool plain = true;
    if (!layout_of(f->e, k, i, &layout) || layout.n != rank) return NULL;
    for (uint32_t a = 0; a < rank; a++) {
        order[a] = layout.at[rank - 1 - a];
        if (order[a] < 0 || order[a] >= rank) return NULL;
        plain = plain && order[a] == a;
    }
    return plain ? NULL : order;
}
static int64_t alias_of(const Eqn *e, uint32_t operand) {
    const Param *p = param_find(e, K_input_output_aliases);
    for (uint32_t i = 0; p && p->value.kind == V_LIST && i < p->value.list.n; i++) {
        const Value *pair = &p->value.list.at[i];
        if (pair->kind == V_INTS && pair->ints.n == 2 && pair->ints.at[0] == operand && pair->ints.at[1] < e->out.n)
            return pair->ints.at[1];
    }
    return -1;
}
static bool put_buffer(Ffi *f, Val v, int64_t alias, Dims *sizes) {
    const ArrayType *t = b_type(f->b, v);
    if (!xla_type(t->dtype)) return refuse(f, "a value of this type");
    text_add(&f->text, "%d %u %lld ", xla_type(t->dtype), t->rank, (long long)alias);
    for (uint32_t a = 0; a < t->rank; a++) sizes->at[sizes->n++] = t->dims[a];
    return true;
}
static const FfiBinding *binding(const Ffi *f, Str name) {
    const Options *o = f->b->cx->options;
    for (uint32_t i = 0; i < o->nffi; i++)
        if (str_eq(o->ffi[i].name, name)) return &o->ffi[i];
    diag(f->b->cx->diags, f->e->span, "ffi_call: no library is given for '%.*s': --ffi %.*s=LIBRARY:SYMBOL names it",
         SF(name), SF(name));
    return NULL;
}
bool expand_ffi_call(Builder *b, const Eqn *e, Val *out) {
    Arena *arena = b->cx->arena;
    Ffi f = {.b = b, .e = e, .text.arena = arena};
    const Param *attributes = param_find(e, K_attributes);
    const FfiBinding *to = binding(&f, param_word(e, K_target_name));
    if (!to) return false;
    if (param_int(e, K_custom_call_api_version, 4) != 4) return refuse(&f, "another custom_call_api_version than 4");
    LineCol at = diag_where(b->cx->diags, e->span);
    put_bytes(&f, to->library), put_bytes(&f, to->symbol);
    put_bytes(&f, str_format(arena, "%s:%u:%u", diag_path(b->cx->diags, e->span.file), at.line, at.col));
    text_add(&f.text, "%u %u ", e->in.n, e->out.n);
    Vals in = {arena_new(arena, Val, e->in.n + 1), e->in.n};
    Dims sizes = {arena_new(arena, Dim, MAX_RANK * (size_t)(e->in.n + e->out.n) + 1), 1};
    Type *types = arena_new(arena, Type, e->out.n + 1);
    int64_t **orders = arena_new(arena, int64_t *, e->out.n + 1);
    sizes.at[0] = e->in.n + e->out.n;
    for (uint32_t i = 0; i < e->in.n; i++) {
        int64_t *order = order_of(&f, K_input_layouts, i, b_type(b, e->in.at[i])->rank);
        in.at[i] = order ? b_transpose(b, e->in.at[i], order) : e->in.at[i];
        if (!put_buffer(&f, e->in.at[i], alias_of(e, i), &sizes)) return false;
    }
    for (uint32_t i = 0; i < e->out.n; i++) {
        const ArrayType *t = b_type(b, e->out.at[i]);
        int64_t *order = orders[i] = order_of(&f, K_output_layouts, i, t->rank);
        Dim dims[MAX_RANK];
        for (uint32_t a = 0; a < t->rank; a++) dims[a] = t->dims[order ? order[a] : a];
        types[i] = type_of(b->cx->types, t->dtype, t->rank, dims);
        if (!put_buffer(&f, e->out.at[i], -1, &sizes)) return false;
    }
    if (!attributes)
        text_put(&f.text, S("0"));
    else if (!put_attributes(&f, &attributes->value))
        return false;
    Param p[4] = {p_word(K_name, "ffi"), p_dims(b, K_sizes, sizes.n, sizes.at),
                  p_text(b, K_text, (Str){f.text.at, f.text.n}),
                  p_bool(K_has_side_effect, param_bool(e, K_has_side_effect))};
    Vals all = build_many(b, P_runtime_call, in.n, in.at, 4, p, e->out.n, types);
    for (uint32_t i = 0; i < e->out.n && !b->failed; i++) {
        out[i] = all.at[i];
        if (!orders[i]) continue;
        int64_t back[MAX_RANK];
        for (uint32_t a = 0; a < b_type(b, out[i])->rank; a++) back[orders[i][a]] = a;
        out[i] = b_transpose(b, out[i], back);
    }
    return !b->failed;
}
