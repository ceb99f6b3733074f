# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The common part of the checks: files of the tree, tools/layers, C without comments, and
findings."""

import argparse
import bisect
import fnmatch
import os
import re
import subprocess
import sys


class Check:
    """One run of a check: the tree that it reads, and its findings."""

    def __init__(self, name, about):
        parser = argparse.ArgumentParser(prog=name, description=about)
        default = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        parser.add_argument("--root", default=default, help="the tree to check")
        parser.add_argument("--build", help="build directory of that tree (default: ROOT/build)")
        args = parser.parse_args()
        self.name = name
        self.root = os.path.abspath(args.root)
        self.build = os.path.abspath(args.build or os.path.join(self.root, "build"))
        self.findings = []

    def find(self, path, line, what, fix):
        place = f"{path}:{line}" if line else path
        self.findings.append((path, line or 0, f"{place}: {what}; {fix}"))

    def done(self, looked_at):
        """Prints the findings and exits with 1 if there are some, or if there was nothing to
        check."""
        for _, _, text in sorted(set(self.findings)):
            print(text)
        if looked_at == 0:
            print(f"{self.name}: nothing to check under {self.root}")
            sys.exit(1)
        print(f"{self.name}: {len(set(self.findings))} findings in {looked_at} items")
        sys.exit(1 if self.findings else 0)

    def files(self, *patterns):
        """Sorted paths of files that git does not ignore and that match a glob ('*' also matches
        '/')."""
        try:
            out = subprocess.run(
                ["git", "-C", self.root, "ls-files", "-z", "--cached", "--others",
                 "--exclude-standard"], capture_output=True, check=True).stdout.decode()
            names = [n for n in out.split("\0") if n]
        except (OSError, subprocess.CalledProcessError):
            names = []
            for folder, dirs, entries in os.walk(self.root):
                dirs[:] = [d for d in dirs if d != ".git" and not d.startswith("build")]
                names += [os.path.relpath(os.path.join(folder, e), self.root) for e in entries]
        return sorted(n for n in set(names)
                      if any(fnmatch.fnmatch(n, p) for p in patterns)
                      and os.path.isfile(os.path.join(self.root, n)))

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as f:
            return f.read()


class Layers:
    """The content of tools/layers."""

    def __init__(self, check):
        self.may = {}          # module -> set of modules it may include
        self.order = []
        self.rooms = {}        # folder of a module ("core/state") -> set of its folders it may include
        self.third_party = []  # (glob, [modules])
        self.system = []       # globs
        self.process = {}      # path -> reason
        self.pure = []
        self.allow = []        # (archive or "*", glob)
        self.state = {}        # archive -> {symbol}
        self.switch = set()    # (path, function)
        self.callback = set()  # (path, function)
        verbs = {
            "module": self._module,
            "room": lambda a: self.rooms.update({a[0]: set(a[1:])}),
            "third-party": lambda a: self.third_party.append((a[0], a[1:])),
            "system": self.system.extend,
            "process": lambda a: self.process.update({a[0]: " ".join(a[1:])}),
            "pure": self.pure.extend,
            "allow": lambda a: self.allow.extend((a[0], g) for g in a[1:]),
            "state": lambda a: self.state.setdefault(a[0], set()).add(a[1]),
            "switch": lambda a: self.switch.add((a[0], a[1])),
            "callback": lambda a: self.callback.add((a[0], a[1])),
        }
        for number, line in enumerate(check.read("tools/layers").splitlines(), 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] not in verbs:
                sys.exit(f"tools/layers:{number}: no such fact: {words[0]}")
            verbs[words[0]](words[1:])

    def below(self, module):
        """The modules that a module may include, directly or through other modules."""
        found, ahead = set(), [module]
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead += self.may.get(name, ())
        return found

    def _module(self, args):
        self.order.append(args[0])
        self.may[args[0]] = set(args)


def module_of(path):
    """The module of a path: 'json' for src/json/doc.c, 'main' for src/main.c, 'tests' outside of
    src."""
    parts = path.split("/")
    if parts[0] != "src":
        return "tests"
    return parts[1] if len(parts) > 2 else "main"


def is_test(path):
    return not path.startswith("src/") or path.endswith(("_test.c", "_test.h"))


_SKIP = re.compile(r"""
      /\*.*?\*/            # comment
    | //[^\n]*
    | "(?:\\.|[^"\\\n])*"  # string
    | '(?:\\.|[^'\\\n])*'  # character
