/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Credentials of requests over time:
 * |
 * |  fixed    a token or certificate that never changes
 * |  files    token, certificates and CA; read again after a minute, upon a 401 and after a
 * |           failed connection, because kubelets rotate them
 * |  plugin   run before the first request, shortly before its answer expires, and upon a 401
 * |
 * One plugin runs at a time and all requests wait for it. Its failure is reported to all of them
 * and, for 1 s to 30 s, to new requests: a broken plugin does not run once per request. */
#include "kube/config_internal.h"
#include "kube/kube_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_AGE_MAX HF_MINUTE
#define FILES_AGE_MIN HF_SECOND
/* The plugin runs again when the credentials expire within this time. */
#define EXPIRY_LEEWAY (10 * HF_SECOND)
/* For this time after a run of the plugin, its credentials are used even if they have expired. */
#define EARLY_HOLD HF_SECOND
#define FAILURE_HOLD_MIN HF_SECOND
#define FAILURE_HOLD_MAX (30 * HF_SECOND)
#define ERROR_BYTES_MAX 160 /* limit of the part of a plugin's stderr that an error text has */

struct hf_kube_credentials *hf_kube_credentials_create(struct hf_kube *kube,
						       const struct hf_kube_config *config)
{
	struct hf_kube_credentials *c = hf_xcalloc(1, sizeof(*c));

	c->kube = kube;
	c->path = hf_xstrdup(hf_str_or(config->path, ""));
	c->token = hf_xstrdup(hf_str_or(config->token, ""));
	if (!hf_str_is_empty(config->token_file))
		c->token_file = hf_xstrdup(config->token_file);
	hf_kube_rotation_init(&c->rotation, config);
	c->files_read_at = hf_loop_mono(kube->loop);
	c->exec = hf_kube_exec_copy(config->exec);
	hf_http_client_set_bearer(kube->client, c->token);
	return c;
}

struct hf_kube_credentials *hf_kube_credentials_destroy(struct hf_kube_credentials *c)
{
	if (c == NULL)
		return NULL;
	(void)hf_command_destroy(c->command);
	(void)hf_kube_exec_free(c->exec);
	explicit_bzero(c->token, strlen(c->token));
	free(c->token);
	free(c->token_file);
	hf_kube_rotation_release(&c->rotation);
	free(c->path);
	free(c);
	return NULL;
}

unsigned hf_kube_credentials_generation(const struct hf_kube_credentials *c)
{
	return c->generation;
}

/* --- files --- */

/* Reads the token file again. Returns true if the token has changed. If the file cannot be read,
 * the old token stays, because a rotation may be replacing the file. */
static bool read_token_file(struct hf_kube_credentials *c)
{
	char *token;

	if (c->token_file == NULL)
		return false;
	if (hf_kube_token_read(c->token_file, &token, &c->files_failure) != 0)
		return false;
	c->files_failure.code = 0;
	if (hf_streq(token, c->token)) {
		explicit_bzero(token, strlen(token));
		free(token);
		return false;
	}
	explicit_bzero(c->token, strlen(c->token));
	free(c->token);
	c->token = token;
	hf_http_client_set_bearer(c->kube->client, token);
	return true;
}

/* Reads all files again. Returns true if a token or certificate has changed. */
static bool read_files(struct hf_kube_credentials *c)
{
	bool token = read_token_file(c);
	bool certificates = hf_kube_rotation_read(&c->rotation, c->kube->client);

	c->files_read_at = hf_loop_mono(c->kube->loop);
	if (!token && !certificates)
		return false;
	c->generation++;
	return true;
}

/* --- plugins --- */

void hf_kube_exec_answer_release(struct hf_kube_exec_answer *answer)
{
	char **texts[] = {&answer->token, &answer->cert_pem, &answer->key_pem};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		if (*texts[i] != NULL)
			explicit_bzero(*texts[i], strlen(*texts[i]));
		free(*texts[i]);
		*texts[i] = NULL;
	}
}

