package inspect_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/callers"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// site is a server with the resources of testdata/mesh.yaml, and the document that its answers must match.
type site struct {
	handler http.Handler
	store   *store.Memory
	router  routers.Router
}

// newSite reads the resources as they are in zone-1, where the policies labelled `from: global` are copies. If zone is
// empty, it reads them as the global has them, with a second zone that has a Dataplane with the same labels.
func newSite(t *testing.T, zone string) *site {
	t.Helper()
	data, err := os.ReadFile("testdata/mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := resources.DecodeDocuments(data, resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{store: store.NewMemory()}
	var batch store.Batch
	for _, r := range docs {
		from := "zone-1"
		if written, ok := r.Labels["from"]; ok {
			from = strings.TrimPrefix(written, "global")
			delete(r.Labels, "from")
		}
		if zone != "" && from != zone && r.Type == resources.TypeDataplane {
			continue
		}
		batch.Ops = append(batch.Ops, store.Op{Put: asAt(r, from, zone)})
	}
	if _, err := s.store.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	server := api.New(api.Config{Store: s.store, Home: resources.Home{Zone: zone}})
	inspect.Register(server, inspect.Config{Store: s.store, Zone: zone})
	inspect.RegisterPermissions(server, s.store, explain.Options{Zone: zone})
	journal := accesslog.NewJournal(time.Now(), 0)
	who := callers.Config{Store: s.store, Status: s.store, Zone: zone, Journal: journal, Collecting: true}
	if zone == "" {
		who.Journal = nil
	}
	callers.Register(server, who)
	if zone == "" {
		s.handler, s.router = server, routerOf(t)
		return s
	}
	journal.Add(observed(), "/pay", time.Now())
	accesslog.Register(server, accesslog.Config{Store: s.store, Zone: zone, Journal: journal, Collecting: true})
	s.handler = server
	s.router = routerOf(t)
	return s
}

// observed returns a request that succeeded, and would not if shadow denials were enforced.
func observed() accesslog.Observation {
	return accesslog.Observation{
		Inbound: "kri_dp_default_zone-1_shop_backend_http", Client: "spiffe://default.zone-1.mesh.local/ns/shop/sa/web",
		Method: "GET", PathPrefix: "/pay",
		Allowed: true, Policy: "kri_mtp_default___base_", ShadowPolicy: "kri_mtp_default___base_",
	}
}

// asAt returns a resource written in zone from as a server has it: in zone at, or on the global if at is empty.
func asAt(r *resources.Resource, from, at string) *resources.Resource {
	r = resources.Home{Zone: from}.Labelled(r)
	if from != at && r.Type != resources.TypeMesh {
		var extra []string
		for _, label := range []string{resources.LabelZone, resources.LabelNamespace} {
			if v := r.Labels[label]; v != "" {
				extra = append(extra, v)
			}
		}
		r.Name, r.Namespace = hashing.Name(r.Mesh, r.Name, extra...), ""
	}
	return r
}

// ask makes a request and checks it and its answer against the document.
func (s *site) ask(t *testing.T, method, path, body string) (int, []byte) {
	t.Helper()
	request := func() *http.Request {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		return r
	}
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, request())
	r := request()
	route, params, err := s.router.FindRoute(r)
	if err != nil {
		t.Fatalf("%s %s is not in the document: %v", method, path, err)
	}
	asked := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(context.Background(), asked); err != nil && answer.Code == http.StatusOK {
		t.Errorf("%s %s: the document refuses the request: %v", method, path, err)
	}
	answered := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: answer.Code, Header: answer.Header(),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	answered.SetBodyBytes(answer.Body.Bytes())
	if err := openapi3filter.ValidateResponse(context.Background(), answered); err != nil {
		t.Errorf("%s %s: the document refuses the answer: %v", method, path, err)
	}
	return answer.Code, answer.Body.Bytes()
}
