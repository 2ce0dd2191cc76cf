package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/pages"
)

// TestHelmInstall runs the commands of docs/install/kubernetes.md. Without Kubernetes, helm renders what it would
// install, and the test runs each pod's program according to the pod.
func TestHelmInstall(t *testing.T) {
	const page = "docs/install/kubernetes.md"
	all, err := pages.Read(root, page, "")
	must(t, err)
	dir := t.TempDir()
	k := &kube{t: t, namespaces: map[string]bool{"default": true}, secrets: map[string]map[string]string{},
		pods: map[string]*pod{}}
	for _, c := range all {
		k.follow(dir, c)
	}
	if len(all) < 6 {
		t.Errorf("%s has only %d commands", page, len(all))
	}
}

// follow runs one command of the page, with files in dir.
func (k *kube) follow(dir string, c pages.Command) {
	k.t.Helper()
	if from, into, piped := strings.Cut(c.Text, " | "); piped {
		c.Text = from + " > stdin" // which the command behind it reads
		k.follow(dir, c)
		c.Text = into
	}
	words := strings.Fields(c.Text)
	switch {
	case words[0] == "helm" && words[1] == "install":
		k.install(words[2:])
	case words[0] == "kubectl" && words[1] == "-n" && !k.namespaces[words[2]]:
		k.t.Fatalf("line %d: there is no namespace %s yet", c.Line, words[2])
	case words[0] == "kubectl" && words[3] == "create" && words[4] == "secret" && words[5] == "generic":
		key, ok := strings.CutSuffix(strings.TrimPrefix(words[7], "--from-file="), "=/dev/stdin")
		if !ok {
			k.t.Fatalf("line %d: %q: want a Secret of what comes through the pipe", c.Line, words[7])
		}
		k.secrets[words[2]+"/"+words[6]] = map[string]string{key: readFile(k.t, dir, "stdin")}
	case words[0] == "kubectl" && words[3] == "exec" && words[5] == "--":
		k.exec(dir, c, words)
	default:
		k.t.Errorf("line %d: nobody runs %q: run it, or say why not", c.Line, c.Text)
	}
}

// install runs helm install with the same arguments, except that it renders instead of installing.
func (k *kube) install(words []string) {
	k.t.Helper()
	chart := filepath.Join(root, words[1])
	words = slices.DeleteFunc(words, func(word string) bool { return word == "--wait" }) // run waits
	args := append([]string{"template", words[0], chart, "--kube-version", kubernetes}, words[2:]...)
	namespace := after(words, "--namespace")
	if strings.Contains(strings.Join(words, " "), "--create-namespace") {
		k.namespaces[namespace] = true
	}
	if !k.namespaces[namespace] {
		k.t.Fatalf("helm install %s: there is no namespace %s", words[0], namespace)
	}
	k.run(output(k.t, tool(k.t, "helm"), args...))
}

// exec runs a command in a pod until its output is the page's; > redirects the output into a file.
func (k *kube) exec(dir string, c pages.Command, words []string) {
	k.t.Helper()
	p := k.pods[words[2]+"/"+words[4]]
	if p == nil {
		k.t.Fatalf("line %d: there is no pod %s, only %v", c.Line, words[4], k.pods)
	}
	command, file, _ := strings.Cut(strings.Join(words[6:], " "), " > ")
	p.machine.follow(pages.Command{Line: c.Line, Text: command, Output: c.Output},
		func(ctx context.Context, command string) (string, error) {
			cmd := p.command(ctx, strings.Fields(command))
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err == nil && file != "" {
				err = os.WriteFile(filepath.Join(dir, file), out, 0o600)
			}
			if err != nil {
				return "", fmt.Errorf("%w: %s%s", err, out, said.String())
			}
			return string(out), nil
		})
}
