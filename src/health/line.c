/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/kmsg.h"
#include "health/scan_internal.h"

#include "base/ascii.h"

#include <stdio.h>
#include <string.h>

/*
 * What drivers print about their devices.  The kernel's own records begin with a process's name, too
 * ("NAME[PID]: segfault at … in FILE[…]", "NAME: page allocation failure: …"), and go on with more that it
 * chose.  So each form is read from the record's first byte, word by word as its driver prints it, and has
 * a whole address in it: with that it is longer than a name of a process or of an interface can be
 * (15 bytes).  A number is read before any text that a process could have chosen.
 */

/* Between the first and the last line of the notice of three there is one; others may come
 * between from another CPU. */
#define NOTICE_LINES_MAX 4
/* The kernel prints modules, registers and a stack of what is stuck; records of other processors come between. */
#define STUCK_LINES_MAX 40
/* mlx5_core prints so many details of one error of the firmware at most. */
#define RATED_LINES_MAX 24
/* Between a report of PCIe and the end of its recovery the kernel prints registers and headers. */
#define REPORT_LINES_MAX 24

static void set_mark(struct hf_health_line_mark *mark, const char *device)
{
	memset(mark, 0, sizeof(*mark));
	mark->set = true;
	if (device)
		memcpy(mark->device, device, sizeof(mark->device));
}

static void clear_mark(struct hf_health_line_mark *mark)
{
	memset(mark, 0, sizeof(*mark));
}

static void age_mark(struct hf_health_line_mark *mark, unsigned lines_max)
{
	if (mark->set && ++mark->lines > lines_max)
		clear_mark(mark);
}

static void age_marks(struct hf_health_line_reader *reader)
{
	age_mark(&reader->notice, NOTICE_LINES_MAX);
	age_mark(&reader->stuck, STUCK_LINES_MAX);
	age_mark(&reader->rated, RATED_LINES_MAX);
	age_mark(&reader->report, REPORT_LINES_MAX);
}

static bool digits(struct hf_scan *s, size_t min, size_t max)
{
	struct hf_scan word;

	return hf_scan_word(s, "", &word) && hf_scan_left(&word) >= min &&
	       hf_scan_left(&word) <= max;
}

/* "0000:1a:00", with ".0" behind it where `function` asks for it: whole, as drivers print it. */
static bool address(struct hf_scan *s, bool function, char ret_device[HF_HEALTH_DEVICE_MAX])
{
	struct hf_scan p = *s;
	const char *at = p.at;

	if (!digits(&p, 4, 8) || !hf_scan_char(&p, ':') || !digits(&p, 2, 2) ||
	    !hf_scan_char(&p, ':') || !digits(&p, 2, 2))
		return false;
	if (hf_scan_char(&p, '.') ? !digits(&p, 1, 1) : function)
		return false;
	if (!hf_health_pci_normalize(at, (size_t)(p.at - at), ret_device))
		return false;
	*s = p;
	return true;
}

static void set_unit(struct hf_health_evidence *e, const struct hf_scan *unit)
{
	hf_scan_print(unit, e->unit, sizeof(e->unit));
}

/* ---- Xid: what stands behind the number ------------------------------------------------------- */

/* "… caused by previous Xid N" at the very end, as newer drivers write for 45. */
static void cause(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number;

	if (hf_scan_until(&s, " caused by previous Xid ", NULL) &&
	    hf_scan_decimal(&s, 4, &number) && s.at == s.end)
		e->cause = (int32_t)number;
}

/* "0xA (NAME)" */
static bool action(struct hf_scan *s, uint32_t *ret_action)
{
	return hf_scan_hex32(s, ret_action) && hf_scan_text(s, " (") && hf_scan_until(s, ")", NULL);
}

/* The whole text must be the sentence: a change to 0 takes a fault back, so half a line or a
 * process that is named like one must not do. */
static bool recovery(struct hf_scan s, struct hf_health_evidence *e)
{
	uint32_t from, to;

	if (!hf_scan_text(&s, "GPU recovery action changed from ") || !action(&s, &from) ||
	    !hf_scan_text(&s, " to ") || !action(&s, &to))
		return false;
	hf_scan_blanks(&s);
	if (s.at != s.end || to > 5)
		return false;
	e->detector = HF_HEALTH_RECOVERY;
	e->verb = to == 0 ? HF_HEALTH_RECOVERED : HF_HEALTH_FAULT;
	e->code = (int32_t)to;
	return true;
}

