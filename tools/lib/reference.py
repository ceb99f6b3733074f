# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Makes tables of docs/reference: fields of the CRDs, and flags of the verbs."""

import re
import subprocess

import yaml_subset

TEMPLATE = "template"  # Kubernetes documents the pod template
TEMPLATE_KEYS = {"metadata", "spec"}
# Meanings of fields without a description in the CRDs: a CRD must fit into an annotation, so it has
# no room for them.
MEANINGS = [(re.compile(pattern), text) for pattern, text in (
    (r"history\[\]\.(\w+)$", r"As `recovery.last.\1`."),
    (r"\.(application|infrastructure|device)$", r"Count of the \1 budget."),
    (r"conditions\[\]\.message$", "Details for people."),
    (r"conditions\[\]\.reason$", "Reason in one word."),
    (r"conditions\[\]\.type$", "Type of the condition."),
    (r"labelSelector\.", "Part of the deprecated selector."),
)]
DEFAULT = re.compile(r"\s*Default: (.+?)\.(?=\s|$)")


# ---- fields

def _is_template(name, schema):
    return name == TEMPLATE and set(schema.get("properties", {})) == TEMPLATE_KEYS


def _walk(path, schema, found):
    """Adds (path, schema, is required) of each field below; for a list or map, of the fields of
    its items."""
    for name, field in (schema.get("properties") or {}).items():
        here = f"{path}.{name}" if path else name
        inner, mark = field, ""
        if "properties" in (field.get("items") or {}):
            inner, mark = field["items"], "[]"
        elif isinstance(field.get("additionalProperties"), dict):
            inner, mark = field["additionalProperties"], ".NAME"
        found.append((here + mark, field, name in schema.get("required", ())))
        if not _is_template(name, field):
            _walk(here + mark, inner, found)
    return found


def _bounds(field):
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if low is not None else f"at most {high}" if high is not None else ""


def _type(field):
    """Describes a type: "integer, at least 0", "list, at most 20", "one of `A`, `B`"."""
    if "enum" in field:
        words = [f"`{w}`" for w in field["enum"] if w]
        return "one of " + ", ".join(words)
    kind = field.get("type", "quantity")
    parts = []
    if kind == "array":
        item = field["items"]
        inner = "objects" if "properties" in item else "integers" if item.get("type") == "integer" \
            else "text"
        kind = f"list of {inner}"
        sizes = {"minimum": field.get("minItems"), "maximum": field.get("maxItems")}
        parts = [_bounds({k: v for k, v in sizes.items() if v is not None})]
        if "enum" in item:
            kind = "list of " + ", ".join(f"`{w}`" for w in item["enum"])
    elif kind == "object":
        kind = "map" if "additionalProperties" in field else "object"
        if "maxProperties" in field:
            count = field["maxProperties"]
            parts = [f"at most {count} {'entry' if count == 1 else 'entries'}"]
    elif kind == "string":
        kind = "time" if field.get("format") == "date-time" else "text"
        if "maxLength" in field:
            parts = [f"at most {field['maxLength']} characters"]
    elif kind == "boolean":
        kind = "true or false"
    else:
        parts = [_bounds(field)]
    return ", ".join(p for p in [kind, *parts] if p)


def _cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def field_rows(schema):
    """Returns [(path, type, default, meaning)] of all fields below a schema."""
    rows = []
    for path, field, required in _walk("", schema, []):
        text = field.get("description", "")
        if _is_template(path.rpartition(".")[2], field):
            text = "Pod template, as in Kubernetes 1.36."
        text = text or next((m.expand(t) for m, t in ((p.search(path), t) for p, t in MEANINGS) if m), "")
        m = DEFAULT.search(text)
        default = field.get("default") if not isinstance(field.get("default"), dict) else "{}"
        if m:
            default = m.group(1)
            text = text[:m.start()] + text[m.end():]
        rows.append((path, _type(field), "required" if required else default or "",
                     _cell(text.strip())))
    return rows


def schema_of(text):
    """Returns (kind, schema of the whole object) from the YAML of a CRD."""
    crd = yaml_subset.parse(text)
    (version,) = crd["spec"]["versions"]
    return crd["spec"]["names"]["kind"], version["schema"]["openAPIV3Schema"]


def _part(schema, *path):
    for name in path:
        schema = schema["properties"][name]
    return schema


