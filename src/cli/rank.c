/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Translates the --rank of a command line ("worker-1", or a number) into the name of a replica
 * in the job's spec. */
#include "cli/rank.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX 1024

/* Returns how many replicas of the type the spec asks for. */
static int64_t replicas_of(const struct hf_framework *framework, const struct hf_json *job,
			   int role)
{
	const struct hf_json *spec = hf_json_path(job, "spec", framework->replicas_key,
						  framework->roles[role].name, NULL);

	if (spec == NULL)
		return 0;
	return hf_json_i64(hf_json_get(spec, "replicas"), framework->roles[role].default_replicas);
}

static char *name_of(const struct hf_framework *framework, int role, int64_t index)
{
	HF_AUTOFREE char *type = hf_xstrdup(framework->roles[role].name);

	hf_str_lower(type);
	return hf_xasprintf("%s-%" PRId64, type, index);
}

/* Writes the names of all replicas of the job: "master-0, worker-0 to worker-3". */
static void list_names(const struct hf_framework *framework, const struct hf_json *job,
		       struct hf_strbuf *sb)
{
	for (int role = 0; role < framework->roles_len; role++) {
		int64_t n = replicas_of(framework, job, role);
		HF_AUTOFREE char *first = name_of(framework, role, 0);
		HF_AUTOFREE char *last = name_of(framework, role, n - 1);
		if (n <= 0)
			continue;
		hf_strbuf_addf(sb, "%s%s", sb->len > 0 ? ", " : "", first);
		if (n > 1)
			hf_strbuf_addf(sb, " to %s", last);
	}
}

/* Finds a replica by its number among all replicas, in the order of the kind's replica types. */
static char *find_by_number(const struct hf_framework *framework, const struct hf_json *job,
			    int64_t number)
{
	for (int role = 0; role < framework->roles_len; role++) {
		int64_t n = replicas_of(framework, job, role);
		if (number < n)
			return name_of(framework, role, number);
		number -= n > 0 ? n : 0;
	}
	return NULL;
}

static char *find_by_name(const struct hf_framework *framework, const struct hf_json *job,
			  const char *word)
{
	const char *dash = strrchr(word, '-');
	int64_t index;

	if (dash == NULL || hf_str_to_i64(dash + 1, 0, INT32_MAX, &index, NULL) != 0)
		return NULL;
	for (int role = 0; role < framework->roles_len; role++) {
		HF_AUTOFREE char *name = name_of(framework, role, index);
		if (hf_streq(name, word) && index < replicas_of(framework, job, role))
			return hf_steal(&name);
	}
	return NULL;
}

int hf_cli_rank_name(const struct hf_framework *framework, const struct hf_json *job,
		     const char *word, char **ret_name, struct hf_error *err)
{
	HF_AUTO_STRBUF known = HF_STRBUF_INIT(TEXT_BYTES_MAX);
	int64_t number;
	char *name = hf_str_to_i64(word, 0, INT32_MAX, &number, NULL) == 0
			     ? find_by_number(framework, job, number)
			     : find_by_name(framework, job, word);

	if (name == NULL) {
		list_names(framework, job, &known);
		return hf_error_set(
			err, HF_E_INVALID, "no replica '%s' in %s; it has %s", word,
			hf_str_or(hf_json_path_str(job, "metadata", "name", NULL), "the job"),
			known.len > 0 ? known.data : "none");
	}
	*ret_name = name;
	return 0;
}

const char *hf_cli_rank_of_pod(const char *pod, const char *job)
{
	size_t len = strlen(job);

	return strncmp(pod, job, len) == 0 && pod[len] == '-' ? pod + len + 1 : pod;
}
