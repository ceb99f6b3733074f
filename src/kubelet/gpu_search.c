/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Looks for the GPUs of this machine, in a child process ("shim gpus"), because a stuck driver makes
 * NVML hang. Output: the child's list, or a reason. */
#include "kubelet/gpu_search.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/kubelet.h"
#include "kubelet/runtime/shim_internal.h"
#include "loop/pipe.h"
#include "loop/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_WITHIN (20 * HF_SECOND)
#define ANSWER_BYTES_MAX ((size_t)64 << 10)

struct hf_gpu_search {
	hf_gpu_search_fn found;
	void *arg;
	struct hf_process *child;
	struct hf_reader *reader;
	struct hf_timer *timer;
	struct hf_strbuf answer;
};

struct hf_gpu_search *hf_gpu_search_destroy(struct hf_gpu_search *s)
{
	if (!s)
		return NULL;
	s->reader = hf_reader_destroy(s->reader);
	s->timer = hf_timer_destroy(s->timer);
	s->child = hf_process_destroy(s->child);
	hf_strbuf_release(&s->answer);
	free(s);
	return NULL;
}

static void finish_search(struct hf_gpu_search *s, const struct hf_json *gpus, const char *why)
{
	s->reader = hf_reader_destroy(s->reader);
	hf_timer_disarm(s->timer);
	s->found(s->arg, gpus, why);
}

static void take_answer(struct hf_gpu_search *s)
{
	HF_AUTO_JSON json = NULL;

	if (hf_json_parse(s->answer.data, s->answer.len, NULL, &json, NULL) != 0)
		finish_search(s, NULL, "the search for GPUs failed");
	else
		finish_search(s, hf_json_get(json, "gpus"),
			      hf_json_str(hf_json_get(json, "why"), ""));
}

static void on_answer(void *arg, const char *bytes, size_t len, int read_error HF_UNUSED)
{
	struct hf_gpu_search *s = arg;

	hf_strbuf_add(&s->answer, bytes, len);
	if (len == 0 || memchr(bytes, '\n', len))
		take_answer(s);
}

static void on_late(void *arg)
{
	struct hf_gpu_search *s = arg;

	(void)hf_process_kill(s->child, SIGKILL, NULL);
	finish_search(s, NULL, "NVML did not answer within 20 s");
}

static void on_exit_of_child(void *arg HF_UNUSED, const struct hf_process_exit *ended HF_UNUSED)
{
	/* on_answer handles the end of the child's output. */
}

int hf_gpu_search_start(const struct hf_gpu_search_options *options,
			struct hf_gpu_search **ret_search, struct hf_error *err)
{
	struct hf_gpu_search *s = hf_xcalloc(1, sizeof(*s));
	const char *const argv[] = {options->exe, "shim", "gpus", options->sysfs, NULL};
	int out[2] = {-1, -1};
	struct hf_process_spec spec = {.argv = argv, .new_session = true, .die_with_parent = true};
	int rc = hf_pipe_make(out, err);

	s->found = options->found;
	s->arg = options->arg;
	hf_strbuf_init(&s->answer, ANSWER_BYTES_MAX);
	s->timer = hf_timer_create(options->loop, on_late, s);
	spec.stdio[0] = spec.stdio[2] = HF_PROCESS_STDIO_NULL;
	spec.stdio[1] = out[1];
	if (!rc)
		rc = hf_process_spawn(options->loop, &spec, on_exit_of_child, s, &s->child, err);
	hf_fd_cleanup(&out[1]);
	if (!rc)
		rc = hf_reader_create(options->loop, out[0], on_answer, s, &s->reader, err);
	if (rc) {
		hf_fd_cleanup(&out[0]);
		hf_gpu_search_destroy(s);
		return rc;
	}
	hf_timer_arm(s->timer, ANSWER_WITHIN);
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
