/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_CONTRACT_WIRE_H
#define HF_TESTS_CONTRACT_WIRE_H

/* A world of contract.h that uses the kube store on a real loop. */

#include "contract/contract.h"

#include "kube/kube.h"

struct wire {
	struct world w; /* must be first: a world is cast to its wire */
	const struct hf_kube_config *config;
	struct hf_timer *timer;
	bool moved;
};

/* wire->w.loop must be set. config must outlive the wire. */
void wire_open(struct wire *wire, const struct hf_kube_config *config);
void wire_close(struct wire *wire);

#endif
