/* --expect: how far an output is from the expected one. */
#include "run.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static double tolerance(const char *dtype) {
    static const struct {
        const char *dtype;
        double tolerance;
    } row[] = {{"f64", 1e-9}, {"c128", 1e-9}, {"f32", 2e-5}, {"c64", 2e-5}, {"f16", 4e-3}, {"bf16", 3e-2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!strcmp(row[i].dtype, dtype)) return row[i].tolerance;
    return dtype[0] == 'f' ? 1e-1 : 0;
}

static bool same_type(const char *dtype, const NpzArray *got, const NpzArray *want) {
    char is[400], wanted[400];
    if (npz_holds(want, npz_type(dtype)) && got->rank == want->rank &&
        !memcmp(got->dims, want->dims, got->rank * sizeof *got->dims))
        return true;
    print_type(is, sizeof is, dtype, got);
    print_type(wanted, sizeof wanted, dtype, want);
    return run_error("%s is %s instead of %s", got->name, is, wanted);
}

/* The largest finite magnitude, at least 1: the scale of rounding errors. */
static double scale_of(const NpzArray *a, const char *dtype, int64_t n, int parts) {
    double scale = 1;
    for (int64_t i = 0; i < n * parts; i++) {
        double w = fabs(element(a, dtype, i / parts, (int)(i % parts)));
        if (isfinite(w) && w > scale) scale = w;
    }
    return scale;
}

/* |g - w|; infinite if only one is a NaN or if they are different infinities. */
static double error_of(double g, double w) {
    if (g == w || (isnan(g) && isnan(w))) return 0;
    return isfinite(g) && isfinite(w) ? fabs(g - w) : INFINITY;
}

/* The same for integers of 8 bytes, which a double cannot distinguish. */
static double distance(const NpzArray *got, const NpzArray *want, int64_t i) {
    uint64_t g, w, sign = got->kind == 'i' ? (uint64_t)1 << 63 : 0;
    memcpy(&g, (const char *)got->data + i * 8, 8);
    memcpy(&w, (const char *)want->data + i * 8, 8);
    g ^= sign, w ^= sign;
    return (double)(g > w ? g - w : w - g);
}

typedef struct {
    int64_t differ, at; /* how many elements differ; the one with the largest error, among those if there are any */
    double error;
} Difference;

static Difference difference(const char *dtype, double rtol, double atol, const NpzArray *got, const NpzArray *want,
                             int64_t n) {
    Difference d = {0, 0, 0};
    int parts = got->kind == 'c' ? 2 : 1;
    bool whole = got->size == 8 && strchr("iu", got->kind);
    for (int64_t i = 0; i < n; i++) {
        double error = 0;
        bool close = true;
        for (int part = 0; part < parts; part++) {
            double g = element(got, dtype, i, part), w = element(want, dtype, i, part);
            double e = whole ? distance(got, want, i) : error_of(g, w);
            error = fmax(error, e);
            close &= e == 0 || (isfinite(e) && isfinite(w) && e <= atol + rtol * fabs(w));
        }
        bool first = !close && !d.differ++;
        if (first || (error > d.error && (!close || !d.differ))) d.at = i, d.error = error;
    }
    return d;
}

/* "[1, 0]" of element i. */
static void index_text(char *to, size_t room, const NpzArray *a, int64_t i) {
    int64_t index[NPZ_RANK];
    for (uint32_t k = a->rank; k-- > 0; i /= a->dims[k]) index[k] = i % a->dims[k];
    size_t n = (size_t)snprintf(to, room, "[");
    for (uint32_t k = 0; k < a->rank && n < room; k++)
        n += (size_t)snprintf(to + n, room - n, "%s%lld", k ? ", " : "", (long long)index[k]);
    if (n < room) snprintf(to + n, room - n, "]");
}

bool compare_arrays(const char *dtype, double rtol, double atol, const NpzArray *got, const NpzArray *want) {
    if (!same_type(dtype, got, want)) return false;
    int64_t n = got->bytes / got->size;
    double usual = tolerance(dtype);
    if (rtol < 0) rtol = usual;
    if (atol < 0) atol = usual ? usual * scale_of(want, dtype, n, got->kind == 'c' ? 2 : 1) : 0;
    Difference d = difference(dtype, rtol, atol, got, want, n);
    char text[1000], at[400], g[ELEMENT_TEXT], w[ELEMENT_TEXT];
    int k = snprintf(text, sizeof text, "%s: %lld of %lld element%s differ%s", got->name, (long long)d.differ,
                     (long long)n, plural(n), n == 1 || d.differ == 1 ? "s" : "");
    if (d.error > 0) {
        index_text(at, sizeof at, got, d.at);
        print_element(g, got, dtype, d.at);
        print_element(w, want, dtype, d.at);
        k += snprintf(text + k, sizeof text - (size_t)k, "; the largest error is %.9g at %s: %s instead of %s", d.error,
                      at, g, w);
    }
    snprintf(text + k, sizeof text - (size_t)k, "; tolerance %.9g + %.9g |want|", atol, rtol);
    return d.differ ? run_error("%s", text) : printf("%s\n", text) > 0;
}
