/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_NVML_ABI_H
#define HF_PROBES_NVML_ABI_H

/*
 * The part of NVML's ABI that is used here, as NVIDIA's public header nvml.h defines it for CUDA
 * 13. These parts have not changed since CUDA 11.8, or have their version in their name. Functions
 * return a number of enum hf_nvml_code. A device and a set of events are opaque pointers. The
 * tests' double of NVML is built from this header too.
 */

#define HF_NVML_SONAME "libnvidia-ml.so.1"

/* Flag of nvmlInitWithFlags: a node without a device is no error. */
#define HF_NVML_INIT_NO_GPUS 1u

/* Arguments of NVML functions: the GPU's temperature sensor; the SM clock; kinds of ECC errors and
 * of their counters. */
#define HF_NVML_SENSOR_GPU 0
#define HF_NVML_CLOCK_SM 1
#define HF_NVML_ERRORS_CORRECTED 0
#define HF_NVML_ERRORS_UNCORRECTED 1
#define HF_NVML_COUNTER_VOLATILE 0

/* A field number of nvmlDeviceGetFieldValues. */
#define HF_NVML_FIELD_RECOVERY_ACTION 230

/* Limit of links of a device. NVML knows 36; the brain stores a bit for each of 32; no device has
 * more than 18. */
#define HF_NVML_LINKS_MAX 32

/* Events. */
#define HF_NVML_EVENT_XID 0x8u

struct hf_nvml_pci {
	char address_legacy[16]; /* with a domain of four digits */
	unsigned domain, bus, device;
	unsigned id, subsystem_id;
	char address[32]; /* "00000000:1A:00.0" */
};

/* States of a GPU's registration with the NVLink fabric manager. */
enum hf_nvml_fabric_state {
	HF_NVML_FABRIC_UNSUPPORTED = 0, /* the GPU belongs to no fabric */
	HF_NVML_FABRIC_NOT_STARTED = 1,
	HF_NVML_FABRIC_IN_PROGRESS = 2,
	HF_NVML_FABRIC_COMPLETED = 3, /* fabric_status has the result */
};

/* Result of nvmlDeviceGetGpuFabricInfo, the older function. */
struct hf_nvml_fabric {
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
};

/* Result of nvmlDeviceGetGpuFabricInfoV, which exists since CUDA 12.4. */
struct hf_nvml_fabric_v2 {
	unsigned version; /* HF_NVML_FABRIC_V2 */
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
	unsigned health; /* bits */
};
#define HF_NVML_FABRIC_V2 ((unsigned)sizeof(struct hf_nvml_fabric_v2) | 2u << 24)

struct hf_nvml_utilization {
	unsigned gpu, memory; /* percent */
};

enum hf_nvml_value_type {
	HF_NVML_VALUE_DOUBLE,
	HF_NVML_VALUE_UINT,
	HF_NVML_VALUE_ULONG,
	HF_NVML_VALUE_ULONGLONG,
	HF_NVML_VALUE_LONGLONG,
	HF_NVML_VALUE_INT,
	HF_NVML_VALUE_USHORT,
};

struct hf_nvml_field {
	unsigned id, scope;
	long long at_us, took_us;
	int type; /* enum hf_nvml_value_type */
	int code;
	union {
		double as_double;
		int as_int;
		unsigned as_uint;
		unsigned long as_ulong;
		unsigned long long as_ulonglong;
		long long as_longlong;
		unsigned short as_ushort;
	} value;
};

struct hf_nvml_event_data {
	void *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance; /* ~0: none */
};

#endif
