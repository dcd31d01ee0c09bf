/* The programs of effects.sh, called; with HANDLERS the library of handlers that one of them calls. */
#ifdef HANDLERS
#include "runtime/ffi.h"
#include <string.h>

static void *attribute(const ffi_attributes *a, const char *name, int type) {
    for (int64_t i = 0; i < a->n; i++)
        if (a->names[i]->n == strlen(name) && !memcmp(a->names[i]->at, name, strlen(name)) && a->types[i] == type)
            return a->at[i];
    return NULL;
}
ffi_error *scaled(ffi_frame *f) {
    ffi_buffer *x = f->arguments.at[0], *y = f->results.at[0];
    ffi_scalar *by = attribute(&f->attributes, "by", FFI_SCALAR), *n = attribute(&f->attributes, "n", FFI_SCALAR);
    ffi_attributes *d = attribute(&f->attributes, "d", FFI_DICTIONARY);
    ffi_array *t = attribute(&f->attributes, "t", FFI_ARRAY);
    ffi_scalar *a = d ? attribute(d, "a", FFI_SCALAR) : NULL;
    int fine = by && n && a && t && x->data == y->data && by->dtype == 11 && n->dtype == 5 && a->dtype == 2 &&
               t->n == 2 && *(int64_t *)n->value == 3 && *(int8_t *)a->value == -2 && ((double *)t->data)[1] == 2 &&
               x->rank == 2;
    ffi_error_create error = {{sizeof error, NULL}, "other arguments than expected", 3};
    for (int i = 0; i < 4; i++) ((float *)y->data)[i] *= fine ? *(float *)by->value : 0;
    return fine && f->head.size == FFI_SIZE(ffi_frame, attributes) ? NULL : f->api->error_create(&error);
}
/* Of each row a + 10 b, and how many rows both have, in hundreds and thousands; an operand without rows has one for
   all. */
ffi_error *joined(ffi_frame *f) {
    ffi_buffer *a = f->arguments.at[0], *b = f->arguments.at[1], *y = f->results.at[0];
    int64_t rows = y->rank > 1 ? y->dims[0] : 1, of_a = a->rank > 1 ? a->dims[0] : 0,
            of_b = b->rank > 1 ? b->dims[0] : 0;
    for (int64_t i = 0; i < 2 * rows; i++) {
        float x = ((float *)a->data)[of_a > 1 ? i : i % 2], z = ((float *)b->data)[of_b > 1 ? i : i % 2];
        ((float *)y->data)[i] = x + 10 * z + 100 * (float)of_a + 1000 * (float)of_b;
    }
    return NULL;
}
ffi_error *counted(ffi_frame *f) {
    static int32_t calls;
    *(int32_t *)((ffi_buffer *)f->results.at[0])->data = ++calls;
    return NULL;
}
#else
#include "asserted.h"
#include "batched.h"
#include "bounds.h"
#include "calls.h"
#include "checked.h"
#include "devices.h"
#include "each.h"
#include "missing.h"
#include "literals.h"
#include "nans.h"
#include "prints.h"
#include "sizes.h"
#include <stdio.h>
#include <string.h>

