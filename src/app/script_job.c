/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Makes the job of `run train.py`, `run --module pkg.train` and `run -- CMD`. Input: the words and
 * flags of the command line. Output: a checked manifest. */
#include "app/script_job.h"

#include "app/job_resources.h"
#include "app/local_gpus.h"
#include "base/ascii.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"
#include "framework/framework.h"
#include "json/yaml_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 256 /* of a program that are looked at; the kernel looks at as many */
#define NAME_LEN_MAX 40
#define SCRIPT_BYTES_MAX ((size_t)16 << 20) /* size from which a script is not checked for UTF-8 */
#define WORD_BYTES_MAX ((size_t)256 << 10)
#define MANIFEST_TEXT_MAX ((size_t)4 << 20)

#define ONE_MACHINE                                                                                \
	"leave it out, because 'holdfast run' uses this machine; --nproc N starts N ranks"

/* Flags of torchrun, accelerate, DeepSpeed and mpirun. */
const struct hf_cli_foreign hf_script_foreign_flags[] = {
	{"nproc-per-node", "--nproc N starts N ranks"},
	{"num-processes", "--nproc N starts N ranks"},
	{"num-gpus", "--nproc N starts N ranks, and --gpus chooses GPUs"},
	{"np", "--nproc N starts N ranks"},
	{"nnodes", ONE_MACHINE},
	{"num-machines", ONE_MACHINE},
	{"node-rank", ONE_MACHINE},
	{"standalone", ONE_MACHINE},
	{"rdzv-backend", ONE_MACHINE},
	{"rdzv-endpoint", ONE_MACHINE},
	{"master-addr", "leave it out, because Holdfast sets MASTER_ADDR and MASTER_PORT"},
	{"master-port", "leave it out, because Holdfast sets MASTER_ADDR and MASTER_PORT"},
	{NULL, NULL},
};

/* ---- what to run ------------------------------------------------------------------------------ */

static bool has_suffix(const char *text, const char *suffix)
{
	size_t len = strlen(text), end = strlen(suffix);

	return len > end && hf_streq(text + len - end, suffix);
}

static bool is_manifest_name(const char *word)
{
	return hf_streq(word, "-") || has_suffix(word, ".yaml") || has_suffix(word, ".yml") ||
	       has_suffix(word, ".json");
}

