/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
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
	/* Runs between a failed call and whoever reads its errno. */
	int kept = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = kept;
}

/* As hf_error_errno, but a name that is not there has a code of its own. */
static int fail(struct hf_error *err, int errnum, const char *what, const char *path)
{
	int code = hf_error_errno(err, errnum, "cannot %s '%s'", what, path);

	if (errnum != ENOENT)
		return code;
	if (err)
		err->code = HF_E_NOT_FOUND;
	return HF_E_NOT_FOUND;
}

static ssize_t read_again(int fd, void *buf, size_t len)
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
		/* At the maximum one byte more tells "exactly full" from "too large". */
		ssize_t n = want ? read_again(fd, hf_strbuf_reserve(sb, want), want)
				 : read_again(fd, &probe, 1);

		if (n == 0)
			return 0;
		if (n > 0 && want) {
			hf_strbuf_grew(sb, (size_t)n);
			continue;
		}
		hf_strbuf_truncate(sb, before);
		if (n < 0)
			return fail(err, errno, "read", name);
		return hf_error_set(err, HF_E_TOO_LARGE, "cannot read '%s': larger than %zu bytes",
				    name, sb->bytes_max - before);
	}
}

int hf_fs_read(const char *path, struct hf_strbuf *sb, struct hf_error *err)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return fail(err, errno, "open", path);
	return hf_fs_read_fd(fd, path, sb, err);
}

int hf_fs_read_regular(const char *path, struct hf_strbuf *sb, struct hf_error *err)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return fail(err, errno, "open", path);
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

/* The folder a path lies in, for fsync. */
static int open_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	HF_AUTOFREE char *folder = NULL;

	if (!slash)
		folder = hf_xstrdup(".");
	else
		folder =
			slash == path ? hf_xstrdup("/") : hf_xstrndup(path, (size_t)(slash - path));
	/* Opened before anything is written: where it cannot be synced nothing should be. */
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Everything up to the rename; -1 and errno. */
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
		return fail(err, errno, "write", path);
	if (write_temporary(fd, bytes, len, mode) < 0 || rename(temporary, path) < 0) {
		errnum = errno;
		(void)unlink(temporary);
		return fail(err, errnum, "write", path);
	}
	/* The new content is in place; a failure here says that it may not last. */
	if (fsync(folder) < 0)
		return fail(err, errno, "write", path);
	return 0;
}

/* Whether path is a file of ours with this content and mode. */
static bool has_already(const char *path, const void *bytes, size_t len, mode_t mode)
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
	return has_already(path, bytes, len, mode)
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
			return fail(err, errno, "make folder", part);
		*p = '/';
	}
	if (mkdir(part, mode) < 0 && errno != EEXIST)
		return fail(err, errno, "make folder", part);
	/* What is there may be a file; a symlink to a folder will do. */
	if (stat(part, &st) < 0)
		return fail(err, errno, "make folder", part);
	if (!S_ISDIR(st.st_mode))
		return fail(err, ENOTDIR, "make folder", part);
	return 0;
}

/*
 * Removing a tree.  The tree may be hostile: what ran in it chose the names, the
 * depth, the modes, and may still be changing it.  So every step is relative to an
 * open folder and follows no symlink, and a folder too deep for one descent is moved
 * up to the root of the tree, to be found by the next round.
 */
#define DEPTH_MAX 32 /* folders, and so descriptors, open at once */
#define MOVE_TRIES_MAX 10000

struct removal {
	int root;          /* the tree's own folder, where what is too deep is moved */
	struct statx mark; /* the file system and mount it lies on */
	const char *path;
	unsigned int moved_count; /* in all */
	bool moved;               /* in this round */
	int first_errnum;
	char first_name[NAME_MAX + 1];
};

static void removal_failed(struct removal *r, int errnum, const char *name)
{
	/* Gone is what we want, whoever did it. */
	if (r->first_errnum || errnum == ENOENT)
		return;
	r->first_errnum = errnum;
	(void)snprintf(r->first_name, sizeof(r->first_name), "%s", name);
}

static int mark_folder(int fd, struct statx *ret_mark)
{
	/* The mount tells a bind mount of the same file system too (Linux 5.8). */
	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_MNT_ID, ret_mark);
}

