"""Full disks, missing rights, closed terminals, limits, and what other programs do to a run's files."""
import fcntl
import glob
import os
import pty
import resource
import shutil
import signal
import subprocess
import time

from place import NOBODY, Skip, expect, losses, wait_for

CASES = []
WHOLE = {}  # step -> loss of a run that nothing happened to


def case(title, kept):
    """title: what was done; kept: what a user still has afterwards."""
    def add(function):
        CASES.append((title, kept, function))
        return function
    return add


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


class Mounted:
    """A file system of its own at a folder, for as long as the case runs."""

    def __init__(self, place, name, *what):
        need_root()
        self.folder = place.path(name)
        os.makedirs(self.folder, exist_ok=True)
        if subprocess.run(["mount", *what, self.folder], capture_output=True).returncode != 0:
            raise Skip("this machine lets nobody mount")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], capture_output=True)


def as_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@case("the disk is full in the midst of a run", "the last whole checkpoint; the run goes on where it was once there is room")
def _(place):
    with Mounted(place, "disk", "-t", "tmpfs", "-o", "size=3m", "none"):
        process = place.start("train", "r.yaml", "--out", "disk/run", "--set", "checkpoint.keep=1000")
        wait_for(lambda: os.statvfs(place.path("disk")).f_bavail == 0, process, "full disk")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        place.end(process).says(1, "[Nn]o space", "disk/run", "--resume")
        kept = place.checkpoints("disk/run")
        expect(kept, "no checkpoint is left")
        for number in kept[:-2]:
            shutil.rmtree(place.path(f"disk/run/step-{number}"))
        said = place.text, place.code
        place.run("train", "r.yaml", "--out", "disk/run", "--resume", "--steps", str(kept[-1] + 1),
                  "--set", "checkpoint.keep=1000").says(0)
        for step, loss in losses(place.path("disk/run")).items():
            expect(WHOLE.get(step, loss) == loss, f"step {step} has another loss than in a whole run")
        place.text, place.code = said


@case("the disk is full before the run", "what lay there")
def _(place):
    with Mounted(place, "disk", "-t", "tmpfs", "-o", "size=64k", "none"):
        place.write("disk/notes.txt", "x" * 49152)
        place.run("train", "r.yaml", "--out", "disk/run", "--steps", "6")
        expect(place.code == 1 and "space" in place.text.lower(), place.line())
        expect(os.path.getsize(place.path("disk/notes.txt")) == 49152, "another file was touched")


@case("the disk is full while data are packed", "the folder that was packed; no half pack")
def _(place):
    with Mounted(place, "disk", "-t", "tmpfs", "-o", "size=64k", "none"):
        place.run("pack", "digits/train", "--out", "disk/packed").says(1, "[Nn]o space")
        expect(not os.path.exists(place.path("disk/packed")), "a half pack was left")


@case("the disk is full while digits are made", "no half data set")
def _(place):
    with Mounted(place, "disk", "-t", "tmpfs", "-o", "size=256k", "none"):
        place.run("get", "digits", "--out", "disk/digits", "--train", "2000", "--test", "20").says(1, "[Nn]o space")
        expect(not os.path.exists(place.path("disk/digits")), "half a data set was left")


@case("standard output is a full disk", "the run; printing verbs end with an error")
def _(place):
    with open("/dev/full", "w") as full:
        place.train("--steps", "6", stdout=full, stderr=subprocess.PIPE)
        place.code = 0 if place.code in (0, 1) else place.code
        place.goes_on(WHOLE, 6)
        done = subprocess.run([place.stoker, "models"], stdout=full, stderr=subprocess.PIPE)
        place.code, place.text = done.returncode, done.stderr.decode()
        expect(place.code != 0 and place.text, "`stoker models` does not say that it could not print")


@case("no right to write the run's folder", "the folder as it was")
def _(place):
    need_root()
    place.train("--steps", "3", preexec_fn=as_nobody).says(1, "run", "[Pp]ermission denied")
    expect(not os.path.exists(place.path("run")), "something was made")


