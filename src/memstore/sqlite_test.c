/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/random.h"
#include "memstore/memstore_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tests of the store on disk: restarts, kills, full disks, damaged files. */

static void stored_objects_survive_a_restart(void **state)
{
	struct plane p;
	AUTO_OUTCOME before = {0};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, true);
	assert_int_equal(create_job(&p.w, "default", "j", &o), 0);
	assert_int_equal(merge_status(&p.w, AT(&hf_pytorchjobs, "default", "j"), &before,
				      "{'status':{'startTime':'2026-01-01T00:00:00Z'}}"),
			 0);
	assert_int_equal(create_configmap(&p.w, "default", "gone", &o), 0);
	assert_int_equal(erase(&p.w, &hf_configmaps, "default", "gone", &o), 0);
	plane_reopen(&p, NULL);
	assert_int_equal(get(&p.w, &hf_pytorchjobs, "default", "j", &o), 0);
	assert_true(hf_json_equal(hf_doc_json(o.object), hf_doc_json(before.object)));
	assert_int_equal(get(&p.w, &hf_configmaps, "default", "gone", &o), HF_E_NOT_FOUND);
	assert_int_equal(get(&p.w, &hf_namespaces, NULL, "kube-system", &o), 0);
	plane_close(&p);
}

static void versions_go_on_where_they_were(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	AUTO_SEEN resumed = {0};
	AUTO_SEEN old = {0};
	char version[32];

	plane_open(&p, NULL, true);
	assert_int_equal(create_configmap(&p.w, "default", "a", &o), 0);
	/* The deletion is the last change, so no stored object has its version. */
	assert_int_equal(erase(&p.w, &hf_configmaps, "default", "a", &o), 0);
	assert_int_equal(list(&p.w, &hf_configmaps, "default", &o), 0);
	snprintf(version, sizeof(version), "%s", o.version);
	plane_reopen(&p, NULL);
	/* After the restart a watch can resume from the stored version, because it has missed no
	 * change. */
	seen_start(&p.w, &resumed,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .resource_version = version});
	assert_int_equal(create_configmap(&p.w, "default", "b", &o), 0);
	assert_true(strtoull(text_at(&o, "metadata.resourceVersion"), NULL, 10) >
		    strtoull(version, NULL, 10));
	wait_events(&p.w, &resumed, 1);
	assert_string_equal(seen_text(&resumed), "A:b");
	/* From an older version a watch may have missed a change. So it gets 410, and the client
	 * lists again. */
	snprintf(version, sizeof(version), "%llu", strtoull(version, NULL, 10) - 1);
	seen_start(&p.w, &old,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .resource_version = version});
	wait_ended(&p.w, &old);
	assert_int_equal(old.end_code, HF_E_GONE);
	seen_release(&resumed);
	seen_release(&old);
	plane_close(&p);
}

static void a_turn_is_one_transaction(void **state)
{
	struct plane p;
	struct outcome many[100] = {0};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, true);
	for (int i = 0; i < 100; i++) {
		HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
					    "'name':'c%d'}}",
					    i);
		hf_store_request(p.w.store,
				 &(struct hf_request){.verb = HF_VERB_CREATE,
						      .resource = &hf_configmaps,
						      .ns = "default",
						      .body = body},
				 outcome_take, &many[i]);
	}
	assert_true(p.w.turn(&p.w));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(many[i].calls, 1);
		assert_int_equal(many[i].code, 0);
		outcome_release(&many[i]);
	}
	plane_reopen(&p, NULL);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 100);
	plane_close(&p);
}

static void expiry_goes_on_after_a_restart(void **state)
{
	const struct hf_memstore_options options = {.event_ttl = HF_HOUR};
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, &options, true);
	assert_int_equal(
		create(&p.w, &hf_events, "default", &o,
		       "{'apiVersion':'v1','kind':'Event','metadata':{'name':'e'},"
		       "'involvedObject':{'kind':'Pod','name':'p','namespace':'default'}}"),
		0);
	p.w.pass(&p.w, 40 * HF_MINUTE);
	plane_reopen(&p, &options);
	p.w.pass(&p.w, 19 * HF_MINUTE);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_events), 1);
	p.w.pass(&p.w, 2 * HF_MINUTE);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_events), 0);
	plane_reopen(&p, &options);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_events), 0);
	plane_close(&p);
}

