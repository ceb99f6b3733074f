# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Container images made of busybox-static alone, so that a real pod needs no registry."""

import hashlib
import io
import json
import os
import tarfile

APPLETS = ("cat date echo env false grep hostname kill ls nc nslookup printf seq sh sleep test touch "
           "true wget").split()
BUSYBOX = "/bin/busybox"


def file(name, **members):
    info = tarfile.TarInfo(name)
    for key, value in members.items():
        setattr(info, key, value)
    return info


def layer():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as t:
        for folder in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            t.addfile(file(folder, type=tarfile.DIRTYPE, mode=0o1777 if folder == "tmp" else 0o755))
        with open(BUSYBOX, "rb") as f:
            t.addfile(file("bin/busybox", size=os.path.getsize(BUSYBOX), mode=0o755), f)
        for applet in APPLETS:
            t.addfile(file("bin/" + applet, type=tarfile.SYMTYPE, linkname="busybox"))
    return made.getvalue()


def machine():
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def write(path, name):
    """A docker archive that `ctr images import` takes."""
    blob = layer()
    config = json.dumps({
        "architecture": machine(), "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["sleep", "1000000"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(blob).hexdigest()]},
    }).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name],
                            "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as out:
        for member, data in ((config_name, config), ("layer.tar", blob),
                             ("manifest.json", manifest)):
            out.addfile(file(member, size=len(data)), io.BytesIO(data))
