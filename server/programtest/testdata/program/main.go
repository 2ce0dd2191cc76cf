// Program is compiled by the test of package programtest.
package main

func main() {}
