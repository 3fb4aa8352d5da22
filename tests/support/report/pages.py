"""A page taken apart, strictly: every element is closed where it was opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(each if isinstance(each, str) else each.text for each in self.children)

    def all(self, tag: str, **attributes: str) -> list[Node]:
        """Elements below with this tag, and classes or attributes that hold these words."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                wanted = {key.rstrip("_"): value for key, value in attributes.items()}
                fits = all(value in (child.attributes.get(key) or "").split() for key, value in wanted.items())
                found += [child] if child.tag == tag and fits else []
                found += child.all(tag, **attributes)
        return found

    def every(self) -> list[Node]:
        found = [self]
        for child in self.children:
            found += child.every() if isinstance(child, Node) else []
        return found


class _Strict(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(page: str) -> Node:
    assert page.startswith("<!doctype html>\n")
    parser = _Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root


HOSTILE = (
    "<script>document.title='owned'</script>",
    "</pre></details></main><img src=x onerror=\"document.title='owned'\">",
    "\"><svg onload=document.title='owned'>",
    "<!-- ' --> &lt;b&gt; ]]> </style><iframe src=https://example.invalid>",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnihton \x00 end",
    "https://account.blob.core.windows.net/c/b?sv=1&sig=c2VjcmV0c2VjcmV0 Bearer abcdefghijklmnop",
)
"""Lines that a log may hold and a page must show as they are, or without their secrets."""
