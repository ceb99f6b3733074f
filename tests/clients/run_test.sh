#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# run_test.sh HOLDFAST: `holdfast run` from the manifest to the exit code, without a server.
set -uo pipefail
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh"
program=$(realpath "$1")
examples=$(dirname "$0")/../../examples
dir=$(mktemp -d)
export HOLDFAST_DIR=$dir/state
unset KUBECONFIG
trap '"$program" run "$dir/quick.yaml" >/dev/null 2>&1; rm -rf "$dir"' EXIT

# job FILE NAME POLICY SCOPE SCRIPT: writes a job of two ranks that run the shell script.
job() {
	cat >"$dir/$1" <<-YAML
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: $2}
	spec:
	  runPolicy: {backoffLimit: 2, recovery: {restartScope: $4}}
	  pytorchReplicaSpecs:
	    Master: &replica
	      replicas: 1
	      restartPolicy: $3
	      template:
	        spec:
	          containers:
	          - {name: pytorch, image: none, command: [/bin/sh, -c, '$5']}
	    Worker: *replica
	YAML
}
# missing FILE POLICY: writes a job of one rank whose command does not exist.
missing() {
	job "missing-$1.yaml" missing "$2" Replica x
	sed -i -e 's|/bin/sh, -c, .x.|trian.py|; s|backoffLimit: 2|backoffLimit: 0|; s|Master: &replica|Master:|; /Worker:/d' \
		"$dir/missing-$1.yaml"
}
# code WANTED COMMAND…: the command must exit with this code.
code() {
	local wanted=$1 rc=0
	shift
	"$@" >"$dir/out" 2>&1 || rc=$?
	[ "$rc" = "$wanted" ] || { echo "wanted $wanted, got $rc:"; cat "$dir/out"; return 1; }
	cat "$dir/out"
}
# begin: starts the long job in the background and waits for its worker; sets RUN_PID.
begin() {
	rm -f "$dir/out" # or what a run before it wrote is taken for this one's
	# A background command of a shell ignores SIGINT, and one of nohup SIGHUP, so reset the signals.
	env --default-signal=INT,HUP "$program" run "$dir/long.yaml" >"$dir/out" 2>&1 &
	RUN_PID=$!
	until_true 300 grep -q 'here worker' "$dir/out"
}
kill_hard() {
	kill -9 "$RUN_PID"
	wait "$RUN_PID" 2>/dev/null
}
killed_run() {
	begin || return 1
	rm -f "$dir/saved"
	kill_hard
	# A run after it leaves the ranks the time to save; the first run after their end clears up.
	"$program" run "$dir/quick.yaml" && until_true 300 no_shims &&
		"$program" run "$dir/quick.yaml" && only_what_is_kept && cat "$dir/saved" && echo nothing is left
}
# The ranks end with the run, without another command.
killed_run_ends() {
	begin || return 1
	kill_hard
	until_true 150 no_shims && "$program" runs && echo ended
}
no_shims() { ! pgrep -f "shim pod $HOLDFAST_DIR"; }
# removed_folder: the folder of the runs is removed, as by a user who makes room.
removed_folder() {
	begin || return 1
	rm -rf "$HOLDFAST_DIR/runs"
	local rc=0
	wait "$RUN_PID" || rc=$?
	cat "$dir/out"
	echo "code $rc"
	no_shims
}
# The state and the logs stay, but the pods are ended.
killed_kept_run() {
	begin || return 1
	kill_hard
	"$program" down && ! pgrep -f "shim pod $HOLDFAST_DIR" && only_what_is_kept &&
		"$program" runs && "$program" logs @1 --rank worker-0
}
# only_what_is_kept: every folder of a run has its state and logs, and nothing else.
only_what_is_kept() {
	local left
	left=$(find "$HOLDFAST_DIR/runs" -mindepth 2 -maxdepth 2 |
		grep -Ev '/(run.json|objects.json|replaced.json|steps.json|logs|ended)$')
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}
two_runs() {
	local one=0 two=0
	"$program" run "$dir/quick.yaml" >/dev/null 2>&1 &
	"$program" run "$dir/quick.yaml" >/dev/null 2>&1 || two=$?
	wait $! || one=$?
	echo "code $one $two"
}
interrupted_run() {
	begin || return 1
	kill "-${1:-INT}" "$RUN_PID"
	local rc=0
	wait "$RUN_PID" || rc=$?
	echo "code $rc"
	only_what_is_kept && "$program" why @1 && "$program" describe @1 | grep -E '^(State|Ready)'
}

