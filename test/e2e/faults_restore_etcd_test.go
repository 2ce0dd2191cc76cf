package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsRestoreIntoEtcd restores a backup into an etcd that has a store, and kills the restore half way. A replica
// with its own folder, which does not know of the restore, does not start on the result, nor does the one whose folder
// was restored. After the restore is repeated, both do. While a replica runs, nothing is restored.
func TestFaultsRestoreIntoEtcd(t *testing.T) {
	t.Parallel()
	r := &replicated{etcd: etcdtest.Start(t, 1)}
	r.mesh = newCluster(t)
	endpoint := r.etcd.Members[0].Endpoint
	inEtcd := func(endpoint string) []string { return []string{"--store", "etcd", "--etcd-endpoints", endpoint} }
	global := func(name string, more ...string) *cluster.Server {
		g, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: name, Args: append(inEtcd(endpoint), more...)})
		r.must(err)
		return g
	}
	first := global("first")
	key := []string{"--secrets-key-file", filepath.Join(first.DataDir, "secrets.key")}
	second := global("second", key...)
	for i := range 3 {
		var all strings.Builder
		for j := range 200 {
			all.WriteString("---\n" + large(fmt.Sprintf("policy-%d-%d", i, j)))
		}
		r.apply(first, all.String())
	}
	backup := filepath.Join(r.Dir(), "backup")
	_, err := r.CTL(t.Context(), first, nil, "backup", "create", backup)
	r.must(err)
	r.remove(first, large("policy-0-0"))
	r.apply(first, timeout("late", "10s"))
	r.must(first.Stop(t.Context()))

	link, err := cluster.NewLink(t.Context(), strings.TrimPrefix(endpoint, "http://"))
	r.must(err)
	t.Cleanup(func() { _ = link.Close() })
	restore := append([]string{"restore", backup, "--data-dir", first.DataDir, "--overwrite"}, inEtcd("http://"+link.Address())...)
	if out, err := r.Output(t.Context(), nil, "causewayctl", restore...); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("beside a replica: %v: %s", err, out)
	}
	r.arrives(second, "late")
	r.must(second.Stop(t.Context()))

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	r.must(err)
	defer client.Close()
	link.Set(cluster.Weather{BytesPerSecond: 1 << 20})
	killed, err := r.Command("restore", "causewayctl", restore...)
	r.must(err)
	r.must(killed.Start())
	r.eventually("some parts to be written", func(ctx context.Context) error {
		head, err := client.Get(ctx, "/causeway/global/head")
		if err == nil && (len(head.Kvs) == 0 || !strings.Contains(string(head.Kvs[0].Value), `"replaced":1`)) {
			err = errNotYet
		}
		return err
	})
	killed.Kill()
	head, err := client.Get(t.Context(), "/causeway/global/head")
	r.must(err)
	t.Logf("the restore was killed at %s", head.Kvs[0].Value)
	link.Set(cluster.Weather{})

	for _, s := range []*cluster.Server{second, first} {
		if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "interrupted") ||
			!strings.Contains(err.Error(), "--overwrite") {
			t.Errorf("%s starts on what there is: %v", s.Name(), err)
		}
	}
	_, err = r.Output(t.Context(), nil, "causewayctl", restore...)
	r.must(err)
	for _, s := range []*cluster.Server{second, first} {
		r.must(s.Start(t.Context()))
		r.eventually(s.Name()+" to have what was restored", func(ctx context.Context) error {
			all, err := timeouts(ctx, s)
			if _, late := all["late"]; err == nil && (late || len(all) != 600) {
				err = errors.New("it has others")
			}
			return err
		})
	}
}

// large returns a policy of some KB.
func large(name string) string {
	var to []string
	for i := range 30 {
		to = append(to, fmt.Sprintf("{targetRef: {kind: MeshService, name: a-service-with-a-long-name-%d}, default: {connectionTimeout: 10s}}", i))
	}
	return fmt.Sprintf("type: MeshTimeout\nmesh: default\nname: %s\nspec: {targetRef: {kind: Mesh}, to: [%s]}\n", name,
		strings.Join(to, ", "))
}
