/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/container_reason.h"
#include "core/model/model_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* ---- reasons ----------------------------------------------------------------------------------- */

/*
 * Sources: the kubelet of Kubernetes 1.36 (container/sync_result.go, images/types.go, kuberuntime,
 * lifecycle/predicate.go,
 * eviction, nodeshutdown, sysctl, cm), its API server and controllers (reasons of
 * DisruptionTarget), containerd's CRI
 * plugin and CRI-O (reasons of a terminated container), and older kubelets (the rows say so).
 */
#define NONE HF_ACTOR_NONE
#define USER HF_ACTOR_USER
#define ADMIN HF_ACTOR_ADMIN
#define MENDS true
#define STAYS false
#define NOT_STARTED true
#define STARTED false

static const struct hf_container_reason rows[] = {
	/* a container waits: state.waiting */
	{"ContainerCreating", "the kubelet prepares the image, the volumes and the network", NONE,
	 MENDS, NOT_STARTED},
	{"PodInitializing", "the init containers of the pod run first", NONE, MENDS, NOT_STARTED},
	{"CrashLoopBackOff", "the program ended, and the kubelet waits before it starts it again",
	 USER, MENDS, STARTED},
	{"ErrImagePull", "the image could not be pulled", USER, MENDS, NOT_STARTED},
	{"ImagePullBackOff",
	 "the image could not be pulled, and the kubelet waits before it tries again", USER, MENDS,
	 NOT_STARTED},
	{"ImageInspectError", "the container runtime could not read the image", ADMIN, MENDS,
	 NOT_STARTED},
	{"InvalidImageName", "the name of the image is not valid", USER, STAYS, NOT_STARTED},
	{"ErrImageNeverPull",
	 "the image is not on the node, and imagePullPolicy Never forbids a pull", USER, MENDS,
	 NOT_STARTED},
	{"RegistryUnavailable", "the registry of the image does not answer", ADMIN, MENDS,
	 NOT_STARTED},
	{"SignatureValidationFailed", "the signature of the image is not accepted", USER, MENDS,
	 NOT_STARTED},
	{"CreateContainerConfigError",
	 "a ConfigMap, a Secret or a key that the container names is missing, its user is root, or "
	 "the node does not support a field of it",
	 USER, MENDS, NOT_STARTED},
	{"CreateContainerError", "the container runtime could not create the container", USER,
	 MENDS, NOT_STARTED},
	{"PreCreateHookError", "the kubelet failed before it created the container", ADMIN, MENDS,
	 NOT_STARTED},
	{"PreStartHookError", "the kubelet failed before it started the container", ADMIN, MENDS,
	 NOT_STARTED},
	{"PostStartHookError", "the postStart hook of the container failed", USER, MENDS, STARTED},
	{"RunContainerError", "the container runtime could not start the program", USER, MENDS,
	 NOT_STARTED},
	{"RunInitContainerError", "an init container could not be started (older kubelets)", USER,
	 MENDS, NOT_STARTED},
	{"VerifyNonRootError", "the container must not run as root, and its image does", USER,
	 STAYS, NOT_STARTED},
	{"CreatePodSandboxError", "the container runtime could not create the pod's sandbox", ADMIN,
	 MENDS, NOT_STARTED},
	{"ConfigPodSandboxError", "the kubelet could not make the settings of the pod's sandbox",
	 USER, MENDS, NOT_STARTED},
	{"KillPodSandboxError", "the container runtime could not stop the pod's sandbox", ADMIN,
	 MENDS, NOT_STARTED},
	{"SetupNetworkError", "the network of the pod could not be set up (older kubelets)", ADMIN,
	 MENDS, NOT_STARTED},
	{"TeardownNetworkError", "the network of the pod could not be removed (older kubelets)",
	 ADMIN, MENDS, NOT_STARTED},
	{"KillContainerError", "the container runtime could not stop the container", ADMIN, MENDS,
	 STARTED},
	{"RemoveContainerError", "the container runtime could not remove the container", ADMIN,
	 MENDS, STARTED},
	{"ResizePodInPlaceError", "the kubelet could not resize the pod in place", ADMIN, MENDS,
	 STARTED},

	/* reasons of a container that has ended: state.terminated and lastState.terminated */
	{"Completed", "the program ended with code 0", NONE, STAYS, STARTED},
	{"Error", "the program ended with an error", USER, STAYS, STARTED},
	{"OOMKilled", "the container was killed because it exceeded its memory limit", USER, STAYS,
	 STARTED},
	{"StartError",
	 "the container runtime could not start the program: the command does not exist, or it may "
	 "not be run",
	 USER, STAYS, NOT_STARTED},
	{"ContainerCannotRun", "the container runtime could not start the program (Docker)", USER,
	 STAYS, NOT_STARTED},
	{"ContainerStatusUnknown",
	 "the kubelet found no trace of the container, and its exit code is lost", ADMIN, MENDS,
	 STARTED},
	{"Unknown", "the container runtime lost the exit code of the container", ADMIN, MENDS,
	 STARTED},
	{"seccomp killed", "a system call that seccomp forbids ended the program (CRI-O)", USER,
	 STAYS, STARTED},

	/* a reason that Holdfast itself writes into a record of the ledger */
	{"InitContainerFailed", "an init container failed, and the program never began", USER,
	 STAYS, NOT_STARTED},

	/* a pod has ended: status.reason */
	{"DeadlineExceeded", "the pod ran longer than its activeDeadlineSeconds", USER, STAYS,
	 STARTED},
	{"Evicted",
	 "the kubelet evicted the pod: a resource of the node ran short, or the pod "
	 "exceeded a limit",
	 USER, MENDS, STARTED},
	{"Preempting", "the kubelet ended the pod to make room for a critical pod", NONE, MENDS,
	 STARTED},
	{"Preempted", "the kubelet ended the pod to make room for a critical pod", NONE, MENDS,
	 STARTED},
	{"Terminated", "the node was shut down", NONE, MENDS, STARTED},
	{"Shutdown", "the node was shut down (older kubelets)", NONE, MENDS, STARTED},

	/* the kubelet refuses a pod: status.reason */
	{"NodeShutdown", "the node is being shut down and takes no pod", NONE, MENDS, NOT_STARTED},
	{"UnexpectedAdmissionError",
	 "the node refused the pod: a device or another resource could not be allocated", ADMIN,
	 MENDS, NOT_STARTED},
	{"OutOf*", "the node refused the pod: it has not enough of a resource", NONE, MENDS,
	 NOT_STARTED},
	{"NodeAffinity", "the node refused the pod: its labels do not match the pod's affinity",
	 USER, MENDS, NOT_STARTED},
	{"NodeName", "the node refused the pod: the pod names another node", USER, MENDS,
	 NOT_STARTED},
	{"NodePorts", "the node refused the pod: a host port is taken", USER, MENDS, NOT_STARTED},
	{"NodeUnschedulable", "the node refused the pod: it is cordoned", NONE, MENDS, NOT_STARTED},
	{"TaintToleration", "the node refused the pod: the pod does not tolerate its taint", USER,
	 MENDS, NOT_STARTED},
	{"node(s) had taints that the pod didn't tolerate",
	 "the node refused the pod: the pod does not tolerate its taint", USER, MENDS, NOT_STARTED},
	{"TopologyAffinityError", "the node refused the pod: its resources do not fit one topology",
	 ADMIN, MENDS, NOT_STARTED},
	{"SMTAlignmentError",
	 "the node refused the pod: its CPUs do not fill whole cores, which the node demands", USER,
	 STAYS, NOT_STARTED},
	{"EmptyPodSharedPoolError",
	 "the node refused the pod: the containers would leave no CPU for the pod's shared pool",
	 USER, STAYS, NOT_STARTED},
	{"SysctlForbidden", "the node refused the pod: it does not allow a sysctl of the pod", USER,
	 STAYS, NOT_STARTED},
	{"AppArmor", "the node refused the pod: an AppArmor profile cannot be applied", USER, STAYS,
	 NOT_STARTED},
	{"PodLevelResourcesNotSupported",
	 "the node refused the pod: it does not know resources of pods", ADMIN, STAYS, NOT_STARTED},
	{"PodFeatureUnsupported", "the node refused the pod: it lacks a feature that the pod needs",
	 ADMIN, STAYS, NOT_STARTED},
	{"PodOSNotSupported", "the node refused the pod: its operating system is another one", USER,
	 STAYS, NOT_STARTED},
	{"PodOSSelectorNodeLabelDoesNotMatch",
	 "the node refused the pod: its operating system is another one", USER, STAYS, NOT_STARTED},
	{"InvalidNodeInfo", "the node refused the pod: the kubelet does not know its own node",
	 ADMIN, MENDS, NOT_STARTED},
	{"InitContainerRestartPolicyForbidden",
	 "the node refused the pod: it does not know the restartPolicy of an init container", USER,
	 STAYS, NOT_STARTED},
	{"SupplementalGroupsPolicyNotSupported",
	 "the node refused the pod: it does not know supplementalGroupsPolicy", USER, STAYS,
	 NOT_STARTED},
	{"VolumeAttachmentLimitExceeded",
	 "the node refused the pod: it has attached as many volumes as it can", NONE, MENDS,
	 NOT_STARTED},
	{"UnexpectedPredicateFailureType", "the node refused the pod for an unknown reason", ADMIN,
	 MENDS, NOT_STARTED},
	{"UnknownReason", "the node refused the pod for an unknown reason", ADMIN, MENDS,
	 NOT_STARTED},

	/* reasons of the condition DisruptionTarget: why a pod was taken away */
	{"PreemptionByScheduler", "the scheduler preempted the pod for one of a higher priority",
	 NONE, MENDS, STARTED},
	{"DeletionByTaintManager", "the control plane deleted the pod because of a NoExecute taint",
	 NONE, MENDS, STARTED},
	{"DeletionByDeviceTaintManager",
	 "the control plane deleted the pod because of a taint of its device", NONE, MENDS,
	 STARTED},
	{"EvictionByEvictionAPI", "the pod was evicted through the API, as a drain does", NONE,
	 MENDS, STARTED},
	{"DeletionByPodGC", "the control plane removed the pod because its node is gone", NONE,
	 MENDS, STARTED},
	{"TerminationByKubelet",
	 "the kubelet ended the pod: the node ran short of a resource or was shut down", NONE,
	 MENDS, STARTED},
	/* of the kubelet of one machine */
	{"TerminationByHoldfast", "'holdfast down' or the end of 'holdfast run' ended the pod",
	 NONE, MENDS, STARTED},
};

