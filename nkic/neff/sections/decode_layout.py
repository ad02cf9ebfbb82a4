"""The `layout` section → the kernel's properties, tensors and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nkic.machine.memory import BUFFER_OF_CODE
from nkic.neff.container import Section
from nkic.neff.failures import Malformed
from nkic.neff.layout import ROLES, Layout
from nkic.neff.limits import INT32, INT64, Limits
from nkic.neff.records import ParameterRecord, TensorRecord
from nkic.neff.sections.streaming import Records
from nkic.neff.typed import array, dtype_of, fields, integer, integers, kind_of, text


class LayoutReader:
    """Fills the tables of one file. `names` holds each tensor's name and place, if known."""

    def __init__(self, names: Sequence[tuple[str, int]], limits: Limits) -> None:
        self._names = names
        self._limits = limits
        self.kernel: tuple[str, str, int, int, int] = ("", "", 0, 0, 0)
        self.tensors: list[TensorRecord] = []
        self.inputs: list[ParameterRecord] = []
        self.outputs: list[ParameterRecord] = []

    def read(self, section: Section) -> None:
        """Decode `section`: one kernel, then records in the order of their kinds."""
        limits = self._limits
        count = 1 + limits.tensors + 2 * limits.parameters
        records = Records(section, count=count, width=16, largest=limits.record_bytes)
        kinds = (self._kernel, self._tensor, self._input, self._output, self._placed)
        previous = -1
        with records.located():
            for record in records:
                kind = kind_of(record, len(kinds))
                order = Layout.TENSOR if kind == Layout.PLACED else kind
                if order < previous or (kind == Layout.KERNEL) != (previous < 0):
                    raise Malformed(f"a record of kind {kind} is not allowed here")
                previous = order
                kinds[kind](record)
            if previous < 0:
                raise Malformed("there is no kernel")

    def _kernel(self, record: Any) -> None:
        name, target, cores, semaphores, registers = fields(record, 5, "the kernel")
        limits = self._limits
        self.kernel = (
            text(name, limits.string_bytes, "the kernel's name"),
            text(target, limits.string_bytes, "the target"),
            integer(cores, 1, INT32, "the number of cores"),
            integer(semaphores, 0, limits.semaphores, "the number of semaphores"),
            integer(registers, 0, limits.registers, "the number of registers"),
        )

    def _tensor(self, record: Any) -> None:
        dtype, shape, buffer, core, role, partition, byte = fields(record, 7, "a tensor")
        name, place = self._name()
        self.tensors.append(
            TensorRecord(
                name,
                dtype_of(dtype),
                self._shape(shape),
                BUFFER_OF_CODE[integer(buffer, 0, len(BUFFER_OF_CODE) - 1, "a buffer")],
                integer(core, -1, INT32, "a tensor's core"),
                ROLES[integer(role, 0, len(ROLES) - 1, "a tensor's role")],
                integer(partition, 0, INT32, "a tensor's partition"),
                integer(byte, 0, INT64, "a tensor's byte"),
                place,
            )
        )

    def _placed(self, record: Any) -> None:
        back, step = fields(record, 2, "a tensor like another")
        earlier = self.tensors[
            -integer(back, 1, len(self.tensors), "a distance to an earlier tensor")
        ]
        byte = earlier.byte + integer(step, -INT64, INT64, "a step of bytes")
        integer(byte, 0, INT64, "a tensor's byte")
        name, place = self._name()
        self.tensors.append(earlier._replace(name=name, byte=byte, place=place))

    def _name(self) -> tuple[str, int]:
        """Return the name and place of the next tensor."""
        limits, index = self._limits, len(self.tensors)
        if index >= limits.tensors:
            raise Malformed(f"more than {limits.tensors:,} tensors", "artifact-limit")
        return self._names[index] if index < len(self._names) else (f"t{index}", -1)

    def _shape(self, value: Any) -> tuple[int, ...]:
        limits = self._limits
        shape = array(value, 0, limits.rank, "a tensor's shape", slug="artifact-limit")
        integers(shape, 1, INT64, "a tensor's dimension")
        if shape and max(shape) > limits.dimension:
            text = f"a dimension of {max(shape):,}; the limit is {limits.dimension:,}"
            raise Malformed(text, "artifact-limit")
        return shape

    def _input(self, record: Any) -> None:
        self._parameter(record, self.inputs)

    def _output(self, record: Any) -> None:
        self._parameter(record, self.outputs)

    def _parameter(self, record: Any, into: list[ParameterRecord]) -> None:
        limits = self._limits
        if len(into) >= limits.parameters:
            raise Malformed(f"more than {limits.parameters} parameters", "artifact-limit")
        name, tensor = fields(record, 2, "a parameter")
        name = text(name, limits.string_bytes, "a parameter's name")
        into.append(
            ParameterRecord(name, integer(tensor, 0, len(self.tensors) - 1, "a parameter's tensor"))
        )
