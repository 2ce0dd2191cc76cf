package settings

import (
	"os"
	"path/filepath"

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
	if _, err := os.Stat(path); err != nil { //nolint:gosec // the service manager names its own folder
		return ""
	}
	return path
}
