/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_EVIDENCE_H
#define HF_HEALTH_EVIDENCE_H

#include "health/types.h"

HF_BEGIN_DECLS

/* One observation about a device, before a rule gives it a class. */

enum hf_health_verb {
	HF_HEALTH_FAULT, /* an error */
	/* a measurement shows that the fault has ended (with code 0: all faults of the detector) */
	HF_HEALTH_CLEARED,
	/* The driver or the kernel reports that the device has recovered.  With a code it ends faults of that
	 * detector and code, without a code all faults of the detector.  A recovery of detector RECOVERY without a
	 * code ends faults of all detectors. */
	HF_HEALTH_RECOVERED,
};

struct hf_health_evidence {
	enum hf_health_detector detector;
	enum hf_health_verb verb;
	enum hf_health_source source;
	enum hf_health_severity severity;
	int32_t code;    /* the number of an Xid or SXid, or one of enum hf_health_code below */
	int32_t subcode; /* -1: none */
	int32_t cause;   /* for Xid 45: the Xid that caused Xid 45; 0: not reported */
	uint32_t word;   /* the first register or interrupt word of the line, if has_word */
	bool has_word;
	int32_t gpu_instance;     /* MIG; -1: the whole device */
	int32_t compute_instance; /* -1: none */
	hf_time at;
	/* number of the record in the kernel's log; 0: the evidence has another source */
	uint64_t seq;
	char device[HF_HEALTH_DEVICE_MAX];
	char unit[HF_HEALTH_UNIT_MAX];
	char line[HF_HEALTH_LINE_MAX]; /* printable ASCII */
};

/* Codes of detectors with sources that give no numbers; unique within a detector. */
enum hf_health_code {
	HF_HEALTH_CODE_LINK = 74, /* xid: an error of NVLink */
	HF_HEALTH_CODE_BUS = 79,  /* buslost: the GPU is off the bus, the meaning of Xid 79 */
	/* buslost: the driver cannot initialize the GPU, or reports nothing about it */
	HF_HEALTH_CODE_INIT = 1,

	/* recovery: NVML's "reset required" (16); codes 1 to 5 are recovery actions of the driver */
	HF_HEALTH_CODE_RESET_REQUIRED = 6,
	/* recovery: a line of the log asks for a reset without naming a GPU */
	HF_HEALTH_CODE_RESET_SOMEWHERE = 7,

	HF_HEALTH_CODE_UNCORRECTABLE = 1, /* ecc, amd */
	HF_HEALTH_CODE_REMAP_PENDING = 2,
	HF_HEALTH_CODE_REMAP_FAILED = 3,
	HF_HEALTH_CODE_REMAP_RMA = 4, /* failed, with uncorrectable errors remapped */

	HF_HEALTH_CODE_SLOW = 1,     /* throttle, clock, replay, straggler */
	HF_HEALTH_CODE_AMD_SLOW = 2, /* amd */
	HF_HEALTH_CODE_WIDTH = 1,    /* pcie */
	HF_HEALTH_CODE_SPEED = 2,

	HF_HEALTH_CODE_PCI_MISSING = 1, /* count */
	HF_HEALTH_CODE_KUBELET_FEWER = 2,
	/* count: the node has fewer GPUs than earlier in this boot, or than in the boot before */
	HF_HEALTH_CODE_FEWER = 3,

	HF_HEALTH_CODE_LINK_INACTIVE = 1, /* nvlink */
	/* fabric: the fabric manager reports a fault of the GPU's routes */
	HF_HEALTH_CODE_FABRIC_UNHEALTHY = 2,

	HF_HEALTH_CODE_PORT_DOWN = 1, /* ib */
	HF_HEALTH_CODE_PORT_FLAP = 2,
	HF_HEALTH_CODE_PORT_ERRORS = 3, /* a counter rose that must not */
	HF_HEALTH_CODE_PORT_SLOW = 4,   /* counters that rise too fast */
	HF_HEALTH_CODE_PORT_MISSING = 5,
	/* ib: the counter link_downed rose; the fault is only recorded */
	HF_HEALTH_CODE_PORT_BLINK = 6,

