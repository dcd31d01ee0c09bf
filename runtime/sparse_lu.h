/* Sparse LU for one element type: T, F(f) the name of f for it, SIZE and QUOTIENT of its numbers. The columns of M =
   Aᵀ, which are the rows of A, are eliminated one after the other (Gilbert, Peierls: Sparse partial pivoting in time
   proportional to arithmetic operations, SIAM J. Sci. Stat. Comput. 9, 1988): P M Q = L U, L with ones on its
   diagonal. */

/* Columns of L below the diagonal, whose rows are numbered as in M, or of U above it, whose rows are numbered as in
   U. */
typedef struct {
    int64_t *begin, room;
    int32_t *row;
    T *value;
} F(Triangle);
typedef struct {
    jaxcc_rt_heap *call;
    Pattern a;      /* of A, each position once */
    const T *value; /* of A */
    int32_t *order; /* Q: column k is M's column order[k] */
    int32_t *pivot; /* P: M's row r becomes row pivot[r]; -1: not yet */
    F(Triangle) l, u;
    T *diagonal;                   /* of U */
    T *x;                          /* a column of M, then what remains of it, by M's rows */
    int32_t *reach, *stack, *mark; /* rows with nonzero x, in the order of elimination; marked with column + 1 */
    int64_t *child, *end;          /* of a search; where column c of L ends for it, -1: at its own end */
    int32_t *own;                  /* the row of M that is the preferred pivot of column k */
} F(Lu);

/* A's rows with each position once, without those outside, which are JAX's padding. */
static void F(read_matrix)(F(Lu) * m, void *const *arrays, int64_t nse) {
    const T *data = arrays[0];
    const int64_t *column = arrays[1], *begin = arrays[2];
    int64_t *to = sparse_new(m->call, (int64_t)m->a.n + 1, sizeof *to), n = 0;
    int64_t *last = sparse_new(m->call, m->a.n, sizeof *last); /* where the column was seen last */
    int32_t *columns = sparse_new(m->call, nse, sizeof *columns);
    T *values = sparse_new(m->call, nse, sizeof *values);
    for (int32_t i = 0; i < m->a.n; i++) last[i] = -1;
    for (int32_t i = 0; i < m->a.n; i++) {
        int64_t lo = begin[i] < 0 ? 0 : begin[i], hi = begin[i + 1] > nse ? nse : begin[i + 1];
        to[i] = n;
        for (int64_t k = lo; k < hi && n < nse; k++) {
            if (column[k] < 0 || column[k] >= m->a.n) continue;
            int64_t *seen = &last[column[k]];
            if (*seen >= to[i])
                values[*seen] += data[k];
            else
                *seen = n, columns[n] = (int32_t)column[k], values[n++] = data[k];
        }
    }
    to[m->a.n] = n;
    jaxcc_rt_heap_put(m->call, last);
    m->a.begin = to, m->a.column = columns, m->value = values;
}
static F(Triangle) F(triangle)(jaxcc_rt_heap *call, int32_t n, int64_t room) {
    F(Triangle) t = {.begin = sparse_new(call, (int64_t)n + 1, sizeof *t.begin), .room = room};
    t.row = sparse_new(call, room, sizeof *t.row), t.value = sparse_new(call, room, sizeof *t.value);
    t.begin[0] = 0;
    return t;
}
/* Makes room for one more column. */
static void F(grow)(F(Lu) * m, F(Triangle) * t, int32_t k) {
    int64_t n = t->begin[k];
    if (t->room - n >= m->a.n) return;
    F(Triangle) more = {.begin = t->begin, .room = 2 * t->room + m->a.n};
    more.row = sparse_new(m->call, more.room, sizeof *more.row),
    more.value = sparse_new(m->call, more.room, sizeof *more.value);
    memcpy(more.row, t->row, (size_t)n * sizeof *more.row),
        memcpy(more.value, t->value, (size_t)n * sizeof *more.value);
    jaxcc_rt_heap_put(m->call, t->row), jaxcc_rt_heap_put(m->call, t->value);
    *t = more;
}

static int64_t F(end_of)(const F(Lu) * m, int32_t column) {
    return m->end[column] < 0 ? m->l.begin[column + 1] : m->end[column];
}
/* The nonzero rows of column k of L \ M that follow from row r: a depth-first search by the columns of L, which puts
   them into reach[top …] in topological order; returns the new top. */
