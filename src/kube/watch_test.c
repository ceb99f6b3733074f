/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of watches against a scripted server that cuts lines, breaks off, sends garbage and falls
 * silent. */
#include "harness/kube_bench.h"

#include "base/fs.h"
#include "store/resource.h"

#define EVENT(type, name, version)                                                                 \
	"{\"type\":\"" type "\",\"object\":{\"metadata\":{\"name\":\"" name                        \
	"\",\"resourceVersion\":\"" version "\"}}}\n"

struct seen {
	struct bench *bench;
	struct hf_watch *watch;
	char text[512]; /* the events so far, each as type, name and version: "A:a/5 M:a/6" */
	int events;
	bool ended, stop_at_first;
	int code;
	char message[HF_ERROR_TEXT_MAX];
	hf_time retry_after;
};

static void on_event(void *arg, const struct hf_event *event)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);

	assert_false(seen->ended);
	if (event->type == HF_EVENT_ENDED) {
		seen->ended = true;
		seen->code = event->code;
		seen->retry_after = event->retry_after;
		snprintf(seen->message, sizeof(seen->message), "%s", event->message);
	} else {
		seen->events++;
		snprintf(seen->text + len, sizeof(seen->text) - len, "%s%c:%s/%s",
			 len > 0 ? " " : "", event->initial_end ? 'E' : "AMDB"[event->type],
			 hf_doc_name(event->object), event -> resource_version);
		if (seen->stop_at_first)
			seen->watch = hf_watch_stop(seen->watch);
	}
	hf_loop_stop(seen->bench->t.loop);
}

static void start_watch(struct bench *bench, struct seen *seen, struct hf_watch_options options)
{
	*seen = (struct seen){.bench = bench, .stop_at_first = seen->stop_at_first};
	options.resource = &hf_pods;
	if (options.resource_version == NULL)
		options.resource_version = "4";
	seen->watch = hf_store_watch(bench->store, &options, on_event, seen);
}

static void until_streaming(struct bench *bench)
{
	while (bench->streaming == NULL)
		hf_test_loop_run(&bench->t);
}

static void until_events(struct bench *bench, const struct seen *seen, int n)
{
	while (seen->events < n && !seen->ended)
		hf_test_loop_run(&bench->t);
	assert_int_equal(seen->events, n);
}

static void until_ended(struct bench *bench, struct seen *seen)
{
	while (!seen->ended)
		hf_test_loop_run(&bench->t);
	seen->watch = hf_watch_stop(seen->watch);
}

static const struct step one_stream[] = {{"200 OK", NULL, STREAM, NULL}, DONE};

static void open_stream(struct bench *bench, struct seen *seen)
{
	play_steps(bench, one_stream);
	start_watch(bench, seen, (struct hf_watch_options){.bookmarks = true});
	until_streaming(bench);
}

static void events_come_whole_however_they_are_cut(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {0};
	const char *text = EVENT("ADDED", "a", "5") "\n" EVENT("MODIFIED", "a", "6")
		EVENT("BOOKMARK", "", "7") EVENT("SPLICED", "x", "8") EVENT("DELETED", "a", "9");

	open_stream(bench, &seen);
	for (const char *c = text; *c != '\0'; c++)
		say_chunk(bench, (const char[]){*c, '\0'});
	until_events(bench, &seen, 4);
	end_stream(bench, true);
	until_ended(bench, &seen);
	assert_string_equal(seen.text, "A:a/5 M:a/6 B:/7 D:a/9");
	assert_int_equal(seen.code, 0);

	open_stream(bench, &seen);
	say_chunk(bench, text);
	until_events(bench, &seen, 4);
	seen.watch = hf_watch_stop(seen.watch);
	assert_string_equal(seen.text, "A:a/5 M:a/6 B:/7 D:a/9");
}

