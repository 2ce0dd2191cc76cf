package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestEmptyCredentials checks that an empty credential prevents the start, on the command line and in the environment.
// Other settings may be empty, and a flag wins.
func TestEmptyCredentials(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		says string
	}{
		{"none", nil, nil, ""},
		{"a file", []string{"--secrets-key-file", "key"}, nil, ""},
		{"an empty flag", []string{"--secrets-key-file="}, nil, "--secrets-key-file is empty"},
		{"a blank flag", []string{"--api-client-ca", " "}, nil, "--api-client-ca is empty"},
		{"an empty variable", nil, map[string]string{"CAUSEWAY_SECRETS_KEY_FILE": ""},
			"CAUSEWAY_SECRETS_KEY_FILE is set and empty"},
		{"an empty passphrase", nil, map[string]string{"CAUSEWAY_SECRETS_PASSPHRASE": ""},
			"CAUSEWAY_SECRETS_PASSPHRASE is set and empty"},
		{"a flag over an empty variable", []string{"--secrets-key-file", "key"},
			map[string]string{"CAUSEWAY_SECRETS_KEY_FILE": ""}, ""},
		{"another setting", []string{"--api-address="}, map[string]string{"CAUSEWAY_API_ADDRESS": ""}, ""},
		{"a requirement", nil, map[string]string{"CAUSEWAY_API_REQUIRE_CREDENTIAL": "true"}, ""},
		{"an empty requirement", nil, map[string]string{"CAUSEWAY_API_REQUIRE_CREDENTIAL": ""},
			"CAUSEWAY_API_REQUIRE_CREDENTIAL is set and empty"},
		{"an empty file of settings", nil, map[string]string{"CAUSEWAY_CONFIG": ""}, "CAUSEWAY_CONFIG is set and empty"},
		{"an empty flag for the file of settings", []string{"--config="}, nil, "--config is empty"},
		{"a misspelled requirement", nil, map[string]string{"CAUSEWAY_API_REQUIRE_CREDENTIALS": "true"},
			"nothing reads the variable CAUSEWAY_API_REQUIRE_CREDENTIALS: is it CAUSEWAY_API_REQUIRE_CREDENTIAL?"},
		{"a misspelled passphrase", nil, map[string]string{"CAUSEWAY_SECRET_PASSPHRASE": "x"},
			"is it CAUSEWAY_SECRETS_PASSPHRASE?"},
		{"a variable of a cluster", nil, map[string]string{"CAUSEWAY_ZONE_SERVICE_HOST": "10.0.0.1"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			for _, name := range []string{"secrets-key-file", "api-client-ca", "api-address"} {
				flags.String(name, "", "")
			}
			flags.Bool("api-require-credential", false, "")
			AddConfigFlag(flags)
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			if err := Load(flags); (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// TestUnreadableCredential checks that a dangling credential of the service manager sets the flag, so that reading it
// fails. Otherwise, the server would create its own key.
func TestUnreadableCredential(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	for _, there := range []bool{false, true} {
		if there {
			if err := os.Symlink("nowhere", filepath.Join(dir, "key")); err != nil {
				t.Fatal(err)
			}
		}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		file := flags.String("secrets-key-file", "", "")
		UseCredential(flags, "secrets-key-file", "key")
		if err := Load(flags); err != nil || (*file != "") != there {
			t.Errorf("there %t: %q %v", there, *file, err)
		}
	}
}

// TestEmptyCredentialsInFiles checks that an empty credential in the settings file prevents the start.
func TestEmptyCredentialsInFiles(t *testing.T) {
	for document, says := range map[string]string{
		"api-require-credential: true":               "",
		"api-require-credential:":                    "api-require-credential is empty",
		"api-require-credential: null":               "api-require-credential is empty",
		`api-client-ca: ""`:                          "api-client-ca is empty",
		`secrets-key-file: " "`:                      "secrets-key-file is empty",
		"secrets-key-file: ~\napi-client-ca: ca.crt": "secrets-key-file is empty",
		`api-address: ""`:                            "",
	} {
		path := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		for _, name := range []string{"secrets-key-file", "api-client-ca", "api-address"} {
			flags.String(name, "", "")
		}
		flags.Bool("api-require-credential", false, "")
		AddConfigFlag(flags)
		if err := flags.Parse([]string{"--config", path}); err != nil {
			t.Fatal(err)
		}
		if err := Load(flags); (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", document, err, says)
		}
	}
}
