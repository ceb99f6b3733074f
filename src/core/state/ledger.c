/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"
#include "core/model/ledger_text_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/*
 * The ledger: reads its texts into the slots and writes them back, bounds its size, checks its
 * numbers, begins a new ledger, and notes what was seen of each rank.
 *
 * Input: status.recovery as stored.  Output: the working copy in hf_brain.ledger and the slots.  A
 * ledger with a senseless number or text is refused (HF_E_INVALID), and the job is held.
 */

/* Bytes that a key, its quotes and its comma may add to a value.  The longest key has 17
 * letters. */
#define KEY_BYTES 24
/* How many bytes of an unreadable text a message shows. */
#define SHOWN_MAX 40
/* An upper bound for the bytes of a time or a number with its key. */
#define SCALAR_BYTES 64

static int fail_broken(const char *type, const char *field, const char *text, struct hf_error *err)
{
	return hf_error_set(err, HF_E_INVALID, "status.recovery.replicas[%s].%s: '%.*s' is no %s",
			    type, field, (int)hf_utf8_cut(text, SHOWN_MAX), text,
			    hf_streq(field, "attempts") || hf_streq(field, "seen") ||
					    hf_streq(field, "initSeen") ||
					    hf_str_has_prefix(field, "inPlace")
				    ? "ascending index:value list"
				    : "ascending list of ranges");
}

/* ---- the highest index in a compact text ---------------------------------------------------- */

static int find_ranges_top(const char *text, int32_t *top)
{
	struct hf_compact cursor = HF_COMPACT_INIT(text);
	int32_t from, to;
	int rc;

	while ((rc = hf_ranges_next(&cursor, &from, &to)) > 0)
		*top = to > *top ? to : *top;
	return rc;
}

static int find_sparse_top(const char *text, int32_t *top)
{
	struct hf_compact cursor = HF_COMPACT_INIT(text);
	int32_t index;
	int64_t value;
	int rc;

	while ((rc = hf_sparse_next(&cursor, &index, &value)) > 0)
		*top = index > *top ? index : *top;
	return rc;
}

int hf_ledger_top(const struct hf_role_ledger *role, const char *type, int32_t *ret_top,
		  struct hf_error *err)
{
	const struct {
		const char *field;
		const char *text;
		int (*top)(const char *text, int32_t *top);
	} texts[] = {
		{"attempts", role->attempts, find_sparse_top},
		{"created", role->created, find_ranges_top},
		{"succeeded", role->succeeded, find_ranges_top},
		{"seen", role->seen, find_sparse_top},
		{"initSeen", role->init_seen, find_sparse_top},
		{"trained", role->trained, find_ranges_top},
		{"covered", role->covered, find_ranges_top},
		{"hold", role->hold, find_ranges_top},
		{"inPlace", role->in_place, find_sparse_top},
		{"inPlaceSince", role->in_place_since, find_sparse_top},
	};
	int32_t top = -1;

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		if (texts[i].top(texts[i].text, &top) < 0)
			return fail_broken(type, texts[i].field, texts[i].text, err);
	}
	hf_assert(top < HF_RANKS_MAX);
	*ret_top = top;
	return 0;
}

/* ---- texts into slots and back -------------------------------------------------------------- */

enum bit { BIT_CREATED, BIT_SUCCEEDED, BIT_TRAINED, BIT_COVERED, BIT_HELD };

/* The slot's bit for a text of ranges: one reader and one writer serve all such texts. */
static bool *slot_bit(struct hf_slot *slot, enum bit bit)
{
	switch (bit) {
	case BIT_CREATED: return &slot->created;
	case BIT_SUCCEEDED: return &slot->succeeded;
	case BIT_TRAINED: return &slot->trained;
	case BIT_COVERED: return &slot->covered;
	case BIT_HELD: return &slot->held;
	}
	hf_assert(!"a bit there is");
	return NULL;
}

enum number {
	NUMBER_ATTEMPT,
	NUMBER_SEEN,
	NUMBER_INIT_SEEN,
	NUMBER_IN_PLACE,
	NUMBER_IN_PLACE_SINCE
};

