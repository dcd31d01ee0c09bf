#!/bin/sh
# rules.sh BUILD: every rule of stdlib/rules/ is well typed: the compiler relies on that when it reads one. The derivative of the determinant of a
# singular matrix is that of JAX: the cofactors.
. "$(dirname "$0")/try.sh"
for file in stdlib/rules/*.jaxpr; do
    succeeds jaxcc --check -w "$file"
done
cat >"$work/main.c" <<'X'
#include "det.h"
#include <math.h>
int main(void) {
    const double a[16] = {1, 2, 3, 4, 2, 4, 6, 8, 1, 0, 1, 1, 0, 1, 5, 2}, one = 1, cofactors[16] = {-14, -22, -2, 16, 7, 11, 1, -8};
    double y, g[16];
    if (det(a, &one, &y, g) || y != 0) return 1;
    for (int i = 0; i < 16; i++)
        if (!(fabs(g[i] - cofactors[i]) < 1e-9)) return 2;
    return 0;
}
X
of_singular() { jaxcc --vjp -Werror=unknown-rule tests/rules/det.jaxpr -o "$work/det.so" && cd "$work" && cc main.c det.so -Wl,-rpath,. -lm -o main && ./main; }
try "the cofactors of a singular matrix" of_singular
finish