/* True if a program of this name is in $PATH. */
static bool is_in_path(const char *name)
{
	HF_AUTOFREE char *path = hf_xstrdup(hf_str_or(getenv("PATH"), "/usr/bin:/bin"));
	char *rest = path, *dir;

	while ((dir = strsep(&rest, ":")) != NULL) {
		HF_AUTOFREE char *file = hf_xasprintf("%s/%s", dir[0] != '\0' ? dir : ".", name);

		if (access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* True for "python3 train.py" without "--" before it. No manifest has such a name. */
static bool is_command_name(const char *word)
{
	struct stat st;

	return strchr(word, '/') == NULL && !is_manifest_name(word) && stat(word, &st) != 0 &&
	       is_in_path(word);
}

bool hf_script_is_program(const struct hf_cli *cli, const char *word, bool literal)
{
	struct stat st;

	if (literal || hf_cli_has(cli, "module") || has_suffix(word, ".py"))
		return true;
	return (!is_manifest_name(word) && stat(word, &st) == 0 && S_ISREG(st.st_mode) &&
		access(word, X_OK) == 0) ||
	       is_command_name(word);
}

/* Reads the first bytes of a file. Returns their number; 0: the file is empty or cannot be read. */
static size_t read_head(const char *path, char head[HEAD_BYTES])
{
	FILE *file = fopen(path, "re");
	size_t n = file != NULL ? fread(head, 1, HEAD_BYTES - 1, file) : 0;

	if (file != NULL)
		(void)fclose(file);
	head[n] = '\0';
	return n;
}

int hf_script_check_manifest(struct hf_cli *cli, const char *word)
{
	char head[HEAD_BYTES];
	size_t n;

	if (is_manifest_name(word))
		return 0;
	n = read_head(word, head);
	if (!hf_str_has_prefix(head, "#!") && !has_suffix(word, ".sh") &&
	    (n == 0 || memchr(head, '\0', n) == NULL))
		return 0;
	return hf_cli_usage(cli,
			    "'%s' is a program and is not executable: chmod +x %s, or name its "
			    "interpreter behind --, such as -- sh %s",
			    word, word, word);
}

/* True if one of the first two lines of a script names its encoding (PEP 263). */
static bool names_encoding(const struct hf_strbuf *text)
{
	size_t end = strcspn(text->data, "\n");
	const char *found = memmem(text->data, text->len, "coding", 6);

	if (end < text->len)
		end += 1 + strcspn(text->data + end + 1, "\n");
	return found != NULL && found < text->data + end;
}

static int check_script(struct hf_cli *cli, const char *path)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(SCRIPT_BYTES_MAX);
	struct hf_error err;
	struct stat st;
	int rc;

	if (stat(path, &st) != 0)
		return hf_cli_usage(cli, "the script '%s' cannot be read: %s", path,
				    strerror(errno));
	if (!S_ISREG(st.st_mode))
		return hf_cli_usage(cli, "'%s' is %s, not a script", path,
				    S_ISDIR(st.st_mode) ? "a folder" : "a special file");
	rc = hf_fs_read_regular(path, &text, &err);
	if (rc == HF_E_TOO_LARGE)
		return 0;
	if (rc != 0)
		return hf_cli_usage(cli, "the script '%s' cannot be read: %s", path, err.text);
	if (text.len == 0)
		return hf_cli_usage(cli, "the script '%s' is empty", path);
	if (!hf_utf8_valid(text.data, text.len) && !names_encoding(&text))
		return hf_cli_usage(
			cli,
			"the script '%s' is not UTF-8, and Python would refuse it; save "
			"it as UTF-8",
			path);
	return 0;
}

/* Adds a word to the command of the container. The kubelet replaces $(NAME) and $$ in a command,
 * so these are escaped. */
static int add_word(struct hf_cli *cli, struct hf_json *command, const char *word)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(WORD_BYTES_MAX);

	if (!hf_utf8_valid(word, strlen(word)))
		return hf_cli_usage(cli, "an argument of the program is not UTF-8");
	for (const char *at = word; *at != '\0'; at++) {
		if (*at == '$' && (at[1] == '$' || at[1] == '('))
			hf_strbuf_addch(&text, '$');
		hf_strbuf_addch(&text, *at);
	}
	if (text.full)
		return hf_cli_usage(cli, "an argument of the program is longer than %zu KiB",
				    WORD_BYTES_MAX >> 10);
	hf_json_append(command, hf_json_string(text.data));
	return 0;
}

static int add_python(struct hf_cli *cli, struct hf_json *command, bool module)
{
	const char *python = is_in_path("python3") ? "python3" : "python";

	if (!is_in_path(python))
		return hf_cli_usage(cli, "no python3 is in PATH: activate the environment of the "
					 "script, or give the whole command behind --");
	hf_json_append(command, hf_json_string(python));
	hf_json_append(command, hf_json_string("-u"));
	if (module)
		hf_json_append(command, hf_json_string("-m"));
	return 0;
}

/* Checks the interpreter of a script: the first line is "#!/bin/sh -e". */
static int check_interpreter(struct hf_cli *cli, const char *word, char *line)
{
	char *name = line + 2 + strspn(line + 2, " \t");
	size_t len = strcspn(line, "\n");
	bool windows = len > 0 && line[len - 1] == '\r';

	line[len] = '\0';
	if (windows)
		return hf_cli_usage(cli,
				    "the program '%s' cannot be started: its lines end with CRLF, "
				    "so its interpreter is not found; save it with LF (sed -i "
				    "'s/\\r$//' %s)",
				    word, word);
	name[strcspn(name, " \t")] = '\0';
	if (access(name, X_OK) == 0)
		return 0;
	return hf_cli_usage(cli,
			    "the program '%s' cannot be started: its first line names the "
			    "interpreter '%s': %s",
			    word, name, strerror(errno));
}

/* Checks that the kernel can start the file: a binary, or a text with an interpreter. */
static int check_format(struct hf_cli *cli, const char *word)
{
	char head[HEAD_BYTES];
	size_t n = read_head(word, head);

	if (n == 0 && access(word, R_OK) == 0)
		return hf_cli_usage(cli, "the program '%s' cannot be started: it is empty", word);
	if (hf_str_has_prefix(head, "#!"))
		return check_interpreter(cli, word, head);
	/* A file with other bytes than text may be a binary of any format (binfmt_misc). */
	if (n == 0 || memchr(head, '\0', n) != NULL || !hf_utf8_valid(head, strcspn(head, "\n")))
		return 0;
	return hf_cli_usage(
		cli,
		"the program '%s' cannot be started: its first line names no "
		"interpreter; begin the file with '#!/bin/sh', or run it with: -- sh %s",
		word, word);
}

/* Checks that the command can be started. A name with a "/" is relative to the working folder;
 * other names are searched in PATH. */
static int check_command(struct hf_cli *cli, const char *word)
{
	struct stat st;

	if (strchr(word, '/') == NULL && is_in_path(word))
		return 0;
	if (strchr(word, '/') == NULL)
		return hf_cli_usage(cli, "no program '%s' is in PATH", word);
	if (stat(word, &st) != 0)
		return hf_cli_usage(cli, "the program '%s' cannot be started: %s", word,
				    strerror(errno));
	if (!S_ISREG(st.st_mode))
		return hf_cli_usage(cli, "the program '%s' cannot be started: it is not a file",
				    word);
	if (access(word, X_OK) != 0)
		return hf_cli_usage(cli,
				    "the program '%s' cannot be started: it is not executable "
				    "(chmod +x)",
				    word);
	return check_format(cli, word);
}

/* Makes the command of the ranks. */
static int make_command(struct hf_cli *cli, struct hf_json *command)
{
	const char *word = cli->args[0];
	bool module = hf_cli_has(cli, "module");
	int rc = 0, from = 0;

	if (module) {
		rc = add_python(cli, command, true);
	} else if (!cli->literal && has_suffix(word, ".py")) {
		rc = check_script(cli, word);
		if (rc == 0)
			rc = add_python(cli, command, false);
	} else if (!cli->literal && is_command_name(word)) {
		return hf_cli_usage(cli,
				    "'%s' is a program in PATH and not a file of this folder: "
				    "write -- before it, as in 'holdfast run -- %s%s'",
				    word, word, cli->n_args > 1 ? " ..." : "");
	} else if (!cli->literal && strchr(word, '/') == NULL) {
		/* The word names a file of the working folder; "./" keeps it from being searched
		 * in PATH. */
		HF_AUTOFREE char *path = hf_xasprintf("./%s", word);

		rc = check_command(cli, path);
		if (rc == 0)
			rc = add_word(cli, command, path);
		from = 1;
	} else {
		rc = check_command(cli, word);
	}
	for (int i = from; rc == 0 && i < cli->n_args; i++)
		rc = add_word(cli, command, cli->args[i]);
	return rc;
}

/* ---- the job ----------------------------------------------------------------------------------- */

/* Returns the part of "dir/Train_Model.py" or "pkg.train" that names the job: "Train_Model",
 * "train". */
static char *find_stem(const char *word, bool module)
{
	const char *slash = strrchr(word, '/');
	const char *dot = strrchr(word, '.');
	size_t len;

	if (module)
		return hf_xstrdup(dot != NULL ? dot + 1 : word);
	word = slash != NULL ? slash + 1 : word;
	len = strlen(word);
	return hf_xstrndup(word, has_suffix(word, ".py") ? len - strlen(".py") : len);
}

static bool is_launcher(const char *word)
{
	static const char *const names[] = {"torchrun", "accelerate", "deepspeed"};
	const char *slash = strrchr(word, '/');

	word = slash != NULL ? slash + 1 : word;
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (hf_streq(word, names[i]))
			return true;
	return hf_str_has_prefix(word, "python");
}

/* Finds the word that names the job: of "torchrun --nproc-per-node 2 train.py" and "python3 -m pkg.train", the script
 * or the module; of other commands the first word. Sets *ret_module. */
static const char *find_program(const struct hf_cli *cli, bool *ret_module)
{
	*ret_module = hf_cli_has(cli, "module");
	if (*ret_module || !is_launcher(cli->args[0]))
		return cli->args[0];
	for (int i = 1; i < cli->n_args; i++) {
		if (has_suffix(cli->args[i], ".py"))
			return cli->args[i];
		if (i + 1 == cli->n_args ||
		    (!hf_streq(cli->args[i], "-m") && !hf_streq(cli->args[i], "--module")))
			continue;
		/* "python3 -m torch.distributed.run train.py" starts a launcher too. */
		if (hf_str_has_prefix(cli->args[i + 1], "torch.distributed.") ||
		    hf_str_has_prefix(cli->args[i + 1], "accelerate."))
			continue;
		*ret_module = true;
		return cli->args[i + 1];
	}
	return cli->args[0];
}

/* Makes a job's name from a script or module: "dir/Train_Model.py" becomes "train-model". */
static char *make_name(const char *word, bool module)
{
	HF_AUTOFREE char *stem = find_stem(word, module);
	char name[NAME_LEN_MAX + 1];
	size_t n = 0;

	for (const char *at = stem; *at != '\0' && n < NAME_LEN_MAX; at++) {
		char c = hf_ascii_to_lower(*at);

		if (hf_ascii_is_lower(c) || hf_ascii_is_digit(c))
			name[n++] = c;
		else if (n > 0 && name[n - 1] != '-')
			name[n++] = '-';
	}
	while (n > 0 && name[n - 1] == '-')
		n--;
	name[n] = '\0';
	if (n == 0)
		return hf_xstrdup("run");
	/* A job's name becomes the name of a Service, which must begin with a letter. */
	return hf_ascii_is_lower(name[0]) ? hf_xstrdup(name) : hf_xasprintf("run-%s", name);
}

static void set_variable(struct hf_json *env, const char *name, const char *value)
{
	struct hf_json *item = hf_json_object();

	hf_json_set_str(item, "name", name);
	hf_json_set_str(item, "value", value);
	hf_json_append(env, item);
}

/* Sets the variables that torchrun gives a process and the operator does not set. Each rank is
 * alone in its pod, so its local rank is 0. Libraries read the run ID to see that a launcher
 * started the ranks. GROUP_RANK and ROLE_RANK are missing: they differ by rank, and a template has
 * one value. */
static void set_variables(struct hf_json *env, const char *name, int64_t restarts)
{
	char limit[32];

	(void)snprintf(limit, sizeof(limit), "%lld", (long long)restarts);
	set_variable(env, "LOCAL_RANK", "0");
	set_variable(env, "LOCAL_WORLD_SIZE", "1");
	set_variable(env, "TORCHELASTIC_RUN_ID", name);
	set_variable(env, "TORCHELASTIC_MAX_RESTARTS", limit);
}

/* The program to run and the ranks to run it in: what make_job makes a job from. */
struct script {
	const char *name;
	const struct hf_json *command;
	int64_t nproc, restarts;
	int pods_max; /* that the node takes */
	const char *policy;
	/* the resource name of the GPU that each rank gets; NULL: ranks get no GPU */
	const char *gpu;
};

static void add_replicas(struct hf_json *specs, const char *type, int64_t replicas,
			 const struct script *script, struct hf_json *env)
{
	struct hf_json *spec = hf_json_ensure_object(specs, type);
	struct hf_json *pod =
		hf_json_ensure_object(hf_json_ensure_object(spec, "template"), "spec");
	struct hf_json *container = hf_json_object();

	hf_json_set_i64(spec, "replicas", replicas);
	hf_json_set_str(spec, "restartPolicy", script->policy);
	hf_json_set_str(container, "name", "pytorch");
	hf_json_set_str(container, "image", HF_SCRIPT_IMAGE);
	hf_json_set(container, "command", hf_json_copy(script->command));
	if (env != NULL)
		hf_json_set(container, "env", env);
	if (script->gpu != NULL)
		hf_json_set_i64(hf_json_ensure_object(hf_json_ensure_object(container, "resources"),
						      "limits"),
				script->gpu, 1);
	hf_json_append(hf_json_ensure_array(pod, "containers"), container);
}

static struct hf_json *make_job(const struct script *script)
{
	struct hf_json *job = hf_json_object();
	struct hf_json *spec, *run_policy, *specs;

	hf_json_set_str(job, "apiVersion", "kubeflow.org/v1");
	hf_json_set_str(job, "kind", "PyTorchJob");
	hf_json_set_str(hf_json_ensure_object(job, "metadata"), "name", script->name);
	spec = hf_json_ensure_object(job, "spec");
	run_policy = hf_json_ensure_object(spec, "runPolicy");
	hf_json_set_i64(run_policy, "backoffLimit", script->restarts);
	/* The ranks of a process group cannot admit a restarted rank, so after a failure all ranks
	 * restart together. */
	hf_json_set_str(hf_json_ensure_object(run_policy, "recovery"), "restartScope", "Job");
	specs = hf_json_ensure_object(spec, "pytorchReplicaSpecs");
	for (int worker = 0; worker <= (script->nproc > 1); worker++) {
		struct hf_json *env = hf_json_array();

		set_variables(env, script->name, script->restarts);
		add_replicas(specs, worker ? "Worker" : "Master", worker ? script->nproc - 1 : 1,
			     script, env);
	}
	return job;
}

/* ---- how many ranks ------------------------------------------------------------------------------ */

static int64_t limit_ranks(int64_t n, int most)
{
	return n < 1 ? 1 : n > most ? most : n;
}

/* Checks the number of ranks of --nproc against the GPUs: each rank needs a GPU of its own. With
 * --fit, lowers the number. */
static int fit_ranks(struct hf_cli *cli, struct script *script, int64_t gpus,
		     struct hf_strbuf *note)
{
	if (script->gpu == NULL || script->nproc <= gpus)
		return 0;
	if (!hf_cli_has(cli, "fit"))
		return hf_cli_usage(
			cli,
			"--nproc %lld, and this machine has %lld %s, one for each rank: "
			"--gpus none runs the ranks without GPUs, and --fit runs %lld",
			(long long)script->nproc, (long long)gpus, script->gpu, (long long)gpus);
	hf_strbuf_addf(note,
		       "--fit: %lld ranks instead of %lld, because this machine has %lld %s\n",
		       (long long)gpus, (long long)script->nproc, (long long)gpus, script->gpu);
	script->nproc = gpus;
	return 0;
}

/* Reads a number of --nproc. most: how many pods the node takes. */
static int read_number(struct hf_cli *cli, const char *nproc, int most, int64_t *ret_nproc)
{
	struct hf_error err;

	if (hf_str_to_i64(nproc, 1, HF_MAX_PODS_LIMIT, ret_nproc, &err) != 0)
		return hf_cli_usage(cli, "--nproc takes auto, gpu, cpu or a number: %s", err.text);
	if (*ret_nproc > most)
		return hf_cli_usage(
			cli,
			"--nproc %lld: a node takes %d pods, as in Kubernetes; --max-pods "
			"%lld raises the limit",
			(long long)*ret_nproc, most, (long long)*ret_nproc);
	return 0;
}

/* Checks that this machine has the GPUs of --gpus. With --fit, fewer are enough. */
static int check_gpus_flag(struct hf_cli *cli, const struct hf_local_gpus *found,
			   struct hf_strbuf *note)
{
	const char *flag = hf_cli_flag(cli, "gpus");
	int64_t named = hf_local_gpus_named(cli), have = found->nvidia + found->amd;
	const char *colon = found->why[0] != '\0' ? ": " : "";

	if (hf_streq(flag, "all") && have == 0)
		hf_strbuf_addf(note,
			       "note: --gpus all: this machine has no GPU for the ranks%s%s\n",
			       colon, found->why);
	if (named <= have)
		return 0;
	if (!hf_cli_has(cli, "fit"))
		return hf_cli_usage(
			cli,
			"--gpus %s names %lld GPU%s, and this machine has %lld of them%s%s; "
			"--gpus none runs the program without GPUs",
			flag, (long long)named, named == 1 ? "" : "s", (long long)have, colon,
			found->why);
	hf_strbuf_addf(note,
		       "--fit: this machine has %lld of the %lld GPUs that --gpus names%s%s\n",
		       (long long)have, (long long)named, colon, found->why);
	return 0;
}

/* Counts the GPUs for the ranks. */
static int find_gpus(struct hf_cli *cli, struct script *script, struct hf_strbuf *note,
		     int64_t *ret_gpus)
{
	const char *nproc = hf_str_or(hf_cli_flag(cli, "nproc"), "");
	struct hf_local_gpus found;

	*ret_gpus = 0;
	/* With `--nproc cpu` the number of GPUs does not matter. So do not count them: to start
	 * NVML (NVIDIA's library) may take seconds. */
	if (hf_streq(nproc, "cpu"))
		return 0;
	found = hf_local_gpus_count(cli);
	if (cli->starts_helpers && check_gpus_flag(cli, &found, note) != 0)
		return HF_EXIT_USAGE;
	*ret_gpus = found.nvidia > 0 ? found.nvidia : found.amd;
	if (*ret_gpus > 0)
		script->gpu = found.nvidia > 0 ? "nvidia.com/gpu" : "amd.com/gpu";
	else if (hf_streq(nproc, "gpu"))
		return hf_cli_usage(cli, "--nproc gpu: this machine has no GPU for the ranks%s%s",
				    found.why[0] != '\0' ? ": " : "", found.why);
	return 0;
}

static int find_ranks(struct hf_cli *cli, struct script *script, struct hf_strbuf *note)
{
	const char *nproc = hf_str_or(hf_cli_flag(cli, "nproc"), "");
	int64_t gpus;
	int most = script->pods_max;

	if (find_gpus(cli, script, note, &gpus) != 0)
		return HF_EXIT_USAGE;
	if (hf_streq(nproc, "cpu") || (hf_streq(nproc, "auto") && gpus == 0)) {
		script->nproc = limit_ranks(sysconf(_SC_NPROCESSORS_ONLN), most);
		return 0;
	}
	if (*nproc == '\0' || hf_streq(nproc, "gpu") || hf_streq(nproc, "auto")) {
		script->nproc = limit_ranks(gpus, most);
		return 0;
	}
	if (read_number(cli, nproc, most, &script->nproc) != 0)
		return HF_EXIT_USAGE;
	return fit_ranks(cli, script, gpus, note);
}

int hf_script_job_make(struct hf_cli *cli, struct hf_manifest *ret_manifest, int64_t *ret_nproc,
		       struct hf_strbuf *note)
{
	const char *restarts_text = hf_cli_flag(cli, "max-restarts");
	HF_AUTO_JSON command = hf_json_array();
	HF_AUTOFREE char *name = NULL;
	const char *program;
	bool module;
	struct script script = {.command = command,
				.restarts = HF_SCRIPT_RESTARTS,
				.policy = restarts_text != NULL ? "OnFailure" : "ExitCode"};
	struct hf_error err;

	if (restarts_text != NULL &&
	    hf_str_to_i64(restarts_text, 0, INT32_MAX, &script.restarts, &err) != 0)
		return hf_cli_usage(cli, "--max-restarts: %s", err.text);
	program = find_program(cli, &module);
	if (hf_max_pods_read(cli, &script.pods_max) != 0 || make_command(cli, command) != 0 ||
	    find_ranks(cli, &script, note) != 0)
		return HF_EXIT_USAGE;
	script.name = name = make_name(program, module);
	ret_manifest->doc = hf_doc_from_json(make_job(&script));
	ret_manifest->framework = hf_framework_by_kind("kubeflow.org/v1", "PyTorchJob");
	*ret_nproc = script.nproc;
	return 0;
}

int hf_script_job_print(struct hf_cli *cli, const struct hf_manifest *manifest)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(MANIFEST_TEXT_MAX);
	struct hf_error err;

	hf_yaml_write(hf_doc_json(manifest->doc), &text);
	if (hf_strbuf_ok(&text, "the manifest", &err) != 0)
		return hf_cli_fail(cli, &err);
	fprintf(cli->out,
		"# Made by 'holdfast run'. For a cluster, set the image (it needs the program and what the "
		"program imports),\n# then: kubectl apply -f FILE\n%s",
		text.data);
	return HF_EXIT_OK;
}