/* The slot's number for a sparse map: one reader and one writer serve all such maps. */
static int64_t *slot_number(struct hf_slot *slot, enum number number)
{
	switch (number) {
	case NUMBER_ATTEMPT: return &slot->attempt;
	case NUMBER_SEEN: return &slot->seen;
	case NUMBER_INIT_SEEN: return &slot->init_seen;
	case NUMBER_IN_PLACE: return &slot->in_place;
	case NUMBER_IN_PLACE_SINCE: return &slot->in_place_since;
	}
	hf_assert(!"a number there is");
	return NULL;
}

static int read_bits(struct hf_role_slots *ranks, const char *text, enum bit bit)
{
	struct hf_compact cursor = HF_COMPACT_INIT(text);
	int32_t from, to;
	int rc;

	while ((rc = hf_ranges_next(&cursor, &from, &to)) > 0) {
		hf_assert(to < ranks->slots_len);
		for (int32_t i = from; i <= to; i++)
			*slot_bit(&ranks->slots[i], bit) = true;
	}
	return rc;
}

static int read_values(struct hf_role_slots *ranks, const char *text, enum number number)
{
	struct hf_compact cursor = HF_COMPACT_INIT(text);
	int64_t value;
	int32_t index;
	int rc;

	while ((rc = hf_sparse_next(&cursor, &index, &value)) > 0) {
		hf_assert(index < ranks->slots_len);
		*slot_number(&ranks->slots[index], number) = value;
	}
	return rc;
}

/* hf_ledger_top has already found the highest index of each text.  An error in a text shows only
 * when the text is read to its end, so each result is checked here as well. */
int hf_ledger_read(struct hf_brain *b, struct hf_error *err)
{
	for (int r = 0; r < b->roles_len; r++) {
		const struct hf_role_ledger *role = &b->ledger.roles[r];
		struct hf_role_slots *ranks = &b->roles[r];

		if (read_values(ranks, role->attempts, NUMBER_ATTEMPT) < 0)
			return fail_broken(ranks->type, "attempts", role->attempts, err);
		if (read_values(ranks, role->seen, NUMBER_SEEN) < 0)
			return fail_broken(ranks->type, "seen", role->seen, err);
		if (read_values(ranks, role->init_seen, NUMBER_INIT_SEEN) < 0)
			return fail_broken(ranks->type, "initSeen", role->init_seen, err);
		if (read_bits(ranks, role->created, BIT_CREATED) < 0)
			return fail_broken(ranks->type, "created", role->created, err);
		if (read_bits(ranks, role->succeeded, BIT_SUCCEEDED) < 0)
			return fail_broken(ranks->type, "succeeded", role->succeeded, err);
		if (read_bits(ranks, role->trained, BIT_TRAINED) < 0)
			return fail_broken(ranks->type, "trained", role->trained, err);
		if (read_bits(ranks, role->covered, BIT_COVERED) < 0)
			return fail_broken(ranks->type, "covered", role->covered, err);
		if (read_bits(ranks, role->hold, BIT_HELD) < 0)
			return fail_broken(ranks->type, "hold", role->hold, err);
		if (read_values(ranks, role->in_place, NUMBER_IN_PLACE) < 0)
			return fail_broken(ranks->type, "inPlace", role->in_place, err);
		if (read_values(ranks, role->in_place_since, NUMBER_IN_PLACE_SINCE) < 0)
			return fail_broken(ranks->type, "inPlaceSince", role->in_place_since, err);
	}
	return 0;
}

/* The text of the scratch buffer, in the arena; NULL if it is empty.  An unchanged text keeps its
 * old pointer, so that the comparison with the stored status is cheap. */
static const char *copy_scratch(const struct hf_brain *b, const char *before)
{
	hf_assert(!b->scratch.full);
	if (b->scratch.len == 0)
		return NULL;
	if (hf_streq(before, b->scratch.data))
		return before;
	return hf_arena_strndup(b->arena, b->scratch.data, b->scratch.len);
}

static const char *write_bits(struct hf_brain *b, struct hf_role_slots *ranks, enum bit bit,
			      const char *before)
{
	struct hf_ranges_writer writer = HF_RANGES_WRITER_INIT(&b->scratch);

	hf_strbuf_clear(&b->scratch);
	for (int32_t i = 0; i < ranks->slots_len; i++) {
		if (*slot_bit(&ranks->slots[i], bit))
			hf_ranges_add(&writer, i);
	}
	hf_ranges_finish(&writer);
	return copy_scratch(b, before);
}

