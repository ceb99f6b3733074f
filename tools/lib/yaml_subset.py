# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Reads the YAML of deploy/ and of kustomize: block and flow collections, plain and double-quoted scalars.

Python's standard library has no YAML. Anchors, tags and block scalars are refused, so a file that
needs more fails instead of being misread. All scalars are returned as text.
"""

import json
import re

KEY = re.compile(r'("(?:\\.|[^"\\])*"|[^\s:"#{\[][^:]*?):(?:\s+(.*))?$')


def _scalar(text):
    text = text.strip()
    if text[:1] in ("&", "*", "!", "|", ">"):
        raise ValueError(f"not supported: {text}")
    return json.loads(text) if text.startswith('"') else text


def _flow(text):
    """Parses a text that is one flow collection or one scalar."""
    if text[:1] not in ("{", "["):
        return _scalar(text)
    value, end = _flow_value(text, 0)
    if text[end:].strip():
        raise ValueError(f"more after a value: {text[end:]}")
    return value


def _flow_value(text, at):
    while text[at] == " ":
        at += 1
    if text[at] == "{":
        return _flow_items(text, at + 1, "}", {})
    if text[at] == "[":
        return _flow_items(text, at + 1, "]", [])
    if text[at] == '"':
        m = re.compile(r'"(?:\\.|[^"\\])*"').match(text, at)
        return json.loads(m.group(0)), m.end()
    m = re.compile(r"[^,\]}]*").match(text, at)
    return m.group(0).strip(), m.end()


def _flow_items(text, at, closing, found):
    while True:
        at = re.compile(r"[\s,]*").match(text, at).end()
        if text[at] == closing:
            return found, at + 1
        if closing == "}":
            key = re.compile(r'("(?:\\.|[^"\\])*"|[^:,{}\[\]]+):\s*').match(text, at)
            if not key:
                raise ValueError(f"no key at: {text[at:]}")
            found[_scalar(key.group(1))], at = _flow_value(text, key.end())
        else:
            value, at = _flow_value(text, at)
            found.append(value)


def _block(lines, indent):
    """Parses the collection whose lines have this indent; takes its lines from the end of
    `lines`."""
    found = None
    while lines and lines[-1][0] == indent:
        _, text = lines[-1]
        if text.startswith("- "):
            if isinstance(found, dict):
                raise ValueError(f"an item among keys: {text}")
            found = [] if found is None else found
            lines[-1] = (indent + 2, text[2:])
            found.append(_block(lines, indent + 2) if KEY.match(text[2:]) else
                         _flow(lines.pop()[1]))
            continue
        if isinstance(found, list):
            break  # a list at the indent of its key is over
        key = KEY.match(text)
        if not key:
            raise ValueError(f"neither a key nor an item: {text}")
        found = {} if found is None else found
        lines.pop()
        if key.group(2):
            found[_scalar(key.group(1))] = _flow(key.group(2))
        else:
            deeper, below = lines[-1] if lines else (indent, "")
            inside = deeper > indent or (deeper == indent and below.startswith("- "))
            found[_scalar(key.group(1))] = _block(lines, deeper) if inside else None
    return found


def documents(text):
    """The texts of the documents of a manifest, without the marks of tools/embed-manifests."""
    return re.split(r"^---$", re.sub(r" # --[\w-]+$", "", text, flags=re.M), flags=re.M)


def parse(text):
    """Parses a file with one document. ValueError: the file uses YAML that is not supported
    here."""
    lines = [(len(l) - len(l.lstrip()), l.strip()) for l in text.splitlines()
             if l.strip() and not l.lstrip().startswith("#")]
    lines.reverse()
    try:
        found = _block(lines, 0)
    except IndexError:
        raise ValueError("a flow collection is not closed on its line") from None
    if lines:
        raise ValueError(f"unexpected indentation: {lines[-1][1]}")
    return found
