# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Restarts in place on a real kubelet: a gang of 8 trains with torch over gloo, and ranks, agent, exec or kubelet fail.

Operator and agent run as pods of our image, and exec is injected. Each check watches /proc for two generations at once.
"""

import contextlib
import os
import signal
import subprocess
import time

from kit import build, client, image, plugin, render
from kit.check import Skip, condition, equal, pytorchjob, want
from kit.gang import JOB, RANKS, Gang, name_of
from kit.load import restarts
from parts import incluster, kubelet, kueue
from parts.incluster import AGENT, IMAGE, LOOKUP, OPERATOR, PYTHON, kubectl, load_holdfast, processes, rolled_out
from parts.inject import agent_pod

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside"]
MINUTES = 15
# The agent finds the pod of a process by its control group.
POD_GROUPS = True
# A kubelet renews its Lease every ten seconds.
MANAGER_FLAGS = ["--node-monitor-grace-period=16s", "--node-monitor-period=1s"]
VICTIM, LATE = 3, 6


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        raise Skip("there is no PyTorch (Debian: python3-torch)")
    load_holdfast(w)
    incluster.load_image(w, image.write_bare, incluster.BARE)
    incluster.load_image(w, image.write_lookup, LOOKUP)
    text = render.kustomize_with(resources=["overlays/standalone"], components=["components/agent"])
    equal("places for flags", text.count("- --leader-elect\n"), 1)
    text = text.replace("- --leader-elect\n", f"- --leader-elect\n        - --pytorch-init-container-image={LOOKUP}\n")
    kubectl(w, "apply", "--server-side", "-f", "-", text=text.replace("holdfast:0.1.0", IMAGE))
    rolled_out(w, AGENT, "daemonset", "holdfast-agent")
    rolled_out(w, OPERATOR, "deployment", "holdfast-operator")
    return "operator and agent as pods, our image"


# The phases of the chain, one for each generation: right after the go, before the rendezvous, while the others wait there,
# while another restart waits at the barrier, and while the ranks save for a planned restart.
PHASES = ("training", "start", "imported", "rendezvous", "stopping", "asked")
# What a rank is planned to do, and what the record has of it. A rank that is to be killed waits for that.
ENDS = {"SIGKILL": ("wait", {"signal": 9}), "code": ("exit", {"exitCode": 3}), "exception": ("raise", {"exitCode": 1})}
LAST = len(PHASES) + 1
COUNTERS = ("application", "infrastructure", "device")


class Story:
    """Faults in a gang that trains, one after the other, and what has to hold after each of them."""

    def __init__(self, w, gang):
        self.w, self.gang = w, gang
        gang.until_trains(1, steps=25)  # there is a checkpoint
        self.uids, self.charged, self.took = gang.uids(), dict.fromkeys(COUNTERS, 0), []

    def end(self, how, phase, generation, rank=VICTIM):
        """A rank ends in the phase: by itself as planned, or by SIGKILL once it is there."""
        gang = self.gang
        if how != "SIGKILL" or phase != "training":
            gang.until_phase(rank, phase, generation)
        if how == "SIGKILL":
            return gang.kill(rank)
        return None

    def restarted(self, generation, moved=(), budget="application", **record):
        """All ranks have started in this generation, in their pods but for the moved ones, no two generations ran at
        once, one incident is charged, and the record has these fields."""
        gang = self.gang
        at = gang.until_started(generation)
        gang.never_overlapped()
        gang.kept(self.uids, moved)
        found = gang.until("the restart is on record", lambda: gang.record(generation), 30)
        wanted = {"inPlace": True, "scope": "Job", **record}
        equal(f"the record of generation {generation}", {k: found.get(k) for k in wanted}, wanted)
        self.counts_steps(found, gang.last_step(generation - 1))
        if budget:
            self.charged[budget] += 1
        job = gang.get()
        # A rank that ends at once may have caused the next restart already.
        ahead = job["status"]["recovery"]["generation"] - generation
        equal("what is charged", restarts(job), {**self.charged, "application": self.charged["application"] + ahead})
        self.uids = gang.uids()
        return at

    def trains(self, generation):
        """All ranks train in this generation, from the last saved step, and the record tells what was lost."""
        gang = self.gang
        gang.until_trains(generation)
        last = gang.until_recorded(generation)
        equal("the generation", gang.generation(), generation)
        equal("the state", condition(gang.get(), "Running"), "True")
        saved = gang.last_saved(generation - 1)
        equal("the step that the ranks resume from", {
            s for _, _, g, p, s in gang.lines() if (p, g) == ("resumed", generation)}, {saved or 0})
        equal("the record's saved step", last.get("savedStep"), saved)
        self.counts_steps(last, gang.last_step(generation - 1))
        return last

    @staticmethod
    def counts_steps(record, done):
        """The record has the last step of the processes that it ends. A report may miss the step that was under way."""
        want(record.get("step") in ((done, done - 1) if done else (None,)),
             f"step {done} was the last one, and the record has {record.get('step')}")


def plan(gang, how):
    """Writes what ranks are to do in each generation of the chain."""
    act = ENDS[how][0]
    for generation, phase in enumerate(PHASES, 1):
        if phase == "rendezvous":
            gang.plan(LATE, generation, phase, "wait")
            if how != "SIGKILL":
                gang.plan(VICTIM, generation, phase, {"code": "exit-soon", "exception": "time-out"}[how])
        elif phase != "training":
            gang.plan(LATE if phase == "stopping" else VICTIM, generation, phase, act)


def cause(w, story, how, phase, generation):
    """The fault of this generation. Returns the time of a SIGKILL."""
    gang = story.gang
    if phase == "training" and how != "SIGKILL":
        gang.plan(VICTIM, generation, phase, ENDS[how][0])
    if phase in ("stopping", "asked"):
        gang.until_trains(generation)
    if phase == "stopping":
        gang.kill(VICTIM)
        return story.end(how, phase, generation, LATE)
    if phase == "asked":
        w.holdfast("restart", JOB, ns=gang.ns)
    if phase == "rendezvous":
        gang.until_phase(LATE, phase, generation)
        gang.until_phase(VICTIM, phase, generation)
        client.pause(0.5)  # the rank waits for its peers
    return story.end(how, phase, generation)


def run_chain(w, how):
    """Ends a rank in each phase, each time in the generation after the fault before."""
    victim = {"pod": f"{JOB}-{name_of(VICTIM)}"}
    took = []
    with Gang(w, recovery={"inPlaceLimit": LAST, "checkpoint": {"graceSeconds": 20}}) as gang:
        plan(gang, how)
        story = Story(w, gang)
        for generation, phase in enumerate(PHASES, 1):
            began = cause(w, story, how, phase, generation)
            end = ENDS["SIGKILL" if phase == "stopping" else how][1]
            if phase == "asked":
                at = story.restarted(generation + 1, budget=None)
            else:
                at = story.restarted(generation + 1, **victim, **end)
            if began:
                took.append(f"{phase} {at - began:.2f}")
        story.trains(LAST)
    return "seconds from SIGKILL until all ranks have started again: " + ", ".join(took) if took else None


def agent_process(w):
    """The PID of the node's agent, as this machine sees it."""
    rolled_out(w, AGENT, "daemonset", "holdfast-agent")
    return processes(agent_pod(w))[0]


