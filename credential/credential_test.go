package credential

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readers are the functions that read a file, by name.
var readers = map[string]func(name, path string) ([]byte, error){
	"secret": Secret, "own": Own, "public": Public, "sealed": Sealed,
	"token":            func(name, path string) ([]byte, error) { text, err := Token(name, path); return bytesOf(text), err },
	"pool":             func(name, path string) ([]byte, error) { _, err := Pool(name, path); return nil, err },
	"pair":             func(name, path string) ([]byte, error) { _, err := Pair(name, path, name, path); return nil, err },
	"secret of a root": secretOfRoot,
}

func bytesOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

func secretOfRoot(name, path string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return SecretIn(name, root, filepath.Base(path))
}

func write(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWhatIsNoCredential checks that each function refuses an invalid file, names the flag and the reason, and never
// blocks.
func TestWhatIsNoCredential(t *testing.T) {
	dir := t.TempDir()
	dangling, folder, pipe := filepath.Join(dir, "dangling"), filepath.Join(dir, "folder"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink("nowhere", dangling), os.Mkdir(folder, 0o700),
		syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{
		folder: "is a folder", pipe: "is not a regular file, but a pipe, as <(...) makes: write the credential into a file with mode 0600", dangling: "no such file", filepath.Join(dir, "none"): "no such file",
		write(t, filepath.Join(dir, "empty"), "", 0o600): "is empty", write(t, filepath.Join(dir, "blank"), " \n\t\n",
			0o600): "is empty",
		write(t, filepath.Join(dir, "open"), "secret", 0o602):                                 "everybody may write",
		write(t, filepath.Join(dir, "huge"), strings.Repeat("x", MaxPublic+MaxSecret), 0o600): "more than",
	}
	for how, read := range readers {
		for path, says := range wrong {
			began := time.Now()
			got, err := read("--the-flag", path)
			if !errors.Is(err, Err) || !strings.HasPrefix(err.Error(), "--the-flag") ||
				!strings.Contains(err.Error(), says) || got != nil {
				t.Errorf("%s of %s: %q, %v; want %q", how, path, got, err, says)
			}
			if time.Since(began) > 5*time.Second {
				t.Errorf("%s of %s took %s", how, path, time.Since(began))
			}
		}
		if _, err := read("--the-flag", "/dev/null"); how != "secret of a root" &&
			(err == nil || !strings.Contains(err.Error(), "a device")) {
			t.Errorf("%s of a device: %v", how, err)
		}
	}
}

// TestWhoMayReadIt checks that a secret that everybody may read is refused, but a certificate is not.
func TestWhoMayReadIt(t *testing.T) {
	dir := t.TempDir()
	for mode, takes := range map[fs.FileMode]string{
		0o600: "secret own token public sealed secret of a root", 0o640: "secret token public sealed secret of a root",
		0o660: "secret token public sealed secret of a root",
		0o604: "public sealed", 0o644: "public sealed", 0o601: "public sealed", 0o606: "", 0o666: "",
	} {
		path := write(t, filepath.Join(dir, "file"), " text\n", mode)
		for _, how := range []string{"secret", "own", "token", "public", "sealed", "secret of a root"} {
			text, err := readers[how]("--the-flag", path)
			if want := strings.Contains(" "+takes+" ", " "+how+" "); want != (err == nil) {
				t.Errorf("mode %04o, %s: %v", mode, how, err)
			}
			if err == nil && strings.TrimSpace(string(text)) != "text" {
				t.Errorf("mode %04o, %s: %q", mode, how, text)
			}
		}
	}
	link := filepath.Join(dir, "link")
	write(t, filepath.Join(dir, "file"), " text\n", 0o640)
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if text, err := Token("--the-flag", link); err != nil || text != "text" {
		t.Errorf("by a link: %q %v", text, err)
	}
}
