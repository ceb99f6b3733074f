/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/rollout_driver.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* What comes after the proof of a node: nodes, pods, devices and agents that are lost, and rollbacks that do not work. */

#define DRIVER "'change':{'daemonSet':{'namespace':'default','name':'driver'}}"
#define LABEL "'change':{'nodeLabel':{'key':'example.com/driver','value':'two'}}"
#define FAST ",'soakSeconds':60,'proof':{'seconds':120}"
#define SLOW ",'soakSeconds':600,'proof':{'seconds':120}"

/* ---- what is lost ---------------------------------------------------------------------------------- */

/* Another controller acts on the label, so no pod of a DaemonSet tells of the node. */
static void a_changed_node_that_is_not_ready_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	rw_start(w);
	rd_rollout(d, "r", LABEL SLOW);
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Done");
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, 30 * HF_SECOND);
	rw_set_ready(w, 0, "True");
	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "n000: the node has not been Ready for a minute");
}

/* The owner of the label writes its own value again. */
static void a_label_that_is_taken_away_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	rw_start(w);
	rd_rollout(d, "r", LABEL SLOW);
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Done");
	rw_patch(w, &hf_nodes, "n000", "{'metadata':{'labels':{'example.com/driver':'one'}}}");
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "n000: the label has another value, after the change was proved");
}

/* The status lists the newest 64 proved nodes, and node 0 is none of them. */
static void a_label_that_is_taken_away_from_an_old_node_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 90);

	rw_start(w);
	rd_rollout(d, "r", LABEL SLOW ",'atOnce':16,'waves':[80,'100%']");
	rd_run_until(d, "Soaking");
	assert_null(rd_entry(d, "r", 0));
	rw_patch(w, &hf_nodes, "n000", "{'metadata':{'labels':{'example.com/driver':null}}}");
	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed", "n000: the label has another value");
}

/* The control plane loses all nodes for this time. The rollout has this phase at its end. */
static void lose_all_nodes(struct rd *d, hf_time span, const char *phase)
{
	for (int i = 0; i < d->w->nodes; i++)
		rw_set_ready(d->w, i, "Unknown");
	rw_run(d->w, span);
	rd_expect_phase(d, phase);
	for (int i = 0; i < d->w->nodes; i++)
		rw_set_ready(d->w, i, "True");
}

/* The control plane loses all nodes: that says nothing about the change. */
static void nodes_that_are_all_lost_halt_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW);

	rw_run(w, 2 * HF_MINUTE);
	lose_all_nodes(d, 4 * HF_MINUTE, "Soaking");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
}

/* A person who drains a changed node and boots it works on it. */
static void a_changed_node_that_a_person_cordons_halts_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW);

	rw_run(w, 2 * HF_MINUTE);
	rw_patch(w, &hf_nodes, "n000", "{'spec':{'unschedulable':true}}");
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
}

/* An outage reaches the changed node first, and the last node when the changed one has been lost for a minute. */
static void an_outage_that_spreads_halts_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW);

	rw_run(w, 2 * HF_MINUTE);
	for (int i = 0; i < 5; i++) {
		rw_set_ready(w, i, "Unknown");
		rw_run(w, i == 0 ? 20 * HF_SECOND : HF_SECOND);
	}
	rw_run(w, 40 * HF_SECOND);
	rw_set_ready(w, 5, "Unknown");
	rw_run(w, 4 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
}

/* Agents report every five minutes, each at another time. Then all are silent. */
static void silent_agents_everywhere_halt_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER ",'soakSeconds':7200,'proof':{'seconds':120}");

	rw_run(w, 20 * HF_MINUTE);
	for (int i = 0; i < 6; i++)
		w->silent[i] = true;
	rw_run(w, 4 * HF_MINUTE);
	for (int i = 1; i < 6; i++) {
		w->silent[i] = false;
		rw_report(w, i);
		w->silent[i] = true;
	}
	rw_run(w, 40 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
}

/* The only unchanged node is switched off for long. That excuses no other node. */
static void a_node_that_is_off_for_long_is_no_outage(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	rw_start(w);
	rw_set_ready(w, 5, "Unknown");
	rd_set_version(d, 2);
	rd_rollout(
		d, "r",
		DRIVER
		",'soakSeconds':3600,'emptySeconds':60,'waves':['100%'],'proof':{'seconds':120}");
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "n000: the node has not been Ready for a minute");
}

