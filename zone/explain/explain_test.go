package explain_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/explain"
)

var update = flag.Bool("update", false, "write the golden files anew")

// load reads the resources of files or folders.
func load(t *testing.T, files ...string) []*resources.Resource {
	t.Helper()
	var out []*resources.Resource
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list, err := resources.DecodeDocuments(raw, resources.DecodeOptions{})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, list...)
	}
	return out
}

const td = "spiffe://trust-domain.mesh/ns/"

// TestAnswers compares whole answers with golden files.
func TestAnswers(t *testing.T) {
	for name, q := range map[string]explain.Query{
		"denied-twice": {To: "backend-1", Inbound: "http-port", From: td + "default/sa/api-gateway",
			Method: "POST", Path: "/x"},
		"denied-by-default": {To: "backend-1", Inbound: "http-port", From: td + "observability/sa/prometheus",
			Method: "POST", Path: "/metrics/"},
		"normalised":       {To: "backend-1", Inbound: "8080", From: td + "default/sa/frontend", Path: "/x/../%61dmin?y"},
		"allowed":          {To: "backend-1", Inbound: "http-port", From: td + "default/sa/frontend", Path: "/x"},
		"shadow":           {To: "backend-1", Inbound: "http-port", From: td + "legacy/sa/old", Path: "/x"},
		"refused-by-envoy": {To: "backend-1", Inbound: "http-port", From: td + "default/sa/frontend", Path: "/x%2fadmin"},
		"tcp": {To: "backend-1", Inbound: "tcp-port", From: td + "observability/sa/prometheus",
			Path: "/metrics"},
		"service": {To: "backend", Inbound: "web", From: td + "legacy/sa/old", Path: "/x"},
		"labels":  {To: "app=backend,canary=yes", From: td + "default/sa/frontend"},
		"kri":     {To: "kri_dp_default_local__backend-1_http-port", From: "spiffe://Not A SPIFFE ID"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := explain.FromFiles(load(t, "testdata/backend.yaml"), explain.Options{}).Explain(q)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/answers/"+name+".golden.yaml", answer)
		})
	}
}

func golden(t *testing.T, file string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
	}
}

// TestQuestionsWithoutAnswer checks that the error for a wrong question names the wrong field.
func TestQuestionsWithoutAnswer(t *testing.T) {
	for _, c := range []struct {
		q           explain.Query
		field, text string
		notFound    bool
	}{
		{q: explain.Query{From: td}, field: "to", text: "name a Dataplane"},
		{q: explain.Query{To: "nobody", From: td}, field: "to", text: `no Dataplane or MeshService "nobody"`, notFound: true},
		{q: explain.Query{To: "backend", Kind: "Dataplane", From: td}, field: "to", text: `no Dataplane "backend"`,
			notFound: true},
		{q: explain.Query{To: "backend", Zone: "zone-9", From: td}, field: "to", text: `in zone "zone-9"`, notFound: true},
		{q: explain.Query{To: "backend-1", From: td}, field: "inbound", text: "http-port, tcp-port"},
		{q: explain.Query{To: "backend-1", Inbound: "admin", From: td}, field: "inbound",
			text: "it has http-port, tcp-port", notFound: true},
		{q: explain.Query{To: "backend", Inbound: "81", From: td}, field: "inbound", text: "no port", notFound: true},
		{q: explain.Query{To: "backend-2"}, field: "from", text: "is empty"},
		{q: explain.Query{To: "backend-2", From: td, Method: "get"}, field: "method", text: "capitals"},
		{q: explain.Query{To: "app=", From: td}, field: "to", text: "no Dataplane", notFound: true},
		{q: explain.Query{To: "a=b,c", From: td}, field: "to", text: "key=value"},
		{q: explain.Query{To: "kri_mtp_default___x_", From: td}, field: "to", text: "want a Dataplane"},
		{q: explain.Query{To: "kri_dp", From: td}, field: "to", text: "not a KRI"},
	} {
		_, err := explain.FromFiles(load(t, "testdata/backend.yaml"), explain.Options{}).Explain(c.q)
		var bad *explain.QueryError
		if !errors.As(err, &bad) || bad.Field != c.field || bad.NotFound != c.notFound ||
			!strings.Contains(bad.Reason, c.text) {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
}

// stored returns the snapshot of a server that has accepted the resources.
func stored(t *testing.T, list []*resources.Resource) store.Snapshot {
	t.Helper()
	s := store.NewMemory()
	var batch store.Batch
	for _, r := range list {
		home := resources.Home{}
		if r.Type == resources.TypeDataplane {
			home.Zone = "zone-1"
		}
		batch.Ops = append(batch.Ops, store.Op{Put: home.Labelled(r)})
	}
	if _, err := s.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	return s.Snapshot()
}

// TestGlobalsPolicyInAFile checks that a policy as kubectl prints it in the cluster of a global is the global's, whatever
// its system namespace is called, and not that of a zone's namespace.
func TestGlobalsPolicyInAFile(t *testing.T) {
	docs, err := resources.DecodeDocuments([]byte(`
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata: {name: of-global, namespace: causeway-system, labels: {kuma.io/origin: global}}
spec: {default: {deny: [{spiffeId: {type: Prefix, value: "spiffe://trust-domain.mesh/"}}]}}
`), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q := explain.Query{To: "backend-1", Inbound: "http-port", From: td + "default/sa/frontend", Path: "/x"}
	answer, err := explain.FromFiles(append(load(t, "testdata/backend.yaml"), docs...), explain.Options{}).Explain(q)
	if err != nil {
		t.Fatal(err)
	}
	if want := "kri_mtp_default__causeway-system_of-global_"; answer.Allowed() || answer.Policy != want {
		t.Errorf("%+v, want a denial by %s", answer, want)
	}
}
