#!/bin/bash
# The first process of a node: it arranges the mounts, and keeps the node's programs running. DIR, NODE, NODE_ADDRESS
# and SERVICES are in its environment.
set -euo pipefail

mkdir -p /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers
# A new /sys shows this network; the control groups under it are kept. This comes before anything is shared, or the
# unmounting would spread to where the kubelet looks for them.
mount -t tmpfs tmpfs /run
mkdir -p /run/groups /run/netns /run/lock
mount --rbind /sys/fs/cgroup /run/groups
mount -t sysfs sysfs /sys
mount --rbind /run/groups /sys/fs/cgroup
umount -l /run/groups
mount --make-rshared /
mount --bind "$DIR/kubelet" /var/lib/kubelet
mount --make-shared /var/lib/kubelet
mount -t tmpfs tmpfs /var/lib/cni
mount --bind "$DIR/pods/pods" /var/log/pods
mount --bind "$DIR/pods/containers" /var/log/containers
hostname "$NODE"
# The kubelet sets these, and they would hold for the whole machine: it sees files that have what it wants.
i=0
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	i=$((i + 1))
	echo "${setting#*=}" >"/run/setting$i"
	mount --bind "/run/setting$i" "/proc/sys/${setting%=*}"
done

# Each proxy of a pod watches its token by two instances of inotify, and all have one user. This holds for the whole machine.
if [ "$(cat /proc/sys/fs/inotify/max_user_instances)" -lt 1024 ]; then
	echo 1024 >/proc/sys/fs/inotify/max_user_instances
fi
# The node's programs share the weight of one processor, so that pods have theirs.
if [ -d "/sys/fs/cgroup/cpu/$NODE/daemons" ]; then
	echo $$ >"/sys/fs/cgroup/cpu/$NODE/daemons/cgroup.procs"
fi

# keep NAME COMMAND... runs a program, and starts it again when it ends.
keep() {
	local name=$1
	shift
	(
		while :; do
			echo "$(date +%T) starting $name"
			"$@" >>"$DIR/log/$name.log" 2>&1 || true
			sleep 1
		done
	) &
}

keys=$DIR/keys
keep containerd containerd --config "$DIR/containerd.toml"
keep etcd etcd --data-dir "$DIR/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
	--advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
keep apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address="$NODE_ADDRESS" --secure-port=6443 \
	--service-cluster-ip-range="$SERVICES" --authorization-mode=Node,RBAC --allow-privileged=true --client-ca-file="$keys/ca.crt" \
	--tls-cert-file="$keys/apiserver.crt" --tls-private-key-file="$keys/apiserver.key" \
	--service-account-key-file="$keys/tokens.key" --service-account-signing-key-file="$keys/tokens.key" \
	--service-account-issuer=https://kubernetes.default.svc.cluster.local \
	--kubelet-client-certificate="$keys/admin.crt" --kubelet-client-key="$keys/admin.key" \
	--kubelet-certificate-authority="$keys/ca.crt" --kubelet-preferred-address-types=InternalIP
keep controllers kube-controller-manager --kubeconfig="$keys/controllers.kubeconfig" \
	--service-account-private-key-file="$keys/tokens.key" --root-ca-file="$keys/ca.crt" \
	--cluster-signing-cert-file="$keys/ca.crt" --cluster-signing-key-file="$keys/ca.key" \
	--use-service-account-credentials --leader-elect=false --node-monitor-grace-period=3m
keep scheduler kube-scheduler --kubeconfig="$keys/scheduler.kubeconfig" --leader-elect=false
keep kubelet kubelet --config="$DIR/kubelet.yaml" --kubeconfig="$keys/kubelet.kubeconfig" --hostname-override="$NODE" \
	--node-ip="$NODE_ADDRESS"
keep proxy kube-proxy --config="$DIR/proxy.yaml"
while :; do
	wait || true
	sleep 1
done
