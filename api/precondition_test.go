package api_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// sent makes a request with headers and returns the response's status, ETag and body.
func (f *fixture) sent(t *testing.T, method, path, body string, headers ...string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/yaml")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var said strings.Builder
	if _, err := io.Copy(&said, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("ETag"), said.String()
}

const conditional = "/meshes/default/meshtrafficpermissions/p"

// TestPreconditions checks that a conditional write happens only if the resource is as its author saw it.
func TestPreconditions(t *testing.T) {
	f := alone(t)
	one, other := permission("p"), strings.ReplaceAll(permission("p"), "spiffe://a", "spiffe://b")
	step := func(want int, method, path, body string, headers ...string) (tag string) {
		t.Helper()
		status, tag, said := f.sent(t, method, path, body, headers...)
		if status != want {
			t.Fatalf("%s %s %q: %d, want %d: %s", method, path, headers, status, want, said)
		}
		if want == http.StatusPreconditionFailed && !strings.Contains(said, `"outcome": "nothing"`) {
			t.Errorf("it does not say that nothing was stored: %s", said)
		}
		return tag
	}
	step(412, "PUT", conditional, one, "If-Match", "*")
	step(201, "PUT", conditional, one, "If-None-Match", "*")
	step(412, "PUT", conditional, other, "If-None-Match", "*")
	first := step(200, "GET", conditional, "")
	if again := step(200, "GET", conditional+"?form=explicit", ""); first == "" || again != first {
		t.Errorf("the tag is %q, and %q of another form", first, again)
	}
	step(412, "PUT", conditional+"?dryRun=server", other, "If-Match", `"0"`)
	step(200, "PUT", conditional+"?dryRun=server", other, "If-Match", first)
	step(200, "PUT", conditional, other, "If-Match", first)
	second := step(200, "GET", conditional, "")
	if second == first {
		t.Error("a write does not change the tag")
	}
	step(412, "PUT", conditional, one, "If-Match", first)
	step(412, "DELETE", conditional, "", "If-Match", first)
	step(200, "DELETE", conditional, "", "If-Match", second)
	step(201, "PUT", conditional, other)
	step(412, "PUT", conditional, one, "If-Match", second) // another one that looks the same

	for _, headers := range [][]string{{"If-Match", "5e1f"}, {"If-Match", `W/"5e1f"`}, {"If-Match", `"a", "b"`},
		{"If-Match", ""}, {"If-None-Match", `"a"`}, {"If-Match", "*", "If-None-Match", "*"},
		{"If-Match", `"a"`, "If-Match", `"b"`}} {
		step(400, "PUT", conditional, one, headers...)
	}
	step(400, "POST", "/_batch", one, "If-Match", "*")
	step(400, "POST", "/_batch", one, "If-Unmodified-Since", "Thu, 01 Jan 2026 00:00:00 GMT")
}

// TestTagIsNotOfTheStatus checks that a changed status changes no tag.
func TestTagIsNotOfTheStatus(t *testing.T) {
	f := alone(t)
	const path = "/meshes/default/meshservices/s"
	f.mustCall(t, "PUT", path, "type: MeshService\nmesh: default\nname: s\nspec: {ports: [{port: 80, appProtocol: http}]}\n")
	_, before, _ := f.sent(t, "GET", path, "")
	stored := f.store.Snapshot().Get(resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"}).Clone()
	stored.Status = []byte(`{"vips":[{"ip":"241.0.0.1"}]}`)
	if _, err := f.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: stored}}}); err != nil {
		t.Fatal(err)
	}
	_, after, said := f.sent(t, "GET", path, "")
	if !strings.Contains(said, "241.0.0.1") || after != before || after == "" {
		t.Errorf("the tag was %q and is %q, of %s", before, after, said)
	}
}

// TestOneOfManyWins lets writers that have read the same version replace it concurrently: one succeeds, all others get
// an error.
func TestOneOfManyWins(t *testing.T) {
	f := alone(t)
	f.mustCall(t, "PUT", conditional, permission("p"))
	_, tag, _ := f.sent(t, "GET", conditional, "")
	var won, lost atomic.Int32
	var writers sync.WaitGroup
	for _, name := range strings.Split("bcdefghijklmnopq", "") {
		decoded, err := resources.DecodeDocuments([]byte(strings.ReplaceAll(permission("p"), "spiffe://a",
			"spiffe://"+name)), resources.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			_, err := f.client.PutIf(t.Context(), decoded[0], tag)
			var refused *api.Error
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &refused) && refused.Status == http.StatusPreconditionFailed:
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if won.Load() != 1 || lost.Load() != 15 {
		t.Errorf("%d won, %d were told", won.Load(), lost.Load())
	}
}
