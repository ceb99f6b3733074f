/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_MEMORY_H
#define HF_HEALTH_MEMORY_H

#include "base/arena.h"
#include "health/rules.h"

HF_BEGIN_DECLS

/*
 * What the device brain remembers of a node between two steps; whoever keeps it writes it to a
 * journal.  All texts are inline; the devices are one array, the node itself (id "") first, the
 * others by id.  Times are those of the steps' clock; HF_TIME_NONE: never.
 */

/* Entries into Suspect that are remembered; no limit of them may be set higher. */
#define HF_HEALTH_FLAPS_MAX 8
/* Sightings that confirm; no limit of them may be set higher. */
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
	bool follows;  /* its rule says that it is a consequence beside another */
	bool attached; /* the consequence of another fault of the device: never acts */
	bool of_loss;  /* a link to a device that is off the bus now: acts there */
	bool covered;  /* part of what happened to the node: acts there */
	bool of_port;  /* began with the failure of a PCIe port above the device, its known cause */
	bool passed; /* acted until the kernel recovered the device in this step; false between steps */
	bool confirmed; /* seen often enough while it stood to be more than a suspicion */
	bool program;   /* made of what programs did, by counting it */
	bool raised;    /* for the stops of its device, from: */
	enum hf_health_class milder_cls;
	enum hf_health_action milder_action;
	enum hf_health_clear milder_clear;
	uint32_t sources; /* a bit for each enum hf_health_source */
	hf_time opened_at, last, closed_at, told_at;
	bool told_part;   /* to those of one of its instances alone */
	hf_time event_at; /* the first line of the event that the last one belongs to */
	uint64_t count;   /* since it was first seen in this boot */
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
	bool owned; /* quarantined by somebody who will release it */
	bool seen;  /* in this boot somebody has named it, or had evidence of it */
	enum hf_health_state state;
	hf_time since;
	uint64_t generation;                        /* of states: grows by one with each */
	hf_time heard_at;                           /* some detector that can see it worked */
	hf_time watched_at;                         /* without a pause since then */
	hf_time fresh_after;                        /* evidence from before tells of another life */
	hf_time weak_at;                            /* last evidence that counts against it */
	hf_time sightings[HF_HEALTH_SIGHTINGS_MAX]; /* of what is weak, the newest last */
	uint32_t sightings_len;
	hf_time fatals[HF_HEALTH_REPEATS_MAX]; /* of what is fatal */
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
	/* More was known in this boot and is lost: that nothing is heard against a device does not make it
	 * well, until the next boot or a person's word about the node. */
	bool doubted;
	uint64_t rules_hash;
	uint64_t evidence_dropped; /* older than the boot or than a verified cure */
	uint64_t faults_dropped;   /* no room */
	/* As last given out to be written, and what limits the writing. */
	struct hf_health_condition conditions[HF_HEALTH_CONDITIONS];
	hf_time written_at;
	uint64_t written_hash; /* of the devices */
	hf_time tokens_at;
	int64_t tokens_ms; /* a write costs 1000 */
	/* GPUs that were named: the most in this boot, and in the one before; and those on the bus, with what
	 * other drivers have. */
	uint32_t gpus, gpus_before;
	uint32_t bus, bus_before;
	bool counted; /* they were, in this boot */
	bool offered; /* the kubelet offers some, and nobody else has seen any */
	size_t devices_len;
	struct hf_health_device *devices; /* of the arena that the step got */
};

/* Nothing known: what a node begins with, and what a journal that cannot be read gives. */
void hf_health_memory_init(struct hf_health_memory *memory);
/* With its devices and room for so many more, into another arena. */
struct hf_health_memory *hf_health_memory_copy(const struct hf_health_memory *memory, size_t more,
					       struct hf_arena *arena);
/* All its times by so much, so that what was an hour ago still is: for a boot whose clock begins behind
 * the last one's.  None becomes less than 1. */
void hf_health_memory_shift(struct hf_health_memory *memory, hf_time by);
/* GPUs that should be here have not been seen: what is left may be well, the node is Unknown. */
bool hf_health_memory_misses(const struct hf_health_memory *memory);
/* NULL, or what cannot be in a memory that was read from a journal: a static text.  A step takes
 * only what is sound. */
const char *hf_health_memory_problem(const struct hf_health_memory *memory);
/* By id, else by uuid or alias, of several the one that has been seen in this boot; "" is the node.
 * NULL: none. */
struct hf_health_device *hf_health_memory_find(const struct hf_health_memory *memory,
					       const char *name);

/* It says nothing of its device by itself: another fault does, of this device or of another. */
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

/* It counts against its device now. */
static inline bool hf_health_fault_acts(const struct hf_health_fault *fault)
{
	return fault->open && !hf_health_fault_follows(fault) && !fault->covered;
}

/* The GPU instance (MIG) that its line names; -1: none does, or there were several, which may be of different
 * ones. */
static inline int32_t hf_health_fault_instance(const struct hf_health_fault *fault)
{
	return fault->count == 1 && fault->line[0] != '\0' ? fault->gpu_instance : -1;
}

/* `a` is of a stricter class, or of the same class and needs a stronger action. */
bool hf_health_fault_is_graver(const struct hf_health_fault *a, const struct hf_health_fault *b);
/* The first of the gravest faults that act; NULL: none does. */
const struct hf_health_fault *hf_health_device_worst(const struct hf_health_device *device);
/* Its class; HF_HEALTH_NONE: none acts. */
enum hf_health_class hf_health_device_class(const struct hf_health_device *device);

HF_END_DECLS

#endif
