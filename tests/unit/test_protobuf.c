/* SPDX-License-Identifier: GPL-2.0-only */
/* The wire format of Protocol Buffers; the bytes are those of the examples in its public description. */
#include <criterion/criterion.h>
#include <string.h>

#include "export/protobuf.h"

static struct protobuf message;

static void finish(void)
{
	protobuf_free(&message);
}

#define EXPECT_BYTES(...)                                                                                    \
	do {                                                                                                 \
		const unsigned char wanted[] = {__VA_ARGS__};                                                \
		cr_assert_eq(message.size, sizeof(wanted), "%zu bytes", message.size);                       \
		cr_assert_arr_eq(message.bytes, wanted, sizeof(wanted));                                     \
		protobuf_clear(&message);                                                                    \
	} while (0)

Test(protobuf, fields, .fini = finish)
{
	size_t mark;

	protobuf_number(&message, 1, 150);
	EXPECT_BYTES(0x08, 0x96, 0x01);
	protobuf_string(&message, 2, "testing");
	EXPECT_BYTES(0x12, 0x07, 't', 'e', 's', 't', 'i', 'n', 'g');
	mark = protobuf_begin(&message, 3);
	protobuf_number(&message, 1, 150);
	protobuf_end(&message, mark);
	EXPECT_BYTES(0x1a, 0x03, 0x08, 0x96, 0x01);
	mark = protobuf_begin(&message, 6);
	protobuf_packed(&message, 3);
	protobuf_packed(&message, 270);
	protobuf_packed(&message, 86942);
	protobuf_end(&message, mark);
	EXPECT_BYTES(0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05);
}

Test(protobuf, numbers_of_every_size, .fini = finish)
{
	protobuf_number(&message, 1, 0);
	EXPECT_BYTES(0x08, 0x00);
	protobuf_number(&message, 1, 127);
	EXPECT_BYTES(0x08, 0x7f);
	protobuf_number(&message, 1, (uint64_t)-2);
	EXPECT_BYTES(0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
	protobuf_fixed64(&message, 47, 0x0102030405060708);
	EXPECT_BYTES(0xf9, 0x02, 8, 7, 6, 5, 4, 3, 2, 1);
	protobuf_number(&message, 60, 1);
	EXPECT_BYTES(0xe0, 0x03, 0x01);
	protobuf_bytes(&message, 1, "", 0);
	EXPECT_BYTES(0x0a, 0x00);
}

/* The length of a message takes more bytes than were kept for it, also where messages lie in each other. */
Test(protobuf, long_messages, .fini = finish)
{
	static char text[20000];
	size_t outer, inner;

	memset(text, 'x', sizeof(text));
	outer = protobuf_begin(&message, 1);
	inner = protobuf_begin(&message, 2);
	protobuf_bytes(&message, 3, text, sizeof(text));
	protobuf_end(&message, inner);
	protobuf_number(&message, 4, 1);
	protobuf_end(&message, outer);
	/* 20000 = 0x4e20; with its head 20004, with that one's 20008 and the number 20010. */
	cr_assert_eq(message.size, 20000 + 4 + 4 + 2 + 4);
	cr_assert_arr_eq(message.bytes, "\x0a\xaa\x9c\x01\x12\xa4\x9c\x01\x1a\xa0\x9c\x01", 12);
	cr_assert_arr_eq(message.bytes + 12, text, sizeof(text));
	cr_assert_arr_eq(message.bytes + 12 + sizeof(text), "\x20\x01", 2);
}
