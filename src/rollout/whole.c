/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/remediation.h"
#include "base/compare.h"
#include "base/str.h"
#include "json/patch.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A pass on a DeviceRollout as a whole: makes the input of health/rollout_plan.h, and writes what the plan says.
 * Input: the object, the DaemonSet, its revisions and pods, read live, and the caches of Nodes and DeviceHealth objects.
 * Output: one write. Invariant: a node begins only if its HealthPolicy permits one more node out of use, counted with all
 * nodes that have begun.
 */

#define LOOK_WORKING (30 * HF_SECOND)
#define LOOK_PENDING (30 * HF_SECOND)
/* A changed node or its pod that is not Ready for longer counts against the change, and so does a GPU of which the agent knows
 * nothing. */
#define UNREADY_MAX HF_MINUTE
/* The most nodes that are counted as out of use for the limits. */
#define OUT_MAX 1024
/* The most nodes whose limits one pass asks for. */
#define LIMITED_MAX 4096

/* The status lists each failed and each skipped node. Beyond so many of them, nodes in work and proved nodes would have no
 * room in the list. A rollback finds as many as the rollout has left, and those of its last nodes in work. */
#define LISTED_BACK_MAX (HF_ROLLOUT_NODES_MAX - HF_ROLLOUT_NEWEST_MAX - HF_ROLLOUT_AT_ONCE_MAX)
#define LISTED_MAX (LISTED_BACK_MAX - HF_ROLLOUT_BEGIN_MAX)

/* A restart of a job by a device of the node. */
struct restart {
	const char *node; /* must stay the first member */
	hf_time at;
};

struct whole {
	struct ro *ro;
	struct hf_rollout_view view;
	struct hf_rollout_member *members;
	struct hf_selector *selector;
	struct restart *restarts; /* sorted by node */
	size_t restarts_len;
	struct hf_rollout_rank *ranks;
	size_t ranks_len;
	bool waits; /* the DaemonSet's controller has not seen the newest template yet */
};

/* ---- limits --------------------------------------------------------------------------------------- */

/* The node of the entry is cordoned, or will be before anything else is asked. */
static bool is_out(const struct ro *ro, const struct hf_rollout_node *entry, bool planned)
{
	const struct hf_cache_entry *cached = hf_cache_get(ro->nodes, NULL, entry->name);
	const struct ro_node *node = cached == NULL ? NULL : cached->view;
	enum hf_rollout_phase phase;

	if (!hf_rollout_phase_of(entry->phase, &phase) || hf_rollout_phase_is_end(phase))
		return false;
	return planned || phase >= HF_ROLLOUT_CORDONED || (node != NULL && node->unschedulable);
}

/* Asks for the limits of nodes. planned: nodes that have begun and are not cordoned yet count too. */
static void find_limits(struct ro *ro, const char *const *nodes, size_t len, bool planned,
			const char **ret_limits)
{
	const char **out = HF_ARENA_ARRAY(ro->pass.arena, const char *, OUT_MAX);
	struct hf_limit_question question = {
		.nodes = nodes, .len = len, .out = out, .ret_limits = ret_limits};
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(ro->cache, &it)) != NULL;) {
		const struct ro_object *object = entry->view;

		for (size_t i = 0; object->readable && i < object->r.status.nodes.len; i++) {
			const struct hf_rollout_node *other = &object->r.status.nodes.items[i];

			if (question.out_len < OUT_MAX && is_out(ro, other, planned) &&
			    !(len == 1 && hf_streq(other->name, nodes[0])))
				out[question.out_len++] = other->name;
		}
	}
	ro->env.find_limits(ro->env.arg, &question);
}

const char *hf_ro_find_limit(struct ro *ro, const char *node)
{
	const char *limit = NULL;

	find_limits(ro, &node, 1, false, &limit);
	return limit;
}

/* ---- the DaemonSet --------------------------------------------------------------------------------- */

static void see_daemon_set(struct whole *whole)
{
	const struct ro_pass *pass = &whole->ro->pass;
	const struct hf_rollout_status *status = &pass->r.status;
	struct hf_rollout_view *view = &whole->view;
	/* A person may have written the previous template after the halt. */
	bool back = view->state == HF_ROLLOUT_ROLLING_BACK || view->state == HF_ROLLOUT_HALTED;
	bool is_target;

	view->problem = hf_ro_find_daemon_set_problem(pass);
	if (view->problem != NULL)
		return;
	whole->waits = !hf_ro_is_observed(pass);
	view->can_go_back = status->from_revision != NULL && pass->from != NULL;
	view->template_is_back =
		!whole->waits && hf_streq(pass->newest.hash, status->from_revision);
	if (whole->waits || view->state == HF_ROLLOUT_PENDING)
		return;
	is_target = hf_streq(pass->newest.hash, status->target_revision);
	if (!is_target && !(back && view->template_is_back))
		view->superseded = hf_arena_printf(
			pass->arena, "the template of %s was changed again, from revision %s to %s",
			hf_ro_print_daemon_set(pass), hf_str_or(status->target_revision, "?"),
			pass->newest.hash);
}

/* ---- the nodes ------------------------------------------------------------------------------------- */

static const struct ro_driver *find_driver(const struct ro_pass *pass, const char *node)
{
	const struct ro_driver key = {.node = node};

	return pass->drivers_len == 0 ? NULL
				      : bsearch(&key, pass->drivers, pass->drivers_len, sizeof(key),
						hf_compare_by_name);
}

