package server_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server"
)

// testBox is a trivial sealer.
type testBox byte

var errOtherBox = errors.New("another box")

func (b testBox) Seal(plain []byte, purpose string) ([]byte, error) {
	out := append([]byte(purpose), byte(b))
	for _, c := range plain {
		out = append(out, c^0x55)
	}
	return out, nil
}

func (b testBox) Open(sealed []byte, purpose string) ([]byte, error) {
	rest, ok := bytes.CutPrefix(sealed, append([]byte(purpose), byte(b)))
	if !ok {
		return nil, errOtherBox
	}
	plain := make([]byte, len(rest))
	for i, c := range rest {
		plain[i] = c ^ 0x55
	}
	return plain, nil
}

// TestKeysAreSealed checks that new keys are sealed, existing plaintext ones are sealed unchanged, and only one box
// opens them.
func TestKeysAreSealed(t *testing.T) {
	dir := t.TempDir()
	first, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, purpose := range map[string]string{"ca.key": "server-ca", "tls.key": "server-tls"} {
		sealed := read(name)
		if bytes.Contains(sealed, []byte("PRIVATE KEY")) {
			t.Errorf("%s is in the clear", name)
		}
		plain, err := testBox(7).Open(sealed, purpose)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), plain, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if again.CASHA256 != first.CASHA256 || !leafOf(t, again).Equal(leafOf(t, first)) {
		t.Error("what was taken over is something else")
	}
	before := read("ca.key")
	if bytes.Contains(before, []byte("PRIVATE KEY")) || bytes.Contains(read("tls.key"), []byte("PRIVATE KEY")) {
		t.Error("the keys stayed in the clear")
	}
	if _, err := server.LoadOrCreateCertificate(dir, nil, testBox(8), time.Now); !errors.Is(err, errOtherBox) ||
		!strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(before, read("ca.key")) {
		t.Error("a wrong key changed the file")
	}
}

func TestCertificateIsKeptAndVerifies(t *testing.T) {
	dir := t.TempDir()
	first, err := server.LoadOrCreateCertificate(dir, []string{"global.example"}, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(first.CAPEM)
	if sum := sha256.Sum256(block.Bytes); hex.EncodeToString(sum[:]) != first.CASHA256 {
		t.Errorf("CASHA256 %s is not the digest of CAPEM", first.CASHA256)
	}
	again, err := server.LoadOrCreateCertificate(dir, []string{"global.example"}, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if leafOf(t, again).SerialNumber.Cmp(leafOf(t, first).SerialNumber) != 0 {
		t.Error("the serving certificate was replaced without need")
	}
	other, err := server.LoadOrCreateCertificate(dir, []string{"other.example"}, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if other.CASHA256 != first.CASHA256 {
		t.Error("a new host name replaced the CA")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.CAPEM)
	for _, host := range []string{"other.example", "127.0.0.1", "localhost"} {
		if _, err := leafOf(t, other).Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, key := range []string{"ca.key", "tls.key"} {
		info, err := os.Stat(filepath.Join(dir, key))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", key, info.Mode().Perm())
		}
	}
}

func TestDamagedCAIsNeverReplaced(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"garbage certificate": func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("x"), 0o600) },
		"key gone":            func(dir string) error { return os.Remove(filepath.Join(dir, "ca.key")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now); err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			_, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
			if err == nil || !strings.Contains(err.Error(), "restore both files") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestCAIsWholeAtOnce removes the certificate of a CA, as if the first start had not yet written it, and then removes
// it from the key, as an earlier version wrote it. The CA stays the same.
func TestCAIsWholeAtOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	certificate, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	same := func(what string) {
		t.Helper()
		if again, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if raw, err := os.ReadFile(certificate); again.CASHA256 != first.CASHA256 || err != nil ||
			!bytes.Equal(raw, first.CAPEM) {
			t.Errorf("%s: the CA is another one (%v)", what, err)
		}
	}
	if err := os.Remove(certificate); err != nil {
		t.Fatal(err)
	}
	same("without its certificate")
	sealed, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := testBox(7).Open(sealed, "server-ca")
	if err != nil {
		t.Fatal(err)
	}
	key, _ := pem.Decode(plain)
	older, err := testBox(7).Seal(pem.EncodeToMemory(key), "server-ca")
	if err == nil {
		err = os.WriteFile(keyFile, older, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	same("as an earlier version wrote it")
	if err := os.Remove(certificate); err != nil {
		t.Fatal(err)
	}
	same("without its certificate, after an upgrade")
}

func leafOf(t *testing.T, c *server.Certificate) *x509.Certificate {
	t.Helper()
	served, err := c.TLSConfig().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return served.Leaf
}
