/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "json/doc.h"

#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

#define NONCE "00112233445566778899aabbccddeeff"
#define XID                                                                                        \
	"{'id':'0000:1a:00.0','uuid':'GPU-1','kind':'gpu','state':'Unhealthy','class':"            \
	"'gpu-reset','action':'reset-device','faults':[{'detector':'xid','code':79,'class':"       \
	"'gpu-reset','action':'reset-device','line':'NVRM: Xid 79','lastTime':"                    \
	"'2023-11-14T22:13:00.000000Z','count':1,'active':true}],'holders':[{'namespace':'team',"  \
	"'pod':'ddp-worker-1','uid':'u-1','container':'pytorch'},{'namespace':'team','pod':"       \
	"'gone','uid':'u-2','container':'pytorch','until':'2023-11-14T22:00:00.000000Z'}]}"
#define WELL "{'id':'0000:2a:00.0','uuid':'GPU-2','kind':'gpu','state':'Healthy'}"

static void put_node(struct cli_world *w, const char *devices)
{
	char text[4096];

	cli_world_put(w, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'gpu-7'},'status':"
			 "{'nodeInfo':{'bootID':'b-1'}}}");
	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':{'name':"
		 "'gpu-7'},'status':{'observedTime':'2023-11-14T22:13:10Z','bootID':'b-1',"
		 "'devices':[{'id':'node','kind':'node','state':'Healthy'},%s]}}",
		 devices);
	cli_world_put(w, text);
}

static void put_act(struct cli_world *w, int attempt, const char *spec, const char *status)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation','metadata':{'name':"
		 "'gpu-7-%d'},'spec':{'node':'gpu-7','attempt':%d,'nonce':'" NONCE "',%s},"
		 "'status':{%s}}",
		 attempt, attempt, spec, status);
	cli_world_put(w, text);
}

static const char *spec_of(struct hf_doc *doc, const char *key)
{
	return hf_str_or(hf_json_path_str(hf_doc_json(doc), "spec", key, NULL), "");
}

/* ---- mend ------------------------------------------------------------------------------------------ */

static void without_flags_the_act_is_what_the_faults_need(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC made = NULL;
	const struct hf_json *spec;

	put_node(w, XID "," WELL);
	put_act(w, 4, "'rung':'reboot'", "'phase':'Failed'");
	cli_world_run(w, "mend", "gpu-7", NULL);
	assert_said(
		w, 0,
		"remediation/gpu-7-5 created: reset-device of 0000:1a:00.0 (GPU-1) on node gpu-7\n"
		"  holdfast describe remediation/gpu-7-5   what happens\n"
		"  holdfast mend --cancel gpu-7-5   stops it before the act\n",
		"");
	made = cli_world_get(w, &hf_remediations, "gpu-7-5");
	spec = hf_json_get(hf_doc_json(made), "spec");
	assert_int_equal(hf_json_len(hf_json_get(spec, "devices")), 1);
	assert_string_equal(hf_json_path_str(spec, "fault", "class", NULL), "gpu-reset");
	assert_int_equal(hf_json_i64(hf_json_path(spec, "fault", "code", NULL), 0), 79);
	assert_string_equal(hf_json_path_str(spec, "fault", "text", NULL), "NVRM: Xid 79");
	assert_string_equal(spec_of(made, "bootID"), "b-1");
	assert_int_equal(strlen(spec_of(made, "nonce")), 32);
	assert_null(hf_json_get(spec, "policy"));
	assert_false(hf_json_true(hf_json_get(spec, "dryRun"), false));
}

static void a_person_may_choose_devices_and_rung(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC reset = NULL;
	HF_AUTO_DOC reboot = NULL;

	put_node(w, XID "," WELL);
	cli_world_run(w, "mend", "node/gpu-7", "--device", "GPU-1", "--device", "0000:2a:00.0",
		      "--policy", "gpus", NULL);
	assert_int_equal(w->code, 0);
	reset = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_int_equal(hf_json_len(hf_json_path(hf_doc_json(reset), "spec", "devices", NULL)), 2);
	assert_string_equal(spec_of(reset, "policy"), "gpus");
	cli_world_run(w, "mend", "node", "gpu-7", "--rung", "reboot", NULL);
	assert_int_equal(w->code, 0);
	reboot = cli_world_get(w, &hf_remediations, "gpu-7-2");
	assert_string_equal(spec_of(reboot, "rung"), "reboot");
	assert_int_equal(hf_json_len(hf_json_path(hf_doc_json(reboot), "spec", "devices", NULL)),
			 0);
}

