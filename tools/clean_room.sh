#!/bin/sh
# A Debian 12 as debootstrap makes it (minbase), with nothing else in it: README's two commands, and what an installation is for.
#   tools/clean_room.sh [--fresh] [demo|test|install]...     all three, in this order, where none is named
#   tools/clean_room.sh package          Debian packages made with what debian/control names, in build-package, then installed in a new room
#
# All is in build-clean-room: root (rebuilt each time, kept after a failure), the base that debootstrap made as a tar file, and the
# .deb files that were downloaded. No package that was ever installed on top is kept, so that none can hide that one is missing.
# Mounts are in a namespace of their own, which ends with the last process in it: there is never one to delete through.
# It needs root; 77 says that it could not even begin. The host lends apt's sources and proxy, its resolver and the kernel.
set -eu
cd "$(dirname "$0")/.."

SUITE=bookworm
SHELL_PACKAGES="zsh fish man-db"
work=$PWD/build-clean-room
root=$work/root debs=$work/debs
inside=/stoker # where the checkout lies in the root

say() { printf '%s\n' "clean-room: $*"; }
fail() { say "$*" >&2; exit 1; }
skip() { printf '%s\n' "SKIP clean-room: $*"; exit 77; }

# --- the room ---

# What no container may lack that a room is to be made in: says why there can be none.
check_rights() {
    [ "$(id -u)" = 0 ] || skip "it makes a root for chroot, which takes root's rights: sudo ./dev clean-room"
    command -v dpkg >/dev/null || skip "it is made of the host's packages, and this is no Debian"
    command -v debootstrap >/dev/null || skip "there is no debootstrap (Debian: debootstrap)"
    mkdir -p "$debs" "$work/probe"
    rm -f "$work/null"
    { mknod "$work/null" c 1 3 && : >"$work/null"; } 2>/dev/null || skip "there may be no device files in '$work'"
    rm "$work/null"
    unshare --mount --pid --fork mount -t proc proc "$work/probe" 2>/dev/null ||
        skip "this machine gives no namespaces for mounts and processes"
    rmdir "$work/probe"
}

# All files that git tracks or would take, ended by 0.
list_files() {
    git -c safe.directory="$PWD" ls-files -co --exclude-standard -z |
        xargs -0 sh -c 'for f; do [ -e "$f" ] || [ -L "$f" ] && printf "%s\0" "$f"; done' -
}

# The host's own address for this Debian, so that a mirror that it was given is used here, too; else debootstrap's default.
find_mirror() {
    apt-get indextargets --format '$(RELEASE) $(SITE) $(REPO_URI)' "Created-By: Packages" "Release: $SUITE" 2>/dev/null |
        awk '$3 ~ /^https?:.*\/debian\/?$/ { print $3; exit }'
}

make_base() {
    base=$work/base-$SUITE-$(dpkg --print-architecture).tar
    # An old one is rebuilt, for its lists and packages are no longer those of a new installation.
    [ -z "$(find "$base" -mtime -30 2>/dev/null)" ] || return 0
    mirror=$(find_mirror)
    say "debootstrap minbase${mirror:+ from $mirror}"
    new=$work/base
    rm -rf --one-file-system "$new"
    # shellcheck disable=SC2086 # Empty or one word.
    unshare --mount debootstrap --variant=minbase --cache-dir="$debs" $SUITE "$new" $mirror >"$work/debootstrap.log" 2>&1 || {
        tail -n 20 "$work/debootstrap.log"
        fail "debootstrap failed; all that it said: $work/debootstrap.log"
    }
    rm -f "$new"/var/cache/apt/archives/*.deb
    tar -cf "$base.new" -C "$new" .
    mv "$base.new" "$base"
    rm -rf --one-file-system "$new"
}

# The root, and in it a copy of the checkout.
make_root() {
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    tar -xf "$base" -C "$root"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp /etc/hosts "$root/etc/hosts"
    apt-config dump Acquire::http Acquire::https | grep -i proxy >"$root/etc/apt/apt.conf.d/90host" || true
    mkdir "$root$inside"
    list_files | tar -cf - --null -T - | tar -xf - -C "$root$inside"
    [ -f "$root$inside/dev" ] || fail "git does not tell which files belong to this checkout"
    chown -R 0:0 "$root$inside"
}

# What a kernel gives to every system. This process has a mount namespace of its own.
mount_room() {
    mount --bind "$root" "$root" # what is a system's root is a mount
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys" || mount --rbind /sys "$root/sys"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mount --bind "$debs" "$root/var/cache/apt/archives"
}

# in_room COMMAND...: in the checkout, as root, with nothing of the host's environment but proxies and the terminal.
in_room() {
    chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} ${no_proxy:+"no_proxy=$no_proxy"} \
        sh -c 'cd "$0" && exec "$@"' "$inside" "$@"
}

# as_user COMMAND...: the same for a user without rights, who has no sudo either.
as_user() {
    in_room setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp "$@"
}

# --- what is done in it ---

demo() {
    if as_user ./dev demo >"$work/user.log" 2>&1 || ! grep -q '^apt-get update && apt-get install .*cmake' "$work/user.log"; then
        cat "$work/user.log"
        fail "./dev demo did not tell a user without rights which packages to install"
    fi
    in_room ./dev demo >"$work/demo.log" 2>&1 || { cat "$work/demo.log"; fail "./dev demo failed"; }
    cat "$work/demo.log"
    # Its last line is a command.
    names=$(sed -n 's/^The same network names a picture: *//p' "$work/demo.log")
    [ -n "$names" ] || fail "./dev demo ended without a command that names a picture"
    # shellcheck disable=SC2086 # A command and its words.
    in_room $names || fail "the command that ./dev demo ends with failed: $names"
}

