/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "probes/kmsg.h"

#include "base/fs.h"
#include "harness/real_loop.h"
#include "harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define XID "NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus."
#define DAYS_UP (5 * HF_DAY)

/*
 * A pseudo-terminal plays /dev/kmsg: its master is the one character device that every user may
 * open and poll. The program is linked with --wrap=read, so the test scripts what each read
 * returns.
 */
#define DEVICE "/dev/ptmx"

struct script {
	const char *text; /* NULL: the read fails with errnum */
	int errnum;
};
static const struct script *script; /* NULL: reads go to the kernel */
static int script_reads;

ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	const struct script *next = script;
	struct stat st;

	if (next == NULL || fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode))
		return __real_read(fd, buf, size);
	script_reads++;
	if (next->text == NULL) {
		/* The last item of the script repeats. */
		if (next->errnum != EAGAIN)
			script++;
		errno = next->errnum;
		return -1;
	}
	script++;
	assert_true(strlen(next->text) <= size);
	memcpy(buf, next->text, strlen(next->text));
	return (ssize_t)strlen(next->text);
}

struct world {
	struct hf_test_loop t;
	struct hf_intake *intake;
	struct hf_probe *probe;
	struct hf_kmsg_options options;
	struct hf_timer *poll;
	char dir[64], path[128];
	/* number of records that run_until_records waits for */
	uint64_t want_records;
	bool want_off;
};

static void on_news(void *arg, bool urgent)
{
}

static const struct hf_kmsg_stats *stats(const struct world *w)
{
	return hf_kmsg_probe_stats(w->probe);
}

static enum hf_intake_state state_of(const struct world *w, const char **ret_why)
{
	return hf_intake_state(w->intake, HF_HEALTH_BY_KMSG, HF_HEALTH_XID, ret_why);
}

static void on_poll(void *arg)
{
	struct world *w = arg;
	const char *why;
	bool off = state_of(w, &why) == HF_INTAKE_OFF;

	if (w->want_off ? off : stats(w)->records >= w->want_records)
		hf_loop_stop(w->t.loop);
	else
		hf_timer_arm(w->poll, HF_MS);
}

static void run_until_records(struct world *w, uint64_t n)
{
	w->want_records = n;
	w->want_off = false;
	hf_timer_arm(w->poll, 0);
	hf_test_loop_run(&w->t);
}

static void run_until_off(struct world *w)
{
	w->want_off = true;
	hf_timer_arm(w->poll, 0);
	hf_test_loop_run(&w->t);
}

static void run_for(struct world *w, hf_time span)
{
	w->want_records = 0;
	w->want_off = false;
	hf_timer_arm(w->poll, span);
	hf_test_loop_run(&w->t);
}

static void open_probe(struct world *w, const char *path)
{
	w->options.path = path;
	w->probe = hf_kmsg_probe_create(w->intake, &w->options);
	w->probe->ops->start(w->probe);
}

static void close_probe(struct world *w)
{
	w->probe->ops->destroy(w->probe);
	w->probe = NULL;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct hf_intake_options options = {.boot_at = DAYS_UP, .news = on_news};

	hf_test_loop_init(&w->t);
	options.loop = w->t.loop;
	w->intake = hf_intake_create(&options);
	w->poll = hf_timer_create(w->t.loop, on_poll, w);
	snprintf(w->dir, sizeof(w->dir), "/tmp/hf-kmsg-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/log", w->dir);
	script = NULL;
	script_reads = 0;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	struct hf_error err;

	if (w->probe)
		close_probe(w);
	hf_intake_destroy(w->intake);
	hf_timer_destroy(w->poll);
	hf_test_loop_release(&w->t);
	assert_ok(hf_fs_remove_tree(w->dir, &err), &err);
	free(w);
	return 0;
}

