package bridge

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// outage is how long the API server is away.
var outage = flag.Duration("outage", time.Minute, "how long TestKubernetesAPIServerAwayForLong keeps the API server away; 10m is the long form")

// TestKubernetesAPIServerAwayForLong keeps the API server away, in which another server's users write: all of that
// arrives in the zone at once, and is shown when the API server is back.
func TestKubernetesAPIServerAwayForLong(t *testing.T) {
	w := newWorld(t)
	g := w.global()
	z := w.zone(g.join("zone-1")...)
	w.apply(permission("own", "backend-ns", "Exact"))
	z.holds("backend-ns/own")
	w.api.Kill()
	const most = 300 // a page of a list has them all
	written, next := 0, time.NewTicker(*outage/most)
	defer next.Stop()
	for began := time.Now(); time.Since(began) < *outage; written++ {
		<-next.C
		name := fmt.Sprintf("while-away-%d", written)
		g.put(name, "spiffe://a/b")
		z.has(name)
		z.has("backend-ns/own")
	}
	z.measures(`causeway_kubernetes_followed{type="MeshTrafficPermission"} 0`)
	if out := z.doctor(); !strings.Contains(out, "the API server is not followed") {
		t.Errorf("doctor says\n%s", out)
	}
	must(t, w.api.Start())
	w.apiServerReady()
	w.eventually("all copies to be shown", func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", "mtp", "-n", systemName, "-l", "causeway.io/copy=true", "-o", "name")
		if n := strings.Count(out, "while-away-"); err == nil && n != written {
			err = fmt.Errorf("%d of %d are", n, written)
		}
		return err
	})
	w.apply(permission("own", "backend-ns", "Prefix"))
	w.condition("mtp", "backend-ns", "own", "Programmed", "True")
	w.kubectl("delete", "mtp", "-n", "backend-ns", "own")
	z.lacks("backend-ns/own")
}

// has waits until a permission in the server's store has a name that begins so.
func (z *zone) has(name string) {
	z.w.t.Helper()
	z.w.eventually(z.Name()+" to have "+name, func(ctx context.Context) error {
		got, err := z.names(ctx)
		if err == nil && !slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(strings.TrimPrefix(n, "/"), name) }) {
			err = fmt.Errorf("it holds %v", got)
		}
		return err
	})
}

// TestKubernetesWebhookDown writes while nobody answers the API server: what nobody judges is not written, and nothing else
// in the cluster waits for it.
func TestKubernetesWebhookDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := w.zone()
	z.webhooks("Fail")
	w.apply(permission("before", "backend-ns", "Exact"))
	z.holds("backend-ns/before")
	z.Kill()
	if out := w.refused(permission("meanwhile", "backend-ns", "Exact")); !strings.Contains(out, "failed calling webhook") {
		t.Errorf("kubectl says %s", out)
	}
	w.kubectl("create", "configmap", "-n", "backend-ns", "other", "--from-literal=a=b")
	w.kubectl("create", "namespace", "another")
	z.start()
	z.holds("backend-ns/before")
	w.eventually("writes to be judged again", func(ctx context.Context) error {
		out, err := w.feedKubectl(ctx, alice, permission("after", "backend-ns", "Exact"), "apply", "-f", "-")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	z.holds("backend-ns/after", "backend-ns/before")
}

// TestKubernetesWebhookCertificateExpired lets the webhook's certificate expire, as while the server's machine sleeps. The
// server notices, makes another one, and the API server asks again.
func TestKubernetesWebhookCertificateExpired(t *testing.T) {
	bin := t.TempDir()
	must(t, cluster.BuildWithClocks(t.Context(), bin))
	w := newWorldOf(t, bin)
	clock, err := cluster.NewClock(filepath.Join(w.dir, "clock"))
	must(t, err)
	defer clock.Close()
	must(t, clock.Set(-400*24*time.Hour)) // certificates last a year
	t.Setenv(cluster.ClockVariable, filepath.Join(w.dir, "clock"))
	z := w.zone()
	z.configureWebhooks("Fail")
	w.eventually("the certificate to be refused", func(ctx context.Context) error {
		out, err := w.feedKubectl(ctx, alice, permission("early", "backend-ns", "Exact"), "apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(out, "certificate has expired") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	must(t, clock.Set(0))
	must(t, cluster.Until(t.Context(), 2*patience, "the certificate to be renewed", func(ctx context.Context) error {
		out, err := w.feedKubectl(ctx, alice, permission("late", "backend-ns", "Exact"), "apply", "-f", "-")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}))
	z.holds("backend-ns/late")
}

// TestKubernetesKilledDuringWrites kills the zone while users write, three times: in the end the store says what the
// objects say.
func TestKubernetesKilledDuringWrites(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(alice), RequestsPerSecond: 100})
	must(t, err)
	for round := range 3 {
		killed, at := make(chan struct{}), 30+random.IntN(60)
		for i := range writes / 2 {
			if i == at {
				go func() { defer close(killed); z.Kill() }()
			}
			write(t, client, random, round*writes+i)
		}
		<-killed
		z.start()
		for i := range writes / 2 {
			write(t, client, random, round*writes+writes/2+i)
		}
		w.agree(z)
	}
}

// writes is the number of writes of one round.
const writes = 200

// write creates, changes or deletes one of some permissions.
func write(t testing.TB, client *apiserver.Client, random *rand.Rand, value int) {
	t.Helper()
	id := apiserver.Name{Namespace: "backend-ns", Name: fmt.Sprintf("p%02d", random.IntN(60))}
	spec := specOf(value)
	there, err := client.Get(t.Context(), permissions, id)
	switch {
	case apiserver.IsNotFound(err):
		_, err = client.Create(t.Context(), permissions, id.Namespace, fmt.Appendf(nil,
			`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTrafficPermission", "metadata": {"name": %q}, %s}`, id.Name, spec))
	case err == nil && random.IntN(10) == 0:
		err = client.Delete(t.Context(), permissions, id, there.Meta.UID)
	case err == nil:
		_, err = client.Patch(t.Context(), permissions, id, "", []byte("{"+spec+"}"))
	}
	must(t, err)
}

// agree waits until the zone's store says what the objects say.
func (w *world) agree(z *zone) {
	w.t.Helper()
	w.eventually("store and objects to agree", func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", "mtp", "-n", "backend-ns", "-o", "json")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		var objects struct {
			Items []struct {
				Metadata struct{ Name string }
				Spec     json.RawMessage
			}
		}
		must(w.t, json.Unmarshal([]byte(out), &objects))
		want := map[string]string{}
		for _, o := range objects.Items {
			want[o.Metadata.Name] = identityIn(o.Spec)
		}
		_, text, err := z.call(ctx, http.MethodGet, "/meshtrafficpermissions?size=1000", "")
		var stored struct {
			Items []struct {
				Name string
				Spec json.RawMessage
			}
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &stored)
		}
		got := map[string]string{}
		for _, r := range stored.Items {
			got[r.Name] = identityIn(r.Spec)
		}
		if err == nil && (len(want) == 0 || !maps.Equal(got, want)) {
			err = fmt.Errorf("the store has %v, the objects say %v", got, want)
		}
		return err
	})
}

// identityIn returns the identity that a permission is about.
func identityIn(spec []byte) string {
	_, rest, _ := strings.Cut(string(spec), "spiffe://")
	identity, _, _ := strings.Cut(rest, `"`)
	return identity
}
