/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_PLANE_H
#define HF_TESTS_PLANE_H

/* The embedded plane as a world of contract.h: a virtual loop and repeatable UIDs. */

#include "contract/contract.h"

#include "memstore/memstore.h"

#define PLANE_START (1790000000 * HF_SECOND) /* wall clock time when a plane starts */

struct plane {
	struct world w;
	struct hf_memstore *memstore;
	uint64_t seed;
	char dir[64]; /* folder of the database; "": in memory */
};

/* Opens a plane. options may be NULL; random and data_dir are set here. on_disk: in a new folder
 * under /tmp, which plane_close removes. */
void plane_open(struct plane *p, const struct hf_memstore_options *options, bool on_disk);
void plane_close(struct plane *p);
/* Closes the store and opens it again on the same folder, like a restart. */
void plane_reopen(struct plane *p, const struct hf_memstore_options *options);
/* Opens the store in an existing folder; for tests of failures. */
int plane_try(struct plane *p, const struct hf_memstore_options *options, const char *dir,
	      struct hf_error *err);

/* Calls hf_memstore_apply and returns the code of its result. */
int apply_now(struct plane *p, const struct hf_request *request);

#endif
