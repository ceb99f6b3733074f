#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""mend_test.py HOLDFAST SERVE: `holdfast mend-node` on a host of doubles, killed at each step. Exit code 77: no namespaces here.

The test never reaches the machine: it runs in mount and pid namespaces of its own, in which what could reboot
the machine is covered, and the program has no default for any of it.
"""

import http.client
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import logind

HERE = os.path.dirname(os.path.abspath(__file__))
NONCE = "00112233445566778899aabbccddeeff"
BOOT = "11111111-1111-1111-1111-111111111111"
API = "/apis/holdfast.dev/v1alpha1/remediations"
COVERED = ["/proc/sysrq-trigger", "/dev/watchdog", "/dev/watchdog0", "/dev/watchdog1",
           "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/system"]
INSIDE = "HOLDFAST_MEND_TEST_INSIDE"


def enter_namespaces():
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"],
                                           stderr=subprocess.DEVNULL).returncode != 0:
        print("no rights for namespaces")
        sys.exit(77)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                          sys.executable, *sys.argv])


def cover_machine(folder):
    """What could reboot the machine is covered by an empty file or folder."""
    if os.getpid() != 1:
        sys.exit("the test is not in a pid namespace of its own")
    for path in COVERED:
        if not os.path.exists(path):
            continue
        cover = os.path.join(folder, "cover-" + path.replace("/", "-"))
        if os.path.isdir(path):
            os.mkdir(cover)
        else:
            open(cover, "w").close()
        subprocess.run(["mount", "--bind", cover, path], check=True)
        if not os.path.samefile(cover, path):
            sys.exit(f"{path} is not covered")


# ---- the host ----------------------------------------------------------------------------------

def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Host:
    """A root folder with the doubles, a procfs and a sysfs."""

    def __init__(self, folder):
        self.folder = folder
        self.root, self.proc, self.sys = (os.path.join(folder, n) for n in ("root", "proc", "sys"))
        for name in ("usr/bin", "usr/lib", "usr/lib64", "usr/local/bin", "double", "run/dbus", "dev", "tmp"):
            os.makedirs(os.path.join(self.root, name))
        for name in ("bin", "lib", "lib64"):
            os.symlink("usr/" + name, os.path.join(self.root, name))
        for name in ("sh", "sleep", "cat", "head", "busctl"):
            if shutil.which(name):
                self.copy_program(os.path.realpath(shutil.which(name)), name)
        for name in ("nvidia-smi", "amd-smi", "diag"):
            shutil.copy(os.path.join(HERE, "tool"), os.path.join(self.root, "usr/local/bin", name))
        put(self.root + "/dev/null", "")
        put(self.root + "/double/zeros", "x" * 1048576)
        self.sysrq, self.watchdog = folder + "/sysrq", folder + "/watchdog"
        self.reset()

    def copy_program(self, path, name):
        """With its libraries; nothing of the machine is mounted."""
        shutil.copy(path, os.path.join(self.root, "usr/bin", name))
        said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for library in (word for word in said.split() if word.startswith("/")):
            to = self.root + library
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if not os.path.exists(to):
                shutil.copy(os.path.realpath(library), to)

    def reset(self):
        """As before any act."""
        for path in (self.proc, self.sys):
            shutil.rmtree(path, ignore_errors=True)
        put(self.proc + "/sys/kernel/random/boot_id", BOOT + "\n")
        put(self.proc + "/driver/nvidia/gpus/0000:1a:00.0/information", "GPU UUID: \t GPU-1\nDevice Minor: \t 3\n")
        put(self.sys + "/bus/pci/devices/0000:63:00.0/vendor", "0x1002\n")
        put(self.sysrq, "")
        put(self.watchdog, "")
        put(self.root + "/double/mode", "done")
        put(self.root + "/double/log", "")
        put(self.root + "/double/resets", "")
        put(self.root + "/double/persistence", "GPU-1, Enabled\n")

    def process(self, pid, comm, file="/dev/null", cgroup="0::/\n"):
        put(f"{self.proc}/{pid}/comm", comm + "\n")
        put(f"{self.proc}/{pid}/cgroup", cgroup)
        os.makedirs(f"{self.proc}/{pid}/fd")
        os.symlink(file, f"{self.proc}/{pid}/fd/5")

    def mode(self, text):
        put(self.root + "/double/mode", text)

    def log(self):
        return read(self.root + "/double/log").splitlines()

    def resets(self):
        """How often the tool was called to reset."""
        return sum("reset" in line for line in self.log())


# ---- the API, with a hand in each request -----------------------------------------------------

class Api:
    """The API server of the tests behind a proxy. `hook(method, path, body)` returns None, or a word:
    drop: the request is not done; lose: it is done and the reply is lost."""

    def __init__(self, serve, folder):
        os.mkdir(folder)
        self.server = subprocess.Popen([serve, folder])
        while "server" not in read(folder + "/kubeconfig"):
            if self.server.poll() is not None:
                sys.exit("the API server ended")
            pause(0.05)
        self.port = int(read(folder + "/kubeconfig").split("https://127.0.0.1:")[1].split("'")[0])
        self.tls = ssl.create_default_context(cafile=folder + "/ca.pem")
        self.hook = lambda *_: None
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer = api.hook(self.command, self.path, body)
                if answer != "drop":
                    status, text = api.raw(self.command, self.path, body, self.headers.get("Content-Type"))
                if answer in ("drop", "lose") or api.hook_after(self.command, self.path) == "lose":
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PATCH = serve_one

            def log_message(self, *_):
                pass

        self.hook_after = lambda *_: None
        self.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.proxy.daemon_threads = True
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()
        put(folder + "/actor", "apiVersion: v1\nkind: Config\ncurrent-context: t\nclusters: [{name: t, cluster: "
            f"{{server: 'http://127.0.0.1:{self.proxy.server_address[1]}'}}}}]\nusers: [{{name: t, user: {{}}}}]\n"
            "contexts: [{name: t, context: {cluster: t, user: t}}]\n")
        self.kubeconfig = folder + "/actor"

    def raw(self, method, path, body=None, kind="application/json"):
        link = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=30)
        link.request(method, path, body, {"Authorization": "Bearer serve-for-tests-0123456789",
                                          "Content-Type": kind or "application/json"})
        answer = link.getresponse()
        text = answer.read()
        link.close()
        return answer.status, text

    def call(self, method, path, body=None, kind="application/json"):
        status, text = self.raw(method, path, None if body is None else json.dumps(body), kind)
        if status >= 300:
            raise AssertionError(f"{method} {path}: {status} {text[:300]}")
        return json.loads(text)

    def merge(self, body, sub=""):
        return self.call("PATCH", f"{API}/n1-1{sub}", body, "application/merge-patch+json")

    def get(self):
        return self.call("GET", f"{API}/n1-1")


def pause(seconds):
    threading.Event().wait(seconds)


def until(what, check):
    for _ in range(600):
        if check():
            return
        pause(0.05)
    raise AssertionError("never: " + what)


# ---- one case ----------------------------------------------------------------------------------

class World:
    def __init__(self, holdfast, serve, folder):
        self.holdfast = holdfast
        self.host, self.api = Host(folder), Api(serve, folder + "/api")

    def begin(self, rung="reset-device", spec=None, status=None):
        """A new approved object, and a host as before any act."""
        self.host.reset()
        self.api.hook, self.api.hook_after = lambda *_: None, lambda *_: None
        self.api.raw("DELETE", f"{API}/n1-1")
        whole = {"node": "n1", "rung": rung, "attempt": 1, "nonce": NONCE}
        if rung == "reset-device":
            whole["devices"] = [{"id": "0000:1a:00.0", "uuid": "GPU-1"}]
        self.api.call("POST", API, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "Remediation",
                                    "metadata": {"name": "n1-1"}, "spec": {**whole, **(spec or {})}})
        self.api.merge({"status": {"phase": "Approved", "approval": {"time": "2026-01-01T00:00:00Z", "bootID": BOOT},
                                   **(status or {})}}, "/status")

    def start(self, *flags, node="n1", nonce=NONCE, plain=False):
        words = [self.holdfast, "mend-node", "--intent", "n1-1", "--kubeconfig", self.api.kubeconfig,
                 "--proc", self.host.proc]
        if not plain:
            words += ["--root", self.host.root, "--sys", self.host.sys, "--holders-wait", "1s", "--tool-timeout", "10s",
                      "--orderly-wait", "1s", "--signal-wait", "1s", "--sync-wait", "100ms"]
        env = {**os.environ, "HOLDFAST_NODE_NAME": node, "HOLDFAST_MEND_NONCE": nonce}
        return subprocess.Popen(words + list(flags), env=env, stderr=subprocess.PIPE, text=True)

    def run(self, *flags, **options):
        actor = self.start(*flags, **options)
        self.said = actor.communicate(timeout=120)[1]
        return actor.returncode

    def act(self):
        return self.api.get().get("status", {}).get("act", {})


def equal(what, got, want, w=None):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, expected {want!r}\n{getattr(w, 'said', '')}")


def has(what, part, whole):
    if part not in whole:
        raise AssertionError(f"{what}: no {part!r} in {whole!r}")


CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def reset(w):
    """A reset is done once; the persistence mode is switched off for it and back on"""
    w.begin()
    equal("exit code", w.run(), 0, w)
    equal("calls", [l.split(" ", 1)[1] for l in w.host.log()],
          ["-i GPU-1 --query-gpu=uuid,persistence_mode --format=csv,noheader", "-i GPU-1 -pm 0",
           "--gpu-reset -i GPU-1", "-i GPU-1 -pm 1"])
    status = w.api.get()["status"]
    equal("phase", status["phase"], "Acting")
    act = status["act"]
    equal("exitCode", act["exitCode"], 0)
    equal("tool", act["tool"], "nvidia-smi")
    equal("nonce", act["nonce"], NONCE)
    equal("bootID", act["bootID"], BOOT)
    equal("saved", status["saved"], {"persistenceMode": {"GPU-1": "on"}})
    has("message", "successfully reset", act["message"])
    if not act["startedAt"] <= act["endedAt"]:
        raise AssertionError(f"times: {act}")
    equal("approval", status["approval"]["bootID"], BOOT)
    equal("again", w.run(), 2, w)
    equal("resets", w.host.resets(), 1)


@case
def terminated(w):
    """SIGTERM before the intent ends the actor, and after it the act goes on to its result"""
    w.begin()
    w.host.process(4711, "python", "/dev/nvidia3")
    actor = w.start("--holders-wait", "60s")
    until("the tool was asked", lambda: len(w.host.log()) == 1)
    actor.terminate()
    equal("end", actor.wait(60), -signal.SIGTERM)
    actor.stderr.close()
    equal("phase", w.api.get()["status"]["phase"], "Approved")
    w.begin()
    w.host.mode("slow")
    actor = w.start()
    until("the act has begun", lambda: w.host.resets() > 0)
    actor.terminate()
    equal("end", actor.wait(60), 0)
    actor.stderr.close()
    equal("exitCode", w.act()["exitCode"], 0)


@case
def diagnostic(w):
    """A diagnostic runs after the reset, with its own deadline; its failure is that of the act"""
    def run(*words, span="5s"):
        w.begin()
        return w.run("--diagnostic-timeout", span, "--", *words)

    equal("passes", run("diag", "-r", "1"), 0, w)
    equal("order", [l for l in w.host.log() if "reset" in l or l.startswith("diag")],
          ["nvidia-smi --gpu-reset -i GPU-1", "diag -r 1"])
    equal("fails", run("diag", "fail"), 1, w)
    equal("exitCode", w.act()["exitCode"], 7)
    has("message", "diagnostic diag failed: two links are down", w.act()["message"])
    equal("resets", w.host.resets(), 1)
    equal("hangs", run("diag", "hang", span="1s"), 1, w)
    equal("exitCode", w.act()["exitCode"], -1)
    has("message", "diagnostic diag was ended after its deadline", w.act()["message"])
    # A program that is not there is found before the act.
    equal("absent", run("nosuch"), 2, w)
    has("said", "the host has no diagnostic program 'nosuch'", w.said)
    equal("resets", w.host.resets(), 0)
    # The failed reset needs no diagnostic.
    w.begin()
    w.host.mode("15")
    equal("reset fails", w.run("--diagnostic-timeout", "5s", "--", "diag"), 1, w)
    equal("diagnostics", [l for l in w.host.log() if l.startswith("diag")], [])
    for wrong in (["--diagnostic-timeout", "5s"], ["--", "diag"], ["--diagnostic-timeout", "5s", "--", "/bin/sh"],
                  ["--diagnostic-timeout", "5s", "--"] + ["diag"] * 17):
        w.begin()
        equal(f"usage {wrong[:3]}", w.run(*wrong), 2, w)
        equal("resets", w.host.resets(), 0)


@case
def persistence_off(w):
    """A persistence mode that was off is not switched"""
    w.begin()
    put(w.host.root + "/double/persistence", "GPU-1, Disabled\n")
    equal("exit code", w.run(), 0, w)
    equal("switches", [l for l in w.host.log() if "-pm" in l], [])
    equal("saved", w.api.get()["status"]["saved"], {"persistenceMode": {"GPU-1": "off"}})


@case
def amd(w):
    """An AMD device is reset by amd-smi"""
    w.begin(spec={"devices": [{"id": "0000:63:00.0", "uuid": "5f1a"}]})
    equal("exit code", w.run(), 0, w)
    equal("calls", w.host.log(), ["amd-smi reset --gpureset -g 0000:63:00.0"])
    equal("tool", w.act()["tool"], "amd-smi")


@case
def exit_codes(w):
    """Each exit code of the tool is reported with its meaning"""
    for code, words in ((3, "not available"), (4, "no permission"), (9, "no driver"), (15, "fallen off the bus"),
                        (255, "failed")):
        w.begin()
        w.host.mode(str(code))
        equal(f"exit code for {code}", w.run(), 1, w)
        equal("exitCode", w.act()["exitCode"], code)
        has("message", words, w.act()["message"])
        has("message", f"double exits with {code}", w.act()["message"])


@case
def tools(w):
    """A tool that is slow, hangs, is deaf to SIGTERM, crashes, lies or prints a megabyte"""
    for mode, code, exit_code, words in (
            ("slow", 0, 0, "successfully"), ("hang", 1, -1, "was ended after its deadline"),
            ("deaf", 1, -1, "was ended after its deadline"), ("killed", 1, -1, "failed"),
            ("lie", 0, 0, "successfully"), ("loud", 0, 0, "xxx")):
        w.begin()
        w.host.mode(mode)
        equal(f"exit code for {mode}", w.run("--tool-timeout", "1s" if mode in ("hang", "deaf") else "30s"), code, w)
        equal("exitCode", w.act()["exitCode"], exit_code)
        has("message", words, w.act()["message"])
        if len(w.act()["message"]) > 512:
            raise AssertionError("the message is too long")
        equal("resets", w.host.resets(), 1)


@case
def refusals(w):
    """Another node, nonce, phase or boot, a cancel, a dry run, an old act, a person's rung: nothing is done or written"""
    rows = [({}, {"node": "n2"}, "spec.node"), ({}, {"nonce": "f" * 32}, "spec.nonce"),
            ({"status": {"approval": {"bootID": "other"}}}, {}, "approval.bootID"),
            ({"status": {"approval": None}}, {}, "approval.bootID"),
            ({"status": {"act": {"startedAt": "2026-01-01T00:00:00Z"}}}, {}, "begun already"),
            ({"status": {"act": {"startedAt": 7}}}, {}, "status.act.startedAt"),
            ({"spec": {"cancel": True}}, {}, "cancelled"), ({"spec": {"dryRun": True}}, {}, "dry run"),
            ({"spec": {"rung": "person"}}, {}, "spec.rung"),
            ({"spec": {"devices": [{"uuid": "-i"}]}}, {}, "uuid"),
            ({"spec": {"devices": [{"uuid": "GPU-1"}, {"uuid": "5f1a", "id": "0000:63:00.0"}]}}, {}, "one vendor")]
    rows += [({"status": {"phase": phase}}, {}, "status.phase") for phase in
             ("Pending", "Draining", "Acting", "Verifying", "Restoring", "Succeeded", "Failed", "Cancelled", "Later", None)]
    for change, options, words in rows:
        w.begin()
        if "spec" in change:
            w.api.merge({"spec": change["spec"]})
        if "status" in change:
            w.api.merge({"status": change["status"]}, "/status")
        before = w.api.get()["metadata"]["resourceVersion"]
        equal(f"exit code for {change} {options}", w.run(**options), 2, w)
        has("reason", words, w.said)
        equal("version", w.api.get()["metadata"]["resourceVersion"], before)
        equal("calls", w.host.log(), [])


