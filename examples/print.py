"""Prints the programs of this folder, with their constants, inputs and what JAX computes (jax 0.10.2). Nobody needs it to build."""
import jax, jax.numpy as jnp, numpy as np


def save(name, f, *inputs):
    j = jax.make_jaxpr(f)(*inputs)
    open(f"{name}.jaxpr", "w").write(str(j) + "\n")
    if j.consts:
        np.savez_compressed(f"{name}.consts.npz", **{f"const{i}": np.asarray(c) for i, c in enumerate(j.consts)})
    np.savez_compressed(f"{name}.in.npz", **{f"in{i}": np.asarray(x) for i, x in enumerate(inputs)})
    outputs = jax.tree.leaves(jax.jit(f)(*inputs))
    np.savez_compressed(f"{name}.out.npz", **{f"out{i}": np.asarray(x) for i, x in enumerate(outputs)})


def spirals(n):
    """n points of three spiral arms in the plane, and the arm of each, one-hot. demo.c makes the same ones."""
    k = np.arange(n)
    r, arm = 0.1 + 0.9 * k / n, k % 3
    angle = 4 * r + 2 * np.pi / 3 * arm
    return np.stack([r * np.cos(angle), r * np.sin(angle)], 1).astype("f4"), np.eye(3, dtype="f4")[arm]


def logits(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    z = logits(params, x)
    return -jnp.mean(jnp.sum(y * (z - jax.nn.logsumexp(z, axis=1, keepdims=True)), axis=1))


def train_step(params, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def moons(w0, b0, w1, b1, x, y):
    """The loss of a small network; jaxcc differentiates it."""
    z = jnp.tanh(x @ w0 + b0) @ w1 + b1
    return -jnp.mean(jnp.sum(y * (z - jax.nn.logsumexp(z, axis=1, keepdims=True)), axis=1))


def two_moons(n):
    """n points on two half circles that reach into each other, and the circle of each, one-hot."""
    k, angle = np.arange(n), 2 * np.pi * np.arange(n) / n
    moon = (k >= n // 2).astype("i4")
    x = np.where(moon[:, None], [[1, 0.5]] - np.stack([np.cos(angle - np.pi), np.sin(angle - np.pi)], 1), np.stack([np.cos(angle), np.sin(angle)], 1))
    return x.astype("f4"), np.eye(2, dtype="f4")[moon]


def attention(q, k, v):
    """Softmax attention of 4 heads over 64 positions, each sees those before it."""
    s = jnp.einsum("hqd,hkd->hqk", q, k) / np.sqrt(q.shape[-1])
    s = jnp.where(jnp.tril(jnp.ones(s.shape[1:], bool)), s, -jnp.inf)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(s, axis=-1), v)


def recurrence(h, xs, w, u):
    """A recurrent network: 256 steps of h = tanh(w h + u x); gives the last h and the norm of each."""

    def step(h, x):
        h = jnp.tanh(w @ h + u @ x)
        return h, jnp.sqrt(jnp.sum(h * h))

    return jax.lax.scan(step, h, xs)


def main():
    key = lambda i: jax.random.key(i)
    x, y = spirals(96)
    sizes = (2, 32, 32, 3)
    start = [(jax.random.normal(key(i), (m, n)) * np.sqrt(2 / m), jnp.zeros(n)) for i, (m, n) in enumerate(zip(sizes, sizes[1:]))]
    flat, tree = jax.tree.flatten(start)
    save("train", lambda *a: train_step(jax.tree.unflatten(tree, a[:6]), *a[6:]), *flat, x, y)
    params, step = start, jax.jit(train_step)
    for _ in range(3000):
        params, _ = step(params, x, y)
    params = jax.tree.map(np.asarray, params)
    save("classify", lambda x: jax.nn.softmax(logits(params, x)), x)
    x, y = two_moons(128)
    save("moons", moons, jax.random.normal(key(8), (2, 16)), jnp.zeros(16), jax.random.normal(key(9), (16, 2)) / 4, jnp.zeros(2), x, y)
    save("attention", attention, *(jax.random.normal(key(i), (4, 64, 16)) for i in range(3)))
    save("recurrence", recurrence, jnp.zeros(32), jax.random.normal(key(4), (256, 8)), *(jax.random.normal(key(5 + i), s) / 6 for i, s in enumerate(((32, 32), (32, 8)))))


main()
