/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "base/str.h"

/*
 * recovery.exec: Inject, and recovery.logRules.  Input: the job and the role of a pod.  Output: edits that run the command
 * of the kind's own container under `holdfast exec`:
 *
 * - an init container of Holdfast's image copies the static program `holdfast-exec` into an emptyDir;
 * - the own container mounts that volume, and the folder of the node's agent, both read-only;
 * - the words of `holdfast-exec` stand before the container's command.
 *
 * If every pod has the program already (the embedded plane), the words alone suffice.  Rules are a variable of the own
 * container.
 */

#define CONTAINER "holdfast-exec"
#define PROGRAM_VOLUME "holdfast-exec"
#define AGENT_VOLUME "holdfast-agent"
#define PROGRAM_DIR "/holdfast/bin"
#define PROGRAM PROGRAM_DIR "/holdfast-exec"
#define AGENT_DIR "/holdfast/run"
/* The agent's flag --report-socket has this folder as its default. */
#define NODE_DIR "/run/holdfast"
#define AGENT_SOCKET_ENV "HOLDFAST_AGENT_SOCKET"

static void add_copier(const struct hf_settings *settings, struct hf_edits *edits)
{
	static const char *const command[] = {"holdfast-exec", "--copy-to", PROGRAM};
	/* Limits equal to requests keep a Guaranteed pod Guaranteed. */
	static const struct hf_key_value resources[] = {{"cpu", "50m"}, {"memory", "32Mi"}};
	static const struct hf_key_value mounts[] = {{PROGRAM_VOLUME, PROGRAM_DIR}};
	struct hf_container_build *build = HF_ARENA_NEW(edits->arena, struct hf_container_build);
	struct hf_edit edit = {.kind = HF_EDIT_INIT_CONTAINER, .add = build};

	*build = (struct hf_container_build){
		.name = CONTAINER,
		.image = settings->exec_image,
		.image_pull_policy = "IfNotPresent",
		.command = command,
		.command_len = HF_ARRAY_LEN(command),
		.limits = resources,
		.limits_len = HF_ARRAY_LEN(resources),
		.requests = resources,
		.requests_len = HF_ARRAY_LEN(resources),
		.mounts = mounts,
		.mounts_len = HF_ARRAY_LEN(mounts),
		.restricted = true,
	};
	hf_edits_add(edits, &edit);
}

static void add_mount(struct hf_edits *edits, int container, const char *volume, const char *path)
{
	struct hf_edit edit = {.kind = HF_EDIT_MOUNT,
			       .container = container,
			       .name = volume,
			       .value = path,
			       .number = 1};

	hf_edits_add(edits, &edit);
}

static void add_volumes(const struct hf_settings *settings, struct hf_edits *edits)
{
	struct hf_edit program = {.kind = HF_EDIT_VOLUME_EMPTY, .name = PROGRAM_VOLUME};
	struct hf_edit agent = {
		.kind = HF_EDIT_VOLUME_HOST, .name = AGENT_VOLUME, .value = NODE_DIR};

	if (settings->exec_csi_driver) {
		agent.kind = HF_EDIT_VOLUME_CSI;
		agent.value = settings->exec_csi_driver;
	}
	hf_edits_add(edits, &program);
	hf_edits_add(edits, &agent);
}

static void put_before_command(struct hf_edits *edits, int container, const char *const *words,
			       size_t len)
{
	struct hf_edit edit = {.kind = HF_EDIT_COMMAND_BEFORE,
			       .container = container,
			       .words = words,
			       .words_len = len};

	hf_edits_add(edits, &edit);
}

/* An agent tells exec of later starts.  The first start must not depend on it: the agent may be silent. */
static void tell_first_start(const struct hf_rank *rank, int container, struct hf_edits *edits)
{
	hf_edits_env(edits, container, HF_GENERATION_ENV, "%lld", (long long)rank->generation);
	hf_edits_env(edits, container, HF_ATTEMPT_ENV, "%lld", (long long)rank->attempt);
}

static void inject_program(const struct hf_job *job, const struct hf_rank *rank,
			   struct hf_edits *edits)
{
	static const char *const copied[] = {PROGRAM, "--"};
	const char **words = HF_ARENA_ARRAY(edits->arena, const char *, 3);
	int container = (int)job->roles[rank->role].default_container;

	if (job->settings->exec_program) {
		words[0] = job->settings->exec_program;
		words[1] = "exec";
		words[2] = "--";
		put_before_command(edits, container, words, 3);
		tell_first_start(rank, container, edits);
		return;
	}
	add_copier(job->settings, edits);
	put_before_command(edits, container, copied, HF_ARRAY_LEN(copied));
	hf_edits_env(edits, container, AGENT_SOCKET_ENV, AGENT_DIR "/agent.sock");
	tell_first_start(rank, container, edits);
	add_mount(edits, container, PROGRAM_VOLUME, PROGRAM_DIR);
	add_mount(edits, container, AGENT_VOLUME, AGENT_DIR);
	add_volumes(job->settings, edits);
}

/* The job has begun, so validation did not hold it. */
static int refuse_image_command(const struct hf_job *job, int role, struct hf_error *err)
{
	return hf_error_set(err, HF_E_INVALID,
			    "recovery.exec is Inject, and container %zu of spec.%s[%s] has no "
			    "command to put holdfast exec before",
			    job->roles[role].default_container, job->framework->replicas_key,
			    job->framework->roles[role].name);
}

/* Adds the log rules also without injection: the user may have put exec before the command. */
static int add_log_rules(const struct hf_job *job, int container, struct hf_edits *edits,
			 struct hf_error *err)
{
	const struct hf_recovery *recovery = &job->recovery;

	if (recovery->log_rule_error) {
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);

		hf_field_error_write(recovery->log_rule_error, &text);
		return hf_error_set(err, HF_E_INVALID, "%s", text.data);
	}
	if (recovery->log_rules)
		hf_edits_env_text(edits, container, HF_LOG_RULES_ENV, recovery->log_rules);
	return 0;
}

int hf_inject_exec(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		   struct hf_error *err)
{
	int role = rank->role;
	const struct hf_role *spec = &job->roles[role];
	bool own = job->view->run_policy.recovery.exec != NULL;

	hf_assert(spec->present);
	if (hf_has_role(job->framework->no_exec_roles, role) || spec->pod->containers_len == 0)
		return 0;
	if (add_log_rules(job, (int)spec->default_container, edits, err) < 0)
		return err->code;
	if (!job->recovery.inject_exec)
		return 0;
	if (!spec->pod->containers[spec->default_container].has_command)
		/* A default of the cluster is for jobs that can follow it. */
		return own ? refuse_image_command(job, role, err) : 0;
	if (!job->settings->exec_program && hf_str_is_empty(job->settings->exec_image))
		return hf_error_set(
			err, HF_E_INVALID,
			"recovery.exec is Inject, and the operator does not know an image "
			"with holdfast-exec: start it with --exec-image");
	inject_program(job, rank, edits);
	return 0;
}
