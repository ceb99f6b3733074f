/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver.h"
#include "harness/raw_client.h"

#include "apiserver/admission.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "store/backend.h"
#include "store/resource.h"

#include <stdlib.h>

/* Tests of the HTTP API with raw bytes over plain HTTP. They show what kubectl and the SDK
 * (tests/clients) cannot show. */

#define TOKEN "0123456789abcdef"

struct bench {
	struct hf_test_loop t;
	struct hf_memstore *memstore;
	struct hf_apiserver *server;
	struct hf_raw raw;
};

static void write_metrics(void *arg, struct hf_strbuf *sb)
{
	hf_strbuf_addstr(sb, "holdfast_test 1\n");
}

static bool serves_kind(const struct hf_resource *resource)
{
	return resource != &hf_tfjobs;
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_apiserver_options options = {
		.token = TOKEN, .metrics = write_metrics, .serves = serves_kind};
	struct hf_error err = {0};

	hf_test_loop_init(&bench->t);
	assert_ok(hf_memstore_create(bench->t.loop,
				     &(struct hf_memstore_options){.watch_history = 64},
				     &bench->memstore, &err),
		  &err);
	hf_admission_install(bench->memstore, hf_frameworks);
	assert_ok(
		hf_apiserver_create(bench->t.loop, bench->memstore, &options, &bench->server, &err),
		&err);
	hf_raw_open(&bench->raw, &bench->t, hf_apiserver_port(bench->server));
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_raw_close(&bench->raw);
	hf_apiserver_destroy(bench->server);
	hf_memstore_destroy(bench->memstore);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

/* Sends a request on the connection of the bench, after dropping the bytes received before. */
static void send_request(struct bench *bench, const char *line, const char *headers,
			 const char *body)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("%s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " TOKEN
			     "\r\n%sContent-Length: %zu\r\n\r\n%s",
			     line, headers, strlen(body), body);

	hf_strbuf_clear(&bench->raw.in);
	hf_raw_say(&bench->raw, text);
}

static void expect_response(struct bench *bench, const char *line, const char *headers,
			    const char *body, const char *wanted)
{
	send_request(bench, line, headers, body);
	hf_raw_expect(&bench->raw, wanted);
}

#define MAP(name, data)                                                                            \
	"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name             \
	"\"},\"data\":{\"d\":\"" data "\"}}"
#define MAPS "/api/v1/namespaces/default/configmaps"

static void requests_without_the_token_get_401(void **state)
{
	static const char *const headers[] = {
		"",
		"Authorization: Bearer \r\n",
		"Authorization: Bearer 0123456789abcdeF\r\n",
		"Authorization: Bearer 0123456789abcdef0\r\n",
		"Authorization: Bearer 0123456789abcde\r\n",
		"Authorization: Basic 0123456789abcdef\r\n",
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(headers); i++) {
		HF_AUTOFREE char *text =
			hf_xasprintf("GET /api HTTP/1.1\r\nHost: h\r\n%s\r\n", headers[i]);
		/* The server has closed the last connection, because its request had no valid
		 * token. */
		hf_raw_close(&bench->raw);
		hf_raw_open(&bench->raw, &bench->t, hf_apiserver_port(bench->server));
		hf_raw_say(&bench->raw, text);
		hf_raw_expect(&bench->raw, "\"code\":401}");
		hf_raw_expect(&bench->raw, "HTTP/1.1 401 ");
		hf_raw_expect(&bench->raw, "\"reason\":\"Unauthorized\"");
	}
}

static void health_and_version_need_no_token(void **state)
{
	static const char *const paths[] = {"/healthz", "/livez", "/readyz", "/version"};
	struct bench *bench = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(paths); i++) {
		HF_AUTOFREE char *text =
			hf_xasprintf("GET %s HTTP/1.1\r\nHost: h\r\n\r\n", paths[i]);
		hf_strbuf_clear(&bench->raw.in);
		hf_raw_say(&bench->raw, text);
		hf_raw_expect(&bench->raw, i < 3 ? "\r\n\r\nok" : "+holdfast");
	}
	expect_response(bench, "GET /metrics", "", "", "\r\n\r\nholdfast_test 1\n");
}

