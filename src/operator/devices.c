/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/device_health.h"
#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "health/straggle.h"
#include "health/types.h"
#include "operator/facts_internal.h"
#include "operator/operator_internal.h"
#include "fleet/impact.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * What agents report in DeviceHealth objects, joined with the pods that hold the devices.
 *
 * Input: DeviceHealth objects from a cache.  Output: facts about devices of pods, nodes and ranks
 * for a step.
 *
 * The cached view of an object has one row for each holder of a device, with the device's fault if
 * there is one.  For a node with eight devices the view takes about 1 KB, a tenth of the object.
 */

/* After this time without a report an agent counts as silent.  An agent without news writes every
 * six minutes, so it has missed two writes by then. */
#define AGENT_SILENT (15 * HF_MINUTE)
#define PAGE_LIMIT 100
/* The most bytes of a process's cause of termination, which is one word. */
#define CAUSE_LEN_MAX 63

/* A device that a container has now, or had. */
struct row {
	const char *ns, *pod, *uid; /* uid is "" if the agent did not know the pod's UID */
	const char *device;
	/* class of the device's fault; NULL: no fault counts against the device */
	const char *cls;
	bool fatal, over, held;
	hf_time first, last; /* when the fault was first and last seen, by the node's clock */
	/* when the pod released the device, by the node's clock; NONE: not released */
	hf_time until;
};

/* A training process that reports. */
struct rank_row {
	const char *uid, *group;
	bool advancing, silent;
	bool done; /* the rank has reached its last step; the work after that has no steps */
	int64_t own_us, step;
	hf_time advanced, heard; /* the node's clock */
};

/* A report on the program of a pod that runs under exec. */
struct process_row {
	const char *uid, *job;
	struct hf_process_seen seen;
};

/* A pod that fences itself. */
struct fence_row {
	const char *uid;
	int32_t seconds;
};

struct device_view {
	hf_time heard_at;    /* monotonic: a time at which the agent had written this report */
	hf_time reported_at; /* like heard_at, but only if the write was seen; NONE: not yet */
	hf_time observed_at; /* the node's clock */
	hf_time mended_at;   /* the last act that mended the node, operator's clock; NONE: no act */
	bool out;            /* at least one device of the node is unusable */
	bool withheld;       /* if `out`: no pod can be given an unusable device anew */
	/* if `out`: when the last unusable device failed, by the node's clock; NONE: not
	 * reported.  If some are withheld and others are not: the last of the others */
	hf_time out_since;
	struct rank_row *ranks;
	size_t ranks_len;
	struct fence_row *fences;
	size_t fences_len;
	struct process_row *processes;
	size_t processes_len;
	size_t len;
	/* one row for each device of a container; the rows' texts are stored behind the last row */
	struct row rows[];
};

struct hf_devices {
	struct hf_operator *op;
	struct hf_cache *cache;
	bool unseen; /* the CRD is missing, or the right to read it */
	char **sick; /* names of the nodes with an unusable device, sorted */
	size_t sick_len, sick_cap;
};

/* --- the fault that counts against a device --------------------------------------------------- */

static enum hf_health_class class_of(const char *name)
{
	enum hf_health_class cls;

	return hf_health_class_of(hf_str_or(name, ""), &cls) ? cls : HF_HEALTH_NONE;
}

/* The fault that decides about the device.  If the device is out of use: the strictest fatal fault
 * that acts.  Else: the strictest fault that degrades it, then the strictest fatal fault that is
 * over.  NULL: none of these. */
static const struct hf_device_fault *find_deciding_fault(const struct hf_device_report *device)
{
	enum hf_health_state state = hf_impact_state(device->state);
	const struct hf_device_fault *found = NULL;
	int rank = 0;

	for (size_t i = 0; i < device->faults.len; i++) {
		const struct hf_device_fault *fault = &device->faults.items[i];
		enum hf_health_class cls = class_of(fault->cls);
		int mine = 0;

		if (fault->acts && hf_health_is_out(state) && hf_health_is_fatal(cls))
			mine = 200 + (int)cls;
		else if (fault->acts && state != HF_HEALTH_SUSPECT && hf_health_is_weak(cls))
			mine = 100 + (int)cls;
		else if (!fault->acts && hf_health_is_fatal(cls))
			mine = (int)cls;
		if (mine > rank) {
			rank = mine;
			found = fault;
		}
	}
	return found;
}