@case
def missing(w):
    """No object, no server, no tool, no root: nothing is done"""
    w.begin()
    w.api.raw("DELETE", f"{API}/n1-1")
    equal("no object", w.run(), 2, w)
    w.begin()
    equal("no root", w.run(plain=True), 2, w)
    has("reason", "--root was not given", w.said)
    os.rename(w.host.root + "/usr/local/bin/nvidia-smi", w.host.root + "/kept")
    equal("no tool", w.run(), 2, w)
    os.rename(w.host.root + "/kept", w.host.root + "/usr/local/bin/nvidia-smi")
    has("reason", "the host has no nvidia-smi", w.said)
    equal("no server", w.run("--kubeconfig", "/nowhere"), 2, w)
    equal("phase", w.api.get()["status"]["phase"], "Approved")
    equal("calls", w.host.log(), [])


@case
def busy(w):
    """Processes that keep a device open are named, and nothing is reset"""
    w.begin()
    uid = "11111111-2222-3333-4444-555555555555"
    os.makedirs(w.host.root + f"/var/log/pods/team_a-worker-0_{uid}", exist_ok=True)
    w.host.process(4711, "python", "/dev/nvidia3", f"0::/kubepods/pod{uid}/c\n")
    w.host.process(4712, "other", "/dev/nvidia4")
    equal("exit code", w.run(), 3, w)
    status = w.api.get()["status"]
    equal("phase", status["phase"], "Approved")
    equal("holders", status["act"]["holders"], [{"pid": 4711, "comm": "python", "pod": "team/a-worker-0"}])
    equal("startedAt", status["act"].get("startedAt"), None)
    has("message", "python (4711) of team/a-worker-0", status["act"]["message"])
    equal("resets", w.host.resets(), 0)
    # It lets go in time.
    w.begin()
    w.host.process(4711, "python", "/dev/nvidia3")
    actor = w.start("--holders-wait", "60s")
    until("the tool was asked", lambda: len(w.host.log()) == 1)
    shutil.rmtree(w.host.proc + "/4711")
    equal("exit code", actor.wait(60), 0)
    actor.stderr.close()
    equal("resets", w.host.resets(), 1)