/* Why the node could not be proved now; NULL: it could. */
static const char *find_absence(const struct whole *whole, const char *name,
				const struct ro_node *node, const struct ro_health *health)
{
	if (!node->ready)
		return "the node is not Ready";
	if (hf_ro_is_stale(whole->ro, name))
		return RO_SILENT;
	return health != NULL && health->unknown != NULL
		       ? "the agent knows nothing of a device of the node"
		       : NULL;
}

/* absence: of find_absence; departure: of find_departure. */
static const char *find_block(const struct whole *whole, const struct ro_node *node,
			      const struct ro_health *health, const char *absence,
			      const char *departure)
{
	if (node->held)
		return "annotation " HF_MEND_HOLD_ANNOTATION;
	if (node->paused)
		return "annotation " HF_PAUSED_ANNOTATION;
	/* What a change has broken is taken back all the same. */
	if (whole->view.state == HF_ROLLOUT_ROLLING_BACK)
		return NULL;
	if (departure != NULL)
		return departure;
	if (node->quarantined)
		return "the node is quarantined";
	if (absence != NULL)
		return absence;
	return health != NULL && health->sick != NULL ? "a device of the node is out of use" : NULL;
}

/* How long ago the monotonic time was; NONE: 0. */
static hf_time find_age(const struct ro *ro, hf_time at)
{
	return at == HF_TIME_NONE ? 0 : hf_loop_mono(ro->env.loop) - at;
}

/* Since when the pod of the DaemonSet is not Ready, as an age. If it ends again and again, it is not Ready most of the time. */
static hf_time find_unready_age(const struct ro *ro, const char *node,
				const struct ro_driver *driver)
{
	hf_time at =
		driver == NULL ? HF_TIME_NONE : hf_ro_convert_time(ro, node, driver->unready_at);

	return at == HF_TIME_NONE ? 0 : hf_ro_now(ro) - at;
}

/* A time in which this operator read nothing is no silence of an agent. */
static hf_time find_silence(const struct ro *ro, const struct ro_health *health)
{
	hf_time silent = health == NULL ? 0 : find_age(ro, health->heard_at),
		seen = hf_ro_now(ro) - ro->seen_since;

	return seen < silent ? seen : silent;
}

static bool take_lost(struct hf_rollout_member *m, hf_time age, hf_time most, const char *why)
{
	if (age <= (m->changed ? most : most / 2))
		return false;
	m->lost = why;
	m->lost_for = age;
	return true;
}

/* The first start of a node that was made again says nothing about the change. */
static bool is_younger(const struct hf_rollout_node *entry, const struct ro_node *node)
{
	return entry != NULL && node->created_at > entry->since;
}

/* Finds why the node counts as lost. It does not while a person or a tool works on it, nor for a minute afterwards. */
static void find_lost(struct ro *ro, const struct ro_node *node, const struct ro_health *health,
		      const struct ro_driver *driver, const struct hf_rollout_node *entry,
		      struct hf_rollout_member *m)
{
	hf_time unknown = health == NULL ? 0 : find_age(ro, health->unknown_at);

	if (node->attended || is_younger(entry, node) ||
	    find_age(ro, node->alone_at) <= (m->changed ? UNREADY_MAX : UNREADY_MAX / 2))
		return;
	(void)(take_lost(m, find_age(ro, node->unready_at), UNREADY_MAX,
			 "the node has not been Ready for a minute") ||
	       take_lost(m, find_unready_age(ro, m->name, driver), UNREADY_MAX,
			 "the pod of the DaemonSet has not been Ready for a minute") ||
	       take_lost(m, unknown, UNREADY_MAX,
			 hf_arena_printf(ro->pass.arena,
					 "the agent has known nothing of device %s for a minute",
					 unknown > 0 ? health->unknown : "")) ||
	       take_lost(m, find_silence(ro, health), RO_SILENT_MAX, RO_SILENT));
}

static const char *find_sick(struct ro *ro, const char *name, const struct ro_health *health,
			     hf_time since)
{
	if (health == NULL || health->sick == NULL ||
	    hf_ro_convert_time(ro, name, health->sick_at) < since)
		return NULL;
	return hf_arena_printf(ro->pass.arena, "device %s: %s", health->sick, health->sick_class);
}

/* ---- evidence -------------------------------------------------------------------------------------- */

static void add_restart(void *arg, const struct hf_device_restart *restart)
{
	struct whole *whole = arg;

	if (whole->restarts_len < RO_RESTARTS_MAX)
		whole->restarts[whole->restarts_len++] = (struct restart){
			.node = hf_arena_strdup(whole->ro->pass.arena, restart->node),
			.at = restart->at};
}

static void see_restarts(struct whole *whole)
{
	struct ro *ro = whole->ro;

	whole->restarts = HF_ARENA_ARRAY(ro->pass.arena, struct restart, RO_RESTARTS_MAX);
	ro->env.each_device_restart(ro->env.arg, add_restart, whole);
	if (whole->restarts_len > 0)
		qsort(whole->restarts, whole->restarts_len, sizeof(struct restart),
		      hf_compare_by_name);
}

