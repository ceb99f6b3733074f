# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The page under load: page_bench serves it, and this program is the viewers."""

import contextlib
import http.client
import os
import re
import resource
import selectors
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "page"))
from browser import Browser, missing_programs
from local import cpu, pause, resident

VIEWERS = 100
CHANGES = 1000  # a second
JOBS = 10000
SECONDS = 10
LISTS = 50
PAINTS = 10
# The first paint with content, the time at which the table of jobs has its rows, and the bytes of the files and of the API.
PAINTED = """
const at = performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
const loads = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
const sum = list => list.reduce((bytes, one) => bytes + one.transferSize, 0);
const api = loads.filter(one => one.name.includes('/api/') && !one.name.includes('/events'));
const list = api.find(one => one.name.includes('/api/v1/jobs'));
return at && list?.responseEnd && document.querySelector('table.jobs .open') &&
  [at, list.responseEnd, sum(loads.filter(one => !one.name.includes('/api/'))), sum(api)];
"""


class Server:
    """page_bench with this many jobs and changes a second, and a session."""

    def __init__(self, bench, jobs, changes):
        self.process = subprocess.Popen([os.path.join(bench.build, "tests/bench/page_bench"), str(jobs), str(changes)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        found = re.match(r"http://127\.0\.0\.1:(\d+)(/\?token=\w+)", self.process.stdout.readline())
        self.port = int(found[1])
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", found[2])
        answer = connection.getresponse()
        answer.read()
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]
        self.connection = connection

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

    def get(self, path):
        self.connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = self.connection.getresponse()
        return answer.read()

    def cpu_s(self):
        """Of its one thread."""
        return cpu(self.process.pid)

    def rss_mib(self):
        return resident(self.process.pid)


class Viewers:
    """Open streams that are read as fast as they come."""

    def __init__(self, server, count):
        self.bytes = 0
        self.selector = selectors.DefaultSelector()
        self.stopped = False
        self.sockets = []
        request = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nCookie: {server.cookie}\r\n\r\n".encode()
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", server.port))
            sock.sendall(request)
            sock.setblocking(False)
            self.sockets.append(sock)
            self.selector.register(sock, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.drain, daemon=True)
        self.thread.start()

    def drain(self):
        buffer = bytearray(1 << 20)
        while not self.stopped:
            for key, _ in self.selector.select(0.1):
                with contextlib.suppress(BlockingIOError):
                    self.bytes += key.fileobj.recv_into(buffer)

    def close(self):
        self.stopped = True
        self.thread.join()
        for sock in self.sockets:
            sock.close()


def settle(server, jobs):
    """Until the table has all jobs."""
    for _ in range(200):
        if f'"total":{jobs}'.encode() in server.get("/api/v1/jobs?limit=1"):
            return
        pause(0.05)
    raise SystemExit("bench: page: the jobs were not listed in time")


def measure_streams(bench, viewers):
    with Server(bench, JOBS, CHANGES) as server:
        settle(server, JOBS)
        before = server.rss_mib()
        streams = Viewers(server, viewers)
        server.get("/api/v1/session")
        cpu, start, size = server.cpu_s(), time.monotonic(), streams.bytes
        longest = 0.0
        while time.monotonic() - start < SECONDS:
            asked = time.monotonic()
            server.get("/api/v1/session")
            longest = max(longest, time.monotonic() - asked)
            pause(0.02)
        spent = time.monotonic() - start
        name = f"page_cpu_{viewers}_viewers"
        bench.figures.add(name, 100 * (server.cpu_s() - cpu) / spent, "% core", 1,
                          f"{viewers} viewers, {CHANGES:,} changes a second of {JOBS:,} jobs", memory_MiB=server.rss_mib(),
                          memory_before_MiB=before, MiB_s_read=(streams.bytes - size) / spent / 2**20,
                          longest_answer_ms=longest * 1e3)
        streams.close()


def measure_lists(bench):
    queries = {"page_list": "/api/v1/jobs?sort=age", "page_search": "/api/v1/jobs?q=job-09&sort=restarts&limit=50",
               "page_recovery": "/api/v1/recovery?window=24h", "page_index": "/"}
    with Server(bench, JOBS, 0) as server:
        settle(server, JOBS)
        for name, path in queries.items():
            took = []
            for _ in range(LISTS):
                start = time.perf_counter()
                size = len(server.get(path))
                took.append((time.perf_counter() - start) * 1e3)
            took.sort()
            bench.figures.add(name, took[len(took) // 2], "ms", LISTS, f"{path} of {JOBS:,} jobs",
                              p99_ms=took[int(len(took) * 0.99)], bytes=size)
        bench.figures.add("page_memory", server.rss_mib(), "MiB", 1, f"the process with {JOBS:,} jobs, test data included")


def measure_paint(bench):
    """The screen Jobs in a headless Chromium with an empty cache."""
    missing = missing_programs()
    if missing:
        print(f"  page_first_paint: no {' and no '.join(missing)} here")
        return
    with Server(bench, JOBS, 0) as server:
        settle(server, JOBS)
        browser = Browser()
        try:
            address = f"http://127.0.0.1:{server.port}/"
            browser.go(address)
            browser.run("document.cookie = arguments[0]", server.cookie)
            browser.cdp("Network.enable")
            browser.cdp("Network.setCacheDisabled", cacheDisabled=True)
            found = []
            for _ in range(PAINTS):
                browser.go(address)
                found.append(browser.wait_for(PAINTED))
        finally:
            browser.close()
    paints, lists = sorted(f[0] for f in found), sorted(f[1] for f in found)
    bench.figures.add("page_first_paint", paints[PAINTS // 2], "ms", PAINTS, f"first paint of the screen Jobs, {JOBS:,} jobs, empty cache",
                      slowest_ms=paints[-1], list_received_ms=lists[PAINTS // 2], bytes_files=found[-1][2], bytes_api=found[-1][3])


def run(bench):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    measure_lists(bench)
    measure_paint(bench)
    measure_streams(bench, 0)
    measure_streams(bench, VIEWERS)
