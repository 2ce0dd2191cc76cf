package callers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/callers"
)

// The mesh of the benchmarks.
const (
	benchServices = 2_000
	benchProxies  = 5_000
	benchPolicies = 10_000
)

// biggest asks for the largest part of the matrix that there is in one answer.
const biggest = "/meshes/default/_access?size=500&callers=500"

// bigSite is a global with a mesh of many services in many zones.
func bigSite(b *testing.B) (*api.Server, *store.Memory) {
	b.Helper()
	s := store.NewMemory()
	var batch store.Batch
	put := func(zone, text string) {
		docs, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range docs {
			batch.Ops = append(batch.Ops, store.Op{Put: resources.Home{Zone: zone}.Labelled(r)})
		}
	}
	put("", "{type: Mesh, name: default}")
	zoneOf := func(service int) string { return fmt.Sprintf("zone-%d", service%100) }
	for i := range benchServices {
		put(zoneOf(i), fmt.Sprintf(`{type: MeshService, mesh: default, namespace: ns-%[2]d, name: s-%[1]d,
  spec: {selector: {dataplaneLabels: {matchLabels: {app: s-%[1]d}}}, ports: [{port: 80, appProtocol: http}]}}`, i, i%20))
	}
	for i := range benchProxies {
		of := i % benchServices
		put(zoneOf(of), fmt.Sprintf(`{type: Dataplane, mesh: default, namespace: ns-%[3]d, name: d-%[1]d,
  labels: {app: s-%[2]d, k8s.kuma.io/service-account: s-%[2]d}, networking: {address: 192.0.2.1, inbound: [{port: 80}]}}`, i, of, of%20))
	}
	for i := range benchPolicies {
		put("", policyOf(i, i%7))
	}
	if _, err := s.Apply(context.Background(), batch); err != nil {
		b.Fatal(err)
	}
	server := api.New(api.Config{Store: s})
	callers.Register(server, callers.Config{Store: s, Status: s})
	return server, s
}

// policyOf allows some callers of a service, one of them some requests only.
func policyOf(i, salt int) string {
	of := i % benchServices
	id := func(n int) string {
		caller := (of*31 + i*7 + n*13 + salt) % benchServices
		return fmt.Sprintf("spiffe://default.zone-%d.mesh.local/ns/ns-%d/sa/s-%d", caller%100, caller%20, caller)
	}
	return fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: p-%d, spec: {targetRef: {kind: Dataplane, labels: {app: s-%d}},
  rules: [{default: {deny: [{spiffeId: {type: Exact, value: %q}, method: [DELETE]}], allow: [{spiffeId: {type: Exact, value: %q}},
  {spiffeId: {type: Exact, value: %q}}, {spiffeId: {type: Prefix, value: "spiffe://default.zone-%d.mesh.local/ns/ns-3/"}}]}}]}}`,
		i, of, id(0), id(0), id(1), of%100)
}

func askBiggest(b *testing.B, server http.Handler) {
	b.Helper()
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, biggest, nil))
	if recorder.Code != http.StatusOK || recorder.Body.Len() < 100_000 {
		b.Fatalf("%d, %d bytes", recorder.Code, recorder.Body.Len())
	}
}

// BenchmarkFirstAnswer is the matrix of 500 services and 500 callers for a server that has parsed nothing yet.
func BenchmarkFirstAnswer(b *testing.B) {
	_, s := bigSite(b)
	for b.Loop() {
		server := api.New(api.Config{Store: s})
		callers.Register(server, callers.Config{Store: s, Status: s})
		askBiggest(b, server)
	}
}

// BenchmarkAnswerAfterChange is the same matrix after a change of one policy, with the median and the worst of them.
func BenchmarkAnswerAfterChange(b *testing.B) {
	server, s := bigSite(b)
	askBiggest(b, server)
	n, worst := 0, time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		n++
		docs, err := resources.DecodeDocuments([]byte(policyOf(n%benchServices, n)), resources.DecodeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: resources.Home{}.Labelled(docs[0])}}}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		begun := time.Now()
		askBiggest(b, server)
		worst = max(worst, time.Since(begun))
	}
	b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
}
