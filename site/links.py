"""Makes the pages of docs/, which link to files of the repository, a site of their own, which fetches nothing elsewhere.

A link that leaves docs/ becomes one to the repository; the README becomes the first page. A link to a file that does not
exist fails the build.
"""

import os
import posixpath
import re
import shutil
import sys

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts  # noqa: E402

LINK = re.compile(r"(\]\()([^()\s]+)(\))")
# The library that draws pictures, where the site has it. MERMAID says where it is.
DRAWING = "assets/javascripts/mermaid.min.js"
FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)


def on_files(files, config):
    """Adds the README as the first page, with its links as they are from there."""
    root = os.path.dirname(config.docs_dir)
    with open(os.path.join(root, "README.md"), encoding="utf-8") as readme:
        text = readme.read()
    text = outside_fences(text, lambda part: LINK.sub(lambda m: m[1] + within(m[2]) + m[3], part))
    files.append(File.generated(config, "index.md", content=text))
    return files


def within(link):
    """A link of the README, from docs/: what is there loses the folder, all else gets one up."""
    if "://" in link or link.startswith(("#", "mailto:")):
        return link
    return link.removeprefix("docs/") if link.startswith("docs/") else "../" + link


def on_page_markdown(markdown, page, config, files):
    """Points links that leave docs/, and links to folders, at what they mean."""
    here = posixpath.dirname(page.file.src_uri)
    root = os.path.dirname(config.docs_dir)

    def target(link):
        if "://" in link or link.startswith(("#", "mailto:")):
            return link
        path, hash_, anchor = link.partition("#")
        full = posixpath.normpath(posixpath.join("docs", here, path))
        if not os.path.exists(os.path.join(root, full)):
            raise PluginError(f"{page.file.src_uri}: {link}: {full} does not exist")
        inside = full == "docs" or full.startswith("docs/")
        if os.path.isdir(os.path.join(root, full)) and os.path.exists(os.path.join(root, full, "README.md")) and inside:
            full += "/README.md"
        if inside and os.path.isfile(os.path.join(root, full)) and not full.endswith(".go"):
            return posixpath.relpath(full, posixpath.join("docs", here)) + hash_ + anchor
        kind = "tree" if os.path.isdir(os.path.join(root, full)) else "blob"
        return f"{config.extra['code']}/{kind}/main/{full}{hash_}{anchor}"

    return outside_fences(markdown, lambda part: LINK.sub(lambda m: m[1] + target(m[2]) + m[3], part))


def on_post_page(output, page, config):
    """Gives a page with pictures the library that draws them: without it, the theme fetches one elsewhere."""
    if 'class="mermaid"' not in output:
        return output
    before, bundle, after = output.rpartition('<script src="' + get_relative_url("assets/javascripts/bundle", page.url))
    if not bundle:
        raise PluginError(f"{page.file.src_uri}: it does not load the theme's script as before: look at on_post_page")
    return f'{before}<script src="{get_relative_url(DRAWING, page.url)}"></script>{bundle}{after}'


def on_post_build(config):
    """Puts the library into the site, then fails if a page fetches anything from another host."""
    library = os.environ.get("MERMAID", "")
    if not os.path.isfile(library):
        raise PluginError(f"MERMAID={library}: want the file mermaid.min.js: run make docs-site")
    shutil.copyfile(library, os.path.join(config.site_dir, DRAWING))
    if found := hosts.problems(config.site_dir):
        raise PluginError("\n".join(found))


def outside_fences(text, change):
    """Applies change to what stands outside of fenced blocks."""
    out, at = [], 0
    for fence in FENCE.finditer(text):
        out += [change(text[at:fence.start()]), fence[0]]
        at = fence.end()
    return "".join(out + [change(text[at:])])
