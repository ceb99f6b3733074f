/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/in_place.h"

#include "base/str.h"
#include "harness/ledger_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes, and their agents, which report execs and give them the orders of the ledger. */

/* --- the agent ------------------------------------------------------------------------------------------ */

static void write_soon(struct node *node, hf_time within)
{
	if (!hf_timer_armed(node->write) ||
	    hf_timer_due(node->write) > hf_loop_mono(node->w->loop) + within)
		hf_timer_arm(node->write, within);
}

static void give_orders(struct node *node);

/* True if all held ranks of the node have stopped, so that one write reports them together. */
static bool is_wave_over(const struct node *node)
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(node->w->pods, &it, &key, &value);) {
		const struct pod *pod = value;

		if (pod->node == node && pod->connected && pod->told && pod->thold &&
		    (pod->process || ip_is_lower(pod)))
			return false;
	}
	return true;
}

/* The agent writes urgent news at once. The news that a process runs waits for the next write. */
void ip_agent_hears(struct pod *pod)
{
	struct node *node = pod->node;

	if (!pod->connected || !node->agent)
		return;
	give_orders(node);
	if (pod->phase == RUNNING)
		write_soon(node, pod->ordinal == 1 || !pod->written
					 ? ip_span(node->w, 3 * HF_SECOND)
					 : HEARTBEAT);
	else if (pod->phase == DOWN && !is_wave_over(node))
		write_soon(node, HF_SECOND);
	else
		write_soon(node, 20 * HF_MS);
}

static bool may_speak(const struct node *node)
{
	return node->agent && node->power && node->link;
}

static void add_process(struct hf_strbuf *sb, const struct pod *pod)
{
	char at[HF_TIME_TEXT_MAX];

	hf_time_format_micro(pod->since, at);
	hf_strbuf_addf(
		sb,
		"%s{'namespace':'default','pod':'%s','uid':'%s','job':'%s','generation':%lld,"
		"'attempt':%lld,'ordinal':%d,'phase':'%s','time':'%s'",
		sb->len > 0 ? "," : "", pod->name, pod->uid, pod->job_uid, (long long)pod->g,
		(long long)pod->a, pod->ordinal, ip_phase_names[pod->phase], at);
	if (pod->phase == ENDED)
		hf_strbuf_addf(sb, ",'code':%d", pod->code);
	hf_strbuf_addstr(sb, "}");
}

void ip_on_write(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;
	HF_AUTO_STRBUF list = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(2 * TEXT_MAX);
	char at[HF_TIME_TEXT_MAX];
	const char *key;
	void *value;

	hf_timer_arm(node->beat, HEARTBEAT);
	if (!may_speak(node)) {
		if (node->agent)
			hf_timer_arm(node->write, HF_SECOND);
		return;
	}
	/* The API server is slow or refuses, so the agent writes later. */
	if (ip_trouble(w, 60)) {
		hf_timer_arm(node->write, ip_span(w, 8 * HF_SECOND));
		return;
	}
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node == node && !pod->connected)
			pod->written = false;
		if (pod->node != node || !pod->connected)
			continue;
		add_process(&list, pod);
		if (!pod->written)
			pod->written_at = ip_now(w);
		pod->written = true;
	}
	hf_strbuf_addf(&text, "{'status':{'observedTime':'%s','processes':[%s]}}",
		       ip_format_time(w, at), list.data);
	if (hf_memstore_peek(w->memstore, &hf_devicehealths, NULL, node->name) == NULL) {
		char object[256];

		snprintf(object, sizeof(object),
			 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':"
			 "{'name':'%s'}}",
			 node->name);
		(void)ip_create(w, &hf_devicehealths, NULL, object);
	}
	(void)ip_patch(w, &hf_devicehealths, NULL, node->name, "status", text.data);
	w->agent_writes++;
	give_orders(node);
	if (ip_trouble(w, 30)) /* once more the same */
		hf_timer_arm(node->write, ip_span(w, HF_SECOND));
}

const char *ip_type_of(const struct pod *pod)
{
	return strstr(pod->name, "-master-") != NULL ? "Master" : "Worker";
}

long long ip_index_of(const struct pod *pod)
{
	return strtoll(strrchr(pod->name, '-') + 1, NULL, 10);
}

/* True if the ledger expects this pod. A pod that was given up while its node was cut off, or that
 * is about to go, starts no process any more. */
static bool is_of_now(const struct pod *pod, const struct hf_json *ledger)
{
	const struct hf_json *role = hf_json_path(ledger, "replicas", ip_type_of(pod), NULL);
	int64_t g = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	int64_t base = hf_json_i64(hf_json_get(ledger, "inPlaceBase"), g);
	int64_t a = ledger_text_number(hf_json_str(hf_json_get(role, "attempts"), NULL),
				       ip_index_of(pod));
	int64_t alone = ledger_text_number(hf_json_str(hf_json_get(role, "inPlace"), NULL),
					   ip_index_of(pod));

	return pod->g0 >= base && pod->g0 <= g && pod->a0 + alone == a;
}

