/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/rollout_driver.h"

#include "api/device_rollout.h"
#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* The way back of a rollout: nodes with which it cannot begin, nodes that people change in the middle, and more nodes than
 * the status can list. */

#define DRIVER "'change':{'daemonSet':{'namespace':'default','name':'driver'}}"
#define LABEL "'change':{'nodeLabel':{'key':'example.com/driver','value':'two'}}"
#define FAST ",'soakSeconds':60,'proof':{'seconds':120}"
#define BACK FAST ",'onFailure':'Rollback','waves':['100%']"

/* ---- nodes that had failed --------------------------------------------------------------------------- */

/* The new driver is broken on node 1. Another tool works on the node, so the change cannot be taken back there. */
static struct rd *keep_from_way_back(struct rw *w)
{
	struct rd *d = rd_create(w, 4);

	d->effect[1][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER BACK ",'emptySeconds':60");
	rd_run_node_until(d, 1, "Proving");
	rw_patch_status(w, &hf_nodes, "n001",
			"{'status':{'conditions':[{'type':'Ready','status':'True'},{'type':"
			"'example.com/MaintenanceInProgress','status':'True'}]}}");
	return d;
}

static void a_failed_node_that_cannot_be_taken_back_keeps_its_cordon(void **state)
{
	struct rw *w = *state;
	struct rd *d = keep_from_way_back(w);

	for (int i = 0; i < 60; i++) {
		rw_run(w, HF_MINUTE);
		assert_true(rd_is_cordoned(d, 1));
	}
	assert_int_equal(d->runs[1], 2);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "False NodesFailed", "1 node failed");
	assert_string_equal(rd_node_phase(d, "r", 1), "Failed");
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, HF_MINUTE);
	rd_expect_clean(d);
}

static void a_failed_node_is_taken_back_once_the_other_tool_has_left(void **state)
{
	struct rw *w = *state;
	struct rd *d = keep_from_way_back(w);

	rw_run(w, 3 * HF_MINUTE);
	rw_set_ready(w, 1, "True");
	rw_run(w, HF_HOUR);
	rd_expect_condition(d, "RolledBack", "True Proved", "0 nodes failed");
	assert_int_equal(d->runs[1], 1);
	rd_expect_clean(d);
}

/* Another version of the operator wrote a field that this one does not know. */
static void a_spec_that_cannot_be_read_proves_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	d->effect[0][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST);
	rd_run_node_until(d, 0, "Proving");
	/* The pod alone is missing for the proof. */
	rw_run(w, 15 * HF_SECOND);
	rw_say(w, 0, RW_WELL);
	rd_patch_spec(d, "r", "'unknown':1");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Halted");
	assert_string_equal(rd_node_phase(d, "r", 0), "Proving");
	assert_true(rd_is_cordoned(d, 0));
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, HF_MINUTE);
	rd_expect_clean(d);
}

/* The driver works, and the spec is repaired after five minutes. */
static void repair_spec_in(struct rw *w, const char *phase)
{
	struct rd *d = rd_create(w, 4);

	rd_roll(d, DRIVER BACK ",'atOnce':1");
	for (int i = 0; i < 6000 && !hf_streq(rd_node_phase(d, "r", 1), phase); i++)
		rw_run(w, 20 * HF_MS);
	for (int i = 0; i < 100 && d->deletes[1] == 0; i++)
		rw_run(w, 20 * HF_MS);
	assert_string_equal(rd_node_phase(d, "r", 1), phase);
	rd_patch_spec(d, "r", "'unknown':1");
	for (int i = 0; i < 300; i++) {
		rw_run(w, HF_SECOND);
		assert_true(rd_is_cordoned(d, 1));
	}
	rd_expect_condition(d, "Halted", "True Invalid", "unknown");
	rd_patch_spec(d, "r", "'unknown':null");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Halted");
	assert_string_equal(rd_node_phase(d, "r", 1), "Done");
	assert_int_equal(rd_count_running(d, 2), 2);
	rd_expect_clean(d);
}

static void a_changed_node_waits_for_a_spec_that_can_be_read(void **state)
{
	struct rw *w;

	(void)state;
	for (int i = 0; i < 2; i++) {
		rw_setup((void **)&w);
		repair_spec_in(w, i == 0 ? "Changing" : "Proving");
		rw_teardown((void **)&w);
	}
}

/* ---- nodes that are away ------------------------------------------------------------------------------ */