@case("no right to read one photo", "the data; the photo is named")
def _(place):
    need_root()
    photo = sorted(glob.glob(place.path("digits/train/3/*.jpg")))[0]
    os.chmod(photo, 0)
    os.chmod(place.folder, 0o777)
    place.train("--steps", "20", preexec_fn=as_nobody).says(1, os.path.basename(photo), "[Pp]ermission denied")


@case("the terminal is closed (SIGHUP)", "a checkpoint of the last step")
def _(place):
    process = place.training()
    process.send_signal(signal.SIGHUP)
    place.end(process)
    expect("saved" in place.text, f"nothing says that it saved: {place.line()}")
    place.goes_on(WHOLE, max(losses(place.path("run"))))


@case("the terminal's window is gone, with all that it would show", "a checkpoint of the last step")
def _(place):
    ours, theirs = pty.openpty()

    def own_terminal():
        fcntl.ioctl(0, 0x540E, 0)  # TIOCSCTTY

    process = place.start("train", "r.yaml", "--out", "run", stdin=theirs, stdout=theirs, stderr=theirs,
                          preexec_fn=own_terminal)
    os.close(theirs)
    wait_for(lambda: place.checkpoints(), process, "checkpoint")
    os.close(ours)
    place.end(process)
    place.text = "(the terminal is gone)"
    place.goes_on(WHOLE, max(losses(place.path("run"))))


