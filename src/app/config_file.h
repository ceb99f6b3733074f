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
	/* Called from the loop, once: the file has other content, which is valid. */
	void (*changed)(void *arg);
	/* Called from the loop when the file becomes invalid, with another error, and with NULL when the
	 * file has its earlier content again. */
	void (*rejected)(void *arg, const char *why);
	void *arg;
};

/* HF_E_INVALID, HF_E_BAD_REQUEST: as hf_operator_config_parse; else the file cannot be read. */
int hf_config_file_read(const struct hf_config_file_options *options,
			struct hf_config_file **ret_file, struct hf_error *err) HF_MUST_CHECK;
/* Begins to look at the file. */
void hf_config_file_watch(struct hf_config_file *file, struct hf_loop *loop);
/* NULL is fine; returns NULL. */
struct hf_config_file *hf_config_file_destroy(struct hf_config_file *file);

/* Never NULL; lives as long as the file object. */
const struct hf_recovery_spec *hf_config_file_recovery(const struct hf_config_file *file);
/* True while the file on the disk is not the one in use, because it is invalid. */
bool hf_config_file_is_rejected(const struct hf_config_file *file);

#endif
