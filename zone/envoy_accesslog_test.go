package zone_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

// client returns the certificate of a new Dataplane.
func (z *runningZone) client(name string) *tls.Certificate {
	z.t.Helper()
	z.apply("dataplanes/"+name, fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": %q, "networking": {"address": "127.0.0.1", "inbound": [{"port": 1}]}}`, name))
	svid, _ := z.svid(name)
	certificate, key, err := svid.Marshal()
	must(z.t, err)
	return keyPair(z.t, certificate, key)
}

// get decodes a JSON answer.
func (z *runningZone) get(path string, into any) {
	z.t.Helper()
	code, answer := z.call(http.MethodGet, path, "")
	if code != http.StatusOK {
		z.t.Fatalf("%s: %d %s", path, code, answer)
	}
	must(z.t, json.Unmarshal([]byte(answer), into))
}

const spiffe = "spiffe://default.zone-1.mesh.local/workload/"

// TestAccessLogs sends requests that two policies allow, allow with a shadow denial, and deny, over HTTP and TCP. It
// reads which policy decided from the log, the report, the metrics and the suggestion.
func TestAccessLogs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	clock := &laterClock{}
	z := runZone(t, func(c *zone.Config) { c.AccessLog, c.Now = "als,"+file, clock.now })
	httpService, _ := application(t)
	tcpService, _ := speaksFirst(t)
	web, db := freePort(t), freePort(t)
	z.apply("dataplanes/backend", fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": "backend", "networking": {"address": "127.0.0.1", "inbound": [
		{"name": "web", "port": %d, "servicePort": %d, "protocol": "http"}, {"name": "db", "port": %d, "servicePort": %d}]}}`, web, httpService, db, tcpService))
	z.apply("meshtrafficpermissions/p", fmt.Sprintf(`{"type": "MeshTrafficPermission", "mesh": "default", "name": "p", "spec": {"targetRef": {"kind": "Dataplane", "name": "backend"},
		"rules": [{"default": {"allow": [{"spiffeId": {"type": "Exact", "value": "%[1]salice"}}], "allowWithShadowDeny": [{"spiffeId": {"type": "Exact", "value": "%[1]sbob"}}]}}]}}`, spiffe))
	(&world{t: t, address: z.addresses["xds"]}).startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	clients := map[string]*tls.Certificate{"alice": z.client("alice"), "bob": z.client("bob"), "carol": z.client("carol")}
	eventually(t, "alice gets in", func() bool {
		got, err := converse(clients["alice"], db, "hello", time.Second)
		return status(httpClient(clients["alice"]), web) == http.StatusOK && err == nil && got != ""
	})
	for _, name := range []string{"bob", "carol"} {
		status(httpClient(clients[name]), web)
		_, _ = converse(clients[name], db, "hello", time.Second)
	}

	const policy = "kri_mtp_default_zone-1__p_"
	t.Run("file", func(t *testing.T) { checkLogFile(t, file, policy) })
	t.Run("report", func(t *testing.T) { checkShadowReport(t, z, policy) })
	t.Run("denied", func(t *testing.T) { checkDenied(t, z) })
	t.Run("metrics", func(t *testing.T) {
		resp, err := http.Get("http://" + z.addresses["diagnostics"] + "/metrics")
		must(t, err)
		defer resp.Body.Close()
		var text bytes.Buffer
		_, err = text.ReadFrom(resp.Body)
		must(t, err)
		for _, want := range []string{
			`causeway_decisions_total{policy="` + policy + `",protocol="tcp",verdict="allowed"} `,
			`causeway_decisions_total{policy="default",protocol="tcp",verdict="denied"} 1`,
			`causeway_decisions_total{policy="default",protocol="http",verdict="denied"} `,
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %s", want)
			}
		}
	})
	t.Run("readiness", func(t *testing.T) { checkReadiness(t, z, clock, policy) })
	t.Run("suggestion", func(t *testing.T) { checkSuggestion(t, z, clients, web, db) })
}

// logLine holds the fields that HTTP and TCP log lines share.
type logLine struct {
	Inbound, Client, Method, Path, Policy, Verdict, ShadowPolicy, ShadowVerdict string
}

func checkLogFile(t *testing.T, file, policy string) {
	t.Helper()
	for _, inbound := range []string{"web", "db"} {
		method, path := "", ""
		if inbound == "web" {
			method, path = "GET", "/hello"
		}
		for _, want := range []logLine{
			{Client: "alice", Policy: policy, Verdict: "allowed", ShadowPolicy: policy, ShadowVerdict: "allowed"},
			{Client: "bob", Policy: policy, Verdict: "allowed", ShadowPolicy: policy, ShadowVerdict: "denied"},
			{Client: "carol", Policy: "default", Verdict: "denied", ShadowPolicy: "default", ShadowVerdict: "denied"},
		} {
			want.Inbound, want.Client, want.Method, want.Path = "kri_dp_default_zone-1__backend_"+inbound,
				spiffe+want.Client, method, path
			eventually(t, fmt.Sprintf("%+v", want), func() bool {
				text, err := os.ReadFile(file)
				must(t, err)
				for line := range bytes.Lines(text) {
					var got logLine
					if json.Unmarshal(line, &got) == nil && got == want {
						return true
					}
				}
				return false
			})
		}
	}
}

func checkShadowReport(t *testing.T, z *runningZone, policy string) {
	t.Helper()
	type item struct {
		Client, Inbound, Method, PathPrefix, Policy string
		Count                                       int
	}
	var report struct {
		Items     []item
		Readiness []struct {
			Policy string
			Safe   bool
		}
	}
	eventually(t, "two shadow denials", func() bool {
		report.Items = nil // absent fields must not keep old values
		z.get("/_report/shadow?mesh=default&policy="+policy, &report)
		return len(report.Items) == 2
	})
	for _, want := range []item{
		{spiffe + "bob", "kri_dp_default_zone-1__backend_web", "GET", "/hello", policy, 1},
		{spiffe + "bob", "kri_dp_default_zone-1__backend_db", "", "", policy, 1},
	} {
		if report.Items[0] != want && report.Items[1] != want {
			t.Errorf("no %+v in %+v", want, report.Items)
		}
	}
	if len(report.Readiness) != 1 || report.Readiness[0].Policy != policy || report.Readiness[0].Safe {
		t.Errorf("readiness: %+v", report.Readiness)
	}
	if code, answer := z.call(http.MethodGet, "/_report/shadow?policy=p", ""); code != http.StatusBadRequest {
		t.Errorf("no KRI: %d %s", code, answer)
	}
}

// checkDenied expects what carol was denied, with the whole path, and nothing of those who were let in.
func checkDenied(t *testing.T, z *runningZone) {
	t.Helper()
	type item struct {
		Client, Inbound, Method, Path, PathPrefix, Policy string
		Count                                             int
	}
	var report struct {
		Items   []item
		Unknown string
	}
	ask := func(query string) []item {
		report.Items = nil // absent fields must not keep old values
		z.get("/_report/denied?"+query, &report)
		var hers []item
		for _, i := range report.Items {
			if i.Client != "" { // alice's first attempts may have come before her permission
				hers = append(hers, i)
			}
			if i.Client == spiffe+"bob" {
				t.Errorf("bob was let in, and is reported: %+v", i)
			}
		}
		return hers
	}
	for _, want := range []item{
		{spiffe + "carol", "kri_dp_default_zone-1__backend_web", "GET", "/hello", "", "default", 1},
		{spiffe + "carol", "kri_dp_default_zone-1__backend_db", "", "", "", "default", 1},
	} {
		eventually(t, fmt.Sprintf("%+v", want), func() bool { return slices.Contains(ask("mesh=default&since=1h"), want) })
	}
	if ask("mesh=other"); report.Unknown == "" || len(report.Items) > 0 {
		t.Errorf("of a mesh that is not there: %+v", report)
	}
	report.Unknown = ""
	for _, query := range []string{"since=yesterday", "since=-1h", "size=0", "size=10001", "size=many"} {
		if code, answer := z.call(http.MethodGet, "/_report/denied?"+query, ""); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, code, answer)
		}
	}
}

// checkReadiness lets time pass: after a week without a shadow denial, the policy is safe to enforce.
func checkReadiness(t *testing.T, z *runningZone, clock *laterClock, policy string) {
	t.Helper()
	var report struct {
		Readiness []struct {
			Policy, Text string
			Safe         bool
		}
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{6 * 24 * time.Hour, "not safe to enforce: 2 would be denied, the last 144h"},
		{25 * time.Hour, "safe to enforce: no would-deny for 7 d"}} {
		clock.add(step.after)
		z.get("/_report/shadow?policy="+policy, &report)
		if len(report.Readiness) != 1 || !strings.HasPrefix(report.Readiness[0].Text, step.want) ||
			report.Readiness[0].Safe != strings.HasPrefix(step.want, "safe") {
			t.Errorf("%s later: %+v, want %s", step.after, report.Readiness, step.want)
		}
	}
}

// laterClock is ahead of the real time by the duration that was added.
type laterClock struct{ ahead atomic.Int64 }

func (c *laterClock) now() time.Time      { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *laterClock) add(d time.Duration) { c.ahead.Add(int64(d)) }

// checkSuggestion replaces the observed policies with the suggestion: the observed traffic passes, and nothing else
// does.
func checkSuggestion(t *testing.T, z *runningZone, clients map[string]*tls.Certificate, web, db int) {
	t.Helper()
	var got struct {
		Resources []struct{ Name string }
		Observed  int
	}
	var raw struct{ Resources []json.RawMessage }
	z.get("/_suggest/permissions?dataplane=backend&since=1000h", &got)
	z.get("/_suggest/permissions?dataplane=backend&since=1000h", &raw)
	if got.Observed < 4 || len(got.Resources) != 2 || got.Resources[0].Name != "backend-db-observed" ||
		got.Resources[1].Name != "backend-web-observed" {
		t.Fatalf("%d observed: %s", got.Observed, raw.Resources)
	}
	if code, answer := z.call(http.MethodDelete, "/meshes/default/meshtrafficpermissions/p", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, answer)
	}
	eventually(t, "everybody is denied",
		func() bool { return status(httpClient(clients["alice"]), web) == http.StatusForbidden })
	for i, r := range got.Resources {
		z.apply("meshtrafficpermissions/"+r.Name, string(raw.Resources[i]))
	}
	lets := func(name string) bool {
		line, err := converse(clients[name], db, "hello", time.Second)
		return err == nil && line != ""
	}
	for _, name := range []string{"alice", "bob"} {
		eventually(t, name+" gets in again",
			func() bool { return status(httpClient(clients[name]), web) == http.StatusOK && lets(name) })
		for _, request := range []struct{ method, path string }{{http.MethodPost, "/hello"}, {http.MethodGet, "/"},
			{http.MethodGet, "/hello2"}} {
			if code := send(t, clients[name], request.method, web, request.path); code != http.StatusForbidden {
				t.Errorf("%s: %s %s: %d", name, request.method, request.path, code)
			}
		}
	}
	if code := status(httpClient(clients["carol"]), web); code != http.StatusForbidden || lets("carol") {
		t.Errorf("carol: %d on HTTP, or TCP", code)
	}
	for path, want := range map[string]int{"dataplane=nobody": 404, "": 400, "dataplane=backend&since=x": 400} {
		if code, answer := z.call(http.MethodGet, "/_suggest/permissions?"+path, ""); code != want {
			t.Errorf("%q: %d %s", path, code, answer)
		}
	}
}

func send(t *testing.T, certificate *tls.Certificate, method string, port int, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
	must(t, err)
	resp, err := httpClient(certificate).Do(req)
	must(t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}
