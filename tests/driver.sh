#!/bin/sh
# driver.sh BUILD MODE: jaxcc as a command: what it writes and where, its statuses, the options that text tests do not reach.
. "$(dirname "$0")/try.sh"
examples=$root/examples
cd "$work" || exit 1
# expect STATUS TEXT ARGS...: the status, and TEXT (a basic regular expression) somewhere in what is printed.
expect() {
    status=$1 text=$2
    shift 2
    jaxcc "$@" >"$work/log" 2>&1 <m.jaxpr
    got=$?
    [ $got = "$status" ] && { [ -z "$text" ] || grep -q -e "$text" "$work/log"; }
    count $? "jaxcc $*: status $got instead of $status, or no '$text'"
}
# made FILE...: exactly these files are here besides the inputs; they are removed.
made() {
    touch log
    here=$(ls | grep -v -x -e log -e m.jaxpr -e c.jaxpr -e list | sort | tr '\n' ' ')
    want=$(for f; do echo "$f"; done | sort | tr '\n' ' ')
    [ "$here" = "$want" ]
    count $? "files '$here' instead of '$want'"
    rm -f "$@"
}
cat >m.jaxpr <<'X'
{ lambda ; a:f32[b,4]. let c:f32[b,4] = add a 1.0:f32[] in (c,) }
X
cat >c.jaxpr <<'X'
{ lambda a:f32[2]; b:f32[2]. let c:f32[2] = mul a b in (c,) }
X

expect 0 '' m.jaxpr
made m.so m.h
expect 0 '' m.jaxpr -o x.a --name=f
made x.a x.h
expect 0 '' m.jaxpr -o x.o --no-header
made x.o
expect 0 '' m.jaxpr --header=y.h
made m.so y.h
expect 0 'llvm.func' m.jaxpr --emit=mlir
expect 0 'define' m.jaxpr --emit=llvm
expect 0 '\.globl' m.jaxpr --emit=asm
expect 0 'int32_t m(int64_t b' m.jaxpr --emit=header
expect 0 'f32\[b,4\], True' m.jaxpr --emit=types
expect 0 'add a 1.0:f32\[\]' - --emit=jaxpr
expect 0 'f32\[3,4\]' m.jaxpr --emit=jaxpr -D b=3
expect 0 '' m.jaxpr --check '--in-type=f32[3,4]' # declared types may agree on a condition
expect 1 'declared as f32' m.jaxpr --check '--in-type=f32[3,5]'
head -c 200000000 /dev/zero | jaxcc - >log 2>&1
[ $? = 1 ] && grep -q 'standard input has more than' log
count $? "a text that never ends is read no further than the limit"
made
expect 0 '' m.jaxpr -o d.jaxpr -Db=3
made d.jaxpr
expect 0 '' - -o lib.so
grep -q 'int32_t lib(' lib.h
count $? "the function of standard input is called like OUT"
made lib.so lib.h
expect 0 '' m.jaxpr -MD
printf 'm.so m.h: m.jaxpr\n' | cmp -s - m.d
count $? "-MD"
made m.so m.h m.d
consts=$examples/classify.consts.npz
expect 0 '' "$examples/classify.jaxpr" --consts="$consts" -o 'a $b.so' -MD -MP
printf 'a\\ $$b.so a\\ $$b.h: %s %s\n%s:\n' "$examples/classify.jaxpr" "$consts" "$consts" | cmp - 'a $b.d'
count $? "-MD -MP"
rm a*b.*
expect 0 '' m.jaxpr -o n.so -MD -MF n.dep
made n.so n.h n.dep
expect 2 'MF needs -MD' m.jaxpr -MF x.d
expect 2 'MP needs -MD' m.jaxpr -MP
expect 2 'needs -MF' m.jaxpr -MD --emit=mlir
expect 0 'llvm.func' m.jaxpr -MD -MF x.d --emit=mlir
made x.d
expect 0 'jaxcc [0-9]' --version
expect 2 "did you mean '--grad=0'?" --grad 0 m.jaxpr
expect 2 "did you mean '--value-and-grad=0,1'?" m.jaxpr --value-and-grad 0,1
expect 2 "more than one input: 'm.jaxpr' and '0'$" m.jaxpr --jvp 0
expect 2 "did you mean '--grad'?" m.jaxpr --gradient
expect 2 "did you mean '-march='?" m.jaxpr --march=native
expect 0 'usage: jaxcc' --help
expect 0 '^  --grad\[=ARGS\]        give' --help
expect 0 '^  --value-and-grad\[=ARGS\]$' --help
expect 0 '^                       the output, then' --help
expect 0 'total' m.jaxpr -o t.so -ftime-report
made t.so t.h
expect 0 'jaxcc [0-9]' m.jaxpr -o t.so -v
made t.so t.h
expect 0 '' m.jaxpr -o t.so -save-temps
made t.so t.h t.mlir t.ll t.s t.o
printf -- "--emit=jaxpr -D\tb=7 'm.jaxpr'\n" >list
expect 0 'f32\[7,4\]' @list
for level in 0 1 2 3; do expect 0 '' m.jaxpr -O$level -o o.so --no-header; made o.so; done
expect 0 '' m.jaxpr -g -ffast-math -march=x86-64-v3 -o o.so --no-header
made o.so
expect 0 '' m.jaxpr --check
made

