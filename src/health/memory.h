/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_MEMORY_H
#define HF_HEALTH_MEMORY_H

#include "base/arena.h"
#include "health/rules.h"

HF_BEGIN_DECLS

/*
 * The memory of the device brain between two steps of a node; the agent writes it to its journal.  All texts are
 * inline.  The devices are one array: the node itself (id "") first, the others by id.  Times are of the steps'
 * clock; HF_TIME_NONE: never.
 */

/* Most entries into Suspect that are kept; a limit in the configuration may not be higher. */
#define HF_HEALTH_FLAPS_MAX 8
/* Most sightings that are kept; a limit in the configuration may not be higher. */
#define HF_HEALTH_SIGHTINGS_MAX 8
#define HF_HEALTH_CONDITIONS 4
#define HF_HEALTH_REASON_MAX 48
#define HF_HEALTH_MESSAGE_MAX 1025 /* 1 KiB and the NUL */

struct hf_health_fault {
	enum hf_health_detector detector;
	enum hf_health_severity severity;
	int32_t code, subcode;
	enum hf_health_class cls;
	enum hf_health_action action;
	enum hf_health_scope scope;
	enum hf_health_clear clear;
	bool open;
	/* by its rule the fault is a consequence, if the device has a fault that may cause it */
	bool follows;
	bool attached; /* the fault is a consequence of another fault of the device: it never acts */
	/* a fault of a link to a device that is off the bus; the loss of that device acts instead */
	bool of_loss;
	bool covered; /* the fault is part of a fault of the node, which acts instead */
	/* the fault began with the failure of a PCIe port above the device */
	bool of_port;
	/* the fault acted until a recovery in this step; false between steps */
	bool passed;
	bool confirmed; /* the fault was seen often enough to be more than a suspicion */
	bool program;   /* the fault counts errors that a program may cause */
	/* the class was raised because the device stopped too often; before that it was milder_cls: */
	bool raised;
	enum hf_health_class milder_cls;
	enum hf_health_action milder_action;
	enum hf_health_clear milder_clear;
	uint32_t sources; /* a bit for each enum hf_health_source */
	hf_time opened_at, last, closed_at, told_at;
	bool told_part;   /* the published event about the fault named one MIG instance */
	hf_time event_at; /* time of the first evidence of the last event */
	uint64_t count;   /* how many pieces of evidence of the fault came in this boot */
	hf_time repeats[HF_HEALTH_REPEATS_MAX];
	uint32_t repeats_len;
	int32_t gpu_instance, compute_instance;
	uint64_t seq;
	char unit[HF_HEALTH_UNIT_MAX];
	char line[HF_HEALTH_LINE_MAX];
};

/* What a judge of samples remembers about one device; judge.c and ports.c describe the numbers. */
struct hf_health_track {
	bool primed, firing;
	uint16_t bad, good;
	hf_time since, at;
	uint64_t base[9];
};

struct hf_health_device {
	char id[HF_HEALTH_DEVICE_MAX];
	char uuid[HF_HEALTH_UUID_MAX];
	char alias[HF_HEALTH_DEVICE_MAX]; /* the PCI address of a port */
	char above
		/* addresses of the PCIe ports between the device and the processor, in this boot */
		[HF_HEALTH_ABOVE_MAX];
	enum hf_health_kind kind;
	bool owned; /* an order has quarantined the device, and none has released it */
	/* in this boot, a probe named the device or evidence about the device arrived */
	bool seen;
	enum hf_health_state state;
	hf_time since;
	uint64_t generation; /* increases by 1 with every change of the state */
	hf_time heard_at;    /* the last time at which a working detector could see the device */
	hf_time watched_at;  /* since when detectors have worked without a pause */
	hf_time fresh_after; /* time of the boot, or of a cure; earlier evidence is dropped */
	hf_time weak_at;     /* time of the last evidence that counts against the device */
	/* times at which weak faults were seen, the newest last */
	hf_time sightings[HF_HEALTH_SIGHTINGS_MAX];
	uint32_t sightings_len;
	hf_time fatals[HF_HEALTH_REPEATS_MAX]; /* times at which faults stopped the device */
	uint32_t fatals_len;
	hf_time flaps[HF_HEALTH_FLAPS_MAX];
	uint32_t flaps_len;
	hf_time hold_until;
	struct hf_health_fault faults[HF_HEALTH_FAULTS_MAX];
	size_t faults_len;
	struct hf_health_track tracks[HF_HEALTH_DETECTORS];
};

enum hf_health_truth {
	HF_HEALTH_UNCERTAIN, /* "Unknown" */
	HF_HEALTH_TRUE,
	HF_HEALTH_FALSE,
};

const char *hf_health_truth_name(enum hf_health_truth truth); /* "True", "False" or "Unknown" */

