package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// program finds a program of the node, such as its API server.
func (k *kube) program(name string) *os.Process {
	k.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	must(k.t, err)
	for _, dir := range all {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		first, rest, _ := strings.Cut(string(line), "\x00")
		if filepath.Base(first) != name || !strings.Contains(rest, k.Dir+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		must(k.t, err)
		p, err := os.FindProcess(pid)
		must(k.t, err)
		return p
	}
	k.t.Fatalf("there is no process of %s", name)
	return nil
}

// inside is a command in a pod, which is found by its name and an argument of one of its processes. It needs neither the
// API server nor the kubelet.
func inside(ctx context.Context, pod, argument string, command ...string) (*exec.Cmd, error) {
	p, err := findProcess(pod, argument)
	if err != nil {
		return nil, err
	}
	all := []string{"--target", fmt.Sprint(p.Pid), "--mount", "--net", "--pid", "--setuid", "65532", "--setgid", "65532", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(all, command...)...)
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.Pid))
	for _, variable := range bytes.Split(bytes.TrimRight(environment, "\x00"), []byte{0}) {
		cmd.Env = append(cmd.Env, string(variable))
	}
	return cmd, err
}

// loadsInside is loads without the API server and the kubelet.
func (k *kube) loadsInside(rate, seconds int, while func()) string {
	k.t.Helper()
	cmd, err := inside(k.t.Context(), "client", waits, "/usr/bin/app", "load", "http://backend", fmt.Sprint(rate), fmt.Sprint(seconds))
	must(k.t, err)
	return k.loadsBy(cmd, while)
}

// zoneArgument is an argument of the zone's process, and waits one of the client's.
const (
	zoneArgument = "--kubernetes-webhook-configuration="
	waits        = "app\x00wait"
)

// ctlInside runs causewayctl in the zone's pod, without the API server.
func ctlInside(ctx context.Context, args ...string) (string, error) {
	cmd, err := inside(ctx, workSet+"-0", zoneArgument, append([]string{"/usr/bin/causewayctl"}, args...)...)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// withoutAPIServer ends the API server, and keeps it from being started again until back is called.
func (k *kube) withoutAPIServer() (back func()) {
	k.t.Helper()
	server := k.program("kube-apiserver")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Pid))
	must(k.t, err)
	_, rest, _ := strings.Cut(string(status), "\nPPid:")
	parent, err := strconv.Atoi(strings.Fields(rest)[0])
	must(k.t, err)
	must(k.t, syscall.Kill(parent, syscall.SIGSTOP))
	must(k.t, server.Kill())
	return func() {
		must(k.t, syscall.Kill(parent, syscall.SIGCONT))
		k.eventually("the API server to be back", func(ctx context.Context) error {
			_, err := k.Kubectl(ctx, "get", "--raw", "/readyz")
			return err
		})
	}
}
