package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	defaultPageSize = 100
	maxPageSize     = 1000
)

// selection is the parsed query of a list.
type selection struct {
	query store.Query
	// name is a substring of the name.
	name string
	// size bounds the items; with 0 the response has only their total, and what a watch waits for.
	size int
	at   pageStart
	// tags and gateway select Dataplanes. gateway is "" or one of gatewayKinds.
	tags    map[string]string
	gateway string
	// overviews means that who is connected is shown, too, as insights has it. liveFrom is the server's.
	overviews bool
	insights  view
	liveFrom  uint64
	// problems is nil for a list that is not narrowed to proxies with problems.
	problems *withProblems
}

// revision returns the revision of what a list shows, as JSON, for the next watch. The insights of overviews are read before
// their resources: what changes between is reported once more.
func (l *selection) revision(v view) string {
	if l.overviews {
		v = l.insights
		return strconv.Quote(progress{stored: v.stored.Revision(), live: l.liveFrom + v.live.Revision()}.String())
	}
	return strconv.FormatUint(v.stored.Revision(), 10)
}

// matches checks the conditions that the store's query does not cover.
func (l *selection) matches(r *resources.Resource) bool {
	if l.name != "" && !strings.Contains(r.Name, l.name) && !strings.Contains(r.DisplayName(), l.name) {
		return false
	}
	return len(l.tags) == 0 && l.gateway == "" || l.matchesProxy(r)
}

// parseSelection reads `size`, `offset`, `name`, `namespace` and `filter[labels.KEY]`.
func parseSelection(r *http.Request, t resources.Type) (*selection, error) {
	l := &selection{query: store.Query{Type: t, Mesh: r.PathValue("mesh")}, size: defaultPageSize}
	for key, values := range r.URL.Query() {
		value := values[0]
		switch {
		case key == "size":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > maxPageSize {
				return nil, BadField("size", "want 0 to %d, got %q", maxPageSize, value)
			}
			l.size = n
		case key == "offset":
			at, ok := readStart(value)
			if !ok {
				return nil, BadField("offset", "want the offset of a link in `next`, got %q", value)
			}
			l.at = at
		case key == "name":
			l.name = value
		case key == "namespace":
			l.query.Namespace = &value
		case strings.HasPrefix(key, "filter["):
			label, ok := strings.CutPrefix(strings.TrimSuffix(strings.TrimPrefix(key, "filter["), "]"), "labels.")
			if !ok || !strings.HasSuffix(key, "]") || label == "" {
				return nil, BadField(key, "unknown filter, want filter[labels.KEY]=VALUE")
			}
			if l.query.Labels == nil {
				l.query.Labels = map[string]string{}
			}
			if len(values) > 1 {
				return nil, BadField(key, "appears twice")
			}
			l.query.Labels[label] = value
		}
	}
	if t == resources.TypeDataplane {
		return l, l.parseProxies(r)
	}
	return l, nil
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	d, err := descriptorOf(r)
	if err != nil {
		return err
	}
	l, err := parseSelection(r, d.Type)
	if err != nil {
		return err
	}
	explicit, err := wantsExplicit(r.URL.Query())
	if err != nil {
		return err
	}
	if explicit {
		return s.writeList(w, r, l, s.appendExplicit)
	}
	return s.writeList(w, r, l, resources.AppendUniversal)
}

// appendExplicit is AppendUniversal of the explicit form. A resource that does not decode has none and is shown as
// stored.
func (s *Server) appendExplicit(dst []byte, r *resources.Resource) []byte {
	if explicit, err := resources.Explicit(r, s.config.Home.SystemNamespace); err == nil {
		r = explicit
	}
	return resources.AppendUniversal(dst, r)
}

// writeList responds with one page. encode appends one item. `leftOut` counts all resources of the type that the caller
// may not read, regardless of the selection. It is omitted if zero.
func (s *Server) writeList(w http.ResponseWriter, r *http.Request, l *selection,
	encode func([]byte, *resources.Resource) []byte) error {
	reader, err := s.mayReadSome(r, l.query.Type)
	if err != nil {
		return err
	}
	v := s.view()
	total, shown := 0, 0
	var last *resources.Resource // on this page, if there is another one
	more := false
	items := []byte{'['}
	for found := range v.list(l.query) {
		if !l.matches(found) || !reader.May(found) || l.problems != nil && !l.problems.match(found) {
			continue
		}
		switch {
		case !l.at.before(found, total):
		case shown == l.size:
			more = l.size > 0 // a list of nothing only counts
		default:
			if shown > 0 {
				items = append(items, ',')
			}
			items = encode(items, s.shown(found, reader))
			last = found
			shown++
		}
		total++
	}
	if total == 0 && l.query.Mesh != "" && v.get(meshKey(l.query.Mesh)) == nil {
		return v.missing(meshKey(l.query.Mesh), s.Reader(r))
	}
	if total == 0 && !s.knows(l.query.Type) {
		return elsewhere(r.Method+" "+r.URL.Path, OnGlobal)
	}
	raw := append([]byte(`{"total":`), strconv.Itoa(total)...)
	raw = append(append(append(raw, `,"items":`...), items...), `],"next":`...)
	raw = append(raw, nextPage(r, l, last, more)...)
	if r.URL.Query().Has(watchQuery) {
		raw = append(append(raw, `,"revision":`...), l.revision(v)...)
	}
	hidden := reader.hidden(v, l.query)
	if l.problems != nil {
		hidden += l.problems.unseen
	}
	if hidden > 0 {
		raw = strconv.AppendInt(append(raw, `,"leftOut":`...), int64(hidden), 10)
	}
	return writeRaw(w, append(raw, '}'))
}

// nextPage returns the absolute URL of the page after l as JSON, or null if there are no more. last is the last resource
// of l.
func nextPage(r *http.Request, l *selection, last *resources.Resource, more bool) string {
	if !more {
		return "null"
	}
	q := r.URL.Query()
	q.Set("size", strconv.Itoa(l.size))
	q.Set("offset", l.at.after(last, l.size).String())
	next := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: q.Encode()}
	if r.TLS != nil {
		next.Scheme = "https"
	}
	quoted, err := json.Marshal(next.String())
	if err != nil {
		return "null"
	}
	return string(quoted)
}

func meshKey(name string) resources.Key { return resources.Key{Type: resources.TypeMesh, Name: name} }