@case("`nohup`, and then the terminal is closed", "the run, which goes on")
def _(place):
    process = place.training("--steps", "60", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    place.end(process)
    expect(place.checkpoints()[-1] == 60, f"the run ended: {place.line()}")


@case("`stoker train | head -1`", "the run, which goes on")
def _(place):
    process = place.start("train", "r.yaml", "--out", "run", "--steps", "30", stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    place.code = process.wait(120)
    place.text = process.stderr.read().decode()
    process.stderr.close()
    expect(place.checkpoints()[-1:] == [30], f"the run ended with {place.code}: {place.line()}")


@case("standard input, output and error are closed", "the run, with nothing of the output in its files")
def _(place):
    script = 'exec "$@" <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", script, "sh", place.stoker, "train", "r.yaml", "--out", "run", "--steps", "12"],
                          cwd=place.folder)
    place.code = done.returncode
    expect(sorted(losses(place.path("run"))) == list(range(1, 13)), "metrics.jsonl has other lines than steps")
    place.goes_on(WHOLE, 12)


@case("Ctrl-C", "a checkpoint of the last step")
def _(place):
    process = place.training()
    process.send_signal(signal.SIGINT)
    place.end(process)
    expect("--resume" in place.text, f"nothing says how to go on: {place.line()}")
    place.goes_on(WHOLE, max(losses(place.path("run"))))


@case("Ctrl-C twice, quickly", "a checkpoint")
def _(place):
    process = place.training()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    place.end(process)
    expect("step-" in place.text or "--resume" in place.text, f"nothing says what is kept: {place.line()}")
    place.goes_on(WHOLE)


@case("the batch system's time is up (SIGXCPU)", "a checkpoint of the last step")
def _(place):
    process = place.training()
    process.send_signal(signal.SIGXCPU)
    place.end(process)
    place.goes_on(WHOLE, max(losses(place.path("run"))))


@case("`ulimit -f`: no file may be larger than 4 KiB", "a message instead of a dead process")
def _(place):
    place.train("--steps", "6", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    place.says(1, "([Ff]ile too large|File size limit)")


@case("`ulimit -n 16`: hardly any open files", "a message, or the run")
def _(place):
    place.train("--steps", "6", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
    expect(place.code == 0 or "open files" in place.text, place.line())


@case("`ulimit -v`: 300 MiB of addresses", "a message, or the run")
def _(place):
    limit = 300 << 20
    place.train("--steps", "6", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    expect(place.code == 0 or (place.code == 1 and "memory" in place.text), place.line())


@case("`--memory 64KiB`", "no run folder; what takes most is named")
def _(place):
    place.train("--memory", "64KiB").says(1, "limit", "raise|larger")
    expect(not os.path.exists(place.path("run")), "a run folder was made")


@case("two runs in one folder at the same time", "the first run, to its end")
def _(place):
    process = place.training("--steps", "120")
    place.train("--resume", "--steps", "3")
    said = place.text, place.code
    place.end(process)
    expect(place.checkpoints()[-1] == 120, f"the first run ended: {place.line()}")
    place.text, place.code = said
    place.says(1, "run", "(in use|another|already|at work)")


@case("a file shrinks while it is read", "the run up to there; the file is named, no signal")
def _(place):
    place.write("x.bin", bytes(1 << 20))
    place.write("t.yaml", "name: t\ndata:\n  train:\n    source: {tokens: {files: x.bin, dtype: u16, length: 64}}\n    shuffle: true\n"
                "batch: 4\nmodel: {gpt2: {size: mini, layers: 1, heads: 2, width: 16, vocabulary: 257, positions: 64}}\n"
                "optimizer: {adam: {lr: 0.001}}\nepochs: 1000\ncheckpoint: {every: 5 steps}\nlog: {every: 1 step}\n")
    process = place.start("train", "t.yaml", "--out", "run")
    wait_for(lambda: place.checkpoints(), process, "checkpoint")
    os.truncate(place.path("x.bin"), 4096)
    place.end(process).says(1, r"x\.bin")


@case("photos vanish while they are read", "the run up to there; a photo is named")
def _(place):
    process = place.training()
    shutil.rmtree(place.path("digits/train/5"))
    place.end(process)
    expect(place.code == 1 and "digits/train/5" in place.text, place.line())
    expect(place.checkpoints(), "no checkpoint is left")


@case("a USB disk is pulled (its device answers with errors)", "what was saved elsewhere; the message names the file")
def _(place):
    need_root()
    image = place.path("disk.img")
    with open(image, "wb") as f:
        f.truncate(8 << 20)
    if not shutil.which("mkfs.ext4") or subprocess.run(["mkfs.ext4", "-q", image]).returncode != 0:
        raise Skip("needs mkfs.ext4")
    with Mounted(place, "disk", "-o", "loop", image):
        shutil.copytree(place.path("digits"), place.path("disk/digits"))
        subprocess.run(["sync"], check=True)
        process = place.training("--set", "data.train.source.images=disk/digits/train")
        os.truncate(image, 0)
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("3\n")
        place.end(process)
        expect(place.code == 1 and "disk/digits" in place.text, place.line())
        expect(place.checkpoints(), "no checkpoint is left")


@case("`cache: {in: disk}` with the path of a user's file", "the user's file")
def _(place):
    for verb in (["data", "explain"], ["train"]):
        place.run(*verb, "r.yaml", "--set", "data.train.cache={in: disk, path: mine/thesis.txt}",
                  *(["--steps", "3"] if verb == ["train"] else []))
    expect(place.code == 1 and "thesis.txt" in place.text, place.line())


@case("`--out` is a folder with a user's own files", "the user's files")
def _(place):
    place.run("train", "r.yaml", "--out", "mine", "--steps", "3").says(1, "mine")


@case("`--out` is a user's file", "the user's file")
def _(place):
    place.run("train", "r.yaml", "--out", "mine/thesis.txt", "--steps", "3").says(1, r"thesis\.txt")


@case("the names of our side files are a user's folders", "the user's folders")
def _(place):
    for name in ("run.previous", "run.tmp", "packed.tmp", "data.download"):
        place.write(f"{name}/letter.txt", "dear friend\n")
    place.train("--steps", "3").says(0)
    place.train("--steps", "3")
    place.run("pack", "digits/train", "--out", "packed")
    for name in ("run.previous", "run.tmp", "packed.tmp", "data.download"):
        expect(os.path.exists(place.path(name, "letter.txt")), f"'{name}/letter.txt' is gone")


@case("the same recipe is started again, twice, without `--resume`", "each earlier run")
def _(place):
    for steps in ("3", "6", "9"):
        place.train("--steps", steps)
    kept = sorted(s[-1] for s in (place.checkpoints(os.path.basename(p)) for p in glob.glob(place.path("run*"))) if s)
    expect(kept in ([3, 6, 9], [3]), f"of three runs there are {kept}: {place.line()}")


@case("another recipe, in the folder of a run", "the run")
def _(place):
    place.train("--steps", "6").says(0)
    place.train("--batch", "10", "--steps", "6").says(1, "batch", "--out")
    place.goes_on(WHOLE, 6)
