"""PyTorch, eager and compiled, on the same work on the same card: bench/gpu_torch.py, a process for each."""
import json

import inputs
from figures import FIGURES
from session import ROOT, last_line

SCRIPT = str(ROOT / "bench/gpu_torch.py")
ORDER = ["gpt2", "resnet50-256", "bert-128", "bert-384", "photos", "resnet50-400", "airbench"]


def there(s):
    """Whether PyTorch can be measured; the rows of group card say it, or it is asked."""
    told = next((r for r in s.rows if r["what"] == "PyTorch"), None)
    if told:
        return bool(told["ok"])
    return s.run([s.python, "-c", "import torch"], 60, ours=False).rc == 0


def target(s):
    return "cuda" if s.device.startswith("cuda") else "cpu"


def environment(s):
    number = s.device.partition(":")[2] or "0"
    index = {"CUDA_VISIBLE_DEVICES": number} if target(s) == "cuda" and number.isdigit() else {}
    return {"TORCHINDUCTOR_CACHE_DIR": str(s.work / "inductor"), **index}


def begin_compiling(s):
    """While correctness is checked, and nothing is timed, PyTorch compiles: its cache makes the later processes start in seconds."""
    if target(s) == "cuda" and there(s) and not s.small:
        s.aside([s.python, SCRIPT, "gpt2", "resnet50-256", "bert-128", "bert-384", "--mode", "compile", "--device", "cuda", "--warm"],
                **environment(s))


def folder_of(s, name):
    """What the peers read that begin with files."""
    if name == "airbench":
        return inputs.digits(s) if s.small else inputs.find_cifar10(s)
    if name == "photos":
        return inputs.digits(s) / "train" if s.small else inputs.photo_tree(s)
    return None


def measure_peer(s, figure, mode):
    command = [s.python, SCRIPT, figure.peer, "--mode", mode, "--device", target(s), "--seconds", "0.5" if s.small else "4"]
    if figure.name in ("airbench", "photos"):
        folder = folder_of(s, figure.name)
        if not folder:
            return s.row(figure.name, None, who=mode, error="its files are not here")
        command += ["--folder", str(folder)]
    done = s.run(command + ["--small"] * s.small, 90, ours=False, **environment(s))
    lines = [line for line in done.text.splitlines() if line.startswith("{")]
    if done.rc != 0 or not lines:
        return s.row(figure.name, None, who=mode, error=last_line(done))
    return s.row(figure.name, True, who=mode, **json.loads(lines[-1]))


def measure_peers(s):
    if not there(s):
        return s.row("PyTorch", None, error=f"'{s.python}' cannot import torch: figures stand alone")
    figures = {f.name: f for f in FIGURES}
    compiled = ["gpt2"] if s.small else [name for name in ORDER if name != "airbench"]  # compiling takes a minute on few cores
    for name in ORDER:
        for mode in ("eager", "compile"):
            if s.left() < 8:
                s.row(name, None, who=mode, error="no time was left")
            elif mode == "eager" or name in compiled:
                measure_peer(s, figures[name], mode)
    return None
