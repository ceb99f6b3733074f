/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The folders in which `holdfast run` keeps the state and the logs of the last runs: writes, lists,
 * finds and removes them. */
#include "app/kept_runs.h"

#include "base/flags.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "kubelet/kubelet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDED "ended"
#define LOCK "lock"
#define INDEX "run.json"
#define RUN_BYTES_MAX ((size_t)256 << 10) /* of run.json */
#define LISTED_MAX 4096                   /* folders that are looked at */
#define BLOCK_BYTES 4096 /* a file of this size has this much room on any file system */

/* ---- one run ------------------------------------------------------------------------------- */

void hf_kept_run_release(struct hf_kept_run *run)
{
	free(run->path);
	free(run->id);
	free(run->name);
	free(run->ns);
	free(run->kind);
	free(run->state);
	free(run->cause);
	free(run->end);
	free(run->notes);
}

/* Overwrites a file in place, which needs no free space if the text fits into its blocks. Fills the
 * rest of the old content with spaces, which JSON ignores. */
static int overwrite_file(const char *path, const struct hf_strbuf *text)
{
	static const char spaces[256] = {[0 ... 255] = ' '};
	HF_AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || hf_fs_write_all(fd, text->data, text->len) != 0)
		return -1;
	for (off_t at = (off_t)text->len; at < st.st_size;) {
		off_t left = st.st_size - at;
		size_t n = left < (off_t)sizeof(spaces) ? (size_t)left : sizeof(spaces);

		if (hf_fs_write_all(fd, spaces, n) != 0)
			return -1;
		at += (off_t)n;
	}
	return 0;
}

int hf_kept_run_write(const char *folder, const char *file, const struct hf_strbuf *text,
		      struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", folder, file);
	HF_AUTOFREE char *temporary = hf_xasprintf("%s.new", path);
	HF_AUTO_FD fd =
		open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot create '%s'", temporary);
	if (hf_fs_write_all(fd, text->data, text->len) != 0 || rename(temporary, path) != 0) {
		int rc = hf_error_errno(err, errno, "cannot write '%s'", path);

		(void)unlink(temporary);
		return rc;
	}
	return 0;
}

int hf_kept_run_read(const char *folder, const char *file, size_t bytes_max,
		     struct hf_json **ret_json, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", folder, file);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(bytes_max);
	const struct hf_json_limits limits = {.bytes_max = bytes_max};
	int rc = hf_fs_read_regular(path, &text, err);

	return rc == 0 ? hf_json_parse(text.data, text.len, &limits, ret_json, err) : rc;
}

static void set_time(struct hf_json *object, const char *key, hf_time time)
{
	char text[HF_TIME_TEXT_MAX];

	if (time == HF_TIME_NONE)
		return;
	hf_time_format_micro(time, text);
	hf_json_set_str(object, key, text);
}

static hf_time get_time(const struct hf_json *object, const char *key)
{
	const char *text = hf_json_path_str(object, key, NULL);
	hf_time time;

	if (text == NULL || hf_time_parse(text, &time, NULL) != 0)
		return HF_TIME_NONE;
	return time;
}

int hf_kept_run_save(const struct hf_kept_run *run, struct hf_error *err)
{
	HF_AUTO_JSON object = hf_json_object();
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(RUN_BYTES_MAX);
	int rc;

	hf_json_set_str(object, "name", run->name);
	hf_json_set_str(object, "namespace", run->ns);
	hf_json_set_str(object, "kind", run->kind);
	hf_json_set_str(object, "state", run->state);
	hf_json_set_str(object, "cause", hf_str_or(run->cause, ""));
	if (!hf_str_is_empty(run->end))
		hf_json_set_str(object, "end", run->end);
	if (!hf_str_is_empty(run->notes))
		hf_json_set_str(object, "notes", run->notes);
	set_time(object, "startedAt", run->started);
	set_time(object, "endedAt", run->ended);
	hf_json_set_i64(object, "restarts", run->restarts);
	hf_json_set_i64(object, "exitCode", run->exit_code);
	hf_json_write(object, HF_JSON_INDENTED, &text);
	rc = hf_kept_run_write(run->path, INDEX, &text, err);
	if (rc == HF_E_NO_SPACE) {
		/* The disk is full. The file has a block already, and `runs` needs to know how the
		 * run ended. */
		HF_AUTOFREE char *path = hf_xasprintf("%s/" INDEX, run->path);

		if (text.len <= BLOCK_BYTES && overwrite_file(path, &text) == 0)
			return 0;
	}
	return rc;
}

