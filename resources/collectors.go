package resources

import (
	"github.com/causeway-mesh/causeway/resources/reach"
)

// collectors checks where a policy has proxies send what they record. An operator's goes anywhere. An owner of a
// namespace has her own proxies send it elsewhere or to an agent beside them, and those of her service's clients, whose
// machines are not hers, elsewhere only.
func (v *validation) collectors(conf any, at *fieldPath) {
	role := RoleOf(v.resource, v.home.systemNamespace())
	if role == RoleSystem {
		return
	}
	at = at.field("backends")
	check := func(i int, name, field, host string, err error) {
		if err != nil {
			return // reported as a value of the field
		}
		if role == RoleProducer {
			if why := reach.NoDestination(host); why != "" {
				v.fail(at.item(i).field(name).field(field), "the proxies of the service's clients would send to %q, which %s", shorten(host), why)
			}
		} else if ip, err := ParseIP(host); err == nil {
			if why := reach.NoApplication(ip); why != "" {
				v.fail(at.item(i).field(name).field(field), "%s %s: no collector is there", shorten(host), why)
			}
		}
	}
	switch c := conf.(type) {
	case *AccessLogConf:
		for i := range c.Backends {
			if o := c.Backends[i].OpenTelemetry; o != nil {
				host, _, err := ParseCollectorEndpoint(o.Endpoint)
				check(i, "openTelemetry", "endpoint", host, err)
			}
			if t := c.Backends[i].TCP; t != nil {
				host, _, err := hostPort(t.Address, 0)
				check(i, "tcp", "address", host, err)
			}
		}
	case *MetricConf:
		for i := range c.Backends {
			if o := c.Backends[i].OpenTelemetry; o != nil {
				host, _, err := ParseCollectorEndpoint(o.Endpoint)
				check(i, "openTelemetry", "endpoint", host, err)
			}
		}
	case *TraceConf:
		for i := range c.Backends {
			name, field, host, _, err := c.Backends[i].collector()
			check(i, name, field, host, err)
		}
	}
}

// collector returns the field of a backend that says where spans go, and what it says.
func (b *TraceBackend) collector() (name, field, host string, port uint32, err error) {
	switch {
	case b.OpenTelemetry != nil:
		host, port, err = ParseCollectorEndpoint(b.OpenTelemetry.Endpoint)
		return "openTelemetry", "endpoint", host, port, err
	case b.Zipkin != nil:
		name, field = "zipkin", b.Zipkin.URL
	case b.Datadog != nil:
		name, field = "datadog", b.Datadog.URL
	default:
		return "", "", "", 0, errNoCollector
	}
	u, err := ParseCollectorURL(field)
	if err == nil {
		host, port, err = CollectorAddress(u)
	}
	return name, "url", host, port, err
}

// Collector returns the host and port to which spans go.
func (b *TraceBackend) Collector() (host string, port uint32, err error) {
	_, _, host, port, err = b.collector()
	return host, port, err
}