static void a_device_may_be_named_as_nvidia_smi_prints_it(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC made = NULL;

	put_node(w, XID "," WELL);
	cli_world_run(w, "mend", "gpu-7", "--device", "00000000:1A:00.0", NULL);
	assert_said(
		w, 0,
		"remediation/gpu-7-1 created: reset-device of 0000:1a:00.0 (GPU-1) on node gpu-7\n"
		"  holdfast describe remediation/gpu-7-1   what happens\n"
		"  holdfast mend --cancel gpu-7-1   stops it before the act\n",
		"");
	made = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_int_equal(hf_json_len(hf_json_path(hf_doc_json(made), "spec", "devices", NULL)), 1);
	cli_world_run(w, "mend", "gpu-7", "--device", "00000001:1A:00.0", NULL);
	assert_int_equal(w->code, 1);
	assert_has(w->err, "no device '00000001:1A:00.0'");
}

/* The name of another node is a mistake that must not end work. */
static void a_well_node_is_refused(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC made = NULL;

	put_node(w, XID "," WELL);
	cli_world_run(w, "mend", "gpu-7", "--device", "GPU-2", NULL);
	assert_said(
		w, 1, "",
		"holdfast: by its agent's report nothing that this act would mend on node 'gpu-7' "
		"has a fault; --although-well acts all the same\n");
	made = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_null(made);
	cli_world_run(w, "mend", "gpu-7", "--device", "GPU-2", "--although-well", NULL);
	assert_int_equal(w->code, 0);
	made = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_null(hf_json_path(hf_doc_json(made), "spec", "fault", "class", NULL));
}

static void a_node_without_faults_needs_a_choice(void **state)
{
	struct cli_world *w = *state;

	put_node(w, WELL);
	cli_world_run(w, "mend", "gpu-7", NULL);
	assert_said(w, 1, "",
		    "holdfast: by its agent's report no device of node 'gpu-7' needs a reset or a "
		    "reboot; to act all the same, give --device or --rung, and --although-well if "
		    "nothing has a fault\n");
	cli_world_run(w, "mend", "gpu-7", "--rung", "reset-device", NULL);
	assert_int_equal(w->code, 1);
	assert_has(w->err, "a reset needs a device");
	cli_world_run(w, "mend", "gpu-7", "--device", "GPU-9", NULL);
	assert_int_equal(w->code, 1);
	assert_has(w->err, "no device 'GPU-9' with a UUID; its devices: 0000:2a:00.0\n");
	cli_world_run(w, "mend", "gpu-8", NULL);
	assert_int_equal(w->code, 1);
	assert_has(w->err, "gpu-8");
}

