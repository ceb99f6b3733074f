/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/health_policy.h"

#include "base/mem.h"
#include "harness/test.h"

#include <string.h>

static struct hf_arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = hf_arena_create((size_t)1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = hf_arena_destroy(arena);
	return 0;
}

/* Parses JSON with ' in place of ". */
static struct hf_doc *doc_of(const char *text)
{
	HF_AUTOFREE char *copy = hf_xstrdup(text);

	for (char *c = copy; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	return hf_doc_from_text(copy, strlen(copy));
}

static void a_policy_without_spec_observes_with_the_defaults(void **state)
{
	HF_AUTO_DOC doc = doc_of("{'metadata':{'name':'p'}}");
	struct hf_health_policy_spec spec;
	struct hf_error err = {0};

	(void)state;
	assert_ok(hf_health_policy_read(doc, arena, &spec, &err), &err);
	assert_string_equal(spec.mode, "observe");
	assert_int_equal(spec.unavailable.percent, 10);
	assert_true(spec.unavailable.at_least_one);
	assert_int_equal(spec.quarantines.count, 5);
	assert_int_equal(spec.quarantine_window, HF_HOUR);
	assert_int_equal(spec.breaker.percent, 20);
	assert_int_equal(spec.breaker_window, 5 * HF_MINUTE);
	assert_int_equal(spec.job_max, 2);
	assert_int_equal(spec.stale_after, 15 * HF_MINUTE);
	assert_true(spec.drain_evicts);
	assert_int_equal(spec.late_pods, 0);
	assert_null(spec.domain_key);
	assert_false(spec.has_selector || spec.has_exclude || spec.has_pod_selector);
}

static int read_mend(const char *mend, struct hf_policy_mend *ret_mend, struct hf_error *err)
{
	HF_AUTOFREE char *text = hf_xasprintf("{'metadata':{'name':'p'},'spec':{%s}}", mend);
	HF_AUTO_DOC doc = doc_of(text);
	struct hf_health_policy_spec spec = {.mode = NULL};
	int rc = hf_health_policy_read(doc, arena, &spec, err);

	*ret_mend = spec.mend;
	return rc;
}

static void the_section_mend_is_read(void **state)
{
	struct hf_policy_mend m;
	struct hf_error err = {0};

	(void)state;
	assert_ok(read_mend("'mode':'remediate'", &m, &err), &err);
	assert_false(m.allowed);
	assert_ok(read_mend("'mend':{}", &m, &err), &err);
	assert_true(m.allowed && m.resets && m.reboots && !m.hold && !m.watchdog);
	assert_int_equal(m.at_once, 1);
	assert_int_equal(m.deadline, 1800);
	assert_int_equal(m.settle, 10 * HF_SECOND);
	assert_int_equal(m.windows_len, 0);
	assert_ok(read_mend("'mend':{'rungs':['reboot'],'hold':true,'watchdog':true,"
			    "'maxConcurrent':7,'deadlineSeconds':60,'settleSeconds':0,'windows':[{"
			    "'days':['Sunday','Saturday'],'start':'22:30','end':'06:00'},{'start':"
			    "'00:00','end':'23:59'}]}",
			    &m, &err),
		  &err);
	assert_true(!m.resets && m.reboots && m.hold && m.watchdog);
	assert_int_equal(m.at_once, 7);
	assert_int_equal(m.settle, 0);
	assert_int_equal(m.windows_len, 2);
	assert_int_equal(m.windows[0].days, 0x41);
	assert_int_equal(m.windows[0].from_minute, 22 * 60 + 30);
	assert_int_equal(m.windows[0].to_minute, 6 * 60);
	assert_int_equal(m.windows[1].days, 0x7f);
	assert_ok(read_mend("'mend':{'rungs':[]}", &m, &err), &err);
	assert_true(m.allowed && !m.resets && !m.reboots);
}

static void templates_and_commands_of_the_section_mend_are_read(void **state)
{
	struct hf_policy_mend m;
	struct hf_error err;

	(void)state;
	assert_ok(
		read_mend("'mend':{'rungs':['restart-plugin','external'],'external':{'template':{"
			  "'apiVersion':'fix.example/v1','kind':'FixTemplate','name':'t',"
			  "'namespace':'ns'}},'diagnostic':{'command':['dcgmi','diag','-r','1']}}",
			  &m, &err),
		&err);
	assert_true(m.plugins && m.externals && !m.resets && !m.reboots);
	assert_int_equal(m.words_len, 4);
	assert_int_equal(m.diagnostic_seconds, 300);
	assert_non_null(m.external.kind);
}

static void what_is_wrong_in_the_section_mend_is_named(void **state)
{
	static const char *const wrong[][2] = {
		{"'mend':{'rungs':['person']}", "spec.mend.rungs[0]"},
		{"'mend':{'rungs':['external']}", "spec.mend.external"},
		{"'mend':{'deadlineSeconds':60,'settleSeconds':60}", "spec.mend.deadlineSeconds"},
		{"'mend':{'deadlineSeconds':300,'settleSeconds':0,'diagnostic':{'command':['a']}}",
		 "spec.mend.deadlineSeconds"},
		{"'mend':{'external':{}}", "spec.mend.external: "},
		{"'mend':{'external':{'template':{'apiVersion':'a/v1','kind':'FixTemplate','name':'n'},"
		 "'webhook':{'url':'https://h'}}}",
		 "spec.mend.external: "},
		{"'mend':{'external':{'webhook':{}}}", "spec.mend.external.webhook.url"},
		{"'mend':{'external':{'webhook':{'url':'h/x'}}}", "spec.mend.external.webhook.url"},
		{"'mend':{'external':{'webhook':{'url':'ftp://h'}}}",
		 "spec.mend.external.webhook.url"},
		{"'mend':{'external':{'webhook':{'url':'https:///x'}}}",
		 "spec.mend.external.webhook.url"},
		{"'mend':{'external':{'webhook':{'url':'https://u:p@h/'}}}",
		 "spec.mend.external.webhook.url"},
		{"'mend':{'external':{'webhook':{'url':'https://h/a b'}}}",
		 "spec.mend.external.webhook.url"},
		{"'mend':{'external':{'webhook':{'url':'https://h','attempts':0}}}",
		 "spec.mend.external.webhook.attempts"},
		{"'mend':{'external':{'webhook':{'url':'https://h','timeoutSeconds':61}}}",
		 "spec.mend.external.webhook.timeoutSeconds"},
		{"'mend':{'external':{'template':{'apiVersion':'a/v1','kind':'Fix','name':'n'}}}",
		 "spec.mend.external.template.kind"},
		{"'mend':{'diagnostic':{}}", "spec.mend.diagnostic.command"},
		{"'mend':{'diagnostic':{'command':['']}}", "spec.mend.diagnostic.command[0]"},
		{"'mend':{'diagnostic':{'command':['a'],'timeoutSeconds':0}}",
		 "spec.mend.diagnostic.timeoutSeconds"},
		{"'mend':{'maxConcurrent':0}", "spec.mend.maxConcurrent"},
		{"'mend':{'deadlineSeconds':5}", "spec.mend.deadlineSeconds"},
		{"'mend':{'windows':[{'start':'24:00','end':'01:00'}]}",
		 "spec.mend.windows[0].start"},
		{"'mend':{'windows':[{'start':'1:00','end':'01:00'}]}",
		 "spec.mend.windows[0].start"},
		{"'mend':{'windows':[{'start':'01:00','end':'01:60'}]}",
		 "spec.mend.windows[0].end"},
		{"'mend':{'windows':[{'start':'01:00','end':'01:00'}]}",
		 "spec.mend.windows[0].end"},
		{"'mend':{'windows':[{'days':['Sun'],'start':'01:00','end':'02:00'}]}",
		 "spec.mend.windows[0].days[0]"},
		{"'mend':{'windows':[{'start':'01:00'}]}", "spec.mend.windows[0].end"},
		{"'mend':{'colour':1}", "spec.mend.colour"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(wrong); i++) {
		struct hf_policy_mend m;
		struct hf_error err = {0};

		assert_int_equal(read_mend(wrong[i][0], &m, &err), HF_E_INVALID);
		if (strstr(err.text, wrong[i][1]) == NULL)
			fail_msg("%s: %s", wrong[i][0], err.text);
	}
}

static void a_budget_without_a_number_has_the_default_one(void **state)
{
	HF_AUTO_DOC doc = doc_of("{'spec':{'budget':{'maxUnavailable':{'atLeastOne':false},"
				 "'maxQuarantines':{'windowSeconds':7200}}}}");
	HF_AUTO_DOC empty = doc_of("{'spec':{'budget':{'maxUnavailable':{},'maxQuarantines':{}}}}");
	struct hf_health_policy_spec spec;
	struct hf_error err = {0};

	(void)state;
	assert_ok(hf_health_policy_read(doc, arena, &spec, &err), &err);
	assert_int_equal(spec.unavailable.percent, 10);
	assert_false(spec.unavailable.at_least_one);
	assert_int_equal(spec.quarantines.count, 5);
	assert_int_equal(spec.quarantine_window, 2 * HF_HOUR);
	assert_ok(hf_health_policy_read(empty, arena, &spec, &err), &err);
	assert_int_equal(spec.unavailable.percent, 10);
	assert_true(spec.unavailable.at_least_one);
	assert_int_equal(spec.quarantines.count, 5);
}

static void every_field_is_read(void **state)
{
	HF_AUTO_DOC doc = doc_of(
		"{'spec':{'mode':'remediate','paused':true,'selector':{},'exclude':{'matchLabels':{"
		"'a':'b'}},'budget':{'maxUnavailable':{'count':3,'percent':20},'maxQuarantines':{"
		"'percent':7,'windowSeconds':120},'perDomain':{'topologyKey':'rack','max':2},"
		"'perJob':{'quarantines':0,'windowSeconds':90},'minSpares':4},'breaker':{'count':9,"
		"'windowSeconds':600,'epoch':2},'drain':{'mode':'complete','graceSeconds':5,"
		"'timeoutSeconds':60,'latePods':3,'podSelector':{}},'staleAfterSeconds':61,'unavailableTaints':["
		"'x/y']}}");
	struct hf_health_policy_spec s;
	struct hf_error err = {0};

	(void)state;
	assert_ok(hf_health_policy_read(doc, arena, &s, &err), &err);
	assert_string_equal(s.mode, "remediate");
	assert_true(s.paused && s.has_selector && s.has_exclude && s.has_pod_selector);
	assert_int_equal(s.unavailable.count, 3);
	assert_int_equal(s.unavailable.percent, 20);
	assert_int_equal(s.quarantines.percent, 7);
	/* A policy with a percentage alone also gets a limit as a number, because the status
	 * remembers few quarantines. */
	assert_int_equal(s.quarantines.count, 64);
	assert_int_equal(s.quarantine_window, 2 * HF_MINUTE);
	assert_string_equal(s.domain_key, "rack");
	assert_int_equal(s.domain_max, 2);
	assert_int_equal(s.job_max, 0);
	assert_int_equal(s.job_window, 90 * HF_SECOND);
	assert_int_equal(s.spares_min, 4);
	assert_int_equal(s.breaker.count, 9);
	assert_int_equal(s.breaker.percent, -1);
	assert_int_equal(s.breaker_epoch, 2);
	assert_false(s.drain_evicts);
	assert_int_equal(s.drain_grace, 5 * HF_SECOND);
	assert_int_equal(s.drain_timeout, HF_MINUTE);
	assert_int_equal(s.late_pods, 3);
	assert_int_equal(s.taints_len, 1);
	assert_string_equal(s.taints[0], "x/y");
}

static void what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *spec, *said;
	} cases[] = {
		{"{'mode':'enforce'}", "spec.mode: Unsupported value: \"enforce\""},
		{"{'mode':1}", "spec.mode: "},
		{"{'quarantine':'Gpu'}", "spec.quarantine: Unsupported value: \"Gpu\""},
		{"{'drain':{'mode':'now'}}", "spec.drain.mode: Unsupported value: \"now\""},
		{"{'drain':{'latePods':-1}}", "spec.drain.latePods: "},
		{"{'drain':{'latePods':1001}}", "spec.drain.latePods: "},
		{"{'drain':{'latePods':'3'}}", "spec.drain.latePods: "},
		{"{'colour':'red'}", "spec.colour: "},
		{"{'budget':{'maxUnavailable':{'percent':101}}}",
		 "spec.budget.maxUnavailable.percent: "},
		{"{'budget':{'maxUnavailable':{'percent':'10%'}}}",
		 "spec.budget.maxUnavailable.percent: "},
		{"{'budget':{'maxQuarantines':{'count':65}}}",
		 "spec.budget.maxQuarantines.count: "},
		{"{'budget':{'perDomain':{'max':1}}}", "spec.budget.perDomain.topologyKey: "},
		{"{'budget':{'perDomain':{'topologyKey':'bad key','max':1}}}",
		 "spec.budget.perDomain.topologyKey: Invalid value: \"bad key\": "},
		{"{'unavailableTaints':['team','x y']}",
		 "spec.unavailableTaints[1]: Invalid value: \"x y\": "},
		{"{'breaker':{'windowSeconds':59}}", "spec.breaker.windowSeconds: "},
		{"{'breaker':{'epoch':-1}}", "spec.breaker.epoch: "},
		{"{'ladder':[]}", "spec.ladder: "},
		{"[]", "spec: "},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = hf_xasprintf("{'spec':%s}", cases[i].spec);
		HF_AUTO_DOC doc = doc_of(text);
		struct hf_health_policy_spec spec;
		struct hf_error err = {0};

		assert_code(hf_health_policy_read(doc, arena, &spec, &err), HF_E_INVALID);
		if (strncmp(err.text, cases[i].said, strlen(cases[i].said)) != 0)
			fail_msg("%s: '%s'", cases[i].spec, err.text);
	}
}

