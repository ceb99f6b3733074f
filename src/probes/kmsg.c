/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads the kernel's log from a device, FIFO, socket or plain file. Input: the source, and the
 * place where the last agent stopped reading. Output: evidence in the intake. Invariants: each
 * record counts once; lost records are counted; a full intake stops the reading.
 */
#include "probes/kmsg.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "health/kmsg.h"
#include "probes/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* After this number of records (a few milliseconds), other users of the loop get their turn. */
#define RECORDS_PER_TURN 4096
/* Size of one read of a stream. A record of /dev/kmsg always fits. */
#define READ_BYTES (64u << 10)
/* Interval of looks at a plain file, which gives no event when it grows. */
#define FILE_EVERY (200 * HF_MS)
/* Number of files in the folder of a plain file among which the probe looks for the rotated log. */
#define FILES_MAX 4096
/* Wait after the intake refused evidence: the next step of the brain makes room. */
#define REFUSED_WAIT (5 * HF_MS)
#define HEARD_EVERY (30 * HF_SECOND)
/* Longest wait before a source is opened again. A source that stayed open this long was readable,
 * so it is opened again at once. */
#define BACKOFF_MAX HF_MINUTE

enum mode { MODE_NONE, MODE_DEVICE, MODE_STREAM, MODE_FILE };

/* The detectors of the kernel's log. */
static const enum hf_health_detector detectors[] = {HF_HEALTH_XID, HF_HEALTH_BUSLOST,
						    HF_HEALTH_SXID, HF_HEALTH_AER, HF_HEALTH_MLX5};

struct kmsg {
	struct hf_probe probe;
	struct hf_intake *intake;
	char *path, *sys_root;
	bool trust_user;
	struct hf_timer *timer, *heard_timer;
	struct hf_backoff backoff;
	struct hf_rng rng;
	struct hf_kmsg_stats stats;
	struct hf_kmsg_place place;

	enum mode mode;
	hf_time opened_at; /* monotonic */
	/* something was read from the source since it was opened, or it stayed open for a while */
	bool heard;
	uint64_t records_before;
	int fd;
	struct hf_io *io;
	bool is_socket;
	bool live; /* all old records have been read; later records are new */
	/* the device reported lost records; the number of the next record tells how many */
	bool overrun;
	bool dry;      /* the last read found no further record */
	bool rotating; /* the open file was rotated: it has no name any more */

	char buf[READ_BYTES];
	size_t buf_at, buf_len;
	char line[HF_HEALTH_RECORD_MAX]; /* the unfinished line of a stream */
	size_t line_len;
	bool line_over;   /* the line is too long: its rest is skipped */
	uint64_t line_at; /* offset in the file at which `line` begins */
	struct hf_health_record record;
	struct hf_health_line_reader reader;
	/* evidence that the full intake refused; the probe offers the evidence again */
	struct hf_health_evidence held;
	bool holding;
	struct hf_kmsg_place held_place; /* the place in the log before the record of `held` */
};

static void read_source(struct kmsg *k);

static struct kmsg *get_kmsg(const struct hf_probe *probe)
{
	/* struct hf_probe is the first member of struct kmsg. */
	return (struct kmsg *)(uintptr_t)probe;
}

static void close_source(struct kmsg *k)
{
	if (k->mode != MODE_NONE &&
	    hf_loop_mono(hf_intake_loop(k->intake)) - k->opened_at >= BACKOFF_MAX)
		hf_backoff_reset(&k->backoff);
	hf_io_destroy(hf_steal(&k->io));
	if (k->fd >= 0)
		(void)close(k->fd);
	k->fd = -1;
	k->mode = MODE_NONE;
	k->buf_at = k->buf_len = k->line_len = 0;
	k->line_over = k->rotating = false;
}

void hf_kmsg_off(struct hf_intake *intake, const char *why)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(detectors); i++)
		hf_intake_off(intake, HF_HEALTH_BY_KMSG, detectors[i], why);
}

/* Reports the log's detectors as off with this reason, and tries to open the source again later. */
static void go_off(struct kmsg *k, const char *what, int errnum)
{
	char why[HF_INTAKE_WHY_MAX];
	struct hf_error err;

	(void)hf_error_errno(&err, errnum, "%s '%s'", what, k->path);
	snprintf(why, sizeof(why), "%s", err.text);
	close_source(k);
	hf_kmsg_off(k->intake, why);
	hf_timer_arm(k->timer, hf_backoff_next(&k->backoff, &k->rng));
}