expect 0 'warning: .*.b. is given more than once' m.jaxpr --emit=jaxpr -D b=2 -D b=3
expect 0 'warning: .*no dimension .zz' m.jaxpr --emit=jaxpr -D zz=3
expect 1 'error: .*no dimension .zz' m.jaxpr --emit=jaxpr -D zz=3 -Werror
expect 0 '' m.jaxpr --emit=jaxpr -D zz=3 -Wno-unknown-dimension
expect 0 "warning: .*'exp'" m.jaxpr --name=exp -o e.so
made e.so e.h
expect 1 "error: .*'exp'" m.jaxpr --name=exp -o e.so -Werror=name
made
expect 0 '' m.jaxpr --emit=jaxpr -D zz=3 -w -Werror
! grep -q -e zz log
count $? "-w"
expect 0 '' m.jaxpr --target=x86_64-linux-gnu --no-header -o x.so
made x.so
for target in x86_64-unknown-linux-gnu x86_64-pc-linux-gnu x86_64-redhat-linux; do
    expect 0 '' m.jaxpr --target=$target --no-header -o x.so
    made x.so
done
for target in aarch64-linux-gnu x86_64 x86_64-linux-musl x86_64-linux-gnux32 x86_64-unknown-linux-android \
    x86_64h-linux-gnu x86_64--linux-gnu x86_64-a-b-linux-gnu x86_64-w64-mingw32 linux nvptx nvptx64-amd-cuda; do
    expect 1 "^jaxcc: error: --target=$target is not supported yet; x86_64-linux-gnu and nvptx64 are$" m.jaxpr --target=$target -o x.so
    made
done
expect 2 "'--vjp' takes no value" m.jaxpr --vjp=0
expect 2 "'-march=' wants ARCH" m.jaxpr -march=
expect 2 'it takes numbers of inputs' m.jaxpr --grad=0,,1
expect 2 'it takes numbers of inputs' m.jaxpr --grad=
expect 2 'it takes numbers of inputs' m.jaxpr --value-and-grad=x
expect 2 'it takes numbers of inputs' m.jaxpr --grad=-1
expect 2 'input 1 is listed twice' m.jaxpr --grad=1,0,1
expect 2 '--grad=1 needs a checked program' m.jaxpr --emit=jaxpr --no-check --grad=1
expect 2 'no input' -o x.so
expect 2 'unknown kind' m.jaxpr --emit=exe
expect 1 'error: --emit=ptx is for --target=nvptx64$' m.jaxpr -o m.ptx
expect 1 'error: --emit=ptx is for --target=nvptx64$' m.jaxpr --emit=ptx
expect 1 "No such file" missing.jaxpr
expect 1 "No such file" m.jaxpr --consts=missing.npz
expect 1 'const0' c.jaxpr --consts="$examples/train.in.npz"
expect 1 "No such file" m.jaxpr -o no/such/folder/x.so
expect 1 "unknown CPU 'no-such-cpu'$" m.jaxpr -march=no-such-cpu
expect 1 "unknown CPU 'haswel'; did you mean 'haswell'?" m.jaxpr -mcpu=haswel
expect 1 "unknown CPU 'pentium4'" m.jaxpr -march=pentium4
# A CPU's code is that of its level, but for whose costs count.
for cpu in k8:x86-64 atom:x86-64 btver2:x86-64-v2 bdver4:x86-64-v3 alderlake:x86-64-v3 knl:x86-64-v3 znver5:x86-64-v4; do
    for name in "${cpu%:*}" "${cpu#*:}"; do
        jaxcc m.jaxpr -march="$name" --emit=llvm 2>&1 | sed "s/\"tune-cpu\"=\"$name\"/TUNED/" >"$name.ll"
    done
    grep -q TUNED "${cpu%:*}.ll" && cmp -s "${cpu%:*}.ll" "${cpu#*:}.ll"
    count $? "-march=${cpu%:*} is ${cpu#*:}"
done
rm -f ./*.ll
expect 1 'error' . --check
made
if [ -w /dev/full ]; then
    jaxcc m.jaxpr --emit=jaxpr >/dev/full 2>log
    [ $? = 1 ] && grep -q 'No space left' log
    count $? "a full device"
fi
jaxcc m.jaxpr -o /dev/null --emit=so && [ -c /dev/null ] && [ ! -e /dev/null.h ]
count $? "-o /dev/null"
(trap '' CHLD && exec jaxcc m.jaxpr -o t.so --no-header) >log 2>&1
count $? "a parent that ignores SIGCHLD"
made t.so
jaxcc m.jaxpr --emit=asm -o /dev/stdout | grep -q globl
count $? "-o /dev/stdout"
echo '{ lambda ; a:f32[8,8]. let b:f32[8,8] = dot_general[dimension_numbers=(([1], [0]), ([], []))] a a
    c:f32[8,8] = max b 0.0:f32[] in (c,) }' >m.jaxpr
[ "$(jaxcc m.jaxpr --emit=mlir | grep -c 'func.*@kernel_')" = 1 ]
count $? "what is computed from a product is stored by its kernel"
awk 'BEGIN { print "{ lambda ; a0:f32[8]. let"; for (i = 0; i < 100000; i++) print "a" i + 1 ":f32[8] = mul a" i " a0"; print "in (a100000,) }" }' >m.jaxpr
timeout $([ "$mode" = release ] && echo 10 || echo 100) jaxcc --check m.jaxpr
count $? "100,000 equations"
finish
