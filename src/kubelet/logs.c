/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Reads the logs that a shim writes: lines "<time> stdout F <line>" in parts NAME.log.N (oldest) to
 * NAME.log. After a part's end, the reader looks up the part's present name by its inode and
 * continues with the next younger part. A rotation meanwhile thus loses no line.
 */
#define PIECE ((size_t)64 << 10) /* bytes that are read and delivered in one turn of the loop */
#define POLL_EVERY (100 * HF_MS)
#define STREAMS_MAX 256
/* Each line begins with a prefix of fixed width: "2026-11-21T09:00:01.250000Z stdout F ". */
#define TIME_LEN 27
#define TAG_AT (TIME_LEN + 8)
#define PREFIX_LEN (TAG_AT + 2)
#define LINE_BYTES_MAX (HF_LOG_LINE_MAX + PREFIX_LEN + 1)
#define SPILL_BYTES_MAX                                                                            \
	((size_t)1 << 20) /* lines that the log lacks and the caller has not got yet */

struct hf_kubelet_log_reader {
	struct hf_log_stream base;
	/* the kubelet that owns the pod; NULL: the logs are kept logs */
	struct hf_kubelet *kubelet;
	struct hf_kubelet_log_reader *next;
	hf_log_fn fn;
	void *arg;
	struct hf_task *task;
	struct hf_timer *timer;
	/* What to read. */
	char *pod_uid, *container, *stem; /* stem: path of the youngest part */
	unsigned attempt;
	bool follow, timestamps;
	/* for a kept log that may grow; NULL: the log does not grow */
	hf_kubelet_log_over_fn over_fn;
	void *over_arg;
	char since[TIME_LEN + 1]; /* "": from the beginning */
	char born[TIME_LEN + 1];  /* when the stream began */
	int64_t skip_lines;
	int64_t bytes_left; /* -1: no limit */
	/* How far the read has come. */
	int fd;
	ino_t inode;
	struct hf_strbuf line; /* the bytes of a line that has no newline yet */
	/* Lines that could not be written to the log, by their times later than all lines before
	 * `spill_at`, which were passed on. */
	struct hf_strbuf spill;
	size_t spill_at;
	uint64_t spill_lost; /* bytes that did not fit into `spill` */
	/* for stdout and stderr: the last record was a part of a long line (tag P), which the next
	 * record continues */
	bool within[2];
	bool says_dropped; /* a line says first how much of the log is not kept */
	bool over;         /* the container has ended; the files do not grow any more */
	int code;          /* the error that ends the stream; 0: no error */
	char message[HF_ERROR_TEXT_MAX];
	bool at_end;
};

static const struct hf_store_ops stream_ops;

/* --- parts of a log --- */

static char *part_path(const char *stem, int i)
{
	return i ? hf_xasprintf("%s.%d", stem, i) : hf_xstrdup(stem);
}

/* Returns the number of the file of the log that has this inode; -1: the file was deleted. */
static int part_of(const char *stem, ino_t inode)
{
	for (int i = 0; i < HF_KUBELET_LOG_FILES_MAX; i++) {
		HF_AUTOFREE char *path = part_path(stem, i);
		struct stat st;

		if (stat(path, &st) == 0 && st.st_ino == inode)
			return i;
	}
	return -1;
}

static int oldest_part(const char *stem)
{
	for (int i = HF_KUBELET_LOG_FILES_MAX - 1; i > 0; i--) {
		HF_AUTOFREE char *path = part_path(stem, i);

		if (access(path, F_OK) == 0)
			return i;
	}
	return 0;
}

static bool open_part(struct hf_kubelet_log_reader *s, int i)
{
	HF_AUTOFREE char *path = part_path(s->stem, i);
	struct stat st;

	hf_fd_cleanup(&s->fd);
	s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return false;
	s->inode = st.st_ino;
	return true;
}

/* True for the tag of a line that ends here. */
static bool is_whole(char tag)
{
	return tag == 'F' || tag == HF_LOG_TAG_SHOWN;
}

