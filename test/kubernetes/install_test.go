package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/test/pages"
)

// nobody is the user and the group of the servers.
const nobody = 65532

// The names of docs/install/kubernetes.md.
const (
	namespace = "causeway"
	globalSet = "global-causeway-global"
	zoneSet   = "zone-1-causeway-zone"
)

// TestKubernetesInstall runs the commands of docs/install/kubernetes.md as they stand, in a namespace where pods must
// be restricted, and then does to the servers what operators do.
func TestKubernetesInstall(t *testing.T) {
	k := newKube(t)
	k.loadServers()
	k.apply(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "causeway",
 "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	k.volumes("folders", true, namespace+"/data-"+globalSet+"-0", namespace+"/data-"+zoneSet+"-0")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(k.story(namespace, globalSet) + k.story(namespace, zoneSet))
		}
	})
	k.followPage("docs/install/kubernetes.md")

	t.Run("names of Services", func(t *testing.T) { k.as(t).checkNames() })
	t.Run("an Envoy at the Service", func(t *testing.T) { k.as(t).checkEnvoy() })
	t.Run("a backup", func(t *testing.T) { k.as(t).checkBackup() })
	t.Run("another advertised address", func(t *testing.T) { k.as(t).checkAdvertise() })
	t.Run("a Service outside", func(t *testing.T) { k.as(t).checkNodePort() })
	t.Run("a larger volume", func(t *testing.T) { k.as(t).checkGrowth() })
	t.Run("a deleted pod", func(t *testing.T) { k.as(t).checkDeletedPod() })
	t.Run("uninstalled and installed again", func(t *testing.T) { k.as(t).checkReinstall() })
}

// as is k for a part of a test.
func (k *kube) as(t *testing.T) *kube { return &kube{Node: k.Node, t: t} }

// followPage runs the commands of a page in a shell, with helm and kubectl in its path.
func (k *kube) followPage(page string) {
	k.t.Helper()
	commands, err := pages.Read(root, page, "")
	must(k.t, err)
	if len(commands) < 6 {
		k.t.Fatalf("%s has only %d commands", page, len(commands))
	}
	k.run(page, commands)
}

// run runs commands of a page.
func (k *kube) run(page string, commands []pages.Command) {
	k.t.Helper()
	dir := k.t.TempDir()
	for _, folder := range []string{filepath.Join("deploy", "charts"), filepath.Join("docs", "kubernetes")} {
		if !slices.ContainsFunc(commands, func(c pages.Command) bool { return strings.Contains(c.Text, filepath.ToSlash(folder)) }) {
			continue
		}
		must(k.t, look(filepath.Join(root, folder)))
		must(k.t, os.MkdirAll(filepath.Join(dir, filepath.Dir(folder)), 0o700))
		must(k.t, os.Symlink(filepath.Join(root, folder), filepath.Join(dir, folder)))
	}
	for _, c := range commands {
		k.eventually(fmt.Sprintf("%s, line %d: %s", page, c.Line, c.Text), func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, "bash", "-ec", "set -o pipefail; "+c.Text)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "KUBECONFIG="+k.Kubeconfig(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir,
				"PATH="+filepath.Join(root, ".tools", "bin")+":"+k.Programs+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err == nil && len(c.Output) > 0 {
				err = pages.Shows(c.Output, string(out), strings.NewReplacer())
			}
			if err != nil && len(c.Output) == 0 { // it is not a question, and is asked once
				k.t.Fatalf("%s, line %d: %s: %v\n%s", page, c.Line, c.Text, err, out)
			}
			if err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		})
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*join*")); err != nil || len(left) > 0 {
		k.t.Errorf("the page leaves %v behind (%v): a join string is a secret", left, err)
	}
}

