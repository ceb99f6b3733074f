# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What two operators made of the same jobs, without what differs by chance, and how it differs."""

import json
import re
import time

from . import client

# How the rows of docs/reference/differences.md's first table look here: KIND JOB ROUND/PATH GO -> HOLDFAST.
SEEN_AS = {
    "D1": r'/pods/\S+/metadata/annotations(/holdfast\.dev/((attempt|generation|incident) null -> "\d+"'
          r'|spec null -> "[0-9a-f]{16}")| null -> \{("holdfast\.dev/((attempt|generation|incident)": "\d+"'
          r'|spec": "[0-9a-f]{16}")(, )?){4}\})$',
    "D2": r" \d/status/recovery null -> ",
    "D3": r"/events/(Normal (SuccessfulCreateService|ExitedWithCode)|Warning FailedCreate(Pod|Service))"
          r" true -> null",
    "D4": r"/events/Warning ApplicationFailure null -> true",
    "D5": r'/status/(order \["Created", "Running"\] -> \["Created", "Restarting", "Running"\]'
          r'|conditions/Restarting null -> \{"status": "False", "reason": "\w+(Restarting|Suspended)")',
    "D6": None,  # of nothing that stands still
    "D7": r"\S+-broken 1/(status/completionTime null|events/(Warning \w+Restarting|Normal \w+Failed) true)",
    "D8": r'\S+-(suspended(-late)?|scaled|scaled-by-default|rdzv) [12]/status/startTime "there" -> null',
    "D9": r"(\S+-born-suspended [01]|volcano-\S+ 0)/status/replicaStatuses null -> "
          r'\{("\w+": \{("(active|succeeded|failed)": 0(, )?|"selector": "[^"]*"(, )?)+\}(, )?)+\}$',
    "D10": r' [12]/status/replicaStatuses/Worker/selector null -> "training\.kubeflow\.org/job-name=[^"]*'
           r'replica-type=worker"$',
    "D11": r"/events/Warning Unschedulable true -> null",
    "D12": r"MPIJob \S+ \d/events/(Normal (.* is exist|MPIJobRunning|mpijobsSucceeded)"
           r"|Warning (MPIJobFailed|FailedCreatePod|SettedPodTemplateSchedulerName)) true -> null"
           r"|MPIJob \S+ \d/events/Normal (SuccessfulCreatePod|SuccessfulDeletePod(Group)?|ExitedWithCode"
           r"|MPIJob(Succeeded|Failed|Suspended|Resumed)) null -> true"
           r"|MPIJob \S+ \d/said/Warning MPIJobFailed \[.* pod created failed: ",
    "D13": r"MPIJob mpi-alone \d/roles/mpi-alone-launcher/rules ",
    "D14": r"MPIJob \S+ [12]/status/replicaStatuses/Worker/(succeeded|active) 0 -> [12]$",
    "D15": r"MPIJob mpi-alone \d/status/replicaStatuses/Worker .* -> null",
    "D16": r"MPIJob mpi-(killed|broken) 1/((configmaps|status)/|events/Warning MPIJobFailed null -> true)",
    "D17": r' (volcano|plugins)-\S+ \d/status/lastReconcileTime "there" -> null',
    "D18": r" (volcano|plugins)-\S+ \d/events/(Normal (JobTerminated|SuccessfulDeletePodGroup)"
           r"|Warning FailedDeletePodGroup) true -> null",
    "D19": r' volcano-\S+ \d/status/order \[.*"Suspended"\] -> \[.*"Created"\]$',
    "D20": r"-annotated \d/podgroups\.\S+/metadata/annotations/(kubectl|holdfast)\S+ .* -> null",
    "D21": None,
    "D22": None,
    "D23": None,  # the part "podgroups" shows it
    "D26": r"MPIJob mpi-launcher-on-failure 1/(status|events)/",
    "D27": r"\S+-backoff 1/(status/(completionTime|conditions/(Failed|Running)|order)|events/)",
    "D66": r"pytorch-backoff-zero \d/pods/\S+/restartPolicy \"OnFailure\" -> \"Never\"$",
    "D39": r"\S+-(failed-all|failed-late|deadline) [12]/status/replicaStatuses/\w+/active [12] -> 0$",
    "D40": r"\S+-no-port-name \d/(pods|services|status|events)",
    "D41": r"PyTorchJob pytorch-rdzv 2/pods/\S+/env/PET_RDZV_ID/value ",
    "D42": r"MPIJob mpi-account-late \d/rolebindings/\S+/subjects/",
    "D45": r'/said/Warning \w+Restarting \[.*"job \S+ is restarting because \w+ replica\(s\) failed\."',
    "D54": r"\S+-(none 0/(pods|services|events/Normal Successful(CreatePod|DeletePod|DeleteService)) "
           r"|to-none 1/(status/replicaStatuses/Worker/succeeded 2 -> 0$|(pods|services) .* -> null$))",
    "D55": r"PyTorchJob pytorch-one-type-less 1/status/replicaStatuses/Worker/active 2 -> 0$",
    "D57": r"(xgboost-no-workers|tf-no-(ps|chief)) 0/(pods|services|events|status)",
    "D58": r"JAXJob jax-suspended-late 2/status/replicaStatuses/Worker/succeeded 1 -> 0$",
    "D59": r"PyTorchJob pytorch-port-twice 0/(status|events)/",
    "D60": r"TFJob tf-long-n+ 0/(pods|status|events)",
    "D70": r"/pods/\S+/(spec/activeDeadlineSeconds null -> 1$"
           r'|metadata/annotations(/holdfast\.dev/stopped null -> "JobFailed"$'
           r'| null -> \{.*"holdfast\.dev/stopped": "JobFailed".*\}$))'
           r"|/events/Normal SuccessfulStopPod null -> true$",
    "D71": r"/status/(conditions/holdfast\.dev/PodsStillRun null -> |order \[.*PodsStillRun)"
           r"|/events/Normal PodsStillRun null -> true$",
}
# Rows that only jobs with a gang scheduler show.
GANG_ROWS = ("D17", "D18", "D19", "D20")
# Nothing has happened for so long: nothing more will.  Ours waits longer for the cause of an end.
QUIET_S = {"go": 6, "holdfast": 25}
ROUND_S = 120

