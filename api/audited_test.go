package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
)

// TestNoAuditLogNoChange checks that reads succeed and changes are refused while the audit log is not writable.
func TestNoAuditLogNoChange(t *testing.T) {
	dir := t.TempDir()
	server, _ := guardedServer(t, dir, access.Settings{AuditFileBytes: 1})
	if status, answer := ask(t, server, http.MethodPost, "/_batch",
		strings.ReplaceAll(retry, `"a"`, `"first"`)); status != http.StatusOK {
		t.Fatal(answer)
	}
	if err := os.Rename(filepath.Join(dir, "audit"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first write detects the failure, the second is not tried
		if status, answer := ask(t, server, http.MethodPost, "/_batch", retry); status != http.StatusServiceUnavailable {
			t.Errorf("a change without a line: %d\n%s", status, answer)
		}
	}
	if status, _ := ask(t, server, http.MethodDelete, "/meshes/default/meshtimeouts/first",
		""); status != http.StatusServiceUnavailable {
		t.Errorf("a deletion without a line: %d", status)
	}
	if status, _ := ask(t, server, http.MethodGet, "/meshes/default/meshtimeouts/first", ""); status != http.StatusOK {
		t.Errorf("a read while the log is away: %d", status)
	}
	if err := os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "audit")); err != nil {
		t.Fatal(err)
	}
	if status, answer := ask(t, server, http.MethodDelete, "/meshes/default/meshtimeouts/first",
		""); status != http.StatusOK {
		t.Errorf("a deletion once lines can be written again: %d\n%s", status, answer)
	}
}

// TestLinesOfChanges checks that the log contains a change with its difference, and neither a write without changes nor
// a dry run.
func TestLinesOfChanges(t *testing.T) {
	server, guard := guardedServer(t, t.TempDir(), access.Settings{})
	ask(t, server, http.MethodPost, "/_batch", retry)
	ask(t, server, http.MethodPost, "/_batch", retry)
	ask(t, server, http.MethodPost, "/_batch?dryRun=server", strings.ReplaceAll(retry, "1s", "9s"))
	ask(t, server, http.MethodPut, "/meshes/default/meshtimeouts/a", strings.ReplaceAll(retry, "1s", "2s"))
	ask(t, server, http.MethodDelete, "/meshes/default/meshtimeouts/a", "")
	ask(t, server, http.MethodGet, "/_replicas", "")
	var got []string
	err := guard.Audit().Read(access.LogQuery{}, func(e access.Entry) bool {
		for _, c := range e.Changes {
			raw, err := json.Marshal(c.Diff)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Event+" "+e.User+" "+c.Result+" "+string(raw))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || !strings.HasPrefix(got[0], "write mesh-system:admin created") ||
		!strings.HasPrefix(got[2], "delete mesh-system:admin deleted") {
		t.Fatalf("lines %q", got)
	}
	const diff = `[{"path":"spec.to[0].default.connectionTimeout","from":"1s","to":"2s"}]`
	if !strings.HasSuffix(got[1], "updated "+diff) {
		t.Errorf("line %s, want the difference %s", got[1], diff)
	}
}

// blockLines makes the next audit lines about outcomes fail until unblock is called. Each of these lines starts a file
// of its own.
func blockLines(t *testing.T, dir string) (unblock func()) {
	t.Helper()
	var made []string
	for seq := range 40 {
		path := filepath.Join(dir, "audit", fmt.Sprintf("done-%020d.jsonl", seq))
		if err := os.Mkdir(path, 0o700); err == nil {
			made = append(made, path)
		}
	}
	return func() {
		for _, path := range made {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTheAnswerIsWhatWasDone checks that a stored change is reported as stored even if its audit line cannot be
// written. Further changes are refused then, and the line is written as soon as possible.
func TestTheAnswerIsWhatWasDone(t *testing.T) {
	dir := t.TempDir()
	server, guard := guardedServer(t, dir, access.Settings{AuditFileBytes: 1})
	unblock := blockLines(t, dir)
	path := "/meshes/default/meshtimeouts/a"
	status, answer := ask(t, server, http.MethodPut, path, retry)
	if status != http.StatusCreated || !strings.Contains(answer, `"revision"`) ||
		!strings.Contains(answer, "Warning: 299 causeway") {
		t.Errorf("a write that was stored: %d\n%s", status, answer)
	}
	if status, answer := ask(t, server, http.MethodDelete, path, ""); status != http.StatusServiceUnavailable ||
		!strings.Contains(answer, `"outcome": "nothing"`) {
		t.Errorf("the next one: %d\n%s", status, answer)
	}
	if status, _ := ask(t, server, http.MethodGet, path, ""); status != http.StatusOK {
		t.Errorf("what was stored: %d", status)
	}
	unblock()
	if status, answer := ask(t, server, http.MethodDelete, path, ""); status != http.StatusOK ||
		strings.Contains(answer, "Warning") {
		t.Errorf("once lines can be written again: %d\n%s", status, answer)
	}
	var told []string
	if err := guard.Audit().Read(access.LogQuery{Outcome: access.Done}, func(e access.Entry) bool {
		for _, c := range e.Changes {
			told = append(told, c.Result+" "+c.Name)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(told, ", "); got != "created a, deleted a" {
		t.Errorf("the log tells of %s", got)
	}
}
