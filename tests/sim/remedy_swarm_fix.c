/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/front_store.h"
#include "sim/remedy_swarm_wild.h"

#include "api/lifetime.h"
#include "api/remediation.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <string.h>

/*
 * Rung external in the wild world: the template, the objects, and a controller that power-cycles or replaces machines.
 *
 * Invariants: an object is created for an act in phase Acting, and by no other; an object of an act is deleted with
 * it, and an object of others never.
 */

/* ---- the API ------------------------------------------------------------------------------------- */

static struct fix *find_fix(struct fixes *fixes, const char *name)
{
	for (size_t i = 0; i < fixes->len; i++)
		if (hf_streq(hf_doc_name(fixes->objects[i].doc), name))
			return &fixes->objects[i];
	return NULL;
}

static void remove_fix(struct fixes *fixes, struct fix *fix)
{
	hf_doc_unref(fix->doc);
	*fix = fixes->objects[--fixes->len];
}

static struct fix *add_fix(struct wild *wild, struct hf_doc *body, bool foreign)
{
	struct fixes *fixes = &wild->fixes;
	struct hf_json *json = hf_doc_copy_json(body);
	struct fix *fix = &fixes->objects[fixes->len++];
	char uid[16];

	hf_assert(fixes->len <= FIX_OBJECTS_MAX);
	snprintf(uid, sizeof(uid), "fix-%u", ++fixes->uids);
	hf_json_set_str(hf_json_ensure_object(json, "metadata"), "uid", uid);
	hf_json_set_str(hf_json_ensure_object(json, "metadata"), "resourceVersion", "1");
	*fix = (struct fix){.doc = hf_doc_from_json(json), .foreign = foreign};
	snprintf(fix->node, sizeof(fix->node), "%s", hf_doc_name(fix->doc));
	fix->due = hf_loop_mono(wild->s->w->loop) + (hf_time)wild_pick(wild, 30) * HF_SECOND;
	return fix;
}

/* The operator creates an object. */
static void check_create(struct wild *wild, struct hf_doc *body)
{
	struct rs *s = wild->s;
	const struct hf_json *owner = hf_json_item(
		hf_json_path(hf_doc_json(body), "metadata", "ownerReferences", NULL), 0);
	const char *act = hf_str_or(hf_json_path_str(owner, "name", NULL), "?");
	const struct hf_json *r = rw_get(s->w, &hf_remediations, NULL, act);

	wild->fixes.creates++;
	if (r == NULL || !hf_streq(hf_json_path_str(r, "metadata", "uid", NULL),
				   hf_json_path_str(owner, "uid", NULL)))
		rw_break(s->w, "an object for an act that does not exist", act);
	else if (!hf_streq(hf_json_path_str(r, "status", "phase", NULL), "Acting"))
		rw_break(s->w, "an object for an act that is not Acting", act);
	if (hf_json_path(hf_doc_json(body), "spec", "how", NULL) == NULL)
		rw_break(s->w, "an object without the spec of the template", act);
}

static int perform_fix(struct wild *wild, const struct front_call *call, struct hf_doc **ret_doc)
{
	struct fixes *fixes = &wild->fixes;
	struct fix *fix = find_fix(fixes, call->verb == HF_VERB_CREATE ? hf_doc_name(call->body)
								       : call->name);

	if (call->verb == HF_VERB_CREATE) {
		if (fix != NULL)
			return HF_E_EXISTS;
		check_create(wild, call->body);
		fix = add_fix(wild, call->body, false);
	} else if (call->verb == HF_VERB_DELETE && fix != NULL) {
		if (!hf_streq(call->uid, hf_doc_uid(fix->doc)))
			return HF_E_CONFLICT;
		if (fix->foreign)
			rw_break(wild->s->w, "the object of another program is deleted", fix->node);
		fixes->deletes++;
		if (fixes->linger) {
			front_mark_deleted(&fix->doc);
			fix->leaves = true;
		} else {
			remove_fix(fixes, fix);
		}
		return 0;
	}
	*ret_doc = fix == NULL ? NULL : fix->doc;
	return fix == NULL ? HF_E_NOT_FOUND : 0;
}

