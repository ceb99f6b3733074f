# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Manifests in one form: the output of helm, kustomize and `holdfast manifests` becomes comparable."""

import os
import re
import shutil
import subprocess
import tempfile

from . import build

CHART = os.path.join(build.TOP, "deploy", "helm", "holdfast")
KUSTOMIZE = os.path.join(build.TOP, "deploy", "kustomize")


def find(folder, name):
    """A program that tests/cluster/cluster has built, else that of PATH; None if there is none."""
    made = build.program(folder, name)
    return made if os.path.exists(made) else shutil.which(name)


def run(*argv, env=None):
    """The standard output; an AssertionError with the program's complaint if it fails."""
    made = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    if made.returncode != 0:
        raise AssertionError(f"{os.path.basename(argv[0])}: {(made.stderr or made.stdout).strip()}")
    return made.stdout


def helm(*values, ns="holdfast-system"):
    """The chart's objects as YAML; values: as for --set."""
    flags = [word for v in values for word in ("--set", v)]
    return run(find("helm", "helm"), "template", "holdfast", CHART, "--namespace", ns, *flags)


def kustomize(folder):
    return run(find("kubernetes", "kubectl"), "kustomize", folder)


def kustomize_with(image=None, **keys):
    """A kustomization that names folders of deploy/kustomize: resources=["base"]. image: (name, tag)."""
    with tempfile.TemporaryDirectory() as folder:
        lines = ['images: [{name: holdfast, newName: %s, newTag: "%s"}]' % image] if image else []
        for key, paths in keys.items():
            lines += [f"{key}:", *(f"  - {os.path.relpath(os.path.join(KUSTOMIZE, p), folder)}" for p in paths)]
        with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        return kustomize(folder)


def objects(text):
    """{(kind, name, namespace): YAML in kustomize's own form, with sorted keys}."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("all.yaml", text), ("kustomization.yaml", "resources: [all.yaml]\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(content)
        made = kustomize(folder)
    return {identity(d): d.rstrip("\n") for d in made.split("\n---\n")}


def identity(document):
    def field(pattern):
        found = re.search(pattern, document, re.M)
        return found[1] if found else ""
    return (field(r"^kind: (\S+)"), field(r"^  name: (\S+)"), field(r"^  namespace: (\S+)"))
