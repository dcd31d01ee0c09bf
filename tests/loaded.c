#include "loaded.h"
#include "../runtime/npz.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Loaded loaded(const char *so, const char *name) {
    char *symbol = NULL;
    void *library = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    if (asprintf(&symbol, "%s_program", name) < 0) abort();
    const jaxcc_program *(*get)(void) = library ? (const jaxcc_program *(*)(void))dlsym(library, symbol) : NULL;
    free(symbol);
    return (Loaded){library, get ? get() : NULL};
}
void loaded_close(Loaded l) {
    if (l.library) dlclose(l.library);
}

const NpzArray *nth_array(const Npz *file, const char *prefix, int k) {
    char name[16];
    snprintf(name, sizeof name, "%s%d", prefix, k);
    return npz_find(file, name);
}

/* ---- sizes of batches */
static bool made_by_vmap(const char *dim, char *const *words, int n) {
    static const char named[] = "--vmap-dim=", usual[] = "batch";
    bool made = false, given = false;
    for (int i = 0; i < n; i++) {
        made |= strncmp(words[i], "--vmap=", strlen("--vmap=")) == 0;
        given |= strncmp(words[i], named, strlen(named)) == 0 && strcmp(words[i] + strlen(named), dim) == 0;
    }
    bool numbered =
        strncmp(dim, usual, strlen(usual)) == 0 && !dim[strlen(usual) + strspn(dim + strlen(usual), "0123456789")];
    return made && (given || numbered);
}
/* The extent that an input has where the program says `dim`; negative if none does. */
static int64_t size_along(const jaxcc_program *p, const Npz *in, const char *dim) {
    for (int i = 0; i < p->n_in; i++) {
        const NpzArray *a = nth_array(in, "in", i);
        for (int k = 0; a && k < p->in[i].rank && k < (int)a->rank; k++)
            if (strcmp(p->in[i].extents[k], dim) == 0) return a->dims[k];
    }
    return -1;
}
BatchSizes batch_sizes(const char *so, const char *name, const char *in, char *const *words, int n) {
    BatchSizes sizes = {.n = 0};
    Npz arrays;
    NpzError error;
    Loaded l = loaded(so, name);
    if (l.program && npz_read(in, &arrays, &error)) {
        for (int i = 0; i < l.program->n_dims && sizes.n < MOST_BATCHES; i++) {
            const char *dim = l.program->dims[i];
            int64_t size = made_by_vmap(dim, words, n) ? size_along(l.program, &arrays, dim) : -1;
            if (size >= 0 && asprintf(&sizes.define[sizes.n++], "-D%s=%lld", dim, (long long)size) < 0) abort();
        }
        npz_free(&arrays);
    }
    loaded_close(l);
    return sizes;
}
