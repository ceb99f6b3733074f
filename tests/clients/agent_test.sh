#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
#
# agent_test.sh HOLDFAST: runs `holdfast agent` on the node of an embedded plane, with a FIFO as the
# kernel log. A log line becomes a Node condition and a DeviceHealth, survives a kill of the agent, and is
# shown over HTTP. A probe that cannot work reports the reason.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/clients/lib.sh
. "$here/lib.sh"

holdfast=$1
folder=$(mktemp -d)
plane=$folder/plane
agent_pid=
cleanup() {
	[ -z "$agent_pid" ] || kill -9 "$agent_pid" 2>/dev/null || true
	"$holdfast" down --data-dir "$plane" --timeout 60s >/dev/null 2>&1 || true
	rm -rf "$folder"
}
trap cleanup EXIT

agent() {
	"$holdfast" agent --node-name "$node" --kmsg "$folder/kmsg" --state-dir "$folder/state" \
		--nvml "$folder/no-such-library.so" --kubelet-socket "$folder/no-such-socket" \
		--sysfs "$folder/sys" --proc "$folder/proc" --report-socket "$folder/reports" --listen 127.0.0.1:0 "$@" 2>>"$folder/agent.log" &
	agent_pid=$!
	until_true 300 ask /healthz || { cat "$folder/agent.log" >&2; return 1; }
}
port() { sed -n 's/.*"msg":"Starting".*"port":"\([0-9]*\)".*/\1/p' "$folder/agent.log" | tail -n 1; }
ask() { curl -fsS --max-time 10 "http://127.0.0.1:$(port)$1"; }
health() { api "/apis/holdfast.dev/v1alpha1/devicehealths/$node"; }
has() { local pattern=$1; shift; "$@" | tr -d ' \n' | grep -Eq -- "$pattern"; }
condition() { # TYPE STATUS
	api "/api/v1/nodes/$node" | tr -d ' \n' | sed 's/},{/}\n{/g' | grep "\"type\":\"$1\"" |
		grep -q "\"status\":\"$2\""
}
events() { api /api/v1/events; }

mkdir -p "$folder/sys/bus/pci/devices" "$folder/sys/class/infiniband" "$folder/proc/sys/kernel/random"
cp /proc/sys/kernel/random/boot_id "$folder/proc/sys/kernel/random"
mkfifo "$folder/kmsg"
start "$holdfast" "$plane"
until_true 300 has '"kind":"Node"' api /api/v1/nodes
until_true 300 has '"name":"[^"]*"' api /api/v1/nodes
node=$(api /api/v1/nodes | tr -d ' \n' | sed -n 's/.*"metadata":{[^}]*"name":"\([^"]*\)".*/\1/p')

agent
until_true 300 ask /readyz
expect "/readyz answers ok when the agent has written the node's objects" ok ask /readyz
expect "the page tells why a detector is off" "ecc +Off: .*no-such-library" ask /
expect "DeviceHealth lists the detector too" '"name": *"ecc"' health
expect "the log tells that there is no journal" "There is no journal yet" cat "$folder/agent.log"
expect "the Node has the condition before any evidence" '"AcceleratorUnhealthy"' api "/api/v1/nodes/$node"

echo "NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus." >"$folder/kmsg"
until_true 100 condition AcceleratorUnhealthy True || true
expect "a line of the kernel's log changes a condition of the Node" "" condition AcceleratorUnhealthy True
until_true 100 has '"state":"Unhealthy"' health || true
expect "DeviceHealth lists the device of the line" '0000:1a:00.0' health
expect "DeviceHealth has the text of the line" 'fallen off the bus' health
until_true 100 has DeviceFault events || true
expect "the line causes an event" 'DeviceFault' events
expect "the page shows the device as Unhealthy" '0000:1a:00.0 +Unhealthy' ask /
expect "the metrics show the device as Unhealthy" 'holdfast_agent_device_state\{device="0000:1a:00.0",state="Unhealthy"\} 1' \
	ask /metrics
expect "the metrics count the change from Unknown to Unhealthy" 'transitions_total\{from="Unknown",to="Unhealthy"\} 1' ask /metrics
expect "/status prints DeviceHealth" '"bootID"' ask /status

kill -9 "$agent_pid"
wait "$agent_pid" 2>/dev/null || true
agent
until_true 300 ask /readyz
expect "after kill -9 the agent still knows the fault" '0000:1a:00.0 +Unhealthy' ask /
expect "after kill -9 the Node's condition is still True" "" condition AcceleratorUnhealthy True

