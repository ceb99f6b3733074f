#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# up_test.sh HOLDFAST: the life of a plane, with the verbs only: up, down, a second up, kill -9, and the
# errors if it cannot start.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"

holdfast=$1
unique=1$$ # a span to sleep that no other process of this machine has
folder=$(mktemp -d)
plane=$folder/plane
cleanup() {
	stop
	"$holdfast" down --data-dir "$plane" --timeout 30s >/dev/null 2>&1 || true
	chmod -R u+rwx "$folder"
	rm -rf "$folder"
}
trap cleanup EXIT

sleeper() {
	cat <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: $1}
	spec:
	  pytorchReplicaSpecs:
	    Master:
	      replicas: 1
	      restartPolicy: Never
	      template: {spec: {containers: [{name: pytorch, image: none, command: [sh, -c, "exec sleep $unique"]}]}}
	END
}
until_says() { until_true 100 test -s "$1" && cat "$1"; }
not() { ! "$@"; }
# Prints the processes of this test's pods.
ps_of_plane() {
	for file in /proc/[0-9]*/cmdline; do
		if tr '\0' '\n' 2>/dev/null <"$file" | grep -qx "$unique"; then
			tr '\0' ' ' <"$file" || true
		fi
	done
}
# full_disk KIB: runs up on a file system of KIB, if this machine allows a mount.
full_disk() {
	mkdir -p "$folder/small"
	if ! unshare -rm true 2>/dev/null; then
		echo 'disk is full (not tried: no mount namespace) rc 125'
		return
	fi
	# shellcheck disable=SC2016 # for the shell inside
	unshare -rm sh -c 'mount -t tmpfs -o size="$3"k none "$1" && "$2" up --listen 127.0.0.1:0 --data-dir "$1/plane" 2>&1; echo "rc $?"' \
		sh "$folder/small" "$holdfast" "$1"
}
# A job fills the disk of its plane: what the verbs print, kill -9, and how to recover.
filled_disk() {
	if ! unshare -rm true 2>/dev/null; then
		echo 'not tried: no mount namespace'
		return
	fi
	sed 's/exec sleep [0-9]*/while :; do echo a line of output that says nothing; done/' \
		"$folder/keep.yaml" >"$folder/big.yaml"
	# shellcheck disable=SC2016 # for the shell inside
	unshare -rm bash -c '
		mount -t tmpfs -o size=3072k none "$1/small" || exit
		plane=$1/small/plane
		"$2" up -d --listen 127.0.0.1:0 --data-dir "$plane" >"$1/filled" || exit
		port=$(sed -n "s/.*127.0.0.1:\([0-9]*\).*/\1/p" "$1/filled")
		export KUBECONFIG=$plane/kubeconfig
		curl -sS --max-time 20 --cacert "$plane/ca.pem" -H "Authorization: Bearer $(cat "$plane/token")" \
			-H "Content-Type: application/yaml" --data-binary "@$1/big.yaml" \
			"https://127.0.0.1:$port/apis/kubeflow.org/v1/namespaces/default/pytorchjobs" >/dev/null
		grep -m1 -q DiskPressure < <(timeout 60 "$2" get nodes -w 2>/dev/null)
		"$2" why keep | grep -o "disk  *node .local.: .* KiB are free"
		"$2" describe keep | grep -o "Disk: .*nearly full"
		"$2" get 2>&1 >/dev/null | grep -o "warning: node .local."
		"$2" get nodes | grep -o "Ready,DiskPressure"
		"$2" events | grep -o "NodeHasDiskPressure"
		kill -9 "$(cat "$plane/up.pid")"
		"$2" up -d --listen 127.0.0.1:"$port" --data-dir "$plane" >/dev/null && echo "up again"
		"$2" delete keep -y
		"$2" get pods -o name | wc -l
		"$2" down --data-dir "$plane" --timeout 60s
		head -c 9m /dev/zero >"$1/small/rest" 2>/dev/null
		"$2" up -d --listen 127.0.0.1:0 --data-dir "$plane"
		echo "rc $?"' bash "$folder" "$holdfast" 2>&1
}
# Runs up with a file-size limit in KiB, which a program sees as a full disk.
small_files() {
	(ulimit -f "$1" && rc_of "$holdfast" up --listen 127.0.0.1:0 --data-dir "$folder/small-files")
}
pods() { "$holdfast" get pods -o json 2>/dev/null; }
runs() { pods | grep -q '"phase": "Running"'; }