static void an_object_is_made_read_listed_changed_and_deleted(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "POST " MAPS, "Content-Type: application/json\r\n", MAP("a", "1"),
			"HTTP/1.1 201 ");
	hf_raw_expect(&bench->raw, "\"uid\":");
	expect_response(bench, "GET " MAPS "/a", "", "", "\"d\":\"1\"");
	expect_response(bench, "GET " MAPS "?limit=1", "", "",
			"\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\"");
	expect_response(bench, "PATCH " MAPS "/a", "Content-Type: application/merge-patch+json\r\n",
			"{\"data\":{\"d\":\"2\"}}", "\"d\":\"2\"");
	expect_response(bench, "PUT " MAPS "/a", "", MAP("a", "3"), "\"d\":\"3\"");
	expect_response(bench, "DELETE " MAPS "/a", "",
			"{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}", "HTTP/1.1 200 ");
	expect_response(bench, "GET " MAPS "/a", "", "", "configmaps \\\"a\\\" not found");
	hf_raw_expect(&bench->raw, "HTTP/1.1 404 ");
}

static void a_body_may_be_yaml(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "POST " MAPS, "Content-Type: application/yaml\r\n",
			"kind: ConfigMap\napiVersion: v1\nmetadata: {name: of-yaml}\n",
			"HTTP/1.1 201 ");
	expect_response(bench, "POST " MAPS, "Content-Type: application/yaml\r\n",
			"a: 1\n---\nb: 2\n", "the body must be one YAML document, not 2");
	hf_raw_expect(&bench->raw, "HTTP/1.1 400 ");
}

static void pages_are_linked_by_tokens(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "POST " MAPS, "", MAP("a", "1"), "HTTP/1.1 201 ");
	expect_response(bench, "POST " MAPS, "", MAP("b", "1"), "HTTP/1.1 201 ");
	expect_response(bench, "GET " MAPS "?limit=1", "", "", "\"remainingItemCount\":1}");
	hf_raw_expect(&bench->raw, "\"name\":\"a\"");
	const char *token = strstr(bench->raw.in.data, "\"continue\":\"");
	assert_non_null(token);
	token += strlen("\"continue\":\"");
	HF_AUTOFREE char *line = hf_xasprintf("GET " MAPS "?limit=1&continue=%.*s",
					      (int)strcspn(token, "\""), token);
	expect_response(bench, line, "", "", "\"name\":\"b\"");
	assert_null(strstr(bench->raw.in.data, "\"continue\""));
}

static void unsupported_requests_are_refused_in_an_api_servers_words(void **state)
{
	static const struct {
		const char *line, *headers, *body, *wanted;
	} cases[] = {
		{"GET /nope", "", "", "the server could not find the requested resource"},
		{"GET /apis/kubeflow.org/v1/tfjobs", "", "", "\"code\":404}"},
		{"PATCH " MAPS, "", "{}", "\"code\":405}"},
		{"POST " MAPS "/a", "", "{}", "\"code\":405}"},
		{"POST " MAPS, "Content-Type: application/cbor\r\n", "k8s", "\"code\":415}"},
		{"POST " MAPS, "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s",
		 "cannot read the body: protobuf: Unknown: the message does not begin with"},
		{"PATCH " MAPS "/a", "Content-Type: application/apply-patch+yaml\r\n", "{}",
		 "fieldManager: Required value: is required for apply patch"},
		{"PATCH " MAPS "/a", "Content-Type: application/json\r\n", "{}", "\"code\":415}"},
		{"GET " MAPS, "Accept: application/vnd.kubernetes.protobuf\r\n", "",
		 "\"code\":406}"},
		{"POST " MAPS, "", "{", "cannot read the body: "},
		{"POST " MAPS "?fieldValidation=Maybe", "", MAP("a", "1"), "\"code\":400}"},
		{"POST " MAPS "?dryRun=Some", "", MAP("a", "1"), "\"code\":400}"},
		{"GET " MAPS "?limit=x", "", "", "limit must be a number"},
		{"GET " MAPS "?labelSelector=a%3D%3D%3D", "", "", "\"code\":400}"},
		{"GET " MAPS "?watch=1&labelSelector=a%3D%3D%3D", "", "", "\"code\":400}"},
		{"GET " MAPS "?watch=1&resourceVersion=x", "", "", "\"code\":400}"},
		{"GET " MAPS "?watch=1&sendInitialEvents=true", "", "", "\"code\":422}"},
		{"DELETE " MAPS "/a?propagationPolicy=Odd", "", "",
		 "propagationPolicy: Unsupported"},
		{"DELETE " MAPS "/a", "", "{\"gracePeriodSeconds\":1,\"dryRun\":[\"Odd\"]}",
		 "dryRun: Unsupported"},
		{"POST /api/v1/namespaces/default/pods/p/exec", "", "", "\"code\":501}"},
		{"GET /api/v1/namespaces/default/pods/p/log", "", "", "pods \\\"p\\\" not found"},
		{"GET /api/v1/namespaces/default/pods/p/log?tailLines=x", "", "", "\"code\":400}"},
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		expect_response(bench, cases[i].line, cases[i].headers, cases[i].body,
				cases[i].wanted);
		assert_non_null(strstr(bench->raw.in.data, "\"kind\":\"Status\""));
	}
}

