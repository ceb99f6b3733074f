# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The schemas of the six job kinds, as plain dictionaries. tools/crds writes them as YAML."""

import copy

GROUP = "kubeflow.org"
RANKS_MAX = 20000       # HF_RANKS_MAX of core/model/types.h
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
# Kinds whose managedBy may have any value: upstream checks only the other kinds.
MANAGED_BY_FREE = ("JAXJob", "MPIJob")


def text(description=None, **more):
    return node("string", description, **more)


def number(description=None, minimum=None, wide=False):
    extra = {} if minimum is None else {"minimum": minimum}
    return node("integer", description, format="int64" if wide else "int32", **extra)


def whole(description=None):
    """A 64-bit integer of the ledger. It has no format, because "int64" would allow the same
    values."""
    return node("integer", description)


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
        "containerName": text("Match only codes of this container. Default: any container.",
                              maxLength=63),
        "operator": text("In: the code must be in values. NotIn: the code must not be in values. "
                         "Code 0 never matches.", enum=["In", "NotIn"]),
        # List type "set" refuses repetitions. A rule that compares each pair would exceed the cost
        # limit of a CRD.
        "values": items(number(minimum=0), "Exit codes, ascending, without repetition.", minItems=1,
                        maxItems=VALUES_MAX, **{"x-kubernetes-list-type": "set"}),
    }, "Match by a container's exit code.", ["operator", "values"]),
        rule("self.operator != 'In' || !(0 in self.values)", "0 must not be used with operator In"),
        rule("self.values.isSorted()", "values must be in ascending order"))
    condition = record({
        # The form of a qualified name. The pattern does not check the limit of its prefix (253
        # characters).
        "type": text("Type of the pod condition.", maxLength=317, pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?"
                                            r"(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                                            r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"),
        "status": text("Status of the pod condition. Default: True.", enum=["True", "False", "Unknown"]),
        "reason": text("Reason of the pod condition. Default: any reason.", maxLength=1024),
    }, None, ["type"])
    return rules(record({
        "name": text("Name of the rule in status, events and holdfast why.", minLength=1, maxLength=63,
                     pattern=r"^[^\x00-\x1f\x7f]*$"),
        "action": text("FailJob: the job fails. Ignore: replaced without a charge. Count: replaced "
                       "and charged. RestartReplica, RestartJob: the rank or all ranks restart.",
                       enum=["FailJob", "Ignore", "Count", "RestartReplica", "RestartJob"]),
        "replicaTypes": items(text(**({"enum": types} if types else {"maxLength": 32})),
                              "Match only these replica types. Default: all types.",
                              minItems=1, maxItems=8),
        "onExitCodes": exit_codes,
        "onPodConditions": items(condition, "Match by a condition of the pod.", minItems=1,
                                 maxItems=PATTERNS_MAX),
        "onPodReasons": items(text(minLength=1, maxLength=128),
                              "Match by the reason of the pod or the container.",
                              minItems=1, maxItems=PATTERNS_MAX),
        "onDevice": items(text(minLength=1, maxLength=64),
                          "Match by the class of a device failure.", minItems=1,
                          maxItems=PATTERNS_MAX),
    }, None, ["action"]),
        rule("[has(self.onExitCodes), has(self.onPodConditions), has(self.onPodReasons), "
             "has(self.onDevice)].filter(x, x).size() == 1",
             "exactly one of onExitCodes, onPodConditions, onPodReasons and onDevice is required"))


def failure_policy(types):
    return record({
        "rules": items(failure_rule(types), "The first rule that matches decides.", maxItems=RULES_MAX),
    }, "Rules for terminations. Pods of the job have restartPolicy Never.", ["rules"])


LOG_RULES_MAX = 16      # HF_LOG_RULES_MAX of pattern/log_rule.h
LOG_PATTERN_MAX = 1024  # HF_PATTERN_BYTES_MAX of pattern/pattern.h


