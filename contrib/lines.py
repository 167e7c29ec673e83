#!/usr/bin/env python3
"""Lines of code of each crate and folder of a checkout.

Usage: contrib/lines.py [FOLDER]...

Each FOLDER is a checkout of any commit, so that one counter measures two of them. A line counts
when something other than a comment stands on it. Columns:

code    Rust and C that is shipped
tests   tests, benches, examples and fuzz targets, in any language, and items below `#[cfg(test)]`
python  Python that is no test
data    templates, styles, scripts of pages, and tables that a program reads
"""

import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

CODE = {".rs", ".c", ".h"}
DATA = {".css", ".html", ".j2", ".jinja", ".js", ".toml", ".txt"}
COLUMNS = ["code", "tests", "python", "data"]
# Comments and literals of Rust and C.
OPAQUE = re.compile(
    r"""//[^\n]*|/\*.*?\*/
    |(?<!\w)[bc]?r(\#*)".*?"\1
    |"(?:\\.|[^"\\])*"
    |'(?:\\(?:u\{\w+\}|x\w\w|.)|[^\\'\n])'""",
    re.DOTALL | re.VERBOSE,
)
ONLY_TESTS = re.compile(r"#\[cfg\((?:all\()?test\b")
LAYOUT = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
NO_CODE = LAYOUT | {tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER}


def bare(text):
    """Returns source text without comments, and with underscores for literals."""

    def fill(found):
        return re.sub(r"[^\n]", " " if found[0].startswith("/") else "_", found[0])

    return OPAQUE.sub(fill, text)


def end_of_item(code, start):
    """Returns where the item ends that starts here with its attributes."""
    depth = 0
    for mark in re.compile(r"[][(){};,]").finditer(code, start):
        if mark[0] in "([{":
            depth += 1
        elif mark[0] in ")]}":
            depth -= 1
            if depth < 0:
                return mark.start()
            if depth == 0 and mark[0] == "}":
                return re.compile(r"\s*[;,]?").match(code, mark.end()).end()
        elif depth == 0:
            return mark.end()
    return len(code)


def split_tests(code):
    """Returns the code without what only tests see, and that."""
    tests = []
    while found := ONLY_TESTS.search(code):
        end = end_of_item(code, found.start())
        tests.append(code[found.start() : end])
        code = code[: found.start()] + "\n" + code[end:]
    return code, "\n".join(tests)


def full(text, comment=None):
    """Returns how many lines are neither blank nor, whole, a comment."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not (comment and line.startswith(comment)) for line in lines)


def python(text):
    """Returns how many lines have code, docstrings left out."""
    lines, is_start = set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in NO_CODE:
            is_start = is_start or token.type in LAYOUT
            continue
        if not (is_start and token.type == tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
        is_start = False
    return len(lines)


def test_modules(path, code):
    """Yields the files that a Rust file declares as modules for tests only."""
    folder = path.parent if path.name in ("lib.rs", "main.rs", "mod.rs") else path.with_suffix("")
    for name in re.findall(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod (\w+);", code):
        yield folder / f"{name}.rs"
        yield folder / name / "mod.rs"


def count(root):
    """Returns the numbers of a checkout: by folder, then by column."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True
    )
    paths = [pathlib.PurePath(path) for path in listed.stdout.split("\0") if "/" in path]
    ours = [path for path in paths if not {"vendor", "records", "docs"} & set(path.parts)]
    kinds = CODE | DATA | {".py"}
    texts = {
        path: (root / path).read_text()
        for path in ours
        if path.suffix in kinds and path.parts[0][0] != "." and (root / path).is_file()
    }
    bares = {path: bare(text) for path, text in texts.items() if path.suffix in CODE}
    rust = [(path, code) for path, code in bares.items() if path.suffix == ".rs"]
    declared = {module for path, code in rust for module in test_modules(path, code)}
    table = collections.defaultdict(collections.Counter)
    for path, text in texts.items():
        parts = path.parts
        row = table["/".join(parts[: 2 if len(parts) > 2 and parts[1] != "src" else 1])]
        is_test = parts[0] == "fuzz" or bool({"tests", "benches", "examples"} & set(parts))
        is_test |= path.name == "tests.rs" or path in declared
        if path.suffix in CODE:
            code, tests = ("", bares[path]) if is_test else split_tests(bares[path])
            row["code"] += full(code)
            row["tests"] += full(tests)
        elif path.suffix == ".py":
            row["tests" if is_test else "python"] += python(text)
        elif path.name != "Cargo.toml" and ".min." not in path.name:
            comment = "#" if path.suffix == ".toml" else None
            row["tests" if is_test else "data"] += full(text, comment)
    return table


def main():
    """Prints a table for each checkout."""
    for root in map(pathlib.Path, sys.argv[1:] or ["."]):
        table = count(root)
        rows = sorted(table.items())
        own = [row for name, row in rows if name != "xtask"]
        rows.append(("in all, without xtask", sum(own, collections.Counter())))
        print(" ".join(f"{column:>7}" for column in COLUMNS), root)
        for name, row in rows:
            print(" ".join(f"{row[column]:7}" for column in COLUMNS), name)


if __name__ == "__main__":
    main()
