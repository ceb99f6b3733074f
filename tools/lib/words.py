# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Sentences that a reader may not understand, and function names that say too little.

A sentence is doubtful when a fifth of its words are pronouns, or when it uses a person's pronoun
("who", "nobody").  The model codebases of this field have 1 to 3 % of such sentences.  The count
points at places; whether a reader understands the sentence is the question.
"""

import re

PRONOUN = re.compile(
    r"\b(it|its|one|ones|that|those|they|them|their|who|whom|whose|what|which|others?|this|these|"
    r"nobody|somebody|everybody|anybody|each|both|none|there)\b", re.I)
PERSON = re.compile(r"\b(who|whom|whose|whoever|nobody|somebody|whatever|whichever)\b", re.I)
LITERAL_OR_COMMENT = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
FENCE = re.compile(r"```.*?```", re.S)
SENTENCE = re.compile(r"[^.!?\n|][^.!?|]*[.!?]")
WORDS_MIN = 8        # shorter texts say too little to be judged
PRONOUN_SHARE = 0.2  # of the words of a text


def comments(text):
    """(line, text) of each comment of a C file, the licence and the dividers left out."""
    for m in LITERAL_OR_COMMENT.finditer(text):
        if m.group(0)[0] == "/" and not re.search("SPDX|opyright|----", m.group(0)):
            yield text.count("\n", 0, m.start()) + 1, m.group(0)


def sentences(text):
    """(line, text) of each sentence of a Markdown page, code blocks left out."""
    text = FENCE.sub(lambda m: "\n" * m.group(0).count("\n"), text)
    for m in SENTENCE.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, m.group(0)


def judge(path, text):
    """(number of texts long enough to judge, [(share, line, text)] of the doubtful ones)."""
    judged, doubtful = 0, []
    for line, part in (sentences if path.endswith(".md") else comments)(text):
        words = re.findall(r"[A-Za-z']+", part)
        if len(words) < WORDS_MIN:
            continue
        judged += 1
        share = len(PRONOUN.findall(part)) / len(words)
        if share >= PRONOUN_SHARE or PERSON.search(part):
            doubtful.append((share, line, " ".join(part.strip("/* ").split())))
    return judged, doubtful
