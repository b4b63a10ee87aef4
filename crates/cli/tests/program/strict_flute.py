"""A strict receiver of FLUTE, written from the RFCs alone: LCT (RFC 5651), ALC (RFC 5775), FLUTE
version 2 (RFC 6726) and 1 (RFC 3926), FEC building block (RFC 5052), Compact No-Code (RFC 5445).

It knows FEC Encoding ID 0 only, and ends with the first thing that the RFCs do not allow. It shares
no code with Fontana, and uses the standard library of Python only.

    strict_flute.py --group 239.1.2.3 --port 7701 --tsi 7 --flute-version 2 --into DIR
    strict_flute.py --self-test
"""

import argparse
import base64
import gzip
import hashlib
import os
import select
import socket
import struct
import sys
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree
import zlib

NAMESPACES = {
    # 3GPP TS 26.346 and DVB name the first; the second is that of RFC 3926, section 3.4.2.
    1: ("urn:IETF:metadata:2005:FLUTE:FDT", "http://www.example.com/flute"),
    # RFC 6726, section 3.4.2.
    2: ("urn:ietf:params:xml:ns:fdt",),
}
EXT_FTI, EXT_FDT, EXT_CENC = 64, 192, 193
NTP_EPOCH = 2208988800
FILE_ATTRIBUTES = {
    "TOI", "Content-Location", "Content-Length", "Transfer-Length", "Content-Type",
    "Content-Encoding", "Content-MD5", "FEC-OTI-FEC-Encoding-ID", "FEC-OTI-FEC-Instance-ID",
    "FEC-OTI-Maximum-Source-Block-Length", "FEC-OTI-Encoding-Symbol-Length",
    "FEC-OTI-Max-Number-of-Encoding-Symbols", "FEC-OTI-Scheme-Specific-Info",
}
INSTANCE_ATTRIBUTES = FILE_ATTRIBUTES - {
    "TOI", "Content-Location", "Content-Length", "Transfer-Length", "Content-MD5",
} | {"Expires", "Complete"}


class Violation(Exception):
    """Something that the RFCs do not allow."""


def require(condition, message):
    if not condition:
        raise Violation(message)


class Packet:
    """An ALC packet (RFC 5775, section 4)."""

    def __init__(self, data):
        require(len(data) >= 4, "an LCT header of less than a word")
        word, header_words, self.codepoint = struct.unpack(">HBB", data[:4])
        require(word >> 12 == 1, f"LCT version {word >> 12}")
        require(word >> 2 & 3 == 0, "reserved bits of the LCT header")
        flag_s, flag_o, flag_h = word >> 7 & 1, word >> 5 & 3, word >> 4 & 1
        self.close_session, self.close_object = bool(word & 2), bool(word & 1)
        end = header_words * 4
        cci = 4 * ((word >> 10 & 3) + 1)
        tsi, toi = 4 * flag_s + 2 * flag_h, 4 * flag_o + 2 * flag_h
        at = 4 + cci
        require(at + tsi + toi <= end <= len(data), f"an LCT header of {end} bytes")
        require(tsi > 0, "ALC requires a TSI (RFC 5775, section 2.1)")
        self.tsi = int.from_bytes(data[at:at + tsi], "big")
        at += tsi
        self.toi = int.from_bytes(data[at:at + toi], "big") if toi else None
        at += toi
        self.extensions = {}
        while at < end:
            kind = data[at]
            length = 4 if kind >= 128 else 4 * data[at + 1]
            require(0 < length <= end - at, f"a header extension {kind} of {length} bytes")
            require(kind not in self.extensions, f"two header extensions {kind}")
            self.extensions[kind] = data[at + (1 if kind >= 128 else 2):at + length]
            at += length
        self.payload = data[end:]


