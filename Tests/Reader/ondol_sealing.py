"""The reader's encryption, written from Docs/FileFormat.md and the standards that it names: AES-256
(FIPS 197) in Galois/counter mode (NIST SP 800-38D), HKDF (RFC 5869). It is slow and simple."""

import hashlib
import hmac
import unicodedata


class Forged(Exception):
    """Bytes that were not sealed with this key, nonce and context."""


def doubled(byte):
    """Twice a byte in the field of AES."""
    return (byte << 1 ^ 0x1B) & 0xFF if byte & 0x80 else byte << 1


def product(left, right):
    result = 0
    while right:
        if right & 1:
            result ^= left
        left, right = doubled(left), right >> 1
    return result


def substitutions():
    table = []
    for byte in range(256):
        inverse = next((other for other in range(256) if product(byte, other) == 1), 0)
        rotated = inverse
        for _ in range(4):
            rotated = (rotated << 1 | rotated >> 7) & 0xFF
            inverse ^= rotated
        table.append(inverse ^ 0x63)
    return table


SUBSTITUTIONS = substitutions()
DOUBLED = [doubled(byte) for byte in range(256)]


class Cipher:
    """AES-256 encryption with one key, which is all that the counter mode needs."""

    ROUNDS = 14

    def __init__(self, key):
        words, factor = [list(key[place : place + 4]) for place in range(0, 32, 4)], 1
        while len(words) < 4 * (self.ROUNDS + 1):
            word = words[-1]
            if len(words) % 8 == 0:
                word = [SUBSTITUTIONS[byte] for byte in word[1:] + word[:1]]
                word[0] ^= factor
                factor = doubled(factor)
            elif len(words) % 8 == 4:
                word = [SUBSTITUTIONS[byte] for byte in word]
            words.append([a ^ b for a, b in zip(words[-8], word)])
        flat = [byte for word in words for byte in word]
        self.keys = [flat[place : place + 16] for place in range(0, len(flat), 16)]

    def block(self, data):
        state = [a ^ b for a, b in zip(data, self.keys[0])]
        for number in range(1, self.ROUNDS + 1):
            # Replaces bytes, and rotates each of the four rows by its number.
            state = [SUBSTITUTIONS[state[(place + 4 * (place % 4)) % 16]] for place in range(16)]
            if number < self.ROUNDS:
                state = self.mixed(state)
            state = [a ^ b for a, b in zip(state, self.keys[number])]
        return bytes(state)

    @staticmethod
    def mixed(state):
        result = []
        for place in range(0, 16, 4):
            a, b, c, d = state[place : place + 4]
            every = a ^ b ^ c ^ d
            result += [
                a ^ every ^ DOUBLED[a ^ b], b ^ every ^ DOUBLED[b ^ c],
                c ^ every ^ DOUBLED[c ^ d], d ^ every ^ DOUBLED[d ^ a],
            ]
        return result


def opened(key, nonce, sealed, context=b""):
    """The plain bytes of sealed ones, which end with their tag."""
    if len(sealed) < 16:
        raise Forged()
    stored, tag = sealed[:-16], sealed[-16:]
    cipher = Cipher(key)
    # Multiples of the hash's factor by every power of the field's element, for all bits of a block.
    power, powers = int.from_bytes(cipher.block(bytes(16)), "big"), []
    for _ in range(128):
        powers.append(power)
        power = power >> 1 ^ (0xE1 << 120 if power & 1 else 0)

    total = 0
    lengths = (8 * len(context)).to_bytes(8, "big") + (8 * len(stored)).to_bytes(8, "big")
    for part in (context, stored, lengths):
        for place in range(0, len(part), 16):
            bits = total ^ int.from_bytes(part[place : place + 16].ljust(16, b"\0"), "big")
            total = 0
            for index, power in enumerate(powers):
                if bits >> (127 - index) & 1:
                    total ^= power
    mask = cipher.block(nonce + (1).to_bytes(4, "big"))
    if not hmac.compare_digest(bytes(a ^ b for a, b in zip(total.to_bytes(16, "big"), mask)), tag):
        raise Forged()
    plain = bytearray()
    for number, place in enumerate(range(0, len(stored), 16)):
        stream = cipher.block(nonce + (number + 2).to_bytes(4, "big"))
        plain += bytes(a ^ b for a, b in zip(stored[place : place + 16], stream))
    return bytes(plain)


