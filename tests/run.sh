#!/bin/sh
# run.sh BUILD MODE: jaxcc-run, on programs written by hand in C (tests/run/model.c), without the compiler.
. "$(dirname "$0")/try.sh"
cc -std=c17 -I. -O1 -g -w -fPIC -shared -fvisibility=hidden -fno-toplevel-reorder tests/run/model.c -o "$work/model.so" ||
    stop "model.c does not compile"
cd "$work" || exit 1

# expect STATUS TEXT ARGS...: the status, and TEXT (a basic regular expression) somewhere in what is printed.
expect() {
    status=$1
    text=$2
    shift 2
    jaxcc-run "$@" >log 2>&1
    got=$?
    [ $got = "$status" ] && grep -q -e "$text" log
    count $? "jaxcc-run $*: status $got, wanted $status and '$text'"
}
entry() {
    name=$1
    shift
    jaxcc-run --entry "$name" model.so "$@"
}

succeeds entry inputs -o in.npz
succeeds entry narrow -o narrow.npz
succeeds entry wide -o wide.npy
succeeds entry seven -o seven.npy
succeeds entry minus -o minus.npy
succeeds entry most -o most.npy
succeeds entry row -o row.npy
succeeds entry halves -o halves.npz
succeeds entry values -o values.npz
succeeds entry others -o others.npz

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
succeeds entry scale in.npz -o out.npz
succeeds entry scale in.npz --expect out.npz
succeeds entry half narrow.npz -o half.npz
succeeds entry range seven.npy -o range.npy
succeeds entry range seven.npy --expect range.npy
expect 0 '^out0: f16\[7\]$' --entry half model.so narrow.npz
expect 1 'out0 is f32\[7,3\] instead of f16\[7\]' model.so in.npz --expect narrow.npz
expect 1 '2 outputs instead of 1$' model.so in.npz --expect seven.npy

# how outputs differ from what is wanted; a NaN is equal to a NaN
succeeds entry values --expect values.npz
succeeds entry values --expect values.npz --rtol 0 --atol 0
expect 0 '^out0: 0 of 1 element differs; tolerance 0 + 0 |want|$' --entry seven model.so --expect seven.npy
expect 1 'out0: 1 of 1 element differs; the largest error is 8 at \[\]: -1 instead of 7; tolerance 0 + 0 ' --entry minus model.so --expect seven.npy
expect 1 ': 1 of 1 element differs; the largest error is 1.84467441e+19 at \[\]: -9223372036854775808 instead' --entry least model.so --expect most.npy
expect 1 'out0: 4 of 12 elements differ; the largest error is inf at \[0, 1, 1\]: nan instead of 0.3; ' --entry values model.so --expect others.npz
expect 1 'out1: 2 of 2 elements differ; the largest error is 2 at \[1\]: 0.+1e-10j instead of 0.+2.j; tolerance 5e-05 + 2e-05 |want|' --entry values model.so --expect others.npz
expect 1 'out2: 1 of 1200 elements differs; the largest error is 1 at \[300\]: 44 instead of 45; tolerance 0 + 0 ' --entry values model.so --expect others.npz
expect 1 'out3: 0 of 2 elements differ; tolerance 0 + 0 ' --entry values model.so --expect others.npz
expect 1 'out0: 3 of 12 elements differ; .*; tolerance 0.01 + 1e-06 |want|' --rtol 1e-6 --atol 1e-2 --entry values model.so --expect others.npz
expect 1 'out1: 1 of 2 elements differs; .* at \[1\]: ' --rtol 0 --atol 0.5 --entry values model.so --expect others.npz
expect 0 'out0: 0 of 1 element differs; the largest error is 8 at \[\]: -1 instead of 7; tolerance 20 + 0 ' --atol 20 --entry minus model.so --expect seven.npy

# wrong inputs
expect 1 'scale takes 2 inputs, but 0 are given$' model.so
expect 1 'scale takes 2 inputs, but 1 is given$' model.so seven.npy
expect 1 'range takes 1 input, but 0 are given$' --entry range model.so
expect 1 'scale takes 2 inputs, but 3 are given' model.so in.npz seven.npy
expect 1 "input 'n' must be i32\[\], but is f64\[2\]" --entry range model.so wide.npy
expect 1 "must be i32\[\], but is f64\[2\]; convert it: .astype(np.int32)$" --entry range model.so wide.npy
expect 1 "input 'x' must be f32\[b,2\*b + 1\], but is i32\[\]; convert it: .astype(np.float32)$" model.so seven.npy seven.npy
expect 1 "must be bf16\[mod(b, 4),c\], but is f32\[7\]; convert it: .astype(ml_dtypes.bfloat16)$" --entry half model.so halves.npz
expect 1 "input 'x' must be f32\[b,2\*b + 1\], but is f32\[7\]$" model.so row.npy seven.npy
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
succeeds test ! -e none

