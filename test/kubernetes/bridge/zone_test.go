package bridge

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// zone is a server: one whose users write in the world's API server, or one beside it.
type zone struct {
	*cluster.Process

	w     *world
	ready string
	url   string
	// diagnostics is where its metrics are.
	diagnostics string
}

// zone starts a zone that is connected with the API server. more are further flags.
func (w *world) zone(more ...string) *zone {
	w.t.Helper()
	return w.plainZone("zone-1", append(w.fed(), more...)...)
}

// fed are the flags of a server whose users write in the world's API server.
func (w *world) fed() []string {
	return []string{"--kubernetes-kubeconfig", w.kubeconfig(zoneUser), "--kubernetes-webhook-address",
		fmt.Sprintf("127.0.0.1:%d", w.hookPort), "--kubernetes-webhook-configuration", "causeway-zone"}
}

// plainZone starts a zone that knows of no Kubernetes, unless flags say so.
func (w *world) plainZone(name string, more ...string) *zone {
	w.t.Helper()
	return w.server("zone", name, append([]string{"--zone", name, "--xds-address", "127.0.0.1:0"}, more...)...)
}

// global starts a global. more are further flags.
func (w *world) global(more ...string) *zone {
	w.t.Helper()
	port, err := porttest.Free() // zones find it again after a restart
	must(w.t, err)
	return w.server("global", "global", append([]string{"--kds-address", fmt.Sprintf("127.0.0.1:%d", port)}, more...)...)
}

// server starts a server of a kind, with a folder of its own.
func (w *world) server(kind, name string, more ...string) *zone {
	w.t.Helper()
	z := &zone{w: w, ready: filepath.Join(w.dir, name+".ready")}
	var err error
	z.Process, err = w.Command(name, "causeway-"+kind, append([]string{"run", "--data-dir", filepath.Join(w.dir, name),
		"--api-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0", "--ready-file", z.ready}, more...)...)
	must(w.t, err)
	z.start()
	return z
}

// join is the flags by which a zone joins a global.
func (z *zone) join(name string) []string {
	z.w.t.Helper()
	out, err := run(z.w.t.Context(), "", filepath.Join(shared.bin, "causewayctl"), "--address", z.url, "zone", "create", name)
	must(z.w.t, err)
	at := strings.Index(out, "causeway-join:")
	if at < 0 {
		z.w.t.Fatalf("there is no join string in:\n%s", out)
	}
	return []string{"--join", strings.Fields(out[at:])[0]}
}

// put writes a permission by a server's HTTP API, which denies an identity.
func (z *zone) put(name, identity string) {
	z.w.t.Helper()
	status, text, err := z.call(z.w.t.Context(), http.MethodPut, "/meshes/default/meshtrafficpermissions/"+name, fmt.Sprintf(
		`{"type": "MeshTrafficPermission", "mesh": "default", "name": %q, "spec": {"default": {"deny": [{"spiffeId": {"type": "Exact", "value": %q}}]}}}`, name, identity))
	if err != nil || status >= http.StatusMultipleChoices {
		z.w.t.Fatalf("%d %v: %s", status, err, text)
	}
}

// start starts the zone, or starts it again.
func (z *zone) start() {
	z.w.t.Helper()
	_ = os.Remove(z.ready)
	must(z.w.t, z.Start())
	z.w.eventually(z.Name()+" to be ready", func(context.Context) error {
		raw, err := os.ReadFile(z.ready)
		var addresses struct{ API, Diagnostics string }
		if err == nil {
			err = json.Unmarshal(raw, &addresses)
		}
		z.diagnostics = "http://" + addresses.Diagnostics
		z.url = "http://" + addresses.API
		return err
	})
}

// webhooks tells the API server of the zone's webhook, and waits until it asks.
func (z *zone) webhooks(policy string) {
	z.w.t.Helper()
	z.configureWebhooks(policy)
	z.asked()
}

