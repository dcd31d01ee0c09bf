#!/usr/bin/env python3
"""Gradients of real programs, as cases: gradients.py BUILD ORACLE FROM TO [JOBS]

For each case of the folder FROM with a float result and a float input, writes a case to TO: the sum of the first float
result, differentiated with respect to all float inputs. ORACLE, a program that evaluates the text with JAX, gives the
expected numbers. TO is then for the runner, or for anything else that runs cases. The relative tolerance that
FROM/MANIFEST.tsv states for a program holds for its gradient too, of the largest element also: what makes results
inexact, steps of a solver or arithmetic in bf16, makes their derivatives so. Prints how many were written, and which
have no answer from ORACLE.
"""
import concurrent.futures, csv, pathlib, shutil, subprocess, sys
import numpy as np

SECONDS = 300


def write(case, to, build, oracle):
    """None; or why there is no case."""
    made = subprocess.run([build / "tests/scalar", case], capture_output=True, text=True)
    if made.returncode == 3:
        return "nothing to differentiate"
    if made.returncode != 0:
        return made.stderr.splitlines()[0] if made.stderr else f"status {made.returncode}"
    program, flags = made.stdout.rsplit("# ", 1)
    stem = to / case.stem
    text, given, want = (pathlib.Path(f"{stem}{suffix}") for suffix in (".jaxpr", ".in.npz", ".out.npz"))
    text.write_text(program)
    pathlib.Path(f"{stem}.args").write_text(flags)
    shutil.copy(case.with_suffix(".in.npz"), given)
    command = [sys.executable, oracle, text, given, *flags.split(), "-o", want]
    consts = case.with_suffix(".consts.npz")
    if consts.exists():
        shutil.copy(consts, to)
        command += ["--consts", consts]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        why = None if ran.returncode == 0 else (ran.stderr.strip().splitlines() or ["?"])[-1]
    except subprocess.TimeoutExpired:
        why = "time out"
    if why:
        text.unlink()
    return why


def largest(expected):
    """The largest element of the gradients, at least 1."""
    with np.load(expected) as arrays:
        finite = [np.abs(a[np.isfinite(a)]) for a in map(arrays.get, arrays.files) if a.dtype.kind in "fc"]
    return max([1.0] + [a.max() for a in finite if a.size])


def write_tolerances(source, to):
    manifest = source / "MANIFEST.tsv"
    if not manifest.exists():
        return
    with open(manifest) as given, open(to / "MANIFEST.tsv", "w") as made:
        print("stem\trtol\tatol", file=made)
        for row in csv.DictReader(given, delimiter="\t", quoting=csv.QUOTE_NONE):
            expected = to / f"{row['stem']}.out.npz"
            if row["rtol"] and expected.exists():
                print(row["stem"], row["rtol"], float(row["rtol"]) * largest(expected), sep="\t", file=made)


def main():
    build, oracle, source, to = map(pathlib.Path, sys.argv[1:5])
    jobs = int(sys.argv[5]) if len(sys.argv) > 5 else 2
    to.mkdir(parents=True, exist_ok=True)
    cases = sorted(source.glob("*.jaxpr"))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        reasons = list(pool.map(lambda c: write(c, to, build, oracle), cases))
    write_tolerances(source, to)
    for case, why in zip(cases, reasons):
        if why:
            print(f"{case.stem}: {why}")
    print(f"{reasons.count(None)} cases of {len(cases)}")


main()
