"""Keeps the site to itself: a reader's browser asks no other host for a script, a style, a font or a picture.

Links that a reader follows may lead anywhere.
"""

import os
import re
from html.parser import HTMLParser

# What a browser fetches without being asked, by element: the attributes that say from where.
FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "use": ("href",),
}
# A link element is fetched, or connected to, unless it only names another page.
NAMING = {"canonical", "prev", "next", "author", "license", "help", "search", "alternate"}
ELSEWHERE = re.compile(r"(?:https?:)?//[^\s\"'()]+")
IN_STYLES = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])((?:https?:)?//[^\"')\s]+)")
# The theme's component that asks a code host for stars, on a page that has it.
ASKING = "source"


class Page(HTMLParser):
    """Collects the addresses of other hosts that a page has its browser fetch."""

    def __init__(self):
        super().__init__()
        self.found, self.style = [], False

    def handle_starttag(self, tag, attrs):
        """Looks at an element's attributes."""
        values = {name: value or "" for name, value in attrs}
        self.style = tag == "style"
        wanted = FETCHED.get(tag, ())
        if tag == "link" and not set(values.get("rel", "").lower().split()) & NAMING:
            wanted = ("href",)
        for name in wanted:
            self.found += ELSEWHERE.findall(values.get(name, ""))
        self.found += IN_STYLES.findall(values.get("style", ""))
        if values.get("data-md-component") == ASKING:
            self.found.append("a code host, by the component " + ASKING)

    def handle_endtag(self, tag):
        """Ends a style."""
        self.style = self.style and tag != "style"

    def handle_data(self, data):
        """Looks at a style."""
        if self.style:
            self.found += IN_STYLES.findall(data)


def fetched(name, text):
    """Returns the addresses of other hosts that a file of the site has a browser fetch."""
    if name.endswith(".css"):
        return IN_STYLES.findall(text)
    if not name.endswith(".html"):
        return []
    page = Page()
    page.feed(text)
    return page.found


def problems(folder):
    """Returns a line for each address of another host that the files below a folder fetch."""
    out = []
    for at, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith((".html", ".css")):
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as file:
                    out += [f"{os.path.relpath(path, folder)} fetches {a}" for a in fetched(name, file.read())]
    return out
