/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "json/doc.h"

#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

#define READY "{'type':'Ready','status':'True'}"

static void put_node(struct cli_world *w, const char *spec, const char *annotations,
		     const char *conditions)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'v1','kind':'Node','metadata':{'name':'gpu-7','annotations':{%s}},"
		 "'spec':{%s},'status':{'conditions':[%s]}}",
		 annotations, spec, conditions);
	cli_world_put(w, text);
}

static void put_health(struct cli_world *w, const char *observed, const char *devices)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':{'name':"
		 "'gpu-7'},'status':{'observedTime':'%s','devices':[%s]}}",
		 observed, devices);
	cli_world_put(w, text);
}

static void a_node_that_is_well_has_nothing_against_it(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "", READY);
	put_health(w, "2023-11-14T22:13:20Z",
		   "{'id':'node','state':'Healthy'},{'id':'0000:1a:00.0','state':'Healthy'}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_said(w, 0, "node gpu-7 is Ready, and nothing keeps pods off it\n", "");
}

static void a_node_may_be_named_in_two_words(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "", READY);
	put_health(w, "2023-11-14T22:13:20Z", "{'id':'node','state':'Healthy'}");
	cli_world_run(w, "why", "node", "gpu-7", NULL);
	assert_said(w, 0, "node gpu-7 is Ready, and nothing keeps pods off it\n", "");
}

static void a_node_that_is_not_there_is_an_error(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "why", "node/gpu-8", NULL);
	assert_int_equal(w->code, 1);
	assert_has(w->err, "gpu-8");
}

static void a_quarantine_for_an_act_names_the_act(void **state)
{
	struct cli_world *w = *state;

	put_node(
		w,
		"'taints':[{'key':'holdfast.dev/device','value':'none','effect':'NoSchedule',"
		"'timeAdded':'2023-11-14T22:00:00Z'}]",
		"'holdfast.dev/quarantine':'{\\\"policy\\\":\\\"remediations/gpu-7-1\\\","
		"\\\"class\\\":\\\"none\\\",\\\"time\\\":\\\"2023-11-14T22:00:00Z\\\",\\\"epoch\\\":0}'",
		READY);
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(w->out,
		   "Holdfast's quarantine for Remediation gpu-7-1: after a failure it "
		   "stays until a reboot, or an act on the same devices, succeeds, or until "
		   "you remove it\n");
}

static void the_policy_and_reason_of_a_quarantine_are_shown(void **state)
{
	struct cli_world *w = *state;

	put_node(
		w,
		"'unschedulable':true,'taints':[{'key':'holdfast.dev/device','value':'reboot',"
		"'effect':'NoSchedule','timeAdded':'2023-11-14T22:00:00Z'},{'key':'team','effect':"
		"'NoExecute'}]",
		"'holdfast.dev/quarantine':'{\\\"policy\\\":\\\"gpus\\\",\\\"class\\\":\\\"reboot\\\","
		"\\\"time\\\":\\\"2023-11-14T22:00:00Z\\\",\\\"epoch\\\":0}'",
		READY ",{'type':'AcceleratorUnhealthy','status':'True','lastTransitionTime':"
		      "'2023-11-14T21:59:00Z','message':'1 of 8 devices'},"
		      "{'type':'FabricUnhealthy','status':'False'}");
	put_health(
		w, "2023-11-14T22:13:00Z",
		"{'id':'0000:1a:00.0','state':'Unhealthy','class':'reboot','action':'restart-node',"
		"'since':'2023-11-14T21:59:00Z','faults':[{'detector':'xid','code':79,'class':"
		"'reboot','active':true,'count':2,'lastTime':'2023-11-14T21:59:30Z','line':"
		"'NVRM: Xid 79'},{'detector':'xid','code':31,'active':false,'count':1}]}");
	cli_world_put(w,
		      "{'apiVersion':'holdfast.dev/v1alpha1','kind':'HealthPolicy','metadata':"
		      "{'name':'gpus'},'spec':{'mode':'quarantine'},'status':{'mode':'quarantine',"
		      "'nodes':[{'name':'gpu-6','answer':'go'},{'name':'gpu-7','answer':'waits',"
		      "'next':'restart-node','why':'nobody restarts nodes yet'}]}}");
	cli_world_run(w, "why", "nodes/gpu-7", NULL);
	assert_int_equal(w->code, 0);
	assert_true(hf_str_has_prefix(w->out, "node gpu-7 is Ready, quarantined by Holdfast\n"));
	assert_has(w->out, "taint     holdfast.dev/device=reboot:NoSchedule, Holdfast's quarantine "
			   "under policy gpus\n");
	assert_has(w->out, "taint     team:NoExecute\n");
	assert_has(
		w->out,
		"cordon    the node is cordoned, and not by Holdfast: an administrator or a tool did it\n");
	assert_has(w->out, "told      AcceleratorUnhealthy: 1 of 8 devices\n");
	assert_has(w->out,
		   "device    0000:1a:00.0 is Unhealthy, class reboot, needs restart-node\n");
	assert_has(w->out, "evidence  xid 79, 2 times: NVRM: Xid 79\n");
	assert_has(w->out, "policy    gpus (quarantine): waits restart-node: nobody restarts nodes "
			   "yet\n");
	assert_null(strstr(w->out, "FabricUnhealthy"));
	assert_null(strstr(w->out, "xid 31"));
}

