package tokens

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// TestRotation uses two replicas on one store. Old tokens stay valid until their key is retired; new ones are valid
// everywhere at once.
func TestRotation(t *testing.T) {
	b := newBench(t)
	one, two := b.issuer(t, ""), b.issuer(t, "")
	old, _ := issue(t, one, Claims{Audience: AudienceUser})
	first := two.Keys()[0].ID
	if err := two.Retire(t.Context(), first); !errors.Is(err, ErrKey) {
		t.Fatalf("the only key could be retired: %v", err)
	}
	second, err := two.Rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fresh, _ := issue(t, one, Claims{Audience: AudienceUser})
	if !strings.Contains(decodeHeader(t, fresh), second) {
		t.Error("the other replica still signs with the old key")
	}
	for _, token := range []string{old, fresh} {
		for _, i := range []*Issuer{one, two} {
			if _, err := i.Verify(token, AudienceUser); err != nil {
				t.Error(err)
			}
		}
	}
	if err := one.Retire(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Verify(old, AudienceUser); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a token of a retired key: %v", err)
	}
	if _, err := two.Verify(fresh, AudienceUser); err != nil {
		t.Error(err)
	}
	if keys := two.Keys(); len(keys) != 1 || !keys[0].Signing || keys[0].Algorithm != "EdDSA" {
		t.Errorf("keys: %+v", keys)
	}
}

func decodeHeader(t *testing.T, token string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(token[:strings.Index(token, ".")])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestReplicasMakeOneFirstKey checks that all replicas that start together sign with the same key.
func TestReplicasMakeOneFirstKey(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	all := make([]*Issuer, 8)
	for n := range all {
		wg.Go(func() { all[n] = b.issuer(t, "") })
	}
	wg.Wait()
	for _, i := range all {
		if keys := i.Keys(); len(keys) != 1 {
			t.Fatalf("keys: %+v", keys)
		}
	}
}

// TestWrongKeyForSecrets checks that an issuer whose ring cannot be opened does not start, and that one that loses it
// refuses everything.
func TestWrongKeyForSecrets(t *testing.T) {
	memory := store.NewMemory()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	open := func() *secrets.Keeper {
		box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return secrets.NewKeeper(memory, box)
	}
	first := open()
	i, err := Open(t.Context(), Config{Keeper: first, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	second := open()
	if _, err := Open(t.Context(), Config{Keeper: second, Log: quiet}); !errors.Is(err, secrets.ErrWrongKey) {
		t.Fatalf("got %v", err)
	}
	token, _ := issue(t, i, Claims{Audience: AudienceUser})
	if _, err := second.Put(t.Context(), "token-signing", []byte("{}"), second.Version("token-signing")); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Verify(token, AudienceUser); !errors.Is(err, secrets.ErrWrongKey) {
		t.Errorf("got %v", err)
	}
}

func TestImportedKeys(t *testing.T) {
	i := newBench(t).issuer(t, "")
	weak, _ := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // it is refused
	good, _, _ := ed25519.GenerateKey(rand.Reader)
	text := func(kind string, key any) []byte {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	for _, row := range []struct {
		name, kid string
		pem       []byte
		ok        bool
	}{
		{"Ed25519", "good", text("PUBLIC KEY", good), true},
		{"twice", "good", text("PUBLIC KEY", good), false},
		{"our own id", i.Keys()[0].ID, text("PUBLIC KEY", good), false},
		{"weak", "weak", text("PUBLIC KEY", &weak.PublicKey), false},
		{"a certificate", "cert", text("CERTIFICATE", good), false},
		{"empty", "empty", nil, false},
		{"kid with a slash", "a/b", text("PUBLIC KEY", good), false},
		{"kid empty", "", text("PUBLIC KEY", good), false},
	} {
		if err := i.Import(t.Context(), row.pem, row.kid); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
}