/* --- kill -9 --- */

struct written {
	int fd;
	int next; /* number of the next request */
	struct world *w;
};

/* A request of the writer: each number creates one config map, and is also written into a shared
 * counter. */
struct work {
	struct written *all;
	int number;
	bool created;
};

static void on_acknowledged(void *arg, const struct hf_reply *reply)
{
	struct work *work = arg;
	char line[32];
	int len = snprintf(line, sizeof(line), "%c%d\n", work->created ? 'c' : 'n', work->number);

	if (reply->code != 0 || write(work->all->fd, line, (size_t)len) != len)
		_exit(3);
	free(work);
}

static void send_work(struct written *all, bool created, int number)
{
	struct work *work = hf_xcalloc(1, sizeof(*work));
	char name[32];

	*work = (struct work){.all = all, .number = number, .created = created};
	snprintf(name, sizeof(name), "c%d", number);
	HF_AUTO_DOC object = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
				      "'name':'%s'},'data':{'number':'%d'}}",
				      name, number);
	HF_AUTO_DOC patch = json_doc("{'data':{'number':'%d'}}", number);
	const struct hf_request create_it = {.verb = HF_VERB_CREATE,
					     .resource = &hf_configmaps,
					     .ns = "default",
					     .body = object};
	const struct hf_request count_it = {.verb = HF_VERB_PATCH,
					    .resource = &hf_configmaps,
					    .ns = "default",
					    .name = "counter",
					    .body = patch};
	hf_store_request(all->w->store, created ? &create_it : &count_it, on_acknowledged, work);
}

/* Runs the process that the test kills: it writes without end, a few requests per turn. */
HF_NORETURN static void run_writer(struct plane *p, const char *dir, int fd, int first)
{
	struct hf_error err = {0};
	struct written all = {.fd = fd, .next = first, .w = &p->w};

	p->w.loop = hf_loop_create_virtual(PLANE_START);
	p->seed = (uint64_t)first + 1;
	if (plane_try(p, NULL, dir, &err)) {
		fprintf(stderr, "%s\n", err.text);
		_exit(4);
	}
	for (;;) {
		for (int i = 0; i < 5; i++, all.next++) {
			send_work(&all, true, all.next);
			send_work(&all, false, all.next);
		}
		while (p->w.turn(&p->w))
			;
	}
}

/* Reads the acknowledgements of the killed writer: the highest number created and the highest
 * counted. */
struct acks {
	int created, counted;
};

static void read_acks(FILE *in, int lines, struct acks *acks)
{
	char line[32];

	for (int i = 0; i < lines && fgets(line, sizeof(line), in); i++) {
		int number = (int)strtol(line + 1, NULL, 10);
		if (!strchr(line, '\n'))
			/* the kill cut off this line, so the write counts as not acknowledged */
			return;
		*(line[0] == 'c' ? &acks->created : &acks->counted) = number;
	}
}

static void check_survivors(struct plane *p, const struct acks *acks)
{
	AUTO_OUTCOME o = {0};
	char name[32];
	size_t stored = hf_memstore_count(p->memstore, &hf_configmaps);

	for (int i = 0; i <= acks->created; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		if (get(&p->w, &hf_configmaps, "default", name, &o) != 0)
			fail_msg("%s was acknowledged and is lost", name);
		assert_int_equal((int)strtol(text_at(&o, "data.number"), NULL, 10), i);
	}
	/* The names are consecutive, so the store has no object that was never requested. */
	for (size_t i = 0; i + 1 < stored; i++) {
		snprintf(name, sizeof(name), "c%zu", i);
		assert_int_equal(get(&p->w, &hf_configmaps, "default", name, &o), 0);
	}
	assert_int_equal(get(&p->w, &hf_configmaps, "default", "counter", &o), 0);
	assert_true((int)strtol(text_at(&o, "data.number"), NULL, 10) >= acks->counted);
}

