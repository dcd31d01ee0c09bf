/* The driver for tests itself (gpu/driver.h), by its functions: gpu_driver LIBRARY. Each test is a child with its
   environment, by which the driver does work at once, or only when it is waited for. */
#include "gpu/kernels.h"
#include "../runtime/cuda_driver.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *Handle;
/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct {
    CUfunction function;
    unsigned dims[6], shared;
    void **parameters, **extra, *kernel, *context;
} KernelParams;
typedef jaxcc_rt_cuda_node ConditionParams;

#define MORE(X)                                                                                                        \
    X(cuLaunchHostFunc, CUstream, void (*)(void *), void *)                                                            \
    X(cuGraphCreate, CUgraph *, unsigned)                                                                              \
    X(cuGraphGetNodes, Handle, Handle *, size_t *)                                                                     \
    X(cuGraphKernelNodeGetParams_v2, Handle, KernelParams *)                                                           \
    X(cuGraphExecKernelNodeSetParams_v2, Handle, Handle, const KernelParams *)                                         \
    X(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream)                                                                \
    X(cuCtxSynchronize, void)                                                                                          \
    X(cuMemFreeAsync, CUdeviceptr, CUstream)                                                                           \
    X(cuDeviceGetDefaultMemPool, Handle *, CUdevice)                                                                   \
    X(cuMemPoolSetAttribute, Handle, int, void *)                                                                      \
    X(cuMemPoolGetAttribute, Handle, int, void *)                                                                      \
    X(cuMemGetInfo_v2, size_t *, size_t *)
static struct {
#define CUDA(name, ...) CUresult (*name)(__VA_ARGS__);
#include "../runtime/cuda_driver.def"
#undef CUDA
#define DECLARE(name, ...) CUresult (*name)(__VA_ARGS__);
    MORE(DECLARE)
} cu;
static void find(void *library, const char *name, void *at) {
    void *f = dlsym(library, name);
    if (!f) fprintf(stderr, "no %s\n", name), exit(9);
    memcpy(at, &f, sizeof f);
}

/* ---- what the tests share */
enum { N = 1000, ALL = 4 * N };
static CUcontext context;
static CUstream stream;
static CUmodule module;
static CUfunction axpy, count, loop, fault;
static CUdeviceptr x, y, out, a;
static float *pinned;

#define IS(call, want) is(call, want, #call, __LINE__)
#define OK(call) IS(call, 0)
static void is(CUresult r, CUresult want, const char *what, int line) {
    if (r == want) return;
    fprintf(stderr, "line %d: %s is %d, not %d\n", line, what, r, want);
    exit(1);
}
#define TRUE(condition) IS(!(condition), 0)

static void start(void) {
    float half = 0.5f;
    OK(cu.cuInit(0));
    OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu.cuCtxPushCurrent_v2(context));
    OK(cu.cuStreamCreate(&stream, 1));
    OK(cu.cuModuleLoadDataEx(&module, KERNELS("7.0", "sm_80"), 0, NULL, NULL));
    OK(cu.cuModuleGetFunction(&axpy, module, "axpy"));
    OK(cu.cuModuleGetFunction(&count, module, "count"));
    OK(cu.cuModuleGetFunction(&fault, module, "fault"));
    CUdeviceptr *arrays[] = {&x, &y, &out, &a};
    for (int i = 0; i < 4; i++) {
        OK(cu.cuMemAlloc_v2(arrays[i], ALL));
        OK(cu.cuMemsetD32Async(*arrays[i], 0, N, stream));
    }
    OK(cu.cuMemcpyHtoDAsync_v2(a, &half, 4, stream));
    OK(cu.cuMemHostAlloc((void **)&pinned, ALL, 0));
    for (int i = 0; i < N; i++) pinned[i] = (float)i;
    OK(cu.cuMemcpyHtoDAsync_v2(x, pinned, ALL, stream));
    OK(cu.cuStreamSynchronize(stream));
}
static void finish(void) {
    CUdeviceptr arrays[] = {x, y, out, a};
    for (int i = 0; i < 4; i++) OK(cu.cuMemFree_v2(arrays[i]));
    OK(cu.cuMemFreeHost(pinned));
    OK(cu.cuModuleUnload(module));
    OK(cu.cuStreamDestroy_v2(stream));
    OK(cu.cuCtxPopCurrent_v2(NULL));
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
}
/* to = a from + to */
static CUresult add(CUdeviceptr from, CUdeviceptr to, CUstream s) {
    uint64_t p[] = {from, to, to, N, a};
    void *parameters[] = {p};
    return cu.cuLaunchKernel(axpy, 4, 1, 1, 256, 1, 1, 0, s, parameters, NULL);
}
static float element(CUdeviceptr from, int i) { /* waits for the stream */
    float v[1] = {-1};
    OK(cu.cuMemcpyDtoHAsync_v2(v, from + 4 * (CUdeviceptr)i, 4, stream));
    return v[0];
}
static bool lazy(void) { return getenv("JAXCC_GPU_LAZY") && *getenv("JAXCC_GPU_LAZY") == '1'; }

