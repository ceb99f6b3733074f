#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# exec_test.sh EXEC REPORT.PY: runs `holdfast exec` (or holdfast-exec) around real processes: exit codes,
# signals, orphans, termination messages, and the reports to an agent, for which a Python program stands in.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/clients/exec_lib.sh
. "$here/exec_lib.sh"

report=$2
ecc='RuntimeError: CUDA error: uncorrectable ECC error encountered'

# --- without an agent: exec exits with the program's code
expect "code 0 of the program is code 0 of exec" 'code 0' code 0 run -- true
refuse "after code 0 there is no termination message" . cat "$log"
"${exec[@]}" --copy-to "$folder/copied"
expect "the program copies itself for another container" 'code 5' code 5 "$folder/copied" "${exec[@]:1}" \
	--agent-socket= -- sh -c 'exit 5'
expect "... and says why it cannot" "cannot copy this program to '$folder/none/x': No such" code 1 "${exec[@]}" --copy-to "$folder/none/x"
expect "exec ends with the program's code" 'code 3' code 3 run -- sh -c 'exit 3'
expect "a signal gives 128 + its number" 'code 137' code 137 run -- sh -c 'kill -9 $$'
expect "a missing program gives 127, as in shells" 'code 127' code 127 run -- "$folder/none"
expect "... and the termination message names the program" "cannot run '.*none': No such file" cat "$log"
expect "a program that is not executable gives 126, as in shells" 'code 126' code 126 run -- "$folder"
expect "a command line without a command is refused" 'code 2' code 2 "${exec[@]}" --keep-code
expect "flags behind the command are the program's" '--keep-code -h' run -- echo --keep-code -h
expect "the program has exec's stdin and stdout" 'abc' run -- cat <<<abc

# --- a stderr pipe with other writers: one may fill it between exec's check and its write
cat >"$folder/shared.py" <<'PY'
import os, subprocess, sys, time
r, w = os.pipe()
p = subprocess.Popen(sys.argv[1:] + ["--", "sh", "-c", "echo up >&2; exec sleep 60"], stderr=w)
os.read(r, 1)
def flags(fd):
    with open(f"/proc/{p.pid}/fdinfo/{fd}", encoding="ascii") as info:
        return int(next(l for l in info if l.startswith("flags")).split()[1], 8)
ours = os.readlink(f"/proc/{p.pid}/fd/2")
writing = {fd: bool(flags(fd) & os.O_NONBLOCK) for fd in os.listdir(f"/proc/{p.pid}/fd")
           if os.readlink(f"/proc/{p.pid}/fd/{fd}") == ours}
p.terminate()
print("everybody's" if writing.pop("2") else "its own", *writing.values(), p.wait(10))
PY
expect "exec writes to stderr without blocking, and sets no flag on the shared file" '^its own True 143' python3 "$folder/shared.py" "${exec[@]}"

# --- termination messages
# shellcheck disable=SC2016
many='i=0; while [ $i -lt 20000 ]; do echo "line $i of many" >&2; i=$((i + 1)); done; exit 4'
rc=0
run -- sh -c "$many" 2>"$folder/err" || rc=$?
expect "the program's code is 4 when exec has passed on its stderr" '4' echo "$rc"
expect "... and every line of stderr arrives" '20000' grep -c 'line [0-9]* of many' "$folder/err"
expect "the termination message has the code and the last lines of stderr" 'exit code 4.line [0-9]+ of many.*line 19999 of many' cat "$log"
expect "... and at most 4096 bytes, as the kubelet reads" "" test "$(stat -c %s "$log")" -le 4096
expect "an ECC error on stderr gives code 220" 'code 220' code 220 run -- sh -c "echo '$ecc' >&2; exit 1"
expect "... and the message has the program's own code" 'exit code 1, given as 220 .device-fatal.: .*ECC' cat "$log"
expect "a contained error of CUDA gives code 221" 'code 221' code 221 run -- sh -c \
	"echo 'RuntimeError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error' >&2; exit 1"
expect "an error's name as Numba prints it gives code 221" 'code 221' code 221 run -- sh -c \
	"echo 'CudaAPIError: [714] Call to cuCtxSynchronize results in CUDA_ERROR_HARDWARE_STACK_ERROR' >&2; exit 1"
expect "an illegal memory access keeps the program's code" 'code 1' code 1 run -- sh -c \
	"echo 'RuntimeError: CUDA error: an illegal memory access was encountered' >&2; exit 1"
