package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/kubernetes/node"
)

// cni is a cluster in which a plugin on each node captures pods.
type cni struct {
	*kube

	// list is the node's list of plugins, and plugin the program.
	list, plugin string
	// was is the list without the plugin.
	was string
}

// bothFamilies is the node's list of plugins in another form, by which pods get addresses of both families.
const bothFamilies = `{
  "name": "pods",
  "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
     "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks", "ranges": [[{"subnet": %q}], [{"subnet": "fd00:10::/64"}]],
              "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ],
  "cniVersion": "1.0.0"
}
`

// cniEntry is what the plugin's installer adds to a list.
var cniEntry = regexp.MustCompile(`,\n\{"type":"causeway-cni",[^\n]*?"except":\[[^\n]*?\]\}`)

// cniSet is the name of the DaemonSet that installs the plugin, and of its account.
const cniSet = "z-causeway-zone-mesh-system-cni"

// cniPods are a backend with a port past its proxy, and callers, in a namespace whose pods must be restricted.
const cniPods = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {kuma.io/sidecar-injection: enabled, pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: client, namespace: shop}
---
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata: {name: backend, namespace: shop, labels: {kuma.io/mesh: default}}
spec:
  targetRef: {kind: Dataplane, labels: {app: backend}}
  default:
    allow:
    - {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/ns/shop/sa/client"}}
---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: shop}
spec: {selector: {app: backend}, ports: [{name: http, port: 80, targetPort: 8080, appProtocol: http}]}
`

// cniPod is a pod that meets the standard restricted.
func cniPod(namespace, name, account, annotations, args string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: %[2]s}, annotations: {%[4]s}}
spec: {serviceAccountName: %[3]s, %[5]s}
`, namespace, name, account, annotations, cniContainer(args))
}

func cniContainer(args string) string {
	return `terminationGracePeriodSeconds: 1, securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, ` +
		`containers: [{name: app, image: "localhost/app:dev", imagePullPolicy: Never, args: [` + args + `], ` +
		`securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]`
}

// faking is a pod whose own container answers at the port that proves capture, if it ever starts.
var faking = strings.Replace(cniPod("shop", "late", "client", "", "wait"), "containers: [", `initContainers: [{name: fake, restartPolicy: Always, image: "localhost/app:dev", `+
	`imagePullPolicy: Never, args: [serve, -http, ":15023"], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}], containers: [`, 1)

// TestKubernetesCNI has a plugin capture pods that must be restricted: the same is captured as by a container with a
// capability, whoever changes the list of plugins, and a pod that is not captured does not run.
func TestKubernetesCNI(t *testing.T) {
	c := newCNI(t)
	c.helm(c.release("install")...)
	c.ready("mesh-system", "z-causeway-zone")
	c.inPlace()
	t.Run("another writer of the list", func(t *testing.T) { c.was = c.as(t).checkRewritten() })
	t.Run("pods", func(t *testing.T) { c.as(t).checkPods() })
	t.Run("a pod of an earlier version", func(t *testing.T) { c.as(t).checkEarlier() })
	t.Run("another version", func(t *testing.T) { c.as(t).checkUpgraded() })
	t.Run("a Job", func(t *testing.T) { c.as(t).checkJob() })
	t.Run("what cannot be captured", func(t *testing.T) { c.as(t).checkRefused() })
	t.Run("without the plugin", func(t *testing.T) { c.as(t).checkMissing() })
	t.Run("uninstalled", func(t *testing.T) { c.as(t).checkUninstalled() })
}

