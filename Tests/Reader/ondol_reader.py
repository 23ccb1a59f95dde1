#!/usr/bin/env python3
"""Reads a database and prints everything in it, a line of JSON for each item.

    ondol_reader.py DIRECTORY [KEYFILE]

Written from Docs/FileFormat.md alone, to show that the page is enough: its order is the page's. It
verifies every checksum, changes nothing, and exits with 1 and a sentence if anything is damaged.
Needs only Python. KEYFILE has the 32 bytes of an encrypted database's key. Tests/Golden/README.md
describes its output.
"""

import base64
import hashlib
import pathlib
import struct
import sys
from datetime import date, timedelta

import ondol_sealing as sealing


class Damage(Exception):
    """Bytes that contradict the format."""


def require(condition, what):
    if not condition:
        raise Damage(what)


# Checksums


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()
MASK = (1 << 64) - 1


def crc(data, start=0):
    state = start ^ 0xFFFFFFFF
    for byte in data:
        state = CRC_TABLE[(state ^ byte) & 0xFF] ^ state >> 8
    return state ^ 0xFFFFFFFF


def seeded(seed, data):
    return crc(data, crc(struct.pack("<Q", seed & MASK)))


def placed(salt, offset, data):
    """X(offset, data): the checksum of bytes at a place of a file."""
    return seeded(salt + offset * 0x9E3779B97F4A7C15, data)


class Bytes:
    """Takes numbers and texts from the front of some bytes."""

    def __init__(self, data, what):
        self.data, self.place, self.what = data, 0, what

    @property
    def is_at_end(self):
        return self.place == len(self.data)

    def take(self, count):
        require(0 <= count <= len(self.data) - self.place, f"{self.what}: it ends too early")
        self.place += count
        return self.data[self.place - count : self.place]

    def number(self, size, signed=False):
        return int.from_bytes(self.take(size), "little", signed=signed)

    def high(self, size):
        """A number with its high byte first."""
        return int.from_bytes(self.take(size), "big")

    def double(self):
        return struct.unpack("<d", self.take(8))[0]

    def varint(self):
        value, shift = 0, 0
        while True:
            byte = self.number(1)
            require(shift < 63 or byte <= 1, f"{self.what}: a varint is too long")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                require(byte > 0 or shift == 0, f"{self.what}: a varint is not in its shortest form")
                return value
            shift += 7

    def counted(self):
        return self.take(self.varint())

    def text(self):
        return decoded(self.counted(), self.what)

    def texts(self):
        return [self.text() for _ in range(self.varint())]

    def rest(self):
        return self.take(len(self.data) - self.place)

    def end(self):
        require(self.is_at_end, f"{self.what}: something is behind its end")


def decoded(data, what):
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Damage(f"{what}: a text is not UTF-8") from None


def magic(letters):
    return b"\x89" + letters + b"\r\n\x1a\n"


# Directory


class Directory:
    def __init__(self, path, secret=None):
        self.path, self.secret = pathlib.Path(path), secret
        self.packs = {}
        # The seals of files from a number on; nothing for plain files.
        self.eras = [(0, None)]
        # The same for each keyed group whose key is available.
        self.groups = {}

    def seal(self, kind, number, salt, group=0):
        """The key of a file, or of a group's part of one; None for a plain file."""
        eras = self.groups[group] if group else self.eras
        keys = [keys for first, keys in eras if first <= number][-1]
        return keys and keys.file(kind, number, salt)

    def read_group_keys(self, identity):
        """The keys of keyed groups, from the newer of the two copies that are sound."""
        path = self.path / "KEYS"
        best = None
        for offset in (0, 32768) if path.exists() else ():
            copy = path.read_bytes()[offset : offset + 20480]
            if len(copy) < 20480 or copy[:8] != magic(b"KEY"):
                continue
            if struct.unpack_from("<Q", copy, 20472)[0] != seeded(0x4F4E444F4C4B4559, copy[:20472]):
                continue
            if best is None or struct.unpack_from("<Q", copy, 16) > struct.unpack_from("<Q", best, 16):
                best = copy
        if best is None:
            return
        version, count = struct.unpack_from("<II", best, 8)
        require(version in (1, 2) and count <= 32, "KEYS: a newer version wrote it")
        require(best[24:40] == identity, "KEYS: it is of another database")
        for place in range(64, 64 + count * 512, 512):
            group, eras = struct.unpack_from("<II", best, place)
            require(1 <= eras <= 6 and group >> 19 == 1, "KEYS: a key that there cannot be")
            self.groups[group] = []
            for start in range(place + 68, place + 68 + eras * 68, 68):
                first = struct.unpack_from("<Q", best, start)[0]
                wrapped = best[start + 8 : start + 68]
                self.groups[group].append((first, self.group_key(wrapped, group, first)))

    def group_key(self, wrapped, group, first):
        """A group's key, sealed with the newest of the database's keys or the one before it."""
        for _, keys in reversed(self.eras):
            try:
                if keys:
                    return keys.group(wrapped, group, first)
            except sealing.Forged:
                continue
        raise Damage("KEYS: a key was sealed with another key")

    def read(self, name):
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            raise Damage(f"{name} is missing") from None

    def logs(self):
        """The numbers of all logs, in order."""
        names = [path.name[4:] for path in self.path.glob("LOG-*")]
        return sorted(int(name) for name in names if name.isdecimal() and str(int(name)) == name)


# SUPER


class Superblock:
    def __init__(self, directory):
        data = directory.read("SUPER")
        best = None
        for slot, offset in enumerate((0, 4096, 65536, 69632)):
            block = data[offset : offset + 4096]
            seed = 0x4F4E444F4C534221 ^ slot
            if len(block) < 4096 or block[:8] != magic(b"ODL"):
                continue
            if struct.unpack_from("<Q", block, 4088)[0] != seeded(seed, block[:4088]):
                continue
            epoch = struct.unpack_from("<Q", block, 56)[0]
            if best is None or epoch > best[0]:
                best = (epoch, block)
        require(best, "SUPER: no slot is sound")
        fields = Bytes(best[1], "SUPER")
        fields.take(8)
        self.major, self.minor = fields.number(2), fields.number(2)
        require(fields.number(4) == 4096, "SUPER: a slot has another size")
        needed = fields.number(8)
        require(
            self.major == 1 and needed in (0, 1, 3), "SUPER: a newer version wrote the database")
        fields.take(16)
        self.identity = fields.take(16)
        fields.take(16)
        self.manifest = fields.number(8)
        self.shards = fields.number(4)
        require(1 <= self.shards <= 1024, "SUPER: the number of shards cannot be")
        require(
            (needed > 0) == (directory.secret is not None),
            "SUPER: a key is given for what is in the clear, or none for what is encrypted")
        if needed:
            try:
                keys = sealing.Keys.kept(directory.secret, best[1][128:1088], self.identity)
                proof = keys.proof(best[1][:1152])
                require(proof == best[1][1152:1184], "SUPER: it was written without the key")
                directory.eras = self.eras(best[1], keys) if needed == 3 else [(0, keys)]
            except sealing.Forged:
                raise Damage("SUPER: the key is another one") from None
            directory.read_group_keys(self.identity)

    @staticmethod
    def eras(block, keys):
        """The seals of files during a change of keys: before a number, and from it on."""
        border, flags = struct.unpack_from("<QI", block, 104)
        require(flags in (1, 2, 3), "SUPER: a change of keys is none")
        older = keys.older(block[1088:1148]) if flags == 3 else keys
        return [(0, older if flags & 1 else None), (border, keys if flags & 2 else None)]