static bool matches_reason(const char *pattern, const char *reason)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] == '*')
		return strncmp(reason, pattern, len - 1) == 0;
	return strcmp(reason, pattern) == 0;
}

const struct hf_container_reason *hf_container_reason_find(const char *reason)
{
	if (hf_str_is_empty(reason))
		return NULL;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++)
		if (matches_reason(rows[i].reason, reason))
			return &rows[i];
	return NULL;
}

const char *hf_container_reason_next(const struct hf_container_reason *row)
{
	switch (row->actor) {
	case HF_ACTOR_USER:
		return row->mends ? "the kubelet tries again; the author of the job must provide "
				    "what is missing, or correct it in a new job"
				  : "this does not pass by itself: the author of the job must "
				    "correct it in a new job";
	case HF_ACTOR_ADMIN:
		return row->mends ? "the kubelet tries again; where it lasts, the administrator "
				    "of the cluster must look at the node"
				  : "this does not pass by itself: the administrator of the "
				    "cluster must look at the node";
	default: return "";
	}
}

/* ---- messages ---------------------------------------------------------------------------------- */

#define GAP " … "

static bool continues_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Replace control characters, those of ASCII and U+0080 to U+009F, by blanks. */
static void blank_controls(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = ' ';
		else if ((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] >= 0x80 &&
			 (unsigned char)text[1] < 0xa0)
			text[0] = text[1] = ' ';
	}
}