	HF_HEALTH_CODE_MISMATCH = 1, /* driver */
	HF_HEALTH_CODE_NOT_LOADED = 2,
	HF_HEALTH_CODE_UNRESPONSIVE = 3,
	/* driver: GPUs of an NVSwitch system wait for the fabric manager */
	HF_HEALTH_CODE_FABRIC_DOWN = 4,

	HF_HEALTH_CODE_PLUGIN_ABSENT = 1, /* plugin */
	HF_HEALTH_CODE_RESOURCE_GONE = 2,

	/* aer: a report about the device; its severity is in the evidence */
	HF_HEALTH_CODE_AER = 1,
	/* aer: a report about a port above the device; its severity is in the evidence */
	HF_HEALTH_CODE_AER_PORT = 2,
	/* aer: the kernel (DPC) has cut off everything below a port */
	HF_HEALTH_CODE_CONTAINED = 3,
	HF_HEALTH_CODE_UNRECOVERED = 4, /* aer: the kernel could not recover the device */
	/* aer: the link of a slot is down; for a GPU this becomes buslost 79 */
	HF_HEALTH_CODE_LINK_DOWN = 5,
	/* aer: reads from the device return only ones; for a GPU this becomes buslost 79 */
	HF_HEALTH_CODE_INACCESSIBLE = 6,

	HF_HEALTH_CODE_MLX5_LEAK = 1, /* mlx5: a command timed out, and its resources are lost */
	HF_HEALTH_CODE_MLX5_HEALTH = 2,
	HF_HEALTH_CODE_MLX5_HARDWARE = 3,
	HF_HEALTH_CODE_MLX5_TIMEOUT = 4, /* mlx5: a transmit or receive queue timed out */
	HF_HEALTH_CODE_MLX5_POWER = 5,
	HF_HEALTH_CODE_MLX5_HOT = 6,
	HF_HEALTH_CODE_MLX5_CABLE = 7,
	/* mlx5: the driver gives the adapter up and tries to recover it */
	HF_HEALTH_CODE_MLX5_FATAL = 8,
	HF_HEALTH_CODE_MLX5_UNRECOVERED = 9, /* mlx5: the driver could not recover the adapter */
	HF_HEALTH_CODE_MLX5_COLD_RESET = 10, /* mlx5: the firmware asks for a power cycle */
	HF_HEALTH_CODE_MLX5_SYNDROME = 11,   /* mlx5: the firmware reports an error of its own */
	/* mlx5: queues could not be opened again after a timeout */
	HF_HEALTH_CODE_MLX5_TX_STUCK = 12,
	/* mlx5: a processor or a task is stuck in the driver */
	HF_HEALTH_CODE_MLX5_LOCKUP = 13,

	HF_HEALTH_CODE_SAME = 1, /* peers: half of the node's devices have the same fault */
	/* peers: all devices have fatal faults at once, the same or different faults */
	HF_HEALTH_CODE_ALL = 2,
};

/* Makes empty evidence: no subcode, no instance, no time. */
struct hf_health_evidence hf_health_evidence_none(void);

/*
 * Converts the usual forms of a PCI address to the kernel's: "PCI:0000:1A:00", "0000:1a:00.0", "00000000:1A:00.0"
 * (NVML) and "1a:00.0" become "0000:1a:00.0".  A domain of more than 16 bits keeps the digits that it needs.  False:
 * the bytes as a whole are no such address, and ret_text is unchanged.
 */
bool hf_health_pci_normalize(const char *bytes, size_t len, char ret_text[HF_HEALTH_DEVICE_MAX]);

/* Whether two normalized addresses are the same function or two functions of one device: "0000:1a:00.0" and
 * "0000:1a:00.1". */
bool hf_health_pci_same_device(const char *a, const char *b);
/* Whether two normalized addresses have the same domain: "0000:1a:00.0" and "0000:b1:00.0". */
bool hf_health_pci_same_domain(const char *a, const char *b);

HF_END_DECLS

#endif
