/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_STEP_H
#define HF_HEALTH_STEP_H

#include "base/error.h"
#include "base/strbuf.h"
#include "health/device_states.h"
#include "health/memory.h"

HF_BEGIN_DECLS

/*
 * The device brain of one node.  One step takes the memory, the input since the last step and the time.  It gives the
 * new memory, changes of states, conditions, events and the time of the next step.  Pure: the same input gives the
 * same bytes, in any order of its lists.
 */

struct hf_health_config {
	const struct hf_health_rules *rules;
	/* number of sightings of weak evidence, within confirm_window, that make the device
	 * Degraded */
	int32_t confirm_count;
	hf_time confirm_window; /* the time within which confirm_count sightings must fall */
	hf_time clear_after;    /* a quiet time of this length ends Suspect and Degraded */
	hf_time probation;
	/* number of entries into Suspect that hold the device there ever longer */
	int32_t flap_count;
	/* number of entries into Suspect within flap_window that make the device Failed */
	int32_t flap_fail;
	hf_time flap_window, hold_base, hold_max;
	hf_time age; /* faults that end by themselves end after this time without new evidence */
	/* a device becomes Unknown if no detector could see it for this time */
	hf_time stale_after;
	/* within this time two reports are one event, and a fault may follow from another */
	hf_time same_event;
	hf_time event_max; /* the longest span of one event */
	/* as same_event, for a lost bus: the kernel prints several lines about one loss */
	hf_time same_bus;
	hf_time peers_window;
	/* conditions are written again after this time, ± 20 % by the node's name */
	hf_time heartbeat;
	hf_time event_every; /* least time between two events about one fault */
};
extern const struct hf_health_config hf_health_config_default;
/* Returns NULL, or the problem of the configuration as a static text. */
const char *hf_health_config_problem(const struct hf_health_config *config);

/* A device that a probe names. */
struct hf_health_presence {
	enum hf_health_kind kind;
	char id[HF_HEALTH_DEVICE_MAX];
	char uuid[HF_HEALTH_UUID_MAX];
	char alias[HF_HEALTH_DEVICE_MAX];
	/* addresses of the PCIe ports above the device; "": the probe does not know them */
	char above[HF_HEALTH_ABOVE_MAX];
};

/* A detector that works: devices that it can see are not Unknown.  A detector without its library, permission or
 * answer is not in the list. */
struct hf_health_heard {
	enum hf_health_detector detector;
	hf_time at;
};

/* A value of count.allocatable: the kubelet offers parts of devices, or devices under other names, so the numbers
 * cannot be compared. */
#define HF_HEALTH_DIVIDED (-2)

/* A measurement of one detector, which fills in its own member of the union.  `supported` false: nothing
 * could be measured, so the sample changes nothing.  Set a sample to zeros with memset() before it is
 * filled in: samples that contradict each other are sorted by their bytes. */
struct hf_health_sample {
	enum hf_health_detector detector;
	enum hf_health_source source;
	hf_time at;
	char device[HF_HEALTH_DEVICE_MAX];
	bool supported;
	union {
		/* For recovery and buslost: NVML's field 230, and what a call for the device returned. */
		struct {
			uint32_t action;
		} recovery;
		struct {
			bool lost; /* NVML returned error 15, or sysfs has no such directory */
			bool reset_required; /* NVML 16 */
			/* NVML: each call about this device fails, while calls about other devices work */
			bool mute;
		} bus;
		struct {
			uint64_t uncorrectable; /* a counter */
			uint32_t remapped_uncorrectable;
			bool remap_known, pending, failed;
		} ecc;
		struct {
			uint64_t reasons; /* NVML's bits */
			uint32_t load_percent;
		} throttle;
		struct {
			/* a number that is equal for devices that can be compared; 0: not known */
			uint64_t model;
			uint64_t reasons; /* why the clock is low: NVML's bits for the reasons */
			uint32_t mhz, load_percent;
		} clock;
		struct {
			uint32_t width, width_max, speed, speed_max; /* speed in 0.1 GT/s */
			uint32_t load_percent;
		} pcie;
		struct {
			uint64_t counter;
			uint32_t lanes, generation;
			uint32_t load_percent; /* load of the device; 0: not known */
		} replay;
		struct {
			/* number of GPUs by each source; -1: not known; HF_HEALTH_DIVIDED: the
			 * numbers cannot be compared */
			int32_t pci, nvml, allocatable;
			int32_t bus; /* GPUs of all makers and drivers on the bus; -1: not known */
		} count;
		struct {
			uint32_t active; /* a bit a link */
			bool health_known;
			/* NVML's bits of the fabric's health; judge.c describes them */
			uint32_t health;
		} nvlink;
		struct {
			bool missing, up;
			/* the port is in another network namespace: only function and driver are seen */
			bool hidden;
			uint64_t link_downed, fatal_errors; /* overrun + integrity + retries */
			uint64_t symbol_errors, recoveries, slow_restarts;
		} ib;
		struct {
			bool mismatch, not_loaded, timed_out;
			/* the source does not serve this node: readers ignore the source's other
			 * fields */
			bool aside;
			/* GPUs that belong to an NVLink fabric, how many of them cannot be used yet, and NVML's
			 * state and status of the first of these; 0 asked: nothing is known. */
			uint32_t fabric_asked, fabric_waiting, fabric_state, fabric_status;
			/* number of GPUs, if all report that they belong to no fabric */
			uint32_t fabric_none;
		} driver;
		struct {
			bool unreachable, resource_gone;
		} plugin;
		struct {
			bool slow;
		} straggler;
		struct {
			/* counted: `uncorrectable` is known; timed: `throttle_percent` is known */
			bool counted, timed;
			uint64_t uncorrectable;
			/* percentage of the time since the last measurement */
			uint32_t throttle_percent;
			uint32_t load_percent; /* load of the device; 0: not known */
		} amd;
	};
};

