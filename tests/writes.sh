#!/bin/sh
# writes.sh BUILD: for a batch of examples that take different numbers of iterations, an iteration that writes an element of each example's array
# does so in place: with arrays thirty times as long it takes less than ten times the time.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# scatter PRIM: an update of x at k.
scatter() {
    cat <<X
          j:i64[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,) sharding=None] k
          y:f64[N] = $1[
            dimension_numbers=ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
            indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False update_jaxpr=None update_consts=()
          ] x j c
X
}
block="s:f64[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,) sharding=None] c"
# turn SHAPE: how an iteration gets y from x:f64[N], c, its number i and k, which differs between the examples; m is 10 more.
turn() {
    case $1 in
    together) printf '%s\n%s\n' "$block" 'y:f64[N] = dynamic_update_slice x s i' ;;
    apart) printf '%s\n%s\n' "$block" 'y:f64[N] = dynamic_update_slice x s k' ;;
    scatter*) scatter "$1" ;;
    cond)
        cat <<X
          q:bool[] = lt c 0.9:f64[]
          r:i32[] = convert_element_type[new_dtype=int32 weak_type=False] q
          y:f64[N] = cond[
            branches=(
              { lambda ; x:f64[N] c:f64[] k:i64[]. let in (x,) }
              { lambda ; x:f64[N] c:f64[] k:i64[]. let
                  $block
                  y:f64[N] = dynamic_update_slice x s k
                in (y,) }
            )
          ] r x c k
X
        ;;
    scan)
        cat <<X
          is:i64[2] = iota[dimension=0 dtype=int64 shape=(2,) sharding=None]
          y:f64[N] = scan[
            jaxpr={ lambda ; c:f64[] k:i64[] x:f64[N] i:i64[]. let
                j:i64[] = add i k
                $block
                y:f64[N] = dynamic_update_slice x s j
              in (y,) }
            length=2 num_carry=1 num_consts=2 reverse=False unroll=1
          ] c k x is
X
        ;;
    while)
        cat <<X
          y:f64[N] _:i64[] = while[
            body_jaxpr={ lambda ; c:f64[] x:f64[N] k:i64[]. let
                $block
                y:f64[N] = dynamic_update_slice x s k
                n:i64[] = add k 5:i64[]
              in (y, n) }
            body_nconsts=1
            cond_jaxpr={ lambda ; m:i64[] x:f64[N] k:i64[]. let go:bool[] = lt k m in (go,) }
            cond_nconsts=1
          ] m c x k
X
        ;;
    esac
}
program() { # SHAPE N
    cat <<X | sed "s/\[N\]/[$2]/g"
{ lambda ; x:f64[N] n:i64[]. let
    _:i64[] _:i64[] _:f64[] z:f64[N] = while[
      body_jaxpr={ lambda ; i:i64[] k:i64[] c:f64[] x:f64[N]. let
          m:i64[] = add k 10:i64[]
$(turn "$1")
          d:f64[] = mul c 0.99:f64[]
          j1:i64[] = add i 1:i64[]
          k1:i64[] = add k 2:i64[]
        in (j1, k1, d, y) }
      body_nconsts=0
      cond_jaxpr={ lambda ; n:i64[] i:i64[] k:i64[] c:f64[] x:f64[N]. let go:bool[] = lt i n in (go,) }
      cond_nconsts=1
    ] n 0:i64[] n 1.0:f64[] x
  in (z,) }
X
}
# The processor time of the fastest of five calls with many iterations, less that of calls with none.
cat >time.c <<'X'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { EXAMPLES = 4 };
typedef int Call(int64_t batch, const double *x, const int64_t *n, double *y);
extern Call few, many;
static long fastest(Call *f, const double *x, double *y, int64_t turns) {
    int64_t n[EXAMPLES];
    long least = 0;
    for (int i = 0; i < EXAMPLES; i++) n[i] = turns / (i + 1);
    for (int k = 0; k < 5; k++) {
        struct timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        if (f(EXAMPLES, x, n, y)) exit(1);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        long us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000 + 1;
        if (!k || us < least) least = us;
    }
    return least;
}
static long call(Call *f, long length) {
    double *x = calloc(EXAMPLES * length, sizeof *x), *y = calloc(EXAMPLES * length, sizeof *y);
    long all = fastest(f, x, y, 2000), none = fastest(f, x, y, 0);
    free(x), free(y);
    return all > none ? all - none : 1;
}
int main(void) {
    long one = call(few, 10000), more = call(many, 300000);
    printf("%ld us, 30 times as long: %ld us\n", one, more);
    return more >= 10 * one + 3000;
}
X
grows() { # SHAPE OPTION
    for n in few many; do
        [ $n = few ] && program "$1" 10000 >$n.jaxpr || program "$1" 300000 >$n.jaxpr
        jaxcc "$2" --name=$n $n.jaxpr -o $n.so || return
    done
    cc -O1 time.c few.so many.so -Wl,-rpath,. -o time && timeout 100 ./time
}
for shape in together apart scatter scatter-add scatter-mul cond scan while; do succeeds grows $shape --vmap=0; done
succeeds grows together --vmap=_,0
finish
