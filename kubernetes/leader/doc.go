// Package leader lets the servers of a StatefulSet stand in for each other with nothing but a Kubernetes cluster
// beside them. A Lease names the one that leads: it alone serves, writes, and speaks to other servers. What outlives
// its pod and is not in users' objects is in Secrets, sealed. A replica that takes the lead fills its data folder from
// them, and starts on it as a single server starts on its volume.
package leader