static void append(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static struct hf_health_input taken(struct world *w)
{
	struct hf_health_input input = {0};

	hf_intake_take(w->intake, &input);
	return input;
}

/* ---- the device ------------------------------------------------------------------------------ */

static void the_device_is_read_to_its_end_and_old_records_keep_their_time(void **state)
{
	static const struct script reads[] = {
		{"6,10,1000000,-;something else\n", 0},
		{"3,11,2000000,-;" XID "\n SUBSYSTEM=pci\n", 0},
		{NULL, EINTR},
		{NULL, EAGAIN},
	};
	struct world *w = *state;
	struct hf_health_input input;
	struct hf_kmsg_place place;
	const char *why;

	script = reads;
	open_probe(w, DEVICE);
	run_until_records(w, 2);
	assert_true(hf_kmsg_probe_is_caught_up(w->probe));
	assert_int_equal(state_of(w, &why), HF_INTAKE_OK);
	input = taken(w);
	assert_int_equal(input.evidence_len, 1);
	assert_int_equal(input.evidence[0].code, 79);
	assert_int_equal(input.evidence[0].seq, 11);
	assert_true(input.evidence[0].at == DAYS_UP + 2 * HF_SECOND);
	hf_kmsg_probe_place(w->probe, &place);
	assert_int_equal(place.seq, 11);
	assert_int_equal(stats(w)->lost, 0);
}

static void what_comes_after_the_device_was_read_once_is_of_now(void **state)
{
	static const struct script before[] = {{NULL, EAGAIN}};
	static const struct script after[] = {{"3,11,2000000,-;" XID "\n", 0}, {NULL, EAGAIN}};
	struct world *w = *state;

	script = before;
	open_probe(w, DEVICE);
	run_for(w, 5 * HF_MS);
	script = after;
	w->probe->ops->poke(w->probe);
	run_until_records(w, 1);
	assert_true(taken(w).evidence[0].at > DAYS_UP + 2 * HF_SECOND);
}

static void records_that_were_read_before_a_restart_are_not_read_again(void **state)
{
	static const struct script reads[] = {
		{"3,11,2000000,-;" XID "\n", 0},
		{"3,12,2000001,-;" XID "\n", 0},
		{"3,13,2000002,-;" XID "\n", 0},
		{NULL, EAGAIN},
	};
	struct world *w = *state;

	w->options.place = (struct hf_kmsg_place){.has_seq = true, .seq = 12};
	script = reads;
	open_probe(w, DEVICE);
	run_until_records(w, 3);
	assert_int_equal(taken(w).evidence_len, 1);
	assert_int_equal(taken(w).evidence[0].seq, 13);
	assert_int_equal(stats(w)->lost, 0);
}

static void records_that_were_overwritten_unread_are_counted(void **state)
{
	static const struct script reads[] = {
		{"6,5,1,-;a\n", 0},   {NULL, EPIPE},  {"6,105,2,-;b\n", 0},
		{"6,106,3,-;c\n", 0}, {NULL, EAGAIN},
	};
	struct world *w = *state;

	/* Four more lines were written while no agent ran. */
	w->options.place = (struct hf_kmsg_place){.has_seq = true, .seq = 0};
	script = reads;
	open_probe(w, DEVICE);
	run_until_records(w, 3);
	assert_int_equal(stats(w)->lost, 4 + 99);
}

static void an_overrun_before_the_first_record_is_a_loss_too(void **state)
{
	static const struct script reads[] = {{NULL, EPIPE}, {"6,105,2,-;b\n", 0}, {NULL, EAGAIN}};
	struct world *w = *state;

	script = reads;
	open_probe(w, DEVICE);
	run_until_records(w, 1);
	assert_int_equal(stats(w)->lost, 1);
}

static void what_a_process_wrote_is_dropped_and_counted_unless_it_is_trusted(void **state)
{
	static const struct script reads[] = {
		{"12,7,1,-;" XID "\n", 0}, {"no record\n", 0}, {NULL, EINVAL}, {NULL, EAGAIN}};
	struct world *w = *state;

	script = reads;
	open_probe(w, DEVICE);
	run_until_records(w, 2);
	run_for(w, 2 * HF_MS);
	assert_int_equal(taken(w).evidence_len, 0);
	assert_int_equal(stats(w)->forged, 1);
	assert_int_equal(stats(w)->broken, 1);
	assert_int_equal(stats(w)->cut, 1);
	close_probe(w);
	w->options.trust_user = true;
	script = reads;
	open_probe(w, DEVICE);
	run_until_records(w, 2);
	assert_int_equal(taken(w).evidence_len, 1);
}

static void a_device_that_fails_is_off_and_is_opened_again(void **state)
{
	static const struct script broken[] = {{NULL, EIO}, {NULL, EAGAIN}};
	static const struct script works[] = {{"6,5,1,-;a\n", 0}, {NULL, EAGAIN}};
	struct world *w = *state;
	const char *why;

	script = broken;
	open_probe(w, DEVICE);
	run_until_off(w);
	(void)state_of(w, &why);
	assert_non_null(strstr(why, "Input/output error"));
	script = works;
	run_until_records(w, 1);
	assert_int_equal(state_of(w, &why), HF_INTAKE_OK);
}

static void the_kernels_own_log_can_be_read_where_it_may_be(void **state)
{
	struct world *w = *state;
	const char *why;
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char byte[HF_HEALTH_DEVICE_MAX];

	if (fd < 0 || (read(fd, byte, sizeof(byte)) < 0 && errno != EINVAL && errno != EPIPE)) {
		if (fd >= 0)
			close(fd);
		skip();
	}
	close(fd);
	open_probe(w, "/dev/kmsg");
	run_until_records(w, 1);
	assert_int_equal(stats(w)->broken, 0);
	assert_int_equal(state_of(w, &why), HF_INTAKE_OK);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void a_fifo_gives_lines_whoever_writes_and_leaves(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkfifo(w->path, 0600), 0);
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path, XID "\n[ 12.5] NVRM: Xid (PCI:0000:1b:");
	run_until_records(w, 1);
	append(w->path, "00): 31, pid=7, name=python\n");
	run_until_records(w, 2);
	assert_int_equal(taken(w).evidence_len, 2);
	assert_string_equal(taken(w).evidence[1].device, "0000:1b:00.0");
	assert_int_equal(taken(w).evidence[1].code, 31);
}