static struct row judge_device(const struct hf_device_report *device)
{
	const struct hf_device_fault *fault = find_deciding_fault(device);
	bool out = hf_health_is_out(hf_impact_state(device->state));
	struct row row = {.device = hf_str_is_empty(device->id) ? "node" : device->id,
			  .fatal = out,
			  .first = out ? device->since : HF_TIME_NONE,
			  .last = HF_TIME_NONE};

	if (fault != NULL) {
		row.cls = fault->cls;
		row.fatal = hf_health_is_fatal(class_of(fault->cls));
		row.over = !fault->acts;
		row.first = fault->first;
		row.last = fault->last;
	}
	/* A device may be out of use by the number of its faults, or its fault had no room in the
	 * report. It counts as unusable all the same. */
	if (out && (fault == NULL || !row.fatal || row.over)) {
		row.cls =
			class_of(device->cls) != HF_HEALTH_NONE ? device->cls : HF_DEVICE_UNHEALTHY;
		row.fatal = true;
		row.over = false;
		row.first = device->since;
		row.last = HF_TIME_NONE;
	}
	return row;
}

/* Judge a device by its own faults and by the faults of its node: a fatal fault of the node counts
 * for each device that the fault concerns. */
static struct row judge_row(const struct hf_device_health *health,
			    const struct hf_device_report *device)
{
	struct row row = judge_device(device);

	if (row.fatal && !row.over)
		return row;
	return hf_impact_of_node(health, device) == HF_IMPACT_STOPPED
		       ? judge_device(hf_impact_node_report(health))
		       : row;
}

/* --- views ------------------------------------------------------------------------------------ */

static size_t size_of(const char *text)
{
	return strlen(hf_str_or(text, "")) + 1;
}

static const char *keep_text(char **at, const char *text)
{
	size_t size = size_of(text);
	char *kept = *at;

	memcpy(kept, hf_str_or(text, ""), size);
	*at += size;
	return kept;
}

static void keep_row(struct row *to, const struct row *judged,
		     const struct hf_device_holder *holder, char **at)
{
	*to = *judged;
	to->ns = keep_text(at, holder->ns);
	to->pod = keep_text(at, holder->pod);
	to->uid = keep_text(at, holder->uid);
	to->device = keep_text(at, judged->device);
	if (judged->cls != NULL)
		to->cls = keep_text(at, judged->cls);
	to->held = holder->until == HF_TIME_NONE;
	to->until = holder->until;
}

static void keep_rank(struct rank_row *to, const struct hf_rank_report *rank, char **at)
{
	*to = (struct rank_row){.advancing = hf_streq(rank->state, HF_RANK_ADVANCING),
				.silent = hf_streq(rank->state, HF_RANK_SILENT),
				.done = rank->total > 0 && rank->step >= rank->total,
				.own_us = rank->own_us,
				.step = rank->step,
				.advanced = rank->advanced_at,
				.heard = rank->heard_at};
	to->uid = keep_text(at, rank->uid);
	to->group = keep_text(at, rank->group);
}

/* The text is a word of letters, digits and dashes, like a Kubernetes reason.  Other texts are not
 * passed to the step. */
static bool is_word(const char *text)
{
	size_t len = strnlen(text, CAUSE_LEN_MAX + 1);

	if (len == 0 || len > CAUSE_LEN_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!hf_ascii_is_alnum(text[i]) && text[i] != '-')
			return false;
	return true;
}

/* False: the report cannot be about a process, so it counts as absent.  An ended process with code
 * 0 is refused, because its container ends as well, and then no exec waits. */
static bool is_report(const struct hf_process_report *report)
{
	enum hf_process_phase phase = hf_process_phase_parse(report->phase);

	if (hf_str_is_empty(report->uid) || hf_str_is_empty(report->job) ||
	    (int)phase == HF_PROCESS_PHASES || report->generation < 0 || report->attempt < 0)
		return false;
	return phase != HF_PROCESS_ENDED || report->code > 0 ||
	       (report->code < 0 && report->signal > 0);
}

