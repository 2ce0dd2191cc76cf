package kubernetes

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/kubernetes/images"
)

// takeover is the longest that proxies may be without a zone after their own has died. A busy machine takes longer, so
// that only a run by itself judges it: -takeover 5s.
var takeover = flag.Duration("takeover", 0,
	"longest time without a zone after the leader of two was killed; 0 is that of -patience")

// replicas are those of a zone or of a global, in a namespace of its own.
type replicas struct {
	*kube

	namespace, set string
}

// TestKubernetesReplicas installs a zone with two replicas and nothing beside them, kills and stops the one that leads,
// takes the API server away, and deletes what they share.
func TestKubernetesReplicas(t *testing.T) {
	r := newReplicas(t, "two-system", "r", "replicas=2", "persistence.enabled=false")
	r.workload()
	first, _ := r.leader()
	r.serves(first, 2, patience)
	keys := r.keys()

	t.Run("by causewayctl from outside", func(t *testing.T) { r.as(t).checkOutside() })
	t.Run("killed while users write", func(t *testing.T) { r.as(t).checkKilled(keys) })
	t.Run("stopped for longer than its lease", func(t *testing.T) { r.as(t).checkStopped() })
	t.Run("without the API server", func(t *testing.T) { r.as(t).checkAlone() })
	t.Run("a Secret deleted", func(t *testing.T) { r.as(t).checkDeletedSecrets() })
	t.Run("moved by an upgrade", func(t *testing.T) { r.as(t).checkRestarted() })
	if got := r.keys(); got != keys {
		t.Errorf("the keys were\n%s\nand are\n%s", keys, got)
	}
}

// newReplicas installs a zone with a key in a Secret.
func newReplicas(t *testing.T, namespace, name string, more ...string) *replicas {
	t.Helper()
	r := prepareReplicas(t, namespace, name+"-causeway-zone")
	r.install("zone", name, namespace, append([]string{"zone=zone-1", "kubernetes.enabled=true", "injection.enabled=true",
		"injection.envoyImage=localhost/envoy:dev", "secretsKey.secretName=the-key"}, more...)...)
	r.ready(namespace, r.set)
	return r
}

