/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "sim/crashes.h"
#include "sim/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Replays recorded traces of a real control plane against the model. The same requests must show
 * the same facts of each object to a watch, in the same order. See traces/record.
 *
 * Most traces need the store alone. Those with "world" need a scheduler, a kubelet and the node
 * controllers, in the recording real ones, here those of the simulator.
 */

#define NS "default" /* where the simulator's kubelets look */
#define LINE_MAX_BYTES (1 << 20)
#define LINES_MAX 10000
#define UIDS_MAX 1000
#define VIEWS_MAX 10000

struct seen {
	char *text; /* "pods u1 MODIFIED phase=Running" */
	uint64_t version;
};

struct replay {
	struct sim *sim;
	const char *path;
	HF_VEC(struct hf_json *) lines;
	size_t at;
	const struct hf_json *head;
	struct hf_map *uids;  /* real → "u1" */
	struct hf_map *facts; /* uid → the last facts */
	struct hf_map *first; /* name → its first version */
	HF_VEC(struct seen) seen;
	struct hf_memstore_observer observer;
	bool failed;
};

/* --- facts: traces/record writes the same ------------------------------------------------------ */

static const char *disruption(const struct hf_json *status)
{
	const struct hf_json *list = hf_json_get(status, "conditions");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);

		if (hf_streq(hf_json_str(hf_json_get(c, "type"), ""), "DisruptionTarget") &&
		    hf_streq(hf_json_str(hf_json_get(c, "status"), ""), "True"))
			return hf_json_str(hf_json_get(c, "reason"), "-");
	}
	return NULL;
}

static void add_list(struct hf_strbuf *text, const char *key, const struct hf_json *list,
		     const char *field)
{
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);

		hf_strbuf_addf(text, "%s%s", i > 0 ? "," : key,
			       hf_json_str(field == NULL ? item : hf_json_get(item, field), ""));
	}
	if (hf_json_len(list) > 0)
		hf_strbuf_addstr(text, " ");
}

static void add_container(struct hf_strbuf *text, const struct hf_json *status)
{
	static const char *const states[] = {"waiting", "running", "terminated"};
	const struct hf_json *one = hf_json_item(hf_json_get(status, "containerStatuses"), 0);
	const struct hf_json *state = hf_json_get(one, "state");

	if (one == NULL)
		return;
	for (size_t i = 0; i < HF_ARRAY_LEN(states); i++)
		if (hf_json_get(state, states[i]) != NULL)
			hf_strbuf_addf(text, "state=%s ", states[i]);
	hf_strbuf_addf(text, "restarts=%lld ",
		       (long long)hf_json_i64(hf_json_get(one, "restartCount"), 0));
	if (hf_json_get(state, "terminated") != NULL)
		hf_strbuf_addf(text, "exit=%lld ",
			       (long long)hf_json_i64(
				       hf_json_path(state, "terminated", "exitCode", NULL), -1));
}

static void read_facts(struct hf_doc *doc, bool is_pod, struct hf_strbuf *text)
{
	const struct hf_json *object = hf_doc_json(doc), *meta = hf_json_get(object, "metadata");
	const struct hf_json *status = hf_json_get(object, "status");
	const char *phase = hf_json_str(hf_json_get(status, "phase"), NULL);

	if (hf_json_get(meta, "deletionTimestamp") != NULL)
		hf_strbuf_addf(
			text, "del=%lld ",
			(long long)hf_json_i64(hf_json_get(meta, "deletionGracePeriodSeconds"), 0));
	add_list(text, "fin=", hf_json_get(meta, "finalizers"), NULL);
	if (!is_pod)
		hf_strbuf_addf(text, "gen=%lld ",
			       (long long)hf_json_i64(hf_json_get(meta, "generation"), 0));
	if (phase != NULL)
		hf_strbuf_addf(text, "phase=%s ", phase);
	if (is_pod && disruption(status) != NULL)
		hf_strbuf_addf(text, "dis=%s ", disruption(status));
	add_container(text, status);
	if (hf_json_get(status, "recovery") != NULL)
		hf_strbuf_addstr(text, "recovery=yes ");
	if (!is_pod)
		add_list(text, "conditions=", hf_json_get(status, "conditions"), "type");
}

