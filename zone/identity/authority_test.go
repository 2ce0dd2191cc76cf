package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

func TestAuthorityIsKept(t *testing.T) {
	t.Parallel()
	keeper := newKeeper(t)
	first, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: "zone-1"}).For("default")
	must(t, err)
	second, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: "zone-1"}).For("default")
	must(t, err)
	if !first.Certificate().Equal(second.Certificate()) {
		t.Error("made anew")
	}
}

// TestServersThatStartAtOnceHaveOneAuthority checks this for servers that share a store.
func TestServersThatStartAtOnceHaveOneAuthority(t *testing.T) {
	t.Parallel()
	keeper := newKeeper(t)
	found := make([]*identity.Authority, 8)
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() {
			var err error
			if found[i], err = identity.NewAuthorities(identity.Config{Keeper: keeper,
				Zone: "zone-1"}).For("default"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, a := range found {
		if a != nil && !a.Certificate().Equal(found[0].Certificate()) {
			t.Error("they have different ones")
		}
	}
}

// inFiles writes an authority unencrypted, as earlier versions did, and returns its certificate.
func inFiles(t *testing.T, dir, mesh string) *x509.Certificate {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, mesh), 0o700))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	id, err := url.Parse("spiffe://" + mesh + ".zone-1.mesh.local")
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), URIs: []*url.URL{id}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, mesh, "ca.crt"),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, mesh, "ca.key"),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return certificate
}

// TestFilesAreTakenOver checks that the authority does not change, and that its key is no longer stored unencrypted.
func TestFilesAreTakenOver(t *testing.T) {
	t.Parallel()
	dir, keeper := t.TempDir(), newKeeper(t)
	want := inFiles(t, dir, "default")
	for range 2 {
		got, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Dir: dir, Zone: "zone-1"}).For("default")
		must(t, err)
		if !got.Certificate().Equal(want) {
			t.Error("it is another one")
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	}
}

// TestFilesOfAnInterruptedTakeoverGo checks that a server removes the files that another was about to remove when it was
// killed, with the key or without it, and no others.
func TestFilesOfAnInterruptedTakeoverGo(t *testing.T) {
	t.Parallel()
	dir, keeper := t.TempDir(), newKeeper(t)
	inFiles(t, dir, "default")
	aside := filepath.Join(t.TempDir(), "default")
	must(t, os.CopyFS(aside, os.DirFS(filepath.Join(dir, "default"))))
	start := func() []os.DirEntry {
		t.Helper()
		_, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Dir: dir, Zone: "zone-1"}).For("default")
		must(t, err)
		left, err := os.ReadDir(dir)
		must(t, err)
		return left
	}
	start()
	for _, key := range []bool{true, false} {
		must(t, os.CopyFS(filepath.Join(dir, "default"), os.DirFS(aside)))
		if !key {
			must(t, os.Remove(filepath.Join(dir, "default", "ca.key")))
		}
		if left := start(); len(left) > 0 {
			t.Errorf("with the key %t: left behind: %v", key, left)
		}
	}
	inFiles(t, dir, "default")
	if left := start(); len(left) != 1 {
		t.Errorf("it removed another authority: %v", left)
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir string){
		"no key":         func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "default/ca.key"))) },
		"no certificate": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "default/ca.crt"))) },
		"empty key": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "default/ca.key"), nil, 0o600))
		},
		"cut certificate": func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "default/ca.crt"), 100))
		},
		"readable key": func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "default/ca.key"), 0o644)) },
		"another mesh's key": func(t *testing.T, dir string) {
			inFiles(t, dir, "other")
			key, err := os.ReadFile(filepath.Join(dir, "other/ca.key"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, "default/ca.key"), key, 0o600))
		},
		"another mesh's files": func(t *testing.T, dir string) {
			inFiles(t, dir, "other")
			must(t, os.RemoveAll(filepath.Join(dir, "default")))
			must(t, os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "default")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, keeper := t.TempDir(), newKeeper(t)
			inFiles(t, dir, "default")
			damage(t, dir)
			before := contents(t, dir)
			_, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Dir: dir, Zone: "zone-1"}).For("default")
			if !errors.Is(err, identity.ErrAuthority) {
				t.Fatalf("got %v", err)
			}
			if after := contents(t, dir); after != before || len(keeper.Names()) > 0 {
				t.Errorf("something changed: %s, then %s, and %v", before, after, keeper.Names())
			}
		})
	}
}

// TestAnotherKeyForSecrets checks that nothing is created anew, and that the error names the key to provide.
func TestAnotherKeyForSecrets(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	open := func() *secrets.Keeper {
		box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		return secrets.NewKeeper(memory, box)
	}
	_, err := identity.NewAuthorities(identity.Config{Keeper: open(), Zone: "zone-1"}).For("default")
	must(t, err)
	revision := memory.Snapshot().Revision()
	_, err = identity.NewAuthorities(identity.Config{Keeper: open(), Zone: "zone-1"}).For("default")
	if !errors.Is(err, identity.ErrAuthority) || !errors.Is(err, secrets.ErrWrongKey) ||
		memory.Snapshot().Revision() != revision {
		t.Errorf("got %v", err)
	}
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, os.CopyFS(filepath.Join(t.TempDir(), "copy"), os.DirFS(dir)))
	for _, file := range []string{"default/ca.crt", "default/ca.key"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		all.WriteString(file + ":" + string(b))
		if err != nil {
			all.WriteString(err.Error())
		}
	}
	return all.String()
}

func TestMeshNameStaysInDirectory(t *testing.T) {
	t.Parallel()
	authorities := identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1"})
	for _, mesh := range []string{"", ".", "..", "../x", "a/b", "/etc", "A", strings.Repeat("a", 64)} {
		if _, err := authorities.For(mesh); !errors.Is(err, identity.ErrAuthority) {
			t.Errorf("mesh %q: %v", mesh, err)
		}
	}
}