static int32_t F(search)(F(Lu) * m, int32_t r, int32_t k, int32_t top) {
    int32_t depth = 0;
    m->stack[0] = r, m->mark[r] = k + 1;
    m->child[0] = m->pivot[r] < 0 ? 0 : m->l.begin[m->pivot[r]];
    while (depth >= 0) {
        int32_t row = m->stack[depth], column = m->pivot[row], below = -1;
        for (int64_t *c = &m->child[depth]; column >= 0 && *c < F(end_of)(m, column) && below < 0; ++*c)
            if (m->mark[m->l.row[*c]] != k + 1) below = m->l.row[*c];
        if (below < 0) {
            m->reach[--top] = row, depth--;
            continue;
        }
        m->mark[below] = k + 1, m->stack[++depth] = below;
        m->child[depth] = m->pivot[below] < 0 ? 0 : m->l.begin[m->pivot[below]];
    }
    return top;
}
/* x = L \ (column k of M); rows that have been pivots go into U. Returns the start of its rows in reach. */
static int32_t F(solve_column)(F(Lu) * m, int32_t k) {
    int32_t top = m->a.n, j = m->order[k];
    for (int64_t e = m->a.begin[j]; e < m->a.begin[j + 1]; e++)
        if (m->mark[m->a.column[e]] != k + 1) top = F(search)(m, m->a.column[e], k, top);
    for (int32_t t = top; t < m->a.n; t++) m->x[m->reach[t]] = 0;
    for (int64_t e = m->a.begin[j]; e < m->a.begin[j + 1]; e++) m->x[m->a.column[e]] = m->value[e];
    int64_t nu = m->u.begin[k];
    for (int32_t t = top; t < m->a.n; t++) {
        int32_t column = m->pivot[m->reach[t]];
        if (column < 0) continue;
        T x = m->x[m->reach[t]];
        m->u.row[nu] = column, m->u.value[nu++] = x;
        for (int64_t e = m->l.begin[column]; e < m->l.begin[column + 1]; e++) m->x[m->l.row[e]] -= m->l.value[e] * x;
    }
    m->u.begin[k + 1] = nu;
    return top;
}
/* A column of L that contributed to column k and has its pivot row needs no search of rows that were not pivots by
   then: column k leads there too (Eisenstat, Liu: Exploiting structural symmetry in a sparse partial pivoting code,
   SIAM J. Sci. Comput. 14, 1993). */
static void F(prune)(F(Lu) * m, int32_t k, int32_t pivot) {
    for (int64_t e = m->u.begin[k]; e < m->u.begin[k + 1]; e++) {
        int32_t c = m->u.row[e];
        int64_t lo = m->l.begin[c], hi = m->l.begin[c + 1], at = lo;
        if (m->end[c] >= 0) continue;
        while (at < hi && m->l.row[at] != pivot) at++;
        if (at == hi) continue;
        while (lo < hi) {
            if (m->pivot[m->l.row[lo]] >= 0) {
                lo++;
                continue;
            }
            int32_t row = m->l.row[--hi];
            T value = m->l.value[hi];
            m->l.row[hi] = m->l.row[lo], m->l.value[hi] = m->l.value[lo];
            m->l.row[lo] = row, m->l.value[lo] = value;
        }
        m->end[c] = lo;
    }
}
/* Chooses the pivot of column k, and makes the rest column k of L; false if all of it is 0. */
static bool F(divide_column)(F(Lu) * m, int32_t k, int32_t top) {
    int32_t best = -1, own = m->own[m->order[k]];
    double most = 0;
    for (int32_t t = top; t < m->a.n; t++) {
        int32_t r = m->reach[t];
        if (m->pivot[r] < 0 && !(SIZE(m->x[r]) <= most)) best = r, most = SIZE(m->x[r]);
    }
    if (best < 0) return false;
    if (m->mark[own] == k + 1 && m->pivot[own] < 0 && SIZE(m->x[own]) >= PIVOT * most) best = own;
    m->pivot[best] = k, m->diagonal[k] = m->x[best];
    int64_t nl = m->l.begin[k];
    for (int32_t t = top; t < m->a.n; t++) {
        int32_t r = m->reach[t];
        if (m->pivot[r] < 0) m->l.row[nl] = r, m->l.value[nl++] = QUOTIENT(m->x[r], m->diagonal[k]);
    }
    m->l.begin[k + 1] = nl;
    F(prune)(m, k, best);
    return true;
}
static bool F(factor)(F(Lu) * m) {
    for (int32_t k = 0; k < m->a.n; k++) {
        F(grow)(m, &m->l, k), F(grow)(m, &m->u, k);
        if (!F(divide_column)(m, k, F(solve_column)(m, k))) return false;
    }
    for (int64_t e = 0; e < m->l.begin[m->a.n]; e++) m->l.row[e] = m->pivot[m->l.row[e]];
    return true;
}

