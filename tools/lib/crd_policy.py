# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The admission policies, as plain dictionaries: the rules of crd_schema for clusters whose CRDs
do not have them, and warnings for all clusters."""

import re

from crd_schema import GROUP, KINDS, MANAGED_BY_FREE, MANAGERS, replica_rules, spec_rules

API = "admissionregistration.k8s.io/v1"
LABELS = {"app.kubernetes.io/name": "holdfast"}
# A pod adds at most "-evaluator-12345" to the job's name, and a DNS label has at most 63
# characters.
NAME_WARN = 47
# Do not check an object that is being deleted, or a write that leaves the spec unchanged (status,
# labels, finalizers).
SPEC_CHANGED = {
    "name": "spec-changed",
    "expression": "!has(object.metadata.deletionTimestamp) && "
                  "(oldObject == null || has(object.spec) != has(oldObject.spec) || "
                  "(has(object.spec) && object.spec != oldObject.spec))",
}


def check(expression, message):
    return {"expression": expression, "message": message, "reason": "Invalid"}


def about(self, expression):
    """Rewrites a rule of the schema for another variable than `self`."""
    return re.sub(r"\bself\b", self, expression)


def template_checks(key, container):
    """Rules in place of the bounds that Holdfast's schemas have, for every replica type k."""
    where = "spec.%s: every replica " % key
    pod = "variables.replicas[k].?template.?spec.?containers.orValue([])"
    out = [check("variables.replicas.all(k, %s.size() > 0)" % pod,
                 where + "needs template.spec.containers"),
           check("variables.replicas.all(k, %s.all(c, has(c.image) && c.image != ''))" % pod,
                 where + "needs an image in every container")]
    if container:
        out.append(check("variables.replicas.all(k, %s.exists(c, c.name == '%s'))"
                         % (pod, container),
                         where + "must have at least one container with name " + container))
    return out


def manager_checks():
    manager = "object.spec.?runPolicy.?managedBy"
    known = ", ".join("'%s'" % m for m in MANAGERS)
    return [
        check("!%s.hasValue() || %s.value() in [%s]" % (manager, manager, known),
              "spec.runPolicy.managedBy: must be one of " + ", ".join(MANAGERS)),
        check("oldObject == null || %s == %s" % (manager, manager.replace("object", "oldObject")),
              "runPolicy.managedBy is immutable"),
    ]


def policy(kind):
    plural, key, container, types, _ = KINDS[kind]
    variables = [{"name": "replicas", "expression": "object.spec." + key}]
    checks = [check("has(object.spec)", "spec is required")] + template_checks(key, container)
    checks += [check(about("variables.replicas", r["rule"]), r["message"])
               for r in replica_rules(kind, types, upstream_only=True)]
    checks += [check(about("object.spec", r["rule"]), r["message"]) for r in spec_rules(kind)]
    if kind != "MPIJob":
        checks.append(check("oldObject != null || (object.metadata.name.size() <= 63 && "
                            "object.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
                            "metadata.name must be a DNS-1035 label"))
    if kind not in MANAGED_BY_FREE:
        checks += manager_checks()
    return make("holdfast-" + plural, [plural], "Fail", "Deny", variables, checks)


def make(name, plurals, on_failure, action, variables, checks):
    spec = {
        "failurePolicy": on_failure,
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": plurals, "scope": "*",
        }]},
        "matchConditions": [SPEC_CHANGED],
        "variables": variables,
        "validations": checks,
    }
    if not variables:
        del spec["variables"]
    return [
        {"apiVersion": API, "kind": "ValidatingAdmissionPolicy",
         "metadata": {"name": name, "labels": LABELS}, "spec": spec},
        {"apiVersion": API, "kind": "ValidatingAdmissionPolicyBinding",
         "metadata": {"name": name, "labels": LABELS},
         "spec": {"policyName": name, "validationActions": [action]}},
    ]


def denials():
    return [doc for kind in KINDS for doc in policy(kind)]


def warnings():
    long_name = {
        "expression": "object.metadata.name.size() <= %d" % NAME_WARN,
        "message": "the job's name is long: with -<replica type>-<index> it may exceed the 63 "
                   "characters of a service's name",
    }
    deprecated = {
        "expression": "!has(object.spec.elasticPolicy) || "
                      "!has(object.spec.elasticPolicy.nProcPerNode)",
        "message": "spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead",
    }
    return (make("holdfast-job-warnings", [k[0] for k in KINDS.values()], "Ignore", "Warn", [],
                 [long_name]) +
            make("holdfast-pytorchjob-warnings", ["pytorchjobs"], "Ignore", "Warn", [],
                 [deprecated]))
