# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What goes wrong around an operator: it dies, the API server dies, is slow, refuses, or says no."""

import os
import random
import signal
import threading

from kit import audit, client
from kit.check import Skip, equal, pytorchjob, want
from kit.cluster import API
from kit.load import Load
from kit.proxy import Proxy

API_FLAGS = ["--client-ca-file", "tls.crt"]
NEEDS = {"kwok": 4}
BUILD = ["control", "kwok"]
MINUTES = 15

SEED = int(os.environ.get("HOLDFAST_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
LEASE_S = 15


def setup(w):
    return f"{w.install()}, seed {SEED} (HOLDFAST_TEST_SEED)"


class Background(threading.Thread):
    """Something that is done again and again beside the load."""

    def __init__(self, do):
        super().__init__(daemon=True)
        self.do, self.over, self.failed, self.rounds = do, threading.Event(), None, 0

    def run(self):
        try:
            while not self.over.is_set():
                self.do(self)
                self.rounds += 1
        except Exception as e:
            self.failed = e

    def stop(self):
        self.over.set()
        self.join(120)
        if self.failed:
            raise self.failed


def check_kill(w):
    """kill -9 at random moments under load: no job stuck, no pod doubled, no failure twice"""
    chance = random.Random(SEED)
    load = Load(w, 60)
    o = w.operator()

    def kill(me):
        me.over.wait(chance.uniform(0.05, 2.5))
        o.kill()
        # A life in three gets as far as work, however slow the machine is; the others end anywhere.
        o.start(ready_s=120 if me.rounds % 3 == 2 else 0)
    killer = Background(kill)
    killer.start()
    load.create()
    load.until_running(timeout_s=240)
    load.fail_some()
    load.until_running(timeout_s=240)
    # Not only while there is much to do: also while it starts to find little.
    client.until("a dozen kills", lambda: killer.rounds >= 12 or not killer.is_alive(), 120, 0.5)
    load.finish()
    killer.stop()
    return f"{load.audit()}, {killer.rounds} kills"


def restarted(w, program):
    """Each step of a load has a restart of the program in its midst."""
    chance = random.Random(SEED)
    load = Load(w, 60)
    o = w.operator()

    def during(step):
        def once(me):
            me.over.wait(chance.uniform(0, 1))
            w.cluster.restart(program)
            client.until("the API server is ready", w.cluster.ready, 60)
            # kwok gives up on pods that it could not write to, or deletes a name again and again.
            w.cluster.restart("kwok")
            me.over.set()
        breaker = Background(once)
        breaker.start()
        step()
        breaker.join(120)
        breaker.stop()
    for i in range(3):
        batch = load.names[i * 20:i * 20 + 20]
        during(lambda: load.create(batch))
        load.until_running(batch, 240)
    during(load.fail_some)
    load.until_running(timeout_s=240)
    during(load.finish)
    if not w.options.peer:
        want(o.child.poll() is None, "the operator has ended")
    return f"{load.audit()}, 5 restarts"


def check_api_server(w):
    """The API server is killed and started again under load"""
    return restarted(w, "apiserver")


def check_etcd(w):
    """etcd is killed and started again under load"""
    return restarted(w, "etcd")


def check_token(w):
    """A token that ends is replaced by the one in its file, without a restart"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    w.api.create("serviceaccounts", "default", {"metadata": {"name": "rotating"}})
    w.api.create("clusterrolebindings", None, {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "rotating"}, "subjects": [
            {"kind": "ServiceAccount", "name": "rotating", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"}})
    made = []

    def new_token():
        name = f"token-{len(made)}"
        secret = w.api.create("secrets", "default", {"metadata": {"name": name}})
        made.append(name)
        return w.api.token_of("default", "rotating", bound={
            "kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret["metadata"]["uid"]})
    file = w.cluster.write("rotating.token", new_token())
    o = w.operator(config=w.cluster.kubeconfig("rotating", token_file=file))
    load = Load(w, 10)
    load.create(load.names[:5])
    load.until_running(load.names[:5])
    # The file first, then the end of the old one, as a kubelet does; and once the wrong way round.
    w.cluster.write("rotating.token", new_token())
    w.api.delete("secrets", "default", made[0])
    w.api.delete("secrets", "default", made[1])
    probe = w.cluster.client(open_text(file))
    client.until("the token is refused", lambda: probe.raw("GET", "/api")[0] == 401, 60, 0.5)
    load.create(load.names[5:])
    w.cluster.write("rotating.token", new_token())
    load.until_running(timeout_s=120)
    load.fail_some()
    load.finish()
    want(o.child.poll() is None, "the operator has ended")
    return load.audit()


def open_text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check_certificate(w):
    """A client certificate is taken from its files as it is replaced there, without a restart"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    names = ("signs.crt", "signs.key")

    def put(who, known=True):
        for name, text in zip(names, w.cluster.client_pair(who, known)):
            w.cluster.write(name, text)

    def acts(who):
        return audit.count(w.cluster.path("audit.log"), user=who, agent="holdfast/")
    put("stranger", known=False)
    o = w.operator(config=w.cluster.kubeconfig("signs", pair=[w.cluster.path(n) for n in names]),
                   start=False).start(ready_s=0)
    client.until("the stranger is refused", lambda: "Unauthorized" in o.said(), 30)
    before = acts("operator")
    put("operator")
    load = Load(w, 10)
    load.create(load.names[:5])
    load.until_running(load.names[:5])
    want(acts("operator") != before, "it has signed in as somebody else")
    # While the old one is still good.  Files are looked at when something is sent.
    put("rotated")
    ns = w.namespace()

    def something_to_do():
        w.api.create("pytorchjobs", ns, {**pytorchjob("", ns, 0, run_policy={"suspend": True}),
                                         "metadata": {"generateName": "any-"}})
        return acts("rotated")
    client.until("the new one is used", something_to_do, 90, 3)
    load.create(load.names[5:])
    load.until_running()
    load.fail_some()
    load.finish()
    want(o.child.poll() is None, "the operator has ended")
    return load.audit()


def holder(w):
    for lease in w.api.list("leases", "default"):
        if "training-operator" in lease["metadata"]["name"]:
            return lease["spec"].get("holderIdentity") or None
    return None


def check_leaders(w):
    """A leader frozen past its lease does nothing when it wakes; the other has gone on"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    flags = ["--leader-elect"]
    first = w.operator("leader", flags)
    client.until("the first leads", lambda: holder(w), 40)
    was = holder(w)
    second = w.operator("standby", flags)
    load = Load(w, 20)
    load.create(load.names[:10])
    load.until_running(load.names[:10])
    equal("the leader is still", holder(w), was)
    first.signal(signal.SIGSTOP)
    load.create(load.names[10:])
    client.until("the second leads", lambda: holder(w) not in (None, was), 60, 0.2)
    now = holder(w)
    load.until_running()
    load.fail_some()
    first.signal(signal.SIGCONT)
    load.finish()
    equal("the leader in the end", holder(w), now)
    note = load.audit()
    # Handing over: the next need not wait for the lease to run out.
    if first.child.poll() is None:
        code = second.stop()
        equal("exit code after SIGTERM", code, 0)
        client.until("the first leads again", lambda: holder(w) not in (None, now), 10, 0.1)
    else:
        note += ", the frozen one ended itself"
    return note


def check_slow(w):
    """A slow API server: 200 ms each way, then silence for 20 s, then every connection cut"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    with Proxy(w.cluster.port(API), 200) as proxy:
        load = Load(w, 30)
        o = w.operator(config=w.cluster.kubeconfig("slow", token="operator-token", port=proxy.port))
        load.create(load.names[:10])
        first = load.until_running(load.names[:10], 120)
        proxy.say("hold")
        load.create(load.names[10:20])
        threading.Event().wait(20)  # silence is what is tried here
        proxy.say("flow")
        load.until_running(load.names[:20], 180)
        proxy.say("cut")
        load.create(load.names[20:])
        load.until_running(timeout_s=180)
        load.fail_some()
        proxy.say("cut")
        load.finish()
        want(o.child.poll() is None, "the operator has ended")
        return f"{load.audit()}, ten jobs in {first:.1f} s"


def service_account(w, name, role="cluster-admin"):
    """A ServiceAccount that may do what a role says; its full name."""
    w.api.create("serviceaccounts", "default", {"metadata": {"name": name}})
    w.api.create("clusterrolebindings", None, {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})
    return "system:serviceaccount:default:" + name


def check_too_many(w):
    """429: an API server that lets one request at a time in is waited for, and nothing is lost"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    user = service_account(w, "limited")
    group = "flowcontrol.apiserver.k8s.io/v1"
    w.api.create("prioritylevelconfigurations", None, {
        "apiVersion": group, "kind": "PriorityLevelConfiguration", "metadata": {"name": "tiny"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 1,
            "limitResponse": {"type": "Reject"}}}})
    w.api.create("flowschemas", None, {
        "apiVersion": group, "kind": "FlowSchema", "metadata": {"name": "tiny"},
        "spec": {"priorityLevelConfiguration": {"name": "tiny"}, "matchingPrecedence": 2, "rules": [{
            "subjects": [{"kind": "ServiceAccount", "serviceAccount": {
                "name": "limited", "namespace": "default"}}],
            "resourceRules": [{"verbs": ["create", "patch", "delete"], "apiGroups": ["*"],
                               "resources": ["*"], "namespaces": ["*"], "clusterScope": True}]}]}})
    load = Load(w, 40)
    config = w.cluster.kubeconfig("limited", token=w.api.token_of("default", "limited"))
    o = w.operator(config=config)
    # With no share at all every write is refused; with one, most are.
    load.create()
    log = w.cluster.path("audit.log")

    def refused():
        return sum(c["code"] == 429 for c in audit.calls(log, user=user))
    client.until("writes are refused with 429", lambda: refused() >= 5, 60, 0.5)
    seen = refused()
    threading.Event().wait(5)  # how often it asks while it is refused
    rate = (refused() - seen) / 5
    w.api.patch("prioritylevelconfigurations", None, "tiny", {"spec": {"limited": {
        "nominalConcurrencyShares": 1}}})
    load.until_running(timeout_s=240)
    load.fail_some()
    load.finish()
    want(o.child.poll() is None, "the operator has ended")
    want(rate < 200, f"it asked {rate:.0f} times a second while it was refused")
    return f"{load.audit()}, {refused()} times 429, {rate:.0f}/s while all was refused"
