#!/bin/sh
# A build without the optional packages has the same tests as this one: those that need a package are skipped, with a reason.
#   test_skips.sh CMAKE SOURCE_FOLDER BUILD_FOLDER WORK_FOLDER
set -eu
cmake=$1 source=$2 build=$3 work=$4
fail() { printf '%s\n' "$*"; exit 1; }

rm -rf "$work"
mkdir -p "$work"
"$cmake" -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPROTOC_C=OFF -DSIMDE_INCLUDE_DIR=OFF -DQEMU_X86_64=OFF \
    >"$work/log" 2>&1 || { cat "$work/log"; fail "a build without optional packages cannot be configured"; }
# From CTest's files: a second ctest in the folder of one that runs would overwrite its log.
names() { find "$1/tests" "$1/examples" -name CTestTestfile.cmake -exec sed -n 's/^add_test(\[*=*\[*\([^] ]*\).*/\1/p' {} + | sort; }
names "$build" >"$work/all"
names "$work/build" >"$work/fewer"
[ "$(wc -l <"$work/all")" -gt 200 ] || fail "CTest's files in '$build' name too few tests"
cmp "$work/all" "$work/fewer" || { diff "$work/all" "$work/fewer" || true; fail "these tests are not in both builds"; }

# Nothing is built there: what runs can only say why it does not.
export STOKER_TEST_PYTHON=no-python-here
ctest --test-dir "$work/build" -V -R '^(onnx/|fuzz/replay_onnx|data/test_isa_|data/test_jpeg_kernels_|run/kill_resume|cli/)' >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "a test without its package failed"; }
n_tests=$(grep -c '^ *[0-9]*/[0-9]* Test ' "$work/log") n_reasons=$(grep -c '^[0-9]*: SKIP' "$work/log")
[ "$n_tests" -gt 30 ] && [ "$n_tests" = "$n_reasons" ] || { cat "$work/log"; fail "$n_tests tests, $n_reasons reasons"; }
rm -rf "$work"
echo "$n_tests tests without their packages: all skipped, each with a reason"
