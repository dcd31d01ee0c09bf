#!/usr/bin/env python3
"""rules.py PYTHON... : writes stdlib/rules/ with these Pythons, each of which has one version of JAX.

Each file is the derivative rule of one function of JAX as that version prints it, a jaxpr of primals and tangents whose
first equation is the custom_jvp_call with the body that the rule is for. Array extents are `n` for any number of leading
axes, other symbols for one axis. Bodies that differ between versions, element types and shapes are files of their own.
By hand, with the versions that a rule is to be known for: python3 tests/rules.py .venv-0.4.30/bin/python …"""
import os, re, subprocess, sys
import rules_others

HERE = os.path.dirname(os.path.abspath(__file__))
LARGE = ("hyp1f1", "hyp2f1", "zeta", "expn", "expi")  # texts of 10 to 60 KB
DTYPES = {"i32": "int32", "i64": "int64"}
LEAD, SECOND, THIRD = 7919, 6007, 5003  # extents that stand for n, m, k: primes that occur nowhere else; u is 1, 2 is 2

# Of square matrices with up to two leading axes: they gather along axes, where fit.c lets `n` be one axis only.
SQUARE = [("mm",), ("nmm",), ("nkmm",)]
LINALG = lambda linalg: [
    ("_det", linalg.det, "fc", [*SQUARE[:2], ("uu",), ("nuu",)]), ("_slogdet_lu", linalg.slogdet, "fc", SQUARE),
    ("_slogdet_small", linalg.slogdet, "fc", [("nuu",), ("n22",)]),
    ("_slogdet_qr", lambda x: linalg.slogdet(x, method="qr"), "f", SQUARE)]
LINALG_NAMES = ("_det", "_slogdet_lu", "_slogdet_small", "_slogdet_qr")

# name of the call, function of the arrays (or of Python), operands: f floats of the type tried, i integers; ranks:
# shapes in letters: "" a scalar
ELEMENTWISE1 = [("n",)]
PAIRS = [("n", "n"), ("n", ""), ("", "n")]


def functions(jax):
    import importlib
    jnp, nn, sp = jax.numpy, jax.nn, importlib.import_module("jax.scipy.special")
    src = lambda path: importlib.import_module("jax._src." + path)
    ufuncs = src("numpy.ufuncs")
    return rules_others.functions(jax) + [
        ("relu", lambda: nn.relu, "f", ELEMENTWISE1), ("relu6", lambda: nn.relu6, "f", ELEMENTWISE1),
        ("log1mexp", lambda: nn.log1mexp, "f", ELEMENTWISE1),
        ("_softmax", lambda: lambda x: nn.softmax(x, axis=-1), "f", [("nm",)]),
        ("_softmax", lambda: lambda x: nn.softmax(x, axis=-2), "f", [("nmk",)]),
        ("logaddexp", lambda: jnp.logaddexp, "ff", [("n", "n")]), ("logaddexp", lambda: nn.softplus, "f", ELEMENTWISE1),
        ("logaddexp", lambda: lambda x: jnp.logaddexp(0.0, x), "f", ELEMENTWISE1),
        ("logaddexp", lambda: src("lax.other").logaddexp, "ff", PAIRS), ("logaddexp2", lambda: src("lax.other").logaddexp2, "ff", PAIRS),
        ("logaddexp2", lambda: jnp.logaddexp2, "ff", [("n", "n")]),
        ("xlogy", lambda: sp.xlogy, "ff", PAIRS), ("xlog1py", lambda: sp.xlog1py, "ff", PAIRS),
        ("_xlogx", lambda: sp.entr, "f", ELEMENTWISE1),
        ("logit", lambda: sp.logit, "f", ELEMENTWISE1), ("log_ndtr", lambda: sp.log_ndtr, "f", ELEMENTWISE1),
        ("_i0", lambda: jnp.i0, "f", ELEMENTWISE1), ("_frexp", lambda: lambda x: jnp.frexp(x)[0], "f", ELEMENTWISE1),
        ("_dawsn", lambda: sp.dawsn, "f", ELEMENTWISE1), ("_erfcx", lambda: sp.erfcx, "f", ELEMENTWISE1),
        ("_wofz", lambda: sp.wofz, "c", ELEMENTWISE1),
        ("fresnel", lambda: sp.fresnel, "f", ELEMENTWISE1), ("expi", lambda: sp.expi, "f", [("n",), ("",)]),
        ("expn", lambda: sp.expn, "if", [("", ""), ("", "n"), ("n", "n")]),
        *[("expn", lambda k=k: lambda x: sp.expn(k, x), "f", [("",), ("n",)]) for k in (1, 2, 3)], ("sici", lambda: sp.sici, "f", ELEMENTWISE1),
        ("_owens_t_impl", lambda: sp.owens_t, "ff", PAIRS),
        ("poch", lambda: sp.poch, "ff", PAIRS), ("zeta", lambda: lambda x: sp.zeta(x, 1.0), "f", ELEMENTWISE1),
        ("zeta", lambda: sp.zeta, "ff", PAIRS),
        ("hyp1f1", lambda: sp.hyp1f1, "fff", [("n",) * 3, ("", "", "n"), ("",) * 3]),
        ("hyp2f1", lambda: sp.hyp2f1, "ffff", [("n",) * 4, ("", "", "", "n")]),
        ("logaddexp", lambda: jnp.logaddexp, "cc", [("n", "n")]),
        *[(name, lambda f=f: f, kind, shapes) for name, f, kinds, shapes in LINALG(jnp.linalg) for kind in kinds],
        *[("_sinc_maclaurin", lambda k=k: lambda x: ufuncs._sinc_maclaurin(k, x), "f", ELEMENTWISE1) for k in range(8)],
    ]


