/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "harness/random.h"
#include "memstore/gc.h"
#include "memstore/memstore_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Tests of the garbage collector that tests/contract does not have: restarts, chains, unknown
 * owners, a full disk. */

static const char *uid_of(struct plane *p, const char *name)
{
	static char uid[64];
	AUTO_OUTCOME o = {0};

	assert_int_equal(get(&p->w, &hf_configmaps, "default", name, &o), 0);
	snprintf(uid, sizeof(uid), "%s", text_at(&o, "metadata.uid"));
	return uid;
}

static void create_dependent(struct plane *p, const char *name, const char *owner, const char *uid)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(&p->w, &hf_configmaps, "default", &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'%s',"
				"'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap',"
				"'name':'%s','uid':'%s','blockOwnerDeletion':true}]}}",
				name, owner, uid),
			 0);
}

static bool is_stored(struct plane *p, const char *name)
{
	return hf_memstore_peek(p->memstore, &hf_configmaps, "default", name) != NULL;
}

static int remove_as(struct plane *p, const char *name, enum hf_propagation how)
{
	AUTO_OUTCOME o = {0};

	return ask(&p->w,
		   &(struct hf_request){.verb = HF_VERB_DELETE,
					.resource = &hf_configmaps,
					.ns = "default",
					.name = name,
					.propagation = how,
					.grace_seconds = HF_GRACE_DEFAULT},
		   &o);
}

static void make_chain(struct plane *p, int n)
{
	AUTO_OUTCOME o = {0};
	char name[16], owner[16];

	assert_int_equal(create_configmap(&p->w, "default", "c0", &o), 0);
	for (int i = 1; i < n; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		snprintf(owner, sizeof(owner), "c%d", i - 1);
		create_dependent(p, name, owner, uid_of(p, owner));
	}
}

static void a_chain_goes_link_by_link(void **state)
{
	static const enum hf_propagation ways[] = {HF_PROPAGATE_DEFAULT, HF_PROPAGATE_BACKGROUND,
						   HF_PROPAGATE_FOREGROUND};

	for (size_t i = 0; i < HF_ARRAY_LEN(ways); i++) {
		struct plane p;
		plane_open(&p, NULL, false);
		struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
		make_chain(&p, 10);
		assert_int_equal(remove_as(&p, "c0", ways[i]), 0);
		settle(&p.w);
		assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 0);
		hf_gc_destroy(gc);
		plane_close(&p);
	}
}

