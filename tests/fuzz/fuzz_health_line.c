/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: records of the kernel's log, one a line. Evidence made of a record is printable and
 * within its limits. A record that the kernel did not write makes no evidence. */

#include "fuzz/fuzz.h"
#include "health/kmsg.h"
#include "health/rules.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	hf_assert(len < size);
	for (size_t i = 0; i < len; i++)
		hf_assert(text[i] >= ' ' && text[i] <= '~');
	/* Records are compared as bytes. */
	for (size_t i = len; i < size; i++)
		hf_assert(text[i] == '\0');
}

static void check(struct hf_health_line_reader *reader, const struct hf_health_record *record)
{
	struct hf_health_evidence e;

	hf_assert(record->text_len <= HF_HEALTH_RECORD_MAX);
	if (!hf_health_line_parse(reader, record, &e))
		return;
	hf_assert(record->facility == 0);
	hf_assert((unsigned)e.detector < HF_HEALTH_DETECTORS);
	hf_assert((unsigned)e.severity < HF_HEALTH_SEVERITIES);
	hf_assert(e.code >= 0 && e.subcode >= -1 && e.subcode <= 63 && e.at == HF_TIME_NONE);
	hf_assert(e.verb == HF_HEALTH_FAULT || e.detector == HF_HEALTH_RECOVERY ||
		  ((e.detector == HF_HEALTH_AER || e.detector == HF_HEALTH_MLX5) && e.code == 0));
	/* Only two kinds of evidence are about the node and name no device: a reset of a GPU that
	 * the driver does not name, and a driver that is stuck. */
	hf_assert(e.device[0] != '\0' ||
		  (e.detector == HF_HEALTH_RECOVERY && e.code == HF_HEALTH_CODE_RESET_SOMEWHERE) ||
		  (e.detector == HF_HEALTH_MLX5 && e.code == HF_HEALTH_CODE_MLX5_LOCKUP));
	check_text(e.device, sizeof(e.device));
	check_text(e.unit, sizeof(e.unit));
	check_text(e.line, sizeof(e.line));
	(void)hf_health_rules_match(&hf_health_rules_builtin, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_health_line_reader reader = {0};
	struct hf_health_record *record = malloc(sizeof(*record));
	const char *at = (const char *)data, *end = at + size;
	char address[HF_HEALTH_DEVICE_MAX];

	hf_assert(record);
	if (hf_health_pci_normalize(at, size, address))
		check_text(address, strlen(address) + 1);
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);

		if (hf_health_kmsg_parse(at, len, record) != HF_HEALTH_KMSG_BROKEN)
			check(&reader, record);
		hf_health_kmsg_bare(at, len, record);
		check(&reader, record);
		at += len + (stop != NULL);
	}
	free(record);
	return 0;
}
