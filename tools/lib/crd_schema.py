# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The schemas of the six job kinds, as plain dictionaries.  Facts only: what is written is crds's."""

import copy

GROUP = "kubeflow.org"
RANKS_MAX = 20000       # HF_RANKS_MAX of core/types.h
RULES_MAX = 20          # HF_RULES_MAX; batch/v1's limits, as the next two
VALUES_MAX = 255        # HF_RULE_VALUES_MAX
PATTERNS_MAX = 20       # HF_RULE_PATTERNS_MAX
TYPES_MAX = 16          # replica types of a TFJob, whose keys are free: bounds the cost of its rules
CONTAINERS_MAX = 1000   # bounds the cost of the rules about containers; no node runs so many

# kind: plural, key of the replica map, container (None: any), types (None: free), scale, own keys
KINDS = {
    "PyTorchJob": ("pytorchjobs", "pytorchReplicaSpecs", "pytorch", ["Master", "Worker"], True),
    "TFJob": ("tfjobs", "tfReplicaSpecs", "tensorflow", None, False),
    "MPIJob": ("mpijobs", "mpiReplicaSpecs", None, ["Launcher", "Worker"], False),
    "XGBoostJob": ("xgboostjobs", "xgbReplicaSpecs", "xgboost", ["Master", "Worker"], False),
    "PaddleJob": ("paddlejobs", "paddleReplicaSpecs", "paddle", ["Master", "Worker"], True),
    "JAXJob": ("jaxjobs", "jaxReplicaSpecs", "jax", ["Worker"], True),
}
MANAGERS = ["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"]
# Upstream looks at managedBy of the others only.
MANAGED_BY_FREE = ("JAXJob", "MPIJob")


def text(description=None, **more):
    return node("string", description, **more)


def number(description=None, minimum=None, wide=False):
    extra = {} if minimum is None else {"minimum": minimum}
    return node("integer", description, format="int64" if wide else "int32", **extra)


def time(description=None):
    return text(description, format="date-time")


def flag(description=None, **more):
    return node("boolean", description, **more)


def node(kind, description=None, **more):
    out = {"type": kind}
    if description:
        out["description"] = description
    out.update(more)
    return out


def record(properties, description=None, required=(), **more):
    out = node("object", description, properties=properties, **more)
    if required:
        out["required"] = list(required)
    return out


def items(item, description=None, **more):
    more.setdefault("x-kubernetes-list-type", "atomic")
    return node("array", description, items=item, **more)


def rule(expression, message, **more):
    return {"rule": expression, "message": message, **more}


def rules(schema, *list_of_rules):
    if list_of_rules:
        schema["x-kubernetes-validations"] = list(list_of_rules)
    return schema


# ---- spec.runPolicy

def failure_rule(types):
    exit_codes = rules(record({
        "containerName": text("Only codes of this container; absent: of any.", maxLength=63),
        "operator": text("Whether the code must be one of values, or none of them. Code 0 never "
                         "matches.", enum=["In", "NotIn"]),
        # A set instead of a rule: comparing each with each costs more than a CRD may.
        "values": items(number(minimum=0), "Ascending, each once.", minItems=1,
                        maxItems=VALUES_MAX, **{"x-kubernetes-list-type": "set"}),
    }, "Match by a container's exit code.", ["operator", "values"]),
        rule("self.operator != 'In' || !(0 in self.values)", "0 must not be used with operator In"),
        rule("self.values.isSorted()", "values must be in ascending order"))
    condition = record({
        # A qualified name, but for the 253 characters of its prefix alone.
        "type": text(maxLength=317, pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?"
                                            r"(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                                            r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"),
        "status": text("Absent: \"True\".", enum=["True", "False", "Unknown"]),
        "reason": text("Absent: any.", maxLength=1024),
    }, None, ["type"])
    return rules(record({
        "name": text("Shown in status, events and by holdfast why.", minLength=1, maxLength=63,
                     pattern=r"^[^\x00-\x1f\x7f]*$"),
        "action": text("FailJob ends the job; Ignore replaces the rank and charges nothing; Count "
                       "replaces it and charges its budget; RestartReplica and RestartJob restart "
                       "that rank, or all of them as a new generation.",
                       enum=["FailJob", "Ignore", "Count", "RestartReplica", "RestartJob"]),
        "replicaTypes": items(text(**({"enum": types} if types else {"maxLength": 32})),
                              "Only ends of these replica types; absent: of all.",
                              minItems=1, maxItems=8),
        "onExitCodes": exit_codes,
        "onPodConditions": items(condition, "Match by a condition of the pod.", minItems=1,
                                 maxItems=PATTERNS_MAX),
        "onPodReasons": items(text(minLength=1, maxLength=128),
                              "Match by the reason in the pod's or the container's state.",
                              minItems=1, maxItems=PATTERNS_MAX),
        "onDevice": items(text(minLength=1, maxLength=64),
                          "Match by the class of a device failure.", minItems=1,
                          maxItems=PATTERNS_MAX),
    }, None, ["action"]),
        rule("[has(self.onExitCodes), has(self.onPodConditions), has(self.onPodReasons), "
             "has(self.onDevice)].filter(x, x).size() == 1",
             "specifying one of onExitCodes, onPodConditions, onPodReasons and onDevice is required"))