static void kill_at_random(struct plane *p, int first, uint64_t *seed, struct acks *acks)
{
	int fds[2];
	pid_t pid;
	int status;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct plane child = {.w = p->w};
		close(fds[0]);
		run_writer(&child, p->dir, fds[1], first);
	}
	close(fds[1]);
	FILE *in = fdopen(fds[0], "r");
	read_acks(in, (int)test_random_below(seed, 400), acks);
	assert_int_equal(kill(pid, SIGKILL), 0);
	read_acks(in, INT32_MAX, acks); /* acknowledgements written before the kill */
	fclose(in);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void nothing_acknowledged_is_lost_by_kill_9(void **state)
{
	struct plane p;
	struct hf_error err = {0};
	AUTO_OUTCOME o = {0};
	uint64_t seed = 20261121;

	plane_open(&p, NULL, true);
	assert_int_equal(create(&p.w, &hf_configmaps, "default", &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
				"'name':'counter'},'data':{'number':'0'}}"),
			 0);
	for (int round = 0; round < 12; round++) {
		struct acks acks = {.created = -1, .counted = -1};
		int first = (int)hf_memstore_count(p.memstore, &hf_configmaps) - 1;
		hf_store_destroy(p.w.other);
		p.memstore = hf_memstore_destroy(p.memstore);
		kill_at_random(&p, first, &seed, &acks);
		assert_ok(plane_try(&p, NULL, p.dir, &err), &err);
		check_survivors(&p, &acks);
	}
	plane_close(&p);
}

/* --- failing writes --- */

static int fill_store(struct plane *p, struct outcome *o, int *ret_made)
{
	char value[4001];
	int code = 0;

	memset(value, 'x', 4000);
	value[4000] = '\0';
	for (*ret_made = 0; *ret_made < 2000 && code == 0; ++*ret_made)
		code = create(&p->w, &hf_configmaps, "default", o,
			      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'f%d'},"
			      "'data':{'k':'%s'}}",
			      *ret_made, value);
	--*ret_made;
	return code;
}

/* Limits the size of files, in place of a full disk: a write then fails in the middle. */
static void set_file_limit(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

struct health {
	int bad, good;
};

static void on_health(void *arg, const struct hf_error *err)
{
	struct health *h = arg;

	h->bad += err && err->code == HF_E_NO_SPACE;
	h->good += !err;
}

static void a_full_disk_is_reported_once_and_again_when_it_ends(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	struct health h = {0};
	int made;

	plane_open(&p, &(struct hf_memstore_options){.health = on_health, .health_arg = &h}, true);
	set_file_limit((rlim_t)1 << 20);
	assert_int_equal(fill_store(&p, &o, &made), HF_E_NO_SPACE);
	set_file_limit((rlim_t)1 << 12);
	assert_int_equal(create_configmap(&p.w, "default", "late", &o), HF_E_NO_SPACE);
	assert_int_equal(h.bad, 1);
	assert_int_equal(h.good, 0);
	set_file_limit(RLIM_INFINITY);
	assert_int_equal(create_pod(&p.w, "default", "p", &o), 0);
	assert_int_equal(create_pod(&p.w, "default", "q", &o), 0);
	assert_int_equal(h.bad, 1);
	assert_int_equal(h.good, 1);
	plane_close(&p);
}

static void database_files_are_private(void **state)
{
	static const char *const names[] = {"holdfast.db", "holdfast.db-wal", "lock"};
	mode_t before = umask(0);
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, true);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(create_configmap(&p.w, "default", round ? "b" : "a", &o), 0);
		for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
			HF_AUTOFREE char *path = hf_xasprintf("%s/%s", p.dir, names[i]);
			struct stat st;

			assert_int_equal(stat(path, &st), 0);
			assert_int_equal(st.st_mode & 0777, 0600);
			/* A database file that other users may read gets mode 0600 at the next
			 * start. */
			assert_int_equal(chmod(path, 0644), 0);
		}
		assert_int_equal(chmod(p.dir, 0700), 0);
		if (round == 0) {
			HF_AUTOFREE char *lock = hf_xasprintf("%s/lock", p.dir);

			assert_int_equal(chmod(lock, 0600), 0);
			plane_reopen(&p, NULL);
		}
	}
	plane_close(&p);
	(void)umask(before);
}