static void a_dry_run_stores_nothing(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "POST " MAPS "?dryRun=All", "", MAP("a", "1"), "HTTP/1.1 201 ");
	expect_response(bench, "GET " MAPS "/a", "", "", "HTTP/1.1 404 ");
}

static void unknown_fields_are_warned_of_in_a_header(void **state)
{
	struct bench *bench = *state;

	expect_response(
		bench, "POST " MAPS, "",
		"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"w\"},"
		"\"odd\\\"\":1}",
		"Warning: 299 - \"unknown field \\\"odd\\\"\\\"\"\r\n");
}

static void a_collection_is_deleted_by_selector(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "POST " MAPS, "", MAP("a", "1"), "HTTP/1.1 201 ");
	expect_response(bench, "POST " MAPS, "", MAP("b", "1"), "HTTP/1.1 201 ");
	expect_response(bench, "DELETE " MAPS "?fieldSelector=metadata.name%3Da", "", "",
			"\"Success\"");
	expect_response(bench, "GET " MAPS "/a", "", "", "HTTP/1.1 404 ");
	expect_response(bench, "GET " MAPS "/b", "", "", "HTTP/1.1 200 ");
}

static void discovery_and_openapi_list_the_kinds(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "GET /api", "", "", "\"versions\":[\"v1\"]");
	expect_response(bench, "GET /apis", "", "", "\"name\":\"kubeflow.org\"");
	expect_response(bench, "GET /apis/kubeflow.org", "", "", "\"kind\":\"APIGroup\"");
	expect_response(bench, "GET /apis/nope.org", "", "", "HTTP/1.1 404 ");
	expect_response(bench, "GET /apis/kubeflow.org/v1", "", "",
			"\"name\":\"pytorchjobs/scale\"");
	assert_null(strstr(bench->raw.in.data, "tfjobs"));
	expect_response(bench, "GET /openapi/v3", "", "", "/openapi/v3/apis/kubeflow.org/v1?hash=");
	expect_response(bench, "GET /openapi/v3/apis/kubeflow.org/v1", "", "",
			"\"x-kubernetes-action\":\"patch\"");
	expect_response(bench, "GET /openapi/v3/api/v1", "", "", "\"name\":\"fieldValidation\"");
	expect_response(bench, "GET /openapi/v3/apis/nope/v1", "", "", "HTTP/1.1 404 ");
	expect_response(bench, "GET /openapi/v2", "", "", "\"swagger\":\"2.0\"");
}

static void schemas_list_the_fields(void **state)
{
#define JOBS "GET /openapi/v3/apis/kubeflow.org/v1"
#define REF "{\"$ref\":\"#/components/schemas/dev.holdfast.v1."
	struct bench *bench = *state;

	expect_response(bench, JOBS, "", "",
			"\"runPolicy\":{\"description\":\"Settings of the job.\","
			"\"allOf\":[" REF "RunPolicy\"}]}");
	expect_response(bench, JOBS, "", "", "\"dev.holdfast.v1.EnvVarSource\":{");
	expect_response(bench, JOBS, "", "",
			"\"x-kubernetes-group-version-kind\":[{\"group\":\"kubeflow.org\","
			"\"kind\":\"PyTorchJob\",\"version\":\"v1\"}]");
	/* OpenAPI lists the fields of an inlined object in its parent. */
	expect_response(bench, "GET /openapi/v3/api/v1", "", "",
			"\"dev.holdfast.v1.Volume\":{\"type\":\"object\",\"properties\":{"
			"\"name\":{\"type\":\"string\"},\"hostPath\":" REF
			"HostPathVolumeSource\"}");
}

