/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/journal_internal.h"

#include "base/ascii.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Reads and writes the journal of a pod: encodes records as lines, checks checksums and the order
 * of records, and folds them into struct hf_pod_past. The writer compacts the file when it has
 * grown past HF_JOURNAL_COMPACT_BYTES.
 */

#define LINE_MAX_BYTES ((size_t)4096)
#define TEMPORARY_FILE HF_JOURNAL_FILE ".new"

static const char *const type_names[] = {
	[HF_JOURNAL_SHIM] = "shim", [HF_JOURNAL_BEGIN] = "begin", [HF_JOURNAL_START] = "start",
	[HF_JOURNAL_FAIL] = "fail", [HF_JOURNAL_EXIT] = "exit",   [HF_JOURNAL_STOP] = "stop",
	[HF_JOURNAL_QUIT] = "quit",
};

/* --- the fold --- */

void hf_pod_past_init(struct hf_pod_past *past)
{
	memset(past, 0, sizeof(*past));
}

const struct hf_container_past *hf_pod_past_find(const struct hf_pod_past *past, const char *name)
{
	for (size_t i = 0; i < past->n_containers; i++)
		if (hf_streq(past->containers[i].name, name))
			return &past->containers[i];
	return NULL;
}

size_t hf_pod_past_running(const struct hf_pod_past *past)
{
	size_t n = 0;

	for (size_t i = 0; i < past->n_containers; i++) {
		enum hf_attempt_state state = past->containers[i].last.state;

		n += state == HF_ATTEMPT_BEGUN || state == HF_ATTEMPT_RUNNING;
	}
	return n;
}

static struct hf_container_past *find_or_add(struct hf_pod_past *past, const char *name)
{
	for (size_t i = 0; i < past->n_containers; i++)
		if (hf_streq(past->containers[i].name, name))
			return &past->containers[i];
	if (past->n_containers == HF_POD_CONTAINERS_MAX)
		return NULL;

	struct hf_container_past *added = &past->containers[past->n_containers++];

	memset(added, 0, sizeof(*added));
	(void)snprintf(added->name, sizeof(added->name), "%s", name);
	return added;
}

static bool apply_begin(struct hf_pod_past *past, const struct hf_journal_record *record)
{
	struct hf_container_past *container = find_or_add(past, record->container);

	if (!container)
		return false;
	if (container->last.state != HF_ATTEMPT_NONE) {
		if (record->attempt <= container->last.number ||
		    container->last.state == HF_ATTEMPT_BEGUN ||
		    container->last.state == HF_ATTEMPT_RUNNING)
			return false;
		container->previous = container->last;
	}
	container->last = (struct hf_attempt){
		.state = HF_ATTEMPT_BEGUN,
		.number = record->attempt,
		.backoff_s = record->backoff_s,
		.begun = record->at,
		.started = HF_TIME_NONE,
		.finished = HF_TIME_NONE,
	};
	return true;
}

/* Applies a record to an attempt. Returns false if the record cannot follow the attempt's state. */
static bool apply_to_attempt(struct hf_attempt *attempt, const struct hf_journal_record *record)
{
	bool begun = attempt->state == HF_ATTEMPT_BEGUN;

	switch (record->type) {
	case HF_JOURNAL_START:
		if (!begun)
			return false;
		attempt->state = HF_ATTEMPT_RUNNING;
		attempt->started = record->at;
		attempt->pid = record->pid;
		return true;
	case HF_JOURNAL_FAIL:
		if (!begun)
			return false;
		attempt->state = HF_ATTEMPT_FAILED;
		attempt->finished = record->at;
		(void)snprintf(attempt->text, sizeof(attempt->text), "%s", record->text);
		return true;
	case HF_JOURNAL_EXIT:
		if (!begun && attempt->state != HF_ATTEMPT_RUNNING)
			return false;
		/* An EXIT without a START: the container ended before the shim recorded its start.
		 * The program counts as started. */
		if (begun)
			attempt->started = attempt->begun;
		attempt->state = HF_ATTEMPT_EXITED;
		attempt->finished = record->at;
		attempt->code = record->code;
		attempt->signum = record->signum;
		attempt->oom = record->oom;
		return true;
	default: return false;
	}
}

