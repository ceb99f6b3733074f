# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The agent of a node: how soon a line is a condition, how many lines it reads, what it costs."""

import http.client
import json
import os
import re
import select
import ssl
import subprocess
import threading
import time
import urllib.request

GPUS, PORTS = 60, 8
LINES = 100          # a fault and its end are two
PACE_S = 1.1         # a node's conditions are written once a second at most
REST_S = 30
PLAIN, XIDS = 600_000, 60_000
# Each of another number: the same fault on half of the devices would be the node's.
STOPPING = (62, 95, 109, 119, 120, 140)


def pause(seconds):
    select.select([], [], [], seconds)


def address(number):
    return f"0000:{0x10 + number:02x}:00.0"


def tree(folder, gpus, ports):
    """A sysfs of so many devices and InfiniBand ports."""
    def write(name, text):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text + "\n")
    for i in range(gpus):
        at = f"bus/pci/devices/{address(i)}/"
        for name, text in (("vendor", "0x10de"), ("class", "0x030200"), ("current_link_width", "16"),
                           ("max_link_width", "16"), ("current_link_speed", "32.0 GT/s PCIe"),
                           ("max_link_speed", "32.0 GT/s PCIe")):
            write(at + name, text)
    for i in range(ports):
        at = f"class/infiniband/mlx5_{i}/ports/1/"
        write(at + "state", "4: ACTIVE")
        write(at + "phys_state", "5: LinkUp")
        for name in ("link_downed", "symbol_error", "link_error_recovery",
                     "excessive_buffer_overrun_errors", "local_link_integrity_errors"):
            write(f"{at}counters/{name}", "0")
        for name in ("rnr_nak_retry_err", "roce_slow_restart"):
            write(f"{at}hw_counters/{name}", "0")
    write("module/nvidia/version", "570.86.15")
    return folder


class Watch(threading.Thread):
    """Notes when which words first stood in the Node's condition AcceleratorUnhealthy."""

    def __init__(self, plane, node):
        super().__init__(daemon=True)
        self.news = threading.Condition()
        self.last = ("", 0.0)
        host, port = re.search(r"https://([^:]+):(\d+)", plane.text("kubeconfig")).groups()
        context = ssl.create_default_context(cafile=plane.folder + "/ca.pem")
        self.client = http.client.HTTPSConnection(host, int(port), context=context, timeout=600)
        self.client.request("GET", f"/api/v1/nodes?watch=true&fieldSelector=metadata.name%3D{node}",
                            headers={"Authorization": "Bearer " + plane.text("token").strip()})
        self.answer = self.client.getresponse()

    def run(self):
        try:
            for line in self.answer:
                at = time.perf_counter()
                for c in json.loads(line)["object"].get("status", {}).get("conditions", []):
                    if c["type"] == "AcceleratorUnhealthy":
                        with self.news:
                            self.last = (c.get("message", ""), at)
                            self.news.notify()
        except (OSError, ValueError, AttributeError):
            pass

    def until(self, holds):
        with self.news:
            if not self.news.wait_for(lambda: holds(self.last[0]), 30):
                raise SystemExit(f"bench: the condition did not change; it says '{self.last[0]}'")
            return self.last[1]


