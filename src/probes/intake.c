/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The lists that probes fill and that a step of the brain (src/health) takes. Invariants: every
 * text is printable and within its limit; an item is never dropped without a count or a refusal;
 * times never go back.
 */
#include "probes/intake.h"

#include "base/mem.h"
#include "base/str.h"
#include "probes/unplaced_evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most pieces of evidence, and most samples, that the intake gathers for one step. What does not
 * fit is refused, and the probe delivers the refused items again later. */
#define EVIDENCE_MAX HF_HEALTH_INPUT_MAX
#define SAMPLES_MAX HF_HEALTH_INPUT_MAX
/* Memory for this number of items is kept between two steps; memory for a flood is freed. */
#define KEPT_MAX 64
#define LOAD_FRESH HF_MINUTE
/* Delay of an Xid that NVML reports: long enough for several looks at the kernel's log. */
#define SECOND_AFTER (2 * HF_SECOND)

struct way {
	enum hf_intake_state state;
	hf_time heard_at;
	bool heard; /* the detector looked since the last step */
	char why[HF_INTAKE_WHY_MAX];
};

struct load {
	char device[HF_HEALTH_UUID_MAX];
	uint32_t percent;
	hf_time at;
};

struct hf_intake {
	struct hf_intake_options options;
	struct hf_health_presence devices[HF_HEALTH_DEVICES_MAX];
	size_t devices_len;
	struct hf_unplaced_evidence *unplaced;
	struct hf_mig_instances *mig_instances;
	uint64_t mig_instances_version;
	struct way ways[HF_HEALTH_SOURCES][HF_HEALTH_DETECTORS];
	uint64_t states_version, holdings_version;
	struct hf_health_heard heard[HF_HEALTH_SOURCES * HF_HEALTH_DETECTORS];
	struct hf_health_evidence *evidence;
	size_t evidence_len, evidence_cap;
	/* NVML's evidence, which waits for the line of the kernel's log; NULL: none came yet */
	struct hf_health_evidence *held;
	size_t held_len;
	struct hf_timer *held_timer;
	struct hf_health_sample *samples;
	size_t samples_len, samples_cap;
	int32_t counts[HF_COUNTS], counts_last[HF_COUNTS];
	struct load loads[HF_HEALTH_DEVICES_MAX];
	size_t loads_len;
	struct hf_holding *holdings;
	size_t holdings_len;
	hf_time holdings_at;
	bool holdings_known, holdings_cut;
	bool news;
	uint64_t refused[HF_INTAKE_REFUSED_MAX]; /* hashes of refused device ids */
	size_t refused_len;
	struct remembered {
		char id[HF_HEALTH_DEVICE_MAX], address[HF_HEALTH_DEVICE_MAX];
	} before[HF_HEALTH_DEVICES_MAX];
	size_t before_len;
	char driven[HF_HEALTH_DEVICES_MAX][HF_HEALTH_DEVICE_MAX];
	size_t driven_len;
	hf_time looked_at[HF_PROBES];
	hf_time driver_at;
	char versions[HF_VERSIONS][HF_INTAKE_VERSION_MAX];
	/* metrics of the probes' looks; NULL: the agent has no metrics */
	struct hf_family *seconds, *timeouts;
};

const char *hf_intake_probe_name(enum hf_intake_probe probe)
{
	static const char *const names[HF_PROBES] = {"nvml", "sysfs-devices", "sysfs-ports",
						     "kubelet"};

	return names[probe];
}

static void create_metrics(struct hf_intake *intake)
{
	static const struct hf_metric_options seconds = {
		.name = "holdfast_agent_probe_seconds",
		.help = "Duration of an answered look, by probe.",
		.type = HF_METRIC_HISTOGRAM,
		.labels = {"probe"},
		.buckets = {0.001, 0.005, 0.025, 0.1, 0.5, 2, 10, 30},
	};
	static const struct hf_metric_options timeouts = {
		.name = "holdfast_agent_probe_timeouts_total",
		.help = "Looks that passed their deadline, by probe.",
		.type = HF_METRIC_COUNTER,
		.labels = {"probe"},
	};

	intake->seconds = hf_metrics_family(intake->options.metrics, &seconds);
	intake->timeouts = hf_metrics_family(intake->options.metrics, &timeouts);
	for (size_t i = 0; i < HF_PROBES; i++)
		hf_family_add(intake->timeouts, 0, hf_intake_probe_name((enum hf_intake_probe)i),
			      NULL);
}

