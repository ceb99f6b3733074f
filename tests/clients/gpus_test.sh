#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# gpus_test.sh HOLDFAST NVML: `holdfast run` on a machine with GPUs, played by the double of NVML
# (tests/doubles/nvml.c): how many ranks there are, which GPU each has, what --gpus and --fit change, and
# what follows from a GPU that fails.
set -uo pipefail
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
program=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HOLDFAST_DIR=$dir/state LD_LIBRARY_PATH=$dir HF_NVML_DOUBLE=$dir/nvml
unset KUBECONFIG CUDA_VISIBLE_DEVICES
ln -s "$(realpath "$2")" "$dir/libnvidia-ml.so.1"
cd "$dir" || exit 1
echo 'devices 2' >nvml
uuid=GPU-5a1d0000-0000-4000-8000-0000000000

cat >rank.sh <<'SH'
#!/bin/sh
echo rank $RANK of $WORLD_SIZE has "[$CUDA_VISIBLE_DEVICES]"
# A job of a manifest ends with rank 0, so rank 0 waits for the others.
touch done-$RANK
[ $RANK != 0 ] || [ "$1" != wait ] || exec python3 wait.py
SH
chmod +x rank.sh
cat >wait.py <<'PY'
import glob, os, select
while len(glob.glob("done-*")) < int(os.environ["WORLD_SIZE"]):
    select.select([], [], [], 0.05)
PY
cat >job.yaml <<'YAML'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: job}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
          - {name: pytorch, image: none, command: [./rank.sh, wait], resources: {limits: {nvidia.com/gpu: 1}}}
    Worker:
      replicas: 3
      template:
        spec:
          containers:
          - {name: pytorch, image: none, command: [./rank.sh, wait], resources: {limits: {nvidia.com/gpu: 1}}}
YAML
code() { # WANTED COMMAND…: the command must exit with this code
	local wanted=$1 rc=0
	shift
	"$@" 2>&1 || rc=$?
	[ "$rc" = "$wanted" ] || { echo "wanted $wanted, got $rc"; return 1; }
}
sorted() {
	rm -f done-*
	"$@" 2>&1 | sed 's/^[^ ]* [|] //' | sort
}

expect 'a program has a rank for each GPU' "rank 0 of 2 has .$uuid"'00[]].rank 1 of 2 has .'"$uuid"'01[]]' \
	sorted "$program" run rank.sh
expect 'run tells that each rank gets a GPU' 'variables of the shell, and a GPU each' "$program" run rank.sh
expect 'more ranks than GPUs end at once' \
	'^holdfast: --nproc 3, and this machine has 2 nvidia.com/gpu, one for each rank: --gpus none .*--fit runs 2.See [^:]*$' \
	code 2 "$program" run --nproc 3 rank.sh
expect '--fit starts fewer ranks' '--fit: 2 ranks instead of 3, .*rank 0 of 2 has .*rank 1 of 2 has ' \
	sorted "$program" run --nproc 3 --fit rank.sh
expect 'a rank for each CPU has no GPU' 'rank 0 of [0-9]+ has []].' \
	sh -c "'$program' run --nproc cpu rank.sh | tr -d '['"
expect '--gpus chooses the GPUs of the ranks' "rank 0 of 1 has .${uuid}01" "$program" run --gpus 1 rank.sh
expect 'CUDA_VISIBLE_DEVICES chooses the GPUs of the ranks' "rank 0 of 1 has .${uuid}01" \
	env CUDA_VISIBLE_DEVICES=1 "$program" run rank.sh
expect '--gpus with a GPU that the machine lacks ends at once' \
	'^holdfast: --gpus 1,2 names 2 GPUs, and this machine has 1 of them; --gpus none ' \
	code 2 "$program" run --gpus 1,2 rank.sh
expect 'with --fit the GPUs of --gpus that exist are enough' \
	"--fit: this machine has 1 of the 2 GPUs that --gpus names.*rank 0 of 1 has .${uuid}01" \
	"$program" run --fit --gpus 1,2 rank.sh
expect '--gpus none hides all GPUs' 'rank 0 of 1 has \[\]' "$program" run --gpus none rank.sh
expect 'the manifest of the program asks for the GPUs' 'nvidia.com/gpu: 1.*replicas: 1.*nvidia.com/gpu: 1' \
	"$program" run rank.sh --print-job
expect 'a job with more ranks than GPUs ends at once' \
	"^holdfast: job.yaml:[0-9]+: cannot run on this machine: the 4 pods ask for 4 nvidia.com/gpu together, and this machine has 2 nvidia.com/gpu; 'holdfast run --fit' [^:]*$" \
	code 2 "$program" run job.yaml