static void a_full_disk_is_one_error_and_nothing_half_done(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	AUTO_SEEN seen = {0};
	struct hf_error err = {0};
	int made;

	plane_open(&p, NULL, true);
	seen_start(&p.w, &seen, &(struct hf_watch_options){.resource = &hf_configmaps});
	set_file_limit((rlim_t)1 << 20);
	assert_int_equal(fill_store(&p, &o, &made), HF_E_NO_SPACE);
	assert_true(made > 10);
	assert_non_null(strstr(o.message, "the disk is full"));
	assert_int_equal(number_at(&o, "code"), 507);
	assert_code(hf_memstore_health(p.memstore, &err), HF_E_NO_SPACE);
	/* Reads still work and see exactly the acknowledged objects. */
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), (size_t)made);
	assert_int_equal(get(&p.w, &hf_configmaps, "default", "f0", &o), 0);
	/* The write that failed is never visible, and no event reports it. */
	settle(&p.w);
	assert_int_equal(seen.n, made);
	/* With room again, writes succeed. */
	set_file_limit(RLIM_INFINITY);
	assert_int_equal(create_pod(&p.w, "default", "p", &o), 0);
	assert_ok(hf_memstore_health(p.memstore, &err), &err);
	assert_int_equal(create_configmap(&p.w, "default", "late", &o), 0);
	wait_events(&p.w, &seen, made + 1);
	assert_string_equal(seen.events[made].name, "late");
	seen_release(&seen);
	plane_reopen(&p, NULL);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), (size_t)made + 1);
	assert_int_equal(hf_memstore_count(p.memstore, &hf_pods), 1);
	plane_close(&p);
}

static void reads_of_a_failed_turn_see_the_committed_state(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	struct outcome wrote = {0}, read = {0};
	int made;

	plane_open(&p, NULL, true);
	assert_int_equal(create_configmap(&p.w, "default", "c", &o), 0);
	set_file_limit((rlim_t)1 << 20);
	assert_int_equal(fill_store(&p, &o, &made), HF_E_NO_SPACE);
	set_file_limit(1024);
	HF_AUTO_DOC patch = json_doc("{'data':{'k':'never'}}");
	const struct hf_request write_it = {.verb = HF_VERB_PATCH,
					    .resource = &hf_configmaps,
					    .ns = "default",
					    .name = "c",
					    .body = patch};
	const struct hf_request read_it = {
		.verb = HF_VERB_GET, .resource = &hf_configmaps, .ns = "default", .name = "c"};
	hf_store_request(p.w.store, &write_it, outcome_take, &wrote);
	hf_store_request(p.w.store, &read_it, outcome_take, &read);
	wait_for(&p.w, &read.calls, 1);
	assert_int_equal(wrote.code, HF_E_NO_SPACE);
	assert_int_equal(read.code, 0);
	assert_string_equal(text_at(&read, "data.k"), "v");
	set_file_limit(RLIM_INFINITY);
	outcome_release(&wrote);
	outcome_release(&read);
	plane_close(&p);
}

/* A watch starts while a change is applied but not committed. */
static void a_new_watch_shows_no_uncommitted_object(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	AUTO_SEEN seen = {0};
	HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'Secret','metadata':{'name':'s'}}");
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_secrets, .ns = "default", .body = body};
	struct hf_error err = {0};
	int made;

	plane_open(&p, NULL, true);
	set_file_limit((rlim_t)1 << 20);
	assert_int_equal(fill_store(&p, &o, &made), HF_E_NO_SPACE);
	set_file_limit(1024);
	assert_int_equal(apply_now(&p, &request), 0);
	seen_start(&p.w, &seen, &(struct hf_watch_options){.resource = &hf_secrets});
	settle(&p.w);
	assert_int_not_equal(hf_memstore_health(p.memstore, &err), 0);
	assert_int_equal(seen.n, 0);
	set_file_limit(RLIM_INFINITY);
	/* The watch gets all later events. */
	assert_int_equal(create(&p.w, &hf_secrets, "default", &o,
				"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'t'}}"),
			 0);
	wait_events(&p.w, &seen, 1);
	assert_string_equal(seen_text(&seen), "A:t");
	seen_release(&seen);
	plane_close(&p);
}

