"""Files of arrays: what comes back, what is refused, and that a file is there in full or not at all."""

import json
import os

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from forging import forge, parts
from numpy.testing import assert_array_equal

from mirrorlda.data.files import tensors
from mirrorlda.data.files.tensors import VERSION, FileFormatError

ARRAYS = {
    "f4": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3),
    "f8.part": np.array([np.pi, -0.0, np.inf, np.nan]),
    "i4": np.array([-1, 2], np.int32),
    "u1": np.arange(5, dtype=np.uint8),
    "flags": np.array([[True], [False]]),
    "nothing": np.zeros((0, 4)),
    "number": np.array(7, np.int64),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}
META = {"text": "a\u00e9\ud800\n", "numbers": [1, -2.5, 1e-300, 2**70], "none": None, "flag": True, "inner": {"a": {}}}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.safetensors"
    tensors.write(path, ARRAYS, META, "example")
    return path


def test_what_is_written_comes_back(path):
    arrays, meta = tensors.read(path, "example")
    assert meta == META
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable


def test_same_contents_give_the_same_bytes(path, tmp_path):
    tensors.write(tmp_path / "again", ARRAYS, META, "example")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_safetensors_library_reads_it(path):
    arrays = safetensors.numpy.load_file(path)
    assert json.loads(arrays.pop("json").tobytes()) == META
    for name, array in ARRAYS.items():
        assert_array_equal(arrays[name], array)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["kind"] == "example"
        assert file.metadata()["version"] == str(VERSION)


def test_every_flipped_bit_is_found(path):
    raw = path.read_bytes()
    for place in range(len(raw)):
        altered = bytearray(raw)
        altered[place] ^= 1 << (place % 8)
        path.write_bytes(altered)
        with pytest.raises(FileFormatError, match=r"file\.safetensors"):
            tensors.read(path, "example")


def test_every_shorter_and_longer_file_is_refused(path):
    raw = path.read_bytes()
    for length in range(0, len(raw), 7):
        path.write_bytes(raw[:length])
        with pytest.raises(FileFormatError):
            tensors.read(path, "example")
    path.write_bytes(raw + b"\0")
    with pytest.raises(FileFormatError, match="bytes of arrays, expected"):
        tensors.read(path, "example")


def entry(**changes):
    """A change of the header's entry of the array i4."""

    def change(header):
        header["i4"].update(changes)

    return change


def metadata(**changes):
    def change(header):
        header["__metadata__"].update(changes)

    return change


def renamed(name):
    def change(header):
        header[name] = header.pop("u1")

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (entry(shape=[2**61, 2**61]), "shape"),
        (entry(shape=[10**12]), "expected"),
        (entry(shape=[-2]), "shape"),
        (entry(shape=[True, 2]), "shape"),
        (entry(shape=[0, 2**61, 8]), "shape"),
        (entry(shape=[1] * 9), "shape"),
        (entry(shape="2"), "shape"),
        (entry(shape={}), "shape"),
        (entry(dtype="F8_E4M3"), "dtype"),
        (entry(dtype=["I32"]), "dtype"),
        (entry(data_offsets=[0, 8]), "at a list"),
        (entry(data_offsets=[2**80, 2**80 + 8]), "at a list"),
        (entry(data_offsets=None), "at None"),
        (entry(more=1), "dtype, shape and data_offsets"),
        (lambda header: header.update(i4=3), "dtype, shape and data_offsets"),
        (lambda header: header.pop("i4"), "expected"),
        (lambda header: header.pop("json"), "expected"),
        (lambda header: header.pop("__metadata__"), "no mark"),
        (metadata(format="pt"), "no mark"),
        (metadata(version=str(VERSION + 1)), "newer mirrorlda"),
        (metadata(version="1e9"), "whole number"),
        (metadata(version="9" * 5000), "whole number"),
        (metadata(kind="model"), "kind 'model', expected 'example'"),
        (metadata(more="x"), "metadata"),
        (renamed("../../etc/passwd"), "named"),
        (renamed("a/b"), "named"),
        (renamed(""), "named"),
        (renamed("a\n"), "named"),
        (renamed("\u0430"), "named"),
        (renamed("a" * 129), "named"),
    ],
)
def test_a_header_that_lies_is_refused(path, change, message):
    header, data = parts(path)
    change(header)
    forge(path, header, data)
    with pytest.raises(FileFormatError, match=message) as caught:
        tensors.read(path, "example")
    assert len(str(caught.value)) < 600


def test_forged_files_are_read_where_nothing_else_is_wrong(path):
    forge(path, *parts(path))
    assert tensors.read(path, "example")[1] == META


@pytest.mark.parametrize(
    "text",
    [
        *["", "{", "[1]", "3", '{"a":NaN}', '{"a":-Infinity}', '{"a":1e999}', '{"a":1,"a":2}', '{"a":' + "9" * 5000 + "}"],
        *["[" * 10**5, '{"a":' * 10**5, '{"a":' + "[" * 10**5 + "]" * 10**5 + "}", "\udc80"],
    ],
    ids=range(13),
)
def test_hostile_json_is_refused(tmp_path, text):
    data = text.encode("utf-8", "surrogateescape")
    header = {"__metadata__": {"format": "mirrorlda", "kind": "example", "version": "1", "checksum": ""}}
    header["json"] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    forge(tmp_path / "file", header, data)
    with pytest.raises(FileFormatError, match="JSON"):
        tensors.read(tmp_path / "file", "example")


def test_a_huge_header_is_refused_without_reading_it(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.write((2**40).to_bytes(8, "little"))
        file.truncate(2**41)
    with pytest.raises(FileFormatError, match="header"):
        tensors.read(tmp_path / "file", "example")


def test_booleans_are_0_or_1(path):
    header, data = parts(path)
    place = header["flags"]["data_offsets"][0]
    forge(path, header, data[:place] + b"\x02" + data[place + 1 :])
    with pytest.raises(FileFormatError, match="boolean"):
        tensors.read(path, "example")


def test_directories_and_pipes_are_refused_at_once(tmp_path):
    with pytest.raises(FileFormatError, match="directory"):
        tensors.read(tmp_path, "example")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileFormatError, match="device"):
        tensors.read(tmp_path / "pipe", "example")
    with pytest.raises(FileNotFoundError):
        tensors.read(tmp_path / "missing", "example")
    with pytest.raises(IsADirectoryError):
        tensors.write(tmp_path, {}, {}, "example")


@pytest.mark.parametrize("name", ["json", "../x", "", "a b", "x" * 129, "__metadata__/"])
def test_names_that_cannot_be_are_not_written(tmp_path, name):
    with pytest.raises(ValueError, match="named"):
        tensors.write(tmp_path / "file", {name: np.zeros(1)}, {}, "example")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.zeros(1, complex), np.zeros(1, "M8[s]")])
def test_arrays_that_cannot_be_are_not_written(tmp_path, array):
    with pytest.raises(ValueError, match="dtype"):
        tensors.write(tmp_path / "file", {"a": array}, {}, "example")


def test_json_that_cannot_be_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        tensors.write(tmp_path / "file", {}, {"a": float("nan")}, "example")
    with pytest.raises(ValueError, match="belong in arrays"):
        tensors.write(tmp_path / "file", {}, {"a": "x" * (16 << 20)}, "example")


@pytest.mark.parametrize("checksum", [3, None, "0" * 63, "G" * 64])
def test_a_checksum_that_is_none_is_refused(path, checksum):
    header, data = parts(path)
    header["__metadata__"]["checksum"] = checksum
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    with pytest.raises(FileFormatError, match="checksum"):
        tensors.read(path, "example")
