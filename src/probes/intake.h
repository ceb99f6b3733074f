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
 * The list that the probes fill until the next step of the brain (src/health) takes it.
 *
 * The intake cuts texts to their limits and makes them printable; an unset time becomes the
 * present. If an item does not fit, the intake refuses it, and the probe tries again later or
 * counts the item as lost. Every function may be called from any callback of the loop.
 */
struct hf_intake;

/* Devices held by the containers of a node: 110 pods with 8 devices each are more than any node
 * has. */
#define HF_HOLDINGS_MAX 1024
/* limit of pod names; namespaces and names of containers are shorter */
#define HF_HOLDING_NAME_MAX 254
/* limit of device ids from device plugins and DRA; longer ids are cut */
#define HF_HOLDING_ID_MAX 128
/* Limit of a reason why a detector cannot see, such as a missing file. */
#define HF_INTAKE_WHY_MAX 160

/* A container holds a device, as the kubelet reports. */
struct hf_holding {
	char ns[64], pod[HF_HOLDING_NAME_MAX], container[64];
	char resource[HF_HOLDING_NAME_MAX]; /* "nvidia.com/gpu"; a DRA driver's name */
	/* the device plugin's name of the device: a UUID, a PCI address, or any other text */
	char id[HF_HOLDING_ID_MAX];
};
/* All holdings of the node, as the kubelet reports them. */
struct hf_holdings {
	const struct hf_holding *items; /* each once, in hf_holding_order */
	size_t len;
	/* when the kubelet was asked: by this list, a pod that was created later holds nothing;
	 * NONE: the kubelet has not answered yet */
	hf_time asked_at;
	/* false: the list may be old, because the last question to the kubelet failed */
	bool known;
	bool cut; /* the list was cut at its limit, so a container outside it may hold a device */
};
/* Order of holdings for qsort and bsearch. It compares all bytes, so the unused bytes behind each
 * text must be NULs. */
int hf_holding_order(const void *left, const void *right);

/* Sources that count the node's devices; the detector `count` compares the numbers. */
enum hf_intake_count {
	/* PCI devices in sysfs: those of NVIDIA; on a node without any, those of AMD */
	HF_COUNT_PCI,
	HF_COUNT_NVIDIA,      /* PCI devices of NVIDIA in sysfs, which NVML could count */
	HF_COUNT_NVML,        /* devices that NVML, the library of NVIDIA's driver, counts */
	HF_COUNT_ALLOCATABLE, /* devices that the kubelet would hand out */
	HF_COUNT_BUS,         /* PCI devices of all makers in sysfs, with any driver */
	HF_COUNTS
};

/* Probes whose looks may be slow, as the agent's page and the metrics name them. */
enum hf_intake_probe {
	HF_PROBE_NVML,
	HF_PROBE_DEVICES, /* looks of sysfs at devices */
	HF_PROBE_PORTS,   /* looks of sysfs at InfiniBand ports */
	HF_PROBE_KUBELET,
	HF_PROBES
};

/* The parts of a GPU driver that have a version of their own. */
enum hf_intake_version {
	HF_VERSION_DRIVER,  /* the driver that answers the library */
	HF_VERSION_LIBRARY, /* the library, in the form of the driver's versions */
	HF_VERSION_MODULE,  /* the loaded kernel module */
	HF_VERSION_FIRMWARE,
	HF_VERSIONS
};
#define HF_INTAKE_VERSION_MAX 64 /* a longer version is cut */

enum hf_intake_state {
	HF_INTAKE_UNTOLD, /* no report yet */
	HF_INTAKE_OK,
	HF_INTAKE_OFF, /* the detector cannot see; `why` has the reason */
};

struct hf_intake_options {
	struct hf_loop *loop;
	/* wall-clock time of the boot: the clock of the steps is boot_at + hf_loop_mono(loop) */
	hf_time boot_at;
	struct hf_metrics *metrics; /* may be NULL */
	/* Called when the intake has something for the next step. urgent: evidence came or a list
	 * is full; otherwise the step may wait for more. Never NULL. Must not call hf_intake_take
	 * directly. */
	void (*news)(void *arg, bool urgent);
	void *arg;
};

