# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What the agent's container needs of the node: each right is taken away, and the detectors that are lost are named."""

import copy
import json
import os
import re
import subprocess

from kit import build, image
from kit.agent import COUNT, SYSFS, address
from kit.check import Skip, equal, want
from parts import incluster

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside"]
MINUTES = 6
POD_GROUPS = True  # the name of a pod that reports is in its control group

AGENT, NS = incluster.AGENT, "needs"
# What the agent does, as this part sees it.
KERNEL_LOG = {"xid", "sxid", "aer", "mlx5"}
DRIVER = {"ecc", "recovery", "throttle", "clock", "nvlink", "replay"}
BUS = {"buslost", "pcie"}
KUBELET = {"plugin", "count", "holders"}
STEPS = {"steps"}
ALL = KERNEL_LOG | DRIVER | BUS | KUBELET | STEPS | {"driver"}
SYSLOG, SYS_ADMIN = 34, 21  # numbers of capabilities
PROGRAM = os.path.join(build.TOP, "build", "holdfast")  # the release build, of which the image is made
REPORTS = """
import sys, threading
sys.path.insert(0, "/python")
from holdfast_report import report
for step in range(1, 1 << 30):
    report(step, 100, 5)
    threading.Event().wait(0.2)
"""


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    incluster.load_holdfast(w)
    incluster.load_image(w, image.write_bare, incluster.BARE)
    w.api.create("namespaces", None, {"metadata": {"name": NS}})
    w.until("the namespace has its account", lambda: w.api.find("serviceaccounts", NS, "default"))
    w.driver = lambda text: write(w, "private/holdfast-agent/nvml", text)
    incluster.start_plugin(w)
    add_devices(w)
    w.kubectl = w.cluster.kubectl
    w.kubectl("apply", "-f", "-", text=w.holdfast("manifests", "--crds"))
    w.image = incluster.with_driver(w)
    w.printed = w.holdfast("manifests", "--agent", "--image", w.image)
    w.kubectl("apply", "-f", "-", text=w.printed)
    # The test's own bus, because this machine has no GPU.
    w.spec = w.api.get("daemonsets", AGENT, "holdfast-agent")["spec"]["template"]["spec"]
    container = w.spec["containers"][0]
    container["args"].append("--sysfs=/bus")
    container["volumeMounts"].append({"name": "bus", "mountPath": "/bus", "readOnly": True})
    w.spec["volumes"].append({"name": "bus", "hostPath": {"path": w.cluster.path("bus")}})
    container["livenessProbe"]["initialDelaySeconds"] = 300  # a container without its rights is looked at, not restarted
    w.tries = 0
    add_pods(w)
    return f"the agent's pod with NVML's double, kernel.dmesg_restrict={restricted()}"


def restricted():
    with open("/proc/sys/kernel/dmesg_restrict", encoding="ascii") as f:
        return f.read().strip()


