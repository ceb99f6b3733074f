/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Writes the record of contact from reads of the kubelet's Lease.
 * Input: the Lease.  Output: a file, replaced as a whole.
 * Invariant: the time in the file is never later than the renewal of the Lease.
 */
#include "agent/contact_keeper.h"

#include "api/node.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "health/contact.h"
#include "loop/loop.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LEASE_NS "kube-node-lease"
#define TIMEOUT (5 * HF_SECOND)
/* Mode of the record's file: ranks of any user must be able to read it. */
#define MODE 0644

struct hf_contact_keeper {
	struct hf_contact_keeper_options options;
	char *node, *boot_id, *path;
	/* wanted: fences need the record; known: a contact has been found since then */
	bool wanted, known;
	bool failing;
	struct hf_timer *timer;
	struct hf_call *call;
	hf_time asked_at; /* of the call */
	/* spec.renewTime of the last read; NULL: the Lease was not read since the record is wanted */
	char *renewal;
	hf_time read_at; /* send time of the last read that returned `renewal` */
};

static hf_time boot_clock(void *arg HF_UNUSED)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (hf_time)ts.tv_sec * HF_SECOND + (hf_time)ts.tv_nsec;
}

static void write_record(struct hf_contact_keeper *k, hf_time at)
{
	struct hf_contact contact = {.at_ms = (uint64_t)(at / HF_MS)};
	char text[HF_CONTACT_BYTES_MAX];
	struct hf_error err;
	size_t len;
	int rc;

	snprintf(contact.boot_id, sizeof(contact.boot_id), "%s", k->boot_id);
	len = hf_contact_format(&contact, text);
	rc = hf_fs_write_atomic(k->path, text, len, MODE, &err);
	if ((rc != 0) != k->failing && k->options.trouble != NULL)
		k->options.trouble(k->options.arg, rc != 0 ? err.text : NULL);
	k->failing = rc != 0;
	k->known |= rc == 0;
}

static void take_renewal(struct hf_contact_keeper *k, const char *renewal)
{
	bool moved = k->renewal != NULL && !hf_streq(k->renewal, renewal);

	/* The last read brought an older renewTime, so the kubelet renewed the Lease after that read was sent. */
	if (moved)
		write_record(k, k->read_at);
	if (k->renewal == NULL || moved) {
		free(k->renewal);
		k->renewal = hf_xstrdup(renewal);
	}
	k->read_at = k->asked_at;
}

static void on_read(void *arg, const struct hf_reply *reply)
{
	struct hf_contact_keeper *k = arg;
	const char *renewal = NULL;

	k->call = NULL;
	if (reply->code == 0 && reply->object != NULL)
		renewal = hf_node_lease_renewal(reply->object);
	if (renewal != NULL)
		take_renewal(k, renewal);
	hf_timer_arm(k->timer,
		     k->known ? HF_CONTACT_KEEPER_LOOK_EVERY : HF_CONTACT_KEEPER_FIRST_LOOK_EVERY);
}

static void on_look_timer(void *arg)
{
	struct hf_contact_keeper *k = arg;
	const struct hf_request request = {.verb = HF_VERB_GET,
					   .resource = &hf_leases,
					   .ns = LEASE_NS,
					   .name = k->node,
					   .timeout = TIMEOUT};

	k->asked_at = k->options.clock(k->options.arg);
	k->call = hf_store_request(k->options.store, &request, on_read, k);
}

struct hf_contact_keeper *hf_contact_keeper_create(const struct hf_contact_keeper_options *options)
{
	struct hf_contact_keeper *k = hf_xcalloc(1, sizeof(*k));

	k->options = *options;
	if (k->options.clock == NULL)
		k->options.clock = boot_clock;
	k->node = hf_xstrdup(options->node);
	k->boot_id = hf_xstrdup(options->boot_id);
	k->path = hf_xstrdup(options->path);
	k->timer = hf_timer_create(options->loop, on_look_timer, k);
	return k;
}

struct hf_contact_keeper *hf_contact_keeper_destroy(struct hf_contact_keeper *k)
{
	if (k == NULL)
		return NULL;
	hf_contact_keeper_want(k, false);
	hf_timer_destroy(k->timer);
	free(k->node);
	free(k->boot_id);
	free(k->path);
	free(k);
	return NULL;
}

void hf_contact_keeper_want(struct hf_contact_keeper *k, bool wanted)
{
	if (wanted == k->wanted)
		return;
	k->wanted = wanted;
	if (wanted) {
		hf_timer_arm(k->timer, 0);
		return;
	}
	hf_timer_disarm(k->timer);
	hf_call_cancel(k->call);
	k->call = NULL;
	free(k->renewal);
	k->renewal = NULL;
	k->known = false;
}