# Starts a training process in a control group like that of a kubelet's pod.
create_pod() {
	curl -sS --max-time 20 --cacert "$plane/ca.pem" -H "Authorization: Bearer $(cat "$plane/token")" \
		-H 'Content-Type: application/json' -d '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"rank-0"},
		"spec":{"containers":[{"name":"c","image":"none","command":["/bin/sh","-c","exec tail -f /dev/null"]}]}}' \
		"$(sed -n 's/ *server: //p' "$KUBECONFIG")/api/v1/namespaces/default/pods"
}
uid=$(create_pod | tr -d ' \n' | sed -n 's/.*"uid":"\([^"]*\)".*/\1/p')
cat >"$folder/train.py" <<'PY'
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
own = pathlib.Path(sys.argv[2], str(os.getpid()))
own.mkdir()
(own / "cgroup").write_text(f"0::/kubepods/besteffort/pod{sys.argv[3]}/c\n")
from holdfast_report import report
report(41, own_ms=31, total=100, rank=0)
PY
until_true 100 has '"nodeName":"[^"]+"' api /api/v1/namespaces/default/pods/rank-0
HOLDFAST_AGENT_SOCKET=$folder/reports python3 "$folder/train.py" "$here/../../python" "$folder/proc" "$uid"
until_true 150 has '"pod":"rank-0"' health || true
expect "DeviceHealth lists the rank of a process that reports" '"pod": *"rank-0"' health
expect "the page shows the rank's step" 'default/rank-0 rank 0 +Advancing +step 41' ask /
HOLDFAST_AGENT_SOCKET=$folder/reports python3 "$folder/train.py" "$here/../../python" "$folder/proc" none
until_true 50 has 'reports_total{result="unknown"}1' ask /metrics || true
expect "a report of a process in no pod is counted as unknown" 'reports_total.result="unknown". 1' ask /metrics

# holdfast exec connects beside the socket for reports. A process that is in no pod gets no answer, and CMD starts.
expect "the socket for holdfast exec lies beside that for reports" "" test -S "$folder/exec.sock"
expect "holdfast exec runs a process in no pod as without an agent" 'ran' env HOLDFAST_AGENT_SOCKET="$folder/reports" \
	"$holdfast" exec --termination-log '' -- echo ran

echo "6,1,1,-;nothing" >"$folder/kmsg"
echo "12,9,1,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus." >"$folder/kmsg"
until_true 100 has 'holdfast_agent_kmsg_forged_total1' ask /metrics || true
expect "a line that a process wrote is dropped and counted" 'kmsg_forged_total 1' ask /metrics
expect "records of the log that were overwritten are counted" 'kmsg_lost_total 7' ask /metrics
kill -9 "$agent_pid"
wait "$agent_pid" 2>/dev/null || true
agent_pid=
printf 'x' >>"$folder/state/journal"
agent
until_true 300 ask /readyz
expect "the log reports a journal that was changed" 'checksum of the file is wrong' cat "$folder/agent.log"
kill -9 "$agent_pid"
wait "$agent_pid" 2>/dev/null || true
agent_pid=

# A GPU behind a PCIe port: kernel lines about the port count for the GPU, also lines older than the first probe.
gpu() { # PORT ADDRESS
	local place=devices/pci0000:9b/$1/$2
	mkdir -p "$folder/sys/$place" "$folder/sys/bus/pci/drivers/nvidia"
	echo 0x10de >"$folder/sys/$place/vendor"
	echo 0x030200 >"$folder/sys/$place/class"
	ln -s ../../../../bus/pci/drivers/nvidia "$folder/sys/$place/driver"
	ln -s "../../../$place" "$folder/sys/bus/pci/devices/$2"
}
gpu 0000:9c:01.0 0000:9d:00.0
gpu 0000:9c:02.0 0000:9e:00.0
agent
cat >"$folder/kmsg" <<'LINES'
pcieport 0000:9c:01.0: AER: Uncorrected (Fatal) error received: 0000:9c:01.0
nvidia 0000:9d:00.0: AER: can't recover (no error_detected callback)
pcieport 0000:9c:01.0: AER: device recovery failed
NVRM: nvAssertOkFailedNoLog: Assertion failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from a @ b.c:1
[  100.123456] NVRM: The NVIDIA GPU 0000:1e:00.0
               NVRM: (PCI ID: 10de:2330) installed in this system has
               NVRM: fallen off the bus and is not responding to commands.
