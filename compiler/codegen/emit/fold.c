#include "emit.h"
#include <mlir-c/BuiltinAttributes.h>
#include <string.h>

/* Positions are sums and products, many with constants. What is known here need not be built, verified, translated and
   simplified; and a loop whose bounds are known may be none (lower.c).

   Of (x + c) * s + y, c * s is added last: positions in copies of a loop's body differ in constants alone, which the
   addresses of a CPU's instructions include. */

typedef struct {
    const char *name;
    bool (*of)(int64_t x, int64_t y, int64_t *result); /* false: it has none */
    int64_t left, right;                               /* left op y = y, x op right = x … */
    bool has_left, has_right;                          /* … if there is such a value */
} Row;

static bool add(int64_t x, int64_t y, int64_t *r) { return *r = (int64_t)((uint64_t)x + (uint64_t)y), true; }
static bool sub(int64_t x, int64_t y, int64_t *r) { return *r = (int64_t)((uint64_t)x - (uint64_t)y), true; }
static bool mul(int64_t x, int64_t y, int64_t *r) { return *r = (int64_t)((uint64_t)x * (uint64_t)y), true; }
static bool least(int64_t x, int64_t y, int64_t *r) { return *r = x < y ? x : y, true; }
static bool most(int64_t x, int64_t y, int64_t *r) { return *r = x > y ? x : y, true; }
static bool quotient(int64_t x, int64_t y, int64_t *r) {
    return y && (*r = (int64_t)((uint64_t)x / (uint64_t)y), true);
}
static bool rest(int64_t x, int64_t y, int64_t *r) { return y && (*r = (int64_t)((uint64_t)x % (uint64_t)y), true); }

static const Row rows[] = {
    {"llvm.add", add, 0, 0, true, true},          {"llvm.sub", sub, 0, 0, false, true},
    {"llvm.mul", mul, 1, 1, true, true},          {"llvm.udiv", quotient, 0, 1, false, true},
    {"llvm.urem", rest, 0, 0, false, false},      {"llvm.intr.smin", least, 0, 0, false, false},
    {"llvm.intr.smax", most, 0, 0, false, false},
};

/* The operation whose result it is, if that has the name; else a null one. */
static MlirOperation made_by(V v, const char *name) {
    MlirOperation none = {NULL}, op = mlirValueIsAOpResult(v) ? mlirOpResultGetOwner(v) : none;
    if (!op.ptr) return none;
    MlirStringRef is = mlirIdentifierStr(mlirOperationGetName(op));
    return mlirStringRefEqual(is, mlirStringRefCreateFromCString(name)) ? op : none;
}
bool em_known(V v, int64_t *value) {
    MlirOperation op = made_by(v, "llvm.mlir.constant");
    if (!op.ptr) return false;
    MlirAttribute a = mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("value"));
    if (!mlirAttributeIsAInteger(a)) return false;
    *value = mlirIntegerAttrGetValueInt(a);
    return true;
}
static V plus(Emit *e, V x, int64_t c) {
    V o[2] = {x, c ? em_i64(e, c) : x};
    return c ? em_1(e, "llvm.add", e->i64, 2, o, 0, NULL) : x;
}
V em_without_constant(const Emit *e, V v, int64_t *c) {
    *c = 0;
    if (e->target->device) return v; /* LLVM's passes for GPUs do this themselves */
    MlirOperation op = made_by(v, "llvm.add");
    if (!op.ptr || !mlirTypeEqual(mlirValueGetType(v), e->i64)) return v;
    return em_known(mlirOperationGetOperand(op, 1), c) ? mlirOperationGetOperand(op, 0) : v;
}
/* x op y with the constants that x and y add, or with the constant y, added last. */
static bool adds_last(Emit *e, const Row *r, V x, V y, V *result) {
    int64_t in_x, in_y, c = 0;
    bool knows_y = em_known(y, &c);
    V rest_x = em_without_constant(e, x, &in_x), rest_y = em_without_constant(e, y, &in_y);
    if (!in_x && !in_y) return false;
    if (r->of == add && !knows_y) c = in_y, rest_x = em_add(e, rest_x, rest_y);
    if (r->of == mul && knows_y) rest_x = em_mul(e, rest_x, y);
    if (r->of != add && (r->of != mul || !knows_y)) return false;
    r->of(in_x, c, &c);
    *result = plus(e, rest_x, c);
    return true;
}
bool em_folded(Emit *e, const char *name, V x, V y, V *result) {
    if (!mlirTypeEqual(mlirValueGetType(x), e->i64)) return false;
    const Row *r = rows, *end = rows + sizeof rows / sizeof *rows;
    while (r < end && strcmp(r->name, name)) r++;
    if (r == end) return false;
    int64_t a = 0, b = 0, ab;
    bool knows_a = em_known(x, &a), knows_b = em_known(y, &b);
    if (knows_a && knows_b && r->of(a, b, &ab)) return *result = em_i64(e, ab), true;
    if (knows_b && r->has_right && b == r->right) return *result = x, true;
    if (knows_a && r->has_left && a == r->left) return *result = y, true;
    if (knows_a && r->has_left) return adds_last(e, r, y, x, result);
    return adds_last(e, r, x, y, result);
}