// checkNames checks that the certificates cover the names of the Services, by which pods reach the servers.
func (k *kube) checkNames() {
	for set, port := range map[string]int{zoneSet: 5678, globalSet: 5685} {
		for _, service := range []struct {
			name string
			port int
		}{{set, port}, {set + "-api", 5681}} {
			address := k.kubectl("-n", namespace, "get", "service", service.name, "-o", "jsonpath={.spec.clusterIP}")
			for _, name := range []string{service.name, service.name + "." + namespace, service.name + "." + namespace + ".svc",
				service.name + "." + namespace + ".svc.cluster.local"} {
				if err := k.handshake(set, address, name, service.port); err != nil {
					k.t.Errorf("%s at %s:%d: %v", name, address, service.port, err)
				}
			}
			if err := k.handshake(set, address, "other.example", service.port); err == nil {
				k.t.Errorf("%s is other.example, too", service.name)
			}
		}
	}
}

// handshake verifies a server as name, by the CA in its volume.
func (k *kube) handshake(set, address, name string, port int) error {
	folder := "tls"
	if set == globalSet {
		folder = "kds-tls"
	}
	ca, err := os.ReadFile(filepath.Join(scratch, "volumes", namespace+"-data-"+set+"-0", folder, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	ctx, cancel := context.WithTimeout(k.t.Context(), 10*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: name, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS13}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		return err
	}
	return conn.Close()
}

// checkBackup checks that a backup leaves the pod whole.
func (k *kube) checkBackup() {
	cmd := exec.CommandContext(k.t.Context(), filepath.Join(k.Programs, "kubectl"), "--kubeconfig", k.Kubeconfig(), "-n", namespace, "exec",
		globalSet+"-0", "--", "/usr/bin/causewayctl", "backup", "create", "-")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("%v: %s", err, &said)
	}
	b, err := archive.Read(bytes.NewReader(out))
	if err != nil || b.Header.Server != "global" || len(b.Resources) == 0 {
		k.t.Fatalf("%d bytes are %+v, %v", len(out), b, err)
	}
}

