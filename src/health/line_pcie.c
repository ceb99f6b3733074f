/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads lines of the kernel's PCIe services, and of the firmware, about errors of the bus.  A line becomes evidence
 * of detector aer about the address that it names.  faults.c finds the devices: the function itself, or the devices
 * below a port.
 */
#include "health/line_internal.h"

#include <stdio.h>
#include <string.h>

/* Reads a severity such as "Uncorrected (Fatal)"; newer kernels print Uncorrectable and Correctable. */
static enum hf_health_severity read_severity(struct hf_scan *s)
{
	hf_scan_text(s, "Multiple ");
	if (hf_scan_text(s, "Uncorrected ") || hf_scan_text(s, "Uncorrectable ")) {
		if (hf_scan_text(s, "(Fatal)"))
			return HF_HEALTH_FATAL;
		return hf_scan_text(s, "(Non-Fatal)") ? HF_HEALTH_NONFATAL : HF_HEALTH_UNSAID;
	}
	if (hf_scan_text(s, "Corrected") || hf_scan_text(s, "Correctable"))
		return HF_HEALTH_CORRECTED;
	return HF_HEALTH_UNSAID;
}

/* Reads "DRIVER ADDRESS: PCIe Bus Error: severity=S, type=T, (Receiver ID)". */
static void read_bus_error(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan type;

	e->severity = read_severity(&s);
	if (hf_scan_text(&s, ", type=") && hf_scan_word(&s, " ", &type))
		hf_health_unit_set(e, &type);
}

/* Reads "id=9d08": bus, device and function of a device in the port's domain, as Linux before 4.18 prints it. */
static bool read_id(struct hf_scan *s, char device[HF_HEALTH_DEVICE_MAX])
{
	char text[HF_HEALTH_DEVICE_MAX] = "0x", *colon = strchr(device, ':');
	struct hf_scan p = *s, word, number;
	uint32_t id;

	if (!colon || !hf_scan_text(&p, "id=") || !hf_scan_word(&p, "", &word) ||
	    hf_scan_left(&word) != 4 || p.at != p.end)
		return false;
	memcpy(text + 2, word.at, 4);
	number = hf_scan_of(text, 6);
	if (!hf_scan_hex32(&number, &id) || number.at != number.end)
		return false;
	snprintf(text, sizeof(text), "%.*s:%02x:%02x.%x", (int)(colon - device), device, id >> 8,
		 id >> 3 & 0x1f, id & 7);
	if (!hf_health_pci_normalize(text, strlen(text), device))
		return false;
	*s = p;
	return true;
}

/* Reads "pcieport ADDRESS: AER: [Multiple] S error [message] received: ADDRESS" of a root port; the evidence is
 * about the device at the second address. */
static bool read_port_report(struct hf_scan s, struct hf_health_evidence *e)
{
	e->severity = read_severity(&s);
	if (!hf_scan_text(&s, " error "))
		return false;
	hf_scan_text(&s, "message ");
	if (!hf_scan_text(&s, "received: ") && !hf_scan_text(&s, "received from "))
		return false;
	return read_id(&s, e->device) || hf_health_scan_address(&s, true, e->device);
}

/* The sentences by which drivers/pci/pcie/err.c and dpc.c of Linux report what they do about an error.  Older
 * kernels begin a sentence with a capital.  Code 0: the device has recovered. */
static const struct {
	const char *text;
	enum hf_health_code code;
	enum hf_health_severity severity;
} pcie_lines[] = {
	{"AER: can't recover (", HF_HEALTH_CODE_UNRECOVERED, HF_HEALTH_UNSAID},
	{"AER: Can't recover (", HF_HEALTH_CODE_UNRECOVERED, HF_HEALTH_UNSAID},
	{"AER: device recovery failed", HF_HEALTH_CODE_UNRECOVERED, HF_HEALTH_UNSAID},
	{"AER: Device recovery failed", HF_HEALTH_CODE_UNRECOVERED, HF_HEALTH_UNSAID},
	{"AER: subordinate device reset failed", HF_HEALTH_CODE_UNRECOVERED, HF_HEALTH_UNSAID},
	{"AER: device recovery successful", 0, HF_HEALTH_UNSAID},
	{"AER: Device recovery successful", 0, HF_HEALTH_UNSAID},
	{"DPC: containment event, status:0x", HF_HEALTH_CODE_CONTAINED, HF_HEALTH_FATAL},
	{"DPC containment event, status:0x", HF_HEALTH_CODE_CONTAINED, HF_HEALTH_FATAL},
};