static int64_t count_restarts(const struct whole *whole, const char *node, hf_time since)
{
	const struct restart key = {.node = node};
	const struct restart *found = whole->restarts_len == 0
					      ? NULL
					      : bsearch(&key, whole->restarts, whole->restarts_len,
							sizeof(key), hf_compare_by_name);
	const struct restart *end = whole->restarts + whole->restarts_len;
	int64_t count = 0;

	/* bsearch finds any of the node's restarts. */
	while (found != NULL && found > whole->restarts && hf_streq(found[-1].node, node))
		found--;
	for (; found != NULL && found < end && hf_streq(found->node, node); found++)
		count += found->at >= since;
	return count;
}

static void add_totals(const struct whole *whole, const char *name, const struct ro_health *health,
		       hf_time since, struct hf_rollout_totals *totals)
{
	const struct ro *ro = whole->ro;
	hf_time now = hf_ro_now(ro);

	totals->nodes++;
	if (since != HF_TIME_NONE)
		totals->restarts += count_restarts(whole, name, since);
	if (health == NULL || since == HF_TIME_NONE || since >= now)
		return;
	totals->device_minutes += (now - since) / HF_MINUTE * health->devices;
	for (size_t i = 0; i < health->faults_len; i++)
		totals->faults += hf_ro_convert_time(ro, name, health->faults[i]) >= since;
}

static bool is_changed(const struct whole *whole, const struct ro_node *node,
		       const struct ro_driver *driver)
{
	const struct ro_pass *pass = &whole->ro->pass;

	if (pass->spec.label.key != NULL)
		return hf_streq(hf_json_path_str(node->labels, pass->spec.label.key, NULL),
				pass->spec.label.value);
	return driver != NULL &&
	       hf_streq(driver->revision, hf_str_or(pass->r.status.target_revision,
						    hf_str_or(pass->newest.hash, "unknown")));
}

/* The pod of the DaemonSet is older than the rollout, which has not worked on the node. */
static bool had_before(const struct whole *whole, const struct hf_rollout_node *entry,
		       const struct ro_driver *driver)
{
	hf_time begun = whole->ro->pass.r.status.started_at;

	return entry == NULL && driver != NULL && begun != HF_TIME_NONE &&
	       driver->created_at < begun;
}

static void see_entry(struct whole *whole, const struct hf_rollout_node *entry,
		      struct hf_rollout_member *m)
{
	if (entry == NULL || !hf_rollout_phase_of(entry->phase, &m->phase))
		return;
	m->listed = true;
	m->tries = entry->tries;
	m->message = entry->message;
	m->canary_failed = entry->canary.failed;
	m->was_well = entry->was_well;
	m->was_away = entry->was_away;
	if (m->phase == HF_ROLLOUT_DONE && entry->since > whole->view.newest_end)
		whole->view.newest_end = entry->since;
}

/* Another program, such as the owner of the label, has taken the change of a proved node away. A pod of a DaemonSet may be
 * missing for a moment, so only labels are judged. The list keeps each marked node that is not proved. */
static bool is_taken_away(const struct whole *whole, const struct hf_rollout_member *m)
{
	return whole->view.is_label && m->marked && !m->back && !m->changed &&
	       (!m->listed || m->phase == HF_ROLLOUT_DONE);
}

static bool is_proved(const struct hf_rollout_node *entry)
{
	return hf_streq(entry->phase, hf_rollout_phase_name(HF_ROLLOUT_DONE));
}

/* The Node was made again after its proof: it has no record of the change. It may have the change from its first start, with
 * no proof. */
static bool is_made_again(const struct hf_rollout_node *entry, const struct ro_node *node,
			  const struct hf_rollout_member *m)
{
	return entry != NULL && is_proved(entry) && !m->marked &&
	       (!m->changed || is_younger(entry, node));
}

/* True if the rollout handles this node: the node has an entry or a mark, or the spec selects it. The change itself may take
 * the node out of the selection, if the selector names the label that changes. */
static bool is_selected(const struct whole *whole, const struct ro_node *node,
			const struct hf_rollout_node *entry, const struct ro_driver *driver,
			bool marked)
{
	return entry != NULL ||
	       ((marked || hf_selector_match_labels(whole->selector, node->labels)) &&
		(driver != NULL || whole->view.is_label));
}

/* Why no work may begin on a node with an entry or a mark, because it has left the rollout; NULL: it has not. */
static const char *find_departure(const struct whole *whole, const struct ro_node *node,
				  const struct ro_driver *driver)
{
	if (!hf_selector_match_labels(whole->selector, node->labels))
		return "spec.nodeSelector does not select the node any more";
	return driver == NULL && !whole->view.is_label ? RO_NO_DRIVER : NULL;
}

static const char *find_group(const struct whole *whole, const struct ro_node *node)
{
	const char *key = whole->ro->pass.spec.group_by;

	return key == NULL ? "" : hf_str_or(hf_json_path_str(node->labels, key, NULL), "");
}

/* Adds the ranks of the node. They are compared with ranks of the same job and group, on nodes with the same value of
 * the label of spec.groupBy. */