struct hf_intake *hf_intake_create(const struct hf_intake_options *options)
{
	struct hf_intake *intake = hf_xcalloc(1, sizeof(*intake));

	hf_assert(options->news != NULL);
	intake->options = *options;
	intake->mig_instances = hf_mig_instances_create();
	intake->unplaced = hf_unplaced_evidence_create(hf_intake_now(intake));
	for (size_t s = 0; s < HF_HEALTH_SOURCES; s++)
		for (size_t d = 0; d < HF_HEALTH_DETECTORS; d++)
			intake->ways[s][d].heard_at = HF_TIME_NONE;
	intake->holdings_at = HF_TIME_NONE;
	for (size_t i = 0; i < HF_COUNTS; i++)
		intake->counts[i] = intake->counts_last[i] = -1;
	for (size_t i = 0; i < HF_PROBES; i++)
		intake->looked_at[i] = HF_TIME_NONE;
	intake->driver_at = HF_TIME_NONE;
	if (options->metrics != NULL)
		create_metrics(intake);
	return intake;
}

struct hf_intake *hf_intake_destroy(struct hf_intake *intake)
{
	if (intake == NULL)
		return NULL;
	hf_timer_destroy(intake->held_timer);
	hf_mig_instances_destroy(intake->mig_instances);
	hf_unplaced_evidence_destroy(intake->unplaced);
	free(intake->held);
	free(intake->evidence);
	free(intake->samples);
	free(intake->holdings);
	free(intake);
	return NULL;
}

struct hf_loop *hf_intake_loop(const struct hf_intake *intake)
{
	return intake->options.loop;
}

hf_time hf_intake_now(const struct hf_intake *intake)
{
	return hf_time_add(intake->options.boot_at, hf_loop_mono(intake->options.loop));
}

hf_time hf_intake_boot_at(const struct hf_intake *intake)
{
	return intake->options.boot_at;
}

void hf_intake_looked(struct hf_intake *intake, enum hf_intake_probe probe, hf_time took)
{
	intake->looked_at[probe] = hf_intake_now(intake);
	if (intake->seconds != NULL)
		hf_family_observe(intake->seconds, (double)took / (double)HF_SECOND,
				  hf_intake_probe_name(probe), NULL);
}

void hf_intake_timed_out(struct hf_intake *intake, enum hf_intake_probe probe)
{
	if (intake->timeouts != NULL)
		hf_family_add(intake->timeouts, 1, hf_intake_probe_name(probe), NULL);
}

hf_time hf_intake_looked_at(const struct hf_intake *intake, enum hf_intake_probe probe)
{
	return intake->looked_at[probe];
}

static void announce_news(struct hf_intake *intake, bool urgent)
{
	intake->news = true;
	intake->options.news(intake->options.arg, urgent);
}

void hf_intake_driver_answered(struct hf_intake *intake, hf_time asked_at)
{
	intake->driver_at = asked_at;
}

hf_time hf_intake_driver_at(const struct hf_intake *intake)
{
	return intake->driver_at;
}

void hf_intake_note_version(struct hf_intake *intake, enum hf_intake_version part,
			    const char *version)
{
	char text[HF_INTAKE_VERSION_MAX];

	hf_str_print(text, sizeof(text), version, strlen(version));
	if (hf_streq(intake->versions[part], text))
		return;
	memcpy(intake->versions[part], text, sizeof(text));
	intake->states_version++;
	announce_news(intake, false);
}

