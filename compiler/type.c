#include "dim.h"
#include <assert.h>
#include <ctype.h>
#include <math.h>

const DtypeInfo dtype_info[NDTYPES] = {
    [DT_none] = {"?", "?", 0, 0, DK_VOID},
#define DTYPE(id, name, bits, width, kind) [DT_##id] = {#id, name, bits, width, DK_##kind},
#include "dtypes.def"
};
const FloatFormat float_format[NDTYPES] = {
#define FLOAT(id, exponent, mantissa, bias, special) [DT_##id] = {exponent, mantissa, bias, FLOAT_##special},
#include "../runtime/float.def"
};

int64_t dtype_limit(Dtype d, bool most) {
    unsigned width = dtype_info[d].width, sign = dtype_info[d].kind == DK_SINT;
    if (most) return (int64_t)(UINT64_MAX >> (64 - width + sign));
    return sign ? INT64_MIN >> (64 - width) : 0;
}
double dtype_float_limit(Dtype d, bool most) {
    const FloatFormat *f = &float_format[d];
    if (f->special == FLOAT_POWER) return (double)NAN;
    double x = f->special == FLOAT_IEEE ? (double)INFINITY : float_decode(f, float_most(f));
    return most ? x : -x;
}

/* The exponents of the largest and the smallest number. */
static int float_top(const FloatFormat *f) {
    return (1 << f->exponent) - 1 - f->bias - (f->special == FLOAT_IEEE || f->special == FLOAT_POWER);
}
static int float_bottom(const FloatFormat *f) { return 1 - f->bias - f->mantissa; }
bool dtype_is_exact(Dtype from, Dtype to) {
    const DtypeInfo *a = &dtype_info[from], *b = &dtype_info[to];
    const FloatFormat *f = &float_format[from], *t = &float_format[to];
    if (from == to || a->kind == DK_BOOL) return from == to || t->special != FLOAT_POWER;
    bool whole = a->kind == DK_SINT || a->kind == DK_UINT;
    if (b->kind == DK_SINT || b->kind == DK_UINT)
        return whole && a->width < b->width && (a->kind == DK_UINT || b->kind == DK_SINT);
    if (b->kind != DK_FLOAT || t->special != FLOAT_IEEE || b->bits < 16) return false;
    if (whole) return (int)a->width <= t->mantissa + 1;
    return a->kind == DK_FLOAT && f->mantissa <= t->mantissa && float_top(f) <= float_top(t) &&
           float_bottom(f) >= float_bottom(t);
}

struct Types {
    Arena *arena;
    Intern types, extras, dims;
    struct {
        ArrayType *at;
        uint32_t n, cap;
    } all; /* by Type */
    struct {
        Type *at;
        uint32_t n, cap;
    } plain; /* by Type: the same type without its extra */
    struct {
        TypeExtra *at;
        uint32_t n, cap;
    } extra; /* by number; 0 is the empty one */
    DimTable *dim_table;
};

const char *dtype_text(Dtype d) {
    const DtypeInfo *i = &dtype_info[d];
    return i->kind == DK_KEY || i->kind == DK_VOID ? i->long_name : i->name;
}

Dtype dtype_named(Str s) {
    for (Dtype d = DT_none + 1; d < NDTYPES; d++)
        if (str_is(s, dtype_text(d)) || str_is(s, dtype_info[d].long_name)) return d;
    return DT_none;
}

/* Letters, then digits. */
static bool is_sized(Str s) {
    uint32_t k = 0;
    while (k < s.n && isalpha((unsigned char)s.at[k])) k++;
    uint32_t letters = k;
    while (k < s.n && s.at[k] >= '0' && s.at[k] <= '9') k++;
    return letters && k > letters && k == s.n;
}

Dtype dtype_similar(Str s) {
    Dtype best = DT_none;
    Similar near = similar_to(s, s.n < 6 ? 1 : 2);
    for (Dtype d = DT_none + 1; d < NDTYPES && is_sized(s); d++) {
        if (similar_offer(&near, str(dtype_text(d)))) best = d;
        if (similar_offer(&near, str(dtype_info[d].long_name))) best = d;
    }
    return best;
}

static Type type_add(Types *ts, Dtype dtype, uint32_t rank, const Dim *dims, uint32_t extra);

Types *types_new(Arena *arena) {
    Types *ts = arena_new(arena, Types, 1);
    ts->arena = arena;
    ts->types.arena = ts->extras.arena = arena;
    ts->dim_table = dim_table_new(arena);
    TypeExtra none = {0};
    intern(&ts->extras, "", 0, NULL);
    push(arena, &ts->extra, none);
    type_add(ts, DT_none, 0, NULL, 0);
    return ts;
}

DimTable *types_dims(const Types *ts) { return ts->dim_table; }