# shellcheck disable=SC2016 # for the shells of the pods
{
	job quick.yaml quick Never Replica 'echo hello from $RANK of $WORLD_SIZE at $MASTER_ADDR'
	cat >"$dir/steps.py" <<-'PY'
	import select
	from holdfast_report import report
	for step in range(1, 31):
	    report(step, own_ms=31, total=30)
	    select.select([], [], [], 0.03)
	PY
	# Without network namespaces, the library for names is loaded first; it is not sanitized.
	job steps.yaml steps Never Replica 'ASAN_OPTIONS=verify_asan_link_order=0 PYTHONPATH='"$(cd "$examples/../python" && pwd)"' exec holdfast exec -- python3 '"$dir"'/steps.py'
	job flaky.yaml flaky OnFailure Replica 'mkdir '"$dir"'/tried-$RANK && { echo first run; exit 7; }; echo second run'
	sed -e 's/backoffLimit: 2/backoffLimit: 1/' -e '/Worker/d' "$dir/flaky.yaml" |
		sed -e 's/flaky/stays/' -e "s/command: .*/command: [\/bin\/sh, -c, 'exit 5']}/" >"$dir/stays.yaml"
	job fails.yaml fails Never Replica 'exit 3'
	job long.yaml long OnFailure Job 'trap "echo saved >'"$dir"'/saved; exit 1" TERM; echo here ${HOSTNAME#long-}; tail -f /dev/null & wait'
	# The first run of each rank waits, the second one ends, so the test needs no sleep.
	job torch.yaml torch Never Replica 'echo "{\"message\": {\"message\": \"ValueError: bad batch\"}}" >$TORCHELASTIC_ERROR_FILE; exit 4'
	job mine.yaml mine Never Replica 'echo $TORCHELASTIC_ERROR_FILE; exit 4'
	sed -i 's|image: none,|&env: [{name: TORCHELASTIC_ERROR_FILE, value: /my/file}],|' "$dir/mine.yaml"
	job noisy.yaml noisy Never Replica '[ $RANK = 0 ] && exec tail -f /dev/null; i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo line $i; done; printf "\033[31mred\033[0m \377 end\n"; kill -SEGV $$$$'
	job endless.yaml endless Never Replica 'head -c 20000000 /dev/zero | tr "\0" x; exit 3'
	job gang.yaml gang OnFailure Job 'mkdir '"$dir"'/was-$RANK && exec tail -f /dev/null; exit 0'
}

expect 'a job runs to its end, and its ranks know each other' \
	'(hello from 0 of 2 at quick-master-0.*job/quick succeeded|succeeded.*master-0 . hello from 0 of 2 at)' \
	"$program" run "$dir/quick.yaml"
expect 'run prints no message when it deletes the pods of an ended job' '' \
	sh -c "! '$program' run '$dir/quick.yaml' 2>&1 | grep -q 'worker-0 failed'"
expect 'from stdin' 'job/quick succeeded' sh -c "'$program' run - <'$dir/quick.yaml'"
expect 'the code is that of the rank that failed' 'job fails failed with code 3' \
	code 3 "$program" run "$dir/fails.yaml"
expect 'a failure is reported with its cause, the log and the next command' \
	'failed with code 139: worker-0 was killed by SIGSEGV [(]code 139[)].*The last lines of worker-0:.  [|] line 22.*  [|] line 40.  [|] red [?] end.*Full log:  [^ ]*/runs/noisy-[0-9]*/logs/[^ ]*/pytorch.0.log. +of all ranks, the last two starts: [^ ]*/logs.Holdfast:  no restart: under restartPolicy Never, the first failure ends the job.Next:      holdfast why @latest; holdfast logs @latest --rank worker-0' \
	code 139 "$program" run "$dir/noisy.yaml"
# shellcheck disable=SC2016 # for the inner shell
expect 'the file that the report names has the whole log' 'line 1.*line 40' \
	sh -c 'cat "$(sed -n "s/^Full log:  //p" "$1")"' sh "$dir/out"
expect 'the run is listed' '@1 +noisy +Failed .* worker-0 was killed by SIGSEGV [(]code 139[)]' "$program" runs
expect 'runs -o json lists the run' '"exitCode": 139.*"state": "Failed"' "$program" runs -o json
expect 'why and describe read a kept run' 'noisy is Failed.*evidence .*worker-0 .*State: +Failed.*noisy-worker-0' \
	sh -c "'$program' why @latest && '$program' describe noisy"
expect 'logs prints the first rank that failed' '^line 1.*line 40' "$program" logs @latest
expect 'logs prints the last lines of one rank' '^line 40' "$program" logs @1 --rank worker-0 --tail 2
refuse 'a run that does not exist is refused' "no kept run '@99'" "$program" why @99
refuse 'a kept run cannot be changed' "@1 is a kept run, which has ended: 'suspend' needs a job on a server" \
	"$program" suspend @1
expect 'run prints the exception that torchrun recorded' 'The exception that the program recorded: ValueError: bad batch' \
	code 4 "$program" run "$dir/torch.yaml"
expect 'a job can name another file for the exception' '[|] /my/file' code 4 "$program" run "$dir/mine.yaml"
expect '20 MB without a newline are cut' 'rest of the line is in the log.*  [|] x{2000} \[[0-9]+ bytes more\]' \
	code 3 "$program" run "$dir/endless.yaml"
missing never 'Never'
missing exitcode 'ExitCode'
missing onfailure 'OnFailure'
missing always 'Always'
for policy in never exitcode onfailure always; do
	# Where the kubelet would start the container again, the job may fail before the pod has a line.
	line='pod/missing-master-0 .*code=128: StartError: exec: .trian[.]py.: .*not found.*'
	case "$policy" in always) line= ;; esac
	expect "a command that does not exist is named, under $policy" \
		"${line}job/missing failed .*[(]master-0 never started: StartError: exec: .trian[.]py.: .*failed with code 128: master-0 never started: StartError: exec: .trian[.]py.: " \
		code 128 "$program" run "$dir/missing-$policy.yaml"
done
expect 'run shows the lines of a container that was started again' \
	'master-0 . first run.*master-0 . second run' \
	"$program" run "$dir/flaky.yaml"
expect 'the code of a container that the kubelet gave up is the code' 'job stays failed with code 5' \
	code 5 "$program" run "$dir/stays.yaml"
expect 'a killed rank restarts the gang once' \
	'gang-worker-0 killed.*restarting.*generation=2 restarts=1.*succeeded.*generation=2 restarts=1' \
	"$program" run "$dir/gang.yaml" --inject 'kill worker-0 at 500ms'
