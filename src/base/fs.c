/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Files and folders with error texts that name the path, atomic writes, safe removal of a tree, and
 * random bytes and digits.
 *
 * Every function here blocks and reports its failure through struct hf_error. After a failure no
 * descriptor stays open and no temporary file is left behind.
 */
#include "base/fs.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_AT_ONCE ((size_t)64 * 1024)

void hf_fd_cleanup(int *fd)
{
	/* This cleanup runs after a failed call and before the caller reads errno, so it keeps
	 * errno. */
	int kept = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = kept;
}

/* As hf_error_errno with the text "cannot <what> '<path>'", but ENOENT gives HF_E_NOT_FOUND. */
static int set_path_error(struct hf_error *err, int errnum, const char *what, const char *path)
{
	int code = hf_error_errno(err, errnum, "cannot %s '%s'", what, path);

	if (errnum != ENOENT)
		return code;
	if (err)
		err->code = HF_E_NOT_FOUND;
	return HF_E_NOT_FOUND;
}

static ssize_t read_retrying(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = read(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return n;
}

int hf_fs_read_fd(int fd, const char *name, struct hf_strbuf *sb, struct hf_error *err)
{
	size_t before = sb->len;

	for (;;) {
		size_t left = sb->bytes_max > sb->len ? sb->bytes_max - sb->len : 0;
		size_t want = left < READ_AT_ONCE ? left : READ_AT_ONCE;
		char probe;
		/* The buffer is full: read one byte more to tell "exactly full" from "too
		 * large". */
		ssize_t n = want ? read_retrying(fd, hf_strbuf_reserve(sb, want), want)
				 : read_retrying(fd, &probe, 1);

		if (n == 0)
			return 0;
		if (n > 0 && want) {
			hf_strbuf_grew(sb, (size_t)n);
			continue;
		}
		hf_strbuf_truncate(sb, before);
		if (n < 0)
			return set_path_error(err, errno, "read", name);
		return hf_error_set(err, HF_E_TOO_LARGE, "cannot read '%s': larger than %zu bytes",
				    name, sb->bytes_max - before);
	}
}

int hf_fs_read(const char *path, struct hf_strbuf *sb, struct hf_error *err)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return set_path_error(err, errno, "open", path);
	return hf_fs_read_fd(fd, path, sb, err);
}

int hf_fs_read_regular(const char *path, struct hf_strbuf *sb, struct hf_error *err)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return set_path_error(err, errno, "open", path);
	if (!S_ISREG(st.st_mode))
		return hf_error_set(err, HF_E_INVALID, "'%s' is no regular file", path);
	return hf_fs_read_fd(fd, path, sb, err);
}

int hf_fs_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Opens the folder that contains path, for the final fsync. */
static int open_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	HF_AUTOFREE char *folder = NULL;

	if (!slash)
		folder = hf_xstrdup(".");
	else
		folder =
			slash == path ? hf_xstrdup("/") : hf_xstrndup(path, (size_t)(slash - path));
	/* The caller opens the folder before it writes the file. If the folder cannot be opened, it
	 * cannot be synced either, and the caller writes nothing. */
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Writes, sets the mode and syncs the temporary file. Returns -1 and sets errno on failure. */
static int write_temporary(int fd, const void *bytes, size_t len, mode_t mode)
{
	if (hf_fs_write_all(fd, bytes, len) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0)
		return -1;
	return 0;
}

int hf_fs_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode,
		       struct hf_error *err)
{
	HF_AUTOFREE char *temporary = hf_xasprintf("%s.XXXXXX", path);
	HF_AUTO_FD folder = open_parent(path);
	HF_AUTO_FD fd = folder < 0 ? -1 : mkostemp(temporary, O_CLOEXEC);
	int errnum;

	if (fd < 0)
		return set_path_error(err, errno, "write", path);
	if (write_temporary(fd, bytes, len, mode) < 0 || rename(temporary, path) < 0) {
		errnum = errno;
		(void)unlink(temporary);
		return set_path_error(err, errnum, "write", path);
	}
	/* The new content is in place, but may not survive a crash: report that as a failure. */
	if (fsync(folder) < 0)
		return set_path_error(err, errno, "write", path);
	return 0;
}

