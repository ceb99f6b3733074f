/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/container_reason.h"

#include "harness/test.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Reasons written by the kubelet 1.36 and its admission, containerd, CRI-O and the control plane.
 * The test fails if the table lacks one of them. */
static const char *const reasons[] = {
	"ContainerCreating",
	"PodInitializing",
	"CrashLoopBackOff",
	"ErrImagePull",
	"ImagePullBackOff",
	"ImageInspectError",
	"InvalidImageName",
	"ErrImageNeverPull",
	"RegistryUnavailable",
	"SignatureValidationFailed",
	"CreateContainerConfigError",
	"CreateContainerError",
	"PreCreateHookError",
	"PreStartHookError",
	"PostStartHookError",
	"RunContainerError",
	"RunInitContainerError",
	"VerifyNonRootError",
	"CreatePodSandboxError",
	"ConfigPodSandboxError",
	"KillPodSandboxError",
	"SetupNetworkError",
	"TeardownNetworkError",
	"KillContainerError",
	"RemoveContainerError",
	"ResizePodInPlaceError",
	"Completed",
	"Error",
	"OOMKilled",
	"StartError",
	"ContainerCannotRun",
	"ContainerStatusUnknown",
	"Unknown",
	"seccomp killed",
	"DeadlineExceeded",
	"Evicted",
	"Preempting",
	"Preempted",
	"Terminated",
	"Shutdown",
	"NodeShutdown",
	"UnexpectedAdmissionError",
	"OutOfcpu",
	"OutOfmemory",
	"OutOfephemeral-storage",
	"OutOfpods",
	"OutOfnvidia.com/gpu",
	"NodeAffinity",
	"NodeName",
	"NodePorts",
	"NodeUnschedulable",
	"TaintToleration",
	"node(s) had taints that the pod didn't tolerate",
	"TopologyAffinityError",
	"SMTAlignmentError",
	"EmptyPodSharedPoolError",
	"SysctlForbidden",
	"AppArmor",
	"PodLevelResourcesNotSupported",
	"PodFeatureUnsupported",
	"PodOSNotSupported",
	"PodOSSelectorNodeLabelDoesNotMatch",
	"InvalidNodeInfo",
	"InitContainerRestartPolicyForbidden",
	"SupplementalGroupsPolicyNotSupported",
	"VolumeAttachmentLimitExceeded",
	"UnexpectedPredicateFailureType",
	"UnknownReason",
	"PreemptionByScheduler",
	"DeletionByTaintManager",
	"DeletionByDeviceTaintManager",
	"EvictionByEvictionAPI",
	"DeletionByPodGC",
	"TerminationByKubelet",
	"TerminationByHoldfast",
};

static void each_reason_has_a_sentence(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(reasons); i++) {
		const struct hf_container_reason *row = hf_container_reason_find(reasons[i]);

		if (row == NULL || strlen(row->sentence) < 10)
			fail_msg("%s has no sentence", reasons[i]);
		if (row->sentence[strlen(row->sentence) - 1] == '.')
			fail_msg("%s: the sentence ends with a full stop", reasons[i]);
		assert_int_equal(row->actor == HF_ACTOR_NONE,
				 hf_str_is_empty(hf_container_reason_next(row)));
	}
}

static void other_words_have_none(void **state)
{
	static const char *const others[] = {"", "error", "OutO", "StartErrors", "Start"};

	assert_null(hf_container_reason_find(NULL));
	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++)
		assert_null(hf_container_reason_find(others[i]));
}

static void the_text_names_what_never_started_and_the_next_action(void **state)
{
	assert_true(hf_container_reason_find("StartError")->never_started);
	assert_true(hf_container_reason_find("OutOfnvidia.com/gpu")->never_started);
	assert_false(hf_container_reason_find("OOMKilled")->never_started);
	assert_false(hf_container_reason_find("CrashLoopBackOff")->never_started);
	assert_int_equal(hf_container_reason_find("InvalidImageName")->actor, HF_ACTOR_USER);
	assert_string_equal(hf_container_reason_next(hf_container_reason_find("InvalidImageName")),
			    "this does not pass by itself: the author of the job must correct it "
			    "in a new job");
	assert_string_equal(
		hf_container_reason_next(hf_container_reason_find("CreatePodSandboxError")),
		"the kubelet tries again; where it lasts, the administrator of the cluster must "
		"look at the node");
}

