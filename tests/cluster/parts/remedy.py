# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Nodes whose devices fail are quarantined and drained as a HealthPolicy says, with the shipped rights.

What the nodes' agents would write is written here; the nodes are kwok's, the budgets of pods the real
controller-manager's.
"""

import json
import time

from kit import audit, build, client
from kit.check import Fail, Skip, equal, parallel, want
from parts import nodes as node_part, rbac

NEEDS = {"kwok": 4}
BUILD = ["control", "kwok"]
MINUTES = 6
FLEET = 5
TAINT, MARK = "holdfast.dev/device", "holdfast.dev/quarantine"
ILL = {"well": ("Healthy", None, None), "reset": ("Unhealthy", "gpu-reset", "reset-device"),
       "reboot": ("Unhealthy", "reboot", "restart-node")}
WIDE = {"budget": {"maxUnavailable": {"percent": 100}, "maxQuarantines": {"count": 60}},
        "breaker": {"percent": 100}}


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator does not look at devices")
    said = w.install()
    w.cluster.add_kwok(FLEET, "gpu")
    for name in fleet():
        # The machine's, as its kubelet tells it.
        w.api.call("PATCH", client.path("nodes", None, name, "status"), {"status": {
            "nodeInfo": {"bootID": "boot-" + name}}}, client.MERGE)
        w.api.create("devicehealths", None, {"apiVersion": "holdfast.dev/v1alpha1",
                                             "kind": "DeviceHealth", "metadata": {"name": name}})
    return said


def fleet():
    return [f"gpu-{i}" for i in range(FLEET)]


def now():
    t = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t)) + f".{int(t % 1 * 1e6):06d}Z"


def tell(w, node, ill="well", pods=()):
    """What the node's agent would say, of one device that these pods hold."""
    state, cls, action = ILL[ill]
    w.api.patch("devicehealths", None, node, {"status": {
        "observedTime": now(), "bootID": "boot-" + node, "state": state, "class": cls,
        "action": action, "evidenceTime": now() if cls else None,
        "devices": [{"id": "0000:1a:00.0", "kind": "gpu", "state": state, "holders": [{
            "namespace": p["metadata"]["namespace"], "pod": p["metadata"]["name"],
            "uid": p["metadata"]["uid"], "container": "c"} for p in pods]}]}}, sub="status")


def tainted(w, node):
    """Our taint on it, or None."""
    found = w.api.get("nodes", None, node)
    return next((t for t in found["spec"].get("taints", []) if t["key"] == TAINT), None)


def out(w):
    return sorted(n for n in fleet() if tainted(w, n))


def begin(w, **spec):
    """All are well and nothing of ours is on them; then this policy, and an operator with the shipped
    rights."""
    w.end_operators()
    if w.api.find("healthpolicies", None, "p"):
        w.api.delete("healthpolicies", None, "p")
    for name in fleet():
        w.api.patch("nodes", None, name, {"metadata": {"annotations": {
            MARK: None, "holdfast.dev/paused": None}}, "spec": {"taints": None, "unschedulable": None}})
    parallel(fleet(), lambda n: tell(w, n))
    user = node_part.shipped_operator(w)
    w.api.create("healthpolicies", None, {"apiVersion": "holdfast.dev/v1alpha1",
                                          "kind": "HealthPolicy", "metadata": {"name": "p"},
                                          "spec": {"selector": {"matchLabels": {"group": "gpu"}},
                                                   **spec}})
    w.until("the policy is looked at", lambda: status(w).get("counts", {}).get("selected") == FLEET)
    return user


def status(w):
    return w.api.get("healthpolicies", None, "p").get("status", {})


def said_of(w, node):
    """What the policy's status says is next with a node."""
    return next((n for n in status(w).get("nodes", []) if n["name"] == node), {})


def event(w, reason, name):
    return w.until(f"event {reason} of {name}", lambda: any(
        e["reason"] == reason and e["involvedObject"]["name"] == name
        for e in w.api.list("events", fields=f"reason={reason}")), 30)


def stays(what, check, seconds=4):
    """check() holds all that time."""
    end = time.monotonic() + seconds

    def over():
        want(check(), what)
        return time.monotonic() >= end
    client.until(what, over, seconds + 30, 0.3)


