package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRestoreLeavesTheFolderToNobody checks that nothing is written through a link, or replaces anything but a regular
// file, even with overwrite. Without the obstacle the same backup is restored.
func TestRestoreLeavesTheFolderToNobody(t *testing.T) {
	t.Parallel()
	file := File{Path: "kds-tls/ca.crt", Mode: 0o777, Data: []byte("evil")}
	for name, stand := range map[string]func(dir, elsewhere string) error{
		"a folder that is a link": func(dir, elsewhere string) error { return os.Symlink(elsewhere, filepath.Join(dir, "kds-tls")) },
		"a folder that is a link within": func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "audit"), 0o700), os.Symlink("audit", filepath.Join(dir, "kds-tls")))
		},
		"a file that is a link": func(dir, elsewhere string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "kds-tls"), 0o700),
				os.Symlink(filepath.Join(elsewhere, "ca.crt"), filepath.Join(dir, "kds-tls", "ca.crt")))
		},
		"a pipe, which would be waited for": func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "kds-tls"), 0o700),
				syscall.Mkfifo(filepath.Join(dir, "kds-tls", "ca.crt"), 0o600))
		},
		"a folder in the place of the file": func(dir, _ string) error { return os.MkdirAll(filepath.Join(dir, "kds-tls", "ca.crt"), 0o700) },
		"a file in the place of the folder": func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "kds-tls"), nil, 0o600) },
		"a link to nowhere, as a file": func(dir, elsewhere string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "kds-tls"), 0o700),
				os.Symlink(filepath.Join(elsewhere, "new"), filepath.Join(dir, "kds-tls", "ca.crt")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, elsewhere := t.TempDir(), t.TempDir()
			victim := filepath.Join(elsewhere, "ca.crt")
			if err := errors.Join(os.WriteFile(victim, []byte("mine"), 0o600), stand(dir, elsewhere)); err != nil {
				t.Fatal(err)
			}
			for _, overwrite := range []bool{false, true} {
				if err := (&Backup{Files: []File{file}}).Restore(dir, "a.backup", overwrite); err == nil ||
					!strings.Contains(err.Error(), "nothing is restored") {
					t.Errorf("overwrite %v: %v", overwrite, err)
				}
			}
			if got := string(read(t, victim)); got != "mine" {
				t.Errorf("a file elsewhere is now %q", got)
			}
			if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 1 {
				t.Errorf("elsewhere there is now %v, %v", entries, err)
			}
		})
	}
	dir := t.TempDir()
	b := &Backup{Files: []File{file}}
	if err := b.Restore(dir, "a.backup", false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "kds-tls", "ca.crt"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := b.Restore(dir, "a.backup", false); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	b.Files[0].Data = []byte("other")
	if err := b.Restore(dir, "a.backup", false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another content: %v", err)
	}
	if err := b.Restore(dir, "a.backup", true); err != nil || string(read(t, filepath.Join(dir, "kds-tls", "ca.crt"))) != "other" {
		t.Errorf("another content, to be overwritten: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "kds-tls")); err != nil || len(entries) != 1 {
		t.Errorf("there is now %v, %v", entries, err)
	}
}

// TestFilesThatNoServerWroteStayOut checks that a new backup can be restored, whatever else is in the folders.
func TestFilesThatNoServerWroteStayOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"tls/ca.crt", "tls/a b", "tls/.x", "tls/deeper/ca.crt", "identity/default/ca.key",
		"identity/ca.crt", "membership/credential.sealed", "audit/x"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700),
			os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Collect(dir, Folders("zone")...)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range files {
		names = append(names, files[i].Path)
		if err := files[i].check("zone"); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(names,
		" "); got != "identity/ca.crt identity/default/ca.key tls/ca.crt membership/credential.sealed" {
		t.Error(got)
	}
}
