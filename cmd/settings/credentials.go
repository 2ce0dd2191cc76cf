package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// credentialsEnv names the folder in which systemd puts a service's credentials (LoadCredential=).
const credentialsEnv = "CREDENTIALS_DIRECTORY"

// fileOfCredential marks flags whose file may come as a credential; the value is the credential's name.
const fileOfCredential = "causeway_file_of_credential"

// UseCredential gives a flag that names a file the file of a credential of the service manager, when the service has it
// and the flag is set nowhere else. The flag must be there.
func UseCredential(flags *pflag.FlagSet, flag, credential string) {
	if err := flags.SetAnnotation(flag, fileOfCredential, []string{credential}); err != nil {
		panic(err) // a flag that was not added: a mistake in the program, seen at its first start
	}
}

// credentialOf is the file of f's credential, or empty.
func credentialOf(f *pflag.Flag) string {
	name, dir := f.Annotations[fileOfCredential], os.Getenv(credentialsEnv)
	if len(name) == 0 || dir == "" {
		return ""
	}
	path := filepath.Join(dir, name[0])
	// What is there and cannot be read is named all the same, so that reading it fails.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the service manager names its own folder
		return ""
	}
	return path
}

// credentials are settings that say who somebody is, or whom to believe, by the ends of their names.
var credentials = []string{"-ca", "-ca-sha256", "-cert", "-key", "-key-file", "token-file", "join", "join-file", "-oidc-issuer"}

// secretsInEnv are variables that are no flags, because others can read command lines.
var secretsInEnv = []string{"CAUSEWAY_SECRETS_PASSPHRASE", "CAUSEWAY_ETCD_PASSWORD"}

// noneEmpty refuses a credential that somebody names and leaves empty, as a variable does that a script did not have: the server would
// start with a weaker one, or with none.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(credentials, func(end string) bool { return strings.HasSuffix(f.Name, end) }) {
			return
		}
		variable := envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, there := os.LookupEnv(variable)
		switch {
		case f.Changed && strings.TrimSpace(f.Value.String()) == "":
			err = fmt.Errorf("--%s is empty: give it a value, or leave it out", f.Name)
		case !f.Changed && there && strings.TrimSpace(value) == "":
			err = fmt.Errorf("the variable %s is there and empty: give it a value, or unset it", variable)
		}
	})
	for _, variable := range secretsInEnv {
		if value, there := os.LookupEnv(variable); there && strings.TrimSpace(value) == "" {
			return fmt.Errorf("the variable %s is there and empty: give it a value, or unset it", variable)
		}
	}
	return err
}
