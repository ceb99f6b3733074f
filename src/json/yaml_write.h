/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_YAML_WRITE_H
#define HF_JSON_YAML_WRITE_H

#include "json/json.h"

/*
 * YAML as `kubectl get -o yaml` prints it: block style, lists not indented below their key,
 * keys sorted (digits by number, so "9" before "10"), strings quoted exactly when a reader
 * would take them for something else, texts of several lines as "|", long lines folded at 80.
 * Ends with a newline.  No "---" in front: who prints several documents puts them between.
 */
void hf_yaml_write(const struct hf_json *value, struct hf_strbuf *sb);

#endif