static Type type_add(Types *ts, Dtype dtype, uint32_t rank, const Dim *dims, uint32_t extra) {
    enum { SMALL = 16 };
    int64_t small[2 + SMALL];
    int64_t *key = rank <= SMALL ? small : arena_new(ts->arena, int64_t, 2 + (size_t)rank);
    key[0] = dtype;
    key[1] = extra;
    if (rank) memcpy(key + 2, dims, rank * sizeof *dims);
    bool fresh;
    Type id = intern(&ts->types, key, (2 + (size_t)rank) * sizeof *key, &fresh);
    if (!fresh) return id;
    Dim *copy = arena_new(ts->arena, Dim, rank);
    if (rank) memcpy(copy, dims, rank * sizeof *dims);
    ArrayType t = {.dtype = dtype, .rank = rank, .dims = copy, .extra = extra};
    push(ts->arena, &ts->all, t);
    push(ts->arena, &ts->plain, id);
    if (extra) {
        Type plain = type_add(ts, dtype, rank, dims, 0);
        ts->plain.at[id] = plain;
    }
    return id;
}

Type type_of(Types *ts, Dtype dtype, uint32_t rank, const Dim *dims) { return type_add(ts, dtype, rank, dims, 0); }

static Str str_copy(Arena *arena, Str s) { return (Str){str_c(arena, s), s.n}; }

/* Appends length and bytes, so that different lists of strings give different keys. */
static void key_put(Text *key, Str s) {
    text_add(key, "%u:", s.n);
    text_put(key, s);
}

Type type_with_extra(Types *ts, Type plain, const TypeExtra *x) {
    Text key = {.arena = ts->arena};
    const Str fields[] = {x->ref, x->space, x->varying, x->named, x->bound, x->opaque};
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) key_put(&key, fields[i]);
    for (uint32_t i = 0; i < x->nshards; i++) key_put(&key, x->shards[i]);
    bool empty = x->nshards == 0;
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) empty = empty && !fields[i].n;
    if (empty) return type_plain(ts, plain);
    bool fresh;
    uint32_t id = intern(&ts->extras, key.at, key.n, &fresh);
    if (fresh) {
        TypeExtra copy = {.ref = str_copy(ts->arena, x->ref),
                          .space = str_copy(ts->arena, x->space),
                          .varying = str_copy(ts->arena, x->varying),
                          .named = str_copy(ts->arena, x->named),
                          .bound = str_copy(ts->arena, x->bound),
                          .opaque = str_copy(ts->arena, x->opaque),
                          .shards = arena_new(ts->arena, Str, x->nshards),
                          .nshards = x->nshards};
        for (uint32_t i = 0; i < x->nshards; i++) copy.shards[i] = str_copy(ts->arena, x->shards[i]);
        push(ts->arena, &ts->extra, copy);
    }
    ArrayType t = *type_at(ts, plain);
    return type_add(ts, t.dtype, t.rank, t.dims, id);
}

Type type_plain(Types *ts, Type t) { return ts->plain.at[t]; }
const ArrayType *type_at(const Types *ts, Type t) {
    assert(t < ts->all.n);
    return &ts->all.at[t];
}
const TypeExtra *type_extra(const Types *ts, Type t) { return &ts->extra.at[type_at(ts, t)->extra]; }

/* "[8@x,2*b + 1;i:4]" */
static void put_dims(Text *out, const Types *ts, Type t, ValName *name, const void *user) {
    const ArrayType *a = type_at(ts, t);
    const TypeExtra *x = type_extra(ts, t);
    text_put(out, S("["));
    for (uint32_t i = 0; i < a->rank; i++) {
        if (i) text_put(out, S(","));
        dim_put(out, ts, a->dims[i], name, user);
        if (i < x->nshards && x->shards[i].n) text_add(out, "@%.*s", SF(x->shards[i]));
    }
    text_add(out, "%.*s]", SF(x->named));
}

Str type_text(Arena *arena, const Types *ts, Type t, ValName *name, const void *user) {
    const ArrayType *a = type_at(ts, t);
    const TypeExtra *x = type_extra(ts, t);
    Text out = {.arena = arena};
    if (x->opaque.n) return x->opaque;
    if (a->dtype == DT_tok || a->dtype == DT_unit) return str(dtype_info[a->dtype].long_name);
    if (x->ref.n) text_add(&out, "%.*s{", SF(x->ref));
    if (x->bound.n)
        text_add(&out, "bint%.*s", SF(x->bound));
    else
        text_add(&out, "%s%.*s", dtype_text(a->dtype), SF(x->space));
    put_dims(&out, ts, t, name, user);
    text_put(&out, x->varying);
    if (x->ref.n) text_put(&out, S("}"));
    return (Str){out.at, out.n};
}

Type type_substitute(Types *ts, Type t, DimMap *map, void *user) {
    ArrayType a = *type_at(ts, t);
    bool same = true;
    Dim *dims = NULL;
    for (uint32_t i = 0; i < a.rank; i++) {
        Dim d = dim_substitute(ts, a.dims[i], map, user);
        if (same && d == a.dims[i]) continue;
        if (same) {
            dims = arena_new(ts->arena, Dim, a.rank);
            if (i) memcpy(dims, a.dims, i * sizeof *dims);
            same = false;
        }
        dims[i] = d;
    }
    return same ? t : type_add(ts, a.dtype, a.rank, dims, a.extra);
}

Dim type_size(Types *ts, Type t) {
    const ArrayType *a = type_at(ts, t);
    Dim n = 1;
    for (uint32_t i = 0; i < a->rank; i++) n = dim_mul(ts, n, a->dims[i]);
    return n;
}
