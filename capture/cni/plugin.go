package cni

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/causeway-mesh/causeway/capture"
)

const (
	// Name is the name of the plugin's program in the folder of a node's plugins, and its type in a list of plugins.
	Name = "causeway-cni"
	// Annotation has the capture.Settings of a pod, in JSON.
	Annotation = "causeway.io/capture"
	// capability is what a plugin declares so that a container runtime passes it the annotations of pods. Source:
	// containerd since 1.5, and CRI-O.
	capability = "io.kubernetes.cri.pod-annotations"
	// maxText limits what an error repeats, in bytes.
	maxText = 512
)

// versions are the versions of the Container Network Interface that the plugin supports.
var versions = version.PluginSupports("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")

// config is what a container runtime passes: the plugin's entry, with values of this pod.
type config struct {
	types.PluginConf

	// Except are namespaces whose pods are never captured.
	Except        []string `json:"except"`
	RuntimeConfig struct {
		Annotations map[string]string `json:"io.kubernetes.cri.pod-annotations"`
	} `json:"runtimeConfig"`
	// pod is who the call is about.
	pod podArgs
}

// podArgs are arguments of the kubelet. Their names are those of the arguments.
type podArgs struct {
	types.CommonArgs

	K8S_POD_NAMESPACE types.UnmarshallableString //nolint:revive,staticcheck // the name of the argument
	K8S_POD_NAME      types.UnmarshallableString //nolint:revive,staticcheck // the name of the argument
}

// Main runs the plugin: the environment and the standard input have the call, the standard output gets the result. It
// returns the exit status.
func Main(stdout io.Writer) int {
	p := plugin{out: stdout}
	err := skel.PluginMainFuncsWithError(skel.CNIFuncs{Add: p.add, Del: p.del, Check: p.check, GC: p.nothing, Status: p.nothing},
		versions, Name+" leads the connections of pods to their proxies; container runtimes call it")
	if err == nil {
		return 0
	}
	if e := json.NewEncoder(stdout).Encode(err); e != nil {
		return 2
	}
	return 1
}

type plugin struct{ out io.Writer }

// add captures the pod, if it asks for that, and passes on the result of the plugins before.
func (p plugin) add(args *skel.CmdArgs) error {
	c, s, err := read(args)
	if err != nil {
		return err
	}
	if s != nil {
		if err := inNetwork(args.Netns, func() error { _, err := capture.Install(*s); return err }); err != nil {
			return c.failed("it does not start: its connections cannot be led to its proxy: %w", err)
		}
	}
	return p.pass(c)
}

// check checks that the pod still has the rules.
func (p plugin) check(args *skel.CmdArgs) error {
	c, s, err := read(args)
	if err != nil || s == nil {
		return err
	}
	var is *capture.Status
	if err := inNetwork(args.Netns, func() (err error) { is, err = capture.Read(); return err }); err != nil {
		return c.failed("its rules are not readable: %w", err)
	}
	want, errWant := json.Marshal(s)
	has, errHas := json.Marshal(is.Settings)
	if is.State != capture.Installed || errWant != nil || errHas != nil || string(want) != string(has) {
		return c.failed("its connections are not captured as its annotation says (%s): delete the pod, so that another takes its place",
			is.State)
	}
	return nil
}

// del does nothing: rules end with their network.
func (p plugin) del(*skel.CmdArgs) error { return nil }

// nothing answers STATUS and GC: nothing is kept between calls, and other pods do not wait for this plugin.
func (p plugin) nothing(*skel.CmdArgs) error { return nil }

// pass prints the result of the plugins before.
func (p plugin) pass(c *config) error {
	if c.PrevResult == nil {
		c.PrevResult = &types100.Result{CNIVersion: types100.ImplementedSpecVersion}
	}
	result, err := c.PrevResult.GetAsVersion(c.CNIVersion)
	if err != nil {
		return err
	}
	return result.PrintTo(p.out)
}

// read reads a call. The settings are nil for a pod that is not to be captured.
func read(args *skel.CmdArgs) (*config, *capture.Settings, error) {
	c := &config{}
	if err := json.Unmarshal(args.StdinData, c); err != nil {
		return nil, nil, types.NewError(types.ErrDecodingFailure, Name+": the configuration does not decode: "+err.Error(), "")
	}
	if err := version.ParsePrevResult(&c.PluginConf); err != nil {
		return nil, nil, types.NewError(types.ErrDecodingFailure, Name+": the previous result does not decode: "+err.Error(), "")
	}
	c.pod.IgnoreUnknown = true
	if err := types.LoadArgs(args.Args, &c.pod); err != nil {
		return nil, nil, types.NewError(types.ErrInvalidEnvironmentVariables, Name+": CNI_ARGS: "+err.Error(), "")
	}
	text, asks := c.RuntimeConfig.Annotations[Annotation]
	if !asks || slices.Contains(c.Except, string(c.pod.K8S_POD_NAMESPACE)) {
		return c, nil, nil
	}
	s, err := capture.ParseSettings(text)
	if err != nil {
		return nil, nil, c.failed("it does not start: annotation %s, which the zone writes when a pod is created: %s: upgrade the zone and this plugin "+
			"to the same version, then delete the pod", Annotation, brief(err))
	}
	return c, s, nil
}

// brief returns the text of an error, which may repeat an annotation: others write it, and each attempt to start the pod
// logs it.
func brief(err error) string {
	text := err.Error()
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

// failed returns an error about the pod.
func (c *config) failed(format string, args ...any) error {
	return types.NewError(types.ErrInternal, fmt.Sprintf("%s: pod %s/%s: %s", Name, c.pod.K8S_POD_NAMESPACE,
		c.pod.K8S_POD_NAME, fmt.Errorf(format, args...)), "")
}
