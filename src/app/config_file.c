/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads the operator's config file, and notices a change. The kubelet replaces a mounted ConfigMap
 * through a symbolic link, which inotify on the file does not show; so a timer compares the content. */
#include "app/config_file.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hf_config_file {
	struct hf_config_file_options options;
	struct hf_strbuf text; /* the content in use */
	struct hf_operator_config *config;
	struct hf_timer *timer;
	/* why the file on the disk is refused; "": that file is in use */
	char rejected[HF_ERROR_TEXT_MAX];
};

static int read_text(const struct hf_config_file_options *options, struct hf_strbuf *text,
		     struct hf_error *err)
{
	/* Read regular files only: to open a FIFO at this path would block the operator. */
	int rc = hf_fs_read_regular(options->path, text, err);

	if (rc == HF_E_NOT_FOUND && options->may_be_missing)
		return 0;
	return rc == 0 ? 0 : hf_error_wrap(err, "--config");
}

static bool is_same_text(const struct hf_strbuf *a, const struct hf_strbuf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void set_rejected(struct hf_config_file *file, const char *why)
{
	if (hf_streq(file->rejected, why))
		return;
	snprintf(file->rejected, sizeof(file->rejected), "%s", why);
	file->options.rejected(file->options.arg, why[0] == '\0' ? NULL : file->rejected);
}

static void look_again(void *arg)
{
	struct hf_config_file *file = arg;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_OPERATOR_CONFIG_BYTES_MAX);
	struct hf_operator_config *config = NULL;
	struct hf_error err;
	int rc = read_text(&file->options, &text, &err);

	if (rc == 0 && is_same_text(&text, &file->text)) {
		set_rejected(file, "");
	} else {
		if (rc == 0)
			rc = hf_operator_config_parse(hf_str_or(text.data, ""), text.len,
						      file->options.path, &config, &err);
		hf_operator_config_destroy(config);
		if (rc == 0) {
			file->options.changed(file->options.arg);
			return;
		}
		set_rejected(file, err.text);
	}
	hf_timer_arm(file->timer, HF_CONFIG_FILE_INTERVAL);
}

int hf_config_file_read(const struct hf_config_file_options *options,
			struct hf_config_file **ret_file, struct hf_error *err)
{
	struct hf_config_file *file = hf_xcalloc(1, sizeof(*file));
	int rc;

	file->options = *options;
	file->text = (struct hf_strbuf)HF_STRBUF_INIT(HF_OPERATOR_CONFIG_BYTES_MAX);
	rc = read_text(options, &file->text, err);
	if (rc == 0)
		rc = hf_operator_config_parse(hf_str_or(file->text.data, ""), file->text.len,
					      options->path, &file->config, err);
	if (rc != 0) {
		hf_config_file_destroy(file);
		return rc;
	}
	*ret_file = file;
	return 0;
}

void hf_config_file_watch(struct hf_config_file *file, struct hf_loop *loop)
{
	file->timer = hf_timer_create(loop, look_again, file);
	hf_timer_arm(file->timer, HF_CONFIG_FILE_INTERVAL);
}

struct hf_config_file *hf_config_file_destroy(struct hf_config_file *file)
{
	if (file == NULL)
		return NULL;
	hf_timer_destroy(file->timer);
	hf_operator_config_destroy(file->config);
	hf_strbuf_release(&file->text);
	free(file);
	return NULL;
}

const struct hf_recovery_spec *hf_config_file_recovery(const struct hf_config_file *file)
{
	return hf_operator_config_recovery(file->config);
}

bool hf_config_file_is_rejected(const struct hf_config_file *file)
{
	return file->rejected[0] != '\0';
}
