/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Checks a job against this machine. Input: a manifest that a server would accept. Output: findings,
 * each with the field and a sentence. */
#include "app/local_check.h"

#include "app/local_gpus.h"
#include "app/plane.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/check.h"
#include "kubelet/kubelet.h"
#include "scheduler/scheduler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TEXT_MAX 512
/* Advice behind the finding that a job asks for too much: of GPUs, and of what every node has. */
#define OFFER_GPUS "; 'holdfast run --fit' runs it with fewer ranks or without GPUs"
#define OFFER_COMMON "; 'holdfast run --fit' runs it without this request"

/* ---- resources -------------------------------------------------------------------------------- */

/* Checks one resource: no pod, and not all pods together, may ask for more than the machine has. */
static void check_amount(const struct hf_manifest *job, const char *resource, int64_t have,
			 hf_finding_fn found, void *arg)
{
	const struct hf_json *root = hf_doc_json(job->doc);
	bool elastic = hf_json_path(root, "spec", "elasticPolicy", NULL) != NULL;
	char text[TEXT_MAX], wants[HF_JOB_AMOUNT_MAX], has[HF_JOB_AMOUNT_MAX];
	char field[HF_KUBELET_FIELD_MAX] = "spec";
	const char *offer = hf_job_is_common(resource) ? OFFER_COMMON : OFFER_GPUS;
	int64_t total = hf_job_requests(job->framework, root, resource), pods = 0;
	struct hf_job_replicas r;

	hf_job_format_amount(resource, have, has);
	for (void *it = NULL; hf_job_replicas_next(job->framework, root, &it, &r);) {
		int64_t pod = hf_job_request(r.spec, resource);

		pods += r.n;
		(void)snprintf(field, sizeof(field), "%s", r.path);
		if (pod <= have)
			continue;
		hf_job_format_amount(resource, pod, wants);
		(void)snprintf(text, sizeof(text),
			       "each pod of %s asks for %s, and this machine has %s%s", r.type,
			       wants, has, offer);
		found(arg, true, field, text);
		return;
	}
	/* No finding for an elastic job: it may run with fewer pods. */
	if (total <= have || elastic)
		return;
	hf_job_format_amount(resource, total, wants);
	(void)snprintf(text, sizeof(text),
		       "the %" PRId64 " pods ask for %s together, and this machine has %s%s", pods,
		       wants, has, offer);
	found(arg, true, field, text);
}

/* Reports devices other than GPUs, because the plane's node offers GPUs only. */
static void check_devices(const struct hf_job_replicas *r, hf_finding_fn found, void *arg)
{
	const struct hf_json *list = hf_json_get(r->spec, "containers");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *limits =
			hf_json_path(hf_json_item(list, i), "resources", "limits", NULL);
		struct hf_json *value;
		const char *name;

		for (void *it = NULL; (it = hf_json_next(limits, it, &name, &value)) != NULL;) {
			char field[HF_KUBELET_FIELD_MAX], text[TEXT_MAX];
			int64_t milli = hf_job_request_of(hf_json_item(list, i), name);

			if (hf_job_knows(name) || milli <= 0)
				continue;
			(void)snprintf(field, sizeof(field), "%.140s.containers[%zu].resources",
				       r->path, i);
			(void)snprintf(
				text, sizeof(text),
				"each pod of %s asks for %" PRId64
				" %.80s, and the node of 'holdfast run' offers none; remove the "
				"limit to run without, or use --fit",
				r->type, milli / 1000, name);
			found(arg, true, field, text);
			return;
		}
	}
}