LINES
until_true 300 has '0000:9d:00.0Unhealthy' ask / || true
expect "a fatal error of the port above a GPU makes the GPU Unhealthy" '0000:9d:00.0 +Unhealthy' ask /
expect "the page names the port of the error" 'aer 2 port 0000:9c:01.0: reboot' ask /
expect "a GPU below another port does not become Unhealthy" '0000:9e:00.0 +(Unknown|Healthy)' ask /
until_true 100 has '0000:1e:00.0Unhealthy' ask / || true
expect "a further line of a record, which dmesg indents, is read" '0000:1e:00.0 +Unhealthy' ask /
rules_hash() { ask /status | tr -d ' \n' | sed -n 's/.*"rulesHash":"\([0-9a-f]*\)".*/\1/p'; }
built_in=$(rules_hash)
kill -9 "$agent_pid"
wait "$agent_pid" 2>/dev/null || true
# The rules table of docs/reference/config.md.
sed -n '/^{"rules": \[/,/\]}/p' "$here/../../docs/reference/config.md" >"$folder/rules.json"
agent --rules "$folder/rules.json"
until_true 300 ask /readyz
expect "a table of rules from a file has a hash" "^[0-9a-f]{16}" rules_hash
expect "DeviceHealth has the hash of the table" "$(rules_hash)" health
expect "the hash differs from that of the built-in table" "" test "$(rules_hash)" != "$built_in"
echo "NVRM: Xid (PCI:0000:1c:00): 62, pid=1, x" >"$folder/kmsg"
until_true 100 has 'xid62:unrated' ask / || true
expect "a code without a rule in the table is recorded and acts on nothing" 'xid 62: unrated, record' ask /

# A second agent at the same time, as after a forced deletion of the first one's pod.
first=$agent_pid
starts() { grep -c '"msg":"Starting"' "$folder/agent.log"; }
more_starts() { [ "$(starts)" -gt "$started" ]; }
started=$(starts)
agent
until_true 100 grep -q 'Another agent uses this state directory' "$folder/agent.log" || true
expect "a second agent waits, and logs that it waits" 'waiting until it ends' cat "$folder/agent.log"
kill -TERM "$first"
expect_end "SIGTERM ends the first agent with code 0" "$first"
until_true 300 more_starts || true
until_true 300 ask /readyz
HOLDFAST_AGENT_SOCKET=$folder/reports python3 "$folder/train.py" "$here/../../python" "$folder/proc" "$uid"
until_true 100 has 'default/rank-0rank0' ask / || true
expect "training processes then report to the second agent" 'default/rank-0 rank 0 +Advancing +step 41' ask /
rm "$folder/reports"
until_true 200 test -S "$folder/reports" || true
expect "the agent creates a removed socket again" "" test -S "$folder/reports"
kill -TERM "$agent_pid"
wait "$agent_pid" 2>/dev/null || true
agent_pid=
refuse "an agent that ends removes its socket for reports" . ls "$folder/reports"
refuse "an agent that ends removes its socket for holdfast exec" . ls "$folder/exec.sock"
refuse "a file without rules is refused" "cannot use the rules" \
	"$holdfast" agent --rules "$folder/agent.log" --node-name x
expect "agent --help names the DaemonSet" "DaemonSet" "$holdfast" agent --help

# One look without a server: a check per source.
once() {
	"$holdfast" agent --probe-once --kmsg "$folder/kmsg" --sysfs "$folder/sys" --proc "$folder/proc" \
		--nvml "$folder/no-such-library.so" --kubelet-socket "$folder/no-such-socket" "$@"
}
expect "--probe-once: a readable kernel log is ok" 'ok +kernel-log ' once
expect "--probe-once: a missing kubelet fails, with the path of its socket" \
	'fail +holders .*no-such-socket.*; missing: .*--kubelet-socket' once
expect "--probe-once prints details after the checks" '# NVML' once
expect "--probe-once prints the checks as JSON" '"status": "fail"' once -o json
json_has_details() { once -o json | grep -q '# NVML'; }
refuse "the JSON of --probe-once has no details" "" json_has_details
refuse "-o needs --probe-once" 'only with --probe-once' "$holdfast" agent -o json --node-name x
finish
