#!/bin/sh
# golden.sh BUILD [--bless]: golden/STAGE/NAME.jaxpr printed after STAGE is NAME.want; more options in NAME.args.
cd "$(dirname "$0")/golden" || exit 1
case $1 in /*) bin=$1/bin ;; *) bin=$OLDPWD/$1/bin ;; esac
bless=$2
case $bless in --bless | "") ;; *) echo "unknown option $bless" && exit 2 ;; esac
passed=0
failed=0
got=$(mktemp)
trap 'rm -f "$got"' EXIT
export NO_COLOR=1
for file in */*.jaxpr; do
    [ -f "$file" ] || continue
    stage=${file%/*} name=${file##*/} want=${file%.jaxpr}.want args=${file%.jaxpr}.args
    case $stage in
    parse) options='--emit=jaxpr --no-check' ;;
    typecheck) options=--emit=jaxpr ;;
    passes) options='--emit=jaxpr --passes' ;;
    types | header | mlir | llvm) options=--emit=$stage ;;
    *) options= ;;
    esac
    [ -f "$args" ] && options="$options $(cat "$args")"
    (cd "$stage" && eval "'$bin/jaxcc' $options '$name'") >"$got" 2>&1 </dev/null
    if [ "$bless" ]; then
        cmp -s "$got" "$want" || { cp "$got" "$want" && echo "blessed $want"; }
    elif diff -u "$want" "$got"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL golden/$file"
    fi
done
[ "$bless" ] || echo "golden: $passed passed, $failed failed"
[ $failed = 0 ]
