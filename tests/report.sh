#!/bin/sh
# report.sh BUILD: --report: what the JSON says of a program, on a CPU and a GPU; the page contains the same; the times that jaxcc-run adds.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
cat >m.jaxpr <<'TEXT'
{ lambda ; a:f32[64,256] b:f32[256,128] c:f32[64,b] d:f32[64,256]. let
    e:f32[64,256] = mul a d
    f:f32[64] = reduce_sum[axes=(1,)] e
    g:f32[64,128] = dot_general[dimension_numbers=(([1], [0]), ([], []))] a b
    h:f32[64,128] = tanh g
    i:f32[64,b] = exp c
    j:f32[64,b] k:f32[] = scan[_split_transpose=False jaxpr={ lambda ; l:f32[64,b] m:f32[]. let
          n:f32[64,b] = sin l
          o:f32[] = reduce_sum[axes=(0, 1)] n
        in (n, o) } length=7 linear=(False, False) num_carry=2 num_consts=0 reverse=False unroll=1] i 2.0:f32[]
  in (f, h, j, k) }
TEXT
report() { jaxcc m.jaxpr -o m.so "$@"; }
# has TEXT: the JSON contains it.
has() { grep -q -F -e "$1" m.json || { cat m.json; return 1; }; }
succeeds report -march=x86-64-v3 --report=m.json
succeeds has '"program":"m.jaxpr","name":"m","level":2'
succeeds has '"dimensions":["b"]'
# sums of products of 64 × 256 numbers, in one kernel; both operands are read once, 64 sums are written
try 'a reduction and what it reduces are a kernel' has '"number":"1","kind":"loops","symbol":"kernel_0","first":1,"last":1,"equations":[{"primitive":"mul"'
try 'and the next kernel is a product' has '"number":"2","kind":"product"'
try 'the workspace' has '"buffers":[{"value":"i","offset":0,"bytes":"256*b","first":3,'
try 'where it was written' has '"value":"j","type":"f32[64,b]","bytes":"256*b","from":"4"'
try 'operations of a reduction' has '"operations":32768,"bytes":131328,'
try 'lines of equations' has '{"primitive":"mul","type":"f32[64,256]","line":2,"column":21}'
# 2 · 64 · 256 · 128, and 20 for each tanh
try 'operations of a product' has '"operations":4358144,'
try 'bytes of a product' has '"bytes":229376,'
try 'what a product writes' has '"to":"output 1"'
try 'symbolic sizes' has '"operations":"1280*b"'
try 'no time for symbolic sizes' has '"nanoseconds":null,"bound":null'
try 'turns of a loop' has '"turns":7,"bodies":[[{"number":"'
try 'nominal memory' has '"machine":{"launch":0,"memory":[[1048576,118],'
# Brackets match, outside strings.
balanced() {
    sed 's/"[^"]*"//g' m.json | tr -d '\n' | awk '{
        n = split($0, c, "")
        for (i = 1; i <= n; i++)
            if (c[i] ~ /[[{]/) open[++d] = c[i]
            else if (c[i] == "]" || c[i] == "}") { if (d < 1 || open[d--] != (c[i] == "]" ? "[" : "{")) bad = 1 }
            else if (c[i] == "," && c[i + 1] ~ /[],}]/) bad = 1
        exit bad || d
    }'
}
succeeds balanced
try 'a level each' report -march=x86-64-v2,x86-64-v4 --report=m.json
two() { [ "$(grep -o '"cpu":"x86-64-v[24]"' m.json | tr '\n' ' ')" = '"cpu":"x86-64-v2" "cpu":"x86-64-v4" ' ]; }
succeeds two
try 'a GPU' report --target=nvptx64 -march=sm_90 --report=m.json
try 'the GPU is named' has '"cpu":"sm_90"'
try 'threads' has '"threads":'
succeeds balanced
# 64 columns of 4096 terms: a thread has 4 of them, so that 16 have a row; 32 parts of 128 rows are a block each. Another kernel goes on.
echo '{ lambda ; a:f32[4096,64]. let
    b:f32[64] = reduce_sum[axes=(0,) out_sharding=None] a
    c:f32[1,64] = reshape[dimensions=None new_sizes=(1, 64) sharding=None] b
    d:f32[4096,64] = div a c
  in (d,) }' >c.jaxpr
try 'few columns' jaxcc c.jaxpr -o c.so --target=nvptx64 -march=sm_90 --report=m.json
try 'what reads their sums and terms is another kernel' has '"apart":"rows that are so few are reduced in parts, before it"'
try 'which reads the terms again' has '{"value":"a","type":"f32[4096,64]","bytes":1048576,"from":"input"},{"value":"b","type":"f32[64]","bytes":256,"from":"1"}'
try 'blocks of the sums' has '"threads":256,"blocks":32'
# 2^20 rows of 32 terms: 8 threads have 4 rows, so that each reads 16 terms at once; 128 rows are a block.
echo '{ lambda ; a:f32[1048576,32]. let b:f32[1048576] = reduce_sum[axes=(1,) out_sharding=None] a in (b,) }' >c.jaxpr
try 'short rows' jaxcc c.jaxpr -o c.so --target=nvptx64 -march=sm_90 --report=m.json
try 'several rows of a thread' has '"threads":256,"blocks":8192'
# The 254 rows of a window that is reduced as a whole are 16 parts.
echo '{ lambda ; a:f32[256,256]. let
    b:f32[254,254] = slice[limit_indices=(255, 255) start_indices=(1, 1) strides=None] a
    c:f32[] = reduce_max[axes=(0, 1) out_sharding=None] b
  in (c,) }' >c.jaxpr
