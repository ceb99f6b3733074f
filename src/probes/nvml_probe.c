/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The probe of NVML. It asks at intervals and hands the records to nvml_samples.c. It keeps the
 * names of lost devices when a new child replaces the old one.
 */
#include "probes/nvml.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY (10 * HF_SECOND)
#define RENEW_AFTER HF_MINUTE

struct nvml_probe {
	struct hf_probe base; /* first */
	struct hf_intake *intake;
	struct hf_nvml_options options;
	struct hf_nvml_watch *watch; /* NULL: off */
	struct hf_timer *again;
	hf_time renewed_at;
	hf_time poked_at, asked_at;
	bool poked; /* a look was asked for, and has not begun */
	/* The last answer. Lost devices have the names from earlier answers. */
	struct hf_nvml_record record;
};

static void timed_out(struct nvml_probe *p)
{
	hf_intake_timed_out(p->intake, HF_PROBE_NVML);
	hf_nvml_report_silence(p->intake);
}

/* A new child must replace this one: a loaded library finds neither a lost device that came back
 * nor a driver that was loaded late. */
static bool wants_renewal(const struct hf_nvml_record *r)
{
	if (r->code != HF_NVML_OK)
		return true;
	for (size_t i = 0; i < r->devices_len; i++)
		if (r->devices[i].code != HF_NVML_OK ||
		    hf_nvml_failure(&r->devices[i]) != HF_NVML_OK)
			return true;
	return false;
}

static bool is_named(const struct hf_nvml_record *r, const char *address)
{
	for (size_t i = 0; i < r->devices_len; i++)
		if (strcmp(r->devices[i].address, address) == 0)
			return true;
	return false;
}

/* Gives lost devices the names from the answer before. A new child sees a lost device, but the
 * device no longer reports its name. The library numbers devices by their place on the bus, so with
 * the same number of devices each has its old index. */
static void keep_names(const struct hf_nvml_record *before, struct hf_nvml_record *now)
{
	if (now->count != before->count || now->devices_len != before->devices_len)
		return;
	for (size_t i = 0; i < now->devices_len; i++) {
		const struct hf_nvml_device *from = &before->devices[i];
		struct hf_nvml_device *to = &now->devices[i];

		if (to->address[0] != '\0' || is_named(now, from->address))
			continue;
		memcpy(to->address, from->address, sizeof(to->address));
		memcpy(to->uuid, from->uuid, sizeof(to->uuid));
		memcpy(to->serial, from->serial, sizeof(to->serial));
		memcpy(to->name, from->name, sizeof(to->name));
	}
}

/* Counts devices without a name. 0: there are none, or their error codes differ. */
static size_t count_nameless(const struct hf_nvml_record *r)
{
	const struct hf_nvml_device *first = NULL;
	size_t len = 0;

	for (size_t i = 0; i < r->devices_len; i++) {
		const struct hf_nvml_device *d = &r->devices[i];

		if (d->address[0] != '\0')
			continue;
		if (first && d->code != first->code)
			return 0;
		first = d;
		len++;
	}
	return len;
}

/* If the number of nameless devices equals the number of devices on the bus that NVML has not
 * named, gives them those names. */
static void name_the_rest(const struct hf_intake *intake, struct hf_nvml_record *r)
{
	const char *rest[HF_HEALTH_DEVICES_MAX];
	const struct hf_health_presence *there;
	size_t len, rest_len = 0, wanted = count_nameless(r);

	there = hf_intake_devices(intake, &len);
	for (size_t i = 0; i < len; i++)
		if (there[i].kind == HF_HEALTH_GPU && !is_named(r, there[i].id))
			rest[rest_len++] = there[i].id;
	if (wanted == 0 || wanted != rest_len ||
	    r->count != hf_intake_counted(intake, HF_COUNT_NVIDIA) ||
	    (size_t)r->count != r->devices_len)
		return;
	for (size_t i = 0; i < r->devices_len; i++)
		if (r->devices[i].address[0] == '\0')
			snprintf(r->devices[i].address, sizeof(r->devices[i].address), "%s",
				 rest[--rest_len]);
}

/* NVML's own version has the version of CUDA's interface in front: "12.570.86.15". */
static const char *library_version(const char *text)
{
	const char *dot = strchr(text, '.');

	return dot != NULL && strchr(dot + 1, '.') != NULL ? dot + 1 : text;
}

static void note_versions(struct hf_intake *intake, const struct hf_nvml_record *record)
{
	hf_intake_note_version(intake, HF_VERSION_DRIVER, record->driver);
	hf_intake_note_version(intake, HF_VERSION_LIBRARY, library_version(record->library));
	hf_intake_note_version(intake, HF_VERSION_FIRMWARE, record->firmware);
}

