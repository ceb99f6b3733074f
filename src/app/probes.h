/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PROBES_H
#define HF_APP_PROBES_H

#include "base/strbuf.h"
#include "loop/loop.h"

#include <stdint.h>

/*
 * The probes and metrics of a controller over plain HTTP: /healthz (200 while the loop runs) and /readyz
 * (200, or 503 with the reason) on one address, /metrics on another.
 */
struct hf_probes;

/* Limit of the text of /metrics. The series of 5,000 jobs need about 6 MiB. */
#define HF_METRICS_BYTES_MAX ((size_t)32 << 20)

struct hf_probes_options {
	struct hf_loop *loop; /* real */
	/* ":8081", "127.0.0.1:0"; "0" or "": off. */
	const char *health_address, *metrics_address;
	/* Called for /readyz. Return 0 if the controller is ready, with a note or "" in err's
	 * text; else the error with the reason. */
	int (*ready)(void *arg, struct hf_error *err);
	void (*metrics)(void *arg, struct hf_strbuf *sb); /* text 0.0.4 */
	void *arg;
};

int hf_probes_create(const struct hf_probes_options *options, struct hf_probes **ret_probes,
		     struct hf_error *err) HF_MUST_CHECK;
struct hf_probes *hf_probes_destroy(struct hf_probes *probes); /* NULL is fine; returns NULL */
/* The listening ports; 0: off. */
uint16_t hf_probes_health_port(const struct hf_probes *probes);
uint16_t hf_probes_metrics_port(const struct hf_probes *probes);

#endif
