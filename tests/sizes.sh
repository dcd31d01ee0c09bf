#!/bin/sh
# sizes.sh BUILD: equations of value and gradient of models in sizes/, as JAX 0.10.2 printed them, counted through nested programs, without
# calls, which JAX's own number does not have: that is JAX's value_and_grad after inlining and removal of what is not needed. A program that JAX
# would have written may be two equations longer. What is printed is read again and verified.
cd "$(dirname "$0")" || exit 1
case $1 in /*) bin=$1/bin ;; *) bin=$OLDPWD/$1/bin ;; esac
passed=0
failed=0
got=$(mktemp)
trap 'rm -f "$got"' EXIT
count() { sed '/ = [a-z_]*call\[/d; / = p*jit\[/d; / = remat2*\[/d; /^let .* = {/d' "$1" | awk '{ n += gsub(/ = /, "") } END { print n }'; }
printf '%-12s %8s %14s %8s\n' model primal value-and-grad JAX
while read -r model args jax; do
    "$bin/jaxcc" -w --verify --emit=jaxpr "--value-and-grad=$args" "sizes/$model.jaxpr" >"$got" 2>&1 && "$bin/jaxcc" -w --check --verify "$got" >/dev/null 2>&1
    status=$?
    size=$(count "$got")
    printf '%-12s %8s %14s %8s\n' "$model" "$(count "sizes/$model.jaxpr")" "$size" "$jax"
    if [ $status = 0 ] && [ "$size" -gt 0 ] && [ "$size" -le $((jax + 2)) ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL sizes: $model"
        [ $status = 0 ] || head -n 5 "$got"
    fi
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
    "$bin/jaxcc" -w --emit=jaxpr "--value-and-grad=$args" "sizes/$model.jaxpr" >"$got" 2>&1
    stacks=$(awk '/= scan\[/ { print gsub(/:f32\[10,4,16\]/, ""); exit }' "$got")
    if [ "${stacks:-0}" -gt 0 ] && [ "$stacks" -le "$most" ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL sizes: $model stacks ${stacks:-no} arrays"
    fi
done <<'END'
rnn 0,1,2,3,4 1
lstm 0,1,2,3,4,5 7
END
echo "sizes: $passed passed, $failed failed"
[ $failed = 0 ]