/* Counts the whole lines in a file; pieces of long lines do not count. */
static int64_t count_lines(const char *path)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	HF_AUTOFREE char *buf = hf_xmalloc(PIECE);
	size_t column = 0;
	bool whole = false;
	int64_t n = 0;
	ssize_t got;

	while (fd >= 0 && (got = read(fd, buf, PIECE)) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (column == TAG_AT)
				whole = is_whole(buf[i]);
			column++;
			if (buf[i] == '\n') {
				n += whole;
				column = 0;
			}
		}
	}
	return n;
}

/* Opens a part of the log so that the last n lines of the log are left to read: skips the lines
 * before. */
static int seek_tail(struct hf_kubelet_log_reader *s, int64_t n)
{
	int oldest = oldest_part(s->stem);

	for (int i = 0; i <= oldest; i++) {
		HF_AUTOFREE char *path = part_path(s->stem, i);
		int64_t have = count_lines(path);

		if (have >= n) {
			s->skip_lines = have - n;
			return i;
		}
		n -= have;
	}
	return oldest;
}

/* --- lines --- */

static void add_line(struct hf_kubelet_log_reader *s, const char *line, size_t len,
		     struct hf_strbuf *out)
{
	bool whole = len > TAG_AT && is_whole(line[TAG_AT]), within;

	if (len < PREFIX_LEN)
		return; /* not a line of a shim */
	if (s->skip_lines > 0) {
		s->skip_lines -= whole;
		return;
	}
	if (s->since[0] && memcmp(line, s->since, TIME_LEN) < 0)
		return;
	/* This stream has passed the lines on that the note says are lost. */
	if (line[TAG_AT] == HF_LOG_TAG_SHOWN && s->follow && memcmp(line, s->born, TIME_LEN) >= 0)
		return;
	/* The fourth letter tells "stderr" from "stdout". The second and later parts of a long
	 * line are printed without a time. */
	within = s->within[line[TIME_LEN + 4] == 'e'];
	s->within[line[TIME_LEN + 4] == 'e'] = !whole;
	if (s->timestamps && !within) {
		hf_strbuf_add(out, line, TIME_LEN);
		hf_strbuf_addch(out, ' ');
	}
	hf_strbuf_add(out, line + PREFIX_LEN, len - PREFIX_LEN);
	if (whole)
		hf_strbuf_addch(out, '\n');
}

/* Adds the spilled lines that are older than a line of the file; before NULL: all. */
static void add_spill(struct hf_kubelet_log_reader *s, const char *before, struct hf_strbuf *out)
{
	while (s->spill_at < s->spill.len) {
		const char *line = s->spill.data + s->spill_at;
		const char *end = memchr(line, '\n', s->spill.len - s->spill_at);
		size_t len = (size_t)(end - line);

		if (before && len > TIME_LEN && memcmp(line, before, TIME_LEN) > 0)
			return;
		add_line(s, line, len, out);
		s->spill_at += len + 1;
	}
	hf_strbuf_clear(&s->spill);
	s->spill_at = 0;
	if (s->spill_lost)
		hf_strbuf_addf(out, "holdfast: %" PRIu64 " bytes of output are lost here\n",
			       s->spill_lost);
	s->spill_lost = 0;
}

static void add_bytes(struct hf_kubelet_log_reader *s, const char *bytes, size_t len,
		      struct hf_strbuf *out)
{
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t take = end ? (size_t)(end - bytes) : len;

		hf_strbuf_add(&s->line, bytes, take);
		bytes += take + (end != NULL);
		len -= take + (end != NULL);
		if (!end)
			return;
		if (s->spill.len > 0 && s->line.len > TIME_LEN)
			add_spill(s, s->line.data, out);
		add_line(s, s->line.data, s->line.len, out);
		hf_strbuf_clear(&s->line);
	}
}

/* --- a turn of the loop --- */

