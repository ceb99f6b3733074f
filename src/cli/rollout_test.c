/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "cli/rollout.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/* DeviceRollouts for people: `get`, `describe`, `why rollout/NAME` and `why node/NAME`. */

#define SPEC                                                                                       \
	"'change':{'daemonSet':{'namespace':'gpu','name':'driver'}},'waves':['1','50%','100%'],"   \
	"'soakSeconds':600,'atOnce':1,'empty':'Save','onFailure':'Halt'"

static void put_rollout(struct cli_world *w, const char *name, const char *more, const char *status)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceRollout','metadata':{'name':"
		 "'%s'},'spec':{%s%s},'status':{%s}}",
		 name, SPEC, more, status);
	cli_world_put(w, text);
}

#define HALTED                                                                                                         \
	"'phase':'Halted','wave':1,'message':'gpu-1: a device has a fault',"                                           \
	"'targetRevision':'7f9','fromRevision':'5c4',"                                                                 \
	"'startedTime':'2023-11-14T22:00:00Z',"                                                                        \
	"'counts':{'selected':8,'changed':1,'failed':1,'skipped':2},"                                                  \
	"'evidence':{'changed':{'nodes':1,'deviceMinutes':75,'faults':3,'restarts':2,'stepNodes':1},"                  \
	"'unchanged':{'nodes':7,'deviceMinutes':600,'faults':0,'stepNodes':4},'stepPermille':1285},"                   \
	"'nodes':[{'name':'gpu-1','phase':'Failed','since':'2023-11-14T22:10:00Z','tries':1,"                          \
	"'message':'0000:1a:00.0 is Unhealthy'},"                                                                      \
	"{'name':'gpu-2','phase':'Done','since':'2023-11-14T22:05:00Z'}],"                                             \
	"'conditions':[{'type':'Progressing','status':'False','reason':'Halted','message':"                            \
	"'gpu-1: a device has a fault','lastTransitionTime':'2023-11-14T22:10:00Z'},{'type':'Halted','status':'True'," \
	"'reason':'NodeFailed','message':'1 node failed, first gpu-1','lastTransitionTime':"                           \
	"'2023-11-14T22:10:00.123456Z'},{'type':'RolledBack','status':'False','reason':'NotAsked',"                    \
	"'message':'','lastTransitionTime':'2023-11-14T22:10:00Z'}]"

static void rollouts_are_listed(void **state)
{
	struct cli_world *w = *state;

	put_rollout(w, "driver", "", HALTED);
	put_rollout(w, "plugin", ",'paused':true", "");
	cli_world_run(w, "get", "devicerollouts", NULL);
	assert_said(
		w, 0,
		"NAME     PHASE              WAVE   CHANGED   FAILED   AGE   MESSAGE\n"
		"driver   Halted             1/3    1/8       1        0s    gpu-1: a device has a fault\n"
		"plugin   Pending (paused)   0/3    0/0       0        0s    \n",
		"");
	cli_world_run(w, "get", "dro/driver", "--no-headers", NULL);
	assert_said(w, 0, "driver   Halted   1/3   1/8   1   0s   gpu-1: a device has a fault\n",
		    "");
	put_rollout(w, "label", "", "'phase':'Failed'");
	cli_world_run(w, "get", "devicerollouts", "--failed", "-o", "name", NULL);
	assert_said(w, 0, "devicerollout.holdfast.dev/label\n", "");
}

