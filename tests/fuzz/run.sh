#!/bin/sh
# run.sh BUILD SECONDS: both fuzzers at once, each that long on one core; 1 s of processor time (limit.h), 1 min of the clock and 1 GiB for an
# input. Seeds are the programs of this tree and of shared/; the dictionary is the words of the tables. What fails lies in BUILD/fuzz/finds.
cd "$(dirname "$0")/../.." || exit 1
build=$1 seconds=$2
fuzz=$build/fuzz
mkdir -p "$fuzz/finds" "$fuzz/corpus" "$fuzz/typed-corpus" "$fuzz/seeds"
find tests stdlib examples ../shared -name '*.jaxpr' -size -9k 2>/dev/null | while read -r file; do
    cp "$file" "$fuzz/seeds/$(echo "$file" | tr / _)"
done
{
    sed -n 's/^PRIM([^,]*, *\("[^"]*"\).*/\1/p' compiler/prims.def
    sed -n 's/^PARAM(\([A-Za-z_0-9]*\),.*/"\1="/p' compiler/params.def
    sed -n 's/^DTYPE(\([a-z_0-9]*\), *\("[^"]*"\).*/"\1["\n\2/p' compiler/dtypes.def
    for word in '{ lambda ; ' ' let ' ' in ' 'in (' 'None' 'True' 'inf' 'nan' 'floordiv' 'mod' 'max(' 'min(' '<-' 'Ref{' '} ' '_:'; do
        echo "\"$word\""
    done
} | sort -u >"$fuzz/words.dict"
missing=$("$fuzz/typed" --rows)
[ -z "$missing" ] || echo "fuzz typed: no program has" $missing
options="-timeout=60 -rss_limit_mb=1024 -max_total_time=$seconds -print_final_stats=1 -artifact_prefix=$fuzz/finds/"
status=0; [ -z "$missing" ] || status=1
# shellcheck disable=SC2086
nice "$fuzz/parse" $options -max_len=8192 -dict="$fuzz/words.dict" "$fuzz/corpus" "$fuzz/seeds" >"$fuzz/parse.log" 2>&1 &
# shellcheck disable=SC2086
nice "$fuzz/typed" $options -max_len=2000 -len_control=0 "$fuzz/typed-corpus" >"$fuzz/typed.log" 2>&1 || status=1
wait $! || status=1
for name in parse typed; do
    echo "fuzz $name: $(sed -n 's/stat::number_of_executed_units: *//p' "$fuzz/$name.log") executions, $(grep -o 'cov: [0-9]*' "$fuzz/$name.log" | tail -n 1)"
done
[ $status = 0 ] || grep -hE 'ERROR|SUMMARY|Test unit' "$fuzz/parse.log" "$fuzz/typed.log"
exit $status
