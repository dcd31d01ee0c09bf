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
enum { COND_IF, COND_WHILE, COND_SWITCH, MOST_BODIES = 64 };
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
    const Graph *around; /* of a body: the graph with its node */
    const Node *end;     /* what is captured next follows it */
    const Node *beside;  /* a node that was added while the graph is captured, and that nothing follows yet */
};
struct Exec {
    Graph graph;
};
typedef struct {
    const Graph *graph; /* that it was made for, until that is destroyed */
    int device;
    uint32_t value, initial;
    int running; /* graphs with its node */
    bool reset;  /* by each launch */
    bool used;   /* by a node */
} Condition;
enum { MOST_TURNS = 1 << 20 };
static Condition *conditions;
static uint64_t n_conditions, conditions_room;

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
CUresult graph_add(Graph *g, Work w) {
    if (g->beside) misused(0, "what is captured does not follow the node that was added to the graph");
    g->end = add_node(g, w.graph_type, w);
    return 0;
}

/* ---- copies, of graphs with all that is in them */
static void copy_nodes(Graph *to, const Graph *from);
static void free_nodes(Graph *g) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        for (unsigned i = 0; i < n->n_bodies; i++) {
            if (n->bodies[i]->handle) handle_end(n->bodies[i]->handle);
            graph_free(n->bodies[i]);
        }
        if (n->handle) handle_end(n->handle);
        if (n->work.exec) exec_free(n->work.exec);
        free(n->work.parameters);
        free(n->bodies);
        free(n);
    }
}
void graph_free(Graph *g) {
    for (uint64_t i = 0; i < n_conditions; i++)
        if (conditions[i].graph == g) conditions[i].graph = NULL;
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
/* Its conditions may be set from now on, or no more. */
static void conditions_run(const Graph *g, int by) {
    for (const Node *n = g->first; n; n = n->next) {
        if (n->type != GRAPH_CONDITIONAL) continue;
        Condition *c = &conditions[n->condition - 1];
        c->running += by;
        if (c->reset && by > 0) c->value = c->initial;
        for (unsigned i = 0; i < n->n_bodies; i++) conditions_run(n->bodies[i], by);
    }
}
static CUresult perform_graph(Work *w) {
    conditions_run(&w->exec->graph, 1);
    CUresult r = run(&w->exec->graph, w->device);
    conditions_run(&w->exec->graph, -1);
    return r;
}
void graph_set_condition(uint64_t handle, uint32_t value) {
    if (handle == 0 || handle > n_conditions)
        misused(0, "a kernel sets the condition %llx, which is none", (unsigned long long)handle);
    else if (!conditions[handle - 1].running)
        misused(0, "a kernel sets the condition %llx, whose graph is not running", (unsigned long long)handle);
    else
        conditions[handle - 1].value = value;
}

/* ---- making graphs */
static CUresult create(CUgraph *graph) { return *graph = graph_handle(graph_new()), 0; }
API cuGraphCreate(CUgraph *graph, unsigned flags) { return done(begin(__func__, STARTED) ?: create(graph)); }
CUresult graph_destroy(CUgraph handle) {
    Graph *g = handle_object(GRAPH, handle);
    if (!g) return INVALID_HANDLE;
    if (g->around) return misused(CUDA_ERROR_INVALID_VALUE, "the graph is the body of a node");
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
    g->end = n;
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
static CUresult condition_new(uint64_t *handle, CUgraph graph, CUcontext context, unsigned initial, unsigned flags) {
    const Graph *g = handle_object(GRAPH, graph);
    if (!g || !handle_object(CONTEXT, context)) return INVALID_HANDLE;
    if (settings.version < CONDITIONS_SINCE) return NOT_SUPPORTED;
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    if (n_conditions == conditions_room) {
        conditions_room = conditions_room ? 2 * conditions_room : 64;
        conditions = realloc(conditions, conditions_room * sizeof *conditions);
        if (!conditions) abort();
    }
    conditions[n_conditions] = (Condition){
        .graph = g, .device = handle_device(context), .value = initial, .initial = initial, .reset = flags & 1};
    *handle = ++n_conditions;
    return 0;
}
API cuGraphConditionalHandleCreate(uint64_t *handle, CUgraph graph, CUcontext context, unsigned initial,
                                   unsigned flags) {
    return done(begin(__func__, CURRENT) ?: condition_new(handle, graph, context, initial, flags));
}
/* The version of CUDA that has it: IF 12.3, WHILE 12.4, else branches and SWITCH 12.8. */
static int since(const ConditionParams *c) {
    return c->type == COND_SWITCH || (c->type == COND_IF && c->size > 1) ? 12080
           : c->type == COND_WHILE                                       ? 12040
                                                                         : CONDITIONS_SINCE;
}
/* Is it of this graph, or of one around it, and of no node yet? */
static CUresult check_condition(const Graph *g, const ConditionParams *p) {
    Condition *c = p->handle && p->handle <= n_conditions ? &conditions[p->handle - 1] : NULL;
    if (!c || !p->size || p->size > MOST_BODIES || !handle_object(CONTEXT, p->context)) return CUDA_ERROR_INVALID_VALUE;
    while (g && g != c->graph) g = g->around;
    if (!g) return misused(CUDA_ERROR_INVALID_VALUE, "the condition was made for another graph");
    if (c->used) return misused(CUDA_ERROR_INVALID_VALUE, "the condition has a node");
    if (c->device != handle_device(p->context))
        return misused(CUDA_ERROR_INVALID_VALUE, "the condition is of device %d, the node of %d", c->device,
                       handle_device(p->context));
    return 0;
}
/* The graph's nodes run one after the other: a new one follows the last of them. */
static CUresult check_order(const Graph *g, const CUgraphNode *after, size_t n) {
    const Node *last = g->end;
    for (size_t i = 0; i < n; i++) {
        const Node *one = handle_object(NODE, after[i]);
        if (!one) return INVALID_HANDLE;
        if (one == last) last = NULL;
    }
    return last ? misused(CUDA_ERROR_INVALID_VALUE, "the node does not follow what is in the graph") : 0;
}
static CUresult add_condition(CUgraphNode *node, Graph *g, ConditionParams *c) {
    static _Thread_local CUgraph bodies[MOST_BODIES]; /* the caller reads it before its next call */
    CUresult r = settings.version < since(c) ? NOT_SUPPORTED : check_condition(g, c);
    if (r) return r;
    Node *n = add_node(g, GRAPH_CONDITIONAL, (Work){.perform = NULL});
    conditions[c->handle - 1].used = true;
    n->condition = c->handle;
    n->condition_type = c->type;
    n->n_bodies = c->size;
    n->bodies = calloc(c->size, sizeof *n->bodies);
    if (!n->bodies) abort();
    for (unsigned i = 0; i < c->size; i++) {
        n->bodies[i] = graph_new();
        n->bodies[i]->around = g;
        bodies[i] = graph_handle(n->bodies[i]);
    }
    c->bodies = bodies;
    *node = n->handle;
    if (stream_captures(g))
        g->beside = n;
    else
        g->end = n;
    return 0;
}
/* What is not of the node's type must be zero. */
static bool rest_is_zero(const NodeParams *p, size_t used) {
    const char *at = (const char *)&p->of, *end = (const char *)(p + 1);
    bool zero = !p->reserved[0] && !p->reserved[1] && !p->reserved[2];
    for (at += used; at < end; at++) zero = zero && !*at;
    return zero;
}
static CUresult add_any(CUgraphNode *node, CUgraph handle, const CUgraphNode *after, size_t n, NodeParams *p) {
    Graph *g = handle_object(GRAPH, handle);
    if (!g) return INVALID_HANDLE;
    if (p->type == GRAPH_KERNEL) return add_kernel(node, handle, &p->of.kernel);
    if (p->type != GRAPH_CONDITIONAL) return NOT_SUPPORTED;
    if (!rest_is_zero(p, sizeof p->of.condition))
        return misused(CUDA_ERROR_INVALID_VALUE, "what follows the parameters is not zero");
    return check_order(g, after, n) ?: add_condition(node, g, &p->of.condition);
}
API cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n, NodeParams *p) {
    return done(begin(__func__, CURRENT) ?: add_any(node, graph, after, n, p));
}
API cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t n,
                      NodeParams *p) {
    return done(begin(__func__, CURRENT) ?: add_any(node, graph, after, n, p));
}
CUgraphNode graph_end(const Graph *g) { return g->end ? g->end->handle : NULL; }
CUresult graph_follow(Graph *g, CUgraphNode handle) {
    const Node *n = handle_object(NODE, handle);
    if (!n) return INVALID_HANDLE;
    g->end = n;
    if (g->beside == n) g->beside = NULL;
    return 0;
}