bool ip_is_let_start(const struct pod *pod, const struct hf_json *ledger)
{
	const struct hf_json *role = hf_json_path(ledger, "replicas", ip_type_of(pod), NULL);

	/* The operator makes a pod again, and counts nothing, that has gone before it was noted. */
	return is_of_now(pod, ledger) &&
	       ledger_text_has(hf_json_str(hf_json_get(role, "created"), NULL), ip_index_of(pod)) &&
	       !ledger_text_has(hf_json_str(hf_json_get(role, "hold"), NULL), ip_index_of(pod));
}

static void give_order(struct pod *pod, const struct hf_json *job, const struct hf_json *ledger)
{
	const struct hf_json *role = hf_json_path(ledger, "replicas", ip_type_of(pod), NULL);
	int64_t g, a;

	if (ledger == NULL ||
	    !hf_streq(hf_json_path_str(job, "metadata", "uid", NULL), pod->job_uid))
		return;
	g = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	a = ledger_text_number(hf_json_str(hf_json_get(role, "attempts"), NULL), ip_index_of(pod));
	pod->stays = hf_json_i64(hf_json_get(ledger, "inPlaceWaitSeconds"), 0) > 0;
	/* An order older than the last one comes from a watch that is behind, so exec ignores
	 * it. */
	if (pod->told && (g < pod->tg || (g == pod->tg && a < pod->ta)))
		return;
	/* The ledger is older than this pod, so its order is not for this pod. */
	if (g < pod->g0 || (g == pod->g0 && a < pod->a0))
		return;
	pod->tg = g;
	pod->ta = a;
	pod->thold =
		ledger_text_has(hf_json_str(hf_json_get(role, "hold"), NULL), ip_index_of(pod)) ||
		!is_of_now(pod, ledger);
	pod->tsave = hf_json_get(ledger, "saveUntil") != NULL
			     ? hf_json_i64(hf_json_get(ledger, "inPlaceSaveSeconds"), 0)
			     : 0;
	pod->told = true;
	ip_obey(pod);
}

static void give_orders(struct node *node)
{
	const char *key;
	void *value;
	struct pod *list[64];
	size_t n = 0;

	if (!node->agent || node->job == NULL)
		return;
	for (size_t it = 0; hf_map_next(node->w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		/* An operator that has not heard of an exec does not hold its rank. So only an exec
		 * that the agent has reported gets orders. */
		if (pod->node == node && pod->connected && pod->written && !pod->leaving &&
		    n < HF_ARRAY_LEN(list))
			list[n++] = pod;
	}
	HF_AUTO_JSON ledger = ip_ledger(node->job);

	for (size_t i = 0; i < n; i++)
		give_order(list[i], hf_doc_json(node->job), ledger);
}

/* The agent reads the job: by its watch, or by a list after the watch broke. */
void ip_on_read(void *arg)
{
	struct node *node = arg;
	struct hf_doc *job = ip_job_doc(node->w);

	if (!may_speak(node)) {
		hf_timer_arm(node->read, HF_SECOND);
		return;
	}
	if (job == NULL)
		return;
	hf_doc_unref(node->job);
	node->job = hf_doc_ref(job);
	give_orders(node);
}

void ip_on_repeat(void *arg)
{
	struct node *node = arg;

	hf_timer_arm(node->repeat, REPEAT);
	if (!may_speak(node))
		return;
	ip_on_read(node);
}

void ip_on_beat(void *arg)
{
	struct node *node = arg;

	hf_timer_arm(node->beat, HEARTBEAT);
	if (node->agent)
		write_soon(node, HF_MS);
}

void ip_job_changed(struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		struct node *node = &w->nodes[i];

		/* The event of this change is lost: the agent reads the job when it next lists. */
		if (ip_trouble(w, 30))
			continue;
		if (!hf_timer_armed(node->read))
			hf_timer_arm(node->read, ip_trouble(w, 60) ? ip_span(w, 10 * HF_SECOND)
								   : ip_span(w, 20 * HF_MS));
	}
}

void ip_agent_dies(struct node *node, hf_time away)
{
	struct world *w = node->w;
	const char *key;
	void *value;

	if (!node->agent)
		return;
	ip_tell(w, "world: the agent of %s dies", node->name);
	w->met->agent_deaths++;
	node->agent = false;
	hf_doc_unref(node->job);
	node->job = NULL;
	hf_timer_disarm(node->write);
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node != node || !pod->connected)
			continue;
		pod->connected = false;
		hf_timer_arm(pod->connect, HF_SECOND);
	}
	hf_timer_arm(node->agent_back, away);
}

