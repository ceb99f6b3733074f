/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * MPIJob. The Launcher runs mpirun, which starts processes on the Workers by `kubectl exec`. A
 * Worker without a command sleeps until then.
 *
 * So the job needs no services. It needs a ConfigMap with the hosts and the remote shell, and a
 * ServiceAccount, a Role and a RoleBinding that permit the exec. When the Launcher succeeds or
 * fails, so does the job.
 */
#include "framework/framework.h"
#include "framework/mpi_wire_internal.h"
#include "framework/replicas_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

enum { LAUNCHER, WORKER };

#define RBAC_GROUP "rbac.authorization.k8s.io"

/* ---- validation and defaults ---------------------------------------------------------------- */

static void mpi_validate(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	static const struct hf_replicas_rules rules = {.known_types_only = true,
						       .single_role = LAUNCHER,
						       .single_by_default = true,
						       .required_role = LAUNCHER,
						       .any_container = true};

	hf_replicas_validate(view, &rules, errors);
}

/* Takes over spec.cleanPodPolicy, unless spec.runPolicy.cleanPodPolicy is set. core has read the
 * latter already. */
static void mpi_defaults(struct hf_arena *arena HF_UNUSED, struct hf_job *job)
{
	const char *clean = job->view->spec_clean;

	hf_assert(job->framework == &hf_framework_mpi);
	if (!job->view->run_policy.clean_pod_policy && clean)
		job->clean = hf_clean_parse(clean);
}

/* ---- facts of the spec ------------------------------------------------------------------------ */

static int64_t slots_per_worker(const struct hf_job *job)
{
	return job->view->slots.set ? job->view->slots.value : 1;
}

/* True if the launcher requests GPUs; then the launcher is a host too. */
static bool is_launcher_host(const struct hf_job *job)
{
	const struct hf_template *pod = job->roles[LAUNCHER].pod;

	for (size_t i = 0; job->roles[LAUNCHER].present && i < pod->containers_len; i++)
		for (size_t k = 0; k < pod->containers[i].limits_len; k++)
			if (strstr(pod->containers[i].limits[k], "gpu"))
				return true;
	return false;
}

static const char *account_name(const struct hf_job *job, struct hf_arena *arena)
{
	const char *name =
		job->roles[LAUNCHER].present ? job->roles[LAUNCHER].pod->service_account : NULL;

	return hf_str_is_empty(name) ? hf_mpi_launcher(arena, job->view->name) : name;
}

static bool has_variable(const struct hf_container *container, const char *name)
{
	for (size_t i = 0; i < container->env_len; i++)
		if (hf_streq(container->env[i], name))
			return true;
	return false;
}

/* ---- pods --------------------------------------------------------------------------------------- */

static void mount_volume(struct hf_edits *edits, const char *volume, const char *path)
{
	struct hf_edit edit = {.kind = HF_EDIT_MOUNT, .name = volume, .value = path};

	hf_edits_add(edits, &edit);
}

static void mount_config(const struct hf_job *job, struct hf_edits *edits,
			 const struct hf_config_file *files, size_t files_len)
{
	struct hf_edit edit = {.kind = HF_EDIT_VOLUME_CONFIG,
			       .name = MPI_CONFIG_VOLUME,
			       .value = hf_mpi_config(edits->arena, job->view->name),
			       .files = files,
			       .files_len = files_len};

	hf_edits_add(edits, &edit);
}

static void set_up_worker(const struct hf_job *job, struct hf_edits *edits)
{
	/* The remote shell, which Open MPI expects on every host. */
	static const struct hf_config_file files[] = {{MPI_KUBEXEC, 0555}};
	static const struct hf_edit sleep_for_ever[] = {
		{.kind = HF_EDIT_COMMAND, .value = "sleep"},
		{.kind = HF_EDIT_ARGS, .value = "365d"},
	};

	for (size_t i = 0;
	     !job->roles[WORKER].pod->containers[0].has_command && i < HF_ARRAY_LEN(sleep_for_ever);
	     i++)
		hf_edits_add(edits, &sleep_for_ever[i]);
	mount_volume(edits, MPI_CONFIG_VOLUME, MPI_CONFIG_PATH);
	mount_config(job, edits, files, HF_ARRAY_LEN(files));
}

