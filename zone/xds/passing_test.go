package xds

import (
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestHostsThatPass: the Host of a domain is that domain, with any port. A dot in it stands for a dot only, and what is
// before a wildcard is one name.
func TestHostsThatPass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		domain string
		yes    []string
		no     []string
	}{
		{"a.example", []string{"a.example", "A.example", "a.example:8080"},
			[]string{"axexample", "b.a.example", "a.example.evil", "a.example:", "a.example:80:80", "evil@a.example", ""}},
		{"*.a.example", []string{"b.a.example", "c.b.a.example", "b.A.EXAMPLE:1"},
			[]string{"a.example", ".a.example", "b.axexample", "bxa.example", "e:1.a.example", "u@b.a.example", "b/.a.example"}},
	} {
		whole := regexp.MustCompile("^(?:" + hostExpression(c.domain) + ")$") // Envoy matches the whole text
		for _, host := range c.yes {
			if !whole.MatchString(host) {
				t.Errorf("%s does not let %q through", c.domain, host)
			}
		}
		for _, host := range c.no {
			if whole.MatchString(host) {
				t.Errorf("%s lets %q through", c.domain, host)
			}
		}
	}
}

// passed returns the listener for redirected connections with a conf, and the proxy's problems.
func passed(t *testing.T, conf string) (listener, problems string) {
	t.Helper()
	target := &target{capture: capture{port: 15001}}
	if err := target.passBy(matching.ProxyRule{Conf: []byte(conf)}); err != nil {
		t.Fatal(err)
	}
	return string(asYAML(t, target.observed.capture)), strings.Join(target.observed.problems, "; ")
}

// TestPassthroughThatIsBroken: nothing leaves the mesh by a conf that cannot be read, as a peer may send it.
func TestPassthroughThatIsBroken(t *testing.T) {
	t.Parallel()
	if open, _ := passed(t, `{"passthroughMode": "All"}`); !strings.Contains(open, passCluster) {
		t.Fatalf("mode All leads nowhere: %s", open)
	}
	for _, conf := range []string{`{"passthroughMode": 5}`, `"All"`, `{"passthroughMode": "All", "appendMatch": 1}`, `{"passthroughMode": "Some"}`,
		`{"passthroughMode": "all"}`} {
		listener, problems := passed(t, conf)
		if strings.Contains(listener, passCluster) {
			t.Errorf("%s lets connections out: %s", conf, listener)
		}
		if !strings.Contains(problems, "nothing leaves the mesh") {
			t.Errorf("%s: problems %q", conf, problems)
		}
	}
}

// TestHTTPIsInTheClear: what lets HTTP to an address through as bytes is not for TLS that offers HTTP.
func TestHTTPIsInTheClear(t *testing.T) {
	t.Parallel()
	rule := chainRule{http: true}
	all := rule.predicate().GetAndMatcher().GetPredicate()
	for _, one := range all {
		if value := one.GetSinglePredicate(); value.GetValueMatch().GetExact() == "raw_buffer" &&
			strings.HasSuffix(value.GetInput().GetTypedConfig().GetTypeUrl(), ".TransportProtocolInput") {
			return
		}
	}
	t.Errorf("connections in TLS match: %s", prototext.Format(rule.predicate()))
}