static void wrong_words_are_refused(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC act = NULL;

	cli_world_run(w, "mend", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "give NODE, or --cancel NAME");
	cli_world_run(w, "mend", "gpu-7", "--cancel", "gpu-7-1", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	put_act(w, 1, "'rung':'reboot'", "'phase':'Draining'");
	cli_world_run(w, "mend", "--cancel", "gpu-7-1", "--dry-run", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "--cancel takes no --dry-run");
	cli_world_run(w, "mend", "--cancel", "gpu-7-1", "--device", "GPU-1", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	act = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_null(hf_json_path(hf_doc_json(act), "spec", "cancel", NULL));
	/* A reboot would be the most similar name. */
	cli_world_run(w, "mend", "gpu-7", "--rung", "reset", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "unknown rung 'reset'; the rungs are restart-process, reset-device, "
			   "restart-plugin, reboot, external, person\n");
}

/* ---- the dry run ----------------------------------------------------------------------------------- */

static void answer_yes(struct cli_world *w)
{
	cli_world_patch(
		w, &hf_remediations, "gpu-7-1",
		"{'status':{'phase':'Succeeded','message':'dry run: the act would begin now; 1 "
		"pod would move'}}");
}

static void answer_no(struct cli_world *w)
{
	cli_world_patch(
		w, &hf_remediations, "gpu-7-1",
		"{'status':{'phase':'Cancelled','message':'dry run: the act would not begin now: "
		"held'}}");
}

static void a_dry_run_prints_the_plan_and_the_answer(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC made = NULL;

	put_node(w, XID "," WELL);
	cli_world_later(w, HF_SECOND, answer_yes);
	cli_world_run(w, "mend", "gpu-7", "--dry-run", NULL);
	assert_said(w, 0,
		    "would do: reset-device of 0000:1a:00.0 (GPU-1) on node gpu-7\n"
		    "  fault:                 gpu-reset, NVRM: Xid 79\n"
		    "  pod that would leave:  team/ddp-worker-1, which holds 0000:1a:00.0\n"
		    "  taint that would be put on the node: holdfast.dev/device\n"
		    "operator: dry run: the act would begin now; 1 pod would move\n",
		    "");
	/* It leaves nothing. */
	made = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_null(made);
	/* These rungs put no taint on the node. */
	cli_world_later(w, HF_SECOND, answer_yes);
	cli_world_run(w, "mend", "gpu-7", "--rung", "restart-plugin", "--dry-run", NULL);
	assert_has(w->out, "would do: restart-plugin on node gpu-7\n");
	assert_null(strstr(w->out, "taint"));
}

static void a_dry_run_that_could_not_begin_fails(void **state)
{
	struct cli_world *w = *state;

	put_node(w, XID);
	cli_world_later(w, HF_SECOND, answer_no);
	cli_world_run(w, "mend", "gpu-7", "--dry-run", NULL);
	assert_int_equal(w->code, 1);
	assert_has(w->out, "operator: dry run: the act would not begin now: held\n");
}

static void without_an_operator_a_dry_run_ends(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC made = NULL;

	put_node(w, XID);
	cli_world_run(w, "mend", "gpu-7", "--dry-run", NULL);
	assert_int_equal(w->code, HF_EXIT_TIMEOUT);
	assert_has(w->err, "no operator has answered within 15 s");
	made = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_null(made);
}

/* ---- cancel ----------------------------------------------------------------------------------------- */

static void an_act_is_cancelled_before_it_begins(void **state)
{
	struct cli_world *w = *state;
	HF_AUTO_DOC made = NULL;

	put_act(w, 1, "'rung':'reboot'", "'phase':'Draining'");
	put_act(w, 2, "'rung':'reboot'", "'phase':'Acting'");
	cli_world_run(w, "mend", "--cancel", "gpu-7-1", NULL);
	assert_said(w, 0, "remediation/gpu-7-1 is cancelled unless its act begins now\n", "");
	made = cli_world_get(w, &hf_remediations, "gpu-7-1");
	assert_true(hf_json_true(hf_json_path(hf_doc_json(made), "spec", "cancel", NULL), false));
	cli_world_run(w, "mend", "--cancel", "remediation/gpu-7-2", NULL);
	assert_said(w, 1, "", "holdfast: remediation/gpu-7-2 is Acting: too late to cancel\n");
	cli_world_run(w, "mend", "--cancel", "gpu-7-3", NULL);
	assert_int_equal(w->code, 1);
}

/* ---- get, describe, why ------------------------------------------------------------------------------ */

#define RESET                                                                                      \
	"'rung':'reset-device','devices':[{'id':'0000:1a:00.0','uuid':'GPU-1'}],'fault':{"         \
	"'class':'gpu-reset','code':79,'text':'NVRM: Xid 79','time':'2023-11-14T22:13:00Z'},"      \
	"'requestedBy':'policy','policy':'gpus'"

static void remediations_are_listed(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "get", "remediations", NULL);
	assert_said(w, 0, "", "No resources found\n");
	put_act(w, 1, RESET, "'phase':'Failed','message':'no proof'");
	put_act(w, 2, "'rung':'reboot','dryRun':true", "");
	cli_world_run(w, "get", "rem", NULL);
	assert_said(
		w, 0,
		"NAME      NODE    RUNG           PHASE               DEVICES        FAULT          AGE\n"
		"gpu-7-1   gpu-7   reset-device   Failed              0000:1a:00.0   gpu-reset 79   0s\n"
		"gpu-7-2   gpu-7   reboot         Pending (dry run)   <node>         <none>         0s\n",
		"");
	cli_world_run(w, "get", "remediations", "--failed", "-o", "wide", "--no-headers", NULL);
	assert_said(w, 0,
		    "gpu-7-1   gpu-7   reset-device   Failed   0000:1a:00.0   gpu-reset 79   0s   "
		    "policy   no proof\n",
		    "");
	cli_world_run(w, "get", "remediation/gpu-7-2", "-o", "jsonpath={.spec.rung}", NULL);
	assert_has(w->out, "reboot");
}

static void one_remediation_is_described(void **state)
{
	struct cli_world *w = *state;

	put_act(w, 3, RESET,
		"'phase':'Verifying','message':'waits for a report','approval':{'time':"
		"'2023-11-14T22:14:00Z','bootID':'b-1'},'act':{'startedAt':'2023-11-14T22:14:01Z',"
		"'endedAt':'2023-11-14T22:14:06Z','tool':'nvidia-smi','exitCode':0,'message':'reset',"
		"'holders':[{'pid':17,'comm':'dcgm','pod':'u-9'}]},'saved':{'labels':{'a':'true'},"
		"'external':{'apiVersion':'fix.example/v1','kind':'Fix','namespace':'fixes'}},"
		"'conditions':[{'type':'Locked','status':'True','reason':'LeaseTaken',"
		"'lastTransitionTime':'2023-11-14T22:13:50Z'}]");
	cli_world_run(w, "describe", "remediation", "gpu-7-3", NULL);
	assert_said(w, 0,
		    "Name:          gpu-7-3\n"
		    "Node:          gpu-7\n"
		    "Rung:          reset-device\n"
		    "Devices:       0000:1a:00.0 (GPU-1)\n"
		    "Fault:         gpu-reset, code 79, 2023-11-14T22:13:00Z: NVRM: Xid 79\n"
		    "Requested by:  policy, under policy gpus\n"
		    "Phase:         Verifying\n"
		    "Message:       waits for a report\n"
		    "Approved:      2023-11-14T22:14:00Z, in boot b-1\n"
		    "Act:           nvidia-smi from 2023-11-14T22:14:01Z to 2023-11-14T22:14:06Z\n"
		    "Result:        exit code 0: reset\n"
		    "Open by:       dcgm (pid 17) of pod u-9\n"
		    "To put back:   label a=true\n"
		    "To delete:     Fix fixes/gpu-7 of fix.example/v1\n"
		    "\nConditions:\n"
		    "TYPE     STATUS   REASON       SINCE                  MESSAGE\n"
		    "Locked   True     LeaseTaken   2023-11-14T22:13:50Z   \n",
		    "");
	cli_world_run(w, "describe", "rem/gpu-7-3", "-o", "json", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "\"kind\": \"Remediation\"");
	cli_world_run(w, "describe", "remediation/gpu-7-9", NULL);
	assert_int_equal(w->code, 1);
}

static void why_node_shows_the_act_that_runs_or_the_last(void **state)
{
	struct cli_world *w = *state;

	put_node(w, WELL);
	put_act(w, 1, RESET, "'phase':'Failed','message':'no proof'");
	put_act(w, 2, "'rung':'reboot'", "'phase':'Succeeded','message':'rebooted'");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(w->out, "node gpu-7 is not ready, and nothing keeps pods off it\n");
	assert_has(w->out, "mend      gpu-7-2: reboot of the node is Succeeded: rebooted\n");
	assert_null(strstr(w->out, "gpu-7-1"));
	put_act(w, 3, RESET,
		"'phase':'Draining','message':'2 pods still use the devices','conditions':[{'type':"
		"'Locked','status':'True','reason':'LeaseTaken'},{'type':'JobsMoved','status':"
		"'False','reason':'PodsLeft','message':'2 pods'}]");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(w->out, "mend      gpu-7-3: reset-device of 0000:1a:00.0 (GPU-1) is Draining: 2 "
			   "pods still use the devices\n");
	assert_has(w->out, "mend      gpu-7-3: JobsMoved is False (PodsLeft): 2 pods\n");
	assert_null(strstr(w->out, "Locked"));
	assert_null(strstr(w->out, "gpu-7-2"));
	put_act(w, 4, RESET,
		"'phase':'Pending','message':'waits','conditions':[{'type':'Locked','status':"
		"'False','reason':'LeaseFree','message':'waits'}]");
	cli_world_run(w, "why", "node/gpu-7", NULL);
	assert_has(w->out, "is Pending: waits\n");
	assert_null(strstr(w->out, "LeaseFree"));
}

/* The record of a job's failure names the act that answered it. */
static void why_job_names_the_act(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "ddp", 1, "Running");
	put_act(w, 1, RESET,
		"'phase':'Succeeded','proof':{'time':'2023-11-14T22:13:41Z','text':'back'}");
	put_act(w, 2, "'rung':'reboot','dryRun':true", "'phase':'Succeeded'");
	cli_world_patch(
		w, hf_resource_by_word("pytorchjobs"), "ddp",
		"{'status':{'recovery':{'last':{'cause':'device','node':'gpu-8','detectedAt':"
		"'2023-11-14T22:13:01Z'}}}}");
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "reset-device"));
	cli_world_patch(
		w, hf_resource_by_word("pytorchjobs"), "ddp",
		"{'status':{'recovery':{'last':{'cause':'device','node':'gpu-7','detectedAt':"
		"'2023-11-14T22:13:01Z'}}}}");
	cli_world_run(w, "why", "ddp", NULL);
	assert_has(w->out,
		   "mend      gpu-7: reset-device of 0000:1a:00.0 (GPU-1) after Xid 79, back in "
		   "41s (Remediation gpu-7-1)\n");
	assert_null(strstr(w->out, "reboot"));
	cli_world_run(w, "describe", "ddp", NULL);
	assert_has(w->out, "Mended:        2023-11-14T22:13:20Z  gpu-7: reset-device");
	/* The reset of another device of the node answers another failure. */
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "ddp",
			"{'status':{'recovery':{'last':{'device':'0000:1b:00.0'}}}}");
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "reset-device"));
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "ddp",
			"{'status':{'recovery':{'last':{'device':'0000:1a:00.0'}}}}");
	cli_world_run(w, "why", "ddp", "-o", "json", NULL);
	assert_has(w->out, "\"topic\": \"mend\"");
}

