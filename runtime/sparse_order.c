/* The elimination order of a sparse matrix: each row is matched with a column, then the rows are ordered. */
#include "sparse.h"

/* ---- matching rows with columns by augmenting paths (Duff: On algorithms for obtaining a maximum transversal, ACM
   TOMS 7, 1981) */
typedef struct {
    const Pattern *p;
    int32_t *own, *row;
    int32_t *seen; /* by column: 1 + the row whose search visited it last */
    int32_t *path; /* rows whose columns would be exchanged */
    int64_t *tried,
        *found; /* elements visited in a row of the path, and in any row: columns before `found` are matched */
} Match;
/* An unmatched column in row i. */
static int32_t free_column(Match *m, int32_t i) {
    for (; m->found[i] < m->p->begin[i + 1]; m->found[i]++)
        if (m->row[m->p->column[m->found[i]]] < 0) return m->p->column[m->found[i]];
    return -1;
}
static bool match_row(Match *m, int32_t start) {
    int32_t depth = 0, column = -1;
    m->path[0] = start, m->tried[0] = m->p->begin[start];
    while (depth >= 0 && (column = free_column(m, m->path[depth])) < 0) {
        int32_t i = m->path[depth], next = -1;
        for (; m->tried[depth] < m->p->begin[i + 1] && next < 0; m->tried[depth]++) {
            int32_t c = m->p->column[m->tried[depth]];
            if (m->seen[c] != start + 1) m->seen[c] = start + 1, next = m->row[c];
        }
        if (next >= 0)
            m->path[++depth] = next, m->tried[depth] = m->p->begin[next];
        else
            depth--;
    }
    for (; depth >= 0; depth--) { /* each takes the column of the next one */
        int32_t i = m->path[depth], before = m->own[i];
        m->own[i] = column, m->row[column] = i;
        column = before;
    }
    return m->own[start] >= 0;
}
bool jaxcc_rt_match(jaxcc_rt_heap *call, const Pattern *p, int32_t *own, int32_t *row) {
    Match m = {p,
               own,
               row,
               sparse_ints(call, p->n, 0),
               sparse_ints(call, p->n, 0),
               sparse_new(call, p->n, sizeof *m.tried),
               sparse_new(call, p->n, sizeof *m.found)};
    bool all = true;
    if (p->n) memcpy(m.found, p->begin, (size_t)p->n * sizeof *m.found);
    for (int32_t i = 0; i < p->n && all; i++) all = own[i] >= 0 || match_row(&m, i);
    void *memory[] = {m.seen, m.path, m.tried, m.found};
    for (unsigned i = 0; i < sizeof memory / sizeof *memory; i++) jaxcc_rt_heap_put(call, memory[i]);
    return all;
}

/* ---- the order: eliminate the node of minimum degree, where degrees are upper bounds (Amestoy, Davis, Duff: An
   approximate minimum degree ordering algorithm, SIAM J. Matrix Anal. Appl. 17, 1996; without supervariables). The
   graph is that of A + Aᵀ, columns numbered like the rows that they are matched with. An eliminated node becomes an
   element: the set of its neighbours, which are all adjacent from then on. */
typedef struct {
    jaxcc_rt_heap *call;
    int32_t n, left; /* nodes; those not yet eliminated */
    int64_t *at;     /* node i has pool[at[i] …]: its elements, then the adjacent nodes that share none with it */
    int32_t *pool, *elements, *nodes;
    int32_t **around; /* nodes of each element; NULL: none, or absorbed by another element */
    int32_t *size;
    int64_t *outside; /* of each element, above `stamp`: how many of its nodes are not in the newest one */
    int64_t stamp;
    int32_t *mark;                                 /* node: the newest element it is in, plus 1 */
    int32_t *degree, *head, *next, *before, least; /* lists of nodes by degree; -1 ends them */
    int32_t *scratch, *list;
} Graph;

