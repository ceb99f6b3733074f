/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_AGENT_LINK_H
#define HF_EXEC_AGENT_LINK_H

#include "health/process_line.h"

#include <sys/un.h>

HF_BEGIN_DECLS

/*
 * The connection to the agent for restarts in place: exec sends its state, the agent sends targets (health/process_line.h).
 * Input: the path of the agent's socket for reports; HF_EXEC_SOCKET_FILE lies in the same folder.  No call blocks.
 * Invariants: after each connect the whole state is due, so an agent that has started anew learns it; a broken line
 * changes nothing; a connection that ends is opened again within a second.
 */
#define HF_AGENT_LINK_RETRY_MIN_MS 50
#define HF_AGENT_LINK_RETRY_MAX_MS 1000

struct hf_agent_link {
	struct sockaddr_un name; /* sun_family 0: there is no agent */
	int fd;                  /* -1: not connected */
	int64_t retry_at_ms, pause_ms;
	bool due; /* the present state has to be sent */
};

/* agent_socket: as in struct hf_exec_options; "": no agent. */
void hf_agent_link_open(struct hf_agent_link *link, const char *agent_socket);
void hf_agent_link_close(struct hf_agent_link *link);
/* Connects if that is due.  True: connected. */
bool hf_agent_link_connect(struct hf_agent_link *link, int64_t now_ms);
bool hf_agent_link_is_connected(const struct hf_agent_link *link);
/* When connect has to be called again; INT64_MAX: never. */
int64_t hf_agent_link_retry_ms(const struct hf_agent_link *link);
/* Sends the state if it is due.  What cannot be sent stays due. */
void hf_agent_link_send(struct hf_agent_link *link, const struct hf_process_state *state,
			int64_t now_ms);
/* The next target, if one is there. */
bool hf_agent_link_receive(struct hf_agent_link *link, int64_t now_ms,
			   struct hf_process_target *ret_target);

HF_END_DECLS

#endif
