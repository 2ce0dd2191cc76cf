package injection

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/capture"
)

// captureSettings returns the rules of capture for a pod.
func captureSettings(o *options, s *Settings, probes *prober) (*capture.Settings, error) {
	out := &capture.Settings{ProxyUser: proxyUser, InboundPort: inboundPort, OutboundPort: outboundPort,
		ExcludeInboundPorts: []capture.Ports{{First: readyPort, Last: readyPort}}}
	if len(probes.probes) > 0 {
		out.ExcludeInboundPorts = append(out.ExcludeInboundPorts, capture.Ports{First: uint16(o.probePort), Last: uint16(o.probePort)})
	}
	if s.CNI {
		out.ProofPort, out.ProofTo = ProofPort, readyPort
	}
	var err error
	if out.ExcludeInboundPorts, err = parsed(out.ExcludeInboundPorts, o.notInPorts, capture.ParsePorts); err != nil {
		return nil, err
	}
	if out.ExcludeOutboundPorts, err = parsed(nil, o.notOutPorts, capture.ParsePorts); err != nil {
		return nil, err
	}
	if out.ExcludeInboundAddresses, err = parsed(nil, o.notInAddresses, capture.ParsePrefix); err != nil {
		return nil, err
	}
	out.ExcludeOutboundAddresses, err = parsed(nil, o.notOutAddress, capture.ParsePrefix)
	return out, err
}

// parsed adds what options have accepted as text.
func parsed[T any](to []T, list []string, parse func(string) (T, error)) ([]T, error) {
	for _, text := range list {
		one, err := parse(text)
		if err != nil {
			return nil, err
		}
		to = append(to, one)
	}
	return to, nil
}

// texts returns the value of a flag.
func texts[T fmt.Stringer](all []T) string { return strings.Join(each(all), ",") }

func each[T fmt.Stringer](all []T) (out []string) {
	for _, one := range all {
		out = append(out, one.String())
	}
	return out
}