static void what_is_kept_is_written_and_read_again(void **state)
{
	struct hf_policy_recent recent[] = {
		{.node = "a",
		 .job = "pytorchjobs/n/j",
		 .at = 5 * HF_SECOND,
		 .done = true,
		 .off = HF_TIME_NONE},
		{.node = "b", .job = "", .at = 6 * HF_SECOND, .off = 9 * HF_SECOND},
	};
	const struct hf_health_policy_status status = {
		.mode = "quarantine",
		.memory = {.breaker_open = true,
			   .breaker_epoch = 3,
			   .breaker_opened_at = 7 * HF_SECOND,
			   .breaker_closed_at = HF_TIME_NONE,
			   .recent = {recent, 2}},
		.unavailable_left = -1,
	};
	struct hf_health_policy_memory memory;
	struct hf_json *root = hf_json_object();

	(void)state;
	hf_json_set(root, "status", hf_health_policy_status_json(&status, NULL, HF_HOUR));
	HF_AUTO_DOC doc = hf_doc_from_json(root);

	hf_health_policy_read_memory(doc, arena, &memory);
	assert_true(memory.breaker_open);
	assert_int_equal(memory.breaker_epoch, 3);
	assert_int_equal(memory.breaker_opened_at, 7 * HF_SECOND);
	assert_int_equal(memory.breaker_closed_at, HF_TIME_NONE);
	assert_int_equal(memory.recent.len, 2);
	assert_string_equal(memory.recent.items[0].job, "pytorchjobs/n/j");
	assert_true(memory.recent.items[0].done);
	assert_false(memory.recent.items[1].done);
	assert_int_equal(memory.recent.items[1].at, 6 * HF_SECOND);
	assert_int_equal(memory.recent.items[0].off, HF_TIME_NONE);
	assert_int_equal(memory.recent.items[1].off, 9 * HF_SECOND);
}

