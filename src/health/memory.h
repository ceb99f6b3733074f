/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_MEMORY_H
#define HF_HEALTH_MEMORY_H

#include "base/arena.h"
#include "health/rules.h"

HF_BEGIN_DECLS

/*
 * The memory of the device brain between two steps of a node; the agent writes it to its journal.  All
 * texts are inline.  The devices are one array: the node itself (id "") first, the others by id.  Times are
 * of the steps' clock; HF_TIME_NONE: never.
 */

/* Entries into Suspect that are kept; a configured limit may not be higher. */
#define HF_HEALTH_FLAPS_MAX 8
/* Sightings that are kept; a configured limit may not be higher. */
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
	bool follows;  /* by its rule a consequence, if another fault fits */
	bool attached; /* the consequence of another fault of the device: never acts */
	bool of_loss;  /* a link to a device off the bus, whose fault acts instead */
	bool covered;  /* part of a fault of the node, which acts instead */
	bool of_port;  /* began with the failure of a PCIe port above the device, its known cause */
	bool passed; /* acted until the kernel recovered the device in this step; false between steps */
	bool confirmed; /* seen often enough while it stood to be more than a suspicion */
	bool program;   /* counts errors that programs may cause */
	bool raised;    /* raised because the device stopped too often; before that it was: */
	enum hf_health_class milder_cls;
	enum hf_health_action milder_action;
	enum hf_health_clear milder_clear;
	uint32_t sources; /* a bit for each enum hf_health_source */
	hf_time opened_at, last, closed_at, told_at;
	bool told_part;   /* the event named one MIG instance */
	hf_time event_at; /* the first evidence of the last event */
	uint64_t count;   /* evidence in this boot */
	hf_time repeats[HF_HEALTH_REPEATS_MAX];
	uint32_t repeats_len;
	int32_t gpu_instance, compute_instance;
	uint64_t seq;
	char unit[HF_HEALTH_UNIT_MAX];
	char line[HF_HEALTH_LINE_MAX];
};

/* What a judge of samples remembers of one device; see judge.c for what the numbers are. */
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
		[HF_HEALTH_ABOVE_MAX]; /* PCIe ports between the device and the processor, in this boot */
	enum hf_health_kind kind;
	bool owned; /* quarantined by an order, until an order releases it */
	bool seen;  /* named in this boot, or with evidence of this boot */
	enum hf_health_state state;
	hf_time since;
	uint64_t generation; /* of states: grows by one with each */
	hf_time heard_at;    /* last time of a working detector for this device */
	hf_time watched_at;  /* detectors work without a pause since then */
	hf_time fresh_after; /* the boot or cure; earlier evidence is dropped */
	hf_time weak_at;     /* last evidence that counts against it */
	hf_time sightings[HF_HEALTH_SIGHTINGS_MAX]; /* of weak faults, the newest last */
	uint32_t sightings_len;
	hf_time fatals[HF_HEALTH_REPEATS_MAX]; /* its stops */
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

const char *hf_health_truth_name(enum hf_health_truth truth); /* as Kubernetes writes it */

/* A condition of the Node; True is a problem. */
struct hf_health_condition {
	enum hf_health_truth status;
	hf_time changed_at; /* of the status */
	char reason[HF_HEALTH_REASON_MAX];
	char message[HF_HEALTH_MESSAGE_MAX];
};

struct hf_health_memory {
	char boot_id[HF_HEALTH_BOOT_MAX]; /* "": nothing is remembered */
	hf_time now;                      /* of the last step: time does not go back */
	/* A journal of this boot is lost.  No device becomes Healthy before the next boot, or before a person acknowledges the
	 * node. */
	bool doubted;
	uint64_t rules_hash;
	uint64_t evidence_dropped; /* older than the boot or than a verified cure */
	uint64_t faults_dropped;   /* no room */
	/* The last conditions that were given out, and the limit of writes. */
	struct hf_health_condition conditions[HF_HEALTH_CONDITIONS];
	hf_time written_at;
	uint64_t written_hash; /* of the devices */
	hf_time tokens_at;
	int64_t tokens_ms; /* a write costs 1000 */
	/* The most GPUs that were named in this boot, and in the boot before.  Likewise those on the bus, with GPUs of other
	 * drivers. */
	uint32_t gpus, gpus_before;
	uint32_t bus, bus_before;
	bool counted; /* GPUs were counted in this boot */
	bool offered; /* the kubelet offers GPUs, and no other source has seen one */
	size_t devices_len;
	struct hf_health_device *devices; /* of the arena that the step got */
};

/* An empty memory, for a new node and for a journal that cannot be read. */
void hf_health_memory_init(struct hf_health_memory *memory);
/* Copies the memory into another arena, with room for `more` devices. */
struct hf_health_memory *hf_health_memory_copy(const struct hf_health_memory *memory, size_t more,
					       struct hf_arena *arena);
/* Moves all times by `by`, for a boot whose clock begins behind that of the last boot: an hour ago stays an hour ago.  No time
 * becomes less than 1. */
void hf_health_memory_shift(struct hf_health_memory *memory, hf_time by);
/* GPUs are missing, so the node is Unknown though the others may be well. */
bool hf_health_memory_misses(const struct hf_health_memory *memory);
/* NULL, or what is wrong with a memory that was read from a journal, a static text.  A step takes only a memory without a
 * problem. */
const char *hf_health_memory_problem(const struct hf_health_memory *memory);
/* Finds a device by id, else by uuid or alias; of several the device that has been seen in this boot.  "" is the node.
 * NULL: there is none. */
struct hf_health_device *hf_health_memory_find(const struct hf_health_memory *memory,
					       const char *name);

/* The fault is a consequence of another fault, of this device or another, and does not act. */
static inline bool hf_health_fault_follows(const struct hf_health_fault *fault)
{
	return fault->attached || fault->of_loss;
}

/* The cause of the fault is a PCIe port above the device; its unit is the port, and all devices below have it. */
bool hf_health_fault_is_of_port(const struct hf_health_fault *fault);
/* Finds the PCIe port of `above` that the address names; another function of the upstream port of a switch names that
 * port.  Returns its place in `above`, 0 is the port nearest to the processor; -1: none. */
int hf_health_find_above(const char above[HF_HEALTH_ABOVE_MAX], const char *address,
			 char ret_port[HF_HEALTH_DEVICE_MAX]);

/* The fault counts against its device. */
static inline bool hf_health_fault_acts(const struct hf_health_fault *fault)
{
	return fault->open && !hf_health_fault_follows(fault) && !fault->covered;
}

/* The MIG instance that the fault's line names; -1: no line does, or there were several lines, perhaps about different
 * instances. */
static inline int32_t hf_health_fault_instance(const struct hf_health_fault *fault)
{
	return fault->count == 1 && fault->line[0] != '\0' ? fault->gpu_instance : -1;
}

/* `a` is of a stricter class, or of the same class and needs a stronger action. */
bool hf_health_fault_is_graver(const struct hf_health_fault *a, const struct hf_health_fault *b);
/* The first of the gravest faults that act; NULL: none does. */
const struct hf_health_fault *hf_health_device_worst(const struct hf_health_device *device);
/* The class of that fault; HF_HEALTH_NONE: no fault acts. */
enum hf_health_class hf_health_device_class(const struct hf_health_device *device);

HF_END_DECLS

#endif
