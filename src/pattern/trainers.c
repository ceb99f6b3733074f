/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The lines of well-known trainers. The formats are those of these sources:
 *
 *   tqdm 4.67        tqdm/std.py, format_meter
 *   transformers     trainer_callback.py, ProgressCallback and PrinterCallback: tqdm, and a dict at each log
 *                    (numbers in version 4, texts in version 5)
 *   lightning 2      callbacks/progress/tqdm_progress.py: "Epoch 0:" before the bar, epochs from 0
 *   Megatron-LM      megatron/training/training.py, training_log
 *   NeMo             lightning/pytorch/callbacks/progress_printer.py
 *
 * A bar that counts the steps of one epoch gives steps of the whole training: the epochs before it are added. Its total
 * is the end of the present epoch, if the line has no number of epochs.
 */
#include "pattern/trainers_internal.h"

#include "base/ascii.h"
#include "base/str.h"

#include <string.h>

#define TEXT_MAX 160 /* most bytes of the text before a progress bar */

/* ---- loss and time behind the step in a line ----------------------------------------------- */

static bool is_name(char c)
{
	return hf_ascii_is_letter(c) || hf_ascii_is_digit(c) || c == '_' || c == '/' || c == ' ' ||
	       c == '(' || c == ')';
}

static bool is_value(char c)
{
	return hf_ascii_is_letter(c) || hf_ascii_is_digit(c) || c == '.' || c == '-' || c == '+';
}

static bool part_is(const struct hf_regex_part *part, const char *text)
{
	return part->len == strlen(text) && memcmp(part->at, text, part->len) == 0;
}

static bool part_ends(const struct hf_regex_part *part, const char *text)
{
	size_t len = strlen(text);

	return part->len >= len && memcmp(part->at + part->len - len, text, len) == 0;
}

static bool part_begins(const struct hf_regex_part *part, const char *text)
{
	size_t len = strlen(text);

	return part->len >= len && memcmp(part->at, text, len) == 0;
}

/* Takes the next "name=value" or "name: value" out of the text *rest. Returns false if *rest has no
 * more names. */
static bool next_value(struct hf_regex_part *rest, struct hf_regex_part *ret_name,
		       struct hf_regex_part *ret_value)
{
	const char *at = rest->at, *end = rest->at + rest->len, *name, *stop;

	while (at < end && (!is_name(*at) || *at == ' '))
		at++;
	for (name = at; at < end && is_name(*at);)
		at++;
	for (stop = at; stop > name && stop[-1] == ' ';)
		stop--;
	*ret_name = (struct hf_regex_part){name, (size_t)(stop - name)};
	if (at < end && (*at == '=' || *at == ':'))
		at++;
	while (at < end && *at == ' ')
		at++;
	ret_value->at = at;
	while (at < end && is_value(*at))
		at++;
	ret_value->len = (size_t)(at - ret_value->at);
	*rest = (struct hf_regex_part){at, (size_t)(end - at)};
	return name < end;
}

/* Rates how likely a value of this name is the loss of the training: 3 is best, 0 is no loss of the
 * training. */
static int rate_loss_name(const struct hf_regex_part *name)
{
	if (part_begins(name, "val") || part_begins(name, "eval") || part_begins(name, "test"))
		return 0;
	if (part_is(name, "loss") || part_is(name, "lm loss") ||
	    part_is(name, "reduced_train_loss"))
		return 3;
	if (part_is(name, "train_loss") || part_is(name, "train/loss") ||
	    part_is(name, "train_loss_step") || part_is(name, "loss_step"))
		return 2;
	return part_ends(name, "loss") ? 1 : 0;
}

struct values {
	struct hf_regex_part loss;
	double seconds; /* how long a step takes, in seconds; 0: the line does not say it */
};

static struct values read_values(struct hf_regex_part rest)
{
	struct values values = {.seconds = 0};
	struct hf_regex_part name, value;
	int best = 0;

	while (rest.at != NULL && next_value(&rest, &name, &value)) {
		int rating = rate_loss_name(&name);

		if (rating > best && value.len > 0) {
			best = rating;
			values.loss = value;
		}
		if (part_is(&name, "elapsed time per iteration (ms)"))
			values.seconds = hf_pattern_rate(&value) / 1000;
		else if (part_is(&name, "train_step_timing in s"))
			values.seconds = hf_pattern_rate(&value);
	}
	return values;
}

/* ---- steps --------------------------------------------------------------------------------- */