static void a_breaker_that_cannot_be_read_is_open(void **state)
{
	HF_AUTO_DOC none = doc_of("{'status':{}}");
	HF_AUTO_DOC odd = doc_of("{'status':{'breaker':{'state':7}}}");
	struct hf_health_policy_memory memory;

	(void)state;
	hf_health_policy_read_memory(none, arena, &memory);
	assert_false(memory.breaker_open);
	hf_health_policy_read_memory(odd, arena, &memory);
	assert_true(memory.breaker_open);
}

static void the_time_of_a_condition_is_that_of_its_change(void **state)
{
	struct hf_health_policy_status status = {.mode = "observe"};
	HF_AUTO_JSON first = hf_health_policy_status_json(&status, NULL, HF_HOUR);
	HF_AUTO_JSON second = hf_health_policy_status_json(&status, first, 2 * HF_HOUR);

	(void)state;
	assert_true(hf_json_equal(first, second));
	status.problem = "spec.mode: no";
	HF_AUTO_JSON third = hf_health_policy_status_json(&status, second, 2 * HF_HOUR);
	const struct hf_json *c = hf_json_item(hf_json_get(third, "conditions"), 0);

	assert_string_equal(hf_json_path_str(c, "status", NULL), "False");
	assert_string_equal(hf_json_path_str(c, "message", NULL), "spec.mode: no");
	assert_string_equal(hf_json_path_str(c, "lastTransitionTime", NULL),
			    "1970-01-01T02:00:00Z");
}

