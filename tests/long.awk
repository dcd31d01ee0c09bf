# long.awk -v shape=SHAPE -v n=N: programs of about N equations for --vjp, which sum what they compute.
#   mix    elementwise functions, one after the other       dots    products of matrices and transposes
#   slices elementwise functions of slices of one array     reads   one array, sliced N / 2 times
#   fan    one value used N / 2 times                        parts   many short arrays, joined
function out(name, type, text) { printf "    %s:%s = %s\n", name, type, text }
function total(name, type, axes) { out("total", "f32[]", "reduce_sum[axes=" axes "] " name); print "  in (total,) }" }
BEGIN {
    print "{ lambda ; x:f32[" (shape == "dots" ? "8,8" : shape == "slices" || shape == "reads" || shape == "parts" ? n + 8 : "8") "] s:f32[]. let"
    if (shape == "mix") {
        split("sin mul add tanh sub cos div max", f, " ")
        last = "x"; other = "x"
        for (i = 0; i < n; i++) {
            p = f[i % 8 + 1]
            out("a" i, "f32[8]", p (p ~ /sin|cos|tanh/ ? " " last : " " last " " other))
            other = last; last = "a" i
        }
        total(last, "f32[8]", "(0,)")
    } else if (shape == "dots") {
        last = "x"
        for (i = 0; i < n; i++) {
            if (i % 3 == 1) out("a" i, "f32[8,8]", "transpose[permutation=(1, 0)] " last)
            else if (i % 3) out("a" i, "f32[8,8]", "mul " last " s")
            else out("a" i, "f32[8,8]", "dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32] " last " x")
            last = "a" i
        }
        total(last, "f32[8,8]", "(0, 1)")
    } else if (shape == "fan") {
        last = "s"
        for (i = 0; i < n / 2; i++) {
            out("a" i, "f32[8]", "mul x " i % 7 ".5:f32[]")
            out("b" i, "f32[8]", "add a" i " " (i ? "b" i - 1 : "x"))
        }
        total("b" i - 1, "f32[8]", "(0,)")
    } else {
        step = shape == "parts" ? 2 : 1
        for (i = 0; i < n / 2; i++) {
            out("a" i, "f32[2]", "slice[limit_indices=(" i * step + 2 ",) start_indices=(" i * step ",) strides=None] x")
            out("b" i, "f32[2]", (shape == "slices" ? "mul a" : "add a") i " " (i ? "b" i - 1 : "a0"))
        }
        total("b" i - 1, "f32[2]", "(0,)")
    }
}
