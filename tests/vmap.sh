#!/bin/sh
# vmap.sh BUILD: which rows of prims.def have no rule for a batch of examples: only these. Each of the others occurs in a program that a test
# runs for a batch: of laws/, whose inputs are in it or not, of batches/ and cases/, of effects.sh. --check-bounds reports what an example does
# that is here, though not the first.
. "$(dirname "$0")/try.sh"
cat >"$work/want" <<'X1'
again bake custom_lin dot_halves dot_words element elementwise make runtime_call sort_keys sort_positions spmd take: written by the last passes, or not compiled at all
addupdate empty_ref for for_loop free_ref freeze get new_ref pallas_call run_state swap while_loop: gone before transformations
dim_as_value empty empty2 iota platform_index: take no array
random_join: written after transformations
rng_uniform: JAX has none either
X1
sed 's/:.*//' "$work/want" | tr ' ' '\n' | sort >"$work/names"
sed -n 's/^PRIM(\([a-z_0-9]*\), *"\([^"]*\)".*, *\([a-z_0-9]*\), *[A-Z]*\(([^)]*)\)*)$/\1 \2 \3/p' compiler/prims.def >"$work/rows"
awk '$3 == "none" { print $1 }' "$work/rows" | sort >"$work/got"
same() { diff "$work/names" "$work/got"; }
succeeds same

{
    cat tests/laws/*.txt
    cat tests/batches/*.jaxpr tests/effects.sh
    grep -l -e --vmap tests/cases/*.args | sed 's/args$/jaxpr/' | xargs cat
    printf "%s \n" debug_callback inspect_sharding io_callback pure_callback # refused: errors/vmap-callback
} | grep -oE '(= |^ *)[a-z_0-9]+(-[a-z]+)?[[ ]' | tr -d '=[ ' | sort -u >"$work/run"
missing() { awk '$3 != "none" { print $2 }' "$work/rows" | sort | comm -23 - "$work/run"; }
each_runs() { [ -z "$(missing | tee "$work/said")" ]; }
succeeds each_runs
printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }" >"$work/in.npy"
printf '\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\374\377\377\377\377\377\377\377' >>"$work/in.npy"
jaxcc --check-bounds --vmap=0 tests/cases/vmap-bounds-cond.jaxpr -o "$work/bounds.so"
! jaxcc-run "$work/bounds.so" "$work/in.npy" >"$work/log" 2>&1 && grep -q 'gather indexes out of bounds' "$work/log"
count $? "an example that is not the first indexes out of bounds"
finish
