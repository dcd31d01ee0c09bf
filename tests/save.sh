#!/bin/sh
# save.sh BUILD: the README's save() of a program's constants, by a Python that has jax: $PYTHON, else python3. Skipped without.
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
if "$python" -c 'import jax' 2>/dev/null; then
    exec "$python" tests/save.py "$1"
fi
echo "save.sh is skipped: $python has no jax"
echo "save: 0 passed, 0 failed"
