"""What all groups of the check share: rows that are on disk at once, commands that end in time, and one log of all they said."""
import collections
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = Path(os.environ.get("STOKER_GPU_CHECK", ROOT / "build-gpu"))  # git ignores it

Done = collections.namedtuple("Done", "rc text late seconds")


class Session:
    """device: as `stoker devices` names it; small: tiny sizes; out: rows.jsonl, log.txt and table.md, three files and no more."""

    def __init__(self, device, small, seconds, out, programs, python):
        self.device, self.small, self.out, self.python = device, small, Path(out), python
        self.programs, self.data, self.env = programs.folder, programs.data, programs.environment
        self.work = PLACE / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.out.mkdir(parents=True, exist_ok=True)
        self.end = self.group_end = time.monotonic() + seconds
        self.group, self.rows, self.lock, self.others = "", [], threading.RLock(), []
        self.row_file = open(self.out / "rows.jsonl", "w")
        self.log_file = open(self.out / "log.txt", "w", errors="replace")

    def begin(self, group, seconds):
        self.group = group
        self.group_end = min(self.end, time.monotonic() + seconds)

    def left(self):
        """Seconds that the group still has."""
        return self.group_end - time.monotonic()

    def row(self, what, ok, **more):
        """ok: True, False, or None where nothing was decided."""
        row = {"group": self.group, "what": what, "ok": ok, **more}
        with self.lock:
            self.rows.append(row)
            self.row_file.write(json.dumps(row) + "\n")
            self.row_file.flush()
            os.fsync(self.row_file.fileno())
            print("gpu-check:", short(row), file=sys.stderr, flush=True)
        return row

    def log(self, head, text):
        with self.lock:
            self.log_file.write(f"=== {self.group}: {head}\n{text.rstrip()}\n\n")
            self.log_file.flush()

    def stoker(self, *args):
        return [str(self.programs / "stoker"), *map(str, args)]

    def run(self, command, limit=None, ours=True, **environment):
        """A command, ended where its time or the group's is over. ours: it needs the libraries that were carried."""
        limit = max(0.1, min(self.left(), limit or self.left()))
        start, text, late = time.monotonic(), "", False
        env = {**os.environ, **(self.env if ours else {}), **environment}
        try:
            process = subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        except OSError as error:
            return Done(127, str(error), False, 0)
        try:
            text, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            late, text = True, stop(process)
        except BaseException:
            stop(process)
            raise
        seconds = time.monotonic() - start
        self.log(" ".join(command), f"{text}\n[exit code {process.returncode}{', out of time' if late else ''}, {seconds:.1f} s]")
        return Done(process.returncode, text, late, seconds)

    def each(self, job, things, n):
        """job of each thing, n of them at a time; those for whom the group's time is over are not begun."""
        with concurrent.futures.ThreadPoolExecutor(max(1, n)) as pool:
            return list(pool.map(lambda thing: job(thing) if self.left() > 1 else None, things))

    def aside(self, command, **environment):
        """A command that goes on beside the next groups, until `end_aside`."""
        self.others.append(subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def end_aside(self):
        for process in self.others:
            stop(process)
        self.others = []


def stop(process):
    """Ends a command and what it began; what it had said."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            return process.communicate(timeout=3)[0] or ""
        except subprocess.TimeoutExpired:
            pass
    return ""


def short(row):
    """A row for people who wait."""
    state = {True: "ok", False: "WRONG", None: "-"}[row["ok"]]
    said = ", ".join(f"{k} {v:.5g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
                     if k not in ("group", "what", "ok", "error") and not isinstance(v, (list, dict)))
    return f"{row['group']}: {row['what']}: {state}{', ' + said if said else ''}{': ' + row['error'] if row.get('error') else ''}"[:240]


def last_line(done):
    """Why a command failed, in a line."""
    if done.late:
        return f"not done after {done.seconds:.0f} s"
    lines = [line for line in done.text.splitlines() if line.strip()]
    told = [line for line in lines if "rror" in line or line.startswith(("stoker: ", "FAILED", "SKIP"))]
    return (told or lines or [f"exit code {done.rc}"])[-1].strip()[:400]
