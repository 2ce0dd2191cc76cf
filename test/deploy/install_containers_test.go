package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/pages"
)

// needEngine are the commands of the page that do not run here, because they need a container engine; make test-images
// does the same with podman. TestInstallInContainers checks what they refer to, TestCompose and TestContainerfile check the files, and
// TestInAnEmptyRoot runs a program as its image would.
var needEngine = []string{"docker compose ", "docker build "}

// TestInstallInContainers checks that what the commands of docs/install/containers.md refer to exists: files, stages,
// services, programs and flags.
func TestInstallInContainers(t *testing.T) {
	commands, err := pages.Read(root, "docs/install/containers.md", "")
	must(t, err)
	asked := map[string]bool{}
	for _, c := range commands {
		words := strings.Fields(c.Text)
		if !slices.ContainsFunc(needEngine, func(prefix string) bool { return strings.HasPrefix(c.Text, prefix) }) {
			t.Errorf("line %d: nobody runs %q: run it, or say why not", c.Line, c.Text)
			continue
		}
		file := filepath.Join(root, after(words, "-f"))
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			t.Errorf("line %d: there is no file %s (%v)", c.Line, file, err)
		}
		kind := words[1]
		if kind == "compose" {
			kind = words[4]
		}
		asked[kind] = true
		switch kind {
		case "up":
		case "build":
			target := after(words, "--target")
			if after(words, "-t") != target ||
				!slices.ContainsFunc(instructions(t), func(i instruction) bool { return i.stage == target }) {
				t.Errorf("line %d: there is no stage %q", c.Line, target)
			}
		case "exec":
			service, there := compose(t).Services[words[5]]
			if !there || service.Restart == "no" {
				t.Errorf("line %d: there is no service %s that keeps running", c.Line, words[5])
			}
			checkCommand(t, c.Text, strings.TrimPrefix(words[6], "/usr/bin/"), words[7:])
		default:
			t.Errorf("line %d: nobody looks at %q", c.Line, c.Text)
		}
	}
	if !asked["up"] || !asked["build"] || !asked["exec"] {
		t.Errorf("the page has only %v", asked)
	}
}

// after returns the word after a flag.
func after(words []string, flag string) string {
	if i := slices.Index(words, flag); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}
