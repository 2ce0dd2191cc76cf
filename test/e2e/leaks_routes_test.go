package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// decoded returns the decoded part of a token or of a join string.
func (l *leaks) decoded(part string) []byte {
	l.t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(part)
	l.must(err)
	return raw
}

// routes records the answer of every GET route that a server describes, for each of its resources. Each route must
// succeed on one of the servers.
func (l *leaks) routes(s *cluster.Server) {
	l.t.Helper()
	doc, _ := documentOf(l.t, s)
	items := l.items(s)
	for template, item := range doc.Paths.Map() {
		if item.Get == nil {
			continue
		}
		if _, before := l.answered[template]; !before {
			l.answered[template] = false
		}
		for _, path := range l.paths(template, items) {
			answer, err := get(l.t.Context(), s.Address("api"), path)
			l.must(err)
			where := "GET " + template + " of " + s.Name() + ": " + path
			l.given[where] = answer.body
			l.answered[template] = l.answered[template] || answer.StatusCode == http.StatusOK
		}
	}
	if s == l.global {
		return // the zone is called last
	}
	for template, well := range l.answered {
		if !well {
			l.t.Errorf("GET %s gave no good answer: what did it not show?", template)
		}
	}
}

// items returns all resources of a server, at least one of each type.
func (l *leaks) items(s *cluster.Server) (items []cluster.Item) {
	l.t.Helper()
	for _, d := range resources.Descriptors() {
		found, err := s.API.List(l.t.Context(), "/"+d.Path)
		if cluster.StatusOf(err) == http.StatusNotFound {
			continue // a type of the other server
		}
		l.must(err)
		for i := range found {
			if found[i].Mesh == "" && d.Scope == resources.ScopeMesh {
				found[i].Mesh = "default"
			}
		}
		items = append(items, append(found, cluster.Item{Type: string(d.Type), Mesh: "default", Name: "none"})...)
	}
	return items
}

// paths returns the paths of a template for the items.
func (l *leaks) paths(template string, items []cluster.Item) []string {
	var out []string
	for i := range items {
		it := &items[i]
		d, _ := resources.Lookup(resources.Type(it.Type))
		of := "/" + d.Path + "/"
		fixed := !strings.Contains(template, "{plural}") && !strings.Contains(template, "{type}") &&
			strings.Contains(template, "{name}")
		if fixed && !strings.Contains(template, of) || strings.Contains(template, "{mesh}/{plural}") &&
			d.Scope != resources.ScopeMesh {
			continue
		}
		kri := it.KRI
		if strings.Contains(template, "_inbounds") {
			kri += "http"
		}
		if strings.Contains(template, "_outbounds") {
			kri = "kri_msvc_default_zone-1__backend_80"
		}
		mesh := it.Mesh
		if mesh == "" {
			mesh = "-"
			if !strings.Contains(template, "_rollout") {
				mesh = "default"
			}
		}
		path := strings.NewReplacer("{mesh}", mesh, "{plural}", d.Path, "{type}", d.Path, "{name}",
			url.PathEscape(it.Name), "{kri}", url.PathEscape(kri)).Replace(template)
		query := url.Values{}
		if it.Namespace != "" {
			query.Set("namespace", it.Namespace)
		}
		if strings.HasPrefix(template, "/_suggest") {
			query.Set("dataplane", it.Name)
		}
		for _, variant := range []map[string]string{nil, {"form": "explicit"}, {"format": "k8s"}} {
			if variant != nil && !strings.HasSuffix(template, "{name}") {
				continue
			}
			q := url.Values{}
			for k, v := range query {
				q[k] = v
			}
			for k, v := range variant {
				q.Set(k, v)
			}
			if len(q) > 0 {
				out = append(out, path+"?"+q.Encode())
			} else {
				out = append(out, path)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mistakes records the answers to requests that contain a secret in a wrong place or form.
func (l *leaks) mistakes(s *cluster.Server) {
	l.t.Helper()
	var token string
	for form, secret := range l.loot.forms {
		if strings.HasPrefix(form, "user token") && !strings.Contains(form, "signature") &&
			strings.HasSuffix(form, "as bytes") {
			token = string(secret)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"a token that goes on":        func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") },
		"a token with another scheme": func(r *http.Request) { r.Header.Set("Authorization", "Basic "+token) },
		"a token without a scheme":    func(r *http.Request) { r.Header.Set("Authorization", token) },
		"two tokens":                  func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + token, "Bearer " + token} },
		"a token in the body":         func(r *http.Request) { r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(token)) },
		"a token where a browser has one": func(r *http.Request) {
			r.Header.Set("Cookie", "token="+token)
			r.Header.Set("Origin", "https://evil.example")
		},
	} {
		l.given["the answer to "+name+" of "+s.Name()] = l.asked(s, change)
	}
}

func (l *leaks) asked(s *cluster.Server, change func(*http.Request)) []byte {
	l.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.API.URL()+"/tokens/user", nil)
	l.must(err)
	r.Header.Set("Content-Type", "application/json")
	change(r)
	answer, err := http.DefaultClient.Do(r)
	l.must(err)
	defer answer.Body.Close()
	var all bytes.Buffer
	l.must(answer.Header.Write(&all))
	_, err = all.ReadFrom(answer.Body)
	l.must(err)
	return all.Bytes()
}