static void a_record_of_several_lines_is_read_as_dmesg_prints_it(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkfifo(w->path, 0600), 0);
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path,
	       "[   12.500000] NVRM: The NVIDIA GPU 0000:1b:00.0\n"
	       "               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
	       "               NVRM: fallen off the bus and is not responding to commands.\n"
	       "               " XID "\n");
	run_until_records(w, 4);
	assert_int_equal(taken(w).evidence_len, 1);
	assert_string_equal(taken(w).evidence[0].device, "0000:1b:00.0");
	assert_int_equal(taken(w).evidence[0].detector, HF_HEALTH_BUSLOST);
}

static void a_stream_of_records_is_counted_through(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkfifo(w->path, 0600), 0);
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path, "6,1,1,-;a\n6,2,1,-;b\n SUBSYSTEM=x\n6,9,1,-;c\n12,10,1,-;" XID "\n");
	run_until_records(w, 5);
	assert_int_equal(stats(w)->lost, 6);
	assert_int_equal(stats(w)->forged, 1);
	/* The line may come from the kernel of another machine. */
	append(w->path, "6,3,1,-;" XID "\n");
	run_until_records(w, 6);
	assert_int_equal(stats(w)->lost, 6);
	assert_int_equal(taken(w).evidence_len, 1);
}

static void a_line_longer_than_any_record_is_cut_and_does_not_hide_the_next(void **state)
{
	struct world *w = *state;
	char *text = malloc(50000);

	memset(text, 'x', 50000);
	memcpy(text + 49900, "\n" XID "\n", strlen("\n" XID "\n") + 1);
	assert_int_equal(mkfifo(w->path, 0600), 0);
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path, text);
	run_until_records(w, 2);
	assert_int_equal(stats(w)->cut, 1);
	assert_int_equal(taken(w).evidence_len, 1);
	free(text);
}