/* ---- tests */
static void forgotten_wait(void) {
    OK(add(x, y, stream));
    pinned[10] = -7;
    OK(cu.cuMemcpyDtoHAsync_v2(pinned, y, ALL, stream));
    TRUE(pinned[10] == (lazy() ? -7 : 5));
    OK(cu.cuStreamSynchronize(stream));
    TRUE(pinned[10] == 5);
}
static void source_changed_early(void) {
    OK(cu.cuMemcpyHtoDAsync_v2(y, pinned, ALL, stream));
    pinned[10] = -7;
    TRUE(element(y, 10) == (lazy() ? -7 : 10));
    float pageable[N] = {3};
    OK(cu.cuMemcpyHtoDAsync_v2(y, pageable, ALL, stream));
    pageable[0] = 4;
    TRUE(element(y, 0) == 3); /* the driver has copied it */
}
static void freed_early(void) {
    CUstream other;
    OK(cu.cuStreamCreate(&other, 1));
    OK(add(x, y, stream));
    OK(cu.cuMemFreeAsync(y, other));
    OK(cu.cuStreamSynchronize(other));
    IS(cu.cuStreamSynchronize(stream), lazy() ? 700 : 0);
    OK(cu.cuStreamDestroy_v2(stream) * !lazy());
    if (lazy()) IS(cu.cuMemAlloc_v2(&y, ALL), 700); /* whatever is called */
    _exit(0);
}
static void faults(void) {
    OK(cu.cuLaunchKernel(fault, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    IS(cu.cuStreamSynchronize(stream), 700);
    IS(cu.cuStreamSynchronize(stream), 700);
    IS(cu.cuMemFree_v2(x), 700);
    OK(cu.cuCtxPopCurrent_v2(NULL));
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    start(); /* a new context */
    TRUE(element(x, 3) == 3);
}
static void events(void) {
    CUstream other;
    CUevent done;
    OK(cu.cuStreamCreate(&other, 1));
    OK(cu.cuEventCreate(&done, 2));
    OK(cu.cuEventQuery(done));
    OK(add(x, y, other));
    OK(cu.cuEventRecord(done, other));
    IS(cu.cuEventQuery(done), lazy() ? 600 : 0);
    OK(cu.cuStreamWaitEvent(stream, done, 0));
    OK(add(y, out, stream));
    TRUE(element(out, 8) == 2);
    OK(cu.cuEventQuery(done));
    OK(add(x, y, other));
    OK(cu.cuEventRecord(done, other));
    while (cu.cuEventQuery(done)) continue; /* who asks often enough sees it done */
    TRUE(element(y, 8) == 8);
    OK(cu.cuEventDestroy_v2(done));
    IS(cu.cuEventSynchronize(done), 400);
    OK(cu.cuStreamDestroy_v2(other));
}
static void default_stream(void) {
    CUstream blocking;
    OK(cu.cuStreamCreate(&blocking, 0));
    OK(add(x, y, blocking));
    OK(add(y, out, NULL));
    OK(add(out, x, blocking));
    OK(cu.cuStreamSynchronize(blocking));
    TRUE(element(x, 8) == 9);
    OK(cu.cuStreamDestroy_v2(blocking));
}
static void misuses(void) {
    CUstream s;
    CUdeviceptr p;
    OK(cu.cuStreamCreate(&s, 1));
    OK(cu.cuStreamDestroy_v2(s));
    IS(cu.cuStreamSynchronize(s), 400);
    IS(cu.cuStreamDestroy_v2(s), 400);
    IS(add(x, y, (CUstream)module), 400);
    IS(cu.cuEventRecord((CUevent)stream, stream), 400);
    OK(cu.cuMemAlloc_v2(&p, 16));
    OK(cu.cuMemFree_v2(p));
    IS(cu.cuMemFree_v2(p), 1);
    IS(cu.cuMemFree_v2(x + 4), 1);
    IS(cu.cuMemcpyDtoDAsync_v2(x, y, ALL + 1, stream), 1);
    IS(cu.cuMemsetD32Async(x + 2, 0, 1, stream), 1);
    IS(cu.cuMemAlloc_v2(&p, 0), 1);
    IS(cu.cuMemAlloc_v2(&p, (size_t)1 << 40), 2);
    IS(cu.cuLaunchKernel(axpy, 0, 1, 1, 256, 1, 1, 0, stream, (void *[]){&p}, NULL), 1);
    IS(cu.cuLaunchKernel(axpy, 1, 1, 1, 2048, 1, 1, 0, stream, (void *[]){&p}, NULL), 1);
    IS(cu.cuLaunchKernel(axpy, 1, 1, 1, 1, 1, 1, 50000, stream, (void *[]){&p}, NULL), 1);
    IS(cu.cuModuleGetFunction(&loop, module, "none"), 500);
    OK(cu.cuModuleUnload(module));
    IS(add(x, y, stream), 400);
    OK(cu.cuModuleLoadDataEx(&module, KERNELS("7.0", "sm_80"), 0, NULL, NULL));
    OK(cu.cuCtxPopCurrent_v2(NULL));
    IS(cu.cuMemAlloc_v2(&p, 16), 201);
    OK(cu.cuCtxPushCurrent_v2(context));
}
static void pointers(void) {
    int ordinal = -1, type = 0;
    OK(cu.cuPointerGetAttribute(&ordinal, 9, x + 100));
    OK(cu.cuPointerGetAttribute(&type, 2, x));
    TRUE(ordinal == 0 && type == 2);
    OK(cu.cuPointerGetAttribute(&type, 2, (CUdeviceptr)pinned));
    TRUE(type == 1);
    IS(cu.cuPointerGetAttribute(&type, 2, (CUdeviceptr)&type), 1);
    IS(cu.cuPointerGetAttribute(&type, 2, x + ALL), 1);
}
static void pools(void) {
    Handle pool;
    uint64_t most = 1 << 20, got = 0;
    CUdeviceptr p;
    OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cu.cuMemPoolSetAttribute(pool, 4, &most)); /* RELEASE_THRESHOLD */
    OK(cu.cuMemPoolGetAttribute(pool, 4, &got));
    TRUE(got == most);
    OK(cu.cuMemAllocAsync(&p, ALL, stream));
    OK(cu.cuMemcpyDtoDAsync_v2(p, x, ALL, stream));
    OK(add(p, y, stream));
    OK(cu.cuMemFreeAsync(p, stream)); /* after the kernel */
    TRUE(element(y, 4) == 2);
    IS(cu.cuMemFreeAsync(p, stream), 1);
}
static void peers(void) {
    CUcontext other;
    CUdeviceptr p;
    int can = 0;
    size_t unused, all;
    OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
    OK(cu.cuDeviceCanAccessPeer(&can, 0, 1));
    TRUE(can);
    OK(cu.cuCtxEnablePeerAccess(other, 0));
    IS(cu.cuCtxEnablePeerAccess(other, 0), 704);
    OK(cu.cuCtxPushCurrent_v2(other));
    OK(cu.cuMemAlloc_v2(&p, ALL));
    OK(cu.cuMemGetInfo_v2(&unused, &all));
    TRUE(unused == all - ALL);
    IS(cu.cuStreamSynchronize(stream), 400); /* of the other device */
    OK(cu.cuCtxPopCurrent_v2(NULL));
    OK(cu.cuMemcpyPeerAsync(p, other, x, context, ALL, stream));
    OK(cu.cuMemcpyPeerAsync(y, context, p, other, ALL, stream));
    TRUE(element(y, 9) == 9);
    OK(cu.cuCtxPushCurrent_v2(other));
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuCtxPopCurrent_v2(NULL));
    OK(cu.cuDevicePrimaryCtxRelease_v2(1));
}
/* Devices share nothing. */
static void another_device(void) {
    CUcontext other;
    CUdeviceptr p;
    OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
    OK(cu.cuCtxPushCurrent_v2(other));
    OK(cu.cuMemAlloc_v2(&p, ALL));
    OK(cu.cuCtxPopCurrent_v2(NULL));
    IS(cu.cuMemcpyDtoDAsync_v2(y, p, ALL, stream), 1);
    OK(cu.cuMemcpyPeerAsync(p, other, x, context, ALL, stream));
    OK(add(p, y, stream));
    IS(cu.cuStreamSynchronize(stream), 700);
    _exit(0);
}
/* What comes after a wait is not done while that is waited for, though streams take turns. */
static void turns(void) {
    enum { ONE = 0x3F800000 }; /* 1.0f */
    CUstream other;
    CUevent e;
    OK(cu.cuStreamCreate(&other, 1));
    OK(cu.cuEventCreate(&e, 2));
    for (CUdeviceptr i = 0; i < 10; i++) OK(cu.cuMemsetD32Async(x + 4 * i, ONE, 1, other));
    OK(cu.cuEventRecord(e, other));
    OK(cu.cuStreamWaitEvent(stream, e, 0));
    OK(add(x, y, stream));
    TRUE(element(y, 9) == 0.5f);
    OK(cu.cuEventDestroy_v2(e));
    OK(cu.cuStreamDestroy_v2(other));
}
/* y += x / 2 and out += y / 2, the second one by way of another stream */
/* What might wait ends a capture, unless the thread's mode allows it; what waits for all streams ends it whatever that
   is. */
