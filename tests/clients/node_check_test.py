#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""node_check_test.py HOLDFAST SERVE: the agent's node health check, asked by grpcio.

NVIDIA's ft_launcher asks nvhcd.HealthCheckService before each rendezvous. The client here is made from the
same facts: by grpcio-tools if this Python has it, else by protobuf alone.
"""

import importlib
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    print("SKIPPED: no grpcio or protobuf for", sys.executable, "(Debian: python3-grpcio)", file=sys.stderr)
    sys.exit(77)

PROTO = """syntax = "proto3";
package nvhcd;
service HealthCheckService { rpc RunHealthCheck(HealthCheckRequest) returns (HealthCheckResponse); }
message HealthCheckRequest { repeated string args = 1; }
message HealthCheckResponse { bool success = 1; int32 exit_code = 2; string output = 3; string error = 4; }
"""


def generated(folder):
    """The stub that grpcio-tools makes, and its request; None without grpcio-tools."""
    try:
        from grpc_tools import protoc
    except ImportError:
        return None
    (folder / "nvhcd.proto").write_text(PROTO, encoding="utf-8")
    where = [f"-I{folder}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    if protoc.main(["protoc", *where, str(folder / "nvhcd.proto")]) != 0:
        sys.exit("protoc failed")
    sys.path.insert(0, str(folder))
    pb2, stubs = importlib.import_module("nvhcd_pb2"), importlib.import_module("nvhcd_pb2_grpc")
    return lambda channel: stubs.HealthCheckServiceStub(channel).RunHealthCheck, pb2.HealthCheckRequest


def by_hand():
    """The same from descriptors that are written here."""
    F = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="nvhcd.proto", package="nvhcd", syntax="proto3")
    request = file.message_type.add(name="HealthCheckRequest")
    request.field.add(name="args", number=1, type=F.TYPE_STRING, label=F.LABEL_REPEATED)
    response = file.message_type.add(name="HealthCheckResponse")
    for number, (name, kind) in enumerate([("success", F.TYPE_BOOL), ("exit_code", F.TYPE_INT32),
                                           ("output", F.TYPE_STRING), ("error", F.TYPE_STRING)], 1):
        response.field.add(name=name, number=number, type=kind, label=F.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    make = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    asked, told = (make(pool.FindMessageTypeByName(f"nvhcd.{name}"))
                   for name in ("HealthCheckRequest", "HealthCheckResponse"))
    return lambda channel: channel.unary_unary(
        "/nvhcd.HealthCheckService/RunHealthCheck", request_serializer=asked.SerializeToString,
        response_deserializer=told.FromString), asked


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        select.select([], [], [], 0.1)
    sys.exit(f"FAILED: {what} within {seconds} s")


def want(what, condition, seen):
    if not condition:
        sys.exit(f"FAILED: {what}: {seen}")


def main():
    holdfast, serve = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = generated(folder)
        method_of, request = made or by_hand()
        (folder / "api").mkdir()
        (folder / "sys/bus/pci/devices").mkdir(parents=True)
        (folder / "sys/class/infiniband").mkdir(parents=True)
        os.mkfifo(folder / "kmsg")
        with open(folder / "log", "wb") as log:
            server = subprocess.Popen([serve, folder / "api"], stdout=log, stderr=log)
            until("the server is up", lambda: (folder / "api/kubeconfig").exists())
            agent = subprocess.Popen(
                [holdfast, "agent", "--node-name=n1", f"--kmsg={folder}/kmsg", "--state-dir=", "--nvml=",
                 "--kubelet-socket=", f"--sysfs={folder}/sys", f"--report-socket={folder}/agent.sock",
                 "--listen=127.0.0.1:0"], stdout=log, stderr=log,
                env={**os.environ, "KUBECONFIG": str(folder / "api/kubeconfig")})
        try:
            socket = folder / "health.sock"
            until("the socket is there", socket.exists)
            want("any process may ask", socket.stat().st_mode & 0o777 == 0o666, oct(socket.stat().st_mode))
            with grpc.insecure_channel(f"unix://{socket}") as channel:
                ask(folder, method_of(channel), request, channel)
        except BaseException:
            sys.stderr.write((folder / "log").read_text(errors="replace")[-4000:])
            raise
        finally:
            for process in (agent, server):
                process.kill()
                process.wait()
    print("a client of", "grpcio-tools" if made else "grpcio", grpc.__version__, "was answered")


def ask(folder, run, request, channel):
    def check():
        return run(request(args=["--no-slurm"]), timeout=10)

    well = check()
    want("a node without faults passes", well.success and well.exit_code == 0, well)
    want("its output is JSON with a fail_count", json.loads(well.output)["fail_count"] == 0, well.output)
    start = time.monotonic()
    for _ in range(20):
        check()
    took = (time.monotonic() - start) / 20
    want("it answers in milliseconds", took < 0.1, took)
    (folder / "kmsg").write_text("NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus.\n",
                                 encoding="utf-8")
    sick = until("the fault fails the check", lambda: (lambda a: None if a.success else a)(check()))
    output = json.loads(sick.output)
    want("the number of sick devices", output["fail_count"] >= 1 and sick.exit_code == 1, sick)
    want("the device is named", any("1a:00.0" in d["device"] and d["state"] == "Unhealthy"
                                    for d in output["devices"]), sick.output)
    want("the error is for people", "0000:1a:00.0 is Unhealthy" in sick.error, sick.error)
    try:
        channel.unary_unary("/nvhcd.HealthCheckService/Other")(b"", timeout=10)
        sys.exit("FAILED: another method was answered")
    except grpc.RpcError as e:
        want("another method is refused", e.code() == grpc.StatusCode.UNIMPLEMENTED, e)
    try:
        for _ in range(200):
            check()
        sys.exit("FAILED: a flood was answered")
    except grpc.RpcError as e:
        want("a flood is refused", e.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, e)


main()
