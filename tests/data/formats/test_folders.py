"""A folder with a sub-folder for each class."""

import os

import pytest
from mirrorlda.readers import BadFileError, BadRowError, read
from reading import COMPRESSIONS, joined


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_folder_of_classes(tmp_path, compression):
    for name, text in [("neg/b.txt", "Bad."), ("pos/deep/c.txt", "Good."), ("neg/a.txt", "Sad.\n"), ("top.txt", "None.")]:
        path = tmp_path / (name + compression)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(COMPRESSIONS[compression](text.encode()))
    (tmp_path / ".hidden").write_bytes(b"\xff")
    texts, columns, lines = joined(read(tmp_path, columns=("folder", "path")))
    assert texts == ["Sad.\n", "Bad.", "Good.", "None."]
    assert columns["folder"] == ["neg", "neg", "pos", None]
    assert columns["path"] == [name + compression for name in ("neg/a.txt", "neg/b.txt", "pos/deep/c.txt", "top.txt")]
    assert lines == [1, 2, 3, 4]


def test_folder_faults(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.txt").write_bytes(b"one\ntw\xffo")
    (tmp_path / "a" / "2.txt").write_bytes(b"fine")
    os.mkfifo(tmp_path / "a" / "3.txt")
    with pytest.raises(BadRowError, match=r"1.txt:2:3: found 0xff \(byte 6 of the file\), which is not UTF-8"):
        list(read(tmp_path))
    reading = read(tmp_path, bad_rows="skip")
    with pytest.warns(UserWarning, match="2 bad rows skipped, 1 read"):
        assert joined(reading)[0] == ["fine"]
    assert reading.skipped.reasons[1].endswith("3.txt:1: found what is not a regular file, expected a text file")
    with pytest.raises(BadFileError, match="no column 'class'; there are 'folder', 'path'"):
        list(read(tmp_path, columns=["class"]))
