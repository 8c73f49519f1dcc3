#!/bin/sh
# Installs the build into a folder, moves that folder, builds and runs programs against it (test_consumers.sh), and lets shells and man
# read what is there for them (test_shells.sh).
#   test_staged.sh CMAKE BUILD_FOLDER WORK_FOLDER
set -eu
cmake=$1 build=$2 work=$3
here=$(cd "$(dirname "$0")" && pwd)
fail() { printf '%s\n' "$*"; exit 1; }

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; fail "cmake --install failed"; }
grep -q "LD_LIBRARY_PATH=$work/first/lib" "$work/log" || { cat "$work/log"; fail "nothing says how programs find libstoker.so there"; }
DESTDIR="$work/packed" "$cmake" --install "$build" --prefix /usr/local >"$work/log" || { cat "$work/log"; fail "no DESTDIR"; }
grep -q "Run ldconfig where" "$work/log" || { cat "$work/log"; fail "nothing says that ldconfig is still to be run"; }
[ -f "$work/packed/usr/local/bin/stoker" ] || fail "DESTDIR was not heeded"
mv "$work/first" "$work/moved"
sh "$here/test_consumers.sh" "$work/moved" "$work/consumers"
sh "$here/test_shells.sh" "$work/moved"
LD_LIBRARY_PATH= "$work/moved/bin/stoker" --version
rm -rf "$work"