const char *hf_intake_version_of(const struct hf_intake *intake, enum hf_intake_version part)
{
	return intake->versions[part][0] != '\0' ? intake->versions[part] : NULL;
}

/* Replaces unprintable bytes of a text in place. The text may lack its final NUL. */
static void make_printable(char *text, size_t size)
{
	hf_str_print(text, size, text, strnlen(text, size));
}

/* ---- devices ------------------------------------------------------------------------------ */

static struct hf_health_presence *find_device(struct hf_intake *intake, const char *id)
{
	for (size_t i = 0; i < intake->devices_len; i++)
		if (hf_streq(intake->devices[i].id, id))
			return &intake->devices[i];
	return NULL;
}

static bool has_room(const struct hf_intake *intake, enum hf_health_kind kind)
{
	size_t ports = 0;

	for (size_t i = 0; i < intake->devices_len; i++)
		ports += intake->devices[i].kind == HF_HEALTH_PORT;
	return intake->devices_len < HF_HEALTH_DEVICES_MAX &&
	       (kind != HF_HEALTH_PORT || ports < HF_HEALTH_PORTS_MAX);
}

/* Gives the device this alias ("gpu-3"). Only one GPU has a number: after a reload of the driver a
 * GPU that had the number before loses it. Ports of one network card share its address as alias. */
static void take_alias(struct hf_intake *intake, struct hf_health_presence *known,
		       const char *alias)
{
	for (size_t i = 0; i < intake->devices_len && known->kind == HF_HEALTH_GPU; i++) {
		struct hf_health_presence *other = &intake->devices[i];

		if (other != known && other->kind == HF_HEALTH_GPU && hf_streq(other->alias, alias))
			memset(other->alias, 0, sizeof(other->alias));
	}
	memcpy(known->alias, alias, sizeof(known->alias));
}

static bool put_evidence(struct hf_intake *intake, const struct hf_health_evidence *evidence);

/* Delivers the evidence about the device, or about a port above it, that arrived before a probe
 * named the device. */
static void give_placed(struct hf_intake *intake, const struct hf_health_presence *device)
{
	struct hf_health_evidence evidence;

	while (hf_unplaced_evidence_take(intake->unplaced, device, &evidence))
		(void)put_evidence(intake, &evidence);
}

void hf_intake_device(struct hf_intake *intake, const struct hf_health_presence *device)
{
	struct hf_health_presence given = *device, *known, before;

	make_printable(given.id, sizeof(given.id));
	make_printable(given.uuid, sizeof(given.uuid));
	make_printable(given.alias, sizeof(given.alias));
	make_printable(given.above, sizeof(given.above));
	known = find_device(intake, given.id);
	if (given.id[0] == '\0')
		return;
	if (!known && !has_room(intake, given.kind)) {
		hf_intake_refuse(intake, given.id);
		return;
	}
	if (!known) {
		known = &intake->devices[intake->devices_len++];
		memset(known, 0, sizeof(*known));
	}
	before = *known;
	known->kind = given.kind;
	memcpy(known->id, given.id, sizeof(known->id));
	if (given.uuid[0] != '\0')
		memcpy(known->uuid, given.uuid, sizeof(known->uuid));
	if (given.alias[0] != '\0')
		take_alias(intake, known, given.alias);
	if (given.above[0] != '\0')
		memcpy(known->above, given.above, sizeof(known->above));
	if (memcmp(&before, known, sizeof(before)) == 0)
		return;
	announce_news(intake, false);
	give_placed(intake, known);
}

void hf_intake_mig_instance(struct hf_intake *intake, const struct hf_mig_instance *mig)
{
	struct hf_mig_instance given = *mig;

	make_printable(given.name, sizeof(given.name));
	make_printable(given.device, sizeof(given.device));
	if (!hf_mig_instances_add(intake->mig_instances, &given, hf_intake_now(intake)))
		return;
	intake->mig_instances_version++;
	announce_news(intake, false);
}

const struct hf_mig_instances *hf_intake_mig_instances(const struct hf_intake *intake)
{
	return intake->mig_instances;
}

