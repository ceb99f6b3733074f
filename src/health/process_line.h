/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_PROCESS_LINE_H
#define HF_HEALTH_PROCESS_LINE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The messages between `holdfast exec` and the node's agent, for restarts in place.  Each is one packet of text
 * on a SOCK_SEQPACKET socket; a line feed at the end is allowed.
 *
 *     state phase=ended generation=1 attempt=0 ordinal=2 code=1 step=120 words=exit code 1: …
 *     target generation=2 attempt=0 hold=1 wait=60 grace=30
 *
 *     note words=log rule 'loss': nan is not finite, 1 line in a row
 *
 * exec always sends its whole state, when it connects and at each change.  The agent sends the target, which is a
 * level and not an event: a line that is lost or repeated changes nothing.
 *
 * A line is its first word, then KEY=VALUE with single blanks between, in any order.  Unknown keys are skipped, so
 * that a newer sender may send more.  A wrong value or a repeated key voids the whole line: half an order must not be
 * obeyed.  Pure.
 *
 * state:
 *   phase       waiting (no process was started), running, ended (by itself), down (by an order); required
 *   generation, attempt
 *               of the present or the last process; in phase down those of the order that was obeyed.  Both or none
 *   ordinal     the number of this process among those of this exec, from 1; required except in phase waiting
 *   code        the exit code with which exec would end
 *   signal      the signal that ended the process
 *   ended_ms    milliseconds since the end of the process, HF_PROCESS_ENDED_MS_MAX at most: the agent may have been
 *               away at the end
 *   cause       the cause of a failure of an ended process: device-fatal, fabric, …
 *   step        the last step that a rank has completed
 *   saved       the last step that a rank has saved
 *   save_ms     milliseconds that all ranks took for the last save that exec asked for
 *   words       the last lines of the process; UTF-8, may have blanks, so this key is the last one
 *
 * note (of exec):
 *   words       a sentence for people, which becomes an event of the pod; as in a state; required
 *
 * target:
 *   generation, attempt
 *               the process should be of these; both or none.  None: the pod is no rank of a job that restarts in place
 *   hold        1: no process may run now
 *   wait        how many seconds exec keeps the container after its process has ended; 0: not at all
 *   grace       seconds between SIGTERM and SIGKILL
 *   save        seconds that a save may take before SIGTERM; 0: ranks are not asked to save
 *   first_generation, first_attempt
 *               those for which the pod was created: exec's first process is of these unless the target is above.  Both
 *               or none
 *   rendezvous  a number for the name of torch's rendezvous, which differs after a restart of the whole job in place
 *
 * A number that is left out is 0.
 */
#define HF_PROCESS_LINE_BYTES_MAX 1024
#define HF_PROCESS_WORDS_MAX 513 /* with the NUL */
#define HF_PROCESS_CAUSE_MAX 33
#define HF_PROCESS_SPAN_MAX 86400 /* seconds */
#define HF_PROCESS_ENDED_MS_MAX (HF_PROCESS_SPAN_MAX * 1000)
/* Limit of a generation and of an attempt, as in the ledger. */
#define HF_PROCESS_COUNTER_MAX 1000000000
#define HF_PROCESS_KEYS_MAX 32
#define HF_PROCESS_CODE_MAX 255
#define HF_PROCESS_SIGNAL_MAX 64
/* name of the socket for `holdfast exec`, in the folder of the agent's socket for reports */
#define HF_EXEC_SOCKET_FILE "exec.sock"

enum hf_process_line_phase {
	HF_PROCESS_LINE_WAITING,
	HF_PROCESS_LINE_RUNNING,
	HF_PROCESS_LINE_ENDED,
	HF_PROCESS_LINE_DOWN,
	HF_PROCESS_LINE_PHASES
};

/* Names one start of a rank's process by the job's generation and the rank's attempt. Both numbers
 * only grow, so they also order the starts. It holds no time. */
struct hf_process_start {
	bool known;
	int64_t generation, attempt;
};
/* Compares two starts of a rank by generation, then by attempt. Returns a number below 0 if left is
 * the older start, 0 if they are equal, above 0 if left is the newer. A start that is not known is
 * older than every known start. */
int hf_process_start_order(const struct hf_process_start *left,
			   const struct hf_process_start *right);

struct hf_process_state {
	enum hf_process_line_phase phase;
	struct hf_process_start start;
	uint32_t ordinal;
	uint32_t code, signal;
	uint32_t ended_ms;
	char cause[HF_PROCESS_CAUSE_MAX]; /* letters, digits, '-'; "": none */
	bool has_step, has_saved;
	uint64_t step, saved;
	uint32_t save_ms;                 /* 0: unknown */
	char words[HF_PROCESS_WORDS_MAX]; /* UTF-8 without control characters; "": none */
};

struct hf_process_target {
	struct hf_process_start start, first;
	bool hold;
	uint32_t wait_s, grace_s, save_s;
	int64_t rendezvous;
};

/* Parses bytes, which need no NUL.  False: they are no such line. */
bool hf_process_state_parse(const char *bytes, size_t len, struct hf_process_state *ret_state);
bool hf_process_note_parse(const char *bytes, size_t len, char ret_words[HF_PROCESS_WORDS_MAX]);
bool hf_process_target_parse(const char *bytes, size_t len, struct hf_process_target *ret_target);
/* Formats into a buffer of HF_PROCESS_LINE_BYTES_MAX bytes; returns the length without the NUL.  Parsing the text
 * gives the same values, if the values are within the limits above. */
size_t hf_process_state_format(const struct hf_process_state *state, char *ret_text);
size_t hf_process_note_format(const char *words, char *ret_text);
size_t hf_process_target_format(const struct hf_process_target *target, char *ret_text);

/* Copies as much of the text as is UTF-8 and fits; control characters become blanks. */
void hf_process_words(const char *text, size_t len, char ret_words[HF_PROCESS_WORDS_MAX]);

HF_END_DECLS

#endif