def log_rules():
    return items(record({
        "name": text("Name of the rule.", maxLength=63, pattern=r"^[-\w.]+$"),
        "pattern": text("PCRE2 expression for a line. Default: lines of known trainers.",
                        maxLength=LOG_PATTERN_MAX),
        "must": text("appear within 30m, recur within 10m, be finite, be below 9 for 5 lines.",
                     maxLength=63,
                     pattern=r"^(appear|recur) within \w+$|^be (finite|(below|above) \S+)( for \d+ lines)?$"),
        "action": text("Default: Restart.", enum=["Restart", "FailJob", "Event"]),
    }, None, ["name", "must"]),
        "Rules for output under exec.", maxItems=LOG_RULES_MAX)


def recovery():
    backoff = rules(record({
        "initialSeconds": number("Delay of the second restart; the first is immediate. Default: 10.", 1),
        "maxSeconds": number("The delay doubles up to this limit. Default: 600.", 1),
        "resetAfterSeconds": number("Time without a failure that makes the next restart "
                                     "immediate. Default: 3600.", 1),
    }, "Delays of restarts charged to the application."),
        rule("!has(self.initialSeconds) || !has(self.maxSeconds) || "
             "self.initialSeconds <= self.maxSeconds", "initialSeconds must not exceed maxSeconds"))
    node_lost = rules(record({
        "afterSeconds": number("A node is lost after this time in Unknown without a sign of "
                               "life. Default: 60.", 1),
        "forceDelete": text("Evidence for a forced delete. Presumed: silence. Proven: node or pod "
                            "have ended. Never: a person decides. Default: Presumed.",
                            enum=["Presumed", "Proven", "Never"]),
        "selfFence": flag("Ranks under exec end themselves afterSeconds - 10 s after the node's "
                          "last contact. Default: false."),
    }), rule("!has(self.selfFence) || !self.selfFence || !has(self.afterSeconds) || "
             "self.afterSeconds >= 40", "afterSeconds must be at least 40 with selfFence"))
    node_lost["description"] = "Lost nodes."
    device = record({
        "onUnhealthy": text("Action when a rank's device fails. Default: Restart.",
                            enum=["Ignore", "Restart", "Fail"]),
        "avoid": flag("Keep replacements off nodes with failed devices. Default: true."),
    }, "Failed devices.")
    return record({
        "restartScope": text("Replica: the failed rank restarts. Job: all ranks restart. "
                             "Default: Replica.", enum=["Replica", "Job"]),
        "infrastructureLimit": number("Infrastructure incidents that the job survives. "
                                      "Default: unlimited.", 0),
        "deviceLimit": number("Device incidents that the job survives. Default: unlimited.", 0),
        "backoff": backoff,
        "incidentSeconds": number("Time in which a late termination belongs to the "
                                   "incident. Default: 1800.", 0),
        "replaceDelaySeconds": number("Time for which a pod's name stays free after a taint took "
                                      "the pod. Default: 2.", 0),
        "settleSeconds": number("How long a verdict waits for evidence. Default: 20.", 0),
        "restartGraceSeconds": number("Scope Job: grace period at a restart. Default: that of the "
                                      "pods.", 0),
        "nodeLost": node_lost,
        "forceDeleteAfterSeconds": number("Time beyond a pod's grace period before a forced "
                                         "delete. Default: 5.", 0),
        "device": device,
        "progressDeadlineSeconds": number("All ranks restart after this time without a step. "
                                          "Default: never.", 1),
        "noProgressLimit": number("Restarts in a row without a new best step, from the first reported step on. Default: 0 (unlimited).", 0),
        "exec": text("Inject: put holdfast exec before the training command. Default: None.",
                     enum=["None", "Inject"]),
        "logRules": log_rules(),
        "inPlace": text("Auto: processes under exec restart in their pods. Default: Auto.", enum=["Auto", "Never"]),
        "inPlaceLimit": number("In-place restarts in a row without a new step. Default: 3.", 0),
        "inPlaceWaitSeconds": number("How long exec waits for an order. Default: 60.", 1),
        "checkpoint": record({
            "graceSeconds": number("Time to save before a planned end. Default: 0.", 0),
        }, "Checkpoints."),
        "sidecarGraceSeconds": number("How long other containers keep the pod of a rank that has "
                                      "succeeded. Default: unlimited.", 0),
        "podsAfterEnd": text("Pods that cleanPodPolicy keeps when the job fails. Stop: they are ended. "
                             "Keep: they go on. Default: Stop.",
                             enum=["Stop", "Keep"]),
    }, "Recovery. The operator's config file can change the defaults.")


