#!/bin/sh
# stub.sh LIBRARY OUT CC [NAME...]: OUT is what a linker needs of a system's library such as libc.so.6: its functions and variables of these
# names (none: all), with the versions that programs get today, and no code. ld reads it in 1 ms; libc.so.6 and libm.so.6 take it 10.
set -e
library=$1 out=$2 cc=$3
shift 3
path=$($cc -print-file-name="$library")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "$*" | tr ' ' '\n' | sed '/^$/d' | sort -u >"$work/names"
# A default version stands without parentheses.
objdump -T "$path" | awk -v names="$work/names" -v code="$work/stub.s" -v versions="$work/versions" '
    BEGIN { while ((getline name < names) > 0) wanted[name] = some = 1 }
    NF > 5 && $0 !~ /\*(UND|ABS)\*/ && $(NF - 1) ~ /^GLIBC_[0-9.]+$/ && (!some || $NF in wanted) && !seen[$NF]++ {
        n++
        print ".globl stub_" n "\n.type stub_" n ", " ($0 ~ / \.(data|bss)/ ? "@object" : "@function") >code
        print "stub_" n ":\n.long 0\n.size stub_" n ", 4\n.symver stub_" n ", " $NF "@@" $(NF - 1) >code
        if (!known[$(NF - 1)]++) print $(NF - 1) " { local: stub_*; };" >versions
    }
    END { exit !n }'
$cc -shared -nostdlib -Wl,-soname,"$library",--version-script="$work/versions",--hash-style=gnu,-s -o "$out" "$work/stub.s"