static void add_ranks(struct whole *whole, const struct hf_rollout_member *m,
		      const struct ro_health *health, bool ours)
{
	struct ro *ro = whole->ro;

	/* Another change than that of the rollout. */
	if (health == NULL || (m->changed && !ours))
		return;
	for (size_t i = 0; i < health->ranks_len && whole->ranks_len < RO_COMPARED_MAX; i++) {
		const struct ro_rank *rank = &health->ranks[i];
		const char *job = ro->env.find_job(ro->env.arg, hf_str_or(rank->ns, ""),
						   hf_str_or(rank->pod, ""), rank->uid);

		if (job == NULL)
			continue;
		whole->ranks[whole->ranks_len++] = (struct hf_rollout_rank){
			.set = hf_arena_printf(ro->pass.arena, "%s %s %s", job,
					       hf_str_or(rank->group, ""), m->group),
			.node = m->name,
			.changed = ours,
			.own_us = rank->own_us};
	}
}

static void see_member(struct whole *whole, const struct hf_cache_entry *cached)
{
	struct ro *ro = whole->ro;
	const struct ro_node *node = cached->view;
	const struct hf_cache_entry *said = hf_cache_get(ro->health, NULL, cached->name);
	const struct ro_health *health = said == NULL ? NULL : said->view;
	const struct hf_rollout_node *entry = hf_ro_find_entry(&ro->pass.r.status, cached->name);
	const struct ro_driver *driver = find_driver(&ro->pass, cached->name);
	struct hf_rollout_member *m = &whole->members[whole->view.members_len];
	struct hf_rollout_mark mark;
	const char *absence = find_absence(whole, cached->name, node, health);
	const char *departure = find_departure(whole, node, driver);
	bool marked = hf_ro_find_mark(&ro->pass, node->marks, &mark), ours;

	if (!is_selected(whole, node, entry, driver, marked))
		return;
	*m = (struct hf_rollout_member){
		.name = cached->name,
		.group = find_group(whole, node),
		.changed = is_changed(whole, node, driver),
		.had_before = had_before(whole, entry, driver),
		.marked = marked,
		.changed_at = HF_TIME_NONE,
		.blocked = find_block(whole, node, health, absence, departure),
		.away = absence != NULL,
		.out = health != NULL && health->sick != NULL,
		.passing = !node->held && !node->paused && departure == NULL};
	find_lost(ro, node, health, driver, entry, m);
	if (!is_made_again(entry, node, m))
		see_entry(whole, entry, m);
	if (m->marked) {
		m->back = mark.rolled_back;
		m->changed_at = mark.at;
	}
	ours = m->marked && m->changed;
	if (is_taken_away(whole, m))
		m->sick = "the label has another value";
	if (ours)
		m->sick = find_sick(ro, cached->name, health, m->changed_at);
	add_ranks(whole, m, health, ours);
	/* A node with another change than that of the rollout is on neither side. */
	if (ours || !m->changed)
		add_totals(whole, cached->name, health,
			   ours ? m->changed_at : ro->pass.r.status.started_at,
			   ours ? &whole->view.changed : &whole->view.unchanged);
	whole->view.members_len++;
}

/* Entries of nodes that do not exist any more. A proved one shows nothing of the change any more: another node takes its
 * place. */
static void see_lost(struct whole *whole)
{
	const struct hf_rollout_status *status = &whole->ro->pass.r.status;

	for (size_t i = 0; i < status->nodes.len; i++) {
		struct hf_rollout_member *m = &whole->members[whole->view.members_len];
		const struct hf_rollout_node *entry = &status->nodes.items[i];

		if (is_proved(entry) || hf_cache_get(whole->ro->nodes, NULL, entry->name) != NULL)
			continue;
		*m = (struct hf_rollout_member){.name = entry->name,
						.group = "",
						.changed_at = HF_TIME_NONE,
						.blocked = "the node does not exist any more"};
		see_entry(whole, entry, m);
		whole->view.members_len += m->listed;
	}
}

/* The status lists the node in any case. In a rollback it needs no entry of a node that was skipped before. */
static bool is_listed(const struct whole *whole, const struct hf_rollout_member *m)
{
	bool back = whole->view.state == HF_ROLLOUT_ROLLING_BACK;

	return m->listed && (m->phase == HF_ROLLOUT_FAILED ||
			     (m->phase == HF_ROLLOUT_SKIPPED && (m->was_well || !back)));
}

/* While the list is full, no further node begins. The nodes of the list are tried again: in the last wave, or in the rollback. */
static void block_unlisted(struct whole *whole)
{
	int32_t listed = 0,
		most = whole->view.state == HF_ROLLOUT_ROLLING_BACK ? LISTED_BACK_MAX : LISTED_MAX;

	for (size_t i = 0; i < whole->view.members_len; i++)
		listed += is_listed(whole, &whole->members[i]);
	whole->view.full = listed >= most;
	for (size_t i = 0; i < whole->view.members_len && listed >= most; i++) {
		struct hf_rollout_member *m = &whole->members[i];

		if (is_listed(whole, m) || m->blocked != NULL)
			continue;
		m->blocked = "the status cannot list more skipped nodes";
		m->passing = false;
	}
}

