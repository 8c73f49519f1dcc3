#!/usr/bin/env python3
"""Slurm as it is: slurmctld, munged and a slurmd on each of two hosts (tools/hosts.py), and Stoker under srun and sbatch.

    ./dev slurm              # all checks: docs/distributed.md says what they show
    ./dev slurm -- COMMAND   # the command with that Slurm there, as `./dev slurm -- bash`

usage: slurm.py STOKER WORK_FOLDER [-- COMMAND...]; it needs root, and 77 says what it lacks. All that it starts ends with it.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import hosts

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/slurm/train.sbatch"
RECIPE = """
name: small
data:
  train:
    source: {images: digits/train}
    shuffle: true
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
  test:
    source: {images: digits/test}
    stages: [{decode: {channels: 1}}, {normalize: mnist}]
batch: 20
model: {cnn: {widths: [4, 8]}}
optimizer: {adam: {lr: 0.003}}
epochs: EPOCHS
checkpoint: {every: 5 steps}
log: {every: 1 step}
precision: f32
sync_batch_norm: true
threads: 1
"""
CONFIGURATION = """
ClusterName=stoker
SlurmctldHost=head(HEAD)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Two minutes, as it is without cred_expire, are how long a job that is queued again waits.
AuthInfo=socket=WORK/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=WORK/state
SlurmdSpoolDir=WORK/spool.%n
SlurmctldPidFile=WORK/slurmctld.pid
SlurmdPidFile=WORK/slurmd.%n.pid
SlurmctldLogFile=WORK/slurmctld.log
SlurmdLogFile=WORK/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=20
NODES
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
n_failed = 0


def check(ok, what):
    global n_failed
    if not ok:
        n_failed += 1
    print(f"{'ok    ' if ok else 'FAILED'}  {what}", flush=True)


