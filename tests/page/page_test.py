#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""page_test.py HOLDFAST [--small|--large|TEST…]: the page of `holdfast up` in a headless Chromium.

--large is the test of 10,000 jobs, --small are all others.

Real jobs run, one of which restarts after a rank is killed. Every screen is opened in light and dark and from 320 to 1,920 pixels; then come names
and roles, the keyboard, filters, actions, a connection that breaks, two windows with one stream, and 10,000 jobs with 1,000
ranks. PAGE_PICTURES=FOLDER keeps a picture of each screen.
"""
import datetime
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests" / "clients"))
sys.dont_write_bytecode = True
from browser import Browser, find_browser, until
from plane import call

HOLDFAST = os.path.abspath(sys.argv[1])
PICTURES = os.environ.get("PAGE_PICTURES")
WIDTHS = (320, 768, 1280, 1920)
SCHEMES = ("light", "dark")
MANY_JOBS = 10000
MANY_RANKS = 1000
FRAME_MAX_MS = 100
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
HEALTH = "/apis/holdfast.dev/v1alpha1/devicehealths"
TRAIN = """
import os, pathlib, sys, threading
sys.path.insert(0, os.environ["REPORT"])
from holdfast_report import report
rank = int(os.environ["RANK"])
killed = pathlib.Path(os.environ["FOLDER"], "killed")
for step in range(1, 100000):
    threading.Event().wait(0.05)
    report(step, 90 if rank == 2 else 45, 5, total=100000)
    print("step", step, flush=True)
    if rank == 1 and step == 20 and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), 9)
"""
# Notes from now on, in milliseconds: frames whose work took more than 50 ms, long tasks, and the gaps between frames.
WATCH_FRAMES = """
window.frames = [];
window.gaps = [];
let last = performance.now();
const note = now => { gaps.push(now - last); last = now; requestAnimationFrame(note); };
requestAnimationFrame(now => { last = now; note(now); });
for (const type of ['long-animation-frame', 'longtask'])
  new PerformanceObserver(list => frames.push(...list.getEntries().map(one => one.duration))).observe({type});