def kill_agent(w):
    """SIGKILL of the node's agent. Its kubelet starts it again."""
    os.kill(agent_process(w), signal.SIGKILL)


def renew_agent(w):
    """A new pod of the agent: kubelets wait longer for each further restart of a container."""
    name = agent_pod(w)["metadata"]["name"]
    kubectl(w, "-n", AGENT, "delete", "pod", name, "--grace-period=1")
    w.until("the agent has another pod", lambda: not w.api.find("pods", AGENT, name))
    rolled_out(w, AGENT, "daemonset", "holdfast-agent")


def check_agent(w):
    """The agent is killed while ranks train, at the barrier, after the go, while they save, and before a failure"""
    with Gang(w, recovery={"inPlaceLimit": LAST, "checkpoint": {"graceSeconds": 15}}) as gang:
        story = Story(w, gang)
        # While they train: nothing happens, and the failure right after it waits for the agent.
        kill_agent(w)
        gang.kill(VICTIM)
        story.restarted(2, pod=f"{JOB}-{name_of(VICTIM)}", signal=9)
        renew_agent(w)
        gang.until_trains(2)
        steps = gang.last_step(2)
        kill_agent(w)
        gang.until("the ranks train on", lambda: gang.last_step(2) > steps + 20)
        equal("the generation", gang.generation(), 2)
        renew_agent(w)
        # At the barrier, where a slow rank is stopped by SIGKILL when its grace is over.
        gang.plan(LATE, 2, "stopping", "wait")
        client.pause(0.5)  # each step reads the plan
        gang.kill(VICTIM)
        gang.until_phase(LATE, "stopping", 2)
        kill_agent(w)
        story.restarted(3, pod=f"{JOB}-{name_of(VICTIM)}", signal=9)
        renew_agent(w)
        gang.until_trains(3)
        # After the go.
        gang.plan(LATE, 4, "rendezvous", "wait")
        gang.kill(VICTIM)
        gang.until("the first rank has started", lambda: gang.times("start", 4))
        kill_agent(w)
        story.restarted(4, pod=f"{JOB}-{name_of(VICTIM)}", signal=9)
        renew_agent(w)
        # In the rendezvous.
        gang.until_phase(LATE, "rendezvous", 4)
        kill_agent(w)
        gang.kill(LATE)
        story.restarted(5, pod=f"{JOB}-{name_of(LATE)}", signal=9)
        renew_agent(w)
        gang.until_trains(5)
        # While the ranks save: the agent's successor asks for no second save.
        gang.plan(VICTIM, 5, "asked", "wait")
        w.holdfast("restart", JOB, ns=gang.ns)
        gang.until_phase(VICTIM, "asked", 5)
        kill_agent(w)
        story.restarted(6, budget=None)
        equal("saves of a rank that was asked", len([1 for _, r, g, p, _ in gang.lines() if (r, g, p) == (1, 5, "asked")]), 1)
        story.trains(6)
        renew_agent(w)