static void a_folder_that_cannot_be_written_is_one_error(void **state)
{
	struct plane p;
	struct hf_error err = {0};
	char path[128];

	plane_open(&p, NULL, true);
	/* A file stands in the place of the folder. Unlike a missing permission, this fails even
	 * for root. */
	snprintf(path, sizeof(path), "%s/file", p.dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	struct plane q = {.w = p.w, .seed = 1};
	assert_int_not_equal(plane_try(&q, NULL, path, &err), 0);
	assert_non_null(strstr(err.text, path));
	/* /proc is a folder in which the store cannot create a file. */
	assert_int_not_equal(plane_try(&q, NULL, "/proc/holdfast", &err), 0);
	assert_non_null(strstr(err.text, "/proc/holdfast"));
	plane_close(&p);
}

static void a_second_process_is_refused(void **state)
{
	struct plane p, q = {.seed = 1};
	struct hf_error err = {0};
	char pid[32];

	plane_open(&p, NULL, true);
	q.w = p.w;
	assert_code(plane_try(&q, NULL, p.dir, &err), HF_E_CONFLICT);
	snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
	assert_non_null(strstr(err.text, p.dir));
	assert_non_null(strstr(err.text, pid));
	plane_close(&p);
}

static void a_store_that_could_not_be_made_leaves_nothing(void **state)
{
	struct plane p = {.seed = 1};
	struct hf_error err = {0};
	char dir[] = "/tmp/holdfast-plane-XXXXXX", path[64];
	struct stat st;
	int rc = -1, failures = 0;

	assert_non_null(mkdtemp(dir));
	p.w.loop = hf_loop_create_virtual(PLANE_START);
	/* The first limit has room for the lock file but not for a page of the database; the last
	 * one has room for everything. */
	for (rlim_t limit = 2000; rc != 0; limit += 3000) {
		set_file_limit(limit);
		rc = plane_try(&p, NULL, dir, &err);
		set_file_limit(RLIM_INFINITY);
		if (rc == 0)
			break;
		assert_int_equal(rc, HF_E_NO_SPACE);
		snprintf(path, sizeof(path), "%s/holdfast.db", dir);
		assert_int_equal(stat(path, &st), -1);
		assert_int_equal(errno, ENOENT);
		assert_int_equal(rmdir(dir), 0); /* empty */
		failures++;
	}
	assert_true(failures > 3);
	plane_close(&p);
	assert_ok(hf_fs_remove_tree(dir, &err), &err);
}

/* --- damaged and foreign files --- */

static void with_db(const char *dir, const char *sql)
{
	char path[96];
	sqlite3 *db = NULL;

	snprintf(path, sizeof(path), "%s/holdfast.db", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void files_that_cannot_be_read_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *sql, *text;
		int code;
	} cases[] = {
		{"PRAGMA user_version = 99", "newer Holdfast", HF_E_UNSUPPORTED},
		{"UPDATE objects SET resource = 'unknowns.example.com'",
		 "this version of Holdfast does not know", HF_E_UNSUPPORTED},
		{"UPDATE objects SET body = '{broken'", "is damaged", HF_E_BAD_REQUEST},
		{"DROP TABLE meta", "", HF_E_IO},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct plane p;
		struct hf_error err = {0};
		plane_open(&p, NULL, true);
		hf_store_destroy(p.w.other);
		p.memstore = hf_memstore_destroy(p.memstore);
		with_db(p.dir, cases[i].sql);
		int rc = plane_try(&p, NULL, p.dir, &err);
		if (rc == 0)
			fail_msg("'%s' was let in", cases[i].sql);
		assert_non_null(strstr(err.text, cases[i].text));
		assert_non_null(strstr(err.text, p.dir));
		plane_close(&p);
	}
}

static void a_file_that_is_no_database_is_refused_and_kept(void **state)
{
	struct plane p;
	struct hf_error err = {0};
	char path[96];
	struct stat st;

	plane_open(&p, NULL, true);
	hf_store_destroy(p.w.other);
	p.memstore = hf_memstore_destroy(p.memstore);
	snprintf(path, sizeof(path), "%s/holdfast.db", p.dir);
	FILE *f = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("this is not a database\n", f);
	fclose(f);
	assert_int_not_equal(plane_try(&p, NULL, p.dir, &err), 0);
	assert_non_null(strstr(err.text, "damaged"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 23000);
	plane_close(&p);
}

/* Creates n objects of 4 kB in one turn and one commit. */
static void write_burst(struct plane *p, int n, int round)
{
	struct outcome *all = hf_xcalloc((size_t)n, sizeof(*all));
	char value[4001];

	memset(value, 'a' + round % 26, 4000);
	value[4000] = '\0';
	for (int i = 0; i < n; i++) {
		HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
					    "'name':'b%d-%d'},'data':{'k':'%s'}}",
					    round, i, value);
		hf_store_request(p->w.store,
				 &(struct hf_request){.verb = HF_VERB_CREATE,
						      .resource = &hf_configmaps,
						      .ns = "default",
						      .body = body},
				 outcome_take, &all[i]);
	}
	settle(&p->w);
	for (int i = 0; i < n; i++) {
		assert_int_equal(all[i].code, 0);
		outcome_release(&all[i]);
	}
	free(all);
}

static void the_log_stays_bounded(void **state)
{
	struct plane p;
	struct stat st;
	char path[96];

	plane_open(&p, NULL, true);
	snprintf(path, sizeof(path), "%s/holdfast.db-wal", p.dir);
	assert_int_equal(stat(path, &st), 0);
	for (int round = 0; round < 60; round++)
		write_burst(&p, 100, round); /* about 24 MB */
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size < 8 << 20);
	/* The database is locked exclusively, so there is no index in shared memory. */
	snprintf(path, sizeof(path), "%s/holdfast.db-shm", p.dir);
	assert_int_equal(stat(path, &st), -1);
	plane_close(&p);
}

