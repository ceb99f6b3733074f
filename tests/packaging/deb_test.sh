#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# deb_test.sh ROOT…: builds the Debian packages in a copy of each root file system, checks them with
# lintian, installs them in a second copy, runs them, and purges them. The roots stay as they are. Needs
# root and a way to a Debian mirror. With --bootstrap SUITE in place of ROOT, debootstrap makes the root.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)

skip() { echo "deb_test: $*" >&2; exit 77; }
[ $# -gt 0 ] || skip 'skipped: no root file system is named (deb_test.sh ROOT… or --bootstrap bookworm)'
[ "$(id -u)" = 0 ] || skip 'skipped: needs root, for overlays and chroot'
grep -q overlay /proc/filesystems || skip 'skipped: the kernel has no overlay file system'
if [ -z "${HOLDFAST_DEB_TEST_INSIDE:-}" ]; then
	# The mounts end with this process, however it ends.
	exec env HOLDFAST_DEB_TEST_INSIDE=1 unshare --mount --propagation private "$0" "$@"
fi
# shellcheck source=tests/packaging/lib.sh
. "$here/tests/packaging/lib.sh"
EXPOSURE_MAX=30 # tenths, of systemd-analyze security; the unit has 2.7

# build ROOT NAME: leaves the packages in $work/NAME-out.
build() {
	layer "$1" "$2-build"
	mkdir -p "$top/src/holdfast" "$work/$2-out"
	copy_tree "$top/src/holdfast"
	quiet inside apt-get -q update
	inside sh -c 'cd /src/holdfast && ./dev --yes deb' || fail "$2: ./dev deb"
	cp "$top"/src/holdfast/build/deb/*.deb "$work/$2-out"
}

# find_traces: files of the packages, wherever they are.
find_traces() {
	(cd "$top" && find etc usr var/lib run -name '*holdfast*' -not -path 'var/lib/dpkg/*' \
		-not -path 'var/lib/apt/*')
}

# try_packages ROOT NAME
try_packages() {
	layer "$1" "$2-run"
	cp "$work/$2-out"/*.deb "$top/var/tmp"
	quiet inside apt-get -q update
	quiet inside apt-get -qy --no-install-recommends install systemd
	quiet inside sh -c 'apt-get -qy --no-install-recommends install /var/tmp/holdfast_*.deb /var/tmp/holdfast-agent_*.deb'
	inside holdfast --version
	inside kubectl-holdfast --help | grep 'kubectl holdfast' >/dev/null || fail "$2: kubectl-holdfast has another name in its help"
	[ "$(inside holdfast manifests --crds | grep -c '^kind: CustomResourceDefinition')" = 10 ] || fail "$2: manifests"
	inside holdfast-exec -- true
	inside test -e /usr/lib/holdfast/libholdfast-names.so
	inside test -e /usr/share/man/man1/kubectl-holdfast.1.gz
	inside test -L /etc/systemd/system/multi-user.target.wants/holdfast-agent.service
	inside systemd-analyze verify --man=no holdfast-agent.service
	quiet inside systemd-analyze security --offline=true --threshold="$EXPOSURE_MAX" holdfast-agent.service
	quiet inside apt-get -qy remove holdfast-agent holdfast
	[ -z "$(inside sh -c 'command -v holdfast || true')" ] || fail "$2: the program is still there"
	quiet inside apt-get -qy purge holdfast-agent holdfast
	rm "$top"/var/tmp/*.deb
	[ -z "$(find_traces)" ] || fail "$2: left after purge: $(find_traces)"
}

while [ $# -gt 0 ]; do
	root=$1
	if [ "$1" = --bootstrap ]; then
		root=$work/$2
		quiet debootstrap --variant=minbase "$2" "$root"
		shift
	fi
	name=$(basename "$root")
	build "$root" "$name"
	try_packages "$root" "$name"
	echo "ok    $name: built, lintian clean, installed, run and purged"
	shift
done