struct hf_intake *hf_intake_create(const struct hf_intake_options *options);
struct hf_intake *hf_intake_destroy(struct hf_intake *intake); /* NULL is fine; returns NULL */

/* --- for probes ---------------------------------------------------------------------------- */

struct hf_loop *hf_intake_loop(const struct hf_intake *intake);
/* The clock with which items in the intake are dated. It never goes back. */
hf_time hf_intake_now(const struct hf_intake *intake);
hf_time hf_intake_boot_at(const struct hf_intake *intake);

/* Notes for the metrics that a probe's look was answered and took this long, or that it passed its
 * deadline without an answer. */
void hf_intake_looked(struct hf_intake *intake, enum hf_intake_probe probe, hf_time took);
void hf_intake_timed_out(struct hf_intake *intake, enum hf_intake_probe probe);
const char *hf_intake_probe_name(enum hf_intake_probe probe);
/* When the probe's last look was answered; HF_TIME_NONE: never. */
hf_time hf_intake_looked_at(const struct hf_intake *intake, enum hf_intake_probe probe);
/* Notes that the driver's library answered, without an error, a question that was asked at this time.
 * The time of the boot: the library is there and has not answered yet. HF_TIME_NONE: the node has no
 * such library, or no device of its vendor. */
void hf_intake_driver_answered(struct hf_intake *intake, hf_time asked_at);
/* The time that was noted last; HF_TIME_NONE before that. */
hf_time hf_intake_driver_at(const struct hf_intake *intake);
/* Notes a version; "": unknown. A change counts as one of hf_intake_states_version. */
void hf_intake_note_version(struct hf_intake *intake, enum hf_intake_version part,
			    const char *version);
/* The version that was noted last; NULL: unknown. */
const char *hf_intake_version_of(const struct hf_intake *intake, enum hf_intake_version part);

/* A probe found a device. The device stays known. If a field is "", it keeps the value that another
 * probe gave. */
void hf_intake_device(struct hf_intake *intake, const struct hf_health_presence *device);
/* A probe found a MIG instance, which the device plugin hands out like a device. */
void hf_intake_mig_instance(struct hf_intake *intake, const struct hf_mig_instance *mig);
/* Notes a device that an earlier agent saw in this boot. If the device is missing now, the probe
 * that reads the bus reports the loss. address: for a network port, the PCI address of its
 * function; "": not known. */
void hf_intake_remember(struct hf_intake *intake, const char *id, const char *address);
bool hf_intake_remembers(const struct hf_intake *intake, size_t i, const char **ret_id,
			 const char **ret_address);
/* Notes that the device's driver once had the device, in this boot or before. The journal stores
 * this. */
void hf_intake_driven(struct hf_intake *intake, const char *id);
bool hf_intake_was_driven(const struct hf_intake *intake, const char *id);
/* A probe leaves a device out because the list is full; reported once for each device. */
void hf_intake_refuse(struct hf_intake *intake, const char *id);
/* hf_intake_refused counts different devices up to this number. */
#define HF_INTAKE_REFUSED_MAX 1024
size_t hf_intake_refused(const struct hf_intake *intake);
/* The detector looked through this source just now and could see. A probe calls this after each
 * look, also if it found nothing: a device becomes Unknown if no detector sees it for 90 s. */
void hf_intake_heard(struct hf_intake *intake, enum hf_health_source source,
		     enum hf_health_detector detector);
/* The detector cannot see through this source. why names what is missing: "libnvidia-ml.so.1: no
 * such file". */
void hf_intake_off(struct hf_intake *intake, enum hf_health_source source,
		   enum hf_health_detector detector, const char *why);

/* Makes a sample with the present time, supported, and with zeros in all other fields, which the
 * probe fills. */