expect "--keep-code keeps the program's code after an ECC error" 'code 1' code 1 run --keep-code -- sh -c "echo '$ecc' >&2; exit 1"
expect "an ECC error on stderr does not change code 0" 'code 0' code 0 run -- sh -c "echo '$ecc' >&2"
expect "an ECC error of another rank does not change the code" 'code 1' code 1 \
	run -- sh -c "echo 'Traceback (most recent call last): (RANK 5)' >&2; echo '$ecc' >&2; exit 1"
expect "an ECC error of another host does not change the code" 'code 1' code 1 run -- sh -c "echo '10.0.0.7: $ecc' >&2; exit 1"
# shellcheck disable=SC2016
expect "a signal from the program's own group is no signal from outside" 'code 220' code 220 setsid -w \
	"${exec[@]}" --termination-log "$log" -- sh -c 'trap "trap - TERM; kill 0" EXIT; echo "$1" >&2; exit 1' sh "$ecc"
expect "a closed reader of stderr does not end the program" 'code 0' code 0 sh -c '"$@" 2>&1 >&3 | true' sh \
	"${exec[@]}" -- sh -c 'trap "" PIPE; echo x >&2; exit 0' 3>&1
cat >"$folder/closed.py" <<'PY'
import os, subprocess, sys
def close():
    for fd in range(3):
        os.close(fd)
print("code", subprocess.Popen(sys.argv[1:], preexec_fn=close).wait())
PY
expect "exec starts with stdin, stdout and stderr closed" 'code 3' python3 "$folder/closed.py" "${exec[@]}" --agent-socket '' \
	--termination-log "$folder/closed" -- sh -c '[ ! -e /dev/fd/0 ] && [ ! -e /dev/fd/1 ] && echo word >&2 && exit 3'
expect "... and the program's output is not mixed with exec's" '^exit code 3.word.$' cat "$folder/closed"

# --- signals and orphans
mkfifo "$folder/hold"
# shellcheck disable=SC2016
"${exec[@]}" -- bash -c 'trap "echo got it; exit 7" TERM; echo up; read -r x <>"$1"' bash "$folder/hold" \
	>"$folder/out" &
pid=$!
until_true 100 grep -q up "$folder/out"
kill -TERM "$pid"
rc=0
wait "$pid" || rc=$?
expect "SIGTERM reaches the program" 'got it' cat "$folder/out"
expect "... and exec ends with the code that the program chose" '7' echo "$rc"
# shellcheck disable=SC2016
expect "exec reaps orphans while the program runs" 'zombies 0' run -- bash -c \
	'for i in 1 2 3 4 5; do (true & exec true); done; read -r -t 0.5 <> <(:); echo "zombies $(ps -o stat= --ppid $PPID | grep -c Z)"'
# shellcheck disable=SC2016
run -- bash -c '(exec cat "$1") </dev/null >/dev/null 2>&1 & echo $! >"$2"' bash "$folder/hold" "$folder/orphan"
refuse "orphans end with the program" . kill -0 "$(cat "$folder/orphan")"
# shellcheck disable=SC2016
expect "the program inherits ignored signals and limits" 'Max open files +77 ' \
	bash -c 'ulimit -Sn 77; "$@"' bash "${exec[@]}" -- grep 'open files' /proc/self/limits

