package server

import (
	"net"
	"net/http"
	"net/http/pprof"
)

// profilesPath is where Go's tools look for profiles.
const profilesPath = "/debug/pprof/"

// addProfiles serves the process's CPU, memory and goroutine profiles if a is loopback. Otherwise it refuses them,
// because they show the process's memory, and a caller decides how much taking one costs.
func addProfiles(mux *http.ServeMux, a net.Addr) {
	if !IsLoopback(a) {
		mux.HandleFunc(profilesPath, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "profiles are served on loopback only: restart with --diagnostics-address 127.0.0.1:PORT to take them", http.StatusForbidden)
		})
		return
	}
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "trace": pprof.Trace} {
		mux.Handle("GET "+profilesPath+path, withoutPages(profile))
	}
}
