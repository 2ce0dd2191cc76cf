package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/test/kubernetes/node"
)

// loadApp loads the image of the program of the test's pods.
func (k *kube) loadApp() {
	k.t.Helper()
	must(k.t, k.Load(k.t.Context(), k.appImage()))
}

// appImage is the image of the program, which it builds.
func (k *kube) appImage() *node.Image {
	k.t.Helper()
	app, err := programtest.Program(k.t.Context(), "app")
	must(k.t, err)
	return &node.Image{Name: "localhost/app:dev", Entrypoint: "/usr/bin/app", User: "65532:65532",
		Files: map[string]string{"usr/bin/app": app}, Folders: map[string]int{"tmp": 65532}}
}

// probedPod is a pod with the program, one kind of probe, and a hook.
func probedPod(name, probes string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: stalls, labels: {app: probed}}
spec:
  terminationGracePeriodSeconds: 20
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: app
    image: localhost/app:dev
    imagePullPolicy: Never
    args: [serve, -http, ":8080", -grpc, ":9000", -lines, ":7000"]
    ports: [{containerPort: 8080, name: web}, {containerPort: 9000}, {containerPort: 7000}]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    %s
`, name, probes)
}

// checkProbes: the kubelet learns by probes of each kind how the application is, in spite of mutual TLS, and a hook reaches
// it; nothing else that comes without an identity does.
func (k *kube) checkProbes() {
	k.loadApp()
	often := "periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 2"
	pods := map[string]string{
		"http": "readinessProbe: {httpGet: {path: /healthz, port: web}, " + often + "}\n" +
			"    startupProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, failureThreshold: 60}\n" +
			"    lifecycle: {preStop: {httpGet: {path: /drain, port: web}}}",
		"grpc": "readinessProbe: {grpc: {port: 9000}, " + often + "}",
		"tcp":  "readinessProbe: {tcpSocket: {port: 7000}, " + often + "}",
		"live": "livenessProbe: {tcpSocket: {port: 7000}, " + often + "}",
	}
	for name, probes := range pods {
		k.apply(probedPod("probed-"+name, probes))
	}
	for name := range pods {
		k.kubectl("wait", "-n", "stalls", "--for=condition=Ready", "pod/probed-"+name, "--timeout=120s")
	}
	set := func(pod, what string) {
		k.t.Helper()
		k.kubectl("exec", "-n", "stalls", "probed-"+pod, "-c", "app", "--", "/usr/bin/app", "set", what)
	}
	for _, c := range []struct{ pod, bad, good string }{{"http", "health=500", "health=204"}, {"grpc", "grpc=down", "grpc=up"},
		{"tcp", "lines=down", "lines=up"}} {
		set(c.pod, c.bad)
		k.kubectl("wait", "-n", "stalls", "--for=condition=Ready=false", "pod/probed-"+c.pod, "--timeout=90s")
		set(c.pod, c.good)
		k.kubectl("wait", "-n", "stalls", "--for=condition=Ready", "pod/probed-"+c.pod, "--timeout=90s")
	}
	set("live", "lines=down")
	k.eventually("the container to be started again", func(ctx context.Context) error {
		out, err := k.Kubectl(ctx, "get", "pod", "-n", "stalls", "probed-live", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
		if err == nil && out == "0" {
			err = errors.New("it is not")
		}
		return err
	})
	k.checkStrangersAtProbes()
	k.checkHook()
	for name := range pods {
		k.kubectl("delete", "-n", "stalls", "pod", "probed-"+name, "--ignore-not-found", "--wait=false")
	}
}

// checkStrangersAtProbes asks from the node's side, as a kubelet does, for what is none of the probes.
func (k *kube) checkStrangersAtProbes() {
	k.t.Helper()
	of := func(path string) string {
		return k.kubectl("get", "pod", "-n", "stalls", "probed-http", "-o", "jsonpath={"+path+"}")
	}
	address, probe := of(".status.podIP"), of(".spec.containers[0].readinessProbe.httpGet.path")
	client := &http.Client{Timeout: 10 * time.Second}
	for _, c := range []struct {
		method, url string
		want        int
	}{
		{"GET", ":15020" + probe, 204},
		{"GET", ":15020" + probe + "?all", 404},
		{"POST", ":15020" + probe, 404},
		{"GET", ":15020/healthz", 404},
		{"GET", ":15020/", 404},
		{"GET", ":8080/healthz", 0},
		{"GET", ":8080" + probe, 0},
		{"GET", ":7000/", 0},
		{"GET", ":9000/", 0},
		{"GET", ":9901/ready", 0},
	} {
		r, err := http.NewRequestWithContext(k.t.Context(), c.method, "http://"+address+c.url, nil)
		must(k.t, err)
		got := 0
		if resp, err := client.Do(r); err == nil {
			got = resp.StatusCode
			resp.Body.Close()
		}
		if got != c.want {
			k.t.Errorf("%s %s: %d, want %d", c.method, c.url, got, c.want)
		}
	}
}

// checkHook deletes a pod, whose application is asked by its hook before it ends.
func (k *kube) checkHook() {
	k.t.Helper()
	logs := exec.CommandContext(k.t.Context(), filepath.Join(k.Programs, "kubectl"), "--kubeconfig", k.Kubeconfig(), "logs", "-n", "stalls",
		"probed-http", "-c", "app", "-f")
	var said bytes.Buffer
	logs.Stdout, logs.Stderr = &said, &said
	must(k.t, logs.Start())
	k.kubectl("delete", "-n", "stalls", "pod", "probed-http")
	_ = logs.Wait()
	if !strings.Contains(said.String(), "asked GET /drain\n") || strings.Contains(said.String(), "?all") {
		k.t.Errorf("the application was asked:\n%s", &said)
	}
}
