#!/bin/sh
# golden.sh BUILD [--bless]: golden/STAGE/NAME.jaxpr printed after STAGE is NAME.want; more options in NAME.args.
. "$(dirname "$0")/try.sh"
cd tests/golden || exit 1
bless=$2
case $bless in --bless | "") ;; *) echo "unknown option $bless" && exit 2 ;; esac
got=$work/got
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
    (cd "$stage" && eval "jaxcc $options '$name'") >"$got" 2>&1 </dev/null
    if [ "$bless" ]; then
        cmp -s "$got" "$want" || { cp "$got" "$want" && echo "blessed $want"; }
    else
        diff -u "$want" "$got"
        count $? "$file"
    fi
done
[ "$bless" ] || finish
