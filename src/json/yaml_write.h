/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_YAML_WRITE_H
#define HF_JSON_YAML_WRITE_H

#include "json/json.h"

/* Writes YAML as `kubectl get -o yaml` does: block style, lists not indented below their key,
 * sorted keys (numbers by value, so "9" before "10"). Strings are quoted only if a reader would
 * take them for another type. Texts with several lines are written as "|", long lines are folded
 * at 80. The output ends with a newline and has no "---"; a caller that prints several documents
 * adds it between them. */
void hf_yaml_write(const struct hf_json *value, struct hf_strbuf *sb);

#endif
