#!/usr/bin/env python3
"""Which lines of its parser each fuzz target reaches with its corpus, as a Markdown table; ends with 1 below a bound.

usage: fuzz_coverage.py BUILD_FOLDER [--missing] [--least PERCENT] [NAME]...

BUILD_FOLDER holds targets built with clang's source-based coverage (./dev fuzz --coverage builds them). A target names
its parser's files in a comment: covers: data/codec/example.c data/codec/wire.c. The corpus is tests/fuzz/corpus/NAME
and what fuzzing has added to it in build-fuzz/corpus/NAME. --missing lists the lines that are not reached.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def tool(name):
    """llvm-NAME, or with the version that clang has."""
    text = subprocess.run(["clang", "--version"], capture_output=True, text=True).stdout
    version = re.search(r"version (\d+)", text)
    for candidate in ([f"{name}-{version[1]}"] if version else []) + [name]:
        if shutil.which(candidate):
            return candidate
    sys.exit(f"fuzz_coverage: there is no {name}; on Debian it is in the package llvm")


def parsers_of(name):
    with open(f"{ROOT}/tests/fuzz/fuzz_{name}.c") as f:
        found = re.search(r"covers:((?:[\s*]+[\w/]+\.[ch])+)", f.read())
    if not found:
        sys.exit(f"fuzz_coverage: tests/fuzz/fuzz_{name}.c does not say what it covers: "
                 "a comment 'covers: data/codec/x.c'")
    return re.findall(r"[\w/]+\.[ch]", found[1])


def run_target(build, name):
    """The merged profile of a run over the corpus."""
    folders = [f for f in (f"{ROOT}/tests/fuzz/corpus/{name}", f"{ROOT}/build-fuzz/corpus/{name}") if os.path.isdir(f)]
    raw, profile = f"{build}/{name}.profraw", f"{build}/{name}.profdata"
    done = subprocess.run([f"{build}/tests/fuzz/fuzz_{name}", "-runs=0", "-rss_limit_mb=2048", *folders],
                          env={**os.environ, "LLVM_PROFILE_FILE": raw}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fuzz_coverage: target '{name}' ended with {done.returncode}: {done.stderr[-2000:]}")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", raw, "-o", profile], check=True)
    os.remove(raw)
    return profile


def lines_of(build, name, profile, files):
    """By file: how often each line with code was reached, by its number."""
    text = subprocess.run([tool("llvm-cov"), "export", "-format=lcov", f"-instr-profile={profile}",
                           f"{build}/tests/fuzz/fuzz_{name}"], capture_output=True, text=True, check=True).stdout
    result, lines = {}, {}
    for line in text.splitlines():
        if line.startswith("SF:"):
            # With a compiler cache names are relative to the build folder.
            file = os.path.relpath(os.path.join(build, line[3:]), f"{ROOT}/src")
            lines = result.setdefault(file, {}) if file in files else {}
        elif line.startswith("DA:"):
            number, count = map(int, line[3:].split(",")[:2])
            lines[number] = max(lines.get(number, 0), count)
    for file in files:
        if not result.get(file):
            sys.exit(f"fuzz_coverage: target '{name}' does not contain src/{file}")
    return {file: result[file] for file in files}


def print_missing(found):
    for file, lines in found.items():
        with open(f"{ROOT}/src/{file}") as f:
            source = f.read().splitlines()
        for number in sorted(lines):
            if lines[number] == 0:
                print(f"    {file}:{number}: {source[number - 1].strip()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--least", type=float, default=85)
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    names = args.names or sorted(os.path.basename(f)[5:-2] for f in glob.glob(f"{ROOT}/tests/fuzz/fuzz_*.c"))
    build, low = os.path.abspath(args.build), []
    print("| target | parser | lines | reached |\n|---|---|---:|---:|")
    for name in names:
        profile = run_target(build, name)
        found = lines_of(build, name, profile, parsers_of(name))
        counts = [count for lines in found.values() for count in lines.values()]
        share = 100 * sum(count > 0 for count in counts) / len(counts)
        print(f"| {name} | {', '.join(found)} | {len(counts)} | {share:.1f} % |", flush=True)
        if share < args.least:
            low.append(name)
        if args.missing:
            print_missing(found)
    if low:
        sys.exit(f"fuzz_coverage: below {args.least:g} %: {', '.join(low)}")


main()