static void see_nodes(struct whole *whole)
{
	struct ro *ro = whole->ro;
	const struct hf_cache_entry *entry;
	const struct hf_json *selector = hf_json_path(hf_doc_json(ro->pass.docs[RO_READ_OBJECT]),
						      "spec", "nodeSelector", NULL);
	struct hf_error err = {0};

	whole->members = HF_ARENA_ARRAY(ro->pass.arena, struct hf_rollout_member,
					hf_cache_len(ro->nodes) + ro->pass.r.status.nodes.len + 1);
	whole->view.members = whole->members;
	if (selector != NULL && hf_selector_from_json(selector, &whole->selector, &err) != 0) {
		whole->view.problem =
			hf_arena_printf(ro->pass.arena, "spec.nodeSelector: %s", err.text);
		return;
	}
	see_restarts(whole);
	whole->ranks = HF_ARENA_ARRAY(ro->pass.arena, struct hf_rollout_rank, RO_COMPARED_MAX);
	if (ro->pass.drivers_len > 0)
		qsort(ro->pass.drivers, ro->pass.drivers_len, sizeof(struct ro_driver),
		      hf_compare_by_name);
	for (size_t it = 0; (entry = hf_cache_next(ro->nodes, &it)) != NULL;)
		see_member(whole, entry);
	see_lost(whole);
	block_unlisted(whole);
	whole->view.steps =
		hf_rollout_compare_steps(whole->ranks, whole->ranks_len, ro->pass.arena);
	whole->selector = hf_selector_destroy(whole->selector);
}

/* ---- the rollout ----------------------------------------------------------------------------------- */

static bool has_same_change(const struct hf_rollout_spec *a, const struct hf_rollout_spec *b)
{
	return hf_streq(a->daemon_set.ns, b->daemon_set.ns) &&
	       hf_streq(a->daemon_set.name, b->daemon_set.name) &&
	       hf_streq(a->label.key, b->label.key);
}

/* The older one goes on; of two of the same second, the first by name. */
static const char *find_rival(const struct ro *ro)
{
	const struct hf_rollout *own = &ro->pass.r;
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(ro->cache, &it)) != NULL;) {
		const struct ro_object *other = entry->view;

		if (!other->readable || !other->usable || hf_streq(entry->name, own->name) ||
		    hf_rollout_state_is_end(other->state) ||
		    !has_same_change(&other->spec, &ro->pass.spec))
			continue;
		if (other->state != HF_ROLLOUT_PENDING || other->r.created_at < own->created_at ||
		    (other->r.created_at == own->created_at && strcmp(entry->name, own->name) < 0))
			return entry->name;
	}
	return NULL;
}

static void see_whole(struct whole *whole)
{
	struct ro_pass *pass = &whole->ro->pass;
	const struct hf_rollout_spec *spec = &pass->spec;
	struct hf_rollout_limit *waves =
		HF_ARENA_ARRAY(pass->arena, struct hf_rollout_limit, spec->waves_len + 1);

	for (size_t i = 0; i < spec->waves_len; i++)
		waves[i] = (struct hf_rollout_limit){.count = spec->waves[i].count,
						     .percent = spec->waves[i].percent};
	whole->view = (struct hf_rollout_view){
		.now = hf_ro_now(whole->ro),
		.state = pass->state,
		.wave = pass->r.status.wave,
		.soak_since = pass->r.status.soak_since,
		.newest_end = HF_TIME_NONE,
		.seen_since = whole->ro->seen_since,
		.waves = waves,
		.waves_len = spec->waves_len,
		.at_once = spec->at_once,
		.soak = spec->soak,
		.failures_max = spec->failures_max,
		.rolls_back = spec->rolls_back,
		.is_label = spec->label.key != NULL,
		.paused = spec->paused,
		.cancel = hf_ro_ends(&pass->r, spec),
		.problem = pass->spec_problem,
		.halted_without_evidence = hf_ro_is_halted_without_evidence(&pass->r.status),
		.template_is_back = true,
		.can_go_back = true,
	};
	if (pass->spec_problem != NULL)
		return;
	whole->view.rival = find_rival(whole->ro);
	if (spec->daemon_set.name != NULL)
		see_daemon_set(whole);
	if (whole->waits)
		whole->view.closed = RO_UNSEEN_TEMPLATE;
	else if (pass->state != HF_ROLLOUT_ROLLING_BACK)
		whole->view.closed = hf_ro_find_closed(whole->ro);
}

/* Takes the nodes out of the plan that their HealthPolicy does not permit. Returns the first limit; NULL: none. */
static const char *drop_limited(struct whole *whole, struct hf_rollout_plan *plan)
{
	struct ro *ro = whole->ro;
	const char *nodes[HF_ROLLOUT_BEGIN_MAX], *limits[HF_ROLLOUT_BEGIN_MAX], *first = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < plan->begin_len; i++)
		nodes[i] = plan->begin[i]->name;
	find_limits(ro, nodes, plan->begin_len, true, limits);
	for (size_t i = 0; i < plan->begin_len; i++) {
		if (limits[i] == NULL) {
			plan->begin[kept++] = plan->begin[i];
			continue;
		}
		whole->members[plan->begin[i] - whole->members].limited = true;
		if (first == NULL)
			first = hf_arena_printf(ro->pass.arena, "node %s: %s", nodes[i], limits[i]);
	}
	plan->begin_len = kept;
	return first;
}

/* Marks the nodes that their HealthPolicies do not permit. Each permitted node counts as out of use for the next ones, so any
 * choice of the others is permitted. */