/* Returns the facts without those that the trace ignores, and without the blank at the end. */
static char *without_ignored(const struct replay *replay, const char *facts)
{
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(4096);
	HF_AUTOFREE char *copy = hf_xstrdup(facts);
	const struct hf_json *ignore = hf_json_get(replay->head, "ignore");
	char *rest = copy;

	for (char *fact; (fact = strsep(&rest, " ")) != NULL;) {
		bool ignored = fact[0] == '\0';

		for (size_t i = 0; i < hf_json_len(ignore); i++) {
			const char *key = hf_json_str(hf_json_item(ignore, i), "");

			ignored = ignored ||
				  (hf_str_has_prefix(fact, key) && fact[strlen(key)] == '=');
		}
		if (!ignored)
			hf_strbuf_addf(&out, "%s%s", out.len > 0 ? " " : "", fact);
	}
	return hf_xstrdup(hf_str_or(out.data, ""));
}

/* --- what the model shows ------------------------------------------------------------------------ */

static const char *symbol_of(struct replay *replay, const char *uid)
{
	char *symbol = hf_map_get(replay->uids, uid);

	if (symbol != NULL)
		return symbol;
	symbol = hf_xasprintf("u%zu", hf_map_len(replay->uids) + 1);
	bool put = hf_map_put(replay->uids, uid, symbol);

	hf_assert(put);
	return symbol;
}

static void remember(struct hf_map *map, const char *key, const char *value)
{
	hf_map_remove(map, key);
	bool put = hf_map_put(map, key, hf_xstrdup(value));

	hf_assert(put);
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct replay *replay = arg;
	struct hf_doc *doc = change->after != NULL ? change->after : change->before;
	const char *type = change->after == NULL    ? "DELETED"
			   : change->before == NULL ? "ADDED"
						    : "MODIFIED";
	bool is_pod = change->resource == &hf_pods;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	if (!is_pod && !hf_resource_is_job(change->resource))
		return;
	read_facts(doc, is_pod, &text);
	HF_AUTOFREE char *facts = without_ignored(replay, hf_str_or(text.data, ""));
	const char *before = hf_map_get(replay->facts, hf_doc_uid(doc));

	if (!hf_map_has(replay->first, hf_doc_name(doc)))
		remember(replay->first, hf_doc_name(doc), hf_doc_resource_version(doc));
	if (change->after != NULL && before != NULL && hf_streq(before, facts))
		return;
	remember(replay->facts, hf_doc_uid(doc), facts);
	struct seen seen = {.text = hf_xasprintf("%s %s %s %s", change->resource->plural,
						 symbol_of(replay, hf_doc_uid(doc)), type, facts),
			    .version = change->version};
	bool pushed = HF_VEC_PUSH(&replay->seen, seen);

	hf_assert(pushed);
}

static void on_reset(void *arg)
{
	((struct replay *)arg)->failed = true;
}

/* --- requests --------------------------------------------------------------------------------- */

static const char *text_of(const struct hf_json *line, const char *key)
{
	return hf_json_str(hf_json_get(line, key), NULL);
}

/* Returns the UID for a symbol of the trace, such as "u1". */
static const char *real_uid(const struct replay *replay, const char *symbol)
{
	const char *uid;
	void *value;

	for (size_t it = 0; symbol != NULL && hf_map_next(replay->uids, &it, &uid, &value);)
		if (hf_streq(value, symbol))
			return uid;
	return NULL;
}

static void name_owner(const struct replay *replay, struct hf_json *body)
{
	const struct hf_json *refs = hf_json_path(body, "metadata", "ownerReferences", NULL);

	for (size_t i = 0; i < hf_json_len(refs); i++) {
		struct hf_json *ref = hf_json_item(refs, i);

		hf_json_set_str(ref, "uid", real_uid(replay, text_of(ref, "uid")));
	}
}

static int code_of(int code)
{
	switch (code) {
	case 0: return 200;
	case HF_E_NOT_FOUND: return 404;
	case HF_E_CONFLICT:
	case HF_E_EXISTS: return 409;
	case HF_E_INVALID: return 422;
	default: return -code;
	}
}

