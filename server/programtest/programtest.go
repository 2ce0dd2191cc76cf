// Package programtest compiles programs of the repository for tests, each once for all test packages.
package programtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Linked is the environment variable that make sets after LinkAll: Build then compiles nothing.
const Linked = "CAUSEWAY_TEST_PROGRAMS"

// Names of sets of programs.
const (
	// Release is the three programs of the repository, like a release without the page.
	Release = "release"
	// SettableClock is the same programs, with a clock that a test sets.
	SettableClock = "settableclock"
	// Load is the load generators beside the repository. There may be none.
	Load = "load"
	// Browser is all programs that the tests of the page start, with the page.
	Browser = "browser"
)

// set is a folder of programs.
type set struct {
	// packages are the folders of the programs. A program has the name of its folder.
	packages []string
	tags     string // build tags
	// module, if set, is another module that has the packages, relative to the repository. It need not be there.
	module string
}

// withoutPage is the build tag that leaves the page out. A change of the page then changes no program that tests of
// servers start. make test-page and make test-browser test the page. What is built together has the same tags.
const withoutPage = "withoutpage"

var ours = []string{"./cmd/causeway-global", "./cmd/causeway-zone", "./cmd/causewayctl"}

// sets are all programs that tests start, by the names of their folders. Build knows no others, and LinkAll links all but
// Browser.
var sets = map[string]set{
	Release:          {packages: ours, tags: withoutPage},
	SettableClock:    {packages: ours, tags: withoutPage + ",settableclock"},
	Load:             {packages: []string{"./kdsload", "./proxyload"}, module: "../shared/load"},
	"app":            {packages: []string{"./test/kubernetes/app"}, tags: withoutPage},
	"demo":           {packages: []string{"./test/demo"}, tags: withoutPage},
	"idp":            {packages: []string{"./test/idp"}, tags: withoutPage},
	"member":         {packages: []string{"./resources/store/etcd/etcdtest/member"}, tags: withoutPage},
	"proxyless-grpc": {packages: []string{"./docs/proxyless-grpc"}, tags: withoutPage},
	Browser: {packages: append([]string{"./test/demo", "./test/idp", "./test/peer/refuser",
		"./resources/store/etcd/etcdtest/member"}, ours...)},
}

// Root returns the folder of the repository, searched from the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory: run this inside the repository")
		}
		dir = parent
	}
}

// Build returns the folder of a set of programs in .run/programs, and lists it, so that the go command runs a test again
// when a program of the set has changed. It links the programs first, unless Linked says that LinkAll has.
func Build(ctx context.Context, name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	l := linkerOf(root)
	s, known := l.sets[name]
	if !known {
		return "", fmt.Errorf("no set of programs is named %s: name it in package programtest", name)
	}
	if os.Getenv(Linked) == "" {
		if err := l.link(ctx, name); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(l.dir, name)
	switch found, err := os.ReadDir(dir); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	case len(found) < len(s.packages) && s.module == "":
		return "", fmt.Errorf("%s lacks programs: run go run ./test/programs before %s is set", dir, Linked)
	}
	return dir, nil
}

// Look lists a set of programs that Build returned before, and that a test uses now. The go command learns of what a test
// looks at, and not of what TestMain looks at before it runs the tests.
func Look(name string) {
	if root, err := Root(); err == nil {
		_, _ = os.ReadDir(filepath.Join(linkerOf(root).dir, name))
	}
}

// Program is Build for a set of one program of the same name. It returns the program's path.
func Program(ctx context.Context, name string) (string, error) {
	dir, err := Build(ctx, name)
	return filepath.Join(dir, name), err
}