static void mark_limited(struct whole *whole)
{
	struct ro *ro = whole->ro;
	const char **nodes = HF_ARENA_ARRAY(ro->pass.arena, const char *, LIMITED_MAX);
	const char **limits = HF_ARENA_ARRAY(ro->pass.arena, const char *, LIMITED_MAX);
	size_t *at = HF_ARENA_ARRAY(ro->pass.arena, size_t, LIMITED_MAX), len = 0;

	for (size_t i = 0; i < whole->view.members_len && len < LIMITED_MAX; i++)
		if (hf_rollout_may_begin(&whole->view, &whole->members[i])) {
			at[len] = i;
			nodes[len++] = whole->members[i].name;
		}
	find_limits(ro, nodes, len, true, limits);
	for (size_t i = 0; i < len; i++)
		whole->members[at[i]].limited = limits[i] != NULL;
}

/* If no node of the plan is permitted, plans again without all nodes that are not: another node may be of another failure
 * domain or policy. */
static void plan_within_limits(struct whole *whole, struct hf_rollout_plan *plan)
{
	const char *limit = NULL;

	for (int tries = 0; tries < 2; tries++) {
		const char *found;

		hf_rollout_plan(&whole->view, whole->ro->pass.arena, plan);
		if (plan->begin_len == 0 || whole->view.state == HF_ROLLOUT_ROLLING_BACK)
			break;
		found = drop_limited(whole, plan);
		if (limit == NULL)
			limit = found;
		if (plan->begin_len > 0)
			break;
		mark_limited(whole);
	}
	if (limit != NULL && plan->begin_len == 0 && plan->work == 0 &&
	    plan->next == whole->view.state)
		snprintf(plan->message, sizeof(plan->message), "wave %d of %zu waits: %.300s",
			 whole->view.wave, whole->view.waves_len, limit);
}

/* ---- the writes ------------------------------------------------------------------------------------ */

/* Writes the previous template into the DaemonSet, as `kubectl rollout undo` does. */
static bool undo_template(struct ro *ro, struct hf_request *ret_request, struct hf_doc **ret_body)
{
	const struct hf_json *from = hf_doc_json(ro->pass.from);
	const struct hf_json *template = hf_json_path(from, "data", "spec", "template", NULL);
	struct hf_json *patch = hf_json_array(), *test = hf_json_object(),
		       *replace = hf_json_object(), *value = hf_json_copy(template);

	if (value == NULL) {
		hf_json_unref(patch);
		hf_json_unref(test);
		hf_json_unref(replace);
		return false;
	}
	/* The revision is a strategic merge patch of the DaemonSet. */
	hf_json_remove(value, "$patch");
	hf_json_set_str(test, "op", "test");
	hf_json_set_str(test, "path", "/metadata/resourceVersion");
	hf_json_set_str(test, "value", hf_doc_resource_version(ro->pass.docs[RO_READ_DAEMON_SET]));
	hf_json_set_str(replace, "op", "replace");
	hf_json_set_str(replace, "path", "/spec/template");
	hf_json_set(replace, "value", value);
	hf_json_append(patch, test);
	hf_json_append(patch, replace);
	*ret_body = hf_doc_from_json(patch);
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = &hf_daemonsets,
					   .ns = ro->pass.spec.daemon_set.ns,
					   .name = ro->pass.spec.daemon_set.name,
					   .patch_type = HF_PATCH_JSON,
					   .body = *ret_body};
	return true;
}

static void begin_nodes(struct ro *ro, const struct hf_rollout_plan *plan,
			struct hf_rollout_status *status)
{
	hf_time now = hf_ro_now(ro);
	bool back = ro->pass.state == HF_ROLLOUT_ROLLING_BACK;

	for (size_t i = 0; i < plan->begin_len; i++) {
		struct hf_rollout_node *entry = hf_ro_find_entry(status, plan->begin[i]->name);

		if (entry == NULL) {
			entry = &status->nodes.items[status->nodes.len++];
			*entry = (struct hf_rollout_node){.name = plan->begin[i]->name};
		}
		/* Nodes without an entry have not failed: the list keeps each failed node. */
		entry->was_well =
			back && (entry->was_well ||
				 !hf_streq(entry->phase, hf_rollout_phase_name(HF_ROLLOUT_FAILED)));
		entry->was_away = back && plan->begin[i]->away;
		entry->phase = hf_rollout_phase_name(HF_ROLLOUT_WAITING);
		entry->outcome = NULL;
		entry->since = now;
		entry->changed_at = HF_TIME_NONE;
		entry->tries++;
		entry->message = NULL;
	}
}

static void fail_node(struct ro *ro, const struct hf_rollout_plan *plan,
		      struct hf_rollout_status *status)
{
	struct hf_rollout_node *entry;

	if (plan->fails == NULL)
		return;
	entry = hf_ro_find_entry(status, plan->fails->name);
	if (entry == NULL) {
		entry = &status->nodes.items[status->nodes.len++];
		*entry = (struct hf_rollout_node){.name = plan->fails->name,
						  .changed_at = plan->fails->changed_at};
	}
	entry->phase = hf_rollout_phase_name(HF_ROLLOUT_FAILED);
	entry->since = hf_ro_now(ro);
	entry->message = plan->fails_why;
}