/* Writes a file that fills the disk. */
static void fill_disk(const char *dir)
{
	static const char zeros[1 << 16];
	char path[96];
	HF_AUTO_FD fd = -1;

	snprintf(path, sizeof(path), "%s/of-somebody-else", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	for (size_t size = sizeof(zeros); size > 0; size /= 2)
		while (write(fd, zeros, size) > 0)
			;
	assert_int_equal(errno, ENOSPC);
}

static void objects_can_be_deleted_on_a_full_disk(void **state)
{
	char path[96], name[32];
	struct plane p;
	AUTO_OUTCOME o = {0};
	struct stat st;

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		skip();
	plane_open(&p, NULL, true);
	assert_int_equal(mount("none", p.dir, "tmpfs", 0, "size=6m"), 0);
	plane_reopen(&p, NULL);
	snprintf(path, sizeof(path), "%s/holdfast.db-wal", p.dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true((int64_t)st.st_blocks * 512 >= 1 << 20);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(create_configmap(&p.w, "default", name, &o), 0);
	}
	fill_disk(p.dir);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(erase(&p.w, &hf_configmaps, "default", name, &o), 0);
	}
	assert_int_equal(hf_memstore_count(p.memstore, &hf_configmaps), 0);
	/* While the stored data does not grow, commits use the reserved blocks again and again. */
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(create_configmap(&p.w, "default", "again", &o), 0);
		assert_int_equal(erase(&p.w, &hf_configmaps, "default", "again", &o), 0);
	}
	/* Detaches the disk for the later tests. The kernel frees it when its files are closed. */
	assert_int_equal(umount2(p.dir, MNT_DETACH), 0);
	plane_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stored_objects_survive_a_restart),
		cmocka_unit_test(versions_go_on_where_they_were),
		cmocka_unit_test(a_turn_is_one_transaction),
		cmocka_unit_test(expiry_goes_on_after_a_restart),
		cmocka_unit_test(nothing_acknowledged_is_lost_by_kill_9),
		cmocka_unit_test(a_full_disk_is_one_error_and_nothing_half_done),
		cmocka_unit_test(a_full_disk_is_reported_once_and_again_when_it_ends),
		cmocka_unit_test(database_files_are_private),
		cmocka_unit_test(reads_of_a_failed_turn_see_the_committed_state),
		cmocka_unit_test(a_new_watch_shows_no_uncommitted_object),
		cmocka_unit_test(a_folder_that_cannot_be_written_is_one_error),
		cmocka_unit_test(a_second_process_is_refused),
		cmocka_unit_test(a_store_that_could_not_be_made_leaves_nothing),
		cmocka_unit_test(files_that_cannot_be_read_are_refused_with_the_reason),
		cmocka_unit_test(a_file_that_is_no_database_is_refused_and_kept),
		cmocka_unit_test(the_log_stays_bounded),
		cmocka_unit_test(objects_can_be_deleted_on_a_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