void ip_on_agent_back(void *arg)
{
	struct node *node = arg;

	if (!node->power) {
		hf_timer_arm(node->agent_back, 5 * HF_SECOND);
		return;
	}
	node->agent = true;
	ip_tell(node->w, "world: the agent of %s is back", node->name);
	hf_timer_arm(node->read, HF_MS);
	write_soon(node, ip_span(node->w, HF_SECOND));
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

void ip_set_ready(struct node *node, const char *status)
{
	char text[512], at[HF_TIME_TEXT_MAX];
	bool unknown = hf_streq(status, "Unknown");

	hf_time_format(hf_loop_wall(node->w->loop), at);
	node->unknown = unknown;
	snprintf(text, sizeof(text),
		 "{'status':{'conditions':[{'type':'Ready','status':'%s','lastTransitionTime':'%s'"
		 "}]}}",
		 status, at);
	(void)ip_patch(node->w, &hf_nodes, NULL, node->name, "status", text);
	(void)ip_patch(
		node->w, &hf_nodes, NULL, node->name, NULL,
		unknown ? "{'spec':{'taints':[{'key':'node.kubernetes.io/unreachable','effect':"
			  "'NoExecute'},{'key':'node.kubernetes.io/unreachable','effect':"
			  "'NoSchedule'}]}}"
			: "{'spec':{'taints':[]}}");
}

void ip_on_lease(void *arg)
{
	struct node *node = arg;
	char text[256], at[HF_TIME_TEXT_MAX];

	hf_timer_arm(node->lease, 10 * HF_SECOND);
	if (!node->power || !node->link)
		return;
	snprintf(text, sizeof(text), "{'spec':{'renewTime':'%s'}}", ip_format_time(node->w, at));
	(void)ip_patch(node->w, &hf_leases, "kube-node-lease", node->name, NULL, text);
}

void ip_on_lost(void *arg)
{
	struct node *node = arg;

	if (node->power && node->link)
		return;
	ip_tell(node->w, "control plane: %s is Unknown", node->name);
	node->w->met->node_losses++;
	ip_set_ready(node, "Unknown");
}

void ip_node_goes(struct node *node, bool power)
{
	struct world *w = node->w;
	const char *key;
	void *value;

	if (!node->power || !node->link)
		return;
	ip_tell(w, "world: %s %s", node->name, power ? "loses its power" : "is cut off");
	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node != node)
			continue;
		w->faults += pod->object && !pod->over;
		if (power && pod->container) {
			ip_stop_exec(pod);
			pod->code = 137;
			hf_timer_disarm(pod->start);
		}
	}
	if (power) {
		node->power = false;
		node->agent = false;
		hf_doc_unref(node->job);
		node->job = NULL;
	} else {
		node->link = false;
	}
	w->unwell_until = HF_TIME_NEVER - HF_DAY;
	hf_timer_arm(node->lost, 40 * HF_SECOND + ip_span(w, 10 * HF_SECOND));
	hf_timer_arm(node->back, w->calm ? HF_SECOND : HF_SECOND + ip_span(w, 8 * HF_MINUTE));
}

static void settle_pods(struct node *node)
{
	struct world *w = node->w;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(w->pods, &it, &key, &value);) {
		struct pod *pod = value;

		if (pod->node != node)
			continue;
		if (!pod->object || pod->leaving) {
			hf_timer_arm(pod->kubelet, HF_SECOND + ip_span(w, HF_SECOND));
		} else if (!pod->container && !pod->over && (pod->ordinal > 0 || pod->code != 0)) {
			/* It went with the power. */
			if (pod->never) {
				pod->over = true;
				ip_report_ended(pod, "Failed");
			} else {
				ip_report_ended(pod, "Running");
				hf_timer_arm(pod->start, ip_span(w, 5 * HF_SECOND));
			}
		} else if (pod->over) {
			ip_report_ended(pod, pod->code == 0 ? "Succeeded" : "Failed");
		} else if (pod->container) {
			ip_report_running(pod);
		}
	}
}

void ip_on_back(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	if (node->power && node->link)
		return;
	ip_tell(w, "world: %s is back", node->name);
	if (!node->power)
		hf_timer_arm(node->agent_back, HF_SECOND + ip_span(w, 5 * HF_SECOND));
	node->power = node->link = true;
	hf_timer_arm(node->read, HF_MS);
	ip_on_lease(node);
	if (node->unknown)
		ip_set_ready(node, "True");
	settle_pods(node);
	w->unwell_until = ip_now(w);
	for (int i = 0; i < NODES; i++)
		if (!w->nodes[i].power || !w->nodes[i].link)
			w->unwell_until = HF_TIME_NEVER - HF_DAY;
}
