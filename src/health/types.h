/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_TYPES_H
#define HF_HEALTH_TYPES_H

#include "base/compiler.h"
#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The enumerations of the device brain, and its limits.  Every struct of this module that is kept between steps holds
 * its texts inline, so that it can be copied, compared and written to a journal without pointers.
 */

/* A device's name: "0000:1a:00.0", "mlx5_0/1", "nvidia-nvswitch0"; "" is the node itself.  With the NUL. */
#define HF_HEALTH_DEVICE_MAX 40
/* "GPU-" and a UUID, or "MIG-GPU-…/7/0" of old drivers; with the NUL. */
#define HF_HEALTH_UUID_MAX 80
/* The part of a device: "RLW_REMAP", "link 17", "GPC 1 TPC 2", or "port 0000:9c:01.0" for a port above it; with
 * the NUL. */
#define HF_HEALTH_UNIT_MAX 32
/* Text in a unit before the address of a port above the device. */
#define HF_HEALTH_UNIT_PORT "port "
/* The kernel's line that is kept as evidence; with the NUL. */
#define HF_HEALTH_LINE_MAX 257
/* Most devices of a node: nodes are sold with up to 16 GPUs, 18 NVSwitches and 16 ports. */
#define HF_HEALTH_DEVICES_MAX 64
/* Most network ports among the devices, so that GPUs and switches have room. */
#define HF_HEALTH_PORTS_MAX 24
/* Most faults remembered of one device, open and closed: 24 hours of repeats must fit. */
#define HF_HEALTH_FAULTS_MAX 16
/* Most pieces of evidence, and most samples, of one step; the caller splits a longer list into several steps. */
#define HF_HEALTH_INPUT_MAX 4096
/* Addresses of the PCIe ports above a device, with blanks between them: room for 18 at least.  With the NUL. */
#define HF_HEALTH_ABOVE_MAX 256
/* /proc/sys/kernel/random/boot_id, with the NUL. */
#define HF_HEALTH_BOOT_MAX 40

/*
 * The class of a fault, the strictest last: of several faults the strictest decides.  The classes up to APP are only
 * recorded.  From SOFTWARE to DRAIN a confirmed fault makes a device Degraded.  From GPU_RESET on the device cannot
 * be used.
 */
enum hf_health_class {
	HF_HEALTH_NONE,
	HF_HEALTH_INFO,
	HF_HEALTH_UNRATED, /* no rule has rated the fault */
	HF_HEALTH_APP,     /* an error of the program: restart the program, the device is well */
	HF_HEALTH_SOFTWARE,
	HF_HEALTH_DEGRADED,
	HF_HEALTH_FABRIC,
	HF_HEALTH_DRAIN,
	HF_HEALTH_GPU_RESET,
	HF_HEALTH_REBOOT,
	HF_HEALTH_SUPPORT, /* a person must look */
	HF_HEALTH_REPLACE,
	HF_HEALTH_CLASSES
};

/* What would mend a fault, the mildest first: the rungs of the ladder (fleet.h). */
enum hf_health_action {
	HF_HEALTH_RECORD,
	HF_HEALTH_RESTART_PROCESS,
	HF_HEALTH_MOVE_POD,
	HF_HEALTH_QUARANTINE,
	HF_HEALTH_RESET_DEVICE,
	HF_HEALTH_RESTART_DRIVER,
	HF_HEALTH_RESTART_NODE,
	HF_HEALTH_REPLACE_NODE,
	HF_HEALTH_ACTIONS
};

enum hf_health_scope {
	HF_HEALTH_OF_DEVICE,
	HF_HEALTH_OF_NODE,
	HF_HEALTH_OF_FABRIC,
	HF_HEALTH_SCOPES
};

/* How a fault ends.  A boot ends all faults but those of BY_PERSON. */
enum hf_health_clear {
	HF_HEALTH_BY_AGE,    /* the fault ends by itself, after `age` of struct hf_health_config */
	HF_HEALTH_BY_SIGNAL, /* the driver reports a recovery, or a reset was verified */
	HF_HEALTH_BY_BOOT,   /* only a boot ends the fault */
	HF_HEALTH_BY_LEVEL,  /* the detector measures that the fault has ended */
	HF_HEALTH_BY_PERSON,
	HF_HEALTH_CLEARS
};