def quiet(w, user):
    w.end_operators()
    refused = sorted({f"{c['verb']} {c['resource']}" for c in audit.calls(
        w.cluster.path("audit.log"), user=user) if c["code"] == 403})
    equal("requests that were forbidden", refused, [])


def check_observe(w):
    """In mode observe it is told what would be done, and no Node or pod is written"""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    user = begin(w)
    tell(w, "gpu-1", "reset")
    w.until("it is told", lambda: said_of(w, "gpu-1").get("answer") == "would")
    equal("what would be done", said_of(w, "gpu-1")["next"], "quarantine")
    event(w, "WouldQuarantine", "gpu-1")
    equal("the mode in force", status(w)["mode"], "observe")
    stays("nothing is tainted", lambda: out(w) == [])
    wrote = sorted({f"{c['verb']} {c['resource']}" for c in audit.calls(
        w.cluster.path("audit.log"), user=user)
        if c["at"] >= since and c["verb"] not in ("get", "list", "watch")})
    want(set(wrote) <= {"patch healthpolicies/status", "create events", "patch events",
                        "create leases", "update leases"}, f"it wrote {wrote}")
    rows = w.cluster.kubectl("get", "hp")
    want("observe" in rows and "Closed" in rows, rows)
    quiet(w, user)


def check_quarantine(w):
    """A node whose device fails is tainted within seconds, and released when its agent says it is well"""
    user = begin(w, mode="quarantine", **WIDE)
    start = time.monotonic()
    tell(w, "gpu-2", "reset")
    w.until("it is tainted", lambda: tainted(w, "gpu-2"))
    took = time.monotonic() - start
    taint = tainted(w, "gpu-2")
    equal("the taint", (taint["value"], taint["effect"]), ("gpu-reset", "NoSchedule"))
    mark = json.loads(w.api.get("nodes", None, "gpu-2")["metadata"]["annotations"][MARK])
    equal("whose it is", mark["policy"], "p")
    event(w, "Quarantined", "gpu-2")
    w.until("the next rung is shown", lambda: said_of(w, "gpu-2").get("next") == "reset-device")
    equal("and not done", said_of(w, "gpu-2")["answer"], "would")
    event(w, "RemediationNeeded", "gpu-2")
    w.operators[-1].kill()
    w.operators[-1].start()
    stays("a new leader leaves it", lambda: out(w) == ["gpu-2"], 3)
    tell(w, "gpu-2")
    w.until("it is released", lambda: not tainted(w, "gpu-2"))
    want(MARK not in w.api.get("nodes", None, "gpu-2")["metadata"]["annotations"], "the mark is left")
    event(w, "Released", "gpu-2")
    equal("holdfast_breaker_tripped", w.operators[-1].metric("holdfast_breaker_tripped", policy="p"), 0)
    quiet(w, user)
    return f"tainted after {took:.1f} s"


def check_foreign(w):
    """Cordons and taints of others stay, and what a person takes off stays off"""
    user = begin(w, mode="quarantine", **WIDE)
    theirs = [{"key": "example.com/mine", "value": "x", "effect": "NoSchedule"}]
    w.api.patch("nodes", None, "gpu-1", {"spec": {"taints": theirs}})
    w.cluster.kubectl("cordon", "gpu-1")
    tell(w, "gpu-1", "reboot")
    stays("it is theirs", lambda: not tainted(w, "gpu-1"))
    w.cluster.kubectl("uncordon", "gpu-1")
    w.until("it is tainted", lambda: tainted(w, "gpu-1"))
    w.cluster.kubectl("cordon", "gpu-1")
    tell(w, "gpu-1")
    w.until("it is released", lambda: not tainted(w, "gpu-1"))
    spec = w.api.get("nodes", None, "gpu-1")["spec"]
    want(spec.get("unschedulable") is True, "the cordon is gone")
    want(theirs[0] in spec["taints"], f"the taint is gone: {spec['taints']}")
    tell(w, "gpu-3", "reset")
    w.until("it is tainted", lambda: tainted(w, "gpu-3"))
    w.cluster.kubectl("taint", "node", "gpu-3", TAINT + "-")
    stays("it stays off", lambda: not tainted(w, "gpu-3"))
    tell(w, "gpu-3", "reset")
    w.until("what is seen anew counts", lambda: tainted(w, "gpu-3"))
    w.cluster.kubectl("taint", "node", "gpu-3", TAINT + "-")
    w.cluster.kubectl("annotate", "node", "gpu-3", MARK + "-")
    w.until("the policy knows when", lambda: any(r.get("takenOff") for r in status(w)["recent"]))
    stays("it stays off without its annotation", lambda: not tainted(w, "gpu-3"))
    w.cluster.kubectl("uncordon", "gpu-1")
    quiet(w, user)