def check_exec(w):
    """exec is killed while its rank trains, at the barrier, and while the ranks save: its pod alone is re-created"""
    with Gang(w, recovery={"inPlaceLimit": LAST, "checkpoint": {"graceSeconds": 15}}) as gang:
        story = Story(w, gang)
        os.kill(gang.exec_of(VICTIM), signal.SIGKILL)
        # The kubelet tells of it a second later. By then a peer may have failed, since it lost this rank.
        story.restarted(2, moved=(VICTIM,))
        gang.until_trains(2)
        gang.plan(LATE, 2, "stopping", "wait")
        client.pause(0.5)  # each step reads the plan
        gang.kill(VICTIM)
        gang.until_phase(LATE, "stopping", 2)
        os.kill(gang.exec_of(LATE), signal.SIGKILL)
        story.restarted(3, moved=(LATE,), pod=f"{JOB}-{name_of(VICTIM)}", signal=9)
        gang.until_trains(3)
        gang.plan(VICTIM, 3, "asked", "wait")
        w.holdfast("restart", JOB, ns=gang.ns)
        gang.until_phase(VICTIM, "asked", 3)
        os.kill(gang.exec_of(VICTIM), signal.SIGKILL)
        story.restarted(4, moved=(VICTIM,), budget=None)
        story.trains(4)