def failure_policy(types):
    return record({
        "rules": items(failure_rule(types), "The first that matches decides; without a match the "
                       "end counts.", maxItems=RULES_MAX),
    }, "What an end of a rank means, by its exit code, condition, reason or device. Such a job's "
       "pods are made with restartPolicy Never.", ["rules"])


def recovery():
    backoff = rules(record({
        "initialSeconds": number("Before the second restart; the first is at once. Default 10.", 1),
        "maxSeconds": number("It doubles up to this. Default 600.", 1),
        "resetAfterSeconds": number("So long without a failure, and the delay begins anew (the "
                                    "budgets do not). Default 3600.", 1),
    }, "How long a restart that the application is charged for waits."),
        rule("!has(self.initialSeconds) || !has(self.maxSeconds) || "
             "self.initialSeconds <= self.maxSeconds", "initialSeconds must not exceed maxSeconds"))
    node_lost = rules(record({
        "afterSeconds": number("A node counts as lost when it has been Unknown and silent for so "
                               "many seconds, its Lease not renewed, and as long after a storm of "
                               "its zone (15 at least). Default 60.", 1),
        "forceDelete": text("What it takes to delete a pod on a lost node by force: Presumed "
                            "(default) is satisfied with silence, Proven wants evidence that the "
                            "node is dead, Never waits for people.",
                            enum=["Presumed", "Proven", "Never"]),
        "selfFence": flag("Ranks under holdfast exec end themselves when their node has had no "
                          "contact with the control plane for afterSeconds - 10 s, which proves "
                          "that they have ended. Pods are made with restartPolicy Never. Default "
                          "false."),
    }), rule("!has(self.selfFence) || !self.selfFence || !has(self.afterSeconds) || "
             "self.afterSeconds >= 40", "afterSeconds must be at least 40 with selfFence"))
    device = record({
        "onUnhealthy": text("What an unhealthy device of a rank leads to. Default Restart.",
                            enum=["Ignore", "Restart", "Fail"]),
        "avoid": flag("Keep replacements off nodes whose devices fail. Default true."),
    })
    return record({
        "restartScope": text("Replica (default) restarts the rank that failed, Job all ranks as "
                             "one generation.", enum=["Replica", "Job"]),
        "infrastructureLimit": number("How many incidents of the infrastructure the job survives: "
                                      "node loss, preemption, eviction, admission. Absent: any "
                                      "number.", 0),
        "deviceLimit": number("The same for failures of devices. Absent: any number.", 0),
        "backoff": backoff,
        "incidentSeconds": number("How long after the last rank runs again a late end still "
                                  "belongs to the incident. Default 1800.", 0),
        "replaceDelaySeconds": number("How long a pod's name stays empty after it was removed from "
                                      "a tainted node. Default 2.", 0),
        "settleSeconds": number("How long a verdict that would end the job waits for its cause. "
                                "Default 20.", 0),
        "restartGraceSeconds": number("Scope Job: grace period of the pods that are torn down. "
                                      "Absent: their own.", 0),
        "nodeLost": node_lost,
        "forceDeleteAfterSeconds": number("Past a pod's own deadline, on a lost node. Default 5.", 0),
        "device": device,
        "progressDeadlineSeconds": number("No rank advanced for so long: all ranks are restarted. "
                                          "Absent: never.", 1),
        "sidecarGraceSeconds": number("The kind's own container has ended with 0 and another one "
                                      "keeps the pod: so long after that the rank counts as "
                                      "succeeded and its pod is ended. Absent: Holdfast waits until "
                                      "the pod ends.", 0),
        "podsAfterEnd": text("What happens to the pods that cleanPodPolicy keeps when the job fails. "
                             "Stop (default): pods that have not begun are deleted, and running pods "
                             "are ended and kept with their logs. Keep: the pods go on, as "
                             "training-operator lets them.",
                             enum=["Stop", "Keep"]),
    }, "How Holdfast brings the job back. Absent fields have the operator's defaults.")


