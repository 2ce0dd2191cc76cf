package inspect

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

const (
	defaultPageSize = 100
	maxPageSize     = 1000
)

// Dataplanes is the answer to `_resources/dataplanes`: the proxies that a policy selects, or that serve a MeshService.
type Dataplanes struct {
	Total int    `json:"total"`
	Items []Meta `json:"items"`
	// Next is the URL of the next page, or null.
	Next *string `json:"next"`
	// LeftOut counts the Dataplanes that the caller may not read. They are neither shown nor in the total. The filters
	// of the request do not change the count.
	LeftOut int `json:"leftOut,omitempty"`
}

// touched answers for the policy or the MeshService that the path names. On the global, it evaluates the proxies of all
// zones.
func (h *handlers) touched(w http.ResponseWriter, r *http.Request) error {
	size, offset, err := pageOf(r.URL.Query())
	if err != nil {
		return err
	}
	v, holds, err := h.selection(r)
	if err != nil {
		return err
	}
	answer := Dataplanes{Items: []Meta{}}
	part, left := r.URL.Query().Get("name"), newLeftOut(h.server.Reader(r))
	for found := range v.snap.List(store.Query{Type: resources.TypeDataplane, Mesh: r.PathValue("mesh")}) {
		proxy, err := matching.NewProxy(found)
		if err == nil {
			proxy = proxy.WithGateways(v.gateways, v.config.SystemNamespace)
		}
		if err != nil || !holds(proxy) || left.out(found) || !strings.Contains(found.Name, part) &&
			!strings.Contains(proxy.Name, part) {
			continue
		}
		if answer.Total >= offset && len(answer.Items) < size {
			answer.Items = append(answer.Items, metaOf(found))
		}
		answer.Total++
	}
	answer.LeftOut = left.count()
	if offset+size < answer.Total {
		next := nextPage(r, size, offset+size)
		answer.Next = &next
	}
	return api.WriteLongJSON(w, answer)
}

// selection returns the condition by which the resource of the path selects proxies.
func (h *handlers) selection(r *http.Request) (*view, func(*matching.Proxy) bool, error) {
	d, ok := resources.LookupPath(r.PathValue("plural"))
	if !ok || d.Policy == nil && d.Type != resources.TypeMeshService && !isPermission(d.Type) {
		return nil, nil, api.NewError(http.StatusNotFound, "Not Found",
			"only policies and MeshServices select Dataplanes, not "+r.PathValue("plural"))
	}
	key := keyOf(r, d.Type)
	v := h.views.of(key.Mesh)
	if v == nil {
		return nil, nil, h.server.MissingMesh(r, h.views.config.Store.Snapshot(), key.Mesh)
	}
	found, err := h.server.Find(r, v.snap, resources.VerbRead, key)
	if err != nil {
		return nil, nil, err
	}
	if d.Type == resources.TypeMeshService {
		return v, func(p *matching.Proxy) bool { return serves(found, p) }, nil
	}
	policy := v.policies[found.Key]
	return v, func(p *matching.Proxy) bool {
		return !matching.JudgesNobody(found.Type, p) && matching.Selects(policy, p) && v.config.crosses(found, p.Zone)
	}, nil
}

// serves reports whether a port of a MeshService points to one of the proxy's inbounds.
func serves(service *resources.Resource, p *matching.Proxy) bool {
	for i := range p.Inbounds {
		if matching.Serves(service, p, &p.Inbounds[i], "") {
			return true
		}
	}
	return false
}

func pageOf(q url.Values) (size, offset int, err error) {
	size = defaultPageSize
	if text := q.Get("size"); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 1 || size > maxPageSize {
			return 0, 0, api.BadField("size", "want 1 to %d, got %q", maxPageSize, text)
		}
	}
	if text := q.Get("offset"); text != "" {
		if offset, err = strconv.Atoi(text); err != nil || offset < 0 {
			return 0, 0, api.BadField("offset", "want the offset of a link in `next`, got %q", text)
		}
	}
	return size, offset, nil
}

// nextPage returns the absolute URL of the page at offset.
func nextPage(r *http.Request, size, offset int) string {
	q := r.URL.Query()
	q.Set("size", strconv.Itoa(size))
	q.Set("offset", strconv.Itoa(offset))
	next := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
	if r.TLS != nil {
		next.Scheme = "https"
	}
	return next.String()
}
