/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Writes why a job has failed. Input: the job with its ledger, and the end of the log of the rank
 * that failed first. */
#include "app/failure.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/text.h"
#include "core/model/container_reason.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct hf_json *last_record(const struct hf_json *job)
{
	return hf_json_path(job, "status", "recovery", "last", NULL);
}

const char *hf_failure_pod(const struct hf_json *job)
{
	return hf_json_path_str(last_record(job), "pod", NULL);
}

struct hf_json *hf_failure_record(const struct hf_json *end, const char *rank)
{
	struct hf_json *record = hf_json_object();

	hf_json_set_str(record, "replica", rank);
	hf_json_set_i64(record, "exitCode",
			hf_json_i64(hf_json_get(end, "exitCode"), HF_EXIT_FAILED));
	hf_json_set_str(record, "reason", hf_json_path_str(end, "reason", NULL));
	hf_json_set_str(record, "message", hf_json_path_str(end, "message", NULL));
	return record;
}

struct hf_json *hf_failure_late(const struct hf_json *pod, const char *rank, char **ret_cause)
{
	const struct hf_json *end =
		hf_json_path(hf_pod_main_status(pod), "state", "terminated", NULL);
	struct hf_json *late = hf_failure_record(end, rank);

	*ret_cause = hf_xasprintf("%s exited with code %" PRId64 " after rank 0 had succeeded",
				  rank, hf_json_i64(hf_json_get(late, "exitCode"), 0));
	return late;
}

void hf_run_log_release(struct hf_run_log *log)
{
	free(log->path);
	free(log->before);
}

/* ---- the cause ----------------------------------------------------------------------------- */

static void add_end(const struct hf_json *last, struct hf_strbuf *sb)
{
	int64_t code = hf_json_i64(hf_json_get(last, "exitCode"), -1);
	int64_t number = hf_json_i64(hf_json_get(last, "signal"), 0);
	const char *reason = hf_json_path_str(last, "reason", NULL);
	const char *signal = hf_signal_name(number > 0 ? (int)number : hf_exit_code_signal(code));
	char why[HF_FAILED_START_MAX];

	if (hf_reason_failed_start(last, why))
		hf_strbuf_addf(sb, "never started: %s", why);
	else if (hf_streq(reason, "OOMKilled"))
		hf_strbuf_addstr(sb, "used more memory than its limit and was killed (OOMKilled)");
	else if (signal != NULL)
		hf_strbuf_addf(sb, "was killed by %s (code %" PRId64 ")", signal,
			       code >= 0 ? code : 128 + number);
	else if (code >= 0)
		hf_strbuf_addf(sb, "exited with code %" PRId64, code);
	else
		hf_strbuf_addf(sb, "failed: %s", hf_str_or(reason, "unknown reason"));
}

void hf_failure_cause(const struct hf_json *job, struct hf_strbuf *sb)
{
	const struct hf_json *last = last_record(job);
	const char *replica = hf_json_path_str(last, "replica", NULL);
	const char *message = hf_json_path_str(hf_job_last_condition(job), "message", NULL);

	if (replica == NULL) {
		hf_strbuf_addstr(sb, hf_str_or(message, "the job failed"));
		return;
	}
	hf_strbuf_addf(sb, "%s ", replica);
	add_end(last, sb);
}

/* ---- the log ------------------------------------------------------------------------------- */

struct line {
	const char *text;
	size_t len;
};

static const char TRACEBACK[] = "Traceback (most recent call last):";

/* Steps back over "[rank3]: ", with which PyTorch begins each line of a traceback. */
static const char *before_rank(const char *start, const char *head)
{
	const char *at = head;

	if (at - start < 3 || memcmp(at - 3, "]: ", 3) != 0)
		return head;
	at -= 3;
	while (at > start && hf_ascii_is_digit(at[-1]))
		at--;
	return at - start >= 5 && memcmp(at - 5, "[rank", 5) == 0 ? at - 5 : head;
}

/* Finds a traceback that stands behind other text in the line. A progress bar leaves its line without an end, so the
 * traceback of the exception that ended the program is written into the same line: "5.00it/s]   Traceback (…". */