static int check_answer(const struct hf_json *root, const char *api_version, struct hf_error *err)
{
	const char *kind = hf_str_or(hf_json_path_str(root, "kind", NULL), "");
	const char *version = hf_str_or(hf_json_path_str(root, "apiVersion", NULL), "");

	if (!hf_streq(kind, "ExecCredential"))
		return hf_error_set(err, HF_E_INVALID, "kind is '%.60s', not 'ExecCredential'",
				    kind);
	if (!hf_streq(version, api_version))
		return hf_error_set(err, HF_E_INVALID, "apiVersion is '%.80s', not '%s'", version,
				    api_version);
	if (hf_json_type(hf_json_get(root, "status")) != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_INVALID, "status is missing");
	return 0;
}

/* Checks the token, certificate and key that a plugin printed. If one is bad, the error names the
 * plugin, which runs again later. Without this check, every request would fail with such
 * credentials. */
static int check_secrets(const char *token, const char *cert, const char *key, struct hf_error *err)
{
	if (hf_kube_token_check(token, err) != 0)
		return hf_error_wrap(err, "status.token");
	if (cert[0] == '\0')
		return 0;
	if (hf_certificate_check_certs(cert, err) != 0)
		return hf_error_wrap(err, "status.clientCertificateData");
	if (hf_certificate_check_key(key, err) != 0 ||
	    hf_certificate_check_pair(cert, key, err) != 0)
		return hf_error_wrap(err, "status.clientKeyData");
	return 0;
}

int hf_kube_exec_answer_read(const char *text, size_t len, const char *api_version,
			     struct hf_kube_exec_answer *ret_answer, struct hf_error *err)
{
	HF_AUTO_JSON root = NULL;
	const struct hf_json *status;
	const char *token, *cert, *key, *expires;
	hf_time end = HF_TIME_NEVER;
	int rc = hf_json_parse(text, len, NULL, &root, err);

	if (rc == 0)
		rc = check_answer(root, api_version, err);
	if (rc != 0)
		return rc;
	status = hf_json_get(root, "status");
	token = hf_str_or(hf_json_path_str(status, "token", NULL), "");
	cert = hf_str_or(hf_json_path_str(status, "clientCertificateData", NULL), "");
	key = hf_str_or(hf_json_path_str(status, "clientKeyData", NULL), "");
	expires = hf_json_path_str(status, "expirationTimestamp", NULL);
	if (token[0] == '\0' && cert[0] == '\0' && key[0] == '\0')
		return hf_error_set(err, HF_E_INVALID,
				    "status has neither a token nor a certificate and its key");
	if ((cert[0] == '\0') != (key[0] == '\0'))
		return hf_error_set(err, HF_E_INVALID,
				    "status has only one of clientCertificateData and "
				    "clientKeyData");
	rc = check_secrets(token, cert, key, err);
	if (rc != 0)
		return rc;
	if (!hf_str_is_empty(expires)) {
		rc = hf_time_parse(expires, &end, err);
		if (rc != 0)
			return hf_error_wrap(err, "status.expirationTimestamp");
	}
	*ret_answer = (struct hf_kube_exec_answer){.token = hf_xstrdup(token),
						   .cert_pem = hf_xstrdup(cert),
						   .key_pem = hf_xstrdup(key),
						   .expires = end};
	return 0;
}

static void plugin_failed(struct hf_kube_credentials *c)
{
	bool usable = c->have && hf_loop_wall(c->kube->loop) < c->expires;
	struct hf_error copy;

	c->failed_at = hf_loop_mono(c->kube->loop);
	c->hold = c->hold == 0                     ? FAILURE_HOLD_MIN
		  : c->hold > FAILURE_HOLD_MAX / 2 ? FAILURE_HOLD_MAX
						   : c->hold * 2;
	c->failure.code = HF_E_UNAUTHORIZED;
	(void)hf_error_wrap(&c->failure, "kubeconfig '%s': credential plugin '%s'", c->path,
			    c->exec->argv[0]);
	/* Use a copy: hf_kube_wake_ops may start the plugin, which overwrites c->failure. */
	copy = c->failure;
	hf_kube_wake_ops(c->kube, usable ? NULL : &copy);
}

