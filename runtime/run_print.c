/* Elements as numbers, and arrays as text. */
#include "float.h"
#include "run.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements */

static const struct {
    const char *dtype;
    FloatFormat format;
} floats[] = {
#define FLOAT(id, exponent, mantissa, bias, special) {#id, {exponent, mantissa, bias, FLOAT_##special}},
#include "float.def"
};
static double decode(const char *dtype, unsigned x) {
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (!strcmp(floats[i].dtype, dtype)) return float_decode(&floats[i].format, x);
    return x;
}

static int64_t integer(const unsigned char *p, unsigned size, bool is_signed) {
    int8_t a;
    int16_t b;
    int32_t c;
    uint64_t x = 0;
    memcpy(&x, p, size);
    if (!is_signed || size == 8) return (int64_t)x;
    memcpy(&a, p, 1);
    if (size == 1) return a;
    memcpy(&b, p, 2);
    if (size == 2) return b;
    memcpy(&c, p, 4);
    return c;
}

/* Integers narrower than a byte: the high bits are ignored. */
static int64_t narrow_integer(const char *dtype, int64_t x) {
    int bits = dtype[0] && dtype[1] && !dtype[2] ? dtype[1] - '0' : 8;
    if (bits != 2 && bits != 4) return x;
    int64_t low = x & ((1 << bits) - 1);
    return dtype[0] == 'i' && low >> (bits - 1) ? low - (1 << bits) : low;
}

static const unsigned char *element_at(const NpzArray *a, int64_t i) {
    return (const unsigned char *)a->data + i * a->size;
}

static bool is_float(const char *dtype) { return dtype[0] == 'f' || dtype[0] == 'b'; }

double element(const NpzArray *a, const char *dtype, int64_t i, int part) {
    const unsigned char *p = element_at(a, i);
    float f;
    double d;
    unsigned size = a->kind == 'c' ? a->size / 2 : a->size;
    if (strchr("fc", a->kind) && size >= 4) {
        memcpy(&f, p + part * size, 4);
        if (size == 4) return f;
        memcpy(&d, p + part * size, 8);
        return d;
    }
    if (is_float(dtype) && strcmp(dtype, "bool")) return decode(dtype, (unsigned)integer(p, size, false));
    return (double)narrow_integer(dtype, integer(p, size, a->kind == 'i'));
}

/* ---- text */

void print_type(char *to, size_t room, const char *dtype, const NpzArray *a) {
    char own[16];
    snprintf(own, sizeof own, "%c%u", a->kind, a->size * 8);
    if (a->kind == 'b') strcpy(own, "bool");
    const NpzType *t = dtype ? npz_type(dtype) : NULL;
    bool holds = t && npz_holds(a, t);
    uint32_t rank = holds && t->words && a->rank ? a->rank - 1 : a->rank;
    size_t n = (size_t)snprintf(to, room, "%s[", holds ? dtype : own);
    for (uint32_t i = 0; i < rank && n < room; i++)
        n += (size_t)snprintf(to + n, room - n, "%s%lld", i ? "," : "", (long long)a->dims[i]);
    if (n < room) snprintf(to + n, room - n, "]");
}

/* The shortest text that reads back as the same number; with an exponent only where numpy prints one. */
static int put_float(char *to, double x, bool single) {
    if (!isfinite(x)) return snprintf(to, ELEMENT_TEXT, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
    int digits = 0, exponent = 0;
    do {
        snprintf(to, ELEMENT_TEXT, "%.*e", digits++, x);
    } while (digits < 17 && (single ? strtof(to, NULL) != (float)x : strtod(to, NULL) != x));
    if (strchr(to, 'e')) exponent = atoi(strchr(to, 'e') + 1);
    if (exponent < -4 || exponent > 15) return (int)strlen(to);
    int decimals = digits - 1 - exponent;
    return snprintf(to, ELEMENT_TEXT, decimals > 0 ? "%.*f" : "%.*f.", decimals > 0 ? decimals : 0, x);
}

int print_element(char to[ELEMENT_TEXT], const NpzArray *a, const char *dtype, int64_t i) {
    const unsigned char *p = element_at(a, i);
    if (a->kind == 'b') return snprintf(to, ELEMENT_TEXT, *p ? "True" : "False");
    bool single = a->kind == 'c' ? a->size == 8 : a->size <= 4;
    if (a->kind == 'c') {
        int n = put_float(to, element(a, dtype, i, 0), single);
        char imaginary[ELEMENT_TEXT];
        put_float(imaginary, element(a, dtype, i, 1), single);
        return n + snprintf(to + n, (size_t)(ELEMENT_TEXT - n), "%s%sj", *imaginary == '-' ? "" : "+", imaginary);
    }
    if (is_float(dtype)) return put_float(to, element(a, dtype, i, 0), single);
    int64_t x = narrow_integer(dtype, integer(p, a->size, a->kind == 'i'));
    return dtype[0] == 'i' ? snprintf(to, ELEMENT_TEXT, "%" PRId64, x)
                           : snprintf(to, ELEMENT_TEXT, "%" PRIu64, (uint64_t)x);
}

/* More than a thousand elements are printed as three from each end of an axis. */
enum { MANY = 1000, EDGE = 3 };
typedef struct {
    const NpzArray *a;
    const char *dtype;
    bool brief;
    int width;
} Printer;

/* `at`: number of the first element; `count`: elements below one index of the axis. */
static void visit(Printer *p, uint32_t axis, int64_t at, bool print) {
    char text[ELEMENT_TEXT];
    if (axis == p->a->rank) {
        int n = print_element(text, p->a, p->dtype, at);
        if (n > p->width) p->width = n;
        if (print) printf("%*s", p->width, text);
        return;
    }
    int64_t n = p->a->dims[axis], count = 1;
    for (uint32_t i = axis + 1; i < p->a->rank; i++) count *= p->a->dims[i];
    uint32_t inner = p->a->rank - axis - 1; /* brackets inside: as many newlines between two entries */
    if (print) printf("[");
    for (int64_t i = 0; i < n; i++) {
        if (print && i && !inner) printf(" ");
        for (uint32_t k = 0; print && i && k < inner; k++) printf("\n");
        if (print && i && inner) printf("%*s", (int)axis + 1, "");
        if (p->brief && i == EDGE && n > 2 * EDGE) {
            if (print) printf("...");
            i = n - EDGE - 1;
            continue;
        }
        visit(p, axis + 1, at + i * count, print);
    }
    if (print) printf("]");
}

void print_array(const NpzArray *a, const char *dtype) {
    Printer p = {a, dtype, a->size && a->bytes / a->size > MANY, 0};
    if (a->bytes) visit(&p, 0, 0, false);
    if (a->bytes)
        visit(&p, 0, 0, true);
    else
        printf("[]");
    printf("\n");
}
