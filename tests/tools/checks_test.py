#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Each check finds what it is there for, and passes a tree without fault."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
LAYERS = """
module base
module json base
module core base
third-party jansson.h json
third-party cmocka.h tests
system stdio.h stdlib.h string.h stddef.h unistd.h time.h
process src/base/child.c  starts children
pure base
pure core
allow * strlen memcpy snprintf
allow base malloc free __stack_chk_fail
state base hook  set once
"""
GOOD = {
    "tools/layers": LAYERS,
    "tools/style-exceptions": "",
    "dev": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\nverb_build() {\n:\n}\n",
    "README.md": "# A\n\n[code](src/base/a.h) and [here](#a): `./dev build`\n",
    "src/base/README.md": "# base\n",
    "src/core/README.md": "# core\n",
    "src/base/a.h": SPDX + "#ifndef A_H\n#define A_H\n#include <stddef.h>\nsize_t hf_len(const char "
                    "*s);\nextern int (*hook)(void);\n#endif\n",
    "src/base/a.c": SPDX + '#include "base/a.h"\n#include <string.h>\n__attribute__((visibility('
                    '"hidden"))) int (*hook)(void);\nsize_t hf_len(const char *s)\n{\n\treturn '
                    "strlen(s);\n}\n",
    "src/base/child.c": SPDX + "#include <unistd.h>\nint hf_child(void);\nint hf_child(void)\n{\n"
                        "\treturn (int)fork();\n}\n",
    "src/core/c.c": SPDX + '#include "base/a.h"\nsize_t hf_core(void);\nstatic const char *const '
                    'NAMES[] = {"x", "y"};\nsize_t hf_core(void)\n{\n\treturn hf_len(NAMES[0]);\n}\n',
    "src/core/c_test.c": SPDX + '#include "base/a.h"\n#include "harness/test.h"\n#include '
                         "<cmocka.h>\n",
    "tests/harness/test.h": SPDX + "#include <stddef.h>\n",
}


