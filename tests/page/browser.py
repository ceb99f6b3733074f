# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A headless Chromium for tests, driven by chromedriver's W3C WebDriver protocol over HTTP.

Browser() starts both programs; close() ends them. find_browser() ends the test with 77 if Debian's packages chromium and
chromium-driver are not installed.
"""
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Shift": "\ue008"}
PAUSE = threading.Event()
ANSWER_MAX = 90  # seconds for one command, also under a sanitizer on a busy machine


def missing_programs():
    """The programs of a Browser that this machine lacks."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


def find_browser():
    """Ends the test with 77 if there is no browser here."""
    missing = missing_programs()
    if missing:
        print(f"skipped: no {' and no '.join(missing)}; tools/need browser installs Debian's packages", file=sys.stderr)
        sys.exit(77)


def until(what, look, patience=30.0):
    """Returns the first true answer of look. AssertionError: there was none in time."""
    end = time.monotonic() + patience
    while True:
        try:
            found = look()
        except (CommandFailed, KeyError, TypeError):
            found = None
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not in time: {what}")
        PAUSE.wait(0.05)


class CommandFailed(Exception):
    """The driver refused a command, such as one for an element that the page has replaced."""


class Element:
    def __init__(self, browser, reference):
        self.browser = browser
        self.reference = reference

    def ask(self, path):
        return self.browser.command("GET", f"element/{self.reference}/{path}")

    def click(self):
        self.browser.command("POST", f"element/{self.reference}/click", {})

    def write(self, text):
        self.browser.command("POST", f"element/{self.reference}/value", {"text": text})

    @property
    def text(self):
        return self.ask("text")

    @property
    def role(self):
        return self.ask("computedrole")

    @property
    def label(self):
        return self.ask("computedlabel")


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="page-browser-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       env={**os.environ, "HOME": self.folder})
        self.session = None
        self.port = None
        while line := self.driver.stdout.readline():
            started = re.search(r"started successfully on port (\d+)", line)
            if started:
                self.port = int(started[1])
                break
        threading.Thread(target=self.driver.stdout.read, daemon=True).start()
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
                            "--no-first-run", "--disable-background-networking", "--force-device-scale-factor=1", "--lang=en-GB",
                            "--hide-scrollbars", "--window-size=1280,900", f"--user-data-dir={self.folder}/profile"]}
        reply = self.send("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = reply["sessionId"]

    def close(self):
        try:
            if self.session:
                self.send("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait()
            until("the browser has ended and leaves its folder alone", self.remove_folder)

    def remove_folder(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        return not os.path.exists(self.folder)

    def send(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_MAX)
        connection.request(method, path, body=None if body is None else json.dumps(body), headers={"Content-Type": "application/json"})
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value and "stacktrace" in value:
            raise CommandFailed(f"{method} {path}: {value['error']}: {value['message'].splitlines()[0]}")
        return value

    def command(self, method, path, body=None):
        return self.send(method, f"/session/{self.session}/{path}", body)

    # ---- the page

    def go(self, address):
        self.command("POST", "url", {"url": address})

    @property
    def address(self):
        return self.command("GET", "url")

    @property
    def title(self):
        return self.command("GET", "title")

    def run(self, script, *args):
        """Runs a function body in the page. Returns its result as JSON."""
        return self.command("POST", "execute/sync", {"script": script, "args": list(args)})

    def wait_for(self, script, *args, patience=30.0):
        return until(script, lambda: self.run(script, *args), patience)

    def all(self, css):
        found = self.command("POST", "elements", {"using": "css selector", "value": css})
        return [Element(self, one[ELEMENT]) for one in found]

    def find(self, css):
        return until(f"an element {css}", lambda: self.all(css))[0]

    def button(self, name):
        """The visible button with this name."""
        reference = self.wait_for("return [...document.querySelectorAll('button')].find(b => b.offsetParent && b.textContent.trim() === arguments[0])", name)
        return Element(self, reference[ELEMENT])

    @property
    def focused(self):
        return Element(self, self.command("GET", "element/active")[ELEMENT])

    def press(self, *keys):
        actions = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self.command("POST", "actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    # ---- the window

    def cdp(self, name, **params):
        return self.command("POST", "goog/cdp/execute", {"cmd": name, "params": params})

    def look(self, width, scheme="light", height=900):
        """Sets the width of the page in CSS pixels, and the colour scheme."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path, whole=True):
        """Writes a PNG of the page, or of the part that the window shows."""
        clip = {}
        if whole:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1}}
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.cdp("Page.captureScreenshot", format="png", **clip)["data"]))

    def complaints(self):
        """What the browser has logged since the last call: errors of scripts, refused requests and styles."""
        return [entry["message"] for entry in self.command("POST", "se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    # ---- other tabs

    @property
    def tab(self):
        return self.command("GET", "window")

    def open_tab(self):
        handle = self.command("POST", "window/new", {"type": "tab"})["handle"]
        self.switch(handle)
        return handle

    def switch(self, handle):
        self.command("POST", "window", {"handle": handle})

    def close_tab(self):
        self.command("DELETE", "window")
