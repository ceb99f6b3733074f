#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# pip_example_test.sh HOLDFAST EXAMPLE RANK: runs an example whose framework comes from PyPI twice: without
# a fault, and with RANK ("worker-1") killed after the first checkpoint. Both must have the same result.
# Skipped unless `./dev run EXAMPLE` has made the Python environment.
set -uo pipefail
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
program=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
example=$top/examples/$2
rank=$3
dir=$(mktemp -d)
export HOLDFAST_DIR=$dir/state
mapfile -t packages < <(sed -n 's/^# dev: pip //p' "$example")
if ! python=$("$top/tools/python-env" --there "${packages[@]}"); then
	echo "SKIPPED: needs ${packages[*]} (./dev run examples/$2)"
	exit 77
fi
PATH=$python/bin:$PATH
job=$(basename "$2" .yaml)
RUN_PID=
trap '[ -z "$RUN_PID" ] || kill "$RUN_PID"; wait; rm -rf "$dir"' EXIT

# The checkpoints go into this folder, away from the user's own.
manifest() {
	sed -E "s|^( +)image: .*|&\n\1env: [{name: CHECKPOINTS, value: $dir/$1}]|" "$example" >"$dir/$1.yaml"
}
# result LOG: prints the result line of rank 0.
result() { grep -o 'done: .*' "$1"; }
# Prints the processes of the rank to kill. Must be fast, because the job goes on.
victims() {
	grep -lzxF "HOSTNAME=$job-$rank" /proc/[0-9]*/environ 2>/dev/null |
		xargs -r grep -lzxF "CHECKPOINTS=$dir/killed" 2>/dev/null | cut -d/ -f3
}
checkpoint() { find "$dir/killed" -name 'latest.*' | grep -q .; }

manifest plain
manifest killed
expect "lint finds nothing to say" "is valid" "$program" lint "$example"
"$program" run "$dir/plain.yaml" >"$dir/plain.log" 2>&1
expect "the example trains to its end" "done: " cat "$dir/plain.log"
"$program" run "$dir/killed.yaml" >"$dir/killed.log" 2>&1 &
RUN_PID=$!
expect "the job writes a checkpoint" "" until_true 3000 checkpoint
mapfile -t pids < <(victims)
expect "the rank to kill runs" "" test "${#pids[@]}" -gt 0
kill -9 "${pids[@]}"
expect_end "the job ends well" "$RUN_PID"
RUN_PID=
expect "after the kill the job resumed from the checkpoint" "resumed at" cat "$dir/killed.log"
expect "both runs have the same result" "" test "$(result "$dir/killed.log")" = "$(result "$dir/plain.log")"
[ "$failures" -eq 0 ] || tail -n 40 "$dir"/*.log
finish
