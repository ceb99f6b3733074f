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
	struct hf_health_memory *memory; /* the new one */
	size_t devices_cap;              /* of its devices */
	struct hf_health_plan *plan;
	bool changed;
	struct hf_health_evidence *evidence; /* what came and what samples made */
	size_t evidence_len, evidence_cap;
	struct hf_health_move *moves;
	size_t moves_len, moves_cap;
	struct hf_health_notice *events;
	size_t events_len, events_cap;
	hf_time wake_at;
};

/* brain.c: the next step comes at `at` at the latest, if `at` is in the future. */
void hf_health_wake(struct hf_health_brain *b, hf_time at);
/* Finds the device with that name, or adds it unless `kind` is NODE; NULL: no room. */
struct hf_health_device *hf_health_device_get(struct hf_health_brain *b, const char *name,
					      enum hf_health_kind kind);
/* Adds an empty device; NULL: no room.  Pointers to other devices become invalid. */
struct hf_health_device *hf_health_insert(struct hf_health_brain *b, const char *id,
					  enum hf_health_kind kind);
void hf_health_forget(struct hf_health_brain *b, struct hf_health_device *device);
void hf_health_seen(struct hf_health_brain *b, struct hf_health_device *device);
/* A detector that can see the device worked then, later than the last time. */
void hf_health_hear(struct hf_health_brain *b, struct hf_health_device *device, hf_time at);
void hf_health_event(struct hf_health_brain *b, const struct hf_health_device *device,
		     const char *reason, const char *message);
/* Adds a time to the newest `max` of a list, drops those before `from`. */
void hf_health_times_add(hf_time *times, uint32_t *len, uint32_t max, hf_time at, hf_time from);

/* board_identity.c: joins the named devices with the memory. */
void hf_health_place_boards(struct hf_health_brain *b);

/* judge.c, ports.c: a sample becomes evidence. */
void hf_health_judge(struct hf_health_brain *b);
void hf_health_judge_port(struct hf_health_brain *b, const struct hf_health_sample *s,
			  struct hf_health_track *t);
/* The port is in another network namespace, where no detector sees it. */
bool hf_health_port_is_hidden(const struct hf_health_device *device);
/* Evidence of a sample about a fault (code) or its end (0: of all). */
void hf_health_find(struct hf_health_brain *b, const struct hf_health_sample *s, int32_t code,
		    const char *line);
void hf_health_clear(struct hf_health_brain *b, const struct hf_health_sample *s, int32_t code);

/* faults.c: evidence becomes faults; a fault ends. */
void hf_health_faults_apply(struct hf_health_brain *b);
void hf_health_faults_age(struct hf_health_brain *b);
/* The fault is no stop of its device alone: undoes its count and its raised class. */
void hf_health_fault_uncount(struct hf_health_device *device, struct hf_health_fault *fault);
/* The fault was the node's or followed from another one. From now on it acts for itself, with its confirmed class. */
void hf_health_fault_own(struct hf_health_brain *b, struct hf_health_device *device,
			 struct hf_health_fault *fault);
/* Adds a fault from another device's list; if there is no room, the mildest fault gives way. */
void hf_health_fault_keep(struct hf_health_brain *b, struct hf_health_device *device,
			  const struct hf_health_fault *fault);
void hf_health_fault_close(struct hf_health_brain *b, struct hf_health_fault *fault);
void hf_health_fault_sight(struct hf_health_brain *b, struct hf_health_device *device, hf_time at);
/* For shared_faults.c, too: the fault of the device by the evidence and its rule. */
struct hf_health_fault *hf_health_fault_see(struct hf_health_brain *b,
					    struct hf_health_device *device,
					    const struct hf_health_evidence *e);

void hf_health_find_shared(
	struct hf_health_brain *b);                   /* shared_faults.c: several devices at once */
void hf_health_begin_boot(struct hf_health_brain *b); /* orders.c */
void hf_health_apply_orders(struct hf_health_brain *b); /* orders.c */

/* device_events.c: the faults of a device become events of its state table (device_states.h). */
/* Recent sightings confirm the weak fault. */
bool hf_health_is_confirmed(const struct hf_health_brain *b, const struct hf_health_device *d);
bool hf_health_move(struct hf_health_brain *b, struct hf_health_device *device,
		    enum hf_health_event event, const char *why);
void hf_health_move_devices(struct hf_health_brain *b);

void hf_health_publish(struct hf_health_brain *b); /* publish.c */

HF_END_DECLS

#endif
