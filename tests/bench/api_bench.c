/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "http/client.h"
#include "kube/kube.h"
#include "harness/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * What a client of the API sees, over TLS with the token of a kubeconfig: each connection asks
 * for one thing after the other.
 *
 *     api_bench KUBECONFIG WHAT CONNECTIONS REQUESTS SECONDS [FIRST]
 *
 * WHAT is get (of job bench-FIRST), list (of every job), create (bench-FIRST and so on,
 * suspended, 1 master and 2 workers) or watch (a label of bench-FIRST is patched; from sending
 * that to the event of it).  It ends after REQUESTS or SECONDS, whatever is first.  The first
 * request of each connection makes the connection and is not counted.
 */

#define JOBS "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
#define CONNECTIONS_MAX 64
#define EVENT_BYTES_MAX ((size_t)4 << 20)

enum what { GET, LIST, CREATE, WATCH };
static const char *const names[] = {"get", "list", "create", "watch"};

struct connection {
	struct bench *bench;
	struct hf_http_client *client;
	double sent_at;
	bool warm;
};

struct bench {
	struct hf_loop *loop;
	struct hf_kube_config config;
	enum what what;
	int connections_len, total, first;
	double seconds, start, cpu_start;
	struct connection connections[CONNECTIONS_MAX];
	int warm, sent, done;
	double *took; /* of total */
	size_t bytes; /* of the last answer */

	/* watch */
	struct hf_http_client *watcher;
	struct hf_strbuf line; /* what has come of an event */
	char label[64];        /* that only the next event has */
	bool event_seen, reply_seen;
	double event_at;
};

static void next(struct connection *connection);

static void must(int rc, const struct hf_error *err)
{
	if (rc != 0)
		die("failed", rc, err->text);
}

static struct hf_http_client *connect_to(const struct bench *bench)
{
	struct hf_http_client_spec spec = {
		.base_url = bench->config.server,
		.ca_pem = bench->config.ca_pem,
		.proxy_url = "",
		.in_flight_max = 1,
	};
	struct hf_http_client *client;
	struct hf_error err;

	must(hf_http_client_create(bench->loop, &spec, &client, &err), &err);
	hf_http_client_set_bearer(client, bench->config.token);
	return client;
}

static void add_job(struct hf_strbuf *sb, int i)
{
	static const char replica[] =
		"\"restartPolicy\":\"OnFailure\",\"template\":{\"spec\":{\"containers\":[{\"name\":"
		"\"pytorch\",\"image\":\"registry.example/training:1\",\"command\":[\"python3\","
		"\"train.py\"],\"args\":[\"--epochs\",\"10\"],\"env\":[{\"name\":\"SEED\",\"value\":"
		"\"7\"},{\"name\":\"DATA\",\"value\":\"/data\"}],\"resources\":{\"limits\":{\"cpu\":"
		"\"2\",\"memory\":\"8Gi\"}}}]}}";

	hf_strbuf_addf(sb,
		       "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
		       "\"name\":\"bench-%d\"},\"spec\":{\"runPolicy\":{\"suspend\":true},"
		       "\"pytorchReplicaSpecs\":{\"Master\":{\"replicas\":1,%s},"
		       "\"Worker\":{\"replicas\":2,%s}}}}",
		       i, replica, replica);
}

/* ---- answers ------------------------------------------------------------------------------ */

/* One measurement is whole. */
static void took(struct connection *connection)
{
	struct bench *bench = connection->bench;

	double end = bench->what == WATCH ? bench->event_at : clock_of(CLOCK_MONOTONIC);

	bench->took[bench->done++] = end - connection->sent_at;
	if (bench->sent < bench->total && clock_of(CLOCK_MONOTONIC) - bench->start < bench->seconds)
		next(connection);
	else if (bench->done == bench->sent)
		hf_loop_stop(bench->loop);
}

static void on_warm(struct bench *bench)
{
	if (++bench->warm < bench->connections_len + (bench->what == WATCH))
		return;
	bench->start = clock_of(CLOCK_MONOTONIC);
	bench->cpu_start = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < bench->connections_len; i++)
		next(&bench->connections[i]);
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct connection *connection = arg;
	struct bench *bench = connection->bench;

	if (result->code != 0)
		die(names[bench->what], result->code, result->err->text);
	if (result->status >= 300)
		die(names[bench->what], result->status, result->body);
	if (!connection->warm) {
		connection->warm = true;
		on_warm(bench);
		return;
	}
	bench->bytes = result->body_len;
	bench->reply_seen = true;
	if (bench->what != WATCH || bench->event_seen)
		took(connection);
}

/* An event of the job with the label that was patched last. */
static void on_event(struct bench *bench, const char *line)
{
	if (bench->sent == 0 || bench->event_seen || strstr(line, bench->label) == NULL)
		return;
	bench->event_seen = true;
	bench->event_at = clock_of(CLOCK_MONOTONIC);
	if (bench->reply_seen)
		took(&bench->connections[0]);
}

static void on_watch_head(void *arg, struct hf_transfer *transfer, int status)
{
	if (status != 200)
		die("watch", status, "");
	on_warm(arg);
}