/* A condition of the Node; status True is a problem. */
struct hf_health_condition {
	enum hf_health_truth status;
	hf_time changed_at; /* when `status` last changed */
	char reason[HF_HEALTH_REASON_MAX];
	char message[HF_HEALTH_MESSAGE_MAX];
};

struct hf_health_memory {
	char boot_id[HF_HEALTH_BOOT_MAX]; /* "": nothing is remembered */
	hf_time now;                      /* time of the last step: time does not go back */
	/* A journal of this boot is lost.  No device becomes Healthy before the next boot, or before a person
	 * acknowledges the node. */
	bool doubted;
	uint64_t rules_hash;
	/* number of pieces of evidence that were older than the boot or a verified cure */
	uint64_t evidence_dropped;
	/* number of open faults and of devices for which the memory had no room */
	uint64_t faults_dropped;
	/* The conditions, the time and the hash of the devices, as of the last plan with a write
	 * to the API server. */
	struct hf_health_condition conditions[HF_HEALTH_CONDITIONS];
	hf_time written_at;
	uint64_t written_hash;
	/* The limit of writes: tokens_ms grows by one each millisecond, and a write costs 1000.
	 * tokens_at: the time up to which the growth is counted. */
	hf_time tokens_at;
	int64_t tokens_ms;
	/* The largest number of GPUs named in this boot, and in the boot before; bus: the same for GPUs on the
	 * bus, with GPUs of other drivers. */
	uint32_t gpus, gpus_before;
	uint32_t bus, bus_before;
	bool counted; /* GPUs were counted in this boot */
	bool offered; /* the kubelet offers GPUs, and no other source has found one */
	size_t devices_len;
	struct hf_health_device *devices; /* the devices lie in the arena that the step got */
};

/* Makes an empty memory, for a new node or if the journal cannot be read. */
void hf_health_memory_init(struct hf_health_memory *memory);
/* Copies the memory into another arena, with room for `more` devices. */
struct hf_health_memory *hf_health_memory_copy(const struct hf_health_memory *memory, size_t more,
					       struct hf_arena *arena);
/* Moves all times by `by` after a reboot, because the clock of the new boot begins again: an hour
 * ago stays an hour ago. No time becomes less than 1. */
void hf_health_memory_shift(struct hf_health_memory *memory, hf_time by);
/* Whether GPUs are missing: then the node is Unknown though its other GPUs may be well. */
bool hf_health_memory_misses(const struct hf_health_memory *memory);
/* Returns NULL, or what is wrong with a memory that was read from a journal, as a static text.  A step accepts
 * only a memory without a problem. */
const char *hf_health_memory_problem(const struct hf_health_memory *memory);
/* Finds a device by its id, else by its UUID or alias; of several the device that was seen in this boot.  "" is
 * the node.  NULL: there is no such device. */
struct hf_health_device *hf_health_memory_find(const struct hf_health_memory *memory,
					       const char *name);

/* Whether the fault is a consequence of another fault, of this device or another, and so does not act. */
static inline bool hf_health_fault_follows(const struct hf_health_fault *fault)
{
	return fault->attached || fault->of_loss;
}

/* Whether the cause of the fault is a PCIe port above the device: the unit names the port, and all devices below
 * have the fault. */
bool hf_health_fault_is_of_port(const struct hf_health_fault *fault);
/* Finds the PCIe port of `above` that the address names; another function of the upstream port of a switch names
 * that port.  Returns the port's index in `above` (0: the port nearest to the processor); -1: none. */
int hf_health_find_above(const char above[HF_HEALTH_ABOVE_MAX], const char *address,
			 char ret_port[HF_HEALTH_DEVICE_MAX]);

/* The fault counts against its device. */
static inline bool hf_health_fault_acts(const struct hf_health_fault *fault)
{
	return fault->open && !hf_health_fault_follows(fault) && !fault->covered;
}

/* The MIG instance that the fault's line names; -1: no line names one, or several lines may have named different
 * instances. */
static inline int32_t hf_health_fault_instance(const struct hf_health_fault *fault)
{
	return fault->count == 1 && fault->line[0] != '\0' ? fault->gpu_instance : -1;
}

/* Whether `a` is of a stricter class than `b`, or of the same class with a stronger action. */
bool hf_health_fault_is_graver(const struct hf_health_fault *a, const struct hf_health_fault *b);
/* The gravest fault that acts; of several the first.  NULL: no fault acts. */
const struct hf_health_fault *hf_health_device_worst(const struct hf_health_device *device);
/* The class of the gravest fault that acts; HF_HEALTH_NONE: no fault acts. */
enum hf_health_class hf_health_device_class(const struct hf_health_device *device);

HF_END_DECLS

#endif
