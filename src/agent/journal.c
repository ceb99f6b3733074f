/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The format of the journal: encodes and decodes the memory of the brain as JSON with a checksum, and writes the
 * file.
 * Invariants: a file that was cut or changed at any byte is refused; a failed write leaves the former file.
 */
#include "agent/journal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "holdfast-agent-journal 1 "
#define SUM_KEY UINT64_C(0x686f6c6466617374)
#define SUM_LEN 16

/*
 * The fields of the journal, described once for both directions: each code_… function writes its argument into the
 * JSON object, or fills the argument from the object.  An absent key gives zero, false, "" or no time.
 */
struct codec {
	struct hf_json *object;
	bool writing;
	bool bad; /* a value of the JSON does not fit its field */
};

static void code_i64(struct codec *c, const char *key, int64_t *value)
{
	if (!c->writing)
		*value = hf_json_i64(hf_json_get(c->object, key), 0);
	else if (*value != 0)
		hf_json_set_i64(c->object, key, *value);
}

#define NUMBER(c, key, lvalue)                                                                     \
	do {                                                                                       \
		int64_t number_ = (int64_t)(lvalue);                                               \
		code_i64((c), (key), &number_);                                                    \
		(lvalue) = (__typeof__(lvalue))number_;                                            \
		(c)->bad |= (int64_t)(lvalue) != number_;                                          \
	} while (0)

static void code_time(struct codec *c, const char *key, hf_time *time)
{
	if (!c->writing)
		*time = hf_json_i64(hf_json_get(c->object, key), HF_TIME_NONE);
	else if (*time != HF_TIME_NONE)
		hf_json_set_i64(c->object, key, *time);
}

static void code_text(struct codec *c, const char *key, char *text, size_t size)
{
	const char *found;

	if (c->writing) {
		if (text[0] != '\0')
			hf_json_set_str(c->object, key, text);
		return;
	}
	found = hf_json_str(hf_json_get(c->object, key), "");
	c->bad |= strlen(found) >= size;
	snprintf(text, size, "%s", found);
}
#define TEXT(c, key, array) code_text((c), (key), (array), sizeof(array))

/* Enumerations are written by name, except two without a function that reads a name back. */
#define WORD(c, key, lvalue, name_fn, of_fn)                                                       \
	do {                                                                                       \
		if ((c)->writing)                                                                  \
			hf_json_set_str((c)->object, (key), name_fn(lvalue));                      \
		else                                                                               \
			(c)->bad |= !of_fn(hf_json_str(hf_json_get((c)->object, (key)), ""),       \
					   &(lvalue));                                             \
	} while (0)

static void code_times(struct codec *c, const char *key, hf_time *times, uint32_t *len,
		       uint32_t len_max)
{
	struct hf_json *list;

	if (c->writing) {
		if (*len == 0)
			return;
		list = hf_json_array();
		for (uint32_t i = 0; i < *len; i++)
			hf_json_append(list, hf_json_int(times[i]));
		hf_json_set(c->object, key, list);
		return;
	}
	list = hf_json_get(c->object, key);
	c->bad |= hf_json_len(list) > len_max;
	*len = c->bad ? 0 : (uint32_t)hf_json_len(list);
	for (uint32_t i = 0; i < *len; i++)
		times[i] = hf_json_i64(hf_json_item(list, i), 0);
}

/* ---- the values that the journal keeps ------------------------------------------------------- */

