/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_HEALTH_SCENE_H
#define HF_TESTS_HARNESS_HEALTH_SCENE_H

#include "base/strbuf.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * Runs a scene: steps of the health module on one node. root: a document of tests/golden/health
 * (its README.md describes the entries). The plans are appended as text.
 */
void health_scene_run(const struct hf_json *root, struct hf_strbuf *sb);

HF_END_DECLS

#endif
