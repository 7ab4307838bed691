"""The recurring parts of the binary format: names, value types, signatures, bounds, constant expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .binary import Cursor, Malformed
from .guest_text import escape
from .limits import PAGE_BYTES
from .shape import FOREIGN_TYPES, PLAIN_TYPES, Bounds, FunctionType, Global, Module

if TYPE_CHECKING:
    from .findings import Findings
    from .limits import ModuleLimits

__all__ = ["SectionReader"]

_PLAIN = bytes(PLAIN_TYPES)
_NUMBERS = bytes(code for code in PLAIN_TYPES if code >= 0x7C)
_FUNCREF = 0x70
_TYPED_REFERENCES = frozenset({0x63, 0x64})

_END = 0x0B
_I32_CONST, _I64_CONST, _F32_CONST, _F64_CONST = 0x41, 0x42, 0x43, 0x44
_GLOBAL_GET, _REF_NULL, _REF_FUNC = 0x23, 0xD0, 0xD2

# First byte of a type that is not a function type: name, proposal.
_TYPE_FORMS = {
    0x5F: ("struct", "gc"),
    0x5E: ("array", "gc"),
    0x50: ("sub", "gc"),
    0x4F: ("sub final", "gc"),
    0x4E: ("rec", "gc"),
    0x5D: ("cont", "stack_switching"),
    0x65: ("shared", "shared_everything_threads"),
}

# Opcodes that only a constant expression of another proposal begins with.
_FOREIGN_CONSTANTS = {0xFB: ("a GC instruction", "gc"), 0xFD: ("a vector instruction", "simd")}

_SHARED, _WIDE, _PAGE_SIZE = 0x02, 0x04, 0x08
_MEMORY_PAGES = 65_536


class SectionReader(Cursor):
    """A cursor over one section's content that notes what it finds on the way.

    Attributes:
        section: The section's standard name.
        module: What is being filled.
        partial: Set when the rest of the section is left unread on purpose; a finding says why.
    """

    __slots__ = ("_said", "findings", "limits", "module", "partial", "section")

    def __init__(
        self, cursor: Cursor, size: int, *, section: str, module: Module, limits: ModuleLimits, findings: Findings
    ) -> None:
        super().__init__(cursor.buffer, cursor.offset, cursor.offset + size)
        self.section = section
        self.module = module
        self.limits = limits
        self.findings = findings
        self.partial = False
        self._said: set[str] = set()

    def entries(self, limit: int, code: str, what: str, *, said: bool = False) -> range:
        """The indices of a section's entries that may be read: all of them, or the first ``limit`` and a finding.

        ``said``: another section made that finding already.
        """
        declared = self.u32()
        self.module.declared[self.section] = declared
        if declared > limit:
            self.partial = True
            if not said:
                self.findings.add(code, what, value=declared, limit=limit)
        return range(min(declared, limit))

    def use(self, space: str, index: int, where: str) -> None:
        """Remember the largest index into ``space``; it is checked when all sections are read."""
        known = self.module.uses.get(space)
        if known is None or index > known[0]:
            self.module.uses[space] = (index, where)

    def needs(self, feature: str, code: str, what: str, value: str | int | None = None) -> None:
        """Note a feature that is off, once for each value and section: a hostile section repeats it a million times."""
        self.module.features.add(feature)
        key = f"{code} {value}"
        if key not in self._said:
            self._said.add(key)
            self.findings.add(code, f"{what} (needs {feature})", value=value)

    def malformed(self, what: str, byte: int) -> Malformed:
        return Malformed("malformed", what, offset=self.offset - 1, value=f"0x{byte:02x}")

    def name(self, what: str) -> bytes:
        """A name's raw bytes, noted when it is too long or not UTF-8."""
        raw = self.take(self.u32(), what)
        if len(raw) > self.limits.name_bytes:
            shown = escape(raw, characters=40)
            self.findings.add("name_too_long", f"{what} '{shown}'", value=len(raw), limit=self.limits.name_bytes)
            return raw
        try:
            raw.decode()
        except UnicodeDecodeError:
            self.findings.add("name_not_utf8", what, value=escape(raw))
        return raw

    def value_type(self, where: str) -> int:
        """One value type's first byte; the heap type of a typed reference is read and dropped."""
        code = self.byte()
        if code in PLAIN_TYPES:
            if code == _FUNCREF:
                self.module.features.add("reference_types")
            return code
        if code not in FOREIGN_TYPES:
            raise Malformed("value_type", f"{where} has no known type", offset=self.offset - 1, value=f"0x{code:02x}")
        name, feature = FOREIGN_TYPES[code]
        self.needs(feature, "value_type", f"a type in {where}", name)
        if code in _TYPED_REFERENCES:
            self.s33()
        return code

    def reference_type(self, where: str) -> int:
        """What a table or an element segment holds."""
        if self.left and self.buffer[self.offset] == _FUNCREF:
            # All that WebAssembly 1.0 has here, so it needs no feature, unlike funcref as a value.
            self.offset += 1
            return _FUNCREF
        code = self.value_type(where)
        # Numbers and vectors are value types too, but no table holds them.
        if code >= 0x7B:
            raise Malformed("malformed", f"{where} of no reference type", offset=self.offset - 1, value=f"0x{code:02x}")
        return code

    def function_type(self, where: str) -> FunctionType:
        form = self.byte()
        if form != 0x60:
            name, feature = _TYPE_FORMS.get(form, (None, None))
            if name is None or feature is None:
                raise Malformed("type_form", where, offset=self.offset - 1, value=f"0x{form:02x}")
            self.module.features.add(feature)
            raise Malformed("type_form", f"{where} (needs {feature})", offset=self.offset - 1, value=name)
        module = self.module
        count, parameters = self._signature_side(where, "parameter", self.limits.parameters)
        module.most_parameters = max(module.most_parameters, count)
        count, results = self._signature_side(where, "result", self.limits.results)
        module.most_results = max(module.most_results, count)
        if count > 1:
            module.features.add("multi_value")
        return FunctionType(parameters, results)

    def short_locals(self, groups: int) -> int | None:
        """The sum of ``groups`` local declarations of two bytes each, which is nearly all; None, unread, for others.

        Added up at C speed: a module may have 200,000.
        """
        pairs = self.buffer[self.offset : min(self.offset + 2 * groups, self.end)]
        counts, codes = pairs[::2], pairs[1::2]
        # A count under 0x80 is one byte, and a number's type is one: so each pair begins where the last one ended.
        if len(codes) < groups or not counts.isascii() or codes.translate(None, _NUMBERS):
            return None
        self.offset += 2 * groups
        return sum(counts)

    def bounds(self, kind: str) -> Bounds:
        """A memory's bounds in bytes or a table's in elements; 64-bit, shared and odd-paged ones are noted and read."""
        flags = self.byte()
        if flags > (0x0F if kind == "memory" else 0x07):
            raise self.malformed(f"flags of a {kind}", flags)
        wide = bool(flags & _WIDE)
        minimum = self.u64() if wide else self.u32()
        maximum = (self.u64() if wide else self.u32()) if flags & 1 else None
        unit = 1
        if kind == "memory":
            unit = self._page_bytes() if flags & _PAGE_SIZE else PAGE_BYTES
        if wide:
            self.needs("memory64", f"{kind}64", f"a {kind} is 64-bit")
        if flags & _SHARED:
            self.needs("threads" if kind == "memory" else "shared_everything_threads", f"shared_{kind}", f"the {kind}")
        largest = maximum if maximum is not None else minimum
        if minimum > largest:
            self.findings.add("bad_bounds", f"minimum of a {kind} over its maximum", value=minimum, limit=maximum)
        elif kind == "memory" and not wide and largest * unit > _MEMORY_PAGES * PAGE_BYTES:
            self.findings.add("bad_bounds", "pages of a memory", value=largest, limit=_MEMORY_PAGES)
        return Bounds(minimum=minimum * unit, maximum=None if maximum is None else maximum * unit)

    def memory_bounds(self) -> Bounds:
        """A memory, its minimum held against the limit."""
        bounds = self.bounds("memory")
        # The declared maximum may be as large as it likes: growth is limited at run time.
        if bounds.minimum > self.limits.memory_bytes:
            self.findings.add(
                "memory_too_large", "minimum of the memory, bytes", value=bounds.minimum, limit=self.limits.memory_bytes
            )
        return bounds

    def table_bounds(self) -> Bounds:
        """A table's element type and bounds, its minimum held against the limit."""
        self.reference_type("a table's element")
        bounds = self.bounds("table")
        if bounds.minimum > self.limits.table_elements:
            self.findings.add(
                "table_too_large",
                "minimum of a table, elements",
                value=bounds.minimum,
                limit=self.limits.table_elements,
            )
        return bounds

    def global_type(self, where: str) -> Global:
        code = self.value_type(where)
        mutability = self.byte()
        if mutability > 1:
            if mutability & 0x02:
                self.module.features.add("shared_everything_threads")
            raise self.malformed(f"mutability of {where}", mutability)
        return Global(code, bool(mutability))

    def constant(self, where: str) -> tuple[int, int | None]:
        """The opcode and immediate of a constant expression of one plain instruction; a longer one ends the section."""
        opcode = self.byte()
        value: int | None = None
        if opcode == _I32_CONST:
            value = self.s32()
        elif opcode == _I64_CONST:
            value = self.s64()
        elif opcode == _F32_CONST:
            self.skip(4, "f32")
        elif opcode == _F64_CONST:
            self.skip(8, "f64")
        elif opcode == _GLOBAL_GET:
            value = self.u32()
            self.use("global", value, where)
        elif opcode == _REF_FUNC:
            self.module.features.add("reference_types")
            value = self.u32()
            self.use("function", value, where)
        elif opcode == _REF_NULL:
            self.module.features.add("reference_types")
            self._heap_type(where)
        else:
            raise self._not_constant(where, opcode)
        end = self.byte()
        if end != _END:
            self.module.features.add("extended_const")
            raise self._not_constant(f"{where}, after its first instruction,", end)
        return opcode, value

    def _signature_side(self, where: str, side: str, limit: int) -> tuple[int, bytes]:
        """How many values a signature has on one side, and their codes."""
        count = self.u32()
        if count > limit:
            self.findings.add(f"too_many_{side}s", f"{side}s of {where}", value=count, limit=limit)
        start = self.offset
        if count > self.left:
            raise self.truncated(f"{count:_} {side}s of {where}")
        # Almost always one byte a value: checked and stepped over at C speed, however many a hostile signature has.
        codes = self.buffer[start : start + count]
        if not codes.translate(None, _PLAIN):
            self.offset = start + count
            if _FUNCREF in codes:
                self.module.features.add("reference_types")
            return count, codes[: limit + 1]
        if count > limit:
            raise Malformed("value_type", f"{side}s of {where}, too many to read on", offset=start)
        return count, bytes(self.value_type(f"a {side} of {where}") for _ in range(count))

    def _page_bytes(self) -> int:
        exponent = self.u32()
        # 0 and 16 are all that the proposal has; a larger one would be a shift by a guest's number.
        if exponent not in (0, 16):
            raise Malformed("custom_page_size", "log2 of a page", offset=self.offset - 1, value=exponent)
        self.needs("custom_page_sizes", "custom_page_size", "bytes of a page", 1 << exponent)
        return 1 << exponent

    def _heap_type(self, where: str) -> None:
        code = self.byte()
        if code == _FUNCREF:
            return
        if 0x68 <= code <= 0x75 and code in FOREIGN_TYPES:
            name, feature = FOREIGN_TYPES[code]
            self.needs(feature, "value_type", f"a type in {where}", name)
            return
        self.offset -= 1
        index = self.s33()
        self.needs(
            "function_references",
            "value_type",
            f"a type in {where}",
            "concrete" if index >= 0 else f"heap type {index}",
        )

    def _not_constant(self, where: str, opcode: int) -> Malformed:
        name, feature = _FOREIGN_CONSTANTS.get(opcode, (f"opcode 0x{opcode:02x}", None))
        if feature:
            self.module.features.add(feature)
        return Malformed("const_expression", where, offset=self.offset - 1, value=name)
