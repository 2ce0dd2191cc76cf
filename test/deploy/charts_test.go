package deploy

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// kubernetes is the version that charts are rendered for: a helm built without one assumes an old version.
const kubernetes = "1.30.0"

var update = flag.Bool("update", false, "write the golden files anew")

// cases returns the files of values, each with its chart.
func cases(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "charts", "*.yaml"))
	must(t, err)
	all := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden.yaml") {
			continue
		}
		raw, err := os.ReadFile(file)
		must(t, err)
		first, _, _ := strings.Cut(string(raw), "\n")
		chart, ok := strings.CutPrefix(first, "# chart: ")
		if !ok {
			t.Fatalf("%s: begins with %q, want # chart: NAME", file, first)
		}
		all[file] = chart
	}
	if len(all) < 4 {
		t.Fatalf("found only the values %v", all)
	}
	return all
}

func golden(values string) string { return strings.TrimSuffix(values, ".yaml") + ".golden.yaml" }

// TestHelmRenders checks that helm accepts the charts, and that their output for each file of values is unchanged.
func TestHelmRenders(t *testing.T) {
	for values, chart := range cases(t) {
		folder := filepath.Join(root, "deploy", "charts", chart)
		output(t, tool(t, "helm"), "lint", "--strict", "--kube-version", kubernetes, "--values", values, folder)
		got := output(t, tool(t, "helm"), "template", "mesh", folder, "--namespace", "causeway", "--kube-version",
			kubernetes, "--values", values)
		if *update {
			must(t, os.WriteFile(golden(values), []byte(got), 0o644)) //nolint:gosec // a file of the repository
			continue
		}
		want, err := os.ReadFile(golden(values))
		must(t, err)
		if got != string(want) {
			t.Errorf("%s: what the chart gives has changed; with -update it is written, and then read the difference:\n%s", values, got)
		}
	}
}

// older returns the zone's chart with the values of an older one, which lack what is between begin and end, and begin.
func older(t *testing.T, begin, end string) string {
	t.Helper()
	chart := filepath.Join(t.TempDir(), "causeway-zone")
	must(t, os.CopyFS(chart, os.DirFS(filepath.Join(root, "deploy", "charts", "causeway-zone"))))
	raw, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	must(t, err)
	before, rest, _ := strings.Cut(string(raw), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("the values have no %q with %q", begin, end)
	}
	must(t, os.WriteFile(filepath.Join(chart, "values.yaml"), []byte(before+end+after), 0o600))
	return chart
}

// TestHelmReusesValues checks values of an older chart, which helm upgrade --reuse-values takes in place of this one's: they
// know nothing of the plugin and of the ingress, and --set adds to them what it names.
func TestHelmReusesValues(t *testing.T) {
	for _, c := range []struct {
		begin, end, set string
		none, want      []string
	}{
		{"  cni:\n", "\n# The zone answers", "injection.cni.enabled=true", []string{"kind: DaemonSet", "--injection-cni"},
			[]string{"--injection-cni", `namespace: "kube-system"`, `path: "/opt/cni/bin"`, `path: "/etc/cni/net.d"`}},
		{"# Envoys by which", "image:\n", "ingress.enabled=true", []string{"kind: Deployment", "--kubernetes-ca-config-map"},
			[]string{"--kubernetes-ca-config-map", "replicas: 2\n", `type: "LoadBalancer"`, "port: 10001", `- "30s"`, `- "2"`, "memory: 512Mi"}},
	} {
		chart := older(t, c.begin, c.end)
		template := func(set string) string {
			return output(t, tool(t, "helm"), "template", "mesh", chart, "--namespace", "causeway", "--kube-version", kubernetes, "--set",
				"zone=z,kubernetes.enabled=true,injection.enabled=true,"+set)
		}
		got := template("logLevel=info")
		for _, none := range c.none {
			if strings.Contains(got, none) {
				t.Errorf("%s is there without being asked for", none)
			}
		}
		got = template(c.set)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s", c.set, want)
			}
		}
	}
}

// TestHelmRefuses checks that invalid values are refused with their path.
func TestHelmRefuses(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "charts", "refused.txt"))
	must(t, err)
	refused := 0
	for _, line := range strings.Split(string(raw), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "|")
		chart, settings, want := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])
		flag := "--set"
		if strings.HasSuffix(settings, "=[]") {
			flag = "--set-json"
		}
		said, err := feed(t, "", tool(t, "helm"), "template", "mesh", filepath.Join(root, "deploy", "charts", chart),
			"--kube-version", kubernetes, flag, settings)
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("%s with %s: %v, want %q in\n%s", chart, settings, err, want, said)
		}
		refused++
	}
	if refused < 10 {
		t.Errorf("only %d lines", refused)
	}
}

