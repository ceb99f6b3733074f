/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_BRAIN_INTERNAL_H
#define HF_HEALTH_BRAIN_INTERNAL_H

#include "health/step.h"

HF_BEGIN_DECLS

/* The working state of one step. */
struct hf_health_brain {
	const struct hf_health_input *input;
	const struct hf_health_config *config;
	struct hf_arena *arena;
	hf_time now;
	struct hf_health_memory *memory; /* the memory that the step makes */
	size_t devices_cap;              /* for how many devices memory->devices has room */
	struct hf_health_plan *plan;
	bool changed;
	/* the evidence of the input, and that made from samples */
	struct hf_health_evidence *evidence;
	size_t evidence_len, evidence_cap;
	struct hf_health_move *moves;
	size_t moves_len, moves_cap;
	struct hf_health_notice *events;
	size_t events_len, events_cap;
	hf_time wake_at;
};

/* brain.c: the next step comes at the time `at` or earlier, if that time is in the future. */
void hf_health_wake(struct hf_health_brain *b, hf_time at);
/* Finds the device with that name, or adds it unless `kind` is NODE.  NULL: the memory has no room. */
struct hf_health_device *hf_health_device_get(struct hf_health_brain *b, const char *name,
					      enum hf_health_kind kind);
/* Adds an empty device; NULL: the memory has no room.  Pointers to other devices become invalid. */
struct hf_health_device *hf_health_insert(struct hf_health_brain *b, const char *id,
					  enum hf_health_kind kind);
void hf_health_forget(struct hf_health_brain *b, struct hf_health_device *device);
void hf_health_seen(struct hf_health_brain *b, struct hf_health_device *device);
/* Notes that a detector could see the device at that time, if the time is later than the last one noted. */
void hf_health_hear(struct hf_health_brain *b, struct hf_health_device *device, hf_time at);
void hf_health_event(struct hf_health_brain *b, const struct hf_health_device *device,
		     const char *reason, const char *message);
/* Adds a time to a list of the newest `max` times, and drops times before `from`. */
void hf_health_times_add(hf_time *times, uint32_t *len, uint32_t max, hf_time at, hf_time from);

/* board_identity.c: finds the devices that the input names in the memory. */
void hf_health_place_boards(struct hf_health_brain *b);

/* judge.c, ports.c: a sample becomes evidence. */
void hf_health_judge(struct hf_health_brain *b);
void hf_health_judge_port(struct hf_health_brain *b, const struct hf_health_sample *s,
			  struct hf_health_track *t);
/* Whether the port is in another network namespace, where no detector sees it. */
bool hf_health_port_is_hidden(const struct hf_health_device *device);
/* Adds the evidence of a sample: a fault with this code, or the end of a fault (code 0: of all faults of the
 * detector). */
void hf_health_find(struct hf_health_brain *b, const struct hf_health_sample *s, int32_t code,
		    const char *line);
void hf_health_clear(struct hf_health_brain *b, const struct hf_health_sample *s, int32_t code);

/* faults.c: makes faults of the evidence, and ends faults. */
void hf_health_faults_apply(struct hf_health_brain *b);
void hf_health_faults_age(struct hf_health_brain *b);
/* Tells that the fault alone did not stop its device: undoes the stop that it counted, and the class that was
 * raised for it. */
void hf_health_fault_uncount(struct hf_health_device *device, struct hf_health_fault *fault);
/* From now on the fault counts for itself, with its confirmed class: before, it belonged to the node or followed
 * from another fault. */
void hf_health_fault_own(struct hf_health_brain *b, struct hf_health_device *device,
			 struct hf_health_fault *fault);
/* Adds a fault from another device's list.  If there is no room, the mildest fault is dropped. */
void hf_health_fault_keep(struct hf_health_brain *b, struct hf_health_device *device,
			  const struct hf_health_fault *fault);
void hf_health_fault_close(struct hf_health_brain *b, struct hf_health_fault *fault);
void hf_health_fault_sight(struct hf_health_brain *b, struct hf_health_device *device, hf_time at);
/* Finds or opens the device's fault for this evidence and its rule; shared_faults.c calls it too. */
struct hf_health_fault *hf_health_fault_see(struct hf_health_brain *b,
					    struct hf_health_device *device,
					    const struct hf_health_evidence *e);

void hf_health_find_shared(
	struct hf_health_brain *b);                   /* shared_faults.c: several devices at once */
void hf_health_begin_boot(struct hf_health_brain *b); /* orders.c */
void hf_health_apply_orders(struct hf_health_brain *b); /* orders.c */

/* device_events.c: finds the events of a device, for the table in device_states.h, from its faults. */
/* Recent sightings confirm the weak fault. */
bool hf_health_is_confirmed(const struct hf_health_brain *b, const struct hf_health_device *d);
bool hf_health_move(struct hf_health_brain *b, struct hf_health_device *device,
		    enum hf_health_event event, const char *why);
void hf_health_move_devices(struct hf_health_brain *b);

void hf_health_publish(struct hf_health_brain *b); /* publish.c */

HF_END_DECLS

#endif
