"""What the cases of the tour share: a place with data, a recipe and a user's own files, and what is looked at afterwards."""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

RECIPE = """
name: tour
data:
  train:
    source: {images: digits/train}
    shuffle: true
    stages: [{decode: {channels: 1}}, {random_crop: {size: 28, pad: 2}}, {normalize: mnist}]
  test:
    source: {images: digits/test}
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
batch: 20
model: {cnn: {widths: [4, 8]}}
optimizer: {adam: {lr: 0.003}}
epochs: 100000
checkpoint: {every: 3 steps}
log: {every: 1 step}
"""

TIMEOUT = float(os.environ.get("STOKER_TEST_TIMEOUT", 120))  # seconds, for machines that are busy
NOBODY = 65534


class Skip(Exception):
    """The machine lacks what the case needs."""


class Failed(Exception):
    """What was seen is not what a user may expect."""


def expect(ok, what):
    if not ok:
        raise Failed(what)


def digest(folder):
    """Path -> kind and content of everything below a folder."""
    found = {}
    for top, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(top, name)
            if os.path.islink(path):
                found[path] = "-> " + os.readlink(path)
            elif os.path.isdir(path):
                found[path] = "folder"
            else:
                with open(path, "rb") as f:
                    found[path] = hashlib.sha256(f.read()).hexdigest()
    return found


def losses(run):
    """Step -> loss as written."""
    try:
        with open(os.path.join(run, "metrics.jsonl")) as f:
            records = [json.loads(line) for line in f if line.endswith("\n")]
    except (OSError, ValueError) as broken:
        raise Failed(f"metrics.jsonl cannot be read: {broken}") from broken
    return {r["step"]: r["loss"] for r in records if r["kind"] == "step"}


def wait_for(ready, process, what):
    """Until ready() holds while the process goes on."""
    end = time.monotonic() + TIMEOUT
    while not ready():
        expect(process.poll() is None, f"it ended before there was {what}, with {process.returncode}")
        expect(time.monotonic() < end, f"there was no {what} in {TIMEOUT:.0f} s")
        time.sleep(0.005)


class Place:
    """A folder of its own for each case. `mine` are a user's files next to the run: nothing may touch them."""

    def __init__(self, stoker, folder, digits, faults=None):
        self.stoker, self.folder, self.faults = stoker, folder, faults
        os.makedirs(folder)
        os.chmod(folder, 0o755)
        shutil.copytree(digits, self.path("digits"))
        self.write("r.yaml", RECIPE)
        self.write("mine/thesis.txt", "three years of work\n")
        self.mine = digest(self.path("mine"))
        self.text, self.code = "", None

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def start(self, *args, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.STDOUT)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("start_new_session", True)
        return subprocess.Popen([self.stoker, *args], cwd=self.folder, **options)

    def end(self, process):
        """Waits for a process that start() started, and keeps what it said."""
        try:
            out = process.communicate(timeout=TIMEOUT)[0] or b""
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.communicate()
            raise Failed(f"it hangs: no end in {TIMEOUT:.0f} s") from late
        self.text, self.code = out.decode(errors="replace"), process.returncode
        expect(self.code >= 0 or self.code == -signal.SIGKILL, f"signal {-self.code} ended it")
        return self

    def run(self, *args, **options):
        return self.end(self.start(*args, **options))

    def killed(self, at, under, *args):
        """Runs stoker until its call number `at` that changes a file whose path begins with `under`, in whose middle it
        is killed: tests/faults/kills.h."""
        if not self.faults:
            raise Skip("there is no library that counts calls: --faults")
        env = {**os.environ, "LD_PRELOAD": self.faults, "STK_KILL_UNDER": self.path(under), "STK_KILL_AT": str(at)}
        self.run(*args, env=env)
        expect(self.code == -signal.SIGKILL, f"it ended before its call number {at} that changes '{under}', with {self.code}")
        self.text = "(killed)"
        return self

    def train(self, *args, **options):
        return self.run("train", "r.yaml", "--out", "run", *args, **options)

    def training(self, *args, **options):
        """A run that goes on, behind its first checkpoint."""
        process = self.start("train", "r.yaml", "--out", "run", *args, **options)
        wait_for(lambda: self.checkpoints(), process, "checkpoint")
        return process

    def checkpoints(self, run="run"):
        """The numbers of the whole checkpoints."""
        folder = self.path(run)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(int(n[5:]) for n in names if re.fullmatch(r"step-\d+", n))

    def says(self, code, *parts):
        """It ended with this code and said all parts."""
        expect(self.code == code, f"exit code {self.code}, not {code}: {self.line()}")
        for part in parts:
            expect(re.search(part, self.text), f"it does not say '{part}': {self.line()}")

    def line(self):
        lines = [line for line in re.split(r"[\r\n]+", self.text) if line.strip()]
        told = [line for line in lines if line.startswith("stoker: ")]
        return told[0] if told else (lines or ["nothing"])[-1]

    def goes_on(self, whole, at_least=1):
        """The run can be resumed, and has the losses of a run that nothing happened to."""
        kept = self.checkpoints()
        expect(kept and kept[-1] >= at_least, f"checkpoints {kept}, where step {at_least} was saved")
        before = self.text, self.code
        self.train("--resume", "--steps", str(max(kept[-1] + 3, 6)))
        expect(self.code == 0, f"resuming: exit code {self.code}: {self.line()}")
        for step, loss in losses(self.path("run")).items():
            expect(whole.get(step, loss) == loss, f"step {step} has another loss than in a whole run")
        self.text, self.code = before

    def check_mine(self):
        expect(digest(self.path("mine")) == self.mine, "a file of the user's own has changed")
