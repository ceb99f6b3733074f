/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Finds which board (GPU) is at which address, and moves what the memory knows of a board when the board moves.
 *
 * The name of a device is its address on the bus.  A restart of the node may give the address to another board: a
 * riser, another card, a setting.  So faults and states that outlive a restart belong to the board, by its UUID, and
 * move with it. But the bus names a device at once, and its driver tells the UUID later.  So faults found in this
 * boot belong to the address. Until the driver tells another UUID, the memory keeps the board's UUID at the address.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <string.h>

static bool is_this_boot(const struct hf_health_brain *b)
{
	return hf_streq(b->memory->boot_id, b->input->boot_id);
}

static bool is_here(const struct hf_health_brain *b, const struct hf_health_device *d)
{
	return d->seen && is_this_boot(b);
}

static struct hf_health_device *at_address(const struct hf_health_brain *b, const char *id)
{
	for (size_t i = 0; i < b->memory->devices_len; i++)
		if (hf_streq(b->memory->devices[i].id, id))
			return &b->memory->devices[i];
	return NULL;
}

static bool is_named_there(const struct hf_health_brain *b, const char *id, const char *uuid)
{
	for (size_t i = 0; i < b->input->devices_len; i++)
		if (hf_streq(b->input->devices[i].id, id) &&
		    hf_streq(b->input->devices[i].uuid, uuid))
			return true;
	return false;
}

/* Finds the board of this presence at another address of the memory; NULL: the memory has it at no other address. */
static struct hf_health_device *find_elsewhere(const struct hf_health_brain *b,
					       const struct hf_health_presence *p)
{
	for (size_t i = 0; i < b->memory->devices_len && p->uuid[0] != '\0'; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		if (d->kind == HF_HEALTH_GPU && hf_streq(d->uuid, p->uuid) &&
		    !hf_streq(d->id, p->id) && !is_named_there(b, d->id, d->uuid))
			return d;
	}
	return NULL;
}

static bool is_of_address(const struct hf_health_brain *b, const struct hf_health_fault *f)
{
	return is_this_boot(b) && b->input->boot_at != HF_TIME_NONE &&
	       f->opened_at >= b->input->boot_at;
}

static void keep_faults(struct hf_health_brain *b, struct hf_health_device *to,
			const struct hf_health_device *from, bool of_address)
{
	for (size_t i = 0; i < from->faults_len; i++)
		if (is_of_address(b, &from->faults[i]) == of_address)
			hf_health_fault_keep(b, to, &from->faults[i]);
}

/* Whether the time is of this boot: then it belongs to the address at which the device was seen. */
static bool is_lately(const struct hf_health_brain *b, const struct hf_health_device *d, hf_time at)
{
	return is_here(b, d) && b->input->boot_at != HF_TIME_NONE && at >= b->input->boot_at;
}

/* Whether the device is on probation for a fault at its address in this boot.  A probation that the restart began
 * belongs to the board. */
static bool is_tried_here(const struct hf_health_brain *b, const struct hf_health_device *d)
{
	if (d->state != HF_HEALTH_PROBATION || !is_lately(b, d, d->since))
		return false;
	for (size_t i = 0; i < d->faults_len; i++)
		if (is_of_address(b, &d->faults[i]) && hf_health_is_fatal(d->faults[i].cls))
			return true;
	return false;
}

/* Whether the board's state comes only from faults of this boot at its last address.  The new address has none of
 * these faults. */
static bool is_by_address(const struct hf_health_brain *b, const struct hf_health_device *to,
			  const struct hf_health_device *board)
{
	for (size_t i = 0; i < to->faults_len; i++)
		if (to->faults[i].open && to->faults[i].cls >= HF_HEALTH_SOFTWARE)
			return false;
	switch (board->state) {
	case HF_HEALTH_HEALTHY:
	case HF_HEALTH_SUSPECT:
	case HF_HEALTH_DEGRADED_STATE:
	case HF_HEALTH_UNHEALTHY: return is_this_boot(b);
	case HF_HEALTH_PROBATION: return is_tried_here(b, board);
	default: return false;
	}
}

/* Copies the times of stops and sightings: those of this boot (lately), or those of earlier boots. */
static void keep_times(const struct hf_health_brain *b, struct hf_health_device *to,
		       const struct hf_health_device *from, bool lately)
{
	for (uint32_t i = 0; i < from->fatals_len; i++)
		if (is_lately(b, from, from->fatals[i]) == lately)
			hf_health_times_add(to->fatals, &to->fatals_len, HF_HEALTH_REPEATS_MAX,
					    from->fatals[i], 0);
	for (uint32_t i = 0; i < from->sightings_len; i++)
		if (is_lately(b, from, from->sightings[i]) == lately)
			hf_health_times_add(to->sightings, &to->sightings_len,
					    HF_HEALTH_SIGHTINGS_MAX, from->sightings[i], 0);
	if (is_lately(b, from, from->weak_at) == lately && from->weak_at > to->weak_at)
		to->weak_at = from->weak_at;
}

static void forget_times(struct hf_health_device *d)
{
	memset(d->fatals, 0, sizeof(d->fatals));
	memset(d->sightings, 0, sizeof(d->sightings));
	d->fatals_len = d->sightings_len = 0;
	d->weak_at = 0;
}

/* Chooses the stricter of two states: that of the board, and, if it is of this boot, that of the address. */
static void choose_state(const struct hf_health_brain *b, struct hf_health_device *to,
			 const struct hf_health_device *address,
			 const struct hf_health_device *board)
{
	bool out = (hf_health_is_out(address->state) && is_lately(b, address, address->since)) ||
		   is_tried_here(b, address);

	if (is_by_address(b, to, board)) {
		to->state = HF_HEALTH_UNKNOWN;
		to->since = b->now;
	}
	if (out && !hf_health_is_out(to->state)) {
		to->state = address->state;
		to->since = address->since;
	}
}