@case
def own_agent(w):
    """The process of Holdfast's own agent that asks the driver is ended for the reset, after the intent"""
    w.begin()
    watcher = subprocess.Popen(["sleep", "600"])
    w.host.process(watcher.pid, "exe", "/dev/nvidia3")
    put(f"{w.host.proc}/{watcher.pid}/cmdline", "/proc/self/exe\0agent\0--nvml=lib\0--nvml-child\0")
    phase = []

    def hook(method, path, body):
        if method == "PATCH":
            phase.append(watcher.poll())
    w.api.hook = hook
    equal("exit code", w.run(), 0, w)
    equal("end", watcher.wait(10), -signal.SIGKILL)
    equal("before the intent", phase[0], None)
    equal("resets", w.host.resets(), 1)


@case
def new_child(w):
    """The agent has replaced its process after the search for holders: the new one is ended too"""
    w.begin()
    watcher = subprocess.Popen(["sleep", "600"])

    def hook(method, path, body):
        if method == "PATCH" and not os.path.exists(f"{w.host.proc}/{watcher.pid}"):
            w.host.process(watcher.pid, "exe", "/dev/nvidia3")
            put(f"{w.host.proc}/{watcher.pid}/cmdline", "/proc/self/exe\0agent\0--nvml=lib\0--nvml-child\0")
    w.api.hook = hook
    equal("exit code", w.run(), 0, w)
    equal("end", watcher.poll(), -signal.SIGKILL)
    equal("resets", w.host.resets(), 1)


