/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Turns a record of NVML into devices, samples, events and states of detectors. Input: a record,
 * and the number of devices in sysfs. Output: the intake. Asks NVML nothing. Invariant: an unknown
 * fact makes no sample, so a missing fact never looks like a fault.
 */
#include "probes/nvml.h"

#include "base/str.h"
#include "health/evidence.h"
#include "probes/nvml_abi.h"

#include <stdio.h>
#include <string.h>

struct reporting {
	struct hf_intake *intake;
	const struct hf_nvml_record *record;
	bool answers; /* the library gave information about at least one device */
	/* For each detector: how many devices it could see, and the first error code if it could
	 * not. */
	unsigned seen[HF_HEALTH_DETECTORS];
	int refused[HF_HEALTH_DETECTORS];
};

static bool has_fact(const struct hf_nvml_device *d, enum hf_nvml_fact fact)
{
	return d->codes[fact] == HF_NVML_OK;
}

static uint32_t narrow_number(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static bool read_load(const struct hf_nvml_device *d, uint32_t *ret_percent)
{
	if (!has_fact(d, HF_NVML_LOAD_PERCENT) || d->values[HF_NVML_LOAD_PERCENT] > 100)
		return false;
	*ret_percent = (uint32_t)d->values[HF_NVML_LOAD_PERCENT];
	return true;
}

static struct hf_health_sample make_nvml_sample(enum hf_health_detector detector,
						const char *device)
{
	return hf_intake_sample_of(HF_HEALTH_BY_NVML, detector, device);
}

static void add_sample(struct reporting *t, const struct hf_health_sample *s)
{
	t->seen[s->detector]++;
	(void)hf_intake_sample(t->intake, s);
}

static void note_refusal(struct reporting *t, enum hf_health_detector detector, int code)
{
	if (t->refused[detector] == HF_NVML_OK)
		t->refused[detector] = code;
}

/* Reports a device that is lost, needs a reset, or gives no information while other devices do. If
 * the library gives no information about any device, that is a fault of the driver. */
static void report_bus(struct reporting *t, const struct hf_nvml_device *d)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_BUSLOST, d->address);
	int failure = hf_nvml_failure(d);

	s.bus.lost = d->code == HF_NVML_LOST;
	s.bus.reset_required = d->code == HF_NVML_RESET_REQUIRED;
	s.bus.mute = failure != HF_NVML_OK && t->answers;
	if (s.bus.lost || s.bus.reset_required || s.bus.mute ||
	    (d->code == HF_NVML_OK && failure == HF_NVML_OK))
		add_sample(t, &s);
	else
		note_refusal(t, HF_HEALTH_BUSLOST, failure != HF_NVML_OK ? failure : d->code);
}

static void report_recovery(struct reporting *t, const struct hf_nvml_device *d)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_RECOVERY, d->address);

	if (!has_fact(d, HF_NVML_RECOVERY_ACTION)) {
		note_refusal(t, HF_HEALTH_RECOVERY, d->codes[HF_NVML_RECOVERY_ACTION]);
		return;
	}
	s.recovery.action = narrow_number(d->values[HF_NVML_RECOVERY_ACTION]);
	add_sample(t, &s);
}

static void report_ecc(struct reporting *t, const struct hf_nvml_device *d)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_ECC, d->address);

	/* Without the counter, make no sample: a 0 now and a 5 later would look like a rise. */
	if (!has_fact(d, HF_NVML_ECC_UNCORRECTED)) {
		note_refusal(t, HF_HEALTH_ECC, d->codes[HF_NVML_ECC_UNCORRECTED]);
		return;
	}
	s.ecc.uncorrectable = d->values[HF_NVML_ECC_UNCORRECTED];
	if (has_fact(d, HF_NVML_REMAP_PENDING) && has_fact(d, HF_NVML_REMAP_FAILED)) {
		s.ecc.remap_known = true;
		s.ecc.pending = d->values[HF_NVML_REMAP_PENDING] == 1;
		s.ecc.failed = d->values[HF_NVML_REMAP_FAILED] == 1;
		s.ecc.remapped_uncorrectable =
			narrow_number(d->values[HF_NVML_REMAPPED_UNCORRECTED]);
	} else if (has_fact(d, HF_NVML_RETIRE_PENDING)) {
		/* Older devices retire pages instead of remapping rows. Both wait for a reset of
		 * the device. */
		s.ecc.remap_known = true;
		s.ecc.pending = d->values[HF_NVML_RETIRE_PENDING] == 1;
	}
	add_sample(t, &s);
}

