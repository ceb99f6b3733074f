# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Container images of what is here, busybox-static mostly, so that a real pod needs no registry."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../tools/lib"))
import image

APPLETS = ("cat date echo env false grep hostname kill ls nc nslookup printf seq sh sleep test touch "
           "true wget").split()
BUSYBOX = "/bin/busybox"


def write(path, name):
    """An archive that `ctr images import` takes."""
    layer = image.Layer()
    for folder in ("dev", "etc", "proc", "sys"):
        layer.folder(folder)
    layer.folder("tmp", 0o1777)
    layer.copy("bin/busybox", BUSYBOX, 0o755)
    for applet in APPLETS:
        layer.link("bin/" + applet, "busybox")
    image.write(path, name, layer, {"Env": ["PATH=/bin"], "Cmd": ["sleep", "1000000"]})


def write_bare(path, name):
    """One with nothing of its own, for pods that mount this machine's /usr."""
    layer = image.Layer()
    for folder in ("data", "dev", "etc/alternatives", "proc", "root", "sys", "usr"):
        layer.folder(folder)
    layer.folder("tmp", 0o1777)
    layer.file("etc/passwd", b"root:x:0:0::/root:/bin/sh\n")
    for link in ("bin", "lib", "lib64", "sbin"):
        layer.link(link, "usr/" + link)
    image.write(path, name, layer, {"Env": ["PATH=/usr/bin:/bin"]})


def write_lookup(path, name):
    """One for init containers that wait for a name, with this machine's resolver.

    A newer busybox's nslookup is content only if the name is there under every domain of the search
    list (the alpine:3.10 that upstream names is older), and its shell prefers its own nslookup.
    """
    layer = image.Layer()
    for link in ("bin", "lib", "lib64"):
        layer.link(link, "usr/" + link)
    layer.folder("dev")
    layer.folder("proc")
    layer.folder("sys")
    layer.file("etc/nsswitch.conf", b"hosts: files dns\n")
    layer.file("usr/bin/nslookup", b'#!/bin/sh\nexec getent hosts "$1"\n', 0o755)
    files = {f"/usr/bin/{n}": f"/usr/bin/{n}" for n in ("getent", "seq", "sleep")}
    files["/usr/bin/sh"] = "/usr/bin/dash"
    for program in list(files.values()):
        run = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        for library in re.findall(r"(/\S+) \(0x", run.stdout):
            files["/usr" + library.removeprefix("/usr")] = library
    for where, what in sorted(files.items()):
        layer.copy(where.lstrip("/"), what, 0o755)
    image.write(path, name, layer, {"Env": ["PATH=/usr/bin"]})


# As upstream's image does it: the launcher begins when its workers run.
DELIVER = b"""\
#!/bin/sh
set -eu
cp /bin/kubectl "$TARGET_DIR/kubectl"
while read -r host slots; do
	until [ "$(kubectl get pod "$host" -o 'jsonpath={.status.phase}')" = Running ]; do
		sleep 0.5
	done
done </etc/mpi/hostfile
"""


def write_delivery(path, name, kubectl):
    """What brings kubectl to the launcher of an MPIJob."""
    layer = image.Layer()
    for folder in ("dev", "etc", "proc", "sys"):
        layer.folder(folder)
    layer.folder("tmp", 0o1777)
    layer.copy("bin/busybox", BUSYBOX, 0o755)
    for applet in ("cp", "sh", "sleep"):
        layer.link("bin/" + applet, "busybox")
    layer.copy("bin/kubectl", kubectl, 0o755)
    layer.file("bin/deliver", DELIVER, 0o755)
    image.write(path, name, layer, {"Env": ["PATH=/bin"], "Entrypoint": ["/bin/deliver"]})


def write_program(path, name, where, program):
    """One program that needs no library."""
    layer = image.Layer()
    layer.copy(where.lstrip("/"), program, 0o755)
    layer.folder("tmp", 0o1777)
    image.write(path, name, layer, {"Entrypoint": [where]})


def derive(path, made, name, layer, env):
    """The image in the archive at path with one more layer and more environment, as another."""
    with tarfile.open(path) as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}
    manifest = json.loads(members.pop("manifest.json"))[0]
    config = json.loads(members.pop(manifest["Config"]))
    blob = layer.bytes()
    config["config"]["Env"] += env
    config["rootfs"]["diff_ids"].append("sha256:" + hashlib.sha256(blob).hexdigest())
    text = json.dumps(config, sort_keys=True).encode()
    members.update({"more.tar": blob, "config.json": text, "manifest.json": json.dumps([{
        "Config": "config.json", "RepoTags": [name],
        "Layers": manifest["Layers"] + ["more.tar"]}]).encode()})
    outer = image.Layer()
    for member, data in members.items():
        outer.file(member, data)
    with open(made, "wb") as f:
        f.write(outer.bytes())
