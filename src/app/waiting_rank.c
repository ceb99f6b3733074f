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

/* Returns how the container ended for whose next start the pod waits. NULL: the pod waits for none. */
static const struct hf_json *find_end(const struct hf_json *pod)
{
	const struct hf_json *init = hf_pod_failed_init(pod);
	const struct hf_json *status = init != NULL ? init : hf_pod_main_status(pod);
	const struct hf_json *end = hf_json_path(status, "state", "terminated", NULL);

	/* A failed init container is started again, at first without a wait. */
	if (init != NULL && end != NULL)
		return end;
	end = hf_json_path(status, "lastState", "terminated", NULL);
	return hf_streq(hf_json_path_str(status, "state", "waiting", "reason", NULL),
			"CrashLoopBackOff") &&
			       hf_json_i64(hf_json_get(end, "exitCode"), 0) != 0
		       ? end
		       : NULL;
}

static void see_waiting(void *arg, struct hf_doc *pod)
{
	struct hf_doc **waiting = arg;

	if (find_end(hf_doc_json(pod)) != NULL)
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
	struct hf_job_facts facts;

	if (pod == NULL) {
		hf_job_facts_read(job, &facts);
		return hf_streq(facts.state, "Restarting") &&
				       hf_json_path_str(last, "replica", NULL) != NULL
			       ? hf_json_copy(last)
			       : NULL;
	}
	return hf_failure_record(
		find_end(hf_doc_json(pod)),
		hf_cli_rank_of_pod(hf_doc_name(pod),
				   hf_str_or(hf_json_path_str(job, "metadata", "name", NULL), "")));
}

void hf_report_waiting_rank(const struct hf_cli *cli, struct hf_memstore *store, const char *ns,
			    const struct hf_json *job, struct hf_log_tails *tails,
			    const struct hf_run_folder *folder)
{
	struct hf_doc *pod = find_waiting_pod(store, ns);
	HF_AUTO_JSON record = make_record(job, pod);
	const char *name = pod != NULL ? hf_doc_name(pod) : hf_failure_pod(job);
	const char *init =
		pod != NULL ? hf_json_path_str(hf_pod_failed_init(hf_doc_json(pod)), "name", NULL)
			    : NULL;
	HF_AUTO_STRBUF init_log = HF_STRBUF_INIT(HF_LOG_TAIL_BYTES_MAX);
	const struct hf_strbuf *log = name != NULL ? hf_log_tails_get(tails, name) : NULL;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	struct hf_failure failure = {.job = job, .late = record, .init = init};

	if (record == NULL)
		return;
	if (init != NULL) {
		hf_run_folder_read_log(folder, name, init, &init_log);
		log = &init_log;
	}
	failure.log = log != NULL ? log->data : NULL;
	failure.log_len = log != NULL ? log->len : 0;
	hf_failure_write_waiting(&failure, &text);
	(void)fflush(cli->out);
	hf_failure_print(cli, &text);
}
