/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/strbuf.h"
#include "harness/golden_files.h"
#include "harness/test.h"
#include "health/device_states.h"
#include "health/types.h"

#include <stdio.h>
#include <string.h>

/* Each transition of the machine and each detector stands in a golden file: a new one needs its own. */

#define TEXT_BYTES_MAX ((size_t)16 << 20)

static const char *folder;
static struct hf_strbuf all = HF_STRBUF_INIT(TEXT_BYTES_MAX);
static struct hf_strbuf names = HF_STRBUF_INIT(TEXT_BYTES_MAX);

static void read_file(void *arg, const char *path)
{
	char bytes[4096];
	FILE *file = fopen(path, "r");
	size_t n;

	(void)arg;
	assert_non_null(file);
	while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
		hf_strbuf_add(&all, bytes, n);
	fclose(file);
	hf_strbuf_addf(&names, "%s\n", path);
}

static int setup(void **state)
{
	(void)state;
	golden_each(folder, read_file, NULL);
	return names.len > 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	hf_strbuf_release(&all);
	hf_strbuf_release(&names);
	return 0;
}

/* "… FROM to TO, EVENT" at the end of a line or before a reason. */
static bool is_shown(const char *move)
{
	for (const char *at = strstr(all.data, move); at != NULL; at = strstr(at + 1, move))
		if (at[strlen(move)] == '\n' || at[strlen(move)] == ':')
			return true;
	return false;
}

static void every_transition_is_in_a_golden_file(void **state)
{
	(void)state;
	for (int s = 0; s < HF_HEALTH_STATES; s++) {
		for (int e = 0; e < HF_HEALTH_EVENTS; e++) {
			enum hf_health_state next;
			char move[128];

			if (!hf_health_next((enum hf_health_state)s, (enum hf_health_event)e,
					    &next))
				continue;
			snprintf(move, sizeof(move), ": %s to %s, %s",
				 hf_health_state_name((enum hf_health_state)s),
				 hf_health_state_name(next),
				 hf_health_event_name((enum hf_health_event)e));
			if (!is_shown(move))
				fail_msg("no golden file has '%s'", move + 2);
		}
	}
}

static void every_detector_has_a_golden_file(void **state)
{
	(void)state;
	for (int d = 0; d < HF_HEALTH_DETECTORS; d++) {
		char alone[64], one_of_many[64];

		/* Made of the others' faults: correlate-half, promise-1-all-at-once. */
		if (d == HF_HEALTH_PEERS)
			continue;
		snprintf(alone, sizeof(alone), "/row-%s.yaml",
			 hf_health_detector_name((enum hf_health_detector)d));
		snprintf(one_of_many, sizeof(one_of_many), "/row-%s-",
			 hf_health_detector_name((enum hf_health_detector)d));
		if (strstr(names.data, alone) == NULL && strstr(names.data, one_of_many) == NULL)
			fail_msg("no golden file is called '%s'", alone + 1);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transition_is_in_a_golden_file),
		cmocka_unit_test(every_detector_has_a_golden_file),
	};

	if (argc != 2)
		return 2;
	folder = argv[1];
	return cmocka_run_group_tests(tests, setup, teardown);
}
