#!/bin/sh
# layers.sh: includes point only leftwards, codegen → passes → typecheck → parse → compiler, in codegen machine → host → kernels → emit and
# plan; LLVM and MLIR are the code generator's alone, and not of its plans;
# no file has more than 800 lines; bounds of arrays have names; who reads counts of operands does it by control.h.
cd "$(dirname "$0")/.." || exit 1
failed=0
fail() {
    failed=$((failed + 1))
    echo "FAIL layers: $*"
}
# layer FOLDER FORBIDDEN...: no file of the folder includes one of the others
layer() {
    folder=$1
    shift
    for other; do
        found=$(grep -n "#include \"[^\"]*\b$other/" "$folder"/*.[chly] 2>/dev/null)
        [ -z "$found" ] || fail "$folder includes $other: $found"
    done
}
layer compiler/parse typecheck passes codegen
layer compiler/typecheck passes codegen
layer compiler/passes codegen
layer compiler/passes/rules codegen
layer compiler/passes/transform codegen
layer runtime compiler
# within FOLDER ALLOWED...: of the folders of codegen/ a file of this one includes these headers alone
within() {
    folder=compiler/codegen/$1
    shift
    found=$(grep -nE '#include "\.\./[a-z_]+/' "$folder"/*.[ch] | grep -vE "\"\.\./($(echo "$*" | tr ' ' '|'))")
    [ -z "$found" ] || fail "$folder: $found"
}
within target plan/vectors.h plan/threads.h
within plan target/target.h eval/
within eval plan/plan.h
within emit target/target.h
within kernels plan/ eval/ emit/emit.h
within host plan/ eval/ emit/ kernels/
within machine emit/emit.h host/machine.h
found=$(grep -nE '#include [<"](mlir|llvm)' compiler/codegen/*.h compiler/codegen/plan/* compiler/codegen/eval/* compiler/codegen/target/*)
[ -z "$found" ] || fail "LLVM in plans: $found"
for file in compiler/*.[ch]; do
    [ "$file" != compiler/main.c ] || continue
    found=$(grep -nE '#include "(parse|typecheck|passes|codegen)/' "$file")
    [ -z "$found" ] || fail "$file: $found"
done
found=$(grep -lE '#include [<"](mlir|llvm)' compiler/*.[ch] compiler/parse/* compiler/typecheck/* compiler/passes/* runtime/* 2>/dev/null)
[ -z "$found" ] || fail "LLVM outside codegen: $found"
# So are the programs of loops and branches, which untyped texts are completed from; dialect.c makes a cond of old texts.
found=$(grep -nE '\bK_(body_jaxpr|cond_jaxpr|branches|branch_jaxprs)\b' compiler/*.[chly] compiler/*/*.[chly] compiler/*/*/*.[ch] 2>/dev/null |
    grep -vE '^compiler/(control\.[ch]|typecheck/[^:]*):')
[ -z "$found" ] || fail "programs of loops and branches outside control.c and the type rules: $found"
# Counts of operands are read and written in control.c, and checked by the type rules; num_keys of sort counts none of a program's.
found=$(grep -nE '\bK_(num_|nimplicit\b|[a-z]+_nconsts\b)' compiler/*.[chly] compiler/*/*.[chly] compiler/*/*/*.[ch] 2>/dev/null |
    grep -vE '^compiler/(control\.[ch]|typecheck/[^:]*):|K_num_keys')
[ -z "$found" ] || fail "counts of operands outside control.c and the type rules: $found"
for file in compiler/*.[ch] compiler/*/*.[chly] compiler/*/*/*.[ch] runtime/*.[ch] tests/*.c tests/*/*.c; do
    [ -f "$file" ] && [ "$(wc -l <"$file")" -gt 800 ] && fail "$file has more than 800 lines"
done
found=$(grep -nE '[A-Za-z_]\[[0-9]{2,}\]' compiler/*.[ch] compiler/*/*.[chly] compiler/*/*/*.[ch])
[ -z "$found" ] || fail "bounds without a name: $found"
# The README's table has the passes as passes.def has them: name and half, in order.
sed -n 's/^PASS(\([a-z]*\), \([A-Z]*\),.*/\1 \2/p' compiler/passes/passes.def | tr A-Z a-z >"${TMPDIR:-/tmp}/passes.$$"
sed -n 's/^| \([a-z]*\) | \(normalise\|lower\|both\) |.*/\1 \2/p' compiler/passes/README.md | diff - "${TMPDIR:-/tmp}/passes.$$" ||
    fail "compiler/passes/README.md: its table is not passes.def"
rm -f "${TMPDIR:-/tmp}/passes.$$"
[ $failed = 0 ] && echo "layers: 1 passed, 0 failed" || echo "layers: 0 passed, $failed failed"
[ $failed = 0 ]