static void one_rollout_is_described(void **state)
{
	struct cli_world *w = *state;

	put_rollout(w, "driver",
		    ",'proof':{'canary':{'slowerPercent':10,'template':{'apiVersion':'batch/v1',"
		    "'kind':'Job','metadata':{'namespace':'team-a'},'spec':{'template':{'spec':{}}}"
		    "}}}",
		    HALTED);
	cli_world_run(w, "describe", "rollout", "driver", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "Name:          driver\n"
			   "Change:        DaemonSet gpu/driver, revision 7f9, before 5c4\n"
			   "Waves:         1, 50%, 100%; 10m after each\n"
			   "At once:       1\n"
			   "Empty:         Save\n"
			   "Canary:        Job in namespace team-a, within 10m, at most 10 % "
			   "slower than before\n"
			   "On failure:    Halt, after 1 failed node(s)\n"
			   "Phase:         Halted\n"
			   "Message:       gpu-1: a device has a fault\n"
			   "Wave:          1\n"
			   "Nodes:         1 of 8 nodes changed, 1 failed, 2 skipped\n"
			   "Started:       2023-11-14T22:00:00Z\n"
			   "Changed:       1 node(s), 1.2 device-hours, 3 fault(s), 2 restart(s) "
			   "of jobs by devices\n"
			   "Unchanged:     7 node(s), 10.0 device-hours, 0 fault(s), 0 restart(s) "
			   "of jobs by devices\n"
			   "Steps:         ranks on 1 changed node(s) work 1.28 times as long in "
			   "each step as ranks of the same jobs on 4 other node(s)\n");
	assert_has(w->out, "\nNODE    PHASE    SINCE                  MESSAGE\n"
			   "gpu-1   Failed   2023-11-14T22:10:00Z   0000:1a:00.0 is Unhealthy\n");
	assert_has(w->out,
		   "Halted        True     NodeFailed   2023-11-14T22:10:00Z   1 node failed, "
		   "first gpu-1\n");
	cli_world_run(w, "describe", "devicerollout/driver", "-o", "json", NULL);
	assert_has(w->out, "\"kind\": \"DeviceRollout\"");
	cli_world_run(w, "describe", "rollout/nosuch", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
	/* The operator and `describe` name the same wrong field. */
	put_rollout(w, "wrong", ",'groupBy':'a b'", "");
	cli_world_run(w, "describe", "rollout/wrong", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "Wrong field:   spec.groupBy: ");
}

static void a_halt_is_explained(void **state)
{
	struct cli_world *w = *state;

	put_rollout(w, "driver", ",'paused':true", HALTED);
	cli_world_run(w, "why", "rollout/driver", NULL);
	assert_int_equal(w->code, 0);
	assert_true(hf_str_has_prefix(w->out,
				      "rollout driver is Halted: gpu-1: a device has a fault\n"));
	assert_has(w->out, "change    DaemonSet gpu/driver, revision 7f9, before 5c4\n");
	assert_has(w->out, "paused    spec.paused: the operator begins with no more nodes\n");
	assert_has(w->out, "condition Halted is True (NodeFailed): 1 node failed, first gpu-1\n");
	/* Its message is in the summary. */
	assert_null(strstr(w->out, "Progressing"));
	assert_null(strstr(w->out, "RolledBack"));
	assert_has(w->out, "node      gpu-1 is Failed: 0000:1a:00.0 is Unhealthy\n");
	assert_null(strstr(w->out, "gpu-2"));
	assert_has(w->out, "evidence  changed: 1 node(s), 1.2 device-hours, 3 fault(s), 2 "
			   "restart(s) of jobs by devices; not changed: 7 node(s)");
	assert_has(w->out, "evidence  ranks on 1 changed node(s) work 1.28 times as long in each "
			   "step as ranks of the same jobs on 4 other node(s)\n");
	assert_has(
		w->out,
		"next      no more nodes are changed, and changed nodes stay as they are; "
		"nodes without a proof stay cordoned until spec.cancel is true or the DeviceRollout "
		"is deleted\n");
	cli_world_run(w, "why", "dro/driver", "-o", "json", NULL);
	assert_has(w->out, "\"topic\": \"evidence\"");
	cli_world_run(w, "why", "rollout/nosuch", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
}

static void what_comes_next_is_told(void **state)
{
	struct cli_world *w = *state;

	put_rollout(w, "new", "", "");
	cli_world_run(w, "why", "rollout/new", NULL);
	assert_has(w->out, "rollout new is Pending\n");
	assert_has(w->out, "next      no operator has seen the rollout yet");
	put_rollout(w, "halts", "", "'phase':'Halted','message':'halted: 1 node failed'");
	cli_world_run(w, "why", "rollout/halts", NULL);
	assert_has(w->out, "rollout halts is halted: 1 node failed\n");
	put_rollout(w, "stops", ",'cancel':true", "'phase':'Rolling'");
	cli_world_run(w, "why", "rollout/stops", NULL);
	assert_has(w->out,
		   "cancel    spec.cancel: the operator puts cordons back and changes no more "
		   "nodes\n");
}

static void a_node_names_the_rollout_that_works_on_it(void **state)
{
	struct cli_world *w = *state;

	cli_world_put(
		w,
		"{'apiVersion':'v1','kind':'Node','metadata':{'name':'gpu-1',"
		"'annotations':{'holdfast.dev/rollout':'driver','holdfast.dev/"
		"rollout-change.0123456789abcdef':'{\\\"rollout\\\":\\\"driver\\\",\\\"uid\\\":\\\"u\\\","
		"\\\"time\\\":\\\"2023-11-14T22:09:00Z\\\"}'}},'spec':{'unschedulable':true},"
		"'status':{'conditions':[{'type':'Ready','status':'True'},{'type':"
		"'holdfast.dev/MaintenanceInProgress','status':'True','message':'rollout driver',"
		"'lastTransitionTime':'2023-11-14T22:08:00Z'},{'type':'x.y/DrainInProgress',"
		"'status':'False'}]}}");
	put_rollout(w, "driver", "",
		    "'phase':'Rolling','nodes':[{'name':'gpu-1','phase':'Emptying','since':"
		    "'2023-11-14T22:08:00Z','message':'2 pods hold devices'}]");
	put_rollout(w, "old", "",
		    "'phase':'Succeeded','nodes':[{'name':'gpu-1','phase':'Done','since':"
		    "'2023-11-13T22:08:00Z'}]");
	cli_world_run(w, "why", "node/gpu-1", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "cordon    the node is cordoned by DeviceRollout driver (annotation "
			   "holdfast.dev/rollout)\n");
	assert_has(w->out, "rollout   DeviceRollout driver, which is Rolling: gpu-1 is Emptying: 2 "
			   "pods hold devices\n");
	assert_has(w->out, "rollout   DeviceRollout driver changed the node\n");
	assert_has(w->out, "work      holdfast.dev/MaintenanceInProgress: rollout driver\n");
	assert_null(strstr(w->out, "DrainInProgress"));
	assert_null(strstr(w->out, "DeviceRollout old"));
}

static void names_of_rollouts_are_completed(void **state)
{
	struct cli_world *w = *state;

	put_rollout(w, "driver", "", "");
	cli_world_run(w, "__complete", "--", "why", "rollout/d", NULL);
	assert_said(w, 0, "rollout/driver\n", "");
	cli_world_run(w, "__complete", "--", "describe", "rollout/", NULL);
	assert_said(w, 0, "rollout/driver\n", "");
	cli_world_run(w, "__complete", "--", "get", "devicer", NULL);
	assert_said(w, 0, "devicerollouts\n", "");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, cli_world_setup, cli_world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(rollouts_are_listed),
		TEST(one_rollout_is_described),
		TEST(a_halt_is_explained),
		TEST(what_comes_next_is_told),
		TEST(a_node_names_the_rollout_that_works_on_it),
		TEST(names_of_rollouts_are_completed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
