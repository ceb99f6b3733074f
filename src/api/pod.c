/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/pod.h"

#include "api/device_health.h"
#include "api/node.h"
#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"
#include "json/fields.h"

#include <stdio.h>
#include <string.h>

/*
 * Reads pods and services into core's structs. The operator reads every change of every pod of its
 * jobs here, so the reader takes the fields from the text and builds no tree (json/skip.h).
 */

/* The size of a document allows some hundred containers. A pod has about ten conditions, each from
 * one controller. */
#define CONTAINERS_MAX 1024
/* exit code rules of a container; the API server allows 20, with 255 exit codes each */
#define RESTART_RULES_MAX 64
#define RULE_VALUES_MAX 1024
#define CONDITIONS_MAX 64
#define OWNERS_MAX 64
#define FINALIZERS_MAX 64
/* A longer grace period is a user's mistake; added to a time it could overflow. */
#define GRACE_SECONDS_MAX ((int64_t)1 << 31)
#define TOLERATIONS_MAX 1024
#define VOLUMES_MAX 1024
/* The most devices in one resource. A node has a few dozen devices, and one claim may have all of
 * them. */
#define RESOURCES_MAX 256

static const struct hf_fields_options lenient = {.lenient = true};

/* ---- metadata -------------------------------------------------------------------------------- */

struct owner {
	uint64_t present;
	const char *api_version, *kind, *name, *uid;
	bool controller;
};
static const struct hf_field owner_fields[] = {
	HF_FIELD_STRING("apiVersion", struct owner, api_version, 0, 0),
	HF_FIELD_STRING("kind", struct owner, kind, 0, 0),
	HF_FIELD_STRING("name", struct owner, name, 0, 0),
	HF_FIELD_STRING("uid", struct owner, uid, 0, 0),
	HF_FIELD_BOOL("controller", struct owner, controller, 0),
};
static const struct hf_field_table owner_table = HF_FIELD_TABLE(owner_fields, struct owner);

struct stamps {
	uint64_t present;
	const char *generation, *attempt, *incident, *avoids, *stopped, *spec;
};
static const struct hf_field stamps_fields[] = {
	HF_FIELD_STRING(HF_ANNOTATION_GENERATION, struct stamps, generation, 0, 0),
	HF_FIELD_STRING(HF_ANNOTATION_ATTEMPT, struct stamps, attempt, 0, 0),
	HF_FIELD_STRING(HF_ANNOTATION_INCIDENT, struct stamps, incident, 0, 0),
	HF_FIELD_STRING(HF_ANNOTATION_AVOIDS, struct stamps, avoids, 0, 0),
	HF_FIELD_STRING(HF_ANNOTATION_STOPPED, struct stamps, stopped, 0, 0),
	HF_FIELD_STRING(HF_ANNOTATION_SPEC, struct stamps, spec, 0, 0),
};
static const struct hf_field_table stamps_table = HF_FIELD_TABLE(stamps_fields, struct stamps);