@case
def conflict(w):
    """Another write between read and intent: the object is checked again, and the act is done once or not at all"""
    def touch_first(spec):
        done = []

        def hook(method, path, body):
            if method == "PATCH" and not done:
                done.append(1)
                w.api.merge(spec)
        return hook
    w.begin()
    w.api.hook = touch_first({"metadata": {"annotations": {"touched": "1"}}})
    equal("exit code", w.run(), 0, w)
    equal("resets", w.host.resets(), 1)
    w.begin()
    w.api.hook = touch_first({"spec": {"cancel": True}})
    equal("exit code", w.run(), 2, w)
    has("reason", "cancelled", w.said)
    equal("resets", w.host.resets(), 0)


@case
def lost_replies(w):
    """A reply to the intent that is lost, with the write done or not: the act is done once"""
    for word in ("lose", "drop"):
        w.begin()
        done = []

        def hook(method, path, body):
            if method == "PATCH" and not done:
                done.append(1)
                return word
            return None
        w.api.hook = hook
        equal(f"exit code for {word}", w.run(), 0, w)
        equal("resets", w.host.resets(), 1)
        equal("exitCode", w.act()["exitCode"], 0)


@case
def two_actors(w):
    """Two actors that read the same approval: one acts, the other one does nothing"""
    w.begin()
    w.host.mode("slow")
    gate = threading.Barrier(2)

    def hook(method, path, body):
        if method == "PATCH" and b'"Acting"' in body and not gate.broken:
            try:
                gate.wait(20)
            except threading.BrokenBarrierError:
                pass
            gate.abort()
    w.api.hook = hook
    actors = [w.start(), w.start()]
    codes = sorted(a.wait(60) for a in actors)
    for a in actors:
        a.stderr.close()
    equal("exit codes", codes, [0, 2])
    equal("resets", w.host.resets(), 1)