def wait_for(is_so, what, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        if is_so():
            return True
        time.sleep(0.1)
    check(False, f"{what}: not within {seconds} s")
    return False


class Slurm:
    """One slurmd a host, and the head's daemons."""

    def __init__(self, folder, them):
        self.folder, self.hosts, self.started = folder, them, []

    def start(self, command, name, at=None):
        log = open(self.folder / f"{name}.out", "w")
        here = self.hosts.at(at) if at else []
        self.started.append(subprocess.Popen([*here, *command], stdout=log, stderr=log))

    def __enter__(self):
        folder = self.folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "state").mkdir(parents=True)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        nodes = "\n".join(f"NodeName={n} NodeHostname={n} NodeAddr={a} CPUs=2 State=UNKNOWN"
                          for n, a in self.hosts.address.items())
        text = CONFIGURATION.replace("HEAD", hosts.HEAD).replace("WORK", str(folder)).replace("NODES", nodes)
        (folder / "slurm.conf").write_text(text)
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        self.start(["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
                    f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"], "munged")
        wait_for((folder / "munge.socket").exists, "munged")
        self.start(["slurmctld", "-D"], "slurmctld")
        for name in self.hosts.names:
            (folder / f"spool.{name}").mkdir()
            # Every slurmstepd makes the same folder in /tmp: hosts have one each.
            (folder / f"tmp.{name}").mkdir()
            self.start(["sh", "-c", f"mount --bind {folder}/tmp.{name} /tmp && exec slurmd -D -N {name}"], f"slurmd.{name}", at=name)
        if not wait_for(lambda: self.idle() == len(self.hosts.names), "slurmd on all hosts"):
            for log in sorted(folder.glob("*.out")):
                print(f"--- {log.name}\n{log.read_text()[-2000:]}")
            sys.exit(1)
        return self

    def idle(self):
        out = subprocess.run(["sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, text=True).stdout
        return len(re.findall(r" idle\s*$", out, re.M))

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def losses(folder):
    path = pathlib.Path(folder) / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [m["loss"] for m in map(json.loads, filter(lambda t: t.endswith("}"), lines)) if m["kind"] == "step"]


def same(a, b, tolerance=1e-4):
    return len(a) == len(b) > 0 and all(abs(x - y) <= tolerance * abs(x) for x, y in zip(a, b))


def run(command, **env):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **env})
    except subprocess.TimeoutExpired:
        return 124, "it took longer than 120 s"
    return done.returncode, done.stdout + done.stderr


def state(job):
    out = run(["scontrol", "-o", "show", "job", job])[1]
    found = re.search(r"JobState=(\S+)", out), re.search(r"Restarts=(\d+)", out)
    return (found[0][1], int(found[1][1])) if all(found) else ("?", 0)


def libraries():
    """srun's ways to start an MPI program, each with the library that speaks it."""
    for name, way, library in (("Open MPI", "pmix", "libmpi.so.40"), ("MPICH", "pmi2", "libmpich.so.12")):
        if any(library in line for line in run(["ldconfig", "-p"])[1].splitlines()):
            yield name, way, library
        else:
            print(f"SKIP '{name}' is not installed: {library}")


def check_srun(stoker):
    run([stoker, "train", "small.yaml", "--out", "one"])
    for name, way, library in libraries():
        for n_nodes, n in ((1, 2), (2, 2), (2, 4)):
            folder = f"{way}-{n_nodes}-{n}"
            code, text = run(["srun", f"--mpi={way}", "-N", str(n_nodes), "-n", str(n), stoker, "train", "small.yaml", "--out", folder])
            well = code == 0 and same(losses("one"), losses(folder)) and text.count("saved  ") == 1
            check(well, f"srun --mpi={way} -N {n_nodes} -n {n}, {name}: one device's losses" + ("" if well else f"\n{text}"))
        other = "pmi2" if way == "pmix" else "pmix"
        code, text = run(["srun", f"--mpi={other}", "-n", "2", stoker, "train", "small.yaml", "--out", "no"], STOKER_MPI=library)
        # Open MPI sees by itself that it was started so, and says it at length.
        told = "started 2 processes" in text or "OMPI was not built with SLURM's PMI support" in text
        well = code != 0 and told and not os.path.exists("no")
        check(well, f"srun --mpi={other} with {name}'s library: refused" + ("" if well else f"\n{text}"))
    code, text = run(["srun", "--mpi=none", "-n", "2", stoker, "train", "small.yaml", "--out", "no"])
    well = code != 0 and "srun --mpi=" in text and not os.path.exists("no")
    check(well, "srun --mpi=none: refused, with what to type" + ("" if well else f"\n{text}"))
    for hosts_text, n, part in (("a:2,b:2", 4, None), ("a,b", 2, None), ("a:2,b", 3, "srun wants as many ranks on each host")):
        folder = f"elastic-{n}"
        code, text = run(["salloc", "-N", "2", "-n", "4", stoker, "train", "small.yaml", "--elastic", "2", "--hosts", hosts_text,
                          "--batch", "20", "--out", folder])
        well = code != 0 and part in text if part else code == 0 and same(losses("one"), losses(folder))
        check(well, f"--elastic 2 --hosts {hosts_text}, in an allocation: " + ("refused" if part else "one device's losses")
              + ("" if well else f"\n{text}"))
    code, text = run(["salloc", "-n", "2", stoker, "train", "small.yaml", "--out", "alone"])
    check(code == 0 and same(losses("one"), losses("alone")), "without srun, in an allocation of two: trains alone")


def submit(stoker, folder, recipe, *options):
    code, text = run(["sbatch", "--parsable", f"--output={folder}.out", *options, str(EXAMPLE), recipe, folder],
                     PATH=f"{os.path.dirname(stoker)}:{os.environ['PATH']}")
    check(code == 0, f"sbatch: {text.strip()}")
    return text.strip()


def check_batch(stoker):
    job = submit(stoker, "batch", "small.yaml")
    wait_for(lambda: state(job)[0] == "COMPLETED", "the job")
    check(same(losses("one"), losses("batch")), "sbatch examples/slurm/train.sbatch: one device's losses")

    # The example's own signal, before its time is over: it saves, and is put into the queue again, twice.
    job = submit(stoker, "again", "long.yaml")
    for i in range(1, 3):
        wait_for(lambda: state(job) == ("RUNNING", i - 1) and len(losses("again")) > 12 * i, f"part {i} of the job")
        run(["scancel", "--batch", "--signal=USR1", job])
        if not wait_for(lambda: state(job)[1] == i, f"queued again {i} times"):
            print(pathlib.Path("again.out").read_text()[-3000:])
    wait_for(lambda: state(job)[0] == "RUNNING" and len(losses("again")) > 40, "the last part of the job")
    run(["scancel", job])
    wait_for(lambda: state(job)[0] == "CANCELLED", "the job's end")
    check_steps("again", "USR1 to the batch script: each part goes on behind the last one's step")

    # Time's end, and scancel: SIGTERM to all, KillWait seconds later SIGKILL.
    folder = "term"
    process = subprocess.Popen(["srun", "--mpi=pmix", "-N", "2", "-n", "2", "--job-name=term", stoker, "train", "long.yaml",
                                "--out", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: len(losses(folder)) > 12, "a step's training")
    run(["scancel", "--signal=TERM", "--name=term"])
    text = process.communicate(timeout=60)[0]
    check("saved  " in text, "scancel --signal=TERM: saved" + ("" if "saved  " in text else f"\n{text}"))
    check_steps(folder, "and every step is in the metrics once")


def check_steps(folder, what):
    rows = [json.loads(t) for t in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    steps = [m["step"] for m in rows if m["kind"] == "step"]
    check(steps == list(range(1, len(steps) + 1)), f"{what} ({len(steps)} steps)")


def main():
    stoker, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
    for tool in ("slurmctld", "slurmd", "munged", "srun"):
        if not shutil.which(tool):
            hosts.skip(f"there is no '{tool}' (Debian: slurmctld, slurmd, slurm-client, munge)")
    hosts.enter()
    with hosts.Hosts(2) as them, Slurm(folder, them):
        work = folder / "work"
        work.mkdir()
        os.chdir(work)
        for name, epochs in (("small", 2), ("long", 100000)):
            pathlib.Path(f"{name}.yaml").write_text(RECIPE.replace("EPOCHS", str(epochs)))
        run([stoker, "get", "digits", "--out", "digits", "--train", "200", "--test", "40"])
        if sys.argv[3:4] == ["--"]:
            sys.exit(subprocess.run(sys.argv[4:]).returncode)
        check_srun(stoker)
        check_batch(stoker)
    if n_failed:
        sys.exit(f"{n_failed} checks failed; logs are in '{folder}'")
    shutil.rmtree(folder)
    print("all checks passed")


if __name__ == "__main__":
    main()
