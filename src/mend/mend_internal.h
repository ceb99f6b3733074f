/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_MEND_MEND_INTERNAL_H
#define HF_MEND_MEND_INTERNAL_H

#include "api/remediation.h"
#include "mend/mend.h"

#include <sys/types.h>

/* ---- enter_root.c ------------------------------------------------------------------------------ */

/* The folders of the host in which a program is searched. */
#define HF_MEND_FOLDERS 7
extern const char *const hf_mend_folders[HF_MEND_FOLDERS];

/* Where the GPU Operator's pod of the driver shows its root folder to the host. */
#define HF_MEND_DRIVER_ROOT "/run/nvidia/driver"

/* ---- tool.c: a program in the root folder of the host ----------------------------------------- */

#define HF_MEND_TOOL_ARGS_MAX 24

struct hf_mend_tool {
	const char *root;
	/* arguments of the tool, ending with NULL; argv[0] is a name such as nvidia-smi */
	const char *argv[HF_MEND_TOOL_ARGS_MAX];
	hf_time timeout;
};

struct hf_mend_tool_result {
	int exit_code;  /* exit code of the tool; -1: a signal ended it, or it has not ended */
	bool timed_out; /* the tool was still running at its timeout */
	/* the tool survived SIGKILL: it waits in the kernel (state D) */
	bool hung;
	char output[HF_MEND_TEXT_MAX]; /* end of the tool's output in printable letters */
};

/* Runs the tool to its end.  At the timeout the tool gets SIGTERM, and 10 s later SIGKILL.  Fails only if the tool
 * cannot be started. */
int hf_mend_tool_run(const struct hf_mend_options *options, const struct hf_mend_tool *tool,
		     struct hf_mend_tool_result *ret_result, struct hf_error *err) HF_MUST_CHECK;
/* Whether the host has the program below `root`, in one of hf_mend_folders. */
bool hf_mend_tool_exists(const char *root, const char *name);
/* Runs the loop for the span. */
void hf_mend_wait(struct hf_loop *loop, hf_time span);

static inline hf_time hf_mend_shorter_of(hf_time a, hf_time b)
{
	return a < b ? a : b;
}

/* ---- holders.c: processes that have a device open ---------------------------------------------- */

#define HF_MEND_FILES_MAX 64

/* Files of the devices: "/dev/nvidia3". */
struct hf_mend_files {
	char paths[HF_MEND_FILES_MAX][32];
	size_t len;
	bool any_nvidia; /* the file of a GPU is not known, so every /dev/nvidiaN counts */
};

#define HF_MEND_WATCHERS_MAX 4

struct hf_mend_holders {
	struct hf_remediation_holder items[HF_REMEDIATION_HOLDERS_MAX];
	char comms[HF_REMEDIATION_HOLDERS_MAX][64];
	char pods[HF_REMEDIATION_HOLDERS_MAX][330]; /* NAMESPACE/NAME, else the UID */
	size_t len;                                 /* items */
	/* Processes of Holdfast's own agent that ask the driver's library.  They do not count as holders: the act
	 * ends them, and the agent starts another one later. */
	pid_t watchers[HF_MEND_WATCHERS_MAX];
	size_t watchers_len;
	/* number of processes found, also of those for which the list has no place */
	size_t total;
};

/* Finds the device files of the GPUs in the spec, all of NVIDIA or (nvidia false) all of AMD. */
void hf_mend_find_files(const struct hf_mend_options *options,
			const struct hf_remediation_spec *spec, bool nvidia,
			struct hf_mend_files *ret_files);
/* Finds the processes that have the files open.  The persistence daemon of NVIDIA does not count: it closes the
 * devices when persistence mode is turned off. */
int hf_mend_find_holders(const struct hf_mend_options *options, const struct hf_mend_files *files,
			 struct hf_mend_holders *ret_holders, struct hf_error *err) HF_MUST_CHECK;

/* Ends the agent's processes, and waits a moment for their end. */
void hf_mend_end_watchers(const struct hf_mend_options *options,
			  const struct hf_mend_holders *holders);

/* ---- reset.c, reboot.c: the acts --------------------------------------------------------------- */

/* What an act reports. */
struct hf_mend_outcome {
	const char *tool;
	int exit_code; /* exit code of the act: 0: done; -1: no tool reported one */
	char message[HF_MEND_TEXT_MAX];
};

/* What a reset needs. It is found before the act is recorded as begun (phase Acting). */
struct hf_mend_reset {
	const struct hf_remediation_spec *spec;
	bool nvidia;
	char root[256];   /* root folder of the host or container that has the tool */
	char uuids[1400]; /* for -i: "GPU-1,GPU-2" */
	struct hf_mend_holders holders;
	struct hf_field_pair persistence[HF_REMEDIATION_DEVICES_MAX];
	char persistence_on[1400]; /* UUIDs of the devices with persistence mode on; "": none */
	size_t persistence_len;
	char diagnostic_root[512]; /* the root folder that has the diagnostic program */
};

/* Does everything before the intent: finds the tool, reads the persistence mode, waits for holders.  Changes
 * nothing.  Fails if the act is not possible on this node.  holders.len > 0: the devices are busy. */
int hf_mend_reset_prepare(const struct hf_mend_options *options,
			  const struct hf_remediation_spec *spec, struct hf_mend_reset *ret_reset,
			  struct hf_error *err) HF_MUST_CHECK;
void hf_mend_reset_act(const struct hf_mend_options *options, const struct hf_mend_reset *reset,
		       struct hf_mend_outcome *ret_outcome);

/* Fails if no method is available. */
int hf_mend_reboot_prepare(const struct hf_mend_options *options, struct hf_error *err)
	HF_MUST_CHECK;
/* Tries each method to reboot.  Returns only if none rebooted the node. */
void hf_mend_reboot_act(const struct hf_mend_options *options, struct hf_mend_outcome *ret_outcome);

#endif