/* The scheduler places no pod beyond the node's number, so a job with more pods would wait for ever. */
static void check_pods(const struct hf_manifest *job, int64_t have, hf_finding_fn found, void *arg)
{
	const struct hf_json *root = hf_doc_json(job->doc);
	char field[HF_KUBELET_FIELD_MAX] = "spec", text[TEXT_MAX], raise[128] = "";
	int64_t pods = 0, most = 0;
	struct hf_job_replicas r;

	for (void *it = NULL; hf_job_replicas_next(job->framework, root, &it, &r);) {
		pods += r.n > 0 && r.n <= INT32_MAX ? r.n : 0;
		if (r.n <= most)
			continue;
		most = r.n;
		(void)snprintf(field, sizeof(field), "spec.%s[%.60s].replicas",
			       job->framework->replicas_key, r.type);
	}
	if (pods <= have || hf_json_path(root, "spec", "elasticPolicy", NULL) != NULL)
		return;
	if (pods <= HF_MAX_PODS_LIMIT)
		(void)snprintf(raise, sizeof(raise),
			       "'holdfast run --max-pods %" PRId64 "' raises the limit, or ", pods);
	(void)snprintf(text, sizeof(text),
		       "the job has %" PRId64 " pods, and a node takes %" PRId64
		       " (--max-pods), as in Kubernetes; %slet a pod have several ranks (torchrun "
		       "--nproc_per_node)",
		       pods, have, raise);
	found(arg, true, field, text);
}

void hf_local_check_resources(const struct hf_manifest *job, const struct hf_local_machine *machine,
			      hf_finding_fn found, void *arg)
{
	struct hf_job_replicas r;

	check_pods(job, machine->pods, found, arg);

	for (size_t i = 0; hf_job_resources[i] != NULL; i++)
		check_amount(job, hf_job_resources[i],
			     hf_job_machine_has(machine, hf_job_resources[i]), found, arg);
	for (void *it = NULL; hf_job_replicas_next(job->framework, hf_doc_json(job->doc), &it, &r);)
		check_devices(&r, found, arg);
}

/* Returns the size of the file system that has, or will have, the pods' folders. */
static int64_t find_disk_bytes(void)
{
	HF_AUTOFREE char *dir = NULL;
	struct statvfs disk;
	struct hf_error err;
	int64_t bytes;

	if (hf_plane_default_dir(&dir, &err) != 0)
		return INT64_MAX;
	while (statvfs(dir, &disk) != 0) {
		char *slash = strrchr(dir, '/');

		if (slash == NULL || slash == dir)
			return INT64_MAX;
		*slash = '\0';
	}
	return __builtin_mul_overflow(disk.f_blocks, disk.f_frsize, &bytes) ? INT64_MAX : bytes;
}

/* Returns the value of --max-pods. A wrong value was refused before. */
static int find_max_pods(const struct hf_cli *cli)
{
	int pods = HF_KUBELET_PODS_MAX;

	(void)hf_max_pods_read(cli, &pods);
	return pods;
}

struct hf_local_machine hf_local_machine_of(const struct hf_cli *cli, const struct hf_manifest *job)
{
	struct hf_local_machine machine = {
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
		.memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
		.disk_bytes = find_disk_bytes(),
		.pods = find_max_pods(cli),
	};

	/* Count the GPUs only if the job asks for some, because NVML may take seconds. */
	if (hf_job_wants_gpus(job->framework, hf_doc_json(job->doc))) {
		const struct hf_local_gpus gpus = hf_local_gpus_count(cli);

		machine.nvidia = gpus.nvidia;
		machine.amd = gpus.amd;
	}
	return machine;
}

/* ---- findings of the kubelet ------------------------------------------------------------------- */

static void check_templates(const struct hf_manifest *job, bool isolate, const char *why,
			    struct hf_kubelet_findings *findings)
{
	const struct hf_kubelet_check facts = {
		.isolate = isolate, .why = why, .root = geteuid() == 0, .uid = (int64_t)geteuid()};
	struct hf_job_replicas r;

	*findings = (struct hf_kubelet_findings){.n = 0};
	for (void *it = NULL;
	     hf_job_replicas_next(job->framework, hf_doc_json(job->doc), &it, &r);) {
		const struct hf_kubelet_check_input input = {
			.spec = r.spec,
			.path = r.path,
			.facts = &facts,
			.command_given = r.command_given,
		};

		if (hf_json_type(r.spec) == HF_JSON_OBJECT)
			hf_kubelet_check_template(&input, findings);
	}
}

/* Checks the templates. Whether pods get namespaces is tried only if the job depends on it, and always for
 * `lint --local`, because `run` itself prints what the machine lacks. */