def check_kubelet_frozen(w):
    """The kubelet is stopped by SIGSTOP until its node is Unknown: a rank fails meanwhile, and the gang restarts without it"""
    with Gang(w) as gang:
        story = Story(w, gang)
        kubelet.send(w, signal.SIGSTOP)
        try:
            began = gang.kill(VICTIM)
            at = story.restarted(2, pod=f"{JOB}-{name_of(VICTIM)}", signal=9)
            w.until("the node is Unknown", lambda: kubelet.ready(w) == "Unknown", 60)
            gang.until_trains(2)
        finally:
            kubelet.send(w, signal.SIGCONT)
        w.until("the node is ready", lambda: kubelet.ready(w) == "True", 60)
        steps = gang.last_step(2)
        gang.until("the ranks train on", lambda: gang.last_step(2) > steps + 50)
        story.trains(2)
        gang.kept(story.uids)
        return f"SIGKILL until all {RANKS} have started again: {at - began:.2f} s"


def check_device(w):
    """The device plugin calls a rank's device Unhealthy: that rank's pod gets another device, the other pods stay"""
    incluster.start_plugin(w)

    def held(pod):
        return [(r["resourceID"], r["health"]) for c in pod["status"]["containerStatuses"]
                for a in c.get("allocatedResourcesStatus") or [] for r in a["resources"]]
    limits = {"resources": {"limits": {incluster.RESOURCE: "1"}}}
    with Gang(w, recovery={"device": {"avoid": False}, "inPlaceWaitSeconds": 120}, master=limits) as gang:
        story = Story(w, gang)
        device = gang.until("the kubelet tells the device", lambda: held(gang.pods()[0]))[0][0]
        plugin.says(w, device)
        try:
            w.until("the kubelet says so", lambda: held(gang.pods()[0]) == [(device, "Unhealthy")], 90)
            story.restarted(2, moved=(0,), budget="device", pod=f"{JOB}-{name_of(0)}")
            story.trains(2)
            want(held(gang.pods()[0])[0][0] != device, "it has the same device again")
        finally:
            plugin.says(w)


def check_agent_frozen(w):
    """The agent is stopped by SIGSTOP, and a rank fails: pods are re-created; with an agent, restarts are in place again"""
    with Gang(w, recovery={"inPlaceWaitSeconds": 10}) as gang:
        story = Story(w, gang)
        agent = agent_process(w)
        os.kill(agent, signal.SIGSTOP)
        try:
            began = gang.kill(VICTIM)
            gang.until("a later generation trains", lambda: (lambda g: g > 1 and all(
                gang.times("step", g).get(r) for r in range(RANKS)))(gang.generation()), 240)
            took = time.time() - began
        finally:
            with contextlib.suppress(ProcessLookupError):  # its liveness probe may have ended it
                os.kill(agent, signal.SIGCONT)
        renew_agent(w)
        gang.never_overlapped()
        now = gang.generation()
        steps = gang.last_step(now)
        gang.until("the ranks train on", lambda: gang.last_step(now) > steps + 50)
        equal("the generation", gang.generation(), now)
        uids = gang.uids()
        gang.kill(VICTIM)
        gang.until_trains(now + 1)
        gang.kept(uids)
        gang.never_overlapped()
        return f"SIGKILL until all ranks train again without the agent: {took:.1f} s, generation {now}"


def check_code(w):
    """A rank exits with a code in each phase: the gang restarts in its pods, charged once each time"""
    return run_chain(w, "code")


def check_exception(w):
    """A rank ends by an exception in each phase: the gang restarts in its pods, charged once each time"""
    return run_chain(w, "exception")


def check_signal(w):
    """A rank is killed in each phase of training and restart: the gang restarts in its pods, charged once each time"""
    return run_chain(w, "SIGKILL")


