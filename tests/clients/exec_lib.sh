# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
# The common part of tests of holdfast exec. Source lib.sh before it. $1: the command line of exec.

read -ra exec <<<"$1"
folder=$(mktemp -d)
agent_pid=
cleanup() {
	[ -z "$agent_pid" ] || kill "$agent_pid" 2>/dev/null || true
	rm -rf "$folder"
}
trap cleanup EXIT
export HOLDFAST_AGENT_SOCKET=$folder/agent.sock
log=$folder/termination

# run ARGUMENT…: runs exec, with its termination message in $log.
run() { rm -f "$log"; "${exec[@]}" --termination-log "$log" "$@"; }

# code CODE COMMAND…: the command must end with this exit code. Prints "code CODE" with the actual one.
code() {
	local wanted=$1 rc=0
	shift
	"$@" || rc=$?
	echo "code $rc"
	[ "$rc" -eq "$wanted" ]
}