class Agent:
    def __init__(self, bench, plane, node):
        self.folder = f"{bench.folder}/agent"
        tree(self.folder + "/sys", GPUS, PORTS)
        os.mkfifo(self.folder + "/kmsg")
        with open(self.folder + "/log", "wb") as log:
            self.process = subprocess.Popen(
                [bench.holdfast, "agent", "--node-name", node, "--kubeconfig", plane.kubeconfig, "--kmsg",
                 self.folder + "/kmsg", "--sysfs", self.folder + "/sys", "--nvml=", "--kubelet-socket=",
                 "--state-dir", self.folder + "/state", "--listen", "127.0.0.1:0"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.port = None
        for _ in range(300):
            found = re.search(r'"msg":"Starting".*?"port":"(\d+)"', self.said())
            if found:
                self.port = int(found.group(1))
                break
            pause(0.1)
        if not self.port:
            raise SystemExit(f"bench: holdfast agent: {self.said()[-600:]}")
        self.kmsg = os.open(self.folder + "/kmsg", os.O_WRONLY)

    def said(self):
        with open(self.folder + "/log", encoding="utf-8") as f:
            return f.read()

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            found = re.search(rf"^{name} (\S+)", answer.read().decode(), re.M)
        return float(found.group(1)) if found else 0

    def cpu(self):
        """Seconds on a core so far, of all its threads."""
        tasks = f"/proc/{self.process.pid}/task"
        total = 0
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def memory(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            text = f.read()
        return [int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1)) / 1024
                for name in ("VmRSS", "VmHWM")]

    def write(self, text):
        view = memoryview(text.encode())
        while view:
            view = view[os.write(self.kmsg, view):]

    def flood(self, lines):
        """Lines a second until the last was read, CPU seconds, and how many of them were lost."""
        before, lost = (self.metric(f"holdfast_agent_kmsg_{n}_total") for n in ("records", "lost"))
        cpu, start = self.cpu(), time.perf_counter()
        self.write("".join(lines))
        while self.metric("holdfast_agent_kmsg_records_total") < before + len(lines):
            pause(0.005)
        took = time.perf_counter() - start
        return (len(lines) / took, self.cpu() - cpu,
                self.metric("holdfast_agent_kmsg_lost_total") - lost)

    def stop(self):
        os.close(self.kmsg)
        self.process.terminate()
        self.process.wait(30)


def delays(agent, watch):
    """From a line to the condition as a watch sees it, in ms."""
    took = []
    for i in range(LINES // 2):
        at = address(i % GPUS)
        for text, holds in (
                (f"NVRM: Xid (PCI:{at[:-2]}): {STOPPING[i % len(STOPPING)]}, pid=1, a fault\n",
                 lambda said, at=at: at in said),
                (f"NVRM: Xid (PCI:{at[:-2]}): 154, GPU recovery action changed from 0x1 (GPU Reset "
                 "Required) to 0x0 (None)\n", lambda said, at=at: at not in said)):
            start = time.perf_counter()
            agent.write(text)
            took.append((watch.until(holds) - start) * 1e3)
            pause(PACE_S)
    return took


def measure(bench, percentile):
    add = bench.figures.add
    plane = bench.plane("agent-plane")
    plane.start()
    plane.text = lambda name: open(f"{plane.folder}/{name}", encoding="utf-8").read()
    node = plane.call("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    agent = Agent(bench, plane, node)
    try:
        watch = Watch(plane, node)
        watch.start()
        for _ in range(600):
            if plane.call("GET", f"/apis/holdfast.dev/v1alpha1/devicehealths/{node}").get("status"):
                break
            pause(0.1)
        pause(10)
        cpu, start = agent.cpu(), time.perf_counter()
        pause(REST_S)
        rest = (agent.cpu() - cpu) / (time.perf_counter() - start) * 100
        add("agent.rest.memory", agent.memory()[0], "MiB", 1,
            f"resident at rest, {GPUS} devices and {PORTS} ports in sysfs, no NVML",
            most=agent.memory()[1])
        add("agent.rest.cpu", rest, "% core", 1, f"all threads, over {REST_S} s at rest")
        took = delays(agent, watch)
        add("agent.line_to_condition", percentile(took, 0.5), "ms", len(took),
            "a line written, until a watch of the Node shows its condition",
            p99=percentile(took, 0.99), max=max(took))
        for name, what, lines in (
                ("plain", "lines that tell of nothing, through a FIFO",
                 [f"usb 1-1: new high-speed USB device number {i}\n" for i in range(PLAIN)]),
                ("xid", "Xid lines of 60 devices, through a FIFO",
                 [f"NVRM: Xid (PCI:{address(i % GPUS)[:-2]}): {13 + i % 2 * 18}, pid={i}, name=x, y\n"
                  for i in range(XIDS)])):
            rate, cpu, lost = agent.flood(lines)
            add(f"agent.flood.{name}", rate, "lines/s", len(lines), what, lost=lost,
                cpu_us=cpu / len(lines) * 1e6, rss_MiB=agent.memory()[0])
    finally:
        agent.stop()
        plane.down()
    f = bench.program("agent", agent.folder + "/sys", bench.folder + "/agent-day")[0]
    add("agent.day.writes", float(f["writes"]), "writes", 1,
        "to the API server in a day at rest (virtual clock)", node=float(f["node"]),
        devicehealth=float(f["devicehealth"]))
    add("agent.day.cpu", float(f["cpu_s"]), "s", 1, "CPU of that day, the store's part included",
        percent_of_a_core=float(f["cpu_s"]) / 864)