def derived(key, info):
    """HKDF-SHA256 without salt, 32 bytes long."""
    pseudorandom = hmac.digest(bytes(32), key, hashlib.sha256)
    return hmac.digest(pseudorandom, info + b"\x01", hashlib.sha256)


LOG, MANIFEST, SEGMENT, VALUES, PACK, CONTENT, BOUNDS = 1, 2, 3, 4, 5, 6, 7
BLOCK, SECTION, VALUE, PIECE, FILTER = 0, 1, 2, 3, 4


class Keys:
    """The keys that are derived from a database's key."""

    def __init__(self, key, identity):
        self.key, self.identity = key, identity

    @classmethod
    def kept(cls, secret, kept, identity):
        """The seal of the key that a superblock keeps."""
        for place in range(8, 8 + 4 * 128, 128):
            copy = kept[place : place + 128]
            given = cls.given(secret, copy)
            if given is None:
                continue
            wrapping = derived(given, b"ondol wrap")
            try:
                key = opened(wrapping, copy[24:36], copy[36:84], identity + copy[:24])
                return cls(key, identity)
            except Forged:
                continue
        raise Forged()

    def older(self, wrapped):
        """The seal of the key before this one."""
        wrapping = derived(self.key, b"ondol older")
        return Keys(opened(wrapping, wrapped[:12], wrapped[12:], self.identity), self.identity)

    def group(self, wrapped, group, first):
        """A key of a keyed group, from the file of keys."""
        context = self.identity + group.to_bytes(4, "little") + first.to_bytes(8, "little")
        wrapping = derived(self.key, b"ondol older")
        return Keys(opened(wrapping, wrapped[:12], wrapped[12:], context), self.identity)

    @staticmethod
    def given(secret, copy):
        """The app's key: bytes unchanged, a text by scrypt with the copy's parameters."""
        if copy[0] == 1 and isinstance(secret, bytes):
            return secret
        if copy[0] != 2 or not isinstance(secret, str):
            return None
        logarithm, r, p = copy[1:4]
        text = unicodedata.normalize("NFC", secret).encode()
        return hashlib.scrypt(
            text, salt=copy[8:24], n=1 << logarithm, r=r, p=p, maxmem=1 << 29, dklen=32
        )

    def proof(self, data):
        return hmac.digest(derived(self.key, b"ondol superblock"), data, hashlib.sha256)

    def file(self, kind, number, salt):
        name = self.identity + number.to_bytes(8, "little") + salt.to_bytes(8, "little")
        return FileKey(derived(self.key, b"ondol file" + name + bytes([kind])))


class FileKey:
    """The key of one file."""

    def __init__(self, key):
        self.key = key

    def unit(self, unit, offset, sealed, context=b""):
        """The sealed bytes at an offset."""
        nonce = offset.to_bytes(8, "little") + unit.to_bytes(4, "little")
        return opened(self.key, nonce, sealed, context)

    def frame(self, header, offset, sealed):
        """The payload of a frame of a log or a manifest."""
        nonce = (offset // 8).to_bytes(4, "little") + header[44:48] + header[16:20]
        return opened(self.key, nonce, sealed, header[:40])

    def record(self, sequence, group, sealed):
        """A commit's record of a keyed group."""
        context = sequence.to_bytes(8, "little") + group.to_bytes(4, "little")
        return opened(self.key, sealed[:12], sealed[12:], context)

    def part(self, offset, number, chance, sealed, context=b""):
        """The digest or a frame of a pack's entry."""
        nonce = offset.to_bytes(5, "little") + bytes([number]) + chance
        return opened(self.key, nonce, sealed, context)

    def filter(self, offset, sealed, is_apart):
        """A filter, which is sealed page by page, as filters are or, in older files, as other
        sections are."""
        unit = FILTER if is_apart else SECTION
        return b"".join(
            self.unit(unit, offset + place, sealed[place : place + 4112])
            for place in range(0, len(sealed), 4112))