def scheduling_policy(quantity):
    queue = rules(text("Its queue."),
                  rule("self == oldSelf", "spec.runPolicy.schedulingPolicy.queue is immutable"))
    return record({
        "minAvailable": number("Its members. Default: all ranks.", 0),
        "minResources": node("object", "Its resources.",
                             additionalProperties=copy.deepcopy(quantity)),
        "priorityClass": text("Its priority class."),
        "queue": queue,
        "scheduleTimeoutSeconds": number("How long to wait for the whole group.",
                                         0),
    }, "Pod group of a gang scheduler.")


def run_policy(kind, types, quantity):
    managers = {} if kind in MANAGED_BY_FREE else {"enum": MANAGERS}
    # The default gives every stored job a runPolicy, because clients read its members without a
    # check.
    return record({
        "activeDeadlineSeconds": number("The job fails after this time of activity. Default: never.", 0, wide=True),
        "backoffLimit": number("Application incidents that the job survives. With 0 the program "
                               "starts once. Default: unlimited.", 0),
        "cleanPodPolicy": text("Pods to delete when the job is over: None, Running or All. Default: "
                               "None."),
        "managedBy": text("Controller of this job; immutable. Default: kubeflow.org/training-operator.",
                          **managers),
        "schedulingPolicy": scheduling_policy(quantity),
        "suspend": flag("True: the job has no pods.", default=False),
        "ttlSecondsAfterFinished": number("Time from the end of the job to its deletion. Default: "
                                          "never.", 0),
        "podFailurePolicy": failure_policy(types),
        "recovery": recovery(),
    }, "Settings of the job.", default={})


# ---- the rest of spec

def replica_map(kind, template):
    _, _, container, types, _ = KINDS[kind]
    replica = record({
        "replicas": number("Ranks of this type. Default: 1, and 0 for workers of an MPIJob.", 0),
        # Typed clients send "" for an absent value.
        "restartPolicy": text("ExitCode: codes below 128 fail the job. Default: OnFailure for "
                              "PyTorchJob and PaddleJob, else Never.",
                              enum=["", "Always", "ExitCode", "Never", "OnFailure"]),
        "template": template,
    }, None, ["template"])
    if container:
        # "required" reports missing fields, and lets stored objects pass. A rule that cannot be
        # evaluated would refuse every write of a stored object, even the removal of a finalizer.
        rules(replica, rule("!has(self.template) || !has(self.template.spec) || "
                            "self.template.spec.containers.exists(c, c.name == '%s')" % container,
                            "must have at least one container with name %s" % container,
                            fieldPath=".template"))
    out = node("object", "Replica types of the job%s."
               % (": " + " and ".join(types) if types else
                  ": Chief, Evaluator, Master, PS, Worker"),
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
        "minReplicas": number("Fewest workers. Default: maxReplicas.", 0),
        "maxReplicas": number("Most workers. Default: minReplicas.", 0),
        "maxRestarts": number("Passed to the launcher of each pod.", 0),
        "metrics": items(copy.deepcopy(metric), "Metrics of the HorizontalPodAutoscaler."),
    }
    # Upstream's CRD has no list type here, and the list type of an existing kind must not change.
    del out["metrics"]["x-kubernetes-list-type"]
    if kind == "PyTorchJob":
        conf = items(record({"key": text("Name of the option."), "value": text("Value of the option.")}),
                     "Options of the rendezvous.")
        del conf["x-kubernetes-list-type"]
        out.update({
            "rdzvBackend": text("Rendezvous back end. Default: c10d."),
            "rdzvPort": number("Port of the rendezvous. Default: the port of worker 0.", 0),
            "rdzvHost": text("Host of the rendezvous. Default: worker 0."),
            "rdzvId": text("Name of the rendezvous."),
            "rdzvConf": conf,
            "standalone": flag("Give each pod a separate rendezvous."),
            "nProcPerNode": number("Deprecated: use spec.nprocPerNode."),
        })
    return rules(record(out, "Limits for the number of workers of an elastic job."),
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
                text("Processes of a pod: auto, cpu, gpu or a number. Default: auto."),
                rule("!self.matches('^[-+]?[0-9]{10,}$')", "a number may have 9 digits at most")),
        },
        "PaddleJob": lambda: {"elasticPolicy": elastic_policy(kind, metric)},
        "TFJob": lambda: {
            "successPolicy": text("Empty: the job succeeds with its chief, or with worker 0. "
                                  "AllWorkers: the job succeeds with all workers. Default: empty."),
            "enableDynamicWorker": flag("The number of workers may change while the job runs. "
                                        "Default: false."),
        },
        "MPIJob": lambda: {
            "slotsPerWorker": number("Slots of a worker in the host file. Default: 1."),
            "cleanPodPolicy": text("As runPolicy.cleanPodPolicy, which wins."),
            "mainContainer": text("Container of the workers in which the launcher starts ranks. "
                                  "Default: the first container."),
        },
    }.get(kind, dict)()
    properties = {"runPolicy": run_policy(kind, types, quantity), key: replica_map(kind, template)}
    out = spec_rules(kind)
    if kind not in MANAGED_BY_FREE:
        # The rule stands at spec: at the field itself it would not run when the field is added or
        # removed.
        value = "(has({0}.runPolicy) && has({0}.runPolicy.managedBy) ? {0}.runPolicy.managedBy : '')"
        out.append(rule("%s == %s" % (value.format("self"), value.format("oldSelf")),
                        "runPolicy.managedBy is immutable"))
    return rules(record({**properties, **own}, "The wanted job.", [key]), *out)