enum hf_health_severity {
	HF_HEALTH_UNSAID,
	HF_HEALTH_NONFATAL,
	HF_HEALTH_FATAL,
	HF_HEALTH_CORRECTED,
	HF_HEALTH_SEVERITIES
};

/* The detector of evidence.  The names are those in metrics and in the tables of docs/reference/faults.md. */
enum hf_health_detector {
	HF_HEALTH_XID,
	HF_HEALTH_BUSLOST,
	HF_HEALTH_SXID,
	HF_HEALTH_RECOVERY,
	HF_HEALTH_ECC,
	HF_HEALTH_THROTTLE,
	HF_HEALTH_CLOCK,
	HF_HEALTH_PCIE,
	HF_HEALTH_REPLAY,
	HF_HEALTH_COUNT,
	HF_HEALTH_NVLINK,
	HF_HEALTH_IB,
	HF_HEALTH_DRIVER,
	HF_HEALTH_PLUGIN,
	HF_HEALTH_STRAGGLER,
	HF_HEALTH_AMD,
	HF_HEALTH_AER,
	HF_HEALTH_MLX5,
	/* a fault of the node: several devices of the node have the same fault, or all have faults,
	 * at once; the step makes the evidence */
	HF_HEALTH_PEERS,
	HF_HEALTH_DETECTORS
};

/* The source of evidence; the same fact from two sources is one fact. */
enum hf_health_source {
	HF_HEALTH_BY_KMSG,
	HF_HEALTH_BY_NVML,
	HF_HEALTH_BY_SYSFS,
	HF_HEALTH_BY_KUBELET,
	HF_HEALTH_BY_REPORTS,
	HF_HEALTH_BY_STEP,
	HF_HEALTH_SOURCES
};

enum hf_health_state {
	HF_HEALTH_UNKNOWN,
	HF_HEALTH_HEALTHY,
	HF_HEALTH_SUSPECT,
	HF_HEALTH_DEGRADED_STATE,
	HF_HEALTH_UNHEALTHY,
	HF_HEALTH_QUARANTINED,
	HF_HEALTH_REMEDIATING,
	HF_HEALTH_PROBATION,
	HF_HEALTH_FAILED,
	HF_HEALTH_STATES
};

enum hf_health_kind {
	HF_HEALTH_NODE,
	HF_HEALTH_GPU,
	HF_HEALTH_SWITCH,
	HF_HEALTH_PORT,
	HF_HEALTH_KINDS
};

/* The name in lower case with dashes, as in objects; "?" for an unknown number. */
const char *hf_health_class_name(enum hf_health_class cls);
const char *hf_health_action_name(enum hf_health_action action);
const char *hf_health_scope_name(enum hf_health_scope scope);
const char *hf_health_clear_name(enum hf_health_clear clear);
const char *hf_health_severity_name(enum hf_health_severity severity);
const char *hf_health_detector_name(enum hf_health_detector detector);
const char *hf_health_source_name(enum hf_health_source source);
const char *hf_health_state_name(enum hf_health_state state); /* as conditions: "Healthy" */
const char *hf_health_kind_name(enum hf_health_kind kind);
/* Finds the value of a name; false: the name is unknown.  For files of rules and journals. */
bool hf_health_class_of(const char *name, enum hf_health_class *ret_class);
bool hf_health_action_of(const char *name, enum hf_health_action *ret_action);
bool hf_health_detector_of(const char *name, enum hf_health_detector *ret_detector);
bool hf_health_state_of(const char *name, enum hf_health_state *ret_state);

/* Whether the class means that the device cannot be used until a remedy is performed. */
/* Whether no pod may use a device in this state; pods that use the device move to another node. */
static inline bool hf_health_is_out(enum hf_health_state state)
{
	return state == HF_HEALTH_UNHEALTHY || state == HF_HEALTH_QUARANTINED ||
	       state == HF_HEALTH_REMEDIATING || state == HF_HEALTH_FAILED;
}

static inline bool hf_health_is_fatal(enum hf_health_class cls)
{
	return cls >= HF_HEALTH_GPU_RESET;
}

/* Whether the class makes a device Suspect, and, once confirmed, Degraded. */
static inline bool hf_health_is_weak(enum hf_health_class cls)
{
	return cls >= HF_HEALTH_SOFTWARE && cls < HF_HEALTH_GPU_RESET;
}

HF_END_DECLS

#endif
