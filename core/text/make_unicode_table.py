"""Write core/text/unicode_table.hpp from the files of the Unicode Character Database.

python core/text/make_unicode_table.py /usr/share/unicode > core/text/unicode_table.hpp
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

N_CODE_POINTS = 0x110000
BLOCK = 128
WORD, UNSTABLE, CASED, CASE_IGNORABLE, ASSIGNED = 1, 2, 4, 8, 16
HANGUL = range(0xAC00, 0xD7A4)


def code_points(text: str) -> range:
    first, _, last = text.strip().partition("..")
    return range(int(first, 16), int(last or first, 16) + 1)


def rows(path: Path) -> Iterator[list[str]]:
    """The fields of each line that is not a comment."""
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.partition("#")[0].split(";")]
        if fields != [""]:
            yield fields


def members(path: Path, *wanted: str) -> set[int]:
    """Code points that have the property `wanted[0]`, with the value `wanted[1]` if there is one."""
    return {c for first, *rest in rows(path) if tuple(rest[: len(wanted)]) == wanted for c in code_points(first)}


def characters(path: Path) -> Iterator[tuple[range, list[str]]]:
    """UnicodeData.txt: code points and their fields, a range of ideographs as one."""
    begin = 0
    for first, name, *fields in rows(path):
        if name.endswith(", First>"):
            begin = int(first, 16)
        elif name.endswith(", Last>"):
            yield range(begin, int(first, 16) + 1), fields
        else:
            yield code_points(first), fields


def array(type_name: str, name: str, items: list[str]) -> str:
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > 138:
            lines.append(line)
            line = ""
        line += item + ","
    return f"inline constexpr {type_name} {name}[] = {{\n" + "\n".join([*lines, line]) + "};\n"


def table(ucd: Path) -> str:
    records = [(0, 0, 0)] * N_CODE_POINTS  # flags, combining class, lower-case mapping minus the code point
    decomposed: dict[int, list[int]] = {}
    for points, (category, combining, _, decomposition, *rest) in characters(ucd / "UnicodeData.txt"):
        flags = ASSIGNED | (WORD if category[0] in "LMN" else 0)
        for c in points:
            lower = rest[7]
            records[c] = flags, int(combining), int(lower, 16) - c if lower else 0
        if decomposition and not decomposition.startswith("<"):
            decomposed[points[0]] = [int(c, 16) for c in decomposition.split()]

    normalization, core = ucd / "DerivedNormalizationProps.txt", ucd / "DerivedCoreProperties.txt"
    excluded = members(normalization, "Full_Composition_Exclusion")
    composed = {tuple(parts): c for c, parts in decomposed.items() if c not in excluded}
    maybe, never = members(normalization, "NFC_QC", "M"), members(normalization, "NFC_QC", "N")
    for points, flag in (
        (maybe | never | {c for c, record in enumerate(records) if record[1]}, UNSTABLE),
        (members(core, "Cased"), CASED),
        (members(core, "Case_Ignorable"), CASE_IGNORABLE),
    ):
        for c in points:
            records[c] = (records[c][0] | flag, *records[c][1:])

    def fully(c: int) -> list[int]:
        return [part for piece in decomposed.get(c, []) for part in fully(piece)] or [c]

    # What core/text/unicode.cpp takes for granted.
    assert all(len(parts) == 2 for parts in composed), "only pairs compose"
    for c, record in enumerate(records):
        assert record[0] & UNSTABLE or fully(c)[0] not in maybe, f"U+{c:04X} may compose with the character before it"
        assert record[0] & WORD == records[c + record[2]][0] & WORD, f"U+{c:04X} is a letter in one case only"
    assert not any(records[c][0] & UNSTABLE for c in HANGUL)
    lowered = {int(c, 16): lower for c, lower, _, _, *rest in rows(ucd / "SpecialCasing.txt") if not rest[0]}
    assert [c for c, lower in lowered.items() if lower not in (f"{c:04X}", f"{c + records[c][2]:04X}")] == [0x130]
    assert lowered[0x130] == "0069 0307"

    distinct = sorted(set(records))
    numbers = {record: number for number, record in enumerate(distinct)}
    blocks: dict[tuple[int, ...], int] = {}
    stage1 = []
    for begin in range(0, N_CODE_POINTS, BLOCK):
        block = tuple(numbers[record] for record in records[begin : begin + BLOCK])
        stage1.append(blocks.setdefault(block, len(blocks)))
    assert len(distinct) <= 256
    assert len(blocks) <= 65536

    pool: list[int] = []
    decompositions = []
    for c in sorted(decomposed):
        parts = fully(c)
        decompositions.append(f"{{{c},{len(pool)},{len(parts)}}}")
        pool += parts

    version = next(line for line in core.read_text(encoding="utf-8").splitlines()).removesuffix(".txt").rpartition("-")[2]
    return "".join(
        [
            f"// Made by core/text/make_unicode_table.py from the Unicode Character Database {version}; do not edit.\n",
            "// Copyright (c) Unicode, Inc.; terms of use: https://www.unicode.org/terms_of_use.html\n",
            "#pragma once\n\n#include <cstdint>\n\nnamespace mirrorlda::unicode {\n\n",
            f'inline constexpr char kVersion[] = "{version}";\n',
            f"inline constexpr uint8_t kWord = {WORD}, kUnstable = {UNSTABLE}, kCased = {CASED}, ",
            f"kCaseIgnorable = {CASE_IGNORABLE}, kAssigned = {ASSIGNED};\n",
            "struct Record {\n  uint8_t flags, combining;\n  int32_t lower;\n};\n",
            "struct Decomposition {\n  uint32_t composed;\n  uint16_t begin, size;\n};\n",
            "struct Composition {\n  uint32_t first, second, composed;\n};\n",
            array("Record", "kRecords", [f"{{{a},{b},{c}}}" for a, b, c in distinct]),
            array("uint16_t" if len(blocks) > 256 else "uint8_t", "kBlocks", [str(number) for number in stage1]),
            array("uint8_t", "kRecordOf", [str(number) for block in blocks for number in block]),
            array("Decomposition", "kDecompositions", decompositions),
            array("uint32_t", "kDecomposed", [str(c) for c in pool]),
            array("Composition", "kCompositions", [f"{{{a},{b},{composed[a, b]}}}" for a, b in sorted(composed)]),
            "\n}  // namespace mirrorlda::unicode\n",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(table(Path(sys.argv[1])))
