# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Functions for Python tests with a real client: wait for a state, send a request to a plane, find Prometheus."""
import json
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
PAUSE = threading.Event()


def until(what, look, patience=60.0):
    """Returns the first true answer of look. AssertionError: there was none in time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            found = look()
        except (OSError, KeyError, IndexError, ValueError):
            found = None
        if found:
            return found
        PAUSE.wait(0.2)
    raise AssertionError(f"not in time: {what}")


def call(folder, path, body=None):
    """Sends a request to the plane with this data folder: GET, or POST of a body. Returns the parsed answer."""
    server = re.search(r"server: (\S+)", (folder / "kubeconfig").read_text())[1]
    request = urllib.request.Request(server + path, data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + (folder / "token").read_text().strip())
    request.add_header("Content-Type", "application/json")
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        return json.load(answer)


def find_prometheus(kept):
    """Returns the folder with prometheus and promtool. Ends the test with 77 if they cannot be had here."""
    made = subprocess.run([str(HERE / "get_prometheus.sh"), kept], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        print("skipped: " + made.stderr.strip(), file=sys.stderr)
        sys.exit(77)
    return made.stdout.strip()