/* Tells whether the container that writes this log has ended. */
static bool is_over(const struct hf_kubelet_log_reader *s)
{
	const struct hf_kubelet_pod *pod =
		s->kubelet ? hf_map_get(s->kubelet->pods, s->pod_uid) : NULL;
	const struct hf_container_past *past;

	if (s->over_fn)
		return s->over_fn(s->over_arg, s->pod_uid, s->container, s->attempt);
	if (!pod || pod->state == HF_KUBELET_POD_ENDED)
		return true;
	past = hf_pod_past_find(&pod->past, s->container);
	return past && (past->last.number != s->attempt || hf_attempt_ended(&past->last));
}

/* Called at the end of a file of the log: opens the next younger file, waits for more output, or
 * ends the stream. */
static void next_part(struct hf_kubelet_log_reader *s)
{
	int i = part_of(s->stem, s->inode);

	if (i > 0 || (i < 0 && s->fd >= 0 && access(s->stem, F_OK) == 0)) {
		(void)open_part(s, i > 0 ? i - 1 : oldest_part(s->stem));
		hf_task_post(s->task);
	} else if (!s->follow || s->over) {
		s->at_end = true;
		hf_task_post(s->task);
	} else {
		/* When the container has ended, read once more before the stream ends: output may
		 * have come after the last read. */
		s->over = is_over(s);
		hf_timer_arm(s->timer, s->over ? 0 : POLL_EVERY);
	}
}

static void cut_to_limit(struct hf_kubelet_log_reader *s, struct hf_strbuf *out)
{
	if (s->bytes_left < 0)
		return;
	if ((int64_t)out->len >= s->bytes_left) {
		hf_strbuf_truncate(out, (size_t)s->bytes_left);
		s->at_end = true;
	}
	s->bytes_left -= (int64_t)out->len;
}

void hf_kubelet_logs_spill(struct hf_kubelet *k, const char *pod_uid, const char *container,
			   unsigned attempt, const char *lines, size_t len)
{
	if (!len || lines[len - 1] != '\n')
		return;
	for (struct hf_kubelet_log_reader *s = k->streams; s; s = s->next) {
		if (!s->follow || s->at_end || s->attempt != attempt ||
		    !hf_streq(s->pod_uid, pod_uid) || !hf_streq(s->container, container))
			continue;
		if (s->spill_lost || s->spill.len + len > SPILL_BYTES_MAX)
			s->spill_lost += len;
		else
			hf_strbuf_add(&s->spill, lines, len);
		hf_timer_arm(s->timer, 0);
	}
}

/* Adds a line if the beginning of the log is not kept. */
static void add_dropped(const struct hf_kubelet_log_reader *s, struct hf_strbuf *out)
{
	struct hf_kubelet_log_extent extent;

	hf_kubelet_log_extent(s->stem, &extent);
	if (extent.dropped > 0)
		hf_strbuf_addf(out,
			       "holdfast: the first %.1f MiB of this log are not kept: a log keeps "
			       "its last %d MiB\n",
			       (double)extent.dropped / (1 << 20),
			       (int)(HF_KUBELET_LOG_BYTES_MAX * HF_KUBELET_LOG_FILES_MAX >> 20));
}

/* Call the callback at the end, because it may stop the stream. */
static void on_turn(void *arg)
{
	struct hf_kubelet_log_reader *s = arg;
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(SPILL_BYTES_MAX + PIECE * 2 + LINE_BYTES_MAX);
	HF_AUTOFREE char *buf = NULL;
	ssize_t n;

	if (s->at_end) {
		s->fn(s->arg, "", 0, s->code, s->message);
		return;
	}
	if (s->says_dropped)
		add_dropped(s, &out);
	s->says_dropped = false;
	buf = hf_xmalloc(PIECE);
	n = s->fd < 0 ? 0 : read(s->fd, buf, PIECE);
	if (n > 0) {
		add_bytes(s, buf, (size_t)n, &out);
		cut_to_limit(s, &out);
		hf_task_post(s->task);
	} else {
		/* The shim wrote the lines of the file before it sent the spilled ones. */
		add_spill(s, NULL, &out);
		cut_to_limit(s, &out);
		next_part(s);
	}
	if (out.len)
		s->fn(s->arg, out.data, out.len, 0, "");
}