static void report_speed(struct reporting *t, const struct hf_nvml_device *d)
{
	struct hf_health_sample throttle = make_nvml_sample(HF_HEALTH_THROTTLE, d->address);
	struct hf_health_sample rate = make_nvml_sample(HF_HEALTH_CLOCK, d->address);
	uint32_t load;

	if (!read_load(d, &load)) {
		/* Without a known load, a low clock means nothing. A GPU with MIG instances reports
		 * no load. */
		note_refusal(t, HF_HEALTH_THROTTLE, d->codes[HF_NVML_LOAD_PERCENT]);
		note_refusal(t, HF_HEALTH_CLOCK, d->codes[HF_NVML_LOAD_PERCENT]);
		return;
	}
	hf_intake_load(t->intake, d->address, load);
	throttle.throttle.load_percent = rate.clock.load_percent = load;
	if (has_fact(d, HF_NVML_THROTTLE_REASONS)) {
		throttle.throttle.reasons = d->values[HF_NVML_THROTTLE_REASONS];
		add_sample(t, &throttle);
	} else {
		note_refusal(t, HF_HEALTH_THROTTLE, d->codes[HF_NVML_THROTTLE_REASONS]);
	}
	/* Without the throttle reasons, a low clock may have been set on purpose. */
	if (has_fact(d, HF_NVML_SM_MHZ) && has_fact(d, HF_NVML_THROTTLE_REASONS)) {
		rate.clock.model = d->name[0] ? hf_hash_str(d->name) : 0;
		rate.clock.reasons = d->values[HF_NVML_THROTTLE_REASONS];
		rate.clock.mhz = narrow_number(d->values[HF_NVML_SM_MHZ]);
		add_sample(t, &rate);
	} else {
		note_refusal(t, HF_HEALTH_CLOCK,
			     d->codes[HF_NVML_SM_MHZ] ? d->codes[HF_NVML_SM_MHZ]
						      : d->codes[HF_NVML_THROTTLE_REASONS]);
	}
}

/* Reports PCIe replays. The permitted rate is that of the full link speed: an idle link slows down,
 * and replays from before would be too many for the present speed. */
static void report_replays(struct reporting *t, const struct hf_nvml_device *d)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_REPLAY, d->address);

	if (!has_fact(d, HF_NVML_PCIE_REPLAYS) || !has_fact(d, HF_NVML_PCIE_WIDTH) ||
	    !has_fact(d, HF_NVML_PCIE_GENERATION_MAX)) {
		note_refusal(t, HF_HEALTH_REPLAY,
			     d->codes[HF_NVML_PCIE_REPLAYS] ? d->codes[HF_NVML_PCIE_REPLAYS]
							    : HF_NVML_UNSUPPORTED);
		return;
	}
	s.replay.counter = d->values[HF_NVML_PCIE_REPLAYS];
	s.replay.lanes = narrow_number(d->values[HF_NVML_PCIE_WIDTH]);
	s.replay.generation = narrow_number(d->values[HF_NVML_PCIE_GENERATION_MAX]);
	(void)read_load(d, &s.replay.load_percent);
	add_sample(t, &s);
}

static void report_links(struct reporting *t, const struct hf_nvml_device *d)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_NVLINK, d->address);

	if (!has_fact(d, HF_NVML_NVLINKS)) {
		note_refusal(t, HF_HEALTH_NVLINK, d->codes[HF_NVML_NVLINKS]);
		return;
	}
	/* A GPU with MIG instances does not use its links: links that are down are no fault. */
	if (has_fact(d, HF_NVML_MIG_ON) && d->values[HF_NVML_MIG_ON] == 1) {
		t->seen[HF_HEALTH_NVLINK]++;
		return;
	}
	s.nvlink.active = narrow_number(d->values[HF_NVML_NVLINKS]);
	/* The health value means something only after the registration with the fabric manager. */
	if (has_fact(d, HF_NVML_FABRIC_HEALTH) && has_fact(d, HF_NVML_FABRIC_STATE) &&
	    d->values[HF_NVML_FABRIC_STATE] == HF_NVML_FABRIC_COMPLETED) {
		s.nvlink.health_known = true;
		s.nvlink.health = narrow_number(d->values[HF_NVML_FABRIC_HEALTH]);
	}
	add_sample(t, &s);
}

