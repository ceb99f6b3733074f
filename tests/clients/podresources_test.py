#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""podresources_test.py LOOK NVML: the agent's gRPC client against grpcio's server.

The test stands in for the kubelet's PodResources on a unix socket, with messages written here by hand.
"""

import os
import subprocess
import sys
import tempfile
import threading
from concurrent import futures

try:
    import grpc
except ImportError:
    print("SKIPPED: no grpcio for", sys.executable, "(Debian: python3-grpcio)", file=sys.stderr)
    sys.exit(77)

SERVICE = "v1.PodResourcesLister"


def varint(n):
    out = b""
    while n > 127:
        out += bytes([128 | n & 127])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def plugin(resource, *ids):
    return field(1, resource) + b"".join(field(2, i) for i in ids) + field(3, field(1, b"\x08\x01"))


def claim(name, device):
    resource = field(1, field(1, "k8s.gpu.nvidia.com/device=" + device))
    resource += field(2, "gpu.nvidia.com") + field(3, "node-a") + field(4, device)
    return field(2, name) + field(3, "ml") + field(4, resource)


def pod(name, container):
    return field(1, name) + field(2, "ml") + field(3, field(1, "trainer") + container)


class Kubelet:
    """Answers a request, and notes the method that was called."""

    def __init__(self):
        self.answers, self.asked = {}, []
        self.lock = threading.Lock()

    def serve(self, name):
        def handler(request, context):
            with self.lock:
                self.asked.append((name, request, dict(context.invocation_metadata())))
                answer = self.answers.get(name)
            if isinstance(answer, grpc.StatusCode):
                context.abort(answer, "not so: 100 % – no")
            return answer
        return grpc.unary_unary_rpc_method_handler(handler)

    def start(self, path):
        methods = ("List", "GetAllocatableResources")
        server = grpc.server(futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
            SERVICE, {m: self.serve(m) for m in methods}),))
        server.add_insecure_port("unix:" + path)
        server.start()
        return server


def look(program, path, nvml=""):
    run = subprocess.run([program, nvml, "", "", path], capture_output=True, text=True,
                         timeout=60, check=False)
    if run.returncode != 0:
        sys.exit(f"look: {run.returncode}: {run.stderr}")
    return run.stdout


def equal(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}:\n{got}\nwanted:\n{wanted}")


def main():
    program, nvml = sys.argv[1:]
    kubelet = Kubelet()
    with tempfile.TemporaryDirectory(prefix="holdfast-grpcio-") as folder:
        path = os.path.join(folder, "kubelet.sock")
        server = kubelet.start(path)
        kubelet.answers["List"] = (
            field(1, pod("rank-0", field(2, plugin("nvidia.com/gpu", "GPU-1", "GPU-2"))))
            + field(1, pod("rank-1", field(5, claim("rank-1-gpu", "gpu-1"))))
            + field(1, pod("idle", b"")))
        kubelet.answers["GetAllocatableResources"] = (
            field(1, plugin("nvidia.com/gpu", "GPU-1")) + field(1, plugin("nvidia.com/gpu", "GPU-2")))
        equal("both", look(program, path), """\
# PodResources: held
pods: 3
ml/rank-0 trainer: nvidia.com/gpu GPU-1
ml/rank-0 trainer: nvidia.com/gpu GPU-2
ml/rank-1 trainer: gpu.nvidia.com gpu-1 of pool 'node-a' by claim ml/rank-1-gpu, CDI 'k8s.gpu.nvidia.com/device=gpu-1'
# PodResources: allocatable
pods: 0
nvidia.com/gpu GPU-1
nvidia.com/gpu GPU-2
""")
        equal("asked", [(n, r) for n, r, _ in kubelet.asked],
              [("List", b""), ("GetAllocatableResources", b"")])
        if not kubelet.asked[0][2].get("user-agent", "").startswith("holdfast/"):
            sys.exit(f"who asked: {kubelet.asked[0][2]}")

        # An answer larger than an HTTP/2 frame, a window and a read.
        names = ["GPU-%032d" % i for i in range(8000)]
        kubelet.answers["List"] = field(1, pod("many", field(2, plugin("nvidia.com/gpu", *names))))
        kubelet.answers["GetAllocatableResources"] = grpc.StatusCode.UNIMPLEMENTED
        text = look(program, path)
        equal("many", text.count("ml/many trainer: nvidia.com/gpu GPU-"), 8000)
        want = "PodResources: gRPC status 12: not so: 100 % ??? no\n"
        if not text.endswith(want):
            sys.exit(f"refused: {text[-200:]}")

        # An answer beyond the client's limit.
        kubelet.answers["List"] = b"\x00" * (5 << 20)
        if "POST '/v1.PodResourcesLister/List': the response body" not in look(program, path):
            sys.exit("5 MiB were taken")
        server.stop(0).wait()
        text = look(program, path, nvml)
        if "# NVML\ncode: 0\ndriver: 570.86.15\n" not in text or \
                f"PodResources: the kubelet does not answer at '{path}'\n" not in text:
            sys.exit(f"without a kubelet: {text}")
    print("ok")


main()
