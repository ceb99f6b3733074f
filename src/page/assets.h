/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_ASSETS_H
#define HF_PAGE_ASSETS_H

#include <stddef.h>

/* The files of www/, made by tools/embed-page at build time. Constant; each array ends with a NUL that
 * its length does not count. */
struct hf_page_asset {
	const char *path; /* "/assets/app.3f2a9c1b77aa.js"; NULL: end of the table */
	const char *type; /* Content-Type */
	const unsigned char *bytes;
	size_t len;
	const unsigned char *packed; /* the same, compressed by gzip */
	size_t packed_len;
};
extern const struct hf_page_asset hf_page_assets[];

/* index.html before and behind the place of the table's rows. */
struct hf_page_text {
	const unsigned char *bytes;
	size_t len;
};
extern const struct hf_page_text hf_page_index_head, hf_page_index_tail;

#endif