static void answer(void *arg, struct front_call *call)
{
	struct wild *wild = arg;
	struct fixes *fixes = &wild->fixes;
	bool writes = call->verb != HF_VERB_GET && call->verb != HF_VERB_LIST;
	bool loses = wild_pick(wild, 1000) < fixes->lose_permille;
	struct hf_doc *doc = NULL;
	int code;

	if (loses && wild_pick(wild, 2) == 0)
		code = HF_E_UNAVAILABLE;
	else if (writes && fixes->refuse != 0)
		code = fixes->refuse;
	else if (!hf_streq(call->plural, "fixtemplates"))
		code = perform_fix(wild, call, &doc);
	else {
		doc = fixes->template;
		code = doc == NULL ? HF_E_NOT_FOUND : 0;
	}
	if (loses)
		code = HF_E_TIMEOUT;
	front_answer(call, code, code == 0 ? doc : NULL);
}

struct hf_store *fix_wrap(struct wild *wild, struct hf_store *inner)
{
	const struct front_options options = {.loop = wild->s->w->loop,
					      .group = "fix.example",
					      .delay = &wild->fixes.delay,
					      .answer = answer,
					      .arg = wild};

	return front_store_create(&options, inner);
}

void fix_create_template(struct wild *wild)
{
	wild->fixes.delay = HF_MS;
	hf_doc_unref(wild->fixes.template);
	wild->fixes.template = json_doc_of(
		"{'apiVersion':'fix.example/v1','kind':'FixTemplate','metadata':{'name':'t','uid':'u',"
		"'resourceVersion':'1'},'spec':{'template':{'spec':{'how':'power'}}}}");
}

void fix_destroy(struct wild *wild)
{
	while (wild->fixes.len > 0)
		remove_fix(&wild->fixes, &wild->fixes.objects[0]);
	hf_doc_unref(wild->fixes.template);
}

/* ---- the controller of these objects ------------------------------------------------------------- */

static void switch_off(struct wild *wild, int node)
{
	struct rw *w = wild->s->w;
	char name[16];

	rw_name(node, name);
	w->silent[node] = wild->off[node] = true;
	if (rw_get(w, &hf_nodes, NULL, name) != NULL)
		rw_set_ready(w, node, "Unknown");
}

static void replace_node(struct wild *wild, int node)
{
	struct rw *w = wild->s->w;
	char name[16];

	rw_name(node, name);
	(void)rw_remove(wild->s->w, &hf_nodes, NULL, name, 0);
	wild_collect(wild, name);
	wild->s->held[node] = false;
	if (w->holder[node] != NULL)
		w->holder[node] = NULL;
	wild->s->pods[node] = NULL;
}

static void step_fix(struct wild *wild, struct fix *fix)
{
	struct rs *s = wild->s;
	int node = rw_index_of(s->w, fix->node);
	hf_time now = hf_loop_mono(s->w->loop);

	if (fix->ended || fix->foreign || now < fix->due)
		return;
	if (!fix->began) {
		/* Some controllers are not installed. */
		if (wild_pick(wild, 5) == 0 || s->gone[node] || rs_is_approved(s, node)) {
			fix->due = now + HF_MINUTE;
			return;
		}
		/* What the machine was doing ends: a reboot that never ended too. */
		s->a->ends_at[node] = 0;
		fix->began = true;
		fix->due = now + (hf_time)wild_pick(wild, 180) * HF_SECOND;
		switch_off(wild, node);
		if (wild_pick(wild, 3) == 0)
			replace_node(wild, node);
		return;
	}
	fix->ended = true;
	if (s->gone[node])
		return;
	wild_come_back(wild, node);
	rw_say(s->w, node, wild_pick(wild, 3) == 0 ? s->w->ill[node] : RW_WELL);
}

/* The power cycle of an object that is deleted meanwhile ends as well. */
static void finish_lost(struct wild *wild)
{
	struct rs *s = wild->s;

	for (int i = 0; i < s->w->nodes; i++) {
		bool busy = s->a->ends_at[i] != 0 || s->gone[i];

		for (size_t k = 0; k < wild->fixes.len; k++)
			busy |= wild->fixes.objects[k].began && !wild->fixes.objects[k].ended &&
				rw_index_of(s->w, wild->fixes.objects[k].node) == i;
		if (wild->off[i] && !busy && wild_pick(wild, 60) == 0) {
			wild_come_back(wild, i);
			/* The agent finds a fault again in the new boot. */
			rw_say(s->w, i, s->w->ill[i]);
		}
	}
}

void fix_tick(struct wild *wild)
{
	for (size_t i = 0; i < wild->fixes.len; i++)
		step_fix(wild, &wild->fixes.objects[i]);
	for (size_t i = wild->fixes.len; i > 0; i--)
		if (wild->fixes.objects[i - 1].leaves && wild_pick(wild, 600) == 0)
			remove_fix(&wild->fixes, &wild->fixes.objects[i - 1]);
	finish_lost(wild);
}

