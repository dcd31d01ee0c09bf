#!/bin/sh
# leave.sh BUILD MODE: what a compilation leaves behind: all its files or, whatever ended it, what was there before.
. "$(dirname "$0")/try.sh"
jaxcc=$build/bin/jaxcc
mkdir "$work/tmp" "$work/here" "$work/tools"
export TMPDIR="$work/tmp"
cd "$work/here" || exit 1
awk 'BEGIN { print "{ lambda ; a0:f32[8]. let"; for (i = 0; i < 300; i++) print "a" i + 1 ":f32[8] = " (i % 3 ? "sin a" i : "mul a" i " a0"); print "in (a300,) }" }' >m.jaxpr
echo '{ lambda ; a:f32[]. let b:f32[] = no_such_thing a in (b,) }' >wrong.jaxpr
# old: m.so, m.h and m.d of a build before. is_old, is_new: which they are now; nothing else is there.
old() {
    rm -rf "$work/here/m.so" m.h m.d
    for f in m.so m.h m.d; do echo old >$f; done
}
alone() { [ "$(ls -A | tr '\n' ' ')" = 'm.d m.h m.jaxpr m.so wrong.jaxpr ' ] && [ -z "$(ls -A "$work/tmp")" ]; }
is_old() { alone && for f in m.so m.h m.d; do [ "$(cat $f)" = old ] || return 1; done; }
is_new() { alone && for f in m.so m.h m.d; do [ "$(head -c 3 $f)" != old ] || return 1; done; }
said() { grep -q -e "$1" "$work/said"; }
compile() { "$jaxcc" m.jaxpr -MD "$@" >"$work/said" 2>&1; }
# killed SIGNAL STATUS: at any time; at the end too, when all is there.
killed() {
    for after in 0.002 0.01 0.02 0.03 0.045 0.06 0.08 0.1; do
        old
        timeout --preserve-status -s "$1" $after "$jaxcc" m.jaxpr -MD >"$work/said" 2>&1
        got=$?
        if [ $got = 0 ]; then is_new; else [ $got = "$2" ] && { is_old || is_new; }; fi || { ls -A . "$work/tmp"; echo "after $after: $got"; return 1; }
    done
}
# While the linker runs: it ends too, and writes nothing more.
linker_killed() {
    printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho $$ >%s/linker\necho part >"$2"\nsleep 30\necho more >"$2"\n' "$work" >"$work/tools/ld"
    chmod +x "$work/tools/ld"
    old
    PATH=$work/tools:$PATH timeout --preserve-status -s TERM 2 "$jaxcc" m.jaxpr -MD >"$work/said" 2>&1
    [ $? = 143 ] && is_old && ! kill -0 "$(cat "$work/linker")"
}
# fails WORDS ARGS...: status 1 with these words; everything is as it was.
fails() {
    words=$1
    shift
    old
    "$@" >"$work/said" 2>&1
    [ $? = 1 ] && said "$words" && is_old
}
limited() {
    (
        ulimit "$1" "$2"
        shift 2
        "$@"
    )
}
# Memory that is not there is status 1 with a sentence; what the loader says before the compiler runs is not ours.
memory() {
    for kib in 60000 76000 80000 84000 88000 92000 100000 200000; do
        old
        limited -v $kib "$jaxcc" m.jaxpr -MD >"$work/said" 2>&1
        case $? in
        0) is_new ;;
        1) said 'error: .*memory' && is_old ;;
        127) said 'shared libraries' && is_old ;;
        139) ! said jaxcc: && is_old ;;
        *) false ;;
        esac || { echo "$kib KiB"; return 1; }
    done
}
# Nested as deep as a text may be.
deep() {
    awk -v n=60 'BEGIN { text = "sin a in (b,) }"
        for (i = 0; i < n; i++) text = "scan[jaxpr={ lambda ; a:f32[]. let b:f32[] = " text " length=2 linear=(False,) num_carry=1 num_consts=0 reverse=False unroll=1] a in (b,) }"
        print "{ lambda ; a:f32[]. let b:f32[] = " text }' >"$work/deep.jaxpr"
    limited -s "$1" "$jaxcc" "$work/deep.jaxpr" -o "$work/deep.so" >"$work/said" 2>&1
}
small_stack() {
    old
    limited -s 256 "$jaxcc" m.jaxpr -MD >"$work/said" 2>&1 && is_new
}
both() {
    old
    compile && is_new && [ "$(stat -c %a m.h)" = "$(touch "$work/plain" && stat -c %a "$work/plain")" ]
}
through_link() {
    old
    mkdir "$work/far"
    echo old >"$work/far/m.so"
    ln -sf "$work/far/m.so" m.so
    compile && [ -L m.so ] && [ "$(head -c 3 "$work/far/m.so")" != old ] && is_new
}
to_a_pipe() {
    old
    compile -MF m.d --emit=obj --no-header -o /dev/stdout && [ "$(head -c 4 "$work/said" | tail -c 3)" = ELF ] && alone
}
no_reader() {
    old
    "$jaxcc" m.jaxpr --emit=so -o - | true
    is_old
}
# An input that is to be written stays; so does everything else.
cp m.jaxpr "$work/before.jaxpr"
input_stays() {
    fails "$1 is an input, and would be overwritten" "$jaxcc" m.jaxpr -o m.so "$2" "$3" && cmp m.jaxpr "$work/before.jaxpr"
}
from_input_stays() {
    old
    "$jaxcc" - -o m.jaxpr --header=m.h <m.jaxpr >"$work/said" 2>&1
    [ $? = 1 ] && said 'is an input' && is_old && cmp m.jaxpr "$work/before.jaxpr"
}
# An archive with nothing in it.
consts_stay() {
    printf 'PK\005\006\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >"$work/k.npz"
    cp "$work/k.npz" "$work/k"
    fails "/k.npz' is an input" "$jaxcc" m.jaxpr -MD --consts="$work/k.npz" --header="$work/k.npz" && cmp "$work/k.npz" "$work/k"
}
# new WORDS ARGS...: in a folder that is empty, and stays so.
new() {
    words=$1
    shift
    rm -rf "$work/empty"
    mkdir "$work/empty" && cd "$work/empty" || return 1
    "$jaxcc" ../here/m.jaxpr "$@" >"$work/said" 2>&1
    [ $? = 1 ] && said "$words" && [ -z "$(ls -A)" ]
    set -- $?
    cd "$work/here" && return "$1"
}
# A link to a file that is not there yet, by another link and by an absolute one.
dangling() {
    rm -rf "$work/links" "$work/far"
    mkdir "$work/links" "$work/far"
    ln -s ../far/next.so "$work/links/m.so"
    ln -s "$work/far/end.so" "$work/far/next.so"
    "$jaxcc" m.jaxpr -o "$work/links/m.so" --header="$work/links/m.h" >"$work/said" 2>&1 || return 1
    [ -L "$work/links/m.so" ] && [ -L "$work/far/next.so" ] && [ -s "$work/far/end.so" ] && [ ! -L "$work/far/end.so" ] &&
        [ "$(ls -A "$work/links" "$work/far" | wc -l)" = 7 ] &&
        ln -s "$work/far/both" "$work/links/a" && ln -s ../far/both "$work/links/b" &&
        ! "$jaxcc" m.jaxpr -o "$work/links/a" --header="$work/links/b" >"$work/said" 2>&1 && said 'written twice'
}
closed_output() {
    old
    "$jaxcc" m.jaxpr --emit=obj -o - >&- 2>"$work/said"
    [ $? = 1 ] && said "cannot write 'standard output'" && is_old
}
# A file system without RENAME_EXCHANGE, and without links (NO_LINK), where the FAIL-th rename to a .so finds no room.
cat >"$work/rename.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return errno = EINVAL, -1; }
int link(const char *from, const char *to) {
    int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link");
    return getenv("NO_LINK") ? errno = EPERM, -1 : real(from, to);
}
int rename(const char *from, const char *to) {
    static int n;
    int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    const char *end = strrchr(to, '.'), *which = getenv("FAIL");
    if (which && end && !strcmp(end, ".so") && ++n == atoi(which)) return errno = ENOSPC, -1;
    return real(from, to);
}
END
# Once the tool has been waited for a signal comes; who kills a process that is no more says so in the file STRAY.
cat >"$work/wait.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
pid_t waitpid(pid_t child, int *status, int options) {
    static int once;
    pid_t (*real)(pid_t, int *, int) = (pid_t (*)(pid_t, int *, int))dlsym(RTLD_NEXT, "waitpid");
    pid_t got = real(child, status, options);
    if (got > 0 && !once++) raise(SIGTERM);
    return got;
}
int kill(pid_t child, int number) {
    int (*real)(pid_t, int) = (int (*)(pid_t, int))dlsym(RTLD_NEXT, "kill");
    int got = real(child, number);
    if (got) open(getenv("STRAY"), O_WRONLY | O_CREAT, 0600);
    return got;
}
END
preload() {
    name=$1
    shift
    cc -w -shared -fPIC "$work/$name.c" -o "$work/$name.so" && env LD_PRELOAD="$work/$name.so" "$@"
}
no_exchange() {
    old
    preload rename "$@" "$jaxcc" m.jaxpr -MD >"$work/said" 2>&1 && is_new
}
# Of what was not there nothing is left, of what was there all is.
half_new() {
    old
    rm m.h
    preload rename FAIL=1 "$@" "$jaxcc" m.jaxpr -MD >"$work/said" 2>&1
    [ $? = 1 ] && said "cannot write 'm.so': No space" && [ ! -e m.h ] && echo old >m.h && is_old
}
tool_reaped() {
    old
    preload wait STRAY="$work/stray" "$jaxcc" m.jaxpr -MD >"$work/said" 2>&1
    [ $? = 143 ] && is_old && [ ! -e "$work/stray" ]
}
try "a build" both
try "a build over a symbolic link" through_link
try "a library to a pipe" to_a_pipe
try "a pipe that nobody reads" no_reader
[ "$mode" = asan ] || for s in INT:130 TERM:143 HUP:129; do try "killed by ${s%:*}" killed "${s%:*}" "${s#*:}"; done
try "killed while the linker runs" linker_killed
try "a wrong program" fails no_such_thing "$jaxcc" wrong.jaxpr -MD -o m.so
try "no linker" fails 'no linker' env PATH=/nonexistent "$jaxcc" m.jaxpr -MD
try "a bad -MF" fails "cannot write 'no/such/m.d': No such file" "$jaxcc" m.jaxpr -MD -MF no/such/m.d
try "a folder for a header" fails "cannot write '/': Is a directory" "$jaxcc" m.jaxpr -MD --header=/
try "a file twice" fails "'m.so' would be written twice" "$jaxcc" m.jaxpr -MD -MF m.so
try "the input as a header" input_stays "'m.jaxpr'" --header=m.jaxpr -MD
try "the input as -MF" input_stays "'./m.jaxpr'" -MD -MF./m.jaxpr
try "the input by a link" input_stays "'$work/link.jaxpr'" -MD --header="$(ln -s "$PWD/m.jaxpr" "$work/link.jaxpr" && echo "$work/link.jaxpr")"
try "the input as the library" fails "'m.jaxpr' is an input" "$jaxcc" m.jaxpr -o m.jaxpr --header=m.h
try "standard input" from_input_stays
try "constants" consts_stay
try "a new file twice" new "would be written twice" -o q.so --header=./q.so
try "a new file twice, by an absolute path" new "'q.so' would be written twice" -o q.so --header="$work/empty/q.so"
try "a new file twice, by -MF" new "would be written twice" -o q.so -MD -MF./q.h
try "links to files that are not there" dangling
try "closed standard output" closed_output
[ "$mode" = asan ] || {
    for links in NO_EXCHANGE=1 NO_LINK=1; do
        try "no RENAME_EXCHANGE, $links" no_exchange $links
        try "no RENAME_EXCHANGE and no room, $links" fails "cannot write 'm.so': No space" preload rename FAIL=1 $links "$jaxcc" m.jaxpr -MD
        try "no RENAME_EXCHANGE and no room for a new file, $links" half_new $links
    done
    try "a signal after the linker" tool_reaped
}
try "no folder for temporary files" fails "cannot make a file in '/no/such/': No such file" env TMPDIR=/no/such "$jaxcc" m.jaxpr -MD
try "a folder that takes no files" fails "cannot write '/proc/m.h': No such file" "$jaxcc" m.jaxpr -MD -o /proc/m.so
[ "$(id -u)" = 0 ] || {
    mkdir "$work/closed"
    chmod a-w "$work/closed"
    try "a folder without permission" fails "cannot write '.*/m.so': Permission denied" "$jaxcc" m.jaxpr -MD -o "$work/closed/m.so"
}
for blocks in 1 8; do try "ulimit -f $blocks" fails 'error: .*File too large' limited -f $blocks "$jaxcc" m.jaxpr -MD; done
[ "$mode" = asan ] || {
    try "ulimit -v" memory
    try "ulimit -s 256" small_stack
    try "deep programs" deep 8192
    try "deep programs, ulimit -s 256" deep 256
}
finish