# ---- a first start
start "$holdfast" "$plane"
expect 'up prints the export line for the shell' "export KUBECONFIG=$plane/kubeconfig" \
	until_says "$plane.out"
expect 'a second up names the process that runs' "is already running in '$plane' \(process $SERVER_PID\)" \
	not "$holdfast" up --data-dir "$plane" --listen 127.0.0.1:0
expect 'only the owner can read the files of the plane' '^600.600.600.700' stat -c %a \
	"$plane/kubeconfig" "$plane/token" "$plane/server-key.pem" "$plane"
expect 'the other verbs find the plane' 'local' "$holdfast" get nodes
expect '/readyz is ok' '^ok' api /readyz
expect '/metrics lists metrics' 'holdfast_' api /metrics
expect 'a request without a token is refused' '"code":401' \
	curl -sS --cacert "$plane/ca.pem" "$(sed -n 's/ *server: //p' "$KUBECONFIG")/api"

# ---- logs -f through a restart of the job
gang() {
	cat <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: gang}
	spec:
	  runPolicy: {recovery: {restartScope: Job}}
	  pytorchReplicaSpecs:
	    Master:
	      replicas: 1
	      restartPolicy: ExitCode
	      template: {spec: {containers: [{name: pytorch, image: none, command: [sh, -c, "echo master; read x < $folder/gate"]}]}}
	    Worker:
	      replicas: 1
	      restartPolicy: ExitCode
	      template: {spec: {containers: [{name: pytorch, image: none, command: [sh, -c,
	        "echo worker; [ -e $folder/again ] || { touch $folder/again; read x < $folder/seen; exit 137; }; echo x > $folder/gate"]}]}}
	END
}
mkfifo "$folder/gate" "$folder/seen"
# The worker fails once its first line has come through.
followed() {
	local line seen=
	timeout 120 "$holdfast" logs gang -f --rank all 2>&1 | while IFS= read -r line; do
		printf '%s\n' "$line"
		if [ -z "$seen" ] && [[ $line == *'worker-0 | worker'* ]]; then
			seen=yes
			echo x >"$folder/seen"
		fi
	done
	return "${PIPESTATUS[0]}"
}
gang >"$folder/gang.yaml"
expect 'the API accepts a job that restarts once' '"uid":' \
	api /apis/kubeflow.org/v1/namespaces/default/pytorchjobs \
	-H 'Content-Type: application/yaml' --data-binary "@$folder/gang.yaml"
followed >"$folder/followed"
expect 'logs -f follows the job to its end' 'gang is Succeeded' cat "$folder/followed"
# Log lines and job notices come from different watches, so their order is not fixed.
expect 'logs -f follows a rank through its restart' \
	'worker-0 \| worker.*worker-0 ended with code 137 [(]SIGKILL[)] and starts again: a new pod, generation 2.*worker-0 \| worker' \
	cat "$folder/followed"
expect 'after the end logs prints what is left of the logs' '^(master-0 \| master.worker-0 \| worker|worker-0 \| worker.master-0 \| master).$' \
	timeout 120 "$holdfast" logs gang -f --rank all
"$holdfast" delete gang -y >/dev/null

# ---- killed and started again
sleeper keep >"$folder/keep.yaml"
expect 'the API accepts a job' '"kind":"PyTorchJob"' api /apis/kubeflow.org/v1/namespaces/default/pytorchjobs \
	-H 'Content-Type: application/yaml' --data-binary "@$folder/keep.yaml"
