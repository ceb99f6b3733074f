/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads what drivers print about their devices.
 *
 * Other records of the kernel begin with the name of a process ("NAME[PID]: segfault at … in FILE[…]", "NAME: page
 * allocation failure: …"), and go on with more text that the process chose.  So each form is read from the record's
 * first byte, word by word as its driver prints it, and must have a whole PCI address.  With an address the form is
 * longer than a name of a process or of an interface can be (15 bytes).  A number is read before any text that a
 * process could have chosen.
 */
#include "health/line_internal.h"

#include "base/ascii.h"

#include <stdio.h>
#include <string.h>

/* Most records between the first and the last line of a notice of three lines: one line of the notice, and others
 * from another CPU, also of further notices. */
#define NOTICE_LINES_MAX 4
#define NOTICES_LINES_MAX (3 * HF_HEALTH_NOTICES_MAX)
/* mlx5_core prints at most so many lines with details of one error of the firmware. */
#define RATED_LINES_MAX 24
/* Most records between a report about PCIe and the end of the kernel's recovery: registers and headers. */
#define REPORT_LINES_MAX 24
/* Most lines of an error that the firmware reports before the address of its device. */
#define FIRMWARE_LINES_MAX 16
/* Most lines between the two registers: the kernel prints a line for each error in the first one. */
#define STATUS_LINES_MAX 40

void hf_health_mark_set(struct hf_health_line_mark *mark, const char *device)
{
	memset(mark, 0, sizeof(*mark));
	mark->set = true;
	if (device)
		memcpy(mark->device, device, sizeof(mark->device));
}

void hf_health_mark_clear(struct hf_health_line_mark *mark)
{
	memset(mark, 0, sizeof(*mark));
}

static void age_mark(struct hf_health_line_mark *mark, unsigned lines_max)
{
	if (mark->set && ++mark->lines > lines_max)
		hf_health_mark_clear(mark);
}

/* Takes the oldest notice away. */
static void shift_notices(struct hf_health_line_reader *reader)
{
	memmove(reader->notices, reader->notices + 1,
		sizeof(reader->notices) - sizeof(reader->notices[0]));
	hf_health_mark_clear(&reader->notices[HF_HEALTH_NOTICES_MAX - 1]);
}

static void add_notice(struct hf_health_line_reader *reader, const char *device)
{
	size_t at = 0;

	while (at < HF_HEALTH_NOTICES_MAX && reader->notices[at].set)
		at++;
	if (at == HF_HEALTH_NOTICES_MAX) {
		shift_notices(reader);
		at--;
	}
	hf_health_mark_set(&reader->notices[at], device);
}

/* If only one notice is open, it waits for few further records: a later line would belong to another notice. */
static void age_notices(struct hf_health_line_reader *reader)
{
	unsigned max = reader->notices[1].set ? NOTICES_LINES_MAX : NOTICE_LINES_MAX;

	for (size_t i = 0; i < HF_HEALTH_NOTICES_MAX; i++)
		reader->notices[i].lines += reader->notices[i].set;
	while (reader->notices[0].set && reader->notices[0].lines > max)
		shift_notices(reader);
}

static void age_marks(struct hf_health_line_reader *reader)
{
	age_notices(reader);
	age_mark(&reader->stuck, HF_HEALTH_STUCK_LINES_MAX);
	age_mark(&reader->rated, RATED_LINES_MAX);
	age_mark(&reader->report, REPORT_LINES_MAX);
	age_mark(&reader->firmware, FIRMWARE_LINES_MAX);
	age_mark(&reader->status, STATUS_LINES_MAX);
}

static bool has_marks(const struct hf_health_line_reader *reader)
{
	return reader->notices[0].set || reader->stuck.set || reader->rated.set ||
	       reader->report.set || reader->firmware.set || reader->status.set;
}

/* Reads a word of min to max characters, letters or digits. */
static bool scan_digits(struct hf_scan *s, size_t min, size_t max)
{
	struct hf_scan word;

	return hf_scan_word(s, "", &word) && hf_scan_left(&word) >= min &&
	       hf_scan_left(&word) <= max;
}

bool hf_health_scan_address(struct hf_scan *s, bool function, char ret_device[HF_HEALTH_DEVICE_MAX])
{
	struct hf_scan p = *s;
	const char *at = p.at;

	if (!scan_digits(&p, 4, 8) || !hf_scan_char(&p, ':') || !scan_digits(&p, 2, 2) ||
	    !hf_scan_char(&p, ':') || !scan_digits(&p, 2, 2))
		return false;
	if (hf_scan_char(&p, '.') ? !scan_digits(&p, 1, 1) : function)
		return false;
	if (!hf_health_pci_normalize(at, (size_t)(p.at - at), ret_device))
		return false;
	*s = p;
	return true;
}

void hf_health_unit_set(struct hf_health_evidence *e, const struct hf_scan *unit)
{
	hf_scan_print(unit, e->unit, sizeof(e->unit));
}

/* ---- Xid: what stands behind the number ------------------------------------------------------- */

/* Reads "… caused by previous Xid N" at the very end of the line, as newer drivers print it for Xid 45. */
static void read_cause(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number;

	if (hf_scan_until(&s, " caused by previous Xid ", NULL) &&
	    hf_scan_decimal(&s, 4, &number) && s.at == s.end)
		e->cause = (int32_t)number;
}

/* "0xA (NAME)" */
static bool read_action(struct hf_scan *s, uint32_t *ret_action)
{
	return hf_scan_hex32(s, ret_action) && hf_scan_text(s, " (") && hf_scan_until(s, ")", NULL);
}

/* The text must be the whole sentence: a change to 0 ends a fault, so half a line, or a process with such a name,
 * must not match. */
static bool read_recovery(struct hf_scan s, struct hf_health_evidence *e)
{
	uint32_t from, to;

	if (!hf_scan_text(&s, "GPU recovery action changed from ") || !read_action(&s, &from) ||
	    !hf_scan_text(&s, " to ") || !read_action(&s, &to))
		return false;
	hf_scan_blanks(&s);
	if (s.at != s.end || to > 5)
		return false;
	e->detector = HF_HEALTH_RECOVERY;
	e->verb = to == 0 ? HF_HEALTH_RECOVERED : HF_HEALTH_FAULT;
	e->code = (int32_t)to;
	return true;
}

/* Reads "XC0", or "XC 0" of drivers before 575; the same for "i0". */
static bool read_tagged(struct hf_scan *s, const char *tag, uint64_t *ret_value)
{
	struct hf_scan p = *s;

	hf_scan_blanks(&p);
	if (!hf_scan_text(&p, tag))
		return false;
	hf_scan_blanks(&p);
	/* -1 means that no link is concerned. */
	if (hf_scan_text(&p, "-1"))
		*ret_value = UINT64_MAX;
	else if (!hf_scan_decimal(&p, 4, ret_value))
		return false;
	*s = p;
	return true;
}

static void set_link_unit(struct hf_health_evidence *e, const struct hf_scan *unit, uint64_t number)
{
	char name[HF_HEALTH_UNIT_MAX];

	hf_scan_print(unit, name, sizeof(name) - sizeof(" link 9999"));
	/* Clear the whole field first, because the old text may be longer than the new text. */
	memset(e->unit, 0, sizeof(e->unit));
	if (number == UINT64_MAX)
		snprintf(e->unit, sizeof(e->unit), "%s link none", name);
	else
		snprintf(e->unit, sizeof(e->unit), "%s link %u", name, (unsigned)number);
}

/* Reads Xid 144 to 150: "UNIT[/SUBUNIT] Fatal|Nonfatal XCn iN Link NN (0x… 0x…)".  The text up to the link must be
 * complete: "Fatal" alone could be the name of a process. */
static bool read_nvlink5(struct hf_scan s, struct hf_health_evidence *e)
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
	if (!read_tagged(&s, "XC", &number) || !read_tagged(&s, "i", &number) ||
	    !read_tagged(&s, "Link", &number))
		return false;
	e->severity = severity;
	set_link_unit(e, &unit, number);
	hf_scan_blanks(&s);
	if (hf_scan_char(&s, '(') && hf_scan_hex32(&s, &e->word)) {
		e->has_word = true;
		e->subcode = (int32_t)(e->word >> 20 & 0x3f);
	} else if (hf_scan_char(&s, '[') && hf_scan_hex32(&s, &e->word)) {
		/* A status word alone, without a second word, has no sub-code. */
		e->has_word = true;
	}
	return true;
}