/* Makes the device at this address the board: it keeps what this boot has found at the address, and gets the
 * board's history. */
static void move_in(struct hf_health_brain *b, struct hf_health_device *to,
		    const struct hf_health_device *address, const struct hf_health_device *board)
{
	uint64_t generation =
		address->generation > board->generation ? address->generation : board->generation;
	bool same = board->uuid[0] != '\0' && hf_streq(address->uuid, board->uuid);

	*to = *board;
	memcpy(to->id, address->id, sizeof(to->id));
	memcpy(to->above, address->above, sizeof(to->above));
	to->seen = address->seen;
	to->heard_at = address->heard_at;
	to->watched_at = address->watched_at;
	to->fresh_after = address->fresh_after;
	memcpy(to->tracks, address->tracks, sizeof(to->tracks));
	to->generation = generation + 1;
	memset(to->faults, 0, sizeof(to->faults));
	to->faults_len = 0;
	keep_faults(b, to, address, true);
	keep_faults(b, to, board, false);
	if (same)
		keep_faults(b, to, address, false);
	forget_times(to);
	keep_times(b, to, board, false);
	keep_times(b, to, address, true);
	choose_state(b, to, address, board);
	b->changed = true;
}

static void exchange_boards(struct hf_health_brain *b, struct hf_health_device *x,
			    struct hf_health_device *y)
{
	struct hf_health_device *was = HF_ARENA_ARRAY(b->arena, struct hf_health_device, 2);

	was[0] = *x;
	was[1] = *y;
	move_in(b, x, &was[0], &was[1]);
	move_in(b, y, &was[1], &was[0]);
}

/* Moves the board to a new address; the memory has no device at the old address then. */
static struct hf_health_device *move_board(struct hf_health_brain *b,
					   const struct hf_health_presence *p,
					   struct hf_health_device *old)
{
	struct hf_health_device *board = HF_ARENA_ARRAY(b->arena, struct hf_health_device, 2), *d;

	board[0] = *old;
	hf_health_forget(b, old);
	d = at_address(b, p->id);
	if (d == NULL)
		d = hf_health_insert(b, p->id, p->kind);
	if (d != NULL) {
		board[1] = *d;
		move_in(b, d, &board[1], &board[0]);
	}
	return d;
}

static struct hf_health_device *place_board(struct hf_health_brain *b,
					    const struct hf_health_presence *p)
{
	struct hf_health_device *d = at_address(b, p->id), *old = find_elsewhere(b, p);
	/* The new address may have this board's UUID already, while the memory has the board at its old address as
	 * well. */
	bool is_free = d == NULL || d->uuid[0] == '\0' || hf_streq(d->uuid, p->uuid);

	if (old != NULL && is_free && !is_here(b, old))
		return move_board(b, p, old);
	if (d == NULL)
		return hf_health_insert(b, p->id, p->kind);
	if (old != NULL && d->kind == old->kind && !hf_streq(d->uuid, p->uuid))
		exchange_boards(b, d, old);
	return d;
}

/* Sets the driver's number of a GPU, and takes it from the GPU that had it: after the driver is loaded again,
 * another GPU may have the number. */
static void take_alias(struct hf_health_brain *b, struct hf_health_device *d, const char *alias)
{
	for (size_t i = 0; i < b->memory->devices_len && d->kind == HF_HEALTH_GPU; i++) {
		struct hf_health_device *other = &b->memory->devices[i];

		if (other != d && other->kind == HF_HEALTH_GPU && hf_streq(other->alias, alias))
			memset(other->alias, 0, sizeof(other->alias));
	}
	memcpy(d->alias, alias, sizeof(d->alias));
}

static bool is_remembered(const struct hf_health_brain *b, const struct hf_health_presence *p)
{
	for (size_t i = 0; i < b->memory->devices_len && p->uuid[0] != '\0'; i++)
		if (hf_streq(b->memory->devices[i].uuid, p->uuid))
			return true;
	return false;
}

static void take_presence(struct hf_health_brain *b, const struct hf_health_presence *p)
{
	struct hf_health_device *d = place_board(b, p);

	if (d == NULL || d->kind == HF_HEALTH_NODE)
		return;
	d->kind = p->kind;
	if (p->uuid[0] != '\0')
		memcpy(d->uuid, p->uuid, sizeof(d->uuid));
	if (p->alias[0] != '\0')
		take_alias(b, d, p->alias);
	if (p->above[0] != '\0')
		memcpy(d->above, p->above, sizeof(d->above));
}

/* Takes the devices that the input names.  A device that is gone stays in the memory: detector count finds that it
 * is missing.  Boards that the memory knows are placed first.  A new board inherits the state that is left at its
 * address. */
void hf_health_place_boards(struct hf_health_brain *b)
{
	bool *known = HF_ARENA_ARRAY(b->arena, bool, b->input->devices_len + 1);

	if (b->memory->devices_len == 0)
		(void)hf_health_insert(b, "", HF_HEALTH_NODE);
	/* After a boot the ports above the devices may have other addresses. */
	for (size_t i = 0; i < b->memory->devices_len && !is_this_boot(b); i++)
		memset(b->memory->devices[i].above, 0, sizeof(b->memory->devices[i].above));
	for (size_t i = 0; i < b->input->devices_len; i++)
		known[i] = is_remembered(b, &b->input->devices[i]);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < b->input->devices_len; i++) {
			const struct hf_health_presence *p = &b->input->devices[i];

			if (p->id[0] != '\0' && p->kind != HF_HEALTH_NODE && known[i] == !pass)
				take_presence(b, p);
		}
}
