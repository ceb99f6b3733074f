/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/*
 * The disk: a SQLite database with a table of objects by key, and the store's version. All objects
 * are read once, at the start; after that the file is only written.
 *
 * WAL with synchronous=FULL: a commit is one append and one fsync, and survives a power cut. The
 * folder is locked by flock on a file of its own. So a second process is refused before it touches
 * the database, and SQLite may lock its file exclusively, which avoids WAL's index in shared
 * memory.
 *
 * Blocks are reserved for the log and the table, so that jobs can still end and be deleted on a
 * disk that another program has filled.
 */
#define SCHEMA_VERSION 1
#define APPLICATION_ID 0x484f4c44 /* "HOLD" */
/* pages of the log after which SQLite makes a checkpoint: about 4 MiB, so that the pause stays
 * short */
#define CHECKPOINT_PAGES 1000
/* size in bytes to which SQLite truncates a longer log after a checkpoint */
#define LOG_BYTES_MAX 16777216
#define TEXT_BYTES_MAX ((size_t)16 << 20)
/* Bytes reserved beyond the used ones, for commits on a full disk: twice the log between
 * checkpoints, and room for the table to grow, without which a checkpoint cannot end. */
#define RESERVE_LOG_BYTES ((int64_t)8 << 20)
#define RESERVE_TABLE_BYTES ((int64_t)1 << 20)
#define RESERVE_SHARE 4   /* reserving takes at most this part (a quarter) of the free bytes */
#define RESERVE_EVERY 256 /* number of commits between two checks of the reserved blocks */

#define TO_STRING(x) #x
#define HF_STRING(x) TO_STRING(x)

struct hf_sqlite {
	sqlite3 *db;
	sqlite3_stmt *put, *del, *version, *begin, *commit, *rollback;
	int lock_fd;
	/* Descriptor of the database file. Close it after db: closing any descriptor of a file
	 * drops all locks that this process has on the file. */
	int table_fd;
	unsigned commits;
	/* errno of the last failed step, kept here because sqlite3_reset overwrites it */
	int errnum;
	char *dir;
	bool fresh; /* the database did not exist before */
};

/* Sets err from SQLite's error. A full disk appears as ENOSPC, as an exceeded quota, or as an
 * exceeded limit on file sizes. */
static int fail_db(struct hf_sqlite *s, struct hf_error *err, const char *what)
{
	int rc = s->db ? sqlite3_extended_errcode(s->db) : SQLITE_NOMEM;
	int errnum = s->errnum;
	bool full = (rc & 0xff) == SQLITE_FULL || errnum == ENOSPC || errnum == EDQUOT ||
		    errnum == EFBIG;

	if (full)
		return hf_error_set(err, HF_E_NO_SPACE, "%s '%s': the disk is full", what, s->dir);
	if ((rc & 0xff) == SQLITE_IOERR && errnum)
		return hf_error_errno(err, errnum, "%s '%s'", what, s->dir);
	if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB)
		return hf_error_set(err, HF_E_IO, "%s '%s': the store is damaged (%s)", what,
				    s->dir, sqlite3_errmsg(s->db));
	return hf_error_set(err, HF_E_IO, "%s '%s': %s", what, s->dir,
			    s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

/* --- the folder and its lock --- */

static int fail_locked(const char *dir, int fd, struct hf_error *err)
{
	char pid[32] = "";
	ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);

	if (n > 0)
		pid[strcspn(pid, "\n")] = '\0';
	return hf_error_set(err, HF_E_CONFLICT, "'%s' is in use by another process%s%s", dir,
			    n > 0 ? ", pid " : "", n > 0 ? pid : "");
}

static int take_lock(struct hf_sqlite *s, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/lock", s->dir);
	HF_AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char pid[32];

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno == EWOULDBLOCK)
			return fail_locked(s->dir, fd, err);
		return hf_error_errno(err, errno, "cannot lock '%s'", path);
	}
	/* Write the pid for the error text of fail_locked (the lock itself is the flock).
	 * Overwrite the file first and truncate it later: on a full disk, another program could
	 * take a freed block. */
	int len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	if (pwrite(fd, pid, (size_t)len, 0) != len || ftruncate(fd, len))
		return hf_error_errno(err, errno, "cannot write '%s'", path);
	s->lock_fd = fd;
	fd = -1;
	return 0;
}

/* --- opening --- */

