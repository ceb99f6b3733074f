/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Opens and closes the embedded plane as a world: on a virtual loop, in memory or in a temporary
 * folder, with UIDs from a fixed seed. */
#include "contract/plane.h"

#include "base/fs.h"
#include "harness/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool turn_loop(struct world *w)
{
	return hf_loop_run_ready(w->loop);
}

static void pass_time(struct world *w, hf_time span)
{
	hf_loop_run_until(w->loop, hf_time_add(hf_loop_mono(w->loop), span));
}

static struct hf_store *open_client(struct world *w)
{
	return hf_memstore_client_create(((struct plane *)w)->memstore, NULL);
}

/* Random bytes from the seed: repeatable, and no two UIDs are equal. */
static void fill_seeded(void *arg, void *bytes, size_t len)
{
	uint64_t *state = arg;
	unsigned char *out = bytes;

	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)test_random(state);
}

int plane_try(struct plane *p, const struct hf_memstore_options *options, const char *dir,
	      struct hf_error *err)
{
	struct hf_memstore_options o = options ? *options : (struct hf_memstore_options){0};

	o.random = fill_seeded;
	o.random_arg = &p->seed;
	o.data_dir = dir && *dir ? dir : NULL;
	int rc = hf_memstore_create(p->w.loop, &o, &p->memstore, err);
	if (rc)
		return rc;
	p->w.store = hf_memstore_store(p->memstore);
	p->w.other = hf_memstore_client_create(p->memstore, NULL);
	return 0;
}

void plane_open(struct plane *p, const struct hf_memstore_options *options, bool on_disk)
{
	struct hf_error err = {0};

	*p = (struct plane){.w = {.turn = turn_loop, .pass = pass_time, .client = open_client},
			    .seed = 1};
	if (on_disk) {
		snprintf(p->dir, sizeof(p->dir), "/tmp/holdfast-plane-XXXXXX");
		assert_non_null(mkdtemp(p->dir));
	}
	p->w.loop = hf_loop_create_virtual(PLANE_START);
	assert_ok(plane_try(p, options, p->dir, &err), &err);
}

static void close_store(struct plane *p)
{
	hf_store_destroy(p->w.other);
	p->w.other = p->w.store = NULL;
	p->memstore = hf_memstore_destroy(p->memstore);
}

void plane_reopen(struct plane *p, const struct hf_memstore_options *options)
{
	struct hf_error err = {0};

	close_store(p);
	assert_ok(plane_try(p, options, p->dir, &err), &err);
}

void plane_close(struct plane *p)
{
	struct hf_error err = {0};

	if (p->memstore)
		close_store(p);
	hf_loop_destroy(p->w.loop);
	if (*p->dir)
		assert_ok(hf_fs_remove_tree(p->dir, &err), &err);
	*p = (struct plane){0};
}

int apply_now(struct plane *p, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(p->memstore, request, &result);
	return result.code;
}
