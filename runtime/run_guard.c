/* --guard: calls with every array placed against unreadable memory, first with its end, then with its start; inputs are
   read-only. Code that accesses memory outside its arrays is stopped by a signal. */
#include "run.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    char *map;
    size_t pages; /* readable bytes between the two guard pages */
    char *data;
} Guarded;

static bool guard(Guarded *g, const NpzArray *a, bool end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (size_t)a->bytes;
    g->pages = (n + page - 1) / page * page + !n * page;
    g->map = mmap(NULL, g->pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g->map == MAP_FAILED || mprotect(g->map + page, g->pages, PROT_READ | PROT_WRITE))
        return run_error("no memory for guarded arrays");
    g->data = g->map + page + (end ? g->pages - n : 0);
    if (a->data && n) memcpy(g->data, a->data, n);
    return true;
}
static void unguard(Guarded *g) {
    if (g->map && g->map != MAP_FAILED) munmap(g->map, g->pages + 2 * (size_t)sysconf(_SC_PAGESIZE));
}
static bool call_guarded(const jaxcc_program *p, const int64_t *dims, const NpzArray *const *in, NpzArray *out,
                         bool end, Guarded *g) {
    const void **ins = run_alloc((size_t)p->n_in, sizeof *ins);
    void **outs = run_alloc((size_t)p->n_out, sizeof *outs);
    bool good = true;
    for (int32_t i = 0; i < p->n_in && good; i++) {
        good = guard(&g[i], in[i], end) && !mprotect(g[i].map + sysconf(_SC_PAGESIZE), g[i].pages, PROT_READ);
        ins[i] = g[i].data;
    }
    for (int32_t i = 0; i < p->n_out && good; i++) {
        good = guard(&g[p->n_in + i], &out[i], end);
        outs[i] = g[p->n_in + i].data;
    }
    good = good && run_on_stack(p, dims, ins, outs);
    for (int32_t i = 0; i < p->n_out && good; i++)
        if (out[i].bytes) memcpy(out[i].data, outs[i], (size_t)out[i].bytes);
    free(ins);
    free(outs);
    return good;
}
bool run_guarded(const jaxcc_program *p, const int64_t *dims, const NpzArray *const *in, NpzArray *out) {
    bool good = true;
    for (int pass = 0; pass < 2 && good; pass++) {
        size_t n = (size_t)p->n_in + (size_t)p->n_out;
        Guarded *g = run_alloc(n, sizeof *g);
        good = call_guarded(p, dims, in, out, pass == 0, g);
        for (size_t i = 0; i < n; i++) unguard(&g[i]);
        free(g);
    }
    return good;
}