static void take_answer(struct nvml_probe *p, const struct hf_nvml_record *answer)
{
	struct hf_nvml_record *record = hf_xcalloc(1, sizeof(*record));
	hf_time now = hf_intake_now(p->intake);

	hf_intake_looked(p->intake, HF_PROBE_NVML, now - p->asked_at);
	*record = *answer;
	keep_names(&p->record, record);
	name_the_rest(p->intake, record);
	/* Keep the last good answer while the library returns errors. */
	if (record->code == HF_NVML_OK) {
		p->record = *record;
		hf_intake_driver_answered(p->intake, p->asked_at);
	} else if (record->code == HF_NVML_NO_LIBRARY) {
		hf_intake_driver_answered(p->intake, HF_TIME_NONE);
	}
	note_versions(p->intake, record);
	hf_nvml_report(p->intake, record);
	if (!wants_renewal(record)) {
		p->renewed_at = now;
	} else if (now - p->renewed_at >= p->options.renew_after) {
		p->renewed_at = now;
		hf_nvml_watch_renew(p->watch);
	}
	free(record);
}

static void on_outcome(void *arg, enum hf_nvml_outcome outcome, const struct hf_nvml_record *record,
		       const struct hf_error *err)
{
	struct nvml_probe *p = arg;

	switch (outcome) {
	case HF_NVML_ANSWERED: take_answer(p, record); break;
	case HF_NVML_EVENTS: hf_nvml_report(p->intake, record); break;
	case HF_NVML_TIMED_OUT: timed_out(p); break;
	case HF_NVML_FAILED: hf_nvml_off(p->intake, err->text); break;
	}
	/* The answer is older than the request for a look. */
	if (p->poked && outcome != HF_NVML_EVENTS)
		hf_timer_arm(p->again, 0);
}

static void ask_library(void *arg)
{
	struct nvml_probe *p = arg;

	if (hf_nvml_watch_ask(p->watch)) {
		p->asked_at = hf_intake_now(p->intake);
		p->poked = false;
	}
	hf_timer_arm(p->again, p->options.every);
}

static void start_nvml(struct hf_probe *probe)
{
	struct nvml_probe *p = (struct nvml_probe *)probe;

	if (!p->options.library || p->options.library[0] == '\0') {
		hf_nvml_turned_off(p->intake);
		return;
	}
	p->watch = hf_nvml_watch_create(hf_intake_loop(p->intake),
					&(struct hf_nvml_watch_options){
						.child_argv = p->options.child_argv,
						.deadline = p->options.deadline,
						.first_deadline = p->options.first_deadline,
						.backoff = p->options.backoff,
						.backoff_max = p->options.backoff_max,
						.yield = p->options.yield,
						.told = on_outcome,
						.arg = p,
					});
	p->again = hf_timer_create(hf_intake_loop(p->intake), ask_library, p);
	p->renewed_at = hf_intake_now(p->intake);
	hf_intake_driver_answered(p->intake, hf_intake_boot_at(p->intake));
	hf_timer_arm(p->again, 0);
}

/* Looks now, but at most once a second: in a flood of kernel lines, each line may ask for a
 * look. */
static void poke_nvml(struct hf_probe *probe)
{
	struct nvml_probe *p = (struct nvml_probe *)probe;
	hf_time now = hf_intake_now(p->intake);

	if (!p->watch || now - p->poked_at < HF_SECOND)
		return;
	p->poked_at = now;
	p->poked = true;
	hf_timer_arm(p->again, 0);
}

static void resume_nvml(struct hf_probe *probe)
{
	struct nvml_probe *p = (struct nvml_probe *)probe;

	if (p->watch != NULL)
		hf_nvml_watch_resume(p->watch);
}

static void destroy_nvml(struct hf_probe *probe)
{
	struct nvml_probe *p = (struct nvml_probe *)probe;

	hf_timer_destroy(p->again);
	hf_nvml_watch_destroy(p->watch);
	free(p);
}

struct hf_probe *hf_nvml_probe_create(struct hf_intake *intake,
				      const struct hf_nvml_options *options)
{
	static const struct hf_probe_ops ops = {.name = "nvml",
						.start = start_nvml,
						.poke = poke_nvml,
						.resume = resume_nvml,
						.destroy = destroy_nvml};
	struct nvml_probe *p = hf_xcalloc(1, sizeof(*p));

	p->base.ops = &ops;
	p->intake = intake;
	p->options = *options;
	if (p->options.every == 0)
		p->options.every = EVERY;
	if (p->options.renew_after == 0)
		p->options.renew_after = RENEW_AFTER;
	return &p->base;
}
