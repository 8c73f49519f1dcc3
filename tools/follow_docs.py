#!/usr/bin/env python3
"""Follows docs/adding-*.md to the letter in a copy of the tree, builds it, runs the tests that the pages promise, and uses what was
added by the recipes that they show. Run by ./dev follow-docs.

usage: follow_docs.py TREE COPY [PAGE...]

The code blocks of the pages are taken as they stand and put where the pages say; a block that no longer fits, compiles or
passes is an error. COPY is a folder that is recomputed but for its build folder, so that a second time is faster. With
pages (adding-a-stage.md) only those are followed.
"""
import json
import os
import re
import shutil
import subprocess
import sys

TREE, COPY = map(os.path.abspath, sys.argv[1:3])
PAGES = [page.removesuffix(".md") for page in sys.argv[3:]]
if "adding-a-kernel" in PAGES and "adding-an-op" not in PAGES:
    PAGES.append("adding-an-op")  # whose op it is for
STOKER = os.path.join(COPY, "build", "stoker")


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


def follow(page, places, most_files, targets, use):
    """Puts the blocks of a page into their places, which are most_files files besides tests."""
    if PAGES and page[:-len(".md")] not in PAGES:
        return
    with open(os.path.join(COPY, "docs", page)) as f:
        text = f.read()
    blocks = re.findall(r"```c\n(.*?)```", text, re.S)
    if len(blocks) != len(places):
        sys.exit(f"{page} has {len(blocks)} blocks of code, {len(places)} places are known")
    for block, place in zip(blocks, places):
        if place:  # else it shows how to call what was added
            put(place[0], place[1], block)
    files = {place[0] for place in places if place and not place[0].startswith("tests/")}
    if len(files) > most_files:
        sys.exit(f"{page} takes {len(files)} files, not {most_files}: {' '.join(sorted(files))}")
    recipes = re.findall(r"```yaml\n(.*?)```", text, re.S)
    followed.append((page, len(files), targets, use, recipes))


