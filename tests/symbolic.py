#!/usr/bin/env python3
"""Another size for rewritten cases: symbolic.py TO [SAMPLE [PART PARTS]]

For each case S.jaxpr under TO, which build/*/tests/symbolic wrote, S.in2.npz holds the recorded inputs with
every symbol one larger, and S.out2.npz what ../shared/tools/oracle.py makes of
the rewritten text. tests/runner then compares at both sizes. What the oracle cannot do is listed. Needs jax.
"""
import glob, os, random, signal, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../shared/tools'))
import numpy as np
import oracle


def late(*_):
    raise TimeoutError('no answer in 60 s')


def longer(a, axis):
    """The array with one more element along the axis: of floats one between the first and the last, else the first."""
    one = [*a.shape[:axis], 1, *a.shape[axis + 1 :]]
    first, last = (a.take([k], axis) if a.size else np.ones(one, a.dtype) for k in (0, -1))
    between = first * a.dtype.type(0.75) + last * a.dtype.type(0.25) if a.dtype.kind in 'fc' else first
    return np.concatenate([a, between], axis)


def enlarged(program, arrays):
    """Each array with its symbolic axes one longer."""
    for binder, a in zip(program.in_binders, arrays):
        for axis, dim in enumerate(binder['type'].get('dims') or []):
            if any(i['k'] == 'name' for i in oracle.flat_items(dim)):
                a = longer(a, axis)
        yield a


def write_case(stem):
    text = open(stem + '.jaxpr', encoding='utf-8').read()
    path = stem + '.consts.npz'
    consts = oracle.read_npz(path, 'const') if os.path.exists(path) else None if oracle.has_consts(text) else []
    program = oracle.load(text, consts)
    arrays = list(enlarged(program, oracle.read_npz(stem + '.in.npz', 'in')))
    outs = [oracle.to_file(x) for x in oracle.evaluate(program, arrays)]
    np.savez(stem + '.in2.npz', **{f'in{i}': a for i, a in enumerate(arrays)})
    np.savez(stem + '.out2.npz', **{f'out{i}': a for i, a in enumerate(outs)})


def main(to, sample=0, part=0, parts=1):
    stems = sorted(p[:-6] for p in glob.glob(os.path.join(to, '**', '*.jaxpr'), recursive=True))
    if 0 < int(sample) < len(stems):
        stems = sorted(random.Random(0).sample(stems, int(sample)))
    stems = stems[int(part) :: int(parts)]
    oracle.jax.config.update('jax_threefry_partitionable', True)
    signal.signal(signal.SIGALRM, late)
    done = 0
    for n, stem in enumerate(stems):
        if n % 60 == 59:
            oracle.jax.clear_caches()
        signal.alarm(60)
        try:
            write_case(stem)
            done += 1
        except Exception as e:
            print(f'{stem}: {oracle.message(e)}', flush=True)
        signal.alarm(0)
    print(f'{done} of {len(stems)} cases have another size')


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