static void code_fault(struct codec *c, struct hf_health_fault *f)
{
	WORD(c, "detector", f->detector, hf_health_detector_name, hf_health_detector_of);
	NUMBER(c, "severity", f->severity);
	NUMBER(c, "code", f->code);
	NUMBER(c, "subcode", f->subcode);
	WORD(c, "class", f->cls, hf_health_class_name, hf_health_class_of);
	WORD(c, "action", f->action, hf_health_action_name, hf_health_action_of);
	NUMBER(c, "scope", f->scope);
	NUMBER(c, "clear", f->clear);
	NUMBER(c, "open", f->open);
	NUMBER(c, "follows", f->follows);
	NUMBER(c, "attached", f->attached);
	NUMBER(c, "ofLoss", f->of_loss);
	NUMBER(c, "covered", f->covered);
	NUMBER(c, "ofPort", f->of_port);
	NUMBER(c, "program", f->program);
	NUMBER(c, "raised", f->raised);
	NUMBER(c, "confirmed", f->confirmed);
	NUMBER(c, "milderClass", f->milder_cls);
	NUMBER(c, "milderAction", f->milder_action);
	NUMBER(c, "milderClear", f->milder_clear);
	NUMBER(c, "sources", f->sources);
	code_time(c, "openedAt", &f->opened_at);
	code_time(c, "eventAt", &f->event_at);
	code_time(c, "last", &f->last);
	code_time(c, "closedAt", &f->closed_at);
	code_time(c, "toldAt", &f->told_at);
	NUMBER(c, "count", f->count);
	code_times(c, "repeats", f->repeats, &f->repeats_len, HF_HEALTH_REPEATS_MAX);
	NUMBER(c, "toldPart", f->told_part);
	NUMBER(c, "gpuInstance", f->gpu_instance);
	NUMBER(c, "computeInstance", f->compute_instance);
	NUMBER(c, "seq", f->seq);
	TEXT(c, "unit", f->unit);
	TEXT(c, "line", f->line);
}

static void code_track(struct codec *c, struct hf_health_track *t)
{
	char key[16];

	NUMBER(c, "primed", t->primed);
	NUMBER(c, "firing", t->firing);
	NUMBER(c, "bad", t->bad);
	NUMBER(c, "good", t->good);
	NUMBER(c, "since", t->since);
	NUMBER(c, "at", t->at);
	for (size_t i = 0; i < HF_ARRAY_LEN(t->base); i++) {
		snprintf(key, sizeof(key), "base%zu", i);
		NUMBER(c, key, t->base[i]);
	}
}

static bool is_blank(const struct hf_health_track *t)
{
	uint64_t any = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(t->base); i++)
		any |= t->base[i];
	return any == 0 && !t->primed && !t->firing && t->bad == 0 && t->good == 0 &&
	       t->since == 0 && t->at == 0;
}

static void code_tracks(struct codec *c, struct hf_health_device *d)
{
	struct codec in = {.writing = c->writing,
			   .object = c->writing ? hf_json_object()
						: hf_json_get(c->object, "tracks")};

	for (size_t i = 0; i < HF_HEALTH_DETECTORS; i++) {
		const char *name = hf_health_detector_name((enum hf_health_detector)i);
		struct codec one = {.writing = c->writing};

		if (c->writing && is_blank(&d->tracks[i]))
			continue;
		one.object = c->writing ? hf_json_object() : hf_json_get(in.object, name);
		code_track(&one, &d->tracks[i]);
		c->bad |= one.bad;
		if (c->writing)
			hf_json_set(in.object, name, one.object);
	}
	if (c->writing)
		hf_json_set(c->object, "tracks", in.object);
}

static void code_faults(struct codec *c, struct hf_health_device *d)
{
	struct hf_json *list = c->writing ? hf_json_array() : hf_json_get(c->object, "faults");

	if (!c->writing) {
		c->bad |= hf_json_len(list) > HF_HEALTH_FAULTS_MAX;
		d->faults_len = c->bad ? 0 : hf_json_len(list);
	}
	for (size_t i = 0; i < d->faults_len; i++) {
		struct codec one = {.writing = c->writing};

		one.object = c->writing ? hf_json_object() : hf_json_item(list, i);
		code_fault(&one, &d->faults[i]);
		c->bad |= one.bad;
		if (c->writing)
			hf_json_append(list, one.object);
	}
	if (c->writing)
		hf_json_set(c->object, "faults", list);
}

