package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// blockLines prevents further outcome lines of a server whose lines have a file each.
func blockLines(t *testing.T, s *cluster.Server) (unblock func()) {
	t.Helper()
	var made []string
	for seq := range 100 {
		path := filepath.Join(s.DataDir, "audit", fmt.Sprintf("done-%020d.jsonl", seq))
		if os.Mkdir(path, 0o700) == nil {
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

// TestAuditLogThatFailsInBetween checks that when the audit log fails after a commit, the answer reports what was
// stored. After that, the server stores nothing more and says so. After a kill, the log names the intents without an
// outcome as unknown.
func TestAuditLogThatFailsInBetween(t *testing.T) {
	t.Parallel()
	m := startMesh(t, cluster.GlobalConfig{Args: []string{"--audit-file-bytes", "1"}})
	documents := func(names ...string) string {
		var all strings.Builder
		for _, name := range names {
			fmt.Fprintf(&all, "---\ntype: MeshTrafficPermission\nmesh: default\nname: %s\nspec: {default: {}}\n", name)
		}
		return all.String()
	}
	m.apply(m.global, documents("one"))
	unblock := blockLines(t, m.global)

	out, err := m.CTL(t.Context(), m.global, strings.NewReader(documents("one", "two", "three")), "apply", "-f", "-",
		"-o", "json")
	if err != nil || strings.Count(string(out), `"result": "created"`) != 2 {
		t.Errorf("two of three were stored, and the answer is %v\n%s", err, out)
	}
	_, err = m.CTL(t.Context(), m.global, strings.NewReader(documents("four")), "apply", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("the next apply: %v", err)
	}
	if _, err = m.CTL(t.Context(), m.global, nil, "user", "token", "--name", "alice"); err == nil {
		t.Error("a token is given out while the audit log cannot be written")
	}
	out, err = m.CTL(t.Context(), m.global, nil, "get", "meshtrafficpermissions", "-o", "json")
	m.must(err)
	if !strings.Contains(string(out), `"three"`) || strings.Contains(string(out), `"four"`) {
		t.Errorf("what is stored is not what was said: %s", out)
	}

	m.global.Kill()
	unblock()
	m.must(m.global.Start(t.Context()))
	out, err = m.CTL(t.Context(), m.global, nil, "audit", "--outcome", access.Unknown, "-o", "json")
	m.must(err)
	var entries []access.Entry
	m.must(json.Unmarshal(out, &entries))
	if len(entries) != 1 || len(entries[0].Changes) != 3 || entries[0].Changes[2].Name != "three" {
		t.Errorf("what became of the batch is unknown to the log, which says: %s", out)
	}
}

// TestJoinThatIsNotTakenDown checks that a zone whose join could not be written to the log does not get its
// certificate. After a kill, the log reports that it is unknown whether the zone joined.
func TestJoinThatIsNotTakenDown(t *testing.T) {
	t.Parallel()
	m := startMesh(t, cluster.GlobalConfig{Args: []string{"--audit-file-bytes", "1"}})
	join, err := m.JoinString(t.Context(), m.global, "zone-1")
	m.must(err)
	unblock := blockLines(t, m.global)
	_, err = m.Output(t.Context(), strings.NewReader(join), "causeway-zone", "join", "-", "--data-dir", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "audit log cannot be written") {
		t.Errorf("a zone joined that the audit log knows nothing of: %v", err)
	}
	m.global.Kill()
	unblock()
	m.must(m.global.Start(t.Context()))
	out, err := m.CTL(t.Context(), m.global, nil, "audit", "--outcome", access.Unknown, "-o", "json")
	m.must(err)
	var entries []access.Entry
	m.must(json.Unmarshal(out, &entries))
	if len(entries) != 1 || entries[0].Verb != "join" || entries[0].Name != "zone-1" {
		t.Errorf("what became of the join is unknown to the log, which says: %s", out)
	}
}