static void forbidden(void) {
    enum { RELAXED = 2 };
    CUgraph graph;
    CUdeviceptr p;
    int mode = RELAXED;
    OK(cu.cuStreamBeginCapture_v2(stream, 1));
    IS(cu.cuMemAlloc_v2(&p, 16), 900);
    IS(cu.cuStreamEndCapture(stream, &graph), 901);
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    TRUE(mode == 0);
    OK(cu.cuStreamBeginCapture_v2(stream, 1));
    OK(cu.cuMemAlloc_v2(&p, 16));
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuStreamEndCapture(stream, &graph));
    OK(cu.cuGraphDestroy(graph));
    OK(cu.cuStreamBeginCapture_v2(stream, 1));
    IS(cu.cuCtxSynchronize(), 900);
    IS(cu.cuStreamEndCapture(stream, &graph), 901);
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    TRUE(mode == RELAXED);
}
static void graphs(void) {
    CUstream other;
    CUevent fork, join;
    CUgraph graph;
    CUgraphExec run;
    Handle nodes[4];
    size_t n = 4;
    int capturing = 0;
    OK(cu.cuStreamCreate(&other, 1));
    OK(cu.cuEventCreate(&fork, 2));
    OK(cu.cuEventCreate(&join, 2));
    OK(cu.cuStreamBeginCapture_v2(stream, 1));
    OK(add(x, y, stream));
    OK(cu.cuEventRecord(fork, stream));
    OK(cu.cuStreamWaitEvent(other, fork, 0));
    OK(add(y, out, other));
    OK(cu.cuEventRecord(join, other));
    OK(cu.cuStreamWaitEvent(stream, join, 0));
    IS(cu.cuEventSynchronize(fork), 907);
    OK(cu.cuMemsetD32Async(x, 0x3F800000, 1, stream));
    OK(cu.cuStreamIsCapturing(stream, &capturing));
    TRUE(capturing == 1);
    OK(cu.cuStreamEndCapture(stream, &graph));
    TRUE(element(y, 8) == 0);
    OK(cu.cuGraphInstantiateWithFlags(&run, graph, 0));
    OK(cu.cuGraphLaunch(run, stream));
    OK(cu.cuGraphLaunch(run, stream));
    TRUE(element(y, 8) == 8 && element(out, 8) == 2 + 4 && element(y, 0) == 0.5f);
    OK(cu.cuGraphGetNodes(graph, nodes, &n));
    TRUE(n == 3);
    KernelParams k = {.function = axpy, .dims = {4, 1, 1, 256, 1, 1}};
    uint64_t parameters[] = {x, x, x, N, a};
    k.parameters = (void *[]){parameters};
    OK(cu.cuGraphExecKernelNodeSetParams_v2(run, nodes[0], &k)); /* now x += x / 2, then out += y / 2 */
    OK(cu.cuGraphLaunch(run, stream));
    TRUE(element(x, 8) == 12 && element(y, 8) == 8 && element(out, 8) == 10);
    OK(cu.cuGraphDestroy(graph));
    OK(cu.cuGraphLaunch(run, stream));
    TRUE(element(x, 8) == 18);
    OK(cu.cuGraphExecDestroy(run));
    IS(cu.cuGraphLaunch(run, stream), 400);
    OK(cu.cuStreamBeginCapture_v2(stream, 1));
    IS(cu.cuStreamSynchronize(stream), 900);
    IS(cu.cuStreamEndCapture(stream, &graph), 901);
    forbidden();
    OK(cu.cuStreamDestroy_v2(other));
    OK(cu.cuEventDestroy_v2(fork));
    OK(cu.cuEventDestroy_v2(join));
}
/* A graph with a node for a loop, whose body is to be made. */
typedef struct {
    CUmodule module;
    CUgraph graph, body;
    uint64_t condition;
    CUgraphNode node;
} Loop;
static void loop_open(Loop *l) {
    OK(cu.cuModuleLoadDataEx(&l->module, KERNELS_LOOP, 0, NULL, NULL));
    OK(cu.cuModuleGetFunction(&loop, l->module, "loop"));
    OK(cu.cuGraphCreate(&l->graph, 0));
    OK(cu.cuGraphConditionalHandleCreate(&l->condition, l->graph, context, 1, 1));
    ConditionParams p = {.type = 13, .condition = l->condition, .kind = 1, .n_bodies = 1, .context = context};
    OK(cu.cuGraphAddNode_v2(&l->node, l->graph, NULL, NULL, 0, &p));
    l->body = p.bodies[0];
}
static void loop_close(Loop *l) {
    OK(cu.cuGraphDestroy(l->graph));
    OK(cu.cuModuleUnload(l->module));
}
/* Sets the condition to ++turns < most, turns at y. */
static CUresult turn(CUstream s, uint64_t most, uint64_t condition) {
    uint64_t parameters[] = {y, most, condition};
    return cu.cuLaunchKernel(loop, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){parameters}, NULL);
}
/* while (++turns < 7) x += x / 2, twice */
static void conditions(void) {
    Loop l;
    CUgraph body;
    CUgraphExec run;
    loop_open(&l);
    OK(cu.cuStreamBeginCaptureToGraph(stream, l.body, NULL, NULL, 0, 1));
    OK(add(x, x, stream));
    OK(turn(stream, 7, l.condition));
    OK(cu.cuStreamEndCapture(stream, &body));
    TRUE(body == l.body);
    OK(cu.cuGraphInstantiateWithFlags(&run, l.graph, 0));
    OK(cu.cuGraphLaunch(run, stream));
    TRUE(element(x, 64) == 64 * 17.0859375f); /* 1.5^7 */
    OK(cu.cuGraphLaunch(run, stream));        /* one more turn, as the condition is true again */
    TRUE(element(x, 64) == 64 * 25.62890625f);
    OK(cu.cuGraphExecDestroy(run));
    loop_close(&l);
}
/* The loop is a part of what is captured: x += x / 2; while (++turns < 4) x += x / 2; out = x / 2 */
static void captured_conditions(void) {
    Loop l;
    CUstream other;
    CUgraph graph, body;
    CUgraphExec run;
    const CUgraphNode *nodes;
    CUgraphNode node;
    int status = 0;
    size_t n = 9;
    loop_open(&l);
    OK(cu.cuStreamCreate(&other, 1));
    OK(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, &graph, &nodes, NULL, &n));
    TRUE(status == 0 && n == 9);
    IS(cu.cuStreamUpdateCaptureDependencies_v2(stream, &l.node, NULL, 1, 1), 401);
    OK(cu.cuStreamBeginCapture_v2(stream, 1));
    OK(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, &graph, &nodes, NULL, &n));
    TRUE(status == 1 && n == 0);
    OK(add(x, x, stream));
    OK(cu.cuGraphConditionalHandleCreate(&l.condition, graph, context, 1, 1));
    OK(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, &graph, &nodes, NULL, &n));
    TRUE(n == 1);
    ConditionParams p = {.type = 13, .condition = l.condition, .kind = 1, .n_bodies = 1, .context = context};
    OK(cu.cuGraphAddNode_v2(&node, graph, nodes, NULL, n, &p));
    OK(cu.cuStreamUpdateCaptureDependencies_v2(stream, &node, NULL, 1, 1));
    OK(cu.cuStreamBeginCaptureToGraph(other, p.bodies[0], NULL, NULL, 0, 1));
    OK(add(x, x, other));
    OK(turn(other, 4, l.condition));
    OK(cu.cuStreamEndCapture(other, &body));
    OK(add(x, out, stream));
    OK(cu.cuStreamEndCapture(stream, &graph));
    OK(cu.cuGraphInstantiateWithFlags(&run, graph, 0));
    OK(cu.cuGraphDestroy(graph));
    OK(cu.cuGraphLaunch(run, stream));
    TRUE(element(x, 64) == 64 * 7.59375f && element(out, 64) == 32 * 7.59375f); /* 1.5^5 */
    OK(cu.cuGraphExecDestroy(run));
    OK(cu.cuStreamDestroy_v2(other));
    loop_close(&l);
}
/* A loop in the body of a loop: while (++turns < 9) { x += x / 2; while (++turns < 3) x += x / 2; } */
static void nested_conditions(void) {
    Loop l;
    CUgraph body;
    CUgraphExec run;
    const CUgraphNode *nodes;
    CUgraphNode node;
    uint64_t inner;
    int status;
    size_t n;
    CUstream other;
    loop_open(&l);
    OK(cu.cuStreamCreate(&other, 1));
    OK(cu.cuStreamBeginCaptureToGraph(stream, l.body, NULL, NULL, 0, 1));
    OK(add(x, x, stream));
    OK(cu.cuGraphConditionalHandleCreate(&inner, l.body, context, 0, 1));
    OK(turn(stream, 3, inner));
    OK(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, &body, &nodes, NULL, &n));
    TRUE(body == l.body && n == 1);
    ConditionParams p = {.type = 13, .condition = inner, .kind = 1, .n_bodies = 1, .context = context};
    OK(cu.cuGraphAddNode_v2(&node, body, nodes, NULL, n, &p));
    OK(cu.cuStreamUpdateCaptureDependencies_v2(stream, &node, NULL, 1, 1));
    OK(cu.cuStreamBeginCaptureToGraph(other, p.bodies[0], NULL, NULL, 0, 1));
    OK(add(x, x, other));
    OK(turn(other, 3, inner));
    OK(cu.cuStreamEndCapture(other, &body));
    OK(turn(stream, 9, l.condition));
    OK(cu.cuStreamEndCapture(stream, &body));
    OK(cu.cuGraphInstantiateWithFlags(&run, l.graph, 0));
    OK(cu.cuGraphLaunch(run, stream));
    /* turns: 1, 2, 3 | 4, 5 | 6, 7 | 8, 9: 4 turns and 2 of the inner loop */
    TRUE(element(x, 64) == 64 * 11.390625f);
    OK(cu.cuGraphExecDestroy(run));
    OK(cu.cuStreamDestroy_v2(other));
    loop_close(&l);
}
static void nothing(void *data) {}
/* Each line is one misuse: 10. */
static void wrong_conditions(void) {
    Loop l;
    CUgraph body, other;
    CUgraphExec run;
    const CUgraphNode *nodes;
    CUgraphNode node;
    uint64_t condition;
    int status;
    size_t n;
    loop_open(&l);
    ConditionParams p = {.type = 13, .condition = l.condition, .kind = 1, .n_bodies = 1, .context = context}, q = p;
    IS(cu.cuGraphAddNode_v2(&node, l.graph, &l.node, NULL, 1, &p), 1); /* of two nodes */
    OK(cu.cuGraphCreate(&other, 0));
    IS(cu.cuGraphAddNode_v2(&node, other, NULL, NULL, 0, &p), 1); /* of another graph */
    OK(cu.cuGraphConditionalHandleCreate(&condition, other, context, 1, 1));
    IS(cu.cuGraphInstantiateWithFlags(&run, other, 0), 1); /* of no node */
    OK(cu.cuGraphDestroy(other));
    OK(cu.cuGraphConditionalHandleCreate(&condition, l.graph, context, 1, 1));
    p.condition = q.condition = condition;
    IS(cu.cuGraphAddNode_v2(&node, l.graph, NULL, NULL, 0, &p), 1); /* beside the other one */
    q.rest[3] = 1;
    IS(cu.cuGraphAddNode_v2(&node, l.graph, &l.node, NULL, 1, &q), 1); /* with more parameters */
    OK(cu.cuGraphAddNode_v2(&node, l.graph, &l.node, NULL, 1, &p));
    IS(cu.cuGraphDestroy(l.body), 1); /* what is the node's */
    OK(turn(stream, 7, l.condition)); /* not in the graph */
    OK(cu.cuStreamSynchronize(stream));
    OK(cu.cuStreamBeginCaptureToGraph(stream, l.body, NULL, NULL, 0, 1));
    OK(cu.cuLaunchHostFunc(stream, nothing, NULL));
    OK(cu.cuStreamEndCapture(stream, &body));
    IS(cu.cuGraphInstantiateWithFlags(&run, l.graph, 0), 1); /* the host */
    loop_close(&l);
    OK(cu.cuModuleLoadDataEx(&l.module, KERNELS_LOOP, 0, NULL, NULL));
    OK(cu.cuStreamBeginCapture_v2(stream, 1));
    OK(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, &other, &nodes, NULL, &n));
    OK(cu.cuGraphConditionalHandleCreate(&condition, other, context, 1, 1));
    p = (ConditionParams){.type = 13, .condition = condition, .kind = 1, .n_bodies = 1, .context = context};
    OK(cu.cuGraphAddNode_v2(&node, other, NULL, NULL, 0, &p));
    OK(add(x, x, stream)); /* does not follow the node, ... */
    OK(cu.cuStreamEndCapture(stream, &other));
    IS(cu.cuGraphInstantiateWithFlags(&run, other, 0), 1); /* ... and so does nothing */
    OK(cu.cuGraphDestroy(other));
    OK(cu.cuModuleUnload(l.module));
}
/* Before CUDA 12.8 a body without nodes hangs. */
static void empty_body(void) {
    Loop l;
    CUgraphExec run;
    loop_open(&l);
    IS(cu.cuGraphInstantiateWithFlags(&run, l.graph, 0), 1);
    loop_close(&l);
}
static void old_conditions(void) {
    CUgraph graph;
    uint64_t condition;
    const CUgraphNode *nodes;
    int status;
    size_t n;
    CUmodule m;
    IS(cu.cuModuleLoadDataEx(&m, KERNELS_LOOP, 0, NULL, NULL), 218);
    OK(cu.cuGraphCreate(&graph, 0));
    IS(cu.cuGraphConditionalHandleCreate(&condition, graph, context, 1, 1), 801);
    IS(cu.cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, 1), 801);
    IS(cu.cuStreamGetCaptureInfo_v3(stream, &status, NULL, &graph, &nodes, NULL, &n), 801);
    IS(cu.cuStreamUpdateCaptureDependencies_v2(stream, NULL, NULL, 1, 1), 801);
    OK(cu.cuGraphDestroy(graph));
}
/* What is not released is reported: three lines. */
static void leaks(void) {
    CUdeviceptr p;
    CUevent e;
    OK(cu.cuMemAlloc_v2(&p, 16));
    OK(cu.cuEventCreate(&e, 2));
    cu.cuMemFree_v2(p + 4);
}
static void failures(void) {
    CUdeviceptr p;
    IS(cu.cuMemAlloc_v2(&p, 16), 2); /* the fifth */
    OK(cu.cuMemAlloc_v2(&p, 16));
    OK(cu.cuMemFree_v2(p));
    OK(cu.cuMemsetD8Async(x, 0, 1, stream));
    IS(cu.cuMemsetD8Async(x, 0, 1, stream), 719);
    IS(cu.cuMemsetD8Async(x, 0, 1, stream), 719); /* for good */
    _exit(0);
}