/* True if path is a regular file of this user with exactly this content and mode. */
static bool has_content(const char *path, const void *bytes, size_t len, mode_t mode)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(len + 1);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == mode && st.st_size == (off_t)len &&
	       hf_fs_read_fd(fd, path, &sb, NULL) == 0 && sb.len == len &&
	       memcmp(sb.data, bytes, len) == 0;
}

int hf_fs_write_changed(const char *path, const void *bytes, size_t len, mode_t mode,
			struct hf_error *err)
{
	return has_content(path, bytes, len, mode)
		       ? 0
		       : hf_fs_write_atomic(path, bytes, len, mode, err);
}

int hf_fs_mkdirs(const char *path, mode_t mode, struct hf_error *err)
{
	HF_AUTOFREE char *part = hf_xstrdup(path);
	struct stat st;

	for (char *p = part + 1; *part && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return set_path_error(err, errno, "make folder", part);
		*p = '/';
	}
	if (mkdir(part, mode) < 0 && errno != EEXIST)
		return set_path_error(err, errno, "make folder", part);
	/* mkdir also fails with EEXIST if the path is a file. A symlink to a folder is accepted. */
	if (stat(part, &st) < 0)
		return set_path_error(err, errno, "make folder", part);
	if (!S_ISDIR(st.st_mode))
		return set_path_error(err, ENOTDIR, "make folder", part);
	return 0;
}

/*
 * Removing a tree.
 *
 * The tree may be hostile: the program that ran in it chose the names, the depth and the modes, and
 * may still change them. So every step is relative to an open folder and follows no symlink. A
 * folder deeper than DEPTH_MAX is moved up to the root of the tree, and a later round removes it
 * there.
 */
#define DEPTH_MAX 32 /* folders, and therefore descriptors, open at once */
#define MOVE_TRIES_MAX 10000

struct removal {
	int root;          /* the root folder of the tree; receives folders that are too deep */
	struct statx mark; /* file system and mount of the root folder */
	const char *path;
	unsigned int moved_count; /* folders moved up in all rounds */
	bool moved;               /* a folder was moved up in this round */
	int first_errnum;
	char first_name[NAME_MAX + 1];
};

static void record_failure(struct removal *r, int errnum, const char *name)
{
	/* ENOENT counts as success, because the entry is gone; another process may have removed
	 * it. */
	if (r->first_errnum || errnum == ENOENT)
		return;
	r->first_errnum = errnum;
	(void)snprintf(r->first_name, sizeof(r->first_name), "%s", name);
}

static int mark_folder(int fd, struct statx *ret_mark)
{
	/* The mount id also recognizes a bind mount of the same file system (since Linux 5.8). */
	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_MNT_ID, ret_mark);
}