try 'a window' jaxcc c.jaxpr -o c.so --target=nvptx64 -march=sm_90 --report=m.json
try 'parts of it' has '"threads":256,"blocks":16'
# Sums of 256 terms are too short for parts; tiles of 16 x 32 keep more of the GPU busy.
echo '{ lambda ; a:f32[64,256] b:f32[256,1024]. let
    c:f32[64,1024] = dot_general[dimension_numbers=(([1], [0]), ([], [])) precision=None preferred_element_type=float32] a b
  in (c,) }' >c.jaxpr
try 'a short product' jaxcc c.jaxpr -o c.so --target=nvptx64 -march=sm_90 --report=m.json
try 'small tiles of it' has '"threads":256,"blocks":128'
# The page: the JSON is in it, and nothing that is elsewhere.
page() {
    report -march=x86-64-v3 --report=m.json && report -march=x86-64-v3 --report=m.html && grep -q '"plans":\[{"name":"m"' m.html &&
        ! grep -q '@REPORT@' m.html && [ "$(grep -c 'https\?://' m.html)" = "$(grep -c 'http://www.w3.org/2000/svg' m.html)" ] &&
        [ "$(grep '^<script type="application/json"' m.html | sed 's/^[^>]*>//; s/<[^<]*$//')" = "$(cat m.json)" ]
}
succeeds page
# What does not join, what is computed again, C code; the dimensions of all functions; functions and devices have plans of their own.
cat >n.jaxpr <<'TEXT'
{ lambda ; a:f32[64,64]. let
    b:f32[64,64] = mul a 2.0:f32[]
    c:f32[64,64] = cholesky[symmetrize_input=False] b
    d:f32[64] = reduce_max[axes=(0,)] a
    e:f32[1,64] = reshape[dimensions=None new_sizes=(1, 64) sharding=None] d
    f:f32[64,64] = sub c e
    g:f32[64] = reduce_sum[axes=(1,)] f
  in (c, g) }
TEXT
in_n() { grep -q -F -e "$1" n.json || { cat n.json; return 1; }; }
succeeds jaxcc n.jaxpr -o n.so -MD --entry 'x:--vmap=0' --report=n.json
try 'computed where it is read' in_n '{"primitive":"mul","type":"f32[64,64]","line":2,"column":20,"again":true}'
try 'what C code reads' in_n '"kind":"runtime"'
try 'from a kernel that only copies' in_n '"reads":[{"value":"b","type":"f32[64,64]","bytes":16384,"from":"1"}]'
try 'dimensions of another function' in_n '"dimensions":["batch"]'
try '-MD names it' grep -q '^n.so n.h n.json:' n.d
succeeds jaxcc "$root/tests/cases/collective-pmap.jaxpr" -o p.so --report=n.json
try 'devices' in_n '"kind":"devices","calls":"collective_pmap.device_'
try 'their plan' in_n '{"name":"collective_pmap.device_'
# Measured times: nearly all samples are in kernels, whose names the report has.
measured() {
    echo '{ lambda ; a:f32[512,512] b:f32[512,512]. let c:f32[512,512] = dot_general[dimension_numbers=(([1], [0]), ([], []))] a b
        d:f32[512,512] = tanh c
        e:f32[512] = reduce_sum[axes=(0,)] d in (e,) }' >p.jaxpr
    echo '{ lambda ; . let a:f32[512,512] = broadcast_in_dim[broadcast_dimensions=() shape=(512, 512) sharding=None] 0.1:f32[] in (a, a) }' >ones.jaxpr
    jaxcc p.jaxpr -o p.so --report=p.json && jaxcc ones.jaxpr -o ones.so && jaxcc-run ones.so -o in.npz &&
        jaxcc-run --bench=0.5 --threads 1 --profile profile.json p.so in.npz || return 1
    symbol=$(sed 's/.*"kind":"product","symbol":"\([^"]*\)".*/\1/' p.json)
    sed 's/.*"nanoseconds":\([0-9.]*\),.*"'"$symbol"'":\([0-9.]*\).*/\1 \2/' profile.json | awk '{ print; exit !($2 > 0.5 * $1 && $2 <= $1) }'
}
succeeds measured
profiled_without() { jaxcc-run --profile x.json m.so; [ $? = 2 ] && [ ! -e x.json ]; }
try '--profile without --bench' profiled_without
over() {
    cp p.so q.so
    jaxcc-run --bench=0.01 --profile q.so q.so in.npz
    [ $? = 2 ] && cmp p.so q.so
}
try 'a profile over the library' over
unwritable() { jaxcc-run --bench=0.01 --profile none/x.json p.so in.npz; [ $? = 1 ]; }
try 'a profile that cannot be written' unwritable
# A text that would end the script of the page does not.
strange() {
    { echo '# </script><b>'; cat m.jaxpr; } >s.jaxpr
    jaxcc s.jaxpr -o s.so --report=s.html && ! grep -q '</script><b>' s.html
}
succeeds strange
fails() {
    words=$1 status=$2
    shift 2
    rm -f m.so m.txt
    "$@" >"$work/said" 2>&1
    [ $? = "$status" ] && grep -q -e "$words" "$work/said" && [ ! -e m.so ]
}
try 'the suffix' fails 'FILE.html or FILE.json' 2 report --report=m.txt
try '--check' fails 'which --check ends before' 2 report --check --report=m.json
try '--emit=jaxpr' fails 'which --emit ends before' 2 report --emit=jaxpr --report=m.json
try 'a folder that is not there' fails 'none/m.json' 1 report --report=none/m.json
finish
