/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/save.h"

#include "exec/rest.h"
#include "health/beat.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * Asks the processes below exec to save, and notes which of them have saved.
 *
 * Input: reports with their senders.  Output: one request to the socket of each process that can
 * save; whether exec still waits for a process.  A process is known by pid and start time.
 */

static const char request[] = HF_BEAT_VERSION " save=1";

static bool is_there(const struct hf_save_process *process, const char *proc)
{
	return process->started != 0 && hf_rest_started(proc, process->pid) == process->started;
}

static struct hf_save_process *find_process(struct hf_save *save, const char *proc, pid_t pid)
{
	for (size_t i = 0; i < save->len; i++)
		if (save->items[i].pid == pid && is_there(&save->items[i], proc))
			return &save->items[i];
	return NULL;
}

/* Finds a place for a new process.  NULL: processes that still run take all places. */
static struct hf_save_process *find_place(struct hf_save *save, const char *proc)
{
	if (save->len < HF_SAVE_PROCESSES_MAX)
		return &save->items[save->len++];
	for (size_t i = 0; i < save->len; i++)
		if (!is_there(&save->items[i], proc))
			return &save->items[i];
	return NULL;
}

void hf_save_can(struct hf_save *save, const char *proc, const struct hf_exec_sender *sender)
{
	struct hf_save_process *process = find_process(save, proc, sender->pid);

	if (sender->len <= offsetof(struct sockaddr_un, sun_path) ||
	    sender->len > sizeof(sender->name))
		return;
	if (process == NULL) {
		process = find_place(save, proc);
		if (process == NULL)
			return;
		*process = (struct hf_save_process){.pid = sender->pid,
						    .started = hf_rest_started(proc, sender->pid)};
	}
	process->sender = *sender;
}

void hf_save_did(struct hf_save *save, const char *proc, pid_t pid)
{
	struct hf_save_process *process = find_process(save, proc, pid);

	/* A report of a save counts only after exec has asked: an earlier save is a regular checkpoint. */
	if (process != NULL && process->asked)
		process->done = true;
}

bool hf_save_has_any(const struct hf_save *save)
{
	for (size_t i = 0; i < save->len; i++)
		if (save->items[i].asked && save->items[i].done)
			return true;
	return false;
}

static void ask_process(struct hf_save_process *process, int fd)
{
	if (sendto(fd, request, sizeof(request) - 1, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&process->sender.name, process->sender.len) >= 0)
		process->asked = true;
	/* If the queue of the process's socket is full, exec asks the process again later.  A process without its
	 * socket cannot answer, so exec does not wait for the process. */
	else if (errno != EAGAIN && errno != ENOBUFS)
		process->done = true;
}

size_t hf_save_ask(struct hf_save *save, const char *proc, int fd)
{
	size_t left = 0;

	for (size_t i = 0; i < save->len; i++) {
		struct hf_save_process *process = &save->items[i];

		if (process->done || !is_there(process, proc))
			continue;
		if (!process->asked)
			ask_process(process, fd);
		left += !process->done;
	}
	return left;
}
