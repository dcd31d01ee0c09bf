# try.sh: the head of the tests that are scripts, which read it by `. "$(dirname "$0")/try.sh"`; their arguments are BUILD and, if they ask
# for it, MODE. It goes to the root of the repository, puts the programs of BUILD on the PATH and sets
#   $root $build $mode   the root and BUILD, absolute; MODE, else release
#   $work                an empty folder, removed at the end; its files log and said are what is shown of a test that fails
# A script ends with `finish`.
part=$(basename "$0" .sh)
case $1 in /*) build=$1 ;; *) build=$PWD/$1 ;; esac
mode=${2:-release}
cd "$(dirname "$0")/.." || exit 1
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$build/bin:$PATH
export NO_COLOR=1
passed=0
failed=0
# count STATUS WHAT: one test, passed if the status is 0.
count() {
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL $part: $2"
        tail -q -n 20 "$work/log" "$work/said" 2>/dev/null
    fi
}
# try WHAT COMMAND...: one test, passed if the command succeeds; it runs in a shell of its own.
try() {
    (
        shift
        "$@"
    ) >"$work/log" 2>&1
    count $? "$1"
}
# succeeds COMMAND...: the same, called as it is written.
succeeds() { try "$*" "$@"; }
# The line that check.sh adds up.
finish() {
    echo "$part: $passed passed, $failed failed"
    [ $failed = 0 ]
}
# stop WHAT: fails, and so does the script: nothing else can be tested.
stop() {
    count 1 "$1"
    finish
    exit 1
}