def check_budget(w):
    """Of many that fail one after the other no more are out than the budget has, whoever took them out"""
    user = begin(w, mode="quarantine", budget={"maxUnavailable": {"count": 2},
                                               "maxQuarantines": {"count": 60}},
                 breaker={"percent": 100})
    w.cluster.kubectl("cordon", "gpu-0")
    for name in fleet()[1:]:
        tell(w, name, "reset")
    w.until("one is tainted", lambda: out(w))
    first = out(w)
    stays("no other is", lambda: out(w) == first)
    held = [n for n in status(w)["nodes"] if n["answer"] == "held" and n["next"] == "quarantine"]
    equal("held", len(held), FLEET - 2)
    want(all(n["why"].startswith("unavailable") for n in held), str(held))
    event(w, "QuarantineBlocked", held[0]["name"])
    tell(w, first[0])
    w.until("another has its turn", lambda: len(out(w)) == 1 and out(w) != first, 90)
    w.cluster.kubectl("uncordon", "gpu-0")
    quiet(w, user)


def check_breaker(w):
    """When more than 60 % fail at once nothing is tainted until a person says so, and old news stay old"""
    user = begin(w, mode="quarantine", budget=WIDE["budget"], breaker={"percent": 60})
    parallel(fleet()[:4], lambda n: tell(w, n, "reboot"))
    w.until("the breaker is open", lambda: status(w)["breaker"]["state"] == "Open")
    event(w, "BreakerTripped", "p")
    stays("nothing is tainted", lambda: out(w) == [])
    w.until("the metric says so",
            lambda: w.operators[-1].metric("holdfast_breaker_tripped", policy="p") == 1)
    w.operators[-1].kill()
    w.operators[-1].start()
    stays("nor by a new leader", lambda: out(w) == [] and status(w)["breaker"]["state"] == "Open", 3)
    w.api.patch("healthpolicies", None, "p", {"spec": {"breaker": {"epoch": 1}}})
    w.until("it is closed", lambda: status(w)["breaker"]["state"] == "Closed")
    stays("what was seen before moves nothing", lambda: out(w) == [])
    want(all(n["why"].startswith("stale") for n in status(w)["nodes"]), str(status(w)["nodes"]))
    tell(w, "gpu-0", "reboot")
    w.until("what is seen now does", lambda: out(w) == ["gpu-0"])
    quiet(w, user)