static void a_line_that_is_not_json_is_reported_with_its_first_words(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {0};

	open_stream(bench, &seen);
	say_chunk(bench, "<html>please log in</html>");
	end_stream(bench, true);
	until_ended(bench, &seen);
	assert_string_equal(seen.message,
			    "bad answer from the server (HTTP status 200, begins '<html>please log "
			    "in</html>'): the watch ended inside an event");

	open_stream(bench, &seen);
	say_chunk(bench, "<html>\nplease");
	until_ended(bench, &seen);
	assert_non_null(strstr(seen.message, "(HTTP status 200, begins '<html>'): "));
}

static void the_servers_timeout_is_asked_for_between_five_and_ten_minutes(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {0};
	long least = 1000, most = 0;

	for (int i = 0; i < 20; i++) {
		change_steps(bench, one_stream);
		start_watch(bench, &seen, (struct hf_watch_options){.bookmarks = true});
		until_streaming(bench);
		const char *at = strstr(bench->last_head, "timeoutSeconds=");
		assert_non_null(at);
		long seconds = strtol(at + strlen("timeoutSeconds="), NULL, 10);
		assert_in_range(seconds, 300, 600);
		least = seconds < least ? seconds : least;
		most = seconds > most ? seconds : most;
		assert_non_null(strstr(bench->last_head, "allowWatchBookmarks=true"));
		assert_non_null(strstr(bench->last_head, "resourceVersion=4"));
		seen.watch = hf_watch_stop(seen.watch);
	}
	/* two watches that start together have different timeouts */
	assert_true(most - least > 60);
}

static void a_malformed_line_ends_the_watch_and_later_lines_are_ignored(void **state)
{
	static const char *const bad[] = {
		"nonsense\n",
		"{\"type\":\"ADDED\"}\n",
		"{\"type\":\"ADDED\",\"object\":{}}\n",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}\n",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct bench *bench = *state;
		struct seen seen = {0};
		HF_AUTOFREE char *text = hf_xasprintf("%s%s%s", EVENT("ADDED", "a", "5"), bad[i],
						      EVENT("ADDED", "b", "6"));
		open_stream(bench, &seen);
		say_chunk(bench, text);
		until_ended(bench, &seen);
		/* The watch failed after a/5, and the user can resume it from version 5. */
		assert_int_equal(seen.code, HF_E_UNAVAILABLE);
		assert_string_equal(seen.text, "A:a/5");
	}
}

static void an_event_past_its_limit_is_refused_with_the_limit(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {0};
	HF_AUTOFREE char *block = hf_xmalloc((1u << 20) + 1);

	memset(block, 'x', 1u << 20);
	block[1u << 20] = '\0';
	open_stream(bench, &seen);
	say_chunk(bench, EVENT("ADDED", "a", "5") "{\"type\":\"ADDED\",\"object\":{\"data\":\"");
	for (int i = 0; i < 4; i++)
		say_chunk(bench, block);
	say_chunk(bench, "\"}}\n" EVENT("ADDED", "b", "6"));
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_TOO_LARGE);
	assert_non_null(strstr(seen.message, "4194304"));
	assert_string_equal(seen.text, "A:a/5");
}

static void a_watch_that_breaks_off_is_unavailable_and_resumable(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {0};

	open_stream(bench, &seen);
	say_chunk(bench, EVENT("ADDED", "a", "5"));
	until_events(bench, &seen, 1);
	end_stream(bench, false);
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_UNAVAILABLE);

	/* A complete HTTP response that ends in the middle of an event. */
	open_stream(bench, &seen);
	say_chunk(bench, EVENT("ADDED", "a", "5") "{\"type\":\"ADDED\",\"obj");
	end_stream(bench, true);
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_UNAVAILABLE);
	assert_non_null(strstr(seen.message, "inside an event"));
	assert_string_equal(seen.text, "A:a/5");
}

static void a_watch_that_falls_silent_is_ended(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {0};

	bench->watch_silence_max = 60 * HF_MS;
	open_stream(bench, &seen);
	say_chunk(bench, EVENT("BOOKMARK", "", "5"));
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_TIMEOUT);
	assert_string_equal(seen.text, "B:/5");
}

