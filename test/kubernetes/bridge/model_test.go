package bridge

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/model"
)

var (
	modelOperations = flag.Int("model-operations", 150, "operations of TestKubernetesModel")
	modelSeed       = flag.Uint64("model-seed", 1, "what makes its choices")
)

const (
	// modelBetween is the number of operations between two comparisons, modelFault between two faults.
	modelBetween, modelFault = 50, 14
	inCluster, elsewhere     = "east", "west"
)

// TestKubernetesModel writes at random in a cluster, in another zone and in their global, by the model of test/model, and
// kills servers in between: every server has what the model says, whether users wrote by HTTP or in the cluster.
func TestKubernetesModel(t *testing.T) {
	w := newWorld(t)
	for _, namespace := range []string{"ns-a", "ns-b", "ns-c"} {
		w.kubectl("create", "namespace", namespace)
	}
	p := &modelled{world: w, says: model.World{}, servers: map[string]*cluster.Server{}}
	var err error
	p.servers[model.Global], err = w.StartGlobal(t.Context(), cluster.GlobalConfig{})
	must(t, err)
	for name, more := range map[string][]string{inCluster: w.fed(), elsewhere: nil} {
		p.servers[name], err = w.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: p.servers[model.Global], Args: more})
		must(t, err)
		must(t, p.servers[name].WaitMesh(t.Context(), "default"))
	}
	p.client, err = apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(alice), RequestsPerSecond: 100})
	must(t, err)
	writer := model.NewWriter(*modelSeed, model.Global, inCluster, elsewhere)
	writer.Operators = map[string]string{inCluster: systemName}
	rng := rand.New(rand.NewPCG(*modelSeed, 2))
	byCluster, faults := 0, map[string]int{}
	for i := range *modelOperations {
		for _, step := range writer.Next(p.says) {
			must(t, p.do(t.Context(), step))
			p.says.Apply(step)
			if step.ID.Home == inCluster {
				byCluster++
			}
		}
		if (i+1)%modelFault == 0 {
			faults[p.fault(rng)]++
		}
		if (i+1)%modelBetween == 0 {
			p.agree()
		}
	}
	p.agree()
	t.Logf("seed %d: %d operations, %d steps in the cluster, %d resources at the end, faults %v", *modelSeed, *modelOperations, byCluster, len(p.says), faults)
	if byCluster < *modelOperations/5 || len(p.says) < 10 {
		t.Errorf("only %d steps in the cluster, %d resources", byCluster, len(p.says))
	}
}

// modelled are servers, and what the model says of them.
type modelled struct {
	*world

	says    model.World
	servers map[string]*cluster.Server
	client  *apiserver.Client
}

// do makes one step, in the cluster or by HTTP.
func (p *modelled) do(ctx context.Context, s model.Step) error {
	if s.ID.Home == inCluster {
		return p.inCluster(ctx, s)
	}
	path := "/meshes/default/" + strings.ToLower(s.ID.Type) + "s/" + s.ID.Name
	if s.ID.Namespace != "" {
		path += "?namespace=" + s.ID.Namespace
	}
	if s.Written == nil {
		return p.servers[s.ID.Home].API.Delete(ctx, path)
	}
	return p.servers[s.ID.Home].API.Put(ctx, path, model.Document(s.ID, *s.Written))
}

// inCluster makes one step by the API server.
func (p *modelled) inCluster(ctx context.Context, s model.Step) error {
	kind := apiserver.Kind{Group: "kuma.io", Version: "v1alpha1", Plural: strings.ToLower(s.ID.Type) + "s", Name: s.ID.Type, Namespaced: true}
	id := apiserver.Name{Namespace: s.ID.Namespace, Name: s.ID.Name}
	there, err := p.client.Get(ctx, kind, id)
	if err != nil && !apiserver.IsNotFound(err) {
		return err
	}
	if s.Written == nil {
		if err != nil {
			return err
		}
		return p.client.Delete(ctx, kind, id, there.Meta.UID)
	}
	written := model.Document(s.ID, *s.Written)
	metadata := map[string]any{"name": id.Name, "namespace": id.Namespace, "labels": written["labels"]}
	object := map[string]any{"apiVersion": kind.APIVersion(), "kind": kind.Name, "metadata": metadata, "spec": written["spec"]}
	if err == nil {
		metadata["resourceVersion"] = there.Meta.ResourceVersion
	}
	raw, jsonErr := json.Marshal(object)
	if jsonErr != nil {
		return jsonErr
	}
	if err != nil {
		_, err = p.client.Create(ctx, kind, id.Namespace, raw)
		return err
	}
	_, err = p.client.Replace(ctx, kind, id, raw)
	if apiserver.IsConflict(err) { // the server has written a condition
		return p.inCluster(ctx, s)
	}
	return err
}

// fault kills a server, and starts it again.
func (p *modelled) fault(rng *rand.Rand) string {
	p.t.Helper()
	at := []string{model.Global, inCluster, inCluster, elsewhere}[rng.IntN(4)]
	p.servers[at].Kill()
	must(p.t, p.servers[at].Start(p.t.Context()))
	return p.servers[at].Name()
}

// agree waits until every server has what the model says.
func (p *modelled) agree() {
	p.t.Helper()
	for _, at := range slices.Sorted(maps.Keys(p.servers)) {
		want := p.says.At(at)
		p.eventually(p.servers[at].Name()+" to have what the model says", func(ctx context.Context) error {
			got, err := model.Have(ctx, p.servers[at].API)
			if err != nil {
				return err
			}
			if diff := model.Difference(got, want); diff != "" {
				return fmt.Errorf("%s", diff)
			}
			return nil
		})
	}
}
