"""Tests of hosts.py: that it finds what it is for, and nothing else."""

import unittest

import hosts


class Fetched(unittest.TestCase):
    """What a page, or a style, has a browser fetch from another host."""

    def test_found(self):
        """Each of these asks another host."""
        for text in (
            '<script src="https://cdn.example/a.js"></script>',
            '<script src="//cdn.example/a.js"></script>',
            '<link rel="stylesheet" href="https://cdn.example/a.css">',
            '<link rel="preconnect" href="https://fonts.example">',
            '<link rel="icon" href="https://cdn.example/a.png">',
            '<img src="a.png" srcset="https://cdn.example/b.png 2x">',
            '<style>@font-face{src:url(https://fonts.example/a.woff2)}</style>',
            '<style>@import "https://fonts.example/a.css";</style>',
            '<p style="background:url(https://cdn.example/a.png)">',
            '<iframe src="https://example.com"></iframe>',
            '<div data-md-component="source">',
        ):
            self.assertEqual(len(hosts.fetched("a.html", text)), 1, text)
        self.assertEqual(len(hosts.fetched("a.css", "p{background:url('https://cdn.example/a.png')}")), 1)

    def test_passed(self):
        """None of these does."""
        for text in (
            '<a href="https://example.com">a link</a>',
            '<link rel="canonical" href="https://example.com/">',
            '<script src="../assets/a.js"></script><link rel="stylesheet" href="a.css"><img src="a.svg">',
            '<script>const xmlns = "http://www.w3.org/2000/svg"</script>',
            "<code>url(https://example.com)</code>",
        ):
            self.assertEqual(hosts.fetched("a.html", text), [], text)


if __name__ == "__main__":
    unittest.main()