expect 'a time-out' 'timed out' code 124 "$program" run "$dir/long.yaml" --timeout 1s
expect 'a bad manifest: nothing is made' 'quick.yaml:3|unknown kind' \
	code 2 sh -c "sed s/PyTorchJob/TorchJob/ '$dir/quick.yaml' >'$dir/bad.yaml'; exec '$program' run '$dir/bad.yaml'"
expect 'on a terminal run shows the step of each rank' 'worker-0  [^ ]*  step [0-9]+/30 .*[(]own 31 ms[)]' \
	env TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$program" run "$dir/steps.yaml"
expect '--no-logs prints no log lines' '^[^|]*$' "$program" run "$dir/quick.yaml" --no-logs
expect 'the namespace of the manifest is made' 'job/quick succeeded' \
	sh -c "sed 's/{name: quick}/{name: quick, namespace: team-a}/' '$dir/quick.yaml' | '$program' run -"
for field in 'nodeSelector: {gpu: a100}' 'nodeName: gpu-node-7' 'schedulerName: volcano' \
	'affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: host}]}}'; do
	sed "s/ containers:/ $field\n         &/" "$dir/quick.yaml" >"$dir/elsewhere.yaml"
	for verb in run 'lint --local'; do
		# shellcheck disable=SC2086 # two words
		expect "$verb refuses a pod with $field at once" \
			"^holdfast: [^:]*elsewhere.yaml:[0-9]+: cannot run on this machine: spec.pytorchReplicaSpecs.Master..template.spec.${field%%:*}" \
			code 2 timeout 30 "$program" $verb "$dir/elsewhere.yaml"
	done
done
# An elastic job may have more pods than fit, so it is not refused.
expect 'why a pod is pending' 'pod/long-[a-z]*-0 pending: 0/1 nodes are available: 1 Insufficient cpu.*timed out after 3s' \
	code 124 sh -c "sed 's/image: none,/image: none, resources: {requests: {cpu: $(nproc)}},/; s/runPolicy:/elasticPolicy: {}\\n  &/' '$dir/long.yaml' | '$program' run - --timeout 3s"
job endlessly.yaml endlessly OnFailure Replica 'echo no such column; exit 3'
sed -i '/Worker:/d; s/backoffLimit: 2, //; s/&replica//' "$dir/endlessly.yaml"
expect 'a job that restarts without a limit says so, and why it waits, and reports the failure when it is stopped' \
	'note: no limit applies to the restarts of this job.*waiting: CrashLoopBackOff: back-off 10s before the next start, after code=3.*job endlessly was stopped while master-0 waited for its next start: master-0 exited with code 3.*[|] no such column' \
	code 124 "$program" run "$dir/endlessly.yaml" --timeout 15s
sed 's/containers:/initContainers: [{name: prep, image: none, command: [sh, -c, "echo no dataset; exit 4"]}]\n          &/' \
	"$dir/endlessly.yaml" >"$dir/init-endlessly.yaml"
expect 'an init container that fails without a limit is named, with its log when the run is stopped' \
	"master-0 pending: init container 'prep' waits: CrashLoopBackOff: back-off 10s before the next start, after code=4.*job endlessly was stopped while master-0 waited for its next start: init container 'prep' exited with code 4.*The last line of init container 'prep' of master-0:[^|]*[|] no dataset" \
	code 124 "$program" run "$dir/init-endlessly.yaml" --timeout 15s
expect 'a job that asks for more than the machine has ends at once' '^holdfast: <stdin>:[0-9]+: cannot run on this machine: each pod of Master asks for 9999 CPUs, and this machine has [0-9]+ CPUs; .holdfast run --fit. runs it without this request.$' \
	code 2 sh -c "sed 's/image: none,/image: none, resources: {limits: {cpu: 9999}},/' '$dir/quick.yaml' | '$program' run -"
expect 'a field that the kubelet refuses ends at once' '^holdfast: <stdin>:[0-9]+: cannot run on this machine: .*runtimeClassName' \
	code 2 sh -c "sed 's/ containers:/ runtimeClassName: nvidia\\n         &/' '$dir/quick.yaml' | '$program' run -"
expect 'a container without a command ends the run at once' 'cannot run on this machine: .*[.]command' \
	code 2 sh -c "sed 's/command: /args: /' '$dir/quick.yaml' | '$program' run -"
expect 'lint --local refuses a claim for GPUs that the machine lacks' 'asks for 1 nvidia.com/gpu, and this machine has none; .holdfast run --fit. ' \
	code 2 sh -c "sed 's|image: none,|&resources: {limits: {nvidia.com/gpu: 1}},|' '$dir/quick.yaml' | '$program' lint --local -"
expect 'a suspended job is refused' 'is suspended' \
	code 2 sh -c "sed 's/runPolicy: {/runPolicy: {suspend: true, /' '$dir/quick.yaml' | '$program' run -"
expect 'an unknown rank is refused' "no replica 'worker-7' in quick; it has master-0, worker-0" \
	code 2 "$program" run "$dir/quick.yaml" --inject 'kill worker-7 at 1s'
expect 'a name too long for its services is refused' "job's name is too long" \
	code 2 sh -c "sed 's/{name: quick}/{name: a2345678901234567890123456789012345678901234567890123456789}/' '$dir/quick.yaml' | '$program' run -"
expect 'run makes the name of a job with generateName' 'job/gen-[a-z0-9]* succeeded' \
	sh -c "sed 's/{name: quick}/{generateName: gen-}/' '$dir/quick.yaml' | '$program' run -"