/* The soak, which is as long as a node may take to become empty, ends while the control plane has lost all nodes. */
static void an_outage_at_the_end_of_a_soak_ends_no_wave(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER ",'soakSeconds':3600,'proof':{'seconds':120}");

	rw_run(w, 50 * HF_MINUTE);
	lose_all_nodes(d, 20 * HF_MINUTE, "Rolling");
	rw_run(w, 10 * HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count(d, "r", "changed"), 6);
}

/* An operator that begins late makes the soak longer than a node may take to become empty. */
static void an_outage_at_the_end_of_a_longer_soak_ends_no_wave(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(
		w, 6,
		DRIVER
		",'soakSeconds':3600,'emptySeconds':600,'waves':[1,'100%'],'proof':{'seconds':120}");

	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_stop(w);
	rw_run(w, HF_HOUR);
	rw_start(w);
	rw_run(w, 15 * HF_MINUTE + 30 * HF_SECOND);
	rd_expect_phase(d, "Soaking");
	rd_expect_message(d, "1 of 6 nodes changed; watched only since ");
	lose_all_nodes(d, 5 * HF_MINUTE, "Rolling");
	rw_run(w, 10 * HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count(d, "r", "changed"), 6);
}

/* A Remediation boots the node, and does not cordon it. The driver needs a while afterwards. */
static void a_changed_node_that_is_being_mended_halts_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW);

	rw_run(w, 2 * HF_MINUTE);
	rw_patch_status(w, &hf_nodes, "n000",
			"{'status':{'conditions':[{'type':'Ready','status':'Unknown'},"
			"{'type':'holdfast.dev/MaintenanceInProgress','status':'True',"
			"'message':'Remediation x'}]}}");
	rw_run(w, 4 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, 45 * HF_SECOND);
	rd_expect_phase(d, "Soaking");
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Halted");
}

static void a_changed_node_that_an_autoscaler_removes_halts_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW);

	rw_run(w, 2 * HF_MINUTE);
	rw_patch(w, &hf_nodes, "n000",
		 "{'spec':{'taints':[{'key':'nvidia.com/gpu','value':'present','effect':"
		 "'NoSchedule'},{'key':'ToBeDeletedByClusterAutoscaler','value':'17','effect':"
		 "'NoSchedule'}]}}");
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, 5 * HF_MINUTE);
	d->bare[0] = true;
	rw_delete(w, &hf_nodes, "n000");
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Succeeded");
}

/* The autoscaler removes the changed node, which has been idle since it was emptied, in its soak. */
static void a_wave_whose_node_leaves_the_cluster_begins_again(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW ",'waves':[1,'100%']");

	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	d->bare[0] = true;
	rw_delete(w, &hf_nodes, "n000");
	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rd_expect_message(d, "wave 1 of 2 soaks until ");
	assert_int_equal(rd_count(d, "r", "changed"), 1);
	assert_string_equal(rd_node_phase(d, "r", 1), "Done");
	/* The soak of the first node would be over. */
	rw_run(w, 8 * HF_MINUTE);
	assert_int_equal(rd_count_running(d, 2), 2);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "5 of 5 nodes changed and proved, 0 failed, 0 skipped");
}

/* The changed node is made again in its soak. It has the newest driver from its first start, so nothing was proved. */
static void a_wave_whose_node_comes_back_with_the_change_begins_again(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW ",'waves':[1,'100%']");

	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	w->silent[0] = true;
	rw_delete(w, &hf_nodes, "n000");
	rw_node(w, 0);
	rw_patch_status(w, &hf_nodes, "n000",
			"{'status':{'allocatable':{'nvidia.com/gpu':'8','cpu':'64'}}}");
	w->silent[0] = false;
	assert_int_equal(d->runs[0], 2);
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 1), "Done");
	assert_int_equal(rd_count(d, "r", "changed"), 1);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "5 of 5 nodes changed and proved, 0 failed, 0 skipped");
}

/* A pilot: the only wave is one node. */
static void a_last_wave_of_one_node_takes_another_one(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);
	unsigned long long writes;

	d->effect[0][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST ",'waves':[1],'maxFailures':1");
	rd_run_node_until(d, 0, "Failed");
	writes = w->writes;
	rw_run(w, 10 * HF_MINUTE);
	assert_true(w->writes < writes + 40);
	rd_expect_phase(d, "Succeeded");
	rd_expect_message(d, "1 of 6 nodes changed and proved, 1 failed, 0 skipped");
	assert_string_equal(rd_node_phase(d, "r", 1), "Done");
}

