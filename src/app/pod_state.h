/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_POD_STATE_H
#define HF_APP_POD_STATE_H

#include "base/strbuf.h"
#include "json/json.h"

HF_BEGIN_DECLS

/* Adds the state of a pod: its phase, why its container waits, or how it ended ("Failed code=137 (SIGKILL)"). */
void hf_pod_state_add(const struct hf_json *pod, struct hf_strbuf *sb);
/* Adds how a container ended: " (SIGKILL)" for code 137, ": StartError: …" for a program that could not start; nothing
 * for other codes. container: its status. */
void hf_pod_state_add_end(const struct hf_json *container, int64_t code, struct hf_strbuf *sb);

HF_END_DECLS

#endif
