/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_NOTES_H
#define HF_PAGE_NOTES_H

#include "ctl/recorder.h"
#include "json/json.h"

/*
 * The events that this process has recorded of late, for the page of one job. Events of other processes, and those from
 * before the start, are only in the cluster. At most HF_PAGE_NOTES_MAX are kept, with at most HF_PAGE_NOTE_TEXT
 * bytes of message. Pure.
 */
#define HF_PAGE_NOTES_MAX 2048
#define HF_PAGE_NOTE_TEXT 512
/* Limit of the events in the page of a job. */
#define HF_PAGE_NOTES_SHOWN 50

struct hf_page_notes;
struct hf_page_notes *hf_page_notes_create(void);
struct hf_page_notes *hf_page_notes_destroy(
	struct hf_page_notes *notes); /* NULL is fine; returns NULL */
/* The same event again only raises its count. */
void hf_page_notes_add(struct hf_page_notes *notes, const struct hf_event_note *note, hf_time now);
/* Adds the list "events" of the object with this UID, the newest first. */
void hf_page_notes_write(const struct hf_page_notes *notes, const char *uid,
			 struct hf_json *object);

#endif
