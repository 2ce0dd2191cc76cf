package node

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// firstScript is what the node's first process runs.
//
//go:embed first.sh
var firstScript string

// dnsManifest is the cluster's DNS.
//
//go:embed dns.yaml
var dnsManifest string

// cniFolder is where Debian keeps the plugins.
const cniFolder = "/usr/lib/cni"

// Pods are joined by a bridge.
const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks", "ranges": [[{"subnet": "PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

// Without the right to lower scores of the out-of-memory killer, and on kernels without AppArmor.
const containerdConfig = `version = 3
root = "DIR/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "DIR/opt"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:dev"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  disable_apparmor = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["DIR/plugins"]
    conf_dir = "DIR/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

// Images are never collected: nobody could pull one again.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /NODE
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: 0.0.0.0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: DIR/keys/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: DIR/keys/kubelet-server.crt
tlsPrivateKeyFile: DIR/keys/kubelet-server.key
clusterDomain: cluster.local
clusterDNS: [DNS]
resolvConf: DIR/resolv.conf
volumePluginDir: DIR/volumeplugins
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: FILES
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
maxPods: 160
`

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: PODS
hostnameOverride: NODE
clientConnection: {kubeconfig: DIR/keys/proxy.kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
oomScoreAdj: 0
`

// writeConfig writes the files that the node's programs read.
func (n *Node) writeConfig() error {
	if _, err := os.Stat(filepath.Join(cniFolder, "bridge")); err != nil {
		return fmt.Errorf("no plugins for networks of pods: run test/tools/kubernetes/packages.sh (%w)", err)
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	fill := strings.NewReplacer("DIR/", n.Dir+"/", "NODE", n.name, "PODS", n.pods, "DNS]", n.dns+"]",
		"FILES", fmt.Sprint(min(files.Max, 1<<20)))
	for name, text := range map[string]string{
		"cni/10-bridge.conflist": cniConfig, "containerd.toml": containerdConfig, "kubelet.yaml": kubeletConfig,
		"proxy.yaml": proxyConfig, "resolv.conf": "\n",
	} {
		if err := os.WriteFile(filepath.Join(n.Dir, name), []byte(fill.Replace(text)), 0o600); err != nil {
			return err
		}
	}
	return n.linkPlugins()
}

// linkPlugins gives the node a folder of plugins of its own, to which others can be added.
func (n *Node) linkPlugins() error {
	plugins, err := filepath.Glob(filepath.Join(cniFolder, "*"))
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		if err := os.Symlink(plugin, filepath.Join(n.Plugins(), filepath.Base(plugin))); err != nil {
			return err
		}
	}
	return nil
}

// Plugins is the node's folder of plugins for the network of pods.
func (n *Node) Plugins() string { return filepath.Join(n.Dir, "plugins") }

// Network is the node's folder of lists of those plugins.
func (n *Node) Network() string { return filepath.Join(n.Dir, "cni") }