/* "XC0", and "XC 0" before driver 575; so is "i0". */
static bool tagged(struct hf_scan *s, const char *tag, uint64_t *ret_value)
{
	struct hf_scan p = *s;

	hf_scan_blanks(&p);
	if (!hf_scan_text(&p, tag))
		return false;
	hf_scan_blanks(&p);
	/* No link at all is -1. */
	if (hf_scan_text(&p, "-1"))
		*ret_value = UINT64_MAX;
	else if (!hf_scan_decimal(&p, 4, ret_value))
		return false;
	*s = p;
	return true;
}

static void link_unit(struct hf_health_evidence *e, const struct hf_scan *unit, uint64_t number)
{
	char name[HF_HEALTH_UNIT_MAX];

	hf_scan_print(unit, name, sizeof(name) - sizeof(" link 9999"));
	/* What is longer has been there before. */
	memset(e->unit, 0, sizeof(e->unit));
	if (number == UINT64_MAX)
		snprintf(e->unit, sizeof(e->unit), "%s link none", name);
	else
		snprintf(e->unit, sizeof(e->unit), "%s link %u", name, (unsigned)number);
}

/* UNIT[/SUBUNIT] Fatal|Nonfatal XCn iN Link NN (0x… 0x…): 144 to 150.  As far as the link it must all be
 * there: "Fatal" alone could be a process's name. */
static bool nvlink5(struct hf_scan s, struct hf_health_evidence *e)
{
	enum hf_health_severity severity;
	struct hf_scan unit;
	uint64_t number;

	hf_scan_blanks(&s);
	if (!hf_scan_word(&s, "_/-", &unit))
		return false;
	hf_scan_blanks(&s);
	if (hf_scan_text(&s, "Fatal "))
		severity = HF_HEALTH_FATAL;
	else if (hf_scan_text(&s, "Nonfatal "))
		severity = HF_HEALTH_NONFATAL;
	else
		return false;
	if (!tagged(&s, "XC", &number) || !tagged(&s, "i", &number) || !tagged(&s, "Link", &number))
		return false;
	e->severity = severity;
	link_unit(e, &unit, number);
	hf_scan_blanks(&s);
	if (hf_scan_char(&s, '(') && hf_scan_hex32(&s, &e->word)) {
		e->has_word = true;
		e->subcode = (int32_t)(e->word >> 20 & 0x3f);
	} else if (hf_scan_char(&s, '[') && hf_scan_hex32(&s, &e->word)) {
		/* One status word and no interrupt information: there is no sub-code in it. */
		e->has_word = true;
	}
	return true;
}

/* "NVLink: fatal error detected on link 2(0x10000, 0x0, …)": 74 */
static bool nvlink(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number;

	if (!hf_scan_text(&s, "NVLink") || !hf_scan_until(&s, " on link ", NULL) ||
	    !hf_scan_decimal(&s, 3, &number))
		return false;
	snprintf(e->unit, sizeof(e->unit), "link %u", (unsigned)number);
	hf_scan_blanks(&s);
	if (hf_scan_char(&s, '(') && hf_scan_hex32(&s, &e->word))
		e->has_word = true;
	return true;
}

/* "Graphics … on (GPC 0, TPC 1, SM 0): …": 13 */
static bool graphics(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t gpc, tpc;

	if (!hf_scan_text(&s, "Graphics ") || !hf_scan_until(&s, " on (GPC ", NULL) ||
	    !hf_scan_decimal(&s, 3, &gpc) || !hf_scan_text(&s, ", TPC ") ||
	    !hf_scan_decimal(&s, 3, &tpc))
		return false;
	snprintf(e->unit, sizeof(e->unit), "GPC %u TPC %u", (unsigned)gpc, (unsigned)tpc);
	return true;
}

/* "Contained: UNIT (0x…,0x…). RST: No, D-RST: No": 94, 95 */
static bool contained(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan text, unit;

	if ((!hf_scan_text(&s, "Contained: ") && !hf_scan_text(&s, "Uncontained: ")) ||
	    !hf_scan_until(&s, " (0x", &text) || hf_scan_has(&text, ",") ||
	    !hf_scan_word(&text, "_-", &unit))
		return false;
	set_unit(e, &unit);
	return true;
}

/* The name of a process may hold the comma that would end it.  It is too short for any of these forms, so
 * the first that is whole is the driver's. */
static void behind_names(struct hf_scan s, struct hf_health_evidence *e,
			 bool (*form)(struct hf_scan s, struct hf_health_evidence *e))
{
	while (!form(s, e) && hf_scan_until(&s, ", ", NULL))
		continue;
}

