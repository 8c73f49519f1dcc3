"""Hosts out of namespaces: each has a network card, a name and a /dev/shm of its own; processors and files are shared.

    tools/hosts.py N COMMAND [WORD]...     # runs the command at the head, as `nsenter` into a, b, ... or ssh would

    hosts.enter()                  # this program starts again in namespaces of its own, or ends with 77 and why it cannot
    with hosts.Hosts(2) as h:      # a and b, 10.77.0.1 and 10.77.0.2; this process is at 10.77.0.254, its name is `head`
        h.popen("a", ["hostname"])

Nothing of it is seen from outside, and everything ends with this process: it is the first one of a space of processes.
"""
import os
import shutil
import subprocess
import sys
import tempfile

NAMES = "abcdefgh"
HEAD = "10.77.0.254"
MARK = "STOKER_HOSTS_INSIDE"
UNSHARE = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
# A host's /sys shows its own cards; control groups stay where programs look for them.
HOST = """set -e
hostname "$0"
mount -t tmpfs shm /dev/shm
if [ -e /sys/fs/cgroup ]; then mkdir /dev/shm/groups; mount --rbind /sys/fs/cgroup /dev/shm/groups; fi
mount -t sysfs sys /sys
if [ -e /dev/shm/groups ]; then mount --rbind /dev/shm/groups /sys/fs/cgroup; umount -l /dev/shm/groups; rmdir /dev/shm/groups; fi
echo
exec sleep infinity
"""


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def enter():
    """Returns inside of the outer namespaces."""
    if os.environ.get(MARK) == "1":
        return
    if os.geteuid() != 0:
        skip("hosts are made of namespaces, which takes root's rights")
    for tool in ("unshare", "nsenter", "ip"):
        if not shutil.which(tool):
            skip(f"there is no '{tool}' (Debian: util-linux, iproute2)")
    probe = subprocess.run([*UNSHARE, "sh", "-c", "ip link add stk0 type veth peer name stk1 && ip link add stk2 type bridge"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"this machine gives no namespaces with cards in them: {probe.stderr.strip()}")
    sys.stdout.flush()
    os.execvpe("unshare", [*UNSHARE, sys.executable, *sys.argv], {**os.environ, MARK: "1"})


def must(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


class Hosts:
    def __init__(self, n):
        self.names = list(NAMES[:n])
        self.address = {name: f"10.77.0.{i + 1}" for i, name in enumerate(self.names)}
        self.holder = {}

    def __enter__(self):
        must("hostname", "head")
        self.known = tempfile.NamedTemporaryFile("w", prefix="stoker-hosts-")
        self.known.write(f"127.0.0.1 localhost\n{HEAD} head\n" + "".join(f"{a} {n}\n" for n, a in self.address.items()))
        self.known.flush()
        os.chmod(self.known.name, 0o644)
        must("mount", "--bind", self.known.name, "/etc/hosts")
        must("ip", "link", "set", "lo", "up")
        must("ip", "link", "add", "net", "type", "bridge")
        must("ip", "address", "add", f"{HEAD}/24", "dev", "net")
        must("ip", "link", "set", "net", "up")
        for name in self.names:
            self.make(name)
        return self

    def make(self, name):
        holder = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "--ipc", "sh", "-c", HOST, name],
                                  stdout=subprocess.PIPE, text=True)
        self.holder[name] = holder
        holder.stdout.readline()
        must("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "card", "netns", str(holder.pid))
        must("ip", "link", "set", f"to-{name}", "master", "net", "up")
        must(*self.at(name), "sh", "-c", f"ip link set lo up && ip address add {self.address[name]}/24 dev card && ip link set card up")

    def __exit__(self, *_):
        for holder in self.holder.values():
            holder.kill()
            holder.wait()

    def at(self, name):
        """The words before a command that is to run on that host."""
        return ["nsenter", "-t", str(self.holder[name].pid), "--net", "--mount", "--uts", "--ipc", f"--wd={os.getcwd()}"]

    def popen(self, name, command, **options):
        return subprocess.Popen([*self.at(name), *command], **options)


if __name__ == "__main__":
    enter()
    with Hosts(int(sys.argv[1])):
        code = subprocess.run(sys.argv[2:]).returncode
    sys.exit(code)
