# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What two operators made of the same jobs, without what differs by chance, and how it differs."""

import json

DROPPED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation",
           "generateName", "selfLink", "namespace")
RESOURCES = ("pods", "services", "configmaps", "serviceaccounts", "roles", "rolebindings",
             "horizontalpodautoscalers")
EVENTS_OF_OTHERS = ("default-scheduler", "kwok", "kubelet", "horizontal-pod-autoscaler")


def look(api, ns, entries):
    """{job: {"status": …, "pods": {name: …}, …, "events": [reason, …]}}"""
    found = {e.name: {"status": None, "events": []} for e in entries}
    owners = {}
    for e in entries:
        job = clean(api.get(e.plural, ns, e.name), ns)
        owners[e.name] = e
        found[e.name]["status"] = status(job.get("status") or {})
    for resource in RESOURCES:
        for o in api.list(resource, ns):
            owner = next((r["name"] for r in o["metadata"].get("ownerReferences", [])
                          if r.get("controller")), None)
            if owner in found and not o["metadata"].get("deletionTimestamp"):
                made = clean(o, ns)
                found[owner].setdefault(resource, {})[o["metadata"]["name"]] = made
    for o in api.list("events", ns):
        about = o["involvedObject"]
        if about.get("name") in found and about.get("kind") == owners[about["name"]].kind:
            found[about["name"]]["events"].append(o["type"] + " " + o["reason"])
    for one in found.values():
        one["events"] = {reason: True for reason in sorted(set(one["events"]))}
    return found


def clean(o, ns):
    """Without the marks of the server, the scheduler and kwok, and of the namespace."""
    o = json.loads(json.dumps(o).replace(ns, "NS"))
    meta = o["metadata"]
    for name in DROPPED:
        meta.pop(name, None)
    for reference in meta.get("ownerReferences", []):
        reference.pop("uid", None)
    o.pop("apiVersion", None), o.pop("kind", None)
    if "containers" in o.get("spec", {}):
        o.pop("status", None)
        for name in ("nodeName", "serviceAccount"):
            o["spec"].pop(name, None)
    elif "clusterIP" in o.get("spec", {}):
        o.pop("status", None)
        # In the order of a Go map.
        o["spec"].get("ports", []).sort(key=lambda port: port["name"])
    return o


def status(s):
    """Times by their being there; conditions by type, and the order in which they stand."""
    conditions = s.pop("conditions", None) or []
    s["order"] = [c["type"] for c in conditions]
    s["conditions"] = {c["type"]: {k: c.get(k) for k in ("status", "reason", "message")}
                       for c in conditions}
    for name in ("startTime", "completionTime", "lastReconcileTime"):
        if name in s:
            s[name] = "there"
    # A count of none is left out by one and written by another; to a client of Go both are 0.
    for counts in (s.get("replicaStatuses") or {}).values():
        for name in ("active", "succeeded", "failed"):
            counts[name] = counts.get(name, 0)
    return s


def keyed(items):
    """Lists of named things by name, so that one more does not shift the rest."""
    names = [i.get("name") for i in items if isinstance(i, dict)]
    if items and len(names) == len(items) and None not in names and len(set(names)) == len(names):
        return {i["name"]: i for i in items}
    return None


def differences(left, right, at=""):
    """[(path, left, right)]; None for what is not there."""
    if isinstance(left, dict) and isinstance(right, dict):
        found = []
        for key in sorted(set(left) | set(right)):
            found += differences(left.get(key), right.get(key), f"{at}/{key}")
        return found
    if isinstance(left, list) and isinstance(right, list) and left != right:
        a, b = keyed(left), keyed(right)
        if a is not None and b is not None and (a != b or list(a) != list(b)):
            order = [] if [k for k in a if k in b] == [k for k in b if k in a] else \
                [(at + "/order", list(a), list(b))]
            return differences(a, b, at) + order
    return [] if left == right else [(at, left, right)]