static void details(struct hf_scan s, struct hf_health_evidence *e)
{
	switch (e->code) {
	case 13: behind_names(s, e, graphics); break;
	case 45: cause(s, e); break;
	case 74: behind_names(s, e, nvlink); break;
	case 94:
	case 95: behind_names(s, e, contained); break;
	case 144:
	case 145:
	case 146:
	case 147:
	case 148:
	case 149:
	case 150: behind_names(s, e, nvlink5); break;
	case 154: behind_names(s, e, recovery); break;
	default: break;
	}
}

/* "pid=P, name=NAME, ".  Both may be "<unknown>", in quotes or not, and the name may hold
 * colons; the kernel's names of processes are too short to hold a sentence. */
static void skip_process(struct hf_scan *s)
{
	struct hf_scan p = *s;

	if (hf_scan_text(&p, "pid=") && hf_scan_until(&p, ",", NULL)) {
		hf_scan_blanks(&p);
		*s = p;
	}
	if (hf_scan_text(&p, "name="))
		s->at = hf_scan_until(&p, ", ", NULL) ? p.at : s->end;
}

/* " GPU-I:NN GPU-CI:NN" */
static bool instances(struct hf_scan *s, struct hf_health_evidence *e)
{
	uint64_t number;

	if (hf_scan_text(s, " GPU-I:")) {
		if (!hf_scan_decimal(s, 4, &number))
			return false;
		e->gpu_instance = (int32_t)number;
	}
	if (hf_scan_text(s, " GPU-CI:")) {
		if (!hf_scan_decimal(s, 4, &number))
			return false;
		e->compute_instance = (int32_t)number;
	}
	return true;
}

/* "(PCI:0000:1a:00 GPU-I:01): N, TEXT", the domain's "PCI:" missing in old drivers */
static bool xid(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number;

	hf_scan_text(&s, "PCI:");
	if (!address(&s, false, e->device) || !instances(&s, e) || !hf_scan_text(&s, "): ") ||
	    !hf_scan_decimal(&s, 4, &number) || (s.at < s.end && *s.at != ','))
		return false;
	e->detector = HF_HEALTH_XID;
	e->code = (int32_t)number;
	if (hf_scan_char(&s, ',')) {
		hf_scan_blanks(&s);
		skip_process(&s);
		details(s, e);
	}
	return true;
}

/* ---- NVRM: the bus ------------------------------------------------------------------------------ */

static bool bus(struct hf_health_evidence *e)
{
	e->detector = HF_HEALTH_BUSLOST;
	e->code = HF_HEALTH_CODE_BUS;
	return true;
}

static bool installed(struct hf_scan *s)
{
	return hf_scan_text(s, "(PCI ID: ") && digits(s, 4, 4) && hf_scan_char(s, ':') &&
	       digits(s, 4, 4) && hf_scan_text(s, ") installed in this system has");
}

/* Reads the second and third line of the notice; each begins with "NVRM: ".  True: the notice is complete. */
static bool read_notice_rest(struct hf_health_line_reader *reader, struct hf_scan s,
			     struct hf_health_evidence *e)
{
	if (!reader->notice.set)
		return false;
	if (installed(&s) && !hf_scan_text(&s, "\nNVRM: "))
		return false;
	if (!hf_scan_text(&s, "fallen off the bus and is not responding to commands"))
		return false;
	memcpy(e->device, reader->notice.device, sizeof(e->device));
	clear_mark(&reader->notice);
	return bus(e);
}

/* The notice of three lines, in one record or in three. */
static bool notice(struct hf_health_line_reader *reader, struct hf_scan s,
		   struct hf_health_evidence *e)
{
	char device[HF_HEALTH_DEVICE_MAX] = "";

	if (hf_scan_text(&s, "The NVIDIA GPU ")) {
		clear_mark(&reader->notice);
		if (!address(&s, true, device))
			return false;
		set_mark(&reader->notice, device);
		if (!hf_scan_text(&s, "\nNVRM: "))
			return false;
	}
	return read_notice_rest(reader, s, e);
}

/* "RmInitAdapter failed! (0x26:0x56:1474)" and, of the same failure, "rm_init_adapter failed, device minor
 * number 3" */
