package abuse

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/causeway-mesh/causeway/api"
)

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
	out = append(out, askedFor(row, target, body)...)
	return append(out, morePlaces(row, server, zone, target)...)
}

// asksForMore are the parameters of the query, each with a value by which a request asks for more than without it, or for
// what is in the namespace orders.
var asksForMore = map[string]string{
	"zone": "zone-1", "mesh": "default", "namespace": "orders", "name": "orders", "service": "orders", "caller": "spiffe",
	"dataplane": "orders", "policy": "kri_mtp_default_zone-1_orders_orders_", "type": "MeshTimeout",
	"filter": "filter[labels.mark]=plain", "tag": "tag=kuma.io/service:orders", "gateway": "false",
	"size": "1000", "offset": "0", "callers": "500", "callersOffset": "0", "watch": "0", "grouped": "true", "reported": "true", "brief": "true",
	"problems": "true",
	"method":   "GET", "path": "/", "since": "24h", "paths": "prefix", "form": "explicit", "format": "kubernetes",
	"match": ".*", "unused": "true", "dryRun": "server", "user": "payments", "event": "write", "outcome": "done",
	"after": "0", "held": "x", "last": "1000", "limit": "1000", "wait": "1ms",
}

// askedFor returns a place for each parameter that a route takes, and one for all of them. A parameter without a value is
// a place, too: the golden file shows it as unknown.
func askedFor(row *api.Row, target, body string) []place {
	if row.Query == "" {
		return nil
	}
	var out []place
	var all []string
	for name := range strings.SplitSeq(row.Query, ",") {
		value, known := asksForMore[name]
		if !known {
			out = append(out, place{"?" + name + " HAS NO VALUE IN asksForMore", target, body})
			continue
		}
		if !strings.Contains(value, "=") {
			value = name + "=" + url.QueryEscape(value)
		}
		out, all = append(out, place{"?" + name, target + "?" + value, body}), append(all, value)
	}
	return append(out, place{"all of the query", target + "?" + strings.Join(all, "&"), body})
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
