# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Container images without a builder: one layer, in the archive that `docker load`, `podman load`
and `ctr images import` take.  The same input gives the same bytes."""

import hashlib
import io
import json
import os
import tarfile
import time


class Layer:
    """The files of one layer. All are owned by root and have the same time."""

    def __init__(self, time_s=0):
        self.made, self.time_s, self.folders = io.BytesIO(), time_s, {""}
        self.tar = tarfile.open(fileobj=self.made, mode="w", format=tarfile.PAX_FORMAT)

    def entry(self, name, **members):
        info = tarfile.TarInfo(name)
        info.mtime = self.time_s
        for key, value in members.items():
            setattr(info, key, value)
        return info

    def folder(self, name, mode=0o755):
        """Adds a folder and the folders above it."""
        if name in self.folders:
            return
        self.folder(os.path.dirname(name))
        self.folders.add(name)
        self.tar.addfile(self.entry(name, type=tarfile.DIRTYPE, mode=mode))

    def file(self, name, data, mode=0o644):
        self.folder(os.path.dirname(name))
        self.tar.addfile(self.entry(name, size=len(data), mode=mode), io.BytesIO(data))

    def copy(self, name, path, mode=0o644):
        with open(path, "rb") as f:
            self.file(name, f.read(), mode)

    def link(self, name, to):
        self.folder(os.path.dirname(name))
        self.tar.addfile(self.entry(name, type=tarfile.SYMTYPE, linkname=to, mode=0o777))

    def bytes(self):
        self.tar.close()
        return self.made.getvalue()


def machine():
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def write(path, name, layer, config, time_s=0, architecture=None):
    """Write the archive and return the image's ID.

    config: as in an image's configuration (User, Env, Entrypoint, Cmd, Labels …).
    """
    blob = layer.bytes()
    created = stamp(time_s)
    text = json.dumps({
        "architecture": architecture or machine(), "os": "linux", "config": config, "created": created,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(blob).hexdigest()]},
        "history": [{"created": created, "created_by": "tools/image"}],
    }, sort_keys=True).encode()
    config_name = hashlib.sha256(text).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name],
                            "Layers": ["layer.tar"]}]).encode()
    outer = Layer(time_s)
    for member, data in ((config_name, text), ("layer.tar", blob), ("manifest.json", manifest)):
        outer.file(member, data)
    with open(path, "wb") as f:
        f.write(outer.bytes())
    return "sha256:" + hashlib.sha256(text).hexdigest()