static bool apply_stop(struct hf_pod_past *past, const struct hf_journal_record *record)
{
	if (past->stop != HF_STOPPED_NOT || record->stop == HF_STOPPED_NOT)
		return false;
	past->stop = record->stop;
	past->ran_at_stop = record->ran;
	past->stopped = record->at;
	return true;
}

static bool apply_record(struct hf_pod_past *past, const struct hf_journal_record *record)
{
	struct hf_container_past *container;

	if (past->quit)
		return false;
	switch (record->type) {
	case HF_JOURNAL_SHIM:
		if (past->shim.pid)
			return false;
		past->shim = record->shim;
		return true;
	case HF_JOURNAL_QUIT: past->quit = true; return true;
	case HF_JOURNAL_STOP: return apply_stop(past, record);
	case HF_JOURNAL_BEGIN: return apply_begin(past, record);
	default:
		container = find_or_add(past, record->container);
		return container && container->last.state != HF_ATTEMPT_NONE &&
		       container->last.number == record->attempt &&
		       apply_to_attempt(&container->last, record);
	}
}

int hf_pod_past_fold(struct hf_pod_past *past, const struct hf_journal_record *record,
		     struct hf_error *err)
{
	if (!apply_record(past, record))
		return hf_error_set(err, HF_E_INVALID,
				    "journal: '%s' of '%s' attempt %u is out of order",
				    type_names[record->type], record->container, record->attempt);
	past->n_records++;
	return 0;
}

/* --- lines --- */

static uint32_t crc32_of(const char *bytes, size_t len)
{
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* Appends a text with %XX in place of blanks, newlines and '%', because a blank separates the
 * fields of a line. */
static void add_escaped(struct hf_strbuf *sb, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c <= ' ' || c == '%' || c == 0x7f)
			hf_strbuf_addf(sb, "%%%02x", c);
		else
			hf_strbuf_addch(sb, (char)c);
	}
}

void hf_journal_format(const struct hf_journal_record *record, uint64_t sequence,
		       struct hf_strbuf *sb)
{
	HF_AUTO_STRBUF body = HF_STRBUF_INIT(LINE_MAX_BYTES);

	hf_strbuf_addf(&body, "%" PRIu64 " %" PRId64 " %s", sequence, record->at,
		       type_names[record->type]);
	if (record->type == HF_JOURNAL_SHIM)
		hf_strbuf_addf(&body, " pid=%d ticks=%" PRIu64 " boot=%s", (int)record->shim.pid,
			       record->shim.start_ticks, record->shim.boot_id);
	else if (record->type == HF_JOURNAL_STOP)
		hf_strbuf_addf(&body, " why=%d ran=%u", (int)record->stop, record->ran);
	else if (record->type != HF_JOURNAL_QUIT)
		hf_strbuf_addf(&body, " c=%s a=%u", record->container, record->attempt);
	if (record->type == HF_JOURNAL_BEGIN)
		hf_strbuf_addf(&body, " backoff=%u", record->backoff_s);
	if (record->type == HF_JOURNAL_START)
		hf_strbuf_addf(&body, " pid=%d", (int)record->pid);
	if (record->type == HF_JOURNAL_EXIT)
		hf_strbuf_addf(&body, " code=%d signal=%d oom=%d", record->code, record->signum,
			       record->oom);
	if (record->type == HF_JOURNAL_FAIL) {
		hf_strbuf_addstr(&body, " text=");
		add_escaped(&body, record->text);
	}
	hf_assert(!body.full);
	hf_strbuf_addf(sb, "%08" PRIx32 " ", crc32_of(body.data, body.len));
	hf_strbuf_add(sb, body.data, body.len);
	hf_strbuf_addch(sb, '\n');
}