struct hf_health_sample hf_intake_sample_of(enum hf_health_source source,
					    enum hf_health_detector detector, const char *device);
/* Adds a sample or evidence. False: the intake is full until the next step, which comes soon. */
bool hf_intake_sample(struct hf_intake *intake, const struct hf_health_sample *sample);
bool hf_intake_evidence(struct hf_intake *intake, const struct hf_health_evidence *evidence);
/* Adds the evidence 2 s later, with the present time. While the kernel's log is read, NVML's report
 * of an Xid waits this long for the log's line, which has more details. If HF_INTAKE_HELD_MAX
 * pieces wait already, adds it at once. */
#define HF_INTAKE_HELD_MAX 256
void hf_intake_second(struct hf_intake *intake, const struct hf_health_evidence *evidence);

/* Stores the number of devices that a source counts, from which the agent makes samples of detector
 * `count`. -1: not known (any more). HF_HEALTH_DIVIDED: devices are offered in parts, so the number
 * means nothing. */
void hf_intake_count(struct hf_intake *intake, enum hf_intake_count which, int32_t count);
int32_t hf_intake_counted(const struct hf_intake *intake, enum hf_intake_count which);
/* The last known count of a source, even if the count is unknown now; -1: never known. */
int32_t hf_intake_counted_last(const struct hf_intake *intake, enum hf_intake_count which);
/* Notes how busy a device is (named by id, UUID or alias), for samples of other detectors that need
 * the load. */
void hf_intake_load(struct hf_intake *intake, const char *device, uint32_t percent);
/* The load of a device, if it was reported within the last minute; false: it was not. */
bool hf_intake_load_of(const struct hf_intake *intake, const char *device, uint32_t *ret_percent);

/* Replaces the list of all devices that containers hold, as the kubelet answered to a question at
 * asked_at. False: the list was longer than HF_HOLDINGS_MAX and was cut, in hf_holding_order. */
bool hf_intake_holdings(struct hf_intake *intake, const struct hf_holding *items, size_t len,
			hf_time asked_at);
/* The kubelet could not be asked. Its last list stays, marked as not known. */
void hf_intake_holdings_unknown(struct hf_intake *intake);

/* --- for the agent, which makes the steps ----------------------------------------------------- */

/* Points the lists of `input` at the intake's items. They stay valid until hf_intake_taken. */
void hf_intake_take(struct hf_intake *intake, struct hf_health_input *input);
/* The step has used the input: forgets the items. Known devices, counts and holdings stay. */
void hf_intake_taken(struct hf_intake *intake);
bool hf_intake_is_empty(const struct hf_intake *intake);

/* Whether a detector can see through one source, or through any source. ret_why: if none works, the
 * reason of the first source that cannot see. */
enum hf_intake_state hf_intake_state(const struct hf_intake *intake, enum hf_health_source source,
				     enum hf_health_detector detector, const char **ret_why);
enum hf_intake_state hf_intake_detector(const struct hf_intake *intake,
					enum hf_health_detector detector, const char **ret_why);
/* When the detector could last see through any source; HF_TIME_NONE: never. */
hf_time hf_intake_heard_at(const struct hf_intake *intake, enum hf_health_detector detector);
/* Versions that grow with each change: of a detector's state or its reason, and of the holdings. */
uint64_t hf_intake_states_version(const struct hf_intake *intake);
uint64_t hf_intake_holdings_version(const struct hf_intake *intake);
/* Returns the kubelet's list of holders. It is valid until the next list arrives. */
struct hf_holdings hf_intake_holdings_get(const struct hf_intake *intake);
const struct hf_health_presence *hf_intake_devices(const struct hf_intake *intake, size_t *ret_len);
const struct hf_mig_instances *hf_intake_mig_instances(const struct hf_intake *intake);
/* A number that grows when a MIG instance is noted that was not known before. */
uint64_t hf_intake_mig_instances_version(const struct hf_intake *intake);

HF_END_DECLS

#endif
