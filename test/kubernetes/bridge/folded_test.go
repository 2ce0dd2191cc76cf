package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/test/peer"
)

var foldedProxies = flag.Int("folded-proxies", 200, "simulated proxies of TestKubernetesStatusWritesAreFolded; 1000 is the long form")

// How a change spreads in TestKubernetesStatusWritesAreFolded.
const (
	// foldedSpread is how long proxies take, all together, to acknowledge a change.
	foldedSpread = 10 * time.Second
	// foldedEdits is how many times a user changes the policy while it spreads, foldedEvery how often.
	foldedEdits = 50
	foldedEvery = 100 * time.Millisecond
	// foldedLeast is the shortest time between two writes of an object's status.
	foldedLeast = time.Second
	// foldedPolicy is what is written of the policy.
	foldedPolicy = "meshtrafficpermissions/backend-ns/wide/status"
)

// TestKubernetesStatusWritesAreFolded has a change of a policy spread to many proxies, which acknowledge one after another, and
// then changes it ten times a second while they do. By the API server's own log of requests, the zone writes
// its status at most once a second, whatever it learns meanwhile, and the last write says that all proxies have it.
func TestKubernetesStatusWritesAreFolded(t *testing.T) {
	t.Parallel()
	w := newAuditedWorld(t)
	z := w.zone()
	all := fmt.Sprintf("enforced by %d of %[1]d proxies", *foldedProxies)
	p := z.connect(*foldedProxies)
	w.apply(permission("wide", "backend-ns", "Exact"))
	w.programmed("wide", all)

	p.held.Store(true)
	before := len(w.audited())
	w.apply(permission("wide", "backend-ns", "Prefix"))
	p.release(t.Context(), *foldedProxies, foldedSpread)
	w.programmed("wide", all)
	writes := w.audited()[before:]
	w.folded(writes)
	var steps []string
	for _, one := range writes {
		if said := one.progress(); one.of() == foldedPolicy && said != "" && said != all {
			steps = append(steps, said)
		}
	}
	if len(steps) < 2 {
		t.Errorf("the status does not tell how it spreads: %q", steps)
	}

	p.held.Store(true)
	before = len(w.audited())
	users, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(alice)})
	must(t, err)
	group := errgroup.Group{}
	group.Go(func() error {
		next := time.NewTicker(foldedEvery)
		defer next.Stop()
		for i := range foldedEdits {
			<-next.C
			_, err := users.Patch(t.Context(), permissions, apiserver.Name{Namespace: "backend-ns", Name: "wide"}, "", fmt.Appendf(nil, "{%s}", specOf(i)))
			if err != nil {
				return err
			}
		}
		return nil
	})
	p.release(t.Context(), *foldedProxies, foldedSpread)
	must(t, group.Wait())
	p.freed()
	w.programmed("wide", all)
	w.folded(w.audited()[before:])
}

// programmed waits until a permission is programmed, at all proxies.
func (w *world) programmed(name, all string) {
	w.t.Helper()
	if message := w.condition("mtp", "backend-ns", name, "Programmed", "True"); !strings.Contains(message, all) {
		w.t.Errorf("%s is programmed: %q, want %q", name, message, all)
	}
}

// folded checks that each object's status is written at most once a second: that of the policy, and that of its Mesh, which
// concerns the same proxies. No other is written.
func (w *world) folded(writes []audit) {
	w.t.Helper()
	last, counted := map[string]*audit{}, map[string]int{}
	for i := range writes {
		one := &writes[i]
		of := one.of()
		if before := last[of]; before != nil {
			if pause := one.RequestReceivedTimestamp.Sub(before.RequestReceivedTimestamp); pause < foldedLeast {
				w.t.Errorf("%s after a write came another: %s, then %s", pause, before.RequestObject, one.RequestObject)
			}
		}
		last[of] = one
		counted[of]++
	}
	w.t.Logf("writes: %v", counted)
	if counted[foldedPolicy] < 2 {
		w.t.Errorf("the policy's status was not followed: %v", counted)
	}
	delete(counted, foldedPolicy)
	delete(counted, "meshes//default/status")
	if len(counted) > 0 {
		w.t.Errorf("the zone wrote of others: %v", counted)
	}
}

// paced are simulated proxies that acknowledge when they may.
type paced struct {
	held   atomic.Bool
	tokens chan struct{}
}

// wait returns when one more proxy may acknowledge.
func (p *paced) wait(ctx context.Context) {
	if !p.held.Load() {
		return
	}
	select {
	case <-p.tokens:
	case <-ctx.Done():
	}
}

