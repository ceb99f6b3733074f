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
 * The words of the device brain, and its limits.
 *
 * Every struct of this module that is kept between steps holds its texts inline: no
 * pointer to follow when it is copied, compared or written to a journal.
 */

/* "0000:1a:00.0", "mlx5_0/1", "nvidia-nvswitch0"; "" is the node itself.  With the NUL. */
#define HF_HEALTH_DEVICE_MAX 40
/* "GPU-" and a UUID, "MIG-GPU-…/7/0" of old drivers; with the NUL. */
#define HF_HEALTH_UUID_MAX 80
/* What of a device: "RLW_REMAP", "link 17", "GPC 1 TPC 2"; "port 0000:9c:01.0" of a port above it; with the NUL. */
#define HF_HEALTH_UNIT_MAX 32
/* Before the address of a port above the device. */
#define HF_HEALTH_UNIT_PORT "port "
/* Of a kernel line, kept as evidence; with the NUL. */
#define HF_HEALTH_LINE_MAX 257
/* 16 GPUs, 18 NVSwitches and 16 ports are the most that one node is sold with. */
#define HF_HEALTH_DEVICES_MAX 64
/* Ports take so many places at most, so that GPUs and switches have room. */
#define HF_HEALTH_PORTS_MAX 24
/* Faults remembered of one device, open and closed: 24 h of repeats must fit. */
#define HF_HEALTH_FAULTS_MAX 16
/* Evidence and samples of one step; the caller splits a longer list into several steps. */
#define HF_HEALTH_INPUT_MAX 4096
/* Addresses of the PCIe ports above a device, with blanks between them: 18 at least.  With the NUL. */
#define HF_HEALTH_ABOVE_MAX 256
/* /proc/sys/kernel/random/boot_id, with the NUL. */
#define HF_HEALTH_BOOT_MAX 40

/*
 * What a fault is, the strictest last: of several the strictest decides.  The first four
 * are only written down, up to DRAIN they make a device Degraded once they are confirmed,
 * from GPU_RESET on the device cannot be worked with.
 */
enum hf_health_class {
	HF_HEALTH_NONE,
	HF_HEALTH_INFO,
	HF_HEALTH_UNRATED, /* nobody has said yet what it means */
	HF_HEALTH_APP,     /* the program's fault: restart it, the device is fine */
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

/* What would mend it, the mildest first: the rungs of the ladder (fleet.h). */
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

/* How a fault ends.  A boot ends all of them but NEVER. */
enum hf_health_clear {
	HF_HEALTH_BY_AGE,    /* by itself, rules.h says when */
	HF_HEALTH_BY_SIGNAL, /* the driver reports a recovery, or a reset was verified */
	HF_HEALTH_BY_BOOT,   /* only so */
	HF_HEALTH_BY_LEVEL,  /* its detector measures that it has ended */
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

/* The origin of evidence.  The names are those of metrics and of the tables in docs/reference/faults.md. */
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
	HF_HEALTH_PEERS, /* of the node: several of its devices at once; made by the step alone */
	HF_HEALTH_DETECTORS
};

/* The way by which evidence came; the same fact from two sources is one fact. */
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

/* In lower case with dashes, as in objects; "?" for an unknown number. */
const char *hf_health_class_name(enum hf_health_class cls);
const char *hf_health_action_name(enum hf_health_action action);
const char *hf_health_scope_name(enum hf_health_scope scope);
const char *hf_health_clear_name(enum hf_health_clear clear);
const char *hf_health_severity_name(enum hf_health_severity severity);
const char *hf_health_detector_name(enum hf_health_detector detector);
const char *hf_health_source_name(enum hf_health_source source);
const char *hf_health_state_name(enum hf_health_state state); /* as conditions: "Healthy" */
const char *hf_health_kind_name(enum hf_health_kind kind);
/* The number of a name; false for none.  For files of rules and journals. */
bool hf_health_class_of(const char *name, enum hf_health_class *ret_class);
bool hf_health_action_of(const char *name, enum hf_health_action *ret_action);
bool hf_health_detector_of(const char *name, enum hf_health_detector *ret_detector);
bool hf_health_state_of(const char *name, enum hf_health_state *ret_state);

/* The device cannot be worked with until something is done. */
/* No pod may use a device in this state. Pods that use the device move to another node. */
static inline bool hf_health_is_out(enum hf_health_state state)
{
	return state == HF_HEALTH_UNHEALTHY || state == HF_HEALTH_QUARANTINED ||
	       state == HF_HEALTH_REMEDIATING || state == HF_HEALTH_FAILED;
}

static inline bool hf_health_is_fatal(enum hf_health_class cls)
{
	return cls >= HF_HEALTH_GPU_RESET;
}

/* Makes a device suspect, and, once confirmed, Degraded. */
static inline bool hf_health_is_weak(enum hf_health_class cls)
{
	return cls >= HF_HEALTH_SOFTWARE && cls < HF_HEALTH_GPU_RESET;
}

HF_END_DECLS

#endif