static void put_confined_node(struct cli_world *w, const char *late)
{
	char mark[512];

	snprintf(
		mark, sizeof(mark),
		"'holdfast.dev/quarantine':'{\\\"policy\\\":\\\"gpus\\\",\\\"class\\\":\\\"reboot\\\","
		"\\\"time\\\":\\\"2023-11-14T22:00:00Z\\\",\\\"scope\\\":\\\"Device\\\"%s}'",
		late);
	put_node(w, "'taints':[]", mark, READY);
}

static void devices_out_of_use_are_shown(void **state)
{
	struct cli_world *w = *state;

	put_confined_node(w, "");
	cli_world_put(w, "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':{"
			 "'name':'gpu-7','annotations':{'holdfast.dev/devices-out':'GPU-1'}}}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_true(hf_str_has_prefix(w->out, "node gpu-7 is Ready, with devices out of use\n"));
	assert_has(w->out, "devices   the failed devices are out of use under policy gpus, class "
			   "reboot; the others stay in use\n");
}

/* A device plugin still offers the failed device, and policy gpus has drain.latePods. */
static void a_device_that_is_still_offered_is_not_out_of_use(void **state)
{
	struct cli_world *w = *state;

	put_confined_node(w, ",\\\"late\\\":2,\\\"latePod\\\":\\\"u\\\"");
	put_health(w, "2023-11-14T22:13:20Z", "");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_true(hf_str_has_prefix(
		w->out, "node gpu-7 is Ready, with failed devices that pods can still be given\n"));
	assert_has(w->out,
		   "devices   pods can still be given a failed device: policy gpus, class "
		   "reboot, keeps the node in use; evicted pods that were given one since: 2\n");
}

static void without_a_report_it_is_not_known_what_is_out_of_use(void **state)
{
	struct cli_world *w = *state;

	put_confined_node(w, "");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_true(hf_str_has_prefix(w->out,
				      "node gpu-7 is Ready, with failed devices in quarantine\n"));
	assert_has(w->out,
		   "devices   the quarantine under policy gpus, class reboot, concerns the failed "
		   "devices alone; without the DeviceHealth it is not known whether pods can be "
		   "given one\n");
}

static void a_taint_that_is_not_noted_is_said_to_stay(void **state)
{
	struct cli_world *w = *state;

	put_node(
		w, "'taints':[{'key':'holdfast.dev/device','effect':'NoSchedule'}]",
		"'holdfast.dev/quarantine':'nonsense','holdfast.dev/paused':'true','holdfast.dev/hold':'yes'",
		READY);
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(w->out, "holdfast.dev/device:NoSchedule, without a record of its owner: "
			   "Holdfast does not remove it\n");
	assert_has(
		w->out,
		"paused    annotation holdfast.dev/paused: Holdfast does nothing to this node\n");
	assert_has(w->out, "hold      annotation holdfast.dev/hold: no act begins on this node, "
			   "and no rollout changes it\n");
	assert_has(
		w->out,
		"agent     no agent reports the devices: DeviceHealth 'gpu-7' does not exist or cannot be read\n");
}

static void a_silent_agent_and_a_lost_node_are_told(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "",
		 "{'type':'Ready','status':'Unknown','lastTransitionTime':'2023-11-14T22:12:00Z',"
		 "'message':'Kubelet stopped posting node status.'}");
	put_health(
		w, "2023-11-14T21:50:00Z",
		"{'id':'node','state':'Unknown'},{'id':'0000:1a:00.0','state':'Unknown','faults':"
		"[{'detector':'xid','code':62,'active':false,'count':1,'line':'NVRM: Xid 62'}]}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_true(hf_str_has_prefix(
		w->out, "node gpu-7 is Unknown: its kubelet has stopped reporting\n"));
	assert_has(w->out, "ready     Ready is Unknown: Kubelet stopped posting node status.\n");
	assert_has(
		w->out,
		"agent     the agent's last report is from this time: the device states may be out of date\n");
	assert_has(w->out, "evidence  no report about the node as a whole yet\n");
	assert_has(
		w->out,
		"evidence  xid 62, 1 times (part of a fault of the whole node, or a result of another fault): "
		"NVRM: Xid 62\n");
	assert_null(strstr(w->out, "0000:1a:00.0 has not been heard of"));
}

