/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads kubeconfig files, each once, and looks up entries and fields in the order of the files.
 * Error texts name the file and the place. */
#include "kube/config_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hf_kubeconfig_files_release(struct hf_kubeconfig_files *files)
{
	for (size_t i = 0; i < files->len; i++) {
		free(files->files[i].path);
		hf_yaml_destroy(files->files[i].yaml);
	}
	free(files->names);
	*files = (struct hf_kubeconfig_files){.len = 0};
}

static int read_file(const char *path, struct hf_kubeconfig_file *ret_file, struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_KUBECONFIG_BYTES_MAX);
	HF_AUTO_YAML yaml = NULL;
	int rc = hf_fs_read(path, &text, err);

	if (rc != 0)
		return hf_error_wrap(err, "kubeconfig");
	rc = hf_yaml_parse(text.data, text.len, NULL, &yaml, err);
	explicit_bzero(text.data, text.len);
	if (rc != 0)
		return hf_error_wrap(err, "kubeconfig '%s'", path);
	/* A file without a document is an empty configuration, as in kubectl. */
	if (hf_yaml_len(yaml) > 1)
		return hf_error_set(err, HF_E_INVALID,
				    "kubeconfig '%s' has more than one YAML document", path);
	*ret_file = (struct hf_kubeconfig_file){.path = hf_xstrdup(path)};
	if (hf_yaml_len(yaml) == 1)
		ret_file->root = hf_yaml_doc(yaml, 0);
	ret_file->yaml = hf_steal(&yaml);
	return 0;
}

static int check_file(const struct hf_kubeconfig_file *file, struct hf_error *err)
{
	enum hf_json_type type = hf_json_type(file->root);
	const char *kind = hf_json_path_str(file->root, "kind", NULL);

	if (type != HF_JSON_OBJECT && type != HF_JSON_ABSENT && type != HF_JSON_NULL)
		return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s' must be an object, is a %s",
				    file->path, hf_json_type_name(type));
	if (!hf_str_is_empty(kind) && !hf_streq(kind, "Config"))
		return hf_error_set(err, HF_E_INVALID,
				    "kubeconfig '%s': kind is '%s', not 'Config'", file->path,
				    kind);
	return 0;
}

static int add_file(struct hf_kubeconfig_files *files, const char *path, bool required,
		    struct hf_error *err)
{
	struct hf_kubeconfig_file *file = &files->files[files->len];
	struct hf_error why;
	int rc;

	if (files->len == HF_KUBECONFIG_FILES_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE, "more than %d kubeconfig files",
				    HF_KUBECONFIG_FILES_MAX);
	rc = read_file(path, file, &why);
	if (rc == HF_E_NOT_FOUND && !required)
		return 0;
	if (rc == 0) {
		files->len++;
		rc = check_file(file, &why);
	}
	if (rc != 0 && err != NULL)
		*err = why;
	return rc;
}

int hf_kubeconfig_files_read(const struct hf_kube_load *load, struct hf_kubeconfig_files *ret_files,
			     struct hf_error *err)
{
	struct hf_kubeconfig_files files = {.names = hf_xstrdup(load->paths)};
	int rc = 0;

	if (load->required) {
		rc = add_file(&files, load->paths, true, err);
	} else {
		for (const char *s = load->paths; *s != '\0' && rc == 0;) {
			size_t len = strcspn(s, ":");
			HF_AUTOFREE char *path = hf_xstrndup(s, len);
			if (len > 0)
				rc = add_file(&files, path, false, err);
			s += len + (s[len] == ':');
		}
	}
	if (rc == 0 && files.len == 0)
		rc = hf_error_set(err, HF_E_NOT_FOUND, "no kubeconfig file exists: '%s'",
				  load->paths);
	if (rc != 0) {
		hf_kubeconfig_files_release(&files);
		return rc;
	}
	*ret_files = files;
	return 0;
}

const char *hf_kubeconfig_current_context(const struct hf_kubeconfig_files *files)
{
	for (size_t i = 0; i < files->len; i++) {
		const char *name = hf_json_path_str(files->files[i].root, "current-context", NULL);
		if (!hf_str_is_empty(name))
			return name;
	}
	return NULL;
}

