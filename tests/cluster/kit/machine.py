# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What a cluster takes from the machine, and how all of it is given back.

A cluster is known by its folder.  Every process carries the folder in its environment, so that
`clear` finds them whoever started them and wherever the starter was killed.  A number (0 to 99),
taken from a folder that all clusters of a user share, gives each cluster ports, a bridge and
addresses of its own.
"""

import contextlib
import fcntl
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

MARK = "HOLDFAST_TEST_CLUSTER"
NUMBERS = 100
PORTS_FIRST, PORTS_EACH = 21000, 16  # below what the kernel hands out by itself (32768)
REGISTRY = f"/tmp/holdfast-test-clusters-{os.getuid()}"
# Fixed places that programs use: empty folders here, mounts of their own in their namespaces.
# Each with the folder above it that is the machine's.
MOUNT_POINTS = {"kueue": ("/etc/kueue/metrics/certs", "/etc"),
                "peer": ("/tmp/k8s-webhook-server/serving-certs", "/tmp"),
                "kubelet": ("/var/lib/kubelet", "/var/lib"), "cni": ("/var/lib/cni", "/var/lib"),
                "agent": ("/var/lib/holdfast-agent", "/var/lib")}


@contextlib.contextmanager
def registry():
    os.makedirs(REGISTRY, mode=0o700, exist_ok=True)
    if os.stat(REGISTRY).st_uid != os.getuid():
        raise PermissionError(f"{REGISTRY} belongs to somebody else")
    with open(os.path.join(REGISTRY, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def entries():
    """{number: {"folder", "owner"}} of every cluster that was not cleared."""
    found = {}
    if os.path.isdir(REGISTRY):
        for name in os.listdir(REGISTRY):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError), \
                        open(os.path.join(REGISTRY, name), encoding="utf-8") as f:
                    found[int(name)] = json.load(f)
    return found


def free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def ports(number):
    first = PORTS_FIRST + number * PORTS_EACH
    return range(first, first + PORTS_EACH)


def started_at(pid):
    """Boot-relative, so that a reused pid is told apart; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def register(number, entry):
    made = os.path.join(REGISTRY, f"{number}.new")
    with open(made, "w", encoding="utf-8") as f:
        json.dump(entry, f)
    os.replace(made, os.path.join(REGISTRY, str(number)))


def take(folder, owner):
    """A number for the cluster in folder.  owner: the process whose end makes it an orphan, or None."""
    with registry():
        taken = entries()
        for number in range(NUMBERS):
            if number in taken or not all(free(p) for p in ports(number)):
                continue
            register(number, {"folder": folder, "owner": owner, "since": owner and started_at(owner)})
            return number
    raise OSError(f"{NUMBERS} clusters are here already, or their ports are taken: see {REGISTRY}")


def disown(folder):
    """The cluster in folder stays when its owner ends, until `cluster down` removes it."""
    with registry():
        for number, entry in entries().items():
            if entry["folder"] == folder:
                register(number, {**entry, "owner": None})


def orphans():
    """Folders of clusters whose owner was killed."""
    return [e["folder"] for e in entries().values()
            if e["owner"] and started_at(e["owner"]) != e["since"]]


# ---- giving back
def processes(folder):
    mark = f"{MARK}={folder}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    yield int(name)


def alive(pids):
    return [p for p in pids if started_at(p) is not None]


def lingers(pid):
    """Its first thread is gone, others are not yet: they still hold its ports."""
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    return False


def end_processes(folder):
    pause = threading.Event()
    for _ in range(600):  # a minute; some fork while they are being looked for
        found = alive(processes(folder))
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pause.wait(0.1)
    raise TimeoutError(f"processes of {folder} do not end: {found}")


def containers(folder):
    """Ids of what containerd ran, for their cgroups."""
    root = os.path.join(folder, "containerd/state/io.containerd.runtime.v2.task/k8s.io")
    return os.listdir(root) if os.path.isdir(root) else []


def groups(number):
    return f"hftest{number}"


def make_groups(number):
    """A control group in each hierarchy, for a kubelet that makes those of its pods; its name.

    All pods together would get as much of the cores as one process of this machine. So the group weighs as much as
    16 processes.
    """
    for where in hierarchies():
        os.makedirs(os.path.join(where, groups(number)), exist_ok=True)
        for name, weight in (("cpu.shares", "16384"), ("cpu.weight", "1600")):
            file = os.path.join(where, groups(number), name)
            if os.path.exists(file):
                with open(file, "w", encoding="ascii") as f:
                    f.write(weight)
    return groups(number)


def hierarchies():
    with open("/proc/self/mounts", encoding="utf-8") as f:
        found = [l.split() for l in f]
    return [m[1] for m in found if m[2] in ("cgroup", "cgroup2")]


def remove_groups(number):
    for where in hierarchies():
        for at, _, _ in os.walk(os.path.join(where, groups(number)), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(at)


def remove_cgroups(ids):
    """containerd runs as it does on a machine, so the names lie in the machine's own tree."""
    wanted = set(ids)
    for where, dirs, _ in os.walk("/sys/fs/cgroup", topdown=False):
        for name in dirs:
            if name in wanted:
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(where, name))


def unmount(folder):
    with open("/proc/self/mounts", encoding="utf-8") as f:
        points = [l.split()[1] for l in f]
    for point in sorted(points, reverse=True):
        if point.startswith(folder + "/"):
            subprocess.run(["umount", "-l", point], check=False)


def remove_empty(path, stop):
    """rmdir path and its parents down to stop's child, as far as they are empty."""
    while path != stop:
        try:
            os.rmdir(path)
        except OSError:
            return
        path = os.path.dirname(path)


def bridge(number):
    return f"hftest{number}"


def cable(number):
    return f"hftest{number}n"


def make_bridge(number, address):
    device = bridge(number)
    for command in (["ip", "link", "add", device, "type", "bridge"],
                    ["ip", "address", "add", address + "/24", "dev", device],
                    ["ip", "link", "set", device, "up"]):
        subprocess.run(command, check=True)


def clear(folder, keep=False):
    """Undo all that was done for the cluster in folder, whatever state it is in.

    keep: the folder itself stays, for its logs.
    """
    folder = os.path.abspath(folder)
    ids = containers(folder)
    end_processes(folder)
    unmount(folder)
    if ids:
        remove_cgroups(ids)
    with registry():
        mine = [n for n, e in entries().items() if e["folder"] == folder]
        for number in mine:
            remove_groups(number)
            # A cable ends with the namespace it leads to, but not at once.
            for device in (cable(number), bridge(number)):
                if os.path.exists("/sys/class/net/" + device):
                    subprocess.run(["ip", "link", "delete", device], check=False)
            os.unlink(os.path.join(REGISTRY, str(number)))
        if not entries():
            for point, stop in MOUNT_POINTS.values():
                remove_empty(point, stop)
            for where in glob.glob("/sys/fs/cgroup/k8s.io") + glob.glob("/sys/fs/cgroup/*/k8s.io"):
                with contextlib.suppress(OSError):
                    os.rmdir(where)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