run_tests() {
    in_room ./dev test >"$work/test.log" 2>&1 || { cat "$work/test.log"; fail "./dev test failed"; }
    sed -n '/ SKIPPED /p' "$work/test.log"
    tail -n 1 "$work/test.log"
    ! grep 'no reason given' "$work/test.log" || fail "a test was skipped without a reason"
}

# As README says; then programs against what was installed, by a user without rights, and shells that read the rest.
install() {
    in_room ./dev build release products
    in_room cmake --install build
    as_user sh tests/install/test_consumers.sh /usr/local /tmp/consumers
    say "install the shells"
    # shellcheck disable=SC2086 # A list of words.
    in_room env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $SHELL_PACKAGES >/dev/null
    as_user env STOKER_ALL_SHELLS=1 sh tests/install/test_shells.sh /usr/local
}

# With nothing but what the packages say that they need; lintian's errors are failures, its warnings are shown.
build_packages() {
    say "install what building takes"
    in_room env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends dpkg-dev lintian &&
        apt-get build-dep -y -qq --no-install-recommends ./' >"$work/build-dep.log" 2>&1 || {
        tail -n 20 "$work/build-dep.log"
        fail "the packages that building takes could not be installed"
    }
    in_room dpkg-buildpackage -us -uc -b >"$work/package.log" 2>&1 || { tail -n 40 "$work/package.log"; fail "dpkg-buildpackage failed"; }
    as_user sh -c 'lintian --fail-on error /*.changes' || fail "lintian has found errors"
    mkdir -p build-package
    rm -f build-package/*.deb build-package/*.changes build-package/*.buildinfo
    mv "$root"/*.deb "$root"/*.changes "$root"/*.buildinfo build-package/
}

# install_packages OPTION NAME PACKAGE...: one of ours with the library, and others of Debian's.
install_packages() {
    option=$1 name=$2
    shift 2
    in_room env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get update -qq && apt-get install -y -qq "$@"' sh "$option" \
        /packages/libstoker0.deb "/packages/$name.deb" "$@" >"$work/apt.log" 2>&1 ||
        { tail -n 20 "$work/apt.log"; fail "$name could not be installed"; }
}

# A user without rights trains with what was installed, and builds programs.
try_packages() {
    mkdir "$root/packages"
    for name in stoker libstoker0 libstoker-dev; do
        cp build-package/${name}_*.deb "$root/packages/$name.deb"
    done
    install_packages --no-install-recommends stoker
    as_user sh -ec 'mkdir -p /tmp/try && cd /tmp/try && stoker --version && stoker-watch --help >/dev/null
        stoker get digits --out data/digits --train 2000 --test 500 >/dev/null
        stoker train /usr/share/doc/stoker/examples/recipes/digits.yaml --epochs 1 --out run
        stoker watch --quiet -- stoker report run >/dev/null' || fail "what is installed does not train"
    # What is recommended for the static library comes with this one.
    # shellcheck disable=SC2086 # A list of words.
    install_packages --install-recommends libstoker-dev cmake ninja-build pkg-config gcc g++ libc6-dev $SHELL_PACKAGES
    as_user sh tests/install/test_consumers.sh /usr /tmp/consumers
    as_user env STOKER_ALL_SHELLS=1 sh tests/install/test_shells.sh /usr
    in_room apt-get purge -y -qq stoker libstoker-dev libstoker0 >/dev/null || fail "they could not be removed"
    left=$(find "$root/usr" -name '*stoker*')
    [ -z "$left" ] || fail "this is left after their removal: $left"
}

# --- outside, and again as the first process of the namespaces ---

if [ "${1-}" = --in-namespace ]; then
    shift
    mount_room
    for phase in "$@"; do
        start=$(date +%s)
        say "$phase"
        case $phase in test) run_tests ;; *) "$phase" ;; esac
        say "$phase: well, $(($(date +%s) - start)) s"
    done
    exit
fi

fresh=
[ "${1-}" != --fresh ] || { fresh=yes; shift; }
[ $# -gt 0 ] || set -- demo test install
for phase in "$@"; do
    case $phase in demo | test | install | package) ;; *) fail "no part '$phase'; there are: demo test install package" ;; esac
done

# in_new_room PHASE...
in_new_room() {
    make_root
    say "a root of $(du -sh "$root" | cut -f 1), $(nproc) cores"
    # With that process every other in the room ends, and its mounts.
    unshare --mount --pid --fork --kill-child sh tools/clean_room.sh --in-namespace "$@" &
    room=$!
    trap 'kill -KILL $room; exit 130' INT TERM HUP
    wait $room
    trap - INT TERM HUP
}

check_rights
[ -z "$fresh" ] || rm -rf --one-file-system "$debs"/* "$work"/base*
make_base
case " $* " in
" package ") in_new_room build_packages; in_new_room try_packages ;;
*" package "*) fail "'package' is asked for alone: it takes two rooms" ;;
*) in_new_room "$@" ;;
esac
rm -rf --one-file-system "$root"
say "all is well"
