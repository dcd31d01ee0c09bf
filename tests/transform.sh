#!/bin/sh
# transform.sh BUILD MODE: the time and the size of transforming. 10,000 equations of each shape of long.awk are differentiated and tidied in a
# second of processor time, four times as many in six times that; 20 nested programs (deep.awk), five times --jvp, are 40 times as long at most.
# Builds other than release read the program back after every pass: fresh memory of a gigabyte, whose pages cost the kernel more, each, than those of
# a quarter of it.
. "$(dirname "$0")/try.sh"
most=1000 times=6
[ "$mode" = release ] || most=30000 times=8
# milliseconds FLAGS...: of processor time in the stage, of $work/p.jaxpr.
milliseconds() { jaxcc -w -ftime-report --emit=jaxpr "$@" "$work/p.jaxpr" 2>"$work/log" >"$work/out" && awk '$1 == "transform" { print int($3) }' "$work/log"; }
for shape in mix dots slices reads fan parts; do
    awk -v shape=$shape -v n=10000 -f tests/long.awk >"$work/p.jaxpr"
    one=$(milliseconds --vjp)
    [ "${one:-$most}" -lt $most ]
    count $? "10,000 equations ($shape): ${one:-no time} ms"
    awk -v shape=$shape -v n=40000 -f tests/long.awk >"$work/p.jaxpr"
    four=$(milliseconds --vjp)
    [ "${four:-$((9 * most))}" -lt $((times * ${one:-0} + 200)) ]
    count $? "40,000 equations ($shape): ${four:-no time} ms, 10,000: ${one:-no time} ms"
done
for shape in cond jit scan; do
    awk -v shape=$shape -v n=20 -f tests/deep.awk >"$work/p.jaxpr"
    time=$(milliseconds --jvp --jvp --jvp --jvp --jvp)
    [ "${time:-$most}" -lt $most ] && [ "$(grep -c ' = ' "$work/out")" -le $((40 * $(grep -c ' = ' "$work/p.jaxpr"))) ]
    count $? "20 nested programs ($shape): ${time:-no time} ms, $(grep -c ' = ' "$work/out") equations"
done
finish
