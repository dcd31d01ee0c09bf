/* Calls with tensors of DLPack. */
#include "tensor.h"
#include "extent.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- element types: of the program, and as DLPack has them. Integers and floats of less than 8 bits have a byte each,
   as in calls without DLPack, where it has packed ones. */
typedef struct {
    char name[16];
    uint8_t code, bits;
    uint8_t align; /* bytes */
    uint8_t words; /* of a key, along one more axis; or 0 */
} Element;
static const Element elements[] = {
    {"f32", kDLFloat, 32, 4, 0},
    {"f64", kDLFloat, 64, 8, 0},
    {"f16", kDLFloat, 16, 2, 0},
    {"bf16", kDLBfloat, 16, 2, 0},
    {"bool", kDLBool, 8, 1, 0},
    {"i8", kDLInt, 8, 1, 0},
    {"i16", kDLInt, 16, 2, 0},
    {"i32", kDLInt, 32, 4, 0},
    {"i64", kDLInt, 64, 8, 0},
    {"u8", kDLUInt, 8, 1, 0},
    {"u16", kDLUInt, 16, 2, 0},
    {"u32", kDLUInt, 32, 4, 0},
    {"u64", kDLUInt, 64, 8, 0},
    {"c64", kDLComplex, 64, 4, 0},
    {"c128", kDLComplex, 128, 8, 0},
    {"f8_e3m4", kDLFloat8_e3m4, 8, 1, 0},
    {"f8_e4m3", kDLFloat8_e4m3, 8, 1, 0},
    {"f8_e4m3b11fnuz", kDLFloat8_e4m3b11fnuz, 8, 1, 0},
    {"f8_e4m3fn", kDLFloat8_e4m3fn, 8, 1, 0},
    {"f8_e4m3fnuz", kDLFloat8_e4m3fnuz, 8, 1, 0},
    {"f8_e5m2", kDLFloat8_e5m2, 8, 1, 0},
    {"f8_e5m2fnuz", kDLFloat8_e5m2fnuz, 8, 1, 0},
    {"f8_e8m0fnu", kDLFloat8_e8m0fnu, 8, 1, 0},
    {"f4_e2m1fn", kDLUInt, 8, 1, 0},
    {"i2", kDLInt, 8, 1, 0},
    {"i4", kDLInt, 8, 1, 0},
    {"u2", kDLUInt, 8, 1, 0},
    {"u4", kDLUInt, 8, 1, 0},
    {"key<fry>", kDLUInt, 32, 4, 2},
    {"key<rbg>", kDLUInt, 32, 4, 4},
    {"key<urbg>", kDLUInt, 32, 4, 4},
};
static const Element *element_of(const jaxcc_type *t) {
    const Element *e = elements, *end = e + sizeof elements / sizeof *elements;
    while (e < end && strcmp(e->name, t->dtype) != 0) e++;
    assert(e < end);
    return e;
}

enum { TYPE_TEXT = 48, SHAPE_TEXT = 160 };
/* "float32", "float32x4", "bool" */
static void type_text(DLDataType t, char to[TYPE_TEXT]) {
    static const char *const names[] = {"int",
                                        "uint",
                                        "float",
                                        "handle",
                                        "bfloat",
                                        "complex",
                                        "bool",
                                        "float8_e3m4",
                                        "float8_e4m3",
                                        "float8_e4m3b11fnuz",
                                        "float8_e4m3fn",
                                        "float8_e4m3fnuz",
                                        "float8_e5m2",
                                        "float8_e5m2fnuz",
                                        "float8_e8m0fnu",
                                        "float6_e2m3fn",
                                        "float6_e3m2fn",
                                        "float4_e2m1fn"};
    bool known = t.code < sizeof names / sizeof *names, sized = t.code >= kDLBool && t.bits == 8;
    int n = known ? snprintf(to, TYPE_TEXT, "%s", names[t.code]) : snprintf(to, TYPE_TEXT, "code %u of ", t.code);
    if (!sized) n += snprintf(to + n, (size_t)(TYPE_TEXT - n), "%u", t.bits);
    if (t.lanes != 1) snprintf(to + n, (size_t)(TYPE_TEXT - n), "x%u", t.lanes);
}
/* "float32[2,3]" */
static void shape_text(const DLTensor *t, char to[SHAPE_TEXT]) {
    type_text(t->dtype, to);
    size_t n = strlen(to);
    n += (size_t)snprintf(to + n, SHAPE_TEXT - n, "[");
    for (int32_t k = 0; k < t->ndim && n < SHAPE_TEXT; k++)
        n += (size_t)snprintf(to + n, SHAPE_TEXT - n, "%s%lld", k ? "," : "", (long long)t->shape[k]);
    if (n < SHAPE_TEXT) snprintf(to + n, SHAPE_TEXT - n, "]");
}