def worker():
    """Prints what this JAX has, as Python literals: (name, text) of each rule."""
    import jax, warnings
    import numpy as np
    from jax._src import core
    warnings.simplefilter("ignore")
    jax.config.update("jax_softmax_custom_jvp", True)
    dims = {"n": LEAD, "m": SECOND, "k": THIRD, "u": 1, "2": 2}

    def find(jaxpr, name, values):
        """The call of that name, and the arrays that its operands are where they are constants."""
        for e in jaxpr.eqns:
            given = [values.get(v) if type(v).__name__ != "Literal" else None for v in e.invars]
            if e.primitive.name == "custom_jvp_call" and call_name(e) == name:
                return e, given
            for p in e.params.values() if e.primitive.name != "custom_jvp_call" else []:
                inner = getattr(p, "jaxpr", p)
                if hasattr(inner, "eqns"):
                    known = dict(zip(inner.constvars, getattr(p, "consts", [])))
                    if len(inner.invars) == len(given):
                        known.update((v, x) for v, x in zip(inner.invars, given) if x is not None)
                    found = find(inner, name, known)
                    if found:
                        return found

    def call_name(e):
        if "name" in e.params:
            return e.params["name"]
        if "jvp_jaxpr_fun" in e.params:
            return re.search(r"name=(\w+)", str(e))[1]
        body = e.params["call_jaxpr"].jaxpr.eqns  # JAX 0.4 prints no name: that of the only function called inside
        return body[0].params.get("name") if len(body) == 1 else None

    def rule(e, values):
        """The rule's jaxpr of the call's operands (after its constants) and their tangents; the call itself first."""
        n = e.params["num_consts"]
        avals = [v.aval for v in e.invars]
        given = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]

        def bind(*xs):
            how = e.primitive.get_bind_params(e.params)  # before 0.8: functions, parameters
            return e.primitive.bind(*xs, **how) if isinstance(how, dict) else e.primitive.bind(*how[0], *xs, **how[1])
        floats = [i for i in range(n, len(avals)) if np.issubdtype(avals[i].dtype, np.inexact) or avals[i].dtype.name == "bfloat16"]

        def both(*args):
            xs, ts = list(args[:len(avals)]), args[len(avals):]
            first = bind(*xs)  # the pattern
            def along(*fs):
                for i, x in zip(floats, fs):
                    xs[i] = x
                return bind(*xs)
            y, t = jax.jvp(along, [xs[i] for i in floats], list(ts))
            t = [d for d in t if d.dtype != jax.dtypes.float0]
            return [*first, *y, *t]
        j = jax.make_jaxpr(both)(*given, *[given[i] for i in floats])
        same, own = {}, []  # the rule's constants that are operands of the call; others
        for v, x in zip(j.jaxpr.constvars, j.consts):
            if x.dtype == jax.dtypes.float0:
                continue
            if isinstance(x, jax.core.Tracer):  # an argument that the function closes over
                equal = [i for i in range(n) if avals[i].shape == x.shape and avals[i].dtype == x.dtype]
            else:
                equal = [i for i in range(n) if np.shape(values[i]) == np.shape(x) and avals[i].dtype == x.dtype and np.all(np.asarray(values[i]) == np.asarray(x))]
            if equal:
                same[v] = j.jaxpr.invars[equal[0]]
            else:
                own.append((v, np.asarray(x)))
        text = str(without_second(core.Jaxpr([v for v, _ in own], j.jaxpr.invars, j.jaxpr.outvars, j.jaxpr.eqns, j.jaxpr.effects), len(e.outvars), same, n))
        return with_arrays(text, [x for _, x in own])

    def same_function(e, first, constants):
        """Of the same operands: JAX may print another body, which takes other types of its constants."""
        bodies = [str(call.params["call_jaxpr"]) for call in (e, first)]
        return call_name(e) == call_name(first) and (bodies[0] == bodies[1] or constants > 0)

    def without_second(j, nout, same, constants):
        """The results of the call itself where the rule computes them by the same call."""
        first, rest = j.eqns[0], []
        read = lambda v: same.get(v, v) if type(v).__name__ != "Literal" else v
        for e in j.eqns[1:]:
            e = e.replace(invars=[read(v) for v in e.invars])
            if e.primitive is first.primitive and all(a is b for a, b in zip(e.invars, first.invars)) and same_function(e, first, constants):
                same.update(zip(e.outvars, first.outvars))
            else:
                rest.append(e)
        out = [read(v) for v in j.outvars[nout:]]
        return core.Jaxpr(j.constvars, j.invars, out, [first, *rest], j.effects)

    types = [("float64", True), ("float32", False), ("float32", True), ("bfloat16", False), ("float16", False),
             ("bfloat16", True), ("float16", True)]
    for name, make, kinds, shapes in functions(jax):
        for dtype, x64 in types:
            for shape in shapes:
                rare = x64 or shape[-1] != "n" or name == "zeta"  # zeta's bodies are those of f32
                if name in LARGE and dtype.endswith("16") and rare:
                    continue
                if name in LINALG_NAMES and dtype.endswith("16"):
                    continue
                if "c" in kinds and dtype not in ("float32", "float64"):
                    continue
                jax.config.update("jax_enable_x64", x64)
                kind = {"f": dtype, "i": "int64" if x64 else "int32", "c": "complex128" if dtype == "float64" else "complex64"}
                try:
                    f = make()
                    args = [jax.ShapeDtypeStruct(tuple(dims[c] for c in s), jax.numpy.dtype(kind[k])) for s, k in zip(shape, kinds)]
                    j = jax.make_jaxpr(f)(*args)
                    found = find(j.jaxpr, name, dict(zip(j.jaxpr.constvars, j.consts)))
                    if not found:
                        raise ValueError("no such call")
                    print(repr((name, (dtype, x64), shape, rule(*found))))
                except Exception as why:
                    print(f"{name} {dtype} {shape}: {type(why).__name__} {str(why)[:100]}", file=sys.stderr)