static void access_reviews_are_always_allowed(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			"Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s",
			"\"allowed\":true");
	expect_response(bench, "GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "",
			"\"code\":404}");
}

/* ---- watches ------------------------------------------------------------------------------ */

/* Writes a config map as another client would; the store applies the write at once. */
static void write_map(struct bench *bench, const char *name, const char *data)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":"
			     "{\"name\":\"%s\"},\"data\":{\"d\":\"%s\"}}",
			     name, data);
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_configmaps, .ns = "default", .body = body};
	HF_AUTO_RESULT created = {0};

	hf_memstore_apply(bench->memstore, &request, &created);
	if (created.code == HF_E_EXISTS) {
		HF_AUTO_RESULT changed = {0};
		request.verb = HF_VERB_UPDATE;
		request.name = name;
		hf_memstore_apply(bench->memstore, &request, &changed);
		assert_int_equal(changed.code, 0);
	} else {
		assert_int_equal(created.code, 0);
	}
}

static void a_watch_delivers_initial_objects_and_changes(void **state)
{
	struct bench *bench = *state;

	write_map(bench, "a", "1");
	send_request(bench, "GET " MAPS "?watch=1", "", "");
	hf_raw_expect(&bench->raw, "{\"type\":\"ADDED\",\"object\":");
	write_map(bench, "a", "2");
	hf_raw_expect(&bench->raw, "{\"type\":\"MODIFIED\",\"object\":");
	hf_raw_expect(&bench->raw, "\"d\":\"2\"");
	hf_raw_expect(&bench->raw, "Transfer-Encoding: chunked");
}

static void a_watch_ends_when_its_time_is_up(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "GET " MAPS "?watch=true&timeoutSeconds=1", "", "", "\r\n0\r\n\r\n");
	hf_raw_expect(&bench->raw, "HTTP/1.1 200 ");
}

static void a_watch_from_too_long_ago_says_410(void **state)
{
	struct bench *bench = *state;
	char data[16];

	for (int i = 0; i < 100; i++) {
		snprintf(data, sizeof(data), "%d", i);
		write_map(bench, "a", data);
	}
	expect_response(bench, "GET " MAPS "?watch=1&resourceVersion=1", "", "", "\r\n0\r\n\r\n");
	hf_raw_expect(&bench->raw, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"");
	hf_raw_expect(&bench->raw, "\"reason\":\"Expired\"");
	hf_raw_expect(&bench->raw, "\"code\":410}");
}

static void a_watch_as_a_table_names_its_columns_once(void **state)
{
	struct bench *bench = *state;

	write_map(bench, "a", "1");
	send_request(bench, "GET " MAPS "?watch=1",
		     "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n", "");
	hf_raw_expect(&bench->raw, "\"cells\":[\"a\",1,");
	write_map(bench, "b", "1");
	hf_raw_expect(&bench->raw, "\"cells\":[\"b\",1,");
	const char *first = strstr(bench->raw.in.data, "\"columnDefinitions\":[{");
	assert_non_null(first);
	assert_null(strstr(first + 1, "\"columnDefinitions\":[{"));
}

/* Lets the loop run for some time in which the client reads nothing. */
static void stop_later(void *arg)
{
	hf_loop_stop(arg);
}

static void run_for(struct bench *bench, hf_time span)
{
	struct hf_timer *timer = hf_timer_create(bench->t.loop, stop_later, bench->t.loop);

	hf_timer_arm(timer, span);
	hf_test_loop_run(&bench->t);
	hf_timer_destroy(timer);
}

