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
 * What one look through the driver's library saw, and how the child process that looks sends it to
 * the agent. Pure functions. A defective driver can write anything into the child's memory, so the
 * agent checks length, checksum, ranges and texts of each record.
 */

/* NVML's error numbers (nvmlReturn_t) that mean something here. */
enum hf_nvml_code {
	HF_NVML_OK = 0,
	HF_NVML_BAD_ARGUMENT = 2,
	HF_NVML_UNSUPPORTED = 3,
	HF_NVML_NO_PERMISSION = 4,
	HF_NVML_SIZE = 7,
	HF_NVML_NO_POWER = 8, /* the device's power cables are not attached */
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
	HF_NVML_CODE_MAX = 9999, /* larger codes do not exist */
};

/* Facts that the child asks of a device. Each is a number. */
enum hf_nvml_fact {
	HF_NVML_MINOR,
	HF_NVML_TEMPERATURE_C,
	HF_NVML_POWER_MW,
	HF_NVML_POWER_LIMIT_MW,
	HF_NVML_SM_MHZ,
	HF_NVML_LOAD_PERCENT,
	HF_NVML_THROTTLE_REASONS, /* bits */
	HF_NVML_ECC_ON,
	HF_NVML_ECC_CORRECTED, /* both ECC counters: since the driver was loaded */
	HF_NVML_ECC_UNCORRECTED,
	HF_NVML_REMAPPED_CORRECTED, /* remapped rows, in all */
	HF_NVML_REMAPPED_UNCORRECTED,
	HF_NVML_REMAP_PENDING,
	HF_NVML_REMAP_FAILED,
	HF_NVML_RETIRE_PENDING, /* pages to be retired, on older devices that do not remap rows */
	HF_NVML_PCIE_GENERATION,
	HF_NVML_PCIE_GENERATION_MAX,
	HF_NVML_PCIE_WIDTH,
	HF_NVML_PCIE_WIDTH_MAX,
	HF_NVML_PCIE_REPLAYS,
	HF_NVML_RECOVERY_ACTION,
	HF_NVML_NVLINKS,      /* one bit for each active link */
	HF_NVML_MIG_ON,       /* cut into instances */
	HF_NVML_PROCESSES,    /* number of processes that compute */
	HF_NVML_FABRIC_STATE, /* enum hf_nvml_fabric_state */
	/* result of the registration with the fabric manager: 0, or an error number of NVML */
	HF_NVML_FABRIC_STATUS,
	HF_NVML_FABRIC_HEALTH, /* bits */
	HF_NVML_FACTS
};
/* "temperature_c"; for people and golden files. */
const char *hf_nvml_fact_name(enum hf_nvml_fact fact);

#define HF_NVML_DEVICES_MAX HF_HEALTH_DEVICES_MAX
#define HF_NVML_EVENTS_MAX 64
#define HF_NVML_MIG_INSTANCES_MAX 8 /* a device has at most seven instances */
#define HF_NVML_TEXT_MAX 96         /* limit of NVML's texts (versions, names), with the NUL */

/* A MIG instance of a device. */
struct hf_nvml_mig_instance {
	char uuid[HF_HEALTH_UUID_MAX];           /* "MIG-…" */
	uint32_t gpu_instance, compute_instance; /* UINT32_MAX: not known */
};

struct hf_nvml_device {
	char address[HF_HEALTH_DEVICE_MAX]; /* "0000:1a:00.0"; "": the device reported no address */
	char uuid[HF_HEALTH_UUID_MAX];
	char serial[HF_NVML_TEXT_MAX], name[HF_NVML_TEXT_MAX];
	/* LOST or RESET_REQUIRED if any function returned it, else the code of opening the
	 * device */
	int32_t code;
	/* NVML's error number for each fact; 0: the value of the fact is known */
	uint16_t codes[HF_NVML_FACTS];
	uint64_t values[HF_NVML_FACTS];
	size_t mig_instances_len; /* 0: the device has no MIG instances, or did not report them */
	struct hf_nvml_mig_instance mig_instances[HF_NVML_MIG_INSTANCES_MAX];
};

/* The error code of a device that gave no information: opening it failed, or each question that the
 * device itself must answer. HF_NVML_OK: the device gave some information, or is lost, needs a
 * reset, is not supported, or may not be asked. */
int hf_nvml_failure(const struct hf_nvml_device *device);

/* An event that the library reported. */
struct hf_nvml_event {
	char address[HF_HEALTH_DEVICE_MAX]; /* "": of no device */
	uint64_t type, data; /* NVML's bits of the event type; for an Xid, data is its number */
	uint32_t gpu_instance, compute_instance; /* UINT32_MAX: none */
};

enum hf_nvml_kind {
	HF_NVML_ROUND = 1, /* the answer to a question */
	HF_NVML_NEWS = 2,  /* unasked: events and nothing else */
};

struct hf_nvml_record {
	enum hf_nvml_kind kind;
	/* result of loading and initializing the library: 0, NO_LIBRARY, NOT_LOADED, MISMATCH, … */
	int32_t code;
	char why[HF_NVML_TEXT_MAX]; /* for NO_LIBRARY: the error text of the loader */
	/* versions; "": unknown. firmware: of the first device that names its firmware */
	char driver[HF_NVML_TEXT_MAX], library[HF_NVML_TEXT_MAX], firmware[HF_NVML_TEXT_MAX];
	int32_t count; /* number of devices by the library; -1: not known */
	size_t devices_len;
	struct hf_nvml_device devices[HF_NVML_DEVICES_MAX];
	size_t events_len;
	struct hf_nvml_event events[HF_NVML_EVENTS_MAX];
};

/* Size of the head of a record: "HFNV" (4 bytes), the length (4) and a checksum (8). */
#define HF_NVML_FRAME_HEAD 16
#define HF_NVML_FRAME_MAX ((size_t)128 << 10)

/* Appends the record with its head to sb. All texts must be printable ASCII. */
void hf_nvml_record_write(const struct hf_nvml_record *record, struct hf_strbuf *sb);
/* Takes the first record out of `in`. 1: taken. 0: the record is not complete yet.
 * HF_E_BAD_REQUEST: the bytes are malformed, and nothing after them can be read. */
int hf_nvml_record_read(struct hf_strbuf *in, struct hf_nvml_record *ret_record,
			struct hf_error *err) HF_MUST_CHECK;

/* Writes the record as text, one fact a line. The same record always gives the same bytes. */
void hf_nvml_record_render(const struct hf_nvml_record *record, struct hf_strbuf *sb);

HF_END_DECLS

#endif
