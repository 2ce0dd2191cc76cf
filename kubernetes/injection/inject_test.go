package injection_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var settings = injection.Settings{Image: "causeway-zone:test", Envoy: "envoy:test", XDSAddress: "causeway-zone.mesh.svc:5678",
	XDSCA: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", Audience: "causeway-proxy", SystemNamespace: "mesh",
	Nonce: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", Bootstrap: described}

// described stands for the bootstrap of Envoy, which is the zone's: it shows what injection asks for.
func described(b *injection.Bootstrap) ([]byte, error) { return yaml.Marshal(b) }

// TestInject: each archive of testdata has a namespace, a pod, and what happens to it: the pod as it is then with what its
// creator is told, or why it is refused. Those named cni are of a zone with a plugin, and those named ipv6 of a cluster whose
// pods have addresses of IPv6.
func TestInject(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var ns injection.Namespace
			if err := yaml.Unmarshal(archive.Files[0].Data, &ns); err != nil {
				t.Fatal(err)
			}
			pod, err := yaml.YAMLToJSON(archive.Files[1].Data)
			if err != nil {
				t.Fatal(err)
			}
			s := settings
			s.CNI, s.IPv6 = strings.HasPrefix(filepath.Base(file), "cni"), strings.HasPrefix(filepath.Base(file), "ipv6")
			got := outcome(t, pod, ns, &s)
			if *update {
				archive.Files = append(archive.Files[:2], txtar.File{Name: "outcome.yaml", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if len(archive.Files) != 3 || string(archive.Files[2].Data) != got {
				t.Errorf("differs (run with -update and look at the difference):\n%s", got)
			}
		})
	}
}

// TestResources: the proxy has the operator's requests and limits, or else those of the functions.
func TestResources(t *testing.T) {
	t.Parallel()
	ns := injection.Namespace{Name: "shop", Labels: map[string]string{"kuma.io/sidecar-injection": "enabled"}}
	for want, of := range map[string]injection.Settings{
		"limits: {memory: 512Mi}, requests: {cpu: 50m, memory: 64Mi}": {},
		"limits: {memory: 512Mi}, requests: {cpu: 5m}":                {Requests: map[string]string{"cpu": "5m"}},
		"limits: {cpu: 2}, requests: {cpu: 50m, memory: 64Mi}":        {Limits: map[string]string{"cpu": "2"}},
	} {
		s := settings
		s.CNI, s.Requests, s.Limits = true, of.Requests, of.Limits
		result, err := injection.Inject([]byte(`{"spec": {"containers": [{"name": "app"}]}}`), ns, &s)
		if err != nil {
			t.Fatal(err)
		}
		var added []struct{ Resources map[string]map[string]string }
		if err := json.Unmarshal(result.Patch[0].Value, &added); err != nil || len(added) != 1 {
			t.Fatalf("%s: %v", result.Patch[0].Value, err)
		}
		var wanted map[string]map[string]string
		if err := yaml.Unmarshal([]byte("{"+strings.ReplaceAll(want, "cpu: 2}", `cpu: "2"}`)+"}"), &wanted); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(added[0].Resources, wanted) {
			t.Errorf("%v, want %s", added[0].Resources, want)
		}
	}
}

// TestCheckResources: amounts that a pod could not have are refused, and so are requests above the limits.
func TestCheckResources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, amount string
		valid        bool
	}{
		{"cpu", "50m", true}, {"cpu", "0.5", true}, {"cpu", "2", true}, {"memory", "64Mi", true}, {"memory", "1e+08", true},
		{"ephemeral-storage", "1G", true}, {"cpu", "", false}, {"cpu", "50 m", false}, {"cpu", "-1", false}, {"memory", "64MB", false},
		{"memory", "1mi", false}, {"memory", "1e1000000000", false}, {"memory", strings.Repeat("1", 100), false}, {"gpu", "1", false},
	} {
		of := map[string]string{c.name: c.amount}
		for what, err := range map[string]error{"requests": injection.CheckResources(of, map[string]string{}),
			"limits": injection.CheckResources(map[string]string{}, of)} {
			if (err == nil) != c.valid {
				t.Errorf("%s: %s=%s: %v", what, c.name, c.amount, err)
			}
		}
	}
	for _, c := range []struct {
		requests, limits map[string]string
		valid            bool
	}{
		{nil, nil, true},
		{map[string]string{"cpu": "2"}, map[string]string{"memory": "1"}, true},
		{map[string]string{"cpu": "500m"}, map[string]string{"cpu": "0.5"}, true},
		{map[string]string{"cpu": "501m"}, map[string]string{"cpu": "0.5"}, false},
		{map[string]string{"memory": "1Gi"}, map[string]string{"memory": "1G"}, false},
		{map[string]string{"memory": "1e+09"}, map[string]string{"memory": "1Gi"}, true},
		{nil, map[string]string{"memory": "32Mi"}, false},
		{map[string]string{"memory": "1Gi"}, nil, false},
	} {
		if err := injection.CheckResources(c.requests, c.limits); (err == nil) != c.valid {
			t.Errorf("requests %v and limits %v: %v", c.requests, c.limits, err)
		}
	}
}

