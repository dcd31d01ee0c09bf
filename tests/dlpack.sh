#!/bin/sh
# dlpack.sh BUILD MODE: --dlpack: calls with DLPack's tensors, right and wrong in each way, in memory of the host and, on the driver for tests, of
# the GPU; dimensions that follow from the shapes; the header beside DLPack's own.
. "$(dirname "$0")/try.sh"
[ "$mode" = asan ] && sanitize=-fsanitize=address,undefined || sanitize= # as the driver for tests is
cat >"$work/tensors.jaxpr" <<'X1'
{ lambda ; x:f32[b,4] m:bool[b + 1] h:bf16[2*b] e:f8_e4m3fn[3] z:c64[] k:key<fry>[1] i:i4[5]. let
    y:f32[b,4] = neg x
    n:bool[b + 1] = not m
  in (y, n) }
X1
# called NAME OPTION...: dlpack.c with the library that these options make
called() {
    name=$1
    shift
    mkdir -p "$work/$name" && jaxcc -w --dlpack "$@" "$work/tensors.jaxpr" -o "$work/$name/tensors.so" &&
        cc -Wall -Wextra -Werror $sanitize $flags -Iruntime -I. -I"$work/$name" tests/dlpack.c "$work/$name/tensors.so" -Wl,-rpath,"$work/$name" \
            -ldl -o "$work/$name/called" && LD_LIBRARY_PATH="$build/tests/gpu" "$work/$name/called"
}
flags= try "arrays of the host" called host
flags= try "arrays of the host, computed on a GPU" called both --target=nvptx64
flags=-DGPU try "arrays of the GPU" called gpu --target=nvptx64 --device-pointers

# Dimensions from one input, from an integer, from the output; and not at all.
for program in 'twice:x:f32[2*b]:y:f32[2*b] = neg x' 'given:n:u8[] x:f32[n]:y:f32[n] = neg x' \
    'wanted:x:f32[]:y:f32[b] = broadcast_in_dim[broadcast_dimensions=() shape=(b,)] x' 'loose:x:f32[a*b]:y:f32[a*b] = neg x'; do
    name=${program%%:*} rest=${program#*:}
    inputs=${rest%%:y:*}
    echo "{ lambda ; $inputs. let y:${rest#*:y:} in (y,) }" >"$work/$name.jaxpr"
    succeeds jaxcc -w --dlpack "$work/$name.jaxpr" -o "$work/$name.so"
done
cat >"$work/dims.c" <<'X1'
#include "given.h"
#include "loose.h"
#include "twice.h"
#include "wanted.h"
#include <stdio.h>
#include <string.h>
static float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
static unsigned char n = 200;
static DLTensor tensor(void *data, int code, int bits, int rank, int64_t *shape) {
    DLTensor t = {data, {kDLCPU, 0}, rank, {code, bits, 1}, shape, NULL, 0};
    return t;
}
static int wrong;
static void expect(int status, const char *error, int wanted, const char *says) {
    if (status == wanted && (!status || strstr(error, says))) return;
    printf("status %d: %s, but wanted %s\n", status, error, says);
    wrong = 1;
}
int main(void) {
    int64_t six = 6, seven = 7;
    DLTensor a = tensor(x, kDLFloat, 32, 1, &six), b = tensor(y, kDLFloat, 32, 1, &six), c = tensor(&n, kDLUInt, 8, 0, NULL);
    DLTensor *in[2] = {&a}, *out[1] = {&b}, *both[2] = {&c, &a};
    expect(twice_dlpack(in, out), twice_error(), JAXCC_OK, "");
    expect(y[5] != -6, "y is wrong", 0, "-6");
    expect(loose_dlpack(in, out), loose_error(), JAXCC_DIMENSION, "dimension 'a' does not follow from the shapes");
    expect(given_dlpack(both, out), given_error(), JAXCC_DIMENSION, "input 'x' is float32[6], but extent 0, 'n', is 200");
    n = 6;
    expect(given_dlpack(both, out), given_error(), JAXCC_OK, "");
    a.shape = &seven;
    expect(twice_dlpack(in, out), twice_error(), JAXCC_DIMENSION, "'x' is float32[7], but extent 0, '2*b', is 6, where b = 3");
    b.shape = &seven;
    expect(twice_dlpack(in, out), twice_error(), JAXCC_DIMENSION, "no value of 'b' makes extent 0, '2*b', equal to 7");
    a.ndim = 0;
    expect(wanted_dlpack(in, out), wanted_error(), JAXCC_OK, "");
    expect(y[6] != 1, "y is wrong", 0, "1");
    return wrong;
}
X1
dimensions() {
    cc $sanitize -I"$work" "$work/dims.c" "$work/twice.so" "$work/given.so" "$work/wanted.so" "$work/loose.so" -Wl,-rpath,"$work" -o "$work/dims" && "$work/dims"
}
try "dimensions" dimensions

# Every function of a library has its own; a library without the option has none.
entries() {
    jaxcc -w --dlpack --vjp --entry 'other:--jvp' "$work/twice.jaxpr" -o "$work/entries.so" && nm -D "$work/entries.so" >"$work/log" &&
        grep -q ' T twice_dlpack$' "$work/log" && grep -q ' T other_dlpack$' "$work/log" &&
        jaxcc -w "$work/twice.jaxpr" -o "$work/none.so" && ! nm -D "$work/none.so" | grep -q dlpack && ! grep -q DLPACK "$work/none.h"
}
try "entries" entries
# refused STATUS TEXT OPTION...
refused() {
    want=$1 text=$2
    shift 2
    jaxcc "$@" -o "$work/no.so" >"$work/said" 2>&1
    [ $? = "$want" ] && grep -q "$text" "$work/said"
}
echo '{ lambda ; a:i64[]. let b:i64[] = mul a 2:i64[]
    c:f32[b] = broadcast_in_dim[broadcast_dimensions=() shape=(None,)] 1.0:f32[] b in (b, c) }' >"$work/computed.jaxpr"
try "a computed extent" refused 1 ':2:5: error: --dlpack: the program computes an extent of output 1' --dlpack "$work/computed.jaxpr"
try "a computed extent, --check" refused 1 'computes an extent of output 1' --check --dlpack "$work/computed.jaxpr"
try "the name of another" refused 2 "would export the name 'twice_dlpack'" --dlpack --entry 'twice_dlpack:--jvp' "$work/twice.jaxpr"
succeeds jaxcc -w --entry 'twice_dlpack:--jvp' "$work/twice.jaxpr" -o "$work/no.so"

# The header, alone, twice, before and behind one of DLPack; it holds runtime/dlpack.h as it is.
sed '/^#ifndef DLPACK/,$!d; s/kDLTrn = 18/&, kDLNew = 99/' runtime/dlpack.h >"$work/dlpack.h"
printf '#include "twice.h"\n' >"$work/alone.c"
printf '#include "twice.h"\n#include "given.h"\n#include "twice.h"\n#include "dlpack.h"\n' >"$work/before.c"
printf '#include "dlpack.h"\n#include "twice.h"\nint k = kDLNew;\n' >"$work/behind.c"
for file in alone before behind; do
    succeeds cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$work/$file.c"
    succeeds c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ "$work/$file.c"
done
carries() {
    sed '/The tensors of DLPack/,$!d' "$work/twice.h" | head -n "$(wc -l <runtime/dlpack.h)" | cmp - runtime/dlpack.h
}
succeeds carries
finish