static void on_watch_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	struct bench *bench = arg;

	for (size_t i = 0; i < len; i++) {
		hf_strbuf_addch(&bench->line, bytes[i]);
		if (bytes[i] != '\n')
			continue;
		on_event(bench, bench->line.data);
		hf_strbuf_clear(&bench->line);
	}
}

static void on_watch_done(void *arg, const struct hf_http_result *result)
{
	die("the watch ended", result->status, result->err != NULL ? result->err->text : "");
}

/* ---- requests ----------------------------------------------------------------------------- */

static void send_to(struct connection *connection, struct hf_http_request *request)
{
	struct hf_error err;

	request->on_done = on_done;
	request->arg = connection;
	connection->sent_at = clock_of(CLOCK_MONOTONIC);
	must(hf_http_client_send(connection->client, request, NULL, &err), &err);
}

static void next(struct connection *connection)
{
	struct bench *bench = connection->bench;
	HF_AUTO_STRBUF body = HF_STRBUF_INIT(65536);
	HF_AUTOFREE char *job = hf_xasprintf(JOBS "/bench-%d", bench->first);
	struct hf_http_request request = {.method = "GET", .target = JOBS};
	int i = bench->sent++;

	switch (bench->what) {
	case GET: request.target = job; break;
	case LIST: break;
	case CREATE:
		request.method = "POST";
		add_job(&body, bench->first + i);
		break;
	case WATCH:
		request.method = "PATCH";
		request.target = job;
		request.content_type = "application/merge-patch+json";
		bench->event_seen = bench->reply_seen = false;
		/* Of this process: a label that is there already would be no change. */
		(void)snprintf(bench->label, sizeof(bench->label), "\"bench\":\"r%d-%d\"",
			       (int)getpid(), i);
		hf_strbuf_addf(&body, "{\"metadata\":{\"labels\":{%s}}}", bench->label);
		break;
	}
	request.body = body.len > 0 ? body.data : NULL;
	request.body_len = body.len;
	send_to(connection, &request);
}

static void start(struct bench *bench)
{
	struct hf_http_request watch = {.method = "GET",
					.target = JOBS "?watch=true",
					.stream = true,
					.on_head = on_watch_head,
					.on_data = on_watch_data,
					.on_done = on_watch_done,
					.arg = bench};
	struct hf_error err;

	if (bench->what == WATCH) {
		bench->watcher = connect_to(bench);
		must(hf_http_client_send(bench->watcher, &watch, NULL, &err), &err);
	}
	for (int i = 0; i < bench->connections_len; i++) {
		struct connection *connection = &bench->connections[i];
		struct hf_http_request warm = {.method = "GET", .target = "/version"};

		*connection = (struct connection){.bench = bench, .client = connect_to(bench)};
		send_to(connection, &warm);
	}
}

/* ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(struct bench *bench)
{
	double wall = clock_of(CLOCK_MONOTONIC) - bench->start;
	double cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - bench->cpu_start;
	int n = bench->done;

	qsort(bench->took, (size_t)n, sizeof(*bench->took), by_size);
	printf("api %s connections=%d requests=%d per_second=%.1f p50_us=%.0f p99_us=%.0f "
	       "max_us=%.0f bytes=%zu client_cpu_us=%.1f wall_s=%.3f\n",
	       names[bench->what], bench->connections_len, n, n / wall, bench->took[n / 2] * 1e6,
	       bench->took[(int)((n - 1) * 0.99)] * 1e6, bench->took[n - 1] * 1e6, bench->bytes,
	       cpu / n * 1e6, wall);
}

int main(int argc, char **argv)
{
	struct bench bench = {.line = HF_STRBUF_INIT(EVENT_BYTES_MAX)};
	struct hf_error err;

	if (argc < 6) {
		fprintf(stderr, "usage: api_bench KUBECONFIG get|list|create|watch CONNECTIONS "
				"REQUESTS SECONDS [FIRST]\n");
		return 2;
	}
	while (bench.what < WATCH && !hf_streq(argv[2], names[bench.what]))
		bench.what++;
	bench.connections_len = (int)strtol(argv[3], NULL, 10);
	bench.total = (int)strtol(argv[4], NULL, 10);
	bench.seconds = strtod(argv[5], NULL);
	bench.first = argc > 6 ? (int)strtol(argv[6], NULL, 10) : 0;
	hf_assert(bench.connections_len >= 1 && bench.connections_len <= CONNECTIONS_MAX);
	hf_assert(bench.total >= bench.connections_len);
	bench.took = hf_xcalloc((size_t)bench.total, sizeof(*bench.took));
	must(hf_kube_config_read(argv[1], NULL, &bench.config, &err), &err);
	must(hf_loop_create(&bench.loop, &err), &err);
	start(&bench);
	hf_loop_run(bench.loop);
	print(&bench);
	for (int i = 0; i < bench.connections_len; i++)
		hf_http_client_destroy(bench.connections[i].client);
	hf_http_client_destroy(bench.watcher);
	hf_loop_destroy(bench.loop);
	hf_kube_config_release(&bench.config);
	hf_strbuf_release(&bench.line);
	free(bench.took);
	return 0;
}