expect 'the logs of one rank' '^[^|]*master-0 . hello from 0[^|]*$' "$program" run "$dir/quick.yaml" --ranks master-0
expect 'the job goes on when stdout cannot be written' 'code 0' sh -c "'$program' run '$dir/quick.yaml' >/dev/full; echo code \$?"
expect 'a reader that ends is no full disk' '^code 0.$' \
	sh -c "{ '$program' run '$dir/quick.yaml' | true; } 2>&1; echo code \$?"
expect 'the job runs with closed streams' 'code 0' sh -c "'$program' run '$dir/quick.yaml' <&- >&- 2>&-; echo code \$?"
expect 'the next run does not kill the ranks of a killed run, which save their work' 'saved.nothing is left' killed_run
interrupted() { # WHAT CODE SIGNAL TEXT
	expect "$1" "code $2.default/long was interrupted by $4 [0-9.a-z]* after its start, when its state was (Created|Running).State: *Interrupted.Ready: *0 of" \
		interrupted_run "$3"
}
interrupted 'a terminal that closes ends the pods' 129 HUP SIGHUP
interrupted 'SIGTERM ends the pods' 143 TERM SIGTERM
interrupted 'an interrupt ends the pods' 130 INT 'Ctrl-C .SIGINT.'
expect 'a run that is interrupted says where its logs are' 'the logs are kept: holdfast logs @latest --rank all' cat "$dir/out"
expect 'why knows the time limit' 'default/long was ended by --timeout=6s [0-9.a-z]* after its start' \
	sh -c "'$program' run '$dir/long.yaml' --timeout 6s >/dev/null 2>&1; '$program' why @1"
sed 's/image: none,/image: none, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: key, optional: true}}],/' \
	"$dir/quick.yaml" >"$dir/needs.yaml"
needs="needs.yaml: cannot run on this machine: spec.pytorchReplicaSpecs.Master..template.spec.containers.0..envFrom.0..configMapRef needs the ConfigMap 'settings', and no manifest has it"
expect 'an object that no manifest has ends the run at once' "$needs" code 2 "$program" run "$dir/needs.yaml"
expect 'lint --local says the same' "$needs" code 2 "$program" lint --local "$dir/needs.yaml"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {A: b}\n' >"$dir/settings.yaml"
expect 'the object may be in another file' 'job/quick succeeded' \
	"$program" run -f "$dir/needs.yaml" -f "$dir/settings.yaml"
sed 's/image: none,/image: none, env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: absent}}}],/' \
	"$dir/quick.yaml" >"$dir/key.yaml"
expect 'a pod that can never start ends the run' 'job quick: [a-z]*-0 can never start: .*absent' \
	code 2 "$program" run -f "$dir/key.yaml" -f "$dir/settings.yaml"
expect 'runs shows why' '@1 +quick +Failed .* can never start: .*absent' "$program" runs
expect 'why says it in one line' '^the run failed with code 2: [^:]*: [^:]*.default/quick was given up [0-9.a-z]* after its start, when its state was Created.$' "$program" why @1
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: none, command: ["true"], env: [{name: A, valueFrom: {configMapKeyRef: {name: absent, key: a}}}]}]}\n' >"$dir/pod.yaml"
expect 'a pod beside the job that can never start is named too' 'job long: p can never start: .*absent' \
	code 2 timeout 60 "$program" run -f "$dir/pod.yaml" -f "$dir/long.yaml"
expect 'the ranks of a killed run end with it' '@1 +long +Killed .*ended' killed_run_ends
expect 'a run ends when its folder is removed' "the folder of this run, '[^']*', was removed while the job ran.*code 125" \
	timeout 60 bash -c "$(declare -f begin until_true removed_folder no_shims); $(declare -p dir program); removed_folder"
expect 'down ends the pods of a killed run' "ended the pods of 1 killed 'holdfast run' process.*@1 +long +Killed .*here worker" killed_kept_run
# ---- programs, without a manifest ----
cd "$dir" || exit 1
cat >rank.py <<-'PY'
	import os, sys, signal, time
	rank = os.environ["RANK"]
	print("rank", rank, "of", os.environ["WORLD_SIZE"], "local", os.environ["LOCAL_RANK"], sys.argv[1:],
	      os.getcwd(), os.environ.get("MY_OWN"), flush=True)
	if "--kill" in sys.argv and rank == "1" and not os.path.exists("killed"):
	    open("killed", "w").close()
	    os.kill(os.getpid(), signal.SIGKILL)
	if "--kill" in sys.argv and not os.path.exists("killed"):
	    signal.pause()
	if "--raise" in sys.argv:
	    if rank == "1": raise ValueError("bad batch")
	    signal.pause()
	if "--late" in sys.argv and rank == "1":
	    while not os.path.exists("rank-0"): time.sleep(0.02)
	    time.sleep(2.5) # longer than run waits for the ends of logs
	    raise ValueError("too late")
	if "--late" in sys.argv:
	    open("rank-0", "w").close()
PY
export MY_OWN='a value'
expect 'a script runs in as many ranks as are asked for, with its own flags' \
	"ranks get folder $dir and all [0-9]+ variables.*rank 0 of 2 local 0 \\['--lr', '3', '-x'\\] $dir a value.*worker-0 . rank 1 of 2" \
	sh -c "'$program' run --nproc 2 rank.py --lr 3 -x | sort"
expect 'a module, and a command' "tool succeeded.*rank 0 of 1 local 0 \\['\\\$\\(X\\)'\\]" \
	sh -c "'$program' run -m json.tool --help && '$program' run -- python3 rank.py '\$(X)'"
