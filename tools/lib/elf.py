# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Finds what a 64-bit little-endian ELF file needs at run time, without running the file."""

import os
import struct

MACHINES = {62: ("amd64", "x86_64-linux-gnu"), 183: ("arm64", "aarch64-linux-gnu")}
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB = 1, 5


class Elf:
    """machine: Debian's name; triplet: of multiarch; interpreter: the loader, "" for a library;
    needed: names of libraries."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no 64-bit little-endian ELF file")
        (number,) = struct.unpack_from("<H", self.data, 18)
        if number not in MACHINES:
            raise ValueError(f"{path} is for machine {number}, which no image is made for")
        self.machine, self.triplet = MACHINES[number]
        self.interpreter, self.needed, self.loads = "", [], []
        self.read_segments()

    def read_segments(self):
        (start,) = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        dynamic = None
        for i in range(count):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", self.data, start + i * size)
            if kind == PT_LOAD:
                self.loads.append((address, offset, length))
            elif kind == PT_INTERP:
                self.interpreter = self.text(offset)
            elif kind == PT_DYNAMIC:
                dynamic = (offset, length)
        if dynamic:
            self.read_dynamic(*dynamic)

    def read_dynamic(self, offset, length):
        entries = list(struct.iter_unpack("<QQ", self.data[offset:offset + length - length % 16]))
        strings = next(self.file_offset(value) for tag, value in entries if tag == DT_STRTAB)
        self.needed = [self.text(strings + value) for tag, value in entries if tag == DT_NEEDED]

    def file_offset(self, address):
        for start, offset, length in self.loads:
            if start <= address < start + length:
                return address - start + offset
        raise ValueError("a table lies outside of the file")

    def text(self, offset):
        return self.data[offset:self.data.index(b"\0", offset)].decode()


def closure(programs):
    """Returns ({path as the loader finds it}, machine) of the loader and all libraries of these
    programs."""
    found, left = set(), [Elf(p) for p in programs]
    machine, triplet = left[0].machine, left[0].triplet
    loaders = {os.path.basename(e.interpreter) for e in left}
    folders = [f"/lib/{triplet}", f"/usr/lib/{triplet}"]
    while left:
        elf = left.pop()
        if elf.machine != machine:
            raise ValueError(f"programs for {machine} and {elf.machine} in one image")
        paths = [elf.interpreter] if elf.interpreter else []
        for name in elf.needed:
            if name in loaders:  # some libraries need the loader itself, which is there
                continue
            path = next((p for p in (os.path.join(d, name) for d in folders) if os.path.exists(p)), None)
            if path is None:
                raise ValueError(f"library {name} is not in {' or '.join(folders)}")
            paths.append(path)
        for path in paths:
            if not os.path.exists(path):
                raise ValueError(f"{path} is not there")
            if path not in found:
                found.add(path)
                left.append(Elf(path))
    return sorted(found), machine
