/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

/* The list of the open watches and logs of a server. hf_apiserver_streams_end ends them all. */

void hf_apiserver_stream_link(struct hf_apiserver *server, struct apiserver_stream *stream)
{
	stream->server = server;
	stream->next = server->streams;
	if (stream->next != NULL)
		stream->next->prev = stream;
	server->streams = stream;
}

void hf_apiserver_stream_unlink(struct apiserver_stream *stream)
{
	*(stream->prev != NULL ? &stream->prev->next : &stream->server->streams) = stream->next;
	if (stream->next != NULL)
		stream->next->prev = stream->prev;
	stream->prev = stream->next = NULL;
}

void hf_apiserver_streams_end(struct hf_apiserver *server)
{
	while (server->streams != NULL)
		server->streams->end(server->streams);
}
