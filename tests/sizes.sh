#!/bin/sh
# sizes.sh BUILD: equations of value and gradient of models in sizes/, as JAX 0.10.2 printed them, counted through nested programs, without
# calls, which JAX's own number does not have: that is JAX's value_and_grad after inlining and removal of what is not needed. A program that JAX
# would have written may be two equations longer. What is printed is read again and verified.
. "$(dirname "$0")/try.sh"
cd tests/sizes || exit 1
got=$work/got.jaxpr
equations() { sed '/ = [a-z_]*call\[/d; / = p*jit\[/d; / = remat2*\[/d; /^let .* = {/d' "$1" | awk '{ n += gsub(/ = /, "") } END { print n }'; }
printf '%-12s %8s %14s %8s\n' model primal value-and-grad JAX
while read -r model args jax; do
    jaxcc -w --verify --emit=jaxpr "--value-and-grad=$args" "$model.jaxpr" >"$got" 2>"$work/log" && jaxcc -w --check --verify "$got" >"$work/log" 2>&1
    status=$?
    size=$(equations "$got")
    printf '%-12s %8s %14s %8s\n' "$model" "$(equations "$model.jaxpr")" "$size" "$jax"
    [ $status = 0 ] && [ "$size" -gt 0 ] && [ "$size" -le $((jax + 2)) ]
    count $? "$model"
done <<'END'
mlp 2,3,4,5 49
gelu 0 24
layer_norm 0,1,2 55
logsumexp 0 20
attention 0,1,2 37
conv 0,1 13
rnn 0,1,2,3,4 33
lstm 0,1,2,3,4,5 64
cond 0 21
scatter_set 0,1 33
sort 0 11
prod 0 43
cumprod 0 90
logdet 0 75
solve 0,1 61
END
# Arrays [turns, batch, hidden] that the forward loop stacks, its own results included: of MOST at most; JAX 0.10.2 stacks 4 and 13.
while read -r model args most; do
    jaxcc -w --emit=jaxpr "--value-and-grad=$args" "$model.jaxpr" >"$got" 2>"$work/log"
    stacks=$(awk '/= scan\[/ { print gsub(/:f32\[10,4,16\]/, ""); exit }' "$got")
    [ "${stacks:-0}" -gt 0 ] && [ "$stacks" -le "$most" ]
    count $? "$model stacks ${stacks:-no} arrays"
done <<'END'
rnn 0,1,2,3,4 1
lstm 0,1,2,3,4,5 7
END
finish
