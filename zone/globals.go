package zone

import (
	"fmt"
	"net/url"
	"strings"
)

// maxGlobals limits the addresses of a global.
const maxGlobals = 16

// globals parses the addresses in Global. The error names the invalid one.
func (c *Config) globals() ([]*url.URL, error) {
	parts := strings.Split(c.Global, ",")
	if len(parts) > maxGlobals {
		return nil, fmt.Errorf("global: %d addresses, want at most %d", len(parts), maxGlobals)
	}
	var urls []*url.URL
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if len(urls) > 0 && !strings.Contains(part, "://") {
			part = urls[0].Scheme + "://" + part
		}
		u, err := url.Parse(part)
		switch {
		case err != nil || u.Host == "" || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.RawQuery != "" ||
			u.User != nil:
			return nil, fmt.Errorf("global %q: want grpcs://host:port, and the replicas' as host:port after commas", part)
		case u.Scheme != "grpc" && u.Scheme != "grpcs":
			return nil, fmt.Errorf("global %q: want the scheme grpcs (or grpc on loopback)", part)
		case len(urls) > 0 && u.Scheme != urls[0].Scheme:
			return nil, fmt.Errorf("global %q: want the scheme of the first address, %s", part, urls[0].Scheme)
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// GlobalAddresses returns the host:port of each address in a global's URL, in the form of Config.Global. The scheme
// must be grpcs. The error names the invalid address.
func GlobalAddresses(global string) ([]string, error) {
	urls, err := (&Config{Global: global}).globals()
	if err != nil {
		return nil, err
	}
	if urls[0].Scheme != "grpcs" {
		return nil, fmt.Errorf("global %q: want grpcs://host:port", global)
	}
	var out []string
	for _, u := range urls {
		out = append(out, u.Host)
	}
	return out, nil
}
