/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_INTAKE_H
#define HF_PROBES_INTAKE_H

#include "ctl/metrics.h"
#include "health/step.h"
#include "loop/loop.h"
#include "probes/mig_instances.h"

HF_BEGIN_DECLS

/*
 * The list that the probes fill until the next step of the brain takes it.
 *
 * Texts are cut to their limits and made printable; an unset time becomes now. The intake refuses
 * what does not fit: the probe then looks again later, or counts the item as lost. Every call may
 * be made from any callback of the loop.
 */
struct hf_intake;

/* Pods of a node hold devices: 110 pods with 8 devices is more than any node has. */
#define HF_HOLDINGS_MAX 1024
#define HF_HOLDING_NAME_MAX 254 /* names of pods; namespaces and containers are shorter */
#define HF_HOLDING_ID_MAX 128   /* ids of device plugins and DRA; longer ones are cut */
/* "for want of what" */
#define HF_INTAKE_WHY_MAX 160

/* A container holds a device, as the kubelet reports. */
struct hf_holding {
	char ns[64], pod[HF_HOLDING_NAME_MAX], container[64];
	char resource[HF_HOLDING_NAME_MAX]; /* "nvidia.com/gpu"; a DRA driver's name */
	char id[HF_HOLDING_ID_MAX];         /* the plugin's: a uuid, a PCI address, anything */
};
/* All holdings of the node, as the kubelet reports them. */
struct hf_holdings {
	const struct hf_holding *items; /* each once, in hf_holding_order */
	size_t len;
	/* time of the question; later pods hold nothing by this list; NONE: no answer yet */
	hf_time asked_at;
	bool known; /* false: it could not be asked since then */
	bool cut;   /* the list is cut: a container outside it may hold a device */
};
/* For qsort and bsearch: by all bytes, so NULs stand behind the texts. */
int hf_holding_order(const void *left, const void *right);

/* What of a node's devices is counted where (detector `count`). */
enum hf_intake_count {
	HF_COUNT_PCI,         /* directories of sysfs: NVIDIA's where there are any, else AMD's */
	HF_COUNT_NVIDIA,      /* the same for NVIDIA alone: what NVML could count */
	HF_COUNT_NVML,        /* the driver's library */
	HF_COUNT_ALLOCATABLE, /* the kubelet */
	HF_COUNT_BUS,         /* sysfs, all makers, bound to any driver */
	HF_COUNTS
};

/* Probes with slow looks, for the page and the metrics. */
enum hf_intake_probe {
	HF_PROBE_NVML,
	HF_PROBE_DEVICES, /* of sysfs */
	HF_PROBE_PORTS,   /* likewise */
	HF_PROBE_KUBELET,
	HF_PROBES
};

enum hf_intake_state {
	HF_INTAKE_UNTOLD, /* no report yet */
	HF_INTAKE_OK,
	HF_INTAKE_OFF, /* cannot see, see why */
};

struct hf_intake_options {
	struct hf_loop *loop;
	hf_time boot_at;            /* the steps' clock reads boot_at + hf_loop_mono(loop) */
	struct hf_metrics *metrics; /* may be NULL */
	/* The intake has something for the next step. urgent: evidence, or a full list;
	 * otherwise the step may wait for more. Never NULL; must not call hf_intake_take at
	 * once. */
	void (*news)(void *arg, bool urgent);
	void *arg;
};

struct hf_intake *hf_intake_create(const struct hf_intake_options *options);
struct hf_intake *hf_intake_destroy(struct hf_intake *intake); /* NULL is fine; returns NULL */

/* --- for probes ---------------------------------------------------------------------------- */

struct hf_loop *hf_intake_loop(const struct hf_intake *intake);
/* The clock of everything that is put in here; never steps back. */
hf_time hf_intake_now(const struct hf_intake *intake);
hf_time hf_intake_boot_at(const struct hf_intake *intake);

/* A look was answered, after so long; one was not, within its deadline. */
void hf_intake_looked(struct hf_intake *intake, enum hf_intake_probe probe, hf_time took);
void hf_intake_timed_out(struct hf_intake *intake, enum hf_intake_probe probe);
const char *hf_intake_probe_name(enum hf_intake_probe probe);
/* Time of the probe's last answer; HF_TIME_NONE: no answer yet. */
hf_time hf_intake_looked_at(const struct hf_intake *intake, enum hf_intake_probe probe);

/* A probe found a device. It stays known; a field that is "" keeps the value of another source. */
void hf_intake_device(struct hf_intake *intake, const struct hf_health_presence *device);
/* A probe found a MIG instance, which the device plugin hands out like a device. */
void hf_intake_mig_instance(struct hf_intake *intake, const struct hf_mig_instance *mig);
/* Notes a device that was present earlier in this boot, before this agent started. The probe
 * that reads the bus reports a missing one. */
