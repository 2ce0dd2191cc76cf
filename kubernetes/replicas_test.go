package kubernetes

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// TestMetricOfReplicas checks that a server shows whether the other replicas have everything, and one without replicas does
// not.
func TestMetricOfReplicas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(path, []byte(`{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
"clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "it", "user": {"token": "t"}}]}`), 0o600))
	box, err := secrets.OpenBox(secrets.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	for _, term := range []*leader.Term{nil, {}} {
		memory, home, diagnostics := store.NewMemory(), resources.Home{Zone: "zone-1", Alone: true}, server.NewDiagnostics()
		_, err := Open(Config{Settings: Settings{Kubeconfig: path}, Home: home, Store: memory, Routes: api.New(api.Config{Store: memory, Home: home}), Term: term,
			Now: time.Now, Log: slog.New(slog.DiscardHandler)}, Host{DataDir: dir, Box: box, Agent: "test"}, diagnostics)
		must(t, err)
		families, err := diagnostics.Registry.Gather()
		must(t, err)
		shown := false
		for _, f := range families {
			shown = shown || f.GetName() == "causeway_replica_stored"
		}
		if shown != (term != nil) {
			t.Errorf("shown is %v, and it leads: %v", shown, term != nil)
		}
	}
}