static bool unescape_text(const char *in, char *out, size_t size)
{
	size_t n = 0;

	for (; *in; in++) {
		char c = *in;

		if (c == '%') {
			int byte = hf_ascii_hex_byte(in + 1);

			if (byte < 0)
				return false;
			c = (char)byte;
			in += 2;
		}
		if (n + 1 >= size)
			return false;
		out[n++] = c;
	}
	out[n] = '\0';
	return true;
}

static bool read_i64(const char *text, int64_t min, int64_t max, int64_t *ret)
{
	return hf_str_to_i64(text, min, max, ret, NULL) == 0;
}

static bool copy_text(char *out, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		return false;
	memcpy(out, text, len + 1);
	return true;
}

/* Sets the field that `key` names. Returns false if the value is not a number in the field's range. */
static bool set_number(struct hf_journal_record *r, const char *key, const char *value)
{
	const struct {
		const char *key;
		int64_t min, max;
		unsigned *to_unsigned;
		int *to_int;
	} fields[] = {
		{"a", 0, UINT32_MAX, &r->attempt, NULL},
		{"backoff", 0, UINT32_MAX, &r->backoff_s, NULL},
		{"ran", 0, HF_POD_CONTAINERS_MAX, &r->ran, NULL},
		{"pid", 1, INT32_MAX, NULL, &r->pid},
		{"code", 0, 255, NULL, &r->code},
		{"signal", 0, 64, NULL, &r->signum},
	};
	int64_t n;

	if (!read_i64(value, 0, INT64_MAX, &n))
		return false;
	for (size_t i = 0; i < HF_ARRAY_LEN(fields); i++) {
		if (!hf_streq(key, fields[i].key))
			continue;
		if (n < fields[i].min || n > fields[i].max)
			return false;
		if (fields[i].to_unsigned)
			*fields[i].to_unsigned = (unsigned)n;
		else
			*fields[i].to_int = (int)n;
		return true;
	}
	if (hf_streq(key, "ticks"))
		r->shim.start_ticks = (uint64_t)n;
	else if (hf_streq(key, "why") && n <= HF_STOPPED_BY_DEADLINE)
		r->stop = (enum hf_journal_stop)n;
	else if (hf_streq(key, "oom") && n <= 1)
		r->oom = n;
	else
		return false;
	return true;
}

static bool set_field(struct hf_journal_record *r, char *field)
{
	char *equals = strchr(field, '=');

	if (!equals)
		return false;
	*equals = '\0';
	if (hf_streq(field, "c"))
		return copy_text(r->container, sizeof(r->container), equals + 1);
	if (hf_streq(field, "boot"))
		return copy_text(r->shim.boot_id, sizeof(r->shim.boot_id), equals + 1);
	if (hf_streq(field, "text"))
		return unescape_text(equals + 1, r->text, sizeof(r->text));
	return set_number(r, field, equals + 1);
}

static bool set_type(struct hf_journal_record *r, const char *word)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(type_names); i++) {
		if (hf_streq(word, type_names[i])) {
			r->type = (enum hf_journal_type)i;
			return true;
		}
	}
	return false;
}

static bool parse_body(char *body, uint64_t *ret_sequence, struct hf_journal_record *r)
{
	char *rest = body;
	char *word;
	int64_t n = 0;

	memset(r, 0, sizeof(*r));
	for (int i = 0; (word = strsep(&rest, " ")); i++) {
		bool good;

		if (i == 0) {
			good = read_i64(word, 0, INT64_MAX, &n);
			*ret_sequence = (uint64_t)n;
		} else if (i == 1) {
			good = read_i64(word, INT64_MIN, INT64_MAX, &n);
			r->at = n;
		} else {
			good = i == 2 ? set_type(r, word) : set_field(r, word);
		}
		if (!good || (!rest && i < 2))
			return false;
	}
	return true;
}

int hf_journal_parse(const char *line, size_t len, uint64_t *ret_sequence,
		     struct hf_journal_record *ret_record, struct hf_error *err)
{
	char copy[LINE_MAX_BYTES];
	char sum[9];
	uint64_t sequence = 0;
	struct hf_journal_record record;

