#!/bin/sh
# deps.sh LLVM PACKAGE...: installs what is missing, where it may, and refuses another LLVM.
llvm=$1
shift
missing=
if command -v dpkg >/dev/null; then
    for p; do dpkg -s "$p" 2>/dev/null | grep -q '^Status: install ok installed' || missing="$missing $p"; done
fi
if [ -n "$missing" ]; then
    as=
    [ "$(id -u)" = 0 ] || as='sudo -n'
    if [ -n "$as" ] && ! $as true 2>/dev/null; then
        echo "these packages are missing; install them as root by:" >&2
        echo "    apt-get update && apt-get install -y --no-install-recommends$missing" >&2
        exit 1
    fi
    $as apt-get update -q && $as env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing || {
        echo "apt-get could not install:$missing" >&2
        exit 1
    }
fi
version=$("$llvm/bin/llvm-config" --version 2>/dev/null)
case $version in
22.*) ;;
*)
    echo "jaxcc needs LLVM and MLIR 22, but $llvm has ${version:-none}; say where 22 is by make LLVM=/usr/lib/llvm-22" >&2
    exit 1
    ;;
esac