/* Runs a statement to its end; false on failure, with errno in s->errnum. */
static bool step_done(struct hf_sqlite *s, sqlite3_stmt *stmt)
{
	int rc;

	/* Read errno itself, because sqlite3_system_errno does not report a failed COMMIT. */
	errno = 0;
	do
		rc = sqlite3_step(stmt);
	while (rc == SQLITE_ROW);
	s->errnum = rc == SQLITE_DONE ? 0 : errno;
	sqlite3_reset(stmt);
	return rc == SQLITE_DONE;
}

/* Runs all statements of the text. (sqlite3_exec would lose the errno of a failure.) */
static int run_sql(struct hf_sqlite *s, const char *sql, struct hf_error *err)
{
	int rc = 0;

	while (rc == 0 && *sql) {
		sqlite3_stmt *stmt = NULL;
		bool good = sqlite3_prepare_v2(s->db, sql, -1, &stmt, &sql) == SQLITE_OK &&
			    (!stmt || step_done(s, stmt));
		if (!good)
			rc = fail_db(s, err, "cannot use the store in");
		sqlite3_finalize(stmt);
	}
	return rc;
}

static int64_t pragma_i64(struct hf_sqlite *s, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int64_t value = -1;

	if (sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

static int check_schema(struct hf_sqlite *s, struct hf_error *err)
{
	int64_t version = pragma_i64(s, "PRAGMA user_version");

	if (version < 0)
		return fail_db(s, err, "cannot read the store in");
	if (version > SCHEMA_VERSION)
		return hf_error_set(err, HF_E_UNSUPPORTED,
				    "'%s' was written by a newer Holdfast (format %" PRId64
				    ", this one knows %d)",
				    s->dir, version, SCHEMA_VERSION);
	if (version == SCHEMA_VERSION)
		return 0;
	return run_sql(
		s,
		"BEGIN;"
		"CREATE TABLE objects (resource TEXT NOT NULL, ns TEXT NOT NULL,"
		" name TEXT NOT NULL, written INTEGER NOT NULL, body TEXT NOT NULL,"
		" PRIMARY KEY (resource, ns, name)) STRICT;"
		"CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL)"
		" STRICT;"
		"INSERT INTO meta VALUES ('version', 0);"
		"PRAGMA application_id = " HF_STRING(
			APPLICATION_ID) ";"
					"PRAGMA user_version = " HF_STRING(SCHEMA_VERSION) ";"
											   "COMMIT",
		err);
}

static int prepare_all(struct hf_sqlite *s, struct hf_error *err)
{
	const struct {
		sqlite3_stmt **stmt;
		const char *sql;
	} all[] = {
		{&s->put, "INSERT INTO objects (resource, ns, name, written, body)"
			  " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE"
			  " SET written = ?4, body = ?5"},
		{&s->del, "DELETE FROM objects WHERE resource = ?1 AND ns = ?2 AND name = ?3"},
		{&s->version, "UPDATE meta SET value = ?1 WHERE key = 'version'"},
		{&s->begin, "BEGIN IMMEDIATE"},
		{&s->commit, "COMMIT"},
		{&s->rollback, "ROLLBACK"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(all); i++)
		if (sqlite3_prepare_v3(s->db, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
				       all[i].stmt, NULL) != SQLITE_OK)
			return fail_db(s, err, "cannot use the store in");
	return 0;
}

/* Gives a file mode 0600. SQLite would create the database readable for all, and gives its log the
 * mode of the database. */
static int make_private(const char *path, int *ret_fd, struct hf_error *err)
{
	HF_AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", path);
	if (fchmod(fd, 0600) < 0)
		return hf_error_errno(err, errno, "cannot make '%s' private", path);
	if (ret_fd) {
		*ret_fd = fd;
		fd = -1;
	}
	return 0;
}

/* Reserves blocks for the first bytes of a file, without changing its length. Fails silently on a
 * full file system, or one without fallocate: reserve_blocks tries again later. */
static void reserve_file(int fd, int64_t bytes)
{
	struct statvfs disk;
	struct stat st;
	int64_t have, room;

	if (fd < 0 || fstat(fd, &st) < 0 || fstatvfs(fd, &disk) < 0)
		return;
	have = (int64_t)st.st_blocks * 512;
	room = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize / RESERVE_SHARE;
	if (bytes > have && bytes - have > room)
		bytes = have + room;
	/* Reserve only if at least a page (4,096 bytes) is missing: less is of no use. */
	if (bytes - have >= 4096)
		(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
}

static void reserve_blocks(struct hf_sqlite *s)
{
	HF_AUTOFREE char *log = hf_xasprintf("%s/holdfast.db-wal", s->dir);
	HF_AUTO_FD log_fd = open(log, O_RDWR | O_CLOEXEC);
	struct stat st;

	reserve_file(log_fd, RESERVE_LOG_BYTES);
	if (fstat(s->table_fd, &st) == 0)
		reserve_file(s->table_fd,
			     (st.st_size / RESERVE_TABLE_BYTES + 2) * RESERVE_TABLE_BYTES);
}

static int open_db(struct hf_sqlite *s, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/holdfast.db", s->dir);
	HF_AUTOFREE char *log = hf_xasprintf("%s-wal", path);
	int rc = make_private(path, &s->table_fd, err);

	if (rc == 0 && access(log, F_OK) == 0)
		rc = make_private(log, NULL, err);
	if (rc != 0)
		return rc;

	if (sqlite3_open_v2(path, &s->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
				    SQLITE_OPEN_PRIVATECACHE,
			    NULL) != SQLITE_OK)
		return fail_db(s, err, "cannot open the store in");
	sqlite3_extended_result_codes(s->db, 1);
	rc = run_sql(s,
		     "PRAGMA locking_mode = EXCLUSIVE;"
		     "PRAGMA journal_mode = WAL;"
		     "PRAGMA synchronous = FULL;"
		     "PRAGMA wal_autocheckpoint = " HF_STRING(
			     CHECKPOINT_PAGES) ";"
					       "PRAGMA journal_size_limit = " HF_STRING(
						       LOG_BYTES_MAX) ";"
								      "PRAGMA temp_store = MEMORY",
		     err);
	if (rc == 0)
		rc = check_schema(s, err);
	if (rc == 0)
		rc = prepare_all(s, err);
	return rc;
}

/* --- reading --- */

static const struct hf_resource *resource_of(const char *group_plural)
{
	for (size_t i = 0; i < hf_resource_count(); i++) {
		char buf[HF_API_VERSION_MAX];
		const struct hf_resource *r = hf_resource_at(i)->resource;
		if (hf_streq(hf_resource_group_plural(r, buf), group_plural))
			return r;
	}
	return NULL;
}

static int load_row(struct hf_sqlite *s, sqlite3_stmt *row, struct hf_engine *engine,
		    struct hf_error *err)
{
	const char *group_plural = (const char *)sqlite3_column_text(row, 0);
	const struct hf_resource *resource = resource_of(group_plural);
	const char *text = (const char *)sqlite3_column_text(row, 2);
	const struct hf_json_limits limits = {.bytes_max = TEXT_BYTES_MAX};
	struct hf_doc *doc;

	if (!resource)
		return hf_error_set(
			err, HF_E_UNSUPPORTED,
			"'%s' has objects of '%s', a kind that this version of Holdfast does not know",
			s->dir, group_plural);
	int rc = hf_doc_parse(text, (size_t)sqlite3_column_bytes(row, 2), &limits, &doc, err);
	if (rc)
		return hf_error_wrap(err, "an object of '%s' in '%s' is damaged", group_plural,
				     s->dir);
	rc = hf_engine_load(engine, resource, doc, sqlite3_column_int64(row, 1), err);
	hf_doc_unref(doc);
	return rc;
}

static int load_objects(struct hf_sqlite *s, struct hf_engine *engine, struct hf_error *err)
{
	sqlite3_stmt *row = NULL;
	int rc = 0, step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(s->db,
			       "SELECT resource, written, body FROM objects"
			       " ORDER BY resource, ns, name",
			       -1, &row, NULL) == SQLITE_OK)
		while (rc == 0 && (step = sqlite3_step(row)) == SQLITE_ROW)
			rc = load_row(s, row, engine, err);
	if (rc == 0 && step != SQLITE_DONE)
		rc = fail_db(s, err, "cannot read the store in");
	sqlite3_finalize(row);
	if (rc)
		return rc;
	int64_t version = pragma_i64(s, "SELECT value FROM meta WHERE key = 'version'");
	if (version < 0)
		return fail_db(s, err, "cannot read the store in");
	hf_engine_loaded(engine, (uint64_t)version);
	return 0;
}

/* --- writing --- */

static bool put_object(struct hf_sqlite *s, const struct hf_entry *entry)
{
	char buf[HF_API_VERSION_MAX];

	size_t len;
	/* hf_doc_text keeps the text with the document: HTTP responses use the same text. */
	const char *text = hf_doc_text(entry->doc, &len);

	sqlite3_bind_text(s->put, 1, hf_resource_group_plural(entry->kind->resource, buf), -1,
			  SQLITE_STATIC);
	sqlite3_bind_text(s->put, 2, entry->ns, -1, SQLITE_STATIC);
	sqlite3_bind_text(s->put, 3, entry->name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s->put, 4, entry->written_at);
	sqlite3_bind_text(s->put, 5, text, (int)len, SQLITE_STATIC);
	return step_done(s, s->put);
}

static bool delete_object(struct hf_sqlite *s, const struct hf_change *change)
{
	char buf[HF_API_VERSION_MAX];

	sqlite3_bind_text(s->del, 1, hf_resource_group_plural(change->kind->resource, buf), -1,
			  SQLITE_STATIC);
	sqlite3_bind_text(s->del, 2, hf_doc_namespace(change->last), -1, SQLITE_STATIC);
	sqlite3_bind_text(s->del, 3, hf_doc_name(change->last), -1, SQLITE_STATIC);
	return step_done(s, s->del);
}

/* Writes a change, unless a later change of the transaction affects the same object. */
static bool write_change(struct hf_sqlite *s, const struct hf_change *change)
{
	struct hf_doc *any = change->after ? change->after : change->last;
	struct hf_entry *entry =
		hf_kind_find(change->kind, hf_doc_namespace(any), hf_doc_name(any));

	if (change->after)
		return !entry || entry->doc != change->after || put_object(s, entry);
	return entry || delete_object(s, change);
}

static int try_commit(struct hf_sqlite *s, struct hf_engine *engine, struct hf_error *err)
{
	bool good = step_done(s, s->begin);

	for (size_t i = 0; good && i < engine->pending.len; i++)
		good = write_change(s, &engine->pending.items[i]);
	if (good) {
		sqlite3_bind_int64(s->version, 1, (int64_t)engine->version);
		good = step_done(s, s->version) && step_done(s, s->commit);
	}
	if (good)
		return 0;
	int rc = fail_db(s, err, "cannot write to");
	/* Roll back, unless SQLite has already done so, as after some errors. */
	if (!sqlite3_get_autocommit(s->db))
		step_done(s, s->rollback);
	return rc;
}

int hf_sqlite_commit(struct hf_sqlite *s, struct hf_engine *engine, struct hf_error *err)
{
	int rc = try_commit(s, engine, err);

	/* If the log's reserve was cut short, a checkpoint lets SQLite write from the start of the
	 * log again, into blocks that it already has. */
	if (rc == HF_E_NO_SPACE && sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
							     NULL, NULL) == SQLITE_OK) {
		reserve_blocks(s);
		rc = try_commit(s, engine, err);
	}
	if (rc == 0 && ++s->commits % RESERVE_EVERY == 0)
		reserve_blocks(s);
	return rc;
}

/* --- birth and end --- */

struct hf_sqlite *hf_sqlite_close(struct hf_sqlite *s)
{
	if (!s)
		return NULL;
	sqlite3_stmt *const all[] = {s->put, s->del, s->version, s->begin, s->commit, s->rollback};
	for (size_t i = 0; i < HF_ARRAY_LEN(all); i++)
		sqlite3_finalize(all[i]);
	sqlite3_close(s->db);
	if (s->table_fd >= 0)
		close(s->table_fd);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->dir);
	free(s);
	return NULL;
}

/* Removes the files of a database that could not be created completely. */
static void remove_new(const char *dir)
{
	static const char *const files[] = {"holdfast.db", "holdfast.db-wal", "holdfast.db-shm",
					    "holdfast.db-journal", "lock"};

	for (size_t i = 0; i < HF_ARRAY_LEN(files); i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, files[i]);
		unlink(path);
	}
}

void hf_sqlite_abandon(struct hf_sqlite *s)
{
	if (!s)
		return;
	HF_AUTOFREE char *dir = hf_xstrdup(s->dir);
	bool fresh = s->fresh;
	hf_sqlite_close(s);
	if (fresh)
		remove_new(dir);
}

static bool has_database(const char *dir)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/holdfast.db", dir);

	return access(path, F_OK) == 0;
}

int hf_sqlite_open(const char *data_dir, struct hf_engine *engine, struct hf_sqlite **ret_sqlite,
		   struct hf_error *err)
{
	struct hf_sqlite *s = hf_xcalloc(1, sizeof(*s));
	s->dir = hf_xstrdup(data_dir);
	s->lock_fd = s->table_fd = -1;
	int rc = hf_fs_mkdirs(data_dir, 0700, err);
	if (rc == 0)
		rc = take_lock(s, err);
	if (rc == 0) {
		s->fresh = !has_database(data_dir);
		rc = open_db(s, err);
	}
	if (rc == 0)
		rc = load_objects(s, engine, err);
	if (rc) {
		hf_sqlite_abandon(s);
		return rc;
	}
	reserve_blocks(s);
	*ret_sqlite = s;
	return 0;
}