// newCNI starts a cluster of its own: the list of plugins is that of all its pods.
func newCNI(t *testing.T) *cni {
	t.Helper()
	n, err := node.Start(context.WithoutCancel(t.Context()), node.Config{Programs: filepath.Join(root, ".tools", "kubernetes"),
		Dir: filepath.Join(scratch, "cni"), Patience: patience})
	must(t, err)
	c := &cni{kube: &kube{Node: n, t: t}, list: filepath.Join(n.Network(), "10-bridge.conflist"), plugin: filepath.Join(n.Plugins(), "causeway-cni")}
	t.Cleanup(func() {
		if t.Failed() {
			ctx := context.WithoutCancel(t.Context())
			pods, _ := c.Kubectl(ctx, "describe", "pods", "-n", "shop")
			agent, _ := c.Kubectl(ctx, "logs", "-n", "kube-system", "-l", "app.kubernetes.io/name=causeway-cni", "--tail=20")
			t.Log(c.story("mesh-system", "z-causeway-zone"), pods, agent, n.Logs(5))
		}
		must(t, n.Stop())
	})
	c.loadServers()
	c.loadApp()
	c.applyTypes()
	c.apply(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mesh-system", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	raw, err := os.ReadFile(c.list)
	must(t, err)
	c.was = string(raw)
	return c
}

func (c *cni) as(t *testing.T) *cni {
	out := *c
	out.kube = c.kube.as(t)
	return &out
}

// release returns the arguments of helm for the zone.
func (c *cni) release(verb string) []string {
	return []string{verb, "z", filepath.Join("deploy", "charts", "causeway-zone"), "--namespace", "mesh-system", "--wait", "--timeout", "3m", "--set",
		"zone=zone-1,kubernetes.enabled=true,injection.enabled=true,injection.envoyImage=localhost/envoy:dev,persistence.enabled=false," +
			"injection.cni.enabled=true,injection.cni.binDir=" + c.Plugins() + ",injection.cni.confDir=" + c.Network()}
}

// inPlace waits until the plugin is at the end of the list of plugins, and all else there as it was.
func (c *cni) inPlace() {
	c.t.Helper()
	c.eventually("the plugin to be in the list", func(context.Context) error {
		raw, err := os.ReadFile(c.list)
		if err != nil {
			return err
		}
		if text := string(raw); cniEntry.ReplaceAllString(text, "") != c.was || text == c.was {
			return fmt.Errorf("it is %s", text)
		}
		return nil
	})
	if _, err := os.Stat(c.plugin); err != nil {
		c.t.Error(err)
	}
}

// checkRewritten writes the list anew, as the installer of a network does, and returns it.
func (c *cni) checkRewritten() string {
	pods, _, ok := strings.Cut(c.was[strings.Index(c.was, `{"subnet": "`)+len(`{"subnet": "`):], `"`)
	if !ok {
		c.t.Fatal(c.was)
	}
	c.was = fmt.Sprintf(bothFamilies, pods)
	must(c.t, os.WriteFile(c.list, []byte(c.was), 0o600))
	c.inPlace()
	return c.was
}

// applied applies what the zone's webhook has to take, which it may not do at once.
func (c *cni) applied(manifests string) {
	c.t.Helper()
	c.eventually("the objects to be taken", func(ctx context.Context) error {
		out, err := c.Apply(ctx, manifests)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// get runs the application's client in a pod, and returns the status that a server answers; empty if none does.
func (c *cni) get(ctx context.Context, namespace, pod, url string) string {
	out, err := c.Kubectl(ctx, "exec", "-n", namespace, pod, "-c", "app", "--", "/usr/bin/app", "get", "http://"+url)
	if err != nil {
		return ""
	}
	status, _, _ := strings.Cut(out, " ")
	return status
}

// checkPods calls between pods: what the permission says holds, and nobody comes past the proxy.
func (c *cni) checkPods() {
	c.namespace("plain")
	c.applied(cniPods)
	c.applied(cniPod("shop", "backend", "default", `traffic.kuma.io/exclude-inbound-ports: "7000"`, `serve, -http, ":8080", -lines, ":7000"`) +
		"---" + cniPod("shop", "client", "client", "", "wait") + "---" + cniPod("shop", "stranger", "default", "", "wait") +
		"---" + cniPod("plain", "client", "default", "", "wait"))
	c.kubectl("wait", "-n", "shop", "--for=condition=Ready", "pod/backend", "pod/client", "pod/stranger", "--timeout=120s")
	c.kubectl("wait", "-n", "plain", "--for=condition=Ready", "pod/client", "--timeout=60s")
	if got := c.kubectl("get", "pod", "-n", "shop", "backend", "-o", `jsonpath={.spec.initContainers[*].name} {.spec..capabilities}`); strings.Contains(got, "NET_ADMIN") || !strings.HasPrefix(got, "causeway-proxy {") {
		c.t.Errorf("the pod's containers have %s", got)
	}
	address := c.kubectl("get", "pod", "-n", "shop", "backend", "-o", "jsonpath={.status.podIP}")
	if got := c.get(c.t.Context(), "plain", "client", address+":15023/ready"); got != "200" {
		c.t.Errorf("the port that proves capture answers %q", got)
	}
	c.checkCalls()
}

// checkCalls calls the backend: what the permission says holds.
func (c *cni) checkCalls() {
	c.t.Helper()
	addresses := strings.Fields(c.kubectl("get", "pod", "-n", "shop", "backend", "-o", "jsonpath={.status.podIPs[*].ip}"))
	if len(addresses) != 2 {
		c.t.Fatalf("the pod has the addresses %s, want one of each family", addresses)
	}
	four, six := addresses[0], "["+addresses[1]+"]"
	service := c.kubectl("get", "service", "-n", "shop", "backend", "-o", "jsonpath={.spec.clusterIP}")
	for _, call := range []struct{ namespace, pod, url, want string }{
		{"shop", "client", service, "200"},
		{"shop", "client", "backend", "200"},
		{"shop", "stranger", service, "403"},
		{"plain", "client", service, ""},
		{"plain", "client", four + ":8080", ""},
		{"plain", "client", six + ":8080", ""},
		{"plain", "client", four + ":9901/ready", ""},
		{"plain", "client", six + ":9901/ready", ""},
		{"plain", "client", four + ":15021/ready", "200"},
		{"shop", "stranger", four + ":8080", ""},
		{"shop", "stranger", six + ":8080", ""},
	} {
		c.eventually(fmt.Sprint(call), func(ctx context.Context) error {
			if got := c.get(ctx, call.namespace, call.pod, call.url); got != call.want {
				return fmt.Errorf("it answers %q", got)
			}
			return nil
		})
	}
	for _, address := range []string{four + ":7000", six + ":7000"} { // the excluded port shows that the address is right
		if out := c.kubectl("exec", "-n", "plain", "client", "-c", "app", "--", "/usr/bin/app", "line", address); !strings.Contains(out, "220 welcome") {
			c.t.Errorf("%s says %s", address, out)
		}
	}
}

// checkEarlier replaces the backend by a pod of the form that an earlier version made: one container writes its bootstrap, and
// another verifies the capture. It is in the mesh as before.
func (c *cni) checkEarlier() {
	bootstrap := c.kubectl("get", "pod", "-n", "shop", "backend", "-o", `jsonpath={.spec.initContainers[?(@.name=="causeway-proxy")].args[1]}`)
	_, rest, begins := strings.Cut(bootstrap, "-----BEGIN CERTIFICATE-----")
	middle, _, ends := strings.Cut(rest, "-----END CERTIFICATE-----")
	if !begins || !ends {
		c.t.Fatalf("the bootstrap has no certificate: %s", bootstrap)
	}
	ca := "-----BEGIN CERTIFICATE-----\n" + strings.Join(strings.Fields(strings.ReplaceAll(middle, `\n`, "\n")), "\n") + "\n-----END CERTIFICATE-----\n"
	text, err := os.ReadFile("testdata/earlier_pod.yaml")
	must(c.t, err)
	c.kubectl("delete", "-n", "shop", "pod", "backend")
	image := c.kubectl("get", "statefulset", "-n", "mesh-system", "z-causeway-zone", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	c.applied(strings.NewReplacer("IMAGE", image, "AUTHORITY", strconv.Quote(ca)).Replace(string(text)))
	c.kubectl("wait", "-n", "shop", "--for=condition=Ready", "pod/backend", "--timeout=120s")
	if got := c.kubectl("get", "pod", "-n", "shop", "backend", "-o", "jsonpath={.spec.initContainers[*].name}"); got != "causeway-bootstrap causeway-capture causeway-proxy" {
		c.t.Fatalf("the pod has %s", got)
	}
	c.checkCalls()
}

// checkUpgraded replaces the pod of the DaemonSet, as an upgrade does. The plugin stays, and its pod has no other right than
// to ask for its DaemonSet.
func (c *cni) checkUpgraded() {
	said := c.listen()
	c.kubectl("rollout", "restart", "-n", "kube-system", "daemonset/"+cniSet)
	if said := said(); !strings.Contains(said, `"msg":"the plugin stays","why":"the DaemonSet is there"`) {
		c.t.Errorf("it says %s", said)
	}
	c.inPlace()
	c.kubectl("rollout", "status", "-n", "kube-system", "daemonset/"+cniSet, "--timeout=90s")
	c.inPlace()
	for _, may := range [][]string{{"get", "daemonsets/other"}, {"list", "daemonsets"}, {"patch", "daemonsets/" + cniSet}, {"get", "pods"},
		{"delete", "pods"}, {"get", "secrets"}, {"get", "nodes"}} {
		if out, _ := c.Kubectl(c.t.Context(), "auth", "can-i", may[0], may[1], "-n", "kube-system", "--as", "system:serviceaccount:kube-system:"+cniSet); !strings.HasSuffix(strings.TrimSpace(out), "no") {
			c.t.Errorf("it may %s: %s", strings.Join(may, " "), out)
		}
	}
}

// checkJob runs a Job, whose pod has a proxy and ends.
func (c *cni) checkJob() {
	c.applied(`
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: shop}
spec:
  backoffLimit: 3
  template:
    spec: {restartPolicy: Never, serviceAccountName: client, ` + cniContainer(`get, "http://backend.shop"`) + `}
`)
	c.kubectl("wait", "-n", "shop", "--for=condition=Complete", "job/once", "--timeout=120s")
}

// checkRefused starts pods that only look as if they had a proxy, and one with hostNetwork.
func (c *cni) checkRefused() {
	c.applied(cniPod("plain", "broken", "default", `causeway.io/capture: "{}"`, "wait"))
	c.eventually("the reason", func(ctx context.Context) error {
		return shows(ctx, c.kube, "causeway-cni: pod plain/broken: it does not start: annotation causeway.io/capture", "-n", "plain", "get", "events")
	})
	c.kubectl("delete", "-n", "plain", "pod", "broken")
	c.applied(cniPod("kube-system", "broken", "default", `causeway.io/capture: "{}"`, "wait"))
	c.kubectl("wait", "-n", "kube-system", "--for=condition=Ready", "pod/broken", "--timeout=60s")
	c.kubectl("delete", "-n", "kube-system", "pod", "broken")
}

// checkMissing deletes the DaemonSet, and the plugin with it: pods with a proxy do not run, and all others do. When it is
// back, another pod in its place runs.
func (c *cni) checkMissing() {
	said := c.listen()
	c.kubectl("delete", "daemonset", "-n", "kube-system", "-l", "app.kubernetes.io/name=causeway-cni")
	if said := said(); !strings.Contains(said, "the plugin is uninstalled") {
		c.t.Errorf("it says %s", said)
	}
	c.gone()
	c.applied(faking + "---" + cniPod("plain", "late", "default", "", "wait"))
	c.kubectl("wait", "-n", "plain", "--for=condition=Ready", "pod/late", "--timeout=60s")
	c.eventually("the kubelet to say why it does not start", func(ctx context.Context) error {
		return shows(ctx, c.kube, ":15023: connect: connection refused", "-n", "shop", "describe", "pod", "late")
	})
	c.eventually("the zone to say so", func(ctx context.Context) error {
		return shows(ctx, c.kube, "delete the pod, so that another takes its place", "-n", "shop", "get", "events", "--field-selector", "reason=NotCaptured")
	})
	if got := c.kubectl("get", "pod", "-n", "shop", "late", "-o", "jsonpath={.status.containerStatuses[0].started} {.status.containerStatuses[0].restartCount}"); got != "false 0" {
		c.t.Errorf("the application has started: %s", got)
	}
	if got := c.kubectl("get", "pod", "-n", "shop", "late", "-o", `jsonpath={.status.initContainerStatuses[?(@.name=="fake")]}`); !strings.Contains(got, `"waiting":{"reason":"PodInitializing"}`) {
		c.t.Errorf("another container has started: %s", got)
	}
	c.helm(c.release("upgrade")...)
	c.inPlace()
	c.kubectl("delete", "-n", "shop", "pod", "late")
	c.applied(cniPod("shop", "late", "client", "", "wait"))
	c.kubectl("wait", "-n", "shop", "--for=condition=Ready", "pod/late", "--timeout=120s")
}

// listen returns a function that waits for the end of what installs the plugin, and returns its log.
func (c *cni) listen() func() string {
	c.t.Helper()
	logs := exec.CommandContext(c.t.Context(), filepath.Join(c.Programs, "kubectl"), "--kubeconfig", c.Kubeconfig(), "logs", "-n", "kube-system",
		"-l", "app.kubernetes.io/name=causeway-cni", "-f")
	var said bytes.Buffer
	logs.Stdout, logs.Stderr = &said, &said
	must(c.t, logs.Start())
	return func() string {
		_ = logs.Wait()
		return said.String()
	}
}

// gone waits until the node has nothing of the plugin.
func (c *cni) gone() {
	c.t.Helper()
	c.eventually("the plugin to be gone", func(context.Context) error {
		raw, err := os.ReadFile(c.list)
		if err == nil && string(raw) != c.was {
			err = fmt.Errorf("the list is %s", raw)
		}
		if _, there := os.Stat(c.plugin); err == nil && there == nil {
			err = errors.New("its program is there")
		}
		return err
	})
}

// checkUninstalled uninstalls the release: the node is as before, and pods start. Those that run stay captured.
func (c *cni) checkUninstalled() {
	address := c.kubectl("get", "pod", "-n", "shop", "backend", "-o", "jsonpath={.status.podIP}")
	c.helm("uninstall", "z", "--namespace", "mesh-system", "--wait")
	c.gone()
	c.applied(cniPod("plain", "last", "default", "", "wait"))
	c.kubectl("wait", "-n", "plain", "--for=condition=Ready", "pod/last", "--timeout=60s")
	if got := c.get(c.t.Context(), "plain", "last", address+":8080"); got != "" {
		c.t.Errorf("the application behind the proxy answers %s", got)
	}
	if got := c.get(c.t.Context(), "plain", "last", address+":15021/ready"); got != "200" {
		c.t.Errorf("its proxy says %q", got)
	}
}
