/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PROBES_H
#define HF_APP_PROBES_H

#include "base/strbuf.h"
#include "loop/loop.h"

#include <stdint.h>

/*
 * What a cluster asks of a controller over plain HTTP: /healthz (this loop runs), /readyz
 * (0, or 503 with the reason) on one address; /metrics on another.
 */
struct hf_probes;

/* Of 5,000 jobs with all their series some 6 MiB. */
#define HF_METRICS_BYTES_MAX ((size_t)32 << 20)

struct hf_probes_options {
	struct hf_loop *loop; /* real */
	/* ":8081", "127.0.0.1:0"; "0" or "": nowhere. */
	const char *health_address, *metrics_address;
	/* 0: ready; err's text is then "" or a note. */
	int (*ready)(void *arg, struct hf_error *err);
	void (*metrics)(void *arg, struct hf_strbuf *sb); /* text 0.0.4 */
	void *arg;
};

int hf_probes_create(const struct hf_probes_options *options, struct hf_probes **ret_probes,
		     struct hf_error *err) HF_MUST_CHECK;
struct hf_probes *hf_probes_destroy(struct hf_probes *probes); /* NULL is fine; returns NULL */
/* 0: nowhere. */
uint16_t hf_probes_health_port(const struct hf_probes *probes);
uint16_t hf_probes_metrics_port(const struct hf_probes *probes);

#endif
