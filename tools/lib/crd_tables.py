# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The fields of the jobs as tables of src/api/schema.h, from the schemas from which the CRDs are
made."""

import json
import re

import crd_schema

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* The training jobs.  Made by tools/crds; not for editing. */

/* A row a field. */
/* clang-format off */
"""

# Fields whose tables come from Kubernetes' types (tools/schema).
OTHERS = {
    "template": "hf_schema_pod_template_spec",
    "labelSelector": "hf_schema_label_selector",
    "metadata": "hf_schema_object_meta",
}
# Titles of tables, if they differ from the names of the fields.
TITLES = {
    "conditions": "JobCondition",
    "history": "Record",
    "last": "Record",
    "onPodConditions": "PodConditionPattern",
    "recovery of status": "Ledger",
    "replicas": "ReplicaLedger",
    "replicaStatuses": "ReplicaStatus",
    "restarts": "Budgets",
    "rules": "Rule",
    "status": "JobStatus",
    "streak": "Streaks",
}
# Fields that have an open schema in the CRD, and the field whose table describes the same object.
LIKE = {"history": "last"}


def title(parent, field, kind):
    if field == "spec":
        return kind + "Spec"
    if field.endswith("ReplicaSpecs"):
        return "ReplicaSpec"
    return (TITLES.get("%s of %s" % (field, parent)) or TITLES.get(field) or
            field[0].upper() + field[1:])


def snake(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", name).lower()


def scalar(schema):
    if schema.get("x-kubernetes-int-or-string"):
        return "QUANTITY"
    if schema["type"] == "integer":
        return "INT32" if schema.get("format") == "int32" else "INT64"
    if schema["type"] == "string":
        return "TIME" if schema.get("format") == "date-time" else "STRING"
    return {"boolean": "BOOL"}[schema["type"]]


class Tables:
    def __init__(self):
        self.text = []
        self.made = {}  # symbols, by what was asked for and what came of it
        self.titles = set()
        self.schemas = {}  # the newest schema of a field of LIKE, by name

    def row(self, parent, field, schema, kind):
        about = json.dumps(schema["description"]) if schema.get("description") else "NULL"
        shape = {"array": "LIST", "object": "MAP"}.get(schema.get("type"), "ONE")
        item = schema.get("items") or schema.get("additionalProperties") or schema
        if item is schema:
            shape = "ONE"
        if field == "metrics":
            return 'FIELD("metrics", RAW, LIST, %s)' % about
        if item.get("type") == "object":
            return 'FIELD_OF("%s", %s, %s, %s)' % (field, self.inner(parent, field, item, kind),
                                                   shape, about)
        return 'FIELD("%s", %s, %s, %s)' % (field, scalar(item), shape, about)

    def inner(self, parent, field, schema, kind):
        """Returns the name of the table that describes an object."""
        if field in LIKE.values():
            self.schemas[field] = schema
        if field in LIKE:
            schema = self.schemas[LIKE[field]]
        return OTHERS.get(field) or self.table(title(parent, field, kind), field, schema, kind)

    def table(self, name, field, schema, kind, extern=False):
        rows = tuple(self.row(field, f, s, kind) for f, s in schema["properties"].items())
        if (name, rows) in self.made:
            return self.made[name, rows]
        # Some tables differ between kinds: then the name of the kind is added.
        label = kind + name if name in self.titles else name
        symbol = ("hf_schema_" if extern else "") + snake(label)
        self.titles.add(label)
        self.made[name, rows] = symbol
        fields = snake(label) + "_fields"
        self.text.append("static const struct hf_schema_field %s[] = {\n%s\tEND,\n};\n"
                         "%sconst struct hf_schema %s = {\"%s\", %s};\n" % (
                             fields, "".join("\t%s,\n" % r for r in rows),
                             "" if extern else "static ", symbol, label, fields))
        return symbol


def tables(shared):
    out = Tables()
    for kind in crd_schema.KINDS:
        root = crd_schema.crd(kind, shared)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        out.table(kind, "", root, kind, extern=True)
    return HEAD + "\n".join(out.text)