static void in_the_foreground_the_last_link_goes_first(void **state)
{
	struct plane p;
	AUTO_SEEN s = {0};
	AUTO_OUTCOME o = {0};
	char order[64] = "";

	plane_open(&p, NULL, false);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	make_chain(&p, 4);
	assert_int_equal(list(&p.w, &hf_configmaps, "default", &o), 0);
	seen_start(&p.w, &s,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .resource_version = o.version});
	assert_int_equal(remove_as(&p, "c0", HF_PROPAGATE_FOREGROUND), 0);
	settle(&p.w);
	for (int i = 0; i < s.n; i++)
		if (s.events[i].type == HF_EVENT_DELETED)
			snprintf(order + strlen(order), sizeof(order) - strlen(order), "%s ",
				 s.events[i].name);
	assert_string_equal(order, "c3 c2 c1 c0 ");
	seen_release(&s);
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void a_circle_of_owners_is_deleted(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	make_chain(&p, 2);
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "c0"), &o,
			       "{'metadata':{'ownerReferences':[{'apiVersion':'v1',"
			       "'kind':'ConfigMap','name':'c1','uid':'%s',"
			       "'blockOwnerDeletion':true}]}}",
			       uid_of(&p, "c1")),
			 0);
	settle(&p.w);
	assert_true(is_stored(&p, "c0") && is_stored(&p, "c1"));
	assert_int_equal(remove_as(&p, "c0", HF_PROPAGATE_FOREGROUND), 0);
	p.w.pass(&p.w, HF_MINUTE);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 0);
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void a_collector_that_starts_late_finds_what_it_missed(void **state)
{
	struct plane p;

	plane_open(&p, NULL, true);
	make_chain(&p, 3);
	assert_int_equal(remove_as(&p, "c0", HF_PROPAGATE_DEFAULT), 0);
	settle(&p.w);
	assert_true(is_stored(&p, "c1"));
	plane_reopen(&p, NULL);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	settle(&p.w);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 0);
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void a_started_orphaning_is_finished_after_a_restart(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, true);
	make_chain(&p, 2);
	assert_int_equal(remove_as(&p, "c0", HF_PROPAGATE_ORPHAN), 0);
	plane_reopen(&p, NULL);
	assert_true(is_stored(&p, "c0"));
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	settle(&p.w);
	assert_false(is_stored(&p, "c0"));
	assert_int_equal(get(&p.w, &hf_configmaps, "default", "c1", &o), 0);
	assert_false(has(&o, "metadata.ownerReferences"));
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void owners_of_unknown_kinds_count_as_existing(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	assert_int_equal(create(&p.w, &hf_configmaps, "default", &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
				"'ownerReferences':[{'apiVersion':'apps/v1','kind':'Deployment',"
				"'name':'d','uid':'u'}]}}"),
			 0);
	/* A cluster-wide object cannot have an owner in a namespace. */
	assert_int_equal(create(&p.w, &hf_nodes, NULL, &o,
				"{'apiVersion':'v1','kind':'Node','metadata':{'name':'n',"
				"'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap',"
				"'name':'d','uid':'u'}]}}"),
			 0);
	settle(&p.w);
	assert_true(is_stored(&p, "c"));
	assert_int_equal(hf_memstore_count(p.memstore, &hf_nodes), 1);
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void a_namespaced_object_may_be_owned_by_a_node(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	assert_int_equal(create(&p.w, &hf_nodes, NULL, &o,
				"{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'}}"),
			 0);
	assert_int_equal(create(&p.w, &hf_leases, "default", &o,
				"{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{"
				"'name':'l','ownerReferences':[{'apiVersion':'v1','kind':'Node',"
				"'name':'n','uid':'%s'}]}}",
				hf_doc_uid(o.object)),
			 0);
	settle(&p.w);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_leases), 1);
	assert_int_equal(erase(&p.w, &hf_nodes, NULL, "n", &o), 0);
	settle(&p.w);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_leases), 0);
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void pods_of_a_job_get_their_grace(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	assert_int_equal(create_job(&p.w, "default", "j", &o), 0);
	assert_int_equal(create(&p.w, &hf_pods, "default", &o,
				"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p',"
				"'ownerReferences':[{'apiVersion':'kubeflow.org/v1',"
				"'kind':'PyTorchJob','name':'j','uid':'%s','controller':true,"
				"'blockOwnerDeletion':true}]},'spec':{'containers':[{'name':'c',"
				"'image':'i'}]}}",
				hf_doc_uid(o.object)),
			 0);
	bind_pod(&p.w, "default", "p", "a");
	assert_int_equal(ask(&p.w,
			     &(struct hf_request){.verb = HF_VERB_DELETE,
						  .resource = &hf_pytorchjobs,
						  .ns = "default",
						  .name = "j",
						  .propagation = HF_PROPAGATE_FOREGROUND,
						  .grace_seconds = HF_GRACE_DEFAULT},
			     &o),
			 0);
	settle(&p.w);
	/* The pod is in its grace period, and the job waits for the pod. */
	assert_int_equal(get(&p.w, &hf_pods, "default", "p", &o), 0);
	assert_int_equal(number_at(&o, "metadata.deletionGracePeriodSeconds"), 30);
	assert_int_equal(get(&p.w, &hf_pytorchjobs, "default", "j", &o), 0);
	/* The kubelet has ended the pod. */
	assert_int_equal(ask(&p.w,
			     &(struct hf_request){.verb = HF_VERB_DELETE,
						  .resource = &hf_pods,
						  .ns = "default",
						  .name = "p",
						  .grace_seconds = 0},
			     &o),
			 0);
	settle(&p.w);
	assert_int_equal(get(&p.w, &hf_pytorchjobs, "default", "j", &o), HF_E_NOT_FOUND);
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void a_delay_is_kept(void **state)
{
	struct plane p;

	plane_open(&p, NULL, false);
	struct hf_gc *gc =
		hf_gc_create(p.memstore, &(struct hf_gc_options){.delay = 3 * HF_SECOND});
	make_chain(&p, 2);
	p.w.pass(&p.w, 10 * HF_SECOND);
	assert_int_equal(remove_as(&p, "c0", HF_PROPAGATE_DEFAULT), 0);
	p.w.pass(&p.w, 2 * HF_SECOND);
	assert_true(is_stored(&p, "c1"));
	p.w.pass(&p.w, 2 * HF_SECOND);
	assert_false(is_stored(&p, "c1"));
	hf_gc_destroy(gc);
	plane_close(&p);
}

/* Refuses the deletion of c1. The collector must try again later, and must delete the other objects
 * meanwhile. */
static int refuse_c1(void *arg, struct hf_admission *a, struct hf_error *err)
{
	bool *refuse = arg;

	if (a->verb == HF_VERB_DELETE && *refuse && strcmp(a->name, "c1") == 0)
		return hf_error_set(err, HF_E_FORBIDDEN, "not today");
	return 0;
}

static void refused_deletes_are_tried_again(void **state)
{
	struct plane p;
	bool refuse = true;

	plane_open(&p, NULL, false);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	hf_memstore_set_rules(
		p.memstore, &hf_configmaps,
		&(struct hf_memstore_rules){.admit = refuse_c1, .arg = &refuse, .on_delete = true});
	make_chain(&p, 2);
	create_dependent(&p, "other", "c0", uid_of(&p, "c0"));
	assert_int_equal(remove_as(&p, "c0", HF_PROPAGATE_DEFAULT), 0);
	p.w.pass(&p.w, HF_MINUTE);
	assert_true(is_stored(&p, "c1"));
	assert_false(is_stored(&p, "other"));
	refuse = false;
	p.w.pass(&p.w, HF_MINUTE);
	assert_false(is_stored(&p, "c1"));
	hf_gc_destroy(gc);
	plane_close(&p);
}

static void set_file_limit(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_only_delays_the_collection(void **state)
{
	struct plane p;
	struct hf_error err = {0};

	plane_open(&p, NULL, true);
	struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
	make_chain(&p, 3);
	settle(&p.w);
	/* The deletion of the owner fits onto the disk. The collector's own writes exceed the
	 * limit on file sizes, and fail. */
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = &hf_configmaps,
					   .ns = "default",
					   .name = "c0",
					   .grace_seconds = HF_GRACE_DEFAULT};
	assert_int_equal(apply_now(&p, &request), 0);
	assert_ok(hf_memstore_flush(p.memstore, &err), &err);
	set_file_limit(1024);
	p.w.pass(&p.w, 10 * HF_SECOND);
	assert_false(is_stored(&p, "c0"));
	assert_true(is_stored(&p, "c1"));
	assert_int_not_equal(hf_memstore_health(p.memstore, &err), 0);
	set_file_limit(RLIM_INFINITY);
	p.w.pass(&p.w, 10 * HF_SECOND);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 0);
	hf_gc_destroy(gc);
	plane_close(&p);
}

