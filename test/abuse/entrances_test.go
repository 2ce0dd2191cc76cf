package abuse

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/causeway-mesh/causeway/api"
)

// entrance is a way into a server. Enter tries it with a caller's credentials, and returns how that ended in a word: a
// status, a gRPC code, or OK.
type entrance struct {
	name  string
	on    string
	good  string // the credential that opens it
	enter func(ctx context.Context, w *world, s *aServer, b brought) (string, error)
}

// brought is what a caller presents: the values of the header "authorization", and a client certificate.
type brought struct {
	values      []string
	query       string
	certificate *tls.Certificate
	token       string
}

const entranceTimeout = 10 * time.Second

var entrances = []entrance{
	{"api", "global", "admin", enterHTTP("api", "/who-am-i")},
	{"diagnostics", "global", "none", enterHTTP("diagnostics", "/metrics")},
	{"health", "global", "zone-token", enterHealth},
	{"kds-down", "global", "zone-token", enterSync("GlobalToZoneSync", true)},
	{"kds-up", "global", "zone-token", enterSync("ZoneToGlobalSync", false)},
	{"join", "global", "", enterJoin},
	{"questions", "global", "zone-token", enterQuestions},
	{"api", "zone", "none", enterHTTP("api", "/who-am-i")},
	{"diagnostics", "zone", "none", enterHTTP("diagnostics", "/metrics")},
	{"xds-delta", "zone", "dp-shop", enterXDS("")},
	{"xds-sotw", "zone", "dp-shop", enterXDS("sotw")},
	{"access-logs", "zone", "dp-shop", enterAccessLogs},
}

// forms are wrong ways to present a valid credential. OK is expected only of those that are named whole.
var forms = []struct {
	name  string
	bring func(token string) brought
}{
	{"whole", func(t string) brought { return brought{values: []string{"Bearer " + t}, token: t} }},
	{"scheme in lower case", func(t string) brought { return brought{values: []string{"bearer " + t}, token: t} }},
	{"scheme Basic", func(t string) brought { return brought{values: []string{"Basic " + t}, token: t + "="} }},
	{"no scheme", func(t string) brought { return brought{values: []string{t}, token: " " + t} }},
	{"scheme alone", func(string) brought { return brought{values: []string{"Bearer "}, token: " "} }},
	{"twice", func(t string) brought {
		return brought{values: []string{"Bearer " + t, "Bearer " + t}, token: t + "," + t}
	}},
	{"before another", func(t string) brought {
		return brought{values: []string{"Bearer " + t, "Bearer garbage"}, token: t + " garbage"}
	}},
	{"behind another", func(t string) brought {
		return brought{values: []string{"Bearer garbage", "Bearer " + t}, token: "garbage " + t}
	}},
	{"two in one", func(t string) brought {
		return brought{values: []string{"Bearer " + t + ", Bearer " + t}, token: t + "\n" + t}
	}},
	{"quoted", func(t string) brought { return brought{values: []string{`Bearer "` + t + `"`}, token: `"` + t + `"`} }},
	{"with a tail", func(t string) brought { return brought{values: []string{"Bearer " + t + "."}, token: t + "."} }},
	{"in the query", func(t string) brought { return brought{query: "access_token=" + t + "&token=" + t} }},
}

