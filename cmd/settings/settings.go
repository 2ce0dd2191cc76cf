// Package settings reads a server's settings: a flag wins over the environment, which wins over the YAML file named by
// --config. It does not know the meaning of settings, except for those that several programs share.
package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cast"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/server"
)

// envPrefix is the prefix of every setting in the environment: --kds-address is CAUSEWAY_KDS_ADDRESS.
const envPrefix = "CAUSEWAY"

// configFlag names the YAML file. It is the only setting that cannot be in that file.
const configFlag = "config"

// AddConfigFlag adds --config.
func AddConfigFlag(flags *pflag.FlagSet) {
	flags.String(configFlag, "", "YAML `file` with settings; keys are the names of the flags")
	markSettings(flags)
}

// Load sets every flag that is not on the command line from the environment or the file, and last from the credentials
// of the service manager. An error names the setting and the source of its value. An unknown key in the file is an
// error.
func Load(flags *pflag.FlagSet) error {
	v := viper.New()
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(flags); err != nil {
		return err
	}
	if err := noneEmpty(flags); err != nil {
		return err
	}
	if path := v.GetString(configFlag); path != "" {
		if err := readFile(v, flags, path); err != nil {
			return err
		}
	}
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || failed != nil || f.Name == configFlag {
			return
		}
		if path := credentialOf(f); path != "" && v.GetString(f.Name) == "" {
			failed = flags.Set(f.Name, path)
			return
		}
		if !v.IsSet(f.Name) {
			return
		}
		if err := flags.Set(f.Name, text(v, f.Name)); err != nil {
			failed = fmt.Errorf("setting %s (from the environment or the file): %w", f.Name, err)
		}
	})
	return failed
}

// text returns a setting in the form of the command line: lists with commas.
func text(v *viper.Viper, name string) string {
	switch list := v.Get(name).(type) {
	case []any, []string:
		return strings.Join(cast.ToStringSlice(list), ",")
	}
	return v.GetString(name)
}

func readFile(v *viper.Viper, flags *pflag.FlagSet, path string) error {
	raw, err := credential.Public("--"+configFlag, path) // it establishes trust
	if err != nil {
		return err
	}
	file := viper.New()
	file.SetConfigType("yaml")
	if err := file.ReadConfig(bytes.NewReader(raw)); err != nil {
		return fmt.Errorf("--%s %s: %w", configFlag, path, err)
	}
	written, err := documentOf(raw)
	if err != nil {
		return fmt.Errorf("--%s %s: %w", configFlag, path, err)
	}
	for _, key := range append(slices.Sorted(maps.Keys(written)), file.AllKeys()...) {
		if flags.Lookup(key) == nil || key == configFlag || key == "help" {
			return fmt.Errorf("--%s %s: unknown setting %q; the settings are: %s", configFlag, path, key,
				strings.Join(names(flags), ", "))
		}
	}
	if err := noneEmptyIn(written); err != nil {
		return fmt.Errorf("--%s %s: %w", configFlag, path, err)
	}
	return v.MergeConfigMap(file.AllSettings())
}

// documentOf returns a settings file as written. viper merges keys that differ only in case, treats an empty value as
// absent, and reads only the first of several documents.
func documentOf(raw []byte) (document map[string]any, err error) {
	var more map[string]any
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one document: want one")
	}
	return document, nil
}

func names(flags *pflag.FlagSet) []string {
	var out []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != configFlag && f.Name != "help" {
			out = append(out, f.Name)
		}
	})
	slices.Sort(out)
	return out
}

// Exit statuses of the servers.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Execute runs root until it ends or SIGINT or SIGTERM arrives, prints an error on stderr and returns the exit status:
// 0, 1 if the work failed, 2 if the command line was wrong, or that of a StatusError. A second signal ends the process at once.
func Execute(root *cobra.Command, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	stderr = server.NewPatientWriter(printing.NewWriter(stderr))
	root.SetErr(stderr)
	root.SilenceUsage, root.SilenceErrors = true, true
	Narrow(root)
	started := false
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		started = true
		if readsSettings(cmd.Flags()) { // it runs a server, which must not end with the reader of its log
			signal.Ignore(syscall.SIGPIPE)
		}
	}
	if cmd, err := root.ExecuteContextC(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v%s\n", root.Name(), err, nearestFlag(cmd, err))
		if !started {
			_, _ = fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
			return exitUsage
		}
		if e, ok := errors.AsType[*StatusError](err); ok {
			return e.Status
		}
		return exitFailed
	}
	return 0
}

// StatusError ends the program with an exit status of its own, where a command answers a question.
type StatusError struct {
	Err    error
	Status int
}

// Error implements error.
func (e *StatusError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *StatusError) Unwrap() error { return e.Err }

// settingsMark marks the flag for a settings file: the --config of other commands may be something else.
const settingsMark = "settings"

func markSettings(flags *pflag.FlagSet) { _ = flags.SetAnnotation(configFlag, settingsMark, nil) }

// readsSettings reports whether a command's flags can also come from a file and from the environment.
func readsSettings(flags *pflag.FlagSet) bool {
	f := flags.Lookup(configFlag)
	if f == nil {
		return false
	}
	_, marked := f.Annotations[settingsMark]
	return marked
}