static bool init(struct hf_scan s, struct hf_health_evidence *e)
{
	uint32_t status;
	uint64_t number;
	bool told;

	if (hf_scan_text(&s, "RmInitAdapter failed! ("))
		told = hf_scan_hex32(&s, &status) && hf_scan_char(&s, ':') &&
		       hf_scan_hex32(&s, &status) && hf_scan_char(&s, ':') &&
		       hf_scan_decimal(&s, 6, &number) && hf_scan_char(&s, ')');
	else
		told = hf_scan_text(&s, "rm_init_adapter failed, device minor number ") &&
		       hf_scan_decimal(&s, 6, &number);
	hf_scan_blanks(&s);
	e->detector = HF_HEALTH_BUSLOST;
	e->code = HF_HEALTH_CODE_INIT;
	return told && s.at == s.end;
}

/* "GPU1 ": the driver's own number of the GPU, which is neither its address nor the number of its device file. */
static void skip_number(struct hf_scan *s)
{
	struct hf_scan p = *s;
	uint64_t number;

	if (hf_scan_text(&p, "GPU") && hf_scan_decimal(&p, 3, &number) && hf_scan_char(&p, ' '))
		*s = p;
}

/* "[GPU1 ]nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from
 * status @ kernel_channel.c:2874", or "Check failed: "; and "[GPU1 ]GPU requires reset", as the library has it.  The
 * line names no address, so it concerns the node. */
static bool read_reset(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan function;

	skip_number(&s);
	if (!hf_scan_text(&s, "GPU requires reset")) {
		if (!hf_scan_word(&s, "_", &function) || !hf_scan_text(&s, ": ") ||
		    (!hf_scan_text(&s, "Assertion failed: ") &&
		     !hf_scan_text(&s, "Check failed: ")) ||
		    !hf_scan_text(&s, "Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)"))
			return false;
	}
	e->detector = HF_HEALTH_RECOVERY;
	e->code = HF_HEALTH_CODE_RESET_SOMEWHERE;
	snprintf(e->unit, sizeof(e->unit), "GPU not known");
	return true;
}

/* "GPU requires reset" behind the address of a GPU. */
static bool read_reset_of(const struct hf_scan *s, struct hf_health_evidence *e)
{
	struct hf_scan p = *s;

	e->detector = HF_HEALTH_RECOVERY;
	e->code = HF_HEALTH_CODE_RESET_REQUIRED;
	return hf_scan_text(&p, "GPU requires reset");
}

/* "0000:1a:00.0: TEXT" */
static bool of_gpu(struct hf_scan s, struct hf_health_evidence *e)
{
	if (!address(&s, true, e->device) || !hf_scan_text(&s, ": "))
		return false;
	if (hf_scan_text(&s, "GPU has fallen off the bus"))
		return bus(e);
	return read_reset_of(&s, e) || init(s, e);
}

static bool nvrm(struct hf_health_line_reader *reader, struct hf_scan s,
		 struct hf_health_evidence *e)
{
	struct hf_scan p = s;

	if (hf_scan_text(&p, "Xid ("))
		return xid(p, e);
	if (hf_scan_text(&p, "GPU ") && of_gpu(p, e))
		return true;
	if (notice(reader, s, e))
		return true;
	memset(e->device, 0, sizeof(e->device));
	return read_reset(s, e);
}

/* ---- NVSwitch -------------------------------------------------------------------------------------- */

/* "nvidia-nvswitchN: SXid (PCI:…): NNNNN, Fatal, Link 04 TEXT" */
static bool sxid(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number, link;

	if (!hf_scan_decimal(&s, 4, &number) ||
	    !(hf_scan_text(&s, ": SXid (PCI:") || hf_scan_text(&s, " SXid (PCI:")) ||
	    !address(&s, false, e->device) || !hf_scan_text(&s, "): ") ||
	    !hf_scan_decimal(&s, 6, &number) || (s.at < s.end && *s.at != ','))
		return false;
	e->detector = HF_HEALTH_SXID;
	e->code = (int32_t)number;
	if (hf_scan_text(&s, ", Fatal"))
		e->severity = HF_HEALTH_FATAL;
	else if (hf_scan_text(&s, ", Non-fatal"))
		e->severity = HF_HEALTH_NONFATAL;
	if (hf_scan_until(&s, "Link ", NULL) && hf_scan_decimal(&s, 3, &link))
		snprintf(e->unit, sizeof(e->unit), "link %u", (unsigned)link);
	return true;
}

/* ---- PCIe and network cards -------------------------------------------------------------------------- */

/* "Uncorrected (Fatal)"; newer kernels write Uncorrectable and Correctable. */
static enum hf_health_severity aer_severity(struct hf_scan *s)
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

