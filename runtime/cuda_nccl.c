/* Exchanges by NCCL, libnccl.so.2 or what JAXCC_NCCL names, which the first exchange between several GPUs loads. It only
   moves bytes: what is computed of them has the same bits without it. Where it cannot be loaded or started, GPUs copy from
   each other.

   The last member of a group to arrive enqueues the exchange on the streams of all, in one group of calls: none is left
   waiting for another that ends before it has come. Kernels of NCCL wait for each other across GPUs, so that all GPUs must
   run them in the same order: on each GPU an exchange begins after the one that was enqueued before it. */
#include "cuda_nccl.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library */
typedef struct ncclComm *ncclComm_t;
enum { BYTES = 0 }; /* ncclInt8 */
static struct {
#define NCCL(name, ...) int (*name)(__VA_ARGS__);
#include "cuda_nccl.def"
#undef NCCL
    const char *(*ncclGetErrorString)(int);
} nccl;
static const struct {
    const char *name;
    size_t at; /* in the struct */
} functions[] = {
#define NCCL(name, ...) {#name, offsetof(__typeof__(nccl), name)},
#include "cuda_nccl.def"
#undef NCCL
    {"ncclGetErrorString", offsetof(__typeof__(nccl), ncclGetErrorString)}};

/* A communicator for each of these GPUs, which are its ranks. */
enum { MOST_GPUS = 64, MOST_CLIQUES = 64 };
typedef struct Clique {
    struct Clique *next;
    Device *by; /* any of them */
    int64_t n;
    int gpus[MOST_GPUS];
    ncclComm_t comms[MOST_GPUS];
} Clique;
static struct {
    pthread_mutex_t lock;
    bool searched, usable, registered;
    Clique *cliques;
    int64_t n_cliques;
    struct {
        Device *device;
        CUevent last; /* recorded after the exchange that was enqueued last, or NULL */
    } on[MOST_GPUS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool search(void) {
    const char *chosen = secure_getenv("JAXCC_NCCL"); /* no library of the user's choice in a set-user-ID program */
    void *library = dlopen(chosen && *chosen ? chosen : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = library ? dlsym(library, functions[i].name) : NULL;
        if (!f) return false;
        memcpy((char *)&nccl + functions[i].at, &f, sizeof f);
    }
    return true;
}
static bool usable(void) {
    if (!all.searched) all.usable = search();
    all.searched = true;
    return all.usable;
}
static int32_t check(int result, const char *function) {
    return result ? jaxcc_rt_fail(JAXCC_INTERNAL, "%s failed: %s", function, nccl.ncclGetErrorString(result)) : 0;
}
#define CALL(function, ...) check(nccl.function(__VA_ARGS__), #function)

/* ---- cliques. NCCL may leave another context than it found: its functions are called with one pushed for them alone. */
static void clique_end(Clique *q, int (*end)(ncclComm_t)) {
    Clique **at = &all.cliques;
    while (*at != q) at = &(*at)->next;
    *at = q->next;
    all.n_cliques--;
    bool apart = !jaxcc_rt_cuda.cuCtxPushCurrent_v2(q->by->context);
    for (int64_t i = 0; i < q->n; i++) end(q->comms[i]);
    if (apart) jaxcc_rt_cuda.cuCtxPopCurrent_v2(NULL);
    free(q);
}
/* Before the devices end. */
static void end_all(void *nothing) {
    (void)nothing;
    if (!jaxcc_rt_cuda_idle()) return;
    while (all.cliques) clique_end(all.cliques, nccl.ncclCommDestroy);
    for (int i = 0; i < MOST_GPUS; i++) {
        if (!all.on[i].last || jaxcc_rt_cuda_enter(all.on[i].device)) continue;
        jaxcc_rt_cuda.cuEventDestroy_v2(all.on[i].last);
        jaxcc_rt_cuda_leave();
    }
}
static Clique *clique_new(Device *by, int64_t n, const int *gpus) {
    if (all.n_cliques == MOST_CLIQUES || !usable()) return NULL;
    Clique *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    q->by = by;
    q->n = n;
    memcpy(q->gpus, gpus, (size_t)n * sizeof *gpus);
    if (nccl.ncclCommInitAll(q->comms, (int)n, q->gpus)) {
        free(q);
        all.usable = false;
        return NULL;
    }
    if (!all.registered) all.registered = jaxcc_rt_cuda_at_end(end_all);
    q->next = all.cliques;
    all.n_cliques++;
    return all.cliques = q;
}
/* NULL: there is no NCCL for these. */
static Clique *clique_of(Device *own, int64_t n, const int *gpus) {
    for (Clique *q = all.cliques; q; q = q->next)
        if (q->n == n && !memcmp(q->gpus, gpus, (size_t)n * sizeof *gpus)) return q;
    return clique_new(own, n, gpus);
}
void jaxcc_rt_nccl_lost(const Device *d) {
    pthread_mutex_lock(&all.lock);
    for (Clique *q = all.cliques, *next; q; q = next) {
        bool has = false;
        next = q->next;
        for (int64_t i = 0; i < q->n; i++) has |= q->gpus[i] == d->ordinal;
        if (has) clique_end(q, nccl.ncclCommAbort);
    }
    pthread_mutex_unlock(&all.lock);
}

/* ---- exchanges */
static const Call *call_at(const jaxcc_rt_exchange *x, int64_t i) { return jaxcc_rt_cuda_member(x->members[i].comm); }
static bool on_different(const jaxcc_rt_exchange *x, int *gpus) {
    uint64_t seen = 0;
    if (x->n < 2 || x->n > MOST_GPUS || x->bytes <= 0) return false;
    for (int64_t i = 0; i < x->n; i++) {
        gpus[i] = call_at(x, i)->device->ordinal;
        uint64_t bit = (uint64_t)1 << gpus[i];
        if (seen & bit) return false;
        seen |= bit;
    }
    return true;
}
static int32_t gather(const Clique *q, const jaxcc_rt_exchange *x, int64_t me) {
    const jaxcc_rt_member *m = &x->members[me];
    return CALL(ncclAllGather, m->data, m->result, (size_t)x->bytes, BYTES, q->comms[me], call_at(x, me)->stream);
}
static int32_t receive(const Clique *q, const jaxcc_rt_exchange *x, int64_t me) {
    int32_t status = 0;
    for (int64_t k = 0; k < jaxcc_rt_exchange_pieces(x) && !status; k++) {
        jaxcc_rt_piece p = jaxcc_rt_exchange_piece(x, me, k);
        if (p.member < 0) continue;
        const char *from = (const char *)x->members[p.member].data + p.offset;
        char *to = (char *)x->members[me].result + k * x->bytes;
        status =
            CALL(ncclSend, from, (size_t)x->bytes, BYTES, (int)me, q->comms[p.member], call_at(x, p.member)->stream);
        if (!status)
            status = CALL(ncclRecv, to, (size_t)x->bytes, BYTES, (int)p.member, q->comms[me], call_at(x, me)->stream);
    }
    return status;
}
static int32_t enqueue(const Clique *q, const jaxcc_rt_exchange *x) {
    int32_t status = CALL(ncclGroupStart);
    if (status) return status;
    for (int64_t me = 0; me < x->n && !status; me++) status = (x->kind == JAXCC_RT_GATHER ? gather : receive)(q, x, me);
    int32_t ended = nccl.ncclGroupEnd();
    return status ? status : check(ended, "ncclGroupEnd");
}
static int32_t begin_after(Device *d, CUstream stream) {
    CUevent last = all.on[d->ordinal].last;
    return last ? CU(d, cuStreamWaitEvent, stream, last, 0) : 0;
}
static int32_t record(Device *d, CUstream stream) {
    CUevent *last = &all.on[d->ordinal].last;
    all.on[d->ordinal].device = d;
    int32_t status = *last ? 0 : CU(d, cuEventCreate, last, CU_EVENT_DISABLE_TIMING);
    return status ? status : CU(d, cuEventRecord, *last, stream);
}
static int32_t for_all(const Device *own, const jaxcc_rt_exchange *x, int32_t (*what)(Device *, CUstream)) {
    int32_t status = 0;
    for (int64_t i = 0; i < x->n && !status; i++) {
        const Call *c = call_at(x, i);
        status = jaxcc_rt_cuda_visit(c->device);
        if (status) break;
        status = what(c->device, c->stream);
        jaxcc_rt_cuda_back(own->context);
    }
    return status;
}
static int32_t enqueue_apart(Device *own, const Clique *q, const jaxcc_rt_exchange *x) {
    int32_t status = jaxcc_rt_cuda_visit(own);
    if (status) return status;
    status = enqueue(q, x);
    jaxcc_rt_cuda_back(own->context);
    return status;
}
static Clique *clique_apart(Device *own, int64_t n, const int *gpus) {
    if (jaxcc_rt_cuda_visit(own)) return NULL;
    Clique *q = clique_of(own, n, gpus);
    jaxcc_rt_cuda_back(own->context);
    return q;
}
int32_t jaxcc_rt_nccl_exchange(jaxcc_rt_heap *h, const jaxcc_rt_exchange *x, bool *done) {
    int gpus[MOST_GPUS];
    int32_t status = 0;
    *done = false;
    if (!on_different(x, gpus)) return 0;
    pthread_mutex_lock(&all.lock);
    Device *own = call_of(h)->device;
    Clique *q = clique_apart(own, x->n, gpus);
    if (q) {
        status = for_all(own, x, begin_after);
        if (!status) status = enqueue_apart(own, q, x);
        if (!status) status = for_all(own, x, record);
        if (status) clique_end(q, nccl.ncclCommAbort);
        *done = !status;
    }
    pthread_mutex_unlock(&all.lock);
    return status;
}
