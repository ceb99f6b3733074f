/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Makes volumes and mounts. A volume is a folder of the pod ("volumes/NAME") with the content of an
 * emptyDir, ConfigMap, Secret or downwardAPI, or a path of the machine (hostPath, and the folders of
 * claims.c). ConfigMaps and Secrets are written once, when the pod starts; later changes are not
 * followed.
 */
#define DEFAULT_MODE 0644
#define VALUE_BYTES_MAX ((size_t)2 << 20)
#define HOST_PATH_MAX 4096

/* --- names that become paths --- */

/* Checks that a path is relative, not empty and without "..", so that it stays below its folder. */
static int check_relative(const char *path, const char *what, struct hf_error *err)
{
	HF_AUTOFREE char *copy = hf_xstrdup(path);
	char *rest = copy, *word;

	if (!path[0] || path[0] == '/')
		return hf_error_set(err, HF_E_INVALID, "%s '%s' must be a relative path", what,
				    path);
	while ((word = strsep(&rest, "/")))
		if (hf_streq(word, ".."))
			return hf_error_set(err, HF_E_INVALID, "%s '%s' must not contain '..'",
					    what, path);
	return 0;
}

/* --- files of a volume --- */

struct filler {
	const char *folder;
	mode_t mode;
	/* the items of the volume, which select and rename keys; NULL: every key, under its own
	 * name */
	const struct hf_json *items;
	struct hf_arena *arena;
};

static int write_file(const struct filler *f, const char *path, mode_t mode,
		      const struct hf_strbuf *bytes, struct hf_error *err)
{
	const char *whole = hf_arena_printf(f->arena, "%s/%s", f->folder, path);
	char *parent = hf_arena_strdup(f->arena, whole);
	int rc = check_relative(path, "path", err);

	if (rc)
		return rc;
	*strrchr(parent, '/') = '\0';
	rc = hf_fs_mkdirs(parent, 0755, err);
	return rc ? rc : hf_fs_write_atomic(whole, bytes->data, bytes->len, mode, err);
}

static mode_t mode_of(const struct hf_json *item, mode_t fallback)
{
	return (mode_t)hf_json_i64(hf_json_get(item, "mode"), fallback) & 07777;
}

static int fill_key(void *arg, const char *key, const struct hf_strbuf *bytes, struct hf_error *err)
{
	const struct filler *f = arg;

	return write_file(f, key, f->mode, bytes, err);
}

