/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_AGENT_LINK_H
#define HF_EXEC_AGENT_LINK_H

#include "health/process_line.h"

#include <sys/un.h>

HF_BEGIN_DECLS

/*
 * The connection of exec to the node's agent for restarts in place: exec sends its state, and the agent sends targets
 * (which start of the rank may run; health/process_line.h).
 * Input: the path of the agent's socket for reports; HF_EXEC_SOCKET_FILE lies in the same folder.  No call blocks.
 * Invariants: after each connect exec sends its whole state, so an agent that was started again learns the state.  A
 * line that cannot be parsed changes nothing.  After the end of a connection exec connects again within a second.
 */
#define HF_AGENT_LINK_RETRY_MIN_MS 50
#define HF_AGENT_LINK_RETRY_MAX_MS 1000

struct hf_agent_link {
	struct sockaddr_un name; /* sun_family 0: there is no agent */
	int fd;                  /* -1: not connected */
	int64_t retry_at_ms, pause_ms;
	bool due; /* exec has yet to send its present state */
};

/* Opens no connection yet.  agent_socket: as in struct hf_exec_options; "": no agent, and connect never succeeds. */
void hf_agent_link_open(struct hf_agent_link *link, const char *agent_socket);
void hf_agent_link_close(struct hf_agent_link *link);
/* Connects if there is no connection and the pause since the last try is over.  Returns whether there is a
 * connection. */
bool hf_agent_link_connect(struct hf_agent_link *link, int64_t now_ms);
bool hf_agent_link_is_connected(const struct hf_agent_link *link);
/* When hf_agent_link_connect() has to be called again; INT64_MAX: never. */
int64_t hf_agent_link_retry_ms(const struct hf_agent_link *link);
/* Sends the state if it is due.  A state that cannot be sent stays due. */
void hf_agent_link_send(struct hf_agent_link *link, const struct hf_process_state *state,
			int64_t now_ms);
/* Sends a note once; without a connection it is lost. */
void hf_agent_link_note(const struct hf_agent_link *link, const char *words);
/* Takes the next target that the agent has sent.  False: none has arrived. */
bool hf_agent_link_receive(struct hf_agent_link *link, int64_t now_ms,
			   struct hf_process_target *ret_target);

HF_END_DECLS

#endif
