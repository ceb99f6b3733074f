# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What an end is put down to, and what podFailurePolicy says to it: preempted, drained, evicted, refused.

The scheduler preempts and the API server evicts; what a kubelet would say is written for it.
"""

from kit import client
from kit.check import Skip, condition, equal, now, want
from kit.ranks import Clock, pytorch

NEEDS = {"kwok": 3}
BUILD = ["control", "kwok"]
MINUTES = 3
LEASE_S = 6  # a verdict waits for nodes to renew theirs: every 1.5 s

GPU, ALL = "nvidia.com/gpu", "64"  # what one of kwok's nodes has


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator has no rules")
    return w.install()


def ruled(w, *rules, policy="Never", **run):
    return pytorch(w, 3, policy, podFailurePolicy={"rules": list(rules)}, **run)


def on_codes(action, *values, operator="In", **more):
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values)}, **more}


def on_condition(action, kind, reason=None, **more):
    pattern = {"type": kind, "status": "True", **({"reason": reason} if reason else {})}
    return {"action": action, "onPodConditions": [pattern], **more}


def disrupted(reason):
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "it has to go",
            "lastTransitionTime": now()}


def evicted_by_kubelet(job, rank, conditions=(), reason="Evicted", container=None):
    """As a kubelet writes it: all in one, the containers killed."""
    pod = job.pods()[rank]
    job.tell(rank, conditions=conditions, phase="Failed", reason=reason, message="told by the test",
             containerStatuses=[{
                 "name": c["name"], "image": c["image"], "imageID": "", "ready": False,
                 "restartCount": 0, "started": False, "state": {"terminated": {
                     "exitCode": 137, "reason": container or "Error", "startedAt": now(),
                     "finishedAt": now(), "containerID": "test://" + rank}}}
                 for c in pod["spec"]["containers"]])


def evict(w, job, rank):
    """As kubectl drain does; the API server marks the pod and deletes it."""
    name = f"{job.name}-{rank}"
    w.api.call("POST", client.path("pods", job.ns, name, "eviction"), {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": job.ns}})


def replaced(job, rank, do, scope="Replica", **costs):
    """do() ends this rank.  It runs again, alone or with all; what was charged since the start."""
    before, clock = job.uids(), Clock()
    do()
    job.until_again(rank, before)
    took = str(clock)
    kept = {r for r, uid in job.uids().items() if before[r] == uid}
    equal("ranks that were left alone", kept, set(before) - {rank} if scope == "Replica" else set())
    job.until("the books are closed", lambda: job.recovery()["phase"] == "Running")
    job.charged(**costs)
    job.last(scope=scope)
    equal("Failed", condition(job.get(), "Failed"), None)
    return took


# ---- rules
def check_ignore(w):
    """Ignore: replaced, not counted, under Never and with no backoff left; other codes fail"""
    w.operator()
    job = ruled(w, on_codes("Ignore", 75, name="lost-licence"), backoffLimit=0)
    for _ in range(2):
        replaced(job, "worker-0", lambda: job.end("worker-0", code=75))
        job.last(rule="lost-licence", exitCode=75)
    job.until_event("ApplicationFailure", ["rule lost-licence; nothing is charged"], 2)
    job.says("podFailurePolicy rule lost-licence", "nothing is charged")
    job.end("worker-0", code=76)
    job.has_failed("RestartPolicyNever")


def check_count(w):
    """Count: replaced and charged, under Never too, until backoffLimit"""
    w.operator()
    job = ruled(w, on_codes("Count", 1, 2, operator="NotIn", name="most"), backoffLimit=1)
    took = replaced(job, "worker-0", lambda: job.end("worker-0", code=9), application=1)
    job.last(rule="most", cause="application")
    job.until_event("ApplicationFailure", ["rule most; application budget: 1 of 1 used"])
    job.end("worker-0", code=9)
    job.has_failed("BackoffLimitExceeded",
                   "Job job has failed because it has reached the specified backoff limit")
    job.charged(application=2)
    return f"runs again after {took}"


def check_fail(w):
    """FailJob: Failed in batch/v1's words under a policy that would restart; the first rule counts"""
    w.operator()
    job = ruled(w, on_codes("Ignore", 41), on_codes("FailJob", 41, 42, name="bug"), policy="OnFailure")
    replaced(job, "worker-1", lambda: job.end("worker-1", code=41))
    replaced(job, "worker-1", lambda: job.end("worker-1", code=43), application=1)
    clock = Clock()
    job.end("worker-1", code=42)
    job.has_failed("PodFailurePolicy", f"Container pytorch for pod {job.ns}/job-worker-1 failed with "
                                       "exit code 42 matching FailJob rule at index 1")
    took = str(clock)
    job.last(rule="bug", exitCode=42)
    job.charged(application=1)
    job.says("podFailurePolicy rule bug", "the job fails: PodFailurePolicy")
    return f"Failed after {took}"