static bool read_outcome(const struct hf_health_line_reader *reader, const struct hf_scan *s,
			 struct hf_health_evidence *e)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(pcie_lines); i++) {
		struct hf_scan p = *s;

		/* The letter behind "AER: " differs in most sentences: this check skips most comparisons. */
		if (hf_scan_left(s) < 6 || s->at[5] != pcie_lines[i].text[5] ||
		    !hf_scan_text(&p, pcie_lines[i].text))
			continue;
		e->code = (int32_t)pcie_lines[i].code;
		e->severity = pcie_lines[i].severity;
		if (e->code == 0)
			e->verb = HF_HEALTH_RECOVERED;
		if (e->code == HF_HEALTH_CODE_UNRECOVERED && reader->report.set)
			e->severity = reader->reported;
		return true;
	}
	return false;
}

/* Reads "Card not present on Slot(12)" and "slot(12): Link Down event", as Linux before 4.9 prints them. */
static bool read_old_slot_event(struct hf_scan s)
{
	struct hf_scan name;

	if (hf_scan_text(&s, "Card not present on Slot("))
		return hf_scan_word(&s, "_-. ", &name) && hf_scan_char(&s, ')') && s.at == s.end;
	return hf_scan_text(&s, "slot(") && hf_scan_word(&s, "_-. ", &name) &&
	       hf_scan_text(&s, "): Link Down event") && s.at == s.end;
}

/* Reads "pciehp: Slot(12): Link Down" or "Card not present"; "Link Down/Up ignored" does not match. */
static bool read_slot_event(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan name;

	hf_scan_text(&s, "pciehp: ");
	if (read_old_slot_event(s)) {
		e->code = HF_HEALTH_CODE_LINK_DOWN;
		return true;
	}
	if (!hf_scan_text(&s, "Slot(") || !hf_scan_word(&s, "_-. ", &name) ||
	    !hf_scan_text(&s, "): ") ||
	    (!hf_scan_text(&s, "Link Down") && !hf_scan_text(&s, "Card not present")))
		return false;
	hf_scan_blanks(&s);
	e->code = HF_HEALTH_CODE_LINK_DOWN;
	return s.at == s.end;
}

/* Reads "not ready 65535ms after bus reset; giving up". */
static bool read_not_ready(struct hf_scan s)
{
	struct hf_scan after;
	uint64_t number;

	return hf_scan_text(&s, "not ready ") && hf_scan_decimal(&s, 9, &number) &&
	       hf_scan_text(&s, "ms after ") && hf_scan_word(&s, " ", &after) &&
	       hf_scan_text(&s, "; giving up");
}

/* Reads "Unable to change power state from D3cold to D0, device inaccessible", or the form of older kernels.  The
 * kernel prints it if a read of the device's configuration returns only ones. */
static bool read_no_power(struct hf_scan s)
{
	struct hf_scan state;

	if (!hf_scan_text(&s, "Unable to change power state from ") &&
	    !hf_scan_text(&s, "can't change power state from "))
		return false;
	return hf_scan_word(&s, "", &state) && hf_scan_text(&s, " to ") &&
	       hf_scan_word(&s, "", &state) &&
	       (hf_scan_text(&s, ", device inaccessible") ||
		hf_scan_text(&s, " (config space inaccessible)"));
}

/* Reads a line by which the kernel reports that it cannot reach the device (drivers/pci/pci.c of Linux). */
static bool read_inaccessible(struct hf_scan s, struct hf_health_evidence *e)
{
	e->code = HF_HEALTH_CODE_INACCESSIBLE;
	return read_no_power(s) || read_not_ready(s);
}

/* Reads the registers of a device, which the kernel prints if the firmware handles errors first: "aer_status:
 * 0x00044000, aer_mask: 0x00000000", and some records later "aer_uncor_severity: 0x00462030".  A bit that is set
 * in both registers is an error that is fatal. */
static bool read_registers(struct hf_health_line_reader *reader, struct hf_scan s,
			   struct hf_health_evidence *e)
{
	uint32_t status, mask, fatal;

	hf_scan_text(&s, "AER: ");
	if (hf_scan_text(&s, "aer_status: ")) {
		hf_health_mark_clear(&reader->status);
		if (!hf_scan_hex32(&s, &status) || !hf_scan_text(&s, ", aer_mask: ") ||
		    !hf_scan_hex32(&s, &mask))
			return false;
		hf_health_mark_set(&reader->status, e->device);
		reader->status_bits = status & ~mask;
		return false;
	}
	if (!reader->status.set || strcmp(reader->status.device, e->device) != 0 ||
	    !hf_scan_text(&s, "aer_uncor_severity: ") || !hf_scan_hex32(&s, &fatal))
		return false;
	hf_health_mark_clear(&reader->status);
	e->code = HF_HEALTH_CODE_AER;
	if (reader->status_bits != 0)
		e->severity =
			(reader->status_bits & fatal) != 0 ? HF_HEALTH_FATAL : HF_HEALTH_NONFATAL;
	return e->severity != HF_HEALTH_UNSAID;
}

