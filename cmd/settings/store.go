package settings

import (
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/resources/store/backend"
)

// AddStoreFlags adds the flags that select a command's store. prefix is the default path in etcd; if it depends on
// other settings, the command describes it. The password for etcd comes from backend.PasswordEnv.
func AddStoreFlags(f *pflag.FlagSet, c *backend.Config, prefix string) {
	f.StringVar(&c.Kind, "store", backend.Bolt,
		"where to store resources: `bolt`, a file in the data folder, or etcd, a cluster that several servers share")
	f.StringSliceVar(&c.Endpoints, "etcd-endpoints", nil,
		"`URLs` of etcd's members, such as https://10.0.0.1:2379,https://10.0.0.2:2379")
	f.StringVar(&c.Prefix, "etcd-prefix", prefix,
		"`path` in etcd of this server's keys; servers with the same path are replicas")
	f.StringVar(&c.CAFile, "etcd-ca", "",
		"`file` of the CA certificates that verify etcd's members; the system's by default")
	f.StringVar(&c.CertFile, "etcd-cert", "", "`file` of this server's certificate for etcd")
	f.StringVar(&c.KeyFile, "etcd-key", "", "`file` of the key of --etcd-cert")
	f.StringVar(&c.Username, "etcd-username", "", "user `name` in etcd; the password comes from "+backend.PasswordEnv)
}

// AddStartFlag adds the flag for how long a starting server waits for etcd.
func AddStartFlag(f *pflag.FlagSet, c *backend.Config) {
	f.DurationVar(&c.StartTimeout, "etcd-start-timeout", backend.DefaultStartTimeout,
		"`time` to retry a start while etcd does not answer; 0 tries once")
}
