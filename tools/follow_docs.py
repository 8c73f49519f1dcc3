#!/usr/bin/env python3
"""Follows the pages docs/adding-*.md to the letter in a copy of the tree, builds it, and runs the tests and recipes that the
pages promise. Run by ./dev follow-docs.

usage: follow_docs.py TREE COPY [PAGE...]    of these pages alone: adding-a-model

The code blocks of the pages are taken as they stand and put where the pages say; a block that no longer fits, compiles or
passes is an error. COPY is a folder that is made anew but for its build folder, so that a second time is faster.
"""
import os
import re
import shutil
import subprocess
import sys

TREE, COPY = map(os.path.abspath, sys.argv[1:3])
PAGES = sys.argv[3:]
targets, checks = [], []


def put(path, before, text):
    """text goes before the first match of a pattern; without one, to the end of the file, which is made if need be."""
    path = os.path.join(COPY, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    old = open(path).read() if os.path.exists(path) else ""
    at = len(old)
    if before:
        found = re.search(before, old)
        if not found:
            sys.exit(f"'{path}' has no '{before}' to put this before:\n{text}")
        at = found.start()
    with open(path, "w") as f:
        f.write(old[:at] + ("\n" if old and not before else "") + text + old[at:])


def follow(page, places, builds, *promises):
    """Puts the blocks where the page has them. builds: what is to be built; promises: calls once it is."""
    if PAGES and page[:-len(".md")] not in PAGES:
        return
    with open(os.path.join(COPY, "docs", page)) as f:
        blocks = re.findall(r"```(?:c|yaml)\n(.*?)```", f.read(), re.S)
    if len(blocks) != len(places):
        sys.exit(f"{page} has {len(blocks)} blocks of code, {len(places)} places are known")
    for block, place in zip(blocks, places):
        if place:  # else it shows how to call what was added
            put(place[0], place[1], block)
    targets.extend(builds)
    checks.extend(promises)


def make_copy():
    for folder in "src", "include", "tests":
        shutil.rmtree(os.path.join(COPY, folder), ignore_errors=True)
    names = subprocess.run(["git", "-C", TREE, "ls-files", "-z", "-co", "--exclude-standard"], stdout=subprocess.PIPE,
                           check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if os.path.isfile(os.path.join(TREE, name)):
            os.makedirs(os.path.dirname(os.path.join(COPY, name)), exist_ok=True)
            shutil.copy2(os.path.join(TREE, name), os.path.join(COPY, name))


def expect(program, *wanted):
    """program: a test, or a command of stoker."""
    command = [os.path.join(COPY, "build", "tests", program)]
    if program.startswith("stoker "):
        command = [os.path.join(COPY, "build", "stoker"), *program.split()[1:]]
        shutil.rmtree(os.path.join(COPY, "runs"), ignore_errors=True)
    done = subprocess.run(command, cwd=COPY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for text in wanted:
        if done.returncode or not re.search(text, done.stdout):
            sys.exit(f"{program}: no '{text}':\n{done.stdout}")
    print(f"{program}: " + "; ".join(re.search(text, done.stdout).group() for text in wanted))


make_copy()
follow("adding-an-op.md", [
    ("src/graph/op_list.h", r" *X\(concat\)"), ("src/graph/op.h", r" \*   concat "),
    ("src/graph/op.h", r"        struct \{\n            int32_t axis;\n        \} concat;"), ("src/ops/flip.c", None),
    ("include/stoker/graph/graph.h", r"(/\*[^/]*\*/\n)?STK_API stk_value stk_concat"), ("src/device/reference/movement.c", None),
    ("src/device/cpu/rows/flip.c", None), ("tests/harness/cases_move.c", r"    CONCAT\(\"rows\"")],
    ["test_op_values", "test_op_gradients"],
    ("test_op_values", r"cpu: \d+ calls compared, .*, 0 wrong"), ("test_op_gradients", r"\d+ cases checked, 0 elements wrong"))
follow("adding-a-device.md", [
    ("src/device/plain/plain.c", None), ("src/device/device.h", r"extern const stk_device_class stk_device_class_"),
    ("src/device/device_list.c", r"    NULL")],
    ["test_op_values"], ("test_op_values", r"plain: [1-9]\d* calls compared, .*, 0 wrong"))
follow("adding-a-stage.md", [
    ("src/data/stage/random_brightness.c", None), ("src/data/stage/stage_list.h", r" *X\(one_hot\)"),
    ("include/stoker/data/dataset.h", r"/\* i32 class number"), None, ("src/recipe/keys_stage.c", r"static const stk_key stage_kinds"),
    ("src/recipe/keys_stage.c", r"    \{\.name = \"decode_mask\""),
    ("src/recipe/build_stage.c", r"    else if \(!strcmp\(kind, \"one_hot\"\)\)"), ("tests/data/stage/test_random_brightness.c", None)],
    ["test_random_brightness", "test_build_stage"], ("test_random_brightness", r"PASSED.*2 test"), ("test_build_stage", r"PASSED"))
follow("adding-a-model.md", [
    ("src/nn/convmixer.c", None), ("src/nn/model_list.h", r" *X\(layers\)"),
    ("include/stoker/nn/networks.h", r"/\* Ronneberger"), ("convmixer.yaml", None)],
    ["stoker"], ("stoker models convmixer", r"head +769,000 .*", r"all +21,110,248 .*"), ("stoker train convmixer.yaml", r"loss .*"))
follow("adding-a-layer.md", [
    ("src/nn/squeeze_excite.c", None), ("src/nn/layer_list.h", r" *X\(reshape\)"),
    ("include/stoker/nn/layers.h", r"/\* Volumes \[N,D,H,W,C\]"), ("squeeze.yaml", None)],
    ["stoker"], ("stoker train squeeze.yaml", r"loss .*"))
build = os.path.join(COPY, "build")
subprocess.run(["cmake", "-S", COPY, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSTOKER_WERROR=ON"], check=True,
               stdout=subprocess.DEVNULL)
subprocess.run(["ninja", "-C", build, "--quiet", *sorted(set(targets))], check=True)
for check in checks:
    expect(*check)