/* "DRIVER ADDRESS: PCIe Bus Error: severity=S, type=T, (Receiver ID)" */
static void bus_error(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan type;

	e->severity = aer_severity(&s);
	if (hf_scan_text(&s, ", type=") && hf_scan_word(&s, " ", &type))
		set_unit(e, &type);
}

/* A root port's "pcieport ADDRESS: AER: [Multiple] S error [message] received: ADDRESS": it speaks of
 * somebody else. */
static bool port_report(struct hf_scan s, struct hf_health_evidence *e)
{
	e->severity = aer_severity(&s);
	if (!hf_scan_text(&s, " error "))
		return false;
	hf_scan_text(&s, "message ");
	return (hf_scan_text(&s, "received: ") || hf_scan_text(&s, "received from ")) &&
	       address(&s, true, e->device);
}

/* What the kernel does about an error, as drivers/pci/pcie/err.c and dpc.c of Linux print it.  Older kernels begin the
 * sentence with a capital.  Code 0: the device has recovered. */
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

		/* "AER: " is followed by the letter that tells most of them apart. */
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

/* "pciehp: Slot(12): Link Down" or "Card not present"; "Link Down/Up ignored" is neither. */
static bool read_slot_event(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan name;

	hf_scan_text(&s, "pciehp: ");
	if (!hf_scan_text(&s, "Slot(") || !hf_scan_word(&s, "_-. ", &name) ||
	    !hf_scan_text(&s, "): ") ||
	    (!hf_scan_text(&s, "Link Down") && !hf_scan_text(&s, "Card not present")))
		return false;
	hf_scan_blanks(&s);
	e->code = HF_HEALTH_CODE_LINK_DOWN;
	return s.at == s.end;
}

/* "not ready 65535ms after bus reset; giving up" */
static bool read_not_ready(struct hf_scan s)
{
	struct hf_scan after;
	uint64_t number;

	return hf_scan_text(&s, "not ready ") && hf_scan_decimal(&s, 9, &number) &&
	       hf_scan_text(&s, "ms after ") && hf_scan_word(&s, " ", &after) &&
	       hf_scan_text(&s, "; giving up");
}

/* "Unable to change power state from D3cold to D0, device inaccessible", and the form of older kernels.  The kernel
 * prints it if a read of the device's configuration returns only ones. */
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

/* The kernel cannot reach the device (drivers/pci/pci.c of Linux). */
static bool read_inaccessible(struct hf_scan s, struct hf_health_evidence *e)
{
	e->code = HF_HEALTH_CODE_INACCESSIBLE;
	return read_no_power(s) || read_not_ready(s);
}

/* "DRIVER ADDRESS: TEXT"; older kernels print "pciehp ADDRESS:pcie004: TEXT" for the services of a port. */
static bool read_pcie_form(const struct hf_health_line_reader *reader, struct hf_scan s,
			   struct hf_health_evidence *e)
{
	struct hf_scan driver, service, p;
	bool of_port;

	if (!hf_scan_word(&s, "_-", &driver) || !hf_scan_char(&s, ' ') ||
	    !address(&s, true, e->device))
		return false;
	/* A virtual machine uses the device, so the errors do not concern this node. */
	if (hf_scan_text(&driver, "vfio"))
		return false;
	p = s;
	if (hf_scan_text(&p, ":pcie") && hf_scan_word(&p, "", &service))
		s = p;
	if (!hf_scan_text(&s, ": "))
		return false;
	e->detector = HF_HEALTH_AER;
	if (read_outcome(reader, &s, e) || read_slot_event(s, e) || read_inaccessible(s, e))
		return true;
	of_port = hf_scan_text(&s, "AER: ");
	if (hf_scan_text(&s, "PCIe Bus Error: severity="))
		bus_error(s, e);
	else if (!of_port || !port_report(s, e))
		return false;
	e->code = HF_HEALTH_CODE_AER;
	return e->severity != HF_HEALTH_UNSAID;
}

static bool read_pcie(struct hf_health_line_reader *reader, struct hf_scan s,
		      struct hf_health_evidence *e)
{
	if (!read_pcie_form(reader, s, e))
		return false;
	if (e->code == HF_HEALTH_CODE_AER || e->code == HF_HEALTH_CODE_CONTAINED) {
		set_mark(&reader->report, NULL);
		reader->reported = e->severity;
	}
	return true;
}

/* What mlx5_core prints, by the sentence that only that line has; the first match counts.  Code 0: the driver has
 * recovered the adapter.  Sources: health.c, en_main.c, en/reporter_tx.c and ipoib/ipoib.c in
 * drivers/net/ethernet/mellanox/mlx5/core of Linux, in versions from 2015 to 2025. */
