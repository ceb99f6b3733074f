/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_BASE64_H
#define HF_BASE_BASE64_H

#include "base/strbuf.h"

HF_BEGIN_DECLS

/* Base64 of RFC 4648 with padding, read as Go's encoding/json does: that is what an API
 * server takes in a Secret and kubectl in a kubeconfig. */

void hf_base64_encode(const void *bytes, size_t len, struct hf_strbuf *sb);
/* Line breaks are passed over anywhere; all else that is no base64 is HF_E_INVALID, and sb
 * then has what stood before it.  The last digit's unused bits are not looked at. */
int hf_base64_decode(const char *text, struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