static int passed, failed;
static void try(const char *what, int ok, const char *said) {
    ok ? passed++ : failed++;
    if (!ok) printf("FAIL effects: %s: %s\n", what, said);
}
static char printed[256];
static void print(void *user, const char *text) { strcat(strcat(user, text), "|"); }
static void of_prints(void) {
    float a[3] = {1, 2, 3};
    int32_t b = 5, n;
    const jaxcc_program *p = prints_program();
    p->set_print(print, printed);
    try("debug_print through a hook",
        !prints(a, &b, &n) &&
            !strcmp(
                printed,
                "a=[1. 2. 3.] b=+005|3.0/Array(5, dtype=int32)|2.0/Array(6, dtype=int32)|1.0/Array(7, dtype=int32)|"),
        printed);
    p->set_print(NULL, NULL);
    try("debug_print", !prints(a, &b, &n) && n == 8, prints_error());
}
static void of_nans(void) {
    float a[3] = {1, 2, 3}, out[4], more[3];
    int32_t b;
    float large[3] = {5, 6, 7};
    b = 0;
    try("no NaN", !nans(large, &b, out, more), nans_error());
    try("NaN after a loop",
        nans(a, &b, out, more) == JAXCC_CHECK &&
            strstr(nans_error(), "nans.jaxpr:19:16: sqrt makes a NaN: o:f32[3] = sqrt c"),
        nans_error());
    b = 1;
    try("NaN in a branch in a loop",
        nans(a, &b, out, more) == JAXCC_CHECK && strstr(nans_error(), "nans.jaxpr:8:104: log makes a NaN"),
        nans_error());
}
static void of_literals(void) {
    float reals[2] = {1, 2}, zero[2] = {-1, 2}, picked[2], pairs[4] = {1, 0, 0, 1}, none_of[4] = {0, 0, 1, 1}, found[4];
    try("NaNs of the text are moved", !literals(reals, pairs, picked, found), literals_error());
    try("a NaN of the text is selected",
        literals(zero, pairs, picked, found) == JAXCC_CHECK &&
            strstr(literals_error(), "select_n makes a NaN: q:f32[2]"),
        literals_error());
    try("a complex NaN of the text is selected",
        literals(reals, none_of, picked, found) == JAXCC_CHECK &&
            strstr(literals_error(), "select_n makes a NaN: x:c64[2]"),
        literals_error());
}
static void of_devices(void) {
    float parts[8] = {1, 2, 3, 4, 5, 6, 7, 8}, sums[8];
    try("no NaN on any device", !devices(parts, sums), devices_error());
    parts[5] = -5;
    try("NaN on one device",
        devices(parts, sums) == JAXCC_CHECK && strstr(devices_error(), "devices.jaxpr:4:81: log makes a NaN"),
        devices_error());
}
static void of_bounds(void) {
    float a[3] = {1, 2, 3}, out[4];
    for (int32_t b = -1; b < 4; b++) {
        int in = b >= 0 && b < 3, status = bounds(a, &b, out);
        try("bounds",
            in ? !status
               : status == JAXCC_CHECK &&
                     strstr(bounds_error(), "bounds.jaxpr:2:16: dynamic_slice indexes out of bounds"),
            bounds_error());
    }
}
static void of_checks(void) {
    uint8_t none[3] = {0}, some[3] = {0, 1, 0};
    try("check", !checked(none) && checked(some) == JAXCC_CHECK && strstr(checked_error(), "checked.jaxpr:1:27: check"),
        checked_error());

    float matrix[6] = {1, 2, 3, 4, 5, 6}, negative[6];
    int64_t rows;
    try("a shape as demanded", !asserted(3, 2, matrix, negative, &rows) && rows == 3 && negative[5] == -6,
        asserted_error());
    try("a shape that is not",
        asserted(2, 3, matrix, negative, &rows) == JAXCC_CHECK &&
            strstr(asserted_error(),
                   "asserted.jaxpr:4:5: shape_assertion fails: Expected args[0].shape = (b, c) with 'b' > 2, not 2: "),
        asserted_error());
}
static void of_calls(void) {
    float m[4] = {2, 4, 6, 8}, out[4];
    int32_t n, k;
    int32_t b = 0;
    try("ffi_call",
        !calls(m, &b, out, &n, &k) && n == 1 && k == 2 && out[0] == 1 && out[1] == 3 && out[2] == 2 && out[3] == 4,
        calls_error());
    try("a handler that is not there",
        missing(m, &b, out, &n, &k) == JAXCC_MISSING && strstr(missing_error(), "has no 'no_such'"), missing_error());
}
/* Three examples: the handler sees how many of each operand, by the way that its vmap_method says. */
static void of_batched_calls(void) {
    typedef int32_t function(int64_t, const float *, const float *, float *, float *, float *, float *);
    static function *const functions[] = {batched_a, batched_b, batched};
    static const int rows[3][4][2] = {
        {{0, 0}, {3, 3}, {3, 1}, {3, 0}}, {{0, 0}, {3, 3}, {1, 3}, {0, 3}}, {{0, 0}, {3, 3}, {3, 3}, {3, 3}}};
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {6, 5, 4, 3, 2, 1};
    for (int k = 0; k < 3; k++) {
        float out[4][6];
        int wrong = functions[k](3, a, b, out[0], out[1], out[2], out[3]) != 0;
        for (int i = 0; i < 24; i++) {
            const int *n = rows[k][i / 6], e = i % 6;
            float x = a[k == 1 ? e % 2 : e], z = b[k == 0 ? e % 2 : e];
            wrong += out[i / 6][e] != x + 10 * z + 100 * (float)n[0] + 1000 * (float)n[1];
        }
        try("ffi_call for a batch", !wrong, batched_error());
    }
}
/* Each example prints; what is the same for all is printed once. A check fails if an example's does. */
static void of_each(void) {
    const float a[3] = {1, 2, 3};
    const uint8_t b[3] = {0, 0, 0}, bad[3] = {0, 0, 1};
    float out[3];
    each_program()->set_print(print, printed);
    printed[0] = 0;
    try("both differ", !each(3, a, b, out) && !strcmp(printed, "a=1.0|a=2.0|a=3.0|b=False|b=False|b=False|"), printed);
    printed[0] = 0;
    try("numbers differ", !each_a(3, a, b, out) && !strcmp(printed, "a=1.0|a=2.0|a=3.0|b=False|") && out[2] == -3,
        printed);
    printed[0] = 0;
    try("conditions differ", !each_b(3, a, b, out) && !strcmp(printed, "a=1.0|b=False|b=False|b=False|"), printed);
    try("check of one example",
        each_b(3, a, bad, out) == JAXCC_CHECK && strstr(each_b_error(), "each.jaxpr:4:5: check"), each_b_error());
    each_program()->set_print(NULL, NULL);
}
/* Of the examples whose shape is not as demanded, the message has the largest number. */
static void of_sizes(void) {
    const uint8_t good[3] = {1, 1, 1}, some[3] = {0, 1, 0}, none[1] = {0};
    const int64_t n[3] = {5, 9, 7};
    uint8_t out[3];
    try("shapes as demanded", !sizes(3, good, n, out) && !sizes_a(3, good, n, out) && !sizes_b(3, good, n, out),
        sizes_error());
    try("shapes that differ", sizes(3, some, n, out) == JAXCC_CHECK && strstr(sizes_error(), "it is 7"), sizes_error());
    try("one number", sizes_a(3, some, n, out) == JAXCC_CHECK && strstr(sizes_a_error(), "it is 5"), sizes_a_error());
    try("one condition", sizes_b(3, none, n, out) == JAXCC_CHECK && strstr(sizes_b_error(), "it is 9"),
        sizes_b_error());
}
int main(void) {
    of_prints();
    of_nans();
    of_literals();
    of_devices();
    of_bounds();
    of_checks();
    of_calls();
    of_batched_calls();
    of_each();
    of_sizes();
    printf("effects: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
#endif
