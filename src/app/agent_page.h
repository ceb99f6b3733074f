/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_AGENT_PAGE_H
#define HF_APP_AGENT_PAGE_H

#include "agent/agent.h"

/*
 * The agent's pages over plain HTTP, on one address: / (the node's state as text), /status (the state as
 * the JSON of a DeviceHealth), /metrics, /healthz, /readyz.
 */
struct hf_agent_page;

#define HF_AGENT_PAGE_BYTES_MAX ((size_t)4 << 20)

/* address: such as "127.0.0.1:7445" or ":0"; "0" or "" switches the page off. */
int hf_agent_page_create(struct hf_loop *loop, struct hf_agent *agent, struct hf_metrics *metrics,
			 const char *address, struct hf_agent_page **ret_page, struct hf_error *err)
	HF_MUST_CHECK;
struct hf_agent_page *hf_agent_page_destroy(struct hf_agent_page *page); /* NULL is fine */
uint16_t hf_agent_page_port(const struct hf_agent_page *page);

#endif