expect 'the pod of the job runs' '' until_true 600 runs
before=$(pods | grep '"uid"' | sort)
kill -9 "$SERVER_PID"
wait "$SERVER_PID" 2>/dev/null || true
expect 'without a server a verb ends with code 3' 'rc 3' rc_of "$holdfast" get pods
start_again() { rm -f "$plane/kubeconfig"; start "$holdfast" "$plane"; }
start_again
expect 'after kill -9 the job is still stored' 'keep' "$holdfast" get pytorchjobs
expect 'after kill -9 up finds the pod again' '' until_true 600 runs
after=$(pods | grep '"uid"' | sort)
expect 'the pod has the same process as before' '' test "$before" = "$after"

# ---- stopped by a signal: pods keep running; down ends them, whether up runs or not
# A program that saves at SIGTERM, and one that ignores SIGTERM.
for job in saver stubborn; do
	cat >"$folder/$job.yaml" <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: $job}
	spec:
	  pytorchReplicaSpecs:
	    Master:
	      replicas: 1
	      restartPolicy: Never
	      template:
	        spec:
	          terminationGracePeriodSeconds: 2
	          containers:
	          - {name: pytorch, image: none, command: [sh, -c, '$([ $job = saver ] &&
			echo "trap \"echo saved > $folder/saved; exit 0\" TERM" || echo "trap \"\" TERM"); : > $folder/$job.on; tail -f /dev/null & wait; wait']}
	END
	api /apis/kubeflow.org/v1/namespaces/default/pytorchjobs -H 'Content-Type: application/yaml' \
		--data-binary "@$folder/$job.yaml" >/dev/null
	expect "job $job runs" '' until_true 600 test -e "$folder/$job.on"
done
kill "$SERVER_PID"
expect_end 'up ends with code 0' "$SERVER_PID"
expect 'the processes of the pods run on after up has ended' "sleep $unique" ps_of_plane
expect 'down without up that has no time for the grace says so' 'still run, and have got SIGTERM.*rc 124' \
	rc_of "$holdfast" down --data-dir "$plane" --timeout 300ms
expect 'down ends the pods of a plane that does not run' \
	"was not running; [12] pods? w.* ended.jobs and logs stay in $plane" "$holdfast" down --data-dir "$plane"
expect 'nothing runs any more' '^.?$' ps_of_plane
expect 'that down sent SIGTERM and left time to save' '^saved' cat "$folder/saved"
expect 'down of an empty folder finds no plane' 'was not running; no pods of it are left' "$holdfast" down --data-dir "$folder/none"
expect 'down of an empty folder makes no files' '' test ! -e "$folder/none"
start_again
for job in saver stubborn; do
	expect "why names down as the cause of the end of $job" "class +infrastructure: 'holdfast down' or the end of 'holdfast run' ended the pod" "$holdfast" why "$job"
	"$holdfast" delete "$job" -y >/dev/null
done
expect 'down ends a running plane, and tells what stays' "^stopped(; [0-9] pods? w[a-z]* ended)?.jobs and logs stay in $plane: 'holdfast up --data-dir $plane' goes on" "$holdfast" down --data-dir "$plane" --timeout 60s
expect_end 'that up has ended with code 0' "$SERVER_PID"
SERVER_PID=

# ---- down fails no job: the job continues at the next up, however its programs handle SIGTERM and even
# if down is interrupted
# trapper NAME POLICY TRAP RUNPOLICY GRACE: writes a job of one rank that makes a file and waits for SIGTERM
trapper() {
	cat <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: $1}
	spec:
	  runPolicy: $4
	  pytorchReplicaSpecs:
	    Master:
	      replicas: 1
	      restartPolicy: $2
	      template:
	        spec:
	          terminationGracePeriodSeconds: $5
	          containers:
	          - {name: pytorch, image: none, command: [sh, -c, 'trap "$3" TERM; echo >> $folder/$1.up; tail -f /dev/null & wait']}
	END
}
create_job() { api /apis/kubeflow.org/v1/namespaces/default/pytorchjobs -H 'Content-Type: application/yaml' --data-binary @-; }
# runs_times NAME N: the program of the job has started N times
runs_times() { [ "$(wc -l <"$folder/$1.up")" -ge "$2" ]; }
start_again
trapper bad Never 'exit 1' '{}' 3 | create_job >/dev/null
trapper good Never 'exit 0' '{}' 3 | create_job >/dev/null
trapper deaf OnFailure '' '{backoffLimit: 0}' 1 | create_job >/dev/null
for job in bad good deaf; do
	expect "$job runs" '' until_true 600 runs_times "$job" 1
