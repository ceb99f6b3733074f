/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Mounts a container's volumes over the machine's file system. If a mount point does not exist:
 *   - in "/", "/dev", or a folder that this user may not write to, the folder is covered. A tmpfs
 *     gets the same entries, each bound from the folder below, and the new one. The machine's own
 *     files do not change. The cover is read-only, so that a program's writes there fail visibly;
 *   - elsewhere an empty folder or file is made on the machine itself and stays. Removing it later
 *     could remove the mount of another pod that uses it.
 */
#define COVER_ENTRIES_MAX 4096
#define COVERS_MAX 64
#define OLD_ROOT ".old"

struct covers {
	const char *pod_dir;
	size_t n;
	char *paths[COVERS_MAX];
};

static int fail_at(struct hf_error *err, const char *what, const char *path)
{
	return hf_error_errno(err, errno, "cannot %s '%s'", what, path);
}

int hf_mounts_detach(struct hf_error *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return hf_error_errno(err, errno, "cannot make a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return fail_at(err, "detach", "/");
	return 0;
}

/* --- covering a folder --- */

static int make_symlink(int from, const char *name, int to, struct hf_error *err)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : fail_at(err, "read link", name);
	target[n] = '\0';
	if (symlinkat(target, to, name) < 0)
		return fail_at(err, "copy link", name);
	return 0;
}

static int make_entry(int to, const char *name, bool folder)
{
	HF_AUTO_FD fd = -1;

	if (folder)
		return mkdirat(to, name, 0755);
	fd = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return fd < 0 ? -1 : 0;
}

/* Binds an entry of the covered folder into the cover, under the same name. */
static int bind_entry(int from, const char *name, int to, struct hf_error *err)
{
	char source[64], target[PATH_MAX];
	HF_AUTO_FD fd = -1;
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail_at(err, "look at", name);
	if (S_ISLNK(st.st_mode))
		return make_symlink(from, name, to, err);
	fd = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail_at(err, "open", name);
	if (make_entry(to, name, S_ISDIR(st.st_mode)) < 0)
		return fail_at(err, "make a place for", name);
	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
	(void)snprintf(target, sizeof(target), "/proc/self/fd/%d/%s", to, name);
	if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0)
		return fail_at(err, "bind", name);
	return 0;
}

static int bind_entries(int from, int to, const char *skip, struct hf_error *err)
{
	int copy = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	int n = 0, rc = 0;

	if (!dir) {
		hf_fd_cleanup(&copy);
		return fail_at(err, "read", "a folder that lacks a mount point");
	}
	while (!rc && (entry = readdir(dir))) {
		if (hf_streq(entry->d_name, ".") || hf_streq(entry->d_name, "..") ||
		    (skip && hf_streq(entry->d_name, skip)))
			continue;
		if (++n > COVER_ENTRIES_MAX)
			rc = hf_error_set(err, HF_E_TOO_LARGE, "more than %d entries",
					  COVER_ENTRIES_MAX);
		else
			rc = bind_entry(from, entry->d_name, to, err);
	}
	(void)closedir(dir);
	return rc;
}

static int mount_tmpfs(const char *path, const char *options, struct hf_error *err)
{
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID, options) < 0)
		return fail_at(err, "mount a tmpfs on", path);
	return 0;
}

/* Covers the folder "/". A mount over it would not help, because a process keeps its root. So this
 * builds a new root beside it and then changes the root. */
static int cover_root(const struct covers *covers, struct hf_error *err)
{
	HF_AUTOFREE char *new_root = hf_xasprintf("%s/" HF_SHIM_NEW_ROOT, covers->pod_dir);
	HF_AUTOFREE char *old_root = hf_xasprintf("%s/" OLD_ROOT, new_root);
	HF_AUTO_FD from = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HF_AUTO_FD to = -1;
	int rc;

	rc = mount_tmpfs(new_root, "mode=755", err);
	if (rc)
		return rc;
	to = open(new_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0 || to < 0 || mkdir(old_root, 0700) < 0)
		return fail_at(err, "open", new_root);
	rc = bind_entries(from, to, OLD_ROOT, err);
	if (rc)
		return rc;
	if (syscall(SYS_pivot_root, new_root, old_root) < 0 || chdir("/") < 0)
		return fail_at(err, "change the root to", new_root);
	if (umount2("/" OLD_ROOT, MNT_DETACH) < 0 || rmdir("/" OLD_ROOT) < 0)
		return fail_at(err, "unmount", "the old root");
	return 0;
}

static int cover_folder(const char *path, struct hf_error *err)
{
	HF_AUTO_FD from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HF_AUTO_FD to = -1;
	char options[32];
	struct stat st;
	int rc;

	if (from < 0 || fstat(from, &st) < 0)
		return fail_at(err, "open", path);
	(void)snprintf(options, sizeof(options), "mode=%o", (unsigned)(st.st_mode & 07777));
	rc = mount_tmpfs(path, options, err);
	if (rc)
		return rc;
	to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0)
		return fail_at(err, "open", path);
	return bind_entries(from, to, NULL, err);
}

static int cover_once(struct covers *covers, const char *path, struct hf_error *err)
{
	int rc;

	for (size_t i = 0; i < covers->n; i++)
		if (hf_streq(covers->paths[i], path))
			return 0;
	if (covers->n == COVERS_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "mount points are missing in more than %d folders", COVERS_MAX);
	rc = hf_streq(path, "/") ? cover_root(covers, err) : cover_folder(path, err);
	if (rc)
		return hf_error_wrap(err, "cannot make a mount point in '%s'", path);
	covers->paths[covers->n++] = hf_xstrdup(path);
	return 0;
}