/* A person has switched node 3 off, and the agent of node 2 has ended. Neither can be proved, and that says nothing about the
 * old version. */
static void nodes_that_are_away_do_not_stop_the_way_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	d->effect[5][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER ",'soakSeconds':1800,'proof':{'seconds':120},'onFailure':'Rollback',"
			  "'waves':[5,'100%']");
	rd_run_node_until(d, 4, "Done");
	rw_patch_node(w, 3, "{'spec':{'unschedulable':true}}");
	rw_set_ready(w, 3, "Unknown");
	rw_patch_node(w, 2, "{'spec':{'unschedulable':true}}");
	w->silent[2] = true;
	rw_run(w, 3 * HF_HOUR);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "False NodesFailed", "2 nodes failed");
	for (int i = 0; i < 6; i++)
		assert_int_equal(d->runs[i], 1);
}

/* Node 1 is proved, and not Ready at the moment in which its way back begins. A pod stays there. */
static void a_proved_node_that_was_away_and_cannot_be_taken_back_is_skipped(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	d->effect[3][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER BACK ",'atOnce':2,'emptySeconds':60");
	rd_run_node_until(d, 3, "Proving");
	rd_pod(d, "bare", 1, NULL);
	rd_run_until(d, "RollingBack");
	rw_set_ready(w, 1, "Unknown");
	for (int i = 0; i < 600 && !hf_streq(rd_node_phase(d, "r", 1), "Emptying"); i++)
		rw_run(w, 100 * HF_MS);
	rw_set_ready(w, 1, "True");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Failed");
	assert_string_equal(rd_node_phase(d, "r", 1), "Skipped");
	rd_expect_condition(d, "RolledBack", "False NodesLeft", "1 keeps the change, first n001: ");
	rd_expect_clean(d);
}

/* ---- many nodes -------------------------------------------------------------------------------------- */

static int count_label(struct rw *w, const char *value)
{
	int count = 0;

	for (int i = 0; i < w->nodes; i++) {
		char name[16];

		rw_name(i, name);
		count += hf_streq(hf_json_path_str(rw_get(w, &hf_nodes, NULL, name), "metadata",
						   "labels", "example.com/driver", NULL),
				  value);
	}
	return count;
}

/* The selector names the label that changes, so no changed node is selected any more. There are more of them than the status
 * lists. */
static void nodes_that_the_change_takes_out_of_the_selection_are_taken_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 80);

	rw_start(w);
	for (int i = 0; i < 80; i++)
		rw_patch_node(w, i, "{'metadata':{'labels':{'example.com/driver':'one'}}}");
	rd_rollout(d, "r",
		   LABEL BACK ",'atOnce':16,'nodeSelector':{'matchLabels':{'example.com/driver':"
			      "'one'}}");
	rd_run_until(d, "Soaking");
	assert_int_equal(count_label(w, "two"), 80);
	assert_int_equal(rd_count(d, "r", "selected"), 80);
	assert_int_equal(rd_count(d, "r", "changed"), 80);
	/* Node 0 was the first one, and its entry has left the status. */
	assert_null(rd_entry(d, "r", 0));
	rw_say(w, 0, RW_RESET);
	rw_run(w, HF_SECOND);
	rw_say(w, 0, RW_WELL);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "True Proved", "0 keep the change");
	assert_int_equal(count_label(w, "one"), 80);
	rd_expect_clean(d);
}

static void put_bare_pods(struct rd *d, int from, int to)
{
	char name[16];

	for (int i = from; i < to; i++) {
		snprintf(name, sizeof(name), "bare-%d", i);
		rd_pod(d, name, i, NULL);
	}
}

/* The status lists each skipped node, and its list has an end. 50 nodes are skipped before the change, and 339 nodes with the
 * change cannot become empty on the way back. */
static void more_nodes_are_skipped_on_the_way_back_than_the_status_can_list(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 390);
	char text[64];
	int left = 0;

	rw_start(w);
	d->effect[389][2] = RD_NEVER_READY;
	put_bare_pods(d, 0, 50);
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER BACK ",'emptySeconds':10,'atOnce':64");
	rd_run_until(d, "RollingBack");
	/* These pods do not respect the cordons of the first nodes. */
	d->beside_pods = true;
	put_bare_pods(d, 50, 389);
	for (int i = 0; i < 600 && hf_streq(rd_phase(d, "r"), "RollingBack"); i++)
		rw_run(w, HF_SECOND);
	rd_expect_phase(d, "Failed");
	assert_int_equal(d->runs[389], 1);
	for (int i = 50; i < 389; i++)
		left += d->runs[i] == 2;
	assert_in_range(left, HF_ROLLOUT_NODES_MAX + 1, 339);
	snprintf(text, sizeof(text), "0 nodes failed on the way back, %d keep the change", left);
	rd_expect_message(d, text);
	rd_expect_clean(d);
}

