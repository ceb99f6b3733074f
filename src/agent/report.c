/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Writes the agent's knowledge as fields of DeviceHealth, of the node's conditions and of pods' conditions.
 * Input: struct hf_report.  Output: patches.  Reads no clock.
 */
#include "agent/report.h"

#include "api/device_health.h"
#include "base/arena.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long after the end of a process the log line of the fault that ended it may come. */
#define LATE_LINE (10 * HF_SECOND)
/* A detector is Stale if it has not reported for this time; the slowest detector reports each minute. */
#define STALE_AFTER (3 * HF_MINUTE)
#define REPORT_ARENA_BYTES_MAX ((size_t)16 << 20)
/* Marks a part of a shared device in the kubelet's ids: "GPU-…::3" is the fourth part. */
#define SHARE_MARK "::"

static hf_time to_wall_time(const struct hf_report *report, hf_time time)
{
	return time == HF_TIME_NONE || time == 0 ? HF_TIME_NONE
						 : hf_time_add(time, report->wall_less);
}

/* ---- the Node --------------------------------------------------------------------------------- */

static void set_time(struct hf_json *object, const char *key, hf_time time)
{
	char text[HF_TIME_TEXT_MAX];

	hf_time_format(time, text);
	hf_json_set_str(object, key, text);
}

struct hf_json *hf_report_node_patch(const struct hf_report *report)
{
	struct hf_json *root = hf_json_object(), *status = hf_json_object();
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++) {
		const struct hf_health_condition *c = &report->memory->conditions[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "type", hf_health_condition_names[i]);
		hf_json_set_str(item, "status", hf_health_truth_name(c->status));
		hf_json_set_str(item, "reason", c->reason);
		hf_json_set_str(item, "message", c->message);
		set_time(item, "lastHeartbeatTime", to_wall_time(report, report->now));
		set_time(item, "lastTransitionTime", to_wall_time(report, c->changed_at));
		hf_json_append(list, item);
	}
	hf_json_set(status, "conditions", list);
	hf_json_set(root, "status", status);
	return root;
}

/* ---- detectors --------------------------------------------------------------------------------- */

const char *hf_report_detector(const struct hf_report *report, enum hf_health_detector detector,
			       const char **ret_why)
{
	hf_time heard = hf_intake_heard_at(report->intake, detector);

	switch (hf_intake_detector(report->intake, detector, ret_why)) {
	case HF_INTAKE_UNTOLD:
		*ret_why = "no source of this detector has reported yet";
		return "Off";
	case HF_INTAKE_OFF: return "Off";
	default: break;
	}
	if (report->now - heard <= STALE_AFTER)
		return "On";
	*ret_why = "no source of this detector reported for three minutes";
	return "Stale";
}

static void list_detectors(const struct hf_report *report, struct hf_device_health *health,
			   struct hf_arena *arena)
{
	struct hf_detector_report *items =
		HF_ARENA_ARRAY(arena, struct hf_detector_report, HF_HEALTH_DETECTORS);
	size_t len = 0;

	for (size_t i = 0; i < HF_HEALTH_DETECTORS; i++) {
		enum hf_health_detector detector = (enum hf_health_detector)i;
		const char *why;

		/* The step itself makes these faults, from faults of several devices; they have no detector on the
		 * node. */
		if (detector == HF_HEALTH_PEERS)
			continue;
		items[len].name = hf_health_detector_name(detector);
		items[len].state = hf_report_detector(report, detector, &why);
		items[len].reason = why;
		items[len++].since = HF_TIME_NONE;
	}
	health->detectors.items = items;
	health->detectors.len = len;
}

/* ---- devices ----------------------------------------------------------------------------------- */

/* The id of the device: the parts of a device that several containers share have the id of the device and a mark. */
static void read_device_id(const struct hf_holder *holder, char ret_id[HF_HOLDING_ID_MAX])
{
	char *share;

	snprintf(ret_id, HF_HOLDING_ID_MAX, "%s", holder->holding.id);
	share = strstr(ret_id, SHARE_MARK);
	if (share != NULL)
		*share = '\0';
}

static bool find_mig_instance(const struct hf_report *report, const struct hf_holder *holder,
			      struct hf_mig_instance *ret_part)
{
	char id[HF_HOLDING_ID_MAX];

	read_device_id(holder, id);
	return hf_mig_instances_find(hf_intake_mig_instances(report->intake), id, ret_part);
}

