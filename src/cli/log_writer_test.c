/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/log_writer.h"

#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

struct caught {
	char *text;
	size_t len;
	FILE *out;
	struct hf_log_writer lines;
};

static void begin(struct caught *c, const char *prefix)
{
	c->out = open_memstream(&c->text, &c->len);
	hf_log_writer_init(&c->lines, c->out, false, prefix);
}

static void write_text(struct caught *c, const char *text)
{
	assert_int_equal(hf_log_writer_write(&c->lines, text, strlen(text)), 0);
}

static void end(struct caught *c)
{
	hf_log_writer_release(&c->lines);
	assert_int_equal(fclose(c->out), 0);
	free(c->text);
}

static void without_a_prefix_bytes_are_as_they_came(void **state)
{
	struct caught c;

	(void)state;
	begin(&c, NULL);
	write_text(&c, "half");
	assert_string_equal(c.text, "half");
	write_text(&c, " a line\r\n\033[1m");
	hf_log_writer_end(&c.lines);
	assert_int_equal(fflush(c.out), 0);
	assert_string_equal(c.text, "half a line\r\n\033[1m");
	end(&c);
}

static void a_terminal_gets_no_escape_sequences(void **state)
{
	struct caught c;

	(void)state;
	begin(&c, "w-0");
	c.lines.terminal = true;
	write_text(&c, "a\033]52;c;cm0g");
	write_text(&c, "LXJm\007b\033[6n\n");
	assert_string_equal(c.text, "w-0 | ab\n");
	end(&c);
}

static void with_a_prefix_a_line_waits_until_it_is_whole(void **state)
{
	struct caught c;

	(void)state;
	begin(&c, "w-0");
	write_text(&c, "ha");
	assert_string_equal(c.text, "");
	write_text(&c, "lf\n\nrest");
	assert_string_equal(c.text, "w-0 | half\nw-0 | \n");
	hf_log_writer_end(&c.lines);
	hf_log_writer_end(&c.lines);
	assert_int_equal(fflush(c.out), 0);
	assert_string_equal(c.text, "w-0 | half\nw-0 | \nw-0 | rest\n");
	end(&c);
}

static void a_break_ends_only_what_is_not_whole(void **state)
{
	struct caught c;

	(void)state;
	begin(&c, NULL);
	hf_log_writer_break_line(&c.lines);
	write_text(&c, "one\n");
	hf_log_writer_break_line(&c.lines);
	write_text(&c, "two");
	hf_log_writer_break_line(&c.lines);
	hf_log_writer_break_line(&c.lines);
	write_text(&c, "three");
	assert_string_equal(c.text, "one\ntwo\nthree");
	end(&c);
}

static void a_line_that_is_too_long_is_several_and_nothing_is_lost(void **state)
{
	size_t len = 2 * HF_CLI_LINE_BYTES_MAX + 10, xs = 0, lines = 0;
	char *text = malloc(len + 1);
	struct caught c;

	(void)state;
	memset(text, 'x', len);
	text[len] = '\0';
	begin(&c, "w");
	write_text(&c, text);
	write_text(&c, "\n");
	for (size_t i = 0; i < c.len; i++) {
		xs += c.text[i] == 'x';
		lines += c.text[i] == '\n';
	}
	assert_int_equal(xs, len);
	assert_int_equal(lines, 3);
	end(&c);
	free(text);
}

static void output_that_cannot_be_written_is_told(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct hf_log_writer lines;

	(void)state;
	assert_non_null(full);
	hf_log_writer_init(&lines, full, false, NULL);
	assert_int_equal(hf_log_writer_write(&lines, "x\n", 2), HF_E_IO);
	hf_log_writer_release(&lines);
	(void)fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_prefix_bytes_are_as_they_came),
		cmocka_unit_test(a_terminal_gets_no_escape_sequences),
		cmocka_unit_test(with_a_prefix_a_line_waits_until_it_is_whole),
		cmocka_unit_test(a_break_ends_only_what_is_not_whole),
		cmocka_unit_test(a_line_that_is_too_long_is_several_and_nothing_is_lost),
		cmocka_unit_test(output_that_cannot_be_written_is_told),
	};

	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
