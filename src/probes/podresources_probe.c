/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The probe of the kubelet. It asks for the holders of devices and for allocatable devices. Output:
 * holdings, counts, and the state of detector `plugin`. Invariant: only a resource that the kubelet
 * had before can be reported as gone.
 */
#include "probes/podresources_probe.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY (10 * HF_SECOND)
#define TIMEOUT (5 * HF_SECOND)
#define POKE_EVERY (200 * HF_MS)

static const char *const default_resources[] = {"nvidia.com/gpu", "amd.com/gpu", NULL};

struct kubelet_probe {
	struct hf_probe base; /* first */
	struct hf_intake *intake;
	struct hf_kubelet_options options;
	struct hf_podresources_client *client; /* NULL: off */
	struct hf_timer *again;
	unsigned waiting; /* number of answers still missing in this look */
	bool poked;       /* look again after these answers */
	bool failed;      /* one of the questions failed */
	bool late;        /* one of the questions passed its deadline */
	bool limited;     /* an answer exceeded a limit or could not be read */
	char why[HF_INTAKE_WHY_MAX];
	hf_time began;
	bool heard;   /* the kubelet answered once */
	uint32_t had; /* a bit for each resource of the kubelet so far */
	bool gone;    /* a resource that the kubelet had is missing now */
};

static void note_why(struct kubelet_probe *p, const char *why)
{
	if (p->why[0] == '\0')
		snprintf(p->why, sizeof(p->why), "%s", why);
}

/* The plugin offers devices of this resource under another name: as instances or partitions
 * ("nvidia.com/mig-1g.10gb", "amd.com/cpx_nps4"), as shares ("nvidia.com/gpu.shared"), or under a
 * name from its configuration. */
static bool is_kin(const char *resource, const struct hf_podresources_device *d)
{
	const char *slash = strchr(resource, '/');
	size_t domain = slash != NULL ? (size_t)(slash - resource) + 1 : 0;
	const char *name = d->resource + domain;

	if (domain == 0 || strncmp(d->resource, resource, domain) != 0)
		return false;
	return hf_str_has_prefix(name, "mig-") || strstr(name, "_nps") != NULL ||
	       (hf_str_has_prefix(d->resource, resource) && d->resource[strlen(resource)] == '.') ||
	       hf_str_has_prefix(d->id, "GPU-") || hf_str_has_prefix(d->id, "MIG-");
}

static bool is_whole(const struct kubelet_probe *p, const char *resource)
{
	for (unsigned i = 0; i < HF_KUBELET_RESOURCES_MAX && p->options.resources[i]; i++)
		if (hf_streq(p->options.resources[i], resource))
			return true;
	return false;
}

/* ---- holdings --------------------------------------------------------------------------------------- */

struct known {
	struct hf_podresources_names items[HF_HEALTH_DEVICES_MAX];
	size_t len;
};

static void name_known(struct hf_intake *intake, struct known *ret_known)
{
	size_t len;
	const struct hf_health_presence *devices = hf_intake_devices(intake, &len);

	ret_known->len = 0;
	for (size_t i = 0; i < len && ret_known->len < HF_HEALTH_DEVICES_MAX; i++) {
		int64_t minor = -1;

		if (devices[i].kind != HF_HEALTH_GPU)
			continue;
		if (hf_str_has_prefix(devices[i].alias, "gpu-") &&
		    hf_str_to_i64(devices[i].alias + 4, 0, 1023, &minor, NULL) < 0)
			minor = -1;
		ret_known->items[ret_known->len++] = (struct hf_podresources_names){
			.uuid = devices[i].uuid, .address = devices[i].id, .minor = (int)minor};
	}
}

/* The name under which other probes know the device, if the plugin uses another name. */
static const char *known_as(const struct known *known, const struct hf_podresources_device *d)
{
	for (size_t i = 0; i < known->len; i++)
		if (hf_podresources_is(d, &known->items[i]))
			return hf_str_or(known->items[i].uuid, known->items[i].address);
	return d->id;
}

static bool is_named(struct hf_intake *intake, const char *id)
{
	size_t len;
	const struct hf_health_presence *devices = hf_intake_devices(intake, &len);

	for (size_t i = 0; i < len; i++)
		if (hf_streq(devices[i].id, id) || hf_streq(devices[i].alias, id))
			return true;
	return false;
}

/* True if the device's claim, id or resource shows that a probe may watch the device, such as a GPU
 * or a part of one. */