# Frames

COMMIT, PART, LAST_PART, SEAL, EDIT, MARK = 1, 2, 3, 5, 6, 7


class Frame:
    """A frame of a log or a manifest; `is_sound` is false for bytes that are not a frame."""

    HEADER = 56
    LIMIT = 4 << 20

    def __init__(self, data, offset, salt, seal=None):
        self.is_sound = self.has_sound_header = False
        header = data[offset : offset + self.HEADER]
        if len(header) < self.HEADER:
            return
        if struct.unpack_from("<Q", header, 48)[0] != placed(salt, offset, header[:48]):
            return
        fields = Bytes(header, "a frame")
        length, self.kind, flags, version = (fields.number(size) for size in (4, 1, 1, 2))
        self.sequence, self.time = fields.number(8), fields.number(8, signed=True)
        self.operations, raw_length = fields.number(4), fields.number(4)
        self.synced_through = fields.number(8)
        checksum = fields.number(4)
        if length > self.LIMIT or version != 1 or raw_length != length:
            return
        if flags != (1 if seal and self.kind != MARK else 0):
            return
        self.has_sound_header = True
        self.payload = data[offset + self.HEADER : offset + self.HEADER + length]
        self.end = offset + self.HEADER + (length + 7) // 8 * 8
        self.is_sound = len(self.payload) == length and crc(self.payload) == checksum
        if self.is_sound and flags:
            try:
                self.payload = seal.frame(header, offset, self.payload)
            except sealing.Forged:
                raise Damage(f"the frame at {offset} was written without the key") from None


# LOG


class Log:
    """One log: its header and its sound prefix."""

    def __init__(self, directory, number, identity, named, before):
        """`named` is the log's entry in the manifest, `before` the end of the logs before it:
        number, length, base and sequence."""
        self.number, self.name = number, f"LOG-{number}"
        self.data, self.directory = directory.read(self.name), directory
        self.is_ahead = not any(self.data)
        if self.is_ahead:
            return
        header = next(filter(None, map(self.header, (0, 2048))), None)
        if header is None and named:
            self.salt, self.is_replacement = named[0], False
            self.previous, self.previous_length, self.base, sequence = before
            self.first_sequence = sequence + 1
            self.read_frames()
            first = self.frames[0] if self.frames else None
            follows = first and first.sequence == sequence + (first.kind != SEAL)
            require(follows, f"{self.name}: its header and its first commits are lost")
            return
        require(header, f"{self.name}: no copy of its header is sound")
        fields = Bytes(header, self.name)
        fields.take(8)
        require(fields.number(4) == 1, f"{self.name}: a newer version wrote it")
        self.is_replacement = fields.number(4) == 1
        require(fields.number(8) == number, f"{self.name}: this is another log")
        require(fields.take(16) == identity, f"{self.name}: it is of another database")
        self.salt, self.base = fields.number(8), fields.number(8)
        self.previous, self.previous_length = fields.number(8), fields.number(8)
        self.first_sequence = fields.number(8)
        self.read_frames()

    def header(self, offset):
        header = self.data[offset : offset + 256]
        seed = int.from_bytes(magic(b"LOG"), "little")
        if len(header) < 256 or header[:8] != magic(b"LOG"):
            return None
        sound = struct.unpack_from("<Q", header, 248)[0] == seeded(seed, header[:248])
        return header if sound else None

    def read_frames(self):
        self.seal = self.directory.seal(sealing.LOG, self.number, self.salt)
        self.frames, self.end = [], 4096
        while True:
            frame = Frame(self.data, self.end, self.salt, self.seal)
            if not frame.is_sound:
                return
            self.frames.append(frame)
            self.end = frame.end

    def newest_sync(self):
        """The furthest position in a sound header after the end."""
        # And the mark in the first page.
        places = (1024, *range(self.end, len(self.data) - Frame.HEADER + 1, 8))
        frames = (
            Frame(self.data, place, self.salt, self.seal)
            for place in places
            if any(self.data[place : place + Frame.HEADER])
        )
        return max((frame.synced_through for frame in frames if frame.has_sound_header), default=0)


def read_commits(directory, manifest, identity):
    """The operations of all commits from the manifest's floor on, as (key, value or None)."""
    floor, base = manifest.floor[0], manifest.floor[1]
    numbers = [number for number in directory.logs() if number >= floor]
    require(floor in numbers, f"LOG-{floor} is missing")
    require(manifest.newest_log in numbers, f"LOG-{manifest.newest_log} is missing")
    logs, end = [], None
    for number in numbers:
        before = (0, 0, base, manifest.floor[2])
        if logs:
            last = logs[-1]
            done = max((frame.sequence for frame in last.frames), default=last.first_sequence - 1)
            before = (last.number, last.end, last.base + last.end, done)
        named = manifest.named_logs.get(number)
        log = Log(directory, number, identity, named, before)
        if log.is_ahead:
            require(not named or named[1] <= 4096, f"{log.name}: its commits are lost")
            continue
        written = max((frame.end for frame in log.frames if frame.kind != SEAL), default=4096)
        require(not named or written >= named[1], f"{log.name}: its last commits are lost")
        if logs and (log.previous, log.base) != (logs[-1].number, logs[-1].base + log.previous_length):
            require(number > manifest.newest_log, f"{log.name}: it does not continue the one before")
            break
        require(logs or log.base == base, f"{log.name}: it begins at another position")
        logs.append(log)

    sequence, payload, operations = manifest.floor[2], b"", []
    for index, log in enumerate(logs):
        for frame in log.frames:
            if frame.kind == SEAL:
                continue
            if frame.sequence <= sequence:
                raise Damage(f"{log.name}: the commits are not in order")
            require(frame.kind in (COMMIT, PART, LAST_PART), f"{log.name}: a frame of another kind")
            payload += frame.payload
            if frame.kind == PART:
                continue
            require(frame.sequence == sequence + 1, f"{log.name}: a commit is missing")
            sequence = frame.sequence
            operations += read_operations(
                opened_groups(payload, log, sequence, manifest), frame.operations, log.name)
            payload = b""
        following = logs[index + 1] if index + 1 < len(logs) else None
        if following is None or log.end < following.previous_length:
            position = log.base + log.end
            for later in logs[index:]:
                if later.newest_sync() > position or (
                    later is not log
                    and any(frame.synced_through > position for frame in later.frames)
                ):
                    raise Damage(f"{log.name}: commit {sequence + 1} at {log.end} is damaged")
            break
    return operations


