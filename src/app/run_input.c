/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads the input of `run`: a manifest with its other objects, or a program. */
#include "app/run_input.h"

#include "app/fit_job.h"
#include "app/local_check.h"
#include "app/local_gpus.h"
#include "app/run_template.h"
#include "app/script_job.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "api/job.h"
#include "cli/rank.h"
#include "cli/references.h"
#include "core/model/names.h"
#include "operator/operator.h"
#include "store/resource.h"

#include <stdio.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIT_BYTES_MAX 8192
#define RANKS_BYTES_MAX 65536 /* limit of the names of --ranks */
#define NAMES_SHOWN 8 /* limit of the names of variables that are printed at the start of a run */

/* ---- load --------------------------------------------------------------------------------------- */

/* Refuses flags that apply to programs only, such as --nproc, for a manifest. */
static int check_manifest_flags(struct hf_cli *cli)
{
	static const char *const names[] = {"nproc", "module", "max-restarts", "print-job"};

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (hf_cli_has(cli, names[i]))
			return hf_cli_usage(
				cli,
				"--%s is for programs, such as train.py; '%s' is a manifest, "
				"which has fields for this",
				names[i], cli->args[0]);
	return 0;
}

/* True if --print-job is the last word of the command line, behind the program's own arguments.
 * Removes the word. */
static bool take_print_job(struct hf_cli *cli)
{
	if (cli->n_args > 1 && !cli->literal &&
	    hf_streq(cli->args[cli->n_args - 1], "--print-job")) {
		cli->n_args--;
		return true;
	}
	return hf_cli_has(cli, "print-job");
}

/* Sets OMP_NUM_THREADS, as torchrun does, so that the ranks together do not use more threads than
 * the machine has CPUs. */
static void limit_threads(int64_t ranks, struct hf_run_input *input)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char text[32];

	if (ranks < 2 || hf_run_env_has(&input->env, "OMP_NUM_THREADS"))
		return;
	(void)snprintf(text, sizeof(text), "%ld", cpus / ranks > 1 ? cpus / (long)ranks : 1L);
	hf_run_env_add(&input->env, "OMP_NUM_THREADS", text);
}

/* Returns the flag of `run` that the word is: "--nproc" and "--nproc=2". NULL: the word is none. */
static const struct hf_flag *find_flag(const struct hf_cli *cli, const char *word)
{
	const struct hf_flag *flag = cli->verb != NULL ? cli->verb->flags : NULL;

	if (!hf_str_has_prefix(word, "--"))
		return NULL;
	for (; flag != NULL && flag->name != NULL; flag++)
		if (strlen(flag->name) == strcspn(word + 2, "=") &&
		    hf_str_has_prefix(word + 2, flag->name))
			return flag;
	return NULL;
}

/* Notes the first argument of the program that is also a flag of `run`: the user may have meant
 * `run`. */
static void note_flag_behind(const struct hf_cli *cli, struct hf_strbuf *notes)
{
	for (int i = 1; i < cli->n_args && !cli->literal; i++) {
		const struct hf_flag *flag = find_flag(cli, cli->args[i]);

		if (flag == NULL)
			continue;
		hf_strbuf_addf(
			notes,
			"note: --%s stands behind '%s', so it is an argument of the program; "
			"flags of 'holdfast run' stand before the program\n",
			flag->name, cli->args[0]);
		return;
	}
}

/* mpirun's -n is a number of ranks; that of Holdfast and kubectl is a namespace. */
static void note_number_as_namespace(const struct hf_cli *cli, struct hf_strbuf *notes)
{
	const char *ns = hf_cli_flag(cli, "namespace");

	if (!hf_str_is_empty(ns) && strspn(ns, "0123456789") == strlen(ns))
		hf_strbuf_addf(notes, "note: -n %s is a namespace; --nproc %s starts %s rank%s\n",
			       ns, ns, ns, hf_streq(ns, "1") ? "" : "s");
}

static int load_script(struct hf_cli *cli, struct hf_run_input *input)
{
	HF_AUTO_STRBUF note = HF_STRBUF_INIT(FIT_BYTES_MAX);
	int64_t nproc = 1;
	int rc;

	input->print = take_print_job(cli);
	rc = hf_script_job_make(cli, &input->manifest, &nproc, &note);
	note_flag_behind(cli, &note);
	note_number_as_namespace(cli, &note);
	input->fitted = hf_strbuf_detach(&note);
	if (rc == 0)
		rc = hf_run_env_read(cli, true, environ, &input->env);
	if (rc == 0)
		limit_threads(nproc, input);
	if (rc == 0 && input->print && input->env.n_given > 0)
		hf_run_template_apply(
			&(struct hf_run_template){.env = (const char *const *)input->env.given,
						  .add_env = true},
			&input->manifest);
	return rc;
}

