#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# node.sh FOLDER NAME ADDRESS [GATEWAY]: containerd and a kubelet, as the first process of a mount
# and pid namespace.  What they write to fixed places of the machine stays in the namespace, and when
# this process ends the kernel ends all of theirs, containers included.  With a GATEWAY it has a
# network namespace too, into which eth0 comes from outside, and kube-proxy runs.
set -euo pipefail
folder=$1 name=$2 address=$3 gateway=${4:-}

# wait_for TENTHS WHAT COMMAND…
wait_for() {
	local left=$1 what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || { echo "$what"; exit 1; }
		read -r -t 0.1 <> <(:) || true
	done
}

# The signal by which systemd reboots: all of the node ends, as in a reboot.
trap 'exit 0' RTMIN+5
echo -n systemd >/proc/$$/comm
# A boot of the node's own, after the first one.
if [ -e "$folder/boot_id" ]; then
	mount --bind "$folder/boot_id" /proc/sys/kernel/random/boot_id
fi
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
places=(kubelet cni)
root=$folder/kubelet
if [ -n "$gateway" ]; then
	places+=(holdfast-agent)
	# Where a pod that mounts the kubelet's sockets expects them.
	root=/var/lib/kubelet
	ip link set lo up
	wait_for 300 'no eth0 has come' ip link show eth0
	ip address add "$address/24" dev eth0
	ip link set eth0 up
	ip route add default via "$gateway"
	echo 1 >/proc/sys/net/ipv4/ip_forward
fi
for place in "${places[@]}"; do
	mkdir -p "$folder/private/$place"
	mount --bind "$folder/private/$place" "/var/lib/$place"
done
mount --make-rshared /

containerd -c "$folder/containerd.toml" >>"$folder/containerd.log" 2>&1 &
programs=($!)
ctr() { command ctr -a "$folder/containerd.sock" -n k8s.io "$@"; }
wait_for 300 'containerd does not answer' ctr version
for image in "$folder"/image-*.tar; do
	ctr images import "$image"
done
# A kubelet that ends is started again, as systemd does: containers live on meanwhile.
while :; do
	kubelet --config "$folder/kubelet.yaml" --kubeconfig "$folder/kubeconfig.admin" \
		--hostname-override "$name" --node-ip "$address" --root-dir "$root" \
		--cert-dir "$root/pki" >>"$folder/kubelet.log" 2>&1 || true
	read -r -t 0.5 <> <(:) || true
done &
if [ -n "$gateway" ]; then
	kube-proxy --config "$folder/kube-proxy.yaml" >>"$folder/kube-proxy.log" 2>&1 &
	programs+=($!)
fi
# By their numbers: a substitution that has ended is a child too.
wait -n "${programs[@]}"
echo 'containerd or kube-proxy has ended'
exit 1