done
expect 'down ends the jobs' 'stopped' "$holdfast" down --data-dir "$plane" --timeout 60s
wait "$SERVER_PID" || true
start_again
for job in bad good deaf; do
	expect "$job goes on after down, without a charge" '' until_true 600 runs_times "$job" 2
	expect "$job restarted with class infrastructure" 'class +infrastructure' "$holdfast" why "$job"
done
trapper slow Never ": > $folder/told; test -e $folder/free || read x < $folder/go; exit 1" '{}' 60 | create_job >/dev/null
mkfifo "$folder/go"
expect 'slow runs' '' until_true 600 runs_times slow 1
"$holdfast" down --data-dir "$plane" >/dev/null 2>&1 &
down=$!
expect 'job slow gets SIGTERM' '' until_true 600 test -e "$folder/told"
kill -9 "$SERVER_PID"
wait "$SERVER_PID" 2>/dev/null || true
# The rank ends late in its grace period, while down goes on without up.
exec 3<>"$folder/go"
echo >&3
wait "$down" || true
exec 3>&-
start_again
expect 'an interrupted down fails no job' '' until_true 600 runs_times slow 2
# While up ends the pods, its API still answers.
rm -f "$folder/told"
"$holdfast" down --data-dir "$plane" >/dev/null 2>&1 &
down=$!
expect 'job slow gets SIGTERM again' '' until_true 600 test -e "$folder/told"
expect 'get is answered while down waits' 'slow-master-0.*Running' "$holdfast" get pods
# Readers of the pipe get its end.
: >"$folder/free"
exec 3<>"$folder/go"
echo >&3
expect_end 'down ends when job slow has ended' "$down"
wait "$SERVER_PID" || true
SERVER_PID=

# ---- other processes and bad clients
start_again
node_uid() { api /api/v1/nodes/local | sed -n 's/.*"uid":"\([^"]*\)".*/\1/p'; }
first=$(node_uid)
another_node() { local uid; uid=$(node_uid) && [ -n "$uid" ] && [ "$uid" != "$first" ]; }
expect 'the node can be deleted' 'Success' api /api/v1/nodes/local -X DELETE
expect 'the kubelet registers the deleted node again' '' until_true 100 another_node
expect 'the log tells that the node was deleted' 'was deleted; the kubelet registers it again' cat "$plane.log"
# More idle connections than the server accepts at a time.
crowd() {
	python3 - "$(sed -n 's/.*127.0.0.1:\([0-9]*\).*/\1/p' "$KUBECONFIG")" "$folder" <<-'END'
	import os, socket, sys
	crowd = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(1200)]
	open(sys.argv[2] + "/crowd", "w").close()
	os.mkfifo(sys.argv[2] + "/home")
	open(sys.argv[2] + "/home").read()
	END
}
(ulimit -n 2048 && crowd) &
expect 'more idle connections are open than the server accepts' '' until_true 300 test -p "$folder/home"
expect 'idle connections do not keep other clients out' 'local' "$holdfast" get nodes
echo >"$folder/home"
wait $!
expect 'down ends the plane with idle connections' 'stopped' "$holdfast" down --data-dir "$plane" --timeout 60s
wait "$SERVER_PID" || true
SERVER_PID=

# ---- the program without libholdfast-names.so, which names need here
mkdir "$folder/lone"
cp "$holdfast" "$folder/lone/holdfast"
"$folder/lone/holdfast" up --network host --listen 127.0.0.1:0 --data-dir "$folder/lone/plane" >/dev/null 2>"$folder/lone.log" &
SERVER_PID=$!
expect 'the log tells that the library for names is missing' '' \
	until_true 100 grep -q 'not find each other by name: libholdfast-names.so is missing' "$folder/lone.log"