static void too_old_a_version_is_gone_as_a_status_and_as_an_event(void **state)
{
	static const char status[] = "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
				     "\"message\":\"too old resource version\"}";
	static const struct step refusal[] = {{"410 Gone", status, WHOLE, NULL}, DONE};
	struct bench *bench = *state;
	struct seen seen = {0};
	HF_AUTOFREE char *event = hf_xasprintf("{\"type\":\"ERROR\",\"object\":%s}\n%s", status,
					       EVENT("ADDED", "b", "6"));

	play_steps(bench, refusal);
	start_watch(bench, &seen, (struct hf_watch_options){.bookmarks = true});
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_GONE);
	assert_string_equal(seen.message, "too old resource version");

	open_stream(bench, &seen);
	say_chunk(bench, event);
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_GONE);
	assert_string_equal(seen.text, "");
}

static void a_429_is_reported_with_its_retry_after(void **state)
{
	static const struct step steps[] = {{"429 Busy\r\nRetry-After: 9", "", WHOLE, NULL}, DONE};
	struct bench *bench = *state;
	struct seen seen = {0};

	play_steps(bench, steps);
	start_watch(bench, &seen, (struct hf_watch_options){.bookmarks = false});
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_TOO_MANY);
	assert_true(seen.retry_after == 9 * HF_SECOND);
	assert_int_equal(bench->server.requests, 1);
	assert_int_equal(bench->seen[0].status, 429);
	assert_int_equal(bench->seen_count, 1);
}

static void a_watch_may_be_stopped_between_two_events_of_a_chunk(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {.stop_at_first = true};

	open_stream(bench, &seen);
	say_chunk(bench, EVENT("ADDED", "a", "5") EVENT("ADDED", "b", "6"));
	until_events(bench, &seen, 1);
	assert_string_equal(seen.text, "A:a/5");
	assert_null(seen.watch);
}

static void a_destroyed_store_ends_its_watches(void **state)
{
	struct bench *bench = *state;
	struct seen seen = {0};

	open_stream(bench, &seen);
	bench->store = hf_store_destroy(bench->store);
	assert_true(seen.ended);
	assert_int_equal(seen.code, HF_E_CANCELED);
	seen.watch = hf_watch_stop(seen.watch);
}

static void a_watch_fetches_another_token_once(void **state)
{
	static const struct step steps[] = {
		{"401 Unauthorized", "", WHOLE, "Authorization: Bearer old\r\n"},
		{"200 OK", NULL, STREAM, "Authorization: Bearer new\r\n"},
		DONE};
	static const struct step refused[] = {{"401 Unauthorized", "", WHOLE, NULL}, DONE};
	char path[] = "/tmp/holdfast-token-XXXXXX";
	struct bench *bench = *state;
	struct seen seen = {0};
	struct hf_error err;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	bench->config.token = hf_xstrdup("old");
	bench->config.token_file = hf_xstrdup(path);
	assert_ok(hf_fs_write_atomic(path, "new\n", 4, 0600, &err), &err);
	play_steps(bench, steps);
	start_watch(bench, &seen, (struct hf_watch_options){.bookmarks = true});
	until_streaming(bench);
	say_chunk(bench, EVENT("ADDED", "a", "5"));
	until_events(bench, &seen, 1);
	seen.watch = hf_watch_stop(seen.watch);

	change_steps(bench, refused);
	start_watch(bench, &seen, (struct hf_watch_options){.bookmarks = true});
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_UNAUTHORIZED);
	assert_int_equal(bench->server.requests, 1); /* the token file is unchanged */
	assert_int_equal(unlink(path), 0);
}

