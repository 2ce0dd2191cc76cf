package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// routeInMetrics matches a route in the metrics.
var routeInMetrics = regexp.MustCompile(`causeway_api_request_seconds_count\{route="(GET|PUT|POST|DELETE) ([^"]+)"\}`)

// TestEveryRouteIsDescribed checks that each route of a server is in the document that it serves, and that real answers
// conform to it.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone := m.zones["zone-1"]
	m.apply(zone, callersProxy)
	for _, c := range []struct {
		server *cluster.Server
		paths  []string
	}{
		{m.global, []string{"/", "/zones", "/zones/_overview", "/zones/zone-1/_overview", "/zones/zone-1/_sync",
			"/zones/zone-1/_sync?type=Mesh", "/global-insight",
			"/_rollout/Mesh/-/default", "/_resources", "/policies", "/who-am-i", "/_kri/kri_m____default_",
			"/openapi.json", "/zones/zone-9/_sync",
			"/_keys", "/_replicas"}},
		{zone, []string{"/", "/_keys", "/_replicas", "/_sync", "/_sync?type=dataplanes",
			"/_rollout/dataplanes/default/frontend?namespace=frontend-ns", "/meshes/default/_trust",
			"/meshes/nowhere/_trust", "/_report/shadow", "/_report/denied",
			"/_suggest/permissions?dataplane=frontend&namespace=frontend-ns", "/dataplanes/_overview",
			"/meshes/default/dataplanes/_overview", "/_rollout/nothings/default/x"}},
	} {
		doc, router := documentOf(t, c.server)
		_, metrics := fetch(t, c.server.Address("diagnostics"), "/metrics")
		described := 0
		for _, found := range routeInMetrics.FindAllStringSubmatch(string(metrics), -1) {
			method, path := found[1], strings.TrimSuffix(found[2], "{$}")
			if item := doc.Paths.Value(path); item == nil || item.GetOperation(method) == nil {
				t.Errorf("%s: %s %s is not in the document", c.server.Name(), method, path)
			}
			described++
		}
		if described < 25 {
			t.Errorf("%s: the metrics tell of %d routes only", c.server.Name(), described)
		}
		for _, path := range c.paths {
			if err := keepsTo(router, c.server, path); err != nil {
				t.Errorf("%s: GET %s: %v", c.server.Name(), path, err)
			}
		}
	}
}

func documentOf(t *testing.T, s *cluster.Server) (*openapi3.T, routers.Router) {
	t.Helper()
	_, raw := fetch(t, s.Address("api"), "/openapi.json")
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return doc, router
}

func fetch(t *testing.T, address, path string) (int, []byte) {
	t.Helper()
	answer, err := get(t.Context(), address, path)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.body
}

type fetched struct {
	*http.Response
	body []byte
}

func get(ctx context.Context, address, path string) (*fetched, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return &fetched{answer, body}, err
}

// keepsTo validates a real answer, a success or an error, against the document.
func keepsTo(router routers.Router, s *cluster.Server, path string) error {
	ctx := context.Background()
	answer, err := get(ctx, s.Address("api"), path)
	if err != nil {
		return err
	}
	route, params, err := router.FindRoute(answer.Request)
	if err != nil {
		return err
	}
	asked := &openapi3filter.RequestValidationInput{Request: answer.Request, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(ctx, asked); err != nil && answer.StatusCode == http.StatusOK {
		return fmt.Errorf("the document refuses the request: %w", err)
	}
	answered := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: answer.StatusCode, Header: answer.Header,
		Body:    io.NopCloser(bytes.NewReader(answer.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateResponse(ctx, answered); err != nil {
		return fmt.Errorf("the document refuses the answer: %w", err)
	}
	return nil
}