static const char *write_values(struct hf_brain *b, struct hf_role_slots *ranks, enum number number,
				const char *before)
{
	hf_strbuf_clear(&b->scratch);
	for (int32_t i = 0; i < ranks->slots_len; i++)
		hf_sparse_add(&b->scratch, i, *slot_number(&ranks->slots[i], number));
	return copy_scratch(b, before);
}

void hf_ledger_write(struct hf_brain *b)
{
	hf_assert(b->ledger.present);
	for (int r = 0; r < b->roles_len; r++) {
		struct hf_role_ledger *role = &b->ledger.roles[r];
		struct hf_role_slots *ranks = &b->roles[r];

		role->attempts = write_values(b, ranks, NUMBER_ATTEMPT, role->attempts);
		role->seen = write_values(b, ranks, NUMBER_SEEN, role->seen);
		role->init_seen = write_values(b, ranks, NUMBER_INIT_SEEN, role->init_seen);
		role->created = write_bits(b, ranks, BIT_CREATED, role->created);
		role->succeeded = write_bits(b, ranks, BIT_SUCCEEDED, role->succeeded);
		role->trained = write_bits(b, ranks, BIT_TRAINED, role->trained);
		role->covered = write_bits(b, ranks, BIT_COVERED, role->covered);
		role->hold = write_bits(b, ranks, BIT_HELD, role->hold);
		role->in_place = write_values(b, ranks, NUMBER_IN_PLACE, role->in_place);
		role->in_place_since =
			write_values(b, ranks, NUMBER_IN_PLACE_SINCE, role->in_place_since);
	}
}

/* ---- size ------------------------------------------------------------------------------------ */

static size_t count_text_bytes(const char *text)
{
	/* Doubled, because a quote or a backslash becomes two bytes in JSON. */
	return text ? 2 * strlen(text) + KEY_BYTES : 0;
}

/* Compact texts hold only digits and separators, which JSON does not escape. */
static size_t count_compact_bytes(const char *text)
{
	return text ? strlen(text) + KEY_BYTES : 0;
}

/* The most bytes that a number or a time takes in the ledger's text; 0 if it is not present. */
static size_t count_scalar_bytes(bool present)
{
	return present ? SCALAR_BYTES : 0;
}

static size_t count_in_place_bytes(const struct hf_ledger *ledger)
{
	return count_scalar_bytes(ledger->in_place_base != 0) +
	       count_scalar_bytes(ledger->in_place_incident != 0) +
	       count_scalar_bytes(ledger->in_place_at != HF_TIME_NONE) +
	       count_scalar_bytes(ledger->save_until != HF_TIME_NONE) +
	       count_scalar_bytes(ledger->step != 0) + count_scalar_bytes(ledger->saved_step != 0) +
	       count_scalar_bytes(ledger->save_ms != 0) +
	       count_scalar_bytes(ledger->steps_at != HF_TIME_NONE) +
	       count_scalar_bytes(ledger->in_place_wait_seconds != 0) +
	       count_scalar_bytes(ledger->in_place_grace_seconds != 0) +
	       count_scalar_bytes(ledger->in_place_save_seconds != 0) +
	       count_scalar_bytes(ledger->in_place_streak != 0) +
	       count_scalar_bytes(ledger->best_step != 0) +
	       count_scalar_bytes(ledger->no_progress_streak != 0);
}

static size_t count_record_bytes(const struct hf_record *record)
{
	return count_scalar_bytes(record->in_place) +
	       count_scalar_bytes(record->ended_at != HF_TIME_NONE) +
	       count_scalar_bytes(record->down_at != HF_TIME_NONE) +
	       count_scalar_bytes(record->stepped_at != HF_TIME_NONE) +
	       count_scalar_bytes(record->step != 0) + count_scalar_bytes(record->saved_step != 0);
}

