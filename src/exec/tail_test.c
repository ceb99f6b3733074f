/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/tail.h"

#include <stdio.h>
#include <string.h>

#define ECC "CUDA error: uncorrectable ECC error encountered"

static struct hf_tail tail;

static int reset(void **state)
{
	memset(&tail, 0, sizeof(tail));
	return 0;
}

static void add(const char *text)
{
	hf_tail_add(&tail, text, strlen(text), 100);
}

static void assert_tail(size_t size, const char *expected)
{
	char text[HF_TAIL_BYTES_MAX + 1];
	size_t len = hf_tail_text(&tail, text, size);

	text[len] = '\0';
	assert_string_equal(text, expected);
}

static void short_streams_are_kept_whole(void **state)
{
	assert_tail(100, "");
	add("one\ntw");
	add("o\n");
	assert_tail(100, "one\ntwo\n");
}

static void what_is_cut_begins_with_a_line(void **state)
{
	add("first line\nsecond line\nthird\n");
	assert_tail(17, "third\n");
	assert_tail(5, "hird\n");
}

static void one_long_line_is_cut_between_characters(void **state)
{
	add("aaaa\xc3\xa4\xc3\xa4");
	assert_tail(3, "\xc3\xa4");
	assert_tail(4, "\xc3\xa4\xc3\xa4");
}

static void the_ring_holds_the_last_bytes_of_many(void **state)
{
	char text[HF_TAIL_BYTES_MAX];
	char line[32];
	size_t len;

	for (int i = 0; i < 5000; i++) {
		snprintf(line, sizeof(line), "line %d\n", i);
		add(line);
	}
	len = hf_tail_text(&tail, text, sizeof(text));
	assert_true(len > sizeof(text) - 32 && len <= sizeof(text));
	assert_memory_equal(text, "line ", 5);
	assert_memory_equal(text + len - 10, "line 4999\n", 10);
}

static void more_than_the_ring_at_once_is_as_well(void **state)
{
	char many[3 * HF_TAIL_BYTES_MAX], text[HF_TAIL_BYTES_MAX];

	memset(many, 'x', sizeof(many));
	memcpy(many + sizeof(many) - 4, "end\n", 4);
	hf_tail_add(&tail, many, sizeof(many), 100);
	assert_int_equal(hf_tail_text(&tail, text, sizeof(text)), sizeof(text));
	assert_memory_equal(text + sizeof(text) - 4, "end\n", 4);
}

static void a_cause_is_found_in_whatever_pieces_it_comes(void **state)
{
	const char *text = "Traceback\n" ECC "\nmore\n";

	for (const char *c = text; *c != '\0'; c++)
		hf_tail_add(&tail, c, 1, 100);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_string_equal(hf_tail_cause_line(&tail, 100), ECC);
}

static void a_line_without_an_end_counts_when_the_stream_has_one(void **state)
{
	add(ECC);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_NONE);
	hf_tail_end(&tail, 100);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

