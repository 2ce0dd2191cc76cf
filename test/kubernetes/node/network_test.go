package node

import (
	"os"
	"sync"
	"testing"
)

// TestKubernetesNetworks claims networks at once, before any process is in them: each is another.
func TestKubernetesNetworks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("it needs root: it makes network namespaces")
	}
	const clusters = 4
	var all [clusters]network
	var failed [clusters]error
	var group sync.WaitGroup
	for i := range clusters {
		group.Go(func() { all[i], failed[i] = claimNetwork(t.Context()) })
	}
	group.Wait()
	names := map[string]bool{}
	for i := range clusters {
		if failed[i] != nil {
			t.Fatal(failed[i])
		}
		names[all[i].name] = true
	}
	for i := range clusters {
		if err := all[i].release(); err != nil {
			t.Error(err)
		}
	}
	if len(names) != clusters {
		t.Errorf("%d clusters have the networks %v", clusters, names)
	}
}
