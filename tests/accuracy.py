#!/usr/bin/env python3
"""JAX's results for tests/accuracy.c: accuracy.py FUNCTION f32|f64, operands on standard input, results on standard output.

    build/release/tests/accuracy -s 256 -o 'python3 tests/accuracy.py' build/bin/jaxcc
"""
import sys
import numpy as np
import jax

CHUNK = 1 << 14
OPERANDS = {"pow": 2, "atan2": 2, "zeta": 2, "polygamma": 2, "igamma": 2, "igammac": 2, "igamma_grad_a": 2,
            "random_gamma_grad": 2, "random_gamma_grad_a": 2,
            "random_gamma_grad_x": 2, "regularized_incomplete_beta": 3}
NAMES = {"regularized_incomplete_beta": "betainc"}

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
name, kind = sys.argv[1:]


def function_named(name):
    if not name.startswith("random_gamma_grad_"):
        return getattr(jax.lax, NAMES.get(name, name))
    by_a = name.endswith("a")  # the derivative of random_gamma_grad by its first operand
    return lambda a, x: jax.jvp(jax.lax.random_gamma_grad, [a, x], [0 * a + by_a, 0 * x + (not by_a)])[1]


function = jax.jit(function_named(name))
dtype = np.dtype(np.float64 if kind == "f64" else np.float32)
while True:
    operands = [sys.stdin.buffer.read(CHUNK * dtype.itemsize) for _ in range(OPERANDS.get(name, 1))]
    if len(operands[-1]) < CHUNK * dtype.itemsize:
        break
    result = function(*(np.frombuffer(x, dtype) for x in operands))
    sys.stdout.buffer.write(np.asarray(result).tobytes())
    sys.stdout.buffer.flush()