#define EVICTED(at)                                                                                \
	"{'status':{'recovery':{'last':{'cause':'infrastructure','reason':'EvictionByEvictionAPI'" \
	",'node':'gpu-7','detectedAt':'" at "'}}}}"

/* A pod that was evicted for a reboot of its node had no failed device. */
static void why_job_names_the_act_that_evicted(void **state)
{
	const struct hf_resource *jobs = hf_resource_by_word("pytorchjobs");
	struct cli_world *w = *state;

	cli_world_job(w, "ddp", 1, "Running");
	put_act(w, 1, "'rung':'reboot'",
		"'phase':'Succeeded','act':{'nonce':'n','actor':'a','startedAt':"
		"'2023-11-14T22:14:00Z'},'proof':{'time':'2023-11-14T22:17:00Z','text':'back'}");
	cli_world_patch(w, jobs, "ddp", EVICTED("2023-11-14T22:13:30Z"));
	cli_world_run(w, "why", "ddp", NULL);
	assert_has(w->out, "mend      gpu-7: reboot of the node");
	assert_has(w->out, "(Remediation gpu-7-1)\n");
	/* Evictions before the act and after it are of others. */
	cli_world_patch(w, jobs, "ddp", EVICTED("2023-11-14T22:13:10Z"));
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "gpu-7-1"));
	cli_world_patch(w, jobs, "ddp", EVICTED("2023-11-14T22:20:00Z"));
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "gpu-7-1"));
	cli_world_patch(w, jobs, "ddp",
			"{'status':{'recovery':{'last':{'detectedAt':'2023-11-14T22:13:30Z',"
			"'reason':'PreemptionByScheduler'}}}}");
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "gpu-7-1"));
}