static void code_device(struct codec *c, struct hf_health_device *d)
{
	TEXT(c, "id", d->id);
	TEXT(c, "uuid", d->uuid);
	TEXT(c, "alias", d->alias);
	TEXT(c, "above", d->above);
	NUMBER(c, "kind", d->kind);
	NUMBER(c, "owned", d->owned);
	NUMBER(c, "seen", d->seen);
	WORD(c, "state", d->state, hf_health_state_name, hf_health_state_of);
	code_time(c, "since", &d->since);
	NUMBER(c, "generation", d->generation);
	code_time(c, "heardAt", &d->heard_at);
	code_time(c, "watchedAt", &d->watched_at);
	code_time(c, "freshAfter", &d->fresh_after);
	NUMBER(c, "weakAt", d->weak_at);
	code_times(c, "sightings", d->sightings, &d->sightings_len, HF_HEALTH_SIGHTINGS_MAX);
	code_times(c, "fatals", d->fatals, &d->fatals_len, HF_HEALTH_REPEATS_MAX);
	code_times(c, "flaps", d->flaps, &d->flaps_len, HF_HEALTH_FLAPS_MAX);
	NUMBER(c, "holdUntil", d->hold_until);
	code_faults(c, d);
	code_tracks(c, d);
}

static void code_condition(struct codec *c, struct hf_health_condition *condition)
{
	NUMBER(c, "status", condition->status);
	code_time(c, "changedAt", &condition->changed_at);
	TEXT(c, "reason", condition->reason);
	TEXT(c, "message", condition->message);
}

static void code_conditions(struct codec *c, struct hf_health_memory *m)
{
	struct hf_json *all = c->writing ? hf_json_object() : hf_json_get(c->object, "conditions");

	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++) {
		const char *name = hf_health_condition_names[i];
		struct codec one = {.writing = c->writing};

		one.object = c->writing ? hf_json_object() : hf_json_get(all, name);
		code_condition(&one, &m->conditions[i]);
		c->bad |= one.bad;
		if (c->writing)
			hf_json_set(all, name, one.object);
	}
	if (c->writing)
		hf_json_set(c->object, "conditions", all);
}

static void code_memory(struct codec *c, struct hf_health_memory *m)
{
	TEXT(c, "bootID", m->boot_id);
	code_time(c, "now", &m->now);
	NUMBER(c, "doubted", m->doubted);
	NUMBER(c, "gpus", m->gpus);
	NUMBER(c, "gpusBefore", m->gpus_before);
	NUMBER(c, "bus", m->bus);
	NUMBER(c, "busBefore", m->bus_before);
	NUMBER(c, "counted", m->counted);
	NUMBER(c, "offered", m->offered);
	NUMBER(c, "rulesHash", m->rules_hash);
	NUMBER(c, "evidenceDropped", m->evidence_dropped);
	NUMBER(c, "faultsDropped", m->faults_dropped);
	code_conditions(c, m);
	code_time(c, "writtenAt", &m->written_at);
	NUMBER(c, "writtenHash", m->written_hash);
	code_time(c, "tokensAt", &m->tokens_at);
	NUMBER(c, "tokensMs", m->tokens_ms);
}

static void code_rest(struct codec *c, struct hf_journal *j)
{
	NUMBER(c, "bootAt", j->boot_at);
	NUMBER(c, "lost", j->lost);
	NUMBER(c, "unasked", j->unasked);
	NUMBER(c, "hasSeq", j->place.has_seq);
	NUMBER(c, "seq", j->place.seq);
	NUMBER(c, "fileDevice", j->place.file_device);
	NUMBER(c, "fileInode", j->place.file_inode);
	NUMBER(c, "fileOffset", j->place.file_offset);
}

/* ---- the file -------------------------------------------------------------------------------- */

void hf_journal_seal(const char *body, size_t len, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb, MAGIC "%0*" PRIx64 "\n", SUM_LEN, hf_siphash(SUM_KEY, body, len));
	hf_strbuf_add(sb, body, len);
}

