/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/arena.h"
#include "base/strbuf.h"
#include "json/fields.h"
#include "json/yaml.h"
#include "json/yaml_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*
 * What reading one Pod event costs: about 5 kB, half of it managedFields, as a busy cluster
 * sends them.
 *
 *     json_bench ROUNDS     microseconds of CPU for each way to read or write it
 *
 * fields and metadata read the text and skip the rest; parse, write and copy are of the whole
 * tree; yaml is the whole tree from its YAML.
 */

struct status {
	uint64_t present;
	const char *phase, *ip, *reason;
};
static const struct hf_field status_fields[] = {
	HF_FIELD_STRING("phase", struct status, phase, 64, 0),
	HF_FIELD_STRING("podIP", struct status, ip, 64, 0),
	HF_FIELD_STRING("reason", struct status, reason, 0, 0),
};
static const struct hf_field_table status_table = HF_FIELD_TABLE(status_fields, struct status);

struct metadata {
	uint64_t present;
	const char *name, *namespace, *uid, *version;
	hf_time created;
	HF_LIST(struct hf_field_pair) labels;
};
static const struct hf_field metadata_fields[] = {
	HF_FIELD_STRING("name", struct metadata, name, 253, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("namespace", struct metadata, namespace, 253, 0),
	HF_FIELD_STRING("uid", struct metadata, uid, 64, 0),
	HF_FIELD_STRING("resourceVersion", struct metadata, version, 64, 0),
	HF_FIELD_TIME("creationTimestamp", struct metadata, created, 0),
	HF_FIELD_STRING_MAP("labels", struct metadata, labels, 64, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);

struct pod {
	uint64_t present;
	struct metadata metadata;
	struct status status;
};
static const struct hf_field pod_fields[] = {
	HF_FIELD_OBJECT("metadata", struct pod, metadata, &metadata_table, HF_FIELD_REQUIRED),
	HF_FIELD_OBJECT("status", struct pod, status, &status_table, 0),
};
static const struct hf_field_table pod_table = HF_FIELD_TABLE(pod_fields, struct pod);

static void make_pod(struct hf_strbuf *sb)
{
	hf_strbuf_addstr(
		sb,
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"ddp-worker-1\","
		"\"namespace\":\"default\",\"uid\":\"5c0ff3e1-0000-4000-8000-000000000001\","
		"\"resourceVersion\":\"123456\",\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
		"\"labels\":{\"training.kubeflow.org/job-name\":\"ddp\","
		"\"training.kubeflow.org/replica-type\":\"worker\","
		"\"training.kubeflow.org/replica-index\":\"1\"},\"managedFields\":[{\"manager\":"
		"\"manager\",\"operation\":\"Update\",\"fieldsV1\":{");
	for (int i = 0; i < 60; i++)
		hf_strbuf_addf(sb, "%s\"f:field%d\":{\"k:{\\\"name\\\":\\\"c%d\\\"}\":{\".\":{}}}",
			       i ? "," : "", i, i);
	hf_strbuf_addstr(
		sb, "}}]},\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"registry/"
		    "training:latest\",\"env\":[");
	for (int i = 0; i < 20; i++)
		hf_strbuf_addf(sb, "%s{\"name\":\"VARIABLE_%d\",\"value\":\"some value %d\"}",
			       i ? "," : "", i, i);
	hf_strbuf_addstr(
		sb,
		"],\"resources\":{\"limits\":{\"cpu\":\"2\",\"memory\":\"8Gi\"}}}]},\"status\":{"
		"\"phase\":\"Running\",\"conditions\":[");
	for (int i = 0; i < 5; i++)
		hf_strbuf_addf(
			sb,
			"%s{\"type\":\"Condition%d\",\"status\":\"True\",\"lastProbeTime\":null,"
			"\"lastTransitionTime\":\"2026-01-02T03:04:06Z\"}",
			i ? "," : "", i);
	hf_strbuf_addstr(sb, "],\"podIP\":\"10.1.2.3\",\"startTime\":\"2026-01-02T03:04:06Z\"}}");
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void print(const char *what, double start_us, int rounds, size_t bytes)
{
	double us = (now_us() - start_us) / rounds;

	printf("json %s rounds=%d bytes=%zu us=%.2f us_per_kB=%.2f\n", what, rounds, bytes, us,
	       us * 1000 / (double)bytes);
}

static void bench_fields(const struct hf_strbuf *text, int rounds)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	const struct hf_fields_text span = {text->data, text->len};
	struct hf_error err;
	struct pod pod;
	double start = now_us();

	for (int i = 0; i < rounds; i++) {
		hf_arena_reset(arena);
		if (hf_fields_read_text(&pod_table, &span, NULL, arena, &pod, &err) != 0)
			abort();
	}
	print("fields", start, rounds, text->len);
}

static void bench_metadata(const struct hf_strbuf *text, int rounds)
{
	double start = now_us();

	for (int i = 0; i < rounds; i++) {
		HF_AUTO_DOC doc = hf_doc_from_text(text->data, text->len);
		if (hf_doc_name(doc)[0] == '\0')
			abort();
	}
	print("metadata", start, rounds, text->len);
}

static void bench_tree(const struct hf_strbuf *text, int rounds)
{
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(1 << 20);
	HF_AUTO_JSON kept = NULL;
	struct hf_error err;
	double start = now_us();

	for (int i = 0; i < rounds; i++) {
		kept = hf_json_unref(kept);
		if (hf_json_parse(text->data, text->len, NULL, &kept, &err) != 0)
			abort();
	}
	print("parse", start, rounds, text->len);
	start = now_us();
	for (int i = 0; i < rounds; i++) {
		hf_strbuf_clear(&out);
		hf_json_write(kept, HF_JSON_COMPACT, &out);
	}
	print("write", start, rounds, text->len);
	start = now_us();
	for (int i = 0; i < rounds; i++) {
		HF_AUTO_JSON copy = hf_json_copy(kept);
	}
	print("copy", start, rounds, text->len);
	hf_strbuf_clear(&out);
	hf_yaml_write(kept, &out);
	start = now_us();
	for (int i = 0; i < rounds; i++) {
		HF_AUTO_YAML yaml = NULL;
		if (hf_yaml_parse(out.data, out.len, NULL, &yaml, &err) != 0)
			abort();
	}
	print("yaml", start, rounds, out.len);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 10000;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(1 << 20);

	make_pod(&text);
	bench_fields(&text, rounds);
	bench_metadata(&text, rounds);
	bench_tree(&text, rounds);
	return 0;
}
