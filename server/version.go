package server

import "runtime/debug"

// version is set by the build: -ldflags "-X github.com/causeway-mesh/causeway/server.version=v1.2.3".
var version string

// Version returns the version of this binary; "dev" and the commit, if known, for builds without one.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "dev-" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "dev"
}
