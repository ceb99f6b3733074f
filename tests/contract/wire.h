/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_CONTRACT_WIRE_H
#define HF_TESTS_CONTRACT_WIRE_H

/* A world of contract.h behind kube, on a real loop. */

#include "contract/contract.h"

#include "kube/kube.h"

struct wire {
	struct world w; /* first */
	const struct hf_kube_config *config;
	struct hf_timer *timer;
	bool moved;
};

/* w.loop must be there; config must outlive the wire. */
void wire_open(struct wire *wire, const struct hf_kube_config *config);
void wire_close(struct wire *wire);

#endif
