/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_TROUBLE_H
#define HF_TESTS_SIM_TROUBLE_H

#include "base/random.h"
#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The kinds of trouble. Each kind has its own random numbers, so leaving one trouble out changes no
 * other trouble. Each trouble has a name, such as "reply-lost:3" (the fourth of its kind). With
 * these names a failure is made small.
 */

/* What causes a trouble, and what the weight of its kind means. */
enum sim_group {
	SIM_BY_REQUEST, /* permille of requests */
	SIM_BY_EVENT,   /* permille of watch events */
	SIM_BY_LIFE,    /* the kind's share of the troubles of operators' processes */
	SIM_BY_PEOPLE,  /* the kind's share of the deeds of people and other programs */
	SIM_BY_POD,     /* the kind's share of the troubles of pods */
	SIM_BY_NODE,    /* the kind's share of the troubles of nodes */
	SIM_GROUPS,
};

/* kind, name, group, little, much */
#define SIM_TROUBLES_LIST(X)                                                                       \
	X(REFUSE_409, "409", REQUEST, 5, 60)                                                       \
	X(REFUSE_429, "429", REQUEST, 5, 60)                                                       \
	X(REFUSE_500, "500", REQUEST, 5, 60)                                                       \
	X(REFUSE_503, "503", REQUEST, 5, 60)                                                       \
	X(REFUSE_TIMEOUT, "time-out", REQUEST, 5, 60)                                              \
	X(REFUSE_QUOTA, "quota", REQUEST, 5, 100)                                                  \
	X(REPLY_LOST, "reply-lost", REQUEST, 20, 100)                                              \
	X(REPLY_LATE, "reply-late", REQUEST, 50, 300)                                              \
	X(LIST_LATE, "list-late", REQUEST, 100, 500)                                               \
	X(LIST_PAST, "list-past", REQUEST, 100, 500)                                               \
	X(DIES_UNSENT, "dies-unsent", REQUEST, 3, 15)                                              \
	X(DIES_UNANSWERED, "dies-unanswered", REQUEST, 3, 15)                                      \
	X(DIES_LATER, "dies-later", REQUEST, 5, 30)                                                \
	X(MEDDLED, "meddled", REQUEST, 5, 30)                                                      \
	X(WATCH_410, "watch-410", EVENT, 3, 50)                                                    \
	X(WATCH_5XX, "watch-5xx", EVENT, 3, 70)                                                    \
	X(WATCH_LATE, "watch-late", EVENT, 50, 300)                                                \
	X(WATCH_LAG, "watch-lag", EVENT, 3, 15)                                                    \
	X(WATCH_TWICE, "watch-twice", EVENT, 20, 200)                                              \
	X(WATCH_LOST, "watch-lost", EVENT, 3, 20)                                                  \
	X(DIES_AT_EVENT, "dies-at-event", EVENT, 1, 5)                                             \
	X(PAUSED, "paused", LIFE, 1, 3)                                                            \
	X(CLOCK_OPERATOR, "operator-clock", LIFE, 1, 1)                                            \
	X(CLOCK_SERVER, "server-clock", LIFE, 1, 1)                                                \
	X(KILLED, "killed", LIFE, 1, 3)                                                            \
	X(JOB_MADE, "job-made", PEOPLE, 15, 15)                                                    \
	X(JOB_DELETED, "job-deleted", PEOPLE, 10, 10)                                              \
	X(SUSPENDED, "suspended", PEOPLE, 15, 30)                                                  \
	X(RESUMED, "resumed", PEOPLE, 20, 40)                                                      \
	X(SCALED, "scaled", PEOPLE, 15, 30)                                                        \
	X(EDITED, "edited", PEOPLE, 8, 20)                                                         \
	X(RESTARTED, "restarted", PEOPLE, 15, 15)                                                  \
	X(LABELED, "labeled", PEOPLE, 15, 15)                                                      \
	X(KUEUE_STOPS, "kueue-stops", PEOPLE, 8, 20)                                               \
	X(KUEUE_STARTS, "kueue-starts", PEOPLE, 12, 30)                                            \
	X(POD_DELETED, "pod-deleted", PEOPLE, 20, 40)                                              \
	X(POD_FORCED, "pod-forced", PEOPLE, 5, 10)                                                 \
	X(SERVICE_DELETED, "service-deleted", PEOPLE, 10, 10)                                      \
	X(SQUATTED, "squatted", PEOPLE, 10, 10)                                                    \
	X(STATUS_FOREIGN, "foreign-status", PEOPLE, 15, 15)                                        \
	X(FINALIZER, "finalizer", PEOPLE, 5, 10)                                                   \
	X(EXITED, "exited", POD, 40, 60)                                                           \
	X(OOM_KILLED, "oom-killed", POD, 10, 10)                                                   \
	X(PREEMPTED, "preempted", POD, 10, 15)                                                     \
	X(EVICTED_API, "evicted-api", POD, 10, 15)                                                 \
	X(EVICTED_NODE, "evicted-node", POD, 10, 15)                                               \
	X(OWN_LIMIT, "own-limit", POD, 5, 10)                                                      \
	X(VANISHED, "vanished", POD, 5, 10)                                                        \
	X(REJECTED, "rejected", POD, 10, 20)                                                       \
	X(STUCK, "stuck-ending", POD, 5, 5)                                                        \
	X(NODE_OFF, "node-off", NODE, 20, 20)                                                      \
	X(KUBELET_DEAD, "kubelet-dead", NODE, 20, 20)                                              \
	X(PARTITIONED, "partitioned", NODE, 15, 15)                                                \
	X(FLAPPING, "flapping", NODE, 10, 10)                                                      \
	X(NOT_READY, "not-ready", NODE, 10, 10)                                                    \
	X(REBOOTED, "rebooted", NODE, 10, 10)                                                      \
	X(SHUTDOWN, "shutdown", NODE, 10, 10)                                                      \
	X(NODE_DELETED, "node-deleted", NODE, 15, 15)                                              \
	X(NODE_REMADE, "node-remade", NODE, 5, 5)                                                  \
	X(ZONE_OFF, "zone-off", NODE, 5, 10)                                                       \
	X(OUT_OF_SERVICE, "out-of-service", NODE, 10, 10)                                          \
	X(DRAINED, "drained", NODE, 10, 10)                                                        \
	X(NODE_CLOCK, "node-clock", NODE, 5, 5)                                                    \
	X(KCM_RESTART, "kcm-restart", NODE, 5, 5)                                                  \
	X(DEVICE_FAILED, "device-failed", NODE, 20, 40)                                            \
	X(HUNG, "hung", POD, 20, 40)                                                               \
	X(AGENT_DEAD, "agent-dead", NODE, 10, 20)                                                  \
	X(RECORD_LOST, "record-lost", NODE, 5, 10)                                                 \
	X(PLUGIN_FAILS, "plugin-fails", POD, 10, 20)                                               \
	X(PLUGIN_BLINKS, "plugin-blinks", POD, 10, 20)                                             \
	X(PLUGIN_SILENT, "plugin-silent", POD, 5, 10)