class Blocks:
    """The partition of an object into source blocks and symbols (RFC 5052, section 9.1)."""

    def __init__(self, length, symbol, max_block):
        require(symbol > 0 and max_block > 0, "an encoding symbol or source block of length 0")
        self.length, self.symbol = length, symbol
        total = -(-length // symbol)
        count = -(-total // max_block)
        require(count <= 1 << 16 and max_block <= 1 << 16, "too many blocks for FEC Encoding ID 0")
        small = total // count if count else 0
        large = total - small * count
        self.sizes = [small + 1] * large + [small] * (count - large)
        self.starts, start = [], 0
        for size in self.sizes:
            self.starts.append(start)
            start += size
        self.total = total

    def place(self, sbn, esi):
        """The number of a symbol in the object, and its length."""
        require(sbn < len(self.sizes), f"block {sbn} of an object of {len(self.sizes)} blocks")
        require(esi < self.sizes[sbn], f"symbol {esi} of a block of {self.sizes[sbn]}")
        number = self.starts[sbn] + esi
        is_last = number + 1 == self.total
        length = self.length - (self.total - 1) * self.symbol if is_last else self.symbol
        return number, length


class Collector:
    """The symbols of an object."""

    def __init__(self, blocks):
        self.blocks, self.symbols = blocks, {}

    def take(self, payload):
        require(len(payload) >= 4, "no FEC Payload ID")
        sbn, esi = struct.unpack(">HH", payload[:4])
        symbol = bytes(payload[4:])
        if self.blocks.length == 0:
            require((sbn, esi, symbol) == (0, 0, b""), "a symbol of an empty object")
            return
        number, length = self.blocks.place(sbn, esi)
        require(len(symbol) == length,
                f"symbol {esi} of block {sbn} has {len(symbol)} bytes, it must have {length}")
        require(self.symbols.setdefault(number, symbol) == symbol, "a symbol that has changed")

    def is_complete(self):
        return len(self.symbols) == self.blocks.total

    def bytes(self):
        return b"".join(self.symbols[number] for number in range(self.blocks.total))


def fti_of(content):
    """EXT_FTI of FEC Encoding ID 0 (RFC 5445, section 3.2; RFC 3926, section 5.1.1)."""
    require(len(content) == 14, f"an EXT_FTI of {len(content)} bytes")
    reserved, symbol, max_block = struct.unpack(">HHI", content[6:])
    require(reserved == 0, "reserved bits of EXT_FTI")
    return int.from_bytes(content[:6], "big"), symbol, max_block


def decoded(encoding, data):
    """A body without its content encoding (RFC 6726, section 3.4.3)."""
    if encoding in (None, "null"):
        return data
    if encoding == "gzip":
        return gzip.decompress(data)
    require(encoding in ("zlib", "deflate"), f"content encoding {encoding}")
    return zlib.decompress(data, 15 if encoding == "zlib" else -15)


def unsigned(text):
    require(text.isascii() and text.isdigit(), f"{text!r} is no unsigned number")
    return int(text)


class File:
    """A file of the file delivery table (RFC 6726, section 3.4.2)."""

    def __init__(self, given, defaults):
        unknown = [name for name in given if name not in FILE_ATTRIBUTES and name[0] != "{"]
        require(not unknown, f"attributes {unknown} of File")
        require("TOI" in given and "Content-Location" in given, "a File without TOI or name")
        values = {**defaults, **given}
        self.toi = unsigned(values["TOI"])
        require(self.toi > 0, "a File with TOI 0")
        self.location = values["Content-Location"]
        self.encoding = values.get("Content-Encoding")
        length = values.get("Content-Length")
        self.length = None if length is None else unsigned(length)
        transfer = values.get("Transfer-Length", length)
        require(transfer is not None, f"{self.location} without a length")
        require(self.encoding or self.length is None or unsigned(transfer) == self.length,
                f"{self.location} is not encoded, and its two lengths differ")
        require("FEC-OTI-FEC-Encoding-ID" in values, f"{self.location} without FEC Encoding ID")
        code = unsigned(values["FEC-OTI-FEC-Encoding-ID"])
        require(code == 0, f"FEC Encoding ID {code}")
        symbol = unsigned(values["FEC-OTI-Encoding-Symbol-Length"])
        max_block = unsigned(values["FEC-OTI-Maximum-Source-Block-Length"])
        self.oti = unsigned(transfer), symbol, max_block
        self.collector = Collector(Blocks(*self.oti))
        self.md5 = values.get("Content-MD5")

    def body(self):
        body = decoded(self.encoding, self.collector.bytes())
        require(self.length in (None, len(body)), f"{self.location} has {len(body)} bytes")
        if self.md5 is not None:
            actual = base64.b64encode(hashlib.md5(body).digest()).decode()
            require(actual == self.md5, f"{self.location} has the MD5 {actual}")
        return body


class Receiver:
    """The state of a session of one version of FLUTE."""

    def __init__(self, version):
        self.version, self.instances, self.files = version, {}, None

    def take(self, data):
        """A packet of the session."""
        packet = Packet(data)
        if packet.toi is None:
            require(packet.close_session, "a packet without TOI that does not close the session")
            return
        if packet.toi == 0:
            self.take_table(packet)
            return
        require(EXT_FDT not in packet.extensions, f"EXT_FDT in a packet of TOI {packet.toi}")
        file = (self.files or {}).get(packet.toi)
        if file is None or not packet.payload:
            return
        # RFC 6726, section 3.1: the codepoint is the FEC Encoding ID.
        require(packet.codepoint == 0, f"codepoint {packet.codepoint}, not the FEC Encoding ID")
        if EXT_FTI in packet.extensions:
            require(fti_of(packet.extensions[EXT_FTI]) == file.oti, "EXT_FTI is not the table's")
        file.collector.take(packet.payload)

    def take_table(self, packet):
        extension = packet.extensions.get(EXT_FDT)
        require(extension is not None, "a packet of TOI 0 without EXT_FDT")
        value = int.from_bytes(extension, "big")
        require(value >> 20 == self.version, f"FLUTE version {value >> 20}, not {self.version}")
        require(packet.codepoint == 0, f"a table of FEC Encoding ID {packet.codepoint}")
        require(EXT_FTI in packet.extensions, "a table without EXT_FTI")
        encoding = None
        if EXT_CENC in packet.extensions:
            names = {1: "zlib", 2: "deflate", 3: "gzip"}
            cenc = packet.extensions[EXT_CENC]
            require(cenc[1:] == b"\0\0" and cenc[0] in names, f"EXT_CENC {cenc!r}")
            encoding = names[cenc[0]]
        oti = fti_of(packet.extensions[EXT_FTI])
        known = self.instances.setdefault(value, (oti, encoding, Collector(Blocks(*oti))))
        require(known[:2] == (oti, encoding), "a table that has changed under its instance id")
        known[2].take(packet.payload)
        if self.files is None and known[2].is_complete():
            self.files = self.read_table(decoded(encoding, known[2].bytes()))

    def read_table(self, xml):
        root = ElementTree.fromstring(xml)
        namespace, _, name = root.tag.rpartition("}")
        require(name == "FDT-Instance", f"a root element {root.tag}")
        require(namespace[1:] in NAMESPACES[self.version], f"the namespace {namespace[1:]!r}")
        unknown = [name for name in root.attrib if name not in INSTANCE_ATTRIBUTES]
        require(not [name for name in unknown if name[0] != "{"], f"attributes {unknown}")
        require("Expires" in root.attrib, "a table without Expires")
        # NTP seconds count modulo 2^32: the era is the one that is nearest to now.
        left = (unsigned(root.attrib["Expires"]) - int(time.time()) - NTP_EPOCH) % (1 << 32)
        require(0 < left < 1 << 31, "a table that has expired")
        require(root.attrib.get("Complete", "true") in ("true", "false", "1", "0"), "Complete")
        files = {}
        for element in root:
            require(element.tag == f"{namespace}}}File", f"an element {element.tag}")
            file = File(element.attrib, root.attrib)
            require(file.toi not in files, f"TOI {file.toi} twice")
            files[file.toi] = file
        require(files, "a table without files")
        return files

    def is_complete(self):
        return self.files is not None and all(f.collector.is_complete() for f in self.files.values())


def receive(arguments):
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    listening.bind((arguments.group, arguments.port))
    membership = socket.inet_aton(arguments.group) + socket.inet_aton(arguments.interface)
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    receiver = Receiver(arguments.flute_version)
    until = time.monotonic() + arguments.timeout
    while not receiver.is_complete():
        require(time.monotonic() < until, "not complete in time")
        if select.select([listening], [], [], 0.1)[0]:
            data = listening.recv(65536)
            if Packet(data).tsi == arguments.tsi:
                receiver.take(data)
    for file in receiver.files.values():
        name = os.path.basename(urllib.parse.unquote(file.location))
        with open(os.path.join(arguments.into, name), "wb") as output:
            output.write(file.body())


def self_test():
    """That the receiver refuses what it must refuse."""
    table = ('<FDT-Instance xmlns="{namespace}" Expires="{expires}"><File TOI="1" '
             'Content-Location="a" Content-Length="5" FEC-OTI-FEC-Encoding-ID="0" '
             'FEC-OTI-Encoding-Symbol-Length="4" FEC-OTI-Maximum-Source-Block-Length="9"/>'
             '</FDT-Instance>')

    def packet(toi, extensions, payload):
        words = 4 + len(extensions) // 4
        return struct.pack(">HBBIII", 0x10A0, words, 0, 0, 7, toi) + extensions + payload

    def outcome(version=2, namespace=NAMESPACES[2][0], last=b"o", reserved=0, left=1000):
        expires = (int(time.time()) + NTP_EPOCH + left) % (1 << 32)
        xml = table.format(namespace=namespace, expires=expires).encode()
        fti = struct.pack(">BBHIHHI", EXT_FTI, 4, 0, len(xml), reserved, 1000, 1)
        fdt = struct.pack(">BBH", EXT_FDT, version << 4, 1)
        receiver = Receiver(2)
        try:
            receiver.take(packet(0, fdt + fti, b"\0\0\0\0" + xml))
            receiver.take(packet(1, b"", b"\0\0\0\0hell"))
            receiver.take(packet(1, b"", b"\0\0\0\1" + last))
            return receiver.files[1].body()
        except Violation as violation:
            return str(violation)

    cases = [
        (outcome(), b"hello"),
        (outcome(version=1), "FLUTE version 1, not 2"),
        (outcome(namespace=NAMESPACES[1][0]), f"the namespace {NAMESPACES[1][0]!r}"),
        (outcome(namespace="urn:x"), "the namespace 'urn:x'"),
        (outcome(last=b"o\0\0\0"), "symbol 1 of block 0 has 4 bytes, it must have 1"),
        (outcome(last=b""), "symbol 1 of block 0 has 0 bytes, it must have 1"),
        (outcome(reserved=1), "reserved bits of EXT_FTI"),
        (outcome(left=-1000), "a table that has expired"),
    ]
    for actual, expected in cases:
        require(actual == expected, f"{actual!r}, not {expected!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--group")
    parser.add_argument("--port", type=int)
    parser.add_argument("--interface", default="127.0.0.1")
    parser.add_argument("--tsi", type=int)
    parser.add_argument("--flute-version", type=int, choices=(1, 2), default=2)
    parser.add_argument("--into", default=".")
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    try:
        if arguments.self_test:
            self_test()
        else:
            receive(arguments)
    except Violation as violation:
        sys.exit(f"refused: {violation}")


main()
