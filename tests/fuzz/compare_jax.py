"""compare_jax.py BIN TYPED SEED N ORACLE: N drawn programs under flags drawn here, compiled by BIN/jaxcc, run, and compared with JAX.

TYPED is the typed fuzzer, whose --write-derived makes the programs; ORACLE is a script that evaluates the text of a jaxpr with JAX under the same
flags (a module with load, evaluate, differ, to_file). Run it with a Python that has jax. What differs is kept in the working directory.
Programs that JAX or jaxcc refuses are counted; of those that jaxcc refuses the messages are listed, each with how often it came."""
import collections, importlib.util, os, re, subprocess, sys, tempfile
import numpy as np

bin_, typed, seed, n, oracle_path = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
spec = importlib.util.spec_from_file_location('oracle', oracle_path)
oracle = importlib.util.module_from_spec(spec)
spec.loader.exec_module(oracle)

def draw_flags(rng):
    return [(('jvp', 'vjp')[rng.integers(2)], None) for _ in range(1 + rng.integers(2))]

def tolerance(text):
    """Programs are not conditioned: a part of the largest number, by the coarsest type in the text, which any result may depend on."""
    parts = {'f64': 1e-8, 'c128': 1e-8, 'f32': 2e-3, 'c64': 2e-3, 'f16': .1, 'bf16': .3}
    return max(parts.get(t, .6) for t in re.findall(r':((?:b?f|c)\d+\w*)\[', text) + ['f64'])

def draw(aval, rng):
    d = aval.dtype
    if oracle.is_key(d): raise oracle.Unsupported('keys')
    if not oracle.is_float(d): return (rng.random(aval.shape) < .5 if d == np.bool_ else rng.integers(0, 4, aval.shape)).astype(d)
    return (rng.standard_normal(aval.shape) + (1j * rng.standard_normal(aval.shape) if d.kind == 'c' else 0)).astype(d)

def one(stem, rng):
    text = open(stem + '.jaxpr').read()
    sizes = dict(w.split('=') for w in re.findall(r'^# (.*)$', text, re.M)[-1].split())
    flags = draw_flags(rng)
    words = ['--' + f for f, _ in flags] + [w for k, v in sizes.items() for w in ('-D', f'{k}={v}')]
    made = subprocess.run([f'{bin_}/jaxcc', '-w', *words, '--no-header', '-o', stem + '.so', stem + '.jaxpr'], capture_output=True, text=True, timeout=120)
    if made.returncode not in (0, 1): return f'crash: {made.stderr[:300]}'
    if made.returncode: raise oracle.Wrong(re.sub(r'^\S*?:(\d+:\d+:)?', '', made.stderr.split('\n')[0]))
    prog = oracle.load(text, [], {k: int(v) for k, v in sizes.items()})
    base = [oracle.jax.ShapeDtypeStruct(oracle.dims_of(b['type'], prog, {k: int(v) for k, v in sizes.items()}.get), oracle.element_type(b['type'])) for b in prog.in_binders]
    f, ins = oracle.transform(prog, flags, base)
    arrays = [oracle.to_file(draw(a, rng)) for a in ins]
    want = oracle.evaluate(prog, arrays, flags)
    np.savez(stem + '.in.npz', **{f'in{i}': a for i, a in enumerate(arrays)})
    ran = subprocess.run([f'{bin_}/jaxcc-run', '--guard', stem + '.so', stem + '.in.npz', '-o', stem + '.out.npz'], capture_output=True, text=True, timeout=120)
    if ran.returncode: return f'run: {ran.stderr[:300]}'
    got = oracle.read_npz(stem + '.out.npz', 'out')
    if len(got) != len(want): return f'{len(got)} outputs instead of {len(want)}'
    t = tolerance(text)
    for k, (g, w) in enumerate(zip(got, want)):
        if g.shape != oracle.to_file(w).shape: return f'out{k}: {g.shape} instead of {oracle.to_file(w).shape}'
        if not oracle.is_float(w.dtype) or not g.size: continue   # integers follow floats that differ in their last bits
        d = np.dtype(w.dtype)
        g = (g.view(d).reshape(w.shape) if g.dtype != d else g).astype(complex)
        w = np.asarray(w).astype(complex)
        both = np.isfinite(g) & np.isfinite(w)
        scale = max(1, np.abs(w[both]).max(initial=0))
        bad = (np.abs(np.where(both, g - w, 0)) > t * scale) | (np.isnan(g) != np.isnan(w))
        if bad.any(): return f'--{" --".join(f for f, _ in flags)} out{k}{list(np.argwhere(bad)[0])}: {g[bad][0]} instead of {w[bad][0]}'
    return None

same, failed, refused = 0, 0, collections.Counter()
with tempfile.TemporaryDirectory() as folder:
    for s in range(seed, seed + n):
        stem, rng = f'{folder}/{s}', np.random.default_rng(s)
        subprocess.run([typed, '--write-derived', str(s), '1', folder], capture_output=True, timeout=120)
        try: why = one(stem, rng)
        except oracle.Wrong as e: refused['jaxcc: ' + str(e)] += 1; continue
        except subprocess.TimeoutExpired: why = 'it takes too long'
        except Exception as e: refused[f'jax: {type(e).__name__}: {str(e)[:90]!r}'] += 1; continue
        same += why is None
        if why:
            failed += 1
            print(f'FAIL seed {s}: {why}', flush=True)
            for suffix in ('.jaxpr', '.in.npz'):
                if os.path.exists(stem + suffix): subprocess.run(['cp', stem + suffix, '.'])
        for x in os.listdir(folder): os.remove(f'{folder}/{x}')
for why, times in refused.most_common(): print(f'refused {times} {why}')
print(f'compare_jax: {same} the same, {sum(refused.values())} refused, {failed} failed')
sys.exit(failed > 0)
