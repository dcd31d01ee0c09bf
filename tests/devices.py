"""devices.py BIN SEED N [FOLDER]: N random programs of collectives, compiled by BIN/jaxcc and compared with JAX on eight devices of the host: shard_map over
meshes of one to three axes, also within one another, over groups, in loops and branches that only some devices take; and their
derivatives, forward, reverse, and both. By hand; with a Python that has JAX. What differs, or does not compile, is left in FOLDER
(devices-found)."""
import collections, os, pathlib, shutil, subprocess, sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

MESHES = [(2,), (3,), (4,), (5,), (6,), (7,), (8,), (2, 2), (4, 2), (2, 4), (3, 2), (1, 4), (2, 2, 2), (1, 2, 3), (2, 1, 4), (2, 3, 1)]
DTYPES = [jnp.float32] * 4 + [jnp.int32, jnp.bfloat16, jnp.float16, jnp.int8, jnp.uint8, jnp.bool_, jnp.complex64]
FLAGS = [[], [], ["--jvp"], ["--vjp"], ["--vjp"], ["--vjp", "--jvp"]]
STEPS = ["psum", "pmax", "pmin", "pmean", "all_gather", "all_to_all", "psum_scatter", "ppermute", "axis_index", "cast", "multiply", "scan", "cond"]


def padded(v, axis, n):
    """The extent of the axis grows to a multiple of n."""
    return jnp.pad(v, [(0, -v.shape[a] % n if a == axis else 0) for a in range(v.ndim)])


def shaped(v, shape):
    return jnp.resize(v, shape)


def tame(v):
    return jnp.sin(jnp.real(v).astype(jnp.float32))