#define NODE                                                                                       \
	"{'metadata':{'name':'n','resourceVersion':'9','labels':{'pool':'a'},'annotations':{"      \
	"'other':'x'}},'spec':{'unschedulable':true,'taints':[{'key':'t','effect':'NoSchedule',"   \
	"'timeAdded':'2026-01-01T00:00:00Z'},{'key':'holdfast.dev/device','value':'old',"          \
	"'effect':'NoSchedule'},{'key':'holdfast.dev/device','value':'theirs','effect':"           \
	"'NoExecute'}]},'status':{'nodeInfo':{'bootID':'b'},'conditions':[{'type':'Ready',"        \
	"'status':'True'}]}}"

static void every_value_but_false_pauses(void **state)
{
	(void)state;
	assert_false(hf_paused(NULL));
	assert_false(hf_paused("false"));
	assert_true(hf_paused("true"));
	assert_true(hf_paused("True"));
	assert_true(hf_paused(""));
}

/* A Node whose taints cannot be read gets no patch: a patch replaces the whole list, so it would
 * remove these taints. */
static void a_node_that_cannot_be_read_is_not_written(void **state)
{
	static const char text[] = "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"taints\":"
				   "[{\"key\":\"theirs\"}]},\"more\":1e999}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, sizeof(text) - 1);

	(void)state;
	assert_null(hf_node_quarantine_patch(doc, NULL, HF_SECOND));
}

