/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: an agent's journal. The first byte says whether the rest is the whole file, or a body
 * that gets a correct checksum. A journal that is accepted has a valid memory, is the same after
 * it is written and read again, and the next health step accepts it. */

#include "agent/journal.h"
#include "base/arena.h"
#include "fuzz/fuzz.h"
#include "health/step.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20)

static void go_on(const struct hf_journal *journal)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_health_input input = {.now = journal->memory.now, .node = "n"};
	struct hf_health_plan plan;
	struct hf_error err = {0};

	snprintf(input.boot_id, sizeof(input.boot_id), "%s", journal->memory.boot_id);
	if (input.now < 0 || input.now > HF_TIME_NEVER / 2)
		return;
	if (hf_health_step(&journal->memory, &input, &hf_health_config_default, arena, &plan,
			   &err) == 0)
		hf_assert(hf_health_memory_problem(&plan.memory) == NULL);
}

static void check(const char *bytes, size_t len)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_STRBUF first = HF_STRBUF_INIT(HF_JOURNAL_ENCODED_MAX);
	HF_AUTO_STRBUF second = HF_STRBUF_INIT(HF_JOURNAL_ENCODED_MAX);
	struct hf_journal journal, again;
	struct hf_error err = {0};
	int rc;

	if (hf_journal_decode(bytes, len, arena, &journal, &err) != 0) {
		hf_assert(err.text[0] != '\0');
		return;
	}
	hf_assert(hf_health_memory_problem(&journal.memory) == NULL);
	hf_journal_encode(&journal, &first);
	rc = hf_journal_decode(first.data, first.len, arena, &again, &err);
	hf_assert(rc == 0);
	hf_journal_encode(&again, &second);
	hf_assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	go_on(&journal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTO_STRBUF sealed = HF_STRBUF_INIT(HF_JOURNAL_ENCODED_MAX);

	if (size == 0 || size > ((size_t)64 << 10))
		return 0;
	if (data[0] == 'f') {
		check((const char *)data + 1, size - 1);
		return 0;
	}
	hf_journal_seal((const char *)data + 1, size - 1, &sealed);
	check(sealed.data, sealed.len);
	return 0;
}