/* Builds random graphs of owners. At the end, every object that is left has an owner that exists,
 * or never had an owner. */
#define OBJECTS 14

struct model {
	int owner[OBJECTS][2]; /* -1: no owner */
	int n_owners[OBJECTS];
	bool deleted[OBJECTS];
};

static bool is_alive(const struct model *m, int i)
{
	if (m->deleted[i])
		return false;
	if (m->n_owners[i] == 0)
		return true;
	for (int k = 0; k < m->n_owners[i]; k++)
		if (is_alive(m, m->owner[i][k]))
			return true;
	return false;
}

static void make_random_graph(struct plane *p, struct model *m, uint64_t *seed)
{
	AUTO_OUTCOME o = {0};
	char refs[512], name[16], owner[16];

	for (int i = 0; i < OBJECTS; i++) {
		size_t len = 0;
		refs[0] = '\0';
		m->n_owners[i] = i == 0 ? 0 : (int)test_random_below(seed, 3);
		for (int k = 0; k < m->n_owners[i]; k++) {
			m->owner[i][k] = (int)test_random_below(seed, (uint64_t)i);
			snprintf(owner, sizeof(owner), "o%d", m->owner[i][k]);
			len += (size_t)snprintf(refs + len, sizeof(refs) - len,
						"%s{'apiVersion':'v1','kind':'ConfigMap',"
						"'name':'%s','uid':'%s','blockOwnerDeletion':%s}",
						k ? "," : "", owner, uid_of(p, owner),
						test_random_below(seed, 2) ? "true" : "false");
		}
		snprintf(name, sizeof(name), "o%d", i);
		assert_int_equal(create(&p->w, &hf_configmaps, "default", &o,
					"{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
					"'name':'%s','ownerReferences':[%s]}}",
					name, refs),
				 0);
	}
}

static void remaining_objects_have_an_existing_owner_or_none(void **state)
{
	for (uint64_t round = 0; round < 60; round++) {
		uint64_t seed = round;
		struct plane p;
		struct model m = {0};
		char name[16];
		plane_open(&p, NULL, false);
		struct hf_gc *gc = hf_gc_create(p.memstore, NULL);
		make_random_graph(&p, &m, &seed);
		for (int i = 0; i < 4; i++) {
			int victim = (int)test_random_below(&seed, OBJECTS);
			snprintf(name, sizeof(name), "o%d", victim);
			enum hf_propagation how = test_random_below(&seed, 2)
							  ? HF_PROPAGATE_FOREGROUND
							  : HF_PROPAGATE_BACKGROUND;
			remove_as(&p, name, how);
			m.deleted[victim] = true;
			if (test_random_below(&seed, 2))
				settle(&p.w);
		}
		p.w.pass(&p.w, HF_MINUTE);
		for (int i = 0; i < OBJECTS; i++) {
			snprintf(name, sizeof(name), "o%d", i);
			if (is_stored(&p, name) != is_alive(&m, i))
				fail_msg("seed %d: %s should%s be there", (int)round, name,
					 is_alive(&m, i) ? "" : " not");
		}
		hf_gc_destroy(gc);
		plane_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_goes_link_by_link),
		cmocka_unit_test(in_the_foreground_the_last_link_goes_first),
		cmocka_unit_test(a_circle_of_owners_is_deleted),
		cmocka_unit_test(a_collector_that_starts_late_finds_what_it_missed),
		cmocka_unit_test(a_started_orphaning_is_finished_after_a_restart),
		cmocka_unit_test(owners_of_unknown_kinds_count_as_existing),
		cmocka_unit_test(a_namespaced_object_may_be_owned_by_a_node),
		cmocka_unit_test(pods_of_a_job_get_their_grace),
		cmocka_unit_test(a_delay_is_kept),
		cmocka_unit_test(refused_deletes_are_tried_again),
		cmocka_unit_test(a_full_disk_only_delays_the_collection),
		cmocka_unit_test(remaining_objects_have_an_existing_owner_or_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