static void marks_of_a_node_are_read(void **state)
{
	HF_AUTO_DOC doc = doc_of(NODE);
	HF_AUTO_DOC broken = doc_of("{'metadata':[],'spec':{'taints':{}}}");
	struct hf_node_marks marks;

	(void)state;
	hf_node_marks_read(doc, arena, &marks);
	assert_true(marks.ready && marks.unschedulable);
	assert_false(marks.paused);
	assert_string_equal(marks.boot_id, "b");
	assert_int_equal(marks.taints.len, 3);
	assert_int_equal(marks.labels.len, 1);
	assert_null(marks.quarantine);
	assert_true(hf_node_has_quarantine_taint(&marks));
	hf_node_marks_read(broken, arena, &marks);
	assert_int_equal(marks.taints.len, 0);
	assert_false(marks.ready);
}

static void our_taint_goes_on_and_off_and_all_else_stays(void **state)
{
	const struct hf_quarantine_mark mark = {.policy = "p",
						.cls = "gpu-reset",
						.at = 1234567 * HF_US,
						.epoch = 2,
						.off = HF_TIME_NONE};
	HF_AUTO_DOC node = doc_of(NODE);
	HF_AUTO_DOC on = hf_node_quarantine_patch(node, &mark, HF_HOUR);
	HF_AUTO_DOC off = hf_node_quarantine_patch(node, NULL, HF_HOUR);
	const struct hf_json *taints = hf_json_path(hf_doc_json(on), "spec", "taints", NULL);
	struct hf_quarantine_mark read;

	(void)state;
	assert_int_equal(hf_json_len(taints), 3);
	assert_string_equal(hf_json_path_str(hf_json_item(taints, 0), "timeAdded", NULL),
			    "2026-01-01T00:00:00Z");
	assert_string_equal(hf_json_path_str(hf_json_item(taints, 1), "value", NULL), "theirs");
	assert_string_equal(hf_json_path_str(hf_json_item(taints, 2), "value", NULL), "gpu-reset");
	assert_string_equal(hf_doc_resource_version(on), "9");
	assert_true(
		hf_quarantine_mark_read(hf_json_path_str(hf_doc_json(on), "metadata", "annotations",
							 HF_QUARANTINE_ANNOTATION, NULL),
					arena, &read));
	assert_string_equal(read.policy, "p");
	assert_int_equal(read.at, mark.at);
	assert_int_equal(read.epoch, 2);
	assert_int_equal(read.off, HF_TIME_NONE);
	taints = hf_json_path(hf_doc_json(off), "spec", "taints", NULL);
	assert_int_equal(hf_json_len(taints), 2);
	assert_int_equal(hf_json_type(hf_json_path(hf_doc_json(off), "metadata", "annotations",
						   HF_QUARANTINE_ANNOTATION, NULL)),
			 HF_JSON_NULL);
	/* A person has removed the taint. */
	read.off = 7654321 * HF_US;
	HF_AUTO_DOC noted = hf_node_mark_patch(node, &read);

	assert_null(hf_json_get(hf_doc_json(noted), "spec"));
	assert_string_equal(hf_doc_resource_version(noted), "9");
	assert_true(hf_quarantine_mark_read(hf_json_path_str(hf_doc_json(noted), "metadata",
							     "annotations",
							     HF_QUARANTINE_ANNOTATION, NULL),
					    arena, &read));
	assert_int_equal(read.at, mark.at);
	assert_int_equal(read.off, 7654321 * HF_US);
	assert_false(hf_quarantine_mark_read("by hand", arena, &read));
	assert_false(hf_quarantine_mark_read("{\"policy\":\"p\"}", arena, &read));
	assert_false(hf_quarantine_mark_read(NULL, arena, &read));
}

