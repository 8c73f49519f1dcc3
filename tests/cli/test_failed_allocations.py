#!/usr/bin/env python3
"""Each allocation of a verb fails once: the verb then gives what it gives otherwise, says that something is lost, or ends
with a message and leaves nothing under the output's name. It never crashes, hangs, or loses a part in silence.

A thin sweep: the first allocations, and then every so-many-th. STK_ALLOC_SWEEP=all tries every one, which takes some ten
minutes; STK_ALLOC_SWEEP=37,5 every 37th from the 5th on; STK_ALLOC_VERB=train,report these alone.

usage: test_failed_allocations.py STOKER WORK_FOLDER FAULTS_LIBRARY
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

from program import TIMEOUT, STOKER, accepted, begin, check, end

FAULTS = os.path.abspath(sys.argv[3])
SWEEP = os.environ.get("STK_ALLOC_SWEEP", "")
POINTS = 24  # of a verb, where the sweep is thin

# Numbers that a clock or the machine says, not the work.
MEASURED = re.compile(r"(_s|_ms|_ms_median|_per_s_overall|_share|_rss_bytes|time|joules|energy.*|input|host|launch|compute|idle|communication)$")


def shape(value, key=""):
    """A JSON value with what is measured left out, so that two runs can be compared."""
    if isinstance(value, dict):
        return {k: shape(v, k) for k, v in sorted(value.items())}
    if isinstance(value, list):
        return [shape(v, key) for v in value]
    return "measured" if isinstance(value, (int, float)) and MEASURED.search(key) else value


def digest(path, tag=""):
    """What is in a file or folder, as far as it is the same in each run. An index next to data (.stkidx) is a help.
    tag: the run's own word, which a recipe has as its name."""
    if os.path.isdir(path):
        return {name: digest(f"{path}/{name}", tag) for name in sorted(os.listdir(path))
                if not name.endswith(".stkidx") and name not in ("events", "lock", "profile.json")}
    with open(path, "rb") as f:
        data = f.read().replace(tag.encode(), b"@") if path.endswith(".yaml") and tag else f.read()
    if path.endswith(("result.json", "metrics.jsonl", "state.json")):
        return [shape(json.loads(line)) for line in ([data] if path.endswith(".json") else data.splitlines())]
    if path.endswith("manifest.json"):
        manifest = json.loads(data)
        if isinstance(manifest.get("files"), dict) and "state.json" in manifest["files"]:
            manifest["files"]["state.json"] = "compared by what is in it"
        return manifest
    return hashlib.sha256(data).hexdigest()


class Verb:
    def __init__(self, name, args, out=None, prints=False, makes_parts=False, points=POINTS):
        self.name, self.args, self.out, self.prints = name, args, out, prints
        self.makes_parts, self.points = makes_parts, points

    def run(self, tag, env):
        """What came of it: the exit code, both outputs, and what was made, which is removed."""
        out = self.out and self.out.replace("@", tag)
        args = [a.replace("@", tag) for a in self.args]
        preload = f"{FAULTS}:{os.environ['LD_PRELOAD']}" if "LD_PRELOAD" in os.environ else FAULTS
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:allocator_may_return_null=1:detect_leaks=0"
        env = {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": asan, "OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "5000", **env}
        try:
            done = subprocess.run([STOKER, *args], capture_output=True, env=env, timeout=TIMEOUT)
            code, text, err = done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired:
            code, text, err = "none, it hangs", "", ""
        made = digest(out, tag) if out and os.path.exists(out) else None
        if out and os.path.isdir(out):
            shutil.rmtree(out)
        elif made:
            os.remove(out)
        for name in os.listdir("."):
            if tag in name and name != f"{tag}.count":
                shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)
        return code, text.replace(tag, "@"), err.replace(tag, "@"), made