def make_copy():
    for folder in "src", "include", "tests", "cli":
        shutil.rmtree(os.path.join(COPY, folder), ignore_errors=True)
    names = subprocess.run(["git", "-C", TREE, "ls-files", "-z", "-co", "--exclude-standard"], stdout=subprocess.PIPE,
                           check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if os.path.isfile(os.path.join(TREE, name)):
            os.makedirs(os.path.dirname(os.path.join(COPY, name)), exist_ok=True)
            shutil.copy2(os.path.join(TREE, name), os.path.join(COPY, name))


def expect(program, *wanted):
    done = subprocess.run([os.path.join(COPY, "build", "tests", program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for text in wanted:
        if done.returncode or not re.search(text, done.stdout):
            sys.exit(f"{program}: no '{text}':\n{done.stdout}")
    print(f"{program}: " + "; ".join(re.search(text, done.stdout).group() for text in wanted))


def stoker(*words):
    done = subprocess.run([STOKER, *words], cwd=os.path.join(COPY, "build"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "STOKER_CACHE": os.path.join(COPY, "build", "cache")})
    if done.returncode:
        sys.exit(f"stoker {' '.join(words)}: {done.returncode}:\n{done.stdout}")
    return done.stdout


def wants(text, *wanted):
    for w in wanted:
        if w not in text:
            sys.exit(f"no '{w}':\n{text}")
    print("; ".join(wanted))


def write_recipe(recipes):
    with open(os.path.join(COPY, "build", "followed.yaml"), "w") as f:
        f.write(recipes[0])
    return "followed.yaml"


def train(recipes):
    folder = os.path.join(COPY, "build", "followed-run")
    shutil.rmtree(folder, ignore_errors=True)
    stoker("train", write_recipe(recipes), "--out", folder, "--threads", "1")
    with open(os.path.join(folder, "result.json")) as f:
        return json.load(f)


def use_op(recipes):
    expect("test_op_values", r"cpu: \d+ calls compared, .*, 0 wrong")
    expect("test_op_gradients", r"\d+ cases checked, 0 elements wrong")


def use_kernel(recipes):
    done = subprocess.run([os.path.join(COPY, "build", "tests", "test_op_values"), "opencl"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if "is left out" in done.stdout:
        print("SKIP: " + re.search(r".*is left out.*", done.stdout).group())
    elif done.returncode or "kernel for some case of flip in f32" in done.stdout:
        sys.exit(f"the kernel on 'opencl':\n{done.stdout}")
    else:
        print(re.search(r"opencl: [1-9]\d* calls compared, .*, 0 wrong", done.stdout).group())


def use_device(recipes):
    expect("test_op_values", r"plain: [1-9]\d* calls compared, .*, 0 wrong")


def use_lowering(recipes):
    if not os.environ.get("STOKER_PJRT_PATH"):
        print("SKIP: no PJRT plug-in for what adding-a-lowering.md adds: STOKER_PJRT_PATH is not set")
        return
    done = subprocess.run([os.path.join(COPY, "build", "tests", "test_op_values"), "pjrt", "softmax"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"pjrt: [1-9]\d* calls compared, .*, 0 wrong", done.stdout)
    if done.returncode or not found:
        sys.exit(f"the lowering on 'pjrt':\n{done.stdout}")
    print(found.group())


def use_stage(recipes):
    expect("test_random_brightness", r"PASSED.*2 test")
    expect("test_stage", r"PASSED")
    wants(stoker("data", "explain", write_recipe(recipes)), "random_brightness")
    wants(stoker("new", "--keys"), "`random_brightness`")
    train(recipes)


def use_source(recipes):
    expect("test_raw", r"PASSED.*2 test")
    with open(os.path.join(COPY, "build", "arrays.bin"), "wb") as f:
        f.write(bytes(range(192)) * 5)
    wants(stoker("data", "explain", write_recipe(recipes)), "raw", "5 ")
    wants(stoker("new", "--keys"), "`raw`")


def use_model(recipes):
    text = stoker("models", "convmixer")
    for wanted in r"head +769,000 ", r"all +21,110,248 ":
        if not re.search(wanted, text):
            sys.exit(f"no '{wanted}':\n{text}")
    train(recipes)


def use_layer(recipes):
    wants(stoker("new", "--keys"), "`squeeze_excite`")
    train(recipes)


def use_optimiser(recipes):
    expect("test_lion", r"PASSED.*2 test")


def use_loss(recipes):
    expect("test_log_cosh", r"PASSED.*1 test")


def use_key(recipes):
    wants(train(recipes)["about"], "shows how a key is added")
    wants(stoker("new", "--keys"), "`about`")


def use_verb(recipes):
    wants(stoker("samples", write_recipe(recipes)), "1,234 samples")
    wants(stoker("help", "samples"), "--split", "Prints how many samples")
    wants(stoker("completion", "bash"), "samples")


followed = []
make_copy()
follow("adding-an-op.md", [
    ("src/graph/op_list.h", r" *X\(concat\)"), ("src/graph/op.h", r" \*   concat "),
    ("src/graph/op.h", r"        struct \{\n            int32_t axis;\n        \} concat;"), ("src/ops/flip.c", None),
    ("include/stoker/graph/graph.h", r"(/\*[^/]*\*/\n)?STK_API stk_value stk_concat"), ("src/device/reference/movement.c", None),
    ("src/device/cpu/rows/flip.c", None), ("tests/harness/cases_move.c", r"    CONCAT\(\"rows\"")],
       6, ["test_op_values", "test_op_gradients"], use_op)
follow("adding-a-kernel.md", [
    ("src/device/gpu/kernels/flip.dev", None), ("src/device/gpu/ops/flip.c", None), ("src/device/gpu/kernel_list.h", r" *X\(concat\)")],
       3, ["test_op_values"], use_kernel)
follow("adding-a-lowering.md", [("src/device/pjrt/lowering.h", r" *X\(constant\)"), ("src/device/pjrt/lower/softmax.c", None)],
       2, ["test_op_values"], use_lowering)
follow("adding-a-device.md", [
    ("src/device/plain/plain.c", None), ("src/device/device.h", r"extern const stk_device_class stk_device_class_"),
    ("src/device/device_list.c", r"    NULL"), None], 3, ["test_op_values"], use_device)
follow("adding-a-stage.md", [
    ("src/data/stage/random_brightness.c", None), ("src/data/stage/stage_list.h", r" *X\(pad\)"), None,
    ("tests/data/stage/test_random_brightness.c", None)], 2, ["test_random_brightness", "test_stage", "stoker"], use_stage)
follow("adding-a-source.md", [
    ("src/data/source/raw.c", None), ("src/data/source/source_list.h", r" *X\(tokens\)"), None, ("tests/data/source/test_raw.c", None)],
       2, ["test_raw", "stoker"], use_source)
follow("adding-a-model.md", [
    ("src/nn/convmixer.c", None), ("src/nn/model_list.h", r" *X\(layers\)"), ("include/stoker/nn/networks.h", r"/\* Ronneberger")],
       3, ["stoker"], use_model)
follow("adding-a-layer.md", [
    ("src/nn/squeeze_excite.c", None), ("src/nn/layer_list.h", r" *X\(reshape\)"),
    ("include/stoker/nn/layers.h", r"/\* Volumes \[N,D,H,W,C\]")], 3, ["stoker"], use_layer)
follow("adding-an-optimiser.md", [
    ("src/optim/lion.c", None), ("include/stoker/train/optim.h", r" *X\(MUON, "), ("include/stoker/train/optim.h", r"#define stk_rmsprop"),
    ("tests/optim/test_lion.c", None)], 2, ["test_lion"], use_optimiser)
follow("adding-a-loss.md", [
    ("src/nn/loss_log_cosh.c", None), ("src/nn/loss_list.h", r" *X\(dice\)"), ("include/stoker/nn/loss.h", r"/\* \|x - y\|"),
    ("src/train/metric_bias.c", None), ("include/stoker/train/metric.h", r" *X\(RECALL_AT, "), ("tests/nn/test_log_cosh.c", None)],
       5, ["test_log_cosh"], use_loss)
follow("adding-a-key.md", [
    ("src/recipe/keys.c", r"    \{\.name = \"epochs\","),
    ("src/run/result.c", r"    bad \|= json_object_set_new\(object, \"test_accuracy\"")], 2, ["stoker"], use_key)
follow("adding-a-verb.md", [("cli/cmd_samples.c", None), ("cli/verb_list.h", r" *X\(new\)")], 2, ["stoker"], use_verb)
build = os.path.join(COPY, "build")
subprocess.run(["cmake", "-S", COPY, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSTOKER_WERROR=ON"],
               check=True, stdout=subprocess.DEVNULL)
targets = {target for _, _, targets, _, _ in followed for target in targets}
subprocess.run(["ninja", "-C", build, "--quiet", *sorted(targets)], check=True)
for page, n_files, _, use, recipes in followed:
    print(f"{page}: {n_files} files")
    use(recipes)
