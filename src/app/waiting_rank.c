/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reports a failed rank between two starts. Input: the pods, the job with its ledger, and the ends of the logs. */
#include "app/waiting_rank.h"

#include "app/failure.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/rank.h"
#include "store/resource.h"

#include <stdio.h>

static void see_waiting(void *arg, struct hf_doc *pod)
{
	struct hf_doc **waiting = arg;
	const struct hf_json *status = hf_pod_main_status(hf_doc_json(pod));

	if (hf_streq(hf_json_path_str(status, "state", "waiting", "reason", NULL),
		     "CrashLoopBackOff") &&
	    hf_json_i64(hf_json_path(status, "lastState", "terminated", "exitCode", NULL), 0) != 0)
		*waiting = pod;
}

static struct hf_doc *find_waiting_pod(struct hf_memstore *store, const char *ns)
{
	struct hf_doc *waiting = NULL;

	hf_memstore_each(store, &hf_pods, ns, see_waiting, &waiting);
	return waiting;
}

/* Returns the record of a rank's last termination: of the pod, or, with pod NULL, of the job's ledger, if the job waits
 * for its next generation. NULL: nothing waits for a start. */
static struct hf_json *make_record(const struct hf_json *job, struct hf_doc *pod)
{
	const struct hf_json *last = hf_json_path(job, "status", "recovery", "last", NULL);
	const struct hf_json *end;
	struct hf_job_facts facts;

	if (pod == NULL) {
		hf_job_facts_read(job, &facts);
		return hf_streq(facts.state, "Restarting") &&
				       hf_json_path_str(last, "replica", NULL) != NULL
			       ? hf_json_copy(last)
			       : NULL;
	}
	end = hf_json_path(hf_pod_main_status(hf_doc_json(pod)), "lastState", "terminated", NULL);
	return hf_failure_record(
		end,
		hf_cli_rank_of_pod(hf_doc_name(pod),
				   hf_str_or(hf_json_path_str(job, "metadata", "name", NULL), "")));
}

void hf_report_waiting_rank(const struct hf_cli *cli, struct hf_memstore *store, const char *ns,
			    const struct hf_json *job, struct hf_log_tails *tails)
{
	struct hf_doc *pod = find_waiting_pod(store, ns);
	HF_AUTO_JSON record = make_record(job, pod);
	const char *name = pod != NULL ? hf_doc_name(pod) : hf_failure_pod(job);
	const struct hf_strbuf *log = name != NULL ? hf_log_tails_get(tails, name) : NULL;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {.job = job,
					   .late = record,
					   .log = log != NULL ? log->data : NULL,
					   .log_len = log != NULL ? log->len : 0};

	if (record == NULL)
		return;
	hf_failure_write_waiting(&failure, &text);
	(void)fflush(cli->out);
	hf_failure_print(cli, &text);
}