void hf_journal_encode(const struct hf_journal *journal, struct hf_strbuf *sb)
{
	HF_AUTO_JSON root = hf_json_object();
	struct hf_json *devices = hf_json_array();
	struct codec c = {.object = root, .writing = true};
	struct hf_journal copy = *journal;
	HF_AUTO_STRBUF body = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);

	code_rest(&c, &copy);
	code_memory(&c, &copy.memory);
	for (size_t i = 0; i < copy.memory.devices_len; i++) {
		struct codec one = {.object = hf_json_object(), .writing = true};

		code_device(&one, &copy.memory.devices[i]);
		hf_json_append(devices, one.object);
	}
	hf_json_set(root, "devices", devices);
	hf_json_write(root, HF_JSON_COMPACT, &body);
	hf_journal_seal(body.data, body.len, sb);
}

static int refuse_journal(struct hf_error *err, const char *what)
{
	return hf_error_set(err, HF_E_INVALID, "the journal cannot be used: %s", what);
}

static int decode_body(const struct hf_json *root, struct hf_arena *arena, struct hf_journal *ret,
		       struct hf_error *err)
{
	const struct hf_json *devices = hf_json_get(root, "devices");
	struct codec c = {.object = (struct hf_json *)(uintptr_t)root};
	struct hf_journal j = {0};
	const char *problem;

	hf_health_memory_init(&j.memory);
	code_rest(&c, &j);
	code_memory(&c, &j.memory);
	if (hf_json_len(devices) > HF_HEALTH_DEVICES_MAX)
		return refuse_journal(err, "too many devices");
	j.memory.devices_len = hf_json_len(devices);
	j.memory.devices = HF_ARENA_ARRAY(arena, struct hf_health_device, j.memory.devices_len + 1);
	for (size_t i = 0; i < j.memory.devices_len; i++) {
		struct codec one = {.object = hf_json_item(devices, i)};

		code_device(&one, &j.memory.devices[i]);
		c.bad |= one.bad;
	}
	problem = c.bad ? "a value has the wrong form" : hf_health_memory_problem(&j.memory);
	if (problem != NULL)
		return refuse_journal(err, problem);
	*ret = j;
	return 0;
}

int hf_journal_decode(const char *bytes, size_t len, struct hf_arena *arena,
		      struct hf_journal *ret_journal, struct hf_error *err)
{
	static const struct hf_json_limits limits = {.bytes_max = HF_JOURNAL_BYTES_MAX};
	const size_t head = strlen(MAGIC) + SUM_LEN + 1;
	char sum[SUM_LEN + 2];
	HF_AUTO_JSON root = NULL;
	struct hf_error why;

	if (len < head || memcmp(bytes, MAGIC, strlen(MAGIC)) != 0)
		return refuse_journal(err, "the file does not begin with the head of this version");
	snprintf(sum, sizeof(sum), "%0*" PRIx64 "\n", SUM_LEN,
		 hf_siphash(SUM_KEY, bytes + head, len - head));
	if (memcmp(bytes + strlen(MAGIC), sum, SUM_LEN + 1) != 0)
		return refuse_journal(err, "the checksum of the file is wrong");
	if (hf_json_parse(bytes + head, len - head, &limits, &root, &why) != 0)
		return refuse_journal(err, why.text);
	return decode_body(root, arena, ret_journal, err);
}

int hf_journal_write(const char *dir, const struct hf_strbuf *encoded, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_JOURNAL_FILE, dir);
	int rc = hf_strbuf_ok(encoded, "the journal", err);

	if (rc == 0)
		rc = hf_fs_mkdirs(dir, 0700, err);
	return rc == 0 ? hf_fs_write_atomic(path, encoded->data, encoded->len, 0600, err) : rc;
}

int hf_journal_save(const char *dir, const struct hf_journal *journal, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_JOURNAL_ENCODED_MAX);

	hf_journal_encode(journal, &sb);
	return hf_journal_write(dir, &sb, err);
}

int hf_journal_load(const char *dir, struct hf_arena *arena, struct hf_journal *ret_journal,
		    struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_JOURNAL_ENCODED_MAX);
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_JOURNAL_FILE, dir);
	int rc = hf_fs_read_regular(path, &sb, err);

	return rc == 0 ? hf_journal_decode(sb.data, sb.len, arena, ret_journal, err) : rc;
}
