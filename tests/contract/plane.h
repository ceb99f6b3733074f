/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_PLANE_H
#define HF_TESTS_PLANE_H

/* The embedded plane as a world of contract.h: a virtual loop, repeatable UIDs. */

#include "contract/contract.h"

#include "local/local.h"

#define PLANE_START (1790000000 * HF_SECOND) /* the wall clock at the beginning */

struct plane {
	struct world w;
	struct hf_local *local;
	uint64_t seed;
	char dir[64]; /* "": in memory */
};

/* options may be NULL; random and data_dir are the plane's own.  on_disk: in a new folder under
 * the temporary one, which plane_close removes. */
void plane_open(struct plane *p, const struct hf_local_options *options, bool on_disk);
void plane_close(struct plane *p);
/* Close the store and open it again on the same folder, as a restart would. */
void plane_reopen(struct plane *p, const struct hf_local_options *options);
/* Begin in a folder that is there; for tests that look at failures. */
int plane_try(struct plane *p, const struct hf_local_options *options, const char *dir,
	      struct hf_error *err);

/* hf_local_apply, and the code of its result. */
int apply_now(struct plane *p, const struct hf_request *request);

#endif