const struct hf_health_device *hf_report_device_of(const struct hf_report *report,
						   const struct hf_holder *holder)
{
	const struct hf_health_device *device;
	char id[HF_HOLDING_ID_MAX], address[HF_HEALTH_DEVICE_MAX];
	struct hf_mig_instance mig;

	read_device_id(holder, id);
	if (id[0] == '\0')
		return NULL;
	device = hf_health_memory_find(report->memory, id);
	if (device == NULL && hf_health_pci_normalize(id, strlen(id), address))
		device = hf_health_memory_find(report->memory, address);
	if (device == NULL && find_mig_instance(report, holder, &mig))
		device = hf_health_memory_find(report->memory, mig.device);
	return device;
}

bool hf_report_concerns(const struct hf_report *report, const struct hf_health_notice *told,
			const struct hf_holder *holder)
{
	const struct hf_health_device *device = hf_report_device_of(report, holder);
	struct hf_mig_instance mig;

	if (device == NULL || !hf_streq(device->id, told->device))
		return false;
	return told->gpu_instance < 0 || !find_mig_instance(report, holder, &mig) ||
	       mig.instance < 0 || mig.instance == told->gpu_instance;
}

static const char *severity_text(enum hf_health_severity severity)
{
	return severity == HF_HEALTH_UNSAID ? NULL : hf_health_severity_name(severity);
}

