#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# node.sh FOLDER NAME ADDRESS: containerd and a kubelet, as the first process of a mount and pid
# namespace.  What they write to fixed places of the machine stays in the namespace, and when this
# process ends the kernel ends all of theirs, containers included.
set -euo pipefail
folder=$1 name=$2 address=$3
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
for place in kubelet cni; do
	mkdir -p "$folder/private/$place"
	mount --bind "$folder/private/$place" "/var/lib/$place"
done
mount --make-rshared /

containerd -c "$folder/containerd.toml" >>"$folder/containerd.log" 2>&1 &
ctr() { command ctr -a "$folder/containerd.sock" -n k8s.io "$@"; }
left=300
until ctr version >/dev/null 2>&1; do
	left=$((left - 1))
	[ "$left" -gt 0 ] || { echo 'containerd does not answer'; exit 1; }
	read -r -t 0.1 <> <(:) || true
done
for image in "$folder"/image-*.tar; do
	ctr images import "$image"
done
kubelet --config "$folder/kubelet.yaml" --kubeconfig "$folder/kubeconfig.admin" \
	--hostname-override "$name" --node-ip "$address" --root-dir "$folder/kubelet" \
	--cert-dir "$folder/kubelet/pki" >>"$folder/kubelet.log" 2>&1 &
wait -n
echo 'containerd or the kubelet has ended'
exit 1