expect 'a killed rank: all ranks start again' 'worker-0 failed code=137.*generation=2 restarts=1.*job/rank succeeded' \
	"$program" run --nproc 2 rank.py --kill
expect 'the log of the pod before is kept' "rank 1 of 2 local 0 \\['--kill'\\]" "$program" logs @1 --rank worker-0 --previous
expect 'an exception ends the program' 'code 1: worker-0 exited with code 1.*ValueError: bad batch' \
	code 1 "$program" run --nproc 2 rank.py --raise
expect '--max-restarts restarts it' 'restarts=1.*code 1: worker-0 exited with code 1' \
	code 1 "$program" run --nproc 2 --max-restarts 1 rank.py --raise
expect 'a rank that fails after rank 0 counts' \
	'rank 0 has succeeded; waiting for the other ranks, worker-0 among them.*code 1: worker-0 exited with code 1 after rank 0 had succeeded.*ValueError: too late' \
	code 1 "$program" run --nproc 2 rank.py --late
expect 'the run is listed as a failure' '@1 +rank +Failed .* after rank 0 had succeeded' "$program" runs
expect 'why agrees' '^the run failed with code 1: worker-0 exited with code 1 after rank 0 had succeeded' "$program" why @1
job kills.yaml kills Never Replica 'sleep 118231'
sed -i 's/backoffLimit: 2, recovery: {restartScope: Replica}/backoffLimit: 0/' "$dir/kills.yaml"
code 137 timeout 60 "$program" run "$dir/kills.yaml" --inject 'kill worker-0 at 1s' >/dev/null
expect 'why names the injection' "worker-0 got SIGKILL from --inject of 'holdfast run'.*application: --inject of 'holdfast run' sent a signal" "$program" why @1
job crowd.yaml crowd Never Replica 'echo done'
sed -i 's/Worker: [*]replica/Worker: {replicas: 1, template: {spec: {initContainers: [{name: slow, image: none, command: [tail, -f, \/dev\/null]}], containers: [{name: pytorch, image: none, command: ["true"]}]}}}/' \
	"$dir/crowd.yaml"
expect 'a job that succeeded without all ranks says so' 'warning: 1 of 2 ranks never started: the job succeeded without them' \
	timeout 60 "$program" run "$dir/crowd.yaml"
expect 'why says so too' '^1 of 2 ranks never started' "$program" why @1
expect 'the job of a script can be printed, checked and run' "job.yaml: PyTorchJob 'rank' is valid.*rank 1 of 3 local 0 \\['--a'\\]" \
	sh -c "'$program' run --nproc 3 rank.py --a --print-job >job.yaml && '$program' lint job.yaml && '$program' run job.yaml"
expect 'a manifest gets the folder, and the variables that are named' \
	"ranks get folder $dir and MY_OWN.*$dir a value" "$program" run job.yaml --pass-env 'MY_*'
expect '--pass-env and -e set variables of a manifest' "$dir third" "$program" run job.yaml --pass-env 'MY_*' -e MY_OWN=third
# ---- the network ----
# Rank 1 sends a word to rank 0, and each rank prints its network namespace.
cat >meet.py <<-'PY'
	import os, socket, time
	address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
	if os.environ["RANK"] == "0":
	    with socket.create_server(("", address[1])) as server:
	        print("rank 1 says", server.accept()[0].recv(9).decode(), "on the usual port" * (address[1] == 23456))
	else:
	    for _ in range(200):
	        try:
	            socket.create_connection(address).sendall(b"hello")
	            break
	        except OSError:
	            time.sleep(0.05)
	print("in", os.readlink("/proc/self/ns/net"), flush=True)
PY
mkdir bare
ln -s "$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')" bare/python3
for tool in sh sleep getent grep sed printf seq; do
	ln -s "$(type -P "$tool")" bare/ # the init container of a manifest needs them
done
net="in net:.$(readlink /proc/self/ns/net | tr -dc 0-9)]"
if "$program" lint --local quick.yaml 2>&1 | grep -q 'pods get no namespaces'; then
	own=
else
	own="note: ranks share this machine's network, so a port that they open is open here"
fi
expect 'without a way to the internet a program uses the network of the machine, with a port of its own' \
	"${own:+$own, because slirp4netns is not installed; install it.*}rank 1 says hello .master-0 . $net" \
	sh -c "PATH='$dir/bare' '$program' run --nproc 2 meet.py"
expect '--network host does so when it is asked' "${own:+$own .--network host.*}$net" \
	"$program" run --network host --nproc 2 meet.py
expect 'and with a manifest' "${own:+$own .--network host.*}job/quick succeeded" "$program" run --network host quick.yaml
[ -z "$own" ] || expect 'a manifest keeps the networks of its pods, and the missing internet is said' \
	'note: pods reach each other but no other network: slirp4netns is not installed; install it, or use this machine.s network [(]--network host' \
	sh -c "PATH='$dir/bare' '$program' run quick.yaml"