// release lets proxies acknowledge count times, spread over a time.
func (p *paced) release(ctx context.Context, count int, over time.Duration) {
	next := time.NewTicker(over / time.Duration(count))
	defer next.Stop()
	for range count {
		<-next.C
		select {
		case p.tokens <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// freed lets all proxies acknowledge from now on.
func (p *paced) freed() {
	p.held.Store(false)
	close(p.tokens)
}

// connect makes Dataplanes in the cluster and connects a simulated proxy for each, until all have their configuration and
// no Dataplane's status is to be written.
func (z *zone) connect(count int) *paced {
	z.w.t.Helper()
	users, err := apiserver.Connect(apiserver.Config{Kubeconfig: z.w.kubeconfig(admin), RequestsPerSecond: 2000})
	must(z.w.t, err)
	kind := apiserver.Kind{Group: "kuma.io", Version: "v1alpha1", Plural: "dataplanes", Name: "Dataplane", Namespaced: true}
	group := errgroup.Group{}
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			_, err := users.Create(z.w.t.Context(), kind, "backend-ns", []byte(dataplane(fmt.Sprintf("proxy-%d", i), 8080, nil)))
			return err
		})
	}
	must(z.w.t, group.Wait())
	z.w.eventually("all Dataplanes to say that they are accepted", func(ctx context.Context) error {
		out, err := z.w.tryKubectl(ctx, admin, "get", "dataplanes", "-n", "backend-ns", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Programmed")].status}`)
		if n := strings.Count(out, "True"); err != nil || n != count {
			return fmt.Errorf("%d do: %w", n, err)
		}
		return nil
	})
	raw, err := os.ReadFile(z.ready)
	must(z.w.t, err)
	var addresses struct{ XDS string }
	must(z.w.t, json.Unmarshal(raw, &addresses))
	p, proxies := &paced{tokens: make(chan struct{})}, make([]*peer.Proxy, count)
	for i := range proxies {
		proxies[i], err = peer.ConnectProxy(z.w.t.Context(), peer.ProxyConfig{XDS: addresses.XDS, Mesh: "default", Namespace: "backend-ns",
			Dataplane: fmt.Sprintf("proxy-%d", i), Pace: p.wait})
		must(z.w.t, err)
	}
	z.w.t.Cleanup(func() {
		for _, one := range proxies {
			_ = one.Close()
		}
	})
	for i, one := range proxies {
		z.w.eventually(fmt.Sprintf("proxy %d to have its configuration", i), func(context.Context) error {
			if err := one.Err(); err != nil || !one.Complete() {
				return fmt.Errorf("it has not: %w", err)
			}
			return nil
		})
	}
	return p
}

// audit is an entry of the API server's log of requests.
type audit struct {
	Verb      string
	ObjectRef struct{ Resource, Namespace, Name, Subresource string }
	// RequestObject is what was sent.
	RequestObject            json.RawMessage
	RequestReceivedTimestamp time.Time
}

// of names what the request is about.
func (a *audit) of() string {
	return strings.Join([]string{a.ObjectRef.Resource, a.ObjectRef.Namespace, a.ObjectRef.Name, a.ObjectRef.Subresource}, "/")
}

// progress is what a status says of the proxies that have the object.
func (a *audit) progress() string {
	_, rest, _ := strings.Cut(string(a.RequestObject), "enforced by ")
	numbers, _, found := strings.Cut(rest, " proxies")
	if !found {
		return ""
	}
	return "enforced by " + numbers + " proxies"
}

// auditPolicy has the API server log what the zone writes.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, users: ["` + zoneUser + `"], verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
`

// newAuditedWorld is a world whose API server logs what the zone writes.
func newAuditedWorld(t testing.TB) *world {
	t.Helper()
	build(t)
	w := &world{t: t, dir: t.TempDir()}
	policy := filepath.Join(w.dir, "audit.yaml")
	must(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	w.apiFlags = []string{"--audit-policy-file", policy, "--audit-log-path", filepath.Join(w.dir, "audit.log")}
	w.begin(shared.bin)
	return w
}

// audited returns what the zone has written, by the API server's log.
func (w *world) audited() []audit {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, "audit.log"))
	must(w.t, err)
	var out []audit
	for line := range bytes.Lines(raw) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var one audit
		must(w.t, json.Unmarshal(line, &one))
		out = append(out, one)
	}
	return out
}
