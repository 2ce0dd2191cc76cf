package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// Report is the result of running expectations.
type Report struct {
	Cases          []Case   `json:"cases"`
	Passed, Failed int      `json:"-"`
	Coverage       Coverage `json:"coverage"`
}

// Case is one request and its expectation.
type Case struct {
	File string `json:"file"`
	Name string `json:"name"`
	Line int    `json:"line"`
	// The request, as the test states it.
	From    string `json:"from"`
	Method  string `json:"method,omitempty"`
	Path    string `json:"path,omitempty"`
	To      string `json:"to"`
	Inbound string `json:"inbound,omitempty"`
	// Want and Got are the verdict, and its decider if the test requires one. Failure is empty if the case passed.
	Want    string `json:"want"`
	Got     string `json:"got"`
	Failure string `json:"failure,omitempty"`
	// Answer is nil if the question was not valid.
	Answer *Answer `json:"answer,omitempty"`
}

// RunTests evaluates every case of the files and compares the results. A case whose destination does not exist fails.
func (w *World) RunTests(files []*TestFile) *Report {
	r := &Report{Cases: []Case{}}
	touched := map[touch]bool{}
	for _, f := range files {
		world := w.with(f)
		for i := range f.Tests {
			for q := range f.Tests[i].queries(f) {
				c := world.runCase(f, &f.Tests[i], q)
				if c.Answer != nil {
					for _, m := range c.Answer.Matched {
						touched[touch{m.Policy, m.Field}] = true
					}
				}
				if c.Failure == "" {
					r.Passed++
				} else {
					r.Failed++
				}
				r.Cases = append(r.Cases, c)
			}
		}
	}
	r.Coverage = w.coverage(touched)
	return r
}

// with adds a file's destinations to the world.
func (w *World) with(f *TestFile) *World {
	if len(f.Destinations) == 0 {
		return w
	}
	var added []*resources.Resource
	for name, d := range f.Destinations {
		if r, err := d.dataplane(name, w.options); err == nil { // its parts are strings and numbers, so it encodes
			added = append(added, r)
		}
	}
	return newWorld(w.options, func(t resources.Type, mesh string) iter.Seq[*resources.Resource] {
		return func(yield func(*resources.Resource) bool) {
			for r := range w.list(t, mesh) {
				if !yield(r) {
					return
				}
			}
			for _, r := range added {
				if r.Type == t && (mesh == "" || r.Mesh == mesh) && !yield(r) {
					return
				}
			}
		}
	})
}

// dataplane returns a Dataplane that stands in for the destination.
func (d *Destination) dataplane(name string, o Options) (*resources.Resource, error) {
	type inbound struct {
		Name     string            `json:"name,omitempty"`
		Port     uint32            `json:"port"`
		Protocol string            `json:"protocol"`
		Tags     map[string]string `json:"tags,omitempty"`
	}
	var inbounds []inbound
	for _, in := range d.Inbounds {
		inbounds = append(inbounds, inbound(in))
	}
	raw, err := json.Marshal(map[string]any{"networking": map[string]any{"address": "192.0.2.1", "inbound": inbounds}})
	if err != nil {
		return nil, err
	}
	spec, err := resources.NewSpec(resources.TypeDataplane, raw)
	if err != nil {
		return nil, err
	}
	r := &resources.Resource{
		Key: resources.Key{Type: resources.TypeDataplane, Mesh: cmp.Or(d.Mesh, defaultMesh), Namespace: d.Namespace,
			Name: name},
		Labels: map[string]string{}, Spec: spec,
	}
	for k, v := range d.Labels {
		r.Labels[k] = v
	}
	r.Labels[resources.LabelZone] = cmp.Or(d.Zone, r.Labels[resources.LabelZone], o.Zone, localZone)
	return atHome(r, o), nil
}

// queries yields the combinations of a test's lists.
func (t *Test) queries(f *TestFile) iter.Seq[Query] {
	one := func(list []string) []string {
		if len(list) == 0 {
			return []string{""}
		}
		return list
	}
	return func(yield func(Query) bool) {
		for _, from := range t.From {
			for _, method := range one(t.Method) {
				for _, path := range one(t.Path) {
					q := Query{
						Mesh: t.Mesh, Zone: t.Zone, Namespace: t.Namespace, To: t.To, Inbound: t.Inbound, From: from,
						Method: method, Path: path, SNI: t.SNI,
						Headers: t.Headers,
					}
					if id, ok := f.Identities[from]; ok {
						q.From = id
					}
					if d, ok := f.Destinations[t.To]; ok {
						q.Mesh, q.Kind = cmp.Or(q.Mesh, d.Mesh), resources.TypeDataplane
					}
					if !yield(q) {
						return
					}
				}
			}
		}
	}
}

func (w *World) runCase(f *TestFile, t *Test, q Query) Case {
	c := Case{
		File: f.File, Name: t.title(&q), Line: t.line, From: q.From, Method: q.Method, Path: q.Path, To: q.To,
		Inbound: q.Inbound, Want: t.want(),
	}
	answer, err := w.Explain(q)
	if err != nil {
		c.Failure = err.Error()
		return c
	}
	c.Answer, c.Got = answer, answer.Verdict+" by "+answer.Policy
	c.Failure = t.judge(answer)
	return c
}

// title names a case. If a test has several cases, the title includes the request.
func (t *Test) title(q *Query) string {
	request := strings.Join(strings.Fields(q.Method+" "+q.Path), " ")
	text := t.Name
	if text == "" {
		text = fmt.Sprintf("%s to %s", q.From, q.To)
		if q.Inbound != "" {
			text += " " + q.Inbound
		}
		if request != "" {
			text += ": " + request
		}
		return text
	}
	if len(t.From) > 1 {
		text += ": " + q.From
	}
	if len(t.Method) > 1 || len(t.Path) > 1 {
		text += ": " + request
	}
	return text
}

func (t *Test) want() string {
	text := t.Expect
	if t.By != "" {
		text += " by " + t.By
	}
	return text
}

// judge returns how an answer differs from the expectation, or "".
func (t *Test) judge(a *Answer) string {
	for _, p := range a.Proxies {
		if p.Verdict != t.Expect {
			return fmt.Sprintf("want %s, got %s by %s at %s", t.want(), p.Verdict, p.Policy, p.Inbound)
		}
	}
	switch {
	case a.Verdict != t.Expect, t.By != "" && !decidedBy(a.Policy, t.By):
		return fmt.Sprintf("want %s, got %s by %s: %s", t.want(), a.Verdict, a.Policy, a.Reason)
	case t.Shadow != "" && a.shadowVerdict() != t.Shadow:
		return fmt.Sprintf("want %s in the shadow, got %s", t.Shadow, a.shadowVerdict())
	}
	return ""
}

func (a *Answer) shadowVerdict() string {
	if a.Shadow != nil {
		return a.Shadow.Verdict
	}
	return a.Verdict
}

// decidedBy compares a decider with a KRI, or with the name in one.
func decidedBy(decider, want string) bool {
	if decider == want {
		return true
	}
	kri, err := resources.ParseKRI(decider)
	return err == nil && kri.Name == want
}
