/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "base/map.h"
#include "base/mem.h"
#include "harness/random.h"
#include "memstore/memstore_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests of watches that tests/contract does not have: faults, slow clients, many watches, and a
 * cache built from watches that is compared with lists. */

struct script {
	struct hf_event_fault faults[32]; /* one fault per event */
	int asked;
};

static void on_event(void *arg, const struct hf_watch_options *options,
		     const struct hf_event *event, struct hf_event_fault *ret_fault)
{
	struct script *s = arg;

	assert_ptr_equal(options->resource, &hf_configmaps);
	if (s->asked < (int)HF_ARRAY_LEN(s->faults))
		*ret_fault = s->faults[s->asked];
	s->asked++;
}

struct setup {
	struct plane p;
	struct script script;
	struct hf_store *store;
	struct seen seen;
};

static void set_up(struct setup *s)
{
	*s = (struct setup){0};
	plane_open(&s->p, NULL, false);
	s->store = hf_memstore_client_create(
		s->p.memstore, &(struct hf_memstore_faults){.event = on_event, .arg = &s->script});
}

static void watch_all(struct setup *s)
{
	s->seen.watch =
		hf_store_watch(s->store, &(struct hf_watch_options){.resource = &hf_configmaps},
			       seen_take, &s->seen);
}

static void tear_down(struct setup *s)
{
	seen_release(&s->seen);
	hf_store_destroy(s->store);
	plane_close(&s->p);
}

static void create_map(struct setup *s, const char *name)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(&s->p.w, "default", name, &o), 0);
}

static void events_may_be_lost_or_come_twice(void **state)
{
	struct setup s;

	set_up(&s);
	s.script.faults[1].drop = true;
	s.script.faults[2].duplicate = true;
	watch_all(&s);
	create_map(&s, "a");
	create_map(&s, "b");
	create_map(&s, "c");
	create_map(&s, "d");
	settle(&s.p.w);
	assert_string_equal(seen_text(&s.seen), "A:a A:c A:c A:d");
	tear_down(&s);
}

static struct hf_doc *mirrored(const char *uid)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":"
		"\"default\",\"uid\":\"%s\",\"resourceVersion\":\"7\"}}",
		uid);

	return hf_doc_from_text(text, strlen(text));
}

static void a_watch_sees_mirrored_objects(void **state)
{
	HF_AUTO_DOC first = mirrored("u-1");
	HF_AUTO_DOC second = mirrored("u-2");
	struct hf_error err;
	struct setup s;

	set_up(&s);
	watch_all(&s);
	settle(&s.p.w);
	assert_ok(hf_memstore_mirror(s.p.memstore, first, &err), &err);
	settle(&s.p.w);
	assert_ok(hf_memstore_mirror(s.p.memstore, second, &err), &err);
	settle(&s.p.w);
	assert_string_equal(
		hf_doc_uid(hf_memstore_peek(s.p.memstore, &hf_configmaps, "default", "a")), "u-2");
	hf_memstore_drop(s.p.memstore, &hf_configmaps, "default", "a");
	hf_memstore_drop(s.p.memstore, &hf_configmaps, "default", "a");
	settle(&s.p.w);
	assert_string_equal(seen_text(&s.seen), "A:a M:a D:a");
	tear_down(&s);
}

static void a_delayed_event_delays_later_ones(void **state)
{
	struct setup s;

	set_up(&s);
	s.script.faults[1].delay = 5 * HF_SECOND;
	watch_all(&s);
	create_map(&s, "a");
	create_map(&s, "b");
	create_map(&s, "c");
	settle(&s.p.w);
	assert_string_equal(seen_text(&s.seen), "A:a");
	s.p.w.pass(&s.p.w, 4 * HF_SECOND);
	assert_int_equal(s.seen.n, 1);
	s.p.w.pass(&s.p.w, 2 * HF_SECOND);
	assert_string_equal(seen_text(&s.seen), "A:a A:b A:c");
	assert_int_equal(s.script.asked, 3);
	tear_down(&s);
}

static void a_paused_client_gets_its_events_later(void **state)
{
	struct setup s;

	set_up(&s);
	watch_all(&s);
	create_map(&s, "a");
	hf_memstore_client_pause(s.store, true);
	create_map(&s, "b");
	create_map(&s, "c");
	s.p.w.pass(&s.p.w, 5 * HF_MINUTE);
	assert_string_equal(seen_text(&s.seen), "A:a");
	hf_memstore_client_pause(s.store, false);
	settle(&s.p.w);
	assert_string_equal(seen_text(&s.seen), "A:a A:b A:c");
	tear_down(&s);
}

