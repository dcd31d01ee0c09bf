#!/bin/sh
# header.sh BUILD: generated headers are C99 and C++ without a warning, alone and together, and carry runtime/jaxcc.h as it is.
. "$(dirname "$0")/try.sh"
carries() {
    sed -n '/^#ifndef JAXCC_H/,$p' runtime/jaxcc.h >"$work/common"
    sed '/^#ifndef JAXCC_H/,$!d' "$1" | head -n "$(wc -l <"$work/common")" | cmp - "$work/common"
}
for file in tests/golden/header/*.jaxpr; do
    name=$(basename "$file" .jaxpr)
    succeeds jaxcc --emit=header "$file" -o "$work/$name.h"
    succeeds carries "$work/$name.h"
    succeeds cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$work/$name.h"
    succeeds c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ "$work/$name.h"
    echo "#include \"$name.h\"" >>"$work/all.c"
done
cat "$work/all.c" >>"$work/twice.c"
cat "$work/all.c" >>"$work/twice.c"
echo '#include "runtime/jaxcc.h"' >>"$work/twice.c"
succeeds cc -std=c99 -pedantic -Wall -Wextra -Werror -I. -fsyntax-only "$work/twice.c"

# Inputs may be called like a macro: the header is right behind all headers of C, in C and in C++. Other names stay.
headers='assert complex ctype errno fenv float inttypes limits locale math setjmp signal stdarg stdbool stddef stdint stdio stdlib string time wchar'
for header in $headers; do echo "#include <$header.h>"; done >"$work/headers.h"
for compiler in 'cc -x c -std=gnu17' 'cc -x c -std=c99' 'c++ -x c++ -std=gnu++17' 'c++ -x c++ -std=c++11'; do
    $compiler -D_GNU_SOURCE -dM -E "$work/headers.h"
done | sed -n 's/^#define \([A-Za-z][A-Za-z0-9_]*\) .*/\1/p' | sort -u >"$work/macros"
succeeds test "$(wc -l <"$work/macros")" -gt 500
{
    echo '{ lambda ;'
    { cat "$work/macros"; printf '%s\n' linux unix EOF NULL errno I INFINITY NAN BUFSIZ stdin W B1 X_T Emb size max; } | sort -u | sed 's/$/:f32[]/'
    echo '. let in (W,) }'
} >"$work/macros.jaxpr"
succeeds jaxcc --emit=header "$work/macros.jaxpr" -o "$work/macros.h"
for name in W B1 X_T Emb size max; do succeeds grep -q "[*]$name[,)]" "$work/macros.h"; done
for name in EOF NULL errno I stdin; do succeeds grep -q "[*]${name}_[,)]" "$work/macros.h"; done
cat "$work/headers.h" "$work/macros.h" >"$work/behind.h"
succeeds cc -D_GNU_SOURCE -std=gnu17 -Wall -Wextra -Werror -fsyntax-only -x c "$work/behind.h"
succeeds cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$work/behind.h"
succeeds c++ -D_GNU_SOURCE -std=gnu++17 -Wall -Wextra -Werror -fsyntax-only -x c++ "$work/behind.h"
succeeds c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ "$work/behind.h"
finish