pid_t hf_kept_run_owner(const char *path)
{
	const char *dash = strrchr(path, '-');
	int64_t pid;

	if (dash == NULL || hf_str_to_i64(dash + 1, 1, INT32_MAX, &pid, NULL) != 0)
		return 0;
	return (pid_t)pid;
}

static char *text_of(const struct hf_json *object, const char *key)
{
	return hf_xstrdup(hf_str_or(hf_json_path_str(object, key, NULL), ""));
}

static hf_time settled_at(const char *path)
{
	HF_AUTOFREE char *mark = hf_xasprintf("%s/" ENDED, path);
	struct stat st;

	return stat(mark, &st) == 0 ? (hf_time)st.st_mtim.tv_sec * HF_SECOND + st.st_mtim.tv_nsec
				    : HF_TIME_NONE;
}

static void set_killed(struct hf_kept_run *run)
{
	free(run->state);
	run->state = hf_xstrdup("Killed");
	free(run->end);
	run->end = hf_xstrdup("ended when the process of 'holdfast run' was killed");
	if (!hf_str_is_empty(run->cause))
		return;
	free(run->cause);
	run->cause = hf_xstrdup(
		"the process of 'holdfast run' was killed; its ranks ended soon after it");
}

/* Reads run.json of a folder. False: the file cannot be read, or `run` did not write it. */
static bool read_run(const char *dir, const char *id, struct hf_kept_run *ret_run)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, id);
	HF_AUTO_JSON object = NULL;
	struct hf_error err;

	if (hf_kept_run_owner(id) == 0 ||
	    hf_kept_run_read(path, INDEX, RUN_BYTES_MAX, &object, &err) != 0 ||
	    get_time(object, "startedAt") == HF_TIME_NONE)
		return false;
	*ret_run = (struct hf_kept_run){
		.path = hf_steal(&path),
		.id = hf_xstrdup(id),
		.name = text_of(object, "name"),
		.ns = text_of(object, "namespace"),
		.kind = text_of(object, "kind"),
		.state = text_of(object, "state"),
		.cause = text_of(object, "cause"),
		.end = text_of(object, "end"),
		.notes = text_of(object, "notes"),
		.started = get_time(object, "startedAt"),
		.ended = get_time(object, "endedAt"),
		.restarts = hf_json_i64(hf_json_get(object, "restarts"), 0),
		.exit_code = (int)hf_json_i64(hf_json_get(object, "exitCode"), 0),
	};
	ret_run->alive = hf_kept_run_is_alive(ret_run->path);
	ret_run->settled = settled_at(ret_run->path);
	if (ret_run->ended == HF_TIME_NONE && !ret_run->alive)
		set_killed(ret_run);
	return true;
}

/* ---- objects ------------------------------------------------------------------------------- */

int hf_kept_run_save_objects(const char *path, const char *file, struct hf_doc *const *objects,
			     size_t n, struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_KEPT_OBJECTS_BYTES_MAX);

	hf_strbuf_addch(&text, '[');
	for (size_t i = 0; i < n; i++) {
		hf_strbuf_addstr(&text, i > 0 ? ",\n" : "\n");
		hf_json_write(hf_doc_json(objects[i]), HF_JSON_COMPACT, &text);
	}
	hf_strbuf_addstr(&text, "\n]\n");
	if (text.full)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "the objects of the run are larger than %zu MiB",
				    HF_KEPT_OBJECTS_BYTES_MAX >> 20);
	return hf_kept_run_write(path, file, &text, err);
}

struct hf_json *hf_kept_run_objects(const char *path, const char *file, struct hf_error *err)
{
	struct hf_json *list = NULL;

	return hf_kept_run_read(path, file, HF_KEPT_OBJECTS_BYTES_MAX, &list, err) == 0 ? list
											: NULL;
}