/* ---- records ------------------------------------------------------------------------------ */

static void give_held(struct kmsg *k)
{
	if (hf_intake_evidence(k->intake, &k->held)) {
		k->holding = false;
		k->stats.evidence++;
	}
}

/* Counts lost records: the kernel numbers its records without gaps, so a skipped number was
 * overwritten. False: the record was read before. */
static bool count_through(struct kmsg *k, uint64_t seq)
{
	bool known = k->place.has_seq;
	uint64_t last = k->place.seq;

	if (known && seq <= last && k->mode == MODE_DEVICE)
		return false;
	if (known && seq > last + 1)
		k->stats.lost += seq - last - 1;
	else if (k->overrun && !known)
		k->stats.lost++;
	k->overrun = false;
	k->place.has_seq = true;
	k->place.seq = seq;
	return true;
}

static hf_time get_record_time(const struct kmsg *k)
{
	hf_time now = hf_intake_now(k->intake), at;

	/* The record's time stamp comes from a clock that is never adjusted and drifts by minutes
	 * in months. So it counts only for records from before the first read. */
	if (k->live || k->record.usec > (uint64_t)(HF_TIME_NEVER / HF_US))
		return now;
	at = hf_time_add(hf_intake_boot_at(k->intake), (hf_time)k->record.usec * HF_US);
	return at < now ? at : now;
}

/* The line is about a device that no probe named and that another driver, such as a virtual
 * machine's, has got since the line was written. */
static bool is_foreign(const struct kmsg *k, const struct hf_health_evidence *e)
{
	const struct hf_health_presence *known;
	size_t len;

	if (k->sys_root == NULL || e->device[0] == '\0' || e->detector == HF_HEALTH_SXID ||
	    e->detector == HF_HEALTH_AER || e->detector == HF_HEALTH_MLX5)
		return false;
	known = hf_intake_devices(k->intake, &len);
	for (size_t i = 0; i < len; i++)
		if (hf_streq(known[i].id, e->device))
			return false;
	return hf_sysfs_is_anothers(k->sys_root, e->device);
}

static void take_record(struct kmsg *k, const char *bytes, size_t len)
{
	enum hf_health_kmsg kind = hf_health_kmsg_parse(bytes, len, &k->record);
	bool numbered = kind != HF_HEALTH_KMSG_BROKEN;

	k->stats.records++;
	k->held_place = k->place;
	k->held_place.file_offset = k->line_at;
	if (!numbered && k->mode == MODE_DEVICE) {
		k->stats.broken++;
		return;
	}
	if (!numbered)
		hf_health_kmsg_bare(bytes, len, &k->record);
	if (numbered && !count_through(k, k->record.seq))
		return;
	if (k->record.facility != 0 && !k->trust_user) {
		k->stats.forged++;
		return;
	}
	k->record.facility = 0;
	if (!hf_health_line_parse(&k->reader, &k->record, &k->held))
		return;
	if (is_foreign(k, &k->held)) {
		k->stats.foreign++;
		return;
	}
	k->held.at = get_record_time(k);
	k->held.seq = k->record.seq;
	k->holding = true;
	give_held(k);
}

/* ---- /dev/kmsg: each read returns one record ----------------------------------------------- */

static void read_device(struct kmsg *k)
{
	for (int n = 0; n < RECORDS_PER_TURN && !k->holding; n++) {
		ssize_t got = read(k->fd, k->buf, sizeof(k->buf));

		if (got > 0) {
			take_record(k, k->buf, (size_t)got);
		} else if (got < 0 && errno == EPIPE) {
			k->overrun = true;
		} else if (got < 0 && errno == EINVAL) {
			/* The record is longer than any record may be. The kernel skips it. */
			k->stats.cut++;
		} else if (got < 0 && errno == EAGAIN) {
			k->live = k->dry = true;
			return;
		} else if (got == 0 || errno != EINTR) {
			go_off(k, "cannot read", got == 0 ? ENODATA : errno);
			return;
		}
	}
	k->dry = false;
}

/* ---- streams and files: one record a line --------------------------------------------------- */

static void end_line(struct kmsg *k)
{
	size_t len = k->line_len;

	k->stats.cut += k->line_over;
	k->line_len = 0;
	k->line_over = false;
	/* Ignore an empty line. The parser ignores lines that begin with a blank: they continue the
	 * record before. */
	if (len > 0)
		take_record(k, k->line, len);
}

/* Splits the buffer into lines and takes them. False: the intake is full, one record is held, and
 * the rest of the buffer waits. */