// outcome injects, and once more into what came of it, which has to change nothing.
func outcome(t *testing.T, pod []byte, ns injection.Namespace, s *injection.Settings) string {
	t.Helper()
	result, err := injection.Inject(pod, ns, s)
	if err != nil {
		if !errors.Is(err, injection.ErrRefused) {
			t.Fatal(err)
		}
		return "refused: " + err.Error() + "\n"
	}
	out := &bytes.Buffer{}
	for _, w := range result.Warnings {
		fmt.Fprintln(out, "# warning: "+w)
	}
	if len(result.Patch) == 0 {
		return out.String() + "# unchanged\n"
	}
	patched := apply(t, pod, result.Patch)
	again, err := injection.Inject(patched, ns, s)
	if err != nil || len(again.Patch) > 0 || !slices.Equal(again.Warnings, result.Warnings) {
		t.Errorf("once more: %v, %s", err, again.Patch)
	}
	text, err := yaml.JSONToYAML(patched)
	if err != nil {
		t.Fatal(err)
	}
	return out.String() + string(text)
}

// apply applies a patch that only adds members of objects.
func apply(t *testing.T, doc []byte, patch []injection.Operation) []byte {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(doc, &root); err != nil {
		t.Fatal(err)
	}
	for _, op := range patch {
		parts := strings.Split(strings.TrimPrefix(op.Path, "/"), "/")
		at := root
		for _, part := range parts[:len(parts)-1] {
			at = at[part].(map[string]any) // what JSON patch needs too: parents are there
		}
		var value any
		if err := json.Unmarshal(op.Value, &value); err != nil || op.Op != "add" {
			t.Fatalf("%s %s: %v", op.Op, op.Path, err)
		}
		at[parts[len(parts)-1]] = value
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTooLongForAnArgument: what no process could be started with is refused, and says why; what just fits is not. What
// Kubernetes replaces counts as long as it can be.
func TestTooLongForAnArgument(t *testing.T) {
	t.Parallel()
	ns := injection.Namespace{Name: "shop", Labels: map[string]string{"kuma.io/sidecar-injection": "enabled"}}
	for size, fits := range map[int]bool{1000: true, 128<<10 - 1 - 253: true, 128<<10 - 253: false, 1 << 20: false} {
		s := settings
		s.Bootstrap = func(b *injection.Bootstrap) ([]byte, error) {
			return []byte(b.Name + strings.Repeat("x", size-len(b.Name))), nil
		}
		_, err := injection.Inject([]byte(`{"metadata":{},"spec":{"containers":[{"name":"a"}]}}`), ns, &s)
		if (err == nil) != fits || err != nil && (!errors.Is(err, injection.ErrRefused) || !strings.Contains(err.Error(), "has room for 131071")) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	s := settings
	s.Bootstrap = func(*injection.Bootstrap) ([]byte, error) { return nil, errors.New("probes[0]: want more") }
	if _, err := injection.Inject([]byte(`{"metadata":{},"spec":{}}`), ns, &s); !errors.Is(err, injection.ErrRefused) || !strings.Contains(err.Error(), "probes[0]: want more") {
		t.Errorf("what cannot be rendered: %v", err)
	}
}

// FuzzInject: whatever a pod says, it is refused, or has the whole proxy, or did not ask for one.
func FuzzInject(f *testing.F) {
	f.Add([]byte(`{"metadata":{},"spec":{"containers":[{"name":"a"}]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"kuma.io/sidecar-injected":"true"}},"spec":{"initContainers":[{"name":"causeway-proxy"}]}}`))
	f.Add([]byte(`{"spec":{"initContainers":[{"name":"causeway-proxy","env":[{"name":"CAUSEWAY_INJECTED","value":"{\"mesh\":\"a\",` +
		`\"probes\":[{\"path\":\"/ABCDEFGHIJKLMNOPQRSTUVWXYZ/a\",\"port\":1}]}"}]}]}}`))
	f.Add([]byte(`{"spec":{"volumes":[null,{"name":"causeway-token"}],"containers":null}}`))
	f.Fuzz(func(t *testing.T, pod []byte) {
		ns := injection.Namespace{Name: "shop", Labels: map[string]string{"kuma.io/sidecar-injection": "enabled"}}
		result, err := injection.Inject(pod, ns, &settings)
		if err != nil {
			return
		}
		var root struct {
			Metadata *struct{ Labels map[string]string }
			Spec     *struct{ HostNetwork bool }
		}
		if json.Unmarshal(pod, &root) != nil || root.Metadata == nil || root.Spec == nil || !spelled(t, pod) {
			return // no pod of the API server
		}
		if off := root.Metadata.Labels["kuma.io/sidecar-injection"]; root.Spec.HostNetwork || off != "" && off != "enabled" {
			return
		}
		again, err := injection.Inject(apply(t, pod, result.Patch), ns, &settings)
		if err != nil || len(again.Patch) > 0 {
			t.Errorf("%s: once more: %v, %+v", pod, err, again)
		}
	})
}

// spelled reports whether all fields are spelled as the API server spells them. The decoder takes others.
func spelled(t *testing.T, pod []byte) bool {
	t.Helper()
	var root any
	if err := json.Unmarshal(pod, &root); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, name := range []string{"metadata", "labels", "annotations", "spec", "hostNetwork", "securityContext", "runAsUser",
		"initContainers", "containers", "volumes", "name", "privileged", "capabilities", "add", "ports", "containerPort",
		"protocol", "startupProbe", "readinessProbe", "livenessProbe", "exec", "lifecycle", "postStart", "preStop", "httpGet", "tcpSocket",
		"grpc", "port", "host", "path", "scheme", "httpHeaders", "value", "service", "timeoutSeconds", "args", "env"} {
		known[strings.ToUpper(name)] = name
	}
	var right func(any) bool
	right = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if name, ok := known[strings.ToUpper(key)]; ok && name != key || !right(value) {
					return false
				}
			}
		case []any:
			for _, value := range v {
				if !right(value) {
					return false
				}
			}
		}
		return true
	}
	return right(root)
}