static void a_slow_watcher_resumes_or_gets_410(void **state)
{
	struct bench *bench = *state;
	HF_AUTOFREE char *big = hf_xmalloc(500001);

	memset(big, 'x', 500000);
	send_request(bench, "GET " MAPS "?watch=1", "", "");
	hf_raw_expect(&bench->raw, "HTTP/1.1 200 ");
	bench->raw.paused = true;
	hf_raw_want(&bench->raw);
	/* The writes are far more than any buffer holds. The history keeps only 64 changes, of half
	 * a megabyte each. */
	for (int i = 0; i < 120; i++) {
		snprintf(big + 499990, 11, "%010d", i);
		write_map(bench, "a", big);
		run_for(bench, HF_MS);
	}
	bench->raw.paused = false;
	hf_raw_want(&bench->raw);
	hf_raw_expect(&bench->raw, "\r\n0\r\n\r\n");
	hf_raw_expect(&bench->raw, "\"code\":410}");
	/* Before the 410, the client got every event once and in order, apart from the digits that
	 * a chunk cuts. */
	int last = -1;
	for (const char *at = bench->raw.in.data; (at = strstr(at, "\"d\":\"x")) != NULL; at++) {
		HF_AUTO_STRBUF digits = HF_STRBUF_INIT(16);
		const char *end = strchr(at + 5, '"');
		hf_strbuf_add(&digits, end - 10, 10);
		int64_t number;
		/* Skip a number that is cut by the end of a chunk. */
		if (hf_str_to_i64(digits.data, 0, 1000, &number, NULL) != 0)
			continue;
		assert_true(number == last + 1 || last == -1 || number == last + 2);
		last = (int)number;
	}
	assert_true(last >= 0 && last < 119);
}

static void quiescing_ends_the_watches_that_are_open(void **state)
{
	struct bench *bench = *state;

	send_request(bench, "GET " MAPS "?watch=1", "", "");
	hf_raw_expect(&bench->raw, "HTTP/1.1 200 ");
	hf_apiserver_quiesce(bench->server);
	hf_raw_expect(&bench->raw, "\r\n0\r\n\r\n");
	expect_response(bench, "GET " MAPS "?watch=1", "", "", "\"code\":503}");
}

static void a_closed_watch_is_freed(void **state)
{
	struct bench *bench = *state;

	send_request(bench, "GET " MAPS "?watch=1", "", "");
	hf_raw_expect(&bench->raw, "HTTP/1.1 200 ");
	hf_raw_close(&bench->raw);
	run_for(bench, 50 * HF_MS);
	hf_raw_open(&bench->raw, &bench->t, hf_apiserver_port(bench->server));
	write_map(bench, "a", "1");
	expect_response(bench, "GET " MAPS "/a", "", "", "HTTP/1.1 200 ");
}

static void a_short_token_is_refused(void **state)
{
	struct bench *bench = *state;
	struct hf_apiserver *server = NULL;
	struct hf_error err;

	assert_code(hf_apiserver_create(bench->t.loop, bench->memstore,
					&(struct hf_apiserver_options){.token = "short"}, &server,
					&err),
		    HF_E_INVALID);
	assert_null(server);
}

/* ---- evictions ---------------------------------------------------------------------------- */

#define PODS "/api/v1/namespaces/default/pods"
#define POD_P                                                                                      \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{"         \
	"\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":7,"                                  \
	"\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}"
#define EVICTION(more)                                                                             \
	"{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\"}" more "}"