/* A person drains the node while an act waits for its window. */
static void why_job_names_no_act_that_waits(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "ddp", 1, "Running");
	put_act(w, 1, "'rung':'reboot'", "'phase':'Pending'");
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "ddp",
			EVICTED("2023-11-14T22:13:30Z"));
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "gpu-7-1"));
}

static void put_rollout(struct cli_world *w, const char *entry)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceRollout','metadata':{'name':"
		 "'d','creationTimestamp':'2023-11-14T22:13:20Z'},'spec':{'change':{'nodeLabel':{"
		 "'key':'a/b','value':'c'}}},'status':{'phase':'Rolling','nodes':[{'name':'gpu-7',"
		 "%s}]}}",
		 entry);
	cli_world_put(w, text);
}

static void why_job_names_the_rollout_that_evicted(void **state)
{
	const struct hf_resource *jobs = hf_resource_by_word("pytorchjobs");
	struct cli_world *w = *state;

	cli_world_job(w, "ddp", 1, "Running");
	cli_world_patch(w, jobs, "ddp", EVICTED("2023-11-14T22:13:30Z"));
	put_rollout(w, "'phase':'Emptying','since':'2023-11-14T22:13:29Z'");
	cli_world_run(w, "why", "ddp", NULL);
	assert_has(w->out, "mend      gpu-7: emptied for DeviceRollout d, now Emptying\n");
	cli_world_delete(w, &hf_devicerollouts, "d");
	put_rollout(w, "'phase':'Done','since':'2023-11-14T22:15:00Z','changedTime':"
		       "'2023-11-14T22:14:00Z'");
	cli_world_run(w, "why", "ddp", NULL);
	assert_has(w->out, "mend      gpu-7: emptied for DeviceRollout d, now Done\n");
	/* Another tool has evicted the pod after the change. */
	cli_world_patch(w, jobs, "ddp", EVICTED("2023-11-14T22:14:30Z"));
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "DeviceRollout"));
	/* The node waited for its turn, or its work had ended without a change. */
	cli_world_delete(w, &hf_devicerollouts, "d");
	put_rollout(w, "'phase':'Waiting','since':'2023-11-14T22:13:29Z'");
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "DeviceRollout"));
	cli_world_delete(w, &hf_devicerollouts, "d");
	put_rollout(w, "'phase':'Failed','since':'2023-11-14T22:14:00Z'");
	cli_world_run(w, "why", "ddp", NULL);
	assert_null(strstr(w->out, "DeviceRollout"));
}