expect 'the log tells it once' '^1' grep -c 'libholdfast-names.so is missing' "$folder/lone.log"
expect 'down ends a plane without the library' '' until_true 100 "$holdfast" down --data-dir "$folder/lone/plane" --timeout 60s
wait "$SERVER_PID" || true
SERVER_PID=

# ---- in the background
expect 'up --detach returns when it is ready' "export KUBECONFIG=$plane/kubeconfig" \
	"$holdfast" up --detach --listen 127.0.0.1:0 --data-dir "$plane"
expect 'after --detach the plane answers' 'local' "$holdfast" get nodes
expect 'a second up --detach ends with code 1' 'already .*rc 1' \
	rc_of "$holdfast" up --detach --listen 127.0.0.1:0 --data-dir "$plane"
port=$(sed -n 's/.*127.0.0.1:\([0-9]*\).*/\1/p' "$plane/kubeconfig")

# ---- errors at the start
expect 'a port in use is an error' "another program listens on 127.0.0.1, port $port: '--listen 127.0.0.1:0' takes a free port.*rc 125" \
	rc_of "$holdfast" up --listen "127.0.0.1:$port" --data-dir "$folder/other"
expect 'an up that could not start leaves no folder' '' test ! -e "$folder/other"
expect 'other addresses are refused' 'only 127.0.0.1.*rc 2' rc_of "$holdfast" up --listen 0.0.0.0:0
expect 'a text that is no address is refused' 'ADDRESS:PORT.*rc 2' rc_of "$holdfast" up --listen here
: >"$folder/file"
one_line() { rc_of "$@" | sed -n '1!G;h;$p' | tr '\n' '@'; }
expect 'a file instead of the folder gives one line' "^rc 125@holdfast: [^@]*$folder/file[^@]*@[^@]*$" \
	one_line env HOLDFAST_DIR="$folder/file" "$holdfast" up --listen 127.0.0.1:0
expect 'a folder below a file is an error' "$folder/file.*rc 125" \
	rc_of "$holdfast" up --listen 127.0.0.1:0 --data-dir "$folder/file/plane"
expect 'a folder below /proc is an error' '/proc/nowhere.*rc 125' \
	rc_of "$holdfast" up --listen 127.0.0.1:0 --data-dir /proc/nowhere
for verb in "run $folder/keep.yaml" up down; do
	# shellcheck disable=SC2086 # words
	expect "no folder to work in, for $verb" 'set HOME or HOLDFAST_DIR.*rc 2' \
		rc_of env -u HOME -u HOLDFAST_DIR -u XDG_STATE_HOME "$holdfast" $verb
done
if [ "$(id -u)" -ne 0 ]; then
	mkdir -m 500 "$folder/closed"
	expect 'a folder that cannot be written' 'Permission denied.*rc 125' \
		rc_of "$holdfast" up --listen 127.0.0.1:0 --data-dir "$folder/closed/plane"
fi
expect 'a disk full before the store exists is an error' 'disk is full.*rc 125' full_disk 32
expect 'a limit of the size of files is reported as a full disk' 'disk is full.*rc 125' small_files 8
expect 'a disk full before the node exists is an error' '(disk is full|No space left on device).*rc 125' full_disk 64
expect 'a disk that a job filled is reported, and the job can be deleted' \
	"^(not tried: no mount namespace.?|.*disk +node .local.: .* [0-9]{1,2} of 3072 KiB are free.*Disk: .*nearly full.*warning: node .local.*Ready,DiskPressure.*NodeHasDiskPressure.*up again.*pytorchjob/keep deleted.0.stopped.jobs and logs stay in [^{}]*holdfast: [^{}]* (the disk is full|No space left on device).rc 125.?)$" \
	filled_disk
expect 'down ends the plane in the background' 'stopped' "$holdfast" down --data-dir "$plane" --timeout 60s
finish
