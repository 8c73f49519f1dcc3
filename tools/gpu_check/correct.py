"""What must be right before anything is measured: the card and its libraries, each op's values, three trainings, and what
NVIDIA's compute-sanitizer says of our kernels."""
import json
import os
import re
import shutil
import sys
from pathlib import Path

from session import PLACE, ROOT, last_line

N_PARTS = 48  # of the ops: what one part's time-out loses
TRAININGS = ["cifar-cnn", "gpt2", "bert"]
# Kernels of ours with shared memory and edges; products are the library's elsewhere.
WATCHED = ["attention", "attention_grad", "matmul", "softmax", "layer_norm", "reduce", "linear_cross_entropy", "conv2d", "batch_norm", "adam_update"]


def check_card(s):
    done = s.run(s.stoker("devices", "--json"), 30)
    try:
        devices = json.loads(done.text)["devices"]
    except (ValueError, KeyError):
        return s.row("stoker devices", False, error=last_line(done))
    s.run(s.stoker("devices"), 30)
    for d in devices:
        if d["name"] == s.device.split(":")[0]:
            s.row("device", bool(d["available"]), name=s.device, chip=d["chip"], gpu=d["gpu"], memory_bytes=d["memory_bytes"],
                  others_bytes=d["others_bytes"], detail=re.sub(r"GPU-[0-9a-f-]{36}, ", "", d["detail"]))
    s.row("machine", None, cores=os.cpu_count(), commit=commit(s), small=s.small)
    check_smi(s)
    check_torch(s)


def check_smi(s):
    """The driver's own description: the row has what a figure depends on, the log all of it."""
    keys = "name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.max.mem,mig.mode.current"
    done = s.run(["nvidia-smi", f"--query-gpu={keys}", "--format=csv,noheader"], 10, ours=False)
    if done.rc != 0:
        return s.row("nvidia-smi", None, error=last_line(done))
    values = [v.strip() for v in done.text.strip().splitlines()[0].split(",")]
    s.row("nvidia-smi", True, **dict(zip((k.replace(".", "_") for k in keys.split(",")), values)))
    s.run(["nvidia-smi", "-q"], 15, ours=False)


def check_torch(s):
    """What the peers run on. PyTorch also tells cuDNN's version."""
    text = ("import json, torch; c = torch.cuda.is_available(); print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda, "
            "'cudnn': torch.backends.cudnn.version() if c else None, 'sees': torch.cuda.get_device_name() if c else None}))")
    done = s.run([s.python, "-c", text], 60, ours=False)
    if done.rc != 0:
        return s.row("PyTorch", None, error=f"figures stand alone: {last_line(done)}")
    s.row("PyTorch", True, **json.loads(done.text.strip().splitlines()[-1]))


def commit(s):
    """Of what was carried, where that runs; else of the checkout."""
    told = s.programs.parent / "commit"
    git = os.popen(f"git -C '{ROOT}' describe --always --dirty --abbrev=8 --exclude='*' 2>/dev/null").read().strip()
    return told.read_text().strip() if told.exists() else git or "unknown"


# --- values ---

SUMMARY = re.compile(r"^\w+: (\d+) calls compared, (\d+) in place, (\d+) of kept weights, (\d+) wrong", re.MULTILINE)


def check_part(s, part):
    command = [str(s.programs / "test_op_values"), s.device, part]
    done = s.run(command)
    found = [list(map(int, m)) for m in SUMMARY.findall(done.text)]
    counts = dict(zip(("compared", "in_place", "kept", "wrong"), map(sum, zip(*found)))) if found else {}
    skipped = re.findall(r"has no kernel for some case of (\w+ in \w+)", done.text)
    wrong = [line[:300] for line in done.text.splitlines() if re.match(r".* on (cuda|opencl|cpu): ", line)]
    ok = done.rc == 0 and counts.get("wrong", 1) == 0
    error = {} if ok else {"error": wrong[0] if wrong else last_line(done), "wrong_calls": wrong[:40]}
    s.row(f"part {part}", ok, **counts, seconds=round(done.seconds, 1), skipped=skipped, **error)
    return ok


def check_values(s):
    """Parts of the ops, some at a time: the reference device is slow, and one thread."""
    parts = [f"{i}/{N_PARTS}" for i in (range(N_PARTS) if not s.small else [3])]
    done = s.each(lambda part: check_part(s, part), parts, max(1, (os.cpu_count() or 2) - 2))
    late = [part for part, ok in zip(parts, done) if ok is None]
    if late:
        s.row("not begun", False, error=f"no time for the parts {' '.join(late)}")


def check_trainings(s):
    """tests/cli/test_gpu.py, in follow.py: f32, 100 steps."""
    def follow(name):
        work = s.work / f"follow-{name}"
        done = s.run([sys.executable, str(Path(__file__).parent / "follow.py"), str(s.programs / "stoker"), str(work), s.device, name,
                      "5" if s.small else "0"])
        line = next((line for line in done.text.splitlines() if line.startswith(f"{name}: ")), "")
        apart = re.search(r"at most (\S+) apart", line)
        s.row(name, done.rc == 0, apart=float(apart[1]) if apart else None, seconds=round(done.seconds, 1),
              **({"said": line} if done.rc == 0 else {"error": last_line(done)}))
        return True
    names = TRAININGS[:1] if s.small else TRAININGS
    for name, done in zip(names, s.each(follow, names, min(3, (os.cpu_count() or 2) // 2))):
        if done is None:
            s.row(name, False, error="no time was left")


def find_sanitizer():
    at = "/usr/local/cuda/bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (at if os.access(at, os.X_OK) else None)


def check_sanitizer(s):
    program = find_sanitizer()
    if not s.device.startswith("cuda") or not program:
        return s.row("compute-sanitizer", None, error="not installed" if s.device.startswith("cuda") else "for CUDA only")
    tasks = [(tool, op) for op in WATCHED for tool in ("memcheck", "racecheck")]

    def watch(task):
        tool, op = task
        done = s.run([program, "--tool", tool, "--error-exitcode", "99", "--print-limit", "20", str(s.programs / "test_op_values"),
                      s.device, op], s.left(), STOKER_CUBLASLT="0", STOKER_CUDNN="0", STOKER_CUDA_GRAPHS="0")
        found = re.findall(r"ERROR SUMMARY: (\d+)|RACECHECK SUMMARY: (\d+)", done.text)
        n = sum(int(a or b) for a, b in found)
        # 3: it does not know this machine's driver, which says nothing of ours.
        ok = None if done.late or not found else n == 0 and done.rc == 0
        s.row(f"{tool}: {op}", ok, errors=n, seconds=round(done.seconds, 1), **({} if ok else {"error": last_line(done)}))
        return True
    done = s.each(watch, tasks, min(4, (os.cpu_count() or 2) // 2))
    if None in done:
        s.row("not begun", None, error=f"no time for {', '.join(f'{t}: {op}' for (t, op), d in zip(tasks, done) if d is None)}")
