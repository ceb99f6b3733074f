/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Writes the journal on a thread.
 * Input: a journal, which is encoded on the loop.  Output: a call with the result, or with a time-out at the
 * deadline.
 */
#include "agent/saver.h"

#include "base/mem.h"
#include "loop/worker.h"

#include <stdlib.h>

struct hf_saver {
	struct hf_saver_options options;
	char *dir;
	struct hf_worker *worker;
	struct hf_timer *deadline;
	hf_time began, took;
};

/* A write of the journal. The saver's thread performs the write. */
struct save {
	struct hf_saver *saver; /* used by the loop only, never by the thread */
	char *dir;
	struct hf_strbuf bytes;
	int code;
	struct hf_error err;
};

static void save_free(void *arg)
{
	struct save *save = arg;

	free(save->dir);
	hf_strbuf_release(&save->bytes);
	free(save);
}

static void run_save(void *arg)
{
	struct save *save = arg;

	save->code = hf_journal_write(save->dir, &save->bytes, &save->err);
}

static void on_done(void *arg)
{
	struct save *save = arg;
	struct hf_saver *saver = save->saver;
	int code = save->code;
	struct hf_error err = save->err;

	save_free(save);
	hf_timer_disarm(saver->deadline);
	saver->took = hf_loop_mono(saver->options.loop) - saver->began;
	saver->options.saved(saver->options.arg, code, code == 0 ? "" : err.text);
}

static void on_deadline(void *arg)
{
	const struct hf_saver *saver = arg;

	saver->options.saved(saver->options.arg, HF_E_TIMEOUT, "the disk does not answer");
}

struct hf_saver *hf_saver_create(const struct hf_saver_options *options)
{
	struct hf_saver *saver = hf_xcalloc(1, sizeof(*saver));

	saver->options = *options;
	saver->options.dir = NULL;
	saver->dir = hf_xstrdup(options->dir);
	saver->worker = hf_worker_create(options->loop);
	saver->deadline = hf_timer_create(options->loop, on_deadline, saver);
	saver->took = HF_TIME_NONE;
	return saver;
}

struct hf_saver *hf_saver_destroy(struct hf_saver *saver)
{
	if (saver == NULL)
		return NULL;
	hf_worker_destroy(saver->worker);
	hf_timer_destroy(saver->deadline);
	free(saver->dir);
	free(saver);
	return NULL;
}

bool hf_saver_save(struct hf_saver *saver, const struct hf_journal *journal)
{
	struct save *save;
	struct hf_work work = {.run = run_save, .done = on_done, .drop = save_free};

	if (hf_worker_is_busy(saver->worker))
		return false;
	save = hf_xcalloc(1, sizeof(*save));
	save->saver = saver;
	save->dir = hf_xstrdup(saver->dir);
	hf_strbuf_init(&save->bytes, HF_JOURNAL_ENCODED_MAX);
	hf_journal_encode(journal, &save->bytes);
	work.arg = save;
	saver->began = hf_loop_mono(saver->options.loop);
	if (!hf_worker_post(saver->worker, &work)) {
		save_free(save);
		return false;
	}
	hf_timer_arm(saver->deadline, HF_SAVER_DEADLINE);
	return true;
}

bool hf_saver_is_busy(const struct hf_saver *saver)
{
	return hf_worker_is_busy(saver->worker);
}

void hf_saver_settle(struct hf_saver *saver)
{
	(void)hf_worker_settle(saver->worker, HF_SAVER_DEADLINE);
}

hf_time hf_saver_took(const struct hf_saver *saver)
{
	return saver->took;
}
