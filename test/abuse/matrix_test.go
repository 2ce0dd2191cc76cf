package abuse

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources/api"
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

// markOf returns the mark of a namespace. On the global, none of these resources is in a namespace.
func markOf(namespace string) string {
	if namespace == "orders" {
		return marker
	}
	return "plain"
}

func timeoutDoc(name, namespace, mark string) string {
	return fmt.Sprintf(`{type: MeshTimeout, mesh: default, name: %s, namespace: %q, labels: {mark: %s}, spec: {to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 1s}}]}}`+"\n", name, namespace, mark)
}

func dataplaneDoc(name, namespace string) string {
	return fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, namespace: %q, labels: {mark: %s, app: shop},
  networking: {address: 127.0.0.1, inbound: [{name: http, port: 8080, protocol: http, tags: {kuma.io/service: %s}}]}}`+"\n", name, namespace, markOf(namespace), name)
}

// permissionDoc returns a permission that applies everywhere, so that it also decides for other owners' proxies.
func permissionDoc(name, namespace string) string {
	return fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: %s, namespace: %q, labels: {mark: %s},
  spec: {rules: [{default: {allow: [{spiffeId: {type: Exact, value: "spiffe://%s/ns/a/sa/b"}}]}}]}}`+"\n", name, namespace, markOf(namespace), markOf(namespace))
}

// place is one way to put a namespace or a mesh into a request.
type place struct{ name, target, body string }

func placesOf(row *api.Row, server string) []place {
	zone := ""
	if server == "zone" {
		zone = "zone-1"
	}
	target := strings.NewReplacer("{mesh}", "default", "{name}", "payments", "{plural}", "meshtimeouts", "{type}",
		"meshtimeouts", "{purpose}", "nothing",
		"{id}", "11111111-1111-1111-1111-111111111111", "{serial}", "abcdef", "{inbound}", "http", "{kri}",
		kriOf("dp", "default", zone, "payments", "payments")+"http").Replace(row.Path())
	if strings.HasPrefix(target, "/zones/") {
		target = strings.Replace(target, "payments", "zone-9", 1)
	}
	if row.Method() == http.MethodDelete {
		target += "-gone" // an authorised caller gets 404, so that nothing is deleted
	}
	body := bodies[row.Pattern]
	said := func(query string) string { return target + "?" + query }
	out := []place{
		{"path", target, body}, {"?namespace=payments", said("namespace=payments"), body},
		{"?namespace=orders", said("namespace=orders"), body}, {"?namespace=", said("namespace="), body},
		{"?mesh&name", said("mesh=default&name=payments"), body},
		{"?namespace twice", said("namespace=payments&namespace=orders"), body},
	}
	if row.Method() != http.MethodGet && row.Method() != http.MethodDelete && row.Method() != http.MethodPut {
		out = append(out, place{"body", target,
			`{"namespace": "payments", "mesh": "default", "labels": {"k8s.kuma.io/namespace": "payments"}}`})
	}
	return append(out, morePlaces(row, server, zone, target)...)
}

// bodies are the bodies of routes that need one. Their requests change little, or are refused after authorisation.
var bodies = map[string]string{
	"POST /_can-i":                          `{"verb": "read", "type": "MeshTimeout"}`,
	"POST /tokens/user":                     `{"name": "payments", "validFor": "1s"}`,
	"POST /tokens/zone":                     `{"zone": "zone-5", "scope": ["ingress"], "validFor": "1s"}`,
	"POST /zones/{name}/_token":             `{"ttl": "never"}`,
	"POST /zones/{name}/_join":              `{"ttl": "never"}`,
	"POST /_batch":                          `{type: Nothing, name: x}`,
	"POST /meshes/{mesh}/_explain":          `{"to": "payments", "from": "spiffe://a/b"}`,
	"POST /_dataplane-tokens/_revoke":       `{"id": "11111111-1111-1111-1111-111111111111"}`,
	"POST /zoneingresses/{name}/_token":     `{"validFor": "1s"}`,
	"POST /meshes/{mesh}/_dataplane-tokens": `{"dataplane": "payments", "validFor": "1s"}`,
	"POST /meshes/{mesh}/dataplanes/{name}/_inbounds/{inbound}/_explain":   `{"from": "spiffe://a/b"}`,
	"POST /meshes/{mesh}/meshservices/{name}/_inbounds/{inbound}/_explain": `{"from": "spiffe://a/b"}`,
	"PUT /{plural}/{name}":               `{type: MeshTimeout, name: payments}`,
	"PUT /meshes/{mesh}/{plural}/{name}": timeoutDoc("payments", "", "plain"),
}