/* A mark of single devices puts no taint on the Node, and removes an earlier one. */
static void a_mark_of_devices_comes_without_a_taint(void **state)
{
	const struct hf_quarantine_mark mark = {.policy = "p",
						.cls = "gpu-reset",
						.at = 1234567 * HF_US,
						.devices = true,
						.off = HF_TIME_NONE};
	HF_AUTO_DOC node = doc_of(NODE);
	HF_AUTO_DOC on = hf_node_quarantine_patch(node, &mark, HF_HOUR);
	struct hf_quarantine_mark read;

	(void)state;
	assert_int_equal(hf_json_len(hf_json_path(hf_doc_json(on), "spec", "taints", NULL)), 2);
	assert_true(
		hf_quarantine_mark_read(hf_json_path_str(hf_doc_json(on), "metadata", "annotations",
							 HF_QUARANTINE_ANNOTATION, NULL),
					arena, &read));
	assert_true(read.devices);
	assert_true(hf_quarantine_mark_read("{\"policy\":\"p\",\"time\":\"2026-01-01T00:00:00Z\"}",
					    arena, &read));
	assert_false(read.devices);
}

/* An operator of an earlier version writes no count, and a mark without one is short. */
static void a_mark_counts_pods_that_came_later(void **state)
{
	struct hf_quarantine_mark mark = {.policy = "p",
					  .cls = "gpu-reset",
					  .at = HF_HOUR,
					  .devices = true,
					  .off = HF_TIME_NONE};
	HF_AUTO_DOC node = doc_of(NODE);
	struct hf_quarantine_mark read;

	(void)state;
	for (int i = 0; i < 2; i++) {
		mark.late = 2 * i;
		mark.late_pod = i == 0 ? NULL : "7d1f";
		HF_AUTO_DOC patch = hf_node_mark_patch(node, &mark);
		const char *text = hf_json_path_str(hf_doc_json(patch), "metadata", "annotations",
						    HF_QUARANTINE_ANNOTATION, NULL);

		assert_int_equal(strstr(text, "late") != NULL, i);
		assert_true(hf_quarantine_mark_read(text, arena, &read));
		assert_int_equal(read.late, 2 * i);
		if (i == 0)
			assert_null(read.late_pod);
		else
			assert_string_equal(read.late_pod, "7d1f");
	}
	assert_false(hf_quarantine_mark_read(
		"{\"policy\":\"p\",\"time\":\"2026-01-01T00:00:00Z\",\"late\":-1}", arena, &read));
}

