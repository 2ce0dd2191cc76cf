package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// newerProgram is the version of a newer program.
const newerProgram = "v99.0.0"

// tomorrow returns an entry of a store as a newer program writes it: an unchanged policy, of a type that only that
// program knows.
func tomorrow(key, value []byte) (newKey, newValue []byte, err error) {
	k, err := store.DecodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	k.Type = "TypeOfTomorrow"
	newKey, newValue = store.EncodeKey(k), bytes.Clone(value)
	binary.BigEndian.PutUint32(newValue, store.Checksum(newKey, newValue[store.ChecksumSize:]))
	return newKey, newValue, nil
}

// TestFaultsTypeOfANewerProgram downgrades servers to a program that does not know a type in their stores: they do not
// start, name the type and what to do, and change nothing. Meanwhile, and after the newer program is back, the other
// servers have lost nothing.
func TestFaultsTypeOfANewerProgram(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone := m.zones["zone-1"]
	m.apply(m.global, timeout("early", "10s"))
	m.apply(zone, timeout("of-the-zone", "10s"))
	m.arrives(zone, "early")
	m.arrives(m.global, "of-the-zone")
	for _, s := range []*cluster.Server{zone, m.global} {
		name := "of-" + s.Name()
		m.apply(s, timeout(name, "10s"))
		m.must(s.Stop(t.Context()))
		path := filepath.Join(s.DataDir, "causeway.db")
		before, err := os.ReadFile(path)
		m.must(err)
		m.must(addTomorrow(path, name))
		written, err := os.ReadFile(path)
		m.must(err)
		m.doesNotKnowTheType(s)
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, written) {
			t.Errorf("%s: the store has changed (%v)", s.Name(), err)
		}
		if s == m.global {
			m.arrives(zone, "early")
		}
		m.must(os.WriteFile(path, before, 0o600)) // the newer program removes what only it knows
		m.must(s.Start(t.Context()))
	}
	m.apply(m.global, timeout("late", "10s"))
	m.arrives(zone, "late")
	m.arrives(zone, "early")
	m.arrives(m.global, "of-the-zone")
}

// TestFaultsTypeOfANewerReplica has a newer replica write a type that another running one does not know. That one stops
// writing and says why; its zones keep their resources. It does not restart either, and no advice is to restore a
// backup. Once the newer program has removed the type, it continues.
func TestFaultsTypeOfANewerReplica(t *testing.T) {
	t.Parallel()
	r := &replicated{etcd: etcdtest.Start(t, 1)}
	r.mesh = newCluster(t)
	var err error
	r.global, err = r.StartGlobal(t.Context(), cluster.GlobalConfig{
		Args: []string{"--store", "etcd", "--etcd-endpoints", r.etcd.Members[0].Endpoint}})
	r.must(err)
	zone := r.startZone("zone-1")
	r.apply(r.global, timeout("early", "10s"))
	r.arrives(zone, "early")

	client, err := clientv3.New(clientv3.Config{Endpoints: r.etcd.Endpoints(), Logger: zap.NewNop()})
	r.must(err)
	defer client.Close()
	early := string(store.EncodeKey(resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "early"}))
	const prefix = "/causeway/global/"
	had, err := client.Get(t.Context(), prefix+"r/"+early)
	r.must(err)
	if len(had.Kvs) != 1 {
		t.Fatalf("etcd has %d of it", len(had.Kvs))
	}
	key, value, err := tomorrow([]byte(early), had.Kvs[0].Value)
	r.must(err)
	_, err = client.Txn(t.Context()).Then(clientv3.OpPut(prefix+"r/"+string(key), string(value)),
		clientv3.OpPut(prefix+"program", newerProgram)).Commit()
	r.must(err)
	r.eventually("the older one to say what it cannot read", func(ctx context.Context) error {
		said := r.global.Log()
		if _, err := r.global.Diagnostics(ctx, "/readyz"); err == nil || !strings.Contains(said, "TypeOfTomorrow") ||
			!strings.Contains(said, newerProgram) {
			return fmt.Errorf("/readyz: %w", err)
		}
		return nil
	})
	if out, err := r.CTL(t.Context(), r.global, strings.NewReader(timeout("late", "10s")), "apply", "-f", "-"); err == nil ||
		!strings.Contains(err.Error(), newerProgram) {
		t.Errorf("it writes: %v\n%s", err, out)
	}
	r.arrives(zone, "early")
	r.must(r.global.Stop(t.Context()))
	r.doesNotKnowTheType(r.global)
	r.arrives(zone, "early")
	_, err = client.Delete(t.Context(), prefix+"r/"+string(key))
	r.must(err)
	r.must(r.global.Start(t.Context()))
	r.apply(r.global, timeout("late", "10s"))
	r.arrives(zone, "late")
	r.arrives(zone, "early")
}

// addTomorrow turns a policy of a store into one of a type of tomorrow.
func addTomorrow(path, name string) error {
	db, err := bbolt.Open(path, 0, &bbolt.Options{Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("resources"))
		known := store.EncodeKey(resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: name})
		key, value, err := tomorrow(known, b.Get(known))
		return errors.Join(err, b.Put(key, value))
	}), db.Close())
}

// doesNotKnowTheType checks that a server does not start on a newer program's data, and says what to do.
func (m *mesh) doesNotKnowTheType(s *cluster.Server) {
	m.t.Helper()
	err := s.Start(m.t.Context())
	if err == nil {
		m.t.Fatalf("%s starts on what it does not know", s.Name())
	}
	said := err.Error() + s.Log()
	for _, word := range []string{"TypeOfTomorrow", "a newer program wrote it"} {
		if !strings.Contains(said, word) {
			m.t.Errorf("%s does not say %q:\n%s", s.Name(), word, said)
		}
	}
	if strings.Contains(said, "damaged") || strings.Contains(said, "restore the store") {
		m.t.Errorf("%s takes it for damage:\n%s", s.Name(), said)
	}
}