# --- an agent
cat >"$folder/agent.py" <<'PY'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(1024).decode(), flush=True)
PY
python3 "$folder/agent.py" "$HOLDFAST_AGENT_SOCKET" >>"$folder/heard" &
agent_pid=$!
until_true 100 test -S "$HOLDFAST_AGENT_SOCKET"
heard() { until_true 50 grep -Eq -- "$1" "$folder/heard" && grep -E -- "$1" "$folder/heard"; }
export PYTHONPATH=${report%/*}
cat >"$folder/train.py" <<'PY'
import select
from holdfast_report import report
for step in range(1, 101):
    select.select([], [], [], 0.002)  # a step takes a while, and queues of sockets are short
    report(step, own_ms=31, wait_ms=1.5, total=100, loss=1 / step, rank=3)
PY
expect "a program reports through exec" 'code 0' code 0 run -- python3 "$folder/train.py"
expect "the agent gets a sign of life" 'holdfast/1 attempt=[0-9]+' heard '^holdfast/1 attempt='
expect "... and the last step, though some steps were left out" 'own_us=31000 wait_us=1500 loss=0.01 rank=3 attempt=[0-9]+' \
	heard '^holdfast/1 step=100 total=100 own'
: >"$folder/heard"
expect "without exec the program can report to the agent" 'code 0' code 0 python3 "$folder/train.py"
expect "... and the agent gets the report" 'step=100' heard '^holdfast/1 step=100 total=100 rank=3 loss=0.01'
expect "without an agent the program runs as usual" 'code 0' code 0 \
	env HOLDFAST_AGENT_SOCKET="$folder/nobody" python3 "$folder/train.py"
kill -STOP "$agent_pid"
expect "with an agent that does not read the program runs as usual" 'code 0' code 0 run -- python3 "$folder/train.py"
kill -CONT "$agent_pid"

# --- hangs
cat >"$folder/hang.py" <<'PY'
import faulthandler, select
from holdfast_report import report
faulthandler.enable()
report(1)
select.select([], [], [])
PY
expect "--hang-after ends a program that stops advancing" 'code 225' code 225 \
	run --hang-after 1s -- python3 "$folder/hang.py"
expect "... and the message has the reason and the Python stack" 'given as 225 .hang.: no step was reported for 1 s.*hang.py' cat "$log"
cat >"$folder/launcher.py" <<'PY'
import subprocess, sys
for _ in range(50):  # a launcher with restarts, that calls it well in the end
    subprocess.call([sys.executable, *sys.argv[1:]])
PY
expect "--hang-after makes the ranks of a launcher print their stacks" 'code 225' code 225 \
	run --hang-after 1s -- python3 "$folder/launcher.py" "$folder/hang.py"
expect "... and the message has the stack of the rank" 'given as 225 .hang.: no step was reported for 1 s.*hang.py", line 5' cat "$log"
expect "... and the exit code of a shell around the rank does not count" 'code 225' code 225 \
	run --hang-after 1s -- bash -c "python3 $folder/hang.py; exit 0"
cat >"$folder/broken.py" <<'PY'
import select, sys
from holdfast_report import report
report(1)
print("RuntimeError: CUDA error: uncorrectable ECC error encountered", file=sys.stderr, flush=True)
select.select([], [], [])  # a collective that waits for a device that is no more
PY
expect "a hang after an ECC error has the cause device-fatal" 'code 220' code 220 \
	run --hang-after 1s -- python3 "$folder/broken.py"
cat >"$folder/alive.py" <<'PY'
import select
from holdfast_report import _path, _socket, report
report(1)
for _ in range(200):
    _socket.sendto(b"holdfast/1", _path)
    select.select([], [], [], 0.05)
PY
expect "signs of life without a step do not prevent a hang" 'code 225' code 225 run --hang-after 1s -- python3 "$folder/alive.py"
cat >"$folder/same.py" <<'PY'
import select
from holdfast_report import report
for _ in range(200):
    report(7)
    select.select([], [], [], 0.05)
PY
expect "reports of the same step do not prevent a hang" 'code 225' code 225 run --hang-after 1s -- python3 "$folder/same.py"
cat >"$folder/two.py" <<'PY'
import os, select
from holdfast_report import report
if os.fork() == 0:
    report(1, rank=1)
    select.select([], [], [])
for step in range(1, 200):
    report(step, rank=0)
    select.select([], [], [], 0.05)
PY
expect "steps of another rank do not prevent a hang" 'code 225' code 225 run --hang-after 1s -- python3 "$folder/two.py"
expect "... and the message names the rank that hangs" 'given as 225 .hang.: rank 1 reported no step for 1 s' cat "$log"
cat >"$folder/late.py" <<'PY'
import os, select
from holdfast_report import report
report(1)
select.select([], [], [], 1.9)
os.write(2, b"last words\n")  # after which exec does not look for a second
select.select([], [], [], 0.15)
os._exit(0)
PY
cat >"$folder/slow_end.py" <<'PY'
import select, signal
from holdfast_report import report
signal.signal(signal.SIGABRT, signal.SIG_IGN)
report(1)
select.select([], [], [], 2)
PY
expect "a rank that ends with code 0 before SIGKILL has not hung" 'code 0' code 0 run --hang-after 1s -- python3 "$folder/slow_end.py"
expect "a rank that ends before --hang-after has not hung" 'code 0' code 0 run --hang-after 2s -- python3 "$folder/late.py"
cat >"$folder/done.py" <<'PY'
import select
from holdfast_report import report
for step in range(1, 4):
    report(step, total=3)
select.select([], [], [], 2.5)
PY
expect "a rank that has done all of its steps does not hang" 'code 0' code 0 run --hang-after 1s -- python3 "$folder/done.py"
cat >"$folder/frozen.py" <<'PY'
import os, select, sys
from holdfast_report import report
report(1)
open(sys.argv[1] + "/frozen", "w").close()
for step in range(2, 40):
    select.select([], [], [], 0.05)
    report(step)
PY
rm -f "$folder/frozen"
run --hang-after 1s -- python3 "$folder/frozen.py" "$folder" &
pid=$!
until_true 100 test -e "$folder/frozen"
child=$(pgrep -P "$pid")
kill -STOP "$pid" "$child"
python3 -c 'import select; select.select([], [], [], 3.5)'
kill -CONT "$child" "$pid"
rc=0
wait "$pid" || rc=$?
expect "a rank that was frozen together with exec does not hang" 'code 0' echo "code $rc"
cat >"$folder/other.py" <<'PY'
import os, select
from holdfast_report import report
if os.getuid() == 0:
    os.setuid(65534)
report(1)
select.select([], [], [], 20)
PY
expect "reports of a program that changed its user count" 'code 225' code 225 \
	run --hang-after 1s -- python3 "$folder/other.py"


# --- a terminal
cat >"$folder/terminal.py" <<'PY'
"""A shell on a terminal of its own: what is typed, and what has to be read then."""
import os, pty, re, select, sys
child, fd = pty.fork()
if child == 0:
    os.environ.update(PS1="$ ", LC_ALL="C", TERM="dumb")
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = ""
def type_(text, pattern):
    global seen
    os.write(fd, text.encode())
    while not (found := re.search(pattern, seen, re.DOTALL)):
        if not select.select([fd], [], [], 60)[0]:
            sys.exit(f"{text!r}: no {pattern!r} in {seen!r}")
        seen += os.read(fd, 4096).decode(errors="replace")
    seen = seen[found.end():]
command = " ".join(sys.argv[1:])
type_("", r"\$ ")
type_(f"{command} -- sed -u s/^/got-/\n", r"got-/\r\n")
type_("one\n", r"got-one\r\n")
type_("\x1a", r"Stopped.*\$ ")
type_("echo here$((40 + 2))\n", r"here42.*\$ ")
type_("fg\n", r"got-/\r\n")
type_("two\n", r"got-two\r\n")
type_("\x1a", r"Stopped.*\$ ")
type_("bg\n", r"got-/ &.*\$ ")
type_("wait %1; jobs\n", r"Stopped.*got-/.*\$ ")  # it reads from the terminal
type_("fg\n", r"got-/\r\n")
type_("three\n", r"got-three\r\n")
type_("\x04", r"\$ ")
type_("echo code$?\n", r"code0.*\$ ")
type_(f"{command} -- sh -c 'kill -TSTP $$; exec 3</dev/tty; exit 5'\n", r"Stopped.*\$ ")
type_("bg; wait %1; echo code$?\n", r"code5.*\$ ")
type_("echo here$((40 + 3))\n", r"here43.*\$ ")
type_(f"{command} -- sh -c 'echo up; exec sleep 1000'\n", r"1000'\r\n.*up\r\n")
type_("\x03", r"\^C.*\$ ")
type_("echo code$?\n", r"code130.*\$ ")
type_("exit\n", r"exit")
PY
expect "Ctrl-Z stops exec and the program, fg and bg continue both" 'code 0' code 0 \
	python3 "$folder/terminal.py" "${exec[@]}" --termination-log "''"
# shellcheck disable=SC2016
expect "without a terminal exec does not stop with the program" 'code 6' code 6 setsid \
	"${exec[@]}" -- bash -c '(read -r -t 0.2 <> <(:); kill -CONT $$) & kill -STOP $$; exit 6'

# --- a fence
contact=$folder/contact
boot=$(cat /proc/sys/kernel/random/boot_id)
cat >"$folder/contact.py" <<'PY'
import os, sys, time
path, boot, age_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
at_ms = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000 - age_s * 1000)
with open(path + ".new", "w") as f:
    f.write(f"holdfast-contact/1 boot={boot} at_ms={at_ms}\n")
os.rename(path + ".new", path)
PY
contact() { python3 "$folder/contact.py" "$contact" "${2:-$boot}" "$1"; }
expect "without a record of contact exec does not start the program" 'code 226' code 226 run --self-fence 1s -- touch "$folder/ran"
expect "... and the message says what is missing" 'exit code 226: .*/contact cannot be read .No such file' cat "$log"
contact 30
expect "with an old record exec does not start the program" 'code 226' code 226 run --self-fence 1s -- touch "$folder/ran"
expect "... and the message has the age of the contact" 'exit code 226: no contact with the control plane for [0-9]+ s .limit 1 s.' cat "$log"
refuse "the program never ran" . ls "$folder/ran"
contact -3600
expect "with a record from the future exec does not start the program" 'code 226' code 226 run --self-fence 1s -- touch "$folder/ran"
expect "an invalid HOLDFAST_SELF_FENCE_SECONDS is refused" 'code 2' code 2 \
	env HOLDFAST_SELF_FENCE_SECONDS=soon "${exec[@]}" -- true
contact 0
: >"$folder/heard"
expect "with a record of contact exec runs the program, and ends with its code" 'code 3' code 3 \
	env HOLDFAST_SELF_FENCE_SECONDS=3600 "${exec[@]}" --termination-log "$log" -- sh -c 'exit 3'
expect "... and reports the fence to the agent" 'fence_s=3600' heard 'fence_s=3600'
# The program and its child ignore every signal that can be ignored and never end by themselves.
mkfifo "$folder/go"
cat >"$folder/stubborn.sh" <<'SH'
trap '' TERM INT HUP QUIT ABRT
sh -c 'echo $$ >"$1/other.new"; mv "$1/other.new" "$1/other"; echo >"$1/go"; exec cat "$1/hold"' sh "$1" &
setsid sh -c 'echo $$ >"$1/session.new"; mv "$1/session.new" "$1/session"; echo >"$1/go"; exec cat "$1/hold"' sh "$1" &
read -r _ <"$1/go"
until [ -s "$1/other" ] && [ -s "$1/session" ]; do read -r _ <"$1/go"; done
echo up >"$1/up"
while :; do cat "$1/hold"; done
SH
contact 0
run --self-fence 1h --keep-code -- sh "$folder/stubborn.sh" "$folder" &
pid=$!
until_true 100 test -s "$folder/up"
contact 0 another-boot
rc=0
wait "$pid" || rc=$?
expect "exec ends a program that traps signals when the node loses contact" '226' echo "$rc"
expect "... and the message has the reason" 'exit code 137, given as 226 .no-contact.: the record of contact [^ ]*/contact was written in another boot' cat "$log"
refuse "... and the program's children have ended" . kill -0 "$(cat "$folder/other")"
refuse "... and those in sessions of their own" . kill -0 "$(cat "$folder/session")"
rm -f "$folder/up" "$folder/other" "$folder/session"
contact 0
run --self-fence 1h -- sh "$folder/stubborn.sh" "$folder" &
pid=$!
until_true 100 test -s "$folder/up"
rm "$contact"
rc=0
wait "$pid" || rc=$?
expect "exec ends the program if the record disappears" '226' echo "$rc"
# A tracer stops waiting for the program, so that its parent cannot reap it.
cat >"$folder/trace.py" <<'PY'
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
ptrace = libc.ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if ptrace(0x4206, int(sys.argv[1]), None, None) != 0:  # PTRACE_SEIZE
    sys.exit(os.strerror(ctypes.get_errno()))
print("traced", flush=True)
signal.pause()
PY
cat >"$folder/seized.py" <<'PY'
import ctypes, os, signal, subprocess, sys
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, anybody
worker = subprocess.Popen(["setsid", "cat", sys.argv[1] + "/hold"])
with open(sys.argv[1] + "/up.new", "w") as f:
    f.write(f"{os.getpid()} {worker.pid}\n")
os.rename(sys.argv[1] + "/up.new", sys.argv[1] + "/up")
signal.pause()
PY
rm -f "$folder/up"
contact 0
run --self-fence 1h -- python3 "$folder/seized.py" "$folder" &
pid=$!
until_true 100 test -s "$folder/up"
read -r program worker <"$folder/up"
python3 "$folder/trace.py" "$program" >"$folder/traced" &
tracer=$!
until_true 100 grep -q traced "$folder/traced"
rm "$contact"
rc=0
wait "$pid" || rc=$?
expect "exec ends a program that another process traces" '226' echo "$rc"
expect "... and does not wait until the program is reaped" 'exit code 137, given as 226 .no-contact.: ' cat "$log"
refuse "... and the program's workers have ended" . kill -0 "$worker"
kill -KILL "$tracer"
wait "$tracer" 2>/dev/null || true
"${exec[@]}" --self-fence 1h --agent-socket "$folder/none/agent.sock" -- touch "$folder/ran" &
pid=$!
until_true 100 grep -q 'SigBlk:.*f$' "/proc/$pid/status"
kill -TERM "$pid"
rc=0
wait "$pid" || rc=$?
expect "SIGTERM ends an exec that waits for a contact" '143' echo "$rc"
refuse "... and exec has not started the program" . ls "$folder/ran"

finish
