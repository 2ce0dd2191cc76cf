package server

import (
	"fmt"
	"net"
	"regexp"
)

// hostName is a DNS name, or one with a star in place of its first label.
var hostName = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)

const maxHostName = 253

// CheckHosts checks that a certificate can cover the hosts: DNS names in lower case and IP addresses, without ports.
func CheckHosts(hosts []string) error {
	for _, host := range hosts {
		if net.ParseIP(host) == nil && (len(host) > maxHostName || !hostName.MatchString(host)) {
			return fmt.Errorf("%q is neither a DNS name nor an IP address: want, for example, zone-1.example or 192.0.2.1, without a port", host)
		}
	}
	return nil
}
