#!/usr/bin/env python3
"""examples/09_classify, which a program that only classifies looks like: the answers of `stoker predict`, none of the
trainer linked in, and little memory besides the weights.

usage: test_classify.py STOKER WORK_FOLDER
"""
import json
import os
import re
import shutil
import subprocess

from program import STOKER, accepted, begin, check, end

CLASSIFY = os.path.join(os.path.dirname(STOKER), "examples", "09_classify")
SYMBOLS = subprocess.run(["nm", CLASSIFY], capture_output=True, text=True).stdout if shutil.which("nm") else ""


def classify(*words):
    return subprocess.run([CLASSIFY, *words], capture_output=True, text=True, timeout=120)


def shown(predictions):
    return [f"  {100 * p['probability']:6.2f} %  " + (p["name"] or f"class {p['class']}") for p in predictions]


def same_answers(folder, file):
    done = accepted(["predict", folder, file, "--json"])
    wanted = shown(json.loads(done.stdout)["classes"]) if done.returncode == 0 else []
    found = classify(f"{folder}/model.safetensors", file)
    check(found.returncode == 0 and len(wanted) == 5 and found.stdout.splitlines() == [file] + wanted,
          f"{found.stdout + found.stderr} is not {wanted}")


def answers():
    files = [f"digits/test/{c}/{sorted(os.listdir(f'digits/test/{c}'))[0]}" for c in range(3)]
    accepted(["train", "small.yaml", "--out", "first", "--epochs", "1"])
    accepted(["export", "first", "--safetensors"])
    for file in files:
        same_answers("first", file)
    both = classify("first/model.safetensors", *files)
    check(both.stdout.count("digits/test/") == 3, "several files in one go")
    for words, code, message in (([], 2, "usage"), (["nowhere.safetensors", files[0]], 1, "'nowhere.safetensors'"),
                                 (["first/step-10/model.safetensors", files[0]], 1, "stoker export RUN --safetensors"),
                                 (["first/model.safetensors", "nothing.jpg"], 1, "'nothing.jpg'"),
                                 (["first/model.safetensors", "small.yaml"], 1, "cannot predict 'small.yaml'")):
        done = classify(*words)
        check(done.returncode == code and message in done.stderr, f"{words}: {done.returncode} {done.stderr}")


def linked():
    if not SYMBOLS:
        print("SKIP: no nm, so that what is linked was not looked at")
        return
    ours = re.findall(r" [TtDdRr] (\w+)", SYMBOLS)
    # Of what a recipe may name there are the descriptors, with a few lines of arithmetic each.
    training = [name for name in ours if name not in ("stk_step_schedule_default", "stk_trainer_config_default") and re.match(
        r"stk_(trainer|run|checkpoint|train|loop|step|optim_build|minimize|average|metrics|feed|session)_|stk_schedule_rate"
        r"|pass_(autodiff|loss_scale|accumulate|fuse_loss|carry|remask|recompute|fuse_residual)$", name)]
    check("stk_classifier_open" in ours and not training, f"of training there is: {training}")


def memory():
    """A network whose weights, 101 MiB, are nearly all that it needs; the largest of them has more than a third."""
    if "__asan_init" in SYMBOLS or "__tsan_init" in SYMBOLS:
        print("SKIP: a sanitizer takes memory of its own")
        return
    with open("large.yaml", "w") as f:
        f.write("""
data: {train: {source: {images: digits/train}, stages: [decode, {normalize: cifar10}]}}
batch: 2
model: {layers: [flatten, {dense: 4096}, relu, {dense: 4096}, relu, {dense: 10}]}
optimizer: sgd
""")
    accepted(["train", "large.yaml", "--out", "large", "--steps", "1"])
    accepted(["export", "large", "--safetensors"])
    file = "digits/test/0/" + sorted(os.listdir("digits/test/0"))[0]
    process = subprocess.Popen([CLASSIFY, "large/model.safetensors", file], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    weights, peak = os.path.getsize("large/model.safetensors"), 1024 * usage.ru_maxrss
    print(f"{weights / 2**20:.0f} MiB of weights, at most {peak / 2**20:.0f} MiB of memory")
    check(status == 0 and peak < 1.3 * weights, f"{peak / weights:.2f} times the weights")
    same_answers("large", file)


begin()
if os.path.exists(CLASSIFY):
    answers()
    linked()
    memory()
else:
    print("SKIP: the examples are not built")
end()
