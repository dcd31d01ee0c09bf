#!/bin/sh
# rules.sh BUILD: every rule of stdlib/rules/ is well typed: the compiler relies on that when it reads one.
. "$(dirname "$0")/try.sh"
for file in stdlib/rules/*.jaxpr; do
    succeeds jaxcc --check -w "$file"
done
finish
