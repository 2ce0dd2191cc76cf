package etcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

var _ = flag.Bool("update", false, "write the golden file of the present format, where there is none")

var instances = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// dump returns a line for each key below a prefix: the key, without the prefix, and its value, both quoted.
func dump(t *testing.T, client *clientv3.Client, prefix string) string {
	t.Helper()
	r, err := client.Get(t.Context(), prefix+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, kv := range r.Kvs {
		_, _ = fmt.Fprintf(&out, "%q %q\n", strings.TrimPrefix(string(kv.Key), prefix),
			instances.ReplaceAllString(string(kv.Value), "writer"))
	}
	return out.String()
}

// put is the reverse of dump.
func put(t *testing.T, client *clientv3.Client, prefix, dump string) {
	t.Helper()
	for line := range strings.Lines(dump) {
		var key, value string
		if _, err := fmt.Sscanf(line, "%q %q", &key, &value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, err := client.Put(t.Context(), prefix+key, value); err != nil {
			t.Fatal(err)
		}
	}
}

// golden returns the golden dump of a format, and one of what is written today.
func golden(t *testing.T, c *etcdtest.Cluster, format int) (kept, now string) {
	t.Helper()
	s := open(t, Config{Endpoints: c.Endpoints(), Program: "v0.0.1"})
	if err := s.Replace(t.Context(), storetest.GoldenRevision, storetest.Golden()); err != nil {
		t.Fatal(err)
	}
	now = dump(t, s.client, s.config.Prefix)
	path := storetest.GoldenFile(t, format, ".txt", func(path string) error {
		if format != len(formats()) {
			return fmt.Errorf("format %d: only the present one can be written", format)
		}
		return os.WriteFile(path, []byte(now), 0o600)
	})
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), now
}

func clientOf(t *testing.T, c *etcdtest.Cluster) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestGoldenLayouts checks that each format still reads to the same content, and that today's is unchanged, byte by
// byte.
func TestGoldenLayouts(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	client := clientOf(t, c)
	for format := 1; format <= len(formats()); format++ {
		kept, now := golden(t, c, format)
		prefix := fmt.Sprintf("/golden-%d", format)
		put(t, client, prefix, kept)
		s := open(t, Config{Endpoints: c.Endpoints(), Prefix: prefix, Program: "v1.2.3"})
		all := s.Snapshot()
		if wrong := storetest.Missing(everything(all), storetest.Golden()); wrong != "" ||
			all.Revision() != storetest.GoldenRevision {
			t.Errorf("format %d at %d:\n%s", format, all.Revision(), wrong)
		}
		if got := keysBelow(t, s, prefix+"/program"); len(got) != 1 {
			t.Errorf("format %d: it is not noted which program opened it: %q", format, got)
		}
		if format == len(formats()) && now != kept {
			t.Errorf("the format has changed: give it a new number, and keep what reads the old one\ngot\n%swant\n%s", now, kept)
		}
	}
}

// TestLayoutOfANewerFormat checks that it is refused with the version that can read it, and stays as it is; so does a
// foreign one.
func TestLayoutOfANewerFormat(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	client := clientOf(t, c)
	kept, _ := golden(t, c, len(formats()))
	put(t, client, "/newer", kept)
	reads := len(formats())
	for _, tt := range []struct{ format, program, want string }{
		{strconv.Itoa(reads + 1), "v9.8.7", fmt.Sprintf(`open the store: /newer has format %d, and this program reads up to %d: format is too new: use version "v9.8.7", which wrote it, or a newer one`, reads+1, reads)},
		{strconv.Itoa(reads + 1), "", fmt.Sprintf(`open the store: /newer has format %d, and this program reads up to %d: format is too new: use the newer program`, reads+1, reads)},
		{"blue", "",
			`open the store: /newer/format is "blue", not a format version: is /newer the prefix of something else?`},
	} {
		put(t, client, "/newer", fmt.Sprintf("%q %q\n%q %q\n", "/format", tt.format, "/program", tt.program))
		before := dump(t, client, "/newer")
		s, err := Open(context.Background(), Config{Endpoints: c.Endpoints(), Prefix: "/newer", Program: "v1", Log: quiet()})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || err.Error() != tt.want || errors.Is(err, ErrFormat) != (tt.format != "blue") {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
		if dump(t, client, "/newer") != before {
			t.Error("it was changed")
		}
	}
}

func everything(s store.Snapshot) (out []*resources.Resource) {
	for r := range store.All(s) {
		out = append(out, r)
	}
	return out
}
