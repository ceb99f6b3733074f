/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Looks for the GPUs of this machine, in a child process ("shim gpus"), because a stuck driver makes
 * NVML hang. Output: the child's list, or a reason. */
#include "kubelet/gpu_search.h"

#include "base/mem.h"
#include "base/str.h"
#include "kubelet/kubelet.h"
#include "kubelet/question.h"
#include "kubelet/runtime/shim_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_WITHIN (20 * HF_SECOND)

struct hf_gpu_search {
	hf_gpu_search_fn found;
	void *arg;
	struct hf_question *question;
};

struct hf_gpu_search *hf_gpu_search_destroy(struct hf_gpu_search *s)
{
	if (!s)
		return NULL;
	s->question = hf_question_destroy(s->question);
	free(s);
	return NULL;
}

static void on_answer(void *arg, const struct hf_json *answer, bool late)
{
	const struct hf_gpu_search *s = arg;

	if (answer)
		s->found(s->arg, hf_json_get(answer, "gpus"),
			 hf_json_str(hf_json_get(answer, "why"), ""));
	else
		s->found(s->arg, NULL,
			 late ? "NVML did not answer within 20 s" : "the search for GPUs failed");
}

int hf_gpu_search_start(const struct hf_gpu_search_options *options,
			struct hf_gpu_search **ret_search, struct hf_error *err)
{
	struct hf_gpu_search *s = hf_xcalloc(1, sizeof(*s));
	const char *const argv[] = {options->exe, "shim", "gpus", options->sysfs, NULL};
	const struct hf_question_options question = {.loop = options->loop,
						     .argv = argv,
						     .input = HF_PROCESS_STDIO_NULL,
						     .die_with_parent = true,
						     .within = ANSWER_WITHIN,
						     .fn = on_answer,
						     .arg = s};
	int rc = hf_question_ask(&question, &s->question, err);

	s->found = options->found;
	s->arg = options->arg;
	if (rc) {
		hf_gpu_search_destroy(s);
		return rc;
	}
	*ret_search = s;
	return 0;
}

/* --- the option `gpus` --- */

int hf_gpu_option_check(const char *option, struct hf_error *err)
{
	HF_AUTOFREE char *copy = hf_xstrdup(hf_str_or(option, "all"));
	char *rest = copy, *word;
	int64_t index;

	if (hf_streq(copy, "all") || hf_streq(copy, "none"))
		return 0;
	while ((word = strsep(&rest, ",")))
		if (hf_str_to_i64(word, 0, HF_GPUS_MAX - 1, &index, NULL) != 0)
			return hf_error_set(err, HF_E_INVALID,
					    "GPUs are 'all', 'none' or a list of numbers such as "
					    "0,1, not '%s'",
					    option);
	return 0;
}

bool hf_gpu_option_allows(const char *option, size_t place)
{
	HF_AUTOFREE char *copy = hf_xstrdup(hf_str_or(option, "all"));
	char *rest = copy, *word;
	int64_t index;

	if (hf_streq(copy, "all"))
		return true;
	while ((word = strsep(&rest, ",")))
		if (hf_str_to_i64(word, 0, HF_GPUS_MAX - 1, &index, NULL) == 0 &&
		    (size_t)index == place)
			return true;
	return false;
}

/* --- counting --- */

struct count {
	struct hf_loop *loop;
	const char *option;
	struct hf_kubelet_gpu_counts *counts;
};

static void count_gpus(void *arg, const struct hf_json *gpus, const char *why)
{
	const struct count *count = arg;

	(void)snprintf(count->counts->why, sizeof(count->counts->why), "%s", why);
	for (size_t i = 0; i < hf_json_len(gpus) && i < HF_GPUS_MAX; i++) {
		const char *resource = hf_json_path_str(hf_json_item(gpus, i), "resource", NULL);

		if (!hf_gpu_option_allows(count->option, i))
			continue;
		count->counts->nvidia += hf_streq(resource, HF_SHIM_NVIDIA);
		count->counts->amd += hf_streq(resource, HF_SHIM_AMD);
	}
	hf_loop_stop(count->loop);
}

int hf_kubelet_count_gpus(const char *option, const char *exe,
			  struct hf_kubelet_gpu_counts *ret_counts, struct hf_error *err)
{
	struct count count = {.option = option, .counts = ret_counts};
	struct hf_gpu_search_options search_options = {.exe = exe ? exe : "/proc/self/exe",
						       .sysfs = "/sys",
						       .found = count_gpus,
						       .arg = &count};
	struct hf_gpu_search *search = NULL;
	int rc;

	*ret_counts = (struct hf_kubelet_gpu_counts){0};
	rc = hf_gpu_option_check(option, err);
	if (rc || hf_streq(option, "none"))
		return rc;
	rc = hf_loop_create(&count.loop, err);
	if (rc)
		return rc;
	search_options.loop = count.loop;
	rc = hf_gpu_search_start(&search_options, &search, err);
	if (!rc)
		hf_loop_run(count.loop);
	hf_gpu_search_destroy(search);
	hf_loop_destroy(count.loop);
	return rc;
}