static const char *find_traceback_behind(const char *text, const char *stop)
{
	const char *head = memmem(text, (size_t)(stop - text), TRACEBACK, sizeof(TRACEBACK) - 1);
	const char *bar;

	if (head == NULL)
		return NULL;
	head = before_rank(text, head);
	bar = head;
	while (bar > text && bar[-1] == ' ')
		bar--;
	/* A quoted traceback follows a quotation mark or, in the summary of torchrun, a colon. */
	return bar > text && (bar[-1] == ']' || (bar == head && strchr("\"'`", bar[-1]) == NULL))
		       ? head
		       : NULL;
}

/* Reads the next line. A carriage return begins the line anew, as progress bars do on a terminal. A traceback behind a
 * progress bar is a line of its own. */
static bool next_line(const char **at, const char *end, struct line *ret_line)
{
	const char *stop, *traceback, *text = *at;

	if (text >= end)
		return false;
	stop = memchr(text, '\n', (size_t)(end - text));
	stop = stop != NULL ? stop : end;
	*at = stop + 1;
	while (stop > text && stop[-1] == '\r')
		stop--;
	for (const char *cr = text; cr < stop; cr++)
		if (*cr == '\r')
			text = cr + 1;
	traceback = find_traceback_behind(text, stop);
	if (traceback != NULL) {
		*at = traceback;
		stop = traceback;
		while (stop > text && stop[-1] == ' ')
			stop--;
	}
	*ret_line = (struct line){text, (size_t)(stop - text)};
	return true;
}

static bool has_text(const struct line *line, const char *text)
{
	return memmem(line->text, line->len, text, strlen(text)) != NULL;
}

static bool begins_traceback(const struct line *line)
{
	return line->len >= sizeof(TRACEBACK) - 1 &&
	       memcmp(line->text, TRACEBACK, sizeof(TRACEBACK) - 1) == 0;
}

/* True if the line is of the report in which a launcher (torchrun, for instance) says that its
 * processes ended. */
static bool is_of_launcher(const struct line *line)
{
	bool elastic = has_text(line, "torch/distributed/elastic/multiprocessing/api.py") ||
		       has_text(line, "torch.distributed.elastic.multiprocessing.api");

	return (elastic && (has_text(line, "failed (exitcode:") ||
			    has_text(line, "closing signal") || has_text(line, "death signal"))) ||
	       has_text(line, "[launch.py:");
}

/* Frames of a launcher's own traceback. */
static bool is_frame_of_launcher(const struct line *line)
{
	return has_text(line, "torch/distributed/run.py\"") ||
	       has_text(line, "torch/distributed/launcher/api.py\"") ||
	       has_text(line, "accelerate/commands/launch.py\"") ||
	       has_text(line, "/bin/torchrun\"") || has_text(line, "/bin/accelerate\"");
}

size_t hf_failure_program_len(const char *log, size_t len)
{
	const char *at = log, *end = log + len, *traceback = NULL, *cut = NULL;
	struct line line;

	while (cut == NULL) {
		const char *start = at;

		if (!next_line(&at, end, &line))
			break;
		if (begins_traceback(&line))
			traceback = start;
		if (is_of_launcher(&line))
			cut = start;
		else if (traceback != NULL && is_frame_of_launcher(&line))
			cut = traceback;
	}
	return cut == NULL || cut == log ? len : (size_t)(cut - log);
}

static void add_line(struct hf_strbuf *sb, const struct line *line)
{
	size_t len = line->len;

	hf_strbuf_addstr(sb, "  | ");
	if (len <= HF_FAILURE_LINE_BYTES_MAX) {
		hf_strbuf_add(sb, line->text, len);
	} else {
		hf_strbuf_add(sb, line->text, HF_FAILURE_LINE_BYTES_MAX);
		hf_strbuf_addf(sb, " [%zu bytes more]", len - HF_FAILURE_LINE_BYTES_MAX);
	}
	hf_strbuf_addch(sb, '\n');
}