static void an_evicted_pod_is_marked_and_given_its_grace(void **state)
{
	struct bench *bench = *state;

	expect_response(bench, "POST " PODS, "", POD_P, "HTTP/1.1 201 ");
	expect_response(bench, "POST " PODS "/p/eviction?dryRun=All", "", EVICTION(""),
			"HTTP/1.1 201 ");
	expect_response(bench, "GET " PODS "/p", "", "", "HTTP/1.1 200 ");
	assert_null(strstr(bench->raw.in.data, "DisruptionTarget"));
	expect_response(bench, "POST " PODS "/p/eviction", "", EVICTION(""),
			"\"status\":\"Success\"");
	hf_raw_expect(&bench->raw, "HTTP/1.1 201 ");
	expect_response(bench, "GET " PODS "/p", "", "", "\"deletionGracePeriodSeconds\":7");
	hf_raw_expect(&bench->raw, "\"type\":\"DisruptionTarget\",\"status\":\"True\"");
	hf_raw_expect(&bench->raw, "\"reason\":\"EvictionByEvictionAPI\","
				   "\"message\":\"Eviction API: evicting\"");
	/* A second eviction of the same pod shortens its grace period. */
	expect_response(bench, "POST " PODS "/p/eviction", "",
			EVICTION(",\"deleteOptions\":{\"gracePeriodSeconds\":2}"), "HTTP/1.1 201 ");
	expect_response(bench, "GET " PODS "/p", "", "", "\"deletionGracePeriodSeconds\":2");
	assert_null(strstr(strstr(bench->raw.in.data, "DisruptionTarget") + 1, "DisruptionTarget"));
	expect_response(bench, "POST " PODS "/p/eviction", "",
			EVICTION(",\"deleteOptions\":{\"gracePeriodSeconds\":0}"), "HTTP/1.1 201 ");
	expect_response(bench, "POST " PODS "/p/eviction", "", EVICTION(""),
			"pods \\\"p\\\" not found");
	hf_raw_expect(&bench->raw, "HTTP/1.1 404 ");
}

static void an_eviction_that_is_refused_leaves_no_mark(void **state)
{
	static const struct {
		const char *line, *body, *wanted;
	} cases[] = {
		{"POST " PODS "/p/eviction",
		 EVICTION(",\"deleteOptions\":{\"preconditions\":{\"uid\":\"u\"}}"),
		 "\"code\":409}"},
		{"POST " PODS "/p/eviction",
		 EVICTION(",\"deleteOptions\":{\"preconditions\":{\"resourceVersion\":\"1\"}}"),
		 "\"code\":409}"},
		{"POST " PODS "/p/eviction", "{}", "name in URL does not match"},
		{"POST " PODS "/p/eviction",
		 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}",
		 "the body must be an Eviction of policy/v1, not Pod of v1"},
		{"POST " PODS "/p/eviction",
		 "{\"metadata\":{\"name\":\"p\",\"namespace\":\"other\"}}",
		 "does not match the namespace"},
		{"POST " PODS "/p/eviction?dryRun=Some", EVICTION(""), "\"code\":400}"},
		{"POST " PODS "/p/eviction", "", "\"code\":400}"},
		{"GET " PODS "/p/eviction", "", "\"code\":405}"},
		{"POST " PODS "/p/eviction/x", EVICTION(""), "\"code\":404}"},
	};
	struct bench *bench = *state;

	expect_response(bench, "POST " PODS, "", POD_P, "HTTP/1.1 201 ");
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		expect_response(bench, cases[i].line, "", cases[i].body, cases[i].wanted);
	expect_response(bench, "GET " PODS "/p", "", "", "HTTP/1.1 200 ");
	assert_null(strstr(bench->raw.in.data, "DisruptionTarget"));
	assert_null(strstr(bench->raw.in.data, "deletionTimestamp"));
}

static void an_eviction_may_name_the_version_that_it_saw(void **state)
{
	struct bench *bench = *state;
	const char *version;

	expect_response(bench, "POST " PODS, "", POD_P, "\"resourceVersion\":\"");
	version = strstr(bench->raw.in.data, "\"resourceVersion\":\"") +
		  strlen("\"resourceVersion\":\"");
	HF_AUTOFREE char *body = hf_xasprintf(
		EVICTION(",\"deleteOptions\":{\"preconditions\":{\"resourceVersion\":\"%.*s\"}}"),
		(int)strcspn(version, "\""), version);
	expect_response(bench, "POST " PODS "/p/eviction", "", body, "HTTP/1.1 201 ");
	expect_response(bench, "GET " PODS "/p", "", "", "\"deletionTimestamp\"");
	expect_response(bench, "GET /api/v1", "", "", "{\"name\":\"pods/eviction\",");
	hf_raw_expect(&bench->raw,
		      "\"verbs\":[\"create\"],\"group\":\"policy\",\"version\":\"v1\"");
}

/* ---- logs --------------------------------------------------------------------------------- */

#define LOG_LINE "0123456789012345678901234567890123456789012345678901234567890123\n"
#define LOG_LINES 160000 /* makes a log of 10 MiB, more than all buffers on its way hold */

