# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The page of an operator that the chart installs, in a real Chromium, with tokens and rights of a real API server."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time

from kit import audit, build, image, render
from kit.check import Skip, condition, equal, want
from kit.operator import free_ports
from parts import helm, incluster

sys.path.insert(0, os.path.join(build.TOP, "tests", "page"))
import browser as chromium

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside", "helm"]
MINUTES = 5

OPERATOR = incluster.OPERATOR
MINE, OTHER, PEOPLE = "team-a", "team-b", "people"
# People, with what they may do in namespace MINE.
ACCOUNTS = {"nobody": None, "vera": "view", "ada": "edit"}
NAME = "holdfast.example.com"  # a name of the page beside localhost
# A token that is revoked: the page asks each 30 s, and the API server caches an answer for 10 s.
REVOKED_S = 60
PICTURES = os.environ.get("PAGE_PICTURES")
LIVE = "return document.querySelector('#live').textContent.trim() === 'Live'"
NAMES = "return [...document.querySelectorAll('table.jobs a.open')].map(a => a.textContent)"
TEXT = "return document.querySelector('main').innerText"


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    missing = chromium.missing_programs()
    if missing:
        raise Skip(f"no {' and no '.join(missing)} (Debian: chromium, chromium-driver)")
    incluster.load_holdfast(w)
    incluster.load_image(w, image.write_lookup, incluster.LOOKUP)
    start = time.monotonic()
    helm.change(w, "install", render.CHART, "page.enabled=true", f"page.hosts={{localhost,{NAME}}}")
    took = time.monotonic() - start
    for ns in (MINE, OTHER, PEOPLE):
        w.api.create("namespaces", None, {"metadata": {"name": ns}})
    for name, role in ACCOUNTS.items():
        w.api.create("serviceaccounts", PEOPLE, {"metadata": {"name": name}})
        if role:
            w.cluster.kubectl("-n", MINE, "create", "rolebinding", name, f"--clusterrole={role}",
                              f"--serviceaccount={PEOPLE}:{name}")
    for ns, name in ((MINE, "alpha"), (OTHER, "beta")):
        w.until("the namespace has its account", lambda ns=ns: w.api.find("serviceaccounts", ns, "default"))
        add_job(w, ns, name)
        w.until_condition(ns, name, "Running", 120)
    w.window = None
    w.port, = free_ports(1)
    w.forward = Forward(w, w.port)
    version = subprocess.run(["chromium", "--version"], capture_output=True, text=True).stdout.split()[:2]
    return f"the chart's operator, ready {took:.1f} s after helm install; kubectl port-forward, {' '.join(version)}"


class Forward:
    """`kubectl port-forward`, as the notes of the chart say; begun anew when its pod has ended."""

    def __init__(self, w, port, target="service/holdfast-page", to=80):
        self.argv = [build.find("kubectl"), "--kubeconfig", w.cluster.path("kubeconfig.admin"), "-n", OPERATOR,
                     "port-forward", target, f"{port}:{to}"]
        self.port, self.child, self.ended = port, None, threading.Event()
        self.log = open(w.cluster.path("port-forward.log"), "ab")
        self.begin()
        threading.Thread(target=self.keep, daemon=True).start()

    def begin(self):
        self.child = subprocess.Popen(self.argv, stdout=self.log, stderr=self.log)

    def keep(self):
        while not self.ended.wait(0.3):
            # It goes on after its pod has ended, and refuses each connection.
            if self.child.poll() is not None:
                self.begin()

    def again(self):
        self.child.terminate()
        self.child.wait()

    def end(self):
        self.ended.set()
        self.again()
        self.log.close()


def add_job(w, ns, name):
    """Two ranks that count to the end of days."""
    job = helm.worker_job(name, "n=0; while true; do n=$((n+1)); echo step $n; sleep 1; done")
    job["metadata"]["namespace"] = ns
    return w.api.create("pytorchjobs", ns, job)


def user(name):
    return f"system:serviceaccount:{PEOPLE}:{name}"


def ask(w, method, path, body=None, cookie=None, port=None, **headers):
    """A request that is no browser's: status, headers, text."""
    connection = http.client.HTTPConnection("127.0.0.1", port or w.port, timeout=30)
    sent = {"Host": f"localhost:{port or w.port}", **({"Cookie": cookie} if cookie else {}),
            **({"Content-Type": "application/json"} if body is not None else {}), **{k.replace("_", "-"): v for k, v in headers.items()}}
    connection.request(method, path, None if body is None else json.dumps(body), sent)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, reply.headers, text


def address(w, path="/"):
    return f"http://localhost:{w.port}{path}"