static void a_cause_of_long_ago_is_another_story(void **state)
{
	add(ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_int_equal(hf_tail_cause(&tail, 101), HF_EXEC_CAUSE_NONE);
}

static void a_line_without_end_takes_no_memory(void **state)
{
	for (int i = 0; i < 100000; i++)
		add("0123456789");
	add(ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_NONE);
	add(ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

static void what_it_gives_is_text(void **state)
{
	hf_tail_add(&tail, "a\0b\x1b[31m\xff\n", 10, 100);
	add(" 1%\r50%\r99%\n");
	assert_tail(100, "ab?\n99%\n");
}

static void a_cause_is_found_behind_a_progress_bar_and_in_colours(void **state)
{
	for (int i = 0; i < 1000; i++)
		add("\r 12%|####          | 12/100 [00:12<02:13]");
	add("\r" ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_int_equal(reset(NULL), 0);
	add("\x1b[31m" ECC "\x1b[0m\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_string_equal(hf_tail_cause_line(&tail, 100), ECC);
}

static void what_another_rank_raised_is_no_cause_here(void **state)
{
	static const char *const texts[] = {
		"10.0.0.7: RuntimeError: " ECC "\n",
		("Traceback (most recent call last):\n"
		 "  File \"ray.py\", line 3, in <module>\n"
		 "ray.exceptions.RayTaskError(RuntimeError): ray::Trainer.train() (pid=4242, "
		 "ip=10.0.0.2, actor_id=7f)\n"
		 "  File \"train.py\", line 9, in train\n"
		 "RuntimeError: " ECC "\n"
		 "\n"
		 "The above exception was the direct cause of the following exception:\n"
		 "\n"
		 "Traceback (most recent call last):\n"
		 "  File \"ray.py\", line 5, in <module>\n"
		 "    raise error.cause\n"
		 "RuntimeError: " ECC "\n"),
		("[rank3]: Traceback (most recent call last):\n"
		 "[rank3]: torch.distributed.checkpoint.api.CheckpointException: "
		 "CheckpointException ranks:dict_keys([5])\n"
		 "[rank3]: Traceback (most recent call last): (RANK 5)\n"
		 /* Of several ranks, mixed. */
		 "[rank2]: Traceback (most recent call last):\n"
		 "[rank3]: RuntimeError: " ECC "\n"),
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		assert_int_equal(reset(NULL), 0);
		add(texts[i]);
		assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_NONE);
	}
}

static void what_failed_here_first_is_the_cause_whatever_others_say(void **state)
{
	add("RuntimeError: " ECC "\n"
	    "\n"
	    "During handling of the above exception, another exception occurred:\n"
	    "\n"
	    "CheckpointException ranks:dict_keys([5])\n"
	    "Traceback (most recent call last): (RANK 5)\n"
	    "RuntimeError: CUDA error: uncorrectable NVLink error detected\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

static void what_a_runtime_prints_of_itself_counts_behind_others_words(void **state)
{
	add("Traceback (most recent call last): (RANK 5)\n"
	    "RuntimeError: " ECC "\n"
	    "terminate called after throwing an instance of 'c10::AcceleratorError'\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_NONE);
	add("  what():  " ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

static void others_words_have_an_end(void **state)
{
	const char *own = "RuntimeError: " ECC "\n";

	add("Traceback (most recent call last): (RANK 5)\n");
	hf_tail_add(&tail, own, strlen(own), 100 + HF_TAIL_OTHERS_SECONDS - 1);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_NONE);
	hf_tail_add(&tail, own, strlen(own), 100 + HF_TAIL_OTHERS_SECONDS);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

/* The summary of failed ranks that torchrun prints is of ranks below this exec. */
static void a_summary_of_the_ranks_below_names_their_cause(void **state)
{
	add("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
	    "============================================================\n"
	    "train.py FAILED\n"
	    "Root Cause (first observed failure):\n"
	    "[0]:\n"
	    "  time      : 2026-11-24_09:26:01\n"
	    "  host      : worker-1\n"
	    "  rank      : 5 (local_rank: 1)\n"
	    "  exitcode  : 1 (pid: 71)\n"
	    "  traceback : Traceback (most recent call last):\n"
	    "    File \"train.py\", line 9, in train\n"
	    "  RuntimeError: " ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

static void assert_gravest(const char *text, enum hf_exec_cause cause, const char *line)
{
	assert_int_equal(reset(NULL), 0);
	add(text);
	assert_int_equal(hf_tail_cause(&tail, 100), cause);
	assert_string_equal(hf_tail_cause_line(&tail, 100), line);
}

/* One rank's device is broken, and its peers print milder errors before and after that rank's error. */
static void the_gravest_of_several_causes_counts(void **state)
{
	const char *const busy = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or "
				 "unavailable\n";
	const char *const link = "CUDA error: uncorrectable NVLink error detected during the "
				 "execution\n";
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "[rank3]: " ECC "\n[rank1]: %s%s", busy, link);
	assert_gravest(text, HF_EXEC_CAUSE_DEVICE_FATAL, "[rank3]: " ECC);
	snprintf(text, sizeof(text), "%s%s" ECC "\n", busy, link);
	assert_gravest(text, HF_EXEC_CAUSE_DEVICE_FATAL, ECC);
	snprintf(text, sizeof(text), "CUDA error: system not yet initialized\n%s%s", link, busy);
	assert_gravest(text, HF_EXEC_CAUSE_FABRIC,
		       "CUDA error: uncorrectable NVLink error detected during the execution");
}

static void a_grave_cause_of_long_ago_hides_no_later_one(void **state)
{
	const char *const busy = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or "
				 "unavailable\n";

	(void)state;
	add(ECC "\n");
	hf_tail_add(&tail, busy, strlen(busy), 200);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_int_equal(hf_tail_cause(&tail, 140), HF_EXEC_CAUSE_DEVICE_TRANSIENT);
	assert_true(strncmp(hf_tail_cause_line(&tail, 140), busy, 20) == 0);
	assert_int_equal(hf_tail_cause(&tail, 201), HF_EXEC_CAUSE_NONE);
	assert_string_equal(hf_tail_cause_line(&tail, 201), "");
}

static void an_error_may_have_two_lines(void **state)
{
	(void)state;
	add("CUDA Runtime Error at: /src/a.cu:12\n"
	    "uncorrectable ECC error encountered cudaDeviceSynchronize()\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_int_equal(reset(NULL), 0);
	add("cudaGetDeviceCount returned 802\n-> system not yet initialized\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DRIVER);
}

static void without_its_first_line_the_second_is_none(void **state)
{
	static const char *const texts[] = {
		"uncorrectable ECC error encountered cudaDeviceSynchronize()\n",
		"CUDA Runtime Error at: /src/a.cu:12\nx\nuncorrectable ECC error encountered\n",
		"CUDA Runtime Error at: /src/a.cu\nuncorrectable ECC error encountered\n",
		"cudaGetDeviceCount returned 802\nthe log has: system not yet initialized\n",
		"current returned 802\n-> system not yet initialized\n",
		"node7: cudaGetDeviceCount returned 802\n-> system not yet initialized\n",
		"WARNING CUDA Runtime Error at: a.cu:12\nuncorrectable ECC error encountered\n",
		"CUDA Runtime Error at: /src/a.cu:12\nuncorrectable ECC error encountered by all\n",
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		assert_int_equal(reset(NULL), 0);
		add(texts[i]);
		if (hf_tail_cause(&tail, 100) != HF_EXEC_CAUSE_NONE)
			fail_msg("%s", texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(short_streams_are_kept_whole, reset),
		cmocka_unit_test_setup(what_is_cut_begins_with_a_line, reset),
		cmocka_unit_test_setup(one_long_line_is_cut_between_characters, reset),
		cmocka_unit_test_setup(the_ring_holds_the_last_bytes_of_many, reset),
		cmocka_unit_test_setup(more_than_the_ring_at_once_is_as_well, reset),
		cmocka_unit_test_setup(a_cause_is_found_in_whatever_pieces_it_comes, reset),
		cmocka_unit_test_setup(a_line_without_an_end_counts_when_the_stream_has_one, reset),
		cmocka_unit_test_setup(a_cause_of_long_ago_is_another_story, reset),
		cmocka_unit_test_setup(a_line_without_end_takes_no_memory, reset),
		cmocka_unit_test_setup(what_it_gives_is_text, reset),
		cmocka_unit_test_setup(a_cause_is_found_behind_a_progress_bar_and_in_colours,
				       reset),
		cmocka_unit_test_setup(what_another_rank_raised_is_no_cause_here, reset),
		cmocka_unit_test_setup(what_failed_here_first_is_the_cause_whatever_others_say,
				       reset),
		cmocka_unit_test_setup(what_a_runtime_prints_of_itself_counts_behind_others_words,
				       reset),
		cmocka_unit_test_setup(others_words_have_an_end, reset),
		cmocka_unit_test_setup(a_summary_of_the_ranks_below_names_their_cause, reset),
		cmocka_unit_test_setup(the_gravest_of_several_causes_counts, reset),
		cmocka_unit_test_setup(a_grave_cause_of_long_ago_hides_no_later_one, reset),
		cmocka_unit_test_setup(an_error_may_have_two_lines, reset),
		cmocka_unit_test_setup(without_its_first_line_the_second_is_none, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