static const struct {
	const char *text;
	enum hf_health_code code;
} mlx5_lines[] = {
	{"Will cause a leak of a command resource", HF_HEALTH_CODE_MLX5_LEAK},
	{"device's health compromised", HF_HEALTH_CODE_MLX5_HEALTH},
	{"health recovery succeeded", 0},
	{"health recovery failed", HF_HEALTH_CODE_MLX5_UNRECOVERED},
	{"health recovery flow aborted", HF_HEALTH_CODE_MLX5_UNRECOVERED},
	{"Driver is in error state. Unloading", HF_HEALTH_CODE_MLX5_UNRECOVERED},
	{"Cold reset is required", HF_HEALTH_CODE_MLX5_COLD_RESET},
	{"Fatal error ", HF_HEALTH_CODE_MLX5_FATAL},
	{"PCI slot is unavailable", HF_HEALTH_CODE_MLX5_FATAL},
	{"handling bad device here", HF_HEALTH_CODE_MLX5_FATAL},
	{"unrecoverable hardware error", HF_HEALTH_CODE_MLX5_HARDWARE},
	{"TX timeout detected", HF_HEALTH_CODE_MLX5_TIMEOUT},
	{"TX timeout on queue", HF_HEALTH_CODE_MLX5_TIMEOUT},
	{"RX timeout detected", HF_HEALTH_CODE_MLX5_TIMEOUT},
	{"mlx5e_safe_reopen_channels failed recovering", HF_HEALTH_CODE_MLX5_TX_STUCK},
	{"mlx5e_open_locked failed recovering", HF_HEALTH_CODE_MLX5_TX_STUCK},
	{"mlx5i_open failed recovering", HF_HEALTH_CODE_MLX5_TX_STUCK},
	{"Detected insufficient power on the PCIe slot", HF_HEALTH_CODE_MLX5_POWER},
	{"High Temperature", HF_HEALTH_CODE_MLX5_HOT},
	{"High temperature", HF_HEALTH_CODE_MLX5_HOT},
	{"High temprature", HF_HEALTH_CODE_MLX5_HOT}, /* as older drivers wrote it */
	{"Cable unplugged", HF_HEALTH_CODE_MLX5_CABLE},
};

/* "FUNCTION:LINE:(pid N): ", or "FUNCTION:LINE: " of old drivers; most lines have it. */
static void skip_place(struct hf_scan *s)
{
	struct hf_scan p = *s, word;
	uint64_t number;

	if (!hf_scan_word(&p, "_.", &word) || !hf_scan_char(&p, ':') ||
	    !hf_scan_decimal(&p, 6, &number) || !hf_scan_char(&p, ':'))
		return;
	if (hf_scan_text(&p, "(pid ") &&
	    (!hf_scan_decimal(&p, 10, &number) || !hf_scan_text(&p, "):")))
		return;
	if (hf_scan_char(&p, ' '))
		*s = p;
}

/* The index of the first row of mlx5_lines with a sentence of the text, else HF_ARRAY_LEN.  The sentence begins the
 * text or follows a prefix of the driver: "synd 0x8: ", "module 0, ", "CREATE_EQ(0x301) timeout. ". */
static size_t find_mlx5_line(struct hf_scan s)
{
	size_t found = HF_ARRAY_LEN(mlx5_lines);

	while (s.at < s.end) {
		for (size_t i = 0; i < found; i++) {
			struct hf_scan p = s;

			if (*s.at == mlx5_lines[i].text[0] && hf_scan_text(&p, mlx5_lines[i].text))
				found = i;
		}
		while (s.at < s.end && *s.at != ':' && *s.at != ',' && *s.at != '.')
			s.at++;
		if (s.at < s.end)
			s.at++;
		hf_scan_blanks(&s);
	}
	return found;
}

/* The kernel's level "error"; messages of higher levels only inform. */
#define LEVEL_ERROR 3

/* "Health issue observed, firmware internal error, severity(3) ERROR:".  Older drivers print no severity, only "synd 0x1:
 * firmware internal error"; newer ones print that line as a detail of the first. */
static bool read_syndrome(struct hf_health_line_reader *reader, struct hf_scan s,
			  struct hf_health_evidence *e)
{
	uint64_t level = LEVEL_ERROR;
	uint32_t number;