// TestEntrances tries every entrance of both servers with every credential of the table, and with those that open it
// brought in every wrong form, and compares how each attempt ended with a table that a person can review. Each entrance
// opens for something, so that none is closed for another reason.
func TestEntrances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makeCredentials()
	w.zoneTokens()
	var out bytes.Buffer
	fmt.Fprintf(&out, "# How each entrance answers each credential: a status or a gRPC code. closed: the connection ends before an answer.\n\n%-26s", "credential")
	for _, e := range entrances {
		fmt.Fprintf(&out, "%-22s", e.on+":"+e.name)
	}
	opened := map[string]bool{}
	for _, name := range w.names() {
		fmt.Fprintf(&out, "\n%-26s", name)
		for _, e := range entrances {
			c := w.of(w.server(e.on), name)
			b := brought{certificate: c.certificate, token: c.token}
			if c.token != "" {
				b.values = []string{"Bearer " + c.token}
			}
			ended := w.enter(t, e, b)
			opened[e.on+e.name] = opened[e.on+e.name] || isOpen(ended)
			fmt.Fprintf(&out, "%-22s", ended)
		}
	}
	fmt.Fprintf(&out, "\n\n# How each answers what opens it, brought so:\n")
	for _, form := range forms {
		fmt.Fprintf(&out, "\n%-26s", form.name)
		for _, e := range entrances {
			good := w.of(w.server(e.on), cmp.Or(e.good, "none")).token
			if e.name == "join" {
				good = w.joinToken(t)
			}
			ended := w.enter(t, e, form.bring(good))
			opened[e.on+e.name] = opened[e.on+e.name] || isOpen(ended)
			fmt.Fprintf(&out, "%-22s", ended)
		}
	}
	for _, e := range entrances {
		if !opened[e.on+e.name] {
			t.Errorf("nothing opens %s of the %s: it may be closed for another reason", e.name, e.on)
		}
	}
	compareGolden(t, "testdata/golden/entrances.txt", trimmed(out.Bytes()))
}

// isOpen reports whether a caller got past its credential. Logs of a proxy without a session are NotFound.
func isOpen(ended string) bool { return ended == "OK" || ended == "200" || ended == "NotFound" }

func trimmed(table []byte) []byte {
	lines := bytes.Split(table, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " ")
	}
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

// names returns those of all credentials.
func (w *world) names() []string {
	seen := map[string]bool{}
	for name := range w.credentials {
		seen[strings.TrimPrefix(name, "zone/")] = true
	}
	var out []string
	for name := range seen {
		if _, both := w.credentials[name]; both {
			out = append(out, name)
			continue
		}
		w.credentials[name] = w.credentials["zone/"+name] // of a proxy: the global is tried with it too
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (w *world) enter(t *testing.T, e entrance, b brought) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), entranceTimeout)
	defer cancel()
	ended, err := e.enter(ctx, w, w.server(e.on), b)
	if err != nil {
		t.Errorf("%s of the %s: %v", e.name, e.on, err)
	}
	return ended
}

// zoneTokens creates credentials of zones, good and bad.
func (w *world) zoneTokens() {
	t := w.t
	token := func(zone, validFor string, scope ...string) string {
		body := fmt.Sprintf(`{"zone": %q, "validFor": %q, "scope": ["%s"]}`, zone, validFor, strings.Join(scope, `","`))
		raw, err := w.global.admin.Do(t.Context(), api.Request{Method: http.MethodPost, Path: "/tokens/zone",
			Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	w.keep(w.global, "zone-token", token("zone-1", "1h", "cp"))
	w.keep(w.global, "zone-token-other", token("zone-2", "1h", "cp"))
	w.keep(w.global, "zone-token-ingress", token("zone-1", "1h", "ingress"))
	expired := token("zone-1", "1s", "cp")
	w.keep(w.global, "zone-token-expired", expired)
	good := strings.Split(w.credentials["zone-token-other"].token, ".")
	var claims jwt.MapClaims
	decode(t, good[1], &claims)
	for key, value := range claims {
		if value == "zone-2" {
			claims[key] = "zone-1"
		}
	}
	w.keep(w.global, "zone-token-altered", good[0]+"."+encode(t, claims)+"."+good[2])
	w.keep(w.global, "zone-token-none", encode(t, map[string]string{"alg": "none", "typ": "JWT"})+"."+encode(t,
		claims)+".")
	w.keep(w.global, "zone-token-stranger", signed(t, jwt.SigningMethodEdDSA, "1", claims, strangersKey(t)))
	eventually(t, "the zone's token to expire", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), entranceTimeout)
		defer cancel()
		ended, err := enterHealth(ctx, w, w.global, brought{values: []string{"Bearer " + expired}})
		return err == nil && ended != "OK"
	})
}

// compareGolden compares with a file; -update rewrites it.
func compareGolden(t *testing.T, file string, have []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, have, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, golden := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(lines), len(golden)) {
		if i >= len(lines) || i >= len(golden) || lines[i] != golden[i] {
			t.Fatalf("line %d of %s differs (-update rewrites it, for you to review):\nhave %s\nwant %s", i+1, file,
				lineOf(lines, i), lineOf(golden, i))
		}
	}
}