static void names_are_completed(void **state)
{
	struct cli_world *w = *state;

	put_node(w, WELL);
	put_act(w, 1, "'rung':'reboot'", "");
	cli_world_run(w, "__complete", "--", "mend", "g", NULL);
	assert_said(w, 0, "gpu-7\n", "");
	cli_world_run(w, "__complete", "--", "mend", "--cancel", "g", NULL);
	assert_said(w, 0, "gpu-7-1\n", "");
	cli_world_run(w, "__complete", "--", "mend", "--rung", "reb", NULL);
	assert_said(w, 0, "reboot\n", "");
	cli_world_run(w, "__complete", "--", "get", "rem", NULL);
	assert_said(w, 0, "remediations\n", "");
	cli_world_run(w, "__complete", "--", "describe", "remediation/g", NULL);
	assert_said(w, 0, "remediation/gpu-7-1\n", "");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, cli_world_setup, cli_world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(without_flags_the_act_is_what_the_faults_need),
		TEST(a_person_may_choose_devices_and_rung),
		TEST(a_device_may_be_named_as_nvidia_smi_prints_it),
		TEST(a_well_node_is_refused),
		TEST(a_node_without_faults_needs_a_choice),
		TEST(wrong_words_are_refused),
		TEST(a_dry_run_prints_the_plan_and_the_answer),
		TEST(a_dry_run_that_could_not_begin_fails),
		TEST(without_an_operator_a_dry_run_ends),
		TEST(an_act_is_cancelled_before_it_begins),
		TEST(remediations_are_listed),
		TEST(one_remediation_is_described),
		TEST(why_node_shows_the_act_that_runs_or_the_last),
		TEST(why_job_names_the_act),
		TEST(why_job_names_the_act_that_evicted),
		TEST(why_job_names_no_act_that_waits),
		TEST(why_job_names_the_rollout_that_evicted),
		TEST(names_are_completed),
	};

	return cmocka_run_group_tests_name("mend", tests, NULL, NULL);
}
