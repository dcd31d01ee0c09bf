# nested.awk -v kind=K -v n=N: a program whose level k holds level k - 1 twice, by equations of one kind. Its text is linear in N, what it
# stands for is 2^N. -v run=1 prints what it gives of zeros instead, for the kinds that are functions of one array.
function loop(f, x) { return "scan[jaxpr=" f " length=1 linear=(False,) num_carry=1 num_consts=0 reverse=False unroll=1 _split_transpose=False] " x }
function carrying(f, x) { return "scan[jaxpr=" f " length=1 linear=(False, False) num_carry=1 num_consts=1 reverse=False unroll=1 _split_transpose=False] c " x }
function call(prim, f, x) {
    if (prim == "jit") return "jit[name=f jaxpr=" f "] " x
    if (prim == "remat") return "checkpoint[jaxpr=" f " prevent_cse=True differentiated=False policy=None] " x
    if (prim == "custom_jvp_call") return prim "[name=f call_jaxpr=" f " jvp_jaxpr_fun=g num_consts=0 symbolic_zeros=False] " x
    if (prim == "custom_vjp_call") return prim "[name=f call_jaxpr=" f " fwd_jaxpr_thunk=g bwd=h num_consts=0 out_trees=t symbolic_zeros=False] " x
    return prim "[call_jaxpr=" f "] " x
}
function solve(f, x,   p) {
    p = "{ lambda ; a:" T ". let b:" T " = jit[name=f jaxpr=" f "] a in (b,) }"
    return "custom_linear_solve[const_lengths=_LinearSolveTuple(matvec=0, vecmat=0, solve=0, transpose_solve=0) " \
           "jaxprs=_LinearSolveTuple(matvec=" p ", vecmat=None, solve=" p ", transpose_solve=None)] " x
}
function once(f, x) {
    return "while[body_jaxpr={ lambda ; x:" T " i:i32[]. let y:" T " = jit[name=f jaxpr=" f "] x; j:i32[] = add i 1:i32[] in (y, j) } " \
           "body_nconsts=0 cond_jaxpr=again cond_nconsts=0] " x " 0:i32[]"
}
function eqn(f, g, x, second) {
    if (kind == "mixed") kind_now = k % 3 == 0 ? "scan" : k % 3 == 1 ? "cond" : "jit"; else kind_now = kind
    if (kind_now == "scan") return loop(f, x)
    if (kind_now == "cond") return "cond[branches=(" f ", " g ")] i " x
    if (kind_now == "known") return "cond[branches=(" f ", " g ")] " (second ? "j " : "0:i32[] ") x
    if (kind_now == "references") return "cond[branches=(" (second ? g ", " f : f ", " g) ")] i c " x
    if (kind_now == "reference") return carrying(f, x)
    if (kind_now == "key") return carrying(f, x)
    if (kind_now == "lanes") return "while[body_jaxpr=" f " body_nconsts=0 cond_jaxpr=below cond_nconsts=0] " x
    if (kind_now == "while") return once(f, x)
    if (kind_now == "solve") return solve(f, x)
    if (kind_now == "shard_map")
        return "shard_map[mesh=Mesh('x': 1, axis_types=(Auto,)) in_specs=(P(None),) out_specs=(P(None),) jaxpr=" f " check_vma=False manual_axes=frozenset({'x'})] " x
    return call(kind_now, f, x)
}
# What level k gives of an array of x.
function value(k, x,   how, i, b) {
    if (k < 2) return k ? x - 0.5 : x + 1
    how = kind == "mixed" ? (k % 3 == 1 ? "cond" : "") : kind
    i = how == "cond" && x > 0.5
    b = value(k - 1 - i, x)
    return value(k - 1 - (how == "known" ? 1 : i), b)
}
# The first input of each level, beside a.
function more() {
    return kind == "key" ? " c:key<fry>[]" : kind ~ /^reference/ ? " c:Ref{" T "}" : ""
}
BEGIN {
    if (run) {
        print value(n, 0)
        exit
    }
    T = kind == "complex" ? "c64[8]" : "f32[8]"
    if (kind == "complex") kind = "jit"
    index_of = kind == "cond" || kind == "mixed" || kind == "references"
    last = kind == "while" ? " _:i32[]" : ""
    print "let below = { lambda ; a:" T ". let b:bool[8] = lt a 9.0:f32[] in (b,) } in"
    print "let again = { lambda ; a:" T " i:i32[]. let b:bool[] = lt i 1:i32[] in (b,) } in"
    for (k = 0; k < 2; k++) {
        printf "let f%d = { lambda%s ;%s a:%s. let\n", k, kind == "constant" ? " q:" T : "", more(), T
        if (kind == "key") print "  d:u32[8] = random_bits[bit_width=32 shape=(8,)] c\n  e:f32[8] = convert_element_type[new_dtype=float32 weak_type=False] d"
        else if (kind ~ /^reference/) print "  d:" T " <- c[...]\n  e:" T " = neg d\n  c[...] <- e"
        else if (kind == "constant") print "  e:" T " = add a q"
        else if (kind == "lanes") print "  e:" T " = add a 1.0:f32[]"
        else print "  e:" T " = broadcast_in_dim[broadcast_dimensions=() shape=(8,) sharding=None] " (T ~ /^c/ ? "(" : "") (k ? "0.5" : "1.0") (T ~ /^c/ ? "+0j):c64[]" : ":f32[]")
        printf "  b:%s = %s a e\n in (b,) } in\n", T, k ? "sub" : "add"
    }
    if (kind == "constant") kind = "jit"
    for (k = 2; k <= n; k++) {
        f = "f" (k - 1); g = "f" (k - 2)
        printf "let f%d = { lambda ;%s a:%s. let\n", k, more(), T
        if (index_of) print "  s:bool[8] = gt a 0.5:f32[]\n  t:bool[] = reduce_and[axes=(0,) out_sharding=None] s\n  i:i32[] = convert_element_type[new_dtype=int32 weak_type=False] t"
        if (kind == "known") print "  j:i32[] = add 0:i32[] 1:i32[]"
        printf "  b:%s%s = %s\n  d:%s%s = %s\n in (d,) } in\n", T, last, eqn(f, g, "a", 0), T, last, eqn(f, g, "b", 1)
    }
    if (kind == "key") printf "{ lambda ; c:key<fry>[] a:%s. let b:%s = jit[name=f jaxpr=f%d] c a in (b,) }\n", T, T, n
    else if (kind ~ /^reference/) printf "{ lambda ; a:%s. let c:Ref{%s} = new_ref a\n b:%s = jit[name=f jaxpr=f%d] c a in (b,) }\n", T, T, T, n
    else printf "{ lambda ; a:%s. let b:%s = jit[name=f jaxpr=f%d] a in (b,) }\n", T, T, n
}