/* Orders of the fleet controller, or of a person.  `device` "" is the node. */
enum hf_health_order_kind {
	HF_HEALTH_ORDER_QUARANTINE,
	HF_HEALTH_ORDER_REMEDIATE,
	HF_HEALTH_ORDER_VERIFIED, /* the action was done, and its effect was verified */
	HF_HEALTH_ORDER_RUNG_FAILED,
	HF_HEALTH_ORDER_GIVE_UP,
	HF_HEALTH_ORDER_RELEASE,
	HF_HEALTH_ORDER_CLEAR, /* a person has acknowledged the repair */
	HF_HEALTH_ORDERS
};
struct hf_health_order {
	enum hf_health_order_kind kind;
	enum hf_health_action action; /* of VERIFIED */
	hf_time at;
	char device[HF_HEALTH_DEVICE_MAX];
};

struct hf_health_input {
	hf_time now;
	char boot_id[HF_HEALTH_BOOT_MAX];
	/* evidence earlier than this time belongs to an earlier boot; NONE: take all evidence */
	hf_time boot_at;
	/* facts of this boot may be lost; the step copies the value into its memory when a boot
	 * begins (see doubted of struct hf_health_memory) */
	bool doubted;
	const char *node;
	const struct hf_health_presence *devices;
	size_t devices_len;
	const struct hf_health_heard *heard;
	size_t heard_len;
	const struct hf_health_sample *samples;
	size_t samples_len;
	const struct hf_health_evidence *evidence;
	size_t evidence_len;
	const struct hf_health_order *orders;
	size_t orders_len;
};

struct hf_health_move {
	const char *device;
	enum hf_health_state from, to;
	enum hf_health_event event;
	const char *why;
};

struct hf_health_notice {
	const char *device;
	bool warning;
	const char *reason; /* DeviceFault, DeviceRecovered, DeviceFlapping */
	const char *message;
	/* The MIG instance of a fault that does not stop the device; -1: the whole device. */
	int32_t gpu_instance;
};

/* Names of the Node's conditions, in the order of hf_health_memory.conditions. */
extern const char *const hf_health_condition_names[HF_HEALTH_CONDITIONS];

struct hf_health_plan {
	struct hf_health_memory memory;
	/* memory has more changes than `now`: write the journal before anything is published */
	bool changed;
	const struct hf_health_move *moves;
	size_t moves_len;
	const struct hf_health_notice *events;
	size_t events_len;
	bool write_conditions, write_devices;
	const char *label; /* the state of the node as one word, for its label */
	enum hf_health_class cls;
	hf_time wake_at; /* when the next step is due without new input; NEVER: no step is due */
};

/* Makes a step.  memory must have no problem (hf_health_memory_problem).  The plan lives in the arena.
 * HF_E_TOO_LARGE: a list is longer than HF_HEALTH_INPUT_MAX.  HF_E_INVALID: the input has no boot ID. */
int hf_health_step(const struct hf_health_memory *memory, const struct hf_health_input *input,
		   const struct hf_health_config *config, struct hf_arena *arena,
		   struct hf_health_plan *ret_plan, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