class Program:
    """What is random is drawn before anything is traced, which may happen more than once."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)
        self.flags = FLAGS[np.random.RandomState([seed, 1]).randint(len(FLAGS))]
        shape = self.pick(MESHES)
        self.size = dict(zip("xyz", shape))
        names = list(self.size)
        self.nested = len(names) > 1 and self.chance(0.4)
        order = self.shuffled(names)[: self.random.randint(1, len(names))] if self.nested else names
        self.outer = [a for a in names if a in order]
        self.inner = [a for a in names if a not in order]
        self.vma = not self.nested and self.chance(0.4)
        self.plan = self.draw(self.outer, self.random.randint(1, 6))
        self.within = self.draw(names, self.random.randint(2, 6)) if self.nested else []
        self.after = self.draw(self.outer, self.random.randint(0, 3)) if self.nested else []
        self.inner_out = P(tuple(self.shuffled(self.inner)))
        self.mesh = jax.make_mesh(shape, tuple(names), axis_types=(AxisType.Auto,) * len(names), devices=jax.devices()[: self.count(names)])
        n = self.count(names)
        self.args = [self.random.standard_normal((n * self.random.randint(1, 3), n)).astype(np.float32) for _ in range(2)]
        axes = self.shuffled(self.outer)
        cut = self.random.randint(0, len(axes) + 1)
        specs = [P(tuple(axes[:cut]) or None, tuple(axes[cut:]) or None), P(None, None)]
        self.function = jax.shard_map(
            self.body, mesh=self.mesh, in_specs=tuple(specs), out_specs=(P(tuple(self.shuffled(self.outer))),) * 3, check_vma=self.vma, axis_names=set(self.outer)
        )

    def chance(self, p):
        return bool(self.random.rand() < p)

    def pick(self, what):
        return what[self.random.randint(len(what))]

    def shuffled(self, what):
        return [what[i] for i in self.random.permutation(len(what))]

    def count(self, axes):
        return int(np.prod([self.size[a] for a in axes]))

    def groups(self, n, even):
        if self.vma or self.chance(0.6):
            return None
        places, each, groups = self.random.permutation(n).tolist(), self.pick([d for d in range(1, n + 1) if n % d == 0]), []
        while places:
            k = each if even else self.random.randint(1, len(places) + 1)
            groups.append(places[:k])
            places = places[k:]
        return groups

    def draw(self, over, n, depth=0, diverged=False):
        steps = []
        for _ in range(n):
            s = {"do": self.pick(STEPS), "v": self.random.randint(100), "w": self.random.randint(100), "tiled": self.chance(0.5)}
            s["axis"], s["to"], s["dtype"] = self.random.randint(2), self.random.randint(2), self.pick(DTYPES)
            s["over"] = tuple(self.shuffled(over)[: self.random.randint(1, len(over) + 1)])
            m = self.count(s["over"])
            s["groups"] = self.groups(m, s["do"] in ("all_gather", "all_to_all", "psum_scatter"))
            k = self.random.randint(0, m + 1)
            s["perm"] = list(zip(self.random.permutation(m)[:k].tolist(), self.random.permutation(m)[:k].tolist()))
            if s["do"] == "ppermute" and diverged:  # XLA's meets all devices, also those that are elsewhere
                continue
            if s["do"] == "scan":
                if depth > 1:
                    continue
                s["body"] = self.draw(over, 2, depth + 1, diverged)
            if s["do"] == "cond":
                if depth > 1 or len(over) < 2:
                    continue
                s["on"] = self.pick(over)
                rest = [a for a in over if a != s["on"]]
                s["branches"] = [self.draw(rest, 2, depth + 1, True) for _ in range(2)]
            steps.append(s)
        return steps

    def run(self, steps, values):
        values = list(values)
        for s in steps:
            v, w, over, groups = values[s["v"] % len(values)], values[s["w"] % len(values)], s["over"], s["groups"]
            v = v.reshape(1, -1) if v.ndim < 2 else v.reshape(-1)[:24].reshape(4, 6) if v.size > 400 or v.ndim > 2 else v
            members = len(groups[0]) if groups else self.count(over)
            do = s["do"]
            if do in ("psum", "pmax", "pmin", "pmean"):
                v = lax.stop_gradient(jnp.real(v)) if do in ("pmax", "pmin") else v.astype(jnp.int32) if v.dtype == bool else v
                v = getattr(lax, do)(v, over, axis_index_groups=groups)
            elif do == "all_gather":
                v = lax.all_gather(v, over, axis=s["axis"], tiled=s["tiled"], axis_index_groups=groups)
            elif do == "all_to_all":
                v = lax.all_to_all(padded(v, s["axis"], members), over, s["axis"], s["to"], tiled=True, axis_index_groups=groups)
            elif do == "psum_scatter":
                v = padded(v.astype(jnp.int32) if v.dtype == bool else v, s["axis"], members)
                tiled = s["tiled"] or v.shape[s["axis"]] != members
                v = lax.psum_scatter(v, over, scatter_dimension=s["axis"], tiled=tiled, axis_index_groups=groups)
            elif do == "ppermute":
                v = lax.ppermute(v, over, s["perm"])
            elif do == "axis_index":
                v = tame(v) + lax.axis_index(over)
            elif do == "cast":
                v = lax.complex(tame(v), tame(v + 1)) if s["dtype"] == jnp.complex64 else (tame(v) * 4).astype(s["dtype"])
            elif do == "multiply":
                v = tame(v) * shaped(tame(w), v.shape)
            elif do == "scan":
                step = lambda c, _: (shaped(tame(self.run(s["body"], [c, tame(w)])[-1]), c.shape) + c * 0.5, c.sum())
                v = lax.scan(step, tame(v)[:3, :3], None, length=3)[0]
            elif do == "cond":
                branch = lambda steps: lambda c: shaped(tame(self.run(steps, [c])[-1]), c.shape)
                v = lax.cond(lax.axis_index(s["on"]) > 0, *map(branch, s["branches"]), tame(v)[:3, :3])
            values.append(v)
        return values

    def last(self, values):
        values = [v.astype(jnp.int32) if v.dtype == bool else v.reshape(1) if v.ndim == 0 else v for v in values[-3:]]
        return tuple(values + values[:1] * (3 - len(values)))

    def body(self, *values):
        values = self.run(self.plan, values)
        if self.nested:
            n = self.count(self.inner)
            parts = [padded(v.reshape(v.shape[0], -1), 1, n) for v in values[-2:]]
            specs = (P(None, tuple(self.inner)),) * 2
            f = lambda *v: self.last(self.run(self.within, v))
            values = jax.shard_map(f, in_specs=specs, out_specs=(self.inner_out,) * 3, axis_names=set(self.inner), check_vma=False)(*parts)
            values = self.run(self.after, [v.reshape(v.shape[0], -1) for v in values])
        return self.last(values)


def is_float(a):
    return jnp.issubdtype(a.dtype, jnp.inexact)


def drawn(random, like):
    """Tangents or cotangents: of floats only."""
    part = lambda a: random.standard_normal(a.shape)
    return [(part(a) + 1j * part(a) if jnp.iscomplexobj(a) else part(a)).astype(a.dtype) for a in like if is_float(a)]


def flagged(f, flag, args, random):
    """The function that the flag makes, and its arguments."""
    floats = lambda values: [v for v in values if is_float(v)]
    n = len(args)
    if flag == "--jvp":  # of floats alone: the first n arguments, some of which may be integers

        def jvp(*values):
            tangents = iter(values[n:])
            zeros = [next(tangents) if is_float(a) else np.zeros(a.shape, jax.dtypes.float0) for a in args]
            results, along = jax.jvp(f, values[:n], tuple(zeros))
            return tuple(results) + tuple(t for t, r in zip(along, results) if is_float(r))

        return jvp, args + drawn(random, args)

    def vjp(*values):
        results, back = jax.vjp(f, *values[:n])
        cotangents = iter(values[n:])
        return tuple(results) + tuple(floats(back(tuple(next(cotangents) if is_float(r) else np.zeros(r.shape, jax.dtypes.float0) for r in results))))

    return vjp, args + drawn(random, jax.eval_shape(f, *args))


def save(path, name, arrays):
    np.savez(path, **{f"{name}{i}": a.view(np.uint16) if a.dtype == jnp.bfloat16 else a for i, a in enumerate(map(np.asarray, arrays))})


def one(seed, bin, at):
    try:
        program = Program(seed)
        text = jax.make_jaxpr(program.function)(*program.args)
        function, args = program.function, program.args
        for flag in program.flags:
            function, args = flagged(function, flag, args, program.random)
        want = jax.jit(function)(*args)
    except Exception as e:  # not all that is drawn is a program for JAX, or for XLA
        return "refused by JAX: " + type(e).__name__
    (at / "it.jaxpr").write_text(f"{text}\n")
    save(at / "it.in.npz", "in", list(text.consts) + args)
    save(at / "it.want.npz", "out", want)
    tolerance = "2e-2" if "f16" in str(text) else "2e-5"
    command = [f"{bin}/jaxcc", *program.flags, "-o", at / "it.so", at / "it.jaxpr"], [f"{bin}/jaxcc-run", at / "it.so", at / "it.in.npz", "--expect", at / "it.want.npz"]
    command[1].extend(["--rtol", tolerance, "--atol", tolerance])
    for what, args in zip(("does not compile", "differs"), command):
        try:
            done = subprocess.run(args, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(args, 1, "", "hangs")
        if done.returncode:
            print(f"{seed} {' '.join(program.flags)} {what}: {done.stderr[:200].strip()}", flush=True)
            for part in ("jaxpr", "in.npz", "want.npz"):
                shutil.copy(at / f"it.{part}", at / f"{seed}.{part}")
            return what
    return " ".join(["the same"] + ["nested"] * program.nested + program.flags)


def work(bin, seed, n, folder):
    for k in range(seed, seed + n):
        print(f"{k}\t{one(k, bin, pathlib.Path(folder))}", flush=True)


def main(bin, seed, n, folder="devices-found"):
    os.makedirs(folder, exist_ok=True)
    seed, last, counts = int(seed), int(seed) + int(n), collections.Counter()
    while seed < last:  # XLA ends the process for some programs
        worker = [sys.executable, __file__, bin, str(seed), str(last - seed), folder, "work"]
        with subprocess.Popen(worker, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            for line in process.stdout:
                k, _, what = line.strip().partition("\t")
                if what:
                    counts[what], seed = counts[what] + 1, int(k) + 1
                else:
                    print(k)
        if process.returncode:
            counts["ended by XLA"], seed = counts["ended by XLA"] + 1, seed + 1
    print("devices:", ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return "differs" in counts or "does not compile" in counts


if __name__ == "__main__":
    if sys.argv[-1] == "work":
        work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(main(*sys.argv[1:]))