/* --- choice of the attempt --- */

static struct hf_kubelet_log_reader *refuse_stream(struct hf_kubelet_log_reader *s, int code,
						   const char *fmt, ...) HF_PRINTF(3, 4);

static struct hf_kubelet_log_reader *refuse_stream(struct hf_kubelet_log_reader *s, int code,
						   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s->message, sizeof(s->message), fmt, ap);
	va_end(ap);
	s->code = code;
	s->at_end = true;
	hf_task_post(s->task);
	return s;
}

static const struct hf_kubelet_pod_container *find_container(const struct hf_kubelet_pod *pod,
							     const char *name)
{
	size_t n_main = 0;
	const struct hf_kubelet_pod_container *only = NULL;

	for (size_t i = 0; i < pod->n; i++) {
		if (name && hf_streq(pod->containers[i].name, name))
			return &pod->containers[i];
		if (!pod->containers[i].init) {
			n_main++;
			only = &pod->containers[i];
		}
	}
	return !name && n_main == 1 ? only : NULL;
}

static void list_names(const struct hf_kubelet_pod *pod, struct hf_strbuf *sb)
{
	for (size_t i = 0; i < pod->n; i++)
		if (!pod->containers[i].init)
			hf_strbuf_addf(sb, "%s%s", sb->len ? " " : "", pod->containers[i].name);
}

static const char *waiting_reason(const struct hf_kubelet_pod *pod,
				  const struct hf_kubelet_pod_container *c)
{
	if (pod->trouble[0])
		return hf_str_or(pod->trouble_reason, "ContainerCreating");
	return hf_str_or(c->reason, c->init || hf_kubelet_pod_active(pod) ? "ContainerCreating"
									  : "PodInitializing");
}

/* Chooses the attempt to read: the last one, or with `previous` the attempt before. If a container
 * waits to be restarted, its last attempt has ended, and counts as the previous attempt. */
static const struct hf_attempt *choose_attempt(const struct hf_kubelet_pod *pod,
					       const struct hf_container_past *past, bool previous)
{
	if (!past || past->last.state == HF_ATTEMPT_NONE)
		return NULL;
	if (!previous)
		return &past->last;
	if (hf_attempt_ended(&past->last) && pod->state == HF_KUBELET_POD_RUNNING)
		return &past->last;
	return past->previous.state == HF_ATTEMPT_NONE ? NULL : &past->previous;
}

static struct hf_kubelet_log_reader *begin_file(struct hf_kubelet_log_reader *s,
						const struct hf_log_options *o)
{
	(void)open_part(s, o->tail_lines >= 0 ? seek_tail(s, o->tail_lines) : oldest_part(s->stem));
	hf_task_post(s->task);
	return s;
}

static struct hf_kubelet_log_reader *begin_stream(struct hf_kubelet_log_reader *s,
						  const struct hf_kubelet_pod *pod,
						  const struct hf_log_options *o)
{
	const struct hf_kubelet_pod_container *c = find_container(pod, o->container);
	const struct hf_attempt *attempt;
	HF_AUTO_STRBUF names = HF_STRBUF_INIT(8192);

	list_names(pod, &names);
	if (!c && !o->container)
		return refuse_stream(
			s, HF_E_BAD_REQUEST,
			"a container name must be specified for pod %s, choose one of: [%s]",
			pod->name, names.data);
	if (!c)
		return refuse_stream(s, HF_E_BAD_REQUEST, "container %s is not valid for pod %s",
				     o->container, pod->name);
	attempt = choose_attempt(pod, hf_pod_past_find(&pod->past, c->name), o->previous);
	if (!attempt && o->previous)
		return refuse_stream(s, HF_E_BAD_REQUEST,
				     "previous terminated container \"%s\" in pod \"%s\" not found",
				     c->name, pod->name);
	if (!attempt)
		return refuse_stream(s, HF_E_BAD_REQUEST,
				     "container \"%s\" in pod \"%s\" is waiting to start: %s",
				     c->name, pod->name, waiting_reason(pod, c));
	s->container = hf_xstrdup(c->name);
	s->attempt = attempt->number;
	s->stem = hf_xasprintf("%s/logs/%s.%u.log", pod->dir, c->name, attempt->number);
	s->follow = o->follow && !o->previous;
	return begin_file(s, o);
}

