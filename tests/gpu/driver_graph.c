/* Graphs: nodes in an order in which they may run. A node is work, or a condition with bodies. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct {
    CUfunction function;
    unsigned dims[6], shared;
    void **parameters, **extra;
    void *kernel, *context;
} KernelParams;
enum { COND_IF, COND_WHILE, COND_SWITCH };
/* CUDA_CONDITIONAL_NODE_PARAMS */
typedef struct {
    uint64_t handle;
    int type;
    unsigned size;
    CUgraph *bodies;
    void *context;
} ConditionParams;
/* CUgraphNodeParams */
typedef struct {
    int type, reserved[3];
    union {
        long long words[29];
        KernelParams kernel;
        ConditionParams condition;
    } of;
    long long reserved2;
} NodeParams;

typedef struct Node {
    struct Node *next;
    const struct Node *origin; /* in a graph that can run: the node of the graph */
    int type;
    Work work;
    CUgraphNode handle;
    KernelParams kernel; /* as given last, without the parameters */
    uint64_t condition;
    int condition_type;
    unsigned n_bodies;
    Graph **bodies;
} Node;
struct Graph {
    Node *first, **last;
    CUgraph handle;
};
struct Exec {
    Graph graph;
};
typedef struct {
    uint32_t value, initial;
    bool reset; /* by each launch */
} Condition;
enum { MOST_CONDITIONS = 4096, MOST_TURNS = 1 << 20 };
static Condition conditions[MOST_CONDITIONS];
static uint64_t n_conditions;

Graph *graph_new(void) {
    Graph *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->last = &g->first;
    return g;
}
void *graph_handle(Graph *g) {
    if (!g->handle) g->handle = handle_new(GRAPH, -1, g);
    return g->handle;
}
static Node *add_node(Graph *g, int type, Work w) {
    Node *n = calloc(1, sizeof *n);
    if (!n) abort();
    n->type = type;
    n->work = w;
    n->handle = handle_new(NODE, -1, n);
    *g->last = n;
    g->last = &n->next;
    return n;
}
CUresult graph_add(Graph *g, Work w) { return add_node(g, w.graph_type, w), 0; }

/* ---- copies, of graphs with all that is in them */
static void copy_nodes(Graph *to, const Graph *from);
static void free_nodes(Graph *g) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        for (unsigned i = 0; i < n->n_bodies; i++) {
            free_nodes(n->bodies[i]);
            if (n->bodies[i]->handle) handle_end(n->bodies[i]->handle);
            free(n->bodies[i]);
        }
        if (n->handle) handle_end(n->handle);
        if (n->work.exec) exec_free(n->work.exec);
        free(n->work.parameters);
        free(n->bodies);
        free(n);
    }
}
void graph_free(Graph *g) {
    free_nodes(g);
    free(g);
}
static Exec *exec_copy(const Graph *g) {
    Exec *e = calloc(1, sizeof *e);
    if (!e) abort();
    e->graph.last = &e->graph.first;
    copy_nodes(&e->graph, g);
    return e;
}
static void copy_nodes(Graph *to, const Graph *from) {
    for (const Node *n = from->first; n; n = n->next) {
        Node *c = malloc(sizeof *c);
        if (!c) abort();
        *c = *n;
        c->next = NULL;
        c->handle = NULL;
        c->origin = n->origin ? n->origin : n;
        if (n->work.parameters) c->work.parameters = launch_parameters(n->work.function, n->work.parameters);
        if (n->work.exec) c->work.exec = exec_copy(&n->work.exec->graph);
        if (n->n_bodies) c->bodies = calloc(n->n_bodies, sizeof *c->bodies);
        for (unsigned i = 0; i < n->n_bodies; i++) {
            c->bodies[i] = graph_new();
            copy_nodes(c->bodies[i], n->bodies[i]);
        }
        *to->last = c;
        to->last = &c->next;
    }
}
void exec_free(Exec *e) {
    free_nodes(&e->graph);
    free(e);
}