uint64_t hf_intake_mig_instances_version(const struct hf_intake *intake)
{
	return intake->mig_instances_version;
}

void hf_intake_remember(struct hf_intake *intake, const char *id, const char *address)
{
	struct remembered *to;

	if (intake->before_len == HF_HEALTH_DEVICES_MAX)
		return;
	to = &intake->before[intake->before_len++];
	hf_str_print(to->id, sizeof(to->id), id, strlen(id));
	hf_str_print(to->address, sizeof(to->address), address, strlen(address));
}

bool hf_intake_remembers(const struct hf_intake *intake, size_t i, const char **ret_id,
			 const char **ret_address)
{
	if (i >= intake->before_len)
		return false;
	*ret_id = intake->before[i].id;
	*ret_address = intake->before[i].address;
	return true;
}

void hf_intake_driven(struct hf_intake *intake, const char *id)
{
	if (intake->driven_len < HF_HEALTH_DEVICES_MAX)
		hf_str_print(intake->driven[intake->driven_len++], HF_HEALTH_DEVICE_MAX, id,
			     strlen(id));
}

bool hf_intake_was_driven(const struct hf_intake *intake, const char *id)
{
	for (size_t i = 0; i < intake->driven_len; i++)
		if (hf_streq(intake->driven[i], id))
			return true;
	return false;
}

void hf_intake_refuse(struct hf_intake *intake, const char *id)
{
	uint64_t hash = hf_hash_str(id);

	for (size_t i = 0; i < intake->refused_len; i++)
		if (intake->refused[i] == hash)
			return;
	if (intake->refused_len == HF_INTAKE_REFUSED_MAX)
		return;
	intake->refused[intake->refused_len++] = hash;
	/* DeviceHealth shows the number of refused devices. */
	intake->states_version++;
	announce_news(intake, false);
}

size_t hf_intake_refused(const struct hf_intake *intake)
{
	return intake->refused_len;
}

const struct hf_health_presence *hf_intake_devices(const struct hf_intake *intake, size_t *ret_len)
{
	*ret_len = intake->devices_len;
	return intake->devices;
}

/* ---- which detectors can see devices ------------------------------------------------------ */

static struct way *get_way(struct hf_intake *intake, enum hf_health_source source,
			   enum hf_health_detector detector)
{
	hf_assert(source < HF_HEALTH_SOURCES && detector < HF_HEALTH_DETECTORS);
	return &intake->ways[source][detector];
}

void hf_intake_heard(struct hf_intake *intake, enum hf_health_source source,
		     enum hf_health_detector detector)
{
	struct way *way = get_way(intake, source, detector);

	way->heard_at = hf_intake_now(intake);
	way->heard = true;
	if (way->state != HF_INTAKE_OK) {
		way->state = HF_INTAKE_OK;
		way->why[0] = '\0';
		intake->states_version++;
	}
	announce_news(intake, false);
}

void hf_intake_off(struct hf_intake *intake, enum hf_health_source source,
		   enum hf_health_detector detector, const char *why)
{
	struct way *way = get_way(intake, source, detector);
	char text[HF_INTAKE_WHY_MAX];

	hf_str_print(text, sizeof(text), why, strlen(why));
	if (way->state == HF_INTAKE_OFF && hf_streq(way->why, text))
		return;
	way->state = HF_INTAKE_OFF;
	memcpy(way->why, text, sizeof(text));
	intake->states_version++;
	announce_news(intake, false);
}

enum hf_intake_state hf_intake_state(const struct hf_intake *intake, enum hf_health_source source,
				     enum hf_health_detector detector, const char **ret_why)
{
	const struct way *way = &intake->ways[source][detector];

	*ret_why = way->why;
	return way->state;
}

enum hf_intake_state hf_intake_detector(const struct hf_intake *intake,
					enum hf_health_detector detector, const char **ret_why)
{
	enum hf_intake_state state = HF_INTAKE_UNTOLD;

