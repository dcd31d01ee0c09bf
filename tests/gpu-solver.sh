#!/bin/sh
# gpu-solver.sh BUILD MODE: linear algebra with large matrices on GPUs (runtime/cuda_solver.c), on the driver for tests with a cuSOLVER for tests
# (cusolver.c): the same results as on the host, of all element types; without cuSOLVER the host computes; failures; no handle is left.
. "$(dirname "$0")/try.sh"
gpu=$build/tests/gpu
[ "$mode" = asan ] && sanitize=-fsanitize=address,undefined || sanitize= # as the driver for tests is

# matrix NAME ROWS COLUMNS: a matrix of $type, with numbers from -1 to 1
matrix() {
    cat <<X1
    $1i:i32[$2,$3] = iota[dimension=0 dtype=int32 shape=($2, $3)]
    $1j:i32[$2,$3] = iota[dimension=1 dtype=int32 shape=($2, $3)]
    $1k:i32[$2,$3] = mul $1i 7:i32[]
    $1l:i32[$2,$3] = mul $1j $1j
    $1m:i32[$2,$3] = mul $1k $1l
    $1n:i32[$2,$3] = add $1m $1j
    $1o:$real[$2,$3] = convert_element_type[new_dtype=$long weak_type=False] $1n
    $1p:$real[$2,$3] = sin $1o
X1
    case $type in
    c*) echo "    $1q:$real[$2,$3] = cos $1o
    $1:$type[$2,$3] = complex $1p $1q" ;;
    *) echo "    $1:$type[$2,$3] = mul $1p 1.0:$type[]" ;;
    esac
}
# adjoint TO FROM ROWS COLUMNS: of a matrix of these rows and columns
adjoint() {
    case $type in
    c*) echo "    $1t:$type[$4,$3] = transpose[permutation=(1, 0)] $2
    $1a:$real[$4,$3] = real $1t
    $1b:$real[$4,$3] = imag $1t
    $1c:$real[$4,$3] = neg $1b
    $1:$type[$4,$3] = complex $1a $1c" ;;
    *) echo "    $1:$type[$4,$3] = transpose[permutation=(1, 0)] $2" ;;
    esac
}
# product TO A B ROWS COLUMNS
product() {
    echo "    $1:$type[$4,$5] = dot_general[
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=None
    ] $2 $3"
}
# scaled TO MATRIX VALUES ROWS COLUMNS: the columns times the values
scaled() {
    case $type in
    c*) echo "    $1z:$real[$5] = mul $3 0.0:$real[]
    $1v:$type[$5] = complex $3 $1z" ;;
    *) echo "    $1v:$type[$5] = mul $3 1.0:$type[]" ;;
    esac
    echo "    $1w:$type[$4,$5] = broadcast_in_dim[broadcast_dimensions=(1,) shape=($4, $5)] $1v
    $1:$type[$4,$5] = mul $2 $1w"
}
# positive TO FROM: a Hermitian positive definite matrix
positive() {
    adjoint ph "$2" 130 130
    product pp "$2" ph 130 130
    echo "    pi:bool[130,130] = eq ${2}i ${2}j
    pe:$type[130,130] = convert_element_type[new_dtype=$element weak_type=False] pi
    $1:$type[130,130] = add pp pe"
}
program() {
    echo '{ lambda ; . let'
    "$1"
    echo "  in ($2) }"
}
cholesky() {
    matrix a 130 130 && positive s a
    echo "    c:$type[130,130] = cholesky s"
}
# The second is not close to a singular matrix only with ones added to its diagonal.
lu() {
    matrix a 150 130 && matrix b 129 140
    echo "    p:bool[129,140] = eq bi bj
    q:$type[129,140] = convert_element_type[new_dtype=$element weak_type=False] p
    r:$type[129,140] = add b q
    c:$type[150,130] d:i32[130] e:i32[150] = lu a
    f:$type[129,140] g:i32[129] h:i32[129] = lu r"
}
qr() {
    matrix a 150 130 && matrix b 64 128
    echo "    c:$type[150,130] d:$type[130] = geqrf a
    e:$type[150,130] = householder_product c d
    f:$type[64,128] g:$type[64] = geqrf b"
}
solve() {
    matrix a 130 130 && positive s a && matrix b 130 3
    echo "    l:$type[130,130] = cholesky s"
    for way in 'True False True' 'True True False' 'False False False' 'False True True'; do
        set -- $way
        case $way in 'True F'*) y=c ;; 'True T'*) y=d ;; 'False F'*) y=e ;; *) y=f ;; esac
        echo "    $y:$type[130,3] = triangular_solve[
      conjugate_a=False
      left_side=True
      lower=$1
      transpose_a=$2
      unit_diagonal=False
    ] $( [ "$1" = True ] && echo l || echo u) b"
    done | awk -v up="    u:$type[130,130] = transpose[permutation=(1, 0)] l" '/lower=False/ && !done { done = 1 } { line[NR] = $0 } END { print up; for (i = 1; i <= NR; i++) print line[i] }'
}
values() {
    matrix a 130 130 && adjoint ah a 130 130
    echo "    s:$type[130,130] = add a ah
    v:$type[130,130] w:$real[130] = eigh[
      algorithm=None
      lower=True
      sort_eigenvalues=True
      subset_by_index=None
    ] s"
    adjoint vh v 130 130 && scaled vs v w 130 130 && product c vs vh 130 130 && product d vh v 130 130
}
# singular TO ROWS COLUMNS LEAST: values, and the product of the factors
singular() {
    matrix "m$1" "$2" "$3"
    echo "    w$1:$real[$4] u$1:$type[$2,$4] v$1:$type[$4,$3] = svd[
      algorithm=None
      compute_uv=True
      full_matrices=False
      subset_by_index=None
    ] m$1"
    scaled "s$1" "u$1" "w$1" "$2" "$4" && product "p$1" "s$1" "v$1" "$2" "$3"
}
factors() {
    singular a 140 50 50 && singular b 50 140 50 && singular c 130 130 130
}
full() {
    matrix a 140 40 && matrix b 40 140
    for k in a b; do
        [ $k = a ] && m=140 n=40 || m=40 n=140
        echo "    w$k:$real[40] u$k:$type[$m,$m] v$k:$type[$n,$n] = svd[
      algorithm=None
      compute_uv=True
      full_matrices=True
      subset_by_index=None
    ] $k
    x$k:$real[40] = svd[algorithm=None compute_uv=False full_matrices=False subset_by_index=None] $k
    ${k}f:$type[$m,40] = slice[limit_indices=($m, 40) start_indices=(0, 0) strides=None] u$k
    ${k}g:$type[40,$n] = slice[limit_indices=(40, $n) start_indices=(0, 0) strides=None] v$k"
        adjoint "h$k" "u$k" $m $m && product "c$k" "h$k" "u$k" $m $m
        adjoint "k$k" "v$k" $n $n && product "d$k" "k$k" "v$k" $n $n
        scaled "s$k" "${k}f" "w$k" $m 40 && product "p$k" "s$k" "${k}g" $m $n
    done
}
# expected [VARIABLE=VALUE...]: the last program, on a GPU with cuSOLVER, gives the numbers of the host
expected() {
    env LD_LIBRARY_PATH="$gpu/solver:$gpu" JAXCC_SOLVER_LOG="$work/used" JAXCC_GPU_LEAKS="$work/leaks" JAXCC_GPU_LAZY=1 "$@" \
        jaxcc-run "$work/gpu.so" --rtol "$tolerance" --atol "$tolerance" --expect "$work/want.npz"
}
clean() { ! grep left "$work/used" && ! [ -s "$work/leaks" ]; }
# agrees NAME OUTPUTS FUNCTION: a program of these outputs gives on a GPU what it gives on the host, by this function of cuSOLVER
agrees() {
    program "$1" "$2" >"$work/$1.jaxpr"
    jaxcc -w "$work/$1.jaxpr" -o "$work/cpu.so" && jaxcc-run "$work/cpu.so" -o "$work/want.npz" &&
        jaxcc -w --target=nvptx64 "$work/$1.jaxpr" -o "$work/gpu.so" || return 1
    rm -f "$work/used"
    expected && clean && grep "$3" "$work/used"
}
for type in f32 f64 c64 c128; do
    case $type in
    f32) real=f32 long=float32 element=float32 letter=S tolerance=5e-3 ;;
    f64) real=f64 long=float64 element=float64 letter=D tolerance=1e-9 ;;
    c64) real=f32 long=float32 element=complex64 letter=C tolerance=5e-3 ;;
    c128) real=f64 long=float64 element=complex128 letter=Z tolerance=1e-9 ;;
    esac
    case $type in c*) of=un symmetric=heevd ;; *) of=or symmetric=syevd ;; esac
    case $type in
    f32 | c128)
        try "$type cholesky" agrees cholesky 'c,' "Dn${letter}potrf"
        try "$type lu" agrees lu 'c, d, e, f, g, h' "Dn${letter}getrf"
        try "$type qr" agrees qr 'c, d, e, f, g' "Dn$letter${of}gqr"
        try "$type triangular solves" agrees solve 'c, d, e, f' "cublas${letter}trsm"
        ;;
    *)
        try "$type eigenvalues" agrees values 'w, c, d' "Dn$letter$symmetric"
        try "$type singular values" agrees factors 'wa, pa, wb, pb, wc, pc' "Dn${letter}gesvd"
        try "$type full singular vectors" agrees full 'wa, ca, da, pa, xa, wb, cb, db, pb, xb' "Dn${letter}gesvd"
        ;;
    esac