/* An upper bound, counted without writing the document.  It must never be too small. */
size_t hf_ledger_bytes(const struct hf_ledger *ledger)
{
	size_t bytes = 21 * SCALAR_BYTES + KEY_BYTES + HF_RESTARTS_TEXT_MAX +
		       count_in_place_bytes(ledger) + count_text_bytes(ledger->restart_handled) +
		       count_text_bytes(ledger->verdict.reason) +
		       count_text_bytes(ledger->verdict.message);

	for (int r = 0; r < HF_ROLES_MAX; r++) {
		const struct hf_role_ledger *role = &ledger->roles[r];

		bytes += count_compact_bytes(role->attempts) + count_compact_bytes(role->created) +
			 count_compact_bytes(role->succeeded) + count_compact_bytes(role->seen) +
			 count_compact_bytes(role->init_seen) + count_compact_bytes(role->trained) +
			 count_compact_bytes(role->covered) + count_compact_bytes(role->hold) +
			 count_compact_bytes(role->in_place) +
			 count_compact_bytes(role->in_place_since) + KEY_BYTES;
	}
	hf_assert(ledger->records_len <= HF_RECORDS_MAX);
	for (size_t i = 0; i < ledger->records_len; i++) {
		const struct hf_record *record = &ledger->records[i];

		bytes += 8 * SCALAR_BYTES + count_record_bytes(record) +
			 count_text_bytes(record->reason) + count_text_bytes(record->message) +
			 count_text_bytes(record->scope) + count_text_bytes(record->replica) +
			 count_text_bytes(record->pod) + count_text_bytes(record->node) +
			 count_text_bytes(record->device) + count_text_bytes(record->rule);
	}
	return bytes;
}

/* ---- checks --------------------------------------------------------------------------------- */

static bool is_within(int64_t value, int64_t max)
{
	return value >= 0 && value <= max;
}

static bool is_in_place_sane(const struct hf_ledger *ledger)
{
	return is_within(ledger->in_place_base, ledger->generation) &&
	       is_within(ledger->in_place_incident, HF_COUNTER_MAX) &&
	       is_within(ledger->in_place_wait_seconds, HF_SECONDS_MAX) &&
	       is_within(ledger->in_place_grace_seconds, HF_SECONDS_MAX) &&
	       is_within(ledger->in_place_save_seconds, HF_SECONDS_MAX) &&
	       is_within(ledger->in_place_streak, HF_COUNTER_MAX) &&
	       is_within(ledger->best_step, INT64_MAX) && is_within(ledger->step, INT64_MAX) &&
	       is_within(ledger->saved_step, INT64_MAX) &&
	       is_within(ledger->save_ms, HF_SECONDS_MAX) &&
	       is_within(ledger->no_progress_streak, HF_COUNTER_MAX);
}

static bool are_counters_sane(const struct hf_ledger *ledger)
{
	return is_within(ledger->generation, HF_COUNTER_MAX) &&
	       is_within(ledger->incident.id, HF_COUNTER_MAX) &&
	       is_within(ledger->active_seconds, HF_SECONDS_MAX) &&
	       is_within(ledger->downtime_seconds, HF_SECONDS_MAX) &&
	       is_within(ledger->productive_seconds, HF_SECONDS_MAX);
}

int hf_ledger_check(struct hf_ledger *ledger, struct hf_error *err)
{
	bool sane = are_counters_sane(ledger) && is_in_place_sane(ledger);

	hf_assert(ledger->records_len <= HF_RECORDS_MAX);
	if (ledger->broken)
		return hf_error_set(err, HF_E_INVALID,
				    "annotation " HF_ANNOTATION_LEDGER " cannot be read");
	if (ledger->schema < 0)
		return hf_error_set(err, HF_E_INVALID, "status.recovery.schema is no number");
	for (int i = 0; i < HF_BUDGETS; i++)
		sane = sane && is_within(ledger->restarts[i], HF_COUNTER_MAX);
	for (int i = 0; i < HF_STREAKS; i++)
		sane = sane && is_within(ledger->streak[i], HF_COUNTER_MAX);
	if (!sane)
		return hf_error_set(err, HF_E_INVALID,
				    "status.recovery has a counter that is negative or too large");
	/* A verdict without reason, message or time is dropped. */
	if (!ledger->verdict.reason || !ledger->verdict.message ||
	    ledger->verdict.at == HF_TIME_NONE)
		ledger->verdict = (struct hf_verdict){.at = HF_TIME_NONE};
	return 0;
}

