package main

import (
	"cmp"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// complete fills in the method and the path that q lacks from the most recent denial that matches q, and reports
// whether there is one. It ignores denials without a recorded method or path.
func complete(q *explain.Query, denials []api.Denial) bool {
	if q.Method != "" && q.Path != "" {
		return false
	}
	path, _, _ := strings.Cut(q.Path, "?")
	for i := range denials {
		d := &denials[i]
		switch {
		case d.Method == "" || d.Method == accesslog.Other || d.Path == "":
		case q.Method != "" && q.Method != d.Method:
		case path != "" && path != d.Path:
		default:
			q.Method, q.Path = d.Method, cmp.Or(q.Path, d.Path)
			return true
		}
	}
	return false
}

// chosen returns the flags for what asked has and named lacks, which a client chose. It is empty if they are the same.
func chosen(named, asked *explain.Query) string {
	var flags []string
	for _, f := range []struct{ flag, named, asked string }{{"--inbound", named.Inbound, asked.Inbound},
		{"--method", named.Method, asked.Method}, {"--path", named.Path, asked.Path}} {
		if f.named != f.asked {
			flags = append(flags, f.flag+" "+quoted(f.asked))
		}
	}
	return strings.Join(flags, " ")
}

// quoted quotes a text for a shell.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(bareWord, r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

const bareWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