/* True if the line is of the advice about threads that torchrun prints at each start. */
static bool is_advice(const struct line *line)
{
	size_t stars = 0;

	while (stars < line->len && line->text[line->len - 1 - stars] == '*')
		stars++;
	return stars >= 20 || has_text(line, "Setting OMP_NUM_THREADS environment variable for") ||
	       (line->len == strlen("WARNING:torch.distributed.run:") &&
		has_text(line, "WARNING:torch.distributed.run:"));
}

/* Appends the last lines of the text. Returns the number of appended lines. */
static size_t add_last_lines(struct hf_strbuf *sb, const char *text, size_t len)
{
	struct line ring[HF_FAILURE_LINES], line;
	const char *at = text;
	size_t n = 0;

	while (next_line(&at, text + len, &line))
		if (line.len > 0 && !is_advice(&line))
			ring[n++ % HF_FAILURE_LINES] = line;
	for (size_t i = n > HF_FAILURE_LINES ? n - HF_FAILURE_LINES : 0; i < n; i++)
		add_line(sb, &ring[i % HF_FAILURE_LINES]);
	return n > HF_FAILURE_LINES ? HF_FAILURE_LINES : n;
}

static void add_log(const struct hf_failure *failure, const char *replica, struct hf_strbuf *sb)
{
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	size_t len =
		failure->log != NULL ? hf_failure_program_len(failure->log, failure->log_len) : 0;
	size_t n = add_last_lines(&lines, hf_str_or(failure->log, ""), len);
	HF_AUTOFREE char *printer =
		failure->init == NULL
			? hf_xstrdup(replica)
			: hf_xasprintf("init container '%s' of %s", failure->init, replica);

	if (failure->full_disk != NULL)
		hf_strbuf_addf(
			sb,
			"The disk of %s is full, so output of %s may be missing; make room there.\n",
			failure->full_disk, printer);
	else if (n == 0)
		hf_strbuf_addf(sb, "%s printed nothing.\n", printer);
	if (n == 0)
		return;
	hf_strbuf_addf(sb, "\nThe last %s of %s:\n", n == 1 ? "line" : "lines", printer);
	hf_strbuf_add(sb, lines.data, lines.len);
	hf_strbuf_addch(sb, '\n');
}

/* ---- torchrun ------------------------------------------------------------------------------ */

/* Finds the ranks in torchrun's summary, which stand in lines such as "  rank      : 3 (local_rank: 1)": the rank behind
 * "Root Cause", and how many others stand before it. ret_other: the last of the others. False: there is no summary. */
static bool find_ranks(const struct hf_failure *failure, struct line *ret_root,
		       struct line *ret_other, size_t *ret_others)
{
	const char *at = failure->log, *end = at + failure->log_len;
	bool inside = false;
	struct line line;

	*ret_others = 0;
	while (at != NULL && next_line(&at, end, &line)) {
		const char *colon = memchr(line.text, ':', line.len);
		struct line rank;

		inside = inside || has_text(&line, "Root Cause (first observed failure)");
		if (colon == NULL || !has_text(&line, "rank  ") || !has_text(&line, "(local_rank:"))
			continue;
		rank = (struct line){colon + 2, line.len - (size_t)(colon + 2 - line.text)};
		if (inside) {
			*ret_root = rank;
			return true;
		}
		*ret_other = rank;
		(*ret_others)++;
	}
	return false;
}

/* True if the exception says only that another process ended or does not answer. */
static bool is_of_peer(const struct line *line)
{
	static const char *const words[] = {"Connection closed by peer",
					    "Connection reset by peer",
					    "Connection refused",
					    "Broken pipe",
					    "Socket Timeout",
					    "DistBackendError",
					    "DistNetworkError"};

	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++)
		if (has_text(line, words[i]))
			return true;
	return false;
}

/* Skips "[rank3]: ", with which PyTorch begins each line of a traceback. */
static struct line without_rank(const struct line *line)
{
	static const char head[] = "[rank", tail[] = "]: ";
	const char *end = memmem(line->text, line->len, tail, sizeof(tail) - 1);