DROPPED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation",
           "generateName", "selfLink", "namespace")
RESOURCES = ("pods", "services", "configmaps", "serviceaccounts", "roles", "rolebindings",
             "horizontalpodautoscalers", "podgroups.volcano", "podgroups.plugins")
# Events that tell what state a job has come to: their messages are compared where both tell it.
OF_STATE = re.compile(r"Job(Created|Running|Restarting|Suspended|Resumed|Succeeded|Failed)$")


def look(api, ns, entries):
    """{job: {"status": …, "pods": {name: …}, …, "events": {reason: True}, "said": {reason: [message]}}}"""
    found = {e.name: {"status": None, "events": [], "said": {}} for e in entries}
    owners = {}
    for e in entries:
        job = clean(api.get(e.plural, ns, e.name), ns)
        owners[e.name] = e
        found[e.name]["status"] = status(job.get("status") or {})
    for resource in RESOURCES:
        for o in listed(api, resource, ns):
            owner = next((r["name"] for r in o["metadata"].get("ownerReferences", [])
                          if r.get("controller")), None)
            if owner in found and not o["metadata"].get("deletionTimestamp"):
                made = clean(o, ns)
                made.pop("status", None)
                found[owner].setdefault(resource, {})[o["metadata"]["name"]] = made
    for o in api.list("events", ns):
        about = o["involvedObject"]
        if about.get("name") in found and about.get("kind") == owners[about["name"]].kind:
            reason, said = o["type"] + " " + o["reason"], found[about["name"]]["said"]
            found[about["name"]]["events"].append(reason)
            if OF_STATE.search(reason):
                said[reason] = sorted({*said.get(reason, ()), o["message"].replace(ns, "NS")})
    for one in found.values():
        one["events"] = {reason: True for reason in sorted(set(one["events"]))}
    return found