def scheduling_policy(quantity):
    queue = rules(text("Queue of the pod group."),
                  rule("self == oldSelf", "spec.runPolicy.schedulingPolicy.queue is immutable"))
    return record({
        "minAvailable": number("Members of the pod group; absent: all ranks.", 0),
        "minResources": node("object", "Resources of the pod group.",
                             additionalProperties=copy.deepcopy(quantity)),
        "priorityClass": text("Priority class of the pod group."),
        "queue": queue,
        "scheduleTimeoutSeconds": number("How long the gang scheduler waits for the whole group.",
                                         0),
    }, "For gang schedulers.")


def run_policy(kind, types, quantity):
    managers = {} if kind in MANAGED_BY_FREE else {"enum": MANAGERS}
    # The default gives every stored job a runPolicy: clients read through it unasked.
    return record({
        "activeDeadlineSeconds": number("The job fails after so many seconds of activity; time "
                                        "suspended does not count.", 0, wide=True),
        "backoffLimit": number("How many incidents of the application the job survives. Absent: "
                               "any number. 0 under OnFailure: the kubelet restarts no container.", 0),
        "cleanPodPolicy": text("Which pods go when the job is over: None (default), Running or "
                               "All."),
        "managedBy": text("Who runs this job; immutable. Absent: the training operator.",
                          **managers),
        "schedulingPolicy": scheduling_policy(quantity),
        "suspend": flag("True: the job has no pods until it is set to false.", default=False),
        "ttlSecondsAfterFinished": number("The job is deleted so long after its end. Absent: "
                                          "never.", 0),
        "podFailurePolicy": failure_policy(types),
        "recovery": recovery(),
    }, "What holds for the job as a whole.", default={})


# ---- the rest of spec

def replica_map(kind, template):
    _, _, container, types, _ = KINDS[kind]
    replica = record({
        "replicas": number("How many ranks of this type. Absent: 1 (workers of an MPIJob: 0).", 0),
        # "" is what typed clients send for "absent".
        "restartPolicy": text("What follows the end of a rank: Always, OnFailure, Never, or "
                              "ExitCode (128 and above are restarted, 1 to 127 fail the job).",
                              enum=["", "Always", "ExitCode", "Never", "OnFailure"]),
        "template": template,
    }, None, ["template"])
    if container:
        # What is missing is said by "required", which lets old objects be; a rule that cannot be
        # evaluated would refuse every write of them, even the removal of a finalizer.
        rules(replica, rule("!has(self.template) || !has(self.template.spec) || "
                            "self.template.spec.containers.exists(c, c.name == '%s')" % container,
                            "must have at least one container with name %s" % container,
                            fieldPath=".template"))
    out = node("object", "Replica types of the job, by name%s."
               % (": " + " and ".join(types) if types else
                  ": Chief, Evaluator, Master, PS and Worker have a meaning"),
               additionalProperties=replica, maxProperties=len(types) if types else TYPES_MAX)
    return rules(out, *replica_rules(kind, types))


