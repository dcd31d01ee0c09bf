/* Loops whose predicate a kernel computes. Where the driver has nodes with conditions (CUDA 12.4), a loop is a graph
   with one: the body of the program calls what enqueues a turn once, and what that would enqueue is noted. The graph
   sets the condition from the predicate and has the node, whose own graph is the turn and the condition set again; so
   the host never waits. A loop in the turn is a node there. The graph is kept for loops with the same notes. While a
   call is recorded as a graph, the node goes into that. With other drivers, and when something fails, the host enqueues
   turns and reads the predicate now and then. */
#include "cuda_call.h"

enum { LOOPS_SINCE = 12040, MOST_FAILED = 4 };

/* ---- the kernel that sets a condition: {condition, address of the predicate} */
static const char code[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);\n"
                           ".visible .entry set_condition(.param .u64 condition, .param .u64 predicate)\n{\n"
                           "  .reg .b64 %rd<4>;\n  .reg .b32 %r<3>;\n  .reg .pred %p<2>;\n"
                           "  ld.param.u64 %rd1, [condition];\n  ld.param.u64 %rd2, [predicate];\n"
                           "  cvta.to.global.u64 %rd3, %rd2;\n  ld.global.u8 %r1, [%rd3];\n"
                           "  setp.ne.s32 %p1, %r1, 0;\n  selp.u32 %r2, 1, 0, %p1;\n"
                           "  {\n  .param .b64 param0;\n  st.param.b64 [param0], %rd1;\n"
                           "  .param .b32 param1;\n  st.param.b32 [param1], %r2;\n"
                           "  call.uni cudaGraphSetConditional, (param0, param1);\n  }\n  ret;\n}\n";
static int32_t load(Device *d) {
    int version = 0;
    bool has = jaxcc_rt_cuda_has(JAXCC_RT_CUDA_OF_GRAPHS) && jaxcc_rt_cuda_has(JAXCC_RT_CUDA_OF_LOOPS);
    if (!has || CU(d, cuDriverGetVersion, &version) || version < LOOPS_SINCE) return JAXCC_MISSING;
    int32_t status = d->conditions ? 0 : CU(d, cuModuleLoadDataEx, &d->conditions, code, 0, NULL, NULL);
    return status ? status : CU(d, cuModuleGetFunction, &d->set_condition, d->conditions, "set_condition");
}
/* Without memory this call does without loops, and a later one tries again; what else fails does so again. */
static void failed(Call *c, int32_t status, int by) {
    if (status == JAXCC_MEMORY)
        c->without_loops = true;
    else
        c->device->loops_failed += by;
}
bool jaxcc_rt_cuda_loops_ready(Call *c) {
    Device *d = c->device;
    if (c->without_loops || d->loops_failed >= MOST_FAILED) return false;
    pthread_mutex_lock(&d->loading);
    int32_t status = d->set_condition ? 0 : load(d);
    pthread_mutex_unlock(&d->loading);
    if (status) failed(c, status, MOST_FAILED);
    return !status && !jaxcc_rt_cuda_take_lane(c) && !jaxcc_rt_cuda_lane_inner(d, c->lane);
}

