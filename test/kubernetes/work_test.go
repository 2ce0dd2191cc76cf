package kubernetes

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The zone of tests about pods of all kinds, and the namespace of those pods.
const (
	workSystem = "work-system"
	workSet    = "w-causeway-zone"
	work       = "work"
)

// The claim of the zone's volume, and the volume's name and folder.
const (
	workVolume = workSystem + "/data-" + workSet + "-0"
	workFolder = workSystem + "-data-" + workSet + "-0"
)

// workload is the manifest of the namespace: everybody of the mesh may call everybody. A client waits.
const workload = `
apiVersion: v1
kind: Namespace
metadata: {name: work, labels: {kuma.io/sidecar-injection: enabled}}
---
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata: {name: all, namespace: work, labels: {kuma.io/mesh: default}}
spec: {targetRef: {kind: Dataplane}, default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: work}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "localhost/app:dev", imagePullPolicy: Never, args: [wait], resources: {requests: {cpu: 200m}}}]
`

// newWork installs a zone that gives pods their proxies, and starts a backend and a client.
func newWork(t testing.TB, replicas int) *kube {
	t.Helper()
	k := newKube(t)
	k.loadServers()
	k.loadApp()
	k.defineTypes()
	_, _ = k.tryHelm("uninstall", "z", "--namespace", "mesh-system") // an object has one server
	k.namespace(workSystem)
	k.volumes("folders", true, workVolume)
	k.upgradeWork()
	k.ready(workSystem, workSet)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			pods, _ := k.Kubectl(ctx, "-n", work, "get", "pods,events")
			t.Log(pods, k.story(workSystem, workSet))
		}
		_, _ = k.Kubectl(ctx, "delete", "namespace", work, "--timeout=120s")
		if out, err := runHelm(ctx, k.Kubeconfig(), "uninstall", "w", "--namespace", workSystem, "--wait"); err != nil {
			t.Error(out)
		}
		if out, err := k.Kubectl(ctx, "-n", workSystem, "delete", "pvc,pv", "data-"+workSet+"-0", workFolder, "--ignore-not-found", "--timeout=90s"); err != nil {
			t.Error(out)
		}
		must(t, os.RemoveAll(filepath.Join(scratch, "volumes", workFolder)))
	})
	k.applies(workload + "---\n" + deployment("backend", replicas, "serve, -http, \":8080\", -grpc, \":9000\", -lines, \":7000\", -leave, 3s"))
	k.kubectl("-n", work, "rollout", "status", "deployment/backend", "--timeout=240s")
	k.kubectl("-n", work, "wait", "--for=condition=Ready", "pod/client", "--timeout=120s")
	k.answers("http://backend", "200")
	return k
}

// upgradeWork installs the chart, or other values.
func (k *kube) upgradeWork(more ...string) {
	k.t.Helper()
	set := append([]string{"zone=zone-1", "kubernetes.enabled=true", "injection.enabled=true", "injection.envoyImage=localhost/envoy:dev",
		"resources.requests.cpu=10m", fmt.Sprintf("injection.resources.requests.cpu=%dm", proxyCPU)}, more...)
	k.helm("upgrade", "--install", "w", filepath.Join("deploy", "charts", "causeway-zone"), "--namespace", workSystem, "--set", strings.Join(set, ","))
}

// deployment is a Deployment of the test's program, with a Service of its name.
func deployment(name string, replicas int, args string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: work}
spec:
  selector: {app: %[1]s}
  ports:
  - {name: http, port: 80, targetPort: 8080, appProtocol: http}
  - {name: grpc, port: 9000, appProtocol: grpc}
  - {name: lines, port: 7000, appProtocol: smtp}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: work}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 20
      containers:
      - name: app
        image: localhost/app:dev
        imagePullPolicy: Never
        args: [%[3]s]
        env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ports: [{containerPort: 8080}]
        %[4]s
`, name, replicas, args, `readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, timeoutSeconds: 5}`)
}

// applies applies manifests, once the zone answers about them.
func (k *kube) applies(manifests string) {
	k.t.Helper()
	k.eventually("the manifests to be taken", func(ctx context.Context) error {
		out, err := k.Apply(ctx, manifests)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// app runs the test's program in the client, and returns what it prints.
func (k *kube) app(ctx context.Context, args ...string) (string, error) {
	out, err := k.Kubectl(ctx, append([]string{"-n", work, "exec", "client", "-c", "app", "--", "/usr/bin/app"}, args...)...)
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return out, nil
}

// answers waits until a call of the client is answered with a status.
func (k *kube) answers(url, status string) {
	k.t.Helper()
	k.eventually(url+" to answer "+status, func(ctx context.Context) error {
		out, err := k.app(ctx, "get", url)
		if err == nil && !strings.HasPrefix(out, status+" ") {
			err = fmt.Errorf("it answers %s", out)
		}
		return err
	})
}

// begins is what the client prints when it begins to call.
const begins = "begins\n"

// loads has the client call the backend at a rate, for some seconds. As soon as it begins, something happens. It returns what
// the client prints of its calls.
func (k *kube) loads(rate, seconds int, while func()) string {
	k.t.Helper()
	return k.loadsBy(exec.CommandContext(k.t.Context(), filepath.Join(k.Programs, "kubectl"), "--kubeconfig", k.Kubeconfig(), "-n", work, "exec",
		"client", "-c", "app", "--", "/usr/bin/app", "load", "http://backend", fmt.Sprint(rate), fmt.Sprint(seconds)), while)
}

// loadsBy is loads with the command that runs the client.
func (k *kube) loadsBy(cmd *exec.Cmd, while func()) string {
	k.t.Helper()
	said, err := cmd.StdoutPipe()
	must(k.t, err)
	cmd.Stderr = cmd.Stdout
	must(k.t, cmd.Start())
	first := make([]byte, len(begins))
	if _, err := io.ReadFull(said, first); err != nil || string(first) != begins {
		k.t.Fatalf("the client says %q: %v", first, err)
	}
	while()
	rest, err := io.ReadAll(said)
	must(k.t, err)
	if err := cmd.Wait(); err != nil {
		k.t.Fatalf("%v: %s", err, rest)
	}
	return string(rest)
}
