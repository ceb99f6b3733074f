/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_VEC_H
#define HF_BASE_VEC_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * A growable array of one type:
 *
 *     HF_VEC(struct pod *) pods = HF_VEC_INIT(10000);
 *     if (!HF_VEC_PUSH(&pods, pod)) …the limit is reached…
 *     for (size_t i = 0; i < pods.len; i++) use(pods.items[i]);
 *     HF_VEC_RELEASE(&pods);
 *
 * len_max is set at creation. A push beyond it returns false and changes nothing.
 */
#define HF_VEC(type)                                                                               \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t len, cap, len_max;                                                          \
	}
#define HF_VEC_INIT(max)                                                                           \
	{                                                                                          \
		.items = NULL, .len = 0, .cap = 0, .len_max = (max)                                \
	}

#define HF_VEC_PUSH(v, item)                                                                       \
	(hf_vec_grow((void **)&(v)->items, (v)->len, &(v)->cap, (v)->len_max, sizeof(*(v)->items)) \
		 ? ((v)->items[(v)->len++] = (item), true)                                         \
		 : false)
/* Removes element i and keeps the order of the others; i must be less than len. */
#define HF_VEC_REMOVE(v, i) hf_vec_remove((v)->items, &(v)->len, (i), sizeof(*(v)->items))
#define HF_VEC_RELEASE(v) (hf_vec_free((void **)&(v)->items), (v)->len = 0, (v)->cap = 0)

bool hf_vec_grow(void **items, size_t len, size_t *cap, size_t len_max, size_t size);
void hf_vec_remove(void *items, size_t *len, size_t i, size_t size);
void hf_vec_free(void **items);

HF_END_DECLS

#endif
