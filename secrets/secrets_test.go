package secrets

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const phrase = "correct horse battery staple"

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func open(t testing.TB, c Config) *Box {
	t.Helper()
	c.Log = quiet
	b, err := OpenBox(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSealAndOpen(t *testing.T) {
	dir := t.TempDir()
	for name, config := range map[string]Config{"key file": {Dir: dir}, "passphrase": {Passphrase: phrase}} {
		t.Run(name, func(t *testing.T) {
			one, two := open(t, config), open(t, config)
			for _, plain := range []string{"", "a secret", strings.Repeat("x", 1<<16)} {
				sealed, err := one.Seal([]byte(plain), "zone-ca")
				if err != nil {
					t.Fatal(err)
				}
				if len(plain) > 4 && bytes.Contains(sealed, []byte(plain[:4])) {
					t.Error("it can be read")
				}
				again, _ := one.Seal([]byte(plain), "zone-ca")
				if bytes.Equal(sealed, again) {
					t.Error("two seals are equal")
				}
				got, err := two.Open(sealed, "zone-ca")
				if err != nil || string(got) != plain {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
}

// TestWhatDoesNotOpen changes one part of a sealed secret that otherwise opens.
func TestWhatDoesNotOpen(t *testing.T) {
	box := open(t, Config{Dir: t.TempDir()})
	sealed, err := box.Seal([]byte("the secret itself"), "zone-ca")
	if err != nil {
		t.Fatal(err)
	}
	byPhrase := open(t, Config{Passphrase: phrase})
	sealedByPhrase, _ := byPhrase.Seal([]byte("the secret itself"), "zone-ca")
	for _, row := range []struct {
		name    string
		box     *Box
		sealed  []byte
		purpose string
		want    error
	}{
		{"nothing", box, sealed, "zone-ca", nil},
		{"another purpose", box, sealed, "token-signing", ErrDamaged},
		{"another key file", open(t, Config{Dir: t.TempDir()}), sealed, "zone-ca", ErrWrongKey},
		{"a passphrase instead", byPhrase, sealed, "zone-ca", ErrWrongKey},
		{"a key file instead", box, sealedByPhrase, "zone-ca", ErrWrongKey},
		{"another passphrase", open(t, Config{Passphrase: phrase + "!"}), sealedByPhrase, "zone-ca", ErrWrongKey},
		{"cut", box, sealed[:len(sealed)-1], "zone-ca", ErrDamaged},
		{"cut in the header", box, sealed[:20], "zone-ca", ErrDamaged},
		{"header only", box, sealed[:headerSize], "zone-ca", ErrDamaged},
		{"longer", box, append(bytes.Clone(sealed), 0), "zone-ca", ErrDamaged},
		{"in the clear", box, []byte("-----BEGIN PRIVATE KEY-----"), "zone-ca", ErrDamaged},
		{"empty", box, nil, "zone-ca", ErrDamaged},
	} {
		got, err := row.box.Open(row.sealed, row.purpose)
		if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
		if err != nil && (got != nil || strings.Contains(err.Error(), "the secret itself")) {
			t.Errorf("%s: something of it came out", row.name)
		}
	}
	for at := range sealed {
		altered := bytes.Clone(sealed)
		altered[at] ^= 1
		if _, err := box.Open(altered, "zone-ca"); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrWrongKey) {
			t.Fatalf("with byte %d altered it opens: %v", at, err)
		}
	}
}

// TestDamageIsNotTakenForAnotherKey checks that the error for a header that does not match the key names both possible
// reasons, and what to do about each: a flipped byte looks the same as another key.
func TestDamageIsNotTakenForAnotherKey(t *testing.T) {
	t.Parallel()
	for name, box := range map[string]*Box{"a key file": open(t, Config{Dir: t.TempDir()}), "a passphrase": open(t, Config{Passphrase: phrase})} {
		sealed, err := box.Seal([]byte("the secret itself"), "zone-ca")
		if err != nil {
			t.Fatal(err)
		}
		flipped := bytes.Clone(sealed)
		flipped[len(magic)+1+saltSize] ^= 1 // the key's fingerprint
		if _, err := box.Open(flipped, "zone-ca"); !errors.Is(err, ErrWrongKey) || !strings.Contains(err.Error(), "or damaged") ||
			!strings.Contains(err.Error(), "backup") {
			t.Errorf("%s, with a byte of the fingerprint flipped: %v", name, err)
		}
		flipped = bytes.Clone(sealed)
		flipped[len(magic)] ^= 1 // no kind of key
		if _, err := box.Open(flipped, "zone-ca"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, with the kind of the key flipped: %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, rootKeySize))
	for _, row := range []struct {
		name   string
		config Config
		want   string
	}{
		{"a key file", Config{KeyFile: write("good", key+"\n", 0o600)}, ""},
		{"a passphrase", Config{Passphrase: phrase}, ""},
		{"both", Config{KeyFile: filepath.Join(dir, "good"), Passphrase: phrase}, "give one"},
		{"short passphrase", Config{Passphrase: "hunter2"}, "choose a longer one"},
		{"readable by others", Config{KeyFile: write("open", key, 0o644)}, "chmod 600"},
		{"too short", Config{KeyFile: write("short", key[:20], 0o600)}, "not 32 random bytes"},
		{"not base64", Config{KeyFile: write("text", strings.Repeat("?", 44), 0o600)}, "not 32 random bytes"},
		{"much too long", Config{KeyFile: write("long", strings.Repeat("A", 8<<10), 0o600)}, "is not 32 random bytes"},
		{"missing", Config{KeyFile: filepath.Join(dir, "none")}, "openssl rand -base64 32"},
		{"no folder to make one in", Config{Dir: filepath.Join(dir, "none")}, "no such file"},
	} {
		row.config.Log = quiet
		_, err := OpenBox(row.config)
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.want != "" && (!errors.Is(err, ErrKey) || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got %v, want %q", row.name, err, row.want)
		case err != nil && (strings.Contains(err.Error(), key[:16]) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: the error tells the key: %v", row.name, err)
		}
	}
}

// TestNamesAreBound checks that a secret stored under one name does not open under another, whoever moved it.
func TestNamesAreBound(t *testing.T) {
	ctx := t.Context()
	memory := store.NewMemory()
	k := NewKeeper(memory, open(t, Config{Dir: t.TempDir()}))
	if _, err := k.Put(ctx, "one", []byte("plain text of a secret"), 0); err != nil {
		t.Fatal(err)
	}
	moved := memory.Snapshot().Get(keyOf("one")).Clone()
	moved.Name = "two"
	if bytes.Contains(moved.Spec.JSON(), []byte("plain text")) {
		t.Error("the store has it in the clear")
	}
	if _, err := memory.Apply(ctx, store.Batch{Ops: []store.Op{{Put: moved}}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Get(ctx, "two"); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// TestSecretsHaveNoName checks that no document, path or short name reaches the type.
func TestSecretsHaveNoName(t *testing.T) {
	if _, ok := resources.Lookup(resources.TypeSecret); ok {
		t.Error("Lookup knows it")
	}
	for _, d := range resources.Descriptors() {
		if d.Type == resources.TypeSecret {
			t.Error("Descriptors lists it")
		}
	}
	for _, path := range []string{"", "secrets", "secret", "Secret"} {
		if _, ok := resources.LookupPath(path); ok {
			t.Errorf("path %q", path)
		}
		if _, ok := resources.LookupShort(path); ok {
			t.Errorf("short name %q", path)
		}
	}
	doc := []byte(`{"type":"Secret","name":"token-signing","spec":{"sealed":"eA=="}}`)
	if _, err := resources.DecodeDocuments(doc, resources.DecodeOptions{Format: resources.FormatJSON}); err == nil {
		t.Error("a user could write one")
	}
}

// FuzzOpen checks that nothing opens unless it was sealed, and that nothing panics.
func FuzzOpen(f *testing.F) {
	box := open(f, Config{Dir: f.TempDir()})
	sealed, _ := box.Seal([]byte("secret"), "p")
	f.Add(sealed)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := box.Open(b, "p"); err == nil && !bytes.Equal(b, sealed) {
			t.Fatalf("%x opened", b)
		}
	})
}