/* A program's error on all eight GPUs of the changed node, such as Xid 31. */
static void errors_of_programs_are_no_faults_of_devices(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	w->gpus = 8;
	w->sick[0] = 0xff;
	rd_roll(d, DRIVER SLOW);
	rw_run(w, 4 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_say(w, 0, RW_PROGRAM);
	rw_run(w, 3 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	assert_int_equal(hf_json_i64(hf_json_path(rw_get(w, &hf_devicerollouts, NULL, "r"),
						  "status", "evidence", "changed", "faults", NULL),
				     -1),
			 0);
}

static void a_changed_device_that_answers_no_more_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW);

	rw_run(w, 2 * HF_MINUTE);
	rw_say(w, 0, RW_UNSEEN);
	rw_run(w, 3 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "n000: the agent has known nothing of device GPU-n000 for a minute");
}

static void a_silent_agent_of_a_changed_node_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER ",'soakSeconds':1800,'proof':{'seconds':120}");

	rw_run(w, 2 * HF_MINUTE);
	w->silent[0] = true;
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "n000: the agent has not reported for 15 minutes");
}

/* The changed node is lost while no operator runs, and the soak time is over when the next operator begins. */
static void a_node_that_is_lost_without_an_operator_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW ",'waves':[1]");

	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_stop(w);
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, HF_HOUR);
	rw_start(w);
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	assert_int_equal(rd_count_running(d, 2), 1);
}

/* The operator ends in the middle of a wave, and the changed node is lost before the next one begins. */
static void the_next_operator_looks_before_it_begins_with_more_nodes(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 12, DRIVER SLOW ",'waves':['100%'],'atOnce':4");

	rd_run_node_until(d, 0, "Done");
	rw_stop(w);
	rw_set_ready(w, 0, "Unknown");
	rw_run(w, HF_HOUR);
	rw_start(w);
	rw_run(w, 30 * HF_SECOND);
	rd_expect_message(d, "; waits: the changed nodes are watched until ");
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	/* The first four nodes were in work. */
	assert_int_equal(rd_count_running(d, 2), 4);
}

/* No operator runs for an hour, and the agent reports meanwhile. */
static void a_silence_of_the_operator_halts_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER ",'soakSeconds':7200,'proof':{'seconds':120}");

	rw_run(w, 2 * HF_MINUTE);
	rw_stop(w);
	rw_run(w, HF_HOUR);
	rw_start(w);
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
}

/* The change is made beside the sick device, and would be blamed for it. Without a HealthPolicy no taint tells of the device. */
static void a_device_that_fails_before_the_change_is_not_blamed_on_it(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait','emptySeconds':600");
	rw_run(w, 5 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	rw_say(w, 0, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	rd_end_pod(d, "train-0");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[0], 0);
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	rd_expect_message(d, "n000: a device of the node is out of use");
	rd_expect_clean(d);
}

/* The kubelet is silent for a while before the change. */
static void a_node_that_is_not_ready_is_not_changed(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait','emptySeconds':3600");
	rw_run(w, HF_MINUTE);
	rw_set_ready(w, 0, "Unknown");
	rd_end_pod(d, "train-0");
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(d->deletes[0], 0);
	assert_string_equal(rd_node_message(d, "r", 0), "waits: the node is not Ready");
	rw_set_ready(w, 0, "True");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[0], 1);
}

/* The agent of node 0 was silent before the rollout. Its silence would fail the proof. */
static void a_node_with_a_silent_agent_is_not_changed(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	w->silent[0] = true;
	rw_run(w, HF_HOUR);
	rd_roll(d, DRIVER FAST ",'emptySeconds':600");
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[0], 0);
	rd_expect_message(d, "n000: the agent has not reported for 15 minutes");
}

/* The link of a GPU is slow since long, and each report finds that again. */
static void a_fault_from_before_the_change_is_not_blamed_on_it(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	/* The new version heals nothing. */
	d->effect[0][2] = RD_BREAKS_DEVICE;
	d->breaks_after = 100 * HF_HOUR;
	rw_say(w, 0, RW_SLOW);
	rd_roll(d, DRIVER FAST);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 4);
}