/* ---- recording */
static int32_t set_condition(Call *c, uint64_t condition, CUdeviceptr predicate, CUstream s) {
    void *parameters[] = {&condition, &predicate};
    return CU(c->device, cuLaunchKernel, c->device->set_condition, 1, 1, 1, 1, 1, 1, 0, s, parameters, NULL);
}
/* The graph that the stream records, and the nodes that the next one follows. */
static int32_t recorded(Call *c, CUstream s, CUgraph *graph, const CUgraphNode **last, size_t *n) {
    int recording = 0;
    int32_t status = CU(c->device, cuStreamGetCaptureInfo_v3, s, &recording, NULL, graph, last, NULL, n);
    if (status || recording == CU_STREAM_CAPTURE_STATUS_ACTIVE) return status;
    return jaxcc_rt_cuda_failed(c->device, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamGetCaptureInfo");
}
static int32_t add_node(Call *c, uint64_t condition, CUstream s, CUgraph *body) {
    jaxcc_rt_cuda_node params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                 .condition = condition,
                                 .kind = CU_GRAPH_COND_TYPE_WHILE,
                                 .n_bodies = 1,
                                 .context = c->device->context};
    CUgraph graph;
    CUgraphNode node;
    const CUgraphNode *last;
    size_t n;
    int32_t status = recorded(c, s, &graph, &last, &n);
    if (!status) status = CU(c->device, cuGraphAddNode_v2, &node, graph, last, NULL, n, &params);
    if (status) return status;
    *body = params.bodies[0];
    return CU(c->device, cuStreamUpdateCaptureDependencies_v2, s, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}
/* The node with its body is recorded on the stream, the body on a stream of its own. */
int32_t jaxcc_rt_cuda_record_loop(Call *c, const Task *loop, const void *turn, CUstream s) {
    CUgraph graph, body;
    const CUgraphNode *last;
    size_t n;
    uint64_t condition = 0;
    CUstream inner = c->lane->inner[c->recorded];
    int32_t status = recorded(c, s, &graph, &last, &n);
    if (!status)
        status = CU(c->device, cuGraphConditionalHandleCreate, &condition, graph, c->device->context, 0,
                    CU_GRAPH_COND_ASSIGN_DEFAULT);
    if (!status) status = set_condition(c, condition, loop->from, s);
    if (!status) status = add_node(c, condition, s, &body);
    if (!status)
        status =
            CU(c->device, cuStreamBeginCaptureToGraph, inner, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (status) return status;
    c->recorded++;
    status = jaxcc_rt_cuda_do_turn(c, loop, inner);
    c->recorded--;
    if (!status) status = set_condition(c, condition, loop->from, inner);
    int32_t ended = CU(c->device, cuStreamEndCapture, inner, &body);
    return status ? status : ended;
}
static int32_t make_graph(Call *c, const Task *loop, Graph *g) {
    CUgraph graph = NULL;
    CUstream s = c->lane->stream;
    int32_t status = CU(c->device, cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (status) return status;
    status = jaxcc_rt_cuda_record_loop(c, loop, loop + 1, s);
    int32_t ended = CU(c->device, cuStreamEndCapture, s, &graph);
    if (!status) status = ended;
    if (!status) status = CU(c->device, cuGraphInstantiateWithFlags, &g->run, graph, 0);
    if (graph) jaxcc_rt_cuda.cuGraphDestroy(graph);
    g->last = c->last;
    return status;
}

/* ---- loops */
/* Launches the loop that has been noted; false: it must be enqueued. */
static bool launch(jaxcc_rt_heap *h, const Task *loop, int64_t bytes) {
    Call *c = call_of(h);
    Graphs *all = &c->device->loops;
    if (c->recording) {
        must(h, jaxcc_rt_cuda_record_loop(c, loop, loop + 1, c->stream));
        return true;
    }
    Graph *g = jaxcc_rt_cuda_graph_take(c->device, all, c->program, loop, (size_t)bytes, true);
    if (!g) return false;
    int32_t status = g->run ? 0 : make_graph(c, loop, g);
    bool made = !status;
    if (!made) failed(c, status, 1);
    if (made) status = jaxcc_rt_cuda_graph_launch(c->device, g, c->stream);
    if (made && !status)
        jaxcc_rt_cuda_graph_give(c->device, all, g);
    else
        jaxcc_rt_cuda_graph_drop(c->device, g);
    if (made) must(h, status);
    return made;
}
int64_t jaxcc_rt_cuda_turns(jaxcc_rt_heap *h, const void *predicate, int64_t turns, int64_t most) {
    Call *c = call_of(h);
    uint8_t go = 0;
    if (turns == 0 && (c->open || jaxcc_rt_cuda_loops_ready(c))) {
        jaxcc_rt_cuda_note_loop(h, predicate);
        return 1;
    }
    if (c->recording && !c->open) jaxcc_rt_stop(h, JAXCC_INTERNAL, "the loop cannot be recorded");
    if (c->open) {
        int64_t bytes = 0;
        const Task *loop = jaxcc_rt_cuda_noted(c, &bytes);
        if (!loop || launch(h, loop, bytes)) return 0;
        turns = 0;
    }
    if (turns == 0 && most > 1) return 1;
    jaxcc_rt_cuda_read(h, &go, predicate, 1);
    return !go ? 0 : turns == 0 ? 1 : 2 * turns < most ? 2 * turns : most;
}
