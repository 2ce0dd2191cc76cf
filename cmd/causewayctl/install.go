package main

import (
	"io"
	"os"
	"regexp"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/deploy"
	"github.com/causeway-mesh/causeway/printing"
)

func newInstall(c *cli) *cobra.Command {
	return newGroup("install", "Print what installs Causeway in Kubernetes, as plain YAML for kubectl", newInstallDefinitions(c),
		newInstallServer(c, "zone"), newInstallServer(c, "global"))
}

func newInstallDefinitions(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "crds",
		Short: "Print the CustomResourceDefinitions of all types, with roles and admission policies",
		Long: "Prints the CustomResourceDefinitions of all types, roles that let viewers and editors of a namespace\n" +
			"do the same with its policies, and admission policies. Apply them again after an upgrade to bring\n" +
			"the cluster to this version. Deleting a definition deletes all of its objects.",
		Example: "  causewayctl install crds | kubectl apply --server-side -f -",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			out, err := deploy.Definitions()
			if err == nil {
				_, err = c.out.Write(printing.YAML(out))
			}
			return failed(err)
		},
	}
}

// installFlags are the settings of a release.
type installFlags struct {
	name, namespace, values string
	set                     []string
}

func newInstallServer(c *cli, kind string) *cobra.Command {
	flags := &installFlags{}
	chart := "causeway-" + kind
	cmd := &cobra.Command{
		Use:   kind,
		Short: "Print the manifests of a " + kind + ": what the chart " + chart + " gives",
		Long: "Prints the manifests of a " + kind + ": what the chart " + chart + " gives for the same values, and its namespace. Helm keeps what\n" +
			"this cannot know: the volumes of an earlier installation keep their size.",
		Example: map[string]string{
			"zone": "  causewayctl install zone --set zone=zone-1 | kubectl apply -f -\n" +
				"  causewayctl install zone --namespace causeway --name zone-1 --set join.secretName=zone-1-join --set kubernetes.enabled=true",
			"global": "  causewayctl install global --set kds.advertiseAddress=global.example:5685 | kubectl apply -f -",
		}[kind],
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.installServer(chart, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.name, "name", chart, "`name` of the release, with which the names of its objects begin")
	f.StringVarP(&flags.namespace, "namespace", "n", "causeway", "`namespace` of the server")
	f.StringVar(&flags.values, "values", "", "YAML `file` of values, as for helm")
	f.StringArrayVar(&flags.set, "set", nil, "one value, `NAME=VALUE`; may be repeated, and wins over --values")
	return cmd
}

var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$`)

func (c *cli) installServer(chart string, flags *installFlags) error {
	for flag, name := range map[string]string{"--name": flags.name, "--namespace": flags.namespace} {
		if !releaseName.MatchString(name) {
			return usagef("%s %q: want at most 53 lower-case letters, digits and dashes, a letter or digit at both ends", flag, name)
		}
	}
	values, err := deploy.Values(chart)
	if err != nil {
		return failed(err)
	}
	if flags.values != "" {
		raw, err := readValues(flags.values)
		if err != nil {
			return err
		}
		over := map[string]any{}
		if err := yaml.Unmarshal(raw, &over); err != nil {
			return usagef("--values %s: %w", flags.values, err)
		}
		if err := deploy.Merge(values, over, ""); err != nil {
			return usagef("--values %s: %w", flags.values, err)
		}
	}
	for _, setting := range flags.set {
		if err := deploy.Set(values, setting); err != nil {
			return usagef("--set: %w", err)
		}
	}
	if join, _ := values["join"].(map[string]any); chart == "causeway-zone" && values["zone"] == "" && join["secretName"] == "" {
		return usagef("the zone needs a name (--set zone=NAME), or a Secret with a join string (--set join.secretName=NAME)")
	}
	out, err := deploy.Render(&deploy.Release{Chart: chart, Name: flags.name, Namespace: flags.namespace, Values: values})
	if err == nil {
		_, err = c.out.Write(printing.YAML(out))
	}
	return failed(err)
}

// maxValues is the maximum size of a file of values in bytes.
const maxValues = 1 << 20

func readValues(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxValues+1))
	if err != nil {
		return nil, failed(err)
	}
	if len(raw) > maxValues {
		return nil, usagef("--values %s: more than %d bytes", path, maxValues)
	}
	return raw, nil
}
