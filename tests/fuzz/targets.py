"""What is fuzzed: each target takes any bytes and lets only the failures out that it names.

The files in `seeds/<target>/` are where fuzzing starts from; those called `found_…` once broke
nkic. `tests/fuzz/test_seeds.py` gives every seed to its target, without a fuzzer.
"""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from math import prod
from pathlib import Path

import msgpack

from nkic.artifact import container
from nkic.artifact.archive import Opened
from nkic.artifact.arrays import read_npz
from nkic.artifact.format import Limits
from nkic.artifact.read import load
from nkic.base.diagnostics import ArtifactFailed, CompileFailed, InputFailed, UsageFailed
from nkic.base.source import SourceFile
from nkic.compiler import pipeline
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.request import parse_options, request_for
from nkic.source.nodes import walk
from nkic.source.parse import parse
from nkic.source.parser import decode

SEEDS = Path(__file__).parent / "seeds"
SMALL = Limits(file_bytes=1 << 20)


def parse_text(data: bytes) -> None:
    """The parser: any bytes as a source file. Accepted files have valid places."""
    with suppress(CompileFailed):
        source = decode(data, "k.py")
        tree = parse.__wrapped__(source)
        last = len(source.lines) + 1
        for node in walk(tree):
            span = node.span
            assert 1 <= span.line <= span.end_line <= last, node
            assert span[1:3] <= span[3:5], node


def read_artifact(data: bytes) -> None:
    """The reader and verifier of artifacts, after the hashes, which are corrected."""
    for one in (data, _with_right_hashes(data)):
        with suppress(ArtifactFailed):
            load(one, limits=SMALL)


def _with_right_hashes(data: bytes) -> bytes:
    """Return `data` with the right hashes of its sections, as an attacker would write it."""
    try:
        _, head, sections = msgpack.unpackb(data, strict_map_key=False)
        body = head[: -container.DIGEST_BYTES]
        fields = container.decode(body + sha256(body).digest(), 0, SMALL)
        named = dict(zip([entry.name for entry in fields.sections], sections, strict=True))
        entries = tuple(
            entry._replace(length=len(named[entry.name]), sha256=sha256(named[entry.name]).digest())
            for entry in fields.sections
        )
        fields = fields._replace(sections=entries, id=container.program_id(named))
        return container.pack(fields, named, SMALL)
    except Exception:  # not even a header: `load` says so too
        return data


def read_arrays(data: bytes) -> None:
    """The reader of npz files: the list of arrays, and then each array."""
    with suppress(InputFailed):
        for offer in read_npz(Opened(BytesIO(data), len(data)), "data.npz").values():
            if prod(offer.shape) <= 1 << 20:
                offer.load()


def read_program_text(data: bytes) -> None:
    """The reader of printed programs, as `nkic x.ir` uses it."""
    text = SourceFile("k.ir", data.decode("utf-8", "replace"))
    with suppress(CompileFailed):
        pipeline.compile_text(text, lambda path: None, CompileOptions(last="specialise"))


def compile_kernel(data: bytes) -> None:
    """Parse, resolve and specialise: kernel source, on the public way of compiling."""
    with suppress(CompileFailed, UsageFailed):
        source = decode(data, "k.py")
        request = request_for(source, parse_options(), {})
        options = CompileOptions(last="specialise", seconds=20)
        pipeline.compile_source(source, request, lambda name, importer: None, options)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "parse": parse_text,
    "neff": read_artifact,
    "npz": read_arrays,
    "ir": read_program_text,
    "kernel": compile_kernel,
}
