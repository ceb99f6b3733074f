#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""python3 -P deviceplugin.py FOLDER HEALTH [RESOURCE]: a device plugin with four devices, gpu-0 to gpu-3,
of example.com/gpu if nothing else is said.

FOLDER is the kubelet's device-plugins; the devices that the file HEALTH names are Unhealthy, at any
time; while there is a file HEALTH.refuses, none is given out.  A kubelet that starts removes the sockets of plugins and waits to be called: this one calls it
again, as real ones do.  Messages are written by hand, so that grpcio (Debian: python3-grpcio) is all
it needs.
"""

import os
import sys
import threading
from concurrent import futures

import grpc

SOCKET = "holdfast-test.sock"
LOOK_S = 0.2
NEVER = threading.Event()


def field(number, value):
    """A text or a message, of less than 128 bytes."""
    value = value.encode() if isinstance(value, str) else value
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def devices(bad):
    return b"".join(field(1, field(1, f"gpu-{i}") +
                          field(2, "Unhealthy" if f"gpu-{i}" in bad else "Healthy"))
                    for i in range(4))


def watcher(health):
    ended = threading.Event()

    def list_and_watch(request, context):
        told = None
        context.add_callback(ended.set)
        while context.is_active():
            bad = set()
            if os.path.exists(health):
                with open(health, encoding="ascii") as f:
                    bad = set(f.read().split())
            if bad != told:
                told = bad
                yield devices(bad)
            ended.wait(LOOK_S)

    return list_and_watch


def allocator(health):
    def allocate(request, context):
        if os.path.exists(health + ".refuses"):
            context.abort(grpc.StatusCode.INTERNAL, "this device is not given out")
        return field(1, b"")

    return allocate


def serve(path, health):
    if os.path.exists(path):
        os.unlink(path)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "v1beta1.DevicePlugin", {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda r, c: b""),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(watcher(health)),
            "Allocate": grpc.unary_unary_rpc_method_handler(allocator(health)),
        }),))
    server.add_insecure_port("unix:" + path)
    server.start()
    return server


def register(folder, resource):
    """Until the kubelet has taken it; False: it has started anew meanwhile."""
    while os.path.exists(os.path.join(folder, SOCKET)):
        try:
            with grpc.insecure_channel("unix:" + os.path.join(folder, "kubelet.sock")) as channel:
                channel.unary_unary("/v1beta1.Registration/Register")(
                    field(1, "v1beta1") + field(2, SOCKET) + field(3, resource), timeout=10)
            print("registered", flush=True)
            return True
        except grpc.RpcError as e:
            print("not registered:", e.code(), flush=True)
            NEVER.wait(LOOK_S)
    return False


def main():
    folder, health, resource = (*sys.argv[1:], "example.com/gpu")[:3]
    path = os.path.join(folder, SOCKET)
    while True:
        server = serve(path, health)
        if register(folder, resource):
            while os.path.exists(path):
                NEVER.wait(LOOK_S)
        server.stop(None).wait()


main()
