/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_CONFIG_FILE_H
#define HF_APP_CONFIG_FILE_H

#include "loop/loop.h"
#include "operator/config.h"

#include <stdbool.h>

/*
 * The operator's config file: read at the start, and again every HF_CONFIG_FILE_INTERVAL.  A file that may
 * be missing counts as an empty one while it is missing.  An invalid file never replaces a valid one.
 */
struct hf_config_file;

#define HF_CONFIG_FILE_INTERVAL (10 * HF_SECOND)

struct hf_config_file_options {
	const char *path; /* outlives the object */
	bool may_be_missing;
	/* Called once, from the loop, when the file has new content that is valid. */
	void (*changed)(void *arg);
	/* Called from the loop with the reason when the file becomes invalid, or is invalid for
	 * another reason than before. Called with NULL when the file again has the content that is
	 * in use. */
	void (*rejected)(void *arg, const char *why);
	void *arg;
};

/* Read and parse the file. HF_E_INVALID, HF_E_BAD_REQUEST: the content is invalid
 * (hf_operator_config_parse). Any other error: the file cannot be read. */
int hf_config_file_read(const struct hf_config_file_options *options,
			struct hf_config_file **ret_file, struct hf_error *err) HF_MUST_CHECK;
/* Begins to look at the file. */
void hf_config_file_watch(struct hf_config_file *file, struct hf_loop *loop);
/* NULL is fine; returns NULL. */
struct hf_config_file *hf_config_file_destroy(struct hf_config_file *file);

/* The recovery defaults of the config in use. Never NULL; valid as long as the file object. */
const struct hf_recovery_spec *hf_config_file_recovery(const struct hf_config_file *file);
/* True while the file on the disk is invalid, so that the previous content stays in use. */
bool hf_config_file_is_rejected(const struct hf_config_file *file);

#endif
