package rbac_test

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Sizes of the sample for a real Envoy; the property tests cover more.
var liveRuleSets = flag.Int("live-rule-sets", 8, "random sets of rules in a real Envoy; 25 is the long form")

const livePerSet = 14

// TestEnvoyAgreesWithEvaluator sends requests with mTLS through one real Envoy that has listeners for each random set
// of rules, in both forms, and requires verdict, policy name and dry run of the evaluator.
func TestEnvoyAgreesWithEvaluator(t *testing.T) {
	t.Parallel()
	live := newLiveEnvoy(t, liveSets(*liveRuleSets))
	seen := map[bool]int{}
	for i, rules := range live.rules {
		for seed := range livePerSet {
			req := drawRequest().Example(1000*i + seed)
			verdict := rbac.Evaluate(rules, req)
			for _, form := range forms {
				if req.Protocol == matching.TCP {
					live.checkTCP(t, listenerOf{i, form}, req, verdict)
				} else if sendable(req) {
					live.checkHTTP(t, listenerOf{i, form}, req, verdict)
				}
			}
			seen[verdict.Enforced.Allowed]++
		}
	}
	live.checkLogs(t)
	if seen[true] < 50 || seen[false] < 50 {
		t.Errorf("the sample is one-sided: %v", seen)
	}
}

// liveSets returns as many random rules as are drawn, of few and of many policies, and some that are known to be delicate in Envoy.
func liveSets(drawn int) []matching.Rules {
	sets := []matching.Rules{{}, alternating(),
		rulesOf(resources.PermissionConf{Allow: []resources.PermissionMatch{{Method: []string{"GET"}}}})}
	for _, expression := range expressions {
		match := resources.PermissionMatch{Path: &resources.PathMatch{Type: resources.MatchRegularExpression,
			Value: expression}}
		anyone := resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchPrefix,
			Value: "spiffe://"}}
		sets = append(sets, rulesOf(resources.PermissionConf{Allow: []resources.PermissionMatch{match}}),
			rulesOf(resources.PermissionConf{Deny: []resources.PermissionMatch{match},
				Allow: []resources.PermissionMatch{anyone}}))
	}
	for i := range drawn {
		sets = append(sets, drawRules().Example(i), drawManyRules().Example(i))
	}
	return sets
}

func rulesOf(confs ...resources.PermissionConf) matching.Rules {
	var rules matching.Rules
	for i, conf := range confs {
		origin := resources.KRI{Short: "mtp", Mesh: "default", Name: fmt.Sprintf("p%d", i)}
		rules.Items = append(rules.Items, matching.Rule{Origin: origin, Conf: conf})
	}
	return rules
}

// sendable excludes requests that Envoy itself refuses or rewrites before RBAC: fragments, unknown methods, invalid
// paths. It excludes HEAD too: its response has no body, which a raw client would have to know.
func sendable(req rbac.Request) bool {
	normalised, refused := rbac.NormalizePath(req.Path)
	return refused == "" && normalised == req.Path && slices.Contains([]string{"GET", "POST"}, req.Method)
}

// liveEnvoy is a running Envoy with one HTTP and one TCP listener for each set of rules.
type liveEnvoy struct {
	dir          string
	rules        []matching.Rules
	ca           *authority
	certificates map[string]tls.Certificate
	// expected are the access log lines that requests and connections must leave, by file.
	expected map[string][]string
}

