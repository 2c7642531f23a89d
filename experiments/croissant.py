"""Croissant metadata of a table.

Croissant is a vocabulary, written as JSON-LD, by which catalogues of data sets know files and fields.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_TERMS = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format",
    "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{name: {"@id": f"cr:{name}", "@type": "@json"} for name in ("data", "examples")},
    **{name: f"cr:{name}" for name in _TERMS},
}


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        kind: ``Text``, ``Integer``, ``Float`` or ``Boolean``.
        shape: The shape of an entry that is an array; ``()`` for a single value.
        description: What it is.
    """

    kind: str
    shape: tuple[int, ...] = ()
    description: str = ""


def croissant(
    file: Path, encoding: str, name: str, description: str, record: str, columns: Mapping[str, Column]
) -> dict[str, Any]:
    """Returns the metadata of a table in one file as JSON data, in the form of Croissant 1.1.

    Args:
        file: The table, which lies beside the metadata.
        encoding: Its media type.
        name: Name of the data set.
        description: What the data set is.
        record: What the rows are, in the plural.
        columns: The columns by name.
    """

    def field(name: str, column: Column) -> dict[str, Any]:
        source = {"fileObject": {"@id": "table"}, "extract": {"column": name}}
        written: dict[str, Any] = {"@type": "cr:Field", "@id": f"{record}/{name}", "name": name}
        if column.description:
            written["description"] = column.description
        if column.shape:
            written |= {"cr:isArray": True, "cr:arrayShape": ",".join(map(str, column.shape))}
        return {**written, "dataType": f"sc:{column.kind}", "source": source}

    with file.open("rb") as table:
        digest = hashlib.file_digest(table, "sha256").hexdigest()
    part = {"@type": "cr:FileObject", "@id": "table", "name": file.name, "contentUrl": file.name}
    fields = [field(*item) for item in columns.items()]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": name,
        "description": description,
        "license": "https://spdx.org/licenses/MIT.html",
        "distribution": [{**part, "encodingFormat": encoding, "sha256": digest}],
        "recordSet": [{"@type": "cr:RecordSet", "@id": record, "name": record, "field": fields}],
    }
