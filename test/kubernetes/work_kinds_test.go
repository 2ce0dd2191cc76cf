package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/kubernetes/images"
)

// TestKubernetesWorkloads runs pods of each kind that Kubernetes has, and applications that listen and talk in ways of
// their own.
func TestKubernetesWorkloads(t *testing.T) {
	k := newWork(t, 1)
	t.Run("a Job, and one of a CronJob", func(t *testing.T) { k.as(t).checkJobs() })
	t.Run("a StatefulSet", func(t *testing.T) { k.as(t).checkStatefulSet() })
	t.Run("a DaemonSet with hostNetwork", func(t *testing.T) { k.as(t).checkHostNetwork() })
	t.Run("where the application listens", func(t *testing.T) { k.as(t).checkListening() })
	t.Run("a server that speaks first", func(t *testing.T) { k.as(t).checkLines() })
	t.Run("a large upload", func(t *testing.T) { k.as(t).checkUpload() })
	t.Run("streams and WebSockets", func(t *testing.T) { k.as(t).checkStreams() })
}

const jobs = `
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: work}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: app, image: "localhost/app:dev", imagePullPolicy: Never, args: [get, "http://backend"]}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: work}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers: [{name: app, image: "localhost/app:dev", imagePullPolicy: Never, args: [get, "http://backend"]}]
`

// checkJobs: a Job calls at once, and ends, although its proxy would not.
func (k *kube) checkJobs() {
	k.applies(jobs)
	k.kubectl("-n", work, "create", "job", "tonight", "--from=cronjob/nightly")
	for _, job := range []string{"once", "tonight"} {
		if out, err := k.Kubectl(k.t.Context(), "-n", work, "wait", "--for=condition=Complete", "job/"+job, "--timeout=90s"); err != nil {
			pods, _ := k.Kubectl(k.t.Context(), "-n", work, "describe", "pods", "-l", "job-name="+job)
			k.t.Errorf("%s: %v %s\n%s", job, err, out, pods)
			continue
		}
		if logs := k.kubectl("-n", work, "logs", "-l", "job-name="+job, "-c", "app"); !strings.HasPrefix(logs, "200 ") {
			k.t.Errorf("%s: the application got %s", job, logs)
		}
	}
	k.kubectl("-n", work, "delete", "jobs", "--all")
}

const statefulSet = `
apiVersion: v1
kind: Service
metadata: {name: peers, namespace: work}
spec: {clusterIP: None, selector: {app: peers}, ports: [{name: http, port: 80, targetPort: 8080, appProtocol: http}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stranger, namespace: work, labels: {kuma.io/sidecar-injection: disabled}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "localhost/app:dev", imagePullPolicy: Never, args: [wait]}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: peers, namespace: work}
spec:
  serviceName: peers
  replicas: 3
  selector: {matchLabels: {app: peers}}
  template:
    metadata: {labels: {app: peers}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: localhost/app:dev
        imagePullPolicy: Never
        args: [serve, -http, ":8080"]
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, timeoutSeconds: 5}
`

// checkStatefulSet: the pods start one after the other, each when the one before is ready, and are called by their names. Who
// has no proxy gets nothing from them, on the port of the Service or of the pod.
func (k *kube) checkStatefulSet() {
	k.applies(statefulSet)
	k.kubectl("-n", work, "rollout", "status", "statefulset/peers", "--timeout=180s")
	at := func(pod, path string) time.Time {
		k.t.Helper()
		when, err := time.Parse(time.RFC3339, k.kubectl("-n", work, "get", "pod", pod, "-o", "jsonpath={"+path+"}"))
		must(k.t, err)
		return when
	}
	for i := range 2 {
		before, next := fmt.Sprintf("peers-%d", i), fmt.Sprintf("peers-%d", i+1)
		if ready, made := at(before, `.status.conditions[?(@.type=="Ready")].lastTransitionTime`), at(next, ".metadata.creationTimestamp"); made.Before(ready) {
			k.t.Errorf("%s was made at %s, and %s was ready at %s", next, made, before, ready)
		}
	}
	for i := range 3 {
		name := fmt.Sprintf("peers-%d", i)
		k.eventually(name+" to answer by its name", func(ctx context.Context) error {
			out, err := k.app(ctx, "get", "http://"+name+".peers")
			if err == nil && !strings.HasPrefix(out, "200 "+name) {
				err = errors.New(out)
			}
			return err
		})
	}
	k.kubectl("-n", work, "wait", "--for=condition=Ready", "pod/stranger", "--timeout=60s")
	for i := range 3 {
		at := k.kubectl("-n", work, "get", "pod", fmt.Sprintf("peers-%d", i), "-o", "jsonpath={.status.podIP}")
		for _, port := range []string{"80", "8080", "15001", "15006"} {
			out, err := k.Kubectl(k.t.Context(), "-n", work, "exec", "stranger", "--", "/usr/bin/app", "get", "http://"+net.JoinHostPort(at, port))
			if err == nil || strings.Contains(out, "peers-") {
				k.t.Errorf("who has no proxy got %s from port %s of peers-%d", out, port, i)
			}
		}
	}
	k.kubectl("-n", work, "delete", "statefulset/peers", "service/peers", "pod/stranger")
}

const daemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %s, namespace: work}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s%s}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: "localhost/app:dev", imagePullPolicy: Never, args: [wait]}]
`

// checkHostNetwork: in a namespace that asks for proxies, a pod of the node's network starts without one. A pod that asks
// itself is refused.
func (k *kube) checkHostNetwork() {
	k.applies(fmt.Sprintf(daemonSet, "agent", ""))
	k.kubectl("-n", work, "rollout", "status", "daemonset/agent", "--timeout=90s")
	if got := k.kubectl("-n", work, "get", "pod", "-l", "app=agent", "-o", "jsonpath={.items[*].spec.initContainers[*].name}"); got != "" {
		k.t.Errorf("it has %s", got)
	}
	k.applies(fmt.Sprintf(daemonSet, "asks", `, kuma.io/sidecar-injection: enabled`))
	k.eventually("the DaemonSet to say why it has no pods", func(ctx context.Context) error {
		return shows(ctx, k, "it has hostNetwork, and capture would redirect its node's connections", "-n", work, "describe", "daemonset", "asks")
	})
	k.kubectl("-n", work, "delete", "daemonset", "--all")
}

// checkListening: an application that listens on the pod's address only is called, and one on loopback only is not, as
// without a mesh. On a port of the proxy, the pod does not start.
func (k *kube) checkListening() {
	k.applies(deployment("narrow", 1, `serve, -http, "$(POD_IP):8080"`))
	k.kubectl("-n", work, "rollout", "status", "deployment/narrow", "--timeout=120s")
	k.answers("http://narrow", "200")
	k.applies(strings.Replace(deployment("hidden", 1, `serve, -http, "127.0.0.1:8080"`), "readinessProbe:", "lifecycle: {} #", 1))
	k.kubectl("-n", work, "rollout", "status", "deployment/hidden", "--timeout=120s")
	k.answers("http://hidden", "503")
	for _, port := range []string{"15001", "15006"} {
		clash := strings.Replace(deployment("clash"+port, 1, "wait"), "containerPort: 8080", "containerPort: "+port, 1)
		k.applies(clash)
		k.eventually("the ReplicaSet to say why it has no pods", func(ctx context.Context) error {
			return shows(ctx, k, "has port "+port+", on which the proxy", "-n", work, "describe", "replicaset", "-l", "app=clash"+port)
		})
		k.kubectl("-n", work, "delete", "deployment,service", "clash"+port)
	}
	k.kubectl("-n", work, "delete", "deployment,service", "narrow", "hidden")
}

// database is a MariaDB, which speaks before its client, and a client of it.
const database = `
apiVersion: v1
kind: Service
metadata: {name: db, namespace: work}
spec: {selector: {app: db}, ports: [{port: 3306, appProtocol: mysql}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: work, labels: {app: db}}
spec:
  terminationGracePeriodSeconds: 5
  securityContext: {runAsUser: 65532, fsGroup: 65532}
  containers:
  - name: db
    image: localhost/mariadb:dev
    imagePullPolicy: Never
    command: [/usr/bin/mariadbd, --no-defaults, --datadir=/data, --socket=/data/socket, --pid-file=/data/pid, --skip-grant-tables,
      --lc-messages-dir=/usr/share/mysql, --innodb-buffer-pool-size=16M, --innodb-log-file-size=4M]
    ports: [{containerPort: 3306}]
    readinessProbe: {tcpSocket: {port: 3306}, periodSeconds: 1, timeoutSeconds: 5}
    volumeMounts: [{name: data, mountPath: /data}, {name: data, mountPath: /tmp}]
  volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Pod
metadata: {name: sql, namespace: work}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: sql, image: "localhost/mariadb:dev", imagePullPolicy: Never, command: [/usr/bin/sleep, "1000000"]}]
`

// checkLines: clients that wait for the server to begin, of the test's program and of MariaDB.
func (k *kube) checkLines() {
	k.eventually("the server to greet", func(ctx context.Context) error {
		out, err := k.app(ctx, "line", "backend:7000")
		if err == nil && out != "220 welcome\n" {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	})
	image, err := images.Linked(k.t.Context(), "localhost/mariadb:dev", "mariadb", "/usr/sbin/mariadbd", "sleep")
	must(k.t, err)
	image.Files["usr/share/mysql/english/errmsg.sys"] = "/usr/share/mysql/english/errmsg.sys"
	must(k.t, k.Load(k.t.Context(), image))
	k.applies(database)
	k.kubectl("-n", work, "wait", "--for=condition=Ready", "pod/db", "pod/sql", "--timeout=90s")
	k.eventually("the database to answer", func(ctx context.Context) error {
		out, err := k.Kubectl(ctx, "-n", work, "exec", "sql", "-c", "sql", "--", "/usr/bin/mariadb", "--no-defaults", "--skip-ssl", "--host=db", "--batch",
			"--execute=create database if not exists test; create or replace table test.t (n int); insert into test.t values (41); select n+1 from test.t")
		if err == nil && out != "n+1\n42\n" {
			err = errors.New("it answers")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	k.kubectl("-n", work, "delete", "pod/db", "pod/sql", "service/db", "--wait=false")
}

// uploaded is how large the upload is, in MiB.
const uploaded = 512

func (k *kube) checkUpload() {
	out, err := k.app(k.t.Context(), "upload", "http://backend/", fmt.Sprint(uploaded))
	if want := fmt.Sprintf("took %d bytes", uploaded<<20); err != nil || !strings.HasPrefix(out, "200 ") || !strings.Contains(out, want) {
		k.t.Errorf("it answers %s (%v)", out, err)
	}
}

// streamed is how long streams stay open: longer than the timeouts of requests.
const streamed = 75 * time.Second

// endless lets requests to the backend take as long as they do: by default, they end after 15 s, and so do streams of gRPC.
const endless = `
apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: endless, namespace: work}
spec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {http: {requestTimeout: 0s}}}]}
`

// checkStreams holds a stream of gRPC and a WebSocket open, while policies change and the zone restarts.
func (k *kube) checkStreams() {
	k.applies(endless)
	type end struct {
		what, out string
		err       error
	}
	ends := make(chan end, 2)
	k.kubectl("-n", work, "wait", "--for=condition=Programmed", "meshtimeout/endless", "--timeout=60s")
	began := time.Now()
	for _, args := range [][]string{{"stream", "backend:9000", "3"}, {"socket", "backend:80", fmt.Sprint(int(streamed / time.Second))}} {
		go func() {
			out, err := k.app(k.t.Context(), args...)
			ends <- end{args[0], out, err}
		}()
	}
	for i := 0; time.Since(began) < streamed-10*time.Second; i++ {
		k.applies(fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTrafficPermission", "metadata": {"name": "more", "namespace": "work"},
 "spec": {"targetRef": {"kind": "Dataplane"}, "default": {"deny": [{"spiffeId": {"type": "Exact", "value": "spiffe://a/%d"}}]}}}`, i))
		k.kubectl("-n", work, "wait", "--for=condition=Programmed", "mtp/more", "--timeout=60s")
		if i == 3 {
			must(k.t, k.processIn(workSet+"-0", "--kubernetes-webhook-configuration=").Kill())
			k.kubectl("-n", workSystem, "rollout", "status", "statefulset/"+workSet, "--timeout=90s")
		}
		select {
		case e := <-ends:
			k.t.Fatalf("the %s ended after %s: %s %v", e.what, time.Since(began), e.out, e.err)
		case <-time.After(5 * time.Second): // the next change
		}
	}
	for _, to := range []string{"grpc=down", "grpc=up"} {
		k.kubectl("-n", work, "exec", "deploy/backend", "-c", "app", "--", "/usr/bin/app", "set", to)
	}
	for range 2 {
		e := <-ends
		want := map[string]string{"stream": "SERVING\nNOT_SERVING\nSERVING\n", "socket": fmt.Sprintf("frames %d\n", int(streamed/time.Second))}[e.what]
		if e.err != nil || e.out != want {
			k.t.Errorf("the %s: %q, want %q (%v)", e.what, e.out, want, e.err)
		}
	}
	k.kubectl("-n", work, "delete", "mtp/more", "meshtimeout/endless")
}