// manifest is the part of a rendered document that the tests read.
type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Selector any
		Template struct {
			Spec struct {
				AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
				SecurityContext              struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
					RunAsUser    int  `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				HostPID        bool        `yaml:"hostPID"`
				InitContainers []container `yaml:"initContainers"`
				Containers     []container
				Volumes        []struct{ Name string }
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type container struct {
	Name  string
	Args  []string
	Env   []struct{ Name string }
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	LivenessProbe   probe `yaml:"livenessProbe"`
	ReadinessProbe  probe `yaml:"readinessProbe"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Privileged               bool
		Capabilities             struct{ Add, Drop []string }
	} `yaml:"securityContext"`
	VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
	Exec    struct{ Command []string }
}

// TestCharts checks the golden files of the charts: the programs have the flags, the probes use existing pages on
// existing ports, and the pods have no unnecessary rights.
func TestCharts(t *testing.T) {
	for values, chart := range cases(t) {
		raw, err := os.ReadFile(golden(values))
		must(t, err)
		kinds := map[string]int{}
		decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
		for {
			var m manifest
			err := decoder.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			kinds[m.Kind]++
			agent := strings.HasSuffix(m.Metadata.Name, "-cni") // of each node, with the agents of others
			if m.Metadata.Namespace != map[bool]string{true: "kube-system", false: "causeway"}[agent] && !strings.HasPrefix(m.Kind, "Cluster") && !strings.HasSuffix(m.Kind, "WebhookConfiguration") {
				t.Errorf("%s: %s %s is in the namespace %q", values, m.Kind, m.Metadata.Name, m.Metadata.Namespace)
			}
			switch m.Kind {
			case "StatefulSet":
				checkPod(t, values, chart, &m)
			case "Deployment":
				checkIngress(t, values, &m)
			case "DaemonSet":
				checkAgent(t, values, &m)
			}
		}
		services := 3
		if kinds["ValidatingWebhookConfiguration"] > 0 {
			services++
		}
		sets := kinds["StatefulSet"] + kinds["Deployment"]
		if kinds["StatefulSet"] != 1 || kinds["Service"] != services+sets-1 || kinds["ServiceAccount"] != sets+kinds["DaemonSet"] {
			t.Errorf("%s gives %v", values, kinds)
		}
		plain := strings.HasPrefix(filepath.Base(values), "zone-alone")
		if (kinds["PodDisruptionBudget"] == sets) == plain || (kinds["NetworkPolicy"] == sets) == plain {
			t.Errorf("%s gives %v", values, kinds)
		}
	}
}

// checkAgent checks what installs the plugin on each node: it is root, and may do nothing else.
func checkAgent(t *testing.T, where string, m *manifest) {
	t.Helper()
	pod := &m.Spec.Template.Spec
	c := pod.Containers[0]
	s := c.SecurityContext
	if len(pod.Containers) != 1 || s.Privileged || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
		len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 || pod.HostPID || len(c.Ports) > 0 {
		t.Errorf("%s: the DaemonSet may do more than it needs", where)
	}
	if len(c.VolumeMounts) != 2 || len(pod.Volumes) != 2 {
		t.Errorf("%s: the DaemonSet mounts %v", where, c.VolumeMounts)
	}
	known := flagsOf(t, "causeway-zone", "cni", "run")
	for _, arg := range slices.Concat(c.Args, c.ReadinessProbe.Exec.Command) {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "--") && !known[name[2:]] {
			t.Errorf("%s: the command has no flag %s", where, name)
		}
	}
}

// checkIngress checks the pod of a zone ingress, which has no right in the cluster.
func checkIngress(t *testing.T, where string, m *manifest) {
	t.Helper()
	pod := &m.Spec.Template.Spec
	if !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser != nobody ||
		pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("%s: the pod of the ingress may do more than it needs", where)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		checkRights(t, where, &c)
	}
	checkFlags(t, where, "causeway-zone", pod.InitContainers[0].Args)
}

func checkRights(t *testing.T, where string, c *container) {
	t.Helper()
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
		len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("%s: the container %s may do more than it needs", where, c.Name)
	}
}

func checkPod(t *testing.T, where, chart string, m *manifest) {
	t.Helper()
	pod := &m.Spec.Template.Spec
	if !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser != nobody ||
		pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken != slices.Contains(pod.Containers[0].Args, "--kubernetes") {
		t.Errorf("%s: the pod may do more than it needs", where)
	}
	c := pod.Containers[0]
	checkRights(t, where, &c)
	checkFlags(t, where, chart, c.Args)
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for page, p := range map[string]probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if p.HTTPGet.Path != page || !ports[p.HTTPGet.Port] || p.HTTPGet.Scheme != "HTTPS" {
			t.Errorf("%s: asks %+v for %s", where, p, page)
		}
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, v := range m.Spec.VolumeClaimTemplates {
		volumes[v.Metadata.Name] = true
	}
	for _, v := range c.VolumeMounts {
		if !volumes[v.Name] {
			t.Errorf("%s: there is no volume %s", where, v.Name)
		}
	}
	if len(c.VolumeMounts) != len(volumes) {
		t.Errorf("%s: of the volumes %v it mounts %v", where, volumes, c.VolumeMounts)
	}
}
