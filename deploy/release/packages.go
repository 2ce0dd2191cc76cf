package main

import (
	"context"
	_ "embed" // the description of the packages, and their scripts
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"
)

//go:embed nfpm.yaml.tmpl
var described string

// What a package manager runs for the unit @UNIT@.
//
//go:embed postinstall.sh
var postInstall string

//go:embed preremove.sh
var preRemove string

//go:embed postremove.sh
var postRemove string

// aPackage holds the values for the template of a package's description.
type aPackage struct {
	Name, Version, Arch, Stage, When string
	// Settings is the name of a server's settings file and unit; empty for the command line.
	Settings string
	Summary  string
}

var summaries = map[string]string{
	"causeway-global": "The global server of a Causeway mesh",
	"causeway-zone":   "The server of one zone of a Causeway mesh",
	"causewayctl":     "Apply, read and explain the resources of a Causeway mesh",
}

// pack creates the packages of each program, in each format.
func (r *release) pack(ctx context.Context, arch string) error {
	form, err := template.New("nfpm").Parse(described)
	if err != nil {
		return err
	}
	for _, program := range programs {
		p := aPackage{Name: program, Version: packageVersion(r.version), Arch: arch, Stage: r.stage,
			When: r.when.Format(time.RFC3339), Summary: summaries[program]}
		if settings, server := strings.CutPrefix(program, "causeway-"); server {
			p.Settings = settings
			if err := r.stageScripts(program); err != nil {
				return err
			}
		}
		var filled strings.Builder
		if err := form.Execute(&filled, p); err != nil {
			return err
		}
		config := filepath.Join(r.stage, program+".yaml")
		if err := os.WriteFile(config, []byte(filled.String()), 0o600); err != nil {
			return err
		}
		for _, kind := range []string{"deb", "rpm"} {
			target := filepath.Join(r.out, fmt.Sprintf("%s_%s_%s.%s", program, r.version, arch, kind))
			epoch := []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.when.Unix())}
			if err := r.command(ctx, epoch, r.nfpm, "package", "--config", config, "--packager", kind, "--target",
				target); err != nil {
				return err
			}
		}
	}
	return nil
}

// stageScripts writes what a package manager runs for a server, whose unit has the name of the program.
func (r *release) stageScripts(program string) error {
	for moment, script := range map[string]string{"postinstall": postInstall, "preremove": preRemove, "postremove": postRemove} {
		script = strings.ReplaceAll(script, "@UNIT@", program)
		if err := os.WriteFile(filepath.Join(r.stage, program+"."+moment), []byte(script), 0o600); err != nil {
			return err
		}
	}
	return nil
}

var released = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)(?:-(.+))?$`)

// packageVersion returns a version in the form of packages: v1.2.3-rc.1 becomes 1.2.3~rc.1, which sorts before 1.2.3. A
// version that is not a release sorts before all releases.
func packageVersion(version string) string {
	m := released.FindStringSubmatch(version)
	switch {
	case m == nil:
		return "0.0.0~" + strings.ReplaceAll(version, "-", ".")
	case m[2] != "":
		return m[1] + "~" + strings.ReplaceAll(m[2], "-", ".")
	}
	return m[1]
}