void hf_status_message_write(const char *message, char ret_text[HF_STATUS_MESSAGE_MAX + 1])
{
	size_t len = strlen(hf_str_or(message, ""));
	size_t head = (HF_STATUS_MESSAGE_MAX - strlen(GAP)) / 2, tail;

	if (len <= HF_STATUS_MESSAGE_MAX) {
		memcpy(ret_text, hf_str_or(message, ""), len + 1);
	} else {
		tail = len - head;
		while (head > 0 && continues_character(message[head]))
			head--;
		while (tail < len && continues_character(message[tail]))
			tail++;
		snprintf(ret_text, HF_STATUS_MESSAGE_MAX + 1, "%.*s" GAP "%s", (int)head, message,
			 message + tail);
	}
	blank_controls(ret_text);
	for (len = strlen(ret_text); len > 0 && ret_text[len - 1] == ' '; len--)
		ret_text[len - 1] = '\0';
}

const char *hf_status_message_clean(struct hf_arena *arena, const char *message)
{
	char text[HF_STATUS_MESSAGE_MAX + 1];

	hf_status_message_write(message, text);
	return hf_arena_strdup(arena, text);
}

/* ---- signals ----------------------------------------------------------------------------------- */

#define BY_ITSELF "the program raised the signal itself, as a crash"
#define BY_OTHERS "Holdfast did not send the signal; a launcher, a script or another process did"