static int ask(struct replay *replay, const struct hf_json *line)
{
	const char *verb = text_of(line, "do"), *name = text_of(line, "name");
	const struct hf_resource *resource = hf_resource_by_word(text_of(line, "resource"));
	struct hf_doc *now = hf_memstore_peek(replay->sim->memstore, resource, NS, name);
	const char *version = text_of(line, "version"),
		   *uid = real_uid(replay, text_of(line, "uid"));
	struct hf_json *body =
		hf_json_get(line, "body") == NULL ? NULL : hf_json_copy(hf_json_get(line, "body"));
	HF_AUTOFREE char *number = NULL;
	HF_AUTO_RESULT result = {0};

	if (version != NULL)
		number = hf_xstrdup(hf_streq(version, "stale")
					    ? (const char *)hf_map_get(replay->first, name)
					    : hf_doc_resource_version(now));
	if (hf_streq(verb, "create")) {
		hf_json_set_str(hf_json_ensure_object(body, "metadata"), "namespace", NS);
		/* There a machine has a name. */
		hf_json_remove(hf_json_get(body, "spec"), "nodeSelector");
		name_owner(replay, body);
	} else if (hf_streq(verb, "patch")) {
		struct hf_json *meta = hf_json_ensure_object(body, "metadata");

		hf_json_set_str(meta, "resourceVersion", number);
		hf_json_set_str(meta, "uid", uid);
		if (hf_json_true(hf_json_get(replay->head, "narrow"), false))
			hf_json_remove(hf_json_get(body, "status"), "recovery");
	}
	HF_AUTO_DOC doc = body == NULL ? NULL : hf_doc_from_json(body);
	bool deletes = hf_streq(verb, "delete");
	const struct hf_request request = {
		.verb = deletes                    ? HF_VERB_DELETE
			: hf_streq(verb, "create") ? HF_VERB_CREATE
						   : HF_VERB_PATCH,
		.resource = resource,
		.ns = NS,
		.name = hf_streq(verb, "create") ? NULL : name,
		.subresource = text_of(line, "sub"),
		.body = doc,
		.patch_type = HF_PATCH_MERGE,
		.grace_seconds = hf_json_i64(hf_json_get(line, "grace"), HF_GRACE_DEFAULT),
		.propagation = text_of(line, "propagation") ? HF_PROPAGATE_FOREGROUND
							    : HF_PROPAGATE_DEFAULT,
		.precondition_uid = deletes ? uid : NULL,
		.precondition_resource_version = deletes ? number : NULL,
	};

	hf_memstore_apply(replay->sim->memstore, &request, &result);
	return code_of(result.code);
}

/* Lets the trace's deed happen to the node of its only pod. */
static void deed(struct replay *replay, const char *what)
{
	struct sim *sim = replay->sim;
	struct hf_doc *pod = hf_memstore_peek(sim->memstore, &hf_pods, NS, "t-worker-0");
	struct sim_node *node =
		sim_node_get(sim, hf_json_path_str(hf_doc_json(pod), "spec", "nodeName", NULL));

	hf_assert(node != NULL);
	sim_node_happens(node, hf_streq(what, "drained") ? SIM_DRAINED : SIM_NODE_DELETED);
}

/* --- comparing ----------------------------------------------------------------------------------- */

static void wrong(struct replay *replay, const char *wanted, const char *found)
{
	printf("%s, line %zu: recorded  %s\n%*s the model   %s\n", replay->path, replay->at + 1,
	       wanted, (int)strlen(replay->path) + 7, "", found);
	replay->failed = true;
}