static void take_answer(struct hf_kube_credentials *c, struct hf_kube_exec_answer *answer)
{
	bool with_cert = answer->cert_pem[0] != '\0';

	c->have = true;
	c->hold = 0;
	c->expires = answer->expires;
	/* Use these credentials for a moment in any case: a plugin with a cache may return
	 * credentials that are about to expire, and every request would then run the plugin. */
	c->use_until = hf_loop_mono(c->kube->loop) + EARLY_HOLD;
	c->generation++;
	hf_http_client_set_bearer(c->kube->client, answer->token);
	hf_http_client_set_cert(c->kube->client, with_cert ? answer->cert_pem : NULL,
				with_cert ? answer->key_pem : NULL);
	hf_kube_exec_answer_release(answer);
	hf_kube_wake_ops(c->kube, NULL);
}

/* Copies the first line of a plugin's stderr, with control characters replaced by blanks. */
static void describe_errors(const char *errors, char ret_text[ERROR_BYTES_MAX])
{
	size_t len = strcspn(errors, "\n");

	if (len >= ERROR_BYTES_MAX)
		len = ERROR_BYTES_MAX - 1;
	for (size_t i = 0; i < len; i++) {
		unsigned char ch = (unsigned char)errors[i];
		ret_text[i] = ch >= ' ' && ch != 0x7f ? (char)ch : ' ';
	}
	ret_text[len] = '\0';
}

static void on_plugin(void *arg, const struct hf_command_result *result)
{
	struct hf_kube_credentials *c = arg;
	struct hf_kube_exec_answer answer;
	char errors[ERROR_BYTES_MAX];

	c->command = NULL;
	describe_errors(result->errors, errors);
	if (result->code != 0) {
		c->failure = *result->err;
		plugin_failed(c);
	} else if (result->exit_code != 0) {
		(void)hf_error_set(&c->failure, HF_E_UNAUTHORIZED, "exit code %d%s%s",
				   result->exit_code, errors[0] != '\0' ? ": " : "", errors);
		plugin_failed(c);
	} else if (hf_kube_exec_answer_read(result->output, result->output_len,
					    c->exec->api_version, &answer, &c->failure) != 0) {
		(void)hf_error_wrap(&c->failure, "bad answer");
		plugin_failed(c);
	} else {
		take_answer(c, &answer);
	}
}

/* Makes the environment of a plugin: the variables of this program, then those of the kubeconfig,
 * then KUBERNETES_EXEC_INFO. A later variable replaces an earlier one of the same name. */
static char **make_env(const struct hf_kube_exec *exec)
{
	size_t len = 0, n = 0;

	while (environ[len] != NULL)
		len++;
	for (char **at = exec->env; *at != NULL; at++)
		len++;
	char **env = hf_xcalloc(len + 2, sizeof(*env));
	for (char **at = environ; *at != NULL; at++) {
		bool replaced = hf_str_has_prefix(*at, "KUBERNETES_EXEC_INFO=");
		for (char **own = exec->env; *own != NULL && !replaced; own++)
			replaced = strncmp(*at, *own, strcspn(*own, "=") + 1) == 0;
		if (!replaced)
			env[n++] = hf_xstrdup(*at);
	}
	for (char **at = exec->env; *at != NULL; at++)
		env[n++] = hf_xstrdup(*at);
	env[n] = hf_xasprintf("KUBERNETES_EXEC_INFO=%s", exec->info);
	return env;
}

