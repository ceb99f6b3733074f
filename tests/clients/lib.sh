# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
# Functions for tests with a real client: start and stop a server, and check the output of commands.

# start PROGRAM FOLDER: starts `holdfast up`, or tests/clients/serve if no pods are needed.
# Sets KUBECONFIG, SERVER_PID and the variables of stop.
start() {
	local program=$1 folder=$2
	SERVER_PROGRAM=$program
	SERVER_FOLDER=$folder
	if [ "$(basename "$program")" = holdfast ]; then
		"$program" up --listen 127.0.0.1:0 --data-dir "$folder" >"$folder.out" 2>"$folder.log" &
	else
		mkdir -p "$folder"
		"$program" "$folder" >"$folder.out" 2>"$folder.log" &
	fi
	SERVER_PID=$!
	export KUBECONFIG=$folder/kubeconfig
	until_true 300 test -s "$KUBECONFIG" || { cat "$folder.log" >&2; return 1; }
}

# stop: ends the server of start. Ends the pods of a plane too, because they survive a signal to it.
stop() {
	[ -n "${SERVER_PID:-}" ] || return 0
	if [ "$(basename "$SERVER_PROGRAM")" = holdfast ]; then
		"$SERVER_PROGRAM" down --data-dir "$SERVER_FOLDER" --timeout 60s >/dev/null || kill -9 "$SERVER_PID"
	else
		kill "$SERVER_PID" 2>/dev/null || true
	fi
	wait "$SERVER_PID" 2>/dev/null || true
	SERVER_PID=
}

# until_true TENTHS COMMAND…: runs the command every 0.1 s until it succeeds, at most TENTHS times.
until_true() {
	local left=$1
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || return 1
		read -r -t 0.1 <> <(:) || true
	done
}

# api PATH [FLAG…]: sends a request to the plane of the kubeconfig with the plane's token. FLAG: flags of curl.
api() {
	local path=$1 plane=${KUBECONFIG%/*}
	shift
	curl -sS --max-time 20 --cacert "$plane/ca.pem" -H "Authorization: Bearer $(cat "$plane/token")" \
		"$@" "$(sed -n 's/ *server: //p' "$KUBECONFIG")$path"
}

# rc_of COMMAND…: prints the output of the command and "rc CODE", its exit code.
rc_of() {
	local rc=0
	"$@" 2>&1 || rc=$?
	echo "rc $rc"
}

checks=0
failures=0

# expect WHAT PATTERN COMMAND…: the command must succeed and its output must match the extended regex.
expect() { check "$1" 0 "$2" "${@:3}"; }
# refuse WHAT PATTERN COMMAND…: the command must fail and its output must match.
refuse() { check "$1" 1 "$2" "${@:3}"; }

check() {
	local what=$1 wanted=$2 pattern=$3 out rc=0
	shift 3
	checks=$((checks + 1))
	out=$("$@" 2>&1) || rc=$?
	[ "$rc" -eq 0 ] || rc=1
	if [ "$rc" = "$wanted" ] && grep -Eqz -- "$pattern" <<<"$out"; then
		return 0
	fi
	failures=$((failures + 1))
	printf 'FAILED: %s\n  $ %s\n  wanted %s, /%s/; got %s:\n%s\n' "$what" "$*" "$wanted" \
		"$pattern" "$rc" "$out" | cut -c1-600 >&2
}

# expect_end WHAT PID: a child of the test must end by itself with code 0.  expect cannot check this: its
# command runs in a subshell, and a subshell can only wait for its own children.
expect_end() {
	local rc=0
	checks=$((checks + 1))
	wait "$2" || rc=$?
	[ "$rc" -ne 0 ] || return 0
	failures=$((failures + 1))
	printf 'FAILED: %s: it ended with %s\n' "$1" "$rc" >&2
}

# expect_owners WORKERS [FLAG…]: several field managers apply parts of the job "owned".  owned.yaml, with
# that many workers and suspended, is applied already.  FLAG: flags of each partial apply.
expect_owners() {
	local workers=$1 ttl='jsonpath={.spec.runPolicy.ttlSecondsAfterFinished}'
	shift
	printf 'apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: owned}\n' >two.yaml
	{ cat two.yaml; echo 'spec: {runPolicy: {ttlSecondsAfterFinished: 60}}'; } >ttl.yaml
	expect 'another manager applies a field of its own' 'serverside-applied' \
		kubectl apply --server-side --field-manager=two "$@" -f ttl.yaml
	expect 'the field has the value' '^60.$' kubectl get pytorchjob owned -o "$ttl"
	sed 's/suspend: true/suspend: false/' owned.yaml >other.yaml
	refuse 'a manager cannot change a field of another manager' 'conflict with "kubectl"' \
		kubectl apply --server-side --field-manager=three -f other.yaml
	kubectl scale pytorchjob owned --replicas=3 >/dev/null
	refuse 'after kubectl scale the owner cannot apply the replicas' 'conflict' kubectl apply --server-side -f owned.yaml
	expect '--force-conflicts applies the replicas' 'serverside-applied' \
		kubectl apply --server-side --force-conflicts -f owned.yaml
	expect 'the replicas are those that were applied' "^$workers.\$" kubectl get pytorchjob owned \
		-o 'jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}'
	expect 'the other manager applies without its field' 'serverside-applied' \
		kubectl apply --server-side --field-manager=two -f two.yaml
	expect 'the field without a manager is gone' '^.?$' kubectl get pytorchjob owned -o "$ttl"
}

finish() {
	echo "$checks checks, $failures failed"
	[ "$failures" -eq 0 ]
}
