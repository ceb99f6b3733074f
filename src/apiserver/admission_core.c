/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/admission_internal.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Admission of services, config maps and secrets: field types, defaults, then the rules of their
 * values. The functions change admission->object and report problems as causes. */

/* Limit of a decoded or encoded value. It is never reached, as the store limits a whole object to
 * 1.5 MiB. */
#define ENCODED_BYTES_MAX ((size_t)4 << 20)
/* limit of all values of an object together, as upstream has it */
#define DATA_BYTES_MAX ((size_t)1 << 20)

/* ---- services ----------------------------------------------------------------------------- */

static void default_service(struct hf_json *spec)
{
	struct hf_json *ports = hf_json_get(spec, "ports");
	const char *ip = hf_json_str(hf_json_get(spec, "clusterIP"), "");

	hf_default_str(spec, "type", "ClusterIP");
	hf_default_str(spec, "sessionAffinity", "None");
	hf_default_str(spec, "internalTrafficPolicy", "Cluster");
	/* The plane gives a service no cluster IP: the name of the service resolves to the
	 * addresses of its pods. */
	if (*ip != '\0' && hf_json_get(spec, "clusterIPs") == NULL)
		hf_json_append(hf_json_ensure_array(spec, "clusterIPs"), hf_json_string(ip));
	for (size_t i = 0; i < hf_json_len(ports); i++) {
		struct hf_json *port = hf_json_item(ports, i);
		hf_default_str(port, "protocol", "TCP");
		if (hf_json_get(port, "targetPort") == NULL)
			hf_json_set(port, "targetPort", hf_json_copy(hf_json_get(port, "port")));
	}
}

static void check_service_ports(struct hf_admission *admission, const struct hf_json *spec)
{
	static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
	const struct hf_json *ports = hf_json_get(spec, "ports");

	for (size_t i = 0; i < hf_json_len(ports); i++) {
		const struct hf_json *item = hf_json_item(ports, i);
		const struct hf_json *port = hf_json_get(item, "port");
		const char *protocol = hf_json_str(hf_json_get(item, "protocol"), "TCP");
		const char *name = hf_json_str(hf_json_get(item, "name"), "");
		if (hf_json_i64(port, 0) < 1 || hf_json_i64(port, 0) > 65535)
			hf_problem_invalid(admission, port,
					   "must be between 1 and 65535, inclusive",
					   "spec.ports[%zu].port", i);
		if (!hf_streq(protocol, "TCP") && !hf_streq(protocol, "UDP") &&
		    !hf_streq(protocol, "SCTP"))
			hf_problem_not_supported(admission, protocol, protocols,
						 "spec.ports[%zu].protocol", i);
		if (hf_json_len(ports) > 1 && *name == '\0')
			hf_problem_required(admission, "", "spec.ports[%zu].name", i);
		else if (*name != '\0' && hf_dns1123_label_problem(name) != NULL)
			hf_problem_invalid(admission, hf_json_get(item, "name"),
					   hf_dns1123_label_problem(name), "spec.ports[%zu].name",
					   i);
	}
}

int hf_admit_service(void *arg, struct hf_admission *admission, struct hf_error *err)
{
	static const char *const types[] = {"ClusterIP", NULL};
	int rc = hf_fields_check(admission, &hf_schema_service, err);
	struct hf_json *spec;
	const char *ip, *type;

	if (rc != 0)
		return rc;
	spec = hf_json_ensure_object(admission->object, "spec");
	default_service(spec);
	ip = hf_json_str(hf_json_get(spec, "clusterIP"), "");
	type = hf_json_str(hf_json_get(spec, "type"), "");
	if (!hf_streq(type, "ClusterIP"))
		hf_problem_not_supported(admission, type, types, "spec.type");
	else if (!hf_streq(ip, "None") && *ip != '\0')
		hf_problem_invalid(admission, hf_json_get(spec, "clusterIP"),
				   "only \"None\" is supported here", "spec.clusterIP");
	if (!hf_streq(ip, "None") && hf_json_len(hf_json_get(spec, "ports")) == 0)
		hf_problem_required(admission, "", "spec.ports");
	check_service_ports(admission, spec);
	return 0;
}