static void give_driver(struct world *w, const char *address, const char *driver)
{
	char path[256], target[64];

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/driver", w->dir, address);
	for (char *slash = path + strlen(w->dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver);
	assert_int_equal(symlink(target, path), 0);
}

/* The agent had the device earlier in this boot, and the log still has a line about it; now a
 * virtual machine has the device. */
static void a_line_about_a_device_that_another_driver_has_is_dropped(void **state)
{
	struct world *w = *state;
	struct hf_health_presence there = {.kind = HF_HEALTH_GPU, .id = "0000:9b:00.0"};
	char sys[128];

	snprintf(sys, sizeof(sys), "%s/sys", w->dir);
	w->options.sys_root = sys;
	give_driver(w, "0000:1a:00.0", "vfio-pci");
	give_driver(w, "0000:3d:00.0", "nvidia");
	give_driver(w, "0000:9b:00.0", "vfio-pci");
	/* If another probe has named the device, the line counts. */
	hf_intake_device(w->intake, &there);
	assert_int_equal(mkfifo(w->path, 0600), 0);
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path, "NVRM: Xid (PCI:0000:1a:00): 48, x\nNVRM: Xid (PCI:0000:1a:00): 79, x\n"
			"NVRM: Xid (PCI:0000:3d:00): 48, x\nNVRM: Xid (PCI:0000:9b:00): 48, x\n"
			/* A device that fell off the bus has no driver, so its line is not
			 * dropped. */
			"NVRM: Xid (PCI:0000:5e:00): 79, x\n");
	run_until_records(w, 5);
	assert_int_equal(stats(w)->foreign, 2);
	assert_int_equal(stats(w)->evidence, 3);
}

static void a_socket_that_closes_is_off_until_it_is_there_again(void **state)
{
	struct world *w = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), peer;
	const char *why;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", w->path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 4), 0);
	open_probe(w, w->path);
	run_for(w, HF_MS);
	peer = accept(listener, NULL, NULL);
	assert_int_equal(write(peer, XID "\n", strlen(XID "\n")), strlen(XID "\n"));
	run_until_records(w, 1);
	close(peer);
	run_until_off(w);
	(void)state_of(w, &why);
	assert_non_null(strstr(why, "the writer closed it"));
	/* The probe connects again within a second. */
	peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	for (int i = 0; peer < 0 && i < 300; i++) {
		run_for(w, 10 * HF_MS);
		peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	}
	assert_true(peer >= 0);
	run_for(w, HF_MS);
	/* After the peer hung up at once, the detectors are off until a record comes. */
	assert_int_equal(state_of(w, &why), HF_INTAKE_OFF);
	assert_int_equal(write(peer, XID "\n", strlen(XID "\n")), strlen(XID "\n"));
	run_until_records(w, 2);
	assert_int_equal(state_of(w, &why), HF_INTAKE_OK);
	close(peer);
	close(listener);
}

static void a_socket_that_hangs_up_at_once_was_never_heard(void **state)
{
	struct world *w = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), asked = 0;
	uint64_t states;
	const char *why;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", w->path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 4), 0);
	open_probe(w, w->path);
	while (asked == 0 || state_of(w, &why) != HF_INTAKE_OFF) {
		int peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		asked += peer >= 0;
		if (peer >= 0)
			close(peer);
		run_for(w, HF_MS);
	}
	states = hf_intake_states_version(w->intake);
	for (int i = 0; i < 300 && asked < 3; i++) {
		int peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		asked += peer >= 0;
		if (peer >= 0)
			close(peer);
		run_for(w, 10 * HF_MS);
	}
	assert_true(asked >= 2);
	assert_int_equal(hf_intake_states_version(w->intake), states);
	close(listener);
}

static void what_is_not_there_or_is_no_log_is_told_by_name(void **state)
{
	struct world *w = *state;
	const char *why;

	open_probe(w, w->path);
	run_until_off(w);
	(void)state_of(w, &why);
	assert_non_null(strstr(why, w->path));
	assert_non_null(strstr(why, "No such file"));
	close_probe(w);
	open_probe(w, w->dir);
	run_for(w, HF_MS);
	assert_int_equal(state_of(w, &why), HF_INTAKE_OFF);
	assert_non_null(strstr(why, "Invalid argument"));
}

/* ---- plain files ----------------------------------------------------------------------------- */

static void of_a_plain_file_only_what_is_appended_counts(void **state)
{
	struct world *w = *state;

	append(w->path, XID "\n");
	open_probe(w, w->path);
	run_for(w, HF_MS);
	assert_int_equal(stats(w)->records, 0);
	append(w->path, XID "\nand ha");
	run_until_records(w, 1);
	append(w->path, "lf\n");
	run_until_records(w, 2);
	assert_int_equal(taken(w).evidence_len, 1);
}

