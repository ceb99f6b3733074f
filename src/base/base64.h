/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_BASE64_H
#define HF_BASE_BASE64_H

#include "base/strbuf.h"

HF_BEGIN_DECLS

/* Base64 of RFC 4648 with padding. The reader accepts what Go's encoding/json accepts, because
 * API servers read Secrets and kubectl reads kubeconfigs with it. */

/* Appends the base64 text of len bytes to sb. */
void hf_base64_encode(const void *bytes, size_t len, struct hf_strbuf *sb);
/* Appends the decoded bytes to sb. Line breaks are ignored anywhere. Any other character outside
 * the format is HF_E_INVALID; sb then keeps the bytes decoded before that character. The unused
 * bits of the last digit are not checked. */
int hf_base64_decode(const char *text, struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
