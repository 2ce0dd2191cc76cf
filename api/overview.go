package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
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
		l.overviews, l.liveFrom = true, s.liveFrom
		v, reader, encode := s.view(), s.Reader(r), s.appendOverview
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