/* A proved node is installed anew under its name. Its first start says nothing about the change. */
static void a_proved_node_that_is_made_again_halts_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, DRIVER SLOW);

	rw_run(w, 2 * HF_MINUTE);
	rw_delete(w, &hf_nodes, "n000");
	rw_run(w, HF_MINUTE);
	rw_node(w, 0);
	rw_set_ready(w, 0, "False");
	rw_run(w, 3 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_set_ready(w, 0, "True");
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 6);
}

/* The node is installed anew before its proof. It is changed again in the last wave. */
static void a_node_that_is_made_again_before_its_proof_halts_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rw_start(w);
	rd_rollout(d, "r", LABEL FAST);
	for (int i = 0; i < 1200 && !hf_streq(rd_node_phase(d, "r", 0), "Proving"); i++)
		rw_run(w, 50 * HF_MS);
	assert_string_equal(rd_node_phase(d, "r", 0), "Proving");
	w->silent[0] = true;
	rw_run(w, 2 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Proving");
	d->bare[0] = true;
	rw_delete(w, &hf_nodes, "n000");
	rw_node(w, 0);
	w->silent[0] = false;
	rw_patch_status(w, &hf_nodes, "n000",
			"{'status':{'allocatable':{'nvidia.com/gpu':'8','cpu':'64'}}}");
	d->bare[0] = false;
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count(d, "r", "changed"), 4);
	rd_expect_clean(d);
}

/* The node is installed anew while it is emptied. No person took its cordon off, so it is changed in the last wave. */
static void a_node_that_is_made_again_before_its_change_is_changed_later(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait','emptySeconds':3600");
	rw_run(w, HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	d->bare[0] = true;
	rw_delete(w, &hf_nodes, "n000");
	rw_node(w, 0);
	rw_patch_status(w, &hf_nodes, "n000",
			"{'status':{'allocatable':{'nvidia.com/gpu':'8','cpu':'64'}}}");
	d->bare[0] = false;
	rw_run(w, HF_MINUTE);
	assert_string_equal(rd_node_message(d, "r", 0), "the node does not exist any more");
	rd_end_pod(d, "train-0");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count(d, "r", "changed"), 4);
	rd_expect_clean(d);
}

/* The agent ends while the node waits for a pod. */
static void a_node_whose_agent_falls_silent_is_not_changed(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait','emptySeconds':7200");
	rw_run(w, HF_MINUTE);
	w->silent[0] = true;
	rw_run(w, 20 * HF_MINUTE);
	rd_end_pod(d, "train-0");
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(d->deletes[0], 0);
	assert_string_equal(rd_node_message(d, "r", 0),
			    "waits: the agent has not reported for 15 minutes");
	w->silent[0] = false;
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[0], 1);
}

/* Node 0 cannot become empty. Another node proves the change before the second wave. */
static void a_skipped_node_is_no_canary(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 20);

	rd_pod(d, "bare", 0, NULL);
	rd_roll(d, DRIVER SLOW ",'emptySeconds':60,'atOnce':10,'waves':['1','50%','100%']");
	rw_run(w, 5 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	rd_expect_phase(d, "Soaking");
	assert_int_equal(rd_count_running(d, 2), 1);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(rd_count_running(d, 2), 10);
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 19);
}

/* One node may fail. The node of the first wave does, so another one proves the change before the second wave. */
static void a_failed_node_is_no_canary(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 20);

	d->effect[0][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER SLOW ",'maxFailures':1,'atOnce':10,'waves':['1','50%','100%']");
	rw_run(w, 5 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Failed");
	rd_expect_phase(d, "Soaking");
	assert_int_equal(rd_count_running(d, 2), 1);
	rw_run(w, 3 * HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 19);
}

/* New nodes get the newest template at once. Their faults say nothing about nodes without the change. */
static void nodes_with_another_change_are_no_evidence(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);
	const struct hf_json *evidence;

	w->nodes = 5;
	rw_start(w);
	rd_set_version(d, 2);
	w->nodes = 6;
	rw_delete(w, &hf_nodes, "n005");
	d->bare[5] = true;
	rw_run(w, HF_SECOND);
	rw_node(w, 5);
	rw_patch_in(w, &hf_pods, "default", "driver-n005-v1", NULL,
		    "{'metadata':{'labels':{'controller-revision-hash':'h2'}}}");
	rd_rollout(d, "r", DRIVER SLOW);
	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	evidence =
		hf_json_path(rw_get(w, &hf_devicerollouts, NULL, "r"), "status", "evidence", NULL);
	assert_int_equal(hf_json_i64(hf_json_path(evidence, "changed", "nodes", NULL), -1), 1);
	assert_int_equal(hf_json_i64(hf_json_path(evidence, "unchanged", "nodes", NULL), -1), 4);
}

