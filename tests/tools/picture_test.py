#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""tools/picture draws a recording, and the picture of the README is one that it drew."""

import json
import os
import re
import subprocess
import tempfile
import unittest
import xml.dom.minidom

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PICTURE = os.path.join(ROOT, "docs/pictures/run.svg")


def draw(events):
    """The SVG of a recording."""
    with tempfile.TemporaryDirectory() as folder:
        recording, out = folder + "/recording.json", folder + "/out.svg"
        with open(recording, "w", encoding="utf-8") as file:
            json.dump(events, file)
        subprocess.run([os.path.join(ROOT, "tools/picture"), "-", out, "--recording", recording], check=True,
                       capture_output=True)
        with open(out, encoding="utf-8") as file:
            return file.read()


def texts(svg):
    """(classes, text) of each text."""
    return [(node.getAttribute("class").split(), node.firstChild.data)
            for node in xml.dom.minidom.parseString(svg).getElementsByTagName("text")]


class Picture(unittest.TestCase):
    def test_a_redrawn_block_replaces_the_one_before(self):
        svg = draw([[0, "one\r\n\x1b[32mblock 1\x1b[0m\r\n"], [1, "\x1b[1A\x1b[Jlog\r\n\x1b[32mblock 2\x1b[0m\r\n"]])
        self.assertEqual([text for classes, text in texts(svg) if "z" in classes], ["one", "log", "block 2"])
        self.assertIn((["a", "g"], "block 1"), texts(svg))

    def test_text_is_escaped_and_long_lines_are_broken(self):
        svg = draw([[0, "<b>&\r\n" + "x" * 100 + "\r\n"]])
        last = [text for classes, text in texts(svg) if "z" in classes]
        self.assertEqual(last[0], "<b>&")
        self.assertEqual([len(text) for text in last[1:]], [84, 16])

    def test_a_long_pause_is_cut(self):
        svg = draw([[0, "a"], [1000, "b"]])
        seconds = float(re.search(r"animation-duration:([0-9.]+)s", svg).group(1))
        self.assertLess(seconds, 20)

    def test_the_picture_of_the_readme_is_small_and_names_no_machine(self):
        with open(PICTURE, encoding="utf-8") as file:
            svg = file.read()
        self.assertLess(len(svg.encode()), 60000)
        shown = [text for classes, text in texts(svg) if "z" in classes]
        self.assertTrue(any(text.startswith("holdfast why @latest") for text in shown), shown)
        self.assertTrue(any("worker-0 was killed by SIGKILL" in text for text in shown), shown)
        self.assertIsNone(re.search(r"/tmp/|/home/|/root", svg))


if __name__ == "__main__":
    unittest.main()
