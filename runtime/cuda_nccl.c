/* Exchanges by NCCL, libnccl.so.2 or what JAXCC_NCCL names, which the first exchange between several GPUs loads. It
   only moves bytes: what is computed of them has the same bits without it. Where it cannot be loaded or started, GPUs
   copy from each other.

   The last member of a group to arrive enqueues the exchange on the streams of all, in one group of calls: none is left
   waiting for another that ends before it has come. Kernels of NCCL wait for each other across GPUs, so that all GPUs
   must run them in the same order: under one lock an exchange is enqueued on all GPUs, and on each it begins after the
   one that was enqueued before it. That holds within a library, not between two.

   What fails while kernels of NCCL run, a link or a process, NCCL tells only who asks; the kernels would wait for ever.
   Who waits for them asks now and then, and ends them all by aborting their communicators. */
#include "cuda_nccl.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the library */
typedef struct ncclComm *ncclComm_t;
enum { BYTES = 0, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, IN_PROGRESS = 7 }; /* ncclInt8; ncclResult_t */
static struct {
#define NCCL(name, ...) int (*name)(__VA_ARGS__);
#include "cuda_nccl.def"
#undef NCCL
    const char *(*ncclGetErrorString)(int);
    int (*ncclCommGetAsyncError)(ncclComm_t, int *result); /* NULL: NCCL is too old */
} nccl;
static const struct {
    const char *name;
    size_t at; /* in the struct */
    bool optional;
} functions[] = {
#define NCCL(name, ...) {#name, offsetof(__typeof__(nccl), name), false},
#include "cuda_nccl.def"
#undef NCCL
    {"ncclGetErrorString", offsetof(__typeof__(nccl), ncclGetErrorString), false},
    {"ncclCommGetAsyncError", offsetof(__typeof__(nccl), ncclCommGetAsyncError), true}};

/* A communicator for each of these GPUs, which are its ranks. An aborted one ends what its communicators had begun,
   also for other calls: it stays until each call that has used it knows. */
