package fsck_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/resources/store/fsck"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func opened(t *testing.T, dir string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(context.Background(), bolt.Config{Path: filepath.Join(dir, backend.File),
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// resource returns one that a server could have written.
func resource(t *testing.T, key resources.Key, spec string, labels map[string]string) *resources.Resource {
	t.Helper()
	parsed, err := resources.NewSpec(key.Type, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	r := &resources.Resource{Key: key, Spec: parsed, Labels: map[string]string{}}
	home := resources.Home{SystemNamespace: resources.DefaultSystemNamespace}
	for k, v := range home.ComputedLabels(r) {
		r.Labels[k] = v
	}
	for k, v := range labels {
		r.Labels[k] = v
	}
	return r
}

func permission(t *testing.T, mesh, name string, labels map[string]string) *resources.Resource {
	t.Helper()
	return resource(t, resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: mesh, Name: name},
		`{"default":{}}`, labels)
}

// folder returns a data folder with a mesh, n permissions and the files of a server.
func folder(t *testing.T, n int, more ...*resources.Resource) string {
	t.Helper()
	dir := t.TempDir()
	s := opened(t, dir)
	storetest.Apply(t, s, storetest.Put(resource(t, resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`, nil)))
	for i := range n {
		storetest.Apply(t, s, storetest.Put(permission(t, "default", fmt.Sprint("p", i), nil)))
	}
	for _, r := range more {
		storetest.Apply(t, s, storetest.Put(r))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file(t, dir, "secrets.key", "key\n", 0o600)
	file(t, dir, "audit/done-1.jsonl", "{\"seq\":1}\n{\"seq\":2}\n{\"se", 0o600) // the last line is what a crash leaves
	file(t, dir, "known/zone-1.jsonl", "{\"t\":\"Mesh\"}\n", 0o600)
	file(t, dir, "holdings.sealed", "causeway-holdings 1\n"+holding+"\n"+holding[:len(holding)-5], 0o600) // as above
	return dir
}

// holding is a line as a zone writes it.
var holding = base64.StdEncoding.EncodeToString([]byte("cwseal1\nand so on"))

func file(t *testing.T, dir, name, content string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, dir string) *fsck.Report {
	t.Helper()
	r, err := fsck.Check(t.Context(), dir, resources.DefaultSystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said returns all findings in one text.
func said(r *fsck.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s (%s)\n", f.Severity, f.Where, f.What, f.Do)
	}
	return b.String()
}

func TestNothingIsWrong(t *testing.T) {
	r := check(t, folder(t, 20))
	if len(r.Findings) > 0 || r.Resources != 21 || r.Revision != 21 {
		t.Errorf("%d resources at %d:\n%s", r.Resources, r.Revision, said(r))
	}
}

// TestLostMetaIsFound checks that a damaged page that leads to the data is found: the store opens by the other one,
// perhaps without its last write.
func TestLostMetaIsFound(t *testing.T) {
	dir := folder(t, 20)
	f, err := os.OpenFile(filepath.Join(dir, backend.File), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteAt([]byte{0xff}, 40); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if r := check(t, dir); len(r.Findings) != 1 || !strings.Contains(said(r), "the last write may be missing") {
		t.Errorf("%d resources at %d:\n%s", r.Resources, r.Revision, said(r))
	}
}

// TestFindings checks that each kind of damage beside the store is found, with a remedy, and is repaired where that is
// safe.
func TestFindings(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(dir string)
		says   string
		left   int
	}{
		"a key that others can read": {func(dir string) { file(t, dir, "secrets.key", "key", 0o644) },
			"damage secrets.key: others than its owner", 0},
		"a folder that others can": {func(dir string) {
			file(t, dir, "kds-tls/x", "", 0o600)
			_ = os.Chmod(filepath.Join(dir, "kds-tls"), 0o750)
		}, "mode 0750", 0},
		"an id that is none": {func(dir string) { file(t, dir, "cluster-id", "x", 0o644) }, "damage cluster-id", 0},
		"an unfinished store": {func(dir string) { file(t, dir, "causeway.db.unfinished", "x", 0o600) },
			"was interrupted", 0},
		"a memory that is cut": {func(dir string) { file(t, dir, "known/zone-2.jsonl", "{\n{}\n", 0o600) },
			"1 of 2 lines", 0},
		"identities that are cut": {func(dir string) {
			file(t, dir, "holdings.sealed", "causeway-holdings 1\n"+holding[:19]+"\n"+holding+"\n", 0o600)
		}, "holdings.sealed: 1 of 3 lines", 0},
		"identities in the clear":    {func(dir string) { file(t, dir, "holdings.sealed", "causeway-holdings 1\neHh4\n", 0o600) }, "given other identities", 0},
		"identities that others see": {func(dir string) { file(t, dir, "holdings.sealed", "causeway-holdings 1\n"+holding+"\n", 0o644) }, "mode 0644", 0},
		"an audit log with a hole":   {func(dir string) { file(t, dir, "audit/done-1.jsonl", "{}\n\x00\x00\n{}\n", 0o600) }, "line 2", 1},
		"a certificate that is none": {func(dir string) { file(t, dir, "kds-tls/ca.crt", "x", 0o644) },
			"no certificate in PEM form", 1},
		"a sealed key that is empty":  {func(dir string) { file(t, dir, "kds-tls/ca.key", "", 0o600) }, "it is empty", 1},
		"a store of a newer version":  {func(dir string) { put(t, dir, "format", "99") }, "format 99", 1},
		"a store that is another's":   {func(dir string) { file(t, dir, backend.File, "x", 0o600) }, "not a store's file", 5},
		"a store without its numbers": {func(dir string) { put(t, dir, "state", "") }, "revision and totals", 4},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, 3)
			tt.damage(dir)
			r := check(t, dir)
			if len(r.Findings) == 0 || !strings.Contains(said(r), tt.says) {
				t.Fatalf("found:\n%s", said(r))
			}
			if err := r.Repair(); err != nil {
				t.Error(err)
			}
			if again := check(t, dir); (len(again.Findings) == 0) != (tt.left == 0) || (r.Unrepaired() == 0) != (tt.left == 0) {
				t.Errorf("after the repair %d are left:\n%s", r.Unrepaired(), said(again))
			}
		})
	}
}

// put changes a value in the store's file behind its back.
func put(t *testing.T, dir, key, value string) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, backend.File), 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("store")).Put([]byte(key), []byte(value)) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestContents checks resources against their keys and against each other.
func TestContents(t *testing.T) {
	copied := permission(t, "default", "shop-bcdfghjklmnpqrst", map[string]string{resources.LabelDisplayName: "shop"})
	dir := folder(t, 1, copied,
		permission(t, "gone", "in-no-mesh", nil), permission(t, "default", "odd", map[string]string{"team": "a\nb"}),
		permission(t, "default", "mislabelled", map[string]string{resources.LabelMesh: "other"}),
		permission(t, "default", "renamed", map[string]string{resources.LabelDisplayName: "something-else"}),
		resource(t, resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: "invalid"},
			`{"default":{"allow":[{"spiffeId":{"type":"Maybe","value":"x"}}]}}`, nil),
	)
	r := check(t, dir)
	for _, want := range []string{`labels["team"]: "a\nb" is not a label value`, "mesh gone is not there",
		`kuma.io/mesh says "other"`, `called "something-else"`, "it is not valid"} {
		if !strings.Contains(said(r), want) {
			t.Errorf("not found: %s", want)
		}
	}
	if len(r.Findings) != 6 { // the odd label is found as one that no user stores, and as one that no peer may send
		t.Errorf("found:\n%s", said(r))
	}
}

// TestSystemNamespace checks that types of the system namespace are checked with the name with which the server starts.
func TestSystemNamespace(t *testing.T) {
	key := resources.Key{Type: resources.TypeMeshGateway, Mesh: "default", Namespace: "ops", Name: "edge"}
	dir := folder(t, 1, resource(t, key, `{}`, map[string]string{resources.LabelNamespace: "ops"}))
	if r := check(t, dir); !strings.Contains(said(r), "lives in the system namespace only: use "+
		resources.DefaultSystemNamespace) {
		t.Errorf("found, with another system namespace:\n%s", said(r))
	}
	r, err := fsck.Check(t.Context(), dir, "ops")
	if err != nil || len(r.Findings) > 0 {
		t.Errorf("found, with the server's own: %v\n%s", err, said(r))
	}
}

func TestInUse(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	defer func() { _ = s.Close() }()
	if _, err := fsck.Check(t.Context(), dir, resources.DefaultSystemNamespace); !errors.Is(err, bolt.ErrInUse) {
		t.Errorf("got %v", err)
	}
	if _, err := fsck.Check(t.Context(), filepath.Join(dir, "nowhere"),
		resources.DefaultSystemNamespace); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