struct metadata {
	uint64_t present;
	hf_time creation_time, deletion_time;
	struct stamps stamps;
	HF_LIST(struct owner) owners;
	int64_t grace;
	HF_LIST(const char *) finalizers;
};
enum {
	METADATA_CREATION,
	METADATA_DELETION,
	METADATA_ANNOTATIONS,
	METADATA_OWNERS,
	METADATA_GRACE,
	METADATA_FINALIZERS,
};
static const struct hf_field metadata_fields[] = {
	[METADATA_CREATION] = HF_FIELD_TIME("creationTimestamp", struct metadata, creation_time, 0),
	[METADATA_DELETION] = HF_FIELD_TIME("deletionTimestamp", struct metadata, deletion_time, 0),
	[METADATA_ANNOTATIONS] =
		HF_FIELD_OBJECT("annotations", struct metadata, stamps, &stamps_table, 0),
	[METADATA_OWNERS] = HF_FIELD_OBJECTS("ownerReferences", struct metadata, owners,
					     &owner_table, OWNERS_MAX, 0),
	[METADATA_GRACE] = HF_FIELD_INT64("deletionGracePeriodSeconds", struct metadata, grace,
					  INT64_MIN, INT64_MAX, 0),
	[METADATA_FINALIZERS] =
		HF_FIELD_STRINGS("finalizers", struct metadata, finalizers, FINALIZERS_MAX, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);

static const struct owner *find_controller(const struct metadata *metadata)
{
	for (size_t i = 0; i < metadata->owners.len; i++)
		if (metadata->owners.items[i].controller)
			return &metadata->owners.items[i];
	return NULL;
}

static const char *controller_of(const struct metadata *metadata)
{
	const struct owner *controller = find_controller(metadata);

	return controller ? controller->uid : NULL;
}

/* Tells whether the pod's name is "<job>-<type>-<index>" or "<job>-<type>". No type contains a
 * dash. */
static bool is_rank_of(const char *pod, const char *job)
{
	size_t len = strlen(job);
	const char *dash;

	if (len == 0 || strncmp(pod, job, len) != 0 || pod[len] != '-')
		return false;
	dash = strchr(pod + len + 1, '-');
	return !dash || !strchr(dash + 1, '-');
}

static const char *maker_of(const struct metadata *metadata, const char *pod)
{
	const struct owner *controller = find_controller(metadata);

	if (!controller || !pod ||
	    !hf_str_has_prefix(hf_str_or(controller->api_version, ""), "kubeflow.org/") ||
	    !is_rank_of(pod, hf_str_or(controller->name, "")))
		return NULL;
	return controller->kind;
}

static bool is_owned(const char *controller_uid, const char *job_uid)
{
	return controller_uid && (!job_uid || strcmp(controller_uid, job_uid) == 0);
}

/* Reads the metadata of any object. */
struct object {
	uint64_t present;
	struct metadata metadata;
};
static const struct hf_field object_fields[] = {
	HF_FIELD_OBJECT("metadata", struct object, metadata, &metadata_table, 0),
};
static const struct hf_field_table object_table = HF_FIELD_TABLE(object_fields, struct object);

static void read_metadata(struct hf_doc *doc, struct hf_arena *arena, struct metadata *ret_metadata)
{
	struct object object = {.present = 0};

	/* A document that cannot be parsed has no fields. */
	if (hf_fields_read_doc(&object_table, doc, &lenient, arena, &object, NULL) < 0)
		object = (struct object){.present = 0};
	*ret_metadata = object.metadata;
}

const char *hf_controller_uid(struct hf_doc *doc, struct hf_arena *arena)
{
	struct metadata metadata;

	read_metadata(doc, arena, &metadata);
	return controller_of(&metadata);
}

bool hf_is_terminating(struct hf_doc *doc, struct hf_arena *arena)
{
	struct metadata metadata;

	read_metadata(doc, arena, &metadata);
	return hf_field_has(metadata.present, METADATA_DELETION);
}

bool hf_is_deleted(struct hf_doc *doc, struct hf_arena *arena)
{
	struct metadata metadata;

	read_metadata(doc, arena, &metadata);
	if (!hf_field_has(metadata.present, METADATA_DELETION))
		return true;
	return hf_field_has(metadata.present, METADATA_GRACE) && metadata.grace == 0 &&
	       metadata.finalizers.len == 0;
}

/* ---- pods ------------------------------------------------------------------------------------ */

struct waiting {
	uint64_t present;
	const char *reason, *message;
};
static const struct hf_field waiting_fields[] = {
	HF_FIELD_STRING("reason", struct waiting, reason, 0, 0),
	HF_FIELD_STRING("message", struct waiting, message, 0, 0),
};
static const struct hf_field_table waiting_table = HF_FIELD_TABLE(waiting_fields, struct waiting);

/* The state of a container that has ended, or of a running one, which has only startedAt. */
struct run {
	uint64_t present;
	int32_t exit_code, signal;
	const char *reason, *message;
	hf_time finished_at, started_at;
};
enum { RUN_EXIT_CODE, RUN_SIGNAL, RUN_REASON, RUN_MESSAGE, RUN_FINISHED, RUN_STARTED };
static const struct hf_field run_fields[] = {
	[RUN_EXIT_CODE] =
		HF_FIELD_INT32("exitCode", struct run, exit_code, INT32_MIN, INT32_MAX, 0),
	[RUN_SIGNAL] = HF_FIELD_INT32("signal", struct run, signal, INT32_MIN, INT32_MAX, 0),
	[RUN_REASON] = HF_FIELD_STRING("reason", struct run, reason, 0, 0),
	[RUN_MESSAGE] = HF_FIELD_STRING("message", struct run, message, 0, 0),
	[RUN_FINISHED] = HF_FIELD_TIME("finishedAt", struct run, finished_at, 0),
	[RUN_STARTED] = HF_FIELD_TIME("startedAt", struct run, started_at, 0),
};
static const struct hf_field_table run_table = HF_FIELD_TABLE(run_fields, struct run);

struct state {
	uint64_t present;
	struct waiting waiting;
	struct run running, terminated;
};
enum { STATE_WAITING, STATE_RUNNING, STATE_TERMINATED };
static const struct hf_field state_fields[] = {
	[STATE_WAITING] = HF_FIELD_OBJECT("waiting", struct state, waiting, &waiting_table, 0),
	[STATE_RUNNING] = HF_FIELD_OBJECT("running", struct state, running, &run_table, 0),
	[STATE_TERMINATED] = HF_FIELD_OBJECT("terminated", struct state, terminated, &run_table, 0),
};
static const struct hf_field_table state_table = HF_FIELD_TABLE(state_fields, struct state);

/* A device of a container. A device plugin's resource ("nvidia.com/gpu") lists its devices; a claim
 * ("claim:NAME/REQUEST") lists "driver/pool/device". */
struct resource {
	uint64_t present;
	const char *id, *health;
};
static const struct hf_field resource_fields[] = {
	HF_FIELD_STRING("resourceID", struct resource, id, 0, 0),
	HF_FIELD_STRING("health", struct resource, health, 0, 0),
};
static const struct hf_field_table resource_table =
	HF_FIELD_TABLE(resource_fields, struct resource);

struct allocated {
	uint64_t present;
	HF_LIST(struct resource) resources;
};
static const struct hf_field allocated_fields[] = {
	HF_FIELD_OBJECTS("resources", struct allocated, resources, &resource_table, RESOURCES_MAX,
			 0),
};
static const struct hf_field_table allocated_table =
	HF_FIELD_TABLE(allocated_fields, struct allocated);

struct container {
	uint64_t present;
	const char *name;
	int32_t restart_count;
	struct state state, last_state;
	HF_LIST(struct allocated) allocated;
};
static const struct hf_field container_fields[] = {
	HF_FIELD_STRING("name", struct container, name, 0, 0),
	HF_FIELD_INT32("restartCount", struct container, restart_count, 0, INT32_MAX, 0),
	HF_FIELD_OBJECT("state", struct container, state, &state_table, 0),
	HF_FIELD_OBJECT("lastState", struct container, last_state, &state_table, 0),
	HF_FIELD_OBJECTS("allocatedResourcesStatus", struct container, allocated, &allocated_table,
			 RESOURCES_MAX, 0),
};
static const struct hf_field_table container_table =
	HF_FIELD_TABLE(container_fields, struct container);

struct condition {
	uint64_t present;
	const char *type, *status, *reason, *message;
	hf_time changed_at;
};
enum {
	CONDITION_TYPE,
	CONDITION_STATUS,
	CONDITION_REASON,
	CONDITION_MESSAGE,
	CONDITION_CHANGED,
};
static const struct hf_field condition_fields[] = {
	[CONDITION_TYPE] = HF_FIELD_STRING("type", struct condition, type, 0, 0),
	[CONDITION_STATUS] = HF_FIELD_STRING("status", struct condition, status, 0, 0),
	[CONDITION_REASON] = HF_FIELD_STRING("reason", struct condition, reason, 0, 0),
	[CONDITION_MESSAGE] = HF_FIELD_STRING("message", struct condition, message, 0, 0),
	[CONDITION_CHANGED] = HF_FIELD_TIME("lastTransitionTime", struct condition, changed_at, 0),
};
static const struct hf_field_table condition_table =
	HF_FIELD_TABLE(condition_fields, struct condition);

struct status {
	uint64_t present;
	const char *phase, *reason, *message;
	hf_time start_time;
	HF_LIST(struct container) init_containers;
	HF_LIST(struct container) containers;
	HF_LIST(struct condition) conditions;
};
enum {
	STATUS_PHASE,
	STATUS_REASON,
	STATUS_MESSAGE,
	STATUS_STARTED,
	STATUS_INIT_CONTAINERS,
	STATUS_CONTAINERS,
	STATUS_CONDITIONS,
};
static const struct hf_field status_fields[] = {
	[STATUS_PHASE] = HF_FIELD_STRING("phase", struct status, phase, 0, 0),
	[STATUS_REASON] = HF_FIELD_STRING("reason", struct status, reason, 0, 0),
	[STATUS_MESSAGE] = HF_FIELD_STRING("message", struct status, message, 0, 0),
	[STATUS_STARTED] = HF_FIELD_TIME("startTime", struct status, start_time, 0),
	[STATUS_INIT_CONTAINERS] =
		HF_FIELD_OBJECTS("initContainerStatuses", struct status, init_containers,
				 &container_table, CONTAINERS_MAX, 0),
	[STATUS_CONTAINERS] = HF_FIELD_OBJECTS("containerStatuses", struct status, containers,
					       &container_table, CONTAINERS_MAX, 0),
	[STATUS_CONDITIONS] = HF_FIELD_OBJECTS("conditions", struct status, conditions,
					       &condition_table, CONDITIONS_MAX, 0),
};
static const struct hf_field_table status_table = HF_FIELD_TABLE(status_fields, struct status);

struct toleration {
	uint64_t present;
	const char *key, *op, *value, *effect;
	int64_t seconds;
};
enum {
	TOLERATION_KEY,
	TOLERATION_OP,
	TOLERATION_VALUE,
	TOLERATION_EFFECT,
	TOLERATION_SECONDS,
};
static const struct hf_field toleration_fields[] = {
	[TOLERATION_KEY] = HF_FIELD_STRING("key", struct toleration, key, 0, 0),
	[TOLERATION_OP] = HF_FIELD_STRING("operator", struct toleration, op, 0, 0),
	[TOLERATION_VALUE] = HF_FIELD_STRING("value", struct toleration, value, 0, 0),
	[TOLERATION_EFFECT] = HF_FIELD_STRING("effect", struct toleration, effect, 0, 0),
	[TOLERATION_SECONDS] = HF_FIELD_INT64("tolerationSeconds", struct toleration, seconds,
					      INT64_MIN, INT64_MAX, 0),
};
static const struct hf_field_table toleration_table =
	HF_FIELD_TABLE(toleration_fields, struct toleration);

struct claim {
	uint64_t present;
	const char *name;
};
static const struct hf_field claim_fields[] = {
	HF_FIELD_STRING("claimName", struct claim, name, 0, 0),
};
static const struct hf_field_table claim_table = HF_FIELD_TABLE(claim_fields, struct claim);

struct volume {
	uint64_t present;
	const char *name;
	struct claim claim;
};
enum { VOLUME_NAME, VOLUME_CLAIM, VOLUME_EPHEMERAL };
static const struct hf_field volume_fields[] = {
	[VOLUME_NAME] = HF_FIELD_STRING("name", struct volume, name, 0, 0),
	[VOLUME_CLAIM] =
		HF_FIELD_OBJECT("persistentVolumeClaim", struct volume, claim, &claim_table, 0),
	[VOLUME_EPHEMERAL] = HF_FIELD_PRESENCE("ephemeral", 0),
};
static const struct hf_field_table volume_table = HF_FIELD_TABLE(volume_fields, struct volume);

/* A rule of a container in the pod's spec: after which exit codes the kubelet starts it again. */
struct exit_codes {
	uint64_t present;
	const char *operator;
	HF_LIST(int64_t) values;
};
static const struct hf_field exit_codes_fields[] = {
	HF_FIELD_STRING("operator", struct exit_codes, operator, 0, 0),
	HF_FIELD_INTS("values", struct exit_codes, values, RULE_VALUES_MAX, 0),
};
static const struct hf_field_table exit_codes_table =
	HF_FIELD_TABLE(exit_codes_fields, struct exit_codes);

struct restart_rule {
	uint64_t present;
	const char *action;
	struct exit_codes exit_codes;
};
enum { RULE_ACTION, RULE_EXIT_CODES };
static const struct hf_field restart_rule_fields[] = {
	[RULE_ACTION] = HF_FIELD_STRING("action", struct restart_rule, action, 0, 0),
	[RULE_EXIT_CODES] =
		HF_FIELD_OBJECT("exitCodes", struct restart_rule, exit_codes, &exit_codes_table, 0),
};
static const struct hf_field_table restart_rule_table =
	HF_FIELD_TABLE(restart_rule_fields, struct restart_rule);

/* A container in the pod's spec. */
struct template
{
	uint64_t present;
	const char *name, *restart_policy;
	HF_LIST(struct restart_rule) rules;
};
enum { TEMPLATE_NAME, TEMPLATE_RESTART_POLICY, TEMPLATE_RESTART_RULES };
static const struct hf_field template_fields[] = {
	[TEMPLATE_NAME] = HF_FIELD_STRING("name", struct template, name, 0, 0),
	[TEMPLATE_RESTART_POLICY] =
		HF_FIELD_STRING("restartPolicy", struct template, restart_policy, 0, 0),
	[TEMPLATE_RESTART_RULES] = HF_FIELD_OBJECTS("restartPolicyRules", struct template, rules,
						    &restart_rule_table, RESTART_RULES_MAX, 0),
};
static const struct hf_field_table template_table =
	HF_FIELD_TABLE(template_fields, struct template);

struct spec {
	uint64_t present;
	const char *node, *restart_policy;
	int64_t active_deadline, grace;
	HF_LIST(struct template) init_containers;
	HF_LIST(struct template) containers;
	HF_LIST(struct toleration) tolerations;
	HF_LIST(struct volume) volumes;
};
enum {
	SPEC_NODE,
	SPEC_RESTART_POLICY,
	SPEC_ACTIVE_DEADLINE,
	SPEC_GRACE,
	SPEC_INIT_CONTAINERS,
	SPEC_CONTAINERS,
	SPEC_TOLERATIONS,
	SPEC_VOLUMES,
};
static const struct hf_field spec_fields[] = {
	[SPEC_NODE] = HF_FIELD_STRING("nodeName", struct spec, node, 0, 0),
	[SPEC_RESTART_POLICY] = HF_FIELD_STRING("restartPolicy", struct spec, restart_policy, 0, 0),
	[SPEC_ACTIVE_DEADLINE] = HF_FIELD_INT64("activeDeadlineSeconds", struct spec,
						active_deadline, INT64_MIN, INT64_MAX, 0),
	[SPEC_GRACE] = HF_FIELD_INT64("terminationGracePeriodSeconds", struct spec, grace, 0,
				      GRACE_SECONDS_MAX, 0),
	[SPEC_INIT_CONTAINERS] = HF_FIELD_OBJECTS("initContainers", struct spec, init_containers,
						  &template_table, CONTAINERS_MAX, 0),
	[SPEC_CONTAINERS] = HF_FIELD_OBJECTS("containers", struct spec, containers, &template_table,
					     CONTAINERS_MAX, 0),
	[SPEC_TOLERATIONS] = HF_FIELD_OBJECTS("tolerations", struct spec, tolerations,
					      &toleration_table, TOLERATIONS_MAX, 0),
	[SPEC_VOLUMES] =
		HF_FIELD_OBJECTS("volumes", struct spec, volumes, &volume_table, VOLUMES_MAX, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);

struct pod {
	uint64_t present;
	struct metadata metadata;
	struct spec spec;
	struct status status;
};
static const struct hf_field pod_fields[] = {
	HF_FIELD_OBJECT("metadata", struct pod, metadata, &metadata_table, 0),
	HF_FIELD_OBJECT("spec", struct pod, spec, &spec_table, 0),
	HF_FIELD_OBJECT("status", struct pod, status, &status_table, 0),
};
static const struct hf_field_table pod_table = HF_FIELD_TABLE(pod_fields, struct pod);

static int64_t number_or(const char *text, int64_t fallback)
{
	int64_t value;

	return text != NULL && hf_str_to_i64(text, 0, INT64_MAX, &value, NULL) == 0 ? value
										    : fallback;
}

static void put_stamps(const struct stamps *stamps, struct hf_pod *pod)
{
	pod->generation = number_or(stamps->generation, -1);
	pod->attempt = number_or(stamps->attempt, -1);
	pod->incident = number_or(stamps->incident, -1);
	pod->avoids = stamps->avoids;
	pod->stopped = stamps->stopped;
	pod->spec = stamps->spec;
	pod->stamped = pod->generation >= 0 && pod->attempt >= 0 && pod->incident >= 0;
	if (!pod->stamped)
		pod->generation = pod->attempt = pod->incident = 0;
}

/* The message of a termination; NULL: there is none. It has up to 4 KiB. If the program ran, the
 * message comes from the program, or the kubelet takes it from the log (terminationMessagePolicy).
 * If the program never ran, it comes from the container runtime. The operator holds many pods, so a
 * long message keeps its beginning and end alone. */
static const char *message_of(const struct run *end, struct hf_arena *arena)
{
	return hf_str_is_empty(end->message) ? NULL : hf_status_message_clean(arena, end->message);
}

static void put_container(const struct container *from, bool init, struct hf_arena *arena,
			  struct hf_container_seen *to)
{
	const struct state *state = &from->state;
	const struct run *end = &state->terminated, *running = &state->running;

	*to = (struct hf_container_seen){
		.name = hf_str_or(from->name, ""),
		.init = init,
		.restart_count = from->restart_count,
		.finished_at = HF_TIME_NONE,
		.started_at = HF_TIME_NONE,
	};
	if (hf_field_has(state->present, STATE_TERMINATED)) {
		to->phase = HF_CONTAINER_TERMINATED;
		to->exit_code = end->exit_code;
		to->signal = end->signal;
		to->terminated_reason = end->reason;
		to->terminated_message = message_of(end, arena);
		to->finished_at = hf_field_time(end->present, RUN_FINISHED, end->finished_at);
		to->started_at = hf_field_time(end->present, RUN_STARTED, end->started_at);
	} else if (hf_field_has(state->present, STATE_RUNNING)) {
		to->phase = HF_CONTAINER_RUNNING;
		to->started_at = hf_field_time(running->present, RUN_STARTED, running->started_at);
	} else if (hf_field_has(state->present, STATE_WAITING)) {
		to->phase = HF_CONTAINER_WAITING;
		to->waiting_reason = state->waiting.reason;
		to->waiting_message = state->waiting.message;
	}
	if (hf_field_has(from->last_state.present, STATE_TERMINATED)) {
		to->last_exit_code = HF_SOME_INT(from->last_state.terminated.exit_code);
		to->last_signal = from->last_state.terminated.signal;
		to->last_reason = from->last_state.terminated.reason;
		to->last_message = message_of(&from->last_state.terminated, arena);
	}
}

static const struct template *find_template(const struct spec *spec, const char *name, bool init)
{
	const struct template *templates =
		init ? spec->init_containers.items : spec->containers.items;
	size_t len = init ? spec->init_containers.len : spec->containers.len;

	for (size_t i = 0; i < len; i++)
		if (hf_streq(templates[i].name, name))
			return &templates[i];
	return NULL;
}

/* Tells whether an init container is a sidecar: the kubelet always restarts it, whatever the pod's
 * restartPolicy says. */
static bool is_sidecar(const struct spec *spec, const char *name)
{
	const struct template *template = find_template(spec, name, true);

	return template != NULL && hf_streq(template->restart_policy, "Always");
}

static bool has_value(const struct exit_codes *codes, int64_t code)
{
	for (size_t i = 0; i < codes->values.len; i++)
		if (codes->values.items[i] == code)
			return true;
	return false;
}

/* Returns the restart rule for an exit code, as the kubelet does: the first rule that lists the
 * code decides. A rule without exit codes matches nothing. NULL: no rule matches. */
static const struct restart_rule *find_rule(const struct template *template, int64_t code)
{
	for (size_t i = 0; i < template->rules.len; i++) {
		const struct restart_rule *rule = &template->rules.items[i];
		bool in = hf_streq(rule->exit_codes.operator, "In");

		if (!hf_field_has(rule->present, RULE_EXIT_CODES) ||
		    (!in && !hf_streq(rule->exit_codes.operator, "NotIn")))
			continue;
		if (has_value(&rule->exit_codes, code) == in)
			return rule;
	}
	return NULL;
}

/* The exit code of the container's last end, which decides whether the kubelet starts it again. */
static struct hf_opt_int last_code(const struct hf_container_seen *seen)
{
	return seen->phase == HF_CONTAINER_TERMINATED ? HF_SOME_INT(seen->exit_code)
						      : seen->last_exit_code;
}

/* Tells when the kubelet restarts a container. A rule of the container that matches its exit code
 * decides; else the restart policy of the container; else the policy of the pod, which the API
 * server always fills in. */
static enum hf_container_again again_of(const struct spec *spec,
					const struct hf_container_seen *seen)
{
	const struct template *template = find_template(spec, seen->name, seen->init);
	struct hf_opt_int code = last_code(seen);
	const struct restart_rule *rule =
		template != NULL && code.set ? find_rule(template, code.value) : NULL;
	const char *policy = spec->restart_policy;

	/* Both actions of Kubernetes 1.36, Restart and RestartAllContainers, start the container
	 * again. */
	if (rule != NULL)
		return hf_str_has_prefix(hf_str_or(rule->action, ""), "Restart") ? HF_AGAIN_ALWAYS
										 : HF_AGAIN_UNKNOWN;
	if (template != NULL)
		policy = hf_str_or(template->restart_policy, policy);
	if (hf_streq(policy, "Never"))
		return HF_AGAIN_NEVER;
	if (hf_streq(policy, "OnFailure"))
		return HF_AGAIN_ON_FAILURE;
	if (hf_streq(policy, "Always"))
		/* The kubelet does not restart an init container that has succeeded. */
		return seen->init ? HF_AGAIN_ON_FAILURE : HF_AGAIN_ALWAYS;
	return HF_AGAIN_UNKNOWN;
}

static void put_containers(const struct spec *spec, const struct status *status,
			   struct hf_arena *arena, struct hf_pod *pod)
{
	size_t n = status->init_containers.len + status->containers.len, len = 0;
	struct hf_container_seen *seen = HF_ARENA_ARRAY(arena, struct hf_container_seen, n + 1);

	for (size_t i = 0; i < status->init_containers.len; i++) {
		put_container(&status->init_containers.items[i], true, arena, &seen[len]);
		if (is_sidecar(spec, seen[len].name)) {
			seen[len].restart_count = 0;
			seen[len].again = HF_AGAIN_NEVER;
		} else {
			seen[len].again = again_of(spec, &seen[len]);
		}
		len++;
	}
	for (size_t i = 0; i < status->containers.len; i++) {
		put_container(&status->containers.items[i], false, arena, &seen[len]);
		seen[len].again = again_of(spec, &seen[len]);
		len++;
	}
	pod->containers = seen;
	pod->containers_len = len;
}

static void put_conditions(const struct status *status, struct hf_arena *arena, struct hf_pod *pod)
{
	size_t n = status->conditions.len;
	struct hf_pod_condition *seen = HF_ARENA_ARRAY(arena, struct hf_pod_condition, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct condition *from = &status->conditions.items[i];

		seen[i] = (struct hf_pod_condition){.type = hf_str_or(from->type, ""),
						    .status = hf_str_or(from->status, ""),
						    .reason = from->reason,
						    .message = from->message};
	}
	pod->conditions = seen;
	pod->conditions_len = n;
}

/* When the pod was bound to its node. The API server writes condition PodScheduled with this time.
 * If a pod was created with a node, a kubelet may add the condition later. The result is then a
 * time of the node's clock, later than the binding. */
static hf_time bound_at(const struct status *status)
{
	for (size_t i = 0; i < status->conditions.len; i++) {
		const struct condition *condition = &status->conditions.items[i];

		if (hf_streq(condition->type, "PodScheduled") &&
		    hf_streq(condition->status, "True") &&
		    hf_field_has(condition->present, CONDITION_CHANGED))
			return condition->changed_at;
	}
	return HF_TIME_NONE;
}

static hf_time deleted_at(const struct metadata *metadata)
{
	int64_t grace = hf_field_has(metadata->present, METADATA_GRACE) ? metadata->grace : 0;

	if (!hf_field_has(metadata->present, METADATA_DELETION) || grace < 0 ||
	    grace > GRACE_SECONDS_MAX)
		return HF_TIME_NONE;
	return hf_time_add(metadata->deletion_time, -grace * HF_SECOND);
}

/* ---- devices --------------------------------------------------------------------------------- */

static struct hf_device_seen device_seen(const char *id, const char *cls, bool agent)
{
	return (struct hf_device_seen){.id = id,
				       .cls = cls,
				       .agent = agent,
				       .fatal = true,
				       .held = true,
				       .first = HF_TIME_NONE,
				       .last = HF_TIME_NONE};
}

/* Takes the device from the condition's message, "0000:1a:00.0 Unhealthy (xid 119: gpu-reset)": the
 * text before the first blank. */
static struct hf_device_seen device_of_condition(const struct condition *condition,
						 struct hf_arena *arena)
{
	const char *message = hf_str_or(condition->message, "");
	size_t len = strcspn(message, " ");
	char cls[HF_DEVICE_REASON_MAX];

	hf_device_class(condition->reason, cls);
	return device_seen(len > 0 ? hf_arena_strndup(arena, message, len) : "of the pod",
			   cls[0] != '\0' ? hf_arena_strdup(arena, cls) : HF_DEVICE_UNHEALTHY,
			   true);
}

/* Adds the devices that the device plugin reported as Unhealthy. The kubelet keeps a plugin's last
 * report after the plugin has gone. "Healthy" and "Unknown" are ignored: the kubelet also reports
 * "Healthy" for devices it has lost sight of, and "Unknown" for devices it never saw. */
static size_t put_allocated(const struct container *container, struct hf_device_seen *devices)
{
	size_t len = 0;

	for (size_t i = 0; i < container->allocated.len; i++) {
		const struct allocated *allocated = &container->allocated.items[i];

		for (size_t r = 0; r < allocated->resources.len; r++) {
			const struct resource *resource = &allocated->resources.items[r];

			if (!hf_streq(resource->health, "Unhealthy"))
				continue;
			if (devices)
				devices[len] = device_seen(hf_str_or(resource->id, "of the pod"),
							   HF_DEVICE_UNHEALTHY, false);
			len++;
		}
	}
	return len;
}

static bool tells_of_device(const struct condition *condition)
{
	return hf_streq(condition->type, HF_POD_COND_DEVICE_HEALTHY) &&
	       hf_streq(condition->status, "False");
}

static void put_devices(const struct status *status, struct hf_arena *arena, struct hf_pod *pod)
{
	struct hf_device_seen *devices;
	size_t len = 0;

	for (size_t i = 0; i < status->containers.len; i++)
		len += put_allocated(&status->containers.items[i], NULL);
	for (size_t i = 0; i < status->conditions.len; i++)
		len += tells_of_device(&status->conditions.items[i]);
	if (len == 0)
		return;
	devices = HF_ARENA_ARRAY(arena, struct hf_device_seen, len);
	pod->devices = devices;
	for (size_t i = 0; i < status->containers.len; i++)
		pod->devices_len +=
			put_allocated(&status->containers.items[i], &devices[pod->devices_len]);
	for (size_t i = 0; i < status->conditions.len; i++)
		if (tells_of_device(&status->conditions.items[i]))
			devices[pod->devices_len++] =
				device_of_condition(&status->conditions.items[i], arena);
	hf_assert(pod->devices_len == len);
}

/* ---- tolerations and claims ------------------------------------------------------------------ */

/* The taint node.kubernetes.io/unreachable has an empty value, so a toleration with operator Equal
 * must have one too. */
static bool tolerates_unreachable(const struct toleration *toleration)
{
	const char *key = hf_str_or(toleration->key, ""), *op = hf_str_or(toleration->op, "Equal");
	const char *effect = hf_str_or(toleration->effect, "");
	bool exists = hf_streq(op, "Exists");

	if (*effect != '\0' && !hf_streq(effect, "NoExecute"))
		return false;
	if (*key == '\0')
		return exists;
	return hf_streq(key, HF_TAINT_UNREACHABLE) &&
	       (exists || (hf_streq(op, "Equal") && hf_str_is_empty(toleration->value)));
}

/* How long the pod stays on a node with the unreachable taint. If several tolerations match, the
 * shortest counts. The pod stays for ever only if none of them has a limit. Taint eviction of
 * Kubernetes does the same. */
static void put_tolerations(const struct spec *spec, struct hf_pod *pod)
{
	int64_t seconds = INT64_MAX;
	bool any = false;

	for (size_t i = 0; i < spec->tolerations.len; i++) {
		const struct toleration *toleration = &spec->tolerations.items[i];

		if (!tolerates_unreachable(toleration))
			continue;
		any = true;
		if (hf_field_has(toleration->present, TOLERATION_SECONDS) &&
		    toleration->seconds < seconds)
			seconds = toleration->seconds > 0 ? toleration->seconds : 0;
	}
	if (any)
		pod->tolerates_unreachable = HF_SOME_INT(seconds);
}

static const char *claim_of(const struct volume *volume, const char *pod, struct hf_arena *arena)
{
	size_t size = strlen(hf_str_or(pod, "")) + strlen(hf_str_or(volume->name, "")) + 2;
	char *name;

	if (hf_field_has(volume->present, VOLUME_CLAIM))
		return volume->claim.name;
	if (!hf_field_has(volume->present, VOLUME_EPHEMERAL) || volume->name == NULL)
		return NULL;
	/* Kubernetes names the claim of an ephemeral volume POD-VOLUME. */
	name = HF_ARENA_ARRAY(arena, char, size);
	snprintf(name, size, "%s-%s", hf_str_or(pod, ""), volume->name);
	return name;
}

static void put_claims(const struct spec *spec, struct hf_arena *arena, struct hf_pod *pod)
{
	const char **claims;

	if (spec->volumes.len == 0)
		return;
	claims = HF_ARENA_ARRAY(arena, const char *, spec->volumes.len);
	for (size_t i = 0; i < spec->volumes.len; i++) {
		const char *name = claim_of(&spec->volumes.items[i], pod->name, arena);

		if (!hf_str_is_empty(name))
			claims[pod->claims_len++] = name;
	}
	pod->claims = claims;
}

const char *hf_pod_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
			struct hf_pod *ret_pod)
{
	struct pod read = {.present = 0};
	const struct metadata *metadata = &read.metadata;
	const char *controller;
	struct hf_pod pod;

	/* A document that cannot be parsed has no fields. */
	if (hf_fields_read_doc(&pod_table, doc, &lenient, arena, &read, NULL) < 0)
		read = (struct pod){.present = 0};
	controller = controller_of(metadata);
	pod = (struct hf_pod){
		.name = hf_doc_name(doc),
		.uid = hf_doc_uid(doc),
		.resource_version = hf_doc_resource_version(doc),
		.owned = is_owned(controller, job_uid),
		.maker = maker_of(metadata, hf_doc_name(doc)),
		.phase = hf_pod_phase_parse(read.status.phase),
		.reason = read.status.reason,
		.message = read.status.message,
		.creation_time = hf_field_time(metadata->present, METADATA_CREATION,
					       metadata->creation_time),
		.start_time =
			hf_field_time(read.status.present, STATUS_STARTED, read.status.start_time),
		.deletion_time = hf_field_time(metadata->present, METADATA_DELETION,
					       metadata->deletion_time),
		.deleted_at = deleted_at(metadata),
		.forced = hf_field_has(metadata->present, METADATA_GRACE) && metadata->grace == 0,
		.finalizers = metadata->finalizers.items,
		.finalizers_len = metadata->finalizers.len,
		.node = read.spec.node,
		.bound_at = bound_at(&read.status),
		.news_at = HF_TIME_NONE,
		.unwell_at = HF_TIME_NONE,
		.own_ended_at = HF_TIME_NONE,
	};
	if (hf_field_has(read.spec.present, SPEC_GRACE) && read.spec.grace != HF_POD_GRACE_SECONDS)
		pod.grace_seconds = HF_SOME_INT(read.spec.grace);
	if (hf_field_has(read.spec.present, SPEC_ACTIVE_DEADLINE))
		pod.active_deadline_seconds = HF_SOME_INT(read.spec.active_deadline);
	put_stamps(&metadata->stamps, &pod);
	put_containers(&read.spec, &read.status, arena, &pod);
	put_conditions(&read.status, arena, &pod);
	put_devices(&read.status, arena, &pod);
	put_tolerations(&read.spec, &pod);
	put_claims(&read.spec, arena, &pod);
	*ret_pod = pod;
	return controller;
}

const char *hf_service_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
			    struct hf_service_seen *ret_service)
{
	struct metadata metadata;
	const char *controller;

	read_metadata(doc, arena, &metadata);
	controller = controller_of(&metadata);
	*ret_service = (struct hf_service_seen){
		.name = hf_doc_name(doc),
		.uid = hf_doc_uid(doc),
		.resource_version = hf_doc_resource_version(doc),
		.owned = is_owned(controller, job_uid),
		.terminating = hf_field_has(metadata.present, METADATA_DELETION),
	};
	return controller;
}