	e->code = HF_HEALTH_CODE_MLX5_SYNDROME;
	if (hf_scan_text(&s, "Health issue observed, ")) {
		if (!hf_scan_until(&s, ", severity(", NULL) || !hf_scan_decimal(&s, 2, &level) ||
		    !hf_scan_char(&s, ')'))
			return false;
		set_mark(&reader->rated, e->device);
		e->severity = level > LEVEL_ERROR ? HF_HEALTH_NONFATAL : HF_HEALTH_UNSAID;
		return true;
	}
	return hf_scan_text(&s, "synd ") && hf_scan_hex32(&s, &number) && number != 0 &&
	       hf_scan_text(&s, ": ") &&
	       !(reader->rated.set && strcmp(reader->rated.device, e->device) == 0);
}

/* "mlx5_core ADDRESS[ INTERFACE]: TEXT" */
static bool mlx5(struct hf_health_line_reader *reader, struct hf_scan s,
		 struct hf_health_evidence *e)
{
	struct hf_scan name;
	size_t found;

	if (!address(&s, true, e->device))
		return false;
	/* A pod may have named its interface; there is no blank and no colon in such a name. */
	if (hf_scan_char(&s, ' ')) {
		if (!hf_scan_until(&s, ": ", &name) || hf_scan_has(&name, " "))
			return false;
	} else if (!hf_scan_text(&s, ": ")) {
		return false;
	}
	skip_place(&s);
	e->detector = HF_HEALTH_MLX5;
	found = find_mlx5_line(s);
	if (found == HF_ARRAY_LEN(mlx5_lines))
		return read_syndrome(reader, s, e);
	e->code = (int32_t)mlx5_lines[found].code;
	e->verb = e->code == 0 ? HF_HEALTH_RECOVERED : HF_HEALTH_FAULT;
	return true;
}

/* ---- what is stuck in a driver ------------------------------------------------------------------------ */

/* "[NMI ][watchdog: ]BUG: soft lockup - CPU#3 stuck for 22s! [NAME:PID]" */
static bool is_lockup(struct hf_scan s)
{
	uint64_t number;

	hf_scan_text(&s, "NMI ");
	hf_scan_text(&s, "watchdog: ");
	return hf_scan_text(&s, "BUG: soft lockup - CPU#") && hf_scan_decimal(&s, 5, &number) &&
	       hf_scan_text(&s, " stuck for ") && hf_scan_decimal(&s, 6, &number) &&
	       hf_scan_text(&s, "s!");
}

/* "INFO: task NAME:PID blocked for more than 122 seconds."; a process may choose the name, of 15 bytes at most. */
static bool is_hung_task(struct hf_scan s)
{
	uint64_t number;

	return hf_scan_text(&s, "INFO: task ") &&
	       hf_scan_until(&s, " blocked for more than ", NULL) &&
	       hf_scan_decimal(&s, 6, &number) && hf_scan_text(&s, " seconds.") && s.at == s.end;
}

/* The rest of the line is the name of one of the driver's two modules. */
static bool ends_in_mlx5(struct hf_scan s)
{
	return (hf_scan_text(&s, " [mlx5_core]") || hf_scan_text(&s, " [mlx5_ib]")) &&
	       s.at == s.end;
}

/* "mlx5_health0000:41:00.0" is the queue of the adapter at 0000:41:00.0. Other queues have no address. */
static void find_queue_device(struct hf_scan name, char ret_device[HF_HEALTH_DEVICE_MAX])
{
	if (!hf_scan_text(&name, "mlx5_health") || !address(&name, true, ret_device) ||
	    name.at != name.end)
		memset(ret_device, 0, HF_HEALTH_DEVICE_MAX);
}

/* "Workqueue: mlx5e mlx5e_tx_timeout_work [mlx5_core]" */
static bool is_work_of_mlx5(struct hf_scan s, char ret_device[HF_HEALTH_DEVICE_MAX])
{
	struct hf_scan queue, function;

	if (!hf_scan_text(&s, "Workqueue: ") || !hf_scan_word(&s, "_-:.#/", &queue) ||
	    !hf_scan_char(&s, ' ') || !hf_scan_word(&s, "_.", &function) || !ends_in_mlx5(s))
		return false;
	find_queue_device(queue, ret_device);
	return true;
}

/* "RIP: 0010:mlx5_cmd_exec+0x12/0x340 [mlx5_core]", "pc : mlx5_cmd_exec+0x12/0x340 [mlx5_core]": the kernel's
 * code.  A program's address begins with "RIP: 0033:". */
