/* libnccl.so.2 for tests: moves bytes between the devices of libcuda.so.1, on the streams that it is given, and promises no
   more than NVIDIA's: what a rank receives is there for what follows on its stream, and what it sends may be overwritten by
   what follows on its own. Calls of a group that do not match are an error, and another context may be current after a
   call. Of the environment:

   JAXCC_NCCL_LOG=FILE    a line for each function that is called, and for each communicator that is left at the end
   JAXCC_NCCL_FAIL=A:2:5  the second use of function A answers 5; 2 if nothing is said; the 0th: all
   JAXCC_NCCL_LOST=2:6    the kernels of the second group do not end, and its communicators tell who asks of error 6; the 0th:
                          those that jaxcc_nccl_lose() is for tell of it */
#include "runtime/cuda_driver.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUDA_FAILED = 1, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, MOST_OPS = 1024 };
typedef struct Clique Clique;
typedef struct {
    Clique *clique; /* NULL: it has ended */
    int rank, device;
    CUcontext context;
} Comm;
struct Clique {
    int n, alive, number;
    Comm ranks[];
};
typedef enum { SEND, RECEIVE, GATHER } Kind;
typedef struct {
    Kind kind;
    Comm *comm;
    int peer;
    const char *from;
    char *to;
    size_t n;
    CUstream stream;
    bool matched;
} Op;
static struct {
    int depth, n;
    Op ops[MOST_OPS];
} group;                            /* one thread at a time calls */
static int left, made, lost_before; /* lost_before: cliques up to that number have failed */
static volatile bool held;          /* the lost kernels, ... */
static const Clique *lost_clique;   /* until a communicator of this is aborted */

#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef int Routine();
static Routine *of(const char *name) {
    void *l = dlopen("libcuda.so.1", RTLD_NOW), *found = l ? dlsym(l, name) : NULL;
    Routine *f;
    if (!found) fprintf(stderr, "nccl: %s: %s\n", name, dlerror()), exit(1);
    memcpy(&f, &found, sizeof f);
    return f;
}
#define DRIVER(function, ...) of(#function)(__VA_ARGS__)
static void say(const char *what) {
    const char *path = getenv("JAXCC_NCCL_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s\n", what);
    fclose(f);
}
/* What the function answers before it does anything. */
static int begin(const char *name) {
    static int calls;
    const char *fail = getenv("JAXCC_NCCL_FAIL"), *colon = fail ? strchr(fail, ':') : NULL;
    say(name);
    if (!colon || strlen(name) != (size_t)(colon - fail) || memcmp(name, fail, strlen(name)) != 0) return 0;
    const char *answer = strchr(colon + 1, ':');
    if (atoi(colon + 1) && ++calls != atoi(colon + 1)) return 0;
    return answer ? atoi(answer + 1) : SYSTEM_ERROR;
}
static int enter(const Comm *c) { return DRIVER(cuCtxPushCurrent_v2, c->context); }
static void leave(void) { DRIVER(cuCtxPopCurrent_v2, NULL); }

