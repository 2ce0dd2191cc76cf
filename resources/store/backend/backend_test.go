package backend

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValidate(t *testing.T) {
	t.Parallel()
	secure, plain := []string{"https://10.0.0.1:2379"}, []string{"http://127.0.0.1:2379"}
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"file": {Config{}, ""},
		"etcd": {Config{Kind: Etcd, Endpoints: secure, CAFile: "ca", CertFile: "c", KeyFile: "k",
			Username: "u", Password: "p"}, ""},
		"unknown":                {Config{Kind: "mysql"}, `--store is "mysql": want bolt or etcd`},
		"endpoints without etcd": {Config{Endpoints: plain}, "--etcd-endpoints without --store etcd"},
		"etcd without endpoints": {Config{Kind: Etcd}, "--etcd-endpoints https://"},
		"no scheme": {Config{Kind: Etcd, Endpoints: []string{"10.0.0.1:2379"}},
			`--etcd-endpoints has "10.0.0.1:2379"`},
		"mixed":                   {Config{Kind: Etcd, Endpoints: append(plain, secure...)}, "or all with http://"},
		"CA in the clear":         {Config{Kind: Etcd, Endpoints: plain, CAFile: "ca"}, "https:// endpoints"},
		"certificate without key": {Config{Kind: Etcd, Endpoints: secure, CertFile: "c"}, "set both"},
		"user without a password": {Config{Kind: Etcd, Endpoints: secure, Username: "u"}, PasswordEnv},
	} {
		err := tt.config.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"bolt": {Path: filepath.Join(t.TempDir(), "store.db")},
		"etcd": {Kind: Etcd, Endpoints: etcdtest.Start(t, 1).Endpoints(), Prefix: "/causeway"},
	} {
		s, err := Open(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := storetest.Resource(storetest.Key("a"), 1, nil)
		storetest.Apply(t, s, storetest.Put(r))
		if err := s.Healthy(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, err := Open(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again.Snapshot().Get(r.Key) == nil {
			t.Errorf("%s: it was not kept", name)
		}
		if err := again.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHeld checks that nothing is written while Held fails, not even what changes nothing.
func TestHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"bolt": {Path: filepath.Join(t.TempDir(), "store.db")},
		"etcd": {Kind: Etcd, Endpoints: etcdtest.Start(t, 1).Endpoints(), Prefix: "/causeway"},
	} {
		var gone atomic.Pointer[error]
		c.Held = func() error {
			if err := gone.Load(); err != nil {
				return *err
			}
			return nil
		}
		s, err := Open(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer s.Close()
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("a"), 1, nil)))
		away := errors.New("the folder is away")
		gone.Store(&away)
		for _, key := range []string{"a", "b"} {
			_, err := s.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key(key), 1, nil)))
			if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, away) {
				t.Errorf("%s: wrote %s: %v", name, key, err)
			}
		}
		if err := s.Healthy(); !errors.Is(err, away) {
			t.Errorf("%s: healthy: %v", name, err)
		}
		gone.Store(nil)
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("b"), 1, nil)))
	}
}

// TestReplace fills each kind of store, refuses to overwrite it, and overwrites it when told to.
func TestReplace(t *testing.T) {
	t.Parallel()
	first := []*resources.Resource{numbered("a", 1), numbered("b", 2)}
	second := []*resources.Resource{numbered("b", 3), numbered("c", 9)}
	for name, c := range map[string]Config{
		"bolt": {Path: filepath.Join(t.TempDir(), "store.db")},
		"etcd": {Kind: Etcd, Endpoints: etcdtest.Start(t, 1).Endpoints(), Prefix: "/causeway"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Replace(t.Context(), c, 7, first, false); err != nil {
				t.Fatal(err)
			}
			holds(t, c, 7, first)
			if _, err := Replace(t.Context(), c, 8, second, false); !errors.Is(err, ErrNotEmpty) {
				t.Fatalf("overwrote: %v", err)
			}
			holds(t, c, 7, first)
			aside, err := Replace(t.Context(), c, 20, second, true)
			if err != nil {
				t.Fatal(err)
			}
			holds(t, c, 20, second)
			if c.Kind != Etcd {
				holds(t, Config{Path: aside}, 7, first)
			}
		})
	}
}

func TestReplaceSparesAFileInUse(t *testing.T) {
	t.Parallel()
	c := Config{Path: filepath.Join(t.TempDir(), "store.db")}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := Replace(t.Context(), c, 1, nil, true); !errors.Is(err, bolt.ErrInUse) {
		t.Errorf("got %v", err)
	}
}

func numbered(name string, revision uint64) *resources.Resource {
	r := storetest.Resource(storetest.Key(name), int(revision), nil) //nolint:gosec // small
	r.Revision, r.CreationTime, r.ModificationTime = revision, time.Unix(1e9, 0).UTC(), time.Unix(2e9, 0).UTC()
	return r
}

func holds(t *testing.T, c Config, revision uint64, want []*resources.Resource) {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	got := slices.Collect(store.All(s.Snapshot()))
	if s.Snapshot().Revision() != revision || !slices.EqualFunc(got, want, storetest.Equal) {
		t.Fatalf("at %d: %s, want at %d %s", s.Snapshot().Revision(), storetest.Describe(got), revision,
			storetest.Describe(want))
	}
}