/* ---- one tensor */
int32_t jaxcc_rt_fail_tensor(const jaxcc_rt_tensor *a, const char *format, ...) {
    char text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return jaxcc_rt_fail(JAXCC_ARGUMENT, "%s '%s' %s", a->what, a->type->name, text);
}
static int32_t check_device(const jaxcc_rt_tensor *a, const jaxcc_rt_memory *m) {
    static const char *const names[] = {[kDLCPU] = "kDLCPU",           [kDLCUDA] = "kDLCUDA",
                                        [kDLCUDAHost] = "kDLCUDAHost", [kDLOpenCL] = "kDLOpenCL",
                                        [kDLVulkan] = "kDLVulkan",     [kDLMetal] = "kDLMetal",
                                        [kDLROCM] = "kDLROCM",         [kDLROCMHost] = "kDLROCMHost",
                                        [kDLOneAPI] = "kDLOneAPI",     [kDLCUDAManaged] = "kDLCUDAManaged"};
    uint32_t is = (uint32_t)a->tensor->device.device_type;
    if (is == (uint32_t)m->usual || is == (uint32_t)m->also) return 0;
    const char *name = is < sizeof names / sizeof *names && names[is] ? names[is] : "another";
    return jaxcc_rt_fail_tensor(a, "has device type %u (%s), but must have %d (%s)", is, name, m->usual,
                                names[m->usual]);
}
static int32_t check_type(const jaxcc_rt_tensor *a, const Element *e) {
    char is[TYPE_TEXT], wanted[TYPE_TEXT];
    DLDataType t = a->tensor->dtype;
    if (t.code == e->code && t.bits == e->bits && t.lanes == 1) return 0;
    type_text(t, is);
    type_text((DLDataType){e->code, e->bits, 1}, wanted);
    return jaxcc_rt_fail_tensor(a, "has elements of type %s, but must have %s", is, wanted);
}
static int32_t check_rank(const jaxcc_rt_tensor *a, const Element *e) {
    const DLTensor *t = a->tensor;
    int32_t rank = a->type->rank + !!e->words;
    if (t->ndim != rank)
        return jaxcc_rt_fail_tensor(a, "has %d dimension%s, but must have %d", t->ndim, t->ndim == 1 ? "" : "s", rank);
    if (rank && !t->shape) return jaxcc_rt_fail_tensor(a, "has no shape");
    if (e->words && t->shape[rank - 1] != e->words)
        return jaxcc_rt_fail_tensor(a, "has %lld words for each %s, but must have %d", (long long)t->shape[rank - 1],
                                    e->name, e->words);
    return 0;
}
static bool is_empty(const DLTensor *t) {
    bool empty = false;
    for (int32_t k = 0; k < t->ndim; k++) empty |= t->shape[k] == 0;
    return empty;
}
static int32_t check_strides(const jaxcc_rt_tensor *a) {
    const DLTensor *t = a->tensor;
    uint64_t dense = 1;
    for (int32_t k = t->strides ? t->ndim : 0; k-- > 0; dense *= (uint64_t)t->shape[k])
        if (t->shape[k] != 1 && (uint64_t)t->strides[k] != dense)
            return jaxcc_rt_fail_tensor(a,
                                        "is not dense in row-major order: its stride along axis %d is %lld, not %lld",
                                        k, (long long)t->strides[k], (long long)dense);
    return 0;
}
static int32_t check_data(const jaxcc_rt_tensor *a, const Element *e, const jaxcc_rt_memory *m) {
    int32_t align = m->align > e->align ? m->align : e->align;
    if (!a->tensor->data) return jaxcc_rt_fail_tensor(a, "has no data");
    if ((uintptr_t)a->data % (uintptr_t)align) return jaxcc_rt_fail_tensor(a, "is not aligned to %d bytes", align);
    return m->check ? m->check(a) : 0;
}
static int32_t check_tensor(const jaxcc_rt_tensor *a, const jaxcc_rt_memory *m) {
    if (!a->tensor) return jaxcc_rt_fail_tensor(a, "is NULL");
    const Element *e = element_of(a->type);
    int32_t status = check_device(a, m);
    if (!status) status = check_type(a, e);
    if (!status) status = check_rank(a, e);
    if (status || is_empty(a->tensor)) return status;
    status = check_strides(a);
    return status ? status : check_data(a, e, m);
}

/* ---- a call */
typedef struct {
    const jaxcc_program *p;
    DLTensor *const *in, *const *out;
    jaxcc_rt_variables v;
    const int64_t **shapes; /* of the inputs, then of the outputs */
    void **data;            /* the same */
    int64_t *dims;
} Call;
static int32_t n_arrays(const jaxcc_program *p) { return p->n_in + p->n_out; }