static int find_in_file(const struct hf_kubeconfig_file *file, const char *list, const char *name,
			const struct hf_json **ret_item, struct hf_error *err)
{
	const struct hf_json *items = hf_json_get(file->root, list);
	enum hf_json_type type = hf_json_type(items);

	*ret_item = NULL;
	if (type != HF_JSON_ARRAY && type != HF_JSON_ABSENT && type != HF_JSON_NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "kubeconfig '%s': %s must be a list, is a %s", file->path, list,
				    hf_json_type_name(type));
	for (size_t i = 0; i < hf_json_len(items); i++) {
		const struct hf_json *item = hf_json_item(items, i);
		if (!hf_streq(hf_json_path_str(item, "name", NULL), name))
			continue;
		if (*ret_item != NULL)
			return hf_error_set(err, HF_E_INVALID,
					    "kubeconfig '%s': %s has two entries '%s'", file->path,
					    list, name);
		*ret_item = item;
	}
	return 0;
}

int hf_kubeconfig_find(const struct hf_kubeconfig_files *files, const char *list,
		       const char *member, const char *name, struct hf_kubeconfig_entry *ret_entry,
		       struct hf_error *err)
{
	for (size_t i = 0; i < files->len; i++) {
		const struct hf_kubeconfig_file *file = &files->files[i];
		struct hf_kubeconfig_entry entry = {.file = file->path};
		const struct hf_json *item;
		int rc = find_in_file(file, list, name, &item, err);

		if (rc != 0)
			return rc;
		if (item == NULL)
			continue;
		(void)snprintf(entry.place, sizeof(entry.place), "%s[%.100s]", list, name);
		entry.object = item;
		return hf_kubeconfig_member(&entry, member, ret_entry, err);
	}
	return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s': %s has no entry '%s'",
			    files->names, list, name);
}

int hf_kubeconfig_member(const struct hf_kubeconfig_entry *entry, const char *key,
			 struct hf_kubeconfig_entry *ret_member, struct hf_error *err)
{
	struct hf_kubeconfig_entry member = {.file = entry->file};
	enum hf_json_type type;
	int len;

	len = snprintf(member.place, sizeof(member.place), "%s.%s", entry->place, key);
	hf_assert(len > 0 && (size_t)len < sizeof(member.place));
	member.object = hf_json_get(entry->object, key);
	type = hf_json_type(member.object);
	if (type == HF_JSON_NULL)
		member.object = NULL;
	else if (type != HF_JSON_OBJECT && type != HF_JSON_ABSENT)
		return hf_error_set(err, HF_E_INVALID,
				    "kubeconfig '%s': %s must be an object, is a %s", member.file,
				    member.place, hf_json_type_name(type));
	*ret_member = member;
	return 0;
}

int hf_kubeconfig_refuse(const struct hf_kubeconfig_entry *entry, const char *key, int code,
			 struct hf_error *err, const char *text)
{
	return hf_error_set(err, code, "kubeconfig '%s': %s.%s: %s", entry->file, entry->place, key,
			    text);
}

static int refuse_type(const struct hf_kubeconfig_entry *entry, const char *key, const char *want,
		       const struct hf_json *value, struct hf_error *err)
{
	return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s': %s.%s must be a %s, is a %s",
			    entry->file, entry->place, key, want,
			    hf_json_type_name(hf_json_type(value)));
}

int hf_kubeconfig_str(const struct hf_kubeconfig_entry *entry, const char *key,
		      const char **ret_text, struct hf_error *err)
{
	const struct hf_json *value = hf_json_get(entry->object, key);
	enum hf_json_type type = hf_json_type(value);

	if (type != HF_JSON_ABSENT && type != HF_JSON_NULL && type != HF_JSON_STRING)
		return refuse_type(entry, key, "string", value, err);
	*ret_text = hf_json_str(value, "");
	return 0;
}

int hf_kubeconfig_dup(const struct hf_kubeconfig_entry *entry, const char *key, char **ret_text,
		      struct hf_error *err)
{
	const char *text;
	int rc = hf_kubeconfig_str(entry, key, &text, err);

	if (rc == 0)
		*ret_text = hf_xstrdup(text);
	return rc;
}

int hf_kubeconfig_bool(const struct hf_kubeconfig_entry *entry, const char *key, bool *ret_value,
		       struct hf_error *err)
{
	const struct hf_json *value = hf_json_get(entry->object, key);
	enum hf_json_type type = hf_json_type(value);

	if (type != HF_JSON_ABSENT && type != HF_JSON_NULL && type != HF_JSON_BOOL)
		return refuse_type(entry, key, "boolean", value, err);
	*ret_value = hf_json_true(value, false);
	return 0;
}

char *hf_kubeconfig_path(const struct hf_kubeconfig_entry *entry, const char *file)
{
	const char *slash = strrchr(entry->file, '/');

	if (file[0] == '/' || slash == NULL)
		return hf_xstrdup(file);
	return hf_xasprintf("%.*s/%s", (int)(slash - entry->file), entry->file, file);
}
