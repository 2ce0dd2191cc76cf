// Package capture redirects the TCP connections of a machine or a pod to its proxy, with nftables rules in the network
// namespace of the caller. It needs no change to the application, and imports nothing of Causeway.
//
// Connections from other machines go to the proxy's inbound listener, those of the machine's own processes to its
// outbound listener. The proxy learns from the kernel (SO_ORIGINAL_DST) where a connection was going. All rules are in
// one table of their own, which is replaced and removed as a whole. Without a proxy behind them, captured connections
// are refused.
package capture