	if (end == NULL || line->len < sizeof(head) ||
	    memcmp(line->text, head, sizeof(head) - 1) != 0)
		return *line;
	end += sizeof(tail) - 1;
	return (struct line){end, line->len - (size_t)(end - line->text)};
}

/* Finds the exception that ended the program: the line that ends the last traceback of the log. If several ranks share
 * the log (torchrun), the first that is not about another process. */
static bool find_exception(const struct hf_failure *failure, struct line *ret_exception)
{
	size_t len =
		failure->log != NULL ? hf_failure_program_len(failure->log, failure->log_len) : 0;
	const char *at = failure->log, *end = at + len;
	bool inside = false, found = false, shared = len < failure->log_len;
	struct line line;

	while (len > 0 && next_line(&at, end, &line)) {
		line = without_rank(&line);
		if (begins_traceback(&line)) {
			inside = true;
			continue;
		}
		if (!inside || line.len == 0 || line.text[0] == ' ' || line.text[0] == '\t')
			continue;
		inside = false;
		if (shared && found && !is_of_peer(ret_exception))
			continue;
		*ret_exception = line;
		found = true;
	}
	return found;
}

/* Returns the first line of the exception that a worker of torchrun recorded: {"message": {"message": "…"}}. */
static bool find_record(const struct hf_failure *failure, struct line *ret_exception)
{
	const struct hf_json *message = hf_json_get(failure->torch, "message");
	const char *text = hf_json_type(message) == HF_JSON_OBJECT
				   ? hf_json_path_str(message, "message", NULL)
				   : hf_json_path_str(failure->torch, "message", NULL);

	if (hf_str_is_empty(text))
		return false;
	*ret_exception = (struct line){text, strcspn(text, "\r\n")};
	return true;
}

/* Finds the exception of another rank, if the recorded one only says that this other rank is gone. */
static bool find_other(const struct hf_failure *failure, const struct line *record,
		       struct line *ret_exception)
{
	return is_of_peer(record) && find_exception(failure, ret_exception) &&
	       !is_of_peer(ret_exception);
}

char *hf_failure_exception(const struct hf_failure *failure)
{
	struct line record, exception;
	bool recorded = find_record(failure, &record);

	if (recorded && !find_other(failure, &record, &exception))
		exception = record;
	else if (!recorded && !find_exception(failure, &exception))
		return NULL;
	return hf_xstrndup(exception.text, exception.len < HF_FAILURE_LINE_BYTES_MAX
						   ? exception.len
						   : HF_FAILURE_LINE_BYTES_MAX);
}

/* torchrun compares whole seconds. If several ranks fail in the same second, it may name a rank that only lost its
 * connection to the rank that failed first. */
static void add_other(const struct line *root, const struct line *other, size_t others,
		      const struct line *exception, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb, "torchrun: rank %.*s lost its connection, because ", (int)root->len,
		       root->text);
	if (others == 1)
		hf_strbuf_addf(sb, "rank %.*s", (int)other->len, other->text);
	else
		hf_strbuf_addstr(sb, "another rank");
	hf_strbuf_addf(sb, " failed with %.*s\n", (int)exception->len, exception->text);
}

static void add_torch(const struct hf_failure *failure, struct hf_strbuf *sb)
{
	struct line root = {"", 0}, other = {"", 0}, record, exception;
	size_t others;
	bool found = find_ranks(failure, &root, &other, &others);
	bool recorded = find_record(failure, &record);

	if (found && recorded && find_other(failure, &record, &exception))
		add_other(&root, &other, others, &exception, sb);
	else if (recorded && found)
		hf_strbuf_addf(sb, "torchrun: rank %.*s failed first, with %.*s\n", (int)root.len,
			       root.text, (int)record.len, record.text);
	else if (recorded)
		hf_strbuf_addf(sb, "The exception that the program recorded: %.*s\n",
			       (int)record.len, record.text);
	else if (found)
		hf_strbuf_addf(sb, "torchrun: rank %.*s failed first\n", (int)root.len, root.text);
}

