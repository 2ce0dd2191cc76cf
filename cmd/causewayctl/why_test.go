package main

import (
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// TestStrangersAreFoundLast checks that a client cannot displace a service by the name that it claims.
func TestStrangersAreFoundLast(t *testing.T) {
	t.Parallel()
	const ours, stranger = "spiffe://mesh/ns/shop/sa/frontend", "spiffe://mesh/ns/evil/sa/frontend"
	for name, c := range map[string]struct {
		named, known, proxies, denied []string
		who, want                     string
		stranger                      bool
	}{
		"a service of that name wins":     {[]string{ours}, []string{ours}, nil, []string{stranger, ours}, "frontend", ours, false},
		"a service's identity wins":       {nil, []string{ours}, nil, []string{stranger}, "frontend", ours, false},
		"even by a part in its middle":    {nil, []string{ours + "/v1"}, nil, []string{stranger}, "frontend", ours + "/v1", false},
		"a stranger is found, and marked": {nil, []string{"spiffe://mesh/other"}, nil, []string{stranger}, "frontend", stranger, true},
		"by a part too":                   {nil, nil, nil, []string{stranger}, "evil", stranger, true},
		"one of two is not chosen":        {nil, nil, nil, []string{stranger, ours}, "frontend", "", false},
		"a proxy of that name wins":       {nil, nil, []string{ours}, []string{stranger}, "frontend", ours, false},
		"one of two proxies is no choice": {nil, nil, []string{ours, ours + "/b"}, nil, "frontend", "", false},
	} {
		got, err := (&identities{setOf(c.named), setOf(c.known), setOf(c.proxies), setOf(c.denied)}).find(c.who)
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

// TestWhyWithoutADenial checks that an answer says that no denial was seen, and since when, if that is known.
func TestWhyWithoutADenial(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		answer whyAnswer
		want   bool
	}{
		"none was seen":       {whyAnswer{DenialsSince: since}, true},
		"one was seen":        {whyAnswer{DenialsSince: since, Denials: []api.Denial{{}}}, false},
		"whether one, is not": {whyAnswer{DenialsUnknown: "the zone does not collect them"}, false},
	} {
		c.answer.explained = &explained{Answer: &explain.Answer{Request: explain.Request{From: "spiffe://a/b"}}}
		var out strings.Builder
		if err := c.answer.print(&out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "no denial of spiffe://a/b was seen here since 2026-01-02T03:04:05Z\n"); got != c.want {
			t.Errorf("%s: %s", name, out.String())
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