def with_arrays(text, arrays):
    """Constants of a printed jaxpr as equations."""
    if not arrays:
        return text
    start = max(text.rfind("\n{ lambda"), 0)  # after hoisted jaxprs
    head, body = text[start:].split(" let\n", 1)
    consts, inputs = head.split(";", 1)
    names = re.findall(r"(\w+):(\w+)\[([\d,]+)\]", consts)
    assert len(names) == len(arrays), head
    lines = []
    for (name, dtype, shape), x in zip(names, arrays):
        for i, v in enumerate(x.flatten()):
            lines.append(f"    {name}_{i}:{dtype}[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] {float(v)!r}:{dtype}[]")
        lines.append(f"    {name}_all:{dtype}[{x.size}] = concatenate[dimension=0] " + " ".join(f"{name}_{i}" for i in range(x.size)))
        lines.append(f"    {name}:{dtype}[{shape}] = reshape[dimensions=None new_sizes=({shape},)] {name}_all")
    return text[:start] + "\n{ lambda ;" + inputs + " let\n" + "".join(line + "\n" for line in lines) + body


def odd_orders(texts):
    """_sinc_maclaurin's bodies for odd orders are all 0: a call of order 3 or more has its rule with it. `texts`: by
    order; those for calls as JAX prints them."""
    for k in range(len(texts) - 2, 1, -2):  # the rule for order k - 1 calls that of order k
        head, tail = texts[k - 1].rsplit("jvp=_sinc_maclaurin_jvp", 1)
        texts[k - 1] = f"{head}jvp=_sinc_maclaurin_jvp\njvp_jaxpr={texts[k]}{tail}"
    return [texts[0], texts[1], *texts[2:-1:2]]


