"""Every text of an error or a warning that the code can give is on the page of messages, under a slug of its own."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import devprof.errors

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/messages.md"
MARK = "<!-- made from the code: make snapshot -->\n"
SOURCES = ("devprof", "plugins/openreg_sim/openreg_sim", "plugins/cuda_cupti/cuda_cupti")
CLASSES = frozenset(devprof.errors.__all__)
HOLE = "…"
FEWEST_WORDS = 4
Texts = dict[str, set[str]]
MODULES: dict[ast.AST, ast.Module] = {}  # of each function that was looked at


def _texts_of(value: ast.expr, function: ast.AST) -> Iterator[str]:
    """Yield the texts that an expression may be, with a hole for what is filled in; a name is looked up in its function."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        parts = [_part(part, function) for part in value.values]
        yield "".join(map(str, parts))
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        lefts = list(_texts_of(value.left, function)) or [HOLE]
        yield from (left + right for left in lefts for right in list(_texts_of(value.right, function)) or [HOLE])
    elif isinstance(value, ast.IfExp):
        yield from (*_texts_of(value.body, function), *_texts_of(value.orelse, function))
    elif isinstance(value, ast.Name):
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == value.id for t in node.targets):
                yield from _texts_of(node.value, function)


def _part(part: ast.expr, function: ast.AST) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    is_constant = isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id.isupper()
    texts = list(_texts_of(part.value, MODULES[function])) if is_constant and function in MODULES else []
    return texts[0] if len(texts) == 1 else HOLE


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _class_and_text(call: ast.Call) -> tuple[str, ast.expr] | None:
    """Return the class of a message that a call makes, and its text."""
    name, texts = _called(call), [one for one in call.args if not isinstance(one, ast.Starred)]
    if name in CLASSES and texts:
        return name, texts[-1]  # a PluginError has plugin and hook before it
    if name == "tell" and len(texts) == 2:
        return ast.unparse(texts[1]), texts[0]
    # what the one LossWarning of a session is made of
    is_doubt = name == "append" and ast.unparse(call.func).endswith(
        (".doubts.append", "doubts.append", "report.notes.append")
    )
    return ("LossWarning", texts[0]) if is_doubt and texts else None


@functools.cache
def _messages() -> Texts:
    found: Texts = {name: set() for name in CLASSES}
    for path in (path for source in SOURCES for path in (ROOT / source).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        MODULES.update(dict.fromkeys(functions, tree))
        for function in functions:
            found["LossWarning"].update(_noted(function))
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if (made := _class_and_text(call)) is not None and made[0] in found:
                    texts = (" ".join(text.split()) for text in _texts_of(made[1], function))
                    found[made[0]].update(texts)
    found["LossWarning"] |= {*_complaints(), *_of_the_fit()}
    # what is only a frame for other texts has no words of its own
    return {name: {text for text in texts if len(re.findall(r"[a-z]{2,}", text)) > 1} for name, texts in found.items()}


def _noted(function: ast.AST) -> Iterator[str]:
    """Yield what a function adds to the notes of a report, as a list."""
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "report.notes":
            items = node.value.elts if isinstance(node.value, ast.List) else []
            items = [node.value.elt] if isinstance(node.value, ast.ListComp) else items
            yield from (" ".join(text.split()) for item in items for text in _texts_of(item, function))


def _complaints() -> Iterator[str]:
    """Yield the sentences that a report's complaints are made of."""
    tree = ast.parse((ROOT / "devprof/capture/ledger.py").read_text(encoding="utf-8"))
    report = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "SessionReport")
    for function in report.body:
        if isinstance(function, ast.FunctionDef) and function.name in ("_complaints", "_of_host"):
            yields = [node.value for node in ast.walk(function) if isinstance(node, ast.Yield | ast.YieldFrom)]
            texts = [one.elt if isinstance(one, ast.GeneratorExp) else one for one in yields]
            yield from (" ".join(text.split()) for one in texts if one for text in _texts_of(one, function))


def _of_the_fit() -> Iterator[str]:
    """Yield what the fit of a clock says in lists."""
    tree = ast.parse((ROOT / "devprof/clock/fit.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        items = node.elts if isinstance(node, ast.List) else [node.elt] if isinstance(node, ast.ListComp) else []
        yield from (" ".join(text.split()) for item in items for text in _texts_of(item, tree))


def _slugs(kind: str, texts: set[str]) -> dict[str, str]:
    """Return a slug for each text: the class and its first words, as many as tell it from the others."""
    words = {text: re.findall(r"[a-z0-9]+", text.lower().replace("'", "")) for text in sorted(texts)}
    slugs: dict[str, str] = {}
    for text, own in words.items():
        length = FEWEST_WORDS
        while length < len(own) and any(own[:length] == other[:length] for one, other in words.items() if one != text):
            length += 1
        slug = "-".join([kind.lower(), *own[:length]])
        n_before = sum(own == words[one] for one in slugs)
        slugs[text] = f"{slug}-{n_before + 1}" if n_before else slug
    return slugs


def _made() -> str:
    lines = [
        "",
        "# Every text",
        "",
        f"By class, from the code; `{HOLE}` is filled in. The link of a text is its slug.",
    ]
    for kind, texts in sorted(_messages().items()):
        if texts:
            lines += ["", f"## Texts of {kind}", ""]
            lines += [
                f'- <a id="{slug}"></a>[#](#{slug}) {_quoted(text)}'
                for text, slug in sorted(_slugs(kind, texts).items())
            ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    fence = "``" if "`" in text else "`"
    inner = f" {text} " if text[0] == "`" or text[-1] == "`" else text
    return f"{fence}{inner}{fence}"


def test_the_page_has_every_text() -> None:
    own, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    made = _made()
    if os.environ.get("RENEW_SNAPSHOTS"):
        PAGE.write_text(own + MARK + made, encoding="utf-8")
        rest = made
    assert rest == made, "meant to change? `make snapshot`"


def test_no_slug_is_there_twice() -> None:
    anchors = re.findall(r'<a id="([^"]+)"', PAGE.read_text(encoding="utf-8"))
    assert len(anchors) > 300
    assert sorted(anchors) == sorted(set(anchors))


def test_every_warning_is_explained() -> None:
    """The page's own part, before the made one, quotes words of each warning's text, and none that no warning has."""
    own = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    quoted = re.findall(r'^\| <a id="[\w-]+"></a>`+ ?(.+?) ?`+ \|', own, re.MULTILINE)
    texts = [text for kind in ("DevprofWarning", "LossWarning", "PluginWarning") for text in _messages()[kind]]
    assert [text for text in texts if not any(words in text for words in quoted)] == []
    assert [words for words in quoted if not any(words in text for text in texts)] == []
