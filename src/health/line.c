/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/kmsg.h"
#include "health/scan_internal.h"

#include <stdio.h>
#include <string.h>

/*
 * What drivers print about their devices.  Everything is anchored at the beginning of the
 * record, and a number is read before any text that a process could have chosen (its name).
 */

/* Between the first and the last line of the notice of three there is one; others may come
 * between from another CPU. */
#define PENDING_LINES_MAX 4

static void set_device(struct hf_health_evidence *e, const struct hf_scan *address)
{
	/* A broken address leaves "": nobody can tell whose the fault would be. */
	(void)hf_health_pci_normalize(address->at, hf_scan_left(address), e->device);
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

/* "… on link 2(0x10000, 0x0, …)": 74 */
static void nvlink(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan p = s;
	uint64_t number;

	if (hf_scan_until(&p, "link ", NULL) && hf_scan_decimal(&p, 3, &number)) {
		snprintf(e->unit, sizeof(e->unit), "link %u", (unsigned)number);
		hf_scan_blanks(&p);
		s = p;
	}
	if (hf_scan_until(&s, "(", NULL) && hf_scan_hex32(&s, &e->word))
		e->has_word = true;
}

/* "… (GPC 0, TPC 1, SM 0): …": 13 */
static void graphics(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t gpc, tpc;

	if (hf_scan_until(&s, "(GPC ", NULL) && hf_scan_decimal(&s, 3, &gpc) &&
	    hf_scan_text(&s, ", TPC ") && hf_scan_decimal(&s, 3, &tpc))
		snprintf(e->unit, sizeof(e->unit), "GPC %u TPC %u", (unsigned)gpc, (unsigned)tpc);
}

/* "Contained: UNIT (0x…,0x…). RST: No, D-RST: No": 94, 95 */
static void contained(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan unit;

	if ((hf_scan_text(&s, "Contained: ") || hf_scan_text(&s, "Uncontained: ")) &&
	    hf_scan_word(&s, "_-", &unit))
		set_unit(e, &unit);
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
	case 13: graphics(s, e); break;
	case 45: cause(s, e); break;
	case 74: nvlink(s, e); break;
	case 94:
	case 95: contained(s, e); break;
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
	if (hf_scan_text(&p, "name=") && hf_scan_until(&p, ", ", NULL))
		*s = p;
	else if (hf_scan_text(&p, "name="))
		s->at = s->end;
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
	struct hf_scan address;
	uint64_t number;

	if (!hf_scan_word(&s, ":.", &address) || !instances(&s, e) || !hf_scan_text(&s, "): ") ||
	    !hf_scan_decimal(&s, 4, &number))
		return false;
	set_device(e, &address);
	if (e->device[0] == '\0')
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

/* The notice of three lines, in one record or in three.  True when it is complete. */
static bool notice(struct hf_health_line_reader *reader, struct hf_scan s,
		   struct hf_health_evidence *e)
{
	struct hf_scan address;
	bool begins = hf_scan_text(&s, "The NVIDIA GPU ");

	if (begins && hf_scan_word(&s, ":.", &address) &&
	    hf_health_pci_normalize(address.at, hf_scan_left(&address), reader->pending))
		reader->pending_lines = 0;
	else if (begins)
		reader->pending[0] = '\0';
	if (!hf_scan_has(&s, "fallen off the bus") || reader->pending[0] == '\0')
		return false;
	memcpy(e->device, reader->pending, sizeof(e->device));
	memset(reader->pending, 0, sizeof(reader->pending));
	return bus(e);
}

static bool nvrm(struct hf_health_line_reader *reader, struct hf_scan s,
		 struct hf_health_evidence *e)
{
	struct hf_scan p = s, address;

	if (hf_scan_text(&p, "Xid ("))
		return xid(p, e);
	if (hf_scan_text(&p, "GPU ") && hf_scan_word(&p, ":.", &address) &&
	    hf_scan_has(&p, "GPU has fallen off the bus")) {
		/* The word took the colon that ends it. */
		while (address.end > address.at && address.end[-1] == ':')
			address.end--;
		set_device(e, &address);
		return e->device[0] != '\0' && bus(e);
	}
	return notice(reader, s, e);
}

/* ---- NVSwitch -------------------------------------------------------------------------------------- */

/* "nvidia-nvswitchN: SXid (PCI:…): NNNNN, Fatal, Link 04 TEXT" */
static bool sxid(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number, link;
	struct hf_scan address;

	if (!hf_scan_decimal(&s, 4, &number) ||
	    !(hf_scan_text(&s, ": SXid (") || hf_scan_text(&s, " SXid (")) ||
	    !hf_scan_word(&s, ":.", &address) || !hf_scan_text(&s, "): "))
		return false;
	set_device(e, &address);
	if (e->device[0] == '\0')
		snprintf(e->device, sizeof(e->device), "nvidia-nvswitch%u", (unsigned)number);
	if (!hf_scan_decimal(&s, 6, &number))
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

/* "DRIVER ADDRESS: PCIe Bus Error: severity=S, type=T, (Receiver ID)", or a root port's
 * "pcieport ADDRESS: AER: [Multiple] S error [message] received: ADDRESS" */
static bool aer(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan driver, address, type;

	if (!hf_scan_word(&s, "_-", &driver) || !hf_scan_char(&s, ' ') ||
	    !hf_scan_until(&s, ": ", &address))
		return false;
	hf_scan_text(&s, "AER: ");
	if (hf_scan_text(&s, "PCIe Bus Error: severity=")) {
		e->severity = aer_severity(&s);
		if (hf_scan_text(&s, ", type=") && hf_scan_word(&s, " ", &type))
			set_unit(e, &type);
	} else {
		e->severity = aer_severity(&s);
		/* The port speaks of somebody else. */
		if (!hf_scan_has(&s, "received"))
			return false;
		if (!hf_scan_until(&s, "received: ", NULL) &&
		    !hf_scan_until(&s, "received from ", NULL))
			return false;
		if (!hf_scan_word(&s, ":.", &address))
			return false;
	}
	set_device(e, &address);
	e->detector = HF_HEALTH_AER;
	e->code = HF_HEALTH_CODE_AER;
	return e->severity != HF_HEALTH_UNSAID && e->device[0] != '\0';
}

/* What mlx5_core prints, by what only that line has; the first match counts. */
static const struct {
	const char *text;
	enum hf_health_code code;
} mlx5_lines[] = {
	{"Will cause a leak of a command resource", HF_HEALTH_CODE_MLX5_LEAK},
	{"health compromised - reached miss count", HF_HEALTH_CODE_MLX5_HEALTH},
	{"unrecoverable hardware error", HF_HEALTH_CODE_MLX5_HARDWARE},
	{"TX timeout detected", HF_HEALTH_CODE_MLX5_TIMEOUT},
	{"RX timeout detected", HF_HEALTH_CODE_MLX5_TIMEOUT},
	{"Detected insufficient power on the PCIe slot", HF_HEALTH_CODE_MLX5_POWER},
	{"High Temperature", HF_HEALTH_CODE_MLX5_HOT},
	{"High temperature", HF_HEALTH_CODE_MLX5_HOT},
	{"Cable unplugged", HF_HEALTH_CODE_MLX5_CABLE},
};

static bool mlx5(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan address;

	if (!hf_scan_word(&s, ":.", &address))
		return false;
	while (address.end > address.at && address.end[-1] == ':')
		address.end--;
	set_device(e, &address);
	for (size_t i = 0; i < HF_ARRAY_LEN(mlx5_lines) && e->device[0] != '\0'; i++) {
		if (hf_scan_has(&s, mlx5_lines[i].text)) {
			e->detector = HF_HEALTH_MLX5;
			e->code = (int32_t)mlx5_lines[i].code;
			return true;
		}
	}
	return false;
}

/* ---- any line ------------------------------------------------------------------------------------------ */

static bool parse(struct hf_health_line_reader *reader, struct hf_scan s,
		  struct hf_health_evidence *e)
{
	struct hf_scan p = s;

	if (hf_scan_text(&p, "NVRM: "))
		return nvrm(reader, p, e);
	if (hf_scan_text(&p, "nvidia-nvswitch"))
		return sxid(p, e);
	if (hf_scan_has(&s, "PCIe Bus Error: severity=") || hf_scan_has(&s, ": AER: "))
		return aer(s, e);
	if (hf_scan_text(&p, "mlx5_core "))
		return mlx5(p, e);
	return false;
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
	if (!told)
		return false;
	e.source = HF_HEALTH_BY_KMSG;
	e.seq = record->seq;
	hf_scan_print(&s, e.line, sizeof(e.line));
	*ret_evidence = e;
	return true;
}