/* ---- communicators */
static void end(Comm *c) {
    Clique *q = c->clique;
    DRIVER(cuDevicePrimaryCtxRelease_v2, c->device);
    c->clique = NULL;
    left--;
    if (--q->alive == 0) free(q);
}
int ncclCommInitAll(Comm **comms, int n, const int *devices) {
    int answer = begin("ncclCommInitAll");
    if (answer) return answer;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (devices[i] == devices[k]) return INVALID_USAGE;
    Clique *q = calloc(1, sizeof *q + (size_t)n * sizeof *q->ranks);
    q->n = n;
    q->number = ++made;
    for (int i = 0; i < n && !answer; i++) {
        Comm *c = comms[i] = &q->ranks[i];
        *c = (Comm){q, i, devices[i], NULL};
        answer = DRIVER(cuDevicePrimaryCtxRetain, &c->context, c->device);
        if (c->context) q->alive++, left++; /* also of a device that has failed */
    }
    if (!answer) return DRIVER(cuCtxSetCurrent, comms[n - 1]->context) ? CUDA_FAILED : 0;
    int there = q->alive++; /* until they have ended */
    for (int i = 0; i < there; i++) end(comms[i]);
    free(q);
    return CUDA_FAILED;
}
int ncclCommAbort(Comm *c) {
    if (!c->clique) return INVALID_ARGUMENT;
    say("ncclCommAbort");
    if (c->clique == lost_clique) held = false;
    end(c);
    return 0;
}
int ncclCommDestroy(Comm *c) {
    if (!c->clique) return INVALID_ARGUMENT;
    int answer = begin("ncclCommDestroy");
    if (!enter(c)) DRIVER(cuCtxSynchronize), leave();
    end(c);
    return answer;
}
static const char *lost(void) {
    const char *text = getenv("JAXCC_NCCL_LOST");
    return text ? text : "0:0";
}
int ncclCommGetAsyncError(Comm *c, int *error) {
    if (!c->clique) return INVALID_ARGUMENT;
    bool failed = c->clique->number <= lost_before || (held && c->clique == lost_clique);
    *error = failed ? atoi(strchr(lost(), ':') + 1) : 0;
    return 0;
}
/* For tests: all that there are fail. */
void jaxcc_nccl_lose(void) { lost_before = made; }
bool jaxcc_nccl_holds(void) { return held; }
const char *ncclGetErrorString(int r) {
    static const char *const names[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error"};
    return names[r];
}
__attribute__((destructor)) static void at_end(void) {
    for (; left > 0; left--) say("a communicator is left");
}

/* ---- groups */
int ncclGroupStart(void) {
    int answer = begin("ncclGroupStart");
    if (!answer) group.depth++;
    return answer;
}
static int add(const char *name, Op op) {
    int answer = begin(name);
    if (answer) return answer;
    if (!group.depth || group.n == MOST_OPS) return INVALID_USAGE;
    if (!op.comm->clique || op.peer < 0 || op.peer >= op.comm->clique->n) return INVALID_ARGUMENT;
    group.ops[group.n++] = op;
    return 0;
}
int ncclAllGather(const void *from, void *to, size_t n, int type, Comm *c, CUstream s) {
    return type ? INVALID_ARGUMENT : add("ncclAllGather", (Op){GATHER, c, 0, from, to, n, s, false});
}
int ncclSend(const void *from, size_t n, int type, int peer, Comm *c, CUstream s) {
    return type ? INVALID_ARGUMENT : add("ncclSend", (Op){SEND, c, peer, from, NULL, n, s, false});
}
int ncclRecv(void *to, size_t n, int type, int peer, Comm *c, CUstream s) {
    return type ? INVALID_ARGUMENT : add("ncclRecv", (Op){RECEIVE, c, peer, NULL, to, n, s, false});
}
/* `stream` of one continues when the other one's has come so far. */
static int follow(const Comm *c, CUstream stream, const Comm *other, CUstream before) {
    CUevent e;
    int r = enter(other);
    if (r) return r;
    r = DRIVER(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
    if (!r && (r = DRIVER(cuEventRecord, e, before))) DRIVER(cuEventDestroy_v2, e);
    leave();
    if (r || (r = enter(c))) return r;
    r = DRIVER(cuStreamWaitEvent, stream, e, 0);
    DRIVER(cuEventDestroy_v2, e);
    leave();
    return r;
}
static int transfer(const Op *s, const Op *r, char *to) {
    CUdeviceptr a = (CUdeviceptr)(uintptr_t)s->from, b = (CUdeviceptr)(uintptr_t)to;
    if (s->n != r->n) return INVALID_USAGE;
    if (s->comm != r->comm && follow(r->comm, r->stream, s->comm, s->stream)) return CUDA_FAILED;
    if (enter(r->comm)) return CUDA_FAILED;
    int failed = s->comm == r->comm
                     ? DRIVER(cuMemcpyDtoDAsync_v2, b, a, s->n, r->stream)
                     : DRIVER(cuMemcpyPeerAsync, b, r->comm->context, a, s->comm->context, s->n, r->stream);
    leave();
    if (!failed && s->comm != r->comm) failed = follow(s->comm, s->stream, r->comm, r->stream);
    return failed ? CUDA_FAILED : 0;
}
/* The group's call of that rank which has not been matched. */
static Op *match(Kind kind, const Comm *like, int rank, int peer) {
    for (Op *o = group.ops; o < group.ops + group.n; o++)
        if (o->kind == kind && o->comm->clique == like->clique && o->comm->rank == rank && o->peer == peer &&
            !o->matched)
            return o;
    return NULL;
}
static int receive(Op *r) {
    Op *s = match(SEND, r->comm, r->peer, r->comm->rank);
    if (!s) return INVALID_USAGE;
    s->matched = r->matched = true;
    return transfer(s, r, r->to);
}
static int gather(const Op *r) {
    int answer = 0;
    for (int i = 0; i < r->comm->clique->n && !answer; i++) {
        const Op *s = match(GATHER, r->comm, i, 0);
        answer = s ? transfer(s, r, r->to + (size_t)i * r->n) : INVALID_USAGE;
    }
    return answer;
}
static int hold(const Op *o) {
    int r = enter(o->comm);
    if (r) return r;
    r = of("jaxcc_gpu_hold")(o->stream, &held);
    leave();
    return r;
}
int ncclGroupEnd(void) {
    static int groups;
    int answer = begin("ncclGroupEnd");
    if (--group.depth) return answer;
    bool now = ++groups == atoi(lost());
    if (now) held = true, lost_clique = group.ops[0].comm->clique;
    for (int i = 0; i < group.n && !answer && now; i++) answer = hold(&group.ops[i]) ? CUDA_FAILED : 0;
    for (int i = 0; i < group.n && !answer; i++) {
        Op *o = &group.ops[i];
        if (o->kind != SEND) answer = o->kind == GATHER ? gather(o) : receive(o);
    }
    for (int i = 0; i < group.n && !answer; i++)
        if (group.ops[i].kind == SEND && !group.ops[i].matched) answer = INVALID_USAGE;
    if (group.n) DRIVER(cuCtxSetCurrent, group.ops[group.n - 1].comm->context);
    group.n = 0;
    return answer;
}