expect 'lint --local finds that the job has more ranks than GPUs' 'and this machine has 2 nvidia.com/gpu' code 2 "$program" lint --local job.yaml
expect '--fit reduces the job to the GPUs of the machine' "--fit: Worker has 1 of its 3 pods, because this machine has 2 nvidia.com/gpu.*rank 0 of 2 has .$uuid" \
	sorted "$program" run --fit job.yaml
expect 'without GPUs --fit runs all ranks' "--fit: no pod has GPUs, because the smallest job asks for 2 nvidia.com/gpu, and this machine has none.*rank 3 of 4 has \\[\\]" \
	sorted "$program" run --fit --gpus none job.yaml
expect '--fit does not change a job that fits' '--fit: the job fits on this machine as it is.*rank 1 of 2 has ' \
	sh -c "rm done-*; sed 's/replicas: 3/replicas: 1/' job.yaml | '$program' run --fit -"

# ---- a GPU that fails ----
cat >hold.sh <<'SH'
#!/bin/sh
echo attempt on $CUDA_VISIBLE_DEVICES
case $CUDA_VISIBLE_DEVICES in *01) exit 0 ;; esac
exec python3 hold.py $1
SH
cat >hold.py <<'PY'
import os, select, sys
while len(sys.argv) < 2 or not os.path.exists("fault"):
    select.select([], [], [], 0.02)
sys.exit(int(sys.argv[1]))
PY
chmod +x hold.sh
# fault XID WORD…: the command runs, and GPU 0 reports the Xid once a rank has it.
fault() {
	local xid=$1 pid rc=0
	shift
	rm -f fault out
	echo 'devices 2' >nvml
	timeout 60 "$@" >out 2>&1 &
	pid=$!
	until_true 300 grep -q 'attempt on .*00' out
	echo "xid 0 $xid" >>nvml
	touch fault
	wait "$pid" || rc=$?
	cat out
	return "$rc"
}
expect 'the rank of a GPU that fails gets another GPU, once' \
	"attempt on ${uuid}00.*GPU 0 [(]${uuid}00[)] is out of service, and no further pod gets it: NVML event: Xid 62.*succeeded after=[0-9]*s generation=2 restarts=1" \
	fault 62 "$program" run --nproc 1 hold.sh
# The last lines of a log may come behind the line about the job's end.
expect 'the rank had two attempts on two GPUs' "^2.[^ ]* [|] attempt on ${uuid}00.[^ ]* [|] attempt on ${uuid}01.\$" \
	sh -c 'grep -c "attempt on" out; grep "attempt on" out'
expect 'why names the device that failed' 'evidence +master-0 on node local: device 0000:1a:00.0 failed [(]gpu-reset[)].*device budget: 1 used' \
	"$program" why @latest
expect 'a rank that ends before the fault is known gets another GPU too' "succeeded after=[0-9]*s generation=2 restarts=1" \
	fault 62 "$program" run --nproc 1 hold.sh 1
expect 'the second attempt is on the other GPU' "attempt on ${uuid}01" cat out
expect 'a fault of the program is not charged to the GPU' 'code 7: master-0 exited with code 7' \
	code 7 sh -c "echo devices 2 >nvml; exec '$program' run --nproc 1 hold.sh 7"

# ---- up ----
amount() { "$program" get nodes -o 'jsonpath={.items[0].status.allocatable.nvidia\.com/gpu}'; }
amount_is() { [ "$(amount)" = "$1" ]; }
echo 'devices 2' >nvml
start "$program" "$dir/plane"
expect 'up offers the GPUs of the machine' '^2.?$' amount
echo 'xid 1 62' >>nvml
until_true 300 amount_is 1 || true
expect 'up does not offer a GPU that has failed' '^1.?$' amount
expect 'the log names the GPU that is out of service' "GPU 1 [(]${uuid}01[)] is out of service" cat "$dir/plane.log"
# The kubelet has written the node's status since, with its own conditions.
expect 'the node has the condition of the failed GPU' '^True.?$' "$program" get nodes \
	-o 'jsonpath={.items[0].status.conditions[?(@.type=="AcceleratorUnhealthy")].status}'
kill -TERM "$SERVER_PID"
wait "$SERVER_PID" 2>/dev/null || true
echo 'devices 2' >nvml
start "$program" "$dir/plane"
until_true 300 amount_is 1 || true
expect 'the next up does not offer the failed GPU either' '^1.?$' amount
stop
finish