/* Sorts faults: those that act first, then by class.  So a list that is cut off loses the mildest. */
static int by_weight(const void *left, const void *right)
{
	const struct hf_health_fault *a = *(const struct hf_health_fault *const *)left;
	const struct hf_health_fault *b = *(const struct hf_health_fault *const *)right;
	bool a_acts = hf_health_fault_acts(a), b_acts = hf_health_fault_acts(b);

	if (a_acts != b_acts)
		return a_acts ? -1 : 1;
	if (a->cls != b->cls)
		return a->cls > b->cls ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void list_faults(const struct hf_report *report, const struct hf_health_device *d,
			struct hf_device_report *out, struct hf_arena *arena)
{
	const struct hf_health_fault *sorted[HF_HEALTH_FAULTS_MAX] = {NULL};
	size_t len = 0;

	for (size_t i = 0; i < d->faults_len; i++)
		if (d->faults[i].open)
			sorted[len++] = &d->faults[i];
	qsort(sorted, len, sizeof(sorted[0]), by_weight);
	out->faults.items = HF_ARENA_ARRAY(arena, struct hf_device_fault, len);
	out->faults.len = len;
	for (size_t i = 0; i < len; i++) {
		const struct hf_health_fault *f = sorted[i];

		out->faults.items[i] = (struct hf_device_fault){
			.detector = hf_health_detector_name(f->detector),
			.code = f->code,
			.subcode = f->subcode,
			.severity = severity_text(f->severity),
			.cls = hf_health_class_name(f->cls),
			.action = hf_health_action_name(f->action),
			.unit = f->unit,
			.line = f->line,
			.first = to_wall_time(report, f->opened_at),
			.last = to_wall_time(report, f->last),
			.count = (int64_t)f->count,
			.acts = hf_health_fault_acts(f),
		};
	}
}

/* Finds the device of each holder once: there may be thousands of holders, but only dozens of devices. */
static const struct hf_health_device **held_devices(const struct hf_report *report,
						    struct hf_arena *arena)
{
	const struct hf_health_device **held =
		HF_ARENA_ARRAY(arena, const struct hf_health_device *, report->holders_len + 1);

	for (size_t i = 0; i < report->holders_len; i++)
		held[i] = hf_report_device_of(report, &report->holders[i]);
	return held;
}

static void list_holders(const struct hf_report *report, const struct hf_health_device *d,
			 const struct hf_health_device *const *held, struct hf_device_report *out,
			 struct hf_arena *arena)
{
	size_t len = 0;

	for (size_t i = 0; i < report->holders_len; i++)
		len += held[i] == d;
	out->holders.items = HF_ARENA_ARRAY(arena, struct hf_device_holder, len);
	len = 0;
	/* Present holders come first: a list that is cut off loses past holders. */
	for (int past = 0; past < 2; past++) {
		for (size_t i = report->holders_len; i-- > 0;) {
			const struct hf_holder *h = &report->holders[i];
			struct hf_mig_instance mig;

			if ((h->until != HF_TIME_NONE) != past || held[i] != d)
				continue;
			out->holders.items[len++] = (struct hf_device_holder){
				.ns = h->holding.ns,
				.pod = h->holding.pod,
				.uid = h->uid,
				.container = h->holding.container,
				.resource = h->holding.resource,
				.resource_id = h->holding.id,
				.of_node = h->of_node,
				.until = to_wall_time(report, h->until),
			};
			if (find_mig_instance(report, h, &mig))
				continue;
			out->resource = h->holding.resource;
			out->resource_id = h->holding.id;
		}
	}
	out->holders.len = len;
}

/* A GPU on probation since the boot may be gone: until a probe has named it in this boot, nothing is known of it. */
static enum hf_health_state find_state(const struct hf_health_device *d)
{
	return d->kind == HF_HEALTH_GPU && d->state == HF_HEALTH_PROBATION && !d->seen
		       ? HF_HEALTH_UNKNOWN
		       : d->state;
}

static void write_device(const struct hf_report *report, const struct hf_health_device *d,
			 const struct hf_health_device *const *held, struct hf_device_report *out,
			 struct hf_arena *arena)
{
	const struct hf_health_fault *fault = hf_health_device_worst(d);

	*out = (struct hf_device_report){
		.id = d->id,
		.uuid = d->uuid,
		.kind = hf_health_kind_name(d->kind),
		.state = hf_health_state_name(find_state(d)),
		.cls = fault != NULL ? hf_health_class_name(fault->cls) : NULL,
		.action = fault != NULL ? hf_health_action_name(fault->action) : NULL,
		.since = to_wall_time(report, d->since),
		.hold_until = d->hold_until > report->now ? to_wall_time(report, d->hold_until)
							  : HF_TIME_NONE,
		.generation = (int64_t)d->generation,
	};
	list_faults(report, d, out, arena);
	list_holders(report, d, held, out, arena);
}

/* The order of states for the state of the node.  States that Holdfast can act on come first, the worst of them
 * first.  A device that has failed for good waits for a person, and must not hide a device that Holdfast can act
 * on. */
static const enum hf_health_state node_order[] = {
	HF_HEALTH_REMEDIATING,    HF_HEALTH_QUARANTINED, HF_HEALTH_UNHEALTHY,
	HF_HEALTH_DEGRADED_STATE, HF_HEALTH_FAILED,      HF_HEALTH_PROBATION,
	HF_HEALTH_SUSPECT,        HF_HEALTH_HEALTHY,     HF_HEALTH_UNKNOWN,
};
/* index of Failed in node_order; Holdfast can act on the states before it */
#define ORDER_FAILED 4

static size_t rank_state(enum hf_health_state state)
{
	size_t at = 0;

	while (at < HF_ARRAY_LEN(node_order) - 1 && node_order[at] != state)
		at++;
	return at;
}

/* The time of the newest fault that counts against the device; faults that are only recorded do not count. */
static hf_time get_newest_evidence(const struct hf_health_device *d)
{
	hf_time at = HF_TIME_NONE;

	for (size_t k = 0; k < d->faults_len; k++) {
		const struct hf_health_fault *f = &d->faults[k];

		if (hf_health_fault_acts(f) && f->cls >= HF_HEALTH_SOFTWARE && f->last > at)
			at = f->last;
	}
	return at;
}

/* The node gets the state of its worst device; the class and the time of the evidence come from the devices in
 * that state. */
static void write_node(const struct hf_report *report, struct hf_device_health *health)
{
	const struct hf_health_memory *m = report->memory;
	const struct hf_health_fault *strictest = NULL;
	size_t at = HF_ARRAY_LEN(node_order) - 1;
	hf_time evidence_at = HF_TIME_NONE;

	for (size_t i = 0; i < m->devices_len; i++) {
		size_t of_device = rank_state(find_state(&m->devices[i]));

		at = of_device < at ? of_device : at;
	}
	for (size_t i = 0; i < m->devices_len; i++) {
		const struct hf_health_device *d = &m->devices[i];
		const struct hf_health_fault *fault = hf_health_device_worst(d);

		if (at < ORDER_FAILED && rank_state(d->state) >= ORDER_FAILED)
			continue;
		if (fault != NULL &&
		    (strictest == NULL || hf_health_fault_is_graver(fault, strictest)))
			strictest = fault;
		if (get_newest_evidence(d) > evidence_at)
			evidence_at = get_newest_evidence(d);
	}
	health->evidence_at = to_wall_time(report, evidence_at);
	health->state = hf_health_state_name(node_order[at] == HF_HEALTH_HEALTHY &&
							     hf_health_memory_misses(m)
						     ? HF_HEALTH_UNKNOWN
						     : node_order[at]);
	if (strictest != NULL) {
		health->cls = hf_health_class_name(strictest->cls);
		health->action = hf_health_action_name(strictest->action);
	}
}

static void list_ranks(const struct hf_report *report, struct hf_device_health *health,
		       struct hf_arena *arena)
{
	health->ranks.items = HF_ARENA_ARRAY(arena, struct hf_rank_report, report->ranks_len + 1);
	health->ranks.len = report->ranks_len;
	for (size_t i = 0; i < report->ranks_len; i++) {
		struct hf_rank_report *rank = &health->ranks.items[i];

		*rank = report->ranks[i];
		rank->advanced_at = to_wall_time(report, rank->advanced_at);
		rank->heard_at = to_wall_time(report, rank->heard_at);
	}
}

static void set_processes(struct hf_json *status, const struct hf_report *report)
{
	hf_json_set(status, "processes",
		    hf_process_entries_json(report->processes, report->processes_len,
					    report->wall_less));
}

struct hf_json *hf_report_device_patch(const struct hf_report *report)
{
	const struct hf_health_memory *m = report->memory;
	HF_AUTO_ARENA arena = hf_arena_create(REPORT_ARENA_BYTES_MAX);
	struct hf_json *root = hf_json_object(), *status;
	struct hf_device_health health = {
		.node = report->node,
		.observed_at = to_wall_time(report, report->reaches),
		.driver_at = to_wall_time(report, hf_intake_driver_at(report->intake)),
		.driver_version = hf_intake_version_of(report->intake, HF_VERSION_DRIVER),
		.library_version = hf_intake_version_of(report->intake, HF_VERSION_LIBRARY),
		.module_version = hf_intake_version_of(report->intake, HF_VERSION_MODULE),
		.firmware_version = hf_intake_version_of(report->intake, HF_VERSION_FIRMWARE),
		.boot_id = m->boot_id,
		.agent_version = HF_VERSION,
		.evidence_at = HF_TIME_NONE,
		.lost_records = (int64_t)report->lost,
		.dropped_devices = (int64_t)(m->faults_dropped + hf_intake_refused(report->intake)),
		.history_lost = m->doubted,
	};
	const struct hf_health_device **held;
	char rules[24];

	snprintf(rules, sizeof(rules), "%016" PRIx64, m->rules_hash);
	health.rules_hash = rules;
	held = held_devices(report, arena);
	write_node(report, &health);
	list_detectors(report, &health, arena);
	health.devices.items = HF_ARENA_ARRAY(arena, struct hf_device_report, m->devices_len);
	health.devices.len = m->devices_len;
	for (size_t i = 0; i < m->devices_len; i++)
		write_device(report, &m->devices[i], held, &health.devices.items[i], arena);
	list_ranks(report, &health, arena);
	health.fences.items = HF_ARENA_ARRAY(arena, struct hf_fence_report, report->fences_len + 1);
	health.fences.len = report->fences_len;
	for (size_t i = 0; i < report->fences_len; i++)
		health.fences.items[i] = report->fences[i];
	status = hf_device_health_status(&health);
	if (report->processes_known)
		set_processes(status, report);
	hf_json_set(root, "status", status);
	return root;
}

struct hf_json *hf_report_processes_patch(const struct hf_report *report)
{
	struct hf_json *root = hf_json_object(), *status = hf_json_object();

	set_processes(status, report);
	hf_json_set(root, "status", status);
	return root;
}

/* ---- pods --------------------------------------------------------------------------------------- */

static bool is_covered(const struct hf_health_device *device)
{
	for (size_t i = 0; i < device->faults_len; i++)
		if (device->faults[i].open && device->faults[i].covered)
			return true;
	return false;
}

/* Whether the fault "fewer devices counted" is explained by a known device: one that fell off the bus, or that a
 * failed PCIe port has cut off. */
static bool is_node_known(const struct hf_report *report)
{
	for (size_t i = 1; i < report->memory->devices_len; i++) {
		const struct hf_health_device *d = &report->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++)
			if (d->faults[k].open &&
			    (d->faults[k].detector == HF_HEALTH_BUSLOST ||
			     hf_health_fault_is_of_port(&d->faults[k])) &&
			    hf_health_is_out(d->state))
				return true;
	}
	return false;
}

