package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/resources"
)

// credentialsEnv names the folder in which systemd puts a service's credentials (LoadCredential=).
const credentialsEnv = "CREDENTIALS_DIRECTORY"

// fileOfCredential marks flags whose file may be a credential of systemd; the value is the credential's name.
const fileOfCredential = "causeway_file_of_credential"

// UseCredential lets a flag that names a file default to the file of a credential of the service manager, if the
// service has that credential and the flag is set nowhere else. The flag must exist.
func UseCredential(flags *pflag.FlagSet, flag, credential string) {
	if err := flags.SetAnnotation(flag, fileOfCredential, []string{credential}); err != nil {
		panic(err) // a missing flag is a defect of the program that shows at its first start
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

// credentials are the suffixes of the settings that prove an identity, make others prove theirs, or establish trust.
var credentials = []string{"-ca", "-ca-sha256", "-cert", "-key", "-key-file", "token-file", "join", "join-file",
	"-oidc-issuer", "-oidc-client-id", "-require-credential", "-require-credentials", "tls-min-version", configFlag}

// guards reports whether the server would be less secure without the setting.
func guards(name string) bool {
	return slices.ContainsFunc(credentials, func(end string) bool { return strings.HasSuffix(name, end) })
}

// variableOf returns the environment variable of a setting.
func variableOf(name string) string {
	return envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// secretsInEnv are variables without a flag, because other users can read command lines.
var secretsInEnv = []string{"CAUSEWAY_SECRETS_PASSPHRASE", "CAUSEWAY_ETCD_PASSWORD"}

// noneEmpty refuses a credential that is named but empty, for example because a script's variable was unset. Otherwise
// the server would start with a weaker credential, or with none.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !guards(f.Name) {
			return
		}
		variable := variableOf(f.Name)
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
	return errors.Join(err, noneMisspelled(flags, os.Environ()))
}

// nearMiss is how many letters may differ between a variable and the intended one.
const nearMiss = 2

// noneMisspelled refuses a variable that is almost that of a setting that guards: nothing would read it. Other
// variables belong to other programs, or to a cluster that names its services.
func noneMisspelled(flags *pflag.FlagSet, environment []string) error {
	known := slices.Clone(secretsInEnv)
	flags.VisitAll(func(f *pflag.Flag) { known = append(known, variableOf(f.Name)) })
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix+"_") || slices.Contains(known, name) {
			continue
		}
		for _, meant := range known {
			setting := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(meant, envPrefix+"_")), "_", "-")
			if (guards(setting) || slices.Contains(secretsInEnv, meant)) &&
				resources.EditDistance(name, meant, nearMiss+1) <= nearMiss {
				return fmt.Errorf("nothing reads the variable %s: is it %s?", name, meant)
			}
		}
	}
	return nil
}

// noneEmptyIn refuses an empty credential in a settings file.
func noneEmptyIn(document map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(document)) {
		switch value := document[key].(type) {
		case nil:
		case string:
			if strings.TrimSpace(value) != "" {
				continue
			}
		default:
			continue
		}
		if guards(key) {
			return fmt.Errorf("%s is empty: give it a value, or leave it out", key)
		}
	}
	return nil
}