static void a_message_becomes_one_line_of_text(void **state)
{
	struct hf_arena *arena = hf_arena_create((size_t)1 << 20);

	assert_string_equal(hf_status_message_clean(arena, NULL), "");
	assert_string_equal(hf_status_message_clean(arena, ""), "");
	assert_string_equal(hf_status_message_clean(arena, "exec: \"x\": not found"),
			    "exec: \"x\": not found");
	assert_string_equal(hf_status_message_clean(arena, "a\nb\x1b[31mc\x7f\xc2\x9b"
							   "d\xc3\xa4"),
			    "a b [31mc   d\xc3\xa4");
	assert_string_equal(hf_status_message_clean(arena, "exit code 93\r\n"), "exit code 93");
	assert_string_equal(hf_status_message_clean(arena, " \n"), "");
	hf_arena_destroy(arena);
}

/* Errors of Go programs wrap each other, so the cause stands at the end of a message. */
static void of_a_long_message_the_beginning_and_the_end_stay(void **state)
{
	struct hf_arena *arena = hf_arena_create((size_t)1 << 20);
	char message[5000] = "failed to create containerd task: ";
	const char *text;

	for (size_t at = strlen(message); at + 3 < sizeof(message) - 40; at += 2)
		memcpy(message + at, "\xc3\xa4", 3);
	snprintf(message + strlen(message), 40, ": executable file not found in $PATH");
	text = hf_status_message_clean(arena, message);
	assert_true(strlen(text) <= HF_STATUS_MESSAGE_MAX);
	assert_true(strlen(text) > HF_STATUS_MESSAGE_MAX - 8);
	assert_true(hf_str_has_prefix(text, "failed to create containerd task: \xc3\xa4"));
	assert_non_null(strstr(text, "\xc3\xa4 … \xc3\xa4"));
	assert_non_null(strstr(text, ": executable file not found in $PATH"));
	/* Cleaning a cleaned text changes nothing: the ledger's text is read and written again and
	 * again. */
	assert_string_equal(hf_status_message_clean(arena, text), text);
	hf_arena_destroy(arena);
}

static void signals_have_names_and_senders(void **state)
{
	for (int64_t number = 1; number <= 31; number++) {
		assert_non_null(hf_signal_name(number));
		assert_false(hf_str_is_empty(hf_signal_sender(number)));
		assert_int_equal(hf_exit_code_signal(128 + number), number);
	}
	assert_string_equal(hf_signal_name(9), "SIGKILL");
	assert_non_null(strstr(hf_signal_sender(9), "OOM killer"));
	assert_string_equal(hf_signal_name(11), "SIGSEGV");
	assert_null(hf_signal_name(0));
	assert_null(hf_signal_name(32));
	assert_string_equal(hf_signal_sender(-1), "");
}

static void an_exit_code_that_the_kubelet_made_up_is_known(void **state)
{
	assert_true(hf_exit_code_is_lost("ContainerStatusUnknown"));
	assert_true(hf_exit_code_is_lost("Unknown"));
	assert_false(hf_exit_code_is_lost("Error"));
	assert_false(hf_exit_code_is_lost(NULL));
}

static void codes_that_stand_for_no_signal_have_none(void **state)
{
	static const int64_t codes[] = {0, 1, 127, 128, 160, 220, 226, 255, -1, INT64_MAX};

	for (size_t i = 0; i < HF_ARRAY_LEN(codes); i++)
		assert_int_equal(hf_exit_code_signal(codes[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_reason_has_a_sentence),
		cmocka_unit_test(other_words_have_none),
		cmocka_unit_test(the_text_names_what_never_started_and_the_next_action),
		cmocka_unit_test(a_message_becomes_one_line_of_text),
		cmocka_unit_test(of_a_long_message_the_beginning_and_the_end_stay),
		cmocka_unit_test(signals_have_names_and_senders),
		cmocka_unit_test(an_exit_code_that_the_kubelet_made_up_is_known),
		cmocka_unit_test(codes_that_stand_for_no_signal_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
