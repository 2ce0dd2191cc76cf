// Package deploy tests the contents of the folder deploy: units, container files, charts, rules and packages are well
// formed, do what they promise, and fit the programs as built. It must not access a server except as a user can.
package deploy
