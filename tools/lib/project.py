# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The version of the program, read from meson.build."""

import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def version():
    with open(os.path.join(TOP, "meson.build"), encoding="utf-8") as f:
        return re.search(r"(?m)^  version: '([^']*)'", f.read())[1]
