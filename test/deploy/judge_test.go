package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJudgeCharts checks the output of the charts, for each file of values, against the types of Kubernetes and of the
// Prometheus operator: every field exists and has its type.
func TestJudgeCharts(t *testing.T) {
	for values := range cases(t) {
		raw, err := os.ReadFile(golden(values))
		must(t, err)
		want := fmt.Sprintf("%d objects\n", strings.Count(string(raw), "\nkind: "))
		if said, err := feed(t, string(raw), tool(t, "judge"), "kubernetes"); err != nil || said != want {
			t.Errorf("%s: %v, want %s%s", values, err, want, said)
		}
	}
}

// TestJudgeCompose reads the Compose file as docker compose config does.
func TestJudgeCompose(t *testing.T) {
	want := fmt.Sprintf("%d services\n", len(compose(t).Services))
	if said := output(t, tool(t, "judge"), "compose",
		filepath.Join(root, "deploy", "containers", "compose.yaml")); said != want {
		t.Errorf("%s, want %s", said, want)
	}
}

// TestJudgeIsStrict checks that a single error is refused, on which the tests above rely.
func TestJudgeIsStrict(t *testing.T) {
	bolt, etcd := golden(filepath.Join("testdata", "charts", "global-bolt.yaml")),
		golden(filepath.Join("testdata", "charts", "global-etcd.yaml"))
	for _, tt := range []struct{ file, old, new, want string }{
		{bolt, "terminationGracePeriodSeconds:", "terminationGracePeriodSecond:",
			`unknown field "spec.template.spec.terminationGracePeriodSecond"`},
		{bolt, "  replicas: 1", `  replicas: "1"`, "cannot unmarshal string"},
		{bolt, `storage: "4Gi"`, `storage: "4Gigs"`, "quantities must match"},
		{bolt, "insecureSkipVerify:", "insecureSkipVerified:",
			`unknown field "spec.endpoints[0].tlsConfig.insecureSkipVerified"`},
		{bolt, "  maxUnavailable: 1", "  maxUnavailable: 1\n  maxUnavailable: 2", `key "maxUnavailable" already set`},
		{bolt, "kind: NetworkPolicy", "kind: NetworkPolicies", `no kind "NetworkPolicies"`},
		{etcd, "secretKeyRef:", "secretRef:", `unknown field "spec.template.spec.containers[0].env[3].valueFrom.secretRef"`},
	} {
		raw, err := os.ReadFile(tt.file)
		must(t, err)
		broken := strings.Replace(string(raw), tt.old, tt.new, 1)
		if said, err := feed(t, broken, tool(t, "judge"), "kubernetes"); err == nil || !strings.Contains(said, tt.want) {
			t.Errorf("%s for %s: %v, want %s in\n%s", tt.new, tt.old, err, tt.want, said)
		}
	}
	text := read(t, "deploy", "containers", "compose.yaml")
	for old, broken := range map[string]string{"read_only: true": "readonly: true",
		"network_mode: service:global": "network_mode: service:nobody", `["5685:5685"]`: `["5685:port"]`} {
		file := filepath.Join(t.TempDir(), "compose.yaml")
		must(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, old, broken)), 0o600))
		if said, err := feed(t, "", tool(t, "judge"), "compose", file); err == nil {
			t.Errorf("%s: %s", broken, said)
		}
	}
}
