package discovery

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var injected = injection.Settings{Image: "causeway-zone:test", Envoy: "envoy:test", XDSAddress: "causeway-zone.mesh.svc:5678",
	XDSCA: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", Audience: "causeway-proxy", SystemNamespace: "mesh",
	Bootstrap: func(*injection.Bootstrap) ([]byte, error) { return []byte("node: {}"), nil }}

// TestGolden: each archive of testdata has objects of one namespace, and what happens to them in the mesh. Pods are
// injected first, as the webhook does; those with the label captured-by, for a plugin that captures them.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			must(t, err)
			got := outcome(t, string(archive.Files[0].Data))
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "mesh.yaml", Data: []byte(got)})
				must(t, os.WriteFile(file, txtar.Format(archive), 0o600))
			}
			if len(archive.Files) != 2 || string(archive.Files[1].Data) != got {
				t.Errorf("differs (run with -update and look at the difference):\n%s", got)
			}
		})
	}
}

var home = resources.Home{Zone: "zone-1"}

// outcome returns what happens to objects, each in the form in which the store has it.
func outcome(t *testing.T, objects string) string {
	t.Helper()
	ns, node, pods, services := parse(t, objects)
	out := ""
	for _, p := range pods {
		r, problems, err := DataplaneOf(p, services, node[p.Spec.NodeName])
		must(t, err)
		out += shown(t, "Pod "+p.Metadata.Name, problems, r)
	}
	for _, s := range services {
		all, err := MeshServicesOf(s, ns, pods)
		must(t, err)
		out += shown(t, "Service "+s.Metadata.Name, nil, all...)
	}
	return out
}

func shown(t *testing.T, of string, problems []Problem, all ...*resources.Resource) string {
	t.Helper()
	out := "# " + of + "\n"
	for _, p := range problems {
		out += fmt.Sprintf("# %s: %s\n", p.Reason, p.Message)
	}
	for _, r := range all {
		if r == nil {
			continue
		}
		if err := resources.Validate(r, home); err != nil {
			out += "# " + err.Error() + "\n"
		}
		raw, err := resources.EncodeYAML(resources.AppendUniversal(nil, home.Labelled(r)))
		must(t, err)
		out += string(raw) + "---\n"
	}
	return out
}

// parse reads objects of one namespace.
func parse(t testing.TB, objects string) (ns *Namespace, nodes map[string]*Node, pods []*Pod, services []*Service) {
	t.Helper()
	nodes = map[string]*Node{}
	for _, text := range strings.Split(objects, "---\n") {
		raw, err := yaml.YAMLToJSON([]byte(text))
		must(t, err)
		var head struct{ Kind string }
		must(t, json.Unmarshal(raw, &head))
		if head.Kind == "Pod" {
			raw = inject(t, raw, ns)
		}
		o, err := apiserver.Parse(raw)
		must(t, err)
		switch head.Kind {
		case "Namespace":
			ns, err = readNamespace(o)
		case "Node":
			nodes[o.Meta.Name], err = readNode(o)
		case "Pod":
			var p *Pod
			p, err = readPod(o)
			pods = append(pods, p)
		case "Service":
			var s *Service
			s, err = readService(o)
			services = append(services, s)
		default:
			t.Fatalf("what is a %q?", head.Kind)
		}
		must(t, err)
	}
	slices.SortFunc(services, func(a, b *Service) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return ns, nodes, pods, services
}

// inject returns what the webhook makes of a pod.
func inject(t testing.TB, pod []byte, ns *Namespace) []byte {
	t.Helper()
	settings := injected
	settings.CNI = strings.Contains(string(pod), `"captured-by":"plugin"`)
	result, err := injection.Inject(pod, injection.Namespace{Name: ns.Metadata.Name, Labels: ns.Metadata.Labels}, &settings)
	if errors.Is(err, injection.ErrRefused) {
		t.Fatal(err)
	}
	must(t, err)
	var document map[string]any
	must(t, json.Unmarshal(pod, &document))
	for _, op := range result.Patch {
		at, parts := document, strings.Split(op.Path[1:], "/")
		for _, part := range parts[:len(parts)-1] {
			at = at[part].(map[string]any)
		}
		var value any
		must(t, json.Unmarshal(op.Value, &value))
		at[parts[len(parts)-1]] = value
	}
	out, err := json.Marshal(document)
	must(t, err)
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestInjectedPodIsFound: discovery reads what injection writes.
func TestInjectedPodIsFound(t *testing.T) {
	t.Parallel()
	_, _, pods, _ := parse(t, `
kind: Namespace
metadata: {name: shop, labels: {kuma.io/sidecar-injection: enabled, kuma.io/mesh: second}}
---
kind: Pod
metadata: {name: backend, namespace: shop, annotations: {traffic.kuma.io/exclude-inbound-ports: "9000-9002, 9100"}}
spec:
  containers:
  - {name: app, args: [--mesh, forged], env: [{name: CAUSEWAY_INJECTED, value: '{"mesh":"forged"}'}]}
  initContainers:
  - {name: causeway-bootstrap, args: [--mesh, forged]}
  - {name: causeway-proxy, restartPolicy: Always, env: [{name: CAUSEWAY_INJECTED, value: '{"mesh":"forged"}'}]}
  - {name: mine, restartPolicy: Always, env: [{name: CAUSEWAY_INJECTED, value: '{"mesh":"forged"}'}]}
`)
	is := pods[0].proxy()
	if is == nil || is.mesh != "second" || is.in != 15006 || is.out != 15001 {
		t.Fatalf("the proxy is %+v", is)
	}
	for port, want := range map[uint32]bool{15021: true, 9000: true, 9001: true, 9002: true, 9003: false, 9100: true, 80: false} {
		if (&inbounds{past: is.bypassed()}).goesPast(port) != want {
			t.Errorf("port %d goes past: %t", port, !want)
		}
	}
}