def window(w):
    """The browser, without a session."""
    if w.window is None:
        w.until("the page answers", lambda: ask(w, "GET", "/")[0] == 200)
        w.window = chromium.Browser()
    return w.window


def log_in(w, token, path="/"):
    """Opens a path of the page with a new session."""
    b = window(w)
    b.go(address(w, path))
    b.cdp("Network.clearBrowserCookies")
    b.go(address(w, path))
    b.look(1280)
    b.find("#token").write(token)
    b.button("Log in").click()
    b.wait_for("return !document.querySelector('.login') || document.querySelector('.login .bad:not([hidden])')")
    b.complaints()  # of the 401 that asked for the login
    return b


def picture(b, name):
    if PICTURES:
        os.makedirs(PICTURES, exist_ok=True)
        for scheme in ("light", "dark"):
            b.look(1280, scheme)
            b.picture(os.path.join(PICTURES, f"cluster-{name}-{scheme}.png"))
        b.look(1280)


def check_nobody(w):
    """A user without rights sees no job and no node, and is told which right is missing"""
    b = log_in(w, w.api.token_of(PEOPLE, "nobody"))
    b.wait_for("return document.querySelector('main').innerText.includes(arguments[0])", f"{user('nobody')}' may not list jobs")
    equal("rows", b.run(NAMES), [])
    picture(b, "nobody")
    for path, words in (("/nodes", "may not list nodes"), (f"/j/{MINE}/PyTorchJob/alpha", f"may not list pytorchjobs in namespace '{MINE}'"),
                        ("/recovery", "Recovery")):
        b.go(address(w, path))
        b.wait_for("return document.querySelector('main').innerText.includes(arguments[0])", words)
        text = b.run("return document.documentElement.innerText")
        want(not re.search(r"worker-\d|beta|real-0", text), f"{path} shows {text[:300]}")
    picture(b, "nobody-recovery")
    status, _, text = ask(w, "POST", "/api/v1/login", {"token": "eyJhbGciOi.e30.x"})
    equal("a token that nobody gave out", status, 401)
    want("does not accept this token" in text, text)


def check_one_namespace(w):
    """A user with rights in one namespace sees its jobs alone, also in the stream of changes"""
    b = log_in(w, w.api.token_of(PEOPLE, "vera"))
    b.wait_for(LIVE)
    equal("jobs", b.run(NAMES), ["alpha"])
    equal("user", b.find("#user").text, user("vera"))
    for ns, name in ((OTHER, "later-other"), (MINE, "later-mine")):
        add_job(w, ns, name)
    b.wait_for(NAMES + ".includes('later-mine')", patience=60)
    equal("namespaces to choose from", b.run("return [...document.querySelector('select[name=namespace]').options].map(o => o.value)"), ["", MINE])
    picture(b, "one-namespace")
    source = b.run("return fetch('/api/v1/events?once=1&since=x').then(r => r.text())")
    want(OTHER not in source and "beta" not in source, f"the stream tells {source[:300]}")
    want("later-other" not in b.run("return document.documentElement.outerHTML"), "a job of the other namespace is in the page")
    for ns, name in ((OTHER, "later-other"), (MINE, "later-mine")):
        w.api.delete("pytorchjobs", ns, name)
    b.wait_for(f"return !({NAMES[7:]}).includes('later-mine')")
    b.all("table.jobs a.open")[0].click()
    b.wait_for("return document.querySelectorAll('table.ranks tbody tr').length === 2")
    b.button("worker-0").click()
    b.wait_for("return /step \\d+/.test(document.querySelector('pre.log').innerText)")
    picture(b, "job")
    equal("complaints of the browser", b.complaints(), [])


def calls(w, name, verb, resource):
    """Status codes of the requests that this user has sent."""
    return [c["code"] for c in audit.calls(w.cluster.path("audit.log"), user=user(name))
            if (c["verb"], c["resource"], c["namespace"]) == (verb, resource, MINE)]


def act(b, word, reason):
    b.button(word + "…").click()
    b.wait_for("return document.querySelector('dialog[open] input')")
    b.find("dialog[open] input").write(reason)
    b.button(word).click()