static bool take_buffer(struct kmsg *k)
{
	while (k->buf_at < k->buf_len && !k->holding) {
		const char *from = k->buf + k->buf_at;
		size_t left = k->buf_len - k->buf_at;
		const char *newline = memchr(from, '\n', left);
		size_t len = newline != NULL ? (size_t)(newline - from) : left;
		size_t fits = sizeof(k->line) - k->line_len;

		if (len > fits)
			k->line_over = true;
		memcpy(k->line + k->line_len, from, len < fits ? len : fits);
		k->line_len += len < fits ? len : fits;
		k->buf_at += len + (newline != NULL);
		k->place.file_offset += len + (newline != NULL);
		if (newline != NULL) {
			end_line(k);
			k->line_at = k->place.file_offset;
		}
	}
	return !k->holding;
}

static void read_stream(struct kmsg *k)
{
	uint64_t before = k->stats.records;

	while (take_buffer(k) && k->stats.records - before < RECORDS_PER_TURN) {
		ssize_t got = read(k->fd, k->buf, sizeof(k->buf));

		if (got < 0 && errno == EINTR)
			continue;
		k->buf_at = 0;
		k->buf_len = got > 0 ? (size_t)got : 0;
		if (got > 0)
			continue;
		k->dry = true;
		if (k->mode == MODE_STREAM && (got == 0 || errno != EAGAIN))
			go_off(k, "the writer closed it", got == 0 ? EPIPE : errno);
		else if (k->mode == MODE_FILE && got < 0)
			go_off(k, "cannot read", errno);
		return;
	}
	k->dry = false;
}

/* ---- following a plain file ---------------------------------------------------------------- */

static void remember_file(struct kmsg *k, const struct stat *st, uint64_t offset)
{
	k->place.file_device = st->st_dev;
	k->place.file_inode = st->st_ino;
	k->place.file_offset = k->line_at = offset;
}

/* Leaves a rotated file that was read to its end. Its last line may lack the newline. The log is
 * another file now. */
static void leave_file(struct kmsg *k)
{
	end_line(k);
	close_source(k);
	k->place.file_inode = UINT64_MAX; /* whatever stands there now is new */
	hf_timer_arm(k->timer, 0);
}

static void look_at_file(struct kmsg *k)
{
	struct stat open_one, named;
	bool gone;

	if (fstat(k->fd, &open_one) != 0) {
		go_off(k, "cannot look at", errno);
		return;
	}
	if ((uint64_t)open_one.st_size < k->place.file_offset) {
		/* The file was truncated: read the file from the start. */
		k->place.file_offset = k->line_at = 0;
		k->line_len = k->buf_at = k->buf_len = 0;
		k->line_over = false;
		(void)lseek(k->fd, 0, SEEK_SET);
	}
	/* Whether the file was rotated is asked before the rest is read: lines that come later go
	 * into the new file. */
	gone = stat(k->path, &named) != 0 || named.st_ino != open_one.st_ino ||
	       named.st_dev != open_one.st_dev;
	read_stream(k);
	if (k->mode != MODE_FILE)
		return;
	if (gone && k->dry && k->rotating)
		leave_file(k);
	else
		hf_timer_arm(k->timer, k->dry ? FILE_EVERY : 0);
	k->rotating = gone;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void on_io(void *arg, unsigned events)
{
	read_source(arg);
}

static int watch_source(struct kmsg *k)
{
	struct hf_error err;

	if (hf_io_create(hf_intake_loop(k->intake), k->fd, on_io, k, &k->io, &err) != 0)
		return EPERM;
	hf_io_want(k->io, HF_IO_READ);
	return 0;
}

static int connect_socket(struct kmsg *k)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(k->path) >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	memcpy(address.sun_path, k->path, strlen(k->path));
	k->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->fd < 0 || connect(k->fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return errno;
	k->mode = MODE_STREAM;
	return watch_source(k);
}

static bool is_place(const struct hf_kmsg_place *place, const struct stat *st)
{
	return S_ISREG(st->st_mode) && place->file_inode == st->st_ino &&
	       place->file_device == st->st_dev;
}

/* Opens the file `name` of the folder if it is the file that was read last, by inode; else -1. */
static int open_if_place(int folder, const char *name, const struct hf_kmsg_place *place,
			 struct stat *ret_st)
{
	struct stat st;
	int fd;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !is_place(place, &st))
		return -1;
	fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, ret_st) == 0 && is_place(place, ret_st))
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static DIR *open_folder(const struct kmsg *k)
{
	const char *slash = strrchr(k->path, '/');
	HF_AUTOFREE char *path = slash != NULL ? hf_xstrndup(k->path, (size_t)(slash - k->path) + 1)
					       : hf_xstrdup(".");

	return opendir(path);
}