// asked waits until the API server asks the webhook.
func (z *zone) asked() {
	z.w.t.Helper()
	z.w.eventually("the API server to ask", func(ctx context.Context) error {
		out, err := z.w.feedKubectl(ctx, admin, permission("asked", "backend-ns", "Exactly"), "apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(out, "want Exact or Prefix") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

func (z *zone) configureWebhooks(policy string) {
	z.w.t.Helper()
	for kind, path := range map[string]string{"MutatingWebhookConfiguration": "mutate", "ValidatingWebhookConfiguration": "validate"} {
		operations := `["CREATE", "UPDATE"]`
		if path == "validate" {
			operations = `["CREATE", "UPDATE", "DELETE"]`
		}
		z.w.apply(fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": %q, "metadata": {"name": "causeway-zone"},
 "webhooks": [{"name": "%s.causeway.io", "clientConfig": {"url": "https://127.0.0.1:%d/%s"}, "sideEffects": "None",
 "admissionReviewVersions": ["v1"], "timeoutSeconds": 5, "failurePolicy": %q,
 "rules": [{"apiGroups": ["kuma.io"], "apiVersions": ["v1alpha1"], "operations": %s, "resources": ["*"], "scope": "*"}]}]}`,
			kind, path, z.w.hookPort, path, policy, operations))
	}
}

// permission is a MeshTrafficPermission with one entry of a type.
func permission(name, namespace, matchType string) string {
	return fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTrafficPermission", "metadata": {"name": %q, "namespace": %q},
 "spec": {"rules": [{"default": {"allow": [{"spiffeId": {"type": %q, "value": "spiffe://default.zone-1.mesh.local/ns/web/sa/%[1]s"}}]}}]}}
`, name, namespace, matchType)
}

// condition waits for a condition of an object, and returns its message.
func (w *world) condition(kind, namespace, name, condition, status string) string {
	w.t.Helper()
	message := ""
	w.eventually(fmt.Sprintf("%s=%s of %s %s/%s", condition, status, kind, namespace, name), func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", kind, "-n", namespace, name, "-o", "json")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		var object struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				Conditions []struct {
					Type, Status, Reason, Message string
					ObservedGeneration            int64
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &object); err != nil {
			return err
		}
		for _, c := range object.Status.Conditions {
			if c.Type == condition && c.Status == status && c.ObservedGeneration == object.Metadata.Generation {
				message = c.Message
				return nil
			}
		}
		return fmt.Errorf("generation %d: %+v", object.Metadata.Generation, object.Status.Conditions)
	})
	return message
}

// call sends a request to the zone's API.
func (z *zone) call(ctx context.Context, method, path, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, z.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(raw), err
}

// measures waits for a line in the zone's metrics.
func (z *zone) measures(line string) {
	z.w.t.Helper()
	z.w.eventually("the metric "+line, func(ctx context.Context) error {
		_, text, err := (&zone{url: z.diagnostics}).call(ctx, http.MethodGet, "/metrics", "")
		if err == nil && !strings.Contains(text, "\n"+line+"\n") {
			err = fmt.Errorf("it is not there")
		}
		return err
	})
}

// names lists the permissions in the zone's store, as namespace/name.
func (z *zone) names(ctx context.Context) ([]string, error) {
	status, text, err := z.call(ctx, http.MethodGet, "/meshtrafficpermissions?size=1000", "")
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("%d %s %w", status, text, err)
	}
	var list struct {
		Items []struct{ Namespace, Name string }
	}
	err = json.Unmarshal([]byte(text), &list)
	var out []string
	for _, one := range list.Items {
		out = append(out, one.Namespace+"/"+one.Name)
	}
	slices.Sort(out)
	return out, err
}

// holds waits until the zone's store has these permissions, and no others.
func (z *zone) holds(want ...string) {
	z.w.t.Helper()
	slices.Sort(want)
	z.w.eventually(fmt.Sprintf("the store to hold %v", want), func(ctx context.Context) error {
		got, err := z.names(ctx)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("it holds %v", got)
		}
		return err
	})
}

// run runs a command and returns what it prints, errors included.
func run(ctx context.Context, in, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &out
	err := cmd.Run()
	return out.String(), err
}

// keyPEM is a new private key.
func keyPEM(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