def check_scopes(w):
    """RestartReplica in scope Job restarts one rank, RestartJob in scope Replica restarts all"""
    w.operator()
    job = ruled(w, on_codes("RestartReplica", 10, name="alone"), recovery={"restartScope": "Job"})
    replaced(job, "worker-2", lambda: job.end("worker-2", code=10), application=1)
    job.last(rule="alone")
    equal("generation", job.recovery()["generation"], 1)
    job = ruled(w, on_codes("RestartJob", 220, name="all"))
    replaced(job, "worker-2", lambda: job.end("worker-2", code=220), "Job", application=1)
    job.last(rule="all")
    equal("generation", job.recovery()["generation"], 2)
    job.made_times(2)


def check_types(w):
    """replicaTypes: the same code restarts a Worker and fails the job as a Master's"""
    w.operator()
    job = ruled(w, on_codes("Count", 9, replicaTypes=["Worker"]), on_codes("FailJob", 9))
    replaced(job, "worker-0", lambda: job.end("worker-0", code=9), application=1)
    job.end("master-0", code=9)
    job.has_failed("PodFailurePolicy", f"Container pytorch for pod {job.ns}/job-master-0 failed with "
                                       "exit code 9 matching FailJob rule at index 1")


def check_conditions(w):
    """onPodConditions tells evictions by their reason; none of them costs the program anything"""
    w.operator()
    job = ruled(w, on_condition("RestartJob", "DisruptionTarget", "EvictionByEvictionAPI", name="drain"),
                on_condition("FailJob", "DisruptionTarget", "TerminationByKubelet", name="pressure"))
    replaced(job, "worker-1", lambda: evict(w, job, "worker-1"), "Job", infrastructure=1)
    job.last(rule="drain", reason="EvictionByEvictionAPI", cause="infrastructure")
    evicted_by_kubelet(job, "worker-1", [disrupted("TerminationByKubelet")])
    job.has_failed("PodFailurePolicy", f"Pod {job.ns}/job-worker-1 has condition DisruptionTarget "
                                       "matching FailJob rule at index 1")


def check_reasons(w):
    """onPodReasons: of the pod and of its containers"""
    w.operator()
    job = ruled(w, {"action": "Ignore", "onPodReasons": ["Evicted"], "name": "full-disk"},
                {"action": "FailJob", "onPodReasons": ["OOMKilled"], "name": "too-big"})
    replaced(job, "worker-0", lambda: evicted_by_kubelet(job, "worker-0"))
    job.last(rule="full-disk", reason="Evicted")
    job.end("worker-0", code=137, reason="OOMKilled")
    job.has_failed("PodFailurePolicy", f"Pod {job.ns}/job-worker-0 has reason OOMKilled "
                                       "matching FailJob rule at index 1")


# ---- classes
def holder(node):
    """Of all that a node has of one resource."""
    return {"container": {"resources": {"limits": {GPU: ALL}, "requests": {GPU: ALL}}},
            "pod": {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}}


def check_preempted(w):
    """S10: the scheduler preempts a rank under Never: infrastructure, and it runs when there is room"""
    w.operator()
    w.api.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"},
        "value": 1000, "preemptionPolicy": "PreemptLowerPriority"})
    job = pytorch(w, 1, "Never", **holder(None), backoffLimit=0)  # each rank has a node of its own
    before, node = job.uids(), job.pods()["worker-0"]["spec"]["nodeName"]
    free = {f"fake-{i}" for i in range(NEEDS["kwok"])} - {
        p["spec"]["nodeName"] for p in job.pods().values()}
    equal("nodes that are left", len(free), 1)
    # No room is left but by preemption, and none for the one that is preempted.
    for name, on in (("filler", free.pop()), ("first", node)):
        w.api.create("pods", job.ns, {"metadata": {"name": name}, "spec": {
            **holder(on)["pod"], "priorityClassName": "urgent", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "localhost/busybox:1", **holder(on)["container"]}]}})
        job.until(name + " runs", lambda name=name: w.api.get(
            "pods", job.ns, name)["status"].get("phase") == "Running")
    job.until("it is told", lambda: job.recovery().get("last"))
    job.last(cause="infrastructure", reason="PreemptionByScheduler", replica="worker-0", node=node)
    equal("Restarting", condition(job.get(), "Restarting"), "True")
    job.until("the replacement waits", lambda: job.pods().get("worker-0", {}).get(
        "metadata", {}).get("uid") not in (None, before["worker-0"]))
    equal("who runs", sorted(job.running()), ["master-0"])
    clock = Clock()
    w.api.delete("pods", job.ns, "first")
    job.until_again("worker-0", before)
    job.charged(infrastructure=1)
    job.made_times(1, {"worker-0": 2})
    job.until_event("InfrastructureFailure", ["PreemptionByScheduler",
                                              "infrastructure budget: 1 used, unlimited"])
    return f"runs {clock} after there is room"