/* Reads "DRIVER ADDRESS: TEXT"; older kernels print "pciehp ADDRESS:pcie004: TEXT" for the services of a port. */
static bool read_pcie_form(struct hf_health_line_reader *reader, struct hf_scan s,
			   struct hf_health_evidence *e)
{
	struct hf_scan driver, service, p;
	bool of_port;

	if (!hf_scan_word(&s, "_-", &driver) || !hf_scan_char(&s, ' ') ||
	    !hf_health_scan_address(&s, true, e->device))
		return false;
	/* A virtual machine uses the device, so errors of the device do not concern this node. */
	if (hf_scan_text(&driver, "vfio"))
		return false;
	p = s;
	if (hf_scan_text(&p, ":pcie") && hf_scan_word(&p, "", &service))
		s = p;
	if (!hf_scan_text(&s, ": "))
		return false;
	e->detector = HF_HEALTH_AER;
	if (read_outcome(reader, &s, e) || read_slot_event(s, e) || read_inaccessible(s, e) ||
	    read_registers(reader, s, e))
		return true;
	of_port = hf_scan_text(&s, "AER: ");
	if (hf_scan_text(&s, "PCIe Bus Error: severity="))
		read_bus_error(s, e);
	else if (!of_port || !read_port_report(s, e))
		return false;
	e->code = HF_HEALTH_CODE_AER;
	return e->severity != HF_HEALTH_UNSAID;
}

static const struct {
	const char *text;
	enum hf_health_severity severity;
} firmware_types[] = {
	{"recoverable", HF_HEALTH_NONFATAL},
	{"fatal", HF_HEALTH_FATAL},
	{"corrected", HF_HEALTH_CORRECTED},
	{"info", HF_HEALTH_UNSAID},
};

/* Reads " Error 0, type: fatal", which begins the next error of the firmware's report. */
static bool read_firmware_error(struct hf_health_line_reader *reader, struct hf_scan s)
{
	uint64_t number;

	if (!hf_scan_text(&s, "Error ") || !hf_scan_decimal(&s, 4, &number) ||
	    !hf_scan_text(&s, ", type: "))
		return false;
	hf_health_mark_clear(&reader->firmware);
	for (size_t i = 0; i < HF_ARRAY_LEN(firmware_types); i++) {
		if (!hf_scan_text(&s, firmware_types[i].text))
			continue;
		hf_health_mark_set(&reader->firmware, NULL);
		reader->firmware_said = firmware_types[i].severity;
		reader->firmware_pcie = false;
		return true;
	}
	return true;
}

/* Reads a line such as "{1}[Hardware Error]:   device_id: 0000:9d:00.0" of a report of the firmware (APEI GHES),
 * which drivers/firmware/efi/cper.c of Linux prints line by line.  A report about the boot before (BERT) has no
 * number in front. */
static bool read_firmware(struct hf_health_line_reader *reader, struct hf_scan s,
			  struct hf_health_evidence *e)
{
	uint64_t number;

	if (!hf_scan_char(&s, '{') || !hf_scan_decimal(&s, 10, &number) ||
	    !hf_scan_text(&s, "}[Hardware Error]:"))
		return false;
	hf_scan_blanks(&s);
	if (read_firmware_error(reader, s) || !reader->firmware.set)
		return false;
	reader->firmware_pcie |= hf_scan_text(&s, "section_type: PCIe error");
	if (!reader->firmware_pcie || !hf_scan_text(&s, "device_id: ") ||
	    !hf_health_scan_address(&s, true, e->device))
		return false;
	hf_health_mark_clear(&reader->firmware);
	e->detector = HF_HEALTH_AER;
	e->code = HF_HEALTH_CODE_AER;
	e->severity = reader->firmware_said;
	return e->severity != HF_HEALTH_UNSAID;
}

bool hf_health_read_pcie(struct hf_health_line_reader *reader, struct hf_scan s,
			 struct hf_health_evidence *e)
{
	if (!read_firmware(reader, s, e) && !read_pcie_form(reader, s, e))
		return false;
	if (e->code == HF_HEALTH_CODE_AER || e->code == HF_HEALTH_CODE_CONTAINED) {
		hf_health_mark_set(&reader->report, NULL);
		reader->reported = e->severity;
	}
	return true;
}