refuse_script() { # WHAT PATTERN WORD…: exit code 2 and one line
	expect "$1" "^holdfast: $2.See 'holdfast run --help'..\$" code 2 "$program" run "${@:3}"
}
: >empty.py
printf 'x = "\377"\n' >latin.py
mkdir folder.py
refuse_script 'a script that is missing' "the script 'nosuch.py' cannot be read: No such file or directory" nosuch.py
refuse_script 'a script that is empty' "the script 'empty.py' is empty" empty.py
refuse_script 'a script that is not UTF-8' "the script 'latin.py' is not UTF-8, and [^:]*" latin.py
refuse_script 'a script that is a folder' "'folder.py' is a folder, not a script" folder.py
refuse_script 'a program that is missing' "no program 'nosuch' is in PATH" -- nosuch
refuse_script 'a program that is not executable' "the program './rank.py' cannot be started: it is not executable .chmod [+]x." -- ./rank.py
printf 'echo\n' >noline.sh
printf '#!/bin/sh\r\n' >windows.sh
printf '#!/nowhere/sh\n' >interpreter.sh
cp noline.sh noexec.sh
chmod +x noline.sh windows.sh interpreter.sh
refuse_script 'a script without the right to execute it' "'./noexec.sh' is a program and is not executable: chmod [+]x ./noexec.sh, .*" ./noexec.sh
refuse_script 'a script without an interpreter' "the program './noline.sh' cannot be started: its first line names no interpreter; .*" ./noline.sh
refuse_script 'a script with the ends of lines of Windows' "the program './windows.sh' cannot be started: its lines end with CRLF.*" windows.sh
refuse_script 'a script with an interpreter that is missing' "the program './interpreter.sh' .*names the interpreter '/nowhere/sh': No such file or directory" -- ./interpreter.sh
expect 'a flag behind the script, and a variable that Holdfast sets, are noted' \
	"note: --nproc stands behind 'rank.py', so it is an argument of the program.*note: --env RANK has no effect: Holdfast sets this variable.*rank 0 of 1" \
	"$program" run -e RANK=7 rank.py --nproc 2
refuse_script "torchrun's flag for the number of ranks" "unknown flag '--nproc_per_node': --nproc N starts N ranks" --nproc_per_node 2 rank.py
refuse_script "torchrun's flag for the number of machines" "unknown flag '--nnodes': leave it out, .*--nproc N starts N ranks" --nnodes=1 rank.py
refuse_script 'a command without -- before it' "'python3' is a program in PATH and not a file of this folder: write -- before it, as in 'holdfast run -- python3 ...'" python3 rank.py
refuse_script 'a launcher without -- before it' "'sh' is a program in PATH .*as in 'holdfast run -- sh ...'" sh --nproc 2
expect 'a number as the namespace is noted' 'note: -n 2 is a namespace; --nproc 2 starts 2 ranks' "$program" run -n 2 rank.py
refuse_script 'too many ranks' "--nproc 111: a node takes 110 pods, as in Kubernetes; --max-pods 111 raises the limit" --nproc 111 rank.py
refuse_script 'flags of programs with a manifest' '--nproc is for programs[^:]*' --nproc 2 job.yaml
refuse_script 'a wrong variable' "--env: '1X' cannot name a variable; write NAME=VALUE" -e 1X=2 rank.py
expect 'variables of the command line are in the printed job' 'name: SEED[^:]*value: "?7"?' \
	"$program" run -e SEED=7 --print-job rank.py
expect 'a launcher does not name the job' 'name: rank.spec' \
	"$program" run --print-job -- python3 -u rank.py
printf 'd = {}\nd["x"]\n' >bug.py
expect 'runs and why name the exception, and describe has the last events' \
	"master-0 exited with code 1: KeyError: 'x'.the exception of master-0: KeyError: 'x'.*ExitedWithCode.*PyTorchJobFailed" \
	sh -c "'$program' run bug.py >/dev/null 2>&1; '$program' runs | head -2; '$program' why @1; '$program' describe @1"
sed 's/containers:/initContainers: [{name: fetch, image: none, command: [sh, -c, "echo no network; exit 5"]}]\n&/' "$dir/quick.yaml" >"$dir/init.yaml"
python3 - "$dir/init.yaml" <<-'PY'
	import re, sys
	text = open(sys.argv[1]).read()
	open(sys.argv[1], "w").write(re.sub(r"( *)(initContainers.*\n)containers", r"\1\2\1containers", text))
PY
expect 'the log of a failed init container is shown' \
	"0 fetch [|] no network.*code 5: [a-z]*-0 never started: .*line of init container 'fetch' of [a-z]*-0:.*no network.*Full log: .*/fetch.0.log.*logs @latest --rank [a-z]*-0 -c fetch" \
	code 5 "$program" run "$dir/init.yaml"
followed_run() {
	"$program" run follow.py >/dev/null 2>&1 &
	until_true 150 has_line
	"$program" logs @latest --rank all -f
	wait $!
}
has_line() { "$program" logs @latest --rank all 2>&1 | grep -q 'line 1'; }
printf 'import time\nfor i in range(5):\n    print("line", i, flush=True)\n    time.sleep(0.7)\n' >follow.py
expect 'logs -f follows a run that goes on' 'line 0.*line 4.*follow is Succeeded' followed_run
# ---- programs that behave badly ----
cat >forks.py <<-'PY'
	import os, time
	if os.fork() == 0:
	    os.setsid()
	    time.sleep(118229)
	print("parent leaves", flush=True)
PY
cat >escapes.py <<-'PY'
	import sys
	sys.stdout.write("\033]0;title\007\033[2J\033[31mred\033[0m\x00nul\x9b1m\n")
	sys.exit(3)
PY
cat >closes.py <<-'PY'
	import os
	os.close(1); os.close(2); os._exit(4)
PY
cat >deaf.py <<-'PY'
	import signal
	for number in signal.SIGTERM, signal.SIGINT: signal.signal(number, signal.SIG_IGN)
	print("deaf", flush=True)
	while True: signal.pause()
PY
cat >early.py <<-'PY'
	raise SystemExit(0)
PY
cat >fills.py <<-'PY'
	import os
	with open(os.environ["FILLS"], "wb", 0) as file:
	    while True: file.write(bytes(1 << 16))
