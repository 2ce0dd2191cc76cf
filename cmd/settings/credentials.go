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

// fileOfCredential marks flags whose file may be a credential of systemd; the value is the credential's name.
const fileOfCredential = "causeway_file_of_credential"

// UseCredential lets a flag that names a file default to the file of a credential of the service manager, if the
// service has that credential and the flag is set nowhere else. The flag must exist.
func UseCredential(flags *pflag.FlagSet, flag, credential string) {
	if err := flags.SetAnnotation(flag, fileOfCredential, []string{credential}); err != nil {
		panic(err) // the flag was not added: a defect of the program that shows at its first start
	}
}

// credentialOf returns the file of f's credential, or an empty string.
func credentialOf(f *pflag.Flag) string {
	name, dir := f.Annotations[fileOfCredential], os.Getenv(credentialsEnv)
	if len(name) == 0 || dir == "" {
		return ""
	}
	path := filepath.Join(dir, name[0])
	// A file that exists but cannot be read is still returned, so that reading it fails.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the service manager names its own folder
		return ""
	}
	return path
}

// credentials are the suffixes of the settings that prove an identity or establish trust.
var credentials = []string{"-ca", "-ca-sha256", "-cert", "-key", "-key-file", "token-file", "join", "join-file",
	"-oidc-issuer"}

// secretsInEnv are variables without a flag, because other users can read command lines.
var secretsInEnv = []string{"CAUSEWAY_SECRETS_PASSPHRASE", "CAUSEWAY_ETCD_PASSWORD"}

// noneEmpty refuses a credential that is named but empty, for example because a script's variable was unset. Otherwise
// the server would start with a weaker credential, or with none.
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
			err = fmt.Errorf("the variable %s is set and empty: give it a value, or unset it", variable)
		}
	})
	for _, variable := range secretsInEnv {
		if value, there := os.LookupEnv(variable); there && strings.TrimSpace(value) == "" {
			return fmt.Errorf("the variable %s is set and empty: give it a value, or unset it", variable)
		}
	}
	return err
}