def replica_rules(kind, types, upstream_only=False):
    out = []
    if types:
        known = ", ".join("'%s'" % t for t in types)
        out.append(rule("self.all(k, k in [%s])" % known,
                        "replica type must be one of " + ", ".join(types)))
    if kind == "PyTorchJob":
        out += [rule("!('Master' in self) || (has(self['Master'].replicas) && "
                     "self['Master'].replicas == 1)", "Master replicas must be 1"),
                rule("!('Worker' in self) || !has(self['Worker'].replicas) || "
                     "self['Worker'].replicas >= 1", "Worker replicas must be at least 1")]
    if kind == "XGBoostJob":
        out.append(rule("'Master' in self && has(self['Master'].replicas) && "
                        "self['Master'].replicas == 1", "Master must be present with replicas 1"))
    if kind == "TFJob":
        out.append(rule("!('Chief' in self && 'Master' in self)",
                        "must not have more than 1 Chief or Master role"))
    if kind == "MPIJob":
        out.append(rule("'Launcher' in self && (!has(self['Launcher'].replicas) || "
                        "self['Launcher'].replicas == 1)",
                        "Launcher must be present with at most 1 replica"))
    if upstream_only:
        return out
    out.append(rule("self.map(k, has(self[k].replicas) ? self[k].replicas : 1).sum() <= %d"
                    % RANKS_MAX, "a job has at most %d replicas, of all types together" % RANKS_MAX))
    return out


def elastic_policy(kind, metric):
    out = {
        "minReplicas": number("Fewest workers to go on with; absent: maxReplicas.", 0),
        "maxReplicas": number("Most workers; absent: minReplicas.", 0),
        "maxRestarts": number("Passed to the launcher of each pod.", 0),
        "metrics": items(copy.deepcopy(metric), "What a HorizontalPodAutoscaler scales the "
                         "workers by."),
    }
    # As upstream has it, and a list type must not change under an existing kind.
    del out["metrics"]["x-kubernetes-list-type"]
    if kind == "PyTorchJob":
        conf = items(record({"key": text(), "value": text()}), "Options of the rendezvous.")
        del conf["x-kubernetes-list-type"]
        out.update({
            "rdzvBackend": text("Absent: c10d."),
            "rdzvPort": number("Absent: the port of worker 0.", 0),
            "rdzvHost": text("Absent: worker 0."),
            "rdzvId": text("Name of the rendezvous."),
            "rdzvConf": conf,
            "standalone": flag("A rendezvous inside each pod."),
            "nProcPerNode": number("Deprecated: use spec.nprocPerNode."),
        })
    return rules(record(out, "How the number of workers may change while the job runs."),
                 rule("!has(self.minReplicas) || !has(self.maxReplicas) || "
                      "self.minReplicas <= self.maxReplicas",
                      "minReplicas must not exceed maxReplicas", fieldPath=".maxReplicas"))


def spec_rules(kind):
    if kind != "PyTorchJob":
        return []
    return [rule("!has(self.elasticPolicy) || 'Worker' in self.pytorchReplicaSpecs",
                 "Worker must be configured if elastic policy is used"),
            rule("!has(self.elasticPolicy) || !has(self.elasticPolicy.nProcPerNode) || "
                 "!has(self.nprocPerNode)",
                 "elasticPolicy.nProcPerNode must not be used with nprocPerNode")]