static bool is_code_of_mlx5(struct hf_scan s)
{
	struct hf_scan function;
	uint32_t number;

	return (hf_scan_text(&s, "RIP: 0010:") || hf_scan_text(&s, "pc : ")) &&
	       hf_scan_word(&s, "_.", &function) && hf_scan_char(&s, '+') &&
	       hf_scan_hex32(&s, &number) && hf_scan_char(&s, '/') && hf_scan_hex32(&s, &number) &&
	       ends_in_mlx5(s);
}

/* The kernel prints first that a processor or a task is stuck, and some records later in which driver. */
static bool read_stuck(struct hf_health_line_reader *reader, struct hf_scan s,
		       struct hf_health_evidence *e)
{
	char device[HF_HEALTH_DEVICE_MAX] = "";

	if (s.at < s.end && strchr("BINw", *s.at) && (is_lockup(s) || is_hung_task(s))) {
		set_mark(&reader->stuck, NULL);
		return false;
	}
	if (!reader->stuck.set || (!is_work_of_mlx5(s, device) && !is_code_of_mlx5(s)))
		return false;
	clear_mark(&reader->stuck);
	*e = hf_health_evidence_none();
	memcpy(e->device, device, sizeof(e->device));
	e->detector = HF_HEALTH_MLX5;
	e->code = HF_HEALTH_CODE_MLX5_LOCKUP;
	return true;
}

/* ---- any line ------------------------------------------------------------------------------------------ */

/* What the kernel's packet filter logs begins with a text of whoever set its rule.  Each of these rows is
 * longer than a process's name: nobody hides a line of a driver by what it calls itself. */
static bool of_packet(struct hf_scan s)
{
	struct hf_scan p;

	if (!hf_scan_until(&s, "IN=", NULL) || !hf_scan_until(&s, " OUT=", NULL))
		return false;
	p = s;
	return (hf_scan_until(&p, "SRC=", NULL) && hf_scan_has(&p, " DST=")) ||
	       hf_scan_has(&s, "ARP HTYPE=") || hf_scan_has(&s, "TRUNCATED");
}

/* "NAME,mems_allowed=0": the end of a notice about memory, where another record came between; the control
 * group was named by whoever made it. */
static bool of_group(struct hf_scan s)
{
	if (!hf_scan_until(&s, ",mems_allowed=", NULL))
		return false;
	while (s.at < s.end && (hf_ascii_is_digit(*s.at) || *s.at == ',' || *s.at == '-'))
		s.at++;
	return s.at == s.end || hf_scan_text(&s, "global_oom") || hf_scan_text(&s, "oom_memcg=");
}

static bool parse(struct hf_health_line_reader *reader, struct hf_scan s,
		  struct hf_health_evidence *e)
{
	struct hf_scan p = s;

	if (hf_scan_text(&p, "NVRM: "))
		return nvrm(reader, p, e);
	if (hf_scan_text(&p, "nvidia-nvswitch"))
		return sxid(p, e);
	if (hf_scan_text(&p, "mlx5_core ")) {
		if (mlx5(reader, p, e))
			return true;
		/* The form did not match, but may have filled in an address. */
		*e = hf_health_evidence_none();
	}
	return read_pcie(reader, s, e) || read_stuck(reader, s, e);
}

/* Reads a further line of a record: only as a line of the notice.  A process may put any other text there, by the name
 * of a file for instance. */
static bool parse_indented(struct hf_health_line_reader *reader, struct hf_scan s,
			   struct hf_health_evidence *e)
{
	return hf_scan_text(&s, "NVRM: ") && read_notice_rest(reader, s, e);
}

bool hf_health_line_parse(struct hf_health_line_reader *reader,
			  const struct hf_health_record *record,
			  struct hf_health_evidence *ret_evidence)
{
	struct hf_health_evidence e = hf_health_evidence_none();
	struct hf_scan s = hf_scan_of(record->text, record->text_len);
	bool told;

	hf_assert(record->text_len <= sizeof(record->text));
	/* A forged one is not even let near the reader's memory. */
	if (record->facility != 0)
		return false;
	if (reader->notice.set || reader->stuck.set || reader->rated.set || reader->report.set)
		age_marks(reader);
	told = record->indented ? parse_indented(reader, s, &e) : parse(reader, s, &e);
	if (!told || of_packet(s) || of_group(s))
		return false;
	e.source = HF_HEALTH_BY_KMSG;
	e.seq = record->seq;
	hf_scan_print(&s, e.line, sizeof(e.line));
	*ret_evidence = e;
	return true;
}