static bool has_words(const struct hf_failure *failure, const char *words)
{
	return failure->log != NULL &&
	       memmem(failure->log, failure->log_len, words, strlen(words)) != NULL;
}

/* Adds a hint if the launcher is that of Debian 12, which always fails. The kubelet mends only the
 * program torchrun (kubelet/torchrun.c), not "python3 -m torch.distributed.run". */
static void add_launcher_hint(const struct hf_failure *failure, struct hf_strbuf *sb)
{
	if (has_words(failure, "torch/distributed/elastic/multiprocessing") &&
	    has_words(failure, "'NoneType' object has no attribute 'get'"))
		hf_strbuf_addstr(
			sb, "This launcher of PyTorch 1.13 fails with Python 3.11: call torchrun, "
			    "which Holdfast mends, or use 'holdfast run --nproc'.\n");
}

/* ---- what Holdfast did --------------------------------------------------------------------- */

static void add_verdict(const struct hf_failure *failure, struct hf_strbuf *sb)
{
	const struct hf_json *limit =
		hf_json_path(failure->job, "spec", "runPolicy", "backoffLimit", NULL);
	const char *verdict =
		hf_json_path_str(failure->job, "status", "recovery", "verdict", "reason", NULL);
	struct hf_job_facts facts;

	hf_job_facts_read(failure->job, &facts);
	hf_strbuf_addstr(sb, "Holdfast:  ");
	for (enum hf_budget budget = 0; budget < HF_BUDGETS; budget++) {
		int64_t count = facts.charged[budget];

		if (count == 0)
			continue;
		hf_strbuf_addf(sb, "charged %" PRId64 " incident%s to the %s budget", count,
			       count == 1 ? "" : "s", hf_budget_name(budget));
		if (budget == HF_BUDGET_APPLICATION && limit != NULL)
			hf_strbuf_addf(sb, " (backoffLimit %" PRId64 ")", hf_json_i64(limit, 0));
		hf_strbuf_addstr(sb, "; ");
	}
	if (hf_streq(verdict, "ExitCode")) {
		hf_strbuf_addf(
			sb,
			"no %srestart: under restartPolicy ExitCode, a code below 128 ends the "
			"job%s\n",
			hf_job_restarts(&facts) > 0 ? "further " : "",
			failure->script ? " (--max-restarts N restarts after any code)" : "");
		return;
	}
	if (hf_streq(verdict, "RestartPolicyNever")) {
		hf_strbuf_addstr(
			sb,
			"no restart: under restartPolicy Never, the first failure ends the job\n");
		return;
	}
	/* The message of this verdict repeats the cause, which the first line has. */
	if (hf_streq(verdict, "BackoffLimitExceeded")) {
		hf_strbuf_addf(sb, "restarted %" PRId64 " time%s; the limit is reached\n",
			       hf_job_restarts(&facts), hf_job_restarts(&facts) == 1 ? "" : "s");
		return;
	}
	if (hf_job_restarts(&facts) == 0)
		hf_strbuf_addstr(sb, "no restart; ");
	hf_strbuf_addf(sb, "the job failed: %s\n", facts.message);
}

/* Names the files of the log, and says what of it is not kept. */
static void add_log_files(const struct hf_failure *failure, const char *replica,
			  struct hf_strbuf *sb)
{
	const struct hf_run_log *files = failure->files;
	const char *path = files->path;

	hf_strbuf_addf(sb, "%s%s\n", files->dropped > 0 ? "Log:       " : "Full log:  ", path);
	if (files->older == 1)
		hf_strbuf_addf(sb, "           and its older part %s.1\n", path);
	else if (files->older > 1)
		hf_strbuf_addf(sb, "           and its older parts %s.1 to .%d\n", path,
			       files->older);
	if (files->dropped > 0)
		hf_strbuf_addf(sb,
			       "           the first %.1f MiB of what %s printed are not kept\n",
			       (double)files->dropped / (1 << 20), replica);
	if (files->before != NULL)
		hf_strbuf_addf(sb, "           of the start before: %s\n", files->before);
	if (failure->log_dir != NULL)
		hf_strbuf_addf(sb, "           of all ranks, the last two starts: %s\n",
			       failure->log_dir);
}