class Tree(unittest.TestCase):
    """A small tree that every check passes, to be made worse by one thing at a time."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in GOOD.items():
            self.write(path, text)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)

    def c(self, path, text):
        self.write(path, SPDX + text)

    def build(self, **archives):
        """An archive per module from the named sources, and no other."""
        for module, sources in archives.items():
            objects = []
            for source in sources:
                target = os.path.join(self.root, "build", os.path.basename(source) + ".o")
                os.makedirs(os.path.dirname(target), exist_ok=True)
                subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-fPIC", "-Isrc", "-c",
                                source, "-o", target], cwd=self.root, check=True)
                objects.append(target)
            subprocess.run(["ar", "rcs", os.path.join(self.root, "build", f"libhf_{module}.a"),
                            *objects], check=True)

    def run_check(self, name):
        run = subprocess.run([os.path.join(TOP, "tools", name), "--root", self.root],
                             capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def passes(self, name):
        code, out = self.run_check(name)
        self.assertEqual(code, 0, out)

    def finds(self, name, *texts):
        code, out = self.run_check(name)
        self.assertEqual(code, 1, out)
        for text in texts:
            self.assertIn(text, out)


class LayersTest(Tree):
    def test_passes_a_good_tree(self):
        self.passes("check-layers")

    def test_finds_an_edge_that_is_not_in_the_table(self):
        self.c("src/base/b.c", '#include "core/c.h"\n')
        self.c("src/core/c.h", "")
        self.finds("check-layers", "src/base/b.c:2: base may not include core")

    def test_finds_an_edge_of_a_test(self):
        self.c("src/core/d_test.c", '#include "json/j.h"\n')
        self.c("src/json/j.h", "")
        self.finds("check-layers", "src/core/d_test.c:2: core may not include json")

    def test_lets_a_test_include_what_its_module_reaches_through_others(self):
        self.write("tools/layers", LAYERS + "module top core\n")
        self.c("src/top/t_test.c", '#include "base/a.h"\n')
        self.passes("check-layers")
        self.c("src/top/t.c", '#include "base/a.h"\n')
        self.finds("check-layers", "src/top/t.c:2: top may not include base", "1 findings")

    def test_finds_a_private_header_of_another_module(self):
        self.c("src/base/b_internal.h", "")
        self.c("src/core/d.c", '\n#include "base/b_internal.h"\n')
        self.finds("check-layers", 'src/core/d.c:3: "base/b_internal.h" is private to base')

    def test_finds_a_room_that_needs_one_below_it(self):
        self.write("tools/layers", LAYERS + "room core/model\nroom core/policy core/model\n")
        self.c("src/core/model/m.h", "")
        self.c("src/core/policy/p.h", '#include "core/model/m.h"\n')
        self.c("src/core/top.c", '#include "core/policy/p.h"\n')
        self.passes("check-layers")
        self.c("src/core/model/m.c", '#include "core/policy/p.h"\n')
        self.finds("check-layers", "src/core/model/m.c:2: core/model may not include core/policy",
                   "1 findings")

    def test_finds_a_room_that_does_not_exist(self):
        self.write("tools/layers", LAYERS + "room core/attic\n")
        self.finds("check-layers", "room core/attic does not exist")

    def test_finds_a_path_without_module_and_one_with_dots(self):
        self.c("src/base/b.c", '#include "a.h"\n#include "../base/a.h"\n')
        self.finds("check-layers", "b.c:2:", "names no module", "b.c:3:", "leaves its folder")

    def test_finds_a_header_that_does_not_exist(self):
        self.c("src/base/b.c", '#include "base/nothing.h"\n')
        self.finds("check-layers", "does not exist")

    def test_finds_a_third_party_header_away_from_home(self):
        self.c("src/core/d.c", "#include <jansson.h>\n")
        self.finds("check-layers", "src/core/d.c:2: <jansson.h> belongs to json alone")

    def test_finds_the_test_library_in_code_that_ships(self):
        self.c("src/core/d.c", "#include <cmocka.h>\n")
        self.finds("check-layers", "<cmocka.h> belongs to tests")

    def test_finds_a_header_without_home(self):
        self.c("src/core/d.c", "#include <novel.h>\n")
        self.finds("check-layers", "<novel.h> has no home")

    def test_finds_a_module_that_is_not_listed(self):
        self.c("src/extra/x.c", "")
        self.finds("check-layers", "extra is no module")

    def test_finds_a_process_started_elsewhere(self):
        self.c("src/core/d.c", "int x(void)\n{\n\t/* fork() */\n\treturn execvp(0, 0);\n}\n")
        self.finds("check-layers", "src/core/d.c:5: execvp starts a process", "1 findings")

    def test_finds_a_process_file_that_is_gone(self):
        os.unlink(os.path.join(self.root, "src/base/child.c"))
        self.finds("check-layers", "src/base/child.c does not exist")

    def test_fails_where_there_is_nothing_to_check(self):
        shutil.rmtree(os.path.join(self.root, "src"))
        shutil.rmtree(os.path.join(self.root, "tests"))
        self.finds("check-layers", "nothing to check")


class PurityTest(Tree):
    def test_passes_a_good_tree(self):
        self.build(base=["src/base/a.c"], core=["src/core/c.c"])
        self.passes("check-purity")

    def test_finds_a_clock_behind_a_macro(self):
        self.c("src/core/d.c", "#include <time.h>\n#define NOW ti##me(0)\nlong hf_d(void);\n"
               "long hf_d(void)\n{\n\treturn NOW;\n}\n")
        self.build(base=["src/base/a.c"], core=["src/core/d.c"])
        self.finds("check-purity", "core/d.c.o: time is not allowed in core")

    def test_finds_what_only_another_archive_may_use(self):
        self.c("src/core/d.c", "#include <stdlib.h>\nvoid *hf_d(void);\nvoid *hf_d(void)\n{\n"
               "\treturn malloc(3);\n}\n")
        self.build(base=["src/base/a.c"], core=["src/core/d.c"])
        self.finds("check-purity", "malloc is not allowed in core")

    def test_finds_a_function_of_an_impure_archive(self):
        self.c("src/core/d.c", "int hf_log(void);\nint hf_d(void);\nint hf_d(void)\n{\n"
               "\treturn hf_log();\n}\n")
        self.c("src/base/log.c", "int hf_log(void);\nint hf_log(void)\n{\n\treturn 1;\n}\n")
        self.build(base=["src/base/a.c"], base_os=["src/base/log.c"], core=["src/core/d.c"])
        self.finds("check-purity", "hf_log comes from an archive that core may not use")

    def test_finds_data_that_can_change(self):
        self.c("src/core/d.c", "int hf_d(void);\nint hf_d(void)\n{\n\tstatic int calls;\n"
               "\treturn ++calls;\n}\n")
        self.build(base=["src/base/a.c"], core=["src/core/d.c"])
        self.finds("check-purity", "is data that can change (.bss)")

    def test_finds_state_that_is_listed_and_gone(self):
        self.c("src/base/b.c", "int hf_b(void);\nint hf_b(void)\n{\n\treturn 1;\n}\n")
        self.build(base=["src/base/b.c"])
        self.finds("check-purity", "state base hook does not exist")

    def test_finds_a_module_that_was_not_built(self):
        self.write("src/core/meson.build", "")
        self.build(base=["src/base/a.c"])
        self.finds("check-purity", "no archive libhf_core.a")

    def test_fails_without_a_build(self):
        self.finds("check-purity", "nothing to check")


class CirclesTest(Tree):
    def setUp(self):
        super().setUp()
        self.write("tools/circles-limits", "")

    def ring(self, archive, n):
        """n files of an archive, of which each needs the next one and the last the first."""
        names = [f"src/{archive}/r{i}.c" for i in range(n)]
        for i, name in enumerate(names):
            self.c(name, f"int hf_r{i}(void);\nint hf_r{(i + 1) % n}(void);\n"
                   f"int hf_r{i}(void)\n{{\n\treturn hf_r{(i + 1) % n}();\n}}\n")
        self.build(base=["src/base/a.c"], **{archive: names})

    def lower(self):
        run = subprocess.run([os.path.join(TOP, "tools", "check-circles"), "--root", self.root,
                              "--lower"], capture_output=True, text=True)
        with open(os.path.join(self.root, "tools/circles-limits"), encoding="utf-8") as f:
            return run.returncode, f.read()

    def test_passes_a_good_tree(self):
        self.build(base=["src/base/a.c", "src/base/child.c"], core=["src/core/c.c"])
        self.passes("check-circles")

    def test_passes_a_circle_of_three(self):
        self.ring("core", 3)
        self.passes("check-circles")

    def test_finds_a_circle_of_four(self):
        self.ring("core", 4)
        self.finds("check-circles", "src/core: 4 files in circles of more than 3, at most 0: "
                   "r0.c r1.c r2.c r3.c", "1 findings")

    def test_counts_files_that_are_tied_through_others(self):
        self.ring("core", 3)
        self.c("src/core/r0.c", "int hf_r0(void);\nint hf_r1(void);\nint hf_s(void);\n"
               "int hf_r0(void)\n{\n\treturn hf_r1() + hf_s();\n}\n")
        self.c("src/core/s.c", "int hf_s(void);\nint hf_r2(void);\nint hf_s(void)\n{\n"
               "\treturn hf_r2();\n}\n")
        self.build(core=["src/core/r0.c", "src/core/r1.c", "src/core/r2.c", "src/core/s.c"])
        self.finds("check-circles", "src/core: 4 files in circles")

    def test_lets_files_need_others_in_one_direction(self):
        for i in range(5):
            self.c(f"src/core/r{i}.c", f"int hf_r{i}(void);\nint hf_r{i + 1}(void);\n"
                   f"int hf_r{i}(void)\n{{\n\treturn hf_r{i + 1}();\n}}\n")
        self.c("src/core/r5.c", "int hf_r5(void);\nint hf_r5(void)\n{\n\treturn 5;\n}\n")
        self.build(core=[f"src/core/r{i}.c" for i in range(6)])
        self.passes("check-circles")

    def test_lets_an_archive_have_what_its_limit_allows(self):
        self.write("tools/circles-limits", "core 4\n")
        self.ring("core", 4)
        self.passes("check-circles")
        self.ring("core", 5)
        self.finds("check-circles", "src/core: 5 files in circles of more than 3, at most 4")

    def test_lowers_limits_and_raises_none(self):
        self.write("tools/circles-limits", "# limits\ncore 9\ngone 4\n")
        self.ring("core", 5)
        self.finds("check-circles", "core may have 9 files in circles and has 5; lower the limit "
                   "to 5", "there is no archive gone")
        self.assertEqual(self.lower(), (0, "# limits\ncore 5\n"))
        self.ring("core", 6)
        self.assertEqual(self.lower(), (1, "# limits\ncore 5\n"))

    def test_finds_limits_without_need_or_sense(self):
        self.write("tools/circles-limits", "core 4\ncore x\n")
        self.ring("core", 3)
        self.finds("check-circles", "core may have 4 files in circles and has 0; remove the line",
                   "'core x' is no limit")

    def test_finds_a_module_that_was_not_built(self):
        self.write("src/core/meson.build", "")
        self.build(base=["src/base/a.c"])
        self.finds("check-circles", "no archive libhf_core.a")

    def test_fails_without_a_build(self):
        self.finds("check-circles", "nothing to check")


class HeadersTest(Tree):
    def test_passes_a_good_tree(self):
        self.passes("check-headers")

    def test_finds_a_header_that_needs_another_one_first(self):
        self.c("src/base/b.h", "size_t hf_b(void);\n")
        self.finds("check-headers", "src/base/b.h: does not compile alone as C17", "as C++17")

    def test_finds_a_header_that_is_no_cpp(self):
        self.c("src/base/b.h", "int hf_b(int class);\n")
        self.finds("check-headers", "src/base/b.h: does not compile alone as C++17", "1 findings")


class StyleTest(Tree):
    def f(self, body, head="int hf_f(void)"):
        self.c("src/base/f.c", f"{head};\n{head}\n{{\n{body}\treturn 0;\n}}\n")

    def test_passes_a_good_tree(self):
        self.passes("check-style")

    def test_passes_a_function_at_every_limit(self):
        self.f("\tif (x)\n\t\ty();\n" * 14 + "\tz();\n" * 38, "int hf_f(int a, int b, int c, int d, "
               "int e, int (*f)(int, int))")
        for i in range(30):  # keeps the 95th percentile down
            self.c(f"src/base/s{i}.c", f"static void s{i}(void)\n{{\n}}\n")
        self.passes("check-style")

    def test_finds_a_long_function(self):
        self.f("\tx();\n" * 67)
        self.finds("check-style", "src/base/f.c:3: hf_f has 71 lines of 70")

    def test_finds_long_functions_as_a_habit(self):
        self.f("\tx();\n" * 60)
        self.finds("check-style", "one function in twenty has 64 lines or more")

    def test_finds_a_complex_function(self):
        self.f("\tif (a && b || c ? d : e)\n\t\tx();\n" * 4)
        self.finds("check-style", "hf_f has a cyclomatic complexity of 17, at most 15")

    def test_lets_a_listed_switch_have_more(self):
        self.f("\tcase 1:\n" * 20)
        self.write("tools/layers", LAYERS + "switch src/base/f.c hf_f\n")
        self.passes("check-style")

    def test_finds_too_many_parameters(self):
        self.f("", "__attribute__((nonnull(1))) int hf_f(int *a, int b, int c, int d, int e, int f,"
               "\n\tint g)")
        self.finds("check-style", "hf_f takes 7 parameters of 6")

    def test_lets_a_callback_take_what_its_library_gives(self):
        self.f("", "int hf_f(int a, int b, int c, int d, int e, int f, int g)")
        self.write("tools/layers", LAYERS + "callback src/base/f.c hf_f  type_of_library\n")
        self.passes("check-style")

    def test_finds_long_files(self):
        self.c("src/base/f.c", "int hf_x;\n" * 1000)
        self.c("src/base/f.h", "extern int hf_x;\n" * 400)
        self.finds("check-style", "src/base/f.c: 1001 lines of 1000", "src/base/f.h: 401 lines of")

    def test_finds_promises_for_later(self):
        self.f("\t/* " + "TO" + "DO: more */\n")
        self.write("notes.md", "It is empty for " + "now.\n")
        self.finds("check-style", "src/base/f.c:5:", "notes.md:1:", "2 findings")

    def test_finds_paths_of_one_machine(self):
        self.write("notes.md", "a/b\nsee " + self.root + "/src and /ho" + "me/jane/x\n")
        self.finds("check-style", "notes.md:2: names a path of one machine: " + self.root,
                   "/jane/")

    def test_finds_a_file_without_licence(self):
        self.write("src/base/f.c", "int hf_x;\n")
        self.write("tool", "#!/bin/sh\n")
        self.finds("check-style", "src/base/f.c:1: has no licence", "tool:1: has no licence")

    def test_finds_a_module_without_readme(self):
        os.unlink(os.path.join(self.root, "src/core/README.md"))
        self.finds("check-style", "src/core: has no README.md")

    def test_finds_tests_that_sleep(self):
        self.c("src/base/f_test.c", "void f(void)\n{\n\tusleep(10);\n}\n")
        self.write("tests/x.py", "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n"
                   "import time\ntime." + "sleep(1)\n")
        self.write("tests/x.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\ntrue; "
                   + "sleep 1\n")
        self.finds("check-style", "src/base/f_test.c:4:", "tests/x.py:4:", "tests/x.sh:3:",
                   "3 findings")

    def test_finds_a_typedef_of_a_struct(self):
        self.c("src/base/f.h", "typedef struct hf_x hf_x;\n")
        self.finds("check-style", "src/base/f.h:2: a typedef hides")

    def test_finds_a_global_symbol_without_prefix(self):
        self.c("src/base/f.c", "int len(void);\nint len(void)\n{\n\treturn 0;\n}\n")
        self.build(base=["src/base/f.c"])
        self.finds("check-style", "libhf_base.a: len is global and lacks hf_")

    def test_finds_a_name_that_two_archives_have(self):
        self.c("src/core/f.c", "int hf_len(void);\nint hf_len(void)\n{\n\treturn 0;\n}\n")
        self.build(base=["src/base/a.c"], core=["src/core/f.c"])
        self.finds("check-style", "libhf_core.a: hf_len is in libhf_base.a too")

    def test_finds_exceptions_without_need_and_more_than_allowed(self):
        self.write("tools/style-exceptions", "length src/base/a.c:hf_len\n")
        self.finds("check-style", "1 lines, 0 are allowed", "is not needed any more")


class DocsTest(Tree):
    def test_passes_a_good_tree(self):
        self.passes("check-docs")

    def test_finds_links_and_headings_that_are_not_there(self):
        self.write("docs/x.md", "# X\n[a](../gone.md) [b](../README.md#gone) [c](#x)\n"
                   "`[d](no.md)`\n[e](https://example.org)\n")
        self.finds("check-docs", "docs/x.md:2: link to ../gone.md", "no such heading", "2 findings")

    def test_finds_verbs_that_are_not_there(self):
        self.write("build/holdfast", "#!/bin/sh\necho '  get   show'\n")
        os.chmod(os.path.join(self.root, "build/holdfast"), 0o755)
        self.write("x.md", "`./dev fly` and\n\n```\n$ ./dev build\n$ holdfast get x\n$ holdfast "
                   "fly x\n```\n")
        self.finds("check-docs", "x.md:1: ./dev fly", "x.md:6: holdfast fly", "2 findings")


class ReferenceTest(Tree):
    CRD = """\