	*ret_why = "";
	for (size_t s = 0; s < HF_HEALTH_SOURCES; s++) {
		const struct way *way = &intake->ways[s][detector];

		if (way->state == HF_INTAKE_OK) {
			*ret_why = "";
			return HF_INTAKE_OK;
		}
		if (way->state == HF_INTAKE_OFF && state == HF_INTAKE_UNTOLD) {
			state = HF_INTAKE_OFF;
			*ret_why = way->why;
		}
	}
	return state;
}

hf_time hf_intake_heard_at(const struct hf_intake *intake, enum hf_health_detector detector)
{
	hf_time at = HF_TIME_NONE;

	for (size_t s = 0; s < HF_HEALTH_SOURCES; s++)
		if (intake->ways[s][detector].heard_at > at)
			at = intake->ways[s][detector].heard_at;
	return at;
}

uint64_t hf_intake_states_version(const struct hf_intake *intake)
{
	return intake->states_version;
}

/* ---- samples and evidence ----------------------------------------------------------------- */

/* Makes room for one more item. NULL: the list is at its limit. */
static void *grow_list(void *items, size_t len, size_t *cap, size_t most, size_t size)
{
	if (len == most)
		return NULL;
	if (len < *cap)
		return items;
	*cap = *cap == 0 ? KEPT_MAX : 2 * *cap;
	return hf_xrealloc(items, *cap * size);
}

struct hf_health_sample hf_intake_sample_of(enum hf_health_source source,
					    enum hf_health_detector detector, const char *device)
{
	struct hf_health_sample s;

	memset(&s, 0, sizeof(s));
	s.detector = detector;
	s.source = source;
	s.at = HF_TIME_NONE;
	s.supported = true;
	snprintf(s.device, sizeof(s.device), "%s", device);
	return s;
}

bool hf_intake_sample(struct hf_intake *intake, const struct hf_health_sample *sample)
{
	struct hf_health_sample *to = grow_list(intake->samples, intake->samples_len,
						&intake->samples_cap, SAMPLES_MAX, sizeof(*to));

	if (to == NULL) {
		announce_news(intake, true);
		return false;
	}
	intake->samples = to;
	to += intake->samples_len++;
	memcpy(to, sample, sizeof(*to));
	make_printable(to->device, sizeof(to->device));
	if (to->at == HF_TIME_NONE)
		to->at = hf_intake_now(intake);
	announce_news(intake, intake->samples_len == SAMPLES_MAX);
	return true;
}

static bool put_evidence(struct hf_intake *intake, const struct hf_health_evidence *evidence)
{
	struct hf_health_evidence *to = grow_list(intake->evidence, intake->evidence_len,
						  &intake->evidence_cap, EVIDENCE_MAX, sizeof(*to));

	if (to != NULL) {
		intake->evidence = to;
		to += intake->evidence_len++;
		memcpy(to, evidence, sizeof(*to));
		make_printable(to->device, sizeof(to->device));
		make_printable(to->unit, sizeof(to->unit));
		make_printable(to->line, sizeof(to->line));
		if (to->at == HF_TIME_NONE)
			to->at = hf_intake_now(intake);
	}
	announce_news(intake, true);
	return to != NULL;
}

bool hf_intake_evidence(struct hf_intake *intake, const struct hf_health_evidence *evidence)
{
	struct hf_health_evidence dated;

	if (!hf_unplaced_evidence_is_kept(evidence))
		return put_evidence(intake, evidence);
	dated = *evidence;
	if (dated.at == HF_TIME_NONE)
		dated.at = hf_intake_now(intake);
	/* Deliver the evidence at once as well if an earlier agent knew devices: the brain then may
	 * know this device although no probe has named it yet. */
	if (hf_unplaced_evidence_keep(intake->unplaced, &dated, intake->devices,
				      intake->devices_len, hf_intake_now(intake)) &&
	    intake->before_len == 0)
		return true;
	return put_evidence(intake, &dated);
}

