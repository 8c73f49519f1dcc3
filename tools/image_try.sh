#!/bin/sh
# Tries the container image as an MPI operator uses it: two workers, which are ssh servers, and a launcher, each a container with
# a network of its own; the keys and the list of hosts are mounted. The losses are those of as many replicas of the program here.
#   tools/image_try.sh IMAGE.tar STOKER
#
# It needs root, podman and runc. 77 says that this machine runs no containers.
set -eu
image=$(realpath "$1") stoker=$(realpath "$2")
cd "$(dirname "$0")/.."
work=$PWD/build-image/try
name=stoker-try-$$

say() { printf '%s\n' "image: $*"; }
fail() { say "$*" >&2; exit 1; }

export STORAGE_DRIVER="${STORAGE_DRIVER:-vfs}"
podman="podman --root $work/containers --runroot $work/run --runtime runc"
run="$podman run --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --cgroups=no-conmon"

end() {
    $podman rm -f -t 1 "$name-1" "$name-2" >"$work/end" 2>&1 || true
    for i in 1 2 3; do ip netns del "$name-$i" 2>/dev/null || true; done
    ip link del kbr$$ 2>/dev/null || true
}
trap end EXIT

rm -rf --one-file-system "$work"
mkdir -p "$work/ssh" "$work/data/runs"
loaded=$($podman load -q -i "$image" | sed -n 's/^Loaded image: *//p' | tail -n 1)
$run --rm --network none "$loaded" stoker --version >"$work/version" 2>&1 || {
    say "no container runs here: $(tail -n 1 "$work/version")"
    exit 77
}
ssh-keygen -q -t rsa -N '' -f "$work/ssh/id_rsa"
cp "$work/ssh/id_rsa.pub" "$work/ssh/authorized_keys"
cat >"$work/data/small.yaml" <<'RECIPE'
data: {train: {source: {synthetic: {fields: {image: [8, 8, 3]}, classes: 4}}}}
batch: 64
model: {layers: [{conv2d: {filters: 8, kernel: 3}}, relu, flatten, {dense: 4}]}
optimizer: adam
epochs: 1
threads: 1
precision: f32
log: {every: 1 step}
RECIPE
printf '10.77.0.1 slots=2\n10.77.0.2 slots=2\n' >"$work/hosts"
chmod 700 "$work/ssh"
chown -R 1000:1000 "$work/ssh" "$work/data"

ip link add kbr$$ type bridge
ip link set kbr$$ up
for i in 1 2 3; do
    ip netns add "$name-$i"
    ip link add "k$i-$$" type veth peer name eth0 netns "$name-$i"
    ip link set "k$i-$$" master kbr$$ up
    ip -n "$name-$i" addr add 10.77.0.$i/24 dev eth0
    ip -n "$name-$i" link set eth0 up
    ip -n "$name-$i" link set lo up
done
for i in 1 2; do
    $run -d --name "$name-$i" --network "ns:/run/netns/$name-$i" -v "$work/ssh:/home/stoker/.ssh:ro" -v "$work/data:/data" "$loaded" >/dev/null
done
timeout 120 $run --rm --name "$name-3" --network "ns:/run/netns/$name-3" -v "$work/ssh:/home/stoker/.ssh:ro" -v "$work/hosts:/etc/mpi/hostfile:ro" \
    -e OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile -e OMPI_MCA_plm_rsh_args='-o ConnectionAttempts=10' "$loaded" \
    mpirun -n 4 stoker train /data/small.yaml --out /data/runs/four --steps 20 --resume --quiet >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "four ranks in two containers did not train"
}
"$stoker" train "$work/data/small.yaml" --threads 4 --replicas 4 --steps 20 --out "$work/data/runs/here" --quiet
for run in four here; do
    sed 's/.*"step": \([0-9]*\),.*"loss": \([^,]*\),.*/\1 \2/' "$work/data/runs/$run/metrics.jsonl" >"$work/$run"
done
[ -s "$work/four" ] && cmp "$work/four" "$work/here" || fail "other losses than by threads: $work/four, $work/here"
say "four ranks in two containers, by mpirun and ssh, have the losses of four replicas: $(wc -l <"$work/four") steps"