static void unlink_node(Graph *g, int32_t i) {
    if (g->before[i] >= 0)
        g->next[g->before[i]] = g->next[i];
    else
        g->head[g->degree[i]] = g->next[i];
    if (g->next[i] >= 0) g->before[g->next[i]] = g->before[i];
}
static void link_node(Graph *g, int32_t i, int32_t degree) {
    g->degree[i] = degree, g->before[i] = -1, g->next[i] = g->head[degree];
    if (g->next[i] >= 0) g->before[g->next[i]] = i;
    g->head[degree] = i;
    if (degree < g->least) g->least = degree;
}
static void drop(Graph *g, int32_t e) {
    jaxcc_rt_heap_put(g->call, g->around[e]);
    g->around[e] = NULL;
}

/* The neighbours of each node, each once; none for nodes with more than `most`. */
static void read_graph(Graph *g, const Pattern *p, const int32_t *row, const int32_t *count, int32_t most) {
    int64_t total = 0;
    for (int32_t i = 0; i < g->n; total += count[i++]) g->at[i] = total;
    g->pool = sparse_new(g->call, total, sizeof *g->pool);
    for (int32_t i = 0; i < g->n; i++)
        for (int64_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            int32_t j = row[p->column[k]];
            if (i == j || count[i] > most || count[j] > most) continue;
            g->pool[g->at[i] + g->nodes[i]++] = j, g->pool[g->at[j] + g->nodes[j]++] = i;
        }
    for (int32_t i = 0; i < g->n; i++) {
        int32_t kept = 0, *list = g->pool + g->at[i];
        for (int32_t k = 0; k < g->nodes[i]; k++) {
            if (g->mark[list[k]] == i + 1) continue;
            g->mark[list[k]] = i + 1, list[kept++] = list[k];
        }
        g->nodes[i] = kept;
    }
    for (int32_t i = 0; i < g->n; i++) g->mark[i] = 0;
}

