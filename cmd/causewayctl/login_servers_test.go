package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/web"
	"github.com/causeway-mesh/causeway/zone"
)

// provider returns the program of the identity provider, test/idp.
var provider = sync.OnceValues(func() (string, error) { return programtest.Program(context.Background(), "idp") })

// startForLogin runs an identity provider, whose tokens hold for 5 s and in which nora enters each device code, and the
// zone zone-1, which trusts it, until the script ends. SERVER is the zone's address, ISSUER the provider's,
// PROVIDER_CA its CA, and PROVIDER its process.
func startForLogin(env *testscript.Env) error {
	program, err := provider()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "--dir", env.WorkDir, "--life", "5s", "--approve", "nora") //nolint:gosec // the program was just built
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	env.Defer(func() {
		_ = cmd.Process.Kill() // the script may have ended it
		_ = cmd.Wait()
	})
	var says struct{ Issuer, CA string }
	if err := json.NewDecoder(out).Decode(&says); err != nil {
		return err
	}
	config := zone.Config{Page: web.New()}
	config.Access.RequireCredential = true
	config.Access.OIDC = access.OIDCSettings{Issuer: says.Issuer, ClientID: "causeway", CAFile: says.CA}
	if config.DataDir, err = serverDir(env); err != nil {
		return err
	}
	ready, err := startZone(env, config)
	env.Setenv("SERVER", "http://"+ready["api"])
	env.Setenv("PROVIDER_CA", says.CA)
	env.Setenv("ISSUER", says.Issuer)
	env.Setenv("PROVIDER", fmt.Sprint(cmd.Process.Pid))
	env.Setenv("TOKEN", filepath.Join(config.DataDir, "admin.token"))
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("PATH", filepath.Join(env.WorkDir, "bin")+string(os.PathListSeparator)+env.Getenv("PATH"))
	return err
}