static bool may_be_watched(const struct kubelet_probe *p, const struct known *known,
			   const struct hf_podresources_device *d)
{
	if (d->claim[0] != '\0' || is_whole(p, d->resource) || known_as(known, d) != d->id ||
	    is_named(p->intake, d->id))
		return true;
	for (unsigned i = 0; i < HF_KUBELET_RESOURCES_MAX && p->options.resources[i]; i++)
		if (is_kin(p->options.resources[i], d))
			return true;
	return false;
}

/* Other plugins may have thousands of devices. If not all holdings fit, the devices of other
 * plugins are left out, because no event names them. */
static void put_holdings(struct kubelet_probe *p, const struct hf_podresources *found)
{
	bool all = found->devices_len <= HF_HOLDINGS_MAX;
	HF_AUTOFREE struct hf_holding *items = hf_xcalloc(found->devices_len + 1, sizeof(*items));
	char why[HF_INTAKE_WHY_MAX];
	struct known known;
	size_t len = 0;

	name_known(p->intake, &known);
	for (size_t i = 0; i < found->devices_len; i++) {
		const struct hf_podresources_device *d = &found->devices[i];
		struct hf_holding *h = &items[len];

		if (!all && !may_be_watched(p, &known, d))
			continue;
		len++;
		snprintf(h->ns, sizeof(h->ns), "%s", d->ns);
		snprintf(h->pod, sizeof(h->pod), "%s", d->pod);
		snprintf(h->container, sizeof(h->container), "%s", d->container);
		snprintf(h->resource, sizeof(h->resource), "%s", d->resource);
		snprintf(h->id, sizeof(h->id), "%s", known_as(&known, d));
	}
	if (hf_intake_holdings(p->intake, items, len, p->began))
		return;
	p->limited = true;
	snprintf(why, sizeof(why),
		 "PodResources: containers hold more than %d devices; the rest is ignored",
		 HF_HOLDINGS_MAX);
	note_why(p, why);
}

/* ---- kubelet and plugin --------------------------------------------------------------------------------- */

static void turn_off(struct kubelet_probe *p, const char *why)
{
	hf_intake_off(p->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, why);
	hf_intake_count(p->intake, HF_COUNT_ALLOCATABLE, -1);
}

/* The kubelet answers, but the answer exceeds a limit or cannot be read, or the kubelet refuses
 * frequent questions. That is no evidence against the kubelet, nor against devices that were seen
 * before. */
static bool is_limit(int code)
{
	return code == HF_E_TOO_LARGE || code == HF_E_BAD_REQUEST || code == HF_E_TOO_MANY;
}

static void take_error(struct kubelet_probe *p, int code, const struct hf_error *err)
{
	p->late |= code == HF_E_TIMEOUT;
	p->limited |= is_limit(code);
	p->failed |= !is_limit(code);
	note_why(p, err->text);
}

/* An earlier agent reported the resource as gone, and this agent has not seen it: it is still
 * gone. */
static bool is_gone_since_before(const struct kubelet_probe *p)
{
	return p->had == 0 && p->options.was_gone != NULL && p->options.was_gone(p->options.arg);
}

static void report_plugin(struct kubelet_probe *p)
{
	struct hf_health_sample s;

	if ((p->failed || p->limited) && !p->heard) {
		turn_off(p, p->why);
		return;
	}
	s = hf_intake_sample_of(HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, "");
	s.plugin.unreachable = p->failed;
	s.plugin.resource_gone = !p->failed && (p->gone || is_gone_since_before(p));
	if (p->limited)
		hf_intake_off(p->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, p->why);
	else
		hf_intake_heard(p->intake, HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN);
	(void)hf_intake_sample(p->intake, &s);
}

static void on_poke(struct kubelet_probe *p)
{
	p->poked = false;
	hf_timer_arm(p->again, POKE_EVERY);
}

/* Ends the look when both questions were answered or have failed. */
static void finish_look(struct kubelet_probe *p)
{
	if (--p->waiting > 0)
		return;
	if (p->late)
		hf_intake_timed_out(p->intake, HF_PROBE_KUBELET);
	else if (!p->failed)
		hf_intake_looked(p->intake, HF_PROBE_KUBELET, hf_intake_now(p->intake) - p->began);
	report_plugin(p);
	if (p->poked)
		on_poke(p);
}

static void on_list(void *arg, int code, const struct hf_podresources *found,
		    const struct hf_error *err)
{
	struct kubelet_probe *p = arg;

	if (code < 0) {
		take_error(p, code, err);
		hf_intake_holdings_unknown(p->intake);
	} else {
		p->heard = true;
		put_holdings(p, found);
	}
	finish_look(p);
}

static bool has_kin(const struct kubelet_probe *p, const struct hf_podresources *found,
		    const char *resource)
{
	for (size_t i = 0; i < found->devices_len; i++)
		if (!is_whole(p, found->devices[i].resource) &&
		    is_kin(resource, &found->devices[i]))
			return true;
	return false;
}

