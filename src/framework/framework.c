/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The list of job kinds, and functions that find a kind by its names. The list is constant.
 */
#include "framework/framework.h"

#include "base/str.h"

const struct hf_framework *const hf_frameworks[] = {
	&hf_framework_tensorflow,
	&hf_framework_pytorch,
	&hf_framework_mpi,
	&hf_framework_xgboost,
	&hf_framework_paddle,
	&hf_framework_jax,
	NULL,
};

const struct hf_framework *hf_framework_by_kind(const char *api_version, const char *kind)
{
	for (size_t i = 0; hf_frameworks[i]; i++) {
		if (hf_streq(hf_frameworks[i]->kind, kind) &&
		    hf_streq(hf_frameworks[i]->api_version, api_version))
			return hf_frameworks[i];
	}
	return NULL;
}

const struct hf_framework *hf_framework_by_name(const char *name)
{
	hf_assert(name);
	for (size_t i = 0; hf_frameworks[i]; i++) {
		if (hf_str_case_eq(hf_frameworks[i]->plural, name) ||
		    hf_str_case_eq(hf_frameworks[i]->singular, name))
			return hf_frameworks[i];
	}
	return NULL;
}
