"""Whether something from outside disturbed a run. All that the generator starts is its own children, to the last of them: what the
machine's cores did beyond that was done by others. The kernel's counters only; nothing of what the doctor says."""
import ctypes
import os
import resource
import time

from drawn import CORES, is_crowded, n_wanting

MOST_FOREIGN = 0.05  # of the machine's cores: a part of what the doctor calls contention
MOST_STOLEN = 0.02   # by the machine below
MOST_IO, MOST_MEMORY = 0.3, 0.05  # of the time, in which some task of the machine stalls for it (PSI)


def adopt():
    """Grandchildren whose parents have ended become children of this process, so that their time is counted."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def reap():
    """Waits for adopted children that have been killed."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
        except ChildProcessError:
            return


def pressure(what):
    try:
        with open(f"/proc/pressure/{what}") as f:
            return int(f.readline().rsplit("=", 1)[1]) * 1e-6
    except OSError:
        return 0.0


class Moment:
    """Counters, in seconds since some time."""

    def __init__(self):
        with open("/proc/stat") as f:
            ticks = [int(x) for x in f.readline().split()[1:9]]
        tick = os.sysconf("SC_CLK_TCK")
        self.at = time.monotonic()
        self.idle, self.stolen = (ticks[3] + ticks[4]) / tick, ticks[7] / tick
        self.all = sum(ticks) / tick
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        self.own = sum(usage.ru_utime + usage.ru_stime for usage in own)
        self.io, self.memory = pressure("io"), pressure("memory")


def since(begin):
    """What others did to the machine since that moment, as shares of its cores or of the time."""
    end = Moment()
    whole = max(1e-3, end.all - begin.all)
    time_s = max(1e-3, end.at - begin.at)
    return {"foreign": round(max(0, whole - (end.idle - begin.idle) - (end.own - begin.own)) / whole, 3),
            "stolen": round((end.stolen - begin.stolen) / whole, 3), "io": round((end.io - begin.io) / time_s, 3),
            "memory": round((end.memory - begin.memory) / time_s, 3)}


def settle(patience_s):
    """Waits until the machine has been quiet for half a second, or that long. Returns how busy others kept it at last."""
    end = time.monotonic() + patience_s
    while True:
        begin = Moment()
        time.sleep(0.5)
        foreign = since(begin)["foreign"]
        if foreign <= MOST_FOREIGN or time.monotonic() >= end:
            return foreign


def waiting(path):
    """How many threads of a recorded job could run and had no core, on average (schedstat)."""
    waited, length = 0, 0
    known = set()
    with open(path, errors="replace") as f:
        for line in f:
            words = line.split()
            if not line.endswith("\n") or len(words) < 2:
                continue  # the end of a recording that was broken off
            if words[0] == "T":
                length += int(words[1])
            elif words[:2] == ["X", "H"] and len(words) > 2:
                known.discard(words[2])
            elif words[0] == "H":
                grown = [int(word[2:]) for word in words[2:] if word.startswith("5:")]
                if grown and words[1] in known:
                    waited += max(0, grown[0])
                if grown:
                    known.add(words[1])
    return round(waited / max(1, length), 3)


def disturbances(job, seen, waits, most_foreign=MOST_FOREIGN, is_beside_others=False):
    """What disturbed the run of a job, in words; none: its recording counts. seen: since(); waits: waiting()."""
    found = []
    planned = max(0, n_wanting(job) - CORES) + 0.15
    is_crowded_here = is_beside_others or is_crowded(job)
    needless = not is_crowded_here and waits <= planned and waits <= 0.3  # others took what nobody wanted
    if seen["stolen"] > MOST_STOLEN:
        found.append("stolen cores")
    if seen["foreign"] > most_foreign and not needless:
        found.append("other programs on the cores")
    if not is_crowded_here and waits > planned + 0.35:
        found.append("threads without a core")
    if seen["io"] > MOST_IO and job["mode"] not in ("disk", "save", "compile"):
        found.append("a busy disk")
    if seen["memory"] > MOST_MEMORY:
        found.append("little memory")
    return found
