#!/bin/sh
# run.sh BUILD: jaxcc-run, on programs written by hand in C (tests/run/model.c), without the compiler.
cd "$(dirname "$0")/.." || exit 1
case $1 in /*) bin=$1/bin ;; *) bin=$PWD/$1/bin ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
cc -std=c17 -I. -O1 -g -w -fPIC -shared -fvisibility=hidden -fno-toplevel-reorder tests/run/model.c -o "$work/model.so" ||
    { echo "run: 0 passed, 1 failed"; exit 1; }
cd "$work" || exit 1

# expect STATUS TEXT ARGS...: the status, and TEXT (a basic regular expression) somewhere in what is printed.
expect() {
    status=$1
    text=$2
    shift 2
    "$bin/jaxcc-run" "$@" >log 2>&1
    got=$?
    if [ $got = "$status" ] && grep -q -e "$text" log; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL run: jaxcc-run $*: status $got, wanted $status and '$text'"
        head -n 20 log
    fi
}
try() {
    if "$@" >log 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL run: $*"
        cat log
    fi
}
entry() {
    name=$1
    shift
    "$bin/jaxcc-run" --entry "$name" model.so "$@"
}

try entry inputs -o in.npz
try entry narrow -o narrow.npz
try entry wide -o wide.npy
try entry seven -o seven.npy
try entry minus -o minus.npy

# what is printed
expect 0 '^scale$' --info model.so
expect 0 'in0   x  *f32\[b,2\*b + 1\]' --info --entry scale model.so
expect 0 'workspace 24 bytes' --info --entry scale -D b=3 model.so
expect 0 '^out0: f32\[7,3\]$' model.so in.npz
expect 0 '^ \[12\. 26\. 40\.\]\]$' model.so in.npz
expect 0 '^out1: i64\[\]$' model.so in.npz
expect 0 '^  \[-inf  0.5\]\]$' --entry values model.so
expect 0 '^\[  0   1   2 ... 173 174 175\]$' --entry values model.so
expect 0 '^\[  1.-2.5j 0.+1e-10j\]$' --entry values model.so
expect 0 '^\[\[         1 4000000000\]\]$' --entry values model.so
expect 0 '^\[  0. 0.25  0.5 0.75   1. 1.25  1.5\]$' --entry range model.so seven.npy
expect 0 '^out1: i32\[3\]$' --entry some model.so
expect 0 'a call (median' --bench=0.05 model.so in.npz
expect 0 'a call (median' --bench=0.05 --threads 2 --entry some model.so
expect 0 Usage --help
expect 0 jaxcc-run --version

# files: what is written is read again, equal; half gives back what it was given
try entry scale in.npz -o out.npz
try entry scale in.npz --expect out.npz
try entry half narrow.npz -o half.npz
try entry range seven.npy -o range.npy
try entry range seven.npy --expect range.npy
expect 0 '^out0: f16\[7\]$' --entry half model.so narrow.npz
expect 1 'out0 is f32\[7,3\] instead of f16\[7\]' model.so in.npz --expect narrow.npz
expect 1 '2 outputs instead of 1' model.so in.npz --expect seven.npy
expect 1 'element 0 is -1 instead of 7' --entry minus model.so --expect seven.npy

# wrong inputs
expect 1 'scale takes 2 inputs, but 0 are given' model.so
expect 1 'scale takes 2 inputs, but 3 are given' model.so in.npz seven.npy
expect 1 "input 'n' must be i32\[\], but is f64\[2\]" --entry range model.so wide.npy
expect 1 "input 'x' must be f32\[b,2\*b + 1\], but is i32\[\]" model.so seven.npy seven.npy
expect 1 "but extent 0, 'b', is 4" -D b=4 model.so in.npz
expect 1 "extent 'n' is negative: -1" --entry range model.so minus.npy
expect 1 'no such dimension' -D c=4 model.so in.npz
expect 1 "no program 'none'" --entry none model.so
expect 1 'cannot open' model.so none.npz
expect 1 'cannot read' model.so model.so
expect 1 'cannot open' none.so
expect 1 'no shared library' in.npz
head -c 300 in.npz >cut.npz
expect 1 'cut off' model.so cut.npz
expect 1 'cannot write' model.so in.npz -o none/out.npz
expect 1 'No space left' model.so in.npz -o /dev/full
try test ! -e none
expect 2 'no library' --info
expect 2 'unknown option' --none model.so
expect 2 'write NAME=N' -D b model.so
expect 2 'needs a value' model.so -o
expect 2 'no number' --rtol x model.so

echo "run: $passed passed, $failed failed"
[ $failed = 0 ]