def check_acts(w):
    """Suspend, resume, restart and logs are requests in the caller's name; without the right they are refused"""
    path = f"/j/{MINE}/PyTorchJob/alpha"
    b = log_in(w, w.api.token_of(PEOPLE, "vera"), path)
    act(b, "Suspend", "not mine")
    said = b.wait_for("return document.querySelector('dialog[open] .bad').innerText")
    want(user("vera") in said and "cannot patch" in said, said)
    picture(b, "refused")
    equal("requests of vera", calls(w, "vera", "patch", "pytorchjobs"), [403])
    want(not w.job(MINE, "alpha")["spec"].get("runPolicy", {}).get("suspend"), "the job is suspended")

    b = log_in(w, w.api.token_of(PEOPLE, "ada"), path)
    act(b, "Suspend", "maintenance of the switch")
    w.until_condition(MINE, "alpha", "Suspended")
    b.wait_for("return document.querySelector('.head').innerText.includes('Suspended')")
    w.until("its pods are gone", lambda: not w.pods(MINE, "alpha"))
    text = "the job waits to be resumed"
    equal(f"'{text}' above the figures", b.run("return document.querySelector('main').innerText.split('Ready')[0]").count(text), 1)
    picture(b, "suspended")
    act(b, "Resume", "")
    w.until_condition(MINE, "alpha", "Running")
    b.wait_for("return document.querySelector('.head').innerText.includes('Running')")
    before = {p["metadata"]["uid"] for p in w.pods(MINE, "alpha")}
    act(b, "Restart", "new data")
    w.until("both ranks are new", lambda: len(w.pods(MINE, "alpha")) == 2 and not
            before & {p["metadata"]["uid"] for p in w.pods(MINE, "alpha")}, 90)
    b.wait_for("return document.querySelector('table.restarts tbody').innerText.includes('planned')")
    picture(b, "restarted")
    equal("patches of ada", calls(w, "ada", "patch", "pytorchjobs"), [200] * 3)
    want(may_record(w, "ada"), "ada may not write events")
    equal("events of ada", calls(w, "ada", "create", "events"), [201] * 2)
    shown = b.run(TEXT)
    want("maintenance of the switch" in shown and "new data" in shown, "the page does not show the reasons")
    operator = [c for c in audit.calls(w.cluster.path("audit.log"), user=f"system:serviceaccount:{OPERATOR}:holdfast-operator")
                if c["resource"] == "pytorchjobs" and c["verb"] in ("patch", "update")]
    equal("patches of the operator for them", operator, [])


def may_record(w, name):
    """Whether this person may write events of a job."""
    review = w.api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": user(name), "resourceAttributes": {"namespace": MINE, "verb": "create", "resource": "events"}}})
    return review["status"]["allowed"]


def check_revoked(w):
    """A token that is revoked ends its session, its stream and its tab's screen within a minute"""
    made = w.api.create("secrets", PEOPLE, {"metadata": {"name": "binding"}})
    token = w.api.token_of(PEOPLE, "vera", bound={"kind": "Secret", "apiVersion": "v1", "name": "binding", "uid": made["metadata"]["uid"]})
    status, headers, _ = ask(w, "POST", "/api/v1/login", {"token": token})
    equal("login", status, 200)
    cookie = headers["Set-Cookie"].split(";")[0]
    b = log_in(w, token)
    b.wait_for(LIVE)
    w.api.delete("secrets", PEOPLE, "binding")
    b.wait_for("return document.querySelector('.login')?.innerText", patience=REVOKED_S)
    said = b.run(TEXT)
    want("no longer accepts" in said or "session has ended" in said, said)
    picture(b, "revoked")
    w.until("the session of a program ends too", lambda: ask(w, "GET", "/api/v1/jobs", cookie=cookie)[0] == 401, REVOKED_S)
    equal("a new login with that token", ask(w, "POST", "/api/v1/login", {"token": token})[0], 401)


def check_other_sites(w):
    """Requests under another name, or from the page of another site, are refused"""
    status, headers, _ = ask(w, "POST", "/api/v1/login", {"token": w.api.token_of(PEOPLE, "ada")}, Origin=f"http://localhost:{w.port}")
    equal("login", status, 200)
    given = headers["Set-Cookie"]
    want("HttpOnly" in given and "SameSite=Strict" in given and "Secure" not in given, given)
    cookie = given.split(";")[0]
    equal("a name of page.hosts", ask(w, "GET", "/api/v1/jobs", cookie=cookie, Host=NAME)[0], 200)
    for host in ("evil.example", f"{NAME}.evil.example", f"localhost.evil.example:{w.port}", ""):
        status, _, text = ask(w, "GET", "/api/v1/jobs", cookie=cookie, Host=host)
        equal(f"Host '{host}'", status, 403)
        want("alpha" not in text, text[:200])
    target, order = f"/api/v1/jobs/{MINE}/PyTorchJob/alpha/action", {"action": "suspend"}
    for origin in ("http://evil.example", f"http://evil.example:{w.port}", "null", f"https://{NAME}.evil.example"):
        equal(f"Origin {origin}", ask(w, "POST", target, order, cookie=cookie, Origin=origin)[0], 403)
    equal("another site by Sec-Fetch-Site", ask(w, "POST", target, order, cookie=cookie, Sec_Fetch_Site="cross-site")[0], 403)
    status, headers, _ = ask(w, "POST", "/api/v1/login", {"token": w.api.token_of(PEOPLE, "ada")}, Origin=f"https://{NAME}",
                             Host=NAME, X_Forwarded_Proto="https")
    want(status == 200 and "; Secure" in headers["Set-Cookie"], f"behind TLS: {status} {headers['Set-Cookie']}")
    _, headers, _ = ask(w, "GET", "/")
    want("default-src 'self'" in headers["Content-Security-Policy"], headers["Content-Security-Policy"])
    want(not w.job(MINE, "alpha")["spec"].get("runPolicy", {}).get("suspend"), "the job is suspended")


