#!/bin/sh
# header.sh BUILD: generated headers are C99 and C++ without a warning, alone and together, and carry runtime/jaxcc.h as it is.
cd "$(dirname "$0")/.." || exit 1
jaxcc=$1/bin/jaxcc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
try() {
    if "$@" >"$work/log" 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL header: $*"
        head -n 20 "$work/log"
    fi
}
carries() {
    sed -n '/^#ifndef JAXCC_H/,$p' runtime/jaxcc.h >"$work/common"
    sed '/^#ifndef JAXCC_H/,$!d' "$1" | head -n "$(wc -l <"$work/common")" | cmp - "$work/common"
}
for file in tests/golden/header/*.jaxpr; do
    name=$(basename "$file" .jaxpr)
    try "$jaxcc" --emit=header "$file" -o "$work/$name.h"
    try carries "$work/$name.h"
    try cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$work/$name.h"
    try c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ "$work/$name.h"
    echo "#include \"$name.h\"" >>"$work/all.c"
done
cat "$work/all.c" >>"$work/twice.c"
cat "$work/all.c" >>"$work/twice.c"
echo '#include "runtime/jaxcc.h"' >>"$work/twice.c"
try cc -std=c99 -pedantic -Wall -Wextra -Werror -I. -fsyntax-only "$work/twice.c"
echo "header: $passed passed, $failed failed"
[ $failed = 0 ]
