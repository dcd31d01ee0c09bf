"""save.py BUILD [FOLDER]: constants of every kind of program, saved by the README's save(), compiled, run and compared with JAX. The
files stay in FOLDER. Prints what fails, then how much passed. Needs jax, any version since 0.4.20."""
import pathlib, subprocess, sys, tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax import jit, lax
from jax.experimental.ode import odeint

root = pathlib.Path(__file__).resolve().parent.parent
BLOCK = "<!-- save.py -->\n```python\n"
scope = {}
exec(root.joinpath("README.md").read_text().split(BLOCK)[1].split("```")[0], scope)

random = np.random.RandomState(0)
host = random.standard_normal((4, 4)).astype(np.float32)  # numpy's
wide = random.standard_normal(4)  # float64, which JAX narrows
w = jnp.asarray(random.standard_normal((4, 4)).astype(np.float32))
v = w[0] + 1
x = w[:1] * 0.5
key, old_key, rbg = jax.random.key(3), jax.random.PRNGKey(7), jax.random.key(1, impl="rbg")
keys = jax.random.split(key, 4)


@jit
def inner(x):
    return jnp.tanh(x @ w) + v


@jit
def outer(x):
    return inner(x) + inner(2 * x) @ host


@jax.custom_jvp
def ruled(x):
    return jnp.sin(x) @ w


ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0] @ host))


@jax.custom_vjp
def ruled_back(x):
    return jnp.sin(x) @ w


ruled_back.defvjp(lambda x: (ruled_back(x), x), lambda x, ct: (ct @ host * x,))


@jit
def scaled(y):
    return y * v


def grad(f):
    return jax.grad(lambda x: jnp.sum(f(x)))


class Dense:
    def __init__(self):
        self.w, self.b = jnp.asarray(random.standard_normal((4, 4)).astype(np.float32)), np.ones(4, np.float32)

    def __call__(self, x):
        return jax.nn.relu(x @ self.w + self.b)


layers = [Dense() for _ in range(4)]


def network(x):
    for layer in layers:
        x = jit(layer.__call__)(x)
    return x


def narrow(x):
    weights = [c.astype(t).astype(jnp.float32) for c, t in [(w, jnp.bfloat16), (v, jnp.float16), (v, jnp.float8_e5m2)]]
    return x @ weights[0] * weights[1] + weights[2]


constants = [w.astype(jnp.bfloat16), v.astype(jnp.float16), v.astype(jnp.float8_e5m2), jnp.asarray([1, -2, 3, -8], jnp.int4), np.array([True, False] * 2), w[1] + 2j]
PROGRAMS = {
    "none": lambda x: x + 1,
    "own": lambda x: x @ w + host[0],
    "own and nested": lambda x: jit(lambda y: y @ w + host[0])(x) @ host + v,
    "twice": lambda x: inner(inner(x)) + outer(x) + outer(3 * x) @ w,
    "vmap": lambda x: jax.vmap(outer)(jnp.stack([x, x + 1])),
    "grad": grad(outer),
    "jvp": lambda x: jax.jvp(outer, (x,), (x + 1,)),
    "hessian": jax.hessian(lambda x: jnp.sum(outer(x))),
    "scan": jit(lambda x: lax.scan(lambda c, a: (jnp.tanh(c @ w) + a, c @ host), x, host)),
    "while": jit(lambda x: lax.while_loop(lambda c: jnp.sum(c * v) < 9, lambda c: jnp.abs(c @ w) + 1, x)),
    "fori_loop": jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c @ w + v[i], x)),
    "cond": jit(lambda x: lax.cond(x[0, 0] > 0, lambda y: y @ w, lambda y: y @ host + v, x)),
    "switch": jit(lambda x: lax.switch(jnp.int32(x[0, 0] * 0) + 1, [lambda y: y @ w, lambda y: y * v, lambda y: y + host[0]], x)),
    "custom_jvp": jit(lambda x: ruled(x) + grad(ruled)(x)),
    "custom_vjp": jit(lambda x: ruled_back(x) + grad(ruled_back)(x)),
    "checkpoint": grad(jax.checkpoint(lambda x: jnp.sin(x @ w) @ host)),
    "custom_root": lambda x: lax.custom_root(
        lambda y: y - 0.1 * jnp.tanh(y @ w) - x, x, lambda f, y: lax.fori_loop(0, 9, lambda i, y: y - f(y), y), lambda g, y: y / g(jnp.ones_like(y))
    ),
    "linear_solve": lambda x: lax.custom_linear_solve(lambda y: scaled(y) + scaled(2 * y), x[0], lambda f, b: b / (3 * v), symmetric=True),
    "odeint": lambda x: odeint(lambda y, t: -(y @ w @ w.T), x, jnp.linspace(0.0, 1.0, 3)),
    "map": jit(lambda x: lax.map(lambda row: row * v, host)[:1] + x),
    "network": jit(network),
    "numpy": jit(lambda x: lax.add(x @ host, wide[None]) + np.arange(4) + np.float64(2) + np.asarray(1.5)),
    "scalars": jit(lambda x: x * jnp.float32(3) + v[1] + w.sum()),
    "element types": jit(lambda x: x + sum(jnp.real(c).astype(jnp.float32) for c in constants)),
    "keys": jit(lambda x: x + jax.random.normal(key, (4,)) + jax.random.uniform(keys[1], (4,)) + jax.random.key_data(rbg) % 7),
    "keys in an array": jit(lambda x: x + jax.vmap(jax.random.uniform)(keys)),
    "keys of words": jit(lambda x: x + jax.random.normal(old_key, (4,))),
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def failure(build, stem, f):
    """What is wrong with f(x); empty if nothing."""
    scope["save"](stem, jax.make_jaxpr(f)(x))
    np.savez(stem + ".in.npz", in0=x)
    np.savez(stem + ".out.npz", **{f"out{i}": y for i, y in enumerate(jax.tree_util.tree_leaves(f(x)))})
    before = tuple(map(int, jax.__version__.split(".")[:2])) < (0, 5)
    options = ["-Werror", "-O1", "--no-header", f"--threefry-partitionable={'false' if before else 'true'}"]
    return run(f"{build}/bin/jaxcc", *options, f"{stem}.jaxpr", f"--consts={stem}.consts.npz", "-o", f"{stem}.so") or run(
        f"{build}/bin/jaxcc-run", f"{stem}.so", f"{stem}.in.npz", "--expect", f"{stem}.out.npz", "--rtol", "1e-4", "--atol", "1e-4"
    )


def main(build, folder):
    failed = 0
    for name, f in PROGRAMS.items():
        wrong = failure(build, f"{folder}/{name.replace(' ', '-')}", f)
        failed += bool(wrong)
        if wrong:
            print(f"FAIL save: {name}\n{wrong}")
    print(f"save: {len(PROGRAMS) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else temporary))