STEPS = {
    "before the read": ("GET", "drop", 0), "after the read": ("GET", "after", 0),
    "before the intent": ("PATCH", "drop", 0), "after the intent": ("PATCH", "after", 0),
    "in the act": None, "before the result": ("PATCH", "drop", 1), "after the result": ("PATCH", "after", 1),
}


def kill_at(w, step, *flags):
    """Runs the actor and kills it there with SIGKILL."""
    box, seen = {}, []

    def strike():
        until("the actor has a pid", lambda: "actor" in box)
        box["actor"].kill()
        box["actor"].wait(30)

    def before(method, path, body):
        if STEPS[step] is None or method != STEPS[step][0]:
            return None
        seen.append(1)
        if len(seen) - 1 == STEPS[step][2] and STEPS[step][1] == "drop":
            strike()
            return "drop"
        return None

    def after(method, path):
        if STEPS[step] is not None and method == STEPS[step][0] and STEPS[step][1] == "after" and \
                len(seen) - 1 == STEPS[step][2]:
            strike()
            return "lose"
        return None
    w.api.hook, w.api.hook_after = before, after
    box["actor"] = w.start(*flags)
    if STEPS[step] is None:
        until("the act has begun", lambda: w.host.resets() > 0 or read(w.host.sysrq))
        strike()
    box["actor"].wait(60)
    box["actor"].stderr.close()
    w.api.hook, w.api.hook_after = lambda *_: None, lambda *_: None
    equal(f"end {step}", box["actor"].returncode, -signal.SIGKILL)