def opened_groups(payload, log, sequence, manifest):
    """A payload in which the operations of keyed groups replace their records; None replaces the
    record of a dropped group."""
    fields, output = Bytes(payload, log.name), []
    while not fields.is_at_end:
        kind = fields.number(1)
        if kind != 5:
            parts = [fields.counted()] + ([fields.counted()] if kind == 1 else [])
            output.append(bytes([kind]) + b"".join(counted(part) for part in parts))
            continue
        group, sealed = fields.varint(), fields.counted()
        if group not in log.directory.groups:
            require(group not in manifest.groups, f"{log.name}: the key of group {group} is missing")
            output.append(None)
            continue
        seal = log.directory.seal(sealing.LOG, log.number, log.salt, group)
        output.append(
            unsealed(
                log.name, sequence, "a part of a commit",
                lambda: seal.record(sequence, group, sealed)))
    return output


def counted(data):
    """Bytes after their length."""
    length, prefix = len(data), b""
    while length >= 0x80:
        prefix, length = prefix + bytes([length & 0x7F | 0x80]), length >> 7
    return prefix + bytes([length]) + data


def read_operations(parts, count, name):
    fields, operations = Bytes(b"".join(part or b"" for part in parts), name), []
    remarks = 0
    while not fields.is_at_end:
        kind = fields.number(1)
        if kind == 4:
            fields.counted()
            remarks += 1
            continue
        if kind == 6:
            require(fields.varint() >> 19 == 1, f"{name}: an annotation of no group")
            fields.counted()
            continue
        require(kind in (1, 2), f"{name}: an operation of another kind")
        key = fields.counted()
        operations.append((key, fields.counted() if kind == 1 else None))
    require(
        (len(operations) == count or None in parts) and remarks <= 1,
        f"{name}: a commit has another count")
    return operations


# MANIFEST


class Manifest:
    """The state that the edits of a manifest add up to."""

    def __init__(self, directory, number, identity):
        name = f"MANIFEST-{number}"
        data = directory.read(name)
        fields = Bytes(data[:64], name)
        require(fields.take(8) == magic(b"LMN"), f"{name}: this is no manifest")
        version = fields.number(4)
        require(version in (1, 2), f"{name}: a newer version wrote it")
        fields.take(4)
        require(fields.number(8) == number, f"{name}: this is another manifest")
        require(fields.take(16) == identity, f"{name}: it is of another database")
        salt = fields.number(8)
        fields.take(8)
        seed = int.from_bytes(data[:8], "little")
        require(fields.number(8) == seeded(seed, data[:56]), f"{name}: its header is damaged")

        seal = directory.seal(sealing.MANIFEST, number, salt)
        self.name, self.floor, self.newest_log = name, None, None
        self.segments, self.values, self.dropped, self.named_logs = {}, {}, {}, {}
        self.directory, self.groups = directory, set()
        offset, ordinal, chain, before = 64, 0, 0, None
        while True:
            edit = self.edit(data, offset, ordinal + 1, salt, seal, version)
            if edit is None:
                break
            payload, offset = edit
            ordinal += 1
            if before is not None:
                chain = seeded(chain, before)
            fields = Bytes(payload, name)
            require(
                fields.number(8) == chain, f"{name}: edit {ordinal} does not follow the one before")
            while not fields.is_at_end:
                self.change(fields.varint(), Bytes(fields.counted(), name))
            before = payload
        for place in range(offset, len(data) - Frame.HEADER + 1, 8):
            frame = Frame(data, place, salt, seal)
            if frame.has_sound_header and frame.synced_through > offset:
                raise Damage(f"{name}: edit {ordinal + 1} is damaged")
        require(self.floor and self.newest_log is not None, f"{name}: it says nothing of logs")

    def edit(self, data, start, ordinal, salt, seal, version):
        """The payload of the edit at a place and its end; None if none is complete."""
        payload, offset = b"", start
        for part in range(len(data)):
            frame = Frame(data, offset, salt, seal)
            if not frame.is_sound:
                return None
            require(frame.sequence == ordinal, f"{self.name}: an edit is missing")
            payload, offset = payload + frame.payload, frame.end
            if part == 0 and frame.kind == EDIT:
                return payload, offset
            require(
                version == 2
                and frame.kind in (PART, LAST_PART)
                and frame.operations == part
                and frame.synced_through == start,
                f"{self.name}: a part of an edit is not the one that should follow")
            if frame.kind == LAST_PART:
                return payload, offset

    def change(self, tag, body):
        if tag == 4:
            self.floor = (body.varint(), body.varint(), body.varint(), body.number(8, signed=True))
            self.newest_log = body.varint()
        elif tag in (22, 28):
            if tag == 28:
                body.varint()
            body.varint()
            self.groups = set()
            while not body.is_at_end:
                self.groups.add(body.varint())
        elif tag in (8, 24):
            segment = SegmentPlace(body, self.directory, is_of_group=tag == 24)
            require(segment.key not in self.segments, f"{self.name}: a segment is added twice")
            self.segments[segment.key] = segment
        elif tag == 10:
            key = (body.varint(), body.varint())
            require(self.segments.pop(key, None), f"{self.name}: there is no such segment to drop")
        elif tag == 12:
            number = body.varint()
            while not body.is_at_end:
                self.dropped[body.varint()] = number
        elif tag in (14, 26):
            shard, number = body.varint(), body.varint()
            fields = (body.number(8), body.varint(), body.varint())
            self.values[number] = (shard, *fields, body.varint() if tag == 26 else 0)
        elif tag == 16:
            _, number = body.varint(), body.varint()
            require(self.values.pop(number, None), f"{self.name}: no such value file to drop")
        elif tag == 21:
            number = body.varint()
            require(number >= self.floor[0], f"{self.name}: it names a log that nobody needs")
            self.named_logs[number] = (body.number(8), body.varint())
        elif tag in (2, 6, 18, 20) or tag % 2 == 1:
            # Assigned numbers, flushed keyspaces, and history, which matter only to writers.
            return
        else:
            raise Damage(f"{self.name}: a newer version wrote it")
        body.end()