static void add_kubectl_container(const struct hf_job *job, struct hf_edits *edits)
{
	static const struct hf_key_value resources[] = {
		{"cpu", "100m"}, {"memory", "512Mi"}, {"ephemeral-storage", "5Gi"}};
	static const struct hf_key_value mounts[] = {{MPI_KUBECTL_VOLUME, MPI_KUBECTL_PATH},
						     {MPI_CONFIG_VOLUME, MPI_CONFIG_PATH}};
	struct hf_container_build *build = HF_ARENA_NEW(edits->arena, struct hf_container_build);
	struct hf_key_value *env = HF_ARENA_ARRAY(edits->arena, struct hf_key_value, 2);
	struct hf_edit edit = {.kind = HF_EDIT_INIT_CONTAINER, .add = build};

	env[0] = (struct hf_key_value){"TARGET_DIR", MPI_KUBECTL_PATH};
	env[1] = (struct hf_key_value){"NAMESPACE", hf_str_or(job->view->ns, "")};
	*build = (struct hf_container_build){
		.name = MPI_KUBECTL_CONTAINER,
		.image = hf_str_or(job->settings->kubectl_image, MPI_KUBECTL_IMAGE),
		.image_pull_policy = "IfNotPresent",
		.limits = resources,
		.limits_len = HF_ARRAY_LEN(resources),
		.requests = resources,
		.requests_len = HF_ARRAY_LEN(resources),
		.env = env,
		.env_len = 2,
		.mounts = mounts,
		.mounts_len = HF_ARRAY_LEN(mounts),
	};
	hf_edits_add(edits, &edit);
}

/* Sets variables of the first container. They come after the user's variables, so they win. */
static void set_launcher_env(const struct hf_job *job, struct hf_edits *edits)
{
	const struct hf_container *container = &job->roles[LAUNCHER].pod->containers[0];
	static const char kubexec[] = MPI_CONFIG_PATH "/" MPI_KUBEXEC;

	hf_edits_env(edits, 0, "OMPI_MCA_plm_rsh_agent", "%s", kubexec);
	hf_edits_env(edits, 0, "OMPI_MCA_orte_default_hostfile", "%s",
		     MPI_CONFIG_PATH "/" MPI_HOSTFILE);
	/* Hide the node's GPUs: a launcher that requests no GPU could use them otherwise. */
	if (!is_launcher_host(job)) {
		hf_edits_env(edits, 0, "NVIDIA_VISIBLE_DEVICES", "%s", "");
		hf_edits_env(edits, 0, "NVIDIA_DRIVER_CAPABILITIES", "%s", "");
	}
	if (!has_variable(container, "I_MPI_HYDRA_BOOTSTRAP"))
		hf_edits_env(edits, 0, "I_MPI_HYDRA_BOOTSTRAP", "%s", "rsh");
	if (!has_variable(container, "I_MPI_HYDRA_BOOTSTRAP_EXEC"))
		hf_edits_env(edits, 0, "I_MPI_HYDRA_BOOTSTRAP_EXEC", "%s", kubexec);
}

static void set_up_launcher(const struct hf_job *job, struct hf_edits *edits)
{
	static const struct hf_config_file files[] = {
		{MPI_KUBEXEC, 0555}, {MPI_HOSTFILE, 0444}, {MPI_DISCOVER_HOSTS, 0555}};
	struct hf_edit account = {.kind = HF_EDIT_SERVICE_ACCOUNT,
				  .value = account_name(job, edits->arena)};
	struct hf_edit kubectl = {.kind = HF_EDIT_VOLUME_EMPTY, .name = MPI_KUBECTL_VOLUME};

	if (hf_str_is_empty(job->roles[LAUNCHER].pod->service_account))
		hf_edits_add(edits, &account);
	add_kubectl_container(job, edits);
	set_launcher_env(job, edits);
	mount_volume(edits, MPI_KUBECTL_VOLUME, MPI_KUBECTL_PATH);
	mount_volume(edits, MPI_CONFIG_VOLUME, MPI_CONFIG_PATH);
	hf_edits_add(edits, &kubectl);
	mount_config(job, edits, files, HF_ARRAY_LEN(files));
}

