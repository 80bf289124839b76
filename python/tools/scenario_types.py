"""Writes python/udccp/lab/scenario/ from docs/reference/scenario.schema.json.

Usage: python python/tools/scenario_types.py [--check]
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs/reference/scenario.schema.json"
OUT = ROOT / "python/udccp/lab/scenario"
SOURCE = "docs/reference/scenario.schema.json"
MADE = f"Made from {SOURCE} by python/tools/scenario_types.py; do not edit."

TABLE = "from udccp.lab.scenario.table import Table"

BASE = f'''"""Quantities, which are texts with their units as in files.

{MADE}
"""

from __future__ import annotations

from typing import TypeAlias
'''


def type_of(schema: dict[str, Any]) -> str:
    """The Python type of a schema."""
    match schema:
        case {"$ref": ref}:
            return str(ref).rsplit("/", 1)[1]
        case {"enum": words}:
            return f"Literal[{', '.join(json.dumps(word) for word in words)}]"
        case {"anyOf": several}:
            return " | ".join(type_of(one) for one in several)
        case {"type": "array", "items": items}:
            return f"Sequence[{type_of(items)}]"
        case {"type": "integer"}:
            return "int"
        case {"type": "number"}:
            return "float"
        case {"type": "boolean"}:
            return "bool"
        case _:
            return "str"


def paragraph(text: str, indent: int, mark: str = "") -> str:
    """Wrap text, below a parameter or as a comment."""
    pad = " " * indent + mark
    return textwrap.fill(f"{text}.", 100, initial_indent=pad, subsequent_indent=pad)


def class_of(name: str, schema: dict[str, Any]) -> str:
    """Format a table as a dataclass."""
    properties: dict[str, dict[str, Any]] = schema["properties"]
    fixed = {key: of["const"] for key, of in properties.items() if "const" in of}
    needed = [key for key in schema["required"] if key not in fixed]
    optional = [key for key in properties if key not in needed and key not in fixed]
    names = {f"{key}_": key for key in properties if keyword.iskeyword(key)}
    field = {key: f"{key}_" if keyword.iskeyword(key) else key for key in properties}
    lines = ["", "@dataclass(frozen=True, kw_only=True)", f"class {name}(Table):"]
    lines += [f'    """{schema["description"]}.']
    if needed or optional:
        lines += ["", "    Parameters", "    ----------"]
        for key in needed + optional:
            lines += [f"    {field[key]}", paragraph(properties[key]["description"], 8)]
    lines += ['    """', ""]
    if names:
        lines.append(f"    _names: ClassVar[Mapping[str, str]] = {json.dumps(names)}")
    if fixed:
        lines.append(f"    _fixed: ClassVar[Mapping[str, Any]] = {json.dumps(fixed)}")
    lines += [f"    {field[key]}: {type_of(properties[key])}" for key in needed]
    lines += [f"    {field[key]}: {type_of(properties[key])} | None = None" for key in optional]
    return "\n".join(lines) + "\n"


def words(name: str, about: str) -> str:
    """The head of a module of tables."""
    return f'''"""{about}

{MADE}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

{name}
'''


def modules() -> dict[str, str]:
    """All modules by name."""
    definitions: dict[str, dict[str, Any]] = json.loads(SCHEMA.read_text())["$defs"]
    tables = {name: of for name, of in definitions.items() if "properties" in of}
    quantities = {name: of for name, of in definitions.items() if name not in tables}
    aliases = [
        paragraph(f"{of['description']}: {json.dumps(of['examples'][0])}", 0, "#: ")
        + f"\n{name}: TypeAlias = str"
        for name, of in quantities.items()
    ]
    base = f"from udccp.lab.scenario.base import {', '.join(quantities)}\n{TABLE}"
    body: dict[str, list[str]] = {}
    imports = [base]
    for module, (about, part) in parted(tables).items():
        heading = words("\n".join(imports), about)
        body[module] = [heading, *(class_of(name, of) for name, of in part.items())]
        imports.append(f"from udccp.lab.scenario.{module} import {', '.join(part)}")
    init = [
        f'"""Typed scenarios: one class for each table of a scenario file.\n\n{MADE}\n"""\n',
        f"from udccp.lab.scenario.base import {', '.join(quantities)}",
        f"{TABLE}, to_plain",
        *imports[1:],
        f"__all__ = {json.dumps(sorted(['Table', *quantities, 'to_plain', *tables]))}\n",
    ]
    return {
        "__init__": "\n".join(init),
        "base": "\n".join([BASE, *aliases]) + "\n",
        **{name: "\n".join(parts) for name, parts in body.items()},
    }


Tables = dict[str, dict[str, Any]]


def parted(tables: Tables) -> dict[str, tuple[str, Tables]]:
    """The tables of each module, with its description, in order of dependency."""

    def of(names: set[str], but: set[str]) -> Tables:
        return {name: table for name, table in tables.items() if name in names - but}

    network = reached(tables, "Topology")
    # Elements of links refer to no other tables.
    elements = {name for name in network if reached(tables, name) == {name}}
    sent = {"traffic": tables["Flow"]["properties"]["traffic"]}
    traffic = {name for name in tables if f'/{name}"' in json.dumps(sent)}
    traffic |= {inner for name in traffic for inner in reached(tables, name)}
    return {
        "elements": ("What links are made of: queues, losses, delays.", of(elements, set())),
        "network": ("The network: links and changes.", of(network, elements)),
        "traffic": ("What applications send.", of(traffic, network)),
        "flows": ("Times and flows.", of(set(tables), network | traffic)),
    }


def reached(tables: dict[str, dict[str, Any]], root: str) -> set[str]:
    """The tables that a table refers to, directly or indirectly, including itself."""
    found: set[str] = set()
    todo = [root]
    while todo:
        name = todo.pop()
        if name in tables and name not in found:
            found.add(name)
            todo += re.findall(r"#/\$defs/(\w+)", json.dumps(tables[name]))
    return found


def formatted(path: Path, text: str) -> str:
    """Sort and format the text with ruff."""
    ruff = str(Path(sys.executable).parent / "ruff")
    rules = ["check", "--select", "I,F401", "--fix-only", "--quiet"]
    for command in (rules, ["format"]):
        line = [ruff, *command, "--no-cache", "--stdin-filename", str(path), "-"]
        done = subprocess.run(line, input=text, capture_output=True, text=True, cwd=ROOT)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        text = done.stdout
    return text


def main() -> int:
    """Write the modules, or check that they are up to date."""
    is_check = sys.argv[1:] == ["--check"]
    OUT.mkdir(exist_ok=True)
    for name, text in modules().items():
        path = OUT / f"{name}.py"
        text = formatted(path, text)
        if not is_check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path} is out of date: python python/tools/scenario_types.py", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