def write(w, name, text):
    path = w.cluster.path(*name.split("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def add_devices(w):
    """Files as sysfs has them: root's, and readable by all."""
    for i in range(COUNT):
        for name, text in SYSFS.items():
            write(w, f"bus/bus/pci/devices/{address(i)}/{name}", text + "\n")
    write(w, "bus/module/nvidia/version", "570.86.15\n")


def add_pods(w):
    """One pod holds two devices, one reports steps as a user without rights."""
    w.api.create("pods", NS, {"metadata": {"name": "holder"}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
        "name": "c", "image": "localhost/busybox:1", "command": ["sleep", "1000000"],
        "resources": {"limits": {incluster.RESOURCE: 2}}}]}})
    spec = {"containers": [{"name": "c", "command": ["/usr/bin/python3", "-c", REPORTS],
                            "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}}}]}
    incluster.on_this_machine(spec, incluster.SYSTEM)
    for name, path, place in (("reports", "/run/holdfast", "/run/holdfast"),
                              ("python", os.path.join(build.TOP, "python", "src"), "/python")):
        spec["volumes"].append({"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}})
        spec["containers"][0]["volumeMounts"].append({"name": name, "mountPath": place})
    w.api.create("pods", NS, {"metadata": {"name": "trainer"}, "spec": spec})
    for name in ("holder", "trainer"):
        w.until(name + " runs", lambda name=name: w.api.get("pods", NS, name)["status"].get("phase") == "Running", 60)


def begin(w, change):
    """Runs an agent with this change of its pod's spec. Its pod, which no earlier agent had."""
    spec = copy.deepcopy(w.spec)
    change(spec)
    w.tries += 1
    mark = {"name": "TRY", "value": str(w.tries)}
    spec["containers"][0]["env"].append(mark)
    found = w.api.get("daemonsets", AGENT, "holdfast-agent")
    found["spec"]["template"]["spec"] = spec
    found["metadata"].pop("resourceVersion")  # the controller writes it, too
    w.kubectl("replace", "-f", "-", text=json.dumps(found))
    for pod in w.api.list("pods", AGENT):
        w.api.delete("pods", AGENT, pod["metadata"]["name"], gracePeriodSeconds=1)
    w.until("the earlier agent is gone", lambda: all(
        mark in p["spec"]["containers"][0]["env"] for p in w.api.list("pods", AGENT)), 60)
    if w.api.find("devicehealths", None, "real-0"):
        w.api.delete("devicehealths", None, "real-0")

    def runs():
        pods = [p for p in w.api.list("pods", AGENT) if not p["metadata"].get("deletionTimestamp")
                and mark in p["spec"]["containers"][0]["env"] and p["status"].get("podIP")
                and p["status"].get("phase") == "Running"]
        return pods[0] if pods else None
    return w.until("the agent runs", runs, 90)


def seen(w, pod):
    """What this agent does now."""
    try:
        text = incluster.fetch(w, pod["status"]["podIP"], 7445, "/metrics")
    except Exception:  # not started yet, or it ends again and again
        return set()
    does = {m[1] for m in re.finditer(r'holdfast_agent_detector_up\{detector="(\w+)"\} 1', text)}
    if re.search(r'holdfast_agent_ranks\{state="advancing"\} 1', text, re.I):
        does.add("steps")
    if [d for d in incluster.health(w).get("devices") or [] if [h["pod"] for h in d.get("holders") or []] == ["holder"]]:
        does.add("holders")
    return does & ALL


def expect(w, what, change, wanted):
    """The agent with this change loses just this."""
    pod = w.pod = begin(w, change)
    try:
        w.until("it does the rest", lambda: seen(w, pod) >= ALL - wanted, 60)
    except TimeoutError:
        pass
    equal(f"{what}: lost", sorted(ALL - seen(w, pod)), sorted(wanted))


def security(*added, **members):
    """Another securityContext; added: capabilities of a container that is not privileged, which also has the file /dev/kmsg."""
    def change(spec):
        container = spec["containers"][0]
        container["securityContext"] = {"runAsUser": 0, "readOnlyRootFilesystem": True, **members}
        if not members.get("privileged"):
            container["securityContext"]["capabilities"] = {"drop": ["ALL"], "add": list(added)}
            container["volumeMounts"].append({"name": "kmsg", "mountPath": "/dev/kmsg"})
            spec["volumes"].append({"name": "kmsg", "hostPath": {"path": "/dev/kmsg", "type": "CharDevice"}})
    return change


def sets(w):
    """The bounding and the effective set of the agent's process."""
    about = incluster.about(incluster.processes(w.api.get("pods", AGENT, w.pod["metadata"]["name"]))[0])
    return int(about["CapBnd"], 16), int(about["CapEff"], 16)


def check_printed(w):
    """As it is printed the agent does everything, and has given up all capabilities but two"""
    expect(w, "as printed", lambda spec: None, set())
    equal("capabilities", sets(w), (1 << SYSLOG | 1 << SYS_ADMIN,) * 2)


def check_manifest_cannot(w):
    """In a privileged container a manifest cannot drop capabilities: they are there until the agent gives them up"""
    pod = {"metadata": {"name": "privileged"}, "spec": {"restartPolicy": "Never", "containers": [{
        "name": "c", "image": "localhost/busybox:1", "command": ["grep", "CapBnd", "/proc/self/status"],
        "securityContext": {"privileged": True, "capabilities": {"drop": ["ALL"]}}}]}}
    w.api.create("pods", NS, pod)
    w.until("it has ended", lambda: w.api.get("pods", NS, "privileged")["status"].get("phase") == "Succeeded", 60)
    found = int(w.kubectl("-n", NS, "logs", "privileged").split()[1], 16)
    w.api.delete("pods", NS, "privileged")
    want(found >> SYSLOG & 1 and found >> 19 & 1, f"the runtime drops capabilities now: {found:x}")


def check_not_privileged(w):
    """Without `privileged` the kernel log is lost, also with its file and all capabilities; without any nothing more is lost"""
    expect(w, "not privileged, all capabilities", security("ALL"), KERNEL_LOG)
    expect(w, "not privileged, no capability", security(), KERNEL_LOG)
    equal("capabilities", sets(w), (0, 0))


def check_syslog(w):
    """The kernel log needs SYSLOG if kernel.dmesg_restrict is 1; each other capability can be taken away"""
    if restricted() != "1":
        raise Skip("kernel.dmesg_restrict is 0: everybody may read the kernel log")
    last = int(incluster.about(os.getpid())["CapBnd"], 16).bit_length()
    losers = [n for n in range(last) if not reads_log([f"--bounding-set=-cap_{n}", f"--inh-caps=-cap_{n}"])]
    equal("capabilities without which the kernel log is lost", losers, [SYSLOG])
    want(reads_log(["--bounding-set=-all,+syslog", "--inh-caps=-all"]), "SYSLOG alone does not read the kernel log")


def reads_log(flags):
    """Whether the agent's check of this machine reads the kernel log, as root with these flags of setpriv."""
    run = subprocess.run(["setpriv", *flags, PROGRAM, "agent", "--probe-once", "--kubelet-socket=", "--nvml=", "-o", "json"],
                         capture_output=True, text=True, timeout=60, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    want(run.returncode == 0, f"setpriv {flags}: {run.stderr[-300:]}")
    return next(c["status"] for c in json.loads(run.stdout)["checks"] if c["name"] == "kernel-log") == "ok"


def check_host_pid(w):
    """Without hostPID reports of training processes have no pod"""
    def change(spec):
        spec.pop("hostPID")
    expect(w, "no hostPID", change, STEPS)


def without(volume):
    def change(spec):
        spec["volumes"] = [v for v in spec["volumes"] if v["name"] != volume]
        mounts = spec["containers"][0]["volumeMounts"]
        spec["containers"][0]["volumeMounts"] = [m for m in mounts if m["name"] != volume]
    return change


def check_folders(w):
    """Each folder of the node that is missing costs what is read there"""
    expect(w, "no folder pod-resources", without("pod-resources"), KUBELET)
    expect(w, "no folder of reports", without("reports"), STEPS)