/* kinds from here on happen only where ranks report their steps */
#define SIM_TRAINING_FIRST SIM_HUNG
/* kinds from here on happen only where ranks have fences */
#define SIM_FENCES_FIRST SIM_RECORD_LOST
/* kinds from here on happen only where kubelets report devices */
#define SIM_PLUGINS_FIRST SIM_PLUGIN_FAILS

#define SIM_KIND(kind, name, group, little, much) SIM_##kind,
enum sim_trouble { SIM_TROUBLES_LIST(SIM_KIND) SIM_TROUBLES };
#undef SIM_KIND

struct sim_trouble_info {
	const char *name;
	enum sim_group group;
	unsigned little, much;
};
extern const struct sim_trouble_info sim_troubles[SIM_TROUBLES];

/* What a job was doing when a trouble happened. */
enum sim_state {
	SIM_NO_JOB,
	SIM_IN_CREATED,
	SIM_IN_RUNNING,
	SIM_IN_RESTARTING,
	SIM_IN_TEARING,
	SIM_IN_CREATING,
	SIM_IN_SUSPENDING,
	SIM_IN_SUSPENDED,
	SIM_IN_ENDED,
	SIM_STATES,
};
struct sim_coverage {
	unsigned long long hits[SIM_TROUBLES][SIM_STATES];
};
void sim_coverage_add(struct sim_coverage *to, const struct sim_coverage *from);
void sim_coverage_print(const struct sim_coverage *coverage);

/* A set of troubles. The number of a trouble is kind * SIM_ORDINALS + its place among its kind,
 * from 0. */
#define SIM_ORDINALS 100000u
struct sim_ids {
	uint32_t *ids;
	size_t len, size;
};
void sim_ids_push(struct sim_ids *set, uint32_t id);
bool sim_ids_have(const struct sim_ids *set, uint32_t id); /* sorted */
void sim_ids_sort(struct sim_ids *set);
void sim_ids_release(struct sim_ids *set);
/* "reply-lost:3,node-off:0" */
void sim_ids_print(const struct sim_ids *set);
int sim_ids_parse(const char *text, struct sim_ids *ret_set); /* 0, or -1 */

struct sim_dice {
	struct hf_rng of[SIM_TROUBLES];
	struct hf_rng how; /* random details of the present trouble */
	uint32_t seen[SIM_TROUBLES];
	const struct sim_ids *only;
	struct sim_ids happened;
	struct sim_coverage coverage;
};
struct sim;
void sim_dice_init(struct sim *sim, const struct sim_ids *only);
/* Draws whether a trouble of this kind happens to the present request or event. */
bool sim_happens(struct sim *sim, enum sim_trouble kind);
/* Call this before a trouble happens. Returns false if --only leaves it out. After it, sim_how
 * draws the trouble's details. */
bool sim_do(struct sim *sim, enum sim_trouble kind);
uint64_t sim_how(struct sim *sim, uint64_t bound);
hf_time sim_how_span(struct sim *sim, hf_time max);
/* Draws a kind of this group by the weights of the seed; SIM_TROUBLES: no kind has a weight. */
enum sim_trouble sim_pick(struct sim *sim, enum sim_group group, struct hf_rng *rng);

#endif