static bool is_same_mount(const struct statx *a, const struct statx *b)
{
	if (a->stx_dev_major != b->stx_dev_major || a->stx_dev_minor != b->stx_dev_minor)
		return false;
	if (!(a->stx_mask & b->stx_mask & STATX_MNT_ID))
		return true;
	return a->stx_mnt_id == b->stx_mnt_id;
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int move_to_root(struct removal *r, int at, const char *name)
{
	for (int i = 0; i < MOVE_TRIES_MAX; i++) {
		char moved[32];

		(void)snprintf(moved, sizeof(moved), ".hf-removed-%u", r->moved_count++);
		if (renameat2(at, name, r->root, moved, RENAME_NOREPLACE) == 0) {
			r->moved = true;
			return 0;
		}
		/* The tree may contain this name already; try the next number. */
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static void remove_entry(struct removal *r, int at, const char *name, int depth);

/* Removes everything inside a folder; closes fd. */
static void remove_entries(struct removal *r, int fd, const char *name, int depth)
{
	const struct dirent *entry;
	DIR *dir = fdopendir(fd);

	if (!dir) {
		record_failure(r, errno, name);
		(void)close(fd);
		return;
	}
	while ((errno = 0, entry = readdir(dir))) {
		if (!hf_streq(entry->d_name, ".") && !hf_streq(entry->d_name, ".."))
			remove_entry(r, dirfd(dir), entry->d_name, depth);
	}
	if (errno)
		record_failure(r, errno, name);
	(void)closedir(dir);
}

static void remove_folder(struct removal *r, int at, const char *name, int depth)
{
	struct statx mark;
	int fd;

	if (depth >= DEPTH_MAX) {
		if (move_to_root(r, at, name) < 0)
			record_failure(r, errno, name);
		return;
	}
	fd = open_folder(at, name);
	if (fd < 0 || mark_folder(fd, &mark) < 0) {
		record_failure(r, errno, name);
		hf_fd_cleanup(&fd);
		return;
	}
	if (!is_same_mount(&mark, &r->mark)) {
		record_failure(r, EXDEV, name);
		hf_fd_cleanup(&fd);
		return;
	}
	/* Folders of this user may be read-only (Go's module cache is); make them writable. */
	if ((mark.stx_mode & S_IRWXU) != S_IRWXU)
		(void)fchmod(fd, S_IRWXU);
	remove_entries(r, fd, name, depth + 1);
	/* Fails if the folder is not empty: a process still writes into it, or an entry could
	 * not be removed and was recorded above. */
	if (unlinkat(at, name, AT_REMOVEDIR) < 0)
		record_failure(r, errno, name);
}

static void remove_entry(struct removal *r, int at, const char *name, int depth)
{
	/* Try to unlink first and look at the error: a type from d_type or lstat could be stale. */
	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return;
	if (errno == EISDIR)
		remove_folder(r, at, name, depth);
	else
		record_failure(r, errno, name);
}

/* Empties the root folder in rounds. Each round removes up to DEPTH_MAX levels and moves deeper
 * folders up. The last round is one that moves no folder. */
static int empty_root(struct removal *r, struct hf_error *err)
{
	do {
		int fd = open_folder(r->root, ".");

		if (fd < 0)
			return set_path_error(err, errno, "remove", r->path);
		r->moved = false;
		remove_entries(r, fd, r->path, 1);
	} while (r->moved && !r->first_errnum);
	if (!r->first_errnum)
		return 0;
	if (r->first_errnum == EXDEV)
		(void)hf_error_set(err, HF_E_IO, "something is mounted on '%s'", r->first_name);
	else
		(void)set_path_error(err, r->first_errnum, "remove", r->first_name);
	return hf_error_wrap(err, "cannot remove '%s'", r->path);
}

/* Removes the folder and everything in it. */
static int remove_root(const char *path, struct hf_error *err)
{
	HF_AUTO_FD root = open_folder(AT_FDCWD, path);
	struct removal r = {.root = root, .path = path};
	int rc;

	if (root < 0 || mark_folder(root, &r.mark) < 0)
		return errno == ENOENT ? 0 : set_path_error(err, errno, "remove", path);
	if ((r.mark.stx_mode & S_IRWXU) != S_IRWXU)
		(void)fchmod(root, S_IRWXU);
	rc = empty_root(&r, err);
	if (rc == 0 && rmdir(path) < 0 && errno != ENOENT)
		return set_path_error(err, errno, "remove", path);
	return rc;
}

int hf_fs_remove_tree(const char *path, struct hf_error *err)
{
	const char *name = strrchr(path, '/');
	struct hf_error unwanted;

	name = name ? name + 1 : path;
	if (!*name || hf_streq(name, ".") || hf_streq(name, ".."))
		return hf_error_set(err, HF_E_INVALID, "cannot remove '%s': not a plain name",
				    path);
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return set_path_error(err, errno, "remove", path);
	return remove_root(path, err ? err : &unwanted);
}

int hf_random_bytes(void *ret_bytes, size_t len, struct hf_error *err)
{
	unsigned char *p = ret_bytes;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hf_error_errno(err, errno, "cannot draw random bytes");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int hf_random_hex(char *ret_text, size_t digits, struct hf_error *err)
{
	static const char letters[] = "0123456789abcdef";
	int rc = hf_random_bytes(ret_text, digits, err);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < digits; i++)
		ret_text[i] = letters[(unsigned char)ret_text[i] & 15];
	ret_text[digits] = '\0';
	return 0;
}
