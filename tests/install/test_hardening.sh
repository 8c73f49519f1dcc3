#!/bin/sh
# What cmake/hardening.cmake asks for is in the files that were built.
#   test_hardening.sh FILE...
set -eu
bad=0
miss() { printf '%s: %s\n' "$file" "$*"; bad=1; }

command -v readelf >/dev/null || { echo "SKIP: there is no readelf to look with (Debian: binutils)"; exit 77; }
for file in "$@"; do
    text=$(readelf -W -h -l -d --dyn-syms "$file") || { miss "readelf cannot read it"; continue; }
    has() { printf '%s\n' "$text" | grep -Eq "$1"; }
    has '^ *Type: *DYN' || miss "it is not position-independent"
    case $file in *.so*) ;; *) has 'FLAGS_1.* PIE' || miss "its place is not drawn at each start" ;; esac
    has '^ *GNU_RELRO ' || miss "no part of it becomes read-only after loading"
    has '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).* NOW' || miss "the table of functions stays writable"
    has '^ *GNU_STACK .* RW ' || miss "its stack may hold code"
    has ' __stack_chk_fail' || miss "no function guards its stack"
    has ' __(mem|str|sn?printf|vsn?printf|fprintf|read|pread)[a-z_]*_chk' || miss "no copy checks its size"
done
[ $bad = 0 ] && echo "$#: all hardened"
exit $bad
