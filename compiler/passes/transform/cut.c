/* The minimum cut by augmenting paths (Edmonds and Karp). A value is two nodes, in and out, with an edge of its cost
   between them; the set stored is the cut that is nearest to the values needed. */
#include "cut.h"
#include "../../intern.h"
#include <assert.h>
#include <string.h>

typedef struct CutEdge {
    uint32_t to;
    int32_t next; /* of the same node; -1: none */
    int64_t left; /* capacity; edge i ^ 1 is the opposite one */
} CutEdge;
enum { SOURCE, SINK, FIRST };
static uint32_t node_in(uint32_t v) { return FIRST + 2 * v; }
static uint32_t node_out(uint32_t v) { return FIRST + 2 * v + 1; }

Cut cut_new(Arena *arena, uint32_t values) {
    Cut c = {.arena = arena, .nodes = FIRST + 2 * values};
    c.first = arena_new(arena, int32_t, c.nodes);
    for (uint32_t i = 0; i < c.nodes; i++) c.first[i] = -1;
    return c;
}
static void half(Cut *c, uint32_t from, uint32_t to, int64_t capacity) {
    if (c->nedges == c->cap) {
        uint32_t cap = c->cap ? 2 * c->cap : 64;
        CutEdge *edges = arena_new(c->arena, CutEdge, cap);
        if (c->nedges) memcpy(edges, c->edges, c->nedges * sizeof *edges);
        c->edges = edges, c->cap = cap;
    }
    c->edges[c->nedges] = (CutEdge){to, c->first[from], capacity};
    c->first[from] = (int32_t)c->nedges++;
}
static void edge(Cut *c, uint32_t from, uint32_t to, int64_t capacity) {
    half(c, from, to, capacity);
    half(c, to, from, 0);
}
void cut_cost(Cut *c, uint32_t v, int64_t cost) { edge(c, node_in(v), node_out(v), cost); }
void cut_source(Cut *c, uint32_t v) { edge(c, SOURCE, node_in(v), CUT_NEVER); }
void cut_uses(Cut *c, uint32_t v, uint32_t operand) { edge(c, node_out(operand), node_in(v), CUT_NEVER); }
void cut_needed(Cut *c, uint32_t v) { edge(c, node_out(v), SINK, CUT_NEVER); }

enum { NOT_REACHED = -1, REACHED_FIRST = -2 };
/* Breadth first from `start`, forwards or, from the sink, against the edges: the edge by which each node was
   reached. */
static bool reach(const Cut *c, uint32_t start, bool back, int32_t *by, uint32_t *queue) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nodes; i++) by[i] = NOT_REACHED;
    queue[n++] = start, by[start] = REACHED_FIRST;
    for (uint32_t k = 0; k < n; k++)
        for (int32_t i = c->first[queue[k]]; i >= 0; i = c->edges[i].next) {
            uint32_t to = c->edges[i].to;
            if (by[to] != NOT_REACHED || c->edges[back ? i ^ 1 : i].left <= 0) continue;
            by[to] = i, queue[n++] = to;
        }
    return by[back ? SOURCE : SINK] != NOT_REACHED;
}
static int64_t augment(Cut *c, const int32_t *by) {
    int64_t most = CUT_NEVER;
    for (uint32_t v = SINK; v != SOURCE; v = c->edges[by[v] ^ 1].to)
        if (c->edges[by[v]].left < most) most = c->edges[by[v]].left;
    for (uint32_t v = SINK; v != SOURCE; v = c->edges[by[v] ^ 1].to) {
        c->edges[by[v]].left -= most;
        c->edges[by[v] ^ 1].left += most;
    }
    return most;
}
bool cut_least(Cut *c, bool *stored) {
    enum { MOST_WORK = 100000000 }; /* edges visited */
    int32_t *by = arena_new(c->arena, int32_t, c->nodes);
    uint32_t *queue = arena_new(c->arena, uint32_t, c->nodes);
    int64_t work = 0;
    while (reach(c, SOURCE, false, by, queue)) {
        if (augment(c, by) >= CUT_NEVER || (work += c->nedges) > MOST_WORK) return false;
    }
    reach(c, SINK, true, by, queue);
    for (uint32_t v = 0; node_in(v) < c->nodes; v++)
        stored[v] = by[node_out(v)] != NOT_REACHED && by[node_in(v)] == NOT_REACHED;
    return true;
}