static struct hf_kubelet_log_reader *create_reader(struct hf_loop *loop, struct hf_doc *doc,
						   const struct hf_log_options *o, hf_log_fn fn,
						   void *fn_arg)
{
	struct hf_kubelet_log_reader *s = hf_xcalloc(1, sizeof(*s));
	char born[HF_TIME_TEXT_MAX];

	s->base.ops = &stream_ops;
	s->fn = fn;
	s->arg = fn_arg;
	s->fd = -1;
	s->timestamps = o->timestamps;
	s->bytes_left = o->limit_bytes > 0 ? o->limit_bytes : -1;
	s->pod_uid = hf_xstrdup(hf_doc_uid(doc));
	hf_strbuf_init(&s->line, LINE_BYTES_MAX);
	hf_strbuf_init(&s->spill, SPILL_BYTES_MAX);
	hf_time_format_micro(hf_loop_wall(loop), born);
	memcpy(s->born, born, TIME_LEN);
	if (o->since_seconds > 0) {
		char text[HF_TIME_TEXT_MAX];

		hf_time_format_micro(hf_loop_wall(loop) - o->since_seconds * HF_SECOND, text);
		memcpy(s->since, text, TIME_LEN);
	}
	s->task = hf_task_create(loop, on_turn, s);
	s->timer = hf_timer_create(loop, on_turn, s);
	return s;
}

struct hf_log_stream *hf_kubelet_logs(void *kubelet_arg, struct hf_doc *doc,
				      const struct hf_log_options *o, hf_log_fn fn, void *fn_arg)
{
	struct hf_kubelet *k = kubelet_arg;
	struct hf_kubelet_log_reader *s = create_reader(k->loop, doc, o, fn, fn_arg);
	const struct hf_kubelet_pod *pod = hf_map_get(k->pods, hf_doc_uid(doc));
	size_t n = 0;

	s->kubelet = k;
	for (const struct hf_kubelet_log_reader *other = k->streams; other; other = other->next)
		n++;
	s->next = k->streams;
	k->streams = s;
	if (n >= STREAMS_MAX)
		return &refuse_stream(s, HF_E_TOO_MANY, "more than %d logs are being read",
				      STREAMS_MAX)
				->base;
	if (!pod)
		return &refuse_stream(
				s, HF_E_BAD_REQUEST,
				"container in pod \"%s\" is waiting to start: ContainerCreating",
				hf_doc_name(doc))
				->base;
	return &begin_stream(s, pod, o)->base;
}

struct hf_log_stream *hf_kubelet_kept_logs(struct hf_loop *loop, const char *logs_dir,
					   struct hf_doc *pod, const struct hf_log_options *o,
					   hf_log_fn fn, void *fn_arg)
{
	struct hf_kubelet_log_reader *s = create_reader(loop, pod, o, fn, fn_arg);

	s->stem = hf_kubelet_kept_log(logs_dir, hf_doc_json(pod), o->container, o->previous);
	s->says_dropped = !o->timestamps && o->since_seconds <= 0 && o->tail_lines < 0;
	if (!s->stem)
		return &refuse_stream(s, HF_E_BAD_REQUEST,
				      "no %slog of container \"%s\" in pod \"%s\" is kept",
				      o->previous ? "previous " : "", hf_str_or(o->container, ""),
				      hf_doc_name(pod))
				->base;
	return &begin_file(s, o)->base;
}