/* ---- running */
static CUresult run(Graph *g, int device);
static CUresult run_condition(const Node *n, int device) {
    const Condition *c = &conditions[n->condition - 1];
    if (n->condition_type == COND_SWITCH) return c->value < n->n_bodies ? run(n->bodies[c->value], device) : 0;
    if (n->condition_type == COND_IF && c->value) return run(n->bodies[0], device);
    if (n->condition_type == COND_IF) return n->n_bodies > 1 ? run(n->bodies[1], device) : 0;
    for (int turn = 0; c->value; turn++) {
        CUresult r = turn < MOST_TURNS ? run(n->bodies[0], device) : misused(702, "a loop of a graph does not end");
        if (r) return r;
    }
    return 0;
}
static CUresult run(Graph *g, int device) {
    for (Node *n = g->first; n; n = n->next) {
        if (devices[device].error) return devices[device].error;
        n->work.device = device;
        CUresult r = n->type == GRAPH_CONDITIONAL ? run_condition(n, device)
                     : n->work.perform            ? n->work.perform(&n->work)
                                                  : 0;
        if (r) return r;
    }
    return 0;
}
static void reset_conditions(const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        if (n->type != GRAPH_CONDITIONAL) continue;
        Condition *c = &conditions[n->condition - 1];
        if (c->reset) c->value = c->initial;
        for (unsigned i = 0; i < n->n_bodies; i++) reset_conditions(n->bodies[i]);
    }
}
static CUresult perform_graph(Work *w) {
    reset_conditions(&w->exec->graph);
    return run(&w->exec->graph, w->device);
}
void graph_set_condition(uint64_t handle, uint32_t value) {
    if (handle > 0 && handle <= n_conditions)
        conditions[handle - 1].value = value;
    else
        misused(0, "a kernel sets the condition %llx, which is none", (unsigned long long)handle);
}

/* ---- making graphs */
static CUresult create(CUgraph *graph) { return *graph = graph_handle(graph_new()), 0; }
API cuGraphCreate(CUgraph *graph, unsigned flags) { return done(begin(__func__, STARTED) ?: create(graph)); }
CUresult graph_destroy(CUgraph handle) {
    Graph *g = handle_object(GRAPH, handle);
    if (!g) return INVALID_HANDLE;
    handle_end(handle);
    graph_free(g);
    return 0;
}
API cuGraphDestroy(CUgraph graph) { return done(begin(__func__, STARTED) ?: graph_destroy(graph)); }
static CUresult list(CUgraph handle, CUgraphNode *nodes, size_t *n) {
    const Graph *g = handle_object(GRAPH, handle);
    if (!g) return INVALID_HANDLE;
    size_t k = 0;
    for (const Node *node = g->first; node; node = node->next, k++)
        if (nodes && k < *n) nodes[k] = node->handle;
    *n = nodes && *n < k ? *n : k;
    return 0;
}
API cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n) {
    return done(begin(__func__, STARTED) ?: list(graph, nodes, n));
}
static CUresult node_type(CUgraphNode handle, int *type) {
    const Node *n = handle_object(NODE, handle);
    if (!n) return INVALID_HANDLE;
    *type = n->type;
    return 0;
}
API cuGraphNodeGetType(CUgraphNode node, int *type) { return done(begin(__func__, STARTED) ?: node_type(node, type)); }
static CUresult set_kernel(Node *n, const KernelParams *k) {
    Work w;
    CUresult r = launch_work(k->function, k->dims, k->shared, k->parameters, k->extra, &w);
    if (r) return r;
    free(n->work.parameters);
    n->work = w;
    n->kernel = *k;
    return 0;
}
static CUresult add_kernel(CUgraphNode *node, CUgraph handle, const KernelParams *k) {
    Graph *g = handle_object(GRAPH, handle);
    if (!g) return INVALID_HANDLE;
    Work w;
    CUresult r = launch_work(k->function, k->dims, k->shared, k->parameters, k->extra, &w);
    if (r) return r;
    Node *n = add_node(g, GRAPH_KERNEL, w);
    n->kernel = *k;
    *node = n->handle;
    return 0;
}
API cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                            const KernelParams *k) {
    return done(begin(__func__, CURRENT) ?: add_kernel(node, graph, k));
}
static CUresult kernel_params(CUgraphNode handle, KernelParams *k, bool set) {
    Node *n = handle_object(NODE, handle);
    if (!n || n->type != GRAPH_KERNEL) return INVALID_HANDLE;
    if (set) return set_kernel(n, k);
    *k = n->kernel;
    k->parameters = n->work.parameters;
    return 0;
}
API cuGraphKernelNodeGetParams_v2(CUgraphNode node, KernelParams *k) {
    return done(begin(__func__, CURRENT) ?: kernel_params(node, k, false));
}
API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const KernelParams *k) {
    return done(begin(__func__, CURRENT) ?: kernel_params(node, (KernelParams *)k, true));
}