static struct hf_opt_int number_of(int64_t number)
{
	return number < 0 ? (struct hf_opt_int){0} : HF_SOME_INT(number);
}

static void keep_process(struct process_row *to, const struct hf_process_report *report, char **at)
{
	enum hf_process_phase phase = hf_process_phase_parse(report->phase);

	*to = (struct process_row){.seen = {.generation = report->generation,
					    .attempt = report->attempt,
					    .ordinal = report->ordinal,
					    .phase = phase,
					    .step = report->step,
					    .saved_step = report->saved_step,
					    .save_ms = report->save_ms,
					    .at = report->at}};
	to->uid = keep_text(at, report->uid);
	to->job = keep_text(at, report->job);
	if (phase != HF_PROCESS_ENDED)
		return;
	to->seen.code = number_of(report->code);
	to->seen.signal = number_of(report->signal);
	if (report->cause != NULL && is_word(report->cause))
		to->seen.cause = keep_text(at, report->cause);
	if (!hf_str_is_empty(report->message))
		to->seen.message = keep_text(at, report->message);
}

static size_t process_texts(const struct hf_process_report *report)
{
	return size_of(report->uid) + size_of(report->job) + size_of(report->cause) +
	       size_of(report->message);
}

/* Note an unusable device of the node.  A device that is withheld counts only if all are. */
static void note_out(struct device_view *view, const struct hf_device_report *device, bool withheld)
{
	if (view->out && withheld && !view->withheld)
		return;
	if (!view->out || withheld != view->withheld || device->since > view->out_since)
		view->out_since = device->since;
	view->out = true;
	view->withheld = withheld;
}

static struct device_view *view_of(const struct hf_device_health *health)
{
	size_t rows = 0, texts = 0;
	struct device_view *view;
	char *at;

	for (size_t d = 0; d < health->devices.len; d++) {
		const struct hf_device_report *device = &health->devices.items[d];
		struct row row = judge_row(health, device);

		rows += device->holders.len;
		for (size_t h = 0; h < device->holders.len; h++) {
			const struct hf_device_holder *holder = &device->holders.items[h];

			texts += size_of(holder->ns) + size_of(holder->pod) + size_of(holder->uid) +
				 size_of(row.device) + size_of(row.cls);
		}
	}
	for (size_t r = 0; r < health->ranks.len; r++)
		texts +=
			size_of(health->ranks.items[r].uid) + size_of(health->ranks.items[r].group);
	for (size_t f = 0; f < health->fences.len; f++)
		texts += size_of(health->fences.items[f].uid);
	for (size_t p = 0; p < health->processes.len; p++)
		texts += process_texts(&health->processes.items[p]);
	view = hf_xcalloc(1, sizeof(*view) + rows * sizeof(view->rows[0]) +
				     health->ranks.len * sizeof(view->ranks[0]) +
				     health->fences.len * sizeof(view->fences[0]) +
				     health->processes.len * sizeof(view->processes[0]) + texts);
	view->observed_at = health->observed_at;
	view->out_since = HF_TIME_NONE;
	view->mended_at = health->mended_at;
	view->ranks = (struct rank_row *)&view->rows[rows];
	view->processes = (struct process_row *)&view->ranks[health->ranks.len];
	view->fences = (struct fence_row *)&view->processes[health->processes.len];
	at = (char *)&view->fences[health->fences.len];
	for (size_t p = 0; p < health->processes.len; p++)
		if (is_report(&health->processes.items[p]))
			keep_process(&view->processes[view->processes_len++],
				     &health->processes.items[p], &at);
	for (size_t f = 0; f < health->fences.len; f++)
		view->fences[view->fences_len++] =
			(struct fence_row){.uid = keep_text(&at, health->fences.items[f].uid),
					   .seconds = (int32_t)health->fences.items[f].seconds};
	for (size_t r = 0; r < health->ranks.len; r++)
		keep_rank(&view->ranks[view->ranks_len++], &health->ranks.items[r], &at);
	for (size_t d = 0; d < health->devices.len; d++) {
		const struct hf_device_report *device = &health->devices.items[d];
		struct row row = judge_row(health, device);

		if (hf_health_is_out(hf_impact_state(device->state)))
			note_out(view, device, hf_device_is_withheld(health, device));
		for (size_t h = 0; h < device->holders.len; h++)
			keep_row(&view->rows[view->len++], &row, &device->holders.items[h], &at);
	}
	return view;
}

