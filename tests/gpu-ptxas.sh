#!/bin/sh
# gpu-ptxas.sh BUILD PART DIR...: where NVIDIA's ptxas is installed, it assembles the PTX of a part of the programs of the folders (all: 1) for each
# of four chips, for sm_90a of those with products; a table says how many kernels there are, the most registers of one, and how many spill
# registers to memory, which the programs named dot-… do not; those named dot-tiles_f32… have at most 128, two blocks on a multiprocessor.
if [ "$1" = --one ]; then # --one JAXCC CHIP FILE FLAGS: a line for each kernel: registers, bytes that are spilled, file
    ptx=$(mktemp) log=$(mktemp)
    trap 'rm -f "$ptx" "$log"' EXIT
    jaxcc=$2 chip=$3 file=$4
    [ "$5" = - ] || flags=$5
    $jaxcc -w --target=nvptx64 "-march=$chip" --emit=ptx $flags "$file" -o "$ptx" 2>"$log" || exit 0 # gpu-cases.sh says what is refused
    grep -q '^\.visible \.entry' "$ptx" || exit 0
    if ptxas "-arch=$chip" -v "$ptx" -o /dev/null >"$log" 2>&1; then
        awk -v file="$file" '/bytes spill stores/ { spills = $5 } / Used [0-9]+ registers/ { for (i = 1; i < NF; i++) if ($i == "Used") print $(i + 1), spills, file }' "$log"
    else
        echo "FAIL $file: $(grep -m1 -i error "$log")"
    fi
    exit
fi
cd "$(dirname "$0")/.." || exit 1
build=$1 part=$2
shift 2
command -v ptxas >/dev/null || { echo "gpu-ptxas: 0 passed, 0 failed" && exit; }
found=$(mktemp)
trap 'rm -f "$found"' EXIT
programs() { # file and flags of the part
    for folder; do
        find "$folder" -name '*.jaxpr' | sort | awk -v part="$part" 'int(NR * part) != int((NR - 1) * part)' | while read -r file; do
            [ "$chip" != sm_90a ] || grep -q dot_general "$file" || continue
            flags=$(awk -F'\t' -v stem="$(basename "$file" .jaxpr)" '$1 == stem { print $5; exit }' "$(dirname "$file")/MANIFEST.tsv" 2>/dev/null)
            printf '%s\0%s\0' "$file" "${flags:--}"
        done
    done
}
passed=0 failed=0
for chip in sm_80 sm_90 sm_90a sm_100; do
    programs "$@" | xargs -0 -n 2 -P "$(nproc)" sh "$0" --one "$build/bin/jaxcc" $chip >"$found"
    bad=$(awk '!/FAIL/ && $2 && $3 ~ /\/dot-/ { print "FAIL " $3 ": a product spills" }
        !/FAIL/ && $1 > 128 && $3 ~ /\/dot-tiles_f32/ { print "FAIL " $3 ": a tile of f32 has " $1 " registers" }' "$found")
    [ -z "$bad" ] || echo "$bad" >>"$found"
    grep FAIL "$found"
    awk -v chip=$chip '!/FAIL/ { n++; if ($1 > most) { most = $1; where = $3 } if ($2) { spilling++; print "    " $2 " bytes are spilled: " $3 } }
        END { printf "%-7s %5d kernels, at most %3d registers (%s), %d spill\n", chip, n, most, where, spilling }' "$found"
    failed=$((failed + $(grep -c FAIL "$found"))) passed=$((passed + $(grep -vc FAIL "$found")))
done
echo "gpu-ptxas: $passed passed, $failed failed"
