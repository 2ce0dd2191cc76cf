package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// TestReplicaWithAnotherKey checks that a replica with another key does not start, says which key it needs and how to
// provide it, and writes nothing to etcd. With the right key it starts.
func TestReplicaWithAnotherKey(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 1, 0)
	before := r.etcd.Keys(t)
	wrong := filepath.Join(t.TempDir(), "wrong.key")
	raw := make([]byte, 32)
	_, err := rand.Read(raw)
	r.must(err)
	r.must(os.WriteFile(wrong, []byte(base64.StdEncoding.EncodeToString(raw)), 0o600))
	store := []string{"--store", "etcd", "--etcd-endpoints", strings.Join(r.etcd.Endpoints(), ",")}

	for _, tt := range []struct {
		name string
		args []string
	}{
		{"of-another", append(slices.Clone(store), "--secrets-key-file", wrong)},
		{"its-own", store}, // created because none is given
	} {
		_, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: tt.name, Args: tt.args})
		if err == nil {
			t.Fatalf("%s: it started", tt.name)
		}
		for _, said := range []string{"exit status 1", "one key", "--secrets-key-file", "CAUSEWAY_SECRETS_PASSPHRASE"} {
			if !strings.Contains(err.Error(), said) {
				t.Errorf("%s: %v, want %q in it", tt.name, err, said)
			}
		}
		for _, key := range r.etcd.Keys(t) {
			if !slices.Contains(before, key) {
				t.Errorf("%s left %q in etcd", tt.name, key)
			}
		}
	}

	right := append(slices.Clone(store), "--secrets-key-file", filepath.Join(r.global.DataDir, "secrets.key"))
	second, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "right", Args: right})
	r.must(err)
	r.apply(second, timeout("from-second", "10s"))
	r.arrives(r.global, "from-second")
}

// TestAcceptDeletesOnAnotherReplica checks that deletions that a zone's replica holds are shown by the other replica,
// and proceed when an operator accepts them there.
func TestAcceptDeletesOnAnotherReplica(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 2, 0, "--kds-insecure-anonymous")
	const services = 30
	var all []peer.Resource
	for i := range services {
		all = append(all, foreignService(fmt.Sprintf("s%d", i), `{"ports":[{"port":80,"appProtocol":"http"}]}`))
	}
	z := r.foreignZone("elsewhere", nil)
	r.must(z.Offer(all...))
	r.has(services)
	r.must(z.Close())

	z = r.foreignZone("elsewhere", nil) // its first list is complete
	r.must(z.Offer(all[0]))
	for _, g := range r.globals {
		r.eventually(g.Name()+" shows what is held", func(ctx context.Context) error {
			out, err := r.CTL(ctx, g, nil, "inspect", "sync")
			if want := fmt.Sprintf("the removal of %d MeshService is held", services-1); err == nil &&
				!bytes.Contains(out, []byte(want)) {
				err = fmt.Errorf("want %q in\n%s", want, out)
			}
			return err
		})
	}
	r.has(services)
	said := r.ctl(r.globals[1], "zone", "accept-deletes", "elsewhere", "--type", "MeshService")
	if !strings.Contains(said, fmt.Sprint(services-1)) {
		t.Errorf("it says %q, want %d", said, services-1)
	}
	r.has(1)
	for _, g := range r.globals {
		r.eventually(g.Name()+" holds nothing", func(ctx context.Context) error {
			out, err := r.CTL(ctx, g, nil, "inspect", "sync")
			if err == nil && bytes.Contains(out, []byte("held is")) {
				err = fmt.Errorf("it does:\n%s", out)
			}
			return err
		})
	}
}

// has waits until every replica has the given number of services.
func (r *replicated) has(services int) {
	r.t.Helper()
	for _, g := range r.globals {
		r.eventually(fmt.Sprintf("%d services on %s", services, g.Name()), func(ctx context.Context) error {
			got, err := g.API.List(ctx, "/meshes/default/meshservices")
			if err == nil && len(got) != services {
				err = fmt.Errorf("it has %d", len(got))
			}
			return err
		})
	}
}
