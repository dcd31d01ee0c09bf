#!/bin/sh
# rules.sh BUILD: every rule of stdlib/rules/ is well typed: the compiler relies on that when it reads one.
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
for file in stdlib/rules/*.jaxpr; do
    if "$1/bin/jaxcc" --check -w "$file"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL $file"; fi
done
echo "rules: $passed passed, $failed failed"
[ $failed = 0 ]
