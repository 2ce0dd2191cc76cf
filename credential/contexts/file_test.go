package contexts_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/credential/contexts"
)

// TestFilesRoundTrip writes contexts of any valid content, reads them again, and expects no change but paths.
func TestFilesRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, "made", strings.Repeat("x", n%7+1)+".yaml")
		_ = os.Remove(path)
		f, err := contexts.Read(path)
		if err != nil {
			rt.Fatal(err)
		}
		text := rapid.StringMatching(`[a-z: #'"\\{}\[\]-]{1,20}`)
		want := map[string]contexts.Context{}
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,10}[A-Za-z0-9])?`), 0, 5).
			Draw(rt, "names") {
			c := contexts.Context{Name: name, Address: text.Draw(rt, "address")}
			if rapid.Bool().Draw(rt, "token") {
				c.TokenFile = "/" + text.Draw(rt, "token file")
			}
			f.Set(c)
			want[name] = c
		}
		if err := f.Save(); err != nil {
			rt.Fatal(err)
		}
		again, err := contexts.Read(path)
		if err != nil {
			rt.Fatal(err)
		}
		if len(again.Contexts) != len(want) {
			rt.Fatalf("%d contexts, want %d", len(again.Contexts), len(want))
		}
		for name, c := range want {
			if got := again.Find(name); got == nil || !cmp.Equal(*got, c, cmpopts.EquateEmpty()) {
				rt.Fatalf("got %v, want %v", got, c)
			}
		}
	})
}

// TestRelativePaths checks that paths in a context are relative to its file.
func TestRelativePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	write(t, path, "contexts: [{name: a, address: 'http://x', ca: ca.crt, tokenFile: sub/token}]", 0o644)
	f, err := contexts.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := contexts.Context{Name: "a", Address: "http://x", CA: filepath.Join(dir, "ca.crt"),
		TokenFile: filepath.Join(dir, "sub", "token")}
	if diff := cmp.Diff(want, *f.Find("a")); diff != "" {
		t.Error(diff)
	}
	if f.Contexts[0].CA != "ca.crt" {
		t.Errorf("the file itself changed: %v", f.Contexts[0])
	}
}

// TestEmptyFields checks that an empty credential in a context is an error, not a weaker caller.
func TestEmptyFields(t *testing.T) {
	for fields, says := range map[string]string{
		"tokenFile: token": "", `tokenFile: ""`: "contexts[0].tokenFile: is empty", "tokenFile: null": "contexts[0].tokenFile: is empty",
		"TokenFile: ' '": "contexts[0].TokenFile: is empty", `clientCert: "", clientKey: ""`: "contexts[0].clientCert: is empty",
		"ca: ~": "contexts[0].ca: is empty", `caSha256: ""`: "contexts[0].caSha256: is empty",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		write(t, path, "contexts: [{name: a, address: 'http://x', "+fields+"}]", 0o600)
		_, err := contexts.Read(path)
		if (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", fields, err, says)
		}
	}
	t.Setenv(contexts.Env, " ")
	if _, err := contexts.ReadFiles(""); err == nil || !strings.Contains(err.Error(), "CAUSEWAY_CONTEXTS is set and empty") {
		t.Errorf("a variable that names no file: %v", err)
	}
	if _, err := contexts.ReadFiles(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("a flag over it: %v", err)
	}
}

// TestSaveKeepsTheOldFile checks that a file that cannot be replaced stays as it was.
func TestSaveKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "contexts: [{name: a, address: 'http://x'}]", 0o600)
	f, err := contexts.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Set(contexts.Context{Name: "not a name", Address: "http://y"})
	if err := f.Save(); err == nil || !strings.HasPrefix(err.Error(), `contexts[1].name: "not a name"`) {
		t.Errorf("got %v", err)
	}
	if raw, err := os.ReadFile(path); err != nil || !strings.Contains(string(raw), "http://x") {
		t.Errorf("%s, %v", raw, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.next")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSaveKeepsALink checks that a symbolic link, such as one to dotfiles, stays, and its target is written.
func TestSaveKeepsALink(t *testing.T) {
	t.Parallel()
	target, link := filepath.Join(t.TempDir(), "kept.yaml"), filepath.Join(t.TempDir(), "config.yaml")
	write(t, target, "contexts: [{name: a, address: 'http://x'}]", 0o600)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	f, err := contexts.Read(link)
	if err != nil {
		t.Fatal(err)
	}
	f.Set(contexts.Context{Name: "b", Address: "http://y"})
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if raw, err := os.ReadFile(target); err != nil || !strings.Contains(string(raw), "http://y") {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestUnknownNamesWhatThereIs checks the error for an unknown name.
func TestUnknownNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	files, err := contexts.ReadFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = files.Find("a")
	if unknown := (*contexts.UnknownError)(nil); !errors.As(err, &unknown) || !strings.Contains(err.Error(), path+" has none") {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
