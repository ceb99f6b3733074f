#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The Grafana dashboards are current and well-formed; their queries are tried by tests/clients/dashboards_test.py."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIDTH = 24  # of Grafana's grid


def dashboards():
    for path in sorted(glob.glob(os.path.join(TOP, "deploy", "dashboards", "*.json"))):
        with open(path, encoding="utf-8") as f:
            yield os.path.basename(path), json.load(f)


class DashboardsTest(unittest.TestCase):
    def test_the_files_are_what_the_tool_makes(self):
        made = subprocess.run([os.path.join(TOP, "tools", "dashboards"), "check"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((made.returncode, made.stderr), (0, ""))

    def test_the_check_names_a_stale_file(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "tools"))
            shutil.copy(os.path.join(TOP, "tools", "dashboards"), os.path.join(folder, "tools"))
            shutil.copytree(os.path.join(TOP, "deploy", "dashboards"), os.path.join(folder, "deploy", "dashboards"))
            with open(os.path.join(folder, "deploy/dashboards/fleet.json"), "a", encoding="utf-8") as f:
                f.write("\n")
            made = subprocess.run([sys.executable, os.path.join(folder, "tools", "dashboards"), "check"],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 1)
        self.assertEqual(made.stderr, "dashboards: deploy/dashboards/fleet.json: run tools/dashboards\n")

    def test_there_are_two_with_names_of_their_own(self):
        found = dict(dashboards())
        self.assertEqual(sorted(found), ["fleet.json", "operator.json"])
        self.assertEqual({d["uid"] for d in found.values()}, {"holdfast-fleet", "holdfast-operator"})

    def test_panels_have_a_place_of_their_own(self):
        for name, made in dashboards():
            taken = {}
            for panel in made["panels"]:
                at = panel["gridPos"]
                self.assertLessEqual(at["x"] + at["w"], WIDTH, panel["title"])
                for x in range(at["x"], at["x"] + at["w"]):
                    for y in range(at["y"], at["y"] + at["h"]):
                        self.assertNotIn((x, y), taken, (name, panel["title"], taken.get((x, y))))
                        taken[x, y] = panel["title"]
            numbers = [p["id"] for p in made["panels"]]
            self.assertEqual(len(numbers), len(set(numbers)), name)
            titles = [p["title"] for p in made["panels"]]
            self.assertEqual(len(titles), len(set(titles)), name)

    def test_each_panel_says_what_it_shows_and_has_a_query_that_can_be_empty(self):
        for name, made in dashboards():
            for panel in made["panels"]:
                if panel["type"] == "row":
                    continue
                self.assertRegex(panel["description"], r"\.$", panel["title"])
                self.assertTrue(panel["targets"], panel["title"])
                for target in panel["targets"]:
                    # A constant would hide a metric that is missing.
                    self.assertNotRegex(target["expr"], r"\bvector\(|\babsent", (name, panel["title"]))

    def test_each_variable_is_used_and_each_that_is_used_is_there(self):
        for name, made in dashboards():
            known = {v["name"] for v in made["templating"]["list"]}
            used = set(re.findall(r"\$\{?(\w+)", json.dumps(made["panels"]))) - {"__rate_interval"}
            self.assertEqual(used, known, name)


if __name__ == "__main__":
    unittest.main()
