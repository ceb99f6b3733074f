/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/kmsg.h"
#include "health/scan_internal.h"

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
#define PENDING_LINES_MAX 4

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

/* The notice of three lines, in one record or in three; each is behind its "NVRM: ".  True when it is
 * complete. */
static bool notice(struct hf_health_line_reader *reader, struct hf_scan s,
		   struct hf_health_evidence *e)
{
	struct hf_scan p = s;

	if (hf_scan_text(&p, "The NVIDIA GPU ")) {
		memset(reader->pending, 0, sizeof(reader->pending));
		reader->pending_lines = 0;
		if (!address(&p, true, reader->pending) || !hf_scan_text(&p, "\nNVRM: "))
			return false;
		s = p;
	}
	if (reader->pending[0] == '\0')
		return false;
	if (installed(&s) && !hf_scan_text(&s, "\nNVRM: "))
		return false;
	if (!hf_scan_text(&s, "fallen off the bus and is not responding to commands"))
		return false;
	memcpy(e->device, reader->pending, sizeof(e->device));
	memset(reader->pending, 0, sizeof(reader->pending));
	return bus(e);
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

/* "0000:1a:00.0: TEXT" */
static bool of_gpu(struct hf_scan s, struct hf_health_evidence *e)
{
	if (!address(&s, true, e->device) || !hf_scan_text(&s, ": "))
		return false;
	return hf_scan_text(&s, "GPU has fallen off the bus") ? bus(e) : init(s, e);
}

static bool nvrm(struct hf_health_line_reader *reader, struct hf_scan s,
		 struct hf_health_evidence *e)
{
	struct hf_scan p = s;

	if (hf_scan_text(&p, "Xid ("))
		return xid(p, e);
	if (hf_scan_text(&p, "GPU "))
		return of_gpu(p, e);
	return notice(reader, s, e);
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

static bool aer(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan driver;
	bool of_port;

	if (!hf_scan_word(&s, "_-", &driver) || !hf_scan_char(&s, ' ') ||
	    !address(&s, true, e->device) || !hf_scan_text(&s, ": "))
		return false;
	of_port = hf_scan_text(&s, "AER: ");
	if (hf_scan_text(&s, "PCIe Bus Error: severity="))
		bus_error(s, e);
	else if (!of_port || !port_report(s, e))
		return false;
	e->detector = HF_HEALTH_AER;
	e->code = HF_HEALTH_CODE_AER;
	return e->severity != HF_HEALTH_UNSAID;
}

/* What mlx5_core prints, by the sentence that only that line has; the first match counts. */
static const struct {
	const char *text;
	enum hf_health_code code;
} mlx5_lines[] = {
	{"Will cause a leak of a command resource", HF_HEALTH_CODE_MLX5_LEAK},
	{"device's health compromised - reached miss count", HF_HEALTH_CODE_MLX5_HEALTH},
	{"unrecoverable hardware error", HF_HEALTH_CODE_MLX5_HARDWARE},
	{"TX timeout detected", HF_HEALTH_CODE_MLX5_TIMEOUT},
	{"RX timeout detected", HF_HEALTH_CODE_MLX5_TIMEOUT},
	{"Detected insufficient power on the PCIe slot", HF_HEALTH_CODE_MLX5_POWER},
	{"High Temperature", HF_HEALTH_CODE_MLX5_HOT},
	{"High temperature", HF_HEALTH_CODE_MLX5_HOT},
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

/* The sentence comes first, or behind what the driver puts before it: "synd 0x8: ", "module 0, ",
 * "CREATE_EQ(0x301) timeout. ". */
static bool says(struct hf_scan s, const char *text)
{
	while (!hf_scan_text(&s, text)) {
		while (s.at < s.end && *s.at != ':' && *s.at != ',' && *s.at != '.')
			s.at++;
		if (s.at == s.end)
			return false;
		s.at++;
		hf_scan_blanks(&s);
	}
	return true;
}

/* "mlx5_core ADDRESS[ INTERFACE]: TEXT" */
static bool mlx5(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan name;

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
	for (size_t i = 0; i < HF_ARRAY_LEN(mlx5_lines); i++) {
		if (says(s, mlx5_lines[i].text)) {
			e->detector = HF_HEALTH_MLX5;
			e->code = (int32_t)mlx5_lines[i].code;
			return true;
		}
	}
	return false;
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
	while (s.at < s.end && ((*s.at >= '0' && *s.at <= '9') || *s.at == ',' || *s.at == '-'))
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
	if (hf_scan_text(&p, "mlx5_core ") && mlx5(p, e))
		return true;
	return aer(s, e);
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
	if (reader->pending[0] != '\0' && ++reader->pending_lines > PENDING_LINES_MAX)
		memset(reader->pending, 0, sizeof(reader->pending));
	told = parse(reader, s, &e);
	if (!told || of_packet(s) || of_group(s))
		return false;
	e.source = HF_HEALTH_BY_KMSG;
	e.seq = record->seq;
	hf_scan_print(&s, e.line, sizeof(e.line));
	*ret_evidence = e;
	return true;
}
