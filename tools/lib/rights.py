# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The rights of each account and of the roles for people, as tables, from the RBAC objects of manifests.

The comment above a rule of an account's role is the reason of that rule.
"""

import re

import crd_schema
import yaml_subset

RULE = re.compile(r"((?:^  #.*\n)*)^  - apiGroups:", re.M)
KINDS = [plural for plural, *_ in crd_schema.KINDS.values()]
READS = {"get", "list", "watch"}
# Rights that an installation has only with a flag, of `holdfast manifests` or (--page) of the operator.
FLAGS = {"deploy/operator/gang.yaml": "--gang-scheduler-name", "deploy/page/page.yaml": "--page",
         "deploy/mender/rbac.yaml": "--mender", "deploy/rollout/rbac.yaml": "--rollouts"}


class Role:
    def __init__(self, path, document, text):
        reasons = [" ".join(line.strip("# ") for line in m.group(1).splitlines()) for m in RULE.finditer(text)]
        self.path, self.name = path, document["metadata"]["name"]
        self.labels = document["metadata"].get("labels") or {}
        self.rules = list(zip(document["rules"], reasons))
        if len(reasons) != len(document["rules"]):
            raise ValueError(f"role {self.name}: its rules cannot be told apart")


def read(texts):
    """({(kind, name, namespace): Role}, [binding]) of {path: YAML}."""
    roles, bindings = {}, []
    for path, text in texts.items():
        for part in yaml_subset.documents(text):
            document = yaml_subset.parse(part)
            kind = document["kind"]
            where = document["metadata"].get("namespace", "")
            if kind in ("Role", "ClusterRole"):
                roles[kind, document["metadata"]["name"], where] = Role(path, document, part)
            elif kind in ("RoleBinding", "ClusterRoleBinding"):
                bindings.append(document)
    return roles, bindings


def resources(rule):
    """'pods', 'pods/status of kubeflow.org', with one name for the six kinds of jobs."""
    names = rule["resources"]
    for suffix in ("", "/status", "/finalizers"):
        if {kind + suffix for kind in KINDS} <= set(names):
            names = ["jobs" + suffix] + [n for n in names if n not in {kind + suffix for kind in KINDS}]
    text = ", ".join(f"`{n}`" for n in names)
    groups = [g for g in rule["apiGroups"] if g]
    if groups:
        text += " of " + ", ".join(groups)
    limited = rule.get("resourceNames") or []
    if limited == [f"{kind}.kubeflow.org" for kind in KINDS]:
        text += ", those of jobs"
    elif limited:
        text += ", named " + ", ".join(f"`{n}`" for n in limited)
    return text


def _row(*cells):
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def account_table(role_list):
    """The rights of one account: [(Role, where)]."""
    lines = ["| verbs | on | where | for |", "|---|---|---|---|"]
    for role, where in role_list:
        flag = FLAGS.get(role.path) if role.path != role_list[0][0].path else None
        for rule, reason in role.rules:
            if not reason:
                raise ValueError(f"role {role.name}: no comment says why it has {', '.join(rule['verbs'])} "
                                 f"on {', '.join(rule['resources'])}")
            lines.append(_row(", ".join(rule["verbs"]), resources(rule), where,
                              (f"With `{flag}`: " if flag else "") + reason))
    return "\n".join(lines)


def people_table(role_list):
    lines = ["| role | verbs | on |", "|---|---|---|"]
    for role in role_list:
        for rule, _ in role.rules:
            lines.append(_row(f"`{role.name}`", ", ".join(rule["verbs"]), resources(rule)))
    return "\n".join(lines)


def summary(accounts):
    lines = ["| account | rules | verbs on resources | of them writes | `secrets` | `*` |", "|---|---|---|---|---|---|"]
    for name, role_list in accounts.items():
        rules = [rule for role, _ in role_list for rule, _ in role.rules]
        pairs = [(v, r) for rule in rules for v in rule["verbs"] for r in rule["resources"]]
        stars = any("*" in (*rule["verbs"], *rule["resources"], *rule["apiGroups"]) for rule in rules)
        lines.append(_row(f"`{name}`", str(len(rules)), str(len(pairs)), str(sum(v not in READS for v, _ in pairs)),
                          "yes" if any(r.split("/")[0] == "secrets" for _, r in pairs) else "no",
                          "yes" if stars else "no"))
    return "\n".join(lines)


def tables(texts):
    """name of a block -> Markdown: one for each ServiceAccount, one for the roles of people, and a summary."""
    roles, bindings = read(texts)
    accounts, bound = {}, set()
    for binding in bindings:
        where = binding["metadata"].get("namespace", "")
        ref = binding["roleRef"]
        key = (ref["kind"], ref["name"], where if ref["kind"] == "Role" else "")
        bound.add(key)
        for subject in binding["subjects"]:
            accounts.setdefault(subject["name"], []).append(
                (roles[key], f"namespace {where}" if where else "cluster"))
    out = {f"rights-{name}": account_table(role_list) for name, role_list in accounts.items()}
    out["rights-people"] = people_table([role for key, role in roles.items() if key not in bound])
    out["rights-summary"] = summary(accounts)
    return out
