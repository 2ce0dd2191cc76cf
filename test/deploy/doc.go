// Package deploy tests what is in the folder deploy: that units, container files, charts, rules and packages are well formed,
// say what they promise, and fit the programs as they are built. It must not reach into a server otherwise than a user can.
package deploy