/* Takes the job from the manifests. Refuses files with no job or with several jobs. */
static int take_job(struct hf_cli *cli, struct hf_manifests *set, struct hf_run_input *input)
{
	if (set->n_jobs == 0)
		return hf_cli_usage(cli, "no job is in %s: a PyTorchJob, TFJob, … is needed",
				    set->n_files == 1 ? "the manifest" : "the manifests");
	if (set->n_jobs > 1)
		return hf_cli_usage(cli,
				    "%zu jobs are in the manifest, '%s' and '%s' among them: "
				    "'holdfast run' takes one",
				    set->n_jobs, hf_doc_name(set->jobs[0].doc),
				    hf_doc_name(set->jobs[1].doc));
	input->manifest = set->jobs[0];
	set->n_jobs = 0;
	input->objects = set->objects;
	set->objects = (struct hf_manifest_objects){.len = 0};
	return 0;
}

/* Notes the first object that cannot be created. Such objects, a NetworkPolicy for instance, seldom matter on
 * one machine. */
static void note_unknown(void *arg, const char *file HF_UNUSED, const struct hf_json *object,
			 bool known)
{
	struct hf_run_input *input = arg;

	if (known || input->not_created != NULL)
		return;
	input->not_created = hf_xasprintf(
		"note: %s '%s' is of a kind that 'holdfast run' cannot create; the job runs without it",
		hf_json_path_str(object, "kind", NULL),
		hf_str_or(hf_json_path_str(object, "metadata", "name", NULL), ""));
}

static void fit_job(const struct hf_cli *cli, struct hf_run_input *input)
{
	const struct hf_local_machine machine = hf_local_machine_of(cli, &input->manifest);
	HF_AUTO_STRBUF notes = HF_STRBUF_INIT(FIT_BYTES_MAX);

	hf_fit_job(&machine, &input->manifest, &notes);
	if (notes.len == 0)
		hf_strbuf_addstr(&notes, "--fit: the job fits on this machine as it is\n");
	input->fitted = hf_strbuf_detach(&notes);
}

static int check_manifest_words(struct hf_cli *cli)
{
	int rc = cli->n_args > 0 ? hf_script_check_manifest(cli, cli->args[0]) : 0;

	if (rc == 0)
		rc = check_manifest_flags(cli);
	if (rc == 0 && cli->n_args > 1)
		rc = hf_cli_usage(cli, "unexpected argument '%s' behind the manifest '%s'",
				  cli->args[1], cli->args[0]);
	return rc;
}

static int load_manifests(struct hf_cli *cli, struct hf_run_input *input)
{
	struct hf_manifests set = {.passed = note_unknown, .arg = input, .here = true};
	int rc = check_manifest_words(cli);

	for (size_t i = 0; rc == 0 && i < cli->n_flags; i++)
		if (hf_streq(cli->flags[i].flag->name, "filename"))
			rc = hf_manifests_add(cli, cli->flags[i].value, &set);
	if (rc == 0 && cli->n_args == 1)
		rc = hf_manifests_add(cli, cli->args[0], &set);
	if (rc == 0 && hf_references_missing(cli, &set, "cannot run on this machine: ") > 0)
		rc = HF_EXIT_USAGE;
	if (rc == 0)
		rc = take_job(cli, &set, input);
	hf_manifests_release(&set);
	if (rc == 0 && hf_cli_has(cli, "fit"))
		fit_job(cli, input);
	return rc == 0 ? hf_run_env_read(cli, false, environ, &input->env) : rc;
}

int hf_run_input_load(struct hf_cli *cli, struct hf_run_input *ret_input)
{
	bool files = hf_cli_has(cli, "filename");

	*ret_input = (struct hf_run_input){.script = false};
	if (hf_local_gpus_check(cli) != 0 || hf_network_read(cli, &ret_input->host_network) != 0)
		return HF_EXIT_USAGE;
	if (cli->n_args == 0 && !files)
		return hf_cli_usage(cli, "what should run? Name a manifest, a script such as "
					 "train.py, or a command behind --");
	ret_input->script =
		cli->n_args > 0 && hf_script_is_program(cli, cli->args[0], cli->literal);
	if (ret_input->script && files)
		return hf_cli_usage(cli, "-f is for manifests, and '%s' is a program",
				    cli->args[0]);
	return ret_input->script ? load_script(cli, ret_input) : load_manifests(cli, ret_input);
}

