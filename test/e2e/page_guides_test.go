package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// guides are the pages whose commands TestGuides runs, in the order in which a reader may follow them: each leaves the
// mesh as it found it, and the last moves its zone.
var guides = []string{"debug-a-403", "let-a-client-in", "block-a-client", "hand-over-a-namespace", "add-a-zone",
	"move-a-zone"}

// TestGuides runs the commands of docs/guides after the first four steps of the README, as the guides say.
func TestGuides(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t, root, "first-policy")
	r.must(os.CopyFS(filepath.Join(r.dir, "docs", "guides"), os.DirFS(filepath.Join(root, "docs", "guides"))))
	steps, err := pages.Read(root, "README.md", walkthrough)
	r.must(err)
	for _, c := range steps {
		r.follow(c)
		if strings.HasPrefix(c.Text, "curl ") {
			break // the client's result without a policy is the last of step 4
		}
	}
	listed := map[string]bool{}
	for _, name := range guides {
		listed[name+".md"] = true
		commands, err := pages.Read(root, "docs/guides/"+name+".md", "")
		r.must(err)
		for _, c := range commands {
			t.Logf("%s:%d", name, c.Line)
			r.follow(c)
		}
	}
	all, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	r.must(err)
	listed["sign-in.md"] = true // the login_ script of cmd/causewayctl runs it, beside an identity provider
	for _, path := range all {
		if name := filepath.Base(path); name != "README.md" && !listed[name] {
			t.Errorf("docs/guides/%s: nothing runs its commands: add it to guides", name)
		}
	}
}
