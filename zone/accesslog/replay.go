package accesslog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// call is a set of requests of one kind to one path, or of connections of one kind.
type call struct {
	*Entry

	section string
	// path is empty on TCP, and if it was not kept.
	path  string
	count uint64
	last  time.Time
}

// unclear reports whether the paths of these requests are unknown.
func (c *call) unclear() bool { return c.Method != "" && c.path == "" }

// callsOf returns the calls of an entry since a time, by path.
func callsOf(e *Entry, since time.Time) []call {
	kri, _ := resources.ParseKRI(e.Inbound)
	var out []call
	for _, path := range slices.Sorted(maps.Keys(e.paths)) {
		if seen := e.paths[path]; !seen.last.Before(since) {
			out = append(out, call{e, kri.Section, path, seen.count, seen.last})
		}
	}
	switch {
	case e.Method == "":
		out = append(out, call{e, kri.Section, "", e.Count, e.Last})
	case e.elsewhere > 0:
		out = append(out, call{e, kri.Section, "", e.elsewhere, e.Last})
	}
	return out
}

// replay proposes permissions for calls, and judges all calls by them.
type replay struct {
	suggestion *suggestion
	calls      []call
	inbounds   map[string]*grouping
	prefixes   bool
	said       map[string]*remark
	order      []string
}

// remark is one warning about several calls of an entry.
type remark struct {
	of    *Entry
	count uint64
	paths []string
}

// propose adds the allowed calls to the permissions, and reports those that it cannot add.
func (r *replay) propose() {
	denied := map[[4]string]time.Time{}
	for i := range r.calls {
		if c := &r.calls[i]; !c.Allowed {
			key := [4]string{c.section, c.Client, c.Method, c.path}
			denied[key] = later(denied[key], c.last)
		}
	}
	for i := range r.calls {
		c := &r.calls[i]
		if !c.Allowed {
			continue
		}
		path := c.path
		if r.prefixes {
			path = c.PathPrefix
		}
		match := matchOf(c.Client, c.Method, path, r.prefixes)
		switch {
		case !r.prefixes && c.unclear() && c.PathPrefix != Other:
			r.say("not allowed by it, because more paths were seen than are kept (prefixes would allow it, and everything below)", c)
		case c.Client == "" || c.Method == Other || path == Other || rbac.Fault(&match) != "":
			r.say("not allowed by it, because a permission cannot express it", c)
		case !r.prefixes && denied[[4]string{c.section, c.Client, c.Method, c.path}].After(c.last):
			r.say("not allowed by it, because they were denied later", c)
		default:
			r.include(c, path)
		}
	}
}

func (r *replay) include(c *call, path string) {
	if c.ShadowPolicy != "" {
		r.say("allowed by it, though "+r.suggestion.named(c.ShadowPolicy)+" would deny them", c)
	}
	if r.inbounds[c.section] == nil {
		r.inbounds[c.section] = &grouping{prefixes: r.prefixes, methods: map[[2]string]map[string]bool{}}
	}
	r.inbounds[c.section].add(c.Client, c.Method, path)
	r.suggestion.Observed += c.count
}

// judge evaluates the denied calls under the proposed permissions, with the evaluator that filters agree with.
func (r *replay) judge() {
	rules := map[string]matching.Rules{}
	for section, seen := range r.inbounds {
		rules[section] = matching.Rules{Items: []matching.Rule{{Conf: resources.PermissionConf{Allow: seen.matches()}}}}
	}
	for i := range r.calls {
		c := &r.calls[i]
		if c.Allowed {
			continue
		}
		by := r.suggestion.named(c.Policy)
		switch lets, known := letsIn(rules[c.section], c); {
		case !known:
			r.say("unknown whether it allows them, because their paths were not kept, though "+by+" denied them", c)
		case lets:
			r.say("ALLOWED by it, though "+by+" denied them", c)
		default:
			r.say("not allowed by it, because "+by+" denied them", c)
		}
	}
	r.flush()
	if r.prefixes {
		r.suggestion.warn("paths are allowed by their first segments: everything below is allowed too, seen or not")
	}
}

// letsIn reports whether rules allow a call. For requests to unknown paths, the result is known only if the rules allow
// nothing of the kind.
func letsIn(rules matching.Rules, c *call) (lets, known bool) {
	req := rbac.Request{Protocol: matching.TCP, Method: c.Method, Path: c.path}
	if c.Method != "" {
		req.Protocol = matching.HTTP
	}
	if c.Client != "" {
		req.URISANs = []string{c.Client}
	}
	if !c.unclear() && c.Method != Other {
		return rbac.Evaluate(rules, req).Enforced.Allowed, true
	}
	for _, item := range rules.Items {
		for _, m := range item.Conf.Allow {
			if m.SpiffeID.Value == c.Client && m.Path != nil && (c.Method == Other || slices.Contains(m.Method, c.Method)) &&
				(c.PathPrefix == Other || pathPrefix(m.Path.Value) == c.PathPrefix) {
				return false, false
			}
		}
	}
	return false, true
}

// say adds a warning about a call. It merges equal warnings about one entry.
func (r *replay) say(what string, c *call) {
	key := fmt.Sprintf("%s\x00%p", what, c.Entry)
	if r.said == nil {
		r.said = map[string]*remark{}
	}
	if r.said[key] == nil {
		r.said[key] = &remark{of: c.Entry}
		r.order = append(r.order, key)
	}
	r.said[key].count += c.count
	if c.path != "" {
		r.said[key].paths = append(r.said[key].paths, c.path)
	}
}

// maxNamedPaths limits the paths that a warning names.
const maxNamedPaths = 3

func (r *replay) flush() {
	for _, key := range r.order {
		what, _, _ := strings.Cut(key, "\x00")
		m := r.said[key]
		on := ""
		if m.of.Method != "" {
			paths := m.paths
			if len(paths) == 0 {
				paths = []string{"somewhere under " + m.of.PathPrefix}
			}
			if len(paths) > maxNamedPaths {
				paths = append(slices.Clone(paths[:maxNamedPaths]), fmt.Sprintf("and %d more", len(paths)-maxNamedPaths))
			}
			on = " (" + m.of.Method + " " + strings.Join(paths, ", ") + ")"
		}
		r.suggestion.warn("%s: %d of %s%s", what, m.count, cmp.Or(m.of.Client, "clients without one SPIFFE ID"), on)
	}
}
