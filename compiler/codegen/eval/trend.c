#include "trend.h"
#include "../../passes/eval.h"

/* A result is a node: the trend, and the value if that is a literal. Integers are taken for numbers: literals that
   might make sums overflow have no trend, nor have differences of unsigned ones. */
typedef struct {
    Trend t;
    bool literal;
    double value;
} Node;
typedef struct {
    Eval x;
    const Atom *loops;
} Trends;

enum { LARGE = 1 << 30 };
static const Node none = {{{TREND_NONE, TREND_NONE}}, false, 0};
static Reg put(Eval *x, Node n) {
    Node *at = arena_new(x->plan->arena, Node, 1);
    *at = n;
    return (Reg){.v = at, .uniform = true};
}
static const Node *node(Reg r) { return r.v; }
static bool constant_trend(const Node *n) { return !n->t.of[0] && !n->t.of[1]; }

/* ---- leaves */
static Reg literal(Eval *x, Val v) {
    Scalar s = {0};
    Node n = {.literal = scalar_of(x->plan->cx, v, &s)};
    if (!n.literal) return put(x, none);
    n.value = dtype_info[s.dtype].kind == DK_FLOAT ? scalar_float(s) : (double)scalar_int(s);
    return put(x, n);
}
static Reg constant(Eval *x, Dtype d, double v) { return put(x, (Node){.literal = true, .value = v}); }
static void along(const Trends *s, Ix i, Node *n, bool any) {
    for (uint32_t l = 0; l < TREND_LOOPS; l++) {
        bool other;
        Dim c = ix_coef(s->x.ix, i, s->loops[l], &other);
        if (other || !dim_is_const(c) || (any && c != 0))
            n->t.of[l] = TREND_NONE;
        else if (c != 0)
            n->t.of[l] = c > 0 ? 1 : -1;
    }
}
static Reg index_value(Eval *x, Ix i, Dtype d) {
    Node n = {.literal = false};
    along((Trends *)x, i, &n, dtype_info[d].bits < 32);
    return put(x, n);
}
static Reg read(Eval *x, Val v, const Ix *index) {
    Node n = {.literal = false};
    for (uint32_t d = 0; d < val_array(x->plan->cx, v)->rank; d++) along((Trends *)x, index[d], &n, true);
    return put(x, n);
}
static Reg between(Eval *x, Ix i, Dim lo, Dim hi) {
    Node n = {.literal = false};
    along((Trends *)x, i, &n, true);
    return put(x, n);
}

/* ---- equations */
/* Of a function that grows (1) or falls (-1) with each of two operands. */
static Node joined(const Node *a, int with_a, const Node *b, int with_b) {
    Node n = {.literal = false};
    for (uint32_t l = 0; l < TREND_LOOPS; l++) {
        bool known = a->t.of[l] != TREND_NONE && b->t.of[l] != TREND_NONE;
        int p = with_a * a->t.of[l], q = with_b * b->t.of[l];
        n.t.of[l] = (int8_t)(!known || p * q < 0 ? TREND_NONE : p ? p : q);
    }
    return n;
}
static const Node still = {.literal = false};
/* How results move with operands of these types: numbers are integers that do not wrap. */
typedef enum { ANY, NUMBERS, BOOLEANS } Operands;
static const struct {
    int8_t a, b;
    Operands of;
} moves[NPRIMS] = {
    [P_ge] = {1, -1, ANY},      [P_gt] = {1, -1, ANY},      [P_le] = {-1, 1, ANY},
    [P_lt] = {-1, 1, ANY},      [P_max] = {1, 1, ANY},      [P_min] = {1, 1, ANY},
    [P_add] = {1, 1, NUMBERS},  [P_sub] = {1, -1, NUMBERS}, [P_convert_element_type] = {1, 0, NUMBERS},
    [P_and] = {1, 1, BOOLEANS}, [P_or] = {1, 1, BOOLEANS},  [P_not] = {-1, 0, BOOLEANS},
};
static bool small(const Node *n) { return !n->literal || (n->value < LARGE && n->value > -LARGE); }
static bool suits(Operands of, Dtype d, const Node *a, const Node *b) {
    bool whole = dtype_info[d].kind == DK_SINT && dtype_info[d].bits >= 32;
    return of == ANY || (of == NUMBERS ? whole && small(a) && small(b) : d == DT_bool);
}
/* select_n of literals is its condition, or the contrary. */
static Node chosen(const Reg *in, uint32_t n) {
    if (n != 3 || !node(in[1])->literal || !node(in[2])->literal) return none;
    return joined(node(in[0]), node(in[1])->value <= node(in[2])->value ? 1 : -1, &still, 1);
}
static Node moved(const Eqn *e, Dtype d, const Reg *in, uint32_t n) {
    if (e->prim == P_select_n) return chosen(in, n);
    const Node *a = node(in[0]), *b = n > 1 ? node(in[1]) : &still;
    if (!moves[e->prim].a || !suits(moves[e->prim].of, d, a, b)) return none;
    return joined(a, moves[e->prim].a, b, moves[e->prim].b);
}
/* Of another type a literal may be another number. */
static bool still_literal(const Eqn *e, Dtype d, const Node *a) {
    bool kept = dtype_info[d].kind == DK_FLOAT || suits(NUMBERS, d, a, &still);
    return e->prim == P_convert_element_type && a->literal && kept;
}
static Reg point(Eval *x, const Eqn *e, uint32_t product, const Reg *in, uint32_t n) {
    Dtype d = val_array(x->plan->cx, e->out.at[0])->dtype;
    bool all = true;
    for (uint32_t i = 0; i < n; i++) all &= constant_trend(node(in[i]));
    if (all && still_literal(e, d, node(in[0]))) return in[0];
    return put(x, all ? still : moved(e, d, in, n));
}

/* ---- all others */
static void program(Eval *x, const Eqn *e, const Ix *element, const Reg *in, Reg *out) {
    for (uint32_t i = 0; i < e->out.n; i++) out[i] = put(x, none);
}
static uint32_t product(Eval *x, const Eqn *e) { return 2; }
static Reg fill(Eval *x, const Eqn *gather) { return put(x, none); }
static Reg inside(Eval *x, const IxValue *v, Reg element) { return put(x, none); }
static Reg both(Eval *x, Reg a, Reg b) { return put(x, joined(node(a), 1, node(b), 1)); }
static Reg narrowed(Eval *x, Reg condition) { return condition; }
static Reg choose(Eval *x, Reg condition, Reg yes, Reg no) {
    const Node *all[] = {node(condition), node(yes), node(no)};
    bool same = constant_trend(all[0]) && constant_trend(all[1]) && constant_trend(all[2]);
    return put(x, same ? still : none);
}
static void edge(Eval *x, Ix i, Dim lo, Dim hi) {}
static void place(Eval *x, const IxValue *v) {}

static const Operations operations = {literal, read,   product, point,    program, constant, fill, index_value,
                                      between, inside, both,    narrowed, choose,  edge,     place};
Trend trend_of(Plan *p, Step *s, Val v, const Ix *index, const Atom loops[TREND_LOOPS]) {
    Trends *x = arena_new(p->arena, Trends, 1);
    eval_open(&x->x, &operations, p, s);
    x->loops = loops;
    return node(eval_value(&x->x, v, index))->t;
}