static int seal_covers(struct covers *covers, struct hf_error *err)
{
	for (size_t i = 0; i < covers->n; i++)
		if (mount(NULL, covers->paths[i], NULL,
			  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) < 0)
			return fail_at(err, "make read-only", covers->paths[i]);
	return 0;
}

static void release_covers(struct covers *covers)
{
	for (size_t i = 0; i < covers->n; i++)
		free(covers->paths[i]);
	covers->n = 0;
}

/* --- mount points --- */

static bool is_covered(const struct covers *covers, const char *path)
{
	for (size_t i = 0; i < covers->n; i++)
		if (hf_streq(covers->paths[i], path))
			return true;
	return false;
}

static int make_place(const char *path, bool folder)
{
	HF_AUTO_FD fd = -1;

	if (folder)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? -1 : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	return fd < 0 ? -1 : 0;
}

/* Makes the last part of `path`, a file or a folder, in the existing folder `parent`. */
static int make_in(struct covers *covers, const char *parent, const char *path, bool folder,
		   struct hf_error *err)
{
	bool keep_off = hf_streq(parent, "/") || hf_streq(parent, "/dev");

	if (!keep_off || is_covered(covers, parent)) {
		if (make_place(path, folder) == 0)
			return 0;
		if (errno != EACCES && errno != EPERM && errno != EROFS)
			return fail_at(err, "make mount point", path);
	}
	if (cover_once(covers, parent, err) != 0)
		return err ? err->code : HF_E_IO;
	if (make_place(path, folder) < 0)
		return fail_at(err, "make mount point", path);
	return 0;
}

/* Finds where a mount's target really is: follows symlinks, and makes missing folders. ret_path:
 * the real path. */
static int resolve_target(struct covers *covers, const struct hf_run_mount *m,
			  char ret_path[PATH_MAX], struct hf_error *err)
{
	HF_AUTOFREE char *copy = hf_xstrdup(m->target);
	char *rest = copy, *word;

	memcpy(ret_path, "/", 2);
	while ((word = strsep(&rest, "/"))) {
		char next[PATH_MAX];
		size_t at = strlen(ret_path);
		bool last = !rest || rest[strspn(rest, "/")] == '\0';
		int n;

		if (!word[0] || hf_streq(word, "."))
			continue;
		if (hf_streq(word, ".."))
			return hf_error_set(err, HF_E_INVALID, "mount path '%s' has '..'",
					    m->target);
		n = snprintf(next, sizeof(next), "%s%s%s", ret_path, at > 1 ? "/" : "", word);
		if (n < 0 || (size_t)n >= sizeof(next))
			return hf_error_set(err, HF_E_INVALID, "mount path is too long");
		if (realpath(next, ret_path))
			continue;
		/* realpath has overwritten ret_path. */
		memcpy(ret_path, next, strlen(next) + 1);
		if (errno != ENOENT)
			return fail_at(err, "use mount point", next);
		ret_path[at] = '\0';
		n = make_in(covers, ret_path, next, !last || !m->is_file, err);
		if (n)
			return n;
		memcpy(ret_path, next, strlen(next) + 1);
	}
	return 0;
}

/* --- binds --- */

static int bind_one(struct covers *covers, const struct hf_run_mount *m, int tree,
		    struct hf_error *err)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	char place[PATH_MAX];
	int rc = resolve_target(covers, m, place, err);

	if (rc)
		return rc;
	if (m->read_only && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only,
					  sizeof(read_only)) < 0)
		return fail_at(err, "make read-only", m->target);
	if (move_mount(tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail_at(err, "mount on", m->target);
	return 0;
}

static int by_target(const void *a, const void *b)
{
	const struct hf_run_mount *const *ma = a, *const *mb = b;

	return strcmp((*ma)->target, (*mb)->target);
}

static int make_root_read_only(struct hf_error *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return fail_at(err, "make read-only", "/");
	return 0;
}

/* Opens all sources before any mount: a mount cannot hide another mount's source, and volumes stay
 * writable when the root becomes read-only. */
static int bind_all(const struct hf_mount_plan *plan, struct covers *covers, struct hf_error *err)
{
	const struct hf_run_mount *sorted[HF_RUN_MOUNTS_MAX];
	int trees[HF_RUN_MOUNTS_MAX];
	int rc = 0;

	hf_assert(plan->n_mounts <= HF_RUN_MOUNTS_MAX);
	for (size_t i = 0; i < plan->n_mounts; i++)
		sorted[i] = &plan->mounts[i];
	qsort(sorted, plan->n_mounts, sizeof(sorted[0]), by_target);
	for (size_t i = 0; i < plan->n_mounts; i++) {
		trees[i] = rc ? -1
			      : open_tree(AT_FDCWD, sorted[i]->source,
					  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (!rc && trees[i] < 0)
			rc = fail_at(err, "open", sorted[i]->source);
	}
	if (!rc && plan->read_only_root)
		rc = make_root_read_only(err);
	for (size_t i = 0; !rc && i < plan->n_mounts; i++)
		rc = bind_one(covers, sorted[i], trees[i], err);
	for (size_t i = 0; i < plan->n_mounts; i++)
		hf_fd_cleanup(&trees[i]);
	return rc;
}

int hf_mounts_apply(const struct hf_mount_plan *plan, struct hf_error *err)
{
	struct covers covers = {.pod_dir = plan->pod_dir};
	int rc;

	if (plan->proc &&
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return fail_at(err, "mount", "/proc");
	rc = bind_all(plan, &covers, err);
	if (!rc)
		rc = seal_covers(&covers, err);
	release_covers(&covers);
	return rc;
}