PY
cat >full.py <<-'PY'
	import os, time
	print("begin", flush=True)
	time.sleep(0.5)
	try:
	    with open(os.environ["FILLS"], "wb", 0) as file:
	        while True: file.write(bytes(1 << 12))
	except OSError:
	    print("still on the screen", flush=True)
PY
cat >talks.py <<-'PY'
	import os
	print("begin", flush=True)
	for size in 1 << 16, 1 << 9:
	    try:
	        with open(os.environ["FILLS"] + str(size), "wb", 0) as file:
	            while True: file.write(bytes(size))
	    except OSError:
	        pass
	for i in range(3000):
	    print("number", i, "x" * 100, flush=True)
PY
cat >crashes.py <<-'PY'
	raise SystemExit(3)
PY
cat >ticks.py <<-'PY'
	import signal
	print("tick", flush=True)
	signal.pause()
PY
leaves_no_child() { "$program" run forks.py && ! pgrep -f "sleep.118229|$dir/forks.py|forks.py" && echo none left; }
# A tmpfs of 20 MiB as the disk, if this machine allows a mount.
on_small_disk() {
	mkdir -p small
	if ! unshare -rm true 2>/dev/null; then
		echo not tried
		return
	fi
	# shellcheck disable=SC2016 # for the shell inside
	FILLS=$dir/small/big HOLDFAST_DIR=$dir/small/state unshare -rm sh -c \
		'mount -t tmpfs -o size=20m,"$1" none small && shift && "$@" 2>&1; echo "code $?"' sh "$@"
}
deaf_run() {
	rm -f out
	env --default-signal=INT "$program" run deaf.py >out 2>&1 &
	local pid=$! rc=0
	until_true 300 grep -q '[|] deaf' out
	kill -INT "$pid"
	until_true 100 grep -q 'waiting up to ' out
	kill -INT "$pid"
	wait "$pid" || rc=$?
	cat out
	echo "code $rc"
	! pgrep -f "$dir/deaf.py" && only_what_is_kept
}
delayed_run() {
	rm -f out
	env --default-signal=INT "$program" run --max-restarts 3 crashes.py >out 2>&1 &
	local pid=$!
	until_true 300 grep -q 'restarting in ' out
	# The state of the run is saved once a second.
	until_true 100 sh -c "'$program' why @1 2>/dev/null | grep -q ' are created in '"
	"$program" why @1
	kill -INT "$pid"
	wait "$pid"
	cat out
}
follow_run() {
	rm -f out
	env --default-signal=INT "$program" run ticks.py >out 2>&1 &
	local pid=$!
	until_true 300 grep -q '[|] tick' out
	until_true 100 sh -c "'$program' logs @1 2>/dev/null | grep -q tick"
	"$program" logs -f @1 >followed 2>&1 &
	local follower=$!
	until_true 100 grep -q tick followed
	kill -INT "$pid"
	wait "$pid"
	wait "$follower"
	cat followed
}
expect 'processes that a program left behind end with the program' '(forks succeeded.*none left|none left.*forks succeeded)' leaves_no_child
expect 'terminal escapes reach no terminal' '[|] rednul1m.*  [|] rednul1m.*[^0-9]0.$' sh -c "'$program' run escapes.py >out 2>&1; cat out; LC_ALL=C tr -dc '\033\000\007\233' <out | wc -c"
expect 'a program that closes its output' 'code 4: master-0 exited with code 4.master-0 printed nothing' code 4 "$program" run closes.py
expect 'a program that ends before it reports' 'job/early succeeded' "$program" run early.py
expect 'a program that ignores SIGTERM is killed by the second interrupt' \
	'stopping: .*waiting up to [0-9]+ s for master-0 to end; Ctrl-C again kills it.*code=137 .*code 130' deaf_run
expect 'a delayed restart says for how long, and why too' \
	'application budget: [23] of 3 used.[ 0-9:]*next +1 pod.s. are created in .*job/crashes restarting in [0-9]+ s .restart 2 of 3.*job crashes was stopped while master-0 waited for its next start: master-0 ' delayed_run
expect 'logs -f of a run elsewhere follows it to its end' 'tick.*ticks was interrupted by Ctrl-C .SIGINT.' follow_run
expect 'a program that fills the disk' \
	"^(not tried.?|.*The disk of $dir/small/state/runs/fills-[0-9]* is full, so output of master-0 may be missing; make room there.*[|] OSError: .Errno 28. No space left on device.*code 1.*@1 +fills +Failed.*)\$" \
	on_small_disk rw sh -c "'$program' run fills.py; echo code \$?; '$program' runs"
expect 'what a program prints on a full disk is on the screen, and one warning names the disk' \
	"^(not tried.?|.*note: output of pod default/talks-master-0 cannot be written to its log, and is not kept .no room on the disk of $dir/small/state[^ ]*..*lines 3000 notes 0.*code 0.*)\$" \
	on_small_disk rw sh -c "'$program' run talks.py >out; grep note: out; echo lines \$(grep -c '[|] number' out) notes \$(grep -c '[|] holdfast:' out)"
expect 'a run whose disk was full at its end is listed with its end' \
	'^(not tried.?|.*[|] still on the screen.*@1 +full +Succeeded.*code 0.*)$' \
	on_small_disk rw sh -c "'$program' run full.py; '$program' runs"
expect 'a state directory that is read-only' \
	"^(not tried.?|holdfast: this run is not kept: .*Read-only file system.*job/early succeeded.*code 0.*)\$" \
	on_small_disk ro "$program" run early.py
