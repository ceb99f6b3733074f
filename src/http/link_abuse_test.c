/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of links against servers that break the rules of HTTP/2 and TLS, or keep them and make no
 * progress. The request must end with a text that names the problem, and the next request must
 * succeed. */
#include "http/link_abuse_test.h"
#include "http/certificate.h"
#include "http/link_asker_test.h"
#include "http/link_internal.h"

#include "base/str.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <time.h>

#define SHORT (300 * HF_MS)

struct bench {
	struct hf_requester requester;
	struct hf_raw_h2 server;
	const struct abuse *abuse; /* how the server answers the next request; NULL: correctly */
	uint32_t last_id;
};

static struct hf_certificate ca, server_pair;
static hf_time now;

static int set_up_all(void **state)
{
	static const char *const names[] = {"127.0.0.1", NULL};
	struct hf_certificate_spec spec = {.common_name = "test CA", .valid_for = HF_DAY};
	struct hf_error err = {0};

	now = spec.now = (hf_time)time(NULL) * HF_SECOND;
	assert_ok(hf_certificate_make_ca(&spec, &ca, &err), &err);
	spec.common_name = NULL;
	spec.names = names;
	assert_ok(hf_certificate_make_server(&ca, &spec, &server_pair, &err), &err);
	return 0;
}

static int tear_down_all(void **state)
{
	hf_certificate_release(&ca);
	hf_certificate_release(&server_pair);
	return 0;
}

/* --- the client's side --- */

static void fetch_well(struct bench *bench)
{
	bench->abuse = NULL;
	const struct hf_requester_note *note =
		hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	if (note->code != 0 || note->status != 200 || note->body_len != 4)
		fail_msg("%d, %d: %s", note->code, note->status, note->text);
}

static void assert_says(const struct hf_requester_note *note, const char *text)
{
	if (!strstr(note->text, text))
		fail_msg("'%s' does not say '%s'", note->text, text);
}

/* --- the server's side --- */

struct abuse {
	const char *name;
	void (*say)(struct hf_raw_peer *peer, uint32_t id);
	int code; /* expected code of the result */
	const char *text;
	bool lasts; /* true: the next request uses the same connection */
};

static void on_request(struct hf_raw_peer *peer, uint32_t id)
{
	struct bench *bench = peer->server->arg;

	bench->last_id = id;
	if (bench->abuse)
		bench->abuse->say(peer, id);
	else
		hf_raw_answer(peer, id);
}

static void send_setting(struct hf_raw_peer *peer, unsigned name, uint32_t value)
{
	const char entry[] = {(char)(name >> 8),   (char)name,         (char)(value >> 24),
			      (char)(value >> 16), (char)(value >> 8), (char)value};

	hf_raw_frame(peer, HF_RAW_SETTINGS, 0, 0, entry, sizeof(entry));
}

static void on_open(struct hf_raw_peer *peer)
{
	hf_raw_frame(peer, HF_RAW_SETTINGS, 0, 0, "", 0);
}

static void start_with(struct bench *bench, struct hf_http_client_spec spec)
{
	spec.ca_pem = ca.cert_pem;
	hf_requester_connect(&bench->requester, bench->server.port, "", spec);
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->requester.t);
	bench->server = (struct hf_raw_h2){.loop = bench->requester.t.loop,
					   .on_open = on_open,
					   .on_head = on_request,
					   .arg = bench};
	hf_raw_start(&bench->server, server_pair.cert_pem, server_pair.key_pem);
	start_with(bench, (struct hf_http_client_spec){0});
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_http_client_destroy(bench->requester.client);
	hf_raw_stop(&bench->server);
	hf_test_loop_release(&bench->requester.t);
	free(bench);
	return 0;
}

static void assert_abuse_handled(struct bench *bench, const struct abuse *abuse, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned before;

		fetch_well(bench);
		before = bench->server.accepted;
		bench->abuse = &abuse[i];
		const struct hf_requester_note *note =
			hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
		if (note->code != abuse[i].code || !strstr(note->text, abuse[i].text))
			fail_msg("%s: %d, '%s'", abuse[i].name, note->code, note->text);
		fetch_well(bench);
		if ((bench->server.accepted == before) != abuse[i].lasts)
			fail_msg("%s: the connection %s", abuse[i].name,
				 abuse[i].lasts ? "was not kept" : "was kept");
	}
}

/* --- malformed responses --- */

#define HEADERS_ALL (HF_RAW_END_HEADERS | HF_RAW_END_STREAM)
#define SAYS(name, ...)                                                                            \
	static void name(struct hf_raw_peer *peer, uint32_t id)                                    \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define HEAD(flags, ...) hf_raw_headers(peer, id, flags, (const char *const[]){__VA_ARGS__, NULL});
#define DATA(flags, text) hf_raw_frame(peer, HF_RAW_DATA, flags, id, text, strlen(text));