static int fill_items(struct filler *f, struct hf_doc *doc, bool optional, struct hf_error *err)
{
	for (size_t i = 0; i < hf_json_len(f->items); i++) {
		const struct hf_json *item = hf_json_item(f->items, i);
		const char *key = hf_str_or(hf_json_path_str(item, "key", NULL), "");
		HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(VALUE_BYTES_MAX);
		int rc = hf_kubelet_data_get(doc, key, &bytes, err);

		if (rc == HF_E_NOT_FOUND && optional)
			continue;
		if (rc)
			return hf_error_wrap(err, "'%s'", hf_doc_name(doc));
		rc = write_file(f, hf_str_or(hf_json_path_str(item, "path", NULL), ""),
				mode_of(item, f->mode), &bytes, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int fill_from_object(const struct hf_kubelet_env_input *input, const struct hf_json *source,
			    const struct hf_resource *resource, struct filler *f,
			    struct hf_error *err)
{
	const char *name = hf_json_path_str(source, "secretName", NULL);
	bool optional = hf_json_true(hf_json_get(source, "optional"), false);
	struct hf_doc *doc;

	if (!name)
		name = hf_str_or(hf_json_path_str(source, "name", NULL), "");
	doc = hf_kubelet_refs_get(input->refs, resource, name, err);
	if (!doc)
		return err->code == HF_E_NOT_FOUND && optional ? 0 : err->code;
	f->items = hf_json_get(source, "items");
	return f->items ? fill_items(f, doc, optional, err)
			: hf_kubelet_data_each(doc, fill_key, f, err);
}

/* Writes all labels or annotations, as upstream does: lines key="escaped value". */
static void add_map(const struct hf_json *map, struct hf_strbuf *sb)
{
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(map, it, &key, &value));) {
		hf_strbuf_addf(sb, "%s%s=", sb->len ? "\n" : "", key);
		hf_json_write(value, HF_JSON_COMPACT, sb);
	}
}

static int downward_value(const struct hf_kubelet_env_input *input, const struct hf_json *item,
			  struct hf_arena *arena, struct hf_strbuf *sb, struct hf_error *err)
{
	const char *path = hf_json_path_str(item, "fieldRef", "fieldPath", NULL);
	const char *value;

	if (hf_streq(path, "metadata.labels") || hf_streq(path, "metadata.annotations")) {
		add_map(hf_json_path(input->pod, "metadata", path + strlen("metadata."), NULL), sb);
		return 0;
	}
	if (path)
		value = hf_kubelet_env_field(input, path, arena, err);
	else
		value = hf_kubelet_env_resource(input, hf_json_get(item, "resourceFieldRef"), arena,
						err);
	hf_strbuf_addstr(sb, hf_str_or(value, ""));
	return value ? 0 : err->code;
}

static int fill_downward(const struct hf_kubelet_env_input *input, const struct hf_json *source,
			 struct filler *f, struct hf_error *err)
{
	const struct hf_json *items = hf_json_get(source, "items");

	for (size_t i = 0; i < hf_json_len(items); i++) {
		const struct hf_json *item = hf_json_item(items, i);
		HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(VALUE_BYTES_MAX);
		int rc = downward_value(input, item, f->arena, &bytes, err);

		if (!rc)
			rc = write_file(f, hf_str_or(hf_json_path_str(item, "path", NULL), ""),
					mode_of(item, f->mode), &bytes, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int fill_source(const struct hf_kubelet_env_input *input, const struct hf_json *volume,
		       struct filler *f, struct hf_error *err)
{
	const struct hf_json *source;

	f->mode = (mode_t)hf_json_i64(hf_json_get(volume, "defaultMode"), f->mode) & 07777;
	if ((source = hf_json_get(volume, "configMap")))
		return fill_from_object(input, source, &hf_configmaps, f, err);
	if ((source = hf_json_get(volume, "secret")))
		return fill_from_object(input, source, &hf_secrets, f, err);
	if ((source = hf_json_get(volume, "downwardAPI")))
		return fill_downward(input, source, f, err);
	return hf_error_set(err, HF_E_INVALID, "a projected source has no kind");
}

static int fill_volume(const struct hf_kubelet_env_input *input, const struct hf_json *volume,
		       const char *folder, struct hf_arena *arena, struct hf_error *err)
{
	static const char *const kinds[] = {"configMap", "secret", "downwardAPI", "projected"};
	struct filler f = {.folder = folder, .mode = DEFAULT_MODE, .arena = arena};
	const struct hf_json *sources = hf_json_path(volume, "projected", "sources", NULL);

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		f.mode = (mode_t)hf_json_i64(hf_json_path(volume, kinds[i], "defaultMode", NULL),
					     f.mode) &
			 07777;
	if (!hf_json_get(volume, "projected"))
		return fill_source(input, volume, &f, err);
	for (size_t i = 0; i < hf_json_len(sources); i++) {
		int rc = fill_source(input, hf_json_item(sources, i), &f, err);

		if (rc)
			return rc;
	}
	return 0;
}

/* --- kinds of volumes --- */

/* State of hf_kubelet_volumes_make while it makes the volumes of a pod. */
struct maker {
	const struct hf_kubelet_env_input *input;
	const char *pod_dir;
	struct hf_arena *arena;
	bool isolate;
	/* volumes in memory; one more than the pod's volumes, for /dev/shm */
	struct hf_shim_tmpfs *tmpfs;
	size_t n_tmpfs;
};

static void add_tmpfs(struct maker *m, const char *path, int64_t bytes_max)
{
	hf_assert(m->n_tmpfs <= HF_POD_VOLUMES_MAX);
	m->tmpfs[m->n_tmpfs++] = (struct hf_shim_tmpfs){.path = path, .bytes_max = bytes_max};
}

static int make_empty_dir(struct maker *m, const struct hf_json *source, const char *folder,
			  struct hf_error *err)
{
	const char *medium = hf_str_or(hf_json_path_str(source, "medium", NULL), "");
	const char *limit = hf_json_path_str(source, "sizeLimit", NULL);
	int64_t milli = 0;

	if (chmod(folder, 0777) < 0)
		return hf_error_errno(err, errno, "cannot open '%s' to all", folder);
	if (!medium[0])
		return 0; /* sizeLimit is not enforced: a folder has no quota */
	/* Without mount namespaces, a folder on the disk replaces the volume in memory. The folder
	 * is deleted with the pod. */
	if (!m->isolate)
		return 0;
	if (limit && hf_quantity_parse_milli(limit, &milli, err) != 0)
		return err->code;
	add_tmpfs(m, folder, milli / 1000);
	return 0;
}

static int make_missing(const char *path, const char *type, struct hf_error *err)
{
	if (hf_streq(type, "DirectoryOrCreate"))
		return hf_fs_mkdirs(path, 0755, err);
	if (hf_streq(type, "FileOrCreate")) {
		HF_AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);

		if (fd < 0)
			return hf_error_errno(err, errno, "cannot make '%s'", path);
	}
	return 0;
}

/* True if the kubelet makes the path when it is missing. */
static bool is_made(const char *type)
{
	return hf_streq(type, "DirectoryOrCreate") || hf_streq(type, "FileOrCreate");
}

int hf_kubelet_check_host_path(const struct hf_json *source, struct hf_error *err)
{
	static const struct {
		const char *type;
		mode_t format;
	} kinds[] = {
		{"Directory", S_IFDIR},    {"DirectoryOrCreate", S_IFDIR}, {"File", S_IFREG},
		{"FileOrCreate", S_IFREG}, {"Socket", S_IFSOCK},           {"CharDevice", S_IFCHR},
		{"BlockDevice", S_IFBLK},
	};
	const char *path = hf_str_or(hf_json_path_str(source, "path", NULL), "");
	const char *type = hf_str_or(hf_json_path_str(source, "type", NULL), "");
	struct stat st;

	if (path[0] != '/' || strlen(path) >= HOST_PATH_MAX)
		return hf_error_set(err, HF_E_INVALID, "hostPath.path '%s' must be absolute", path);
	if (stat(path, &st) < 0) {
		if (errno != ENOENT)
			return hf_error_errno(err, errno, "hostPath '%s'", path);
		return is_made(type)
			       ? 0
			       : hf_error_set(err, HF_E_NOT_FOUND,
					      "hostPath '%s': No such file or directory", path);
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_streq(type, kinds[i].type) && (st.st_mode & S_IFMT) != kinds[i].format)
			return hf_error_set(err, HF_E_INVALID,
					    "hostPath type check failed: %s is not a %s", path,
					    type);
	return 0;
}

static int prepare_host_path(const struct hf_json *source, struct hf_error *err)
{
	int rc = hf_kubelet_check_host_path(source, err);

	return rc ? rc
		  : make_missing(hf_json_path_str(source, "path", NULL),
				 hf_json_path_str(source, "type", NULL), err);
}

static bool is_filled(const struct hf_json *volume)
{
	return hf_json_get(volume, "configMap") || hf_json_get(volume, "secret") ||
	       hf_json_get(volume, "downwardAPI") || hf_json_get(volume, "projected");
}

void hf_kubelet_volumes_add_refs(const struct hf_json *spec, struct hf_kubelet_refs *refs)
{
	const struct hf_json *volumes = hf_json_get(spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const struct hf_json *volume = hf_json_item(volumes, i);
		const struct hf_json *sources = hf_json_path(volume, "projected", "sources", NULL);

		hf_kubelet_refs_add(refs, &hf_configmaps,
				    hf_json_path_str(volume, "configMap", "name", NULL));
		hf_kubelet_refs_add(refs, &hf_secrets,
				    hf_json_path_str(volume, "secret", "secretName", NULL));
		hf_kubelet_refs_add(
			refs, &hf_persistentvolumeclaims,
			hf_json_path_str(volume, "persistentVolumeClaim", "claimName", NULL));
		for (size_t k = 0; k < hf_json_len(sources); k++) {
			const struct hf_json *source = hf_json_item(sources, k);

			hf_kubelet_refs_add(refs, &hf_configmaps,
					    hf_json_path_str(source, "configMap", "name", NULL));
			hf_kubelet_refs_add(refs, &hf_secrets,
					    hf_json_path_str(source, "secret", "name", NULL));
		}
	}
}

static const char *namespace_of(const struct hf_kubelet_env_input *input)
{
	return hf_str_or(hf_json_path_str(input->pod, "metadata", "namespace", NULL), "default");
}

static int prepare_claim(struct maker *m, const struct hf_json *source, struct hf_error *err)
{
	const char *name = hf_str_or(hf_json_path_str(source, "claimName", NULL), "");
	struct hf_error why;
	bool exists = hf_kubelet_refs_get(m->input->refs, &hf_persistentvolumeclaims, name, &why);

	if (!exists && why.code != HF_E_NOT_FOUND)
		return hf_error_set(err, why.code, "%s", why.text);
	return hf_kubelet_claim_prepare(m->input->kubelet, namespace_of(m->input), name, exists,
					err);
}

static int make_one(struct maker *m, const struct hf_json *volume, struct hf_error *err)
{
	const char *name = hf_str_or(hf_json_path_str(volume, "name", NULL), "");
	const struct hf_json *empty = hf_json_get(volume, "emptyDir");
	const char *folder;
	int rc;

	if (hf_dns1123_label_problem(name))
		return hf_error_set(err, HF_E_INVALID, "volume name '%s' is not a DNS label", name);
	if (hf_json_get(volume, "hostPath"))
		return prepare_host_path(hf_json_get(volume, "hostPath"), err);
	if (hf_json_get(volume, "persistentVolumeClaim"))
		return prepare_claim(m, hf_json_get(volume, "persistentVolumeClaim"), err);
	if (!empty && !is_filled(volume))
		return hf_error_set(err, HF_E_INVALID, "has no source");
	folder = hf_arena_printf(m->arena, "%s/volumes/%s", m->pod_dir, name);
	rc = hf_fs_mkdirs(folder, 0755, err);
	if (rc)
		return rc;
	return empty ? make_empty_dir(m, empty, folder, err)
		     : fill_volume(m->input, volume, folder, m->arena, err);
}

int hf_kubelet_volumes_make(const struct hf_kubelet_env_input *input, const char *pod_dir,
			    struct hf_arena *arena, struct hf_shim_pod *pod, struct hf_error *err)
{
	const struct hf_json *volumes = hf_json_path(input->pod, "spec", "volumes", NULL);
	size_t n = hf_json_len(volumes);
	struct maker m = {
		.input = input,
		.pod_dir = pod_dir,
		.arena = arena,
		.isolate = pod->isolate,
		.tmpfs = HF_ARENA_ARRAY(arena, struct hf_shim_tmpfs, HF_POD_VOLUMES_MAX + 1)};

	hf_assert(n < HF_POD_VOLUMES_MAX); /* check.c refuses more */
	for (size_t i = 0; i < n; i++) {
		const struct hf_json *volume = hf_json_item(volumes, i);

		if (make_one(&m, volume, err) != 0)
			return hf_error_wrap(err, "volume '%s'",
					     hf_str_or(hf_json_path_str(volume, "name", NULL), ""));
	}
	if (pod->isolate && !pod->host_ipc) {
		const char *shm = hf_arena_printf(arena, "%s/shm", pod_dir);

		if (hf_fs_mkdirs(shm, 0755, err) != 0)
			return err->code;
		add_tmpfs(&m, shm, 0);
	}
	pod->tmpfs = m.tmpfs;
	pod->n_tmpfs = m.n_tmpfs;
	return 0;
}

/* --- mounts --- */

static const struct hf_json *find_volume(const struct hf_json *spec, const char *name)
{
	const struct hf_json *volumes = hf_json_get(spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(volumes, i), "name", NULL), name))
			return hf_json_item(volumes, i);
	return NULL;
}

static int apply_sub_path(const char *sub_path, bool filled, struct hf_arena *arena,
			  const char **source, struct hf_error *err)
{
	struct stat st;
	int rc = check_relative(sub_path, "subPath", err);

	if (rc)
		return rc;
	*source = hf_arena_printf(arena, "%s/%s", *source, sub_path);
	/* Creates a missing subPath in a writable volume, as upstream does. */
	if (stat(*source, &st) < 0 && errno == ENOENT && !filled)
		return hf_fs_mkdirs(*source, 0755, err);
	return 0;
}

/* Returns the folder or file of the machine that has the content of the volume. */
static const char *source_of(const struct hf_kubelet_env_input *input, const struct hf_json *volume,
			     const char *pod_dir, struct hf_arena *arena)
{
	const char *path = hf_json_path_str(volume, "hostPath", "path", NULL);
	const char *claim = hf_json_path_str(volume, "persistentVolumeClaim", "claimName", NULL);

	if (path)
		return hf_arena_strdup(arena, path);
	if (claim) {
		HF_AUTOFREE char *folder =
			hf_kubelet_claim_folder(input->kubelet, namespace_of(input), claim);

		return hf_arena_strdup(arena, folder);
	}
	return hf_arena_printf(arena, "%s/volumes/%s", pod_dir,
			       hf_str_or(hf_json_path_str(volume, "name", NULL), ""));
}

static int mount_one(const struct hf_kubelet_env_input *input, const struct hf_json *m,
		     const char *pod_dir, struct hf_arena *arena, struct hf_run_mount *ret_mount,
		     struct hf_error *err)
{
	const char *name = hf_str_or(hf_json_path_str(m, "name", NULL), "");
	const char *target = hf_str_or(hf_json_path_str(m, "mountPath", NULL), "");
	const char *sub_path = hf_str_or(hf_json_path_str(m, "subPath", NULL), "");
	const struct hf_json *volume = find_volume(hf_json_get(input->pod, "spec"), name);
	const char *source;
	bool filled = volume && is_filled(volume);
	struct stat st;
	int rc = 0;

	if (!volume)
		return hf_error_set(err, HF_E_INVALID, "volumeMounts names no volume '%s'", name);
	if (target[0] != '/')
		return hf_error_set(err, HF_E_INVALID, "mountPath '%s' must be absolute", target);
	source = source_of(input, volume, pod_dir, arena);
	if (sub_path[0])
		rc = apply_sub_path(sub_path, filled, arena, &source, err);
	if (rc)
		return rc;
	*ret_mount = (struct hf_run_mount){
		.source = source,
		.target = hf_arena_strdup(arena, target),
		.read_only = filled || hf_json_true(hf_json_get(m, "readOnly"), false) ||
			     hf_json_true(hf_json_path(volume, "persistentVolumeClaim", "readOnly",
						       NULL),
					  false),
		.is_file = stat(source, &st) == 0 && !S_ISDIR(st.st_mode),
	};
	return 0;
}

int hf_kubelet_volumes_mounts(const struct hf_kubelet_env_input *input, const char *pod_dir,
			      struct hf_arena *arena, struct hf_kubelet_mounts *mounts,
			      struct hf_error *err)
{
	const struct hf_json *list = hf_json_get(input->container, "volumeMounts");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		int rc;

		if (mounts->n == HF_RUN_MOUNTS_MAX)
			return hf_error_set(err, HF_E_TOO_LARGE, "more than %d mounts",
					    HF_RUN_MOUNTS_MAX);
		rc = mount_one(input, hf_json_item(list, i), pod_dir, arena,
			       &mounts->items[mounts->n], err);
		if (rc)
			return rc;
		mounts->n++;
	}
	return 0;
}
