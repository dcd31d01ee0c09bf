#include "linear.h"
#include "loaded.h"
#include <stdio.h>
#include <stdlib.h>

static bool refuse(const char *path, const char *what) {
    fprintf(stderr, "runner: error: %s: %s\n", path, what);
    return false;
}
static bool read_arrays(const char *path, Npz *to) {
    NpzError error;
    return npz_read(path, to, &error) || refuse(path, error.text);
}

bool linear_of(const char *so, const char *forward, const char *linear, const char *in, Linear *to) {
    Loaded f = loaded(so, forward), l = loaded(so, linear);
    Npz given = {0};
    bool good = f.program && l.program ? read_arrays(in, &given) : refuse(so, "it has not the two programs");
    if (good) {
        int tangents = (int)given.n - f.program->n_in, residuals = l.program->n_in - tangents;
        *to = (Linear){f.program->n_in, tangents, f.program->n_out - residuals, residuals, l.program->n_out};
        good = (tangents >= 0 && residuals >= 0 && to->outputs >= 0) || refuse(in, "these are no inputs and tangents");
    }
    npz_free(&given);
    loaded_close(f);
    loaded_close(l);
    return good;
}

/* n arrays of a file, from number `from` on. */
typedef struct {
    const char *path, *prefix;
    int from, n;
} Part;
static bool add_part(const Part *p, const Npz *file, const char *prefix, NpzArray *all, uint32_t *n) {
    for (int k = 0; k < p->n; k++) {
        const NpzArray *a = nth_array(file, p->prefix, p->from + k);
        if (!a) return refuse(p->path, "too few arrays");
        all[*n] = *a;
        if (asprintf(&all[*n].name, "%s%u", prefix, *n) < 0) abort();
        ++*n;
    }
    return true;
}
/* Writes the arrays of both parts, called `prefix`0 and so on. */
static bool join(Part first, Part second, const char *to, const char *prefix) {
    Npz x = {0}, y = {0};
    NpzError error;
    uint32_t n = 0;
    NpzArray *all = calloc((size_t)(first.n + second.n) + 1, sizeof *all);
    if (!all) abort();
    bool good = read_arrays(first.path, &x) && read_arrays(second.path, &y) && add_part(&first, &x, prefix, all, &n) &&
                add_part(&second, &y, prefix, all, &n);
    good = good && (npz_write(to, false, all, n, &error) || refuse(to, error.text));
    for (uint32_t i = 0; i < n; i++) free(all[i].name);
    free(all);
    npz_free(&x);
    npz_free(&y);
    return good;
}
bool linear_point(const Linear *l, const char *in, const char *to) {
    return join((Part){in, "in", 0, l->inputs}, (Part){in, "in", 0, 0}, to, "in");
}
bool linear_tangents(const Linear *l, const char *given, const char *in, const char *to) {
    return join((Part){given, "out", l->outputs, l->residuals}, (Part){in, "in", l->inputs, l->tangents}, to, "in");
}
bool linear_results(const Linear *l, const char *given, const char *derivatives, const char *to) {
    return join((Part){given, "out", 0, l->outputs}, (Part){derivatives, "out", 0, l->derivatives}, to, "out");
}
