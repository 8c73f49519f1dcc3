#!/usr/bin/env python3
"""stoker-watch for other machines: built by zig (PyPI's ziglang, or $STOKER_ZIG) for GLIBC_2.17, it needs no newer symbol, and
runs here. Without that compiler: the program as built here needs libc, libm and the loader alone.

usage: test_portable.py SOURCE_FOLDER BUILD_FOLDER
"""
import os
import re
import shutil
import subprocess
import sys

SOURCE, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SOURCES = "cli/watch/main.c cli/cmd_watch.c cli/args.c cli/text.c cli/bar.c cli/output.c cli/screen.c " + \
    " ".join(f"src/base/{stem}.c" for stem in "text plain_number error printable secret file new_file temporary memory memory_machine thread hash clock cgroup version".split())


def zig():
    if os.environ.get("STOKER_ZIG"):
        return os.environ["STOKER_ZIG"].split()
    if subprocess.run([sys.executable, "-c", "import ziglang"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "ziglang"]
    return [shutil.which("zig")] if shutil.which("zig") else None


def needed(program):
    text = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"Shared library: \[([^\]]*)\]", text)


def check_libraries(program):
    allowed = re.compile(r"(libc|libm|libdl|libpthread)\.so\.\d+|ld-linux.*|lib(asan|ubsan|gcc_s)\.so\.\d+")
    for library in needed(program):
        if not allowed.fullmatch(library):
            sys.exit(f"{program} needs {library}")


def check_symbols(program):
    text = subprocess.run(["readelf", "-W", "--dyn-syms", program], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", text)}
    if not versions or max(versions) > (2, 17):
        sys.exit(f"{program} needs GLIBC_{'.'.join(map(str, max(versions or {(0,)})))}")
    print(f"newest symbol: GLIBC_{'.'.join(map(str, max(versions)))}")


check_libraries(f"{BUILD}/stoker-watch")
compiler = zig()
if not compiler:
    print("SKIP: no zig to build for GLIBC_2.17 with (pip install ziglang, or set STOKER_ZIG)")
    sys.exit(77)
out = f"{BUILD}/stoker-watch-portable"
watch = sorted(f"src/watch/{f}" for f in os.listdir(f"{SOURCE}/src/watch") if f.endswith(".c"))
subprocess.run([*compiler, "cc", "-target", "x86_64-linux-gnu.2.17", "-std=gnu11", "-O2", "-s", "-D_GNU_SOURCE", "-DSTK_BUILD",
                '-DSTK_VERSION="portable"', "-Iinclude", "-Isrc", "-Icli", *SOURCES.split(), *watch, "-o", out, "-lpthread", "-ldl", "-lm"],
               cwd=SOURCE, check=True)
check_libraries(out)
check_symbols(out)
done = subprocess.run([out, "--json", "--", "sh", "-c", "exit 4"], capture_output=True, text=True)
if done.returncode != 4 or '"exit_code": 4' not in done.stdout:
    sys.exit(f"the portable program: {done.returncode} {done.stdout!r} {done.stderr!r}")
print(f"{os.path.getsize(out)} bytes, needs {', '.join(needed(out))}")