static bool same_mount(const struct statx *a, const struct statx *b)
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

static int move_up(struct removal *r, int at, const char *name)
{
	for (int i = 0; i < MOVE_TRIES_MAX; i++) {
		char moved[32];

		(void)snprintf(moved, sizeof(moved), ".hf-removed-%u", r->moved_count++);
		if (renameat2(at, name, r->root, moved, RENAME_NOREPLACE) == 0) {
			r->moved = true;
			return 0;
		}
		/* Who filled the tree may have used the name; the next one is tried. */
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static void remove_entry(struct removal *r, int at, const char *name, int depth);

/* Everything in a folder; takes over fd. */
static void remove_entries(struct removal *r, int fd, const char *name, int depth)
{
	const struct dirent *entry;
	DIR *dir = fdopendir(fd);

	if (!dir) {
		removal_failed(r, errno, name);
		(void)close(fd);
		return;
	}
	while ((errno = 0, entry = readdir(dir))) {
		if (!hf_streq(entry->d_name, ".") && !hf_streq(entry->d_name, ".."))
			remove_entry(r, dirfd(dir), entry->d_name, depth);
	}
	if (errno)
		removal_failed(r, errno, name);
	(void)closedir(dir);
}

static void remove_folder(struct removal *r, int at, const char *name, int depth)
{
	struct statx mark;
	int fd;

	if (depth >= DEPTH_MAX) {
		if (move_up(r, at, name) < 0)
			removal_failed(r, errno, name);
		return;
	}
	fd = open_folder(at, name);
	if (fd < 0 || mark_folder(fd, &mark) < 0) {
		removal_failed(r, errno, name);
		hf_fd_cleanup(&fd);
		return;
	}
	if (!same_mount(&mark, &r->mark)) {
		removal_failed(r, EXDEV, name);
		hf_fd_cleanup(&fd);
		return;
	}
	/* A read-only folder of our own is no obstacle (module caches are made so). */
	if ((mark.stx_mode & S_IRWXU) != S_IRWXU)
		(void)fchmod(fd, S_IRWXU);
	remove_entries(r, fd, name, depth + 1);
	/* Not empty: something is still being written, or was reported already. */
	if (unlinkat(at, name, AT_REMOVEDIR) < 0)
		removal_failed(r, errno, name);
}

static void remove_entry(struct removal *r, int at, const char *name, int depth)
{
	/* Try first and ask then: d_type and lstat would be stale by the time of use. */
	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return;
	if (errno == EISDIR)
		remove_folder(r, at, name, depth);
	else
		removal_failed(r, errno, name);
}

/* Rounds, until one has moved nothing up.  Each takes DEPTH_MAX levels off. */
static int empty_root(struct removal *r, struct hf_error *err)
{
	do {
		int fd = open_folder(r->root, ".");

		if (fd < 0)
			return fail(err, errno, "remove", r->path);
		r->moved = false;
		remove_entries(r, fd, r->path, 1);
	} while (r->moved && !r->first_errnum);
	if (!r->first_errnum)
		return 0;
	if (r->first_errnum == EXDEV)
		(void)hf_error_set(err, HF_E_IO, "something is mounted on '%s'", r->first_name);
	else
		(void)fail(err, r->first_errnum, "remove", r->first_name);
	return hf_error_wrap(err, "cannot remove '%s'", r->path);
}

/* The folder itself, and everything in it. */
static int remove_root(const char *path, struct hf_error *err)
{
	HF_AUTO_FD root = open_folder(AT_FDCWD, path);
	struct removal r = {.root = root, .path = path};
	int rc;

	if (root < 0 || mark_folder(root, &r.mark) < 0)
		return errno == ENOENT ? 0 : fail(err, errno, "remove", path);
	if ((r.mark.stx_mode & S_IRWXU) != S_IRWXU)
		(void)fchmod(root, S_IRWXU);
	rc = empty_root(&r, err);
	if (rc == 0 && rmdir(path) < 0 && errno != ENOENT)
		return fail(err, errno, "remove", path);
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
		return fail(err, errno, "remove", path);
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