""", re.S | re.X)


def mask(text, keep_strings=False):
    """The text with comments and the content of literals replaced by blanks; lines stay."""
    def blank(match):
        s = match.group(0)
        if s[0] in "\"'":
            return s if keep_strings else s[0] + " " * (len(s) - 2) + s[0]
        return re.sub(r"[^\n]", " ", s)
    return _SKIP.sub(blank, text)


_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def without_directives(masked):
    return _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), masked)


class Lines:
    """Converts offsets in a text to line numbers."""

    def __init__(self, text):
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]

    def at(self, offset):
        return bisect.bisect_right(self.starts, offset)


class Function:
    def __init__(self, name, line, end, params, body):
        self.name, self.line, self.end, self.params, self.body = name, line, end, params, body

    @property
    def length(self):
        return self.end - self.line + 1

    @property
    def complexity(self):
        return 1 + len(re.findall(r"\b(?:if|for|while|case)\b|&&|\|\||\?", self.body))


def _closing(code, at, pair):
    depth = 0
    for i in range(at, len(code)):
        if code[i] == pair[0]:
            depth += 1
        elif code[i] == pair[1]:
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1


def _signature(header):
    """(name, parameter text) if the text before a '{' is the head of a function, else None."""
    groups = []
    i = 0
    while i < len(header):
        if header[i] == "(":
            end = _closing(header, i, "()")
            before = re.search(r"([A-Za-z_]\w*)\s*$", header[:i])
            groups.append((before.group(1) if before else "", header[i + 1:end], end))
            i = end
        elif header[i] == "=":
            return None
        i += 1
    named = [g for g in groups if g[0] and g[0] != "__attribute__" and not g[0].isupper()]
    if not named:
        return None
    name, params, end = named[-1]
    rest = re.sub(r"__attribute__|[A-Z_][A-Z0-9_]*|\([^()]*(?:\([^()]*\)[^()]*)*\)", "",
                  header[end + 1:])
    return None if rest.strip() else (name, params)


def functions(text):
    """All function definitions of a C source, in order."""
    code = without_directives(mask(text))
    lines = Lines(code)
    found = []
    start = i = 0
    while i < len(code):
        c = code[i]
        if c in ";}":
            start = i + 1
        elif c == "(":
            i = _closing(code, i, "()")
        elif c == "{":
            header = code[start:i]
            if re.fullmatch(r'\s*extern\s*"[^"]*"\s*', header):
                start = i + 1
            else:
                end = _closing(code, i, "{}")
                signature = _signature(header)
                if signature:
                    first = start + len(header) - len(header.lstrip())
                    name, params = signature
                    found.append(Function(name, lines.at(first), lines.at(end),
                                          _count_params(params), code[i:end + 1]))
                    start = end + 1
                i = end
        i += 1
    return found


def _count_params(params):
    if params.strip() in ("", "void"):
        return 0
    params = params.removesuffix("...")
    depth = commas = 0
    for c in params:
        depth += (c in "([") - (c in ")]")
        commas += c == "," and depth == 0
    return commas + (params.strip()[-1:] != ",")


class Symbol:
    def __init__(self, name, section, member, is_global):
        self.name, self.section, self.member, self.is_global = name, section, member, is_global

    @property
    def undefined(self):
        return self.section == "*UND*"

    @property
    def writable(self):
        s = self.section
        return s in ("*COM*", "COMMON") or (
            re.match(r"\.(data|bss|tdata|tbss)\b", s) is not None
            and not s.startswith(".data.rel.ro"))


def archives(check):
    """Returns name -> path for each libhf_NAME.a in the build directory."""
    found = {}
    for folder, _, entries in os.walk(check.build):
        for e in entries:
            m = re.fullmatch(r"libhf_(\w+)\.a", e)
            if m:
                found[m.group(1)] = os.path.join(folder, e)
    return found


def symbols(archive):
    """The symbols of an archive, from objdump: nm does not distinguish .data and .data.rel.ro."""
    out = subprocess.run(["objdump", "-t", archive], capture_output=True, check=True,
                         text=True).stdout
    member, table = "", []
    for line in out.splitlines():
        m = re.match(r"(\S+):\s+file format", line)
        if m:
            member = os.path.basename(m.group(1))
            continue
        m = re.match(r"[0-9a-f]{8,16} (.{7}) (\S+)\t[0-9a-f]+\s+(?:\.hidden |\.internal |"
                     r"\.protected )?(\S+)$", line)
        if m and "f" not in m.group(1)[6:] and "d" not in m.group(1)[5:6]:
            table.append(Symbol(m.group(3), m.group(2), member, m.group(1)[0] in "gu!"
                                or m.group(1)[1] == "w"))
    return table