class SegmentPlace:
    """A segment's entry in the manifest."""

    def __init__(self, body, directory, is_of_group):
        self.shard, self.level, self.run = body.varint(), body.varint(), body.varint()
        self.number, self.salt, self.size = body.varint(), body.number(8), body.varint()
        self.checksum, self.group = body.number(8), 0
        if is_of_group:
            self.group = body.varint()
            self.read_bounds(body.counted(), directory)
        else:
            self.least, self.greatest = body.counted(), body.counted()
        self.rows, self.tombstones, self.raw_bytes = body.varint(), body.varint(), body.varint()
        self.least_sequence, self.greatest_sequence = body.varint(), body.varint()
        for _ in range(body.varint()):
            body.varint()
            body.varint()

    def read_bounds(self, sealed, directory):
        """The keys of a keyed group's segment, if the group's key is available."""
        self.least = self.greatest = None
        if self.group not in directory.groups:
            return
        seal = directory.seal(sealing.BOUNDS, self.number, self.salt, self.group)
        name = f"{self.number}.seg"
        bounds = Bytes(
            unsealed(name, 0, "the bounds", lambda: sealing.opened(seal.key, bytes(12), sealed)),
            name)
        self.least, self.greatest = bounds.counted(), bounds.rest()

    @property
    def key(self):
        return (self.shard, self.number)


def unsealed(name, offset, what, body):
    """The result of a body that opens sealed bytes."""
    try:
        return body()
    except sealing.Forged:
        raise Damage(f"{name}: {what} at {offset} was written without the key") from None


def check_data_header(name, data, letters, number, salt, identity, shard, is_sealed, group=0):
    """Checks the header that all data files have."""
    fields = Bytes(data[:64], name)
    require(fields.take(8) == magic(letters), f"{name}: this is no such file")
    major, _, cipher = fields.number(2), fields.number(2), fields.number(4)
    require(major == 1, f"{name}: a newer version wrote it")
    require(cipher == int(is_sealed), f"{name}: it is in the clear, or else sealed")
    require(fields.number(8) == number, f"{name}: this is another file")
    require(fields.number(8) == salt, f"{name}: this is an older file of that number")
    require(fields.take(16) == identity, f"{name}: it is of another database")
    require(fields.number(4) == shard, f"{name}: it is of another shard")
    require(fields.number(4) == group, f"{name}: it is of another group")
    require(fields.number(8) == placed(salt, 0, data[:56]), f"{name}: its header is damaged")


# Segments

PUT, DELETE, POINTER = 1, 2, 3
FOOTER, TRAILER = 256, 16


class Segment:
    """All rows of a segment, as (key, kind, value)."""

    def __init__(self, directory, place, identity):
        self.name, self.place = f"{place.number}.seg", place
        self.data = data = directory.read(self.name)
        self.salt = place.salt
        require(len(data) == place.size, f"{self.name}: it has another size")
        self.seal = directory.seal(sealing.SEGMENT, place.number, place.salt, place.group)
        check_data_header(
            self.name, data, b"ODS", place.number, place.salt, identity, place.shard,
            self.seal is not None, place.group)
        self.read_footer(identity)
        top = self.sections.get(1)
        require(top, f"{self.name}: it has no top")
        self.rows = []
        for _, _, pointer in read_block(top, self.name):
            index = self.block(pointer, 2)
            for bound, _, inner in read_block(index, self.name):
                rows = read_block(self.block(inner, 1), self.name)
                require(rows[-1][0] <= bound, f"{self.name}: a key is behind its block's bound")
                require(
                    not self.rows or self.rows[-1][0] < rows[0][0],
                    f"{self.name}: the keys are not in order")
                self.rows += rows
        require(len(self.rows) == place.rows, f"{self.name}: it has another count of rows")
        if self.rows:
            ends = (self.rows[0][0], self.rows[-1][0])
            require(ends == (place.least, place.greatest), f"{self.name}: its keys are others")

    def read_footer(self, identity):
        offset = len(self.data) - FOOTER
        footer = self.data[offset:]
        checksum = struct.unpack_from("<Q", footer, 248)[0]
        require(
            checksum == placed(self.salt, offset, footer[:248]) == self.place.checksum,
            f"{self.name}: its footer is damaged")
        fields = Bytes(footer, self.name)
        require(fields.take(8) == magic(b"ODS"), f"{self.name}: this is no footer")
        major, _, size = fields.number(2), fields.number(2), fields.number(4)
        needed, _ = fields.number(8), fields.number(8)
        sealed = int(self.seal is not None)
        require(
            (major, size, needed & ~2) == (1, FOOTER, sealed),
            f"{self.name}: a newer version wrote it")
        require(
            (fields.number(8), fields.number(8)) == (self.place.number, self.salt)
            and fields.take(16) == identity,
            f"{self.name}: the footer is of another file")
        fields.take(8)
        numbers = [fields.number(8) for _ in range(9)]
        require(numbers[0] == self.place.rows, f"{self.name}: the counts of rows are not the same")
        table = numbers[8]
        count = fields.number(4)
        fields.take(4)
        entries = self.data[table : table + 32 * count]
        require(
            fields.number(8) == placed(self.salt, table, entries),
            f"{self.name}: its section table is damaged")
        self.sections = {}
        for index in range(count):
            entry = Bytes(entries[32 * index : 32 * index + 32], self.name)
            kind, flags, start, length = (entry.number(size) for size in (4, 4, 8, 8))
            data = self.data[start : start + length]
            require(
                entry.number(8) == placed(self.salt, start, data),
                f"{self.name}: a section is damaged")
            require(kind in (1, 2) or flags & 1 == 0, f"{self.name}: a newer version wrote it")
            if self.seal:
                data = unsealed(
                    self.name, start, "the section",
                    lambda: self.seal.filter(start, data, is_apart=needed & 2)
                    if kind == 2
                    else self.seal.unit(sealing.SECTION, start, data))
            self.sections[kind] = data

    def block(self, pointer, kind):
        """The bytes of the block that a row of an index points to."""
        fields = Bytes(pointer, self.name)
        offset, length = fields.number(8), fields.number(4)
        end = offset + length
        stored, trailer = self.data[offset:end], Bytes(self.data[end : end + TRAILER], self.name)
        raw_length, codec, actual, cipher = (trailer.number(size) for size in (4, 1, 1, 2))
        require(
            trailer.number(8) == placed(self.salt, offset, self.data[offset : end + 8]),
            f"{self.name}: the block at {offset} is damaged")
        mark = 0x0201 if self.seal else 0
        require(cipher == mark and actual in (1, 2), f"{self.name}: a newer version wrote it")
        require(actual == kind, f"{self.name}: the block at {offset} is of another kind")
        if self.seal:
            stored = unsealed(
                self.name, offset, "the block",
                lambda: self.seal.unit(
                    sealing.BLOCK, offset, stored, self.data[end : end + 8]))
        return expanded(stored, codec, raw_length, self.name)


