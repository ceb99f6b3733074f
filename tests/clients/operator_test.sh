#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# operator_test.sh HOLDFAST: runs `holdfast operator` processes against the API of a plane without an
# operator: a job from beginning to end, leader election and hand-over, the HTTP probes, and error
# messages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"

holdfast=$1
folder=$(mktemp -d)
plane=$folder/plane
declare -A pids=()
cleanup() {
	for name in "${!pids[@]}"; do kill -9 "${pids[$name]}" 2>/dev/null || true; done
	"$holdfast" down --data-dir "$plane" --timeout 60s >/dev/null 2>&1 || true
	rm -rf "$folder"
}
trap cleanup EXIT

job() { # NAME COMMAND
	cat <<-END
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: $1}
	spec:
	  pytorchReplicaSpecs:
	    Master:
	      replicas: 1
	      restartPolicy: OnFailure
	      template: {spec: {containers: [{name: pytorch, image: none, command: [sh, -c, "$2"]}]}}
	    Worker:
	      replicas: 1
	      restartPolicy: OnFailure
	      template: {spec: {containers: [{name: pytorch, image: none, command: [sh, -c, "$2"]}]}}
	END
}
create() {
	job "$1" "$2" >"$folder/job.yaml"
	api /apis/kubeflow.org/v1/namespaces/default/pytorchjobs -H 'Content-Type: application/yaml' \
		--data-binary "@$folder/job.yaml"
}
# operator NAME [FLAG…]: starts an operator in the background, with its log in a file.
operator() {
	local name=$1
	shift
	"$holdfast" operator --leader-elect --leader-election-namespace default \
		--metrics-bind-address 127.0.0.1:0 -health-probe-bind-address=127.0.0.1:0 "$@" \
		2>"$folder/$name.log" &
	pids[$name]=$!
	until_true 300 grep -q '"msg":"Starting"' "$folder/$name.log" || { cat "$folder/$name.log" >&2; return 1; }
}
port() { sed -n "s/.*\"msg\":\"Starting\".*\"$2Port\":\"\([0-9]*\)\".*/\1/p" "$folder/$1.log" | tail -n 1; }
ask() { # NAME PATH
	curl -sS --max-time 10 "http://127.0.0.1:$(port "$1" "$([ "$2" = /metrics ] && echo metrics || echo health)")$2"
}
metric() { ask "$1" /metrics | grep -v '^#' | grep -F "$2"; }
leads() { metric "$1" leader_election_master_status | grep -q ' 1$'; }
is_ready() { ask "$1" /readyz | grep -qx ok; }
uids() { "$holdfast" get pods -o json | grep '"uid"' | sort -u; }
running() { [ "$("$holdfast" get pods -o json | grep -c '"phase": "Running"')" = "$1" ]; }
# reap NAME: waits until the operator has ended; sets `code` to its exit code.
reap() {
	code=0
	wait "${pids[$1]}" || code=$?
	unset "pids[$1]"
}

# ---- wrong command lines
expect 'an unknown flag is refused, with the nearest flag' "unknown flag '--leader-elect-id': did you mean '--leader-election-id'.*rc 2" \
	rc_of "$holdfast" operator --leader-elect-id x
expect 'an unknown kind of job is refused' "unknown kind of job 'nojob'.*rc 2" rc_of "$holdfast" operator -enable-scheme nojob
expect 'a missing kubeconfig is an error' "none.*rc 1" rc_of "$holdfast" operator --kubeconfig "$folder/none"
printf 'recovery:\n  settleSecond: 1\n' >"$folder/config.yaml"
expect 'an unknown field of the config file is refused, with its line' 'config.yaml:2:3: unknown field "recovery.settleSecond".*rc 2' \
	rc_of "$holdfast" operator --config "$folder/config.yaml"
expect 'help names the flags' 'leader-election-id' "$holdfast" operator -help

# ---- the operator waits for an API server that cannot be reached, and logs the reason
cat >"$folder/nowhere" <<-'END'
	apiVersion: v1
	kind: Config
	current-context: t
	clusters: [{name: t, cluster: {server: 'https://127.0.0.1:1'}}]
	users: [{name: t, user: {token: t}}]
	contexts: [{name: t, context: {cluster: t, user: t}}]
END
template() { # TEXT
	printf '%b' "$1" >"$folder/template.yaml"
	rc_of timeout 20 "$holdfast" operator --kubeconfig "$folder/nowhere" --metrics-bind-address 0 \
		--health-probe-bind-address 0 --pytorch-init-container-template-file "$folder/template.yaml"
}
expect 'an empty template of init containers is refused' \
	'--pytorch-init-container-template-file: .*template.yaml. is empty.*rc 2' template ''
expect 'a template of init containers without an image is refused' \
	'--pytorch-init-container-template-file .*template.yaml.: .*container 0 has no image.*rc 2' template '- name: wait\n'
expect 'MY_POD_NAMESPACE must be a namespace' "MY_POD_NAMESPACE 'Bad NS': .*rc 2" \
	rc_of env MY_POD_NAMESPACE='Bad NS' "$holdfast" operator -leader-elect
sed "s|server: |proxy-url: 'http://127.0.0.1:2', &|" "$folder/nowhere" >"$folder/proxied"
operator nowhere --kubeconfig "$folder/nowhere"
says_why() { ask nowhere /readyz | grep -q 'not ready: lease: .*127.0.0.1'; }
expect '/readyz tells why the operator is not ready' '' until_true 100 says_why
expect '/healthz is ok without an API server' '^ok' ask nowhere /healthz
kill "${pids[nowhere]}"
reap nowhere
expect 'SIGTERM ends the operator with code 0' '' test "$code" = 0
operator proxied --kubeconfig "$folder/proxied"
says_proxy() { ask proxied /readyz | grep -q 'the proxy cannot be reached: .*127.0.0.1'; }
expect 'the log names the proxy that cannot be reached' '' until_true 100 says_proxy
kill "${pids[proxied]}"
reap proxied