/* ---- config maps and secrets -------------------------------------------------------------- */

static bool is_key(const char *key)
{
	return *key != '\0' && strlen(key) <= 253 &&
	       strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
		       strlen(key) &&
	       !hf_streq(key, ".") && !hf_str_has_prefix(key, "..");
}

/* Checks the keys of a data map and, if base64 is true, the encoding of its values. Returns the
 * number of bytes of all decoded values. */
static size_t check_data(struct hf_admission *admission, const char *field, bool base64)
{
	const struct hf_json *data = hf_json_get(admission->object, field);
	struct hf_json *value;
	const char *key;
	size_t bytes = 0;

	for (void *it = NULL; (it = hf_json_next(data, it, &key, &value)) != NULL;) {
		const char *text = hf_json_str(value, "");
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(ENCODED_BYTES_MAX);
		bool good = !base64 || hf_base64_decode(text, &sb, NULL) == 0;
		bytes += base64 ? sb.len : strlen(text);
		if (!is_key(key))
			hf_problem_invalid(admission, NULL,
					   "a valid config key must consist of alphanumeric "
					   "characters, '-', '_' or '.'",
					   "%s[%.253s]", field, key);
		if (!good)
			hf_problem_invalid(admission, NULL, "illegal base64 data", "%s[%.253s]",
					   field, key);
	}
	return bytes;
}

static void check_unchanged(struct hf_admission *admission)
{
	static const char *const fields[] = {"data", "binaryData"};

	if (!hf_json_true(hf_json_get(admission->before, "immutable"), false))
		return;
	for (size_t i = 0; i < HF_ARRAY_LEN(fields); i++)
		if (!hf_json_equal(hf_json_get(admission->before, fields[i]),
				   hf_json_get(admission->object, fields[i])))
			hf_admission_cause(admission, "FieldValueForbidden", fields[i],
					   "Forbidden: field is immutable when `immutable` is set");
	if (!hf_json_true(hf_json_get(admission->object, "immutable"), false))
		hf_admission_cause(admission, "FieldValueForbidden", "immutable",
				   "Forbidden: field is immutable when `immutable` is set");
}

static void check_size(struct hf_admission *admission, size_t bytes)
{
	if (bytes > DATA_BYTES_MAX)
		hf_admission_cause(admission, "FieldValueTooLong", "",
				   "Too long: may not be more than 1048576 bytes");
}

int hf_admit_configmap(void *arg, struct hf_admission *admission, struct hf_error *err)
{
	int rc = hf_fields_check(admission, &hf_schema_config_map, err);

	if (rc != 0)
		return rc;
	check_size(admission, check_data(admission, "data", false) +
				      check_data(admission, "binaryData", true));
	check_unchanged(admission);
	return 0;
}

/* Moves stringData, which only writers use, into data, in base64. */
static void merge_string_data(struct hf_json *object)
{
	struct hf_json *texts = hf_json_get(object, "stringData"), *data, *value;
	const char *key;

	if (texts == NULL)
		return;
	data = hf_json_ensure_object(object, "data");
	for (void *it = NULL; (it = hf_json_next(texts, it, &key, &value)) != NULL;) {
		const char *text = hf_json_str(value, "");
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(ENCODED_BYTES_MAX);
		hf_base64_encode(text, strlen(text), &sb);
		hf_json_set_str(data, key, sb.data);
	}
	hf_json_remove(object, "stringData");
}

int hf_admit_secret(void *arg, struct hf_admission *admission, struct hf_error *err)
{
	int rc = hf_fields_check(admission, &hf_schema_secret, err);

	if (rc != 0)
		return rc;
	merge_string_data(admission->object);
	hf_default_str(admission->object, "type", "Opaque");
	check_size(admission, check_data(admission, "data", true));
	check_unchanged(admission);
	return 0;
}