@case
def killed_reset(w):
    """kill -9 of the actor at each step of a reset: never two acts"""
    for step in STEPS:
        w.begin()
        w.host.mode("slow" if step == "in the act" else "done")
        kill_at(w, step)
        begun = w.act().get("startedAt") is not None
        equal(f"intent {step}", begun, step not in ("before the read", "after the read", "before the intent"))
        codes = [w.run(), w.run()]
        equal(f"later actors {step}", codes, [2, 2] if begun else [0, 2], w)
        # An actor that was killed between intent and act leaves an act that was never done.
        equal(f"acts {step}", w.host.resets(), 0 if step == "after the intent" else 1)


@case
def killed_reboot(w):
    """kill -9 of the actor at each step of a reboot: never two acts"""
    flags = ("--only", "sysrq", "--sysrq", w.host.sysrq)
    for step in STEPS:
        w.begin("reboot")
        kill_at(w, step, *flags, *(("--sync-wait", "5s") if step == "in the act" else ()))
        begun = w.act().get("startedAt") is not None
        codes = [w.run(*flags), w.run(*flags)]
        equal(f"later actors {step}", codes, [2, 2] if begun else [1, 2], w)
        letters = {"after the intent": "", "in the act": "s"}.get(step, "sub")
        equal(f"acts {step}", read(w.host.sysrq), letters)


