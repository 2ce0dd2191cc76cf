package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/credential/contexts"
)

// contextFlags select a server by its name in a file.
type contextFlags struct {
	name, file string
	chosen     bool
}

func (f *contextFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "context", "", "`name` of the server to ask, as in causewayctl config get-contexts")
	flags.StringVar(&f.file, "config", "", "`file` of contexts; also "+contexts.Env+", which may name several")
}

// choose applies the command's context, if any: --context, or else the current one unless --address or its variable
// names a server. A context is used as a whole: its address is never combined with the trust or credential of the
// environment, which belong to another server, nor the other way round. Flags override it.
func (c *cli) choose() error {
	if c.context.chosen {
		return nil
	}
	flags := c.credential.flags
	named := flags.Changed("address")
	switch {
	case flags.Changed("context") && named:
		return usagef("--context and --address are both given: a context has an address; give one")
	case flags.Changed("context") && c.context.name == "":
		return usagef("--context is empty: give it a name, or leave it out")
	case c.context.name == "" && (named || os.Getenv(addressEnv) != ""):
		c.leaveBeside()
		return nil
	}
	files, err := c.readContexts()
	if err != nil {
		return err
	}
	name := c.context.name
	if name == "" {
		name = files.Current()
	}
	if name == "" {
		return nil
	}
	found, err := files.Find(name)
	if err != nil {
		return usagef("%w", err)
	}
	c.context.chosen = true
	return c.apply(found)
}

// readContexts reads the files of contexts. Files that a flag or the environment names must exist.
func (c *cli) readContexts() (*contexts.Files, error) {
	files, err := contexts.ReadFiles(c.context.file)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if c.context.file == "" && os.Getenv(contexts.Env) == "" {
		return files, nil
	}
	for _, path := range files.Paths() {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return files, nil
		}
	}
	return nil, usagef("there is no file of contexts at %v: causewayctl config set-context makes one", files.Paths())
}

// readContextsWith is readContexts for a command about one context, which must exist.
func (c *cli) readContextsWith(name string) (*contexts.Files, error) {
	files, err := c.readContexts()
	if err != nil {
		return nil, err
	}
	if _, err := files.Find(name); err != nil {
		return nil, usagef("%w", err)
	}
	return files, nil
}

// editContexts changes the files of contexts, which change reads: another command that changes them waits, so that what
// it says is stored stays.
func (c *cli) editContexts(ctx context.Context, change func() error) error {
	if _, err := contexts.ReadFiles(c.context.file); err != nil {
		return usagef("%w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	release, err := contexts.Hold(ctx, c.context.file)
	if err != nil {
		return failed(err)
	}
	defer release()
	return failed(change())
}

// saveContexts writes a file that has changed, and first, which may have.
func saveContexts(file, first *contexts.File) error {
	err := file.Save()
	if err == nil && first != file {
		err = first.Save()
	}
	return err
}

// apply sets the flags that the command line omits to the values of the context.
func (c *cli) apply(found *contexts.Context) error {
	flags := c.credential.flags
	given := func(names ...string) bool {
		for _, name := range names {
			if flags.Changed(name) {
				return true
			}
		}
		return false
	}
	values := map[string]string{"address": found.Address}
	if !given("kube-context", "kubeconfig") {
		values["kube-context"], values["kubeconfig"] = found.KubeContext, found.Kubeconfig
	}
	if !given("ca", "ca-sha256") {
		c.caFile, c.credential.pin = "", "" // from the environment
		values["ca"], values["ca-sha256"] = found.CA, found.CASHA256
	}
	c.credential.noEnv = true
	if !given("token-file") {
		c.credential.tokenFile = ""
	}
	if !given("token", "token-file", "client-cert", "client-key") {
		values["token-file"], values["client-cert"], values["client-key"] = found.TokenFile, found.ClientCert, found.ClientKey
		c.credential.session, c.credential.sessionOf = found.SessionFile, found.Name
	}
	for name, value := range values {
		if value == "" {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return usagef("context %s: %s: %w", found.Name, name, err)
		}
	}
	return nil
}

// completeContext completes the names of contexts.
func (c *cli) completeContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	files, err := contexts.ReadFiles(c.context.file)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return files.Names(), cobra.ShellCompDirectiveNoFileComp
}