static int mpi_pod(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		   struct hf_error *err)
{
	hf_assert(rank->role == LAUNCHER || rank->role == WORKER);
	if (job->roles[rank->role].pod->containers_len == 0)
		return hf_error_set(err, HF_E_INVALID, "spec.mpiReplicaSpecs[%s] has no container",
				    job->framework->roles[rank->role].name);
	if (rank->role == LAUNCHER)
		set_up_launcher(job, edits);
	else
		set_up_worker(job, edits);
	return 0;
}

static bool mpi_is_master(const struct hf_job *job, const struct hf_rank *rank)
{
	hf_assert(job->framework == &hf_framework_mpi);
	return rank->role == LAUNCHER;
}

/* ---- objects -------------------------------------------------------------------------------------- */

static struct hf_extra *add_object(const struct hf_job *job, struct hf_extras *extras,
				   enum hf_extra_kind kind, const char *name)
{
	struct hf_extra *extra = hf_extras_add(extras, kind, name);

	hf_extra_label(extras, extra, "app", job->view->name);
	return extra;
}

/* An existing ServiceAccount of this name is used, even if the job did not create it. If the
 * template now names another account, the account that the job created is deleted once the launcher
 * pod that used it is gone. */
static void add_account(const struct hf_job *job, const struct hf_ranks_seen *seen,
			struct hf_extras *extras)
{
	const char *own = hf_mpi_launcher(extras->arena, job->view->name);
	const char *name = account_name(job, extras->arena);
	bool used = job->roles[LAUNCHER].replicas > 0 && seen->states[LAUNCHER] &&
		    seen->states[LAUNCHER][0] != HF_RANK_ABSENT;

	add_object(job, extras, HF_EXTRA_SERVICE_ACCOUNT, name)->shared = true;
	if (!hf_streq(name, own) && !used)
		add_object(job, extras, HF_EXTRA_SERVICE_ACCOUNT, own)->gone = true;
}

static const char *print_running_hosts(const struct hf_job *job, const struct hf_ranks_seen *seen,
				       struct hf_arena *arena)
{
	int32_t replicas = job->roles[WORKER].replicas;
	const char **names = HF_ARENA_ARRAY(arena, const char *, (size_t)replicas + 1);
	size_t len = 0;

	for (int32_t i = 0; seen->states[WORKER] && i < replicas; i++)
		if (seen->states[WORKER][i] == HF_RANK_RUNNING)
			names[len++] = hf_replica_name(arena, job->view->name, "Worker", i);
	return hf_mpi_discover_hosts(arena, job->view->name, names, len, slots_per_worker(job),
				     is_launcher_host(job));
}

static void add_config(const struct hf_job *job, const struct hf_ranks_seen *seen,
		       struct hf_extras *extras)
{
	struct hf_arena *arena = extras->arena;
	const char *name = job->view->name;
	struct hf_extra *config =
		add_object(job, extras, HF_EXTRA_CONFIG_MAP, hf_mpi_config(arena, name));

	hf_extra_set(extras, config, "data/" MPI_HOSTFILE,
		     hf_mpi_hostfile(arena, name, job->roles[WORKER].replicas,
				     slots_per_worker(job), is_launcher_host(job)));
	hf_extra_set(extras, config, "data/" MPI_KUBEXEC,
		     hf_mpi_kubexec(arena, job->view->main_container));
	hf_extra_set(extras, config, "data/" MPI_DISCOVER_HOSTS,
		     print_running_hosts(job, seen, arena));
}