/* Watch events of two objects may come in any order, so each object is compared by itself. */
static void compare_object(struct replay *replay, const char *object)
{
	size_t seen = 0, at = replay->at;
	uint64_t version = 0;

	for (; at < replay->lines.len && text_of(replay->lines.items[at], "do") == NULL; at++) {
		const struct hf_json *line = replay->lines.items[at];

		if (text_of(line, "see") == NULL || !hf_streq(text_of(line, "uid"), object))
			continue;
		HF_AUTOFREE char *facts = without_ignored(replay, text_of(line, "facts"));
		HF_AUTOFREE char *wanted = hf_xasprintf("%s %s %s %s", text_of(line, "resource"),
							object, text_of(line, "see"), facts);
		HF_AUTOFREE char *mark = hf_xasprintf(" %s ", object);

		while (seen < replay->seen.len &&
		       strstr(replay->seen.items[seen].text, mark) == NULL)
			seen++;
		if (seen == replay->seen.len) {
			wrong(replay, wanted, "shows nothing");
			return;
		}
		if (!hf_streq(replay->seen.items[seen].text, wanted) ||
		    replay->seen.items[seen].version <= version) {
			wrong(replay, wanted, replay->seen.items[seen].text);
			return;
		}
		version = replay->seen.items[seen++].version;
	}
	HF_AUTOFREE char *mark = hf_xasprintf(" %s ", object);

	for (; seen < replay->seen.len; seen++)
		if (strstr(replay->seen.items[seen].text, mark) != NULL)
			wrong(replay, "nothing more", replay->seen.items[seen].text);
}

static void forget_seen(struct replay *replay)
{
	for (size_t i = 0; i < replay->seen.len; i++)
		free(replay->seen.items[i].text);
	replay->seen.len = 0;
}

static const char *version_of(struct replay *replay, const struct hf_json *line)
{
	const struct hf_resource *resource = hf_resource_by_word(text_of(line, "resource"));
	struct hf_doc *doc =
		hf_memstore_peek(replay->sim->memstore, resource, NS, text_of(line, "name"));

	return doc == NULL ? "" : hf_doc_resource_version(doc);
}

static void pass_time(struct replay *replay, const struct hf_json *line)
{
	hf_time wait = HF_SECOND * hf_json_i64(hf_json_get(line, "wait"), 1);

	(void)sim_advance(replay->sim, sim_now(replay->sim) + wait);
}

static void step(struct replay *replay)
{
	const struct hf_json *line = replay->lines.items[replay->at];
	const char *what = text_of(line, "do");
	char symbol[16];

	hf_assert(what != NULL);
	forget_seen(replay);
	if (text_of(line, "resource") == NULL) {
		deed(replay, what);
		pass_time(replay, line);
	} else {
		const struct hf_json *answer = replay->lines.items[replay->at + 1];
		HF_AUTOFREE char *before = hf_xstrdup(version_of(replay, line));
		int wanted = (int)hf_json_i64(hf_json_get(answer, "answer"), 0);
		bool changes = hf_json_true(hf_json_get(answer, "changed"), false), changed;
		int code = ask(replay, line);

		pass_time(replay, line);
		changed = !hf_streq(before, version_of(replay, line));
		if (code != wanted || changed != changes) {
			HF_AUTOFREE char *a = hf_xasprintf("%s is answered with %d%s", what, wanted,
							   changes ? "" : ", changes nothing");
			HF_AUTOFREE char *b =
				hf_xasprintf("%d%s", code, changed ? "" : ", changes nothing");

			wrong(replay, a, b);
		}
	}
	replay->at++;
	for (size_t i = 0; i <= hf_map_len(replay->uids); i++) {
		snprintf(symbol, sizeof(symbol), "u%zu", i + 1);
		compare_object(replay, symbol);
	}
	while (replay->at < replay->lines.len &&
	       text_of(replay->lines.items[replay->at], "do") == NULL)
		replay->at++;
}

/* --- worlds --------------------------------------------------------------------------------------- */

static void random_bytes(void *arg, void *bytes, size_t len)
{
	struct hf_rng *rng = arg;

	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i] = (unsigned char)hf_rng_next(rng);
}

static void play(struct sim *sim, void *arg)
{
	struct replay *replay = arg;

	replay->sim = sim;
	replay->observer = (struct hf_memstore_observer){
		.changed = on_change, .reset = on_reset, .arg = replay};
	hf_memstore_observe(sim->memstore, &replay->observer);
	while (replay->at < replay->lines.len && !replay->failed)
		step(replay);
	hf_memstore_unobserve(sim->memstore, &replay->observer);
	forget_seen(replay);
}

