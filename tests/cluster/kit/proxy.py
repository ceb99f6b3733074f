#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A slow network: passes TCP on to a port of loopback, each byte late.

proxy.py LISTEN TO DELAY_MS [BYTES_PER_S]     in-order, both ways; a line "cut" on standard input
breaks every connection, "hold" lets nothing through until "flow".
"""

import asyncio
import subprocess
import sys


class Proxy:
    """One as a process; port is where it listens."""

    def __init__(self, to, delay_ms, rate=0):
        self.child = subprocess.Popen(
            [sys.executable, __file__, "0", str(to), str(delay_ms), str(rate)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.child.stdout.readline())

    def say(self, word):
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()


class Server:
    def __init__(self, to, delay_s, rate):
        self.to, self.delay_s, self.rate = to, delay_s, rate
        self.writers = set()
        self.flows = asyncio.Event()
        self.flows.set()

    async def pump(self, reader, writer):
        """Reads at once and stamps what came, so that the delay adds up over no chunk."""
        loop = asyncio.get_running_loop()
        queue = asyncio.Queue(maxsize=256)

        async def late():
            free = 0.0
            while True:
                at, data = await queue.get()
                due = max(at + self.delay_s, free)
                if self.rate:
                    free = due + len(data) / self.rate
                await asyncio.sleep(max(0, due - loop.time()))
                await self.flows.wait()
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        sender = asyncio.create_task(late())
        try:
            while data := await reader.read(65536):
                await queue.put((loop.time(), data))
            await queue.put((loop.time(), b""))
            await sender
        except (OSError, asyncio.CancelledError):
            sender.cancel()
        finally:
            writer.close()

    async def accept(self, reader, writer):
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        both = {writer, up_writer}
        self.writers |= both
        await asyncio.gather(self.pump(reader, up_writer), self.pump(up_reader, writer),
                             return_exceptions=True)
        self.writers -= both

    def command(self, word):
        if word == "cut":
            for w in list(self.writers):
                w.transport.abort()
        elif word == "hold":
            self.flows.clear()
        elif word == "flow":
            self.flows.set()


async def main(listen, to, delay_ms, rate):
    proxy = Server(to, delay_ms / 1000, rate)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", listen)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()

    def heard():
        line = sys.stdin.readline()
        if line:
            proxy.command(line.strip())
        else:
            loop.remove_reader(sys.stdin)

    loop.add_reader(sys.stdin, heard)
    await server.serve_forever()


if __name__ == "__main__":
    arguments = [int(a) for a in sys.argv[1:]] + [0] * (5 - len(sys.argv))
    try:
        asyncio.run(main(*arguments[:4]))
    except KeyboardInterrupt:
        pass