def listed(api, resource, ns):
    """None of a kind that the cluster does not know."""
    try:
        return api.list(resource, ns)
    except client.Refused as e:
        if e.code == 404:
            return []
        raise


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
            # A reason that one alone has is a difference of the events already.
            if at != "/said" or (key in left and key in right):
                found += differences(left.get(key), right.get(key), f"{at}/{key}")
        return found
    if isinstance(left, list) and isinstance(right, list) and left != right:
        a, b = keyed(left), keyed(right)
        if a is not None and b is not None and (a != b or list(a) != list(b)):
            order = [] if [k for k in a if k in b] == [k for k in b if k in a] else \
                [(at + "/order", list(a), list(b))]
            return differences(a, b, at) + order
    return [] if left == right else [(at, left, right)]


def row(entry, number, path, left, right):
    """A difference in words, and the row of the table that has it, or None."""
    place = f"{entry.kind} {entry.name} {number}{path} {json.dumps(left)} -> {json.dumps(right)}"
    return place, next((r for r, seen_as in SEEN_AS.items()
                        if seen_as and re.search(seen_as, place)), None)


def moving(w, ns, entries):
    """What must stand still: who is there and how, and what is said of the jobs."""
    pods = [(p["metadata"]["uid"], p["status"].get("phase"),
             bool(p["metadata"].get("deletionTimestamp"))) for p in w.api.list("pods", ns)]
    jobs = []
    for plural in sorted({e.plural for e in entries}):
        for j in w.api.list(plural, ns):
            s = j.get("status") or {}
            jobs.append((j["metadata"]["name"],
                         sorted((c["type"], c["status"], c["reason"])
                                for c in s.get("conditions") or []),
                         json.dumps(s.get("replicaStatuses"), sort_keys=True)))
    return sorted(pods), sorted(jobs, key=lambda j: j[0])


def bind(w, ns):
    """Gang schedulers are not here: their pods, and those of schedulers that nobody knows, go to a
    node at once."""
    nodes = [n["metadata"]["name"] for n in w.api.list("nodes")]
    for pod in w.api.list("pods", ns, fields="spec.nodeName="):
        meta = pod["metadata"]
        if pod["spec"]["schedulerName"] == "default-scheduler" or meta.get("deletionTimestamp"):
            continue
        try:
            w.api.call("POST", client.path("pods", ns, meta["name"], "binding"), {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": nodes[0]}})
        except client.Refused as e:
            if e.code not in (404, 409):
                raise


def settle(w, ns, entries, quiet_s):
    last, since, begun = None, time.monotonic(), time.monotonic()
    while time.monotonic() - begun < ROUND_S:
        bind(w, ns)
        seen = moving(w, ns, entries)
        if seen != last:
            last, since = seen, time.monotonic()
        elif time.monotonic() - since >= quiet_s:
            return
        client.pause(0.5)


def restarted(w, ns, entry, rank, count):
    """As a kubelet tells that it has started the containers of a rank again; "worker": of all."""
    for pod in w.api.list("pods", ns, f"training.kubeflow.org/job-name={entry.name}"):
        meta, told = pod["metadata"], pod["status"].get("containerStatuses") or []
        if meta["name"][len(entry.name) + 1:].startswith(rank):
            for container in told:
                container["restartCount"] = count
            w.api.patch("pods", ns, meta["name"], {"status": {"containerStatuses": told}}, "status")


def act(w, ns, entry, what):
    kind, *how = what
    if kind == "patch":
        w.api.patch(entry.plural, ns, entry.name, how[0])
    elif kind == "admit":
        w.api.patch("podgroups.volcano", ns, entry.name, {"status": {"phase": "Inqueue"}}, "status")
    elif kind == "scale":
        w.api.patch(entry.plural, ns, entry.name, {"spec": {"replicas": how[0]}}, "scale")
    elif kind == "restarts":
        restarted(w, ns, entry, *how)
    else:
        ranks, code = how
        for pod in w.api.list("pods", ns, f"training.kubeflow.org/job-name={entry.name}"):
            rank = pod["metadata"]["name"][len(entry.name) + 1:]
            if pod["status"].get("phase") == "Running" and (
                    rank in ranks or rank.rpartition("-")[0] in ranks):
                w.end_pod(pod, code)