/* The store and the garbage collector. */
static void play_alone(struct replay *replay)
{
	struct sim *sim = hf_xcalloc(1, sizeof(*sim));
	struct hf_rng rng;
	struct hf_memstore_options options = {.random = random_bytes, .random_arg = &rng};
	struct hf_error err;
	int rc;

	hf_rng_init(&rng, 1);
	sim->loop = hf_loop_create_virtual(SIM_WALL_START);
	rc = hf_memstore_create(sim->loop, &options, &sim->memstore, &err);
	hf_assert(rc == 0);
	sim->gc = hf_gc_create(sim->memstore, NULL);
	play(sim, replay);
	hf_gc_destroy(sim->gc);
	hf_memstore_destroy(sim->memstore);
	hf_loop_destroy(sim->loop);
	free(sim);
}

static void play_in_world(struct replay *replay)
{
	const struct hf_json *ends = hf_json_get(replay->head, "ends");
	struct sim_script script = {.name = replay->path};
	struct sim_options options = {
		.seed = 1, .script = &script, .play = play, .play_arg = replay};
	struct sim_summary summary = {0};
	struct sim_outcome outcome;

	/* What is not named runs on. */
	script.ends[0] = (struct sim_script_end){"t-worker-0", 0, HF_HOUR, 0, SIM_EXITED};
	for (size_t i = 0; i < hf_json_len(ends) && i < SIM_SCRIPT_PARTS_MAX; i++) {
		const struct hf_json *end = hf_json_item(ends, i);

		script.ends[i] = (struct sim_script_end){
			.pod = text_of(end, "pod"),
			.start = (int)hf_json_i64(hf_json_get(end, "start"), 0),
			.after = 2 * HF_SECOND,
			.code = (int)hf_json_i64(hf_json_get(end, "code"), 0),
			.kind = SIM_EXITED};
	}
	sim_run(&options, &summary, &outcome);
	if (outcome.failed) {
		printf("%s: %s\n", replay->path, outcome.failure);
		replay->failed = true;
	}
	sim_ids_release(&outcome.happened);
}

/* --- files ---------------------------------------------------------------------------------------- */

static bool read_lines(struct replay *replay)
{
	FILE *file = fopen(replay->path, "r");
	char *text = hf_xmalloc(LINE_MAX_BYTES);
	struct hf_error err;
	bool good = file != NULL;

	while (good && fgets(text, LINE_MAX_BYTES, file) != NULL) {
		struct hf_json *line = NULL;

		good = hf_json_parse(text, strlen(text), NULL, &line, &err) == 0 &&
		       HF_VEC_PUSH(&replay->lines, line);
	}
	if (file != NULL)
		fclose(file);
	free(text);
	return good && replay->lines.len > 1;
}

static bool run(const char *path)
{
	struct replay replay = {.path = path,
				.lines = HF_VEC_INIT(LINES_MAX),
				.seen = HF_VEC_INIT(VIEWS_MAX),
				.uids = hf_map_create(UIDS_MAX, 0, free),
				.facts = hf_map_create(UIDS_MAX, 0, free),
				.first = hf_map_create(UIDS_MAX, 0, free)};

	if (read_lines(&replay)) {
		replay.head = replay.lines.items[0];
		replay.at = 1;
		if (hf_json_true(hf_json_get(replay.head, "world"), false))
			play_in_world(&replay);
		else
			play_alone(&replay);
	} else {
		printf("%s: cannot be read\n", path);
		replay.failed = true;
	}
	if (!replay.failed)
		printf("%s: as recorded: %s\n", path, text_of(replay.head, "about"));
	for (size_t i = 0; i < replay.lines.len; i++)
		hf_json_unref(replay.lines.items[i]);
	HF_VEC_RELEASE(&replay.lines);
	HF_VEC_RELEASE(&replay.seen);
	hf_map_destroy(replay.uids);
	hf_map_destroy(replay.facts);
	hf_map_destroy(replay.first);
	return !replay.failed;
}

int main(int argc, char **argv)
{
	bool good = argc > 1;

	for (int i = 1; i < argc; i++)
		good = run(argv[i]) && good;
	return good ? 0 : 1;
}
