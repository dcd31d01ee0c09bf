/* Graphs: the work of a call with device pointers that needs nothing of the host, kept so that it is enqueued at once.
   It is recorded when a call comes again with the same dimensions and pointers, and launched by each one that follows.
   A graph has a workspace of its own; one call at a time has the graph, and the device runs its launches one after the
   other. */
#include "cuda_device.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_FAILED = 2 }; /* attempts to record a graph: another thread may be the reason for one */

void jaxcc_rt_cuda_graph_drop(Device *d, Graph *g) {
    if (g->run) jaxcc_rt_cuda.cuGraphExecDestroy(g->run);
    if (g->workspace) jaxcc_rt_cuda_block_put(d, g->workspace);
    free(g);
}
void jaxcc_rt_cuda_graph_give(Device *d, Graphs *all, Graph *g) {
    Graph *old = NULL;
    pthread_mutex_lock(&d->lock);
    g->next = all->first;
    all->first = g;
    if (++all->n > all->most) {
        Graph **last = &all->first;
        while ((*last)->next) last = &(*last)->next;
        old = *last;
        *last = NULL;
        all->n--;
    }
    pthread_mutex_unlock(&d->lock);
    if (old) jaxcc_rt_cuda_graph_drop(d, old);
}
void jaxcc_rt_cuda_graph_failed(Device *d, Graphs *all, Graph *g) {
    if (g->run) jaxcc_rt_cuda.cuGraphExecDestroy(g->run);
    if (g->workspace) jaxcc_rt_cuda_block_put(d, g->workspace);
    g->run = NULL;
    g->workspace = NULL;
    g->failed++;
    jaxcc_rt_cuda_graph_give(d, all, g);
}
static void release(Device *d, Graphs *all) {
    pthread_mutex_lock(&d->lock);
    Graph *g = all->first;
    all->first = NULL;
    all->n = 0;
    pthread_mutex_unlock(&d->lock);
    for (Graph *next; g; g = next) {
        next = g->next;
        jaxcc_rt_cuda_graph_drop(d, g);
    }
}
void jaxcc_rt_cuda_release_graphs(Device *d) {
    release(d, &d->calls);
    release(d, &d->loops);
}
/* full: there is no room for one more. */
static Graph *find(Device *d, Graphs *all, const jaxcc_rt_cuda_program *p, const void *words, size_t bytes,
                   bool *full) {
    pthread_mutex_lock(&d->lock);
    Graph **at = &all->first;
    while (*at && ((*at)->body != p->body || (*at)->bytes != bytes || memcmp((*at)->words, words, bytes) != 0))
        at = &(*at)->next;
    Graph *found = *at;
    if (found) {
        *at = found->next;
        all->n--;
    }
    *full = all->n >= all->most;
    pthread_mutex_unlock(&d->lock);
    return found;
}
Graph *jaxcc_rt_cuda_graph_take(Device *d, Graphs *all, const jaxcc_rt_cuda_program *p, const void *words, size_t bytes,
                                bool at_once) {
    bool full;
    Graph *g = find(d, all, p, words, bytes, &full);
    if (g && g->failed >= MOST_FAILED) {
        jaxcc_rt_cuda_graph_give(d, all, g);
        return NULL;
    }
    if (g) return g;
    g = calloc(1, sizeof *g + bytes);
    if (!g) return NULL;
    g->body = p->body;
    g->bytes = bytes;
    if (bytes) memcpy(g->words, words, bytes);
    if (at_once && !full) return g;
    jaxcc_rt_cuda_graph_give(d, all, g);
    return NULL;
}
/* Whoever had the workspace last may have used it on another stream, also if that had the same handle. */
int32_t jaxcc_rt_cuda_graph_launch(Device *d, Graph *g, CUstream stream) {
    Block *b = g->workspace;
    int32_t status = b && b->pending ? CU(d, cuStreamWaitEvent, stream, b->done, 0) : 0;
    if (status) return status;
    if (g->last) jaxcc_rt_cuda_launched(g->last);
    status = CU(d, cuGraphLaunch, g->run, stream);
    if (!status && b) jaxcc_rt_cuda_block_used(b, stream, false);
    return status;
}
