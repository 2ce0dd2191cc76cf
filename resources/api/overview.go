package api

import (
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// insightOf returns the insight type of a resource type.
func insightOf(t resources.Type) resources.Type {
	if t == resources.TypeZone {
		return resources.TypeZoneInsight
	}
	return resources.TypeDataplaneInsight
}

// overviews lists resources together with their insights.
func (s *Server) overviews(t resources.Type) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		l, err := parseSelection(r, t)
		if err != nil {
			return err
		}
		v, reader := s.view(), s.Reader(r)
		return s.writeList(w, r, l, func(dst []byte, found *resources.Resource) []byte { return v.appendOverview(dst, found, reader) })
	}
}

func (s *Server) overview(t resources.Type) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key := resources.Key{Type: t, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"), Name: r.PathValue("name")}
		v := s.view()
		found, err := s.find(r, v, resources.VerbRead, key)
		if err != nil {
			return err
		}
		return writeRaw(w, v.appendOverview(nil, found, s.Reader(r)))
	}
}

// appendOverview appends `{type: "ZoneOverview", ..., zone: {...}, zoneInsight: {...}}`, or `leftOut: 1` instead of an
// insight that may not be read. This is the form of Kuma's HTTP API.
func (v view) appendOverview(dst []byte, r *resources.Resource, reader *Reader) []byte {
	lower := strings.ToLower(string(r.Type))
	dst = resources.AppendMeta(append(dst, '{'), r, string(r.Type)+"Overview")
	dst = append(append(append(dst, `,"`...), lower...), `":`...)
	dst = append(dst, r.Spec.JSON()...)
	key := r.Key
	key.Type = insightOf(r.Type)
	switch insight := v.get(key); {
	case insight == nil:
	case !reader.insightOf(r):
		dst = append(dst, `,"leftOut":1`...)
	default:
		dst = append(append(append(dst, `,"`...), lower...), `Insight":`...)
		dst = append(dst, insight.Spec.JSON()...)
	}
	return append(dst, '}')
}