/* Arrays of 300 and of 88 bytes at multiples of 256: what is between them need not be written, all else must. */
static CUdeviceptr two_arrays(size_t first, size_t second) {
    CUdeviceptr p;
    OK(cu.cuMemAlloc_v2(&p, ALL));
    OK(cu.cuMemsetD8Async(p, 0, first, stream));
    OK(cu.cuMemsetD8Async(p + 512, 0, second, stream));
    return p;
}
static void written(void) {
    char to[ALL];
    CUdeviceptr p = two_arrays(300, 88);
    OK(cu.cuMemcpyDtoHAsync_v2(to, p, 600, stream));
    OK(cu.cuMemcpyDtoHAsync_v2(to, p + 100, 200, stream));
    OK(cu.cuMemFree_v2(p));
}
static void not_written(CUdeviceptr p) {
    char to[ALL];
    IS(cu.cuMemcpyDtoHAsync_v2(to, p, 600, stream), 700);
    _exit(0);
}
static void end_not_written(void) { not_written(two_arrays(300, 87)); }
static void array_not_written(void) { not_written(two_arrays(256, 88)); } /* all that is in the next 256 bytes */
static void hole_not_written(void) {
    CUdeviceptr p = two_arrays(200, 88);
    OK(cu.cuMemsetD8Async(p + 201, 0, 99, stream));
    not_written(p);
}

