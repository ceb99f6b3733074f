#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# pip_example_test.sh HOLDFAST EXAMPLE RANK: an example whose framework comes from PyPI, undisturbed,
# and with RANK ("worker-1") killed once there is a checkpoint: it ends with the same result.
# Skipped unless `./dev run EXAMPLE` has made its Python environment.
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

# Its checkpoints lie here, and nowhere that a person's are.
manifest() {
	sed -E "s|^( +)image: .*|&\n\1env: [{name: CHECKPOINTS, value: $dir/$1}]|" "$example" >"$dir/$1.yaml"
}
# result LOG: the last words of rank 0.
result() { grep -o 'done: .*' "$1"; }
# The processes of the rank to be killed; quickly, as the job goes on meanwhile.
victims() {
	grep -lzxF "HOSTNAME=$job-$rank" /proc/[0-9]*/environ 2>/dev/null |
		xargs -r grep -lzxF "CHECKPOINTS=$dir/killed" 2>/dev/null | cut -d/ -f3
}
checkpoint() { find "$dir/killed" -name 'latest.*' | grep -q .; }

manifest plain
manifest killed
expect "lint finds nothing to say" "is valid" "$program" lint "$example"
"$program" run "$dir/plain.yaml" >"$dir/plain.log" 2>&1
expect "it trains" "done: " cat "$dir/plain.log"
"$program" run "$dir/killed.yaml" >"$dir/killed.log" 2>&1 &
RUN_PID=$!
expect "it writes a checkpoint" "" until_true 3000 checkpoint
mapfile -t pids < <(victims)
expect "the rank runs" "" test "${#pids[@]}" -gt 0
kill -9 "${pids[@]}"
expect_end "the job ends well" "$RUN_PID"
RUN_PID=
expect "it went on from there" "resumed at" cat "$dir/killed.log"
expect "with the same result" "" test "$(result "$dir/killed.log")" = "$(result "$dir/plain.log")"
[ "$failures" -eq 0 ] || tail -n 40 "$dir"/*.log
finish