def symbols(text):
    """Extents as symbols; where they are operands, values computed from them."""
    for extent, symbol in ((LEAD, "n"), (SECOND, "m"), (SECOND - 1, "m - 1"), (SECOND - 2, "m - 2"), (THIRD, "k")):
        lines = []
        for line in text.split("\n"):
            for dtype in re.findall(rf"\b{extent}:(i\d+)\[\]", line):
                indent, name = line[:len(line) - len(line.lstrip())], f"extent_{symbol.replace(' - ', '_')}_{len(lines)}"
                lines += [f"{indent}{name}_wide:i64[] = dim_as_value[dim={symbol}]",
                          f"{indent}{name}:{dtype}[] = convert_element_type[new_dtype={DTYPES[dtype]} weak_type=False] {name}_wide"]
                line = line.replace(f"{extent}:{dtype}[]", name)
            lines.append(line)
        text = re.sub(rf"\b{extent}\b", symbol, "\n".join(lines))
    return re.sub(r"\[([^]]*)\] = tile\[reps=\([^)]*\)\]", stretched, text)


def stretched(tile):
    """Of axes of extent 1, which may have a symbolic one; tile takes numbers."""
    axes = tile[1].split(",")
    axes_list = ", ".join(map(str, range(len(axes))))
    return f"[{tile[1]}] = broadcast_in_dim[broadcast_dimensions=({axes_list}) shape=({', '.join(axes)}) sharding=None]"


def main():
    seen, count = {}, {}
    out = os.path.join(HERE, "..", "stdlib", "rules")
    os.makedirs(out, exist_ok=True)
    for old in os.listdir(out):
        if old.endswith(".jaxpr"):
            os.remove(os.path.join(out, old))
    for python in sys.argv[1:]:
        p = subprocess.run([python, __file__, "--worker"], capture_output=True, text=True)
        sys.stderr.write(p.stderr)
        rules = [eval(line) for line in p.stdout.splitlines()]
        sincs = {}
        for name, (dtype, x64), shape, text in rules:
            if name == "_sinc_maclaurin":
                sincs.setdefault((x64, dtype), []).append(text)
        rules = [r for r in rules if r[0] != "_sinc_maclaurin"]
        rules += [("_sinc_maclaurin", dtype, "n", t) for (_, dtype), ts in sincs.items() for t in odd_orders(ts)]
        for name, dtype, shape, text in rules:
            if python is not sys.argv[1] and name in LARGE:  # of one version
                continue
            text = re.sub(r"jvp_jaxpr_thunk=<.* at 0x\w+>\s*", "", symbols(text))
            key = re.sub(r"\b(float|complex)(16|32|64|128)\b|bfloat16|\b(f16|f32|f64|bf16|c64|c128)\b", "T", text)
            key = re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda m: "%.3g" % float(m[0]), key)
            if key in seen:
                continue
            seen[key] = 1
            count[name] = count.get(name, 0) + 1
            file = f"{name}_{count[name]}.jaxpr"
            with open(os.path.join(out, file), "w") as f:
                f.write(text + "\n")
    print(count)


if __name__ == "__main__":
    worker() if sys.argv[1:] == ["--worker"] else main()
