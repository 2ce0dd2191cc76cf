package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/capture"
	"github.com/causeway-mesh/causeway/capture/cni"
	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/zone"
)

// TestInjectedContainersRun: what injection puts into a pod are commands that this program and Envoy take.
func TestInjectedContainersRun(t *testing.T) {
	dir := t.TempDir()
	pair, err := server.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ca, _ := pem.Decode(pair)
	if ca.Type != "CERTIFICATE" {
		_, rest := pem.Decode(pair)
		ca, _ = pem.Decode(rest)
	}
	pod, ns := []byte(`{"metadata":{"annotations":{"traffic.kuma.io/exclude-inbound-ports":"9090,9100-9110",
  "traffic.kuma.io/exclude-outbound-ports":"3306","traffic.kuma.io/exclude-inbound-ips":"10.0.0.1",
  "traffic.kuma.io/exclude-outbound-ips":"fd00::/8","kuma.io/sidecar-proxy-concurrency":"1"}},"spec":{"containers":[{"name":"app","readinessProbe":{"httpGet":{"path":"/a?b=$(C)%","port":8080,
  "scheme":"HTTPS"}},"livenessProbe":{"grpc":{"port":9000,"service":"shop"}},"startupProbe":{"tcpSocket":{"port":8080}}}]}}`), injection.Namespace{Name: "shop", Labels: map[string]string{"kuma.io/sidecar-injection": "enabled"}}
	wanted := injection.Settings{XDSAddress: "causeway-zone.mesh.svc:5678", XDSCA: string(pem.EncodeToMemory(ca)), Nonce: rand.Text(),
		Bootstrap: zone.PodBootstrap}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("e30.e30.c2ln"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Kubernetes replaces from the left, and makes one of two dollars.
	here := strings.NewReplacer("/var/run/secrets/causeway.io", dir, "$(CAUSEWAY_POD_NAME)", "backend-1", "$(CAUSEWAY_POD_IP)", "10.0.0.1", "$$", "$")
	injected := func(want int) (containers []struct{ Args []string }, annotations map[string]string) {
		t.Helper()
		result, err := injection.Inject(pod, ns, &wanted)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range result.Patch {
			into := any(&containers)
			switch op.Path {
			case "/metadata/annotations":
				into = &annotations
			case "/spec/initContainers":
			default:
				continue
			}
			if err := json.Unmarshal(op.Value, into); err != nil {
				t.Fatal(err)
			}
		}
		if len(containers) != want {
			t.Fatalf("%d containers, want %d", len(containers), want)
		}
		for _, c := range containers {
			for i := range c.Args {
				c.Args[i] = here.Replace(c.Args[i])
			}
		}
		return containers, annotations
	}
	envoy, err := programtest.Envoy()
	if err != nil {
		t.Fatal(err)
	}
	starts := func(args []string) {
		t.Helper()
		if text := args[1]; !strings.Contains(text, "/a?b=$(C)%") || strings.Contains(text, "$$") || !strings.Contains(text, "default.backend-1") {
			t.Errorf("the bootstrap is %s", text)
		}
		if out, err := exec.Command(envoy, append(args, "--mode", "validate")...).CombinedOutput(); err != nil {
			t.Errorf("envoy %s: %v: %s", args, err, out)
		}
	}
	network := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked: the thread, which leaves this network, ends with the goroutine
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				t.Logf("this machine lets us make no network namespaces: %v", err)
				return
			}
			f()
			if s, err := capture.Read(); err != nil || s.State != capture.Installed || len(s.Settings.ExcludeInboundPorts) != 4 ||
				(s.Settings.ProofPort == injection.ProofPort) != wanted.CNI {
				t.Errorf("%+v, %v", s, err)
			}
		}()
		<-done
	}
	containers, _ := injected(2)
	starts(containers[1].Args)
	network(func() {
		root, out := newRoot(), &bytes.Buffer{}
		root.SetArgs(containers[0].Args)
		root.SetOut(out)
		if status := settings.Execute(root, out); status != 0 {
			t.Errorf("%s: status %d: %s", containers[0].Args, status, out)
		}
	})

	wanted.CNI, wanted.IPv6 = true, true
	containers, annotations := injected(1)
	starts(containers[0].Args)
	network(func() {
		rules, err := capture.ParseSettings(annotations[cni.Annotation])
		if err == nil {
			_, err = capture.Install(*rules)
		}
		if err != nil {
			t.Error(err)
		}
	})
}
