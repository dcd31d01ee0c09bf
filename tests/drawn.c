#include "drawn.h"
#include "loaded.h"
#include "type.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double drawn(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / 8388608.0 - 1;
}
/* Writes the bits of a float of `size` bytes. */
static void put(void *at, Dtype d, unsigned size, double x) {
    float f = (float)x;
    uint32_t bits = size <= 2 ? float_encode(&float_format[d], x) : 0;
    memcpy(at, size == 8 ? (void *)&x : size == 4 ? (void *)&f : (void *)&bits, size);
}
static bool draw(NpzArray *a, uint32_t number, const jaxcc_type *t, char *why, size_t n) {
    const NpzType *of = npz_type(t->dtype);
    Dtype d = dtype_named((Str){t->dtype, (uint32_t)strlen(t->dtype)});
    if (!of || t->rank > NPZ_RANK || asprintf(&a->name, "in%u", number) < 0) abort();
    *a = (NpzArray){.name = a->name, .kind = of->kind, .size = of->size, .rank = (uint32_t)t->rank, .bytes = of->size};
    for (int32_t k = 0; k < t->rank; k++) {
        char *end;
        a->dims[k] = strtoll(t->extents[k], &end, 10);
        if (*end) return snprintf(why, n, "in%u: no number says how long it is", number), false;
        a->bytes *= a->dims[k];
    }
    unsigned size = of->kind == 'c' ? of->size / 2 : of->size;
    char *at = a->data = calloc((size_t)a->bytes + 1, 1);
    if (!at) abort();
    for (int64_t i = 0; i < a->bytes; i += size) put(at + i, d, size, drawn(&number));
    return true;
}

bool drawn_inputs(const char *so, const char *name, const char *in, const char *out, char *why, size_t n) {
    Npz given;
    NpzError error;
    Loaded l = loaded(so, name);
    const jaxcc_program *p = l.program;
    if (!p || !npz_read(in, &given, &error)) return snprintf(why, n, "no program, or no inputs"), false;
    NpzArray *all = calloc((size_t)p->n_in + given.n + 1, sizeof *all);
    if (!all) abort();
    if (given.n) memcpy(all, given.at, given.n * sizeof *all);
    bool good = true;
    for (int32_t i = (int32_t)given.n; i < p->n_in && good; i++) good = draw(&all[i], (uint32_t)i, &p->in[i], why, n);
    good = good && (npz_write(out, false, all, given.n > (uint32_t)p->n_in ? given.n : (uint32_t)p->n_in, &error) ||
                    (snprintf(why, n, "%.200s", error.text), false));
    free(all);
    loaded_close(l);
    return good;
}