static void faults_apply_to_initial_objects(void **state)
{
	struct setup s;

	set_up(&s);
	create_map(&s, "a");
	create_map(&s, "b");
	create_map(&s, "c");
	s.script.faults[0].drop = true;
	s.script.faults[1].delay = HF_SECOND;
	s.script.faults[2].duplicate = true;
	watch_all(&s);
	settle(&s.p.w);
	assert_int_equal(s.seen.n, 0);
	s.p.w.pass(&s.p.w, 2 * HF_SECOND);
	assert_string_equal(seen_text(&s.seen), "A:b A:c A:c");
	tear_down(&s);
}

static void a_watch_may_break_at_any_event(void **state)
{
	for (int at = 0; at < 4; at++) {
		struct setup s;
		set_up(&s);
		create_map(&s, "a");
		create_map(&s, "b");
		s.script.faults[at].end = HF_E_UNAVAILABLE;
		watch_all(&s);
		create_map(&s, "c");
		create_map(&s, "d");
		wait_ended(&s.p.w, &s.seen);
		assert_int_equal(s.seen.end_code, HF_E_UNAVAILABLE);
		assert_int_equal(s.seen.n, at);
		tear_down(&s);
	}
}

static void all_watches_of_a_client_can_be_broken(void **state)
{
	struct setup s;
	AUTO_SEEN other = {0};

	set_up(&s);
	watch_all(&s);
	seen_start(&s.p.w, &other, &(struct hf_watch_options){.resource = &hf_configmaps});
	hf_memstore_client_break_watches(s.store, HF_E_GONE, "restarted");
	assert_false(s.seen.ended);
	wait_ended(&s.p.w, &s.seen);
	assert_int_equal(s.seen.end_code, HF_E_GONE);
	create_map(&s, "a");
	wait_events(&s.p.w, &other, 1);
	assert_false(other.ended);
	seen_release(&other);
	tear_down(&s);
}

static void a_watch_that_is_too_slow_ends_with_gone(void **state)
{
	const struct hf_memstore_options options = {.watch_history = 8};
	struct setup s = {0};
	AUTO_OUTCOME o = {0};

	plane_open(&s.p, &options, false);
	s.store = hf_memstore_client_create(
		s.p.memstore, &(struct hf_memstore_faults){.event = on_event, .arg = &s.script});
	s.script.faults[2].delay = HF_MINUTE;
	watch_all(&s);
	create_map(&s, "a");
	create_map(&s, "b");
	create_map(&s, "c");
	for (int i = 0; i < 20; i++)
		assert_int_equal(merge(&s.p.w, AT(&hf_configmaps, "default", "a"), &o,
				       "{'data':{'i':'%d'}}", i),
				 0);
	wait_ended(&s.p.w, &s.seen);
	assert_int_equal(s.seen.end_code, HF_E_GONE);
	assert_string_equal(seen_text(&s.seen), "A:a A:b");
	tear_down(&s);
}

static void one_watch_does_not_hold_up_the_loop(void **state)
{
	struct plane p;
	AUTO_SEEN late = {0};
	AUTO_OUTCOME o = {0};
	struct outcome *made = calloc(1000, sizeof(*made));
	int events = 0;

	plane_open(&p, NULL, false);
	for (int i = 0; i < 1000; i++) {
		HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
					    "'name':'c%d'}}",
					    i);
		hf_store_request(p.w.store,
				 &(struct hf_request){.verb = HF_VERB_CREATE,
						      .resource = &hf_configmaps,
						      .ns = "default",
						      .body = body},
				 outcome_take, &made[i]);
	}
	settle(&p.w);
	/* The watch delivers 1,000 existing objects. A later request gets its reply before all of
	 * them are delivered. */
	seen_start(&p.w, &late,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .field_selector = "metadata.name=c999"});
	assert_int_equal(get(&p.w, &hf_namespaces, NULL, "default", &o), 0);
	wait_events(&p.w, &late, 1);
	for (int i = 0; i < 1000; i++) {
		events += made[i].code == 0;
		outcome_release(&made[i]);
	}
	assert_int_equal(events, 1000);
	free(made);
	seen_release(&late);
	plane_close(&p);
}

static void watches_have_a_limit(void **state)
{
	struct plane p;
	struct seen *all = calloc(HF_MEMSTORE_WATCHES_MAX + 1, sizeof(*all));

	plane_open(&p, NULL, false);
	for (size_t i = 0; i <= HF_MEMSTORE_WATCHES_MAX; i++)
		seen_start(&p.w, &all[i], &(struct hf_watch_options){.resource = &hf_secrets});
	settle(&p.w);
	assert_false(all[0].ended);
	assert_false(all[HF_MEMSTORE_WATCHES_MAX - 1].ended);
	assert_true(all[HF_MEMSTORE_WATCHES_MAX].ended);
	assert_int_equal(all[HF_MEMSTORE_WATCHES_MAX].end_code, HF_E_TOO_MANY);
	for (size_t i = 0; i <= HF_MEMSTORE_WATCHES_MAX; i++)
		seen_release(&all[i]);
	free(all);
	plane_close(&p);
}

