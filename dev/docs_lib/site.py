#!/usr/bin/env python3
"""What mkdocs reads, and what it has made (dev/docs).

    site.py copy DIRECTORY     the pages, what they link to, the configuration and the theme
    site.py check SITE         looks at every page of the site

The check needs markdown-it, whose Markdown is CommonMark with tables, as hosting sites have it.
A page must have the same headings, lists, tables and blocks of code in both: an item that
is indented by two spaces, say, is nested in one and not in the other.
"""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

sys.path.insert(0, "dev/lib")
import links

BLOCKS = {"h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "pre", "table", "tr", "th", "td", "img"}
LOADED = {"src", "href", "poster", "data", "srcset", "action"}
OUTSIDE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.I)


def copy(place):
    for page in links.pages():
        named = [page, *(Path(page.parent, t.partition("#")[0]) for _, t in links.targets(page) if t[0] != "#")]
        for file in named:
            to = place / "src" / file.resolve().relative_to(Path.cwd())
            if not to.exists():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, to)
    shutil.copytree("dev/docs_lib/theme", place / "theme")
    shutil.copyfile("dev/docs_lib/mkdocs.yml", place / "mkdocs.yml")


class Reader(HTMLParser):
    """The blocks of a page's own text, its anchors, and what it refers to."""

    def __init__(self, whole):
        super().__init__()
        self.inside = whole
        self.depth = 0
        self.blocks = []
        self.ids = set()
        self.refers = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self.ids |= {names[key] for key in ("id", "name") if names.get(key)}
        self.refers += [names[key] for key in LOADED & names.keys() if names[key]]
        if not self.inside and names.get("itemprop") == "articleBody":
            self.inside = True
        if self.inside and self.depth >= 0:
            self.depth += tag == "div"
            if tag in BLOCKS:
                self.blocks.append([tag, ""])

    def handle_endtag(self, tag):
        if self.inside and self.depth > 0 and tag == "div":
            self.depth -= 1
            if self.depth == 0:
                self.depth = -1     # the end of the text
        elif self.depth >= 0 and self.inside and tag in ("ul", "ol"):
            self.blocks.append(["/" + tag, ""])

    def handle_data(self, data):
        if self.inside and self.depth >= 0 and self.blocks:
            self.blocks[-1][1] += data


def read(text, whole):
    reader = Reader(whole)
    reader.feed(text)
    return reader


def html_of(page):
    """Where it is in the site."""
    return page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")


def same_blocks(page, made):
    from markdown_it import MarkdownIt

    hosted = read(MarkdownIt("commonmark").enable("table").render(page.read_text()), True)
    for ours, theirs in zip([*made.blocks, ["end", ""]], [*hosted.blocks, ["end", ""]]):
        if ours[0] != theirs[0]:
            text = " ".join((theirs[1] or ours[1]).split())[:60]
            yield f"{page}: read differently by the site ({ours[0]}) and by others ({theirs[0]}): {text}"
            return


def findings(site):
    read_pages = {path: read(path.read_text(), False) for path in site.rglob("*.html")}
    for path, made in read_pages.items():
        name = path.relative_to(site)
        for target in made.refers:
            if OUTSIDE.match(target):
                yield f"{name}: refers to another host: {target}"
                continue
            if target.startswith(("javascript:", "data:", "mailto:")):
                continue
            file, _, anchor = target.partition("#")
            there = (path.parent / file.partition("?")[0]).resolve() if file else path
            if not there.exists():
                yield f"{name}: dead link: {target}"
            elif anchor and there in read_pages and anchor not in read_pages[there].ids:
                yield f"{name}: dead anchor: {target}"
    for style in site.rglob("*.css"):
        for target in re.findall(r"url\(\s*['\"]?([^'\")]+)", style.read_text()) + re.findall(r"@import\s+['\"]([^'\"]+)", style.read_text()):
            if OUTSIDE.match(target):
                yield f"{style.relative_to(site)}: refers to another host: {target}"
    for page in links.pages():
        made = read_pages.get(site / html_of(page))
        if made is None:
            yield f"{page}: not in the site"
        else:
            yield from same_blocks(page, made)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("copy", "check"):
        sys.exit(__doc__)
    place = Path(sys.argv[2]).resolve()
    if sys.argv[1] == "copy":
        copy(place)
        return 0
    found = list(findings(place))
    print("\n".join(found) or f"{len(links.pages())} pages, nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
