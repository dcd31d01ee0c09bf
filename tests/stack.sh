#!/bin/sh
# stack.sh BUILD: what functions of the runtime take of a caller's stack with those that they call, from gcc's call graphs: no
# arrays of unbounded size, no recursion but those listed, and no more than 24 KiB. Calls by pointer are not followed: what whole
# calls of libraries take is measured by `jaxcc-run --guard`, by which the cases run.
cd "$(dirname "$0")/.." || exit 1
files=$(ls "$1"/rt/*.ci 2>/dev/null)
[ -n "$files" ] || { echo "stack: 0 passed, 0 failed"; exit 0; } # not gcc
cat $files | awk -v limit=24576 '
    BEGIN { # how deep what calls itself goes: axes; axes; the entries of a dict, by the text of a program
        deep["runtime/print.c:visit"] = deep["runtime/print.c:rows"] = 32
        deep["runtime/ffi.c:attributes"] = 8
        # halves of up to 2^21 rows or columns, until they have BASE or COLUMNS_OF_LU; LU one more where it is wide
        split("f32 f64 c64 c128", type)
        split("cholesky_lower lu_blocks", halved)
        for (i in type) for (k in halved) for (l = 2; l <= 4; l++)
            deep["runtime/linalg.c:" halved[k] "_" type[i] "_v" l] = 19
        # parentheses in the text of an extent
        split("sum product power primary", read)
        for (i in read) deep["runtime/extent.c:read_" read[i]] = 24
    }
    # node: { title: "NAME" label: "NAME\nFILE:LINE:COL\nN bytes (static)" }
    /^node:/ {
        split($0, part, "\"")
        name = part[2]
        if (match($0, /\\n[0-9]+ bytes \([a-z,]*\)/)) {
            text = substr($0, RSTART + 2, RLENGTH - 2)
            if (text + 0 > frame[name]) frame[name] = text + 0
            if (text ~ /\(dynamic\)/) fault("the frame of " name " has no bound")
        }
    }
    /^edge:/ { split($0, part, "\""); calls[part[2]] = calls[part[2]] part[4] "\n" }
    function fault(what) { print "FAIL stack: " what; failed++ }
    # 0: not listed. gcc adds suffixes to the names of copies with fewer parameters.
    function depth(f) { sub(/[.](isra|constprop|part).*/, "", f); return deep[f] }
    # Bytes of the longest chain of calls from f; of libc 8192 where it may print or ask the system.
    function chain(f,    n, to, i, most, here) {
        if (f == "__indirect_call") return 0
        if (!(f in frame)) return f ~ /^(mem|str[a-z]*$)/ ? 512 : 8192
        if (f in known) return known[f]
        if (f in open) { if (!depth(f)) fault(f " calls itself"); return 0 }
        open[f]
        n = split(calls[f], to, "\n")
        for (i = 1; i < n; i++) { here = chain(to[i]); if (here > most) most = here }
        delete open[f]
        return known[f] = frame[f] * (depth(f) ? depth(f) : 1) + most
    }
    END {
        for (f in frame) { bytes = chain(f); if (bytes > worst) { worst = bytes; who = f } }
        printf "the runtime takes at most %d bytes of stack, by %s\n", worst, who
        if (worst > limit) fault(worst " bytes are more than " limit)
        if (!worst) fault("no call graph")
        printf "stack: %d passed, %d failed\n", !failed, failed
        exit failed > 0
    }'