static jaxcc_rt_tensor tensor(const Call *c, int32_t k) {
    bool output = k >= c->p->n_in;
    int32_t i = output ? k - c->p->n_in : k;
    const DLTensor *t = (output ? c->out : c->in)[i];
    return (jaxcc_rt_tensor){output ? "output" : "input", (output ? c->p->out : c->p->in) + i, t,
                             t && t->data ? (const char *)t->data + t->byte_offset : NULL};
}
static int32_t check_tensors(const Call *c, const jaxcc_rt_memory *m) {
    int32_t status = 0;
    if (!c->in && c->p->n_in) return jaxcc_rt_fail_null("in");
    if (!c->out && c->p->n_out) return jaxcc_rt_fail_null("out");
    for (int32_t k = 0; k < n_arrays(c->p) && !status; k++) {
        jaxcc_rt_tensor a = tensor(c, k);
        status = check_tensor(&a, m);
    }
    return status;
}

/* The value of a scalar "i32", "u4": its low bits. */
static int64_t integer(const char *dtype, const void *at) {
    int bits = atoi(dtype + 1), above = 64 - bits;
    uint64_t x = 0;
    assert(at);
    memcpy(&x, at, bits < 8 ? 1 : (size_t)bits / 8);
    x <<= above;
    return *dtype == 'i' ? (int64_t)x >> above : (int64_t)(x >> above);
}
static void list(Call *c, bool host) {
    const jaxcc_program *p = c->p;
    for (int32_t i = 0; i < p->n_dims; i++) c->v.at[c->v.n++] = (jaxcc_rt_variable){p->dims[i], false, 0};
    for (int32_t k = 0; k < n_arrays(p); k++) {
        jaxcc_rt_tensor a = tensor(c, k);
        c->shapes[k] = a.tensor->shape;
        c->data[k] = (void *)a.data;
        if (host && k < p->n_in && a.type->rank == 0 && strchr("iu", *a.type->dtype))
            c->v.at[c->v.n++] = (jaxcc_rt_variable){a.type->name, true, integer(a.type->dtype, a.data)};
    }
}

static int32_t check_extents(const Call *c, int32_t i) {
    char why[200], is[SHAPE_TEXT];
    jaxcc_rt_tensor a = tensor(c, i);
    for (int32_t k = 0; k < a.type->rank; k++) {
        if (!jaxcc_rt_extent_differs(&c->v, a.type, k, a.tensor->shape[k], why, sizeof why)) continue;
        shape_text(a.tensor, is);
        return jaxcc_rt_fail(JAXCC_DIMENSION, "%s '%s' is %s, but %s", a.what, a.type->name, is, why);
    }
    return 0;
}
static int32_t solve(Call *c) {
    const jaxcc_program *p = c->p;
    bool more = true;
    while (more) {
        more = jaxcc_rt_solve_more(p->in, p->n_in, c->shapes, &c->v);
        more |= jaxcc_rt_solve_more(p->out, p->n_out, c->shapes + p->n_in, &c->v);
    }
    int32_t status = 0;
    for (int32_t k = 0; k < n_arrays(p) && !status; k++) status = check_extents(c, k);
    for (int32_t i = 0; i < p->n_dims && !status; i++) {
        c->dims[i] = c->v.at[i].value;
        if (!c->v.at[i].known)
            status = jaxcc_rt_fail(JAXCC_DIMENSION, "dimension '%s' does not follow from the shapes", p->dims[i]);
    }
    return status;
}

int32_t jaxcc_rt_dlpack_in(const jaxcc_rt_memory *m, const jaxcc_program *p, DLTensor *const *in,
                           DLTensor *const *out) {
    Call c = {.p = p, .in = in, .out = out};
    int32_t status = check_tensors(&c, m);
    if (status) return status;
    int64_t n = n_arrays(p), most = (int64_t)p->n_dims + p->n_in;
    int64_t bytes = most * (int64_t)sizeof *c.v.at + (2 * n + p->n_dims) * (int64_t)sizeof(int64_t);
    c.v.at = jaxcc_rt_workspace_get(bytes);
    if (!c.v.at) return jaxcc_rt_fail_memory(bytes, "");
    c.shapes = (const int64_t **)(c.v.at + most);
    c.data = (void **)(c.shapes + n);
    c.dims = (int64_t *)(c.data + n);
    list(&c, m->host);
    status = solve(&c);
    if (!status) status = p->call(c.dims, (const void *const *)c.data, c.data + p->n_in);
    jaxcc_rt_workspace_put(c.v.at);
    return status;
}
int32_t jaxcc_rt_dlpack(const jaxcc_program *p, DLTensor *const *in, DLTensor *const *out) {
    static const jaxcc_rt_memory host = {.usual = kDLCPU, .also = kDLCUDAHost, .align = 1, .host = true};
    return jaxcc_rt_dlpack_in(&host, p, in, out);
}
