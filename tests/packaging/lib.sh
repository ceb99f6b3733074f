# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# For the tests beside it, which run in a mount namespace of their own: copies of root file systems as
# overlays, and copies of the tree. Wants `here`, the root of the tree; sets `work`, a temporary folder.

: "${here:?}"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/holdfast-packaging.XXXXXX")
# Mounts are left out: they end with the mount namespace.
trap 'umount -R "$work"/*/top 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }
quiet() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; return 1; }; }

# layer ROOT NAME: a copy of a root that can be written; sets `top`.
layer() {
	top=$work/$2/top
	mkdir -p "$work/$2/upper" "$work/$2/work" "$top"
	mount -t overlay overlay -o "lowerdir=$1,upperdir=$work/$2/upper,workdir=$work/$2/work" "$top"
	mount -t proc proc "$top/proc"
	cat /etc/resolv.conf >"$top/etc/resolv.conf"
	# No service is started in a chroot.
	printf '#!/bin/sh\nexit 101\n' >"$top/usr/sbin/policy-rc.d"
	chmod 755 "$top/usr/sbin/policy-rc.d"
}

# inside COMMAND…: in the copy, with a clean environment.
inside() { chroot "$top" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CI=1 \
	DEBIAN_FRONTEND=noninteractive DEB_BUILD_OPTIONS="parallel=$(nproc)" "$@"; }

# copy_tree FOLDER: the files that git knows or would add.
copy_tree() {
	(cd "$here" && git ls-files -z --cached --others --exclude-standard |
		tar -c --null -T - --ignore-failed-read) | tar -x -C "$1" --no-same-owner
}
