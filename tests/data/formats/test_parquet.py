"""Parquet: types of columns, and files that are damaged."""

import pyarrow as pa
from reading import damage, fault, joined, parquet_bytes, read_bytes


def test_columns_of_parquet_types():
    table = pa.table(
        {
            "text": pa.array(["a", "b"]).dictionary_encode(),
            "large": pa.array(["a", None], pa.large_string()),
            "float": pa.array([1.5, float("nan")], pa.float32()),
            "yes": [True, None],
            "when": pa.array([0, 1], pa.timestamp("s")),
        }
    )
    data = parquet_bytes(table)
    texts, columns, lines = joined(read_bytes(data, "parquet", text="text", columns=["large", "float", "yes"]))
    assert (texts, lines) == (["a", "b"], [1, 2])
    assert columns == {"large": ["a", None], "float": [1.5, None], "yes": [True, None]}
    assert "the column 'when' holds timestamp[ms]" in damage(data, "parquet", columns=["when"])
    assert "the column 'float' holds float, expected text" in damage(data, "parquet", text="float")
    assert "the column 'large' holds large_string, expected number" in damage(data, "parquet", columns={"large": "number"})
    assert fault(data, "parquet", text="large") == (2, None, "in column 'large': found nothing, expected text")


def test_damaged_parquet():
    data = parquet_bytes([{"text": f"text {number}", "stars": number} for number in range(1000)])
    for cut in (0, 3, 100, len(data) // 2, len(data) - 1):
        assert damage(data[:cut], "parquet", text="text").startswith("not Parquet, cut short or damaged, after 0 rows")
    binary = pa.array([b"a", b"\xff\xfe", b"c"]).view(pa.string())
    data = parquet_bytes(pa.table({"text": binary}))
    assert fault(data, "parquet", text="text")[0::2] == (
        2,
        "in column 'text': found text that is not UTF-8 at byte 0 of it: invalid start byte",
    )
