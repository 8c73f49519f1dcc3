#!/usr/bin/env python3
"""`stoker train --hosts a:2,b:2` as people use it: an sshd on each of two hosts (tools/hosts.py), mpirun of Open MPI and MPICH.

    ./dev ssh-hosts              # one device's losses over two hosts, for both

usage: ssh_hosts.py STOKER WORK_FOLDER; it needs root, and 77 says what it lacks. All that it starts ends with it.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import hosts
import slurm


def start_sshd(folder, them):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    shutil.copy(folder / "key.pub", folder / "known")
    (folder / "ssh_config").write_text(f"Host *\n IdentityFile {folder}/key\n StrictHostKeyChecking no\n"
                                       " UserKnownHostsFile /dev/null\n LogLevel ERROR\n")
    hosts.must("mount", "--bind", str(folder / "ssh_config"), "/etc/ssh/ssh_config")
    for name in them.names:
        (folder / f"sshd_{name}").write_text(f"HostKey {folder}/key\nAuthorizedKeysFile {folder}/known\nStrictModes no\n"
                                             "UsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n")
        script = f"mount -t tmpfs run /run && mkdir /run/sshd && mount --bind {folder}/ssh_config /etc/ssh/ssh_config && " \
                 f"exec /usr/sbin/sshd -D -e -f {folder}/sshd_{name}"
        them.popen(name, ["sh", "-c", script], stderr=open(folder / f"sshd_{name}.log", "w"))
    for name in them.names:
        slurm.wait_for(lambda host=name: slurm.run(["ssh", host, "hostname"]) == (0, f"{host}\n"), f"ssh to {name}", 20)


def check_supervised(stoker, them, name, program, environment):
    """A supervisor at the head and ranks on both hosts: they are heard, and in the end no host keeps a state."""
    out = f"{program}-elastic"
    process = subprocess.Popen([stoker, "train", "long.yaml", "--elastic", "2", "--hosts", "a:2,b:2", "--out", out],
                               env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def states():
        return [subprocess.run([*them.at(h), "sh", "-c", "ls -d /dev/shm/stoker-states-*"], capture_output=True, text=True).stdout
                for h in them.names]

    slurm.wait_for(lambda: all(states()), f"states of '{out}' on both hosts", 20)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0]
    left = states()
    well = process.returncode == 143 and not any(left)
    slurm.check(well, f"--elastic 2 --hosts a:2,b:2, {name}: asked to end, and no host keeps states"
                + ("" if well else f"\n{process.returncode} {left} {said}"))


def main():
    stoker, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
    for tool in ("/usr/sbin/sshd", "ssh"):
        if not shutil.which(tool):
            hosts.skip(f"there is no '{tool}' (Debian: openssh-server, openssh-client)")
    hosts.enter()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "path").mkdir(parents=True)
    with hosts.Hosts(2) as them:
        start_sshd(folder, them)
        os.chdir(folder)
        for recipe, epochs in (("small", 2), ("long", 100000)):
            pathlib.Path(f"{recipe}.yaml").write_text(slurm.RECIPE.replace("EPOCHS", str(epochs)))
        slurm.run([stoker, "get", "digits", "--out", "digits", "--train", "200", "--test", "40"])
        slurm.run([stoker, "train", "small.yaml", "--out", "one"])
        for name, program in (("Open MPI", "mpirun.openmpi"), ("MPICH", "mpirun.mpich")):
            if not shutil.which(program):
                print(f"SKIP '{name}' is not installed: {program}")
                continue
            pathlib.Path("path/mpirun").write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            os.chmod("path/mpirun", 0o755)
            environment = {"PATH": f"{folder}/path:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            for n, text in ((2, "a,b"), (4, "a:2,b:2")):
                out = f"{program}-{n}"
                begun = time.time()
                code, said = slurm.run([stoker, "train", "small.yaml", "--hosts", text, "--out", out], **environment)
                well = code == 0 and slurm.same(slurm.losses("one"), slurm.losses(out)) and f"{n} replicas" in said
                slurm.check(well, f"--hosts {text}, {name}: one device's losses, {time.time() - begun:.1f} s" + ("" if well else f"\n{said}"))
            check_supervised(stoker, them, name, program, environment)
            # MPICH's mpirun says what ssh says, and waits on.
            limit = ["timeout", "10"] if name == "MPICH" else []
            code, said = slurm.run([*limit, stoker, "train", "small.yaml", "--hosts", "a,nowhere", "--out", "no"], **environment)
            well = code != 0 and "nowhere" in said and not os.path.exists("no")
            slurm.check(well, f"--hosts a,nowhere, {name}: fails with its name" + ("" if well else f"\n{code} {said}"))
    if slurm.n_failed:
        sys.exit(f"{slurm.n_failed} checks failed; logs are in '{folder}'")
    shutil.rmtree(folder)
    print("all checks passed")


if __name__ == "__main__":
    main()