def judge(verb, whole, got):
    """None, or what is wrong."""
    code, text, err, made = got
    if code not in (0, 1):
        return f"exit code {code}"
    if "ERROR: AddressSanitizer" in err or "runtime error:" in err:
        return "a sanitizer's report"
    if code == 1:
        if "stoker: " not in err:
            return "no message"
        return "left something under its name" if made and not verb.makes_parts else None
    if "warning:" in err:
        return None
    if not is_same(made, whole[3]):
        return f"made something else: {differ(made, whole[3])}"
    return "printed something else" if verb.prints and text != whole[1] else None


def is_same(a, b, key=""):
    """Where memory fails an evaluation goes on in parts, for which another kernel may be the fastest: its sums round differently."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(a[k], b[k], k) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(is_same(x, y, key) for x, y in zip(a, b))
    if key in ("valid_loss", "test_loss", "best_value", "stop_value") and a and b:
        x, y = (float.fromhex(v) if isinstance(v, str) else v for v in (a, b))
        return x == y or abs(x - y) <= 1e-6 * abs(y)
    return a == b


def differ(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            if key not in a or key not in b or not is_same(a[key], b[key], key):
                return differ(a.get(key), b.get(key), f"{path}/{key}")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next((differ(x, y, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b)) if not is_same(x, y)), path)
    return f"{path}: {str(a)[:100]!r}, not {str(b)[:100]!r}"


def where(verb, at, env):
    """The functions that the allocation is made in, innermost first."""
    err = verb.run(f"{verb.name}-{at}y", {**env, "STK_FAIL_AT": str(at), "STK_FAIL_STACK": "1"})[2]
    frames = re.findall(re.escape(STOKER) + r"\((\w*)\+?0?x?([0-9a-f]*)\)", err)
    addresses = re.findall(re.escape(STOKER) + r"\(\+(0x[0-9a-f]+)\)", err.replace("@", verb.name))
    try:
        lines = subprocess.run(["addr2line", "-f", "-e", STOKER, *addresses], capture_output=True, text=True).stdout.splitlines()
    except OSError:
        lines = []
    names = dict(zip([a[2:] for a in addresses], lines[::2]))
    return " < ".join([name or names.get(at_, at_) for name, at_ in frames][:5])


def choose(n, points):
    """Which allocations of n fail."""
    if SWEEP == "all":
        return list(range(1, n + 1))
    if SWEEP:
        step, first = map(int, SWEEP.split(","))
        return list(range(first, n + 1, step))
    step = max(1, n // points)
    return sorted({1, 2, 3, *range(step // 2 + 1, n + 1, step)} & set(range(1, n + 1)))


def sweep(verb, pool, function="", within=""):
    env = {"STK_FAIL_WITHIN": within} if within else {}
    whole = verb.run(f"{verb.name}-whole", {**env, "STK_FAIL_COUNT": f"{verb.name}-whole.count"})
    check(whole[0] == 0, f"{verb.name}: {whole[:3]}")
    with open(f"{verb.name}-whole.count") as f:
        n = int(f.read())
    check(n > 0, f"{verb.name} {function}: no allocations are seen")
    points = choose(n, 6 if within else verb.points)
    start = time.monotonic()
    jobs = {at: pool.submit(verb.run, f"{verb.name}-{at}x", {**env, "STK_FAIL_AT": str(at)}) for at in points}
    wrongs = {}
    for at, job in jobs.items():
        wrong = judge(verb, whole, job.result())
        if wrong:
            wrongs.setdefault(where(verb, at, env), []).append((at, wrong, job.result()[2][-300:]))
    for place, found in wrongs.items():
        check(False, f"{verb.name}: allocation {found[0][0]} of {n} fails: {found[0][1]}: {found[0][2]!r}, made in {place}; "
                     f"and {len(found) - 1} more there")
    print(f"{verb.name} {function}: {len(points)} of {n} allocations, {time.monotonic() - start:.1f} s", flush=True)


def prepare():
    with open("text.txt", "w") as f:
        f.write("the quick brown fox jumps over the lazy dog\n" * 40)
    with open("tiny.yaml", "w") as f, open("small.yaml") as small:
        f.write(small.read().replace("epochs: 2", "epochs: 1").replace("batch: 20", "batch: 50\nvalid: 20%\nmetrics: [confusion, f1]"))
    accepted(["train", "tiny.yaml", "--out", "run", "--threads", "1", "--trace", "2-3"])
    accepted(["export", "run", "--safetensors", "--out", "weights.safetensors"])
    accepted(["tokenizer", "train", "text.txt", "--vocab", "300", "--out", "words.json"])


TRAIN = ["train", "tiny.yaml", "--threads", "1", "--out", "@"]
VERBS = [
    Verb("train", TRAIN, out="@", makes_parts=True),
    Verb("safetensors", ["export", "run", "--safetensors", "--out", "@.safetensors"], out="@.safetensors"),
    Verb("onnx", ["export", "run", "--onnx", "--out", "@.onnx"], out="@.onnx"),
    Verb("report", ["report", "run", "--out", "@.html"], out="@.html"),
    Verb("predict", ["predict", "run", "digits/test/0/00000.jpg", "--json"], prints=True),
    Verb("eval", ["eval", "run", "--json"], prints=True),
    Verb("explain", ["data", "explain", "tiny.yaml"]),
    Verb("verify", ["data", "verify", "digits/test"]),
    Verb("import", ["import", "weights.safetensors", "--out", "@"], out="@"),
    Verb("plan", ["plan", "tiny.yaml"], points=8),  # it measures the machine, which takes a while
    Verb("pack", ["pack", "digits/test", "--out", "@"], out="@", makes_parts=True),
    Verb("digits", ["get", "digits", "--train", "10", "--test", "10", "--threads", "1", "--out", "@"], out="@"),
    Verb("tokenizer", ["tokenizer", "train", "text.txt", "--vocab", "300", "--out", "@.json"], out="@.json"),
    Verb("tokenize", ["tokenize", "text.txt", "--tokenizer", "words.json", "--out", "@"], out="@", makes_parts=True),
    Verb("records", ["pack", "tiny.yaml", "--format", "tfrecord", "--out", "@"], out="@", makes_parts=True),
    Verb("show", ["data", "show", "tiny.yaml", "--out", "@.png"], out="@.png"),
    Verb("lint", ["data", "lint", "tiny.yaml"], prints=True),
    Verb("new", ["new", "@"], out="@.yaml"),
]

# Where something was lost or crashed once: allocations in these functions, and in what they call.
ONCE = [("safetensors", "stk_trainer_new"), ("eval", "stk_graph_clone"), ("train", "stk_state_to_json"),
        ("train", "stk_manifest_to_json"), ("import", "stk_data_record_print"), ("import", "stk_yaml_print"),
        ("import", "stk_checkpoint_save_in_place"), ("report", "stk_run_data_read"), ("report", "stk_section_confusion"),
        ("report", "stk_section_critical"), ("report", "stk_trace_data_make"),
        ("tokenize", "stk_tokenizer_parse_json"), ("pack", "stk_source_open_images")]


def ranges():
    """The first and last address of each function in the program's file; none where nm is not there."""
    try:
        lines = subprocess.run(["nm", "-n", "--defined-only", STOKER], capture_output=True, text=True).stdout.splitlines()
    except OSError:
        print("SKIP: no nm to find functions with")
        return {}
    rows = [line.split() for line in lines]
    rows = [(int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tT"]
    return {name: f"{at:x}-{(rows[i + 1][0] if i + 1 < len(rows) else at + 1):x}" for i, (at, name) in enumerate(rows)}


begin()
prepare()
chosen = os.environ.get("STK_ALLOC_VERB", "").split(",")
with concurrent.futures.ThreadPoolExecutor(2) as workers:
    for each in VERBS:
        if chosen == [""] or each.name in chosen:
            sweep(each, workers)
    functions = ranges()
    for name, function in ONCE:
        if chosen == [""] or name in chosen:
            each = next(verb for verb in VERBS if verb.name == name)
            if function in functions:
                sweep(each, workers, function, functions[function])
            else:
                check(not functions, f"there is no function {function}")
end()
