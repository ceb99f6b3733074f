/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_READER_INTERNAL_H
#define HF_API_READER_INTERNAL_H

#include "core/model/field.h"
#include "core/model/job.h"
#include "json/json.h"

/*
 * Walks a document and keeps the path of the present object. Each getter returns "absent" for a
 * missing or null member, and also for a member of a wrong type, after reporting it.
 */
/* bytes of a path in an error; a longer path is cut, because it contains map keys that a user
 * chose */
#define HF_READER_PATH_MAX 512

struct hf_reader {
	struct hf_arena *arena;
	/* where problems of fields are added; NULL: they are not collected */
	struct hf_field_errors *errors;
	/* texts are copied to the arena, because the tree is freed before the view */
	bool copy;
	char path[HF_READER_PATH_MAX];
	size_t path_len;
};

/* Appends to the path, and cuts it back: size_t mark = hf_reader_enter(r, ".spec"); …;
 * hf_reader_leave(r, mark); */
size_t hf_reader_enter(struct hf_reader *r, const char *fmt, ...) HF_PRINTF(2, 3);
void hf_reader_leave(struct hf_reader *r, size_t mark);
/* Returns the path without its leading dot. */
const char *hf_reader_path(const struct hf_reader *r);

/* Returns the member if the document has it with the right type, else NULL. The path stays as it
 * is. */
const struct hf_json *hf_reader_get(struct hf_reader *r, const struct hf_json *object,
				    const char *key, enum hf_json_type type);
const char *hf_reader_str(struct hf_reader *r, const struct hf_json *object, const char *key);
struct hf_opt_int hf_reader_int(struct hf_reader *r, const struct hf_json *object, const char *key,
				int64_t min, int64_t max);
struct hf_opt_int hf_reader_i32(struct hf_reader *r, const struct hf_json *object, const char *key);
struct hf_opt_bool hf_reader_bool(struct hf_reader *r, const struct hf_json *object,
				  const char *key);
hf_time hf_reader_time(struct hf_reader *r, const struct hf_json *object, const char *key);
/* Returns the strings of a list as an arena array, and reports items of another type. */
const char *const *hf_reader_strings(struct hf_reader *r, const struct hf_json *object,
				     const char *key, size_t len_max, size_t *ret_len);
/* Reports the value at the path: "… in body must be of type <want>". */
void hf_reader_report_type(struct hf_reader *r, const struct hf_json *value, const char *want);
/* Returns item i of an array if it has that type; else reports it and returns NULL. */
const struct hf_json *hf_reader_item(struct hf_reader *r, const struct hf_json *array,
				     const char *key, size_t i, enum hf_json_type type);

void hf_read_run_policy(struct hf_reader *r, const struct hf_json *spec,
			struct hf_run_policy *ret_policy);
/* Reads podFailurePolicy and recovery from an object with the form of runPolicy, and no other
 * field. */
void hf_read_policy_additions(struct hf_reader *r, const struct hf_json *policy,
			      struct hf_run_policy *ret_policy);
/* Reads recovery.logRules, and checks the rules. Defined in log_rules.c. */
void hf_read_log_rules(struct hf_reader *r, const struct hf_json *recovery,
		       struct hf_recovery_spec *ret_recovery);
/* Reports unknown keys in podFailurePolicy and recovery. Defined in check_keys.c. */
void hf_check_policy_additions(struct hf_reader *r, const struct hf_framework *framework,
			       const struct hf_json *policy);
/* Read the annotations of a job into a view. The spec and the status must have been read into this
 * view before. Defined in annotation.c. */
void hf_read_policy_annotation(struct hf_reader *r, const struct hf_json *root,
			       struct hf_job_view *view);
void hf_read_ledger_annotation(const struct hf_json *root, struct hf_arena *arena,
			       struct hf_job_view *view);
/* Reads the ledger of status.recovery; NULL: the job has none there. */
void hf_read_ledger(struct hf_reader *r, const struct hf_json *ledger,
		    const struct hf_framework *framework, struct hf_ledger *ret_ledger);
struct hf_json *hf_ledger_json(const struct hf_ledger *ledger,
			       const struct hf_framework *framework);
/* Checks every type in the pod template at the path. Returns false if an error was reported.
 * Defined in check_types.c. */
bool hf_check_template_types(struct hf_reader *r, const struct hf_json *pod);
/* Parts of containers that are read on demand. DETAILS: for kinds with
 * hf_framework.reads_containers. REQUESTS: if there is a gang scheduler. */
enum { HF_READ_DETAILS = 1, HF_READ_REQUESTS = 2 };
void hf_read_template(struct hf_reader *r, const struct hf_json *replica, unsigned details,
		      struct hf_template *ret_template);
/* Reads a map of quantities; an empty list if the value is not an object. */
const struct hf_key_value *hf_read_amounts(struct hf_reader *r, const struct hf_json *amounts,
					   size_t *ret_len);

#endif