/* Tensor maps that a GPU cannot use are refused: each row changes one thing of a map that is taken. */
typedef struct {
    int type, interleave, swizzle, promotion, fill;
    unsigned rank, box[5], steps[5];
    uint64_t offset, extents[5], strides[4];
} Map;
static const Map good_map = {1, 0, 3, 2, 0, 3, {64, 256, 1}, {1, 1, 1}, 0, {100, 300, 5}, {208, 62400}};
static void encode(const Map *m, CUresult want, int line) {
    static _Alignas(64) uint64_t map[16];
    CUresult r =
        cu.cuTensorMapEncodeTiled(map, m->type, m->rank, (void *)(uintptr_t)(x + m->offset), m->extents, m->strides,
                                  m->box, m->steps, m->interleave, m->swizzle, m->promotion, m->fill);
    is(r, want, "cuTensorMapEncodeTiled", line);
}
#define MAP(change, want)                                                                                              \
    {                                                                                                                  \
        Map m = good_map;                                                                                              \
        m.change;                                                                                                      \
        encode(&m, want, __LINE__);                                                                                    \
    }
/* The comment of a row says why, where its numbers do not. */
static void tensor_maps(void) {
    enum { INVALID = CUDA_ERROR_INVALID_VALUE, NOT_SUPPORTED = 801 };
    MAP(rank = 3, 0) MAP(rank = 1, 0) MAP(rank = 0, INVALID) MAP(rank = 6, INVALID);
    MAP(type = 0, 0) MAP(type = 13, INVALID) MAP(type = -1, INVALID);
    MAP(type = 2, INVALID); /* 256 bytes are more than are swizzled */
    MAP(offset = 16, 0) MAP(offset = 8, INVALID);
    MAP(box[0] = 8, 0)
    MAP(box[0] = 4, INVALID) MAP(box[0] = 60, INVALID) MAP(box[0] = 72, INVALID) MAP(box[0] = 0, INVALID);
    MAP(box[1] = 1, 0) MAP(box[1] = 0, INVALID) MAP(box[1] = 257, INVALID) MAP(box[2] = 65537, INVALID);
    MAP(swizzle = 0, 0)
    MAP(swizzle = 1, INVALID) MAP(swizzle = 2, INVALID) MAP(swizzle = 4, INVALID) MAP(swizzle = -1, INVALID);
    MAP(strides[0] = 216, INVALID) MAP(strides[1] = 62408, INVALID);
    MAP(strides[1] = ((uint64_t)1 << 40) - 16, 0) MAP(strides[1] = (uint64_t)1 << 40, INVALID);
    MAP(extents[0] = 1, 0) MAP(extents[0] = 0, INVALID) MAP(extents[2] = 0, INVALID);
    MAP(extents[1] = (uint64_t)1 << 32, 0) MAP(extents[1] = ((uint64_t)1 << 32) + 1, INVALID);
    MAP(steps[0] = 0, INVALID) MAP(steps[2] = 9, INVALID) MAP(steps[1] = 8, NOT_SUPPORTED);
    MAP(interleave = 3, INVALID) MAP(interleave = 1, NOT_SUPPORTED);
    MAP(promotion = 3, 0) MAP(promotion = 4, INVALID) MAP(promotion = -1, INVALID);
    MAP(fill = 2, INVALID) MAP(fill = 1, NOT_SUPPORTED);
    Map m = good_map;
    static _Alignas(64) uint64_t map[17];
    void *array = (void *)(uintptr_t)x;
    IS(cu.cuTensorMapEncodeTiled(map + 1, 1, 3, array, m.extents, m.strides, m.box, m.steps, 0, 3, 2, 0), INVALID);
    IS(cu.cuTensorMapEncodeTiled(NULL, 1, 3, array, m.extents, m.strides, m.box, m.steps, 0, 3, 2, 0), INVALID);
    IS(cu.cuTensorMapEncodeTiled(map, 1, 3, array, NULL, m.strides, m.box, m.steps, 0, 3, 2, 0), INVALID);
}