static void a_plain_file_goes_on_after_a_restart_where_reading_stopped(void **state)
{
	struct world *w = *state;

	append(w->path, "old\n");
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path, "one\nhalf a l");
	run_until_records(w, 1);
	hf_kmsg_probe_place(w->probe, &w->options.place);
	close_probe(w);
	assert_int_equal(w->options.place.file_offset, strlen("old\none\n"));
	append(w->path, "ine\n" XID "\n");
	open_probe(w, w->path);
	run_until_records(w, 2);
	assert_int_equal(taken(w).evidence_len, 1);
}

static void a_truncated_file_is_read_from_its_new_beginning(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 10; i++)
		append(w->path, "a line that is there already\n");
	open_probe(w, w->path);
	run_for(w, HF_MS);
	assert_int_equal(truncate(w->path, 0), 0);
	append(w->path, XID "\n");
	run_until_records(w, 1);
	assert_int_equal(taken(w).evidence_len, 1);
}

static void rotation_loses_neither_the_old_files_end_nor_the_new_files_begin(void **state)
{
	struct world *w = *state;
	char old[160];

	snprintf(old, sizeof(old), "%s.1", w->path);
	append(w->path, "old\n");
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path, "one\n");
	assert_int_equal(rename(w->path, old), 0);
	append(old, "two\nthree without an end");
	append(w->path, XID "\n");
	run_until_records(w, 4);
	assert_int_equal(taken(w).evidence_len, 1);
	append(w->path, "five\n");
	run_until_records(w, 5);
	unlink(old);
}

/* Runs an agent until it has read a line and stored the place in the log. */
static void read_one_and_end(struct world *w)
{
	append(w->path, "old\n");
	open_probe(w, w->path);
	run_for(w, HF_MS);
	append(w->path, "one\n");
	run_until_records(w, 1);
	hf_kmsg_probe_place(w->probe, &w->options.place);
	close_probe(w);
}

static void a_file_that_was_rotated_between_reads_is_read_to_its_end(void **state)
{
	struct world *w = *state;
	char old[160];

	snprintf(old, sizeof(old), "%s.1", w->path);
	read_one_and_end(w);
	append(w->path, XID "\n");
	assert_int_equal(rename(w->path, old), 0);
	append(w->path, "three\n");
	open_probe(w, w->path);
	run_until_records(w, 2);
	assert_int_equal(taken(w).evidence_len, 1);
	assert_int_equal(stats(w)->lost, 0);
	append(w->path, "four\n");
	run_until_records(w, 3);
	unlink(old);
}

/* A file between two rotations is lost, so one record counts as lost. */
static void of_files_between_two_rotations_one_record_is_told_as_lost(void **state)
{
	struct world *w = *state;
	char one[160], two[160];

	snprintf(one, sizeof(one), "%s.1", w->path);
	snprintf(two, sizeof(two), "%s.2", w->path);
	read_one_and_end(w);
	assert_int_equal(rename(w->path, two), 0);
	append(two, "two\n");
	append(w->path, XID "\n");
	assert_int_equal(rename(w->path, one), 0);
	append(w->path, "three\n");
	open_probe(w, w->path);
	run_until_records(w, 2);
	assert_int_equal(stats(w)->lost, 1);
	unlink(one);
	unlink(two);
}

/* If the remembered file is gone, the number of lost records is unknown: one is counted. */
static void what_a_file_may_have_said_that_is_gone_is_told_as_lost(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 3; i++) {
		append(w->path, "a line that is there already\n");
		open_probe(w, w->path);
		run_for(w, HF_MS);
		hf_kmsg_probe_place(w->probe, &w->options.place);
		/* In the three turns, a plain file is seen for the first time, then is another
		 * file, then is the same file but shorter than the place. */
		assert_int_equal(stats(w)->lost, i > 0);
		close_probe(w);
		if (i == 0) {
			char new[160];

			snprintf(new, sizeof(new), "%s.new", w->path);
			append(new, "new\n");
			assert_int_equal(rename(new, w->path), 0);
		} else {
			assert_int_equal(truncate(w->path, 1), 0);
		}
	}
	open_probe(w, w->path);
	run_for(w, HF_MS);
	hf_kmsg_probe_place(w->probe, &w->options.place);
	close_probe(w);
	open_probe(w, w->path);
	run_for(w, HF_MS);
	assert_int_equal(stats(w)->lost, 0);
}