/* ---- trouble ------------------------------------------------------------------------------------- */

static void create_foreign(struct wild *wild, int node)
{
	char text[256], name[16];
	HF_AUTO_DOC body = NULL;

	rw_name(node, name);
	if (find_fix(&wild->fixes, name) != NULL || rs_is_approved(wild->s, node))
		return;
	snprintf(text, sizeof(text),
		 "{'apiVersion':'fix.example/v1','kind':'Fix','metadata':{'name':'%s'},'spec':{}}",
		 name);
	body = json_doc_of(text);
	(void)add_fix(wild, body, true);
	wild->fixes.foreign++;
}

static void delete_any(struct wild *wild)
{
	struct fixes *fixes = &wild->fixes;
	struct fix *fix;

	if (fixes->len == 0)
		return;
	fix = &fixes->objects[wild_pick(wild, (unsigned)fixes->len)];
	fixes->foreign -= fix->foreign;
	remove_fix(fixes, fix);
}

static void change_template(struct wild *wild)
{
	if (wild->fixes.template == NULL || wild_pick(wild, 4) > 0) {
		fix_create_template(wild);
		return;
	}
	wild->fixes.template = hf_doc_unref(wild->fixes.template);
	if (wild_pick(wild, 2) == 0)
		wild->fixes.template = json_doc_of(
			"{'apiVersion':'fix.example/v1','kind':'FixTemplate','metadata':{'name':'t',"
			"'uid':'u','resourceVersion':'2'},'spec':{'template':{}}}");
}

void fix_disturb(struct wild *wild, int node)
{
	static const int codes[] = {
		0, 0, 0, HF_E_FORBIDDEN, HF_E_INVALID, HF_E_INTERNAL, HF_E_TOO_MANY};

	switch (wild_pick(wild, 5)) {
	case 0: create_foreign(wild, node); break;
	case 1: delete_any(wild); break;
	case 2: change_template(wild); break;
	case 3: wild->fixes.refuse = codes[wild_pick(wild, HF_ARRAY_LEN(codes))]; break;
	default:
		wild->fixes.lose_permille = wild_pick(wild, 2) * 200;
		wild->fixes.delay =
			wild_pick(wild, 2) == 0 ? HF_MS : (hf_time)wild_pick(wild, 8000) * HF_MS;
	}
}

void fix_switch_off(struct wild *wild, int node)
{
	if (wild->s->a->ends_at[node] == 0 && !rs_is_approved(wild->s, node))
		switch_off(wild, node);
}

void fix_linger(struct wild *wild)
{
	wild->fixes.linger = !wild->fixes.linger;
}

/* ---- the end ------------------------------------------------------------------------------------- */

void fix_calm(struct wild *wild)
{
	struct fixes *fixes = &wild->fixes;

	fixes->refuse = 0;
	fixes->linger = false;
	fixes->lose_permille = 0;
	fix_create_template(wild);
	for (size_t i = 0; i < fixes->len; i++)
		fixes->objects[i].ended |= fixes->objects[i].began;
	for (int i = 0; i < wild->s->w->nodes; i++)
		if (wild->off[i] && !wild->s->gone[i]) {
			wild_come_back(wild, i);
			rw_say(wild->s->w, i, wild->s->w->ill[i]);
		}
}

void fix_expect_end(struct wild *wild, unsigned seed)
{
	unsigned foreign = 0;

	for (size_t i = 0; i < wild->fixes.len; i++) {
		const struct fix *fix = &wild->fixes.objects[i];
		const struct hf_json *owner = hf_json_item(
			hf_json_path(hf_doc_json(fix->doc), "metadata", "ownerReferences", NULL),
			0);
		const char *act = hf_str_or(hf_json_path_str(owner, "name", NULL), "");
		const struct hf_json *r = rw_get(wild->s->w, &hf_remediations, NULL, act);

		foreign += fix->foreign;
		if (!fix->foreign &&
		    (r == NULL || ra_is_final(hf_json_path_str(r, "status", "phase", NULL))))
			fail_msg("seed %u: the object of %s is left", seed, act);
	}
	if (foreign != wild->fixes.foreign)
		fail_msg("seed %u: %u objects of others in the place of %u", seed, foreign,
			 wild->fixes.foreign);
}
