# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A bill of materials in SPDX 2.3 (JSON): the program, and the Debian package of each file beside it."""

import hashlib
import os
import re
import subprocess

import image


def package_of(path):
    """Returns (package, version, source package) of a file, from dpkg; None if no package has the
    file."""
    # dpkg lists a file under its name in the package, which may lack or have the prefix /usr.
    real = os.path.realpath(path)
    names = dict.fromkeys([path, real, real.removeprefix("/usr"), "/usr" + path])
    for name in names:
        run = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
        found = re.match(r"(\S+): ", run.stdout)
        if run.returncode == 0 and found:
            shown = subprocess.run(
                ["dpkg-query", "--show", "--showformat=${Package}\t${Version}\t${source:Package}",
                 found[1].split(",")[0]], capture_output=True, text=True, check=True)
            return tuple(shown.stdout.split("\t"))
    return None


def identifier(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def document(name, version, files, seconds):
    """Makes the document. files: [(path in the image, path here)]; files of no package belong to
    Holdfast."""
    own = ("holdfast", version, "holdfast")
    digest = hashlib.sha256()
    packages, listed, relations = {}, [], []
    for inside, path in sorted(files):
        with open(path, "rb") as f:
            data = f.read()
        sha1, sha256 = hashlib.sha1(data).hexdigest(), hashlib.sha256(data)
        digest.update(inside.encode() + b"\0" + sha256.digest())
        packages.setdefault(package_of(path) or own, []).append((inside, sha1))
        listed.append({
            "SPDXID": identifier("file-" + inside), "fileName": "./" + inside,
            "checksums": [{"algorithm": "SHA1", "checksumValue": sha1},
                          {"algorithm": "SHA256", "checksumValue": sha256.hexdigest()}],
            "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"],
            "copyrightText": "NOASSERTION"})
    out = []
    for owner, inside in sorted(packages.items()):
        out.append(package(owner, owner == own, [sha1 for _, sha1 in inside]))
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", out[-1]["SPDXID"]))
        relations += [(out[-1]["SPDXID"], "CONTAINS", identifier("file-" + i)) for i, _ in inside]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": "https://holdfast.dev/spdx/" + digest.hexdigest(),
        "creationInfo": {"created": image.stamp(seconds), "creators": ["Tool: holdfast-tools-image"]},
        "packages": out, "files": listed,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations]}


def package(owner, is_own, checksums):
    name, number, source = owner
    code = hashlib.sha1("".join(sorted(checksums)).encode()).hexdigest()
    made = {"SPDXID": identifier("package-" + name), "name": name, "versionInfo": number,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": True,
            "packageVerificationCode": {"packageVerificationCodeValue": code},
            "licenseInfoFromFiles": ["NOASSERTION"],
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION"}
    if is_own:
        made.update(licenseDeclared="Apache-2.0", primaryPackagePurpose="APPLICATION")
    else:
        made["sourceInfo"] = f"built from Debian's source package {source}"
        made["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                 "referenceLocator": f"pkg:deb/debian/{name}@{number}"}]
    return made
