/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/crashes.h"

#include "framework/framework.h"
#include "store/resource.h"

/*
 * Which kinds of jobs a world has. Most worlds have one kind, and their operator knows this kind
 * alone. In every eighth world the operator knows all kinds, and each of the three job names has
 * its own kind. (Two jobs of one name would fight for the names of their pods without end.) MPIJobs
 * came last. They have worlds that were PyTorchJob's before, so that all other seeds mean what they
 * did.
 */

static const struct sim_kind kinds[] = {
	{&hf_framework_pytorch, &hf_pytorchjobs}, {&hf_framework_tensorflow, &hf_tfjobs},
	{&hf_framework_xgboost, &hf_xgboostjobs}, {&hf_framework_paddle, &hf_paddlejobs},
	{&hf_framework_jax, &hf_jaxjobs},         {&hf_framework_mpi, &hf_mpijobs},
};
#define KINDS HF_ARRAY_LEN(kinds)
enum { MPI = KINDS - 1 };

/* True for every other block of 64 seeds. */
static bool has_mpi(const struct sim *sim)
{
	return sim->seed / 64 % 2 == 1;
}

bool sim_is_mixed(const struct sim *sim)
{
	return sim->script == NULL && sim->seed % 8 == 1;
}

/* Four of eight worlds have PyTorchJobs, or three of them and one has MPIJobs. */
static size_t kind_of_seed(const struct sim *sim)
{
	uint64_t number = sim->seed / 8 % 8;

	if (sim->script != NULL)
		return sim->script->mpi ? MPI : 0;
	if (number == 7 && has_mpi(sim))
		return MPI;
	return number < MPI - 1 ? number + 1 : 0;
}

const struct sim_kind *sim_kind_of(const struct sim *sim, const char *job)
{
	if (sim_is_mixed(sim))
		return &kinds[(sim->seed / 8 + (size_t)(unsigned char)job[0]) %
			      (has_mpi(sim) ? KINDS : KINDS - 1)];
	return &kinds[kind_of_seed(sim)];
}

const struct hf_framework *const *sim_frameworks(const struct sim *sim)
{
	static const struct hf_framework *const alone[KINDS][2] = {
		{&hf_framework_pytorch, NULL}, {&hf_framework_tensorflow, NULL},
		{&hf_framework_xgboost, NULL}, {&hf_framework_paddle, NULL},
		{&hf_framework_jax, NULL},     {&hf_framework_mpi, NULL},
	};

	return sim_is_mixed(sim) ? hf_frameworks : alone[kind_of_seed(sim)];
}

void sim_each_job(struct sim *sim, void (*fn)(void *arg, struct hf_doc *doc), void *arg)
{
	for (size_t i = 0; i < KINDS; i++)
		if (sim_is_mixed(sim) || i == kind_of_seed(sim))
			hf_memstore_each(sim->memstore, kinds[i].resource, "default", fn, arg);
}

struct hf_doc *sim_job_peek(struct sim *sim, const char *name)
{
	return hf_memstore_peek(sim->memstore, sim_kind_of(sim, name)->resource, "default", name);
}

const struct hf_json *sim_replicas_of(const struct sim *sim, struct hf_doc *job)
{
	return hf_json_path(hf_doc_json(job), "spec",
			    sim_kind_of(sim, hf_doc_name(job))->framework->replicas_key, NULL);
}
