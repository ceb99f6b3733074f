/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_LISTEN_H
#define HF_TESTS_LISTEN_H

/* A socket on 127.0.0.1 with a port of its own; the test closes it. */

#include "harness/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* Binds a socket to a free port without listening: connections to the port are refused, and no
 * other program can take it. */
static inline int hf_test_bind(uint16_t *ret_port)
{
	struct sockaddr_in address;
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static inline int hf_test_listen(uint16_t *ret_port)
{
	int fd = hf_test_bind(ret_port);

	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

#endif