/* The change breaks a device of each node while the last wave soaks. The previous version repairs them. */
static void more_nodes_fail_after_their_proof_than_the_status_can_list(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 400);

	rd_roll(d, DRIVER ",'soakSeconds':600,'proof':{'seconds':120},'onFailure':'Rollback',"
			  "'waves':['100%'],'atOnce':64,'emptySeconds':60");
	rd_run_until(d, "Soaking");
	for (int i = 0; i < 400; i++)
		rw_say(w, i, RW_RESET);
	rd_run_until(d, "RollingBack");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "nodes failed, first n000: device GPU-n000: Unhealthy");
	rd_run_until(d, "Failed");
	rd_expect_condition(d, "RolledBack", "True Proved",
			    "0 nodes failed on the way back, 0 keep the change");
	assert_int_equal(rd_count_running(d, 1), 400);
	rd_expect_clean(d);
}

/* ---- what nodes had before ----------------------------------------------------------------------------- */

/* The rollout back to version 1 fails, and stays halted: version 2 is not written again. */
static void expect_not_taken_back(struct rd *d)
{
	rd_run_until(d, "Halted");
	rw_run(d->w, HF_HOUR);
	rd_expect_phase(d, "Halted");
	rd_expect_message(
		d, "not taken back: there is no previous revision, or a person has undone it");
	assert_int_equal(d->version, 1);
}

/* A rollout has halted after its third node. A person writes the previous template, and orders another rollout for the three
 * nodes. The previous driver does not come back on one of them. The other nodes never get the driver that was taken away. */
static void a_template_that_a_person_has_undone_is_not_taken_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 8);

	d->effect[2][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST ",'waves':[3,'100%']");
	rd_run_until(d, "Halted");
	rd_set_version(d, 1);
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, HF_MINUTE);
	assert_int_equal(d->runs[2], 2);
	d->effect[0][1] = RD_NEVER_READY;
	rd_rollout(d, "r", DRIVER BACK);
	expect_not_taken_back(d);
	for (int i = 3; i < 8; i++)
		assert_int_equal(d->deletes[i], 0);
}

/* In a small cluster, half of the nodes have the driver that a person has undone. */
static void a_template_that_half_of_the_nodes_have_is_not_taken_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 2);

	rw_start(w);
	rd_set_version(d, 2);
	rd_evict(d, 0);
	rw_run(w, 20 * HF_SECOND);
	rd_set_version(d, 1);
	d->effect[0][1] = RD_NEVER_READY;
	rd_rollout(d, "r", DRIVER BACK);
	expect_not_taken_back(d);
	assert_int_equal(d->deletes[1], 0);
}

/* One of two nodes is left with the old driver. Its rollback is no template that a person has undone. */
static void half_of_the_nodes_with_the_older_template_are_taken_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 2);

	rw_start(w);
	rd_set_version(d, 2);
	rd_evict(d, 0);
	rw_run(w, 20 * HF_SECOND);
	d->effect[1][2] = RD_NEVER_READY;
	rd_rollout(d, "r", DRIVER BACK);
	rd_run_until(d, "Failed");
	rd_expect_condition(d, "RolledBack", "True Proved",
			    "1 had it before the rollout and keeps it");
	assert_int_equal(d->runs[1], 1);
	rd_expect_clean(d);
}

/* A pilot has proved four of six nodes. Its driver is taken back from the other two alone. */
static void nodes_of_an_earlier_rollout_keep_the_change(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	d->effect[5][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST ",'waves':[4]");
	rd_run_until(d, "Succeeded");
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, HF_MINUTE);
	rd_rollout(d, "r", DRIVER BACK);
	rd_run_until(d, "Failed");
	rd_expect_condition(
		d, "RolledBack", "True Proved",
		"0 nodes failed on the way back, 0 keep the change; 4 had it before the "
		"rollout and keep it: another DeviceRollout takes it back");
	assert_int_equal(d->version, 1);
	for (int i = 0; i < 6; i++)
		assert_int_equal(d->runs[i], i < 4 ? 2 : 1);
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, HF_MINUTE);
	rd_rollout(d, "r", DRIVER BACK);
	rd_run_until(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 1), 6);
}

