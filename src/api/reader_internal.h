/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_READER_INTERNAL_H
#define HF_API_READER_INTERNAL_H

#include "core/field.h"
#include "core/job.h"
#include "json/json.h"

/*
 * Walking a document with the path in hand: every getter answers "absent" for a
 * missing or null member, and for one of a wrong type after reporting it.
 */
#define HF_READER_PATH_MAX 512 /* deeper paths are cut: they name user-chosen map keys */

struct hf_reader {
	struct hf_arena *arena;
	struct hf_field_errors *errors; /* NULL: nobody asks */
	bool copy; /* texts are copied to the arena: the tree does not outlive the reading */
	char path[HF_READER_PATH_MAX];
	size_t path_len;
};

/* size_t mark = hf_reader_enter(r, ".spec"); …; hf_reader_leave(r, mark); */
size_t hf_reader_enter(struct hf_reader *r, const char *fmt, ...) HF_PRINTF(2, 3);
void hf_reader_leave(struct hf_reader *r, size_t mark);
/* The path, without its leading dot. */
const char *hf_reader_path(const struct hf_reader *r);

/* A member of that type, or NULL.  Does not enter. */
const struct hf_json *hf_reader_get(struct hf_reader *r, const struct hf_json *object,
				    const char *key, enum hf_json_type type);
const char *hf_reader_str(struct hf_reader *r, const struct hf_json *object, const char *key);
struct hf_opt_int hf_reader_int(struct hf_reader *r, const struct hf_json *object, const char *key,
				int64_t min, int64_t max);
struct hf_opt_int hf_reader_i32(struct hf_reader *r, const struct hf_json *object, const char *key);
struct hf_opt_bool hf_reader_bool(struct hf_reader *r, const struct hf_json *object,
				  const char *key);
hf_time hf_reader_time(struct hf_reader *r, const struct hf_json *object, const char *key);
/* The items that are strings, as an arena array; others are reported. */
const char *const *hf_reader_strings(struct hf_reader *r, const struct hf_json *object,
				     const char *key, size_t len_max, size_t *ret_len);
/* "… in body must be of type <want>", of the value at the path. */
void hf_reader_report_type(struct hf_reader *r, const struct hf_json *value, const char *want);
/* Item i of an array if it is of that type, else reported and NULL. */
const struct hf_json *hf_reader_item(struct hf_reader *r, const struct hf_json *array,
				     const char *key, size_t i, enum hf_json_type type);

void hf_read_run_policy(struct hf_reader *r, const struct hf_json *spec,
			struct hf_run_policy *ret_policy);
/* podFailurePolicy and recovery alone, of an object that looks like runPolicy. */
void hf_read_policy_additions(struct hf_reader *r, const struct hf_json *policy,
			      struct hf_run_policy *ret_policy);
/* Report keys that no field of these two has; unknown.c. */
void hf_check_policy_additions(struct hf_reader *r, const struct hf_framework *framework,
			       const struct hf_json *policy);
/* What annotations say, into a view whose spec and status have been read; annotation.c. */
void hf_read_policy_annotation(struct hf_reader *r, const struct hf_json *root,
			       struct hf_job_view *view);
void hf_read_ledger_annotation(const struct hf_json *root, struct hf_arena *arena,
			       struct hf_job_view *view);
/* NULL: none is there. */
void hf_read_ledger(struct hf_reader *r, const struct hf_json *ledger,
		    const struct hf_framework *framework, struct hf_ledger *ret_ledger);
struct hf_json *hf_ledger_json(const struct hf_ledger *ledger,
			       const struct hf_framework *framework);
/* Every type in a pod template, at the path; false after errors; types.c. */
bool hf_check_template_types(struct hf_reader *r, const struct hf_json *pod);
/* Of containers what not every job needs: for kinds with hf_framework.reads_containers, and where
 * there is a gang scheduler. */
enum { HF_READ_DETAILS = 1, HF_READ_REQUESTS = 2 };
void hf_read_template(struct hf_reader *r, const struct hf_json *replica, unsigned details,
		      struct hf_template *ret_template);
/* A map of quantities; none for what is no object. */
const struct hf_key_value *hf_read_amounts(struct hf_reader *r, const struct hf_json *amounts,
					   size_t *ret_len);

#endif