static void on_held(void *arg)
{
	struct hf_intake *intake = arg;
	hf_time due = hf_intake_now(intake) - SECOND_AFTER;
	size_t given = 0;

	/* If the intake refuses an item now, it has room for it after the next step. */
	while (given < intake->held_len && intake->held[given].at <= due &&
	       hf_intake_evidence(intake, &intake->held[given]))
		given++;
	intake->held_len -= given;
	memmove(intake->held, intake->held + given, intake->held_len * sizeof(*intake->held));
	if (intake->held_len > 0)
		hf_timer_arm(intake->held_timer,
			     intake->held[0].at > due ? intake->held[0].at - due : HF_SECOND);
}

void hf_intake_second(struct hf_intake *intake, const struct hf_health_evidence *evidence)
{
	const struct way *kernel = &intake->ways[HF_HEALTH_BY_KMSG][evidence->detector];

	if (kernel->state != HF_INTAKE_OK || intake->held_len == HF_INTAKE_HELD_MAX) {
		(void)hf_intake_evidence(intake, evidence);
		return;
	}
	if (intake->held == NULL) {
		intake->held = hf_xcalloc(HF_INTAKE_HELD_MAX, sizeof(*intake->held));
		intake->held_timer = hf_timer_create(intake->options.loop, on_held, intake);
	}
	memcpy(&intake->held[intake->held_len], evidence, sizeof(*evidence));
	intake->held[intake->held_len++].at = hf_intake_now(intake);
	if (!hf_timer_armed(intake->held_timer))
		hf_timer_arm(intake->held_timer, SECOND_AFTER);
}

/* ---- counts and loads --------------------------------------------------------------------- */

void hf_intake_count(struct hf_intake *intake, enum hf_intake_count which, int32_t count)
{
	hf_assert(which < HF_COUNTS);
	intake->counts[which] = count < 0 && count != HF_HEALTH_DIVIDED ? -1 : count;
	if (count >= 0)
		intake->counts_last[which] = count;
}

int32_t hf_intake_counted(const struct hf_intake *intake, enum hf_intake_count which)
{
	return intake->counts[which];
}

int32_t hf_intake_counted_last(const struct hf_intake *intake, enum hf_intake_count which)
{
	return intake->counts_last[which];
}

static const char *find_id(const struct hf_intake *intake, const char *device)
{
	for (size_t i = 0; i < intake->devices_len; i++) {
		const struct hf_health_presence *known = &intake->devices[i];

		if (device[0] != '\0' &&
		    (hf_streq(known->uuid, device) || hf_streq(known->alias, device)))
			return known->id;
	}
	return device;
}

void hf_intake_load(struct hf_intake *intake, const char *device, uint32_t percent)
{
	const char *id = find_id(intake, device);
	size_t at = 0;

	while (at < intake->loads_len && !hf_streq(intake->loads[at].device, id))
		at++;
	if (at == HF_HEALTH_DEVICES_MAX)
		return;
	if (at == intake->loads_len) {
		hf_str_print(intake->loads[at].device, sizeof(intake->loads[at].device), id,
			     strlen(id));
		intake->loads_len++;
	}
	intake->loads[at].percent = percent;
	intake->loads[at].at = hf_intake_now(intake);
}

bool hf_intake_load_of(const struct hf_intake *intake, const char *device, uint32_t *ret_percent)
{
	const char *id = find_id(intake, device);

	for (size_t i = 0; i < intake->loads_len; i++) {
		if (!hf_streq(intake->loads[i].device, id))
			continue;
		if (hf_intake_now(intake) - intake->loads[i].at > LOAD_FRESH)
			return false;
		*ret_percent = intake->loads[i].percent;
		return true;
	}
	return false;
}

/* ---- holdings ----------------------------------------------------------------------------- */

int hf_holding_order(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(struct hf_holding));
}

/* Removes repeated entries: two shares of one device have the same name here. */
static size_t without_repeats(struct hf_holding *list, size_t len)
{
	size_t kept = 0;

	for (size_t i = 0; i < len; i++)
		if (i == 0 || hf_holding_order(&list[i], &list[kept - 1]) != 0)
			list[kept++] = list[i];
	return kept;
}

