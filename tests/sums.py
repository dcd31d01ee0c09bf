#!/usr/bin/env python3
"""sums.py JAXCC [LOG2 [NAME,...]]: long f32 reductions of 2^LOG2 uniform values (25), written by jax, compiled and called: the
largest relative error against numpy's float64, and milliseconds of a call. Needs jax; 2^28 takes 6 GB."""
import ctypes, os, subprocess, sys, tempfile, time
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np
from jax import lax

BOUND = 5e-7
log2 = int(sys.argv[2]) if len(sys.argv) > 2 else 25
n = 1 << log2
rows, cols = 1 << log2 // 2, 1 << log2 - log2 // 2
edge = 1 << log2 // 3
cube = (edge, n // edge // edge, edge)
f8 = np.float64
CASES = {  # name: function, shapes, numpy's
    "sum": (jnp.sum, [(n,)], lambda x: np.sum(x, dtype=f8)),
    "mean": (jnp.mean, [(n,)], lambda x: np.mean(x, dtype=f8)),
    "var": (jnp.var, [(n,)], lambda x: np.var(x, dtype=f8)),
    "dot": (jnp.dot, [(n,), (n,)], lambda x, y: np.sum(np.multiply(x, y, dtype=f8))),
    "cumsum": (jnp.cumsum, [(n,)], lambda x: np.cumsum(x, dtype=f8)),
    "sum_of_squares": (lambda x: jnp.sum(x * x), [(n,)], lambda x: np.sum(np.square(x, dtype=f8))),
    "sum_strided": (lambda x: jnp.sum(x[::3]), [(n,)], lambda x: np.sum(x[::3], dtype=f8)),
    "axis0": (lambda x: jnp.sum(x, 0), [(rows, cols)], lambda x: np.sum(x, 0, dtype=f8)),
    "axis1": (lambda x: jnp.sum(x, 1), [(rows, cols)], lambda x: np.sum(x, 1, dtype=f8)),
    "axis0_narrow": (lambda x: jnp.sum(x, 0), [(n // 4, 4)], lambda x: np.sum(x, 0, dtype=f8)),
    "axis0_strided": (lambda x: jnp.sum(x[::2], 0), [(rows, cols)], lambda x: np.sum(x[::2], 0, dtype=f8)),
    "axis1_strided": (lambda x: jnp.sum(x[:, ::2], 1), [(rows, cols)], lambda x: np.sum(x[:, ::2], 1, dtype=f8)),
    "middle": (lambda x: jnp.sum(x, 1), [cube], lambda x: np.sum(x, 1, dtype=f8)),
    "outer": (lambda x: jnp.sum(x, (0, 2)), [cube], lambda x: np.sum(x, (0, 2), dtype=f8)),
    "mean_axis0": (lambda x: jnp.mean(x, 0), [(rows, cols)], lambda x: np.mean(x, 0, dtype=f8)),
    "var_axis0": (lambda x: jnp.var(x, 0), [(rows, cols)], lambda x: np.var(x, 0, dtype=f8)),
    "var_axis1": (lambda x: jnp.var(x, 1), [(rows, cols)], lambda x: np.var(x, 1, dtype=f8)),
    "cumsum_axis0": (lambda x: jnp.cumsum(x, 0), [(rows, cols)], lambda x: np.cumsum(x, 0, dtype=f8)),
    "cumsum_axis1": (lambda x: jnp.cumsum(x, 1), [(rows, cols)], lambda x: np.cumsum(x, 1, dtype=f8)),
    "cumsum_reverse": (lambda x: lax.cumsum(x, reverse=True), [(n,)], lambda x: np.cumsum(x[::-1], dtype=f8)[::-1]),
    "logsumexp": (jax.nn.logsumexp, [(n,)], lambda x: np.log(np.sum(np.exp(x, dtype=f8)))),
    "matvec": (jnp.dot, [(8, n // 8), (n // 8,)], lambda a, x: a.astype(f8) @ x),
    "vecmat": (jnp.dot, [(n // 8,), (n // 8, 8)], lambda x, a: x.astype(f8) @ a),
    "gemm": (jnp.dot, [(16, n // 16), (n // 16, 16)], lambda a, b: a.astype(f8) @ b),
}


def measure(name, folder):
    f, shapes, reference = CASES[name]
    draw = np.random.default_rng(1)
    x = [draw.random(s, dtype=np.float32) for s in shapes]
    y = np.empty((out := jax.eval_shape(f, *x)).shape, out.dtype)
    path = f"{folder}/p_{name}"
    open(path + ".jaxpr", "w").write(str(jax.make_jaxpr(f)(*x)))
    subprocess.run([sys.argv[1], path + ".jaxpr", "-o", path + ".so"], check=True)
    call = getattr(ctypes.CDLL(path + ".so"), "p_" + name)
    arrays = [ctypes.c_void_p(a.ctypes.data) for a in x + [y]]
    took = []
    for _ in range(3):
        start = time.perf_counter()
        assert call(*arrays) == 0
        took.append(time.perf_counter() - start)
    z = reference(*x)
    return float(np.max(np.abs((y - z) / np.where(z == 0, 1, z)))), 1e3 * min(took)


passed = failed = 0
with tempfile.TemporaryDirectory() as folder:
    for name in sys.argv[3].split(",") if len(sys.argv) > 3 else CASES:
        error, ms = measure(name, folder)
        passed, failed = passed + (error <= BOUND), failed + (error > BOUND)
        print(f"{name:16} {error:.1e} {ms:10.2f} ms", flush=True)
print(f"sums: {passed} passed, {failed} failed")