SAYS(no_status, HEAD(HEADERS_ALL, "a", "b"))
SAYS(status_of_letters, HEAD(HEADERS_ALL, ":status", "abc"))
SAYS(status_zero, HEAD(HF_RAW_END_HEADERS, ":status", "000") DATA(HF_RAW_END_STREAM, "x"))
SAYS(status_99, HEAD(HEADERS_ALL, ":status", "099"))
SAYS(status_101, HEAD(HF_RAW_END_HEADERS, ":status", "101"))
SAYS(end_in_100, HEAD(HEADERS_ALL, ":status", "100"))
SAYS(two_statuses, HEAD(HEADERS_ALL, ":status", "200", ":status", "500"))
SAYS(status_behind, HEAD(HEADERS_ALL, "a", "b", ":status", "200"))
SAYS(capitals, HEAD(HEADERS_ALL, ":status", "200", "Server", "x"))
SAYS(hop_by_hop, HEAD(HEADERS_ALL, ":status", "200", "connection", "close"))
SAYS(longer, HEAD(HF_RAW_END_HEADERS, ":status", "200", "content-length", "2") DATA(1, "long"))
SAYS(shorter, HEAD(HF_RAW_END_HEADERS, ":status", "200", "content-length", "9") DATA(1, "short"))
SAYS(length_without, HEAD(HEADERS_ALL, ":status", "200", "content-length", "9"))
SAYS(length_is_no_number, HEAD(HEADERS_ALL, ":status", "200", "content-length", "-1"))
SAYS(two_lengths, HEAD(HEADERS_ALL, ":status", "200", "content-length", "0", "content-length", "5"))
SAYS(data_first, DATA(HF_RAW_END_STREAM, "x"))
SAYS(status_in_trailers,
     HEAD(HF_RAW_END_HEADERS, ":status", "200") HEAD(HEADERS_ALL, ":status", "200"))
SAYS(trailers_go_on, HEAD(HF_RAW_END_HEADERS, ":status", "200") HEAD(HF_RAW_END_HEADERS, "a", "b"))

static void malformed_responses_are_refused_with_the_broken_rule(void **state)
{
#define RULES "breaks the rules of HTTP/2"
#define LENGTH "content-length"
	static const struct abuse abuse[] = {
		{"no status", no_status, HF_E_TIMEOUT, RULES, true},
		{"abc", status_of_letters, HF_E_TIMEOUT, RULES, true},
		{"000", status_zero, HF_E_TIMEOUT, "status", true},
		{"099", status_99, HF_E_TIMEOUT, "status", true},
		{"101", status_101, HF_E_TIMEOUT, RULES, true},
		{"100 and the end", end_in_100, HF_E_TIMEOUT, RULES, true},
		{"two statuses", two_statuses, HF_E_TIMEOUT, RULES, true},
		{"status behind a field", status_behind, HF_E_TIMEOUT, RULES, true},
		{"capitals", capitals, HF_E_TIMEOUT, RULES, true},
		{"hop by hop", hop_by_hop, HF_E_TIMEOUT, RULES, true},
		{"longer", longer, HF_E_TIMEOUT, LENGTH, true},
		{"shorter", shorter, HF_E_TIMEOUT, LENGTH, true},
		{"a length without a body", length_without, HF_E_TIMEOUT, RULES, true},
		{"a length below nothing", length_is_no_number, HF_E_TIMEOUT, RULES, true},
		{"two lengths", two_lengths, HF_E_TIMEOUT, RULES, true},
		{"status in trailers", status_in_trailers, HF_E_TIMEOUT, RULES, true},
		{"trailers without end", trailers_go_on, HF_E_TIMEOUT, RULES, true},
	};

	assert_abuse_handled(*state, abuse, HF_ARRAY_LEN(abuse));
}

SAYS(many_heads,
     for (int i = 0; i < 1000; i++) HEAD(HF_RAW_END_HEADERS, ":status", "103", "link", "x")
	     hf_raw_frame(peer, HF_RAW_HEADERS, HF_RAW_END_HEADERS, id, "\x88", 1);
     DATA(0, "fine") HEAD(HEADERS_ALL, "checksum", "1"))

static void a_thousand_informational_heads_and_trailers_are_one_answer(void **state)
{
	static const struct abuse abuse = {.say = many_heads};
	struct bench *bench = *state;

	bench->abuse = &abuse;
	const struct hf_requester_note *note =
		hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	assert_int_equal(note->code, 0);
	assert_int_equal(note->status, 200);
	assert_int_equal(note->body_len, 4);
}

/* A status below 100 is not a valid head, and a stream must get no data before its head. */
static void a_stream_without_a_status_brings_no_data(void **state)
{
	static const struct abuse abuse = {.say = status_zero};
	struct bench *bench = *state;

	bench->abuse = &abuse;
	assert_int_equal(
		hf_requester_fetch(&bench->requester, (struct hf_http_request){.stream = true})
			->code,
		HF_E_TIMEOUT);
	assert_int_equal(bench->requester.data_len, 0);
}

/* --- reset streams --- */

static uint32_t code_to_say;

static void say_reset(struct hf_raw_peer *peer, uint32_t id)
{
	const char code[] = {(char)(code_to_say >> 24), (char)(code_to_say >> 16),
			     (char)(code_to_say >> 8), (char)code_to_say};

	hf_raw_frame(peer, HF_RAW_RST, 0, id, code, sizeof(code));
}