int hf_run_input_ranks(const struct hf_cli *cli, const struct hf_run_input *input, const char *list,
		       char **ret_ranks)
{
	HF_AUTO_STRBUF names = HF_STRBUF_INIT(RANKS_BYTES_MAX);
	HF_AUTOFREE char *copy = hf_xstrdup(list);
	char *rest = copy, *word;
	struct hf_error err;

	while ((word = strsep(&rest, ",")) != NULL) {
		HF_AUTOFREE char *name = NULL;
		if (hf_cli_rank_name(input->manifest.framework, hf_doc_json(input->manifest.doc),
				     word, &name, &err) != 0)
			return hf_cli_usage(cli, "--ranks: %s", err.text);
		hf_strbuf_addf(&names, "%s%s", names.len > 0 ? "," : "", name);
	}
	*ret_ranks = hf_strbuf_detach(&names);
	return 0;
}

void hf_run_input_release(struct hf_run_input *input)
{
	hf_manifest_release(&input->manifest);
	hf_manifest_objects_release(&input->objects);
	hf_run_env_release(&input->env);
	free(input->not_created);
	free(input->fitted);
	input->not_created = input->fitted = NULL;
}

/* ---- the objects --------------------------------------------------------------------------------- */

static bool has_namespace(const struct hf_manifest_objects *objects, const char *ns)
{
	for (size_t i = 0; i < objects->len; i++)
		if (hf_streq(hf_json_path_str(hf_doc_json(objects->items[i]), "kind", NULL),
			     "Namespace") &&
		    hf_streq(hf_doc_name(objects->items[i]), ns))
			return true;
	return false;
}

static void add_namespace(struct hf_manifest_objects *list, const char *ns)
{
	struct hf_json *object = hf_json_object();

	if (has_namespace(list, ns)) {
		hf_json_unref(object);
		return;
	}
	hf_json_set_str(object, "apiVersion", "v1");
	hf_json_set_str(object, "kind", "Namespace");
	hf_json_set_str(hf_json_ensure_object(object, "metadata"), "name", ns);
	list->items[list->len++] = hf_doc_from_json(object);
}

void hf_run_input_add_namespaces(struct hf_run_input *input, const char *ns)
{
	struct hf_manifest_objects list = {
		.items = hf_xcalloc(2 * input->objects.len + 1, sizeof(struct hf_doc *))};

	for (size_t i = 0; i < input->objects.len; i++) {
		struct hf_doc *doc = input->objects.items[i];
		const struct hf_json *root = hf_doc_json(doc);
		const struct hf_resource *resource =
			hf_resource_by_kind(hf_json_path_str(root, "apiVersion", NULL),
					    hf_json_path_str(root, "kind", NULL));

		if (resource->namespaced && hf_str_is_empty(hf_doc_namespace(doc))) {
			struct hf_json *copy = hf_json_copy(root);

			hf_json_set_str(hf_json_ensure_object(copy, "metadata"), "namespace", ns);
			hf_doc_unref(doc);
			input->objects.items[i] = hf_doc_from_json(copy);
		} else if (resource->namespaced) {
			add_namespace(&list, hf_doc_namespace(doc));
		}
	}
	add_namespace(&list, ns);
	for (size_t i = 0; i < input->objects.len; i++)
		list.items[list.len++] = input->objects.items[i];
	free(input->objects.items);
	input->objects = list;
}

/* ---- mistakes that a server would accept -------------------------------------------------------- */

char *hf_run_input_problem(const struct hf_run_input *input)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_OPERATOR_PASS_BYTES_MAX);
	struct hf_job_view view;
	const char *text;

	hf_job_read(input->manifest.doc, input->manifest.framework, NULL, arena, NULL, &view);
	text = view.replicas_len > 0
		       ? hf_job_unnameable(&view, arena)
		       : "the job has no replicas, so it would never run or end; add a replica type";
	if (text == NULL && !hf_str_is_empty(view.run_policy.managed_by) &&
	    !hf_streq(view.run_policy.managed_by, HF_MANAGED_BY_US))
		text = hf_arena_printf(
			arena,
			"spec.runPolicy.managedBy is '%s', and 'holdfast run' has no such controller: "
			"no pods would be created; remove the field",
			view.run_policy.managed_by);
	return text != NULL ? hf_xstrdup(text) : NULL;
}

