package main

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// TestStrangersAreFoundLast checks that a client cannot displace a service by the name that it claims.
func TestStrangersAreFoundLast(t *testing.T) {
	t.Parallel()
	const ours, stranger = "spiffe://mesh/ns/shop/sa/frontend", "spiffe://mesh/ns/evil/sa/frontend"
	for name, c := range map[string]struct {
		named, known, denied []string
		who, want            string
		stranger             bool
	}{
		"a service of that name wins":     {[]string{ours}, []string{ours}, []string{stranger, ours}, "frontend", ours, false},
		"a service's identity wins":       {nil, []string{ours}, []string{stranger}, "frontend", ours, false},
		"even by a part in its middle":    {nil, []string{ours + "/v1"}, []string{stranger}, "frontend", ours + "/v1", false},
		"a stranger is found, and marked": {nil, []string{"spiffe://mesh/other"}, []string{stranger}, "frontend", stranger, true},
		"by a part too":                   {nil, nil, []string{stranger}, "evil", stranger, true},
		"one of two is not chosen":        {nil, nil, []string{stranger, ours}, "frontend", "", false},
	} {
		got, err := (&identities{setOf(c.named), setOf(c.known), setOf(c.denied)}).find(c.who)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "say which") {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			continue
		}
		if err != nil || *got != (clientID{c.want, c.stranger}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestRequestsOfClients checks which denial completes a question, and that the output shows what it contributed.
func TestRequestsOfClients(t *testing.T) {
	t.Parallel()
	denials := []api.Denial{
		{Method: "*", Path: "/all"}, {Method: "GET", PathPrefix: "/long"}, {},
		{Method: "POST", Path: "/orders"}, {Method: "GET", Path: "/it's"},
	}
	for name, c := range map[string]struct {
		q                    explain.Query
		method, path, chosen string
	}{
		"nothing is named":           {explain.Query{}, "POST", "/orders", "--method POST --path /orders"},
		"a method":                   {explain.Query{Method: "GET"}, "GET", "/it's", `--path '/it'\''s'`},
		"a path":                     {explain.Query{Path: "/orders?a=b"}, "POST", "/orders?a=b", "--method POST"},
		"what nobody sent":           {explain.Query{Method: "PUT"}, "PUT", "", ""},
		"a path that nobody sent":    {explain.Query{Path: "/x"}, "", "/x", ""},
		"all":                        {explain.Query{Method: "GET", Path: "/"}, "GET", "/", ""},
		"neither of unkept requests": {explain.Query{Method: "*"}, "*", "", ""},
	} {
		got := c.q
		complete(&got, denials)
		if got.Method != c.method || got.Path != c.path {
			t.Errorf("%s: %s %s", name, got.Method, got.Path)
		}
		if flags := chosen(&c.q, &got); flags != c.chosen {
			t.Errorf("%s: %q, want %q", name, flags, c.chosen)
		}
	}
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
