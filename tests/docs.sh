#!/bin/sh
# docs.sh BUILD MODE: what README.md and the manual say is so: the example runs, the Makefile rule works, the manual has every option, an
# installed jaxcc works, the examples compute what JAX computes.
. "$(dirname "$0")/try.sh"
# block NAME: the code block after <!-- NAME -->
block() {
    awk -v mark="<!-- $1 -->" '$0 == mark { found = 1; next } found && /^```/ { if (inside) exit; inside = 1; next } inside' README.md
}
example() {
    cd "$work" && jaxcc axpy.jaxpr -o axpy.so && cc main.c axpy.so -Wl,-rpath,. -o main && [ "$(./main)" = '3 5 7 9' ]
}
fit() {
    cd "$work" && jaxcc --value-and-grad=0 loss.jaxpr -o loss.so && cc fit.c loss.so -Wl,-rpath,. -o fit && [ "$(./fit)" = '3.000' ]
}
each_example() {
    cd "$work" && jaxcc --grad=0 --vmap=_,0,0 --name=slopes loss.jaxpr -o slopes.so && cc each.c slopes.so -Wl,-rpath,. -o each && [ "$(./each)" = '-180 -16 -4' ]
}
# manual NAME: the literal block of man/jaxcc.1 after .\" NAME
manual() {
    awk -v name="$1" '$0 == ".\\\" " name { found = 1; next } found && /^\.Ed$/ { exit } found && !/^\.Bd/' man/jaxcc.1 | sed 's/\\e/\\/g'
}
linearized() {
    cd "$work" && jaxcc --linearize until.jaxpr -o until.so && cc -Wall -Wextra -Werror slopes.c until.so -Wl,-rpath,. -o slopes && [ "$(./slopes)" = '0.564 -1.13' ]
}
# An object is linked as the manual says.
object() {
    cd "$work" && jaxcc axpy.jaxpr -o axpy.o && cc main.c axpy.o root/usr/lib/jaxcc/libjaxcc_rt.a -lm -pthread -ldl -o main && [ "$(./main)" = '3 5 7 9' ]
}
rule() {
    cd "$work" && rm -f axpy.so && make -f rule.mk axpy.so && [ -f axpy.so ] && [ -f axpy.d ]
}
python=$(command -v "${PYTHON:-python3}")
called() {
    cd "$work" && [ "$("$python" call.py)" = '3.0 5.0 7.0 9.0' ]
}
# The manual has the same Python for constants as README.md.
saving() {
    manual save.py | diff "$work/save.py" - &&
        grep -q '^def save' "$work/save.py"
}
installed() {
    env -u MAKEFLAGS make --no-print-directory install MODE="$mode" B="$build" DESTDIR="$work/root" PREFIX=/usr && cd "$work" &&
        root/usr/bin/jaxcc axpy.jaxpr -o installed.so && root/usr/bin/jaxcc-run --info installed.so &&
        [ -f root/usr/include/jaxcc.h ] && [ -f root/usr/share/man/man1/jaxcc.1 ]
}
# The first words of the lines of --help that start with - are in the manual.
options() {
    mandoc -Tascii "man/$1.1" | col -b >"$work/manual" || return 1
    missing=0
    for option in $("$1" --help | sed -n 's/^  \(-[-a-zA-Z]*\).*/\1/p' | sort -u); do
        grep -q -e "^ *$option\b" -e " $option\b" "$work/manual" || { echo "$option is not in man/$1.1"; missing=1; }
    done
    return $missing
}
# Every row of warnings.def is in the manual.
warnings() {
    missing=0
    for name in $(sed -n 's/^WARNING([a-z_]*, "\([-a-z]*\)".*/\1/p' compiler/warnings.def); do
        grep -q "^\.It Cm $name\$" man/jaxcc.1 || { echo "-W$name is not in man/jaxcc.1"; missing=1; }
    done
    return $missing
}
lint() {
    out=$(mandoc -Tlint man/*.1) && [ -z "$out" ] || { echo "$out"; return 1; }
}
computes() {
    set -- "$1"
    consts=
    [ -f "examples/$1.consts.npz" ] && consts=--consts=examples/$1.consts.npz
    jaxcc "examples/$1.jaxpr" $consts -o "$work/$1.so" &&
        jaxcc-run "$work/$1.so" "examples/$1.in.npz" --expect "examples/$1.out.npz" --rtol 1e-4 --atol 1e-5
}
block axpy.jaxpr >"$work/axpy.jaxpr"
block main.c >"$work/main.c"
block loss.jaxpr >"$work/loss.jaxpr"
block fit.c >"$work/fit.c"
block each.c >"$work/each.c"
block Makefile >"$work/rule.mk"
block call.py >"$work/call.py"
block save.py >"$work/save.py"
manual until.jaxpr >"$work/until.jaxpr"
manual slopes.c >"$work/slopes.c"
try "the example of README.md" example
try "the gradient of README.md" fit
try "the gradients of a batch in README.md" each_example
[ -z "$python" ] || try "the Python of README.md" called
try "saving constants in README.md and man/jaxcc.1" saving
try "the Makefile rule of README.md" rule
try "make install" installed
try "linking an object as man/jaxcc.1 says" object
try "--linearize in man/jaxcc.1" linearized
try "options in man/jaxcc.1" options jaxcc
try "options in man/jaxcc-run.1" options jaxcc-run
try "warnings in man/jaxcc.1" warnings
try "mandoc -Tlint" lint
for file in examples/*.jaxpr; do
    name=${file##*/}
    try "$file" computes "${name%.jaxpr}"
done
try "the network trained by its library's gradient" env -u MAKEFLAGS make --no-print-directory -C examples BIN="$build/bin" OUT="$work/examples"
example_on_gpu() {
    cd "$work" && jaxcc --target=nvptx64 --name=axpy axpy.jaxpr -o gpu.so && cc$sanitize main.c gpu.so -Wl,-rpath,. -o gpu &&
        [ "$(LD_LIBRARY_PATH="$build/tests/gpu" ./gpu)" = '3 5 7 9' ] && jaxcc --target=nvptx64 -march=sm_90 --emit=ptx axpy.jaxpr | grep '^.target sm_90$'
}
# Every GPU that -march knows is in the manual.
gpus() {
    mandoc -Tascii man/jaxcc.1 | col -b >"$work/manual" || return 1
    for name in $(grep -o '"sm_[0-9a]*"' compiler/codegen/target/nvptx.c | tr -d '"'); do
        grep -q "\b$name\b" "$work/manual" || return 1
    done
}
[ "$mode" = asan ] && sanitize=' -fsanitize=address,undefined' || sanitize= # as the driver for tests is
on_gpu() {
    env -u MAKEFLAGS LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_LAZY=1 JAXCC_GPU_LEAKS="$work/leaks" \
        make --no-print-directory -C examples gpu BIN="$build/bin" OUT="$work/examples" CC="cc$sanitize" && ! [ -s "$work/leaks" ]
}
try "the example of README.md on a GPU" example_on_gpu
try "the network trained on a GPU" on_gpu
try "GPUs in man/jaxcc.1" gpus
finish