// online waits until the global says that the zone is online, and has been for less than the given time.
func (k *kube) online() {
	k.t.Helper()
	k.eventually("zone-1 to be online", func(context.Context) error {
		out, err := k.ctl(namespace, globalSet, "get", "zones")
		if err == nil && !strings.Contains(out, "online") {
			err = errors.New("it is not online")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// checkAdvertise gives the global another address for new zones. The zone that joined by the old one stays.
func (k *kube) checkAdvertise() {
	k.helm(release("upgrade", "global", "causeway-global", "--set", "kds.advertiseAddress=global.example:5685", "--wait")...)
	k.ready(namespace, globalSet)
	k.online()
	address := k.kubectl("-n", namespace, "get", "service", globalSet, "-o", "jsonpath={.spec.clusterIP}")
	for _, name := range []string{"global.example", globalSet + "." + namespace + ".svc"} {
		if err := k.handshake(globalSet, address, name, 5685); err != nil {
			k.t.Errorf("%s: %v", name, err)
		}
	}
	k.helm("rollback", "global", "1", "--namespace", namespace, "--wait")
	k.ready(namespace, globalSet)
	k.online()
	if err := k.handshake(globalSet, address, "global.example", 5685); err != nil {
		k.t.Errorf("after the rollback: %v", err)
	}
}

// release returns arguments of helm for a chart in the namespace of the page.
func release(verb, name, chart string, more ...string) []string {
	return append([]string{verb, name, filepath.Join("deploy", "charts", chart), "--namespace", namespace}, more...)
}

// checkNodePort opens the zone to proxies outside: the HTTP API stays inside.
func (k *kube) checkNodePort() {
	k.helm(release("upgrade", "zone-1", "causeway-zone", "--set", "join.secretName=zone-1-join,service.type=NodePort")...)
	ports := k.kubectl("-n", namespace, "get", "services", "-l", "app.kubernetes.io/instance=zone-1", "-o",
		`jsonpath={range .items[*]}{range .spec.ports[*]}{.name}={.nodePort} {end}{end}`)
	for _, port := range strings.Fields(ports) {
		name, number, _ := strings.Cut(port, "=")
		if open := number != ""; open != (name == "xds") {
			k.t.Errorf("the port %s has the node's port %q: %s", name, number, ports)
		}
	}
	if !strings.Contains(ports, "xds=3") {
		k.t.Errorf("proxies outside have no port: %s", ports)
	}
}

// checkGrowth changes the size of the volume.
func (k *kube) checkGrowth() {
	k.helm(release("upgrade", "zone-1", "causeway-zone", "--set", "join.secretName=zone-1-join,persistence.size=8Gi")...)
	if got := k.kubectl("-n", namespace, "get", "pvc", "data-"+zoneSet+"-0", "-o", "jsonpath={.spec.resources.requests.storage}"); got != "8Gi" {
		k.t.Errorf("the claim wants %s, want 8Gi", got)
	}
	k.ready(namespace, zoneSet)
}

// checkDeletedPod deletes the zone's pod, hard: it comes back with what it had.
func (k *kube) checkDeletedPod() {
	before := k.kubectl("-n", namespace, "get", "pod", zoneSet+"-0", "-o", "jsonpath={.metadata.uid}")
	k.kubectl("-n", namespace, "delete", "pod", zoneSet+"-0", "--grace-period=0", "--force")
	k.eventually("another pod", func(context.Context) error {
		after, err := k.Kubectl(k.t.Context(), "-n", namespace, "get", "pod", zoneSet+"-0", "-o", "jsonpath={.metadata.uid}")
		if err == nil && after == before {
			err = errors.New("it is the same")
		}
		return err
	})
	k.ready(namespace, zoneSet)
	k.online()
}

// checkReinstall uninstalls both, and installs them again on the volumes that are left: the zone is a member still.
func (k *kube) checkReinstall() {
	for _, name := range []string{"zone-1", "global"} {
		k.helm("uninstall", name, "--namespace", namespace, "--wait")
	}
	if got := k.kubectl("-n", namespace, "get", "pvc", "-o", "name"); strings.Count(got, "/data-") != 2 {
		k.t.Fatalf("helm uninstall leaves of the volumes %q", got)
	}
	k.kubectl("-n", namespace, "delete", "secret", "zone-1-join")
	k.helm(release("install", "global", "causeway-global", "--wait")...)
	k.helm(release("install", "zone-1", "causeway-zone", "--set", "join.secretName=zone-1-join,persistence.size=8Gi", "--wait")...)
	k.online()
}

// TestKubernetesJoiningZone checks that a zone that cannot reach its global is left alone, and says what it waits for.
func TestKubernetesJoiningZone(t *testing.T) {
	k := newKube(t)
	k.loadServers()
	k.namespace("alone")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(k.story("alone", "z-causeway-zone"))
		}
		if out, err := k.Kubectl(context.Background(), "delete", "namespace", "alone", "--wait=false"); err != nil {
			t.Error(err, out)
		}
	})
	k.kubectl("-n", "alone", "create", "secret", "generic", "nowhere", "--from-literal=join="+joinString(t, "192.0.2.1:5685"))
	k.helm("install", "z", filepath.Join("deploy", "charts", "causeway-zone"), "--namespace", "alone", "--set",
		"join.secretName=nowhere,persistence.enabled=false")
	k.eventually("the container to have started", func(context.Context) error {
		got, err := k.Kubectl(t.Context(), "-n", "alone", "get", "pod", "z-causeway-zone-0", "-o",
			"jsonpath={.status.containerStatuses[0].started} {.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}")
		if err == nil && got != "true false 0" {
			err = fmt.Errorf("started, ready and restarts are %s", got)
		}
		return err
	})
	k.eventually("the reason", func(context.Context) error {
		events, err := k.Kubectl(t.Context(), "-n", "alone", "get", "events", "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(events, "HTTP probe failed with statuscode: 503") {
			err = fmt.Errorf("no event of the readiness probe: %s", events)
		}
		return err
	})
}

// joinString is a join string for a global that nobody can reach.
func joinString(t *testing.T, address string) string {
	t.Helper()
	s, err := (&enrolment.JoinString{Zone: "zone-9", Addresses: []string{address}, CASHA256: strings.Repeat("ab", 32), Token: "t"}).Encode()
	must(t, err)
	return s
}