static void a_file_that_is_gone_is_off_and_its_successor_is_news(void **state)
{
	struct world *w = *state;
	const char *why;

	append(w->path, "old\n");
	open_probe(w, w->path);
	run_for(w, HF_MS);
	unlink(w->path);
	run_until_off(w);
	append(w->path, XID "\n");
	run_until_records(w, 1);
	assert_int_equal(state_of(w, &why), HF_INTAKE_OK);
	assert_int_equal(taken(w).evidence_len, 1);
}

static void a_file_that_comes_later_than_the_agent_is_news(void **state)
{
	struct world *w = *state;

	open_probe(w, w->path);
	run_until_off(w);
	append(w->path, XID "\n");
	run_until_records(w, 1);
	assert_int_equal(taken(w).evidence_len, 1);
}

/* ---- how much -------------------------------------------------------------------------------- */

static void a_flood_waits_where_it_is_until_there_is_room(void **state)
{
	struct world *w = *state;
	size_t n = 0, all = 9000;
	struct hf_kmsg_place place;

	append(w->path, "old\n");
	open_probe(w, w->path);
	run_for(w, HF_MS);
	for (size_t i = 0; i < all; i++) {
		char line[160];

		snprintf(line, sizeof(line), "6,%zu,1,-;" XID "\n", i + 1);
		append(w->path, line);
	}
	while (n < all) {
		uint64_t before = stats(w)->records;

		hf_timer_arm(w->poll, 50 * HF_MS);
		w->want_records = before;
		hf_test_loop_run(&w->t);
		/* The place in the log moves with delivered evidence: a record that was read but is
		 * held by the probe is not counted as read. */
		hf_kmsg_probe_place(w->probe, &place);
		n += taken(w).evidence_len;
		assert_int_equal(place.seq, n);
		hf_intake_taken(w->intake);
	}
	assert_int_equal(n, all);
	assert_int_equal(stats(w)->lost, 0);
	assert_int_equal(stats(w)->records, all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_device_is_read_to_its_end_and_old_records_keep_their_time),
		TEST(what_comes_after_the_device_was_read_once_is_of_now),
		TEST(records_that_were_read_before_a_restart_are_not_read_again),
		TEST(records_that_were_overwritten_unread_are_counted),
		TEST(an_overrun_before_the_first_record_is_a_loss_too),
		TEST(what_a_process_wrote_is_dropped_and_counted_unless_it_is_trusted),
		TEST(a_device_that_fails_is_off_and_is_opened_again),
		TEST(the_kernels_own_log_can_be_read_where_it_may_be),
		TEST(a_fifo_gives_lines_whoever_writes_and_leaves),
		TEST(a_record_of_several_lines_is_read_as_dmesg_prints_it),
		TEST(a_stream_of_records_is_counted_through),
		TEST(a_line_longer_than_any_record_is_cut_and_does_not_hide_the_next),
		TEST(a_line_about_a_device_that_another_driver_has_is_dropped),
		TEST(a_socket_that_closes_is_off_until_it_is_there_again),
		TEST(a_socket_that_hangs_up_at_once_was_never_heard),
		TEST(what_is_not_there_or_is_no_log_is_told_by_name),
		TEST(of_a_plain_file_only_what_is_appended_counts),
		TEST(a_plain_file_goes_on_after_a_restart_where_reading_stopped),
		TEST(a_truncated_file_is_read_from_its_new_beginning),
		TEST(a_file_that_was_rotated_between_reads_is_read_to_its_end),
		TEST(of_files_between_two_rotations_one_record_is_told_as_lost),
		TEST(what_a_file_may_have_said_that_is_gone_is_told_as_lost),
		TEST(rotation_loses_neither_the_old_files_end_nor_the_new_files_begin),
		TEST(a_file_that_is_gone_is_off_and_its_successor_is_news),
		TEST(a_file_that_comes_later_than_the_agent_is_news),
		TEST(a_flood_waits_where_it_is_until_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
