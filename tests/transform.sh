#!/bin/sh
# transform.sh BUILD MODE: the time and the size of transforming. 10,000 equations of each shape of long.awk are differentiated and tidied in a
# second of processor time, four times as many in ten times that: they fit in fewer caches, and squares would take sixteen times. 20 nested
# programs (deep.awk), five times --jvp, are 40 times as long at most.
# Builds other than release read the program back after every pass: fresh memory of a gigabyte, whose pages cost the kernel more, each, than those of
# a quarter of it.
. "$(dirname "$0")/try.sh"
most=1000 times=10
[ "$mode" = release ] || most=30000
# milliseconds FLAGS...: of processor time in the stage, of $work/p.jaxpr.
milliseconds() { jaxcc -w -ftime-report --emit=jaxpr "$@" "$work/p.jaxpr" 2>"$work/log" >"$work/out" && awk '$1 == "transform" { print int($3) }' "$work/log"; }
# within LIMIT FLAGS...: they are less than LIMIT in one of three turns, since other work on the machine makes a turn longer; $time is the last one's.
within() {
    limit=$1
    shift
    for turn in 1 2 3; do
        time=$(milliseconds "$@")
        [ "${time:-$limit}" -lt "$limit" ] && return
    done
}
for shape in mix dots slices reads fan parts; do
    awk -v shape=$shape -v n=10000 -f tests/long.awk >"$work/p.jaxpr"
    within $most --vjp
    count $? "10,000 equations ($shape): ${time:-no time} ms"
    one=${time:-0}
    awk -v shape=$shape -v n=40000 -f tests/long.awk >"$work/p.jaxpr"
    within $((times * one + 200)) --vjp
    count $? "40,000 equations ($shape): ${time:-no time} ms, 10,000: $one ms"
done
for shape in cond jit scan; do
    awk -v shape=$shape -v n=20 -f tests/deep.awk >"$work/p.jaxpr"
    within $most --jvp --jvp --jvp --jvp --jvp && [ "$(grep -c ' = ' "$work/out")" -le $((40 * $(grep -c ' = ' "$work/p.jaxpr"))) ]
    count $? "20 nested programs ($shape): ${time:-no time} ms, $(grep -c ' = ' "$work/out") equations"
done
finish