	if (len < 10 || len > sizeof(copy) || line[len - 1] != '\n' || memchr(line, '\0', len))
		return hf_error_set(err, HF_E_INVALID, "journal: not a record");
	memcpy(copy, line, len);
	copy[len - 1] = '\0';
	(void)snprintf(sum, sizeof(sum), "%08" PRIx32, crc32_of(line + 9, len - 10));
	if (memcmp(sum, line, 8) != 0 || line[8] != ' ')
		return hf_error_set(err, HF_E_INVALID, "journal: wrong checksum");
	if (!parse_body(copy + 9, &sequence, &record))
		return hf_error_set(err, HF_E_INVALID, "journal: not a record");
	record.shim.pid = record.type == HF_JOURNAL_SHIM ? record.pid : 0;
	*ret_sequence = sequence;
	*ret_record = record;
	return 0;
}

/* --- reading --- */

static int fold_text(const char *text, size_t len, struct hf_pod_past *past, struct hf_error *err)
{
	uint64_t expected = 0;

	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t line_len = end ? (size_t)(end - text) + 1 : len;
		struct hf_journal_record record;
		uint64_t sequence;
		int rc;

		if (!end)
			/* the last line is incomplete: the shim was killed while it wrote the
			 * record, and no client has heard of it */
			return 0;
		rc = hf_journal_parse(text, line_len, &sequence, &record, err);
		if (!rc && expected && sequence != expected)
			rc = hf_error_set(err, HF_E_INVALID,
					  "journal: record %" PRIu64 " is missing", expected);
		if (!rc)
			rc = hf_pod_past_fold(past, &record, err);
		if (rc)
			return rc;
		expected = sequence + 1;
		text += line_len;
		len -= line_len;
	}
	return 0;
}

int hf_journal_read(int dir_fd, struct hf_pod_past *ret_past, struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);
	HF_AUTO_FD fd = openat(dir_fd, HF_JOURNAL_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	HF_AUTOFREE struct hf_pod_past *past = NULL;
	int rc;

	if (fd < 0 && errno == ENOENT)
		return hf_error_set(err, HF_E_NOT_FOUND, "there is no journal");
	if (fd < 0)
		return hf_error_errno(err, errno, "cannot open the journal");
	rc = hf_fs_read_fd(fd, HF_JOURNAL_FILE, &text, err);
	if (rc)
		return rc;
	past = hf_xcalloc(1, sizeof(*past));
	rc = fold_text(text.data, text.len, past, err);
	if (!rc)
		*ret_past = *past;
	return rc;
}

/* --- writing --- */

/* Reserves blocks for the journal. On a file system that cannot reserve blocks, the journal has no
 * room on a full disk. */
static void reserve_blocks(int fd)
{
	(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)HF_JOURNAL_RESERVE_BYTES);
}

/* Replaces the journal by a new file with this content. Returns the new file's descriptor; -1 and
 * errno on an error. */
