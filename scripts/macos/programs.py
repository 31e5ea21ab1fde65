"""Looks at programs for macOS without a Mac: is each one for the processor, does everything that it wants from the system come from
what every Mac has, and does its signature hold? A Mac does not start a program for Apple silicon whose signature is missing or wrong.

Usage: programs.py TARGET LIBSYSTEM.tbd FRAMEWORKS PROGRAM…    exit 1 and one line for each fault
"""

import hashlib
import pathlib
import re
import struct
import sys

PROCESSORS = {"aarch64": 0x0100000C, "x86_64": 0x01000007}
THIN_64, PROGRAM = 0xFEEDFACF, 2
SEGMENT_64, SYMBOLS, SIGNATURE, BUILD_VERSION, MINIMUM_MACOS = 0x19, 0x2, 0x1D, 0x32, 0x24
DYLD_INFO, CHAINED_FIXUPS = 0x22, 0x34
# Loaded, loaded if it is there, passed on.
LIBRARIES = {0xC, 0x18, 0x1F}


class Fault(Exception):
    """What is wrong with a program."""


def text_at(data, start):
    return data[start : data.index(b"\0", start)].decode()


def uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def bound_by_opcodes(data):
    """The symbols of a list of binding opcodes (<mach-o/loader.h>), each with the number of its library."""
    found, at, library, name = set(), 0, 0, ""
    while at < len(data):
        opcode, low = data[at] & 0xF0, data[at] & 0x0F
        at += 1
        if opcode == 0x10:
            library = low
        elif opcode == 0x20:
            library, at = uleb(data, at)
        elif opcode == 0x30:
            library = low - 16 if low else 0
        elif opcode == 0x40:
            name = text_at(data, at)
            at = data.index(b"\0", at) + 1
        elif opcode in (0x60, 0x70, 0x80, 0xA0):
            _, at = uleb(data, at)
        elif opcode == 0xC0:
            _, at = uleb(data, at)
            _, at = uleb(data, at)
        elif opcode == 0xD0:
            raise Fault("its bindings are in a form that is not read here")
        if opcode in (0x90, 0xA0, 0xB0, 0xC0):
            found.add((name, library))
    return found


def bound_by_chains(data):
    """The same of the newer form, dyld_chained_fixups_header."""
    _, _, imports, symbols, count, form, symbols_form = struct.unpack_from("<7I", data)
    if form != 1 or symbols_form != 0:
        raise Fault("its bindings are in a form that is not read here")
    found = set()
    for number in range(count):
        (entry,) = struct.unpack_from("<I", data, imports + 4 * number)
        library = entry & 0xFF
        found.add((text_at(data, symbols + (entry >> 9)), library - 256 if library > 240 else library))
    return found


def check_signature(data, start):
    """Every page of the file must have the hash that the signature's code directory says."""
    _, _, count = struct.unpack_from(">3I", data, start)
    places = dict(struct.unpack_from(">2I", data, start + 12 + 8 * number) for number in range(count))
    if 0 not in places:
        raise Fault("its signature has no code directory")
    directory = start + places[0]
    hashes, slots, limit = (struct.unpack_from(">I", data, directory + at)[0] for at in (16, 28, 32))
    size, kind, _, page = struct.unpack_from("4B", data, directory + 36)
    if (size, kind) != (32, 2):
        raise Fault("its signature is not by SHA-256")
    if limit != start:
        raise Fault("its signature does not cover all that is before it")
    page = 1 << page
    for slot in range(slots):
        expected = data[directory + hashes + 32 * slot :][:32]
        if hashlib.sha256(data[slot * page : min((slot + 1) * page, limit)]).digest() != expected:
            raise Fault(f"its signature does not hold: page {slot}")


def look_at(data, processor):
    """The oldest macOS, the libraries and the bound symbols with their libraries' numbers."""
    magic, machine, _, kind, commands = struct.unpack_from("<5I", data)
    if magic != THIN_64:
        raise Fault("it is no Mach-O file of 64 bits")
    if machine != PROCESSORS[processor]:
        raise Fault(f"it is not for {processor}")
    if kind != PROGRAM:
        raise Fault("it is no program")
    libraries, bound, oldest, signature = [], set(), None, None
    at = 32
    for _ in range(commands):
        command, length = struct.unpack_from("<2I", data, at)
        command &= 0x7FFFFFFF
        if command in LIBRARIES:
            libraries.append(text_at(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == BUILD_VERSION:
            oldest = struct.unpack_from("<I", data, at + 12)[0]
        elif command == MINIMUM_MACOS:
            oldest = struct.unpack_from("<I", data, at + 8)[0]
        elif command == DYLD_INFO:
            parts = struct.unpack_from("<10I", data, at + 8)
            # Bindings, weak ones, lazy ones.
            for start, size in (parts[2:4], parts[4:6], parts[6:8]):
                bound |= bound_by_opcodes(data[start : start + size])
        elif command == CHAINED_FIXUPS:
            start, size = struct.unpack_from("<2I", data, at + 8)
            bound |= bound_by_chains(data[start : start + size])
        elif command == SIGNATURE:
            (signature,) = struct.unpack_from("<I", data, at + 8)
        at += length
    if oldest is None:
        raise Fault("it does not say for which macOS it is")
    if signature is not None:
        check_signature(data, signature)
    elif processor == "aarch64":
        raise Fault("it is not signed")
    return oldest, libraries, bound


def names_in(tbd):
    return set(re.findall(r"[_$\w.]+", tbd.read_text()))


def main():
    target, system, frameworks, *programs = sys.argv[1:]
    processor = target.split("-")[0]
    allowed = {"/usr/lib/libSystem.B.dylib": names_in(pathlib.Path(system))}
    for stub in pathlib.Path(frameworks).glob("*/*.tbd"):
        place = re.search(r"^install-name: *'?([^'\n]+)", stub.read_text(), re.MULTILINE)
        allowed[place.group(1)] = names_in(stub)
    faults = 0
    for path in map(pathlib.Path, programs):
        data = path.read_bytes()
        try:
            oldest, libraries, bound = look_at(data, processor)
            foreign = [name for name in libraries if name not in allowed]
            if foreign:
                raise Fault(f"not every Mac has what it links: {', '.join(foreign)}")
            if not bound:
                raise Fault("it wants nothing of the system, which cannot be")
            counts = dict.fromkeys(libraries, 0)
            for name, number in sorted(bound):
                # 0 and below: found in itself, or wherever it may be when the program starts.
                if not 0 < number <= len(libraries):
                    raise Fault(f"{name} is bound to no library")
                library = libraries[number - 1]
                if name not in allowed[library]:
                    raise Fault(f"{library} is not known to have {name}")
                counts[library] += 1
        except Fault as fault:
            print(f"  {path.name}: {fault}")
            faults += 1
            continue
        wants = ", ".join(f"{count} of {pathlib.PurePath(library).name}" for library, count in counts.items())
        print(
            f"  {path.name}: {len(data)} bytes, {processor}, macOS {oldest >> 16}.{oldest >> 8 & 255} or newer; {wants}; "
            + ("the signature holds" if processor == "aarch64" else "may be unsigned")
        )
    sys.exit(1 if faults else 0)


main()
