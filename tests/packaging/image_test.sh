#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# image_test.sh [ROOT]: builds the tree twice, in folders of different names and without a compiler
# cache, and compares the two images byte for byte. With ROOT, a Debian root file system, the builds are
# for arm64 by the cross compiler, in a copy of ROOT, and the image runs under qemu-user. Needs root
# then, and a way to a Debian mirror.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
root=${1:-}
if [ -n "$root" ] && [ -z "${HOLDFAST_IMAGE_TEST_INSIDE:-}" ]; then
	exec env HOLDFAST_IMAGE_TEST_INSIDE=1 unshare --mount --propagation private "$0" "$@"
fi
# shellcheck source=tests/packaging/lib.sh
. "$here/tests/packaging/lib.sh"

if [ -n "$root" ]; then
	layer "$root" image
	quiet inside dpkg --add-architecture arm64
	quiet inside apt-get -q update
	mapfile -t libraries < <(awk '$1 == "build" && $2 ~ /^lib.*-dev$/ { print $2 ":arm64" }' "$here/tools/packages")
	quiet inside apt-get -qy --no-install-recommends install meson ninja-build pkgconf python3 git \
		ca-certificates qemu-user-static gcc gcc-aarch64-linux-gnu "${libraries[@]}"
else
	top=$work/here
	mkdir "$top"
	inside() { (cd "$top" && env CCACHE_DISABLE=1 "$@"); }
fi

# make FOLDER: builds a copy of the tree in FOLDER, and its image.
make() {
	mkdir -p "$top/$1"
	copy_tree "$top/$1"
	if [ -n "$root" ]; then
		quiet inside sh -c "cd /$1 && ./dev image --arch arm64"
		images+=("$top/$1/build-arm64/holdfast-image")
	else
		quiet inside sh -c "cd $1 && ./dev image"
		images+=("$top/$1/build/holdfast-image")
	fi
}
images=()
make one
make two/with/a/longer/name
for end in tar spdx.json; do
	cmp "${images[0]}.$end" "${images[1]}.$end" || fail "two builds differ in the image's $end"
done
echo "ok    two builds, the same image: $(sha256sum <"${images[0]}.tar" | cut -c -16)…"

mkdir -p "$work/layer" "$top/image"
tar -x -C "$work/layer" -f "${images[0]}.tar"
tar -x -C "$top/image" -f "$work/layer/layer.tar"
cp "$here/examples/hello-2rank.yaml" "$top/hello.yaml"
cat >"$top/one.yaml" <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: one}
	spec:
	  pytorchReplicaSpecs:
	    Master: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: none, command: [/bin/echo, it runs]}]}}}
END
if [ -n "$root" ]; then
	grep -q '"architecture": "arm64"' "$work/layer"/*.json || fail 'the image is not for arm64'
	run() { inside qemu-aarch64-static -L /image "/image/usr/bin/$1" "${@:2}"; }
	folder=
else
	run() { "$top/image/usr/bin/$1" "${@:2}"; }
	folder=$top
fi

# emulate COMMAND…: in the copy of the root, in a user namespace where the kernel starts programs for arm64 by
# qemu-user: `run` starts itself again.
emulate() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare --user --map-root-user --mount --pid --fork --kill-child sh -c '
		top=$1
		shift
		mount -t proc proc "$top/proc" || exit 77
		mount -t binfmt_misc binfmt_misc "$top/proc/sys/fs/binfmt_misc" || exit 77
		exec chroot "$top" sh -c '\''
			printf %s "$0" >/proc/sys/fs/binfmt_misc/register || exit 77
			exec "$@"'\'' "$magic" "$@"' sh "$top" "$@"
}
export magic=':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F'

# run_job: trains one rank by the image's program.
run_job() {
	if [ -n "$root" ]; then
		emulate env -i PATH=/usr/bin:/bin HOME=/root QEMU_LD_PREFIX=/image /image/usr/bin/holdfast run /one.yaml
	else
		HOME=$work "$top/image/usr/bin/holdfast" run "$top/one.yaml"
	fi
}
run holdfast --version
[ "$(run holdfast manifests --crds | grep -c '^kind: CustomResourceDefinition')" = 10 ] || fail 'manifests'
run holdfast operator --help >/dev/null
run holdfast agent --help >/dev/null
run holdfast-exec -- /bin/true
run holdfast lint "$folder/hello.yaml"
code=0
run_job >"$work/job" 2>&1 || code=$?
job='a job trains'
if [ "$code" = 77 ]; then
	job='no job was run: the kernel has no binfmt_misc for user namespaces'
elif [ "$code" != 0 ] || ! grep -q 'it runs' "$work/job"; then
	fail "run: code $code: $(tail -n 20 "$work/job")"
fi
size() { printf '%d.%d MiB' "$(($1 / 1048576))" "$(($1 * 10 / 1048576 % 10))"; }
echo "ok    its programs run, $job; $(size "$(stat -c %s "${images[0]}.tar")"), compressed $(size "$(gzip -9 <"${images[0]}.tar" | wc -c)"), program $(size "$(stat -c %s "$top/image/usr/bin/holdfast")")"
