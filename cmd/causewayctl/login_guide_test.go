package main

import (
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// What differs from one sign-in to the next, and how the guide shows it.
var shownInGuide = []struct{ like, shown string }{
	{`\?client_id=\S+`, "?client_id=..."},
	{`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \w+`, "2026-11-26 14:05:00 UTC"},
	{`before \d\d:\d\d:\d\d`, "before 14:05:00"},
	{`\b[A-Z2-7]{8}\b`, "WDJBMJHT"},
	{` +`, " "},
}

// signInGuide runs the commands of docs/guides/sign-in.md against the servers of the script, and expects what the page
// shows: `sign-in-guide`.
func signInGuide(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: sign-in-guide")
	}
	root, err := cluster.Root()
	ts.Check(err)
	commands, err := pages.Read(root, "docs/guides/sign-in.md", "")
	ts.Check(err)
	here := strings.NewReplacer("bin/causewayctl", "causewayctl", "--address https://global.example:5681 --ca ca.crt",
		"--address "+ts.Getenv("SERVER")+" --provider-ca "+ts.Getenv("PROVIDER_CA"), "--device", "--device --provider-ca "+ts.Getenv("PROVIDER_CA"))
	page := strings.NewReplacer(ts.Getenv("SERVER"), "https://global.example:5681", ts.Getenv("ISSUER"), "https://idp.example")
	shown := func(text string) string {
		for _, r := range shownInGuide {
			text = regexp.MustCompile(r.like).ReplaceAllString(text, r.shown)
		}
		return strings.TrimSpace(text)
	}
	for _, c := range commands {
		cmd := exec.Command("sh", "-c", here.Replace(c.Text)) //nolint:gosec // a command of the guide
		cmd.Dir = ts.MkAbs(".")
		for _, name := range []string{"PATH", "XDG_CONFIG_HOME", "DISPLAY", "HOME"} {
			cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
		}
		said, _ := cmd.CombinedOutput() // the guide shows failures too
		if got, want := shown(page.Replace(string(said))), shown(strings.Join(c.Output, "\n")); got != want {
			ts.Fatalf("%s:%d: %s prints\n%s\nand the page shows\n%s", "sign-in.md", c.Line, c.Text, got, want)
		}
	}
}
