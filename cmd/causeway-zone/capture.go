package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/capture"
	"github.com/causeway-mesh/causeway/capture/cni"
	"github.com/causeway-mesh/causeway/cmd/settings"
)

// exitUnknown is the exit status of capture status if it cannot find out.
const exitUnknown = 2

func newCapture() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capture",
		Short: "Redirect the connections of this machine, or of this pod, to its proxy",
		Long: "Redirect the TCP connections of this machine, or of this pod, to its proxy, with nftables rules in the\n" +
			"network namespace of the command. They need Linux 5.2 or later and the capability CAP_NET_ADMIN.\n\n" +
			"The proxy's Dataplane has to say that its connections are redirected:\n" +
			"networking.transparentProxying with redirectPortInbound and redirectPortOutbound.",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newCaptureInstall(), newCaptureUninstall(), newCaptureStatus(), newCaptureVerify())
	return cmd
}

func newCaptureInstall() *cobra.Command {
	o := &captureOptions{}
	cmd := &cobra.Command{
		Use:   "install --proxy-user USER",
		Short: "Install the rules, or replace existing ones",
		Long: "Installs the rules in one step, and replaces those of an earlier installation. Connections from\n" +
			"other machines go to the proxy's inbound listener, and those of local processes to its outbound\n" +
			"listener. Until the proxy runs, they are refused. Open connections may break.\n\n" +
			"On a machine, exclude the port by which you reach it. A reboot removes the rules.",
		Example: "  causeway-zone capture install --proxy-user envoy --exclude-inbound-ports 22\n\n" +
			"  causeway-zone capture install --proxy-user envoy --inbound-ports 8080 --guard-ports 8080 --outbound-port 0\n\n" +
			"  causeway-zone capture install --proxy-user 5678 --exclude-outbound-addresses 10.0.0.0/8,fd00::/8 -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.settings()
			if err != nil {
				return err
			}
			changed, err := capture.Install(*s)
			if err != nil {
				return err
			}
			status, err := capture.Read()
			if err != nil {
				return err
			}
			return o.print(cmd.OutOrStdout(), status, map[bool]string{true: "installed", false: "already installed"}[changed])
		},
	}
	o.flags(cmd.Flags())
	addCaptureOutput(cmd.Flags(), &o.output)
	return cmd
}

func newCaptureUninstall() *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Remove these rules, complete or not, and no others",
		Long: "Removes these rules, complete or not, and no others. New connections are no longer redirected; open\n" +
			"ones stay with the proxy.",
		Example: "  causeway-zone capture uninstall",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := capture.Uninstall()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), map[bool]string{true: "removed", false: "nothing to remove"}[removed])
			return err
		},
	}
}

func newCaptureStatus() *cobra.Command {
	o := &captureOptions{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Report whether the rules are installed, and which processes listen on their ports",
		Long: "Reports whether the rules are installed, partial (some are missing), changed (some are foreign) or\n" +
			"absent, and which processes listen on the redirect ports. The exit status is 0 if they are installed\n" +
			"and the proxy listens, 1 if not, and 2 if the command cannot tell.",
		Example: "  causeway-zone capture status\n\n" +
			"  causeway-zone capture status -o yaml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := capture.Read()
			if err == nil {
				err = o.print(cmd.OutOrStdout(), status, string(status.State))
			}
			switch {
			case err != nil:
				return &settings.StatusError{Err: err, Status: exitUnknown}
			case !holds(status):
				return &settings.StatusError{Err: errNotCaptured, Status: 1}
			}
			return nil
		},
	}
	addCaptureOutput(cmd.Flags(), &o.output)
	return cmd
}