def check_restarted(w):
    """A new operator asks for a login again; then the screen and its stream go on"""
    b = log_in(w, w.api.token_of(PEOPLE, "ada"), f"/j/{MINE}/PyTorchJob/alpha")
    b.wait_for(LIVE)
    old = incluster.pod(w, OPERATOR)["metadata"]
    w.cluster.kubectl("-n", OPERATOR, "delete", "pod", old["name"], "--wait=false")
    b.wait_for("return document.querySelector('#live').textContent.includes('Reconnecting')")
    want("alpha" in b.run(TEXT), "the screen is empty while the operator is away")
    picture(b, "reconnecting")
    w.until("another operator is ready", lambda: any(
        condition(p, "Ready") == "True" and p["metadata"]["name"] != old["name"] for p in w.api.list("pods", OPERATOR)), 120)
    w.until("the old one is gone", lambda: len(w.api.list("pods", OPERATOR)) == 1, 60)
    w.forward.again()
    w.until("the page answers", lambda: ask(w, "GET", "/")[0] == 200)
    b.wait_for("return document.querySelector('.login')", patience=60)
    picture(b, "login-again")
    b.find("#token").write(w.api.token_of(PEOPLE, "ada"))
    b.button("Log in").click()
    b.wait_for(LIVE, patience=60)
    want(b.address.endswith(f"/j/{MINE}/PyTorchJob/alpha"), "the login leads to " + b.address)
    before = b.run("return document.querySelector('.head').innerText")
    want("Running" in before, before)
    w.api.patch("pytorchjobs", MINE, "alpha", {"spec": {"runPolicy": {"suspend": True}}})
    b.wait_for("return document.querySelector('.head').innerText.includes('Suspended')")
    w.api.patch("pytorchjobs", MINE, "alpha", {"spec": {"runPolicy": {"suspend": False}}})
    b.wait_for("return document.querySelector('.head').innerText.includes('Running')", patience=60)


def check_standby(w):
    """The chart refuses a second replica beside the page; one by hand says that another replica leads"""
    try:
        helm.change(w, "upgrade", render.CHART, "page.enabled=true", "operator.replicas=2")
        want(False, "helm takes two replicas")
    except AssertionError as e:
        want("page.enabled needs operator.replicas=1" in str(e), str(e))
    leader = incluster.pod(w, OPERATOR)["metadata"]["name"]
    w.cluster.kubectl("-n", OPERATOR, "scale", "deployment", "holdfast-operator", "--replicas=2")
    try:
        second = w.until("a second pod runs", lambda: next((
            p["metadata"]["name"] for p in w.api.list("pods", OPERATOR)
            if p["metadata"]["name"] != leader and p["status"].get("phase") == "Running"), None), 90)
        port, = free_ports(1)
        forward = Forward(w, port, "pod/" + second, 8082)
        try:
            w.until("its page answers", lambda: ask(w, "GET", "/", port=port)[0] == 200)
            status, headers, _ = ask(w, "POST", "/api/v1/login", {"token": w.api.token_of(PEOPLE, "ada")}, port=port)
            equal("login", status, 200)
            status, headers, text = ask(w, "GET", "/api/v1/jobs", cookie=headers["Set-Cookie"].split(";")[0], port=port)
            want(status == 503 and "another replica of the operator leads" in text, f"{status} {text[:200]}")
        finally:
            forward.end()
    finally:
        w.cluster.kubectl("-n", OPERATOR, "scale", "deployment", "holdfast-operator", "--replicas=1")
    w.until("one is left", lambda: len(w.api.list("pods", OPERATOR)) == 1, 60)


def check_last(w):
    """The operator asked the API server for nothing that it may not ask; the browser is closed"""
    if w.window is not None:
        w.window.close()
        w.window = None
    w.forward.end()
    equal("refused", incluster.refused(w, OPERATOR, "holdfast-operator"), [])
