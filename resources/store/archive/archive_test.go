package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

var header = Header{Server: "global", Version: "v1", Created: time.Unix(2e9, 0).UTC()}

func filled(t testing.TB) store.Store {
	t.Helper()
	s := store.NewMemory()
	for i, name := range []string{"a", "b", "c"} {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(name), i, map[string]string{"n": name})))
	}
	secret := &resources.Resource{Key: resources.Key{Type: resources.TypeSecret, Name: "token-signing"},
		Labels: map[string]string{}}
	var err error
	if secret.Spec, err = resources.NewSpec(resources.TypeSecret, []byte(`{"data":"c2VhbGVk"}`)); err != nil {
		t.Fatal(err)
	}
	storetest.Apply(t, s, storetest.Put(secret))
	return s
}

func written(t testing.TB, s store.Store, files ...File) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, header, s.Snapshot(), files); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	s := filled(t)
	file := File{Path: "kds-tls/ca.crt", Mode: 0o600, Data: []byte("certificate")}
	b, err := Read(bytes.NewReader(written(t, s, file)))
	if err != nil {
		t.Fatal(err)
	}
	want := header
	want.Format, want.Revision = formatVersion, s.Snapshot().Revision()
	if b.Header != want {
		t.Errorf("header %+v, want %+v", b.Header, want)
	}
	if diff := cmp.Diff([]File{file}, b.Files); diff != "" {
		t.Error(diff)
	}
	if len(b.Resources) != 4 {
		t.Fatalf("%d resources", len(b.Resources))
	}
	for _, r := range b.Resources {
		if now := s.Snapshot().Get(r.Key); !storetest.Equal(r, now) {
			t.Errorf("got %s, want %s", storetest.Describe([]*resources.Resource{r}),
				storetest.Describe([]*resources.Resource{now}))
		}
	}
}

func TestKeysInTheClearAreRefused(t *testing.T) {
	file := File{Path: "identity/default/ca.key",
		Data: []byte("-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\n")}
	if err := Write(io.Discard, header, filled(t).Snapshot(), []File{file}); !errors.Is(err, ErrClear) ||
		!strings.Contains(err.Error(), file.Path) {
		t.Errorf("got %v", err)
	}
}

// gzipEnd is the number of bytes of gzip's last, empty block and what follows it: header and padding, two lengths, CRC,
// size.
const gzipEnd = 1 + 4 + 8

// TestDamage checks that a backup in which any byte differs, or that ends early, is refused. A bit that only pads
// gzip's last block is redundant: if it differs, the content must be the same.
func TestDamage(t *testing.T) {
	good := written(t, filled(t), File{Path: "kds-tls/f", Data: []byte("x")})
	want, err := Read(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		// The bytes of gzip's header with the time and system of its creation are ignored.
		if i >= 3 && i < 10 {
			continue
		}
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		switch got, err := Read(bytes.NewReader(bad)); {
		case err == nil && i >= len(good)-gzipEnd && cmp.Diff(want.Header, got.Header) == "" &&
			cmp.Diff(want.Files, got.Files) == "":
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat):
			t.Fatalf("byte %d of %d: %v", i, len(good), err)
		}
		if _, err := Read(bytes.NewReader(good[:i])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func zipped(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, strings.TrimSuffix(text, bomb))
	if strings.HasSuffix(text, bomb) {
		spaces := strings.Repeat(" ", 1<<20)
		for i := range 120 { // MiB, of lines that compress to almost nothing
			_, _ = fmt.Fprintf(w, "{\"file\":{\"path\":\"kds-tls/%d\"}}%s\n", i, spaces)
		}
	}
	_ = w.Close()
	return out.Bytes()
}

// bomb stands for text that is too long to keep in memory.
const bomb = "BOMB"

func TestRefused(t *testing.T) {
	const begin = `{"causewayBackup":1,"server":"global"}` + "\n"
	for name, tt := range map[string]struct {
		text string
		want error
		says string
	}{
		"newer":          {`{"causewayBackup":2,"version":"v9"}`, ErrFormat, `use version "v9"`},
		"not one":        {`{"a":1}`, ErrDamaged, "does not begin"},
		"no end":         {begin, ErrDamaged, "its end is missing"},
		"unknown line":   {begin + `{"colour":"blue"}`, ErrDamaged, "line 2"},
		"empty line":     {begin + `{}`, ErrDamaged, "want a resource"},
		"path upwards":   {begin + `{"file":{"path":"../passwd"}}`, ErrDamaged, "holds files of kds-tls only"},
		"absolute path":  {begin + `{"file":{"path":"/etc/passwd"}}`, ErrDamaged, "holds files of kds-tls only"},
		"path not clean": {begin + `{"file":{"path":"a/../../b"}}`, ErrDamaged, "holds files of kds-tls only"},
		"path elsewhere": {begin + `{"file":{"path":"audit/done-1.jsonl"}}`, ErrDamaged, "holds files of kds-tls only"},
		"settings":       {begin + `{"file":{"path":"admin.token"}}`, ErrDamaged, "holds files of kds-tls only"},
		"a zone's folder": {begin + `{"file":{"path":"membership/credential.sealed"}}`, ErrDamaged,
			"holds files of kds-tls only"},
		"a deeper folder": {begin + `{"file":{"path":"kds-tls/a/b"}}`, ErrDamaged, "holds files of kds-tls only"},
		"a hidden file":   {begin + `{"file":{"path":"kds-tls/.ca.crt"}}`, ErrDamaged, "holds files of kds-tls only"},
		"a backslash":     {begin + `{"file":{"path":"kds-tls/..\\a"}}`, ErrDamaged, "holds files of kds-tls only"},
		"a file twice": {begin + `{"file":{"path":"kds-tls/a"}}` + "\n" + `{"file":{"path":"kds-tls/a"}}`,
			ErrDamaged, "appears twice"},
		"another server": {`{"causewayBackup":1,"server":"moon"}`, ErrDamaged, "want global or zone"},
		"a zone's place": {`{"causewayBackup":1,"server":"zone","zone":"../global"}`, ErrDamaged, "not the name of a zone"},
		"a last revision": {`{"causewayBackup":1,"server":"global","revision":18446744073709551615}`, ErrDamaged,
			"want at most"},
		"spec not JSON": {begin + `{"resource":{"type":"MeshTimeout","name":"a","spec":3}}`, ErrDamaged, "line 2"},
		"unknown type":  {begin + `{"resource":{"type":"Blue","name":"a","spec":{}}}`, ErrDamaged, "Blue"},
		"two on a line": {begin + `{"file":{"path":"kds-tls/a"}} {"file":{"path":"kds-tls/b"}}`, ErrDamaged,
			"goes on after its JSON value"},
		"two in one":       {begin + `{"file":{"path":"a"},"trailer":{}}`, ErrDamaged, "want one of header"},
		"a bomb":           {begin + bomb, ErrDamaged, "no backup does"},
		"checksum differs": {begin + `{"trailer":{"sha256":"00"}}`, ErrDamaged, "SHA-256"},
	} {
		_, err := Read(bytes.NewReader(zipped(tt.text)))
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, filled(f), File{Path: "kds-tls/f", Data: []byte("x")}))
	f.Add(zipped(`{"causewayBackup":1,"server":"zone"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Read(bytes.NewReader(text))
		if (b == nil) == (err == nil) {
			t.Fatalf("backup %v with error %v", b, err)
		}
	})
}