/* Reads Xid 74: "NVLink: fatal error detected on link 2(0x10000, 0x0, …)". */
static bool read_nvlink(struct hf_scan s, struct hf_health_evidence *e)
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

/* Reads Xid 13: "Graphics … on (GPC 0, TPC 1, SM 0): …". */
static bool read_graphics(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t gpc, tpc;

	if (!hf_scan_text(&s, "Graphics ") || !hf_scan_until(&s, " on (GPC ", NULL) ||
	    !hf_scan_decimal(&s, 3, &gpc) || !hf_scan_text(&s, ", TPC ") ||
	    !hf_scan_decimal(&s, 3, &tpc))
		return false;
	snprintf(e->unit, sizeof(e->unit), "GPC %u TPC %u", (unsigned)gpc, (unsigned)tpc);
	return true;
}

/* Reads Xid 94 and 95: "Contained: UNIT (0x…,0x…). RST: No, D-RST: No". */
static bool read_contained(struct hf_scan s, struct hf_health_evidence *e)
{
	struct hf_scan text, unit;

	if ((!hf_scan_text(&s, "Contained: ") && !hf_scan_text(&s, "Uncontained: ")) ||
	    !hf_scan_until(&s, " (0x", &text) || hf_scan_has(&text, ",") ||
	    !hf_scan_word(&text, "_-", &unit))
		return false;
	hf_health_unit_set(e, &unit);
	return true;
}