/* Solves Mᵀ x = y: Uᵀ z = Qᵀ y, Lᵀ w = z, x = Pᵀ w. */
static void F(solve)(const F(Lu) * m, const T *y, T *x, T *w) {
    for (int32_t k = 0; k < m->a.n; k++) {
        T sum = y[m->order[k]];
        for (int64_t e = m->u.begin[k]; e < m->u.begin[k + 1]; e++) sum -= m->u.value[e] * w[m->u.row[e]];
        w[k] = QUOTIENT(sum, m->diagonal[k]);
    }
    for (int32_t k = m->a.n - 1; k >= 0; k--)
        for (int64_t e = m->l.begin[k]; e < m->l.begin[k + 1]; e++) w[k] -= m->l.value[e] * w[m->l.row[e]];
    for (int32_t r = 0; r < m->a.n; r++) x[r] = w[m->pivot[r]];
}
/* The solution, with one step of iterative refinement. */
static void F(refined)(const F(Lu) * m, const T *y, T *x) {
    T *w = sparse_new(m->call, m->a.n, sizeof *w), *rest = sparse_new(m->call, m->a.n, sizeof *rest);
    T *step = m->x;
    F(solve)(m, y, x, w);
    double size = 0;
    for (int32_t i = 0; i < m->a.n; i++) {
        rest[i] = y[i];
        for (int64_t e = m->a.begin[i]; e < m->a.begin[i + 1]; e++) rest[i] -= m->value[e] * x[m->a.column[e]];
        size += SIZE(rest[i]);
    }
    if (size > 0 && size < __builtin_inf()) {
        F(solve)(m, rest, step, w);
        for (int32_t i = 0; i < m->a.n; i++) x[i] += step[i];
    }
    jaxcc_rt_heap_put(m->call, rest), jaxcc_rt_heap_put(m->call, w);
}
static void F(end)(F(Lu) * m) {
    void *all[] = {(void *)m->a.begin,
                   (void *)m->a.column,
                   (void *)m->value,
                   m->order,
                   m->pivot,
                   m->l.begin,
                   m->l.row,
                   m->l.value,
                   m->u.begin,
                   m->u.row,
                   m->u.value,
                   m->diagonal,
                   m->x,
                   m->reach,
                   m->stack,
                   m->mark,
                   m->child,
                   m->end,
                   m->own};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) jaxcc_rt_heap_put(m->call, all[i]);
}
/* Matches each row of A with a column in which it has a large element, the diagonal one if that is large. */
static bool F(match)(F(Lu) * m) {
    int32_t n = m->a.n, *row = sparse_ints(m->call, n, -1);
    for (int32_t i = 0; i < n; i++) {
        int64_t best = -1;
        for (int64_t e = m->a.begin[i]; e < m->a.begin[i + 1]; e++)
            if (best < 0 || SIZE(m->value[e]) > SIZE(m->value[best])) best = e;
        for (int64_t e = m->a.begin[i]; e < m->a.begin[i + 1]; e++)
            if (m->a.column[e] == i && SIZE(m->value[e]) >= PIVOT * SIZE(m->value[best])) best = e;
        if (best >= 0 && row[m->a.column[best]] < 0) row[m->a.column[best]] = i, m->own[i] = m->a.column[best];
    }
    bool all = jaxcc_rt_match(m->call, &m->a, m->own, row);
    /* columns are numbered like the rows that they are matched with */
    if (all) jaxcc_rt_minimum_degree(m->call, &m->a, row, m->order);
    jaxcc_rt_heap_put(m->call, row);
    return all;
}
void F(jaxcc_rt_spsolve)(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    T *x = arrays[4];
    if (sizes[1] >= INT32_MAX)
        jaxcc_rt_stop(call, JAXCC_MEMORY, "spsolve of %lld rows is not supported", (long long)sizes[1]);
    int32_t n = (int32_t)sizes[1];
    F(Lu) m = {.call = call, .a = {.n = n}};
    F(read_matrix)(&m, arrays, sizes[0]);
    m.order = sparse_ints(call, n, 0), m.pivot = sparse_ints(call, n, -1), m.own = sparse_ints(call, n, -1);
    int64_t room = 4 * m.a.begin[n] + n;
    m.l = F(triangle)(call, n, room), m.u = F(triangle)(call, n, room);
    m.diagonal = sparse_new(call, n, sizeof *m.diagonal), m.x = sparse_new(call, n, sizeof *m.x);
    m.reach = sparse_ints(call, n, 0), m.stack = sparse_ints(call, n, 0), m.mark = sparse_ints(call, n, 0);
    m.child = sparse_new(call, n, sizeof *m.child), m.end = sparse_new(call, n, sizeof *m.end);
    for (int32_t i = 0; i < n; i++) m.end[i] = -1;
    bool regular = F(match)(&m) && F(factor)(&m);
    if (regular) F(refined)(&m, arrays[3], x);
    for (int32_t i = 0; i < n && !regular; i++) x[i] = NOT_A_NUMBER;
    F(end)(&m);
}

#undef T
#undef F
#undef SIZE
#undef QUOTIENT
#undef NOT_A_NUMBER