static enum hf_pattern_kind give_step(struct hf_pattern_rank *rank, double per_second,
				      struct hf_pattern_step *ret_step)
{
	*ret_step = (struct hf_pattern_step){
		.beat = {.has_step = true, .step = rank->step, .total = rank->total, .rank = -1},
		.per_second = per_second,
	};
	memcpy(ret_step->beat.loss, rank->loss, sizeof(rank->loss));
	return HF_PATTERN_STEP;
}

/* Megatron: "iteration 10/ 500 | … | elapsed time per iteration (ms): 812.3 | … | lm loss: 1.1E+00 | …".
 * NeMo: "Training epoch 0, iteration 12/99 | … | reduced_train_loss: 11.02 | …". */
static enum hf_pattern_kind take_iteration(struct hf_pattern_rank *rank,
					   const struct hf_regex_match *match,
					   struct hf_pattern_step *ret_step)
{
	struct values values = read_values(match->groups[HF_REGEX_REST]);
	uint64_t step, total, epoch = 0;

	if (!hf_pattern_number(&match->groups[HF_REGEX_STEP], &step) ||
	    !hf_pattern_number(&match->groups[HF_REGEX_TOTAL], &total))
		return HF_PATTERN_OTHER;
	(void)hf_pattern_number(&match->groups[HF_REGEX_EPOCH], &epoch);
	epoch = epoch < UINT32_MAX && total < UINT32_MAX ? epoch : 0;
	rank->step = epoch * total + step;
	rank->total = (epoch + 1) * total;
	hf_pattern_set_loss(rank->loss, &values.loss);
	return give_step(rank, values.seconds > 0 ? 1 / values.seconds : 0, ret_step);
}

/* Hugging Face Trainer: {'loss': 0.9333, 'grad_norm': 7.377, …}. Most such lines have no step; the
 * last progress bar gives it. */
static enum hf_pattern_kind take_dict(struct hf_pattern_rank *rank,
				      const struct hf_regex_match *match,
				      struct hf_pattern_step *ret_step)
{
	uint64_t step;

	hf_pattern_set_loss(rank->loss, &match->groups[HF_REGEX_LOSS]);
	if (hf_pattern_number(&match->groups[HF_REGEX_STEP], &step))
		rank->step = step;
	rank->locked = rank->bar_total > 0;
	return rank->step > 0 ? give_step(rank, 0, ret_step) : HF_PATTERN_OTHER;
}

/* ---- progress bars ------------------------------------------------------------------------- */

/* Copies the text before a bar in lower case, without its percentage: "Epoch 0:  22%" gives "epoch
 * 0". */
static void lower_text(const struct hf_regex_part *part, char ret_text[TEXT_MAX])
{
	size_t len = part->at == NULL ? 0 : part->len < TEXT_MAX - 1 ? part->len : TEXT_MAX - 1;

	if (len > 0)
		memcpy(ret_text, part->at, len);
	if (len > 0 && ret_text[len - 1] == '%')
		for (len--; len > 0 && hf_ascii_is_digit(ret_text[len - 1]);)
			len--;
	while (len > 0 && (ret_text[len - 1] == ' ' || ret_text[len - 1] == ':'))
		len--;
	ret_text[len] = '\0';
	hf_str_lower(ret_text);
}

/* True if the text before a bar names the training, as "Epoch 3" and "train" do, or if there is no
 * text. */
static bool names_training(const char *text)
{
	static const char *const others[] = {"valid", "eval", "test",  "sanity", "predict", "load",
					     "down",  "map",  "token", "filter", "cast"};
	static const char *const ours[] = {"epoch", "train", "step", "iter"};

	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++)
		if (strstr(text, others[i]) != NULL)
			return false;
	for (size_t i = 0; i < HF_ARRAY_LEN(ours); i++)
		if (strstr(text, ours[i]) != NULL)
			return true;
	return text[0] == '\0';
}

/* Reads "epoch 3" or "epoch 3/10". Returns false if the text names no epoch. *ret_of is the number
 * of epochs, 0 if the text has none. */
static bool read_epoch(const char *text, uint64_t *ret_epoch, uint64_t *ret_of)
{
	const char *at = strstr(text, "epoch");
	struct hf_regex_part part;

	if (at == NULL)
		return false;
	for (at += strlen("epoch"); *at == ' ' || *at == '[' || *at == ':'; at++)
		;
	part = (struct hf_regex_part){at, strspn(at, "0123456789")};
	if (part.len > 6 || !hf_pattern_number(&part, ret_epoch))
		return false;
	at += part.len;
	*ret_of = 0;
	part = (struct hf_regex_part){at + 1, *at == '/' ? strspn(at + 1, "0123456789") : 0};
	if (part.len <= 6)
		(void)hf_pattern_number(&part, ret_of);
	return at[0] != '%';
}

