#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""python3 -P dradriver.py KUBELET DRIVER SERVER CA TOKEN: a DRA driver's kubelet plugin.

KUBELET is the kubelet's folder. The driver prepares nothing: for each claim it names the devices that the scheduler
allocated, as the API server at SERVER has them. Messages are written by hand, so that grpcio (Debian: python3-grpcio)
is all it needs.
"""

import json
import os
import ssl
import sys
import threading
import urllib.request
from concurrent import futures

import grpc


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A text or a message."""
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def fields(message):
    """The texts and messages of a message: (number, bytes)."""
    at = 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        key = take()
        length = take()
        if key & 7 == 2:
            yield key >> 3, message[at:at + length]
            at += length


class Driver:
    def __init__(self, folder, name, server, ca, token):
        self.folder, self.name, self.server, self.token = folder, name, server, token
        self.tls = ssl.create_default_context(cafile=ca)
        self.socket = os.path.join(folder, "plugins", name, "dra.sock")
        self.registry = os.path.join(folder, "plugins_registry", name + "-reg.sock")

    def results(self, ns, name):
        call = urllib.request.Request(
            f"{self.server}/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims/{name}",
            headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(call, context=self.tls, timeout=10) as answer:
            claim = json.load(answer)
        return [r for r in claim["status"]["allocation"]["devices"]["results"] if r["driver"] == self.name]

    def prepare(self, request, context):
        del context
        out = b""
        for _, claim in fields(request):
            ns, uid, name = (dict(fields(claim))[i].decode() for i in (1, 2, 3))
            answer = b"".join(field(1, field(1, r["request"]) + field(2, r["pool"]) + field(3, r["device"]))
                              for r in self.results(ns, name))
            print("prepared", ns, name, flush=True)
            out += field(1, field(1, uid) + field(2, answer))
        return out

    def unprepare(self, request, context):
        del context
        return b"".join(field(1, field(1, dict(fields(claim))[2]) + field(2, b"")) for _, claim in fields(request))

    def info(self, request, context):
        del request, context
        return field(1, "DRAPlugin") + field(2, self.name) + field(3, self.socket) + field(4, "v1.DRAPlugin")

    def registered(self, request, context):
        del context
        print("registered" if request[:2] == b"\x08\x01" else f"not registered: {request!r}", flush=True)
        return b""

    @staticmethod
    def serve(path, service, **methods):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.unlink(path)
        server = grpc.server(futures.ThreadPoolExecutor(8))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {
            name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}),))
        server.add_insecure_port("unix:" + path)
        server.start()
        return server

    def run(self):
        servers = (
            self.serve(self.socket, "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
                       NodePrepareResources=self.prepare, NodeUnprepareResources=self.unprepare),
            # The kubelet calls the plugin once this socket is there.
            self.serve(self.registry, "pluginregistration.Registration",
                       GetInfo=self.info, NotifyRegistrationStatus=self.registered))
        threading.Event().wait()
        return servers


Driver(*sys.argv[1:]).run()