/* Nodes 0 and 1 have the newest driver before the rollout begins. Node 4 gets it without the rollout, and afterwards. */
static void nodes_that_had_the_change_before_keep_it(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	rw_start(w);
	rd_set_version(d, 2);
	rd_evict(d, 0);
	rd_evict(d, 1);
	rw_run(w, 20 * HF_SECOND);
	d->effect[5][2] = RD_NEVER_READY;
	rd_rollout(d, "r", DRIVER BACK);
	rd_run_node_until(d, 2, "Proving");
	rd_evict(d, 4);
	rd_run_until(d, "Failed");
	rd_expect_condition(d, "RolledBack", "True Proved",
			    "0 keep the change; 2 had it before the rollout and keep it: ");
	for (int i = 0; i < 6; i++)
		assert_int_equal(d->runs[i], i < 2 ? 2 : 1);
	rd_expect_clean(d);
}

/* ---- people ------------------------------------------------------------------------------------------ */

/* Rollout "r" has proved half of the nodes. */
static struct rd *prove_half(struct rw *w)
{
	struct rd *d = rd_create(w, 6);

	rd_roll(d, DRIVER FAST ",'onFailure':'Rollback','waves':['50%','100%']");
	rd_run_until(d, "Soaking");
	return d;
}

static void expect_half(struct rd *d, const char *reason)
{
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True", reason);
	assert_int_equal(d->undos, 0);
	assert_int_equal(rd_count_running(d, 2), 3);
}

/* Nothing speaks against the version that was proved. */
static void a_template_that_is_the_wanted_one_again_is_not_taken_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = prove_half(w);

	rd_set_version(d, 3);
	rw_run(w, 2 * HF_MINUTE);
	expect_half(d, "Superseded");
	rd_set_version(d, 2);
	rw_run(w, HF_HOUR);
	expect_half(d, "Superseded");
}

/* All four nodes have the previous template, and nothing is left of the rollout. */
static void expect_taken_back(struct rd *d)
{
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "True Proved", "0 keep the change");
	assert_int_equal(rd_count_running(d, 1), 4);
	rd_expect_clean(d);
}

/* A person changes the template in the middle of the way back, and then gives it this version. The failed node has been taken
 * back before. */
static void repair_template(struct rw *w, int version)
{
	struct rd *d = rd_create(w, 4);

	d->effect[3][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER BACK);
	rd_run_node_until(d, 3, "RolledBack");
	rd_set_version(d, 3);
	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True RollbackSuperseded", "to h3");
	rd_set_version(d, version);
	rw_run(w, HF_HOUR);
	expect_taken_back(d);
}

static void a_way_back_goes_on_after_another_template(void **state)
{
	struct rw *w;

	(void)state;
	for (int version = 1; version <= 2; version++) {
		rw_setup((void **)&w);
		repair_template(w, version);
		rw_teardown((void **)&w);
	}
}

/* A person changes the template while node 2 is being proved on the way back, and writes the previous one ten minutes later. */
static void a_node_in_its_proof_on_the_way_back_is_proved_after_another_template(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	d->effect[3][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER BACK);
	rd_run_node_until(d, 3, "RolledBack");
	rd_run_node_until(d, 2, "Proving");
	w->silent[2] = true;
	rd_set_version(d, 3);
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Halted");
	w->silent[2] = false;
	rw_run(w, 9 * HF_MINUTE);
	rd_set_version(d, 1);
	rw_run(w, HF_HOUR);
	expect_taken_back(d);
}

/* The way back waits for node 1, which has failed, and a person changes the template meanwhile. */
static void a_failed_node_keeps_its_cordon_after_another_template(void **state)
{
	struct rw *w = *state;
	struct rd *d = keep_from_way_back(w);

	rd_run_until(d, "RollingBack");
	rd_run_node_until(d, 1, "Waiting");
	rd_set_version(d, 3);
	for (int i = 0; i < 300; i++) {
		rw_run(w, HF_SECOND);
		assert_true(rd_is_cordoned(d, 1));
	}
	rd_expect_phase(d, "Halted");
	assert_string_equal(rd_node_phase(d, "r", 1), "Failed");
	rd_set_version(d, 1);
	rw_set_ready(w, 1, "True");
	rw_run(w, HF_HOUR);
	rd_expect_condition(d, "RolledBack", "True Proved", "0 keep the change");
	rd_expect_clean(d);
}

