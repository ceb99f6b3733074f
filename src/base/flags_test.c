/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/flags.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 16

static const struct hf_flag own[] = {
	{"output", 'o', "FORMAT", "how to print", "table"},
	{"watch", 'w', NULL, "go on", NULL},
	{"namespace", 0, "NAME", "the only one", NULL},
	{NULL, 0, NULL, NULL, NULL},
};
static const struct hf_flag common[] = {
	{"help", 'h', NULL, "show this help", NULL},
	{"namespace", 'n', "NAME", "hidden by the first table", NULL},
	{NULL, 0, NULL, NULL, NULL},
};
static struct hf_error err;

/* Reads the words of a line; the result is "name=value" or "[word]" for each item, "name!" for a
 * switch that is off, then "|" and the words that are left, or the error's text. */
static char *read_line(enum hf_flags_style style, const char *line)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	HF_AUTOFREE char *copy = hf_xstrdup(line);
	const char *argv[WORDS_MAX];
	struct hf_flags flags = {.style = style, .tables = {own, NULL, common}, .argv = argv};
	struct hf_flag_item item;
	char *rest = copy, *word;
	int rc;

	while ((word = strsep(&rest, " ")) != NULL)
		argv[flags.argc++] = word;
	while ((rc = hf_flags_next(&flags, &item, &err)) > 0) {
		if (item.flag == NULL)
			hf_strbuf_addf(&text, "[%s]", item.value);
		else if (item.value == NULL)
			hf_strbuf_addf(&text, "%s!", item.flag->name);
		else
			hf_strbuf_addf(&text, "%s=%s", item.flag->name, item.value);
		hf_strbuf_addch(&text, ' ');
	}
	if (rc < 0) {
		assert_int_equal(rc, HF_E_INVALID);
		return hf_xstrdup(err.text);
	}
	hf_strbuf_addch(&text, '|');
	for (; flags.at < flags.argc; flags.at++)
		hf_strbuf_addstr(&text, argv[flags.at]);
	return hf_strbuf_detach(&text);
}

struct line {
	const char *text, *result;
};

static void assert_lines(enum hf_flags_style style, const struct line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		HF_AUTOFREE char *result = read_line(style, lines[i].text);

		if (!hf_streq(result, lines[i].result))
			fail_msg("'%s' reads as '%s', not as '%s'", lines[i].text, result,
				 lines[i].result);
	}
}

static void flags_and_words_mix(void **state)
{
	static const struct line lines[] = {
		{"a --output=json b", "[a] output=json [b] |"},
		{"--output json", "output=json |"},
		{"--output= a", "output= [a] |"},
		{"--output --watch", "output=--watch |"},
		{"-o json -ojson -o=json -o=", "output=json output=json output=json output= |"},
		{"-wo json -hw", "watch= output=json help= watch= |"},
		{"- -- -o --watch --", "[-] [-o] [--watch] [--] |"},
		{"--watch=true --watch=0 --watch=F", "watch= watch! watch! |"},
		{"-n a --namespace b", "namespace=a namespace=b |"},
	};

	assert_lines(HF_FLAGS_MIXED, lines, HF_ARRAY_LEN(lines));
}

static void a_command_ends_the_flags(void **state)
{
	static const struct line lines[] = {
		{"-w python --watch", "watch= |python--watch"},
		{"-w -- --watch", "watch= |--watch"},
		{"-- -- a", "|--a"},
		{"-o x", "output=x |"},
		{"--", "|"},
	};

	assert_lines(HF_FLAGS_COMMAND, lines, HF_ARRAY_LEN(lines));
}

static void go_style_takes_one_dash_or_two(void **state)
{
	static const struct line lines[] = {
		{"-output json --output=yaml", "output=json output=yaml |"},
		{"-watch -watch=false", "watch= watch! |"},
		{"-watch false", "watch= [false] |"},
		{"-h -help", "help= help= |"},
		{"-ojson", "unknown flag '--ojson'"},
		{"-outptu=x", "unknown flag '--outptu': did you mean '--output'?"},
	};

	assert_lines(HF_FLAGS_GO, lines, HF_ARRAY_LEN(lines));
}

static void an_error_names_the_flag(void **state)
{
	static const struct line lines[] = {
		{"--nope", "unknown flag '--nope'"},
		{"--nope=x", "unknown flag '--nope'"},
		{"--=x", "unknown flag '--'"},
		{"--watc", "unknown flag '--watc': did you mean '--watch'?"},
		{"--name-space x", "unknown flag '--name-space': did you mean '--namespace'?"},
		{"-x", "unknown flag '-x'"},
		{"-w=true", "unknown flag '-='"},
		{"--output", "--output needs a value: --output FORMAT"},
		{"a -o", "--output needs a value: --output FORMAT"},
		{"--watch=maybe", "--watch takes true or false, not 'maybe'"},
		{"--watch=", "--watch takes true or false, not ''"},
	};

	assert_lines(HF_FLAGS_MIXED, lines, HF_ARRAY_LEN(lines));
}

static void a_very_long_flag_is_cut_in_the_error(void **state)
{
	char word[4096] = "--";
	const char *argv[] = {word};
	struct hf_flags flags = {.tables = {own}, .argc = 1, .argv = argv};
	struct hf_flag_item item;

	memset(word + 2, 'x', sizeof(word) - 3);
	assert_code(hf_flags_next(&flags, &item, &err), HF_E_INVALID);
	assert_int_equal(strlen(err.text), strlen("unknown flag '--'") + 100);
}

static void the_nearest_name_differs_in_few_letters(void **state)
{
	static const struct {
		const char *text, *nearest;
	} cases[] = {
		{"suspnd", "suspend"}, {"restrat", "restart"}, {"leader", NULL}, {"gte", "get"},
		{"ge", "get"},         {"gets", "get"},        {"", NULL},       {"run", NULL},
	};
	static const char *const names[] = {"get", "suspend", "restart", "resume"};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_nearest search = {.text = cases[i].text, .len = strlen(cases[i].text)};

		for (size_t j = 0; j < HF_ARRAY_LEN(names); j++)
			hf_nearest_offer(&search, names[j]);
		if (!hf_streq(search.nearest, cases[i].nearest))
			fail_msg("'%s' is near '%s'", cases[i].text,
				 hf_str_or(search.nearest, "nothing"));
	}
}

static void help_lines_stand_in_columns(void **state)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	for (const struct hf_flag *flag = own; flag->name != NULL; flag++) {
		hf_flag_add_help(own, flag, &text);
		hf_strbuf_addch(&text, '\n');
	}
	assert_string_equal(text.data, "  -o, --output FORMAT          how to print [table]\n"
				       "  -w, --watch                  go on\n"
				       "      --namespace NAME         the only one\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_and_words_mix),
		cmocka_unit_test(a_command_ends_the_flags),
		cmocka_unit_test(go_style_takes_one_dash_or_two),
		cmocka_unit_test(an_error_names_the_flag),
		cmocka_unit_test(a_very_long_flag_is_cut_in_the_error),
		cmocka_unit_test(the_nearest_name_differs_in_few_letters),
		cmocka_unit_test(help_lines_stand_in_columns),
	};

	return cmocka_run_group_tests_name("flags", tests, NULL, NULL);
}
