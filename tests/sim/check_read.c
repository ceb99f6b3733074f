/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Reads documents without the code of the operator that wrote them. */

const char *const sim_role_names[SIM_ROLES] = {"Master", "Worker",    "Chief",
					       "PS",     "Evaluator", "Launcher"};
const char *const sim_budgets[SIM_BUDGETS] = {"application", "infrastructure", "device"};

const char *sim_controller_uid(const struct hf_json *object)
{
	const struct hf_json *list = hf_json_path(object, "metadata", "ownerReferences", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *ref = hf_json_item(list, i);

		if (hf_json_true(hf_json_get(ref, "controller"), false))
			return hf_json_str(hf_json_get(ref, "uid"), "");
	}
	return "";
}

int64_t sim_stamp(const struct hf_json *pod, const char *key)
{
	const char *text = hf_json_path_str(pod, "metadata", "annotations", key, NULL);
	int64_t value = -1;

	if (text != NULL && hf_str_to_i64(text, 0, INT64_MAX, &value, NULL) != 0)
		value = -1;
	return value;
}

/* Returns the seconds of the fence that the operator has passed to the process in its environment;
 * 0: none. */
int64_t sim_fence_seconds(const struct hf_json *pod)
{
	const struct hf_json *containers = hf_json_path(pod, "spec", "containers", NULL);

	for (size_t c = 0; c < hf_json_len(containers); c++) {
		const struct hf_json *env = hf_json_get(hf_json_item(containers, c), "env");

		for (size_t i = 0; i < hf_json_len(env); i++) {
			const struct hf_json *item = hf_json_item(env, i);

			if (hf_streq(hf_json_str(hf_json_get(item, "name"), ""),
				     "HOLDFAST_SELF_FENCE_SECONDS"))
				return strtoll(hf_json_str(hf_json_get(item, "value"), "0"), NULL,
					       10);
		}
	}
	return 0;
}

bool sim_condition_is(const struct hf_json *status, const char *type)
{
	const struct hf_json *list = hf_json_get(status, "conditions");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);

		if (hf_streq(hf_json_str(hf_json_get(c, "type"), ""), type))
			return hf_streq(hf_json_str(hf_json_get(c, "status"), ""), "True");
	}
	return false;
}

const char *sim_terminal_of(const struct hf_json *status)
{
	if (sim_condition_is(status, "Succeeded"))
		return "Succeeded";
	return sim_condition_is(status, "Failed") ? "Failed" : NULL;
}

/* Parses numbers by hand, because the checks read them at each change of a status. With scanf a
 * thirtieth of all time went into this. */
static bool read_number(const char **at, long long *ret_number)
{
	const char *p = *at;
	long long number = 0;

	while (*p >= '0' && *p <= '9')
		number = number * 10 + (*p++ - '0');
	if (p == *at)
		return false;
	*at = p;
	*ret_number = number;
	return true;
}

/* Returns the value of an index in a text such as "17:2,40:1"; 0: the text does not name the
 * index. */
long long sim_sparse_get(const char *text, long long index)
{
	long long i, value;

	for (const char *p = text; read_number(&p, &i) && *p++ == ':' && read_number(&p, &value);) {
		if (i == index)
			return value;
		if (*p++ != ',')
			break;
	}
	return 0;
}

/* Whether "0-9,12" names an index. */
bool sim_ranges_have(const char *text, long long index)
{
	long long from, to;

	for (const char *p = text; read_number(&p, &from);) {
		to = from;
		if (*p == '-') {
			p++;
			(void)read_number(&p, &to);
		}
		if (index >= from && index <= to)
			return true;
		if (*p++ != ',')
			break;
	}
	return false;
}

int64_t sim_ledger_int(const struct hf_json *status, const char *group, const char *key)
{
	const struct hf_json *ledger = hf_json_get(status, "recovery");

	if (group != NULL)
		ledger = hf_json_get(ledger, group);
	return hf_json_i64(hf_json_get(ledger, key), 0);
}

const char *sim_ledger_text(const struct hf_json *status, const char *role, const char *key)
{
	return hf_json_str(hf_json_path(status, "recovery", "replicas", role, key, NULL), "");
}

int64_t sim_all_restarts(const struct hf_json *status)
{
	int64_t sum = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(sim_budgets); i++)
		sum += sim_ledger_int(status, "restarts", sim_budgets[i]);
	return sum;
}
