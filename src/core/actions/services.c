/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/*
 * One headless service for each rank, with the name of the rank's pod: peers resolve that name.
 * Services stay while pods come and go, and an existing service is never changed.
 */

/* All ports of the default container.  If two ports have the same name, the later wins, as in
 * upstream's map.  The kind's own port is added if the template lacks it.  The API server demands a
 * name for each port of a service with several ports, so a port without a name gets one.  (Upstream
 * adds no name, and its service is refused.) */
static const struct hf_port *service_ports(const struct hf_brain *b, int role, size_t *ret_len)
{
	const struct hf_framework *framework = b->job.framework;
	const struct hf_role *spec = &b->job.roles[role];
	const struct hf_container *container;
	struct hf_port *ports;
	size_t len = 0;

	*ret_len = 0;
	if (spec->pod->containers_len == 0)
		return NULL;
	container = &spec->pod->containers[spec->default_container];
	ports = HF_ARENA_ARRAY(b->arena, struct hf_port, container->ports_len + 1);
	for (size_t i = 0; i < container->ports_len; i++) {
		size_t at = 0;

		while (at < len && !hf_streq(ports[at].name, container->ports[i].name))
			at++;
		ports[at] = container->ports[i];
		len = at == len ? len + 1 : len;
	}
	if (spec->add_port)
		ports[len++] = (struct hf_port){framework->port_name, spec->port};
	for (size_t i = 0; len > 1 && i < len; i++) {
		if (hf_str_is_empty(ports[i].name))
			ports[i].name = hf_arena_printf(b->arena, "port-%d", ports[i].number);
	}
	hf_assert(len <= container->ports_len + 1);
	*ret_len = len;
	return ports;
}

/* The event is sent with the job's first status only: the job's name never changes, and neither
 * does the problem. */
static void refuse_name(const struct hf_brain *b, const struct hf_role_slots *ranks, int32_t i,
			const char *name)
{
	const char *message = hf_arena_printf(
		b->arena,
		"no service can be made for %s-%d: '%s' has %zu characters, at most %d are allowed; "
		"the job needs a shorter name",
		ranks->lower, i, name, strlen(name), HF_SERVICE_NAME_LEN_MAX);

	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", message);
	if (b->plan->metrics[HF_METRIC_CREATED] > 0)
		hf_event(b, true, "FailedCreateService", message);
}

/* Create and delete the services of one role.  The list of ports is built only if a service is
 * missing. */
static void plan_role(struct hf_brain *b, int role)
{
	struct hf_role_slots *ranks = &b->roles[role];
	const struct hf_port *ports = NULL;
	size_t ports_len = 0;

	for (int32_t i = 0; i < ranks->slots_len; i++) {
		const struct hf_slot *slot = &ranks->slots[i];
		struct hf_action action = {
			.kind = HF_ACTION_CREATE_SERVICE, .role = role, .index = i};
		int labels_len;

		if (i >= ranks->replicas) {
			if (slot->service && ranks->present)
				hf_service_delete(b, slot->service);
			continue;
		}
		if (slot->service || slot->service_taken || b->gated)
			continue;
		action.name = hf_rank_pod_name(b, role, i);
		/* The API server would refuse a longer name at each try.  Higher indexes have no
		 * shorter names, so this role is done. */
		if (strlen(action.name) > HF_SERVICE_NAME_LEN_MAX) {
			refuse_name(b, ranks, i, action.name);
			return;
		}
		if (!ports)
			ports = service_ports(b, role, &ports_len);
		if (!ports)
			return;
		action.labels = hf_replica_labels(b, role, i, &labels_len);
		action.labels_len = (size_t)labels_len;
		action.ports = ports;
		action.ports_len = ports_len;
		hf_action_add(b, &b->creates, &action);
	}
}

void hf_services_plan(struct hf_brain *b)
{
	hf_assert(!b->job.suspend);
	if (!b->job.framework->has_services)
		return;
	for (int r = 0; r < b->roles_len; r++)
		plan_role(b, r);
}
