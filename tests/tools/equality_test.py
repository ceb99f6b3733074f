#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What ./dev conformance equality compares by: the table of differences, and the corpus of jobs."""

import collections
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../cluster"))
from kit import compare, corpus

TABLE = os.path.join(HERE, "../../docs/reference/differences.md")


class EqualityTest(unittest.TestCase):
    def test_each_row_of_what_is_seen_at_rest_has_its_look_and_no_other(self):
        with open(TABLE, encoding="utf-8") as f:
            at_rest, _, elsewhere = f.read().partition("\n## Seen when something goes wrong\n")
        rows = [re.findall(r"^\| (D\d+) \|", part, re.MULTILINE) for part in (at_rest, elsewhere)]
        self.assertEqual(rows[0], list(compare.SEEN_AS))
        self.assertTrue(rows[1])
        counts = collections.Counter(rows[0] + rows[1])
        self.assertEqual([r for r, n in counts.items() if n > 1], [])

    def test_a_difference_that_is_like_a_row_only_at_first_sight_is_none_of_it(self):
        job = corpus.Entry({"kind": "MPIJob", "metadata": {"name": "mpi-rich"}}, [])
        for path, left, right, row in (
                ("/events/Normal RoleBinding is exist", True, None, "D12"),
                ("/events/Normal SuccessfulCreatePod", True, None, None),
                ("/pods/a/metadata/annotations/holdfast.dev/attempt", None, "0", "D1"),
                ("/pods/a/metadata/annotations/holdfast.dev/other", None, "0", None),
                ("/status/replicaStatuses/Worker/active", 2, 0, None)):
            self.assertEqual(compare.row(job, 1, path, left, right)[1], row, path)

    def test_messages_are_compared_where_both_tell_a_state(self):
        left = {"events": {"Normal JobFailed": True}, "said": {"Normal A": ["x"], "Normal B": ["x"]}}
        right = {"events": {}, "said": {"Normal A": ["y"], "Normal C": ["x"]}}
        self.assertEqual(compare.differences(left, right), [
            ("/events/Normal JobFailed", True, None), ("/said/Normal A", ["x"], ["y"])])

    def test_the_corpus_has_jobs_of_every_kind(self):
        kinds = collections.Counter(e.kind for e in corpus.entries())
        self.assertEqual(set(kinds), set(corpus.KINDS))
        self.assertGreaterEqual(sum(kinds.values()), 60)
        self.assertGreaterEqual(min(kinds.values()), 10)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