/* Whether a fault of the node stops the holders of this device.  A fault that several devices share stops the
 * holders of those devices.  A missing device stops its own holder, if the device is known.  Any other fault of
 * the node stops all holders. */
static bool is_stopped_by_node(const struct hf_report *report, const struct hf_health_device *node,
			       const struct hf_health_device *device)
{
	if (!hf_health_is_out(node->state))
		return false;
	for (size_t i = 0; i < node->faults_len; i++) {
		const struct hf_health_fault *f = &node->faults[i];

		if (hf_health_fault_acts(f) && hf_health_is_fatal(f->cls) &&
		    f->detector != HF_HEALTH_PEERS &&
		    !(f->detector == HF_HEALTH_COUNT && is_node_known(report)))
			return true;
	}
	return node->state != HF_HEALTH_UNHEALTHY || is_covered(device);
}

const struct hf_health_device *hf_report_sick_device(const struct hf_report *report,
						     const struct hf_holder *h)
{
	const struct hf_health_device *device = hf_report_device_of(report, h);
	const struct hf_health_device *node = hf_health_memory_find(report->memory, "");

	if (device == NULL)
		return NULL;
	if (!hf_health_is_out(device->state) && node != NULL &&
	    is_stopped_by_node(report, node, device))
		device = node;
	if (!hf_health_is_out(device->state))
		return NULL;
	return h->until == HF_TIME_NONE || device->since <= h->until + LATE_LINE ? device : NULL;
}