# ---- status

def kept(properties, description=None):
    """An object of the ledger. The API server keeps unknown fields, which a later version may have
    written."""
    return record(properties, description, **{"x-kubernetes-preserve-unknown-fields": True})


def ledger():
    def budgets(description, **more):
        return kept({b: whole() for b in ("application", "infrastructure", "device")}
                    | more, description)

    def entry(description=None):
        return kept({
            "generation": whole("Generation after the restart."),
            "incident": whole("Number of the incident."),
            "cause": text("Class of the cause."),
            "reason": text("One word, such as NodeLost, Evicted or OOMKilled."),
            "message": text("The node's text; newest record only."),
            "scope": text("Replica, Job or Container; absent if the job ended."),
            "replica": text("Replica type and index."),
            "pod": text("Name of the pod."), "node": text("Node of the pod."),
            "device": text("Failed device of the pod."),
            "exitCode": number("Its exit code, or that of a container that a rule matched."),
            "signal": number("Its signal."),
            "rule": text("Rule by name or number, or the restart annotation."),
            "detectedAt": time("When the operator saw the termination."),
            "decidedAt": time("When the operator decided."),
            "runningAt": time("When all ranks ran again."),
            "inPlace": flag("Processes restarted in their pods."),
            "endedAt": time("When the process ended, or when its lost node became Unknown."),
            "downAt": time("When no process of the old generation ran."),
            "step": whole("Last step before the termination."),
            "savedStep": whole("Last saved step then."),
            "steppedAt": time("First step after the restart."),
        }, description)

    # Records of the history have the fields of `last`, so they are described only there.
    like_the_last = node("object", **{"x-kubernetes-preserve-unknown-fields": True})
    ranks = "%s: 0-3,7."
    counts = "%s, by index."
    return kept({
        "schema": whole("Version of the ledger."),
        "generation": whole("Restarts of all ranks, from 1."),
        "phase": text("Phase of the job: Creating, Running, Tearing, Suspended or Ended."),
        "since": time("Begin of the phase."),
        "incident": kept({
            "id": whole("Number of the incident."),
            "openedAt": time("First termination."),
            "cause": text("Class of the cause."),
            "charged": text("Charged budget; empty while evidence is awaited."),
        }, "The present or last incident."),
        "notBefore": time("Pods are not created before this time."),
        "activeSeconds": whole("Activity before the present run."),
        "restarts": budgets("Charged incidents, by budget."),
        "summary": text("Restarts in words."),
        "streak": budgets("Incidents in a row.",
                          user=whole("Restarts in a row that a person asked for.")),
        "replicas": node("object", "Counts by replica type, as short texts.", additionalProperties=kept({
            "attempts": text(counts % "Restarts of each rank"),
            "created": text(ranks % "Ranks with a pod of the present attempt"),
            "succeeded": text(ranks % "Ranks that succeeded in this generation"),
            "seen": text(counts % "Container terminations already counted"),
            "initSeen": text(counts % "The same of init containers"),
            "trained": text(ranks % "Ranks whose own container ended with 0"),
            "covered": text(ranks % "Ranks restarted by this incident"),
            "hold": text(ranks % "Ranks that must not run yet"),
            "inPlace": text(counts % "Restarts in the present pod"),
            "inPlaceSince": text(counts % "Incident of the last restart in the pod"),
        })),
        "last": entry("The newest restart, or the end of the job."),
        "history": items(like_the_last, "Earlier records like last, newest first, at most 10."),
        "downtimeSeconds": whole("Time in which not all ranks ran."),
        "productiveSeconds": whole("Time in which all ranks ran."),
        "inPlaceBase": whole("Pods from this generation on are kept."),
        "inPlaceIncident": whole("Incident of the restart in place."),
        "inPlaceAt": time("Order of the restart in place."),
        "inPlaceStreak": whole("Restarts in place without a new best step."),
        "saveUntil": time("Ranks save until then."),
        "step": whole("Last step of any rank."),
        "savedStep": whole("Last saved step."),
        "saveMillis": whole("Time of the last requested save."),
        "stepsAt": time("When step was noted."),
        "bestStep": whole("Furthest step of any attempt."),
        "noProgressStreak": whole("Restarts without a new best step."),
        "restartHandled": text("The restart annotation handled last."),
        "verdict": kept({"reason": text("Reason in one word."), "message": text("Reason for people."),
                         "at": time("Time of the verdict.")},
                        "Decision that the job fails."),
    }, "Ledger of Holdfast. Not for editing.")