def read_block(data, name):
    """The rows of a block, as (key, kind, value)."""
    fields = Bytes(data, name)
    count, layout, flags = fields.number(4), fields.number(1), fields.number(1)
    key_width, value_width = fields.number(1), fields.number(1)
    prefix_length, key_bytes = fields.number(4), fields.number(4)
    require(1 <= count <= 65536 and layout == 1, f"{name}: a block cannot be read")
    prefix = fields.take(prefix_length)
    key_lengths = [fields.number(key_width) for _ in range(count)]
    value_lengths = [fields.number(value_width) for _ in range(count)]
    kinds = fields.take(count) if flags & 1 else bytes([PUT]) * count
    require(sum(key_lengths) == key_bytes, f"{name}: a block cannot be read")
    keys = [prefix + fields.take(length) for length in key_lengths]
    values = [fields.take(length) for length in value_lengths]
    fields.end()
    require(all(a < b for a, b in zip(keys, keys[1:])), f"{name}: keys are not in order")
    require(set(kinds) <= {PUT, DELETE, POINTER}, f"{name}: a row of another kind")
    return list(zip(keys, kinds, values))


def expanded(stored, codec, length, name):
    require(codec in (0, 1), f"{name}: a newer version wrote it")
    data = stored if codec == 0 else expanded_lz4(stored, length, name)
    require(len(data) == length, f"{name}: it has another length")
    return data


def expanded_lz4(stored, limit, name):
    """An LZ4 block: literals and copies of what came before, in turn."""
    fields, output = Bytes(stored, name), bytearray()

    def length(nibble):
        total = nibble
        while nibble == 15:
            byte = fields.number(1)
            total += byte
            if byte != 255:
                break
        return total

    while True:
        token = fields.number(1)
        output += fields.take(length(token >> 4))
        if fields.is_at_end:
            return bytes(output)
        distance = fields.number(2)
        count = length(token & 15) + 4
        require(1 <= distance <= len(output), f"{name}: LZ4 copies from nowhere")
        require(len(output) + count <= limit, f"{name}: LZ4 makes too much")
        for _ in range(count):
            output.append(output[-distance])


# Value files


def read_value(directory, manifest, identity, pointer):
    """The value that a pointer leads to."""
    fields = Bytes(pointer, "a pointer")
    number, offset, stored_length, length, checksum, _ = (
        fields.number(size) for size in (8, 8, 4, 4, 4, 4))
    fields.end()
    name = f"{number}.val"
    require(number in manifest.values, f"{name}: the manifest does not know it")
    shard, salt, size, _, group = manifest.values[number]
    data = directory.read(name)
    require(len(data) == size, f"{name}: it has another size")
    seal = directory.seal(sealing.VALUES, number, salt, group)
    check_data_header(name, data, b"ODV", number, salt, identity, shard, seal is not None, group)
    record = Bytes(data[offset : offset + 24 + stored_length], name)
    head = record.take(16)
    expected = record.number(8)
    stored = record.rest()
    require(
        expected == placed(salt, offset, head + stored) and expected & 0xFFFFFFFF == checksum,
        f"{name}: the record at {offset} is damaged")
    fields = Bytes(head, name)
    lengths = (fields.number(4), fields.number(4))
    require(lengths == (length, stored_length), f"{name}: the record at {offset} is another")
    codec, cipher = fields.number(1), fields.number(2)
    require(cipher == (0x0201 if seal else 0), f"{name}: a newer version wrote it")
    if seal:
        stored = unsealed(
            name, offset, "the record", lambda: seal.unit(sealing.VALUE, offset, stored, head))
    return expanded(stored, codec, length, name)


# All rows


class Database:
    """Every row that counts, by its key."""

    def __init__(self, path, secret=None):
        self.directory = Directory(path, secret)
        superblock = Superblock(self.directory)
        self.identity = superblock.identity
        self.manifest = Manifest(self.directory, superblock.manifest, self.identity)
        self.rows = {}
        for segment in self.segments_from_oldest():
            for key, kind, value in segment.rows:
                self.put(key, kind, value)
        for key, value in read_commits(self.directory, self.manifest, self.identity):
            self.put(key, DELETE if value is None else PUT, value)
        self.keys = sorted(self.rows)

    def segments_from_oldest(self):
        segments = [
            Segment(self.directory, place, self.identity)
            for place in self.manifest.segments.values()
            if place.least is not None
        ]
        runs = {}
        for segment in segments:
            place = segment.place
            run = (place.shard, place.level, place.run)
            runs[run] = max(runs.get(run, 0), place.greatest_sequence)

        def age(segment):
            place = segment.place
            run = (place.shard, place.level, place.run)
            return (-place.level, runs[run] if place.level == 0 else 0, place.run)

        return sorted(segments, key=age)

    def put(self, key, kind, value):
        require(len(key) >= 4, "a key has no keyspace")
        if int.from_bytes(key[:4], "big") in self.manifest.dropped:
            return
        if kind == DELETE:
            self.rows.pop(key, None)
        else:
            self.rows[key] = (kind, value)

    def value(self, key):
        kind, value = self.rows[key]
        if kind == POINTER:
            return read_value(self.directory, self.manifest, self.identity, value)
        return value

    def keyspace(self, number):
        """The rows of a keyspace in order, their keys without it."""
        prefix = struct.pack(">I", number)
        return [(key[4:], self.value(key)) for key in self.keys if key.startswith(prefix)]


# Values of documents


class Timestamp(int):
    """Microseconds since 1970."""


class Reference(str):
    """The path of a document."""


class GeoPoint(tuple):
    """Latitude and longitude."""


class Decimal(tuple):
    """A number that is digits and an exponent."""

    def __str__(self):
        number, exponent = self
        digits, mark = str(abs(number)), "-" if number < 0 else ""
        places = len(digits) + exponent
        if number == 0:
            return "0"
        if exponent >= 0 and places <= 38:
            return mark + digits + "0" * exponent
        if exponent < 0 and places > 0:
            return f"{mark}{digits[:places]}.{digits[places:]}"
        if exponent < 0 and places > -38:
            return f"{mark}0.{'0' * -places}{digits}"
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{mark}{digits[0]}{fraction}e{places - 1}"


class Vector(list):
    """Doubles."""


class Blob(dict):
    """A reference to a content."""


class Document:
    """A row of a document."""

    def __init__(self, row, names, what):
        fields = Bytes(row, what)
        self.version = fields.number(8)
        self.updated = Timestamp(fields.number(8, signed=True))
        self.created = Timestamp(fields.number(8, signed=True))
        reader = ValueReader(row, names, what)
        self.fields, end = reader.value(24, 128)
        require(isinstance(self.fields, dict) and end == len(row), f"{what}: it is no document")