static void each_reset_code_is_reported_by_name(void **state)
{
	static const char *const names[] = {"NO_ERROR",
					    "PROTOCOL_ERROR",
					    "INTERNAL_ERROR",
					    "FLOW_CONTROL_ERROR",
					    "SETTINGS_TIMEOUT",
					    "STREAM_CLOSED",
					    "FRAME_SIZE_ERROR",
					    "REFUSED_STREAM",
					    "CANCEL",
					    "COMPRESSION_ERROR",
					    "CONNECT_ERROR",
					    "ENHANCE_YOUR_CALM",
					    "INADEQUATE_SECURITY",
					    "code 14"};
	struct abuse abuse = {.name = "reset", .say = say_reset, .lasts = true};

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		HF_AUTOFREE char *text = hf_xasprintf("server ended the stream: %s", names[i]);

		/* The code HTTP_1_1_REQUIRED (13) is left out: another test covers it. */
		code_to_say = i < 13 ? (uint32_t)i : 14;
		abuse.text = text;
		abuse.code = i == NGHTTP2_REFUSED_STREAM ? HF_E_UNAVAILABLE : HF_E_TIMEOUT;
		assert_abuse_handled(*state, &abuse, 1);
	}
}

static void a_server_that_requires_http_1_1_gets_it_from_then_on(void **state)
{
	static const struct abuse abuse = {.say = say_reset};
	struct bench *bench = *state;

	code_to_say = NGHTTP2_HTTP_1_1_REQUIRED;
	bench->abuse = &abuse;
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->code,
			 HF_E_TIMEOUT);
	assert_true(bench->requester.client->link_off_until == HF_TIME_NEVER);
}

/* --- ends of the connection --- */

static void say_goaway(struct hf_raw_peer *peer, uint32_t last, uint32_t code, const char *reason)
{
	char payload[64] = {(char)(last >> 24), (char)(last >> 16), (char)(last >> 8), (char)last,
			    (char)(code >> 24), (char)(code >> 16), (char)(code >> 8), (char)code};

	memcpy(payload + 8, reason, strlen(reason));
	hf_raw_frame(peer, HF_RAW_GOAWAY, 0, 0, payload, 8 + strlen(reason));
}

#define FRAME(type, flags, id, ...)                                                                \
	{                                                                                          \
		static const char bytes[] = {__VA_ARGS__};                                         \
		hf_raw_frame(peer, type, flags, id, bytes, sizeof(bytes));                         \
	}
#define CUT hf_raw_say(peer, "\0\0\x10\0\0\0\0\0\1half", 13);

SAYS(goaway_all, say_goaway(peer, 0, 0, "");)
SAYS(goaway_calm, say_goaway(peer, id, 11, "too_many\npings"); hf_raw_close(peer);)
SAYS(goaway_open, say_goaway(peer, id, 2, ""); hf_raw_close(peer);)
SAYS(goaway_up, say_goaway(peer, 0, 0, ""); say_goaway(peer, 0x7fffffff, 0, "");)
SAYS(window_too_large, send_setting(peer, 4, 0x80000000);)
SAYS(frames_too_small, send_setting(peer, 5, 0);)
SAYS(push_of_two, send_setting(peer, 2, 2);)
SAYS(odd_settings, FRAME(HF_RAW_SETTINGS, 0, 0, 1, 2, 3, 4, 5))
SAYS(settings_of_a_stream, FRAME(HF_RAW_SETTINGS, 0, id, 0, 4, 0, 0, 0, 9))
SAYS(an_ack_of_nothing, hf_raw_frame(peer, HF_RAW_SETTINGS, HF_RAW_ACK, 0, "", 0);
     hf_raw_frame(peer, HF_RAW_SETTINGS, HF_RAW_ACK, 0, "", 0);)
SAYS(odd_ping, FRAME(HF_RAW_PING, 0, 0, 1, 2, 3))
SAYS(data_of_nobody, hf_raw_frame(peer, HF_RAW_DATA, 0, 0, "x", 1);)
SAYS(data_of_the_future, hf_raw_frame(peer, HF_RAW_DATA, 0, id + 100, "x", 1);)
SAYS(head_of_the_servers, hf_raw_frame(peer, HF_RAW_HEADERS, 4, 2, "\x88", 1);)
SAYS(no_window, FRAME(HF_RAW_WINDOW, 0, 0, 0, 0, 0, 0))
SAYS(window_past_all, FRAME(HF_RAW_WINDOW, 0, 0, 0x7f, -1, -1, -1))
SAYS(a_push, FRAME(HF_RAW_PUSH, HF_RAW_END_HEADERS, id, 0, 0, 0, 2, -0x7e))
SAYS(huffman_of_nothing, FRAME(HF_RAW_HEADERS, HEADERS_ALL, id, -1, -1, -1, -1, -1, -1))
SAYS(index_zero, FRAME(HF_RAW_HEADERS, HEADERS_ALL, id, -0x80))
SAYS(index_past_all, FRAME(HF_RAW_HEADERS, HEADERS_ALL, id, -1, 0x7f))
SAYS(a_head_in_a_head,
     FRAME(HF_RAW_HEADERS, 0, id, -0x78) FRAME(HF_RAW_PING, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8))