static CUresult check_followed(const Graph *g) {
    return g->beside ? misused(CUDA_ERROR_INVALID_VALUE, "nothing follows a node that was added during the capture")
                     : 0;
}
/* What a body may hold. */
static CUresult check_body(const Graph *g) {
    CUresult r = check_followed(g);
    if (r) return r;
    if (!g->first && settings.version < 12080)
        return misused(CUDA_ERROR_INVALID_VALUE, "a body without nodes hangs before CUDA 12.8");
    for (const Node *n = g->first; n; n = n->next) {
        if (n->type == GRAPH_HOST) return misused(CUDA_ERROR_INVALID_VALUE, "a body calls a function of the host");
        for (unsigned i = 0; i < n->n_bodies; i++) {
            r = check_body(n->bodies[i]);
            if (r) return r;
        }
    }
    return 0;
}
static CUresult check_graph(const Graph *g) {
    if (stream_captures(g)) return misused(CUDA_ERROR_INVALID_VALUE, "the graph is still captured");
    for (uint64_t i = 0; i < n_conditions; i++)
        if (conditions[i].graph == g && !conditions[i].used)
            return misused(CUDA_ERROR_INVALID_VALUE, "a condition of the graph has no node");
    CUresult r = check_followed(g);
    for (const Node *n = g->first; n && !r; n = n->next)
        for (unsigned i = 0; i < n->n_bodies && !r; i++) r = check_body(n->bodies[i]);
    return r;
}

/* ---- graphs that can run */
static CUresult instantiate(CUgraphExec *handle, CUgraph graph) {
    const Graph *g = handle_object(GRAPH, graph);
    CUresult r = g ? check_graph(g) : INVALID_HANDLE;
    if (r) return r;
    *handle = handle_new(EXEC, current_device(), exec_copy(g));
    counts.instantiated++;
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
