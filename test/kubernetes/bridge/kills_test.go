package bridge

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	killRounds = flag.Int("kill-rounds", 2, "rounds of TestKubernetesServersKilledDuringWrites")
	killWrites = flag.Int("kill-writes", 150, "writes by kubectl in each of them")
)

const (
	// killNames is the number of objects that are written again and again, half of each kind.
	killNames = 60
	// killChunk is the number of writes of one kubectl; after each, some objects are deleted.
	killChunk = 50
)

// killed are the timeouts that must be there: value by name. Those with an even number are of the producer's role, and go
// to the other zone, too.
type killed map[int]int

func (killed) name(i int) string { return fmt.Sprintf("t%02d", i) }

func (k killed) document(i int) string {
	rule := `"to": [{"targetRef": {"kind": "MeshService", "name": "web"}, "default": {"http": {"requestTimeout": "%dms"}}}]`
	if i%2 == 1 {
		rule = `"rules": [{"default": {"http": {"requestTimeout": "%dms"}}}]`
	}
	return fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTimeout", "metadata": {"name": %q, "namespace": "backend-ns"}, "spec": {`+rule+"}}\n",
		k.name(i), k[i])
}

// TestKubernetesServersKilledDuringWrites kills the zone and its global while kubectl writes and deletes. In the end every server
// has what the cluster has.
func TestKubernetesServersKilledDuringWrites(t *testing.T) {
	w := newWorld(t)
	g := w.global()
	z := w.zone(g.join("zone-1")...)
	other := w.plainZone("zone-2", g.join("zone-2")...)
	rng := rand.New(rand.NewPCG(17, 0))
	there, value, kills := killed{}, 0, map[string]int{}
	for round := range *killRounds {
		for done := 0; done < *killWrites; done += killChunk {
			manifests, gone := there.change(rng, &value)
			wrote := make(chan error, 1)
			go func() { wrote <- w.write(t.Context(), manifests, gone) }()
			for kubectl := true; kubectl; {
				select {
				case err := <-wrote:
					must(t, err)
					kubectl = false
				case <-time.After(time.Duration(200+rng.IntN(1500)) * time.Millisecond):
					victim := []*zone{z, g}[rng.IntN(2)]
					kills[victim.Name()]++
					victim.Kill()
					victim.start()
				}
			}
		}
		z.shows(there, false, "round %d", round)
		g.shows(there, false, "round %d", round)
		other.shows(there, true, "round %d", round)
	}
	w.kubectl("wait", "--for=condition=Programmed", "-n", "backend-ns", "mt", "--all", "--timeout=60s")
	z.measures(`causeway_kubernetes_followed{type="MeshTimeout"} 1`)
	t.Logf("%d writes, %v", value, kills)
	if kills["zone-1"] == 0 || kills["global"] == 0 {
		t.Errorf("killed were only %v", kills)
	}
}

// change returns the writes of one kubectl, and the names that another one deletes after it. It applies them to k.
func (k killed) change(rng *rand.Rand, value *int) (manifests string, gone []string) {
	for range killChunk {
		i := rng.IntN(killNames)
		*value++
		k[i] = *value
		manifests += k.document(i)
	}
	all := slices.Sorted(maps.Keys(k))
	for range min(4, len(all)/4) {
		i := all[rng.IntN(len(all))]
		if _, ok := k[i]; ok {
			gone = append(gone, k.name(i))
			delete(k, i)
		}
	}
	return manifests, gone
}

// write applies and deletes by kubectl.
func (w *world) write(ctx context.Context, manifests string, gone []string) error {
	out, err := w.feedKubectl(ctx, alice, manifests, "apply", "-f", "-")
	if err == nil && len(gone) > 0 {
		out, err = w.tryKubectl(ctx, alice, append([]string{"delete", "mt", "-n", "backend-ns"}, gone...)...)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// shows waits until a server has the timeouts, and no others of the namespace: all, or those of the producer's role.
func (z *zone) shows(there killed, producers bool, format string, args ...any) {
	z.w.t.Helper()
	want := map[string]string{}
	for i, value := range there {
		if !producers || i%2 == 0 {
			want[there.name(i)] = fmt.Sprintf("%dms", value)
		}
	}
	z.w.eventually(fmt.Sprintf("%s to have what the cluster has: "+format, append([]any{z.Name()}, args...)...), func(ctx context.Context) error {
		got, err := z.timeouts(ctx)
		if err != nil {
			return err
		}
		var wrong []string
		for name, value := range want {
			if got[name] != value {
				wrong = append(wrong, fmt.Sprintf("%s is %q, want %s", name, got[name], value))
			}
		}
		for name := range got {
			if want[name] == "" {
				wrong = append(wrong, name+" should not be there")
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("%d are wrong: %s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], ", "))
		}
		return nil
	})
}

// timeouts are the timeouts of backend-ns in a server, by display name: those of connections, if any, and of requests.
func (z *zone) timeouts(ctx context.Context) (map[string]string, error) {
	status, text, err := z.call(ctx, http.MethodGet, "/meshtimeouts?size=1000", "")
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("%d %s %w", status, text, err)
	}
	type rule struct {
		Default struct {
			ConnectionTimeout string
			HTTP              struct{ RequestTimeout string }
		}
	}
	var list struct {
		Items []struct {
			Name, Namespace string
			Labels          map[string]string
			Spec            struct{ To, Rules []rule }
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, one := range list.Items {
		rules := append(one.Spec.To, one.Spec.Rules...)
		if one.Labels["k8s.kuma.io/namespace"] != "backend-ns" || len(rules) == 0 {
			continue
		}
		name := one.Labels["kuma.io/display-name"]
		if out[name] != "" {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		conf := &rules[0].Default
		out[name] = strings.TrimSpace(conf.ConnectionTimeout + " " + conf.HTTP.RequestTimeout)
	}
	return out, nil
}