/* In the job of a program, Worker I is rank I + 1. */
static void add_rank(const struct hf_failure *failure, const char *replica, struct hf_strbuf *sb)
{
	static const char worker[] = "worker-";
	int64_t index;

	if (failure->script && replica != NULL && hf_str_has_prefix(replica, worker) &&
	    hf_str_to_i64(replica + sizeof(worker) - 1, 0, INT32_MAX, &index, NULL) == 0)
		hf_strbuf_addf(sb, " (%s is rank %" PRId64 ")", replica, index + 1);
}

void hf_failure_write(const struct hf_failure *failure, struct hf_strbuf *sb)
{
	const char *name = hf_json_path_str(failure->job, "metadata", "name", NULL);
	const struct hf_json *last =
		failure->late != NULL ? failure->late : last_record(failure->job);
	const char *replica = hf_json_path_str(last, "replica", NULL);

	hf_strbuf_addf(sb, "holdfast: job %s failed with code %d: ", hf_str_or(name, ""),
		       failure->exit_code);
	if (failure->late != NULL) {
		hf_strbuf_addf(sb, "%s ", replica);
		add_end(last, sb);
		hf_strbuf_addstr(sb, " after rank 0 had succeeded");
	} else {
		hf_failure_cause(failure->job, sb);
	}
	add_rank(failure, replica, sb);
	hf_strbuf_addch(sb, '\n');
	if (replica != NULL) {
		add_torch(failure, sb);
		add_log(failure, replica, sb);
		add_launcher_hint(failure, sb);
	}
	if (failure->files != NULL && failure->files->path != NULL)
		add_log_files(failure, hf_str_or(replica, "the rank"), sb);
	if (failure->late == NULL)
		add_verdict(failure, sb);
	else
		hf_strbuf_addstr(sb, "Holdfast:  no restart: a job that has succeeded is not "
				     "started again\n");
	if (failure->run != NULL && replica != NULL)
		hf_strbuf_addf(sb, "Next:      holdfast why %s; holdfast logs %s --rank %s%s%s\n",
			       failure->run, failure->run, replica,
			       failure->init != NULL ? " -c " : "", hf_str_or(failure->init, ""));
	else if (failure->run != NULL)
		hf_strbuf_addf(sb, "Next:      holdfast why %s\n", failure->run);
}

void hf_failure_write_waiting(const struct hf_failure *failure, struct hf_strbuf *sb)
{
	const char *replica = hf_json_path_str(failure->late, "replica", NULL);

	hf_strbuf_addf(sb, "holdfast: job %s was stopped while %s waited for its next start: ",
		       hf_json_path_str(failure->job, "metadata", "name", NULL), replica);
	if (failure->init != NULL)
		hf_strbuf_addf(sb, "init container '%s' ", failure->init);
	else
		hf_strbuf_addf(sb, "%s ", replica);
	add_end(failure->late, sb);
	hf_strbuf_addch(sb, '\n');
	add_log(failure, replica, sb);
}

int hf_failure_exit_code(const struct hf_json *job)
{
	const struct hf_json *last = hf_json_path(job, "status", "recovery", "last", NULL);
	int64_t code = hf_json_i64(hf_json_get(last, "exitCode"), 0);
	int64_t signum = hf_json_i64(hf_json_get(last, "signal"), 0);

	if (signum > 0 && signum < 128)
		return 128 + (int)signum;
	return code > 0 && code < 256 ? (int)code : HF_EXIT_FAILED;
}

void hf_failure_print(const struct hf_cli *cli, const struct hf_strbuf *text)
{
	HF_AUTO_STRBUF clean = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);

	for (const char *at = text->data, *end = at + text->len; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop != NULL ? stop : end;
		hf_text_add_clean(&clean, at, (size_t)(stop - at), cli->utf8);
		hf_strbuf_addch(&clean, '\n');
		at = stop + 1;
	}
	fputs(clean.data, cli->err);
	(void)fflush(cli->err);
}
