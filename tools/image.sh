#!/bin/sh
# A container image of Stoker with Open MPI and ssh, as Kubernetes' MPI operators start ranks: Debian's packages and what is built
# here, and no image from elsewhere.
#   tools/image.sh BUILD OUT.tar         OUT.tar: the OCI layout, which podman, docker (25 on) and skopeo load
#
# The image's user is stoker (1000). With no other command it is an ssh server on port 2222, whose keys come from
# /home/stoker/.ssh, where operators mount them. It needs root.
set -eu
cd "$(dirname "$0")/.."

SUITE=bookworm
build=$1 out=$(realpath "$2")
work=$PWD/build-image
root=$work/root

say() { printf '%s\n' "image: $*"; }

[ "$(id -u)" = 0 ] || { say "it makes a root for chroot, which takes root's rights: sudo ./dev image" >&2; exit 77; }

# What the programs are linked with, by their packages' names.
linked=$(dpkg-shlibdeps -O "$build/stoker" "$build/libstoker.so" 2>/dev/null | sed 's/^shlibs:Depends=//; s/([^)]*)//g; s/|[^,]*//g; s/ //g')
# The host's own address for this Debian, so that a mirror that it was given is used here, too.
mirror=$(apt-get indextargets --format '$(RELEASE) $(SITE) $(REPO_URI)' "Created-By: Packages" "Release: $SUITE" 2>/dev/null |
    awk '$3 ~ /^https?:.*\/debian\/?$/ { print $3; exit }')

rm -rf --one-file-system "$work"
mkdir -p "$work"
say "debootstrap minbase with $linked"
# shellcheck disable=SC2086 # Empty or one word.
debootstrap --variant=minbase --include="$linked,ca-certificates,openmpi-bin,openssh-client,openssh-server" $SUITE "$root" $mirror \
    >"$work/debootstrap.log" 2>&1 || {
    tail "$work/debootstrap.log" >&2
    exit 1
}
DESTDIR=$root cmake --install "$build" --prefix /usr >"$work/install.log"
chroot "$root" ldconfig

chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash stoker
mkdir -p "$root/run/sshd" "$root/etc/stoker" "$root/etc/ssh/ssh_config.d"
rm -f "$root"/etc/ssh/ssh_host_*  # each pod's key is the job's
cat >"$root/etc/stoker/sshd_config" <<'CONFIG'
Port 2222
HostKey /home/stoker/.ssh/id_rsa
PidFile /tmp/sshd.pid
StrictModes no
CONFIG
cat >"$root/etc/ssh/ssh_config.d/stoker.conf" <<'CONFIG'
Port 2222
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
CONFIG
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/usr/share/doc/* \
    "$root"/usr/share/man/* "$root"/usr/share/locale/*

say "OCI layout"
umoci init --layout "$work/oci"
umoci new --image "$work/oci:stoker"
umoci insert --image "$work/oci:stoker" "$root" / 2>"$work/umoci.log"
umoci config --image "$work/oci:stoker" --config.user 1000:1000 --config.workingdir /home/stoker --config.env PATH=/usr/bin:/bin:/usr/sbin:/sbin \
    --config.cmd /usr/sbin/sshd --config.cmd -De --config.cmd -f --config.cmd /etc/stoker/sshd_config
tar -C "$work/oci" -cf "$out.new" .
mv "$out.new" "$out"
say "$out: $(du -h "$out" | cut -f 1), $(du -sh --one-file-system "$root" | cut -f 1) unpacked; podman load -i $out"