# What is written is whole or not there, whatever ends it; files that have the temporary name stay.
listed=$(ls -A)
cat >ends.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
size_t fwrite(const void *p, size_t size, size_t n, FILE *f) { return raise(atoi(getenv("SIGNAL"))), n; }
END
interrupted() {
    cc -w -shared -fPIC ends.c -o ends.so || return 1
    echo old >ended.npz
    SIGNAL=$1 LD_PRELOAD=$PWD/ends.so env --default-signal=HUP,INT,TERM jaxcc-run model.so in.npz -o ended.npz # nohup ignores some
    [ $? = $(($1 + 128)) ] && [ "$(cat ended.npz)" = old ] && rm ended.npz ends.so && [ "$(ls -A | grep -v ends.c)" = "$listed" ]
}
in_the_way() {
    echo precious >precious
    sh -c 'for suffix in "" -0 -1; do ln -s precious way.npz.tmp$$$suffix; done; exec "$@"' sh jaxcc-run model.so in.npz -o way.npz &&
        [ "$(cat precious)" = precious ] && rm precious way.npz.tmp* && entry scale in.npz --expect way.npz && rm way.npz
}
[ "$mode" = asan ] || for signal in 1 2 15; do succeeds interrupted $signal; done
succeeds in_the_way
limited_file() { ! (ulimit -f 0 && exec jaxcc-run model.so in.npz -o large.npz) && [ ! -e large.npz ] && [ "$(ls -A | grep -v ends.c)" = "$listed" ]; }
succeeds limited_file

# names of outputs
expect 2 'ends in .npz, or, of one output, in .npy' model.so in.npz -o x.txt
expect 2 'ends in .npz' model.so in.npz -o x.npz.
expect 1 'scale has 2 outputs; write an .npz' model.so in.npz -o x.npy
succeeds entry scale in.npz -o no_suffix
succeeds entry scale in.npz --expect no_suffix
succeeds test ! -e x.txt -a ! -e x.npz. -a ! -e x.npy

# libraries that are not whole: a message and status 1, never a signal
damaged() {
    jaxcc-run damaged.so in.npz >log 2>&1
    status=$?
    [ $status = 0 ] && [ "$1" = any ] && return
    [ $status = 1 ] && grep -q '^jaxcc-run: error: ' log && return
    echo "damaged $*: status $status" && cat log && return 1
}
cuts() {
    for n in $(seq 0 $((size / 80)) $((size - 1))) 1 3 4 63 64 65 $((size - 1)); do
        head -c "$n" model.so >damaged.so
        damaged "cut to $n" || return 1
    done
}
# Bytes that are all ones, in each part of the file.
holes() {
    for n in $(seq 64 $((size / 40)) $((size - 1))) $sections; do
        cp model.so damaged.so
        printf '\377\377\377\377\377\377\377\377' | dd of=damaged.so bs=1 seek=$((n)) conv=notrunc status=none
        damaged any "$n" || return 1
    done
}
size=$(wc -c <model.so)
sections=$(readelf -lW model.so | awk '$1 == "DYNAMIC" || $1 == "NOTE" { print $2 }')
succeeds cuts
expect 1 'is cut off' damaged.so
succeeds holes
head -c 3 model.so >three.so
expect 1 'is cut off' three.so
[ "$mode" = asan ] || { # which reports faults itself
    expect 1 'ended with a memory fault' --entry faulty model.so
    expect 1 'ended with a memory fault' --guard --entry faulty model.so
}
expect 0 '^1$' --guard --entry flat model.so
expect 1 'deep took 6[78][0-9]* bytes of stack, more than 65536' --guard --entry deep model.so

expect 2 'no library' --info
expect 2 'unknown option' --none model.so
expect 2 'write NAME=N' -D b model.so
expect 2 'needs a value' model.so -o
expect 2 "'in.npz' is read, and would be overwritten" model.so in.npz -o in.npz
expect 2 'no number' --rtol x model.so

finish