/* The kubelet has evicted the driver's pod while the node was emptied, so the next pod has the new version already. */
static void a_node_that_was_changed_by_another_is_watched_too(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER SLOW ",'empty':'Wait','emptySeconds':3600");
	rw_run(w, HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	rw_patch_in(w, &hf_pods, "default", "driver-n000-v1", NULL,
		    "{'metadata':{'labels':{'controller-revision-hash':'h2'}}}");
	rd_end_pod(d, "train-0");
	rw_run(w, 2 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	rw_say(w, 0, RW_RESET);
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Halted");
}

/* ---- the way back ---------------------------------------------------------------------------------- */

/* The image of the old version is gone. */
static void a_rollback_that_does_not_work_breaks_one_node(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 8);

	rd_set_effect(d, 1, RD_NEVER_READY);
	d->effect[5][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST ",'onFailure':'Rollback','waves':['100%']");
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True RollbackFailed",
			    "1 well node failed while the change was taken back, first n004");
	/* Nodes 0 to 3 are proved and stay in use. */
	assert_int_equal(rd_count_running(d, 2), 4);
	for (int i = 0; i < 4; i++)
		assert_false(rd_is_cordoned(d, i));
	rd_patch_spec(d, "r", "'cancel':true");
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Cancelled");
	rd_expect_clean(d);
}

/* The change has broken devices for good: the nodes are taken back all the same. */
static void a_rollback_goes_on_beside_broken_devices(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	/* The old version heals no device. */
	rd_set_effect(d, 1, RD_BREAKS_DEVICE);
	d->breaks_after = 100 * HF_HOUR;
	rd_roll(d, DRIVER SLOW ",'onFailure':'Rollback','waves':['100%']");
	while (rd_count_running(d, 2) < 4)
		rw_run(w, HF_SECOND);
	for (int i = 0; i < 3; i++)
		rw_say(w, i, RW_FAILED);
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "False NodesFailed", "3 nodes failed");
	for (int i = 0; i < 6; i++)
		assert_int_equal(d->runs[i], 1);
}

static void a_held_node_keeps_the_change_and_is_named(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "bare", 1, NULL);
	d->effect[3][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST ",'onFailure':'Rollback','waves':['100%'],'emptySeconds':60");
	rd_run_node_until(d, 3, "Proving");
	rw_patch_node(w, 0, "{'metadata':{'annotations':{'holdfast.dev/hold':'true'}}}");
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "False NodesLeft",
			    "1 keeps the change, first n000: annotation holdfast.dev/hold");
}

/* Node 1 was never changed, so nothing is left of the change. */
static void a_skipped_node_does_not_spoil_a_rollback(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rd_pod(d, "bare", 1, NULL);
	d->effect[3][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST ",'onFailure':'Rollback','waves':['100%'],'emptySeconds':60");
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Failed");
	rd_expect_condition(d, "RolledBack", "True Proved", "0 keep the change");
}

/* A person decides about the failed node. A cordon of the person's own is none of the rollout's. */
static void a_person_who_uncordons_a_failed_node_is_obeyed(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	d->effect[0][2] = RD_NEVER_READY;
	rd_roll(d, DRIVER FAST);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Failed");
	assert_true(rd_is_cordoned(d, 0));
	d->by_hand = true;
	rw_patch(w, &hf_nodes, "n000", "{'spec':{'unschedulable':null}}");
	rw_run(w, 10 * HF_SECOND);
	assert_null(hf_json_path_str(rw_get(w, &hf_nodes, NULL, "n000"), "metadata", "annotations",
				     "holdfast.dev/rollout", NULL));
	rw_patch(w, &hf_nodes, "n000", "{'spec':{'unschedulable':true}}");
	rd_patch_spec(d, "r", "'cancel':true");
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Cancelled");
	assert_true(rd_is_cordoned(d, 0));
}

/* ---- two rollouts on the same nodes ------------------------------------------------------------------ */