def serving(w, count=2):
    """Pods of a ReplicaSet on the fleet, with a disruption budget that allows none to go."""
    ns = w.namespace()
    w.api.create("replicasets", ns, {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "serve"},
        "spec": {"replicas": count, "selector": {"matchLabels": {"app": "serve"}}, "template": {
            "metadata": {"labels": {"app": "serve"}}, "spec": {
                "nodeSelector": {"group": "gpu"}, "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "c", "image": "i"}]}}}})
    w.api.create("poddisruptionbudgets", ns, {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "serve"},
        "spec": {"minAvailable": count, "selector": {"matchLabels": {"app": "serve"}}}})
    w.until("they run", lambda: len([p for p in w.pods(ns) if p["status"].get("phase") == "Running"])
            == count)
    w.until("the budget is counted", lambda: (w.api.get(
        "poddisruptionbudgets", ns, "serve").get("status") or {}).get("currentHealthy") == count)
    return ns


def check_drain(w):
    """In mode remediate a ReplicaSet's pod on a failed device is evicted once its PDB lets it go"""
    user = begin(w, mode="remediate", drain={"graceSeconds": 1}, **WIDE)
    ns = serving(w)
    pod = w.pods(ns)[0]
    node = pod["spec"]["nodeName"]
    tell(w, node, "well", [pod])
    tell(w, node, "reset", [pod])
    w.until("it is tainted", lambda: tainted(w, node))
    event(w, "EvictionRefused", node)
    stays("the pod is left", lambda: w.api.get("pods", ns, pod["metadata"]["name"])["metadata"].get(
        "deletionTimestamp") is None)
    w.api.patch("poddisruptionbudgets", ns, "serve", {"spec": {"minAvailable": 1}})
    start = time.monotonic()
    w.until("the pod is evicted", lambda: w.api.find("pods", ns, pod["metadata"]["name"]) is None, 90)
    took = time.monotonic() - start
    event(w, "PodEvicted", node)
    w.until("another runs elsewhere", lambda: len([
        p for p in w.pods(ns) if p["status"].get("phase") == "Running"
        and p["spec"]["nodeName"] != node]) == 2)
    equal("holdfast_evictions_total", w.operators[-1].metric("holdfast_evictions_total",
                                                             result="done"), 1)
    tell(w, node)
    w.until("it is released", lambda: not tainted(w, node))
    quiet(w, user)
    return f"evicted {took:.1f} s after the budget allowed it"


def tell_plugin(w, node):
    """The node's device is well, and its plugin is gone."""
    at = now()
    w.api.patch("devicehealths", None, node, {"status": {
        "observedTime": at, "bootID": "boot-" + node, "state": "Degraded", "class": "software",
        "action": "restart-driver", "evidenceTime": at, "devices": [
            {"id": "node", "kind": "node", "state": "Degraded", "since": at, "faults": [{
                "detector": "plugin", "code": 2, "class": "software", "action": "restart-driver",
                "firstTime": at, "lastTime": at, "count": 1, "active": True}]},
            {"id": "0000:1a:00.0", "kind": "gpu", "state": "Healthy"}]}}, sub="status")


def check_plugin(w):
    """A plugin's DaemonSet that does not tolerate our taint comes back to a node that its loss alone keeps sick"""
    user = begin(w, mode="quarantine", **WIDE)
    ns = w.namespace()
    w.api.create("daemonsets", ns, {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "plugin"},
        "spec": {"selector": {"matchLabels": {"app": "plugin"}}, "template": {
            "metadata": {"labels": {"app": "plugin"}}, "spec": {
                "nodeSelector": {"group": "gpu"}, "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "i"}]}}}})

    def on(node):
        return [p for p in w.pods(ns) if p["spec"].get("nodeName") == node]
    w.until("it is everywhere", lambda: all(on(n) for n in fleet()))
    tell(w, "gpu-1", "reset")
    w.until("it is tainted", lambda: tainted(w, "gpu-1"))
    w.api.delete("pods", ns, on("gpu-1")[0]["metadata"]["name"])
    stays("the DaemonSet makes no pod there", lambda: not [
        p for p in on("gpu-1") if not p["metadata"].get("deletionTimestamp")])
    tell_plugin(w, "gpu-1")
    w.until("it is released", lambda: not tainted(w, "gpu-1"))
    w.until("the plugin is back", lambda: on("gpu-1"))
    # Nor is one tainted for it, under somebody's cordon or without.
    w.cluster.kubectl("cordon", "gpu-2")
    for node in ("gpu-2", "gpu-3"):
        tell_plugin(w, node)
    w.until("that is told", lambda: said_of(w, "gpu-3").get("why", "").startswith("pods"))
    stays("they are not tainted", lambda: out(w) == [])
    quiet(w, user)


# An administrator's own: nobody puts our taint on gpu-0.
GUARD = [
    {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "guard"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                                                "resources": ["nodes"], "operations": ["UPDATE"]}]},
        "validations": [{"expression": "object.metadata.name != 'gpu-0' || !has(object.spec.taints)"
                                       f" || !object.spec.taints.exists(t, t.key == '{TAINT}')",
                         "message": "not this one"}]}},
    {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "guard"},
     "spec": {"policyName": "guard", "validationActions": ["Deny"]}}]


def is_guarded(w):
    try:
        w.cluster.kubectl("taint", "node", "gpu-0", f"{TAINT}=x:NoSchedule", "--dry-run=server")
    except build.Broken as e:
        return "not this one" in str(e)
    return False


def check_refused(w):
    """A Node that an admission policy keeps from us is told as refused, and the others are tainted"""
    user = begin(w, mode="quarantine", **WIDE)
    for o in GUARD:
        w.cluster.kubectl("apply", "-f", "-", text=json.dumps(
            {"apiVersion": "admissionregistration.k8s.io/v1", **o}))
    w.until("the guard is at work", lambda: is_guarded(w))
    parallel(fleet()[:3], lambda n: tell(w, n, "reboot"))
    w.until("the others are tainted", lambda: out(w) == ["gpu-1", "gpu-2"])
    w.until("it is told", lambda: said_of(w, "gpu-0").get("why", "").startswith("refused"))
    event(w, "QuarantineBlocked", "gpu-0")
    first = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    stays("it is left alone", lambda: not tainted(w, "gpu-0"), 20)
    wrote = [c for c in audit.calls(w.cluster.path("audit.log"), user=user)
             if c["at"] >= first and c["verb"] == "patch" and c["resource"].startswith("healthp")]
    want(len(wrote) <= 8, f"{len(wrote)} status patches within 20 s")
    for o in reversed(GUARD):
        w.cluster.kubectl("delete", o["kind"], "guard")
    w.until("it is asked again", lambda: tainted(w, "gpu-0"), 120)
    w.end_operators()


def check_bad(w):
    """The schema refuses what cannot be meant, by the name of the field"""
    for spec, field in (({"mode": "enforce"}, "spec.mode"),
                        ({"budget": {"maxUnavailable": {"percent": 101}}},
                         "spec.budget.maxUnavailable.percent"),
                        ({"budget": {"perDomain": {"max": 1}}}, "spec.budget.perDomain.topologyKey"),
                        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
                         "values: needed by In and NotIn"),
                        ({"breaker": {"windowSeconds": 1}}, "spec.breaker.windowSeconds")):
        try:
            w.api.create("healthpolicies", None, {
                "apiVersion": "holdfast.dev/v1alpha1", "kind": "HealthPolicy",
                "metadata": {"name": "bad"}, "spec": spec})
        except client.Refused as e:
            want(field in e.message, f"{field} is not named: {e.message}")
            continue
        raise Fail(f"{spec} was taken")
    w.api.create("healthpolicies", None, {"apiVersion": "holdfast.dev/v1alpha1",
                                          "kind": "HealthPolicy", "metadata": {"name": "epoch"},
                                          "spec": {"breaker": {"epoch": 2}}})
    try:
        w.api.patch("healthpolicies", None, "epoch", {"spec": {"breaker": {"epoch": 1}}})
    except client.Refused as e:
        want("may only grow" in e.message, e.message)
    else:
        raise Fail("an epoch went back")
    w.api.delete("healthpolicies", None, "epoch")


def check_rights(w):
    """Each right that this needs is needed: without it the operator is refused and lives on"""
    role = next(o for o in rbac.shipped(w) if o["kind"] == "ClusterRole"
                and o["metadata"]["name"] == "holdfast-operator")
    tried = 0
    for verb, resource in sorted(rbac.REMEDIES):
        user = begin(w, mode="remediate", drain={"graceSeconds": 0}, **WIDE)
        o = w.operators[-1]
        pod = {"metadata": {"namespace": "default", "name": "p", "uid": "none"}}
        if resource == "pods/eviction":
            ns = serving(w, 1)
            pod = w.pods(ns)[0]
        node = pod.get("spec", {}).get("nodeName", "gpu-0")
        w.cluster.kubectl("replace", "-f", "-", text=json.dumps(rbac.without(role, verb, resource)))
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        try:
            tell(w, node, "reset", [pod])
            w.until(f"without {verb} {resource} it is refused", lambda: any(
                c["code"] == 403 and (c["verb"], c["resource"]) == (verb, resource)
                for c in audit.calls(w.cluster.path("audit.log"), user=user) if c["at"] >= since), 60)
            want(o.child.poll() is None, f"without {verb} {resource} it has ended")
            tried += 1
        finally:
            w.cluster.kubectl("replace", "-f", "-", text=json.dumps(role))
    return f"{tried} rights, one at a time"
