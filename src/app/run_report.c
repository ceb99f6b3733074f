/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Gathers what the report of a failure needs from the job and from the folder of the run, and prints the report. */
#include "app/run_report.h"

#include "app/connect.h"
#include "app/failure.h"
#include "base/mem.h"
#include "cli/rank.h"

#include <stdlib.h>

/* Fills in the log of the pod, or of its init container that failed, and the exception. */
static void add_pod(const struct hf_run_report *report, const char *pod, char **init,
		    struct hf_strbuf *init_log, struct hf_run_log *files,
		    struct hf_failure *failure)
{
	const struct hf_strbuf *log = hf_log_tails_get(report->tails, pod);
	HF_AUTOFREE char *exception = NULL;
	int code = 0;

	*init = hf_run_folder_failed_init(report->folder, pod, &code);
	if (*init != NULL) {
		hf_run_folder_read_log(report->folder, pod, *init, init_log);
		failure->init = *init;
		failure->exit_code = code;
		log = init_log;
	}
	failure->log = log != NULL ? log->data : NULL;
	failure->log_len = log != NULL ? log->len : 0;
	hf_run_folder_find_log(report->folder, pod, *init, files);
	exception = hf_failure_exception(failure);
	if (exception != NULL)
		hf_run_folder_set_exception(report->folder,
					    hf_cli_rank_of_pod(pod, hf_doc_name(report->job)),
					    exception);
}

int hf_run_report_failure(const struct hf_run_report *report, int exit_code, const char *pod,
			  const struct hf_json *late)
{
	struct hf_run_folder *folder = report->folder;
	HF_AUTO_RUN_LOG files = {.path = NULL};
	HF_AUTOFREE char *word = hf_run_folder_word(folder, hf_connect_prefers_server(report->cli));
	HF_AUTO_JSON torch = pod != NULL ? hf_run_folder_torch_error(folder, pod) : NULL;
	HF_AUTO_STRBUF init_log = HF_STRBUF_INIT(HF_LOG_TAIL_BYTES_MAX);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	HF_AUTOFREE char *init = NULL;
	struct hf_failure failure = {
		.job = hf_doc_json(report->job),
		.late = late,
		.script = report->script,
		.exit_code = exit_code,
		.torch = torch,
		.full_disk = hf_run_folder_is_full(folder) ? hf_run_folder_path(folder) : NULL,
		.files = &files,
		.log_dir = report->many ? hf_run_folder_logs(folder) : NULL,
		.run = word,
	};

	if (pod != NULL)
		add_pod(report, pod, &init, &init_log, &files, &failure);
	hf_failure_write(&failure, &text);
	(void)fflush(report->cli->out);
	hf_failure_print(report->cli, &text);
	return failure.exit_code;
}

void hf_run_report_logs(const struct hf_cli *cli, const struct hf_run_folder *folder)
{
	HF_AUTOFREE char *word = hf_run_folder_word(folder, hf_connect_prefers_server(cli));

	if (word != NULL && !hf_run_folder_is_gone(folder))
		fprintf(cli->err, "holdfast: the logs are kept: holdfast logs %s --rank all\n",
			word);
}