static void count_allocatable(struct kubelet_probe *p, const struct hf_podresources *found)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	int32_t counted = -1;
	bool cut = false;

	p->gone = false;
	for (unsigned i = 0; i < HF_KUBELET_RESOURCES_MAX && p->options.resources[i]; i++) {
		size_t here = hf_podresources_count(found, p->options.resources[i], arena);
		bool kin = has_kin(p, found, p->options.resources[i]);

		if (here > 0 || kin)
			p->had |= 1u << i;
		/* If all devices of a plugin are unhealthy, the plugin looks as if it were gone. */
		p->gone = p->gone || (here == 0 && !kin && (p->had >> i & 1));
		/* If the device plugin offers parts of devices too, its number of whole devices
		 * cannot be compared with other counts. */
		cut = cut || kin;
		if (counted < 0 && (p->had >> i & 1))
			counted = (int32_t)here;
	}
	if (is_gone_since_before(p))
		counted = 0;
	hf_intake_count(p->intake, HF_COUNT_ALLOCATABLE, cut ? HF_HEALTH_DIVIDED : counted);
}

static void on_allocatable(void *arg, int code, const struct hf_podresources *found,
			   const struct hf_error *err)
{
	struct kubelet_probe *p = arg;

	if (code == 0) {
		p->heard = true;
		count_allocatable(p, found);
	} else {
		hf_intake_count(p->intake, HF_COUNT_ALLOCATABLE, -1);
		/* Kubelets before 1.28 may lack the question for allocatable devices, and still
		 * answer List: no error. */
		if (code != HF_E_UNSUPPORTED)
			take_error(p, code, err);
	}
	finish_look(p);
}

static void ask_kubelet(void *arg)
{
	struct kubelet_probe *p = arg;
	struct hf_error err = {0};

	hf_timer_arm(p->again, p->options.every);
	if (p->waiting > 0)
		return;
	/* Wait for two answers and for the end of this function: a question that fails at once must
	 * not end the look. */
	p->waiting = 3;
	p->failed = p->late = p->limited = false;
	p->why[0] = '\0';
	p->began = hf_intake_now(p->intake);
	if (hf_podresources_list(p->client, on_list, p, &err) < 0)
		on_list(p, err.code, NULL, &err);
	if (hf_podresources_allocatable(p->client, on_allocatable, p, &err) < 0)
		on_allocatable(p, err.code, NULL, &err);
	finish_look(p);
}

/* ---- the probe ------------------------------------------------------------------------------------------ */

static void start_kubelet(struct hf_probe *probe)
{
	struct kubelet_probe *p = (struct kubelet_probe *)probe;
	struct hf_error err = {0};

	if (hf_str_is_empty(p->options.socket_path)) {
		turn_off(p, "the kubelet's PodResources are turned off");
		return;
	}
	if (hf_podresources_client_create(hf_intake_loop(p->intake), p->options.socket_path,
					  p->options.timeout, &p->client, &err) < 0) {
		turn_off(p, err.text);
		return;
	}
	p->again = hf_timer_create(hf_intake_loop(p->intake), ask_kubelet, p);
	hf_timer_arm(p->again, 0);
}

/* Looks soon: a container may have ended, and the agent waits for a new list of holdings. */
static void poke_kubelet(struct hf_probe *probe)
{
	struct kubelet_probe *p = (struct kubelet_probe *)probe;

	if (!p->client)
		return;
	if (p->waiting > 0)
		p->poked = true;
	else if (hf_timer_due(p->again) > hf_loop_mono(hf_intake_loop(p->intake)) + POKE_EVERY)
		on_poke(p);
}

static void destroy_kubelet(struct hf_probe *probe)
{
	struct kubelet_probe *p = (struct kubelet_probe *)probe;

	hf_timer_destroy(p->again);
	hf_podresources_client_destroy(p->client);
	free(p);
}

struct hf_probe *hf_kubelet_probe_create(struct hf_intake *intake,
					 const struct hf_kubelet_options *options)
{
	static const struct hf_probe_ops ops = {.name = "kubelet",
						.has_holders = true,
						.start = start_kubelet,
						.poke = poke_kubelet,
						.destroy = destroy_kubelet};
	struct kubelet_probe *p = hf_xcalloc(1, sizeof(*p));

	p->base.ops = &ops;
	p->intake = intake;
	p->options = *options;
	if (p->options.every == 0)
		p->options.every = EVERY;
	if (p->options.timeout == 0)
		p->options.timeout = TIMEOUT;
	if (!p->options.resources)
		p->options.resources = default_resources;
	return &p->base;
}
