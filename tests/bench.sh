#!/bin/sh
# bench.sh BUILD: times every model of ../shared/perf against jax. PYTHON names one that has jax; CASES where the models lie, made when missing;
# ARGS goes to bench.py.
cd "$(dirname "$0")/.." || exit 1
build=$1 perf=../shared/perf cases=${CASES:-build/perf} python=${PYTHON:-python3}
[ -d $perf ] || {
    echo "the bench needs the folder $perf, which is not here" >&2
    exit 1
}
"$python" -c 'import jax' 2>/dev/null || {
    echo "the bench compares with jax, which $python does not have; make a Python that does, and say so:" >&2
    echo "    python3 -m venv venv && venv/bin/pip install 'jax[cpu]==0.10.2' && make bench PYTHON=venv/bin/python" >&2
    exit 1
}
[ -d "$cases" ] || "$python" $perf/gen.py --out "$cases" || exit 1
exec "$python" $perf/bench.py --jaxcc "$build/bin/jaxcc" --cases "$cases" $ARGS