class ValueReader:
    def __init__(self, data, names, what):
        self.data, self.names, self.what = data, names, what

    def value(self, offset, depth):
        """The value with its tag at `offset`, and its end."""
        require(offset < len(self.data), f"{self.what}: a value is behind the end")
        tag = self.data[offset]
        if tag >= 0xE0:
            return self.container(offset, depth)
        fields = Bytes(self.data, self.what)
        fields.place = offset + 1
        value = read_scalar(tag, fields)
        return value, fields.place

    def container(self, offset, depth):
        require(depth > 0, f"{self.what}: containers are too deep")
        tag = self.data[offset]
        is_map, wide = tag < 0xE8, tag & 1 == 1
        short, own = is_map and tag & 2 != 0, is_map and tag & 4 != 0
        require(tag <= 0xE9 and not (short and own), f"{self.what}: there is no tag {tag:02x}")
        fields = Bytes(self.data, self.what)
        fields.place = offset + 1
        require(fields.number(1) == 0, f"{self.what}: a reserved byte is not zero")
        slot_size = 4 if wide else 2
        if wide:
            require(fields.number(2) == 0, f"{self.what}: reserved bytes are not zero")
        count = fields.number(slot_size)
        places = []
        if is_map:
            size = slot_size if own else 1 if short else 2
            places = [fields.number(size) for _ in range(count)]
        slots = [fields.number(slot_size) for _ in range(count)]
        names = []
        for place in places:
            if own:
                require(offset + place == fields.place, f"{self.what}: a name is not in its place")
                names.append(fields.text())
            else:
                require(place in self.names, f"{self.what}: a field has no name")
                names.append(self.names[place])
        keys = [name.encode() for name in names] if own else places
        require(all(a < b for a, b in zip(keys, keys[1:])), f"{self.what}: fields are not in order")
        values, end = [], fields.place
        inline = 0xFFFFF000 if wide else 0xF000
        for slot in slots:
            if slot >= inline:
                values.append(self.inline(slot - inline))
                continue
            require(offset + slot == end, f"{self.what}: a value is not in its place")
            value, end = self.value(end, depth - 1)
            values.append(value)
        return (dict(zip(names, values)) if is_map else values), end

    def inline(self, value):
        if value in (0, 1, 2):
            return (None, False, True)[value]
        require(0x400 <= value <= 0xBFF, f"{self.what}: there is no value {value:x}")
        return value - 0x800


def read_decimal(fields):
    head, exponent = fields.number(1), fields.number(2, signed=True)
    number = int.from_bytes(fields.take(head & 0x7F), "little")
    least = (number.bit_length() + 7) // 8
    require(
        head & 0x7F == least and number < 10**38 and exponent >= -128
        and exponent + len(str(number)) <= 128,
        f"{fields.what}: a decimal is out of range")
    require(number % 10 or (number, exponent, head) == (0, 0, 0), f"{fields.what}: zeros at its end")
    return Decimal((-number if head & 0x80 else number, exponent))


def read_scalar(tag, fields):
    """The value after a tag."""
    if tag in (0x10, 0x11, 0x12):
        return fields.number(2 << tag - 0x10, signed=True)
    if tag == 0x18:
        return fields.double()
    if tag == 0x19:
        return struct.unpack("<f", fields.take(4))[0]
    if tag == 0x1A:
        return read_decimal(fields)
    if tag == 0x20:
        return Timestamp(fields.number(8, signed=True))
    if tag == 0x28:
        return fields.text()
    if tag == 0x30:
        return fields.counted()
    if tag == 0x38:
        return Reference(fields.text())
    if tag == 0x40:
        return GeoPoint((fields.double(), fields.double()))
    if tag == 0x48:
        return Vector(fields.double() for _ in range(fields.varint()))
    if tag == 0x50:
        flags = fields.number(1)
        blob = Blob(sha256=fields.take(32).hex(), length=fields.number(8))
        if flags & 1:
            blob["contentType"] = fields.text()
        if flags & 2:
            blob["path"] = fields.text()
        if flags & 4:
            blob["key"] = fields.take(32).hex()
        return blob
    raise Damage(f"{fields.what}: there is no tag {tag:02x}")


# Keys


def read_text_body(fields):
    """A text of a key: UTF-8 with 00 as 00 FF, then 00 01."""
    data = bytearray()
    while True:
        byte = fields.number(1)
        if byte != 0:
            data.append(byte)
            continue
        mark = fields.number(1)
        if mark == 1:
            return bytes(data)
        require(mark == 0xFF, f"{fields.what}: a text cannot be read")
        data.append(0)


def read_ids(key, what):
    """The ids of a document and those above it."""
    fields, ids = Bytes(key, what), []
    while not fields.is_at_end:
        require(fields.number(1) == 0x38, f"{what}: a key is not of texts")
        ids.append(decoded(read_text_body(fields), what))
    return ids


def read_blob_component(data):
    fields = Bytes(data, "a content that was made from another")
    require(fields.number(1) == 0x70, f"{fields.what}: this is no blob")
    blob = Blob(sha256=fields.take(32).hex(), length=fields.high(8))
    for name in ("contentType", "path"):
        tag = fields.number(1)
        if tag == 0x38:
            blob[name] = decoded(read_text_body(fields), fields.what)
        else:
            require(tag == 0x10, f"{fields.what}: this is no blob")
    fields.end()
    return blob


# The catalog


class Collection:
    def __init__(self, keyspace, pattern):
        self.keyspace, self.pattern = keyspace, pattern
        self.names, self.indexes = {}, []
        self.time_to_live = self.schema = None


class Catalog:
    def __init__(self, database):
        self.collections, self.groups, indexes = {}, {}, []
        families, rows = set(), database.keyspace(0)
        require(rows == database.keyspace(4096), "the catalog: its mirror is another")
        for key, value in rows:
            if key[0] == 2:
                families.add(Bytes(value, "a family").varint())
        for key, value in rows:
            fields = Bytes(key, "the catalog")
            kind = fields.number(1)
            body = Bytes(value, "the catalog")
            if kind == 3:
                keyspace, part = fields.high(4), fields.number(1)
                if keyspace >> 12 not in families:
                    continue
                if part == 0:
                    self.add_keyspace(keyspace, body, indexes)
                elif keyspace in self.collections:
                    self.add_detail(self.collections[keyspace], part, fields, body)
            elif kind == 4:
                definitions = [read_index(body) for _ in range(body.varint())]
                body.end()
                if definitions:
                    self.groups[decoded(fields.rest(), "the catalog")] = definitions
        for keyspace, definition in indexes:
            require(keyspace in self.collections, "the catalog: an index is of no collection")
            if definition is not None:
                self.collections[keyspace].indexes.append(definition)

    def add_keyspace(self, keyspace, body, indexes):
        kind = body.number(1)
        if kind == 1:
            self.collections[keyspace] = Collection(keyspace, body.texts())
        elif kind == 2:
            indexes.append((body.varint(), read_index(body)))
        else:
            require(kind == 3, "the catalog: a keyspace of another kind")

    def add_detail(self, collection, part, fields, body):
        if part == 1:
            symbol = fields.high(4)
            require(symbol == len(collection.names), "the catalog: a name is missing")
            collection.names[symbol] = decoded(body.rest(), "the catalog")
        elif part == 2:
            collection.time_to_live = body.texts() or None
        elif part == 3:
            collection.schema = body.rest()
        elif part == 4:
            require(body.varint() <= 3, "the catalog: a newer version wrote a collection")


