/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_NVML_RECORD_H
#define HF_PROBES_NVML_RECORD_H

#include "base/error.h"
#include "base/strbuf.h"
#include "health/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * What one look through the driver's library saw, and its way from the child process that looks
 * to the agent.  Pure.  A driver that has gone mad can write anything over the child's memory, so
 * the agent believes no byte of a record: length, checksum, ranges and texts are checked.
 */

/* NVML's own numbers (nvmlReturn_t), of those that mean something here. */
enum hf_nvml_code {
	HF_NVML_OK = 0,
	HF_NVML_BAD_ARGUMENT = 2,
	HF_NVML_UNSUPPORTED = 3,
	HF_NVML_NO_PERMISSION = 4,
	HF_NVML_SIZE = 7,
	HF_NVML_NO_POWER = 8, /* its cables are not attached */
	HF_NVML_NOT_LOADED = 9,
	HF_NVML_TIMEOUT = 10,
	HF_NVML_NO_INTERRUPT = 11,
	HF_NVML_NO_LIBRARY = 12,
	HF_NVML_NO_FUNCTION = 13,
	HF_NVML_LOST = 15,
	HF_NVML_RESET_REQUIRED = 16,
	HF_NVML_MISMATCH = 18,
	HF_NVML_NO_GPU = 28,
	HF_NVML_UNKNOWN = 999,
	HF_NVML_CODE_MAX = 9999, /* more is none */
};

/* What is measured of a device; all numbers. */
enum hf_nvml_fact {
	HF_NVML_MINOR,
	HF_NVML_TEMPERATURE_C,
	HF_NVML_POWER_MW,
	HF_NVML_POWER_LIMIT_MW,
	HF_NVML_SM_MHZ,
	HF_NVML_LOAD_PERCENT,
	HF_NVML_THROTTLE_REASONS, /* bits */
	HF_NVML_ECC_ON,
	HF_NVML_ECC_CORRECTED, /* since the driver was loaded, as the next */
	HF_NVML_ECC_UNCORRECTED,
	HF_NVML_REMAPPED_CORRECTED, /* rows, in all */
	HF_NVML_REMAPPED_UNCORRECTED,
	HF_NVML_REMAP_PENDING,
	HF_NVML_REMAP_FAILED,
	HF_NVML_RETIRE_PENDING, /* pages: of devices from before rows were remapped */
	HF_NVML_PCIE_GENERATION,
	HF_NVML_PCIE_GENERATION_MAX,
	HF_NVML_PCIE_WIDTH,
	HF_NVML_PCIE_WIDTH_MAX,
	HF_NVML_PCIE_REPLAYS,
	HF_NVML_RECOVERY_ACTION,
	HF_NVML_NVLINKS,       /* a bit for each that is active */
	HF_NVML_MIG_ON,        /* cut into instances */
	HF_NVML_PROCESSES,     /* that compute */
	HF_NVML_FABRIC_STATE,  /* enum hf_nvml_fabric_state */
	HF_NVML_FABRIC_STATUS, /* of the registration: 0, or one of NVML's numbers */
	HF_NVML_FABRIC_HEALTH, /* bits */
	HF_NVML_FACTS
};
/* "temperature_c"; for people and golden files. */
const char *hf_nvml_fact_name(enum hf_nvml_fact fact);

#define HF_NVML_DEVICES_MAX HF_HEALTH_DEVICES_MAX
#define HF_NVML_EVENTS_MAX 64
#define HF_NVML_MIG_INSTANCES_MAX 8 /* a device has seven instances at most */
#define HF_NVML_TEXT_MAX 96         /* NVML's longest: a version, a name; with the NUL */

/* An instance of a device in MIG mode. */
struct hf_nvml_mig_instance {
	char uuid[HF_HEALTH_UUID_MAX];           /* "MIG-…" */
	uint32_t gpu_instance, compute_instance; /* UINT32_MAX: not known */
};

struct hf_nvml_device {
	char address[HF_HEALTH_DEVICE_MAX]; /* "0000:1a:00.0"; "": it did not come so far */
	char uuid[HF_HEALTH_UUID_MAX];
	char serial[HF_NVML_TEXT_MAX], name[HF_NVML_TEXT_MAX];
	/* LOST or RESET_REQUIRED if any call returned it, else the code of opening the device */
	int32_t code;
	uint16_t codes[HF_NVML_FACTS]; /* 0: the value is known */
	uint64_t values[HF_NVML_FACTS];
	size_t mig_instances_len; /* 0: no MIG instances, or not reported */
	struct hf_nvml_mig_instance mig_instances[HF_NVML_MIG_INSTANCES_MAX];
};

/* The code of a device that gave no information: from the device itself, or from every question
 * that asks the device. HF_NVML_OK: the device gave some, or is lost, needs a reset, is not
 * supported, or may not be asked. */
int hf_nvml_failure(const struct hf_nvml_device *device);

/* An event that the library reported. */
struct hf_nvml_event {
	char address[HF_HEALTH_DEVICE_MAX];      /* "": of no device */
	uint64_t type, data;                     /* NVML's bits; of an Xid its number */
	uint32_t gpu_instance, compute_instance; /* UINT32_MAX: none */
};

enum hf_nvml_kind {
	HF_NVML_ROUND = 1, /* the answer to a question */
	HF_NVML_NEWS = 2,  /* unasked: events and nothing else */
};

struct hf_nvml_record {
	enum hf_nvml_kind kind;
	int32_t code; /* of loading and initializing: 0, NO_LIBRARY, NOT_LOADED, MISMATCH, … */
	char why[HF_NVML_TEXT_MAX]; /* of NO_LIBRARY: the loader's words */
	char driver[HF_NVML_TEXT_MAX], library[HF_NVML_TEXT_MAX]; /* versions */
	int32_t count; /* of devices, by the library; -1: not known */
	size_t devices_len;
	struct hf_nvml_device devices[HF_NVML_DEVICES_MAX];
	size_t events_len;
	struct hf_nvml_event events[HF_NVML_EVENTS_MAX];
};

/* "HFNV", a length and a checksum, 4 + 4 + 8 bytes, before each. */
#define HF_NVML_FRAME_HEAD 16
#define HF_NVML_FRAME_MAX ((size_t)128 << 10)

/* Appends the record with its head. All texts must be printable ASCII. */
void hf_nvml_record_write(const struct hf_nvml_record *record, struct hf_strbuf *sb);
/* Takes the first record: 1, taken; 0, more bytes are needed; HF_E_BAD_REQUEST, malformed, so
 * nothing behind it can be read. */
int hf_nvml_record_read(struct hf_strbuf *in, struct hf_nvml_record *ret_record,
			struct hf_error *err) HF_MUST_CHECK;

/* All of it as text, one fact a line, the same bytes for the same record. */
void hf_nvml_record_render(const struct hf_nvml_record *record, struct hf_strbuf *sb);

HF_END_DECLS

#endif
