#!/bin/sh
# interpose.sh BUILD: a library calls its own code, whatever is loaded or linked under its names or libm's (interpose.c).
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
mkdir v1 v2
cat >v1/model.jaxpr <<'X'
{ lambda ; a:f64[8]. let
    b:f64[8] = rem a 0.7:f64[]
    c:f64[8] = floor a
    d:f64[8] = ceil b
    e:f64[8] = round[rounding_method=0] a
    f:f64[8] = round[rounding_method=1] a
    g:f64[8] = abs b
    h:f64[8] = sqrt g
    i:f64[8] = pow g h
    j:f64[8] = tanh b
    k:f64[8] = exp b
    l:f64[8] = log1p g
    m:f64[8] = atan2 b h
    n:f64[8] = erf j
    o:f64[8] = sin b
    p:f32[8] = convert_element_type[new_dtype=float32 weak_type=False] a
    q:f32[8] = rem p 0.3:f32[]
    r:f32[8] = floor q
    s:f32[8] = cbrt q
    t:f32[8] = add r s
    u:f64[8] = convert_element_type[new_dtype=float64 weak_type=False] t
    v:f64[8] = cumsum[axis=0 reverse=False] u
    w:f64[8] = add c d
    x:f64[8] = add e f
    y:f64[8] = sub w x
    z:f64[8] = add i k
    ba:f64[8] = mul l m
    bb:f64[8] = sub n o
    bc:f64[8] = add z ba
    bd:f64[8] = add bb v
    be:f64[8] = add bc bd
    bf:f64[8] = add y be
  in (bf,) }
X
cat >v2/model.jaxpr <<'X'
{ lambda ; a:f64[8]. let b:f64[8] = add a 2.0:f64[] in (b,) }
X
cflags="-std=c17 -w -fno-builtin -I$root/runtime $root/tests/interpose.c -ldl"
cc $cflags -o plain && cc -DHOSTILE -rdynamic $cflags -o hostile || stop "interpose.c does not compile"
level() {
    jaxcc v1/model.jaxpr -march="$1" -o v1/model.so && jaxcc v2/model.jaxpr -o v2/model.so || return 1
    ! readelf -d v1/model.so | grep 'NEEDED.*libm' || return 1
    ./plain local v1/model.so >want && ./hostile local v1/model.so >got && cmp want got
}
# The second of two libraries of one name, and both by themselves.
pair() {
    ./plain local v1/model.so >want && ./plain local v2/model.so >>want || return 1
    for host in plain hostile; do
        ./$host global "$PWD/v1/model.so" "$PWD/v2/model.so" >got && cmp want got || return 1
    done
}
# linked SUFFIX: a program has v2 in it, whose names it exports, and loads v1.
linked() {
    ./plain local v2/model.so | sed -n 's/^call/linked/p' >want
    ./plain local v1/model.so >>want
    jaxcc v2/model.jaxpr -o "linked$1" --name=model || return 1
    archive=
    [ "$1" = .a ] || archive=$build/libjaxcc_rt.a
    cc -DLINKED -DHOSTILE -rdynamic $cflags "linked$1" $archive -pthread -o linked && ./linked global v1/model.so >got && cmp want got
}
# Nothing in a library is found by name but what is libc's; the three names are not asked for.
own_names() {
    ! readelf -rW v1/model.so | grep -w -e model -e model_error -e model_program -e jaxcc_rt_ && readelf -rW v1/model.so | grep -q RELATIVE
}
# called NAME: a program with a name that jaxcc-run, libc or jaxcc's own code has.
called() {
    printf '{ lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[]\n c:f32[2,3] = broadcast_in_dim[broadcast_dimensions=() shape=(2, 3)] b\n in (b, c) }' >"$1.jaxpr"
    jaxcc "$1.jaxpr" -o "$1.so" || return 1
    jaxcc-run "$1.so" one.npy >got && [ "$(sed -n 2p got)" = 2. ] && jaxcc-run --info "$1.so" | grep -q -x "$1"
}
# A library whose note lists a program that another one has.
borrowed() {
    printf 'const void *crc_program(void) { return 0; }\n' >other.c
    cc -shared -fPIC other.c -o libother.so || return 1
    cat >note.c <<'X'
__attribute__((section(".note.jaxcc"), used, aligned(4))) static const struct { int n, d, t; char owner[8], name[4]; } note = {6, 4, 1, "jaxcc", "crc"};
const void *crc_program(void);
const void *keep(void) { return crc_program(); }
X
    cc -w -shared -fPIC note.c -L. -lother -Wl,-rpath,"$PWD" -o note.so || return 1
    ! jaxcc-run --info note.so >got 2>&1 && grep -q "lists the program 'crc' but has no 'crc_program'" got
}
reserved() {
    for name in jaxcc_rt_error jaxcc_body _init; do
        jaxcc v2/model.jaxpr --name=$name -o reserved.so
        [ $? = 2 ] || return 1
    done
}
printf '\223NUMPY\001\000\106\000%-69s\n\000\000\200\077' "{'descr': '<f4', 'fortran_order': False, 'shape': ()}" >one.npy
for march in x86-64-v3 x86-64; do try "-march=$march: a host with functions like libm's and ours" level $march; done
try "two libraries of one name" pair
try "what a library refers to" own_names
for suffix in .a .o; do try "a library linked into a program, $suffix, and another loaded" linked $suffix; done
for name in crc32 deflate free memcpy read sqrt fmod main text_0 kernel_0; do try "a program called $name" called $name; done
try "a program of another library" borrowed
try "names that are ours" reserved
finish
