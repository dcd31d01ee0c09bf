#!/bin/sh
# check.sh BUILD MODE: all tests; of the longest parts a share, all of it if $ALL is set. Each part prints `NAME: P passed, F failed`; the last
# line adds them up.
cd "$(dirname "$0")/.." || exit 1
build=$1 mode=$2
log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT
export NO_COLOR=1
shared=../shared

# A part that fails without saying how many counts as one.
part() {
    file=$(mktemp "$log.XXXXXX")
    "$@" >"$file" 2>&1
    status=$?
    cat "$file"
    [ $status = 0 ] || grep -q '[1-9][0-9]* failed$' "$file" || echo "${2##*/}: 0 passed, 1 failed"
}
# A long part that keeps one core busy, beside those that keep another one busy; what it says comes with `aside_end`.
aside() { part "$@" >"$log.aside" & }
aside_end() {
    wait
    cat "$log.aside"
}
share() { [ -n "$ALL" ] && echo 1 || echo "$1"; }
# The last line of Criterion, as ours.
unit() {
    out=$("$1" 2>&1)
    status=$?
    tested=$(echo "$out" | sed -n 's/.*Tested: *\([0-9]*\).*/\1/p')
    passing=$(echo "$out" | sed -n 's/.*Passing: *\([0-9]*\).*/\1/p')
    failing=$((${tested:-0} - ${passing:-0}))
    [ $status = 0 ] || { echo "$out"; [ $failing -gt 0 ] || failing=1; }
    echo "unit ${1##*/}: ${passing:-0} passed, $failing failed"
}

all() {
    for program in "$build"/tests/unit/*; do
        [ -x "$program" ] && [ ! -d "$program" ] && [ "${program%.*}" = "$program" ] && part unit "$program"
    done
    part sh tests/layers.sh
    part sh tests/rules.sh "$build"
    [ -n "$ALL" ] && brief= || brief=--brief
    part "$build/tests/laws" $brief --part "$(share 0.4)" tests/laws/*.txt
    aside sh tests/gpu-runtime.sh "$build" "$mode"
    part sh tests/golden.sh "$build"
    part sh tests/errors.sh "$build"
    part "$build/tests/params" tests/cases tests/golden
    part sh tests/driver.sh "$build" "$mode"
    part sh tests/large.sh "$build" "$mode"
    part sh tests/leave.sh "$build" "$mode"
    part sh tests/docs.sh "$build" "$mode"
    part sh tests/save.sh "$build"
    part sh tests/libraries.sh "$build" "$mode"
    part sh tests/interpose.sh "$build"
    part sh tests/levels.sh "$build"
    part sh tests/loops.sh "$build"
    part sh tests/long.sh "$build" "$mode"
    part sh tests/nested.sh "$build" "$mode"
    part sh tests/shared.sh "$build" "$mode"
    part sh tests/transform.sh "$build" "$mode"
    part sh tests/sizes.sh "$build"
    part sh tests/header.sh "$build"
    part sh tests/programs.sh "$build"
    part sh tests/entries.sh "$build"
    part sh tests/remat.sh "$build"
    part sh tests/report.sh "$build"
    part sh tests/reads.sh "$build"
    part sh tests/writes.sh "$build"
    part sh tests/vmap.sh "$build"
    part sh tests/effects.sh "$build"
    part sh tests/run.sh "$build" "$mode"
    part sh tests/stack.sh "$build"
    part "$build/tests/gpu_driver" "$build/tests/gpu/libcuda.so.1"
    part sh tests/gpu-pointers.sh "$build" "$mode"
    part sh tests/gpu-waits.sh "$build"
    part sh tests/gpu-copies.sh "$build"
    part sh tests/dlpack.sh "$build" "$mode"
    part sh tests/gpu-solver.sh "$build" "$mode"
    aside_end
    case $mode in release) some="$(share 0.1) $(share 0.12)" ;; *) some='0.02 0.01' ;; esac # compiling takes 20 times as long
    part sh tests/gpu-cases.sh "$build" $some # all: make check-gpu
    part sh tests/gpu-ptxas.sh "$build" 0.02 tests/cases
    part "$build/tests/runner" --roundtrip --strict tests stdlib examples "$shared/cases" "$shared/printouts"
    part "$build/tests/runner" --strict --extra --verify tests/cases
    part "$build/tests/runner" --strict --extra -O0 --part "$(share 0.4)" tests/cases # unfused, each equation a kernel of its own
    part "$build/tests/runner" --strict tests/contract # not at -O0
    part "$build/tests/runner" --strict tests/batches
    part "$build/tests/runner" --strict --extra -Dbatch=3 tests/batches
    part sh tests/symbolic.sh "$build" 0.9 0.99 --most "$([ -n "$ALL" ] && echo 100000 || echo 700)" tests/cases # sums of narrow floats depend on what is known of their length
    part sh tests/symbolic.sh "$build" 0.8 0.98 --transform --vjp --most 80 tests/cases
    part sh tests/normalise.sh "$build" tests/cases
    part sh tests/normalise.sh "$build" tests/cases tidy --part "$(share 0.5)"
    [ -d "$shared/cases" ] || return
    for cases in jax wild facts seeds; do # transformed programs, Catalyst, Pallas, old texts
        part sh tests/normalise.sh "$build" "$shared/cases/$cases"
    done
    part sh tests/symbolic.sh "$build" 0.9 0.98 --most 700 "$shared/cases/jax"
    part sh tests/symbolic.sh "$build" 0.85 0.98 --transform --vjp --most 280 "$shared/cases/jax"
    part "$build/tests/runner" --min-pass 0.99 --part "$(share 0.5)" "$shared/cases/jax" "$shared/cases/wild"
    part "$build/tests/runner" --min-pass 0.99 --part "$(share 0.25)" --fixed "$(share 0.1)" "$shared/cases/jax-tx" "$shared/cases/tx2"
    part "$build/tests/runner" --min-pass 1 "$shared/cases/seeds" "$shared/cases/facts"
}
all | tee "$log"

# What parts with failures said comes again at the end: the last lines of each.
awk -v most=40 '
    { said[++n] = $0 }
    /^[a-z_. -]+: [0-9]+ passed, [0-9]+ failed$/ {
        p += $(NF - 3); f += $(NF - 1)
        if ($(NF - 1) > 0) for (i = n > most ? n - most + 1 : 1; i <= n; i++) print said[i]
        n = 0
    }
    END { printf "%d passed, %d failed\n", p, f; exit f > 0 || p == 0 }' "$log"
