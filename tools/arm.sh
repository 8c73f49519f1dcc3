#!/bin/sh
# Builds for 64-bit ARM by a cross compiler, against a Debian 12 of that architecture, and runs tests by qemu's user mode.
#   tools/arm.sh [TEST]...       programs of tests/, "test_op_values:cpu" with an argument; without one those of the list below
#
# All is in build-arm64: sysroot (Debian's packages, unpacked and not set up), build, and the tests' outputs. No root is needed but
# for debootstrap's device files. Exit code 77: it could not even begin. The processor that is played has all that qemu knows;
# STOKER_ARM_CPU names another ("cortex-a72": no 16-bit floats, no dot products).
set -eu
cd "$(dirname "$0")/.."

SUITE=bookworm
LIBRARIES="libc6-dev,libstdc++-12-dev,libgcc-12-dev,libgomp1,libdnnl-dev,libjpeg62-turbo-dev,libpng-dev,libyaml-dev,zlib1g-dev,\
libjansson-dev,libisal-dev,libwebp-dev,libcurl4-openssl-dev,libssl-dev,libutf8proc-dev,libprotobuf-c-dev,libonnx-dev,libcmocka-dev"
TESTS="test_half test_processor test_cpu_reduce test_cpu_program test_cpu_device test_jpeg test_jpeg_crop test_resize_filters \
test_op_gradients:cpu test_cpu_conv2d test_op_values:cpu"
folder=$PWD/build-arm64
root=$folder/sysroot
cpu=${STOKER_ARM_CPU:-max}

say() { printf '%s\n' "arm: $*"; }
fail() { say "$*" >&2; exit 1; }
skip() { printf '%s\n' "SKIP arm: $*"; exit 77; }

find_mirror() {
    apt-get indextargets --format '$(RELEASE) $(SITE) $(REPO_URI)' "Created-By: Packages" "Release: $SUITE" 2>/dev/null |
        awk '$3 ~ /^https?:.*\/debian\/?$/ { print $3; exit }'
}

make_sysroot() {
    [ ! -f "$root/whole" ] || return 0
    [ "$(id -u)" = 0 ] || skip "debootstrap needs root's rights: sudo ./dev arm"
    mirror=$(find_mirror)
    say "Debian's packages for arm64 into build-arm64/sysroot (400 MB)"
    rm -rf "$root"
    # shellcheck disable=SC2086 # Empty or one word.
    debootstrap --foreign --arch=arm64 --variant=minbase --include="$LIBRARIES" $SUITE "$root" $mirror >"$folder/debootstrap.log" 2>&1 || {
        tail -n 5 "$folder/debootstrap.log"
        skip "debootstrap failed; all that it said: $folder/debootstrap.log"
    }
    for deb in "$root"/var/cache/apt/archives/*.deb; do
        dpkg-deb -x "$deb" "$root"
    done
    rm -f "$root"/var/cache/apt/archives/*.deb
    # What points to the root of that system points into the folder.
    find "$root/usr/lib" -type l -lname '/*' | while read -r link; do
        ln -sfn "$root$(readlink "$link")" "$link"
    done
    : >"$root/whole"
}

write_toolchain() {
    cat >"$folder/toolchain.cmake.new" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT "$root")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "$root")
set(ENV{PKG_CONFIG_LIBDIR} "$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig")
END
    if cmp -s "$folder/toolchain.cmake.new" "$folder/toolchain.cmake"; then
        rm "$folder/toolchain.cmake.new"
    else
        mv "$folder/toolchain.cmake.new" "$folder/toolchain.cmake"
    fi
}

# The same warnings as errors as lint has with this machine's compiler.
build() {
    if [ ! -f "$folder/build/build.ninja" ] || [ "$folder/toolchain.cmake" -nt "$folder/build/build.ninja" ]; then
        say "configure build-arm64/build"
        cmake -G Ninja -S . -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DSTOKER_WERROR=ON \
            -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" >"$folder/configure.log" 2>&1 || {
            cat "$folder/configure.log"
            fail "CMake failed"
        }
    fi
    say "build $*"
    ninja -C "$folder/build" --quiet "$@" || fail "the build failed"
}

# run_test NAME[:ARGUMENT]: a line of the table.
run_test() {
    program=${1%%:*} argument=
    [ "$program" = "$1" ] || argument=${1#*:}
    log=$folder/$program.log
    code=0
    # shellcheck disable=SC2086 # Empty or one word.
    qemu-aarch64-static -cpu "$cpu" -L "$root" "$folder/build/tests/$program" $argument >"$log" 2>&1 || code=$?
    said=$(sed -nE 's/^\[=+\] ([0-9]+ test\(s\) run)\.?$/\1/p; /^cpu: .*wrong$/p' "$log" | paste -sd ';' | sed 's/;/; /g')
    if [ $code = 0 ] && grep -q '^\[  PASSED  \]' "$log"; then
        echo "| \`$1\` | passed | $said |"
        return
    fi
    echo "| \`$1\` | FAILED ($code) | $log |"
    return 1
}

command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null && command -v debootstrap >/dev/null ||
    skip "it takes gcc-aarch64-linux-gnu, qemu-user-static and debootstrap"
mkdir -p "$folder"
all=
# shellcheck disable=SC2086 # A list of words.
[ $# -gt 0 ] || { all=yes; set -- $TESTS; }
make_sysroot
write_toolchain
programs=
for test in "$@"; do
    programs="$programs ${test%%:*}"
done
# shellcheck disable=SC2086 # A list of words.
build stoker $programs
bad=0
table=$folder/table.md
: >"$table"
for test in "$@"; do
    run_test "$test" >"$folder/line" || bad=1
    tee -a "$table" <"$folder/line"
done
[ $bad = 0 ] || fail "see the outputs named above"
[ -n "$all" ] || exit 0
page=docs/isa.md
{ sed '/^<!-- arm: begin -->$/q' $page
  echo "On a processor that qemu plays (\`-cpu $cpu\`), $(date -u +%F):"
  printf '\n| Test | Result | What it says |\n|---|---|---|\n'
  cat "$table"
  sed -n '/^<!-- arm: end -->$/,$p' $page; } >"$folder/isa.md"
mv "$folder/isa.md" $page
say "wrote $page"
