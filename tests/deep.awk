# deep.awk -v shape=cond|scan|jit -v n=N: a program of so many nested ones, each with two equations of its own.
function depth(k) { return sprintf("%" 4 * k + 4 "s", "") }
function body(k,   p, in_, v) {
    p = depth(k)
    print p "{ lambda ; a" k ":f32[] b" k ":f32[4]. let"
    print p "  c" k ":f32[4] = mul b" k " 3.0:f32[]"
    print p "  d" k ":f32[4] = sub c" k " b" k
    if (k == n) { print p "in (a" k ", d" k ") }"; return }
    v = "  e" k ":f32[] f" k ":f32[4] = "
    if (shape == "jit") { print p v "jit[name=f" k " jaxpr="; body(k + 1); print p "  ] a" k " d" k }
    if (shape == "scan") { print p v "scan[length=2 num_carry=2 num_consts=0 reverse=False unroll=1 jaxpr="; body(k + 1); print p "  ] a" k " d" k }
    if (shape == "cond") {
        print p "  g" k ":bool[] = gt a" k " 0.5:f32[]"
        print p "  h" k ":i32[] = convert_element_type[new_dtype=int32 weak_type=False] g" k
        print p v "cond[branches=("
        body(k + 1)
        print p "  { lambda ; a:f32[] b:f32[4]. let c:f32[4] = neg b in (a, c) }"
        print p "  )] h" k " a" k " d" k
    }
    print p "in (e" k ", f" k ") }"
}
BEGIN { body(0) }