/* Notes the MIG instances of a GPU, because the kubelet names only the instance that a container
 * holds. */
static void report_mig_instances(struct reporting *t, const struct hf_nvml_device *d)
{
	for (size_t i = 0; i < d->mig_instances_len; i++) {
		struct hf_mig_instance mig;

		memset(&mig, 0, sizeof(mig));
		memcpy(mig.name, d->mig_instances[i].uuid, sizeof(mig.name));
		memcpy(mig.device, d->address, sizeof(d->address));
		mig.instance = d->mig_instances[i].gpu_instance <= HF_MIG_GPU_INSTANCE_MAX
				       ? (int32_t)d->mig_instances[i].gpu_instance
				       : -1;
		hf_intake_mig_instance(t->intake, &mig);
	}
}

static void report_device(struct reporting *t, const struct hf_nvml_device *d)
{
	struct hf_health_presence there;

	if (d->address[0] == '\0') {
		note_refusal(t, HF_HEALTH_BUSLOST, d->code);
		return;
	}
	memset(&there, 0, sizeof(there));
	there.kind = HF_HEALTH_GPU;
	memcpy(there.id, d->address, sizeof(there.id));
	memcpy(there.uuid, d->uuid, sizeof(there.uuid));
	/* The vendor's DRA driver names the device like this in claims. */
	if (has_fact(d, HF_NVML_MINOR) && d->values[HF_NVML_MINOR] < 1024)
		snprintf(there.alias, sizeof(there.alias), "gpu-%u",
			 (unsigned)d->values[HF_NVML_MINOR]);
	hf_intake_device(t->intake, &there);
	report_mig_instances(t, d);
	report_bus(t, d);
	report_recovery(t, d);
	report_ecc(t, d);
	report_speed(t, d);
	report_replays(t, d);
	report_links(t, d);
}

/* Adds Xids that NVML reports. If the kernel's log can be read too, each Xid arrives twice, and the
 * brain counts it once. */
static void report_events(struct hf_intake *intake, const struct hf_nvml_record *r)
{
	for (size_t i = 0; i < r->events_len; i++) {
		const struct hf_nvml_event *from = &r->events[i];
		struct hf_health_evidence e = hf_health_evidence_none();

		/* Event numbers 0, 999 and larger ones are noise of the library. */
		if (from->type != HF_NVML_EVENT_XID || from->data == 0 || from->data >= 999 ||
		    from->address[0] == '\0')
			continue;
		e.detector = HF_HEALTH_XID;
		e.source = HF_HEALTH_BY_NVML;
		e.code = (int32_t)from->data;
		if (from->gpu_instance <= 64)
			e.gpu_instance = (int32_t)from->gpu_instance;
		if (from->compute_instance <= 64)
			e.compute_instance = (int32_t)from->compute_instance;
		memcpy(e.device, from->address, sizeof(e.device));
		snprintf(e.line, sizeof(e.line), "NVML event: Xid %d", e.code);
		hf_intake_second(intake, &e);
	}
}

static const enum hf_health_detector of_devices[] = {
	HF_HEALTH_BUSLOST, HF_HEALTH_RECOVERY, HF_HEALTH_ECC,    HF_HEALTH_THROTTLE,
	HF_HEALTH_CLOCK,   HF_HEALTH_REPLAY,   HF_HEALTH_NVLINK,
};

static void off_all(struct hf_intake *intake, const char *why)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(of_devices); i++)
		hf_intake_off(intake, HF_HEALTH_BY_NVML, of_devices[i], why);
}

void hf_nvml_off(struct hf_intake *intake, const char *why)
{
	off_all(intake, why);
	hf_intake_off(intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, why);
	hf_intake_count(intake, HF_COUNT_NVML, -1);
}

