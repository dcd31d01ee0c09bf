#!/bin/sh
# vmap.sh: which rows of prims.def have no rule for a batch of examples: only these.
. "$(dirname "$0")/try.sh"
cat >"$work/want" <<'X1'
again bake custom_lin elementwise make runtime_call spmd take: written by the last passes, or not compiled at all
addupdate empty_ref for for_loop free_ref freeze get new_ref pallas_call run_state swap while_loop: gone before transformations
dim_as_value empty empty2 iota platform_index: take no array
random_join: written after transformations
rng_uniform spsolve: JAX has none either
X1
sed 's/:.*//' "$work/want" | tr ' ' '\n' | sort >"$work/names"
sed -n 's/^PRIM(\([a-z_0-9]*\),.*, *none, *[A-Z]*\(([^)]*)\)*)$/\1/p' "$root/compiler/prims.def" | sort >"$work/got"
same() { diff "$work/names" "$work/got"; }
succeeds same
finish