char *hf_kept_run_logs_dir(const char *path, const char *uid)
{
	HF_AUTOFREE char *kept = hf_xasprintf("%s/logs/%s", path, uid);

	if (access(kept, F_OK) == 0)
		return hf_steal(&kept);
	return hf_xasprintf("%s/node/pods/%s/logs", path, uid);
}

/* ---- the end of a run ---------------------------------------------------------------------- */

bool hf_kept_run_is_settled(const char *path)
{
	return settled_at(path) != HF_TIME_NONE;
}

int hf_kept_run_lock(const char *path, int *ret_fd, struct hf_error *err)
{
	HF_AUTOFREE char *file = hf_xasprintf("%s/" LOCK, path);
	HF_AUTO_FD fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot create '%s'", file);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return hf_error_errno(err, errno, "cannot lock '%s'", file);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

bool hf_kept_run_is_alive(const char *path)
{
	HF_AUTOFREE char *file = hf_xasprintf("%s/" LOCK, path);
	HF_AUTO_FD fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	pid_t owner = hf_kept_run_owner(path);

	if (hf_kept_run_is_settled(path))
		return false;
	if (fd >= 0)
		return flock(fd, LOCK_SH | LOCK_NB) != 0;
	/* The folder has no lock file: `run` has not made the file yet, or the file was removed.
	 * Then the process ID in the folder's name decides. */
	return owner > 0 && (kill(owner, 0) == 0 || errno != ESRCH);
}

int hf_kept_run_settle(const char *path, struct hf_error *err)
{
	static const char *const leftovers[] = {"node", "errors", "agent.sock", "exec.sock",
						"lock"};
	HF_AUTOFREE char *node = hf_xasprintf("%s/node", path);
	HF_AUTOFREE char *logs = hf_xasprintf("%s/logs", path);
	HF_AUTOFREE char *mark = hf_xasprintf("%s/" ENDED, path);
	int rc = hf_kubelet_keep_all_logs(node, logs, err);

	for (size_t i = 0; rc == 0 && i < HF_ARRAY_LEN(leftovers); i++) {
		HF_AUTOFREE char *name = hf_xasprintf("%s/%s", path, leftovers[i]);

		rc = hf_fs_remove_tree(name, err);
	}
	return rc == 0 ? hf_fs_write_atomic(mark, "", 0, 0600, err) : rc;
}

/* ---- all runs ------------------------------------------------------------------------------ */

static int compare_runs(const void *a, const void *b)
{
	const struct hf_kept_run *x = a, *y = b;

	if (x->started != y->started)
		return x->started < y->started ? 1 : -1;
	return strcmp(x->id, y->id);
}

void hf_kept_runs_list(const char *base, struct hf_kept_runs *ret_runs)
{
	HF_AUTOFREE char *dir = hf_xasprintf("%s/runs", base);
	DIR *entries = opendir(dir);
	struct dirent *entry;

	*ret_runs = (struct hf_kept_runs){.n = 0};
	if (entries == NULL)
		return;
	ret_runs->items = hf_xcalloc(LISTED_MAX, sizeof(*ret_runs->items));
	while (ret_runs->n < LISTED_MAX && (entry = readdir(entries)) != NULL)
		if (entry->d_name[0] != '.' &&
		    read_run(dir, entry->d_name, &ret_runs->items[ret_runs->n]))
			ret_runs->n++;
	(void)closedir(entries);
	qsort(ret_runs->items, ret_runs->n, sizeof(*ret_runs->items), compare_runs);
}

void hf_kept_runs_release(struct hf_kept_runs *runs)
{
	for (size_t i = 0; i < runs->n; i++)
		hf_kept_run_release(&runs->items[i]);
	free(runs->items);
	*runs = (struct hf_kept_runs){.n = 0};
}

/* Returns the number N of the name "@N"; 0: the word has another form. */
static int64_t number_of(const char *word)
{
	int64_t n;

	if (word[0] != '@' || hf_str_to_i64(word + 1, 1, LISTED_MAX, &n, NULL) != 0)
		return 0;
	return n;
}

int hf_kept_runs_missing(const struct hf_kept_runs *runs, const char *word, struct hf_error *err)
{
	struct hf_nearest search = {.text = word, .len = strlen(word)};

	for (size_t i = 0; i < runs->n; i++)
		hf_nearest_offer(&search, runs->items[i].name);
	if (runs->n == 0)
		return hf_error_set(
			err, HF_E_NOT_FOUND,
			"no kept run '%s': 'holdfast run' keeps its last %d runs, and none "
			"has ended here yet",
			word, HF_KEPT_RUNS_MAX);
	if (hf_kept_runs_is_number(word) && runs->n == 1)
		return hf_error_set(err, HF_E_NOT_FOUND, "no kept run '%s': one run is kept, @1",
				    word);
	if (hf_kept_runs_is_number(word))
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "no kept run '%s': %zu runs are kept, @1 to @%zu", word,
				    runs->n, runs->n);
	if (search.nearest != NULL)
		return hf_error_set(err, HF_E_NOT_FOUND, "no kept run '%s': did you mean '%s'?",
				    word, search.nearest);
	return hf_error_set(err, HF_E_NOT_FOUND, "no kept run '%s'; 'holdfast runs' lists %zu",
			    word, runs->n);
}