/* Looks for the text behind each comma, because the name of a process may hold a comma.  The name is too short for
 * any of the forms, so the first complete form is the driver's. */
static void read_behind_names(struct hf_scan s, struct hf_health_evidence *e,
			      bool (*form)(struct hf_scan s, struct hf_health_evidence *e))
{
	while (!form(s, e) && hf_scan_until(&s, ", ", NULL))
		continue;
}

static void read_details(struct hf_scan s, struct hf_health_evidence *e)
{
	switch (e->code) {
	case 13: read_behind_names(s, e, read_graphics); break;
	case 45: read_cause(s, e); break;
	case 74: read_behind_names(s, e, read_nvlink); break;
	case 94:
	case 95: read_behind_names(s, e, read_contained); break;
	case 144:
	case 145:
	case 146:
	case 147:
	case 148:
	case 149:
	case 150: read_behind_names(s, e, read_nvlink5); break;
	case 154: read_behind_names(s, e, read_recovery); break;
	default: break;
	}
}

/* Skips "pid=P, name=NAME, ".  Both may be "<unknown>", with or without quotes, and the name may hold colons.  The
 * kernel's names of processes are too short to hold a sentence. */
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
static bool read_instances(struct hf_scan *s, struct hf_health_evidence *e)
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

/* Reads "(PCI:0000:1a:00 GPU-I:01): N, TEXT"; old drivers print no "PCI:". */
static bool read_xid(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number;

	hf_scan_text(&s, "PCI:");
	if (!hf_health_scan_address(&s, false, e->device) || !read_instances(&s, e) ||
	    !hf_scan_text(&s, "): ") || !hf_scan_decimal(&s, 4, &number) ||
	    (s.at < s.end && *s.at != ','))
		return false;
	e->detector = HF_HEALTH_XID;
	e->code = (int32_t)number;
	if (hf_scan_char(&s, ',')) {
		hf_scan_blanks(&s);
		skip_process(&s);
		read_details(s, e);
	}
	return true;
}

/* ---- NVRM: the bus ------------------------------------------------------------------------------ */

static bool set_bus(struct hf_health_evidence *e)
{
	e->detector = HF_HEALTH_BUSLOST;
	e->code = HF_HEALTH_CODE_BUS;
	return true;
}

static bool read_installed(struct hf_scan *s)
{
	return hf_scan_text(s, "(PCI ID: ") && scan_digits(s, 4, 4) && hf_scan_char(s, ':') &&
	       scan_digits(s, 4, 4) && hf_scan_text(s, ") installed in this system has");
}