SAYS(continued_nothing, FRAME(HF_RAW_CONTINUATION, HF_RAW_END_HEADERS, id, -0x78))
SAYS(http_1_1, hf_raw_say(peer, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);)
SAYS(pings, for (int i = 0; i < 3000; i++) FRAME(HF_RAW_PING, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8))
SAYS(many_settings, for (int i = 0; i < 3000; i++) send_setting(peer, 4, 65535);)
SAYS(continuations, FRAME(HF_RAW_HEADERS, 0, id, -0x78) for (int i = 0; i < 3000; i++)
			    hf_raw_frame(peer, HF_RAW_CONTINUATION, 0, id, "", 0);)
SAYS(cut_in_a_frame, CUT hf_raw_close(peer);)
SAYS(end_in_a_frame, CUT gnutls_bye(peer->tls, GNUTLS_SHUT_WR);)
SAYS(an_alert, CUT gnutls_alert_send(peer->tls, GNUTLS_AL_FATAL, GNUTLS_A_ACCESS_DENIED);)
SAYS(garbage_under_tls,
     assert_int_equal(send(peer->fd, "\x17\x03\x03\0\x20garbagegarbagegarbagegarbage1234", 37, 0),
		      37);)

static void a_frame_too_large(struct hf_raw_peer *peer, uint32_t id)
{
	static const char zeros[16385];

	hf_raw_frame(peer, HF_RAW_DATA, 0, id, zeros, sizeof(zeros));
}