static const struct {
    const char *name;
    void (*run)(void);
    const char *variable, *value;
    int lines; /* of the leak report; -1: nothing is looked at */
} tests[] = {{"forgotten_wait", forgotten_wait, NULL, NULL, 0},
             {"source_changed_early", source_changed_early, NULL, NULL, 0},
             {"freed_early", freed_early, NULL, NULL, -1},
             {"faults", faults, NULL, NULL, 0},
             {"events", events, NULL, NULL, 1},
             {"default_stream", default_stream, NULL, NULL, 0},
             {"misuses", misuses, NULL, NULL, 14},
             {"pointers", pointers, NULL, NULL, 0},
             {"pools", pools, NULL, NULL, 1},
             {"peers", peers, "JAXCC_GPU_DEVICES", "2", 1},
             {"another_device", another_device, "JAXCC_GPU_DEVICES", "2", -1},
             {"turns", turns, "JAXCC_GPU_LAZY", "2", 0},
             {"tensor_maps", tensor_maps, NULL, NULL, -1},
             {"graphs", graphs, NULL, NULL, 1},
             {"conditions", conditions, NULL, NULL, 0},
             {"captured_conditions", captured_conditions, NULL, NULL, 0},
             {"nested_conditions", nested_conditions, NULL, NULL, 0},
             {"wrong_conditions", wrong_conditions, NULL, NULL, 10},
             {"empty_body", empty_body, "JAXCC_GPU_DRIVER", "12040", 1},
             {"old_conditions", old_conditions, "JAXCC_GPU_DRIVER", "12020", 0},
             {"leaks", leaks, NULL, NULL, 3},
             {"written", written, "JAXCC_GPU_UNINITIALISED", "1", 0},
             {"end_not_written", end_not_written, "JAXCC_GPU_UNINITIALISED", "1", -1},
             {"array_not_written", array_not_written, "JAXCC_GPU_UNINITIALISED", "1", -1},
             {"hole_not_written", hole_not_written, "JAXCC_GPU_UNINITIALISED", "1", -1},
             {"failures", failures, "JAXCC_GPU_FAIL", "cuMemAlloc_v2:5,cuMemsetD8Async:2:719", -1}};
