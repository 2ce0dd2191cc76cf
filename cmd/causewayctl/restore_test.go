package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// crafted returns a backup of the lines, with valid checksums.
func crafted(t *testing.T, lines ...string) string {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	files, resources := strings.Count(text, `{"file":`), strings.Count(text, `{"resource":`)
	sum := sha256.Sum256([]byte(text))
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = fmt.Fprintf(w, "%s{\"trailer\":{\"resources\":%d,\"files\":%d,\"sha256\":%q}}\n", text, resources, files,
		hex.EncodeToString(sum[:]))
	path := filepath.Join(t.TempDir(), "crafted.backup")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func resourceLine(key string) string {
	return `{"resource":{"type":"MeshTimeout",` + key + `,"spec":{"to":[]},"revision":3}}`
}

const (
	craftedHeader = `{"causewayBackup":1,"server":"global","version":"v1","revision":7}`
	craftedMesh   = `{"resource":{"type":"Mesh","name":"default","spec":{},"revision":2}}`
	craftedFile   = `{"file":{"path":"kds-tls/ca.crt","mode":511,"data":"eA=="}}`
)

// TestCraftedBackups checks that a crafted backup leaves nothing at all in the data folder, and that its twin is
// restored.
func TestCraftedBackups(t *testing.T) {
	t.Parallel()
	good := []string{craftedHeader, craftedMesh, resourceLine(`"mesh":"default","name":"a"`), craftedFile}
	for name, c := range map[string]struct {
		line, says string
	}{
		"a token for admins": {`{"file":{"path":"admin.token","data":"eA=="}}`, "holds files of kds-tls only"},
		"lines of the audit log": {`{"file":{"path":"audit/done-1.jsonl","data":"eA=="}}`,
			"holds files of kds-tls only"},
		"the store itself": {`{"file":{"path":"causeway.db","data":"eA=="}}`, "holds files of kds-tls only"},
		"a zone's credential": {`{"file":{"path":"membership/credential.sealed","data":"eA=="}}`,
			"holds files of kds-tls only"},
		"a way out": {`{"file":{"path":"kds-tls/../../x","data":"eA=="}}`, "holds files of kds-tls only"},
		"a name with an escape": {resourceLine(`"mesh":"default","name":"a\u001b[2J"`),
			`name: "a\x1b[2J" is not a name`},
		"a name that is a path":       {resourceLine(`"mesh":"default","name":"../a"`), `"../a" is not a name`},
		"a name in capitals":          {resourceLine(`"mesh":"default","name":"A"`), `"A" is not a name`},
		"no name":                     {resourceLine(`"mesh":"default","name":""`), "name: is required"},
		"a mesh with a line in it":    {resourceLine(`"mesh":"default\nx","name":"b"`), "mesh: "},
		"a namespace that turns text": {resourceLine(`"mesh":"default","name":"b","namespace":"a\u202eb"`), "namespace: "},
		"a label with a line in it":   {resourceLine(`"mesh":"default","name":"b","labels":{"team":"a\nb"}`), "team"},
		"a zone that is none": {resourceLine(`"mesh":"default","name":"b","labels":{"kuma.io/zone":"../x"}`),
			"kuma.io/zone"},
		"an origin that is none": {resourceLine(`"mesh":"default","name":"b","labels":{"kuma.io/origin":"moon"}`),
			"kuma.io/origin"},
		"a resource of tomorrow": {strings.Replace(resourceLine(`"mesh":"default","name":"b"`), `"revision":3`,
			`"revision":8`, 1), "its revision is 8"},
		"a resource that is there": {resourceLine(`"mesh":"default","name":"a"`), "appears twice"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			lines := append(append([]string{}, good...), c.line)
			if out, err := restored(crafted(t, lines...), dir); err == nil || !strings.Contains(out, c.says) ||
				strings.Contains(out, "\x1b") || strings.Contains(out, "\u202e") {
				t.Errorf("%v: %q, want %q", err, out, c.says)
			}
			if entries, err := os.ReadDir(dir); !os.IsNotExist(err) {
				t.Errorf("the data folder has %v, %v", entries, err)
			}
			if out, err := restored(crafted(t, good...), dir); err != nil ||
				!strings.Contains(out, "restored 2 resources and 1 files") {
				t.Errorf("the twin: %v: %s", err, out)
			}
		})
	}
}

func restored(backup, dir string) (string, error) {
	out, err := exec.Command(filepath.Join(programs(), "causewayctl"), "restore", backup, "--data-dir", dir).CombinedOutput()
	return string(out), err
}

// TestRestoreUnderAServer checks that a restore into the folder of a running server says what to do.
func TestRestoreUnderAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := bolt.Open(t.Context(), bolt.Config{Path: filepath.Join(dir, backend.File)})
	if err != nil {
		t.Fatal(err)
	}
	backup := crafted(t, craftedHeader, craftedFile)
	out, err := exec.Command(filepath.Join(programs(), "causewayctl"), "restore", backup, "--data-dir", dir, "--overwrite").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "stop the server") {
		t.Errorf("%v: %s", err, out)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreIntoAFolderOfOthers checks that nothing is restored into a folder that everybody may write.
func TestRestoreIntoAFolderOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := restored(crafted(t, craftedHeader, craftedFile), dir); err == nil ||
		!strings.Contains(out, "everybody may write") {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := restored(crafted(t, craftedHeader, craftedFile), dir); err != nil {
		t.Errorf("the twin: %v: %s", err, out)
	}
}
