# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A double of logind: a peer that speaks D-Bus on a socket of the test's own. It answers Reboot and PreparingForShutdown."""

import socket
import struct
import threading

METHOD_RETURN, ERROR = 2, 3


def align(data, n):
    return data + b"\0" * (-len(data) % n)


def string(text):
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def fields(items):
    """The array of header fields: (code, signature, value)."""
    out = b""
    for code, kind, value in items:
        out = align(out, 8) + bytes([code, 1]) + kind.encode() + b"\0"
        if kind == "u":
            out = align(out, 4) + struct.pack("<I", value)
        elif kind == "g":
            out += bytes([len(value)]) + value.encode() + b"\0"
        else:
            out = align(out, 4) + string(value)
    return out


def message(kind, serial, reply_to, body=b"", signature="", error=None):
    items = [(5, "u", reply_to), (6, "s", ":1.1"), (7, "s", "org.freedesktop.login1")]
    if error:
        items.append((4, "s", error))
    if signature:
        items.append((8, "g", signature))
    array = fields(items)
    head = b"l" + bytes([kind, 1, 1]) + struct.pack("<III", len(body), serial, len(array)) + array
    return align(head, 8) + body


def parse_fields(raw):
    """Member name of a call, by the header field 3."""
    at = 0
    while at < len(raw):
        at += -at % 8
        code, kind_len = raw[at], raw[at + 1]
        kind = raw[at + 2:at + 2 + kind_len].decode()
        at += 3 + kind_len
        if kind == "g":
            at += 2 + raw[at]
            continue
        at += -at % 4
        (length,) = struct.unpack_from("<I", raw, at)
        if kind == "u":
            at += 4
            continue
        if code == 3:
            return raw[at + 4:at + 4 + length].decode()
        at += 5 + length
    return ""


class Logind:
    """on_reboot is called for each Reboot; it returns True if the reply is to be an error."""

    def __init__(self, path, on_reboot):
        self.on_reboot, self.shutting_down = on_reboot, False
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            peer = self.server.accept()[0]
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def sign_in(self, peer):
        buffer = b""
        while True:
            while b"\r\n" in buffer:
                line, buffer = buffer.split(b"\r\n", 1)
                line = line.lstrip(b"\0")
                if line == b"BEGIN":
                    return buffer
                if line == b"AUTH EXTERNAL":
                    peer.sendall(b"DATA\r\n")
                elif line.startswith(b"AUTH") or line.startswith(b"DATA"):
                    peer.sendall(b"OK 0123456789abcdef0123456789abcdef\r\n")
                elif line == b"NEGOTIATE_UNIX_FD":
                    peer.sendall(b"AGREE_UNIX_FD\r\n")
            more = peer.recv(4096)
            if not more:
                raise EOFError
            buffer += more

    def serve(self, peer):
        try:
            buffer, serial = self.sign_in(peer), 0
            while True:
                while len(buffer) >= 16:
                    body_len, call, array_len = struct.unpack_from("<III", buffer, 4)
                    size = 16 + array_len + -(16 + array_len) % 8 + body_len
                    if len(buffer) < size:
                        break
                    member = parse_fields(buffer[16:16 + array_len])
                    body = buffer[size - body_len:size]
                    buffer, serial = buffer[size:], serial + 1
                    peer.sendall(self.answer(member, body, serial, call))
                more = peer.recv(4096)
                if not more:
                    return
                buffer += more
        except (EOFError, OSError):
            pass

    def answer(self, member, body, serial, call):
        if member == "Hello":
            return message(METHOD_RETURN, serial, call, string(":1.1"), "s")
        if member == "Get":
            value = b"\x01b\0" + b"\0" + struct.pack("<I", int(self.shutting_down))
            return message(METHOD_RETURN, serial, call, value, "v")
        if member == "Reboot" and body == struct.pack("<I", 0):
            if not self.on_reboot():
                return message(METHOD_RETURN, serial, call)
        return message(ERROR, serial, call, string("refused by the double"), "s",
                       "org.freedesktop.DBus.Error.AccessDenied")