def job_tables(schemas):
    """name of a block -> rows, for the job kinds: {kind: schema}.

    What all kinds share stands once; the rest of a kind's spec stands under its name.
    """
    tables = {"runPolicy": {}, "status": {}, "replicas": {}}
    own = {}
    for kind, schema in schemas.items():
        spec = _part(schema, "spec")["properties"]
        for name, field in spec.items():
            if name == "runPolicy":
                _merge(tables["runPolicy"], kind, field_rows(field))
            elif name.endswith("ReplicaSpecs"):
                _merge(tables["replicas"], kind, field_rows(field["additionalProperties"]))
                own.setdefault(kind, []).append(
                    (name, _type(field), "required", _cell(field.get("description", ""))))
            else:
                own.setdefault(kind, []).extend(
                    field_rows({"properties": {name: field}}))
        _merge(tables["status"], kind, field_rows(_part(schema, "status")))
    out = {name: _in_order([_noted(row, kinds, schemas) for row, kinds in rows.items()])
           for name, rows in tables.items()}
    for kind, rows in own.items():
        out[kind] = [r for r in rows if not re.search(r"\.metrics\[\]\.", r[0])]
    return out


def _merge(table, kind, rows):
    for row in rows:
        table.setdefault(row, []).append(kind)


def _in_order(rows):
    """Puts rows of the same path side by side, at the place of the first of them."""
    first = {}
    for i, row in enumerate(rows):
        first.setdefault(row[0], i)
    return sorted(rows, key=lambda row: first[row[0]])


def _noted(row, kinds, schemas):
    """Adds the names of the kinds to a row that does not apply to all kinds."""
    if len(kinds) == len(schemas):
        return row
    path, what, default, meaning = row
    return path, what, default, f"{meaning} ({', '.join(kinds)})".strip()


def field_table(rows):
    lines = ["| field | type and limits | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{path}` | {what} | {default} | {meaning} |" for path, what, default, meaning in rows]
    return "\n".join(lines)


# ---- flags

FLAG = re.compile(r"^\s+(?:-(\w), )?--([a-z-]+)(?: ([A-Z:]+))?\s+(.*)$")


def _help(program, *args):
    run = subprocess.run([program, *args, "--help"], capture_output=True, text=True, timeout=20)
    if run.returncode != 0:
        raise ValueError(f"{' '.join(args)} --help ended with {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def _section(text, title):
    m = re.search(rf"^{title}:\n(.*?)(?:\n\n|\Z)", text, re.S | re.M)
    return m.group(1).splitlines() if m else []


# The groups of verbs in the program's help.
GROUPS = ("Run here", "Look", "Act", "On a cluster")


def _flags(lines):
    out = []
    for line in lines:
        m = FLAG.match(line)
        if not m:
            raise ValueError(f"not a flag: {line}")
        out.append(m.groups())
    return out


def verbs(program):
    """Returns [(verb, summary, usage, flags, global flags)] from the program's own help."""
    found = []
    overview = _help(program)
    for line in (line for group in GROUPS for line in _section(overview, group)):
        name, summary = line.split(None, 1)
        text = _help(program, name)
        usage = re.search(r"^Usage: (.*)$", text, re.M).group(1)
        found.append((name, summary, usage, _flags(_section(text, "Flags")),
                      _flags(_section(text, "Global flags"))))
    return found


def _flag_rows(flags):
    for letter, name, value, meaning in flags:
        short = f"`-{letter}`, " if letter else ""
        meaning, default = re.match(r"(.*?)(?: \[([^]]*)\])?$", meaning).groups()
        yield (f"| {short}`--{name}{' ' + value if value else ''}` | {_cell(default or '')} "
               f"| {_cell(meaning)} |")


def flag_pages(found):
    """Makes the Markdown of all verbs, and of the flags that several verbs share."""
    shared = max((v[4] for v in found), key=len, default=[])
    out = ["### Flags of every verb that talks to a server", "", "| flag | default | meaning |",
           "|---|---|---|", *_flag_rows(shared)]
    for name, summary, usage, flags, more in found:
        out += ["", f"### {name}", "", f"{summary}.", "", "```text", usage, "```"]
        if flags:
            out += ["", "| flag | default | meaning |", "|---|---|---|", *_flag_rows(flags)]
        if len(more) == len(shared):
            out += ["", f"`holdfast {name}` also takes the [flags of every verb that talks to a server]"
                    "(#flags-of-every-verb-that-talks-to-a-server)."]
    return "\n".join(out)