def spec(kind, template, metric, quantity):
    _, key, _, types, _ = KINDS[kind]
    own = {
        "PyTorchJob": lambda: {
            "elasticPolicy": elastic_policy(kind, metric),
            "nprocPerNode": rules(
                text("Processes of a pod: auto (default), cpu, gpu or a number."),
                rule("!self.matches('^[-+]?[0-9]{10,}$')", "a number may have 9 digits at most")),
        },
        "PaddleJob": lambda: {"elasticPolicy": elastic_policy(kind, metric)},
        "TFJob": lambda: {
            "successPolicy": text("Empty: the chief's or worker 0's success is the job's. "
                                  "AllWorkers: the success of all workers."),
            "enableDynamicWorker": flag("The number of workers may change while the job runs."),
        },
        "MPIJob": lambda: {
            "slotsPerWorker": number("Slots of a worker in the host file. Absent: 1."),
            "cleanPodPolicy": text("runPolicy.cleanPodPolicy wins."),
            "mainContainer": text("The workers' container in which the launcher starts ranks."),
        },
    }.get(kind, dict)()
    properties = {"runPolicy": run_policy(kind, types, quantity), key: replica_map(kind, template)}
    out = spec_rules(kind)
    if kind not in MANAGED_BY_FREE:
        # Here and not at the field, where a rule would not see it come and go.
        value = "(has({0}.runPolicy) && has({0}.runPolicy.managedBy) ? {0}.runPolicy.managedBy : '')"
        out.append(rule("%s == %s" % (value.format("self"), value.format("oldSelf")),
                        "runPolicy.managedBy is immutable"))
    return rules(record({**properties, **own}, "What the job shall be.", [key]), *out)


# ---- status

def kept(properties, description=None):
    """An object of the ledger: what a later version writes into it is not pruned."""
    return record(properties, description, **{"x-kubernetes-preserve-unknown-fields": True})


def ledger():
    def budgets(description, **more):
        return kept({b: number(wide=True) for b in ("application", "infrastructure", "device")}
                    | more, description)

    def entry(description=None):
        return kept({
            "generation": number("That the restart led to.", wide=True),
            "incident": number("The incident it was part of.", wide=True),
            "cause": text("Class of the end: application, out-of-memory, infrastructure, device, "
                          "admission, user."),
            "reason": text("What was seen, in one word: NodeLost, Evicted, OOMKilled and the like."),
            "message": text("The node's own text for that reason; of the newest record alone."),
            "scope": text("Replica, Job or Container; absent: the job ended."),
            "replica": text("Type and index."),
            "pod": text(), "node": text(), "device": text(),
            "exitCode": number(), "signal": number(),
            "rule": text("Of podFailurePolicy, by name or number; or the annotation."),
            "detectedAt": time(), "decidedAt": time(),
            "runningAt": time("When the last rank ran again."),
        }, description)

    ranks = "%s, as index ranges: 0-3,7."
    counts = "%s, as index:number."
    return kept({
        "schema": number("Version of this record.", wide=True),
        "generation": number("Rises when all ranks are started anew.", wide=True),
        "phase": text("Creating, Running, Tearing, Suspended or Ended."),
        "since": time("The phase has lasted since."),
        "incident": kept({
            "id": number(wide=True), "openedAt": time(), "cause": text(),
            "charged": text("Budget that pays; empty while the cause may still turn up."),
        }, "The failure that is being recovered from, or the last one."),
        "notBefore": time("No pod is created earlier."),
        "activeSeconds": number("Of runs before a suspension.", wide=True),
        "restarts": budgets("Incidents charged, by budget."),
        "summary": text("The incidents charged, in words: 0, 1 (infrastructure), "
                        "3 (2 application, 1 device)."),
        "streak": budgets("Failures in a row, which make the delay grow.", user=number(
            "What people deleted or had restarted, in a row.", wide=True)),
        "replicas": node("object", "Per replica type, in short texts.", additionalProperties=kept({
            "attempts": text(counts % "Starts after the first"),
            "created": text(ranks % "Ranks whose pod was seen"),
            "succeeded": text(ranks % "Ranks that succeeded in this generation"),
            "seen": text(counts % "Container restarts already counted"),
            "trained": text(ranks % "Ranks whose own container ended with 0 and whose pod has not ended"),
            "covered": text(ranks % "Ranks whose container restart this incident paid for"),
        })),
        "last": entry("The newest restart, or the end of the job."),
        "history": items(entry(), "What came before it, newest first."),
        "downtimeSeconds": number("Not all ranks were running.", wide=True),
        "productiveSeconds": number("All ranks were running.", wide=True),
        "restartHandled": text("The value of the restart annotation that was last acted on."),
        "verdict": kept({"reason": text(), "message": text(), "at": time()},
                        "Why the job fails, unless another cause turns up while it settles."),
    }, "Holdfast's ledger: what was counted, and what of it. Not for editing.")


