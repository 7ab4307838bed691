"""What a module is made of, as far as its sections show it: plain values that the reader fills."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Bounds", "Constant", "Export", "FunctionType", "Global", "Import", "Module", "Section", "type_name"]

# Encoded value types that the ABI's features have, by name.
PLAIN_TYPES = {0x7F: "i32", 0x7E: "i64", 0x7D: "f32", 0x7C: "f64", 0x70: "funcref"}

# Those of features that are off: name, feature. `externref` is one: nothing that a module without imports is given
# could be one, and without it wasmtime needs no collector. 0x63 and 0x64 are followed by a heap type, all others stand
# alone.
FOREIGN_TYPES = {
    0x7B: ("v128", "simd"),
    0x75: ("nullcontref", "stack_switching"),
    0x74: ("nullexnref", "exceptions"),
    0x73: ("nullfuncref", "gc"),
    0x72: ("nullexternref", "gc"),
    0x71: ("nullref", "gc"),
    0x6F: ("externref", "externref"),
    0x6E: ("anyref", "gc"),
    0x6D: ("eqref", "gc"),
    0x6C: ("i31ref", "gc"),
    0x6B: ("structref", "gc"),
    0x6A: ("arrayref", "gc"),
    0x69: ("exnref", "exceptions"),
    0x68: ("contref", "stack_switching"),
    0x64: ("ref", "function_references"),
    0x63: ("ref null", "function_references"),
}


def type_name(code: int) -> str:
    """How the text format writes an encoded value type."""
    return PLAIN_TYPES.get(code) or FOREIGN_TYPES[code][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section: its standard name, or a custom section's own (escaped); its id (0 = custom); its content's size."""

    name: str
    id: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large a memory or a table starts and may grow; ``maximum`` None = not declared."""

    minimum: int
    maximum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """Something the module asks the host for. Names are escaped; ``kind`` is function, table, memory, global or tag."""

    module: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Something the module offers: its name (escaped), kind (as in `Import`), and index among its kind."""

    name: str
    kind: str
    index: int


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A signature: one byte a value, as encoded. Cut just past the limit when there are too many."""

    parameters: bytes
    results: bytes

    def __str__(self) -> str:
        shown = (", ".join(type_name(code) for code in side[:8]) for side in (self.parameters, self.results))
        cuts = (", …" if len(side) > 8 else "" for side in (self.parameters, self.results))
        return " -> ".join(f"({names}{cut})" for names, cut in zip(shown, cuts, strict=True))


@dataclass(frozen=True, slots=True)
class Constant:
    """The one instruction of a constant expression: its opcode and its immediate (None where it is not kept)."""

    opcode: int
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Global:
    """A global: encoded value type, mutability, and its initial value (None for an imported one)."""

    type: int
    mutable: bool
    initial: Constant | None = None


@dataclass(slots=True, kw_only=True)
class Module:
    """What was read of one module. Lists are bounded by the limits; ``declared`` has the counts that sections claim.

    Attributes:
        whole: The walk reached the module's end, so a section that was not seen is not there.
        partial: Names of sections that could not be read to their end, or were over a limit; each made a finding.
        declared: Section name → the count at its head.
        imported: Import kind → how many.
        imported_functions, functions: Type index of each function.
        memories: Bounds in bytes, imported ones first.
        tables: Bounds in elements, imported ones first.
        exports: Raw name, kind, index.
        uses: Index space → the largest index used and where.
        manifests: Content of each manifest section; None for one over the limit.
    """

    whole: bool = False
    sections: list[Section] = field(default_factory=list[Section])
    partial: set[str] = field(default_factory=set[str])
    declared: dict[str, int] = field(default_factory=dict[str, int])
    features: set[str] = field(default_factory=set[str])
    uses: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    imported: dict[str, int] = field(default_factory=dict[str, int])
    imports: list[Import] = field(default_factory=list[Import])
    types: list[FunctionType] = field(default_factory=list[FunctionType])
    most_parameters: int = 0
    most_results: int = 0
    imported_functions: list[int] = field(default_factory=list[int])
    functions: list[int] = field(default_factory=list[int])
    memories: list[Bounds] = field(default_factory=list[Bounds])
    tables: list[Bounds] = field(default_factory=list[Bounds])
    imported_globals: list[Global] = field(default_factory=list[Global])
    globals: list[Global] = field(default_factory=list[Global])
    exports: list[tuple[bytes, str, int]] = field(default_factory=list[tuple[bytes, str, int]])
    elements: int = 0
    largest_body_bytes: int = 0
    most_locals: int = 0
    local_groups: int = 0
    data_bytes: int = 0
    custom_bytes: int = 0
    manifests: list[bytes | None] = field(default_factory=list["bytes | None"])
