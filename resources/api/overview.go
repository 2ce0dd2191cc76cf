package api

import (
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// insightOf is the type of what was seen of resources of a type.
func insightOf(t resources.Type) resources.Type {
	if t == resources.TypeZone {
		return resources.TypeZoneInsight
	}
	return resources.TypeDataplaneInsight
}

// overviews lists resources together with what was seen of them.
func (s *Server) overviews(t resources.Type) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		l, err := parseSelection(r, t)
		if err != nil {
			return err
		}
		v := s.view()
		return s.writeList(w, r, l, v.appendOverview)
	}
}

func (s *Server) overview(t resources.Type) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key := resources.Key{Type: t, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"), Name: r.PathValue("name")}
		v := s.view()
		found, err := v.locate(r, key)
		if err != nil {
			return err
		}
		return writeRaw(w, v.appendOverview(nil, found))
	}
}

// appendOverview appends `{type: "ZoneOverview", ..., zone: {...}, zoneInsight: {...}}`.
// Source: kuma-wire, section 8.4.
func (v view) appendOverview(dst []byte, r *resources.Resource) []byte {
	lower := strings.ToLower(string(r.Type))
	dst = resources.AppendMeta(append(dst, '{'), r, string(r.Type)+"Overview")
	dst = append(append(append(dst, `,"`...), lower...), `":`...)
	dst = append(dst, r.Spec.JSON()...)
	key := r.Key
	key.Type = insightOf(r.Type)
	if insight := v.get(key); insight != nil {
		dst = append(append(append(dst, `,"`...), lower...), `Insight":`...)
		dst = append(dst, insight.Spec.JSON()...)
	}
	return append(dst, '}')
}
