/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Certificates, keys and CAs in files that are replaced before they expire: by a kubelet, by
 * cert-manager or by an administrator. Reads the files of a kubeconfig again and gives new content
 * to the HTTP client. */
#include "kube/config_internal.h"
#include "kube/kube_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"

#include <stdlib.h>
#include <string.h>

static void wipe_text(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void pem_init(struct hf_kube_pem *pem, const char *file, const char *text)
{
	pem->file = hf_str_is_empty(file) ? NULL : hf_xstrdup(file);
	pem->text = hf_xstrdup(hf_str_or(text, ""));
}

static void pem_release(struct hf_kube_pem *pem)
{
	free(pem->file);
	wipe_text(pem->text);
}

void hf_kube_rotation_init(struct hf_kube_rotation *rotation, const struct hf_kube_config *config)
{
	pem_init(&rotation->ca, config->ca_file, config->ca_pem);
	pem_init(&rotation->cert, config->cert_file, config->cert_pem);
	pem_init(&rotation->key, config->key_file, config->key_pem);
}

void hf_kube_rotation_release(struct hf_kube_rotation *rotation)
{
	pem_release(&rotation->ca);
	pem_release(&rotation->cert);
	pem_release(&rotation->key);
}

bool hf_kube_rotation_is_needed(const struct hf_kube_rotation *rotation)
{
	return rotation->ca.file != NULL || rotation->cert.file != NULL ||
	       rotation->key.file != NULL;
}

/* Reads a PEM file. NULL: the file cannot be read, or is empty because it is being written. */
static char *pem_read(const struct hf_kube_pem *pem)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_KUBECONFIG_BYTES_MAX);

	if (pem->file == NULL)
		return hf_xstrdup(pem->text);
	if (hf_fs_read_regular(pem->file, &sb, NULL) != 0 || sb.len == 0)
		return NULL;
	return hf_strbuf_detach(&sb);
}

static void pem_take(struct hf_kube_pem *pem, char **text)
{
	wipe_text(pem->text);
	pem->text = hf_steal(text);
}

static bool read_ca(struct hf_kube_rotation *rotation, struct hf_http_client *client)
{
	HF_AUTOFREE char *ca = pem_read(&rotation->ca);

	/* Do not use a CA file that is only half written: with it the client would trust no
	 * server. */
	if (ca == NULL || hf_streq(ca, rotation->ca.text) ||
	    hf_certificate_check_certs(ca, NULL) != 0)
		return false;
	pem_take(&rotation->ca, &ca);
	hf_http_client_set_ca(client, rotation->ca.text);
	return true;
}

/* Reads certificate and key again. Two files are not replaced at the same instant, so the new pair
 * is used only if key and certificate match. */
static bool read_pair(struct hf_kube_rotation *rotation, struct hf_http_client *client)
{
	char *cert, *key;
	bool taken;

	if (rotation->cert.text[0] == '\0')
		return false;
	cert = pem_read(&rotation->cert);
	key = pem_read(&rotation->key);
	taken = cert != NULL && key != NULL &&
		(!hf_streq(cert, rotation->cert.text) || !hf_streq(key, rotation->key.text)) &&
		hf_certificate_check(cert, key, NULL) == 0;
	if (taken) {
		pem_take(&rotation->cert, &cert);
		pem_take(&rotation->key, &key);
		hf_http_client_set_cert(client, rotation->cert.text, rotation->key.text);
	}
	free(cert);
	wipe_text(key);
	return taken;
}

bool hf_kube_rotation_read(struct hf_kube_rotation *rotation, struct hf_http_client *client)
{
	bool ca, pair;

	if (!hf_kube_rotation_is_needed(rotation))
		return false;
	ca = read_ca(rotation, client);
	pair = read_pair(rotation, client);
	return ca || pair;
}