// prepareReplicas makes a namespace for a StatefulSet, with a key in a Secret.
func prepareReplicas(t *testing.T, namespace, set string) *replicas {
	t.Helper()
	k := newKube(t)
	k.loadServers()
	k.defineTypes()
	r := &replicas{kube: k, namespace: namespace, set: set}
	_, _ = k.tryHelm("uninstall", "z", "--namespace", "mesh-system") // an object has one server
	k.namespace(namespace)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	k.apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "the-key", "namespace": %q}, "stringData": {"key": %q}}`,
		namespace, base64.StdEncoding.EncodeToString(key)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.history())
		}
		ctx := context.WithoutCancel(t.Context())
		for _, kind := range []string{"mutating", "validating"} { // nobody answers any more
			_, _ = k.Kubectl(ctx, "delete", kind+"webhookconfiguration", r.set+"-"+namespace, "--ignore-not-found")
		}
		if out, err := k.Kubectl(ctx, "delete", "namespace", namespace, "stalls", "--ignore-not-found", "--timeout=120s"); err != nil {
			t.Error(out)
		}
	})
	return r
}

// install applies what causewayctl install prints, which is what the chart gives.
func (k *kube) install(server, name, namespace string, set ...string) {
	k.t.Helper()
	args := []string{"install", server, "--name", name, "--namespace", namespace}
	for _, one := range set {
		args = append(args, "--set", one)
	}
	out, err := exec.CommandContext(k.t.Context(), filepath.Join(servers.bin, "causewayctl"), args...).Output()
	must(k.t, err)
	k.apply(string(out))
}

// as is r for a part of a test.
func (r *replicas) as(t *testing.T) *replicas {
	return &replicas{kube: r.kube.as(t), namespace: r.namespace, set: r.set}
}

// history is what the replicas say.
func (r *replicas) history() string {
	ctx, out := context.WithoutCancel(r.t.Context()), ""
	for _, args := range [][]string{{"get", "pods", "-o", "wide", "--show-labels"}, {"get", "lease,secret"}, {"logs", r.set + "-0", "--tail=60"},
		{"logs", r.set + "-1", "--tail=60"}, {"logs", r.set + "-0", "--tail=15", "-p"}, {"logs", r.set + "-1", "--tail=15", "-p"}} {
		text, _ := r.Kubectl(ctx, append([]string{"-n", r.namespace}, args...)...)
		out += text + "\n"
	}
	return out
}

// workload starts pods with proxies: those of checkPods.
func (r *replicas) workload() {
	image, err := images.Linked(r.t.Context(), "localhost/curl:dev", "curl", "sleep")
	must(r.t, err)
	must(r.t, r.Load(r.t.Context(), image))
	for _, manifests := range []string{stalls, caller("stalls", "client", "client")} {
		r.eventually("pods to be taken", func(ctx context.Context) error {
			out, err := r.Apply(ctx, manifests)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	r.kubectl("rollout", "status", "-n", "stalls", "deployment/backend", "--timeout=90s")
	r.kubectl("wait", "-n", "stalls", "--for=condition=Ready", "pod/client", "--timeout=90s")
}

// leader is the pod that the Services lead to, and the other one.
func (r *replicas) leader() (leader, other string) {
	r.t.Helper()
	r.eventually("a leader", func(ctx context.Context) error {
		out, err := r.Kubectl(ctx, "-n", r.namespace, "get", "pods", "-l", "causeway.io/leader=true", "-o", "jsonpath={.items[*].metadata.name}")
		if err == nil && len(strings.Fields(out)) != 1 {
			err = fmt.Errorf("the leaders are %q", out)
		}
		leader = out
		return err
	})
	other = r.set + "-0"
	if leader == other {
		other = r.set + "-1"
	}
	return leader, other
}

// ctl runs causewayctl in the leader's pod.
func (r *replicas) ctl(args ...string) (out string) {
	r.t.Helper()
	r.eventually("causewayctl "+strings.Join(args, " "), func(ctx context.Context) (err error) {
		leader, _ := r.leader()
		out, err = r.Kubectl(ctx, append([]string{"-n", r.namespace, "exec", leader, "--", "/usr/bin/causewayctl"}, args...)...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return out
}

// keys names the keys that the server signs with.
func (r *replicas) keys() string { return keysOf(r.ctl("keys", "list")) }

func keysOf(list string) string {
	var out []string
	for _, line := range strings.Split(list, "\n") {
		if words := strings.Fields(line); len(words) > 2 {
			out = append(out, strings.Join(words[:3], " "))
		}
	}
	return strings.Join(out, "\n")
}

// address is the address of a pod.
func (r *replicas) address(pod string) string {
	return r.kubectl("-n", r.namespace, "get", "pod", pod, "-o", "jsonpath={.status.podIP}")
}

// metric reads a metric of a pod; zero if it has none.
func (k *kube) metric(ctx context.Context, address, name string) (float64, error) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a pod of this test
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(address, "5680")+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(q)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	for _, line := range strings.Split(string(raw), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok && err == nil {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, err
}

// serves waits until a pod serves this many proxies, and returns how long that took.
func (r *replicas) serves(pod string, proxies float64, within time.Duration) time.Duration {
	r.t.Helper()
	began, address := time.Now(), r.address(pod)
	var got float64
	var err error
	for {
		if got, err = r.metric(r.t.Context(), address, "causeway_xds_streams"); err == nil && got == proxies {
			return time.Since(began)
		}
		if time.Since(began) > patience {
			r.t.Fatalf("%s serves %v proxies, want %v (%v)", pod, got, proxies, err)
		}
		if time.Since(began) > within && within < patience {
			r.t.Errorf("after %s %s serves %v proxies, want %v (%v)", within, pod, got, proxies, err)
			within = patience
		}
		time.Sleep(20 * time.Millisecond) // it asks again
	}
}

// process finds the server of a pod among the processes of this machine.
func (r *replicas) process(pod string) *os.Process {
	r.t.Helper()
	return r.processIn(pod, "--kubernetes-lease="+r.set)
}

// processIn finds a process of a pod by an argument.
func (k *kube) processIn(pod, argument string) *os.Process {
	k.t.Helper()
	p, err := findProcess(pod, argument)
	must(k.t, err)
	return p
}

func findProcess(pod, argument string) (*os.Process, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range all {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if !strings.Contains(string(line), argument) {
			continue
		}
		host, _ := os.ReadFile(filepath.Join(dir, "root", "etc", "hostname"))
		if strings.TrimSpace(string(host)) != pod {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		return os.FindProcess(pid)
	}
	return nil, fmt.Errorf("there is no process of %s", pod)
}
