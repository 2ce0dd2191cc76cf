//go:build !withoutpage

package web

import "embed"

// built holds dist/page, if the page was built before the program, and dist/unbuilt.html.
//
//go:embed all:dist
var built embed.FS
