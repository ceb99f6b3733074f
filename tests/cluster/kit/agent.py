# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""`holdfast agent` on the real node, with a kernel's log, a sysfs and a driver's library of the test's own."""

import json
import os
import random
import shutil
import uuid

from .check import Skip, equal
from .client import stamp

RESOURCE = "example.com/gpu"
NODE = "real-0"
COUNT = 4
# The files of a GPU in sysfs that the agent reads.
SYSFS = {"vendor": "0x10de", "class": "0x030200", "current_link_width": "16", "max_link_width": "16",
         "current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe"}
PROBLEMS = ("AcceleratorUnhealthy", "AcceleratorDegraded", "AcceleratorDriverUnresponsive",
            "FabricUnhealthy")


def address(number):
    """Of the device that the plugin calls gpu-NUMBER and the driver's library numbers so."""
    return f"0000:{0x1a + number:02x}:00.0"


class Agent:
    """One life of an agent, with its files: a new one knows nothing of those before."""

    def __init__(self, w):
        self.w = w
        self.folder = w.cluster.path(f"node-{random.randrange(1 << 32):08x}")
        self.double = os.path.join(os.path.dirname(os.path.abspath(w.program)), "src", "probes",
                                   "libnvml_double.so")
        if not os.path.exists(self.double):
            raise Skip("no double of NVML beside the program")
        for i in range(COUNT):
            self.plug(i)
        self.write("sys/module/nvidia/version", "570.86.15\n")
        self.write("kmsg", "")
        self.boot()
        self.library()

    # ---- what it reads
    def write(self, name, text):
        """At once, as a whole: it may be read at any moment."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def plug(self, number):
        for name, text in SYSFS.items():
            self.write(f"sys/bus/pci/devices/{address(number)}/{name}", text + "\n")

    def unplug(self, number):
        shutil.rmtree(os.path.join(self.folder, "sys/bus/pci/devices", address(number)))

    def boot(self):
        self.write("proc/sys/kernel/random/boot_id", str(uuid.uuid4()) + "\n")

    def library(self, *lines):
        """What the driver's library does from now on."""
        self.write("nvml", "\n".join([f"devices {COUNT}", *lines]) + "\n")

    def kernel(self, *lines):
        with open(os.path.join(self.folder, "kmsg"), "a", encoding="ascii") as f:
            f.write("".join(line + "\n" for line in lines))

    def xid(self, number, code, text):
        """A line of the driver about a device."""
        self.kernel(f"NVRM: Xid (PCI:{address(number)[:-2]}): {code}, {text}")

    # ---- its life
    def start(self):
        w = self.w
        w.cluster.start("agent", [
            w.program, "agent", "--node-name=" + NODE, "--kubeconfig=" +
            w.cluster.path("kubeconfig.admin"), "--nvml=" + self.double,
            "--kmsg=" + os.path.join(self.folder, "kmsg"), "--sysfs=" + os.path.join(self.folder, "sys"),
            "--proc=" + os.path.join(self.folder, "proc"), "--listen=0", "--resources=" + RESOURCE,
            "--state-dir=" + os.path.join(self.folder, "state"), "--kubelet-socket=" +
            w.cluster.path("kubelet", "pod-resources", "kubelet.sock")],
            env={"HF_NVML_DOUBLE": os.path.join(self.folder, "nvml")})
        with open(os.path.join(self.folder, "proc/sys/kernel/random/boot_id"), encoding="ascii") as f:
            boot = f.read().strip()
        w.until("the agent has written", lambda: self.status().get("bootID") == boot, 60)
        return self

    def begin(self):
        """As at the start of a node's life: all of its devices are well, as the agent says."""
        self.start()
        self.until_states("all are Healthy", lambda s: set(s) == {"Healthy"})
        return self

    def stop(self):
        self.w.cluster.stop("agent")

    def end_probation(self):
        """A probation takes a quarter of an hour. At its end the agent writes that the devices are Healthy; here the
        agent stops, and the test writes it."""
        self.stop()
        status = self.status()
        for device in status["devices"]:
            device.update(state="Healthy")
            for gone in ("class", "action", "faults", "holdUntil"):
                device.pop(gone, None)
        status.update(state="Healthy", observedTime=stamp(1), evidenceTime=None, **{"class": None, "action": None})
        self.w.api.patch("devicehealths", None, NODE, {"status": status}, "status")

    # ---- what it says
    def status(self):
        return (self.w.api.find("devicehealths", None, NODE) or {}).get("status") or {}

    def devices(self):
        found = {d["id"]: d for d in self.status().get("devices") or []}
        return [found.get(address(i)) or {} for i in range(COUNT)]

    def states(self):
        return [d.get("state") for d in self.devices()]

    def faults(self):
        """Those of the node and of its devices that act: (detector, class)."""
        return [(f["detector"], f["class"]) for d in self.status().get("devices") or []
                for f in d.get("faults") or [] if f.get("active")]

    def until_states(self, what, holds, timeout_s=60):
        try:
            return self.w.until(what, lambda: holds(self.states()), timeout_s)
        except TimeoutError as e:
            raise TimeoutError(f"{e}; it is {json.dumps(self.status())[:1500]}") from None

    def problems(self):
        """Those of the node's conditions that are True."""
        node = self.w.api.get("nodes", None, NODE)
        status = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        return [p for p in PROBLEMS if status.get(p) == "True"]

    def until_problems(self, *wanted, timeout_s=60):
        try:
            self.w.until(f"the problems are {wanted}", lambda: self.problems() == list(wanted),
                         timeout_s)
        except TimeoutError as e:
            raise TimeoutError(f"{e}; they are {self.problems()}, {json.dumps(self.status())[:1500]}") \
                from None

    def holders(self, number):
        """Pods that hold the device now."""
        return [h["pod"] for h in self.devices()[number].get("holders") or [] if not h.get("until")]

    def node_untouched(self):
        """Neither cordoned nor tainted: nobody was asked to."""
        spec = self.w.api.get("nodes", None, NODE)["spec"]
        equal("the node", (spec.get("unschedulable", False), spec.get("taints") or []), (False, []))