static bool set_conditions(struct ro *ro, const struct whole *whole,
			   const struct hf_rollout_plan *plan, struct hf_rollout_status *status)
{
	const struct hf_rollout_view *view = &whole->view;
	bool differs, working = plan->next == HF_ROLLOUT_ROLLING ||
				plan->next == HF_ROLLOUT_SOAKING ||
				plan->next == HF_ROLLOUT_ROLLING_BACK;

	differs = hf_ro_set_condition(ro, status, "Accepted", view->problem == NULL,
				      view->problem == NULL ? "Valid" : "Invalid",
				      hf_str_or(view->problem, "the spec can be carried out"));
	differs |= hf_ro_set_condition(ro, status, "Progressing", working,
				       hf_rollout_state_name(plan->next), plan->message);
	if (plan->halt_reason != NULL)
		differs |= hf_ro_set_condition(ro, status, "Halted", true, plan->halt_reason,
					       plan->halt);
	if (plan->next == HF_ROLLOUT_ENDED_FAILED)
		differs |= hf_ro_set_condition(ro, status, "RolledBack",
					       plan->failed == 0 && plan->left == 0,
					       plan->failed > 0 ? "NodesFailed"
					       : plan->left > 0 ? "NodesLeft"
								: "Proved",
					       plan->message);
	return differs;
}

static bool set_numbers(const struct whole *whole, const struct hf_rollout_plan *plan,
			struct hf_rollout_status *status)
{
	const struct hf_rollout_totals *c = &whole->view.changed, *u = &whole->view.unchanged;
	bool differs =
		status->counts.selected != plan->selected ||
		status->counts.changed != plan->changed || status->counts.failed != plan->failed ||
		status->counts.skipped != plan->skipped || status->changed.faults != c->faults ||
		status->unchanged.faults != u->faults || status->changed.restarts != c->restarts ||
		status->unchanged.restarts != u->restarts;

	status->counts.selected = plan->selected;
	status->counts.changed = plan->changed;
	status->counts.failed = plan->failed;
	status->counts.skipped = plan->skipped;
	status->changed.nodes = c->nodes;
	status->changed.device_minutes = c->device_minutes;
	status->changed.faults = c->faults;
	status->unchanged.nodes = u->nodes;
	status->unchanged.device_minutes = u->device_minutes;
	status->unchanged.faults = u->faults;
	status->changed.restarts = c->restarts;
	status->unchanged.restarts = u->restarts;
	status->changed.step_nodes = whole->view.steps.changed_nodes;
	status->unchanged.step_nodes = whole->view.steps.unchanged_nodes;
	status->step_permille = whole->view.steps.permille;
	return differs;
}

static int32_t count_running(const struct whole *whole, const char *revision)
{
	int32_t count = 0;

	for (size_t i = 0; i < whole->view.members_len; i++) {
		const struct ro_driver *driver =
			find_driver(&whole->ro->pass, whole->members[i].name);

		count += driver != NULL && hf_streq(driver->revision, revision);
	}
	return count;
}

/* Returns the revision to go back to: the one that most nodes run. A template that was changed twice before the rollout
 * has left a revision that no node has run. NULL: there is only the newest, or a person has undone the other. */
static const char *find_from(const struct whole *whole)
{
	const struct ro_pass *pass = &whole->ro->pass;
	const struct ro_revision *best = NULL;
	int32_t most = 0;

	for (size_t i = 0; i < pass->revisions_len; i++) {
		const struct ro_revision *revision = &pass->revisions[i];
		int32_t count = count_running(whole, revision->hash);

		if (hf_streq(revision->hash, pass->newest.hash) ||
		    (best != NULL &&
		     (count < most || (count == most && revision->number < best->number))))
			continue;
		best = revision;
		most = count;
	}
	return best == NULL || hf_ro_is_undone(pass, best) ? NULL : best->hash;
}

/* Makes the status that the plan asks for. True: it differs from the stored status. */
static bool make_status(struct ro *ro, const struct whole *whole,
			const struct hf_rollout_plan *plan, struct hf_rollout_status *status)
{
	bool moves = plan->next != whole->view.state;
	bool differs = moves || plan->begin_len > 0 || plan->fails != NULL ||
		       status->phase == NULL || status->wave != plan->wave;
	struct hf_rollout_node *room = HF_ARENA_ARRAY(ro->pass.arena, struct hf_rollout_node,
						      status->nodes.len + HF_ROLLOUT_BEGIN_MAX + 1);

	for (size_t i = 0; i < status->nodes.len; i++)
		room[i] = status->nodes.items[i];
	status->nodes.items = room;
	if (*plan->message != '\0' && !hf_streq(plan->message, status->message)) {
		status->message = plan->message;
		differs = true;
	}
	if (whole->view.state == HF_ROLLOUT_PENDING && plan->next == HF_ROLLOUT_ROLLING) {
		status->started_at = hf_ro_now(ro);
		status->target_revision = ro->pass.newest.hash;
		status->from_revision = find_from(whole);
	}
	status->phase = hf_rollout_state_name(plan->next);
	status->wave = plan->wave;
	status->soak_since = plan->soak_since;
	begin_nodes(ro, plan, status);
	fail_node(ro, plan, status);
	hf_ro_trim_entries(status);
	differs |= set_numbers(whole, plan, status);
	return set_conditions(ro, whole, plan, status) || differs;
}

/* The entry of a node that this rollout has cordoned, and that the list has lost. If the change has begun, the node has
 * no proof. */