# ---- an API without an operator
"$holdfast" up --no-operator --listen 127.0.0.1:0 --data-dir "$plane" >"$folder/up.out" 2>"$folder/up.log" &
pids[up]=$!
export KUBECONFIG=$plane/kubeconfig
until_true 300 test -s "$KUBECONFIG" || { cat "$folder/up.log" >&2; exit 1; }

# ---- one operator leads
printf 'recovery:\n  settleSeconds: 1\n' >"$folder/config.yaml"
operator a --config "$folder/config.yaml" --webhook-server-port=9443
expect 'the first operator leads' '' until_true 100 leads a

# ---- its config file changes
printf 'recovery:\n  settleSeconds: -1\n' >"$folder/config.yaml"
rejected() { metric a holdfast_config_rejected | grep -q " $1\$"; }
expect 'an invalid config file changes nothing' '' until_true 300 rejected 1
expect 'the log names the invalid field of the config file' 'Config file is invalid.*config.yaml:2:3: recovery.settleSeconds' cat "$folder/a.log"
expect 'after an invalid config file the operator still leads' '' leads a
printf 'recovery:\n  settleSeconds: 2\n' >"$folder/config.yaml"
starts() { [ "$(grep -c '"msg":"Starting"' "$folder/a.log")" = "$1" ]; }
expect 'a valid config file makes the process start again' '' until_true 300 starts 2
expect 'the operator leads after its restart' '' until_true 100 leads a
expect 'the operator has taken the new config file' '' rejected 0

# ---- a second operator stands by
expect 'the API accepts a job' '"kind":"PyTorchJob"' create first 'exit 0'
operator b
expect '/healthz of the leader is ok' '^ok' ask a /healthz
expect '/readyz of the leader is ok' '' until_true 100 is_ready a
expect 'the second operator waits, and is ready' '' until_true 100 is_ready b
expect 'the second operator does not lead' ' 0.?$' metric b leader_election_master_status
expect 'the log names a flag without effect' 'Flag has no effect.*webhook-server-port' cat "$folder/a.log"
expect 'the job succeeds' '' "$holdfast" wait first --for succeeded --timeout 60s
expect 'the leader counts the job' 'jobs_successful_total.job_namespace="default",framework="pytorch". 1[^0-9.]' \
	metric a training_operator_jobs_successful_total
expect 'the second operator counts no job' '' test -z "$(metric b controller_runtime_reconcile_total || true)"
expect 'the log has lines of the job' '"controller":"pytorchjob-controller".*"namespace":"default","name":"first","job":"default/first","reconcileID":"[0-9a-f-]{36}"' \
	grep PyTorchJobSucceeded "$folder/a.log"
if command -v promtool >/dev/null; then
	ask a /metrics >"$folder/metrics"
	expect 'promtool finds nothing' '^.?$' promtool check metrics <"$folder/metrics"
else
	echo 'promtool is not here: the metrics were not checked by it' >&2
fi

# ---- the leader gets SIGTERM: the other operator takes over, and no pod restarts
expect 'the API accepts a job that does not end' 'second' create second 'exec tail -f /dev/null'
expect 'the pods of the job run' '' until_true 300 running 2
before=$(uids)
kill "${pids[a]}"
reap a
expect 'the leader ends with code 0 after SIGTERM' '' test "$code" = 0
expect 'the log of the leader has its end' 'Stopped' cat "$folder/a.log"
expect 'the second operator leads within seconds' '' until_true 200 leads b
expect 'the second operator is ready' '' until_true 100 is_ready b
expect 'the change of the leader restarted no pod' '' test "$before" = "$(uids)"
expect 'the new leader does not count earlier jobs' 'jobs_created_total.job_namespace="default",framework="pytorch". 0[^0-9.]' \
	metric b training_operator_jobs_created_total

# ---- the leader is stopped until its Lease has expired, then continued
kill -STOP "${pids[b]}"
operator c
expect 'another operator leads when the Lease has expired' '' until_true 400 leads c
expect 'the API accepts a job meanwhile' 'third' create third 'exit 0'
expect 'the new leader runs that job' '' "$holdfast" wait third --for succeeded --timeout 60s
kill -CONT "${pids[b]}"
stands_by() { tail -n 1 "$folder/b.log" | grep -q '"state":"standby"'; }
expect 'the former leader finds that it leads no more' '' until_true 100 stands_by
expect 'the former leader does not lead' ' 0.?$' metric b leader_election_master_status
expect 'the former leader restarted no pod' '' test "$before" = "$(uids | grep -F "$before")"
expect 'a job can be deleted' '' "$holdfast" delete second --yes
expect 'the pods of a deleted job are deleted' '' until_true 600 running 0
kill "${pids[b]}" "${pids[c]}"
reap b
expect 'an operator that does not lead ends with code 0' '' test "$code" = 0
reap c
expect 'the last operator ends with code 0' '' test "$code" = 0
lease() { api /apis/coordination.k8s.io/v1/namespaces/default/leases/1ca428e5.training-operator.kubeflow.org; }
expect 'the Lease has no holder' '"holderIdentity":""' lease
expect 'the plane ends' 'stopped' "$holdfast" down --data-dir "$plane" --timeout 60s
wait "${pids[up]}" || true
unset 'pids[up]'
finish
