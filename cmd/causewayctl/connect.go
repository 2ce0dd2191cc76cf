package main

import (
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/server"
)

// connect prepares a client for the server that the flags, a context or the environment name. It sends nothing yet.
func (c *cli) connect() (*api.Client, error) {
	if err := c.choose(); err != nil {
		return nil, err
	}
	if c.timeout <= 0 {
		return nil, usagef("--timeout %s: want more than 0, such as 30s", c.timeout)
	}
	config := api.ClientConfig{Address: c.address, Timeout: c.timeout, UserAgent: "causewayctl/" + server.Version(),
		LeftOut: c.left.add, Warned: c.left.warn}
	var err error
	if config.Dial, err = c.kube.dialer(c); err != nil {
		return nil, err
	}
	if err := c.credential.apply(&config, c.caFile); err != nil {
		return nil, err
	}
	client, err := api.NewClient(config)
	if err != nil {
		return nil, usagef("--address: %w", err)
	}
	client.AtLeast(c.revision)
	return client, nil
}
