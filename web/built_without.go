//go:build withoutpage

package web

import "embed"

// built holds dist/unbuilt.html only, in programs of tests that are no tests of the page.
//
//go:embed dist/unbuilt.html
var built embed.FS