/* Takes a bar whose text names no epoch. Returns false if the bar belongs to an evaluation: it has
 * another length, and the bar before it is not complete. */
static bool follow_bar(struct hf_pattern_rank *rank, uint64_t step, uint64_t total)
{
	bool complete = rank->bar_step >= rank->bar_total;

	if (rank->bar_total != 0 && total != rank->bar_total && (rank->locked || !complete))
		return false;
	if (total != rank->bar_total)
		rank->laps = 0;
	else if (step < rank->bar_step && complete && !rank->locked)
		rank->laps++; /* the next epoch */
	rank->bar_total = total;
	rank->bar_step = step;
	rank->step = rank->laps * total + step;
	rank->total = (rank->laps + 1) * total;
	return true;
}

static bool place_step(struct hf_pattern_rank *rank, const char *text, uint64_t step,
		       uint64_t total)
{
	uint64_t epoch, of;

	if (total == 0) {
		rank->step = step;
		rank->total = 0;
		return true;
	}
	if (!read_epoch(text, &epoch, &of))
		return follow_bar(rank, step, total);
	/* "Epoch 1/3" counts from 1, "Epoch 0" from 0. */
	if (of > 0 && epoch > 0)
		epoch--;
	rank->step = epoch * total + step;
	rank->total = (of > 0 ? of : epoch + 1) * total;
	return true;
}

static enum hf_pattern_kind take_bar(struct hf_pattern_rank *rank,
				     const struct hf_regex_match *match,
				     struct hf_pattern_step *ret_step)
{
	const struct hf_regex_part *unit = &match->groups[HF_REGEX_UNIT];
	struct values values = read_values(match->groups[HF_REGEX_REST]);
	double rate = hf_pattern_rate(&match->groups[HF_REGEX_RATE]);
	char text[TEXT_MAX];
	uint64_t step, total = 0;

	lower_text(&match->groups[HF_REGEX_TEXT], text);
	(void)hf_pattern_number(&match->groups[HF_REGEX_TOTAL], &total);
	if (!hf_pattern_number(&match->groups[HF_REGEX_STEP], &step) || total >= UINT32_MAX ||
	    step >= UINT32_MAX || step == 0 || !names_training(text))
		return HF_PATTERN_BAR;
	if (!place_step(rank, text, step, total))
		return HF_PATTERN_BAR;
	hf_pattern_set_loss(rank->loss, &values.loss);
	/* The bar of a slow training shows seconds for each step in place of steps a second. */
	if (rate > 0 && unit->len > 2 && unit->at[0] == 's' && unit->at[1] == '/')
		rate = 1 / rate;
	return give_step(rank, rate, ret_step);
}

/* Each repeat of these expressions has a limit and stops at a character that it does not take
 * itself. So the time of a match is linear in the length of the line. */
#define RATE "(?<rate>[0-9.?]{1,12})(?<unit>s/[A-Za-z]{1,20}|[A-Za-z]{1,20}/s)(?<rest>[^\\]]*)\\]"

const struct hf_trainer hf_trainers[HF_TRAINERS_LEN] = {
	{"^(?<text>[^|]{0,160})\\|[^|]{0,400}\\| *(?<step>[0-9]{1,15})/(?<total>[0-9]{1,15}|\\?) "
	 "\\[[0-9:]{4,12}<[0-9:?, days]{1,24}, *" RATE,
	 " [", take_bar},
	/* A bar of unknown length: "12it [00:05, 20.1it/s]". */
	{"^(?:(?<text>[^|\\[]{0,160}): )?(?<step>[0-9]{1,15})[A-Za-z]{1,20} \\[[0-9:]{4,12}, *" RATE,
	 " [", take_bar},
	{"^\\s{0,400}\\{'loss': '?(?<loss>[^',}]{1,24})'?[,}](?:.{0,400}'step': (?<step>[0-9]{1,15}))?",
	 "{'loss': ", take_dict},
	{"iteration +(?<step>[0-9]{1,15})/ *(?<total>[0-9]{1,15}) \\|(?<rest>.*)",
	 "elapsed time per iteration", take_iteration},
	{"^Training epoch (?<epoch>[0-9]{1,6}), iteration (?<step>[0-9]{1,15})/(?<total>[0-9]{1,15}) \\|(?<rest>.*)",
	 "Training epoch ", take_iteration},
};