func newCaptureVerify() *cobra.Command {
	o := &captureOptions{}
	cmd := &cobra.Command{
		Use:   "verify --proxy-user USER",
		Short: "Verify by connections, without a capability, that the rules are installed",
		Long: "Verifies by connections that rules with these settings are installed: only they lead a connection of the\n" +
			"proxy's user, to an address of this machine, to the proxy's inbound port. It needs no capability. Run it\n" +
			"as the proxy's user, before the proxy.",
		Example: "  causeway-zone capture verify --proxy-user 5678",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.settings()
			if err != nil {
				return err
			}
			if user := os.Getuid(); uint32(user) != s.ProxyUser {
				return fmt.Errorf("this is user %d: run it as the proxy's, %d", user, s.ProxyUser)
			}
			err = capture.Verify(cmd.Context(), *s)
			switch {
			case errors.Is(err, capture.ErrNotCaptured):
				return fmt.Errorf("%w; in a pod: its network was made without the plugin %s, which the chart's DaemonSet installs on "+
					"each node: once that is ready on this node, delete the pod, so that another takes its place", err, cni.Name)
			case err == nil:
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "captured")
			}
			return err
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

var errNotCaptured = errors.New("connections are not captured as they should be: see above, then run causeway-zone capture install, or start the proxy")

// holds reports whether all that is captured reaches the proxy.
func holds(s *capture.Status) bool {
	for _, l := range s.Listeners {
		if l.Problem != "" {
			return false
		}
	}
	return s.State == capture.Installed
}

// captureOptions are the flags of install, as they are written.
type captureOptions struct {
	user                                           string
	inbound, outbound, dns                         uint16
	ports, notInPorts, notOutPorts, guard          []string
	notInAddresses, notOutAddresses, excludedUsers []string
	output                                         string
}

func (o *captureOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.user, "proxy-user", "", "`user` of the proxy, by name or number, whose own connections go out; no other program may run as it (required)")
	f.Uint16Var(&o.inbound, "inbound-port", capture.InboundPort, "`port` of the proxy's inbound listener; 0 captures nothing that comes in")
	f.Uint16Var(&o.outbound, "outbound-port", capture.OutboundPort, "`port` of the proxy's outbound listener; 0 captures nothing that goes out")
	f.Uint16Var(&o.dns, "dns-port", 0, "`port` on loopback on which the proxy answers DNS (bootstrap --dns-address); 0 leaves DNS alone")
	f.StringSliceVar(&o.ports, "inbound-ports", nil, "`ports` to capture of what comes in, such as 8080,9000-9010; default: all")
	f.StringSliceVar(&o.notInPorts, "exclude-inbound-ports", nil, "`ports` that clients reach without the proxy")
	f.StringSliceVar(&o.notInAddresses, "exclude-inbound-addresses", nil, "`addresses` or ranges of clients that go around the proxy")
	f.StringSliceVar(&o.notOutPorts, "exclude-outbound-ports", nil, "`ports` that are dialled without the proxy")
	f.StringSliceVar(&o.notOutAddresses, "exclude-outbound-addresses", nil, "`addresses` or ranges that are dialled without the proxy")
	f.StringSliceVar(&o.excludedUsers, "exclude-users", nil, "`users` whose connections are not redirected")
	f.StringSliceVar(&o.guard, "guard-ports", nil,
		"`ports` of the application that only the proxy may reach: other users of this machine, and UDP, are refused")
}

func addCaptureOutput(f *pflag.FlagSet, output *string) {
	f.StringVarP(output, "output", "o", "text", "`format` of the output: text, json or yaml")
}

// settings parses the flags. Errors name the flag.
func (o *captureOptions) settings() (*capture.Settings, error) {
	if o.user == "" {
		return nil, errors.New("--proxy-user: name the user that the proxy runs as, such as envoy")
	}
	s := &capture.Settings{InboundPort: o.inbound, OutboundPort: o.outbound, DNSPort: o.dns}
	var err error
	if s.ProxyUser, err = capture.LookupUser(o.user); err != nil {
		return nil, fmt.Errorf("--proxy-user: %w", err)
	}
	if s.ExcludeUsers, err = each("--exclude-users", o.excludedUsers, capture.LookupUser); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		flag string
		text []string
		to   *[]capture.Ports
	}{{"--inbound-ports", o.ports, &s.InboundPorts}, {"--exclude-inbound-ports", o.notInPorts, &s.ExcludeInboundPorts},
		{"--exclude-outbound-ports", o.notOutPorts, &s.ExcludeOutboundPorts}, {"--guard-ports", o.guard, &s.GuardPorts}} {
		if *list.to, err = each(list.flag, list.text, capture.ParsePorts); err != nil {
			return nil, err
		}
	}
	for _, list := range []struct {
		flag string
		text []string
		to   *[]netip.Prefix
	}{{"--exclude-inbound-addresses", o.notInAddresses, &s.ExcludeInboundAddresses},
		{"--exclude-outbound-addresses", o.notOutAddresses, &s.ExcludeOutboundAddresses}} {
		if *list.to, err = each(list.flag, list.text, capture.ParsePrefix); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func each[T any](flag string, texts []string, parse func(string) (T, error)) (out []T, err error) {
	for _, text := range texts {
		one, err := parse(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// print writes a status. word begins the text.
func (o *captureOptions) print(w io.Writer, s *capture.Status, word string) error {
	var err error
	switch o.output {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(s)
	case "yaml":
		var raw []byte
		if raw, err = yaml.Marshal(s); err == nil {
			_, err = w.Write(raw)
		}
	case "text":
		_, err = io.WriteString(w, captureText(s, word))
	default:
		err = fmt.Errorf("--output %q: must be one of text, json, yaml", o.output)
	}
	return err
}

func captureText(s *capture.Status, word string) string {
	out := &strings.Builder{}
	fmt.Fprintln(out, word)
	for _, p := range s.Problems {
		fmt.Fprintln(out, "  "+p)
	}
	for _, l := range s.Listeners {
		if l.Problem != "" {
			fmt.Fprintf(out, "%s: %s\n", l.For, l.Problem)
			continue
		}
		fmt.Fprintf(out, "%s: to port %d of the proxy, by %s\n", l.For, l.Port, strings.Join(l.Families, " and "))
	}
	return out.String()
}
