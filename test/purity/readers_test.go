package purity

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// opens matches code that opens a file directly.
var opens = regexp.MustCompile(
	`\b(os\.(ReadFile|Open|OpenFile|OpenRoot|DirFS|OpenInRoot)|ioutil\.ReadFile|tls\.LoadX509KeyPair|ReadInConfig)\(`)

// noCredentials are the source files that open files, and why those are not credentials. Package credential reads all
// credentials.
var noCredentials = map[string]string{
	"access/intents.go":                         "the audit log",
	"access/journal.go":                         "the audit log",
	"access/journal_lines.go":                   "the audit log",
	"cmd/causewayctl/backup.go":                 "a backup, of any size",
	"cmd/causewayctl/bundle.go":                 "writes a bundle",
	"cmd/causewayctl/bundle_collect.go":         "the end of a log, and settings of which secrets are taken out",
	"cmd/causewayctl/documents.go":              "resources",
	"cmd/causewayctl/install.go":                "values of a chart",
	"cmd/settings/clock_settable.go":            "the clock of a test, in no shipped program",
	"kds/version_files.go":                      "what a zone knows of its peer",
	"place/folder.go":                           "says which folder it is in",
	"place/place.go":                            "looks at folders",
	"place/rename.go":                           "forces what is there to the disk",
	"resources/store/archive/collect.go":        "files of the data folder for a backup, sealed as they are",
	"resources/store/archive/restore.go":        "writes the files of a backup",
	"resources/store/archive/unfinished.go":     "that a restore was interrupted",
	"resources/store/bolt/open.go":              "the store",
	"resources/store/bolt/scan.go":              "the store",
	"resources/store/etcd/etcdtest/etcdtest.go": "a process of a test",
	"resources/store/fsck/files.go":             "checks files of the data folder",
	"secrets/config.go":                         "whether a file was sealed, and the folder of a key",
	"server/cluster_id.go":                      "an id",
	"server/peer_linux.go":                      "the kernel's table of connections",
	"server/birth.go":                           "says which folder it is in",
	"server/programtest/link.go":                "programs for tests, and the lock of a build",
	"server/resources_linux.go":                 "counts open files",
	"zone/external_sources.go":                  "the folder that package credential reads in",
	"zone/checkpoint/file.go":                   "what proxies hold, sealed, of any size",
	"zone/checkpoint/write.go":                  "what proxies hold, sealed",
}

// TestCredentialsAreReadInOnePlace checks that no program opens a file directly, except for known files that are not
// credentials.
func TestCredentialsAreReadInOnePlace(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, folder := range []string{"access", "api", "cmd", "enrolment", "global", "kds", "panics", "place", "printing",
		"questions", "resources", "secrets", "server", "tokens", "zone"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			if name, _ := filepath.Rel(root, path); err == nil && opens.Match(raw) {
				found[filepath.ToSlash(name)] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range found {
		if noCredentials[name] == "" {
			t.Errorf("%s opens files: read credentials by package credential, or say here why it is none", name)
		}
	}
	for name := range noCredentials {
		if !found[name] {
			t.Errorf("%s opens no files any more: take it out of the list", name)
		}
	}
}

// byHand matches handlers that read a body or write an answer directly instead of with api.ReadJSON and api.WriteJSON,
// which enforce limits and escape what a terminal would obey.
var byHand = regexp.MustCompile(`json\.NewEncoder\((w|printing\.NewWriter\(w\))\)|json\.NewDecoder\(r\.Body|(ReadAll|MaxBytesReader|LimitReader)\([^)]*r\.Body|http\.MaxBytesReader\(`)

// TestBodiesAndAnswersHaveOneWay checks that no handler reads or writes JSON directly.
func TestBodiesAndAnswersHaveOneWay(t *testing.T) {
	ways := map[string]bool{"api/body.go": true, "api/body_json.go": true}
	for _, folder := range []string{"access", "global", "api", "server", "zone"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			if name, _ := filepath.Rel(root, path); err == nil && !ways[filepath.ToSlash(name)] && byHand.Match(raw) {
				t.Errorf("%s: %s", name, byHand.Find(raw))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