/* Reads the second or third line of the notice; each begins with "NVRM: ".  True: the notice is complete. */
static bool read_notice_rest(struct hf_health_line_reader *reader, struct hf_scan s,
			     struct hf_health_evidence *e)
{
	if (!reader->notices[0].set)
		return false;
	if (read_installed(&s) && !hf_scan_text(&s, "\nNVRM: "))
		return false;
	if (!hf_scan_text(&s, "fallen off the bus and is not responding to commands"))
		return false;
	memcpy(e->device, reader->notices[0].device, sizeof(e->device));
	shift_notices(reader);
	return set_bus(e);
}

/* Reads the notice of three lines, which may come as one record or as three. */
static bool read_notice(struct hf_health_line_reader *reader, struct hf_scan s,
			struct hf_health_evidence *e)
{
	char device[HF_HEALTH_DEVICE_MAX] = "";

	if (hf_scan_text(&s, "The NVIDIA GPU ")) {
		if (!hf_health_scan_address(&s, true, device))
			return false;
		add_notice(reader, device);
		if (!hf_scan_text(&s, "\nNVRM: "))
			return false;
	}
	return read_notice_rest(reader, s, e);
}

/* Reads "RmInitAdapter failed! (0x26:0x56:1474)", or, for the same failure, "rm_init_adapter failed, device minor
 * number 3". */
static bool read_init(struct hf_scan s, struct hf_health_evidence *e)
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

/* Skips "GPU1 ": the driver's own number of the GPU, which is neither its address nor the number of its device
 * file. */
static void skip_number(struct hf_scan *s)
{
	struct hf_scan p = *s;
	uint64_t number;

	if (hf_scan_text(&p, "GPU") && hf_scan_decimal(&p, 3, &number) && hf_scan_char(&p, ' '))
		*s = p;
}

/* Reads a request for a reset without an address, so it concerns the node: "[GPU1 ]nvAssertOkFailedNoLog:
 * Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status @
 * kernel_channel.c:2874", the same with "Check failed: ", or "[GPU1 ]GPU requires reset". */
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

/* Reads "GPU requires reset" behind the address of a GPU. */
static bool read_reset_of(const struct hf_scan *s, struct hf_health_evidence *e)
{
	struct hf_scan p = *s;

	e->detector = HF_HEALTH_RECOVERY;
	e->code = HF_HEALTH_CODE_RESET_REQUIRED;
	return hf_scan_text(&p, "GPU requires reset");
}

/* "0000:1a:00.0: TEXT" */
static bool read_of_gpu(struct hf_scan s, struct hf_health_evidence *e)
{
	if (!hf_health_scan_address(&s, true, e->device) || !hf_scan_text(&s, ": "))
		return false;
	if (hf_scan_text(&s, "GPU has fallen off the bus"))
		return set_bus(e);
	return read_reset_of(&s, e) || read_init(s, e);
}

static bool read_nvrm(struct hf_health_line_reader *reader, struct hf_scan s,
		      struct hf_health_evidence *e)
{
	struct hf_scan p = s;

	if (hf_scan_text(&p, "Xid ("))
		return read_xid(p, e);
	if (hf_scan_text(&p, "GPU ") && read_of_gpu(p, e))
		return true;
	if (read_notice(reader, s, e))
		return true;
	memset(e->device, 0, sizeof(e->device));
	return read_reset(s, e);
}

/* ---- NVSwitch -------------------------------------------------------------------------------------- */