static void say_sick(const struct hf_health_device *sick, struct hf_pod_verdict *ret)
{
	const struct hf_health_fault *fault = hf_health_device_worst(sick);
	const char *cls = hf_health_class_name(fault != NULL ? fault->cls : HF_HEALTH_NONE);
	int32_t instance = fault != NULL ? hf_health_fault_instance(fault) : -1;
	char about[64] = "", where[32] = "";

	ret->condition = HF_POD_SICK;
	hf_device_reason(fault != NULL ? cls : "out-of-service", ret->reason);
	if (instance >= 0)
		snprintf(where, sizeof(where), " in GPU instance %d", instance);
	if (fault != NULL)
		snprintf(about, sizeof(about), ": %s %d%s",
			 hf_health_detector_name(fault->detector), fault->code, where);
	snprintf(ret->message, sizeof(ret->message), "%s is %s%s",
		 sick->id[0] != '\0' ? sick->id : "the node", hf_health_state_name(sick->state),
		 about);
}

void hf_report_pod(const struct hf_report *report, size_t first, struct hf_pod_verdict *ret)
{
	const struct hf_holder *of = &report->holders[first];
	const struct hf_health_device *sick = NULL;
	bool holds = false, unknown = false;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < report->holders_len && sick == NULL; i++) {
		const struct hf_holder *h = &report->holders[i];

		if (!hf_streq(h->uid, of->uid) || !hf_streq(h->holding.pod, of->holding.pod) ||
		    !hf_streq(h->holding.ns, of->holding.ns))
			continue;
		sick = hf_report_sick_device(report, h);
		if (h->until != HF_TIME_NONE)
			continue;
		const struct hf_health_device *device = hf_report_device_of(report, h);

		/* A device in the state Unknown is no recovery: the fault against it may be one of the node. */
		unknown |= device == NULL || device->state == HF_HEALTH_UNKNOWN;
		holds = true;
	}
	if (sick != NULL) {
		say_sick(sick, ret);
	} else if (holds && !unknown) {
		ret->condition = HF_POD_WELL;
		snprintf(ret->reason, sizeof(ret->reason), "Recovered");
		snprintf(ret->message, sizeof(ret->message), "all its devices work");
	}
}

struct hf_json *hf_report_pod_patch(const struct hf_pod_verdict *verdict, const char *uid,
				    hf_time wall)
{
	struct hf_json *root = hf_json_object(), *meta = hf_json_object();
	struct hf_json *status = hf_json_object(), *list = hf_json_array();
	struct hf_json *item = hf_json_object();

	/* The UID in the patch guards against another pod with the same name. */
	hf_json_set_str(meta, "uid", uid);
	hf_json_set(root, "metadata", meta);
	hf_json_set_str(item, "type", HF_POD_COND_DEVICE_HEALTHY);
	hf_json_set_str(item, "status", verdict->condition == HF_POD_SICK ? "False" : "True");
	hf_json_set_str(item, "reason", verdict->reason);
	hf_json_set_str(item, "message", verdict->message);
	set_time(item, "lastTransitionTime", wall);
	hf_json_append(list, item);
	hf_json_set(status, "conditions", list);
	hf_json_set(root, "status", status);
	return root;
}