func kriOf(short, mesh, zone, namespace, name string) string {
	return strings.Join([]string{"kri", short, mesh, zone, namespace, name, ""}, "_")
}

// morePlaces returns the places that only some routes have: KRIs, fields of bodies, labels.
func morePlaces(row *api.Row, server, zone, target string) []place {
	namespaces := map[string]string{"payments": "payments", "orders": "orders", "bare": ""}
	if server == "global" {
		namespaces = map[string]string{"payments": "", "orders": "", "bare": ""}
	}
	var out []place
	add := func(name, target, body string) { out = append(out, place{name, target, body}) }
	label := `{type: MeshTimeout, mesh: default, name: payments, labels: {k8s.kuma.io/namespace: payments}, spec: {}}`
	otherMesh := `{type: MeshTimeout, mesh: other, name: payments, labels: {kuma.io/mesh: default}, spec: {}}`
	for _, name := range []string{"payments", "orders", "bare"} {
		namespace := namespaces[name]
		switch row.Pattern {
		case "GET /_kri/{kri}":
			add("KRI of "+name, "/_kri/"+kriOf("mt", "default", zone, namespace, name), "")
		case "POST /meshes/{mesh}/_explain":
			add("KRI of "+name, target, fmt.Sprintf(`{"to": %q, "from": "spiffe://a/b"}`,
				kriOf("dp", "default", zone, namespace, name)))
			add("body of "+name, target, fmt.Sprintf(`{"to": %q, "namespace": %q, "from": "spiffe://a/b"}`, name, namespace))
		case "POST /meshes/{mesh}/_dataplane-tokens":
			add("labels of "+name, target, fmt.Sprintf(`{"labels": {"k8s.kuma.io/namespace": %q}, "validFor": "1s"}`, name))
			add("slash of "+name, target+"?namespace=payments", fmt.Sprintf(`{"dataplane": %q}`, name+"/x"))
		case "POST /_batch":
			add("documents of "+name, "/_batch?dryRun=server", timeoutDoc(name, namespace, "x"))
			add("documents of payments and "+name, "/_batch?dryRun=server&namespace=payments",
				timeoutDoc("new", namespaces["payments"], "x")+"---\n"+timeoutDoc(name, namespace, "x"))
		case "PUT /meshes/{mesh}/{plural}/{name}":
			add("document of "+name, "/meshes/default/meshtimeouts/"+name+"?dryRun=server&namespace="+namespace,
				timeoutDoc(name, namespace, "x"))
		case "GET /meshes/{mesh}/{plural}/{name}", "GET /_rollout/{type}/{mesh}/{name}":
			add("path of "+name, strings.Replace(target, "/payments", "/"+name, 1)+"?namespace="+namespace, "")
		case "GET /meshes/{mesh}/dataplanes/{name}/_rules", "GET /meshes/{mesh}/dataplanes/{name}/_policies",
			"GET /meshes/{mesh}/dataplanes/{name}/_layout", "GET /meshes/{mesh}/dataplanes/{name}/_overview",
			"GET /meshes/{mesh}/dataplanes/{name}/xds", "GET /meshes/{mesh}/dataplanes/{name}/stats",
			"GET /meshes/{mesh}/dataplanes/{name}/clusters", "GET /meshes/{mesh}/dataplanes/{name}/certs":
			add("path of "+name, strings.Replace(target, "/payments", "/"+name, 1)+"?namespace="+namespace, "")
		case "GET /meshes/{mesh}/dataplanes/{name}/_inbounds/{kri}/_policies":
			kri := kriOf("dp", "default", zone, namespace, name) + "http"
			add("KRI of "+name, "/meshes/default/dataplanes/"+name+"/_inbounds/"+kri+"/_policies?namespace="+namespace, "")
			add("KRI of "+name+", path of payments", "/meshes/default/dataplanes/payments/_inbounds/"+kri+
				"/_policies?namespace="+namespaces["payments"], "")
		case "GET /meshes/{mesh}/{plural}":
			add("label of "+name, target+"?filter[labels.mark]="+url.QueryEscape("plain")+"&namespace="+namespace, "")
		}
	}
	switch row.Pattern {
	case "POST /_batch":
		add("label", "/_batch?dryRun=server", label)
		add("label of the mesh", "/_batch?dryRun=server", otherMesh)
	case "POST /meshes/{mesh}/_explain":
		add("labels", target, `{"to": "app=shop", "from": "spiffe://a/b"}`)
	}
	return out
}
