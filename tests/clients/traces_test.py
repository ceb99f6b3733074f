#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""traces_test.py HOLDFAST: the operator sends the trace of a restart to a collector, which is a server of this test."""
import functools
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
import plane

HOLDFAST = os.path.abspath(sys.argv[1])
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
until = functools.partial(plane.until, patience=120.0)


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps the spans of each request. Answers the first one with 503, as a collector that is busy."""
    requests, spans = [], []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, self.headers["Content-Type"], self.headers.get("x-team")))
        if len(self.requests) > 1:
            for resource in body["resourceSpans"]:
                self.spans += [span for scope in resource["scopeSpans"] for span in scope["spans"]]
        self.send_response(503 if len(self.requests) == 1 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def job(folder):
    """A worker that fails once by a signal's code, and then runs."""
    command = f"[ -e {folder}/failed ] || {{ touch {folder}/failed; exit 137; }}; exec sleep 1000"
    container = {"name": "pytorch", "image": "none", "command": ["sh", "-c", command]}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "once"},
            "spec": {"pytorchReplicaSpecs": {"Worker": {
                "replicas": 1, "restartPolicy": "ExitCode", "template": {"spec": {"containers": [container]}}}}}}


class Traces(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def start(self, *command, **env):
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen([HOLDFAST, *command], stdout=log, stderr=log, env={**os.environ, **env})

        def end():
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        self.addCleanup(end)

    def test_a_restart_is_one_trace(self):
        collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        self.addCleanup(collector.server_close)
        self.addCleanup(collector.shutdown)
        data = self.folder / "plane"
        self.start("up", "--no-operator", "--listen", "127.0.0.1:0", "--data-dir", str(data))
        self.addCleanup(subprocess.run, [HOLDFAST, "down", "--data-dir", str(data), "--timeout", "60s"],
                        capture_output=True, check=False)
        until("the plane answers", (data / "kubeconfig").exists)
        self.start("operator", "--kubeconfig", str(data / "kubeconfig"), "--metrics-bind-address", "0",
                   "--health-probe-bind-address", "0",
                   OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}",
                   OTEL_EXPORTER_OTLP_HEADERS="x-team=vision%20lab")
        until("the job is made", lambda: plane.call(data, JOBS, job(self.folder)))
        until("the collector has the restart", lambda: Collector.spans)
        self.assertEqual(set(Collector.requests), {("/v1/traces", "application/json", "vision lab")})
        spans = {span["name"]: span for span in Collector.spans}
        self.assertEqual(len(spans), len(Collector.spans))
        self.assertLessEqual({"recovery", "decide", "start"}, set(spans))
        root = spans["recovery"]
        self.assertEqual({span["traceId"] for span in spans.values()}, {root["traceId"]})
        self.assertEqual({span["parentSpanId"] for name, span in spans.items() if name != "recovery"},
                         {root["spanId"]})
        for span in spans.values():
            self.assertLessEqual(int(root["startTimeUnixNano"]), int(span["startTimeUnixNano"]))
            self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
        said = {a["key"]: next(iter(a["value"].values())) for a in root["attributes"]}
        record = plane.call(data, JOBS + "/once")["status"]["recovery"]["last"]
        self.assertEqual(said["holdfast.job.name"], "once")
        self.assertEqual(said["holdfast.exit_code"], "137")
        self.assertEqual(said["holdfast.cause"], record["cause"])
        self.assertEqual(said["holdfast.incident"], str(record["incident"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
