package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/resources/store/backend"
)

// aliases is a small YAML document that expands to 10^9 values.
var aliases = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + func() (out string) {
	for i := range 8 {
		out += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	return out
}()

func TestLoadPrecedence(t *testing.T) {
	tests := []struct {
		name, file, env string
		args            []string
		want, wantErr   string
		// envList is CAUSEWAY_ETCD_ENDPOINTS. wantList is the resulting value of the flag.
		envList, wantList string
	}{
		{name: "default", want: ":5685"},
		{name: "file over default", file: "kds-address: :1\n", want: ":1"},
		{name: "environment over file", file: "kds-address: :1\n", env: ":2", want: ":2"},
		{name: "flag over environment", file: "kds-address: :1\n", env: ":2", args: []string{"--kds-address=:3"}, want: ":3"},
		{name: "list in the file", file: "etcd-endpoints: [http://a:1, http://b:2]\n", want: ":5685",
			wantList: "http://a:1,http://b:2"},
		{name: "list in the environment", envList: "http://a:1,http://b:2", want: ":5685", wantList: "http://a:1,http://b:2"},
		{name: "unknown key", file: "kds-adress: :1\n",
			wantErr: `unknown setting "kds-adress"; the settings are: etcd-ca, etcd-cert, etcd-endpoints,`},
		{name: "wrong type", file: "kds-tls: perhaps\n", wantErr: "setting kds-tls"},
		{name: "not YAML", file: "{", wantErr: "--config"},
		{name: "a key twice", file: "kds-address: :1\nkds-address: :2\n", wantErr: "already"},
		{name: "a key in two spellings", file: "kds-address: :1\nKDS-Address: :2\n", wantErr: `unknown setting "KDS-Address"`},
		{name: "a key in another spelling", file: "KDS-Address: :2\n", wantErr: `unknown setting "KDS-Address"`},
		{name: "two documents", file: "kds-address: :1\n---\nkds-address: :2\n", wantErr: "more than one document"},
		{name: "aliases of aliases", file: aliases, wantErr: "excessive aliasing"},
		{name: "deep", file: "kds-address: " + strings.Repeat("[", 20_000), wantErr: "--config"},
		{name: "a list for a text", file: "kds-address: [[[:1]]]\n", wantErr: "--config"},
		{name: "long", file: "kds-address: :1\n#" + strings.Repeat("x", 1<<20), wantErr: "more than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
			address := flags.String("kds-address", ":5685", "")
			flags.Bool("kds-tls", true, "")
			var kept backend.Config
			settings.AddStoreFlags(flags, &kept, "/causeway/global")
			settings.AddConfigFlag(flags)
			args := tt.args
			if tt.file != "" {
				path := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", path)
			}
			if tt.env != "" {
				t.Setenv("CAUSEWAY_KDS_ADDRESS", tt.env)
			}
			if tt.envList != "" {
				t.Setenv("CAUSEWAY_ETCD_ENDPOINTS", tt.envList)
			}
			if err := flags.Parse(args); err != nil {
				t.Fatal(err)
			}
			err := settings.Load(flags)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if *address != tt.want {
				t.Errorf("got %q, want %q", *address, tt.want)
			}
			if got := strings.Join(kept.Endpoints, ","); got != tt.wantList {
				t.Errorf("endpoints are %q, want %q", got, tt.wantList)
			}
		})
	}
}
