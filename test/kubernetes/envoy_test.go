package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkEnvoy runs an Envoy in a pod, with the bootstrap of the address that the notes of the chart name: it comes
// online, so it verified the zone's certificate, and the zone its token.
func (k *kube) checkEnvoy() {
	notes := k.helm("get", "notes", "zone-1", "--namespace", namespace)
	address := ""
	for _, line := range strings.Split(notes, "\n") {
		if strings.HasSuffix(strings.TrimSpace(line), ":5678") {
			address = strings.TrimSpace(line)
		}
	}
	if address == "" {
		k.t.Fatalf("the notes name no address for proxies:\n%s", notes)
	}
	k.feed(`
type: Dataplane
mesh: default
name: envoy-1
networking: {address: 192.0.2.9, inbound: [{port: 8080, tags: {kuma.io/service: backend}}]}
`, "-n", namespace, "exec", "-i", zoneSet+"-0", "--", "/usr/bin/causewayctl", "apply", "-f", "-")
	dir := k.t.TempDir()
	write := func(name string, content string) string {
		path := filepath.Join(dir, name)
		must(k.t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	token := write("token", k.kubectl("-n", namespace, "exec", zoneSet+"-0", "--", "/usr/bin/causewayctl", "dataplane", "token", "envoy-1"))
	bootstrap := exec.CommandContext(k.t.Context(), filepath.Join(servers.bin, "causeway-zone"), "bootstrap", "--dataplane", "envoy-1", "--xds-address",
		address, "--xds-ca", filepath.Join(scratch, "volumes", namespace+"-data-"+zoneSet+"-0", "tls", "ca.crt"), "--token-file", token)
	var said bytes.Buffer
	bootstrap.Stderr = &said
	out, err := bootstrap.Output()
	if err != nil {
		k.t.Fatalf("bootstrap: %v: %s", err, &said)
	}
	k.kubectl("-n", namespace, "create", "secret", "generic", "envoy-1", "--from-file=envoy.yaml="+write("envoy.yaml", string(out)))
	k.apply(`
apiVersion: v1
kind: Pod
metadata: {name: envoy-1, namespace: causeway}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: envoy
    image: localhost/envoy:dev
    imagePullPolicy: Never
    args: [-c, /etc/envoy/envoy.yaml, --concurrency, "1"]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: conf, mountPath: /etc/envoy}, {name: tmp, mountPath: /tmp}]
  volumes: [{name: conf, secret: {secretName: envoy-1, defaultMode: 0440}}, {name: tmp, emptyDir: {}}]
`)
	k.eventually("the proxy to be online", func(ctx context.Context) error {
		out, err := k.ctl(namespace, zoneSet, "get", "dataplanes")
		if err == nil && !strings.Contains(out, "online") {
			logs, _ := k.Kubectl(ctx, "-n", namespace, "logs", "envoy-1", "--tail=5")
			err = fmt.Errorf("it is not online: %s", logs)
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	k.kubectl("-n", namespace, "delete", "pod", "envoy-1", "--wait=false")
}

// feed runs kubectl with the input; it must succeed.
func (k *kube) feed(input string, args ...string) string {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), filepath.Join(k.Programs, "kubectl"), append([]string{"--kubeconfig", k.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