static void *decode_health(void *arg, struct hf_doc *doc)
{
	struct hf_devices *devices = arg;
	struct hf_arena *scratch = devices->op->scratch;
	struct hf_device_health health;
	struct device_view *view;

	hf_device_health_read(doc, scratch, &health);
	view = view_of(&health);
	hf_arena_reset(scratch);
	return view;
}

/* --- the list of nodes with an unusable device ------------------------------------------------ */

/* The index of the name in the sorted list, or the index at which it would be inserted. */
static size_t place_of(const struct hf_devices *devices, const char *name)
{
	size_t low = 0, high = devices->sick_len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(devices->sick[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Update the list of nodes with an unusable device.  The list is updated with each change, so that
 * no step has to look at all nodes. */
static void note_sick(struct hf_devices *devices, const char *name, bool out)
{
	size_t at = place_of(devices, name), behind = devices->sick_len - at;
	bool known = behind > 0 && hf_streq(devices->sick[at], name);

	if (known == out)
		return;
	if (known) {
		free(devices->sick[at]);
		memmove(&devices->sick[at], &devices->sick[at + 1],
			(behind - 1) * sizeof(*devices->sick));
		devices->sick_len--;
		return;
	}
	if (devices->sick_len == devices->sick_cap) {
		devices->sick_cap = devices->sick_cap == 0 ? 16 : 2 * devices->sick_cap;
		devices->sick =
			hf_xrealloc(devices->sick, devices->sick_cap * sizeof(*devices->sick));
	}
	memmove(&devices->sick[at + 1], &devices->sick[at], behind * sizeof(*devices->sick));
	devices->sick[at] = hf_xstrdup(name);
	devices->sick_len++;
}

/* --- the watch -------------------------------------------------------------------------------- */

/* The age of a report that the operator finds at its start.  It comes from the node's clock, which
 * may be wrong.  If the node's clock is behind, the report seems too old until the agent's next
 * write.  If the clock is ahead, the report counts as written now. */
static hf_time found_at(struct hf_operator *op, const struct device_view *view)
{
	hf_time mono = hf_loop_mono(op->loop), now = hf_operator_now(op);

	if (view->observed_at == HF_TIME_NONE)
		return mono - AGENT_SILENT;
	return view->observed_at < now ? mono - (now - view->observed_at) : mono;
}

static void take_change(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
			const struct hf_cache_entry *now)
{
	struct hf_devices *devices = arg;
	struct hf_operator *op = devices->op;
	const struct device_view *was = before == NULL ? NULL : before->view;
	struct device_view *view = now == NULL ? NULL : now->view;

	devices->unseen = false;
	if (change == HF_CACHE_SYNCED) {
		hf_operator_check_synced(op);
		return;
	}
	if (view != NULL) {
		bool spoke = was == NULL ? hf_cache_synced(devices->cache)
					 : was->observed_at != view->observed_at;

		/* Only the agent changes observedTime.  A write with the old observedTime is
		 * another client's. */
		view->heard_at = spoke         ? hf_loop_mono(op->loop)
				 : was != NULL ? was->heard_at
					       : found_at(op, view);
		view->reported_at = spoke         ? view->heard_at
				    : was != NULL ? was->reported_at
						  : HF_TIME_NONE;
	}
	note_sick(devices, (now != NULL ? now : before)->name, view != NULL && view->out);
	/* A verdict of a job on this node may wait for any report of the agent. */
	hf_nodes_enqueue(op, (now != NULL ? now : before)->name);
}

static void take_problem(void *arg, int code, const char *message)
{
	struct hf_devices *devices = arg;
	bool told = devices->unseen;

	/* Without the CRD there are no agents.  The cache keeps looking, and only a missing right
	 * is logged. */
	if (code == HF_E_NOT_FOUND || code == HF_E_FORBIDDEN || code == HF_E_UNSUPPORTED) {
		devices->unseen = true;
		hf_operator_check_synced(devices->op);
		if (told || code != HF_E_FORBIDDEN)
			return;
	}
	hf_operator_problem(devices->op, hf_devicehealths.plural, code, message);
}

struct hf_devices *hf_devices_create(struct hf_operator *op)
{
	struct hf_devices *devices = hf_xcalloc(1, sizeof(*devices));
	const struct hf_cache_options options = {
		.loop = op->loop,
		.store = op->store,
		.resource = &hf_devicehealths,
		.page_limit = PAGE_LIMIT,
		.seed = op->options.seed ^ hf_hash_str(hf_devicehealths.plural),
		.decode = decode_health,
		.view_free = free,
		.changed = take_change,
		.problem = take_problem,
		.arg = devices,
	};

	devices->op = op;
	devices->cache = hf_cache_create(&options);
	return devices;
}

void hf_devices_start(struct hf_devices *devices)
{
	hf_cache_start(devices->cache);
}

struct hf_devices *hf_devices_destroy(struct hf_devices *devices)
{
	if (devices == NULL)
		return NULL;
	hf_cache_destroy(devices->cache);
	for (size_t i = 0; i < devices->sick_len; i++)
		free(devices->sick[i]);
	free(devices->sick);
	free(devices);
	return NULL;
}

bool hf_devices_synced(const struct hf_devices *devices)
{
	return devices->unseen || hf_cache_synced(devices->cache);
}

/* --- facts for a step ------------------------------------------------------------------------- */

static const struct device_view *view_at(const struct hf_devices *devices, const char *node)
{
	const struct hf_cache_entry *entry =
		hf_str_is_empty(node) ? NULL : hf_cache_get(devices->cache, NULL, node);

	return entry == NULL ? NULL : entry->view;
}

/* The agent has not written for so long that its report may be out of date. */
static bool is_silent(const struct device_view *view, const struct hf_moment *moment)
{
	return moment->mono - view->heard_at >= AGENT_SILENT;
}

/* Convert a time of the node's clock to the step's clock: as long before the report as by the
 * node's clock. */
static hf_time ours_of(const struct device_view *view, const struct hf_moment *moment,
		       hf_time heard_at, hf_time theirs)
{
	if (heard_at == HF_TIME_NONE || theirs == HF_TIME_NONE || view->observed_at == HF_TIME_NONE)
		return HF_TIME_NONE;
	return hf_moment_at(moment, heard_at) -
	       (view->observed_at > theirs ? view->observed_at - theirs : 0);
}

void hf_devices_see_node(const struct hf_devices *devices, const struct hf_moment *moment,
			 struct hf_node_seen *node)
{
	const struct device_view *view = view_at(devices, node->name);

	if (view == NULL)
		return;
	node->has_agent = !is_silent(view, moment);
	node->reported_at = hf_moment_at(moment, view->reported_at);
	for (size_t i = 0; i < view->ranks_len; i++) {
		hf_time at = ours_of(view, moment, view->reported_at, view->ranks[i].heard);

		if (at > node->beat_at)
			node->beat_at = at;
	}
}

/* Texts are copied, because a plan may use them longer than the view lives. */
static struct hf_device_seen seen_of(const struct row *row, struct hf_arena *arena)
{
	return (struct hf_device_seen){.id = hf_arena_strdup(arena, row->device),
				       .cls = hf_arena_strdup(arena, row->cls),
				       .agent = true,
				       .fatal = row->fatal,
				       .over = row->over,
				       .held = row->held,
				       .first = row->first,
				       .last = row->last};
}

static bool is_holder(const struct row *row, const struct hf_pod *pod, const char *ns)
{
	if (*row->uid != '\0')
		return hf_streq(row->uid, pod->uid);
	return hf_streq(row->pod, pod->name) && hf_streq(row->ns, ns);
}

/* The fault may concern the pod that held the device: it did not begin after the pod had released
 * the device, by the node's clock.  HF_LINE_LATE is allowed, because a kernel line may be dated
 * later; core compares its time with the termination. */
static bool is_told_of(const struct row *row)
{
	return row->cls != NULL && (row->until == HF_TIME_NONE || row->first == HF_TIME_NONE ||
				    row->first <= hf_time_add(row->until, HF_LINE_LATE));
}

/* Like is_told_of, and the fault was not over before the pod began.  The pod's start is taken from
 * the node's clock, if the kubelet has written it. */
static bool concerns_pod(const struct row *row, const struct hf_pod *pod)
{
	hf_time began = pod->start_time != HF_TIME_NONE ? pod->start_time : pod->creation_time;

	return is_told_of(row) && (!row->over || row->last == HF_TIME_NONE ||
				   began == HF_TIME_NONE || row->last >= began);
}

/* Add the report on the pod's process.  The report must name the pod's UID and the job's UID, so
 * that an agent can report only on pods of its own node. */
static void see_process(const struct device_view *view, const char *job_uid, struct hf_arena *arena,
			struct hf_pod *pod)
{
	for (size_t i = 0; i < view->processes_len; i++) {
		const struct process_row *row = &view->processes[i];
		struct hf_process_seen *seen;

		if (!hf_streq(row->uid, pod->uid) || !hf_streq(row->job, job_uid))
			continue;
		seen = HF_ARENA_NEW(arena, struct hf_process_seen);
		*seen = row->seen;
		/* Texts are copied, because a plan may use them longer than the view lives. */
		if (row->seen.cause != NULL)
			seen->cause = hf_arena_strdup(arena, row->seen.cause);
		if (row->seen.message != NULL)
			seen->message = hf_arena_strdup(arena, row->seen.message);
		pod->process = seen;
		return;
	}
}

void hf_devices_see_pod(const struct hf_devices *devices, const struct hf_job_view *job,
			struct hf_arena *arena, struct hf_pod *pod)
{
	const char *ns = job->ns;
	const struct device_view *view = view_at(devices, pod->node);
	struct hf_device_seen *seen;
	size_t n = 0;

	if (view != NULL)
		see_process(view, job->uid, arena, pod);
	/* A fence that was reported once holds as long as the pod, even if the agent falls
	 * silent. */
	for (size_t i = 0; view != NULL && i < view->fences_len; i++)
		if (hf_streq(view->fences[i].uid, pod->uid))
			pod->fence_seconds = view->fences[i].seconds;
	for (size_t i = 0; view != NULL && i < view->len; i++) {
		if (!is_holder(&view->rows[i], pod, ns))
			continue;
		pod->watched = true;
		n += concerns_pod(&view->rows[i], pod);
	}
	if (n == 0)
		return;
	seen = HF_ARENA_ARRAY(arena, struct hf_device_seen, pod->devices_len + n);
	if (pod->devices_len > 0)
		memcpy(seen, pod->devices, pod->devices_len * sizeof(*seen));
	for (size_t i = 0; i < view->len; i++) {
		if (is_holder(&view->rows[i], pod, ns) && concerns_pod(&view->rows[i], pod))
			seen[pod->devices_len++] = seen_of(&view->rows[i], arena);
	}
	pod->devices = seen;
}

/* The UID of the recorded pod: the present pod's if it was created before the incident, else the
 * UID of the last pod of that name. NULL: unknown. */
static const char *uid_of(const struct hf_record *record, const struct hf_observed *seen)
{
	for (size_t i = 0; i < seen->pods_len; i++) {
		const struct hf_pod *pod = &seen->pods[i];

		if (pod->owned && hf_streq(pod->name, record->pod) &&
		    (!pod->stamped || pod->incident < record->incident))
			return pod->uid;
	}
	for (size_t i = 0; i < seen->gone_len; i++)
		if (hf_streq(seen->gone[i].name, record->pod))
			return seen->gone[i].uid;
	return NULL;
}

/* Collect the faults of devices of the pod that the job's last record names, if that pod is gone.
 * Other pods of the same name may have been on the node before and since. */
static void see_late(const struct device_view *view, const struct hf_record *record, const char *ns,
		     struct hf_arena *arena, struct hf_observed *seen)
{
	struct hf_late_seen *late = HF_ARENA_ARRAY(arena, struct hf_late_seen, view->len + 1);
	const char *uid = uid_of(record, seen);

	for (size_t i = 0; i < view->len; i++) {
		const struct row *row = &view->rows[i];
		bool present = false;

		if (!is_told_of(row) || row->over || !hf_streq(row->pod, record->pod) ||
		    !hf_streq(row->ns, ns) || (*row->uid != '\0' && !hf_streq(row->uid, uid)))
			continue;
		/* If the agent did not know the UID, the row may belong to the replacement, on the
		 * same node. */
		for (size_t p = 0; p < seen->pods_len && !present; p++)
			present = is_holder(row, &seen->pods[p], ns);
		if (!present)
			late[seen->late_len++] =
				(struct hf_late_seen){.pod = record->pod,
						      .node = record->node,
						      .device = seen_of(row, arena)};
	}
	seen->late = late;
}

static bool is_told(const struct hf_observed *seen, const char *node)
{
	for (size_t i = 0; i < seen->sick_len; i++)
		if (hf_streq(seen->sick[i].node, node))
			return true;
	return false;
}

static struct hf_sick_seen sick_of(const struct device_view *view, const struct hf_moment *moment,
				   const char *node)
{
	return (struct hf_sick_seen){.node = node,
				     .since =
					     ours_of(view, moment, view->heard_at, view->out_since),
				     .silent = is_silent(view, moment),
				     .withheld = view->withheld};
}

/* List the nodes with an unusable device: first the nodes of the job's records, then the others. */
static void see_sick(const struct hf_devices *devices, const struct hf_moment *moment,
		     const struct hf_ledger *ledger, struct hf_arena *arena,
		     struct hf_observed *seen)
{
	size_t max = devices->sick_len < HF_SICK_MAX ? devices->sick_len : HF_SICK_MAX;
	struct hf_sick_seen *sick;

	if (max == 0)
		return;
	sick = HF_ARENA_ARRAY(arena, struct hf_sick_seen, ledger->records_len + max);
	seen->sick = sick;
	for (size_t i = 0; i < ledger->records_len; i++) {
		const char *node = ledger->records[i].node;
		const struct device_view *view = view_at(devices, node);

		if (view != NULL && view->out && !is_told(seen, node))
			sick[seen->sick_len++] = sick_of(view, moment, node);
	}
	max += seen->sick_len;
	const struct hf_observed records = {.sick = sick, .sick_len = seen->sick_len};

	for (size_t i = 0; i < devices->sick_len && seen->sick_len < max; i++) {
		const char *node = devices->sick[i];
		const struct device_view *view = view_at(devices, node);

		if (!is_silent(view, moment) && !is_told(&records, node))
			sick[seen->sick_len++] =
				sick_of(view, moment, hf_arena_strdup(arena, node));
	}
}

static void see_mended(const struct hf_devices *devices, const struct hf_ledger *ledger,
		       struct hf_arena *arena, struct hf_observed *seen)
{
	struct hf_mended_seen *mended =
		HF_ARENA_ARRAY(arena, struct hf_mended_seen, ledger->records_len + 1);

	seen->mended = mended;
	for (size_t i = 0; i < ledger->records_len; i++) {
		const char *node = ledger->records[i].node;
		const struct device_view *view = view_at(devices, node);

		if (view != NULL && view->mended_at != HF_TIME_NONE)
			mended[seen->mended_len++] =
				(struct hf_mended_seen){.node = node, .at = view->mended_at};
	}
}

void hf_devices_see_records(const struct hf_devices *devices, const struct hf_moment *moment,
			    const struct hf_job_view *job, struct hf_arena *arena,
			    struct hf_observed *seen)
{
	const struct hf_ledger *ledger = &job->status.ledger;
	const struct device_view *view =
		ledger->records_len > 0 ? view_at(devices, ledger->records[0].node) : NULL;

	if (view != NULL && ledger->records[0].pod != NULL)
		see_late(view, &ledger->records[0], job->ns, arena, seen);
	see_sick(devices, moment, ledger, arena, seen);
	see_mended(devices, ledger, arena, seen);
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* Note whether the rank advances.  "Stands still" counts only if the agent was seen to write it:
 * the last report of an agent that is gone would say so for ever. */
static void see_advance(const struct device_view *view, const struct hf_moment *moment,
			const struct rank_row *row, struct hf_pod *pod)
{
	hf_time at = ours_of(view, moment, view->reported_at, row->advanced);

	if (row->advancing) {
		pod->advance = HF_ADVANCING;
	} else if (!row->done && pod->advance != HF_ADVANCING && at != HF_TIME_NONE) {
		if (pod->advance == HF_ADVANCE_UNKNOWN || at > pod->advanced_at)
			pod->advanced_at = at;
		pod->advance = HF_ADVANCE_STALLED;
		pod->told_at = hf_moment_at(moment, view->reported_at);
	}
}

/* Pass the rank to the comparison as if it had worked equally fast for two windows, because that is
 * what the agent's figure means. */
static void add_rank(const struct rank_row *row, struct hf_health_rank_memory *memory,
		     struct hf_health_rank_view *view)
{
	*memory = (struct hf_health_rank_memory){
		.any = true, .window = 1, .median_own_us = (uint64_t)row->own_us};
	*view = (struct hf_health_rank_view){
		.name = row->uid, .group = row->group, .memory = memory, .slow_windows = 1};
}

static void judge_ranks(struct hf_health_rank_view *ranks, struct hf_pod **pods, size_t len,
			struct hf_arena *arena)
{
	struct hf_health_job_verdict verdict;

	hf_health_job_judge(ranks, len, 0, arena, &verdict);
	for (size_t i = 0; i < len; i++) {
		const struct hf_health_rank_verdict *rank = &verdict.ranks[i];
		int32_t score = rank->score_permille < INT32_MAX ? (int32_t)rank->score_permille
								 : INT32_MAX;

		if (rank->straggler && score > pods[i]->slow_permille)
			pods[i]->slow_permille = score;
	}
}

/* The report on the training processes of the pod's node; NULL: no report, or its agent is
 * silent. */
static const struct device_view *ranks_view(const struct hf_devices *devices,
					    const struct hf_moment *moment,
					    const struct hf_pod *pod)
{
	const struct device_view *view = pod->owned ? view_at(devices, pod->node) : NULL;

	return view != NULL && view->ranks_len > 0 && !is_silent(view, moment) ? view : NULL;
}

static bool is_comparable(const struct rank_row *row)
{
	return row->own_us > 0 && !row->silent;
}

/* Note whether the pod's ranks advance.  Returns how many of them can be compared with others. */
static size_t see_pod_ranks(const struct device_view *view, const struct hf_moment *moment,
			    struct hf_pod *pod)
{
	size_t comparable = 0;
	hf_time at;

	for (size_t i = 0; i < view->ranks_len; i++) {
		if (!hf_streq(view->ranks[i].uid, pod->uid))
			continue;
		see_advance(view, moment, &view->ranks[i], pod);
		if (view->ranks[i].step > pod->step)
			pod->step = view->ranks[i].step;
		at = ours_of(view, moment, view->reported_at, view->ranks[i].advanced);
		if (at > pod->stepped_at)
			pod->stepped_at = at;
		comparable += is_comparable(&view->ranks[i]);
	}
	return comparable;
}

void hf_devices_see_ranks(const struct hf_devices *devices, const struct hf_moment *moment,
			  struct hf_pod *pods, size_t len, struct hf_arena *arena)
{
	const struct device_view *view;
	struct hf_health_rank_memory *memories;
	struct hf_health_rank_view *ranks;
	struct hf_pod **whose;
	size_t n = 0, rows = 0;

	for (size_t p = 0; p < len; p++)
		if ((view = ranks_view(devices, moment, &pods[p])) != NULL)
			rows += see_pod_ranks(view, moment, &pods[p]);
	if (rows == 0)
		return;
	memories = HF_ARENA_ARRAY(arena, struct hf_health_rank_memory, rows);
	ranks = HF_ARENA_ARRAY(arena, struct hf_health_rank_view, rows);
	whose = HF_ARENA_ARRAY(arena, struct hf_pod *, rows);
	for (size_t p = 0; p < len; p++) {
		view = ranks_view(devices, moment, &pods[p]);
		for (size_t i = 0; view != NULL && i < view->ranks_len; i++) {
			const struct rank_row *row = &view->ranks[i];

			if (n == HF_HEALTH_RANKS_MAX || !is_comparable(row) ||
			    !hf_streq(row->uid, pods[p].uid))
				continue;
			add_rank(row, &memories[n], &ranks[n]);
			whose[n++] = &pods[p];
		}
	}
	judge_ranks(ranks, whose, n, arena);
}