static void add_role(const struct hf_job *job, struct hf_extras *extras)
{
	static const char *const verbs[] = {"get", "list", "watch"};
	const char *name = job->view->name;
	struct hf_arena *arena = extras->arena;
	struct hf_extra *role =
		add_object(job, extras, HF_EXTRA_ROLE, hf_mpi_launcher(arena, name));

	for (size_t i = 0; i < HF_ARRAY_LEN(verbs); i++)
		hf_extra_set(extras, role, hf_arena_printf(arena, "rules/[0]/verbs/[%zu]", i),
			     verbs[i]);
	hf_extra_set(extras, role, "rules/[0]/apiGroups/[0]", "");
	hf_extra_set(extras, role, "rules/[0]/resources/[0]", "pods");
	/* A rule without resourceNames would permit exec into every pod of the namespace. */
	if (job->roles[WORKER].replicas == 0)
		return;
	hf_extra_set(extras, role, "rules/[1]/verbs/[0]", "create");
	hf_extra_set(extras, role, "rules/[1]/apiGroups/[0]", "");
	hf_extra_set(extras, role, "rules/[1]/resources/[0]", "pods/exec");
	for (int32_t i = 0; i < job->roles[WORKER].replicas; i++)
		hf_extra_set(extras, role,
			     hf_arena_printf(arena, "rules/[1]/resourceNames/[%d]", i),
			     hf_replica_name(arena, name, "Worker", i));
}

static void add_binding(const struct hf_job *job, struct hf_extras *extras)
{
	const char *name = hf_mpi_launcher(extras->arena, job->view->name);
	struct hf_extra *binding = add_object(job, extras, HF_EXTRA_ROLE_BINDING, name);

	hf_extra_set(extras, binding, "subjects/[0]/kind", "ServiceAccount");
	hf_extra_set(extras, binding, "subjects/[0]/name", account_name(job, extras->arena));
	hf_extra_set(extras, binding, "subjects/[0]/namespace", hf_str_or(job->view->ns, ""));
	hf_extra_set(extras, binding, "roleRef/apiGroup", RBAC_GROUP);
	hf_extra_set(extras, binding, "roleRef/kind", "Role");
	hf_extra_set(extras, binding, "roleRef/name", name);
}

static void mpi_extras(const struct hf_job *job, const struct hf_ranks_seen *seen,
		       struct hf_extras *extras)
{
	hf_assert(job->framework == &hf_framework_mpi);
	if (seen->life != HF_LIFE_ACTIVE)
		return;
	add_account(job, seen, extras);
	add_config(job, seen, extras);
	add_role(job, extras);
	add_binding(job, extras);
}

/* ---- counts to conditions ----------------------------------------------------------------------------- */

static void mpi_judge(const struct hf_job *job, const struct hf_counts *counts,
		      struct hf_arena *arena, struct hf_judgement *ret_judgement)
{
	hf_replicas_judge(job, counts, LAUNCHER, ret_judgement);
	hf_replicas_messages(job, false, arena, ret_judgement);
}

const struct hf_framework hf_framework_mpi = {
	.api_version = "kubeflow.org/v1",
	.group = "kubeflow.org",
	.version = "v1",
	.kind = "MPIJob",
	.plural = "mpijobs",
	.singular = "mpijob",
	.replicas_key = "mpiReplicaSpecs",
	.container_name = "mpi",
	.init_container = MPI_KUBECTL_CONTAINER,
	.awaited_role = WORKER,
	.port_name = "mpi-port",
	.port_number = 9999,
	.no_finalizers = true,
	.any_name = true,
	.no_exec_roles = 1u << WORKER,
	.reads_containers = true,
	.default_restart = HF_RESTART_NEVER,
	.controller_name = "mpijob-controller",
	.metrics_name = "mpi",
	.roles = {[LAUNCHER] = {"Launcher", 1}, [WORKER] = {"Worker", 0}},
	.roles_len = 2,
	.single_roles = 1u << LAUNCHER,
	.given_commands = 1u << WORKER,
	.extra_kinds = HF_EXTRA_BIT(HF_EXTRA_SERVICE_ACCOUNT) | HF_EXTRA_BIT(HF_EXTRA_CONFIG_MAP) |
		       HF_EXTRA_BIT(HF_EXTRA_ROLE) | HF_EXTRA_BIT(HF_EXTRA_ROLE_BINDING),
	/* Upstream's reason repeats the kind. */
	.failed_reason = "MPIJobMPIJobFailed",
	.template_restart_reason = "SettedPodTemplateRestartPolicy",
	.template_scheduler_reason = "SettedPodTemplateSchedulerName",
	.taken_reason = "ErrResourceExists",
	.validate = mpi_validate,
	.defaults = mpi_defaults,
	.pod = mpi_pod,
	.is_master = mpi_is_master,
	.judge = mpi_judge,
	.extras = mpi_extras,
};