@case
def reboot_logind(w):
    """logind is asked over D-Bus; its shutdown ends the actor, and an actor of the next boot does nothing"""
    w.begin("reboot")
    asked, box = [], {}

    def on_reboot():
        asked.append(1)
        double.shutting_down = True
        threading.Timer(1.5, lambda: box["actor"].terminate()).start()
        return False
    path = w.host.root + "/run/dbus/system_bus_socket"
    double = logind.Logind(path, on_reboot)
    box["actor"] = w.start("--orderly-wait", "60s", "--init-pid", "1", "--sysrq", w.host.sysrq)
    equal("end", box["actor"].wait(60), -signal.SIGTERM)
    box["actor"].stderr.close()
    equal("calls", len(asked), 1)
    equal("sysrq", read(w.host.sysrq), "")
    equal("phase", w.api.get()["status"]["phase"], "Acting")
    put(w.host.proc + "/sys/kernel/random/boot_id", "22222222-2222-2222-2222-222222222222\n")
    equal("next boot", w.run(), 2, w)
    equal("calls", len(asked), 1)
    # It refuses, and it accepts without a shutdown: the next method has its turn.
    for refuses, words in ((True, "logind: exit code 1"), (False, "no shutdown began")):
        w.begin("reboot")
        double.shutting_down = False
        double.on_reboot = lambda: refuses
        equal("exit code", w.run("--sysrq", w.host.sysrq), 1, w)
        has("message", words, w.act()["message"])
        equal("sysrq", read(w.host.sysrq), "sub")
    # It begins a shutdown that never ends.
    w.begin("reboot")
    double.shutting_down = True
    equal("exit code", w.run("--only", "logind"), 1, w)
    has("message", "the shutdown did not end", w.act()["message"])
    equal("tool", w.act()["tool"], "logind")
    os.unlink(path)