def check_drained(w):
    """A pod that is evicted as by kubectl drain: replaced under Never, infrastructure"""
    w.operator()
    job = pytorch(w, 3, "Never", backoffLimit=0)
    took = replaced(job, "worker-0", lambda: evict(w, job, "worker-0"), infrastructure=1)
    job.last(cause="infrastructure", reason="EvictionByEvictionAPI")
    job.until_event("InfrastructureFailure", ["worker-0 ended", "EvictionByEvictionAPI"])
    job.says("EvictionByEvictionAPI", "infrastructure: the pod was evicted through the API")
    return f"runs again after {took}"


def check_pressure(w):
    """Evicted by a node under pressure, or by one that shuts down: infrastructure, up to its limit"""
    w.operator()
    job = pytorch(w, 3, "ExitCode", backoffLimit=0, recovery={"infrastructureLimit": 2})
    replaced(job, "worker-0", lambda: evicted_by_kubelet(
        job, "worker-0", [disrupted("TerminationByKubelet")]), infrastructure=1)
    job.last(cause="infrastructure", reason="TerminationByKubelet")
    replaced(job, "worker-0", lambda: evicted_by_kubelet(job, "worker-0", reason="Terminated"),
             infrastructure=2)
    job.last(cause="infrastructure", reason="Terminated")
    evicted_by_kubelet(job, "worker-0", reason="NodeShutdown")
    job.has_failed("InfrastructureLimitExceeded",
                   "Job job has failed because it has reached the specified infrastructure limit")
    job.charged(infrastructure=3)


def check_own_limit(w):
    """S13: evicted for a limit of its own, again and again: the application's, up to backoffLimit"""
    w.operator()
    job = pytorch(w, 3, "OnFailure", backoffLimit=1)
    replaced(job, "worker-0", lambda: evicted_by_kubelet(job, "worker-0"), application=1)
    job.last(cause="application", reason="Evicted")
    evicted_by_kubelet(job, "worker-0")
    job.has_failed("BackoffLimitExceeded")
    job.charged(application=2)


def check_memory(w):
    """S7: out of memory is the application's, even while its node evicts it"""
    w.operator()
    job = pytorch(w, 3, "ExitCode", backoffLimit=1)
    replaced(job, "worker-0", lambda: job.end("worker-0", code=137, reason="OOMKilled"), application=1)
    job.last(cause="out-of-memory", reason="OOMKilled", exitCode=137)
    job.until_event("OutOfMemory", ["OOMKilled", "application budget: 1 of 1 used"])
    job.says("OOMKilled")
    evicted_by_kubelet(job, "worker-0", [disrupted("TerminationByKubelet")], container="OOMKilled")
    job.has_failed("BackoffLimitExceeded")
    job.charged(application=2)


def check_refused(w):
    """A pod that its kubelet refuses: admission, on the infrastructure's budget, rather elsewhere next"""
    w.operator()
    job = pytorch(w, 1, "Never", backoffLimit=0, recovery={"infrastructureLimit": 2})
    seen = []
    for number, reason in enumerate(("OutOfcpu", "UnexpectedAdmissionError"), 1):
        node = job.pods()["worker-0"]["spec"]["nodeName"]
        seen.append(node)
        took = replaced(job, "worker-0", lambda reason=reason: job.tell(
            "worker-0", containers=False, phase="Failed", reason=reason, message="refused"),
                        infrastructure=number)
        job.last(cause="admission", reason=reason, node=node)
        want(job.pods()["worker-0"]["spec"]["nodeName"] not in seen, "it went where it was refused")
    job.until_event("AdmissionFailure", times=2)
    job.says("admission: the node refused")
    job.tell("worker-0", containers=False, phase="Failed", reason="NodeAffinity", message="refused")
    job.has_failed("InfrastructureLimitExceeded")
    return f"the second time {took}, 5 of them waited for on purpose"