def status():
    condition = record({
        "lastTransitionTime": time(), "lastUpdateTime": time(), "message": text(),
        "reason": text(), "status": text("True, False or Unknown."), "type": text(),
    }, None, ["status", "type"])
    requirement = record({
        "key": text(), "operator": text(), "values": items(text()),
    }, None, ["key", "operator"])
    label_selector = record({
        "matchExpressions": items(requirement),
        "matchLabels": node("object", additionalProperties=text()),
    }, **{"x-kubernetes-map-type": "atomic"})
    count = record({
        "active": number("Pods that run; of a suspended job, pods that are still there."),
        "failed": number(), "succeeded": number(),
        "labelSelector": label_selector,
        "selector": text("Selects the pods of this type."),
    })
    conditions = items(condition, "The last one names the state.")
    del conditions["x-kubernetes-list-type"]
    return record({
        "completionTime": time("When the job succeeded or failed."),
        "conditions": conditions,
        "lastReconcileTime": time(),
        "recovery": ledger(),
        "replicaStatuses": node("object", "Pods by replica type.", additionalProperties=count),
        "startTime": time("When the job began, or was resumed."),
    }, "What became of it.")


# ---- the whole

def column(name, path, kind, description=None, priority=0):
    out = {"name": name, "jsonPath": path, "type": kind}
    if description:
        out["description"] = description
    if priority:
        out["priority"] = priority
    return out


COLUMNS = [
    column("State", ".status.conditions[-1:].type", "string"),
    column("Age", ".metadata.creationTimestamp", "date"),
    column("Restarts", ".status.recovery.summary", "string",
           "Incidents charged, by what they were charged to."),
    column("Cause", ".status.recovery.last.cause", "string", "Of the last restart."),
    column("Generation", ".status.recovery.generation", "integer",
           "Rises when all ranks are started anew.", 1),
]


def tighten(template):
    """What upstream's webhooks ask of a template, as bounds: they cost nothing to check."""
    out = copy.deepcopy(template)
    pod = out["properties"]["spec"]
    out["required"] = ["spec"]
    containers = pod["properties"]["containers"]
    containers["minItems"] = 1
    containers["maxItems"] = CONTAINERS_MAX
    container = containers["items"]
    container["required"] = sorted(set(container["required"]) | {"image"})
    container["properties"]["image"]["minLength"] = 1
    return out


def crd(kind, shared):
    plural, key, _, _, scale = KINDS[kind]
    quantity = shared["template"]["properties"]["spec"]["properties"]["overhead"][
        "additionalProperties"]
    root = record({
        "apiVersion": text(), "kind": text(), "metadata": node("object"),
        "spec": spec(kind, tighten(shared["template"]), shared["metric"], quantity),
        "status": status(),
    })
    # Rules here see every write: optionalOldSelf, or old objects could not even be deleted.
    whole = [rule("has(self.spec) || (oldSelf.hasValue() && !has(oldSelf.value().spec))",
                  "spec is required", optionalOldSelf=True)]
    if kind != "MPIJob":
        whole.append(rule("oldSelf.hasValue() || (self.metadata.name.size() <= 63 && "
                         "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
                         "metadata.name must be a DNS-1035 label", optionalOldSelf=True))
    rules(root, *whole)
    subresources = {"status": {}}
    if scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.%s.Worker.replicas" % key,
            "statusReplicasPath": ".status.replicaStatuses.Worker.active",
            "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "%s.%s" % (plural, GROUP),
                     "labels": {"app.kubernetes.io/name": "holdfast"}},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "listKind": kind + "List", "plural": plural,
                      "singular": plural[:-1]},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "additionalPrinterColumns": COLUMNS,
                "schema": {"openAPIV3Schema": root},
                "subresources": subresources,
            }],
        },
    }