/* Rollout "l" of a label has proved nodes 0 and 1.  Then rollout "r" of the driver changes them too. */
static struct rd *change_twice(struct rw *w, const char *label_spec)
{
	struct rd *d = rd_create(w, 6);

	rw_start(w);
	rd_rollout(d, "l", label_spec);
	rw_run(w, 3 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "l", 1), "Done");
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST ",'waves':[2,'100%']");
	rw_run(w, 3 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 1), "Done");
	return d;
}

static void a_rollback_takes_back_what_another_rollout_has_changed_too(void **state)
{
	struct rw *w = *state;
	struct rd *d = change_twice(
		w, LABEL ",'soakSeconds':3600,'waves':[2,'100%'],'onFailure':'Rollback'");

	rw_set_ready(w, 1, "Unknown");
	rw_run(w, 4 * HF_MINUTE);
	rw_set_ready(w, 1, "True");
	rw_run(w, HF_HOUR);
	assert_string_equal(rd_phase(d, "l"), "Failed");
	assert_string_equal(rd_node_phase(d, "l", 0), "RolledBack");
	for (int i = 0; i < 6; i++) {
		char name[16];

		rw_name(i, name);
		assert_null(hf_json_path_str(rw_get(w, &hf_nodes, NULL, name), "metadata", "labels",
					     "example.com/driver", NULL));
	}
}

static void a_device_that_fails_speaks_against_both_rollouts(void **state)
{
	struct rw *w = *state;
	struct rd *d = change_twice(w, LABEL ",'soakSeconds':3600,'waves':[2,'100%']");

	rw_say(w, 1, RW_RESET);
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(rd_phase(d, "l"), "Halted");
	assert_string_equal(rd_phase(d, "r"), "Halted");
}

#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_changed_node_that_is_not_ready_halts),
		T(a_label_that_is_taken_away_halts),
		T(a_label_that_is_taken_away_from_an_old_node_halts),
		T(nodes_that_are_all_lost_halt_nothing),
		T(a_changed_node_that_a_person_cordons_halts_nothing),
		T(an_outage_that_spreads_halts_nothing),
		T(silent_agents_everywhere_halt_nothing),
		T(a_node_that_is_off_for_long_is_no_outage),
		T(an_outage_at_the_end_of_a_soak_ends_no_wave),
		T(an_outage_at_the_end_of_a_longer_soak_ends_no_wave),
		T(a_changed_node_that_is_being_mended_halts_nothing),
		T(a_changed_node_that_an_autoscaler_removes_halts_nothing),
		T(a_wave_whose_node_leaves_the_cluster_begins_again),
		T(a_wave_whose_node_comes_back_with_the_change_begins_again),
		T(a_last_wave_of_one_node_takes_another_one),
		T(errors_of_programs_are_no_faults_of_devices),
		T(a_changed_device_that_answers_no_more_halts),
		T(a_silent_agent_of_a_changed_node_halts),
		T(a_silence_of_the_operator_halts_nothing),
		T(a_node_that_is_lost_without_an_operator_halts),
		T(the_next_operator_looks_before_it_begins_with_more_nodes),
		T(a_device_that_fails_before_the_change_is_not_blamed_on_it),
		T(a_node_that_is_not_ready_is_not_changed),
		T(a_fault_from_before_the_change_is_not_blamed_on_it),
		T(a_proved_node_that_is_made_again_halts_nothing),
		T(a_node_that_is_made_again_before_its_proof_halts_nothing),
		T(a_node_that_is_made_again_before_its_change_is_changed_later),
		T(a_node_with_a_silent_agent_is_not_changed),
		T(a_node_whose_agent_falls_silent_is_not_changed),
		T(a_skipped_node_is_no_canary),
		T(a_failed_node_is_no_canary),
		T(nodes_with_another_change_are_no_evidence),
		T(a_node_that_was_changed_by_another_is_watched_too),
		T(a_rollback_that_does_not_work_breaks_one_node),
		T(a_rollback_goes_on_beside_broken_devices),
		T(a_held_node_keeps_the_change_and_is_named),
		T(a_skipped_node_does_not_spoil_a_rollback),
		T(a_person_who_uncordons_a_failed_node_is_obeyed),
		T(a_rollback_takes_back_what_another_rollout_has_changed_too),
		T(a_device_that_fails_speaks_against_both_rollouts),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
