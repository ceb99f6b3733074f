#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# log_rules_test.sh EXEC: runs `holdfast exec --log-rule` (or holdfast-exec) around real programs: lines that are
# missing, numbers that are bad, the stacks and the flight recorder of a hang, and events for the agent.
# shellcheck disable=SC2016 # the scripts of inner shells are in single quotes
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/clients/exec_lib.sh
. "$here/exec_lib.sh"

# A program that waits for it waits for ever.
export HOLD=$folder/hold
mkfifo "$HOLD"

# --- numbers
expect "a bad number on stdout ends the program" 'code 228' code 228 run --log-rule 'loss must be finite: loss=(\S+)' -- \
	sh -c 'echo loss=1; echo loss=nan; cat "$HOLD"; echo loss=2'
expect "... and the message names the rule" \
	"exit code 137, given as 228 .log-rule.: log rule 'loss': nan is not finite, 1 line in a row" cat "$log"
expect "a bad number on stderr too, behind a carriage return" 'code 228' code 228 run \
	--log-rule 'norm must be below 10 for 2 lines: norm (\S+)' -- sh -c 'printf "norm 11\rnorm 12\r" >&2; cat "$HOLD"'
expect "with FailJob the code asks for no restart" 'code 229' code 229 run \
	--log-rule 'loss must be finite or FailJob: loss=(\S+)' -- sh -c 'echo loss=inf; cat "$HOLD"'
# shellcheck disable=SC2046 # the words become arguments
expect "a program without bad numbers keeps its code and output" 'norm 9 code 3' sh -c 'echo $1 $2 $3 $4' . \
	$(code 3 run --log-rule 'norm must be below 10: norm (\S+)' -- sh -c 'echo norm 9; exit 3')
expect "SIGTERM does not ask to save a bad number" 'none' sh -c \
	'"$@" --log-rule "loss must be finite: loss=(\S+)" -- sh -c "trap \"touch $0/saved\" TERM; echo loss=nan; cat $0/hold; cat $0/hold" \
	>"$0/out" 2>&1; ls "$0/saved" 2>/dev/null || echo none' "$folder" "${exec[@]}" --termination-log "$log"
head -c 1000000 /dev/zero | tr '\0' x >"$folder/long"
expect "output passes unchanged" 'same' sh -c '"$@" >"$0.out" && cmp "$0" "$0.out" && echo same' "$folder/long" \
	"${exec[@]}" --termination-log "$log" --log-rule 'x must recur within 1h: y+z' -- cat "$folder/long"

# --- lines that are missing
cat >"$folder/hang.py" <<'PY'
import faulthandler, os, subprocess, sys, time
faulthandler.enable()
if len(sys.argv) > 1:  # a launcher, whose rank hangs
    rank = subprocess.Popen([sys.executable, __file__])
    sys.exit(rank.wait() and 9)
def wait_for_peers():
    time.sleep(60)
print("step 1", flush=True)
wait_for_peers()
PY
expect "a line that does not recur is a hang" 'code 225' code 225 run --log-rule 'steps must recur within 1s: step \d+' -- \
	python3 "$folder/hang.py" launcher
expect "... with the stack of the rank below the launcher" 'in wait_for_peers' cat "$log"
expect "... and the rule" "given as 225 .hang.: log rule 'steps': no line matched for 1 s" cat "$log"
expect "a line that does not appear is one too" 'code 225' code 225 run --log-rule 'steps must appear within 1s: step 2' -- \
	python3 "$folder/hang.py"
expect "a device fault is the cause of the hang" 'code 220' code 220 run --log-rule 'x must appear within 1s: y' -- \
	sh -c 'echo "RuntimeError: CUDA error: uncorrectable ECC error encountered" >&2; cat "$HOLD"'
expect "with FailJob the rule decides" 'code 229' code 229 run --log-rule 'x must appear within 1s or FailJob: y' -- \
	sh -c 'echo "RuntimeError: CUDA error: uncorrectable ECC error encountered" >&2; cat "$HOLD"'

# --- NCCL's flight recorder: torch reads the pipe, and writes the file
cat >"$folder/recorder.py" <<'PY'
import os, signal, sys, time
stem = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"]
os.mkfifo(stem + "3.pipe")
pipe = os.open(stem + "3.pipe", os.O_RDONLY | os.O_NONBLOCK)
print("step 1", flush=True)
while True:
    time.sleep(0.2)
    if os.read(pipe, 128):
        with open(sys.argv[1], "w") as f:
            f.write("dumped before SIGABRT")
PY
expect "the flight recorder is asked for first" 'code 225' code 225 env \
	TORCH_NCCL_DEBUG_INFO_PIPE_FILE="$folder/nccl[1]_" "${exec[@]}" --termination-log "$log" \
	--log-rule 'steps must recur within 1s: step' -- python3 "$folder/recorder.py" "$folder/dump"
expect "... and written" 'dumped before SIGABRT' cat "$folder/dump"

# --- events
cat >"$folder/agent.py" <<'PY'
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1] + "/exec.sock")
s.listen(8)
while True:
    peer, _ = s.accept()
    peer.send(b"target generation=1 attempt=0 wait=1 grace=1")
    while True:
        line = peer.recv(2048)
        if not line:
            break
        with open(sys.argv[1] + "/told", "ab") as f:
            f.write(line + b"\n")
PY
python3 "$folder/agent.py" "$folder" &
agent_pid=$!
until_true 100 test -S "$folder/exec.sock"
expect "a rule with action Event ends nothing" 'code 0' code 0 run --log-rule 'loss must be finite or Event: loss=(\S+)' -- \
	sh -c 'echo loss=nan; until grep -q ^note "$0/told"; do :; done' "$folder"
expect "... and tells the agent" "note words=log rule 'loss': nan is not finite, 1 line in a row" cat "$folder/told"
expect "the agent hears the cause of an end" 'state phase=ended generation=1 attempt=0 ordinal=1 code=228 ended_ms=[0-9]+ cause=log-rule' sh -c \
	'"$@" >"$0/out" 2>&1; cat "$0/told"' "$folder" "${exec[@]}" --termination-log "$log" \
	--log-rule 'loss must be finite: loss=(\S+)' -- sh -c 'echo loss=nan; cat "$HOLD"'

# --- what cannot be read
expect "a rule that is none is a wrong command line" "pattern: missing closing parenthesis, at character 2" \
	code 2 "${exec[@]}" --log-rule 'x must recur within 1m: (' -- true
expect "... but in the environment it is left out" 'a rule is left out.*ran' sh -c '"$@" 2>&1 | tr "\n" " "' . \
	env HOLDFAST_LOG_RULES='x must recur every 1m' "${exec[@]}" --termination-log "$log" -- echo ran
expect "the program does not inherit the rules" 'rules: none' \
	env HOLDFAST_LOG_RULES='x must recur within 1m' "${exec[@]}" --termination-log "$log" -- \
	sh -c 'echo "rules: ${HOLDFAST_LOG_RULES:-none}"'
expect "a pattern that takes too long is turned off, and the others stand" "log rule 'x' is off.*code 228" sh -c \
	'rc=0; "$@" >"$0/out" 2>&1 || rc=$?; tr "\n" " " <"$0/out"; echo "code $rc"' "$folder" \
	"${exec[@]}" --termination-log "$log" --log-rule 'x must recur within 1m: ^(a+)+$' \
	--log-rule 'y must be finite: ^y=(\S+)' -- \
	sh -c 'head -c 2000 /dev/zero | tr "\0" a; echo !; echo y=nan; cat "$HOLD"'

finish