static void an_idle_loop_has_nothing_armed(void **state)
{
	struct plane p;
	AUTO_SEEN s = {0};

	plane_open(&p, NULL, false);
	seen_start(&p.w, &s, &(struct hf_watch_options){.resource = &hf_pods, .bookmarks = true});
	/* The loop returns, because bookmarks stop when there is nothing new to report. */
	hf_loop_run(p.w.loop);
	seen_release(&s);
	plane_close(&p);
}

struct stopper {
	struct seen *victims;
	size_t n;
	struct hf_watch *self;
	int events;
};

static void stop_all(void *arg, const struct hf_event *event)
{
	struct stopper *s = arg;

	s->events++;
	for (size_t i = 0; i < s->n; i++)
		s->victims[i].watch = hf_watch_stop(s->victims[i].watch);
	s->self = hf_watch_stop(s->self);
}

static void a_callback_may_stop_any_watch(void **state)
{
	struct plane p;
	struct seen victims[4] = {0};
	struct stopper stopper = {.victims = victims, .n = 4};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	const struct hf_watch_options options = {.resource = &hf_configmaps};
	for (int i = 0; i < 2; i++)
		seen_start(&p.w, &victims[i], &options);
	stopper.self = hf_store_watch(p.w.store, &options, stop_all, &stopper);
	for (int i = 2; i < 4; i++)
		seen_start(&p.w, &victims[i], &options);
	settle(&p.w);
	assert_int_equal(create_configmap(&p.w, "default", "a", &o), 0);
	assert_int_equal(create_configmap(&p.w, "default", "b", &o), 0);
	settle(&p.w);
	assert_int_equal(stopper.events, 1);
	/* The first two watches began before the watch that stops the others, and got the event. The last two
	 * began after it, and got no event. */
	assert_int_equal(victims[0].n, 1);
	assert_int_equal(victims[1].n, 1);
	assert_int_equal(victims[2].n, 0);
	assert_int_equal(victims[3].n, 0);
	for (int i = 0; i < 4; i++)
		seen_release(&victims[i]);
	plane_close(&p);
}

struct destroyer {
	struct hf_store *store;
	struct hf_watch *watch;
	int events, ended;
};

static void destroy_store(void *arg, const struct hf_event *event)
{
	struct destroyer *d = arg;

	if (event->type == HF_EVENT_ENDED) {
		d->ended++;
		assert_int_equal(event->code, HF_E_CANCELED);
		d->watch = hf_watch_stop(d->watch);
		return;
	}
	d->events++;
	d->store = hf_store_destroy(d->store);
}

static void a_store_may_be_destroyed_from_an_event(void **state)
{
	struct plane p;
	struct destroyer d = {0};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	d.store = p.w.client(&p.w);
	d.watch = hf_store_watch(d.store, &(struct hf_watch_options){.resource = &hf_secrets},
				 destroy_store, &d);
	assert_int_equal(create(&p.w, &hf_secrets, "default", &o,
				"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'s'}}"),
			 0);
	settle(&p.w);
	assert_int_equal(d.events, 1);
	assert_int_equal(d.ended, 1);
	assert_null(d.watch);
	plane_close(&p);
}

/* --- a cache built from a watch equals a list --- */

#define NAMES 12

struct mirror {
	struct hf_map *objects; /* name to document */
	struct hf_watch *watch;
	struct hf_store *store;
	char version[32];
	bool ended, gone;
	const char *labels;
};

static void doc_free(void *doc)
{
	hf_doc_unref(doc);
}

static void mirror_event(void *arg, const struct hf_event *e)
{
	struct mirror *m = arg;

	if (e->type == HF_EVENT_ENDED) {
		m->ended = true;
		m->gone = e->code == HF_E_GONE;
		return;
	}
	snprintf(m->version, sizeof(m->version), "%s", e->resource_version);
	if (e->type == HF_EVENT_BOOKMARK)
		return;
	const char *name = hf_doc_name(e->object);
	/* Every event must fit the objects known so far. */
	assert_int_equal(hf_map_has(m->objects, name), e->type != HF_EVENT_ADDED);
	if (e->type == HF_EVENT_DELETED)
		hf_map_remove(m->objects, name);
	else
		assert_true(hf_map_put(m->objects, name, hf_doc_ref(e->object)));
}

static void mirror_open(struct mirror *m)
{
	m->ended = false;
	m->watch = hf_watch_stop(m->watch);
	m->watch = hf_store_watch(m->store,
				  &(struct hf_watch_options){.resource = &hf_configmaps,
							     .ns = "default",
							     .label_selector = m->labels,
							     .bookmarks = true,
							     .resource_version = m->version},
				  mirror_event, m);
}

