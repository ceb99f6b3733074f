/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tokens for the Authorization header: reads a token file and checks that a token fits into a
 * header. */
#include "kube/config_internal.h"

#include "base/ascii.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int hf_kube_token_check(const char *token, struct hf_error *err)
{
	size_t len = strlen(token);

	while (len > 0 && hf_ascii_is_space(token[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)token[i];
		if (c <= ' ' || c == 0x7f)
			return hf_error_set(err, HF_E_INVALID,
					    "has a blank or a control character at byte %zu", i);
	}
	return 0;
}

int hf_kube_token_read(const char *path, char **ret_token, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_KUBE_TOKEN_BYTES_MAX);
	size_t start = 0;
	int rc = hf_fs_read_regular(path, &sb, err);

	if (rc != 0)
		return rc;
	while (sb.len > 0 && hf_ascii_is_space(sb.data[sb.len - 1]))
		hf_strbuf_truncate(&sb, sb.len - 1);
	while (start < sb.len && hf_ascii_is_space(sb.data[start]))
		start++;
	hf_strbuf_consume(&sb, start);
	if (sb.len == 0 || strlen(sb.data) != sb.len) {
		/* Overwrite the text: the error must not show any part of the file, which may be a
		 * secret. */
		explicit_bzero(sb.data, sb.len);
		return hf_error_set(err, HF_E_INVALID, "'%s' holds no token", path);
	}
	rc = hf_kube_token_check(sb.data, err);
	if (rc != 0) {
		explicit_bzero(sb.data, sb.len);
		return hf_error_wrap(err, "'%s'", path);
	}
	*ret_token = hf_strbuf_detach(&sb);
	return 0;
}