static struct hf_rollout_node make_lost_entry(struct ro *ro, const char *name,
					      const struct ro_node *node)
{
	struct hf_rollout_mark mark;
	bool marked = hf_ro_find_mark(&ro->pass, node->marks, &mark) && !mark.rolled_back;

	return (struct hf_rollout_node){
		.name = name,
		.phase = hf_rollout_phase_name(HF_ROLLOUT_RESTORING),
		.outcome = hf_rollout_phase_name(marked ? HF_ROLLOUT_FAILED : HF_ROLLOUT_SKIPPED),
		.since = hf_ro_now(ro),
		.changed_at = marked ? mark.at : HF_TIME_NONE,
		.cordoned_by_us = hf_streq(node->owner, ro->pass.name),
		.tries = 1,
		.message = "the status has lost what was done on this node"};
}

/* Lists the nodes that this rollout has cordoned or works on, and that have no entry: another program has written the
 * status, or a rollout of the same name was deleted without its finalizer. Returns true if there is one. */
static bool list_lost_nodes(struct ro *ro, struct hf_rollout_status *status)
{
	size_t len = status->nodes.len, max = len + HF_ROLLOUT_BEGIN_MAX;
	struct hf_rollout_node *list = HF_ARENA_ARRAY(ro->pass.arena, struct hf_rollout_node, max);
	const char *work = hf_ro_print_work(ro);
	const struct hf_cache_entry *cached;

	for (size_t i = 0; i < len; i++)
		list[i] = status->nodes.items[i];
	for (size_t it = 0; len < max && len < HF_ROLLOUT_NODES_MAX &&
			    (cached = hf_cache_next(ro->nodes, &it)) != NULL;) {
		const struct ro_node *node = cached->view;

		if ((hf_streq(node->owner, ro->pass.name) || hf_streq(node->work, work)) &&
		    hf_ro_find_entry(&ro->pass.r.status, cached->name) == NULL)
			list[len++] = make_lost_entry(ro, cached->name, node);
	}
	if (len == status->nodes.len)
		return false;
	status->nodes.items = list;
	status->nodes.len = len;
	return true;
}

static bool needs_finalizer(const struct ro *ro, const struct hf_rollout_plan *plan)
{
	const struct hf_rollout_status *status = &ro->pass.r.status;

	if (!hf_rollout_state_is_end(plan->next) && !ro->pass.r.deleting)
		return true;
	for (size_t i = 0; i < status->nodes.len; i++)
		if (hf_ro_needs_pass(&status->nodes.items[i]))
			return true;
	return false;
}

static hf_time find_wait(const struct whole *whole, const struct hf_rollout_plan *plan)
{
	hf_time wait = whole->view.state == HF_ROLLOUT_PENDING ? LOOK_PENDING : LOOK_WORKING;

	if (plan->wake_at > whole->view.now && plan->wake_at - whole->view.now < wait)
		wait = plan->wake_at - whole->view.now;
	return wait;
}

/* As long as a node may take to become empty: since the begin of the rollout, the newest proof, or the end of the soak after
 * it, and since this operator has read the cluster. */
static hf_time find_wait_end(const struct whole *whole)
{
	const struct ro_pass *pass = &whole->ro->pass;
	hf_time since = pass->r.status.started_at, newest = whole->view.newest_end,
		soaked = hf_rollout_find_soak_end(&whole->view);

	if (since == HF_TIME_NONE)
		return HF_TIME_NONE;
	if (newest > since)
		since = pass->r.status.wave > 1 && soaked <= whole->view.now ? soaked : newest;
	if (whole->ro->seen_since > since)
		since = whole->ro->seen_since;
	return hf_time_add(since, pass->spec.empty_for);
}

bool hf_ro_whole(struct ro *ro, struct hf_request *ret_request, struct hf_doc **ret_body,
		 hf_time *ret_wait)
{
	struct whole *whole = HF_ARENA_NEW(ro->pass.arena, struct whole);
	struct hf_rollout_plan *plan = HF_ARENA_NEW(ro->pass.arena, struct hf_rollout_plan);
	struct hf_rollout_status status = ro->pass.r.status;

	*ret_body = NULL;
	/* Without the finalizer nothing has begun, or all is put back. */
	if (ro->pass.r.has_finalizer && list_lost_nodes(ro, &status)) {
		*ret_wait = 0;
		return hf_ro_write_status(ro, &status, ret_request, ret_body);
	}
	whole->ro = ro;
	see_whole(whole);
	see_nodes(whole);
	whole->view.wait_until = find_wait_end(whole);
	plan_within_limits(whole, plan);
	*ret_wait = find_wait(whole, plan);
	if (needs_finalizer(ro, plan) != ro->pass.r.has_finalizer &&
	    (ro->pass.r.has_finalizer ? plan->next == whole->view.state : !ro->pass.r.deleting))
		return hf_ro_write_finalizer(ro, !ro->pass.r.has_finalizer, ret_request, ret_body);
	if (hf_rollout_state_is_end(whole->view.state))
		return false;
	if (plan->undo_template && !whole->waits)
		return undo_template(ro, ret_request, ret_body);
	if (!make_status(ro, whole, plan, &status))
		return false;
	if (plan->next != whole->view.state)
		ro->done = hf_rollout_state_name(plan->next);
	return hf_ro_write_status(ro, &status, ret_request, ret_body);
}
