package main

import (
	"bytes"
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
	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/server/programtest"
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
	zone := injection.Settings{XDSAddress: "causeway-zone.mesh.svc:5678", XDSCA: string(pem.EncodeToMemory(ca))}
	result, err := injection.Inject(pod, ns, &zone)
	if err != nil {
		t.Fatal(err)
	}
	var containers []struct{ Args []string }
	if err := json.Unmarshal(result.Patch[0].Value, &containers); err != nil || len(containers) != 3 {
		t.Fatalf("%v: %s", err, result.Patch[0].Value)
	}
	here := strings.NewReplacer("/run/causeway-proxy", dir, "/var/run/secrets/causeway.io", dir, "$(POD_NAME)", "backend-1",
		"$(POD_NAMESPACE)", "shop", "$(POD_IP)", "10.0.0.1", "$$", "$")
	for _, c := range containers {
		for i := range c.Args {
			c.Args[i] = here.Replace(c.Args[i])
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("e30.e30.c2ln"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args []string) {
		t.Helper()
		root, out := newRoot(), &bytes.Buffer{}
		root.SetArgs(args)
		root.SetOut(out)
		if status := settings.Execute(root, out); status != 0 {
			t.Errorf("%s: status %d: %s", args, status, out)
		}
	}
	run(containers[0].Args)
	envoy, err := programtest.Envoy()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(envoy, append(containers[2].Args, "--mode", "validate")...).CombinedOutput(); err != nil {
		t.Errorf("envoy %s: %v: %s", containers[2].Args, err, out)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread, which leaves this network, ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Logf("this machine lets us make no network namespaces: %v", err)
			return
		}
		run(containers[1].Args)
		if s, err := capture.Read(); err != nil || s.State != capture.Installed || len(s.Settings.ExcludeInboundPorts) != 4 {
			t.Errorf("%+v, %v", s, err)
		}
	}()
	<-done

	zone.CNI = true
	if result, err = injection.Inject(pod, ns, &zone); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(result.Patch[0].Value, &containers); err != nil || len(containers) != 3 {
		t.Fatalf("%v: %s", err, result.Patch[0].Value)
	}
	root, out := newRoot(), &bytes.Buffer{}
	root.SetArgs(containers[1].Args)
	if status := settings.Execute(root, out); status != 1 || !strings.Contains(out.String(), "run it as the proxy's, 56785") {
		t.Errorf("%s: status %d: %s", containers[1].Args, status, out)
	}
}
