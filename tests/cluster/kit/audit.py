# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What the program under test has asked of the API server, from its audit log."""

import collections
import json


def call(line, user=None, agent=None):
    """An answered request as a dict; None for other lines, and for those of others."""
    e = json.loads(line)
    # A watch counts when it begins; it may go on for an hour.
    code = e.get("responseStatus", {}).get("code", 0)
    if e["stage"] != ("ResponseStarted" if e["verb"] == "watch" and code < 400 else
                      "ResponseComplete"):
        return None
    if user and e["user"].get("username") != user:
        return None
    if agent and not e.get("userAgent", "").startswith(agent):
        return None
    ref = e.get("objectRef") or {}
    name = ref.get("resource", e["requestURI"].split("?")[0])
    if ref.get("subresource"):
        name += "/" + ref["subresource"]
    return {"verb": e["verb"], "resource": name, "namespace": ref.get("namespace", ""),
            "name": ref.get("name", ""), "code": code,
            "user": e["user"].get("username", ""), "agent": e.get("userAgent", ""),
            "at": e["requestReceivedTimestamp"]}


def calls(path, user=None, agent=None):
    """Answered requests, one dict each; half a line at the end is left alone."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            if not line.endswith("\n"):
                return
            found = call(line, user, agent)
            if found:
                yield found


class Follower:
    """Counts calls as the log grows: each look reads only what is new."""

    def __init__(self, path, key, user=None):
        self.path, self.key, self.user = path, key, user
        self.offset = 0
        self.counts = collections.Counter()

    def look(self):
        """The counts so far, a copy."""
        with open(self.path, "rb") as f:
            f.seek(self.offset)
            for line in f:
                if not line.endswith(b"\n"):
                    break
                self.offset += len(line)
                found = call(line, self.user)
                if found:
                    self.counts[self.key(found)] += 1
        return self.counts.copy()


def count(path, key=lambda c: (c["verb"], c["resource"]), **which):
    """How many calls by verb and resource."""
    return collections.Counter(key(c) for c in calls(path, **which))


def table(counts):
    """Text for people, most first."""
    rows = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    width = max([len(f"{v} {r}") for (v, r), _ in rows] or [5])
    lines = [f"{v + ' ' + r:<{width}} {n:8}" for (v, r), n in rows]
    return "\n".join(lines + [f"{'total':<{width}} {sum(counts.values()):8}"])
