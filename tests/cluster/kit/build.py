# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Binaries of a real Kubernetes, built from the Go modules pinned in ../go and kept by version."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(os.path.dirname(HERE))
GO_MIN = (1, 26)

# What is built of each folder of ../go: program name to package.
PROGRAMS = {
    "kubernetes": {n: "./cmd/" + n for n in (
        "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet",
        "kube-proxy")},
    "coredns": {"coredns": "./cmd/coredns"},
    "containerd": {n: "github.com/containerd/containerd/v2/cmd/" + n for n in (
        "containerd", "containerd-shim-runc-v2", "ctr")},
    "kwok": {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    "kueue": {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
    "jobset": {"jobset": "sigs.k8s.io/jobset"},
    "helm": {"helm": "helm.sh/helm/v4/cmd/helm"},
    "krew": {"krew": "sigs.k8s.io/krew/cmd/krew"},
    "peer": {"training-operator": "github.com/kubeflow/training-operator/cmd/training-operator.v1"},
}
# What a person asks for: (folder, program).
TARGETS = {
    "control": [("kubernetes", n) for n in (
        "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")],
    "node": [("kubernetes", "kubelet")] + [("containerd", n) for n in PROGRAMS["containerd"]],
    "inside": [("kubernetes", "kube-proxy"), ("coredns", "coredns")],
    "kwok": [("kwok", "kwok")],
    "kueue": [("kueue", "kueue")],
    "jobset": [("jobset", "jobset")],
    "helm": [("helm", "helm")],
    "krew": [("krew", "krew")],
    "peer": [("peer", "training-operator")],
}
PACKAGES = {"control": ["cluster"], "node": ["cluster", "cluster-node"],
            "inside": ["cluster-inside"]}  # purposes of tools/need


class Unavailable(Exception):
    """The machine lacks something that no change of ours can mend: no Go, no network."""


class Broken(Exception):
    """It should have worked."""


def cache():
    root = os.environ.get("HOLDFAST_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "holdfast")
    return os.path.join(root, "cluster")


# Another version of Kubernetes than that of ../go: the folder of its module; None: that of ../go.
other_kubernetes = None


def module(folder):
    if folder == "kubernetes" and other_kubernetes:
        return other_kubernetes
    return os.path.join(HERE, "go", folder)


def use_kubernetes(wanted):
    """Builds and runs this version of Kubernetes ("1.35.4"): the module of ../go with other versions.

    Kubernetes X.Y.Z and its staging modules v0.Y.Z are released together.
    """
    global other_kubernetes
    if not re.fullmatch(r"1\.\d+\.\d+", wanted):
        raise Broken(f"'{wanted}' is no version of Kubernetes, such as 1.35.4")
    if wanted == version("kubernetes")[1:]:
        return
    folder = os.path.join(cache(), "modules", "kubernetes-" + wanted)
    if not os.path.exists(os.path.join(folder, "go.sum")):
        check_go()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(module("kubernetes"), folder, ignore=shutil.ignore_patterns("go.sum"))
        write_module(os.path.join(folder, "go.mod"), version("kubernetes")[3:], wanted[2:])
        run = subprocess.run(["go", "mod", "tidy"], cwd=folder, capture_output=True, text=True,
                             env=dict(os.environ, GOFLAGS="-mod=mod -buildvcs=false", GOWORK="off"))
        if run.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            raise Unavailable(f"the modules of Kubernetes {wanted}: " + run.stderr.strip()[-300:])
    other_kubernetes = folder


def write_module(path, ours, other):
    """Replaces the versions ("36.3" by "35.4") and drops what `go mod tidy` finds by itself."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().replace(f"v1.{ours}", f"v1.{other}").replace(f"v0.{ours}", f"v0.{other}").splitlines(True)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(line for line in lines if "// indirect" not in line)


MAIN = {"kubernetes": "k8s.io/kubernetes", "containerd": "github.com/containerd/containerd/v2",
        "coredns": "github.com/coredns/coredns",
        "kwok": "sigs.k8s.io/kwok", "kueue": "sigs.k8s.io/kueue", "jobset": "sigs.k8s.io/jobset",
        "helm": "helm.sh/helm/v4", "krew": "sigs.k8s.io/krew",
        "peer": "github.com/kubeflow/training-operator"}


def version(folder):
    """The version that ../go pins of what is built there."""
    with open(os.path.join(module(folder), "go.mod"), encoding="utf-8") as f:
        found = re.search(r"^(?:require)?\s*%s (v\S+)" % re.escape(MAIN[folder]), f.read(), re.M)
    if not found:
        raise Broken(f"tests/cluster/go/{folder}/go.mod does not name {MAIN[folder]}")
    return found.group(1)


def bin_dir(folder):
    """Named by version and by everything else that goes into it, so that nothing stale is run."""
    h = hashlib.sha256()
    for where, dirs, names in sorted(os.walk(module(folder))):
        dirs.sort()
        for name in sorted(names):
            with open(os.path.join(where, name), "rb") as f:
                h.update(name.encode() + b"\0" + f.read())
    return os.path.join(cache(), f"{folder}-{version(folder)}-{h.hexdigest()[:8]}")


def program(folder, name):
    return os.path.join(bin_dir(folder), name)


def find(name):
    """Where a built program is, whatever folder it comes from."""
    for folder, programs in PROGRAMS.items():
        if name in programs:
            path = program(folder, name)
            if not os.path.exists(path):
                raise Unavailable(f"{name} is not built: run tests/cluster/cluster build")
            return path
    raise Broken(f"there is no program {name}")


def missing(targets):
    return [(f, p) for t in targets for f, p in TARGETS[t] if not os.path.exists(program(f, p))]


def check_go():
    if not shutil.which("go"):
        raise Unavailable(f"no Go here: a real Kubernetes is built with Go {GO_MIN[0]}.{GO_MIN[1]} "
                          "or newer (https://go.dev/dl)")
    run = subprocess.run(["go", "env", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, text=True,
                         cwd="/")
    found = re.match(r"go(\d+)\.(\d+)", run.stdout)
    if not found:
        raise Unavailable("go does not say its version: " + (run.stderr or run.stdout).strip())
    have = (int(found.group(1)), int(found.group(2)))
    if have < GO_MIN and not (have >= (1, 21) and "local" not in run.stdout):
        raise Unavailable(f"Go {have[0]}.{have[1]} is too old: {GO_MIN[0]}.{GO_MIN[1]} or newer "
                          "is needed")


# When building must be over, by the monotonic clock; None: it may take what it takes.
deadline = None


def go(folder, args, say):
    env = dict(os.environ, CGO_ENABLED="0", GOFLAGS="-mod=readonly -buildvcs=false", GOWORK="off")
    left = None if deadline is None else max(1, deadline - time.monotonic())
    try:
        run = subprocess.run(["go", *args], cwd=module(folder), env=env, text=True, timeout=left,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Unavailable("building the cluster's programs takes too long here") from None
    lines = [l for l in run.stdout.splitlines() if not l.startswith("go: downloading")]
    if run.returncode == 0:
        return lines
    text = "\n".join(lines)
    last = lines[-1] if lines else f"exit code {run.returncode}"
    if re.search(r"SECURITY ERROR|checksum mismatch|missing go.sum", text):
        raise Broken(f"go {args[0]} in tests/cluster/go/{folder}: {last}")
    if re.search(r"dial tcp|no such host|i/o timeout|connection refused|40[34] |50\d |proxyconnect|"
                 r"module lookup disabled|EOF|TLS handshake", text):
        raise Unavailable(f"modules for {folder} cannot be had here: {last}")
    say(text)
    raise Broken(f"go {args[0]} in tests/cluster/go/{folder}: {last}")


def flags(folder):
    out = ["-trimpath", "-tags", "no_btrfs"]
    link = "-s -w"
    if folder == "kubernetes":
        v = version("kubernetes")
        major, minor = v[1:].split(".")[:2]
        link += "".join(f" -X k8s.io/component-base/version.{k}={w}" for k, w in (
            ("gitVersion", v), ("gitMajor", major), ("gitMinor", minor)))
    return out + ["-ldflags", link]


def build(targets, say=lambda text: print(text, file=sys.stderr, flush=True)):
    """Have the programs of these targets; those that are there already are kept."""
    purposes = sorted({p for t in targets for p in PACKAGES.get(t, [])})
    if purposes:
        run = subprocess.run([os.path.join(TOP, "tools/need"), *purposes], text=True,
                             stdin=None, stderr=subprocess.PIPE)
        if run.returncode != 0:
            raise Unavailable((run.stderr.strip().splitlines() or ["tools/need failed"])[-1])
    if not missing(targets):
        return
    check_go()
    os.makedirs(cache(), exist_ok=True)
    with open(os.path.join(cache(), "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two builds at once would only be in each other's way
        for folder, name in missing(targets):
            start = time.monotonic()
            package = PROGRAMS[folder][name]
            go(folder, ["list", "-deps", "-tags", "no_btrfs", package], say)  # fetches, checks sums
            os.makedirs(bin_dir(folder), exist_ok=True)
            made = program(folder, name) + f".{os.getpid()}"
            try:
                go(folder, ["build", *flags(folder), "-o", made, package], say)
                os.replace(made, program(folder, name))
            finally:
                if os.path.exists(made):
                    os.unlink(made)
            say(f"built {name} {version(folder)} ({time.monotonic() - start:.0f} s)")


def source(folder):
    """The module's own files, as the module cache holds them (manifests, CRDs)."""
    lines = go(folder, ["list", "-m", "-f", "{{.Dir}}", MAIN[folder]], lambda text: None)
    if not lines or not lines[-1]:
        go(folder, ["mod", "download", MAIN[folder]], lambda text: None)
        lines = go(folder, ["list", "-m", "-f", "{{.Dir}}", MAIN[folder]], lambda text: None)
    return lines[-1]
