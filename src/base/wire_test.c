/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/wire.h"
#include "harness/test.h"

static struct hf_wire make_message(const char *bytes, size_t len)
{
	return (struct hf_wire){(const unsigned char *)bytes, (const unsigned char *)bytes + len};
}
#define MESSAGE(bytes) make_message("" bytes, sizeof(bytes) - 1)

static void fields_come_one_by_one(void **state)
{
	struct hf_wire in = MESSAGE("\x08\x96\x01\x12\x02hi\x19\1\2\3\4\5\6\7\x08\x25\1\2\3\4");
	struct hf_wire_field f;

	(void)state;
	assert_int_equal(hf_wire_next(&in, &f), HF_WIRE_OK);
	assert_int_equal(f.number, 1);
	assert_int_equal(f.type, HF_WIRE_VARINT);
	assert_int_equal(f.value, 150);
	assert_int_equal(hf_wire_next(&in, &f), HF_WIRE_OK);
	assert_int_equal(f.number, 2);
	assert_int_equal(f.type, HF_WIRE_BYTES);
	assert_memory_equal(f.bytes.at, "hi", 2);
	assert_int_equal(f.bytes.end - f.bytes.at, 2);
	assert_int_equal(hf_wire_next(&in, &f), HF_WIRE_OK);
	assert_int_equal(f.type, HF_WIRE_FIXED64);
	assert_int_equal(hf_wire_next(&in, &f), HF_WIRE_OK);
	assert_int_equal(f.type, HF_WIRE_FIXED32);
	assert_ptr_equal(in.at, in.end);
}

static void each_reason_for_no_field_has_its_own_result(void **state)
{
	const struct {
		struct hf_wire in;
		enum hf_wire_found found;
	} cases[] = {
		{MESSAGE("\x80"), HF_WIRE_NO_FIELD},
		{MESSAGE("\x00\x01"), HF_WIRE_NO_FIELD},             /* field number 0 */
		{MESSAGE("\x80\x80\x80\x80\x10"), HF_WIRE_NO_FIELD}, /* field number 2^29 */
		{MESSAGE("\x0b"), HF_WIRE_NO_TYPE},                  /* a group */
		{MESSAGE("\x0e"), HF_WIRE_NO_TYPE},
		{MESSAGE("\x08"), HF_WIRE_CUT_OFF},
		{MESSAGE("\x0a\x05hi"), HF_WIRE_CUT_OFF},
		{MESSAGE("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), HF_WIRE_CUT_OFF},
		{MESSAGE("\x09\1\2\3"), HF_WIRE_CUT_OFF},
		{MESSAGE("\x0d\1\2\3"), HF_WIRE_CUT_OFF},
	};
	struct hf_wire_field f;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_wire in = cases[i].in;

		if (hf_wire_next(&in, &f) != cases[i].found)
			fail_msg("case %zu", i);
		assert_true(in.at <= in.end);
	}
}

static void a_number_has_64_bits_at_most(void **state)
{
	struct hf_wire all = MESSAGE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	struct hf_wire more = MESSAGE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
	uint64_t value = 0;

	(void)state;
	assert_true(hf_wire_varint(&all, &value));
	assert_true(value == UINT64_MAX);
	assert_false(hf_wire_varint(&more, &value));
}

static void what_is_written_can_be_read(void **state)
{
	HF_AUTO_STRBUF inner = HF_STRBUF_INIT(64);
	HF_AUTO_STRBUF message = HF_STRBUF_INIT(256);

	(void)state;
	hf_wire_add_number(&inner, 1, 300);
	hf_wire_add_text(&message, 1, "hi");
	hf_wire_add_text(&message, 2, "");
	hf_wire_add_number(&message, 3, 0);
	hf_wire_add_message(&message, 16, &inner);
	assert_int_equal(message.len, 10);
	assert_memory_equal(message.data, "\x0a\x02hi\x82\x01\x03\x08\xac\x02", 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_come_one_by_one),
		cmocka_unit_test(each_reason_for_no_field_has_its_own_result),
		cmocka_unit_test(a_number_has_64_bits_at_most),
		cmocka_unit_test(what_is_written_can_be_read),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