/* The signals of Linux on x86-64 and arm64: number, name, and where the signal usually comes
 * from. */
static const struct {
	int64_t number;
	const char *name, *sender;
} signals[] = {
	{1, "SIGHUP", BY_OTHERS},
	{2, "SIGINT", BY_OTHERS},
	{3, "SIGQUIT", BY_OTHERS},
	{4, "SIGILL", BY_ITSELF ": an instruction that this processor does not have"},
	{5, "SIGTRAP", BY_ITSELF ": a trap or an assertion"},
	{6, "SIGABRT", BY_ITSELF ": an assertion, an uncaught exception or a watchdog of it"},
	{7, "SIGBUS", BY_ITSELF ": often /dev/shm is full, or a mapped file was cut"},
	{8, "SIGFPE", BY_ITSELF ": a division by zero"},
	{9, "SIGKILL",
	 "Holdfast did not send the signal; most often the kernel's OOM killer did, else the "
	 "kubelet after a failed liveness probe"},
	{10, "SIGUSR1", BY_OTHERS},
	{11, "SIGSEGV", BY_ITSELF ": an access to memory that is not its own"},
	{12, "SIGUSR2", BY_OTHERS},
	{13, "SIGPIPE", "the program wrote to a pipe or socket that nothing reads any more"},
	{14, "SIGALRM", "a timer that the program set ran out"},
	{15, "SIGTERM",
	 "Holdfast did not send the signal; a launcher or a script did, or the kubelet after a "
	 "failed liveness probe"},
	{16, "SIGSTKFLT", BY_ITSELF},
	{17, "SIGCHLD", BY_OTHERS},
	{18, "SIGCONT", BY_OTHERS},
	{19, "SIGSTOP", BY_OTHERS},
	{20, "SIGTSTP", BY_OTHERS},
	{21, "SIGTTIN", "the program read from a terminal in the background"},
	{22, "SIGTTOU", "the program wrote to a terminal in the background"},
	{23, "SIGURG", BY_OTHERS},
	{24, "SIGXCPU", "the program exceeded its limit of processor time"},
	{25, "SIGXFSZ", "the program wrote a file beyond its size limit"},
	{26, "SIGVTALRM", "a timer that the program set ran out"},
	{27, "SIGPROF", "a profiling timer ran out that nothing handled"},
	{28, "SIGWINCH", BY_OTHERS},
	{29, "SIGIO", BY_OTHERS},
	{30, "SIGPWR", BY_OTHERS},
	{31, "SIGSYS", "the program made a system call that seccomp forbids"},
};

const char *hf_signal_name(int64_t number)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(signals); i++)
		if (signals[i].number == number)
			return signals[i].name;
	return NULL;
}

const char *hf_signal_sender(int64_t number)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(signals); i++)
		if (signals[i].number == number)
			return signals[i].sender;
	return "";
}

bool hf_exit_code_is_lost(const char *reason)
{
	return hf_streq(reason, "ContainerStatusUnknown") || hf_streq(reason, "Unknown");
}

/* The table of docs/reference/exit-codes.md. */
const char *hf_exit_code_meaning(int64_t code)
{
	switch (code) {
	case 220: return "the program's errors say that its device is broken";
	case 221: return "the program's errors say that its device failed once";
	case 222: return "the program's errors say that the fabric of its devices failed";
	case 224: return "the program's errors say that the driver of its device failed";
	case 225:
		return "the program reported no step, or printed no line of a log rule, for too long";
	case 228: return "a number in the program's output broke a rule of recovery.logRules";
	case 229:
		return "the program's output broke a rule of recovery.logRules with action FailJob";
	default: return NULL;
	}
}

int64_t hf_exit_code_signal(int64_t code)
{
	return code > 128 && hf_signal_name(code - 128) != NULL ? code - 128 : 0;
}

const char *hf_container_reason_telling(const char *reason)
{
	const struct hf_container_reason *row = hf_container_reason_find(reason);

	return row && !hf_streq(reason, "Completed") && !hf_streq(reason, "Error") ? reason : NULL;
}
