package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/causeway-mesh/causeway/printing"
)

// leftOuts counts what the responses to one command omit because the caller may not read it. It is safe for concurrent
// use.
type leftOuts struct {
	mu     sync.Mutex
	byPath map[string]int // guarded by mu; pages of one list report the same number
	warned []string       // guarded by mu: the warnings in the server's responses
}

// warn records a warning of the server, once.
func (l *leftOuts) warn(_, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.warned, text) {
		l.warned = append(l.warned, text)
	}
}

// warnings returns the server's warnings until now.
func (l *leftOuts) warnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.warned)
}

// withWarnings adds the server's warnings, if there are any, to what a command prints for programs: why an answer may not
// be true any more belongs to the answer.
func (c *cli) withWarnings(answer map[string]any) map[string]any {
	if all := c.left.warnings(); len(all) > 0 {
		answer["warnings"] = all
	}
	return answer
}

func (l *leftOuts) add(path string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byPath == nil {
		l.byPath = map[string]int{}
	}
	path = strings.TrimSuffix(path, overviewSuffix) // the same resources as in the list
	l.byPath[path] = max(l.byPath[path], n)
}

// sayLeftOut prints, after the answer, what it omits and the server's warnings.
func (c *cli) sayLeftOut() {
	c.left.mu.Lock()
	defer c.left.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(c.left.byPath)) {
		fmt.Fprintf(c.errOut, "%d left out of %s: you may not read them\n", c.left.byPath[path], path)
	}
	for _, text := range c.left.warned {
		fmt.Fprintf(c.errOut, "warning: %s\n", printing.Line(text))
	}
	c.left.byPath, c.left.warned = nil, nil
}
