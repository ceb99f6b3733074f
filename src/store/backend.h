/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_BACKEND_H
#define HF_STORE_BACKEND_H

#include "store/store.h"

/*
 * What a back end implements. The back end's own structs begin with the structs below, so that the
 * public functions of store/store.h reach its operations through the pointer `ops`:
 *
 *     struct local_store { struct hf_store base; … };
 */
struct hf_store_ops {
	const char *name; /* "kube" or "local", for messages */
	struct hf_call *(*request)(struct hf_store *, const struct hf_request *, hf_reply_fn,
				   void *);
	void (*cancel)(struct hf_call *);
	struct hf_watch *(*watch)(struct hf_store *, const struct hf_watch_options *, hf_event_fn,
				  void *);
	void (*watch_stop)(struct hf_watch *);
	struct hf_log_stream *(*logs)(struct hf_store *, const struct hf_log_options *, hf_log_fn,
				      void *);
	void (*logs_stop)(struct hf_log_stream *);
	void (*destroy)(struct hf_store *);
	bool (*can_stream_lists)(
		const struct hf_store *); /* initial_events are supported; NULL: never */
};

struct hf_store {
	const struct hf_store_ops *ops;
};
struct hf_call {
	const struct hf_store_ops *ops;
};
struct hf_watch {
	const struct hf_store_ops *ops;
};
struct hf_log_stream {
	const struct hf_store_ops *ops;
};

#endif
