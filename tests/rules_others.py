"""Functions of libraries on top of JAX with rules of their own, for rules.py: their names, what they compute, as those
libraries write it, so that their bodies print alike, and their derivatives. These libraries are not asked."""


def functions(jax):
    """(name, function that makes it, operands, shapes) as in rules.py."""
    jnp, lax = jax.numpy, jax.lax
    highest = lax.Precision.HIGHEST

    def with_rule(name, f, rule, **how):
        f.__name__, rule.__name__ = name, name + "_jvp"
        g = jax.custom_jvp(f)
        g.defjvp(lambda x, t: (g(*x), rule(g(*x), x, t)), **how)
        g.jvp.__name__ = rule.__name__
        return g

    # lineax, optimistix, diffrax: the norm of several arrays; derivative 0 where it is 0 or infinite.
    def dot(xs, ys):
        parts = [jnp.dot(jnp.conj(x).reshape(-1), jnp.reshape(y, -1), precision=highest) for x, y in zip(xs, ys)]
        total = parts[0]
        for part in parts[1:]:
            total = jnp.add(total, part)
        return total.real

    def norm(*xs):
        if sum(x.size for x in xs) == 1:
            return jnp.abs(jnp.reshape(xs[0], ()))
        return jnp.sqrt(dot(xs, xs))

    def norm_tangent(y, xs, ts):
        away = (y == 0) | jnp.isinf(y)
        scale = jnp.where(away, 1, y)
        return jnp.where(away, 0, dot([x / scale for x in xs], ts))
    two_norm = lambda: with_rule("_two_norm", norm, norm_tangent)

    # lineax
    def zero_at_zero():
        return with_rule("_zero_grad_at_zero", lambda x: x, lambda y, x, t: jnp.where(y == 0, 0, t[0]))

    # lineax, optimistix: to an array of a type
    def as_type(to):
        convert = lambda x: jnp.asarray(x, dtype=to)
        return with_rule("_asarray", convert, lambda y, x, t: convert(t[0]))

    # optax, jaxopt: the nearest point whose coordinates are a distribution
    def project(v):
        down = jnp.sort(v)[::-1]
        sums = jnp.cumsum(down)
        place = jnp.arange(v.shape[0]) + 1
        n = jnp.count_nonzero(1 / place + (down - sums / place) > 0)
        return jax.nn.relu(1 / n + (v - sums[n - 1] / n))

    def project_tangent(y, v, t):
        support = y > 0
        return support * t[0] - (jnp.dot(support, t[0]) / jnp.count_nonzero(support)) * support
    simplex = lambda: with_rule("_projection_unit_simplex", project, project_tangent)

    # distrax
    def multiply(x, y):
        return jnp.where(y == 0, jnp.zeros((), dtype=jnp.result_type(x, y)), x * y)

    def power(x, y):
        return jnp.where(y == 0, jnp.ones((), dtype=jnp.result_type(x, y)), jnp.power(x, y))

    def multiply_no_nan():
        return with_rule("multiply_no_nan", multiply, lambda r, x, t: t[0] * x[1] + t[1] * x[0])

    def power_no_nan():
        g = with_rule("power_no_nan", power, lambda r, x, t: x[1] * g(x[0], x[1] - 1) * t[0] + r * jnp.log(x[0]) * t[1])
        return g

    # optax
    def weighted(x, w):
        y = jax.nn.log_softmax(x, axis=-1)
        return jnp.where(w != 0.0, w * y, jnp.zeros_like(y))

    def weighted_tangent(r, xs, ts):
        (x, w), (tx, tw) = xs, ts
        spread = jnp.sum(tx * jax.nn.softmax(x, axis=-1), axis=-1, keepdims=True)
        return w * tx - w * spread + tw * jax.nn.log_softmax(x, axis=-1)
    weighted_logsoftmax = lambda: with_rule("weighted_logsoftmax", weighted, weighted_tangent)

    # equinox, diffrax: steps to the neighbouring number, which a tangent passes
    def step(name, to):
        def neighbour(x):
            least = jnp.finfo(x.dtype).tiny
            return jnp.where(x == 0, least if to > 0 else -least, jnp.nextafter(x, to))
        return lambda: with_rule(name, neighbour, lambda y, x, t: t[0])

    batch = lambda f: lambda: jax.vmap(f())
    one, pairs = [("n",)], [("n", "n"), ("n", ""), ("", "n")]
    return [
        ("_two_norm", two_norm, "f", [("",), ("u",), ("k",), ("km",)]), ("_two_norm", two_norm, "c", [("k",)]),
        ("_two_norm", batch(two_norm), "f", [("nk",)]), ("_two_norm", two_norm, "ff", [("k", "m"), ("", ""), ("k", "")]),
        ("_zero_grad_at_zero", zero_at_zero, "f", one),
        *[("_asarray", lambda to=to: as_type(to), "f", one) for to in ("float64", "float32")],
        ("_projection_unit_simplex", simplex, "f", [("k",)]), ("_projection_unit_simplex", batch(simplex), "f", [("nk",)]),
        ("multiply_no_nan", multiply_no_nan, "ff", pairs), ("power_no_nan", power_no_nan, "ff", pairs),
        ("weighted_logsoftmax", weighted_logsoftmax, "ff", [("nm", "nm"), ("m", "m")]),
        ("prevbefore", step("prevbefore", float("-inf")), "f", one), ("nextafter", step("nextafter", float("inf")), "f", one),
    ]
