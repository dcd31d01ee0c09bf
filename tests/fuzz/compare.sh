#!/bin/sh
# compare.sh BIN TYPED SEED N [OTHER]: N drawn programs compiled by BIN/jaxcc at -O0, where nothing is fused, and at -O2 by OTHER/jaxcc (BIN's
# unless given), run with arrays against unreadable memory, compared. A program that its entry refuses for its dimensions counts as refused.
# make B=build/few CFLAGS.release='-O2 -fno-pie -DJAXCC_FEW_COPIES' builds an OTHER in which short programs become functions too.
bin=$1 typed=$2 seed=$3 n=$4 other=${5:-$1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
same=0 refused=0 failed=0
fail() {
    failed=$((failed + 1))
    echo "FAIL $1: $(grep -a -m 1 -v -e warning: -e '^ ' "$2" | cut -c 1-200)"
    [ -f "$stem.jaxpr" ] && cp "$stem.jaxpr" "$stem.in.npz" . # to look at
}
one() {
    for level in 0 2; do
        [ $level = 0 ] && compiler=$bin/jaxcc || compiler=$other/jaxcc
        timeout 60 "$compiler" -O$level --no-header -o "$stem.so$level" "$stem.jaxpr" >"$log" 2>&1 || { fail "-O$level $stem.jaxpr" "$log"; return; }
    done
    dims=
    for d in $(sed -n '$s/^# //p' "$stem.jaxpr"); do
        "$bin/jaxcc-run" -D "$d" "$stem.so0" "$stem.in.npz" 2>&1 | grep -q 'no such dimension' || dims="$dims -D $d"
    done
    for level in 0 2; do
        # shellcheck disable=SC2086
        timeout 60 "$bin/jaxcc-run" --guard $dims "$stem.so$level" "$stem.in.npz" -o "$stem.out$level.npz" >"$log" 2>&1 && continue
        grep -q 'failed with status 2' "$log" && refused=$((refused + 1)) || fail "run -O$level $stem.jaxpr" "$log"
        return
    done
    # shellcheck disable=SC2086
    if "$bin/jaxcc-run" $dims "$stem.so2" "$stem.in.npz" --expect "$stem.out0.npz" >"$log" 2>&1; then same=$((same + 1)); else fail "differs $stem.jaxpr" "$log"; fi
}
log=$dir/log
last=$((seed + n))
while [ "$seed" -lt $last ]; do
    stem=$dir/$seed
    "$typed" --write "$seed" 1 "$dir" >"$log" 2>&1 && one || { [ -f "$stem.jaxpr" ] || fail "--write $seed" "$log"; }
    rm -f "$stem".*
    seed=$((seed + 1))
done
echo "compare: $same the same, $refused refused, $failed failed"
[ $failed = 0 ]