static void check_machine(const struct hf_cli *cli, const struct hf_manifest *job,
			  struct hf_kubelet_findings *findings, hf_finding_fn found, void *arg)
{
	char why[HF_ERROR_TEXT_MAX] = "", text[TEXT_MAX + HF_ERROR_TEXT_MAX];
	size_t refused;

	check_templates(job, false, NULL, findings);
	refused = findings->n_refused;
	check_templates(job, true, NULL, findings);
	if (!cli->starts_helpers || (refused == findings->n_refused && !hf_cli_has(cli, "local")) ||
	    hf_kubelet_can_isolate(NULL, why, sizeof(why)))
		return;
	check_templates(job, false, why, findings);
	if (!hf_cli_has(cli, "local"))
		return;
	(void)snprintf(
		text, sizeof(text),
		"pods get no namespaces on this machine (%s): they share its network, so two "
		"ranks or jobs cannot use one port",
		why);
	found(arg, false, "spec", text);
}

static void check_host_paths(const struct hf_job_replicas *r, hf_finding_fn found, void *arg)
{
	const struct hf_json *volumes = hf_json_get(r->spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const struct hf_json *source = hf_json_get(hf_json_item(volumes, i), "hostPath");
		char field[HF_KUBELET_FIELD_MAX], text[TEXT_MAX + HF_ERROR_TEXT_MAX];
		struct hf_error err;
		int rc = source != NULL ? hf_kubelet_check_host_path(source, &err) : 0;

		if (rc == 0)
			continue;
		(void)snprintf(field, sizeof(field), "%.140s.volumes[%zu].hostPath", r->path, i);
		(void)snprintf(text, sizeof(text), "%s%s", err.text,
			       rc == HF_E_NOT_FOUND ? "; make it, or set type: DirectoryOrCreate"
						    : "");
		found(arg, true, field, text);
	}
}

/* ---- findings of the scheduler ------------------------------------------------------------------ */

struct placement {
	const char *path; /* of the pod's spec */
	hf_finding_fn found;
	void *arg;
};

static void on_placement(void *arg, const char *field, const char *text)
{
	const struct placement *placement = arg;
	char path[HF_KUBELET_FIELD_MAX], sentence[HF_KUBELET_FIELD_MAX + TEXT_MAX];

	(void)snprintf(path, sizeof(path), "%.140s.%.100s", placement->path, field);
	(void)snprintf(sentence, sizeof(sentence), "%s: %s", path, text);
	placement->found(placement->arg, true, path, sentence);
}

/* Checks that the scheduler may bind the pods to the node of this machine. */
static void check_placement(const struct hf_job_replicas *r, hf_finding_fn found, void *arg)
{
	HF_AUTO_JSON node = hf_kubelet_make_node(HF_KUBELET_NODE);
	struct placement placement = {.path = r->path, .found = found, .arg = arg};

	if (r->n > 0)
		hf_placement_check(r->spec, node, on_placement, &placement);
}

void hf_local_check(const struct hf_cli *cli, const struct hf_manifest *job, hf_finding_fn found,
		    void *arg)
{
	HF_AUTOFREE struct hf_kubelet_findings *findings = hf_xcalloc(1, sizeof(*findings));
	struct hf_local_machine machine;
	struct hf_job_replicas r;

	check_machine(cli, job, findings, found, arg);
	for (size_t i = 0; i < findings->n; i++)
		found(arg, findings->items[i].refused, findings->items[i].field,
		      findings->items[i].text);
	for (void *it = NULL; hf_job_replicas_next(job->framework, hf_doc_json(job->doc), &it, &r);)
		if (hf_json_type(r.spec) == HF_JSON_OBJECT) {
			check_host_paths(&r, found, arg);
			check_placement(&r, found, arg);
		}
	/* With --fit, `run` changes the job until it fits, so its resources are not checked
	 * here. The number of pods changes only if they have GPUs. */
	if (hf_cli_has(cli, "fit")) {
		if (!hf_job_wants_gpus(job->framework, hf_doc_json(job->doc)))
			check_pods(job, find_max_pods(cli), found, arg);
		return;
	}
	machine = hf_local_machine_of(cli, job);
	hf_local_check_resources(job, &machine, found, arg);
}