static void jobs_that_keep_off_it_are_named(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "", READY);
	cli_world_job(w, "a", 1, "Running");
	cli_world_job(w, "old", 1, "Running");
	cli_world_job(w, "elsewhere", 1, "Running");
	cli_world_patch(
		w, &hf_pytorchjobs, "a",
		"{'status':{'recovery':{'last':{'node':'gpu-1','cause':'device','detectedAt':"
		"'2023-11-14T22:00:00Z'},'history':[{'node':'gpu-7','cause':'infrastructure',"
		"'reason':'NodeLost','replica':'worker-0','detectedAt':'2023-11-14T20:00:00Z'}]}}}");
	cli_world_patch(
		w, &hf_pytorchjobs, "old",
		"{'status':{'recovery':{'last':{'node':'gpu-7','cause':'device','detectedAt':"
		"'2023-11-13T22:00:00Z'}}}}");
	cli_world_patch(
		w, &hf_pytorchjobs, "elsewhere",
		"{'status':{'recovery':{'last':{'node':'gpu-7','cause':'application','detectedAt':"
		"'2023-11-14T22:00:00Z'}}}}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(
		w->out,
		"avoided   for 24 hours by the pods of default/a: worker-0 failed here, class infrastructure, "
		"NodeLost\n");
	assert_null(strstr(w->out, "default/old"));
	assert_null(strstr(w->out, "default/elsewhere"));
}

static void a_mended_node_is_avoided_no_more(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "", READY);
	put_health(w, "2023-11-14T22:13:20Z", "{'id':'node','state':'Healthy'}");
	cli_world_job(w, "a", 1, "Running");
	cli_world_patch(
		w, &hf_pytorchjobs, "a",
		"{'status':{'recovery':{'last':{'node':'gpu-7','cause':'device','detectedAt':"
		"'2023-11-14T22:00:00Z'}}}}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(w->out, "avoided");
	cli_world_patch(w, &hf_devicehealths, "gpu-7",
			"{'metadata':{'annotations':{'holdfast.dev/mended':'2023-11-14T22:05:00Z "
			"gpu-7-1'}}}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_null(strstr(w->out, "avoided"));
}

static void a_job_that_does_not_avoid_devices_is_not_said_to(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "", READY);
	cli_world_job(w, "a", 1, "Running");
	cli_world_patch(w, &hf_pytorchjobs, "a",
			"{'spec':{'runPolicy':{'recovery':{'device':{'avoid':false}}}}}");
	cli_world_patch(
		w, &hf_pytorchjobs, "a",
		"{'status':{'recovery':{'last':{'node':'gpu-7','cause':'device','detectedAt':"
		"'2023-11-14T22:00:00Z'}}}}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_null(strstr(w->out, "avoided"));
}

static void a_policy_without_room_for_the_node_is_told(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "", READY);
	cli_world_put(w, "{'apiVersion':'holdfast.dev/v1alpha1','kind':'HealthPolicy','metadata':"
			 "{'name':'all'},'spec':{},'status':{'mode':'quarantine','moreNodes':6,"
			 "'breaker':{'state':'Open','message':'70 of 70 nodes'},'nodes':"
			 "[{'name':'gpu-1','answer':'go'}]}}");
	cli_world_put(w, "{'apiVersion':'holdfast.dev/v1alpha1','kind':'HealthPolicy','metadata':"
			 "{'name':'others'},'spec':{'selector':{'matchLabels':{'a':'b'}}},"
			 "'status':{'mode':'quarantine','moreNodes':6,'nodes':[]}}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(
		w->out,
		"policy    all (quarantine): the policy's status has no room for 6 of its nodes; "
		"this node may be one of them; its breaker is open: 70 of 70 nodes\n");
	assert_null(strstr(w->out, "others"));
}

static void programs_get_the_same_as_json(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "'unschedulable':true", "", READY);
	cli_world_run(w, "why", "node/gpu-7", "-o", "json", NULL);
	assert_int_equal(w->code, 0);
	HF_AUTO_DOC account = hf_doc_from_text(w->out, strlen(w->out));
	assert_string_equal(hf_json_path_str(hf_doc_json(account), "summary", NULL), "Ready");
	assert_string_equal(
		hf_json_path_str(hf_json_item(hf_json_get(hf_doc_json(account), "reasons"), 0),
				 "topic", NULL),
		"cordon");
}

static void what_others_write_moves_no_cursor(void **state)
{
	struct cli_world *w = *state;

	put_node(w, "", "", "{'type':'Ready','status':'False','message':'a\\u001b[2Jb\\nc'}");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(w->out, "Ready is False: a?[2Jb?c\n");
}

#define T(name) cmocka_unit_test_setup_teardown(name, cli_world_setup, cli_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_node_that_is_well_has_nothing_against_it),
		T(a_node_may_be_named_in_two_words),
		T(a_node_that_is_not_there_is_an_error),
		T(a_quarantine_for_an_act_names_the_act),
		T(the_policy_and_reason_of_a_quarantine_are_shown),
		T(devices_out_of_use_are_shown),
		T(a_device_that_is_still_offered_is_not_out_of_use),
		T(without_a_report_it_is_not_known_what_is_out_of_use),
		T(a_taint_that_is_not_noted_is_said_to_stay),
		T(a_silent_agent_and_a_lost_node_are_told),
		T(jobs_that_keep_off_it_are_named),
		T(a_mended_node_is_avoided_no_more),
		T(a_job_that_does_not_avoid_devices_is_not_said_to),
		T(a_policy_without_room_for_the_node_is_told),
		T(programs_get_the_same_as_json),
		T(what_others_write_moves_no_cursor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