/* Of a port also where its function is on the bus, "": not known. */
void hf_intake_remember(struct hf_intake *intake, const char *id, const char *address);
bool hf_intake_remembers(const struct hf_intake *intake, size_t i, const char **ret_id,
			 const char **ret_address);
/* Its driver once had the device, in this boot or before, by the journal. */
void hf_intake_driven(struct hf_intake *intake, const char *id);
bool hf_intake_was_driven(const struct hf_intake *intake, const char *id);
/* A probe leaves a device out because there is no room; announced once for each device. */
void hf_intake_refuse(struct hf_intake *intake, const char *id);
/* How many different ones, up to HF_INTAKE_REFUSED_MAX. */
#define HF_INTAKE_REFUSED_MAX 1024
size_t hf_intake_refused(const struct hf_intake *intake);
/* The detector looked just now by this source, and could see. Call this after each look, also
 * without a finding: a device without any detector that sees becomes Unknown after 90 s. */
void hf_intake_heard(struct hf_intake *intake, enum hf_health_source source,
		     enum hf_health_detector detector);
/* The detector cannot see by this source. why names the missing thing: "libnvidia-ml.so.1: no
 * such file". */
void hf_intake_off(struct hf_intake *intake, enum hf_health_source source,
		   enum hf_health_detector detector, const char *why);

/* A sample to fill: of now, supported, and all else 0. */
struct hf_health_sample hf_intake_sample_of(enum hf_health_source source,
					    enum hf_health_detector detector, const char *device);
/* False: no room until the next step, which is soon. */
bool hf_intake_sample(struct hf_intake *intake, const struct hf_health_sample *sample);
bool hf_intake_evidence(struct hf_intake *intake, const struct hf_health_evidence *evidence);
/* Puts the evidence in a while later, with the present time: while the kernel's log is read,
 * NVML's report of an Xid waits for the log's line, which has more details. If there is no room
 * to wait, at once. */
#define HF_INTAKE_HELD_MAX 256
void hf_intake_second(struct hf_intake *intake, const struct hf_health_evidence *evidence);

/* The agent makes the samples of `count` from the last of each; -1: not known (any more); HF_HEALTH_DIVIDED. */
void hf_intake_count(struct hf_intake *intake, enum hf_intake_count which, int32_t count);
int32_t hf_intake_counted(const struct hf_intake *intake, enum hf_intake_count which);
/* The last known count, even if the count is unknown now; -1: never known. */
int32_t hf_intake_counted_last(const struct hf_intake *intake, enum hf_intake_count which);
/* How busy a device is, for samples of others that need it; by id, uuid or alias. */
void hf_intake_load(struct hf_intake *intake, const char *device, uint32_t percent);
/* The load that was reported within the last minute; false: none. */
bool hf_intake_load_of(const struct hf_intake *intake, const char *device, uint32_t *ret_percent);

/* All that containers hold, by a question of then; replaces the list before.  False: more than the maximum, of
 * which the first in their order are kept. */
bool hf_intake_holdings(struct hf_intake *intake, const struct hf_holding *items, size_t len,
			hf_time asked_at);
/* The kubelet could not be asked: its last list is kept as uncertain. */
void hf_intake_holdings_unknown(struct hf_intake *intake);

/* --- for whoever steps --------------------------------------------------------------------- */

/* Points input's lists at what is here.  It stays until hf_intake_taken. */
void hf_intake_take(struct hf_intake *intake, struct hf_health_input *input);
/* The step has taken the input: forget it. Known devices, counts and holdings stay. */
void hf_intake_taken(struct hf_intake *intake);
bool hf_intake_is_empty(const struct hf_intake *intake);

/* Of one way, and of a detector as a whole: OK if one way is, then the first that is off. */
enum hf_intake_state hf_intake_state(const struct hf_intake *intake, enum hf_health_source source,
				     enum hf_health_detector detector, const char **ret_why);
enum hf_intake_state hf_intake_detector(const struct hf_intake *intake,
					enum hf_health_detector detector, const char **ret_why);
/* When it last could; HF_TIME_NONE: never. */
hf_time hf_intake_heard_at(const struct hf_intake *intake, enum hf_health_detector detector);
/* Grows with each change of a state or its why, and with each of the holdings. */
uint64_t hf_intake_states_version(const struct hf_intake *intake);
uint64_t hf_intake_holdings_version(const struct hf_intake *intake);
/* Valid until the next list comes. */
struct hf_holdings hf_intake_holdings_get(const struct hf_intake *intake);
const struct hf_health_presence *hf_intake_devices(const struct hf_intake *intake, size_t *ret_len);
const struct hf_mig_instances *hf_intake_mig_instances(const struct hf_intake *intake);
/* Grows with each that is news. */
uint64_t hf_intake_mig_instances_version(const struct hf_intake *intake);

HF_END_DECLS

#endif