static void a_broken_connection_is_reported_and_replaced(void **state)
{
#define BROKE "the server broke the rules of HTTP/2: "
	static const struct abuse abuse[] = {
		{"goaway, all", goaway_all, HF_E_UNAVAILABLE, "sent GOAWAY", false},
		{"goaway, calm", goaway_calm, HF_E_TIMEOUT,
		 "the server sent GOAWAY: ENHANCE_YOUR_CALM (too_many?pings)", false},
		{"goaway, closed", goaway_open, HF_E_TIMEOUT, "sent GOAWAY: INTERNAL_ERROR", false},
		{"goaway, higher", goaway_up, HF_E_UNAVAILABLE, "sent GOAWAY", false},
		{"window", window_too_large, HF_E_TIMEOUT, BROKE "FLOW_CONTROL_ERROR (", false},
		{"frame size", frames_too_small, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR (", false},
		{"push", push_of_two, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR (", false},
		{"odd settings", odd_settings, HF_E_TIMEOUT, BROKE "FRAME_SIZE_ERROR", false},
		{"a stream's", settings_of_a_stream, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"acks", an_ack_of_nothing, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"odd ping", odd_ping, HF_E_TIMEOUT, BROKE "FRAME_SIZE_ERROR", false},
		{"data of nobody", data_of_nobody, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"data first", data_first, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"future", data_of_the_future, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"server's", head_of_the_servers, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"window 0", no_window, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"window 2^31", window_past_all, HF_E_TIMEOUT, BROKE "FLOW_CONTROL_ERROR", false},
		{"a push", a_push, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"huffman", huffman_of_nothing, HF_E_TIMEOUT, BROKE "COMPRESSION_ERROR", false},
		{"index 0", index_zero, HF_E_TIMEOUT, BROKE "COMPRESSION_ERROR", false},
		{"index 254", index_past_all, HF_E_TIMEOUT, BROKE "COMPRESSION_ERROR", false},
		{"head in head", a_head_in_a_head, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"continued", continued_nothing, HF_E_TIMEOUT, BROKE "PROTOCOL_ERROR", false},
		{"HTTP/1.1", http_1_1, HF_E_TIMEOUT, BROKE "FRAME_SIZE_ERROR", false},
		{"pings", pings, HF_E_TIMEOUT, "Flooding", false},
		{"settings", many_settings, HF_E_TIMEOUT, "Flooding", false},
		{"continuations", continuations, HF_E_TIMEOUT, "", false},
		{"frame", a_frame_too_large, HF_E_TIMEOUT, BROKE "FRAME_SIZE_ERROR", false},
		{"cut", cut_in_a_frame, HF_E_TIMEOUT, "closed the connection", false},
		{"end", end_in_a_frame, HF_E_TIMEOUT, "closed the connection", false},
		{"alert", an_alert, HF_E_TIMEOUT, "alert", false},
		{"garbage", garbage_under_tls, HF_E_TIMEOUT, "ecryption", false},
	};

	assert_abuse_handled(*state, abuse, HF_ARRAY_LEN(abuse));
}

/* --- limits --- */

static void say_a_large_head(struct hf_raw_peer *peer, uint32_t id)
{
	HF_AUTO_STRBUF block = HF_STRBUF_INIT(65536);
	char value[4096];

	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	hf_raw_field(&block, ":status", "200");
	for (int i = 0; i < 3; i++)
		hf_raw_field(&block, "name", value);
	hf_raw_frame(peer, HF_RAW_HEADERS, 0, id, block.data, block.len);
	for (int i = 0; i < 7; i++) {
		hf_strbuf_clear(&block);
		for (int j = 0; j < 3; j++)
			hf_raw_field(&block, "name", value);
		hf_raw_frame(peer, HF_RAW_CONTINUATION, i == 6 ? HF_RAW_END_HEADERS : 0, id,
			     block.data, block.len);
	}
}

static void a_head_past_its_limit_ends_its_request_alone(void **state)
{
	static const struct abuse abuse = {"a large head", say_a_large_head, HF_E_TOO_LARGE,
					   "the response head", true};

	assert_abuse_handled(*state, &abuse, 1);
}

/* Repeats an entry of the header table; a repetition takes one byte. */
static void say_a_bomb(struct hf_raw_peer *peer, uint32_t id)
{
	HF_AUTO_STRBUF block = HF_STRBUF_INIT(65536);
	char value[3000];

	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	hf_raw_field(&block, "name", value);
	block.data[0] = 0x40; /* add the entry to the table */
	hf_raw_frame(peer, HF_RAW_HEADERS, 0, id, "\x88", 1);
	hf_raw_frame(peer, HF_RAW_CONTINUATION, 0, id, block.data, block.len);
	char again[16000];
	memset(again, 0x80 | 62, sizeof(again));
	for (int i = 0; i < 5; i++)
		hf_raw_frame(peer, HF_RAW_CONTINUATION, i == 4 ? HF_RAW_END_HEADERS : 0, id, again,
			     sizeof(again));
}

static void a_head_that_unpacks_to_hundreds_of_megabytes_is_cut_at_its_limit(void **state)
{
	static const struct abuse abuse = {"a bomb", say_a_bomb, HF_E_TOO_LARGE,
					   "the response head", true};

	assert_abuse_handled(*state, &abuse, 1);
}

static void say_too_much(struct hf_raw_peer *peer, uint32_t id)
{
	static const char piece[16384];

	hf_raw_frame(peer, HF_RAW_HEADERS, HF_RAW_END_HEADERS, id, "\x88", 1);
	for (int i = 0; i < 64; i++)
		hf_raw_frame(peer, HF_RAW_DATA, 0, id, piece, sizeof(piece));
}

static void a_server_that_heeds_no_window_is_cut_off_and_others_go_on(void **state)
{
	static const struct abuse abuse = {.say = say_too_much};
	struct bench *bench = *state;
	struct hf_transfer *transfer;

	bench->abuse = &abuse;
	transfer = hf_requester_send(&bench->requester, (struct hf_http_request){.stream = true});
	hf_transfer_pause(transfer);
	while (bench->server.peers == NULL || bench->server.peers->heads == 0 ||
	       (bench->server.peers->fd >= 0 && bench->server.peers->resets == 0))
		hf_test_loop_run(&bench->requester.t);
	hf_transfer_resume(transfer);
	const struct hf_requester_note *note = hf_requester_wait(&bench->requester);
	assert_int_equal(note->code, HF_E_UNAVAILABLE);
	assert_says(note, "breaks the rules of HTTP/2: FLOW_CONTROL_ERROR");
	/* The limit is the window and one frame: the client notices the excess when the frame has
	 * come. */
	assert_true(bench->requester.data_len <= HF_TRANSFER_WINDOW_BYTES + 16384);
	fetch_well(bench);
}

/* --- servers that allow no progress --- */

static void grant_no_stream(struct hf_raw_peer *peer)
{
	send_setting(peer, 3, 0);
}

/* The client sends the first request of a connection before it reads the SETTINGS. So this request
 * succeeds although the server allows no stream. */
static void without_granted_streams_requests_time_out_and_nothing_piles_up(void **state)
{
	struct bench *bench = *state;

	bench->server.on_open = grant_no_stream;
	for (unsigned i = 1; i <= 3; i++) {
		fetch_well(bench);
		const struct hf_link *link = bench->requester.client->pool->link;
		const struct hf_requester_note *note = hf_requester_fetch(
			&bench->requester, (struct hf_http_request){.timeout = SHORT});
		assert_int_equal(note->code, HF_E_UNAVAILABLE);
		assert_says(note, "the server allows no more requests on its connection");
		assert_true(bench->requester.client->pool->link != link);
		assert_int_equal(bench->server.accepted, i);
	}
	fetch_well(bench);
	hf_requester_send(&bench->requester, (struct hf_http_request){0});
	send_setting(bench->server.peers, 3, 1);
	assert_int_equal(hf_requester_wait(&bench->requester)->status, 200);
	assert_int_equal(bench->server.accepted, 4);
}

SAYS(say_head, HEAD(HF_RAW_END_HEADERS, ":status", "200"))

static void grant_one_stream(struct hf_raw_peer *peer)
{
	send_setting(peer, 3, 1);
}

static void streams_past_what_a_connection_takes_get_another_one(void **state)
{
	static const struct abuse abuse = {.say = say_head};
	struct bench *bench = *state;

	bench->server.on_open = grant_one_stream;
	bench->abuse = &abuse;
	for (size_t i = 1; i <= 3; i++) {
		hf_requester_send(&bench->requester, (struct hf_http_request){.stream = true});
		while (bench->requester.heads < i)
			hf_test_loop_run(&bench->requester.t);
		assert_int_equal(bench->server.accepted, i);
	}
	/* Requests share the connection and wait for a free stream. */
	bench->abuse = NULL;
	bench->requester.wanted = 0;
	for (int i = 0; i < 10; i++)
		hf_requester_send(&bench->requester, (struct hf_http_request){0});
	hf_requester_wait(&bench->requester);
	assert_int_equal(bench->server.accepted, 4);
}

static void waiting_requests_move_to_a_new_connection_after_goaway(void **state)
{
	static const struct abuse abuse = {.say = say_head};
	struct bench *bench = *state;

	bench->server.on_open = grant_one_stream;
	fetch_well(bench);
	bench->abuse = &abuse;
	struct hf_raw_peer *peer = bench->server.peers;
	struct hf_transfer *first =
		hf_requester_send(&bench->requester, (struct hf_http_request){0});
	while (peer->heads < 2)
		hf_test_loop_run(&bench->requester.t);
	/* nghttp2 has this request and lets it wait, because the only stream is in use. */
	hf_requester_send(&bench->requester, (struct hf_http_request){0});
	bench->abuse = NULL;
	say_goaway(peer, bench->last_id, 0, "");
	while (bench->requester.done < 2)
		hf_test_loop_run(&bench->requester.t);
	assert_int_equal(bench->requester.notes[1].status, 200);
	assert_int_equal(bench->server.accepted, 2);
	hf_transfer_cancel(first);
}

static void open_a_tiny_window(struct hf_raw_peer *peer)
{
	send_setting(peer, 4, 1);
}

static void a_window_that_never_opens_costs_a_large_request_its_time_alone(void **state)
{
	struct bench *bench = *state;
	char *body = hf_xcalloc(1, 300000);

	bench->server.on_open = open_a_tiny_window;
	bench->abuse = &(const struct abuse){.say = say_head};
	/* During this request the client receives the SETTINGS with the tiny window. */
	(void)hf_requester_fetch(&bench->requester, (struct hf_http_request){.timeout = SHORT});
	hf_requester_send(&bench->requester, (struct hf_http_request){.method = "POST",
								      .body = body,
								      .body_len = 300000,
								      .timeout = SHORT});
	free(body);
	const struct hf_requester_note *note = hf_requester_wait(&bench->requester);
	assert_int_equal(note->code, HF_E_TIMEOUT);
	assert_says(note, "the server took 1 of the request's 300000 bytes");
	assert_int_equal(bench->server.peers->data_bytes, 1);
	fetch_well(bench);
	assert_int_equal(bench->server.accepted, 1);
}

SAYS(half_a_head, FRAME(HF_RAW_HEADERS, 0, id, -0x78))

static void an_endless_head_times_out_the_requests_of_its_connection(void **state)
{
	static const struct abuse abuse = {.say = half_a_head};
	struct bench *bench = *state;

	bench->abuse = &abuse;
	const struct hf_requester_note *note =
		hf_requester_fetch(&bench->requester, (struct hf_http_request){.timeout = SHORT});
	assert_int_equal(note->code, HF_E_TIMEOUT);
	assert_says(note, "no response in time");
}

static void used_up_stream_ids_make_a_new_connection(void **state)
{
	struct bench *bench = *state;

	fetch_well(bench);
	assert_int_equal(nghttp2_session_set_next_stream_id(
				 bench->requester.client->pool->link->session, 0x7fffffff),
			 0);
	fetch_well(bench);
	assert_int_equal(bench->server.accepted, 1);
	fetch_well(bench);
	assert_int_equal(bench->server.accepted, 2);
}

/* --- TLS --- */

static void a_server_without_a_handshake_is_named(void **state)
{
	struct bench *bench = *state;

	bench->server.silent = true;
	hf_http_client_destroy(bench->requester.client);
	start_with(bench, (struct hf_http_client_spec){.connect_timeout = 50 * HF_MS});
	const struct hf_requester_note *note =
		hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	assert_int_equal(note->code, HF_E_UNAVAILABLE);
	assert_says(note, "no TLS handshake with 127.0.0.1:");
}

SAYS(new_keys, assert_int_equal(gnutls_session_key_update(peer->tls, GNUTLS_KU_PEER), 0);
     hf_raw_answer(peer, id);)

static void keys_may_be_replaced_under_way(void **state)
{
	static const struct abuse abuse = {.say = new_keys};
	struct bench *bench = *state;

	for (int i = 0; i < 5; i++) {
		bench->abuse = &abuse;
		assert_int_equal(
			hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			200);
		fetch_well(bench);
	}
	assert_int_equal(bench->server.accepted, 1);
}

static void serve_with(struct bench *bench, const struct hf_certificate *signer,
		       struct hf_certificate_spec spec)
{
	struct hf_certificate pair;
	struct hf_error err = {0};

	for (struct hf_raw_peer *peer = bench->server.peers; peer; peer = peer->next)
		hf_raw_close(peer);
	assert_ok(hf_certificate_make_server(signer, &spec, &pair, &err), &err);
	hf_raw_set_pair(&bench->server, pair.cert_pem, pair.key_pem);
	hf_certificate_release(&pair);
}

static void a_certificate_that_is_no_good_any_more_is_refused_at_the_next_connection(void **state)
{
	static const char *const here[] = {"127.0.0.1", NULL}, *const there[] = {"10.0.0.1", NULL};
	struct bench *bench = *state;
	struct hf_certificate other;
	struct hf_error err = {0};
	const struct hf_certificate_spec
		good = {.names = here, .now = now, .valid_for = HF_DAY},
		of_another = {.names = there, .now = now, .valid_for = HF_DAY},
		expired = {.names = here, .now = now - 30 * HF_DAY, .valid_for = HF_DAY},
		another = {.common_name = "another CA", .now = now, .valid_for = HF_DAY};

	assert_ok(hf_certificate_make_ca(&another, &other, &err), &err);
	const struct {
		const struct hf_certificate *signer;
		const struct hf_certificate_spec *spec;
		const char *text;
	} cases[] = {
		{&ca, &expired, "expired"},
		{&ca, &of_another, "127.0.0.1"},
		{&other, &good, "certificate"},
	};
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		serve_with(bench, &ca, good);
		hf_http_client_destroy(bench->requester.client);
		start_with(bench, (struct hf_http_client_spec){0});
		fetch_well(bench);
		serve_with(bench, cases[i].signer, *cases[i].spec);
		do { /* the end of the connection may arrive together with the request */
			hf_requester_send(&bench->requester, (struct hf_http_request){0});
			hf_requester_wait(&bench->requester);
		} while (!bench->requester
				  .notes[(bench->requester.done - 1) % HF_REQUESTER_NOTES_MAX]
				  .permanent);
		assert_says(&bench->requester
				     .notes[(bench->requester.done - 1) % HF_REQUESTER_NOTES_MAX],
			    cases[i].text);
	}
	hf_certificate_release(&other);
}

/* --- floods: everything has arrived before the first read --- */

#define MUCH ((size_t)4 << 20)

static void make_room(int fd)
{
	const int room = 4 * (int)MUCH;

	/* A buffer above the system's limit needs root. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) != 0)
		skip();
}

static int bytes_left(int fd)
{
	int len = 0;

	assert_int_equal(ioctl(fd, FIONREAD, &len), 0);
	return len;
}

static void complete_handshake(struct hf_link_tls *tls, const int fds[2], gnutls_session_t server)
{
	enum hf_link_tls_end end = HF_LINK_TLS_MORE;
	int rc = GNUTLS_E_AGAIN;

	while (end == HF_LINK_TLS_MORE || rc == GNUTLS_E_AGAIN) {
		HF_AUTO_STRBUF out = HF_STRBUF_INIT(65536);

		if (end == HF_LINK_TLS_MORE)
			end = hf_link_tls_handshake(tls, fds[0], &out);
		assert_int_equal(send(fds[0], out.data, out.len, 0), out.len);
		if (rc == GNUTLS_E_AGAIN)
			rc = gnutls_handshake(server);
	}
	assert_int_equal(end, HF_LINK_TLS_OPEN);
	assert_int_equal(rc, 0);
}

static void records_without_data_do_not_starve_the_loop(void **state)
{
	struct bench *bench = *state;
	struct hf_link_tls *tls = hf_link_tls_create(bench->requester.client);
	struct hf_error err = {0};
	gnutls_datum_t key;
	char bytes[16384];
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	make_room(fds[1]);
	gnutls_session_t server =
		hf_test_session(bench->server.credentials, fds[1], "h2", GNUTLS_NONBLOCK);
	assert_int_equal(gnutls_session_ticket_key_generate(&key), 0);
	assert_int_equal(gnutls_session_ticket_enable_server(server, &key), 0);
	complete_handshake(tls, fds, server);
	assert_int_equal(hf_link_tls_read(tls, bytes, sizeof(bytes), &err), 0);
	while (bytes_left(fds[0]) < (int)MUCH / 4)
		assert_int_equal(gnutls_session_ticket_send(server, 1, 0), 0);
	assert_int_equal(hf_link_tls_read(tls, bytes, sizeof(bytes), &err), 0);
	assert_true(bytes_left(fds[0]) > 0);
	while (bytes_left(fds[0]) > 0)
		assert_int_equal(hf_link_tls_read(tls, bytes, sizeof(bytes), &err), 0);
	hf_link_tls_destroy(tls);
	gnutls_deinit(server);
	gnutls_free(key.data);
	close(fds[0]);
	close(fds[1]);
}

struct flood {
	struct hf_loop *loop;
	struct hf_io *io;
	struct hf_timer *timer;
	const struct hf_http_client *client;
	int listener, fd, left;
};

static void on_flood_wanted(void *arg, unsigned events)
{
	struct flood *flood = arg;
	HF_AUTO_STRBUF frames = HF_STRBUF_INIT(2 * MUCH);
	char head[HF_RAW_HEAD], body[16384] = {0};

	flood->fd = accept4(flood->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(flood->fd >= 0);
	make_room(flood->fd);
	hf_strbuf_add(&frames, "\0\0\0\4\0\0\0\0\0", HF_RAW_HEAD);
	hf_strbuf_add(&frames, "\0\0\1\1\4\0\0\0\1\x88", HF_RAW_HEAD + 1);
	hf_strbuf_add(&frames, "\0\0\1\0\0\0\0\0\1x", HF_RAW_HEAD + 1);
	hf_raw_frame_head(head, 0xfa, 0, 0, sizeof(body));
	while (frames.len < MUCH) {
		hf_strbuf_add(&frames, head, sizeof(head));
		hf_strbuf_add(&frames, body, sizeof(body));
	}
	assert_int_equal(send(flood->fd, frames.data, frames.len, 0), frames.len);
	hf_io_want(flood->io, 0);
}

static void on_flood_timer(void *arg)
{
	struct flood *flood = arg;

	flood->left = bytes_left(flood->client->streamed->links->fd);
	hf_loop_stop(flood->loop);
}

static void on_flood_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	hf_timer_arm(((struct flood *)arg)->timer, 0);
}

static void timers_that_are_due_come_before_the_rest_of_a_flood(void **state)
{
	struct bench *bench = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct hf_error err = {0};
	struct flood flood = {.loop = bench->requester.t.loop, .fd = -1};
	const struct hf_http_client_spec spec = {
		.base_url = "http://localhost", .unix_path = address.sun_path, .http2_plain = true};
	const struct hf_http_request request = {.method = "GET",
						.target = "/",
						.stream = true,
						.on_data = on_flood_data,
						.on_done = hf_requester_on_done,
						.arg = &flood};

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/holdfast-flood-%d",
		 (int)getpid());
	flood.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	make_room(flood.listener);
	assert_int_equal(bind(flood.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(flood.listener, 1), 0);
	assert_ok(
		hf_io_create(flood.loop, flood.listener, on_flood_wanted, &flood, &flood.io, &err),
		&err);
	hf_io_want(flood.io, HF_IO_READ);
	flood.timer = hf_timer_create(flood.loop, on_flood_timer, &flood);
	hf_http_client_destroy(bench->requester.client);
	assert_ok(hf_http_client_create(flood.loop, &spec, &bench->requester.client, &err), &err);
	flood.client = bench->requester.client;
	assert_ok(hf_http_client_send(bench->requester.client, &request, NULL, &err), &err);
	hf_test_loop_run(&bench->requester.t);
	assert_true(flood.left > 0);
	hf_timer_destroy(flood.timer);
	hf_io_destroy(flood.io);
	close(flood.fd);
	close(flood.listener);
	assert_int_equal(unlink(address.sun_path), 0);
}

/* --- floods, sent by another process --- */

/* Sends frames of an unknown type, which HTTP/2 requires a client to ignore. */
static void flood_frames(int fd, gnutls_certificate_credentials_t credentials)
{
	gnutls_session_t tls = hf_test_session(credentials, fd, "h2", 0);
	static char frames[16384];

	for (size_t at = 0; at + HF_RAW_HEAD <= sizeof(frames); at += HF_RAW_HEAD)
		hf_raw_frame_head(frames + at, at == 0 ? HF_RAW_SETTINGS : 0xfa, 0, 0, 0);
	if (gnutls_handshake(tls) < 0)
		return;
	while (gnutls_record_send(tls, frames, sizeof(frames) / HF_RAW_HEAD * HF_RAW_HEAD) > 0)
		hf_raw_frame_head(frames, 0xfa, 0, 0, 0);
}

/* Sends TLS warnings before the handshake. */
static void flood_warnings(int fd, gnutls_certificate_credentials_t credentials)
{
	static const char warning[] = {21, 3, 3, 0, 2, 1, 90};
	static char warnings[sizeof(warning) * 30000];

	for (size_t at = 0; at < sizeof(warnings); at += sizeof(warning))
		memcpy(warnings + at, warning, sizeof(warning));
	while (send(fd, warnings, sizeof(warnings), 0) > 0)
		;
}

static void floods_leave_requests_their_time(void **state)
{
	static void (*const floods[])(int, gnutls_certificate_credentials_t) = {flood_warnings,
										flood_frames};
	struct bench *bench = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(floods); i++) {
		hf_http_client_destroy(bench->requester.client);
		start_with(bench, (struct hf_http_client_spec){0});
		bench->server.child = floods[i];
		assert_true(hf_requester_fetch(&bench->requester,
					       (struct hf_http_request){.timeout = SHORT})
				    ->code < 0);
		bench->server.child = NULL;
		hf_http_client_destroy(bench->requester.client);
		start_with(bench, (struct hf_http_client_spec){0});
		fetch_well(bench);
	}
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(malformed_responses_are_refused_with_the_broken_rule),
		UNIT(a_thousand_informational_heads_and_trailers_are_one_answer),
		UNIT(a_stream_without_a_status_brings_no_data),
		UNIT(each_reset_code_is_reported_by_name),
		UNIT(a_server_that_requires_http_1_1_gets_it_from_then_on),
		UNIT(a_broken_connection_is_reported_and_replaced),
		UNIT(a_head_past_its_limit_ends_its_request_alone),
		UNIT(a_head_that_unpacks_to_hundreds_of_megabytes_is_cut_at_its_limit),
		UNIT(a_server_that_heeds_no_window_is_cut_off_and_others_go_on),
		UNIT(without_granted_streams_requests_time_out_and_nothing_piles_up),
		UNIT(streams_past_what_a_connection_takes_get_another_one),
		UNIT(waiting_requests_move_to_a_new_connection_after_goaway),
		UNIT(a_window_that_never_opens_costs_a_large_request_its_time_alone),
		UNIT(an_endless_head_times_out_the_requests_of_its_connection),
		UNIT(used_up_stream_ids_make_a_new_connection),
		UNIT(a_server_without_a_handshake_is_named),
		UNIT(keys_may_be_replaced_under_way),
		UNIT(a_certificate_that_is_no_good_any_more_is_refused_at_the_next_connection),
		UNIT(records_without_data_do_not_starve_the_loop),
		UNIT(timers_that_are_due_come_before_the_rest_of_a_flood),
		UNIT(floods_leave_requests_their_time),
	};
	return cmocka_run_group_tests_name("link_abuse", tests, set_up_all, tear_down_all);
}