bool hf_intake_holdings(struct hf_intake *intake, const struct hf_holding *items, size_t len,
			hf_time asked_at)
{
	struct hf_holding *list;
	bool cut;

	intake->holdings_at = asked_at;
	list = hf_xcalloc(len + 1, sizeof(*list));
	for (size_t i = 0; i < len; i++) {
		list[i] = items[i];
		make_printable(list[i].ns, sizeof(list[i].ns));
		make_printable(list[i].pod, sizeof(list[i].pod));
		make_printable(list[i].container, sizeof(list[i].container));
		make_printable(list[i].resource, sizeof(list[i].resource));
		make_printable(list[i].id, sizeof(list[i].id));
	}
	/* Sort: the kubelet lists devices in the random order of a Go map. */
	qsort(list, len, sizeof(*list), hf_holding_order);
	len = without_repeats(list, len);
	cut = len > HF_HOLDINGS_MAX;
	if (cut) {
		len = HF_HOLDINGS_MAX;
		list = hf_xrealloc(list, len * sizeof(*list));
	}
	if (!intake->holdings_known || cut != intake->holdings_cut || len != intake->holdings_len ||
	    (len > 0 && memcmp(list, intake->holdings, len * sizeof(*list)) != 0)) {
		intake->holdings_version++;
		intake->holdings_known = true;
		intake->holdings_cut = cut;
		free(intake->holdings);
		intake->holdings = list;
		intake->holdings_len = len;
		announce_news(intake, true);
		return !cut;
	}
	free(list);
	/* The list is the same. Announce it nevertheless, not as urgent: another pod with the same
	 * name may hold the devices. */
	announce_news(intake, false);
	return !cut;
}

void hf_intake_holdings_unknown(struct hf_intake *intake)
{
	if (!intake->holdings_known)
		return;
	intake->holdings_known = false;
	intake->holdings_version++;
	announce_news(intake, false);
}

uint64_t hf_intake_holdings_version(const struct hf_intake *intake)
{
	return intake->holdings_version;
}

struct hf_holdings hf_intake_holdings_get(const struct hf_intake *intake)
{
	return (struct hf_holdings){.items = intake->holdings,
				    .len = intake->holdings_len,
				    .asked_at = intake->holdings_at,
				    .known = intake->holdings_known,
				    .cut = intake->holdings_cut};
}

/* ---- input of a step ---------------------------------------------------------------------- */

void hf_intake_take(struct hf_intake *intake, struct hf_health_input *input)
{
	size_t heard = 0;

	for (size_t s = 0; s < HF_HEALTH_SOURCES; s++) {
		for (size_t d = 0; d < HF_HEALTH_DETECTORS; d++) {
			const struct way *way = &intake->ways[s][d];

			if (way->heard)
				intake->heard[heard++] = (struct hf_health_heard){
					.detector = (enum hf_health_detector)d,
					.at = way->heard_at};
		}
	}
	input->heard = intake->heard;
	input->heard_len = heard;
	input->devices = intake->devices;
	input->devices_len = intake->devices_len;
	input->samples = intake->samples;
	input->samples_len = intake->samples_len;
	input->evidence = intake->evidence;
	input->evidence_len = intake->evidence_len;
}

void hf_intake_taken(struct hf_intake *intake)
{
	for (size_t s = 0; s < HF_HEALTH_SOURCES; s++)
		for (size_t d = 0; d < HF_HEALTH_DETECTORS; d++)
			intake->ways[s][d].heard = false;
	intake->samples_len = intake->evidence_len = 0;
	if (intake->samples_cap > KEPT_MAX) {
		free(hf_steal(&intake->samples));
		intake->samples_cap = 0;
	}
	if (intake->evidence_cap > KEPT_MAX) {
		free(hf_steal(&intake->evidence));
		intake->evidence_cap = 0;
	}
	intake->news = false;
}

bool hf_intake_is_empty(const struct hf_intake *intake)
{
	return !intake->news;
}