struct long_log {
	struct hf_log_stream base; /* the first member, for casts */
	struct hf_timer *timer;
	hf_log_fn fn;
	void *arg;
};

static void long_log_stop(struct hf_log_stream *base)
{
	struct long_log *log = (struct long_log *)base;

	hf_timer_destroy(log->timer);
	free(log);
}

static void long_log_write(void *arg)
{
	struct long_log *log = arg;

	for (int i = 0; i < LOG_LINES; i++)
		log->fn(log->arg, LOG_LINE, strlen(LOG_LINE), 0, "");
	log->fn(log->arg, NULL, 0, 0, "");
}

static struct hf_log_stream *long_log_start(void *arg, struct hf_doc *pod,
					    const struct hf_log_options *options, hf_log_fn fn,
					    void *fn_arg)
{
	static const struct hf_store_ops ops = {.logs_stop = long_log_stop};
	struct bench *bench = arg;
	struct long_log *log = hf_xcalloc(1, sizeof(*log));

	log->base.ops = &ops;
	log->fn = fn;
	log->arg = fn_arg;
	log->timer = hf_timer_create(bench->t.loop, long_log_write, log);
	hf_timer_arm(log->timer, 0);
	return &log->base;
}

static size_t count_text(const struct hf_strbuf *sb, char byte)
{
	size_t n = 0;

	for (size_t i = 0; i < sb->len; i++)
		n += sb->data[i] == byte;
	return n;
}

static void a_long_log_arrives_complete(void **state)
{
	struct bench *bench = *state;

	hf_memstore_set_logs(bench->memstore,
			     &(struct hf_memstore_logs){.start = long_log_start, .arg = bench});
	expect_response(
		bench, "POST /api/v1/namespaces/default/pods", "",
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":"
		"{\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}",
		"HTTP/1.1 201 ");
	send_request(bench, "GET /api/v1/namespaces/default/pods/p/log", "Connection: close\r\n",
		     "");
	hf_raw_expect_eof(&bench->raw);
	assert_true(hf_str_has_suffix(bench->raw.in.data, "\r\n0\r\n\r\n"));
	/* `in` also has the line ends of the chunks, so it is longer than the log. */
	assert_true(bench->raw.in.len > LOG_LINES * strlen(LOG_LINE));
	assert_in_range(count_text(&bench->raw.in, '\n'), LOG_LINES, LOG_LINES + 4096);
	hf_memstore_set_logs(bench->memstore, NULL);
}

static void a_port_in_use_is_an_error(void **state)
{
	struct bench *bench = *state;
	struct hf_apiserver *server = NULL;
	struct hf_error err;

	assert_code(hf_apiserver_create(
			    bench->t.loop, bench->memstore,
			    &(struct hf_apiserver_options){
				    .token = TOKEN, .port = hf_apiserver_port(bench->server)},
			    &server, &err),
		    HF_E_IO);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(requests_without_the_token_get_401),
		T(health_and_version_need_no_token),
		T(an_object_is_made_read_listed_changed_and_deleted),
		T(a_body_may_be_yaml),
		T(pages_are_linked_by_tokens),
		T(unsupported_requests_are_refused_in_an_api_servers_words),
		T(a_dry_run_stores_nothing),
		T(unknown_fields_are_warned_of_in_a_header),
		T(a_collection_is_deleted_by_selector),
		T(discovery_and_openapi_list_the_kinds),
		T(schemas_list_the_fields),
		T(access_reviews_are_always_allowed),
		T(a_watch_delivers_initial_objects_and_changes),
		T(a_watch_ends_when_its_time_is_up),
		T(a_watch_from_too_long_ago_says_410),
		T(a_watch_as_a_table_names_its_columns_once),
		T(a_slow_watcher_resumes_or_gets_410),
		T(quiescing_ends_the_watches_that_are_open),
		T(a_closed_watch_is_freed),
		T(a_short_token_is_refused),
		T(an_evicted_pod_is_marked_and_given_its_grace),
		T(an_eviction_that_is_refused_leaves_no_mark),
		T(an_eviction_may_name_the_version_that_it_saw),
		T(a_long_log_arrives_complete),
		T(a_port_in_use_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
