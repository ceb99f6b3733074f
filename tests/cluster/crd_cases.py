# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Jobs, and what an API server says when one is created.

A case is accepted (refusal None) or refused with a message that holds a text: one by Holdfast's
CRDs, one by upstream's CRDs with the admission policy.  Cases about fields that upstream's CRDs do
not have are for Holdfast's alone (policy SKIP).
"""

import copy
import json

# kind: replica map, container, a type that may stand alone
KINDS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch", "Master"),
    "TFJob": ("tfReplicaSpecs", "tensorflow", "Chief"),
    "MPIJob": ("mpiReplicaSpecs", "mpi", "Launcher"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost", "Master"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle", "Master"),
    "JAXJob": ("jaxReplicaSpecs", "jax", "Worker"),
}
SKIP = object()
SAME = object()
LONG = "the job's name is long"


class Case:
    def __init__(self, name, job, refusal=None, policy=SAME, warning=None):
        self.name, self.job, self.refusal, self.warning = name, job, refusal, warning
        self.policy = refusal if policy is SAME else policy


def containers(*pairs):
    return {"spec": {"containers": [{"name": n, "image": i} if i is not None else {"name": n}
                                    for n, i in pairs]}}


def ranks(kind, replicas=None, image="x", **more):
    out = {"template": containers((KINDS[kind][1], image))}
    if replicas is not None:
        out["replicas"] = replicas
    out.update(more)
    return out


def job(kind, replicas, name="good", policy=None, **spec):
    out = {"apiVersion": "kubeflow.org/v1", "kind": kind,
           "metadata": {"name": name, "namespace": "default"},
           "spec": {KINDS[kind][0]: replicas, **spec}}
    if policy is not None:
        out["spec"]["runPolicy"] = policy
    return out


def of_every_kind(kind):
    """What holds for each kind in the same words."""
    key, container, first = KINDS[kind]
    mpi, tf = kind == "MPIJob", kind == "TFJob"
    free = kind in ("JAXJob", "MPIJob")
    label = None if mpi else "must be a DNS-1035 label"
    named = "must have at least one container with name " + container
    at = "spec.%s.%s.template" % (key, first)

    def case(title, replicas=None, refusal=None, upstream=SAME, **more):
        replicas = {first: ranks(kind, 1)} if replicas is None else replicas
        return Case("%s: %s" % (kind, title), job(kind, replicas, **more), refusal, upstream)

    def template(title, value, refusal, upstream=SAME):
        return case(title, {first: {"replicas": 1, **value}}, refusal, upstream)

    yield case("the smallest one")
    yield case("a name that begins with a digit", None, label, name="1abc")
    yield case("a name with a dot", None, label, name="a.b")
    yield case("a name that ends with a dash", None, label or "RFC 1123", "RFC 1123", name="ab-")
    for length, refusal in ((64, label), (63, None)):
        yield Case("%s: a name of %d characters" % (kind, length),
                   job(kind, {first: ranks(kind, 1)}, "a" * length), refusal,
                   warning=None if refusal else LONG)
    generated = job(kind, {first: ranks(kind, 1)})
    generated["metadata"]["generateName"] = generated["metadata"].pop("name") + "-"
    yield Case(kind + ": a generated name", generated)
    missing = job(kind, {})
    del missing["spec"][key]
    yield Case(kind + ": no replica map", missing, "spec.%s: Required value" % key)
    yield Case(kind + ": a null replica map", job(kind, None), "spec.%s: Required value" % key)
    yield Case(kind + ": no spec", {k: v for k, v in missing.items() if k != "spec"},
               "spec is required")
    # The server drops the entry before anybody looks; some kinds miss the type then.
    gone = {"XGBoostJob": "Master must be present", "MPIJob": "Launcher must be present"}.get(kind)
    yield case("a null replica", {first: None}, gone)
    yield template("no template", {}, at + ": Required value", "needs template.spec.containers")
    yield template("an empty template", {"template": {}}, at + ".spec: Required value",
                   "needs template.spec.containers")
    # Structure that upstream's CRDs ask for as well is refused by them first.
    yield template("no containers", {"template": {"spec": {}}},
                   at + ".spec.containers: Required value")
    yield template("an empty list of containers", {"template": containers()},
                   at + ".spec.containers: Invalid value", "needs template.spec.containers")
    yield template("an empty image", {"template": containers((container, ""))},
                   "image: Invalid value", "needs an image")
    yield template("no image", {"template": containers((container, None))},
                   "image: Required value", "needs an image")
    yield template("a second container without image",
                   {"template": containers((container, "x"), ("side", ""))},
                   "image: Invalid value", "needs an image")
    yield template("a second container", {"template": containers((container, "x"), ("side", "y"))},
                   None)
    yield template("the container second", {"template": containers(("side", "y"), (container, "x"))},
                   None)
    yield template("another container's name", {"template": containers(("main", "x"))},
                   None if mpi else named)
    # A map of as many types as the kind has is full before its keys are looked at.
    yield case("an unknown replica type", {first: ranks(kind, 1), "Foo": ranks(kind, 1)},
               None if tf else "Too many" if kind == "JAXJob" else "replica type must be one of",
               None if tf else "replica type must be one of")
    yield case("a type in lower case", {first.lower(): ranks(kind, 1)},
               None if tf else "replica type must be one of")
    yield case("negative replicas", {first: ranks(kind, -1)},
               "replicas: Invalid value", {"PyTorchJob": "must be 1", "XGBoostJob": "with replicas 1",
                                           "MPIJob": "at most 1", "JAXJob": "non-negative"}.get(kind))
    yield case("a restart policy nobody knows", {first: ranks(kind, 1, restartPolicy="Sometimes")},
               "restartPolicy: Unsupported value", None)
    yield case("an empty restart policy", {first: ranks(kind, 1, restartPolicy="")})
    for policy in ("Always", "OnFailure", "Never", "ExitCode"):
        yield case("restart policy " + policy, {first: ranks(kind, 1, restartPolicy=policy)})
    for manager in ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"):
        yield case("managed by " + manager, policy={"managedBy": manager})
    for manager in ("example.com/me", ""):
        yield Case("%s: managed by '%s'" % (kind, manager),
                   job(kind, {first: ranks(kind, 1)}, policy={"managedBy": manager}),
                   None if free else "managedBy: Unsupported value",
                   None if free else "managedBy: must be one of")
    yield case("a typed field of a wrong type", {first: ranks(kind, 1)},
               "suspend: Invalid value", policy={"suspend": "no"})


def run_policies():
    """Fields of runPolicy: the schemas of all kinds have them from one place."""
    def case(name, policy, refusal=None, upstream=SKIP, kind="PyTorchJob", type_="Worker"):
        return Case("runPolicy: " + name, job(kind, {type_: ranks(kind, 1)}, policy=policy), refusal,
                    upstream)

    for field in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        yield case(field + " 0", {field: 0}, None, None)
        yield case(field + " below 0", {field: -1}, field + ": Invalid value", None)
    for field in ("minAvailable", "scheduleTimeoutSeconds"):
        yield case(field + " 0", {"schedulingPolicy": {field: 0}}, None, None)
        yield case(field + " below 0", {"schedulingPolicy": {field: -1}}, field + ": Invalid value",
                   None)
    yield case("every kind of cleanPodPolicy", {"cleanPodPolicy": "Whatever"}, None, None)
    yield case("a queue", {"schedulingPolicy": {"queue": "q", "minResources": {"cpu": "1"}}}, None,
               None)
    yield case("a quantity that is none", {"schedulingPolicy": {"minResources": {"cpu": "one"}}},
               "minResources", "minResources")

    def recovery(name, value, refusal=None):
        return case("recovery, " + name, {"recovery": value}, refusal)

    yield recovery("empty", {})
    yield recovery("everything", {
        "restartScope": "Job", "infrastructureLimit": 0, "deviceLimit": 3,
        "backoff": {"initialSeconds": 1, "maxSeconds": 1, "resetAfterSeconds": 1},
        "incidentSeconds": 0, "replaceDelaySeconds": 0, "settleSeconds": 0,
        "restartGraceSeconds": 0,
        "nodeLost": {"afterSeconds": 60, "forceDelete": "Proven", "selfFence": True},
        "forceDeleteAfterSeconds": 0, "device": {"onUnhealthy": "Fail", "avoid": False},
        "progressDeadlineSeconds": 1, "sidecarGraceSeconds": 0, "podsAfterEnd": "Keep",
        "noProgressLimit": 0, "inPlace": "Never", "inPlaceLimit": 0, "inPlaceWaitSeconds": 1,
        "checkpoint": {"graceSeconds": 0}, "exec": "None",
        "logRules": [{"name": "loss-1.x_y", "pattern": "loss=(.*)", "must": "be below -1e-3 for 10 lines",
                      "action": "Event"}]})
    yield recovery("null for absent", {"infrastructureLimit": None, "restartGraceSeconds": None})
    for field in ("infrastructureLimit", "deviceLimit", "incidentSeconds", "replaceDelaySeconds",
                  "settleSeconds", "restartGraceSeconds", "forceDeleteAfterSeconds",
                  "sidecarGraceSeconds", "noProgressLimit", "inPlaceLimit"):
        yield recovery(field + " below 0", {field: -1}, field + ": Invalid value")
    for field in ("initialSeconds", "maxSeconds", "resetAfterSeconds"):
        yield recovery("backoff.%s 0" % field, {"backoff": {field: 0}}, field + ": Invalid value")
    yield recovery("a delay that begins above its end",
                   {"backoff": {"initialSeconds": 20, "maxSeconds": 10}},
                   "initialSeconds must not exceed maxSeconds")
    yield recovery("a fence that is too short", {"nodeLost": {"selfFence": True, "afterSeconds": 39}},
                   "afterSeconds must be at least 40 with selfFence")
    yield recovery("short without a fence", {"nodeLost": {"selfFence": False, "afterSeconds": 39}})
    yield recovery("nodeLost.afterSeconds 0", {"nodeLost": {"afterSeconds": 0}},
                   "afterSeconds: Invalid value")
    yield recovery("progressDeadlineSeconds 0", {"progressDeadlineSeconds": 0},
                   "progressDeadlineSeconds: Invalid value")
    yield recovery("a scope nobody knows", {"restartScope": "Gang"}, "restartScope: Unsupported")
    yield recovery("a mode nobody knows", {"nodeLost": {"forceDelete": "Always"}},
                   "forceDelete: Unsupported")
    yield recovery("a reaction nobody knows", {"device": {"onUnhealthy": "Cry"}},
                   "onUnhealthy: Unsupported")
    yield recovery("a word that inPlace does not have", {"inPlace": "Always"},
                   "inPlace: Unsupported")
    yield recovery("inPlaceWaitSeconds 0", {"inPlaceWaitSeconds": 0},
                   "inPlaceWaitSeconds: Invalid value")
    yield recovery("checkpoint.graceSeconds below 0", {"checkpoint": {"graceSeconds": -1}},
                   "graceSeconds: Invalid value")
    yield recovery("a word that exec does not have", {"exec": "Always"}, "exec: Unsupported")
    for must in ("appear within 1h30m", "recur within 90s", "be finite", "be finite for 3 lines", "be above 0"):
        yield recovery("a log rule that must " + must,
                       {"logRules": [{"name": "x", "pattern": "(.*)", "must": must}]})
    for field, value, refusal in (("must", "recur every 10m", "must: Invalid value"),
                                  ("must", "be below", "must: Invalid value"),
                                  ("name", "two words", "name: Invalid value"),
                                  ("action", "Stop", "action: Unsupported")):
        yield recovery(f"a log rule with {field} '{value}'",
                       {"logRules": [{"name": "x", "must": "be finite", field: value}]}, "logRules[0]." + refusal)
    yield recovery("too many log rules", {"logRules": [{"name": f"x{i}", "must": "be finite"} for i in range(17)]},
                   "logRules: Too many: 17")
    yield recovery("a word that podsAfterEnd does not have", {"podsAfterEnd": "Delete"},
                   "podsAfterEnd: Unsupported")


def failure_policies():
    codes = {"name": "bad-gpu", "action": "RestartJob",
             "onExitCodes": {"operator": "In", "values": [220, 221]}}

    def policy(name, rules, refusal=None):
        return Case("podFailurePolicy: " + name,
                    job("PyTorchJob", {"Worker": ranks("PyTorchJob", 2)},
                        policy={"podFailurePolicy": {"rules": rules}}), refusal, SKIP)

    def exits(values, operator="In", **more):
        return {**codes, "onExitCodes": {"operator": operator, "values": values, **more}}

    def on(**match):
        return {"action": "Ignore", **match}

    one_of = "one of onExitCodes, onPodConditions, onPodReasons and onDevice is required"
    yield policy("none", [])
    yield policy("exit codes", [codes])
    yield Case("podFailurePolicy: no list", job("PyTorchJob", {"Worker": ranks("PyTorchJob")},
                                                policy={"podFailurePolicy": {}}),
               "rules: Required value", SKIP)
    for action in ("FailJob", "Ignore", "Count", "RestartReplica", "RestartJob"):
        yield policy(action, [{**codes, "action": action}])
    yield policy("an action nobody knows", [{**codes, "action": "FailIndex"}],
                 "action: Unsupported value")
    yield policy("no action", [{k: v for k, v in codes.items() if k != "action"}],
                 "action: Required value")
    yield policy("20 rules", [{**codes, "name": "r%d" % i} for i in range(20)])
    yield policy("21 rules", [codes] * 21, "Too many")
    yield policy("0 with In", [exits([0, 1])], "0 must not be used with operator In")
    yield policy("0 with NotIn", [exits([0], "NotIn")])
    yield policy("an operator nobody knows", [exits([1], "Near")], "operator: Unsupported value")
    yield policy("no operator", [{**codes, "onExitCodes": {"values": [1]}}],
                 "operator: Required value")
    yield policy("no code", [exits([])], "values: Invalid value")
    yield policy("a negative code", [exits([-1, 1])], "Invalid value")
    yield policy("codes out of order", [exits([3, 2])], "must be in ascending order")
    yield policy("a code twice", [exits([2, 2])], "Duplicate value")
    yield policy("255 codes", [exits(list(range(1, 256)))])
    yield policy("256 codes", [exits(list(range(1, 257)))], "Too many")
    yield policy("codes of a container", [exits([1], containerName="pytorch")])
    yield policy("nothing to match", [on()], one_of)
    yield policy("two things to match", [{**codes, "onPodReasons": ["Evicted"]}], one_of)
    yield policy("a condition", [on(onPodConditions=[{"type": "DisruptionTarget"}])])
    yield policy("a condition with everything", [on(onPodConditions=[
        {"type": "a.example/B_c.d", "status": "False", "reason": "PreemptionByScheduler"}])])
    yield policy("a condition without type", [on(onPodConditions=[{"status": "True"}])],
                 "type: Required value")
    yield policy("a condition whose type is no name", [on(onPodConditions=[{"type": "a b"}])],
                 "type: Invalid value")
    for kind in ("a..b/c", "a.-b/c", "a/" + "b" * 64, "b" * 64):
        yield policy("a condition whose type is no qualified name: " + kind,
                     [on(onPodConditions=[{"type": kind}])], "type: Invalid value")
    yield policy("a condition whose type is long",
                 [on(onPodConditions=[{"type": "a.b-c.d/" + "b" * 63}])])
    yield policy("a condition of an odd status",
                 [on(onPodConditions=[{"type": "Ready", "status": "Maybe"}])],
                 "status: Unsupported value")
    yield policy("21 conditions", [on(onPodConditions=[{"type": "A"}] * 21)], "Too many")
    yield policy("reasons", [on(onPodReasons=["NodeShutdown", "Evicted"])])
    yield policy("no reason", [on(onPodReasons=[])], "onPodReasons: Invalid value")
    yield policy("21 reasons", [on(onPodReasons=["A"] * 21)], "Too many")
    yield policy("devices", [on(onDevice=["gpu-reset", "reboot"])])
    yield policy("replica types", [{**codes, "replicaTypes": ["Worker", "Master"]}])
    yield policy("a replica type nobody knows", [{**codes, "replicaTypes": ["PS"]}],
                 "replicaTypes[0]: Unsupported value")
    yield policy("a name that is too long", [{**codes, "name": "a" * 64}], "Too long")


def of_one_kind():
    def case(kind, title, replicas, refusal=None, upstream=SAME, warning=None, **spec):
        return Case("%s: %s" % (kind, title), job(kind, replicas, **spec), refusal, upstream, warning)

    def of(kind, **counts):
        return {t: ranks(kind, n) for t, n in counts.items()}

    yield case("PyTorchJob", "a master without replicas", of("PyTorchJob", Master=None),
               "Master replicas must be 1")
    yield case("PyTorchJob", "two masters", of("PyTorchJob", Master=2), "Master replicas must be 1")
    yield case("PyTorchJob", "no workers by number", of("PyTorchJob", Worker=0),
               "Worker replicas must be at least 1")
    yield case("PyTorchJob", "workers without replicas", of("PyTorchJob", Worker=None))
    yield case("PyTorchJob", "an empty map", {})
    yield case("PyTorchJob", "elastic without workers", of("PyTorchJob", Master=1),
               "Worker must be configured if elastic policy is used",
               elasticPolicy={"minReplicas": 1})
    yield case("PyTorchJob", "elastic", of("PyTorchJob", Worker=2), elasticPolicy={
        "minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "c10d", "rdzvPort": 1, "rdzvHost": "h",
        "rdzvId": "i", "rdzvConf": [{"key": "a", "value": "b"}], "standalone": False,
        "maxRestarts": 3, "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]})
    above = "elasticPolicy.maxReplicas: Invalid value"
    for kind, fields in (("PyTorchJob", ("minReplicas", "maxReplicas", "maxRestarts", "rdzvPort")),
                         ("PaddleJob", ("minReplicas", "maxReplicas", "maxRestarts"))):
        yield case(kind, "a minimum above the maximum", of(kind, Worker=2), above, None,
                   elasticPolicy={"minReplicas": 5, "maxReplicas": 2})
        yield case(kind, "a minimum that is the maximum", of(kind, Worker=2),
                   elasticPolicy={"minReplicas": 2, "maxReplicas": 2})
        for field in fields:
            yield case(kind, field + " below 0", of(kind, Worker=2),
                       "elasticPolicy.%s: Invalid value" % field, None, elasticPolicy={field: -1})
    yield case("PyTorchJob", "processes said twice", of("PyTorchJob", Worker=2),
               "elasticPolicy.nProcPerNode must not be used with nprocPerNode",
               elasticPolicy={"nProcPerNode": 2}, nprocPerNode="2")
    yield case("PyTorchJob", "processes in the deprecated way", of("PyTorchJob", Worker=2),
               warning="deprecated", elasticPolicy={"nProcPerNode": 2})
    for number, refusal in (("9223372036854775807", "a number may have 9 digits at most"),
                            ("-1000000000", "a number may have 9 digits at most"), ("999999999", None)):
        yield case("PyTorchJob", "processes: " + number, of("PyTorchJob", Master=1), refusal, None,
                   nprocPerNode=number)
    yield case("PyTorchJob", "processes", of("PyTorchJob", Worker=2), nprocPerNode="auto")
    yield case("PyTorchJob", "a name with no room for its services", of("PyTorchJob", Worker=2),
               warning=LONG, name="a" * 48)
    yield case("PyTorchJob", "20,000 ranks", of("PyTorchJob", Master=1, Worker=19999))
    yield case("PyTorchJob", "20,001 ranks", of("PyTorchJob", Master=1, Worker=20000),
               "at most 20000 replicas", None)
    yield case("TFJob", "a chief and a master", of("TFJob", Chief=1, Master=1),
               "must not have more than 1 Chief or Master role")
    yield case("TFJob", "two masters", of("TFJob", Master=2))
    yield case("TFJob", "no workers by number", of("TFJob", Worker=0, Chief=1))
    yield case("TFJob", "all its types and one more",
               of("TFJob", Chief=1, PS=2, Worker=4, Evaluator=1, foo=1),
               successPolicy="AllWorkers", enableDynamicWorker=True)
    yield case("TFJob", "17 types", {"t%d" % i: ranks("TFJob", 1) for i in range(17)}, "Too many",
               None)
    yield case("XGBoostJob", "no master", of("XGBoostJob", Worker=1), "Master must be present")
    yield case("XGBoostJob", "a master without replicas", of("XGBoostJob", Master=None),
               "Master must be present with replicas 1")
    yield case("XGBoostJob", "an empty map", {}, "Master must be present")
    yield case("XGBoostJob", "no workers by number", of("XGBoostJob", Master=1, Worker=0))
    yield case("PaddleJob", "two masters", of("PaddleJob", Master=2, Worker=2),
               elasticPolicy={"minReplicas": 1, "maxReplicas": 2, "maxRestarts": 1})
    yield case("PaddleJob", "no workers by number", of("PaddleJob", Worker=0))
    yield case("JAXJob", "a master", of("JAXJob", Master=1), "replica type must be one of Worker")
    yield case("JAXJob", "no workers by number", of("JAXJob", Worker=0))
    yield case("MPIJob", "two launchers", of("MPIJob", Launcher=2),
               "Launcher must be present with at most 1 replica")
    yield case("MPIJob", "no launcher", of("MPIJob", Worker=2), "Launcher must be present")
    yield case("MPIJob", "a launcher without replicas", of("MPIJob", Launcher=None, Worker=2),
               slotsPerWorker=2, cleanPodPolicy="Running", mainContainer="mpi")


def all_cases():
    out = [case for kind in KINDS for case in of_every_kind(kind)]
    out += list(of_one_kind()) + list(run_policies()) + list(failure_policies())
    return [copy.copy(case) for case in out]


if __name__ == "__main__":
    for made in all_cases():
        print(made.name, "|", made.refusal, "|", json.dumps(made.job))
