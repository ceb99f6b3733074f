# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Finds the lines that several manifests have in common: the pod template of the job CRDs."""

SHARED_MIN = 200  # lines: what is shorter costs more to name than to repeat


def common_run(texts):
    """Returns the longest run of lines that all texts contain."""
    lists = [t.splitlines(keepends=True) for t in texts]
    first, best = lists[0], (0, 0)
    others = ["".join(lines) for lines in lists[1:]]
    start = 0
    while start < len(first) - best[1]:
        low, high = best[1], len(first) - start
        while low < high:
            middle = (low + high + 1) // 2
            run = "".join(first[start:start + middle])
            if all(run in other for other in others):
                low = middle
            else:
                high = middle - 1
        if low > best[1]:
            best = (start, low)
        start += max(1, low)
    return "".join(first[best[0]:best[0] + best[1]]) if best[1] >= SHARED_MIN else ""