static int start_plugin(struct hf_kube_credentials *c, struct hf_error *err)
{
	char **env = make_env(c->exec);
	const struct hf_command_spec spec = {
		.argv = (const char *const *)c->exec->argv,
		.env = (const char *const *)env,
		.output_bytes_max = HF_KUBE_EXEC_BYTES_MAX,
		.timeout = HF_KUBE_EXEC_TIMEOUT,
	};
	int rc = hf_command_start(c->kube->loop, &spec, on_plugin, c, &c->command, err);

	for (char **at = env; *at != NULL; at++)
		free(*at);
	free(env);
	if (rc == HF_E_NOT_FOUND && c->exec->install_hint[0] != '\0' && err != NULL) {
		char hint[ERROR_BYTES_MAX];
		struct hf_error why = *err;

		describe_errors(c->exec->install_hint, hint);
		(void)hf_error_set(err, rc, "%.300s (%s)", why.text, hint);
	}
	return rc;
}

static bool is_expired(const struct hf_kube_credentials *c)
{
	return c->expires != HF_TIME_NEVER &&
	       hf_loop_wall(c->kube->loop) >= c->expires - EXPIRY_LEEWAY;
}

static enum hf_kube_ready check_plugin(struct hf_kube_credentials *c, struct hf_error *err)
{
	if (c->have && (!is_expired(c) || hf_loop_mono(c->kube->loop) < c->use_until))
		return HF_KUBE_READY;
	if (c->command != NULL)
		return HF_KUBE_WAIT;
	if (c->hold > 0 && hf_loop_mono(c->kube->loop) - c->failed_at < c->hold) {
		if (c->have && hf_loop_wall(c->kube->loop) < c->expires)
			/* The last run of the plugin failed, but the credentials of an earlier run
			 * have not expired. */
			return HF_KUBE_READY;
		*err = c->failure;
		return HF_KUBE_NO_CREDENTIALS;
	}
	if (start_plugin(c, &c->failure) == 0)
		return HF_KUBE_WAIT;
	plugin_failed(c);
	*err = c->failure;
	return HF_KUBE_NO_CREDENTIALS;
}

/* --- files and plugins --- */

enum hf_kube_ready hf_kube_credentials_check(struct hf_kube_credentials *c, struct hf_error *err)
{
	if ((c->token_file != NULL || hf_kube_rotation_is_needed(&c->rotation)) &&
	    hf_loop_mono(c->kube->loop) - c->files_read_at >= FILES_AGE_MAX)
		(void)read_files(c);
	return c->exec != NULL ? check_plugin(c, err) : HF_KUBE_READY;
}

bool hf_kube_credentials_renew_after_401(struct hf_kube_credentials *c, unsigned generation)
{
	if (generation != c->generation)
		/* The credentials have changed since the request was sent: send the request
		 * again. */
		return true;
	if (c->exec != NULL) {
		c->have = false;
		return true;
	}
	return read_files(c);
}

bool hf_kube_credentials_renew_after_disconnect(struct hf_kube_credentials *c, unsigned generation)
{
	/* Read the files at most once a second: while the server is down, every request fails to
	 * connect. */
	return generation != c->generation ||
	       (hf_loop_mono(c->kube->loop) - c->files_read_at >= FILES_AGE_MIN && read_files(c));
}

void hf_kube_credentials_explain(const struct hf_kube_credentials *c, struct hf_error *err)
{
	hf_time now = hf_loop_wall(c->kube->loop), end;
	const struct hf_kube_pem *cert = &c->rotation.cert;
	char at[HF_TIME_TEXT_MAX];

	if (c->files_failure.code != 0) {
		(void)hf_error_wrap(
			err, "the token is an older one, because its file cannot be read (%s)",
			c->files_failure.text);
	} else if (c->exec != NULL && c->expires <= now) {
		hf_time_format(c->expires, at);
		(void)hf_error_wrap(
			err, "credential plugin '%s' returned credentials that expired at %s",
			c->exec->argv[0], at);
	} else if (cert->text[0] != '\0' && hf_certificate_expiry(cert->text, &end, NULL) == 0 &&
		   end <= now) {
		hf_time_format(end, at);
		(void)hf_error_wrap(err, "the client certificate%s%s expired at %s",
				    cert->file != NULL ? " in " : "", hf_str_or(cert->file, ""),
				    at);
	}
}