static void mirror_check(struct plane *p, struct mirror *m)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(ask(&p->w,
			     &(struct hf_request){.verb = HF_VERB_LIST,
						  .resource = &hf_configmaps,
						  .ns = "default",
						  .label_selector = m->labels},
			     &o),
			 0);
	settle(&p->w);
	if (m->gone) {
		/* The client lists and starts a new watch. */
		hf_map_clear(m->objects);
		for (size_t i = 0; i < o.n_items; i++)
			assert_true(hf_map_put(m->objects, hf_doc_name(o.items[i]),
					       hf_doc_ref(o.items[i])));
		snprintf(m->version, sizeof(m->version), "%s", o.version);
		m->gone = false;
		mirror_open(m);
		return;
	}
	if (m->ended)
		return;
	assert_int_equal(hf_map_len(m->objects), o.n_items);
	for (size_t i = 0; i < o.n_items; i++) {
		struct hf_doc *mine = hf_map_get(m->objects, hf_doc_name(o.items[i]));
		assert_non_null(mine);
		assert_string_equal(hf_doc_resource_version(mine),
				    hf_doc_resource_version(o.items[i]));
		assert_true(hf_json_equal(hf_doc_json(mine), hf_doc_json(o.items[i])));
	}
}

static void random_write(struct plane *p, uint64_t *seed)
{
	AUTO_OUTCOME o = {0};
	char name[8];

	snprintf(name, sizeof(name), "n%d", (int)test_random_below(seed, NAMES));
	switch (test_random_below(seed, 4)) {
	case 0:
		create(&p->w, &hf_configmaps, "default", &o,
		       "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'%s',"
		       "'labels':{'on':'%d'}}}",
		       name, (int)test_random_below(seed, 2));
		break;
	case 1: erase(&p->w, &hf_configmaps, "default", name, &o); break;
	case 2:
		merge(&p->w, AT(&hf_configmaps, "default", name), &o,
		      "{'metadata':{'labels':{'on':'%d'}}}", (int)test_random_below(seed, 2));
		break;
	default:
		merge(&p->w, AT(&hf_configmaps, "default", name), &o, "{'data':{'v':'%d'}}",
		      (int)test_random_below(seed, 3));
	}
}

static void a_cache_built_from_watches_equals_a_list(void **state)
{
	const struct hf_memstore_options options = {.watch_history = 16};

	for (uint64_t round = 0; round < 30; round++) {
		uint64_t seed = round;
		struct plane p;
		plane_open(&p, &options, false);
		struct mirror mirrors[3] = {
			{.labels = NULL}, {.labels = "on=1"}, {.labels = "on!=1"}};
		for (size_t i = 0; i < HF_ARRAY_LEN(mirrors); i++) {
			mirrors[i].objects = hf_map_create(NAMES, 0, doc_free);
			mirrors[i].store = p.w.client(&p.w);
			mirrors[i].gone = true;
			mirror_check(&p, &mirrors[i]);
		}
		for (int step = 0; step < 150; step++) {
			struct mirror *m = &mirrors[test_random_below(&seed, 3)];
			random_write(&p, &seed);
			if (test_random_below(&seed, 10) == 0)
				hf_memstore_client_break_watches(m->store, HF_E_UNAVAILABLE,
								 "broke");
			if (m->ended && !m->gone && test_random_below(&seed, 3) == 0)
				mirror_open(m);
			for (size_t i = 0; i < HF_ARRAY_LEN(mirrors); i++)
				if (test_random_below(&seed, 4) == 0)
					mirror_check(&p, &mirrors[i]);
		}
		for (size_t i = 0; i < HF_ARRAY_LEN(mirrors); i++) {
			hf_watch_stop(mirrors[i].watch);
			hf_store_destroy(mirrors[i].store);
			hf_map_destroy(mirrors[i].objects);
		}
		plane_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_may_be_lost_or_come_twice),
		cmocka_unit_test(a_watch_sees_mirrored_objects),
		cmocka_unit_test(a_delayed_event_delays_later_ones),
		cmocka_unit_test(a_paused_client_gets_its_events_later),
		cmocka_unit_test(faults_apply_to_initial_objects),
		cmocka_unit_test(a_watch_may_break_at_any_event),
		cmocka_unit_test(all_watches_of_a_client_can_be_broken),
		cmocka_unit_test(a_watch_that_is_too_slow_ends_with_gone),
		cmocka_unit_test(one_watch_does_not_hold_up_the_loop),
		cmocka_unit_test(watches_have_a_limit),
		cmocka_unit_test(an_idle_loop_has_nothing_armed),
		cmocka_unit_test(a_callback_may_stop_any_watch),
		cmocka_unit_test(a_store_may_be_destroyed_from_an_event),
		cmocka_unit_test(a_cache_built_from_watches_equals_a_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