expect 'a state directory on a full disk' \
	"^(not tried.?|holdfast: this run is not kept: .*its disk has less than 16 MiB left.*job/early succeeded.*code 0.*)\$" \
	on_small_disk size=8m "$program" run early.py
expect 'describe prints a kept run as objects' '"kind": "PyTorchJob".*"kind": "Pod".*"kind": "List"' \
	"$program" describe @latest -o json
expect 'more ranks than this machine runs at once' '^20.$' \
	sh -c "'$program' run --nproc 20 --ranks all -- sh -c 'echo rank \$RANK' | grep -c '[|] rank'"

# The torchrun of Debian 12 fails, so pods get one that works.
if [ -f "$(command -v torchrun)" ] && grep -q torch==1.13 "$(command -v torchrun)"; then
	expect 'run repairs the torchrun of Debian, and prints that' \
		'the torchrun of PyTorch 1.13 fails with Python 3.11, so Holdfast mends it for this pod.* 1 of 2 local 1' \
		"$program" run -- torchrun --nproc_per_node 2 rank.py
	# The command that the Python SDK makes of a train_func.
	cat >train_func.yaml <<-'YAML'
	apiVersion: kubeflow.org/v1
	kind: PyTorchJob
	metadata: {name: func}
	spec:
	  nprocPerNode: "1"
	  pytorchReplicaSpecs:
	    Master: &replica
	      replicas: 1
	      template:
	        spec:
	          containers:
	          - name: pytorch
	            image: none
	            command:
	            - bash
	            - -c
	            - |
	              program_path=$(mktemp -d)
	              read -r -d '' SCRIPT << EOM

	              import torch
	              import torch.distributed as dist
	              dist.init_process_group("gloo")
	              x = torch.ones(1)
	              dist.all_reduce(x)
	              dist.barrier()
	              print("sum", x.item(), "of", dist.get_world_size(), flush=True)

	              EOM
	              printf "%s" "$SCRIPT" > "$program_path/ephemeral_script.py"
	              torchrun "$program_path/ephemeral_script.py"
	    Worker: *replica
	YAML
	expect "so the SDK's train_func works" 'master-0 [|] sum 2.0 of 2' "$program" run train_func.yaml
fi
cd "$OLDPWD" || exit 1

# ---- several documents and files ----
cat >"$dir/beside.yaml" <<-'YAML'
	{apiVersion: v1, kind: ConfigMap, metadata: {name: script}, data: {go.sh: echo from the map $FROM}}
	---
	apiVersion: v1
	kind: List
	items:
	- {apiVersion: v1, kind: Secret, metadata: {name: words}, stringData: {FROM: and the secret}}
	- {apiVersion: apps/v1, kind: Deployment, metadata: {name: other}}
YAML
job several.yaml several Never Replica 'sh /w/go.sh'
sed -i -e 's|image: none,|&envFrom: [{secretRef: {name: words}}], volumeMounts: [{name: w, mountPath: /w}],|' \
	-e 's|^\( *\)containers:|\1volumes: [{name: w, configMap: {name: script}}]\n&|' "$dir/several.yaml"
{ cat "$dir/beside.yaml"; echo ---; cat "$dir/several.yaml"; } >"$dir/all.yaml"
expect 'the other objects of the file are created first' \
	"Deployment 'other' is of a kind that 'holdfast run' cannot create.*master-0 . from the map and the secret" \
	"$program" run "$dir/all.yaml"
expect 'the objects of several files are created' 'from the map and the secret' \
	"$program" run -f "$dir/beside.yaml" -f "$dir/several.yaml"
expect 'objects from standard input are created in another namespace' 'from the map and the secret' \
	sh -c "'$program' run - -n team-b <'$dir/all.yaml'"
expect 'two jobs are too many' "2 jobs are in the manifest, 'quick' and 'fails' among them" \
	code 2 "$program" run -f "$dir/quick.yaml" -f "$dir/fails.yaml"
expect 'no job is too few' 'no job is in the manifest' code 2 "$program" run "$dir/beside.yaml"
expect 'run names the object that the API refuses' "ConfigMap 'Not_a_name' of the manifest is refused: .*metadata.name" \
	code 1 sh -c "sed 's/{name: script}/{name: Not_a_name}/' '$dir/all.yaml' | '$program' run -"
expect 'lint checks the jobs, and names other objects' "ConfigMap 'script' is not a training job.*Deployment 'other' is of a kind.*PyTorchJob 'several' is valid" \
	"$program" lint "$dir/all.yaml"

expect 'two runs of one name work at once' 'code 0 0' two_runs
expect 'the last 20 runs are kept' '^20.$' sh -c "'$program' run '$dir/quick.yaml' >/dev/null; ls '$HOLDFAST_DIR/runs' | wc -l"
expect 'a state directory that is a file is one line, and the run goes on' \
	"^holdfast: this run is not kept: '[^']*/file' cannot be used: .*job/quick succeeded" \
	sh -c "touch '$dir/file'; HOLDFAST_DIR='$dir/file' '$program' run '$dir/quick.yaml'"
expect 'a failure of a run that is not kept names no log' 'code 3: .*Holdfast:  no restart: under restartPolicy Never, [^:]*$' \
	code 3 env HOLDFAST_DIR="$dir/file" "$program" run "$dir/fails.yaml"
# Other programs of this user may be running there.
refuse 'nothing of a run that is not kept is left' '^.?$' sh -c "ls /tmp/holdfast-$(id -u)/runs | grep -E '^(quick|fails)-'"
expect 'the example is valid' "PyTorchJob 'hello' is valid" "$program" lint "$examples/hello-2rank.yaml"
finish