static void what_is_quarantined_is_read(void **state)
{
	struct hf_health_policy_spec spec;
	struct hf_error err = {0};
	HF_AUTO_DOC none = doc_of("{'metadata':{'name':'p'},'spec':{}}");
	HF_AUTO_DOC device = doc_of("{'metadata':{'name':'p'},'spec':{'quarantine':'Device'}}");

	(void)state;
	assert_ok(hf_health_policy_read(none, arena, &spec, &err), &err);
	assert_false(spec.quarantine_devices);
	assert_ok(hf_health_policy_read(device, arena, &spec, &err), &err);
	assert_true(spec.quarantine_devices);
}

static void an_eviction_names_the_pod_by_uid(void **state)
{
	HF_AUTO_DOC doc = hf_eviction("n", "p", "u");

	(void)state;
	assert_string_equal(
		hf_json_path_str(hf_doc_json(doc), "deleteOptions", "preconditions", "uid", NULL),
		"u");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_policy_without_spec_observes_with_the_defaults),
		TEST(the_section_mend_is_read),
		TEST(templates_and_commands_of_the_section_mend_are_read),
		TEST(what_is_wrong_in_the_section_mend_is_named),
		TEST(a_budget_without_a_number_has_the_default_one),
		TEST(every_field_is_read),
		TEST(what_is_wrong_is_named),
		TEST(what_is_kept_is_written_and_read_again),
		TEST(a_breaker_that_cannot_be_read_is_open),
		TEST(the_time_of_a_condition_is_that_of_its_change),
		TEST(every_value_but_false_pauses),
		TEST(a_node_that_cannot_be_read_is_not_written),
		TEST(marks_of_a_node_are_read),
		TEST(our_taint_goes_on_and_off_and_all_else_stays),
		TEST(a_mark_of_devices_comes_without_a_taint),
		TEST(a_mark_counts_pods_that_came_later),
		TEST(what_is_quarantined_is_read),
		TEST(an_eviction_names_the_pod_by_uid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
