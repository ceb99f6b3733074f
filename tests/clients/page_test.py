#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""page_test.py HOLDFAST: the page of `holdfast up --page`, as browsers and hostile clients use it."""
import contextlib
import gzip
import http.client
import http.server
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import plane

HOLDFAST = os.path.abspath(sys.argv[1])
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
STREAMS_MAX = 100


def job(name, command="exec sleep 1000", ranks=1):
    """Returns a PyTorchJob with this many ranks."""
    def replicas(count):
        pod = {"containers": [{"name": "pytorch", "image": "none", "command": ["sh", "-c", command]}]}
        return {"replicas": count, "restartPolicy": "OnFailure", "template": {"spec": pod}}

    specs = {"Master": replicas(1)}
    if ranks > 1:
        specs["Worker"] = replicas(ranks - 1)
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
            "spec": {"pytorchReplicaSpecs": specs}}


class Answer:
    """Status, headers and body of a response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Stream:
    """An open stream of changes; `events` grows as they come."""

    def __init__(self, page, query="", headers=()):
        self.connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
        self.connection.request("GET", "/api/v1/events" + query, headers={"Cookie": page.cookie, **dict(headers)})
        self.response = self.connection.getresponse()
        self.events = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        kind = number = data = None
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            for raw in self.response:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("id: "):
                    number = line[4:]
                elif line.startswith("data: "):
                    data = line[6:]
                elif line == "" and kind:
                    self.events.append((kind, number, json.loads(data)))
                    kind = number = data = None
        self.ended.set()

    def find(self, kind, name=None):
        return [e for e in self.events if e[0] == kind and (name is None or e[2].get("name") == name)]

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class Page:
    """A plane with its page, and a session."""

    def __init__(self, folder):
        self.folder = folder
        self.log = open(f"{folder}.log", "w", encoding="utf-8")  # noqa: SIM115
        self.process = subprocess.Popen([HOLDFAST, "up", "--listen", "127.0.0.1:0", "--data-dir", str(folder), "--page"],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = None
        for line in self.process.stdout:
            found = re.search(r"page: (http://127\.0\.0\.1:(\d+)(/\?token=[0-9a-f]{64}))", line)
            if found:
                self.url, self.port, self.path = found[1], int(found[2]), found[3]
                break
        assert self.url, "up did not print the address of the page"
        self.drain = threading.Thread(target=self.process.stdout.read, daemon=True)
        self.drain.start()
        self.cookie = ""

    def ask(self, path, method="GET", body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        every = {"Cookie": self.cookie} if self.cookie else {}
        connection.request(method, path, body=None if body is None else json.dumps(body), headers={**every, **dict(headers)})
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def get(self, path):
        answer = self.ask(path)
        assert answer.status == 200, (path, answer.status, answer.body)
        return answer.json()

    def raw(self, data, limit=65536):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as sock:
            with contextlib.suppress(OSError):
                sock.sendall(data)
            got = b""
            with contextlib.suppress(OSError):
                while len(got) < limit:
                    piece = sock.recv(4096)
                    if not piece:
                        break
                    got += piece
            return got

    def end(self):
        subprocess.run([HOLDFAST, "down", "--data-dir", str(self.folder), "--timeout", "60s"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.process.wait(60)
        self.log.close()


class PageTest(unittest.TestCase):
    """All tests share one plane; they run by name."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.page = Page(pathlib.Path(cls.temporary.name) / "plane")

    @classmethod
    def tearDownClass(cls):
        cls.page.end()
        cls.temporary.cleanup()

    def make(self, body):
        plane.call(self.page.folder, JOBS, body)
        name = body["metadata"]["name"]
        plane.until(f"{name} runs", lambda: self.row(name)["state"] == "Running" and self.row(name)["ready"] > 0)

    def row(self, name):
        """Returns the job's row. KeyError: it is not listed."""
        return {item["name"]: item for item in self.page.get("/api/v1/jobs?limit=500")["items"]}[name]

    def test_10_without_a_session_nothing_is_shown(self):
        for path in ("/api/v1/session", "/api/v1/jobs", "/api/v1/nodes", "/api/v1/recovery", "/api/v1/events",
                     "/api/v1/jobs/default/pytorchjobs/x/yaml"):
            answer = self.page.ask(path)
            self.assertEqual(answer.status, 401, path)
            self.assertIn("error", answer.json())
        index = self.page.ask("/")
        self.assertEqual(index.status, 200)
        self.assertIn(b"<table", index.body)

    def test_11_a_wrong_token_opens_nothing(self):
        answer = self.page.ask("/?token=" + "0" * 64)
        self.assertEqual((answer.status, answer.headers["Location"], answer.headers["Set-Cookie"]), (303, "/", None))

    def test_12_the_token_of_the_url_works_once(self):
        answer = self.page.ask(self.page.path)
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/"))
        cookie = answer.headers["Set-Cookie"]
        for attribute in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(attribute, cookie)
        again = self.page.ask(self.page.path)
        self.assertIsNone(again.headers["Set-Cookie"])
        self.page.cookie = cookie.split(";")[0]
        session = self.page.get("/api/v1/session")
        self.assertEqual((session["world"], session["mayAct"]), ("local", True))
        self.assertEqual(session["kept"], {"records": 11, "ring": 4096})

    def test_13_every_answer_has_the_headers_that_keep_it_safe(self):
        for path in ("/", "/api/v1/jobs", "/api/v1/none", "/j/default/PyTorchJob/x"):
            headers = self.page.ask(path).headers
            self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(headers["Cache-Control"], "no-store")

    def test_14_files_are_named_by_their_content_and_kept_by_browsers(self):
        index = self.page.ask("/").body.decode()
        self.assertNotRegex(index, r"<script(?![^>]*\bsrc=)")
        paths = re.findall(r'"(/assets/[^"]+)"', index)
        self.assertTrue(paths)
        for path in paths:
            self.assertRegex(path, r"\.[0-9a-f]{12}\.")
            plain = self.page.ask(path)
            packed = self.page.ask(path, headers={"Accept-Encoding": "gzip"})
            self.assertIn("immutable", plain.headers["Cache-Control"])
            self.assertEqual(packed.headers["Content-Encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed.body), plain.body)
        self.assertEqual(self.page.ask("/assets/none.js").status, 404)

    def test_15_a_name_of_another_site_is_refused(self):
        for host in ("evil.example", "127.0.0.1.evil.example", f"evil.example:{self.page.port}"):
            answer = self.page.ask("/api/v1/jobs", headers={"Host": host})
            self.assertEqual(answer.status, 403, host)
        self.assertEqual(self.page.ask("/api/v1/jobs", headers={"Host": f"localhost:{self.page.port}"}).status, 200)
        got = self.page.raw(b"GET /api/v1/jobs HTTP/1.0\r\nCookie: " + self.page.cookie.encode() + b"\r\n\r\n")
        self.assertIn(b" 403 ", got.split(b"\r\n")[0])

    def test_16_methods_and_bodies_are_checked(self):
        self.assertEqual(self.page.ask("/api/v1/jobs", "POST", {}).status, 405)
        self.assertEqual(self.page.ask("/api/v1/logout").status, 405)
        self.assertEqual(self.page.ask("/api/v1/login", "POST", {"token": "x"}).status, 403)  # this is no cluster
        path = "/api/v1/jobs/default/pytorchjobs/x/action"
        self.assertEqual(self.page.ask(path, "POST", {"action": "suspend"}).status, 404)
        origin = {"Origin": "http://evil.example"}
        self.assertEqual(self.page.ask(path, "POST", {"action": "suspend"}, origin).status, 403)
        self.assertEqual(self.page.ask(path, "POST", {}, {"Sec-Fetch-Site": "cross-site"}).status, 403)
        self.assertEqual(self.page.ask(path, "POST", {"action": "x" * 70000}).status, 413)
        for query in ("limit=0", "limit=x", "sort=size", "window=2h", "q=" + "x" * 600):
            self.assertEqual(self.page.ask("/api/v1/jobs?" + query).status, 400, query)

    def test_17_huge_requests_are_refused(self):
        got = self.page.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000 + b"\r\n\r\n")
        self.assertRegex(got.split(b"\r\n")[0], rb" 4\d\d ")
        got = self.page.raw(b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertRegex(got.split(b"\r\n")[0], rb" 4\d\d ")
        self.assertEqual(self.page.ask("/healthz").status, 200)

    def test_18_connections_of_strangers_do_not_keep_users_out(self):
        strangers = []
        for _ in range(400):
            sock = socket.create_connection(("127.0.0.1", self.page.port), timeout=20)
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            strangers.append(sock)
        self.assertEqual(self.page.ask("/api/v1/session").status, 200)
        for sock in strangers:
            sock.close()

    def test_20_a_job_is_listed_with_its_facts(self):
        self.make(job("one", ranks=2))
        listed = self.page.get("/api/v1/jobs")
        self.assertEqual((listed["total"], listed["states"], listed["namespaces"]), (1, {"Running": 1}, ["default"]))
        row = plane.until("both ranks are ready", lambda: self.row("one")["ready"] == 2 and self.row("one"))
        self.assertEqual((row["kind"], row["state"], row["ranks"]), ("PyTorchJob", "Running", 2))
        self.assertIn("running", row["sentence"].lower())
        self.assertIn(b">one</a>", self.page.ask("/").body)

    def test_21_one_job_has_its_detail(self):
        why = subprocess.run([HOLDFAST, "why", "one"], capture_output=True, text=True, check=True,
                             env={**os.environ, "KUBECONFIG": str(self.page.folder / "kubeconfig")}).stdout
        detail = self.page.get("/api/v1/jobs/default/PyTorchJob/one")
        plain = [re.sub(r"[0-9]+[smh]", "N", text) for text in (why.splitlines()[0], "default/one is " + detail["sentence"])]
        self.assertEqual(plain[0], plain[1])
        self.assertEqual(detail["command"], "holdfast why -n default pytorchjob one")
        self.assertEqual([g["number"] for g in detail["generations"]], [1])
        self.assertIn("Running", [c["type"] for c in detail["conditions"]])
        self.assertTrue(detail["events"])
        text = self.page.ask("/api/v1/jobs/default/pytorchjobs/one/yaml").body.decode()
        self.assertIn("kind: PyTorchJob", text)
        self.assertNotIn("managedFields", text)
        self.assertEqual(self.page.ask("/api/v1/jobs/default/pytorchjobs/none").status, 404)
        self.assertEqual(self.page.ask("/api/v1/jobs/default/pods/one").status, 404)

    def test_22_ranks_and_nodes_are_listed(self):
        ranks = self.page.get("/api/v1/jobs/default/pytorchjobs/one/ranks?sort=rank")
        self.assertEqual([r["name"] for r in ranks["items"]], ["master-0", "worker-0"])
        nodes = self.page.get("/api/v1/nodes")
        self.assertEqual(nodes["total"], 1)
        node = nodes["items"][0]
        self.assertEqual(node["jobs"], [{"namespace": "default", "kind": "PyTorchJob", "name": "one"}])
        detail = self.page.get("/api/v1/nodes/" + node["name"])
        self.assertIsInstance(detail["devices"], list)
        self.assertEqual(self.page.ask("/api/v1/nodes/none").status, 404)

    def test_23_the_recovery_report_has_its_buckets(self):
        for window, length in (("1h", 60), ("24h", 72), ("7d", 84)):
            report = self.page.get("/api/v1/recovery?window=" + window)
            self.assertEqual(len(report["restarts"]["application"]), length)
            self.assertEqual(len(report["ettr"]), length)

    def test_24_a_log_has_no_terminal_escapes(self):
        self.make(job("loud", "printf 'plain \\033[31mred\\033]0;title\\007 text\\n'; exec sleep 1000"))
        path = "/api/v1/jobs/default/pytorchjobs/loud/log?rank=master-0"
        log = plane.until("the log has a line", lambda: self.page.ask(path).body)
        self.assertEqual(log, b"plain red text\n")
        self.assertEqual(self.page.ask(path.replace("master-0", "worker-7")).status, 404)

    def test_30_changes_are_streamed_and_a_stream_resumes(self):
        before = self.page.get("/api/v1/jobs")["resourceVersion"]
        stream = Stream(self.page)
        self.make(job("two"))
        plane.until("the job is in the stream", lambda: stream.find("job", "two"))
        plane.until("a summary counts it", lambda: stream.find("summary")[-1][2]["states"]["Running"] == 3)
        stream.close()
        number = stream.find("job", "two")[-1][1]
        resumed = Stream(self.page, "?since=" + before + "&once=1")
        self.assertTrue(resumed.ended.wait(20))
        self.assertTrue(resumed.find("job", "two"))
        last = Stream(self.page, "?once=1", {"Last-Event-ID": number})
        self.assertTrue(last.ended.wait(20))
        self.assertFalse(last.find("reset"))

    def test_31_a_version_of_another_server_is_reset(self):
        for since in ("0000000000000000-1", "1", "x"):
            stream = Stream(self.page, f"?since={since}&once=1")
            self.assertTrue(stream.ended.wait(20))
            self.assertEqual(stream.events[0][0], "reset")

    def test_32_a_job_that_is_deleted_is_gone(self):
        stream = Stream(self.page)
        subprocess.run([HOLDFAST, "delete", "two"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "KUBECONFIG": str(self.page.folder / "kubeconfig")})
        plane.until("the job is gone", lambda: stream.find("gone", "two"))
        stream.close()

    def test_32_a_request_for_the_headers_of_a_stream_opens_none(self):
        for _ in range(STREAMS_MAX + 10):
            self.assertEqual(self.page.ask("/api/v1/events", "HEAD").status, 200)
        self.assertEqual(self.page.ask("/api/v1/events?once=1").status, 200)

    def test_33_only_a_hundred_streams_are_open(self):
        streams = [Stream(self.page) for _ in range(STREAMS_MAX)]
        refused = self.page.ask("/api/v1/events")
        self.assertEqual(refused.status, 503)
        self.assertIn("Retry-After", refused.headers)
        self.assertIn('holdfast_page_stream_events_total{event="refused"} 1\n', self.metrics())
        self.assertEqual(self.page.ask("/api/v1/session").status, 200)
        for stream in streams:
            stream.close()
        plane.until("a stream is free again", lambda: self.page.ask("/api/v1/events?once=1").status == 200)

    def test_40_actions_change_the_job(self):
        path = "/api/v1/jobs/default/pytorchjobs/one/action"
        answer = self.page.ask(path, "POST", {"action": "suspend", "reason": "making room"})
        self.assertEqual((answer.status, answer.json()["message"]), (202, "pytorchjob/one suspended"))
        plane.until("the job is suspended", lambda: self.row("one")["state"] == "Suspended")
        shown = self.page.get("/api/v1/jobs/default/pytorchjobs/one")["events"]
        self.assertTrue([e for e in shown if e["reason"] == "SuspendRequested" and "making room" in e["message"]], shown)
        self.assertIn("already", self.page.ask(path, "POST", {"action": "suspend"}).json()["message"])
        self.assertEqual(self.page.ask(path, "POST", {"action": "restart"}).status, 409)
        self.assertEqual(self.page.ask(path, "POST", {"action": "resume"}).status, 202)
        plane.until("the job runs again", lambda: self.row("one")["state"] == "Running")
        self.assertEqual(self.page.ask(path, "POST", {"action": "restart", "rank": "worker-0"}).status, 202)
        plane.until("the restart is recorded",
                    lambda: self.page.get("/api/v1/jobs/default/pytorchjobs/one")["restartRecords"][0]["cause"] == "planned")
        self.assertEqual(self.page.ask(path, "POST", {"action": "restart", "rank": "worker-9"}).status, 400)
        self.assertEqual(self.page.ask(path, "POST", {"action": "explode"}).status, 400)
        events = plane.call(self.page.folder, "/api/v1/namespaces/default/events")["items"]
        self.assertTrue([e for e in events if e["reason"] == "SuspendRequested" and "making room" in e["message"]])

    def test_41_the_page_has_metrics(self):
        text = plane.until("no stream is open", lambda: next((t for t in [self.metrics()] if "holdfast_page_streams 0" in t), ""))
        self.assertRegex(text, r'holdfast_page_requests_total\{path="jobs",code="200"\} \d+')

    def metrics(self):
        return subprocess.run(["curl", "-sk", "-H", "Authorization: Bearer " + (self.page.folder / "token").read_text().strip(),
                               re.search(r"server: (\S+)", (self.page.folder / "kubeconfig").read_text())[1] + "/metrics"],
                              capture_output=True, text=True, check=True).stdout

    def test_50_a_slow_reader_is_cut_and_others_go_on(self):
        sock = socket.create_connection(("127.0.0.1", self.page.port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nCookie: {self.page.cookie}\r\n\r\n".encode())
        began = time.monotonic()
        self.assertLess(max(self.timed("/api/v1/session") for _ in range(50)), 2.0)
        self.assertLess(time.monotonic() - began, 60)
        sock.close()

    def timed(self, path):
        began = time.monotonic()
        self.page.get(path)
        return time.monotonic() - began

    def test_90_a_session_that_logs_out_sees_nothing(self):
        stream = Stream(self.page)
        self.assertEqual(self.page.ask("/api/v1/logout", "POST", {}).status, 200)
        self.assertEqual(self.page.ask("/api/v1/jobs").status, 401)
        self.assertTrue(stream.ended.wait(20), "the stream of a closed session ends")


class OtherVerbsTest(unittest.TestCase):
    """The page of `run` and of `operator`, and flags that are refused."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.running = []

    def tearDown(self):
        for process in self.running:
            process.terminate()
            process.wait(60)
            for pipe in (process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        self.temporary.cleanup()

    def start(self, *words, **options):
        process = subprocess.Popen([HOLDFAST, *words], text=True, **options)
        self.running.append(process)
        return process

    def test_flags_that_would_open_the_page_to_others_are_refused(self):
        for words in (["up", "--page-listen", "0.0.0.0:0"], ["up", "--page-listen", "x"], ["up", "--page", "--no-operator"],
                      ["run", "--page-listen", "192.0.2.1:0", "--", "true"], ["operator", "--page", "x"],
                      ["operator", "--page-host", "a/b"]):
            done = subprocess.run([HOLDFAST, *words], capture_output=True, text=True, check=False,
                                  env={**os.environ, "HOLDFAST_DIR": str(self.folder)})
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("page", done.stderr)

    def test_the_background_process_of_up_serves_the_page(self):
        done = subprocess.run([HOLDFAST, "up", "--detach", "--page", "--listen", "127.0.0.1:0", "--data-dir", str(self.folder / "plane")],
                              capture_output=True, text=True, check=True)
        try:
            url = re.search(r"^# page: http://127\.0\.0\.1:(\d+)(/\?token=\w+)$", done.stdout, re.M)
            page = Page.__new__(Page)
            page.port, page.cookie = int(url[1]), ""
            self.assertIn("Set-Cookie", page.ask(url[2]).headers)
        finally:
            subprocess.run([HOLDFAST, "down", "--data-dir", str(self.folder / "plane")], check=True, stdout=subprocess.DEVNULL)

    def test_run_serves_its_job_while_it_runs(self):
        run = self.start("run", "--page", "--", "sh", "-c", "sleep 1000", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         env={**os.environ, "HOLDFAST_DIR": str(self.folder)})
        url = next(m for m in (re.search(r"page: http://127\.0\.0\.1:(\d+)(/\?token=\w+)", line) for line in run.stderr) if m)
        page = Page.__new__(Page)
        page.port, page.cookie = int(url[1]), ""
        page.cookie = page.ask(url[2]).headers["Set-Cookie"].split(";")[0]
        # 503 until the operator has listed the jobs.
        plane.until("the job is listed", lambda: page.ask("/api/v1/jobs").json()["total"] == 1)

    def test_the_operator_asks_the_api_server_about_a_login(self):
        """The embedded plane knows no TokenReview, so no token is accepted."""
        up = self.start("up", "--listen", "127.0.0.1:0", "--data-dir", str(self.folder / "plane"), "--no-operator",
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        config = next(m[1] for m in (re.match(r"export KUBECONFIG=(.*)", line) for line in up.stdout) if m)
        operator = self.start("operator", "--kubeconfig", config, "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
                              "--page", "127.0.0.1:0", "--page-host", "page.example", stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        line = next(m for m in (re.search(r'"url":"http://127\.0\.0\.1:(\d+)/"', text) for text in operator.stderr) if m)
        page = Page.__new__(Page)
        page.port, page.cookie = int(line[1]), ""
        self.assertEqual(page.ask("/api/v1/session").status, 401)
        self.assertEqual(page.ask("/", headers={"Host": "page.example"}).status, 200)
        self.assertEqual(page.ask("/", headers={"Host": "other.example"}).status, 403)
        login = page.ask("/api/v1/login", "POST", {"token": "x"})
        self.assertEqual(login.status, 503)
        self.assertIn("could not be asked", login.json()["error"])
        self.assertIsNone(login.headers["Set-Cookie"])


class ApiServer(http.server.ThreadingHTTPServer):
    """Reviews tokens and rights as an API server does, and passes all else on to a plane. Notes who asked for what."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), ApiHandler)
        self.plane = urllib.parse.urlsplit(re.search(r"server: (\S+)", (folder / "kubeconfig").read_text())[1])
        self.token = (folder / "token").read_text().strip()
        self.context = ssl.create_default_context(cafile=folder / "ca.pem")
        self.reviews = []
        self.asked = []  # (token, method, path)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # a client that leaves a watch


class ApiHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def review(self, path, body):
        spec = json.loads(body)["spec"]
        self.server.reviews.append((path, spec))
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            good = spec["token"] == "ada-secret"
            status = {"authenticated": good} | ({"user": {"username": "ada", "uid": "7", "groups": ["team"],
                                                          "extra": {"a": ["b"]}}} if good else {})
        else:
            part = spec["resourceAttributes"]
            status = {"allowed": (part["resource"], part.get("namespace")) == ("pytorchjobs", "team-a")}
        self.answer(201, json.loads(body) | {"status": status})

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        path = self.path.split("?")[0]
        self.server.asked.append((token, self.command, path))
        if path.endswith("reviews") and self.command == "POST":
            self.review(path, body)
            return
        if token not in ("operator-secret", "ada-secret") or (token == "ada-secret" and "/team-a/" not in self.path):
            self.answer(403, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
                              "message": "ada may not do this"})
            return
        there = http.client.HTTPSConnection(self.server.plane.hostname, self.server.plane.port, context=self.server.context,
                                            timeout=600)
        kept = {k: v for k, v in self.headers.items() if k.lower() in ("content-type", "accept")}
        there.request(self.command, self.path, body=body or None, headers={**kept, "Authorization": "Bearer " + self.server.token})
        response = there.getresponse()
        self.send_response(response.status)
        self.send_header("Content-Type", response.headers.get("Content-Type", "application/json"))
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        while piece := response.read1(65536):
            self.wfile.write(piece)
            self.wfile.flush()

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = pass_on


class ClusterTest(unittest.TestCase):
    """The page of an operator, whose API server reviews tokens."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        cls.folder = folder / "plane"
        cls.up = subprocess.Popen([HOLDFAST, "up", "--listen", "127.0.0.1:0", "--data-dir", str(cls.folder), "--no-operator"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        plane.until("the plane is ready", lambda: "export" in cls.up.stdout.readline())
        cls.api = ApiServer(cls.folder)
        config = folder / "config"
        config.write_text(f"""apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{cls.api.server_port}"}}}}]
users: [{{name: u, user: {{token: operator-secret}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
""")
        cls.operator = subprocess.Popen([HOLDFAST, "operator", "--kubeconfig", str(config), "--metrics-bind-address", "0",
                                         "--health-probe-bind-address", "0", "--page", "127.0.0.1:0"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        found = next(m for m in (re.search(r'"url":"http://127\.0\.0\.1:(\d+)/"', line) for line in cls.operator.stderr) if m)
        threading.Thread(target=cls.operator.stderr.read, daemon=True).start()
        cls.page = Page.__new__(Page)
        cls.page.port, cls.page.cookie = int(found[1]), ""
        for ns in ("team-a", "team-b"):
            plane.call(cls.folder, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})
            plane.call(cls.folder, JOBS.replace("default", ns), job("ddp", "echo hello; exec sleep 1000"))

    @classmethod
    def tearDownClass(cls):
        cls.operator.terminate()
        cls.operator.wait(60)
        cls.api.shutdown()
        subprocess.run([HOLDFAST, "down", "--data-dir", str(cls.folder), "--timeout", "60s"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.up.wait(60)
        cls.up.stdout.close()
        cls.api.server_close()
        cls.temporary.cleanup()

    def test_1_a_wrong_token_is_refused_late(self):
        began = time.monotonic()
        answer = self.page.ask("/api/v1/login", "POST", {"token": "wrong"})
        self.assertEqual((answer.status, answer.headers["Set-Cookie"]), (401, None))
        self.assertGreaterEqual(time.monotonic() - began, 1)

    def test_2_a_user_sees_what_the_api_server_allows(self):
        answer = self.page.ask("/api/v1/login", "POST", {"token": "ada-secret"})
        self.assertEqual((answer.status, answer.json()), (200, {"user": "ada"}))
        self.page.cookie = answer.headers["Set-Cookie"].split(";")[0]
        listed = plane.until("the job is listed", lambda: self.allowed())
        self.assertEqual(listed["namespaces"], ["team-a"])
        self.assertEqual(self.page.get("/api/v1/session")["user"], "ada")
        self.assertEqual(self.page.ask("/api/v1/nodes").status, 403)
        self.assertEqual(self.page.ask("/api/v1/jobs/team-b/pytorchjobs/ddp").status, 403)
        spec = next(s for path, s in self.api.reviews if path == "/apis/authorization.k8s.io/v1/subjectaccessreviews")
        self.assertEqual((spec["user"], spec["uid"], spec["groups"], spec["extra"]), ("ada", "7", ["team"], {"a": ["b"]}))
        self.assertEqual((spec["resourceAttributes"]["verb"], spec["resourceAttributes"]["group"]), ("list", "kubeflow.org"))

    def allowed(self):
        listed = self.page.ask("/api/v1/jobs").json()  # 503 until the operator leads
        return listed if listed["total"] == 1 and listed["states"] == {"Running": 1} else None

    def test_3_logs_and_actions_go_with_the_token_of_the_user(self):
        self.api.asked.clear()
        log = plane.until("the log has a line", lambda: self.page.ask("/api/v1/jobs/team-a/pytorchjobs/ddp/log?rank=master-0").body)
        self.assertEqual(log, b"hello\n")
        path = "/api/v1/jobs/team-a/pytorchjobs/ddp/action"
        answer = self.page.ask(path, "POST", {"action": "suspend"})
        self.assertEqual((answer.status, answer.json()["message"]), (202, "pytorchjob/ddp suspended"))
        mine = [(method, p) for token, method, p in self.api.asked if token == "ada-secret"]
        self.assertIn(("GET", "/api/v1/namespaces/team-a/pods/ddp-master-0/log"), mine)
        self.assertIn(("PATCH", JOBS.replace("default", "team-a") + "/ddp"), mine)
        plane.until("the job is suspended", lambda: self.page.get("/api/v1/jobs")["states"] == {"Suspended": 1})

    def test_4_the_stream_has_what_the_user_may_see(self):
        stream = Stream(self.page)
        for ns in ("team-b", "team-a"):
            plane.call(self.folder, JOBS.replace("default", ns), job("late"))
        plane.until("the job is in the stream", lambda: stream.find("job", "late"))
        self.assertEqual({e[2]["namespace"] for e in stream.find("job")}, {"team-a"})
        self.assertFalse(stream.find("node"))
        stream.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