done
# The last program: cuSOLVER does not start; an error of it; what does not fit is said.
without() {
    rm -f "$work/used"
    expected JAXCC_SOLVER_FAIL="$1:1" && clean && [ "$(grep -c . "$work/used")" = "$2" ]
}
try "without cuSOLVER" without cusolverDnCreate 1
try "without cuBLAS" without cublasCreate 2
refused() {
    expected JAXCC_SOLVER_FAIL="$1" >"$work/said" 2>&1
    grep "$2" "$work/said" && clean
}
try "an error" refused trsm:13 "status 7: GPU 0: cuBLAS' trsm failed with status 13"
try "no memory" refused trsm:3 "status 3: GPU 0: cuBLAS' trsm failed with status 3"
# Matrices that have no factor are NaN, the others of the batch are not.
indefinite() {
    echo '{ lambda ; a:f64[2,128,128]. let b:f64[2,128,128] = cholesky a
        c:bool[2,128,128] = is_finite b
        d:bool[2] = reduce_and[axes=(1, 2)] c in (d,) }' >"$work/factor.jaxpr"
    echo '{ lambda ; . let i:i32[2,128,128] = iota[dimension=1 dtype=int32 shape=(2, 128, 128)]
        j:i32[2,128,128] = iota[dimension=2 dtype=int32 shape=(2, 128, 128)]
        k:i32[2,128,128] = iota[dimension=0 dtype=int32 shape=(2, 128, 128)]
        l:bool[2,128,128] = eq i j
        m:f64[2,128,128] = convert_element_type[new_dtype=float64 weak_type=False] l
        n:f64[2,128,128] = convert_element_type[new_dtype=float64 weak_type=False] k
        o:f64[2,128,128] = sub m n in (o,) }' >"$work/matrices.jaxpr"
    jaxcc -w "$work/matrices.jaxpr" -o "$work/matrices.so" && jaxcc-run "$work/matrices.so" -o "$work/in.npz" &&
        jaxcc -w --target=nvptx64 "$work/factor.jaxpr" -o "$work/factor.so" &&
        LD_LIBRARY_PATH="$gpu/solver:$gpu" jaxcc-run "$work/factor.so" "$work/in.npz" >"$work/said" && grep '\[ True False\]' "$work/said"
}
try "a matrix without a factor" indefinite
# Handles go when the library does and when the process ends.
ends() {
    cat >"$work/ends.c" <<'X1'
#include "factor.h"
#include <stdlib.h>
int main(int n, char **arguments) {
    static double a[2][128][128], d[2 * 128];
    for (int i = 0; i < 128; i++) a[0][i][i] = a[1][i][i] = 1;
    for (; n > 0; n--) {
        int status = factor(a[0][0], (void *)d);
        if (status || !((char *)d)[0] || !((char *)d)[1]) return 1;
    }
    return 0;
}
X1
    rm -f "$work/used"
    cc $sanitize -I"$work" "$work/ends.c" "$work/factor.so" -Wl,-rpath,"$work" -o "$work/ends" &&
        LD_LIBRARY_PATH="$gpu/solver:$gpu" JAXCC_SOLVER_LOG="$work/used" "$work/ends" && grep potrf "$work/used" && ! grep left "$work/used"
}
try "the end of the process" ends
# starts STATUS FUNCTION USES STARTS CALLS: of three calls so many are by cuSOLVER, which so often has been started, if a start answers this
starts() {
    rm -f "$work/used"
    LD_LIBRARY_PATH="$gpu/solver:$gpu" JAXCC_SOLVER_LOG="$work/used" JAXCC_SOLVER_FAIL="$2:$1$3" "$work/ends" twice again || return 1
    [ "$(grep -c "$2" "$work/used")" = "$4" ] && [ "$(grep -c 'potrf$' "$work/used")" = $((2 * $5)) ] && ! grep left "$work/used"
}
try "cuSOLVER has no memory, once" starts 2 cusolverDnCreate :1 2 2
try "cuBLAS has no memory, once" starts 3 cublasCreate :1 2 2
try "cuSOLVER is of another GPU" starts 4 cusolverDnCreate "" 1 0
try "cuBLAS is of another GPU" starts 8 cublasCreate "" 1 0
try "cuSOLVER does not start" starts 1 cusolverDnCreate "" 2 0
finish
