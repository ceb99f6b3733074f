# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""With a gang scheduler: its CRD that is not there yet, and the rights that its groups take."""

import json
import time

from kit import audit
from kit.check import Fail, Skip, equal, pytorchjob, want
from parts import rbac

API_FLAGS = rbac.API_FLAGS
NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 4

# Flag, API group, how client.GROUPS calls it.
SCHEDULERS = (("volcano", "scheduling.volcano.sh", "podgroups.volcano"),
              ("scheduler-plugins", "scheduling.x-k8s.io", "podgroups.plugins"))
ROLE = "holdfast-operator-gang-scheduling"


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    what = w.install()
    w.shipped = rbac.grant(w, rbac.shipped(w, "--gang-scheduler-name", "volcano"))
    return what


def flags(scheduler):
    return ["--gang-scheduler-name", scheduler]


def as_shipped(w, name):
    return w.cluster.kubeconfig(name, token=w.api.token_of("holdfast-system", "holdfast-operator"))


def told(w, ns):
    return [e["message"] for e in w.api.list("events", ns) if e["reason"] == "MissingCRD"]


def begins_late(w, scheduler, group, resource):
    """An operator that is there before the CRD."""
    ns, crd = w.namespace(), "podgroups." + group
    w.api.create("pytorchjobs", ns, pytorchjob("before", ns, 1))
    o = w.operator("late-" + scheduler, config=as_shipped(w, "late"), start=False, flags=flags(scheduler))
    o.start(ready_s=0)
    w.until("its log names the CRD", lambda: crd in o.said())
    w.api.create("pytorchjobs", ns, pytorchjob("after", ns, 1))
    w.until("both jobs are told", lambda: len(told(w, ns)) == 2)
    want(all(crd in text and scheduler in text for text in told(w, ns)), f"told: {told(w, ns)}")
    want("PodGroup of " + group in o.readiness(), "it does not say why it is not ready: " + o.readiness())
    equal("it said so in its log", o.said().count("the cluster does not know this kind"), 1)
    equal("pods", w.pods(ns), [])
    w.cluster.add_podgroups()
    w.until("it is ready", o.ready)
    for name in ("before", "after"):
        w.until(f"{name} has its group", lambda n=name: w.api.find(resource, ns, n))
        if scheduler == "volcano":
            w.api.patch(resource, ns, name, {"status": {"phase": "Inqueue"}}, "status")
        w.until(f"{name} has its pods", lambda n=name: len(w.pods(ns, n)) == 2)
    w.end_operators()
    for name in ("before", "after"):
        w.api.delete("pytorchjobs", ns, name)


def check_missing(w):
    """Without the CRD of pod groups it is named, jobs wait and are told; they begin when it comes"""
    for which in SCHEDULERS:
        begins_late(w, *which)
        w.cluster.kubectl("delete", "crd", *("podgroups." + group for _, group, _ in SCHEDULERS))


class GroupStory:
    """A job whose group changes, and that is suspended: so does its group, and it goes."""

    plural = "pytorchjobs"
    resource = None

    def __init__(self, w):
        self.w, self.ns, self.least = w, w.namespace(), 1
        self.makes = (self.resource,)
        w.api.create("pytorchjobs", self.ns, pytorchjob("job", self.ns, 1, run_policy={
            "schedulingPolicy": {"minAvailable": 1}}))

    def push(self):
        found = self.w.api.find(self.resource, self.ns, "job")
        if not found or found["spec"]["minMember"] != self.least:
            return
        change = {"suspend": True}
        if self.least == 1:
            self.least, change = 2, {"schedulingPolicy": {"minAvailable": 2}}
        self.w.api.patch("pytorchjobs", self.ns, "job", {"spec": {"runPolicy": change}})


def check_enough(w):
    """With the shipped roles alone groups are made, changed and deleted, and nothing is refused"""
    w.cluster.add_podgroups()
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    for scheduler, _, resource in SCHEDULERS:
        w.operator("enough-" + scheduler, config=as_shipped(w, "enough"), flags=flags(scheduler))
        story = type("Story", (GroupStory,), {"resource": resource})(w)

        def gone(story=story, resource=resource):
            story.push()
            return story.least == 2 and not w.api.find(resource, story.ns, "job")
        w.until("the group was made, changed and deleted", gone)
        w.end_operators()
    refused = {f"{c['verb']} {c['resource']}" for c in audit.calls(
        w.cluster.path("audit.log"), user=rbac.ACCOUNT) if c["at"] >= since and c["code"] == 403}
    equal("refused", sorted(refused), [])


def check_each(w):
    """Each verb of the role for pod groups is needed, by the scheduler whose rule it is"""
    w.cluster.add_podgroups()
    role = next(o for o in w.shipped if o["kind"] == "ClusterRole" and o["metadata"]["name"] == ROLE)
    rules = {rule["apiGroups"][0]: rule["verbs"] for rule in role["rules"]}
    equal("groups of the role", sorted(rules), sorted(group for _, group, _ in SCHEDULERS))
    bad, tried = [], 0
    for scheduler, group, resource in SCHEDULERS:
        story = type("Story", (GroupStory,), {"resource": resource})
        for verb in rules[group]:
            tried += 1
            try:
                rbac.tell_without(w, (role, rbac.without(role, verb, "podgroups", group)),
                                  (verb, "podgroups"), story, flags(scheduler), verb == "get")
            except Exception as e:
                bad.append(f"{scheduler}: {e}")
                w.end_operators()
                w.cluster.kubectl("replace", "-f", "-", text=json.dumps(role))
    if bad:
        raise Fail(f"{len(bad)} of {tried}: " + "; ".join(bad))
    return f"{tried} rights, one at a time"
