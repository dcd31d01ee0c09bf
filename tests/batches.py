#!/usr/bin/env python3
"""Programs of cases, batched: batches.py BUILD [FROM] [OPTION...]

For each case of the folder FROM (../shared/cases/jax) that has an input of rank 1 or more: a drawn subset of its inputs gets
a batch axis, each at a drawn place, for three examples that differ (see `example`). ../shared/tools/oracle.py gives the
expected numbers. The cases are compiled and run by BUILD/tests/runner, with a symbolic batch size and with -D batch=3.
Prints how many pass, what fails, and for which the oracle, or JAX, has no answer.

  --seed N      draws others (0)
  --filter RE   of the names in FROM
  --sample N    so many that have an answer, drawn
  --most BYTES  none that takes more
  --store DIR   leaves the cases there, for the runner; those that it has already are not computed again
  --jobs N      processes (2)
Needs jax.
"""
import argparse, concurrent.futures, csv, math, multiprocessing, os, pathlib, random, re, shutil, subprocess, sys, tempfile, threading
import numpy as np

SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared"
sys.path.insert(0, str(SHARED / "tools"))
EXAMPLES, SECONDS = 3, 20
np.seterr(all="ignore")
SUFFIXES = (".jaxpr", ".args", ".in.npz", ".consts.npz", ".out.npz")


def example(a, dtype, key, k, ordered):
    """The recorded input, for example k. Floats are scaled towards zero, which leaves domains, orders, triangles and positive
    definite matrices; those in no order are also rotated. Integers of arrays are rotated by rows, or left if `ordered`, so that
    indices stay in range; a single one gets nearer to 0."""
    if key or k == 0:
        return a ^ a.dtype.type(k) if key else a
    if dtype.kind in "biu" or "int" in dtype.name:
        if a.ndim:
            return a if ordered else np.roll(a, k, 0)
        return a ^ bool(k % 2) if dtype.kind == "b" else np.sign(a) * np.maximum(np.abs(a), k) - np.sign(a) * a.dtype.type(k)
    x = a.view(dtype) if a.dtype != dtype else a
    wide = x if dtype.kind in "fc" else x.astype(np.float32)
    square = a.ndim > 1 and a.shape[-1] == a.shape[-2]
    if a.ndim and a.size and not square and not (np.sort(wide) == wide).all():
        wide = np.roll(wide, k)
    parts = np.ascontiguousarray(wide).reshape(-1).view(wide.real.dtype)  # infinite ones stay what they are
    return (parts * parts.dtype.type(1 - k / 4)).view(wide.dtype).astype(dtype).view(a.dtype).reshape(a.shape)


def batched(program, arrays, rng, oracle):
    """The inputs with their batch axes, and the flag."""
    text, binders = program.text, program.j["ins"]
    closed = len(arrays) - len(binders)  # constants among the inputs
    named = {i["v"] for j in oracle.walk_jaxprs(program.j) for b in [*j["ins"], *(o for e in j["eqns"] for o in e["outs"])]
             for d in (b["type"] or {}).get("dims") or [] for i in oracle.flat_items(d) if i["k"] == "name"}
    free = [i for i, b in enumerate(binders) if not (oracle.is_int_scalar(b) and b["name"] in named)]
    types = [oracle.element_type(b["type"]) for b in binders]
    keys = [oracle.is_key(t) for t in types]
    rank = [arrays[closed + i].ndim - keys[i] for i in range(len(binders))]
    if not any(rank[i] for i in free):
        raise NothingToBatch
    ordered = re.search(r"indices_are_sorted=True|\bbc?sr_|\bbcoo_|\bcsr", text) is not None
    taken = rng.sample(free, rng.randint(1, len(free)))
    axes = ["_"] * len(binders)
    for i in sorted(taken):
        a, axis = arrays[closed + i], rng.randint(0, rank[i])
        dtype = a.dtype if keys[i] else np.dtype(types[i])
        arrays[closed + i] = np.stack([example(a, dtype, keys[i], k, ordered) for k in range(EXAMPLES)], axis)
        axes[i] = str(axis)
    return arrays, "--vmap=" + ",".join(axes)


class NothingToBatch(Exception):
    pass


