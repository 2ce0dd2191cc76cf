package portforward

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPodOfAService has a program in the place of kubectl answer, and checks which pod a Service leads to.
func TestPodOfAService(t *testing.T) {
	pods := func(list ...string) string {
		return `case "$*" in *" service "*) echo '{"spec": {"selector": {"a": "b"}}}';; *) echo '{"items": [` + strings.Join(list, ",") + `]}';; esac`
	}
	const (
		other = `{"metadata": {"name": "other"}, "spec": {}}`
		waits = `{"metadata": {"name": "zone-0", "labels": {"a": "b"}}, "spec": {"subdomain": "zone-headless"}}`
		leads = `{"metadata": {"name": "zone-1", "labels": {"causeway.io/leader": "true"}}, "spec": {"subdomain": "zone-headless"}}`
	)
	for script, want := range map[string]string{
		pods(other, waits):        "zone-0.zone-headless.causeway.svc",
		pods(other, waits, leads): "zone-1.zone-headless.causeway.svc",
		pods(leads, waits):        "zone-1.zone-headless.causeway.svc",
		pods(other):               "no pods of a StatefulSet run",
		pods():                    "no pods of a StatefulSet run",
		`echo '{"spec": {}}'`:     "it selects no pods",
		"echo nonsense":           "kubectl get service",
		`echo 'Error from server (NotFound): services "zone-api" not found' >&2; exit 1`: "not found",
	} {
		dir := t.TempDir()
		args := filepath.Join(dir, "args")
		if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\necho \"$*\" >> "+args+"\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		f := New(Config{Context: "prod", Kubeconfig: "file", Patience: 10 * time.Second})
		got, err := f.Pod(t.Context(), "zone-api.causeway.svc:5681")
		if strings.HasSuffix(want, ".svc") {
			if got != want || err != nil {
				t.Errorf("%s: %q, %v, want %q", script, got, err, want)
			}
			asked, _ := os.ReadFile(args)
			if lines := string(asked); !strings.HasPrefix(lines, "get --context=prod --namespace=causeway --output=json service zone-api --kubeconfig=file\n") ||
				!strings.Contains(lines, "pods --selector=a=b --field-selector=status.phase=Running") {
				t.Errorf("it asks %s", lines)
			}
			continue
		}
		if said := (*Error)(nil); !errors.As(err, &said) || !strings.Contains(said.What, want) || said.Advice == "" {
			t.Errorf("%s: %q, %v, want %q", script, got, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	f := New(Config{Context: "prod", Patience: time.Second})
	if got, err := f.Pod(t.Context(), "zone-1.zone-headless.causeway.svc:5680"); got != "zone-1.zone-headless.causeway.svc" || err != nil {
		t.Errorf("a pod is %q, %v", got, err)
	}
	if _, err := f.Pod(t.Context(), "zone-api.causeway.svc:5681"); err == nil || !strings.Contains(err.Error(), "kubectl not found in PATH") {
		t.Errorf("without kubectl: %v", err)
	}
}
