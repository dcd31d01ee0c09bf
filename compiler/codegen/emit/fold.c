#include "emit.h"
#include <mlir-c/BuiltinAttributes.h>
#include <string.h>

/* Positions are sums and products, many with constants. What is known here need not be built, verified, translated and
   simplified; and a loop whose bounds are known may be none (lower.c). */

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

bool em_known(V v, int64_t *value) {
    if (!mlirValueIsAOpResult(v)) return false;
    MlirOperation op = mlirOpResultGetOwner(v);
    if (!mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetName(op)),
                            mlirStringRefCreateFromCString("llvm.mlir.constant")))
        return false;
    MlirAttribute a = mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("value"));
    if (!mlirAttributeIsAInteger(a)) return false;
    *value = mlirIntegerAttrGetValueInt(a);
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
    return false;
}
