package abuse

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
)

var update = flag.Bool("update", false, "rewrite the tables in testdata/golden")

// shapes are the roles of the matrix, one user each: the fields of a rule, alone and combined.
var shapes = []struct{ name, rules string }{
	{"none", ``},
	{"verb", `{verbs: [read], types: ["*"]}`},
	{"type", `{verbs: ["*"], types: [MeshTimeout, Dataplane]}`},
	{"mesh", `{verbs: ["*"], types: ["*"], meshes: [default]}`},
	{"mesh*", `{verbs: ["*"], types: ["*"], meshes: ["*"]}`},
	{"ns", `{verbs: ["*"], types: ["*"], namespaces: [payments]}`},
	{"ns-empty", `{verbs: ["*"], types: ["*"], namespaces: [""]}`},
	{"ns*", `{verbs: ["*"], types: ["*"], namespaces: ["*"]}`},
	{"mesh+ns", `{verbs: ["*"], types: ["*"], meshes: [default], namespaces: [payments]}`},
	{"name", `{verbs: ["*"], types: ["*"], names: [payments]}`},
	{"name*", `{verbs: ["*"], types: ["*"], names: ["*"]}`},
	{"owner", `{verbs: [read, create, update, delete], types: [MeshTimeout, Dataplane], meshes: [default], namespaces: [payments]}`},
	{"viewer", ``},
	{"admin", ``},
}

// limited are the shapes without access to anything that concerns the whole server.
var limited = []string{"none", "mesh", "mesh*", "ns", "ns-empty", "ns*", "mesh+ns", "name", "name*", "owner"}

// within are the shapes that must not see anything of the namespace orders.
var within = []string{"none", "ns", "ns-empty", "mesh+ns", "name", "owner"}

// marker is in every resource of the namespace orders, and in no request.
const marker = "the-orders-secret"

// TestMatrixOfRights calls every route of both servers with every shape of role, with a namespace and a mesh in every
// place of the request that can hold one, and compares the answers with a table that a person can review. In addition,
// a limited role gets nothing that concerns the whole server, and no answer contains anything of another namespace.
func TestMatrixOfRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var out bytes.Buffer
	for _, s := range []*aServer{w.global, w.zone} {
		(&matrix{t: t, w: w, s: s, tokens: map[string]string{}}).write(&out)
	}
	compareGolden(t, "testdata/golden/rights.txt", out.Bytes())
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// matrix is the part of one server.
type matrix struct {
	t      *testing.T
	w      *world
	s      *aServer
	client *http.Client
	tokens map[string]string
}

func (m *matrix) write(out *bytes.Buffer) {
	m.prepare()
	fmt.Fprintf(out, "# %s: a status for each shape, behind a dash how much was left out, and the places where that is the answer\n", m.s.name)
	names := make([]string, len(shapes))
	for i, shape := range shapes {
		names[i] = shape.name
	}
	for _, row := range api.Table() {
		if on := map[string]api.Servers{"global": api.OnGlobal, "zone": api.OnZone}[m.s.name]; row.On&on == 0 {
			continue
		}
		need := strings.TrimSpace(strings.Join([]string{row.Verb, row.Type, string(row.Scope)}, " "))
		fmt.Fprintf(out, "\n%s [%s]\n  %splaces\n", row.Pattern, need, columns(names))
		for _, line := range m.lines(&row) {
			fmt.Fprintf(out, "  %s\n", line)
		}
	}
	fmt.Fprintln(out)
}

// columns pads all cells to one width, so that the answers of one shape are aligned.
func columns(cells []string) string {
	var b strings.Builder
	for _, cell := range cells {
		fmt.Fprintf(&b, "%-9s", cell)
	}
	return b.String()
}

// lines returns the answers of one route, one line per place. Places with the same answers share a line.
func (m *matrix) lines(row *api.Row) []string {
	var order []string
	places := map[string][]string{}
	for _, place := range placesOf(row, m.s.name) {
		var answers []string
		for _, shape := range shapes {
			answers = append(answers, m.ask(row, shape.name, place))
		}
		line := columns(answers)
		if places[line] == nil {
			order = append(order, line)
		}
		places[line] = append(places[line], place.name)
	}
	var out []string
	for _, line := range order {
		out = append(out, line+strings.Join(places[line], ", "))
	}
	return out
}

// ask returns the status of one answer, with the number of items that it left out.
func (m *matrix) ask(row *api.Row, shape string, p place) string {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), row.Method(), m.s.url+p.target, strings.NewReader(p.body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.tokens[shape])
	if p.body != "" {
		req.Header.Set("Content-Type", "application/yaml")
	}
	resp, err := m.client.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	about := fmt.Sprintf("%s: %s %s, %s, as %s", m.s.name, row.Pattern, p.target, p.name, shape)
	switch {
	case row.Scope == access.ScopeServer && slices.Contains(limited, shape) && resp.StatusCode != http.StatusForbidden:
		m.t.Errorf("%s: %d, and nothing of the whole server is for a limited role", about, resp.StatusCode)
	case shape == "none" && row.Verb != "" && resp.StatusCode < 400:
		m.t.Errorf("%s: %d without any role", about, resp.StatusCode)
	case shape == "admin" && (resp.StatusCode == http.StatusForbidden || resp.StatusCode >= 500):
		m.t.Errorf("%s: %d", about, resp.StatusCode)
	}
	if bytes.Contains(body, []byte(marker)) && slices.Contains(within, shape) {
		m.t.Errorf("%s: the answer shows what is of another namespace:\n%s", about, body)
	}
	var left struct{ LeftOut int }
	if json.Unmarshal(body, &left) == nil && left.LeftOut > 0 {
		return fmt.Sprintf("%d-%d", resp.StatusCode, left.LeftOut)
	}
	return fmt.Sprint(resp.StatusCode)
}

// prepare creates the users and their subjects: resources in payments, in orders and in no namespace.
func (m *matrix) prepare() {
	transport := &http.Transport{TLSClientConfig: m.s.tls()}
	m.t.Cleanup(transport.CloseIdleConnections)
	m.client = &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var docs strings.Builder
	for _, shape := range shapes {
		role := "shape-" + strings.NewReplacer("*", "any", "+", "-").Replace(shape.name)
		m.tokens[shape.name] = issue(m.t, m.s, role, nil, time.Hour)
		bound := role
		switch {
		case shape.rules != "":
			fmt.Fprintf(&docs, "---\n{type: AccessRole, name: %s, spec: {rules: [%s]}}\n", role, shape.rules)
		case shape.name == "none":
			continue
		default:
			bound = shape.name
		}
		fmt.Fprintf(&docs, "---\n{type: AccessRoleBinding, name: %s, spec: {subjects: [{type: User, name: %s}], roles: [%s]}}\n", role, role, bound)
	}
	for _, one := range [][2]string{{"payments", "payments"}, {"orders", "orders"}, {"bare", ""}} {
		namespace := ""
		if m.s.name == "zone" {
			namespace = one[1]
		}
		if m.s.name == "zone" {
			docs.WriteString("---\n" + dataplaneDoc(one[0], namespace))
			docs.WriteString("---\n" + permissionDoc(one[0], namespace))
		}
		docs.WriteString("---\n" + timeoutDoc(one[0], namespace, markOf(namespace)))
	}
	if _, err := m.s.admin.ApplyDocuments(m.t.Context(), []byte(docs.String()), "application/yaml"); err != nil {
		m.t.Fatal(err)
	}
}
