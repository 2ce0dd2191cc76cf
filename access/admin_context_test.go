package access_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/credential/contexts"
)

// TestAdminContext checks what the file says for each way in which the API listens, and that it follows a change.
func TestAdminContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "tls", "ca.crt"), filepath.Join(dir, "admin.token")
	for _, tt := range []struct {
		api, token string
		want       contexts.Context
	}{
		{"127.0.0.1:5681", "", contexts.Context{Address: "http://127.0.0.1:5681"}},
		{"[::1]:5681", token, contexts.Context{Address: "http://[::1]:5681", TokenFile: token}},
		{"10.0.0.1:5681", token, contexts.Context{Address: "https://10.0.0.1:5681", CA: ca, TokenFile: token}},
		{"0.0.0.0:1", token, contexts.Context{Address: "https://127.0.0.1:1", CA: ca, TokenFile: token}},
		{"[::]:1", token, contexts.Context{Address: "https://127.0.0.1:1", CA: ca, TokenFile: token}},
	} {
		api, err := net.ResolveTCPAddr("tcp", tt.api)
		if err != nil {
			t.Fatal(err)
		}
		for _, damaged := range []string{"", "\x00{", "contexts: [{name: zone-1, address: nowhere}]", "unknown: 1"} {
			if err := os.WriteFile(filepath.Join(dir, "context.yaml"), []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := access.WriteAdminContext(dir, "zone-1", api, ca, tt.token); err != nil {
				t.Errorf("beside %q: %v", damaged, err)
			}
		}
		var modified [2]os.FileInfo
		for i := range modified {
			path, err := access.WriteAdminContext(dir, "zone-1", api, ca, tt.token)
			if err != nil {
				t.Fatal(err)
			}
			files, err := contexts.ReadFiles(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := files.Find(files.Current())
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Name = "zone-1"
			if diff := cmp.Diff(&tt.want, got); diff != "" || len(files.Names()) != 1 {
				t.Errorf("%s: %v\n%s", tt.api, files.Names(), diff)
			}
			if modified[i], err = os.Stat(path); err != nil {
				t.Fatal(err)
			}
		}
		if !os.SameFile(modified[0], modified[1]) {
			t.Errorf("%s: the file was written again without a change", tt.api)
		}
	}
}