def write(stem, to, name, seed):
    """None; or why there is no case."""
    import oracle

    path = pathlib.Path(f"{stem}.consts.npz")
    text = pathlib.Path(f"{stem}.jaxpr").read_text()
    consts = oracle.read_npz(path, "const") if path.exists() else None if oracle.has_consts(text) else []
    program = oracle.load(text, consts)
    arrays, flag = batched(program, oracle.read_npz(f"{stem}.in.npz", "in"), random.Random(f"{seed} {name}"), oracle)
    flags, options = oracle.parse_flags([flag])
    program, flags = oracle.load_under(text, consts, flags, options)
    outs = [oracle.to_file(x) for x in oracle.evaluate(program, arrays, flags)]
    for suffix in (".jaxpr", ".consts.npz"):
        if os.path.exists(f"{stem}{suffix}"):
            shutil.copy(f"{stem}{suffix}", f"{to}/{name}{suffix}")
    pathlib.Path(f"{to}/{name}.args").write_text(flag + "\n")
    np.savez_compressed(f"{to}/{name}.in.npz", **{f"in{i}": a for i, a in enumerate(arrays)})
    np.savez_compressed(f"{to}/{name}.out.npz", **{f"out{i}": a for i, a in enumerate(outs)})


def work(connection):
    import oracle

    for n in range(1 << 30):
        if n % 60 == 59:
            oracle.jax.clear_caches()
        try:
            connection.send(write(*connection.recv()))
        except NothingToBatch:
            connection.send("")
        except EOFError:
            return
        except Exception as e:
            connection.send(oracle.message(e))


class Worker(threading.local):
    """A process for each thread, in which JAX is imported once; another one if JAX gives no answer, or ends."""

    def __init__(self):
        self.process = None

    def write(self, stem, to, name, seed):
        if os.path.exists(f"{to}/{name}.out.npz"):
            return name, None
        if not self.process:
            self.connection, end = multiprocessing.Pipe()
            self.process = multiprocessing.get_context("spawn").Process(target=work, args=(end,), daemon=True)
            self.process.start()
            end.close()
        try:
            self.connection.send((stem, to, name, seed))
            if self.connection.poll(SECONDS):
                return name, self.connection.recv()
            why = f"no answer in {SECONDS} s"
        except (OSError, EOFError):
            why = "the oracle crashed"
        self.process.kill()
        self.process = None
        return name, why


def written(to, name):
    return [p for p in (pathlib.Path(f"{to}/{name}{s}") for s in SUFFIXES) if p.exists()]


def write_tolerances(source, to, names):
    rows = csv.DictReader(open(source / "MANIFEST.tsv"), delimiter="\t", quoting=csv.QUOTE_NONE)
    columns = ("stem", "primitives", "dtypes", "rtol", "atol", "check")
    with open(f"{to}/MANIFEST.tsv", "w") as f:
        print(*columns, sep="\t", file=f)
        for row in rows:
            row["stem"] = row["stem"].replace("/", "-")
            if row["stem"] in names:
                print(*(row[c] for c in columns), sep="\t", file=f)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path, nargs="?", default=SHARED / "cases/jax")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--filter", default="")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--most", type=int, default=math.inf)
    parser.add_argument("--store", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    a = parser.parse_args()
    to = a.store or pathlib.Path(tempfile.mkdtemp())
    to.mkdir(parents=True, exist_ok=True)
    stems = [str(p)[:-6] for p in sorted(a.source.rglob("*.jaxpr")) if re.search(a.filter, str(p.relative_to(a.source)))]
    random.Random(a.seed).shuffle(stems)
    jobs = [(s, to, os.path.relpath(s, a.source).replace("/", "-"), a.seed) for s in stems]
    names, reasons = set(), []
    worker = Worker()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for name, why in pool.map(lambda job: worker.write(*job), jobs):
            if why:
                reasons.append((name, why))
            elif why is None and sum(p.stat().st_size for p in written(to, name)) <= a.most:
                names.add(name)
            if len(names) == a.sample:
                pool.shutdown(cancel_futures=True)
                break
    for name in {name for _, _, name, _ in jobs} - names:
        for path in written(to, name):
            path.unlink()
    write_tolerances(a.source, to, names)
    for name, why in sorted(reasons):
        print(f"left out {name}: {why}")
    print(f"{len(names)} cases, {len(reasons)} left out", flush=True)
    status = 0
    for extra in ([], ["--extra", f"-Dbatch={EXAMPLES}"]):
        status |= subprocess.run([a.build / "tests/runner", "--strict", "--jobs", str(a.jobs), *extra, to]).returncode
    if not a.store:
        shutil.rmtree(to)
    return status


if __name__ == "__main__":
    sys.exit(main())