/* ---- adapting the job to this machine ------------------------------------------------------------- */

void hf_run_input_place(struct hf_run_input *input, const char *errors)
{
	HF_AUTOFREE char *cwd = getcwd(NULL, 0);
	const struct hf_run_template change = {
		.cwd = cwd,
		.errors = hf_run_env_has(&input->env, "TORCHELASTIC_ERROR_FILE") ? NULL : errors,
		.env = (const char *const *)input->env.given,
	};

	hf_run_template_apply(&change, &input->manifest);
}

/* Returns a TCP port of this machine that no program listens on now; 0: none could be found. */
static int find_free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t len = sizeof(address);
	HF_AUTO_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return 0;
	return ntohs(address.sin_port);
}

char *hf_run_input_share_network(const struct hf_kubelet *kubelet, struct hf_run_input *input)
{
	struct hf_kubelet_facts facts;
	bool asked = input->host_network, needed;
	struct hf_run_template change = {.host_network = false};

	hf_kubelet_facts(kubelet, &facts);
	/* The pods of a manifest may all listen on the same port number, as the pods of a TFJob do, so they keep
	 * their networks. */
	needed = input->script && facts.pod_network && !facts.uplink;
	change.host_network = facts.pod_network && (asked || needed);
	if (input->script && (change.host_network || !facts.pod_network))
		change.port = find_free_port();
	if (change.host_network || change.port > 0)
		hf_run_template_apply(&change, &input->manifest);
	if (!change.host_network)
		return NULL;
	return hf_xasprintf(
		"ranks share this machine's network, so a port that they open is open here%s%s",
		asked ? " (--network host)" : ", because ", asked ? "" : facts.uplink_why);
}

/* True if the list of a container's variables has this one. */
static bool has_variable(const struct hf_json *list, const char *name, size_t len)
{
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const char *other = hf_json_path_str(hf_json_item(list, i), "name", NULL);

		if (other != NULL && strlen(other) == len && memcmp(other, name, len) == 0)
			return true;
	}
	return false;
}

char *hf_run_input_replaced(struct hf_run_input *input, const struct hf_json *pod)
{
	const struct hf_json *list =
		hf_json_get(hf_json_item(hf_json_path(pod, "spec", "containers", NULL), 0), "env");
	HF_AUTO_STRBUF names = HF_STRBUF_INIT(RANKS_BYTES_MAX);
	size_t n = 0;

	if (input->told_replaced)
		return NULL;
	input->told_replaced = true;
	/* hf_run_input_place has removed these variables from the templates, so the operator has set
	 * those that the pod has. */
	for (size_t i = 0; i < input->env.n_given; i++) {
		const char *item = input->env.given[i];

		if (has_variable(list, item, strcspn(item, "=")))
			hf_strbuf_addf(&names, "%s%.*s", n++ > 0 ? ", " : "",
				       (int)strcspn(item, "="), item);
	}
	if (n == 0)
		return NULL;
	return hf_xasprintf("--env %s has no effect: Holdfast sets %s for each rank of a %s",
			    names.data, n == 1 ? "this variable" : "these variables",
			    input->manifest.framework->kind);
}

void hf_run_input_describe(const struct hf_run_input *input, struct hf_strbuf *sb)
{
	HF_AUTOFREE char *cwd = getcwd(NULL, 0);
	bool gpus = hf_job_wants_gpus(input->manifest.framework, hf_doc_json(input->manifest.doc));

	hf_strbuf_addf(sb, "ranks get folder %s and ", hf_str_or(cwd, "/"));
	if (input->script) {
		if (input->env.n_passed == 1)
			hf_strbuf_addstr(sb, "the one variable of the shell");
		else
			hf_strbuf_addf(sb, "all %zu variables of the shell", input->env.n_passed);
		hf_strbuf_addstr(sb, gpus ? ", and a GPU each" : "");
	} else if (input->env.n_all == 0) {
		hf_strbuf_addstr(sb, "no variables of the shell (see --pass-env)");
	} else {
		for (size_t i = 0; i < input->env.n_all && i < NAMES_SHOWN; i++)
			hf_strbuf_addf(sb, "%s%.*s", i > 0 ? ", " : "",
				       (int)strcspn(input->env.all[i], "="), input->env.all[i]);
		if (input->env.n_all > NAMES_SHOWN)
			hf_strbuf_addf(sb, " and %zu more variables",
				       input->env.n_all - NAMES_SHOWN);
	}
}
