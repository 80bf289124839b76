"""Docstrings of public functions and classes name the parameters that there are."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module

import docstring_parser
import pytest

import udccp


def public() -> dict[str, Callable[..., object]]:
    """Everything that a module exports, and the public methods of its classes."""
    found: dict[str, Callable[..., object]] = {}
    for module in pkgutil.walk_packages(udccp.__path__, "udccp."):
        if "._" in module.name or ".examples" in module.name:
            continue
        exported = import_module(module.name)
        for name in getattr(exported, "__all__", ()):
            value = getattr(exported, name)
            members = inspect.getmembers(value, inspect.isfunction)
            methods = members if inspect.isclass(value) else []
            for one in [value, *(method for of, method in methods if of[0] != "_")]:
                if callable(one) and getattr(one, "__module__", "").startswith("udccp"):
                    found[f"{one.__module__}.{one.__qualname__}"] = one
    return found


PUBLIC = public()


@pytest.mark.parametrize("name", PUBLIC)
def test_documented_parameters_exist(name: str) -> None:
    """A function's docstring lists all of its parameters or none; a class need not list all."""
    one = PUBLIC[name]
    docs = docstring_parser.parse(one.__doc__ or "", docstring_parser.DocstringStyle.NUMPYDOC)
    listed = [p for p in docs.params if p.args[0] == "param"]
    named = {name.strip("* ") for p in listed for name in p.arg_name.split(",")}
    if not named:
        return
    real = set(inspect.signature(one).parameters) - {"self"}
    assert named <= real
    assert inspect.isclass(one) or named == real