/* Collects the neighbours of p in g->list; the elements of p are absorbed. */
static int32_t gather_around(Graph *g, int32_t p) {
    const int32_t *list = g->pool + g->at[p];
    int32_t n = 0;
    g->mark[p] = p + 1;
    for (int32_t k = 0; k < g->elements[p] + g->nodes[p]; k++) {
        bool element = k < g->elements[p];
        if (element && !g->around[list[k]]) continue;
        const int32_t *from = element ? g->around[list[k]] : &list[k];
        for (int32_t m = 0; m < (element ? g->size[list[k]] : 1); m++)
            if (g->mark[from[m]] != p + 1) g->mark[from[m]] = p + 1, g->list[n++] = from[m];
        if (element) drop(g, list[k]);
    }
    return n;
}
/* Updates node i of the new element p, which has n nodes: its other neighbours, and the bound of its degree. */
static void update(Graph *g, int32_t i, int32_t p, int32_t n) {
    int32_t *list = g->pool + g->at[i], kept = 0, elements = g->elements[i], all = elements + g->nodes[i];
    int64_t degree = n - 1;
    memcpy(g->scratch, list, (size_t)all * sizeof *list);
    for (int32_t k = 0; k < elements; k++) {
        int32_t e = g->scratch[k];
        if (!g->around[e]) continue;
        int64_t outside = g->outside[e] - g->stamp;
        if (outside == 0)
            drop(g, e); /* absorbed by p */
        else
            list[kept++] = e, degree += outside;
    }
    list[kept++] = p;
    g->elements[i] = kept;
    for (int32_t k = elements; k < all; k++)
        if (g->mark[g->scratch[k]] != p + 1) list[kept++] = g->scratch[k], degree++;
    g->nodes[i] = kept - g->elements[i];
    int64_t before = (int64_t)g->degree[i] + n - 1;
    if (degree > before) degree = before;
    if (degree > g->left - 1) degree = g->left - 1;
    unlink_node(g, i);
    link_node(g, i, (int32_t)degree);
}
/* Eliminates p; true if all remaining nodes are adjacent to each other. */
static bool eliminate(Graph *g, int32_t p) {
    unlink_node(g, p);
    g->left--;
    int32_t n = gather_around(g, p);
    g->degree[p] = -1;
    if (n == g->left || n == 0) return n == g->left;
    g->around[p] = sparse_new(g->call, n, sizeof *g->list), g->size[p] = n;
    memcpy(g->around[p], g->list, (size_t)n * sizeof *g->list);
    g->stamp += (int64_t)g->n + 1;
    for (int32_t k = 0; k < n; k++) {
        const int32_t *list = g->pool + g->at[g->list[k]];
        for (int32_t m = 0; m < g->elements[g->list[k]]; m++) {
            int32_t e = list[m];
            if (!g->around[e]) continue;
            if (g->outside[e] < g->stamp) g->outside[e] = g->stamp + g->size[e];
            g->outside[e]--;
        }
    }
    for (int32_t k = 0; k < n; k++) update(g, g->list[k], p, n);
    return false;
}
static Graph graph_of(jaxcc_rt_heap *call, int32_t n) {
    Graph g = {.call = call, .n = n, .least = n};
    g.at = sparse_new(call, n, sizeof *g.at), g.outside = sparse_new(call, n, sizeof *g.outside);
    g.around = sparse_new(call, n, sizeof *g.around);
    for (int32_t i = 0; i < n; i++) g.outside[i] = 0, g.around[i] = NULL;
    g.elements = sparse_ints(call, n, 0), g.nodes = sparse_ints(call, n, 0), g.size = sparse_ints(call, n, 0);
    g.mark = sparse_ints(call, n, 0), g.degree = sparse_ints(call, n, -1), g.head = sparse_ints(call, n, -1);
    g.next = sparse_ints(call, n, -1), g.before = sparse_ints(call, n, -1);
    g.scratch = sparse_ints(call, n, 0), g.list = sparse_ints(call, n, 0);
    return g;
}
static void graph_end(Graph *g) {
    void *all[] = {g->at,     g->outside, g->around, g->elements, g->nodes,   g->size, g->mark,
                   g->degree, g->head,    g->next,   g->before,   g->scratch, g->list, g->pool};
    for (int32_t i = 0; i < g->n; i++)
        if (g->around[i]) jaxcc_rt_heap_put(g->call, g->around[i]);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) jaxcc_rt_heap_put(g->call, all[i]);
}
void jaxcc_rt_minimum_degree(jaxcc_rt_heap *call, const Pattern *p, const int32_t *row, int32_t *order) {
    int32_t done = 0, *count = sparse_ints(call, p->n, 0), most = (int32_t)(10 * __builtin_sqrt(p->n)) + 16;
    Graph g = graph_of(call, p->n);
    for (int32_t i = 0; i < p->n; i++)
        for (int64_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            int32_t ends[2] = {i, row[p->column[k]]};
            for (int m = 0; m < 2 && ends[0] != ends[1]; m++)
                if (count[ends[m]] < INT32_MAX) count[ends[m]]++;
        }
    read_graph(&g, p, row, count, most);
    for (int32_t i = 0; i < p->n; i++)
        if (count[i] <= most) link_node(&g, i, g.nodes[i]), g.left++;
    for (bool rest = false; g.left && !rest;) {
        while (g.head[g.least] < 0) g.least++;
        int32_t i = order[done++] = g.head[g.least];
        rest = eliminate(&g, i);
    }
    for (int32_t pass = 0; pass < 2; pass++) /* nodes adjacent to all others, then nodes with too many neighbours */
        for (int32_t i = 0; i < p->n; i++)
            if (pass ? count[i] > most : g.degree[i] >= 0) order[done++] = i;
    graph_end(&g);
    jaxcc_rt_heap_put(call, count);
}