/* A person undoes the template by hand after the halt, while another node is in work. */
static void a_way_back_begins_after_a_person_has_undone_the_template(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	d->effect[0][2] = d->effect[1][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER BACK ",'atOnce':2");
	for (int i = 0; i < 3000 && !hf_streq(rd_phase(d, "r"), "Halted"); i++)
		rw_run(w, 100 * HF_MS);
	rd_set_version(d, 1);
	rw_run(w, HF_HOUR);
	expect_taken_back(d);
}

static void a_daemon_set_that_is_wrong_for_a_while_is_not_taken_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = prove_half(w);

	d->strategy = "RollingUpdate";
	d->object_version++;
	rw_run(w, 2 * HF_MINUTE);
	expect_half(d, "Invalid");
	d->strategy = "OnDelete";
	d->object_version++;
	rw_run(w, HF_HOUR);
	expect_half(d, "Invalid");
}

static void a_label_that_another_has_changed_since_is_left_alone(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rw_start(w);
	rd_rollout(d, "r", LABEL BACK);
	rd_run_node_until(d, 1, "Done");
	rw_patch_node(w, 0, "{'metadata':{'labels':{'example.com/driver':'three'}}}");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "True Proved", "0 keep the change");
	assert_int_equal(count_label(w, "three"), 1);
	assert_int_equal(count_label(w, "two"), 0);
	rd_expect_clean(d);
}

/* As on the way forward, a person who wants the node gets it. */
static void a_person_who_takes_the_cordon_off_on_the_way_back_is_obeyed(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);
	int cordons = 0;

	d->effect[3][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER BACK);
	rd_run_node_until(d, 3, "Proving");
	rd_pod(d, "bare", 0, NULL);
	for (int i = 0; i < 1200; i++) {
		rw_run(w, HF_SECOND);
		if (!rd_is_cordoned(d, 0))
			continue;
		cordons++;
		rw_patch_node(w, 0, "{'spec':{'unschedulable':null}}");
	}
	assert_int_equal(cordons, 1);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "False NodesLeft",
			    "1 keeps the change, first n000: a person took the cordon off");
	rd_expect_clean(d);
}

#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)

/* rollout_back [long|short [[-x] PATTERN]], as rollout. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_failed_node_that_cannot_be_taken_back_keeps_its_cordon),
		T(a_failed_node_is_taken_back_once_the_other_tool_has_left),
		T(a_spec_that_cannot_be_read_proves_nothing),
		T(a_changed_node_waits_for_a_spec_that_can_be_read),
		T(a_proved_node_that_was_away_and_cannot_be_taken_back_is_skipped),
		T(nodes_that_are_away_do_not_stop_the_way_back),
		T(nodes_that_the_change_takes_out_of_the_selection_are_taken_back),
		T(a_template_that_a_person_has_undone_is_not_taken_back),
		T(a_template_that_half_of_the_nodes_have_is_not_taken_back),
		T(half_of_the_nodes_with_the_older_template_are_taken_back),
		T(nodes_of_an_earlier_rollout_keep_the_change),
		T(nodes_that_had_the_change_before_keep_it),
		T(a_template_that_is_the_wanted_one_again_is_not_taken_back),
		T(a_way_back_goes_on_after_another_template),
		T(a_node_in_its_proof_on_the_way_back_is_proved_after_another_template),
		T(a_failed_node_keeps_its_cordon_after_another_template),
		T(a_way_back_begins_after_a_person_has_undone_the_template),
		T(a_daemon_set_that_is_wrong_for_a_while_is_not_taken_back),
		T(a_label_that_another_has_changed_since_is_left_alone),
		T(a_person_who_takes_the_cordon_off_on_the_way_back_is_obeyed),
	};

	const struct CMUnitTest long_tests[] = {
		T(more_nodes_are_skipped_on_the_way_back_than_the_status_can_list),
		T(more_nodes_fail_after_their_proof_than_the_status_can_list),
	};

	rw_choose_tests(argc - 1, argv + 1);
	if (argc > 1 && hf_streq(argv[1], "long"))
		return cmocka_run_group_tests_name("rollout, the way back, long", long_tests, NULL,
						   NULL);
	return cmocka_run_group_tests_name("rollout, the way back", tests, NULL, NULL);
}
