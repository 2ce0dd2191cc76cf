package bridge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/resources"
)

// TestKubernetesDryRun asks kubectl and the HTTP API what every valid document would do: both say the same.
func TestKubernetesDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.global()
	z := w.zone(g.join("zone-1")...)
	z.webhooks("Fail")
	w.apply(`{"apiVersion": "kuma.io/v1alpha1", "kind": "Dataplane", "metadata": {"name": "web", "namespace": "backend-ns", "labels": {"app": "backend"}},
 "spec": {"networking": {"address": "10.0.0.1", "inbound": [{"name": "http", "port": 8080, "protocol": "http"}]}}}`)
	w.condition("dataplane", "backend-ns", "web", "Accepted", "True")

	archive, err := txtar.ParseFile(filepath.Join(shared.root, "resources", "testdata", "valid.txtar"))
	must(t, err)
	compared, proxies, warned := 0, 0, 0
	for _, f := range archive.Files {
		object, forecast := z.forecast(f, "backend-ns")
		if object == "" {
			object, forecast = z.forecast(f, systemName)
		}
		if object == "" {
			continue
		}
		out, err := w.feedKubectl(t.Context(), admin, object, "create", "--dry-run=server", "-f", "-")
		if err != nil {
			t.Errorf("%s: kubectl: %v\n%s", f.Name, err, out)
			continue
		}
		compared++
		want := said(&forecast.Results[0])
		if got := warningsIn(out); !slices.Equal(got, want) {
			t.Errorf("%s: kubectl says\n%q\nand the HTTP API\n%q", f.Name, got, want)
		}
		if p := forecast.Results[0].Proxies; p != nil {
			proxies += p.Total
		}
		warned += len(forecast.Results[0].Warnings)
	}
	t.Logf("%d documents, %d proxies, %d warnings", compared, proxies, warned)
	if compared < 20 || proxies == 0 || warned == 0 {
		t.Errorf("only %d documents were compared, with %d proxies and %d warnings", compared, proxies, warned)
	}
}

// forecast asks the HTTP API about a valid document, as an object of a namespace. The object is empty if users do not write
// it to this server, or not there.
func (z *zone) forecast(f txtar.File, namespace string) (object string, of *api.Forecast) {
	z.w.t.Helper()
	if strings.HasSuffix(f.Name, ".stored") {
		return "", nil
	}
	docs, err := resources.DecodeDocuments(f.Data, resources.DecodeOptions{})
	must(z.w.t, err)
	r := docs[0].Clone()
	if !kubernetes.Fed(r.Type) || r.Mesh != "" && r.Mesh != "default" {
		return "", nil
	}
	if r.Namespace = namespace; r.Type == resources.TypeMesh || r.Type == resources.TypeMeshGateway {
		r.Namespace = ""
	}
	object = string(resources.AppendKubernetes(nil, r))
	status, text, err := z.call(z.w.t.Context(), http.MethodPost, "/_batch?dryRun=server", object)
	must(z.w.t, err)
	if status != http.StatusOK {
		return "", nil
	}
	of = &api.Forecast{}
	must(z.w.t, json.Unmarshal([]byte(text), of))
	return object, of
}

// said is what kubectl should warn of, by the forecast of the HTTP API.
func said(f *api.ForecastItem) []string {
	var out []string
	line := func(text string) {
		if text = strings.Join(strings.Fields(text), " "); len(text) > 250 {
			text = strings.ToValidUTF8(text[:247], "") + "..."
		}
		out = append(out, text)
	}
	for _, warning := range f.Warnings {
		line(warning)
	}
	if f.Role != "" {
		line("role: " + string(f.Role))
	}
	line("synced to: " + cmp.Or(strings.Join(f.SyncedTo, ", "), "nowhere"))
	if p := f.Proxies; p != nil {
		line(fmt.Sprintf("proxies of zone %s: %d %s", p.Zone, p.Total, strings.Join(p.Items, " ")))
	}
	slices.Sort(out)
	return out
}

// warningsIn returns the warnings that kubectl printed.
func warningsIn(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		if warning, ok := strings.CutPrefix(strings.TrimSpace(line), "Warning: "); ok {
			all = append(all, strings.Join(strings.Fields(warning), " "))
		}
	}
	slices.Sort(all)
	return all
}
