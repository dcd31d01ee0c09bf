/* Programs written by hand in the C interface of a library, to test jaxcc-run without the compiler.
 */
#include "runtime/jaxcc.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
static char text[100];
static const char *error(void) { return text; }
static int64_t workspace(const int64_t *dims) { return dims[0] * 8; } /* of programs with one */
static void set_num_threads(int n) { (void)n; }
static void set_parallel_for(jaxcc_parallel_for *f, void *pool) { (void)f, (void)pool; }

/* Lists the program in a note, and describes it. */
#define PROGRAM(id, n_d, n_i, n_o)                                                                                     \
    __attribute__((section(".note.jaxcc"), used, aligned(4))) static const struct {                                    \
        int32_t owner, description, type;                                                                              \
        char name[8], program[(sizeof #id + 3) / 4 * 4];                                                               \
    } note_##id = {6, sizeof #id, 1, "jaxcc", #id};                                                                    \
    EXPORT const jaxcc_program *id##_program(void) {                                                                   \
        static const jaxcc_program p = {1,                                                                             \
                                        sizeof p,                                                                      \
                                        #id,                                                                           \
                                        n_d,                                                                           \
                                        n_i,                                                                           \
                                        n_o,                                                                           \
                                        dims_##id,                                                                     \
                                        in_##id,                                                                       \
                                        out_##id,                                                                      \
                                        id,                                                                            \
                                        error,                                                                         \
                                        workspace,                                                                     \
                                        set_num_threads,                                                               \
                                        set_parallel_for};                                                             \
        return &p;                                                                                                     \
    }
#define EXTENTS (const char *const[])

/* scale: (b) x:f32[b,2*b + 1], k:i32[] → y:f32[2*b + 1,b], count:i64[] */
static const char *const dims_scale[] = {"b"};
static const jaxcc_type in_scale[] = {{"x", "f32", 2, EXTENTS{"b", "2*b + 1"}}, {"k", "i32", 0, NULL}};
static const jaxcc_type out_scale[] = {{"out0", "f32", 2, EXTENTS{"2*b + 1", "b"}}, {"out1", "i64", 0, NULL}};
static int32_t scale(const int64_t *dims, const void *const *in, void *const *out) {
    int64_t b = dims[0], n = 2 * b + 1;
    const float *x = in[0];
    float *y = out[0];
    int32_t k = *(const int32_t *)in[1];
    if (k < 0) return snprintf(text, sizeof text, "k is %d", k), JAXCC_CHECK;
    for (int64_t i = 0; i < b; i++)
        for (int64_t j = 0; j < n; j++) y[j * b + i] = x[i * n + j] * (float)k;
    *(int64_t *)out[1] = b * n;
    return 0;
}
PROGRAM(scale, 1, 2, 2)

/* range: n:i32[] → f64[n]: a dimension that an input's value gives */
static const char *const dims_range[] = {NULL};
static const jaxcc_type in_range[] = {{"n", "i32", 0, NULL}};
static const jaxcc_type out_range[] = {{"out0", "f64", 1, EXTENTS{"n"}}};
static int32_t range(const int64_t *dims, const void *const *in, void *const *out) {
    for (int32_t i = 0; i < *(const int32_t *)in[0]; i++) ((double *)out[0])[i] = i / 4.0;
    return 0;
}
PROGRAM(range, 0, 1, 1)

/* some: → n:i32[], i32[n]: an extent that the program computes */
static const char *const dims_some[] = {NULL};
static const jaxcc_type in_some[] = {{"", "", 0, NULL}};
static const jaxcc_type out_some[] = {{"out0", "i32", 0, NULL}, {"out1", "i32", 1, EXTENTS{"out0"}}};
static void release(jaxcc_array *a) { free(a->data); }
static int32_t some(const int64_t *dims, const void *const *in, void *const *out) {
    static const int64_t three[] = {3};
    jaxcc_array *a = out[1];
    *(int32_t *)out[0] = 3;
    *a = (jaxcc_array){malloc(12), 1, three, release};
    memcpy(a->data, (int32_t[]){4, 5, 6}, 12);
    return 0;
}
PROGRAM(some, 0, 0, 2)

/* half: (b, c) x:f16[b], y:bf16[mod(b, 4),c] → f16[b], bf16[mod(b, 4),c], bool[] */
static const char *const dims_half[] = {"b", "c"};
static const jaxcc_type in_half[] = {{"x", "f16", 1, EXTENTS{"b"}}, {"y", "bf16", 2, EXTENTS{"mod(b, 4)", "c"}}};
static const jaxcc_type out_half[] = {
    {"out0", "f16", 1, EXTENTS{"b"}}, {"out1", "bf16", 2, EXTENTS{"mod(b, 4)", "c"}}, {"out2", "bool", 0, NULL}};
static int32_t half(const int64_t *dims, const void *const *in, void *const *out) {
    memcpy(out[0], in[0], (size_t)dims[0] * 2);
    memcpy(out[1], in[1], (size_t)(dims[0] % 4 * dims[1]) * 2);
    *(uint8_t *)out[2] = 1;
    return 0;
}
PROGRAM(half, 2, 2, 3)

/* values: → f32[2,3,2], c64[2], u8[1200], key<fry>[1] */
static const char *const dims_values[] = {NULL};
static const jaxcc_type in_values[] = {{"", "", 0, NULL}};
static const jaxcc_type out_values[] = {{"out0", "f32", 3, EXTENTS{"2", "3", "2"}},
                                        {"out1", "c64", 1, EXTENTS{"2"}},
                                        {"out2", "u8", 1, EXTENTS{"1200"}},
                                        {"out3", "key<fry>", 1, EXTENTS{"1"}}};
static int32_t values(const int64_t *dims, const void *const *in, void *const *out) {
    for (int i = 0; i < 12; i++) ((float *)out[0])[i] = i == 3 ? NAN : i == 4 ? -INFINITY : (float)i / 10;
    memcpy(out[1], (float[]){1, -2.5f, 0, 1e-10f}, 16);
    for (int i = 0; i < 1200; i++) ((uint8_t *)out[2])[i] = (uint8_t)i;
    memcpy(out[3], (uint32_t[]){1, 4000000000u}, 8);
    return 0;
}
PROGRAM(values, 0, 0, 4)

/* others: what is near the values of `values` */
static const char *const dims_others[] = {NULL};
static int32_t others(const int64_t *dims, const void *const *in, void *const *out) {
    values(dims, in, out);
    float *y = out[0];
    y[0] = 0.009f, y[3] = 0.3f, y[4] = INFINITY, y[7] = 0.6f;
    memcpy(out[1], (float[]){1.5f, -2.5f, 0, 2}, 16);
    ((uint8_t *)out[2])[300] = 45;
    return 0;
}
static const jaxcc_type in_others[] = {{"", "", 0, NULL}};
#define out_others out_values
PROGRAM(others, 0, 0, 4)

/* inputs: → f32[3,7], i32[]: what `scale` takes */
static const char *const dims_inputs[] = {NULL};
static const jaxcc_type in_inputs[] = {{"", "", 0, NULL}};
static const jaxcc_type out_inputs[] = {{"out0", "f32", 2, EXTENTS{"3", "7"}}, {"out1", "i32", 0, NULL}};
static int32_t inputs(const int64_t *dims, const void *const *in, void *const *out) {
    for (int i = 0; i < 21; i++) ((float *)out[0])[i] = (float)i;
    *(int32_t *)out[1] = 2;
    return 0;
}
PROGRAM(inputs, 0, 0, 2)

/* narrow: → f16[7], bf16[3,2]: what `half` takes */
static const char *const dims_narrow[] = {NULL};
static const jaxcc_type in_narrow[] = {{"", "", 0, NULL}};
static const jaxcc_type out_narrow[] = {{"out0", "f16", 1, EXTENTS{"7"}}, {"out1", "bf16", 2, EXTENTS{"3", "2"}}};
static int32_t narrow(const int64_t *dims, const void *const *in, void *const *out) {
    for (int i = 0; i < 7; i++) ((uint16_t *)out[0])[i] = (uint16_t)(0x3c00 + i);
    for (int i = 0; i < 6; i++) ((uint16_t *)out[1])[i] = (uint16_t)(0x3f80 + i);
    return 0;
}
PROGRAM(narrow, 0, 0, 2)

/* row: → f32[7] */
static const char *const dims_row[] = {NULL};
static const jaxcc_type in_row[] = {{"", "", 0, NULL}}, out_row[] = {{"out0", "f32", 1, EXTENTS{"7"}}};
static int32_t row(const int64_t *dims, const void *const *in, void *const *out) {
    memset(out[0], 0, 28);
    return 0;
}
PROGRAM(row, 0, 0, 1)

/* halves: → f16[7], f32[7]: the second is nothing that `half` takes */
static const char *const dims_halves[] = {NULL};
static const jaxcc_type in_halves[] = {{"", "", 0, NULL}};
static const jaxcc_type out_halves[] = {{"out0", "f16", 1, EXTENTS{"7"}}, {"out1", "f32", 1, EXTENTS{"7"}}};
static int32_t halves(const int64_t *dims, const void *const *in, void *const *out) {
    memset(out[0], 0, 14);
    memset(out[1], 0, 28);
    return 0;
}
PROGRAM(halves, 0, 0, 2)

/* wide: → f64[2], i64[]: wrong types for everything above */
static const char *const dims_wide[] = {NULL};
static const jaxcc_type in_wide[] = {{"", "", 0, NULL}};
static const jaxcc_type out_wide[] = {{"out0", "f64", 1, EXTENTS{"2"}}};
static int32_t wide(const int64_t *dims, const void *const *in, void *const *out) {
    memset(out[0], 0, 16);
    return 0;
}
PROGRAM(wide, 0, 0, 1)

/* least, most: → i64[] */
static const char *const dims_least[] = {NULL}, *const dims_most[] = {NULL};
static const jaxcc_type in_least[] = {{"", "", 0, NULL}}, in_most[] = {{"", "", 0, NULL}};
static const jaxcc_type out_least[] = {{"out0", "i64", 0, NULL}}, out_most[] = {{"out0", "i64", 0, NULL}};
static int32_t least(const int64_t *dims, const void *const *in, void *const *out) {
    *(int64_t *)out[0] = INT64_MIN;
    return 0;
}
static int32_t most(const int64_t *dims, const void *const *in, void *const *out) {
    *(int64_t *)out[0] = INT64_MAX;
    return 0;
}
PROGRAM(least, 0, 0, 1)
PROGRAM(most, 0, 0, 1)

/* faulty: → i32[], out of nowhere */
static const char *const dims_faulty[] = {NULL};
static const jaxcc_type in_faulty[] = {{"", "", 0, NULL}}, out_faulty[] = {{"out0", "i32", 0, NULL}};
static int32_t faulty(const int64_t *dims, const void *const *in, void *const *out) {
    int *volatile nowhere = NULL;
    *(int32_t *)out[0] = *nowhere;
    return 0;
}
PROGRAM(faulty, 0, 0, 1)

/* flat, deep: → i32[], with and without more stack than a library may take */
static const char *const dims_flat[] = {NULL}, *const dims_deep[] = {NULL};
static const jaxcc_type in_flat[] = {{"", "", 0, NULL}}, out_flat[] = {{"out0", "i32", 0, NULL}};
static const jaxcc_type in_deep[] = {{"", "", 0, NULL}}, out_deep[] = {{"out0", "i32", 0, NULL}};
static int32_t touch(int n, int32_t *out) {
    volatile char room[n];
    for (int i = 0; i < n; i++) room[i] = 1;
    *out = room[n / 2];
    return 0;
}
static int32_t flat(const int64_t *dims, const void *const *in, void *const *out) { return touch(60 << 10, out[0]); }
static int32_t deep(const int64_t *dims, const void *const *in, void *const *out) { return touch(66 << 10, out[0]); }
PROGRAM(flat, 0, 0, 1)
PROGRAM(deep, 0, 0, 1)

/* seven, minus: → i32[]: what `range` and `scale` take, or refuse */
static const char *const dims_seven[] = {NULL}, *const dims_minus[] = {NULL};
static const jaxcc_type in_seven[] = {{"", "", 0, NULL}}, in_minus[] = {{"", "", 0, NULL}};
static const jaxcc_type out_seven[] = {{"out0", "i32", 0, NULL}}, out_minus[] = {{"out0", "i32", 0, NULL}};
static int32_t seven(const int64_t *dims, const void *const *in, void *const *out) {
    *(int32_t *)out[0] = 7;
    return 0;
}
static int32_t minus(const int64_t *dims, const void *const *in, void *const *out) {
    *(int32_t *)out[0] = -1;
    return 0;
}
PROGRAM(seven, 0, 0, 1)
PROGRAM(minus, 0, 0, 1)