def play_agent(w, node, job, pod):
    """What the agent of this node would write while the pod's process runs."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    w.api.create("devicehealths", None, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceHealth",
                                         "metadata": {"name": node}})
    w.api.patch("devicehealths", None, node, {"status": {"observedTime": now, "state": "Healthy", "processes": [{
        "namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"], "uid": pod["metadata"]["uid"],
        "job": job["metadata"]["uid"], "generation": 1, "attempt": 0, "ordinal": 1, "phase": "Running", "time": now}]}},
                sub="status")


def check_node_lost(w):
    """A node loses power under one rank: its pod moves, and the seven others wait for it and restart in their pods"""
    w.cluster.add_kwok(1, lease_s=6)
    recovery = {"nodeLost": {"afterSeconds": 8}, "forceDeleteAfterSeconds": 1, "inPlaceWaitSeconds": 120}
    with Gang(w, recovery=recovery, grace_s=2, away="fake-0") as gang:
        gang.until("seven ranks have started", lambda: len(gang.times("start", 1)) == RANKS - 1)
        equal("the node of rank 0", gang.pods()[0]["spec"]["nodeName"], "fake-0")
        play_agent(w, "fake-0", gang.get(), gang.pods()[0])
        gang.until("the gang is Running", lambda: condition(gang.get(), "Running") == "True")
        uids, began = gang.uids(), time.time()
        w.cluster.send("kwok", signal.SIGSTOP)
        try:
            at = gang.until_started(2)
        finally:
            w.cluster.send("kwok", signal.SIGCONT)
        gang.never_overlapped()
        gang.kept(uids, (0,))
        equal("the node of rank 0", gang.pods()[0]["spec"]["nodeName"], "real-0")
        last = gang.until("the restart is on record", lambda: gang.record(2))
        equal("the record", {k: last.get(k) for k in ("cause", "reason", "inPlace", "pod")}, {
            "cause": "infrastructure", "reason": "NodeLost", "inPlace": True, "pod": f"{JOB}-{name_of(0)}"})
        equal("what is charged", restarts(gang.get()), {"application": 0, "infrastructure": 1, "device": 0})
        return f"power off until all {RANKS} have started again: {at - began:.1f} s"


def check_preempted(w):
    """The real Kueue preempts a gang: the ranks save first, the record says so, and it resumes with nothing lost"""
    build.build(["kueue"])
    w.cluster.add_kueue()
    ns = kueue.queue(w)

    def in_queue(priority, **more):
        return {"labels": {"kueue.x-k8s.io/queue-name": "queue", "kueue.x-k8s.io/priority-class": f"{ns}-{priority}"},
                "runPolicy": {"suspend": True}, **more}
    with Gang(w, ns=ns, recovery={"checkpoint": {"graceSeconds": 30}}, job=in_queue("low"),
              resources={"cpu": "50m"}) as gang:
        gang.until_trains(1, steps=25)
        # It needs the whole queue, and its pod fits no node: what matters is its claim.
        high = pytorchjob("high", ns, 0, container={"resources": {"requests": {"cpu": str(kueue.CPUS)}}},
                          run_policy={"suspend": True})
        high["metadata"].update(labels=in_queue("high")["labels"])
        w.api.create("pytorchjobs", ns, high)
        gang.until("the gang is suspended", lambda: condition(gang.get(), "Suspended") == "True" and not w.pods(ns, JOB))
        asked = gang.times("asked", 1)
        equal("ranks that were asked to save", sorted(asked), list(range(RANKS)))
        saved, done = gang.last_saved(1), gang.last_step(1)
        want(saved > 0 and {s for _, _, _, p, s in gang.lines() if p == "asked"} == {saved}, "they saved different steps")
        recovery = gang.recovery()
        equal("the saved step on record", recovery.get("savedStep"), saved)
        want(done - 1 <= recovery.get("step", 0) <= done, f"step {done} was the last, and the record has {recovery.get('step')}")
        w.until("the event SaveRequested is there", lambda: [
            e for e in w.api.list("events", ns) if e["reason"] == "SaveRequested"], 20)
        gang.never_overlapped()
        w.api.delete("pytorchjobs", ns, "high")
        began = len(gang.lines())
        gang.until("the gang resumes", lambda: len([1 for line in gang.lines()[began:] if line[3] == "resumed"]) == RANKS)
        equal("the step that the ranks resume from", {line[4] for line in gang.lines()[began:] if line[3] == "resumed"},
              {saved})
        return f"preempted at step {done} with step {saved} saved, {max(asked.values()) - min(asked.values()):.2f} s apart"