@case
def reboot_signal(w):
    """systemd is asked by SIGRTMIN+5, before sysrq, and only if the process is systemd"""
    script = ("import signal, sys\n"
              "signal.signal(signal.SIGRTMIN + 5, lambda *_: open(sys.argv[1], 'a').write('reboot\\n'))\n"
              "print('ready', flush=True)\n"
              "while True: signal.pause()\n")
    heard = w.host.folder + "/init"
    put(heard, "")
    init = subprocess.Popen([sys.executable, "-c", script, heard], stdout=subprocess.PIPE)
    try:
        init.stdout.readline()
        w.begin("reboot")
        w.host.process(init.pid, "systemd")
        flags = ("--init-pid", str(init.pid), "--sysrq", w.host.sysrq)
        equal("exit code", w.run(*flags), 1, w)
        equal("heard", read(heard), "reboot\n")
        equal("sysrq", read(w.host.sysrq), "sub")
        has("message", "signal: no reboot in time", w.act()["message"])
        equal("tool", w.act()["tool"], "sysrq")
        for only, reboots, letters in (("signal", "reboot\n", ""), ("sysrq", "", "sub")):
            w.begin("reboot")
            w.host.process(init.pid, "systemd")
            put(heard, "")
            equal("exit code", w.run(*flags, "--only", only), 1, w)
            equal("heard", read(heard), reboots)
            equal("sysrq", read(w.host.sysrq), letters)
        w.begin("reboot")
        w.host.process(init.pid, "tini")
        put(heard, "")
        equal("not systemd", w.run("--init-pid", str(init.pid), "--only", "signal"), 2, w)
        equal("heard", read(heard), "")
    finally:
        init.kill()
        init.wait()
        init.stdout.close()


@case
def reboot_methods(w):
    """A method whose path was not given is not there, and without any nothing is written"""
    w.begin("reboot")
    before = w.api.get()["metadata"]["resourceVersion"]
    equal("exit code", w.run(plain=True), 2, w)
    has("reason", "no method to reboot is available", w.said)
    for only in ("signal", "sysrq"):
        equal("exit code", w.run("--only", only), 2, w)
    equal("version", w.api.get()["metadata"]["resourceVersion"], before)
    equal("wrong", w.run("--only", "bmc"), 2, w)


@case
def watchdog(w):
    """A watchdog is armed before a reboot; a shutdown leaves it armed, and an act that failed disarms it"""
    flags = ("--only", "sysrq", "--sysrq", w.host.sysrq, "--watchdog", w.host.watchdog)
    w.begin("reboot")
    actor = w.start(*flags, "--sync-wait", "60s")
    until("the act has begun", lambda: read(w.host.sysrq) == "s")
    actor.kill()
    actor.wait()
    actor.stderr.close()
    equal("written", read(w.host.watchdog), "\0")
    w.begin("reboot")
    equal("exit code", w.run(*flags), 1, w)
    equal("written", read(w.host.watchdog), "\0V")
    w.begin("reboot")
    equal("no watchdog", w.run(*flags[:-1], w.host.folder + "/none"), 1, w)
    has("message", "watchdog: No such file", w.act()["message"])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if INSIDE not in os.environ:
        enter_namespaces()
    folder = tempfile.mkdtemp(prefix="holdfast-mend-")
    failed = 0
    try:
        cover_machine(folder)
        world = World(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), folder)
        for function in CASES:
            try:
                function(world)
                print("ok  ", function.__doc__, flush=True)
            except Exception:
                failed += 1
                print("FAIL", function.__doc__, "\n", traceback.format_exc(), flush=True)
        world.api.server.kill()
        world.api.server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