enum { N_TESTS = sizeof tests / sizeof *tests };

static void child(const char *library, int i, bool is_lazy, const char *report) {
    setenv("JAXCC_GPU_LAZY", is_lazy ? "1" : "0", 1);
    setenv("JAXCC_GPU_LEAKS", report, 1);
    if (tests[i].variable) setenv(tests[i].variable, tests[i].value, 1);
    void *l = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!l) fprintf(stderr, "%s\n", dlerror()), exit(9);
#define CUDA(name, ...) find(l, #name, &cu.name);
#include "../runtime/cuda_driver.def"
#undef CUDA
#define FIND(name, ...) find(l, #name, &cu.name);
    MORE(FIND)
    start();
    tests[i].run();
    finish();
    exit(0);
}
static int lines(const char *path) {
    FILE *f = fopen(path, "r");
    int n = 0, c;
    while (f && (c = getc(f)) != EOF) n += c == '\n';
    if (f) fclose(f);
    return n;
}
static bool passes(const char *library, int i, bool is_lazy, const char *report, const char *said) {
    int status = 0;
    unlink(report);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        if (!freopen(said, "w", stderr)) exit(9);
        child(library, i, is_lazy, report);
    }
    waitpid(pid, &status, 0);
    int n = lines(report);
    if (!status && (tests[i].lines < 0 || n == tests[i].lines)) return true;
    printf("FAIL gpu_driver: %s, lazy %d: status %#x, %d lines of leaks\n", tests[i].name, is_lazy, status, n);
    char line[256];
    for (int k = 0; k < 2; k++)
        for (FILE *f = fopen(k ? report : said, "r"); f; fclose(f), f = NULL)
            while (fgets(line, sizeof line, f)) fputs(line, stdout);
    return false;
}
int main(int argc, char **argv) {
    int passed = 0, failed = 0;
    char report[] = "/tmp/gpu_driver.XXXXXX", said[] = "/tmp/gpu_driver.XXXXXX";
    if (argc != 2 || close(mkstemp(report)) || close(mkstemp(said))) return 2;
    for (int i = 0; i < 2 * N_TESTS; i++)
        if (passes(argv[1], i / 2, i % 2, report, said))
            passed++;
        else
            failed++;
    unlink(report);
    unlink(said);
    printf("gpu_driver: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