"""
LIVE = "return document.querySelector('#live').textContent.trim() === 'Live'"


def job(name, script, workers=0, spec=None, **pod):
    container = {"name": "pytorch", "image": "none", "command": ["/usr/bin/env", "python3", "-uc", script],
                 "env": [{"name": "REPORT", "value": str(TOP / "python" / "src")}, {"name": "FOLDER", "value": str(plane.folder)}]}
    replica = {"restartPolicy": "ExitCode", "template": {"spec": {"containers": [container], **pod}}}
    replicas = {"Master": {"replicas": 1, **replica}}
    if workers:
        replicas["Worker"] = {"replicas": workers, **replica}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
            "spec": {"runPolicy": spec or {}, "pytorchReplicaSpecs": replicas}}


class Plane:
    """`holdfast up` with its page."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="page-plane-"))
        self.errors = open(self.folder / "stderr", "ab")
        self.process = None
        self.opened = self.address = None

    def start(self, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([HOLDFAST, "up", "--data-dir", self.folder / "plane", "--listen", "127.0.0.1:0",
                                         "--page-listen", listen],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        while line := self.process.stdout.readline():
            found = re.search(r"page: (http://([\d.]+):(\d+)/\S*)", line)
            if found:
                self.opened, self.address, self.port = found[1], f"http://{found[2]}:{found[3]}", int(found[3])
                break
        else:
            raise AssertionError("up printed no address of the page: " + (self.folder / "stderr").read_text())
        threading.Thread(target=self.drain, args=(self.process.stdout,), daemon=True).start()

    @staticmethod
    def drain(stream):
        with stream:
            stream.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        """Ends the pods, too: they outlive a plane that is only stopped."""
        subprocess.run([HOLDFAST, "down", "--data-dir", self.folder / "plane", "--timeout", "60s"], check=True, capture_output=True)
        self.process.wait()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def submit(self, manifest):
        return call(self.folder / "plane", JOBS, manifest)

    def send(self, method, path, bodies, kind="application/json"):
        """Sends all bodies over one connection."""
        plane = self.folder / "plane"
        host, port = re.search(r"server: https://([\d.]+):(\d+)", (plane / "kubeconfig").read_text()).groups()
        connection = http.client.HTTPSConnection(host, int(port), timeout=60, context=ssl.create_default_context(cafile=plane / "ca.pem"))
        headers = {"Authorization": "Bearer " + (plane / "token").read_text().strip(), "Content-Type": kind}
        for body in bodies:
            connection.request(method, path, json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read()
            if reply.status not in (200, 201):
                raise AssertionError(f"{method} {path}: {reply.status}: {text[:500]}")
        connection.close()


class Relay:
    """Passes connections on to a port until it is cut, as a network or a proxy does."""

    def __init__(self, port):
        self.to = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.streams = []
        self.listen()

    def listen(self):
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                here, _ = listener.accept()
                there = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            self.streams += [here, there]
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def carry(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.streams:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        self.streams = []

    def mend(self):
        self.listener = until("the port is free", lambda: self.bind())
        self.listen()

    def bind(self):
        try:
            return socket.create_server(("127.0.0.1", self.port))
        except OSError:
            return None


plane = Plane()
browser = None


def setUpModule():
    global browser
    find_browser()
    plane.start()
    unittest.addModuleCleanup(plane.remove)
    plane.submit(job("train", TRAIN, 2, {"recovery": {"restartScope": "Job", "settleSeconds": 1, "backoff": {"initialSeconds": 1}}}))
    plane.submit(job("breaks", "raise SystemExit('RuntimeError: <b>no such file</b>')", 0, {"backoffLimit": 0}))
    plane.submit(job("waits", "pass", 1, nodeSelector={"no": "node"}))
    plane.submit(job("pauses", "pass", 1, {"suspend": True}))
    plane.submit(job("ends", "pass"))
    browser = Browser()
    unittest.addModuleCleanup(browser.close)
    browser.look(1280)
    browser.go(plane.opened)
    browser.wait_for(LIVE)
    browser.wait_for("return /^5 jobs: 1 Failed, 1 Created, 1 Suspended, 1 Running, 1 Succeeded$/.test(document.querySelector('#summary').textContent)",
                     patience=90)


def open_screen(path, heading):
    browser.go(plane.address + path)
    browser.wait_for("return document.querySelector('#live').textContent.trim() === 'Live' && document.querySelector('h1')?.textContent === arguments[0] "
                     "&& document.querySelector('main > div')", heading)


def texts(css):
    return browser.run("return [...document.querySelectorAll(arguments[0])].filter(e => e.offsetParent).map(e => e.textContent)", css)


SCREENS = {"jobs": ("/", "Jobs"), "job": ("/j/default/PyTorchJob/train", "train"), "nodes": ("/nodes", "Nodes"),
           "node": ("/n/local", "local"), "recovery": ("/recovery?window=1h", "Recovery")}
# Text that is hard to read: below 4.5:1 against the colour behind it.
LOW_CONTRAST = """
const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgb = color => {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
};
const light = ([r, g, b]) => {
  const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = node => {
  for (; node; node = node.parentElement) {
    const color = rgb(getComputedStyle(node).backgroundColor);
    if (color[3] === 255)
      return color;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll('body *')].filter(node => node.offsetParent && !node.closest('.aside, .skip, select, input')
    && [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim())).map(node => {
  const [a, b] = [light(rgb(getComputedStyle(node).color)), light(behind(node))];
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.outerHTML.slice(0, 100)];
}).filter(([ratio]) => ratio < 4.5);
"""
# What is wider than the page, but for parts of tables that scroll by themselves.
TOO_WIDE = """
return document.documentElement.scrollWidth > innerWidth
  ? [...document.querySelectorAll('body *')].filter(node => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest('.sheet *')).map(node => node.outerHTML.slice(0, 100)) : [];
"""


class ScreenTest(unittest.TestCase):
    def test_screens_fit_each_width_and_scheme(self):
        until("the job has restarted", lambda: self.restarted(), 60)
        for name, (path, heading) in SCREENS.items():
            for scheme in SCHEMES:
                for width in WIDTHS:
                    with self.subTest(screen=name, scheme=scheme, width=width):
                        browser.look(width, scheme)
                        open_screen(path, heading)
                        self.assertEqual(browser.run(TOO_WIDE), [])
                        self.assertEqual(browser.run(LOW_CONTRAST), [])
                        if PICTURES:
                            browser.picture(f"{PICTURES}/{name}-{width}-{scheme}.png")
            self.assertEqual(browser.complaints(), [], name)
        browser.look(1280)

    @staticmethod
    def restarted():
        open_screen("/j/default/PyTorchJob/train", "train")
        return "Running" in texts(".head .state") and texts(".restarts tbody tr")

    def test_the_long_name_of_an_account_fits(self):
        browser.look(320)
        open_screen("/", "Jobs")
        browser.run("document.querySelector('#user').textContent = 'system:serviceaccount:the-namespace-of-a-large-team:its-account-for-people'")
        self.assertEqual(browser.run(TOO_WIDE), [])
        browser.look(1280)

    def test_the_page_without_script_lists_jobs(self):
        browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
        try:
            browser.go(plane.address + "/")
            names = [one.text for one in browser.all("tbody th, tbody td:first-child")]
        finally:
            browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
        self.assertIn("train", names)
        self.assertIn("breaks", names)

    def test_text_of_a_job_is_never_markup(self):
        open_screen("/j/default/PyTorchJob/breaks", "breaks")
        self.assertEqual(browser.all("main b"), [])


class RoleTest(unittest.TestCase):
    def test_landmarks_and_the_status_line(self):
        open_screen("/", "Jobs")
        self.assertEqual([one.role for one in browser.all("header, main, nav[aria-label=Screens]")], ["banner", "navigation", "main"])
        status = browser.find("#status")
        self.assertEqual(status.role, "status")
        self.assertRegex(status.text, r"^Live\s5 jobs: 1 Failed, 1 Created, 1 Suspended, 1 Running, 1 Succeeded$")
        self.assertEqual(browser.find("nav a[aria-current]").label, "Jobs")

    def test_the_table_of_jobs(self):
        for width in (320, 1280):  # columns that are hidden must not break the table for assistive technology
            browser.look(width)
            open_screen("/", "Jobs")
            table = browser.find("table.jobs")
            self.assertEqual((table.role, table.label), ("table", "Jobs"))
            row = browser.find("table.jobs tbody tr")
            self.assertEqual(row.role, "row")
            self.assertEqual(browser.find("table.jobs tbody th").role, "rowheader")
            self.assertEqual(browser.find("table.jobs thead th").role, "columnheader")
            states = texts("table.jobs tbody .state")
            self.assertEqual(set(states), {"Failed", "Running", "Created", "Suspended", "Succeeded"})
            self.assertEqual(len(browser.all("table.jobs tbody .state svg[aria-hidden=true]")), len(states))
        browser.look(1280)

    def test_fields_and_pictures_have_names(self):
        for path, heading in SCREENS.values():
            open_screen(path, heading)
            for one in browser.all("main input, main select, main button, main [role=img], main section"):
                if one.ask("displayed"):
                    self.assertNotEqual(one.label, "", one.ask("property/outerHTML")[:200])

    def test_the_job_screen_tells_the_restart(self):
        open_screen("/j/default/PyTorchJob/train", "train")
        row = browser.wait_for("const row = document.querySelector('.restarts tbody tr'); return row && [...row.children].map(cell => cell.textContent)")
        self.assertTrue(row[1].startswith("application"), row)
        self.assertIn("worker-0", row[3])
        self.assertIn("137", row[6])
        self.assertRegex(texts(".restarts small")[0], r"start pods [\d.]+ m?s")
        parts = texts(".timebar + .axis + ol li")
        self.assertIn("ended by a fault of class application", " ".join(browser.run("return [...document.querySelectorAll('.timebar ~ ol li')].map(e => e.textContent)")), parts)
        self.assertEqual(len(browser.all(".ranks tbody tr")), 3)
        self.assertEqual(texts(".command code"), ["holdfast why -n default pytorchjob train"])
        browser.wait_for("return document.querySelectorAll('.ranks .spark').length === 3", patience=60)


class KeyboardTest(unittest.TestCase):
    def setUp(self):
        open_screen("/", "Jobs")

    def test_walk_by_keys_alone(self):
        browser.press("j")
        first = browser.focused.text
        browser.press("j")
        second = browser.focused.text
        self.assertNotEqual(first, second)
        browser.press("k")
        self.assertEqual(browser.focused.text, first)
        browser.press("Enter")
        browser.wait_for("return document.querySelector('h1')?.textContent === arguments[0]", first)
        self.assertEqual(browser.focused.text, first, "the heading of the new screen has the focus")
        browser.press("Escape")
        browser.wait_for("return location.pathname === '/' && document.activeElement.textContent === arguments[0]", first)
        browser.press("2")
        browser.wait_for("return document.querySelector('h1')?.textContent === 'Nodes'")
        browser.press("1")
        browser.wait_for("return document.querySelector('h1')?.textContent === 'Jobs'")

    def test_search(self):
        browser.press("/")
        self.assertEqual(browser.focused.label, "Search")
        browser.press(*"brea")
        browser.wait_for("return location.search === '?q=brea' && document.querySelectorAll('.jobs tbody tr').length === 1")
        browser.press("j")
        browser.wait_for("return location.search === '?q=breaj'")
        browser.press("Escape")
        browser.wait_for("return document.activeElement.localName !== 'input'")

    def test_help_and_single_keys_off(self):
        browser.press("?")
        self.assertEqual((browser.find("#help").role, browser.find("#help").label), ("dialog", "Keys"))
        browser.find("#keys-on").click()
        browser.press("Escape")
        browser.wait_for("return !document.querySelector('dialog[open]')")
        browser.press("2")
        browser.press("?")
        self.assertEqual(browser.run("return [location.pathname, document.querySelector('dialog[open]') === null]"), ["/", True])
        browser.find("#help-button").click()
        browser.find("#keys-on").click()
        browser.find("#help-close").click()

    def test_each_stop_of_the_tab_key_can_be_seen(self):
        open_screen("/j/default/PyTorchJob/train", "train")
        browser.run("document.activeElement.blur()")
        stops = set()
        for _ in range(60):
            browser.press("Tab")
            stop = browser.run("""const e = document.activeElement, style = getComputedStyle(e);
                return [e.localName, e.textContent.slice(0, 40), e === document.body || style.outlineStyle !== 'none']""")
            stops.add(tuple(stop[:2]))
            self.assertTrue(stop[2], stop)
        self.assertIn(("button", "Copy"), stops)
        self.assertIn(("button", "Suspend…"), stops)
        self.assertIn(("button", "worker-0"), stops)


class ListTest(unittest.TestCase):
    def test_filters_are_in_the_address(self):
        open_screen("/?state=Suspended", "Jobs")
        browser.wait_for("return document.querySelectorAll('.jobs tbody tr').length === 1")
        self.assertEqual(texts(".jobs .open"), ["pauses"])
        self.assertIn("Suspended", browser.find(".chip[aria-current]").text)
        browser.find(".chip").click()
        browser.wait_for("return location.search === '' && document.querySelectorAll('.jobs tbody tr').length === 5")
        browser.run("const s = document.querySelector('select[name=sort]'); s.value = 'name'; s.dispatchEvent(new Event('change'))")
        browser.wait_for("return location.search === '?sort=name' && document.querySelector('.jobs .open').textContent === 'breaks'")
        browser.command("POST", "back", {})
        browser.wait_for("return location.search === '' && document.querySelector('select[name=sort]').value === ''")

    def test_rows_and_the_focus_stay_over_changes(self):
        open_screen("/", "Jobs")
        browser.wait_for("""window.row = [...document.querySelectorAll('.jobs .open')].find(a => a.textContent === 'train').closest('tr');
            row.querySelector('.open').focus(); window.before = row.querySelector('progress').value; return true""", patience=60)
        browser.wait_for("return row.querySelector('progress').value > before + 5", patience=60)
        plane.submit(job("another", "pass", 1, {"suspend": True}))
        browser.wait_for("return document.querySelectorAll('.jobs tbody tr').length === 6")
        self.assertTrue(browser.run("return row.isConnected && document.activeElement === row.querySelector('.open')"))
        delete_job("another")
        browser.wait_for("return document.querySelectorAll('.jobs tbody tr').length === 5")

    def test_a_job_that_is_not_there(self):
        """The page says so, and shows neither empty parts of a job nor buttons that act on it."""
        browser.go(plane.address + "/j/default/PyTorchJob/nothing")
        problem = browser.find("#problem")
        self.assertEqual(problem.role, "alert")
        self.assertIn("nothing", problem.text)
        self.assertEqual(browser.run("return [...document.querySelectorAll('main button, main h2')].filter(e => e.offsetParent).map(e => e.textContent)"), ["Try again"])
        browser.complaints()


def delete_job(name):
    subprocess.run([HOLDFAST, "delete", "--yes", "pytorchjob/" + name], check=True, capture_output=True,
                   env={**os.environ, "KUBECONFIG": str(plane.folder / "plane" / "kubeconfig")})


class JobTest(unittest.TestCase):
    def test_log_and_yaml(self):
        open_screen("/j/default/PyTorchJob/train", "train")
        browser.button("worker-1").click()
        browser.wait_for("return /step \\d+/.test(document.querySelector('pre.log').textContent)")
        # Before the container starts its log is answered with 400, and the page asks again.
        self.assertEqual([c for c in browser.complaints() if "/log?rank=worker-1" not in c], [])
        self.assertEqual(browser.focused.text, "Log of worker-1", "the heading of the log has the focus")
        browser.button("Restart this rank…").click()
        self.assertEqual(browser.find("dialog[open]").label, "Restart worker-1 of train?")
        browser.button("Cancel").click()
        browser.find("summary").click()
        browser.wait_for("return document.querySelector('details pre').textContent.includes('kind: PyTorchJob')")

    def test_suspend_asks_and_can_be_taken_back(self):
        open_screen("/j/default/PyTorchJob/train", "train")
        browser.button("Suspend…").click()
        dialog = browser.find("dialog[open]")
        self.assertEqual((dialog.role, dialog.label), ("dialog", "Suspend train?"))
        browser.press("Escape")
        browser.wait_for("return !document.querySelector('dialog[open]')")
        self.assertEqual(browser.focused.text, "Suspend…", "the focus is back on the button")
        browser.button("Suspend…").click()
        browser.find("dialog[open] input[type=text]").write("a test of the page")
        browser.button("Suspend").click()
        browser.wait_for("return document.querySelector('.head .state').textContent === 'Suspended'")
        browser.button("Resume…").click()
        browser.button("Resume").click()
        browser.wait_for("return document.querySelector('.head .state').textContent === 'Running'", patience=60)
        self.assertEqual(browser.complaints(), [])


class NodeTest(unittest.TestCase):
    def report(self, state, *faults):
        """Writes what the agent of a node with two GPUs would report."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        faults = [{"detector": "xid", "code": code, "class": "reboot", "line": line, "lastTime": now, "count": 1, "active": True}
                  for code, line in faults]
        devices = [{"id": "0000:9d:00.0", "uuid": "GPU-1", "kind": "gpu", "state": state, "class": "reboot" if faults else "none", "faults": faults},
                   {"id": "0000:9e:00.0", "uuid": "GPU-2", "kind": "gpu", "state": "Healthy"}]
        plane.send("PATCH", HEALTH + "/gpu-node/status", [{"status": {"observedTime": now, "state": state, "devices": devices}}],
                   "application/merge-patch+json")

    def test_a_fault_of_a_device_and_its_end(self):
        plane.send("POST", HEALTH, [{"apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceHealth", "metadata": {"name": "gpu-node"}}])
        self.report("Unhealthy", (79, "NVRM: Xid 79 <i>GPU has fallen off the bus</i>"))
        open_screen("/nodes?state=Unhealthy", "Nodes")
        browser.wait_for("return document.querySelector('.nodes .open')?.textContent === 'gpu-node'")
        self.assertIn("1/2", texts(".nodes tbody td"))
        browser.press("j", "Enter")
        browser.wait_for("return document.querySelector('h1').textContent === 'gpu-node' && document.querySelector('.head .state').textContent === 'Unhealthy'")
        rows = browser.run("return [...document.querySelectorAll('section tbody tr')].map(row => [...row.children].map(cell => cell.textContent))")
        self.assertEqual(rows[0][:3], ["Unhealthy", "gpu · 0000:9d:00.0 · GPU-1", "reboot"])
        self.assertRegex(rows[0][3], r"^\d\d:\d\d:\d\d xid 79: NVRM: Xid 79 <i>GPU has fallen off the bus</i>$")
        self.assertEqual(rows[1][0], "Healthy")
        self.report("Healthy")
        browser.wait_for("return document.querySelector('.head .state').textContent === 'Healthy'", patience=8)
        self.assertEqual(browser.complaints(), [])


class StreamTest(unittest.TestCase):
    def tearDown(self):
        browser.look(1280)
        browser.go(plane.opened)
        browser.complaints()

    def test_a_cut_connection_is_shown_and_caught_up(self):
        relay = Relay(plane.port)
        browser.go(plane.opened.replace(f":{plane.port}/", f":{relay.port}/"))
        browser.wait_for(LIVE)
        relay.cut()
        browser.wait_for("return document.querySelector('#live').textContent.startsWith('Reconnecting (shown: ')")
        plane.submit(job("missed", "pass", 1, {"suspend": True}))
        self.assertNotIn("missed", texts(".jobs .open"))
        relay.mend()
        browser.wait_for(LIVE)
        browser.wait_for("return [...document.querySelectorAll('.jobs .open')].some(a => a.textContent === 'missed')")
        self.assertEqual(browser.all("#problem"), [])
        delete_job("missed")
        relay.cut()

    def test_a_killed_server_asks_for_a_new_address(self):
        """The server forgets its sessions when it ends."""
        browser.go(plane.opened)
        browser.wait_for(LIVE)
        plane.kill()
        browser.wait_for("return document.querySelector('#live').textContent.startsWith('Reconnecting')")
        plane.start(f"127.0.0.1:{plane.port}")
        browser.wait_for("return document.querySelector('h1').textContent === 'Log in'", patience=60)
        self.assertEqual(browser.focused.label, "Token")
        # A visitor without a session has made no error.
        browser.go(plane.address)
        browser.wait_for("return document.querySelector('h1')?.textContent === 'Log in'", patience=60)
        self.assertEqual(browser.run("return document.querySelector('.login [role=alert]').textContent"), "")
        browser.complaints()
        browser.go(plane.opened)
        browser.wait_for(LIVE)
        browser.wait_for("return document.querySelectorAll('.jobs tbody tr').length === 5", patience=60)

    def test_windows_share_one_stream(self):
        first = browser.tab
        browser.go(plane.address)
        browser.wait_for(LIVE)
        second = browser.command("POST", "window/new", {"type": "window"})["handle"]
        browser.switch(second)
        browser.go(plane.address)
        browser.wait_for(LIVE)
        self.follow("first-change")
        streams = "return performance.getEntriesByType('resource').filter(one => one.name.includes('/api/v1/events')).length"
        self.assertEqual(browser.run(streams), 0, "the second window has no stream of its own")
        browser.switch(first)
        browser.close_tab()
        browser.switch(second)
        self.follow("second-change")
        self.assertEqual(texts("#live"), ["Live"])

    def follow(self, name):
        """A new job comes sooner than the list is renewed without a change."""
        plane.submit(job(name, "pass", 1, {"suspend": True}))
        browser.wait_for("return [...document.querySelectorAll('.jobs .open')].some(a => a.textContent === arguments[0])", name, patience=8)
        delete_job(name)

    def test_a_hidden_page_closes_its_stream(self):
        browser.go(plane.opened)
        browser.wait_for(LIVE)
        browser.run("""Object.defineProperty(document, 'hidden', {configurable: true, get: () => window.isHidden});
            window.isHidden = true; document.dispatchEvent(new Event('visibilitychange'))""")
        browser.wait_for("return document.querySelector('#live').textContent.trim() === 'Paused'")
        browser.run("window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
        browser.wait_for(LIVE)


class ZScaleTest(unittest.TestCase):
    """Runs last, because the jobs stay."""

    def assert_short_frames(self, what, act):
        """Other work of the machine makes frames longer, so the best of three attempts counts."""
        worst = []
        for _ in range(3):
            browser.run(WATCH_FRAMES)
            act()
            frames, gaps = browser.run("return [frames, gaps]")
            self.assertGreater(len(gaps), 10)
            worst.append(round(max(frames, default=0)))
            print(f"{what}: {len(gaps)} frames, longest gap {max(gaps):.0f} ms, long frames {sorted(map(round, frames))}", file=sys.stderr)
            if worst[-1] < FRAME_MAX_MS:
                return
        self.fail(f"{what}: in each attempt a frame took longer than {FRAME_MAX_MS} ms: {worst}")

    @staticmethod
    def turn_pages():
        for word in ("Next →", "Next →", "Next →", "← Back"):
            browser.run("window.range = document.querySelector('.jobs .open').textContent")
            browser.button(word).click()
            browser.wait_for("return document.querySelector('.jobs .open').textContent !== window.range")

    @staticmethod
    def search():
        browser.press("/")
        browser.press(*"many-0777")
        browser.wait_for("return location.search.includes('q=many-0777') && document.querySelectorAll('.jobs tbody tr').length === 10")
        browser.run("const box = document.activeElement; box.value = ''; box.dispatchEvent(new Event('input'))")
        browser.wait_for("return !location.search.includes('q=') && document.querySelectorAll('.jobs tbody tr').length === 50")

    @staticmethod
    def turn_ranks():
        for word in ("Next →", "Next →", "Next →", "← Back", "← Back", "← Back"):
            browser.button(word).click()
        browser.run("window.loads = performance.getEntriesByType('resource').length")
        browser.wait_for("return performance.getEntriesByType('resource').slice(loads).filter(one => one.name.includes('/ranks')).length >= 2", patience=90)

    def test_many_jobs_and_ranks(self):
        plane.submit(job("large", "pass", MANY_RANKS - 1, nodeSelector={"no": "node"}))
        plane.send("POST", JOBS, (job(f"many-{i:05}", "pass", 1, {"suspend": True}) for i in range(MANY_JOBS)))
        open_screen("/", "Jobs")
        browser.wait_for("return document.querySelector('#summary').textContent.startsWith('10,006 jobs')", patience=180)
        self.assert_short_frames("pages of 10,000 jobs", self.turn_pages)
        self.assert_short_frames("search in 10,000 jobs", self.search)
        open_screen("/j/default/PyTorchJob/large", "large")
        browser.wait_for("return document.querySelector('.map').getAttribute('aria-label')?.startsWith('Map of 1,000 ranks: 1000 not running')", patience=180)
        self.assert_short_frames("1,000 ranks", self.turn_ranks)


if __name__ == "__main__":
    names = sys.argv[2:]
    if names == ["--large"]:
        names = ["ZScaleTest"]
    elif names == ["--small"]:
        del ZScaleTest
        names = []
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)