static void a_list_may_come_as_a_stream(void **state)
{
	static const struct step steps[] = {
		{"200 OK", NULL, STREAM,
		 "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"},
		DONE};
	struct bench *bench = *state;
	struct seen seen = {0};

	play_steps(bench, steps);
	seen.bench = bench;
	seen.watch = hf_store_watch(bench->store,
				    &(struct hf_watch_options){.resource = &hf_pods,
							       .bookmarks = true,
							       .initial_events = true},
				    on_event, &seen);
	until_streaming(bench);
	assert_null(strstr(bench->last_head, "resourceVersion="));
	say_chunk(bench, EVENT("ADDED", "a", "5"));
	say_chunk(bench, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
			 "\"7\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n");
	say_chunk(bench, EVENT("BOOKMARK", "", "8"));
	until_events(bench, &seen, 3);
	assert_string_equal(seen.text, "A:a/5 E:/7 B:/8");
	assert_true(hf_store_can_stream_lists(bench->store));
	seen.watch = hf_watch_stop(seen.watch);
}

/* Only the first 256 KiB of a refusal are kept. A later part behind a gap could make a Status that
 * the server never sent. */
static void of_a_refusal_that_is_too_long_the_beginning_is_read(void **state)
{
	static const struct step refusal[] = {{"500 Error", NULL, STREAM, NULL}, DONE};
	HF_AUTOFREE char *blanks = hf_xcalloc(1, 300001);
	struct bench *bench = *state;
	struct seen seen = {0};

	memset(blanks, ' ', 300000);
	play_steps(bench, refusal);
	start_watch(bench, &seen, (struct hf_watch_options){.bookmarks = true});
	until_streaming(bench);
	say_chunk(bench, "{\"kind\":\"Status\",");
	say_chunk(bench, blanks);
	say_chunk(bench, "\"message\":\"from behind the gap\",\"code\":500}");
	end_stream(bench, true);
	until_ended(bench, &seen);
	assert_int_not_equal(seen.code, 0);
	assert_null(strstr(seen.message, "from behind the gap"));
}

static void a_server_that_knows_no_streams_is_not_asked_again(void **state)
{
	static const struct step refusal[] = {
		{"422 Invalid", "{\"kind\":\"Status\",\"reason\":\"Invalid\"}", WHOLE, NULL}, DONE};
	const struct hf_watch_options options = {
		.resource = &hf_pods, .bookmarks = true, .initial_events = true};
	struct bench *bench = *state;
	struct seen seen = {.bench = bench};

	play_steps(bench, refusal);
	seen.watch = hf_store_watch(bench->store, &options, on_event, &seen);
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_INVALID);
	assert_false(hf_store_can_stream_lists(bench->store));

	/* A server that treats the request as a plain watch never sends the end of the initial
	 * events. */
	play_steps(bench, one_stream);
	assert_true(hf_store_can_stream_lists(bench->store));
	seen = (struct seen){.bench = bench};
	seen.watch = hf_store_watch(bench->store, &options, on_event, &seen);
	until_streaming(bench);
	say_chunk(bench, EVENT("ADDED", "a", "5") EVENT("BOOKMARK", "", "8"));
	until_ended(bench, &seen);
	assert_int_equal(seen.code, HF_E_INVALID);
	assert_string_equal(seen.text, "A:a/5");
	assert_false(hf_store_can_stream_lists(bench->store));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		UNIT(events_come_whole_however_they_are_cut),
		UNIT(a_line_that_is_not_json_is_reported_with_its_first_words),
		UNIT(the_servers_timeout_is_asked_for_between_five_and_ten_minutes),
		UNIT(a_malformed_line_ends_the_watch_and_later_lines_are_ignored),
		UNIT(an_event_past_its_limit_is_refused_with_the_limit),
		UNIT(a_watch_that_breaks_off_is_unavailable_and_resumable),
		UNIT(a_watch_that_falls_silent_is_ended),
		UNIT(too_old_a_version_is_gone_as_a_status_and_as_an_event),
		UNIT(a_429_is_reported_with_its_retry_after),
		UNIT(a_watch_may_be_stopped_between_two_events_of_a_chunk),
		UNIT(a_destroyed_store_ends_its_watches),
		UNIT(a_watch_fetches_another_token_once),
		UNIT(a_list_may_come_as_a_stream),
		UNIT(of_a_refusal_that_is_too_long_the_beginning_is_read),
		UNIT(a_server_that_knows_no_streams_is_not_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