static int replace_file(int dir_fd, const char *bytes, size_t len)
{
	int fd = openat(dir_fd, TEMPORARY_FILE,
			O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	int errnum;

	if (fd < 0)
		return -1;
	reserve_blocks(fd);
	if (hf_fs_write_all(fd, bytes, len) == 0 && fsync(fd) == 0 &&
	    renameat(dir_fd, TEMPORARY_FILE, dir_fd, HF_JOURNAL_FILE) == 0) {
		/* no check for an error: after a crash the old file may be back, which has the
		 * same records */
		(void)fsync(dir_fd);
		return fd;
	}
	errnum = errno;
	(void)close(fd);
	(void)unlinkat(dir_fd, TEMPORARY_FILE, 0);
	errno = errnum;
	return -1;
}

int hf_journal_create(struct hf_journal *journal, int dir_fd, struct hf_error *err)
{
	int fd = replace_file(dir_fd, "", 0);

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot make the journal");
	*journal = (struct hf_journal){.dir_fd = dir_fd, .fd = fd, .sequence = 1};
	hf_pod_past_init(&journal->past);
	return 0;
}

void hf_journal_release(struct hf_journal *journal)
{
	hf_fd_cleanup(&journal->fd);
}

static void format_attempt(const char *name, const struct hf_attempt *a, uint64_t *sequence,
			   struct hf_strbuf *sb)
{
	struct hf_journal_record r = {.type = HF_JOURNAL_BEGIN,
				      .at = a->begun,
				      .attempt = a->number,
				      .backoff_s = a->backoff_s};

	if (a->state == HF_ATTEMPT_NONE)
		return;
	(void)snprintf(r.container, sizeof(r.container), "%s", name);
	hf_journal_format(&r, (*sequence)++, sb);
	if (a->started != HF_TIME_NONE && a->pid) {
		r.type = HF_JOURNAL_START;
		r.at = a->started;
		r.pid = a->pid;
		hf_journal_format(&r, (*sequence)++, sb);
	}
	if (a->finished == HF_TIME_NONE)
		return;
	r.type = a->state == HF_ATTEMPT_FAILED ? HF_JOURNAL_FAIL : HF_JOURNAL_EXIT;
	r.at = a->finished;
	r.code = a->code;
	r.signum = a->signum;
	r.oom = a->oom;
	(void)snprintf(r.text, sizeof(r.text), "%s", a->text);
	hf_journal_format(&r, (*sequence)++, sb);
}

/* Rewrites the journal with the records that a reader needs. If this fails, the long file stays. */
static void compact_file(struct hf_journal *journal)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);
	const struct hf_pod_past *past = &journal->past;
	struct hf_journal_record shim = {.type = HF_JOURNAL_SHIM, .shim = past->shim};
	struct hf_journal_record stopped = {.type = HF_JOURNAL_STOP,
					    .at = past->stopped,
					    .stop = past->stop,
					    .ran = past->ran_at_stop};
	uint64_t sequence = journal->sequence;
	int fd;

	if (past->shim.pid)
		hf_journal_format(&shim, sequence++, &sb);
	for (size_t i = 0; i < past->n_containers; i++) {
		const struct hf_container_past *c = &past->containers[i];

		format_attempt(c->name, &c->previous, &sequence, &sb);
		format_attempt(c->name, &c->last, &sequence, &sb);
	}
	if (past->stop != HF_STOPPED_NOT)
		hf_journal_format(&stopped, sequence++, &sb);
	if (sb.full)
		return;
	fd = replace_file(journal->dir_fd, sb.data, sb.len);
	if (fd < 0)
		return;
	(void)close(journal->fd);
	journal->fd = fd;
	journal->bytes = sb.len;
	journal->sequence = sequence;
}

int hf_journal_append(struct hf_journal *journal, const struct hf_journal_record *record,
		      struct hf_error *err)
{
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(LINE_MAX_BYTES);
	HF_AUTOFREE struct hf_pod_past *before = hf_xmalloc(sizeof(*before));
	int rc;

	*before = journal->past;
	rc = hf_pod_past_fold(&journal->past, record, err);
	if (rc)
		return rc;
	hf_journal_format(record, journal->sequence, &line);
	if (hf_fs_write_all(journal->fd, line.data, line.len) < 0 || fdatasync(journal->fd) < 0) {
		rc = hf_error_errno(err, errno, "cannot write the journal");
		journal->past = *before;
		/* Remove an incomplete line after a failed write, because all later lines of the
		 * file would count as damaged. */
		if (ftruncate(journal->fd, (off_t)journal->bytes) == 0)
			reserve_blocks(journal->fd);
		return rc;
	}
	journal->sequence++;
	journal->bytes += line.len;
	if (journal->bytes > HF_JOURNAL_COMPACT_BYTES && record->type != HF_JOURNAL_QUIT)
		compact_file(journal);
	return 0;
}
