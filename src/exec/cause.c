/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/cause.h"

#include <string.h>

const char *hf_exec_cause_name(enum hf_exec_cause cause)
{
	switch (cause) {
	case HF_EXEC_CAUSE_DEVICE_FATAL: return "device-fatal";
	case HF_EXEC_CAUSE_DEVICE_TRANSIENT: return "device-transient";
	case HF_EXEC_CAUSE_FABRIC: return "fabric";
	case HF_EXEC_CAUSE_STRAGGLER: return "straggler";
	case HF_EXEC_CAUSE_DRIVER: return "driver";
	case HF_EXEC_CAUSE_HANG: return "hang";
	case HF_EXEC_CAUSE_NO_CONTACT: return "no-contact";
	default: return "";
	}
}

/* The texts of cudaGetErrorString and hipGetErrorString, and the driver's words in NVML's.  The
 * first that matches counts.  Not among them is what a program built for devices says where it was given
 * none, and then works without: "no CUDA-capable device is detected", "CUDA driver version is
 * insufficient for CUDA runtime version". */
static const struct {
	const char *text;
	enum hf_exec_cause cause;
} table[] = {
	{"uncorrectable NVLink error detected", HF_EXEC_CAUSE_FABRIC},
	{"uncorrectable ECC error encountered", HF_EXEC_CAUSE_DEVICE_FATAL},
	{"GPU has fallen off the bus", HF_EXEC_CAUSE_DEVICE_FATAL},
	{"GPU is lost", HF_EXEC_CAUSE_DEVICE_FATAL},
	{"CUDA-capable device(s) is/are busy or unavailable", HF_EXEC_CAUSE_DEVICE_TRANSIENT},
	{"Invalid access of peer GPU memory over nvlink or a hardware error",
	 HF_EXEC_CAUSE_DEVICE_TRANSIENT},
	{"system has unsupported display driver / cuda driver combination", HF_EXEC_CAUSE_DRIVER},
	{"system not yet initialized", HF_EXEC_CAUSE_DRIVER},
	{"Driver/library version mismatch", HF_EXEC_CAUSE_DRIVER},
};

enum hf_exec_cause hf_exec_cause_of(const char *line, size_t len)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++)
		if (memmem(line, len, table[i].text, strlen(table[i].text)) != NULL)
			return table[i].cause;
	return HF_EXEC_CAUSE_NONE;
}