enum { MOST_GPUS = 64, MOST_CLIQUES = 64 };
typedef struct {
    int64_t n;     /* 0: there is none */
    int64_t users; /* devices of calls that exchange by it and have not ended */
    uint64_t last; /* use, by number */
    bool aborted;
    int error;          /* why, if a kernel of NCCL has failed */
    const Device *lost; /* why, if it is */
    Device *by;         /* any of them */
    int gpus[MOST_GPUS];
    ncclComm_t comms[MOST_GPUS];
} Clique;
static struct {
    pthread_mutex_t lock;
    bool searched, usable, registered;
    Clique cliques[MOST_CLIQUES]; /* a bit of Call.cliques each */
    uint64_t uses;
    Tries starts;
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
        if (!f && (!library || !functions[i].optional)) return false;
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

/* ---- cliques. NCCL may leave another context than it found: its functions are called with one pushed for them
   alone. */
static void end_comms(const Clique *q, int (*end)(ncclComm_t)) {
    bool apart = !jaxcc_rt_cuda.cuCtxPushCurrent_v2(q->by->context);
    for (int64_t i = 0; i < q->n; i++) end(q->comms[i]);
    if (apart) jaxcc_rt_cuda_back();
}
static void clique_abort(Clique *q) {
    if (!q->aborted) end_comms(q, nccl.ncclCommAbort);
    q->aborted = true;
    if (!q->users) q->n = 0;
}
/* Has a kernel of it failed? */
static void ask(Clique *q) {
    for (int64_t i = 0; i < q->n && !q->aborted && nccl.ncclCommGetAsyncError; i++) {
        int error = 0;
        if (nccl.ncclCommGetAsyncError(q->comms[i], &error) || !error || error == IN_PROGRESS) continue;
        q->error = error;
        clique_abort(q);
    }
}
static void clique_destroy(Clique *q) {
    ask(q); /* what has failed may not end otherwise */
    if (!q->aborted) end_comms(q, nccl.ncclCommDestroy);
    q->n = 0;
}
/* Before the devices end. */
static void end_all(void *nothing) {
    (void)nothing;
    if (!jaxcc_rt_cuda_idle()) return;
    for (int i = 0; i < MOST_CLIQUES; i++)
        if (all.cliques[i].n) clique_destroy(&all.cliques[i]);
    for (int i = 0; i < MOST_GPUS; i++) {
        if (!all.on[i].last || jaxcc_rt_cuda_enter(all.on[i].device)) continue;
        jaxcc_rt_cuda.cuEventDestroy_v2(all.on[i].last);
        jaxcc_rt_cuda_leave();
    }
}
/* A free place, else that of the clique which nobody uses, and which was used longest ago; NULL: all are used. */
static Clique *clique_place(void) {
    Clique *best = NULL;
    for (Clique *q = all.cliques; q < all.cliques + MOST_CLIQUES; q++) {
        if (!q->n) return q;
        if (!q->users && (!best || q->last < best->last)) best = q;
    }
    if (best) clique_destroy(best);
    return best;
}
/* NULL: the call does without. */
static Clique *clique_new(Device *by, int64_t n, const int *gpus) {
    Clique *q = try_now(&all.starts) ? clique_place() : NULL;
    if (!q) return NULL;
    *q = (Clique){.by = by};
    memcpy(q->gpus, gpus, (size_t)n * sizeof *gpus);
    int r = nccl.ncclCommInitAll(q->comms, (int)n, q->gpus);
    tried(&all.starts, !r);
    if (r == INVALID_ARGUMENT || r == INVALID_USAGE) all.usable = false; /* it will never be what we need */
    if (r) return NULL;
    if (!all.registered) all.registered = jaxcc_rt_cuda_at_end(end_all);
    q->n = n;
    return q;
}
/* NULL: there is no NCCL for these. */
static Clique *clique_of(Device *own, Call *whole, int64_t n, const int *gpus) {
    if (whole->without_nccl || !usable()) return NULL;
    Clique *q = all.cliques, *end = q + MOST_CLIQUES;
    while (q < end && (q->n != n || q->aborted || memcmp(q->gpus, gpus, (size_t)n * sizeof *gpus) != 0)) q++;
    if (q < end) ask(q);
    if (q == end || q->aborted) q = clique_new(own, n, gpus);
    whole->without_nccl = !q;
    return q;
}
void jaxcc_rt_nccl_lost(const Device *d) {
    pthread_mutex_lock(&all.lock);
    for (Clique *q = all.cliques; q < all.cliques + MOST_CLIQUES; q++) {
        bool has = false;
        for (int64_t i = 0; i < q->n; i++) has |= q->gpus[i] == d->ordinal;
        if (has && !q->aborted) q->lost = d;
        if (has) clique_abort(q);
    }
    pthread_mutex_unlock(&all.lock);
}

static uint64_t bit_of(const Clique *q) { return (uint64_t)1 << (q - all.cliques); }
static const Clique *aborted(const Call *c) {
    for (const Clique *q = all.cliques; q < all.cliques + MOST_CLIQUES; q++)
        if (c->cliques & bit_of(q) && q->aborted) return q;
    return NULL;
}
static int32_t fail_aborted(const Clique *q) {
    if (q->lost) return jaxcc_rt_fail_text(JAXCC_INTERNAL, q->lost->why);
    if (q->error)
        return jaxcc_rt_fail(JAXCC_INTERNAL, "what GPUs exchange by NCCL has failed: %s",
                             nccl.ncclGetErrorString(q->error));
    return jaxcc_rt_fail_text(JAXCC_INTERNAL, "what GPUs exchange by NCCL was aborted: it has failed in another call");
}

/* ---- failures of kernels */
int32_t jaxcc_rt_nccl_check(const Call *c) {
    pthread_mutex_lock(&all.lock);
    for (Clique *q = all.cliques; q < all.cliques + MOST_CLIQUES; q++)
        if (c->cliques & bit_of(q)) ask(q);
    const Clique *bad = aborted(c);
    int32_t status = bad ? fail_aborted(bad) : 0;
    pthread_mutex_unlock(&all.lock);
    return status;
}
/* Until its stream has come so far, or what it exchanges has failed. */
static int32_t wait(Call *c) {
    enum { AT_ONCE = 1000, PERIOD = 50 * 1000 }; /* times; ns */
    int32_t status = jaxcc_rt_cuda_lane_mark(c->device, c->lane, c->stream);
    CUresult r = 0;
    for (int turn = 0; !status && (r = jaxcc_rt_cuda.cuEventQuery(c->lane->mark)) == CUDA_ERROR_NOT_READY; turn++) {
        if (turn < AT_ONCE) {
            sched_yield();
            continue;
        }
        status = jaxcc_rt_nccl_check(c);
        if (!status) nanosleep(&(struct timespec){.tv_nsec = PERIOD}, NULL);
    }
    if (status) return status;
    return r ? jaxcc_rt_cuda_failed(c->device, r, "cuEventQuery") : jaxcc_rt_nccl_check(c);
}

/* ---- who uses them */
static void use(Clique *q, Call *c) {
    if (c->cliques & bit_of(q)) return;
    c->cliques |= bit_of(q);
    if (nccl.ncclCommGetAsyncError) c->patience = wait;
    q->users++;
}
void jaxcc_rt_nccl_join(Call *c, const Call *around) {
    pthread_mutex_lock(&all.lock);
    for (Clique *q = all.cliques; q < all.cliques + MOST_CLIQUES; q++)
        if (around->cliques & bit_of(q)) use(q, c);
    pthread_mutex_unlock(&all.lock);
}
int32_t jaxcc_rt_nccl_leave(Call *c, int32_t status) {
    if (!c->cliques) return status;
    pthread_mutex_lock(&all.lock);
    const Clique *bad = aborted(c);
    if (bad && !status) status = fail_aborted(bad);
    for (Clique *q = all.cliques; q < all.cliques + MOST_CLIQUES; q++)
        if (c->cliques & bit_of(q) && --q->users == 0 && q->aborted) q->n = 0;
    c->cliques = 0;
    pthread_mutex_unlock(&all.lock);
    return status;
}

/* ---- exchanges */
static Call *call_at(const jaxcc_rt_exchange *x, int64_t i) { return jaxcc_rt_cuda_member(x->members[i].comm); }
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
static int32_t for_all(const jaxcc_rt_exchange *x, int32_t (*what)(Device *, CUstream)) {
    int32_t status = 0;
    for (int64_t i = 0; i < x->n && !status; i++) {
        const Call *c = call_at(x, i);
        status = jaxcc_rt_cuda_visit(c->device);
        if (status) break;
        status = what(c->device, c->stream);
        jaxcc_rt_cuda_back();
    }
    return status;
}
static int32_t enqueue_apart(Device *own, const Clique *q, const jaxcc_rt_exchange *x) {
    int32_t status = jaxcc_rt_cuda_visit(own);
    if (status) return status;
    status = enqueue(q, x);
    jaxcc_rt_cuda_back();
    return status;
}
static Clique *clique_apart(Call *own, int64_t n, const int *gpus) {
    if (jaxcc_rt_cuda_visit(own->device)) return NULL;
    Clique *q = clique_of(own->device, own->whole, n, gpus);
    jaxcc_rt_cuda_back();
    return q;
}
static int32_t exchange_by(Device *own, Clique *q, const jaxcc_rt_exchange *x) {
    int32_t status = 0;
    q->last = ++all.uses;
    for (int64_t i = 0; i < x->n; i++) {
        const Clique *bad = aborted(call_at(x, i));
        if (bad) status = fail_aborted(bad);
        use(q, call_at(x, i));
    }
    if (status) return status;
    status = for_all(x, begin_after);
    if (!status) status = enqueue_apart(own, q, x);
    if (!status) status = for_all(x, record);
    if (status) clique_abort(q);
    return status;
}
int32_t jaxcc_rt_nccl_exchange(jaxcc_rt_heap *h, const jaxcc_rt_exchange *x, bool *done) {
    int gpus[MOST_GPUS];
    int32_t status = 0;
    *done = false;
    if (!on_different(x, gpus)) return 0;
    pthread_mutex_lock(&all.lock);
    Call *own = call_of(h);
    Clique *q = clique_apart(own, x->n, gpus);
    if (q) status = exchange_by(own->device, q, x);
    *done = q && !status;
    pthread_mutex_unlock(&all.lock);
    return status;
}