/* ---- conditions */
static CUresult condition_new(uint64_t *handle, CUgraph graph, unsigned initial, unsigned flags) {
    if (!handle_object(GRAPH, graph)) return INVALID_HANDLE;
    if (settings.version < 12030) return NOT_SUPPORTED;
    if (n_conditions == MOST_CONDITIONS) return CUDA_ERROR_OUT_OF_MEMORY;
    conditions[n_conditions] = (Condition){initial, initial, flags & 1};
    *handle = ++n_conditions;
    return 0;
}
API cuGraphConditionalHandleCreate(uint64_t *handle, CUgraph graph, CUcontext context, unsigned initial,
                                   unsigned flags) {
    return done(begin(__func__, CURRENT) ?: condition_new(handle, graph, initial, flags));
}
/* The version of CUDA that has it: IF 12.3, WHILE 12.4, else branches and SWITCH 12.8. */
static int since(const ConditionParams *c) {
    return c->type == COND_SWITCH || (c->type == COND_IF && c->size > 1) ? 12080
           : c->type == COND_WHILE                                       ? 12040
                                                                         : 12030;
}
static CUresult add_condition(CUgraphNode *node, Graph *g, ConditionParams *c) {
    static CUgraph bodies[64];
    if (settings.version < since(c)) return NOT_SUPPORTED;
    if (!c->handle || c->handle > n_conditions || !c->size || c->size > 64) return CUDA_ERROR_INVALID_VALUE;
    Node *n = add_node(g, GRAPH_CONDITIONAL, (Work){.perform = NULL});
    n->condition = c->handle;
    n->condition_type = c->type;
    n->n_bodies = c->size;
    n->bodies = calloc(c->size, sizeof *n->bodies);
    if (!n->bodies) abort();
    for (unsigned i = 0; i < c->size; i++) {
        n->bodies[i] = graph_new();
        bodies[i] = graph_handle(n->bodies[i]);
    }
    c->bodies = bodies;
    *node = n->handle;
    return 0;
}
static CUresult add_any(CUgraphNode *node, CUgraph handle, NodeParams *p) {
    Graph *g = handle_object(GRAPH, handle);
    if (!g) return INVALID_HANDLE;
    if (p->type == GRAPH_KERNEL) return add_kernel(node, handle, &p->of.kernel);
    if (p->type == GRAPH_CONDITIONAL) return add_condition(node, g, &p->of.condition);
    return NOT_SUPPORTED;
}
API cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n, NodeParams *p) {
    return done(begin(__func__, CURRENT) ?: add_any(node, graph, p));
}
API cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t n,
                      NodeParams *p) {
    return done(begin(__func__, CURRENT) ?: add_any(node, graph, p));
}

/* ---- graphs that can run */
static CUresult instantiate(CUgraphExec *handle, CUgraph graph) {
    const Graph *g = handle_object(GRAPH, graph);
    if (!g) return INVALID_HANDLE;
    *handle = handle_new(EXEC, current_device(), exec_copy(g));
    return 0;
}
API cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    return done(begin(__func__, CURRENT) ?: instantiate(exec, graph));
}
static CUresult exec_destroy(CUgraphExec handle) {
    Exec *e = handle_object(EXEC, handle);
    if (!e) return INVALID_HANDLE;
    handle_end(handle);
    exec_free(e);
    return 0;
}
API cuGraphExecDestroy(CUgraphExec exec) { return done(begin(__func__, STARTED) ?: exec_destroy(exec)); }
static Node *find(const Graph *g, const Node *origin) {
    Node *found = NULL;
    for (Node *n = g->first; n && !found; n = n->next) {
        if (n->origin == origin) return n;
        for (unsigned i = 0; i < n->n_bodies && !found; i++) found = find(n->bodies[i], origin);
    }
    return found;
}
static CUresult exec_kernel(CUgraphExec handle, CUgraphNode node, const KernelParams *k) {
    const Exec *e = handle_object(EXEC, handle);
    const Node *origin = e ? handle_object(NODE, node) : NULL;
    if (!origin) return INVALID_HANDLE;
    Node *n = find(&e->graph, origin);
    return n && n->type == GRAPH_KERNEL ? set_kernel(n, k) : CUDA_ERROR_INVALID_VALUE;
}
API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const KernelParams *k) {
    return done(begin(__func__, CURRENT) ?: exec_kernel(exec, node, k));
}
/* A launch has the graph as it is now. */
static CUresult launch(CUgraphExec handle, CUstream stream, const char *name) {
    const Exec *e = handle_object(EXEC, handle);
    Stream *s = e ? stream_of(stream, name) : NULL;
    if (!s) return INVALID_HANDLE;
    counts.graphs++;
    CUresult r = stream_add(s, (Work){.perform = perform_graph, .exec = exec_copy(&e->graph), .graph_type = 4});
    return settings.lazy ? r : 0; /* faults show later */
}
API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: launch(exec, stream, __func__));
}
API cuGraphUpload(CUgraphExec exec, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: handle_object(EXEC, exec) ? 0 : INVALID_HANDLE);
}