spec:
  names: {kind: Policy}
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          properties:
            spec:
              properties:
                mode: {type: string, enum: [a, b], description: "What to do. Default: a."}
                pods:
                  type: array
                  maxItems: 3
                  items:
                    required: [name]
                    properties:
                      name: {type: string, maxLength: 9, description: Name of the pod.}
"""
    FIELDS = """\
<!-- begin Policy-spec -->
| field | type and limits | default | meaning |
|---|---|---|---|
| `mode` | one of `a`, `b` | a | What to do. |
| `pods[]` | list of objects, at most 3 |  |  |
| `pods[].name` | text, at most 9 characters | required | Name of the pod. |
<!-- end Policy-spec -->
"""
    HELP = """\
#!/bin/sh
case "$1" in
--help) printf 'Look:\\n  get   List jobs\\n' ;;
get) printf 'Usage: holdfast get\\n\\nFlags:\\n  -w, --watch   print each change\\n' ;;
esac
"""

    def setUp(self):
        super().setUp()
        self.write("deploy/crds/policies.yaml", self.CRD)
        self.write("docs/reference/fields.md", self.FIELDS)
        self.write("build/holdfast", self.HELP)
        os.chmod(os.path.join(self.root, "build/holdfast"), 0o755)
        self.write("docs/reference/flags.md", "<!-- begin flags -->\n<!-- end flags -->\n")
        self.rewrite()

    def rewrite(self):
        subprocess.run([os.path.join(TOP, "tools/check-reference"), "--root", self.root, "--write"],
                       capture_output=True)

    def test_passes_a_good_tree(self):
        self.passes("check-reference")

    def test_writes_the_tables_of_fields_and_flags(self):
        for path, row in (("fields.md", self.FIELDS), ("flags.md", "| `-w`, `--watch` |  | print each change |")):
            with open(os.path.join(self.root, "docs/reference", path), encoding="utf-8") as f:
                self.assertIn(row, f.read())

    def test_finds_a_field_that_only_the_source_has(self):
        self.write("deploy/crds/policies.yaml", self.CRD.replace("mode:", "modes:"))
        self.finds("check-reference", "docs/reference/fields.md:1: block Policy-spec differs", "1 findings")

    def test_finds_a_limit_that_only_the_reference_has(self):
        self.write("docs/reference/fields.md", self.FIELDS.replace("at most 3", "at most 4"))
        self.finds("check-reference", "block Policy-spec differs", "1 findings")

    def test_finds_a_flag_that_only_the_program_has(self):
        self.write("build/holdfast", self.HELP.replace("--watch", "--wait"))
        self.finds("check-reference", "docs/reference/flags.md:1: block flags differs", "1 findings")

    def test_finds_tables_that_are_missing_or_of_nothing(self):
        self.write("docs/reference/fields.md", "<!-- begin Job -->\n<!-- end Job -->\n")
        self.finds("check-reference", "block Job is made from nothing", "no page has the block Policy-spec",
                   "2 findings")

    def test_finds_a_program_that_is_not_built(self):
        os.unlink(os.path.join(self.root, "build/holdfast"))
        self.finds("check-reference", "build/holdfast: is missing")

    def test_refuses_yaml_that_it_would_misread(self):
        self.write("deploy/crds/policies.yaml", self.CRD.replace('"What to do. Default: a."', "Do, or not."))
        self.finds("check-reference", "deploy/crds/policies.yaml: cannot be read")

    def test_reads_no_kustomization_as_a_crd(self):
        self.write("deploy/crds/kustomization.yaml", "kind: Kustomization\nresources: [policies.yaml]\n")
        self.passes("check-reference")

    def test_finds_metrics_that_are_on_one_side_alone(self):
        self.write("docs/reference/metrics.md", "`holdfast_both`\n`holdfast_told`\n")
        self.write("src/base/counts.c", 'f("holdfast_both");\nf("holdfast_made");\n')
        self.finds("check-reference", "docs/reference/metrics.md:2: metric holdfast_told",
                   "src/base/counts.c:2: metric holdfast_made", "2 findings")

    RIGHTS = ("kind: ClusterRole\nmetadata: {name: r}\nrules:\n%s  - apiGroups: [\"\"]\n    resources: [pods]\n"
              "    verbs: [%s]\n---\nkind: ClusterRoleBinding\nmetadata: {name: r}\n"
              "roleRef: {kind: ClusterRole, name: r}\nsubjects:\n  - {kind: ServiceAccount, name: own}\n")

    def test_finds_rights_that_the_page_does_not_have(self):
        self.write("deploy/own/rbac.yaml", self.RIGHTS % ("  # The ranks.\n", "get"))
        self.finds("check-reference", "no page has the block rights-own", "no page has the block rights-summary")
        self.write("docs/reference/rights.md", "".join(f"<!-- begin rights-{n} -->\n<!-- end rights-{n} -->\n"
                                                       for n in ("own", "people", "summary")))
        subprocess.run([os.path.join(TOP, "tools/check-reference"), "--root", self.root, "--write"],
                       capture_output=True, check=True)
        with open(os.path.join(self.root, "docs/reference/rights.md"), encoding="utf-8") as f:
            self.assertIn("| get | `pods` | cluster | The ranks. |", f.read())
        self.passes("check-reference")
        self.write("deploy/own/rbac.yaml", self.RIGHTS % ("  # The ranks.\n", "get, delete"))
        self.finds("check-reference", "block rights-own differs", "block rights-summary differs", "2 findings")

    def test_finds_a_right_without_a_reason(self):
        self.write("deploy/own/rbac.yaml", self.RIGHTS % ("", "get"))
        self.finds("check-reference", "role r: no comment says why it has get on pods")

    def test_finds_a_metric_of_a_dashboard_that_there_is_not_and_knows_histograms(self):
        self.write("src/app/own.c", 'static const char *name = "holdfast_both";\n')
        self.write("docs/reference/metrics.md", "`holdfast_both`\n")
        self.write("deploy/dashboards/fleet.json", '{"expr": "sum(holdfast_both_bucket)"}\n')
        self.passes("check-reference")
        self.write("deploy/dashboards/fleet.json", '{"expr": "sum(holdfast_both_total)"}\n')
        self.finds("check-reference", "deploy/dashboards/fleet.json:1: metric holdfast_both_total", "1 findings")

    def test_finds_an_alert_without_its_section_and_a_section_without_its_alert(self):
        rule = '- alert: Holdfast%s\n  annotations:\n    runbook_url: "docs/reference/runbooks.md#holdfast%s"\n'
        parts = "**Meaning.** m\n**Impact.** i\n**Diagnosis.**\n**Mitigation.** m\n"
        self.write("deploy/alerts.yaml", rule % ("One", "one") + rule % ("Two", "two"))
        self.write("docs/reference/runbooks.md", f"## HoldfastOne\n{parts}## HoldfastTwo\n{parts}")
        self.passes("check-reference")
        self.write("docs/reference/runbooks.md",
                   f"## HoldfastOne\n{parts}## HoldfastOld\n" + parts.replace("**Impact.** i\n", ""))
        self.finds("check-reference", "alert HoldfastTwo has no section", "alert HoldfastOld: there is no such one",
                   "section HoldfastOld has no part Impact", "3 findings")
        self.write("docs/reference/runbooks.md", f"## HoldfastOne\n{parts}## HoldfastTwo\n{parts}")
        self.write("deploy/alerts.yaml", rule % ("One", "one") + rule % ("Two", "one"))
        self.finds("check-reference", "deploy/alerts.yaml:4: alert HoldfastTwo does not name its section", "1 findings")

    def test_finds_keys_and_variables_that_are_on_one_side_alone(self):
        self.write("docs/reference/config.md", "# Keys of the rules file\n\n| key |\n|---|\n| `code` |\n"
                   "| `told` |\n\n# Environment variables\n\n| variable |\n|---|\n| `TOLD` |\n")
        self.write("src/core/rules_file.c", 'read_number(r, "code");\nWORD(&r, "class", x);\ngetenv("HOME");\n')
        self.finds("check-reference", "docs/reference/config.md:6: key of a rule told",
                   "src/core/rules_file.c:2: key of a rule class", "variable TOLD", "variable HOME",
                   "4 findings")

    def test_finds_names_and_events_that_are_on_one_side_alone(self):
        self.write("docs/reference/conditions.md", "`holdfast.dev/Both` `holdfast.dev/Told`\n\n# Events\n\n"
                   "| event |\n|---|\n| `PodEvicted`, `<Kind>Failed` |\n| `Told` |\n")
        self.write("src/base/names.c", '"holdfast.dev/Both"\n"holdfast.dev/Made"\n"PodEvicted"\n"Failed"\n')
        self.finds("check-reference", "docs/reference/conditions.md:1: holdfast.dev/Told",
                   "src/base/names.c:2: holdfast.dev/Made", "conditions.md:8: event Told", "3 findings")


class WordsTest(Tree):
    RIDDLE = "/* Whose a part is comes to be known after it is known who holds it, or before. */\n"
    PLAIN = "/* The owner and the holder of a part may arrive in either order, so both wait. */\n"

    def setUp(self):
        super().setUp()
        self.write("tools/words-limits", "")

    def test_passes_a_good_tree(self):
        self.c("src/base/f.c", 20 * self.PLAIN)
        self.passes("check-words")

    def test_finds_riddles_beyond_the_goal(self):
        self.c("src/base/f.c", 6 * self.RIDDLE)
        self.finds("check-words", "src/base: 6 doubtful sentences, at most 5", "1 findings")

    def test_finds_functions_with_names_of_one_word(self):
        self.c("src/base/f.c", "".join(f"static void {n}(void)\n{{\n}}\n" for n in
                                       ("look", "tell", "find", "add", "see", "hear", "main")))
        self.finds("check-words", "src/base: 6 function names of one word, at most 5", "1 findings")

    def test_lets_a_folder_have_what_its_limit_allows(self):
        self.write("tools/words-limits", "src/base 6 0\n")
        self.c("src/base/f.c", 6 * self.RIDDLE)
        self.passes("check-words")

    def test_finds_a_limit_that_could_be_lower(self):
        self.write("tools/words-limits", "src/base 9 0\n")
        self.c("src/base/f.c", 6 * self.RIDDLE)
        self.finds("check-words", "src/base may have 9 doubtful sentences and has 6")

    def test_lowers_limits_and_raises_none(self):
        self.write("tools/words-limits", "# limits\nsrc/base 9 0\nsrc/core 1 0\nsrc/gone 1 1\n")
        self.c("src/base/f.c", 6 * self.RIDDLE)
        run = subprocess.run([os.path.join(TOP, "tools", "check-words"), "--root", self.root,
                              "--lower"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        with open(os.path.join(self.root, "tools/words-limits"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "# limits\nsrc/base 6 0\n")
        self.c("src/base/f.c", 7 * self.RIDDLE)
        subprocess.run([os.path.join(TOP, "tools", "check-words"), "--root", self.root, "--lower"],
                       capture_output=True)
        self.finds("check-words", "src/base: 7 doubtful sentences, at most 6")

    def test_finds_limits_without_need_or_folder(self):
        self.write("tools/words-limits", "src/base 1 0\nsrc/gone 1 0\nsrc/core x\n")
        self.finds("check-words", "src/base needs no limit any more", "no folder src/gone",
                   "'src/core x' is no limit")

    def test_judges_the_sentences_of_pages_but_not_their_code(self):
        self.write("docs/a.md", 6 * "Nobody who reads this will ever know what it was about.\n"
                   + "```\nnobody who reads this will ever know what it was about.\n```\n")
        self.finds("check-words", "docs: 6 doubtful sentences")


class CommitsTest(Tree):
    def git(self, *args):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=t", "-c", "user.email=t@t.example",
                        *args], check=True, capture_output=True)

    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "whatever came before is left alone")
        self.write("tools/check-commits", "")
        self.git("add", "tools/check-commits")
        self.git("commit", "-q", "-m", "tools: check the subjects of commits")

    def test_passes_imperatives_and_what_came_before(self):
        self.git("commit", "-q", "--allow-empty", "-m", "core, api: pass the zone to the guard")
        self.passes("check-commits")

    def test_finds_subjects_that_are_no_imperative(self):
        for subject in ("fix it", "core: fixes a leak", "core: the leak is gone",
                        "core: tell who was lost", "core: " + "x" * 73, "core: mended a leak"):
            self.git("commit", "-q", "--allow-empty", "-m", subject)
        self.finds("check-commits", "does not read", "begins with 'fixes'", "begins with 'the'",
                   "speaks of a thing as of a person", "73 characters", "begins with 'mended'",
                   "6 findings")

    def test_passes_a_copy_without_history(self):
        shutil.rmtree(os.path.join(self.root, ".git"))
        self.passes("check-commits")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
