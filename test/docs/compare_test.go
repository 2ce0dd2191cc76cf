package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// peers are the rows of each table of docs/compare.md, in order, with the hosts, or the owners at code hosts, that
// count as the product's own sources. Causeway's sources are pages of the documentation.
var peers = []struct {
	name  string
	hosts []string
}{
	{"Causeway", nil},
	{"Kuma", []string{"kuma.io", "developer.konghq.com", "kong.github.io", "github.com/kumahq/"}},
	{"Istio", []string{"istio.io", "github.com/istio/", "cloud.google.com"}}, // Google maintains a distribution
	{"Consul", []string{"developer.hashicorp.com", "github.com/hashicorp/"}},
	{"Cilium", []string{"docs.cilium.io", "github.com/cilium/", "github.com/cncf/", "raw.githubusercontent.com/cilium/"}},
	{"Linkerd", []string{"linkerd.io"}},
}

var measured = regexp.MustCompile(`\b[0-9]+(?:\.[0-9]+)? (?:ms|s|MiB|cores)\b`)

// compared returns the problems of a comparison page, and its number of tables: each table has a row per product, each
// row has a source of that product, and each of Causeway's figures is on the page of figures.
func compared(page, figures string) (problems []string, tables int) {
	for section := range strings.SplitSeq(page, "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		if !strings.Contains(body, "\n| | how it is | source |\n") {
			continue
		}
		tables++
		var rows [][]string
		for line := range strings.SplitSeq(body, "\n") {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| |") && !strings.HasPrefix(line, "| ---") {
				rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
			}
		}
		if len(rows) != len(peers) {
			problems = append(problems, title+": want a row of each product")
			continue
		}
		for i, row := range rows {
			if len(row) != 3 || row[0] != peers[i].name || row[1] == "" {
				problems = append(problems, title+": want a row of "+peers[i].name+" with three cells")
				continue
			}
			problems = append(problems, wrongSources(title, row[2], peers[i].name, peers[i].hosts)...)
			for _, figure := range measured.FindAllString(row[1], -1) {
				if row[0] == "Causeway" && !strings.Contains(figures, "| "+figure+" |") {
					problems = append(problems, title+": "+figure+" is not in docs/performance.md")
				}
			}
		}
	}
	return problems, tables
}

// wrongSources returns the problems of the last cell of a row.
func wrongSources(title, cell, product string, hosts []string) (problems []string) {
	found := links.FindAllStringSubmatch(cell, -1)
	if len(found) == 0 {
		problems = append(problems, title+": "+product+" has no source")
	}
	for _, m := range found {
		if hosts == nil {
			if strings.Contains(m[1], "://") { // TestLinks checks its target
				problems = append(problems, title+": "+m[1]+" is not a page of the documentation")
			}
			continue
		}
		address, err := url.Parse(m[1])
		if err != nil || address.Scheme != "https" || !slices.ContainsFunc(hosts, func(own string) bool {
			return address.Host == own || strings.HasPrefix(address.Host+address.Path, own) && strings.HasSuffix(own, "/")
		}) {
			problems = append(problems, title+": "+m[1]+" is not an address of "+product)
		}
	}
	return problems
}

// TestCompare checks that each row of docs/compare.md has a source, and that its figures are measured ones.
func TestCompare(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "compare.md"))
	if err != nil {
		t.Fatal(err)
	}
	figures, err := os.ReadFile(filepath.Join(root, "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	problems, tables := compared(string(page), string(figures))
	for _, problem := range problems {
		t.Error(problem)
	}
	if tables < 15 {
		t.Errorf("the page has %d tables, want at least 15", tables)
	}
}

// TestCompareFindsMissingSources checks that TestCompare finds such problems.
func TestCompareFindsMissingSources(t *testing.T) {
	t.Parallel()
	const page = "# Compare\n\n## One\n\n| | how it is | source |\n| --- | --- | --- |\n" +
		"| Causeway | in 7 ms | [a](a.md) |\n| Kuma | b | none |\n| Istio | c | [c](http://istio.io/c) |\n" +
		"| Consul | d | [d](https://developer.hashicorp.com/d) |\n| Cilium | e | [e](https://example.com/e) |\n" +
		"| Linkerd | f | [f](https://linkerd.io/f) |\n\n## Two\n\n| | how it is | source |\n| --- | --- | --- |\n| Causeway | a | [a](a.md) |\n"
	problems, tables := compared(page, "| figure | 8 ms |")
	if len(problems) != 5 || tables != 2 {
		t.Errorf("found %q in %d tables, want the figure, three sources and the short table", problems, tables)
	}
}