def status():
    condition = record({
        "lastTransitionTime": time("Last change of the status."),
        "lastUpdateTime": time("Last change of the condition."), "message": text(),
        "reason": text(), "status": text("True, False or Unknown."), "type": text(),
    }, None, ["status", "type"])
    requirement = record({
        "key": text(), "operator": text(), "values": items(text()),
    }, None, ["key", "operator"])
    label_selector = record({
        "matchExpressions": items(requirement),
        "matchLabels": node("object", additionalProperties=text()),
    }, "Deprecated: use selector.", **{"x-kubernetes-map-type": "atomic"})
    count = record({
        "active": number("Running pods."),
        "failed": number("Failed pods."), "succeeded": number("Succeeded ranks."),
        "labelSelector": label_selector,
        "selector": text("Label selector of the pods of this type."),
    })
    conditions = items(condition, "The last one names the state.")
    del conditions["x-kubernetes-list-type"]
    return record({
        "completionTime": time("When the job succeeded or failed."),
        "conditions": conditions,
        "lastReconcileTime": time("Last write by the operator."),
        "recovery": ledger(),
        "replicaStatuses": node("object", "Counts of pods, by replica type.", additionalProperties=count),
        "startTime": time("When the job began, or was resumed last."),
    }, "State of the job.")


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
           "Charged incidents, by budget."),
    column("Cause", ".status.recovery.last.cause", "string", "Cause of the last restart."),
    column("Generation", ".status.recovery.generation", "integer",
           "A restart of all ranks raises it.", 1),
]


def tighten(template):
    """Adds to a template, as bounds, what upstream's webhooks check: bounds add no cost to the
    rules."""
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
    # A rule at the root runs at every write. With optionalOldSelf it lets stored objects without a
    # spec pass; else even their deletion would be refused.
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