/* Searches the log's folder for the file that was read last and was rotated while no agent ran; -1:
 * not found. */
static int open_rotated(const struct kmsg *k, struct stat *ret_st)
{
	DIR *folder = open_folder(k);
	const struct dirent *e;
	int fd = -1;

	if (folder == NULL)
		return -1;
	for (int n = 0; fd < 0 && n < FILES_MAX && (e = readdir(folder)) != NULL; n++)
		fd = open_if_place(dirfd(folder), e->d_name, &k->place, ret_st);
	(void)closedir(folder);
	return fd;
}

/* Clocks of file systems are coarse. */
static bool is_earlier(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
						      : a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

/* "kern.log.1", "kern.log-20261124" of "kern.log" */
static bool is_made_from(const char *file, const char *name)
{
	const char *rest = file + strlen(name);

	return hf_str_has_prefix(file, name) && (rest[0] == '.' || rest[0] == '-') &&
	       hf_ascii_is_digit(rest[1]);
}

/* True if the log was rotated more than once while no agent ran: the folder has a rotated file that
 * is newer than the one read last and is not the present log. */
static bool is_one_between(const struct kmsg *k, const struct stat *rotated,
			   const struct stat *newest)
{
	const char *slash = strrchr(k->path, '/'), *name = slash != NULL ? slash + 1 : k->path;
	DIR *folder = open_folder(k);
	const struct dirent *e;
	bool found = false;
	struct stat st;

	if (folder == NULL)
		return false;
	for (int n = 0; !found && n < FILES_MAX && (e = readdir(folder)) != NULL; n++)
		found = is_made_from(e->d_name, name) &&
			fstatat(dirfd(folder), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode) && st.st_dev == newest->st_dev &&
			st.st_ino != newest->st_ino && st.st_ino != rotated->st_ino &&
			!is_earlier(&st, rotated);
	(void)closedir(folder);
	return found;
}

static int open_file(struct kmsg *k, struct stat *st)
{
	const struct hf_kmsg_place *place = &k->place;
	bool remembers = place->file_inode != 0 && place->file_inode != UINT64_MAX;
	off_t offset = st->st_size;
	struct stat newest = *st;
	int fd = remembers && !is_place(place, st) ? open_rotated(k, st) : -1;

	if (fd >= 0) {
		(void)close(k->fd);
		k->fd = fd;
		k->stats.lost += is_one_between(k, st, &newest);
	}
	/* If the log is another file than the one read last, read it from its start: all lines are
	 * new. */
	if (place->file_inode != 0)
		offset = is_place(place, st) && place->file_offset <= (uint64_t)st->st_size
				 ? (off_t)place->file_offset
				 : 0;
	/* The lines between the file read last and the present log are lost. Their number is
	 * unknown: count one. */
	k->stats.lost +=
		remembers && (!is_place(place, st) || place->file_offset > (uint64_t)st->st_size);
	if (lseek(k->fd, offset, SEEK_SET) < 0)
		return errno;
	remember_file(k, st, (uint64_t)offset);
	k->mode = MODE_FILE;
	return 0;
}

/* Returns 0 or an errno. */
static int open_source(struct kmsg *k)
{
	struct stat st;

	if (stat(k->path, &st) != 0)
		return errno;
	k->is_socket = S_ISSOCK(st.st_mode);
	if (k->is_socket)
		return connect_socket(k);
	/* Open a FIFO for writing too: then it does not end when its writer closes it. */
	k->fd = open(k->path, (S_ISFIFO(st.st_mode) ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC |
				      O_NOCTTY);
	if (k->fd < 0 || fstat(k->fd, &st) != 0)
		return errno;
	k->live = !S_ISCHR(st.st_mode);
	if (S_ISREG(st.st_mode))
		return open_file(k, &st);
	if (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode))
		return EINVAL;
	k->mode = S_ISCHR(st.st_mode) ? MODE_DEVICE : MODE_STREAM;
	return watch_source(k);
}

static void report_heard(struct kmsg *k)
{
	k->heard = true;
	for (size_t i = 0; i < HF_ARRAY_LEN(detectors); i++)
		hf_intake_heard(k->intake, HF_HEALTH_BY_KMSG, detectors[i]);
}

static bool begin_source(struct kmsg *k)
{
	int errnum = open_source(k);

	if (errnum != 0) {
		/* The source did not exist: if it appears, all its lines are new and are read from
		 * the start. */
		if (errnum == ENOENT && k->place.file_inode == 0)
			k->place.file_inode = UINT64_MAX;
		go_off(k, "cannot open", errnum);
		return false;
	}
	k->opened_at = hf_loop_mono(hf_intake_loop(k->intake));
	k->records_before = k->stats.records;
	k->heard = false;
	return true;
}

static void read_more(struct kmsg *k)
{
	if (k->mode == MODE_DEVICE)
		read_device(k);
	else if (k->mode == MODE_STREAM)
		read_stream(k);
	else if (k->mode == MODE_FILE)
		look_at_file(k);
}

/* Opens the source if needed, delivers held evidence, and reads on. */
static void read_source(struct kmsg *k)
{
	hf_timer_disarm(k->timer);
	if (k->holding)
		give_held(k);
	if (k->mode == MODE_NONE && !begin_source(k))
		return;
	if (!k->holding)
		read_more(k);
	/* A socket counts as readable only after a record: its writer may hang up at once. */
	if (!k->heard && k->mode != MODE_NONE &&
	    (!k->is_socket || k->stats.records > k->records_before))
		report_heard(k);
	if (k->holding)
		hf_timer_arm(k->timer, REFUSED_WAIT);
	if (k->io != NULL)
		hf_io_want(k->io, k->holding ? 0 : HF_IO_READ);
}

static void on_read_timer(void *arg)
{
	read_source(arg);
}

static void on_heard_timer(void *arg)
{
	struct kmsg *k = arg;

	if (k->mode != MODE_NONE)
		report_heard(k);
	hf_timer_arm(k->heard_timer, HEARD_EVERY);
}

/* ---- the probe ------------------------------------------------------------------------------ */

static void start_kmsg(struct hf_probe *probe)
{
	struct kmsg *k = get_kmsg(probe);

	hf_timer_arm(k->timer, 0);
	hf_timer_arm(k->heard_timer, HEARD_EVERY);
}

static void poke_kmsg(struct hf_probe *probe)
{
	struct kmsg *k = get_kmsg(probe);

	/* After a failed open, only the backoff timer opens the source again, not a poke. */
	if (k->mode != MODE_NONE)
		hf_timer_arm(k->timer, 0);
}

static void destroy_kmsg(struct hf_probe *probe)
{
	struct kmsg *k = get_kmsg(probe);

	close_source(k);
	hf_timer_destroy(k->timer);
	hf_timer_destroy(k->heard_timer);
	free(k->path);
	free(k->sys_root);
	free(k);
}

static const struct hf_probe_ops ops = {
	.name = "kmsg", .start = start_kmsg, .poke = poke_kmsg, .destroy = destroy_kmsg};

struct hf_probe *hf_kmsg_probe_create(struct hf_intake *intake,
				      const struct hf_kmsg_options *options)
{
	struct kmsg *k = hf_xcalloc(1, sizeof(*k));

	k->probe.ops = &ops;
	k->intake = intake;
	k->path = hf_xstrdup(options->path);
	k->sys_root = options->sys_root ? hf_xstrdup(options->sys_root) : NULL;
	k->trust_user = options->trust_user;
	k->place = options->place;
	k->fd = -1;
	k->backoff = (struct hf_backoff)HF_BACKOFF_INIT(HF_SECOND, BACKOFF_MAX, 20);
	hf_rng_init(&k->rng, hf_hash_str(options->path));
	k->timer = hf_timer_create(hf_intake_loop(intake), on_read_timer, k);
	k->heard_timer = hf_timer_create(hf_intake_loop(intake), on_heard_timer, k);
	return &k->probe;
}

const struct hf_kmsg_stats *hf_kmsg_probe_stats(const struct hf_probe *probe)
{
	return &get_kmsg(probe)->stats;
}

void hf_kmsg_probe_place(const struct hf_probe *probe, struct hf_kmsg_place *ret_place)
{
	const struct kmsg *k = get_kmsg(probe);

	*ret_place = k->holding ? k->held_place : k->place;
	/* If an incomplete line was read, the stored place is before it: the next agent reads the
	 * whole line. */
	if (!k->holding)
		ret_place->file_offset = k->line_at;
}

bool hf_kmsg_probe_is_caught_up(const struct hf_probe *probe)
{
	const struct kmsg *k = get_kmsg(probe);

	return k->mode == MODE_NONE || (k->dry && !k->holding);
}
