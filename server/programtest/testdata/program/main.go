// Program is compiled by the test of package programtest.
package main

var name = "one"

func main() { println(name) }