/* Reports a detector as able to see if it saw at least one device, else as off with the reason. */
static void report_states(struct reporting *t)
{
	char why[HF_INTAKE_WHY_MAX];

	for (size_t i = 0; i < HF_ARRAY_LEN(of_devices); i++) {
		enum hf_health_detector d = of_devices[i];

		if (t->seen[d] > 0) {
			hf_intake_heard(t->intake, HF_HEALTH_BY_NVML, d);
			continue;
		}
		if (t->record->devices_len == 0)
			snprintf(why, sizeof(why), "NVML: no device");
		else if (t->refused[d] == HF_NVML_UNSUPPORTED ||
			 t->refused[d] == HF_NVML_NO_FUNCTION)
			snprintf(why, sizeof(why),
				 "NVML: driver %s or its devices do not report this",
				 t->record->driver);
		else
			snprintf(why, sizeof(why), "NVML: error %d", t->refused[d]);
		hf_intake_off(t->intake, HF_HEALTH_BY_NVML, d, why);
	}
}

/* All devices of the node are of another maker, so NVML and its driver do not matter. The last
 * known counts decide: while sysfs hangs, the counts are unknown. */
static bool is_of_others(const struct hf_intake *intake)
{
	return hf_intake_counted_last(intake, HF_COUNT_NVIDIA) == 0 &&
	       hf_intake_counted_last(intake, HF_COUNT_PCI) > 0;
}

static bool is_anothers(const struct hf_intake *intake, const struct hf_nvml_record *r)
{
	return is_of_others(intake) && r->count <= 0;
}

/* Takes back earlier reports of missed deadlines of the driver: they are from before the makers of
 * the devices were known, or from an earlier agent. */
static void set_aside(struct hf_intake *intake)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_DRIVER, "");

	s.driver.aside = true;
	(void)hf_intake_sample(intake, &s);
	hf_intake_driver_answered(intake, HF_TIME_NONE);
}

static bool has_answer(const struct hf_nvml_record *r)
{
	for (size_t i = 0; i < r->devices_len; i++)
		if (r->devices[i].code == HF_NVML_OK &&
		    hf_nvml_failure(&r->devices[i]) == HF_NVML_OK)
			return true;
	return false;
}

/* NVML counts devices and gives no information about any: the driver is present and does not
 * answer. Lost or forbidden devices do not change that. */
static bool is_mute(const struct hf_nvml_record *r)
{
	for (size_t i = 0; i < r->devices_len; i++)
		if (hf_nvml_failure(&r->devices[i]) != HF_NVML_OK)
			return !has_answer(r);
	return false;
}

/* Writes why initializing the library failed. */
static void say_why(const struct hf_nvml_record *r, bool another, char ret_why[HF_INTAKE_WHY_MAX])
{
	const size_t size = HF_INTAKE_WHY_MAX;

	if (r->code == HF_NVML_NO_LIBRARY)
		snprintf(ret_why, size, "%s", r->why[0] ? r->why : "NVML: no library");
	else if (r->code == HF_NVML_NOT_LOADED)
		snprintf(ret_why, size, "NVML: the driver is not loaded");
	else if (r->code == HF_NVML_MISMATCH)
		snprintf(ret_why, size, "NVML: the driver and the library have different versions");
	else if (another)
		snprintf(ret_why, size, "NVML: no NVIDIA device, and error %d", r->code);
	else
		snprintf(ret_why, size, HF_NVML_ERROR "%d", r->code);
}

/* NVML reports whether the fabric manager registered this GPU. False for a GPU that does not
 * answer: that is a fault of its own. */
static bool has_fabric_facts(const struct hf_nvml_device *d)
{
	return d->code == HF_NVML_OK && has_fact(d, HF_NVML_FABRIC_STATE) &&
	       d->values[HF_NVML_FABRIC_STATE] <= HF_NVML_FABRIC_COMPLETED;
}

/* The GPU belongs to an NVLink fabric and uses it; a GPU with MIG instances does not. */
static bool is_of_fabric(const struct hf_nvml_device *d)
{
	return has_fabric_facts(d) &&
	       d->values[HF_NVML_FABRIC_STATE] != HF_NVML_FABRIC_UNSUPPORTED &&
	       !(has_fact(d, HF_NVML_MIG_ON) && d->values[HF_NVML_MIG_ON] == 1);
}

