/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_HEALTH_SCENE_H
#define HF_TESTS_HARNESS_HEALTH_SCENE_H

#include "base/strbuf.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * Steps of the device brain on a node, read from one document and written as text: what
 * tests/golden/health holds (its README.md says what may stand in a document).
 */
void health_scene_run(const struct hf_json *root, struct hf_strbuf *sb);

HF_END_DECLS

#endif
