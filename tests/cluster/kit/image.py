# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Container images made of busybox-static alone, so that a real pod needs no registry."""

import os
import sys

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
