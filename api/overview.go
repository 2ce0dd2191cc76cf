package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// insightOf returns the insight type of a resource type.
func insightOf(t resources.Type) resources.Type {
	if t == resources.TypeZone {
		return resources.TypeZoneInsight
	}
	return resources.TypeDataplaneInsight
}

// overviews lists resources together with their insights. With `brief=true` it leaves out what a list does not show.
func (s *Server) overviews(t resources.Type) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		l, err := parseSelection(r, t)
		if err != nil {
			return err
		}
		brief, err := BoolQuery(r.URL.Query(), briefQuery)
		if err != nil {
			return err
		}
		problems, err := BoolQuery(r.URL.Query(), problemsQuery)
		if err != nil {
			return err
		}
		v, reader, encode := s.view(), s.Reader(r), s.appendOverview
		l.overviews, l.insights, l.liveFrom = true, v, s.liveFrom
		if problems {
			l.problems = &withProblems{view: v, reader: reader, insights: v.insightsOf(l.query)}
		}
		if brief {
			encode = s.appendBrief
		}
		return s.writeList(w, r, l,
			func(dst []byte, found *resources.Resource) []byte { return encode(dst, v, found, reader) })
	}
}

func (s *Server) overview(t resources.Type) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key := resources.Key{Type: t, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"),
			Name: r.PathValue("name")}
		v := s.view()
		found, err := s.find(r, v, resources.VerbRead, key)
		if err != nil {
			return err
		}
		return writeRaw(w, s.appendOverview(nil, v, found, s.Reader(r)))
	}
}

// appendOverview appends `{type: "ZoneOverview", ..., zone: {...}, zoneInsight: {...}}`, or `leftOut: 1` instead of an
// insight that the caller may not read. This is the form of Kuma's HTTP API, which shows the proxies of a disconnected
// zone as disconnected since then; `unknown: {since, reason}` reports that their state is unknown.
func (s *Server) appendOverview(dst []byte, v view, r *resources.Resource, reader *Reader) []byte {
	lower := strings.ToLower(string(r.Type))
	dst = resources.AppendMeta(append(dst, '{'), r, string(r.Type)+"Overview")
	dst = append(append(append(dst, `,"`...), lower...), `":`...)
	dst = append(dst, r.Spec.JSON()...)
	key := r.Key
	key.Type = insightOf(r.Type)
	switch insight := v.get(key); {
	case !reader.insightOf(r): // even if there is none, which the caller may not know
		dst = append(dst, `,"leftOut":1`...)
	case insight == nil:
	default:
		dst = append(append(append(dst, `,"`...), lower...), `Insight":`...)
		dst = append(dst, insight.Spec.JSON()...)
	}
	if refused := s.refused(v, r, reader); refused > 0 {
		dst = strconv.AppendInt(append(dst, `,"refused":`...), int64(refused), 10)
	}
	if unknown := s.unknown(r); unknown != nil {
		if raw, err := json.Marshal(unknown); err == nil {
			dst = append(append(dst, `,"unknown":`...), raw...)
		}
	}
	return append(dst, '}')
}

// Unknown says since when and why a state is unknown. If it was never known to this server, Since is the server's
// start.
type Unknown struct {
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason"`
	// Known is set if the server at least knows that the zone has no session.
	Known bool `json:"-"`
}

// unknown returns why this server does not know whether a zone or the proxy of a Dataplane is connected, or nil. Only
// its zone knows about a proxy, and only the replica that had the zone about a zone.
func (s *Server) unknown(r *resources.Resource) *Unknown {
	if s.config.Absent == nil {
		return nil
	}
	switch {
	case r.Type == resources.TypeDataplane && r.Zone() != "":
		return s.config.Absent(r.Zone())
	case r.Type == resources.TypeZone:
		if why := s.config.Absent(r.Name); why != nil && !why.Known {
			return why
		}
	}
	return nil
}

// refused counts what is refused now: of a zone the resources, by it or by this server; of a proxy the kinds of its
// configuration. The counts of a session also have what was mended since. It is 0 for a caller who may not read the insight.
func (s *Server) refused(v view, r *resources.Resource, reader *Reader) int {
	switch {
	case !reader.insightOf(r):
		return 0
	case r.Type == resources.TypeZone:
		if s.config.Refused == nil {
			return 0
		}
		return s.config.Refused(r.Name)
	}
	key := r.Key
	key.Type = insightOf(r.Type)
	insight := v.get(key)
	if insight == nil {
		return 0
	}
	return len(refusedByProxy(proxyProblems(insight)))
}

// refusedByProxy returns the kinds of configuration that a proxy with these problems refuses now, sorted.
func refusedByProxy(problems map[string]string) (kinds []string) {
	for source := range problems {
		if kind, is := strings.CutPrefix(source, "refused-"); is {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// problemsOf returns the problems of a proxy by their source, nil if there are none.
func problemsOf(insight *meshpb.DataplaneInsight) map[string]string {
	fields := insight.GetMetadata().GetFields()["problems"].GetStructValue().GetFields()
	if len(fields) == 0 {
		return nil
	}
	out := make(map[string]string, len(fields))
	for source, text := range fields {
		out[source] = text.GetStringValue()
	}
	return out
}