func newLiveEnvoy(t *testing.T, rules []matching.Rules) *liveEnvoy {
	t.Helper()
	live := &liveEnvoy{
		dir: shortTempDir(t), rules: rules, ca: newAuthority(t),
		certificates: map[string]tls.Certificate{}, expected: map[string][]string{},
	}
	var listeners []any
	for i, r := range rules {
		for _, form := range forms {
			f, l := filtersOf(form, r), listenerOf{i, form}
			listeners = append(listeners,
				live.ca.listener(t, live.socket(l, matching.HTTP), matching.HTTP, f),
				live.ca.listener(t, live.socket(l, matching.TCP), matching.TCP, f))
		}
	}
	startEnvoy(t, live.dir, listeners)
	eventually(t, "Envoy listens", func() bool {
		c, err := net.Dial("unix", live.socket(listenerOf{len(rules) - 1, forms[len(forms)-1]}, matching.TCP))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return live
}

// listenerOf identifies the listeners of one set of rules in one form.
type listenerOf struct {
	set  int
	form rbac.Form
}

func (l *liveEnvoy) socket(on listenerOf, protocol matching.Protocol) string {
	return filepath.Join(l.dir, fmt.Sprintf("%s%d%s", protocol, on.set, on.form))
}

// dial opens a connection as the request's client would. Without URI SANs it presents no certificate.
func (l *liveEnvoy) dial(t *testing.T, on listenerOf, req rbac.Request) *tls.Conn {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, ServerName: req.SNI, MinVersion: tls.VersionTLS12} //nolint:gosec // the server is the test's own
	if len(req.URISANs) > 0 {
		key := strings.Join(req.URISANs, " ")
		if _, ok := l.certificates[key]; !ok {
			l.certificates[key] = l.ca.issue(t, req.URISANs...)
		}
		config.Certificates = []tls.Certificate{l.certificates[key]}
	}
	raw, err := net.Dial("unix", l.socket(on, req.Protocol))
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return tls.Client(raw, config)
}

func (l *liveEnvoy) checkHTTP(t *testing.T, on listenerOf, req rbac.Request, want rbac.Verdict) {
	t.Helper()
	conn := l.dial(t, on, req)
	defer conn.Close()
	headers := ""
	for name, value := range req.Headers {
		headers += name + ": " + value + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: backend\r\nContent-Length: 0\r\n%sConnection: close\r\n\r\n", req.Method, req.Path, headers); err != nil {
		t.Fatalf("%v, %+v: %v", on, req, err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%v, %+v: %v", on, req, err)
	}
	_ = res.Body.Close()
	status := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[want.Enforced.Allowed]
	if res.StatusCode != status {
		t.Errorf("%v, %+v: Envoy answers %d, evaluator %+v\nrules %+v", on, req, res.StatusCode, want.Enforced,
			l.rules[on.set])
	}
	shadow := "- -"
	if filtersOf(on.form, l.rules[on.set]).http.GetShadowMatcher() != nil {
		shadow = want.DryRun.Name + " " + engineResult(want.DryRun)
	}
	l.expect(on, req, fmt.Sprintf("%s %s %d %s %s", req.Method, req.Path, status, want.Enforced.Name, shadow))
}

// expect records the access log line that the request must leave.
func (l *liveEnvoy) expect(on listenerOf, req rbac.Request, rest string) {
	log := l.socket(on, req.Protocol) + ".log"
	l.expected[log] = append(l.expected[log], orDash(strings.Join(req.URISANs, ","))+" "+
		orDash(strings.ToLower(req.SNI))+" "+rest)
}

func engineResult(d rbac.Decision) string {
	if d.Allowed {
		return "allowed"
	}
	return "denied"
}

func (l *liveEnvoy) checkTCP(t *testing.T, on listenerOf, req rbac.Request, want rbac.Verdict) {
	t.Helper()
	conn := l.dial(t, on, req)
	defer conn.Close()
	if err := conn.Handshake(); err != nil {
		t.Fatalf("%v, %+v: %v", on, req, err)
	}
	// Envoy may close a denied connection before this completes: only the response counts.
	_, _ = conn.Write([]byte("ping"))
	got := make([]byte, 4)
	n, _ := io.ReadFull(conn, got)
	if string(got[:n]) != map[bool]string{true: "ping"}[want.Enforced.Allowed] {
		t.Errorf("%v, %+v: Envoy answers %q, evaluator %+v\nrules %+v", on, req, got[:n], want.Enforced, l.rules[on.set])
	}
	l.expect(on, req, want.Enforced.Name+" "+want.DryRun.Name+" "+engineResult(want.DryRun))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// checkLogs compares the deciding policies in Envoy's logs with the expected ones, once all lines are there.
func (l *liveEnvoy) checkLogs(t *testing.T) {
	t.Helper()
	for log, want := range l.expected {
		var got []string
		eventually(t, "access log "+filepath.Base(log), func() bool {
			raw, err := os.ReadFile(log)
			got = slices.DeleteFunc(strings.Split(strings.TrimSpace(string(raw)), "\n"), func(line string) bool {
				// The second comes from the check whether Envoy listens.
				return line == "" || strings.HasPrefix(line, "- - - ")
			})
			return err == nil && len(got) >= len(want)
		})
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: Envoy logs\n%s\nevaluator\n%s", filepath.Base(log), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