bool hf_kept_runs_is_number(const char *word)
{
	return number_of(word) > 0;
}

static bool is_kind(const struct hf_kept_run *run, const char *word, size_t len)
{
	HF_AUTOFREE char *name = hf_xstrndup(word, len);
	const struct hf_framework *framework = hf_framework_by_name(name);

	return framework != NULL && hf_streq(framework->kind, run->kind);
}

static bool is_named(const struct hf_kept_run *run, const char *word)
{
	const char *slash = strchr(word, '/');

	if (slash == NULL)
		return hf_streq(run->name, word) || hf_streq(run->id, word);
	return hf_streq(run->name, slash + 1) && is_kind(run, word, (size_t)(slash - word));
}

const struct hf_kept_run *hf_kept_runs_find(const struct hf_kept_runs *runs, const char *word)
{
	int64_t n = hf_streq(word, "@latest") ? 1 : number_of(word);

	if (n > 0)
		return (size_t)n <= runs->n ? &runs->items[n - 1] : NULL;
	for (size_t i = 0; i < runs->n; i++)
		if (is_named(&runs->items[i], word))
			return &runs->items[i];
	return NULL;
}

/* ---- limits -------------------------------------------------------------------------------- */

/* The callback of nftw has no argument, so the sum is static. Only one thread prunes. */
static int64_t counted_bytes;

static int count_file(const char *path HF_UNUSED, const struct stat *st, int type HF_UNUSED,
		      struct FTW *ftw HF_UNUSED)
{
	counted_bytes += (int64_t)st->st_blocks * 512;
	return 0;
}

static int64_t bytes_of(const char *path)
{
	counted_bytes = 0;
	(void)nftw(path, count_file, 16, FTW_PHYS | FTW_MOUNT);
	return counted_bytes;
}

void hf_kept_run_remove(const char *path)
{
	const char *slash = strrchr(path, '/');
	HF_AUTOFREE char *moved =
		hf_xasprintf("%.*s/" HF_KEPT_REMOVED "%s", (int)(slash - path), path, slash + 1);
	struct hf_error err;

	if (rename(path, moved) == 0)
		(void)!hf_fs_remove_tree(moved, &err);
}

static int compare_settled(const void *a, const void *b)
{
	const struct hf_kept_run *x = a, *y = b;

	if (x->settled != y->settled)
		return x->settled < y->settled ? 1 : -1;
	return compare_runs(a, b);
}

void hf_kept_runs_prune(const char *base, size_t runs_max, int64_t bytes_max)
{
	HF_AUTO_KEPT_RUNS runs;
	size_t kept = 0;
	int64_t bytes = 0;

	hf_kept_runs_list(base, &runs);
	/* By the time of the end: many short runs must not push out a long run that began before
	 * them and has just failed. */
	if (runs.n > 0)
		qsort(runs.items, runs.n, sizeof(*runs.items), compare_settled);
	for (size_t i = 0; i < runs.n; i++) {
		const struct hf_kept_run *run = &runs.items[i];

		if (run->settled == HF_TIME_NONE)
			continue;
		kept++;
		bytes += bytes_of(run->path);
		/* Keep the last run, even if it alone exceeds the limit. */
		if (kept > runs_max || (kept > 1 && bytes > bytes_max))
			hf_kept_run_remove(run->path);
	}
}
