/* The program's dimensions, from the inputs' shapes. */
#include "run.h"
#include <stdio.h>
#include <stdlib.h>

static bool check_extents(const jaxcc_type *t, const NpzArray *a, const jaxcc_rt_variables *v) {
    char why[400], shape[400];
    for (int32_t k = 0; k < t->rank; k++) {
        if (!jaxcc_rt_extent_differs(v, t, k, a->dims[k], why, sizeof why)) continue;
        print_type(shape, sizeof shape, t->dtype, a);
        return run_error("input '%s' is %s, but %s", t->name, shape, why);
    }
    return true;
}

bool dims_solve(const jaxcc_program *p, const NpzArray *const *in, jaxcc_rt_variables *v) {
    const int64_t **shapes = run_alloc((size_t)p->n_in, sizeof *shapes);
    for (int32_t i = 0; i < p->n_in; i++) shapes[i] = in[i]->dims;
    while (jaxcc_rt_solve_more(p->in, p->n_in, shapes, v)) continue;
    free(shapes);
    for (int32_t i = 0; i < p->n_in; i++)
        if (!check_extents(&p->in[i], in[i], v)) return false;
    for (int32_t i = 0; i < p->n_dims; i++)
        if (!v->at[i].known)
            return run_error("dimension '%s' does not follow from the inputs' shapes; give it by -D %s=N",
                             v->at[i].name, v->at[i].name);
    return true;
}

bool dims_of(const jaxcc_type *t, const jaxcc_rt_variables *v, int64_t *dims, bool *computed) {
    *computed = false;
    for (int32_t i = 0; i < t->rank; i++) {
        jaxcc_rt_extent x = jaxcc_rt_extent_of(v, t->extents[i]);
        if (x.kind == EXTENT_FOREIGN) *computed = true;
        if (x.kind != EXTENT_KNOWN && x.kind != EXTENT_FOREIGN)
            return run_error("'%s': extent '%s' cannot be computed", t->name, t->extents[i]);
        if (x.kind == EXTENT_KNOWN && x.c < 0)
            return run_error("'%s': extent '%s' is negative: %lld", t->name, t->extents[i], (long long)x.c);
        dims[i] = x.c;
    }
    return !*computed;
}