def read_index(body):
    """The bytes that define an index; None for one of expiry times."""
    start = body.place
    for _ in range(body.varint()):
        direction = body.number(1)
        require(direction < 4, "the catalog: an index cannot be read")
        if direction & 2:
            require(1 <= body.number(1) <= 3, "the catalog: texts are compared in a newer way")
        body.texts()
    flags = body.number(1)
    further = body.number(1) if flags & 64 else 0
    require(further & ~11 == 0, "the catalog: a newer version wrote an index")
    if further & 1:
        body.varint()
    if flags & 8:
        read_condition(body, 0)
    if flags & 16:
        body.texts()
    if flags & 32:
        return None
    return body.data[start : body.place]


def read_condition(body, depth):
    require(depth < 100, "the catalog: a condition is too deep")
    kind = body.number(1)
    if kind in (1, 2):
        for _ in range(body.varint()):
            read_condition(body, depth + 1)
    else:
        require(0x10 <= kind <= 0x1A, "the catalog: a condition cannot be read")
        body.texts()
        for _ in range(body.varint()):
            body.counted()


# Contents


class Contents:
    def __init__(self, database):
        self.database = database
        self.locations = dict(database.keyspace(1))

    def read(self, digest):
        """The bytes of the content with a digest."""
        location = self.locations.get(bytes.fromhex(digest))
        require(location, f"the content {digest} is not stored")
        fields = Bytes(location, f"the place of {digest}")
        kind = fields.number(1)
        if kind == 1:
            data = fields.rest()
        elif kind == 2:
            data = self.packed(fields, digest)
        elif kind == 6:
            raise Damage(f"the bytes of the content {digest} are elsewhere")
        else:
            require(kind in (3, 4), f"{fields.what}: there is no such place")
            data = self.alone(fields, kind == 4)
        fields.end()
        require(hashlib.sha256(data).hexdigest() == digest, f"the content {digest} is another")
        return data

    def packed(self, fields, digest):
        number, salt, offset = fields.varint(), fields.number(8), fields.varint()
        length, size = fields.varint(), fields.varint()
        name = f"{number}.pack"
        data = self.database.directory.read(name)
        seal = self.database.directory.seal(sealing.PACK, number, salt)
        check_data_header(
            name, data, b"ODP", number, salt, self.database.identity, 0, seal is not None)
        entry = Bytes(data[offset : offset + size], name)
        head = entry.take(48)
        checksum = entry.number(8)
        parts = Bytes(head, name)
        mark = b"ODE\x02" if seal else b"ODE\x01"
        require(parts.take(4) == mark, f"{name}: no entry is at {offset}")
        require((parts.number(4), parts.number(4)) == (length, size), f"{name}: another entry")
        count = parts.number(4)
        found = parts.take(32)
        table = entry.take(8 * count + (24 if seal else 0))
        require(checksum == placed(salt, offset, head + table), f"{name}: an entry is damaged")
        if seal:
            chance, tag = table[-24:-18], table[-16:]
            require(table[-18:-16] == bytes(2), f"{name}: the entry at {offset} is another")
            found = unsealed(
                name, offset, "the entry",
                lambda: seal.part(offset, 0, chance, found + tag, head[:16]))
        require(found.hex() == digest, f"{name}: the entry at {offset} is another")
        output, lengths = b"", frame_lengths(length)
        require(count == len(lengths), f"{name}: the entry at {offset} has other frames")
        for index, raw_length in enumerate(lengths):
            stored_length, low = struct.unpack_from("<II", table, 8 * index)
            place = offset + entry.place
            stored = entry.take(stored_length)
            require(placed(salt, place, stored) & 0xFFFFFFFF == low, f"{name}: a frame is damaged")
            if seal:
                stored = unsealed(
                    name, place, "the frame",
                    lambda: seal.part(offset, index + 1, chance, stored))
            output += expanded(stored, int(len(stored) < raw_length), raw_length, name)
        entry.end()
        return output

    def alone(self, fields, is_sealed):
        number, salt, length = fields.varint(), fields.number(8), fields.varint()
        name = f"{number}.content"
        data = self.database.directory.read(name)
        seal = self.database.directory.seal(sealing.CONTENT, number, salt)
        require(is_sealed == (seal is not None), f"{name}: it is in the clear, or else sealed")
        lengths = frame_lengths(length)
        if seal is None:
            require(len(data) == length, f"{name}: it has another length")
            return b"".join(self.frames(fields, data, 0, lengths, salt, name))
        require(
            len(data) == 64 + length + 16 * len(lengths), f"{name}: it has another length")
        check_data_header(name, data, b"ODC", number, salt, self.database.identity, 0, True)
        output, place = b"", 64
        for frame in self.frames(fields, data, 64, [size + 16 for size in lengths], salt, name):
            output += unsealed(
                name, place, "the frame",
                lambda: seal.unit(sealing.PIECE, place, frame))
            place += len(frame)
        return output

    @staticmethod
    def frames(fields, data, place, lengths, salt, name):
        """The frames of a content's own file, whose checksums come next."""
        for frame_length in lengths:
            frame = data[place : place + frame_length]
            require(
                fields.number(4) == placed(salt, place, frame) & 0xFFFFFFFF,
                f"{name}: the frame at {place} is damaged")
            place += frame_length
            yield frame


def frame_lengths(length):
    whole, rest = divmod(length, 65536)
    return [65536] * whole + ([rest] if rest else [])


# The tree


def read_node_key(fields):
    """One component of a node's key."""
    tag = fields.number(1)
    if tag == 0x38:
        return decoded(read_text_body(fields).translate(TREE_TEXT), fields.what)
    require(tag == 0x20, f"{fields.what}: a key of the tree cannot be read")
    number, form = fields.high(4) - (1 << 31), fields.number(1)
    is_negative = number < 0 or form & 1 == 0
    digits = str(abs(number)).rjust((form >> 1) - is_negative, "0")
    return ("-" if is_negative else "") + digits


TREE_TEXT = bytes.maketrans(b"\xf5\xf6", b"\xee\xef")


def read_nodes(database):
    """The tree's own rows as (path, members)."""
    for key, value in database.keyspace(16):
        fields, path = Bytes(key, "the tree"), []
        while not fields.is_at_end and fields.data[fields.place] in (0x20, 0x38):
            path.append(read_node_key(fields))
        if not fields.is_at_end:
            # A child by its priority or in an index repeats a node's value.
            require(fields.number(1) in (0x10, 0x12), "the tree: a key cannot be read")
            continue
        body = Bytes(value, "the tree")
        flags, members = body.number(1), {}
        if flags & 2:
            members["priority"] = read_leaf(body)[1]
        if flags & 1:
            name, content = read_leaf(body)
            members[name] = content
        if flags & 4:
            members["array"] = body.varint()
        body.end()
        yield path, members