void hf_kubelet_kept_logs_follow(struct hf_log_stream *stream, hf_kubelet_log_over_fn over,
				 void *over_arg)
{
	struct hf_kubelet_log_reader *s = (struct hf_kubelet_log_reader *)stream;
	const char *name = s->stem ? strrchr(s->stem, '/') + 1 : "";
	const char *dot = strchr(name, '.');

	if (!dot) /* the stream was refused */
		return;
	/* The name is CONTAINER.ATTEMPT.log. */
	s->container = hf_xstrndup(name, (size_t)(dot - name));
	s->attempt = (unsigned)strtoul(dot + 1, NULL, 10);
	s->follow = true;
	s->over_fn = over;
	s->over_arg = over_arg;
}

void hf_kubelet_log_tail(const char *path, struct hf_strbuf *sb)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	HF_AUTOFREE char *bytes = NULL;
	size_t room = sb->bytes_max - sb->len, len;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return;
	len = (size_t)st.st_size < room ? (size_t)st.st_size : room;
	bytes = hf_xmalloc(len + 1);
	n = pread(fd, bytes, len, st.st_size - (off_t)len);
	for (ssize_t at = 0; at < n;) {
		const char *line = bytes + at, *stop = memchr(line, '\n', (size_t)(n - at));
		size_t line_len = (size_t)(stop != NULL ? stop - line : n - at);

		/* The first line may have lost its beginning. */
		if (line_len >= PREFIX_LEN && (at > 0 || len == (size_t)st.st_size)) {
			hf_strbuf_add(sb, line + PREFIX_LEN, line_len - PREFIX_LEN);
			if (is_whole(line[TAG_AT]))
				hf_strbuf_addch(sb, '\n');
		}
		at += (ssize_t)line_len + 1;
	}
}

static void stop_stream(struct hf_log_stream *stream)
{
	struct hf_kubelet_log_reader *s = (struct hf_kubelet_log_reader *)stream;

	if (s->kubelet) {
		struct hf_kubelet_log_reader **at = &s->kubelet->streams;

		while (*at != s)
			at = &(*at)->next;
		*at = s->next;
	}
	s->task = hf_task_destroy(s->task);
	s->timer = hf_timer_destroy(s->timer);
	hf_fd_cleanup(&s->fd);
	hf_strbuf_release(&s->line);
	hf_strbuf_release(&s->spill);
	free(s->pod_uid);
	free(s->container);
	free(s->stem);
	free(s);
}

static const struct hf_store_ops stream_ops = {.name = "kubelet", .logs_stop = stop_stream};

/* --- the tail, for termination messages --- */

void hf_kubelet_logs_tail(const char *pod_dir, const char *container, unsigned attempt,
			  size_t bytes_max, int lines_max, struct hf_strbuf *sb)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/logs/%s.%u.log", pod_dir, container, attempt);
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(PIECE);
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(PIECE);
	struct hf_kubelet_log_reader s = {.line = HF_STRBUF_INIT(LINE_BYTES_MAX)};
	struct stat st;
	size_t from;
	char *at = hf_strbuf_reserve(&text, PIECE);
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !at)
		return;
	n = pread(fd, at, PIECE, st.st_size > (off_t)PIECE ? st.st_size - (off_t)PIECE : 0);
	if (n <= 0)
		return;
	hf_strbuf_grew(&text, (size_t)n);
	/* The first line may be incomplete. */
	from = st.st_size > (off_t)PIECE ? strcspn(text.data, "\n") + 1 : 0;
	if (from < text.len)
		add_bytes(&s, text.data + from, text.len - from, &out);
	hf_strbuf_release(&s.line);
	from = out.len > bytes_max ? out.len - bytes_max : 0;
	for (size_t i = out.len; i > from; i--)
		if (out.data[i - 1] == '\n' && i != out.len && --lines_max == 0)
			from = i;
	hf_strbuf_add(sb, out.data + from, out.len - from);
}
