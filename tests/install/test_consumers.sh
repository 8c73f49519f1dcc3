#!/bin/sh
# Programs against an installed Stoker: by pkg-config with the shared library, by the documented line with the static one, by CMake's
# find_package with both, and from C++. Each runs an example and sees which library it came to need.
#   test_consumers.sh PREFIX WORK_FOLDER
set -eu
prefix=$1 work=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
example=$source/examples/02_custom_dataset.c
fail() { printf '%s\n' "$*"; exit 1; }

rm -rf "$work"
mkdir -p "$work"
cd "$work"
lib=$(dirname "$(find "$prefix" -name libstoker.a | head -n 1)")
[ "$lib" != . ] || fail "there is no libstoker.a in '$prefix'"
case $prefix in
/usr | /usr/local) ;; # found without being told, or the installation is not right
*) export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib" CMAKE_PREFIX_PATH="$prefix" ;;
esac

# runs PROGRAM shared|static: it learns, and needs libstoker.so or does not.
runs() {
    readelf -d "$1" >"$1.dynamic"
    case $2 in
    shared) grep -q 'NEEDED.*\[libstoker\.so\.0\]' "$1.dynamic" || fail "'$1' does not use libstoker.so" ;;
    static) ! grep -q libstoker "$1.dynamic" || fail "'$1' uses libstoker.so" ;;
    esac
    "./$1" >"$1.out" 2>&1 || { cat "$1.out"; fail "'$1' failed"; }
    grep -q 'accuracy [0-9.]* % on 1000 new points' "$1.out" || { cat "$1.out"; fail "'$1' said something else"; }
    echo "$1: $(tail -n 1 "$1.out")"
}

# shellcheck disable=SC2046 # pkg-config's words, here and below.
cc "$example" -o by_pkg_config $(pkg-config --cflags --libs stoker) -lm
runs by_pkg_config shared

# Every example; what saves, loads, sets, exports and runs models is run, too.
for one in "$source"/examples/[0-9]*.c; do
    cc "$one" -o "$(basename "$one" .c)" $(pkg-config --cflags --libs stoker) -lm || fail "'$one' cannot be built"
done
for one in 11_save_and_load 12_run_onnx; do
    code=0
    "./$one" >"$one.out" 2>&1 || code=$?
    [ $code = 0 ] || [ $code = 77 ] || { cat "$one.out"; fail "'$one' failed"; }
    echo "$one: $(tail -n 1 "$one.out")"
done

# The line of docs/files.md.
line=$(sed -n 's/^cc examples\/09_classify.c -o classify //p' "$source/docs/files.md")
[ -n "$line" ] || fail "docs/files.md has no line that links statically"
eval "cc '$example' -o by_static_line $line" || fail "the static link of docs/files.md fails"
runs by_static_line static

mkdir cmake
cp "$example" cmake/main.c
cat >cmake/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(stoker 99 QUIET)
if(stoker_FOUND)
  message(FATAL_ERROR "version 99 was found")
endif()
find_package(stoker 0.1 REQUIRED)
add_executable(by_cmake main.c)
target_link_libraries(by_cmake PRIVATE stoker::stoker m) # the example's own sines
add_executable(by_cmake_static main.c)
target_link_libraries(by_cmake_static PRIVATE stoker::static)
END
{ cmake -S cmake -B cmake/build && cmake --build cmake/build; } >cmake.log 2>&1 || { cat cmake.log; fail "find_package(stoker) failed"; }
mv cmake/build/by_cmake cmake/build/by_cmake_static .
runs by_cmake shared
runs by_cmake_static static

# Every header, from C++, in a project that knows no C.
mkdir cpp
for header in "$prefix"/include/stoker/*.h "$prefix"/include/stoker/*/*.h; do
    echo "#include <${header#"$prefix"/include/}>"
done >cpp/main.cpp
cat "$source/tests/install/consumer.cpp" >>cpp/main.cpp
cat >cpp/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(consumer CXX)
find_package(stoker REQUIRED)
foreach(kind stoker static)
  add_executable(cpp_${kind} main.cpp)
  target_link_libraries(cpp_${kind} PRIVATE stoker::${kind})
endforeach()
END
{ cmake -S cpp -B cpp/build && cmake --build cpp/build; } >cpp.log 2>&1 || { cat cpp.log; fail "a program in C++ could not be built"; }
cpp/build/cpp_stoker && cpp/build/cpp_static || fail "a program in C++ failed"
cd /
rm -rf "$work"
echo "pkg-config, the static line, find_package and C++: all run"