/* ---- begin ---------------------------------------------------------------------------------- */

/*
 * Nothing was ever written for the job, and the pod is of its first attempt: an operator created
 * the pod a moment ago.  The first ledger may be written a second later, and a program that crashes
 * at once has been restarted by then.  So restarts of this pod count from 0.
 */
static bool is_of_new_job(const struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_status *stored = &b->view->status;

	return pod->stamped && pod->generation == 1 && pod->attempt == 0 && pod->incident == 0 &&
	       stored->conditions_len == 0 && stored->start_time == HF_TIME_NONE;
}

/*
 * Begin a ledger for a job that has none.
 *
 * A new job starts at generation 1.  Existing pods without stamps were created by upstream's
 * operator.  Existing pods with stamps belong to a ledger that was erased.  A job may have both
 * kinds of pods.  Then the highest stamp is its generation (0 if no pod has a stamp), and pods
 * without stamps belong to that generation.
 *
 * Nothing is restarted.  Restarts by the kubelet before this moment charge nothing, except for a
 * new job.
 */
void hf_ledger_begin(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	bool pods = false;

	hf_assert(!ledger->present);
	hf_ledger_blank(ledger);
	ledger->since = b->now;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_pod *pod = b->roles[r].slots[i].pod;

			if (!pod)
				continue;
			pods = true;
			if (!is_of_new_job(b, pod))
				hf_slot_count_all(b, r, &b->roles[r].slots[i], pod);
			b->roles[r].slots[i].created = !pod->stamped;
			if (!pod->stamped || pod->generation > HF_STAMP_MAX ||
			    pod->incident > HF_STAMP_MAX)
				continue;
			if (pod->generation > ledger->generation)
				ledger->generation = pod->generation;
			if (pod->incident > ledger->incident.id)
				ledger->incident.id = pod->incident;
		}
	}
	if (!pods)
		ledger->generation = 1;
	if (ledger->incident.id > 0)
		ledger->incident.opened_at = b->now;
}

/* ---- ranks as bits of the ledger ------------------------------------------------------------ */

/* The pod shows that its rank succeeded.  A pod that the operator stopped after a success has phase
 * Failed, so its annotation counts as well. */
static bool has_succeeded(const struct hf_pod *pod)
{
	return pod->phase == HF_POD_SUCCEEDED || hf_streq(pod->stopped, HF_STOPPED_SUCCEEDED);
}

/*
 * The operator has seen the rank's own container end with 0 while the pod went on.
 *
 * A kubelet that ends a whole pod (an eviction, a node shutdown) reports no container before all
 * have ended.  So while another container runs, the program ended by itself, and the pod's later
 * end does not change that.
 */
static bool has_trained(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	if (slot->succeeded)
		return false;
	switch (slot->phase) {
	case HF_SLOT_TRAINED:
		return slot->trained ||
		       hf_pod_goes_on(slot->pod, hf_own_container(b, role, slot->pod));
	case HF_SLOT_ABSENT:
	case HF_SLOT_ENDED: return slot->trained;
	default: return false;
	}
}

void hf_ledger_note(struct hf_brain *b)
{
	hf_assert(b->ledger.present);
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			const struct hf_pod *pod = hf_slot_pod(b, slot);

			if (!pod || (slot->pod && !slot->current))
				continue;
			slot->created = true;
			/* A process that ends while its rank is held belongs to the generation
			 * before. */
			if (slot->held)
				continue;
			if (has_succeeded(pod))
				slot->succeeded = true;
			slot->trained = has_trained(b, r, slot);
		}
	}
}

/* ---- verdict -------------------------------------------------------------------------------- */

bool hf_verdict_pending(const struct hf_brain *b)
{
	return b->ledger.verdict.reason != NULL && !hf_cond_finished(b);
}

void hf_verdict_set(struct hf_brain *b, const char *reason, const char *message)
{
	hf_assert(reason && message);
	hf_assert(!hf_cond_finished(b));
	b->ledger.verdict.reason = reason;
	b->ledger.verdict.message = message;
	b->ledger.verdict.at = b->now;
}