static bool waits_for_fabric(const struct hf_nvml_device *d)
{
	return d->values[HF_NVML_FABRIC_STATE] != HF_NVML_FABRIC_COMPLETED ||
	       (has_fact(d, HF_NVML_FABRIC_STATUS) &&
		d->values[HF_NVML_FABRIC_STATUS] != HF_NVML_OK);
}

static void put_fabric(const struct hf_nvml_record *r, struct hf_health_sample *s)
{
	for (size_t i = 0; i < r->devices_len; i++) {
		const struct hf_nvml_device *d = &r->devices[i];

		s->driver.fabric_none += has_fabric_facts(d) && !is_of_fabric(d);
		if (!is_of_fabric(d))
			continue;
		s->driver.fabric_asked++;
		if (!waits_for_fabric(d))
			continue;
		if (s->driver.fabric_waiting++ > 0)
			continue;
		s->driver.fabric_state = narrow_number(d->values[HF_NVML_FABRIC_STATE]);
		s->driver.fabric_status = narrow_number(d->values[HF_NVML_FABRIC_STATUS]);
	}
	if (s->driver.fabric_none < r->devices_len)
		s->driver.fabric_none = 0;
}

/* Decides which failure of the library is a fault of the driver, and reports it. */
static void report_driver_by_nvml(struct hf_intake *intake, const struct hf_nvml_record *r)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_DRIVER, "");
	bool another = is_anothers(intake, r);
	char why[HF_INTAKE_WHY_MAX];

	s.driver.timed_out = r->code == HF_NVML_OK && is_mute(r);
	s.driver.mismatch = r->code == HF_NVML_MISMATCH && !another;
	/* A missing driver is a fault only on a node with NVIDIA devices. */
	s.driver.not_loaded =
		r->code == HF_NVML_NOT_LOADED && hf_intake_counted(intake, HF_COUNT_NVIDIA) > 0;
	if (r->code == HF_NVML_OK)
		put_fabric(r, &s);
	if (another)
		set_aside(intake);
	if (r->code == HF_NVML_OK && another) {
		hf_intake_off(intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "NVML: no device");
	} else if (r->code == HF_NVML_OK || s.driver.mismatch || s.driver.not_loaded) {
		hf_intake_heard(intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER);
		(void)hf_intake_sample(intake, &s);
	}
	if (r->code == HF_NVML_OK)
		return;
	say_why(r, another, why);
	off_all(intake, why);
	if (!s.driver.mismatch && !s.driver.not_loaded)
		hf_intake_off(intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, why);
}

/* Reports a hanging driver: a look passed its deadline. */
void hf_nvml_report_silence(struct hf_intake *intake)
{
	struct hf_health_sample s = make_nvml_sample(HF_HEALTH_DRIVER, "");

	if (is_of_others(intake)) {
		hf_nvml_off(intake, "NVML: no NVIDIA device, and no answer in time");
		set_aside(intake);
		return;
	}
	s.driver.timed_out = true;
	hf_intake_heard(intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER);
	(void)hf_intake_sample(intake, &s);
	hf_intake_count(intake, HF_COUNT_NVML, -1);
}

void hf_nvml_turned_off(struct hf_intake *intake)
{
	hf_nvml_off(intake, "NVML is turned off");
	set_aside(intake);
}

void hf_nvml_report(struct hf_intake *intake, const struct hf_nvml_record *record)
{
	struct reporting t = {.intake = intake, .record = record, .answers = has_answer(record)};

	report_events(intake, record);
	if (record->kind != HF_NVML_ROUND)
		return;
	report_driver_by_nvml(intake, record);
	hf_intake_count(intake, HF_COUNT_NVML,
			record->code == HF_NVML_OK && !is_anothers(intake, record) ? record->count
										   : -1);
	if (record->code != HF_NVML_OK)
		return;
	for (size_t i = 0; i < record->devices_len; i++)
		report_device(&t, &record->devices[i]);
	report_states(&t);
}
