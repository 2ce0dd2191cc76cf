package cni

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/capture"
)

// TestMain is the plugin where a container runtime runs it by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Name {
		os.Exit(Main(os.Stdout))
	}
	os.Exit(m.Run())
}

// network is the network of a pod.
type network struct {
	t    *testing.T
	path string
	work chan func()
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		ready <- err
		for f := range n.work {
			f()
		}
	}()
	t.Cleanup(func() { close(n.work) })
	if err := <-ready; err != nil {
		t.Logf("this machine lets us make no network namespaces: %v", err)
		return nil
	}
	return n
}

// status returns the rules of the network.
func (n *network) status() *capture.Status {
	n.t.Helper()
	var out *capture.Status
	n.do(func() (err error) {
		out, err = capture.Read()
		return err
	})
	return out
}

// do does something in the network.
func (n *network) do(f func() error) {
	n.t.Helper()
	done := make(chan error)
	n.work <- func() { done <- f() }
	must(n.t, <-done)
}

// call calls the plugin as a container runtime does, in a network of its own: one that misses the pod's must not change
// this machine's.
func call(t *testing.T, command, netns, pod, conf string) (out string, status int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{Name}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	cmd.Env = []string{"CNI_COMMAND=" + command, "CNI_CONTAINERID=c1", "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin", "CNI_NETNS=" + netns,
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=" + strings.ReplaceAll(pod, "/", ";K8S_POD_NAME=") + ";K8S_POD_UID=u;K8S_POD_INFRA_CONTAINER_ID=c1"}
	cmd.Stdin = strings.NewReader(conf)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if stderr.Len() > 0 {
		t.Errorf("%s %s: on standard error: %s", command, pod, &stderr)
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

const (
	before   = `{"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/x"}], "ips": [{"address": "10.0.0.5/16", "gateway": "10.0.0.1", "interface": 0}], "dns": {"nameservers": ["10.0.0.10"]}}`
	settings = `{"proxyUser":56785,"inboundPort":15006,"outboundPort":15001,"excludeInboundPorts":["15021","9000-9010"],"excludeOutboundAddresses":["fd00::/8"]}`
)

// conf is what a container runtime passes, with the annotations of the pod.
func conf(version string, annotations map[string]string) string {
	raw, err := json.Marshal(map[string]any{"cniVersion": version, "name": "pods", "type": Name, "except": []string{"kube-system"},
		"prevResult": json.RawMessage(strings.ReplaceAll(before, "1.0.0", version)), "runtimeConfig": map[string]any{capability: annotations}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestPlugin calls the plugin for pods of all kinds.
func TestPlugin(t *testing.T) {
	asks := map[string]string{Annotation: settings}
	for _, c := range []struct {
		name, pod, conf, want string
		captured              bool
	}{
		{"asks", "shop/a", conf("1.0.0", asks), "", true},
		{"asks, newest", "shop/a", conf("1.1.0", asks), "", true},
		{"asks not", "shop/a", conf("1.0.0", map[string]string{"a": "b"}), "", false},
		{"in a namespace that is excepted", "kube-system/a", conf("1.0.0", asks), "", false},
		{"broken in a namespace that is excepted", "kube-system/a", conf("1.0.0", map[string]string{Annotation: "{"}), "", false},
		{"without annotations", "shop/a", strings.ReplaceAll(conf("1.0.0", nil), "runtimeConfig", "other"), "", false},
		{"of another version", "shop/a", conf("1.0.0", map[string]string{Annotation: `{"proxyUser": 1, "inboundPort": 2, "new": 3}`}),
			`causeway-cni: pod shop/a: it does not start: annotation causeway.io/capture, which the zone writes when a pod is created: ` +
				`invalid capture: json: unknown field \"new\": upgrade the zone and this plugin to the same version`, false},
		{"no settings", "shop/a", conf("1.0.0", map[string]string{Annotation: ""}), "annotation causeway.io/capture", false},
		{"two settings", "shop/a", conf("1.0.0", map[string]string{Annotation: settings + settings}), "more than one document", false},
		{"a proxy that is root", "shop/a", conf("1.0.0", map[string]string{Annotation: `{"inboundPort": 15006}`}), "the proxy's user is root", false},
		{"no JSON", "shop/a", `{"cniVersion": "1.0.0", "name": "pods", "runtimeConfig": 1}`, "the configuration does not decode", false},
		{"of the future", "shop/a", conf("9.0.0", asks), "incompatible CNI versions", false},
	} {
		n := newNetwork(t)
		if n == nil {
			return
		}
		out, status := call(t, "ADD", n.path, c.pod, c.conf)
		if is := n.status().State == capture.Installed; is != c.captured {
			t.Errorf("%s: captured is %v", c.name, is)
		}
		if c.want != "" {
			if status != 1 || !strings.Contains(out, c.want) || !strings.Contains(out, `"code":`) {
				t.Errorf("%s: status %d, %s", c.name, status, out)
			}
			continue
		}
		if status != 0 || !sameResult(t, out, c.conf) {
			t.Errorf("%s: status %d, %s", c.name, status, out)
		}
	}
}

// sameResult reports whether the result is that of the plugins before.
func sameResult(t *testing.T, out, conf string) bool {
	t.Helper()
	var want struct {
		CNIVersion string         `json:"cniVersion"`
		PrevResult map[string]any `json:"prevResult"`
	}
	var got map[string]any
	must(t, json.Unmarshal([]byte(conf), &want))
	if json.Unmarshal([]byte(out), &got) != nil {
		return false
	}
	want.PrevResult["cniVersion"] = want.CNIVersion
	return reflect.DeepEqual(got, want.PrevResult)
}

// TestLongAnnotations: what an error repeats of an annotation is short. It goes into the node's log at each attempt.
func TestLongAnnotations(t *testing.T) {
	long := strings.Repeat("ä", 100_000)
	for _, text := range []string{`{"` + long + `": 1}`, `{"proxyUser": 1, "inboundPorts": ["` + long + `"]}`} {
		out, status := call(t, "ADD", "/run/netns/no-such", "shop/a", conf("1.0.0", map[string]string{Annotation: text}))
		if status != 1 || len(out) > 2048 || !strings.Contains(out, "then delete the pod") {
			t.Errorf("status %d, %d bytes: %.1000s", status, len(out), out)
		}
	}
}

// TestPluginOfAPod is the life of one pod: made, made again, checked, changed, deleted.
func TestPluginOfAPod(t *testing.T) {
	n := newNetwork(t)
	if n == nil {
		return
	}
	c := conf("1.1.0", map[string]string{Annotation: settings})
	step := func(command, netns, pod, with, want string) {
		t.Helper()
		out, status := call(t, command, netns, pod, with)
		if want == "" && status != 0 || want != "" && (status != 1 || !strings.Contains(out, want)) {
			t.Errorf("%s: status %d, %s, want %q", command, status, out, want)
		}
	}
	step("CHECK", n.path, "shop/a", c, "causeway-cni: pod shop/a: its connections are not captured as its annotation says (absent): delete the pod")
	step("ADD", n.path, "shop/a", c, "")
	step("ADD", n.path, "shop/a", c, "")
	want, err := capture.ParseSettings(settings)
	must(t, err)
	if is := n.status(); !reflect.DeepEqual(is.Settings, want) {
		t.Errorf("the rules are %+v", is)
	}
	step("CHECK", n.path, "shop/a", c, "")
	step("CHECK", n.path, "shop/a", conf("1.1.0", map[string]string{Annotation: strings.ReplaceAll(settings, "15021", "15020")}), "not captured as its annotation says (installed)")
	step("CHECK", n.path, "shop/a", conf("1.1.0", nil), "")
	n.do(func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		c.FlushChain(&nftables.Chain{Table: &nftables.Table{Family: nftables.TableFamilyINet, Name: "causeway_capture"}, Name: "prerouting"})
		return c.Flush()
	})
	step("CHECK", n.path, "shop/a", c, "not captured as its annotation says (partial)")
	step("DEL", n.path, "shop/a", c, "")
	step("DEL", "", "shop/a", c, "")
	step("DEL", "", "shop/a", conf("1.1.0", map[string]string{Annotation: "{"}), "")
	step("STATUS", "", "shop/a", conf("1.1.0", nil), "")
	step("GC", "", "shop/a", conf("1.1.0", nil), "")
	step("VERSION", "", "shop/a", "", "")
	step("ADD", "/run/netns/no-such", "shop/a", c, "causeway-cni: pod shop/a: it does not start: its connections cannot be led to its proxy: the pod's network: ")
	step("ADD", "/run/netns/no-such", "shop/b", conf("1.1.0", nil), "")
	step("ADD", "/dev/null", "shop/a", c, "the pod's network")
	step("GO", n.path, "shop/a", c, "unknown CNI_COMMAND")
	out, _ := call(t, "VERSION", "", "shop/a", "")
	if !strings.Contains(out, `"1.1.0"`) || !strings.Contains(out, `"0.3.1"`) {
		t.Errorf("it supports %s", out)
	}
}