/* Reads "nvidia-nvswitchN: SXid (PCI:…): NNNNN, Fatal, Link 04 TEXT". */
static bool read_sxid(struct hf_scan s, struct hf_health_evidence *e)
{
	uint64_t number, link;

	if (!hf_scan_decimal(&s, 4, &number) ||
	    !(hf_scan_text(&s, ": SXid (PCI:") || hf_scan_text(&s, " SXid (PCI:")) ||
	    !hf_health_scan_address(&s, false, e->device) || !hf_scan_text(&s, "): ") ||
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

/* ---- network cards --------------------------------------------------------------------------------------------- */

/*
 * The sentences of mlx5_core, each of which only one line has; the first match counts.  Code 0: the driver has
 * recovered the adapter.
 * Sources: health.c, main.c, en_main.c, en/reporter_tx.c and ipoib/ipoib.c in drivers/net/ethernet/mellanox/mlx5/core
 * of Linux, in versions from 2015 to 2025.  Until March 2021 a recovery ends with "mlx5_pci_resume: device
 * recovered", later with a line of health.c.  A recovery by the PCIe services always ends with the line of
 * mlx5_pci_resume().
 */
static const struct {
	const char *text;
	enum hf_health_code code;
} mlx5_lines[] = {
	{"Will cause a leak of a command resource", HF_HEALTH_CODE_MLX5_LEAK},
	{"device's health compromised", HF_HEALTH_CODE_MLX5_HEALTH},
	{"health recovery succeeded", 0},
	{"health revovery succeded", 0}, /* the spelling of the first version of March 2021 */
	{"device recovered", 0},
	{"device Failed", HF_HEALTH_CODE_MLX5_UNRECOVERED},
	{"mlx5_pci_resume: mlx5_load_one failed", HF_HEALTH_CODE_MLX5_UNRECOVERED},
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

/* Skips "FUNCTION:LINE:(pid N): ", or "FUNCTION:LINE: " of old drivers; most lines have it.  Linux before 5.1
 * prints the address and a colon once more in front. */
static void skip_place(struct hf_scan *s)
{
	char device[HF_HEALTH_DEVICE_MAX];
	struct hf_scan p = *s, word;
	uint64_t number;

	if (hf_health_scan_address(&p, true, device) && !hf_scan_char(&p, ':'))
		return;
	if (!hf_scan_word(&p, "_.", &word) || !hf_scan_char(&p, ':') ||
	    !hf_scan_decimal(&p, 6, &number) || !hf_scan_char(&p, ':'))
		return;
	if (hf_scan_text(&p, "(pid ") &&
	    (!hf_scan_decimal(&p, 10, &number) || !hf_scan_text(&p, "):")))
		return;
	if (hf_scan_char(&p, ' '))
		*s = p;
}

/* Finds the row of mlx5_lines with a sentence that the text has; HF_ARRAY_LEN: no row has one.  The sentence
 * begins the text or follows a prefix of the driver: "synd 0x8: ", "module 0, ", "CREATE_EQ(0x301) timeout. ". */
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

/* The kernel's log level "error"; messages of higher levels are milder and only inform. */
#define LEVEL_ERROR 3

/* Reads "firmware internal error, severity(3) ERROR:".  The severity decides, not the sentence: a hardware error
 * with the severity of a warning only informs, and a temperature with the severity of an error is an error. */
static bool read_rated(struct hf_health_line_reader *reader, struct hf_scan s,
		       struct hf_health_evidence *e)
{
	struct hf_scan sentence = s;
	uint64_t level;

	if (!hf_scan_until(&s, ", severity(", NULL) || !hf_scan_decimal(&s, 2, &level) ||
	    !hf_scan_char(&s, ')'))
		return false;
	hf_health_mark_set(&reader->rated, e->device);
	e->code = HF_HEALTH_CODE_MLX5_SYNDROME;
	if (level > LEVEL_ERROR)
		e->severity = HF_HEALTH_NONFATAL;
	else if (hf_scan_text(&sentence, "unrecoverable hardware error, "))
		e->code = HF_HEALTH_CODE_MLX5_HARDWARE;
	return true;
}

/* Reads "0x1: firmware internal error", which older drivers print without a severity.  Newer drivers print the
 * line too, as a detail of the line with the severity. */
static bool read_syndrome(const struct hf_health_line_reader *reader, struct hf_scan s,
			  struct hf_health_evidence *e)
{
	uint32_t number;
	size_t found;

	if (!hf_scan_hex32(&s, &number) || number == 0 || !hf_scan_text(&s, ": ") ||
	    (reader->rated.set && strcmp(reader->rated.device, e->device) == 0))
		return false;
	found = find_mlx5_line(s);
	e->code = found == HF_ARRAY_LEN(mlx5_lines) ? HF_HEALTH_CODE_MLX5_SYNDROME
						    : (int32_t)mlx5_lines[found].code;
	return true;
}

static bool read_mlx5_text(struct hf_health_line_reader *reader, struct hf_scan s,
			   struct hf_health_evidence *e)
{
	size_t found;

	if (hf_scan_text(&s, "Health issue observed, "))
		return read_rated(reader, s, e);
	if (hf_scan_text(&s, "synd "))
		return read_syndrome(reader, s, e);
	found = find_mlx5_line(s);
	if (found == HF_ARRAY_LEN(mlx5_lines))
		return false;
	e->code = (int32_t)mlx5_lines[found].code;
	e->verb = e->code == 0 ? HF_HEALTH_RECOVERED : HF_HEALTH_FAULT;
	return true;
}

/* Whether the text is an interface as netdev_printk() of Linux prints it: "eth0" or "(unnamed net_device)", and
 * behind it perhaps " (unregistering)" or another state of its registration. */
static bool is_interface(struct hf_scan s)
{
	struct hf_scan name, state;

	if (!hf_scan_text(&s, "(unnamed net_device)")) {
		if (!hf_scan_until(&s, " (", &name))
			return !hf_scan_has(&s, " ");
		if (hf_scan_has(&name, " "))
			return false;
		s.at -= 2;
	}
	return s.at == s.end || (hf_scan_text(&s, " (") && hf_scan_word(&s, "", &state) &&
				 hf_scan_char(&s, ')') && s.at == s.end);
}

/* "mlx5_core ADDRESS[ INTERFACE]: TEXT" */
static bool read_mlx5(struct hf_health_line_reader *reader, struct hf_scan s,
		      struct hf_health_evidence *e)
{
	struct hf_scan name;

	if (!hf_health_scan_address(&s, true, e->device))
		return false;
	/* A pod may have chosen the interface's name, but such a name has no blank and no colon. */
	if (hf_scan_char(&s, ' ')) {
		if (!hf_scan_until(&s, ": ", &name) || !is_interface(name))
			return false;
	} else if (!hf_scan_text(&s, ": ")) {
		return false;
	}
	skip_place(&s);
	e->detector = HF_HEALTH_MLX5;
	return read_mlx5_text(reader, s, e);
}

/* ---- any line ------------------------------------------------------------------------------------------ */

/* Whether the line is of the kernel's packet filter: it begins with a text from a rule, which may look like a
 * driver's line.  The marks that are looked for are longer than a process's name, so no process can hide a
 * driver's line. */
static bool is_of_packet(struct hf_scan s)
{
	struct hf_scan p;

	if (!hf_scan_until(&s, "IN=", NULL) || !hf_scan_until(&s, " OUT=", NULL))
		return false;
	p = s;
	return (hf_scan_until(&p, "SRC=", NULL) && hf_scan_has(&p, " DST=")) ||
	       hf_scan_has(&s, "ARP HTYPE=") || hf_scan_has(&s, "TRUNCATED");
}

/* Whether the line is "NAME,mems_allowed=0", the end of a notice about memory, which follows another record.  NAME
 * is that of a control group and may be any text. */
static bool is_of_group(struct hf_scan s)
{
	if (!hf_scan_until(&s, ",mems_allowed=", NULL))
		return false;
	while (s.at < s.end && (hf_ascii_is_digit(*s.at) || *s.at == ',' || *s.at == '-'))
		s.at++;
	return s.at == s.end || hf_scan_text(&s, "global_oom") || hf_scan_text(&s, "oom_memcg=");
}

static bool parse_line(struct hf_health_line_reader *reader, struct hf_scan s,
		       struct hf_health_evidence *e)
{
	struct hf_scan p = s;

	if (hf_scan_text(&p, "NVRM: "))
		return read_nvrm(reader, p, e);
	if (hf_scan_text(&p, "nvidia-nvswitch"))
		return read_sxid(p, e);
	if (hf_scan_text(&p, "mlx5_core ")) {
		if (read_mlx5(reader, p, e))
			return true;
		/* The form did not match, but the reader may have filled in an address. */
		*e = hf_health_evidence_none();
	}
	return hf_health_read_pcie(reader, s, e) || hf_health_read_stuck(reader, s, e);
}

/* Reads a further line of a record, only as a line of the notice.  A process may put any other text there, for
 * instance by the name of a file. */
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
	/* A record of another facility is forged: it must not change the reader's memory either. */
	if (record->facility != 0)
		return false;
	if (has_marks(reader))
		age_marks(reader);
	told = record->indented ? parse_indented(reader, s, &e) : parse_line(reader, s, &e);
	if (!told || is_of_packet(s) || is_of_group(s))
		return false;
	e.source = HF_HEALTH_BY_KMSG;
	e.seq = record->seq;
	hf_scan_print(&s, e.line, sizeof(e.line));
	*ret_evidence = e;
	return true;
}
