/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast manifests: prints the files of deploy/ that the program contains, with the namespace,
 * the image and the gang scheduler of the command line in place. */
#include "cli/manifests_internal.h"

#include "cli/verbs_internal.h"

#include <string.h>

/* No registry accepts a longer name. */
#define IMAGE_LEN_MAX 512
#define SCHEDULER_LEN_MAX 63 /* the limit of a label value */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* True if the text can be the name of an image. The name goes into YAML without quotes, so only
 * characters that need no quotes are allowed. */
static bool image_is_plain(const char *image)
{
	size_t len = strlen(image);

	if (len == 0 || len > IMAGE_LEN_MAX || strchr(LETTERS, image[0]) == NULL)
		return false;
	/* A colon at the end is refused: in YAML, "name:" begins a mapping. */
	return strspn(image, LETTERS "._-/:@") == len && image[len - 1] != ':';
}

/* True for a name that has only the letters of a label value, which need no quotes in YAML and on
 * a command line. */
static bool scheduler_is_plain(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= SCHEDULER_LEN_MAX && strspn(name, LETTERS "._-") == len &&
	       strchr(LETTERS, name[0]) != NULL;
}

enum { CRDS = 1, OPERATOR = 2, AGENT = 4, POLICY = 8, ALL = 16, MENDER = 32, ROLLOUTS = 64 };

/* For each section of the manifests, the flags that select it. ALL stands for a command line
 * without such a flag, which prints the sections that every installation needs. */
static const unsigned asked_by[] = {
	[HF_MANIFESTS_CRDS] = CRDS | ALL,
	[HF_MANIFESTS_DEVICES] = CRDS | POLICY | AGENT | ALL,
	[HF_MANIFESTS_HEALTH] = CRDS | POLICY | ALL,
	[HF_MANIFESTS_OPERATOR] = OPERATOR | ALL,
	[HF_MANIFESTS_GANG] = OPERATOR | ALL,
	[HF_MANIFESTS_AGENT] = AGENT,
	[HF_MANIFESTS_MEND] = MENDER | ROLLOUTS,
	[HF_MANIFESTS_MENDER] = MENDER,
	[HF_MANIFESTS_ROLLOUTS] = ROLLOUTS,
	[HF_MANIFESTS_DENY] = POLICY,
	[HF_MANIFESTS_WARN] = CRDS | POLICY | ALL,
};

static bool is_wanted(const struct hf_cli *cli, enum hf_manifest_section section)
{
	unsigned asked = (hf_cli_has(cli, "crds") ? CRDS : 0) |
			 (hf_cli_has(cli, "operator") ? OPERATOR : 0) |
			 (hf_cli_has(cli, "agent") ? AGENT : 0) |
			 (hf_cli_has(cli, "mender") ? MENDER : 0) |
			 (hf_cli_has(cli, "rollouts") ? ROLLOUTS : 0) |
			 (hf_cli_has(cli, "policy") ? POLICY : 0);

	if (section == HF_MANIFESTS_GANG && hf_cli_flag(cli, "gang-scheduler-name") == NULL)
		return false;
	return (asked_by[section] & (asked != 0 ? asked : (unsigned)ALL)) != 0;
}

static void print_manifest(const struct hf_cli *cli, const struct hf_manifest *manifest)
{
	const char *ns = hf_cli_flag(cli, "namespace"), *image = hf_cli_flag(cli, "image");
	const char *scheduler = hf_cli_flag(cli, "gang-scheduler-name");

	for (size_t i = 0; i < manifest->chunks_len; i++) {
		const struct hf_manifest_chunk *chunk = &manifest->chunks[i];
		const char *text = chunk->text;

		if (chunk->slot == HF_MANIFEST_NAMESPACE && ns != NULL)
			text = ns;
		if (chunk->slot == HF_MANIFEST_IMAGE && image != NULL)
			text = image;
		if (chunk->slot == HF_MANIFEST_ARGS && scheduler != NULL)
			fprintf(cli->out, "%.*s, --gang-scheduler-name=%s]", (int)strlen(text) - 1,
				text, scheduler);
		else
			fputs(text, cli->out);
	}
}

static int verb_manifests(struct hf_cli *cli)
{
	const char *image = hf_cli_flag(cli, "image");
	const char *scheduler = hf_cli_flag(cli, "gang-scheduler-name");

	if (image != NULL && !image_is_plain(image))
		return hf_cli_usage(
			cli,
			"--image '%s': not a valid image name, such as registry.example/holdfast:1",
			image);
	if (scheduler != NULL && !scheduler_is_plain(scheduler))
		return hf_cli_usage(
			cli,
			"--gang-scheduler-name '%s': not a valid name: use letters, digits and ._-",
			scheduler);
	/* Operator and agent need different namespaces, because their pod security levels differ;
	 * -n would give both the same name. */
	if (hf_cli_has(cli, "namespace") && hf_cli_has(cli, "agent") &&
	    (hf_cli_has(cli, "operator") || hf_cli_has(cli, "mender") ||
	     hf_cli_has(cli, "rollouts")))
		return hf_cli_usage(
			cli,
			"--namespace: operator and agent need different namespaces; print them with two commands");
	if (hf_cli_has(cli, "crds") && hf_cli_has(cli, "policy"))
		return hf_cli_usage(cli, "--crds and --policy exclude each other: the CRDs "
					 "already contain the rules of the policy");
	for (size_t i = 0; i < hf_manifests_len; i++) {
		if (!is_wanted(cli, hf_manifests[i].section))
			continue;
		fputs("---\n", cli->out);
		print_manifest(cli, &hf_manifests[i]);
	}
	return HF_EXIT_OK;
}

static const struct hf_flag manifests_flags[] = {
	{"crds", 0, NULL,
	 "the CRDs: six kinds of jobs, DeviceHealth, HealthPolicy, Remediation and DeviceRollout",
	 NULL},
	{"operator", 0, NULL, "the operator: namespace, roles, service, deployment", NULL},
	{"agent", 0, NULL, "the node agent: namespace, roles, policy, DaemonSet", NULL},
	{"mender", 0, NULL, "resets and reboots: namespace, roles, policies of the actor", NULL},
	{"rollouts", 0, NULL, "rollouts of drivers: the operator's rights and the policy for them",
	 NULL},
	{"namespace", 'n', "NAME", "the namespace of the operator or the agent", NULL},
	{"policy", 0, NULL, "admission policies, for a cluster that keeps upstream's CRDs", NULL},
	{"image", 0, "IMAGE", "the image of operator and agent", NULL},
	{"gang-scheduler-name", 0, "NAME",
	 "gang scheduler: volcano, or one that reads scheduler-plugins' PodGroups", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_manifests = {
	.name = "manifests",
	.summary = "Print the manifests that install Holdfast, for kubectl apply",
	.usage =
		"[--crds] [--operator] [--agent] [--mender] [--rollouts] [--policy] [-n NAMESPACE] "
		"[--image IMAGE] [--gang-scheduler-name NAME]",
	.group = HF_CLI_ON_CLUSTER,
	.examples =
		"  holdfast manifests --image registry.example/holdfast:1 | kubectl apply -f -\n"
		"  holdfast manifests --crds | kubectl apply -f -\n"
		"  holdfast manifests --operator --policy -n kubeflow > operator.yaml\n",
	.flags = manifests_flags,
	.run = verb_manifests,
};
