// Package inspect answers over HTTP which policies hold on an inbound, and in which order. It reads snapshots and asks
// zone/matching; it stores nothing, so that a zone and the global can both serve it.
package inspect