def read_leaf(body):
    tag = body.number(1)
    if tag in (1, 2):
        return "value", tag == 2
    if tag == 0x20:
        return "time", body.number(8, signed=True)
    return "value", read_scalar(tag, body)


def read_tree_indexes(database):
    for key, _ in database.keyspace(18):
        fields, parts = Bytes(key, "the tree"), ([], [])
        part = 0
        while not fields.is_at_end:
            if part == 0 and fields.data[fields.place] == 0x12:
                fields.take(1)
                part = 1
            else:
                parts[part].append(read_node_key(fields))
        yield parts


# Output


def json_text(text):
    escapes = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    letters = (
        escapes.get(letter, letter)
        if letter in escapes or (letter >= " " and letter != "\x7f")
        else f"\\u{ord(letter):04x}"
        for letter in text
    )
    return '"' + "".join(letters) + '"'


def json_double(number):
    if number != number:
        bits = struct.unpack("<Q", struct.pack("<d", number))[0]
        return '"NaN"' if bits == 0x7FF8000000000000 else f'"NaN({bits:x})"'
    if number in (float("inf"), float("-inf")):
        return '"-Infinity"' if number < 0 else '"Infinity"'
    return repr(number)


def json_moment(microseconds):
    seconds, fraction = divmod(microseconds, 1_000_000)
    days, second = divmod(seconds, 86_400)
    day = date(1970, 1, 1) + timedelta(days=days)
    text = f"{day.year:04}-{day.month:02}-{day.day:02}"
    text += f"T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return text + (f".{fraction:06}".rstrip("0") if fraction else "") + "Z"


def json_value(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        return f'{{"$date":"{json_moment(value)}"}}'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = json_double(value)
        return f'{{"$numberDouble":{text}}}' if text.startswith('"') else text
    if isinstance(value, Reference):
        return f'{{"$reference":{json_text(value)}}}'
    if isinstance(value, str):
        return json_text(value)
    if isinstance(value, bytes):
        text = base64.b64encode(value).decode()
        return f'{{"$binary":{{"base64":"{text}","subType":"00"}}}}'
    if isinstance(value, Decimal):
        return f'{{"$numberDecimal":"{value}"}}'
    if isinstance(value, GeoPoint):
        return f'{{"$geoPoint":[{",".join(map(json_value, value))}]}}'
    if isinstance(value, Vector):
        return f'{{"$vector":[{",".join(map(json_double, value))}]}}'
    if isinstance(value, list):
        return f"[{','.join(map(json_value, value))}]"
    if isinstance(value, Blob):
        return f'{{"$blob":{json_members(sorted(value.items()))}}}'
    members = json_members(sorted(value.items(), key=lambda member: member[0].encode()))
    if any(name.startswith("$") for name in value):
        return f'{{"$literal":{members}}}'
    return members


def json_members(members):
    return f"{{{','.join(f'{json_text(name)}:{json_value(value)}' for name, value in members)}}}"


def blobs_in(value):
    """The references to contents in a value."""
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, (dict, list)) and not isinstance(value, Vector):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from blobs_in(inner)


def opened_content(blob, data):
    """The bytes of a content that is sealed with a key from the reference to it."""
    what, stored = f"the content {blob['sha256']}", Bytes(data, blob["sha256"])
    key, lengths, output = bytes.fromhex(blob["key"]), frame_lengths(blob["length"]) or [0], b""
    for number, length in enumerate(lengths):
        is_last = number + 1 == len(lengths)
        nonce = number.to_bytes(8, "little") + int(is_last).to_bytes(4, "little")
        place, sealed = stored.place, stored.take(length + 16)
        output += unsealed(
            what, place, "the frame", lambda: sealing.opened(key, nonce, sealed))
    stored.end()
    return output


def path_of(pattern, ids):
    if pattern == ["__storage__"]:
        return ids[0].replace("\n", "/").removeprefix("/")
    return "/".join(f"{collection}/{id}" for collection, id in zip(pattern, ids))


def collection_lines(database, catalog, contents):
    def place(collection):
        names = [name.encode() for name in collection.pattern]
        return (collection.pattern != ["__storage__"], names)

    for collection in sorted(catalog.collections.values(), key=place):
        pattern = collection.pattern
        rows = database.keyspace(collection.keyspace) if pattern else []
        members = [("collection", pattern)]
        if collection.indexes:
            members.append(("indexes", sorted(collection.indexes)))
        if collection.time_to_live:
            members.append(("timeToLive", collection.time_to_live))
        if collection.schema:
            members.append(("schema", collection.schema))
        if rows or len(members) > 1:
            yield members
        for key, row in rows:
            ids = read_ids(key, "/".join(pattern))
            require(len(ids) == len(pattern), f"{'/'.join(pattern)}: a key has other ids")
            path = path_of(pattern, ids)
            document = Document(row, collection.names, path)
            contents.update((blob["sha256"], blob) for blob in blobs_in(document.fields))
            yield [
                ("document", path), ("version", document.version), ("created", document.created),
                ("updated", document.updated), ("fields", document.fields),
            ]


def lines(database):
    catalog, contents = Catalog(database), {}
    yield from collection_lines(database, catalog, contents)
    for group in sorted(catalog.groups, key=str.encode):
        yield [("group", group), ("indexes", sorted(catalog.groups[group]))]
    for path, members in read_nodes(database):
        order = ("value", "time", "priority", "array")
        yield [("node", path)] + [(name, members[name]) for name in order if name in members]
    for path, child in read_tree_indexes(database):
        yield [("treeIndex", path), ("child", child)]

    derivations = [
        (key[:32].hex(), decoded(key[32:], "a name"), read_blob_component(value))
        for key, value in database.keyspace(5)
    ]
    for parent, _, child in derivations:
        for digest in (parent, child["sha256"]):
            contents.setdefault(digest, Blob())
    store = Contents(database)
    for digest in sorted(contents):
        data, blob = store.read(digest), contents[digest]
        yield [("content", digest), ("length", len(data))]
        if "key" in blob:
            opened = opened_content(blob, data)
            yield [("opened", hashlib.sha256(opened).hexdigest()), ("length", len(opened))]
    for parent, name, child in derivations:
        yield [("derivedFrom", parent), ("name", name), ("content", child)]


def main():
    if len(sys.argv) not in (2, 3) and sys.argv[2:-1] != ["--passphrase"]:
        sys.exit(__doc__.strip())
    secret = pathlib.Path(sys.argv[2]).read_bytes() if len(sys.argv) == 3 else None
    if len(sys.argv) == 4:
        secret = sys.argv[3]
    try:
        printed = [json_members(line) for line in lines(Database(sys.argv[1], secret))]
    except Damage as damage:
        sys.exit(f"ondol_reader: {damage}")
    sys.stdout.reconfigure(encoding="utf-8")
    print("\n".join(printed))


if __name__ == "__main__":
    main()
